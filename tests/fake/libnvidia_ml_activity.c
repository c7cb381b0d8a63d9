/* libnvidia_ml_activity.c: GPM, events and processes of the fake machine (fake_nvml.h). */
#include "fake/fake_nvml.h"

#include <dirent.h>
#include <unistd.h>

/* --- GPM --- */

struct lab_nvml_gpm_sample_st {
    int gpu;
    double time_s;
};

lab_nvml_result nvmlGpmQueryDeviceSupport(lab_nvml_device device,
                                          struct lab_nvml_gpm_support *support) {
    double has = 0;
    BEGIN_ON(nvmlGpmQueryDeviceSupport, device);
    if (support->version != LAB_NVML_GPM_SUPPORT_VERSION)
        return LAB_NVML_VERSION_MISMATCH;
    fake_at(device->gpu, FAKE_gpm, &has);
    support->supported = has > 0;
    return 0;
}

lab_nvml_result nvmlGpmSampleAlloc(lab_nvml_gpm_sample *ret_sample) {
    BEGIN(nvmlGpmSampleAlloc);
    *ret_sample = calloc(1, sizeof **ret_sample);
    return 0;
}

lab_nvml_result nvmlGpmSampleFree(lab_nvml_gpm_sample sample) {
    BEGIN(nvmlGpmSampleFree);
    free(sample);
    return 0;
}

lab_nvml_result nvmlGpmSampleGet(lab_nvml_device device, lab_nvml_gpm_sample sample) {
    BEGIN_ON(nvmlGpmSampleGet, device);
    if (fake_instances(device->gpu) && device->instance < 0)
        return LAB_NVML_NOT_SUPPORTED; /* as in MIG mode */
    *sample = (struct lab_nvml_gpm_sample_st){device->gpu, fake_now()};
    return 0;
}

lab_nvml_result nvmlGpmMigSampleGet(lab_nvml_device device, unsigned gpu_instance,
                                    lab_nvml_gpm_sample sample) {
    BEGIN_ON(nvmlGpmMigSampleGet, device);
    if (gpu_instance < 1 || (int)gpu_instance > fake_instances(device->gpu))
        return LAB_NVML_NOT_FOUND;
    *sample = (struct lab_nvml_gpm_sample_st){device->gpu, fake_now()};
    return 0;
}

static void read_metric(const struct lab_nvml_gpm_sample_st *from,
                        const struct lab_nvml_gpm_sample_st *until,
                        struct lab_nvml_gpm_metric *metric) {
    static const struct {
        unsigned id;
        enum fake_key key;
    } known[] = {
        {LAB_NVML_GPM_GRAPHICS, FAKE_graphics},   {LAB_NVML_GPM_SM, FAKE_sm},
        {LAB_NVML_GPM_OCCUPANCY, FAKE_occupancy}, {LAB_NVML_GPM_INTEGER, FAKE_integer},
        {LAB_NVML_GPM_TENSOR, FAKE_tensor},       {LAB_NVML_GPM_DRAM, FAKE_dram},
        {LAB_NVML_GPM_FP64, FAKE_fp64},           {LAB_NVML_GPM_FP32, FAKE_fp32},
        {LAB_NVML_GPM_FP16, FAKE_fp16},           {LAB_NVML_GPM_PCIE_TX, FAKE_pcie_tx},
        {LAB_NVML_GPM_PCIE_RX, FAKE_pcie_rx},     {LAB_NVML_GPM_NVLINK_TX, FAKE_nvlink_tx},
        {LAB_NVML_GPM_NVLINK_RX, FAKE_nvlink_rx},
    };
    double sum = NAN;
    metric->result = LAB_NVML_NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == metric->id)
            metric->result = fake_sum(from->gpu, known[i].key, from->time_s, until->time_s, &sum);
    metric->value = until->time_s > from->time_s ? sum / (until->time_s - from->time_s) : NAN;
}

