/*
 * list.h: arrays of structs, sorted and searched by their members; of numbers, by their values.
 *
 *     LAB_SORT(nodes, count, LAB_BY(nodes, distance), LAB_BY(nodes, number));
 *     LAB_SORT_REFS(refs, count, LAB_BY(*refs, number));     refs[i] points to a struct
 *     LAB_SORT_NUMBERS(times_ns, count);
 *     int found = LAB_FIND(nodes, count, name, "node2");
 *
 * A member is a number, a bool, an enum or a text that it points to. Texts are in the order of
 * versions (gpu2 before gpu10) unless it says otherwise, NaN comes last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_list_type {
    LAB_LIST_END,
    LAB_LIST_INT,
    LAB_LIST_UNSIGNED, /* an enum, too */
    LAB_LIST_INT64,
    LAB_LIST_UINT64,
    LAB_LIST_BOOL,
    LAB_LIST_DOUBLE,
    LAB_LIST_TEXT,
    LAB_LIST_BYTES, /* a text in the order of its bytes: gpu10 before gpu2 */
};

struct lab_list_key {
    size_t offset;
    enum lab_list_type type;
    bool down; /* the largest first */
};

#define LAB_LIST_TYPE(value)                                                                       \
    _Generic((value),                                                                              \
             int: LAB_LIST_INT,                                                                    \
             unsigned: LAB_LIST_UNSIGNED,                                                          \
             int64_t: LAB_LIST_INT64,                                                              \
             uint64_t: LAB_LIST_UINT64,                                                            \
             bool: LAB_LIST_BOOL,                                                                  \
             double: LAB_LIST_DOUBLE,                                                              \
             char *: LAB_LIST_TEXT,                                                                \
             const char *: LAB_LIST_TEXT)
#define LAB_LIST_KEY(items, member, down)                                                          \
    { offsetof(__typeof__(*(items)), member), LAB_LIST_TYPE((items)->member), (down) }
#define LAB_BY(items, member)      LAB_LIST_KEY(items, member, false)
#define LAB_BY_MOST(items, member) LAB_LIST_KEY(items, member, true)
#define LAB_BY_BYTES(items, member)                                                                \
    { offsetof(__typeof__(*(items)), member), LAB_LIST_BYTES, false }

/* By the first key, where that is equal by the second, … What is equal in all stays in its order.
 * No item is fine, with `items` NULL too. */
#define LAB_SORT(items, count, ...)                                                                \
    lab_list_sort((items), (size_t)(count), sizeof *(items), false,                                \
                  (const struct lab_list_key[]){__VA_ARGS__, {.type = LAB_LIST_END}})
#define LAB_SORT_REFS(items, count, ...)                                                           \
    lab_list_sort((items), (size_t)(count), sizeof *(items), true,                                 \
                  (const struct lab_list_key[]){__VA_ARGS__, {.type = LAB_LIST_END}})
#define LAB_SORT_NUMBERS(items, count)                                                             \
    lab_list_sort((items), (size_t)(count), sizeof *(items), false,                                \
                  (const struct lab_list_key[]){{0, LAB_LIST_TYPE(*(items)), false},               \
                                                {.type = LAB_LIST_END}})
void lab_list_sort(void *items, size_t count, size_t size, bool refs,
                   const struct lab_list_key *keys);

/* The first whose member is that text; -1 = none. NULL equals only NULL. */
#define LAB_FIND(items, count, member, text)                                                       \
    lab_list_find((items), (size_t)(count), sizeof *(items),                                       \
                  offsetof(__typeof__(*(items)), member), (text))
int lab_list_find(const void *items, size_t count, size_t size, size_t offset, const char *text);
/* The same of an array of texts. */
int lab_list_find_text(const char *const *texts, int count, const char *text);
