/* stage.c: how long a stage's copies take, and how fast they are. */
#include "analysis/transfer/transfer.h"

#include <math.h>

static size_t bandwidth_of(enum lab_stage stage) {
    return stage == LAB_STAGE_H2D ? offsetof(struct lab_result, h2d_gb_per_s)
                                  : offsetof(struct lab_result, d2h_gb_per_s);
}

double transfer_bytes(const struct lab_study_point *point, enum lab_stage stage) {
    const struct lab_study_work *work = &point->runs[0]->work;
    return stage == LAB_STAGE_H2D ? work->h2d_bytes : work->d2h_bytes;
}

/* Seconds of the stage in a run's only rank, median with its interval; NaN = not known. */
static struct lab_analysis_summary stage_time(const struct lab_study_run *run,
                                              enum lab_stage stage) {
    const struct lab_study_rank *rank = &run->ranks[0];
    struct lab_analysis_summary none = {.median = NAN, .low = NAN, .high = NAN};
    if (run->rank_count != 1 || !rank->iterations)
        return none;
    double *times_s = lab_mem_alloc(rank->iteration_count + 1, sizeof *times_s);
    size_t count = 0;
    for (size_t i = 0; i < rank->iteration_count; i++) {
        const struct lab_span *span = &rank->iterations[i].stages[stage];
        if (span->end_ns > span->start_ns)
            times_s[count++] = 1e-9 * (double)(span->end_ns - span->start_ns);
    }
    if (count > 0)
        none = lab_analysis_summarize(times_s, count);
    lab_mem_free(times_s);
    return none;
}

struct lab_effect transfer_bandwidth(const struct lab_study_point *point, enum lab_stage stage) {
    struct lab_effect effect = lab_study_point_figure(point, bandwidth_of(stage), 1e9);
    double bytes = transfer_bytes(point, stage);
    if (point->count > 1 || !(bytes > 0))
        return effect;
    struct lab_analysis_summary time = stage_time(point->runs[0], stage);
    if (!(time.median > 0))
        return effect;
    effect.value = bytes / time.median;
    effect.interval = (struct lab_interval){bytes / time.high, bytes / time.low, time.confidence};
    return effect;
}
