/* tuning_share.c: the tuning cache as a file to share between machines, and back. */
#include "store/tuning/tuning_internal.h"

#include "base/str.h"

#define FORMAT "gpulab tuning"

static struct lab_value *entry_value(const struct lab_tuning_entry *entry,
                                     struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "key", entry->key);
    lab_value_set_string(arena, map, "kernel", entry->kernel);
    lab_value_set_string(arena, map, "shape", entry->shape);
    lab_value_set_string(arena, map, "device", entry->device);
    lab_value_set_string(arena, map, "config", entry->config);
    lab_value_set_float(arena, map, "time_s", entry->time_s);
    lab_value_set_float(arena, map, "low_s", entry->low_s);
    lab_value_set_float(arena, map, "high_s", entry->high_s);
    lab_value_set_bool(arena, map, "certain", entry->certain);
    lab_value_set_int(arena, map, "tuned_wall_ns", entry->tuned_wall_ns);
    return map;
}

int lab_tuning_cache_export(struct lab_tuning_cache *cache, struct lab_arena *arena,
                            struct lab_value **ret_value, int *ret_count, struct lab_err *err) {
    struct lab_tuning_entry *entries;
    if (lab_tuning_cache_list(cache, arena, &entries, ret_count, err))
        return -1;
    struct lab_value *map = lab_value_map(arena), *list = lab_value_list(arena);
    for (int i = 0; i < *ret_count; i++)
        lab_value_append(arena, list, entry_value(&entries[i], arena));
    lab_value_set_string(arena, map, "format", FORMAT);
    lab_value_set_int(arena, map, "version", LAB_TUNING_CACHE_VERSION);
    lab_value_set(arena, map, "entries", list);
    *ret_value = map;
    return 0;
}

/* --- import --- */

static int refuse(const struct lab_value *value, const char *what, struct lab_err *err) {
    return lab_value_err(value, err, "%s; 'gpulab cache export tuning FILE' writes such files",
                         what);
}

static int read_entry(const struct lab_value *map, struct lab_tuning_entry *ret_entry,
                      struct lab_err *err) {
    *ret_entry = (struct lab_tuning_entry){
        .key = lab_value_get_text(map, "key", NULL),
        .kernel = lab_value_get_text(map, "kernel", NULL),
        .shape = lab_value_get_text(map, "shape", NULL),
        .device = lab_value_get_text(map, "device", NULL),
        .config = lab_value_get_text(map, "config", NULL),
        .time_s = lab_value_get_number(map, "time_s"),
        .low_s = lab_value_get_number(map, "low_s"),
        .high_s = lab_value_get_number(map, "high_s"),
        .certain = lab_value_get_bool(map, "certain"),
        .tuned_wall_ns = lab_value_get_int(map, "tuned_wall_ns", 0),
        .result = "",
    };
    if (!ret_entry->key || !*ret_entry->key || !ret_entry->config || !*ret_entry->config)
        return refuse(map, "an entry without key or config", err);
    return 0;
}

/* `ret_later`: how many of the rows came in. */
static int import_all(const struct lab_tuning_cache *cache, const struct lab_value *list,
                      int *ret_taken, struct lab_err *err) {
    *ret_taken = 0;
    for (int i = 0; i < list->count; i++) {
        struct lab_tuning_entry entry;
        int before = sqlite3_total_changes(cache->db);
        if (read_entry(list->items[i], &entry, err) || tuning_write_entry(cache, &entry, true, err))
            return -1;
        *ret_taken += sqlite3_total_changes(cache->db) > before;
    }
    return 0;
}

int lab_tuning_cache_import(struct lab_tuning_cache *cache, const struct lab_value *value,
                            int *ret_taken, int *ret_count, struct lab_err *err) {
    const struct lab_value *list = lab_value_get(value, "entries");
    const char *format = lab_value_get_text(value, "format", NULL);
    if (!lab_str_equal(format, FORMAT) || !list || list->type != LAB_VALUE_LIST)
        return refuse(value, "this is not an export of a tuning cache", err);
    if (lab_value_get_number(value, "version") != LAB_TUNING_CACHE_VERSION)
        return refuse(value, "this export has another version", err);
    if (tuning_exec(cache, "BEGIN IMMEDIATE", err))
        return -1;
    int result = tuning_end(cache, import_all(cache, list, ret_taken, err), err);
    if (result == 0)
        *ret_count = list->count;
    return result;
}
