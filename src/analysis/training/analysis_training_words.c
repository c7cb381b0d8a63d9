/* analysis_training_words.c: see the header. */
#include "analysis/training/analysis_training_words.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>

const char *lab_training_count(double value, struct lab_arena *arena) {
    static const char *const units[] = {"", " k", " M", " G", " T"};
    int unit = 0;
    double scaled = value;
    while (scaled >= 999.5 && unit < 4) {
        scaled /= 1e3;
        unit++;
    }
    int digits = unit == 0 || scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2;
    return lab_arena_printf(arena, "%.*f%s", digits, scaled, units[unit]);
}

const char *lab_training_step(double seconds, struct lab_arena *arena) {
    return lab_words_time(seconds, arena);
}

const char *lab_training_times(const struct lab_training_speedup *speedup,
                               struct lab_arena *arena) {
    return lab_words_times(speedup->value, speedup->low, speedup->high, arena);
}

static const char *place(double value, bool batch, struct lab_arena *arena) {
    return batch ? lab_arena_printf(arena, "%.0f", value) : lab_training_count(value, arena);
}

/* " [7.2 M, 12 M]"; an end that was looked for in vain is said to be open. */
static const char *bounds(const struct lab_training_break_even *even, bool batch,
                          struct lab_arena *arena) {
    bool low = even->low > 0 && isfinite(even->low), high = isfinite(even->high);
    if (isnan(even->low) || isnan(even->high))
        return "";
    if (low && high)
        return lab_arena_printf(arena, " [%s, %s]", place(even->low, batch, arena),
                                place(even->high, batch, arena));
    return low ? lab_arena_printf(arena, " [at least %s]", place(even->low, batch, arena))
               : lab_arena_printf(arena, " [at most %s]", place(even->high, batch, arena));
}

#define HARDLY 1.005 /* beyond, by rounding */

static const char *beyond_words(const struct lab_training_break_even *even,
                                struct lab_arena *arena) {
    return even->beyond > HARDLY
               ? lab_arena_printf(arena, ", %.1f times beyond what was run", even->beyond)
               : "";
}

/* Why it can't be told, and what would tell it. */
static const char *doubt_words(const struct lab_training *training,
                               const struct lab_training_break_even *even,
                               struct lab_arena *arena) {
    switch (even->doubt) {
    case LAB_TRAINING_NO_LAW:
        return training->lacks;
    case LAB_TRAINING_TOO_WIDE:
        return "the points leave it open; run more batch sizes, or each more often";
    case LAB_TRAINING_CONTRADICTED:
        return lab_arena_printf(arena,
                                "the law of these points has it otherwise than it was measured for "
                                "the %s model at batch %.0f (%.2f×); run more batch sizes",
                                even->against->model, even->against->work.batch,
                                even->against_speedup);
    case LAB_TRAINING_UNTESTED:
    case LAB_TRAINING_SURE:
        break;
    }
    return "nothing like it was run";
}

const char *lab_training_break_even_figure(const struct lab_training *training,
                                           const struct lab_training_break_even *even, bool batch,
                                           struct lab_arena *arena) {
    switch (even->state) {
    case LAB_TRAINING_NEVER:
        return lab_arena_printf(arena, "never, up to %s", place(even->until, batch, arena));
    case LAB_TRAINING_ALWAYS:
        return lab_arena_printf(arena, "throughout, from %s to %s", place(even->from, batch, arena),
                                place(even->until, batch, arena));
    case LAB_TRAINING_FROM:
        return lab_arena_printf(arena, "from %s on%s%s", place(even->at, batch, arena),
                                bounds(even, batch, arena), beyond_words(even, arena));
    case LAB_TRAINING_UNTIL:
        return lab_arena_printf(arena, "up to %s%s%s", place(even->at, batch, arena),
                                bounds(even, batch, arena), beyond_words(even, arena));
    case LAB_TRAINING_UNTOLD:
        break;
    }
    return lab_arena_printf(arena, "can't be told: %s", doubt_words(training, even, arena));
}

