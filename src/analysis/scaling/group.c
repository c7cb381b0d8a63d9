/*
 * group.c: the models of a group that ran on the same device from the same NUMA node. The cost
 * model is fitted once a block, so that intervals are over runs; a parameter that these models
 * don't determine is no claim.
 */
#include "analysis/scaling/scaling.h"

#include "base/list.h"
#include "stats/stats.h"

#include <math.h>

#define SHARE_LEAST  0.05 /* of some model's time that a parameter has to decide */
#define SERIES_LEAST 3
#define SAME_WORK    1.03 /* times the FLOPs of one model: a deeper and a wider one are compared */
#define MISFIT       8    /* times the variance of the runs; by chance in less than 2 of 100 */
#define ROUNDING     1e-8
#define WIDE_MOST    2 /* largest / smallest in an interval that has the misfit in it */

/* Of a parameter: largest / smallest that the runs allow. Beyond that a fit says little, and its
 * interval less than it seems to. */
static const double spread_most[SCALING_PARAMETERS] = {
    [SCALING_LAUNCH] = 2, [SCALING_COMPUTE] = 1.1, [SCALING_MEMORY] = 2};

/* --- models --- */

static struct scaling_model make_model(const struct lab_study_point *point) {
    const struct lab_study_run *run = point->runs[0];
    double samples = run->work.samples > 0 ? run->work.samples : 1;
    struct lab_effect rate = lab_study_estimate(point->rates, point->count);
    double
        memory =
            lab_study_point_figure(point, offsetof(struct lab_result, gpu_memory_peak_mb), 1).value,
        host = lab_study_point_figure(point, offsetof(struct lab_result, peak_memory_mb), 1).value,
        time_s = lab_study_estimate(point->times_s, point->count).value;
    return (struct scaling_model){
        .point = point,
        .name = run->model,
        .depth = lab_study_setting_number(run, "depth"),
        .dim = lab_study_setting_number(run, "dim"),
        .gflop = 1e-9 * run->work.flops / samples,
        .million_parameters = run->work.parameters > 0 ? 1e-6 * run->work.parameters : NAN,
        .memory_mib = isnan(memory) ? host : memory,
        .rate = rate,
        .flops_per_s = run->work.flops / samples * rate.value,
        .iteration_s = isnan(time_s) ? samples * run->rank_count / rate.value : time_s,
        .predicted_s = NAN,
        .predicted_rate = NAN,
        .error = NAN,
        .half = lab_cell_text(NULL),
        .change = lab_cell_text(NULL),
    };
}

/* --- fits --- */

static struct scaling_sample sample_run(const struct lab_study_run *run) {
    return (struct scaling_sample){&run->work, lab_stage_times_of(run), run->time_s};
}

/* All runs of a point: geometric means. */
static struct scaling_sample sample_point(const struct scaling_model *model) {
    const struct lab_study_point *point = model->point;
    double h2d = 0, compute = 0, d2h = 0;
    for (int i = 0; i < point->count; i++) {
        struct lab_stage_times times = lab_stage_times_of(point->runs[i]);
        h2d += log(times.h2d_s) / point->count;
        compute += log(times.compute_s) / point->count;
        d2h += log(times.d2h_s) / point->count;
    }
    return (struct scaling_sample){
        &point->runs[0]->work, {exp(h2d), exp(compute), exp(d2h)}, model->iteration_s};
}

static bool is_serial(const struct lab_study_run *run) {
    const struct lab_value *overlap = lab_study_setting(run, "overlap");
    return overlap && lab_study_value(overlap) == 0;
}

static struct scaling_cost fit(const struct scaling_group *group,
                               const struct scaling_sample *samples, int without) {
    struct scaling_cost cost = scaling_cost_fit(samples, group->fitted_count, without);
    cost.serial = is_serial(group->models[0].point->runs[0]);
    cost.host_s = group->host_s;
    return cost;
}

