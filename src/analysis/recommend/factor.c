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

/* The nearest node of those tested; of unknown distances the lowest number. */
static bool is_nearest(const struct lab_choices *placements, const struct lab_choice *placement) {
    const struct lab_choice_lists *lists = &placements->index[LAB_FACTOR_NODE].groups;
    int group = placement->groups[LAB_FACTOR_NODE];
    for (int i = lists->first[group]; i < lists->first[group + 1]; i++) {
        const struct lab_choice *other = &placements->items[lists->items[i]];
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

struct asked { /* a level against others, by their numbers */
    const struct lab_choices *placements;
    const struct lab_factor_row *row;
    int level, against;
    bool of_reference; /* `against` isn't a level */
};

static bool is_level(const struct asked *asked, const struct lab_choice *item) {
    return item->level_numbers[asked->row->factor] == asked->level;
}

static bool is_reference(const struct asked *asked, const struct lab_choice *item) {
    enum lab_factor factor = asked->row->factor;
    if (!asked->of_reference)
        return item->level_numbers[factor] == asked->against;
    return factor == LAB_FACTOR_DEVICE ? !is_level(asked, item) : !*item->levels[factor];
}

static bool counts(const struct lab_choice *item, const struct lab_factor_row *row) {
    return !row->advised || !item->avoided;
}

struct pair { /* placements alike in all else, on both sides */
    const int *items;
    int count, level, reference;
    int model;
};

/* Those of the group that this placement begins, which is the first of the level in it; none of
 * another. */
static bool find_pair(const struct asked *asked, int at, struct pair *ret) {
    const struct lab_factor_row *row = asked->row;
    const struct lab_choice *items = asked->placements->items;
    const struct lab_choice_lists *lists = &asked->placements->index[row->factor].groups;
    int group = items[at].groups[row->factor];
    *ret = (struct pair){.items = lists->items + lists->first[group],
                         .count = lists->first[group + 1] - lists->first[group],
                         .model = items[at].model};
    if (!counts(&items[at], row) || (row->model >= 0 && items[at].model != row->model) ||
        (row->of_model && !lab_str_equal(items[at].point->runs[0]->model, row->of_model)))
        return false;
    for (int i = 0; i < ret->count; i++) {
        const struct lab_choice *item = &items[ret->items[i]];
        if (ret->items[i] < at && is_level(asked, item))
            return false;
        ret->level += counts(item, row) && is_level(asked, item);
        ret->reference += counts(item, row) && is_reference(asked, item);
    }
    return ret->reference > 0;
}

static struct pair *find_pairs(const struct asked *asked, struct lab_arena *arena, int *ret_count) {
    const struct lab_choice_lists *lists = &asked->placements->index[asked->row->factor].by_level;
    struct pair *pairs = NULL, pair;
    *ret_count = 0;
    for (int i = asked->level < 0 ? 0 : lists->first[asked->level];
         asked->level >= 0 && i < lists->first[asked->level + 1]; i++)
        if (find_pair(asked, lists->items[i], &pair))
            LAB_ADD(pairs, *ret_count, arena) = pair;
    return pairs;
}

/* " on the local NUMA node" */
static const char *nearest_words(const struct lab_choices *placements, struct lab_arena *arena) {
    return lab_str_starts(reference_of(placements, LAB_FACTOR_NODE, arena), "the local")
               ? " on the local NUMA node"
               : " on the nearest NUMA node";
}

const char *lab_choices_used(const struct lab_choices *placements, struct lab_arena *arena) {
    return lab_arena_printf(
        arena, "%s%s", placements->varies[LAB_FACTOR_NODE] ? nearest_words(placements, arena) : "",
        placements->without ? placements->without : "");
}

/* Models that have no such pair aren't counted. */
static const char *subject_of(const struct lab_choices *placements,
                              const struct lab_factor_row *row, const struct pair *pairs,
                              const char **ret_mean_of, struct lab_arena *arena) {
    int models = 0, last = 0;
    bool *seen = lab_arena_alloc(arena, (size_t)placements->model_count + 1, sizeof *seen);
    for (int i = 0; i < row->pairs; i++) {
        models += !seen[pairs[i].model];
        seen[pairs[i].model] = true;
        last = pairs[i].model > last ? pairs[i].model : last;
    }
    bool nodes = placements->varies[LAB_FACTOR_NODE] && row->factor != LAB_FACTOR_NODE;
    if (row->pairs > 1)
        *ret_mean_of = lab_study_pair_words(placements->study, row->pairs, models, arena);
    if (row->pairs > models && nodes && !row->advised) /* remote ones too */
        *ret_mean_of = lab_arena_printf(arena, "%s on all NUMA nodes", *ret_mean_of);
    else if (row->pairs > 1 && nodes)
        *ret_mean_of =
            lab_arena_printf(arena, "%s%s", *ret_mean_of, nearest_words(placements, arena));
    if (row->pairs > 1 && row->advised)
        *ret_mean_of = lab_arena_printf(arena, "%s%s", *ret_mean_of, placements->without);
    return placements->model_count > 1 && models == 1
               ? lab_arena_printf(arena, "%s, %s", row->level, placements->models[last])
               : row->level;
}

void lab_factor_compare(const struct lab_choices *placements, struct lab_factor_row *row,
                        const char *against, struct lab_arena *arena) {
    struct asked asked = {placements, row, lab_choices_level(placements, row->factor, row->level),
                          against ? lab_choices_level(placements, row->factor, against) : -1,
                          !against};
    LAB_AUTO(arena, scratch);
    struct lab_contrast contrast = {.arena = arena};
    struct pair *pairs = find_pairs(&asked, &scratch, &row->pairs);
    for (int p = 0; p < row->pairs; p++)
        for (int i = 0; i < pairs[p].count; i++) {
            const struct lab_choice *item = &placements->items[pairs[p].items[i]];
            if (!counts(item, row))
                continue;
            if (is_level(&asked, item))
                lab_contrast_add(&contrast, item->point, 1.0 / row->pairs / pairs[p].level);
            else if (is_reference(&asked, item))
                lab_contrast_add(&contrast, item->point, -1.0 / row->pairs / pairs[p].reference);
        }
    bool unused = row->factor == LAB_FACTOR_SETTINGS && placements->allreduce;
    const char *mean_of = NULL, *subject = subject_of(placements, row, pairs, &mean_of, arena);
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
    bool *seen =
        lab_arena_alloc(arena, (size_t)placements->index[factor].level_count + 1, sizeof *seen);
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        int number = item->level_numbers[factor];
        bool other = !*item->levels[factor] || (model >= 0 && item->model != model) ||
                     (gangs && item->point->runs[0]->rank_count == 1);
        if (other || seen[number])
            continue;
        seen[number] = true;
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

/* Of `rows` those that gain, in their order. */
static int list_gains(const struct lab_factor_row *rows, int count, struct lab_arena *arena,
                      int **ret_gains, int *ret_all) {
    int found = 0, kept = 0, *gains = lab_arena_alloc(arena, (size_t)count + 1, sizeof *gains);
    double *effects = lab_arena_alloc(arena, (size_t)count + 1, sizeof *effects);
    for (int i = 0; i < count; i++)
        if (lab_claim_is_gain(&rows[i].claim)) {
            effects[found] = rows[i].claim.effect;
            gains[found++] = i;
        }
    *ret_gains = gains;
    *ret_all = found;
    if (found <= LAB_CHOICES_PAIRED)
        return found;
    LAB_SORT_NUMBERS(effects, found);
    for (int i = 0; i < found && kept < LAB_CHOICES_PAIRED; i++)
        if (rows[gains[i]].claim.effect >= effects[found - LAB_CHOICES_PAIRED])
            gains[kept++] = gains[i];
    return kept;
}

/*
 * Of levels that gain over the reference, the first that no other one beats by what is worth a
 * change: levels are compared, and verdicts hold together. So the largest of many isn't the best by
 * chance, and of batches that don't differ it is the smallest. It comes first among its rows.
 */
static void choose_level(struct lab_choices *placements, struct lab_factor_row *rows, int count,
                         struct lab_arena *arena) {
    int *gains, all, gain_count = list_gains(rows, count, arena, &gains, &all);
    int chosen = -1, claim_count = 0;
    placements->gaining = all > placements->gaining ? all : placements->gaining;
    struct lab_factor_row *pairs =
        lab_arena_alloc(arena, (size_t)gain_count * (size_t)gain_count + 1, sizeof *pairs);
    struct lab_claim **claims = NULL;
    for (int i = 0; i < gain_count; i++)
        for (int k = 0; k < i; k++) {
            struct lab_factor_row *pair = &pairs[i * gain_count + k];
            *pair = rows[gains[i]];
            lab_factor_compare(placements, pair, rows[gains[k]].level, arena);
            LAB_ADD(claims, claim_count, arena) = &pair->claim;
        }
    lab_claim_adjust(claims, claim_count);
    for (int i = 0; i < gain_count && chosen < 0; i++) {
        bool beaten = false;
        for (int k = 0; k < gain_count; k++) {
            const struct lab_claim *pair =
                &pairs[k > i ? k * gain_count + i : i * gain_count + k].claim;
            beaten |= k != i && pair->verdict == LAB_CLAIM_YES && (pair->effect > 0) == (k > i) &&
                      fabs(pair->effect) >= LAB_CLAIM_WORTH;
        }
        chosen = beaten ? -1 : gains[i];
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
    int count = 0,
        *defaults = lab_arena_alloc(arena, (size_t)placements->model_count + 1, sizeof *defaults);
    bool any = false;
    for (int m = 0; m < placements->model_count; m++)
        defaults[m] = lab_choices_default(placements, m);
    for (int i = 0; i < placements->row_count; i++)
        any |= placements->rows[i].claim.verdict == LAB_CLAIM_YES;
    for (int i = 0; i < placements->count; i++) {
        struct lab_choice *item = &placements->items[i];
        const struct lab_choice *base = &placements->items[defaults[item->model]];
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
    lab_choices_group(placements, arena);
    set_levels(placements, arena);
    lab_choices_number_levels(placements, arena);
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
    lab_choices_index_rows(placements, arena);
    compare_placements(placements, arena);
    lab_choices_mark_avoided(placements, arena);
    lab_choices_claim_advised(placements, arena);
}
