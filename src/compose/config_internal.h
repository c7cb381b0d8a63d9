/*
 * config_internal.h: what the files of config.h share. Nobody else includes it.
 *
 * Trees are never changed once they are built: merging and overriding copy the containers on the
 * way to what differs and share the rest. A value that interpolates is the exception to sharing: it
 * means something by its place, so that it has exactly one.
 */
#pragma once

#include "compose/config.h"

#include <string.h>

#define LAB_CONFIG_MAX_DEPTH 64 /* levels of keys, and of configs that ask for each other */

struct lab_config_source { /* a config file, read and taken apart */
    const char *name;      /* "experiment/numa_study" */
    const char *origin;
    const char *package;        /* of its "# @package" line, or NULL */
    struct lab_value *defaults; /* a list, or NULL */
    struct lab_value *content;  /* a map, without the defaults list */
};

struct lab_config_item { /* a config to merge */
    struct lab_config_choice choice;
    const struct lab_config_source *source;
};

struct lab_config_base { /* what a set of group choices comes to, before values are overridden */
    struct lab_value *tree;
    bool interpolates;
    const struct lab_config_choice *choices;
    int choice_count;
};

struct lab_composer {
    struct lab_arena *arena;
    const struct lab_config_path *path;
    const char *primary;
    int64_t wall_s; /* what ${now:…} shows: one time for all jobs */
    /* by name: the position in the array beside it */
    struct lab_value *source_index;
    struct lab_config_source **sources;
    int source_count;
    struct lab_value *base_index;
    struct lab_config_base **bases;
    int base_count, base_capacity;
    struct lab_value *groups; /* name → whether there is such a group */
};

/* --- whose fault: inline, so that static analysis sees that they return -1 --- */

#define LAB_CONFIG_WORD_SHOWN 160 /* characters of a word in an error */

/* Puts "file:line: " of a value, or the word that it came from, before the error's text. */
static inline int lab_config_blame(const struct lab_value *value, struct lab_err *err) {
    if (value->origin && value->line > 0)
        lab_err_context(err, "%s:%d", value->origin, value->line);
    else if (value->origin)
        lab_err_context(err, "%.*s", LAB_CONFIG_WORD_SHOWN, value->origin);
    return -1;
}

static inline int lab_config_blame_word(const struct lab_override *word, struct lab_err *err) {
    bool whole = strlen(word->text) <= LAB_CONFIG_WORD_SHOWN;
    return lab_err_context(err, "%.*s%s", LAB_CONFIG_WORD_SHOWN, word->text, whole ? "" : "…");
}

/* --- config_path.c: files --- */

int lab_config_check_path(const struct lab_config_path *path, struct lab_err *err);
bool lab_config_has_file(const struct lab_config_path *path, const char *name);
bool lab_config_has_group(const struct lab_config_path *path, const char *group);

/* --- config_source.c: files, taken apart and kept --- */

int lab_config_source(struct lab_composer *composer, const char *name,
                      const struct lab_config_source **ret_source, struct lab_err *err);
bool lab_composer_has_group(struct lab_composer *composer, const char *group);

/* --- config_defaults.c: which configs, in which order --- */

/* `words` are those that choose among a group's options. */
int lab_config_expand(struct lab_composer *composer, const struct lab_override *const *words,
                      int word_count, struct lab_config_item **ret_items, int *ret_count,
                      struct lab_err *err);

/* --- config_tree.c: trees that share --- */

/* Whether some text in the tree holds "${". */
bool lab_config_interpolates(const struct lab_value *value);
/* The value itself, or a copy if it interpolates. */
struct lab_value *lab_config_adopt(struct lab_arena *arena, struct lab_value *value);
/* Maps key by key, anything else replaced. `under` may be NULL. */
struct lab_value *lab_config_merge(struct lab_arena *arena, struct lab_value *under,
                                   struct lab_value *over);
/* {a: {b: value}} for the package "a.b". */
struct lab_value *lab_config_wrap(struct lab_arena *arena, const char *package,
                                  struct lab_value *value);
/* A copy of a list or map with one child replaced, one key more, one child less. */
struct lab_value *lab_config_with(struct lab_arena *arena, const struct lab_value *container,
                                  int at, struct lab_value *child);
struct lab_value *lab_config_with_key(struct lab_arena *arena, const struct lab_value *map,
                                      const char *key, struct lab_value *child);
struct lab_value *lab_config_without(struct lab_arena *arena, const struct lab_value *container,
                                     int at);
/* The position of a map's key, or -1. */
int lab_config_find(const struct lab_value *map, const char *key);
/* The index that a key's part means: -1 if it is no number. */
int lab_config_index(const char *part);
/* "; did you mean 'x'?" for the nearest key of a map, or nothing. */
void lab_config_suggest(const struct lab_value *map, const char *word, struct lab_str *out);

/* --- config_apply.c: values --- */

int lab_config_apply(struct lab_value *tree, const struct lab_override *word,
                     struct lab_arena *arena, struct lab_value **ret_tree, struct lab_err *err);
/* Makes the word the origin of its values, so that errors found later can name it. */
void lab_config_mark(struct lab_value *value, const char *word);

/* --- interpolation.c --- */

int lab_config_resolve(struct lab_value *tree, int64_t wall_s, struct lab_arena *arena,
                       struct lab_value **ret_tree, struct lab_err *err);
