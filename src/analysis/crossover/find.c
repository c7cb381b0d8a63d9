/*
 * find.c: the models of each group, and where compute time passes transfer time. Between two
 * neighbouring models both are taken as straight lines over the work of a sample; the crossover is
 * found once a block, so that its interval is over runs.
 */
#include "analysis/crossover/crossover.h"

#include "base/list.h"

#include <math.h>

#define SERIES_LEAST 3

/* --- models --- */

static double samples_of(const struct lab_study_run *run) {
    return run->work.samples > 0 ? run->work.samples : 1;
}

static struct crossover_model make_model(const struct lab_study_point *point, const char *title,
                                         struct lab_arena *arena) {
    struct crossover_model model = {.point = point,
                                    .name = lab_study_point_model(point, arena),
                                    .gflop = 1e-9 * lab_study_complexity(point->runs[0]),
                                    .runs = point->count};
    double *times = lab_arena_alloc(arena, 2 * (size_t)point->count, sizeof *times);
    for (int i = 0; i < point->count; i++) {
        struct lab_stage_times stages = lab_stage_times_of(point->runs[i]);
        times[i] = stages.compute_s / samples_of(point->runs[i]);
        times[point->count + i] = lab_stage_transfer_s(&stages) / samples_of(point->runs[i]);
    }
    model.compute_s = lab_study_estimate(times, point->count).value;
    model.transfer_s = lab_study_estimate(times + point->count, point->count).value;
    struct lab_contrast contrast = {.arena = arena, .value = lab_stage_excess};
    lab_contrast_add(&contrast, point, 1);
    model.excess = lab_claim_named(lab_claim_estimate(&contrast, LAB_STUDY_TIME), "crossover.model",
                                   lab_arena_printf(arena, "%s, %s", title, model.name),
                                   "transfer time", "compute time");
    return model;
}

static const char *bound_of(const struct crossover_model *model) {
    if (isnan(model->compute_s) != isnan(model->transfer_s)) /* one of the two doesn't exist */
        return isnan(model->compute_s) ? "transfer" : "compute";
    if (isnan(model->excess.effect))
        return "unknown";
    if (model->excess.verdict != LAB_CLAIM_YES)
        return model->excess.verdict == LAB_CLAIM_NO ? "both" : "inconclusive";
    return model->excess.effect > 0 ? "compute" : "transfer";
}

/* Of one run, a value without a verdict. */
static const char *shown_bound(const struct crossover_model *model) {
    if (model->excess.n != 1 || isnan(model->excess.effect))
        return model->bound;
    return model->excess.effect > 0 ? "compute (1 run)" : "transfer (1 run)";
}

/* --- the crossover --- */

/* Operations of a sample in one block, between models that it holds; crossover.h says what stands
 * for none. */
static double crossing(const struct crossover_series *series, int repeat) {
    double before = NAN, work_before = NAN, found = NAN, least = INFINITY, most = -INFINITY;
    for (int m = 0; m < series->count; m++) {
        const struct lab_study_run *run = lab_stage_run(series->models[m]->point, repeat);
        if (!run)
            continue;
        struct lab_stage_times times = lab_stage_times_of(run);
        double work = lab_study_complexity(run),
               excess = (times.compute_s - lab_stage_transfer_s(&times)) / samples_of(run);
        if (before < 0 && excess >= 0)
            found = work_before + (work - work_before) * before / (before - excess);
        before = excess;
        work_before = work;
        least = fmin(least, excess);
        most = fmax(most, excess);
    }
    return !isnan(found) ? found : least >= 0 ? 0 : most < 0 ? INFINITY : (double)NAN;
}

/* Some blocks have it beyond one end of the tested range: the others bound it. */
static void set_bound(struct lab_claim *claim, bool below, double bound, int beyond, int blocks,
                      double end, struct lab_arena *arena) {
    claim->effect = bound;
    claim->quantity = below ? "crossover at or below" : "crossover at or above";
    claim->reason = lab_arena_printf(
        arena, "in %d of %d runs all models are %s-bound%s", beyond, blocks,
        below ? "compute" : "transfer",
        isnan(end)
            ? ""
            : lab_arena_printf(
                  arena, below ? ", from %.3g GFLOP/sample up" : ", up to %.3g GFLOP/sample", end));
}

struct lab_claim crossover_claim(const double *values, int blocks, const char *subject,
                                 double least, double most, struct lab_arena *arena) {
    double *found = lab_arena_alloc(arena, (size_t)blocks + 1, sizeof *found), low = INFINITY,
           high = 0;
    int below = 0, above = 0;
    for (int b = 0; b < blocks; b++) {
        bool inside = values[b] > 0 && isfinite(values[b]);
        below += values[b] == 0;
        above += isinf(values[b]) != 0;
        found[b] = inside ? values[b] : (double)NAN;
        low = inside ? fmin(low, values[b]) : low;
        high = inside ? fmax(high, values[b]) : high;
    }
    struct lab_claim claim = lab_claim_named(lab_claim_from_blocks(found, blocks, "FLOP/sample"),
                                             "crossover.work", subject, "", "crossover at");
    if (claim.n == 0 || claim.n == blocks)
        return claim;
    claim.verdict = LAB_CLAIM_INCONCLUSIVE;
    claim.low = claim.high = NAN;
    if (claim.n + below == blocks)
        set_bound(&claim, true, high, below, blocks, least, arena);
    else if (claim.n + above == blocks)
        set_bound(&claim, false, low, above, blocks, most, arena);
    else
        claim.reason =
            lab_arena_printf(arena, "%d of %d runs have no crossover within the tested range",
                             blocks - claim.n, blocks);
    claim.n = blocks;
    return claim;
}

