/*
 * bench_run.c: a session's steps, and what there is to say about them. Each repetition opens
 * device and workload afresh: memory lands on other pages, threads start anew, and only then do
 * differences between repetitions say anything about the next one.
 */
#include "session/bench_run.h"

#include "base/list.h"
#include "base/random.h"
#include "base/subprocess.h"
#include "base/tty/interrupt.h"
#include "machine/machine.h"

#include <string.h>

/* Over the status line, and taken away as that is. */
#define STOPPING "\r\033[Kstopping after this step; Ctrl-C again ends it at once"

#define METRICS_MOST 32 /* names that are shown; a program may print any number of them */

struct bench {
    struct lab_session *session;
    const struct lab_bench_request *request;
    struct lab_progress progress;
    struct lab_bench_report *report;
    struct lab_bench_repetition *repetitions;
    bool takes_all; /* devices that were selected; else the first */
    const char **invalid;
    int invalid_count;
    const char *warning;                         /* the workload's own; NULL */
    struct lab_op_time operations[LAB_OP_COUNT]; /* of all repetitions so far */
    struct lab_bench_metric metrics[METRICS_MOST];
};

static void add_invalid(struct bench *bench, const char *reason) {
    for (int i = 0; i < bench->invalid_count; i++)
        if (lab_str_equal(bench->invalid[i], reason))
            return;
    bench->invalid[bench->invalid_count++] = reason;
}

/* --- before the first repetition --- */

#define DEVICES_KEY "devices" /* of a workload that opens others than the first by itself */

/* Such a workload, and the user hasn't named them. */
static bool wants_devices(const struct bench *bench) {
    const struct lab_value *given = lab_value_get(bench->request->config_value, DEVICES_KEY);
    return lab_options_find(bench->session->workload->options, DEVICES_KEY) &&
           (!given || given->type == LAB_VALUE_NULL);
}

/* Those of --device are then what the key says. */
static int name_devices(struct bench *bench, struct lab_err *err) {
    struct lab_session *session = bench->session;
    struct lab_value *names = lab_value_string(session->arena, bench->request->selector);
    if (lab_workload_set(session->workload, &session->config, DEVICES_KEY, names, session->arena,
                         err) < 0)
        return -1;
    lab_value_set(session->arena, bench->report->config, DEVICES_KEY, names);
    return 0;
}

static int choose_node(struct bench *bench, struct lab_err *err) {
    struct lab_session *session = bench->session;
    int node = bench->request->numa_node;
    const struct lab_machine *machine =
        session->ref.machine ? session->ref.machine : session->machine;
    if (node >= 0 && lab_machine_require_node(machine, node, err) < 0)
        return lab_err_context(err, "--node %d", node);
    node = node >= 0 ? node : session->ref.node;
    bench->report->numa_node = node;
    session->rank =
        (struct lab_rank){.numa_node = node, .count = 1, .seed = bench->request->plan.seed};
    return 0;
}

static int lease(struct bench *bench, struct lab_err *err) {
    struct lab_session *session = bench->session;
    return lab_session_lease(
        session, bench->takes_all ? session->devices.count : 1,
        lab_arena_printf(session->arena, "gpulab bench %s", session->workload->name), err);
}

static void describe_work(struct bench *bench) {
    const struct lab_session *session = bench->session;
    const struct lab_workload *workload = session->workload;
    struct lab_bench_report *report = bench->report;
    struct lab_workload_cost cost;
    workload->cost(session->config, &cost);
    report->work =
        (struct lab_work){.samples = cost.samples,
                          .flops = cost.compute.flops,
                          .memory_bytes = cost.compute.bytes_read + cost.compute.bytes_written,
                          .h2d_bytes = cost.h2d_bytes,
                          .d2h_bytes = cost.d2h_bytes};
    report->rate_unit = workload->rate_unit;
    report->parameters = cost.parameters;
    report->dtype = workload->external ? NULL : lab_dtype_name(cost.dtype);
    report->workload = workload->name;
    report->device = session->ref;
    report->label = lab_workload_label(workload, session->config, session->arena);
    bench->progress.label = report->label;
}

/* --- one repetition --- */

static const char *keep(struct bench *bench, const char *text) {
    return text ? lab_arena_strdup(bench->session->arena, text) : NULL;
}

/* Once: a fresh device of the same name has the same abilities. */
static int examine_device(struct bench *bench, struct lab_err *err) {
    struct lab_device *device = bench->session->device;
    struct lab_bench_report *report = bench->report;
    struct lab_workload_cost cost;
    bench->session->workload->cost(bench->session->config, &cost);
    report->limits.how = "not measured: --no-limits";
    if (bench->request->limits) {
        lab_progress_phase(&bench->progress, "finding the device's limits");
        if (lab_device_limits(device, cost.dtype, &report->limits, err) < 0)
            return -1;
        report->limits.how = keep(bench, report->limits.how);
    }
    report->info = device->info;
    report->info.arithmetic = keep(bench, device->info.arithmetic);
    report->info.overlap_why_not = keep(bench, device->info.overlap_why_not);
    return 0;
}

