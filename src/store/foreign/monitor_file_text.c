/*
 * monitor_file_text.c: numbers, times and names as the files of monitors have them. Numbers are
 * made from whole ones where they can be, since 85123 · 0.001 isn't 85.123 in binary.
 */
#include "store/foreign/monitor_file_internal.h"

#include "base/clock.h"
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- numbers --- */

static void add_trimmed(struct lab_str *out, const char *digits) {
    size_t length = strlen(digits);
    if (strchr(digits, '.')) {
        while (length > 1 && digits[length - 1] == '0')
            length--;
        length -= length > 1 && digits[length - 1] == '.';
    }
    lab_str_add_bytes(out, digits, length);
}

void lab_monitor_add_number(struct lab_str *out, double value, int decimals, const char *absent) {
    char digits[400];
    if (!isfinite(value)) {
        lab_str_add(out, absent);
        return;
    }
    snprintf(digits, sizeof digits, "%.*f", decimals, value);
    add_trimmed(out, lab_str_equal(digits, "-0") ? "0" : digits);
}

/* Scales below 1 are powers of ten. */
struct lab_doc_cell lab_monitor_exact(enum lab_metric_id metric, int64_t value) {
    double scale = lab_metric(metric)->scale;
    int64_t count = value;
    int decimals = scale < 1 ? (int)lround(-log10(scale)) : 0;
    if (scale >= 1 && __builtin_mul_overflow(value, (int64_t)scale, &count))
        return lab_cell_figure((double)value * scale);
    for (; decimals > 0 && count % 10 == 0; decimals--)
        count /= 10;
    return lab_cell_exact(count, decimals);
}

void lab_monitor_add_exact(struct lab_str *out, enum lab_metric_id metric, int64_t value) {
    struct lab_doc_cell cell = lab_monitor_exact(metric, value);
    lab_doc_add_json(&cell, LAB_UNIT_NUMBER, out);
}

bool lab_monitor_to_raw(enum lab_metric_id metric, double value, int64_t *ret_raw) {
    double raw = value / lab_metric(metric)->scale;
    if (!isfinite(raw) || fabs(raw) > 9e18)
        return false;
    *ret_raw = llround(raw);
    return true;
}

void lab_monitor_add_string(struct lab_str *out, const char *text) {
    struct lab_value value = {.type = LAB_VALUE_STRING, .string = text ? text : ""};
    lab_json_write(&value, 0, out);
}

/* --- names of columns --- */

void lab_monitor_add_column(struct lab_str *out, enum lab_metric_id metric) {
    lab_str_printf(out, "%s%s", lab_metric(metric)->name, lab_metric_ending(metric));
}

int lab_monitor_find_column(const char *name) {
    LAB_AUTO(str, column);
    int found = -1;
    for (int i = 0; i < LAB_METRIC_COUNT && found < 0; i++) {
        lab_str_clear(&column);
        lab_monitor_add_column(&column, (enum lab_metric_id)i);
        if (lab_str_equal(column.text, name))
            found = i;
    }
    return found;
}

/* --- times --- */

static int64_t floor_seconds(int64_t time_ns) {
    return time_ns / LAB_NS_PER_S - (time_ns % LAB_NS_PER_S < 0);
}

struct lab_doc_cell lab_monitor_seconds(int64_t time_ns) {
    return lab_cell_exact(time_ns / 1000, 6);
}

void lab_monitor_add_seconds(struct lab_str *out, int64_t time_ns) {
    lab_str_add_decimal(out, time_ns / 1000, 6);
}

