/*
 * nvml.c: GPUs through NVML, a lane each. What a tick reads comes in tiers: the fast one each time,
 * GPM each 100 ms or more, the slow one each second and when a run begins or ends.
 *
 * A GPU in trouble is looked for anew at the next reading; if that isn't enough, NVML is shut down
 * and initialised for all of them (vendor/nvml_session.h). A GPU that sleeps is left asleep.
 */
#include "probe/nvml/nvml.h"

#include "base/file/file.h"

#include <fcntl.h>
#include <unistd.h>

#define SLOW_NS LAB_NS_PER_S
#define GPM_NS  (500 * LAB_NS_PER_MS)

static const enum lab_metric_id mig_metrics[] = {
    LAB_METRIC_MEMORY_USED,     LAB_METRIC_MEMORY_RESERVED, LAB_METRIC_MEMORY_TOTAL,
    LAB_METRIC_GRAPHICS_ACTIVE, LAB_METRIC_SM_ACTIVE,       LAB_METRIC_SM_OCCUPANCY,
    LAB_METRIC_TENSOR_ACTIVE,   LAB_METRIC_DRAM_ACTIVE,     LAB_METRIC_FP64_ACTIVE,
    LAB_METRIC_FP32_ACTIVE,     LAB_METRIC_FP16_ACTIVE,     LAB_METRIC_INTEGER_ACTIVE,
    LAB_METRIC_PCIE_TX_RATE,    LAB_METRIC_PCIE_RX_RATE,    LAB_METRIC_NVLINK_TX_RATE,
    LAB_METRIC_NVLINK_RX_RATE,  LAB_METRIC_PROCESSES,
};
#define MIG_METRICS (int)(sizeof mig_metrics / sizeof *mig_metrics)

static struct lab_column gpu_columns[NVML_METRICS], mig_columns[MIG_METRICS];
static pthread_once_t columns_once = PTHREAD_ONCE_INIT;

static void make_columns(void) {
    for (int i = 0; i < NVML_METRICS; i++)
        gpu_columns[i] = (struct lab_column){(int16_t)i, -1};
    for (int i = 0; i < MIG_METRICS; i++)
        mig_columns[i] = (struct lab_column){(int16_t)mig_metrics[i], -1};
}

/* --- its end --- */

static void release_gpu(struct nvml_gpu *gpu) {
    for (int i = 0; i < gpu->instance_count; i++) {
        lab_mem_free(gpu->instances[i]->processes);
        lab_mem_free(gpu->instances[i]);
    }
    lab_mem_free(gpu->unit.processes);
    lab_mem_free(gpu->process_items);
    lab_mem_free(gpu->use_items);
    lab_mem_free(gpu->metrics);
    lab_file_close(&gpu->status_fd);
}

/* From NVML's session, before a restart, and at the end; nobody reads. */
static void give_all_up(void *state) {
    struct nvml_probe *probe = state;
    for (int i = 0; i < probe->gpu_count; i++)
        nvml_give_up(&probe->gpus[i]);
}

/* Nobody reads any more. What a restart that hangs still looks at stays. */
static void destroy(struct nvml_probe *probe) {
    unsigned generation;
    if (!lab_nvml_unhold(&probe->holder))
        return;
    if (lab_nvml_enter(&generation, NULL) == 0) {
        give_all_up(probe);
        lab_nvml_leave();
    }
    for (int i = 0; i < probe->gpu_count; i++)
        release_gpu(&probe->gpus[i]);
    lab_file_close(&probe->meminfo_fd);
    pthread_mutex_destroy(&probe->lock);
    lab_mem_free(probe->gpus);
    lab_mem_free(probe->root);
    lab_mem_free(probe);
}

/* A lane whose call hangs ends the probe when it comes back, if it ever does. */
static void nvml_close(void *state) {
    struct nvml_probe *probe = state;
    pthread_mutex_lock(&probe->lock);
    probe->closed = true;
    bool last = probe->readers == 0;
    pthread_mutex_unlock(&probe->lock);
    if (last)
        destroy(probe);
}

static bool is_closed(struct nvml_probe *probe) {
    LAB_AUTO_LOCK(&probe->lock);
    return probe->closed;
}

/* --- opening --- */

/* A session of NVML in which no GPU was found; none is found later in the same one. 0 = no such. */
static atomic_uint vain_generation;

