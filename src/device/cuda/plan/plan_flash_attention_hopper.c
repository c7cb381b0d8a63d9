/*
 * plan_flash_attention_hopper.c: flash_attention by wgmma and TMA, in bf16 and fp16, for GPUs of
 * compute capability 9.0: what is legal among its tiles, which are taken unasked, and its call
 * (kernels/flash_attention_hopper.cu).
 */
#include "device/cuda/plan/plan_internal.h"

enum { BLOCK_M, BLOCK_N, STAGES, Q_STAGES, PINGPONG, PARAMETERS };

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"block_m", "queries of a tile, 64 for each warp group", LAB_CHOICES(64, 128, 192)},
    {"block_n", "keys per step", LAB_CHOICES(64, 80, 96, 112, 128, 144, 160, 176, 192)},
    {"stages", "pipeline stages of keys and of values", LAB_CHOICES(2, 3, 4)},
    {"q_stages", "pipeline stages of queries; 0 = one, copied to registers", LAB_CHOICES(0, 1, 2)},
    {"pingpong", "1 = warp groups take turns at the matrix unit", LAB_CHOICES(0, 1)},
};

#define GROUP         64        /* queries of a warp group */
#define LENGTH_MAX    (1 << 30) /* the kernel counts tokens and tiles in 32 bits */
#define BARRIER_BYTES 256       /* of shared memory, behind the tiles */

/* --- what is legal --- */

static int shared_bytes_of(struct lab_flash_shape s, const int32_t *values) {
    int q_stages = values[Q_STAGES] ? values[Q_STAGES] : 1;
    return 2 * (int)s.width * (q_stages * values[BLOCK_M] + 2 * values[STAGES] * values[BLOCK_N]) +
           BARRIER_BYTES;
}

/* Registers of a thread that hold scores, probabilities, output and queries, and what is left for
 * them: the warp groups share 65536. */
static int registers_of(struct lab_flash_shape s, const int32_t *values) {
    return (int)s.width / 2 + values[BLOCK_N] * 3 / 4 + (values[Q_STAGES] ? 0 : (int)s.width / 4);
}

static int registers_max(const int32_t *values) {
    return values[BLOCK_M] > 2 * GROUP ? 128 : 200;
}

static int hopper_flash_check(const struct lab_launch *launch, struct cuda_capacity capacity,
                              const struct lab_tuning *tuning, struct lab_err *err) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    const int32_t *values = tuning->values;
    int registers = registers_of(s, values), bytes = shared_bytes_of(s, values);
    int bytes_max = capacity.shared_bytes_max;
    if (registers > registers_max(values))
        return lab_err_set(
            err, LAB_ERR_UNSUPPORTED,
            "block_m=%d with block_n=%d: a thread would need %d registers for values, of %d",
            values[BLOCK_M], values[BLOCK_N], registers, registers_max(values));
    if (bytes > bytes_max)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tiles take %d bytes of shared memory, a block here has %d", bytes,
                           bytes_max);
    if (values[PINGPONG] && values[BLOCK_M] == GROUP)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_m=%d: taking turns needs several warp groups", GROUP);
    if (values[BLOCK_M] > GROUP && values[BLOCK_M] >= 2 * s.tokens)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_m=%d: the sequence has only %lld tokens", values[BLOCK_M],
                           (long long)s.tokens);
    return 0;
}

/* Tiles of 192 queries keep the matrix unit busier where scores are cheap, but of a short sequence
 * more of them is empty, or masked. Measured on an H200. */
static bool is_long(const struct lab_launch *launch, struct lab_flash_shape s) {
    if (launch->causal)
        return s.tokens >= (s.width == 64 ? 512 : 2048);
    return quotient_up(s.tokens, 192) * 192 * 17 <= quotient_up(s.tokens, 128) * 128 * 20;
}

