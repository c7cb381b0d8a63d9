/*
 * plan_softmax.c: softmax over rows. A row that registers can hold is read once and written once:
 * by some threads of a block, a whole block, or a cluster of blocks. What is longer still is read
 * twice.
 *
 * Memory decides here, so what matters is how many bytes are on their way at any time: that follows
 * from the threads of a row, the pieces that each keeps, and the blocks that fit on a
 * multiprocessor.
 */
#include "device/cuda/plan/plan_internal.h"

enum { THREADS, CLUSTER, RESIDENT, AHEAD, TURNS, PAST, PARAMETERS };

#define PIECES_MAX 20
/* of a row: shorter ones gain nothing from clusters or by coming ahead */
#define LONG_PIECES     2048
#define REGISTERS       65536 /* of a multiprocessor */
#define REGISTERS_OTHER 30    /* of a thread, beside the pieces that it keeps */
#define SHARED_OTHER    3072  /* bytes of a block, beside the rows on their way, at most */
#define SHARED_BLOCK    128   /* threads of a block that several rows share */
#define BLOCKS_MAX      32    /* of a multiprocessor */
#define CACHE_BYTES     ((int64_t)32 << 20) /* of the second level that a kernel may count on */
#define CLUSTER_PIECES  7                   /* at least, that each of its threads keeps */
#define CLUSTER_THREADS 128                 /* at least, of a block in a cluster */

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"threads", "threads per row", LAB_CHOICES(8, 16, 32, 64, 128, 256, 512, 1024)},
    {"cluster", "blocks that share a row", LAB_CHOICES(1, 2, 4, 8, 16)},
    {"resident", "resident threads per multiprocessor; 0: the compiler's choice",
     LAB_CHOICES(0, 512, 1024)},
    {"ahead", "1: prefetch the next row; 0: one row per block", LAB_CHOICES(0, 1)},
    {"turns", "rows per block; 0: as many blocks as fit share all rows", LAB_CHOICES(0, 2, 4)},
    {"past", "1: reads and writes are evicted first", LAB_CHOICES(0, 1)},
};

struct shape { /* of a launch, as the kernel sees it */
    int64_t rows, columns;
    int vector; /* the kernel's VECTOR */
    int step;   /* elements of a piece */
    int64_t pieces;
    int64_t bytes; /* of a tensor */
};

static struct shape shape_of(const struct lab_launch *launch) {
    struct shape shape = {.rows = lab_tensor_rows(&launch->out),
                          .columns = lab_tensor_columns(&launch->out),
                          .bytes = (int64_t)lab_tensor_bytes(&launch->out)};
    uintptr_t from = (uintptr_t)launch->in[0].data & 15, to = (uintptr_t)launch->out.data & 15;
    int wide = per_16_bytes(launch);
    shape.vector = from != to ? 0 : from || shape.columns % wide ? 1 : 2;
    shape.step = shape.vector ? wide : 1;
    /* a row that begins inside 16 bytes has up to one more */
    shape.pieces =
        quotient_up(shape.columns + (shape.vector == 1 ? shape.step - 1 : 0), shape.step);
    return shape;
}

/* Threads of a block; several rows share one where each has a warp at most. */
static int block_of(int threads) {
    return threads <= 32 ? SHARED_BLOCK : threads;
}

static int blocks_of(const struct lab_tuning *tuning) {
    int blocks = tuning->values[RESIDENT] / block_of(tuning->values[THREADS]);
    return blocks < 1 ? 1 : blocks;
}

/* Pieces that a thread keeps. */
static int held_pieces(const struct shape *shape, const struct lab_tuning *tuning) {
    int64_t need =
        quotient_up(shape->pieces, (int64_t)tuning->values[THREADS] * tuning->values[CLUSTER]);
    return need > PIECES_MAX ? PIECES_MAX + 1 : (int)need;
}

static int check_cluster(const struct shape *shape, struct cuda_capacity capacity,
                         const struct lab_tuning *tuning, struct lab_err *err) {
    int cluster = tuning->values[CLUSTER], threads = tuning->values[THREADS];
    if (cluster == 1)
        return 0;
    if (capacity.capability < 90)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "cluster=%d: GPUs before compute capability 9.0 have no clusters",
                           cluster);
    if (cluster > capacity.sm_count / 4)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "cluster=%d: too large for %d multiprocessors",
                           cluster, capacity.sm_count);
    if (threads < CLUSTER_THREADS || shape->pieces <= LONG_PIECES ||
        held_pieces(shape, tuning) < CLUSTER_PIECES)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "cluster=%d: a row of %lld is too short for that many blocks of %d",
                           cluster, (long long)shape->columns, threads);
    return 0;
}

/* Rows that all blocks that fit at once have at hand. */
static int64_t resident_rows(struct cuda_capacity capacity, const struct lab_tuning *tuning) {
    int threads = tuning->values[THREADS];
    return (int64_t)capacity.sm_count * blocks_of(tuning) * (block_of(threads) / threads) /
           tuning->values[CLUSTER];
}

