/* best.c: what the claims of a model recommend, and which devices are as good. */
#include "analysis/analysis_words.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* --- the best --- */

/* What a claim says of a level's gain: what isn't worth a change is 0. */
static double gain_by(const struct lab_factor_row *row) {
    bool many = row->factor == LAB_FACTOR_BATCH || row->factor == LAB_FACTOR_SETTINGS;
    return fabs(row->claim.effect) < LAB_CLAIM_WORTH ||
                   (many && lab_claim_is_gain(&row->claim) && !row->chosen)
               ? 0
               : row->claim.effect;
}

/* What is known of a level for that model: its own claim, else that over all models. */
static double gain_of(const struct lab_choices *placements, int model, enum lab_factor factor,
                      const char *level) {
    const struct lab_factor_row *own = model < 0
                                           ? NULL
                                           : lab_choices_row(placements, model, factor, level),
                                *all = lab_choices_row(placements, -1, factor, level);
    if (own && own->claim.verdict == LAB_CLAIM_YES)
        return gain_by(own);
    if (own && own->claim.verdict == LAB_CLAIM_NO)
        return 0;
    return all && all->claim.verdict == LAB_CLAIM_YES ? gain_by(all) : 0;
}

/* What that model shows of a level for certain, however little. */
static double certain_of(const struct lab_choices *placements, int model, enum lab_factor factor,
                         const char *level) {
    const struct lab_factor_row *row = lab_choices_row(placements, model, factor, level);
    return row && row->claim.verdict == LAB_CLAIM_YES ? row->claim.effect : 0;
}

/* Of levels that gain as much for a model, and aren't worse for certain, the one that gains most
 * over all models: a report advises one batch, and one group of devices. */
static int best_over_all(const struct lab_choices *placements, int best, enum lab_factor factor) {
    const struct lab_choice *chosen = &placements->items[best];
    const char *own = chosen->levels[factor];
    double gain = gain_of(placements, chosen->model, factor, own),
           certain = certain_of(placements, chosen->model, factor, own),
           most = gain_of(placements, -1, factor, own);
    int found = best;
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        const char *level = item->levels[factor];
        if (!lab_choices_same_else(item, chosen, factor) ||
            gain_of(placements, chosen->model, factor, level) != gain ||
            certain_of(placements, chosen->model, factor, level) < certain)
            continue;
        double over_all = gain_of(placements, -1, factor, level);
        if (over_all <= most)
            continue;
        most = over_all;
        found = i;
    }
    return found;
}

int lab_choices_best(const struct lab_choices *placements, int model) {
    int best = lab_choices_default(placements, model);
    double most = -INFINITY;
    for (int pass = 0; pass < 2; pass++) /* the default stays where nothing is higher */
        for (int i = 0; i < placements->count; i++) {
            if (placements->items[i].model != model || (pass == 0 && i != best))
                continue;
            double gain = 0;
            for (int f = 0; f < LAB_FACTORS; f++)
                gain += log1p(
                    gain_of(placements, model, (enum lab_factor)f, placements->items[i].levels[f]));
            if (gain > most + 1e-12) {
                most = gain;
                best = i;
            }
        }
    if (placements->items[best].claim.verdict == LAB_CLAIM_NO)
        best = lab_choices_default(placements, model);
    best = best_over_all(placements, best, LAB_FACTOR_BATCH);
    return best_over_all(placements, best, LAB_FACTOR_DEVICE);
}

bool lab_choices_decided(const struct lab_choices *placements, int model) {
    for (int i = 0; i < placements->count; i++)
        for (int f = 0; f < LAB_FACTORS && placements->items[i].model == model; f++)
            if (gain_of(placements, model, (enum lab_factor)f, placements->items[i].levels[f]) != 0)
                return true;
    return false;
}

/* --- devices that are as good --- */

/* By how much that device differs from its peers at most, by the claims of one model, -1 = by those
 * over all; NaN = unknown, or it differs. */
static double bound_by(const struct lab_choices *placements, int by, const char *level,
                       bool *ret_compared) {
    double bound = NAN;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor != LAB_FACTOR_DEVICE || row->model != by)
            continue;
        *ret_compared = true;
        if ((lab_str_equal(row->level, level) || lab_str_equal(row->reference, level)) &&
            row->claim.verdict == LAB_CLAIM_NO)
            bound = row->claim.bound;
    }
    return bound;
}

static double bound_of(const struct lab_choices *placements, const struct lab_choice *item) {
    const char *device = item->levels[LAB_FACTOR_DEVICE];
    bool compared = false;
    double bound = bound_by(placements, item->model, device, &compared);
    return compared ? bound : bound_by(placements, -1, device, &compared);
}

static bool differ_by_device(const struct lab_choice *x, const struct lab_choice *y) {
    return x->model == y->model && lab_str_equal(x->batch_text, y->batch_text) &&
           x->compiled == y->compiled && lab_str_equal(x->settings, y->settings) &&
           !*x->levels[LAB_FACTOR_NODE] && !*y->levels[LAB_FACTOR_NODE];
}

