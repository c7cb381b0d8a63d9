/*
 * fuzz_tuning.c: a cache of tuned configurations with any rows is read as far as it goes, for
 * reading and for writing. The same bytes as JSON, as another machine exported it, are taken in
 * whole or not at all; and as a tuner's file of timings they are refused or have positive times.
 * covers: src/store/tuning
 */
#include "base/json.h"
#include "rows.h"
#include "store/tuning/timing_file.h"
#include "store/tuning/tuning.h"

#include <math.h>

static void make_cache(void) {
    const struct lab_tuning_entry entry = {.key = "gemm 1 m=64 fp32",
                                           .kernel = "gemm",
                                           .shape = "gemm64",
                                           .device = "AMD EPYC 9354",
                                           .config = "block=64,warps=4",
                                           .time_s = 1e-3,
                                           .low_s = 0.9e-3,
                                           .high_s = 1.1e-3,
                                           .certain = true,
                                           .tuned_wall_ns = 1700000000123456789,
                                           .result = "{\"kernel_name\": \"gemm\"}"};
    const struct lab_trial trial = {
        .config = "block=32", .reason = "", .rung = 1, .median_s = 2e-3, .low_s = NAN, .high_s = 1};
    struct lab_tuning_cache *cache;
    LAB_AUTO(arena, arena);
    require(lab_tuning_cache_open(folder_file("tuning.db"), true, &arena, &cache, NULL, NULL) ==
                0 &&
            lab_tuning_cache_put(cache, &entry, NULL) == 0 &&
            lab_tuning_cache_keep(cache, "session", &trial, NULL) == 0);
    lab_tuning_cache_close(cache);
}

static void check_cache(const char *path, bool writable) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_tuning_cache *cache;
    struct lab_tuning_entry *entries, found;
    struct lab_trial *trials;
    struct lab_value *value;
    const char *note;
    int count = 0, taken = 0;
    if (lab_tuning_cache_open(path, writable, &arena, &cache, &note, &err) < 0) {
        require_error(&err);
        return;
    }
    if (lab_tuning_cache_list(cache, &arena, &entries, &count, &err) == 0)
        for (int i = 0; i < count; i++)
            require(entries[i].key && entries[i].kernel && entries[i].config && entries[i].result);
    lab_tuning_cache_find(cache, "gemm 1 m=64 fp32", &arena, &found, &err);
    lab_tuning_cache_trials(cache, "session", &arena, &trials, &count, &err);
    lab_tuning_cache_unfinished(cache, &count, &err);
    /* what one exports, another takes */
    if (lab_tuning_cache_export(cache, &arena, &value, &count, &err) == 0 && writable)
        lab_tuning_cache_import(cache, value, &taken, &count, &err);
    lab_tuning_cache_close(cache);
}

static void check_json(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_timing_file file;
    struct lab_value *value;
    if (lab_timing_file_read(folder_write("timings.json", data, size), &arena, &file, &err) == 0)
        for (size_t i = 0; i < file.timing_count; i++)
            require(file.timings[i].time_s > 0);
    else
        require_error(&err);
    if (lab_json_parse((const char *)data, size, "input", &arena, &value, NULL) < 0)
        return;
    struct lab_tuning_cache *cache;
    int taken = 0, count = 0;
    require(lab_tuning_cache_open(folder_file("tuning.db"), true, &arena, &cache, NULL, NULL) == 0);
    if (lab_tuning_cache_import(cache, value, &taken, &count, &err) == 0)
        require(taken <= count);
    else
        require_error(&err);
    lab_tuning_cache_close(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rows rows;
    if (!rows.scratch) {
        make_cache();
        rows_learn(&rows, "tuning.db");
    }
    if (size && data[0] == '{') {
        rows_write(&rows, "tuning.db", data, 0);
        check_json(data, size);
        return 0;
    }
    check_cache(rows_write(&rows, "tuning.db", data, size), false);
    check_cache(folder_file("tuning.db"), true);
    folder_remove(); /* what was set aside */
    mkdir(folder, 0700);
    return 0;
}