static struct lab_tuning hopper_flash_usual(const struct lab_launch *launch,
                                            struct cuda_capacity capacity) {
    (void)capacity;
    struct lab_flash_shape s = lab_flash_shape(launch);
    if (s.tokens <= GROUP)
        return (struct lab_tuning){PARAMETERS, {GROUP, s.width == 256 ? 80 : 128, 2, 1, 0}};
    switch (s.width) {
    case 64:
        return (struct lab_tuning){PARAMETERS,
                                   {is_long(launch, s) ? 192 : 128, 128,
                                    is_long(launch, s) && launch->causal ? 2 : 3, 2, 1}};
    case 96:
        return is_long(launch, s) ? (struct lab_tuning){PARAMETERS, {192, 96, 3, 2, 1}}
                                  : (struct lab_tuning){PARAMETERS, {128, 128, 2, 0, 1}};
    case 128:
        return (struct lab_tuning){PARAMETERS, {128, 128, 2, 0, 1}};
    default:
        return (struct lab_tuning){PARAMETERS, {128, 80, 2, 1, 1}};
    }
}

static const struct cuda_tunable tunable = {
    .file = "flash_attention_hopper.cu",
    .tunable = {.kernel = "cuda flash_attention_hopper",
                .parameters = parameters,
                .count = PARAMETERS},
    .usual = hopper_flash_usual,
    .check = hopper_flash_check,
};

/* Whether the kernel can do it at all; where it can, it does it faster than any other. */
static bool suits(const struct lab_launch *launch, struct cuda_capacity capacity) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    bool is_half = launch->out.dtype == LAB_BF16 || launch->out.dtype == LAB_FP16;
    return cuda_kernel_runs_on(CUDA_KERNEL_flash_attention_hopper, capacity.capability) &&
           is_half && launch->scale > 0 && are_aligned(launch, 3) &&
           s.tokens <= LENGTH_MAX / (s.batch * s.heads);
}

const struct cuda_tunable *find_flash_attention_hopper_tunable(const struct lab_launch *launch,
                                                               struct cuda_capacity capacity) {
    return suits(launch, capacity) ? &tunable : NULL;
}

/* --- its call --- */

/* [batch, tokens, heads, width] in boxes of `rows` tokens of one head, as rows that are no longer
 * than a swizzle takes. */
struct cuda_map flash_attention_map(const struct lab_tensor *tensor, int32_t rows) {
    uint64_t heads = (uint64_t)tensor->shape[2], width = (uint64_t)tensor->shape[3];
    uint64_t tokens = (uint64_t)tensor->shape[1], columns = width % 64 == 0 ? 64 : 32;
    return (struct cuda_map){
        .data = tensor->data,
        .dtype = tensor->dtype,
        .rank = 5,
        .sizes = {columns, tokens, width / columns, heads, (uint64_t)tensor->shape[0]},
        .strides_bytes = {2 * heads * width, 2 * columns, 2 * width, 2 * tokens * heads * width},
        .box = {(uint32_t)columns, (uint32_t)rows, (uint32_t)(width / columns), 1, 1},
        .swizzle_bytes = (int)(2 * columns),
    };
}

int plan_flash_attention_hopper(const struct lab_launch *launch, struct cuda_capacity capacity,
                                enum cuda_way *ret_way, struct cuda_call *ret_call,
                                struct lab_err *err) {
    (void)ret_way;
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct lab_tuning tuning =
        launch->tuning.count ? launch->tuning : hopper_flash_usual(launch, capacity);
    const int32_t *values = tuning.values;
    const int32_t macros[] = {(int32_t)s.width, launch->causal,       values[BLOCK_M],
                              values[BLOCK_N],  values[STAGES],       values[Q_STAGES],
                              values[PINGPONG], launch->also.rank > 0};
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_hopper);
    memcpy(ret_call->variant.macros, macros, sizeof macros);
    for (int i = 0; i < 3; i++) {
        struct cuda_map map =
            flash_attention_map(&launch->in[i], values[i == 0 ? BLOCK_M : BLOCK_N]);
        add_map(ret_call, &map);
    }
    add_pointer(ret_call, &launch->out);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, s.tokens);
    add_integer(ret_call, s.heads);
    add_integer(ret_call, s.kv_heads);
    add_integer(ret_call, s.batch * s.heads);
    add_float(ret_call, launch->scale);
    /* causal tiles are handed out in twos */
    int64_t rows = quotient_up(s.tokens, values[BLOCK_M]);
    int64_t items = (launch->causal ? quotient_up(rows, 2) : rows) * s.batch * s.heads;
    ret_call->shared_bytes = (unsigned)shared_bytes_of(s, values);
    return set_blocks(ret_call, items < capacity.sm_count ? items : capacity.sm_count,
                      2 * values[BLOCK_M] + 128, err);
}
