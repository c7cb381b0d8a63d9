/*
 * health.c: what NVML, the kernel module and the kernel log report about GPUs. CUDA isn't
 * initialised. What a driver doesn't answer stays unknown, except that a GPU which is lost says so.
 */
#include "device/health.h"

#include "base/file/file.h"
#include "base/file/walk.h"
#include "base/list.h"
#include "base/str.h"
#include "device/cuda/cuda.h"
#include "vendor/nvml_session.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define NVIDIA         0x10de
#define PROCESSES_MOST 256
#define LINKS_MOST     36

struct asked {
    const struct lab_nvml *nvml;
    lab_nvml_device device;
    struct lab_arena *arena;
    struct lab_gpu_health *health;
};

/* A failure of the driver or the GPU: not a value that it doesn't have, or that nobody may read. */
static bool is_error(lab_nvml_result result) {
    return result == LAB_NVML_UNINITIALIZED || result == LAB_NVML_DRIVER_NOT_LOADED ||
           result == LAB_NVML_TIMEOUT || result == LAB_NVML_GPU_IS_LOST ||
           result == LAB_NVML_RESET_REQUIRED || result == LAB_NVML_UNKNOWN;
}

static const char *error_of(const struct lab_nvml *nvml, const char *call, lab_nvml_result result,
                            struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s: %s", call, lab_nvml_words(nvml, result));
}

/* Whether the driver answered; an error is noted. */
static bool works(const struct asked *asked, const char *call, lab_nvml_result result) {
    struct lab_gpu_health *health = asked->health;
    if (result == LAB_NVML_GPU_IS_LOST && !health->lost)
        health->lost = error_of(asked->nvml, call, result, asked->arena);
    else if (is_error(result) && !health->error)
        health->error = error_of(asked->nvml, call, result, asked->arena);
    return result == LAB_NVML_SUCCESS;
}

/* Of a function that the driver has. */
#define WORKS(call, ...) (nvml->call && works(asked, #call, nvml->call(__VA_ARGS__)))

#define UNSIGNED(call, field)                                                                      \
    do {                                                                                           \
        unsigned value = 0;                                                                        \
        if (WORKS(call, device, &value) && value != ~0u)                                           \
            (field) = value;                                                                       \
    } while (0)

/* --- one GPU --- */

static void read_links(const struct asked *asked, struct lab_gpu_health *health) {
    const struct lab_nvml *nvml = asked->nvml;
    lab_nvml_device device = asked->device;
    UNSIGNED(nvmlDeviceGetCurrPcieLinkGeneration, health->pcie_generation);
    UNSIGNED(nvmlDeviceGetCurrPcieLinkWidth, health->pcie_width);
    UNSIGNED(nvmlDeviceGetMaxPcieLinkGeneration, health->pcie_generation_most);
    UNSIGNED(nvmlDeviceGetMaxPcieLinkWidth, health->pcie_width_most);
    if (!nvml->nvmlDeviceGetNvLinkState)
        return;
    const char *before = health->error;
    health->nvlinks = health->nvlinks_active = 0;
    for (unsigned link = 0; link < LINKS_MOST; link++) {
        unsigned active = 0;
        if (!WORKS(nvmlDeviceGetNvLinkState, device, link, &active))
            break;
        health->nvlinks++;
        health->nvlinks_active += active == 1;
    }
    if (health->error != before)
        health->nvlinks = LAB_HEALTH_UNKNOWN;
}

static void read_fabric(const struct asked *asked, struct lab_gpu_health *health) {
    struct lab_nvml_fabric fabric = {.version = LAB_NVML_FABRIC_V2};
    if (!asked->nvml->nvmlDeviceGetGpuFabricInfoV)
        return;
    lab_nvml_result result = asked->nvml->nvmlDeviceGetGpuFabricInfoV(asked->device, &fabric);
    if (result == LAB_NVML_NOT_SUPPORTED)
        health->fabric = LAB_FABRIC_NONE;
    if (!works(asked, "nvmlDeviceGetGpuFabricInfoV", result) ||
        fabric.state > LAB_NVML_FABRIC_COMPLETED)
        return;
    health->fabric = (enum lab_fabric)fabric.state;
    health->fabric_status = fabric.status;
    health->fabric_clique = fabric.clique;
    health->fabric_degraded = (fabric.health_mask & 3u) == 1;
}

