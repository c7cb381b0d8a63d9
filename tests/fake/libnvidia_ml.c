/* libnvidia_ml.c: the fake machine's GPUs as NVML shows them (fake_nvml.h): its life, and who is
 * who. */
#include "fake/fake_nvml.h"

#include <stdatomic.h>
#include <time.h>

FAKE_EXPORT const char *nvmlErrorString(lab_nvml_result result);
FAKE_EXPORT void nvmlDeviceGetConfComputeMemSizeInfo(void);
FAKE_EXPORT void nvmlDeviceGetRunningProcessDetailList(void);

static const char *wrong; /* with the script */
static bool injects;      /* FAKE_CUDA_FAIL was there when it was loaded */
static double begun_s;
static _Atomic double stands_at_s = NAN;
static atomic_int calls[FAKE_FUNCTION_COUNT][FAKE_GPUS_MAX + 1]; /* the last: of no GPU */
static atomic_int users, misuse;

/* A lost GPU stays so for the session in which it was lost; handles are worth something in one
 * only. */
#define SESSIONS 32
static struct lab_nvml_device_st handles[SESSIONS][FAKE_GPUS_MAX][FAKE_MIG_MAX + 1];
static atomic_uint session;
static atomic_bool lost[FAKE_GPUS_MAX], unlisted[FAKE_GPUS_MAX];

static const char *const function_names[FAKE_FUNCTION_COUNT] = {
#define NAME(name, effect, parameters) #name,
    LAB_NVML_FUNCTIONS(NAME)
#undef NAME
};

/* --- time --- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double fake_now(void) {
    double stands_at = atomic_load(&stands_at_s);
    return isnan(stands_at) ? seconds() - begun_s : stands_at;
}

void lab_fake_nvml_set_time(double time_s) {
    atomic_store(&stands_at_s, time_s);
}

/* --- sessions --- */

static bool is_away(int gpu, bool only_unlisted) {
    double now = fake_script.away_count ? fake_now() : 0;
    for (int i = 0; i < fake_script.away_count; i++) {
        const struct fake_away *away = &fake_script.away[i];
        if (away->gpu == gpu && now >= away->from_s && now < away->until_s &&
            (away->unlisted || !only_unlisted))
            return true;
    }
    return false;
}

static void begin_session(void) {
    unsigned number = atomic_fetch_add(&session, 1) + 1;
    for (int gpu = 0; gpu < FAKE_GPUS_MAX; gpu++) {
        atomic_store(&lost[gpu], is_away(gpu, false));
        atomic_store(&unlisted[gpu], is_away(gpu, true));
        for (int instance = -1; instance < FAKE_MIG_MAX; instance++)
            handles[number % SESSIONS][gpu][instance + 1] =
                (struct lab_nvml_device_st){gpu, instance, number};
    }
}

lab_nvml_device fake_handle(int gpu, int instance) {
    return &handles[atomic_load(&session) % SESSIONS][gpu][instance + 1];
}

const char *lab_fake_nvml_play(const char *script) {
    wrong = fake_script_read(script, &fake_script);
    begun_s = seconds();
    memset(calls, 0, sizeof calls);
    atomic_store(&misuse, 0);
    begin_session();
    return wrong;
}

/* Before any thread asks. */
__attribute__((constructor)) static void play_environment(void) {
    injects = getenv("FAKE_CUDA_FAIL");
    lab_fake_nvml_play(getenv("GPULAB_FAKE_NVML"));
}

int lab_fake_nvml_calls(const char *function, int gpu) {
    int count = 0;
    for (int i = 0; i < FAKE_FUNCTION_COUNT; i++)
        for (int k = 0; strcmp(function, function_names[i]) == 0 && k <= FAKE_GPUS_MAX; k++)
            count += gpu < 0 || gpu == k ? atomic_load(&calls[i][k]) : 0;
    return count;
}

int lab_fake_nvml_misuse(void) {
    return atomic_load(&misuse);
}

/* --- calls --- */

static void pause_for(double time_s) {
    struct timespec left = {.tv_sec = (time_t)time_s,
                            .tv_nsec = (long)(1e9 * (time_s - floor(time_s)))};
    while (nanosleep(&left, &left))
        ;
}

static int play_faults(const char *name, int gpu, int call) {
    for (int i = 0; i < fake_script.fault_count; i++) {
        const struct fake_fault *fault = &fake_script.faults[i];
        if (strcmp(fault->function, name) != 0 || (fault->gpu >= 0 && fault->gpu != gpu) ||
            call < fault->from || (fault->times && call >= fault->from + fault->times))
            continue;
        if (fault->hang_s > 0)
            pause_for(fault->hang_s);
        if (fault->code)
            return fault->code;
    }
    return 0;
}

int fake_begin(enum fake_function function, int gpu) {
    int call = atomic_fetch_add(&calls[function][gpu < 0 ? FAKE_GPUS_MAX : gpu], 1) + 1;
    int code = injects ? fake_injected(function_names[function]) : 0;
    if (!code)
        code = play_faults(function_names[function], gpu, call);
    if (!code && function != FAKE_nvmlInit_v2 && atomic_load(&users) == 0)
        code = LAB_NVML_UNINITIALIZED;
    return code;
}