/* Errors of the fit against those that the runs of each model leave: an F test. */
static bool is_misfit(const struct scaling_group *group, const double *times) {
    int freedom = group->fitted_count - SCALING_PARAMETERS, blocks = group->blocks;
    double pure = 0;
    for (int m = 0; m < group->fitted_count && blocks > 1; m++)
        pure += pow(lab_stats_stddev(times + (ptrdiff_t)m * blocks, (size_t)blocks), 2) / blocks /
                group->fitted_count;
    return blocks > 1 && group->costs[blocks].squares / freedom > MISFIT * pure + ROUNDING;
}

static void choose_models(struct scaling_group *group, struct scaling_sample *samples,
                          struct lab_arena *arena) {
    bool *bound = lab_arena_alloc(arena, (size_t)group->count, sizeof *bound);
    for (int m = 0; m < group->count; m++)
        samples[m] = sample_point(&group->models[m]);
    group->host_s = scaling_cost_find_host(samples, group->count, bound);
    for (int m = 0; m < group->count; m++)
        if (!bound[m])
            LAB_ADD(group->fitted, group->fitted_count, arena) = &group->models[m];
}

static void fit_blocks(struct scaling_group *group, struct scaling_sample *samples,
                       struct lab_arena *arena) {
    const struct lab_study_point **points =
        lab_arena_alloc(arena, (size_t)group->count, sizeof *points);
    int *repeats;
    for (int m = 0; m < group->fitted_count; m++)
        points[m] = group->fitted[m]->point;
    group->blocks = lab_stage_blocks(points, group->fitted_count, arena, &repeats);
    group->costs = lab_arena_alloc(arena, (size_t)group->blocks + 1, sizeof *group->costs);
    double *times = lab_arena_alloc(arena, (size_t)(group->blocks * group->fitted_count) + 1,
                                    sizeof *times); /* model by model, logarithms */
    for (int b = 0; b < group->blocks; b++) {
        for (int m = 0; m < group->fitted_count; m++) {
            samples[m] = sample_run(lab_stage_run(points[m], repeats[b]));
            times[m * group->blocks + b] =
                log(samples[m].times.compute_s > 0 ? samples[m].times.compute_s
                                                   : samples[m].iteration_s);
        }
        group->costs[b] = fit(group, samples, -1);
    }
    for (int m = 0; m < group->fitted_count; m++)
        samples[m] = sample_point(group->fitted[m]);
    group->costs[group->blocks] = fit(group, samples, -1);
    group->misfit = is_misfit(group, times);
}

/* Each model from all others. */
static void leave_one_out(struct scaling_group *group, const struct scaling_sample *samples) {
    const struct scaling_cost *all = &group->costs[group->blocks];
    double squares = 0;
    for (int m = 0; m < group->fitted_count; m++) {
        struct scaling_cost others = fit(group, samples, m);
        struct scaling_model *model = group->fitted[m];
        model->error = scaling_cost_iteration_s(&others, samples[m].work) / model->iteration_s - 1;
        squares += model->error * model->error;
    }
    group->leave_one_out = sqrt(squares / group->fitted_count);
    for (int m = 0; m < group->count; m++) {
        struct scaling_model *model = &group->models[m];
        model->predicted_s = scaling_cost_iteration_s(all, &model->point->runs[0]->work);
        model->predicted_rate = model->rate.value * model->iteration_s / model->predicted_s;
    }
}

static double r_squared(const struct scaling_group *group) {
    double mean = 0, about = 0, left = 0;
    for (int m = 0; m < group->count; m++)
        mean += group->models[m].iteration_s / group->count;
    for (int m = 0; m < group->count; m++) {
        about += pow(group->models[m].iteration_s - mean, 2);
        left += pow(group->models[m].iteration_s - group->models[m].predicted_s, 2);
    }
    return about > 0 ? 1 - left / about : (double)NAN;
}

/* --- claims --- */

static void name_claim(const struct scaling_group *group, struct lab_claim *claim, const char *kind,
                       const char *subject, const char *quantity, struct lab_arena *arena) {
    const char **scope = lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *scope);
    for (int m = 0; m < group->count; m++)
        scope[m] = group->models[m].point->name;
    *claim = lab_claim_named(*claim, kind, subject, claim->reference, quantity);
    if (claim->scope_count == 0) {
        claim->scope = scope;
        claim->scope_count = group->count;
    }
}

