/*
 * plan_flash_attention_backward.c: the derivatives of attention in two kernels: sums that all need,
 * then all else (kernels/flash_attention_backward*.cu). In bf16 and fp16 blocks gather dq together
 * in scratch memory, each when its turn comes; fp32 and tf32 have a simple kernel. Where wgmma and
 * TMA can do it they do.
 */
#include "device/cuda/plan/plan_internal.h"

enum { Q, K, V, O, D_O, LSE, INPUTS };

#define THREADS     256
#define WARPS       8
#define BLOCK       128         /* keys of a block, and queries whose sums lie together */
#define LENGTH_MAX  (1 << 30)   /* kernels count tokens and blocks in 32 bits */
#define STAGED_FROM (160 << 10) /* bytes of shared memory that a block may have, for two stages */

#define HOPPER_THREADS 384
#define HOPPER_BYTES   (13 * BLOCK * 128 + 3 * 2 * BLOCK * 4 + 240) /* of shared memory */
#define HOPPER_TURNS   2

static bool is_half(const struct lab_launch *launch) {
    return lab_dtype_bytes(launch->out.dtype) == 2;
}

/* Whether wgmma and TMA can do it. */
static bool suits_hopper(const struct lab_launch *launch, struct cuda_capacity capacity) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    return cuda_kernel_runs_on(CUDA_KERNEL_flash_attention_backward_hopper, capacity.capability) &&
           is_half(launch) && s.width == 64 && are_aligned(launch, LSE) &&
           quotient_up(s.tokens, BLOCK) <= LENGTH_MAX / (s.batch * s.heads);
}

struct tiles {
    int block_m, stages, turns; /* turns: that are counted for each */
    int64_t count;              /* tiles of queries, of all heads */
};

static struct tiles tiles_of(const struct lab_launch *launch, struct cuda_capacity capacity) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    bool hopper = suits_hopper(launch, capacity);
    int block_m = hopper ? BLOCK : s.width == 64 ? 64 : 32;
    int stages = s.width == 64 || capacity.shared_bytes_max >= STAGED_FROM ? 2 : 1;
    return (struct tiles){block_m, stages, hopper ? HOPPER_TURNS : WARPS,
                          s.batch * s.heads * quotient_up(s.tokens, block_m)};
}

struct room { /* offsets in scratch memory, in bytes; sums come first */
    int64_t parts, turns, counter, end;
};

static struct room room_of(const struct lab_launch *launch, struct cuda_capacity capacity) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct tiles tiles = tiles_of(launch, capacity);
    int64_t single = sizeof(float), half = is_half(launch);
    struct room room;
    room.parts = s.batch * s.heads * quotient_up(s.tokens, BLOCK) * 2 * BLOCK * single;
    room.turns = room.parts + half * tiles.count * tiles.block_m * s.width * single;
    room.counter = room.turns + half * tiles.count * tiles.turns * (int64_t)sizeof(uint32_t);
    room.end = room.counter + (int64_t)sizeof(uint32_t);
    return room;
}

int64_t flash_attention_backward_bytes(const struct lab_launch *launch,
                                       struct cuda_capacity capacity) {
    return room_of(launch, capacity).end;
}

struct order { /* in which pieces of work are taken: kernels/flash_attention_backward_mma.cu */
    int64_t staggered, together;
};

/*
 * Heads are staggered, with two exceptions: the last heads of a causal launch, so that it ends with
 * its shortest pieces, and heads with more blocks of keys than run at once. Of those, several heads
 * are interleaved: between two pieces of the same queries, other pieces take a tile and a half of
 * time, after which the first one's turn is over.
 */
static struct order order_of(const struct lab_launch *launch, struct cuda_capacity capacity) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t blocks = quotient_up(s.tokens, BLOCK), pairs = s.batch * s.kv_heads;
    int64_t tiles = (launch->causal ? quotient_up(blocks + 1, 2) : blocks) * s.heads / s.kv_heads;
    int64_t together = quotient_up(3 * (int64_t)capacity.sm_count, 2 * tiles);
    if (together > pairs)
        together = pairs;
    int64_t staggered = launch->causal ? pairs - together : blocks <= capacity.sm_count ? pairs : 0;
    return (struct order){staggered, together};
}

static void add_order(struct cuda_call *call, const struct lab_launch *launch,
                      struct cuda_capacity capacity) {
    struct order order = order_of(launch, capacity);
    add_integer(call, order.staggered);
    add_integer(call, order.together);
}

static void add_address(struct cuda_call *call, void *base, int64_t offset) {
    add_integer(call, base ? (int64_t)(uintptr_t)base + offset : 0);
}

static int plan_start(const struct lab_launch *launch, const struct room *room, void *scratch,
                      struct cuda_call *ret_call, struct lab_err *err) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t rows = s.batch * s.tokens * s.heads, share = s.width / per_16_bytes(launch);
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_backward_start);
    ret_call->variant.macros[0] = (int32_t)s.width;
    ret_call->variant.macros[1] = is_aligned(&launch->in[O]) && is_aligned(&launch->in[D_O]);
    add_pointer(ret_call, &launch->in[O]);
    add_pointer(ret_call, &launch->in[D_O]);
    add_pointer(ret_call, &launch->in[LSE]);
    add_address(ret_call, scratch, 0);
    add_address(ret_call, scratch, room->turns);
    add_integer(ret_call, (room->end - room->turns) / (int64_t)sizeof(uint32_t));
    add_integer(ret_call, rows);
    add_integer(ret_call, s.tokens);
    add_integer(ret_call, s.heads);
    return set_blocks(ret_call, quotient_up(rows * share, THREADS), THREADS, err);
}

