/*
 * open.c: from a device's name to a context on it. CUDA is initialised here, at the first opening
 * and in no other place; the GPU is found again by its UUID, since the driver's own numbers depend
 * on the environment.
 */
#include "base/str.h"
#include "device/cuda/cuda.h"
#include "vendor/ask.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* --- initialising --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;

static void restore(const char *variable, char *value) {
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
    lab_mem_free(value);
}

/* Calls cuInit with the variable set so; where it is already, the environment isn't touched. */
static lab_cu_result start_with(const struct lab_cuda *cuda, const char *variable,
                                const char *value) {
    const char *old = getenv(variable);
    if (lab_str_equal(old, value))
        return cuda->cuInit(0);
    char *kept = old ? lab_mem_strdup(old) : NULL;
    setenv(variable, value, 1);
    lab_cu_result result = cuda->cuInit(0);
    restore(variable, kept);
    return result;
}

/*
 * The driver reads the environment here and never again. Numbers in CUDA_VISIBLE_DEVICES mean PCI
 * order, as select.c counts; and a MIG instance is reached only where that variable names it.
 *
 * Other threads may read the environment meanwhile, which isn't safe while it changes. So it is
 * left alone where the driver's answer doesn't depend on it: GPUs are found by UUID, in any order.
 * Workers are started with the order in it.
 */
static lab_cu_result start(const struct lab_cuda *cuda, const char *uuid) {
    static const char order[] = "CUDA_DEVICE_ORDER", visible[] = "CUDA_VISIBLE_DEVICES";
    const char *shown = getenv(visible);
    if (uuid && lab_str_starts(uuid, "MIG-"))
        return start_with(cuda, visible, uuid);
    if (shown && strpbrk(shown, "0123456789"))
        return start_with(cuda, order, "PCI_BUS_ID");
    return cuda->cuInit(0);
}

struct starting { /* a driver that hangs keeps it */
    const struct lab_cuda *cuda;
    char *uuid;
    lab_cu_result result;
};

static void ask_start(void *opaque) {
    struct starting *starting = opaque;
    lab_ask_calling("cuInit");
    starting->result = start(starting->cuda, starting->uuid);
}

static int start_within_limit(const struct lab_cuda *cuda, const struct lab_device_ref *ref,
                              struct lab_err *err) {
    struct starting *starting = lab_mem_alloc(1, sizeof *starting);
    *starting = (struct starting){.cuda = cuda};
    starting->uuid = ref->uuid ? lab_mem_strdup(ref->uuid) : NULL;
    if (lab_ask(ask_start, starting, err) < 0)
        return -1;
    int status = cuda_check(starting->result, "cuInit", err);
    lab_mem_free(starting->uuid);
    lab_mem_free(starting);
    return status;
}

