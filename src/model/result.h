/*
 * model/result.h: what came out of a run, as one table. A row is one value of a rank, of the run as
 * a whole, or of both: its key, type, unit, how ranks combine, where it is shown. The table makes
 * the struct; the worker fills it; frames, study.db's columns, JSON, CSV and `gpulab show` walk the
 * table. So a new value is one row here, and the line that sets it.
 *
 * A nested key ("latency_ms.p99") is a member of its own (latency_ms_p99), a column of its own, and
 * an object in JSON. Values of the group "gpu" stand in a rank's object "gpu", and at the top of a
 * run's. Every value can be absent; start from lab_result_none, where all are. docs/NUMBERS.md
 * defines the values.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_result_type {
    LAB_RESULT_NUMBER, /* double; NaN = absent */
    LAB_RESULT_COUNT,  /* int64_t; INT64_MIN = absent */
    LAB_RESULT_FLAG,   /* signed char; -1 = absent */
    LAB_RESULT_TEXT,   /* const char *; NULL = absent */
    LAB_RESULT_JSON,   /* likewise, a value tree as JSON text: configurations, tuning */
    LAB_RESULT_LIST,   /* items and their count */
};

#define LAB_RESULT_C_NUMBER  double
#define LAB_RESULT_C_COUNT   int64_t
#define LAB_RESULT_C_FLAG    signed char
#define LAB_RESULT_C_TEXT    const char *
#define LAB_RESULT_C_JSON    const char *
#define LAB_RESULT_NO_NUMBER ((double)__builtin_nan(""))
#define LAB_RESULT_NO_COUNT  INT64_MIN
#define LAB_RESULT_NO_FLAG   (-1)
#define LAB_RESULT_NO_TEXT   NULL
#define LAB_RESULT_NO_JSON   NULL

/* Units of a program's rate, which is its own. Ranks of a gang aren't added up. */
#define LAB_RATE_TOKENS "tokens/s"
#define LAB_RATE_STEPS  "steps/s"
#define LAB_RATE_EPOCHS "epochs/h"
#define LAB_RATE_RUNS   "runs/h"

/* How a run's value follows from its ranks'. */
enum lab_result_combine {
    LAB_COMBINE_NONE,    /* the run has none */
    LAB_COMBINE_SUM,     /* absent where a rank has none: a sum of some would pass for the whole */
    LAB_COMBINE_PROCESS, /* of a process: their sum, the largest where ranks share one */
    LAB_COMBINE_SLOWEST, /* the slowest rank's: a gang is as fast as that */
    LAB_COMBINE_ALL,     /* false if any is, true if all that know are */
    LAB_COMBINE_ANY,     /* true if any is, else false */
    LAB_COMBINE_GPU_SUM, /* each GPU once, however many ranks its slices serve */
    LAB_COMBINE_GPU_MIN, /* the least of those known */
    LAB_COMBINE_OWN,     /* the runner's own rule */
};

enum {
    LAB_RESULT_OF_RANK = 1,
    LAB_RESULT_OF_RUN = 2,
    LAB_RESULT_OF_BOTH = 3,
};

enum {
    LAB_RESULT_CSV = 1,      /* a column of `gpulab export --format csv` */
    LAB_RESULT_OPTIONAL = 2, /* JSON leaves it out where it is absent; others are null there */
    LAB_RESULT_TOLD = 6,     /* optional; the mean of the metrics of that name that a workload tells
                                while it is measured */
};

/*
 * V(member, key, type, unit, combine, of, shown, place, title, help) is a value,
 * L(member, key, item, of, shown, place, title, help) a list of struct lab_result_<item>.
 * The order is that of a rank's object in JSON. `shown`: PLAIN, or flags as above (CSV | TOLD).
 * `place` orders the run's object in results.json and the columns of CSV; 0 = it isn't there.
 */
