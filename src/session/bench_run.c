/*
 * bench_run.c: choose, bind, open, verify, measure, prove. The thread is bound before the
 * device is opened, so that nothing the device or the workload allocates lies elsewhere. Each
 * repetition opens device and workload afresh: memory lands on other pages, threads start anew, and
 * only then do differences between repetitions say anything about the next one.
 */
#include "session/bench_run.h"

#include "base/random.h"
#include "base/tty/interrupt.h"
#include "device/device.h"
#include "machine/machine.h"
#include "tune/tuned.h"

#include <string.h>

/* Over the status line, and taken away as that is. */
#define STOPPING "\r\033[Kstopping after this step; Ctrl-C again ends it at once"

#define METRICS_MOST 32 /* names that are shown; a program may print any number of them */

struct bench {
    const struct lab_bench_request *request;
    const void *config; /* the request's, with a tuned configuration in place of config=tuned */
    struct lab_machine *machine;
    struct lab_device_ref ref;
    struct lab_progress progress;
    struct lab_bench_report *report;
    struct lab_bench_repetition *repetitions;
    struct lab_arena *arena;
    bool takes_all; /* devices that were selected; else the first */
    const char **invalid;
    int invalid_count;
    const char *note;                            /* about the cache of tuned configurations; NULL */
    const char *warning;                         /* the workload's own; NULL */
    struct lab_op_time operations[LAB_OP_COUNT]; /* of all repetitions so far */
    struct lab_bench_metric metrics[METRICS_MOST];
};

static void add_invalid(struct bench *bench, const char *what, const char *why) {
    const char *reason = lab_arena_printf(bench->arena, "%s: %s", what, why);
    for (int i = 0; i < bench->invalid_count; i++)
        if (lab_str_equal(bench->invalid[i], reason))
            return;
    bench->invalid[bench->invalid_count++] = reason;
}

/* --- before the first repetition --- */

#define DEVICES_KEY "devices" /* of a workload that opens others than the first by itself */

/* Such a workload, and the user hasn't named them. */
static bool wants_devices(const struct lab_bench_request *request) {
    const struct lab_value *given = lab_value_get(request->config_value, DEVICES_KEY);
    for (const struct lab_option *row = request->workload->options; row && row->name; row++)
        if (lab_str_equal(row->name, DEVICES_KEY))
            return !given || given->type == LAB_VALUE_NULL;
    return false;
}

/* Those of --device are then what the key says. */
static int name_devices(struct bench *bench, struct lab_err *err) {
    const struct lab_workload *workload = bench->request->workload;
    void *config = lab_arena_alloc(bench->arena, 1, workload->config_size);
    memcpy(config, bench->config, workload->config_size);
    struct lab_value *names = lab_value_string(bench->arena, bench->request->selector);
    if (lab_options_set_value(workload->options, config, bench->arena, DEVICES_KEY, names, err) < 0)
        return -1;
    bench->config = config;
    lab_value_set(bench->arena, bench->report->config, DEVICES_KEY, names);
    return 0;
}

static int choose_device(struct bench *bench, int *ret_selected, struct lab_err *err) {
    struct lab_device_list list;
    if (lab_device_select(bench->machine, bench->request->selector, bench->arena, &list, err) < 0)
        return -1;
    if (list.count == 0)
        return lab_err_set(err, LAB_ERR_USER, "--device %s names no device: see 'gpulab devices'",
                           bench->request->selector);
    bench->ref = list.items[0];
    bench->takes_all = list.count > 1 && !bench->ref.simulated && wants_devices(bench->request);
    *ret_selected = bench->takes_all ? 1 : list.count;
    return 0;
}

