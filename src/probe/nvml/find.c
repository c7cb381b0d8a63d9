/*
 * find.c: which GPUs there are, in the order in which `cuda:N` counts them, and where one is that
 * was lost or whose handle became worthless: at its old place on the bus if it is the same GPU,
 * else wherever its UUID is. Others never move because one is missing.
 */
#include "probe/nvml/nvml.h"

#include "base/file/file.h"
#include "base/str.h"
#include "vendor/visible.h"

#include <fcntl.h>
#include <unistd.h>

struct candidate {
    lab_nvml_device handle;
    char uuid[LAB_NVML_UUID_BYTES];
    int parent; /* of a MIG instance: the index of its GPU; -1 = a whole GPU */
    int driver_index;
};

struct candidates { /* in PCI order, each GPU followed by its MIG instances */
    struct candidate *items;
    int count;
};

/* --- identity --- */

static void read_pci(const struct nvml_probe *probe, lab_nvml_device handle, char *text,
                     size_t size) {
    struct lab_nvml_pci pci = {0};
    *text = '\0';
    if (probe->nvml->nvmlDeviceGetPciInfo_v3(handle, &pci) == LAB_NVML_SUCCESS)
        snprintf(text, size, "%04x:%02x:%02x.0", pci.domain & 0xfffff, pci.bus & 0xff,
                 pci.device & 0xff);
}

/* One that has no UUID is known by its place on the bus. */
static bool is_it(const struct nvml_gpu *gpu, lab_nvml_device handle) {
    char text[LAB_NVML_UUID_BYTES] = "";
    if (strcmp(gpu->unit.uuid, gpu->pci) == 0)
        read_pci(gpu->probe, handle, text, sizeof text);
    else if (gpu->probe->nvml->nvmlDeviceGetUUID(handle, text, sizeof text) != LAB_NVML_SUCCESS)
        return false;
    return strcmp(text, gpu->unit.uuid) == 0;
}

static int find_minor(const struct nvml_probe *probe, lab_nvml_device handle) {
    unsigned minor;
    if (!probe->nvml->nvmlDeviceGetMinorNumber ||
        probe->nvml->nvmlDeviceGetMinorNumber(handle, &minor) != LAB_NVML_SUCCESS)
        return -1;
    return (int)minor;
}

/* In a virtual machine, and in the demonstration, the driver may name one that isn't here. */
static int node_here(const struct lab_machine *machine, int node) {
    for (int i = 0; machine && i < machine->node_count; i++)
        if (machine->nodes[i].number == node)
            return node;
    return machine ? -1 : node;
}

/* Its NUMA node, from PCI or else the driver; simulated GPUs are not on our PCI bus. */
static int find_node(const struct nvml_gpu *gpu) {
    const struct nvml_probe *probe = gpu->probe;
    const struct lab_machine *machine = probe->machine;
    unsigned long nodes[4] = {0};
    for (int i = 0; machine && !probe->simulated && i < machine->pci_count; i++)
        if (strcmp(machine->pci[i].address, gpu->pci) == 0 && machine->pci[i].node >= 0)
            return machine->nodes[machine->pci[i].node].number;
    if (probe->nvml->nvmlDeviceGetMemoryAffinity &&
        probe->nvml->nvmlDeviceGetMemoryAffinity(gpu->unit.handle, 4, nodes, LAB_NVML_SCOPE_NODE) ==
            LAB_NVML_SUCCESS)
        for (int i = 0; i < 4; i++)
            if (nodes[i])
                return node_here(machine, 64 * i + __builtin_ctzl(nodes[i]));
    return -1;
}

/* The kernel's word on whether it sleeps; kept open, so that each tick reads it anew. */
static void open_status(struct nvml_gpu *gpu) {
    char path[512], text[32];
    const struct nvml_probe *probe = gpu->probe;
    lab_file_close(&gpu->status_fd);
    if (probe->simulated && !*probe->root)
        return; /* another device may have its address */
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/power/runtime_status", probe->root,
             gpu->pci);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (length > 0 && strncmp(text, "unsupported", 11) != 0)
        gpu->status_fd = fd;
    else
        lab_file_close(&fd);
}

/* --- MIG --- */

