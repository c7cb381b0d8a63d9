/* list.c: members are read by their offsets. glibc's qsort_r merges: it is stable. */
#include "base/list.h"

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
    default:
        return isnan(*(const double *)a) || isnan(*(const double *)b)
                   ? (down ? -1 : 1) * (!!isnan(*(const double *)a) - !!isnan(*(const double *)b))
                   : ORDER(double, a, b);
    }
}

static int compare(const void *a, const void *b, void *context) {
    int result = 0;
    for (const struct lab_list_key *key = context; key->type != LAB_LIST_END && !result; key++) {
        result = order((const char *)a + key->offset, (const char *)b + key->offset, key->type,
                       key->down);
        result = key->down ? -result : result;
    }
    return result;
}

void lab_list_sort(void *items, size_t count, size_t size, const struct lab_list_key *keys) {
    if (count > 1)
        qsort_r(items, count, size, compare, (void *)keys);
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
