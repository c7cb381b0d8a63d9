/*
 * result_json.c: a result as a tree of values, for JSON and for people, and back. Both ways walk
 * the table: a key "group.name" is a key `name` of the object `group`.
 */
#include "model/result.h"

#include "base/json.h"

#include <string.h>

/* Objects that aren't there where nothing in them is; others have nulls then. */
static const struct group {
    const char *name;
    bool null; /* a null stands for it */
} groups[] = {{"verification", true}, {"trace", true}, {"capacity", false}, {"gpu", false}};

#define GPU "gpu."

static bool is_of_gpu(const struct lab_result_row *row) {
    return lab_str_starts(row->key, GPU);
}

/* A run has what its GPUs did at the top. */
static const char *key_in(const struct lab_result_row *row, enum lab_result_view view) {
    return view != LAB_RESULT_RANK_VIEW && is_of_gpu(row) ? row->key + strlen(GPU) : row->key;
}

/* --- writing --- */

struct lab_value *lab_result_json(const char *text, struct lab_arena *arena) {
    struct lab_value *value = NULL;
    if (!text || lab_json_parse(text, strlen(text), NULL, arena, &value, NULL) < 0)
        return lab_value_null(arena);
    return value;
}

static struct lab_value *scalar(const void *record, const struct lab_result_row *row,
                                struct lab_arena *arena) {
    const void *at = lab_result_get(record, row);
    if (!lab_result_has(record, row))
        return lab_value_null(arena);
    switch (row->type) {
    case LAB_RESULT_NUMBER:
        return lab_value_float(arena, *(const double *)at);
    case LAB_RESULT_COUNT:
        return lab_value_int(arena, *(const int64_t *)at);
    case LAB_RESULT_FLAG:
        return lab_value_bool(arena, *(const signed char *)at);
    case LAB_RESULT_TEXT:
        return lab_value_string(arena, *(const char *const *)at);
    case LAB_RESULT_JSON:
        return lab_result_json(*(const char *const *)at, arena);
    case LAB_RESULT_LIST:
        break;
    }
    return lab_value_null(arena);
}

static struct lab_value *list(const void *record, const struct lab_result_row *row,
                              struct lab_arena *arena) {
    const struct lab_result_item *item = row->item;
    struct lab_result_list items = lab_result_items(record, row);
    struct lab_value *made = item->keyed ? lab_value_map(arena) : lab_value_list(arena);
    for (int i = 0; i < items.count; i++) {
        const char *at = (const char *)items.items + (size_t)i * item->size;
        if (item->keyed) {
            const struct lab_value *key = scalar(at, &item->rows[0], arena);
            if (key->type == LAB_VALUE_STRING)
                lab_value_set(arena, made, key->string, scalar(at, &item->rows[1], arena));
            continue;
        }
        struct lab_value *value =
            item->row_count == 1 ? scalar(at, item->rows, arena) : lab_value_map(arena);
        for (int k = 0; item->row_count > 1 && k < item->row_count; k++)
            lab_value_set(arena, value, item->rows[k].key, scalar(at, &item->rows[k], arena));
        lab_value_append(arena, made, value);
    }
    return made;
}

/* Whether anything is known of a GPU. */
static bool has_gpu(const struct lab_result *result) {
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        if (is_of_gpu(&lab_result_rows[i]) && lab_result_has(result, &lab_result_rows[i]))
            return true;
    for (int i = 0; i < result->rank_count; i++)
        if (has_gpu(&result->ranks[i]))
            return true;
    return false;
}

static void set(const struct lab_result *result, const struct lab_result_row *row,
                enum lab_result_view view, struct lab_value *map, const char *key,
                struct lab_arena *arena) {
    bool there = lab_result_has(result, row);
    if (!there && row->shown & LAB_RESULT_OPTIONAL)
        return;
    struct lab_value *value;
    if (row->type != LAB_RESULT_LIST)
        value = scalar(result, row, arena);
    else if (!there && view != LAB_RESULT_RANK_VIEW && is_of_gpu(row) && !has_gpu(result))
        value = lab_value_null(arena);
    else
        value = list(result, row, arena);
    lab_value_set(arena, map, key, value);
}

static bool same_group(const struct lab_result_row *row, const char *name, size_t length) {
    return strncmp(row->key, name, length) == 0 && row->key[length] == '.';
}

/* The rows of a group stand together. */
static bool is_empty(const struct lab_result *result, const struct lab_result_row *first,
                     size_t length) {
    const struct lab_result_row *end = lab_result_rows + LAB_RESULT_ROW_COUNT;
    for (const struct lab_result_row *row = first; row < end && same_group(row, first->key, length);
         row++)
        if (lab_result_has(result, row))
            return false;
    return true;
}

