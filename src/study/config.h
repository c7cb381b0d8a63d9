/*
 * config.h: from files and overrides to one tree. Hydra's composition: a primary config with a
 * defaults list, config groups (folders of alternatives), packages, overrides, interpolation.
 *
 * The search path is, from strong to weak: --config-dir, ~/.config/gpulab, the files built into the
 * program. A group's options are the union over the path; a file in front hides its namesake behind.
 */
#ifndef LAB_STUDY_CONFIG_H
#define LAB_STUDY_CONFIG_H

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"
#include "study/override.h"

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

/* "experiment/numa_study.yaml" as the path finds it; `ret_origin` is its file name, or "built-in:…". */
int lab_config_read(const struct lab_config_path *path, const char *name, struct lab_arena *arena,
                    const char **ret_text, size_t *ret_length, const char **ret_origin,
                    struct lab_err *err);

/* The options of a group, ascending, NULL-terminated. An unknown group has none. */
const char *const *lab_config_options(const struct lab_config_path *path, const char *group,
                                      struct lab_arena *arena);

/* --- composing --- */

struct lab_config_choice { /* a row of `--info defaults` */
    const char *group;     /* NULL for the primary config and _self_ */
    const char *option;
    const char *package;
    const char *parent; /* the file that asked for it */
    const char *origin; /* where it was found */
    bool overridden;    /* by a word of the command line */
};

struct lab_config {
    struct lab_value *tree; /* resolved: no interpolation left */
    const struct lab_config_choice *choices;
    int choice_count;
};

/*
 * Composes `primary` ("config") with overrides that hold no sweep. Unknown keys suggest the nearest
 * and `+`; a value that isn't what the key takes is found by the schema (plan.h), not here. A key on a
 * list without an index applies to each element.
 */
int lab_config_compose(const struct lab_config_path *path, const char *primary,
                       const struct lab_override *overrides, int count, struct lab_arena *arena,
                       struct lab_config *ret_config, struct lab_err *err);

/* --- sweeping --- */

/*
 * The jobs of a sweep: the product of all words' values, the last word fastest; zip's columns move
 * together; globs are written out. Jobs are numbered, not stored: 10,000 of them cost nothing.
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

/* The overrides of job `index`, none of which sweeps; `ret_count` of them, in the arena. */
int lab_sweep_job(const struct lab_sweep *sweep, int64_t index, struct lab_arena *arena,
                  struct lab_override **ret_overrides, int *ret_count, struct lab_err *err);

#endif
