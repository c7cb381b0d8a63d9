/*
 * keys.c: a matrix of several keys: which of them matters. Where settings are a whole crossing, a
 * value of one key is compared with another over all values of the others: a mean of differences,
 * block by block (claims/contrast.h). Of two keys there may be an interaction: then that mean is
 * not what each setting gains.
 */
#include "analysis/metrics/metrics.h"

#include "analysis/claims/contrast.h"
#include "base/list.h"
#include "base/str.h"
#include "model/setting.h"
#include "stats/stats.h"

#include <limits.h>
#include <math.h>

struct crossing {
    const struct metrics_metric *metric; /* its values are the best first */
    struct metrics_keys *keys;
    int *levels; /* value × key: its level */
    int planned; /* runs of the setting that has the fewest values */
    struct lab_arena *arena;
};

static int level_of(const struct crossing *c, int value, int key) {
    return c->levels[value * c->keys->count + key];
}

/* --- what is crossed --- */

static const char *text_at(const struct metrics_metric *metric, int value, int key) {
    const struct metrics_setting *setting = metric->values[value].setting;
    return setting->names->values[setting->place * setting->names->key_count + key];
}

static void name_level(const struct metrics_metric *metric, int value, int key,
                       struct metrics_level *level, struct lab_arena *arena) {
    const char *name = metric->values[value].setting->names->keys[key],
               *text = text_at(metric, value, key);
    level->name = level->name ? lab_arena_printf(arena, "%s, %s=%s", level->name, name, text)
                              : lab_arena_printf(arena, "%s=%s", name, text);
    level->text = level->text ? level->name : text;
}

/* Levels of one key: `ret_levels` of each value. How many. */
static int number_levels(const struct metrics_metric *metric, int key, int *ret_levels) {
    int count = 0;
    for (int v = 0; v < metric->compared; v++) {
        int first = 0;
        while (!lab_str_equal(text_at(metric, first, key), text_at(metric, v, key)))
            first++;
        ret_levels[v] = first == v ? count++ : ret_levels[first];
    }
    return count;
}

/* A key that has always moved with one before it is one with it. < 0 = none has. */
static int find_alike(const struct crossing *c, const int *levels, int most) {
    for (int k = 0; k < c->keys->count; k++) {
        bool alike = true;
        for (int v = 0; v < c->metric->compared && alike; v++)
            alike = c->levels[v * most + k] == levels[v];
        if (alike)
            return k;
    }
    return -1;
}

static void find_keys(struct crossing *c) {
    const struct lab_settings *names = c->metric->values[0].setting->names;
    int compared = c->metric->compared, most = names->key_count;
    int *levels = lab_arena_alloc(c->arena, (size_t)compared, sizeof *levels);
    struct metrics_keys *keys = c->keys;
    c->levels = lab_arena_alloc(c->arena, (size_t)compared * (size_t)most + 1, sizeof *c->levels);
    keys->items = lab_arena_alloc(c->arena, (size_t)most + 1, sizeof *keys->items);
    for (int k = 0; k < most; k++) {
        int count = number_levels(c->metric, k, levels), alike = find_alike(c, levels, most);
        struct metrics_key *key = &keys->items[alike < 0 ? keys->count : alike];
        if (count < 2)
            continue;
        if (alike < 0) {
            *key = (struct metrics_key){.name = names->keys[k], .count = count};
            key->levels = lab_arena_alloc(c->arena, (size_t)count, sizeof *key->levels);
            for (int v = 0; v < compared; v++)
                c->levels[v * most + keys->count] = levels[v];
            keys->count++;
        } else {
            key->name = lab_arena_printf(c->arena, "%s and %s", key->name, names->keys[k]);
        }
        for (int v = 0, named = 0; v < compared; v++)
            if (levels[v] == named)
                name_level(c->metric, v, k, &key->levels[named++], c->arena);
    }
    for (int v = 0; v < compared; v++) /* as wide as there are keys */
        for (int k = 0; k < keys->count; k++)
            c->levels[v * keys->count + k] = c->levels[v * most + k];
}

/* The value that differs in these keys alone; < 0 = there is none. Keys < 0: no other. */
static int find_partner(const struct crossing *c, int value, int key, int level, int other_key,
                        int other_level) {
    for (int w = 0; w < c->metric->compared; w++) {
        bool found = true;
        for (int k = 0; k < c->keys->count && found; k++)
            found = level_of(c, w, k) == (k == key         ? level
                                          : k == other_key ? other_level
                                                           : level_of(c, value, k));
        if (found)
            return w;
    }
    return -1;
}

