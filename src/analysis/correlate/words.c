/* words.c: what was found, as sentences that claim no more than was seen. */
#include "analysis/correlate/correlate.h"

#include <math.h>
#include <stdlib.h>

#define LEVEL 0.05
#define POWER 0.8

static double strength(const struct lab_resource_correlation *correlation) {
    double low = correlation->spearman.interval.low, high = correlation->spearman.interval.high;
    return low > 0 ? low : high < 0 ? -high : 0;
}

/* Over all devices as within one: what may be a cause first, then the strongest. */
static int by_strength(const void *a, const void *b) {
    const struct lab_finding *x = a, *y = b;
    bool suspect_x = lab_resource_correlation_is_suspect(x->correlation),
         suspect_y = lab_resource_correlation_is_suspect(y->correlation);
    if (suspect_x != suspect_y)
        return suspect_x ? -1 : 1;
    double of_x = strength(x->correlation), of_y = strength(y->correlation);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    if (x->correlations != y->correlations)
        return x->correlations < y->correlations ? -1 : 1;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

int lab_findings_make(const struct lab_resource_correlations *correlations, int device_count,
                      struct lab_arena *arena, struct lab_finding **ret_findings) {
    struct lab_finding *findings = NULL;
    int count = 0;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].count && correlations[d].items[i].found; i++)
            LAB_ADD(findings, count, arena) =
                (struct lab_finding){&correlations[d], &correlations[d].items[i]};
    if (count > 1)
        qsort(findings, (size_t)count, sizeof *findings, by_strength);
    *ret_findings = findings;
    return count;
}

const char *lab_finding_figure(const struct lab_correlation *correlation, struct lab_arena *arena) {
    if (isnan(correlation->r))
        return "–";
    if (isnan(correlation->interval.low))
        return lab_arena_printf(arena, "%.2f", correlation->r);
    return lab_arena_printf(arena, "%.2f [%.2f, %.2f]", correlation->r, correlation->interval.low,
                            correlation->interval.high);
}

const char *lab_finding_words(const struct lab_finding *finding, struct lab_arena *arena) {
    const struct lab_resource_correlation *correlation = finding->correlation;
    const char *later = "";
    if (correlation->lag.lag > 0 && correlation->lag.p_any <= LEVEL)
        later = lab_arena_printf(arena, ", most so %.1f s later",
                                 (double)correlation->lag.lag * correlation->window_s);
    return lab_arena_printf(
        arena, "iterations on %s %s while %s: ρ = %s, %zu windows%s",
        finding->correlations->rank_times.device,
        correlation->figure == LAB_TIE_TIME ? "take longer" : "vary more",
        lab_resource_while(&correlation->resource, correlation->spearman.r > 0, arena),
        lab_finding_figure(&correlation->spearman, arena), correlation->windows, later);
}

const char *lab_spikes_words(const struct lab_resource_correlations *correlations,
                             const struct lab_spikes *spikes, struct lab_arena *arena) {
    bool shorter = spikes->rise < 0;
    double low = shorter ? -spikes->interval.high : spikes->interval.low;
    double high = shorter ? -spikes->interval.low : spikes->interval.high;
    return lab_arena_printf(arena,
                            "iterations on %s take %.1f %% [%.1f, %.1f] %s during the %d spikes of "
                            "the %s than just before them",
                            correlations->rank_times.device, 100 * fabs(spikes->rise), 100 * low,
                            100 * high, shorter ? "less" : "longer", spikes->events,
                            lab_resource_title(&spikes->resource, arena));
}

/* By Fisher's z, with the level shared by all that could be a cause; what is found must also reach
 * the least that is named. */
double lab_finding_least(const struct lab_resource_correlations *correlations, int device_count) {
    double questions = 0, fewest = NAN;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].count; i++) {
            questions += correlations[d].items[i].role != LAB_RESOURCE_OWN;
            fewest = fmin(fewest, correlations[d].items[i].effective);
        }
    if (!(fewest > 3))
        return isnan(fewest) ? (double)NAN : 1;
    double error = 1 / sqrt(fewest - 3);
    double threshold = lab_stats_normal_quantile(1 - LEVEL / 2 / fmax(questions, 1)) * error;
    return tanh(fmax(threshold, atanh(LAB_TIE_LEAST)) + lab_stats_normal_quantile(POWER) * error);
}
