/* factor.c: each choice by itself, over all placements that are alike in the others. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *kind, *model_kind;
} factors[LAB_FACTORS] = {
    [LAB_FACTOR_NODE] = {"node", "recommend.node", "recommend.node_model"},
    [LAB_FACTOR_DEVICE] = {"device", "recommend.device", "recommend.device_model"},
    [LAB_FACTOR_BATCH] = {"batch", "recommend.batch", "recommend.batch_model"},
    [LAB_FACTOR_COMPILE] = {"compile", "recommend.compile", "recommend.compile_model"},
    [LAB_FACTOR_SETTINGS] = {"settings", "recommend.settings", "recommend.settings_model"},
};

/* --- levels --- */

bool lab_choices_same_else(const struct lab_choice *a, const struct lab_choice *b,
                           enum lab_factor factor) {
    if (a->model != b->model)
        return false;
    return (factor == LAB_FACTOR_NODE ||
            (factor == LAB_FACTOR_DEVICE ? lab_str_equal(a->distances, b->distances)
                                         : lab_str_equal(a->nodes, b->nodes))) &&
           (factor == LAB_FACTOR_DEVICE || lab_str_equal(a->devices, b->devices)) &&
           (factor == LAB_FACTOR_BATCH || lab_str_equal(a->batch_text, b->batch_text)) &&
           (factor == LAB_FACTOR_COMPILE || a->compiled == b->compiled) &&
           (factor == LAB_FACTOR_SETTINGS || lab_str_equal(a->settings, b->settings));
}

/* The nearest node of those tested; of unknown distances the lowest number. */
static bool is_nearest(const struct lab_choices *placements, const struct lab_choice *placement) {
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *other = &placements->items[i];
        if (!lab_choices_same_else(placement, other, LAB_FACTOR_NODE))
            continue;
        if (other->distance != placement->distance
                ? other->distance < placement->distance
                : !placement->distance && strverscmp(other->nodes, placement->nodes) < 0)
            return false;
    }
    return true;
}

static const char *title_of(const struct lab_choice *placement, struct lab_arena *arena) {
    return lab_words_gang(placement->point->runs[0], arena);
}

static void set_levels(struct lab_choices *placements, struct lab_arena *arena) {
    double smallest = INFINITY;
    for (int i = 0; i < placements->count; i++)
        smallest = fmin(smallest, placements->items[i].batch);
    for (int i = 0; i < placements->count; i++) {
        struct lab_choice *item = &placements->items[i];
        const char **levels = item->levels;
        levels[LAB_FACTOR_NODE] = is_nearest(placements, item) ? ""
                                  : item->distance > 0
                                      ? "Remote NUMA nodes"
                                      : lab_arena_printf(arena, "NUMA node %s", item->nodes);
        levels[LAB_FACTOR_DEVICE] = title_of(item, arena);
        levels[LAB_FACTOR_BATCH] =
            !(item->batch > smallest) ? "" : lab_arena_printf(arena, "Batch %s", item->batch_text);
        levels[LAB_FACTOR_COMPILE] =
            item->compiled && lab_study_can_compile(item->point->runs[0]) ? "Compiled" : "";
        levels[LAB_FACTOR_SETTINGS] = item->settings;
    }
}

static const char *reference_of(const struct lab_choices *placements, enum lab_factor factor,
                                struct lab_arena *arena) {
    const struct lab_choice *first = NULL;
    bool local = true;
    for (int i = 0; i < placements->count; i++)
        if (!*placements->items[i].levels[factor]) {
            first = first ? first : &placements->items[i];
            local = local && placements->items[i].local;
        }
    switch (factor) {
    case LAB_FACTOR_NODE:
        return local                          ? "the local node"
               : first && first->distance > 0 ? "the nearest node tested"
                                              : "the lowest NUMA node";
    case LAB_FACTOR_DEVICE:
        return "the other devices";
    case LAB_FACTOR_BATCH:
        return first ? lab_arena_printf(arena, "batch %s", first->batch_text) : "";
    case LAB_FACTOR_COMPILE:
        return "uncompiled";
    default:
        return "NCCL's defaults";
    }
}

/* --- one level against the reference --- */

static bool is_reference(const struct lab_choice *placement, enum lab_factor factor,
                         const char *level, const char *against) {
    if (against)
        return lab_str_equal(placement->levels[factor], against);
    return factor == LAB_FACTOR_DEVICE ? !lab_str_equal(placement->levels[factor], level)
                                       : !*placement->levels[factor];
}

static bool counts(const struct lab_choice *item, const struct lab_factor_row *row) {
    return !row->advised || !item->avoided;
}

struct sides { /* of placements alike in all else */
    int level, reference;
};

