/*
 * run_study.h: what `gpulab run` and its relatives read from a command line: where configs
 * come from, and which study is meant.
 */
#pragma once

#include "compose/config.h"
#include "model/machine.h"
#include "run/history.h"

/* --config-dir (may be NULL), the user's own folder if there is one, then the built-in files. */
struct lab_config_path lab_run_path(const char *config_dir, struct lab_arena *arena);

/*
 * Words into overrides: a word without '=' names the study, so `numa_study` becomes
 * `experiment=numa_study`. `device` (may be NULL) stands in front, as device=….
 */
int lab_run_words(const struct lab_config_path *path, const char *device, const char *const *words,
                  int count, struct lab_arena *arena, struct lab_override **ret_overrides,
                  int *ret_count, struct lab_err *err);

/* Whether a study of that name can be run. */
bool lab_run_is_study(const struct lab_config_path *path, const char *name,
                      struct lab_arena *arena);
/* The presets of studies, groups below experiment/, by group and name: "ddp=4gpus". */
const char *const *lab_run_presets(const struct lab_config_path *path, struct lab_arena *arena);
/*
 * A study's or preset's file as it was found, and its name in `ret_origin`; unknown ones name the
 * nearest. A preset is named as a word chooses it, "experiment/ddp=4gpus", by its path, or by as
 * much of the end as only it has: "4gpus".
 */
int lab_run_read_study(const struct lab_config_path *path, const char *name,
                       struct lab_arena *arena, const char **ret_text, size_t *ret_length,
                       const char **ret_origin, struct lab_err *err);

/* The comment at the head of a file, without its marks; one line for each of its lines. */
const char *lab_run_comment(const char *text, struct lab_arena *arena);
/* Its first sentence in one line. */
const char *lab_run_summary(const char *text, struct lab_arena *arena);

/* What earlier studies on this machine took. */
struct lab_history *lab_run_history(const struct lab_machine *machine);

/* "gpulab run …" as it can be pasted into a shell; `words` ends with NULL. */
const char *lab_run_command(const char *const *words, struct lab_arena *arena);
