/*
 * timing_file.h: what an auto-tuner left of one kernel on one device, as JSON: kernel_name, gpu,
 * best_config, best_time_ms, all_benchmark_times, detailed_timings. Field by field as `gpulab tune
 * --json` writes it (docs/TUNING.md), and with less: any of them may be missing, timings may be
 * bare numbers.
 */
#ifndef LAB_STORE_FOREIGN_TIMING_FILE_H
#define LAB_STORE_FOREIGN_TIMING_FILE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"

struct lab_timing {
    int64_t start_ns;   /* since 1970; -1 = it has no time stamp */
    double time_s;      /* > 0 */
    const char *config; /* "tile=64,warps=4"; "" = of the best one, or nobody knows */
};

struct lab_timing_file {
    const char *kernel;                  /* "" = it doesn't say */
    const char *gpu;                     /* "cuda:1", or a number as text; "" likewise */
    const struct lab_value *best_config; /* a map; NULL = it doesn't say */
    const char *best_text;               /* the same as a timing has it; "" likewise */
    double best_time_s;                  /* NaN likewise */
    struct lab_timing *timings;          /* in order of time, where all have one */
    size_t timing_count;
};

/*
 * Text that is JSON but has none of these fields, or isn't JSON, is LAB_ERR_USER. A timing that is
 * no positive number is left out. Strings lie in the arena.
 */
int lab_timing_file_read(const char *path, struct lab_arena *arena,
                         struct lab_timing_file *ret_file, struct lab_err *err);

#endif
