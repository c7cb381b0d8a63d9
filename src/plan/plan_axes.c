/*
 * plan_axes.c: what is crossed, and which parts of it have names. All values are found once for a
 * job; walking the points (plan_points.c) then only counts.
 */
#include "plan/plan_internal.h"

#include "base/list.h"

struct reader {
    struct plan_job *job;
    struct lab_arena *arena;
    struct lab_err *err;
};

/* The value at a path below `map`, or NULL. */
static struct lab_value *lookup(const struct lab_value *map, const char *path) {
    char key[128];
    for (;;) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        struct lab_value *value = lab_value_get(map, key);
        if (!value || !path[length])
            return value;
        map = value;
        path += length + 1;
    }
}

bool plan_is_axis(const struct plan_product *product, const char *path) {
    for (int i = 0; i < product->count; i++)
        for (int k = 0; k < product->axes[i].key_count; k++)
            if (strcmp(product->axes[i].paths[k], path) == 0)
                return true;
    return false;
}

static bool has_root(const struct plan_product *product, const char *key) {
    size_t length = strlen(key);
    for (int i = 0; i < product->count; i++)
        for (int k = 0; k < product->axes[i].key_count; k++) {
            const char *path = product->axes[i].paths[k];
            if (strncmp(path, key, length) == 0 && (!path[length] || path[length] == '.'))
                return true;
        }
    return false;
}

bool plan_is_axis_root(const struct plan_job *job, const char *key) {
    if (has_root(&job->product, key))
        return true;
    for (int i = 0; i < job->series_count; i++)
        if (has_root(&job->series[i].product, key))
            return true;
    return false;
}

/* --- one axis --- */

/* A list of numbers is one value of a key that takes such lists. */
static bool is_one_value(const struct reader *r, const char *path, const struct lab_value *value) {
    if (value->type != LAB_VALUE_LIST)
        return true;
    if ((r->job->phase_count > 0 || r->job->keys.spread) && strcmp(path, PLAN_GPU_IDS) == 0)
        return true; /* phases say who runs when, the runner where a spread point does */
    const char *key = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
    const struct lab_option *row = lab_options_find(r->job->workload->options, key);
    bool takes_lists = row && row->type == LAB_OPTION_INTS && !lab_str_starts(path, "hardware.");
    return takes_lists && (value->count == 0 || value->items[0]->type != LAB_VALUE_LIST);
}

/* `all`: the whole list of devices, or every NUMA node. */
static struct lab_value *all_hardware(const struct reader *r, const char *path,
                                      const struct lab_value *value) {
    struct lab_value *list = lab_value_list(r->arena);
    const struct lab_machine *machine = r->job->machine;
    bool nodes = strcmp(path, PLAN_NUMA_NODES) == 0;
    for (int i = 0; i < (nodes ? machine->node_count : r->job->devices->count); i++)
        lab_value_append(r->arena, list,
                         lab_value_int(r->arena, nodes ? machine->nodes[i].number : i));
    list->origin = value->origin;
    list->line = value->line;
    return list;
}

/* numa_nodes may be unset. */
static struct lab_value *settle_nodes(const struct reader *r, struct lab_value *value) {
    if (r->job->keys.spread)
        return plan_spread_nodes(value, r->arena);
    return value->type == LAB_VALUE_NULL ? lab_value_int(r->arena, 0) : value;
}