static void add_tensors(struct cuda_call *call, const struct lab_launch *launch, void *scratch) {
    static const int inputs[] = {Q, K, V, D_O};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        add_pointer(call, &launch->in[inputs[i]]);
    add_address(call, scratch, 0);
    add_pointer(call, &launch->out);
}

static void add_shape(struct cuda_call *call, const struct lab_launch *launch) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    add_integer(call, s.tokens);
    add_integer(call, s.heads);
    add_integer(call, s.kv_heads);
}

static int plan_any(const struct lab_launch *launch, void *scratch, struct cuda_call *ret_call,
                    struct lab_err *err) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t rows = s.batch * s.tokens;
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_backward_any);
    ret_call->variant.macros[0] = (int32_t)s.width;
    ret_call->variant.macros[1] = launch->causal;
    add_tensors(ret_call, launch, scratch);
    add_integer(ret_call, rows * s.heads);
    add_integer(ret_call, rows * s.kv_heads);
    add_shape(ret_call, launch);
    add_float(ret_call, launch->scale);
    return set_blocks(ret_call, quotient_up(rows * (s.heads + s.kv_heads), WARPS), THREADS, err);
}

static int shared_bytes_of(struct lab_flash_shape s, const struct tiles *tiles) {
    int row_bytes = 2 * (int)s.width;
    int stage = 2 * tiles->block_m * row_bytes + 2 * tiles->block_m * (int)sizeof(float);
    return 2 * BLOCK * row_bytes + tiles->stages * stage + 2 * BLOCK * tiles->block_m;
}

static int plan_mma(const struct lab_launch *launch, struct cuda_capacity capacity,
                    const struct room *room, void *scratch, struct cuda_call *ret_call,
                    struct lab_err *err) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct tiles tiles = tiles_of(launch, capacity);
    const int32_t macros[] = {(int32_t)s.width, launch->causal, are_aligned(launch, LSE),
                              tiles.block_m, tiles.stages};
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_backward_mma);
    memcpy(ret_call->variant.macros, macros, sizeof macros);
    add_tensors(ret_call, launch, scratch);
    add_address(ret_call, scratch, room->parts);
    add_address(ret_call, scratch, room->turns);
    add_shape(ret_call, launch);
    add_order(ret_call, launch, capacity);
    add_float(ret_call, launch->scale);
    ret_call->shared_bytes = (unsigned)shared_bytes_of(s, &tiles);
    return set_blocks(ret_call, quotient_up(s.tokens, BLOCK) * s.kv_heads * s.batch, THREADS, err);
}

static int plan_hopper(const struct lab_launch *launch, struct cuda_capacity capacity,
                       const struct room *room, void *scratch, struct cuda_call *ret_call,
                       struct lab_err *err) {
    static const int boxes[] = {Q, K, V, D_O};
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t pairs = s.batch * s.kv_heads, pieces = quotient_up(s.tokens, BLOCK) * pairs;
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_backward_hopper);
    ret_call->variant.macros[0] = launch->causal;
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        struct cuda_map map = flash_attention_map(&launch->in[boxes[i]], BLOCK);
        add_map(ret_call, &map);
    }
    add_address(ret_call, scratch, 0);
    add_pointer(ret_call, &launch->out);
    add_address(ret_call, scratch, room->parts);
    add_address(ret_call, scratch, room->turns);
    add_address(ret_call, scratch, room->counter);
    add_shape(ret_call, launch);
    add_integer(ret_call, pairs);
    add_order(ret_call, launch, capacity);
    add_float(ret_call, launch->scale);
    ret_call->shared_bytes = HOPPER_BYTES;
    return set_blocks(ret_call, pieces < capacity.sm_count ? pieces : capacity.sm_count,
                      HOPPER_THREADS, err);
}

int plan_flash_attention_backward(const struct lab_launch *launch, struct cuda_capacity capacity,
                                  enum cuda_way *ret_way, struct cuda_call *ret_call,
                                  struct lab_err *err) {
    (void)capacity;
    (void)ret_call;
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t longest = s.tokens > s.heads ? s.tokens : s.heads;
    if (longest > LENGTH_MAX)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%lld tokens or heads are more than a GPU's kernel counts, %d",
                           (long long)longest, LENGTH_MAX);
    *ret_way = CUDA_WAY_PARTS;
    return 0;
}

int plan_flash_attention_backward_parts(const struct lab_launch *launch,
                                        struct cuda_capacity capacity, void *scratch,
                                        struct cuda_part parts[CUDA_PARTS], int *ret_count,
                                        struct lab_err *err) {
    struct room room = room_of(launch, capacity);
    parts[0] = parts[1] = (struct cuda_part){0};
    if (plan_start(launch, &room, scratch, &parts[0].call, err))
        return -1;
    *ret_count = 2;
    if (suits_hopper(launch, capacity))
        return plan_hopper(launch, capacity, &room, scratch, &parts[1].call, err);
    return is_half(launch) ? plan_mma(launch, capacity, &room, scratch, &parts[1].call, err)
                           : plan_any(launch, scratch, &parts[1].call, err);
}
