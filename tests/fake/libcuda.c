/* libcuda.c: the fake driver's devices, contexts and memory (fake_cuda.h). */
#include "fake/fake_cuda.h"
#include "fake/fake_driver.h"

#include <pthread.h>

_Thread_local lab_cu_context fake_current;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static struct lab_cu_context_st primary[FAKE_GPUS_MAX];
static int retained[FAKE_GPUS_MAX];
static int instance = -1; /* the MIG instance that CUDA_VISIBLE_DEVICES named to cuInit */

/* --- the driver --- */

FAKE_EXPORT lab_cu_result cuGetProcAddress_v2(const char *name, void **ret_function, int version,
                                              uint64_t flags, lab_cu_query_result *ret_status);

lab_cu_result cuGetProcAddress_v2(const char *name, void **ret_function, int version,
                                  uint64_t flags, lab_cu_query_result *ret_status) {
#define ROW(function, suffix, since, effect, parameters)                                           \
    {#function, since, (void *)function##suffix},
    static const struct {
        const char *name;
        int since;
        void *address;
    } table[] = {LAB_CUDA_FUNCTIONS(ROW)};
#undef ROW
    (void)flags;
    *ret_function = NULL;
    *ret_status = 1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0 && table[i].since == version) {
            *ret_status = version <= fake_number("FAKE_CUDA_VERSION", 13000) ? 0 : 2;
            *ret_function = *ret_status == 0 ? table[i].address : NULL;
        }
    return 0;
}

/* The vendor's compiler looks for private tables here while it compiles, and can do without. */
FAKE_EXPORT lab_cu_result cuGetExportTable(const void **ret_table, const void *id);

lab_cu_result cuGetExportTable(const void **ret_table, const void *id) {
    (void)ret_table;
    (void)id;
    return FAKE_NOT_FOUND;
}

static int visible_instance(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char text[48];
    for (int i = 0; i < 2; i++) {
        fake_uuid_text((int)fake_number("FAKE_CUDA_MIG", 0), i, text);
        if (visible && strcmp(visible, text) == 0)
            return i;
    }
    return -1;
}

/* Numbers count from the fastest GPU unless they are said to mean PCI order: a mistake here. */
static bool is_miscounted(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    return visible && *visible >= '0' && *visible <= '9' &&
           (!order || strcmp(order, "PCI_BUS_ID") != 0);
}

lab_cu_result cuInit(unsigned flags) {
    (void)flags;
    FAKE_BEGIN(cuInit);
    if (is_miscounted())
        return LAB_CU_UNKNOWN;
    initialised = true;
    instance = visible_instance();
    return fake_number("FAKE_CUDA_GPUS", 2) ? 0 : LAB_CU_NO_DEVICE;
}

lab_cu_result cuDriverGetVersion(int *ret_version) {
    FAKE_BEGIN(cuDriverGetVersion);
    *ret_version = (int)fake_number("FAKE_CUDA_VERSION", 13000);
    return 0;
}

lab_cu_result cuGetErrorString(lab_cu_result result, const char **ret_text) {
    switch (result) {
    case LAB_CU_OUT_OF_MEMORY:
        *ret_text = "out of memory";
        return 0;
    case LAB_CU_ILLEGAL_ADDRESS:
        *ret_text = "an illegal memory access was encountered";
        return 0;
    case LAB_CU_DEVICE_UNAVAILABLE:
        *ret_text = "CUDA-capable device(s) is/are busy or unavailable";
        return 0;
    case LAB_CU_NO_DEVICE:
        *ret_text = "no CUDA-capable device is detected";
        return 0;
    default:
        *ret_text = "some error";
        return 0;
    }
}

/* --- devices: GPUs, or that one MIG instance --- */

lab_cu_result cuDeviceGetCount(int *ret_count) {
    FAKE_BEGIN(cuDeviceGetCount);
    if (!initialised)
        return LAB_CU_NOT_INITIALIZED;
    *ret_count = instance >= 0 ? 1 : (int)fake_number("FAKE_CUDA_GPUS", 2);
    return 0;
}

lab_cu_result cuDeviceGet(lab_cu_device *ret_device, int ordinal) {
    FAKE_BEGIN(cuDeviceGet);
    *ret_device = ordinal;
    return 0;
}

lab_cu_result cuDeviceGetName(char *name, int length, lab_cu_device device) {
    (void)device;
    FAKE_BEGIN(cuDeviceGetName);
    snprintf(name, (size_t)length, "NVIDIA Fake 90");
    return 0;
}

