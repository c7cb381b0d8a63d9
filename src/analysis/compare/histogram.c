/* histogram.c: counts values into bins, in two passes: first the range, then the shares. */
#include "analysis/compare/histogram.h"

#include <math.h>

typedef void each_value(void *state, double value);

static void for_each(const struct lab_recording_stats_label *label,
                     enum lab_recording_stats_metric metric, each_value *each, void *state) {
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            const struct lab_recording_stats_gpu *gpu = &label->all_stats[i]->gpus[g];
            double *values = lab_mem_resize(NULL, gpu->track->count + 1, sizeof *values);
            int64_t *times = lab_mem_resize(NULL, gpu->track->count + 1, sizeof *times);
            size_t count = lab_recording_stats_read(gpu, metric, values, times);
            for (size_t v = 0; v < count; v++)
                each(state, values[v]);
            lab_mem_free(values);
            lab_mem_free(times);
        }
}

struct range {
    double least, most;
};

static void widen(void *state, double value) {
    struct range *range = state;
    range->least = fmin(range->least, value);
    range->most = fmax(range->most, value);
}

struct counting {
    const struct lab_histogram *histogram;
    double *counts, total;
};

static void count_in(void *state, double value) {
    struct counting *counting = state;
    const struct lab_histogram *h = counting->histogram;
    int bin = (int)((value - h->from) / h->width);
    counting->counts[bin < 0 ? 0 : bin >= h->bins ? h->bins - 1 : bin]++;
    counting->total++;
}

static void fill(const struct lab_recording_stats_label *label,
                 enum lab_recording_stats_metric metric, const struct lab_histogram *histogram,
                 double *ret_shares) {
    struct counting counting = {histogram, ret_shares, 0};
    for_each(label, metric, count_in, &counting);
    for (int i = 0; i < histogram->bins && counting.total > 0; i++)
        ret_shares[i] /= counting.total;
}

void lab_histogram_make(const struct lab_recording_stats_label *first,
                        const struct lab_recording_stats_label *second,
                        enum lab_recording_stats_metric metric, int bins,
                        struct lab_histogram *ret) {
    struct range range = {INFINITY, -INFINITY};
    *ret = (struct lab_histogram){0};
    for_each(first, metric, widen, &range);
    for_each(second, metric, widen, &range);
    if (!(range.most > range.least) || bins < 1)
        return;
    ret->bins = bins < LAB_HISTOGRAM_BINS_MAX ? bins : LAB_HISTOGRAM_BINS_MAX;
    ret->from = range.least;
    ret->width = (range.most - range.least) / ret->bins;
    fill(first, metric, ret, ret->first);
    fill(second, metric, ret, ret->second);
}
