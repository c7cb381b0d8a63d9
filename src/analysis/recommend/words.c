/* words.c: a factor whose models differ, in place of a mean that no model is near. */
#include "analysis/recommend/recommend.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>

#define NAMED_MOST 3

const char *lab_choices_by_model(const struct lab_choices *placements,
                                 const struct lab_factor_row *mean, struct lab_arena *arena) {
    const char *names[NAMED_MOST + 1] = {NULL};
    double least = INFINITY, most = 0, bound = 0;
    int differ = 0, same = 0, open = 0;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor != mean->factor || row->model < 0 ||
            !lab_str_equal(row->level, mean->level))
            continue;
        if (row->claim.verdict == LAB_CLAIM_YES) {
            if (row->claim.effect > 0)
                return NULL;
            if (differ < NAMED_MOST)
                names[differ] = placements->models[row->model];
            differ++;
            least = fmin(least, -100 * row->claim.effect);
            most = fmax(most, -100 * row->claim.effect);
        } else if (row->claim.verdict == LAB_CLAIM_NO) {
            same++;
            bound = fmax(bound, row->claim.bound);
        } else {
            open += row->claim.verdict == LAB_CLAIM_INCONCLUSIVE;
        }
    }
    int count = differ + same + open;
    if (differ == 0 || differ == count)
        return NULL;
    LAB_AUTO(str, who);
    LAB_AUTO(str, text);
    if (differ <= NAMED_MOST)
        lab_str_add_list(&who, names, "and");
    else
        lab_str_printf(&who, "%d of %s", differ,
                       lab_study_count_words(placements->study, count, arena));
    lab_str_printf(&text, "%s: ", mean->level);
    if (most - least >= 0.05)
        lab_str_printf(&text, "%.1f to ", least);
    lab_str_printf(&text, "%.1f%% lower throughput than %s for %s (%d runs each).", most,
                   mean->reference, who.text, mean->claim.n);
    if (same > 0)
        lab_str_printf(&text, " No difference%s for %s%d other%s.", lab_claim_larger(bound, arena),
                       open ? "" : "the ", same, same == 1 ? "" : "s");
    if (open > 0)
        lab_str_printf(&text, " Inconclusive for %s%d other%s.", same ? "" : "the ", open,
                       open == 1 ? "" : "s");
    return lab_arena_strdup(arena, text.text);
}
