/*
 * gemm_tune.c: which of the library's algorithms is the fastest for a product.
 *
 * Each is captured ten times in a row into a graph and replayed, since a launch takes the host
 * longer than a small product takes the GPU. The ten read ten different copies of b, as the layers
 * of a model do: with a single one, weights would be timed out of the cache that in a model come
 * from memory. Operands are random numbers in memory of their own: what a launch is given may not
 * be computed yet, may still be in use, or may be zeros, on which a GPU is faster.
 *
 * The library's first proposal is kept unless another one is clearly ahead, so that a noisy moment
 * doesn't change what a study runs. The choice is kept in the cache of kernels, for the same reason
 * and because timing takes a second: later processes take it if the library still proposes it.
 */
#include "device/cuda/gemm.h"

#include "base/log.h"
#include "base/random.h"
#include "device/kernel_cache.h"

#include <string.h>

#define LAUNCHES       10
#define REPLAYS        3
#define CLEARLY        0.97f               /* of the first proposal's time */
#define COPIES_BYTES   ((size_t)512 << 20) /* of b, at most, in all */
#define LONG_MS        20.0f               /* a graph that takes this long is timed once */
#define NOISE_BYTES    ((size_t)1 << 20)
#define ROOM_ALIGNMENT ((size_t)256)

struct bench {
    const struct cuda_gemms *gemms;
    struct cuda_device *device;
    const struct lab_cuda *cuda;
    struct cuda_gemm_plan *plan;
    lab_cu_stream stream;
    lab_cu_event begin, end;
    lab_cu_pointer memory; /* a, c, d, bias, the copies of b; then the workspace */
    size_t operand_bytes, b_bytes;
    int copies;
    struct cuda_gemm_operands operands; /* b: the first copy */
    lab_cu_pointer workspace;
};

/* --- random numbers --- */

static void noise_fill(enum lab_dtype dtype, void *to, size_t size_bytes) {
    if (lab_dtype_bytes(dtype) == 4) {
        float *out = to;
        for (size_t i = 0; i < size_bytes / 4; i++)
            out[i] = lab_random_symmetric(1, i);
        return;
    }
    uint16_t *out = to;
    for (size_t i = 0; i < size_bytes / 2; i++) {
        uint16_t bits = (uint16_t)lab_random_bits(1, i);
        /* sign and digits are random, the exponent makes it 1/4 to 1/2 */
        out[i] = dtype == LAB_BF16 ? (uint16_t)((bits & 0x80ff) | 0x3e80)
                                   : (uint16_t)((bits & 0x87ff) | 0x3400);
    }
}

/* All operands, from a small piece that is copied over and over. */
static int fill(const struct bench *bench) {
    const struct lab_cuda *cuda = bench->cuda;
    size_t done = bench->operand_bytes < NOISE_BYTES ? bench->operand_bytes : NOISE_BYTES;
    LAB_AUTO_FREE void *noise = lab_mem_alloc(1, NOISE_BYTES);
    noise_fill((enum lab_dtype)bench->plan->key.dtype, noise, NOISE_BYTES);
    lab_cu_result result = cuda->cuMemcpyHtoDAsync(bench->memory, noise, done, bench->stream);
    while (result == LAB_CU_SUCCESS && done < bench->operand_bytes) {
        size_t rest = bench->operand_bytes - done, part = rest < done ? rest : done;
        result = cuda->cuMemcpyDtoDAsync(bench->memory + done, bench->memory, part, bench->stream);
        done += part;
    }
    if (result == LAB_CU_SUCCESS)
        result = cuda->cuStreamSynchronize(bench->stream); /* the noise is freed here */
    return result == LAB_CU_SUCCESS ? 0 : -1;
}

/* --- life --- */

