/*
 * limits.c: what the device can do at best, measured on it: a matrix product of 4096³ by cuBLASLt
 * in the dtype, copies of 256 MiB from and to pinned memory on the device's own node, and a copy
 * inside its memory. Best of a few rounds, since whatever else runs there only slows them down.
 * Operands are random: on zeros the GPU draws less power and is faster than any real product.
 */
#include "base/random.h"
#include "device/cuda/cuda.h"
#include "vendor/cublaslt.h"

#define GEMM_SIZE       4096
#define GEMM_ROUNDS     4
#define GEMM_REPEATS    8 /* in a round; the first round warms up */
#define WORKSPACE_BYTES ((size_t)32 << 20)
#define COPY_BYTES      ((size_t)256 << 20)
#define COPY_ROUNDS     4

struct probe {
    struct cuda_device *device;
    struct lab_stream *stream;
    struct lab_event *start, *end;
};

/* What a round of `amount` took, from the events around it; keeps the best rate. */
static int keep_best(struct probe *probe, double amount, double *best, struct lab_err *err) {
    int64_t start_ns, end_ns;
    if (lab_event_time(probe->start, &start_ns, err) || lab_event_time(probe->end, &end_ns, err))
        return -1;
    double rate = amount / ((double)(end_ns > start_ns ? end_ns - start_ns : 1) * 1e-9);
    if (rate > *best)
        *best = rate;
    return 0;
}

/* --- copies --- */

static int copy_rate(struct probe *probe, void *to, const void *from, enum lab_memory_kind to_kind,
                     enum lab_memory_kind from_kind, double *ret_rate, struct lab_err *err) {
    for (int round = 0; round < COPY_ROUNDS; round++)
        if (lab_event_record(probe->start, probe->stream, err) ||
            lab_copy(probe->stream, to, from, COPY_BYTES, to_kind, from_kind, err) ||
            lab_event_record(probe->end, probe->stream, err) ||
            keep_best(probe, (double)COPY_BYTES, ret_rate, err))
            return -1;
    return 0;
}

static int measure_copies(struct probe *probe, struct lab_device_limits *limits,
                          struct lab_err *err) {
    struct lab_device *device = &probe->device->base;
    struct lab_buffer a = {0}, b = {0}, host = {0};
    int status =
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, COPY_BYTES, &a, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, COPY_BYTES, &b, err) ||
        lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, device->ref.node, COPY_BYTES, &host, err);
    if (!status)
        status = copy_rate(probe, a.data, host.data, LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED,
                           &limits->h2d_bytes_per_s, err) ||
                 copy_rate(probe, host.data, a.data, LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE,
                           &limits->d2h_bytes_per_s, err) ||
                 copy_rate(probe, b.data, a.data, LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE,
                           &limits->memory_bytes_per_s, err);
    limits->memory_bytes_per_s *= 2; /* each byte is read and written */
    lab_buffer_close(&a);
    lab_buffer_close(&b);
    lab_buffer_close(&host);
    return status ? -1 : 0;
}

/* --- the product --- */

struct gemm {
    const struct lab_cublaslt *lt;
    lab_lt_handle handle;
    lab_lt_matmul_desc desc;
    lab_lt_layout layout; /* all three matrices are alike */
    lab_lt_preference preference;
    struct lab_lt_heuristic chosen;
    struct lab_buffer a, b, out, workspace;
};

/* Magnitudes between 1/2 and 1 with random mantissa and sign. */
static void fill_random(void *data, size_t count, enum lab_dtype dtype) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = lab_random_bits(1, i);
        if (dtype == LAB_BF16)
            ((uint16_t *)data)[i] = (uint16_t)((bits & 0x807f) | 0x3f00);
        else if (dtype == LAB_FP16)
            ((uint16_t *)data)[i] = (uint16_t)((bits & 0x83ff) | 0x3800);
        else
            ((uint32_t *)data)[i] = (uint32_t)((bits & 0x807fffff) | 0x3f000000);
    }
}

