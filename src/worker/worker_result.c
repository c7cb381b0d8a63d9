/* worker_result.c: a rank's RESULT, field by field as worker.h lists them. */
#include "worker/worker_internal.h"

#include "base/file/file.h"
#include "base/json.h"

#include <math.h>
#include <sys/resource.h>

#define STATUS_MAX_BYTES (1u << 20)
#define KIB_PER_MIB      1024.0
#define WARNING_BITS     16

struct writer {
    struct lab_arena *arena;
    struct lab_value *map;
};

static struct writer open_map(struct lab_arena *arena) {
    return (struct writer){arena, lab_value_map(arena)};
}

static void put(struct writer writer, const char *key, double value) {
    lab_value_set_float(writer.arena, writer.map, key, isfinite(value) ? value : NAN);
}

static void put_map(struct writer writer, const char *key, struct writer inner) {
    lab_value_set(writer.arena, writer.map, key, inner.map);
}

/* --- parts --- */

static struct writer times_value(const struct lab_summary *summary, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    double ms = summary->n > 0 ? 1e3 : NAN;
    put(writer, "mean", ms * summary->mean);
    put(writer, "median", ms * summary->median);
    put(writer, "p90", ms * summary->p90);
    put(writer, "p95", ms * summary->p95);
    put(writer, "p99", ms * summary->p99);
    put(writer, "min", ms * summary->min);
    put(writer, "max", ms * summary->max);
    return writer;
}

static struct writer conditions_value(const struct lab_conditions *conditions,
                                      struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put(writer, "load_before", conditions->load_before);
    put(writer, "foreign_cpu", conditions->foreign_cpu);
    put(writer, "steal", conditions->steal);
    put(writer, "pressure_cpu", conditions->pressure_cpu);
    put(writer, "pressure_memory", conditions->pressure_memory);
    return writer;
}

static struct writer verification_value(const struct lab_verification *verification,
                                        struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    bool applicable = verification->applicable;
    lab_value_set_bool(arena, writer.map, "applicable", applicable);
    lab_value_set_bool(arena, writer.map, "passed", verification->passed);
    put(writer, "relative_error", applicable ? verification->relative_error : NAN);
    put(writer, "tolerance", applicable ? verification->tolerance : NAN);
    lab_value_set_string(arena, writer.map, "text", verification->text);
    return writer;
}

static struct lab_value *warnings_value(const struct lab_measurement *measurement,
                                        struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    struct lab_str text;
    lab_str_init(&text);
    for (int bit = 0; bit < WARNING_BITS; bit++) {
        lab_str_clear(&text);
        lab_measure_explain(measurement, (enum lab_measure_warning)(1 << bit), &text);
        if (text.length > 0)
            lab_value_append(arena, list, lab_value_string(arena, text.text));
    }
    lab_str_release(&text);
    return list;
}

/*
 * The largest resident memory of this process, from /proc: getrusage would count what the runner
 * had when it started us. Of an external workload that of its largest process.
 */
double worker_peak_memory_mib(bool external, struct lab_arena *arena) {
    if (external) {
        struct rusage usage;
        getrusage(RUSAGE_CHILDREN, &usage);
        return usage.ru_maxrss > 0 ? (double)usage.ru_maxrss / KIB_PER_MIB : NAN;
    }
    static const char key[] = "\nVmHWM:";
    char *text;
    size_t length;
    if (lab_file_read("/proc/self/status", STATUS_MAX_BYTES, arena, &text, &length, NULL) < 0)
        return NAN;
    const char *at = strstr(text, key);
    return at ? (double)strtoll(at + sizeof key - 1, NULL, 10) / KIB_PER_MIB : NAN;
}

/* Nothing was proven of a program that places its own memory, nor where no node was asked for. */
static struct lab_value *proven_value(const struct rank *rank, struct lab_arena *arena) {
    if (rank->session.invalid_count > 0)
        return lab_value_bool(arena, false);
    bool external = rank->worker->workload->external;
    if (external || (!rank->session.thread_proven && !rank->session.memory_proven))
        return lab_value_null(arena);
    return lab_value_bool(arena, true);
}

static struct lab_value *trace_value(const struct rank *rank, struct lab_arena *arena) {
    if (!rank->trace_path)
        return lab_value_null(arena);
    struct writer writer = open_map(arena);
    lab_value_set_string(arena, writer.map, "path", rank->trace_path);
    lab_value_set_int(arena, writer.map, "iterations", rank->trace_iterations);
    put(writer, "overhead", rank->trace_overhead);
    return writer.map;
}

/* --- groups --- */

/* Which node the device sits on, and how far that is from the one that feeds it; null = unknown. */
static void put_place(struct writer writer, const struct rank *rank) {
    const struct lab_machine *machine =
        rank->session.ref.machine ? rank->session.ref.machine : rank->worker->machine;
    int distance =
        lab_machine_distance(machine, lab_machine_node_index(machine, rank->job->numa_node),
                             lab_machine_node_index(machine, rank->session.ref.node));
    put(writer, "device_node", NAN);
    put(writer, "distance", NAN);
    if (rank->session.ref.node >= 0)
        lab_value_set_int(writer.arena, writer.map, "device_node", rank->session.ref.node);
    if (distance > 0)
        lab_value_set_int(writer.arena, writer.map, "distance", distance);
    if (rank->session.ref.uuid)
        lab_value_set_string(writer.arena, writer.map, "device_uuid", rank->session.ref.uuid);
    if (rank->session.ref.simulated)
        lab_value_set_bool(writer.arena, writer.map, "simulated", true);
}

