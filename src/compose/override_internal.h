/*
 * override_internal.h: what the files that read overrides share. Nobody else includes it.
 *
 *     override.c        a whole word: sign, key, value or sweep; zip
 *     override_key.c    keys
 *     override_call.c   functions: their arguments, and what each makes of them
 *     override_range.c  range(), counted in decimal
 *     override_cast.c   int() float() str() bool()
 *     override_order.c  sort() and shuffle()
 */
#pragma once

#include "base/value_text.h"
#include "compose/override.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word under way. The text comes first: the hook that reads calls inside of brackets gets it. */
struct lab_override_reader {
    struct lab_value_text text;
    int call_depth;
};

/*
 * A range that isn't written out yet: value i is (first + i·stride) · 10^exponent. A short word can
 * stand for a million values, so that they are written only where nothing can be wrong any more.
 */
struct lab_override_range {
    const struct lab_value *start, *stop, *step; /* as given, whole or fractional numbers */
    __int128 first, stride;
    int exponent, count;
    bool whole;
};

enum lab_override_result_kind {
    LAB_RESULT_ELEMENT, /* one value */
    LAB_RESULT_VALUES,  /* sweeps from here on: values written out */
    LAB_RESULT_RANGE,
    LAB_RESULT_GLOB,
};

struct lab_override_result {
    enum lab_override_result_kind kind;
    size_t at;               /* where it begins in the word */
    struct lab_value *value; /* ELEMENT; VALUES: the list of them */
    struct lab_override_range *range;
    struct lab_glob glob;
};

/* --- override_key.c --- */

/* Reads "a.b[0]", "a/group" or "group@pkg" up to '=' or the end; anything else is an error. */
int lab_override_read_key(struct lab_value_text *text, const char **ret_key,
                          const char **ret_package);

/* --- override_call.c --- */

/* An element or a call, with the spaces around it, up to the end or one of `stops`. */
int lab_override_read(struct lab_override_reader *reader, const char *stops,
                      struct lab_override_result *ret_result);

/* lab_value_text's hook: a call inside of brackets, which can't be a sweep. */
int lab_override_read_inner(struct lab_value_text *text, struct lab_value **ret_value);

/* Whether a function of that name exists. */
bool lab_override_is_function(const char *name, size_t length);

/* How many values a sweep has that is no glob; and those values, written out. */
int lab_override_result_count(const struct lab_override_result *result);
struct lab_value *lab_override_result_values(const struct lab_override_result *result,
                                             struct lab_arena *arena);

/* --- override_range.c --- */

/* Works out the other fields from start, stop and step; `at` is where an error points. */
int lab_override_range_count(struct lab_value_text *text, size_t at,
                             struct lab_override_range *range);
struct lab_value *lab_override_range_write(const struct lab_override_range *range,
                                           struct lab_arena *arena);

/* --- override_cast.c --- */

enum lab_override_cast { LAB_CAST_INT, LAB_CAST_FLOAT, LAB_CAST_STR, LAB_CAST_BOOL };

/* Casts in place: a value with all that is in it; a sweep's values, a range by its ends. */
int lab_override_cast(struct lab_value_text *text, size_t at, enum lab_override_cast cast,
                      struct lab_override_result *result);

/* --- override_order.c --- */

/* Stable; in place. Numbers and truth values can be compared, or text; not the two together. */
int lab_override_sort(struct lab_value_text *text, size_t at, struct lab_value *list, bool reverse);
void lab_override_shuffle(struct lab_value *list, uint64_t seed);
