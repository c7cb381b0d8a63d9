/*
 * tune.c: what can be chosen of an op's kernels, and what a choice holds for: the GPU's model, its
 * multiprocessors, driver, compiler and power limit. All of it without CUDA (see cuda.h), since a
 * runner asks too. And clock and power, which say whether times can be compared.
 */
#include "device/cuda/compile.h"
#include "device/cuda/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan_internal.h"
#include "vendor/nvml_session.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>

/* --- what can be chosen --- */

/* Shared memory that a block may ask for, by the tables of CUDA's programming guide. */
static int shared_bytes_of(int capability) {
    switch (capability) {
    case 80:
    case 87:
        return 163 << 10;
    case 90:
    case 100:
    case 103:
    case 110:
        return 227 << 10;
    default:
        return 99 << 10;
    }
}

/* What a device that isn't open offers; capability 0 where that is unknown. */
static struct cuda_capacity capacity_of(const struct lab_device_ref *ref) {
    return (struct cuda_capacity){ref->compute_units, shared_bytes_of(ref->capability),
                                  ref->capability};
}

static const struct cuda_tunable *find_declared(const struct lab_tunable_place *place,
                                                const struct lab_launch *launch) {
    struct cuda_capacity capacity = capacity_of(place->ref);
    if (!capacity.capability || !capacity.sm_count)
        return NULL; /* NVML is missing: what is legal can't be said */
    return lab_op_is_gemm(launch->op)             ? find_gemm_tunable(launch, capacity)
           : launch->op == LAB_OP_FLASH_ATTENTION ? find_flash_attention_tunable(launch, capacity)
           : launch->op == LAB_OP_SOFTMAX         ? find_softmax_tunable(launch, capacity)
                                                  : NULL;
}

static void cuda_tune_fallback(const struct lab_tunable_place *place,
                               const struct lab_launch *launch, struct lab_tuning *ret_tuning) {
    *ret_tuning = find_declared(place, launch)->usual(launch, capacity_of(place->ref));
}

static int cuda_tune_check(const struct lab_tunable_place *place, const struct lab_launch *launch,
                           const struct lab_tuning *tuning, struct lab_err *err) {
    return find_declared(place, launch)->check(launch, capacity_of(place->ref), tuning, err);
}

#define VERSIONED_MAX 8 /* tunables of all plans together */

/* The tunable with its version, made at the first call and kept for ever. */
static const struct lab_tunable *with_version(const struct cuda_tunable *declared) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const struct cuda_tunable *declared;
        struct lab_tunable tunable;
        char version[24];
    } made[VERSIONED_MAX];
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < VERSIONED_MAX - 1 && made[i].declared && made[i].declared != declared)
        i++;
    if (!made[i].declared) {
        snprintf(made[i].version, sizeof made[i].version, "%016" PRIx64,
                 cuda_source_hash(declared->file));
        made[i].tunable = declared->tunable;
        made[i].tunable.version = made[i].version;
        made[i].tunable.fallback = cuda_tune_fallback;
        made[i].tunable.check = cuda_tune_check;
        made[i].declared = declared;
    }
    assert(made[i].declared == declared);
    pthread_mutex_unlock(&lock);
    return &made[i].tunable;
}

const struct lab_tunable *cuda_tunable(const struct lab_tunable_place *place,
                                       const struct lab_launch *launch) {
    const struct cuda_tunable *found = find_declared(place, launch);
    return found ? with_version(found) : NULL;
}

/* --- what a choice holds for --- */

/* The GPU or MIG instance of a reference; NULL = it is gone. */
static const struct cuda_gpu *find_gpu(const struct cuda_inventory *inventory,
                                       const struct lab_device_ref *ref) {
    for (int i = 0; i < inventory->count; i++) {
        const struct cuda_gpu *gpu = &inventory->items[i];
        if (ref->uuid ? strcasecmp(gpu->uuid, ref->uuid) == 0
                      : strcasecmp(gpu->address, ref->physical + strlen("cuda:")) == 0)
            return gpu;
    }
    return NULL;
}

/* NVML's handle of a GPU, or of that of a MIG instance, whose clock and power are the whole GPU's;
 * inside a session. */
static lab_nvml_device handle_at(const struct lab_nvml *nvml, const char *address) {
    lab_nvml_device device;
    if (!*address || !nvml->nvmlDeviceGetHandleByPciBusId_v2 ||
        nvml->nvmlDeviceGetHandleByPciBusId_v2(address, &device) != LAB_NVML_SUCCESS)
        return NULL;
    return device;
}