/* Whether one is transfer-bound and the other compute-bound, by their means. */
static bool brackets(const struct crossover_model *below, const struct crossover_model *above) {
    return below->compute_s < below->transfer_s && above->compute_s >= above->transfer_s;
}

/* Of two models on either side of the crossover that share a block, the nearest: blocks that hold
 * both. Those of a refinement hold no others. Else blocks that hold all models. */
static int find_blocks(const struct crossover_series *series,
                       const struct lab_study_point *const *points, struct lab_arena *arena,
                       int **ret_repeats) {
    int whole = lab_stage_blocks(points, series->count, arena, ret_repeats), blocks = whole;
    int *all = *ret_repeats;
    double nearest = INFINITY;
    for (int i = 0; i < series->count; i++)
        for (int k = i + 1; k < series->count; k++) {
            double distance = series->models[k]->gflop / series->models[i]->gflop;
            const struct lab_study_point *pair[] = {points[i], points[k]};
            int *repeats;
            if (distance >= nearest || !brackets(series->models[i], series->models[k]))
                continue;
            int own = lab_stage_blocks(pair, 2, arena, &repeats);
            if (own == 0)
                continue;
            nearest = distance;
            blocks = own;
            *ret_repeats = own == whole ? all : repeats;
        }
    return blocks;
}

static void claim_crossover(const struct lab_study_group *from, const struct crossover_group *group,
                            struct crossover_series *series, struct lab_arena *arena) {
    const struct lab_study_point **points =
        lab_arena_alloc(arena, (size_t)series->count + 1, sizeof *points);
    int *repeats;
    for (int m = 0; m < series->count; m++)
        points[m] = series->models[m]->point;
    int blocks = find_blocks(series, points, arena, &repeats);
    double *values = lab_arena_alloc(arena, (size_t)blocks + 1, sizeof *values);
    for (int b = 0; b < blocks; b++)
        values[b] = crossing(series, repeats[b]);
    series->found = (struct lab_stage_estimates){from, values, blocks};
    series->claim = crossover_claim(
        values, blocks,
        group->series_count > 1 ? lab_arena_printf(arena, "%s, %s", group->title, series->title)
                                : group->title,
        series->count ? series->models[0]->gflop : (double)NAN,
        series->count ? series->models[series->count - 1]->gflop : (double)NAN, arena);
    for (int m = 0; m < series->count; m++)
        lab_claim_add_scope(&series->claim, points[m]->name, arena);
}

/* Of models that both compute and copy: those of these points, or all. */
static void add_series(struct crossover_group *group, const struct lab_stage_series *only,
                       const char *title, struct lab_arena *arena) {
    struct crossover_series series = {.title = title};
    for (int m = 0; m < group->count; m++) {
        const struct crossover_model *model = &group->models[m];
        bool belongs = !only;
        for (int i = 0; only && i < only->count; i++)
            belongs |= only->points[i] == model->point;
        if (belongs && model->gflop > 0 && !isnan(model->excess.effect))
            LAB_ADD(series.models, series.count, arena) = model;
    }
    LAB_ADD(group->series, group->series_count, arena) = series;
}

/* --- groups --- */

static struct crossover_group make_group(const struct lab_study_group *from, const char *prefix,
                                         bool simulated, struct lab_arena *arena) {
    struct crossover_group group = {
        .name = lab_arena_printf(arena, "%s%s", prefix, from->name),
        .title = lab_stage_title(from, arena),
        .what = from->what,
        .models = lab_arena_alloc(arena, (size_t)from->count, sizeof *group.models),
        .count = from->count,
        .simulated = simulated};
    for (int i = 0; i < from->count; i++)
        group.models[i] = make_model(from->points[i], group.title, arena);
    LAB_SORT(group.models, group.count, LAB_BY(group.models, gflop), LAB_BY(group.models, name));
    /* a deeper and a wider model of the same work differ in their kernels and copies */
    struct lab_stage_series depth = lab_stage_series_find(from, "depth", arena),
                            width = lab_stage_series_find(from, "dim", arena);
    if (depth.count >= SERIES_LEAST && width.count >= SERIES_LEAST) {
        add_series(&group, &depth, "by depth", arena);
        add_series(&group, &width, "by width", arena);
    } else {
        add_series(&group, NULL, "by model", arena);
    }
    for (int s = 0; s < group.series_count; s++)
        claim_crossover(from, &group, &group.series[s], arena);
    return group;
}

int crossover_groups_make(const struct lab_study_table *study, const char *prefix,
                          struct lab_arena *arena, struct crossover_group **ret_groups) {
    struct lab_study_point *points;
    struct lab_study_group *found;
    struct crossover_group *groups = NULL;
    struct lab_claim **claims = NULL;
    int count = 0, claim_count = 0, point_count = lab_study_points(study, arena, &points);
    int found_count = lab_study_groups(points, point_count, lab_stage_model_keys, arena, &found);
    for (int g = 0; g < found_count; g++)
        if (found[g].points[0]->runs[0]->rank_count == 1)
            LAB_ADD(groups, count, arena) = make_group(&found[g], prefix, study->simulated, arena);
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++)
            LAB_ADD(claims, claim_count, arena) = &groups[g].models[m].excess;
    lab_claim_adjust(claims, claim_count);
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++) {
            groups[g].models[m].bound = bound_of(&groups[g].models[m]);
            groups[g].models[m].shown = shown_bound(&groups[g].models[m]);
        }
    *ret_groups = groups;
    return count;
}
