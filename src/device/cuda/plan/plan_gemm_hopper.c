/*
 * plan_gemm_hopper.c: products by wgmma, on Hopper alone: what is legal among its tiles, and its
 * call (kernels/gemm_hopper.cu, whose head comment has the rules and their reasons).
 *
 * The library is one of the configurations: it and our kernel are a few per cent apart, mostly in
 * our favour, so which of them does a product is a tuner's to say. Two macros of the kernel aren't,
 * since more is never worse: the stages are as many as shared memory has room for, up to eight, and
 * the consumers follow from the tile.
 */
#include "device/cuda/gemm.h"
#include "device/cuda/plan/plan_internal.h"

#define SPAN_BYTES    128 /* of a row of a stage */
#define STAGES_MIN    2
#define STAGES_MAX    8
#define SLOTS         2 /* boxes of a consumer on their way out */
#define BOX_ROWS      64
#define BARRIER_BYTES 16  /* of a stage */
#define SUMS_MAX      192 /* accumulators of a thread; a third consumer leaves fewer registers */
#define SUMS_OF_3_MAX 96
#define LENGTH_MAX    (1 << 30) /* the kernel counts rows, columns and tiles in 32 bits */

enum { WAY, BLOCK_M, BLOCK_N, CLUSTER, SPLIT, GROUP, PARAMETERS };

enum { LIBRARY, TOGETHER, IN_TURNS }; /* ways */

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"way", "0: cuBLASLt; our kernel, 1: warpgroups share a tile, 2: they take tiles in turns",
     LAB_CHOICES(LIBRARY, TOGETHER, IN_TURNS)},
    {"block_m", "rows of a tile", LAB_CHOICES(64, 128, 192, 256)},
    {"block_n", "columns of a tile", LAB_CHOICES(32, 64, 96, 128, 160, 192, 224, 256)},
    {"cluster", "cluster size: blocks that share loads", LAB_CHOICES(1, 2)},
    {"split", "split-k: blocks per tile", LAB_CHOICES(1, 2, 3, 4)},
    {"group", "rows of tiles scheduled together", LAB_CHOICES(4, 8, 16)},
};

/* One value of each where they are nothing to the library, so that it is one configuration. */
static const struct lab_tuning library = {PARAMETERS, {LIBRARY, 128, 128, 1, 1, 8}};

/* --- products and tiles --- */

struct shape {
    int64_t m, n, k;
    int layout; /* bit 0: a is [k,m]; bit 1: b is [n,k] */
};

static struct shape shape_of(const struct lab_launch *launch) {
    return (struct shape){
        .m = lab_tensor_rows(&launch->out),
        .n = lab_tensor_columns(&launch->out),
        .k = launch->in[0].shape[launch->transpose_a ? 0 : 1],
        .layout = launch->transpose_a | launch->transpose_b << 1,
    };
}

struct tile {
    int m, n, k;
    int consumers, rows; /* warpgroups, and each one's rows */
    int cluster, split;
    int box, box_bytes; /* columns that leave together */
    bool in_turns, shares_a, shares_b;
};

static struct tile tile_of(enum lab_dtype dtype, const int32_t *values) {
    int element_bytes = (int)lab_dtype_bytes(dtype);
    struct tile tile = {
        .m = values[BLOCK_M],
        .n = values[BLOCK_N],
        .k = SPAN_BYTES / element_bytes,
        .cluster = values[CLUSTER],
        .split = values[SPLIT],
        .in_turns = values[WAY] == IN_TURNS,
    };
    tile.consumers = tile.in_turns ? 2 : tile.m == 64 ? 1 : tile.m == 192 ? 3 : 2;
    tile.rows = tile.in_turns ? tile.m : tile.m / tile.consumers;
    tile.shares_b = tile.cluster > 1 && tile.n >= tile.m;
    tile.shares_a = tile.cluster > 1 && tile.n < tile.m;
    tile.box = element_bytes == 4 || tile.n / tile.split % 64 ? 32 : 64;
    tile.box_bytes = tile.box * element_bytes;
    return tile;
}

static int stage_bytes(const struct tile *tile) {
    return (tile->m + tile->n) * SPAN_BYTES;
}

static int out_bytes(const struct tile *tile) {
    return tile->consumers * SLOTS * BOX_ROWS * tile->box_bytes;
}

static int stages_of(const struct tile *tile, struct cuda_capacity capacity) {
    int stages =
        (capacity.shared_bytes_max - out_bytes(tile)) / (stage_bytes(tile) + BARRIER_BYTES);
    return stages < STAGES_MAX ? stages : STAGES_MAX;
}

/* --- what is legal --- */

static int refuse(struct lab_err *err, const char *reason) {
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s", reason);
}

