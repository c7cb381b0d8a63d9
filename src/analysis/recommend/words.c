/* words.c: what is to be said of the best place, in one sentence, and what each choice gains. */
#include "analysis/recommend/recommend.h"

#include "analysis/analysis_words.h"
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
    if (!lab_str_equal(place->settings, best->settings))
        return false;
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

/* --- one choice at a time --- */

/* "on", "from", "with": what stands before a level. */
static const char *const before_level[LAB_PLACE_FACTORS] = {
    [LAB_FACTOR_HOME] = "from ",  [LAB_FACTOR_NODE] = "from ", [LAB_FACTOR_DEVICE] = "on ",
    [LAB_FACTOR_BATCH] = "with ", [LAB_FACTOR_COMPILE] = "",   [LAB_FACTOR_SETTINGS] = "with ",
};
static const char *const question[LAB_PLACE_FACTORS] = {
    [LAB_FACTOR_HOME] = "which node",
    [LAB_FACTOR_NODE] = "which node",
    [LAB_FACTOR_DEVICE] = "which device",
    [LAB_FACTOR_BATCH] = "which batch",
    [LAB_FACTOR_COMPILE] = "whether to compile",
    [LAB_FACTOR_SETTINGS] = "which settings",
};

static const char *const plural[LAB_PLACE_FACTORS] = {
    [LAB_FACTOR_HOME] = "own nodes and others are",
    [LAB_FACTOR_NODE] = "nodes are",
    [LAB_FACTOR_DEVICE] = "devices are",
    [LAB_FACTOR_BATCH] = "batches are",
    [LAB_FACTOR_COMPILE] = "compiled and not are",
    [LAB_FACTOR_SETTINGS] = "settings are",
};

static bool is_decided(const struct lab_place_factor *factor) {
    return factor->alike < factor->count;
}

static bool is_alike(const struct lab_place_factor *factor, int level) {
    return level == 0 || factor->gains[level].verdict != LAB_STUDY_MORE;
}

/* The level that the best one is ahead of most, for certain; 0 = none. */
static int farthest_level(const struct lab_place_factor *factor) {
    int found = 0;
    for (int i = 1; i < factor->count; i++)
        if (!is_alike(factor, i) &&
            (found == 0 || factor->gains[i].ratio > factor->gains[found].ratio))
            found = i;
    return found;
}

/* "from node 0 or node 1 (9.7 % [9.2, 10.3] faster than node 2)" */
static void add_decided(struct lab_str *text, const struct lab_place_group *group,
                        const struct lab_place_factor *factor, struct lab_arena *arena) {
    int worst = farthest_level(factor);
    const char *separator = before_level[factor->kind];
    for (int i = 0; i < factor->count; i++)
        if (is_alike(factor, i)) {
            lab_str_printf(text, "%s%s", separator,
                           lab_place_level(&group->places[factor->levels[i]], factor->kind, arena));
            separator = " or ";
        }
    lab_str_add(text, " (");
    add_gain(text, &factor->gains[worst]);
    lab_str_printf(text, " %s)",
                   lab_place_level(&group->places[factor->levels[worst]], factor->kind, arena));
}

/* How far apart levels may be that can't be told from each other; infinite = nobody knows. */
static double open_bound(const struct lab_place_factor *factor) {
    double bound = 0;
    for (int i = 1; i < factor->count; i++)
        bound = fmax(bound, factor->gains[i].verdict == LAB_STUDY_SAME ? factor->gains[i].bound
                                                                       : (double)INFINITY);
    return bound <= LAB_WORDS_BOUND_MOST ? bound : (double)INFINITY;
}

/* What of several choices is certain, and what is left open. */
static int add_certain(struct lab_str *text, const struct lab_place_group *group,
                       const struct lab_place_factor *factors, int count, struct lab_arena *arena) {
    int decided = 0;
    for (int i = 0; i < count; i++)
        if (is_decided(&factors[i])) {
            if (decided++ == 0)
                lab_str_printf(text, "%s does best ", group->name);
            else
                lab_str_add(text, ", ");
            add_decided(text, group, &factors[i], arena);
        }
    return decided;
}

