/* monitor_file_internal.h: what the writers and readers of other monitors' files share: numbers,
 * times, names, and which field is which metric. */
#pragma once

#include "store/foreign/monitor_file.h"

#include "base/str.h"
#include "base/value.h"

/* What our own document says that it is. */
#define LAB_MONITOR_OWN "gpulab recording"

/* --- text: numbers and times --- */

/* With as few decimals as it needs, `decimals` at most; `absent` for NaN. */
void lab_monitor_add_number(struct lab_str *out, double value, int decimals, const char *absent);
/* A metric's value in its unit, exactly. */
struct lab_doc_cell lab_monitor_exact(enum lab_metric_id metric, int64_t value);
void lab_monitor_add_exact(struct lab_str *out, enum lab_metric_id metric, int64_t value);
void lab_monitor_add_string(struct lab_str *out, const char *text); /* as JSON */
/* Seconds with six decimals. */
struct lab_doc_cell lab_monitor_seconds(int64_t time_ns);
void lab_monitor_add_seconds(struct lab_str *out, int64_t time_ns);
/* "2025-01-15T10:30:00.123", local time. */
void lab_monitor_add_time(struct lab_str *out, int64_t wall_ns);

/* Times and offsets are smaller than this, so that sums of two fit. */
#define LAB_MONITOR_TIME_MAX_NS (INT64_C(1) << 62)

enum lab_monitor_time {
    LAB_MONITOR_TIME_NONE, /* no time stamp at all */
    LAB_MONITOR_TIME_WALL, /* since 1970 */
    LAB_MONITOR_TIME_RELATIVE,
};

/* ISO 8601 with or without a zone (then local), seconds or milliseconds since 1970, or seconds
 * since some start. */
enum lab_monitor_time lab_monitor_parse_time(const char *text, int64_t *ret_ns);
enum lab_monitor_time lab_monitor_value_time(const struct lab_value *value, int64_t *ret_ns);

/* The name of a metric's column in CSV and JSON, with its unit: "memory_used_bytes". */
void lab_monitor_add_column(struct lab_str *out, enum lab_metric_id metric);
int lab_monitor_find_column(const char *name); /* -1 = none */

/* A value in the metric's unit as a tick holds it; false = it is no number that fits. */
bool lab_monitor_to_raw(enum lab_metric_id metric, double value, int64_t *ret_raw);

/* --- fields of a GPU's record, in both dialects --- */

#define LAB_MONITOR_MIB 1048576.0
#define LAB_MONITOR_GIB 1073741824.0

/* What a field is that is no metric: it names the device, the time or a process, or it is a
 * process's value. */
enum lab_monitor_role {
    LAB_MONITOR_TIMESTAMP = LAB_METRIC_COUNT,
    LAB_MONITOR_DATE,  /* "20261117" */
    LAB_MONITOR_CLOCK, /* "19:04:32" */
    LAB_MONITOR_ELAPSED,
    LAB_MONITOR_KIND,
    LAB_MONITOR_INDEX,
    LAB_MONITOR_ID,
    LAB_MONITOR_NAME,
    LAB_MONITOR_PCI,
    LAB_MONITOR_NODE,
    LAB_MONITOR_SIMULATED,
    LAB_MONITOR_PID,
    LAB_MONITOR_PROCESS_NAME,
    LAB_MONITOR_USER,
    LAB_MONITOR_COMMAND,
    LAB_MONITOR_TYPE, /* "C", "G" or "C+G" */
    LAB_MONITOR_PARENT,
    LAB_MONITOR_THREADS,
    LAB_MONITOR_CPU_PERCENT,
    LAB_MONITOR_RESIDENT,
    LAB_MONITOR_RESIDENT_SHARE, /* % of the host's memory */
    LAB_MONITOR_GPU_MEMORY,
    LAB_MONITOR_SM_PERCENT,
    LAB_MONITOR_GPU_MEMORY_PERCENT,
    LAB_MONITOR_IGNORED, /* known, and of no use here */
    LAB_MONITOR_REASON,  /* "Active" or not: one clock event reason, whose bit is the unit */
    LAB_MONITOR_UNKNOWN,
};

struct lab_monitor_field {
    const char *key;
    int what;    /* a metric, or an enum lab_monitor_role */
    double unit; /* of the field, in the metric's unit: MiB = 1048576 */
    int decimals;
    const char *suffix; /* that may follow the number: "MiB"; NULL = none */
    enum { LAB_MONITOR_AS_IT_IS, LAB_MONITOR_NOT_NEGATIVE, LAB_MONITOR_NOT_ZERO } sense;
};

extern const struct lab_monitor_field lab_monitor_gpu_fields[]; /* single and multi */
#define LAB_MONITOR_EXPERIMENT_FIELDS 17
extern const struct lab_monitor_field
    lab_monitor_experiment_fields[LAB_MONITOR_EXPERIMENT_FIELDS + 1]; /* both end with a NULL key */

/* Counters of a NUMA node's pages: numastat's row, the key of the object. */
enum { LAB_MONITOR_PAGES = 4 };
extern const struct lab_monitor_page {
    const char *row, *key;
    enum lab_metric_id metric;
} lab_monitor_pages[LAB_MONITOR_PAGES];

/* What is known of a GPU from tick to tick: limits and counters are read less often than the rest,
 * and readers of these files take no null. */
struct lab_monitor_gpu {
    double held[LAB_METRIC_PROCESSES]; /* the last of each, in the metric's unit; NaN = none yet */
    uint64_t fresh;                    /* bit n: metric n is of this tick */
    struct {
        int64_t time_ns;
        double value;
    } counters[4]; /* PCIe and NVLink, out and in; NaN = none yet */
};

void lab_monitor_gpu_init(struct lab_monitor_gpu *gpu);
/* Takes note of a tick. Rates come from the driver, or else from the growth of its counters. */
void lab_monitor_gpu_pass(struct lab_monitor_gpu *gpu, const struct lab_entity *entity,
                          const struct lab_tick *tick);