/* Nobody but the program opens the device: what it can do at best stays unknown. */
static void describe_external(struct bench *bench) {
    struct lab_bench_report *report = bench->report;
    report->limits.how = "not measured: the program opens the device itself";
    report->info = (struct lab_device_info){.compute_units = bench->session->ref.cpus.count,
                                            .overlap_why_not =
                                                "copies and kernels of a program aren't recorded"};
    report->verified = bench->request->verify;
    snprintf(report->verification.text, sizeof report->verification.text,
             "a program of your own: its results are not checked");
}

static int verify(struct bench *bench, struct lab_err *err) {
    struct lab_session *session = bench->session;
    if (lab_session_verify(session, lab_random_bits(bench->request->plan.seed, 1), err) < 0)
        return lab_err_context(err, "verifying");
    bench->report->verified = true;
    bench->report->verification = session->verification;
    const char *why = lab_session_why_wrong(session);
    if (why)
        add_invalid(bench, lab_arena_printf(session->arena, "wrong results: %s", why));
    return 0;
}

static int measure(struct bench *bench, int index, struct lab_err *err) {
    struct lab_session *session = bench->session;
    struct lab_measure_plan plan = bench->request->plan;
    plan.seed = lab_random_bits(plan.seed, 100 + (uint64_t)index);
    bench->progress.drawn_ns = 0;
    struct lab_measurement *measurement = lab_arena_alloc(session->arena, 1, sizeof *measurement);
    if (lab_session_measure(session, &plan, NULL, 1, session->arena, measurement, err) < 0)
        return -1;
    lab_session_prove(session);
    for (int i = 0; i < session->invalid_count; i++)
        add_invalid(bench, session->invalid[i]);
    if (measurement->count > 0) /* else stopped before the first one */
        bench->repetitions[bench->report->repetition_count++] = (struct lab_bench_repetition){
            measurement, lab_measure_rates(measurement, &bench->report->work)};
    return 0;
}

/* Adds what the device counted between two readings. */
static void count_operations(struct bench *bench, const struct lab_op_time *before,
                             const struct lab_op_time *after) {
    for (int op = 0; op < LAB_OP_COUNT; op++) {
        bench->operations[op].launches += after[op].launches - before[op].launches;
        bench->operations[op].time_ns += after[op].time_ns - before[op].time_ns;
        bench->operations[op].flops += after[op].flops - before[op].flops;
    }
}

static int use_external(struct bench *bench, int index, struct lab_err *err) {
    describe_external(bench);
    if (lab_interrupt_seen())
        return 0;
    lab_interrupt_hold(true);
    int result = measure(bench, index, err);
    lab_interrupt_hold(false);
    return result;
}

static int use_workload(struct bench *bench, int index, struct lab_err *err) {
    const struct lab_device *device = bench->session->device;
    if (index == 0 && !lab_interrupt_seen()) {
        if (examine_device(bench, err) < 0)
            return -1;
        if (bench->request->verify && !lab_interrupt_seen() && verify(bench, err) < 0)
            return -1;
    }
    if (lab_interrupt_seen())
        return 0;
    struct lab_op_time before[LAB_OP_COUNT], after[LAB_OP_COUNT];
    lab_device_op_times(device, before);
    if (measure(bench, index, err) < 0)
        return -1;
    lab_device_op_times(device, after);
    count_operations(bench, before, after);
    return 0;
}

static int run_repetition(struct bench *bench, int index, struct lab_err *err) {
    struct lab_session *session = bench->session;
    session->setup.seed = lab_random_bits(bench->request->plan.seed, 200 + (uint64_t)index);
    session->rank.repeat = index;
    session->rank.port = session->workload->external ? lab_subprocess_port() : 0;
    bench->progress.run = index + 1;
    lab_workload_set_environment(session->workload, session->config, session->arena);
    int result = lab_session_open(session, err);
    if (result == 0)
        result = session->workload->external ? use_external(bench, index, err)
                                             : use_workload(bench, index, err);
    lab_session_close(session);
    return result;
}

static int run_repetitions(struct bench *bench, struct lab_err *err) {
    for (int i = 0; i < bench->request->repeat && !lab_interrupt_seen(); i++)
        if (run_repetition(bench, i, err) < 0)
            return lab_err_context(err, "%s on %s", bench->report->label, bench->session->ref.name);
    bench->report->interrupted = lab_interrupt_seen();
    if (bench->report->repetition_count == 0)
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped before anything was measured");
    return 0;
}

/* --- what it hears --- */

static void on_phase(void *state, const char *phase) {
    struct bench *bench = state;
    lab_progress_phase(&bench->progress, phase);
}

static bool on_progress(void *state, const struct lab_measure_progress *now) {
    struct bench *bench = state;
    if (lab_interrupt_seen())
        return true;
    lab_progress_measure(&bench->progress, now);
    return false;
}