static int set_values(const struct reader *r, struct plan_axis *axis, int key, const char *path,
                      struct lab_value *value) {
    const char *full = lab_arena_printf(r->arena, "experiment.%s", path);
    if (plan_require(value, full, r->err) < 0)
        return -1;
    if ((strcmp(path, PLAN_GPU_IDS) == 0 || strcmp(path, PLAN_NUMA_NODES) == 0) &&
        value->type == LAB_VALUE_STRING && lab_str_equal(value->string, "all"))
        value = all_hardware(r, path, value);
    if (strcmp(path, PLAN_NUMA_NODES) == 0)
        value = settle_nodes(r, value);
    if (strcmp(path, PLAN_GPU_IDS) == 0 && plan_mode_gangs(r->job, r->arena, &value, r->err) < 0)
        return -1;
    int length = 1;
    if (is_one_value(r, path, value)) {
        struct lab_value **one = lab_arena_alloc(r->arena, 1, sizeof *one);
        one[0] = value;
        axis->values[key] = one;
    } else {
        if (value->count == 0)
            return lab_value_err(value, r->err, "%s is empty: nothing would run", full);
        axis->values[key] = value->items;
        length = value->count;
    }
    axis->paths[key] = path;
    if (key > 0 && length != axis->length)
        return lab_value_err(value, r->err,
                             "%s and %s move together: the one has %d values, the other %d",
                             axis->paths[0], path, axis->length, length);
    axis->length = length;
    return 0;
}

static struct plan_axis make_axis(const struct reader *r, int key_count) {
    return (struct plan_axis){
        .paths = lab_arena_alloc(r->arena, (size_t)key_count, sizeof(char *)),
        .values = lab_arena_alloc(r->arena, (size_t)key_count, sizeof(struct lab_value **)),
        .key_count = key_count,
    };
}

/* Takes the place of an axis with the same keys, or stands behind all others. */
static int put_axis(const struct reader *r, struct plan_product *product, int fixed,
                    const struct plan_axis *axis, const struct lab_value *entry) {
    int at = -1;
    for (int i = 0; i < product->count; i++) {
        int shared = 0;
        for (int k = 0; k < axis->key_count; k++)
            shared += plan_is_axis(&(struct plan_product){&product->axes[i], 1}, axis->paths[k]);
        if (shared == 0)
            continue;
        if (i >= fixed)
            return lab_value_err(entry, r->err, "experiment.axes: duplicate %s", axis->paths[0]);
        if (shared < product->axes[i].key_count)
            return lab_value_err(entry, r->err,
                                 "%s moves together with other keys in experiment.axes: name them "
                                 "all in this series",
                                 axis->paths[0]);
        if (at < 0) {
            at = i;
            continue;
        }
        memmove(&product->axes[i], &product->axes[i + 1],
                (size_t)(product->count - i - 1) * sizeof *product->axes);
        product->count--;
        fixed--;
        i--;
    }
    product->axes[at < 0 ? product->count++ : at] = *axis;
    return 0;
}

/* --- entries of `axes` --- */

static int add_single(const struct reader *r, struct plan_product *product, int fixed,
                      const char *path, struct lab_value *value, const struct lab_value *entry) {
    struct plan_axis axis = make_axis(r, 1);
    if (set_values(r, &axis, 0, path, value) < 0)
        return -1;
    return put_axis(r, product, fixed, &axis, entry);
}

