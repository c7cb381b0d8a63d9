/* answer.c: what to do, the pooled speed-up and break-even in three sentences. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training.h"
#include "base/list.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <string.h>

const char *lab_gangs_unshared(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].result->share_note)
            return study->runs[i].result->share_note;
    return NULL;
}

const char *lab_gangs_share_note(const struct lab_study_table *study, struct lab_arena *arena) {
    const char *note = lab_gangs_unshared(study);
    return note ? lab_arena_printf(arena, "On this simulated machine %s.", note) : NULL;
}

/* --- points --- */

#define SPREAD 1.5 /* of a pool's points: their mean is near none of them */

struct range {
    double least, most;
};

/* Of the points of these devices, NULL = of any, by so many: the slowest and the fastest. */
static struct range range_of(const struct lab_gangs *gangs, const char *names, int devices) {
    struct range range = {INFINITY, 0};
    for (int i = 0; i < gangs->count; i++)
        if (names ? lab_str_equal(gangs->items[i].names, names)
                  : gangs->items[i].devices == devices) {
            range.least = fmin(range.least, gangs->items[i].speedup.value);
            range.most = fmax(range.most, gangs->items[i].speedup.value);
        }
    return range;
}

/* --- break-even --- */

#define EVEN_OPEN   "Break-even is inconclusive."
#define EVENS_NAMED 3

static bool is_of(const struct lab_break_even *even, const char *model) {
    size_t length = model ? strlen(model) : 0;
    return !model || (lab_str_equal(even->over, "batch") && lab_str_starts(even->where, model) &&
                      (!even->where[length] || even->where[length] == ' '));
}

/* The mean speed-up of so many devices at a batch, over models that ran at both batches; NaN = none
 * did. */
static double mean_speedup(const struct lab_gangs *gangs, int devices, const char *model,
                           double batch, double other) {
    double logs = 0;
    int count = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        bool both = false;
        for (int k = 0; k < gangs->count; k++)
            both |= gangs->items[k].devices == devices && gangs->items[k].batch == other &&
                    lab_str_equal(gangs->items[k].model, gang->model) &&
                    lab_str_equal(gangs->items[k].gpus, gang->gpus);
        if (!both || gang->devices != devices || gang->batch != batch ||
            (model && !lab_str_equal(gang->model, model)) || !isfinite(gang->claim.effect))
            continue;
        logs += log1p(gang->claim.effect);
        count++;
    }
    return count ? exp(logs / count) : (double)NAN;
}

/* Whether so many devices are faster than one at each point, or slower: for certain. */
static bool is_always(const struct lab_gangs *gangs, int devices, const char *model, bool faster) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (gang->devices != devices || (model && !lab_str_equal(gang->model, model)))
            continue;
        if (gang->claim.verdict != LAB_CLAIM_YES || (gang->claim.effect > 0) != faster)
            return false;
        count++;
    }
    return count > 0;
}

/* "2, 4 and 8 GPUs": all of which that holds. */
static const char *always_words(const struct lab_gangs *gangs, const char *model, bool faster,
                                struct lab_arena *arena) {
    const char **sizes = NULL;
    int count = 0;
    LAB_AUTO(str, list);
    for (int i = 0; i < gangs->pool_count; i++)
        if (is_always(gangs, gangs->pools[i].devices, model, faster))
            LAB_ADD(sizes, count, arena) = lab_arena_printf(arena, "%d", gangs->pools[i].devices);
    LAB_ADD(sizes, count, arena) = NULL;
    lab_str_add_list(&list, sizes, "and");
    return lab_arena_printf(arena, "%s %ss", list.text, gangs->unit);
}

/* Below it a speed-up is read wrongly: it takes so many times as long. */
#define TIMES_TINY 0.1

