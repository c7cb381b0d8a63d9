/*
 * value.h: a tree of values, the one in-between form of everything that is text outside: YAML and
 * JSON files, `key=value` words, option arguments, machine-readable output.
 *
 * Values live in an arena; a map keeps the order in which its keys were added. Every value
 * remembers where it came from (`origin`, line and column, 0 = unknown), so that an error about its
 * *meaning*, found much later, can still point at the place: "conf/experiment/mine.yaml:12: …".
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum lab_value_type {
    LAB_VALUE_NULL,
    LAB_VALUE_BOOL,
    LAB_VALUE_INT,
    LAB_VALUE_FLOAT,
    LAB_VALUE_STRING,
    LAB_VALUE_LIST,
    LAB_VALUE_MAP,
};

struct lab_value {
    enum lab_value_type type;
    bool quoted; /* a string that stood in quotes: never re-read as a number or constant */
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *string;
    };
    /* lists and maps: children in order; a map's child has a key */
    struct lab_value **items;
    const char **keys;
    int count, capacity;
    int *slots, slot_count; /* a large map's index by hash; value.c's own */
    const char *origin;     /* file name, or NULL */
    int line, column;       /* from 1; 0 = unknown */
};

struct lab_value *lab_value_null(struct lab_arena *arena);
struct lab_value *lab_value_bool(struct lab_arena *arena, bool value);
struct lab_value *lab_value_int(struct lab_arena *arena, int64_t value);
struct lab_value *lab_value_float(struct lab_arena *arena, double value);
struct lab_value *lab_value_string(struct lab_arena *arena, const char *text); /* copied */
struct lab_value *lab_value_list(struct lab_arena *arena);
struct lab_value *lab_value_map(struct lab_arena *arena);

/* A list of texts, copied; NULL-terminated, NULL = none. */
struct lab_value *lab_value_strings(struct lab_arena *arena, const char *const *texts);

/* Append to a list; set a key of a map (the last set wins, at the first one's place). */
void lab_value_append(struct lab_arena *arena, struct lab_value *list, struct lab_value *item);
void lab_value_set(struct lab_arena *arena, struct lab_value *map, const char *key,
                   struct lab_value *item);

/* The child with that key, or NULL; also NULL if `map` is NULL or no map. */
struct lab_value *lab_value_get(const struct lab_value *map, const char *key);

/* Typed: what a value holds, or the fallback where it is NULL or of another type. A whole number is
 * a number too; without one, NaN. */
const char *lab_value_as_text(const struct lab_value *value, const char *fallback);
double lab_value_as_number(const struct lab_value *value);
/* The same of a map's child. */
const char *lab_value_get_text(const struct lab_value *map, const char *key, const char *fallback);
int64_t lab_value_get_int(const struct lab_value *map, const char *key, int64_t fallback);
double lab_value_get_number(const struct lab_value *map, const char *key);
bool lab_value_get_bool(const struct lab_value *map, const char *key); /* false likewise */

/* Shorthands for building output: lab_value_set with a fresh scalar. NaN becomes null. */
void lab_value_set_string(struct lab_arena *arena, struct lab_value *map, const char *key,
                          const char *text); /* NULL text becomes null */
void lab_value_set_int(struct lab_arena *arena, struct lab_value *map, const char *key,
                       int64_t value);
void lab_value_set_float(struct lab_arena *arena, struct lab_value *map, const char *key,
                         double value);
void lab_value_set_bool(struct lab_arena *arena, struct lab_value *map, const char *key,
                        bool value);

/* The whole tree anew, in this arena: nothing of the old one is needed any more, its places
 * neither. */
struct lab_value *lab_value_copy(struct lab_arena *arena, const struct lab_value *value);

/* Same types and contents, keys in the same order; NaN equals NaN. Quotes and places don't
 * count. */
bool lab_value_equal(const struct lab_value *a, const struct lab_value *b);

/* Appends "file:line: ", as much of it as is known; nothing for a value without an origin. */
void lab_value_add_place(const struct lab_value *value, struct lab_str *out);

/* Sets a LAB_ERR_USER behind the value's place, if it has one (NULL = none). Always -1. */
int lab_value_err(const struct lab_value *value, struct lab_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *lab_value_type_name(enum lab_value_type type); /* "a list", "a number", … */

/*
 * Reads one value in the grammar that options and `key=value` words share (Hydra's, without
 * sweeps):
 *
 *     3  1_000  .5  1e-3  inf  nan      numbers          null true false     constants, any case
 *     plain words/with - . : etc        strings          'x' "y"             quoted strings
 *     [a,[1,2]]  {a:10,b:{c:1}}         lists, maps      \, \[ \: \\ …        escapes
 *
 * Numbers and constants stand alone: what holds anything else beside them is a string (10abc, 007,
 * 1 2), its inner spaces kept. In unquoted text a backslash is special before \ ( ) [ ] { } : = ,
 * and a space; in quotes only before the quote. `${…}` stays in the string as it is.
 *
 * The empty text is the empty string. On failure the error says at which column (from 1) and what
 * was expected. The value's column fields count from 1 within `text`. (Around sweeps and calls:
 * value_text.h.)
 */
int lab_value_parse(const char *text, struct lab_arena *arena, struct lab_value **ret_value,
                    struct lab_err *err);

/* Appends null, a truth value or a number, as JSON, YAML and that grammar have them; false for all
 * else and for numbers that aren't finite, which each writes in its own way. */
bool lab_value_write_plain(const struct lab_value *value, struct lab_str *out);
/* Writes a value in that grammar, so that parsing it gives the same value back. */
void lab_value_write(const struct lab_value *value, struct lab_str *out);
