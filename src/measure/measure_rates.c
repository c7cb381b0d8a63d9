/*
 * measure_rates.c: from times to rates, in one place, so that samples per second of a bench and of
 * a study are the same figure.
 */
#include "measure/measure.h"

#include <math.h>

static double over(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? amount / seconds : NAN;
}

static double stage_median(const struct lab_measurement *m, enum lab_stage stage) {
    return m->stages[stage].n ? m->stages[stage].median : NAN;
}

struct lab_rates lab_measure_rates(const struct lab_measurement *m, const struct lab_work *work) {
    double n = (double)m->count;
    const struct lab_summary *compute = &m->stages[LAB_STAGE_COMPUTE];
    return (struct lab_rates){
        .iterations_per_s = over(n, m->wall_s),
        .samples_per_s = over(work->samples * n, m->wall_s),
        .flops_per_s = over(work->flops * n, m->wall_s),
        .memory_bytes_per_s = over(work->memory_bytes * n, m->wall_s),
        .copy_bytes_per_s = over((work->h2d_bytes + work->d2h_bytes) * n, m->wall_s),
        .h2d_bytes_per_s = over(work->h2d_bytes, stage_median(m, LAB_STAGE_H2D)),
        .d2h_bytes_per_s = over(work->d2h_bytes, stage_median(m, LAB_STAGE_D2H)),
        .compute_share = compute->n ? over(compute->mean * (double)compute->n, m->wall_s) : NAN,
    };
}

struct lab_interval lab_measure_rate_interval(const struct lab_measurement *m, double rate) {
    const struct lab_summary *primary = lab_measure_primary(m);
    struct lab_interval time = primary->median_interval;
    if (primary->n == 0 || !(time.low > 0) || !(time.high >= time.low))
        return (struct lab_interval){NAN, NAN, NAN};
    return (struct lab_interval){.low = rate * primary->median / time.high,
                                 .high = rate * primary->median / time.low,
                                 .confidence = time.confidence};
}