static int initialise(const struct lab_cuda *cuda, const struct lab_device_ref *ref,
                      struct lab_err *err) {
    const struct lab_dl_report *report;
    lab_cuda_load(&report);
    if (!report->handle)
        return lab_err_set(err, LAB_ERR_USER, "no NVIDIA driver: %s", report->reason);
    int version = lab_cuda_version();
    if (lab_cuda_lacks())
        return lab_err_set(
            err, LAB_ERR_UNSUPPORTED,
            "the NVIDIA driver (CUDA %d.%d) is too old: it lacks %s; install one for "
            "CUDA 12.0 or later",
            version / 1000, version % 1000 / 10, lab_cuda_lacks());
    pthread_mutex_lock(&lock);
    int status = 0;
    if (!initialised) {
        status = start_within_limit(cuda, ref, err);
        initialised = status == 0;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- finding the GPU --- */

static void write_uuid(const struct lab_cu_uuid *uuid, char ret_text[37]) {
    char *at = ret_text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        snprintf(at, 3, "%02x", (unsigned char)uuid->bytes[i]);
        at += 2;
    }
}

static bool is_same(const struct lab_cuda *cuda, lab_cu_device device,
                    const struct lab_device_ref *ref) {
    struct lab_cu_uuid uuid;
    char text[37] = "", address[32] = "";
    if (ref->uuid) /* behind "GPU-" or "MIG-" */
        return cuda->cuDeviceGetUuid(&uuid, device) == LAB_CU_SUCCESS &&
               (write_uuid(&uuid, text), strcasecmp(text, ref->uuid + 4) == 0);
    return cuda->cuDeviceGetPCIBusId(address, sizeof address, device) == LAB_CU_SUCCESS &&
           strcasecmp(address, ref->physical + strlen("cuda:")) == 0;
}

static int find(const struct lab_cuda *cuda, const struct lab_device_ref *ref,
                lab_cu_device *ret_device, struct lab_err *err) {
    int count = 0;
    if (cuda_check(cuda->cuDeviceGetCount(&count), "cuDeviceGetCount", err))
        return -1;
    for (int i = 0; i < count; i++) {
        lab_cu_device device;
        if (cuda->cuDeviceGet(&device, i) == LAB_CU_SUCCESS && is_same(cuda, device, ref)) {
            *ret_device = device;
            return 0;
        }
    }
    if (ref->uuid && lab_str_starts(ref->uuid, "MIG-"))
        return lab_err_set(err, LAB_ERR_USER,
                           "the driver doesn't show %s to this process; a process can use one MIG "
                           "instance only, so give each its own",
                           ref->physical);
    return lab_err_set(err, LAB_ERR_SYSTEM,
                       "the driver shows %d GPU%s to this process, but not %s; it may be lost (see "
                       "nvidia-smi) or CUDA_VISIBLE_DEVICES may have changed",
                       count, count == 1 ? "" : "s", ref->physical);
}

/* --- contexts --- */

static _Thread_local uint64_t entered; /* the opening whose context is current in this thread */

int cuda_enter(const struct cuda_device *device, struct lab_err *err) {
    if (entered == device->opening)
        return 0;
    if (cuda_check(device->cuda->cuCtxSetCurrent(device->context), "cuCtxSetCurrent", err))
        return -1;
    entered = device->opening;
    return 0;
}

void cuda_forget(void) {
    entered = 0;
}

int cuda_attribute(const struct cuda_device *device, lab_cu_attribute attribute) {
    int value = 0;
    if (device->cuda->cuDeviceGetAttribute(&value, attribute, device->ordinal) != LAB_CU_SUCCESS)
        return 0;
    return value;
}

/* The driver's answer is the same for several causes; the GPU's mode tells which it is. */
static int refuse_context(const struct cuda_device *device, lab_cu_result result,
                          struct lab_err *err) {
    int mode = cuda_attribute(device, LAB_CU_COMPUTE_MODE);
    if (result == LAB_CU_DEVICE_UNAVAILABLE && mode == LAB_CU_MODE_EXCLUSIVE_PROCESS)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "another process has the GPU in exclusive mode; end that "
                           "process (nvidia-smi shows it) or share the GPU: nvidia-smi -c DEFAULT "
                           "as root");
    if (result == LAB_CU_DEVICE_UNAVAILABLE && mode == LAB_CU_MODE_PROHIBITED)
        return lab_err_set(
            err, LAB_ERR_SYSTEM,
            "the GPU's compute mode is prohibited; nvidia-smi -c DEFAULT as root allows it");
    if (result == LAB_CU_OUT_OF_MEMORY)
        return lab_err_set(err, LAB_ERR_MEMORY,
                           "the GPU has too little free memory for a context; other processes on "
                           "it hold the rest (see nvidia-smi)");
    return cuda_fail(result, "cuDevicePrimaryCtxRetain", err);
}

struct retaining { /* a driver that hangs keeps it */
    const struct lab_cuda *cuda;
    lab_cu_device ordinal;
    lab_cu_context context;
    lab_cu_result result;
};

static void ask_context(void *opaque) {
    struct retaining *retaining = opaque;
    lab_ask_calling("cuDevicePrimaryCtxRetain");
    retaining->result =
        retaining->cuda->cuDevicePrimaryCtxRetain(&retaining->context, retaining->ordinal);
}

