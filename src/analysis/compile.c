/*
 * compile.c: `gpulab analyze compile`: what compiling a model (fused operations, captured graphs)
 * changes: the throughput, over all models and for each; the penalty of a remote NUMA node; the
 * time that it takes, and at how many samples it breaks even. Models without arithmetic have
 * nothing to compile and aren't tested.
 */
#include "analysis/analysis_group.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
#include "analysis/compile/break_even.h"
#include "analysis/stages/stages.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 3 /* of models in a sentence */
#define NODES_MOST 8

static const char *const pair_keys[] = {"compile_model", NULL};
static const char *const node_keys[] = {"compile_model", "numa_node", NULL};

struct pair { /* points that differ in compile_model alone */
    const struct lab_study_point *plain, *compiled;
    const char *model;
};

struct row { /* a model: the mean over all pairs */
    const char *name;
    double gflop; /* of a sample */
    double rate;  /* uncompiled */
    const char *per_second;
    struct lab_claim gain;       /* "compile.model" */
    struct lab_claim cost;       /* "compile.cost", in seconds */
    struct lab_claim break_even; /* "compile.break_even", in samples; where it gains */
};

struct figures {
    int models, higher, lower;
    struct lab_claim gain, numa;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, models, "models", "Models", LAB_UNIT_COUNT, "Models"),
    LAB_FIELD(struct figures, higher, "higher", "Higher", LAB_UNIT_COUNT, "Higher"),
    LAB_FIELD(struct figures, lower, "lower", "Lower", LAB_UNIT_COUNT, "Lower"),
    LAB_FIELD(struct figures, gain, "gain", "Mean gain", LAB_UNIT_CHANGE, "Mean gain"),
    LAB_FIELD(struct figures, numa, "numa", "Remote NUMA nodes", LAB_UNIT_CHANGE),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct row, name, "model", "Model", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE),
    LAB_FIELD(struct row, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER, .yields = 2),
    LAB_FIELD(struct row, rate, "rate_per_s", NULL, LAB_UNIT_PER_SECOND),
    LAB_FIELD(struct row, per_second, NULL, "Uncompiled, samples/s", LAB_UNIT_FIGURE, .yields = 1),
    LAB_FIELD(struct row, gain, "gain", "Throughput", LAB_UNIT_CHANGE),
    LAB_FIELD(struct row, cost, "cost_ms", "Compile time", LAB_UNIT_TIME, .yields = 3),
    LAB_FIELD(struct row, break_even, "break_even_samples", "Breaks even after", LAB_UNIT_NUMBER),
};

struct all { /* of a study */
    const struct lab_study_table *study;
    struct lab_arena *arena;
    struct pair *pairs; /* of models with arithmetic, least first */
    int pair_count;
    const char **others; /* models without */
    int other_count;
    struct row *models;
    int model_count;
    struct lab_claim gain, numa; /* "compile.gain", "compile.numa" */
};

/* --- pairs --- */

static int by_complexity(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return lab_study_order(lab_study_complexity(x->plain->runs[0]), x->model,
                           lab_study_complexity(y->plain->runs[0]), y->model);
}

static void list_pairs(struct all *all, const struct lab_study_point *points, int count) {
    struct lab_study_group *groups;
    int group_count = lab_study_groups(points, count, pair_keys, all->arena, &groups);
    for (int g = 0; g < group_count; g++) {
        const struct lab_study_run *run = groups[g].points[0]->runs[0];
        struct pair pair = {lab_study_find(&groups[g], -1, "compile_model", 0),
                            lab_study_find(&groups[g], -1, "compile_model", 1), run->model};
        if (!pair.plain || !pair.compiled)
            continue;
        if (lab_study_can_compile(run))
            LAB_ADD(all->pairs, all->pair_count, all->arena) = pair;
        else if (lab_list_find_text(all->others, all->other_count, run->model) < 0)
            LAB_ADD(all->others, all->other_count, all->arena) = run->model;
    }
    if (all->pair_count > 0)
        qsort(all->pairs, (size_t)all->pair_count, sizeof *all->pairs, by_complexity);
}

