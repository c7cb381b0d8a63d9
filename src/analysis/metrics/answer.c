/* answer.c: what the claims about one metric say of its settings, in a sentence or two. */
#include "analysis/metrics/metrics.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>

const char *metrics_withheld(const struct metrics_metric *metric) {
    for (int i = 0; i < metric->count; i++)
        if (metric->values[i].change.reason)
            return metric->values[i].change.reason;
    return metric->lead.reason;
}

const char *metrics_named(const struct metrics_metric *metric, struct lab_arena *arena) {
    return metric->own ? lab_words_capital(metric->name, arena) : metric->name;
}

/* With so many digits more than usual; from 10 thousand on as "164k", then whole: "164321". */
static const char *number_text(double value, int more, struct lab_arena *arena) {
    struct lab_doc_cell cell = lab_cell_figure(value);
    if (fabs(value) >= 9999.5 && more > 0)
        return lab_arena_printf(arena, "%.*f", more - 1, value);
    return fabs(value) < 9999.5 ? lab_arena_printf(arena, "%.*g", 4 + more, value)
                                : metrics_cell_text(&cell, LAB_UNIT_NUMBER, arena);
}

static const char *precise_text(const struct metrics_metric *metric, double value, int more,
                                struct lab_arena *arena) {
    const char *number = number_text(value, more, arena);
    return lab_arena_printf(arena, "%s%s%s", number ? number : "infinite", *metric->unit ? " " : "",
                            metric->unit);
}

static const char *value_text(const struct metrics_metric *metric, double value,
                              struct lab_arena *arena) {
    return precise_text(metric, value, 0, arena);
}

/* Digits beyond the usual ones that show two values to be different. */
static int digits_to_differ(double a, double b, struct lab_arena *arena) {
    int more = 0;
    while (more < 8 && lab_str_equal(number_text(a, more, arena), number_text(b, more, arena)))
        more++;
    return more;
}

/* "3 runs each", "1 to 3 runs"; `ret_fewest`: of the setting that has fewest. */
static const char *runs_words(const struct metrics_metric *metric, int *ret_fewest,
                              struct lab_arena *arena) {
    int fewest = metric->values[0].runs, most = fewest;
    for (int i = 1; i < metric->compared; i++) {
        fewest = metric->values[i].runs < fewest ? metric->values[i].runs : fewest;
        most = metric->values[i].runs > most ? metric->values[i].runs : most;
    }
    *ret_fewest = fewest;
    return fewest < most ? lab_arena_printf(arena, "%d to %d runs", fewest, most)
                         : lab_arena_printf(arena, "%d run%s each", fewest, fewest == 1 ? "" : "s");
}

static const char *settings_words(int count, struct lab_arena *arena) {
    return count == 2 ? "both" : lab_arena_printf(arena, "all %d", count);
}

/* Where no claim is certain: the range of the values. */
static const char *range_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct metrics_value *best = &metric->values[0],
                               *last = &metric->values[metric->compared - 1];
    int fewest;
    const char *runs = runs_words(metric, &fewest, arena);
    const char *why = metrics_withheld(metric);
    why = why ? lab_arena_printf(arena, " %s.", lab_words_capital(why, arena)) : "";
    const char *quantity =
        metric->own ? lab_words_capital(metric->quantity, arena) : metric->quantity;
    if (best->value == last->value)
        return lab_arena_printf(arena, "%s: %s in %s settings (%s).%s", quantity,
                                value_text(metric, best->value, arena),
                                settings_words(metric->compared, arena), runs, why);
    int more = digits_to_differ(best->value, last->value, arena);
    return lab_arena_printf(arena, "%s from %s (%s) to %s (%s): %s (%s).%s", quantity,
                            precise_text(metric, best->value, more, arena), best->name,
                            precise_text(metric, last->value, more, arena), last->name,
                            metric->better == LAB_DIRECTION_NONE ? "no direction is better"
                            : fewest < 2                         ? "no verdict"
                                                                 : "inconclusive",
                            runs, why);
}

/* Whether the two best are as good as each other, where others are excluded. */
static const char *lead_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_claim *lead = &metric->lead;
    if (lead->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, " No difference%s between %s and %s.",
                                lab_claim_larger(lead->bound, arena), lead->subject,
                                lead->reference);
    return "";
}

const struct lab_claim *metrics_worst(const struct metrics_metric *metric) {
    const struct lab_claim *worst = NULL;
    for (int i = 1; i < metric->compared; i++)
        if (metrics_is_worse(metric, &metric->values[i]))
            worst = &metric->values[i].worse;
    return worst;
}

#define NAMED_MOST 3

/* "adam or adamw": those that are certainly worse than the best, or the others. Names may have
 * commas. */
