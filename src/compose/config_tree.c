/* config_tree.c: value trees that share what is the same, and how errors name places in them. */
#include "compose/config_internal.h"

#include "base/list.h"

#include <assert.h>
#include <string.h>

bool lab_config_interpolates(const struct lab_value *value) {
    if (value->type == LAB_VALUE_STRING)
        return strstr(value->string, "${") != NULL;
    for (int i = 0; i < value->count; i++)
        if (lab_config_interpolates(value->items[i]))
            return true;
    return false;
}

/* The container without its children, with room for `room` of them. */
static struct lab_value *copy_shell(struct lab_arena *arena, const struct lab_value *from,
                                    int room) {
    struct lab_value *value = lab_arena_alloc(arena, 1, sizeof *value);
    *value = *from;
    value->slots = NULL; /* an index belongs to one map; value.c makes a new one when it pays */
    value->slot_count = 0;
    value->count = 0;
    value->capacity = room;
    value->items = room ? lab_arena_alloc(arena, (size_t)room, sizeof *value->items) : NULL;
    value->keys = room && from->type == LAB_VALUE_MAP
                      ? lab_arena_alloc(arena, (size_t)room, sizeof *value->keys)
                      : NULL;
    return value;
}

/* Behind the last child; keys are shared, not copied. */
static void push(struct lab_value *value, const char *key, struct lab_value *child) {
    assert(value->count < value->capacity && value->items);
    assert(value->type != LAB_VALUE_MAP || value->keys);
    if (value->type == LAB_VALUE_MAP)
        value->keys[value->count] = key;
    value->items[value->count++] = child;
}

static const char *key_at(const struct lab_value *value, int at) {
    return value->type == LAB_VALUE_MAP ? value->keys[at] : NULL;
}

static struct lab_value *copy_deep(struct lab_arena *arena, const struct lab_value *from) {
    struct lab_value *value = copy_shell(arena, from, from->count);
    for (int i = 0; i < from->count; i++)
        push(value, key_at(from, i), copy_deep(arena, from->items[i]));
    return value;
}

struct lab_value *lab_config_adopt(struct lab_arena *arena, struct lab_value *value) {
    return lab_config_interpolates(value) ? copy_deep(arena, value) : value;
}

struct lab_value *lab_config_with(struct lab_arena *arena, const struct lab_value *container,
                                  int at, struct lab_value *child) {
    struct lab_value *value = lab_arena_alloc(arena, 1, sizeof *value);
    *value = *container; /* keys and their index stay true; a full array is never written to */
    value->capacity = container->count;
    value->items = lab_arena_alloc(arena, (size_t)container->count, sizeof *value->items);
    memcpy(value->items, container->items, (size_t)container->count * sizeof *value->items);
    value->items[at] = child;
    return value;
}

struct lab_value *lab_config_with_key(struct lab_arena *arena, const struct lab_value *map,
                                      const char *key, struct lab_value *child) {
    struct lab_value *value = copy_shell(arena, map, map->count + 1);
    for (int i = 0; i < map->count; i++)
        push(value, map->keys[i], map->items[i]);
    push(value, lab_arena_strdup(arena, key), child);
    return value;
}

struct lab_value *lab_config_without(struct lab_arena *arena, const struct lab_value *container,
                                     int at) {
    struct lab_value *value = copy_shell(arena, container, container->count - 1);
    for (int i = 0; i < container->count; i++)
        if (i != at)
            push(value, key_at(container, i), container->items[i]);
    return value;
}

struct lab_value *lab_config_merge(struct lab_arena *arena, struct lab_value *under,
                                   struct lab_value *over) {
    if (!under || under->type != LAB_VALUE_MAP || over->type != LAB_VALUE_MAP)
        return lab_config_adopt(arena, over);
    struct lab_value *value = copy_shell(arena, under, under->count + over->count);
    for (int i = 0; i < under->count; i++) {
        struct lab_value *child = lab_value_get(over, under->keys[i]);
        push(value, under->keys[i],
             child ? lab_config_merge(arena, under->items[i], child) : under->items[i]);
    }
    for (int i = 0; i < over->count; i++)
        if (!lab_value_get(under, over->keys[i]))
            push(value, over->keys[i], lab_config_adopt(arena, over->items[i]));
    return value;
}

struct lab_value *lab_config_wrap(struct lab_arena *arena, const char *package,
                                  struct lab_value *value) {
    size_t end = strlen(package);
    while (end > 0) {
        size_t start = end;
        while (start > 0 && package[start - 1] != '.')
            start--;
        struct lab_value *map = lab_value_map(arena);
        map->origin = value->origin;
        map->line = value->line;
        lab_value_set(arena, map, lab_arena_strndup(arena, package + start, end - start), value);
        value = map;
        end = start > 0 ? start - 1 : 0;
    }
    return value;
}

int lab_config_find(const struct lab_value *map, const char *key) {
    return lab_list_find_text(map->keys, map->count, key);
}

int lab_config_index(const char *part) {
    size_t digits = strspn(part, "0123456789");
    if (digits == 0 || part[digits])
        return -1;
    long index = digits < 10 ? strtol(part, NULL, 10) : INT32_MAX;
    return (int)index;
}

void lab_config_suggest(const struct lab_value *map, const char *word, struct lab_str *out) {
    if (map->count == 0)
        return;
    LAB_AUTO_FREE const char **keys = lab_mem_alloc((size_t)map->count + 1, sizeof *keys);
    memcpy(keys, map->keys, (size_t)map->count * sizeof *keys);
    const char *nearest = lab_str_nearest(word, keys);
    if (nearest)
        lab_str_printf(out, "; did you mean '%s'?", nearest);
}
