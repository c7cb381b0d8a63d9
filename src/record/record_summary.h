/*
 * record_summary.h: what a recording comes to in a few lines, gathered while it samples: nothing
 * has to be read back for it.
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "doc/doc.h"
#include "model/energy.h"
#include "model/sample.h"
#include "report/report.h"

struct lab_record_gpu {
    int entity, parent; /* of a MIG instance: its GPU's entity; -1 = a whole GPU */
    int index;
    char name[96];
    bool simulated;
    int64_t ticks;          /* that hold anything */
    double utilization_sum; /* %, over utilization_count of them */
    int64_t utilization_count;
    double peak_memory_bytes, hottest_c; /* NaN = not known */
    struct lab_energy_meter energy;
    double power_sum_w; /* over power_count ticks */
    int64_t power_count;
    int64_t throttled, reason_ticks;
    uint64_t reasons; /* the harmful ones, of all ticks */
    int gaps;
};

struct lab_record_summary {
    int64_t interval_ns; /* as asked for */
    struct lab_record_gpu *gpus;
    int gpu_count;
    struct lab_record_entity {
        struct lab_entity entity; /* its columns are a copy */
        bool told, away;
        int64_t last_ns;
    } * entities; /* by number */
    int entity_count;
    double cpu_sum; /* % */
    int64_t cpu_count;
    int64_t ticks;
    bool host, simulated;
};

void lab_record_summary_init(struct lab_record_summary *summary, int64_t interval_ns);
void lab_record_summary_release(struct lab_record_summary *summary);
struct lab_sink_samples lab_record_summary_sink(struct lab_record_summary *summary);

/* Has each of them been read since then, but for those that are away? */
bool lab_record_summary_is_since(const struct lab_record_summary *summary, int64_t time_ns);

/* For people: a table of the GPUs, why their clocks were held back, then the CPUs. */
void lab_record_summary_add(struct lab_doc *doc, const struct lab_record_summary *summary);
/* Members `gpus`, `mig_instances` if there are any, `cpu_percent`, `simulated` of a map. */
void lab_record_summary_set(const struct lab_record_summary *summary, struct lab_arena *arena,
                            struct lab_value *map);
