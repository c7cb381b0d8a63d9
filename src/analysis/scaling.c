/*
 * scaling.c: `gpulab analyze scaling`: how throughput follows the size of a model, as a cost model
 * with its error, and what that predicts. The claims are made in scaling/.
 */
#include "analysis/scaling/scaling.h"

#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

struct scaling_config {
    struct lab_value *predict;
};

static const struct lab_option scaling_options[] = {
    {"predict", LAB_OPTION_VALUE, offsetof(struct scaling_config, predict), .fallback = "auto",
     .value_name = "MODELS",
     .help = "models that weren't run: vit32x10x512, or a list in brackets; auto = twice the "
             "deepest and one wider than the widest; none"},
    {NULL},
};

/* --- columns --- */

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct scaling_group, count, "models", "Models", LAB_UNIT_COUNT),
    LAB_FIELD(struct scaling_group, parameters[SCALING_COMPUTE], "compute_rate_flops_per_s",
              "Compute rate", LAB_UNIT_NUMBER, "Compute rate"),
    LAB_FIELD(struct scaling_group, parameters[SCALING_LAUNCH], "launch_ms", "Launch overhead",
              LAB_UNIT_TIME, "Launch"),
    LAB_FIELD(struct scaling_group, parameters[SCALING_MEMORY], "bandwidth_gb_per_s",
              "Memory bandwidth", LAB_UNIT_RATE),
    LAB_FIELD(struct scaling_group, r_squared, "r_squared", "R²", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_group, leave_one_out, "leave_one_out_error", "Leave-one-out error",
              LAB_UNIT_SHARE, "Leave-one-out error"),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct scaling_model, name, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct scaling_model, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER,
              .yields = 4),
    LAB_FIELD(struct scaling_model, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND,
              .with_interval = true, .yields = 1),
    LAB_FIELD(struct scaling_model, half, NULL, "Compared with", LAB_UNIT_TEXT, .optional = true),
    LAB_FIELD(struct scaling_model, change, NULL, "Change", LAB_UNIT_FIGURE, .optional = true),
    LAB_FIELD(struct scaling_model, flops_per_s, "flops_per_s", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, memory_mib, "memory_mib", "Memory", LAB_UNIT_MEBIBYTES,
              .yields = 2),
    LAB_FIELD(struct scaling_model, iteration_s, "iteration_ms", "Iteration", LAB_UNIT_TIME,
              .yields = 1),
    LAB_FIELD(struct scaling_model, predicted_s, "predicted_ms", "Cost model", LAB_UNIT_TIME,
              .yields = 3),
    LAB_FIELD(struct scaling_model, error, "leave_one_out_error", "Leave-one-out error",
              LAB_UNIT_CHANGE, .yields = 3),
};

static const struct lab_field prediction_fields[] = {
    LAB_FIELD(struct scaling_prediction, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct scaling_prediction, gflop, "gflop_per_sample", "GFLOP/sample",
              LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_prediction, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND),
    LAB_FIELD(struct scaling_prediction, time, "iteration_ms", "Iteration time", LAB_UNIT_TIME),
};

/* --- sentences --- */

/* ", plus launches and memory traffic, each inconclusive": terms of the model that the runs don't
 * determine. */
static void add_open_terms(const struct lab_claim *launch, const struct lab_claim *memory,
                           struct lab_str *text) {
    bool launches = launch->verdict == LAB_CLAIM_INCONCLUSIVE,
         traffic = memory->verdict == LAB_CLAIM_INCONCLUSIVE;
    if (launches || traffic)
        lab_str_printf(text, ", plus %s%s%s, %sinconclusive", launches ? "launches" : "",
                       launches && traffic ? " and " : "", traffic ? "memory traffic" : "",
                       launches && traffic ? "each " : "");
}

/* Whether the device alone bounds an iteration: nothing is copied, or its copies aren't known. */
static bool computes_only(const struct scaling_cost *cost) {
    return !(cost->h2d_byte_s > 0) && !(cost->d2h_byte_s > 0);
}

