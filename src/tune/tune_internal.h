/*
 * tune_internal.h: what the files of the tuner share.
 *
 *   tune.c          the whole, its budget and progress
 *   tune_trial.c    which configurations there are, and which of them are right
 *   tune_race.c     timing them side by side, round by round
 *   tune_verdict.c  who has won
 */
#pragma once

#include "device/tunable.h"
#include "measure/measure.h"
#include "tune/tune.h"

struct tuner;
struct heat;

struct entrant { /* a configuration in the race */
    struct lab_trial *trial;
    struct lab_tuning tuning;
};

struct flusher { /* a fill of more memory than the caches hold */
    struct lab_stream *stream;
    struct lab_buffer memory;
    struct lab_launch launch;
};

enum tune_phase { TUNE_VERIFY, TUNE_NARROW, TUNE_FINALS, TUNE_PHASES };

struct tuner {
    const struct lab_tune_plan *plan;
    struct lab_arena *arena;
    struct lab_tuning_result *result;
    struct lab_tunable_place place;
    const struct lab_tunable *tunable;
    struct lab_launch launch; /* without data */
    struct lab_session *session;
    struct entrant *entrants; /* one for each trial, the default first */
    int count;
    int *order; /* in which they are verified; the default first */
    int order_count;
    struct flusher flusher;
    const struct heat *heat; /* the race at hand (tune_race.c) */
    int64_t start_ns;
    double confidence;
    enum tune_phase phase;
    double fraction;
    bool stopped;           /* by the user */
    double yardstick_min_s; /* the default's own medians, rung by rung */
    double yardstick_max_s;
    const char *warnings[8];
    int warning_count;
};

double tune_elapsed_s(const struct tuner *tuner);
void tune_keep(const struct tuner *tuner, const struct lab_trial *trial);
/* Tells where it stands: `share` of the phase is done. True = the user wants it to end. */
bool tune_tell(struct tuner *tuner, int done, int total, double share);
void tune_warn(struct tuner *tuner, const char *sentence);

/* --- tune_trial.c --- */

/* All legal ones, with what is known of them. */
int tune_list(struct tuner *tuner, struct lab_err *err);
int tune_verify(struct tuner *tuner, struct lab_err *err);
/*
 * It failed, and `why`: it is out, with that reason, unless the device has stopped working: then
 * that is the error. One that has worked before tells.
 */
int tune_drop(struct tuner *tuner, struct entrant *entrant, const struct lab_err *why,
              struct lab_err *err);
/* Nobody is left: always -1, and the first reason stands for all. */
int tune_refuse(const struct tuner *tuner, struct lab_err *err);

/* --- tune_race.c --- */

int tune_flusher_open(struct tuner *tuner, struct lab_err *err);
int tune_flush(void *tuner, struct lab_err *err);
bool tune_race_progress(void *tuner, const struct lab_measure_progress *now);
void tune_flusher_close(struct flusher *flusher);

/* Those still in it: right, and not left behind. Returns how many; `ret` has room for all. */
int tune_standing(const struct tuner *tuner, struct entrant **ret);

/* Until few are left. Leaves their medians in the trials. */
int tune_narrow(struct tuner *tuner, struct lab_err *err);

/* The finalists side by side; measurements are in the arena, NULL where it never came to that. */
struct finals {
    struct entrant **entrants;
    struct lab_measurement *measurements;
    int count;
};
int tune_finals(struct tuner *tuner, struct finals *ret_finals, struct lab_err *err);

/* --- tune_verdict.c --- */

void tune_judge(struct tuner *tuner, const struct finals *finals);
