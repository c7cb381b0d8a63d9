/* worker_result.c: a rank's RESULT: the values of model/result.h that a worker knows. */
#include "worker/worker_internal.h"

#include "base/file/file.h"
#include "base/json.h"

#include <math.h>
#include <sys/resource.h>

#define WARNING_BITS 16

/* --- what was done --- */

/* Which node the device sits on, and how far that is from the one that feeds it. */
static void set_place(struct lab_result *result, const struct worker *worker,
                      const struct lab_device_ref *ref, int numa_node) {
    const struct lab_machine *machine = ref->machine ? ref->machine : worker->machine;
    int distance = lab_machine_distance(machine, lab_machine_node_index(machine, numa_node),
                                        lab_machine_node_index(machine, ref->node));
    result->device = ref->name;
    result->numa_node = numa_node;
    if (ref->node >= 0)
        result->device_node = ref->node;
    if (distance > 0)
        result->distance = distance;
    result->device_uuid = ref->uuid;
    if (ref->simulated)
        result->simulated = true;
}

/* What this rank does of an iteration. */
static struct lab_workload_cost cost_of(const struct rank *rank) {
    const struct worker *worker = rank->worker;
    struct lab_workload_cost cost = worker->cost;
    if (worker->group && worker->workload->share)
        worker->workload->share(worker->config, rank->job->index, worker->job.gang_size, &cost);
    return cost;
}

static void set_amount(struct lab_result *result, const struct rank *rank) {
    const struct lab_measurement *m = &rank->measurement;
    double samples = cost_of(rank).samples * (double)m->count;
    result->iterations = (int64_t)m->count;
    result->warmup_iterations = m->warmup_iterations;
    if (samples > 0)
        result->samples = (int64_t)samples;
}

/* --- how fast --- */

static void set_told(struct lab_result *result, const struct rank *rank) {
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        if (rank->told[i].count > 0)
            *(double *)lab_result_member(result, &lab_result_rows[i]) =
                rank->told[i].total / rank->told[i].count;
}

/*
 * The share of time in which the device computes. What a rank of several spends with waiting for
 * the others' gradients is part of its iterations, but not of that: what the workload tells shows
 * it.
 */
static double compute_share(const struct lab_result *result, double share) {
    const double parts[] = {result->forward_ms, result->backward_ms, result->gradient_ms,
                            result->update_ms};
    double busy_ms = 0;
    if (isnan(result->communication_time_ms) || !(result->interval_ms_mean > 0))
        return share;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        busy_ms += isnan(parts[i]) ? 0 : parts[i];
    return fmin(1, busy_ms / result->interval_ms_mean);
}

static void set_rates(struct lab_result *result, const struct rank *rank) {
    const struct lab_measurement *m = &rank->measurement;
    const struct lab_workload_cost cost = cost_of(rank);
    struct lab_work work = {.samples = cost.samples,
                            .flops = cost.compute.flops,
                            .memory_bytes = cost.compute.bytes_read + cost.compute.bytes_written,
                            .h2d_bytes = cost.h2d_bytes,
                            .d2h_bytes = cost.d2h_bytes};
    struct lab_rates rates = lab_measure_rates(m, &work);
    result->rate = work.samples > 0 ? rates.samples_per_s : rates.iterations_per_s;
    struct lab_interval interval = lab_measure_rate_interval(m, result->rate);
    result->rate_low = interval.low;
    result->rate_high = interval.high;
    const char *unit = rank->worker->workload->rate_unit;
    result->rate_unit = !(work.samples > 0) ? "iterations/s" : unit ? unit : "samples/s";
    if (rank->worker->workload->external)
        worker_set_program_rate(rank, result);
    result->samples_per_second = rates.samples_per_s;
    result->flops_per_second = rates.flops_per_s;
    result->h2d_gb_per_s = 1e-9 * rates.h2d_bytes_per_s;
    result->d2h_gb_per_s = 1e-9 * rates.d2h_bytes_per_s;
    result->compute_utilization = compute_share(result, rates.compute_share);
    /* threads that take turns on one core seem to overlap; where the device can't, there is none */
    result->overlap = rank->overlaps ? m->overlap : NAN;
}

