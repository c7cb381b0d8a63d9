/*
 * marginal.c: one choice at a time: node against node, device against device, over all places that
 * agree in everything else.
 *
 * Places by themselves are many and have few runs each, so that hardly two can be told apart. A
 * choice that was tried in several places is measured as often: the places are its repeats.
 */
#include "analysis/recommend/recommend.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95

/* --- levels: what a place has chosen --- */

static bool same_batch(const struct lab_place *a, const struct lab_place *b) {
    return a->batch == b->batch || (isnan(a->batch) && isnan(b->batch));
}

static bool same_level(const struct lab_place *a, const struct lab_place *b,
                       enum lab_place_factor_kind kind) {
    switch (kind) {
    case LAB_FACTOR_HOME:
        return a->local == b->local;
    case LAB_FACTOR_NODE:
        return lab_str_equal(a->nodes, b->nodes);
    case LAB_FACTOR_DEVICE:
        return lab_str_equal(a->devices, b->devices);
    case LAB_FACTOR_BATCH:
        return same_batch(a, b);
    case LAB_FACTOR_COMPILE:
        return a->compiled == b->compiled;
    case LAB_FACTOR_SETTINGS:
        return lab_str_equal(a->settings, b->settings);
    }
    return true;
}

/* Whether they agree in all else. Own nodes and others are compared whatever their numbers are. */
static bool same_block(const struct lab_place *a, const struct lab_place *b,
                       enum lab_place_factor_kind kind) {
    bool node = kind == LAB_FACTOR_NODE || kind == LAB_FACTOR_HOME;
    return (kind == LAB_FACTOR_SETTINGS || same_level(a, b, LAB_FACTOR_SETTINGS)) &&
           (node || same_level(a, b, LAB_FACTOR_NODE)) &&
           (kind == LAB_FACTOR_DEVICE || same_level(a, b, LAB_FACTOR_DEVICE)) &&
           (kind == LAB_FACTOR_BATCH || same_level(a, b, LAB_FACTOR_BATCH)) &&
           (kind == LAB_FACTOR_COMPILE || same_level(a, b, LAB_FACTOR_COMPILE));
}

const char *lab_place_level(const struct lab_place *place, enum lab_place_factor_kind kind,
                            struct lab_arena *arena) {
    bool several = place->devices[0] == '[';
    switch (kind) {
    case LAB_FACTOR_HOME:
        return place->local ? "its own node" : "another node";
    case LAB_FACTOR_NODE:
        return lab_arena_printf(arena, place->nodes[0] == '[' ? "nodes %s" : "node %s",
                                place->nodes);
    case LAB_FACTOR_DEVICE:
        return lab_arena_printf(arena, several ? "devices %s" : "device %s", place->devices);
    case LAB_FACTOR_BATCH:
        return lab_arena_printf(arena, "batch %.0f", place->batch);
    case LAB_FACTOR_SETTINGS:
        return *place->settings ? place->settings : "NCCL's own choices";
    case LAB_FACTOR_COMPILE:
        break;
    }
    return place->compiled ? "compiled" : "not compiled";
}

/* --- one level against another --- */

struct side { /* of a block: places of one level */
    double sum;
    double weight; /* Σ 1 / runs */
    int count;
    const struct lab_place *last;
};

static struct side add_up(const struct lab_place_group *group, const struct lab_place *in,
                          const struct lab_place *level, enum lab_place_factor_kind kind) {
    struct side side = {0};
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        if (!same_level(place, level, kind) || !same_block(place, in, kind))
            continue;
        side.sum += log(place->rate);
        side.weight += 1.0 / place->point->count;
        side.count++;
        side.last = place;
    }
    return side;
}

static double variance_of(const struct side *side) {
    return side->weight / ((double)side->count * side->count);
}

struct blocks { /* differences of logarithms, first − second */
    double *differences;
    double weight; /* variance of their sum, in units of a run's */
    size_t count;
    const struct lab_place *first, *second; /* of the last block */
    bool single;                            /* each side of it is one place */
};

static struct blocks find_blocks(const struct lab_place_group *group, int first, int second,
                                 enum lab_place_factor_kind kind, struct lab_arena *arena) {
    struct blocks blocks = {.differences =
                                lab_arena_alloc(arena, (size_t)group->count + 1, sizeof(double))};
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        bool seen = !same_level(place, &group->places[first], kind);
        for (int k = 0; k < i && !seen; k++)
            seen = same_level(&group->places[k], place, kind) &&
                   same_block(&group->places[k], place, kind);
        if (seen)
            continue;
        struct side a = add_up(group, place, &group->places[first], kind),
                    b = add_up(group, place, &group->places[second], kind);
        if (b.count == 0)
            continue;
        blocks.differences[blocks.count++] = a.sum / a.count - b.sum / b.count;
        blocks.weight += variance_of(&a) + variance_of(&b);
        blocks.first = a.last;
        blocks.second = b.last;
        blocks.single = a.count == 1 && b.count == 1;
    }
    return blocks;
}

/* The variance of a run's logarithm, over the repeats of all places. */
static double run_variance(const struct lab_place_group *group, double *ret_freedom) {
    double squares = 0;
    *ret_freedom = 0;
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_point *point = group->places[i].point;
        for (int k = 0; k < point->count; k++) {
            double distance = log(point->rates[k]) - log(group->places[i].rate);
            squares += distance * distance;
        }
        *ret_freedom += point->count - 1;
    }
    return squares / *ret_freedom;
}

static bool is_repeated(const struct lab_place_group *group) {
    for (int i = 0; i < group->count; i++)
        if (group->places[i].point->count < 2)
            return false;
    return true;
}

/* With repeats everywhere, their spread; else how far the blocks are from each other, which holds
 * whatever differs from run to run and from block to block. A single block is two places. */