/* "1.69× at batch 16, 1.95× at batch 128", "13.8× as long at batch 16, 10.7× at batch 128" */
static const char *ends_words(double first, double from, double last, double until,
                              struct lab_arena *arena) {
    bool longer = first < TIMES_TINY || last < TIMES_TINY;
    return lab_arena_printf(arena, "%s%s at batch %.0f, %s at batch %.0f",
                            lab_speedup_times(longer ? 1 / first : first, NAN, NAN, arena),
                            longer ? " as long" : "", from,
                            lab_speedup_times(longer ? 1 / last : last, NAN, NAN, arena), until);
}

/* "2, 4 and 8 GPUs are faster than one at every batch tested (2 GPUs: 1.69× at batch 16, 1.95× at
 * batch 128)." Whether a larger batch breaks even isn't known, so values are all there is. */
static const char *outside_words(const struct lab_gangs *gangs, int devices, const char *model,
                                 struct lab_arena *arena) {
    double from = INFINITY, until = 0;
    for (int i = 0; i < gangs->break_even_count; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        if (even->devices == devices && is_of(even, model) && lab_str_equal(even->over, "batch")) {
            from = fmin(from, even->from);
            until = fmax(until, even->until);
        }
    }
    if (!(until > from))
        return "Break-even is not within the tested range.";
    from = round(from); /* they were logarithms */
    until = round(until);
    const struct lab_gang_pool *best = lab_gangs_best(gangs); /* whose values are shown */
    bool faster = is_always(gangs, devices, model, true),
         other = faster && best && is_always(gangs, best->devices, model, true);
    int shown = other ? best->devices : devices;
    double first = mean_speedup(gangs, shown, model, from, until),
           last = mean_speedup(gangs, shown, model, until, from);
    if (isnan(first) || isnan(last) || (!faster && !is_always(gangs, devices, model, false)))
        return lab_arena_printf(arena, "%d %ss: no break-even within batch %.0f to %.0f.", devices,
                                gangs->unit, from, until);
    const char *who =
        gangs->pool_count > 1 ? lab_arena_printf(arena, "%d %ss: ", shown, gangs->unit) : "";
    struct range range = range_of(gangs, NULL, shown);
    bool apart = !model && range.most > SPREAD * range.least; /* no mean is near the models */
    return lab_arena_printf(arena, "%s are %s than one at every batch tested%s.",
                            always_words(gangs, model, faster, arena), faster ? "faster" : "slower",
                            apart ? ""
                                  : lab_arena_printf(arena, " (%s%s)", who,
                                                     ends_words(first, from, last, until, arena)));
}

const char *lab_gangs_break_even_words(const struct lab_gangs *gangs, const char *model,
                                       struct lab_arena *arena) {
    int tested = 0, outside = 0, devices = gangs->pool_count > 0 ? gangs->pools[0].devices : 0;
    const struct lab_break_even *found = NULL;
    for (int i = 0; i < gangs->break_even_count; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        if (even->devices != devices || !is_of(even, model) ||
            even->claim.verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        tested++;
        outside += even->claim.verdict == LAB_CLAIM_NO;
        if (!found && even->claim.verdict == LAB_CLAIM_YES)
            found = even;
    }
    if (tested == 0)
        return NULL;
    if (!found) /* a value that isn't known would read as a finding */
        return outside == tested ? outside_words(gangs, devices, model, arena) : EVEN_OPEN;
    bool batch = lab_str_equal(found->over, "batch");
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d %ss pay off %s %s", devices, gangs->unit,
                   found->rising ? "from" : "up to", batch ? "batch " : "");
    for (int i = 0, told = 0; i < gangs->break_even_count && told < EVENS_NAMED; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        const struct lab_claim *claim = &even->claim;
        if (even->devices != devices || !is_of(even, model) || claim->verdict != LAB_CLAIM_YES ||
            !lab_str_equal(even->over, found->over) || even->rising != found->rising)
            continue;
        lab_str_printf(&text, "%s%s%s (%s; 95%% CI [%s, %s])", told++ ? ", " : "",
                       lab_training_count(claim->effect, arena),
                       batch ? "" : lab_arena_printf(arena, " %s", even->over), even->where,
                       lab_training_count(claim->low, arena),
                       lab_training_count(claim->high, arena));
    }
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

/* --- what to do --- */

static bool is_beneficial(const struct lab_gang_pool *pool) {
    return pool->claim.verdict == LAB_CLAIM_YES && 1 + pool->claim.low >= LAB_SPEEDUP_BENEFICIAL;
}

const struct lab_gang_pool *lab_gangs_best(const struct lab_gangs *gangs) {
    const struct lab_gang_pool *fastest = NULL;
    for (int i = 0; i < gangs->pool_count; i++)
        if (is_beneficial(&gangs->pools[i]) &&
            (!fastest || gangs->pools[i].claim.low > fastest->claim.low))
            fastest = &gangs->pools[i];
    for (int i = 0; fastest && i < gangs->pool_count; i++)
        if (is_beneficial(&gangs->pools[i]) && gangs->pools[i].claim.high >= fastest->claim.low)
            return &gangs->pools[i];
    return fastest;
}

static int count_of_size(const struct lab_gangs *gangs, int devices, const char *grade) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++)
        count += gangs->items[i].devices == devices && lab_str_equal(gangs->items[i].grade, grade);
    return count;
}

