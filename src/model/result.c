/* result.c: the table of result.h as data, and records of it: their members, lists and copies. */
#include "model/result.h"

#include "base/list.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* --- what lists hold --- */

#define FIELD(owner, member_name, type_name)                                                       \
    {.key = #member_name,                                                                          \
     .type = LAB_RESULT_##type_name,                                                               \
     .offset = offsetof(struct lab_result_##owner, member_name),                                   \
     .unit = ""},
#define TEXT_FIELD(member, type)     FIELD(text, member, type)
#define XID_FIELD(member, type)      FIELD(xid, member, type)
#define PROCESS_FIELD(member, type)  FIELD(process, member, type)
#define THROTTLE_FIELD(member, type) FIELD(throttle, member, type)
#define REGRET_FIELD(member, type)   FIELD(regret, member, type)

static const struct lab_result_row text_rows[] = {LAB_RESULT_TEXT_FIELDS(TEXT_FIELD)};
static const struct lab_result_row xid_rows[] = {LAB_RESULT_XID_FIELDS(XID_FIELD)};
static const struct lab_result_row process_rows[] = {LAB_RESULT_PROCESS_FIELDS(PROCESS_FIELD)};
static const struct lab_result_row throttle_rows[] = {LAB_RESULT_THROTTLE_FIELDS(THROTTLE_FIELD)};
static const struct lab_result_row regret_rows[] = {LAB_RESULT_REGRET_FIELDS(REGRET_FIELD)};

/* NOLINTBEGIN(bugprone-macro-parentheses): initializers can't have them */
#define ITEM(name, is_keyed)                                                                       \
    static const struct lab_result_item name##_item = {.size = sizeof(struct lab_result_##name),   \
                                                       .rows = name##_rows,                        \
                                                       .row_count = sizeof name##_rows /           \
                                                                    sizeof *name##_rows,           \
                                                       .keyed = is_keyed}
ITEM(text, false);
ITEM(xid, false);
ITEM(process, false);
ITEM(throttle, true);
ITEM(regret, false);

/* --- the table --- */

enum { /* as rows name them */
       PLAIN = 0,
       CSV = LAB_RESULT_CSV,
       OPTIONAL = LAB_RESULT_OPTIONAL,
       TOLD = LAB_RESULT_TOLD,
};

#define VALUE(member, key_text, type_name, unit_text, combine_name, of_name, shown_flags,          \
              place_number, title_text, help_text)                                                 \
    {.key = key_text,                                                                              \
     .type = LAB_RESULT_##type_name,                                                               \
     .offset = offsetof(struct lab_result, member),                                                \
     .unit = unit_text,                                                                            \
     .combine = LAB_COMBINE_##combine_name,                                                        \
     .of = LAB_RESULT_OF_##of_name,                                                                \
     .shown = shown_flags,                                                                         \
     .place = place_number,                                                                        \
     .title = title_text,                                                                          \
     .help = help_text},
#define LIST(member, key_text, item_name, of_name, shown_flags, place_number, title_text,          \
             help_text)                                                                            \
    {.key = key_text,                                                                              \
     .type = LAB_RESULT_LIST,                                                                      \
     .offset = offsetof(struct lab_result, member),                                                \
     .item = &item_name##_item,                                                                    \
     .unit = "",                                                                                   \
     .combine = LAB_COMBINE_OWN,                                                                   \
     .of = LAB_RESULT_OF_##of_name,                                                                \
     .shown = shown_flags,                                                                         \
     .place = place_number,                                                                        \
     .title = title_text,                                                                          \
     .help = help_text},

/* NOLINTEND(bugprone-macro-parentheses) */

const struct lab_result_row lab_result_rows[LAB_RESULT_ROW_COUNT] = {LAB_RESULT_ROWS(VALUE, LIST)};

#define NO_VALUE(member, key, type, ...) .member = LAB_RESULT_NO_##type,
#define NO_LIST(member, ...)
const struct lab_result lab_result_none = {LAB_RESULT_ROWS(NO_VALUE, NO_LIST)};

static const struct lab_result_row *order[LAB_RESULT_ROW_COUNT + 1];

static void make_order(void) {
    size_t count = 0;
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        if (lab_result_rows[i].place > 0)
            order[count++] = &lab_result_rows[i];
    LAB_SORT_REFS(order, count, LAB_BY(*order, place));
}

const struct lab_result_row *const *lab_result_order(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_order);
    return order;
}

const struct lab_result_row *lab_result_row(const char *key) {
    int row = LAB_FIND(lab_result_rows, LAB_RESULT_ROW_COUNT, key, key);
    return row < 0 ? NULL : &lab_result_rows[row];
}

/* --- members --- */

void *lab_result_member(void *record, const struct lab_result_row *row) {
    return (char *)record + row->offset;
}

const void *lab_result_get(const void *record, const struct lab_result_row *row) {
    return (const char *)record + row->offset;
}