static struct lab_study_ratio compare_levels(const struct lab_place_group *group, int first,
                                             int second, enum lab_place_factor_kind kind,
                                             struct lab_arena *arena, int *ret_blocks) {
    struct lab_study_ratio ratio = {
        .ratio = NAN, .low = NAN, .high = NAN, .bound = NAN, .p = NAN, .spread = NAN};
    struct blocks blocks = find_blocks(group, first, second, kind, arena);
    *ret_blocks = (int)blocks.count;
    if (blocks.count == 0)
        return ratio;
    if (blocks.count == 1 && blocks.single)
        return lab_study_compare(blocks.second->point, blocks.first->point, LAB_STUDY_RATE);
    double n = (double)blocks.count, freedom = n - 1,
           mean = lab_stats_mean(blocks.differences, blocks.count),
           spread = lab_stats_stddev(blocks.differences, blocks.count), error = spread / sqrt(n);
    if (is_repeated(group))
        error = sqrt(run_variance(group, &freedom) * blocks.weight) / n;
    ratio.ratio = exp(mean);
    ratio.base_runs = ratio.other_runs = (int)blocks.count;
    if (!(freedom > 0) || isnan(error))
        return ratio;
    double distance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom);
    ratio.low = exp(mean - distance);
    ratio.high = exp(mean + distance);
    ratio.confidence = CONFIDENCE;
    ratio.bound = fmax(fabs(ratio.low - 1), fabs(ratio.high - 1));
    ratio.p = error > 0 ? lab_stats_t_two_sided(mean / error, freedom) : fabs(mean) > 1e-12 ? 0 : 1;
    return ratio;
}

/* --- factors --- */

/* Devices at home on different nodes: then a node's number says less than whether it is their
 * own. */
static bool homes_differ(const struct lab_place_group *group) {
    const struct lab_place *local = NULL;
    bool differ = false, far = false;
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        if (!place->knows_home)
            return false;
        far = far || !place->local;
        if (place->local && local)
            differ = differ || !lab_str_equal(place->nodes, local->nodes);
        if (place->local)
            local = place;
    }
    return differ && far;
}

/* The levels; the one that no other beats on the whole comes first. */
static int list_levels(const struct lab_place_group *group, enum lab_place_factor_kind kind,
                       struct lab_arena *arena, int *levels) {
    int count = 0, blocks;
    for (int i = 0; i < group->count; i++) {
        bool seen = false;
        for (int k = 0; k < count && !seen; k++)
            seen = same_level(&group->places[levels[k]], &group->places[i], kind);
        if (!seen)
            levels[count++] = i;
    }
    for (int i = 1; i < count; i++)
        if (compare_levels(group, levels[i], levels[0], kind, arena, &blocks).ratio > 1) {
            int better = levels[i];
            levels[i] = levels[0];
            levels[0] = better;
        }
    return count;
}

static struct lab_place_factor make_factor(const struct lab_place_group *group,
                                           enum lab_place_factor_kind kind,
                                           struct lab_arena *arena) {
    size_t room = (size_t)group->count + 1;
    struct lab_place_factor factor = {.kind = kind,
                                      .levels = lab_arena_alloc(arena, room, sizeof *factor.levels),
                                      .gains = lab_arena_alloc(arena, room, sizeof *factor.gains),
                                      .blocks =
                                          lab_arena_alloc(arena, room, sizeof *factor.blocks)};
    factor.count = list_levels(group, kind, arena, factor.levels);
    for (int i = 1; i < factor.count; i++)
        factor.gains[i] = compare_levels(group, factor.levels[0], factor.levels[i], kind, arena,
                                         &factor.blocks[i]);
    return factor;
}

/* The best of k levels was chosen by the same runs: held against each of the k − 1 others, it
 * stands for all k (k − 1) / 2 pairs. */
static void judge(struct lab_place_factor *factors, int count, struct lab_arena *arena) {
    int total = 0;
    for (int f = 0; f < count; f++)
        total += factors[f].count - 1;
    struct lab_study_ratio *all = lab_arena_alloc(arena, (size_t)total + 1, sizeof *all);
    total = 0;
    for (int f = 0; f < count; f++)
        for (int i = 1; i < factors[f].count; i++) {
            all[total] = factors[f].gains[i];
            all[total++].p = fmin(1, factors[f].gains[i].p * factors[f].count / 2);
        }
    lab_study_adjust(all, total);
    total = 0;
    for (int f = 0; f < count; f++) {
        factors[f].alike = 1;
        for (int i = 1; i < factors[f].count; i++) {
            factors[f].gains[i] = all[total++];
            factors[f].alike += factors[f].gains[i].verdict != LAB_STUDY_MORE;
        }
    }
}

int lab_place_factors(const struct lab_place_group *group, struct lab_arena *arena,
                      struct lab_place_factor ret_factors[LAB_PLACE_FACTORS]) {
    const bool varies[LAB_PLACE_FACTORS] = {[LAB_FACTOR_HOME] =
                                                group->varies_node && homes_differ(group),
                                            [LAB_FACTOR_NODE] = group->varies_node,
                                            [LAB_FACTOR_DEVICE] = group->varies_device,
                                            [LAB_FACTOR_BATCH] = group->varies_batch,
                                            [LAB_FACTOR_COMPILE] = group->varies_compile,
                                            [LAB_FACTOR_SETTINGS] = group->varies_settings};
    int count = 0;
    for (int kind = 0; kind < LAB_PLACE_FACTORS; kind++)
        if (varies[kind] && !(kind == LAB_FACTOR_NODE && varies[LAB_FACTOR_HOME]))
            ret_factors[count++] = make_factor(group, (enum lab_place_factor_kind)kind, arena);
    judge(ret_factors, count, arena);
    return count;
}