/* What a page has of these two placements alone: one is the default. NULL = neither is. */
static const struct lab_claim *direct_claim(const struct lab_choices *placements, int a, int b) {
    int first = lab_choices_default(placements, placements->items[a].model);
    return a == first   ? &placements->items[b].claim
           : b == first ? &placements->items[a].claim
                        : NULL;
}

/* Whether a device differs from its peers for certain, on that model. */
static bool is_apart(const struct lab_choices *placements, const struct lab_choice *item) {
    const char *device = item->levels[LAB_FACTOR_DEVICE];
    int model = placements->model_count > 1 ? item->model : -1;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor == LAB_FACTOR_DEVICE && row->model == model &&
            row->claim.verdict == LAB_CLAIM_YES &&
            (lab_str_equal(row->level, device) || lab_str_equal(row->reference, device)))
            return true;
    }
    return false;
}

bool lab_choices_alike(const struct lab_choices *placements, int a, int b) {
    const struct lab_choice *x = &placements->items[a], *y = &placements->items[b];
    if (a == b || !differ_by_device(x, y))
        return a == b;
    const struct lab_claim *direct = direct_claim(placements, a, b);
    if (direct)
        return direct->verdict == LAB_CLAIM_NO && !is_apart(placements, x) &&
               !is_apart(placements, y);
    return lab_choices_same_else(x, y, LAB_FACTOR_DEVICE) && !isnan(bound_of(placements, x)) &&
           !isnan(bound_of(placements, y));
}

bool lab_choices_open(const struct lab_choices *placements, int a, int b) {
    const struct lab_choice *y = &placements->items[b];
    if (a == b || !differ_by_device(&placements->items[a], y) || is_apart(placements, y))
        return false;
    const struct lab_claim *direct = direct_claim(placements, a, b);
    return !(direct && direct->verdict == LAB_CLAIM_YES) && !lab_choices_alike(placements, a, b);
}

/* Where the study varies the batch, but not of this model; and where this model isn't given the
 * batch that is best over all: " (batch 64: −0.9% [−1.2, −0.7])". */
static const char *rest_words(const struct lab_choices *placements, const struct lab_choice *item,
                              struct lab_arena *arena) {
    bool varies = false;
    for (int i = 0; i < placements->count; i++)
        varies |= placements->items[i].model == item->model &&
                  !lab_str_equal(placements->items[i].batch_text, item->batch_text);
    if (!varies)
        return placements->varies[LAB_FACTOR_BATCH] ? " (the only batch tested)" : "";
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *over_all = &placements->rows[i], *row;
        if (over_all->factor != LAB_FACTOR_BATCH || over_all->model >= 0 || !over_all->chosen)
            continue;
        row = lab_choices_row(placements, item->model, LAB_FACTOR_BATCH, over_all->level);
        if (row && !*item->levels[LAB_FACTOR_BATCH] && row->claim.verdict == LAB_CLAIM_YES)
            return lab_arena_printf(arena, " (%s: %s)", lab_claim_within(row->level, arena),
                                    lab_claim_effect(&row->claim, arena));
    }
    return "";
}

/* "GPUs 1 and 2"; of gangs, which have long names, one alone. */
static const char *list_words(const struct lab_choice *item, const char *const *names, int count,
                              struct lab_arena *arena) {
    return item->point->runs[0]->rank_count == 1 || count == 1
               ? lab_words_devices(names, count, arena)
               : lab_arena_printf(arena, "any of %d other groups", count);
}

const char *lab_choices_use(const struct lab_choices *placements, int best,
                            struct lab_arena *arena) {
    const struct lab_choice *item = &placements->items[best];
    const char **names = NULL, **open = NULL, *nodes = item->nodes,
               *own = item->levels[LAB_FACTOR_DEVICE], *rest = rest_words(placements, item, arena);
    int count = 0, open_count = 0;
    double bound = NAN;
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *other = &placements->items[i];
        if (lab_choices_open(placements, best, i))
            LAB_ADD(open, open_count, arena) = other->levels[LAB_FACTOR_DEVICE];
        if (i == best || !lab_choices_alike(placements, best, i))
            continue;
        const struct lab_claim *direct = direct_claim(placements, best, i);
        LAB_ADD(names, count, arena) = other->levels[LAB_FACTOR_DEVICE];
        bound = fmax(bound, direct ? direct->bound
                                   : fmax(bound_of(placements, item), bound_of(placements, other)));
        nodes = lab_str_equal(other->nodes, item->nodes) ? nodes : NULL;
    }
    if (count + open_count == 0)
        return lab_arena_printf(arena, "%s%s", item->words, rest);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s (", own);
    if (count > 0)
        lab_str_printf(&text, "or %s, within ±%.1f%%", list_words(item, names, count, arena),
                       lab_words_bound_percent(bound));
    if (open_count > 0)
        lab_str_printf(&text, "%s%s: inconclusive", count > 0 ? "; " : "",
                       list_words(item, open, open_count, arena));
    lab_str_printf(&text, ")%s%s",
                   nodes ? item->words + strlen(own)
                         : lab_arena_printf(arena, ", nearest NUMA node%s", item->rest),
                   rest);
    return lab_arena_strdup(arena, text.text);
}
