/* histogram.h: how often each of two labels had which values, as shares of all their ticks. */
#pragma once

#include "analysis/recording/recording_stats.h"

#define LAB_HISTOGRAM_BINS_MAX 100

struct lab_histogram {
    int bins; /* 0 = no values, or all of them the same */
    double from, width;
    double first[LAB_HISTOGRAM_BINS_MAX], second[LAB_HISTOGRAM_BINS_MAX]; /* each sums to 1 */
};

/* Of the values of all GPUs of all recordings of a label; `bins` equal ones from the least value of
 * both labels to the largest, which belongs to the last. */
void lab_histogram_make(const struct lab_recording_stats_label *first,
                        const struct lab_recording_stats_label *second,
                        enum lab_recording_stats_metric metric, int bins,
                        struct lab_histogram *ret);