/* ", at least 4.1 µs each (host)": what the host takes for a launch. */
static void add_host(const struct scaling_group *group, struct lab_arena *arena,
                     struct lab_str *text) {
    if (group->host_s > 0)
        lab_str_printf(text, ", at least %s for each kernel (host)",
                       lab_words_time(group->host_s, arena));
}

/* " Iteration time ≈ the longest of compute, H2D (24.5 GB/s), D2H (24.5 GB/s) and (compute + H2D +
 * D2H) / 2, for two buffers (R² …)": how cost.c makes an iteration of its stages; without copies,
 * compute is all of it. */
static void add_iteration(const struct scaling_group *group, struct lab_arena *arena,
                          struct lab_str *text) {
    const struct scaling_cost *cost = &group->costs[group->blocks];
    const char *h2d = "", *d2h = "";
    if (cost->h2d_byte_s > 0)
        h2d = lab_arena_printf(arena, "H2D (%s)", lab_words_si(1 / cost->h2d_byte_s, "B/s", arena));
    if (cost->d2h_byte_s > 0)
        d2h = lab_arena_printf(arena, "D2H (%s)", lab_words_si(1 / cost->d2h_byte_s, "B/s", arena));
    bool both = *h2d && *d2h;
    if (cost->serial && !computes_only(cost))
        lab_str_printf(text, " Iteration time ≈ compute + %s%s%s", h2d, both ? " + " : "", d2h);
    else if (both)
        lab_str_printf(text,
                       " Iteration time ≈ the longest of compute, %s, %s and (compute + H2D + "
                       "D2H) / 2, for two buffers",
                       h2d, d2h);
    else if (!computes_only(cost))
        lab_str_printf(text, " Iteration time ≈ the longer of compute and %s%s", h2d, d2h);
    lab_str_printf(text, " (%sR² %.2f; leave-one-out error %.1f%%).",
                   computes_only(cost) ? lab_arena_printf(arena, "95%% CI, %d runs; ",
                                                          group->parameters[SCALING_COMPUTE].n)
                                       : "",
                   group->r_squared, 100 * group->leave_one_out);
}

/* "compute time ≈ sum over kernels of 2.2 µs [2.1, 2.3] + max(FLOPs / 52 TFLOP/s [51.8, 52.2],
 * bytes / 730 GB/s [690, 770]) (95% CI, 5 runs)." and what an iteration takes then */
static void add_formula(const struct scaling_group *group, struct lab_arena *arena,
                        struct lab_str *text) {
    const struct lab_claim *launch = &group->parameters[SCALING_LAUNCH],
                           *rate = &group->parameters[SCALING_COMPUTE],
                           *memory = &group->parameters[SCALING_MEMORY];
    bool two = memory->verdict == LAB_CLAIM_YES,
         alone = computes_only(&group->costs[group->blocks]);
    lab_str_printf(text, "%s time ≈ sum over kernels of ", alone ? "iteration" : "compute");
    if (launch->verdict == LAB_CLAIM_YES)
        lab_str_printf(text, "%s + ", lab_claim_short(launch, arena));
    lab_str_printf(text, "%sFLOPs / %s", two ? "max(" : "", lab_claim_short(rate, arena));
    if (two)
        lab_str_printf(text, ", bytes / %s)", lab_claim_short(memory, arena));
    add_open_terms(launch, memory, text);
    add_host(group, arena, text);
    if (!alone)
        lab_str_printf(text, " (95%% CI, %d runs).", rate->n);
    add_iteration(group, arena, text);
}

