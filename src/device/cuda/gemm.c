/*
 * gemm.c: products on streams, and their plans.
 *
 * cuBLASLt's matrices are column-major, ours row-major, so it is given our product turned round:
 * out[m,n] is its n × m matrix, computed as op(b) · op(a) with our b as its A. A bias runs along
 * its rows, which are our columns, as it should be. What is added lies under beta = 1 and may be
 * the output itself.
 *
 * Arithmetic: fp32 never takes tf32 units (unless NVIDIA_TF32_OVERRIDE says so), tf32 does; bf16
 * and fp16 add up in fp32, and partial sums of one product aren't rounded in between. The library's
 * GELU is the tanh approximation, off by 5e-4 at most: four times below tf32's tolerance, more
 * below the others'; fp32 has GELU as a kernel of its own.
 */
#include "device/cuda/gemm.h"

#include <string.h>

#define CANDIDATES 8

_Static_assert(sizeof(struct cuda_gemm_key) == 20, "a key has no padding");

/* --- what the ops mean --- */

bool cuda_gemm_adds(enum lab_op_id op) {
    return op == LAB_OP_GEMM_ADD || op == LAB_OP_GEMM_BIAS_ADD;
}

bool cuda_gemm_has_bias(enum lab_op_id op) {
    return op == LAB_OP_GEMM_BIAS || op == LAB_OP_GEMM_BIAS_GELU || op == LAB_OP_GEMM_BIAS_ADD ||
           op == LAB_OP_GEMM_BIAS_GELU_TANH;
}

bool cuda_gemm_has_aux(enum lab_op_id op) {
    return op == LAB_OP_GEMM_BIAS_GELU_TANH || op == LAB_OP_GEMM_GELU_TANH_BACKWARD;
}

static uint32_t epilogue_of(enum lab_op_id op) {
    if (op == LAB_OP_GEMM_BIAS_GELU)
        return LAB_LT_EPILOGUE_GELU_BIAS;
    if (op == LAB_OP_GEMM_BIAS_GELU_TANH)
        return LAB_LT_EPILOGUE_GELU_AUX_BIAS;
    if (op == LAB_OP_GEMM_GELU_TANH_BACKWARD)
        return LAB_LT_EPILOGUE_DGELU;
    return cuda_gemm_has_bias(op) ? LAB_LT_EPILOGUE_BIAS : LAB_LT_EPILOGUE_DEFAULT;
}

static lab_lt_data_type data_type_of(enum lab_dtype dtype) {
    return dtype == LAB_BF16 ? LAB_LT_R_16BF : dtype == LAB_FP16 ? LAB_LT_R_16F : LAB_LT_R_32F;
}

static struct cuda_gemm_operands operands_of(const struct lab_launch *launch) {
    bool adds = cuda_gemm_adds(launch->op), has_bias = cuda_gemm_has_bias(launch->op);
    char *out = launch->out.data;
    if (launch->op == LAB_OP_GEMM_BIAS_GELU_TANH) /* its first half stands before the activation */
        out += lab_tensor_bytes(&launch->out) / 2;
    return (struct cuda_gemm_operands){
        .a = launch->in[0].data,
        .b = launch->in[1].data,
        .bias = has_bias ? launch->in[2].data : NULL,
        .c = adds ? launch->in[has_bias ? 3 : 2].data : NULL,
        .aux = launch->op == LAB_OP_GEMM_BIAS_GELU_TANH       ? launch->out.data
               : launch->op == LAB_OP_GEMM_GELU_TANH_BACKWARD ? launch->in[2].data
                                                              : NULL,
        .d = out,
    };
}

/* Up to 256 bytes, beyond which nothing changes. */
static uint8_t alignment_of(const void *memory) {
    uintptr_t bits = (uintptr_t)memory | 256;
    return (uint8_t)__builtin_ctzll(bits);
}

struct cuda_gemm_key cuda_gemm_key_of(const struct lab_launch *launch) {
    struct cuda_gemm_operands o = operands_of(launch);
    const struct lab_tensor *a = &launch->in[0];
    return (struct cuda_gemm_key){
        .m = (int32_t)lab_gemm_shape(launch).m,
        .n = (int32_t)lab_tensor_columns(&launch->out),
        .k = (int32_t)a->shape[launch->transpose_a ? 0 : a->rank - 1],
        .op = (uint8_t)launch->op,
        .dtype = (uint8_t)a->dtype,
        .out_dtype = (uint8_t)launch->out.dtype,
        .turned = (uint8_t)(launch->transpose_a | launch->transpose_b << 1),
        .aligned = {alignment_of(o.a), alignment_of(o.b),
                    alignment_of(o.aux ? o.aux
                                 : o.c ? o.c
                                       : o.d),
                    alignment_of(o.d)},
    };
}