static int open_operands(struct probe *probe, struct gemm *gemm, enum lab_dtype dtype,
                         struct lab_err *err) {
    struct lab_device *device = &probe->device->base;
    size_t count = (size_t)GEMM_SIZE * GEMM_SIZE, bytes = count * lab_dtype_bytes(dtype);
    if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &gemm->a, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &gemm->b, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &gemm->out, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, WORKSPACE_BYTES, &gemm->workspace, err))
        return -1;
    LAB_AUTO_FREE void *host = lab_mem_alloc(1, bytes);
    fill_random(host, count, dtype);
    int status = lab_copy(probe->stream, gemm->a.data, host, bytes, LAB_MEMORY_DEVICE,
                          LAB_MEMORY_HOST_PAGEABLE, err) ||
                 lab_copy(probe->stream, gemm->b.data, host, bytes, LAB_MEMORY_DEVICE,
                          LAB_MEMORY_HOST_PAGEABLE, err) ||
                 lab_stream_sync(probe->stream, err);
    return status ? -1 : 0;
}

static int lt_check(lab_lt_status status, const char *call, struct lab_err *err) {
    if (status == LAB_LT_SUCCESS)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s: %s (%d)", call, lab_cublaslt_status_text(status),
                       status);
}

static int choose(struct probe *probe, struct gemm *gemm, enum lab_dtype dtype,
                  struct lab_err *err) {
    const struct lab_cublaslt *lt = gemm->lt;
    int compute = dtype == LAB_TF32 ? LAB_LT_COMPUTE_32F_TF32 : LAB_LT_COMPUTE_32F;
    int type = dtype == LAB_BF16 ? LAB_LT_R_16BF : dtype == LAB_FP16 ? LAB_LT_R_16F : LAB_LT_R_32F;
    int32_t transpose = LAB_LT_OP_T, sm_count = probe->device->sm_count;
    uint64_t workspace_bytes = WORKSPACE_BYTES;
    int count = 0;
    if (lt_check(lt->cublasLtCreate(&gemm->handle), "cublasLtCreate", err) ||
        lt_check(lt->cublasLtMatmulDescCreate(&gemm->desc, compute, LAB_LT_R_32F),
                 "cublasLtMatmulDescCreate", err) ||
        lt_check(lt->cublasLtMatmulDescSetAttribute(gemm->desc, LAB_LT_DESC_TRANSA, &transpose,
                                                    sizeof transpose),
                 "cublasLtMatmulDescSetAttribute", err) ||
        lt_check(
            lt->cublasLtMatrixLayoutCreate(&gemm->layout, type, GEMM_SIZE, GEMM_SIZE, GEMM_SIZE),
            "cublasLtMatrixLayoutCreate", err) ||
        lt_check(lt->cublasLtMatmulPreferenceCreate(&gemm->preference),
                 "cublasLtMatmulPreferenceCreate", err) ||
        lt_check(lt->cublasLtMatmulPreferenceSetAttribute(gemm->preference,
                                                          LAB_LT_PREFERENCE_MAX_WORKSPACE,
                                                          &workspace_bytes, sizeof workspace_bytes),
                 "cublasLtMatmulPreferenceSetAttribute", err))
        return -1;
    if (probe->device->green) /* a wish: without it a slice's grid is planned for the whole GPU */
        lt->cublasLtMatmulDescSetAttribute(gemm->desc, LAB_LT_DESC_SM_COUNT_TARGET, &sm_count,
                                           sizeof sm_count);
    if (lt_check(lt->cublasLtMatmulAlgoGetHeuristic(gemm->handle, gemm->desc, gemm->layout,
                                                    gemm->layout, gemm->layout, gemm->layout,
                                                    gemm->preference, 1, &gemm->chosen, &count),
                 "cublasLtMatmulAlgoGetHeuristic", err))
        return -1;
    return count > 0 ? 0
                     : lab_err_set(err, LAB_ERR_UNSUPPORTED, "cuBLASLt has no product in %s here",
                                   lab_dtype_name(dtype));
}