static void add_model(const struct scaling_group *group, struct lab_arena *arena,
                      struct lab_str *text) {
    const struct lab_claim *rate = &group->parameters[SCALING_COMPUTE];
    lab_str_printf(text, "%s%s: ", text->length ? " " : "", group->title);
    if (group->count < SCALING_MODELS_LEAST) {
        lab_str_printf(text, "no cost model (%d models, at least %d needed).", group->count,
                       SCALING_MODELS_LEAST);
    } else if (isnan(group->leave_one_out)) {
        lab_str_add(text, "no cost model (the kernels of this workload are not known).");
    } else if (!group->fits) {
        lab_str_printf(text, "no cost model fits (leave-one-out error %.0f%%).",
                       100 * group->leave_one_out);
    } else if (rate->verdict == LAB_CLAIM_YES) {
        add_formula(group, arena, text);
    } else {
        lab_str_printf(text, "compute rate %s (leave-one-out error of the cost model: %.1f%%).",
                       group->blocks == 0   ? "not tested: no repeat has a run of each model"
                       : group->blocks == 1 ? "inconclusive (1 run each)"
                       : rate->verdict == LAB_CLAIM_NOT_TESTED
                           ? "not tested: no kernel is compute-bound"
                           : "inconclusive: these models don't determine it",
                       100 * group->leave_one_out);
    }
}

/* The cost model's sentence names the group. */
static void add_claim(const struct lab_claim *claim, const char *subject, struct lab_arena *arena,
                      struct lab_str *text) {
    struct lab_claim shorter = *claim;
    shorter.subject = subject;
    if (claim->verdict != LAB_CLAIM_NOT_TESTED)
        lab_str_printf(text, "%s%s.", text->length ? " " : "", lab_claim_sentence(&shorter, arena));
}

#define DOUBLINGS_NAMED 3

#define REACH_COMMON 0.05 /* intervals up to here are said once for all */

/* "36.8% (2 to 4)"; `own`: with its interval, "66.1% [36.2, 82.0] (256 to 512)" */
static void add_doubling(const struct scaling_doubling *doubling, const char *lead, bool own,
                         struct lab_str *text) {
    const struct lab_claim *change = &doubling->change;
    lab_str_printf(text, "%s%.1f%%", lead, -100 * change->effect);
    if (own)
        lab_str_printf(text, " [%.1f, %.1f]", -100 * change->high, -100 * change->low);
    lab_str_printf(text, " (%g to %g)", doubling->from, 2 * doubling->from);
}

/* "Doubling the depth at width 512 lowers throughput: by 36.8% (2 to 4), 46.2% (6 to 12)
 * (95% CI: ±0.4 percentage points or less, 5 runs each)." Of many, the least and the most. False =
 * there aren't two that lower it for certain. */
static bool add_doublings(const struct scaling_doubling *doublings, int count, const char *what,
                          const char *fixed, const char *where, struct lab_str *text) {
    int least = 0, most = 0, runs = INT32_MAX, runs_most = 0;
    double reach = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_claim *change = &doublings[i].change;
        if (change->verdict != LAB_CLAIM_YES || change->effect >= 0)
            return false;
        least = change->effect > doublings[least].change.effect ? i : least;
        most = change->effect < doublings[most].change.effect ? i : most;
        runs = change->n < runs ? change->n : runs;
        runs_most = change->n > runs_most ? change->n : runs_most;
        reach = fmax(reach, fmax(change->high - change->effect, change->effect - change->low));
    }
    if (count < 2)
        return false;
    lab_str_printf(text, "%sDoubling the %s at %s lowers throughput%s:", text->length ? " " : "",
                   what, fixed, where);
    bool own = reach > REACH_COMMON;
    for (int i = 0; i < count && count <= DOUBLINGS_NAMED; i++)
        add_doubling(&doublings[i], i ? ", " : " by ", own, text);
    if (count > DOUBLINGS_NAMED) {
        add_doubling(&doublings[least], " by ", own, text);
        add_doubling(&doublings[most],
                     doublings[least].from < doublings[most].from ? ", rising to " : ", up to ",
                     own, text);
    }
    lab_str_add(text, " (95% CI");
    if (!own)
        lab_str_printf(text, ": ±%.1f percentage points or less", lab_words_bound_percent(reach));
    lab_str_add(text, ", ");
    if (runs_most > runs)
        lab_str_printf(text, "%d to ", runs);
    lab_str_printf(text, "%d runs each).", runs_most);
    return true;
}

static double gflop_of(const struct scaling_group *group, const char *point) {
    for (int m = 0; m < group->count; m++)
        if (lab_str_equal(group->models[m].point->name, point))
            return group->models[m].gflop;
    return NAN;
}