/* Shared memory of a block: the rows that are on their way. */
static int64_t shared_bytes_of(const struct shape *shape, const struct lab_tuning *tuning) {
    return (int64_t)16 * tuning->values[AHEAD] * held_pieces(shape, tuning) *
           block_of(tuning->values[THREADS]);
}

static int check_ahead(const struct shape *shape, struct cuda_capacity capacity,
                       const struct lab_tuning *tuning, struct lab_err *err) {
    int ahead = tuning->values[AHEAD], turns = tuning->values[TURNS];
    int64_t bytes = (shared_bytes_of(shape, tuning) + SHARED_OTHER) * blocks_of(tuning);
    if (!ahead && !turns)
        return 0;
    if (shape->pieces <= LONG_PIECES)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "ahead=%d: no gain for rows of %lld", ahead,
                           (long long)shape->columns);
    if (!ahead || turns * resident_rows(capacity, tuning) > shape->rows)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "turns=%d: needs ahead, and enough rows",
                           turns);
    if (!tuning->values[RESIDENT])
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "ahead=%d: needs resident", ahead);
    if (!shape->vector)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "ahead=%d: x and out have different alignments to 16 bytes", ahead);
    if (bytes > capacity.shared_bytes_max)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "ahead=%d: needs %lld bytes of shared memory, there are %d", ahead,
                           (long long)bytes, capacity.shared_bytes_max);
    return 0;
}

static int check_shape(const struct shape *shape, struct cuda_capacity capacity,
                       const struct lab_tuning *tuning, struct lab_err *err) {
    int threads = tuning->values[THREADS], resident = tuning->values[RESIDENT];
    int pieces = held_pieces(shape, tuning), block = block_of(threads);
    if (check_cluster(shape, capacity, tuning, err))
        return -1;
    if (pieces > PIECES_MAX)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "threads=%d: too few for rows of %lld: a thread keeps %d bytes at most",
                           threads, (long long)shape->columns, 16 * PIECES_MAX);
    if (threads > parameters[THREADS].choices[0] &&
        (threads > 32 ? pieces < 2 : shape->pieces * 2 <= threads))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "threads=%d: too many for a row of %lld",
                           threads, (long long)shape->columns);
    if (resident && !tuning->values[AHEAD] && resident % 1024)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "resident=%d: only where rows come ahead",
                           resident);
    if (resident && (resident < block || resident / block > BLOCKS_MAX))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "resident=%d: doesn't fit blocks of %d threads", resident, block);
    int registers = REGISTERS_OTHER + pieces * (shape->vector ? 4 : 1);
    int offered = REGISTERS / (blocks_of(tuning) * block);
    if (registers > offered)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "threads=%d: each would need about %d registers and has %d", threads,
                           registers, offered);
    return check_ahead(shape, capacity, tuning, err);
}

/* --- the default --- */

/* The fewest threads of which each keeps at most so many pieces. */
static bool choose_threads(const struct shape *shape, struct cuda_capacity capacity, int most,
                           struct lab_tuning *tuning) {
    for (int i = 0; i < 8; i++) {
        tuning->values[THREADS] = parameters[THREADS].choices[i];
        if (held_pieces(shape, tuning) <= most && check_shape(shape, capacity, tuning, NULL) == 0)
            return true;
    }
    return false;
}

/* Of rows longer than LONG_PIECES, by the pieces that a way is for; the first is tried first. */
static const struct way {
    int64_t pieces;
    int cluster, threads, resident, ahead, turns;
} ways[] = {
    {4096, 1, 1024, 1024, 1, 2}, {8192, 1, 512, 512, 1, 2},   {16384, 4, 512, 1024, 1, 2},
    {32768, 4, 512, 512, 1, 4},  {65536, 8, 512, 512, 1, 4},  {1 << 30, 16, 512, 512, 1, 4},
    {1 << 30, 1, 512, 0, 0, 0},  {1 << 30, 1, 1024, 0, 0, 0}, {1 << 30, 2, 1024, 0, 0, 0},
    {1 << 30, 4, 1024, 0, 0, 0}, {1 << 30, 8, 1024, 0, 0, 0}, {1 << 30, 16, 1024, 0, 0, 0},
};

#define ENOUGH_BLOCKS 4  /* for each multiprocessor; a row of few is cut further to have them */
#define ENOUGH_TURNS  16 /* of the blocks that fit: then more blocks than fit even out the end */

static bool choose_long(const struct shape *shape, struct cuda_capacity capacity,
                        struct lab_tuning *tuning) {
    struct lab_tuning last = {0};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (shape->pieces > ways[i].pieces || (last.count && !ways[i].ahead))
            continue;
        tuning->values[CLUSTER] = ways[i].cluster;
        tuning->values[THREADS] = ways[i].threads;
        tuning->values[RESIDENT] = ways[i].resident;
        tuning->values[AHEAD] = ways[i].ahead;
        tuning->values[TURNS] =
            shape->rows >= ENOUGH_TURNS * resident_rows(capacity, tuning) ? ways[i].turns : 0;
        if (check_shape(shape, capacity, tuning, NULL))
            continue;
        if (shape->rows * ways[i].cluster >= (int64_t)ENOUGH_BLOCKS * capacity.sm_count)
            return true;
        last = *tuning;
    }
    *tuning = last;
    return last.count;
}