static int multiply(struct probe *probe, struct gemm *gemm, struct lab_err *err) {
    static const float one = 1, zero = 0;
    return lt_check(gemm->lt->cublasLtMatmul(
                        gemm->handle, gemm->desc, &one, gemm->a.data, gemm->layout, gemm->b.data,
                        gemm->layout, &zero, gemm->out.data, gemm->layout, gemm->out.data,
                        gemm->layout, &gemm->chosen.algo, gemm->workspace.data, WORKSPACE_BYTES,
                        ((struct cuda_stream *)probe->stream)->handle),
                    "cublasLtMatmul", err);
}

static int run_rounds(struct probe *probe, struct gemm *gemm, double *ret_flops,
                      struct lab_err *err) {
    double flops = 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE * GEMM_REPEATS;
    for (int round = 0; round < GEMM_ROUNDS; round++) {
        int status = lab_event_record(probe->start, probe->stream, err);
        for (int i = 0; i < GEMM_REPEATS && !status; i++)
            status = multiply(probe, gemm, err);
        if (status || lab_event_record(probe->end, probe->stream, err) ||
            keep_best(probe, flops, ret_flops, err))
            return -1;
    }
    return 0;
}

static int measure_flops(struct probe *probe, enum lab_dtype dtype, double *ret_flops,
                         struct lab_err *err) {
    struct gemm gemm = {.lt = lab_cublaslt_load(NULL)};
    int status = open_operands(probe, &gemm, dtype, err) || choose(probe, &gemm, dtype, err) ||
                 run_rounds(probe, &gemm, ret_flops, err);
    if (gemm.preference)
        gemm.lt->cublasLtMatmulPreferenceDestroy(gemm.preference);
    if (gemm.layout)
        gemm.lt->cublasLtMatrixLayoutDestroy(gemm.layout);
    if (gemm.desc)
        gemm.lt->cublasLtMatmulDescDestroy(gemm.desc);
    if (gemm.handle)
        gemm.lt->cublasLtDestroy(gemm.handle);
    lab_buffer_close(&gemm.a);
    lab_buffer_close(&gemm.b);
    lab_buffer_close(&gemm.out);
    lab_buffer_close(&gemm.workspace);
    return status ? -1 : 0;
}

/* --- all of it --- */

static int measure(struct probe *probe, enum lab_dtype dtype, struct lab_device_limits *limits,
                   struct lab_err *err) {
    struct lab_device *device = &probe->device->base;
    if (lab_stream_open(device, LAB_STREAM_COMPUTE, &probe->stream, err) ||
        lab_event_open(device, &probe->start, err) || lab_event_open(device, &probe->end, err) ||
        measure_copies(probe, limits, err))
        return -1;
    limits->how = lab_arena_printf(
        &probe->device->arena, "%s; copies of %zu MiB, pinned memory on the GPU's NUMA node",
        lab_cublaslt_ready() ? "a product of 4096 x 4096 matrices by cuBLASLt"
                             : "flops unknown: cuBLASLt wasn't found",
        COPY_BYTES >> 20);
    return lab_cublaslt_ready() ? measure_flops(probe, dtype, &limits->flops_per_s, err) : 0;
}

int cuda_limits(struct lab_device *base, enum lab_dtype dtype, struct lab_device_limits *ret_limits,
                struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    if (!device->limits_known[dtype]) {
        struct probe probe = {.device = device};
        struct lab_device_limits limits = {0};
        struct lab_err why = LAB_ERR_INIT;
        int status = measure(&probe, dtype, &limits, &why);
        lab_event_close(probe.start);
        lab_event_close(probe.end);
        lab_stream_close(probe.stream);
        if (status && why.code == LAB_ERR_MEMORY) /* what was to be measured may fit all the same */
            limits = (struct lab_device_limits){
                .how = lab_arena_printf(&device->arena, "unknown: %s", why.text)};
        else if (status)
            return lab_err_set(err, why.code, "measuring the limits of %s: %s", base->ref.name,
                               why.text);
        device->limits[dtype] = limits;
        device->limits_known[dtype] = true;
    }
    *ret_limits = device->limits[dtype];
    return 0;
}
