/*
 * yaml_scalar.c: the types of plain scalars, as Hydra's users know them: YAML's core types and
 * 1e-3 as a number, but not YAML 1.1's traps. `yes`, `on` and `1:30` are text; so is a number with
 * a leading zero, which 1.1 reads as octal and people as decimal.
 */
#include "base/yaml/yaml_scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum kind { TEXT, NOTHING, TRUTH, WHOLE, FRACTION };

static bool is_base_digit(char c, int base) {
    if (!isxdigit((unsigned char)c))
        return false;
    int digit = isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
    return digit < base;
}

/* Digits of the base with underscores between them; their end, or `c` if there are none. */
static const char *skip_digits(const char *c, int base) {
    if (!is_base_digit(*c, base))
        return c;
    while (is_base_digit(*c, base) || (*c == '_' && is_base_digit(c[1], base)))
        c++;
    return c;
}

/* 0x, 0o and 0b, or 10 for none of them. */
static int base_of(const char *digits) {
    if (digits[0] != '0')
        return 10;
    return digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : digits[1] == 'b' ? 2 : 10;
}

static enum kind classify_number(const char *text) {
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    const char *c = text + (*text == '+' || *text == '-');
    if (lab_str_find(c, infinities) >= 0 || lab_str_find(text, nans) >= 0)
        return FRACTION;
    int base = base_of(c);
    if (base != 10) {
        const char *end = skip_digits(c + 2, base);
        return end > c + 2 && !*end ? WHOLE : TEXT;
    }
    const char *end = skip_digits(c, 10);
    bool digits = end > c;
    if (digits && !*end)
        return *c == '0' && end > c + 1 ? TEXT : WHOLE;
    if (*end == '.') {
        const char *fraction = skip_digits(end + 1, 10);
        digits = digits || fraction > end + 1;
        end = fraction;
    }
    if (digits && (*end == 'e' || *end == 'E')) {
        const char *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
        end = skip_digits(exponent, 10);
        digits = end > exponent;
    }
    return digits && !*end ? FRACTION : TEXT;
}

static enum kind classify(const char *text) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const truths[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    if (lab_str_find(text, nulls) >= 0)
        return NOTHING;
    if (lab_str_find(text, truths) >= 0)
        return TRUTH;
    return classify_number(text);
}

bool lab_yaml_is_text(const char *text) {
    return classify(text) == TEXT;
}

static int read_number(const char *text, enum kind kind, struct lab_arena *arena,
                       struct lab_value **ret_value, struct lab_str *problem) {
    bool negative = *text == '-';
    const char *c = text + (*text == '+' || *text == '-');
    if (*c == '.' && isalpha((unsigned char)c[1])) {
        double number = tolower((unsigned char)c[1]) == 'n' ? (double)NAN : (double)INFINITY;
        *ret_value = lab_value_float(arena, negative ? -number : number);
        return 0;
    }
    int base = kind == WHOLE ? base_of(c) : 10;
    LAB_AUTO(str, digits);
    lab_str_add(&digits, negative ? "-" : "");
    for (c += base == 10 ? 0 : 2; *c; c++)
        if (*c != '_')
            lab_str_add_bytes(&digits, c, 1);
    errno = 0;
    if (kind == WHOLE)
        *ret_value = lab_value_int(arena, strtoll(digits.text, NULL, base));
    else
        *ret_value = lab_value_float(arena, strtod(digits.text, NULL));
    if (errno != ERANGE || (kind != WHOLE && !isinf((*ret_value)->number)))
        return 0;
    lab_str_printf(problem, "%.40s is too large for a number; put it in quotes if it is text",
                   text);
    return -1;
}

int lab_yaml_read_plain(const char *text, struct lab_arena *arena, struct lab_value **ret_value,
                        struct lab_str *problem) {
    enum kind kind = classify(text);
    if (kind == WHOLE || kind == FRACTION)
        return read_number(text, kind, arena, ret_value, problem);
    if (kind == NOTHING)
        *ret_value = lab_value_null(arena);
    else if (kind == TRUTH)
        *ret_value = lab_value_bool(arena, tolower((unsigned char)text[0]) == 't');
    else
        *ret_value = lab_value_string(arena, text);
    return 0;
}

int lab_yaml_read_tagged(const char *text, const char *tag, struct lab_arena *arena,
                         struct lab_value **ret_value, struct lab_str *problem) {
    static const struct {
        const char *tag;
        enum kind kind;
    } tags[] = {{YAML_NULL_TAG, NOTHING},
                {YAML_BOOL_TAG, TRUTH},
                {YAML_INT_TAG, WHOLE},
                {YAML_FLOAT_TAG, FRACTION}};
    if (strcmp(tag, YAML_STR_TAG) == 0) {
        *ret_value = lab_value_string(arena, text);
        (*ret_value)->quoted = true;
        return 0;
    }
    enum kind kind = classify(text);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (strcmp(tag, tags[i].tag) != 0)
            continue;
        if (tags[i].kind == FRACTION && kind == WHOLE && base_of(text) == 10)
            return read_number(text, FRACTION, arena, ret_value, problem);
        if (kind == tags[i].kind)
            return lab_yaml_read_plain(text, arena, ret_value, problem);
        lab_str_printf(problem, "'%.40s' doesn't match its tag '%s'", text, tag);
        return -1;
    }
    lab_str_printf(problem, "unknown tag '%.80s'", tag);
    return -1;
}
