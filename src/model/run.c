/* run.c: names of states, as they are stored and shown; what devices are on; kinds of warnings. */
#include "model/run.h"

#include "base/str.h"
#include "model/reported_metric.h"
#include "model/result.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct lab_result *lab_run_result(const struct lab_run *run) {
    return run->state == LAB_RUN_DONE && run->result ? run->result : &lab_result_none;
}

double lab_run_once_s(const struct lab_run *run, double rate) {
    if (run->iterations == 1 && lab_str_equal(run->rate_unit, LAB_RATE_RUNS))
        return 3600 / rate;
    return run->iterations == 1 && lab_str_equal(run->rate_unit, "iterations/s") ? 1 / rate : NAN;
}

const struct lab_run_progress *lab_run_find_progress(const struct lab_run_progress *progress,
                                                     int count, int64_t number) {
    for (int i = 0; i < count; i++)
        if (progress[i].run == number)
            return &progress[i];
    return NULL;
}

const char *lab_run_state_name(enum lab_run_state state) {
    static const char *const names[] = {"planned", "running", "done", "failed"};
    assert(state < LAB_RUN_STATE_COUNT);
    return names[state];
}

#define GPU_MAX 65535

bool lab_run_device_is_simulated(const char *device) {
    return lab_str_starts(device, "sim:");
}

/* "sim:MACHINE:3": the number stands last. */
static int simulated_gpu(const char *device) {
    const char *number = strrchr(device, ':') + 1;
    char *end;
    long index = strtol(number, &end, 10);
    return end == number || *end || index < 0 || index > GPU_MAX ? LAB_RUN_NO_GPU : (int)index;
}

int lab_run_device_gpu(const char *device) {
    static const char prefix[] = "cuda:";
    if (lab_run_device_is_simulated(device))
        return simulated_gpu(device);
    if (!lab_str_starts(device, prefix))
        return LAB_RUN_NO_GPU;
    const char *number = device + strlen(prefix);
    char *end;
    long index = strtol(number, &end, 10);
    return end == number || index < 0 || index > GPU_MAX ? LAB_RUN_GPU_BY_ID : (int)index;
}

bool lab_run_uses_gpu(const struct lab_run_rank *ranks, int count) {
    for (int i = 0; i < count; i++)
        if (lab_run_device_gpu(ranks[i].device) != LAB_RUN_NO_GPU)
            return true;
    return false;
}

const char *lab_run_device_title(const char *device, struct lab_arena *arena) {
    const char *last = strrchr(device, ':');
    bool gpu = lab_str_starts(device, "cuda:") || lab_str_starts(device, "sim:");
    if (gpu && last[1] && strspn(last + 1, "0123456789") == strlen(last + 1))
        return lab_arena_printf(arena, "GPU %s", last + 1);
    return device;
}

/* --- warnings --- */

enum lab_run_warning lab_run_warning_kind(const char *sentence) {
    static const struct {
        const char *words;
        enum lab_run_warning kind;
    } kinds[] = {{LAB_WARNS_OUTLIERS, LAB_RUN_WARNING_OUTLIERS},
                 {LAB_WARNS_LOAD, LAB_RUN_WARNING_LOAD},
                 {LAB_WARNS_STEAL, LAB_RUN_WARNING_STEAL},
                 {LAB_NO_METRIC, LAB_RUN_WARNING_NO_METRIC}};
    if (lab_str_starts(sentence, LAB_WARNS_TUNING))
        sentence += strlen(LAB_WARNS_TUNING);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (lab_str_starts(sentence, kinds[i].words))
            return kinds[i].kind;
    const char *behind = sentence + strspn(sentence, "0123456789. ");
    return lab_str_starts(behind, LAB_WARNS_QUEUE) ? LAB_RUN_WARNING_LOAD : LAB_RUN_WARNING_OTHER;
}

bool lab_run_warning_is_of_times(enum lab_run_warning kind) {
    return kind != LAB_RUN_WARNING_OTHER && kind != LAB_RUN_WARNING_NO_METRIC;
}

const char *lab_run_warning_of_rank(const char *sentence) {
    int rank, length = 0;
    bool ranked = sscanf(sentence, "rank %d: %n", &rank, &length) == 1 && length > 0;
    return ranked ? sentence + length : sentence;
}