lab_cu_result cuDeviceGetUuid_v2(struct lab_cu_uuid *ret_uuid, lab_cu_device device) {
    FAKE_BEGIN(cuDeviceGetUuid);
    fake_uuid(instance >= 0 ? (int)fake_number("FAKE_CUDA_MIG", 0) : device, instance, ret_uuid);
    return 0;
}

lab_cu_result cuDeviceGetPCIBusId(char *address, int length, lab_cu_device device) {
    FAKE_BEGIN(cuDeviceGetPCIBusId);
    snprintf(address, (size_t)length, "0000:%02X:00.0", 0x17 + device);
    return 0;
}

lab_cu_result cuDeviceGetAttribute(int *ret_value, lab_cu_attribute attribute,
                                   lab_cu_device device) {
    (void)device;
    FAKE_BEGIN(cuDeviceGetAttribute);
    switch (attribute) {
    case LAB_CU_MULTIPROCESSOR_COUNT:
        *ret_value = FAKE_SM_COUNT;
        return 0;
    case LAB_CU_COMPUTE_MODE:
        *ret_value = (int)fake_number("FAKE_CUDA_MODE", LAB_CU_MODE_DEFAULT);
        return 0;
    case LAB_CU_CAPABILITY_MAJOR:
        *ret_value = 9;
        return 0;
    case LAB_CU_ASYNC_ENGINE_COUNT:
        *ret_value = 3;
        return 0;
    case LAB_CU_MAX_SHARED_PER_BLOCK_OPTIN:
        *ret_value = 227 << 10;
        return 0;
    default:
        *ret_value = 0;
        return 0;
    }
}

/* --- contexts --- */

lab_cu_result cuDevicePrimaryCtxRetain(lab_cu_context *ret_context, lab_cu_device device) {
    FAKE_BEGIN(cuDevicePrimaryCtxRetain);
    if (!initialised)
        return LAB_CU_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    retained[device]++;
    primary[device] = (struct lab_cu_context_st){.ordinal = device, .sm_count = FAKE_SM_COUNT};
    pthread_mutex_unlock(&lock);
    *ret_context = &primary[device];
    return 0;
}

lab_cu_result cuDevicePrimaryCtxRelease_v2(lab_cu_device device) {
    pthread_mutex_lock(&lock);
    bool held = retained[device] > 0;
    retained[device] -= held;
    pthread_mutex_unlock(&lock);
    return held ? 0 : FAKE_INVALID_CONTEXT;
}

lab_cu_result cuCtxSetCurrent(lab_cu_context context) {
    FAKE_BEGIN(cuCtxSetCurrent);
    fake_current = context;
    return 0;
}

lab_cu_result cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest) {
    FAKE_BEGIN_IN_CONTEXT(cuCtxGetStreamPriorityRange);
    *ret_least = 0;
    *ret_greatest = -5;
    return 0;
}

/* --- slices --- */

struct lab_cu_resource_desc_st {
    unsigned sm_count;
};

lab_cu_result cuDeviceGetDevResource(lab_cu_device device, struct lab_cu_resource *ret_resource,
                                     lab_cu_resource_type type) {
    (void)device;
    FAKE_BEGIN(cuDeviceGetDevResource);
    memset(ret_resource, 0, sizeof *ret_resource);
    ret_resource->type = type;
    ret_resource->sm = (struct lab_cu_sm_resource){FAKE_SM_COUNT, 8, 8};
    return 0;
}

lab_cu_result cuDevSmResourceSplitByCount(struct lab_cu_resource *ret_groups, unsigned *group_count,
                                          const struct lab_cu_resource *input,
                                          struct lab_cu_resource *ret_remaining, unsigned flags,
                                          unsigned min_count) {
    (void)flags;
    FAKE_BEGIN(cuDevSmResourceSplitByCount);
    unsigned size = (min_count + 7) / 8 * 8;
    unsigned possible = input->sm.sm_count / size;
    unsigned cap = (unsigned)fake_number("FAKE_CUDA_GROUPS", 15);
    possible = possible < cap ? possible : cap;
    if (!ret_groups || *group_count > possible)
        *group_count = possible;
    for (unsigned i = 0; ret_groups && i < *group_count; i++) {
        ret_groups[i] = *input;
        ret_groups[i].sm.sm_count = size;
    }
    *ret_remaining = *input;
    ret_remaining->sm.sm_count = input->sm.sm_count - *group_count * size;
    return 0;
}

lab_cu_result cuDevResourceGenerateDesc(lab_cu_resource_desc *ret_desc,
                                        struct lab_cu_resource *resources, unsigned count) {
    static _Thread_local struct lab_cu_resource_desc_st desc;
    FAKE_BEGIN(cuDevResourceGenerateDesc);
    desc.sm_count = 0;
    for (unsigned i = 0; i < count; i++)
        desc.sm_count += resources[i].sm.sm_count;
    *ret_desc = &desc;
    return 0;
}