static void init_unit(struct nvml_unit *unit, struct nvml_gpu *gpu, bool mig) {
    unit->gpu = gpu;
    unit->mig = mig;
    unit->number = unit->newest = unit->process_count = -1;
}

static struct nvml_unit *add_instance(struct nvml_gpu *gpu, const char *uuid) {
    if (gpu->instance_count == NVML_MIG_MAX)
        return NULL;
    struct nvml_unit *unit = lab_mem_alloc(1, sizeof *unit);
    init_unit(unit, gpu, true);
    snprintf(unit->uuid, sizeof unit->uuid, "%s", uuid);
    gpu->instances[gpu->instance_count++] = unit;
    return unit;
}

static struct nvml_unit *find_instance(struct nvml_gpu *gpu, const char *uuid) {
    for (int i = 0; i < gpu->instance_count; i++)
        if (strcmp(gpu->instances[i]->uuid, uuid) == 0)
            return gpu->instances[i];
    return gpu->all_instances ? add_instance(gpu, uuid) : NULL;
}

static void take_instance(struct nvml_gpu *gpu, int slot, lab_nvml_device handle) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    char uuid[LAB_NVML_UUID_BYTES] = "";
    if (nvml->nvmlDeviceGetUUID(handle, uuid, sizeof uuid) != LAB_NVML_SUCCESS)
        return;
    struct nvml_unit *unit = find_instance(gpu, uuid);
    if (!unit)
        return;
    if (!unit->handle) { /* new, or back */
        unit->refused = unit->doubted = 0;
        unit->newest = -1;
        unit->index = slot;
        if (nvml->nvmlDeviceGetName(handle, unit->name, sizeof unit->name) != LAB_NVML_SUCCESS)
            snprintf(unit->name, sizeof unit->name, "MIG instance of %.70s", gpu->unit.name);
        lab_str_make_printable(unit->name);
        if (!nvml->nvmlDeviceGetGpuInstanceId ||
            nvml->nvmlDeviceGetGpuInstanceId(handle, &unit->gpu_instance) != LAB_NVML_SUCCESS)
            unit->refused |= UINT64_C(1) << NVML_ASK_GPM;
    }
    unit->handle = handle;
}

void nvml_find_instances(struct nvml_gpu *gpu) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    lab_nvml_device found[NVML_MIG_MAX] = {NULL};
    unsigned slots = 0;
    if (!gpu->mig_mode || !nvml->nvmlDeviceGetMaxMigDeviceCount ||
        !nvml->nvmlDeviceGetMigDeviceHandleByIndex ||
        nvml->nvmlDeviceGetMaxMigDeviceCount(gpu->unit.handle, &slots) != LAB_NVML_SUCCESS)
        return;
    slots = slots < NVML_MIG_MAX ? slots : NVML_MIG_MAX;
    for (unsigned i = 0; i < slots; i++)
        if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(gpu->unit.handle, i, &found[i]) !=
            LAB_NVML_SUCCESS)
            found[i] = NULL; /* an empty slot */
    for (int k = 0; k < gpu->instance_count; k++) {
        bool there = false;
        for (unsigned i = 0; i < slots; i++)
            there |= found[i] && found[i] == gpu->instances[k]->handle;
        if (!there)
            gpu->instances[k]->handle = NULL;
    }
    for (unsigned i = 0; i < slots; i++)
        if (found[i])
            take_instance(gpu, (int)i, found[i]);
}

static void read_mig_mode(struct nvml_gpu *gpu) {
    unsigned current = 0, pending = 0;
    const struct lab_nvml *nvml = gpu->probe->nvml;
    gpu->mig_mode =
        nvml->nvmlDeviceGetMigMode &&
        nvml->nvmlDeviceGetMigMode(gpu->unit.handle, &current, &pending) == LAB_NVML_SUCCESS &&
        current;
}

/* --- all of them --- */

static void add_candidate(struct nvml_probe *probe, struct candidates *list, lab_nvml_device handle,
                          int parent) {
    struct candidate *item = &LAB_PUSH(list->items, list->count);
    *item = (struct candidate){.handle = handle, .parent = parent};
    probe->nvml->nvmlDeviceGetUUID(handle, item->uuid, sizeof item->uuid);
}

