/* tuned.c: the key of a tuning, and the tuned configuration for a run. */
#include "tune/tuned.h"

#include "base/auto.h"
#include "base/log.h"
#include "base/str.h"

#include <string.h>

/* Of a launch that can be tuned, on a device with that identity. */
static void write_key(const struct lab_device_identity *identity, struct lab_arena *arena,
                      struct lab_tuned_key *key) {
    LAB_AUTO(str, shape);
    lab_tunable_shape_name(&key->launch, &shape);
    key->shape = lab_arena_strdup(arena, shape.text);
    key->kernel = lab_arena_printf(arena, "%s %s", key->tunable->kernel, key->tunable->version);
    key->device = lab_arena_printf(arena, "%s, %d unit%s", identity->model, identity->compute_units,
                                   identity->compute_units == 1 ? "" : "s");
    key->text = lab_arena_printf(
        arena, "kernel=%s|shape=%s|device=%s|units=%d|driver=%s|compiler=%s|power=%.0f",
        key->kernel, key->shape, identity->model, identity->compute_units, identity->driver,
        identity->compiler, identity->power_limit_w);
}

int lab_tuned_key(const struct lab_workload *workload, const void *config,
                  const struct lab_tunable_place *place, struct lab_arena *arena,
                  struct lab_tuned_key *ret_key, struct lab_err *err) {
    struct lab_tuned_key key = {0};
    struct lab_device_identity identity;
    *ret_key = key;
    if (!workload->launch)
        return 0;
    workload->launch(config, &key.launch);
    if (lab_launch_complete(&key.launch, err))
        return -1;
    key.tunable = lab_tunable_find(place, &key.launch);
    if (!key.tunable)
        return 0;
    if (lab_device_identity(place, arena, &identity, err))
        return -1;
    write_key(&identity, arena, &key);
    *ret_key = key;
    return 0;
}

/* The workload's `config` key in its struct. */
static const char *wish_of(const struct lab_workload *workload, const void *config) {
    const struct lab_option *row = lab_options_find(workload->options, LAB_WORKLOAD_CONFIG);
    return row ? *(const char *const *)(const void *)((const char *)config + row->offset) : NULL;
}

/* 1 = there is one, and it is legal for this very shape. */
static int look_up(const struct lab_tunable_place *place, const struct lab_tuned_key *key,
                   struct lab_tuning_cache *cache, struct lab_arena *arena,
                   struct lab_tuning_entry *ret_entry, struct lab_err *err) {
    struct lab_tuning tuning;
    int found = lab_tuning_cache_find(cache, key->text, arena, ret_entry, err);
    if (found <= 0)
        return found;
    if (lab_tuning_parse(key->tunable, place, &key->launch, ret_entry->config, &tuning, err) ||
        lab_tuning_check(key->tunable, place, &key->launch, &tuning, err))
        return lab_err_context(err, "the tuned configuration can't be used here");
    return 1;
}

/* --- a workload that is one launch --- */

static int find_launch(const struct lab_workload *workload, const void *config,
                       const struct lab_tunable_place *place, struct lab_tuning_cache *cache,
                       struct lab_arena *arena, struct lab_tuned *tuned, struct lab_err *err) {
    struct lab_tuned_key key;
    if (lab_tuned_key(workload, config, place, arena, &key, err))
        return -1;
    if (!key.text)
        return 0;
    tuned->wanted = 1;
    tuned->advice = "gpulab tune";
    int found = look_up(place, &key, cache, arena, &tuned->entry, err);
    if (found == 1) {
        tuned->found = 1;
        tuned->config = tuned->entry.config;
    }
    return found < 0 ? -1 : 0;
}

/* --- one that does several --- */

struct search {
    const struct lab_tunable_place *place;
    struct lab_tuning_cache *cache;
    struct lab_arena *arena;
    struct lab_tuned *tuned;
    bool identified;
    struct lab_device_identity identity;
    struct lab_str seen; /* shapes, each with a line's end */
    struct lab_str text; /* of the key `config` */
    double flops;        /* of the costliest that wasn't tuned, which the advice is about */
    struct lab_err err;  /* the first */
};

/* The command that would tune it, where some workload stands for it alone. */
static const char *advise(const struct lab_launch *launch, struct lab_arena *arena) {
    LAB_AUTO(str, keys);
    for (int i = 0; lab_workloads[i]; i++)
        if (lab_workloads[i]->launch_keys && lab_workloads[i]->launch_keys(launch, &keys))
            return lab_arena_printf(arena, "gpulab tune %s %s", lab_workloads[i]->name, keys.text);
    return "gpulab tune";
}

static void find_one(const struct lab_launch *launch, void *state) {
    struct search *search = state;
    struct lab_tuned_key key = {.launch = *launch};
    struct lab_tuning_entry entry;
    if (search->err.code || lab_launch_complete(&key.launch, &search->err))
        return;
    key.tunable = lab_tunable_find(search->place, &key.launch);
    if (!key.tunable)
        return;
    if (!search->identified &&
        lab_device_identity(search->place, search->arena, &search->identity, &search->err))
        return;
    search->identified = true;
    write_key(&search->identity, search->arena, &key);
    const char *line = lab_arena_printf(search->arena, "%s\n", key.shape);
    if (strstr(search->seen.text, line))
        return;
    lab_str_add(&search->seen, line);
    search->tuned->wanted++;
    struct lab_err err = LAB_ERR_INIT;
    int found = look_up(search->place, &key, search->cache, search->arena, &entry, &err);
    if (found == 1) {
        search->tuned->found++;
        lab_str_printf(&search->text, "%s%s:%s", search->text.length ? ";" : "", key.shape,
                       entry.config);
        return;
    }
    if (found < 0)
        search->tuned->note = lab_arena_printf(search->arena, "%s: %s", key.shape, err.text);
    double flops = lab_op_cost(launch).flops;
    if (flops > search->flops) {
        search->flops = flops;
        search->tuned->advice = advise(launch, search->arena);
    }
}

