/*
 * kernels.c: launches, as plan.c has them, put on streams.
 *
 * Inside graphs our kernels are launched "dependent": their blocks may be set up while the kernel
 * before them still drains, and wait inside (wait_for_previous in kernels/common.cuh) until its
 * results are there. It saves about a microsecond between two kernels, which counts where a model
 * consists of short ones. GPULAB_DEPENDENT_LAUNCH=0 turns it off, to compare.
 */
#include "device/cuda/kernels.h"

#include "base/str.h"
#include "device/cuda/compile.h"
#include "vendor/cublaslt.h"
#include "vendor/nvrtc.h"

#include <stdlib.h>

#define DEPENDENT_CAPABILITY 90    /* of the GPU */
#define DEPENDENT_DRIVER     12030 /* the first that captures it into graphs */

static bool may_depend(const struct cuda_device *device) {
    const char *wanted = getenv("GPULAB_DEPENDENT_LAUNCH");
    return device->capability >= DEPENDENT_CAPABILITY && lab_cuda_version() >= DEPENDENT_DRIVER &&
           !lab_str_equal(wanted, "0");
}

static struct cuda_kernels *kernels_of(struct cuda_device *device) {
    if (!device->kernels) {
        struct cuda_kernels *kernels = lab_mem_alloc(1, sizeof *kernels);
        kernels->dependent = may_depend(device);
        device->kernels = kernels;
    }
    return device->kernels;
}

static struct cuda_capacity capacity_of(const struct cuda_device *device) {
    return (struct cuda_capacity){device->sm_count, device->shared_bytes_max, device->capability};
}

static lab_cu_tensor_type type_of(enum lab_dtype dtype) {
    switch (dtype) {
    case LAB_FP32:
        return LAB_CU_TENSOR_FLOAT32;
    case LAB_TF32:
        return LAB_CU_TENSOR_TFLOAT32; /* rounded on the way */
    case LAB_BF16:
        return LAB_CU_TENSOR_BFLOAT16;
    case LAB_FP16:
        return LAB_CU_TENSOR_FLOAT16;
    }
    return LAB_CU_TENSOR_FLOAT32;
}

static lab_cu_tensor_swizzle swizzle_of(int bytes) {
    return bytes == 128  ? LAB_CU_TENSOR_SWIZZLE_128B
           : bytes == 64 ? LAB_CU_TENSOR_SWIZZLE_64B
           : bytes == 32 ? LAB_CU_TENSOR_SWIZZLE_32B
                         : LAB_CU_TENSOR_SWIZZLE_NONE;
}

static int encode(const struct lab_cuda *cuda, const struct cuda_map *map,
                  struct lab_cu_tensor_map *ret_map, struct lab_err *err) {
    static const uint32_t side_by_side[CUDA_MAP_RANK] = {1, 1, 1, 1, 1};
    if (!cuda->cuTensorMapEncodeTiled)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "the NVIDIA driver lacks cuTensorMapEncodeTiled: " LAB_CUDA_TENSOR_MAP);
    if (cuda_map_check(map, err))
        return -1;
    return cuda_check(
        cuda->cuTensorMapEncodeTiled(ret_map, type_of(map->dtype), (uint32_t)map->rank, map->data,
                                     map->sizes, map->strides_bytes, map->box, side_by_side,
                                     LAB_CU_TENSOR_INTERLEAVE_NONE, swizzle_of(map->swizzle_bytes),
                                     LAB_CU_TENSOR_PROMOTION_256B, LAB_CU_TENSOR_FILL_NONE),
        "cuTensorMapEncodeTiled", err);
}

/* The launch's attributes; returns how many. */
static unsigned set_attributes(const struct cuda_call *call, bool dependent,
                               struct lab_cu_launch_attribute attributes[2]) {
    unsigned count = 0;
    if (dependent)
        attributes[count++] =
            (struct lab_cu_launch_attribute){.id = LAB_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION,
                                             .value = {.programmatic_serialization = 1}};
    if (call->cluster > 1)
        attributes[count++] = (struct lab_cu_launch_attribute){
            .id = LAB_CU_LAUNCH_CLUSTER, .value = {.cluster = {call->cluster, 1, 1}}};
    return count;
}