/* NULL, -1 = any. */
static bool is_of(const struct pair *pair, const char *model, int node) {
    return (!model || lab_str_equal(pair->model, model)) &&
           (node < 0 || pair->plain->runs[0]->ranks[0].numa_node == node);
}

/* --- claims --- */

/* The mean over all pairs of a model on a NUMA node. */
static struct lab_claim claim_gain(const struct all *all, const char *model, int node,
                                   const char *kind, const char *subject) {
    struct lab_contrast contrast = {.arena = all->arena};
    int pairs = 0;
    for (int i = 0; i < all->pair_count; i++)
        pairs += is_of(&all->pairs[i], model, node);
    for (int i = 0; i < all->pair_count; i++)
        if (is_of(&all->pairs[i], model, node))
            lab_contrast_add_pair(&contrast, all->pairs[i].plain, all->pairs[i].compiled,
                                  1.0 / pairs);
    return lab_claim_named(lab_claim_estimate(&contrast, LAB_STUDY_RATE), kind, subject,
                           "uncompiled", "throughput");
}

/* Whether compiling changes the penalty of the farthest node: a difference of differences. */
static struct lab_claim claim_numa(const struct all *all, const struct lab_study_point *points,
                                   int count) {
    struct lab_contrast contrast = {.arena = all->arena};
    struct lab_study_group *groups;
    int group_count = lab_study_groups(points, count, node_keys, all->arena, &groups), found = 0;
    for (int g = 0; g < group_count; g++) {
        const struct lab_study_point *at[2][2]; /* plain and compiled, from near and far */
        int node[2];
        bool whole = lab_study_can_compile(groups[g].points[0]->runs[0]) &&
                     lab_study_far_node(&groups[g], &node[0], &node[1]);
        for (int i = 0; i < 4 && whole; i++) {
            int compiled = i / 2, far = i % 2;
            at[compiled][far] = lab_study_find(&groups[g], node[far], "compile_model", compiled);
            whole = at[compiled][far];
        }
        if (!whole)
            continue;
        lab_contrast_add_pair(&contrast, at[1][0], at[1][1], 1);
        lab_contrast_add_pair(&contrast, at[0][0], at[0][1], -1);
        found++;
    }
    for (int t = 0; t < contrast.count; t++)
        contrast.terms[t].weight /= found;
    return lab_claim_named(lab_claim_estimate(&contrast, LAB_STUDY_RATE), "compile.numa",
                           "compiled", "uncompiled", LAB_CLAIM_REMOTE);
}

/* --- cost and break-even --- */

/* What a run needs once: setting up, and what the first iteration takes beyond a usual one; of the
 * slowest rank, since several begin when all are ready. NaN = unknown. */
static double once_s(const struct lab_study_run *run) {
    double setup_s = NAN, first_s = NAN, usual_s = 1e-3 * run->result->latency_ms_median;
    for (int i = 0; i < run->result->rank_count; i++) {
        setup_s = fmax(setup_s, run->result->ranks[i].setup_s);
        first_s = fmax(first_s, 1e-3 * run->result->ranks[i].first_iteration_ms);
    }
    first_s -= isnan(usual_s) ? run->time_s : usual_s;
    if (isnan(setup_s) || isnan(first_s))
        return isnan(setup_s) ? first_s : setup_s;
    return setup_s + first_s;
}

static const struct lab_study_run *in_block(const struct lab_study_point *point, int block) {
    for (int i = 0; i < point->count; i++)
        if (point->runs[i]->run->repeat == block)
            return point->runs[i];
    return NULL;
}

struct balance {            /* of a block, mean over a model's pairs; NaN = it isn't whole */
    double cost_s, saved_s; /* once; with each sample */
};

