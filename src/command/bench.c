/*
 * bench.c: `gpulab bench WORKLOAD`: one workload, now. The command reads the line; what is done
 * with it lies in session/bench_run.c, and how it is shown in the report layer.
 */
#include "command/command.h"

#include "machine/machine.h"
#include "report/report.h"
#include "session/bench_run.h"
#include "tune/tuned.h"
#include "worker/guard.h"
#include "workload/workload.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* All of them are kept, at about 150 bytes each with what is computed from them. */
#define ITERATIONS_MOST 10000000

struct bench_config {
    int64_t repeat, node, iterations, warmup, seed;
    double precision, limit_s;
    bool verify, limits, profile;
};

static const struct lab_option bench_options[] = {
    {"repeat", LAB_OPTION_INT, offsetof(struct bench_config, repeat), .fallback = "1", .min = 1,
     .max = 1000, .letter = 'r', .value_name = "N",
     .help = "number of independent runs; the interval is then the one across runs"},
    {"node", LAB_OPTION_INT, offsetof(struct bench_config, node), .fallback = "-1", .min = -1,
     .max = 1 << 20, .letter = 'n', .value_name = "N",
     .help = "NUMA node of the host thread and host memory; -1 is the device's own"},
    {"precision", LAB_OPTION_FLOAT, offsetof(struct bench_config, precision), .fallback = "0.01",
     .min = 0.0001, .max = 0.5, .letter = 'p', .value_name = "P",
     .help = "stop when the median's interval is within this share of it on either side"},
    {"limit", LAB_OPTION_DURATION, offsetof(struct bench_config, limit_s), .fallback = "15s",
     .min = 0.01, .max = 86400, .letter = 'l', .value_name = "TIME",
     .help = "longest time of one run, warm-up included; where the count is fixed, only the "
             "warm-up's share, a third, is limited"},
    {"iterations", LAB_OPTION_INT, offsetof(struct bench_config, iterations), .fallback = "0",
     .min = 0, .max = ITERATIONS_MOST, .value_name = "N",
     .help = "measure exactly n, however long it takes; 0 is until precise"},
    {"warmup", LAB_OPTION_INT, offsetof(struct bench_config, warmup), .fallback = "-1", .min = -1,
     .max = 1e9, .letter = 'w', .value_name = "N",
     .help = "drop exactly n iterations first; -1 is until steady"},
    {"verify", LAB_OPTION_FLAG, offsetof(struct bench_config, verify), .fallback = "true",
     .help = "check the results against double precision before measuring"},
    {"limits", LAB_OPTION_FLAG, offsetof(struct bench_config, limits), .fallback = "true",
     .help = "first measure what the device reaches at best, to compare with"},
    {"profile", LAB_OPTION_FLAG, offsetof(struct bench_config, profile),
     .help = "show what operations the device's time went to"},
    {"seed", LAB_OPTION_INT, offsetof(struct bench_config, seed), .fallback = "42", .min = 0,
     .max = 0x1p53, .value_name = "N", .help = "of all random data"},
    {NULL},
};

/* --- the workload's keys, and those that bench adds for workloads that count samples --- */

struct sample_config {
    int64_t num_samples, warmup_samples;
};

static const struct lab_option sample_keys[] = {
    {"num_samples", LAB_OPTION_INT, offsetof(struct sample_config, num_samples), .fallback = "0",
     .min = 0, .max = 1e12,
     .help = "measure exactly n samples, rounded up to whole batches; 0 is until precise"},
    {"warmup_samples", LAB_OPTION_INT, offsetof(struct sample_config, warmup_samples),
     .fallback = "-1", .min = -1, .max = 1e12,
     .help = "drop exactly n samples first; -1 is until steady"},
};

#define SAMPLE_KEY_COUNT (sizeof sample_keys / sizeof *sample_keys)

struct keys { /* one struct holds both configs, the added one behind the workload's */
    const struct lab_option *table;
    char *config;
    const struct sample_config *samples;
};

