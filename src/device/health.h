/*
 * health.h: what drivers and the kernel report about GPUs without opening them: links, errors,
 * limits, processes. Facts alone; src/check judges them.
 *
 * Numbers that nobody reports are LAB_HEALTH_UNKNOWN, or NaN where they are doubles.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/device_ref.h"

#include <stdbool.h>
#include <stdint.h>

#define LAB_HEALTH_UNKNOWN (-1)

enum lab_fabric { /* registration of a GPU behind NVSwitches; as NVML counts */
                  LAB_FABRIC_UNKNOWN = -1,
                  LAB_FABRIC_NONE = 0,
                  LAB_FABRIC_NOT_STARTED = 1,
                  LAB_FABRIC_IN_PROGRESS = 2,
                  LAB_FABRIC_COMPLETED = 3,
};

struct lab_health_process { /* on a GPU, other than this one */
    int64_t pid;
    const char *name; /* "" = not visible from here */
    int64_t memory_bytes;
};

struct lab_gpu_health {
    const char *name;    /* of the model: "NVIDIA H200" */
    const char *address; /* "0000:3b:00.0"; "" = unknown */
    const char *lost;    /* why the driver can't reach it; NULL = it answers */
    const char *error;   /* of a question that failed: its value is unknown; NULL = none did */
    int node;            /* the kernel's number of its NUMA node; -1 = not reported */
    int64_t pcie_generation, pcie_generation_most, pcie_width, pcie_width_most;
    int64_t performance_state; /* 0 = full speed, 8 = idle */
    int64_t ecc_on, ecc_corrected, ecc_uncorrected;
    int64_t rows_remapped, rows_pending, rows_failed;
    int64_t recovery_action; /* that the driver asks for; 0 = none */
    int64_t persistence;
    int64_t clock_reasons; /* bits of lab_clock_reasons */
    double clock_most_mhz;
    double power_limit_w, power_default_w;
    double temperature_c;
    int64_t nvlinks, nvlinks_active; /* 0 = it has none */
    enum lab_fabric fabric;
    int64_t fabric_status, fabric_clique, fabric_degraded;
    int64_t memory_bytes, memory_used_bytes; /* used: without what the driver reserves */
    struct lab_health_process *processes;
    int process_count; /* LAB_HEALTH_UNKNOWN = not listed */
};

struct lab_xid { /* an error that the driver wrote to the kernel log since the host was booted */
    char address[16]; /* "0000:3b:00.0" */
    int number;
};

struct lab_health {
    const char *driver;       /* version of the library; NULL = unknown, as the next */
    const char *driver_error; /* why; NULL = it isn't reported */
    const char *module;       /* of the kernel module */
    struct lab_xid *xids;
    int xid_count;
    const char *xids_unknown;    /* why the kernel log can't be read; NULL = it was */
    double xids_from_s;          /* since boot: where the log begins; 0 = it reaches back to it */
    int fabric_manager;          /* 1 = it runs, 0 = it doesn't */
    struct lab_gpu_health *gpus; /* in the order of the devices asked for */
    int gpu_count;
    int gpus_on_bus; /* that the machine has, asked for or not; 0 = some may be hidden from here */
    int gpus_lost;   /* that the driver lists and can't reach; no device may stand for them */
};

/*
 * Of these devices, all of one backend; in the arena. LAB_ERR_UNSUPPORTED: the backend reports
 * nothing of the kind, or its management library isn't there. May hang as long as the driver does.
 */
int lab_device_health(const struct lab_machine *machine, const struct lab_device_list *devices,
                      struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err);

/* --- for backends --- */

/* All unknown. */
struct lab_gpu_health lab_gpu_health_unknown(void);
/* Errors in a kernel log: /dev/kmsg, or a file of its text. */
void lab_health_read_xids(const char *path, struct lab_arena *arena, struct lab_health *health);