static struct balance in_balance(const struct all *all, const char *model, int block) {
    struct balance sum = {0, 0};
    int pairs = 0;
    for (int i = 0; i < all->pair_count; i++) {
        if (!is_of(&all->pairs[i], model, -1))
            continue;
        const struct lab_study_run *plain = in_block(all->pairs[i].plain, block),
                                   *compiled = in_block(all->pairs[i].compiled, block);
        sum.cost_s += plain && compiled ? once_s(compiled) - once_s(plain) : (double)NAN;
        sum.saved_s += plain && compiled ? 1 / plain->rate - 1 / compiled->rate : (double)NAN;
        pairs++;
    }
    return (struct balance){sum.cost_s / pairs, sum.saved_s / pairs};
}

static void claim_costs(const struct all *all, struct row *row) {
    double *costs_s = NULL, *saved_s = NULL;
    int cost_count = 0, saved_count = 0, blocks = 0;
    for (int i = 0; i < all->study->run_count; i++)
        blocks = (int)fmax(blocks, all->study->runs[i].run->repeat + 1);
    for (int b = 0; b < blocks; b++) {
        struct balance balance = in_balance(all, row->name, b);
        if (isnan(balance.cost_s) || isnan(balance.saved_s))
            continue;
        LAB_ADD(costs_s, cost_count, all->arena) = balance.cost_s;
        LAB_ADD(saved_s, saved_count, all->arena) = balance.saved_s;
    }
    row->cost = lab_claim_named(lab_claim_from_amounts(costs_s, cost_count, "s"), "compile.cost",
                                row->name, "", "compile time");
    row->cost.scope = row->gain.scope;
    row->cost.scope_count = row->gain.scope_count;
    struct lab_claim none = lab_claim_none;
    none.unit = "samples";
    bool gains = row->gain.verdict == LAB_CLAIM_YES && row->gain.effect > 0;
    row->break_even =
        lab_claim_named(gains ? compile_break_even(costs_s, saved_s, cost_count) : none,
                        "compile.break_even", row->name, "", "break-even after");
    row->break_even.scope = row->gain.scope;
    row->break_even.scope_count = row->gain.scope_count;
}

/* --- rows --- */

static void add_model(struct all *all, const struct pair *pair) {
    if (LAB_FIND(all->models, all->model_count, name, pair->model) >= 0)
        return;
    struct row row = {.name = pair->model,
                      .gflop = 1e-9 * lab_study_complexity(pair->plain->runs[0])};
    double logs = 0;
    int pairs = 0;
    for (int i = 0; i < all->pair_count; i++)
        if (is_of(&all->pairs[i], row.name, -1)) {
            const struct lab_study_point *plain = all->pairs[i].plain;
            logs += log(lab_study_estimate(plain->rates, plain->count).value);
            pairs++;
        }
    row.rate = exp(logs / pairs);
    row.per_second = lab_words_number(row.rate, all->arena);
    row.gain = claim_gain(all, row.name, -1, "compile.model",
                          lab_arena_printf(all->arena, "%s, compiled", row.name));
    LAB_ADD(all->models, all->model_count, all->arena) = row;
}

/* Over all models and by model: one family. What compiling gains makes it no easier to find that
 * NUMA nodes change it: that is another question. */
static void judge(struct all *all) {
    struct lab_claim **family = NULL;
    int count = 0;
    LAB_ADD(family, count, all->arena) = &all->gain;
    for (int i = 0; i < all->model_count; i++)
        LAB_ADD(family, count, all->arena) = &all->models[i].gain;
    lab_claim_adjust(family, count);
}

static struct all look_at(const struct lab_study_table *study, struct lab_arena *arena) {
    struct all all = {.study = study, .arena = arena};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    list_pairs(&all, points, count);
    for (int i = 0; i < all.pair_count; i++)
        add_model(&all, &all.pairs[i]);
    all.gain = claim_gain(&all, NULL, -1, "compile.gain",
                          all.model_count == 1 ? all.models[0].gain.subject : "Compiled");
    if (all.model_count > 1)
        all.gain.mean_of = lab_study_pair_words(study, all.pair_count, all.model_count, arena);
    all.numa = claim_numa(&all, points, count);
    judge(&all);
    for (int i = 0; i < all.model_count; i++)
        claim_costs(&all, &all.models[i]);
    return all;
}