int fake_begin_on(enum fake_function function, lab_nvml_device device) {
    if (device->session != atomic_load(&session)) {
        atomic_fetch_add(&misuse, 1);
        return LAB_NVML_INVALID_ARGUMENT;
    }
    if (is_away(device->gpu, false))
        atomic_store(&lost[device->gpu], true);
    int code = fake_begin(function, device->gpu);
    return code ? code : atomic_load(&lost[device->gpu]) ? LAB_NVML_GPU_IS_LOST : 0;
}

lab_nvml_result nvmlInit_v2(void) {
    BEGIN(nvmlInit_v2);
    if (wrong)
        return LAB_NVML_INVALID_ARGUMENT;
    if (atomic_fetch_add(&users, 1) == 0)
        begin_session();
    return 0;
}

lab_nvml_result nvmlShutdown(void) {
    BEGIN(nvmlShutdown);
    atomic_fetch_sub(&users, 1);
    return 0;
}

const char *nvmlErrorString(lab_nvml_result result) {
    if (result == LAB_NVML_INVALID_ARGUMENT && wrong)
        return wrong;
    return result == LAB_NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

/* --- which functions there are --- */

int lab_fake_nvml(const char *function) {
    static const struct {
        const char *name;
        int since, until;
    } ages[] = {
        {"nvmlDeviceGetMemoryInfo_v2", 510, 999},
        {"nvmlDeviceGetTemperatureV", 565, 999},
        {"nvmlDeviceGetTemperature", 0, 600},
        {"nvmlDeviceGetCurrentClocksEventReasons", 535, 999},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", 0, 600},
        {"nvmlDeviceGetPowerState", 0, 600},
        {"nvmlDeviceGetComputeRunningProcesses_v3", 510, 999},
        {"nvmlDeviceGetComputeRunningProcesses_v2", 455, 999},
        {"nvmlDeviceGetGraphicsRunningProcesses_v3", 510, 999},
        {"nvmlDeviceGetGraphicsRunningProcesses_v2", 455, 999},
        {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 510, 999},
        {"nvmlDeviceGetMPSComputeRunningProcesses_v2", 455, 999},
        {"nvmlDeviceGetMPSComputeRunningProcesses", 455, 999},
        {"nvmlEventSetWait_v2", 455, 999},
        {"nvmlDeviceGetMemoryAffinity", 450, 999},
        {"nvmlGpmQueryDeviceSupport", 520, 999},
        {"nvmlGpmSampleAlloc", 520, 999},
        {"nvmlGpmSampleFree", 520, 999},
        {"nvmlGpmSampleGet", 520, 999},
        {"nvmlGpmMigSampleGet", 520, 999},
        {"nvmlGpmMetricsGet", 520, 999},
        {"nvmlDeviceGetConfComputeMemSizeInfo", 535, 999},
        {"nvmlDeviceGetRunningProcessDetailList", 536, 999},
    };
    char listed[80];
    snprintf(listed, sizeof listed, ",%s,", function);
    if (strstr(fake_script.missing, listed))
        return 0;
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++)
        if (strcmp(ages[i].name, function) == 0)
            return fake_script.driver >= ages[i].since && fake_script.driver < ages[i].until;
    return 1;
}

/* Nobody calls them: that they are there tells a driver's age. */
void nvmlDeviceGetConfComputeMemSizeInfo(void) {
}

void nvmlDeviceGetRunningProcessDetailList(void) {
}

/* --- who is who --- */

int fake_gpu_count(void) {
    int count = fake_script.scripted ? fake_script.gpus : (int)fake_number("FAKE_CUDA_GPUS", 2);
    return count < FAKE_GPUS_MAX ? count : FAKE_GPUS_MAX;
}

int fake_instances(int gpu) {
    if (fake_script.scripted)
        return fake_script.mig[gpu];
    return fake_number("FAKE_CUDA_MIG", -1) == gpu ? 2 : 0;
}

lab_nvml_result nvmlDeviceGetCount_v2(unsigned *ret_count) {
    BEGIN(nvmlDeviceGetCount_v2);
    *ret_count = 0;
    for (int gpu = 0; gpu < fake_gpu_count(); gpu++)
        *ret_count += !atomic_load(&unlisted[gpu]);
    return 0;
}

lab_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, lab_nvml_device *ret_device) {
    int gpu = 0;
    BEGIN(nvmlDeviceGetHandleByIndex_v2);
    for (; gpu < fake_gpu_count(); gpu++)
        if (!atomic_load(&unlisted[gpu]) && index-- == 0)
            break;
    if (gpu >= fake_gpu_count())
        return LAB_NVML_INVALID_ARGUMENT;
    *ret_device = fake_handle(gpu, -1);
    return atomic_load(&lost[gpu]) || is_away(gpu, false) ? LAB_NVML_GPU_IS_LOST : 0;
}

