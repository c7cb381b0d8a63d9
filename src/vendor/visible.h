/*
 * vendor/visible.h: which GPUs CUDA_VISIBLE_DEVICES leaves, and in what order, as the driver has
 * it. Both who computes on GPUs and who watches them count so: `cuda:N` is the same for both.
 */
#pragma once

#include <stdbool.h>

struct lab_visible_gpu {
    const char *uuid;
    int parent; /* of a MIG instance: the index of its GPU; -1 = a whole GPU */
};

/*
 * The indices of what `visible` names among `count` GPUs (in PCI order, each followed by its MIG
 * instances), into `ret_order`, which has `count` places; returns how many. Whole numbers count
 * whole GPUs, UUIDs may be cut short, the first entry that names nothing ends the list.
 * `ret_twice`: one is named twice, which leaves none. A NULL `visible` names all whole GPUs.
 */
int lab_visible_order(const char *visible, const struct lab_visible_gpu *gpus, int count,
                      int *ret_order, bool *ret_twice);