/* --- the whole --- */

static bool changes_so(const struct row *row, bool higher) {
    return row->gain.verdict == LAB_CLAIM_YES && (row->gain.effect > 0) == higher;
}

/* Whether the answer names it: smaller gains aren't worth it, by the rule of `recommend`. */
static bool is_named(const struct row *row, bool higher) {
    return changes_so(row, higher) && (!higher || row->gain.effect >= LAB_CLAIM_WORTH);
}

static int count_gains(const struct all *all, bool higher) {
    int count = 0;
    for (int i = 0; i < all->model_count; i++)
        count += changes_so(&all->models[i], higher);
    return count;
}

/* "vit32x2x128 and vit32x2x256" that don't change so; NULL = there are more than two, or none. */
static const char *other_models(const struct all *all, bool higher, struct lab_arena *arena) {
    const char *names = NULL;
    int count = 0;
    for (int i = 0; i < all->model_count; i++)
        if (!is_named(&all->models[i], higher)) {
            names = count++ ? lab_arena_printf(arena, "%s and %s", names, all->models[i].name)
                            : all->models[i].name;
        }
    return count <= 2 ? names : NULL;
}

/* "vit32x2x128 and vit32x2x256", "3 others" without a difference, or with neither that nor none. */
static const char *unchanged_models(const struct all *all, bool open, struct lab_arena *arena) {
    const char *names = "";
    int count = 0;
    for (int i = 0; i < all->model_count; i++) {
        enum lab_claim_verdict verdict = all->models[i].gain.verdict;
        if (open ? verdict != LAB_CLAIM_NO && verdict != LAB_CLAIM_YES : verdict == LAB_CLAIM_NO)
            names = lab_arena_printf(arena, "%s%s%s", names, count++ ? " and " : "",
                                     all->models[i].name);
    }
    return count > 2 ? lab_arena_printf(arena, "%d others", count) : names;
}

/* "transfer-bound " where that is why models don't differ. */
static const char *why_unchanged(const struct all *all, struct lab_arena *arena) {
    bool bound = true;
    for (int m = 0; m < all->model_count; m++) {
        const struct lab_study_point **points = NULL;
        int count = 0;
        for (int i = 0; i < all->pair_count; i++)
            if (all->models[m].gain.verdict == LAB_CLAIM_NO &&
                is_of(&all->pairs[i], all->models[m].name, -1))
                LAB_ADD(points, count, arena) = all->pairs[i].plain;
        bound = bound && (count == 0 || lab_stage_is_transfer_bound(points, count, arena));
    }
    return bound ? "transfer-bound " : "";
}

/* "vit32x2x128, vit32x4x256", "all but vit32x2x128", "8 of 13 models: vit32x2x128 to vit32x6x512"
 * where those follow each other by their work; NULL = none changes so. */
static const char *changed_models(const struct all *all, bool higher, struct lab_arena *arena) {
    const char *names = "";
    int count = 0, first = 0, last = 0;
    for (int i = 0; i < all->model_count; i++) {
        const struct row *row = &all->models[i];
        if (!is_named(row, higher))
            continue;
        names = lab_arena_printf(arena, "%s%s%s", names, count ? ", " : "", row->name);
        first = count++ ? first : i;
        last = i;
    }
    if (count == 0 || count == all->model_count)
        return count ? lab_arena_printf(arena, "all %d models", count) : NULL;
    const char *others = other_models(all, higher, arena);
    if (others && 2 * count > all->model_count)
        return lab_arena_printf(arena, "all but %s", others);
    if (count <= NAMES_MOST)
        return names;
    const char *range =
        lab_arena_printf(arena, ": %s to %s", all->models[first].name, all->models[last].name);
    return lab_arena_printf(arena, "%d of %d models%s", count, all->model_count,
                            last - first + 1 == count ? range : "");
}