static struct keys make_keys(const struct lab_workload *workload, struct lab_arena *arena) {
    size_t base = (workload->config_size + 15) / 16 * 16, count = 0;
    while (workload->options && workload->options[count].name)
        count++;
    struct lab_option *table = lab_arena_alloc(arena, count + SAMPLE_KEY_COUNT + 1, sizeof *table);
    if (count)
        memcpy(table, workload->options, count * sizeof *table);
    struct keys keys = {.table = table,
                        .config = lab_arena_alloc(arena, base + sizeof(struct sample_config), 1)};
    keys.samples = (const struct sample_config *)(const void *)(keys.config + base);
    struct lab_workload_cost cost = {0};
    workload->cost(lab_workload_config(workload, arena), &cost);
    for (size_t i = 0; i < SAMPLE_KEY_COUNT && cost.samples > 0; i++) {
        if (lab_options_find(workload->options, sample_keys[i].name))
            continue;
        table[count] = sample_keys[i];
        table[count++].offset += base;
    }
    lab_options_defaults(table, keys.config, arena);
    if (cost.samples <= 0)
        ((struct sample_config *)(void *)(keys.config + base))->warmup_samples = -1;
    return keys;
}

/* --- a request out of the command line --- */

static int64_t batches(int64_t samples, double batch) {
    return (int64_t)ceil((double)samples / batch);
}

static int set_counts(const struct bench_config *config, const struct keys *keys, double batch,
                      struct lab_measure_plan *plan, struct lab_err *err) {
    plan->iterations = config->iterations;
    plan->warmup_iterations = config->warmup;
    if (keys->samples->num_samples > 0) {
        if (config->iterations > 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "num_samples and --iterations say the same: give one of them");
        plan->iterations = batches(keys->samples->num_samples, batch);
        if (plan->iterations > ITERATIONS_MOST)
            return lab_err_set(err, LAB_ERR_USER,
                               "num_samples=%lld: that is %lld batches, more than the %d that one "
                               "run keeps: use a larger batch_size or fewer samples",
                               (long long)keys->samples->num_samples, (long long)plan->iterations,
                               ITERATIONS_MOST);
    }
    if (keys->samples->warmup_samples >= 0) {
        if (config->warmup >= 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "warmup_samples and --warmup say the same: give one of them");
        plan->warmup_iterations = batches(keys->samples->warmup_samples, batch);
    }
    return 0;
}

static int make_request(const struct lab_command_call *call, struct lab_session *session,
                        struct lab_bench_request *ret_request, struct lab_err *err) {
    const struct bench_config *config = call->config;
    const struct lab_workload *workload = lab_workload_find(call->words[0], err);
    if (!workload)
        return -1;
    struct keys keys = make_keys(workload, call->arena);
    for (int i = 1; i < call->word_count; i++)
        if (lab_options_set_word(keys.table, keys.config, call->arena, call->words[i], err) < 0)
            return lab_err_context(err, "bench %s", workload->name);
    if (workload->check && workload->check(keys.config, err) < 0)
        return lab_err_context(err, "bench %s", workload->name);
    struct lab_workload_cost cost;
    workload->cost(keys.config, &cost);
    session->workload = workload;
    session->config = keys.config;
    *ret_request = (struct lab_bench_request){
        .config_value = lab_options_to_map(keys.table, keys.config, call->arena),
        .selector = call->shared->device,
        .numa_node = (int)config->node,
        .repeat = (int)config->repeat,
        .verify = config->verify,
        .limits = config->limits,
        .profile = config->profile,
        .plan = LAB_MEASURE_PLAN,
    };
    ret_request->plan.precision = config->precision;
    ret_request->plan.limit_s = config->limit_s;
    ret_request->plan.seed = (uint64_t)config->seed;
    return set_counts(config, &keys, cost.samples, &ret_request->plan, err);
}

/* What config=tuned means depends on the device. */
static int bench_chosen(struct lab_session *session, struct lab_bench_request *request,
                        struct lab_bench_report *ret_report, int *ret_selected,
                        struct lab_err *err) {
    struct lab_tuned_config tuned;
    const struct lab_tunable_place place = {session->machine, &session->ref};
    if (lab_session_choose(session, request->selector, err) < 0 ||
        lab_tuned_resolve(session->workload, session->config, request->config_value, &place,
                          session->arena, &tuned, err) < 0)
        return -1;
    session->config = tuned.config;
    request->config_value = tuned.value;
    request->configuration = tuned.text;
    request->note = tuned.note;
    return lab_bench_run(session, request, ret_report, ret_selected, err);
}

static int bench_here(struct lab_session *session, struct lab_bench_request *request,
                      struct lab_bench_report *ret_report, int *ret_selected, struct lab_err *err) {
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    session->machine = machine;
    int result = bench_chosen(session, request, ret_report, ret_selected, err);
    lab_session_release(session);
    lab_machine_close(machine);
    return result;
}

