/* tuned.c */
#include "study/tuned.h"

#include "base/log.h"
#include "base/str.h"

#include <string.h>

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
    struct lab_str shape;
    lab_str_init(&shape);
    lab_tunable_shape_class(&key.launch, &shape);
    lab_str_printf(&shape, " %s", lab_dtype_name(key.launch.out.dtype));
    key.shape = lab_arena_strdup(arena, shape.text);
    lab_str_release(&shape);
    key.kernel = lab_arena_printf(arena, "%s %s", key.tunable->kernel, key.tunable->version);
    key.device = lab_arena_printf(arena, "%s, %d units", identity.model, identity.compute_units);
    key.text = lab_arena_printf(
        arena, "kernel=%s|shape=%s|device=%s|units=%d|driver=%s|compiler=%s|power=%.0f", key.kernel,
        key.shape, identity.model, identity.compute_units, identity.driver, identity.compiler,
        identity.power_limit_w);
    *ret_key = key;
    return 0;
}

/* The workload's `config` key in its struct. */
static const char *wish_of(const struct lab_workload *workload, const void *config) {
    for (const struct lab_option *row = workload->options; row && row->name; row++)
        if (lab_str_equal(row->name, LAB_WORKLOAD_CONFIG))
            return *(const char *const *)(const void *)((const char *)config + row->offset);
    return NULL;
}

/* 1 = there is one, and it is legal for this very shape. */
static int look_up(const struct lab_tunable_place *place, const struct lab_tuned_key *key,
                   const char *path, struct lab_arena *arena, struct lab_tuned *tuned,
                   struct lab_err *err) {
    struct lab_tuning_cache *cache = NULL;
    struct lab_tuning tuning;
    if (lab_tuning_cache_open(path, false, arena, &cache, &tuned->note, err))
        return -1;
    int found = lab_tuning_cache_find(cache, key->text, arena, &tuned->entry, err);
    lab_tuning_cache_close(cache);
    if (found <= 0)
        return found;
    if (lab_tuning_parse(key->tunable, place, &key->launch, tuned->entry.config, &tuning, err) ||
        lab_tuning_check(key->tunable, place, &key->launch, &tuning, err))
        return lab_err_context(err, "the tuned configuration can't be used here");
    return 1;
}

void lab_tuned_find(const struct lab_workload *workload, const void *config,
                    const struct lab_tunable_place *place, const char *path,
                    struct lab_arena *arena, struct lab_tuned *ret_tuned) {
    struct lab_tuned_key key;
    struct lab_err err = LAB_ERR_INIT;
    *ret_tuned = (struct lab_tuned){0};
    if (!workload->launch || !lab_str_equal(wish_of(workload, config), LAB_CONFIG_TUNED))
        return;
    ret_tuned->config = LAB_CONFIG_DEFAULT;
    path = path ? path : lab_tuning_cache_path(arena);
    if (lab_tuned_key(workload, config, place, arena, &key, &err) == 0 && (!key.text || !path))
        return;
    int found = err.code ? -1 : look_up(place, &key, path, arena, ret_tuned, &err);
    if (found < 0)
        ret_tuned->note = lab_arena_strdup(arena, err.text);
    if (found <= 0)
        return;
    ret_tuned->found = true;
    ret_tuned->config = ret_tuned->entry.config;
}

struct lab_value *lab_tuned_freeze(struct lab_value *options, const struct lab_tuned *tuned,
                                   struct lab_arena *arena) {
    if (!tuned->config)
        return options;
    struct lab_value *copy = lab_value_copy(arena, options);
    lab_value_set_string(arena, copy, LAB_WORKLOAD_CONFIG, tuned->config);
    return copy;
}

struct lab_value *lab_tuned_options(const struct lab_workload *workload, struct lab_value *options,
                                    const struct lab_machine *machine, const char *device,
                                    struct lab_arena *arena) {
    struct lab_device_list list;
    struct lab_tuned tuned;
    if (!workload->launch || lab_device_select(machine, device, arena, &list, NULL) < 0 ||
        list.count == 0)
        return options;
    void *config = lab_workload_config(workload, arena);
    for (int i = 0; i < options->count; i++)
        if (lab_options_set_value(workload->options, config, arena, options->keys[i],
                                  options->items[i], NULL) < 0)
            return options; /* the worker will say what is wrong with it */
    const struct lab_tunable_place place = {machine, &list.items[0]};
    lab_tuned_find(workload, config, &place, NULL, arena, &tuned);
    if (tuned.note)
        lab_log(LAB_LOG_WARNING, "%s: %s", workload->name, tuned.note);
    return lab_tuned_freeze(options, &tuned, arena);
}
