/* crossover/words.c: what bounds the models of a device, in sentences. */
#include "analysis/crossover/crossover.h"

#include "base/str.h"

#include <math.h>

#define NAMES_MAX 4 /* in a sentence */

const char *lab_crossover_bound_name(enum lab_crossover_bound bound) {
    static const char *const names[] = {[LAB_CROSSOVER_UNKNOWN] = "unknown",
                                        [LAB_CROSSOVER_UNDECIDED] = "undecided",
                                        [LAB_CROSSOVER_BY_COPIES] = "copies",
                                        [LAB_CROSSOVER_BY_COMPUTE] = "compute"};
    return names[bound];
}

const char *lab_crossover_source_name(enum lab_crossover_source source) {
    static const char *const names[] = {[LAB_CROSSOVER_NONE] = "none",
                                        [LAB_CROSSOVER_SPANS] = "spans",
                                        [LAB_CROSSOVER_TRACE] = "trace",
                                        [LAB_CROSSOVER_TIMINGS] = "timings"};
    return names[source];
}

static int count_bound(const struct lab_crossover_feed *feed, enum lab_crossover_bound bound) {
    int count = 0;
    for (int m = 0; m < feed->model_count; m++)
        count += feed->models[m].bound == bound;
    return count;
}

static void add_models(const struct lab_crossover_feed *feed, enum lab_crossover_bound bound,
                       struct lab_arena *arena, struct lab_str *text) {
    const char **names = lab_arena_alloc(arena, (size_t)feed->model_count + 1, sizeof *names);
    int count = 0;
    for (int m = 0; m < feed->model_count; m++)
        if (feed->models[m].bound == bound)
            names[count++] = feed->models[m].name;
    if (count > NAMES_MAX)
        lab_str_printf(text, "%d models from %s to %s", count, names[0], names[count - 1]);
    else
        lab_str_add_list(text, names, "and");
}

/* "near 0.36 GFLOP a sample [0.3, 0.44]", or between two models. */
static void add_turn(const struct lab_crossover_feed *feed, struct lab_str *text) {
    if (!isnan(feed->crossover.at))
        lab_str_printf(text, "near %.3g GFLOP a sample [%.3g, %.3g]%s", feed->crossover.at / 1e9,
                       feed->crossover.interval.low / 1e9, feed->crossover.interval.high / 1e9,
                       feed->models[feed->below].within && feed->models[feed->above].within
                           ? " (within one run each)"
                           : "");
    else if (feed->models[feed->below].complexity < feed->models[feed->above].complexity)
        lab_str_printf(text, "between %.3g and %.3g GFLOP a sample",
                       feed->models[feed->below].complexity / 1e9,
                       feed->models[feed->above].complexity / 1e9);
    else
        lab_str_printf(
            text, "between %.3g and %.3g GFLOP a sample, where work alone doesn't decide",
            feed->models[feed->above].complexity / 1e9, feed->models[feed->below].complexity / 1e9);
}

/* How long the shorter of the two takes at most, against the longer: how far it is from turning. */
static void add_margin(const struct lab_crossover_feed *feed, enum lab_crossover_bound bound,
                       struct lab_str *text) {
    double most = 0;
    for (int m = 0; m < feed->model_count; m++) {
        const struct lab_crossover_model *model = &feed->models[m];
        if (model->bound == bound)
            most = fmax(most, fmin(model->ratio, 1 / model->ratio));
    }
    bool by_copies = bound == LAB_CROSSOVER_BY_COPIES;
    if (most == 0)
        lab_str_printf(text, ": there is nothing to %s", by_copies ? "compute" : "copy");
    else
        lab_str_printf(text, ": %s at most %.2g %% of that time",
                       by_copies ? "compute takes" : "copies take", 100 * most);
}

/* Whether the intervals of all that is undecided are known: only then is nothing found a
 * finding. */
static bool is_sure(const struct lab_crossover_feed *feed) {
    for (int m = 0; m < feed->model_count; m++)
        if (feed->models[m].bound == LAB_CROSSOVER_UNDECIDED && isnan(feed->models[m].low))
            return false;
    return true;
}

