/* analysis_change.c: the relative difference of two means, with its interval and its verdict. */
#include "analysis/analysis_change.h"

#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95
#define VALUES_MIN 4 /* fewer say nothing about how they depend on each other */

struct lab_change_mean lab_change_mean_make(const double *values, size_t count) {
    double *there = lab_mem_resize(NULL, count + 1, sizeof *there);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            there[n++] = values[i];
    struct lab_change_mean result = {NAN, NAN, NAN};
    if (n > 0)
        result.mean = lab_stats_mean(there, n);
    if (n >= VALUES_MIN) {
        double deviation = lab_stats_stddev(there, n);
        double effective = lab_stats_effective_size(there, n);
        result.variance = deviation * deviation / effective;
        result.freedom = effective > 2 ? effective - 1 : (double)NAN;
    }
    lab_mem_free(there);
    return result;
}

/* --- sides --- */

static int find_gpu(const struct lab_recording_stats *stats, int index) {
    for (int g = 0; g < stats->gpu_count; g++)
        if (stats->gpus[g].track->entity.index == index)
            return g;
    return -1;
}

/* Over time: of one GPU, or of all together where all are there. */
static struct lab_change_mean mean_within(const struct lab_recording_stats *stats,
                                          enum lab_recording_stats_metric metric, int gpu,
                                          struct lab_arena *arena) {
    int rows = lab_recording_stats_rows(stats), gpus = stats->gpu_count;
    double *grid = lab_recording_stats_grid(stats, metric, rows, arena);
    double *series = lab_arena_alloc(arena, (size_t)rows + 1, sizeof *series);
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int g = 0; g < gpus; g++)
            sum += grid[(ptrdiff_t)row * gpus + g];
        double all = lab_recording_stats_kinds[metric].adds_up ? sum : sum / gpus;
        series[row] = gpu >= 0 ? grid[(ptrdiff_t)row * gpus + gpu] : all;
    }
    return lab_change_mean_make(series, (size_t)rows);
}

struct lab_change_side lab_change_side_make(const struct lab_recording_stats_label *label,
                                            enum lab_recording_stats_metric metric, int gpu,
                                            struct lab_arena *arena) {
    double *values = lab_arena_alloc(arena, (size_t)label->count, sizeof *values);
    struct lab_change_side side = {values, label->count, {NAN, NAN, NAN}};
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        int g = gpu < 0 ? -1 : find_gpu(stats, gpu);
        if (gpu >= 0)
            values[i] = g < 0 ? (double)NAN : stats->gpus[g].figures[metric].mean;
        else
            values[i] = lab_recording_stats_together(stats, metric);
        if (label->count == 1 && !isnan(values[i]))
            side.within = mean_within(stats, metric, g, arena);
    }
    return side;
}

struct lab_change_side lab_change_side_single(const double *values, int count) {
    return (struct lab_change_side){values, count, {NAN, NAN, NAN}};
}

/* --- two of them --- */

/* Mean of the recordings' values, its variance and degrees of freedom by their spread. */
static struct lab_change_mean between(const struct lab_change_side *side, int *ret_count) {
    struct lab_change_mean result = {NAN, NAN, NAN};
    double *there = lab_mem_resize(NULL, (size_t)side->count + 1, sizeof *there);
    size_t n = 0;
    for (int i = 0; i < side->count; i++)
        if (!isnan(side->values[i]))
            there[n++] = side->values[i];
    *ret_count = (int)n;
    if (n > 0)
        result.mean = lab_stats_mean(there, n);
    if (n > 1) {
        double deviation = lab_stats_stddev(there, n);
        result.variance = deviation * deviation / (double)n;
        result.freedom = (double)n - 1;
    }
    lab_mem_free(there);
    return result;
}

/*
 * The variance of second / first − 1 by the delta method: (v₂ + r² v₁) / first², r their ratio; its
 * degrees of freedom by Welch and Satterthwaite; where one spread stands for both, those of it.
 */
static void set_interval(struct lab_change *change, const struct lab_change_mean *a,
                         const struct lab_change_mean *b, bool shared) {
    double ratio = change->absolute ? 1 : change->second / change->first;
    double unit = change->absolute ? 1 : fabs(change->first);
    double from_a = ratio * ratio * a->variance, from_b = b->variance, sum = from_a + from_b;
    if (isnan(a->freedom) || isnan(b->freedom) || isnan(sum))
        return;
    double distance = 0;
    if (sum > 0) {
        double freedom =
            shared ? a->freedom : lab_stats_welch_freedom(from_a, a->freedom, from_b, b->freedom);
        distance = lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom) * sqrt(sum) / unit;
    }
    /* what is compared is never negative: no more than all of it can go, whatever the spread */
    change->low = change->absolute ? change->share - distance : fmax(-1, change->share - distance);
    change->high = change->share + distance;
    change->bound = fmax(fabs(change->low), fabs(change->high));
}

static enum lab_change_verdict judge(const struct lab_change *change) {
    if (isnan(change->share))
        return LAB_CHANGE_UNKNOWN;
    if (isnan(change->low))
        return LAB_CHANGE_SINGLE;
    if (change->low <= 0 && change->high >= 0)
        return LAB_CHANGE_SAME;
    double least = change->absolute ? LAB_CHANGE_WITHIN_LEAST_ABSOLUTE : LAB_CHANGE_WITHIN_LEAST;
    if (change->within && fabs(change->share) < least)
        return LAB_CHANGE_SMALL;
    return change->share > 0 ? LAB_CHANGE_HIGHER : LAB_CHANGE_LOWER;
}