/* Products that some tile can do. */
static int check_shape(const struct lab_launch *launch, struct lab_err *err) {
    struct shape s = shape_of(launch);
    int64_t step = per_16_bytes(launch);
    if (launch->out.dtype == LAB_FP32)
        return refuse(err, "tensor cores multiply bf16, fp16 and tf32, not fp32");
    if (launch->out.dtype == LAB_TF32 && s.layout != 2)
        return refuse(err, "tf32 is only multiplied with a as [m,k] and b as [n,k]");
    if (s.m > LENGTH_MAX || s.n > LENGTH_MAX || s.k > LENGTH_MAX)
        return refuse(err, "rows, columns and the inner dimension are 2^30 at most");
    if (s.n % step || (s.layout & 1 ? s.m : s.k) % step || (s.layout & 2 && s.k % step))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "rows must be multiples of 16 bytes, here of %lld elements",
                           (long long)step);
    return 0;
}

static int check_split(const struct shape *shape, const struct tile *tile, int stages,
                       struct lab_err *err) {
    if (tile->split == 1)
        return 0;
    if (tile->in_turns || tile->cluster > 1)
        return refuse(err, "split needs way=1 and cluster=1");
    if (tile->n % (32 * tile->split))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_n=%d can't be split into %d multiples of 32", tile->n,
                           tile->split);
    if (tile->m * tile->n * 4 > stages * stage_bytes(tile))
        return refuse(err, "a tile's sums don't fit into the stages");
    if (quotient_up(shape->k, tile->k) < tile->split)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "k=%lld is too short to be split by %d",
                           (long long)shape->k, tile->split);
    return 0;
}

static int check_tile(const struct lab_launch *launch, const struct tile *tile,
                      struct cuda_capacity capacity, struct lab_err *err) {
    struct shape shape = shape_of(launch);
    int stages = stages_of(tile, capacity);
    if (tile->rows * tile->n / 128 > (tile->consumers == 3 ? SUMS_OF_3_MAX : SUMS_MAX))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "a tile of %d x %d needs more registers than there are", tile->m,
                           tile->n);
    if (!(shape.layout & 2) && tile->n % 64)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_n=%d must be a multiple of 64 where b is [k,n]", tile->n);
    if (stages < STAGES_MIN)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "two stages of a tile of %d x %d need more shared memory than there is",
                           tile->m, tile->n);
    return check_split(&shape, tile, stages, err);
}

static int hopper_gemm_check(const struct lab_launch *launch, struct cuda_capacity capacity,
                             const struct lab_tuning *tuning, struct lab_err *err) {
    const int32_t *values = tuning->values;
    if (values[WAY] == LIBRARY)
        return lab_tuning_equal(tuning, &library)
                   ? 0
                   : refuse(err, "way=0 has no tiles to choose: block_m=128, block_n=128, "
                                 "cluster=1, split=1, group=8");
    struct tile tile = tile_of(launch->out.dtype, values);
    if (check_shape(launch, err) || check_tile(launch, &tile, capacity, err))
        return -1;
    /* groups that hold all rows of tiles are one and the same */
    if (values[GROUP] != library.values[GROUP] &&
        quotient_up(lab_tensor_rows(&launch->out), tile.m) <= library.values[GROUP])
        return refuse(err, "so few rows of tiles are one group: group=8");
    return 0;
}

/*
 * What a launch without a tuning gets: the library, but for a GELU. That takes about as long as a
 * short product itself, and hides behind it where warpgroups take turns: 0.98 to 1.14 times the
 * library's rate on an H200, by shape, from a tile for each multiprocessor on. It is the exact one,
 * too.
 */
static struct lab_tuning hopper_gemm_usual(const struct lab_launch *launch,
                                           struct cuda_capacity capacity) {
    struct lab_tuning in_turns = {PARAMETERS, {IN_TURNS, 128, 128, 1, 1, 8}};
    struct shape s = shape_of(launch);
    bool hides = launch->op == LAB_OP_GEMM_BIAS_GELU && lab_dtype_bytes(launch->out.dtype) == 2 &&
                 s.layout == 2 &&
                 quotient_up(s.m, 128) * quotient_up(s.n, 128) >= (int64_t)capacity.sm_count;
    return hides ? in_turns : library;
}

static const struct cuda_tunable tunable = {
    .file = "gemm_hopper.cu",
    .tunable = {.kernel = "cuda gemm_hopper", .parameters = parameters, .count = PARAMETERS},
    .usual = hopper_gemm_usual,
    .check = hopper_gemm_check,
};

const struct cuda_tunable *find_gemm_hopper_tunable(const struct lab_launch *launch,
                                                    struct cuda_capacity capacity) {
    bool runs = cuda_kernel_runs_on(CUDA_KERNEL_gemm_hopper, capacity.capability);
    return runs && check_shape(launch, NULL) == 0 ? &tunable : NULL;
}

/* --- the call --- */

/* A row-major matrix in boxes. */
static void add_matrix(struct cuda_call *call, void *data, enum lab_dtype dtype, int64_t rows,
                       int64_t columns, int box_rows, int box_columns) {
    int element_bytes = (int)lab_dtype_bytes(dtype);
    add_map(call, &(struct cuda_map){
                      .data = data,
                      .dtype = dtype,
                      .rank = 2,
                      .sizes = {(uint64_t)columns, (uint64_t)rows},
                      .strides_bytes = {(uint64_t)columns * (uint64_t)element_bytes},
                      .box = {(uint32_t)box_columns, (uint32_t)box_rows},
                      .swizzle_bytes = box_columns * element_bytes,
                  });
}