/* Each combination of levels once, in one study. */
static bool is_whole(const struct crossing *c) {
    int64_t product = 1;
    for (int k = 0; k < c->keys->count; k++)
        product *= product <= c->metric->compared ? c->keys->items[k].count : 1;
    if (c->keys->count < 2 || product != c->metric->compared)
        return false;
    for (int v = 0; v < c->metric->compared; v++)
        if (find_partner(c, v, -1, 0, -1, 0) != v)
            return false;
    return true;
}

/* Runs that repeat nothing decide nothing (compare.c). */
static bool is_repeated(const struct metrics_metric *metric) {
    bool varies = false;
    for (int v = 0; v < metric->compared; v++) {
        const struct metrics_value *value = &metric->values[v];
        const struct metrics_setting *setting = value->setting;
        if (setting->point.count < 2 || setting->study != metric->values[0].setting->study ||
            !setting->names || value->change.reason || value->worse.reason ||
            (setting->copied && !metric->rate && !setting->study->simulated))
            return false;
        double first = metrics_compared_value(setting->point.runs[0], metric);
        for (int r = 1; r < setting->point.count; r++)
            varies |= metrics_compared_value(setting->point.runs[r], metric) != first;
    }
    return varies || metric->values[0].setting->study->simulated;
}

/* --- levels --- */

static double scaled(const struct metrics_metric *metric, double value) {
    return metric->differs ? value : log(value);
}

/* Of its settings, as they are compared; a geometric mean of positive ones. */
static double mean_at(const struct crossing *c, int key, int level) {
    double sum = 0;
    int count = 0;
    for (int v = 0; v < c->metric->compared; v++)
        if (level_of(c, v, key) == level) {
            sum += scaled(c->metric, c->metric->values[v].value);
            count++;
        }
    return c->metric->differs ? sum / count : exp(sum / count);
}

/* The best first. */
static void order_levels(struct crossing *c, int k) {
    struct metrics_key *key = &c->keys->items[k];
    int *places = lab_arena_alloc(c->arena, (size_t)key->count, sizeof *places);
    for (int i = 0; i < key->count; i++) {
        key->levels[i].mean = mean_at(c, k, i);
        key->levels[i].number = i;
    }
    LAB_SORT(key->levels, key->count,
             LAB_LIST_KEY(key->levels, mean, c->metric->better == LAB_DIRECTION_HIGHER));
    for (int i = 0; i < key->count; i++)
        places[key->levels[i].number] = i;
    for (int v = 0; v < c->metric->compared; v++)
        c->levels[v * c->keys->count + k] = places[level_of(c, v, k)];
}

/* --- claims --- */

static struct lab_contrast empty(const struct crossing *c, const struct metrics_figure *figure) {
    return (struct lab_contrast){.arena = c->arena,
                                 .value = figure->value,
                                 .context = figure->context,
                                 .difference = figure->difference};
}

/* Level b against a, over all settings that have a; with another key, how that differs between its
 * levels d and c. */
struct step {
    int key, a, b, other, c, d; /* other < 0: none */
};

static struct lab_contrast contrast_of(const struct crossing *c, const struct step *step,
                                       const struct metrics_figure *figure) {
    struct lab_contrast contrast = empty(c, figure);
    const struct metrics_value *values = c->metric->values;
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int v = 0; v < c->metric->compared; v++) {
            if (level_of(c, v, step->key) != step->a ||
                (step->other >= 0 && level_of(c, v, step->other) != step->c))
                continue;
            count += pass == 0;
            if (pass == 0)
                continue;
            int w = find_partner(c, v, step->key, step->b, -1, 0);
            if (step->other < 0) {
                lab_contrast_add_pair(&contrast, &values[v].setting->point,
                                      &values[w].setting->point, 1.0 / count);
                continue;
            }
            int x = find_partner(c, v, step->other, step->d, -1, 0),
                y = find_partner(c, v, step->key, step->b, step->other, step->d);
            lab_contrast_add_pair(&contrast, &values[w].setting->point, &values[v].setting->point,
                                  1.0 / count);
            lab_contrast_add_pair(&contrast, &values[x].setting->point, &values[y].setting->point,
                                  1.0 / count);
        }
    return contrast;
}

/* Few blocks hardly show how much a contrast varies: the others of its kind do. `freedom`: how many
 * of them are free. */