/* The object of the group that the row belongs to; NULL where there is none. */
static struct lab_value *open_group(const struct lab_result *result,
                                    const struct lab_result_row *row, size_t length,
                                    struct lab_value *map, struct lab_arena *arena) {
    const char *name = lab_arena_strndup(arena, row->key, length);
    struct lab_value *group = lab_value_get(map, name);
    if (group)
        return group->type == LAB_VALUE_MAP ? group : NULL;
    if (result == &lab_result_none) {
        lab_value_set(arena, map, name, lab_value_null(arena));
        return NULL;
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (lab_str_equal(groups[i].name, name) && is_empty(result, row, length)) {
            if (groups[i].null)
                lab_value_set(arena, map, name, lab_value_null(arena));
            return NULL;
        }
    group = lab_value_map(arena);
    lab_value_set(arena, map, name, group);
    return group;
}

/* The object that the last row stood in, so that its neighbours needn't look for it. */
struct place {
    const struct lab_result_row *row;
    struct lab_value *group;
};

static void set_row(const struct lab_result *result, const struct lab_result_row *row,
                    enum lab_result_view view, struct lab_value *map, struct place *last,
                    struct lab_arena *arena) {
    const char *key = key_in(row, view), *point = strchr(key, '.');
    if (!point) {
        set(result, row, view, map, key, arena);
        return;
    }
    size_t length = (size_t)(point - key);
    if (!last->row || !same_group(last->row, key, length))
        *last = (struct place){row, open_group(result, row, length, map, arena)};
    if (last->group)
        set(result, row, view, last->group, point + 1, arena);
}

struct lab_value *lab_result_value(const struct lab_result *result, enum lab_result_view view,
                                   struct lab_value *map, struct lab_arena *arena) {
    struct lab_value *made = map ? map : lab_value_map(arena);
    struct place last = {0};
    unsigned of = view == LAB_RESULT_RANK_VIEW ? LAB_RESULT_OF_RANK : LAB_RESULT_OF_RUN;
    if (view == LAB_RESULT_FILE_VIEW) {
        for (const struct lab_result_row *const *row = lab_result_order(); *row; row++)
            set_row(result, *row, view, made, &last, arena);
        return made;
    }
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        if (lab_result_rows[i].of & of)
            set_row(result, &lab_result_rows[i], view, made, &last, arena);
    return made;
}

/* --- reading --- */

static void take(const struct lab_value *value, const struct lab_result_row *row, void *record,
                 struct lab_arena *arena) {
    void *at = lab_result_member(record, row);
    if (!value || value->type == LAB_VALUE_NULL)
        return;
    if (row->type == LAB_RESULT_NUMBER && value->type == LAB_VALUE_INT)
        *(double *)at = (double)value->integer;
    else if (row->type == LAB_RESULT_NUMBER && value->type == LAB_VALUE_FLOAT)
        *(double *)at = value->number;
    else if (row->type == LAB_RESULT_COUNT && value->type == LAB_VALUE_INT)
        *(int64_t *)at = value->integer;
    else if (row->type == LAB_RESULT_FLAG && value->type == LAB_VALUE_BOOL)
        *(signed char *)at = value->boolean;
    else if (row->type == LAB_RESULT_TEXT && value->type == LAB_VALUE_STRING)
        *(const char **)at = lab_arena_strdup(arena, value->string);
    else if (row->type == LAB_RESULT_JSON) {
        LAB_AUTO(str, text);
        lab_json_write(value, 0, &text);
        *(const char **)at = lab_arena_strdup(arena, text.text);
    }
}

static void take_list(const struct lab_value *value, const struct lab_result_row *row,
                      struct lab_result *result, struct lab_arena *arena) {
    const struct lab_result_item *item = row->item;
    if (!value || value->type != (item->keyed ? LAB_VALUE_MAP : LAB_VALUE_LIST))
        return;
    for (int i = 0; i < value->count && i < LAB_RESULT_ITEMS_MAX; i++) {
        const struct lab_value *from = value->items[i];
        void *record = lab_result_add(result, row, arena);
        if (item->keyed) {
            *(const char **)lab_result_member(record, &item->rows[0]) =
                lab_arena_strdup(arena, value->keys[i]);
            take(from, &item->rows[1], record, arena);
        }
        for (int k = 0; !item->keyed && k < item->row_count; k++)
            take(item->row_count == 1 ? from : lab_value_get(from, item->rows[k].key),
                 &item->rows[k], record, arena);
    }
}

static const struct lab_value *find(const struct lab_value *map, const struct lab_result_row *row) {
    const char *point = strchr(row->key, '.');
    char group[64];
    if (!point)
        return lab_value_get(map, row->key);
    size_t length = (size_t)(point - row->key);
    memcpy(group, row->key, length);
    group[length] = '\0';
    const struct lab_value *inner = lab_value_get(lab_value_get(map, group), point + 1);
    return !inner && is_of_gpu(row) && row->of & LAB_RESULT_OF_RUN ? lab_value_get(map, point + 1)
                                                                   : inner;
}

static void read(const struct lab_value *map, struct lab_result *result, struct lab_arena *arena) {
    *result = lab_result_none;
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++) {
        const struct lab_result_row *row = &lab_result_rows[i];
        const struct lab_value *value = find(map, row);
        if (row->type == LAB_RESULT_LIST)
            take_list(value, row, result, arena);
        else
            take(value, row, result, arena);
    }
}

struct lab_result *lab_result_read(const struct lab_value *map, struct lab_arena *arena) {
    struct lab_result *result = lab_arena_alloc(arena, 1, sizeof *result);
    read(map, result, arena);
    const struct lab_value *list_of_ranks = lab_value_get(map, "ranks");
    if (!list_of_ranks || list_of_ranks->type != LAB_VALUE_LIST)
        return result;
    result->rank_count = list_of_ranks->count;
    struct lab_result *ranks = lab_arena_alloc(arena, (size_t)result->rank_count, sizeof *ranks);
    for (int i = 0; i < result->rank_count; i++)
        read(list_of_ranks->items[i], &ranks[i], arena);
    result->ranks = ranks;
    return result;
}
