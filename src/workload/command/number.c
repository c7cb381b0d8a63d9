/* command/number.c: a number in a line, in the forms that programs print. */
#include "workload/command/command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX 64 /* bytes of a number */

struct span { /* no byte behind `length` is looked at */
    const char *line;
    size_t length;
};

bool command_is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static char at(const struct span *span, size_t place) {
    return place < span->length ? span->line[place] : '\0';
}

static bool digit(const struct span *span, size_t place) {
    return isdigit((unsigned char)at(span, place));
}

static size_t skip_digits(const struct span *span, size_t place) {
    while (digit(span, place))
        place++;
    return place;
}

/* "nan", "inf", "infinity", as a word of its own; its length or 0. */
static size_t special_length(const struct span *span, size_t place) {
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (span->length - place >= length &&
            strncasecmp(span->line + place, words[i], length) == 0 &&
            !command_is_word(at(span, place + length)))
            return length;
    }
    return 0;
}

/* Behind groups of three digits with commas between them, or `place` if there are none. */
static size_t skip_groups(const struct span *span, size_t place) {
    while (at(span, place) == ',' && digit(span, place + 1) && digit(span, place + 2) &&
           digit(span, place + 3) && !digit(span, place + 4))
        place += 4;
    return place;
}

/* Behind digits, a fraction and an exponent; `place` if they are no number. */
static size_t skip_digital(const struct span *span, size_t place, bool grouped) {
    size_t end = skip_digits(span, place);
    bool some = end > place;
    if (grouped) {
        size_t behind = some && end - place <= 3 ? skip_groups(span, end) : end;
        if (behind == end)
            return place;
        end = behind;
    }
    if (at(span, end) == '.') {
        size_t behind = skip_digits(span, end + 1);
        some |= behind > end + 1;
        end = some ? behind : end;
    }
    if (!some || (at(span, end) == '.' && digit(span, end + 1)))
        return place;
    if (at(span, end) == 'e' || at(span, end) == 'E') {
        size_t sign = end + 1 + (at(span, end + 1) == '-' || at(span, end + 1) == '+');
        end = digit(span, sign) ? skip_digits(span, sign) : end;
    }
    return end;
}

size_t command_number(const char *line, size_t length, size_t place, bool grouped,
                      double *ret_value) {
    struct span span = {line, length - place > NUMBER_MAX + 4 ? place + NUMBER_MAX + 4 : length};
    size_t start = place + (at(&span, place) == '-' || at(&span, place) == '+');
    size_t end = start < span.length ? start + special_length(&span, start) : start;
    if (end == start)
        end = skip_digital(&span, start, grouped);
    if (end == start || end - place > NUMBER_MAX)
        return place;
    char text[NUMBER_MAX + 1];
    size_t count = 0;
    for (size_t i = place; i < end; i++)
        if (line[i] != ',')
            text[count++] = line[i];
    text[count] = '\0';
    *ret_value = strtod(text, NULL);
    return end;
}
