/*
 * analysis_correlation.c: which resources correlate with the times of a device's iterations.
 *
 * Spearman's ρ decides, since times have long tails; Pearson's r is told beside it. Windows
 * resemble their neighbours, for as long as each series remembers its past. Two tests allow for
 * that: Student's t over as many windows as are worth an independent one, and how far chance signs
 * of their waves would bring two such series (stats/surrogate_test.h). The larger p value counts:
 * the first is too sure where few windows are left to tell how long memory is, the second of what
 * merely rises or falls throughout.
 *
 * Possible causes and spikes share one false discovery rate, all else has another: what a device
 * does always follows its pace, and so many true finds in one family would let false causes
 * through.
 */
#include "analysis/analysis_resource.h"
#include "stats/surrogate_test.h"

#include <math.h>
#include <stdlib.h>

#define CONFIDENCE    0.95
#define LEVEL         0.05
#define POWER         0.8
#define WINDOWS_LEAST 8      /* fewer tell nothing */
#define WINDOWS_KEPT  256    /* that a budget leaves at least */
#define BUDGET        800000 /* windows × resources */

/* --- resources --- */

static int by_resource(const void *a, const void *b) {
    const struct lab_resource *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    if (x->metric != y->metric)
        return x->metric < y->metric ? -1 : 1;
    if (x->instance != y->instance)
        return x->instance < y->instance ? -1 : 1;
    return x->bit < y->bit ? -1 : x->bit > y->bit;
}

struct resources {
    struct lab_resource *items;
    int count;
};

static void add_resource(struct resources *list, struct lab_resource resource) {
    LAB_PUSH(list->items, list->count) = resource;
}

static void add_track(struct resources *list, const struct lab_track *track) {
    const struct lab_entity *entity = &track->entity;
    bool gpu = entity->kind == LAB_ENTITY_GPU || entity->kind == LAB_ENTITY_MIG;
    for (int c = 0; c < entity->column_count; c++) {
        struct lab_resource resource = {.kind = entity->kind,
                                        .index = gpu ? entity->index : 0,
                                        .metric = (enum lab_metric_id)entity->columns[c].metric,
                                        .instance = entity->columns[c].instance};
        if (!track->values[c] || !track->valid[c])
            continue;
        if (lab_metric(resource.metric)->kind != LAB_METRIC_FLAGS) {
            add_resource(list, resource);
            continue;
        }
        for (int r = 0; lab_clock_reasons[r].bit; r++) {
            resource.bit = lab_clock_reasons[r].bit;
            if (lab_clock_reasons[r].harmful)
                add_resource(list, resource);
        }
    }
}

/* Each once, over all recordings. */
static struct resources list_resources(const struct lab_rank_times *rank_times) {
    struct resources list = {0};
    const struct lab_recording *last = NULL;
    for (int p = 0; p < rank_times->count; p++) {
        const struct lab_recording *recording = rank_times->items[p].run->recording;
        for (int t = 0; recording != last && t < recording->track_count; t++)
            add_track(&list, &recording->tracks[t]);
        last = recording;
    }
    if (list.count > 1)
        qsort(list.items, (size_t)list.count, sizeof *list.items, by_resource);
    int kept = 0;
    for (int i = 0; i < list.count; i++)
        if (kept == 0 || by_resource(&list.items[kept - 1], &list.items[i]) != 0)
            list.items[kept++] = list.items[i];
    list.count = kept;
    return list;
}

/* --- correlation --- */

struct scratch {
    struct lab_windows windows;
    double *x, *y, *ranks_x, *ranks_y; /* in one block */
    int *runs;                         /* that pairs belong to */
    size_t capacity;
    struct lab_surrogate surrogate;
    size_t ranked; /* pairs whose x has its ranks already: all windows have both figures */
};

static void make_room(struct scratch *scratch, size_t count) {
    if (count <= scratch->capacity)
        return;
    size_t room = scratch->capacity = 2 * count;
    scratch->x = lab_mem_resize(scratch->x, 4 * room, sizeof *scratch->x);
    scratch->y = scratch->x + room;
    scratch->ranks_x = scratch->y + room;
    scratch->ranks_y = scratch->ranks_x + room;
    scratch->runs = lab_mem_resize(scratch->runs, room, sizeof *scratch->runs);
}

static void release_scratch(struct scratch *scratch) {
    lab_windows_release(&scratch->windows);
    lab_mem_free(scratch->x);
    lab_mem_free(scratch->runs);
    lab_surrogate_release(&scratch->surrogate);
}