static void add_factors(struct lab_str *text, const struct lab_place_group *group,
                        const struct lab_place_factor *factors, int count,
                        struct lab_arena *arena) {
    int decided = add_certain(text, group, factors, count, arena), open = 0;
    if (decided == 0)
        lab_str_printf(text, "Where %s does best can't be told", group->name);
    for (int i = 0; i < count; i++) {
        double bound = open_bound(&factors[i]);
        if (is_decided(&factors[i]) || (decided == 0 && isinf(bound)))
            continue;
        if (decided > 0)
            lab_str_printf(text, "; %s can't be told", question[factors[i].kind]);
        else
            lab_str_printf(text, "%s%s", open++ ? ", " : ": ", plural[factors[i].kind]);
        if (!isinf(bound))
            lab_str_printf(
                text, decided > 0 ? " (no more than %.1f %% apart)" : " no more than %.1f %% apart",
                lab_words_bound_percent(bound));
    }
}

static void add_best(struct lab_str *text, const struct lab_place_group *group,
                     struct lab_arena *arena) {
    int worst = group->count - 1;
    lab_str_printf(text, "%s runs best on %s: ", group->name, group->places[0].words);
    if (group->standard > 0)
        add_against(text, group, group->standard,
                    group->varies_settings ? "the default (NCCL's own choices)"
                                           : "the default (own node, not compiled)");
    else if (group->standard == 0)
        lab_str_add(text, "the default (own node, not compiled)");
    if (group->standard != worst) {
        lab_str_add(text, group->standard < 0 ? "" : ", ");
        add_against(text, group, worst,
                    lab_arena_printf(arena, "the slowest (%s)", group->places[worst].words));
    }
    add_sureness(text, group);
}

/* Of places that tie, none is the best: what they have in common may be. */
static void add_tied(struct lab_str *text, const struct lab_place_group *group,
                     struct lab_arena *arena) {
    struct lab_place_factor factors[LAB_PLACE_FACTORS];
    add_factors(text, group, factors, lab_place_factors(group, arena, factors), arena);
    int slower = group->count - group->alike;
    if (slower > 0) {
        struct lab_study_ratio gain = lab_place_gain(group, group->count - 1);
        lab_str_printf(text, "; %d of %d places can't be told from the fastest", group->alike,
                       group->count);
        if (gain.verdict == LAB_STUDY_MORE) {
            lab_str_add(text, ", which is ");
            add_gain(text, &gain);
            lab_str_printf(text, " the slowest (%s)", group->places[group->count - 1].words);
        }
    } else {
        lab_str_printf(text, "; %s can be told from the fastest%s",
                       group->count == 2
                           ? "no other place"
                           : lab_arena_printf(arena, "none of %d other places", group->count - 1),
                       group->resamples == 0 ? ", with one run each" : "");
    }
}