/* Of one that is told. */
static const char *told_words(const struct lab_training_break_even *even, bool batch, int devices,
                              const char *where, struct lab_arena *arena) {
    const char *before = batch ? "batch " : "", *behind = batch ? "" : " parameters";
    const char *at = isnan(even->at) ? "" : place(even->at, batch, arena);
    if (even->layers > 0)
        behind = lab_arena_printf(arena, " parameters in %.0f layers", even->layers);
    switch (even->state) {
    case LAB_TRAINING_NEVER:
        return lab_arena_printf(arena, "%d devices don't pay up to %s%s%s %s", devices, before,
                                place(even->until, batch, arena), behind, where);
    case LAB_TRAINING_ALWAYS:
        return lab_arena_printf(arena, "%d devices pay from %s%s%s on %s", devices, before,
                                place(even->from, batch, arena), behind, where);
    case LAB_TRAINING_FROM:
        return lab_arena_printf(arena, "%d devices begin to pay near %s%s%s%s %s%s", devices,
                                before, at, behind, bounds(even, batch, arena), where,
                                beyond_words(even, arena));
    case LAB_TRAINING_UNTIL:
    case LAB_TRAINING_UNTOLD:
        break;
    }
    return lab_arena_printf(arena, "%d devices pay up to %s%s%s%s %s alone%s", devices, before, at,
                            behind, bounds(even, batch, arena), where, beyond_words(even, arena));
}

const char *lab_training_break_even_words(const struct lab_training *training,
                                          const struct lab_training_break_even *even, bool batch,
                                          int devices, const char *where, struct lab_arena *arena) {
    if (even->state == LAB_TRAINING_UNTOLD)
        return lab_arena_printf(arena, "where %d devices begin to pay %s can't be told: %s",
                                devices, where, doubt_words(training, even, arena));
    return lab_arena_printf(arena, "by the law of these points %s",
                            told_words(even, batch, devices, where, arena));
}

const char *lab_training_break_evens_words(const struct lab_training *training,
                                           const struct lab_training_work *work,
                                           struct lab_arena *arena) {
    struct lab_training_break_even batch = lab_training_break_even_batch(training, work);
    struct lab_training_break_even size = lab_training_break_even_parameters(training, work);
    const char *first = lab_training_break_even_words(training, &batch, true, work->devices,
                                                      "for this model", arena);
    const char *where = lab_arena_printf(arena, "at batch %.0f", work->batch);
    bool same_doubt = batch.doubt != LAB_TRAINING_SURE && size.doubt == batch.doubt &&
                      size.against == batch.against;
    if (training->model_count < 2 || same_doubt)
        return first;
    const char *second =
        size.state != LAB_TRAINING_UNTOLD && batch.state != LAB_TRAINING_UNTOLD
            ? told_words(&size, false, work->devices, where, arena)
            : lab_training_break_even_words(training, &size, false, work->devices, where, arena);
    return lab_arena_printf(arena, "%s; %s", first, second);
}

static const char *range_words(const struct lab_training_range *range, struct lab_arena *arena) {
    const char *low = lab_training_count(range->low, arena);
    return range->low == range->high
               ? low
               : lab_arena_printf(arena, "%s to %s", low, lab_training_count(range->high, arena));
}

const char *lab_training_beyond(const struct lab_training_speedup *speedup,
                                const struct lab_training *training, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (speedup->parameters_beyond > HARDLY)
        lab_str_printf(&text, "its size is %.1f times beyond the models that were run (%s)",
                       speedup->parameters_beyond, range_words(&training->parameters, arena));
    if (speedup->batch_beyond > HARDLY)
        lab_str_printf(&text, "%sits batch is %.1f times beyond those that were run (%.0f to %.0f)",
                       text.length ? ", " : "", speedup->batch_beyond, training->batch.low,
                       training->batch.high);
    if (speedup->devices_beyond)
        lab_str_printf(&text, "%smore than %d devices were never run", text.length ? ", " : "",
                       training->devices_most);
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}
