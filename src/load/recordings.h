/*
 * recordings.h: which recordings the words of a command line mean, and whose they are.
 *
 * A word is a file, a folder of them, a study's folder or name. What is written before it,
 * LABEL=PATH, labels all of its recordings. Otherwise, where there is one word only, files directly
 * in a folder are labelled by their names, those in folders below by the folders', runs of a study
 * by what they did; where there are several words, each labels its own.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/recording.h"
#include "model/run.h"

struct lab_recording_source {
    const char *path;
    const char *name;  /* unique; the file's without its ending, or its path */
    const char *label; /* NULL = of a study, by run */
    bool study;        /* path is its database */
    bool named;        /* by a word, not found in a folder */
};

/*
 * Files that lie beside each other and differ in their endings alone tell of the same: the
 * recording is taken, or else the file with all GPUs. What is no path is the newest study of that
 * name, as `gpulab list` shows it. A folder without anything that could be one is LAB_ERR_USER. The
 * sources are in the arena.
 */
int lab_recordings_find(const char *const *words, int count, struct lab_arena *arena,
                        struct lab_recording_source **ret_sources, int *ret_count,
                        struct lab_err *err);

/* Splits "before=runs/a.db": the label, or NULL where the word is a path as it is; `ret_path` is
 * the rest. */
const char *lab_recordings_split(const char *word, struct lab_arena *arena, const char **ret_path);

/* "adam" of "adam_run2", "adam_20260115_103000", "adam_multi_gpu": what repetitions have in
 * common. */
const char *lab_recordings_label(const char *name, struct lab_arena *arena);

/*
 * Reads them all into the arena. What a folder holds beside recordings is left out, and said to the
 * user in one note; what was named has to be one. Of a study, each run that is done is a recording;
 * runs that aren't valid are left out unless none is. `ret_status` is set where something could not
 * be read.
 */
int lab_recordings_read(const struct lab_recording_source *sources, int count,
                        struct lab_arena *arena, struct lab_labelled_recording **ret_recordings,
                        int *ret_count, int *ret_status, struct lab_err *err);

/* A copy in the arena without the GPUs that the run had no part in, which would be idle ones of its
 * balance, and without events and processes. Samples are shared with `recording`. */
const struct lab_recording *lab_recordings_of_run(const struct lab_recording *recording,
                                                  const struct lab_run *run,
                                                  struct lab_arena *arena);