#define LAB_RESULT_ROWS(V, L)                                                                      \
    /* what was done, and where */                                                                 \
    V(device, "device", TEXT, "", NONE, RANK, PLAIN, 0, "Device", "its member name")               \
    V(numa_node, "numa_node", COUNT, "", NONE, RANK, PLAIN, 0, "NUMA node",                        \
      "that the host thread and its buffers are bound to")                                         \
    V(device_node, "device_node", COUNT, "", NONE, RANK, PLAIN, 0, "Device's NUMA node",           \
      "that the device sits on")                                                                   \
    V(distance, "distance", COUNT, "", NONE, RANK, PLAIN, 0, "NUMA distance",                      \
      "the kernel's, from numa_node to device_node; 10 = local")                                   \
    V(device_uuid, "device_uuid", TEXT, "", NONE, RANK, OPTIONAL, 0, "Device's UUID",              \
      "of GPUs that have one: GPU-…, MIG-…")                                                       \
    V(simulated, "simulated", FLAG, "", ANY, BOTH, OPTIONAL, 0, "Simulated",                       \
      "times are those of a simulated device")                                                     \
    V(iterations, "iterations", COUNT, "", SLOWEST, BOTH, PLAIN, 0, "Iterations", "measured")      \
    V(warmup_iterations, "warmup_iterations", COUNT, "", SLOWEST, BOTH, PLAIN, 0,                  \
      "Warm-up iterations", "before those")                                                        \
    V(samples, "samples", COUNT, "", SUM, BOTH, PLAIN, 0, "Samples", "in all iterations")          \
    /* how fast */                                                                                 \
    V(rate, "rate", NUMBER, "1/s", SUM, BOTH, CSV, 10, "Rate", "in rate_unit")                     \
    V(rate_low, "rate_low", NUMBER, "1/s", SUM, BOTH, CSV, 11, "Rate, low",                        \
      "lower end of the interval within the run")                                                  \
    V(rate_high, "rate_high", NUMBER, "1/s", SUM, BOTH, CSV, 12, "Rate, high", "its upper end")    \
    V(rate_unit, "rate_unit", TEXT, "", SLOWEST, BOTH, CSV, 13, "Rate's unit",                     \
      "samples/s or iterations/s; of a program tokens/s, steps/s, epochs/h or runs/h")             \
    V(samples_per_second, "samples_per_second", NUMBER, "1/s", SUM, BOTH, CSV, 20, "Samples/s",    \
      "throughput")                                                                                \
    V(flops_per_second, "flops_per_second", NUMBER, "FLOP/s", SUM, BOTH, CSV, 21, "FLOP/s",        \
      "counted from the workload's definition")                                                    \
    V(h2d_gb_per_s, "h2d_gb_per_s", NUMBER, "GB/s", SUM, BOTH, CSV, 50, "Host to device",          \
      "bandwidth of the copies")                                                                   \
    V(d2h_gb_per_s, "d2h_gb_per_s", NUMBER, "GB/s", SUM, BOTH, CSV, 51, "Device to host",          \
      "bandwidth of the copies")                                                                   \
    V(compute_utilization, "compute_utilization", NUMBER, "1", SLOWEST, BOTH, CSV, 52,             \
      "Compute utilisation", "share of the time in which the device computes")                     \
    V(overlap, "overlap", NUMBER, "1", SLOWEST, BOTH, CSV, 53, "Overlap",                          \
      "share of the copies' time that is overlapped by compute")                                   \
    V(gang_overlap, "gang_overlap", NUMBER, "1", OWN, RUN, CSV, 54, "Gang overlap",                \
      "share of the measured time in which all ranks measured")                                    \
    V(latency_ms_mean, "latency_ms.mean", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 30, "Mean latency",  \
      "of an iteration, from its start to its end")                                                \
    V(latency_ms_median, "latency_ms.median", NUMBER, "ms", SLOWEST, BOTH, CSV, 31,                \
      "Median latency", "likewise")                                                                \
    V(latency_ms_p90, "latency_ms.p90", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 32, "p90 latency",     \
      "likewise")                                                                                  \
    V(latency_ms_p95, "latency_ms.p95", NUMBER, "ms", SLOWEST, BOTH, CSV, 33, "p95 latency",       \
      "likewise")                                                                                  \
    V(latency_ms_p99, "latency_ms.p99", NUMBER, "ms", SLOWEST, BOTH, CSV, 34, "p99 latency",       \
      "likewise")                                                                                  \
    V(latency_ms_min, "latency_ms.min", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 35, "Least latency",   \
      "likewise")                                                                                  \
    V(latency_ms_max, "latency_ms.max", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 36, "Largest latency", \
      "likewise")                                                                                  \
    V(interval_ms_mean, "interval_ms.mean", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 40,                \
      "Mean interval", "from the end of an iteration to the end of the next")                      \
    V(interval_ms_median, "interval_ms.median", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 41,            \
      "Median interval", "likewise")                                                               \
    V(interval_ms_p90, "interval_ms.p90", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 42, "p90 interval",  \
      "likewise")                                                                                  \
    V(interval_ms_p95, "interval_ms.p95", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 43, "p95 interval",  \
      "likewise")                                                                                  \
    V(interval_ms_p99, "interval_ms.p99", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 44, "p99 interval",  \
      "likewise")                                                                                  \
    V(interval_ms_min, "interval_ms.min", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 45,                  \
      "Least interval", "likewise")                                                                \
    V(interval_ms_max, "interval_ms.max", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 46,                  \
      "Largest interval", "likewise")                                                              \
    V(first_ns, "first_ns", COUNT, "ns", NONE, RANK, PLAIN, 0, "First start",                      \
      "of the measured iterations")                                                                \
    V(last_ns, "last_ns", COUNT, "ns", NONE, RANK, PLAIN, 0, "Last end", "likewise")               \
    V(end_ns, "end_ns", COUNT, "ns", NONE, RANK, OPTIONAL, 0, "End",                               \
      "when all was done, by the simulated clock")                                                 \
    V(setup_s, "setup_s", NUMBER, "s", SLOWEST, BOTH, PLAIN, 0, "Set-up",                          \
      "opening the workload and its device")                                                       \
    V(first_iteration_ms, "first_iteration_ms", NUMBER, "ms", SLOWEST, BOTH, PLAIN, 0,             \
      "First iteration", "of the warm-up")                                                         \
    V(steady, "steady", FLAG, "", ALL, BOTH, PLAIN, 0, "Steady", "after the warm-up")              \
    V(peak_memory_mb, "peak_memory_mb", NUMBER, "MiB", PROCESS, BOTH, CSV, 55, "Peak memory",      \
      "resident, of the process")                                                                  \
    V(device_memory_mb, "device_memory_mb", NUMBER, "MiB", NONE, RANK, PLAIN, 0, "Device memory",  \
      "in buffers on the device")                                                                  \
    V(forward_ms, "forward_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 80, "Forward pass",             \
      "of an iteration")                                                                           \
    V(backward_ms, "backward_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 81, "Backward pass",          \
      "likewise")                                                                                  \
    V(gradient_ms, "gradient_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 82, "Gradient",               \
      "instead of the two, where they are one operation")                                          \
    V(update_ms, "update_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 83, "Update", "of an iteration")  \
    V(communication_time_ms, "communication_time_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 84,       \
      "Communication", "of an iteration")                                                          \
    V(exposed_communication_ms, "exposed_communication_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD, 85, \
      "Exposed communication", "that no compute hides")                                            \
    V(allreduce, "allreduce", TEXT, "", SLOWEST, BOTH, OPTIONAL, 86, "All-reduce",                 \
      "that was used: ring, hierarchical or nccl")                                                 \
    V(share_note, "share_note", TEXT, "", SLOWEST, BOTH, OPTIONAL, 87, "Share of a batch",         \
      "what differs from a real machine where a batch is shared")                                  \
    /* whether it may be used */                                                                   \
    V(verification_applicable, "verification.applicable", FLAG, "", SLOWEST, BOTH, PLAIN, 0,       \
      "Verifiable", "results can be compared with a reference")                                    \
    V(verification_passed, "verification.passed", FLAG, "", SLOWEST, BOTH, PLAIN, 0, "Verified",   \
      "they agree")                                                                                \
    V(verification_relative_error, "verification.relative_error", NUMBER, "1", SLOWEST, BOTH,      \
      PLAIN, 0, "Relative error", "the largest")                                                   \
    V(verification_tolerance, "verification.tolerance", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0,      \
      "Tolerance", "of it")                                                                        \
    V(verification_text, "verification.text", TEXT, "", SLOWEST, BOTH, PLAIN, 0, "Verification",   \
      "in words")                                                                                  \
    V(placement_proven, "placement_proven", FLAG, "", ALL, BOTH, PLAIN, 0, "Placement proven",     \
      "thread and pages were on the NUMA node; absent where there is nothing to prove")            \
    V(conditions_load_before, "conditions.load_before", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0,      \
      "Load before", "threads ready to run for each CPU")                                          \
    V(conditions_foreign_cpu, "conditions.foreign_cpu", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0,      \
      "Others' CPU time", "share of the machine's")                                                \
    V(conditions_steal, "conditions.steal", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0, "Steal",         \
      "share that the hypervisor took")                                                            \
    V(conditions_pressure_cpu, "conditions.pressure_cpu", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0,    \
      "CPU pressure", "share of the time in which something waited for a CPU")                     \
    V(conditions_pressure_memory, "conditions.pressure_memory", NUMBER, "1", SLOWEST, BOTH, PLAIN, \
      0, "Memory pressure", "likewise for memory")                                                 \
    V(valid, "valid", FLAG, "", OWN, RUN, PLAIN, 0, "Valid", "`invalid` is empty")                 \
    L(warnings, "warnings", text, BOTH, PLAIN, 0, "Warnings", "sentences")                         \
    L(invalid, "invalid", text, BOTH, PLAIN, 0, "Invalid",                                         \
      "sentences: why the values must not be used")                                                \
    /* of kernels that can be tuned, and of studies with phases */                                 \
    V(configuration, "configuration", JSON, "", NONE, RANK, OPTIONAL, 0, "Configuration",          \
      "that the kernel ran with")                                                                  \
    V(disturbed, "disturbed", TEXT, "", NONE, RANK, OPTIONAL, 0, "Disturbed by",                   \
      "the neighbour on purpose that it had")                                                      \
    V(best_config, "best_config", JSON, "", NONE, RANK, OPTIONAL, 0, "Best configuration",         \
      "that tuning ended with")                                                                    \
    V(best_time_ms, "best_time_ms", NUMBER, "ms", NONE, RANK, OPTIONAL, 0, "Best time",            \
      "of that configuration")                                                                     \
    V(winner_is_certain, "winner_is_certain", FLAG, "", NONE, RANK, OPTIONAL, 0,                   \
      "Winner is certain", "it is faster than the second")                                         \
    V(tuning, "tuning", JSON, "", NONE, RANK, OPTIONAL, 0, "Tuning", "all of it")                  \
    L(regret, "regret", regret, RANK, OPTIONAL, 0, "Regret",                                       \
      "what was chosen in a phase compared with what was chosen alone")                            \
    V(capacity_flops_per_second, "capacity.flops_per_second", NUMBER, "FLOP/s", NONE, RANK, PLAIN, \
      0, "Compute capacity", "that a probe found after the measurement")                           \
    V(capacity_memory_gb_per_s, "capacity.memory_gb_per_s", NUMBER, "GB/s", NONE, RANK, PLAIN, 0,  \
      "Memory capacity", "likewise")                                                               \
    V(capacity_h2d_gb_per_s, "capacity.h2d_gb_per_s", NUMBER, "GB/s", NONE, RANK, PLAIN, 0,        \
      "Host to device capacity", "likewise")                                                       \
    V(capacity_d2h_gb_per_s, "capacity.d2h_gb_per_s", NUMBER, "GB/s", NONE, RANK, PLAIN, 0,        \
      "Device to host capacity", "likewise")                                                       \
    V(capacity_clock_mhz, "capacity.clock_mhz", NUMBER, "MHz", NONE, RANK, PLAIN, 0,               \
      "Clock during the probe", "of the whole GPU")                                                \
    V(capacity_power_w, "capacity.power_w", NUMBER, "W", NONE, RANK, PLAIN, 0,                     \
      "Power during the probe", "likewise")                                                        \
    V(capacity_power_limit_w, "capacity.power_limit_w", NUMBER, "W", NONE, RANK, PLAIN, 0,         \
      "Power limit", "likewise")                                                                   \
    V(trace_path, "trace.path", TEXT, "", SLOWEST, BOTH, PLAIN, 0, "Trace",                        \
      "below the study's folder")                                                                  \
    V(trace_iterations, "trace.iterations", COUNT, "", SLOWEST, BOTH, PLAIN, 0,                    \
      "Traced iterations", "in it")                                                                \
    V(trace_overhead, "trace.overhead", NUMBER, "1", SLOWEST, BOTH, PLAIN, 0, "Trace overhead",    \
      "0.01: an iteration took 1% longer")                                                         \
    /* what the rank's GPU did while it measured */                                                \
    V(energy_j, "gpu.energy_j", NUMBER, "J", GPU_SUM, BOTH, CSV, 60, "Energy", "of the GPU")       \
    V(energy_estimated, "gpu.energy_estimated", FLAG, "", NONE, RANK, OPTIONAL, 0,                 \
      "Energy is estimated", "some of it from power")                                              \
    V(power_w, "gpu.power_w", NUMBER, "W", GPU_SUM, BOTH, CSV, 61, "Power", "mean")                \
    V(sm_clock_mhz, "gpu.sm_clock_mhz", NUMBER, "MHz", GPU_MIN, BOTH, CSV, 63, "SM clock", "mean") \
    V(sm_clock_min_mhz, "gpu.sm_clock_min_mhz", NUMBER, "MHz", NONE, RANK, PLAIN, 0,               \
      "Least SM clock", "of the samples")                                                          \
    V(temperature_c, "gpu.temperature_c", NUMBER, "°C", NONE, RANK, PLAIN, 0, "Temperature",       \
      "the highest")                                                                               \
    V(gpu_utilization, "gpu.gpu_utilization", NUMBER, "1", NONE, RANK, PLAIN, 0,                   \
      "GPU utilisation", "mean")                                                                   \
    V(sm_active, "gpu.sm_active", NUMBER, "1", NONE, RANK, PLAIN, 0, "SM active", "mean")          \
    V(tensor_active, "gpu.tensor_active", NUMBER, "1", NONE, RANK, PLAIN, 0, "Tensor active",      \
      "mean")                                                                                      \
    V(dram_active, "gpu.dram_active", NUMBER, "1", NONE, RANK, PLAIN, 0, "DRAM active", "mean")    \
    L(too_short_for, "gpu.too_short_for", text, RANK, PLAIN, 0, "Too short for",                   \
      "keys above: no reading is of the measured time alone")                                      \
    V(gpu_memory_peak_mb, "gpu.gpu_memory_peak_mb", NUMBER, "MiB", GPU_SUM, BOTH, CSV, 62,         \
      "Peak GPU memory", "of the whole run")                                                       \
    V(whole_gpu, "gpu.whole_gpu", FLAG, "", NONE, RANK, PLAIN, 0, "Of the whole GPU",              \
      "the rank has a slice of it")                                                                \
    V(gpu_simulated, "gpu.simulated", FLAG, "", NONE, RANK, OPTIONAL, 0, "Simulated GPU", "")      \
    L(throttled_s, "gpu.throttled_s", throttle, BOTH, PLAIN, 64, "Throttled",                      \
      "how long clocks were throttled, by reason")                                                 \
    L(xids, "gpu.xids", xid, RANK, PLAIN, 0, "Xids", "Xid errors")                                 \
    L(foreign_processes, "gpu.foreign_processes", process, BOTH, PLAIN, 65,                        \
      "Co-located processes", "that used the GPU during the run")