/* What this rank does of an iteration. */
static struct lab_workload_cost cost_of(const struct rank *rank) {
    const struct worker *worker = rank->worker;
    struct lab_workload_cost cost = worker->cost;
    if (worker->group && worker->workload->share)
        worker->workload->share(worker->config, rank->job->index, worker->job.gang_size, &cost);
    return cost;
}

/*
 * The share of time in which the device computes. What a rank of several spends with waiting for
 * the others' gradients is part of its iterations, but not of that: its parts say so, where the
 * workload tells them.
 */
static double compute_share(const struct rank *rank, double share) {
    double busy_ms = 0, interval_ms = 1e3 * rank->measurement.interval.mean;
    if (rank->parts[WORKER_COMMUNICATION].count == 0 || !(interval_ms > 0))
        return share;
    for (int i = WORKER_FORWARD; i <= WORKER_UPDATE; i++)
        if (rank->parts[i].count > 0)
            busy_ms += rank->parts[i].total / rank->parts[i].count;
    return fmin(1, busy_ms / interval_ms);
}

/* What parts of an iteration took, where the workload tells; docs/NUMBERS.md. */
static void put_parts(struct writer writer, const struct rank *rank) {
    for (int i = 0; i < WORKER_PARTS; i++)
        if (rank->parts[i].count > 0)
            put(writer, worker_part_names[i], rank->parts[i].total / rank->parts[i].count);
}

static void put_amount(struct writer writer, const struct rank *rank) {
    const struct lab_measurement *m = &rank->measurement;
    double samples = cost_of(rank).samples * (double)m->count;
    lab_value_set_string(writer.arena, writer.map, "device", rank->session.ref.name);
    lab_value_set_int(writer.arena, writer.map, "numa_node", rank->job->numa_node);
    put_place(writer, rank);
    lab_value_set_int(writer.arena, writer.map, "iterations", (int64_t)m->count);
    lab_value_set_int(writer.arena, writer.map, "warmup_iterations", m->warmup_iterations);
    if (samples > 0)
        lab_value_set_int(writer.arena, writer.map, "samples", (int64_t)samples);
    else
        lab_value_set(writer.arena, writer.map, "samples", lab_value_null(writer.arena));
}

static void put_rates(struct writer writer, const struct rank *rank) {
    const struct lab_measurement *m = &rank->measurement;
    const struct lab_workload_cost cost = cost_of(rank);
    struct lab_work work = {.samples = cost.samples,
                            .flops = cost.compute.flops,
                            .memory_bytes = cost.compute.bytes_read + cost.compute.bytes_written,
                            .h2d_bytes = cost.h2d_bytes,
                            .d2h_bytes = cost.d2h_bytes};
    struct lab_rates rates = lab_measure_rates(m, &work);
    double rate = work.samples > 0 ? rates.samples_per_s : rates.iterations_per_s;
    struct lab_interval interval = lab_measure_rate_interval(m, rate);
    put(writer, "rate", rate);
    put(writer, "rate_low", interval.low);
    put(writer, "rate_high", interval.high);
    lab_value_set_string(writer.arena, writer.map, "rate_unit",
                         work.samples > 0 ? "samples/s" : "iterations/s");
    put(writer, "samples_per_second", rates.samples_per_s);
    put(writer, "flops_per_second", rates.flops_per_s);
    put(writer, "h2d_gb_per_s", 1e-9 * rates.h2d_bytes_per_s);
    put(writer, "d2h_gb_per_s", 1e-9 * rates.d2h_bytes_per_s);
    put(writer, "compute_utilization", compute_share(rank, rates.compute_share));
    /* threads that take turns on one core seem to overlap; where the device can't, there is none */
    put(writer, "overlap", rank->overlaps ? m->overlap : NAN);
}

/* In a pipeline the last iteration to start need not be the last to end. */
static void put_span(struct writer writer, const struct lab_measurement *m) {
    int64_t first_ns = m->iterations[0].start_ns, last_ns = m->iterations[0].end_ns;
    for (size_t i = 1; i < m->count; i++) {
        const struct lab_iteration *iteration = &m->iterations[i];
        first_ns = iteration->start_ns < first_ns ? iteration->start_ns : first_ns;
        last_ns = iteration->end_ns > last_ns ? iteration->end_ns : last_ns;
    }
    lab_value_set_int(writer.arena, writer.map, "first_ns", first_ns);
    lab_value_set_int(writer.arena, writer.map, "last_ns", last_ns);
}

