/* words.c: what several devices bring, in sentences. */
#include "analysis/analysis_words.h"
#include "analysis/speedup/gang.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

static const char *number_word(int number, struct lab_arena *arena) {
    static const char *const words[] = {"No",   "One", "Two",   "Three", "Four",
                                        "Five", "Six", "Seven", "Eight"};
    return number < (int)(sizeof words / sizeof *words) ? words[number]
                                                        : lab_arena_printf(arena, "%d", number);
}

static const char *times(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    return lab_words_times(ratio->ratio, ratio->low, ratio->high, arena);
}

static const char *advice(const struct lab_gang *gang, struct lab_arena *arena) {
    switch (gang->grade) {
    case LAB_SPEEDUP_PAYS:
        return "use them";
    case LAB_SPEEDUP_MAYBE:
        return "hardly a difference, so one will do";
    case LAB_SPEEDUP_STAY:
        return "stay on one";
    case LAB_SPEEDUP_AMBIGUOUS:
        return gang->ratio.needed > 0
                   ? lab_arena_printf(arena, "ambiguous, %d runs of each would tell",
                                      gang->ratio.needed)
                   : "ambiguous, more runs of each would tell";
    case LAB_SPEEDUP_APART:
    case LAB_SPEEDUP_UNKNOWN:
        break;
    }
    return "how sure that is isn't known";
}

/* Of devices that train a model each: what they get done together, against one after the other. */
static const char *advice_apart(const struct lab_gang *gang, struct lab_arena *arena) {
    switch (lab_speedup_grade(&gang->ratio)) {
    case LAB_SPEEDUP_PAYS:
        return "use them for as many independent trainings, and one device for a single one";
    case LAB_SPEEDUP_MAYBE:
        return "hardly more gets done than one after the other, so one device will do";
    case LAB_SPEEDUP_STAY:
        return "train one after the other on one device";
    case LAB_SPEEDUP_AMBIGUOUS:
        return gang->ratio.needed > 0
                   ? lab_arena_printf(arena,
                                      "whether more gets done than one after the other, %d runs of "
                                      "each would tell",
                                      gang->ratio.needed)
                   : "whether more gets done than one after the other, more runs of each would "
                     "tell";
    case LAB_SPEEDUP_APART:
    case LAB_SPEEDUP_UNKNOWN:
        break;
    }
    return "whether more gets done than one after the other isn't known";
}

/* "the medium model at batch 128" of "mlp_medium_batch128", "… at batch 128 a device" of one with
 * "_weak" behind it, "… (allreducering)" where anything else is; any other name as it is. */
static const char *work_words(const char *name, const struct lab_study_run *run,
                              struct lab_arena *arena) {
    static const char middle[] = "_batch";
    const char *model = lab_study_trained_model(run, arena), *end = strstr(name, middle);
    if (!model || !end)
        return name;
    const char *batch = end + sizeof middle - 1;
    size_t digits = strspn(batch, "0123456789");
    const char *rest = batch + digits;
    bool weak = lab_str_starts(rest, "_weak") && (!rest[5] || rest[5] == '_');
    rest += weak ? 5 : 0;
    if (*rest && *rest != '_')
        return name;
    return lab_arena_printf(arena, "the %s model at batch %.*s%s%s", model, (int)digits, batch,
                            weak ? " a device" : "",
                            *rest ? lab_arena_printf(arena, " (%s)", rest + 1) : "");
}

/* Where each device has a batch of its own, a step of several isn't what a step of one is. */
static const char *weak_words(const struct lab_gang *gang, struct lab_arena *arena) {
    const struct lab_study_run *run = gang->point->runs[0];
    if (!lab_str_equal(lab_study_text(run, "options.scaling"), "weak"))
        return "";
    return lab_arena_printf(arena, ", which is another training (batch %.0f in all)",
                            gang->size * lab_study_number(run, "options.batch_size"));
}

const char *lab_gang_words(const struct lab_gangs *gangs, const struct lab_gang *gang,
                           struct lab_arena *arena) {
    const char *work = work_words(gangs->works[gang->work].name, gang->point->runs[0], arena),
               *number = number_word(gang->size, arena);
    const char *which =
        lab_gang_has_rival(gangs, gang) ? lab_arena_printf(arena, " (%s)", gang->gpus) : "";
    if (!gang->base || isnan(gang->ratio.ratio))
        return lab_arena_printf(arena, "%s devices%s did %s, but there is no run on one to compare",
                                number, which, work);
    const char *within = gang->ratio.within ? " within one run each" : "";
    if (gang->grade == LAB_SPEEDUP_APART)
        return lab_arena_printf(
            arena,
            "%s devices%s train a model each, side by side, at %s the samples a second of one for "
            "%s%s: no training is faster for it (allreduce=none); %s",
            number, which, times(&gang->ratio, arena), work, within, advice_apart(gang, arena));
    return lab_arena_printf(arena, "%s devices%s are %s one for %s%s%s: %s", number, which,
                            times(&gang->ratio, arena), work, weak_words(gang, arena), within,
                            advice(gang, arena));
}

