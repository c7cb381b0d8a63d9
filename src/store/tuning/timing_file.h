/*
 * timing_file.h: what an auto-tuner left of one kernel on one device, as JSON: kernel_name, gpu,
 * best_config, best_time_ms, all_benchmark_times, detailed_timings; docs/TUNING.md has all fields.
 * `gpulab tune --json` writes it. Of other tuners' files any field may be missing, and timings may
 * be bare numbers.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"
#include "store/tuning/tuning.h"

/* --- writing --- */

/* The whole result as a map in the arena. */
struct lab_value *lab_timing_file_value(const struct lab_tuning_result *result,
                                        struct lab_arena *arena);

/* What is known of a tuning that came from another machine: no times but the winner's. */
struct lab_value *lab_timing_file_imported(const struct lab_tuning_entry *entry, const char *kernel,
                                           const char *device, struct lab_arena *arena);

/* "block_q=64,block_k=128" as {"block_q": 64, "block_k": 128}. */
struct lab_value *lab_timing_file_config(const char *config, struct lab_arena *arena);

/* --- reading --- */

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