/* What lists hold: V(member, type). A list of one member is a list of plain values in JSON. */
#define LAB_RESULT_TEXT_FIELDS(V) V(text, TEXT)
#define LAB_RESULT_XID_FIELDS(V)  V(number, COUNT)
#define LAB_RESULT_PROCESS_FIELDS(V)                                                               \
    V(pid, COUNT)                                                                                  \
    V(name, TEXT)                                                                                  \
    V(user, TEXT)                                                                                  \
    V(memory_mb, NUMBER)
/* an object in JSON: {reason: seconds} */
#define LAB_RESULT_THROTTLE_FIELDS(V)                                                              \
    V(reason, TEXT)                                                                                \
    V(seconds, NUMBER)
/* the ratio of times and its interval; `same`: it is the same configuration */
#define LAB_RESULT_REGRET_FIELDS(V)                                                                \
    V(phase, TEXT)                                                                                 \
    V(config, TEXT)                                                                                \
    V(same, FLAG)                                                                                  \
    V(ratio, NUMBER)                                                                               \
    V(low, NUMBER)                                                                                 \
    V(high, NUMBER)                                                                                \
    V(rounds, COUNT)

#define LAB_RESULT_FIELD(member, type) LAB_RESULT_C_##type member;
struct lab_result_text {
    LAB_RESULT_TEXT_FIELDS(LAB_RESULT_FIELD)
};
struct lab_result_xid {
    LAB_RESULT_XID_FIELDS(LAB_RESULT_FIELD)
};
struct lab_result_process {
    LAB_RESULT_PROCESS_FIELDS(LAB_RESULT_FIELD)
};
struct lab_result_throttle {
    LAB_RESULT_THROTTLE_FIELDS(LAB_RESULT_FIELD)
};
struct lab_result_regret {
    LAB_RESULT_REGRET_FIELDS(LAB_RESULT_FIELD)
};

