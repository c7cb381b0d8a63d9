/*
 * nvml.h: what the files of the probe `nvml` share.
 *
 *   ../nvml.c   the probe: lanes, readings, its end    find.c      GPUs, and those that came back
 *   ask.c       what an answer of the driver means     fast.c      what every tick reads
 *   gpm.c       activity between two samples           slow.c      counters and limits, each second
 *   process.c   who is on a GPU                        xid.c       errors that the driver reports
 *
 * A lane is a GPU with its MIG instances; each of them is a unit. A reading first collects
 * everything and then tells it, so that one whose call into the driver returns long after the probe
 * was closed tells nobody. Everything in a lane belongs to the thread that reads it, inside NVML's
 * session.
 */
#pragma once

#include "base/cond.h"
#include "probe/probe.h"
#include "vendor/nvml_session.h"

#include <stdatomic.h>

#define NVML_MIG_MAX     16
#define NVML_GPM_SAMPLES 3

/* What a GPU has values for: the metrics that come first in the table. */
#define NVML_METRICS (LAB_METRIC_PROCESSES + 1)
_Static_assert(LAB_METRIC_UTILIZATION == 0, "a GPU's metrics come first");

enum nvml_question { /* each is asked no more of a unit that doesn't know the answer */
                     NVML_ASK_UTILIZATION,
                     NVML_ASK_MEMORY_V2,
                     NVML_ASK_MEMORY,
                     NVML_ASK_POWER,
                     NVML_ASK_TEMPERATURE_V,
                     NVML_ASK_TEMPERATURE,
                     NVML_ASK_SM_CLOCK,
                     NVML_ASK_MEMORY_CLOCK,
                     NVML_ASK_REASONS,
                     NVML_ASK_REASONS_OLD,
                     NVML_ASK_STATE,
                     NVML_ASK_STATE_OLD,
                     NVML_ASK_FAN,
                     NVML_ASK_ENCODER,
                     NVML_ASK_DECODER,
                     NVML_ASK_FIELDS,
                     NVML_ASK_HEAT_FIELD,
                     NVML_ASK_LINKS,
                     NVML_ASK_ENERGY,
                     NVML_ASK_LIMIT,
                     NVML_ASK_ECC,
                     NVML_ASK_ROWS,
                     NVML_ASK_PCIE_GENERATION,
                     NVML_ASK_PCIE_WIDTH,
                     NVML_ASK_GPM,
                     NVML_ASK_XID,
                     NVML_ASK_COMPUTE,
                     NVML_ASK_GRAPHICS,
                     NVML_ASK_MPS,
                     NVML_ASK_SHARES,
                     NVML_ASK_COUNT
};
_Static_assert(NVML_ASK_COUNT <= 64, "one bit for each");

struct nvml_gpu;

struct nvml_unit { /* a GPU, or a MIG instance of it */
    struct nvml_gpu *gpu;
    lab_nvml_device handle; /* NULL = isn't there now */
    bool mig;
    unsigned gpu_instance; /* of a MIG instance */
    int index;             /* as its entity has it */
    int number;            /* within the lane, as the sink gave it; -1 = not told yet */
    char uuid[LAB_NVML_UUID_BYTES], name[LAB_NVML_NAME_BYTES];

    uint64_t refused, doubted; /* bits of questions; doubted: met an unknown error once */
    uint64_t refused_fields;   /* bits of rows in the table of fields */
    bool unified;              /* has no memory of its own */

    int64_t values[NVML_METRICS]; /* of this reading */
    uint64_t valid[LAB_VALID_WORDS(NVML_METRICS)];
    struct lab_gpu_process *processes; /* likewise; count -1 = not asked */
    int process_count;
    unsigned long long shares_since_us;

    lab_nvml_gpm_sample samples[NVML_GPM_SAMPLES];
    int newest;        /* of the samples; -1 = none yet */
    int64_t newest_ns; /* when it was taken */
    /* the sample that the costly figures are counted from; with a newest one alone */
    int costly_since;
    bool costly_due;
};

struct nvml_gpu { /* a lane */
    struct nvml_probe *probe;
    struct nvml_unit unit;
    struct nvml_unit *instances[NVML_MIG_MAX];
    int instance_count;
    bool mig_mode, all_instances; /* false: only those that CUDA_VISIBLE_DEVICES names */
    char pci[16];
    char label[64];
    int node;
    int driver_index, driver_minor; /* as its entity has them */