/* Only a simulated run's end isn't what the runner's clock says. */
static void put_end(struct writer writer, const struct rank *rank) {
    if (rank->session.ref.simulated)
        lab_value_set_int(writer.arena, writer.map, "end_ns", rank->end_ns);
}

static void put_validity(struct writer writer, const struct rank *rank) {
    struct lab_arena *arena = writer.arena;
    struct lab_value *invalid = lab_value_list(arena);
    for (int i = 0; i < rank->session.invalid_count; i++)
        lab_value_append(arena, invalid, lab_value_string(arena, rank->session.invalid[i]));
    lab_value_set(arena, writer.map, "verification",
                  rank->session.verified
                      ? verification_value(&rank->session.verification, arena).map
                      : lab_value_null(arena));
    lab_value_set(arena, writer.map, "placement_proven", proven_value(rank, arena));
    put_map(writer, "conditions", conditions_value(&rank->measurement.conditions, arena));
    struct lab_value *warnings = warnings_value(&rank->measurement, arena);
    worker_add_metric_warnings(rank, arena, warnings);
    if (rank->trace_warning)
        lab_value_append(arena, warnings, lab_value_string(arena, rank->trace_warning));
    for (int i = 0; i < rank->phase_warning_count; i++)
        lab_value_append(arena, warnings, lab_value_string(arena, rank->phase_warnings[i]));
    lab_value_set(arena, writer.map, "warnings", warnings);
    lab_value_set(arena, writer.map, "invalid", invalid);
}

static struct lab_value *capacity_value(const struct rank *rank, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put(writer, "flops_per_second", rank->capacity.flops_per_s);
    put(writer, "memory_gb_per_s", 1e-9 * rank->capacity.memory_bytes_per_s);
    put(writer, "h2d_gb_per_s", 1e-9 * rank->capacity.h2d_bytes_per_s);
    put(writer, "d2h_gb_per_s", 1e-9 * rank->capacity.d2h_bytes_per_s);
    put(writer, "clock_mhz", rank->capacity.clock_mhz);
    put(writer, "power_w", rank->capacity.power_w);
    put(writer, "power_limit_w", rank->capacity.power_limit_w);
    return writer.map;
}

static struct lab_value *regrets_value(const struct rank *rank, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < rank->regret_count; i++) {
        const struct regret *regret = &rank->regrets[i];
        struct writer writer = open_map(arena);
        lab_value_set_string(arena, writer.map, "phase", regret->phase);
        lab_value_set_string(arena, writer.map, "config", regret->config);
        lab_value_set_bool(arena, writer.map, "same", regret->same);
        put(writer, "ratio", regret->ratio);
        put(writer, "low", regret->low);
        put(writer, "high", regret->high);
        lab_value_set_int(arena, writer.map, "rounds", regret->rounds);
        lab_value_append(arena, list, writer.map);
    }
    return list;
}

/* Of a study with phases: what was chosen, what it costs, and what was left to it. */
static void put_phase(struct writer writer, const struct rank *rank) {
    const struct lab_job *job = &rank->worker->job;
    if (job->disturb)
        lab_value_set_string(writer.arena, writer.map, "disturbed", job->disturb);
    if (rank->tuning) {
        static const char *const kept[] = {"best_config", "best_time_ms", "winner_is_certain"};
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            lab_value_set(writer.arena, writer.map, kept[i], lab_value_get(rank->tuning, kept[i]));
        lab_value_set(writer.arena, writer.map, "tuning", rank->tuning);
    }
    if (rank->regret_count > 0)
        lab_value_set(writer.arena, writer.map, "regret", regrets_value(rank, writer.arena));
    if (rank->probed)
        lab_value_set(writer.arena, writer.map, "capacity", capacity_value(rank, writer.arena));
}

void worker_write_result(struct rank *rank, struct lab_str *out) {
    const struct lab_measurement *m = &rank->measurement;
    struct writer writer = open_map(&rank->arena);
    put_amount(writer, rank);
    put_rates(writer, rank);
    put_map(writer, "latency_ms", times_value(&m->latency, writer.arena));
    put_map(writer, "interval_ms", times_value(&m->interval, writer.arena));
    put_span(writer, m);
    put_end(writer, rank);
    put(writer, "setup_s", rank->session.setup_s);
    put(writer, "first_iteration_ms", 1e3 * m->first_s);
    lab_value_set_bool(writer.arena, writer.map, "steady", m->steady);
    put(writer, "peak_memory_mb", rank->peak_memory_mib);
    put(writer, "device_memory_mb", rank->device_memory_mib);
    put_parts(writer, rank);
    put_validity(writer, rank);
    const struct lab_value *configuration =
        lab_value_get(rank->worker->job.options, LAB_WORKLOAD_CONFIG);
    if ((rank->worker->workload->launch || rank->worker->workload->launches) && configuration)
        lab_value_set(writer.arena, writer.map, "configuration",
                      rank->configuration ? lab_value_string(writer.arena, rank->configuration)
                                          : lab_value_copy(writer.arena, configuration));
    put_phase(writer, rank);
    lab_value_set(writer.arena, writer.map, "trace", trace_value(rank, writer.arena));
    lab_json_write(writer.map, 0, out);
}
