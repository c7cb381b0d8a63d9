/* study_info.h: what is known of a study on disk: who it is, its runs, how far it is. */
#pragma once

#include "model/program.h"
#include "model/run.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_study_info_metric { /* the last value that a run said */
    const char *run;           /* id */
    const char *name, *unit;
    int rank; /* -1 = of the whole run */
    double value;
};

struct lab_study_info {
    const char *name, *option; /* "numa_locality_study", of its folder; "numa_study" */
    const char *title;         /* "my_sweep (numa_study)", where the user named it; else NULL */
    const char *folder;        /* as the user would write it */
    const char *path;          /* the same, absolute: for commands on paper; NULL = unknown */
    const char *command;       /* which goes on with it: "gpulab run numa_study"; "" = unknown */
    const char *start_folder;  /* where that has to be typed; NULL = here, or anywhere */
    const char *machine;       /* one line */
    const char *names;         /* what numbers in its models' names are, sentences; "" = nothing */
    int gpu_count, node_count; /* of the machine; 0 = unknown */
    const char *version;       /* of gpulab */
    int64_t created_wall_ns;
    uint64_t seed; /* of the runs' order and data */
    bool seed_known;
    const struct lab_run *runs; /* all, in their order */
    int run_count;
    /* LAB_RUN_STATE_COUNT of them; of lists of studies alone, where the runs aren't read. Else
     * NULL */
    const int *state_counts;
    int64_t point_count; /* 0 = unknown */
    bool simulated;      /* some device of it is: the word stands in every heading */
    bool running;        /* a runner works on it now */
    const char *holder;  /* who: "process 4711 on node7 (…)"; "" = nobody */
    const struct lab_run_progress *progress; /* of runs under way */
    int progress_count;
    const struct lab_program *programs; /* of runs under way that report metrics */
    int program_count;
    double left_s;    /* NaN = unknown */
    int left_unknown; /* runs that are guessed, in left_s by what others took */
    const char
        *objective; /* of programs: what settings are chosen by, "reward:max"; NULL = unset */
    const struct lab_study_info_metric *metrics; /* run by run; for the reports alone */
    int metric_count;
    const char *report; /* its main file; NULL = report/report.md of the folder; "" = none */
};

/* The name that people type and read. */
static inline const char *lab_study_info_title(const struct lab_study_info *study) {
    return study->title                      ? study->title
           : study->option && *study->option ? study->option
                                             : study->name;
}
