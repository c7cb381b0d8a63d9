/*
 * value.c: building and looking into value trees. Maps are arrays in the order of their keys; those
 * that grow beyond a handful get a hash index beside the array, so that a large file takes linear
 * time.
 */
#include "base/value.h"
#include "base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define INDEX_FROM 16 /* keys; below this, comparing them all is as fast */

static struct lab_value *make(struct lab_arena *arena, enum lab_value_type type) {
    struct lab_value *value = lab_arena_alloc(arena, 1, sizeof *value);
    value->type = type;
    return value;
}

struct lab_value *lab_value_null(struct lab_arena *arena) {
    return make(arena, LAB_VALUE_NULL);
}

struct lab_value *lab_value_bool(struct lab_arena *arena, bool boolean) {
    struct lab_value *value = make(arena, LAB_VALUE_BOOL);
    value->boolean = boolean;
    return value;
}

struct lab_value *lab_value_int(struct lab_arena *arena, int64_t integer) {
    struct lab_value *value = make(arena, LAB_VALUE_INT);
    value->integer = integer;
    return value;
}

struct lab_value *lab_value_float(struct lab_arena *arena, double number) {
    struct lab_value *value = make(arena, LAB_VALUE_FLOAT);
    value->number = number;
    return value;
}

struct lab_value *lab_value_string(struct lab_arena *arena, const char *text) {
    struct lab_value *value = make(arena, LAB_VALUE_STRING);
    value->string = lab_arena_strdup(arena, text);
    return value;
}

struct lab_value *lab_value_list(struct lab_arena *arena) {
    return make(arena, LAB_VALUE_LIST);
}

struct lab_value *lab_value_map(struct lab_arena *arena) {
    return make(arena, LAB_VALUE_MAP);
}

static void *grow(struct lab_arena *arena, const void *old, int count, int capacity, size_t size) {
    void *memory = lab_arena_alloc(arena, (size_t)capacity, size);
    if (count > 0)
        memcpy(memory, old, (size_t)count * size);
    return memory;
}

static void reserve(struct lab_arena *arena, struct lab_value *value) {
    if (value->count < value->capacity)
        return;
    int capacity = value->capacity ? 2 * value->capacity : 4;
    value->items = grow(arena, value->items, value->count, capacity, sizeof *value->items);
    if (value->type == LAB_VALUE_MAP)
        value->keys = grow(arena, value->keys, value->count, capacity, sizeof *value->keys);
    value->capacity = capacity;
}

void lab_value_append(struct lab_arena *arena, struct lab_value *list, struct lab_value *item) {
    assert(list->type == LAB_VALUE_LIST);
    reserve(arena, list);
    list->items[list->count++] = item;
}

struct lab_value *lab_value_strings(struct lab_arena *arena, const char *const *texts) {
    struct lab_value *list = lab_value_list(arena);
    for (; texts && *texts; texts++)
        lab_value_append(arena, list, lab_value_string(arena, *texts));
    return list;
}

static uint64_t hash(const char *key) {
    uint64_t h = lab_hash_text(LAB_HASH_START, key);
    return h ^ (h >> 32);
}

/* The slot that holds the key's position + 1, or the empty slot (0) where it belongs. */
static int *find_slot(const struct lab_value *map, const char *key) {
    size_t mask = (size_t)map->slot_count - 1;
    size_t at = (size_t)hash(key) & mask;
    while (map->slots[at] && strcmp(map->keys[map->slots[at] - 1], key) != 0)
        at = (at + 1) & mask;
    return &map->slots[at];
}

static int find(const struct lab_value *map, const char *key) {
    if (map->slots)
        return *find_slot(map, key) - 1;
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return i;
    return -1;
}

static void index_last(struct lab_arena *arena, struct lab_value *map) {
    if (map->count < INDEX_FROM)
        return;
    if (map->count < map->slot_count / 2) {
        *find_slot(map, map->keys[map->count - 1]) = map->count;
        return;
    }
    map->slot_count = map->slot_count ? 4 * map->slot_count : 8 * INDEX_FROM;
    map->slots = lab_arena_alloc(arena, (size_t)map->slot_count, sizeof *map->slots);
    for (int i = 0; i < map->count; i++)
        *find_slot(map, map->keys[i]) = i + 1;
}

void lab_value_set(struct lab_arena *arena, struct lab_value *map, const char *key,
                   struct lab_value *item) {
    assert(map->type == LAB_VALUE_MAP);
    int at = find(map, key);
    if (at >= 0) {
        map->items[at] = item;
        return;
    }
    reserve(arena, map);
    map->keys[map->count] = lab_arena_strdup(arena, key);
    map->items[map->count++] = item;
    index_last(arena, map);
}

struct lab_value *lab_value_get(const struct lab_value *map, const char *key) {
    if (!map || map->type != LAB_VALUE_MAP)
        return NULL;
    int at = find(map, key);
    return at < 0 ? NULL : map->items[at];
}

const char *lab_value_as_text(const struct lab_value *value, const char *fallback) {
    return value && value->type == LAB_VALUE_STRING ? value->string : fallback;
}

