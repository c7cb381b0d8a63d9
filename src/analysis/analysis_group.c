/* analysis_group.c: points that can be held against each other, and a point's runs as one
 * figure. */
#include "analysis/analysis_group.h"

#include "base/hash.h"
#include "base/list.h"
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

/* --- the same of many points --- */

static uint64_t hash_value(uint64_t hash, const struct lab_value *value) {
    hash = lab_hash_bytes(hash, &value->type, sizeof value->type);
    double number = isnan(value->number) ? 0 : value->number + 0.0; /* equal ones hash alike */
    if (value->type == LAB_VALUE_BOOL)
        return lab_hash_bytes(hash, &value->boolean, sizeof value->boolean);
    if (value->type == LAB_VALUE_INT)
        return lab_hash_bytes(hash, &value->integer, sizeof value->integer);
    if (value->type == LAB_VALUE_FLOAT)
        return lab_hash_bytes(hash, &number, sizeof number);
    if (value->type == LAB_VALUE_STRING)
        return lab_hash_text(hash, value->string);
    for (int i = 0; i < value->count; i++)
        hash = hash_value(hash, value->items[i]);
    return hash;
}

/* Of what belong_together compares, whatever the order of keys: those that do hash alike. */
static uint64_t hash_run(const struct lab_study_run *run, const char *const *varying) {
    uint64_t hash = lab_hash_text(LAB_HASH_START, run->phase), keys = 0;
    hash = lab_hash_text(hash, run->run->workload);
    if (lab_str_find("model", varying) < 0)
        hash = lab_hash_text(hash, run->model);
    for (int i = 0; i < run->rank_count; i++)
        hash = lab_hash_text(hash, run->ranks[i].device);
    for (int m = 0; m < 2; m++) {
        const struct lab_value *map = m == 0 ? run->options : run->test;
        for (int i = 0; i < map->count; i++)
            if (lab_str_find(map->keys[i], varying) < 0 &&
                (m == 1 || !lab_value_get(run->test, map->keys[i])))
                keys += hash_value(lab_hash_text(LAB_HASH_START, map->keys[i]), map->items[i]);
    }
    return lab_hash_bytes(hash, &keys, sizeof keys);
}

struct hashed {        /* groups by their hash */
    int *heads, *next; /* -1 = none */
    size_t mask;
};

static struct hashed make_hashed(int count, struct lab_arena *arena) {
    size_t size = 16;
    while (size < 2 * (size_t)count)
        size *= 2;
    struct hashed hashed = {lab_arena_alloc(arena, size, sizeof *hashed.heads),
                            lab_arena_alloc(arena, (size_t)count + 1, sizeof *hashed.next),
                            size - 1};
    for (size_t i = 0; i < size; i++)
        hashed.heads[i] = -1;
    return hashed;
}

/* --- names --- */

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

struct differing {     /* keys that differ between groups, or between those of a model */
    const char *model; /* NULL = of any */
    const struct lab_study_run *first;
    const char **keys;
    int count;
};

static void note_differing(struct differing *of, const struct lab_study_run *run,
                           struct lab_arena *arena) {
    const struct lab_value *const maps[] = {of->first->options, of->first->test, run->options,
                                            run->test};
    for (int m = 0; m < 4; m++)
        for (int i = 0; i < maps[m]->count; i++) {
            const char *key = maps[m]->keys[i];
            const struct lab_value *left = lab_study_setting(of->first, key),
                                   *right = lab_study_setting(run, key);
            if ((!left || !right || !lab_value_equal(left, right)) &&
                lab_list_find_text(of->keys, of->count, key) < 0)
                LAB_ADD(of->keys, of->count, arena) = key;
        }
}

/* Where the model is named, between groups of that model. Returns how many lists there are. */
static int find_differing(const struct lab_study_group *groups, int count, bool of_model,
                          struct lab_arena *arena, struct differing **ret) {
    int found = 0;
    *ret = NULL;
    for (int g = 0; g < count; g++) {
        const struct lab_study_run *run = groups[g].points[0]->runs[0];
        const char *model = of_model ? run->model : NULL;
        int at = LAB_FIND(*ret, found, model, model);
        if (!*ret || at < 0)
            LAB_ADD(*ret, found, arena) = (struct differing){.model = model, .first = run};
        else
            note_differing(&(*ret)[at], run, arena);
    }
    return found;
}

/* "batch 8", "512 MiB pool", "224 px", "compiled"; of other keys "dtype bf16". */
static void add_setting(const char *key, const struct lab_value *value, struct lab_str *out) {
    static const struct {
        const char *key, *before, *after;
    } words[] = {{"batch_size", "batch ", ""}, {"memory_size_mb", "", " MiB pool"}};
    if (lab_str_equal(key, "compile_model") && value->type == LAB_VALUE_BOOL) {
        lab_str_add(out, value->boolean ? "compiled" : "uncompiled");
        return;
    }
    if (lab_str_equal(key, "tensor_shape") && value->count == 3) { /* channels, height, width */
        double height = lab_study_value(value->items[1]), width = lab_study_value(value->items[2]);
        lab_str_printf(out, height == width ? "%.0f px" : "%.0fx%.0f px", height, width);
        return;
    }
    int found = LAB_FIND(words, sizeof words / sizeof *words, key, key);
    if (found < 0)
        lab_str_printf(out, "%s ", key);
    else
        lab_str_add(out, words[found].before);
    lab_value_write(value, out);
    lab_str_add(out, found < 0 ? "" : words[found].after);
}

static void add_differing_keys(const struct lab_study_run *run, const struct differing *of,
                               const char *const *varying, struct lab_str *out) {
    for (int m = 0; m < 2; m++) {
        const struct lab_value *map = m == 0 ? run->options : run->test;
        for (int i = 0; i < map->count; i++) {
            if (lab_str_find(map->keys[i], varying) >= 0 ||
                (m == 0 && lab_value_get(run->test, map->keys[i])) ||
                lab_list_find_text(of->keys, of->count, map->keys[i]) < 0)
                continue;
            lab_str_add(out, ", ");
            add_setting(map->keys[i], lab_study_setting(run, map->keys[i]), out);
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
    LAB_AUTO(arena, scratch);
    struct differing *differing;
    int lists = find_differing(groups, count, models, &scratch, &differing);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = groups[i].points[0]->runs[0];
        int of = LAB_FIND(differing, lists, model, models ? run->model : NULL);
        groups[i].place = place_words(run, lab_str_find("numa_node", varying) >= 0, arena);
        lab_str_clear(&text);
        lab_str_add(&text, groups[i].place);
        if (models)
            lab_str_printf(&text, ", %s", run->model);
        if (phases)
            lab_str_printf(&text, ", %s", run->phase);
        add_differing_keys(run, &differing[of], varying, &text);
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
    LAB_AUTO(arena, scratch);
    struct hashed hashed = make_hashed(count, &scratch);
    for (int i = 0; i < count; i++) {
        int *head = &hashed.heads[hash_run(points[i].runs[0], varying) & hashed.mask], g = *head;
        while (g >= 0 && !belong_together(groups[g].points[0]->runs[0], points[i].runs[0], varying))
            g = hashed.next[g];
        if (g < 0) {
            g = found++;
            hashed.next[g] = *head;
            *head = g;
            groups[g].points = lab_arena_alloc(arena, 1, sizeof *groups->points);
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
