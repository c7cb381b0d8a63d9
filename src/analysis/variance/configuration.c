/*
 * configuration.c: whether phases ended with different configurations. Where runs were tuned, what
 * the tuner chose; otherwise the options that they ran with.
 */
#include "analysis/variance/phases.h"

#include "base/str.h"

#include <string.h>

#define KEYS_MAX 64 /* of one pair that are listed */

static const struct lab_value *chosen_by_tuner(const struct lab_study_run *run,
                                               struct lab_arena *arena) {
    const struct lab_value *best = lab_result_json(run->result->best_config, arena);
    if (best->type != LAB_VALUE_MAP)
        best = lab_result_json(run->result->configuration, arena);
    return best->type == LAB_VALUE_MAP ? best : NULL;
}

static const struct lab_value *configuration(const struct lab_study_run *run, bool tuned,
                                             struct lab_arena *arena) {
    return tuned ? chosen_by_tuner(run, arena) : run->options;
}

static bool is_tuned(const struct lab_phase_point *point, struct lab_arena *arena) {
    for (int i = 0; i < point->point.count; i++)
        if (!chosen_by_tuner(point->point.runs[i], arena))
            return false;
    return point->point.count > 0;
}

/* The order of keys doesn't matter. */
static bool same(const struct lab_value *a, const struct lab_value *b) {
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        const struct lab_value *other = lab_value_get(b, a->keys[i]);
        if (!other || !lab_value_equal(a->items[i], other))
            return false;
    }
    return true;
}

static const char *text_of(const struct lab_value *value, struct lab_arena *arena) {
    if (!value)
        return "–";
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    return lab_arena_strdup(arena, text.text);
}

static int list_keys(const struct lab_value *base, const struct lab_value *other, int pair,
                     struct lab_phase_difference *differences, struct lab_arena *arena) {
    int count = 0;
    for (int i = 0; i < base->count && count < KEYS_MAX; i++) {
        const struct lab_value *value = lab_value_get(other, base->keys[i]);
        if (value && lab_value_equal(base->items[i], value))
            continue;
        differences[count++] = (struct lab_phase_difference){
            pair, base->keys[i], text_of(base->items[i], arena), text_of(value, arena)};
    }
    for (int i = 0; i < other->count && count < KEYS_MAX; i++)
        if (!lab_value_get(base, other->keys[i]))
            differences[count++] = (struct lab_phase_difference){pair, other->keys[i], "–",
                                                                 text_of(other->items[i], arena)};
    return count;
}

int lab_phases_configurations(struct lab_phases *phases, struct lab_arena *arena,
                              struct lab_phase_difference **ret_differences) {
    struct lab_phase_difference *differences =
        lab_arena_alloc(arena, (size_t)phases->pair_count * KEYS_MAX + 1, sizeof *differences);
    int count = 0;
    for (int p = 0; p < phases->pair_count; p++) {
        struct lab_phase_pair *pair = &phases->pairs[p];
        const struct lab_study_point *base = &pair->base->point, *other = &pair->other->point;
        bool listed = false;
        pair->tuned = is_tuned(pair->base, arena) && is_tuned(pair->other, arena);
        for (int i = 0; i < base->count; i++) {
            const struct lab_value *of_base = configuration(base->runs[i], pair->tuned, arena);
            for (int k = 0; k < other->count; k++) {
                const struct lab_value *of_other =
                    configuration(other->runs[k], pair->tuned, arena);
                bool of_block = base->runs[i]->run->repeat == other->runs[k]->run->repeat;
                pair->pairs++;
                pair->blocks += of_block;
                if (same(of_base, of_other))
                    continue;
                pair->differing++;
                pair->blocks_differing += of_block;
                if (!listed)
                    count += list_keys(of_base, of_other, p, differences + count, arena);
                listed = true;
            }
            for (int k = 0; k < i; k++) {
                pair->own_pairs++;
                pair->own_differing +=
                    !same(of_base, configuration(base->runs[k], pair->tuned, arena));
            }
        }
    }
    *ret_differences = differences;
    return count;
}