static struct sides count_sides(const struct lab_choices *placements, int at,
                                const struct lab_factor_row *row, const char *against) {
    struct sides sides = {0};
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        if (!lab_choices_same_else(item, &placements->items[at], row->factor) || !counts(item, row))
            continue;
        sides.level += lab_str_equal(item->levels[row->factor], row->level);
        sides.reference += is_reference(item, row->factor, row->level, against);
    }
    return sides;
}

/* The first placement of the level among those that are alike in all else. */
static bool begins_pair(const struct lab_choices *placements, int at,
                        const struct lab_factor_row *row) {
    const struct lab_choice *item = &placements->items[at];
    if (!lab_str_equal(item->levels[row->factor], row->level) || !counts(item, row) ||
        (row->model >= 0 && item->model != row->model) ||
        (row->of_model && !lab_str_equal(item->point->runs[0]->model, row->of_model)))
        return false;
    for (int i = 0; i < at; i++)
        if (lab_str_equal(placements->items[i].levels[row->factor], row->level) &&
            lab_choices_same_else(&placements->items[i], item, row->factor))
            return false;
    return true;
}

/* How many of a model there are; -1 = of all. */
static int count_pairs(const struct lab_choices *placements, const struct lab_factor_row *row,
                       const char *against, int model) {
    int count = 0;
    for (int at = 0; at < placements->count; at++)
        count += (model < 0 || placements->items[at].model == model) &&
                 begins_pair(placements, at, row) &&
                 count_sides(placements, at, row, against).reference > 0;
    return count;
}

/* Models that have no such pair aren't counted. */
static const char *subject_of(const struct lab_choices *placements,
                              const struct lab_factor_row *row, const char *against,
                              const char **ret_mean_of, struct lab_arena *arena) {
    int models = 0, last = 0;
    for (int m = 0; m < placements->model_count; m++)
        if (count_pairs(placements, row, against, m) > 0) {
            last = m;
            models++;
        }
    bool nodes = placements->varies[LAB_FACTOR_NODE] && row->factor != LAB_FACTOR_NODE;
    if (row->pairs > 1)
        *ret_mean_of = lab_study_pair_words(placements->study, row->pairs, models, arena);
    if (row->pairs > models && nodes && !row->advised) /* remote ones too */
        *ret_mean_of = lab_arena_printf(arena, "%s on all NUMA nodes", *ret_mean_of);
    else if (row->pairs > 1 && nodes)
        *ret_mean_of = lab_arena_printf(
            arena, "%s on the %s NUMA node", *ret_mean_of,
            lab_str_starts(reference_of(placements, LAB_FACTOR_NODE, arena), "the local")
                ? "local"
                : "nearest");
    if (row->pairs > 1 && row->advised)
        *ret_mean_of =
            lab_arena_printf(arena, "%s%s", *ret_mean_of, lab_choices_without(placements, arena));
    return placements->model_count > 1 && models == 1
               ? lab_arena_printf(arena, "%s, %s", row->level, placements->models[last])
               : row->level;
}

void lab_factor_compare(const struct lab_choices *placements, struct lab_factor_row *row,
                        const char *against, struct lab_arena *arena) {
    struct lab_contrast contrast = {.arena = arena};
    row->pairs = count_pairs(placements, row, against, -1);
    for (int at = 0; at < placements->count; at++) {
        struct sides sides = count_sides(placements, at, row, against);
        if (!begins_pair(placements, at, row) || sides.reference == 0)
            continue;
        for (int i = 0; i < placements->count; i++) {
            const struct lab_choice *item = &placements->items[i];
            if (!lab_choices_same_else(item, &placements->items[at], row->factor) ||
                !counts(item, row))
                continue;
            if (lab_str_equal(item->levels[row->factor], row->level))
                lab_contrast_add(&contrast, item->point, 1.0 / row->pairs / sides.level);
            else if (is_reference(item, row->factor, row->level, against))
                lab_contrast_add(&contrast, item->point, -1.0 / row->pairs / sides.reference);
        }
    }
    bool unused = row->factor == LAB_FACTOR_SETTINGS && placements->allreduce;
    const char *mean_of = NULL, *subject = subject_of(placements, row, against, &mean_of, arena);
    row->claim = lab_claim_named(
        unused ? lab_claim_none : lab_claim_estimate(&contrast, LAB_STUDY_RATE),
        row->model < 0 ? factors[row->factor].kind : factors[row->factor].model_kind, subject,
        row->reference, "throughput");
    row->claim.mean_of = mean_of;
}