/* A rank's, or a run's with its ranks'. Texts and items live in the arena of its maker. */
struct lab_result {
#define LAB_RESULT_VALUE(member, key, type, ...) LAB_RESULT_C_##type member;
#define LAB_RESULT_ITEMS(member, key, item, ...)                                                   \
    struct {                                                                                       \
        struct lab_result_##item *items;                                                           \
        int count;                                                                                 \
    } member;
    LAB_RESULT_ROWS(LAB_RESULT_VALUE, LAB_RESULT_ITEMS)
    const struct lab_result *ranks; /* of a run */
    int rank_count;
};

extern const struct lab_result lab_result_none; /* all is absent */

/* --- the table --- */

struct lab_result_row {
    const char *key;
    enum lab_result_type type;
    size_t offset;                      /* of the member */
    const struct lab_result_item *item; /* of a list */
    const char *unit;                   /* "" = none */
    enum lab_result_combine combine;
    unsigned of, shown;
    int place;
    const char *title, *help;
};

struct lab_result_item { /* what a list holds */
    size_t size;
    const struct lab_result_row *rows; /* key, type and offset alone */
    int row_count;
    bool keyed; /* an object in JSON: of two members, the first is the key */
};

#define LAB_RESULT_INDEX(member, ...) LAB_RESULT_ROW_##member,
enum { LAB_RESULT_ROWS(LAB_RESULT_INDEX, LAB_RESULT_INDEX) LAB_RESULT_ROW_COUNT };
extern const struct lab_result_row lab_result_rows[LAB_RESULT_ROW_COUNT];

