/* str.c: strings that grow, and formatting of times, rates and sizes. */
#include "base/str.h"

#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void reserve(struct lab_str *str, size_t more) {
    size_t need = str->length + more + 1;
    if (need <= str->capacity)
        return;
    size_t capacity = str->capacity ? str->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    str->text = lab_mem_resize(str->text, capacity, 1);
    str->capacity = capacity;
}

void lab_str_init(struct lab_str *str) {
    *str = (struct lab_str){0};
    reserve(str, 0);
    str->text[0] = '\0';
}

void lab_str_release(struct lab_str *str) {
    lab_mem_free(str->text);
    *str = (struct lab_str){0};
}

void lab_str_clear(struct lab_str *str) {
    str->length = 0;
    str->text[0] = '\0';
}

void lab_str_add_bytes(struct lab_str *str, const char *bytes, size_t length) {
    reserve(str, length);
    memcpy(str->text + str->length, bytes, length);
    str->length += length;
    str->text[str->length] = '\0';
}

void lab_str_add(struct lab_str *str, const char *text) {
    lab_str_add_bytes(str, text, strlen(text));
}

void lab_str_add_repeat(struct lab_str *str, const char *text, int times) {
    for (int i = 0; i < times; i++)
        lab_str_add(str, text);
}

void lab_str_printf(struct lab_str *str, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t room = str->capacity - str->length;
    int length = vsnprintf(str->text + str->length, room, format, args);
    va_end(args);
    if (length < 0)
        abort();
    reserve(str, (size_t)length);
    if ((size_t)length >= room)
        vsnprintf(str->text + str->length, (size_t)length + 1, format, again);
    va_end(again);
    str->length += (size_t)length;
}

