/* turn_process.c: see the header. */
#include "command/compare/turn_process.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "base/tty/stop.h"
#include "machine/machine.h"
#include "machine/machine_json.h"
#include "probe/sampler.h"
#include "worker/guard.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define INTERVAL_NS (100 * LAB_NS_PER_MS)
#define GPUS_MOST   64
#define WORDS_BYTES 240 /* of a program's last line */

struct tick {
    int64_t time_ns;
    struct lab_turn_gpu gpu;
};

struct process {
    const struct lab_command_call *call;
    const struct lab_turn_options *options;
    const struct lab_turns *turns;
    struct lab_machine *machine;
    struct lab_sampler *sampler; /* NULL = there is no GPU to watch */
    struct lab_entity entities[GPUS_MOST];
    struct tick *ticks;
    int tick_count;
    int64_t start_ns;
    int done;
    char last[WORDS_BYTES];
    size_t last_length;
};

/* --- GPUs --- */

static void on_entity(void *opaque, int number, const struct lab_entity *entity) {
    struct process *process = opaque;
    if (number < GPUS_MOST && entity->kind == LAB_ENTITY_GPU)
        process->entities[number] = lab_entity_copy(entity, process->call->arena);
}

static void on_tick(void *opaque, const struct lab_tick *tick) {
    struct process *process = opaque;
    if (tick->entity < 0 || tick->entity >= GPUS_MOST || !process->entities[tick->entity].columns)
        return;
    const struct lab_entity *entity = &process->entities[tick->entity];
    bool averaged = lab_entity_column(entity, LAB_METRIC_POWER, -1) >= 0;
    LAB_PUSH(process->ticks, process->tick_count) = (struct tick){
        tick->time_ns,
        {entity->index, lab_tick_value(entity, tick, LAB_METRIC_SM_CLOCK, -1),
         lab_tick_value(entity, tick, averaged ? LAB_METRIC_POWER : LAB_METRIC_POWER_INSTANT, -1),
         lab_tick_value(entity, tick, LAB_METRIC_TEMPERATURE, -1)}};
}

static void on_event(void *opaque, const struct lab_sample_event *event) {
    (void)opaque, (void)event;
}

static void on_processes(void *opaque, const struct lab_process_list *list) {
    (void)opaque, (void)list;
}

static void take_ticks(struct process *process) {
    struct lab_sink_samples sink = {on_entity, on_tick, on_event, on_processes, process};
    if (process->sampler)
        lab_sampler_take(process->sampler, &sink);
}

/* No GPU is no failure: then times are all there is. */
static int watch_gpus(struct process *process, struct lab_err *err) {
    static const char *const probes[] = {"nvml", NULL};
    if (lab_machine_open(NULL, &process->machine, err) < 0)
        return -1;
    struct lab_sampler_config config = {.setup = {.machine = process->machine,
                                                  .clock = lab_clock_system(),
                                                  .interval_ns = INTERVAL_NS,
                                                  .root = ""},
                                        .probes = probes};
    if (lab_sampler_open(&config, &process->sampler, NULL) < 0)
        process->sampler = NULL;
    return 0;
}

struct sums {
    double sum[3];
    int count[3];
};

static void add_tick(struct sums *sums, const struct tick *tick) {
    const double values[3] = {tick->gpu.sm_clock_mhz, tick->gpu.power_w, tick->gpu.temperature_c};
    for (int i = 0; i < 3; i++)
        if (!isnan(values[i])) {
            sums->sum[i] += values[i];
            sums->count[i]++;
        }
}

/* Of the ticks within the run; of a run between two ticks, the next one. */
static bool mean_of(const struct process *process, const struct lab_turn *turn, int gpu,
                    struct lab_turn_gpu *ret_gpu) {
    struct sums sums = {{0}, {0}};
    double means[3];
    for (int i = 0; i < process->tick_count; i++) {
        const struct tick *tick = &process->ticks[i];
        if (tick->gpu.index != gpu || tick->time_ns < turn->start_ns)
            continue;
        if (tick->time_ns > turn->end_ns && sums.count[0] + sums.count[1] + sums.count[2] > 0)
            break;
        add_tick(&sums, tick);
    }
    for (int i = 0; i < 3; i++)
        means[i] = sums.count[i] ? sums.sum[i] / sums.count[i] : (double)NAN;
    *ret_gpu = (struct lab_turn_gpu){gpu, means[0], means[1], means[2]};
    return sums.count[0] + sums.count[1] + sums.count[2] > 0;
}