#define MODELS_NAMED 4

/* "large at all batches", "medium at batch 64, 128": points of that grade; NULL = none. */
static const char *graded_of_model(const struct lab_gangs *gangs, int devices, const char *grade,
                                   const char *model, struct lab_arena *arena) {
    LAB_AUTO(str, batches);
    int own = 0, pays = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (gang->devices != devices || !lab_str_equal(gang->model, model))
            continue;
        own++;
        if (lab_str_equal(gang->grade, grade))
            lab_str_printf(&batches, "%s%.0f", pays++ ? ", " : "", gang->batch);
    }
    if (pays == 0)
        return NULL;
    return pays < own ? lab_arena_printf(arena, "%s at batch %s", model, batches.text)
           : own > 1  ? lab_arena_printf(arena, "%s at all batches", model)
                      : model;
}

const char *lab_gangs_graded(const struct lab_gangs *gangs, int devices, const char *grade,
                             struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char **models = NULL, **named = NULL;
    int model_count = 0, named_count = 0, size = 0;
    for (int i = 0; i < gangs->count; i++) {
        const char *model = gangs->items[i].model;
        size += gangs->items[i].devices == devices;
        if (lab_list_find_text(models, model_count, model) >= 0)
            continue;
        LAB_ADD(models, model_count, arena) = model;
        const char *where = graded_of_model(gangs, devices, grade, model, arena);
        if (where)
            LAB_ADD(named, named_count, arena) = where;
    }
    bool everywhere = count_of_size(gangs, devices, grade) == size;
    if (everywhere || named_count == 0 || named_count > MODELS_NAMED)
        return NULL;
    LAB_ADD(named, named_count, arena) = NULL;
    lab_str_add_list(&text, named, "and");
    return lab_arena_strdup(arena, text.text);
}

/* "1.01× to 2.00×": of the gang's points. */
static const char *range_words(const struct lab_gangs *gangs, const char *names,
                               struct lab_arena *arena) {
    const double least = range_of(gangs, names, 0).least, most = range_of(gangs, names, 0).most;
    const char *low = lab_words_ratio(least, arena), *high = lab_words_ratio(most, arena);
    return lab_str_equal(low, high) ? low : lab_arena_printf(arena, "%s to %s", low, high);
}

bool lab_gangs_lack_nvlink(const struct lab_gangs *gangs) {
    return lab_str_equal(gangs->analysis, "training") && lab_training_lacks_nvlink(gangs->study);
}

/* "No answer for GPUs with NVLink: …. Without NVLink, use" where that is so; else the words. */
static const char *opening(const struct lab_gangs *gangs, const char *words,
                           struct lab_arena *arena) {
    return lab_gangs_lack_nvlink(gangs)
               ? lab_arena_printf(arena, LAB_GANGS_LIMIT "Without NVLink, %s",
                                  lab_claim_within(words, arena))
               : words;
}

