/* words.c: a course in a sentence. */
#include "analysis/stability/rate_series.h"

#include "base/str.h"

#include <math.h>

/* Of those that make the class: a slow-down's are slower, a warm-up's faster. */
static const struct lab_rate_series_change *
largest_change(const struct lab_rate_series *rate_series) {
    const struct lab_rate_series_change *largest = NULL;
    double most = 0;
    for (int i = 0; i < rate_series->change_count; i++) {
        double size = log(rate_series->changes[i].after_s / rate_series->changes[i].before_s);
        size = rate_series->steady == LAB_STEADY_SLOWDOWN ? size
               : rate_series->steady == LAB_STEADY_WARMUP ? -size
                                                          : fabs(size);
        if (size <= most)
            continue;
        most = size;
        largest = &rate_series->changes[i];
    }
    return largest;
}

const char *lab_rate_series_moment(double seconds, struct lab_arena *arena) {
    return seconds < 1 ? lab_arena_printf(arena, "%.0f ms", 1e3 * seconds)
                       : lab_arena_printf(arena, "%.1f s", seconds);
}

static void add_change(struct lab_str *text, const struct lab_rate_series_change *change,
                       struct lab_arena *arena) {
    double share = change->after_s / change->before_s - 1;
    lab_str_printf(text, "iterations take %.1f %% %s from %s on", 100 * fabs(share),
                   share > 0 ? "longer" : "less", lab_rate_series_moment(change->at_s, arena));
    if (change->reason)
        lab_str_printf(text, ", when clocks were held back by %s", change->reason);
    else if (change->clock_after < 0.99 * change->clock_before && share > 0)
        lab_str_printf(text, ", when the clock fell from %.0f to %.0f MHz", change->clock_before,
                       change->clock_after);
}

static void add_drift(struct lab_str *text, const struct lab_rate_series *rate_series) {
    bool faster = rate_series->drift < 0;
    lab_str_printf(text, "iterations get %.1f %% [%.1f, %.1f] %s over the run",
                   100 * fabs(rate_series->drift),
                   100 * (faster ? -rate_series->drift_high : rate_series->drift_low),
                   100 * (faster ? -rate_series->drift_low : rate_series->drift_high),
                   faster ? "shorter" : "longer");
}

const char *lab_rate_series_words(const struct lab_rate_series *rate_series,
                                  struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const struct lab_rate_series_change *change = largest_change(rate_series);
    switch (rate_series->steady) {
    case LAB_STEADY_UNKNOWN:
        lab_str_add(&text, rate_series->count == 0 ? "no iterations were kept"
                                                   : "too few iterations to tell");
        break;
    case LAB_STEADY_FLAT:
        lab_str_add(&text, lab_rate_series_is_steady(rate_series)
                               ? "is steady"
                               : "holds its pace, but with clocks held back");
        if (!lab_rate_series_is_steady(rate_series) && rate_series->held_why)
            lab_str_printf(&text, " by %s", rate_series->held_why);
        break;
    case LAB_STEADY_WARMUP:
        lab_str_printf(&text, "warms up until %s",
                       lab_rate_series_moment(rate_series->steady_from_s, arena));
        break;
    case LAB_STEADY_SLOWDOWN:
        lab_str_add(&text, "slows down");
        break;
    case LAB_STEADY_NONE:
        lab_str_add(&text, "reaches no steady state");
        break;
    }
    if (change) {
        lab_str_add(&text, ": ");
        add_change(&text, change, arena);
    }
    if (rate_series->drifts) {
        if (rate_series->steady == LAB_STEADY_FLAT)
            lab_str_clear(&text);
        lab_str_add(&text, rate_series->steady == LAB_STEADY_FLAT ? "drifts: " : "; ");
        add_drift(&text, rate_series);
    }
    return lab_arena_strdup(arena, text.text);
}