static void estimate_all(const struct crossing *c, const struct step *steps, int count, int freedom,
                         const struct metrics_figure *figure, struct lab_claim *claims) {
    double *variances = lab_arena_alloc(c->arena, 2 * (size_t)count + 1, sizeof *variances),
           *freedoms = variances + count, most = 0;
    struct lab_contrast *contrasts =
        lab_arena_alloc(c->arena, (size_t)count + 1, sizeof *contrasts);
    for (int i = 0; i < count; i++) {
        contrasts[i] = contrast_of(c, &steps[i], figure);
        variances[i] = lab_contrast_variance(&contrasts[i], LAB_STUDY_RATE, &freedoms[i]);
        most = fmax(most, freedoms[i]); /* fmax passes NaN over */
    }
    struct lab_variance_prior prior = lab_stats_variance_prior(variances, freedoms, (size_t)count);
    for (int i = 0; i < count; i++) {
        contrasts[i].prior = prior;
        contrasts[i].prior_most = most * freedom;
        claims[i] = lab_claim_estimate(&contrasts[i], LAB_STUDY_RATE);
        claims[i].of = c->planned;
        if (!figure->rate && claims[i].needed > LAB_CLAIM_RUNS_MOST)
            claims[i].needed = 0; /* as in compare.c: seeds differ */
    }
}

static const char *settings_words(int count, struct lab_arena *arena) {
    return count > 1 ? lab_arena_printf(arena, "%d settings", count) : NULL;
}

/* Pairs of levels, the better one first. */
static void compare_levels(struct crossing *c, int k, const struct metrics_figure *figure) {
    struct metrics_key *key = &c->keys->items[k];
    int pairs = key->count * (key->count - 1) / 2, n = 0;
    struct step *steps = lab_arena_alloc(c->arena, (size_t)pairs, sizeof *steps);
    for (int a = 0; a < key->count; a++)
        for (int b = a + 1; b < key->count; b++)
            steps[n++] = (struct step){k, a, b, -1, 0, 0};
    key->pairs = lab_arena_alloc(c->arena, (size_t)pairs, sizeof *key->pairs);
    key->pair_count = pairs;
    estimate_all(c, steps, pairs, key->count - 1, figure, key->pairs);
    for (int i = 0; i < pairs; i++) {
        key->pairs[i] = lab_claim_named(key->pairs[i], "metrics.key", key->levels[steps[i].b].name,
                                        key->levels[steps[i].a].name, c->metric->quantity);
        key->pairs[i].mean_of = settings_words(c->metric->compared / key->count, c->arena);
    }
}

/* Each level of two keys against their best ones: how much the two differ from their effects alone.
 * Which levels are best follows from means, of which this is independent. */
static void compare_keys(struct crossing *c, int k, int j, const struct metrics_figure *figure) {
    struct metrics_keys *keys = c->keys;
    const struct metrics_key *one = &keys->items[k], *two = &keys->items[j];
    int count = (one->count - 1) * (two->count - 1), n = 0;
    struct step *steps = lab_arena_alloc(c->arena, (size_t)count, sizeof *steps);
    struct lab_claim *claims = lab_arena_alloc(c->arena, (size_t)count, sizeof *claims);
    for (int b = 1; b < one->count; b++)
        for (int d = 1; d < two->count; d++)
            steps[n++] = (struct step){k, 0, b, j, 0, d};
    estimate_all(c, steps, count, count, figure, claims);
    for (int i = 0; i < count; i++) {
        const char *subject = lab_arena_printf(c->arena, "%s with %s", one->levels[steps[i].b].name,
                                               two->levels[steps[i].d].name);
        claims[i] = lab_claim_named(claims[i], "metrics.interaction", subject,
                                    "their separate effects", c->metric->quantity);
        claims[i].mean_of = settings_words(c->metric->compared / one->count / two->count, c->arena);
        LAB_ADD(keys->interactions, keys->interaction_count, c->arena) =
            (struct metrics_interaction){k, j, claims[i]};
    }
}

static int count_tests(const struct metrics_keys *keys) {
    int count = keys->interaction_count;
    for (int k = 0; k < keys->count; k++)
        count += keys->items[k].pair_count;
    return count;
}

/* All of the metric's comparisons are one family: `tests` of them. */
static void judge(const struct crossing *c, int tests) {
    int count = count_tests(c->keys), n = 0;
    struct lab_claim **claims = lab_arena_alloc(c->arena, (size_t)count + 1, sizeof *claims);
    double *p = lab_arena_alloc(c->arena, (size_t)count + 1, sizeof *p);
    for (int k = 0; k < c->keys->count; k++)
        for (int i = 0; i < c->keys->items[k].pair_count; i++)
            claims[n++] = &c->keys->items[k].pairs[i];
    for (int i = 0; i < c->keys->interaction_count; i++)
        claims[n++] = &c->keys->interactions[i].claim;
    for (int i = 0; i < count; i++)
        p[i] = claims[i]->p;
    lab_stats_adjust_holm(p, (size_t)count, (size_t)tests, p);
    for (int i = 0; i < count; i++)
        lab_claim_judge(claims[i], p[i]);
}

