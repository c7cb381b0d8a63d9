/*
 * model/recording.h: a recording as it lies in memory: for each entity its columns as arrays over
 * time. Read from a recording, a study or the sources' JSON and CSV files (src/store); analyses,
 * screens and exports ask nothing else.
 */
#pragma once

#include "model/energy.h"
#include "model/sample.h"

/* A stretch between boots or jumps of the wall clock: wall = time_ns + offset. */
struct lab_recording_epoch {
    int64_t from_ns; /* of CLOCK_MONOTONIC, the first time that it holds for */
    int64_t offset_ns;
    const char *host, *boot_id; /* may be "" */
};

struct lab_track { /* one entity over time */
    struct lab_entity entity;
    size_t count;      /* ticks */
    int64_t *times_ns; /* ascending */
    /* by column, then by tick; a column that was not requested is NULL in both */
    int64_t **values;
    uint8_t **valid; /* 1 = there is a value */
};

/* The text of a mark on a GPU: a process of the recorded command uses it, from then on. */
#define LAB_RECORDING_USED "used by the command"

struct lab_recording {
    const char *path;  /* where it came from */
    const char *label; /* what it is called beside others: the file's name without its ending */
    const char *maker; /* "gpulab 0.1.0"; "" = unknown */
    struct lab_track *tracks;
    int track_count;
    struct lab_sample_event *events; /* ascending by time; entity = index into tracks */
    size_t event_count;
    struct lab_process_list *processes; /* ascending by time; likewise */
    size_t process_count;
    struct lab_recording_epoch *epochs; /* at least one, unless there is no tick */
    int epoch_count;
    int64_t interval_ns; /* as asked for; 0 = unknown */
    bool simulated;      /* some entity is */
    /* what could not be read, in words for the user; NULL-terminated, NULL = all is there */
    const char **missing;
};

/* Wall-clock ns since 1970 of a time in the recording. */
int64_t lab_recording_wall_ns(const struct lab_recording *recording, int64_t time_ns);

/* A column's values in the metric's unit, NaN where there is none; `ret` has track->count places.
 * false = the track has no such column. */
bool lab_track_read(const struct lab_track *track, enum lab_metric_id metric, int instance,
                    double *ret);

/*
 * How much a counter grew from the last reading at or before `from_ns` (or else the first one
 * after) to the first at or after `until_ns` (or else the last one before), in the metric's unit. A
 * counter that fell started anew: what came before counts in full. NaN = fewer than two readings.
 */
double lab_track_growth(const struct lab_track *track, enum lab_metric_id metric, int64_t from_ns,
                        int64_t until_ns);

/* What a gauge was between two times: of the readings in between. */
struct lab_track_figures {
    size_t count; /* readings; 0 = none, and NaN below */
    double mean, min, max;
};
struct lab_track_figures lab_track_between(const struct lab_track *track, enum lab_metric_id metric,
                                           int64_t from_ns, int64_t until_ns);

/* What was used between two times, as far as the track's own readings tell (model/energy.h). The
 * interval is the recording's, 0 = unknown: from it follows what is a gap. */
struct lab_energy lab_track_energy(const struct lab_track *track, int64_t interval_ns,
                                   int64_t from_ns, int64_t until_ns);

/* Seconds in which a bit of a FLAGS metric was set, each reading held until the next, but not over
 * a gap. */
double lab_track_flag_s(const struct lab_track *track, enum lab_metric_id metric, uint64_t bit,
                        int64_t from_ns, int64_t until_ns);

/* What lies between two times, both included, with all of its tracks; samples, events and processes
 * are shared with `recording`. */
const struct lab_recording *lab_recording_between(const struct lab_recording *recording,
                                                  int64_t from_ns, int64_t until_ns,
                                                  struct lab_arena *arena);
bool lab_recording_has_ticks(const struct lab_recording *recording);

/* The track of GPU `index`, or NULL. */
const struct lab_track *lab_recording_gpu(const struct lab_recording *recording, int index);

struct lab_labelled_recording {
    const char *name;  /* of its file, unique in the input */
    const char *label; /* whose it is: recordings of one label belong together */
    const struct lab_recording *recording;
    double rate;           /* of the study's run that it belongs to; NaN = none */
    const char *rate_unit; /* "iterations/s"; NULL = samples/s */
};
