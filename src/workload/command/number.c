/*
 * command/number.c: a number in a line, in the forms that programs print. A log may hold millions:
 * those of up to 15 digits, nearly all, are computed here, exactly as strtod would.
 */
#include "workload/command/command.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX 64 /* bytes of a number */

struct parse { /* no byte from `end` on is looked at */
    const char *at, *end;
    uint64_t digits; /* as a whole number, while there are at most 15 */
    int count;       /* of digits behind leading zeros */
    int exponent;    /* of ten, that the whole number is multiplied by */
    bool some, grouped;
};

static char peek(const struct parse *p, int ahead) {
    return p->end - p->at > ahead ? p->at[ahead] : '\0';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int take_digits(struct parse *p) {
    const char *start = p->at;
    for (; p->at < p->end && is_digit(*p->at); p->at++) {
        p->digits = p->digits * 10 + (uint64_t)(*p->at - '0'); /* wraps harmlessly behind 19 */
        p->count += p->count > 0 || *p->at != '0';
    }
    p->some |= p->at > start;
    return (int)(p->at - start);
}

/* Groups of three digits with commas between them. */
static void take_groups(struct parse *p) {
    while (p->count > 0 && peek(p, 0) == ',' && is_digit(peek(p, 1)) && is_digit(peek(p, 2)) &&
           is_digit(peek(p, 3)) && !is_digit(peek(p, 4))) {
        p->at++;
        take_digits(p);
        p->grouped = true;
    }
}

/* "1,5,7" */
static bool is_listed(const struct parse *p) {
    int after = 1;
    while (is_digit(peek(p, after)))
        after++;
    return peek(p, after) == ',' && is_digit(peek(p, after + 1));
}

static void take_exponent(struct parse *p) {
    bool negative = peek(p, 1) == '-';
    int sign = negative || peek(p, 1) == '+', value = 0;
    if ((peek(p, 0) != 'e' && peek(p, 0) != 'E') || !is_digit(peek(p, 1 + sign)))
        return;
    for (p->at += 1 + sign; is_digit(peek(p, 0)); p->at++)
        value = value < 10000 ? 10 * value + (*p->at - '0') : value;
    p->exponent += negative ? -value : value;
}

/* Digits, a fraction and an exponent; false: they are no number. */
static bool take_number(struct parse *p, enum command_groups groups) {
    int count = take_digits(p);
    if (groups != COMMAND_UNGROUPED && count >= 1 && count <= 3)
        take_groups(p);
    if (groups == COMMAND_GROUPED && !p->grouped)
        return false;
    if (groups == COMMAND_COMMA && peek(p, 0) == '.' && is_digit(peek(p, 1)))
        return false;
    if (groups == COMMAND_COMMA && !p->grouped && p->some && peek(p, 0) == ',' &&
        is_digit(peek(p, 1)) && !is_listed(p)) {
        p->at++;
        p->exponent = -take_digits(p);
    }
    if (peek(p, 0) == '.' && (p->some || is_digit(peek(p, 1)))) {
        p->at++;
        p->exponent = -take_digits(p);
    }
    if (!p->some || (peek(p, 0) == '.' && is_digit(peek(p, 1))))
        return false;
    take_exponent(p);
    return true;
}

/* "nan", "inf", "infinity", as a word of its own; its length or 0. */
static size_t special_length(const struct parse *p) {
    static const char *const words[] = {"infinity", "inf", "nan"};
    char first = (char)(peek(p, 0) | 0x20), second = (char)(peek(p, 1) | 0x20);
    if (!(first == 'i' && second == 'n') && !(first == 'n' && second == 'a'))
        return 0;
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(p->end - p->at) >= length && strncasecmp(p->at, words[i], length) == 0 &&
            !command_is_word(peek(p, (int)length)))
            return length;
    }
    return 0;
}

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double convert(const struct parse *p, const char *start) {
    if (p->count <= 15 && p->exponent >= -22 &&
        p->exponent <= 22) { /* both are exact: so is this */
        double value = (double)p->digits;
        value = p->exponent < 0 ? value / powers[-p->exponent] : value * powers[p->exponent];
        return *start == '-' ? -value : value;
    }
    char text[NUMBER_MAX + 1];
    size_t count = 0;
    for (const char *c = start; c < p->at; c++)
        if (*c != ',' || !p->grouped)
            text[count++] = (char)(*c == ',' ? '.' : *c);
    text[count] = '\0';
    return strtod(text, NULL);
}

bool command_is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* "12", "3.4512", as nearly all are; where it ends, or `place`: it may be another form. */
static size_t plain_number(const char *line, size_t length, size_t place, double *ret_value) {
    size_t most = length - place < 16 ? length : place + 16, at = place, point = 0;
    uint64_t digits = 0;
    for (; at < most; at++) {
        if (is_digit(line[at]))
            digits = digits * 10 + (uint64_t)(line[at] - '0');
        else if (line[at] == '.' && !point && at > place)
            point = at;
        else
            break;
    }
    char next = at < length ? line[at] : ' ', after = at + 1 < length ? line[at + 1] : ' ';
    bool grouped = next == ',' && !point && is_digit(after);
    if (at == place || at == place + 16 || (point && at == point + 1) || grouped || next == '.' ||
        (next | 0x20) == 'e')
        return place;
    *ret_value = point ? (double)digits / powers[at - point - 1] : (double)digits;
    return at;
}

size_t command_number(const char *line, size_t length, size_t place, enum command_groups groups,
                      double *ret_value) {
    bool slow = groups == COMMAND_GROUPED || groups == COMMAND_COMMA;
    size_t plain = slow ? place : plain_number(line, length, place, ret_value);
    if (plain > place)
        return plain;
    const char *start = line + place;
    size_t most = length - place < NUMBER_MAX + 4 ? length - place : NUMBER_MAX + 4;
    struct parse p = {.at = start, .end = start + most};
    p.at += peek(&p, 0) == '-' || peek(&p, 0) == '+';
    size_t special = p.at < p.end ? special_length(&p) : 0;
    if (special > 0) {
        bool is_nan = (*p.at | 0x20) == 'n';
        double value = is_nan ? (double)NAN : (double)INFINITY;
        *ret_value = *start == '-' ? -value : value;
        return place + (size_t)(p.at - start) + special;
    }
    if (!take_number(&p, groups))
        return p.grouped && groups == COMMAND_EITHER
                   ? command_number(line, length, place, COMMAND_UNGROUPED, ret_value)
                   : place;
    if (p.at - start > NUMBER_MAX)
        return place;
    *ret_value = convert(&p, start);
    return place + (size_t)(p.at - start);
}

bool command_line_has_comma(const char *text, size_t length) {
    bool found = false;
    if (!memchr(text, ',', length))
        return false;
    for (size_t i = 1; i + 1 < length; i++) {
        if ((text[i] != ',' && text[i] != '.') || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
            continue;
        if (text[i] == '.')
            return false;
        size_t start = i - 1;
        while (start > 0 && is_digit(text[start - 1]))
            start--;
        double value;
        size_t end = command_number(text, length, start, COMMAND_COMMA, &value);
        found |= end > i && start > 0 &&
                 (isspace((unsigned char)text[start - 1]) ||
                  (text[start - 1] && strchr("=:+-", text[start - 1])));
    }
    return found;
}