/* `gangs`: only of several devices at once. */
static void add_rows(struct lab_choices *placements, enum lab_factor factor, int model, bool gangs,
                     struct lab_arena *arena) {
    const char **levels = NULL, *against = NULL;
    int count = 0;
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        bool seen = !*item->levels[factor] || (model >= 0 && item->model != model) ||
                    (gangs && item->point->runs[0]->rank_count == 1);
        if (!seen && lab_list_find_text(levels, count, item->levels[factor]) < 0)
            LAB_ADD(levels, count, arena) = item->levels[factor];
    }
    if (factor == LAB_FACTOR_DEVICE && count <= 2) {
        against = count == 2 ? levels[0] : NULL;
        levels = count == 2 ? levels + 1 : levels;
        count = count == 2;
    }
    for (int i = 0; i < count; i++) {
        struct lab_factor_row row = {
            .factor = factor,
            .model = model,
            .choice = factors[factor].name,
            .model_name = model < 0 ? "all" : placements->models[model],
            .level = levels[i],
            .reference = against ? against : reference_of(placements, factor, arena)};
        lab_factor_compare(placements, &row, against, arena);
        if (row.pairs > 0)
            LAB_ADD(placements->rows, placements->row_count, arena) = row;
    }
}

/* --- verdicts --- */

/* The device on one model: its claim there; where the batch varies too, a bound over all of them,
 * which no family's verdict has judged. */
static struct lab_claim claim_peer(const struct lab_choices *placements, int device,
                                   const char *model, struct lab_arena *arena) {
    const struct lab_peer *peer = &placements->peers.devices[device];
    for (int i = 0; i < peer->row_count; i++)
        if (lab_str_equal(peer->rows[i].model, model))
            return peer->rows[i].claim;
    struct lab_claim claim = lab_peers_compare(&placements->peers, device, model, arena);
    if (!isnan(claim.p))
        lab_claim_judge(&claim, 1);
    return claim;
}

/* Single devices are compared with their peers, as `gpulab analyze peers` does. */
static bool add_peers(struct lab_choices *placements, int model, struct lab_arena *arena) {
    const char *name = model < 0 ? "all" : placements->models[model];
    const struct lab_study_run *run =
        model < 0 ? NULL : placements->items[lab_choices_default(placements, model)].point->runs[0];
    for (int d = 0; d < placements->peers.device_count; d++) {
        const struct lab_peer *device = &placements->peers.devices[d];
        struct lab_factor_row row = {.factor = LAB_FACTOR_DEVICE,
                                     .model = model,
                                     .of_peers = true,
                                     .choice = factors[LAB_FACTOR_DEVICE].name,
                                     .model_name = name,
                                     .level = device->title,
                                     .reference = "its peers",
                                     .pairs = device->models,
                                     .claim = device->claim};
        bool own = !run || run->rank_count == 1;
        if (run && own) {
            row.claim = claim_peer(placements, d, run->model, arena);
            row.pairs = 1;
        }
        if (device->models > 0 && own && row.claim.verdict != LAB_CLAIM_NOT_TESTED)
            LAB_ADD(placements->rows, placements->row_count, arena) = row;
    }
    return placements->peers.device_count > LAB_PEERS_LEAST;
}

/* Verdicts of all models together hold together; those of single models likewise, of factors that
 * have a level with one. So where nothing differs, one study in twenty has any. */
static void judge_rows(struct lab_choices *placements, struct lab_arena *arena) {
    struct lab_claim **all = NULL, **single = NULL;
    bool found[LAB_FACTORS] = {0};
    int all_count = 0, single_count = 0;
    for (int i = 0; i < placements->row_count; i++)
        if (placements->rows[i].model < 0 && !placements->rows[i].of_peers)
            LAB_ADD(all, all_count, arena) = &placements->rows[i].claim;
    lab_claim_adjust(all, all_count);
    for (int i = 0; i < placements->row_count; i++)
        found[placements->rows[i].factor] |=
            placements->rows[i].model < 0 && placements->rows[i].claim.verdict == LAB_CLAIM_YES;
    for (int i = 0; i < placements->row_count; i++) {
        struct lab_factor_row *row = &placements->rows[i];
        if (row->model < 0 || row->of_peers)
            continue;
        if (found[row->factor])
            LAB_ADD(single, single_count, arena) = &row->claim;
        else if (!isnan(row->claim.p))
            lab_claim_judge(&row->claim, 1);
    }
    lab_claim_adjust(single, single_count);
}

bool lab_claim_is_gain(const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_YES && claim->effect >= LAB_CLAIM_WORTH;
}

/*
 * Of levels that gain over the reference, the first that no other one beats: levels are compared
 * with each other, and verdicts hold together. So the largest of many isn't taken for the best by
 * chance, and of batches that don't differ it is the smallest. It comes first among its rows.
 */