static void add_matrices(struct cuda_call *call, const struct lab_launch *launch,
                         const struct shape *shape, const struct tile *tile) {
    int a_rows = (shape->layout & 1 ? tile->k : tile->m) / (tile->shares_a ? 2 : 1);
    int b_rows = (shape->layout & 2 ? tile->n : tile->k) / (tile->shares_b ? 2 : 1);
    /* a map of tf32 rounds, and what goes out is not rounded again */
    enum lab_dtype out = launch->out.dtype == LAB_TF32 ? LAB_FP32 : launch->out.dtype;
    add_matrix(call, launch->in[0].data, launch->out.dtype, launch->in[0].shape[0],
               launch->in[0].shape[1], a_rows, tile->k);
    add_matrix(call, launch->in[1].data, launch->out.dtype, launch->in[1].shape[0],
               launch->in[1].shape[1], b_rows, tile->k);
    add_matrix(call, launch->out.data, out, shape->m, shape->n, BOX_ROWS, tile->box);
}

/* Blocks, each of which takes one tile after the other. */
static int64_t blocks_of(const struct shape *shape, const struct tile *tile,
                         struct cuda_capacity capacity) {
    int64_t down = quotient_up(shape->m, tile->m), across = quotient_up(shape->n, tile->n);
    int64_t tiles = (tile->shares_b ? quotient_up(down, 2) : down) *
                    (tile->shares_a ? quotient_up(across, 2) : across);
    int64_t at_once = capacity.sm_count / tile->cluster;
    if (tile->split > 1)
        return tiles * tile->split;
    return (tiles < at_once ? tiles : at_once) * tile->cluster;
}

struct lab_tuning gemm_hopper_spread(const struct lab_launch *launch,
                                     struct cuda_capacity capacity) {
    struct lab_tuning tuning = {PARAMETERS, {TOGETHER, 128, 128, 1, 1, 8}};
    struct shape s = shape_of(launch);
    int64_t tiles = quotient_up(s.m, 128) * quotient_up(s.n, 128);
    if (!find_gemm_hopper_tunable(launch, capacity))
        return (struct lab_tuning){0};
    for (int split = 4; split > 1; split /= 2) {
        struct lab_tuning finer = tuning;
        finer.values[SPLIT] = split;
        if (tiles * split <= capacity.sm_count &&
            hopper_gemm_check(launch, capacity, &finer, NULL) == 0)
            return finer;
    }
    return tuning;
}

/* What the copy engine and pairs of elements need; a shape's tuning can't promise it. */
static bool has_aligned_memory(const struct lab_launch *launch) {
    bool has_bias = cuda_gemm_has_bias(launch->op);
    size_t pair_bytes = 2 * lab_dtype_bytes(launch->out.dtype); /* of the bias, read at once */
    return are_aligned(launch, 2) &&
           (!has_bias || (uintptr_t)launch->in[2].data % pair_bytes == 0) &&
           (!cuda_gemm_adds(launch->op) || is_aligned(&launch->in[has_bias ? 3 : 2]));
}

int plan_gemm_hopper(const struct lab_launch *launch, struct cuda_capacity capacity,
                     enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    struct lab_tuning tuning =
        launch->tuning.count ? launch->tuning : hopper_gemm_usual(launch, capacity);
    const int32_t *values = tuning.values;
    if (values[WAY] == LIBRARY || !has_aligned_memory(launch)) {
        *ret_way = CUDA_WAY_GEMM;
        return 0;
    }
    struct shape shape = shape_of(launch);
    struct tile tile = tile_of(launch->out.dtype, values);
    int stages = stages_of(&tile, capacity);
    bool bias = cuda_gemm_has_bias(launch->op), adds = cuda_gemm_adds(launch->op);
    bool gelu = launch->op == LAB_OP_GEMM_BIAS_GELU;
    const struct lab_tensor none = {0};
    *ret_call = call_of(launch, CUDA_KERNEL_gemm_hopper);
    const int32_t macros[] = {tile.m,       tile.n,     stages,       tile.in_turns,
                              tile.cluster, tile.split, shape.layout, bias | gelu << 1 | adds << 2};
    memcpy(ret_call->variant.macros, macros, sizeof macros);
    add_matrices(ret_call, launch, &shape, &tile);
    add_pointer(ret_call, bias ? &launch->in[2] : &none);
    add_pointer(ret_call, adds ? &launch->in[bias ? 3 : 2] : &none);
    add_integer(ret_call, shape.m);
    add_integer(ret_call, shape.n);
    add_integer(ret_call, shape.k);
    add_integer(ret_call, values[GROUP]);
    ret_call->cluster = (unsigned)(tile.cluster * tile.split);
    ret_call->shared_bytes =
        (unsigned)(stages * (stage_bytes(&tile) + BARRIER_BYTES) + out_bytes(&tile));
    return set_blocks(ret_call, blocks_of(&shape, &tile, capacity), 128 * (1 + tile.consumers),
                      err);
}