/* Where numbers of devices differ in which batches they are best for: false = they don't. */
static bool add_by_batch(const struct lab_gangs *gangs, struct lab_str *text,
                         struct lab_arena *arena) {
    const char *words = lab_gangs_by_batch(gangs, arena);
    if (words)
        lab_str_printf(text, "%s %s", opening(gangs, "Use", arena), words);
    return words;
}

/* " for medium and large": what was trained, where that is few models; "" = one, or many. */
static const char *models_words(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const char **models = NULL;
    int count = 0;
    for (int i = 0; i < gangs->count; i++)
        if (lab_list_find_text(models, count, gangs->items[i].model) < 0)
            LAB_ADD(models, count, arena) = gangs->items[i].model;
    if (count < 2 || count > MODELS_NAMED || !lab_str_equal(gangs->analysis, "training"))
        return "";
    LAB_AUTO(str, list);
    LAB_ADD(models, count, arena) = NULL;
    lab_str_add_list(&list, models, "and");
    return lab_arena_printf(arena, " for %s", list.text);
}

/* "for medium at batch 128 and large at all batches"; of many "at 14 of 30 points". */
static const char *paying_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                                int pays, struct lab_arena *arena) {
    const char *where = lab_gangs_graded(gangs, pool->devices, "beneficial", arena);
    return where ? lab_arena_printf(arena, "for %s", where)
                 : lab_arena_printf(arena, "at %d of %d points", pays, pool->cells);
}

/* Returns the size that the next sentence is about. */
static const struct lab_gang_pool *add_action(const struct lab_gangs *gangs, struct lab_str *text,
                                              struct lab_arena *arena) {
    const struct lab_gang_pool *best = lab_gangs_best(gangs), *first = &gangs->pools[0];
    const struct lab_gang_pool *pool = best ? best : first;
    int pays = count_of_size(gangs, pool->devices, "beneficial"), stays = 0, tested = 0;
    for (int i = 0; i < gangs->pool_count; i++)
        tested += gangs->pools[i].cells;
    stays = lab_gangs_count(gangs, "stay single") + lab_gangs_count(gangs, "marginal");
    if (lab_gangs_unshared(gangs->study))
        lab_str_printf(text, "No answer for real %ss: on this simulated machine %s. Simulated: ",
                       gangs->unit, lab_gangs_unshared(gangs->study));
    else if (lab_gangs_count(gangs, "independent") > 0)
        lab_str_printf(text, "Each %s trains a model of its own: no training is faster. ",
                       gangs->unit);
    else if ((pays > 0 && pays == pool->cells) || (pays == 0 && best))
        lab_str_printf(text, "%s %d %ss: ", opening(gangs, "Use", arena), pool->devices,
                       gangs->unit);
    else if (pays > 0 && pool->claim.verdict == LAB_CLAIM_YES)
        lab_str_printf(text, "%s %d %ss %s (%.0f%% faster or more): ", opening(gangs, "Use", arena),
                       pool->devices, gangs->unit, paying_words(gangs, pool, pays, arena),
                       100 * (LAB_SPEEDUP_BENEFICIAL - 1));
    else if (stays == tested)
        lab_str_printf(text, "%s on one %s%s: ", opening(gangs, "Stay", arena), gangs->unit,
                       models_words(gangs, arena));
    return pool;
}

/* Below it "0.346× as fast" is read wrongly. */
#define TIMES_LEAST 0.5

/* "12.6× [12.5, 12.7]", of time or of throughput. */
static const char *mean_words(const struct lab_gang_pool *pool, bool longer,
                              struct lab_arena *arena) {
    const struct lab_claim *claim = &pool->claim;
    return longer ? lab_speedup_times(1 / (1 + claim->effect), 1 / (1 + claim->high),
                                      1 / (1 + claim->low), arena)
                  : pool->times;
}

