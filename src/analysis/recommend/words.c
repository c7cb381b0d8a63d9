/* words.c: what is to be said of the best place, in one sentence, and what each choice gains. */
#include "analysis/recommend/recommend.h"

#include "base/str.h"

#include <math.h>

/* --- alternatives --- */

static bool same_batch(const struct lab_place *a, const struct lab_place *b) {
    return a->batch == b->batch || (isnan(a->batch) && isnan(b->batch));
}

/* Whether it differs from the best in this choice alone. */
static bool is_alternative(const struct lab_place *place, const struct lab_place *best,
                           enum lab_place_choice choice) {
    bool device = lab_str_equal(place->devices, best->devices),
         node = lab_str_equal(place->nodes, best->nodes), batch = same_batch(place, best),
         compiled = place->compiled == best->compiled;
    switch (choice) {
    case LAB_PLACE_NODE:
        return device && !node && batch && compiled;
    case LAB_PLACE_DEVICE:
        return !device && batch && compiled;
    case LAB_PLACE_BATCH:
        return device && node && !batch && compiled;
    case LAB_PLACE_COMPILE:
        return device && node && batch && !compiled;
    }
    return false;
}

static const char *alternative_words(const struct lab_place *best, const struct lab_place *place,
                                     enum lab_place_choice choice, struct lab_arena *arena) {
    switch (choice) {
    case LAB_PLACE_NODE:
        return lab_arena_printf(arena, "node %s rather than node %s", best->nodes, place->nodes);
    case LAB_PLACE_DEVICE:
        return lab_arena_printf(arena, "device %s rather than device %s", best->devices,
                                place->devices);
    case LAB_PLACE_BATCH:
        return lab_arena_printf(arena, "batch %.0f rather than %.0f", best->batch, place->batch);
    case LAB_PLACE_COMPILE:
        return best->compiled ? "compiled rather than not" : "not compiled rather than compiled";
    }
    return "";
}

/* Places are sorted: the first of a device is its fastest. */
static bool seen_device(const struct lab_place_group *group,
                        const struct lab_place_alternative *list, int count, int place) {
    for (int i = 0; i < count; i++)
        if (list[i].choice == LAB_PLACE_DEVICE &&
            lab_str_equal(group->places[list[i].place].devices, group->places[place].devices))
            return true;
    return false;
}

int lab_place_alternatives(const struct lab_place_group *group, struct lab_arena *arena,
                           struct lab_place_alternative **ret_alternatives) {
    struct lab_place_alternative *list =
        lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *list);
    int count = 0;
    for (int choice = 0; choice < LAB_PLACE_CHOICES; choice++)
        for (int i = 1; i < group->count; i++) {
            enum lab_place_choice which = (enum lab_place_choice)choice;
            if (!is_alternative(&group->places[i], &group->places[0], which) ||
                (which == LAB_PLACE_DEVICE && seen_device(group, list, count, i)))
                continue;
            list[count++] = (struct lab_place_alternative){
                which, i, lab_place_gain(group, i),
                alternative_words(&group->places[0], &group->places[i], which, arena)};
        }
    *ret_alternatives = list;
    return count;
}

/* --- answers --- */

/* "12.4 % [11.1, 13.6] faster than" */
static void add_gain(struct lab_str *text, const struct lab_study_ratio *gain) {
    lab_str_printf(text, "%.1f %% [%.1f, %.1f]%s faster than", 100 * (gain->ratio - 1),
                   100 * (gain->low - 1), 100 * (gain->high - 1),
                   gain->within ? " within one run each" : "");
}

static void add_against(struct lab_str *text, const struct lab_place_group *group, int place,
                        const char *what) {
    struct lab_study_ratio gain = lab_place_gain(group, place);
    if (gain.verdict == LAB_STUDY_MORE) {
        add_gain(text, &gain);
        lab_str_printf(text, " %s", what);
    } else if (gain.verdict == LAB_STUDY_SAME && !isnan(gain.bound)) {
        lab_str_printf(text, "no more than %.1f %% faster than %s",
                       100 * fmax(0, gain.high - 1) + 0.05, what);
    } else {
        lab_str_printf(text, "%.1f %% faster than %s, which one run each can't prove",
                       100 * (gain.ratio - 1), what);
    }
}

static void add_sureness(struct lab_str *text, const struct lab_place_group *group) {
    if (group->resamples == 0)
        lab_str_add(text, "; how sure that is, one run of each place can't tell");
    else
        lab_str_printf(text, "; it came first in %d of %d resamples", group->wins,
                       group->resamples);
    int others = group->alike - 1;
    if (others > 0)
        lab_str_printf(text, ", and %d of %d other places can't be told from it", others,
                       group->count - 1);
}

const char *lab_place_answer(const struct lab_place_group *group, struct lab_arena *arena) {
    const struct lab_place *best = &group->places[0];
    if (group->count == 1)
        return lab_arena_printf(arena,
                                "%s was run in one place only (%s): there is nothing to "
                                "choose from.",
                                group->name, best->words);
    struct lab_str text;
    lab_str_init(&text);
    int worst = group->count - 1;
    lab_str_printf(&text, "%s runs best on %s: ", group->name, best->words);
    if (group->standard > 0)
        add_against(&text, group, group->standard, "the default (own node, not compiled)");
    else if (group->standard == 0)
        lab_str_add(&text, "the default (own node, not compiled)");
    if (group->standard != worst) {
        lab_str_add(&text, group->standard < 0 ? "" : ", ");
        add_against(&text, group, worst,
                    lab_arena_printf(arena, "the slowest (%s)", group->places[worst].words));
    }
    add_sureness(&text, group);
    lab_str_add(&text, ".");
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* Whether all groups have the same device and node as their best. */
static bool same_best(const struct lab_place_group *groups, int count) {
    for (int i = 1; i < count; i++)
        if (!lab_str_equal(groups[i].places[0].devices, groups[0].places[0].devices) ||
            !lab_str_equal(groups[i].places[0].nodes, groups[0].places[0].nodes))
            return false;
    return true;
}

const char *lab_place_answer_for_all(const struct lab_place_group *groups, int count,
                                     struct lab_arena *arena) {
    int clear = 0, most = -1, open = 0;
    double largest = 0;
    for (int i = 0; i < count; i++) {
        if (groups[i].count < 2)
            continue;
        struct lab_study_ratio gain = lab_place_gain(&groups[i], groups[i].count - 1);
        open++;
        clear += groups[i].alike == 1;
        if (gain.verdict == LAB_STUDY_MORE && gain.ratio - 1 > largest) {
            largest = gain.ratio - 1;
            most = i;
        }
    }
    if (open == 0)
        return "Each model was run in one place only: there is nothing to choose from.";
    struct lab_str text;
    lab_str_init(&text);
    if (most < 0) {
        lab_str_printf(&text, "For none of %d models can any place be told from the fastest.",
                       open);
    } else {
        const struct lab_place_group *group = &groups[most];
        struct lab_study_ratio gain = lab_place_gain(group, group->count - 1);
        if (same_best(groups, count))
            lab_str_printf(&text, "All %d models run best on device %s from node %s", count,
                           groups[0].places[0].devices, groups[0].places[0].nodes);
        else
            lab_str_printf(&text, "The best place differs between the %d models", count);
        lab_str_printf(&text, "; it matters most to %s: %s is ", group->name,
                       group->places[0].words);
        add_gain(&text, &gain);
        lab_str_printf(&text, " %s. For %d of %d models it is the best beyond doubt.",
                       group->places[group->count - 1].words, clear, open);
    }
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}