lab_nvml_result nvmlGpmMetricsGet(struct lab_nvml_gpm_metrics *metrics) {
    BEGIN(nvmlGpmMetricsGet);
    if (metrics->version != LAB_NVML_GPM_METRICS_VERSION)
        return LAB_NVML_VERSION_MISMATCH;
    /* the real one may touch all of the slots; the last one shows whether they are there */
    if (metrics->count < LAB_NVML_GPM_SLOTS)
        memset(&metrics->metrics[LAB_NVML_GPM_SLOTS - 1], 0, sizeof *metrics->metrics);
    for (unsigned i = 0; i < metrics->count; i++)
        read_metric(metrics->from, metrics->until, &metrics->metrics[i]);
    return 0;
}

/* --- events --- */

struct lab_nvml_event_set_st {
    unsigned gpus; /* bit of each that is registered */
    double since_s[FAKE_GPUS_MAX];
    bool told[FAKE_LIST_MAX];
};

lab_nvml_result nvmlEventSetCreate(lab_nvml_event_set *ret_set) {
    BEGIN(nvmlEventSetCreate);
    *ret_set = calloc(1, sizeof **ret_set);
    return 0;
}

lab_nvml_result nvmlDeviceRegisterEvents(lab_nvml_device device, unsigned long long types,
                                         lab_nvml_event_set set) {
    BEGIN_ON(nvmlDeviceRegisterEvents, device);
    if (!(types & LAB_NVML_EVENT_XID))
        return LAB_NVML_NOT_SUPPORTED;
    set->gpus |= 1u << device->gpu;
    set->since_s[device->gpu] = fake_now();
    return 0;
}

static lab_nvml_result wait_for_event(lab_nvml_event_set set, struct lab_nvml_event *event) {
    double now = fake_now();
    event->gpu_instance = event->compute_instance = ~0u;
    if (fake_script.storm) {
        event->type = 0;
        return 0;
    }
    for (int i = 0; i < fake_script.xid_count; i++) {
        const struct fake_xid *xid = &fake_script.xids[i];
        double since_s = set->since_s[xid->gpu], at_s = xid->at_s + (xid->relative ? since_s : 0);
        if (set->told[i] || !(set->gpus >> xid->gpu & 1) || at_s > now || at_s < since_s)
            continue;
        set->told[i] = true;
        event->device = fake_handle(xid->gpu, -1);
        event->type = LAB_NVML_EVENT_XID;
        event->data = xid->code;
        return 0;
    }
    return LAB_NVML_TIMEOUT;
}

lab_nvml_result nvmlEventSetWait_v2(lab_nvml_event_set set, struct lab_nvml_event *ret_event,
                                    unsigned timeout_ms) {
    (void)timeout_ms;
    BEGIN(nvmlEventSetWait_v2);
    return wait_for_event(set, ret_event);
}

lab_nvml_result nvmlEventSetWait(lab_nvml_event_set set, struct lab_nvml_event *ret_event,
                                 unsigned timeout_ms) {
    (void)timeout_ms;
    BEGIN(nvmlEventSetWait);
    return wait_for_event(set, ret_event);
}

lab_nvml_result nvmlEventSetFree(lab_nvml_event_set set) {
    BEGIN(nvmlEventSetFree);
    free(set);
    return 0;
}

/* --- processes --- */

#define TREE_MAX 4096

struct tree { /* processes that are no zombies */
    int pids[TREE_MAX], parents[TREE_MAX], count;
};

static void read_tree(struct tree *tree) {
    tree->count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && tree->count < TREE_MAX && (entry = readdir(folder));) {
        char path[300];
        int parent = -1;
        char state = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = *entry->d_name >= '1' && *entry->d_name <= '9' ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) == 2 && state != 'Z') {
            tree->pids[tree->count] = (int)strtol(entry->d_name, NULL, 10);
            tree->parents[tree->count++] = parent;
        }
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
}

static bool is_below(const struct tree *tree, int pid, int generations) {
    for (int i = 0; i < tree->count && generations > 0; i++)
        if (tree->pids[i] == pid)
            return tree->parents[i] == getpid() ||
                   is_below(tree, tree->parents[i], generations - 1);
    return false;
}

static bool is_leaf(const struct tree *tree, int index) {
    for (int i = 0; i < tree->count; i++)
        if (tree->parents[i] == tree->pids[index])
            return false;
    return is_below(tree, tree->pids[index], 16);
}

