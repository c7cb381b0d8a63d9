/*
 * words.c: a crossover in sentences. What bounds a model is its own claim in every member of a
 * pool; the interpolated value says only where between models it lies.
 */
#include "analysis/crossover/crossover.h"

#include "analysis/analysis_words.h"
#include "base/list.h"
#include "base/str.h"

#include <string.h>

#define WIDE       3 /* times the work of the model below: a line over more says little */
#define NAMED_MOST 2 /* of models between those that are bound for certain */

struct sides { /* NULL = no model is bound so for certain */
    const struct crossover_model *transfer, *compute;
    int first, last; /* models between them: neither, or not in every member */
};

const char *crossover_model_name(const struct crossover_model *model) {
    return model->point->runs[0]->model;
}

static const struct crossover_model *find_model(const struct crossover_series *series,
                                                const char *name) {
    for (int m = 0; m < series->count; m++)
        if (lab_str_equal(crossover_model_name(series->models[m]), name))
            return series->models[m];
    return NULL;
}

/* Wherever it was run. */
static bool is_bound(const struct crossover_pool *pool, int model, const char *bound) {
    const char *name = crossover_model_name(pool->members[0]->models[model]);
    for (int i = 0; i < pool->count; i++) {
        const struct crossover_model *own = find_model(pool->members[i], name);
        if (own && !lab_str_equal(own->bound, bound))
            return false;
    }
    return true;
}

static struct sides find_sides(const struct crossover_pool *pool) {
    const struct crossover_series *series = pool->members[0];
    int first = 0, last = series->count;
    while (first < last && is_bound(pool, first, "transfer"))
        first++;
    while (last > first && is_bound(pool, last - 1, "compute"))
        last--;
    return (struct sides){first > 0 ? series->models[first - 1] : NULL,
                          last < series->count ? series->models[last] : NULL, first, last};
}

/* One run each: the models on both sides of the value. */
static struct sides find_sides_of_value(const struct lab_claim *claim,
                                        const struct crossover_series *series) {
    struct sides sides = {NULL, NULL, 0, 0};
    for (int m = 0; m < series->count && !sides.compute; m++)
        if (1e9 * series->models[m]->gflop > claim->effect)
            sides.compute = series->models[m];
        else
            sides.transfer = series->models[m];
    return sides;
}

/* Between neighbours of about the same work: "at 0.669 GFLOP/sample, interpolated between the
 * tested 0.521 and 0.9 (95% CI [0.662, 0.676] covers the 5 runs, not interpolation)". NULL = they
 * are far apart, and a line between them says little. */
static const char *value_words(const struct lab_claim *claim, const struct sides *sides,
                               struct lab_arena *arena) {
    double low = sides->transfer->gflop, high = sides->compute->gflop;
    const char *value = lab_claim_short(claim, arena), *interval = strstr(value, " [");
    if (sides->first < sides->last || high > WIDE * low || !interval)
        return NULL;
    return lab_arena_printf(arena,
                            "at %.*s, interpolated between the tested %.3g and %.3g (95%% CI%s "
                            "covers the %d runs, not interpolation)",
                            (int)(interval - value), value, low, high, interval, claim->n);
}

/* " vit32x4x256 (0.521 GFLOP/sample): balanced, compute time within ±1.7% of transfer time.", "…:
 * compute-bound on GPUs 0 and 1, inconclusive on GPU 2." True = balanced everywhere. */
