/* exception.c: what batch sizes gain on the placements that are advised, and models for which
 * another batch is better than the one that is advised over all. */
#include "analysis/analysis_words.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

/* The row of the batch that a model's claims speak for; where that is the reference, any of its
 * rows. NULL = its batch doesn't vary. */
static const struct lab_factor_row *find_row(const struct lab_choices *placements, int model) {
    const struct lab_factor_row *found = NULL;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor == LAB_FACTOR_BATCH && row->model == model && (!found || row->chosen))
            found = row;
    }
    return found;
}

static const char *level_of(const struct lab_factor_row *row) {
    return row->chosen ? row->level : "";
}

static const char *words_of(const struct lab_factor_row *row) {
    return row->chosen ? row->level : row->reference;
}

/* Whether another work of the same model has led to that claim. */
static bool is_listed(const struct lab_factor_row *rows, int count,
                      const struct lab_factor_row *row) {
    for (int i = 0; i < count; i++)
        if (lab_str_equal(rows[i].of_model, row->of_model) &&
            lab_str_equal(rows[i].level, row->level))
            return true;
    return false;
}

static struct lab_factor_row *list_rows(const struct lab_choices *placements,
                                        const struct lab_factor_row *advised,
                                        struct lab_arena *arena, int *ret_count) {
    struct lab_factor_row *rows = NULL;
    for (int m = 0; m < placements->model_count; m++) {
        const struct lab_factor_row *own = find_row(placements, m);
        if (!own || lab_str_equal(level_of(own), level_of(advised)))
            continue;
        int first = lab_choices_default(placements, m);
        struct lab_factor_row row = {
            .factor = LAB_FACTOR_BATCH,
            .model = -1,
            .advised = true,
            .of_model = placements->items[first].point->runs[0]->model,
            .level = level_of(own),
            .reference = lab_claim_within(words_of(advised), arena),
        };
        lab_factor_compare(placements, &row, level_of(advised), arena);
        row.claim.kind = "recommend.batch_model";
        row.claim.subject = lab_arena_printf(arena, "%s, %s",
                                             lab_words_capital(words_of(own), arena), row.of_model);
        row.claim.mean_of =
            row.pairs > 1
                ? lab_arena_printf(arena, "%s%s",
                                   lab_study_pair_words(placements->study, row.pairs, 1, arena),
                                   placements->without)
                : NULL;
        if (row.pairs > 0 && !is_listed(rows, *ret_count, &row))
            LAB_ADD(rows, *ret_count, arena) = row;
    }
    return rows;
}

/* Whether another batch is better still for the same model. */
static bool is_beaten(const struct lab_factor_row *rows, int count, int at) {
    for (int i = 0; i < count; i++)
        if (lab_str_equal(rows[i].of_model, rows[at].of_model) &&
            lab_claim_is_gain(&rows[i].claim) && rows[i].claim.effect > rows[at].claim.effect)
            return true;
    return false;
}

int lab_choices_exceptions(const struct lab_choices *placements, struct lab_arena *arena,
                           struct lab_claim **ret_claims) {
    const struct lab_factor_row *advised = find_row(placements, -1);
    int row_count = 0, family_count = 0, count = 0;
    struct lab_claim **family = NULL;
    *ret_claims = NULL;
    if (!advised)
        return 0;
    struct lab_factor_row *rows = list_rows(placements, advised, arena, &row_count);
    for (int i = 0; i < row_count; i++)
        LAB_ADD(family, family_count, arena) = &rows[i].claim;
    lab_claim_adjust(family, family_count);
    for (int i = 0; i < row_count; i++)
        if (lab_claim_is_gain(&rows[i].claim) && !is_beaten(rows, row_count, i))
            LAB_ADD(*ret_claims, count, arena) = rows[i].claim;
    return count;
}

/* --- what is avoided --- */

/* Over all models, for certain and by what is worth a change: against the others, or as what
 * others are compared with. */
static bool is_slow_device(const struct lab_choices *placements, const char *device) {
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor != LAB_FACTOR_DEVICE || row->model >= 0 ||
            row->claim.verdict != LAB_CLAIM_YES)
            continue;
        double loss = lab_str_equal(row->level, device)       ? -row->claim.effect
                      : lab_str_equal(row->reference, device) ? row->claim.effect
                                                              : 0;
        if (loss >= LAB_CLAIM_WORTH)
            return true;
    }
    return false;
}