/* Those with a place, in its order; NULL-terminated. */
const struct lab_result_row *const *lab_result_order(void);

/* The row of that key, or NULL. */
const struct lab_result_row *lab_result_row(const char *key);

/* A value of a result, or of a list's item: its member, and whether it is there. A list is there
 * where it isn't empty. */
void *lab_result_member(void *record, const struct lab_result_row *row);
const void *lab_result_get(const void *record, const struct lab_result_row *row);
bool lab_result_has(const void *record, const struct lab_result_row *row);
double lab_result_number(const struct lab_result *result, size_t offset); /* of a NUMBER */

/* --- lists --- */

#define LAB_RESULT_ITEMS_MAX 10000 /* of a list; more aren't kept */

struct lab_result_list { /* any of them, however its items are called */
    void *items;
    int count;
};
struct lab_result_list lab_result_items(const void *record, const struct lab_result_row *row);

/* A new item at the list's end, all of it absent. */
void *lab_result_add(struct lab_result *result, const struct lab_result_row *row,
                     struct lab_arena *arena);
#define LAB_RESULT_ADD(result, member, arena)                                                      \
    ((__typeof__((result)->member.items))lab_result_add_at(                                        \
        result, offsetof(struct lab_result, member), arena))
void *lab_result_add_at(struct lab_result *result, size_t offset, struct lab_arena *arena);

