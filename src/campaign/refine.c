/*
 * refine.c: where to measure next. Points are read from the claims' scopes, by the names that runs
 * have: "gpu0_numa2_vit32x4x256".
 */
#include "campaign/campaign_internal.h"

#include "base/list.h"
#include "base/str.h"

#include <stdio.h>

#define REPEATS_LEAST 2
#define REPEATS_MOST  20 /* a claim that needs more is left inconclusive */

/* Claims of that kind, of phases before; in their order. */
static int find_claims(const struct lab_campaign *campaign, int phase, const char *kind,
                       const struct lab_campaign_known *known, struct lab_arena *arena,
                       const struct lab_claim *const **ret_claims) {
    const struct lab_claim **claims = NULL;
    int count = 0;
    for (int p = 0; p < campaign->phase_count; p++)
        for (int c = 0; lab_campaign_comes_before(campaign, p, phase) && c < known->phases[p].count;
             c++)
            if (lab_str_equal(known->phases[p].items[c]->kind, kind))
                LAB_ADD(claims, count, arena) = known->phases[p].items[c];
    *ret_claims = claims;
    return count;
}

/* --- placements --- */

void campaign_number_add(struct campaign_numbers *numbers, int64_t number,
                         struct lab_arena *arena) {
    for (int i = 0; i < numbers->count; i++)
        if (numbers->items[i] == number)
            return;
    LAB_ADD(numbers->items, numbers->count, arena) = number;
}

const char *campaign_number_word(const char *key, struct campaign_numbers *numbers,
                                 struct lab_arena *arena) {
    LAB_AUTO(str, text);
    LAB_SORT_NUMBERS(numbers->items, numbers->count);
    for (int i = 0; i < numbers->count; i++)
        lab_str_printf(&text, "%s%lld", i ? "," : "", (long long)numbers->items[i]);
    return lab_arena_printf(arena, "experiment.hardware.%s=[%s]", key, text.text);
}

static const char *const *eliminate(const struct lab_claim *const *claims, int count,
                                    struct lab_arena *arena, const char **ret_why) {
    struct campaign_numbers gpus = {0}, nodes = {0};
    int more = 0, open = 0;
    for (int c = 0; c < count; c++) {
        const struct lab_claim *claim = claims[c];
        int wanted = claim->needed - claim->n;
        if (claim->verdict != LAB_CLAIM_INCONCLUSIVE || claim->needed <= 0 || wanted > REPEATS_MOST)
            continue;
        open++;
        more = wanted > more ? wanted : more;
        for (int s = 0; s < claim->scope_count; s++) {
            int gpu, node;
            if (sscanf(claim->scope[s], "gpu%d_numa%d_", &gpu, &node) != 2)
                continue;
            campaign_number_add(&gpus, gpu, arena);
            campaign_number_add(&nodes, node, arena);
        }
    }
    *ret_why = "every comparison of placements has a verdict, or would take too many runs";
    if (gpus.count == 0)
        return NULL;
    more = more < REPEATS_LEAST ? REPEATS_LEAST : more;
    const char **words = lab_arena_alloc(arena, 4, sizeof *words);
    words[0] = campaign_number_word("gpu_ids", &gpus, arena);
    words[1] = campaign_number_word("numa_nodes", &nodes, arena);
    words[2] = lab_arena_printf(arena, "experiment.repeat=%d", more);
    *ret_why = lab_arena_printf(arena,
                                "%d of %d comparisons of placements are inconclusive: %d more runs "
                                "of each point",
                                open, count, more);
    return words;
}

bool lab_campaign_is_step(const struct lab_campaign *campaign, int phase, int study) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    return study + 1 < own->study_count && own->studies[study + 1].step > 0;
}

const char *const *lab_campaign_refine(const struct lab_campaign *campaign, int phase, int study,
                                       const struct lab_campaign_known *known,
                                       struct lab_arena *arena, const char **ret_why) {
    const struct lab_campaign_study *own = &campaign->phases[phase].studies[study];
    const struct lab_claim *const *claims;
    int count = find_claims(campaign, phase, own->kind, known, arena, &claims);
    *ret_why = "no run before it tests this";
    if (count == 0)
        return NULL;
    return own->strategy == LAB_CAMPAIGN_BISECT
               ? campaign_bisect(campaign, phase, study, known, arena, ret_why)
               : eliminate(claims, count, arena, ret_why);
}