/* "are 1.99× [1.98, 2.00] as fast as one"; below one "have 0.346× [0.344, 0.348] the throughput of
 * one", far below "take 12.6× [12.5, 12.7] as long as one". */
static const char *ratio_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                               struct lab_arena *arena) {
    const struct lab_claim *claim = &pool->claim;
    bool independent = lab_gangs_count(gangs, "independent") > 0;
    if (!independent && 1 + claim->effect < TIMES_TINY)
        return lab_arena_printf(arena, "take %s as long as one", mean_words(pool, true, arena));
    return lab_arena_printf(arena,
                            independent || 1 + claim->effect < TIMES_LEAST
                                ? "have %s the throughput of one"
                                : "are %s as fast as one",
                            pool->times);
}

/* "take 5.58× to 34.4× as long as one by point", "are 1.01× to 2.00× as fast as one by point";
 * NULL = the points are near each other. */
static const char *spread_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                                struct lab_arena *arena) {
    struct range range = range_of(gangs, NULL, pool->devices);
    bool longer = range.most < TIMES_TINY;
    if (pool == gangs->advised || lab_gangs_count(gangs, "independent") > 0 || pool->cells < 2 ||
        !(range.most > SPREAD * range.least))
        return NULL;
    return lab_arena_printf(
        arena, "%s %s to %s as %s as one by point", longer ? "take" : "are",
        lab_speedup_times(longer ? 1 / range.most : range.least, NAN, NAN, arena),
        lab_speedup_times(longer ? 1 / range.least : range.most, NAN, NAN, arena),
        longer ? "long" : "fast");
}

/* Why one whose interval lies on one side of 1 isn't certain. */
static const char *corrected_words(const struct lab_claim *claim) {
    return lab_claim_is_corrected(claim) ? " after correction for all comparisons" : "";
}

const char *lab_speedup_runs(int fewest, int most, struct lab_arena *arena) {
    return most > fewest ? lab_arena_printf(arena, "%d to %d runs each", fewest, most)
                         : lab_arena_printf(arena, "%d run%s each", fewest, fewest == 1 ? "" : "s");
}

/* More than n times as fast on n devices isn't their doing alone: said beside the gain. */
static const char *doubt_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                               struct lab_arena *arena) {
    int above = 0;
    for (int i = 0; i < gangs->count; i++)
        above +=
            gangs->items[i].devices == pool->devices && lab_gang_is_above_ideal(&gangs->items[i]);
    if (above == 0)
        return "";
    return lab_arena_printf(
        arena, "; significantly above the ideal %d×%s%s", pool->devices,
        pool->cells > 1 ? lab_arena_printf(arena, " at %d point%s", above, above == 1 ? "" : "s")
                        : "",
        gangs->study->simulated ? "" : ": other processes may have slowed the runs on one device");
}

/* "2 GPUs are 1.998× [1.995, 2.001] as fast as one, mean of 18 points (95% CI, 5 runs each)." */
static const char *speed_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                               const char *who, struct lab_arena *arena) {
    const struct lab_claim *claim = &pool->claim;
    const char *next = lab_claim_next(claim, arena);
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE;
    if (claim->verdict != LAB_CLAIM_YES && !open)
        return lab_arena_printf(arena, "%s.", lab_claim_sentence(claim, arena));
    const char *runs = claim->n > 1 && claim->n < pool->runs
                           ? lab_arena_printf(arena, "%d complete blocks", claim->n)
                           : lab_speedup_runs(claim->n, pool->runs, arena);
    const char *ci = lab_claim_is_corrected(claim) ? "95% CI of this one alone, " : "95% CI, ";
    const char *spread = spread_words(gangs, pool, arena);
    if (spread && !open) /* a mean that is near none of the points comes second */
        return lab_arena_printf(arena, "%s %s; %s %s (%s%s)%s.", who, spread, pool->over,
                                mean_words(pool, lab_str_starts(spread, "take"), arena),
                                isnan(claim->low) ? "" : ci, runs, doubt_words(gangs, pool, arena));
    return lab_arena_printf(arena, "%s%s%s%s %s, %s (%s%s)%s%s.", open ? "Inconclusive" : "",
                            corrected_words(claim), open ? ": " : "", who,
                            ratio_words(gangs, pool, arena), pool->over,
                            isnan(claim->low) ? "" : ci, runs,
                            open && *next ? "; "
                            : open        ? ""
                                          : doubt_words(gangs, pool, arena),
                            next);
}

