/*
 * fuzz_iterations.c: any bytes either fail with a message or unpack, and then pack and unpack to
 * the same. The bytes taken as iterations themselves come back too.
 * covers: src/model/iteration
 */
#include "model/iteration.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct lab_iteration *items, size_t count,
                             struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_str packed;
    struct lab_iteration *again;
    size_t again_count;
    lab_str_init(&packed);
    lab_iterations_pack(items, count, &packed);
    if (lab_iterations_unpack(packed.text, packed.length, count, arena, &again, &again_count,
                              &err) < 0 ||
        again_count != count || (count && memcmp(again, items, count * sizeof *items) != 0))
        abort();
    lab_str_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_iteration *items;
    size_t count;
    LAB_AUTO(arena, arena);
    if (lab_iterations_unpack(data, size, size, &arena, &items, &count, &err) == 0)
        check_round_trip(items, count, &arena);
    else if (err.code != LAB_ERR_SYSTEM || !err.text[0])
        abort();
    count = size / sizeof *items;
    items = lab_arena_alloc(&arena, count, sizeof *items);
    if (count)
        memcpy(items, data, count * sizeof *items);
    check_round_trip(items, count, &arena);
    return 0;
}