/* --- the library --- */

static int lt_fail(lab_lt_status status, const char *call, struct lab_err *err) {
    bool full = status == LAB_LT_ALLOC_FAILED;
    lab_err_set(err, full ? LAB_ERR_MEMORY : LAB_ERR_SYSTEM, "%s: %s (%d)", call,
                lab_cublaslt_status_text(status), status);
    return full ? lab_err_hint(err, LAB_HINT_OUT_OF_MEMORY) : -1;
}

static int gemms_open(struct cuda_gemms *gemms, struct lab_err *err) {
    if (gemms->lt)
        return 0;
    const struct lab_dl_report *report;
    const struct lab_cublaslt *lt = lab_cublaslt_load(&report);
    if (!lab_cublaslt_ready())
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "cuBLASLt, which does matrix products, was not found: %s; it comes with "
                           "the CUDA toolkit and with PyTorch",
                           report->reason ? report->reason : "functions of it are missing");
    lab_lt_status status = lt->cublasLtCreate(&gemms->handle);
    int library = (int)(lab_cublaslt_version() / 10000), driver = lab_cuda_version() / 1000;
    if (status != LAB_LT_SUCCESS && library > driver)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "cublasLtCreate: %s (%d); %s is of CUDA %d and the driver for CUDA %d: "
                           "install cuBLAS of CUDA %d or a newer driver",
                           lab_cublaslt_status_text(status), status, report->path, library, driver,
                           driver);
    if (status != LAB_LT_SUCCESS)
        return lt_fail(status, "cublasLtCreate", err);
    gemms->lt = lt;
    return 0;
}

lab_lt_status cuda_gemm_enqueue(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan,
                                const struct cuda_gemm_operands *operands,
                                const struct lab_lt_algo *algo, lab_cu_pointer workspace,
                                size_t workspace_bytes, lab_cu_stream stream) {
    float one = 1.0f, beta = operands->c ? 1.0f : 0.0f;
    lab_lt_status status = LAB_LT_SUCCESS;
    if (operands->bias != plan->bias)
        status = gemms->lt->cublasLtMatmulDescSetAttribute(plan->desc, LAB_LT_DESC_BIAS_POINTER,
                                                           &operands->bias, sizeof operands->bias);
    if (operands->aux != plan->aux && status == LAB_LT_SUCCESS)
        status = gemms->lt->cublasLtMatmulDescSetAttribute(plan->desc, LAB_LT_DESC_AUX_POINTER,
                                                           &operands->aux, sizeof operands->aux);
    if (status != LAB_LT_SUCCESS)
        return status;
    plan->bias = operands->bias;
    plan->aux = operands->aux;
    return gemms->lt->cublasLtMatmul(
        gemms->handle, plan->desc, &one, operands->b, plan->layouts[CUDA_GEMM_B], operands->a,
        plan->layouts[CUDA_GEMM_A], &beta, operands->c ? operands->c : operands->d,
        plan->layouts[CUDA_GEMM_D], operands->d, plan->layouts[CUDA_GEMM_D], algo,
        (void *)(uintptr_t)workspace, workspace_bytes, stream);
}

/* --- plans --- */

static void plan_release(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan) {
    if (plan->desc)
        gemms->lt->cublasLtMatmulDescDestroy(plan->desc);
    for (int i = 0; i < 4; i++)
        if (plan->layouts[i])
            gemms->lt->cublasLtMatrixLayoutDestroy(plan->layouts[i]);
}

