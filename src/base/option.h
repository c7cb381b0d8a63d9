/*
 * option.h: options as data. A table of rows says what can be set; from it come the parsing, the
 * bounds, the messages, `--help`, the man page, the shell completion and later the schema of study
 * files. Two kinds of word fill the same kind of table:
 *
 *     --repeat 5   --repeat=5   -r 5   --json          a command's options
 *     depth=4  tensor_shape=[3,224,224]  dtype=bf16     a workload's keys
 *
 * Both take their value through one grammar (lab_value_parse) and land in a struct at the row's
 * offset. Only a command's STRING and CHOICE options take their argument as it is: the shell has
 * read its quotes already, and `--device cpu:0,cpu:1` or a file named `a=b.xml` is plain text.
 *
 *     struct gemm_config { int64_t m, n, k; const char *dtype; };
 *     static const struct lab_option gemm_options[] = {
 *         {"m", LAB_OPTION_INT, offsetof(struct gemm_config, m), .fallback = "1024", .min = 1,
 *          .max = 65536, .help = "rows of the result"},
 *         …
 *         {NULL},
 *     };
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_option_type {                   /* what the value is, and the field at the row's offset */
                       LAB_OPTION_FLAG,  /* bool; --name, --no-name; `name=true` as a key */
                       LAB_OPTION_INT,   /* int64_t */
                       LAB_OPTION_FLOAT, /* double */
                       /* double, seconds; 100ms, 5s, 2min, 1h; plain = seconds */
                       LAB_OPTION_DURATION,
                       /* int64_t, bytes; 64MiB, 1G (binary), 4kB (1000); plain = bytes */
                       LAB_OPTION_SIZE,
                       LAB_OPTION_STRING, /* const char * */
                       LAB_OPTION_CHOICE, /* const char *, one of `choices`, as spelt there */
                       LAB_OPTION_INTS,   /* struct lab_option_ints; [3,224,224] */
                       /* struct lab_value *, any tree, the row's own copy; NULL = none */
                       LAB_OPTION_VALUE,
};

#define LAB_OPTION_INTS_MAX 16

struct lab_option_ints {
    int64_t items[LAB_OPTION_INTS_MAX];
    int count;
};

struct lab_option {
    const char *name; /* NULL ends a table; without the dashes */
    enum lab_option_type type;
    size_t offset;
    const char *fallback; /* default, in the value grammar; NULL = zero, empty, absent */
    double min, max; /* INT, FLOAT, DURATION, SIZE and each of INTS; both 0 = unbounded, max < min =
                        no upper bound. Durations and sizes are never negative */
    const char *const *choices;     /* CHOICE: NULL-terminated */
    const char *const *suggestions; /* STRING: what completes, among others; may be NULL */
    const char *unit;               /* "ms", "MB"; shown in help, not parsed */
    const char *value_name;         /* "N", "FILE"; NULL = a fitting one by type. FILE and DIR
                                       complete to paths */
    const char *help;               /* one sentence, no full stop */
    char letter;                    /* -x; 0 = none. Commands only */
    bool once;    /* given twice on a command line is an error; otherwise the last wins */
    bool repeats; /* STRING: given again, a line is added to it */
    /* It came after studies had been written without it: at its default it is no part of a run's
     * identity, so that those go on. `fallback` is then written as values are printed. */
    bool later;
};

/* The row of that name; NULL = there is none, or no table. */
const struct lab_option *lab_options_find(const struct lab_option *table, const char *name);

/* Sets every row's default. A default that doesn't parse is a bug: it aborts. */
void lab_options_defaults(const struct lab_option *table, void *config, struct lab_arena *arena);

/*
 * Sets one row from text or from a value. The error names the key, what came, and what would be
 * right: "depth=-1: must be 0 to 512"; "unknown key 'dept'; did you mean 'depth'?"; "dtype=fp31:
 * must be fp32, tf32, bf16 or fp16". A value from a file puts "file:line: " before that. `null`
 * makes a STRING, CHOICE or VALUE absent (NULL).
 */
int lab_options_set(const struct lab_option *table, void *config, struct lab_arena *arena,
                    const char *key, const char *text, struct lab_err *err);
int lab_options_set_value(const struct lab_option *table, void *config, struct lab_arena *arena,
                          const char *key, const struct lab_value *value, struct lab_err *err);

/* Splits "key=value" and sets it. A word without '=' is an error. */
int lab_options_set_word(const struct lab_option *table, void *config, struct lab_arena *arena,
                         const char *word, struct lab_err *err);

/* What the row's value has to be, as help and messages say it: "a whole number, 0 to 512". */
void lab_option_describe(const struct lab_option *row, struct lab_str *out);

/* The name of the row's value in help: its own, or one by type ("N", "TIME"); NULL for a flag. */
const char *lab_option_value_name(const struct lab_option *row);

/* The row's present value as a tree, so that a config can be printed, hashed, stored. */
struct lab_value *lab_options_value(const struct lab_option *row, const void *config,
                                    struct lab_arena *arena);
/* All rows as a map. */
struct lab_value *lab_options_to_map(const struct lab_option *table, const void *config,
                                     struct lab_arena *arena);

/*
 * Parses a command line (without the command's name) against several tables that fill one struct
 * (NULL-terminated list: the command's own rows and the shared ones). Words that are no option go
 * to `ret_words`, in order; everything behind "--" goes to `ret_rest` (NULL if there was no "--").
 * Both arrays lie in the arena and end with NULL. Options and words may mix; "-" and a negative
 * number are words. INTS may come without their brackets: --nodes 0,2. With `ends_at_word` the
 * first word stands for a "--" in front of it: it is a program, and the options behind it its own.
 */
int lab_options_parse(const struct lab_option *const *tables, void *config, struct lab_arena *arena,
                      int argc, const char *const *argv, bool ends_at_word, const char ***ret_words,
                      int *ret_count, const char *const **ret_rest, struct lab_err *err);