lab_nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *address, lab_nvml_device *ret_device) {
    unsigned domain = 0, bus = 0;
    BEGIN(nvmlDeviceGetHandleByPciBusId_v2);
    if (sscanf(address, "%x:%x:", &domain, &bus) != 2)
        return LAB_NVML_INVALID_ARGUMENT;
    int gpu = (int)bus - 0x17;
    if (gpu < 0 || gpu >= fake_gpu_count() || atomic_load(&unlisted[gpu]))
        return LAB_NVML_NOT_FOUND;
    *ret_device = fake_handle(gpu, -1);
    return atomic_load(&lost[gpu]) || is_away(gpu, false) ? LAB_NVML_GPU_IS_LOST : 0;
}

lab_nvml_result nvmlDeviceGetUUID(lab_nvml_device device, char *uuid, unsigned length) {
    char text[48];
    BEGIN_ON(nvmlDeviceGetUUID, device);
    fake_uuid_text(device->gpu, device->instance, text);
    snprintf(uuid, length, "%s", text);
    return 0;
}

lab_nvml_result nvmlDeviceGetName(lab_nvml_device device, char *name, unsigned length) {
    BEGIN_ON(nvmlDeviceGetName, device);
    snprintf(name, length, "%s%s", fake_script.name, device->instance < 0 ? "" : " MIG 3g.40gb");
    return 0;
}

lab_nvml_result nvmlDeviceGetPciInfo_v3(lab_nvml_device device, struct lab_nvml_pci *ret_pci) {
    BEGIN_ON(nvmlDeviceGetPciInfo_v3, device);
    ret_pci->domain = 0;
    ret_pci->bus = 0x17 + (unsigned)device->gpu;
    ret_pci->device = 0;
    return 0;
}

lab_nvml_result nvmlDeviceGetMinorNumber(lab_nvml_device device, unsigned *ret_minor) {
    BEGIN_ON(nvmlDeviceGetMinorNumber, device);
    *ret_minor = (unsigned)device->gpu;
    return 0;
}

lab_nvml_result nvmlDeviceGetNumGpuCores(lab_nvml_device device, unsigned *ret_cores) {
    BEGIN_ON(nvmlDeviceGetNumGpuCores, device);
    *ret_cores = 128 * FAKE_SM_COUNT;
    return 0;
}

lab_nvml_result nvmlDeviceGetCudaComputeCapability(lab_nvml_device device, int *ret_major,
                                                   int *ret_minor) {
    BEGIN_ON(nvmlDeviceGetCudaComputeCapability, device);
    *ret_major = 9;
    *ret_minor = 0;
    return 0;
}

lab_nvml_result nvmlDeviceGetMemoryAffinity(lab_nvml_device device, unsigned words,
                                            unsigned long *ret_nodes, unsigned scope) {
    double node;
    (void)scope;
    BEGIN_ON(nvmlDeviceGetMemoryAffinity, device);
    int code = fake_at(device->gpu, FAKE_node, &node);
    memset(ret_nodes, 0, words * sizeof *ret_nodes);
    if (!code && words)
        ret_nodes[0] = 1UL << (unsigned)node;
    return code;
}

lab_nvml_result nvmlDeviceGetMigMode(lab_nvml_device device, unsigned *ret_current,
                                     unsigned *ret_pending) {
    BEGIN_ON(nvmlDeviceGetMigMode, device);
    *ret_current = *ret_pending = fake_instances(device->gpu) > 0;
    return 0;
}

lab_nvml_result nvmlDeviceGetMaxMigDeviceCount(lab_nvml_device device, unsigned *ret_count) {
    BEGIN_ON(nvmlDeviceGetMaxMigDeviceCount, device);
    *ret_count = FAKE_MIG_MAX;
    return 0;
}

lab_nvml_result nvmlDeviceGetMigDeviceHandleByIndex(lab_nvml_device device, unsigned index,
                                                    lab_nvml_device *ret_mig) {
    BEGIN_ON(nvmlDeviceGetMigDeviceHandleByIndex, device);
    if ((int)index >= fake_instances(device->gpu))
        return LAB_NVML_NOT_FOUND;
    *ret_mig = fake_handle(device->gpu, (int)index);
    return 0;
}

lab_nvml_result nvmlDeviceGetAttributes_v2(lab_nvml_device device,
                                           struct lab_nvml_attributes *ret_attributes) {
    BEGIN_ON(nvmlDeviceGetAttributes_v2, device);
    if (device->instance < 0)
        return LAB_NVML_NOT_SUPPORTED;
    *ret_attributes = (struct lab_nvml_attributes){.multiprocessor_count = 60, .memory_mib = 512};
    return 0;
}

lab_nvml_result nvmlDeviceGetGpuInstanceId(lab_nvml_device device, unsigned *ret_id) {
    BEGIN_ON(nvmlDeviceGetGpuInstanceId, device);
    if (device->instance < 0)
        return LAB_NVML_NOT_SUPPORTED;
    *ret_id = (unsigned)device->instance + 1;
    return 0;
}

lab_nvml_result nvmlSystemGetDriverVersion(char *version, unsigned length) {
    BEGIN(nvmlSystemGetDriverVersion);
    snprintf(version, length, "%d.00", fake_script.driver);
    return 0;
}