/* Not by the claim's own interval: those that are narrow by chance would be chosen. */
static bool is_determined(const struct scaling_group *group, enum scaling_parameter parameter,
                          const struct lab_claim *claim) {
    return claim->n > 0 && claim->n == group->blocks && group->costs &&
           !(group->misfit && claim->high / claim->low > WIDE_MOST) &&
           group->costs[group->blocks].spread[parameter] <= spread_most[parameter];
}

double scaling_pipeline_loss(const struct scaling_group *group) {
    const struct scaling_model *last = &group->models[group->count - 1];
    double samples = last->point->runs[0]->work.samples;
    return 1 - last->rate.value * last->iteration_s / (samples > 0 ? samples : 1);
}

void scaling_widen(struct lab_claim *claim, const struct scaling_group *group, double error) {
    double own = log(claim->high / claim->effect),
           model = error * lab_stats_t_quantile(0.975, group->fitted_count - SCALING_PARAMETERS),
           factor = exp(sqrt(own * own + model * model));
    claim->low = claim->effect / factor;
    claim->high = claim->effect * factor;
}

static struct lab_claim claim_parameter(struct scaling_group *group,
                                        enum scaling_parameter parameter, struct lab_arena *arena) {
    static const char *const kinds[] = {"scaling.launch", "scaling.compute_rate",
                                        "scaling.bandwidth"},
                             *const quantities[] = {"launch overhead", "compute rate",
                                                    "memory bandwidth"},
                             *const units[] = {"s", "FLOP/s", "B/s"};
    struct lab_claim claim = lab_claim_none;
    double share = 0, *values = NULL;
    for (int m = 0; m < group->fitted_count && group->fits; m++)
        share = fmax(share, scaling_cost_share(&group->costs[group->blocks],
                                               &group->fitted[m]->point->runs[0]->work, parameter));
    if (share >= SHARE_LEAST) {
        values = lab_arena_alloc(arena, (size_t)group->blocks + 1, sizeof *values);
        for (int b = 0; b < group->blocks; b++) {
            double seconds = group->costs[b].seconds[parameter];
            values[b] = parameter == SCALING_LAUNCH ? seconds : 1 / seconds;
        }
        claim = lab_claim_from_blocks(values, group->blocks, units[parameter]);
        if (group->misfit) /* which may all be this parameter's */
            scaling_widen(&claim, group, group->leave_one_out / share);
        if (!is_determined(group, parameter, &claim))
            claim.verdict = claim.n > 0 ? LAB_CLAIM_INCONCLUSIVE : LAB_CLAIM_NOT_TESTED;
    }
    if (parameter == SCALING_COMPUTE && claim.verdict == LAB_CLAIM_YES && !group->misfit)
        group->rates = (struct lab_stage_estimates){group->of, values, group->blocks};
    claim.unit = units[parameter];
    name_claim(group, &claim, kinds[parameter], group->title, quantities[parameter], arena);
    return claim;
}