struct runs { /* of a point */
    int fewest, most;
};

/* "large at batch 64, 128: 1.411× [1.194, 1.668] to 1.872× [1.458, 2.403]": points of a grade, the
 * slowest and the fastest; NULL = there are none. */
static const char *points_words(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                                const char *grade, struct runs *runs, struct lab_arena *arena) {
    const struct lab_gang *least = NULL, *most = NULL;
    const char *where = lab_gangs_graded(gangs, pool->devices, grade, arena);
    int count = count_of_size(gangs, pool->devices, grade);
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (gang->devices != pool->devices || !lab_str_equal(gang->grade, grade))
            continue;
        least = !least || gang->speedup.value < least->speedup.value ? gang : least;
        most = !most || gang->speedup.value > most->speedup.value ? gang : most;
        int own = gang->claim.most > gang->claim.n ? gang->claim.most : gang->claim.n;
        runs->fewest = gang->claim.n < runs->fewest ? gang->claim.n : runs->fewest;
        runs->most = own > runs->most ? own : runs->most;
    }
    if (!least)
        return NULL;
    if (!where)
        where = lab_arena_printf(arena, "%d of %d points", count, pool->cells);
    return least == most
               ? lab_arena_printf(arena, "%s: %s", where, least->times)
               : lab_arena_printf(arena, "%s: %s to %s", where, least->times, most->times);
}

/* Where the mean is open, the points that aren't: "2 GPUs pay off for large at batch 64, 128: …
 * as fast as one (95% CI, 6 runs each). Stay on one GPU for medium at batch 16: …. The other 5
 * points are inconclusive." False = all are open. */
static bool add_points(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                       struct lab_str *text, struct lab_arena *arena) {
    struct runs runs = {INT_MAX, 0};
    int open = pool->cells - count_of_size(gangs, pool->devices, "beneficial") -
               count_of_size(gangs, pool->devices, "stay single");
    const char *pays = points_words(gangs, pool, "beneficial", &runs, arena),
               *stays = points_words(gangs, pool, "stay single", &runs, arena), *basis;
    if (!pays && !stays)
        return false;
    basis = lab_arena_printf(arena, "as fast as one (95%% CI, %s)",
                             lab_speedup_runs(runs.fewest, runs.most, arena));
    if (pays)
        lab_str_printf(text, "%d %ss pay off for %s %s%s.", pool->devices, gangs->unit, pays, basis,
                       doubt_words(gangs, pool, arena));
    if (stays)
        lab_str_printf(text, "%sStay on one %s for %s%s%s.", pays ? " " : "", gangs->unit, stays,
                       pays ? "" : " ", pays ? "" : basis);
    if (open > 0)
        lab_str_printf(text, " The other %d point%s: %s.", open, open == 1 ? "" : "s",
                       count_of_size(gangs, pool->devices, "inconclusive") == open
                           ? "inconclusive"
                           : "no clear gain or loss");
    return true;
}

static void add_speedup(const struct lab_gangs *gangs, const struct lab_gang_pool *pool,
                        struct lab_str *text, struct lab_arena *arena) {
    const char *who = lab_arena_printf(arena, "%d %ss", pool->devices, gangs->unit);
    bool open = pool->claim.verdict == LAB_CLAIM_INCONCLUSIVE && pool->cells > 1;
    if (open && text->length == 0 && add_points(gangs, pool, text, arena))
        lab_str_printf(text, " Mean of %d points: inconclusive%s, %s.", pool->cells,
                       corrected_words(&pool->claim), pool->times);
    else
        lab_str_add(text, speed_words(gangs, pool, who, arena));
}