/* The windows that have the figure, as pairs; returns how many. */
static size_t make_pairs(struct scratch *scratch, enum lab_resource_correlation_figure figure) {
    const struct lab_windows *windows = &scratch->windows;
    const double *y = figure == LAB_TIE_TIME ? windows->time : windows->spread;
    size_t n = 0;
    make_room(scratch, windows->count);
    for (size_t i = 0; i < windows->count; i++) {
        if (isnan(y[i]))
            continue;
        scratch->x[n] = windows->x[i];
        scratch->runs[n] = windows->rank_time[i];
        scratch->y[n++] = y[i];
    }
    return n;
}

static bool make_tie(struct scratch *scratch, enum lab_resource_correlation_figure figure,
                     struct lab_resource_correlation *correlation) {
    size_t n = make_pairs(scratch, figure);
    if (n < WINDOWS_LEAST ||
        (scratch->ranked != n && !lab_stats_ranks(scratch->x, n, scratch->ranks_x)) ||
        !lab_stats_ranks(scratch->y, n, scratch->ranks_y))
        return false;
    scratch->ranked = n == scratch->windows.count ? n : 0;
    correlation->figure = figure;
    correlation->windows = n;
    correlation->window_s = scratch->windows.length_s;
    struct lab_surrogate_result chance = lab_surrogate_test(&scratch->surrogate, scratch->ranks_x,
                                                            scratch->ranks_y, scratch->runs, n);
    correlation->effective = lab_stats_pair_effective_size(scratch->ranks_x, scratch->ranks_y, n);
    correlation->spearman = lab_stats_spearman_ranked(scratch->ranks_x, scratch->ranks_y, n,
                                                      correlation->effective, CONFIDENCE);
    correlation->spearman.p = fmax(correlation->spearman.p, chance.p);
    correlation->pearson =
        lab_stats_pearson(scratch->x, scratch->y, n, correlation->effective, CONFIDENCE);
    correlation->p_adjusted = NAN;
    return !isnan(correlation->spearman.r);
}

/* --- spikes --- */

#define EVENTS_LEAST 5
#define SPIKE_MAD    3.5
#define SPIKE_SHARE  0.5  /* of the way from the median to the highest value */
#define SPIKES_MOST  0.25 /* of the windows: what is high oftener isn't a spike */

static double find_threshold(const double *x, size_t n) {
    double median = lab_stats_median(x, n);
    return median + fmax(SPIKE_MAD * lab_stats_mad(x, n, true),
                         SPIKE_SHARE * (lab_stats_max(x, n) - median));
}

/*
 * Each spike against as many windows just before it, within its run: what drifts slowly is the same
 * in both. Fills the differences in `ret_rises`; returns how many events had such a stretch.
 */
static int find_rises(const struct lab_windows *windows, double threshold, double *ret_rises,
                      size_t *ret_high) {
    int events = 0;
    size_t quiet_from = 0;
    *ret_high = 0;
    for (size_t i = 0; i < windows->count;) {
        if (i > 0 && windows->rank_time[i] != windows->rank_time[i - 1])
            quiet_from = i;
        if (!(windows->x[i] > threshold)) {
            i++;
            continue;
        }
        size_t start = i;
        double during = 0, before = 0;
        while (i < windows->count && windows->x[i] > threshold &&
               windows->rank_time[i] == windows->rank_time[start])
            during += windows->time[i++];
        size_t length = i - start,
               control = start - quiet_from < length ? start - quiet_from : length;
        *ret_high += length;
        for (size_t k = start - control; k < start; k++)
            before += windows->time[k];
        if (control > 0)
            ret_rises[events++] = during / (double)length - before / (double)control;
        quiet_from = i;
    }
    return events;
}

static bool make_spikes(struct scratch *scratch, struct lab_spikes *spikes) {
    const struct lab_windows *windows = &scratch->windows;
    size_t high;
    make_room(scratch, windows->count);
    double *rises = scratch->x;
    spikes->events = find_rises(windows, find_threshold(windows->x, windows->count), rises, &high);
    if (spikes->events < EVENTS_LEAST || (double)high > SPIKES_MOST * (double)windows->count)
        return false;
    size_t n = (size_t)spikes->events;
    double error = lab_stats_stddev(rises, n) / sqrt((double)n);
    spikes->rise = lab_stats_mean(rises, n);
    spikes->interval = lab_stats_mean_interval(rises, n, CONFIDENCE);
    spikes->p = lab_stats_t_two_sided(spikes->rise / error, (double)n - 1);
    return !isnan(spikes->p);
}

/* --- all of a device --- */