static int choose_node(struct bench *bench, struct lab_err *err) {
    int node = bench->request->numa_node;
    const struct lab_machine *machine = bench->ref.machine ? bench->ref.machine : bench->machine;
    if (node >= 0 && lab_machine_require_node(machine, node, err) < 0)
        return lab_err_context(err, "--node %d", node);
    bench->report->numa_node = node >= 0 ? node : bench->ref.node;
    if (bench->report->numa_node < 0 || bench->ref.simulated)
        return 0;
    return lab_bind_thread_to_node(bench->machine, bench->report->numa_node, err);
}

/* NULL where there is nothing to choose from. */
static const char *describe_configuration(const struct lab_workload *workload,
                                          const struct lab_tuned *tuned, struct lab_arena *arena) {
    if (!tuned->wanted)
        return workload->launch ? "the only one that there is here" : NULL;
    if (tuned->unread)
        return "the default, since the cache of tuned ones can't be read";
    struct lab_str text;
    lab_str_init(&text);
    if (!tuned->found)
        lab_str_add(&text, "the default");
    else if (workload->launch)
        lab_str_printf(&text, "%s, as tuned", tuned->config);
    else
        lab_str_printf(&text, "%d of %d products as tuned: %s", tuned->found, tuned->wanted,
                       tuned->config);
    if (tuned->found < tuned->wanted && tuned->advice)
        lab_str_printf(&text, "; '%s' may find a faster one", tuned->advice);
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* What config=tuned means on this device; the report says so. */
static int choose_configuration(struct bench *bench, struct lab_err *err) {
    const struct lab_workload *workload = bench->request->workload;
    const struct lab_tunable_place place = {bench->machine, &bench->ref};
    struct lab_tuned tuned;
    bench->config = bench->request->config;
    bench->report->config = bench->request->config_value;
    lab_tuned_find(workload, bench->config, &place, NULL, bench->arena, &tuned);
    bench->note = tuned.note;
    if (!tuned.config) {
        const struct lab_value *wish =
            lab_value_get(bench->request->config_value, LAB_WORKLOAD_CONFIG);
        if ((workload->launch || workload->launches) && wish && wish->type == LAB_VALUE_STRING)
            bench->report->configuration = wish->string;
        return 0;
    }
    void *config = lab_arena_alloc(bench->arena, 1, workload->config_size);
    memcpy(config, bench->request->config, workload->config_size);
    struct lab_value *text = lab_value_string(bench->arena, tuned.config);
    if (lab_options_set_value(workload->options, config, bench->arena, LAB_WORKLOAD_CONFIG, text,
                              err) < 0)
        return -1;
    bench->config = config;
    bench->report->config = lab_tuned_freeze(bench->request->config_value, &tuned, bench->arena);
    bench->report->configuration = describe_configuration(workload, &tuned, bench->arena);
    return 0;
}

static void describe_work(struct bench *bench) {
    const struct lab_workload *workload = bench->request->workload;
    struct lab_bench_report *report = bench->report;
    struct lab_workload_cost cost;
    workload->cost(bench->config, &cost);
    report->samples = cost.samples;
    report->flops = cost.compute.flops;
    report->memory_bytes = cost.compute.bytes_read + cost.compute.bytes_written;
    report->h2d_bytes = cost.h2d_bytes;
    report->d2h_bytes = cost.d2h_bytes;
    report->parameters = cost.parameters;
    report->dtype = workload->external ? NULL : lab_dtype_name(cost.dtype);
    report->workload = workload->name;
    report->device = bench->ref;
    report->repetitions_asked = bench->request->repeat;
    struct lab_str label;
    lab_str_init(&label);
    if (workload->label)
        workload->label(bench->config, &label);
    report->label = label.length ? lab_arena_strdup(bench->arena, label.text) : workload->name;
    lab_str_release(&label);
}

/* --- one repetition --- */

static const char *keep(struct bench *bench, const char *text) {
    return text ? lab_arena_strdup(bench->arena, text) : NULL;
}

/* Once: a fresh device of the same name has the same abilities. */
static int examine_device(struct bench *bench, struct lab_device *device, struct lab_err *err) {
    struct lab_workload_cost cost;
    struct lab_device_limits limits = {0};
    struct lab_bench_report *report = bench->report;
    bench->request->workload->cost(bench->config, &cost);
    limits.how = "not measured: --no-limits";
    if (bench->request->limits) {
        lab_progress_phase(&bench->progress, "finding the device's limits");
        if (lab_device_limits(device, cost.dtype, &limits, err) < 0)
            return -1;
    }
    report->limits.flops_per_s = limits.flops_per_s;
    report->limits.memory_bytes_per_s = limits.memory_bytes_per_s;
    report->limits.h2d_bytes_per_s = limits.h2d_bytes_per_s;
    report->limits.d2h_bytes_per_s = limits.d2h_bytes_per_s;
    report->limits.how = keep(bench, limits.how);
    report->compute_units = device->info.compute_units;
    report->arithmetic = keep(bench, device->info.arithmetic);
    report->overlaps = device->info.overlaps;
    report->overlap_why_not = keep(bench, device->info.overlap_why_not);
    return 0;
}

/* Nobody but the program opens the device: what it can do at best stays unknown. */
static void describe_external(struct bench *bench) {
    struct lab_bench_report *report = bench->report;
    report->limits.how = "not measured: the program opens the device itself";
    report->overlap_why_not = "the program's copies and computations aren't seen";
    report->compute_units = bench->ref.cpus.count;
    report->verification.done = bench->request->verify;
    report->verification.text = "a program of your own: its results are not checked";
}

static int verify(struct bench *bench, void *state, struct lab_err *err) {
    struct lab_bench_report *report = bench->report;
    struct lab_verification result = {0};
    lab_progress_phase(&bench->progress, "verifying");
    uint64_t seed = lab_random_bits(bench->request->plan.seed, 1);
    if (bench->request->workload->verify(state, seed, &result, err) < 0)
        return lab_err_context(err, "verifying");
    report->verification.done = true;
    report->verification.applicable = result.applicable;
    report->verification.passed = result.passed;
    report->verification.relative_error = result.relative_error;
    report->verification.tolerance = result.tolerance;
    report->verification.elements = result.elements;
    report->verification.text = keep(bench, result.text);
    if (result.applicable && !result.passed)
        add_invalid(bench, "wrong results",
                    *result.text
                        ? result.text
                        : lab_arena_printf(bench->arena, "relative error %.1e, allowed %.0e",
                                           result.relative_error, result.tolerance));
    return 0;
}

static bool on_progress(const struct lab_measure_progress *now, void *opaque) {
    struct bench *bench = opaque;
    if (lab_interrupt_seen())
        return true;
    lab_progress_measure(&bench->progress, now);
    return false;
}

static int measure(struct bench *bench, const struct lab_device *device, void *state, int index,
                   struct lab_err *err) {
    const struct lab_bench_request *request = bench->request;
    struct lab_measure_plan plan = request->plan;
    plan.seed = lab_random_bits(request->plan.seed, 100 + (uint64_t)index);
    plan.clock = device ? device->clock : lab_clock_system();
    plan.progress = on_progress;
    plan.progress_state = bench;
    struct lab_subject subject = {"measuring", request->workload->run, state};
    struct lab_measurement *measurement = lab_arena_alloc(bench->arena, 1, sizeof *measurement);
    if (lab_measure(&plan, &subject, 1, bench->arena, measurement, err) < 0)
        return -1;
    if (measurement->count == 0)
        return 0; /* stopped before the first one */
    struct lab_bench_repetition *repetition =
        &bench->repetitions[bench->report->repetition_count++];
    repetition->measurement = measurement;
    repetition->rates = lab_bench_rates(bench->report, measurement);
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

/* After measuring: every page has been used by then, and nothing may have moved. */
static void prove(struct bench *bench, void *state) {
    struct lab_err err = LAB_ERR_INIT;
    int node = bench->report->numa_node;
    if (bench->ref.simulated)
        return;
    if (node >= 0 && lab_bind_prove_thread(bench->machine, node, &err) < 0)
        add_invalid(bench, "the host thread left its node", err.text);
    const struct lab_workload *workload = bench->request->workload;
    if (workload->prove_placement && workload->prove_placement(state, &err) < 0)
        add_invalid(bench, "memory isn't where it was asked for", err.text);
}

static void on_metric(void *state, const char *name, const char *unit, double value,
                      int64_t time_ns) {
    (void)time_ns;
    struct bench *bench = state;
    int *count = &bench->report->metric_count, i = 0;
    while (i < *count && !lab_str_equal(bench->metrics[i].name, name))
        i++;
    if (i == METRICS_MOST)
        return;
    if (i == *count) {
        bench->metrics[i] = (struct lab_bench_metric){keep(bench, name), keep(bench, unit), value};
        *count += 1;
    }
    bench->metrics[i].value = value;
}

/* The program is in a group of its own, and a second Ctrl-C must not leave it behind. */
static bool ends_at_once(void *state) {
    (void)state;
    return lab_interrupt_seen_twice();
}

static int use_external(struct bench *bench, void *state, int index, struct lab_err *err) {
    describe_external(bench);
    bench->progress.drawn_ns = 0;
    if (lab_interrupt_seen())
        return 0;
    lab_interrupt_hold(true);
    int result = measure(bench, NULL, state, index, err);
    lab_interrupt_hold(false);
    if (result == 0)
        prove(bench, state);
    return result;
}

static int use_workload(struct bench *bench, struct lab_device *device, void *state, int index,
                        struct lab_err *err) {
    if (index == 0 && !lab_interrupt_seen()) {
        if (examine_device(bench, device, err) < 0)
            return -1;
        if (bench->request->verify && !lab_interrupt_seen() && verify(bench, state, err) < 0)
            return -1;
    }
    if (lab_interrupt_seen())
        return 0;
    bench->progress.drawn_ns = 0;
    struct lab_op_time before[LAB_OP_COUNT], after[LAB_OP_COUNT];
    lab_device_op_times(device, before);
    if (measure(bench, device, state, index, err) < 0)
        return -1;
    lab_device_op_times(device, after);
    count_operations(bench, before, after);
    prove(bench, state);
    return 0;
}

static void on_warning(void *state, const char *text) {
    struct bench *bench = state;
    bench->warning = keep(bench, text);
}

static int run_repetition(struct bench *bench, int index, struct lab_err *err) {
    const struct lab_bench_request *request = bench->request;
    const struct lab_workload *workload = request->workload;
    struct lab_device_setup setup =
        workload->setup ? workload->setup(bench->config) : LAB_DEVICE_SETUP;
    setup.host_node = bench->report->numa_node;
    setup.seed = lab_random_bits(request->plan.seed, 200 + (uint64_t)index);
    bench->progress.run = index + 1;
    lab_workload_set_environment(workload, bench->config, bench->arena);
    lab_progress_phase(&bench->progress, "opening");
    struct lab_device *device = NULL;
    if (!workload->external &&
        lab_device_open(bench->machine, &bench->ref, setup, &device, err) < 0)
        return -1;
    const struct lab_sink sink = {
        .metric = on_metric, .stopped = ends_at_once, .state = bench, .warning = on_warning};
    struct lab_rank rank = {.device = device,
                            .sink = &sink,
                            .ref = &bench->ref,
                            .numa_node = bench->report->numa_node,
                            .count = 1,
                            .seed = request->plan.seed};
    void *state;
    int result = workload->open(bench->config, &rank, &state, err);
    if (result == 0) {
        result = workload->external ? use_external(bench, state, index, err)
                                    : use_workload(bench, device, state, index, err);
        workload->close(state);
    }
    lab_device_close(device);
    return result;
}

static int run_repetitions(struct bench *bench, struct lab_err *err) {
    for (int i = 0; i < bench->request->repeat && !lab_interrupt_seen(); i++)
        if (run_repetition(bench, i, err) < 0)
            return lab_err_context(err, "%s on %s", bench->report->label, bench->ref.name);
    bench->report->interrupted = lab_interrupt_seen();
    if (bench->report->repetition_count == 0)
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped before anything was measured");
    return 0;
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
    struct lab_str text;
    lab_str_init(&text);
    lab_measure_explain(first, warning, &text);
    if (bench->report->repetition_count > 1)
        lab_str_printf(&text, " (in %d of %d runs)", count, bench->report->repetition_count);
    const char *kept = keep(bench, text.text);
    lab_str_release(&text);
    return kept;
}

static int longest_first(const void *a, const void *b) {
    double x = ((const struct lab_bench_operation *)a)->time_s;
    double y = ((const struct lab_bench_operation *)b)->time_s;
    return (x < y) - (x > y);
}

static void collect_operations(struct bench *bench) {
    struct lab_bench_operation *list = lab_arena_alloc(bench->arena, LAB_OP_COUNT, sizeof *list);
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
    qsort(list, (size_t)count, sizeof *list, longest_first);
    bench->report->operations = list;
    bench->report->operation_count = bench->request->profile ? count : -1;
}

static void collect_metrics(struct bench *bench) {
    size_t count = (size_t)bench->report->metric_count;
    struct lab_bench_metric *list = lab_arena_alloc(bench->arena, count + 1, sizeof *list);
    memcpy(list, bench->metrics, count * sizeof *list);
    bench->report->metrics = list;
}

#define WARNING_BITS 16

static void collect_warnings(struct bench *bench) {
    const char **list = lab_arena_alloc(bench->arena, WARNING_BITS + 6, sizeof *list);
    int count = 0;
    if (bench->note)
        list[count++] = bench->note;
    if (bench->warning)
        list[count++] = bench->warning;
    if (bench->report->interrupted)
        list[count++] = "stopped by the user: these are the figures so far";
    if (!bench->request->verify)
        list[count++] = "the results were not verified (--no-verify)";
    for (int bit = 0; bit < WARNING_BITS; bit++) {
        const char *text = explain(bench, (enum lab_measure_warning)(1 << bit));
        if (text)
            list[count++] = text;
    }
    bench->report->warnings = list;
}

int lab_bench_run(const struct lab_bench_request *request, struct lab_arena *arena,
                  struct lab_bench_report *ret_report, int *ret_selected, struct lab_err *err) {
    *ret_report = (struct lab_bench_report){0};
    struct bench bench = {
        .request = request,
        .report = ret_report,
        .arena = arena,
        .progress = request->progress,
        .repetitions =
            lab_arena_alloc(arena, (size_t)request->repeat, sizeof(struct lab_bench_repetition)),
        .invalid = lab_arena_alloc(arena, 3 * (size_t)request->repeat + 2, sizeof(char *)),
    };
    bench.progress.run_count = request->repeat;
    ret_report->repetitions = bench.repetitions;
    ret_report->invalid = bench.invalid;
    if (lab_machine_open(NULL, &bench.machine, err) < 0)
        return -1;
    lab_interrupt_watch(request->progress.shown ? STOPPING : NULL);
    int result = choose_device(&bench, ret_selected, err);
    if (result == 0)
        result = choose_node(&bench, err);
    if (result == 0)
        result = choose_configuration(&bench, err);
    if (result == 0 && bench.takes_all)
        result = name_devices(&bench, err);
    if (result == 0) {
        describe_work(&bench);
        bench.progress.label = ret_report->label;
        result = run_repetitions(&bench, err);
    }
    if (result == 0) {
        collect_warnings(&bench);
        collect_operations(&bench);
        collect_metrics(&bench);
    }
    lab_progress_clear(&bench.progress);
    lab_machine_close(bench.machine);
    return result;
}
