/*
 * str.h: a string that grows, and the few operations on text that several stops share.
 */
#pragma once

#include "base/auto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_str {
    char *text; /* always terminated, never NULL after init */
    size_t length;
    size_t capacity;
};

void lab_str_init(struct lab_str *str);
void lab_str_release(struct lab_str *str);
void lab_str_clear(struct lab_str *str);

void lab_str_add(struct lab_str *str, const char *text);
void lab_str_add_bytes(struct lab_str *str, const char *bytes, size_t length);
void lab_str_add_repeat(struct lab_str *str, const char *text, int times);
void lab_str_printf(struct lab_str *str, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool lab_str_equal(const char *a, const char *b); /* NULL equals only NULL */
bool lab_str_starts(const char *text, const char *prefix);
bool lab_str_ends(const char *text, const char *suffix);

/* Columns that UTF-8 text takes on a terminal (every code point counts one, combining marks none).
 */
int lab_str_columns(const char *text);

/*
 * The candidate nearest to `word` by edit distance (insert, delete, change, swap of neighbours), or
 * NULL if none is near enough to be worth suggesting. `candidates` ends with NULL.
 */
const char *lab_str_nearest(const char *word, const char *const *candidates);

/* The length of the longest part from the start that is valid UTF-8; `length` if all of it is. */
size_t lab_str_utf8_prefix(const char *bytes, size_t length);

/*
 * Bytes of the character that text begins with, 1 for a byte that isn't UTF-8; `length` > 0 of them
 * are there. Not printable is what isn't UTF-8 and what steers a terminal: control characters,
 * those of two bytes too, and marks that turn the direction of writing.
 */
size_t lab_str_next(const char *text, size_t length, bool *ret_printable);

/* Puts '?' for what isn't printable, in place: for names that come from elsewhere. */
void lab_str_make_printable(char *text);

/* count / 10^decimals, to the digit: 1500 with 3 decimals is 1.500. */
void lab_str_add_decimal(struct lab_str *str, int64_t count, int decimals);

/* The fewest digits that read back as the same number, always with a point or exponent: 0.1, 1.0,
 * 1e+300; inf, -inf, nan. */
void lab_str_add_double(struct lab_str *str, double value);

/* So many significant digits, and the whole number where that has more: 0.1235, 2925714; no
 * exponent below 1e15. */
void lab_str_add_digits(struct lab_str *str, double value, int digits);

/* "cpu, cuda or sim": joins for a sentence; appends to `str`. */
void lab_str_add_list(struct lab_str *str, const char *const *words, const char *last_joiner);

/* A word as a POSIX shell reads it back: plain where that will do, else in single quotes. Of an
 * assignment quote the value alone: NAME='a b'. */
void lab_str_add_shell(struct lab_str *str, const char *word);

/*
 * "1.5 GB", "1.50 GiB", "12.3 µs": three significant digits and a fitting prefix.
 */
void lab_str_add_bytes_binary(struct lab_str *str, double bytes); /* KiB, MiB, GiB: sizes */
void lab_str_add_time(struct lab_str *str, double seconds);       /* ns, µs, ms, s, min */

/* How long something takes that people wait for. */
enum lab_duration {
    LAB_DURATION_ROUNDED, /* "42 s", "12 min", "30.2 h", "2.5 days" */
    LAB_DURATION_PRECISE, /* "420 ms", "42.0 s", "12.5 min", "30.2 h" */
    LAB_DURATION_PARTS,   /* "4.2 s", "42 s", "12 min 30 s", "30 h 12 min" */
    LAB_DURATION_CLOCK,   /* "0:42", "12:30", "30:12:00" */
};
void lab_str_add_duration(struct lab_str *str, double seconds, enum lab_duration style);
void lab_str_add_si(struct lab_str *str, double value, const char *unit); /* k, M, G, T + unit */
void lab_str_add_rate(struct lab_str *str, double value); /* "83.1", "1946", "38.2k", "1.20M" */
/* A change, as a share: "-12.5%", never "-0.0%"; from tenfold on as a factor, "31.2×". */
#define LAB_CHANGE_FACTOR 9
void lab_str_add_change(struct lab_str *str, double share);
void lab_str_add_factor(struct lab_str *str, double factor); /* "31.2", three digits at least */

/* A time since 1970 as the local clock shows it, in strftime's format; nothing if it has none. */
void lab_str_add_clock(struct lab_str *str, int64_t wall_ns, const char *format);
#define LAB_STR_DATE "%Y-%m-%d %H:%M:%S"

/* For qsort, of texts. */
int lab_str_compare(const void *a, const void *b);
/* Which of the words it is (NULL-terminated; NULL = there are none); -1 = none. */
int lab_str_find(const char *word, const char *const *words);