/* ", break-even after 1795 to 7376 samples (compile time 5.74 to 35.1 ms)" of models that gain;
 * "" = unknown, or simulated, which takes far less than a compiler does. */
static const char *cost_words(const struct all *all, struct lab_arena *arena) {
    double low = INFINITY, high = 0, fast_s = INFINITY, slow_s = 0;
    for (int i = 0; i < all->model_count; i++) {
        const struct row *row = &all->models[i];
        if (!is_named(row, true) || isnan(row->break_even.effect) || isnan(row->cost.effect))
            continue;
        low = fmin(low, row->break_even.effect);
        high = fmax(high, row->break_even.effect);
        fast_s = fmin(fast_s, row->cost.effect);
        slow_s = fmax(slow_s, row->cost.effect);
    }
    if (!(high >= low) || !(fast_s > 0) || all->study->simulated)
        return "";
    const char *fast = lab_words_time(fast_s, arena), *slow = lab_words_time(slow_s, arena);
    bool alike = lab_str_equal(fast, slow);
    if (!alike && lab_str_equal(strchr(fast, ' '), strchr(slow, ' '))) /* the unit stands once */
        fast = lab_arena_strndup(arena, fast, strcspn(fast, " "));
    return lab_arena_printf(arena, ", break-even after %s%.0f samples (compile time %s%s%s)",
                            high > low ? lab_arena_printf(arena, "%.0f to ", low) : "", high, fast,
                            alike ? "" : " to ", alike ? "" : slow);
}

/* "below 1%: vit16x12x1024 (+0.9%)" of models that gain for certain, and too little; "" = none. */
static const char *small_words(const struct all *all, struct lab_arena *arena) {
    LAB_AUTO(str, names);
    int count = 0;
    for (int i = 0; i < all->model_count; i++)
        if (changes_so(&all->models[i], true) && !is_named(&all->models[i], true) &&
            count++ < NAMES_MOST)
            lab_str_printf(&names, "%s%s (+%.1f%%)", count > 1 ? ", " : "", all->models[i].name,
                           100 * all->models[i].gain.effect);
    if (count > NAMES_MOST)
        lab_str_printf(&names, ", %d more", count - NAMES_MOST);
    return count ? lab_arena_printf(arena, "below %.0f%%: %s", 100 * LAB_CLAIM_WORTH, names.text)
                 : "";
}

/* Which models gain, what the mean is, what the others show. */
static const char *make_answer(const struct all *all, struct lab_arena *arena) {
    const char *text = lab_arena_printf(arena, "%s.", lab_claim_sentence(&all->gain, arena));
    if (all->model_count > 1 && all->gain.n > 1) {
        const char *higher = changed_models(all, true, arena),
                   *lower = changed_models(all, false, arena);
        double bound = 0, least = INFINITY, most = 0;
        int same = 0, rest = all->model_count - count_gains(all, true) - count_gains(all, false);
        for (int i = 0; i < all->model_count; i++)
            if (all->models[i].gain.verdict == LAB_CLAIM_NO) {
                bound = fmax(bound, all->models[i].gain.bound);
                same++;
            } else if (is_named(&all->models[i], true)) {
                least = fmin(least, all->models[i].gain.effect);
                most = fmax(most, all->models[i].gain.effect);
            }
        if (higher)
            text = lab_arena_printf(arena, "For throughput, compile %s. %s", higher, text);
        const char *small = small_words(all, arena);
        if (most > least)
            text = lab_arena_printf(arena, "%s Models that gain: +%.1f to +%.1f%%%s%s%s.", text,
                                    100 * least, 100 * most, cost_words(all, arena),
                                    *small ? "; " : "", small);
        else if (*small)
            text = lab_arena_printf(arena, "%s Gain %s.", text, small);
        if (lower)
            text = lab_arena_printf(arena, "%s Lower throughput for %s.", text, lower);
        if (rest > 0 && same == rest && (higher || lower))
            text = lab_arena_printf(arena, "%s No difference%s for %s%s.", text,
                                    lab_claim_larger(bound, arena), why_unchanged(all, arena),
                                    unchanged_models(all, false, arena));
        else if (rest > 0 && (higher || lower))
            text = lab_arena_printf(arena, "%s Inconclusive for %s.", text,
                                    unchanged_models(all, true, arena));
    }
    if (all->numa.verdict != LAB_CLAIM_NOT_TESTED)
        text = lab_arena_printf(arena, "%s %s.", text,
                                lab_words_capital(lab_claim_sentence(&all->numa, arena), arena));
    return text;
}