/* The slope of ln throughput over ln key is a contrast of the points. */
static void add_slope(struct lab_contrast *contrast, const struct lab_stage_series *series) {
    double mean = 0, squares = 0;
    double *x = lab_arena_alloc(contrast->arena, (size_t)series->count + 1, sizeof *x);
    for (int i = 0; i < series->count; i++) {
        x[i] = log(lab_study_setting_number(series->points[i]->runs[0], series->key));
        mean += x[i] / series->count;
    }
    for (int i = 0; i < series->count; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    for (int i = 0; i < series->count; i++)
        lab_contrast_add(contrast, series->points[i], M_LN2 * (x[i] - mean) / squares);
}

static double key_of(const struct lab_stage_series *series, int at) {
    return lab_study_setting_number(series->points[at]->runs[0], series->key);
}

const char *scaling_fixed(const struct lab_stage_series *series, struct lab_arena *arena) {
    bool width = lab_str_equal(series->key, "depth");
    if (series->count == 0)
        return "";
    return lab_arena_printf(
        arena, width ? "width %g" : "depth %g",
        lab_study_setting_number(series->points[0]->runs[0], width ? "dim" : "depth"));
}

/* Over all of the series: the mean of the doublings, which the table has one by one; the slope
 * where there aren't two. The subject says which. */
static struct lab_claim claim_series(const struct scaling_group *group,
                                     const struct lab_stage_series *series, const char *kind,
                                     const char *title, struct lab_arena *arena) {
    struct lab_contrast contrast = {.arena = arena};
    int count = series->count, doublings = 0;
    double from = INFINITY, to = 0;
    const char *subject = lab_arena_printf(arena, "%s, doubled %s", group->title, title);
    for (int i = 0; i < count * count; i++) {
        double half = key_of(series, i / count), whole = key_of(series, i % count);
        if (whole != 2 * half)
            continue;
        lab_contrast_add_pair(&contrast, series->points[i / count], series->points[i % count], 1);
        from = fmin(from, half);
        to = fmax(to, whole);
        doublings++;
    }
    for (int t = 0; t < contrast.count; t++)
        contrast.terms[t].weight /= doublings;
    if (doublings < 2)
        contrast = (struct lab_contrast){.arena = arena};
    if (doublings < 2 && count >= SERIES_LEAST) {
        add_slope(&contrast, series);
        subject = lab_arena_printf(arena, "%s, fitted over %d models from %g to %g", subject, count,
                                   key_of(series, 0), key_of(series, count - 1));
    }
    struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
    claim.reference = lab_arena_printf(arena, "half the %s", title);
    if (doublings > 1)
        claim.mean_of = lab_arena_printf(arena, "%d doublings from %g to %g", doublings, from, to);
    name_claim(group, &claim, kind, subject, "throughput", arena);
    return claim;
}

/* Each model against that of half its depth or width, where it was run: throughput doesn't fall by
 * the same everywhere. */
static int claim_doublings(const struct scaling_group *group, const struct lab_stage_series *series,
                           const char *kind, const char *title,
                           struct scaling_doubling **ret_doublings, struct lab_arena *arena) {
    int count = 0;
    *ret_doublings = NULL;
    for (int i = 0; i < series->count; i++)
        for (int k = i + 1; k < series->count; k++) {
            double from = key_of(series, i), to = key_of(series, k);
            if (to != 2 * from)
                continue;
            struct lab_contrast contrast = {.arena = arena};
            lab_contrast_add_pair(&contrast, series->points[i], series->points[k], 1);
            struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
            claim.reference = lab_arena_printf(arena, "half the %s", title);
            name_claim(group, &claim, kind,
                       lab_arena_printf(arena, "%s, %s %g", group->title, title, to), "throughput",
                       arena);
            LAB_ADD(*ret_doublings, count, arena) = (struct scaling_doubling){from, claim};
        }
    return count;
}

/* Each wider model against a deeper one of as much work. */
static void claim_shapes(struct scaling_group *group, struct lab_arena *arena) {
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < group->count; k++) {
            const struct scaling_model *deeper = &group->models[i], *wider = &group->models[k];
            double work = fmax(deeper->gflop, wider->gflop) / fmin(deeper->gflop, wider->gflop);
            if (!(deeper->depth > wider->depth && wider->dim > deeper->dim && work <= SAME_WORK) ||
                lab_study_setting_number(deeper->point->runs[0], "patch_size") !=
                    lab_study_setting_number(wider->point->runs[0], "patch_size"))
                continue;
            struct lab_contrast contrast = {.arena = arena};
            lab_contrast_add_pair(&contrast, deeper->point, wider->point, 1);
            struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
            claim.reference = deeper->name;
            name_claim(group, &claim, "scaling.shape",
                       lab_arena_printf(arena, "%s, %s", group->title, wider->name), "throughput",
                       arena);
            LAB_ADD(group->shapes, group->shapes_count, arena) =
                (struct scaling_shape){deeper, wider, work, claim};
        }
}