static void read_fields(const struct asked *asked, struct lab_gpu_health *health) {
    static const unsigned ids[] = {LAB_NVML_FI_ECC_CORRECTED,   LAB_NVML_FI_ECC_UNCORRECTED,
                                   LAB_NVML_FI_ROWS_CORRECTED,  LAB_NVML_FI_ROWS_PENDING,
                                   LAB_NVML_FI_ROWS_FAILED,     LAB_NVML_FI_RECOVERY_ACTION,
                                   LAB_NVML_FI_ROWS_UNCORRECTED};
    enum { COUNT = sizeof ids / sizeof *ids };
    int64_t more_rows = 0;
    int64_t *const to[COUNT] = {&health->ecc_corrected,
                                &health->ecc_uncorrected,
                                &health->rows_remapped,
                                &health->rows_pending,
                                &health->rows_failed,
                                &health->recovery_action,
                                &more_rows};
    const struct lab_nvml *nvml = asked->nvml;
    struct lab_nvml_field fields[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++)
        fields[i].id = ids[i];
    if (!WORKS(nvmlDeviceGetFieldValues, asked->device, COUNT, fields))
        return;
    for (int i = 0; i < COUNT; i++) {
        const struct lab_nvml_field *field = &fields[i];
        bool wide = field->type == LAB_NVML_VALUE_ULONGLONG || field->type == LAB_NVML_VALUE_ULONG;
        unsigned long long value = wide ? field->value.as_ulonglong : field->value.as_unsigned;
        if (field->result == LAB_NVML_SUCCESS && value < 1ull << 60)
            *to[i] = (int64_t)value;
        else if (field->result == LAB_NVML_GPU_IS_LOST) /* of others, a field that it hasn't */
            works(asked, "nvmlDeviceGetFieldValues", field->result);
    }
    if (health->rows_remapped >= 0)
        health->rows_remapped += more_rows;
}

static void read_power(const struct asked *asked, struct lab_gpu_health *health) {
    const struct lab_nvml *nvml = asked->nvml;
    lab_nvml_device device = asked->device;
    int64_t limit_mw = 0, default_mw = 0, temperature = LAB_HEALTH_UNKNOWN;
    unsigned mhz = 0;
    unsigned long long reasons = 0;
    int state = 0;
    UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, limit_mw);
    UNSIGNED(nvmlDeviceGetPowerManagementDefaultLimit, default_mw);
    if (limit_mw > 0)
        health->power_limit_w = 1e-3 * (double)limit_mw;
    if (default_mw > 0)
        health->power_default_w = 1e-3 * (double)default_mw;
    if (WORKS(nvmlDeviceGetMaxClockInfo, device, LAB_NVML_CLOCK_SM, &mhz))
        health->clock_most_mhz = mhz;
    lab_nvml_result (*get)(lab_nvml_device, unsigned long long *) =
        nvml->nvmlDeviceGetCurrentClocksEventReasons
            ? nvml->nvmlDeviceGetCurrentClocksEventReasons
            : nvml->nvmlDeviceGetCurrentClocksThrottleReasons;
    if (get && works(asked, "nvmlDeviceGetCurrentClocksEventReasons", get(device, &reasons)) &&
        reasons < 1ull << 62)
        health->clock_reasons = (int64_t)reasons;
    if (WORKS(nvmlDeviceGetPerformanceState, device, &state) && state < 16)
        health->performance_state = state;
    struct lab_nvml_temperature heat = {.version = LAB_NVML_TEMPERATURE_V1};
    if (WORKS(nvmlDeviceGetTemperatureV, device, &heat))
        temperature = heat.temperature_c;
    if (temperature >= 0 && temperature < 200)
        health->temperature_c = (double)temperature;
}

static void read_modes(const struct asked *asked, struct lab_gpu_health *health) {
    const struct lab_nvml *nvml = asked->nvml;
    lab_nvml_device device = asked->device;
    unsigned current = 0, pending = 0;
    UNSIGNED(nvmlDeviceGetPersistenceMode, health->persistence);
    if (WORKS(nvmlDeviceGetEccMode, device, &current, &pending))
        health->ecc_on = current == 1;
}

static void read_memory(const struct asked *asked, struct lab_gpu_health *health) {
    struct lab_nvml_memory_v2 memory = {.version = LAB_NVML_MEMORY_V2};
    struct lab_nvml_memory old = {0};
    const struct lab_nvml *nvml = asked->nvml;
    if (WORKS(nvmlDeviceGetMemoryInfo_v2, asked->device, &memory) &&
        memory.used_bytes <= memory.total_bytes) {
        health->memory_bytes = (int64_t)memory.total_bytes;
        health->memory_used_bytes = (int64_t)memory.used_bytes;
    } else if (WORKS(nvmlDeviceGetMemoryInfo, asked->device, &old)) {
        health->memory_bytes = (int64_t)old.total_bytes; /* `used` holds the driver's own too */
    }
}