struct bar { /* a model's gain on a NUMA node */
    const char *model, *node;
    struct lab_claim gain;
};

static const struct lab_field bar_fields[] = {
    LAB_FIELD(struct bar, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct bar, node, "node", "NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct bar, gain, "gain", "Throughput", LAB_UNIT_CHANGE),
};

/* Ascending; more than a chart shows are one: -1, any. */
static int list_nodes(const struct all *all, int *nodes) {
    int count = 0;
    for (int i = 0; i < all->pair_count; i++) {
        int node = all->pairs[i].plain->runs[0]->ranks[0].numa_node, at = 0;
        while (at < count && nodes[at] < node)
            at++;
        if (node < 0 || (at < count && nodes[at] == node))
            continue;
        if (count == NODES_MOST) {
            count = 0;
            break;
        }
        memmove(nodes + at + 1, nodes + at, (size_t)(count - at) * sizeof *nodes);
        nodes[at] = node;
        count++;
    }
    if (count == 0)
        nodes[count++] = -1;
    return count;
}

static void add_chart(struct lab_analysis_result *result, const struct all *all,
                      const char *suffix) {
    struct lab_arena *arena = all->arena;
    struct bar *bars = NULL;
    int nodes[NODES_MOST], node_count = list_nodes(all, nodes), count = 0;
    for (int n = 0; n < node_count; n++)
        for (int m = 0; m < all->model_count; m++)
            LAB_ADD(bars, count, arena) = (struct bar){
                all->models[m].name,
                nodes[n] < 0 ? "all NUMA nodes" : lab_arena_printf(arena, "NUMA node %d", nodes[n]),
                claim_gain(all, all->models[m].name, nodes[n], "", "")};
    struct lab_chart chart = {.name = lab_arena_printf(arena, "compile_benefit%s", suffix),
                              .title = node_count > 1
                                           ? "Throughput of compiled models, by NUMA node"
                                           : "Throughput of compiled models",
                              .caption = "Compared with uncompiled.",
                              .intervals = "95% intervals over runs",
                              .simulated = all->study->simulated};
    lab_rows_add_series(lab_chart_add_panel(&chart, NULL, lab_axis("Model, by work of a sample"),
                                            lab_axis("Change of throughput [%]"), arena),
                        &LAB_ROWS(bar_fields, bars, count), "model", "gain",
                        node_count > 1 ? "node" : NULL, LAB_CHART_BARS, arena);
    lab_analysis_add_chart(result, chart, arena);
}

/* Why cells of the table are empty. */
static void note_empty(const struct all *all, const char *const **notes, struct lab_arena *arena) {
    int free = 0, unknown = 0, unpaid = 0;
    for (int i = 0; i < all->model_count; i++) {
        const struct row *row = &all->models[i];
        free += isnan(row->cost.effect) && row->cost.n > 0;
        unknown += row->cost.n == 0;
        unpaid += row->cost.n > 0 && isnan(row->break_even.effect);
    }
    if (free)
        lab_analysis_note(notes, arena,
                          "No compile time: set-up and first iteration took no longer than "
                          "uncompiled (%d of %d models).",
                          free, all->model_count);
    if (unknown)
        lab_analysis_note(notes, arena,
                          "No compile time: no repeat has both runs of all pairs, or they lack "
                          "their set-up times (%d of %d models).",
                          unknown, all->model_count);
    if (unpaid)
        lab_analysis_note(notes, arena,
                          "No break-even: no gain was found, or it is too small next to its "
                          "spread (%d of %d models).",
                          unpaid, all->model_count);
}

static void add_study(struct lab_analysis_result *result, const struct all *all, const char *suffix,
                      struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, all->study->name, arena);
    struct lab_rows models = LAB_ROWS(model_fields, all->models, all->model_count);
    struct figures figures = {all->model_count, count_gains(all, true), count_gains(all, false),
                              all->gain, all->numa};
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    part->answer = make_answer(all, arena);
    struct lab_doc_table *table = lab_rows_add_table(part, "models", "By model", &models, arena);
    for (int i = 0; i < table->column_count && all->study->simulated; i++)
        if (lab_str_equal(table->columns[i].title, "Compile time"))
            lab_analysis_own_columns(table, arena)[i].title = "Compile time (simulated)";
    if (all->study->simulated)
        lab_analysis_note(&part->notes, arena,
                          "Compile times and break-evens are simulated: a compiler takes longer.");
    note_empty(all, &part->notes, arena);
    for (int i = 0; i < all->other_count; i++)
        lab_analysis_note(&part->notes, arena, "%s: not compared, it has nothing to compile.",
                          all->others[i]);
    lab_analysis_add_claim(result, &all->gain, arena);
    if (all->numa.verdict != LAB_CLAIM_NOT_TESTED) /* one node was run */
        lab_analysis_add_claim(result, &all->numa, arena);
    lab_rows_add_claims(result, &models, arena);
    if (all->study->simulated) {
        result->further = "device=cuda";
        result->tests = "Measure compile times and break-evens on real GPUs";
    }
    add_chart(result, all, suffix);
}