/* The same second comes many times in a row, and asking the time zone is dear. */
void lab_monitor_add_time(struct lab_str *out, int64_t wall_ns) {
    static _Thread_local time_t last_second;
    static _Thread_local char last_text[48];
    time_t second = (time_t)floor_seconds(wall_ns);
    if (!*last_text || second != last_second) {
        struct tm local;
        if (!localtime_r(&second, &local))
            local = (struct tm){.tm_mday = 1, .tm_year = 70};
        snprintf(last_text, sizeof last_text, "%04d-%02d-%02dT%02d:%02d:%02d", local.tm_year + 1900,
                 local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
        last_second = second;
    }
    lab_str_printf(out, "%s.%03d", last_text,
                   (int)((wall_ns - (int64_t)second * LAB_NS_PER_S) / LAB_NS_PER_MS));
}

static bool read_digits(const char **at, int count, int *ret) {
    int value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return true;
}

static bool read_mark(const char **at, const char *marks) {
    if (!**at || !strchr(marks, **at))
        return false;
    (*at)++;
    return true;
}

static int64_t read_fraction(const char **at) {
    int64_t fraction = 0, place = LAB_NS_PER_S / 10;
    if (!read_mark(at, ".,"))
        return 0;
    for (; isdigit((unsigned char)**at); (*at)++, place /= 10)
        fraction += place * (**at - '0');
    return fraction;
}

/* "Z", "+01:00", "+0100", "+01"; false = something else follows. */
static bool read_zone(const char **at, bool *ret_local, int *ret_minutes) {
    int hours, minutes = 0;
    *ret_local = !**at;
    *ret_minutes = 0;
    if (!**at || (read_mark(at, "Zz") && !**at))
        return true;
    int sign = **at == '-' ? -1 : 1;
    if (!read_mark(at, "+-") || !read_digits(at, 2, &hours))
        return false;
    read_mark(at, ":");
    if (**at && !read_digits(at, 2, &minutes))
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return !**at;
}

/* Seconds since 1970 of a day and time in UTC (days from the civil calendar, H. Hinnant). */
static int64_t utc_seconds(const struct tm *t) {
    int64_t year = t->tm_year + 1900, month = t->tm_mon + 1;
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t day = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + t->tm_mday - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day - 719468;
    return ((days * 24 + t->tm_hour) * 60 + t->tm_min) * 60 + t->tm_sec;
}

/* mktime is dear, and within an hour the zone's offset is the same. */
static int64_t local_seconds(const struct tm *t) {
    static _Thread_local int64_t last_hour = INT64_MIN, last_offset;
    int64_t utc = utc_seconds(t), hour = utc / 3600;
    if (hour != last_hour) {
        struct tm copy = *t;
        copy.tm_isdst = -1;
        last_offset = utc - (int64_t)mktime(&copy);
        last_hour = hour;
    }
    return utc - last_offset;
}

static bool parse_iso(const char *text, int64_t *ret_ns) {
    struct tm t = {0};
    const char *at = text;
    bool local;
    int zone_min;
    if (!read_digits(&at, 4, &t.tm_year) || !read_mark(&at, "-/") ||
        !read_digits(&at, 2, &t.tm_mon) || !read_mark(&at, "-/") ||
        !read_digits(&at, 2, &t.tm_mday) || !read_mark(&at, "Tt ") ||
        !read_digits(&at, 2, &t.tm_hour) || !read_mark(&at, ":") || !read_digits(&at, 2, &t.tm_min))
        return false;
    if (read_mark(&at, ":") && !read_digits(&at, 2, &t.tm_sec))
        return false;
    int64_t fraction_ns = read_fraction(&at);
    if (!read_zone(&at, &local, &zone_min) || t.tm_year < 1970 || t.tm_year > 2100 ||
        t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 || t.tm_hour > 24 ||
        t.tm_min > 59 || t.tm_sec > 60)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    int64_t seconds = local ? local_seconds(&t) : utc_seconds(&t) - INT64_C(60) * zone_min;
    *ret_ns = seconds * LAB_NS_PER_S + fraction_ns;
    return true;
}

/* Nobody's program runs for three years, and no monitor was there before 1973. */
static enum lab_monitor_time of_number(double seconds, int64_t *ret_ns) {
    if (!isfinite(seconds) || fabs(seconds) > 4.1e12)
        return LAB_MONITOR_TIME_NONE;
    if (seconds > 1e11)
        seconds /= 1000; /* milliseconds, as JavaScript counts */
    if (fabs(seconds) > 4.1e9)
        return LAB_MONITOR_TIME_NONE;
    *ret_ns =
        (int64_t)floor(seconds) * LAB_NS_PER_S + llround((seconds - floor(seconds)) * LAB_NS_PER_S);
    return seconds > 1e8 ? LAB_MONITOR_TIME_WALL : LAB_MONITOR_TIME_RELATIVE;
}

/* As digits, since a double holds the nanoseconds of 1.7e9 s only to 200. */
static enum lab_monitor_time of_digits(const char *text, int64_t *ret_ns) {
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || errno)
        return LAB_MONITOR_TIME_NONE;
    enum lab_monitor_time kind = of_number(number, ret_ns);
    if (kind != LAB_MONITOR_TIME_NONE && number >= 0 && number < 1e11 &&
        !text[strspn(text, "0123456789.")]) {
        long long seconds = strtoll(text, &end, 10);
        const char *at = end;
        *ret_ns = seconds * LAB_NS_PER_S + read_fraction(&at);
    }
    return kind;
}

enum lab_monitor_time lab_monitor_parse_time(const char *text, int64_t *ret_ns) {
    while (isspace((unsigned char)*text))
        text++;
    if (!*text)
        return LAB_MONITOR_TIME_NONE;
    return parse_iso(text, ret_ns) ? LAB_MONITOR_TIME_WALL : of_digits(text, ret_ns);
}

enum lab_monitor_time lab_monitor_value_time(const struct lab_value *value, int64_t *ret_ns) {
    if (value && value->type == LAB_VALUE_STRING)
        return lab_monitor_parse_time(value->string, ret_ns);
    if (value && value->type == LAB_VALUE_INT)
        return of_number((double)value->integer, ret_ns);
    if (value && value->type == LAB_VALUE_FLOAT)
        return of_number(value->number, ret_ns);
    return LAB_MONITOR_TIME_NONE;
}