static void fill_gpus(const struct process *process, struct lab_turns *turns) {
    for (int t = 0; t < turns->count; t++) {
        struct lab_turn *turn = &turns->items[t];
        turn->gpus = lab_arena_alloc(process->call->arena, GPUS_MOST, sizeof *turn->gpus);
        for (int e = 0; e < GPUS_MOST && process->tick_count; e++)
            if (process->entities[e].columns)
                turn->gpu_count += mean_of(process, turn, process->entities[e].index,
                                           &turn->gpus[turn->gpu_count]);
    }
}

/* --- a process --- */

static void on_output(void *opaque, bool is_stderr, const char *bytes, size_t length) {
    struct process *process = opaque;
    (void)is_stderr;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n' && i + 1 < length)
            process->last_length = 0;
        else if (bytes[i] >= ' ' && process->last_length < WORDS_BYTES - 1)
            process->last[process->last_length++] = bytes[i];
    }
}

static bool on_stopped(void *opaque) {
    take_ticks(opaque);
    return lab_stop_level() > 0;
}

static double elapsed_s(void *opaque) {
    const struct process *process = opaque;
    return 1e-9 * (double)(lab_clock_now(lab_clock_system()) - process->start_ns);
}

static void draw(struct process *process) {
    const struct lab_turn_options *options = process->options;
    int counted = process->done - 2 * (int)options->warmup;
    if (!lab_console_draws(process->call->console))
        return;
    LAB_AUTO(str, line);
    if (counted < 0)
        lab_str_add(&line, "compare: warm-up");
    else if (options->runs > 0)
        lab_str_printf(&line, "compare: %d of %lld runs", counted,
                       ((long long)options->runs + 1) / 2 * 4); /* whole A B B A */
    else
        lab_str_printf(&line, "compare: %d runs, %.0f of at most %.0f s", counted,
                       elapsed_s(process), options->budget_s);
    lab_console_status_line(line.text);
}

static int judge(const struct process *process, int side,
                 const struct lab_subprocess_result *result, struct lab_err *err) {
    const char *words = process->last_length ? process->last : "no output";
    if (result->exit_status == 0)
        return 0;
    const char *name = process->turns->argv[side][0];
    if (result->signal)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s was ended by signal %d: %s", name,
                           result->signal, words);
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s ended with status %d: %s", name,
                       result->exit_status, words);
}

static int run_process(void *opaque, int side, struct lab_turn *ret_turn, struct lab_err *err) {
    struct process *process = opaque;
    const struct lab_subprocess_watcher watcher = {NULL, on_output, on_stopped, process};
    const struct lab_subprocess_spec spec = {.argv = process->turns->argv[side],
                                             .watcher = &watcher};
    struct lab_subprocess_result result;
    LAB_AUTO(arena, scratch);
    draw(process);
    process->last_length = 0;
    memset(process->last, 0, sizeof process->last);
    if (lab_subprocess_run(&spec, &scratch, &result, err) < 0)
        return -1;
    take_ticks(process);
    process->done++;
    if (result.stopped || lab_stop_level() > 0)
        return 1;
    ret_turn->start_ns = result.start_ns;
    ret_turn->end_ns = result.start_ns + result.duration_ns;
    return judge(process, side, &result, err);
}

/* --- all of them --- */

/* The words before the second "--" and behind it. */
static int split_commands(const struct lab_command_call *call, const char *const *ret_argv[2],
                          struct lab_err *err) {
    const char **words;
    int count = 0, at = -1, signs = 0;
    while (call->rest[count])
        count++;
    words = lab_arena_copy(call->arena, call->rest, (size_t)count + 1, sizeof *words);
    for (int i = 0; i < count; i++)
        if (lab_str_equal(words[i], "--")) {
            signs++;
            at = i;
        }
    if (signs > 1)
        return lab_err_set(err, LAB_ERR_USER,
                           "two commands are compared: put one with '--' in it into sh -c '...'");
    if (at <= 0 || at + 1 >= count)
        return lab_err_set(err, LAB_ERR_USER,
                           "two commands are needed: gpulab compare -- COMMAND -- COMMAND");
    words[at] = NULL;
    ret_argv[0] = words;
    ret_argv[1] = words + at + 1;
    return 0;
}