/* "1.6 to 1.9×", "2.0×" */
static void add_factor(double least, double most, struct lab_str *text) {
    if (lround(10 * least) != lround(10 * most))
        lab_str_printf(text, "%.1f to ", least);
    lab_str_printf(text, "%.1f×", most);
}

/* "1.6 to 1.9× the time of a sample for 1.8 to 1.9× the FLOPs": what the changes of throughput come
 * to. */
static void add_time(const struct scaling_group *group, const struct scaling_doubling *doublings,
                     int count, bool named, struct lab_str *text) {
    double least = INFINITY, most = 0, flops_least = INFINITY, flops_most = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_claim *change = &doublings[i].change;
        double time = 1 / (1 + change->effect),
               flops = gflop_of(group, change->scope[1]) / gflop_of(group, change->scope[0]);
        least = fmin(least, time);
        most = fmax(most, time);
        flops_least = fmin(flops_least, flops);
        flops_most = fmax(flops_most, flops);
    }
    add_factor(least, most, text);
    lab_str_add(text, named ? " the time of a sample for " : " for ");
    add_factor(flops_least, flops_most, text);
    lab_str_add(text, named ? " the FLOPs" : "");
}

/* " Doubled depth: 1.6 to 1.9× the time of a sample for 1.8 to 1.9× the FLOPs; doubled width: 1.8
 * to 2.5× for 2.8 to 3.2×." */
static void add_times(const struct scaling_group *group, bool deeper, bool wider,
                      struct lab_str *text) {
    if (deeper) {
        lab_str_add(text, " Doubled depth: ");
        add_time(group, group->depths, group->depths_count, true, text);
    }
    if (wider) {
        lab_str_add(text, deeper ? "; doubled width: " : " Doubled width: ");
        add_time(group, group->widths, group->widths_count, !deeper, text);
    }
    if (deeper || wider)
        lab_str_add(text, ".");
}

/* " Launches: 30% of the compute time of vit32x6x256, 5% of vit32x6x1024 (cost model).": why small
 * models gain by size. */
static void add_launches(const struct scaling_group *group, struct lab_str *text) {
    const struct scaling_model *first = &group->models[0], *last = &group->models[group->count - 1];
    const struct scaling_cost *cost = group->fits ? &group->costs[group->blocks] : NULL;
    if (!cost || group->parameters[SCALING_LAUNCH].verdict != LAB_CLAIM_YES)
        return;
    lab_str_printf(
        text, " Launches: %.0f%% of the compute time of %s, %.0f%% of %s (cost model).",
        100 * scaling_cost_share(cost, &first->point->runs[0]->work, SCALING_LAUNCH), first->name,
        100 * scaling_cost_share(cost, &last->point->runs[0]->work, SCALING_LAUNCH), last->name);
}

static const char *prediction_name(const struct scaling_prediction *prediction,
                                   struct lab_arena *arena) {
    return prediction->outside
               ? lab_arena_printf(arena,
                                  "%s (outside the tested range: the interval doesn't cover that)",
                                  prediction->model)
               : prediction->model;
}

/* "vit32x10x512: predicted iteration time 954 µs (95% CI …), 10420 samples/s after 0.6% pipeline
 * loss." */
static void add_prediction(const struct scaling_prediction *prediction, double loss,
                           struct lab_arena *arena, struct lab_str *text) {
    struct lab_claim time = prediction->time;
    time.subject = prediction_name(prediction, arena);
    lab_str_printf(text, " %s", lab_claim_sentence(&time, arena));
    if (prediction->rate > 0)
        lab_str_printf(text, ", %s samples/s", lab_words_number(prediction->rate, arena));
    if (prediction->rate > 0 && loss >= 0.0005)
        lab_str_printf(text, " after %.1f%% pipeline loss", 100 * loss);
    lab_str_add(text, ".");
}