/* GPUs of one run do the same work at the same time: a mate's figures follow the same pace. */
static bool is_mate(const struct lab_resource *resource, const struct lab_rank_times *rank_times) {
    if (resource->kind != LAB_ENTITY_GPU && resource->kind != LAB_ENTITY_MIG)
        return false;
    for (int p = 0; p < rank_times->count; p++)
        for (int r = 0; r < rank_times->items[p].run->rank_count; r++)
            if (lab_resource_gpu(&rank_times->items[p].run->ranks[r]) == resource->index &&
                resource->index != rank_times->gpu)
                return true;
    return false;
}

static enum lab_resource_role role_of(const struct lab_resource *resource,
                                      const struct lab_rank_times *rank_times) {
    return is_mate(resource, rank_times) ? LAB_RESOURCE_OWN
                                         : lab_resource_role(resource, rank_times->gpu);
}

static void add_ties(struct lab_resource_correlations *correlations, struct scratch *scratch,
                     const struct lab_resource *resource) {
    enum lab_resource_role role = role_of(resource, &correlations->rank_times);
    struct lab_windows *windows = &scratch->windows;
    bool any = false;
    scratch->ranked = 0;
    if (!lab_windows_centre(windows, &correlations->rank_times)) {
        correlations->constant_count++;
        return;
    }
    for (int figure = 0; figure < LAB_TIE_FIGURES; figure++) {
        struct lab_resource_correlation *correlation = &correlations->items[correlations->count];
        correlation->resource = *resource;
        correlation->role = role;
        if (!make_tie(scratch, (enum lab_resource_correlation_figure)figure, correlation))
            continue;
        any = true;
        correlations->count++;
    }
    correlations->short_count += !any;
    if (!any)
        return;
    if (windows->count > correlations->windows)
        correlations->windows = windows->count;
    correlations->window_s = isnan(correlations->window_s)
                                 ? windows->length_s
                                 : fmin(correlations->window_s, windows->length_s);
    struct lab_spikes *spikes = &correlations->spikes[correlations->spike_count];
    spikes->resource = *resource;
    if (role != LAB_RESOURCE_OWN && make_spikes(scratch, spikes))
        correlations->spike_count++;
}

/* No window may be shorter, so that there aren't more than the budget allows. */
static int64_t least_window_ns(const struct lab_rank_times *rank_times, size_t budget,
                               int resources) {
    int64_t span_ns = 0;
    for (int p = 0; p < rank_times->count; p++)
        span_ns += rank_times->items[p].until_ns - rank_times->items[p].from_ns;
    size_t most = (budget ? budget : BUDGET) / (size_t)(resources + 1);
    return span_ns / (int64_t)(most > WINDOWS_KEPT ? most : WINDOWS_KEPT);
}

void lab_resource_correlations_make(const struct lab_study_run *const *runs, int run_count,
                                    int gpu_id, size_t budget, struct lab_arena *arena,
                                    struct lab_resource_correlations *ret_ties) {
    struct lab_resource_correlations correlations = {.window_s = NAN};
    lab_rank_times_make(runs, run_count, gpu_id, arena, &correlations.rank_times);
    struct resources list = list_resources(&correlations.rank_times);
    correlations.items = lab_arena_alloc(arena, (size_t)list.count * LAB_TIE_FIGURES + 1,
                                         sizeof *correlations.items);
    correlations.spikes =
        lab_arena_alloc(arena, (size_t)list.count + 1, sizeof *correlations.spikes);
    int64_t least_ns = least_window_ns(&correlations.rank_times, budget, list.count);
    for (int p = 0; p < correlations.rank_times.count; p++)
        correlations.merged |=
            correlations.rank_times.items[p].run->recording->interval_ns > 0 &&
            least_ns > correlations.rank_times.items[p].run->recording->interval_ns;
    struct scratch scratch = {0};
    for (int i = 0; i < list.count; i++) {
        if (!lab_windows_fill(&scratch.windows, &correlations.rank_times, &list.items[i], least_ns))
            continue;
        correlations.resource_count++;
        add_ties(&correlations, &scratch, &list.items[i]);
    }
    release_scratch(&scratch);
    lab_mem_free(list.items);
    *ret_ties = correlations;
}

/* --- together --- */

/* Clocks are better high, all else that a device doesn't do itself is better low. */
bool lab_resource_correlation_is_suspect(const struct lab_resource_correlation *correlation) {
    enum lab_metric_id metric = correlation->resource.metric;
    bool better_high = metric == LAB_METRIC_SM_CLOCK || metric == LAB_METRIC_MEMORY_CLOCK ||
                       metric == LAB_METRIC_CORE_FREQUENCY || metric == LAB_METRIC_CPU_FREQUENCY ||
                       metric == LAB_METRIC_HOST_AVAILABLE || metric == LAB_METRIC_NODE_FREE ||
                       metric == LAB_METRIC_POWER_LIMIT || metric == LAB_METRIC_FAN ||
                       metric == LAB_METRIC_PCIE_GENERATION || metric == LAB_METRIC_PCIE_WIDTH;
    return correlation->role != LAB_RESOURCE_OWN && (correlation->spearman.r > 0) != better_high;
}