int lab_turn_process_run(const struct lab_command_call *call,
                         const struct lab_turn_options *options, struct lab_turns *ret_turns,
                         struct lab_err *err) {
    struct process *process = lab_arena_alloc(call->arena, 1, sizeof *process);
    *process = (struct process){.call = call, .options = options, .turns = ret_turns};
    *ret_turns = (struct lab_turns){.warmup = options->warmup,
                                    .runs = options->runs,
                                    .budget_s = options->budget_s,
                                    .run = run_process,
                                    .elapsed_s = elapsed_s,
                                    .state = process};
    if (split_commands(call, ret_turns->argv, err) < 0 || lab_guard_begin(err) < 0)
        return -1;
    int result = watch_gpus(process, err);
    process->start_ns = lab_clock_now(lab_clock_system());
    lab_stop_watch(NULL, NULL);
    if (result == 0) {
        ret_turns->machine = lab_machine_json_value(process->machine, call->arena);
        ret_turns->machine_identity = lab_machine_identity(process->machine);
        result = lab_turns_run(ret_turns, err);
    }
    lab_console_status_line(NULL);
    take_ticks(process);
    fill_gpus(process, ret_turns);
    lab_sampler_close(process->sampler);
    if (process->machine)
        lab_machine_close(process->machine);
    lab_mem_free(process->ticks);
    return result;
}

/* --- what it came to --- */

static struct lab_turn_gpu mean_over(const struct lab_turns *turns, int side, int gpu) {
    struct sums sums = {{0}, {0}};
    double means[3];
    for (int t = 0; t < turns->count; t++)
        for (int g = 0; turns->items[t].side == side && g < turns->items[t].gpu_count; g++)
            if (turns->items[t].gpus[g].index == gpu)
                add_tick(&sums, &(struct tick){0, turns->items[t].gpus[g]});
    for (int i = 0; i < 3; i++)
        means[i] = sums.count[i] ? sums.sum[i] / sums.count[i] : (double)NAN;
    return (struct lab_turn_gpu){gpu, means[0], means[1], means[2]};
}

static void add_gpus(struct lab_doc *doc, const struct lab_turns *turns) {
    static const struct lab_doc_column columns[] = {
        {NULL, "GPU", LAB_UNIT_COUNT},           {NULL, "Run of", LAB_UNIT_TEXT},
        {NULL, "SM clock, MHz", LAB_UNIT_COUNT}, {NULL, "Power", LAB_UNIT_WATTS},
        {NULL, "Temperature", LAB_UNIT_CELSIUS},
    };
    if (turns->count == 0 || turns->items[0].gpu_count == 0)
        return;
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int g = 0; g < turns->items[0].gpu_count; g++)
        for (int side = 0; side < 2; side++) {
            struct lab_turn_gpu mean = mean_over(turns, side, turns->items[0].gpus[g].index);
            lab_doc_figure(doc, mean.index);
            lab_doc_cell(doc, "%c", 'A' + side);
            lab_doc_figure(doc, round(mean.sm_clock_mhz));
            lab_doc_figure(doc, mean.power_w);
            lab_doc_figure(doc, mean.temperature_c);
        }
}

void lab_turn_process_add(struct lab_doc *doc, const struct lab_turns *turns) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *list = lab_value_list(arena);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    add_gpus(doc, turns);
    lab_doc_only(doc, LAB_DOC_ALL);
    for (int t = 0; t < turns->count; t++) {
        const struct lab_turn *turn = &turns->items[t];
        struct lab_value *map = lab_value_map(arena), *gpus = lab_value_list(arena);
        for (int g = 0; g < turn->gpu_count; g++) {
            struct lab_value *gpu = lab_value_map(arena);
            lab_value_set_int(arena, gpu, "gpu", turn->gpus[g].index);
            lab_value_set_float(arena, gpu, "sm_clock_mhz", turn->gpus[g].sm_clock_mhz);
            lab_value_set_float(arena, gpu, "power_w", turn->gpus[g].power_w);
            lab_value_set_float(arena, gpu, "temperature_c", turn->gpus[g].temperature_c);
            lab_value_append(arena, gpus, gpu);
        }
        lab_value_set_string(arena, map, "command", turn->side ? "B" : "A");
        lab_value_set_int(arena, map, "pair", turn->pair);
        lab_value_set_float(arena, map, "time_s", 1e-9 * (double)(turn->end_ns - turn->start_ns));
        lab_value_set(arena, map, "gpus", gpus);
        lab_value_append(arena, list, map);
    }
    lab_doc_data(doc, "runs", list);
}