/* Whether all pairs of models of one work are certain and agree: their gains for width. */
static bool find_shape(const struct scaling_group *group, double *ret_least, double *ret_most) {
    *ret_least = INFINITY;
    *ret_most = -INFINITY;
    for (int i = 0; i < group->shapes_count; i++) {
        const struct scaling_shape *shape = &group->shapes[i];
        if (shape->change.verdict != LAB_CLAIM_YES || fabs(shape->change.effect) < shape->work - 1)
            return false;
        *ret_least = fmin(*ret_least, shape->change.effect);
        *ret_most = fmax(*ret_most, shape->change.effect);
    }
    return group->shapes_count > 0 && (*ret_least < 0) == (*ret_most < 0);
}

/* "At equal FLOPs vit32x6x768 has +12.8% [12.5, 13.1] throughput compared with vit32x12x512 (5 runs
 * each). ": what to do, before what growing takes. */
static void add_shape(const struct scaling_group *group, struct lab_arena *arena,
                      struct lab_str *text) {
    double least, most;
    if (!find_shape(group, &least, &most))
        return;
    const struct scaling_shape *first = &group->shapes[0];
    if (group->shapes_count > 1)
        lab_str_printf(text,
                       "At equal FLOPs the wider of two models has %s throughput, in all %d pairs "
                       "(%d runs each). ",
                       lab_words_range(least, most, arena), group->shapes_count, first->change.n);
    else
        lab_str_printf(text,
                       "At equal FLOPs %s has %s throughput compared with %s (%d runs each). ",
                       first->wider->name, lab_claim_effect(&first->change, arena),
                       first->deeper->name, first->change.n);
}

static const char *make_answer(const struct scaling_group *group,
                               const struct scaling_prediction *predictions, int count,
                               struct lab_arena *arena) {
    LAB_AUTO(str, text);
    add_shape(group, arena, &text);
    size_t named = strlen(group->title) + strlen(", ");
    const char *where = strstr(group->title, ", compiled")     ? " of compiled models"
                        : strstr(group->title, ", uncompiled") ? " of uncompiled models"
                                                               : "";
    bool deeper = add_doublings(group->depths, group->depths_count, "depth",
                                scaling_fixed(&group->depth, arena), where, &text);
    if (!deeper)
        add_claim(&group->by_depth, lab_words_capital(group->by_depth.subject + named, arena),
                  arena, &text);
    bool wider = add_doublings(group->widths, group->widths_count, "width",
                               scaling_fixed(&group->width, arena), where, &text);
    if (!wider)
        add_claim(&group->by_width, lab_words_capital(group->by_width.subject + named, arena),
                  arena, &text);
    add_times(group, deeper, wider, &text);
    if (deeper || wider)
        add_launches(group, &text);
    add_model(group, arena, &text);
    struct lab_interval range = scaling_predictable(group);
    for (int i = 0; i < count; i++)
        if (predictions[i].time.verdict == LAB_CLAIM_NOT_TESTED)
            lab_str_printf(&text, " %s: not predicted, not within %.3g to %.3g GFLOP/sample.",
                           predictions[i].model, range.low, range.high);
        else
            add_prediction(&predictions[i], scaling_pipeline_loss(group), arena, &text);
    return lab_arena_strdup(arena, text.text);
}

/* "Grow width, not depth: +9.4 to +14.5% throughput at equal FLOPs (vit32x6x768 compared with
 * vit32x12x512: +9.4% [8.9, 10.0], …; FLOPs within 1.1%, 95% CI, 5 runs each)". NULL = there is no
 * such pair, or they don't agree. */
static const char *shape_words(const struct scaling_group *group, struct lab_arena *arena) {
    LAB_AUTO(str, pairs);
    double work = 1, least, most;
    int runs = INT32_MAX;
    if (!find_shape(group, &least, &most))
        return NULL;
    for (int i = 0; i < group->shapes_count; i++) {
        const struct scaling_shape *shape = &group->shapes[i];
        const struct lab_claim *change = &shape->change;
        work = fmax(work, shape->work);
        runs = change->n < runs ? change->n : runs;
        lab_str_printf(&pairs, "%s%s compared with %s: %s", i ? ", " : "", shape->wider->name,
                       shape->deeper->name, lab_claim_effect(change, arena));
    }
    return lab_arena_printf(
        arena,
        "Grow %s: %s throughput%s at equal FLOPs (%s; FLOPs within %.1f%%, 95%% CI, %d runs each)",
        most > 0 ? "width, not depth" : "depth, not width", lab_words_range(least, most, arena),
        most > 0 ? "" : " of the wider model", pairs.text, lab_words_bound_percent(work - 1), runs);
}