static void write_process(const struct fake_process *process, unsigned pid, char *item,
                          size_t item_bytes) {
    struct lab_nvml_process_v3 whole = {
        .pid = pid,
        .used_bytes =
            process->memory_mib < 0 ? ~0ull : (unsigned long long)(process->memory_mib * 1048576),
        .gpu_instance = process->instance < 0 ? ~0u : (unsigned)process->instance + 1,
        .compute_instance = process->instance < 0 ? ~0u : 0,
    };
    memcpy(item, &whole, item_bytes);
}

/* The pids that an entry of the script stands for now; how many. */
static int pids_of(const struct fake_process *process, unsigned pids[FAKE_LIST_MAX]) {
    if (process->pid != FAKE_CHILDREN && process->pid != FAKE_LEAVES) {
        pids[0] = process->pid;
        return 1;
    }
    struct tree *tree = malloc(sizeof *tree);
    int count = 0;
    if (!tree)
        return 0;
    read_tree(tree);
    for (int i = 0; i < tree->count && count < FAKE_LIST_MAX; i++)
        if (process->pid == FAKE_CHILDREN ? tree->parents[i] == getpid() : is_leaf(tree, i))
            pids[count++] = (unsigned)tree->pids[i];
    free(tree);
    return count;
}

static lab_nvml_result list(lab_nvml_device device, char kind, size_t item_bytes, unsigned *count,
                            char *items) {
    unsigned room = *count;
    *count = 0;
    for (int i = 0; i < fake_script.process_count; i++) {
        const struct fake_process *process = &fake_script.processes[i];
        if (process->gpu != device->gpu || process->kind != kind ||
            (device->instance >= 0 && process->instance != device->instance))
            continue;
        unsigned pids[FAKE_LIST_MAX];
        int listed = pids_of(process, pids);
        for (int k = 0; k < listed; k++) {
            if (items && *count < room)
                write_process(process, pids[k], items + *count * item_bytes, item_bytes);
            ++*count;
        }
    }
    return *count > room ? LAB_NVML_INSUFFICIENT_SIZE : 0;
}

static size_t bytes_v3(void) {
    return fake_script.driver == 535 ? sizeof(struct lab_nvml_process_v3)
                                     : sizeof(struct lab_nvml_process_v2);
}

#define PROCESS_LIST(name, kind, item_bytes)                                                       \
    lab_nvml_result name(lab_nvml_device device, unsigned *count, void *ret_items) {               \
        BEGIN_ON(name, device);                                                                    \
        return list(device, kind, item_bytes, count, ret_items);                                   \
    }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'C', bytes_v3())
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'C', sizeof(struct lab_nvml_process_v2))
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, 'C', sizeof(struct lab_nvml_process_v1))
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', bytes_v3())
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', sizeof(struct lab_nvml_process_v2))
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, 'G', sizeof(struct lab_nvml_process_v1))
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', bytes_v3())
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', sizeof(struct lab_nvml_process_v2))
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, 'M', sizeof(struct lab_nvml_process_v1))

lab_nvml_result nvmlDeviceGetProcessUtilization(lab_nvml_device device,
                                                struct lab_nvml_process_use *ret_items,
                                                unsigned *count, unsigned long long since_us) {
    unsigned room = *count, found = 0;
    unsigned long long now_us = (unsigned long long)(1e6 * fake_now()) + 1;
    BEGIN_ON(nvmlDeviceGetProcessUtilization, device);
    if (fake_instances(device->gpu))
        return LAB_NVML_NOT_SUPPORTED;
    for (int i = 0; i < fake_script.process_count && since_us < now_us; i++) {
        const struct fake_process *process = &fake_script.processes[i];
        if (process->gpu != device->gpu || process->sm_percent == 0 ||
            process->pid == FAKE_CHILDREN || process->pid == FAKE_LEAVES)
            continue;
        if (ret_items && found < room)
            ret_items[found] = (struct lab_nvml_process_use){
                .pid = process->pid,
                .timestamp_us = now_us,
                .sm_percent = (unsigned)process->sm_percent,
                .memory_percent = (unsigned)process->sm_percent / 2,
            };
        found++;
    }
    *count = found;
    if (!found)
        return LAB_NVML_NOT_FOUND;
    return found > room ? LAB_NVML_INSUFFICIENT_SIZE : 0;
}