/* One-sided: with the wrong sign it is no cause, however small p. */
static double cause_p(const struct lab_resource_correlation *correlation) {
    return lab_resource_correlation_is_suspect(correlation) ? correlation->spearman.p : 1;
}

/* The families: everything that could be a cause by its role, whichever sign came out, so that a
 * family doesn't choose its members by their values, with all spikes, which name causes as well;
 * and all that is no suspect. */
static bool is_member(const struct lab_resource_correlation *item, bool causes) {
    return causes ? item->role != LAB_RESOURCE_OWN : !lab_resource_correlation_is_suspect(item);
}

static void adjust(struct lab_resource_correlations *list, int count, bool causes, double *p) {
    size_t n = 0;
    for (int d = 0; d < count; d++) {
        for (int i = 0; i < list[d].count; i++)
            if (is_member(&list[d].items[i], causes))
                p[n++] = causes ? cause_p(&list[d].items[i]) : list[d].items[i].spearman.p;
        for (int i = 0; causes && i < list[d].spike_count; i++)
            p[n++] = list[d].spikes[i].p;
    }
    lab_stats_adjust_bh(p, n, p);
    n = 0;
    for (int d = 0; d < count; d++) {
        for (int i = 0; i < list[d].count; i++) {
            struct lab_resource_correlation *item = &list[d].items[i];
            if (!is_member(item, causes))
                continue;
            double adjusted = p[n++];
            if (lab_resource_correlation_is_suspect(item) != causes)
                continue;
            item->p_adjusted = adjusted;
            item->found = adjusted <= LEVEL && (!causes || fabs(item->spearman.r) >= LAB_TIE_LEAST);
        }
        for (int i = 0; causes && i < list[d].spike_count; i++) {
            list[d].spikes[i].p_adjusted = p[n];
            list[d].spikes[i].found = p[n++] <= LEVEL;
        }
    }
}

void lab_resource_correlations_adjust(struct lab_resource_correlations *correlations, int count) {
    size_t most = 1;
    for (int d = 0; d < count; d++)
        most += (size_t)(correlations[d].count + correlations[d].spike_count);
    LAB_AUTO_FREE double *p = lab_mem_alloc(most, sizeof *p);
    adjust(correlations, count, true, p);
    adjust(correlations, count, false, p);
}

/* --- claims --- */

struct lab_claim lab_claim_of_correlation(const struct lab_resource_correlations *of,
                                          const struct lab_resource_correlation *correlation,
                                          struct lab_arena *arena) {
    struct lab_claim claim = lab_claim_none;
    claim.subject = lab_arena_printf(arena, "%s, %s", of->rank_times.device,
                                     lab_resource_title(&correlation->resource, arena));
    claim.quantity = correlation->figure == LAB_TIE_TIME ? "ρ with iteration time"
                                                         : "ρ with the spread of iteration times";
    claim.unit = "";
    claim.effect = correlation->spearman.r;
    claim.low = correlation->spearman.interval.low;
    claim.high = correlation->spearman.interval.high;
    claim.confidence = correlation->spearman.interval.confidence;
    claim.p = correlation->spearman.p;
    claim.n = of->rank_times.count;
    return claim;
}

struct lab_claim lab_claim_of_spikes(const struct lab_resource_correlations *of,
                                     const struct lab_spikes *spikes, struct lab_arena *arena) {
    struct lab_claim claim = lab_claim_none;
    claim.subject = lab_arena_printf(arena, "%s, spikes of the %s", of->rank_times.device,
                                     lab_resource_title(&spikes->resource, arena));
    claim.reference = "just before";
    claim.quantity = "time";
    claim.effect = spikes->rise;
    claim.low = spikes->interval.low;
    claim.high = spikes->interval.high;
    claim.confidence = spikes->interval.confidence;
    claim.p = spikes->p;
    claim.n = of->rank_times.count;
    claim.verdict = claim.n > 1 ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE;
    return claim;
}

double lab_correlation_detectable(double effective, int tested) {
    if (!(effective > 3))
        return 1;
    double error = 1 / sqrt(effective - 3);
    double threshold = lab_stats_normal_quantile(1 - LEVEL / 2 / fmax(tested, 1)) * error;
    return tanh(fmax(threshold, atanh(LAB_TIE_LEAST)) + lab_stats_normal_quantile(POWER) * error);
}