static int retain_within_limit(struct cuda_device *device, struct lab_err *err) {
    struct retaining *retaining = lab_mem_alloc(1, sizeof *retaining);
    *retaining = (struct retaining){.cuda = device->cuda, .ordinal = device->ordinal};
    if (lab_ask(ask_context, retaining, err) < 0)
        return -1;
    lab_cu_result result = retaining->result;
    device->retained = result == LAB_CU_SUCCESS;
    if (device->retained)
        device->context = retaining->context;
    lab_mem_free(retaining);
    return device->retained ? 0 : refuse_context(device, result, err);
}

static int open_context(struct cuda_device *device, struct lab_err *err) {
    const struct lab_device_ref *ref = &device->base.ref;
    if (retain_within_limit(device, err) < 0)
        return -1;
    device->sm_count = cuda_attribute(device, LAB_CU_MULTIPROCESSOR_COUNT);
    if (ref->slices > 1 && cuda_slice_open(device, ref->slices, ref->slice, err))
        return -1;
    return cuda_enter(device, err);
}

/* --- the device --- */

static int fill_info(struct cuda_device *device, struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    struct lab_device_info *info = &device->base.info;
    size_t free_bytes, total_bytes;
    if (cuda_check(cuda->cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo", err) ||
        cuda_check(cuda->cuCtxGetStreamPriorityRange(&device->priority_low, &device->priority_high),
                   "cuCtxGetStreamPriorityRange", err))
        return -1;
    device->capability = 10 * cuda_attribute(device, LAB_CU_CAPABILITY_MAJOR) +
                         cuda_attribute(device, LAB_CU_CAPABILITY_MINOR);
    device->shared_bytes_max = cuda_attribute(device, LAB_CU_MAX_SHARED_PER_BLOCK_OPTIN);
    int version = lab_cuda_version();
    info->compute_units = device->sm_count;
    info->arithmetic = lab_arena_printf(&device->arena, "compute capability %d.%d, CUDA %d.%d",
                                        device->capability / 10, device->capability % 10,
                                        version / 1000, version % 1000 / 10);
    info->overlaps = cuda_attribute(device, LAB_CU_ASYNC_ENGINE_COUNT) > 0;
    info->overlap_why_not = info->overlaps ? NULL : "the GPU has no copy engine of its own";
    info->memory_bytes = (int64_t)total_bytes;
    device->base.ref.memory_bytes = (int64_t)total_bytes;
    return 0;
}

void cuda_close(struct lab_device *base) {
    struct cuda_device *device = (struct cuda_device *)base;
    assert(!device->streams && "all streams are closed");
    if (device->context && cuda_enter(device, NULL) == 0) {
        cuda_kernels_close(device);
        cuda_anchor_close(device);
    }
    if (device->retained) {
        device->cuda->cuCtxSetCurrent(NULL);
        entered = 0;
        cuda_slice_close(device);
        device->cuda->cuDevicePrimaryCtxRelease(device->ordinal);
    }
    lab_arena_release(&device->arena);
    lab_mem_free(device);
}

int cuda_open(const struct lab_machine *machine, const struct lab_device_ref *ref,
              struct lab_device_setup setup, struct lab_device **ret_device, struct lab_err *err) {
    (void)setup; /* GPUs have copy engines */
    static _Atomic uint64_t openings;
    const struct lab_cuda *cuda = lab_cuda_load(NULL);
    lab_cu_device ordinal = 0;
    if (initialise(cuda, ref, err) || find(cuda, ref, &ordinal, err))
        return -1;
    struct cuda_device *device = lab_mem_alloc(1, sizeof *device);
    lab_arena_init(&device->arena);
    device->base.ops = &cuda_device_ops;
    device->base.ref = lab_device_ref_copy(ref, &device->arena);
    device->base.machine = machine;
    device->base.clock = lab_clock_system();
    device->cuda = cuda;
    device->ordinal = ordinal;
    device->opening = atomic_fetch_add(&openings, 1) + 1;
    if (open_context(device, err) || fill_info(device, err) || cuda_anchor_open(device, err)) {
        cuda_close(&device->base);
        return -1;
    }
    *ret_device = &device->base;
    return 0;
}
