/*
 * value_text.h: the value grammar (value.h) element by element, for grammars around it: sweeps and
 * function calls. The caller sees to what stands between the elements, by looking at text[at] and
 * moving `at` on.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"

#include <stddef.h>

struct lab_value_text {
    const char *text;
    size_t at; /* the next byte */
    struct lab_arena *arena;
    struct lab_err *err;
    /*
     * Where an element inside of brackets begins as a call, `name(`, this reads it up to behind its
     * ')'. NULL: there are neither calls nor sweeps, and what looks like one is an error that says
     * where they are understood.
     */
    int (*call)(struct lab_value_text *text, struct lab_value **ret_value);

    /* value_text.c's own */
    const char *stops; /* characters that end unquoted text */
    size_t column_at;  /* the last place whose column was asked for, and its column */
    int column;
    int depth;
    struct lab_str scratch;
};

void lab_value_text_init(struct lab_value_text *text, const char *bytes, struct lab_arena *arena,
                         struct lab_err *err);
void lab_value_text_release(struct lab_value_text *text); /* what was read stays */

/*
 * Reads one element and the spaces around it, up to the end of the text or one of `stops`; anything
 * else there is an error. Calls are read only inside of brackets: where an element may be a call
 * itself, ask first.
 */
int lab_value_text_read(struct lab_value_text *text, const char *stops,
                        struct lab_value **ret_value);

/* The length of the name if a call begins at `at`, 0 otherwise; spaces may stand before its '('. */
size_t lab_value_text_at_call(const struct lab_value_text *text);

void lab_value_text_skip_spaces(struct lab_value_text *text);

/* The column of byte `at`: code points, from 1. */
int lab_value_text_column(struct lab_value_text *text, size_t at);

/* Sets a LAB_ERR_USER that begins with byte `at`'s column; always returns -1. */
int lab_value_text_fail(struct lab_value_text *text, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