static int refuse_path(const struct reader *r, const struct lab_value *entry, const char *path) {
    const char *dot = strrchr(path, '.');
    const char *above = dot ? lab_arena_strndup(r->arena, path, (size_t)(dot - path)) : NULL;
    const struct lab_value *map = r->job->experiment;
    if (above)
        map = lookup(map, above);
    int count = map && map->type == LAB_VALUE_MAP ? map->count : 0;
    const char **names = lab_arena_alloc(r->arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = above ? lab_arena_printf(r->arena, "%s.%s", above, map->keys[i]) : map->keys[i];
    const char *nearest = lab_str_nearest(path, names);
    return lab_value_err(entry, r->err, "experiment.axes: there is no experiment.%.80s%s%s%s", path,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

/* Elements that are maps bring keys of their own. */
static bool holds_maps(const struct lab_value *value) {
    return value->type == LAB_VALUE_MAP || (value->type == LAB_VALUE_LIST && value->count > 0 &&
                                            value->items[0]->type == LAB_VALUE_MAP);
}

bool plan_is_unused_setting(const struct plan_job *job, const char *key,
                            const struct lab_value *value) {
    return !job->workload->external && value->line > 0 && !holds_maps(value) &&
           !lab_options_find(job->workload->options, key);
}

bool plan_is_others_setting(const struct plan_job *job, const char *key,
                            const struct lab_value *value) {
    if (!plan_is_unused_setting(job, key, value))
        return false;
    for (int i = 0; lab_workloads[i]; i++)
        if (!lab_workloads[i]->external && lab_options_find(lab_workloads[i]->options, key))
            return true;
    return false;
}

static int add_path(const struct reader *r, struct plan_product *product, int fixed,
                    const struct lab_value *entry) {
    const char *path = entry->string;
    struct lab_value *value = lookup(r->job->experiment, path);
    if (!value && lab_str_equal(path, PLAN_MATRIX)) /* ~experiment.matrix: one setting */
        return 0;
    if (!value)
        return refuse_path(r, entry, path);
    if (plan_is_others_setting(r->job, path, value))
        return 0;
    if (value->type != LAB_VALUE_MAP)
        return add_single(r, product, fixed, path, value, entry);
    for (int i = 0; i < value->count; i++) {
        const char *key = lab_arena_printf(r->arena, "%s.%s", path, value->keys[i]);
        if (lab_str_equal(path, PLAN_MATRIX) &&
            plan_is_unused_setting(r->job, value->keys[i], value->items[i]))
            continue;
        if (add_single(r, product, fixed, key, value->items[i], entry) < 0)
            return -1;
    }
    return 0;
}

static int add_together(const struct reader *r, struct plan_product *product, int fixed,
                        const struct lab_value *entry) {
    if (entry->count == 0)
        return lab_value_err(entry, r->err, "an axis without keys");
    struct plan_axis axis = make_axis(r, entry->count);
    for (int i = 0; i < entry->count; i++)
        if (set_values(r, &axis, i, entry->keys[i], entry->items[i]) < 0)
            return -1;
    return put_axis(r, product, fixed, &axis, entry);
}

/* Adds the entries to `product`, of whose axes the first `fixed` may be replaced. */
static int add_entries(const struct reader *r, struct plan_product *product, int fixed,
                       const struct lab_value *list) {
    if (list->type != LAB_VALUE_LIST)
        return lab_value_err(list, r->err,
                             "axes must be a list, such as [hardware.gpu_ids, "
                             "hardware.numa_nodes, vit_configs]");
    for (int i = 0; i < list->count; i++) {
        const struct lab_value *entry = list->items[i];
        int result;
        if (entry->type == LAB_VALUE_STRING)
            result = add_path(r, product, fixed, entry);
        else if (entry->type == LAB_VALUE_MAP)
            result = add_together(r, product, fixed, entry);
        else
            result = lab_value_err(entry, r->err,
                                   "an axis is the name of a key, or a map of keys with lists of "
                                   "values, but this is %s",
                                   lab_value_type_name(entry->type));
        if (result < 0)
            return -1;
    }
    return 0;
}

/* How many axes a list of entries can come to, with room for the hardware's. */
static int most_axes(const struct reader *r, const struct lab_value *list) {
    int most = 2;
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++) {
        const struct lab_value *entry = list->items[i], *value = NULL;
        if (entry->type == LAB_VALUE_STRING)
            value = lookup(r->job->experiment, entry->string);
        most += value && value->type == LAB_VALUE_MAP ? value->count : 1;
    }
    return most;
}

static int read_product(const struct reader *r) {
    const struct lab_value *axes = lab_value_get(r->job->experiment, "axes");
    struct plan_product named = {0}, *product = &r->job->product;
    size_t most = (size_t)most_axes(r, axes);
    named.axes = lab_arena_alloc(r->arena, most, sizeof *named.axes);
    product->axes = lab_arena_alloc(r->arena, most, sizeof *product->axes);
    if (axes && add_entries(r, &named, 0, axes) < 0)
        return -1;
    static const char *const always[] = {PLAN_GPU_IDS, PLAN_NUMA_NODES};
    for (int i = 0; i < 2; i++) {
        if (plan_is_axis(&named, always[i]) || (i == 1 && r->job->phase_count > 0))
            continue;
        struct lab_value *value = lookup(r->job->experiment, always[i]);
        if (!value)
            return lab_value_err(r->job->experiment, r->err, "experiment.%s is missing", always[i]);
        if (add_single(r, product, 0, always[i], value, value) < 0)
            return -1;
    }
    memcpy(product->axes + product->count, named.axes, (size_t)named.count * sizeof *named.axes);
    product->count += named.count;
    return 0;
}

/* --- series --- */

static bool same(const struct lab_value *a, const struct lab_value *b) {
    if (a->type == LAB_VALUE_INT && b->type == LAB_VALUE_FLOAT)
        return (double)a->integer == b->number;
    if (a->type == LAB_VALUE_FLOAT && b->type == LAB_VALUE_INT)
        return a->number == (double)b->integer;
    return lab_value_equal(a, b);
}

/* Equal, or one of a list of alternatives. */
static bool meets(const struct lab_value *value, const struct lab_value *wanted) {
    if (same(value, wanted))
        return true;
    for (int i = 0; wanted->type == LAB_VALUE_LIST && i < wanted->count; i++)
        if (same(value, wanted->items[i]))
            return true;
    return false;
}

/* The part of `path` behind an axis' key: "" for the key itself, "dim" of vit_configs.dim, or
 * NULL. */
static const char *behind(const char *key, const char *path) {
    size_t length = strlen(key);
    if (strncmp(key, path, length) != 0)
        return NULL;
    return !path[length] ? "" : path[length] == '.' ? path + length + 1 : NULL;
}

/* The last axis that sets the path; -1 = none does. */
static int find_axis(const struct plan_product *product, const char *path, int *ret_key,
                     const char **ret_rest) {
    for (int i = product->count - 1; i >= 0; i--)
        for (int k = 0; k < product->axes[i].key_count; k++) {
            const char *rest = behind(product->axes[i].paths[k], path);
            if (!rest)
                continue;
            *ret_key = k;
            *ret_rest = rest;
            return i;
        }
    return -1;
}

/* No point meets a condition on what is the same for all of them. */
static void allow_none(const struct plan_product *product, bool **allowed) {
    memset(allowed[0], 0, (size_t)product->axes[0].length);
}

static int apply_condition(const struct reader *r, struct plan_series *series, const char *path,
                           const struct lab_value *wanted) {
    const struct plan_product *own = &r->job->product;
    int key = 0, found = 0;
    const char *rest = NULL;
    int at = find_axis(&series->product, path, &key, &rest);
    if (at < 0) {
        const struct lab_value *constant = lookup(r->job->experiment, path);
        if (!constant)
            return lab_value_err(wanted, r->err, "where: there is no experiment.%.80s", path);
        if (!meets(constant, wanted)) {
            allow_none(&series->product, series->allowed);
            allow_none(own, series->taken);
        }
        return 0;
    }
    const struct plan_axis *axis = &series->product.axes[at];
    int own_at = own->count - 1; /* the same axis among the job's; -1 = the series brings it */
    while (own_at >= 0 && own->axes[own_at].values != axis->values)
        own_at--;
    for (int place = 0; place < axis->length; place++) {
        const struct lab_value *value = axis->values[key][place];
        if (*rest)
            value = lookup(value, rest);
        found += value != NULL;
        if (value && meets(value, wanted))
            continue;
        series->allowed[at][place] = false;
        if (own_at >= 0)
            series->taken[own_at][place] = false;
    }
    return found ? 0
                 : lab_value_err(wanted, r->err,
                                 "where: no element has the key of experiment.%.80s", path);
}

static bool **allow_all(const struct plan_product *product, struct lab_arena *arena) {
    bool **allowed = lab_arena_alloc(arena, (size_t)product->count, sizeof *allowed);
    for (int i = 0; i < product->count; i++) {
        size_t length = (size_t)product->axes[i].length;
        allowed[i] = lab_arena_alloc(arena, length, sizeof(bool));
        memset(allowed[i], 1, length);
    }
    return allowed;
}

static int read_where(const struct reader *r, struct plan_series *series,
                      const struct lab_value *where) {
    series->allowed = allow_all(&series->product, r->arena);
    series->taken = allow_all(&r->job->product, r->arena);
    if (!where || where->type == LAB_VALUE_NULL) {
        if (series->own_axes)
            r->job->has_own_points = false;
        return 0;
    }
    if (where->type != LAB_VALUE_MAP)
        return lab_value_err(where, r->err,
                             "where must be a map of keys, such as {vit_configs.dim: 512}");
    for (int i = 0; i < where->count; i++)
        if (apply_condition(r, series, where->keys[i], where->items[i]) < 0)
            return -1;
    return 0;
}

static int read_one_series(const struct reader *r, const struct lab_value *map, int index) {
    static const char *const keys[] = {"name", "where", "axes", NULL};
    struct plan_series *series = &r->job->series[index];
    if (map->type != LAB_VALUE_MAP)
        return lab_value_err(map, r->err, "a series is a map with a name, and where or axes");
    for (int i = 0; i < map->count; i++) {
        const char *nearest = lab_str_nearest(map->keys[i], keys);
        if (!nearest || strcmp(nearest, map->keys[i]) != 0)
            return lab_value_err(map->items[i], r->err,
                                 "unknown key '%.80s' of a series: there are name, where and axes",
                                 map->keys[i]);
    }
    const struct lab_value *name = lab_value_get(map, "name"), *axes = lab_value_get(map, "axes");
    if (!name || name->type != LAB_VALUE_STRING || !*name->string)
        return lab_value_err(name ? name : map, r->err, "a series needs a name");
    if (LAB_FIND(r->job->series, index, name, name->string) >= 0)
        return lab_value_err(name, r->err, "two series are named %.80s", name->string);
    series->name = name->string;
    series->product = r->job->product;
    if (axes && axes->type != LAB_VALUE_NULL) {
        int own = series->product.count;
        series->own_axes = true;
        series->product.axes = lab_arena_alloc(r->arena, (size_t)(own + most_axes(r, axes)),
                                               sizeof *series->product.axes);
        memcpy(series->product.axes, r->job->product.axes, (size_t)own * sizeof(struct plan_axis));
        if (add_entries(r, &series->product, own, axes) < 0)
            return -1;
    }
    return read_where(r, series, lab_value_get(map, "where"));
}

int plan_axes_read(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    struct reader r = {job, arena, err};
    if (plan_spread_check(job, err) < 0 || read_product(&r) < 0)
        return -1;
    const struct lab_value *list = lab_value_get(job->experiment, "series");
    job->has_own_points = true;
    if (!list || list->type == LAB_VALUE_NULL)
        return 0;
    if (list->type != LAB_VALUE_LIST)
        return lab_value_err(list, err, "experiment.series must be a list of maps");
    if (list->count > 0 && job->phase_count > 0)
        return lab_value_err(list, err, "a study has experiment.phases or series, not both");
    job->series = lab_arena_alloc(arena, (size_t)list->count, sizeof *job->series);
    bool views = false;
    for (int i = 0; i < list->count; i++) {
        if (read_one_series(&r, list->items[i], i) < 0)
            return lab_err_context(err, "experiment.series");
        job->series_count++;
        views |= !job->series[i].own_axes;
    }
    job->has_own_points |= views;
    return 0;
}