/* --- gangs of one size that differ --- */

struct contrast {
    const struct lab_gang *fast, *slow; /* of one size at one work; NULL = all of a size agree */
};

/* One pays and another doesn't: the pair that is farthest apart. */
static struct contrast find_contrast(const struct lab_gangs *gangs) {
    struct contrast found = {NULL, NULL};
    double most = 1;
    for (int i = 0; i < gangs->count; i++)
        for (int k = 0; k < gangs->count; k++) {
            const struct lab_gang *fast = &gangs->items[i], *slow = &gangs->items[k];
            if (fast->work != slow->work || fast->size != slow->size ||
                fast->grade != LAB_SPEEDUP_PAYS || slow->grade == LAB_SPEEDUP_PAYS ||
                !(fast->ratio.low / slow->ratio.high > most))
                continue;
            most = fast->ratio.low / slow->ratio.high;
            found = (struct contrast){fast, slow};
        }
    return found;
}

/* "0+2 pay in 18 of 18 comparisons" */
static void add_tally(struct lab_str *text, const struct lab_gangs *gangs, const char *gpus) {
    int compared = 0, pays = 0;
    for (int i = 0; i < gangs->count; i++)
        if (gangs->items[i].base && lab_str_equal(gangs->items[i].gpus, gpus)) {
            compared++;
            pays += gangs->items[i].grade == LAB_SPEEDUP_PAYS;
        }
    lab_str_printf(text, "%s pay in %d of %d comparisons", gpus, pays, compared);
}

/* "gain 6.0 % [5.1, 6.4]" */
static void add_gain(struct lab_str *text, const struct lab_study_ratio *ratio) {
    bool gains = ratio->ratio >= 1;
    double low = gains ? ratio->low - 1 : 1 - ratio->high,
           high = gains ? ratio->high - 1 : 1 - ratio->low;
    lab_str_printf(text, "%s %.0f %% [%.0f, %.0f]", gains ? "gain" : "lose",
                   100 * fabs(ratio->ratio - 1), 100 * low, 100 * high);
}

static void add_contrast(struct lab_str *text, const struct lab_gangs *gangs,
                         const struct contrast *contrast, struct lab_arena *arena) {
    const struct lab_gang *fast = contrast->fast, *slow = contrast->slow;
    bool within = fast->ratio.within && slow->ratio.within;
    lab_str_printf(text, "It matters which %d devices: for %s, %s ", fast->size,
                   gangs->works[fast->work].name, fast->gpus);
    if (fast->size == 2 && fast->ratio.ratio >= 1.9)
        lab_str_printf(text, "double the throughput of one (%s)", times(&fast->ratio, arena));
    else
        lab_str_printf(text, "do %s the work of one", times(&fast->ratio, arena));
    lab_str_printf(text, ", but %s ", slow->gpus);
    add_gain(text, &slow->ratio);
    lab_str_printf(text, "%s; ", within ? ", within one run each" : "");
    add_tally(text, gangs, fast->gpus);
    lab_str_add(text, ", ");
    add_tally(text, gangs, slow->gpus);
}

static void add_place(struct lab_str *text, double value, enum lab_even_axis axis) {
    if (axis == LAB_EVEN_BATCH) {
        lab_str_printf(text, "%.0f", value);
        return;
    }
    double scaled = value >= 1e9 ? value / 1e9 : value >= 1e6 ? value / 1e6 : value / 1e3;
    lab_str_printf(text, scaled < 100 ? "%.1f %s" : "%.0f %s", scaled,
                   value >= 1e9   ? "G"
                   : value >= 1e6 ? "M"
                                  : "k");
}

static void add_bounds(struct lab_str *text, const struct lab_break_even *even) {
    if (isnan(even->low) && isnan(even->high)) {
        lab_str_add(text, ", which is hardly more than a guess");
        return;
    }
    lab_str_add(text, isnan(even->low) ? " [at most " : isnan(even->high) ? " [at least " : " [");
    if (!isnan(even->low))
        add_place(text, even->low, even->axis);
    lab_str_add(text, isnan(even->low) || isnan(even->high) ? "" : ", ");
    if (!isnan(even->high))
        add_place(text, even->high, even->axis);
    lab_str_add(text, "]");
}