static bool add_between(const struct crossover_pool *pool, const struct crossover_model *model,
                        struct lab_arena *arena, struct lab_str *text) {
    static const char *const bounds[] = {"transfer", "compute", "both", "inconclusive"},
                             *const words[] = {"transfer-bound", "compute-bound", "balanced",
                                               "inconclusive"};
    const char *name = crossover_model_name(model), *separator = ":";
    int run = 0;
    bool balanced = false;
    for (int i = 0; i < pool->count; i++)
        run += find_model(pool->members[i], name) != NULL;
    lab_str_printf(text, " %s (%.3g GFLOP/sample)", name, model->gflop);
    for (int b = 0; b < LAB_COUNT_OF(bounds); b++) {
        const char **devices = NULL;
        int count = 0, own_count = 0;
        double bound = 0;
        for (int i = 0; i < pool->count; i++) {
            const struct crossover_model *own = find_model(pool->members[i], name);
            if (!own || !lab_str_equal(own->bound, bounds[b]))
                continue;
            own_count++;
            bound = own->excess.bound > bound ? own->excess.bound : bound;
            const char *device =
                lab_study_device_title(own->point->runs[0]->ranks[0].device, arena);
            if (lab_list_find_text(devices, count, device) < 0)
                LAB_ADD(devices, count, arena) = device;
        }
        if (own_count == 0)
            continue;
        lab_str_printf(text, "%s %s", separator, words[b]);
        if (own_count < run)
            lab_str_printf(text, " on %s", lab_words_devices(devices, count, arena));
        else if (lab_str_equal(bounds[b], "both"))
            lab_str_printf(text, ", compute time within ±%.1f%% of transfer time",
                           lab_words_bound_percent(bound));
        balanced |= own_count == run && lab_str_equal(bounds[b], "both");
        separator = ",";
    }
    lab_str_add(text, ".");
    return balanced;
}

const char *crossover_clause(const struct lab_claim *claim, const struct crossover_pool *pool,
                             struct lab_arena *arena) {
    bool certain = claim->verdict == LAB_CLAIM_YES, one = claim->n == 1 && !claim->reason;
    struct sides sides = certain ? find_sides(pool) : find_sides_of_value(claim, pool->members[0]);
    if (!sides.transfer || !sides.compute || (!certain && !one))
        return lab_claim_sentence(claim, arena);
    const char *models = lab_arena_printf(arena, "between %s and %s",
                                          crossover_model_name(sides.transfer),
                                          crossover_model_name(sides.compute)),
               *value = certain ? value_words(claim, &sides, arena) : NULL,
               *range = certain ? lab_arena_printf(arena, "%.3g to %.3g GFLOP/sample",
                                                   sides.transfer->gflop, sides.compute->gflop)
                                : "1 run each: no verdict";
    return value ? lab_arena_printf(arena, "%s: crossover %s", claim->subject, value)
                 : lab_arena_printf(arena, "%s: crossover %s (%s)", claim->subject, models, range);
}

const char *crossover_sentence(const struct lab_claim *claim, const struct crossover_pool *pool,
                               const char *of, struct lab_arena *arena) {
    struct sides sides = find_sides(pool);
    if (claim->verdict != LAB_CLAIM_YES || (!sides.transfer && !sides.compute))
        return lab_arena_printf(arena, "%s.", crossover_clause(claim, pool, arena));
    LAB_AUTO(str, text);
    bool balanced = false;
    lab_str_printf(&text, "%s: %s", claim->subject, of);
    if (sides.transfer)
        lab_str_printf(&text, "transfer-bound up to %s%s", crossover_model_name(sides.transfer),
                       sides.compute ? ", " : "");
    if (sides.compute)
        lab_str_printf(&text, "compute-bound from %s", crossover_model_name(sides.compute));
    lab_str_add(&text, ".");
    for (int m = sides.first; m < sides.last && sides.last - sides.first <= NAMED_MOST; m++)
        balanced |= add_between(pool, pool->members[0]->models[m], arena, &text);
    if (sides.last - sides.first > NAMED_MOST)
        lab_str_printf(&text, " Neither for certain: %d models.", sides.last - sides.first);
    const char *value = sides.transfer && sides.compute ? value_words(claim, &sides, arena) : NULL;
    if (value)
        lab_str_printf(&text, " Crossover %s.", value);
    else if (!balanced && sides.transfer && sides.compute)
        lab_str_printf(&text, " Crossover between %.3g and %.3g GFLOP/sample.",
                       sides.transfer->gflop, sides.compute->gflop);
    return lab_arena_strdup(arena, text.text);
}