static bool has_runs_left(const struct lab_study_table *study) {
    return study->planned_count > study->run_count + study->failed_count;
}

static int compile_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        struct all all = look_at(&input->studies[i], arena);
        if (all.pair_count > 0)
            add_study(result, &all, lab_analysis_suffix(i, arena), arena);
        lab_study_add_notes(&input->studies[i],
                            lab_analysis_prefix(input, &input->studies[i], arena), &result->notes,
                            arena);
    }
    if (result->part_count == 0)
        result->untested =
            input->study_count == 1 && has_runs_left(&input->studies[0])
                ? "no model with arithmetic has run both compiled and uncompiled yet."
                : "no model with arithmetic ran both compiled and uncompiled. gpulab run "
                  "compile_study tests it.";
    return 0;
}

static int compile_interest(const struct lab_study_table *study) {
    return lab_study_setting_values(study, "compile_model") > 1 ? 85 : 0;
}

const struct lab_analysis lab_analysis_compile = {
    .name = "compile",
    .summary = "what compiling a model gains, how long it takes, and where that breaks even",
    .description =
        "Compares each model with compile_model=true and with false, on the same device and NUMA "
        "node: the throughput, first as the mean over all models; the compile time (set-up, and "
        "the first iteration beyond a usual one); and the number of samples at which compiling "
        "breaks even. Where several NUMA nodes were run, also whether compiling changes the "
        "penalty "
        "of a remote one. Intervals are over runs, at 95%; verdicts of models are corrected as a "
        "family.",
    .kinds = (const struct lab_analysis_kind[]){{"compile.gain"},
                                                {"compile.model"},
                                                {"compile.numa"},
                                                {"compile.cost", LAB_KIND_ESTIMATE},
                                                {"compile.break_even", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = compile_interest,
    LAB_PARTS_OF("studies", figure_fields),
    .run = compile_run,
};
