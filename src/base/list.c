/* list.c: members are read by their offsets. Pointers to a copy are sorted: equal items keep its
 * order, whatever qsort_r does. */
#include "base/list.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORDER(type, a, b)                                                                          \
    ((*(const type *)(a) > *(const type *)(b)) - (*(const type *)(a) < *(const type *)(b)))

/* NaN is last whichever way the others go. */
static int order(const void *a, const void *b, enum lab_list_type type, bool down) {
    switch (type) {
    case LAB_LIST_INT:
        return ORDER(int, a, b);
    case LAB_LIST_UNSIGNED:
        return ORDER(unsigned, a, b);
    case LAB_LIST_INT64:
        return ORDER(int64_t, a, b);
    case LAB_LIST_UINT64:
        return ORDER(uint64_t, a, b);
    case LAB_LIST_BOOL:
        return ORDER(bool, a, b);
    case LAB_LIST_TEXT:
        return strverscmp(*(const char *const *)a, *(const char *const *)b);
    case LAB_LIST_BYTES:
        return strcmp(*(const char *const *)a, *(const char *const *)b);
    default:
        return isnan(*(const double *)a) || isnan(*(const double *)b)
                   ? (down ? -1 : 1) * (!!isnan(*(const double *)a) - !!isnan(*(const double *)b))
                   : ORDER(double, a, b);
    }
}

struct way {
    bool refs;
    const struct lab_list_key *keys;
};

static int compare(const void *a, const void *b, void *context) {
    const struct way *way = context;
    const char *first = *(const char *const *)a, *second = *(const char *const *)b;
    const char *x = way->refs ? *(const char *const *)first : first;
    const char *y = way->refs ? *(const char *const *)second : second;
    int result = 0;
    for (const struct lab_list_key *key = way->keys; key->type != LAB_LIST_END && !result; key++) {
        result = order(x + key->offset, y + key->offset, key->type, key->down);
        result = key->down ? -result : result;
    }
    return result ? result : (first > second) - (first < second);
}

void lab_list_sort(void *items, size_t count, size_t size, bool refs,
                   const struct lab_list_key *keys) {
    if (count < 2)
        return;
    LAB_AUTO_FREE char *copy = lab_mem_alloc(count, size);
    LAB_AUTO_FREE const char **sorted = lab_mem_alloc(count, sizeof *sorted);
    memcpy(copy, items, count * size);
    for (size_t i = 0; i < count; i++)
        sorted[i] = copy + i * size;
    struct way way = {refs, keys};
    qsort_r(sorted, count, sizeof *sorted, compare, &way);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)items + i * size, sorted[i], size);
}

int lab_list_find(const void *items, size_t count, size_t size, size_t offset, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (lab_str_equal(*(const char *const *)((const char *)items + i * size + offset), text))
            return (int)i;
    return -1;
}

int lab_list_find_text(const char *const *texts, int count, const char *text) {
    return lab_list_find(texts, (size_t)count, sizeof *texts, 0, text);
}