static void set_times(struct lab_result *result, const struct lab_measurement *m) {
#define SET_TIMES(group, summary)                                                                  \
    do {                                                                                           \
        double ms = (summary).n > 0 ? 1e3 : NAN;                                                   \
        result->group##_mean = ms * (summary).mean;                                                \
        result->group##_median = ms * (summary).median;                                            \
        result->group##_p90 = ms * (summary).p90;                                                  \
        result->group##_p95 = ms * (summary).p95;                                                  \
        result->group##_p99 = ms * (summary).p99;                                                  \
        result->group##_min = ms * (summary).min;                                                  \
        result->group##_max = ms * (summary).max;                                                  \
    } while (0)
    SET_TIMES(latency_ms, m->latency);
    SET_TIMES(interval_ms, m->interval);
    result->first_iteration_ms = 1e3 * m->first_s;
    result->steady = m->steady;
    /* in a pipeline the last iteration to start need not be the last to end */
    result->first_ns = m->iterations[0].start_ns;
    result->last_ns = m->iterations[0].end_ns;
    for (size_t i = 1; i < m->count; i++) {
        const struct lab_iteration *iteration = &m->iterations[i];
        if (iteration->start_ns < result->first_ns)
            result->first_ns = iteration->start_ns;
        if (iteration->end_ns > result->last_ns)
            result->last_ns = iteration->end_ns;
    }
}

/* --- whether it may be used --- */

static void set_verification(struct lab_result *result, const struct rank *rank) {
    const struct lab_verification *verification = &rank->session.verification;
    if (!rank->session.verified)
        return;
    result->verification_applicable = verification->applicable;
    result->verification_passed = verification->passed;
    result->verification_text = verification->text;
    if (verification->applicable) {
        result->verification_relative_error = verification->relative_error;
        result->verification_tolerance = verification->tolerance;
    }
}

/* Nothing was proven of a program that places its own memory, nor where no node was asked for. */
static void set_proof(struct lab_result *result, const struct rank *rank) {
    bool external = rank->worker->workload->external;
    if (rank->session.invalid_count > 0)
        result->placement_proven = false;
    else if (!external && (rank->session.thread_proven || rank->session.memory_proven))
        result->placement_proven = true;
}

static void add_warnings(struct lab_result *result, const struct rank *rank,
                         struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int bit = 0; bit < WARNING_BITS; bit++) {
        lab_str_clear(&text);
        lab_measure_explain(&rank->measurement, (enum lab_measure_warning)(1 << bit), &text);
        if (text.length > 0)
            lab_result_warn(result, arena, text.text);
    }
    worker_add_metric_warnings(rank, arena, result);
    if (result->share_note)
        lab_result_warn(result, arena,
                        lab_arena_printf(arena, "simulated framework: %s", result->share_note));
    if (rank->trace_warning)
        lab_result_warn(result, arena, rank->trace_warning);
    for (int i = 0; i < rank->phase_warning_count; i++)
        lab_result_warn(result, arena, rank->phase_warnings[i]);
    for (int i = 0; i < rank->session.invalid_count; i++)
        lab_result_spoil(result, arena, rank->session.invalid[i]);
}

static void set_conditions(struct lab_result *result, const struct lab_conditions *conditions) {
    result->conditions_load_before = conditions->load_before;
    result->conditions_foreign_cpu = conditions->foreign_cpu;
    result->conditions_steal = conditions->steal;
    result->conditions_pressure_cpu = conditions->pressure_cpu;
    result->conditions_pressure_memory = conditions->pressure_memory;
}

static void set_configuration(struct lab_result *result, const struct rank *rank,
                              struct lab_arena *arena) {
    const struct lab_workload *workload = rank->worker->workload;
    struct lab_value *configuration = lab_value_get(rank->worker->job.options, LAB_WORKLOAD_CONFIG);
    if (rank->configuration && configuration)
        configuration = lab_value_string(arena, rank->configuration);
    if (configuration && (workload->launch || workload->launches))
        result->configuration = lab_json_text(configuration, arena);
}

/* --- all of it --- */

void worker_complete_result(struct rank *rank) {
    struct lab_result *result = &rank->result;
    struct lab_arena *arena = &rank->arena;
    set_place(result, rank->worker, &rank->session.ref, rank->job->numa_node);
    if (result->simulated > 0)
        result->end_ns = rank->end_ns; /* isn't what the runner's clock says */
    set_amount(result, rank);
    set_times(result, &rank->measurement);
    set_told(result, rank);
    set_rates(result, rank);
    result->setup_s = rank->session.setup_s;
    result->disturbed = rank->worker->job.disturb;
    if (rank->worker->group && lab_group_sum_way(rank->worker->group) != LAB_SUM_AUTO)
        result->allreduce = lab_sum_way_name(lab_group_sum_way(rank->worker->group));
    set_verification(result, rank);
    set_proof(result, rank);
    set_conditions(result, &rank->measurement.conditions);
    add_warnings(result, rank, arena);
    set_configuration(result, rank, arena);
}

/* The program's time and what is to be said of it are those of all its ranks. */
struct lab_result worker_launched_result(const struct rank *first, int index) {
    struct lab_result result = lab_result_none;
    set_place(&result, first->worker, &first->gang.items[index],
              first->worker->job.ranks[index].numa_node);
    result.first_ns = first->result.first_ns;
    result.last_ns = first->result.last_ns;
    result.warnings = first->result.warnings;
    result.invalid = first->result.invalid;
    return result;
}
