/*
 * fuzz_visible.c: whatever CUDA_VISIBLE_DEVICES holds, it leaves each of the GPUs at most once and no
 * instance next to its own GPU. Named by their whole UUIDs, the same ones are left.
 * covers: src/vendor/visible.c
 */
#include "base/mem.h"
#include "base/str.h"
#include "folder.h"
#include "vendor/visible.h"

#define COUNT 6

static const struct lab_visible_gpu gpus[COUNT] = {
    {"GPU-8f0e1d2c-0001", -1}, {"GPU-8f0e1d2c-0002", -1}, {"MIG-11111111-0001", 1},
    {"MIG-11111111-0002", 1},  {"GPU-3a4b5c6d-0003", -1}, {"MIG-22222222-0001", 4}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, words);
    bool twice, left[COUNT] = {0};
    int order[COUNT], again[COUNT];
    const char *text = lab_arena_strndup(&arena, (const char *)data, size);
    int count = lab_visible_order(text, gpus, COUNT, order, &twice);
    require(count >= 0 && count <= COUNT && (!twice || count == 0));
    for (int i = 0; i < count; i++) {
        require(order[i] >= 0 && order[i] < COUNT && !left[order[i]]);
        int parent = gpus[order[i]].parent;
        require(parent < 0 || !left[parent]);
        left[order[i]] = true;
        lab_str_printf(&words, "%s%s", i ? "," : "", gpus[order[i]].uuid);
    }
    require(lab_visible_order(words.text, gpus, COUNT, again, &twice) == count);
    for (int i = 0; i < count; i++)
        require(again[i] == order[i]);
    return 0;
}