/* Where none of them is to be used: the other numbers of devices, too. */
static void add_larger(const struct lab_gangs *gangs, struct lab_str *text,
                       struct lab_arena *arena) {
    for (int i = 1; i < gangs->pool_count && !lab_gangs_best(gangs); i++)
        if (gangs->pools[i].claim.verdict == LAB_CLAIM_YES)
            lab_str_printf(text, " %d %ss %s.", gangs->pools[i].devices, gangs->unit,
                           spread_words(gangs, &gangs->pools[i], arena)
                               ? spread_words(gangs, &gangs->pools[i], arena)
                               : ratio_words(gangs, &gangs->pools[i], arena));
}

/* Whether devices that share a PCIe bridge are slower for certain. */
bool lab_gangs_find_rivals(const struct lab_gangs *gangs) {
    const struct lab_gang_rival *rival = gangs->rivals;
    return gangs->rival_count > 0 && rival->shares && rival->claim.verdict == LAB_CLAIM_YES &&
           rival->claim.effect < 0;
}

/* "1.3 to 5.6% lower by batch", "up to 5.6% lower by batch" where one interval includes 0; of one
 * work "2.5% lower". */
static const char *split_words(const struct lab_gang_model *model, struct lab_arena *arena) {
    bool lower = model->claim.effect < 0, alike = (model->least < 0) == (model->most < 0);
    const char *least = lab_arena_printf(arena, "%.1f",
                                         100 * fmin(fabs(model->least), fabs(model->most))),
               *most = lab_arena_printf(arena, "%.1f",
                                        100 * fmax(fabs(model->least), fabs(model->most)));
    if (lab_str_equal(least, most) || !isfinite(model->least))
        return lab_arena_printf(arena, "%.1f%% %s", fabs(100 * model->claim.effect),
                                lower ? "lower" : "higher");
    if (!alike)
        return lab_arena_printf(arena, "%+.1f to %+.1f%% by %s", 100 * model->least,
                                100 * model->most, model->by);
    return lab_arena_printf(arena, "%s to %s%% %s by %s", model->open ? "up" : least, most,
                            lower ? "lower" : "higher", model->by);
}

/* What a mean of all models would hide: "GPUs 0+1 (…): 46.2% lower … on 3 transfer-bound models
 * …. On vit32x6x512 0.7 to 5.6% lower by batch; no difference larger than 0.5% on larger models. "
 */
static void add_split(const struct lab_gangs *gangs, struct lab_arena *arena,
                      struct lab_str *text) {
    int from = gangs->model_count, last = -1;
    const char *join = "On ";
    double bound = 0, reach = 0;
    lab_str_printf(text, "%s. ", lab_claim_sentence(&gangs->transfer_bound, arena));
    for (; from > 0 && gangs->models[from - 1].claim.verdict == LAB_CLAIM_NO; from--) {
        bound = fmax(bound, gangs->models[from - 1].claim.bound);
        reach = fmax(reach, gangs->models[from - 1].reach);
    }
    for (int i = 0; i < from; i++) {
        const struct lab_gang_model *model = &gangs->models[i];
        if (model->transfer_bound || model->claim.verdict != LAB_CLAIM_YES)
            continue;
        lab_str_printf(text, "%s%s %s", join, model->model, split_words(model, arena));
        join = ", on ";
        last = i;
    }
    if (from < gangs->model_count)
        lab_str_printf(text, "%s difference%s%s%s", last >= 0 ? "; no" : "No",
                       lab_claim_larger(bound, arena),
                       last >= 0 && last == from - 1
                           ? " on larger models"
                           : lab_arena_printf(arena, " from %s up", gangs->models[from].model),
                       lab_words_beyond(bound, reach, gangs->models[from].by, arena));
    if (last >= 0 || from < gangs->model_count)
        lab_str_add(text, ". ");
}

