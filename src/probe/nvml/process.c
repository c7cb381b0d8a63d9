/*
 * process.c: who is on a GPU: the driver's lists of compute, graphics and MPS processes, in one of
 * the three layouts that drivers have, and how much each of them used it since the last time.
 */
#include "probe/nvml/nvml.h"

#include <math.h>

#define ROOM_FIRST 64
#define ROOM_MAX   8192
#define TRIES      3 /* while processes come faster than they are listed */

typedef lab_nvml_result (*list_function)(lab_nvml_device, unsigned *, void *);

struct list {
    enum nvml_question question;
    const char *call;
    list_function function;
    size_t item_bytes;
};

static struct list choose(const struct lab_nvml *nvml, enum nvml_question question,
                          const char *call, list_function v3, list_function v2, list_function v1) {
    struct list list = {question, call, v1, sizeof(struct lab_nvml_process_v1)};
    if (v3) {
        list.function = v3;
        list.item_bytes = lab_nvml_process_bytes(nvml);
    } else if (v2) {
        list.function = v2;
        list.item_bytes = sizeof(struct lab_nvml_process_v2);
    }
    return list;
}

/* The driver's entries, into gpu->process_items; how many. */
static unsigned fetch(struct nvml_unit *unit, const struct list *list) {
    struct nvml_gpu *gpu = unit->gpu;
    for (int i = 0; i < TRIES && list->function && nvml_may_ask(unit, list->question); i++) {
        unsigned count = gpu->process_room;
        lab_nvml_result result = list->function(unit->handle, &count, gpu->process_items);
        if (result != LAB_NVML_INSUFFICIENT_SIZE)
            return nvml_answered(unit, list->question, list->call, result) &&
                           count <= gpu->process_room
                       ? count
                       : 0;
        if (count >= ROOM_MAX)
            return 0;
        gpu->process_room = count + ROOM_FIRST;
        gpu->process_items = lab_mem_resize(gpu->process_items, gpu->process_room,
                                            sizeof(struct lab_nvml_process_v3));
    }
    return 0;
}

/* The process of that pid, made if need be. */
static struct lab_gpu_process *entry(struct nvml_unit *unit, int32_t pid) {
    for (int i = 0; i < unit->process_count; i++)
        if (unit->processes[i].pid == pid)
            return &unit->processes[i];
    struct lab_gpu_process *process = &LAB_PUSH(unit->processes, unit->process_count);
    *process = (struct lab_gpu_process){
        .pid = pid, .memory_bytes = -1, .sm_percent = NAN, .memory_percent = NAN};
    return process;
}

static void add(struct nvml_unit *unit, const struct list *list) {
    unsigned count = fetch(unit, list);
    for (unsigned i = 0; i < count; i++) {
        struct lab_nvml_process_v1 item; /* how all of them begin */
        memcpy(&item, (const char *)unit->gpu->process_items + i * list->item_bytes, sizeof item);
        if (item.pid == 0 || item.pid > INT32_MAX)
            continue;
        struct lab_gpu_process *process = entry(unit, (int32_t)item.pid);
        if (item.used_bytes <= INT64_MAX && (int64_t)item.used_bytes > process->memory_bytes)
            process->memory_bytes = (int64_t)item.used_bytes;
        if (list->question == NVML_ASK_GRAPHICS)
            process->graphics = true;
        else
            process->compute = true;
    }
}

/* --- how much each of them uses it --- */

static void take_use(struct nvml_unit *unit, const struct lab_nvml_process_use *use) {
    if (use->timestamp_us > unit->shares_since_us)
        unit->shares_since_us = use->timestamp_us;
    for (int i = 0; i < unit->process_count; i++) {
        struct lab_gpu_process *process = &unit->processes[i];
        if (process->pid != (int32_t)use->pid)
            continue;
        if (use->sm_percent <= 100)
            process->sm_percent = use->sm_percent;
        if (use->memory_percent <= 100)
            process->memory_percent = use->memory_percent;
    }
}

/* Processes that did nothing since the last time have no entry. */
static void read_use(struct nvml_unit *unit) {
    struct nvml_gpu *gpu = unit->gpu;
    const struct lab_nvml *nvml = gpu->probe->nvml;
    unsigned long long since_us = unit->shares_since_us;
    if (!unit->process_count || !nvml->nvmlDeviceGetProcessUtilization)
        return;
    for (int i = 0; i < TRIES && nvml_may_ask(unit, NVML_ASK_SHARES); i++) {
        unsigned count = gpu->use_room;
        lab_nvml_result result =
            nvml->nvmlDeviceGetProcessUtilization(unit->handle, gpu->use_items, &count, since_us);
        if (result == LAB_NVML_INSUFFICIENT_SIZE && count < ROOM_MAX) {
            gpu->use_room = count + ROOM_FIRST;
            gpu->use_items = lab_mem_resize(gpu->use_items, gpu->use_room, sizeof *gpu->use_items);
            continue;
        }
        bool known =
            result == LAB_NVML_NOT_FOUND ||
            nvml_answered(unit, NVML_ASK_SHARES, "nvmlDeviceGetProcessUtilization", result);
        for (int k = 0; known && k < unit->process_count; k++)
            unit->processes[k].sm_percent = unit->processes[k].memory_percent = 0;
        for (unsigned k = 0; result == LAB_NVML_SUCCESS && k < count && k < gpu->use_room; k++)
            take_use(unit, &gpu->use_items[k]);
        return;
    }
}

static void prepare(struct nvml_gpu *gpu) {
    if (gpu->process_items)
        return;
    gpu->process_room = gpu->use_room = ROOM_FIRST;
    gpu->process_items = lab_mem_alloc(ROOM_FIRST, sizeof(struct lab_nvml_process_v3));
    gpu->use_items = lab_mem_alloc(ROOM_FIRST, sizeof *gpu->use_items);
}

void nvml_read_processes(struct nvml_unit *unit) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    const struct list lists[] = {
        choose(nvml, NVML_ASK_COMPUTE, "nvmlDeviceGetComputeRunningProcesses",
               nvml->nvmlDeviceGetComputeRunningProcesses_v3,
               nvml->nvmlDeviceGetComputeRunningProcesses_v2,
               nvml->nvmlDeviceGetComputeRunningProcesses),
        choose(nvml, NVML_ASK_GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses",
               nvml->nvmlDeviceGetGraphicsRunningProcesses_v3,
               nvml->nvmlDeviceGetGraphicsRunningProcesses_v2,
               nvml->nvmlDeviceGetGraphicsRunningProcesses),
        choose(nvml, NVML_ASK_MPS, "nvmlDeviceGetMPSComputeRunningProcesses",
               nvml->nvmlDeviceGetMPSComputeRunningProcesses_v3,
               nvml->nvmlDeviceGetMPSComputeRunningProcesses_v2,
               nvml->nvmlDeviceGetMPSComputeRunningProcesses),
    };
    bool known = false;
    prepare(unit->gpu);
    unit->process_count = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        add(unit, &lists[i]);
        known |= lists[i].function && nvml_may_ask(unit, lists[i].question);
    }
    if (!known) {
        unit->process_count = -1;
        return;
    }
    read_use(unit);
    nvml_set(unit, LAB_METRIC_PROCESSES, unit->process_count, ROOM_MAX);
}
