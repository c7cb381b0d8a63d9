/*
 * plan_attention_hopper.c: attention over packed queries, keys and values, as a model's projection
 * leaves them, by the kernel for separate ones: TMA walks rows of any length, so three maps of the
 * one matrix serve it.
 */
#include "device/cuda/plan/plan_internal.h"

#define WIDTH        64
#define TOKENS_MIN   65  /* fewer are one tile, which the kernel of attention.cu has sooner */
#define SHORT_TOKENS 224 /* two tiles of 112 keys waste the least of 197, the tokens of a ViT */

/* block_m, block_n, stages, q_stages, pingpong: 7 % more of a whole ViT than attention.cu on an
 * H200 */
static const struct lab_tuning short_tuning = {5, {128, 112, 2, 2, 1}};

/* Part 0, 1 or 2 of a packed row, as if it lay alone: the maps are given their strides
 * afterwards. */
static struct lab_tensor part_of(const struct lab_launch *launch, int part) {
    int64_t images = lab_tensor_rows(&launch->out) / launch->tokens;
    const struct lab_tensor *packed = &launch->in[0];
    size_t offset = (size_t)(part * launch->heads * WIDTH) * lab_dtype_bytes(packed->dtype);
    void *data = packed->data ? (char *)packed->data + offset : NULL;
    return lab_tensor(data, packed->dtype, 4,
                      (int64_t[]){images, launch->tokens, launch->heads, WIDTH});
}

static struct lab_launch separate(const struct lab_launch *launch) {
    struct lab_launch flash = {
        .op = LAB_OP_FLASH_ATTENTION,
        .in = {part_of(launch, 0), part_of(launch, 1), part_of(launch, 2)},
        .out = part_of(launch, 0),
        .scale = launch->scale,
    };
    flash.out.data = launch->out.data;
    if (launch->tokens <= SHORT_TOKENS)
        flash.tuning = short_tuning;
    return flash;
}

bool attention_hopper_suits(const struct lab_launch *launch, struct cuda_capacity capacity) {
    if (launch->tokens < TOKENS_MIN || lab_tensor_columns(&launch->out) != launch->heads * WIDTH)
        return false;
    struct lab_launch flash = separate(launch);
    return find_flash_attention_hopper_tunable(&flash, capacity);
}

int plan_attention_hopper(const struct lab_launch *launch, struct cuda_capacity capacity,
                          enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    struct lab_launch flash = separate(launch);
    if (plan_flash_attention_hopper(&flash, capacity, ret_way, ret_call, err))
        return -1;
    for (int i = 0; i < 3; i++) {
        ret_call->maps[i].strides_bytes[0] *= 3; /* from a token to the next */
        ret_call->maps[i].strides_bytes[3] *= 3; /* from an image to the next */
    }
    return 0;
}
