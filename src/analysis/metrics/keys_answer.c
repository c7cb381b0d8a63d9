/* keys_answer.c: what claims about the keys of a matrix say, in a sentence for each key. */
#include "analysis/metrics/metrics.h"

#include "analysis/claims/rows.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MOST 3

static int count_worse(const struct metrics_key *key) {
    int count = 0;
    for (int i = 0; i < key->count; i++)
        count += key->levels[i].worse;
    return count;
}

/* Whether all that is said of keys holds with every value of the others; some key matters, or none
 * does for certain. */
static bool is_known(const struct metrics_metric *metric) {
    const struct metrics_keys *keys = metric->keys;
    bool matters = false, known = !metrics_worst(metric);
    for (int k = 0; keys && k < keys->count; k++) {
        matters |= keys->items[k].matters;
        known &= !isnan(keys->items[k].bound) && !keys->items[k].depends;
    }
    return keys && !keys->turns && keys->advised && (matters || known);
}

/* --- a key --- */

/* "lr=0.001 or 0.003", the best first. */
static void add_good(const struct metrics_key *key, struct lab_str *out) {
    int good = key->count - count_worse(key), named = 0;
    for (int i = 0; i < key->count && named < NAMED_MOST; i++)
        if (!key->levels[i].worse) {
            lab_str_add(out, named ? " or " : "");
            lab_str_add(out, named ? key->levels[i].text : key->levels[i].name);
            named++;
        }
    if (good > NAMED_MOST)
        lab_str_printf(out, " or %d more", good - NAMED_MOST);
}

/* "0.01 and 0.03 have 1.0% [0.8, 1.2] and 3.2% [3.1, 3.4] lower acc"; of many the most. */
static void add_worse(const struct metrics_metric *metric, const struct metrics_key *key,
                      struct lab_str *out, struct lab_arena *arena) {
    const char *most = NULL, *way = metric->better == LAB_DIRECTION_HIGHER ? "lower" : "higher";
    int count = count_worse(key), at = 0;
    LAB_AUTO(str, names);
    LAB_AUTO(str, amounts);
    for (int i = 0; i < key->count; i++) {
        if (!key->levels[i].worse)
            continue;
        const char *joint = at == 0 ? "" : at + 1 == count ? " and " : ", ";
        most = lab_claim_amount(&key->levels[i].change, arena);
        lab_str_printf(&names, "%s%s", joint, key->levels[i].text);
        lab_str_printf(&amounts, "%s%s", joint, most);
        at++;
    }
    if (count > NAMED_MOST)
        lab_str_printf(out, "%d others have up to %s %s %s", count, most, way, metric->quantity);
    else
        lab_str_printf(out, "%s %s %s %s %s", names.text, count == 1 ? "has" : "have", amounts.text,
                       way, metric->quantity);
}

/* "means over batch_size, 4 runs each" */
static const char *means_words(const struct metrics_keys *keys, int own, struct lab_arena *arena) {
    const struct lab_claim *claim = &keys->items[own].pairs[0];
    const char *over = keys->count == 2 ? keys->items[1 - own].name : "the other keys";
    return claim->of > claim->n
               ? lab_arena_printf(arena, "means over %s, %d of %d runs", over, claim->n, claim->of)
               : lab_arena_printf(arena, "means over %s, %d runs each", over, claim->n);
}

/* ", mean over batch_size" */
static const char *mean_words(const struct metrics_keys *keys, int own, struct lab_arena *arena) {
    return lab_arena_printf(arena, ", mean over %s",
                            keys->count == 2 ? keys->items[1 - own].name : "the other keys");
}

/* A whole number or a decimal one; false = it is a name. */
static bool read_number(const char *text, double *ret_value) {
    char *end;
    *ret_value = strtod(text, &end);
    return end > text && !*end && isfinite(*ret_value);
}

/* Where the best value of a key lies at the end of those that were tested, what lies beyond it: "
 * Not tested: batch_size above 128, effect on loss." */
static void add_beyond(const struct metrics_metric *metric, const struct metrics_key *key,
                       struct lab_str *out) {
    double best, other;
    bool above = true, below = true;
    if (!key->matters || count_worse(key) < key->count - 1 ||
        !read_number(key->levels[0].text, &best))
        return;
    for (int i = 1; i < key->count; i++) {
        if (!read_number(key->levels[i].text, &other))
            return;
        above &= best > other;
        below &= best < other;
    }
    if (above || below)
        lab_str_printf(out, " Not tested: %s %s %s%s.", key->name, above ? "above" : "below",
                       key->levels[0].text,
                       metric->own && lab_study_trains(metric->values[0].setting->study)
                           ? ", effect on loss"
                           : "");
}