static void ask_nvml(const char *address, struct lab_arena *arena,
                     struct lab_device_identity *identity) {
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    char version[LAB_NVML_UUID_BYTES] = "";
    unsigned generation, limit_mw = 0;
    if (lab_nvml_enter(&generation, NULL))
        return;
    lab_nvml_device device = handle_at(nvml, address);
    if (nvml->nvmlSystemGetDriverVersion &&
        nvml->nvmlSystemGetDriverVersion(version, sizeof version) == LAB_NVML_SUCCESS)
        identity->driver = lab_arena_strdup(arena, version);
    if (device && nvml->nvmlDeviceGetEnforcedPowerLimit &&
        nvml->nvmlDeviceGetEnforcedPowerLimit(device, &limit_mw) == LAB_NVML_SUCCESS)
        identity->power_limit_w = limit_mw / 1000.0;
    lab_nvml_leave();
}

int cuda_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                  struct lab_device_identity *ret_identity, struct lab_err *err) {
    const struct lab_device_ref *ref = place->ref;
    struct cuda_inventory inventory;
    cuda_inventory_read(arena, &inventory);
    const struct cuda_gpu *gpu = find_gpu(&inventory, ref);
    if (!gpu)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s no longer exists", ref->physical);
    struct lab_device_identity identity = {
        .model = *gpu->name ? gpu->name : "an NVIDIA GPU",
        .compute_units = ref->compute_units,
        .driver = "",
        .compiler = "",
    };
    ask_nvml(gpu->address, arena, &identity);
    int version = cuda_compiler_version(identity.driver, arena);
    if (version)
        identity.compiler =
            lab_arena_printf(arena, "NVRTC %d.%d", version / 1000, version % 1000 / 10);
    *ret_identity = identity;
    return 0;
}

/* --- clock, power and energy --- */

/* Inside a session; NULL = NVML doesn't know the GPU. */
static lab_nvml_device handle_of(struct cuda_device *device, const struct lab_nvml *nvml,
                                 unsigned generation) {
    char address[32] = "";
    if (!device->nvml || device->nvml_generation != generation) {
        device->cuda->cuDeviceGetPCIBusId(address, sizeof address, device->ordinal);
        device->nvml = handle_at(nvml, address);
        device->nvml_generation = generation;
    }
    return device->nvml;
}

double cuda_clock_mhz(struct lab_device *base) {
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    unsigned generation, mhz = 0;
    if (lab_nvml_enter(&generation, NULL))
        return 0;
    lab_nvml_device device = handle_of((struct cuda_device *)base, nvml, generation);
    if (!device || !nvml->nvmlDeviceGetClockInfo ||
        nvml->nvmlDeviceGetClockInfo(device, LAB_NVML_CLOCK_SM, &mhz) != LAB_NVML_SUCCESS)
        mhz = 0;
    lab_nvml_leave();
    return mhz;
}

/* What it draws at this moment where the driver tells; the other figure is a mean over a second on
 * GPUs that have both. */
double cuda_power_w(struct lab_device *base) {
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    struct lab_nvml_field field = {.id = LAB_NVML_FI_POWER_INSTANT,
                                   .result = LAB_NVML_NOT_SUPPORTED};
    unsigned generation, milliwatts = 0;
    if (lab_nvml_enter(&generation, NULL))
        return 0;
    lab_nvml_device device = handle_of((struct cuda_device *)base, nvml, generation);
    if (device && nvml->nvmlDeviceGetFieldValues &&
        nvml->nvmlDeviceGetFieldValues(device, 1, &field) == LAB_NVML_SUCCESS &&
        field.result == LAB_NVML_SUCCESS)
        milliwatts = field.value.as_unsigned;
    else if (!device || !nvml->nvmlDeviceGetPowerUsage ||
             nvml->nvmlDeviceGetPowerUsage(device, &milliwatts) != LAB_NVML_SUCCESS)
        milliwatts = 0;
    lab_nvml_leave();
    return milliwatts / 1000.0;
}

double cuda_energy_j(struct lab_device *base) {
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    unsigned generation;
    unsigned long long millijoules = 0;
    if (lab_nvml_enter(&generation, NULL))
        return 0;
    lab_nvml_device device = handle_of((struct cuda_device *)base, nvml, generation);
    if (!device || !nvml->nvmlDeviceGetTotalEnergyConsumption ||
        nvml->nvmlDeviceGetTotalEnergyConsumption(device, &millijoules) != LAB_NVML_SUCCESS)
        millijoules = 0;
    lab_nvml_leave();
    return (double)millijoules / 1000;
}