lab_cu_result cuGreenCtxCreate(lab_cu_green_context *ret_context, lab_cu_resource_desc desc,
                               lab_cu_device device, unsigned flags) {
    FAKE_BEGIN(cuGreenCtxCreate);
    if (flags != LAB_CU_GREEN_DEFAULT_STREAM)
        return FAKE_INVALID_VALUE;
    struct lab_cu_context_st *context = calloc(1, sizeof *context);
    *context =
        (struct lab_cu_context_st){.ordinal = device, .green = true, .sm_count = desc->sm_count};
    *ret_context = (lab_cu_green_context)context;
    return 0;
}

lab_cu_result cuGreenCtxDestroy(lab_cu_green_context context) {
    free(context);
    return 0;
}

lab_cu_result cuCtxFromGreenCtx(lab_cu_context *ret_context, lab_cu_green_context green) {
    FAKE_BEGIN(cuCtxFromGreenCtx);
    *ret_context = (lab_cu_context)green;
    return 0;
}

/* --- memory --- */

#define BLOCKS_MAX 1024

static struct {
    char *memory;
    size_t size_bytes;
    bool host; /* registered by its owner, not ours */
} blocks[BLOCKS_MAX];

static size_t used_bytes(void) {
    size_t used = 0;
    for (int i = 0; i < BLOCKS_MAX; i++)
        used += blocks[i].host ? 0 : blocks[i].size_bytes;
    return used;
}

static bool block_add(void *memory, size_t size_bytes, bool host) {
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (!blocks[i].memory) {
            blocks[i].memory = memory;
            blocks[i].size_bytes = size_bytes;
            blocks[i].host = host;
            return true;
        }
    return false;
}

static bool block_remove(const void *memory, bool host) {
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].memory && blocks[i].memory == memory && blocks[i].host == host) {
            blocks[i].memory = NULL;
            blocks[i].size_bytes = 0;
            return true;
        }
    return false;
}

bool fake_is_device(lab_cu_pointer memory, size_t size_bytes) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BLOCKS_MAX; i++) {
        uintptr_t begin = (uintptr_t)blocks[i].memory;
        found |= begin && !blocks[i].host && memory >= begin &&
                 memory + size_bytes <= begin + blocks[i].size_bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

lab_cu_result cuMemAlloc_v2(lab_cu_pointer *ret_memory, size_t size_bytes) {
    FAKE_BEGIN_IN_CONTEXT(cuMemAlloc);
    size_t total = (size_t)fake_number("FAKE_CUDA_MEMORY_MIB", 1024) << 20;
    pthread_mutex_lock(&lock);
    size_t left = total - used_bytes();
    pthread_mutex_unlock(&lock);
    char *memory = size_bytes && size_bytes <= left ? malloc(size_bytes) : NULL;
    if (!memory)
        return size_bytes ? LAB_CU_OUT_OF_MEMORY : FAKE_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    block_add(memory, size_bytes, false);
    pthread_mutex_unlock(&lock);
    *ret_memory = (lab_cu_pointer)(uintptr_t)memory;
    return 0;
}

lab_cu_result cuMemFree_v2(lab_cu_pointer memory) {
    FAKE_BEGIN_IN_CONTEXT(cuMemFree);
    pthread_mutex_lock(&lock);
    bool known = block_remove((void *)(uintptr_t)memory, false);
    pthread_mutex_unlock(&lock);
    if (!known)
        return FAKE_INVALID_VALUE;
    free((void *)(uintptr_t)memory);
    return 0;
}

lab_cu_result cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total) {
    FAKE_BEGIN_IN_CONTEXT(cuMemGetInfo);
    *ret_total = (size_t)fake_number("FAKE_CUDA_MEMORY_MIB", 1024) << 20;
    pthread_mutex_lock(&lock);
    *ret_free = *ret_total - used_bytes();
    pthread_mutex_unlock(&lock);
    return 0;
}

lab_cu_result cuMemHostRegister_v2(void *memory, size_t size_bytes, unsigned flags) {
    (void)flags;
    FAKE_BEGIN_IN_CONTEXT(cuMemHostRegister);
    pthread_mutex_lock(&lock);
    block_add(memory, size_bytes, true);
    pthread_mutex_unlock(&lock);
    return 0;
}

lab_cu_result cuMemHostUnregister(void *memory) {
    FAKE_BEGIN_IN_CONTEXT(cuMemHostUnregister);
    pthread_mutex_lock(&lock);
    bool known = block_remove(memory, true);
    pthread_mutex_unlock(&lock);
    return known ? 0 : FAKE_NOT_REGISTERED;
}
