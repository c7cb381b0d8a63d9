/* describe_read.c: see describe.h. */
#include "device/sim/describe.h"

int sim_need(const struct sim_reader *reader, const struct lab_value *value, const char *what,
             enum lab_value_type type) {
    if (value->type == type)
        return 0;
    return lab_value_err(value, reader->err, "%s: must be %s, not %s", what,
                         lab_value_type_name(type), lab_value_type_name(value->type));
}

static int check_required(const struct sim_reader *reader, const struct lab_value *map,
                          const char *what, const struct lab_option *table) {
    for (const struct lab_option *row = table; row->name; row++)
        if (!row->fallback && row->type != LAB_OPTION_VALUE && !lab_value_get(map, row->name))
            return lab_value_err(map, reader->err, "%s: '%s' is missing", what, row->name);
    return 0;
}

static const struct sim_nested *find_nested(const struct sim_nested *list, const char *key) {
    for (; list && list->key; list++)
        if (lab_str_equal(list->key, key))
            return list;
    return NULL;
}

static bool is_elsewhere(const struct lab_option *table, const char *key) {
    for (; table->name; table++)
        if (lab_str_equal(table->name, key))
            return table->type == LAB_OPTION_VALUE;
    return false;
}

int sim_read_map(const struct sim_reader *reader, const struct lab_value *map, const char *what,
                 const struct lab_option *table, const struct sim_nested *nested, void *target) {
    if (sim_need(reader, map, what, LAB_VALUE_MAP) < 0)
        return -1;
    for (const struct lab_option *row = table; row->name; row++)
        if (row->fallback && lab_options_set(table, target, reader->arena, row->name, row->fallback,
                                             reader->err) < 0)
            return -1;
    for (int i = 0; i < map->count; i++) {
        const struct sim_nested *inner = find_nested(nested, map->keys[i]);
        if (inner) {
            if (sim_read_map(reader, map->items[i],
                             lab_arena_printf(reader->arena, "%s.%s", what, inner->key),
                             inner->table, NULL, (char *)target + inner->offset) < 0)
                return -1;
        } else if (!is_elsewhere(table, map->keys[i]) &&
                   lab_options_set_value(table, target, reader->arena, map->keys[i], map->items[i],
                                         reader->err) < 0) {
            return -1;
        }
    }
    for (const struct sim_nested *inner = nested; inner && inner->key; inner++)
        if (!lab_value_get(map, inner->key) &&
            sim_read_map(reader, lab_value_map(reader->arena), what, inner->table, NULL,
                         (char *)target + inner->offset) < 0)
            return lab_value_err(map, reader->err, "%s: '%s' is missing", what, inner->key);
    return check_required(reader, map, what, table);
}

const struct lab_value *sim_read_list(const struct sim_reader *reader, const struct lab_value *tree,
                                      const char *key, int most) {
    const struct lab_value *list = lab_value_get(tree, key);
    if (!list) {
        lab_value_err(tree, reader->err, "'%s' is missing", key);
        return NULL;
    }
    if (sim_need(reader, list, key, LAB_VALUE_LIST) < 0)
        return NULL;
    if (list->count < 1 || list->count > most) {
        lab_value_err(list, reader->err, "%s: must be 1 to %d, not %d", key, most, list->count);
        return NULL;
    }
    return list;
}