static void add_candidates_of(struct nvml_probe *probe, struct candidates *list, int parent) {
    const struct lab_nvml *nvml = probe->nvml;
    lab_nvml_device whole = list->items[parent].handle, handle;
    unsigned current = 0, pending = 0, slots = 0;
    if (!nvml->nvmlDeviceGetMigMode || !nvml->nvmlDeviceGetMaxMigDeviceCount ||
        !nvml->nvmlDeviceGetMigDeviceHandleByIndex ||
        nvml->nvmlDeviceGetMigMode(whole, &current, &pending) != LAB_NVML_SUCCESS || !current ||
        nvml->nvmlDeviceGetMaxMigDeviceCount(whole, &slots) != LAB_NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < slots; i++)
        if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(whole, i, &handle) == LAB_NVML_SUCCESS)
            add_candidate(probe, list, handle, parent);
}

/* What the driver said last where it gave no handle; success = it has none to give. */
static lab_nvml_result read_candidates(struct nvml_probe *probe, struct candidates *list) {
    unsigned count = 0;
    lab_nvml_device handle;
    lab_nvml_result why = probe->nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; why == LAB_NVML_SUCCESS && i < count; i++) {
        int index = list->count;
        lab_nvml_result result = probe->nvml->nvmlDeviceGetHandleByIndex_v2(i, &handle);
        if (result != LAB_NVML_SUCCESS) { /* lost, or not ours to see: nor does `cuda:N` count it */
            why = i + 1 == count && !list->count ? result : why;
            continue;
        }
        add_candidate(probe, list, handle, -1);
        list->items[index].driver_index = (int)i;
        add_candidates_of(probe, list, index);
    }
    return why;
}

static void init_gpu(struct nvml_probe *probe, struct nvml_gpu *gpu, int index,
                     const struct candidate *from) {
    *gpu = (struct nvml_gpu){.probe = probe, .status_fd = -1, .last_xid = -1};
    init_unit(&gpu->unit, gpu, false);
    gpu->unit.handle = from->handle;
    gpu->unit.index = index;
    probe->nvml->nvmlDeviceGetName(from->handle, gpu->unit.name, sizeof gpu->unit.name);
    lab_str_make_printable(gpu->unit.name);
    read_pci(probe, from->handle, gpu->pci, sizeof gpu->pci);
    snprintf(gpu->unit.uuid, sizeof gpu->unit.uuid, "%s", *from->uuid ? from->uuid : gpu->pci);
    snprintf(gpu->label, sizeof gpu->label, *gpu->pci ? "GPU %d (%s)" : "GPU %d%s", index,
             gpu->pci);
    gpu->driver_index = from->driver_index;
    gpu->driver_minor = find_minor(probe, from->handle);
    gpu->metrics = lab_mem_alloc(1, sizeof *gpu->metrics);
    gpu->node = find_node(gpu);
}

/* The lane of a candidate: that of its GPU, which may be there already. */
static struct nvml_gpu *lane_of(struct nvml_probe *probe, const struct candidates *list, int which,
                                int index) {
    int parent = list->items[which].parent, whole = parent < 0 ? which : parent;
    for (int i = 0; i < probe->gpu_count; i++)
        if (probe->gpus[i].unit.handle == list->items[whole].handle)
            return &probe->gpus[i];
    struct nvml_gpu *gpu = &probe->gpus[probe->gpu_count++];
    init_gpu(probe, gpu, index, &list->items[whole]);
    return gpu;
}

static void make_lanes(struct nvml_probe *probe, const struct candidates *list, const int *order,
                       int count) {
    for (int i = 0; i < count; i++) {
        struct nvml_gpu *gpu = lane_of(probe, list, order[i], i);
        if (list->items[order[i]].parent < 0)
            gpu->all_instances = true;
        else
            add_instance(gpu, list->items[order[i]].uuid);
    }
}