void lab_choices_mark_avoided(struct lab_choices *placements, struct lab_arena *arena) {
    const struct lab_choice_index *devices = &placements->index[LAB_FACTOR_DEVICE];
    const char **names = NULL;
    int count = 0;
    bool *slow = lab_arena_alloc(arena, (size_t)devices->level_count + 1, sizeof *slow),
         *named = lab_arena_alloc(arena, (size_t)devices->level_count + 1, sizeof *named);
    for (int d = 0; d < devices->level_count; d++)
        slow[d] = is_slow_device(placements, devices->levels[d]);
    for (int i = 0; i < placements->count; i++) {
        struct lab_choice *item = &placements->items[i];
        int device = item->level_numbers[LAB_FACTOR_DEVICE];
        item->avoided = *item->levels[LAB_FACTOR_NODE] != '\0' || slow[device];
        if (slow[device] && !named[device])
            LAB_ADD(names, count, arena) = item->levels[LAB_FACTOR_DEVICE];
        named[device] |= slow[device];
    }
    placements->without = "";
    if (count == 0)
        return;
    LAB_ADD(names, count, arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    placements->without = lab_arena_printf(arena, " without %s", list.text);
}

/* --- on the others --- */

/* Its claims of each model by itself, the largest first; their verdicts hold together. */
static int list_models(const struct lab_choices *placements, const struct lab_factor_row *row,
                       struct lab_arena *arena, struct lab_claim **ret_claims) {
    struct lab_claim *claims = NULL, **family = NULL;
    const char **seen = NULL;
    int count = 0, seen_count = 0, family_count = 0;
    for (int i = 0; i < placements->count; i++) {
        const char *model = placements->items[i].point->runs[0]->model;
        struct lab_factor_row one = *row;
        if (lab_list_find_text(seen, seen_count, model) >= 0)
            continue;
        LAB_ADD(seen, seen_count, arena) = model;
        one.of_model = model;
        one.advised = true;
        lab_factor_compare(placements, &one, NULL, arena);
        if (one.pairs == 0)
            continue;
        one.claim.subject = model;
        LAB_ADD(claims, count, arena) = one.claim;
    }
    for (int i = 0; i < count; i++)
        LAB_ADD(family, family_count, arena) = &claims[i];
    lab_claim_adjust(family, family_count);
    LAB_SORT(claims, count, LAB_BY_MOST(claims, effect));
    *ret_claims = claims;
    return count;
}

/* "0 to +51.2%": what isn't certain is 0. NULL = all gain alike. */
static const char *range_words(const struct lab_claim *claims, int count, struct lab_arena *arena) {
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < count; i++) {
        double effect = claims[i].verdict == LAB_CLAIM_YES ? claims[i].effect : 0;
        least = fmin(least, effect);
        most = fmax(most, effect);
    }
    return most > least ? lab_words_range(least, most, arena) : NULL;
}

void lab_choices_claim_advised(struct lab_choices *placements, struct lab_arena *arena) {
    for (int i = 0; i < placements->row_count; i++) {
        struct lab_factor_row *own = &placements->rows[i], row = *own;
        own->in_use = lab_claim_none;
        if (row.factor != LAB_FACTOR_BATCH || row.model >= 0)
            continue;
        row.advised = true;
        lab_factor_compare(placements, &row, NULL, arena);
        if (row.pairs == 0)
            continue;
        row.claim.subject = own->claim.subject;
        if (own->claim.verdict == LAB_CLAIM_INCONCLUSIVE) /* its family's verdict */
            row.claim.verdict = own->claim.verdict;
        own->in_use = row.claim;
    }
}

int lab_choices_advised(const struct lab_choices *placements, struct lab_arena *arena,
                        struct lab_analysis_advised **ret_advised) {
    int count = 0;
    *ret_advised = NULL;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        struct lab_claim *models;
        if (row->in_use.verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        int model_count = list_models(placements, row, arena, &models);
        LAB_ADD(*ret_advised, count, arena) =
            (struct lab_analysis_advised){.claim = row->in_use,
                                          .range = range_words(models, model_count, arena),
                                          .models = models,
                                          .model_count = model_count};
    }
    return count;
}