/* "Use GPUs 0+2, not GPUs 0+1. GPUs 0+1 (shared PCIe bridge …): 27.5% …" */
static void add_rivals(const struct lab_gangs *gangs, struct lab_arena *arena,
                       struct lab_str *text) {
    const struct lab_gang_rival *rival = gangs->rivals;
    if (rival->gang)
        lab_str_printf(text, "Use %s, not %s. ", rival->base->names, rival->gang->names);
    if (rival->gang && gangs->pool_count > 0)
        lab_str_printf(text, "By point, %s are %s as fast as one %s, %s %s. ", rival->base->names,
                       range_words(gangs, rival->base->names, arena), gangs->unit,
                       rival->gang->names, range_words(gangs, rival->gang->names, arena));
    if (gangs->model_count > 0 && gangs->transfer_bound.verdict == LAB_CLAIM_YES)
        add_split(gangs, arena, text);
    else
        lab_str_printf(text, "%s. ", lab_claim_sentence(&rival->claim, arena));
}

/* The speed-up of the devices that are advised, not of all that were tried. */
static void add_advised(const struct lab_gangs *gangs, struct lab_arena *arena,
                        struct lab_str *text) {
    lab_str_add(text, speed_words(gangs, gangs->advised, gangs->rivals->base->names, arena));
}

/* Gangs with each other, where no device ran alone. */
static void add_gangs_alone(const struct lab_gangs *gangs, struct lab_arena *arena,
                            struct lab_str *text) {
    for (int i = lab_gangs_find_rivals(gangs) ? 1 : 0; i < gangs->rival_count; i++)
        if (gangs->rivals[i].claim.verdict == LAB_CLAIM_YES)
            lab_str_printf(text, "%s. ", lab_claim_sentence(&gangs->rivals[i].claim, arena));
    if (text->length == 0)
        lab_str_printf(text, "%s. ", lab_claim_sentence(&gangs->rivals[0].claim, arena));
    lab_str_printf(text, "Speed-up over one %s: not tested.", gangs->unit);
}

const char *lab_gangs_untested(const struct lab_gangs *gangs, struct lab_arena *arena) {
    if (gangs->point_count == 0)
        return "no run is done.";
    if (gangs->count == 0)
        return lab_arena_printf(arena,
                                gangs->study->gangs_planned
                                    ? "no run on several %ss is done."
                                    : "the plan has no run on several %ss at once.",
                                gangs->unit);
    return gangs->pool_count > 0 || gangs->rival_count > 0
               ? NULL
               : lab_arena_printf(arena, "nothing was run both on one %s and on several.",
                                  gangs->unit);
}

const char *lab_gangs_answer(const struct lab_gangs *gangs, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    bool rivals = lab_gangs_find_rivals(gangs),
         use = gangs->pool_count == 0 || lab_gangs_best(gangs);
    if (rivals && use)
        add_rivals(gangs, arena, &text);
    if (gangs->pool_count == 0) {
        add_gangs_alone(gangs, arena, &text);
        return lab_arena_strdup(arena, text.text);
    }
    if (rivals && use && gangs->advised && lab_gangs_count(gangs, "independent") == 0)
        add_advised(gangs, arena, &text);
    else if (!add_by_batch(gangs, &text, arena))
        add_speedup(gangs, add_action(gangs, &text, arena), &text, arena);
    add_larger(gangs, &text, arena);
    if (rivals && !use) /* which devices, after whether to use them */
        lab_str_printf(&text, " %s.", lab_claim_sentence(&gangs->rivals->claim, arena));
    const char *even = lab_gangs_break_even_words(gangs, NULL, arena);
    bool open = gangs->pools[0].claim.verdict == LAB_CLAIM_INCONCLUSIVE &&
                lab_str_equal(even, EVEN_OPEN); /* which follows from that */
    if (even && !open && !lab_gangs_unshared(gangs->study))
        lab_str_printf(&text, " %s", even);
    return lab_arena_strdup(arena, text.text);
}