/* "" where it is in another name space. */
static const char *process_name(int64_t pid, struct lab_arena *arena) {
    char *text;
    size_t length;
    const char *path = lab_arena_printf(arena, "/proc/%lld/comm", (long long)pid);
    if (lab_file_read(path, 256, arena, &text, &length, NULL) < 0)
        return "";
    text[strcspn(text, "\n")] = '\0';
    lab_str_make_printable(text);
    return text;
}

static void read_processes(const struct asked *asked, struct lab_gpu_health *health) {
    const struct lab_nvml *nvml = asked->nvml;
    unsigned char items[PROCESSES_MOST * sizeof(struct lab_nvml_process_v3)];
    size_t bytes = lab_nvml_process_bytes(nvml);
    lab_nvml_result (*list)(lab_nvml_device, unsigned *, void *) =
        nvml->nvmlDeviceGetComputeRunningProcesses_v3;
    unsigned count = PROCESSES_MOST;
    if (!list) {
        list = nvml->nvmlDeviceGetComputeRunningProcesses_v2;
        bytes = sizeof(struct lab_nvml_process_v2);
    }
    if (!list ||
        !works(asked, "nvmlDeviceGetComputeRunningProcesses", list(asked->device, &count, items)) ||
        count > PROCESSES_MOST)
        return;
    health->process_count = 0;
    for (unsigned i = 0; i < count; i++) {
        struct lab_nvml_process_v1 item; /* how all layouts begin */
        memcpy(&item, items + i * bytes, sizeof item);
        if (item.pid == (unsigned)getpid() || item.pid == 0)
            continue;
        LAB_ADD(health->processes, health->process_count, asked->arena) =
            (struct lab_health_process){.pid = item.pid,
                                        .name = process_name(item.pid, asked->arena),
                                        .memory_bytes = item.used_bytes <= INT64_MAX
                                                            ? (int64_t)item.used_bytes
                                                            : LAB_HEALTH_UNKNOWN};
    }
}

/* Whether the GPU is cut into MIG instances and this is one of them. */
static bool has_instance(const struct lab_nvml *nvml, lab_nvml_device device, const char *uuid) {
    unsigned slots = 0;
    if (!lab_str_starts(uuid ? uuid : "", "MIG-") || !nvml->nvmlDeviceGetMaxMigDeviceCount ||
        !nvml->nvmlDeviceGetMigDeviceHandleByIndex ||
        nvml->nvmlDeviceGetMaxMigDeviceCount(device, &slots) != LAB_NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < slots; i++) {
        lab_nvml_device instance = NULL;
        char found[LAB_NVML_UUID_BYTES] = "";
        if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(device, i, &instance) == LAB_NVML_SUCCESS &&
            nvml->nvmlDeviceGetUUID(instance, found, sizeof found) == LAB_NVML_SUCCESS &&
            lab_str_equal(found, uuid))
            return true;
    }
    return false;
}

/* By its UUID, or by that of one of its MIG instances; -1 with what the driver said. */
static int find(const struct lab_nvml *nvml, const struct lab_device_ref *ref,
                lab_nvml_device *ret_device, const char **ret_why, struct lab_arena *arena) {
    unsigned count = 0;
    *ret_why = "the driver doesn't list it";
    nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++) {
        char uuid[LAB_NVML_UUID_BYTES] = "";
        lab_nvml_result result = nvml->nvmlDeviceGetHandleByIndex_v2(i, ret_device);
        if (result == LAB_NVML_GPU_IS_LOST && (int)i == ref->unit)
            *ret_why = lab_arena_strdup(arena, lab_nvml_words(nvml, result));
        if (result == LAB_NVML_SUCCESS &&
            nvml->nvmlDeviceGetUUID(*ret_device, uuid, sizeof uuid) == LAB_NVML_SUCCESS &&
            (lab_str_equal(uuid, ref->uuid) || has_instance(nvml, *ret_device, ref->uuid)))
            return 0;
    }
    return -1;
}