static struct lab_change make(const struct lab_change_side *first,
                              const struct lab_change_side *second, bool absolute) {
    int count_a, count_b;
    struct lab_change_mean a = between(first, &count_a), b = between(second, &count_b);
    struct lab_change change = {.first = a.mean,
                                .second = b.mean,
                                .share = NAN,
                                .low = NAN,
                                .high = NAN,
                                .bound = NAN,
                                .absolute = absolute,
                                .within = count_a == 1 && count_b == 1};
    if (isnan(a.mean) || isnan(b.mean) || (a.mean == 0 && !absolute)) {
        if (a.mean == 0 && b.mean == 0) /* nothing on either side, as of an idle GPU's load */
            change.share = change.low = change.high = change.bound = 0;
        change.verdict = judge(&change);
        return change;
    }
    change.share = absolute ? b.mean - a.mean : b.mean / a.mean - 1;
    if (change.within) {
        a = first->within;
        b = second->within;
    } else if (count_a == 1) {
        a.variance = b.variance * count_b;
        a.freedom = b.freedom;
    } else if (count_b == 1) {
        b.variance = a.variance * count_a;
        b.freedom = a.freedom;
    }
    set_interval(&change, &a, &b, !change.within && (count_a == 1 || count_b == 1));
    change.verdict = judge(&change);
    return change;
}

struct lab_change lab_change_make(const struct lab_change_side *first,
                                  const struct lab_change_side *second) {
    return make(first, second, false);
}

struct lab_change lab_change_make_absolute(const struct lab_change_side *first,
                                           const struct lab_change_side *second) {
    return make(first, second, true);
}

struct lab_change lab_change_between(const struct lab_recording_stats_label *first,
                                     const struct lab_recording_stats_label *second,
                                     enum lab_recording_stats_metric metric, int gpu,
                                     struct lab_arena *arena) {
    struct lab_change_side base = lab_change_side_make(first, metric, gpu, arena),
                           other = lab_change_side_make(second, metric, gpu, arena);
    return lab_change_make(&base, &other);
}

/* --- words --- */

const char *lab_change_verdict_name(enum lab_change_verdict verdict) {
    static const char *const names[] = {
        [LAB_CHANGE_UNKNOWN] = "unknown", [LAB_CHANGE_SINGLE] = "single",
        [LAB_CHANGE_SAME] = "same",       [LAB_CHANGE_SMALL] = "ambiguous",
        [LAB_CHANGE_HIGHER] = "higher",   [LAB_CHANGE_LOWER] = "lower",
    };
    return names[verdict];
}

double lab_change_bound_percent(const struct lab_change *change) {
    double tenths = ceil(10 * (change->absolute ? 1 : 100) * change->bound - 1e-9);
    return tenths <= 0 ? 0 : tenths / 10; /* ceil of a little less than 0 is −0 */
}

const char *lab_change_note(const struct lab_recording_stats_label *labels, int count) {
    int several = 0;
    for (int i = 0; i < count; i++)
        several += labels[i].count > 1;
    if (several == 0)
        return "Intervals are at 95 %, within one recording each: they say how well these means "
               "are "
               "known, not what another recording would give. Differences below 2 % get no "
               "verdict; "
               "several recordings of each label would tell.";
    if (several == count)
        return "Intervals are at 95 %, from the spread between the recordings of a label.";
    return "Intervals are at 95 %. Where one of two labels has a single recording, the spread "
           "between the other's stands for both.";
}

const char *lab_change_words(const struct lab_change *change, struct lab_arena *arena) {
    switch (change->verdict) {
    case LAB_CHANGE_HIGHER:
        return "higher";
    case LAB_CHANGE_LOWER:
        return "lower";
    case LAB_CHANGE_SAME:
        return change->bound == 0
                   ? "the same"
                   : lab_arena_printf(arena, "within %.1f %s", lab_change_bound_percent(change),
                                      change->absolute ? "°C" : "%");
    case LAB_CHANGE_SMALL:
        return "ambiguous";
    case LAB_CHANGE_SINGLE:
        return "one value each";
    case LAB_CHANGE_UNKNOWN:
        break;
    }
    return "can't be told";
}

/* Three of them stand beside each other in 80 columns: what is large has no decimals, and an end
 * that is larger still is only said to be so. */
#define END_MAX 9999.5
static const char *end_text(double end, int decimals, struct lab_arena *arena) {
    if (fabs(end) > END_MAX)
        return end > 0 ? "> +10k" : "< -10k";
    return lab_arena_printf(arena, "%+.*f", decimals, end);
}

const char *lab_change_text(const struct lab_change *change, struct lab_arena *arena) {
    double scale = change->absolute ? 1 : 100;
    const char *unit = change->absolute ? "°C" : "%";
    if (isnan(change->share))
        return "–";
    double value = scale * change->share, low = scale * change->low, high = scale * change->high;
    if (isnan(change->low))
        return lab_arena_printf(arena, "%s %s", end_text(value, fabs(value) < 100 ? 1 : 0, arena),
                                unit);
    int decimals = fmax(fabs(value), fmax(fabs(low), fabs(high))) < 100 ? 1 : 0;
    if (fabs(value) > END_MAX) /* its ends say nothing more */
        return lab_arena_printf(arena, "%s %s", end_text(value, 0, arena), unit);
    return lab_arena_printf(arena, "%s %s [%s, %s]", end_text(value, decimals, arena), unit,
                            end_text(low, decimals, arena), end_text(high, decimals, arena));
}

struct lab_doc_cell lab_change_cell(const struct lab_change *change) {
    return lab_cell_interval(change->share, change->low, change->high,
                             isnan(change->low) ? 0 : CONFIDENCE);
}