const char *lab_break_even_figure(const struct lab_break_even *even, struct lab_arena *arena) {
    if (isnan(even->at))
        return even->faster ? "several are faster throughout" : "one is faster throughout";
    LAB_AUTO(str, text);
    add_place(&text, even->at, even->axis);
    add_bounds(&text, even);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_break_even_words(const struct lab_break_even *even, struct lab_arena *arena) {
    static const char *const units[] = {[LAB_EVEN_PARAMETERS] = "parameters",
                                        [LAB_EVEN_FLOPS] = "operations an iteration",
                                        [LAB_EVEN_BATCH] = ""};
    LAB_AUTO(str, text);
    if (isnan(even->at)) {
        lab_str_printf(&text, "there is no break-even of %d devices between ", even->size);
        add_place(&text, even->from, even->axis);
        lab_str_add(&text, " and ");
        add_place(&text, even->until, even->axis);
    } else {
        lab_str_printf(&text, "break-even of %d devices is near %s", even->size,
                       even->axis == LAB_EVEN_BATCH ? "batch " : "");
        add_place(&text, even->at, even->axis);
    }
    if (units[even->axis][0])
        lab_str_printf(&text, " %s", units[even->axis]);
    if (!isnan(even->at))
        add_bounds(&text, even);
    if (even->axis == LAB_EVEN_BATCH)
        lab_str_printf(&text, " for %s", even->where);
    else if (even->where[0])
        lab_str_printf(&text, " at %s", even->where);
    if (even->at < even->from || even->at > even->until)
        lab_str_add(&text, ", beyond what was measured");
    return lab_arena_strdup(arena, text.text);
}

/* The one that was measured best: with both ends, over models before batches, within what was
 * run. */
static const struct lab_break_even *best_even(const struct lab_gangs *gangs) {
    const struct lab_break_even *best = NULL;
    for (int i = 0; i < gangs->even_count; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        bool inside = even->at >= even->from && even->at <= even->until;
        if (isnan(even->at) || isnan(even->low) || isnan(even->high) || !even->above)
            continue;
        if (!best || (inside && !(best->at >= best->from && best->at <= best->until)))
            best = even;
    }
    return best;
}

int lab_gangs_count(const struct lab_gangs *gangs, enum lab_speedup_grade grade) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++)
        count += gangs->items[i].grade == grade;
    return count;
}

/* "; of 6 comparisons several devices pay in 2 and one is faster in 4"; what never came isn't
 * told. */
static void add_tallies(struct lab_str *text, const struct lab_gangs *gangs, int compared,
                        struct lab_arena *arena) {
    int pays = lab_gangs_count(gangs, LAB_SPEEDUP_PAYS),
        stays = lab_gangs_count(gangs, LAB_SPEEDUP_STAY);
    int hardly = lab_gangs_count(gangs, LAB_SPEEDUP_MAYBE);
    const struct {
        int count;
        const char *words;
    } all[] = {{pays, "several devices pay"},
               {stays, "one is faster"},
               {hardly, "there is hardly a difference"},
               {compared - pays - stays - hardly, "it can't be told"}};
    int left = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        left += all[i].count > 0;
    if (left > 1)
        lab_str_printf(text, "; of %d comparisons", compared);
    const char *link = " ";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].count == 0)
            continue;
        if (all[i].count == compared)
            lab_str_printf(text, "; %s in %s", all[i].words,
                           compared == 2 ? "both comparisons"
                                         : lab_arena_printf(arena, "all %d comparisons", compared));
        else
            lab_str_printf(text, "%s%s in %d", link, all[i].words, all[i].count);
        link = --left > 1 ? ", " : " and ";
    }
}

const char *lab_gangs_answer(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const struct lab_gang *chosen = NULL;
    int compared = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        compared += gang->base && gang->grade != LAB_SPEEDUP_APART;
        if (gang->base && (!chosen || gang->grade > chosen->grade ||
                           (gang->grade == chosen->grade && gang->ratio.low > chosen->ratio.low)))
            chosen = gang;
    }
    if (chosen && gangs->works[chosen->work].best)
        chosen = gangs->works[chosen->work].best;
    if (gangs->work_count == 0)
        return "There is no run to look at.";
    if (gangs->count == 0)
        return "All runs are on one device: there is nothing to say about several.";
    if (!chosen)
        return "There are runs on several devices, but none of the same work on one to compare "
               "them with.";
    LAB_AUTO(str, text);
    struct contrast contrast = find_contrast(gangs);
    if (contrast.fast)
        add_contrast(&text, gangs, &contrast, arena);
    else
        lab_str_add(&text, lab_gang_words(gangs, chosen, arena));
    if (compared > 1 && lab_gangs_count(gangs, LAB_SPEEDUP_STAY) == compared)
        lab_str_add(&text, compared == 2
                               ? ", as in the other comparison"
                               : lab_arena_printf(arena, ", as for all %d others", compared - 1));
    else if (compared > 1 && !contrast.fast)
        add_tallies(&text, gangs, compared, arena);
    const struct lab_break_even *even = best_even(gangs);
    if (even)
        lab_str_printf(&text, "; %s", lab_break_even_words(even, arena));
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}
