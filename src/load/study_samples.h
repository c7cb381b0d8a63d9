/*
 * study_samples.h: what was sampled during each run of a study. The store is read once for all runs
 * of an epoch, and each run gets its part of the same arrays: a study of 10,000 short runs takes
 * the memory of its samples, not that of 10,000 recordings.
 */
#pragma once

#include "model/recording.h"
#include "model/run.h"
#include "store/store.h"

struct lab_study_samples {
    struct lab_store *store; /* open while samples are asked for */
    struct lab_arena *arena;
    bool without_processes;
    struct lab_study_samples_epoch *epochs;
    int epoch_count;
};

/* Of runs that are done. Reads nothing yet. */
struct lab_study_samples lab_study_samples_of(struct lab_store *store, const struct lab_run *runs,
                                              int count, bool without_processes,
                                              struct lab_arena *arena);

/* From the run's start to its end; without any tick where nothing was sampled. The run is one of
 * those given before. NULL = it can't be read. */
const struct lab_recording *lab_study_samples_read(struct lab_study_samples *samples,
                                                   const struct lab_run *run, struct lab_err *err);