static void add_key(const struct metrics_metric *metric, int own, bool first, struct lab_str *out,
                    struct lab_arena *arena) {
    const struct metrics_keys *keys = metric->keys;
    const struct metrics_key *key = &keys->items[own];
    const struct lab_claim *widest = &key->pairs[key->count - 2]; /* the best and the last */
    lab_str_add(out, out->length ? " " : "");
    if (key->matters) {
        lab_str_add(out, "Use ");
        add_good(key, out);
        lab_str_add(out, ": ");
        add_worse(metric, key, out, arena);
    } else if (key->depends) {
        lab_str_printf(out, "%s: its effect depends on another key", key->name);
    } else if (!isnan(key->bound)) {
        lab_str_printf(out, "%s%s: no difference%s%s%s", key->name,
                       first ? "" : mean_words(keys, own, arena),
                       lab_claim_larger(key->bound, arena), first ? " in " : "",
                       first ? metric->quantity : "");
    } else {
        const char *next = lab_claim_next(widest, arena);
        lab_str_printf(out, "%s: inconclusive%s%s", key->name, *next ? "; " : "", next);
    }
    if (first)
        lab_str_printf(out, " (%s%s)", key->matters ? "95% CI, " : "",
                       means_words(keys, own, arena));
    lab_str_add(out, ".");
}

/* Keys that matter first. */
const char *metrics_keys_answer(const struct metrics_metric *metric, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    bool first = true;
    if (!is_known(metric))
        return NULL;
    for (int matters = 1; matters >= 0; matters--)
        for (int k = 0; k < metric->keys->count; k++)
            if (metric->keys->items[k].matters == matters) {
                add_key(metric, k, first, &text, arena);
                first = false;
            }
    for (int k = 0; k < metric->keys->count; k++)
        add_beyond(metric, &metric->keys->items[k], &text);
    const char *dependence = metrics_keys_dependence(metric, arena);
    if (*dependence)
        lab_str_printf(&text, " %.*s%s", (int)strlen(dependence) - 1, dependence,
                       metrics_keys_interaction(metric, arena));
    return lab_arena_strdup(arena, text.text);
}

const char *metrics_keys_choice(const struct metrics_metric *metric, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (!metrics_keys_worst(metric))
        return NULL;
    for (int k = 0; k < metric->keys->count; k++)
        if (metric->keys->items[k].matters) {
            lab_str_add(&text, text.length ? "; " : "Use ");
            add_good(&metric->keys->items[k], &text);
        }
    return lab_arena_strdup(arena, text.text);
}

/* The largest that is certain; NULL = none is. */
static const struct metrics_interaction *find_interaction(const struct metrics_keys *keys) {
    const struct metrics_interaction *largest = NULL;
    for (int i = 0; keys && i < keys->interaction_count; i++) {
        const struct metrics_interaction *found = &keys->interactions[i];
        if (found->claim.verdict == LAB_CLAIM_YES &&
            (!largest || fabs(found->claim.effect) > fabs(largest->claim.effect)))
            largest = found;
    }
    return largest;
}

const char *metrics_keys_dependence(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct metrics_interaction *largest = find_interaction(metric->keys);
    return largest ? lab_arena_printf(arena, "The effects of %s and %s depend on each other. ",
                                      metric->keys->items[largest->key].name,
                                      metric->keys->items[largest->other].name)
                   : "";
}

const char *metrics_keys_interaction(const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct metrics_interaction *largest = find_interaction(metric->keys);
    return largest ? lab_arena_printf(arena, " %s.", lab_claim_sentence(&largest->claim, arena))
                   : "";
}

/* --- claims and the table --- */

const struct lab_claim *metrics_keys_worst(const struct metrics_metric *metric) {
    const struct lab_claim *worst = NULL;
    for (int k = 0; is_known(metric) && k < metric->keys->count; k++)
        for (int i = 0; i < metric->keys->items[k].count; i++) {
            const struct metrics_level *level = &metric->keys->items[k].levels[i];
            if (level->worse && (!worst || fabs(level->change.effect) > fabs(worst->effect)))
                worst = &level->change;
        }
    return worst;
}

void metrics_keys_add_claims(struct lab_analysis_result *result,
                             const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_claim *worst = metrics_keys_worst(metric);
    if (worst)
        lab_analysis_add_claim(result, worst, arena);
    for (int k = 0; metric->keys && k < metric->keys->count; k++) {
        const struct metrics_key *key = &metric->keys->items[k];
        for (int i = 0; i < key->pair_count; i++)
            if (!worst || !lab_claim_is_alike(&key->pairs[i], worst))
                lab_analysis_add_claim(result, &key->pairs[i], arena);
    }
    for (int i = 0; metric->keys && i < metric->keys->interaction_count; i++)
        lab_analysis_add_claim(result, &metric->keys->interactions[i].claim, arena);
}

static const struct lab_field level_fields[] = {
    LAB_FIELD(struct metrics_level, name, "value", "Value", LAB_UNIT_TEXT),
    LAB_FIELD(struct metrics_level, mean, "mean", "Mean", LAB_UNIT_NUMBER),
    LAB_FIELD(struct metrics_level, change, "change", "Change", LAB_UNIT_CHANGE),
};

void metrics_keys_add_table(struct lab_analysis_part *part, const struct metrics_metric *metric,
                            struct lab_arena *arena) {
    struct metrics_level *levels = NULL;
    int count = 0;
    for (int k = 0; metric->keys && k < metric->keys->count; k++)
        for (int i = 0; i < metric->keys->items[k].count; i++)
            LAB_ADD(levels, count, arena) = metric->keys->items[k].levels[i];
    struct lab_rows rows = LAB_ROWS(level_fields, levels, count);
    if (count > 0)
        lab_rows_add_table(part, "by_key", "By key", &rows, arena);
}