/* Returns where a piece of this size begins. */
static size_t reserve(size_t *total, size_t size_bytes) {
    size_t at = *total;
    *total = at + (size_bytes + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT;
    return at;
}

/* Of a matrix, with room to be shifted in. */
static size_t matrix_bytes(uint8_t dtype, int64_t rows, int64_t columns) {
    return (size_t)rows * (size_t)columns * lab_dtype_bytes((enum lab_dtype)dtype) + ROOM_ALIGNMENT;
}

/* Aligned as the launch's own operands are, and no better. */
static void *place(const struct bench *bench, size_t at, enum cuda_gemm_operand operand) {
    size_t shift = (size_t)1 << bench->plan->key.aligned[operand];
    return (void *)(uintptr_t)(bench->memory + at + shift % ROOM_ALIGNMENT);
}

static int bench_open(struct bench *bench) {
    const struct cuda_gemm_key *key = &bench->plan->key;
    size_t total = 0;
    size_t a = reserve(&total, matrix_bytes(key->dtype, key->m, key->k));
    size_t c = reserve(&total, matrix_bytes(key->out_dtype, key->m, key->n));
    size_t d = reserve(&total, matrix_bytes(key->out_dtype, key->m, key->n));
    size_t bias = reserve(&total, matrix_bytes(key->out_dtype, 1, key->n));
    size_t b = reserve(&total, matrix_bytes(key->dtype, key->n, key->k));
    bench->b_bytes = total - b;
    size_t copies = COPIES_BYTES / bench->b_bytes;
    bench->copies = copies < 1 ? 1 : copies > LAUNCHES ? LAUNCHES : (int)copies;
    bench->operand_bytes = b + bench->b_bytes * (size_t)bench->copies;
    const struct lab_cuda *cuda = bench->cuda;
    if (cuda_stream_create(bench->device, bench->device->priority_low, &bench->stream, NULL) ||
        cuda->cuEventCreate(&bench->begin, LAB_CU_EVENT_DEFAULT) != LAB_CU_SUCCESS ||
        cuda->cuEventCreate(&bench->end, LAB_CU_EVENT_DEFAULT) != LAB_CU_SUCCESS ||
        cuda_memory_alloc(bench->device, bench->operand_bytes + CUDA_GEMM_WORKSPACE_BYTES,
                          &bench->memory, NULL))
        return -1;
    bool adds = cuda_gemm_adds((enum lab_op_id)key->op);
    bench->workspace = bench->memory + bench->operand_bytes;
    bench->operands = (struct cuda_gemm_operands){
        .a = place(bench, a, CUDA_GEMM_A),
        .b = place(bench, b, CUDA_GEMM_B),
        .c = adds ? place(bench, c, CUDA_GEMM_C) : NULL,
        .d = place(bench, d, CUDA_GEMM_D),
        .bias = cuda_gemm_has_bias((enum lab_op_id)key->op)
                    ? (void *)(uintptr_t)(bench->memory + bias)
                    : NULL,
        .aux = cuda_gemm_has_aux((enum lab_op_id)key->op) ? place(bench, c, CUDA_GEMM_C) : NULL,
    };
    return fill(bench);
}

static void bench_close(struct bench *bench) {
    const struct lab_cuda *cuda = bench->cuda;
    if (bench->stream)
        cuda->cuStreamSynchronize(bench->stream);
    cuda_memory_free(bench->device, bench->memory);
    if (bench->begin)
        cuda->cuEventDestroy(bench->begin);
    if (bench->end)
        cuda->cuEventDestroy(bench->end);
    if (bench->stream)
        cuda->cuStreamDestroy(bench->stream);
}

/* --- timing --- */

static lab_cu_graph_exec capture(const struct bench *bench, const struct lab_lt_algo *algo) {
    const struct lab_cuda *cuda = bench->cuda;
    lab_lt_status status = LAB_LT_SUCCESS;
    lab_cu_graph graph = NULL;
    lab_cu_graph_exec exec = NULL;
    if (cuda->cuStreamBeginCapture(bench->stream, LAB_CU_CAPTURE_RELAXED) != LAB_CU_SUCCESS)
        return NULL;
    for (int i = 0; i < LAUNCHES && status == LAB_LT_SUCCESS; i++) {
        struct cuda_gemm_operands operands = bench->operands;
        operands.b = (const char *)operands.b + bench->b_bytes * (size_t)(i % bench->copies);
        status = cuda_gemm_enqueue(bench->gemms, bench->plan, &operands, algo, bench->workspace,
                                   CUDA_GEMM_WORKSPACE_BYTES, bench->stream);
    }
    if (cuda->cuStreamEndCapture(bench->stream, &graph) != LAB_CU_SUCCESS || !graph)
        return NULL;
    if (status == LAB_LT_SUCCESS &&
        cuda->cuGraphInstantiateWithFlags(&exec, graph, 0) != LAB_CU_SUCCESS)
        exec = NULL;
    cuda->cuGraphDestroy(graph);
    return exec;
}

/* Milliseconds of one replay; negative where it failed. */
static float replay(const struct bench *bench, lab_cu_graph_exec exec) {
    const struct lab_cuda *cuda = bench->cuda;
    float ms = -1.0f;
    if (cuda->cuEventRecord(bench->begin, bench->stream) != LAB_CU_SUCCESS ||
        cuda->cuGraphLaunch(exec, bench->stream) != LAB_CU_SUCCESS ||
        cuda->cuEventRecord(bench->end, bench->stream) != LAB_CU_SUCCESS ||
        cuda->cuEventSynchronize(bench->end) != LAB_CU_SUCCESS ||
        cuda->cuEventElapsedTime(&ms, bench->begin, bench->end) != LAB_CU_SUCCESS)
        return -1.0f;
    return ms;
}

/* The best of some replays behind one that warms up; negative where the algorithm fails. */
static float time_algorithm(const struct bench *bench, const struct lab_lt_algo *algo) {
    lab_cu_graph_exec exec = capture(bench, algo);
    if (!exec)
        return -1.0f;
    float best = replay(bench, exec);
    int replays = best > LONG_MS ? 1 : REPLAYS;
    for (int i = 0; i < replays && best >= 0; i++) {
        float ms = replay(bench, exec);
        best = ms < 0 || (i == 0 && replays > 1) || ms < best ? ms : best;
    }
    bench->cuda->cuGraphExecDestroy(exec);
    return best;
}

static bool has_graphs(const struct lab_cuda *cuda) {
    return cuda->cuStreamBeginCapture && cuda->cuStreamEndCapture &&
           cuda->cuGraphInstantiateWithFlags && cuda->cuGraphLaunch && cuda->cuGraphDestroy &&
           cuda->cuGraphExecDestroy;
}

/* Which is the fastest; -1 = none could be timed. */
static int time_all(struct bench *bench, const struct lab_lt_heuristic *algorithms, int count) {
    float first = -1.0f, fastest = -1.0f;
    int best = -1;
    for (int i = 0; i < count; i++) {
        float ms = time_algorithm(bench, &algorithms[i].algo);
        if (ms < 0)
            continue;
        if (first < 0) { /* an earlier one failed: it can't be the choice */
            first = fastest = ms;
            best = i;
        } else if (ms < fastest && ms < first * CLEARLY) {
            fastest = ms;
            best = i;
        }
    }
    const struct cuda_gemm_key *key = &bench->plan->key;
    lab_log(LAB_LOG_DEBUG,
            "%s %s %d x %d x %d: algorithm %d of %d takes %.2f us, the library's first %.2f us",
            lab_op_get((enum lab_op_id)key->op)->name, lab_dtype_name((enum lab_dtype)key->dtype),
            key->m, key->n, key->k, best + 1, count, (double)fastest * 1e3 / LAUNCHES,
            (double)first * 1e3 / LAUNCHES);
    return best;
}

/* --- what an earlier process found --- */

struct memory {
    struct lab_arena arena;
    const char *folder; /* NULL = there is none */
    const char *key, *title;
};

static void memory_open(struct memory *memory, const struct cuda_device *device,
                        const struct cuda_gemm_key *key) {
    lab_arena_init(&memory->arena);
    memory->folder = lab_kernel_cache_folder(&memory->arena);
    memory->title = lab_arena_printf(
        &memory->arena, "%s %s %d x %d x %d%s%s%s: choice of cuBLASLt's algorithms, %s",
        lab_op_get((enum lab_op_id)key->op)->name, lab_dtype_name((enum lab_dtype)key->dtype),
        key->m, key->n, key->k, key->turned & 1 ? " a turned" : "",
        key->turned & 2 ? " b turned" : "", key->out_dtype == key->dtype ? "" : " into fp32",
        device->base.ref.description);
    memory->key =
        lab_arena_printf(&memory->arena, "%s, aligned %d %d %d %d, cuBLASLt %lld, %d",
                         memory->title, key->aligned[0], key->aligned[1], key->aligned[2],
                         key->aligned[3], (long long)lab_cublaslt_version(), lab_cuda_version());
}

/* -1 = nothing is known, or the library no longer proposes it */
static int recall(struct memory *memory, const struct lab_lt_heuristic *algorithms, int count) {
    char *bytes;
    size_t length;
    if (!memory->folder ||
        lab_kernel_cache_load(memory->folder, memory->key, &memory->arena, &bytes, &length) < 0 ||
        length != sizeof algorithms[0].algo)
        return -1;
    for (int i = 0; i < count; i++)
        if (memcmp(&algorithms[i].algo, bytes, length) == 0)
            return i;
    return -1;
}

int cuda_gemm_tune(const struct cuda_gemms *gemms, struct cuda_device *device,
                   struct cuda_gemm_plan *plan, const struct lab_lt_heuristic *algorithms,
                   int count) {
    struct bench bench = {.gemms = gemms, .device = device, .cuda = device->cuda, .plan = plan};
    struct memory memory;
    if (!has_graphs(device->cuda))
        return 0;
    memory_open(&memory, device, &plan->key);
    int best = recall(&memory, algorithms, count);
    if (best < 0) {
        best = bench_open(&bench) == 0 ? time_all(&bench, algorithms, count) : -1;
        bench_close(&bench);
        if (best >= 0 && memory.folder)
            lab_kernel_cache_store(memory.folder, memory.key, memory.title,
                                   (const char *)&algorithms[best].algo,
                                   sizeof algorithms[best].algo);
    }
    lab_arena_release(&memory.arena);
    return best < 0 ? 0 : best;
}
