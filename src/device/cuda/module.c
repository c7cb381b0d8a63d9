/* module.c: a hash table of loaded kernels, one library for each: a variant is a single
 * function. */
#include "device/cuda/module.h"

#include "base/clock.h"
#include "base/log.h"
#include "device/cuda/compile.h"

#include <string.h>

/* The variant's slot, or the empty one where it belongs. */
static struct cuda_module *slot_of(const struct cuda_modules *modules,
                                   const struct cuda_variant *variant) {
    uint64_t at = cuda_hash(variant, sizeof *variant);
    for (;; at++) {
        struct cuda_module *slot = &modules->slots[at & (uint64_t)(modules->capacity - 1)];
        if (!slot->library || memcmp(&slot->variant, variant, sizeof *variant) == 0)
            return slot;
    }
}

static void grow(struct cuda_modules *modules) {
    struct cuda_modules larger = {.count = modules->count,
                                  .capacity = modules->capacity ? 2 * modules->capacity : 64};
    larger.slots = lab_mem_alloc((size_t)larger.capacity, sizeof *larger.slots);
    for (int i = 0; i < modules->capacity; i++)
        if (modules->slots[i].library)
            *slot_of(&larger, &modules->slots[i].variant) = modules->slots[i];
    lab_mem_free(modules->slots);
    *modules = larger;
}

/*
 * Dynamic shared memory beyond 48 KiB has to be asked for, and so have clusters of more than 8
 * blocks; asking costs a launch nothing that doesn't use them.
 */
static int allow_all(const struct cuda_device *device, lab_cu_kernel kernel,
                     const struct cuda_variant *variant, struct lab_err *err) {
    int fixed_bytes = 0;
    if (cuda_kernel_rows[variant->kernel].architectures != CUDA_FROM_80 &&
        cuda_check(device->cuda->cuKernelSetAttribute(LAB_CU_FUNCTION_NON_PORTABLE_CLUSTER, 1,
                                                      kernel, device->ordinal),
                   "cuKernelSetAttribute", err))
        return -1;
    device->cuda->cuKernelGetAttribute(&fixed_bytes, LAB_CU_FUNCTION_SHARED_BYTES, kernel,
                                       device->ordinal);
    return cuda_check(device->cuda->cuKernelSetAttribute(LAB_CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                                         device->shared_bytes_max - fixed_bytes,
                                                         kernel, device->ordinal),
                      "cuKernelSetAttribute", err);
}

static int load(const struct cuda_device *device, const struct cuda_variant *variant,
                struct cuda_module *ret_module, struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    struct cuda_module module = {.variant = *variant};
    struct cuda_code code;
    lab_cu_kernel kernel;
    if (cuda_code_get(variant, device->capability, &code, err))
        return -1;
    if (cuda_check(
            cuda->cuLibraryLoadData(&module.library, code.bytes, NULL, NULL, 0, NULL, NULL, 0),
            "cuLibraryLoadData", err))
        return -1;
    if (cuda_check(cuda->cuLibraryGetKernel(&kernel, module.library,
                                            cuda_kernel_rows[variant->kernel].name),
                   "cuLibraryGetKernel", err) ||
        allow_all(device, kernel, variant, err) ||
        cuda_check(cuda->cuKernelGetFunction(&module.function, kernel), "cuKernelGetFunction",
                   err)) {
        cuda->cuLibraryUnload(module.library);
        return -1;
    }
    *ret_module = module;
    return 0;
}

int cuda_module_get(struct cuda_modules *modules, const struct cuda_device *device,
                    const struct cuda_variant *variant, struct cuda_module **ret_module,
                    struct lab_err *err) {
    if (2 * modules->count >= modules->capacity)
        grow(modules);
    struct cuda_module *slot = slot_of(modules, variant);
    if (!slot->library) {
        char name[CUDA_VARIANT_NAME_BYTES];
        int64_t start_ns = lab_clock_now(lab_clock_system());
        cuda_variant_name(variant, name);
        if (load(device, variant, slot, err))
            return lab_err_context(err, "kernel '%s'", name);
        modules->count++;
        lab_log(LAB_LOG_DEBUG, "kernel '%s' was ready after %.2f ms", name,
                (double)(lab_clock_now(lab_clock_system()) - start_ns) / (double)LAB_NS_PER_MS);
    }
    *ret_module = slot;
    return 0;
}

void cuda_modules_release(struct cuda_modules *modules, const struct cuda_device *device) {
    for (int i = 0; i < modules->capacity; i++)
        if (modules->slots[i].library)
            device->cuda->cuLibraryUnload(modules->slots[i].library);
    lab_mem_free(modules->slots);
    *modules = (struct cuda_modules){0};
}