/* The lanes that CUDA_VISIBLE_DEVICES leaves of at least one candidate. */
static int choose_lanes(struct nvml_probe *probe, const struct candidates *list,
                        struct lab_err *err) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    size_t size = (size_t)list->count;
    LAB_AUTO_FREE struct lab_visible_gpu *gpus = lab_mem_alloc(size, sizeof *gpus);
    LAB_AUTO_FREE int *order = lab_mem_alloc(size, sizeof *order);
    bool twice = false;
    for (int i = 0; i < list->count; i++)
        gpus[i] = (struct lab_visible_gpu){list->items[i].uuid, list->items[i].parent};
    int count = lab_visible_order(visible, gpus, list->count, order, &twice);
    probe->gpus = lab_mem_alloc(size, sizeof *probe->gpus);
    make_lanes(probe, list, order, count);
    if (count)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES='%s' %sleaves no GPU",
                       visible ? visible : "", twice ? "names one twice, which " : "");
}

int nvml_find_all(struct nvml_probe *probe, struct lab_err *err) {
    struct candidates list = {0};
    lab_nvml_result why = read_candidates(probe, &list);
    int result = list.count ? choose_lanes(probe, &list, err) : -1;
    if (!list.count && why == LAB_NVML_SUCCESS)
        lab_err_set(err, LAB_ERR_SYSTEM, "the NVIDIA driver finds no GPU");
    else if (!list.count)
        lab_err_set(err, LAB_ERR_SYSTEM, "the NVIDIA driver lists no GPU: %s (%d)",
                    lab_nvml_words(probe->nvml, why), why);
    lab_mem_free(list.items);
    return result;
}

/* --- again --- */

static int look_on_bus(struct nvml_gpu *gpu, lab_nvml_device *ret_handle) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    if (!nvml->nvmlDeviceGetHandleByPciBusId_v2)
        return LAB_NVML_NOT_FOUND;
    lab_nvml_result result = nvml->nvmlDeviceGetHandleByPciBusId_v2(gpu->pci, ret_handle);
    if (result == LAB_NVML_SUCCESS && !is_it(gpu, *ret_handle))
        return LAB_NVML_NOT_FOUND;
    return result;
}

static int look_everywhere(struct nvml_gpu *gpu, lab_nvml_device *ret_handle) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    unsigned count = 0;
    lab_nvml_result result = nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++)
        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, ret_handle) == LAB_NVML_SUCCESS &&
            is_it(gpu, *ret_handle))
            return LAB_NVML_SUCCESS;
    return result == LAB_NVML_SUCCESS ? LAB_NVML_NOT_FOUND : result;
}

int nvml_find_again(struct nvml_gpu *gpu, unsigned generation, struct lab_err *err) {
    lab_nvml_device handle = NULL;
    bool restarted = gpu->generation != generation;
    lab_nvml_result result = look_on_bus(gpu, &handle);
    if (result != LAB_NVML_SUCCESS && look_everywhere(gpu, &handle) == LAB_NVML_SUCCESS)
        result = LAB_NVML_SUCCESS;
    if (result != LAB_NVML_SUCCESS) {
        gpu->fatal = result;
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s (%d)", lab_nvml_words(gpu->probe->nvml, result),
                           result);
    }
    gpu->unit.handle = handle;
    gpu->generation = generation;
    for (int i = -1; restarted && i < gpu->instance_count; i++) {
        struct nvml_unit *unit = i < 0 ? &gpu->unit : gpu->instances[i];
        unit->refused = unit->doubted = unit->refused_fields = 0;
        unit->unified = false;
        unit->newest = -1;
    }
    open_status(gpu);
    read_mig_mode(gpu);
    nvml_find_instances(gpu);
    nvml_watch_xids(gpu);
    return 0;
}

void nvml_give_up(struct nvml_gpu *gpu) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    if (gpu->events)
        nvml->nvmlEventSetFree(gpu->events);
    gpu->events = NULL;
    for (int i = -1; i < gpu->instance_count; i++) {
        struct nvml_unit *unit = i < 0 ? &gpu->unit : gpu->instances[i];
        for (int k = 0; k < NVML_GPM_SAMPLES; k++) {
            if (unit->samples[k])
                nvml->nvmlGpmSampleFree(unit->samples[k]);
            unit->samples[k] = NULL;
        }
        unit->newest = -1;
        unit->handle = NULL;
    }
    gpu->generation = 0;
}
