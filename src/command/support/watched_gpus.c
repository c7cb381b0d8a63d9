/* support/watched_gpus.c */
#include "command/support/watched_gpus.h"

#include "base/str.h"
#include "device/device.h"

int lab_support_watched_gpus(const struct lab_machine *machine, const char *selector,
                             struct lab_arena *arena, const int **ret_gpus, int *ret_count,
                             struct lab_err *err) {
    struct lab_device_list list = {0};
    *ret_gpus = NULL;
    *ret_count = 0;
    if (!selector || lab_str_equal(selector, "auto"))
        return 0;
    if (lab_device_select(machine, selector, arena, &list, err) < 0)
        return -1;
    int *gpus = lab_arena_alloc(arena, (size_t)list.count + 1, sizeof *gpus);
    for (int i = 0; i < list.count; i++) {
        bool skip = !lab_str_equal(list.items[i].backend->name, "cuda");
        for (int j = 0; j < *ret_count; j++)
            skip |= gpus[j] == list.items[i].unit;
        if (!skip)
            gpus[(*ret_count)++] = list.items[i].unit;
    }
    *ret_gpus = gpus;
    return 0;
}