bool lab_str_equal(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

int lab_str_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int lab_str_find(const char *word, const char *const *words) {
    for (int i = 0; words && words[i]; i++)
        if (lab_str_equal(words[i], word))
            return i;
    return -1;
}

bool lab_str_starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool lab_str_ends(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

int lab_str_columns(const char *text) {
    int columns = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if ((*c & 0xc0) == 0x80)
            continue;                                               /* continues a code point */
        bool combining = *c == 0xcc || (*c == 0xcd && c[1] < 0xb0); /* U+0300 to U+036F */
        columns += !combining;
    }
    return columns;
}

/* Bytes of the code point at `c` (at most `length`), or 0 if it is no valid UTF-8. */
static size_t code_point_bytes(const unsigned char *c, size_t length) {
    if (c[0] < 0x80)
        return 1;
    size_t bytes = c[0] >= 0xc2 && c[0] < 0xe0   ? 2
                   : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                   : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                                 : 0;
    if (bytes == 0 || bytes > length)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool surrogate = c[0] == 0xed && c[1] >= 0xa0;
    bool beyond = c[0] == 0xf4 && c[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : bytes;
}

size_t lab_str_utf8_prefix(const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        size_t step = code_point_bytes((const unsigned char *)bytes + at, length - at);
        if (step == 0)
            break;
        at += step;
    }
    return at;
}

static bool steers_terminal(const unsigned char *c, size_t bytes) {
    if (bytes == 1)
        return *c < 0x20 || *c == 0x7f;
    if (bytes == 2)
        return c[0] == 0xc2 && c[1] < 0xa0; /* U+0080 to U+009F */
    /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
    return bytes == 3 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
            (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

size_t lab_str_next(const char *text, size_t length, bool *ret_printable) {
    size_t bytes = code_point_bytes((const unsigned char *)text, length);
    *ret_printable = bytes > 0 && !steers_terminal((const unsigned char *)text, bytes);
    return bytes ? bytes : 1;
}

void lab_str_make_printable(char *text) {
    size_t left = strlen(text);
    char *to = text;
    while (left > 0) {
        bool printable;
        size_t bytes = lab_str_next(text, left, &printable);
        if (printable)
            memmove(to, text, bytes);
        else
            *to = '?';
        to += printable ? bytes : 1;
        text += bytes;
        left -= bytes;
    }
    *to = '\0';
}

void lab_str_add_decimal(struct lab_str *str, int64_t count, int decimals) {
    char digits[48], *end = digits + sizeof digits, *at = end;
    uint64_t size = count < 0 ? -(uint64_t)count : (uint64_t)count;
    for (int place = 0; size || place <= decimals; place++, size /= 10) {
        if (place && place == decimals)
            *--at = '.';
        *--at = (char)('0' + size % 10);
    }
    if (count < 0)
        *--at = '-';
    lab_str_add_bytes(str, at, (size_t)(end - at));
}

typedef unsigned __int128 wide;

/*
 * From 1e-4 to 1e15, in whole arithmetic, which takes a tenth of libc's time. The number is
 * m / 2^s; its digits to the k-th decimal are m · 10^k / 2^s, exact in 128 bits. They read back as
 * the number if they miss it by less than half of m's step. (Below a power of two the step is half
 * as long; but those have fewer than 15 digits here.)
 */
static bool add_common_double(struct lab_str *str, double value) {
    static const double powers[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    enum { POWERS = sizeof powers / sizeof *powers };
    int below = 0, exponent;
    while (below < POWERS && fabs(value) >= powers[below])
        below++;
    if (below == 0 || below == POWERS)
        return false;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53), whole = 0;
    int decimals = 0, shift = 53 - exponent;
    bool same = false;
    for (int digits = 15; digits <= 17 && !same; digits++) {
        wide scale = 1, unit = (wide)1 << shift;
        decimals = digits + 4 - below;
        for (int i = 0; i < decimals; i++)
            scale *= 10;
        wide rest = m * scale & (unit - 1);
        whole = (uint64_t)(m * scale >> shift);
        if (2 * rest > unit || (2 * rest == unit && whole % 2)) {
            rest = unit - rest;
            whole++;
        }
        same = 2 * rest < scale;
    }
    for (; decimals > 1 && whole % 10 == 0; decimals--)
        whole /= 10;
    if (decimals == 0)
        decimals = 1, whole *= 10;
    lab_str_add_decimal(str, value < 0 ? -(int64_t)whole : (int64_t)whole, decimals);
    return true;
}

/* From 1e-8 to 1e-4 likewise, if 15 digits are enough: learning rates are such numbers. */
static bool add_small_double(struct lab_str *str, double value) {
    static const double powers[] = {1e-5, 1e-6, 1e-7, 1e-8};
    enum { POWERS = sizeof powers / sizeof *powers, DIGITS = 15 };
    int below = 0, exponent, digits = 1;
    while (below < POWERS && fabs(value) < powers[below])
        below++;
    if (below == POWERS || !(fabs(value) < 1e-4)) /* NaN, too */
        return false;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53);
    int decimals = DIGITS + 4 + below, shift = 53 - exponent;
    wide scale = 1, unit = (wide)1 << shift;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    wide rest = m * scale & (unit - 1);
    uint64_t whole = (uint64_t)(m * scale >> shift);
    if (2 * rest > unit || (2 * rest == unit && whole % 2)) {
        rest = unit - rest;
        whole++;
    }
    for (; whole % 10 == 0; decimals--)
        whole /= 10;
    for (uint64_t left = whole / 10; left; left /= 10)
        digits++;
    int power = decimals - digits + 1;
    if (2 * rest >= scale || power < 5) /* it would be another number, or 0.0001 */
        return false;
    lab_str_add_decimal(str, value < 0 ? -(int64_t)whole : (int64_t)whole, digits - 1);
    lab_str_add_bytes(str, (char[]){'e', '-', '0', (char)('0' + power)}, 4);
    return true;
}

void lab_str_add_digits(struct lab_str *str, double value, int digits) {
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, value);
    bool whole = fabs(value) > 1 && fabs(value) < 1e15 && strchr(text, 'e');
    if (whole)
        snprintf(text, sizeof text, "%.0f", value);
    lab_str_add(str, text);
}

void lab_str_add_double(struct lab_str *str, double value) {
    if (add_common_double(str, value) || add_small_double(str, value))
        return;
    if (!isfinite(value)) {
        lab_str_add(str, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
    char text[40];
    for (int i = 0; i < 3; i++) {
        strfromd(text, sizeof text, formats[i], value);
        if (strtod(text, NULL) == value)
            break;
    }
    lab_str_add(str, text);
    if (!strpbrk(text, ".e"))
        lab_str_add(str, ".0");
}

#define NEAREST_LENGTH 64

/* Optimal string alignment distance; words longer than the bound are never near. */
static int distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n >= NEAREST_LENGTH || m >= NEAREST_LENGTH)
        return NEAREST_LENGTH;
    int rows[3][NEAREST_LENGTH + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *lab_str_nearest(const char *word, const char *const *candidates) {
    const char *best = NULL;
    int best_distance = (int)strlen(word) / 3 + 1; /* a third of the letters may be wrong */
    for (; *candidates; candidates++) {
        int d = distance(word, *candidates);
        if (d >= NEAREST_LENGTH)
            continue;
        if (d > 0 && strlen(word) >= 3 && lab_str_starts(*candidates, word))
            d = 1; /* "samples" for "samples_per_second" */
        if (d < best_distance || (d == best_distance && !best)) {
            best = *candidates;
            best_distance = d;
        }
    }
    return best;
}

void lab_str_add_shell(struct lab_str *str, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    if (*word && strspn(word, plain) == strlen(word)) {
        lab_str_add(str, word);
        return;
    }
    lab_str_add(str, "'");
    for (; *word; word++) {
        if (*word == '\'')
            lab_str_add(str, "'\\''");
        else
            lab_str_add_bytes(str, word, 1);
    }
    lab_str_add(str, "'");
}

void lab_str_add_list(struct lab_str *str, const char *const *words, const char *last_joiner) {
    for (int i = 0; words[i]; i++) {
        if (i > 0 && words[i + 1])
            lab_str_add(str, ", ");
        else if (i > 0)
            lab_str_printf(str, " %s ", last_joiner);
        lab_str_add(str, words[i]);
    }
}

/* Three significant digits: 1.23, 12.3, 123. */
static void add_digits(struct lab_str *str, double value) {
    double size = fabs(value);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    lab_str_printf(str, "%.*f", decimals, value);
}

static void add_scaled(struct lab_str *str, double value, double step, const char *const *units) {
    if (!isfinite(value)) {
        lab_str_add(str, isnan(value) ? "unknown" : "inf");
        return;
    }
    int i = 0;
    while (fabs(value) >= 0.9995 * step && units[i + 1]) {
        value /= step;
        i++;
    }
    if (i == 0 && value == floor(value))
        lab_str_printf(str, "%.0f", value);
    else
        add_digits(str, value);
    lab_str_printf(str, " %s", units[i]);
}

void lab_str_add_bytes_binary(struct lab_str *str, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};
    add_scaled(str, bytes, 1024, units);
}

void lab_str_add_time(struct lab_str *str, double seconds) {
    static const char *const units[] = {"ns", "µs", "ms", "s", NULL};
    if (fabs(seconds) >= 120) {
        lab_str_printf(str, "%.0f min", seconds / 60);
        return;
    }
    add_scaled(str, seconds * 1e9, 1000, units);
}

static void add_rounded(struct lab_str *str, double seconds) {
    if (seconds >= 2 * 86400)
        lab_str_printf(str, "%.3g days", seconds / 86400);
    else if (seconds >= 2 * 3600)
        lab_str_printf(str, "%.3g h", seconds / 3600);
    else if (seconds >= 120)
        lab_str_printf(str, "%.0f min", seconds / 60);
    else
        lab_str_printf(str, "%.0f s", ceil(seconds));
}

static void add_precise(struct lab_str *str, double seconds) {
    if (seconds > 0 && seconds < 1) /* a short run took no 0.0 s */
        lab_str_printf(str, "%.3g ms", 1e3 * seconds);
    else if (seconds < 120)
        lab_str_printf(str, "%.1f s", seconds);
    else if (seconds < 2 * 3600)
        lab_str_printf(str, "%.1f min", seconds / 60);
    else
        lab_str_printf(str, "%.1f h", seconds / 3600);
}

static void add_parts(struct lab_str *str, double seconds) {
    long long whole = (long long)(seconds + 0.5);
    if (seconds < 9.95 && seconds > 0.05)
        lab_str_printf(str, "%.1f s", seconds);
    else if (whole < 60)
        lab_str_printf(str, "%lld s", whole);
    else if (whole < 3600)
        lab_str_printf(str, "%lld min %lld s", whole / 60, whole % 60);
    else
        lab_str_printf(str, "%lld h %lld min", whole / 3600, whole / 60 % 60);
}

void lab_str_add_duration(struct lab_str *str, double seconds, enum lab_duration style) {
    long long whole = (long long)seconds;
    if (style == LAB_DURATION_ROUNDED)
        add_rounded(str, seconds);
    else if (style == LAB_DURATION_PRECISE)
        add_precise(str, seconds);
    else if (style == LAB_DURATION_PARTS)
        add_parts(str, seconds);
    else if (whole >= 3600)
        lab_str_printf(str, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        lab_str_printf(str, "%lld:%02lld", whole / 60, whole % 60);
}

void lab_str_add_si(struct lab_str *str, double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", NULL};
    if (!isfinite(value)) {
        lab_str_add(str, "unknown");
        return;
    }
    int i = 0;
    while (fabs(value) >= 999.5 && prefixes[i + 1]) {
        value /= 1000;
        i++;
    }
    add_digits(str, value);
    lab_str_printf(str, " %s%s", prefixes[i], unit);
}

void lab_str_add_rate(struct lab_str *str, double value) {
    LAB_AUTO(str, scaled);
    if (fabs(value) >= 999.5 && fabs(value) < 9999.5) {
        lab_str_printf(str, "%.0f", value);
        return;
    }
    lab_str_add_si(&scaled, value, "");
    size_t space = strcspn(scaled.text, " ");
    lab_str_printf(str, "%.*s%s", (int)space, scaled.text,
                   scaled.text[space] ? scaled.text + space + 1 : "");
}

void lab_str_add_factor(struct lab_str *str, double factor) {
    lab_str_printf(str, "%.*f", factor < 9.995 ? 2 : factor < 99.95 ? 1 : 0, factor);
}

void lab_str_add_change(struct lab_str *str, double share) {
    if (share >= LAB_CHANGE_FACTOR) {
        lab_str_add_factor(str, 1 + share);
        lab_str_add(str, "×");
    } else {
        lab_str_printf(str, "%+.1f%%", round(1000 * share) / 10 + 0.0);
    }
}

/* a format may come from a config, by design; strftime takes no arguments that it could reach */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void lab_str_add_clock(struct lab_str *str, int64_t wall_ns, const char *format) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm local;
    char text[256];
    if (localtime_r(&seconds, &local) && strftime(text, sizeof text, format, &local))
        lab_str_add(str, text);
}
#pragma GCC diagnostic pop