static void add_feed(const struct lab_crossover_feed *feed, struct lab_arena *arena,
                     struct lab_str *text) {
    int copies = count_bound(feed, LAB_CROSSOVER_BY_COPIES);
    int compute = count_bound(feed, LAB_CROSSOVER_BY_COMPUTE);
    int undecided = count_bound(feed, LAB_CROSSOVER_UNDECIDED);
    if (copies + compute + undecided == 0) {
        lab_str_printf(text,
                       "%s: no run left times of its stages, so that what bounds it can't be told",
                       feed->title);
    } else if (copies > 0 && compute > 0) {
        lab_str_printf(text, "%s turns from waiting for copies to computing ", feed->title);
        add_turn(feed, text);
        lab_str_add(text, ": ");
        add_models(feed, LAB_CROSSOVER_BY_COPIES, arena, text);
        lab_str_printf(text, " %s bound by copies, ", copies == 1 ? "is" : "are");
        add_models(feed, LAB_CROSSOVER_BY_COMPUTE, arena, text);
        lab_str_add(text, " by compute");
    } else if (copies + compute > 0) {
        lab_str_printf(text, "%s is bound by %s on ", feed->title, copies ? "copies" : "compute");
        if (undecided > 0 || copies + compute == 1)
            add_models(feed, copies ? LAB_CROSSOVER_BY_COPIES : LAB_CROSSOVER_BY_COMPUTE, arena,
                       text);
        else
            lab_str_printf(text, "all %d models", copies + compute);
        add_margin(feed, copies ? LAB_CROSSOVER_BY_COPIES : LAB_CROSSOVER_BY_COMPUTE, text);
    } else if (is_sure(feed)) {
        lab_str_printf(text,
                       "%s: compute and copies take as long as each other, as far as "
                       "these runs tell, on ",
                       feed->title);
        add_models(feed, LAB_CROSSOVER_UNDECIDED, arena, text);
    } else {
        lab_str_printf(text, "%s: which takes longer, compute or copies, can't be told of ",
                       feed->title);
        add_models(feed, LAB_CROSSOVER_UNDECIDED, arena, text);
        lab_str_add(text, ": how far their times vary wasn't kept");
    }
    if (undecided > 0 && copies + compute > 0) {
        lab_str_add(text, "; undecided on ");
        add_models(feed, LAB_CROSSOVER_UNDECIDED, arena, text);
    }
    lab_str_add(text, ".");
}

const char *lab_crossover_feed_answer(const struct lab_crossover_feed *feed,
                                      struct lab_arena *arena) {
    LAB_AUTO(str, text);
    add_feed(feed, arena, &text);
    return lab_arena_strdup(arena, text.text);
}

/* The one that says most: a turn with an interval, then one without, then any. */
static int weight(const struct lab_crossover_feed *feed) {
    if (!isnan(feed->crossover.at))
        return 3;
    if (feed->below >= 0 && feed->above >= 0)
        return 2;
    return feed->below >= 0 || feed->above >= 0;
}

const char *lab_crossover_answer(const struct lab_crossover_feed *data_paths, int count,
                                 struct lab_arena *arena) {
    if (count == 0)
        return "There is nothing to tell apart: no run on a single device is done.";
    int best = 0, turning = 0;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < count; i++) {
        best = weight(&data_paths[i]) > weight(&data_paths[best]) ? i : best;
        if (isnan(data_paths[i].crossover.at))
            continue;
        turning++;
        low = fmin(low, data_paths[i].crossover.at);
        high = fmax(high, data_paths[i].crossover.at);
    }
    LAB_AUTO(str, text);
    add_feed(&data_paths[best], arena, &text);
    if (turning > 1)
        lab_str_printf(&text,
                       " Over %d devices and nodes it is between %.3g and %.3g GFLOP a sample.",
                       turning, low / 1e9, high / 1e9);
    return lab_arena_strdup(arena, text.text);
}