/* How many blocks along x: of a persistent kernel no more than whole clusters that run at once. */
static unsigned grid_of(const struct cuda_device *device, const struct cuda_call *call,
                        struct cuda_module *module, const struct lab_cu_launch_config *config) {
    if (!call->persistent || call->cluster < 2 || !device->cuda->cuOccupancyMaxActiveClusters)
        return call->grid[0];
    if (!module->clusters || module->clusters_shared_bytes != call->shared_bytes) {
        int count = 0;
        if (device->cuda->cuOccupancyMaxActiveClusters(&count, module->function, config) !=
                LAB_CU_SUCCESS ||
            count < 1)
            return call->grid[0]; /* the launch will say what is wrong */
        module->clusters = count;
        module->clusters_shared_bytes = call->shared_bytes;
    }
    unsigned fit = (unsigned)module->clusters * call->cluster;
    return call->grid[0] < fit ? call->grid[0] : fit;
}

static int put(struct cuda_stream *stream, struct cuda_call *call, struct lab_err *err) {
    const struct cuda_device *device = (const struct cuda_device *)stream->base.device;
    struct cuda_kernels *kernels = device->kernels;
    struct cuda_module *module;
    void *arguments[CUDA_ARGUMENTS];
    const char *letters = cuda_kernel_rows[call->variant.kernel].arguments;
    struct lab_cu_tensor_map maps[CUDA_MAPS];
    struct lab_cu_launch_attribute attributes[2];
    if (cuda_module_get(&kernels->modules, device, &call->variant, &module, err))
        return -1;
    for (int i = 0; i < call->map_count; i++)
        if (encode(device->cuda, &call->maps[i], &maps[i], err))
            return -1;
    for (int i = 0; i < call->argument_count; i++)
        arguments[i] = letters[i] == 'm' ? (void *)&maps[call->arguments[i]] : &call->arguments[i];
    struct lab_cu_launch_config config = {
        .grid_x = call->grid[0],
        .grid_y = call->grid[1],
        .grid_z = call->grid[2],
        .block_x = call->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = call->shared_bytes,
        .stream = stream->handle,
        .attributes = attributes,
        .attribute_count =
            set_attributes(call, kernels->dependent && stream->base.capturing, attributes),
    };
    config.grid_x = grid_of(device, call, module, &config);
    return cuda_check(device->cuda->cuLaunchKernelEx(&config, module->function, arguments, NULL),
                      "cuLaunchKernelEx", err);
}

int cuda_kernels_get(struct cuda_device *device, const struct cuda_variant *variant,
                     struct cuda_module **ret_module, struct lab_err *err) {
    if (cuda_enter(device, err))
        return -1;
    return cuda_module_get(&kernels_of(device)->modules, device, variant, ret_module, err);
}

int cuda_kernels_put(struct cuda_stream *stream, struct cuda_call *call, struct lab_err *err) {
    kernels_of((struct cuda_device *)stream->base.device);
    return put(stream, call, err);
}

static int lower(struct cuda_stream *stream, const struct lab_launch *launch, struct lab_err *err) {
    struct lab_launch parts[LAB_OP_PARTS];
    int count = lab_op_get(launch->op)->lower(launch, parts);
    for (int i = 0; i < count; i++)
        if (lab_launch(&stream->base, &parts[i], err))
            return -1;
    return 0;
}

static int multiply(struct cuda_stream *stream, const struct lab_launch *launch,
                    struct lab_err *err) {
    struct cuda_kernels *kernels = kernels_of((struct cuda_device *)stream->base.device);
    bool fused = true;
    if (cuda_gemm_launch(&kernels->gemms, stream, launch, &fused, err))
        return -1;
    return fused ? 0 : lower(stream, launch, err);
}

/* --- launches of several parts --- */

static int find_scratch(struct cuda_stream *stream, size_t size_bytes, lab_cu_pointer *ret_memory,
                        struct lab_err *err) {
    if (!stream->kernels)
        stream->kernels = lab_mem_alloc(1, sizeof(struct cuda_workspace));
    struct cuda_workspace *workspace = stream->kernels;
    if (!workspace->scratch || workspace->scratch->size_bytes < size_bytes) {
        lab_cu_pointer memory;
        if (cuda_memory_alloc((struct cuda_device *)stream->base.device, size_bytes, &memory, err))
            return -1;
        struct cuda_scratch *scratch = lab_mem_alloc(1, sizeof *scratch);
        *scratch = (struct cuda_scratch){memory, size_bytes, workspace->scratch};
        workspace->scratch = scratch;
    }
    *ret_memory = workspace->scratch->memory;
    return 0;
}

