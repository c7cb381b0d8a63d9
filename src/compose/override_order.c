/*
 * override_order.c: sort() and shuffle(). Sorting follows Python, as Hydra's does: it is stable,
 * also backwards, truth values count as 0 and 1, and text and numbers have no order between them.
 */
#include "base/random.h"
#include "base/str.h"
#include "compose/override_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct place {
    struct lab_value *value;
    int index;
};

static bool is_number(const struct lab_value *value) {
    return value->type == LAB_VALUE_BOOL || value->type == LAB_VALUE_INT ||
           value->type == LAB_VALUE_FLOAT;
}

/* Wide enough for every whole number and every fraction. */
static long double number_of(const struct lab_value *value) {
    if (value->type == LAB_VALUE_FLOAT)
        return value->number;
    return value->type == LAB_VALUE_INT ? (long double)value->integer : value->boolean;
}

/* NaN, which compares with nothing, goes last. */
static int compare_values(const struct lab_value *a, const struct lab_value *b) {
    if (a->type == LAB_VALUE_STRING)
        return strcmp(a->string, b->string);
    long double x = number_of(a), y = number_of(b);
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

static int compare_places(const void *a, const void *b, void *reverse) {
    const struct place *x = a, *y = b;
    int order = compare_values(x->value, y->value);
    if (order == 0)
        return (x->index > y->index) - (x->index < y->index);
    return *(const bool *)reverse ? -order : order;
}

static int fail_order(struct lab_value_text *t, size_t at, const struct lab_value *a,
                      const struct lab_value *b) {
    LAB_AUTO(str, right);
    LAB_AUTO(str, left);
    lab_value_write(a, &left);
    lab_value_write(b, &right);
    size_t left_length = lab_str_utf8_prefix(left.text, left.length > 40 ? 40 : left.length);
    size_t right_length = lab_str_utf8_prefix(right.text, right.length > 40 ? 40 : right.length);
    if (a == b)
        lab_value_text_fail(t, at, "sort() orders numbers or text, not %.*s", (int)left_length,
                            left.text);
    else
        lab_value_text_fail(t, at, "sort() can't order %.*s and %.*s: all numbers, or all text",
                            (int)left_length, left.text, (int)right_length, right.text);
    return -1;
}

int lab_override_sort(struct lab_value_text *t, size_t at, struct lab_value *list, bool reverse) {
    if (list->count < 2)
        return 0;
    struct lab_value *const *items = list->items;
    for (int i = 0; i < list->count; i++) {
        if (!is_number(items[i]) && items[i]->type != LAB_VALUE_STRING)
            return fail_order(t, at, items[i], items[i]);
        if (is_number(items[i]) != is_number(items[0]))
            return fail_order(t, at, items[0], items[i]);
    }
    LAB_AUTO_FREE struct place *places = lab_mem_alloc((size_t)list->count, sizeof *places);
    for (int i = 0; i < list->count; i++)
        places[i] = (struct place){items[i], i};
    qsort_r(places, (size_t)list->count, sizeof *places, compare_places, &reverse);
    for (int i = 0; i < list->count; i++)
        list->items[i] = places[i].value;
    return 0;
}

void lab_override_shuffle(struct lab_value *list, uint64_t seed) {
    for (int i = list->count - 1; i > 0; i--) {
        int other = (int)lab_random_below(seed, (uint64_t)i, (uint64_t)i + 1);
        struct lab_value *item = list->items[i];
        list->items[i] = list->items[other];
        list->items[other] = item;
    }
}
