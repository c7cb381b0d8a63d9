/*
 * override.h: one word of a `run` command line, read by Hydra's override grammar. Reading knows
 * nothing of any config: it says what the word means; config.h applies it.
 *
 *     a.b=3   +a.b=3   ++a.b=3   ~a.b   ~a.b=3        change, add, add or change, delete
 *     group=option   a/group=x   group@pkg=x          choose a config-group file
 *     list[0].k=v  list.0.k=v  list.k=v               one element, or all of them
 *     k=1,2,3   choice(a,b)   range(0,10,2)           sweeps: several values, with -m
 *     glob(*)  sort(..)  shuffle(.., seed=7)  int(..) float(..) str(..) bool(..)  tag(..)
 *     zip(a=[1,2],b=[x,y])  +zip(..)  ++zip(..)       ours: keys that move together
 *
 * Extensions other than zip: shuffle has a seed, and without one always the same order
 * (LAB_SHUFFLE_SEED); str() and bool() of a range cast its values; an empty range is an error. Of
 * tag()'s tags nothing is kept, since only optimisers read them.
 *
 * Whether `x=y` names a group or a key depends on the config, not on the word.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

enum lab_override_kind {
    LAB_OVERRIDE_CHANGE, /* k=v */
    LAB_OVERRIDE_ADD,    /* +k=v */
    LAB_OVERRIDE_FORCE,  /* ++k=v */
    LAB_OVERRIDE_DELETE, /* ~k, ~k=v */
};

enum lab_sweep_kind {
    LAB_SWEEP_NONE,   /* one value */
    LAB_SWEEP_VALUES, /* choice, range, simple lists, sorted, shuffled, cast: written out */
    LAB_SWEEP_GLOB,   /* options of a group, by pattern: written out by the config */
    LAB_SWEEP_ZIP,    /* several keys; `zip` has them */
};

struct lab_glob {
    const char **include, **exclude; /* NULL-terminated patterns of fnmatch */
};

struct lab_zip_column { /* all columns of a zip are equally long */
    const char *key;
    const char *package;      /* behind '@', or NULL */
    struct lab_value *values; /* a list */
    int column;               /* of the key in the word */
};

struct lab_override {
    const char *text; /* the whole word */
    enum lab_override_kind kind;
    const char *key; /* as written, without sign and package: "a.b[0].c", "a/group"; zip: NULL */
    const char *package; /* behind '@', "" = the whole config; or NULL */
    enum lab_sweep_kind sweep;
    struct lab_value *value;        /* SWEEP_NONE: the value; NULL for `~k` */
    struct lab_value *values;       /* SWEEP_VALUES: a list of at least one */
    struct lab_glob glob;           /* SWEEP_GLOB */
    struct lab_zip_column *columns; /* SWEEP_ZIP */
    int column_count;
    int value_column; /* where the value starts in `text`, from 1; 0 for `~k` */
};

/* Longest sweep of one word; more is an error, not a wait. */
#define LAB_SWEEP_MAX 1000000

/* shuffle(..) without a seed uses this: two readings of one word are the same. */
#define LAB_SHUFFLE_SEED 42

/*
 * Reads one word. Errors are LAB_ERR_USER, name the column and what was expected, and suggest the
 * remedy: "experiment.test.batch_size=a=b: column 29: '=' needs quotes or a backslash here".
 * Values' columns count from 1 in `text`, which is copied. `ret_override` is untouched on failure.
 */
int lab_override_parse(const char *text, struct lab_arena *arena, struct lab_override *ret_override,
                       struct lab_err *err);

/* How many values the word stands for: 1 without a sweep, -1 for a glob. */
int lab_override_count(const struct lab_override *override);

/* Value `index` of a sweep (not a glob, not a zip). */
struct lab_value *lab_override_value(const struct lab_override *override, int index);

/*
 * Splits a key into its parts: "a.b[0].c" → a, b, 0, c; "a/group" → a, group. NULL-terminated, in
 * the arena. A package isn't part of a key.
 */
int lab_key_split(const char *key, struct lab_arena *arena, const char ***ret_parts,
                  struct lab_err *err);