static int put_parts(struct cuda_stream *stream, const struct lab_launch *launch,
                     struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)stream->base.device;
    lab_cu_pointer scratch = 0;
    int count = 0, status;
    size_t bytes = (size_t)cuda_parts_bytes(launch, capacity_of(device));
    if (find_scratch(stream, bytes, &scratch, err))
        return -1;
    struct cuda_part *parts = lab_mem_alloc(CUDA_PARTS, sizeof *parts);
    status = cuda_plan_parts(launch, capacity_of(device), (void *)(uintptr_t)scratch, parts, &count,
                             err);
    for (int i = 0; i < count && status == 0; i++)
        status = parts[i].is_product ? multiply(stream, &parts[i].product, err)
                                     : put(stream, &parts[i].call, err);
    lab_mem_free(parts);
    return status;
}

static void prepare_parts(const struct cuda_device *device, const struct lab_launch *launch) {
    int count = 0;
    LAB_AUTO_FREE struct cuda_part *parts = lab_mem_alloc(CUDA_PARTS, sizeof *parts);
    if (cuda_plan_parts(launch, capacity_of(device), NULL, parts, &count, NULL) == 0)
        for (int i = 0; i < count; i++)
            if (!parts[i].is_product)
                cuda_code_request(&parts[i].call.variant, device->capability);
}

int cuda_launch(struct cuda_stream *stream, const struct lab_launch *launch, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)stream->base.device;
    struct cuda_call call;
    enum cuda_way way;
    int status = cuda_plan(launch, capacity_of(device), &way, &call, err);
    kernels_of(device);
    if (status == 0 && way == CUDA_WAY_GEMM)
        status = multiply(stream, launch, err);
    else if (status == 0 && way == CUDA_WAY_LOWER)
        status = lower(stream, launch, err);
    else if (status == 0 && way == CUDA_WAY_PARTS)
        status = put_parts(stream, launch, err);
    else if (status == 0)
        status = put(stream, &call, err);
    return status ? lab_err_context(err, "%s", lab_op_get(launch->op)->name) : 0;
}

static void prepare(const struct cuda_device *device, const struct lab_launch *launch) {
    struct lab_launch complete = *launch, parts[LAB_OP_PARTS];
    struct cuda_call call;
    enum cuda_way way = CUDA_WAY_LOWER;
    const struct lab_op *op = lab_op_get(launch->op);
    if (lab_launch_complete(&complete, NULL) ||
        (cuda_supports(launch->op, lab_launch_dtype(launch), device->capability) &&
         cuda_plan(&complete, capacity_of(device), &way, &call, NULL)))
        return;
    if (way == CUDA_WAY_KERNEL)
        cuda_code_request(&call.variant, device->capability);
    if (way == CUDA_WAY_PARTS)
        prepare_parts(device, &complete);
    if (way == CUDA_WAY_LOWER && op->lower) {
        int count = op->lower(&complete, parts);
        for (int i = 0; i < count; i++)
            prepare(device, &parts[i]);
    }
}

void cuda_prepare(struct cuda_device *device, const struct lab_launch *launches, int count) {
    for (int i = 0; i < count; i++)
        prepare(device, &launches[i]);
}

static const char *missing(const char *title, const char *use, const struct lab_dl_report *report,
                           struct lab_arena *arena) {
    return lab_arena_printf(arena,
                            "%s, which %s, isn't here (%s); it comes with the CUDA toolkit and "
                            "with PyTorch",
                            title, use,
                            report->reason ? report->reason : "functions of it are missing");
}

const char *cuda_lacks(struct lab_arena *arena) {
    const struct lab_dl_report *report;
    lab_nvrtc_load(&report);
    if (!lab_nvrtc_ready())
        return missing("NVRTC", "compiles kernels", report, arena);
    lab_cublaslt_load(&report);
    if (!lab_cublaslt_ready())
        return missing("cuBLASLt", "multiplies matrices", report, arena);
    return NULL;
}

void cuda_kernels_close(struct cuda_device *device) {
    struct cuda_kernels *kernels = device->kernels;
    cuda_code_settle();
    if (!kernels)
        return;
    cuda_modules_release(&kernels->modules, device);
    cuda_gemms_release(&kernels->gemms);
    lab_mem_free(kernels);
    device->kernels = NULL;
}

void cuda_kernels_stream_close(struct cuda_stream *stream) {
    struct cuda_workspace *workspace = stream->kernels;
    if (!workspace)
        return;
    struct cuda_device *device = (struct cuda_device *)stream->base.device;
    for (struct cuda_scratch *next, *at = workspace->scratch; at; at = next) {
        next = at->next;
        cuda_memory_free(device, at->memory);
        lab_mem_free(at);
    }
    cuda_memory_free(device, workspace->memory);
    lab_mem_free(workspace);
    stream->kernels = NULL;
}