const char *lab_place_answer(const struct lab_place_group *group, struct lab_arena *arena) {
    if (group->count == 1)
        return lab_arena_printf(arena,
                                "%s was run in one place only (%s): there is nothing to "
                                "choose from.",
                                group->name, group->places[0].words);
    LAB_AUTO(str, text);
    if (group->alike == 1)
        add_best(&text, group, arena);
    else
        add_tied(&text, group, arena);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

/* --- all models --- */

struct view { /* a model with its choices */
    const struct lab_place_group *group;
    struct lab_place_factor factors[LAB_PLACE_FACTORS];
    int count;
};

static const struct lab_place_factor *find_factor(const struct view *view,
                                                  enum lab_place_factor_kind kind) {
    for (int i = 0; i < view->count; i++)
        if (view->factors[i].kind == kind)
            return &view->factors[i];
    return NULL;
}

/* Whether no other level is certainly faster for this model. */
static bool is_as_good(const struct view *view, const struct lab_place_factor *factor,
                       const char *level, struct lab_arena *arena) {
    for (int i = 0; i < factor->count; i++)
        if (is_alike(factor, i) &&
            lab_str_equal(
                lab_place_level(&view->group->places[factor->levels[i]], factor->kind, arena),
                level))
            return true;
    return false;
}

struct verdict { /* of all models on one choice */
    int models, decided;
    const char *level; /* as good as any for all of them; NULL = there is none */
    const struct view *most;
    int worst; /* of `most`, the level that its best is ahead of */
};

/* A level that is the best of some model, for certain, and of no model worse than another. */
static const char *common_level(const struct view *views, int count,
                                enum lab_place_factor_kind kind, struct lab_arena *arena) {
    for (int v = 0; v < count; v++) {
        const struct lab_place_factor *factor = find_factor(&views[v], kind);
        if (!factor || !is_decided(factor))
            continue;
        const char *level =
            lab_place_level(&views[v].group->places[factor->levels[0]], kind, arena);
        bool common = true;
        for (int k = 0; k < count && common; k++) {
            const struct lab_place_factor *other = find_factor(&views[k], kind);
            common = !other || is_as_good(&views[k], other, level, arena);
        }
        if (common)
            return level;
    }
    return NULL;
}

static struct verdict judge_choice(const struct view *views, int count,
                                   enum lab_place_factor_kind kind, struct lab_arena *arena) {
    struct verdict verdict = {.level = common_level(views, count, kind, arena)};
    double largest = 1;
    for (int v = 0; v < count; v++) {
        const struct lab_place_factor *factor = find_factor(&views[v], kind);
        if (!factor)
            continue;
        verdict.models++;
        verdict.decided += is_decided(factor);
        int worst = farthest_level(factor);
        if (worst > 0 && factor->gains[worst].ratio > largest) {
            largest = factor->gains[worst].ratio;
            verdict.most = &views[v];
            verdict.worst = worst;
        }
    }
    return verdict;
}

/* "All 6 models do best from node 0, by up to 15.4 % [14.1, 16.7] against node 2 (vit0x0x0)" */
static void add_verdict(struct lab_str *text, const struct verdict *verdict,
                        enum lab_place_factor_kind kind, struct lab_arena *arena) {
    const struct lab_place_factor *factor = find_factor(verdict->most, kind);
    const struct lab_study_ratio *gain = &factor->gains[verdict->worst];
    const char *before = before_level[kind];
    if (!verdict->level)
        lab_str_printf(text, "%s is best differs between the models", question[kind]);
    else if (verdict->decided == verdict->models)
        lab_str_printf(text, "all %d models do best %s%s", verdict->models, before, verdict->level);
    else
        lab_str_printf(text, "%s%s%s is as good as any for all %d models, and best for %d",
                       kind == LAB_FACTOR_NODE ? "feeding " : "running ", before, verdict->level,
                       verdict->models, verdict->decided);
    lab_str_printf(
        text, ", by up to %.1f %% [%.1f, %.1f]%s against %s (%s)", 100 * (gain->ratio - 1),
        100 * (gain->low - 1), 100 * (gain->high - 1), gain->within ? " within one run each" : "",
        lab_place_level(&verdict->most->group->places[factor->levels[verdict->worst]], kind, arena),
        verdict->most->group->name);
}

static struct view *make_views(const struct lab_place_group *groups, int count,
                               struct lab_arena *arena, int *ret_count) {
    struct view *views = lab_arena_alloc(arena, (size_t)count + 1, sizeof *views);
    *ret_count = 0;
    for (int i = 0; i < count; i++)
        if (groups[i].count > 1) {
            struct view *view = &views[(*ret_count)++];
            view->group = &groups[i];
            view->count = lab_place_factors(&groups[i], arena, view->factors);
        }
    return views;
}

static void add_capital(struct lab_str *text) {
    if (text->length > 0 && text->text[0] >= 'a' && text->text[0] <= 'z')
        text->text[0] = (char)(text->text[0] - 'a' + 'A');
}

const char *lab_place_answer_for_all(const struct lab_place_group *groups, int count,
                                     struct lab_arena *arena) {
    int open = 0, certain = 0, said = 0;
    const struct view *views = make_views(groups, count, arena, &open);
    if (open == 0)
        return "Each model was run in one place only: there is nothing to choose from.";
    LAB_AUTO(str, text);
    for (int pass = 0; pass < 2; pass++) /* what is known before what isn't */
        for (int kind = 0; kind < LAB_PLACE_FACTORS; kind++) {
            enum lab_place_factor_kind which = (enum lab_place_factor_kind)kind;
            struct verdict verdict = judge_choice(views, open, which, arena);
            if (verdict.models == 0 || (verdict.most != NULL) != (pass == 0))
                continue;
            lab_str_add(&text, said++ ? "; " : "");
            certain += pass == 0;
            if (pass == 0)
                add_verdict(&text, &verdict, which, arena);
            else
                lab_str_printf(&text, "%s can't be told", question[which]);
        }
    lab_str_add(&text, ".");
    add_capital(&text);
    if (certain == 0) {
        int slower = 0;
        for (int i = 0; i < count; i++)
            slower += groups[i].count - groups[i].alike;
        lab_str_clear(&text);
        if (slower == 0)
            lab_str_printf(&text, "For none of %d models can any place be told from the fastest.",
                           open);
        else
            lab_str_printf(&text,
                           "No choice is certainly the better one over the others; %d place%s of "
                           "%d models %s slower than the fastest.",
                           slower, slower == 1 ? "" : "s", open, slower == 1 ? "is" : "are");
    }
    return lab_arena_strdup(arena, text.text);
}
