/* analysis_group.c: points that can be held against each other, and a point's runs as one
 * figure. */
#include "analysis/analysis_group.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- keys --- */

const struct lab_value *lab_study_setting(const struct lab_study_run *run, const char *name) {
    const struct lab_value *value = lab_value_get(run->test, name);
    return value ? value : lab_value_get(run->options, name);
}

double lab_study_setting_number(const struct lab_study_run *run, const char *name) {
    return lab_study_value(lab_study_setting(run, name));
}

int lab_study_setting_values(const struct lab_study_table *study, const char *name) {
    int count = 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_value *value = lab_study_setting(&study->runs[i], name);
        bool seen = !value || !study->runs[i].used;
        for (int k = 0; k < i && !seen; k++) {
            const struct lab_value *other = lab_study_setting(&study->runs[k], name);
            seen = study->runs[k].used && other && lab_value_equal(value, other);
        }
        count += !seen;
    }
    return count;
}

/* --- groups --- */

static bool same_keys(const struct lab_study_run *a, const struct lab_study_run *b,
                      const struct lab_value *map, const char *const *varying) {
    for (int i = 0; i < map->count; i++) {
        const char *key = map->keys[i];
        if (lab_str_find(key, varying) >= 0)
            continue;
        const struct lab_value *left = lab_study_setting(a, key);
        const struct lab_value *right = lab_study_setting(b, key);
        if (!left || !right || !lab_value_equal(left, right))
            return false;
    }
    return true;
}

static bool same_place(const struct lab_study_run *a, const struct lab_study_run *b,
                       bool any_node) {
    if (a->rank_count != b->rank_count)
        return false;
    for (int i = 0; i < a->rank_count; i++)
        if (!lab_str_equal(a->ranks[i].device, b->ranks[i].device) ||
            (!any_node && a->ranks[i].numa_node != b->ranks[i].numa_node))
            return false;
    return true;
}

static bool belong_together(const struct lab_study_run *a, const struct lab_study_run *b,
                            const char *const *varying) {
    return same_place(a, b, lab_str_find("numa_node", varying) >= 0) &&
           lab_str_equal(a->phase, b->phase) && lab_str_equal(a->run->workload, b->run->workload) &&
           (lab_str_find("model", varying) >= 0 || lab_str_equal(a->model, b->model)) &&
           same_keys(a, b, a->options, varying) && same_keys(b, a, b->options, varying) &&
           same_keys(a, b, a->test, varying) && same_keys(b, a, b->test, varying);
}

/* "cuda:0, NUMA node 1", "cuda:0 + cuda:1, NUMA nodes 0 + 1" */
static const char *place_words(const struct lab_study_run *run, bool any_node,
                               struct lab_arena *arena) {
    const char *devices = "", *nodes = "";
    bool one_node = true;
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_study_rank *rank = &run->ranks[i];
        devices = lab_arena_printf(arena, "%s%s%s", devices, i ? " + " : "", rank->device);
        nodes = lab_arena_printf(arena, "%s%s%d", nodes, i ? " + " : "", rank->numa_node);
        one_node = one_node && rank->numa_node == run->ranks[0].numa_node;
    }
    if (any_node || run->rank_count == 0 || (one_node && run->ranks[0].numa_node < 0))
        return devices;
    if (one_node)
        return lab_arena_printf(arena, "%s, NUMA node %d", devices, run->ranks[0].numa_node);
    return lab_arena_printf(arena, "%s, NUMA nodes %s", devices, nodes);
}

/* Keys that differ between groups; where the model is named, between groups of that model. */
static void add_differing_keys(const struct lab_study_group *groups, int count, int at,
                               bool of_model, const char *const *varying, struct lab_str *out) {
    const struct lab_study_run *run = groups[at].points[0]->runs[0];
    for (int m = 0; m < 2; m++) {
        const struct lab_value *map = m == 0 ? run->options : run->test;
        for (int i = 0; i < map->count; i++) {
            const struct lab_value *value = lab_study_setting(run, map->keys[i]);
            bool differs = false;
            if (lab_str_find(map->keys[i], varying) >= 0 ||
                (m == 0 && lab_value_get(run->test, map->keys[i])))
                continue;
            for (int g = 0; g < count && !differs; g++) {
                const struct lab_study_run *other = groups[g].points[0]->runs[0];
                const struct lab_value *theirs = lab_study_setting(other, map->keys[i]);
                differs = (!of_model || lab_str_equal(run->model, other->model)) &&
                          (!theirs || !lab_value_equal(value, theirs));
            }
            if (!differs)
                continue;
            lab_str_printf(out, ", %s=", map->keys[i]);
            lab_value_write(value, out);
        }
    }
}