static int find_launches(const struct lab_workload *workload, const void *config,
                         const struct lab_tunable_place *place, struct lab_tuning_cache *cache,
                         struct lab_arena *arena, struct lab_tuned *tuned, struct lab_err *err) {
    struct search search = {
        .place = place, .cache = cache, .arena = arena, .tuned = tuned, .err = LAB_ERR_INIT};
    lab_str_init(&search.seen);
    lab_str_init(&search.text);
    workload->launches(config, find_one, &search);
    if (tuned->found)
        tuned->config = lab_arena_strdup(arena, search.text.text);
    lab_str_release(&search.seen);
    lab_str_release(&search.text);
    if (search.err.code && err)
        *err = search.err;
    return search.err.code ? -1 : 0;
}

/* --- either --- */

static bool can_be_tuned(const struct lab_workload *workload) {
    return workload->launch || workload->launches;
}

void lab_tuned_find(const struct lab_workload *workload, const void *config,
                    const struct lab_tunable_place *place, const char *path,
                    struct lab_arena *arena, struct lab_tuned *ret_tuned) {
    struct lab_tuning_cache *cache = NULL;
    struct lab_err err = LAB_ERR_INIT;
    *ret_tuned = (struct lab_tuned){0};
    if (!can_be_tuned(workload) || !lab_str_equal(wish_of(workload, config), LAB_CONFIG_TUNED))
        return;
    ret_tuned->config = LAB_CONFIG_DEFAULT;
    path = path ? path : lab_tuning_cache_path(arena);
    path = path ? path : ""; /* no place for a cache: an empty one */
    if (lab_tuning_cache_open(path, false, arena, &cache, &ret_tuned->note, &err)) {
        ret_tuned->unread = true;
        ret_tuned->note = lab_arena_printf(arena, "%s; the default is used", err.text);
        /* what could be tuned is counted all the same */
        if (lab_tuning_cache_open("", false, arena, &cache, NULL, &err))
            return;
    }
    if ((workload->launch ? find_launch : find_launches)(workload, config, place, cache, arena,
                                                         ret_tuned, &err))
        ret_tuned->note = lab_arena_strdup(arena, err.text);
    lab_tuning_cache_close(cache);
}

struct lab_value *lab_tuned_freeze(struct lab_value *options, const struct lab_tuned *tuned,
                                   struct lab_arena *arena) {
    if (!tuned->config)
        return options;
    struct lab_value *copy = lab_value_copy(arena, options);
    lab_value_set_string(arena, copy, LAB_WORKLOAD_CONFIG, tuned->config);
    return copy;
}

/* NULL where there is nothing to choose from. */
static const char *describe(const struct lab_workload *workload, const struct lab_tuned *tuned,
                            struct lab_arena *arena) {
    if (!tuned->wanted)
        return workload->launch ? "the only one here" : NULL;
    if (tuned->unread)
        return "the default, since the cache of tuned ones can't be read";
    LAB_AUTO(str, text);
    if (!tuned->found)
        lab_str_add(&text, "the default");
    else if (workload->launch)
        lab_str_printf(&text, "%s, as tuned", tuned->config);
    else
        lab_str_printf(&text, "%d of %d products as tuned: %s", tuned->found, tuned->wanted,
                       tuned->config);
    if (tuned->found < tuned->wanted && tuned->advice)
        lab_str_printf(&text, "; '%s' may find a faster one", tuned->advice);
    return lab_arena_strdup(arena, text.text);
}

int lab_tuned_resolve(const struct lab_workload *workload, const void *config,
                      struct lab_value *value, const struct lab_tunable_place *place,
                      struct lab_arena *arena, struct lab_tuned_config *ret_config,
                      struct lab_err *err) {
    struct lab_tuned tuned;
    lab_tuned_find(workload, config, place, NULL, arena, &tuned);
    *ret_config = (struct lab_tuned_config){config, value, .note = tuned.note};
    if (!tuned.config) {
        const struct lab_value *wish = lab_value_get(value, LAB_WORKLOAD_CONFIG);
        if (can_be_tuned(workload) && wish && wish->type == LAB_VALUE_STRING)
            ret_config->text = wish->string;
        return 0;
    }
    if (lab_workload_set(workload, &ret_config->config, LAB_WORKLOAD_CONFIG,
                         lab_value_string(arena, tuned.config), arena, err) < 0)
        return -1;
    ret_config->value = lab_tuned_freeze(value, &tuned, arena);
    ret_config->text = describe(workload, &tuned, arena);
    return 0;
}

struct lab_value *lab_tuned_options(const struct lab_workload *workload, struct lab_value *options,
                                    const struct lab_machine *machine, const char *device,
                                    struct lab_arena *arena) {
    struct lab_device_list list;
    struct lab_tuned tuned;
    if (!can_be_tuned(workload) || lab_device_select(machine, device, arena, &list, NULL) < 0 ||
        list.count == 0)
        return options;
    const void *config;
    if (lab_workload_read(workload, options, arena, &config, NULL) < 0)
        return options; /* the worker will say what is wrong with it */
    const struct lab_tunable_place place = {machine, &list.items[0]};
    lab_tuned_find(workload, config, &place, NULL, arena, &tuned);
    if (tuned.note)
        lab_log(LAB_LOG_WARNING, "%s: %s", workload->name, tuned.note);
    return lab_tuned_freeze(options, &tuned, arena);
}