/* "vit32xDEPTHxWIDTH" of "vit32x24x512": the line is pasted with a reader's own numbers. */
static const char *own_model(const struct scaling_prediction *prediction, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%.*sxDEPTHxWIDTH", (int)strcspn(prediction->model, "x"),
                            prediction->model);
}

/* The line that predicts a model of the reader's, with one that wasn't run as an example. */
static void add_action(const struct lab_study_table *study, const struct scaling_group *group,
                       const struct scaling_prediction *prediction, struct lab_arena *arena,
                       struct lab_analysis_result *result) {
    const struct lab_claim *time = &prediction->time;
    double samples = prediction->rate * time->effect;
    if (result->action || time->verdict != LAB_CLAIM_YES || !(prediction->rate > 0))
        return;
    result->own_question = true;
    const char *interval = /* no interval covers extrapolation */
        prediction->outside
            ? "extrapolated: no interval"
            : lab_arena_printf(arena, "95%% CI [%s, %s] with the leave-one-out error of %.1f%%",
                               lab_words_number(samples / time->high, arena),
                               lab_words_number(samples / time->low, arena),
                               100 * group->leave_one_out);
    result->action = lab_arena_printf(
        arena,
        "Predict the throughput of your own model (its DEPTH and WIDTH). Example: %s, %s samples/s "
        "on %s (%s)",
        prediction->model, lab_words_number(prediction->rate, arena), group->title, interval);
    if (!study->folder || !*study->folder)
        return;
    LAB_AUTO(str, line);
    lab_str_add(&line, "gpulab analyze scaling ");
    lab_str_add_shell(&line, study->folder);
    lab_str_printf(&line, " predict=%s", own_model(prediction, arena));
    result->command = lab_arena_strdup(arena, line.text);
}

/* --- parts --- */

/* Without a cost model that fits, no model has a prediction. */
static struct lab_rows rows_of(const struct scaling_group *group, struct lab_arena *arena) {
    struct scaling_model *models =
        lab_arena_copy(arena, group->models, (size_t)group->count, sizeof *models);
    for (int m = 0; m < group->count && !group->fits; m++)
        models[m].predicted_s = models[m].error = NAN;
    return LAB_ROWS(model_fields, models, group->count);
}

/* "vit32x2x128 and vit32x2x256" */
static const char *launch_bound(const struct scaling_group *group, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int m = 0; m < group->count; m++) {
        bool fitted = false;
        for (int i = 0; i < group->fitted_count; i++)
            fitted |= group->fitted[i] == &group->models[m];
        if (!fitted)
            LAB_ADD(names, count, arena) = group->models[m].name;
    }
    LAB_ADD(names, count, arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    return lab_arena_strdup(arena, list.text);
}

/* Whether some models have more runs than others. */
static bool has_gaps(const struct scaling_group *group) {
    for (int m = 1; m < group->count; m++)
        if (group->models[m].point->count != group->models[0].point->count)
            return true;
    return false;
}

static void add_claims(struct lab_analysis_result *result, const struct scaling_group *group,
                       const struct lab_rows *predictions, struct lab_arena *arena) {
    const struct lab_claim *const claims[] = {
        &group->by_depth, &group->by_width, &group->parameters[SCALING_COMPUTE],
        &group->parameters[SCALING_LAUNCH], &group->parameters[SCALING_MEMORY]};
    for (int i = 0; i < LAB_COUNT_OF(claims); i++)
        lab_analysis_add_claim(result, claims[i], arena);
    for (int i = 0; i < group->depths_count; i++)
        lab_analysis_add_claim(result, &group->depths[i].change, arena);
    for (int i = 0; i < group->widths_count; i++)
        lab_analysis_add_claim(result, &group->widths[i].change, arena);
    for (int i = 0; i < group->shapes_count; i++)
        lab_analysis_add_claim(result, &group->shapes[i].change, arena);
    lab_rows_add_claims(result, predictions, arena);
}