static int nvml_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    unsigned generation, vain = atomic_exchange(&vain_generation, 0);
    if (vain)
        lab_nvml_restart(vain, lab_clock_now(setup->clock), false, NULL);
    if (lab_nvml_enter(&generation, err)) {
        atomic_store(&vain_generation, generation);
        return -1;
    }
    pthread_once(&columns_once, make_columns);
    struct nvml_probe *probe = lab_mem_alloc(1, sizeof *probe);
    probe->nvml = lab_nvml_load(NULL);
    probe->machine = setup->machine;
    probe->clock = setup->clock;
    probe->interval_ns = setup->interval_ns;
    probe->slow_ns = setup->slow_ns > 0 ? setup->slow_ns : SLOW_NS;
    probe->gpm_ns = setup->gpm_ns > 0 ? setup->gpm_ns : GPM_NS;
    probe->root = lab_mem_strdup(setup->root ? setup->root : "");
    probe->simulated = lab_nvml_simulated(probe->nvml);
    probe->holder = (struct lab_nvml_holder){give_all_up, probe, NULL};
    pthread_mutex_init(&probe->lock, NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/proc/meminfo", probe->root);
    probe->meminfo_fd = open(path, O_RDONLY | O_CLOEXEC);
    lab_nvml_hold(&probe->holder);
    int result = nvml_find_all(probe, err);
    for (int i = 0; i < probe->gpu_count; i++)
        nvml_find_again(&probe->gpus[i], generation, NULL);
    lab_nvml_leave();
    if (result) {
        atomic_store(&vain_generation, generation);
        destroy(probe);
    } else
        *ret_state = probe;
    return result;
}

static int nvml_lane_count(void *state) {
    return ((struct nvml_probe *)state)->gpu_count;
}

static const char *nvml_lane_name(void *state, int lane) {
    return ((struct nvml_probe *)state)->gpus[lane].label;
}

/* --- telling --- */

static void tell_entity(struct nvml_unit *unit, const struct lab_probe_sink *sink) {
    struct nvml_gpu *gpu = unit->gpu;
    struct lab_entity entity = {
        .kind = unit->mig ? LAB_ENTITY_MIG : LAB_ENTITY_GPU,
        .index = unit->index,
        .id = unit->uuid,
        .name = unit->name,
        .pci = gpu->pci,
        .node = gpu->node,
        .parent = unit->mig ? gpu->unit.number : -1,
        .simulated = gpu->probe->simulated,
        .numbered = !unit->mig,
        .driver_index = gpu->driver_index,
        .driver_minor = gpu->driver_minor,
        .columns = unit->mig ? mig_columns : gpu_columns,
        .column_count = unit->mig ? MIG_METRICS : NVML_METRICS,
    };
    unit->number = sink->entity(sink->state, &entity);
}

static void nvml_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    struct nvml_gpu *gpu = &((struct nvml_probe *)state)->gpus[lane];
    tell_entity(&gpu->unit, sink);
    for (int i = 0; i < gpu->instance_count; i++)
        tell_entity(gpu->instances[i], sink);
}

static void tell_unit(struct nvml_unit *unit, int64_t time_ns, const struct lab_probe_sink *sink) {
    int64_t values[MIG_METRICS];
    uint64_t valid[LAB_VALID_WORDS(MIG_METRICS)] = {0};
    if (unit->number < 0)
        tell_entity(unit, sink);
    for (int i = 0; unit->mig && i < MIG_METRICS; i++) {
        values[i] = unit->values[mig_metrics[i]];
        if (lab_valid_get(unit->valid, mig_metrics[i]))
            lab_valid_set(valid, i);
    }
    sink->tick(sink->state, unit->number, time_ns, unit->mig ? values : unit->values,
               unit->mig ? valid : unit->valid);
    if (unit->process_count >= 0)
        sink->gpu_processes(sink->state, unit->number, unit->processes, unit->process_count);
}

static void tell(struct nvml_gpu *gpu, int64_t time_ns, const struct lab_probe_sink *sink) {
    tell_unit(&gpu->unit, time_ns, sink);
    for (int i = 0; i < gpu->instance_count; i++)
        tell_unit(gpu->instances[i], time_ns, sink);
}

static void tell_xids(struct nvml_gpu *gpu, const struct lab_probe_sink *sink) {
    for (int i = 0; i < gpu->new_xid_count; i++)
        sink->event(sink->state, gpu->unit.number, LAB_EVENT_XID, gpu->new_xids[i],
                    nvml_xid_words(gpu->new_xids[i]));
    gpu->new_xid_count = 0;
}

/* --- reading --- */

static bool sleeps(const struct nvml_gpu *gpu) {
    char text[32] = "";
    return gpu->status_fd >= 0 && pread(gpu->status_fd, text, sizeof text - 1, 0) > 0 &&
           strncmp(text, "suspend", 7) == 0;
}

static void begin_unit(struct nvml_unit *unit) {
    memset(unit->valid, 0, sizeof unit->valid);
    unit->process_count = -1;
}

static void begin(struct nvml_gpu *gpu) {
    gpu->fatal = LAB_NVML_SUCCESS;
    gpu->fatal_call = NULL;
    begin_unit(&gpu->unit);
    for (int i = 0; i < gpu->instance_count; i++)
        begin_unit(gpu->instances[i]);
}

static void read_unit(struct nvml_unit *unit, int64_t now_ns, bool slow) {
    bool lists = !unit->gpu->mig_mode || unit->mig; /* in MIG mode the instances list them */
    if (!unit->handle)
        return;
    nvml_read_fast(unit, slow);
    nvml_read_gpm(unit, now_ns, slow);
    if (slow && !unit->mig)
        nvml_read_slow(unit);
    if (slow && lists)
        nvml_read_processes(unit);
}

