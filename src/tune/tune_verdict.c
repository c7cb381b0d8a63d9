/*
 * tune_verdict.c: the winner. Two finalists are compared round by round, by the logarithm of the
 * ratio of their times; the interval of its median is by ranks, its confidence shared out over the
 * comparisons (Bonferroni), so that the set of indistinguishable ones holds the truly
 * fastest with the confidence asked for.
 */
#include "tune/tune_internal.h"

#include <math.h>

#define YARDSTICK_MOST 0.1 /* that the default's own time may move between two races */

/* The median time of a round. */
static double round_time(const struct lab_measurement *m, int round, double *scratch) {
    int begin = round ? m->round_ends[round - 1] : 0, count = m->round_ends[round] - begin;
    for (int i = 0; i < count; i++)
        scratch[i] =
            1e-9 * (double)(m->iterations[begin + i].end_ns - m->iterations[begin + i].start_ns);
    return lab_stats_median(scratch, (size_t)count);
}

struct ratio {
    double value;
    struct lab_interval interval;
};

/* How many times as long as b it takes; an interval without the confidence asked for says
 * nothing. */
static struct ratio compare(const struct lab_measurement *a, const struct lab_measurement *b,
                            double confidence) {
    int rounds = a->round_count < b->round_count ? a->round_count : b->round_count;
    size_t most = a->count > b->count ? a->count : b->count;
    LAB_AUTO_FREE double *logs = lab_mem_alloc((size_t)rounds + most + 1, sizeof *logs);
    double *scratch = logs + rounds;
    for (int i = 0; i < rounds; i++)
        logs[i] = log(round_time(a, i, scratch) / round_time(b, i, scratch));
    struct lab_interval interval = lab_stats_median_interval(logs, (size_t)rounds, confidence);
    struct ratio ratio = {exp(lab_stats_median(logs, (size_t)rounds)),
                          {exp(interval.low), exp(interval.high), interval.confidence}};
    if (!(interval.confidence >= confidence))
        ratio.interval.low = 0, ratio.interval.high = INFINITY;
    return ratio;
}

static int index_of(const struct tuner *tuner, const struct entrant *entrant) {
    return (int)(entrant - tuner->entrants);
}

static int find_fastest(const struct finals *finals) {
    int best = -1;
    for (int i = 0; i < finals->count; i++) {
        double median = finals->measurements[i].latency.median;
        if (finals->measurements[i].count > 0 &&
            (best < 0 || median < finals->measurements[best].latency.median))
            best = i;
    }
    return best;
}

/* It stays with the default unless that is slower for certain: a noisy day changes nothing then. */
static void judge_finals(struct tuner *tuner, const struct finals *finals, int fastest) {
    struct lab_tuning_result *result = tuner->result;
    const struct lab_measurement *first = &finals->measurements[fastest];
    double confidence = 1 - (1 - tuner->confidence) / fmax(1, finals->count - 1);
    result->alike = lab_arena_alloc(tuner->arena, (size_t)finals->count, sizeof *result->alike);
    result->alike[result->alike_count++] = index_of(tuner, finals->entrants[fastest]);
    int chosen = fastest;
    for (int i = 0; i < finals->count; i++) {
        if (i == fastest || finals->measurements[i].count == 0)
            continue;
        struct ratio ratio = compare(&finals->measurements[i], first, confidence);
        if (ratio.interval.low > 1)
            continue;
        result->alike[result->alike_count++] = index_of(tuner, finals->entrants[i]);
        if (finals->entrants[i] == tuner->entrants)
            chosen = i;
    }
    result->best = index_of(tuner, finals->entrants[chosen]);
    result->certain = result->alike_count == 1;
    for (int i = 0; i < finals->count; i++)
        if (finals->entrants[i] == tuner->entrants && i != chosen &&
            finals->measurements[i].count) {
            struct ratio ratio =
                compare(&finals->measurements[i], &finals->measurements[chosen], tuner->confidence);
            result->speedup = ratio.value;
            result->speedup_low = ratio.interval.low;
            result->speedup_high = ratio.interval.high;
        }
}

/* It never came to the finals: the best of what there is, and no claim. */
static void judge_unfinished(struct tuner *tuner) {
    struct lab_tuning_result *result = tuner->result;
    for (int i = 0; i < tuner->count; i++) {
        const struct lab_trial *trial = tuner->entrants[i].trial;
        if (trial->state == LAB_TRIAL_MEASURED &&
            (result->best < 0 || trial->median_s < result->trials[result->best].median_s))
            result->best = i;
    }
}

static void sort_alike(struct lab_tuning_result *result) {
    for (int i = 1; i < result->alike_count; i++)
        for (int j = i; j > 0; j--) {
            int *a = &result->alike[j - 1], *b = &result->alike[j];
            if (result->trials[*a].median_s <= result->trials[*b].median_s)
                break;
            int keep = *a;
            *a = *b;
            *b = keep;
        }
}

void tune_judge(struct tuner *tuner, const struct finals *finals) {
    struct lab_tuning_result *result = tuner->result;
    int fastest = finals->count ? find_fastest(finals) : -1;
    result->interrupted = tuner->stopped || fastest < 0;
    if (fastest < 0)
        judge_unfinished(tuner);
    else
        judge_finals(tuner, finals, fastest);
    sort_alike(result);
    if (tuner->yardstick_max_s > (1 + YARDSTICK_MOST) * tuner->yardstick_min_s)
        tune_warn(tuner,
                  lab_arena_printf(tuner->arena,
                                   "the default's time changed by %.0f%% between races (clocks or "
                                   "co-located processes); compare only configurations of one race",
                                   100 * (tuner->yardstick_max_s / tuner->yardstick_min_s - 1)));
}