static int add_group(const struct scaling_config *config, const struct lab_study_table *study,
                     const struct scaling_group *group, const char *prefix, bool charted,
                     struct lab_arena *arena, struct lab_analysis_result *result,
                     struct lab_err *err) {
    struct scaling_prediction *predictions;
    int count;
    if (scaling_predict(study, config->predict, group, arena, &predictions, &count, err) < 0)
        return -1;
    if (charted)
        scaling_add_charts(result, group, predictions, count,
                           lab_analysis_suffix(result->part_count, arena), arena);
    struct lab_rows predicted = LAB_ROWS(prediction_fields, predictions, count);
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%s%s", prefix, group->of->name), arena);
    LAB_PART_FIGURES(part, figure_fields, group, arena);
    part->answer = make_answer(group, predictions, count, arena);
    for (int i = 0; i < count; i++)
        add_action(study, group, &predictions[i], arena, result);
    const char *shape = result->others ? NULL : shape_words(group, arena);
    if (shape) {
        const char **others = lab_arena_alloc(arena, 2, sizeof *others);
        others[0] = shape;
        result->others = others;
    }
    struct lab_rows models = rows_of(group, arena);
    lab_analysis_hide_columns(lab_rows_add_table(part, "models", "By model", &models, arena),
                              arena);
    if (group->depths_count + group->widths_count > 0)
        result->by_point = lab_arena_printf(
            arena,
            "Throughput: mean over runs, ± its 95%% CI. Change: of throughput, compared with "
            "the model of half the depth or width%s, with its 95%% CI. Iteration: time from one to "
            "the next, shorter than a latency where iterations overlap.",
            has_gaps(group) ? ", over repeats that both have" : "");
    if (count > 0)
        lab_analysis_note(&part->notes, arena,
                          "Throughput of models that weren't run: from the predicted iteration "
                          "time, with the pipeline loss of %s, the largest that was run (filling "
                          "and draining).",
                          group->models[group->count - 1].name);
    if (count > 0)
        lab_rows_add_table(part, "predictions", "Models that weren't run", &predicted, arena);
    if (group->left_out)
        lab_analysis_note(&part->notes, arena, "Not in the cost model: %s (no arithmetic or rate).",
                          group->left_out);
    if (group->host_s > 0)
        lab_analysis_note(&part->notes, arena,
                          "Not fitted on %s: %s (compute time bound by the host's kernel "
                          "launches).",
                          group->title, launch_bound(group, arena));
    add_claims(result, group, &predicted, arena);
    return 0;
}

/* --- the whole --- */

#define MODELS_LEAST   2
#define GROUPS_CHARTED 2 /* of a study: the same models from each NUMA node look alike */

/* From the nearest NUMA nodes that several devices have. */
static void add_pooled(struct lab_analysis_result *result, const struct scaling_group *groups,
                       int count, struct lab_arena *arena) {
    struct lab_stage_estimates *rates = NULL;
    struct lab_stage_pooled *pooled = NULL;
    int rate_count = 0;
    for (int g = 0; g < count; g++)
        LAB_ADD(rates, rate_count, arena) = (struct lab_stage_estimates){
            groups[g].of, groups[g].rates.values, groups[g].rates.blocks};
    if (lab_stage_pool(rates, rate_count, arena, &pooled) == 0)
        return;
    struct lab_claim claim =
        lab_claim_named(lab_claim_from_blocks(pooled->values, pooled->blocks, "FLOP/s"),
                        "scaling.compute_rate", pooled->title, "", "compute rate");
    lab_analysis_add_claim(result, &claim, arena);
    result->answer = lab_arena_printf(arena, "%s %s.", result->answer ? result->answer : "",
                                      lab_claim_sentence(&claim, arena));
    if (pooled->without)
        result->answer = lab_arena_printf(arena, "%s %s left out: its runs don't determine one.",
                                          result->answer, pooled->without);
}

