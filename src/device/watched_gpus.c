/*
 * watched_gpus.c: whole GPUs and slices are read off their names: CUDA isn't needed to watch a
 * GPU, and whether it exists is for the sampler to say. Anything else is looked up as for running.
 */
#include "device/watched_gpus.h"

#include "base/str.h"
#include "device/device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct chosen {
    int *gpus;
    int count, capacity;
};

static void add(struct chosen *chosen, struct lab_arena *arena, int gpu) {
    for (int i = 0; i < chosen->count; i++)
        if (chosen->gpus[i] == gpu)
            return;
    if (chosen->count == chosen->capacity) {
        int *more = lab_arena_alloc(arena, 2 * (size_t)chosen->capacity + 8, sizeof *more);
        if (chosen->count)
            memcpy(more, chosen->gpus, (size_t)chosen->count * sizeof *more);
        chosen->gpus = more;
        chosen->capacity = 2 * chosen->capacity + 8;
    }
    chosen->gpus[chosen->count++] = gpu;
}

static int add_selected(const struct lab_machine *machine, const char *word,
                        struct lab_arena *arena, struct chosen *chosen, struct lab_err *err) {
    struct lab_device_list list = {0};
    if (lab_device_select(machine, word, arena, &list, err) < 0)
        return -1;
    for (int i = 0; i < list.count; i++) {
        const char *backend = list.items[i].backend;
        if (lab_str_equal(backend, "cuda"))
            add(chosen, arena, list.items[i].unit);
        else if (!lab_str_equal(backend, "cpu"))
            return lab_err_set(err, LAB_ERR_USER,
                               "--device %s: only this machine can be watched: cuda, cuda:0, "
                               "cuda:1,3 or cpu",
                               word);
    }
    return 0;
}

static int add_named(const char *word, struct lab_arena *arena, struct chosen *chosen,
                     struct lab_err *err) {
    struct lab_device_part part;
    if (lab_device_parse_part("cuda", word + strlen("cuda"), &part, err) < 0)
        return -1;
    add(chosen, arena, part.unit);
    return 0;
}

int lab_device_watched_gpus(const struct lab_machine *machine, const char *selector,
                            struct lab_arena *arena, const int **ret_gpus, int *ret_count,
                            struct lab_err *err) {
    struct chosen chosen = {0};
    bool all = !selector || lab_str_equal(selector, "auto");
    const char *word = NULL;
    for (const char *at = all ? NULL : selector, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        word = lab_device_word(word, lab_arena_strndup(arena, at, (size_t)(end - at)), arena);
        bool named = lab_str_starts(word, "cuda:") && isdigit((unsigned char)word[5]);
        if (lab_str_equal(word, "cuda"))
            all = true;
        else if ((named ? add_named(word, arena, &chosen, err)
                        : add_selected(machine, word, arena, &chosen, err)) < 0)
            return -1;
    }
    if (!chosen.gpus) /* an empty list isn't all of them */
        chosen.gpus = lab_arena_alloc(arena, 1, sizeof *chosen.gpus);
    *ret_gpus = all ? NULL : chosen.gpus;
    *ret_count = all ? 0 : chosen.count;
    return 0;
}

const char *lab_device_visible_note(struct lab_arena *arena) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible)
        return NULL;
    return lab_arena_printf(
        arena,
        "CUDA_VISIBLE_DEVICES='%s' hides the GPUs that it doesn't name, and counts "
        "those that it does from 0",
        visible);
}
