/*
 * slice.c: a GPU's multiprocessors cut into slices by green contexts. Slices share memory, caches,
 * copy engines and power, but kernels of one never run on the multiprocessors of another.
 *
 * All slices of one cut must come from the same split, or they might overlap: it is made once for
 * each number of slices and kept as long as the process lives. The driver groups multiprocessors in
 * its own way (8 at a time on compute capability 9.0, inside clusters of them), so it may grant
 * fewer slices than the sizes alone would allow.
 */
#include "device/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MPS_FOLDER "/tmp/nvidia-mps" /* where the daemon listens unless it is told otherwise */

struct split {
    lab_cu_device ordinal;
    int slices;
    struct lab_cu_resource *groups; /* one for each slice */
    struct split *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct split *splits;

static int refuse(const struct cuda_device *device, const struct lab_cu_resource *all, int slices,
                  unsigned unit, struct lab_err *err) {
    unsigned possible = 0;
    struct lab_cu_resource input = *all, rest;
    if (device->cuda->cuDevSmResourceSplitByCount(NULL, &possible, &input, &rest, 0, unit) !=
        LAB_CU_SUCCESS)
        possible = all->sm.sm_count / unit;
    return lab_err_set(err, LAB_ERR_USER,
                       "%u multiprocessors can't be cut into %d slices: the driver makes at most "
                       "%u, of %u multiprocessors; write cuda:%d/%u or fewer",
                       all->sm.sm_count, slices, possible, unit, device->base.ref.unit, possible);
}

/* Larger slices first; where the driver's grouping doesn't allow them, the next smaller size. */
static int split_make(const struct cuda_device *device, int slices, struct lab_cu_resource *groups,
                      struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    struct lab_cu_resource all;
    memset(&all, 0, sizeof all);
    if (cuda_check(cuda->cuDeviceGetDevResource(device->ordinal, &all, LAB_CU_RESOURCE_SM),
                   "cuDeviceGetDevResource", err))
        return -1;
    unsigned unit =
        all.sm.min_partition > all.sm.alignment ? all.sm.min_partition : all.sm.alignment;
    if (!unit)
        unit = (unsigned)cuda_slice_unit(10 * cuda_attribute(device, LAB_CU_CAPABILITY_MAJOR));
    for (unsigned size = all.sm.sm_count / (unsigned)slices / unit * unit; size; size -= unit) {
        unsigned count = (unsigned)slices;
        struct lab_cu_resource rest;
        lab_cu_result result =
            cuda->cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, size);
        if (result == LAB_CU_SUCCESS && count >= (unsigned)slices)
            return 0;
        if (result != LAB_CU_SUCCESS && result != LAB_CU_INVALID_RESOURCE_CONFIGURATION)
            return cuda_fail(result, "cuDevSmResourceSplitByCount", err);
    }
    return refuse(device, &all, slices, unit, err);
}

static const struct split *split_get(const struct cuda_device *device, int slices,
                                     struct lab_err *err) {
    struct split *split;
    pthread_mutex_lock(&lock);
    for (split = splits; split; split = split->next)
        if (split->ordinal == device->ordinal && split->slices == slices)
            break;
    if (!split) {
        struct lab_cu_resource *groups = lab_mem_alloc((size_t)slices, sizeof *groups);
        if (split_make(device, slices, groups, err)) {
            lab_mem_free(groups);
        } else {
            split = lab_mem_alloc(1, sizeof *split);
            *split = (struct split){device->ordinal, slices, groups, splits};
            splits = split;
        }
    }
    pthread_mutex_unlock(&lock);
    return split;
}

static int check_driver(const struct lab_cuda *cuda, struct lab_err *err) {
    if (cuda->cuDeviceGetDevResource && cuda->cuDevSmResourceSplitByCount &&
        cuda->cuDevResourceGenerateDesc && cuda->cuGreenCtxCreate && cuda->cuGreenCtxDestroy &&
        cuda->cuCtxFromGreenCtx && cuda->cuGreenCtxStreamCreate)
        return 0;
    int version = lab_cuda_version();
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "slices need a driver for CUDA 12.5 or later; this one is for %d.%d",
                       version / 1000, version % 1000 / 10);
}

/* What the driver gave, which may differ from what select.c reckoned. */
static void describe(struct cuda_device *device, const struct split *split) {
    char name[96] = "a GPU";
    int total = cuda_attribute(device, LAB_CU_MULTIPROCESSOR_COUNT), idle = total;
    for (int i = 0; i < split->slices; i++)
        idle -= (int)split->groups[i].sm.sm_count;
    device->cuda->cuDeviceGetName(name, sizeof name, device->ordinal);
    const char *rest = idle > 0 ? lab_arena_printf(&device->arena, " (%d stay idle)", idle) : "";
    device->base.ref.description = lab_arena_printf(
        &device->arena, "%d of %d multiprocessors of %s%s", device->sm_count, total, name, rest);
}

int cuda_slice_open(struct cuda_device *device, int slices, int slice, struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    lab_cu_resource_desc desc;
    if (check_driver(cuda, err))
        return -1;
    const struct split *split = split_get(device, slices, err);
    if (!split)
        return -1;
    struct lab_cu_resource group = split->groups[slice];
    if (cuda_check(cuda->cuDevResourceGenerateDesc(&desc, &group, 1), "cuDevResourceGenerateDesc",
                   err) ||
        cuda_check(cuda->cuGreenCtxCreate(&device->green, desc, device->ordinal,
                                          LAB_CU_GREEN_DEFAULT_STREAM),
                   "cuGreenCtxCreate", err) ||
        cuda_check(cuda->cuCtxFromGreenCtx(&device->context, device->green), "cuCtxFromGreenCtx",
                   err))
        return -1;
    device->sm_count = (int)group.sm.sm_count;
    describe(device, split);
    return 0;
}

void cuda_slice_close(struct cuda_device *device) {
    if (device->green)
        device->cuda->cuGreenCtxDestroy(device->green);
    device->green = NULL;
}

/* --- processes --- */

/*
 * The driver switches between the contexts of different processes, each of which then has the whole
 * GPU for a while: two slices take as long as one after the other. An MPS daemon makes one context
 * of them; it listens at a place that all its clients agree on.
 */
const char *cuda_why_together(struct lab_arena *arena) {
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    struct stat control;
    const char *path =
        lab_arena_printf(arena, "%s/control", folder && *folder ? folder : MPS_FOLDER);
    if (stat(path, &control) == 0 && !S_ISREG(control.st_mode) && !S_ISDIR(control.st_mode))
        return NULL;
    return lab_arena_printf(arena,
                            "processes time-share a GPU unless an MPS daemon serves it (none at "
                            "%s: nvidia-cuda-mps-control -d starts one)",
                            path);
}