static void read_gpu(const struct lab_nvml *nvml, const struct lab_device_ref *ref,
                     struct lab_arena *arena, struct lab_gpu_health *health) {
    struct asked asked = {.nvml = nvml, .arena = arena, .health = health};
    struct lab_nvml_pci pci = {0};
    char name[LAB_NVML_NAME_BYTES] = "";
    *health = lab_gpu_health_unknown();
    health->node = ref->node;
    health->name = lab_arena_strdup(arena, ref->description);
    if (find(nvml, ref, &asked.device, &health->lost, arena) < 0)
        return;
    lab_nvml_result result = nvml->nvmlDeviceGetPciInfo_v3(asked.device, &pci);
    health->lost =
        result == LAB_NVML_SUCCESS ? NULL : lab_arena_strdup(arena, lab_nvml_words(nvml, result));
    if (health->lost)
        return;
    health->address = lab_arena_printf(arena, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    if (nvml->nvmlDeviceGetName(asked.device, name, sizeof name) == LAB_NVML_SUCCESS)
        health->name = lab_arena_strdup(arena, name);
    read_links(&asked, health);
    read_fabric(&asked, health);
    read_fields(&asked, health);
    read_power(&asked, health);
    read_modes(&asked, health);
    read_memory(&asked, health);
    read_processes(&asked, health);
}

/* A GPU that was lost before this process began has no UUID, so that no device stands for it. */
static int count_lost(const struct lab_nvml *nvml) {
    unsigned count = 0;
    int lost = 0;
    lab_nvml_device device;
    nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++)
        lost += nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) == LAB_NVML_GPU_IS_LOST;
    return lost;
}

/* --- the host --- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  …", or "… Open Kernel Module for
 * x86_64  580.…": the first word of digits and points behind "Module". */
static const char *module_version(struct lab_arena *arena) {
    char *text;
    size_t length;
    if (lab_file_read("/proc/driver/nvidia/version", 4096, arena, &text, &length, NULL) < 0)
        return NULL;
    char *at = strstr(text, "Module"), *rest = NULL;
    for (at = at ? strtok_r(at, " \t\n", &rest) : NULL; at; at = strtok_r(NULL, " \t\n", &rest))
        if (isdigit((unsigned char)*at) && strchr(at, '.') &&
            strspn(at, "0123456789.") == strlen(at))
            return at;
    return NULL;
}

/* Of a container processes and GPUs of the host are out of sight; a host has an init. */
static bool sees_host(struct lab_arena *arena) {
    const char *init = process_name(1, arena);
    return lab_str_equal(init, "systemd") || lab_str_equal(init, "init");
}

static int fabric_manager_runs(struct lab_arena *arena) {
    const char *const *names = lab_walk_names("/proc", arena);
    for (int i = 0; names[i]; i++) {
        if (strspn(names[i], "0123456789") != strlen(names[i]))
            continue;
        if (lab_str_starts(process_name(strtoll(names[i], NULL, 10), arena), "nv-fabricmanage"))
            return 1;
    }
    return sees_host(arena) ? 0 : LAB_HEALTH_UNKNOWN;
}

/* A GPU's device file that this process may not use: its cgroup or its permissions say so. */
static bool hides_gpu(struct lab_arena *arena) {
    const char *const *names = lab_walk_names("/dev", arena);
    for (int i = 0; names[i]; i++) {
        if (!lab_str_starts(names[i], "nvidia") || !isdigit((unsigned char)names[i][6]))
            continue;
        const char *path = lab_arena_printf(arena, "/dev/%s", names[i]);
        if (access(path, R_OK | W_OK) != 0 && (errno == EPERM || errno == EACCES))
            return true;
    }
    return false;
}

int cuda_health(const struct lab_machine *machine, const struct lab_device_list *devices,
                struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err) {
    struct lab_health health = {.gpu_count = devices->count};
    unsigned generation;
    char version[80] = "";
    if (lab_nvml_enter(&generation, err) < 0)
        return -1;
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    lab_nvml_result told = nvml->nvmlSystemGetDriverVersion
                               ? nvml->nvmlSystemGetDriverVersion(version, sizeof version)
                               : LAB_NVML_NOT_SUPPORTED;
    if (told == LAB_NVML_SUCCESS)
        health.driver = lab_arena_strdup(arena, version);
    else if (is_error(told))
        health.driver_error = error_of(nvml, "nvmlSystemGetDriverVersion", told, arena);
    health.gpus = lab_arena_alloc(arena, (size_t)devices->count, sizeof *health.gpus);
    for (int i = 0; i < devices->count; i++)
        read_gpu(nvml, &devices->items[i], arena, &health.gpus[i]);
    health.gpus_lost = count_lost(nvml);
    lab_nvml_leave();
    health.module = module_version(arena);
    health.fabric_manager = fabric_manager_runs(arena);
    bool all = sees_host(arena) && !getenv("CUDA_VISIBLE_DEVICES") && !hides_gpu(arena);
    for (int i = 0; all && i < machine->pci_count; i++)
        health.gpus_on_bus +=
            machine->pci[i].vendor_id == NVIDIA && lab_pci_is_gpu(&machine->pci[i]);
    lab_health_read_xids("/dev/kmsg", arena, &health);
    *ret_health = health;
    return 0;
}