double lab_result_number(const struct lab_result *result, size_t offset) {
    double value;
    memcpy(&value, (const char *)result + offset, sizeof value);
    return value;
}

struct lab_result_list lab_result_items(const void *record, const struct lab_result_row *row) {
    struct lab_result_list list;
    memcpy(&list, lab_result_get(record, row), sizeof list);
    return list;
}

bool lab_result_has(const void *record, const struct lab_result_row *row) {
    const void *at = lab_result_get(record, row);
    switch (row->type) {
    case LAB_RESULT_NUMBER:
        return !isnan(*(const double *)at);
    case LAB_RESULT_COUNT:
        return *(const int64_t *)at != LAB_RESULT_NO_COUNT;
    case LAB_RESULT_FLAG:
        return *(const signed char *)at != LAB_RESULT_NO_FLAG;
    case LAB_RESULT_TEXT:
    case LAB_RESULT_JSON:
        return *(const char *const *)at != NULL;
    case LAB_RESULT_LIST:
        return lab_result_items(record, row).count > 0;
    }
    return false;
}

/* --- lists --- */

static void clear_item(char *record, const struct lab_result_item *item) {
    for (int i = 0; i < item->row_count; i++) {
        void *at = lab_result_member(record, &item->rows[i]);
        if (item->rows[i].type == LAB_RESULT_NUMBER)
            *(double *)at = LAB_RESULT_NO_NUMBER;
        else if (item->rows[i].type == LAB_RESULT_COUNT)
            *(int64_t *)at = LAB_RESULT_NO_COUNT;
        else if (item->rows[i].type == LAB_RESULT_FLAG)
            *(signed char *)at = LAB_RESULT_NO_FLAG;
    }
}

/* Room grows by doubling, so that a full one has a power of two. */
void *lab_result_add(struct lab_result *result, const struct lab_result_row *row,
                     struct lab_arena *arena) {
    struct lab_result_list list = lab_result_items(result, row);
    size_t count = (size_t)list.count, size = row->item->size;
    if ((count & (count - 1)) == 0) {
        char *larger = lab_arena_alloc(arena, count ? 2 * count : 1, size);
        if (count)
            memcpy(larger, list.items, count * size);
        list.items = larger;
    }
    char *added = (char *)list.items + count * size;
    clear_item(added, row->item);
    list.count++;
    memcpy(lab_result_member(result, row), &list, sizeof list);
    return added;
}

void *lab_result_add_at(struct lab_result *result, size_t offset, struct lab_arena *arena) {
    const struct lab_result_row *row = lab_result_rows;
    while (row->offset != offset)
        row++;
    return lab_result_add(result, row, arena);
}

void lab_result_warn(struct lab_result *result, struct lab_arena *arena, const char *sentence) {
    LAB_RESULT_ADD(result, warnings, arena)->text = lab_arena_strdup(arena, sentence);
}

void lab_result_spoil(struct lab_result *result, struct lab_arena *arena, const char *sentence) {
    LAB_RESULT_ADD(result, invalid, arena)->text = lab_arena_strdup(arena, sentence);
}

const char *lab_result_of_rank(int rank, const char *sentence, struct lab_arena *arena) {
    return lab_arena_printf(arena, "rank %d: %s", rank, sentence);
}

/* --- copies --- */

static void copy_texts(char *record, const struct lab_result_row *rows, int count,
                       struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        void *at = lab_result_member(record, &rows[i]);
        bool text = rows[i].type == LAB_RESULT_TEXT || rows[i].type == LAB_RESULT_JSON;
        if (text && *(const char **)at)
            *(const char **)at = lab_arena_strdup(arena, *(const char **)at);
        if (rows[i].type != LAB_RESULT_LIST)
            continue;
        const struct lab_result_item *item = rows[i].item;
        struct lab_result_list list = lab_result_items(record, &rows[i]);
        size_t room = 1; /* as lab_result_add expects it */
        while (room < (size_t)list.count)
            room *= 2;
        char *items = lab_arena_alloc(arena, room, item->size);
        if (list.count)
            memcpy(items, list.items, (size_t)list.count * item->size);
        for (int k = 0; k < list.count; k++)
            copy_texts(items + (size_t)k * item->size, item->rows, item->row_count, arena);
        list.items = items;
        memcpy(at, &list, sizeof list);
    }
}

static void copy(const struct lab_result *from, struct lab_result *to, struct lab_arena *arena) {
    *to = *from;
    copy_texts((char *)to, lab_result_rows, LAB_RESULT_ROW_COUNT, arena);
    struct lab_result *ranks = lab_arena_alloc(arena, (size_t)from->rank_count, sizeof *ranks);
    for (int i = 0; i < from->rank_count; i++)
        copy(&from->ranks[i], &ranks[i], arena);
    to->ranks = ranks;
}

struct lab_result *lab_result_copy(const struct lab_result *result, struct lab_arena *arena) {
    struct lab_result *made = lab_arena_alloc(arena, 1, sizeof *made);
    copy(result, made, arena);
    return made;
}