/* --- what follows --- */

/* Whether the first level is better in each level of another key. */
static bool is_better_everywhere(const struct crossing *c, int key, int better, int worse,
                                 int other) {
    for (int level = 0; level < c->keys->items[other].count; level++) {
        double difference = 0;
        for (int v = 0; v < c->metric->compared; v++) {
            double value = scaled(c->metric, c->metric->values[v].value);
            if (level_of(c, v, other) == level)
                difference += level_of(c, v, key) == better  ? value
                              : level_of(c, v, key) == worse ? -value
                                                             : 0;
        }
        if (c->metric->better == LAB_DIRECTION_HIGHER ? difference < 0 : difference > 0)
            return false;
    }
    return true;
}

/* Of a key that matters: whether what is advised may be worse with some value of the other. */
static bool turns(const struct crossing *c, int key, int other) {
    const struct metrics_key *own = &c->keys->items[key];
    for (int a = 0; a < own->count; a++)
        for (int b = 0; b < own->count; b++)
            if (!own->levels[a].worse && own->levels[b].worse &&
                !is_better_everywhere(c, key, a, b, other))
                return true;
    return false;
}

static void conclude(const struct crossing *c) {
    for (int k = 0; k < c->keys->count; k++) {
        struct metrics_key *key = &c->keys->items[k];
        key->bound = 0;
        for (int i = 0; i < key->pair_count; i++) /* fmax passes NaN over */
            key->bound = key->pairs[i].verdict == LAB_CLAIM_NO && !isnan(key->bound)
                             ? fmax(key->bound, key->pairs[i].bound)
                             : (double)NAN;
        key->levels[0].change = lab_claim_named(lab_claim_none, "metrics.key", key->levels[0].name,
                                                key->levels[0].name, c->metric->quantity);
        for (int i = 1; i < key->count; i++) { /* the first pairs are the best's */
            key->levels[i].change = key->pairs[i - 1];
            key->levels[i].worse = key->pairs[i - 1].verdict == LAB_CLAIM_YES &&
                                   !metrics_is_gain(c->metric, &key->pairs[i - 1]);
            key->matters |= key->levels[i].worse;
        }
    }
    for (int i = 0; i < c->keys->interaction_count; i++) {
        const struct metrics_interaction *found = &c->keys->interactions[i];
        if (found->claim.verdict != LAB_CLAIM_YES)
            continue;
        c->keys->items[found->key].depends = c->keys->items[found->other].depends = true;
        c->keys->turns |= turns(c, found->key, found->other) || turns(c, found->other, found->key);
    }
    for (int v = 0; v < c->metric->compared && !c->keys->advised; v++) {
        bool good = true;
        for (int k = 0; k < c->keys->count; k++)
            good &= !c->keys->items[k].levels[level_of(c, v, k)].worse;
        c->keys->advised = good ? c->metric->values[v].setting : NULL;
    }
}

struct metrics_keys *metrics_keys_compare(const struct metrics_metric *metric, int *tests,
                                          struct lab_arena *arena) {
    struct metrics_figure figure = metrics_figure_of(metric);
    struct metrics_keys *keys = lab_arena_alloc(arena, 1, sizeof *keys);
    struct crossing c = {.metric = metric, .keys = keys, .arena = arena};
    if (metric->better == LAB_DIRECTION_NONE || metric->compared < 4 || !is_repeated(metric))
        return NULL;
    find_keys(&c);
    if (!is_whole(&c))
        return NULL;
    for (int v = 0, fewest = INT_MAX; v < metric->compared; v++)
        if (metric->values[v].runs < fewest) {
            fewest = metric->values[v].runs;
            c.planned = metric->values[v].setting->planned;
        }
    for (int k = 0; k < keys->count; k++)
        order_levels(&c, k);
    for (int k = 0; k < keys->count; k++)
        compare_levels(&c, k, &figure);
    for (int k = 0; k < keys->count; k++)
        for (int j = k + 1; j < keys->count; j++)
            compare_keys(&c, k, j, &figure);
    *tests += count_tests(keys);
    judge(&c, *tests);
    conclude(&c);
    return keys;
}
