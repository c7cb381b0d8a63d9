/* vendor/visible.c: reads CUDA_VISIBLE_DEVICES. */
#include "vendor/visible.h"

#include <stdlib.h>
#include <string.h>

static bool is_number(const char *word, size_t length) {
    return length && length < 8 && strspn(word, "0123456789") >= length;
}

/* The index of what the word names; -1 = nothing, or several by a UUID cut too short. */
static int find_named(const struct lab_visible_gpu *gpus, int count, const char *word,
                      size_t length) {
    int found = -1, number = is_number(word, length) ? (int)strtol(word, NULL, 10) : -1;
    for (int i = 0, whole_count = 0; i < count; i++) {
        bool whole = gpus[i].parent < 0;
        if (number >= 0 ? whole && whole_count == number
                        : length > 4 && strncmp(gpus[i].uuid, word, length) == 0) {
            if (found >= 0)
                return -1;
            found = i;
        }
        whole_count += whole;
    }
    return found;
}

/* Is it in the list, by itself or as part of a GPU that is? */
static bool is_named(const struct lab_visible_gpu *gpus, const int *order, int named, int index) {
    for (int i = 0; i < named; i++)
        if (order[i] == index || gpus[index].parent == order[i])
            return true;
    return false;
}

int lab_visible_order(const char *visible, const struct lab_visible_gpu *gpus, int count,
                      int *ret_order, bool *ret_twice) {
    int named = 0;
    *ret_twice = false;
    for (int i = 0; !visible && i < count; i++)
        if (gpus[i].parent < 0)
            ret_order[named++] = i;
    for (const char *at = visible; at && named < count; at++) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, ",");
        int index = find_named(gpus, count, at, length);
        if (index < 0)
            break;
        if (is_named(gpus, ret_order, named, index)) {
            *ret_twice = true;
            return 0;
        }
        ret_order[named++] = index;
        at += length;
        if (!*at)
            break;
    }
    return named;
}