    lab_nvml_result fatal; /* of this reading: it ends, and the lane fails; 0 = none */
    const char *fatal_call;
    unsigned generation; /* of the handles; 0 = none were found */
    unsigned seen;       /* NVML's own, when it was last entered */
    atomic_int failures; /* readings in a row */
    int64_t slow_ns;     /* when the slow tier was read; 0 = never */
    int64_t again_ns;    /* when questions that failed are asked again; 0 = not set yet */
    int status_fd;       /* runtime_status; -1 = can't sleep, or is unknown */

    lab_nvml_event_set events; /* NULL = none */
    int64_t xids, last_xid;    /* since the probe was opened; last -1 = none yet */
    int new_xids[16], new_xid_count;

    void *process_items; /* room for what the driver writes */
    unsigned process_room;
    struct lab_nvml_process_use *use_items;
    unsigned use_room;
    struct lab_nvml_gpm_metrics *metrics;
};

struct nvml_probe {
    const struct lab_nvml *nvml;
    const struct lab_machine *machine;
    const struct lab_clock *clock;
    int64_t interval_ns, slow_ns, gpm_ns;
    char *root;
    bool simulated;
    struct nvml_gpu *gpus;
    int gpu_count;
    int meminfo_fd; /* -1 = not opened */
    struct lab_nvml_holder holder;
    pthread_mutex_t lock; /* of the two below */
    int readers;
    bool closed;
};

/* --- ask.c --- */

/* Was it refused before, or has this reading ended? */
static inline bool nvml_may_ask(const struct nvml_unit *unit, enum nvml_question question) {
    return !(unit->refused >> question & 1) && !unit->gpu->fatal;
}

/* Is there an answer? If not, remembers what that means for later. `call` names the function. */
bool nvml_answered(struct nvml_unit *unit, enum nvml_question question, const char *call,
                   lab_nvml_result result);

/* Asks if the function is there and wasn't refused: the result, counted as above. */
#define NVML_ASK(unit, question, function, ...)                                                    \
    ((unit)->gpu->probe->nvml->function && nvml_may_ask(unit, question) &&                         \
     nvml_answered(unit, question, #function,                                                      \
                   (unit)->gpu->probe->nvml->function((unit)->handle, __VA_ARGS__)))

/* Once in a while: what was refused only because of an unknown error is asked again. */
void nvml_ask_again(struct nvml_gpu *gpu, int64_t now_ns);

/* Does it mean that it will never be known here? */
bool nvml_is_refusal(lab_nvml_result result);

/* Values outside of what can be are left out. */
static inline void nvml_set(struct nvml_unit *unit, enum lab_metric_id metric, int64_t value,
                            int64_t max) {
    if (value < 0 || value > max)
        return;
    unit->values[metric] = value;
    lab_valid_set(unit->valid, metric);
}

/* --- find.c --- */

/* All GPUs that are visible, into the probe. Inside the session. */
int nvml_find_all(struct nvml_probe *probe, struct lab_err *err);
/* Handles for a lane whose own are worthless. -1 = it isn't there, and why. */
int nvml_find_again(struct nvml_gpu *gpu, unsigned generation, struct lab_err *err);
/* MIG instances come and go. */
void nvml_find_instances(struct nvml_gpu *gpu);
/* Gives up what the driver keeps for a lane; from any thread while nobody reads it. */
void nvml_give_up(struct nvml_gpu *gpu);

/* --- the tiers --- */

void nvml_read_fast(struct nvml_unit *unit, bool slow); /* slow: the other tier is due too */
void nvml_read_gpm(struct nvml_unit *unit, int64_t now_ns, bool slow);
void nvml_read_slow(struct nvml_unit *unit);
void nvml_read_processes(struct nvml_unit *unit);

enum nvml_fields { NVML_FIELDS_FAST, NVML_FIELDS_HEAT, NVML_FIELDS_SLOW };

/* One call for all fields of the group. */
void nvml_read_fields(struct nvml_unit *unit, enum nvml_fields group);

void nvml_watch_xids(struct nvml_gpu *gpu); /* after its handle was found */
void nvml_read_xids(struct nvml_gpu *gpu);
const char *nvml_xid_words(int xid); /* "" = none are known */