/*
 * As measured on an H200: one or two pieces in a warp, then four of each thread, and a block for
 * each row, of which several fit on a multiprocessor. Rows that leave no room for that come ahead.
 * Tensors that the caches can't hold anyway are marked as the first to leave them.
 */
static bool choose(const struct shape *shape, struct cuda_capacity capacity,
                   struct lab_tuning *ret_tuning) {
    int few = shape->rows < (int64_t)capacity.sm_count * SHARED_BLOCK ? 1 : 2;
    *ret_tuning = (struct lab_tuning){
        .count = PARAMETERS, .values = {[CLUSTER] = 1, [PAST] = 2 * shape->bytes > CACHE_BYTES}};
    if (shape->pieces <= 32 && choose_threads(shape, capacity, few, ret_tuning))
        return true;
    if (shape->pieces <= LONG_PIECES && choose_threads(shape, capacity, 4, ret_tuning))
        return true;
    return choose_long(shape, capacity, ret_tuning);
}

static struct lab_tuning cuda_softmax_usual(const struct lab_launch *launch,
                                            struct cuda_capacity capacity) {
    struct shape shape = shape_of(launch);
    struct lab_tuning tuning;
    choose(&shape, capacity, &tuning);
    return tuning;
}

static int cuda_softmax_check(const struct lab_launch *launch, struct cuda_capacity capacity,
                              const struct lab_tuning *tuning, struct lab_err *err) {
    struct shape shape = shape_of(launch);
    return check_shape(&shape, capacity, tuning, err);
}

static const struct cuda_tunable softmax_tunable = {
    .file = "softmax.cu",
    .tunable = {.kernel = "cuda softmax", .parameters = parameters, .count = PARAMETERS},
    .usual = cuda_softmax_usual,
    .check = cuda_softmax_check,
};

const struct cuda_tunable *find_softmax_tunable(const struct lab_launch *launch,
                                                struct cuda_capacity capacity) {
    struct shape shape = shape_of(launch);
    struct lab_tuning any;
    return choose(&shape, capacity, &any) ? &softmax_tunable : NULL;
}

/* --- the call --- */

static int plan_long(const struct lab_launch *launch, const struct shape *shape,
                     struct cuda_call *ret_call, struct lab_err *err) {
    *ret_call = call_of(launch, CUDA_KERNEL_softmax_long);
    add_inputs(ret_call, launch, 1);
    add_integer(ret_call, shape->columns);
    return set_blocks(ret_call, shape->rows, 1024, err);
}

/* Blocks, and threads of each: rows of a warp or less share blocks once there are rows for all. */
static int set_grid(struct cuda_call *call, const struct shape *shape,
                    struct cuda_capacity capacity, const struct lab_tuning *tuning,
                    struct lab_err *err) {
    int threads = tuning->values[THREADS], cluster = tuning->values[CLUSTER];
    int together = block_of(threads) / threads;
    if (threads <= 32 && shape->rows < (int64_t)capacity.sm_count * together)
        together = 32 / threads;
    int64_t blocks = quotient_up(shape->rows, together);
    int64_t fit = (int64_t)capacity.sm_count * blocks_of(tuning) / cluster;
    if (tuning->values[TURNS])
        blocks = quotient_up(blocks, tuning->values[TURNS]);
    else if (tuning->values[AHEAD] && blocks > fit)
        blocks = fit < 1 ? 1 : fit;
    call->cluster = cluster > 1 ? (unsigned)cluster : 0;
    call->persistent = tuning->values[AHEAD] && !tuning->values[TURNS];
    return set_blocks(call, blocks * cluster, together * threads, err);
}

int plan_softmax(const struct lab_launch *launch, struct cuda_capacity capacity,
                 enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)ret_way;
    struct shape shape = shape_of(launch);
    struct lab_tuning tuning = launch->tuning;
    /* one that was chosen for aligned tensors may not do for others */
    if ((!tuning.count || check_shape(&shape, capacity, &tuning, NULL)) &&
        !choose(&shape, capacity, &tuning))
        return plan_long(launch, &shape, ret_call, err);
    bool wide = tuning.values[CLUSTER] > 1;
    *ret_call = call_of(launch, wide ? CUDA_KERNEL_softmax_wide : CUDA_KERNEL_softmax);
    int32_t *macros = ret_call->variant.macros;
    macros[0] = tuning.values[THREADS];
    macros[1] = held_pieces(&shape, &tuning);
    macros[2] = shape.vector;
    macros[3] = blocks_of(&tuning);
    macros[4] = tuning.values[AHEAD];
    macros[5] = tuning.values[PAST];
    if (wide)
        macros[6] = tuning.values[CLUSTER];
    add_inputs(ret_call, launch, 1);
    add_integer(ret_call, shape.rows);
    add_integer(ret_call, shape.columns);
    ret_call->shared_bytes = (unsigned)shared_bytes_of(&shape, &tuning);
    return set_grid(ret_call, &shape, capacity, &tuning, err);
}