static void collect(struct nvml_gpu *gpu, enum lab_probe_when when, int64_t now_ns) {
    int64_t slack_ns = gpu->probe->interval_ns / 2; /* a tick that comes a little early */
    int64_t period_ns = gpu->probe->slow_ns;
    bool slow = when == LAB_PROBE_EDGE || !gpu->slow_ns ||
                now_ns - gpu->slow_ns >= period_ns - (slack_ns < period_ns / 2 ? slack_ns : 0);
    nvml_ask_again(gpu, now_ns);
    if (slow)
        nvml_find_instances(gpu);
    read_unit(&gpu->unit, now_ns, slow);
    for (int i = 0; i < gpu->instance_count; i++)
        read_unit(gpu->instances[i], now_ns, slow);
    if (slow || gpu->fatal) /* the last word of a GPU that is lost */
        nvml_read_xids(gpu);
    if (gpu->events && (slow || gpu->new_xid_count)) {
        nvml_set(&gpu->unit, LAB_METRIC_XIDS, gpu->xids, INT64_MAX);
        nvml_set(&gpu->unit, LAB_METRIC_LAST_XID, gpu->last_xid, INT64_MAX);
    }
    if (slow)
        gpu->slow_ns = now_ns;
}

/* What we count ourselves, which is known of a GPU that talks nonsense too, is no answer. */
static bool says_nothing(const struct nvml_gpu *gpu) {
    for (int metric = 0; metric < NVML_METRICS; metric++)
        if (metric != LAB_METRIC_XIDS && metric != LAB_METRIC_LAST_XID &&
            metric != LAB_METRIC_PROCESSES && lab_valid_get(gpu->unit.valid, metric))
            return false;
    return true;
}

/* Inside NVML's session. */
static int read_inside(struct nvml_gpu *gpu, unsigned generation, enum lab_probe_when when,
                       int64_t now_ns, struct lab_err *err) {
    const struct lab_nvml *nvml = gpu->probe->nvml;
    begin(gpu);
    if ((gpu->generation != generation || atomic_load(&gpu->failures)) &&
        nvml_find_again(gpu, generation, err))
        return -1;
    collect(gpu, when, now_ns);
    if (gpu->fatal)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s (%s: %d)", lab_nvml_words(nvml, gpu->fatal),
                           gpu->fatal_call, gpu->fatal);
    if (says_nothing(gpu))
        return lab_err_set(err, LAB_ERR_SYSTEM, "the driver answers no query");
    return 0;
}

static bool others_work(const struct nvml_gpu *gpu) {
    const struct nvml_probe *probe = gpu->probe;
    for (int i = 0; i < probe->gpu_count; i++)
        if (&probe->gpus[i] != gpu && atomic_load(&probe->gpus[i].failures) == 0)
            return true;
    return false;
}

/* Looking for it anew wasn't enough, or there is nobody to ask: NVML as a whole. */
static void restart_if_needed(struct nvml_gpu *gpu, int64_t now_ns) {
    bool deaf = gpu->fatal == LAB_NVML_UNINITIALIZED || gpu->fatal == LAB_NVML_DRIVER_NOT_LOADED;
    if (atomic_load(&gpu->failures) >= (deaf ? 1 : 2))
        lab_nvml_restart(gpu->seen, now_ns, others_work(gpu), NULL);
}

static int read_lane(struct nvml_gpu *gpu, enum lab_probe_when when,
                     const struct lab_probe_sink *sink, struct lab_err *err) {
    int64_t now_ns = lab_clock_now(gpu->probe->clock);
    if (sleeps(gpu))
        return lab_err_set(err, LAB_ERR_SYSTEM, "in a power-saving state; not woken for sampling");
    restart_if_needed(gpu, now_ns);
    int result = lab_nvml_enter(&gpu->seen, err);
    if (result == 0) {
        result = read_inside(gpu, gpu->seen, when, now_ns, err);
        lab_nvml_leave();
    }
    atomic_store(&gpu->failures, result ? atomic_load(&gpu->failures) + 1 : 0);
    if (is_closed(gpu->probe))
        return result;
    if (result == 0)
        tell(gpu, now_ns, sink);
    tell_xids(gpu, sink);
    return result;
}

static int nvml_read(void *state, int lane, enum lab_probe_when when,
                     const struct lab_probe_sink *sink, struct lab_err *err) {
    struct nvml_probe *probe = state;
    pthread_mutex_lock(&probe->lock);
    probe->readers++;
    pthread_mutex_unlock(&probe->lock);
    int result = read_lane(&probe->gpus[lane], when, sink, err);
    pthread_mutex_lock(&probe->lock);
    probe->readers--;
    bool last = probe->closed && probe->readers == 0;
    pthread_mutex_unlock(&probe->lock);
    if (last)
        destroy(probe);
    return result;
}

const struct lab_probe lab_probe_nvml = {
    .name = "nvml",
    .summary =
        "NVIDIA GPUs: utilisation, memory, power, temperature, clocks, links, errors, processes",
    .without = "GPUs",
    .open = nvml_open,
    .driver = true,
    .close = nvml_close,
    .lane_count = nvml_lane_count,
    .lane_name = nvml_lane_name,
    .describe = nvml_describe,
    .read = nvml_read,
};
