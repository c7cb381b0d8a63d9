/*
 * override_cast.c: int() float() str() bool(), by Hydra's table: numbers are cut off towards zero,
 * text must be all number, truth has but two words. Lists and dicts are cast through and through, a
 * sweep value by value; int() and float() of a range cast its ends and step.
 */
#include "base/str.h"
#include "compose/override_internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {"int", "float", "str", "bool"};

static int fail_cast(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                     const struct lab_value *value, const char *why) {
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    lab_value_text_fail(t, at, "%s() can't be made of %.*s%s", names[cast],
                        (int)lab_str_utf8_prefix(text.text, text.length > 40 ? 40 : text.length),
                        text.text, why);
    return -1;
}

/* Text without the spaces around it and the underscores between digits; NULL if that is empty. */
static char *bare_digits(struct lab_value_text *t, const char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    if (length == 0)
        return NULL;
    char *digits = lab_arena_strndup(t->arena, text, length);
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        if (digits[i] != '_' || i == 0 || !isdigit((unsigned char)text[i - 1]) ||
            !isdigit((unsigned char)text[i + 1]))
            digits[count++] = digits[i];
    digits[count] = '\0';
    return digits;
}

static int text_to_int(struct lab_value_text *t, size_t at, struct lab_value *value) {
    const char *digits = bare_digits(t, value->string);
    char *end = NULL;
    errno = 0;
    long long integer = digits ? strtoll(digits, &end, 10) : 0;
    if (!digits || *end || end == digits || isspace((unsigned char)*digits))
        return fail_cast(t, at, LAB_CAST_INT, value, "");
    if (errno == ERANGE)
        return fail_cast(t, at, LAB_CAST_INT, value, ": it is too large");
    value->type = LAB_VALUE_INT;
    value->integer = integer;
    return 0;
}

static int text_to_float(struct lab_value_text *t, size_t at, struct lab_value *value) {
    const char *digits = bare_digits(t, value->string);
    char *end = NULL;
    double number = digits ? strtod(digits, &end) : 0;
    /* strtod also takes C's hexadecimal numbers, nan(...) and other spaces */
    if (!digits || *end || end == digits || strpbrk(digits, "xX(") ||
        isspace((unsigned char)*digits))
        return fail_cast(t, at, LAB_CAST_FLOAT, value, "");
    value->type = LAB_VALUE_FLOAT;
    value->number = isnan(number) ? (double)NAN : number;
    return 0;
}

static int text_to_bool(struct lab_value_text *t, size_t at, struct lab_value *value) {
    bool is_true = strcasecmp(value->string, "true") == 0;
    if (!is_true && strcasecmp(value->string, "false") != 0)
        return fail_cast(t, at, LAB_CAST_BOOL, value, ": of text, only of true and false");
    value->type = LAB_VALUE_BOOL;
    value->boolean = is_true;
    return 0;
}

static int float_to_int(struct lab_value_text *t, size_t at, struct lab_value *value) {
    double number = value->number;
    const double limit = 9223372036854775808.0; /* 2^63, the first that doesn't fit */
    if (isnan(number) || number < -limit || number >= limit)
        return fail_cast(t, at, LAB_CAST_INT, value,
                         isfinite(number) ? ": it is too large" : ", which is not a whole number");
    value->type = LAB_VALUE_INT;
    value->integer = (int64_t)number;
    return 0;
}

/* A number as text; truth values are written in lower case. */
static void to_text(struct lab_value_text *t, struct lab_value *value) {
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    value->type = LAB_VALUE_STRING;
    value->string = lab_arena_strdup(t->arena, text.text);
    value->quoted = true;
}

static double number_of(const struct lab_value *value) {
    if (value->type == LAB_VALUE_FLOAT)
        return value->number;
    return value->type == LAB_VALUE_INT ? (double)value->integer : value->boolean;
}

static int cast_number(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                       struct lab_value *value) {
    double number = number_of(value);
    switch (cast) {
    case LAB_CAST_INT:
        if (value->type == LAB_VALUE_FLOAT)
            return float_to_int(t, at, value);
        if (value->type == LAB_VALUE_BOOL)
            value->integer = value->boolean;
        value->type = LAB_VALUE_INT;
        return 0;
    case LAB_CAST_FLOAT:
        value->type = LAB_VALUE_FLOAT;
        value->number = number;
        return 0;
    case LAB_CAST_STR:
        to_text(t, value);
        return 0;
    case LAB_CAST_BOOL:
        value->boolean = number != 0;
        value->type = LAB_VALUE_BOOL;
        return 0;
    }
    return 0;
}

static int cast_text(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                     struct lab_value *value) {
    if (cast != LAB_CAST_STR && strstr(value->string, "${"))
        return fail_cast(t, at, cast, value, ": it is filled in only later");
    switch (cast) {
    case LAB_CAST_INT:
        return text_to_int(t, at, value);
    case LAB_CAST_FLOAT:
        return text_to_float(t, at, value);
    case LAB_CAST_BOOL:
        return text_to_bool(t, at, value);
    case LAB_CAST_STR:
        value->quoted = true;
        return 0;
    }
    return 0;
}

static int cast_value(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                      struct lab_value *value) {
    switch (value->type) {
    case LAB_VALUE_NULL:
        return fail_cast(t, at, cast, value, "");
    case LAB_VALUE_BOOL:
    case LAB_VALUE_INT:
    case LAB_VALUE_FLOAT:
        return cast_number(t, at, cast, value);
    case LAB_VALUE_STRING:
        return cast_text(t, at, cast, value);
    case LAB_VALUE_LIST:
    case LAB_VALUE_MAP:
        break;
    }
    for (int i = 0; i < value->count; i++)
        if (cast_value(t, at, cast, value->items[i]) < 0)
            return -1;
    return 0;
}

static int cast_range(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                      struct lab_override_range *range) {
    const struct lab_value **ends[] = {&range->start, &range->stop, &range->step};
    for (int i = 0; i < 3; i++) {
        struct lab_value *end = lab_arena_alloc(t->arena, 1, sizeof *end);
        *end = **ends[i];
        if (cast_value(t, at, cast, end) < 0)
            return -1;
        *ends[i] = end;
    }
    return lab_override_range_count(t, at, range);
}

int lab_override_cast(struct lab_value_text *t, size_t at, enum lab_override_cast cast,
                      struct lab_override_result *result) {
    switch (result->kind) {
    case LAB_RESULT_GLOB:
        return lab_value_text_fail(t, at, "%s() can't be made of a glob: options are names",
                                   names[cast]);
    case LAB_RESULT_RANGE:
        if (cast == LAB_CAST_INT || cast == LAB_CAST_FLOAT)
            return cast_range(t, at, cast, result->range);
        result->value = lab_override_range_write(result->range, t->arena);
        result->kind = LAB_RESULT_VALUES;
        break;
    case LAB_RESULT_ELEMENT:
    case LAB_RESULT_VALUES:
        break;
    }
    return cast_value(t, at, cast, result->value);
}