void lab_result_warn(struct lab_result *result, struct lab_arena *arena, const char *sentence);
void lab_result_spoil(struct lab_result *result, struct lab_arena *arena, const char *sentence);
/* A sentence that not all ranks of a gang say: "rank 1: …". */
const char *lab_result_of_rank(int rank, const char *sentence, struct lab_arena *arena);

/* All of it anew, ranks included, in this arena. */
struct lab_result *lab_result_copy(const struct lab_result *result, struct lab_arena *arena);

/* --- as JSON (result_json.c) --- */

enum lab_result_view {
    LAB_RESULT_RANK_VIEW, /* a rank's object, without `ranks` */
    LAB_RESULT_RUN_VIEW,  /* all values of a run, in the table's order */
    LAB_RESULT_FILE_VIEW, /* those with a place, in its order: results.json */
};

/* A map. Sets the keys in `map` where it isn't NULL. Of lab_result_none itself objects are null. */
struct lab_value *lab_result_value(const struct lab_result *result, enum lab_result_view view,
                                   struct lab_value *map, struct lab_arena *arena);

/* What a map of any view has, and its `ranks`. What doesn't fit its type is absent. */
struct lab_result *lab_result_read(const struct lab_value *map, struct lab_arena *arena);

/* A value's text as a tree; a null where it is absent or no JSON. */
struct lab_value *lab_result_json(const char *text, struct lab_arena *arena);

/* --- as bytes (result_pack.c) --- */

/*
 * Appends a rank's values: u16 count, for each its key as a text, a letter for its type, its value.
 * Numbers have 8 bytes, little-endian, flags 1; texts are UTF-8 and end with a zero byte; a list is
 * u32 count and its items likewise. What is absent isn't sent, nor what would go beyond `most`
 * bytes.
 */
void lab_result_pack(const struct lab_result *result, size_t most, struct lab_str *out);

/* Its input is untrusted. Unknown keys are skipped; a value of another type than its row's,
 * a number that isn't finite, JSON that is none, a cut or overlong text are refused. */
int lab_result_unpack(const void *bytes, size_t length, struct lab_arena *arena,
                      struct lab_result *ret_result, struct lab_err *err);