static void name_groups(struct lab_study_group *groups, int count, const char *const *varying,
                        struct lab_arena *arena) {
    bool models = false, phases = false;
    for (int i = 1; i < count; i++) {
        const struct lab_study_run *run = groups[i].points[0]->runs[0];
        const struct lab_study_run *first = groups[0].points[0]->runs[0];
        models |= lab_str_find("model", varying) < 0 && !lab_str_equal(run->model, first->model);
        phases |= !lab_str_equal(run->phase, first->phase);
    }
    LAB_AUTO(str, text);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = groups[i].points[0]->runs[0];
        groups[i].place = place_words(run, lab_str_find("numa_node", varying) >= 0, arena);
        lab_str_clear(&text);
        lab_str_add(&text, groups[i].place);
        if (models)
            lab_str_printf(&text, ", %s", run->model);
        if (phases)
            lab_str_printf(&text, ", %s", run->phase);
        add_differing_keys(groups, count, i, models, varying, &text);
        groups[i].name = lab_arena_strdup(arena, text.text);
        size_t length = strlen(groups[i].place);
        groups[i].what = groups[i].name[length] ? groups[i].name + length + strlen(", ") : "";
    }
}

/* By device, then node; else as they ran, which is at random. */
static bool comes_before(const struct lab_study_run *a, const struct lab_study_run *b) {
    for (int i = 0; i < a->rank_count && i < b->rank_count; i++) {
        const struct lab_study_rank *left = &a->ranks[i], *right = &b->ranks[i];
        if (left->gpu_id != right->gpu_id)
            return left->gpu_id < right->gpu_id;
        if (left->numa_node != right->numa_node)
            return left->numa_node < right->numa_node;
    }
    return a->rank_count < b->rank_count;
}

static void order_groups(struct lab_study_group *groups, int count) {
    for (int i = 1; i < count; i++) {
        struct lab_study_group moved = groups[i];
        int at = i;
        for (; at > 0 && comes_before(moved.points[0]->runs[0], groups[at - 1].points[0]->runs[0]);
             at--)
            groups[at] = groups[at - 1];
        groups[at] = moved;
    }
}

int lab_study_groups(const struct lab_study_point *points, int count, const char *const *varying,
                     struct lab_arena *arena, struct lab_study_group **ret_groups) {
    size_t room = (size_t)count + 1;
    struct lab_study_group *groups = lab_arena_alloc(arena, room, sizeof *groups);
    int *group_of = lab_arena_alloc(arena, room, sizeof *group_of), found = 0;
    for (int i = 0; i < count; i++) {
        int g = 0;
        while (g < found &&
               !belong_together(groups[g].points[0]->runs[0], points[i].runs[0], varying))
            g++;
        if (g == found) {
            groups[found++].points = lab_arena_alloc(arena, 1, sizeof *groups->points);
            groups[g].points[0] = &points[i];
        }
        group_of[i] = g;
        groups[g].count++;
    }
    for (int g = 0; g < found; g++) {
        int filled = 0;
        groups[g].points =
            lab_arena_alloc(arena, (size_t)groups[g].count, sizeof *groups[g].points);
        for (int i = 0; i < count; i++)
            if (group_of[i] == g)
                groups[g].points[filled++] = &points[i];
    }
    order_groups(groups, found);
    name_groups(groups, found, varying, arena);
    *ret_groups = groups;
    return found;
}

const struct lab_study_point *lab_study_find(const struct lab_study_group *group, int node,
                                             const char *name, double value) {
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_run *run = group->points[i]->runs[0];
        if ((node < 0 || run->ranks[0].numa_node == node) &&
            lab_study_setting_number(run, name) == value)
            return group->points[i];
    }
    return NULL;
}

bool lab_study_far_node(const struct lab_study_group *group, int *ret_near, int *ret_far) {
    const struct lab_study_rank *near = NULL, *far = NULL;
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_rank *rank = &group->points[i]->runs[0]->ranks[0];
        if (group->points[i]->runs[0]->rank_count != 1)
            return false;
        if (!near || rank->distance < near->distance ||
            (rank->distance == near->distance && rank->numa_node < near->numa_node))
            near = rank;
        if (!far || rank->distance > far->distance ||
            (rank->distance == far->distance && rank->numa_node > far->numa_node))
            far = rank;
    }
    if (!near || near->numa_node == far->numa_node)
        return false;
    *ret_near = near->numa_node;
    *ret_far = far->numa_node;
    return true;
}

/* --- a point's runs as one --- */

struct lab_effect lab_study_estimate(const double *values, int count) {
    LAB_AUTO_FREE double *logs = lab_mem_resize(NULL, (size_t)count + 1, sizeof *logs);
    struct lab_effect effect = {NAN, {NAN, NAN, CONFIDENCE}};
    size_t n = 0;
    for (int i = 0; i < count; i++)
        if (values[i] > 0 && isfinite(values[i]))
            logs[n++] = log(values[i]);
    if (n > 0)
        effect.value = exp(lab_stats_mean(logs, n));
    if (n > 1) {
        struct lab_interval interval = lab_stats_mean_interval(logs, n, CONFIDENCE);
        effect.interval.low = exp(interval.low);
        effect.interval.high = exp(interval.high);
    }
    return effect;
}

struct lab_effect lab_study_point_figure(const struct lab_study_point *point, size_t offset,
                                         double scale) {
    LAB_AUTO_FREE double *values = lab_mem_resize(NULL, (size_t)point->count + 1, sizeof *values);
    for (int i = 0; i < point->count; i++)
        values[i] = scale * lab_result_number(point->runs[i]->result, offset);
    return lab_study_estimate(values, point->count);
}