static int bench_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    if (call->word_count == 0) {
        lab_command_print_topics(call, (const char *const[]){"workloads", "workload", "help"},
                                 lab_command_workloads(false, call->arena), 0,
                                 "'gpulab help bench WORKLOAD' shows its keys; 'gpulab bench "
                                 "WORKLOAD' runs it.");
        return 0;
    }
    struct lab_session session = {.arena = call->arena};
    struct lab_bench_request request;
    if (make_request(call, &session, &request, err) < 0)
        return -1;
    if (session.workload->external && lab_guard_begin(err) < 0)
        return -1;
    struct lab_style style = lab_console_style(call->console->err_is_terminal, STDERR_FILENO);
    request.progress = (struct lab_progress){.shown = lab_console_draws(call->console),
                                             .columns = style.columns,
                                             .unicode = style.unicode};
    struct lab_bench_report report;
    int selected = 0;
    if (bench_here(&session, &request, &report, &selected, err) < 0)
        return -1;
    lab_command_note_devices(call, selected, report.device.name);
    struct lab_doc *doc = lab_doc_open(report.label, call->arena);
    lab_report_add_bench(doc, &report);
    lab_doc_print(doc, call->console);
    *ret_status = report.interrupted  ? lab_err_exit_status(LAB_ERR_INTERRUPTED)
                  : report.invalid[0] ? lab_err_exit_status(LAB_ERR_WRONG)
                                      : 0;
    return 0;
}

/* --- manual --- */

static const char *const *bench_complete(struct lab_arena *arena) {
    return lab_command_topic_names(lab_command_workloads(false, arena), arena);
}

static const struct lab_option *bench_word_keys(const char *word, struct lab_arena *arena) {
    const struct lab_workload *workload = lab_workload_find(word, NULL);
    return workload ? make_keys(workload, arena).table : NULL;
}

static struct lab_manual_section workload_section(const struct lab_workload *workload,
                                                  struct lab_arena *arena) {
    const char *title = lab_arena_printf(arena, "Workload %s", workload->name);
    const char *text = workload->description ? lab_arena_printf(arena, "%s.\n\n%s", workload->help,
                                                                workload->description)
                                             : lab_arena_printf(arena, "%s.", workload->help);
    return (struct lab_manual_section){title, text, make_keys(workload, arena).table};
}

static const struct lab_manual_section *bench_sections(struct lab_arena *arena, const char *word,
                                                       struct lab_err *err) {
    if (!word)
        return lab_command_topic_section("Workloads", lab_command_workloads(false, arena),
                                         "'gpulab help bench WORKLOAD' shows the keys of one.",
                                         arena);
    bool every = lab_str_equal(word, LAB_COMMAND_ALL_WORDS);
    const struct lab_workload *one = every ? NULL : lab_workload_find(word, err);
    int count = 0;
    while (lab_workloads[count])
        count++;
    struct lab_manual_section *all = lab_arena_alloc(arena, (size_t)count + 1, sizeof *all);
    for (int i = 0; every && i < count; i++)
        all[i] = workload_section(lab_workloads[i], arena);
    if (one)
        all[0] = workload_section(one, arena);
    return every || one ? all : NULL;
}

static const struct lab_manual_example examples[] = {
    {"gpulab bench vit depth=4 dim=512 patch_size=32", "a ViT pipeline on the best device here"},
    {"gpulab bench gemm m=2048 n=2048 k=2048 --device cpu:0/2 --repeat 5",
     "five runs on half of NUMA node 0's cores"},
    {"gpulab bench memcpy direction=both --node 1 --json",
     "copies from NUMA node 1's memory, for a program to read"},
    {NULL},
};

const struct lab_command lab_command_bench = {
    .name = "bench",
    .summary = "run one workload now and report its throughput",
    .usage = "[WORKLOAD [key=value...]]",
    .description =
        "Binds to the NUMA node, checks the workload's results against double precision and warms "
        "up until the times are steady. Then it measures until the median is known precisely or "
        "the limit is reached. Without arguments it lists the workloads.\n"
        "\n"
        "While a study, a tuning or another bench measures on the device, it says which one and "
        "waits for it; Ctrl-C ends that.\n"
        "\n"
        "A program of yours (bench command) and all that it started end with the bench, however "
        "that ends. Ctrl-C lets the program finish; a second one ends it.\n"
        "\n"
        "Iterations of one run depend on each other, so the interval of a single run says little "
        "about the next one. To compare two values, use --repeat 5 or more.",
    .options = bench_options,
    .config_size = sizeof(struct bench_config),
    .uses_device = true,
    .max_words = -1,
    .examples = examples,
    .sections = bench_sections,
    .complete = bench_complete,
    .word_keys = bench_word_keys,
    .run = bench_run,
};