static int add_study(const struct scaling_config *config, const struct lab_analysis_input *input,
                     const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_analysis_result *result, struct lab_err *err) {
    const char *prefix = lab_analysis_prefix(input, study, arena);
    struct lab_study_point *points;
    struct lab_study_group *groups;
    struct scaling_group *made = NULL;
    int made_count = 0, point_count = lab_study_points(study, arena, &points);
    int count = lab_study_groups(points, point_count, lab_stage_model_keys, arena, &groups);
    for (int g = 0; g < count; g++) {
        if (groups[g].points[0]->runs[0]->rank_count != 1)
            continue;
        struct scaling_group group = scaling_group_make(&groups[g], study->simulated, arena);
        if (group.count >= MODELS_LEAST)
            LAB_ADD(made, made_count, arena) = group;
    }
    for (int g = 0; g < made_count; g++)
        if (add_group(config, study, &made[g], prefix, g < GROUPS_CHARTED, arena, result, err) < 0)
            return -1;
    add_pooled(result, made, made_count, arena);
    lab_study_add_notes(study, prefix, &result->notes, arena);
    return 0;
}

static int scaling_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++)
        if (add_study(input->config, input, &input->studies[i], arena, result, err) < 0)
            return -1;
    if (result->part_count > 0)
        result->answer = lab_arena_printf(arena, "%s%s", result->parts[0].answer,
                                          result->answer ? result->answer : "");
    else
        result->untested = "fewer than 2 models ran on the same device and NUMA node.";
    return 0;
}

/* A whole series says most; models that differ in several keys still make a cost model. */
static int scaling_interest(const struct lab_study_table *study) {
    LAB_AUTO(arena, arena);
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int most = 0, point_count = lab_study_points(study, &arena, &points);
    int count = lab_study_groups(points, point_count, lab_stage_model_keys, &arena, &groups);
    for (int g = 0; g < count; g++) {
        int computing = 0;
        for (int i = 0; i < groups[g].count; i++)
            computing += groups[g].points[i]->runs[0]->work.flops > 0;
        int interest = computing >= 3 ? 20 : 0;
        if (lab_stage_series_find(&groups[g], "depth", &arena).count >= 3)
            interest += 30;
        if (lab_stage_series_find(&groups[g], "dim", &arena).count >= 3)
            interest += 30;
        most = interest > most ? interest : most;
    }
    return most;
}

const struct lab_analysis lab_analysis_scaling = {
    .name = "scaling",
    .summary = "how throughput follows a model's depth and width; a cost model; models not run",
    .description =
        "Fits a cost model to the models of a study that ran on the same device from the same NUMA "
        "node. A kernel takes its launch, then the larger of FLOPs / compute rate and bytes / "
        "memory bandwidth. An iteration takes the longest of compute and the copies in each "
        "direction. The model is fitted once for each repeat; intervals are over repeats, at 95%.\n"
        "\n"
        "Parameters that these models don't determine are inconclusive. Each model is predicted "
        "from all others; above a leave-one-out error of 10% no cost model is shown. Models that "
        "weren't run (predict=vit32x10x512) are predicted up to twice the work that was.",
    .options = scaling_options,
    .config_size = sizeof(struct scaling_config),
    .kinds = (const struct lab_analysis_kind[]){{"scaling.compute_rate", LAB_KIND_ESTIMATE},
                                                {"scaling.bandwidth", LAB_KIND_ESTIMATE},
                                                {"scaling.launch", LAB_KIND_ESTIMATE},
                                                {"scaling.depth", LAB_KIND_ESTIMATE},
                                                {"scaling.width", LAB_KIND_ESTIMATE},
                                                {"scaling.shape", LAB_KIND_ESTIMATE},
                                                {"scaling.prediction", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = scaling_interest,
    LAB_PARTS_OF("groups", figure_fields),
    .run = scaling_run,
};