static int add_names(const struct metrics_metric *metric, bool worse, struct lab_str *out) {
    int count = 0;
    for (int i = 0; i < metric->compared; i++)
        if (metrics_is_worse(metric, &metric->values[i]) == worse && count++ < NAMED_MOST)
            lab_str_printf(out, "%s%s", count > 1 ? " or " : "", metric->values[i].name);
    if (count > NAMED_MOST)
        lab_str_printf(out, " or %d more", count - NAMED_MOST);
    return count;
}

/* Of many, the best alone. */
const char *metrics_choice(const struct metrics_metric *metric, struct lab_arena *arena) {
    LAB_AUTO(str, good);
    LAB_AUTO(str, worse);
    if (metric->best || !metrics_worst(metric))
        return NULL;
    if (add_names(metric, false, &good) > NAMED_MOST)
        return lab_arena_printf(arena, "Use %s", metric->values[0].name);
    add_names(metric, true, &worse);
    return lab_arena_printf(arena, "Use %s, not %s", good.text, worse.text);
}

/* The choice as a sentence, with what it leaves open; "" = there is none. */
static const char *choice_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const char *choice = metrics_choice(metric, arena);
    int others = -1;
    for (int i = 0; i < metric->compared; i++)
        others += !metrics_is_worse(metric, &metric->values[i]);
    return !choice ? ""
           : others < NAMED_MOST
               ? lab_arena_printf(arena, "%s. ", choice)
               : lab_arena_printf(arena, "%s; %d other settings are not certainly worse. ", choice,
                                  others);
}

/* Why one setting alone has a value. */
static const char *alone_words(const struct metrics_metric *metric,
                               const struct metrics_settings *settings, struct lab_arena *arena) {
    int failed = 0, planned = 0;
    for (int i = 0; i < settings->study_count; i++) {
        failed += settings->studies[i].failed_count;
        planned += settings->studies[i].planned_count;
    }
    if (settings->count > 1 && metric->reported_by > 1)
        return "the only setting that didn't diverge";
    if (settings->count > 1)
        return "the only setting that reported it";
    if (settings->failed_count > 0)
        return "the only setting that succeeded";
    if (failed > 0 && settings->several)
        return lab_arena_printf(arena, "the only setting that succeeded; %d of %d runs failed",
                                failed, planned);
    return settings->several ? "the only setting that is done" : "the only setting";
}

/* "adam: 1.7% lower loss than adamw (…)."; where the table compares the two the other way round, as
 * the table has it: a ratio's inverse has other ends. */
static const char *best_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_claim *next = &metric->values[1].change;
    bool turned = next->verdict == LAB_CLAIM_YES && !next->difference &&
                  lab_str_equal(next->reference, metric->best) &&
                  lab_str_equal(next->subject, metric->lead.reference);
    if (!turned)
        return lab_arena_printf(arena, "%s.", lab_claim_sentence(&metric->lead, arena));
    return lab_arena_printf(arena, "%s has the %s %s; %s.", metric->best,
                            metric->better == LAB_DIRECTION_LOWER ? "lowest" : "highest",
                            metric->quantity, lab_claim_sentence(next, arena));
}

const char *metrics_answer(const struct metrics_metric *metric,
                           const struct metrics_settings *settings, bool chosen,
                           struct lab_arena *arena) {
    double bound = 0;
    int same = 0;
    if (metric->count == 0 || !metric->values)
        return metrics_diverged_words(metric, arena);
    if (metric->class_count > 0)
        return metrics_class_answer(metric, settings, arena);
    if (metric->compared == 1)
        return lab_arena_printf(arena, "%s: %s with %s, %s.", metrics_named(metric, arena),
                                value_text(metric, metric->values[0].value, arena),
                                metric->values[0].name, alone_words(metric, settings, arena));
    if (metric->best)
        return best_words(metric, arena);
    const struct lab_claim *worst = metrics_worst(metric);
    const char *by_key = metrics_keys_answer(metric, arena);
    for (int i = 0; i < metric->compared; i++) {
        same += metric->values[i].change.verdict == LAB_CLAIM_NO;
        bound = fmax(bound, metric->values[i].change.bound); /* fmax passes NaN over */
    }
    if (by_key && (metrics_keys_worst(metric) || same < metric->compared - 1))
        return by_key;
    if (worst)
        return lab_arena_printf(arena, "%s%s%s.%s%s", chosen ? choice_words(metric, arena) : "",
                                metrics_keys_dependence(metric, arena),
                                lab_claim_sentence(worst, arena),
                                metrics_keys_interaction(metric, arena), lead_words(metric, arena));
    if (same == metric->compared - 1)
        return lab_arena_printf(arena, "No difference%s in %s between %s settings.",
                                lab_claim_larger(bound, arena), metric->quantity,
                                settings_words(metric->compared, arena));
    return range_words(metric, arena);
}
