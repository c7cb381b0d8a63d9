/* check.c: faults of single claims and of pairs of them. */
#include "analysis/claims/check.h"

#include "analysis/analysis_build.h"
#include "base/str.h"

#include <math.h>

#define EQUAL 1e-9

static void withdraw(struct lab_claim *claim) {
    claim->verdict = LAB_CLAIM_INCONCLUSIVE;
    claim->bound = NAN;
}

/* --- one by itself --- */

/* NULL = nothing is. */
static const char *what_is_wrong(const struct lab_claim *claim) {
    bool yes = claim->verdict == LAB_CLAIM_YES, no = claim->verdict == LAB_CLAIM_NO;
    bool known = !isnan(claim->low) && !isnan(claim->high);
    bool observed = claim->low == claim->high || (!known && claim->p == 0); /* not estimated */
    if (yes && !observed && (!known || claim->n < 2))
        return "it has no interval over runs";
    if ((yes || no) && known &&
        (claim->effect < claim->low - EQUAL || claim->effect > claim->high + EQUAL))
        return "its effect is outside its interval";
    if (yes && !claim->unit && claim->low <= 0 && claim->high >= 0)
        return "its interval includes 0";
    if (no && !(isnan(claim->effect) || claim->bound >= fabs(claim->effect) - EQUAL))
        return "its bound is below its effect";
    return NULL;
}

/* --- two of them --- */

static bool is_same(double a, double b) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= EQUAL * fmax(1, fabs(a));
}

static bool contradict(const struct lab_claim *a, const struct lab_claim *b) {
    if (!lab_claim_is_alike(a, b))
        return false;
    if (lab_str_equal(a->kind, b->kind))
        return a->verdict != b->verdict || !is_same(a->effect, b->effect);
    return !a->unit && !b->unit && a->verdict == LAB_CLAIM_YES && b->verdict == LAB_CLAIM_YES &&
           (a->effect < 0) != (b->effect < 0);
}

/* By p, then by runs; the second where they are alike. */
static bool is_weaker(const struct lab_claim *a, const struct lab_claim *b) {
    double p = isnan(a->p) ? 1 : a->p, other = isnan(b->p) ? 1 : b->p;
    return p != other ? p > other : a->n < b->n;
}

void lab_claims_check(struct lab_claim *const *claims, int count, bool pairs,
                      const char *const **faults, struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        const char *wrong = what_is_wrong(claims[i]);
        if (!wrong)
            continue;
        lab_analysis_note(faults, arena, "Program error, claim withdrawn: %s (%s): %s.",
                          lab_claim_sentence(claims[i], arena), claims[i]->kind, wrong);
        withdraw(claims[i]);
    }
    for (int i = 0; pairs && i < count; i++)
        for (int k = i + 1; k < count; k++) {
            if (!contradict(claims[i], claims[k]))
                continue;
            struct lab_claim *weaker = is_weaker(claims[i], claims[k]) ? claims[i] : claims[k],
                             *other = weaker == claims[i] ? claims[k] : claims[i];
            lab_analysis_note(faults, arena,
                              "Program error, claim withdrawn: %s (%s), which contradicts: %s "
                              "(%s).",
                              lab_claim_sentence(weaker, arena), weaker->kind,
                              lab_claim_sentence(other, arena), other->kind);
            withdraw(weaker);
        }
}