static void keep_metric(struct bench *bench, const struct lab_reported_metric *metric) {
    int *count = &bench->report->metric_count, i = 0;
    while (i < *count && !lab_str_equal(bench->metrics[i].name, metric->name))
        i++;
    if (i == METRICS_MOST)
        return;
    if (i == *count) {
        bench->metrics[i] = (struct lab_bench_metric){keep(bench, metric->name),
                                                      keep(bench, metric->unit), metric->value};
        *count += 1;
    }
    bench->metrics[i].value = metric->value;
}

static void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        keep_metric(state, &items[i]);
}

static void on_warning(void *state, const char *text) {
    struct bench *bench = state;
    bench->warning = keep(bench, text);
}

/* The program is in a group of its own, and a second Ctrl-C must not leave it behind. */
static bool ends_at_once(void *state) {
    (void)state;
    return lab_interrupt_seen_twice();
}

/* --- what there is to say about it --- */

static const char *explain(struct bench *bench, enum lab_measure_warning warning) {
    const struct lab_measurement *first = NULL;
    int count = 0;
    for (int i = 0; i < bench->report->repetition_count; i++) {
        const struct lab_measurement *measurement = bench->repetitions[i].measurement;
        if (!(measurement->warnings & (unsigned)warning))
            continue;
        first = first ? first : measurement;
        count++;
    }
    if (!first)
        return NULL;
    LAB_AUTO(str, text);
    lab_measure_explain(first, warning, &text);
    if (bench->report->repetition_count > 1)
        lab_str_printf(&text, " (in %d of %d runs)", count, bench->report->repetition_count);
    return keep(bench, text.text);
}

static void collect_operations(struct bench *bench) {
    struct lab_bench_operation *list =
        lab_arena_alloc(bench->session->arena, LAB_OP_COUNT, sizeof *list);
    int count = 0;
    for (int op = 0; op < LAB_OP_COUNT; op++) {
        const struct lab_op_time *time = &bench->operations[op];
        if (time->launches > 0)
            list[count++] =
                (struct lab_bench_operation){.name = lab_op_get((enum lab_op_id)op)->name,
                                             .launches = time->launches,
                                             .time_s = 1e-9 * (double)time->time_ns,
                                             .flops = time->flops};
    }
    LAB_SORT(list, count, LAB_BY_MOST(list, time_s));
    bench->report->operations = list;
    bench->report->operation_count = bench->request->profile ? count : -1;
}

static void collect_metrics(struct bench *bench) {
    size_t count = (size_t)bench->report->metric_count;
    struct lab_bench_metric *list = lab_arena_alloc(bench->session->arena, count + 1, sizeof *list);
    memcpy(list, bench->metrics, count * sizeof *list);
    bench->report->metrics = list;
}

#define WARNING_BITS 16

static void collect_warnings(struct bench *bench) {
    const char **list = lab_arena_alloc(bench->session->arena, WARNING_BITS + 6, sizeof *list);
    int count = 0;
    if (bench->request->note)
        list[count++] = bench->request->note;
    if (bench->warning)
        list[count++] = bench->warning;
    if (bench->report->interrupted)
        list[count++] = "stopped by the user: these are the values so far";
    if (!bench->request->verify)
        list[count++] = "the results were not verified (--no-verify)";
    for (int bit = 0; bit < WARNING_BITS; bit++) {
        const char *text = explain(bench, (enum lab_measure_warning)(1 << bit));
        if (text)
            list[count++] = text;
    }
    bench->report->warnings = list;
}

int lab_bench_run(struct lab_session *session, const struct lab_bench_request *request,
                  struct lab_bench_report *ret_report, int *ret_selected, struct lab_err *err) {
    size_t repeat = (size_t)request->repeat;
    struct bench bench = {
        .session = session,
        .request = request,
        .report = ret_report,
        .progress = request->progress,
        .repetitions = lab_arena_alloc(session->arena, repeat, sizeof *bench.repetitions),
        .invalid = lab_arena_alloc(session->arena, 3 * repeat + 2, sizeof *bench.invalid),
    };
    *ret_report = (struct lab_bench_report){.config = request->config_value,
                                            .configuration = request->configuration,
                                            .repetitions = bench.repetitions,
                                            .invalid = bench.invalid};
    bench.progress.run_count = request->repeat;
    bench.takes_all =
        session->devices.count > 1 && !session->ref.simulated && wants_devices(&bench);
    *ret_selected = bench.takes_all ? 1 : session->devices.count;
    session->listener = (struct lab_session_listener){.phase = on_phase,
                                                      .progress = on_progress,
                                                      .sink = {.metrics = on_metrics,
                                                               .warning = on_warning,
                                                               .stopped = ends_at_once,
                                                               .state = &bench}};
    lab_interrupt_watch(request->progress.shown ? STOPPING : NULL);
    if (choose_node(&bench, err) < 0 || (bench.takes_all && name_devices(&bench, err) < 0) ||
        lease(&bench, err) < 0 || lab_session_bind(session, err) < 0)
        return -1;
    describe_work(&bench);
    int result = run_repetitions(&bench, err);
    if (result == 0) {
        collect_warnings(&bench);
        collect_operations(&bench);
        collect_metrics(&bench);
    }
    lab_progress_clear(&bench.progress);
    return result;
}