/* One family, since each is a finding. */
static void adjust(struct scaling_group *group, struct lab_arena *arena) {
    struct lab_claim **found = NULL;
    int count = 0;
    LAB_ADD(found, count, arena) = &group->by_depth;
    LAB_ADD(found, count, arena) = &group->by_width;
    for (int i = 0; i < group->depths_count; i++)
        LAB_ADD(found, count, arena) = &group->depths[i].change;
    for (int i = 0; i < group->widths_count; i++)
        LAB_ADD(found, count, arena) = &group->widths[i].change;
    for (int i = 0; i < group->shapes_count; i++)
        LAB_ADD(found, count, arena) = &group->shapes[i].change;
    lab_claim_adjust(found, count);
}

static void fit_group(struct scaling_group *group, struct lab_arena *arena) {
    bool known = group->count >= SCALING_MODELS_LEAST;
    for (int m = 0; m < group->count; m++)
        known = known && group->models[m].point->runs[0]->work.kernel_count > 0;
    if (known) {
        struct scaling_sample *samples =
            lab_arena_alloc(arena, (size_t)group->count, sizeof *samples);
        choose_models(group, samples, arena);
        fit_blocks(group, samples, arena);
        leave_one_out(group, samples);
        group->r_squared = r_squared(group);
        group->fits = group->leave_one_out <= SCALING_ERROR_MOST;
    }
    for (int p = 0; p < SCALING_PARAMETERS; p++)
        group->parameters[p] = claim_parameter(group, (enum scaling_parameter)p, arena);
}

/* Both texts where there is one of depth and one of width. */
static void join(struct lab_doc_cell *cell, const char *text, struct lab_arena *arena) {
    cell->text = cell->text ? lab_arena_printf(arena, "%s; %s", cell->text, text) : text;
}

static void add_doublings(const struct scaling_group *group, struct scaling_model *model,
                          const struct scaling_doubling *doublings, int count,
                          struct lab_arena *arena) {
    for (int i = 0; i < count; i++)
        for (int m = 0; m < group->count; m++) {
            const char *const *scope = doublings[i].change.scope; /* half of it first */
            if (!lab_str_equal(scope[1], model->point->name) ||
                !lab_str_equal(scope[0], group->models[m].point->name))
                continue;
            join(&model->half, group->models[m].name, arena);
            join(&model->change, lab_claim_short(&doublings[i].change, arena), arena);
        }
}

/* In the models' rows. */
static void show_doublings(struct scaling_group *group, struct lab_arena *arena) {
    bool any = group->depths_count + group->widths_count > 0;
    for (int m = 0; m < group->count; m++) {
        struct scaling_model *model = &group->models[m];
        add_doublings(group, model, group->depths, group->depths_count, arena);
        add_doublings(group, model, group->widths, group->widths_count, arena);
        if (any && !model->half.text)
            model->half.text = model->change.text = "–";
    }
}

struct scaling_group scaling_group_make(const struct lab_study_group *group, bool simulated,
                                        struct lab_arena *arena) {
    struct scaling_group made = {
        .title = lab_stage_title(group, arena),
        .of = group,
        .models = lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *made.models),
        .r_squared = NAN,
        .leave_one_out = NAN,
        .depth = lab_stage_series_find(group, "depth", arena),
        .width = lab_stage_series_find(group, "dim", arena),
        .simulated = simulated,
    };
    for (int i = 0; i < group->count; i++) {
        struct scaling_model model = make_model(group->points[i]);
        if (model.gflop > 0 && model.iteration_s > 0 && model.rate.value > 0)
            made.models[made.count++] = model;
        else
            made.left_out = lab_arena_printf(arena, "%s%s%s", made.left_out ? made.left_out : "",
                                             made.left_out ? ", " : "", model.name);
    }
    LAB_SORT(made.models, made.count, LAB_BY(made.models, gflop), LAB_BY(made.models, name));
    fit_group(&made, arena);
    made.by_depth = claim_series(&made, &made.depth, "scaling.depth", "depth", arena);
    made.by_width = claim_series(&made, &made.width, "scaling.width", "width", arena);
    made.depths_count =
        claim_doublings(&made, &made.depth, "scaling.depth", "depth", &made.depths, arena);
    made.widths_count =
        claim_doublings(&made, &made.width, "scaling.width", "width", &made.widths, arena);
    claim_shapes(&made, arena);
    adjust(&made, arena);
    show_doublings(&made, arena);
    return made;
}
