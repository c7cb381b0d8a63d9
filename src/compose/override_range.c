/*
 * override_range.c: range(start, stop, step), half-open. Fractions are counted in decimal, as they
 * were written, so that range(0,10,3.3) is 0.0, 3.3, 6.6, 9.9 and not 9.899999999999999: all three
 * numbers become whole multiples of one power of ten, and each value is rounded once, at the end.
 */
#include "base/str.h"
#include "compose/override_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define DIGITS_MAX 37 /* of a multiple: differences still fit in 128 bits */

typedef unsigned __int128 magnitude; /* unsigned: no overflow check of 128 bits for clang to link */

struct decimal { /* ± digits · 10^exponent */
    magnitude digits;
    int exponent;
    bool negative;
};

/* The fewest digits that read back as this number: what was written, if it had up to 15. */
static struct decimal to_decimal(const struct lab_value *value) {
    if (value->type == LAB_VALUE_INT) {
        bool negative = value->integer < 0;
        uint64_t digits = negative ? -(uint64_t)value->integer : (uint64_t)value->integer;
        return (struct decimal){digits, 0, negative};
    }
    LAB_AUTO(str, text);
    lab_str_add_double(&text, value->number);
    struct decimal d = {.negative = text.text[0] == '-'};
    bool behind_point = false;
    for (const char *c = text.text + d.negative; *c; c++) {
        if (*c == '.') {
            behind_point = true;
        } else if (*c == 'e') {
            d.exponent += (int)strtol(c + 1, NULL, 10);
            break;
        } else {
            d.digits = d.digits * 10 + (magnitude)(*c - '0');
            d.exponent -= behind_point;
        }
    }
    for (; d.digits && d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    return d;
}

/* The number as a multiple of 10^exponent, which isn't above its own; false if that has too many
 * digits. */
static bool scale(struct decimal d, int exponent, __int128 *ret_multiple) {
    int count = 0;
    for (magnitude rest = d.digits; rest; rest /= 10)
        count++;
    if (count > 0 && count + d.exponent - exponent > DIGITS_MAX)
        return false;
    for (int i = d.exponent; d.digits && i > exponent; i--)
        d.digits *= 10;
    *ret_multiple = d.negative ? -(__int128)d.digits : (__int128)d.digits;
    return true;
}

static double to_double(const struct lab_value *value) {
    return value->type == LAB_VALUE_INT ? (double)value->integer : value->number;
}

static int fail_too_long(struct lab_value_text *t, size_t at) {
    return lab_value_text_fail(t, at, "the range has more than %d values", LAB_SWEEP_MAX);
}

static int fail_empty(struct lab_value_text *t, size_t at, const struct lab_override_range *range) {
    LAB_AUTO(str, step);
    LAB_AUTO(str, from);
    LAB_AUTO(str, to);
    lab_value_write(range->start, &from);
    lab_value_write(range->stop, &to);
    lab_value_write(range->step, &step);
    double start = to_double(range->start), stop = to_double(range->stop);
    if (start > stop)
        lab_value_text_fail(t, at,
                            "the range from %s to %s is empty; counting down needs a negative "
                            "step: range(%s,%s,-%s)",
                            from.text, to.text, from.text, to.text, step.text);
    else if (start < stop)
        lab_value_text_fail(t, at,
                            "the range from %s to %s is empty; counting up needs a positive step",
                            from.text, to.text);
    else
        lab_value_text_fail(t, at, "the range from %s to %s is empty; its end is excluded",
                            from.text, to.text);
    return -1;
}

/* Whether all three can be multiples of one power of ten; sets first, stride and exponent. */
static bool find_common_exponent(struct lab_override_range *range, __int128 *ret_stop) {
    struct decimal numbers[] = {to_decimal(range->start), to_decimal(range->stop),
                                to_decimal(range->step)};
    int exponent = INT_MAX;
    for (int i = 0; i < 3; i++)
        if (numbers[i].digits && numbers[i].exponent < exponent)
            exponent = numbers[i].exponent;
    range->exponent = exponent;
    return scale(numbers[0], exponent, &range->first) && scale(numbers[1], exponent, ret_stop) &&
           scale(numbers[2], exponent, &range->stride);
}

int lab_override_range_count(struct lab_value_text *t, size_t at,
                             struct lab_override_range *range) {
    const struct lab_value *numbers[] = {range->start, range->stop, range->step};
    range->whole = true;
    for (int i = 0; i < 3; i++) {
        range->whole = range->whole && numbers[i]->type == LAB_VALUE_INT;
        if (!isfinite(to_double(numbers[i])))
            return lab_value_text_fail(t, at, "a range needs finite numbers");
    }
    if (to_double(range->step) == 0)
        return lab_value_text_fail(t, at, "the range's step is 0");
    __int128 stop;
    if (!find_common_exponent(range, &stop)) {
        double steps = (to_double(range->stop) - to_double(range->start)) / to_double(range->step);
        if (steps > LAB_SWEEP_MAX)
            return fail_too_long(t, at);
        return lab_value_text_fail(t, at,
                                   "the range's numbers span too much to be counted exactly");
    }
    __int128 distance = stop - range->first, stride = range->stride;
    if (stride < 0) {
        distance = -distance;
        stride = -stride;
    }
    if (distance <= 0)
        return fail_empty(t, at, range);
    __int128 count = distance / stride + (distance % stride != 0);
    if (count > LAB_SWEEP_MAX)
        return fail_too_long(t, at);
    range->count = (int)count;
    return 0;
}

/* Rounded correctly: by one division where both numbers are exact, otherwise through text. */
static double nearest_double(__int128 multiple, int exponent) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const __int128 exact = (__int128)1 << 53;
    if (multiple >= -exact && multiple <= exact && exponent >= -22 && exponent <= 0)
        return (double)multiple / powers[-exponent];
    magnitude size = (magnitude)(multiple < 0 ? -multiple : multiple);
    const uint64_t chunk = 1000000000000000000ULL; /* 18 digits */
    char text[80];
    snprintf(text, sizeof text, "%s%llu%018llu%018llue%d", multiple < 0 ? "-" : "",
             (unsigned long long)(size / chunk / chunk), (unsigned long long)(size / chunk % chunk),
             (unsigned long long)(size % chunk), exponent);
    return strtod(text, NULL);
}

struct lab_value *lab_override_range_write(const struct lab_override_range *range,
                                           struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    size_t count = (size_t)range->count;
    struct lab_value *values = lab_arena_alloc(arena, count, sizeof *values);
    list->items = lab_arena_alloc(arena, count, sizeof(struct lab_value *));
    list->count = list->capacity = range->count;
    __int128 multiple = range->first;
    for (size_t i = 0; i < count; i++, multiple += range->stride) {
        values[i].type = range->whole ? LAB_VALUE_INT : LAB_VALUE_FLOAT;
        if (range->whole)
            values[i].integer = (int64_t)multiple;
        else
            values[i].number = nearest_double(multiple, range->exponent);
        values[i].line = range->start->line;
        values[i].column = range->start->column;
        list->items[i] = &values[i];
    }
    return list;
}