static void choose_level(const struct lab_choices *placements, struct lab_factor_row *rows,
                         int count, struct lab_arena *arena) {
    struct lab_factor_row *pairs =
        lab_arena_alloc(arena, (size_t)count * (size_t)count + 1, sizeof *pairs);
    struct lab_claim **claims = NULL;
    int claim_count = 0, chosen = -1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            struct lab_factor_row *pair = &pairs[i * count + k];
            *pair = rows[i];
            pair->claim = lab_claim_none;
            if (i <= k || !lab_claim_is_gain(&rows[i].claim) || !lab_claim_is_gain(&rows[k].claim))
                continue;
            lab_factor_compare(placements, pair, rows[k].level, arena);
            LAB_ADD(claims, claim_count, arena) = &pair->claim;
        }
    lab_claim_adjust(claims, claim_count);
    for (int i = 0; i < count && chosen < 0; i++) {
        bool beaten = !lab_claim_is_gain(&rows[i].claim);
        for (int k = 0; k < count; k++) {
            const struct lab_claim *pair = &pairs[k > i ? k * count + i : i * count + k].claim;
            beaten |= pair->verdict == LAB_CLAIM_YES && (pair->effect > 0) == (k > i);
        }
        chosen = beaten ? -1 : i;
    }
    if (chosen < 0)
        return;
    struct lab_factor_row row = rows[chosen];
    row.chosen = true;
    memmove(&rows[1], &rows[0], (size_t)chosen * sizeof *rows);
    rows[0] = row;
}

/* Of batches and settings, which have many levels: for all models together and each by itself. */
static void choose_levels(struct lab_choices *placements, struct lab_arena *arena) {
    for (int i = 0, end; i < placements->row_count; i = end) {
        struct lab_factor_row *first = &placements->rows[i];
        for (end = i + 1; end < placements->row_count &&
                          placements->rows[end].factor == first->factor &&
                          placements->rows[end].model == first->model;)
            end++;
        if (first->factor == LAB_FACTOR_BATCH || first->factor == LAB_FACTOR_SETTINGS)
            choose_level(placements, first, end - i, arena);
    }
}

static bool is_default(const struct lab_choice *placement) {
    return !*placement->levels[LAB_FACTOR_NODE] && !*placement->levels[LAB_FACTOR_BATCH] &&
           !*placement->levels[LAB_FACTOR_COMPILE] && !*placement->levels[LAB_FACTOR_SETTINGS];
}

int lab_choices_default(const struct lab_choices *placements, int model) {
    int best = -1, most = -1;
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        int rank = 2 * is_default(item) + item->local;
        if (item->model == model && rank > most) {
            best = i;
            most = rank;
        }
    }
    return best;
}

static void compare_placements(struct lab_choices *placements, struct lab_arena *arena) {
    struct lab_claim **claims = NULL;
    int count = 0;
    bool any = false;
    for (int i = 0; i < placements->row_count; i++)
        any |= placements->rows[i].claim.verdict == LAB_CLAIM_YES;
    for (int i = 0; i < placements->count; i++) {
        struct lab_choice *item = &placements->items[i];
        const struct lab_choice *base =
            &placements->items[lab_choices_default(placements, item->model)];
        struct lab_contrast contrast = {.arena = arena};
        bool unused = placements->allreduce && !lab_str_equal(base->settings, item->settings);
        if (base != item && !unused)
            lab_contrast_add_pair(&contrast, base->point, item->point, 1);
        const char *subject =
            lab_arena_printf(arena, "%s, %s", placements->models[item->model], item->words);
        item->claim =
            lab_claim_named(lab_claim_estimate(&contrast, LAB_STUDY_RATE), "recommend.placement",
                            subject, base == item ? subject : base->words, "throughput");
        LAB_ADD(claims, count, arena) = &item->claim;
    }
    if (any)
        lab_claim_adjust(claims, count);
    for (int i = 0; i < count && !any; i++)
        if (!isnan(claims[i]->p))
            lab_claim_judge(claims[i], 1);
}

void lab_choices_compare(struct lab_choices *placements, struct lab_arena *arena) {
    set_levels(placements, arena);
    if (placements->varies[LAB_FACTOR_DEVICE])
        placements->peers = lab_peers_make(placements->study, arena);
    for (int model = -1; model < (placements->model_count > 1 ? placements->model_count : 0);
         model++)
        for (int f = 0; f < LAB_FACTORS; f++)
            if (placements->varies[f]) {
                bool peers = f == LAB_FACTOR_DEVICE && add_peers(placements, model, arena);
                add_rows(placements, (enum lab_factor)f, model, peers, arena);
            }
    judge_rows(placements, arena);
    choose_levels(placements, arena);
    compare_placements(placements, arena);
    lab_choices_mark_avoided(placements);
}