double lab_value_as_number(const struct lab_value *value) {
    if (value && value->type == LAB_VALUE_INT)
        return (double)value->integer;
    return value && value->type == LAB_VALUE_FLOAT ? value->number : (double)NAN;
}

const char *lab_value_get_text(const struct lab_value *map, const char *key, const char *fallback) {
    return lab_value_as_text(lab_value_get(map, key), fallback);
}

int64_t lab_value_get_int(const struct lab_value *map, const char *key, int64_t fallback) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_INT ? value->integer : fallback;
}

double lab_value_get_number(const struct lab_value *map, const char *key) {
    return lab_value_as_number(lab_value_get(map, key));
}

bool lab_value_get_bool(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_BOOL && value->boolean;
}

void lab_value_set_string(struct lab_arena *arena, struct lab_value *map, const char *key,
                          const char *text) {
    lab_value_set(arena, map, key, text ? lab_value_string(arena, text) : lab_value_null(arena));
}

void lab_value_set_int(struct lab_arena *arena, struct lab_value *map, const char *key,
                       int64_t value) {
    lab_value_set(arena, map, key, lab_value_int(arena, value));
}

void lab_value_set_float(struct lab_arena *arena, struct lab_value *map, const char *key,
                         double value) {
    lab_value_set(arena, map, key,
                  isnan(value) ? lab_value_null(arena) : lab_value_float(arena, value));
}

void lab_value_set_bool(struct lab_arena *arena, struct lab_value *map, const char *key,
                        bool value) {
    lab_value_set(arena, map, key, lab_value_bool(arena, value));
}

/* Values of one file share the text of its name: it is copied when it changes. */
struct origin {
    const char *from, *copy;
};

static struct lab_value *copy(struct lab_arena *arena, const struct lab_value *value,
                              struct origin *origin) {
    struct lab_value *made = make(arena, value->type);
    if (value->origin && value->origin != origin->from)
        *origin = (struct origin){value->origin, lab_arena_strdup(arena, value->origin)};
    made->quoted = value->quoted;
    made->origin = value->origin ? origin->copy : NULL;
    made->line = value->line;
    made->column = value->column;
    switch (value->type) {
    case LAB_VALUE_NULL:
        break;
    case LAB_VALUE_BOOL:
        made->boolean = value->boolean;
        break;
    case LAB_VALUE_INT:
        made->integer = value->integer;
        break;
    case LAB_VALUE_FLOAT:
        made->number = value->number;
        break;
    case LAB_VALUE_STRING:
        made->string = lab_arena_strdup(arena, value->string);
        break;
    case LAB_VALUE_LIST:
        for (int i = 0; i < value->count; i++)
            lab_value_append(arena, made, copy(arena, value->items[i], origin));
        break;
    case LAB_VALUE_MAP:
        for (int i = 0; i < value->count; i++)
            lab_value_set(arena, made, value->keys[i], copy(arena, value->items[i], origin));
        break;
    }
    return made;
}

struct lab_value *lab_value_copy(struct lab_arena *arena, const struct lab_value *value) {
    struct origin origin = {0};
    return copy(arena, value, &origin);
}

void lab_value_add_place(const struct lab_value *value, struct lab_str *out) {
    if (value->origin && value->line > 0)
        lab_str_printf(out, "%s:%d: ", value->origin, value->line);
    else if (value->origin)
        lab_str_printf(out, "%s: ", value->origin);
}

int lab_value_err(const struct lab_value *value, struct lab_err *err, const char *format, ...) {
    LAB_AUTO(str, place);
    struct lab_err text;
    if (value)
        lab_value_add_place(value, &place);
    LAB_WITH_ARGS(format, lab_err_vset(&text, LAB_ERR_USER, format, args));
    return lab_err_set(err, LAB_ERR_USER, "%s%s", place.text, text.text);
}

const char *lab_value_type_name(enum lab_value_type type) {
    static const char *const names[] = {
        [LAB_VALUE_NULL] = "null",          [LAB_VALUE_BOOL] = "true or false",
        [LAB_VALUE_INT] = "a whole number", [LAB_VALUE_FLOAT] = "a number",
        [LAB_VALUE_STRING] = "text",        [LAB_VALUE_LIST] = "a list",
        [LAB_VALUE_MAP] = "a map",
    };
    return names[type];
}

bool lab_value_equal(const struct lab_value *a, const struct lab_value *b) {
    if (a->type != b->type || a->count != b->count)
        return false;
    if (a->type == LAB_VALUE_BOOL)
        return a->boolean == b->boolean;
    if (a->type == LAB_VALUE_INT)
        return a->integer == b->integer;
    if (a->type == LAB_VALUE_FLOAT)
        return a->number == b->number || (isnan(a->number) && isnan(b->number));
    if (a->type == LAB_VALUE_STRING)
        return strcmp(a->string, b->string) == 0;
    for (int i = 0; i < a->count; i++)
        if ((a->type == LAB_VALUE_MAP && strcmp(a->keys[i], b->keys[i]) != 0) ||
            !lab_value_equal(a->items[i], b->items[i]))
            return false;
    return true;
}