static lab_lt_status make_desc(const struct cuda_gemms *gemms, const struct cuda_device *device,
                               struct cuda_gemm_plan *plan,
                               const struct cuda_gemm_operands *operands) {
    const void *bias = operands->bias, *aux = operands->aux;
    int64_t aux_columns = plan->key.n;
    const struct lab_cublaslt *lt = gemms->lt;
    const struct cuda_gemm_key *key = &plan->key;
    int32_t transpose_a = key->turned & 2 ? LAB_LT_OP_T : LAB_LT_OP_N;
    int32_t transpose_b = key->turned & 1 ? LAB_LT_OP_T : LAB_LT_OP_N;
    uint32_t epilogue = epilogue_of((enum lab_op_id)key->op);
    int32_t sm_count = device->sm_count;
    lab_lt_status status = lt->cublasLtMatmulDescCreate(
        &plan->desc, key->dtype == LAB_TF32 ? LAB_LT_COMPUTE_32F_TF32 : LAB_LT_COMPUTE_32F,
        LAB_LT_R_32F);
    const struct {
        lab_lt_desc_attribute attribute;
        const void *value;
        size_t size_bytes;
        bool wanted;
    } attributes[] = {
        {LAB_LT_DESC_TRANSA, &transpose_a, sizeof transpose_a, true},
        {LAB_LT_DESC_TRANSB, &transpose_b, sizeof transpose_b, true},
        {LAB_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue, true},
        {LAB_LT_DESC_BIAS_POINTER, &bias, sizeof bias, bias != NULL},
        {LAB_LT_DESC_AUX_POINTER, &aux, sizeof aux, aux != NULL},
        {LAB_LT_DESC_AUX_LD, &aux_columns, sizeof aux_columns, aux != NULL},
        {LAB_LT_DESC_SM_COUNT_TARGET, &sm_count, sizeof sm_count, device->green != NULL},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (status == LAB_LT_SUCCESS && attributes[i].wanted)
            status = lt->cublasLtMatmulDescSetAttribute(
                plan->desc, attributes[i].attribute, attributes[i].value, attributes[i].size_bytes);
    plan->bias = bias;
    plan->aux = aux;
    return status;
}

/* A row-major [rows, columns] is the library's columns × rows. */
static lab_lt_status make_layout(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan,
                                 enum cuda_gemm_operand operand, int64_t rows, int64_t columns) {
    uint8_t dtype = operand == CUDA_GEMM_D ? plan->key.out_dtype : plan->key.dtype;
    return gemms->lt->cublasLtMatrixLayoutCreate(&plan->layouts[operand],
                                                 data_type_of((enum lab_dtype)dtype),
                                                 (uint64_t)columns, (uint64_t)rows, columns);
}

static lab_lt_status make_layouts(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan) {
    int64_t m = plan->key.m, n = plan->key.n, k = plan->key.k;
    bool turned_a = plan->key.turned & 1, turned_b = plan->key.turned & 2;
    lab_lt_status status =
        make_layout(gemms, plan, CUDA_GEMM_A, turned_a ? k : m, turned_a ? m : k);
    if (status == LAB_LT_SUCCESS)
        status = make_layout(gemms, plan, CUDA_GEMM_B, turned_b ? n : k, turned_b ? k : n);
    if (status == LAB_LT_SUCCESS)
        status = make_layout(gemms, plan, CUDA_GEMM_D, m, n);
    return status;
}

/* Partial sums may be added in place or in fp32, never rounded to the output's type. */
#define REDUCTIONS (1u | 2u)

static lab_lt_status ask(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan,
                         struct lab_lt_heuristic *ret_algorithms, int *ret_count) {
    const struct lab_cublaslt *lt = gemms->lt;
    lab_lt_preference preference;
    lab_lt_status status = lt->cublasLtMatmulPreferenceCreate(&preference);
    if (status != LAB_LT_SUCCESS)
        return status;
    uint64_t workspace_bytes = CUDA_GEMM_WORKSPACE_BYTES;
    uint32_t reductions = REDUCTIONS;
    /* ours by the library's names: its A is our b */
    static const enum cuda_gemm_operand order[] = {CUDA_GEMM_B, CUDA_GEMM_A, CUDA_GEMM_C,
                                                   CUDA_GEMM_D};
    status = lt->cublasLtMatmulPreferenceSetAttribute(preference, LAB_LT_PREFERENCE_MAX_WORKSPACE,
                                                      &workspace_bytes, sizeof workspace_bytes);
    if (status == LAB_LT_SUCCESS)
        status = lt->cublasLtMatmulPreferenceSetAttribute(
            preference, LAB_LT_PREFERENCE_REDUCTION_MASK, &reductions, sizeof reductions);
    for (int i = 0; i < 4 && status == LAB_LT_SUCCESS; i++) {
        uint32_t bytes = 1u << plan->key.aligned[order[i]];
        status = lt->cublasLtMatmulPreferenceSetAttribute(
            preference, LAB_LT_PREFERENCE_ALIGNMENT_A + i, &bytes, sizeof bytes);
    }
    if (status == LAB_LT_SUCCESS)
        status = lt->cublasLtMatmulAlgoGetHeuristic(
            gemms->handle, plan->desc, plan->layouts[CUDA_GEMM_B], plan->layouts[CUDA_GEMM_A],
            plan->layouts[CUDA_GEMM_D], plan->layouts[CUDA_GEMM_D], preference, CANDIDATES,
            ret_algorithms, ret_count);
    lt->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

/* Those that can be used, moved to the front. */
static int keep_usable(struct lab_lt_heuristic *algorithms, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (algorithms[i].state == LAB_LT_SUCCESS &&
            algorithms[i].workspace_bytes <= CUDA_GEMM_WORKSPACE_BYTES)
            algorithms[kept++] = algorithms[i];
    return kept;
}

static int plan_make(const struct cuda_gemms *gemms, struct cuda_device *device,
                     const struct cuda_gemm_key *key, const struct cuda_gemm_operands *operands,
                     struct cuda_gemm_plan *ret_plan, struct lab_err *err) {
    struct cuda_gemm_plan plan = {.key = *key, .ready = true};
    struct lab_lt_heuristic algorithms[CANDIDATES];
    int count = 0;
    lab_lt_status status = make_desc(gemms, device, &plan, operands);
    if (status == LAB_LT_SUCCESS)
        status = make_layouts(gemms, &plan);
    if (status == LAB_LT_SUCCESS)
        status = ask(gemms, &plan, algorithms, &count);
    if (status != LAB_LT_SUCCESS && status != LAB_LT_NOT_SUPPORTED) {
        plan_release(gemms, &plan);
        return lt_fail(status, "planning a matrix product with cuBLASLt", err);
    }
    count = status == LAB_LT_SUCCESS ? keep_usable(algorithms, count) : 0;
    if (count > 0) {
        int best = count > 1 ? cuda_gemm_tune(gemms, device, &plan, algorithms, count) : 0;
        plan.exists = true;
        plan.algo = algorithms[best].algo;
        plan.workspace_bytes = algorithms[best].workspace_bytes;
    }
    *ret_plan = plan;
    return 0;
}

static struct cuda_gemm_plan *slot_of(const struct cuda_gemms *gemms,
                                      const struct cuda_gemm_key *key) {
    uint64_t at = cuda_hash(key, sizeof *key);
    for (;; at++) {
        struct cuda_gemm_plan *slot = &gemms->plans[at & (uint64_t)(gemms->capacity - 1)];
        if (!slot->ready || memcmp(&slot->key, key, sizeof *key) == 0)
            return slot;
    }
}

static void grow(struct cuda_gemms *gemms) {
    struct cuda_gemms larger = *gemms;
    larger.capacity = gemms->capacity ? 2 * gemms->capacity : 64;
    larger.plans = lab_mem_alloc((size_t)larger.capacity, sizeof *larger.plans);
    for (int i = 0; i < gemms->capacity; i++)
        if (gemms->plans[i].ready)
            *slot_of(&larger, &gemms->plans[i].key) = gemms->plans[i];
    lab_mem_free(gemms->plans);
    *gemms = larger;
}

/* --- launches --- */

static int workspace_of(struct cuda_stream *stream, lab_cu_pointer *ret_memory,
                        struct lab_err *err) {
    if (!stream->kernels)
        stream->kernels = lab_mem_alloc(1, sizeof(struct cuda_workspace));
    struct cuda_workspace *workspace = stream->kernels;
    if (!workspace->memory && cuda_memory_alloc((struct cuda_device *)stream->base.device,
                                                CUDA_GEMM_WORKSPACE_BYTES, &workspace->memory, err))
        return lab_err_context(err, "workspace of matrix products");
    *ret_memory = workspace->memory;
    return 0;
}

int cuda_gemm_launch(struct cuda_gemms *gemms, struct cuda_stream *stream,
                     const struct lab_launch *launch, bool *ret_fused, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)stream->base.device;
    struct cuda_gemm_operands operands = operands_of(launch);
    struct cuda_gemm_key key = cuda_gemm_key_of(launch);
    lab_cu_pointer workspace = 0;
    if (gemms_open(gemms, err) || workspace_of(stream, &workspace, err))
        return -1;
    if (2 * gemms->count >= gemms->capacity)
        grow(gemms);
    struct cuda_gemm_plan *plan = slot_of(gemms, &key);
    if (!plan->ready) {
        if (plan_make(gemms, device, &key, &operands, plan, err))
            return -1;
        gemms->count++;
    }
    *ret_fused = plan->exists;
    if (!plan->exists)
        return lab_op_get(launch->op)->lower
                   ? 0
                   : lab_err_set(err, LAB_ERR_UNSUPPORTED,
                                 "cuBLASLt has no algorithm for %d x %d x %d in %s", key.m, key.n,
                                 key.k, lab_dtype_name(launch->out.dtype));
    lab_lt_status status = cuda_gemm_enqueue(gemms, plan, &operands, &plan->algo, workspace,
                                             CUDA_GEMM_WORKSPACE_BYTES, stream->handle);
    return status == LAB_LT_SUCCESS ? 0 : lt_fail(status, "cublasLtMatmul", err);
}

void cuda_gemms_release(struct cuda_gemms *gemms) {
    for (int i = 0; i < gemms->capacity; i++)
        if (gemms->plans[i].ready)
            plan_release(gemms, &gemms->plans[i]);
    lab_mem_free(gemms->plans);
    if (gemms->lt)
        gemms->lt->cublasLtDestroy(gemms->handle);
    *gemms = (struct cuda_gemms){0};
}
