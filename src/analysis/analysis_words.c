/* analysis_words.c: figures put in words, and figures with an interval as cells. */
#include "analysis/analysis_words.h"

#include "base/str.h"

#include <math.h>

const char *lab_words_si(double value, const char *unit, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (!isfinite(value))
        return "–";
    lab_str_add_si(&text, value, unit);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_time(double seconds, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_time(&text, seconds);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_times(double value, double low, double high, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return isnan(low) ? lab_arena_printf(arena, "%.2f×", value)
                      : lab_arena_printf(arena, "%.2f× [%.2f, %.2f]", value, low, high);
}

const char *lab_words_capital(const char *words, struct lab_arena *arena) {
    char *text = lab_arena_strdup(arena, words);
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    return text;
}

const char *lab_words_verdict(enum lab_study_verdict verdict, const char *more, const char *less) {
    return verdict == LAB_STUDY_MORE   ? more
           : verdict == LAB_STUDY_LESS ? less
           : verdict == LAB_STUDY_SAME ? "same"
                                       : "undecided";
}

const char *lab_words_rate(struct lab_effect rate, const char *unit, struct lab_arena *arena) {
    static const char prefixes[] = {'k', 'M', 'G', 'T', 'P'};
    double scale = 1;
    int steps = 0;
    if (!isfinite(rate.value) || (isinf(rate.interval.high) && rate.interval.low > 0))
        return lab_arena_printf(arena, "%s or more", lab_words_si(rate.interval.low, unit, arena));
    if (!isfinite(rate.interval.low) || !isfinite(rate.interval.high))
        return lab_words_si(rate.value, unit, arena);
    while (rate.value / scale >= 1000 && steps < (int)sizeof prefixes) {
        scale *= 1000;
        steps++;
    }
    return lab_arena_printf(arena, "%.3g [%.3g, %.3g] %.*s%s", rate.value / scale,
                            rate.interval.low / scale, rate.interval.high / scale, steps > 0,
                            steps > 0 ? &prefixes[steps - 1] : "", unit);
}

const char *lab_words_number(double value, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return lab_arena_printf(arena, fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
}

const char *lab_words_effect(struct lab_effect effect, struct lab_arena *arena) {
    const char *value = lab_words_number(effect.value, arena);
    if (isnan(effect.value) || isnan(effect.interval.low) || isnan(effect.interval.high))
        return value;
    double farther = fmax(effect.value - effect.interval.low, effect.interval.high - effect.value) /
                     effect.value;
    if (farther > 1)
        return lab_arena_printf(arena, "%s ± > 100 %%", value);
    return lab_arena_printf(arena, "%s ± %.1f %%", value, 100 * farther);
}

double lab_words_bound_percent(double share) {
    double tenths = ceil(1000 * share - 1e-9);
    return tenths <= 0 ? 0 : tenths / 10; /* ceil of a little less than 0 is −0 */
}

struct lab_doc_cell lab_analysis_ratio(const struct lab_study_ratio *ratio) {
    return lab_cell_interval(ratio->ratio - 1, ratio->low - 1, ratio->high - 1, ratio->confidence);
}

struct lab_doc_cell lab_analysis_effect(struct lab_effect effect) {
    bool finite = isfinite(effect.interval.low) && isfinite(effect.interval.high);
    return lab_cell_interval(isfinite(effect.value) ? effect.value : NAN,
                             finite ? effect.interval.low : NAN,
                             finite ? effect.interval.high : NAN, effect.interval.confidence);
}
