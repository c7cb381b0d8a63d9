/*
 * config.h: from files and overrides to one tree. Hydra's composition: a primary config with a
 * defaults list, config groups (folders of alternatives), packages, overrides, interpolation.
 *
 * The search path is, from strong to weak: --config-dir, ~/.config/gpulab, the files built into the
 * program. A group's options are the union over the path; a file in front hides its namesake
 * behind.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"
#include "compose/override.h"

/* --- where files come from --- */

struct lab_config_file { /* built in: generated from conf/ */
    const char *path;    /* "experiment/numa_study.yaml" */
    const char *text;
    size_t length;
};
extern const struct lab_config_file lab_config_files[]; /* path NULL ends */

struct lab_config_path {        /* folders in front of the built-in files, strongest first */
    const char *const *folders; /* NULL-terminated; one that doesn't exist is an error */
};

/* What a config file may hold; more is an error within a second, not a wait. */
#define LAB_CONFIG_MAX_BYTES (4 << 20)
#define LAB_CONFIG_MAX_NODES 200000 /* behind aliases and interpolations too */

/*
 * "experiment/numa_study.yaml" as the path finds it; `ret_origin` is its file name, or
 * "built-in:…". A folder, binary or oversized file is an error that says so.
 */
int lab_config_read(const struct lab_config_path *path, const char *name, struct lab_arena *arena,
                    const char **ret_text, size_t *ret_length, const char **ret_origin,
                    struct lab_err *err);

/*
 * The options of a group, ascending, NULL-terminated. An unknown group has none. A file whose name
 * begins with '_' is there for others to build on and isn't listed.
 */
const char *const *lab_config_options(const struct lab_config_path *path, const char *group,
                                      struct lab_arena *arena);

/* The groups directly below one, likewise: "ddp" and "matrix" of "experiment". */
const char *const *lab_config_groups(const struct lab_config_path *path, const char *group,
                                     struct lab_arena *arena);

/* The built-in study whose report opens with this analysis, by its `answers`: "numa_study" for
 * "numa". The first by name; NULL = there is none. */
const char *lab_config_study_for(const char *analysis, struct lab_arena *arena);

/* --- composing --- */

struct lab_config_choice { /* a row of `--info defaults` */
    const char *group;     /* "experiment"; NULL for the primary config */
    const char *option;    /* "numa_study" */
    const char *package;   /* "experiment"; "" is the root */
    const char *parent;    /* the config that asked for it; NULL for the primary config */
    const char *origin;    /* where it was found: a file name, or "built-in:…" */
    bool overridden;       /* by a word of the command line */
};

struct lab_config {
    struct lab_value *tree; /* resolved: no interpolation left */
    /* the configs that were merged, in that order */
    const struct lab_config_choice *choices;
    int choice_count;
};

/*
 * A defaults list names the configs that a config is merged with, in order, the last wins:
 *
 *     defaults:
 *       - _base                     a config beside this one
 *       - /machine/big              one by its path from the root
 *       - db: mysql                 option mysql of the group db, below this config's own group
 *       - db@backup: [a, b]         two options, under the key `backup`
 *       - db: null                  nothing, until somebody chooses
 *       - optional db: local        nothing if there is no such file
 *       - tuned: ${db}_${server}    by choices that this list or a later one makes
 *       - override /db: sqlite      changes a choice that some other list makes
 *       - _self_                    this config's own keys; last if not named
 *
 * A group is chosen once for each package: a second choice is an error, not an override.
 *
 * A config lands under its group's name (`experiment/x.yaml` under `experiment`), unless `@package`
 * behind the group or a first line "# @package name" says otherwise; `_global_` is the root. Words
 * of the command line choose over the lists: `db=x`, `db@backup=x`, `+db=x` (in the place of the
 * choice that the primary config makes, or behind its list), `~db`.
 *
 * Values: `k=v` changes what is there; `+k=v` adds; `++k=v` does either; `~k` deletes. Maps are
 * merged, lists are replaced whole. `list.0=v` and `list[0]=v` address an element; a key behind a
 * list without an index addresses every element. `repeat=n`, `runs=n` and `experiment.runs=n` mean
 * `experiment.repeat=n`.
 *
 * Interpolation: `${a.b}` from the root, `${.x}` beside the value, `${..x}` a level above;
 * `${oc.env:NAME,default}`, `${oc.select:key,default}`, `${oc.decode:text}`, `${now:%Y-%m-%d}`;
 * they nest. A value that is nothing but one interpolation takes over what it refers to, with its
 * type. `\${` is no interpolation.
 *
 * What a value holds isn't judged here (`???`, a value still to be given, included), but by the
 * schema (plan.h): every value knows its file and line, or has the command line's word as its
 * origin.
 */

/*
 * A composer keeps what it has read and composed, so that job after job of a sweep costs only what
 * differs. It lives in the arena and refers to `path`; use it from one thread at a time.
 */
struct lab_composer;
int lab_composer_make(const struct lab_config_path *path, const char *primary,
                      struct lab_arena *arena, struct lab_composer **ret_composer,
                      struct lab_err *err);

/*
 * Composes the primary config with overrides that hold no sweep. Unknown keys suggest the nearest
 * one and `+`. The tree shares what it can with other jobs' trees, so it is read, never changed; it
 * lives as long as both the composer's arena and `arena`.
 */
int lab_composer_compose(struct lab_composer *composer, const struct lab_override *overrides,
                         int count, struct lab_arena *arena, struct lab_config *ret_config,
                         struct lab_err *err);

/* The same once, without a composer to keep. */
int lab_config_compose(const struct lab_config_path *path, const char *primary,
                       const struct lab_override *overrides, int count, struct lab_arena *arena,
                       struct lab_config *ret_config, struct lab_err *err);

/* --- sweeping --- */

/*
 * The jobs of a sweep: the product of all words' values, the last word fastest; zip's columns move
 * together; globs are written out. Jobs are numbered, not stored: 10,000 of them cost nothing. More
 * than LAB_SWEEP_MAX jobs are an error.
 */
struct lab_sweep {
    const struct lab_override *words;
    int word_count;
    int64_t job_count;
};

/* Without `multirun`, a word that sweeps is an error that names the three remedies. */
int lab_sweep_init(const struct lab_config_path *path, struct lab_override *words, int count,
                   bool multirun, struct lab_arena *arena, struct lab_sweep *ret_sweep,
                   struct lab_err *err);

/*
 * The overrides of job `index`, none of which sweeps; `ret_count` of them, in the arena. Their
 * texts are the words that would have asked for this job alone.
 */
int lab_sweep_job(const struct lab_sweep *sweep, int64_t index, struct lab_arena *arena,
                  struct lab_override **ret_overrides, int *ret_count, struct lab_err *err);
