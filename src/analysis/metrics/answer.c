/* answer.c: what the claims about one metric say of its settings, in a sentence or two. */
#include "analysis/metrics/metrics.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>

bool metrics_is_gain(const struct metrics_metric *metric, const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_YES &&
           (metric->better == LAB_DIRECTION_HIGHER ? claim->effect > 0 : claim->effect < 0);
}

const char *metrics_withheld(const struct metrics_metric *metric) {
    for (int i = 0; i < metric->count; i++)
        if (metric->values[i].change.reason)
            return metric->values[i].change.reason;
    return metric->lead.reason;
}

static const char *value_text(const struct metrics_metric *metric, double value,
                              struct lab_arena *arena) {
    struct lab_doc_cell cell = lab_cell_figure(value);
    const char *number = fabs(value) < 9999.5 ? lab_arena_printf(arena, "%.4g", value)
                                              : metrics_cell_text(&cell, LAB_UNIT_NUMBER, arena);
    return lab_arena_printf(arena, "%s%s%s", number ? number : "infinite", *metric->unit ? " " : "",
                            metric->unit);
}

static int fewest_runs(const struct metrics_metric *metric) {
    int fewest = metric->values[0].runs;
    for (int i = 1; i < metric->count; i++)
        fewest = metric->values[i].runs < fewest ? metric->values[i].runs : fewest;
    return fewest;
}

/* Where no claim is certain: the range of the values. */
static const char *range_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct metrics_value *best = &metric->values[0],
                               *last = &metric->values[metric->count - 1];
    int fewest = fewest_runs(metric);
    const char *why = metrics_withheld(metric);
    why = why ? lab_arena_printf(arena, " %s.", lab_words_capital(why, arena)) : "";
    if (best->value == last->value)
        return lab_arena_printf(arena, "%s: %s in all %d settings (%d run%s each).%s", metric->name,
                                value_text(metric, best->value, arena), metric->count, fewest,
                                fewest == 1 ? "" : "s", why);
    return lab_arena_printf(arena, "%s from %s (%s) to %s (%s): %s (%d run%s each).%s",
                            metric->name, value_text(metric, best->value, arena), best->name,
                            value_text(metric, last->value, arena), last->name,
                            metric->better == LAB_DIRECTION_NONE ? "no direction is better"
                            : fewest < 2                         ? "no verdict"
                                                                 : "inconclusive",
                            fewest, fewest == 1 ? "" : "s", why);
}

/* How the best value compares with the next one, where the headline compares it with another. */
static const char *lead_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_claim *lead = &metric->lead;
    if (lead->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, " No difference larger than %.1f%% to the next, %s.",
                                lab_words_bound_percent(lead->bound), lead->reference);
    if (lead->verdict == LAB_CLAIM_INCONCLUSIVE)
        return lab_arena_printf(arena, " Against the next, %s: inconclusive.", lead->reference);
    return "";
}

const struct lab_claim *metrics_certain_loss(const struct metrics_metric *metric) {
    const struct lab_claim *worst = NULL;
    for (int i = 1; i < metric->count; i++) {
        const struct lab_claim *change = &metric->values[i].change;
        if (change->verdict == LAB_CLAIM_YES && !metrics_is_gain(metric, change))
            worst = change;
    }
    return worst;
}

/* Why one setting alone has a value. */
static const char *alone_words(const struct metrics_settings *settings, struct lab_arena *arena) {
    int failed = 0, planned = 0;
    for (int i = 0; i < settings->study_count; i++) {
        failed += settings->studies[i].failed_count;
        planned += settings->studies[i].planned_count;
    }
    if (settings->count > 1)
        return "the only setting that reported it";
    if (failed > 0 && settings->several)
        return lab_arena_printf(arena, "the only setting that succeeded; %d of %d runs failed",
                                failed, planned);
    return settings->several ? "the only setting that is done" : "the only setting";
}

const char *metrics_answer(const struct metrics_metric *metric,
                           const struct metrics_settings *settings, struct lab_arena *arena) {
    double bound = 0;
    int same = 0;
    if (metric->count == 1)
        return lab_arena_printf(arena, "%s: %s with %s, %s.", metric->name,
                                value_text(metric, metric->values[0].value, arena),
                                metric->values[0].name, alone_words(settings, arena));
    if (metrics_is_gain(metric, &metric->lead))
        return lab_arena_printf(arena, "%s.", lab_claim_sentence(&metric->lead, arena));
    for (int i = 0; i < metric->count; i++) {
        const struct lab_claim *change = &metric->values[i].change;
        if (change->verdict == LAB_CLAIM_YES && metric->values[i].name == metric->best)
            return lab_arena_printf(arena, "%s.%s", lab_claim_sentence(change, arena),
                                    i == 0 ? lead_words(metric, arena) : "");
        same += change->verdict == LAB_CLAIM_NO;
        bound = fmax(bound, change->bound); /* fmax passes NaN over */
    }
    const struct lab_claim *worst = metrics_certain_loss(metric);
    if (worst && lab_str_equal(worst->reference, metric->values[0].name))
        return lab_arena_printf(arena, "%s.%s", lab_claim_sentence(worst, arena),
                                lead_words(metric, arena));
    if (worst)
        return lab_arena_printf(arena, "%s. No setting is certainly better than %s.",
                                lab_claim_sentence(worst, arena), worst->reference);
    if (same == metric->count - 1)
        return lab_arena_printf(arena,
                                "No difference larger than %.1f%% in %s between %d settings.",
                                lab_words_bound_percent(bound), metric->name, metric->count);
    return range_words(metric, arena);
}
