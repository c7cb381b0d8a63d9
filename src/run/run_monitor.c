/*
 * run_monitor.c: the sampler and the recorder of a study, and what they saw of a run. Figures are
 * read back from the database, so that what a run's result says can be found again in the samples
 * beside it.
 */
#include "run/run_monitor_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "probe/sampler.h"
#include "store/recording/recording.h"

#include <math.h>
#include <string.h>

#define INTERVAL_GPU_NS  (100 * LAB_NS_PER_MS)
#define INTERVAL_HOST_NS (500 * LAB_NS_PER_MS)
/* who was on a GPU before a run: lists come each second */
#define BEFORE_NS         (3 * LAB_NS_PER_S)
#define LONG_NS           (3 * INTERVAL_GPU_NS) /* so long without a reading is no accident */
#define WARMER_C          3    /* than before the first run: as cool as it gets between runs */
#define HELD_BACK_SHARE   0.05 /* of the measured time: less is no reason to drop a run */
#define HELD_BACK_LEAST_S 0.2  /* two readings: a single one may be a moment's */

struct gpu {         /* an entity, if it is one */
    int64_t last_ns; /* of its ticks */
    bool is_gpu, away;
    int index, memory_column;
    int column_count;            /* 0 = it wasn't told */
    int64_t before_kib, now_kib; /* memory in use at first, and now; -1 = unknown */
    int temperature_column, reasons_column;
    int64_t before_c, now_c; /* temperature likewise, as stored; INT64_MIN = unknown */
    uint64_t held;           /* reasons that hold its clocks back */
};

struct lab_run_monitor {
    struct lab_sampler *sampler;
    struct lab_recorder *recorder;
    struct lab_store *store;
    struct lab_sink_samples inner, sink; /* the recorder's; ours around it */
    struct gpu *gpus;                    /* by entity */
    int gpu_count;
    int64_t edge_ns, list_ns; /* of the last edge and the last list of processes */
    bool lists;               /* there are such lists */
    struct monitor_processes processes;
    bool complained;
};

/* --- what comes by --- */

static void on_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_run_monitor *monitor = state;
    while (monitor->gpu_count <= number) {
        LAB_PUSH(monitor->gpus, monitor->gpu_count) = (struct gpu){
            .before_kib = -1, .now_kib = -1, .before_c = INT64_MIN, .now_c = INT64_MIN};
    }
    monitor->gpus[number].column_count = entity->column_count;
    monitor->gpus[number].is_gpu = entity->kind == LAB_ENTITY_GPU;
    monitor->gpus[number].index = entity->index;
    monitor->gpus[number].memory_column = lab_entity_column(entity, LAB_METRIC_MEMORY_USED, -1);
    monitor->gpus[number].temperature_column =
        lab_entity_column(entity, LAB_METRIC_TEMPERATURE, -1);
    monitor->gpus[number].reasons_column = lab_entity_column(entity, LAB_METRIC_CLOCK_REASONS, -1);
    monitor->inner.entity(monitor->inner.state, number, entity);
}

static void note_heat(struct gpu *gpu, const struct lab_tick *tick) {
    int heat = gpu->temperature_column, reasons = gpu->reasons_column;
    if (!gpu->is_gpu)
        return;
    if (heat >= 0 && lab_valid_get(tick->valid, heat)) {
        gpu->now_c = tick->values[heat];
        gpu->before_c = gpu->before_c == INT64_MIN ? gpu->now_c : gpu->before_c;
    }
    if (reasons < 0 || !lab_valid_get(tick->valid, reasons))
        return;
    gpu->held = lab_clock_harmful((uint64_t)tick->values[reasons]);
}

static void on_tick(void *state, const struct lab_tick *tick) {
    struct lab_run_monitor *monitor = state;
    struct gpu *gpu = &monitor->gpus[tick->entity];
    gpu->last_ns = tick->time_ns;
    if (gpu->is_gpu && gpu->memory_column >= 0 && lab_valid_get(tick->valid, gpu->memory_column)) {
        gpu->now_kib = tick->values[gpu->memory_column];
        gpu->before_kib = gpu->before_kib < 0 ? gpu->now_kib : gpu->before_kib;
    }
    note_heat(gpu, tick);
    monitor->inner.tick(monitor->inner.state, tick);
}

static void on_event(void *state, const struct lab_sample_event *event) {
    struct lab_run_monitor *monitor = state;
    if (event->entity >= 0 && (event->kind == LAB_EVENT_GAP || event->kind == LAB_EVENT_BACK))
        monitor->gpus[event->entity].away = event->kind == LAB_EVENT_GAP;
    monitor->inner.event(monitor->inner.state, event);
}

static void on_processes(void *state, const struct lab_process_list *list) {
    struct lab_run_monitor *monitor = state;
    monitor->list_ns = list->time_ns;
    monitor_processes_note(&monitor->processes, list);
    monitor->inner.processes(monitor->inner.state, list);
}

/* --- life --- */

int lab_run_monitor_open(const struct lab_run_monitor_spec *spec,
                         struct lab_run_monitor **ret_watch, struct lab_err *err) {
    struct lab_run_monitor *monitor = lab_mem_alloc(1, sizeof *monitor);
    struct lab_sampler_config config = {
        .setup = {.machine = spec->machine,
                  .clock = lab_clock_system(),
                  .interval_ns = spec->gpus ? INTERVAL_GPU_NS : INTERVAL_HOST_NS,
                  .gpm_ns = INTERVAL_GPU_NS,
                  .root = ""},
        .cpus = spec->cpus};
    struct lab_recorder_setup setup = {.interval_ns = config.setup.interval_ns, .note = ""};
    monitor->store = spec->store;
    if (lab_recorder_attach(spec->store, &setup, &monitor->recorder, err) < 0 ||
        (!spec->simulated && lab_sampler_open(&config, &monitor->sampler, err) < 0)) {
        lab_run_monitor_close(monitor);
        return -1;
    }
    monitor->lists = monitor->sampler && !lab_sampler_refusal(monitor->sampler, "process");
    monitor->inner = lab_recorder_sink(monitor->recorder);
    monitor->sink = (struct lab_sink_samples){on_entity, on_tick, on_event, on_processes, monitor};
    *ret_watch = monitor;
    return 0;
}

static void flush(struct lab_run_monitor *monitor, bool force) {
    struct lab_err err = LAB_ERR_INIT;
    bool failed = lab_recorder_flush(monitor->recorder, force, &err) < 0;
    if (failed && !monitor->complained)
        lab_log(LAB_LOG_WARNING, "samples can't be stored: %s", err.text);
    monitor->complained = failed;
}

void lab_run_monitor_close(struct lab_run_monitor *monitor) {
    struct lab_err err = LAB_ERR_INIT;
    if (!monitor)
        return;
    if (monitor->sampler)
        lab_run_monitor_tend(monitor);
    lab_sampler_close(monitor->sampler);
    if (lab_recorder_close(monitor->recorder, &err) < 0 && !monitor->complained)
        lab_log(LAB_LOG_WARNING, "the last samples can't be stored: %s", err.text);
    lab_mem_free(monitor->gpus);
    lab_mem_free(monitor->processes.items);
    lab_mem_free(monitor);
}

int lab_run_monitor_fd(struct lab_run_monitor *monitor) {
    return monitor && monitor->sampler ? lab_sampler_fd(monitor->sampler) : -1;
}

void lab_run_monitor_tend(struct lab_run_monitor *monitor) {
    if (!monitor)
        return;
    if (monitor->sampler)
        lab_sampler_take(monitor->sampler, &monitor->sink);
    flush(monitor, false);
}

void lab_run_monitor_entity(struct lab_run_monitor *monitor, int number,
                            const struct lab_entity *entity) {
    if (monitor)
        monitor->sink.entity(monitor->sink.state, number, entity);
}

int lab_run_monitor_tick(struct lab_run_monitor *monitor, int number, int64_t time_ns,
                         const int64_t *values, int column_count) {
    uint64_t valid[LAB_VALID_WORDS(LAB_COLUMNS_MAX)] = {0};
    if (!monitor)
        return 0;
    if (number < 0 || number >= monitor->gpu_count ||
        monitor->gpus[number].column_count != column_count)
        return -1;
    for (int i = 0; i < column_count; i++)
        lab_valid_set(valid, i);
    monitor->sink.tick(
        monitor->sink.state,
        &(struct lab_tick){
            .entity = number, .time_ns = time_ns, .cost_ns = -1, .values = values, .valid = valid});
    return 0;
}

void lab_run_monitor_edge(struct lab_run_monitor *monitor) {
    if (!monitor || !monitor->sampler)
        return;
    monitor->edge_ns = lab_clock_now(lab_clock_system());
    lab_sampler_edge(monitor->sampler);
}

bool lab_run_monitor_is_settled(const struct lab_run_monitor *monitor) {
    for (int i = 0; monitor && monitor->sampler && i < monitor->gpu_count; i++)
        if (monitor->gpus[i].is_gpu && !monitor->gpus[i].away &&
            monitor->gpus[i].last_ns < monitor->edge_ns)
            return false;
    return !monitor || !monitor->lists || monitor->list_ns >= monitor->edge_ns;
}

int64_t lab_run_monitor_memory_left(const struct lab_run_monitor *monitor, const char *device) {
    int index = lab_run_device_gpu(device);
    for (int i = 0; monitor && monitor->sampler && index >= 0 && i < monitor->gpu_count; i++) {
        const struct gpu *gpu = &monitor->gpus[i];
        if (gpu->is_gpu && gpu->index == index && !gpu->away && gpu->now_kib > gpu->before_kib)
            return (gpu->now_kib - gpu->before_kib) * 1024;
    }
    return 0;
}

bool lab_run_monitor_is_cool(const struct lab_run_monitor *monitor) {
    for (int i = 0; monitor && monitor->sampler && i < monitor->gpu_count; i++) {
        const struct gpu *gpu = &monitor->gpus[i];
        if (gpu->is_gpu && !gpu->away &&
            (gpu->held || (gpu->before_c != INT64_MIN && gpu->now_c > gpu->before_c + WARMER_C)))
            return false;
    }
    return true;
}

/* --- which GPU --- */

/* The entity that a device's name means, as an index into tracks: "cuda:1", "cuda:0/4.2",
 * "cuda:MIG-…"; -1 = none. */
static int find_track(const struct lab_recording *recording, const char *device) {
    int index = lab_run_device_gpu(device);
    if (index == LAB_RUN_NO_GPU)
        return -1;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        if (index == LAB_RUN_GPU_BY_ID ? lab_str_equal(entity->id, device + strlen("cuda:"))
                                       : entity->kind == LAB_ENTITY_GPU && entity->index == index)
            return i;
    }
    return -1;
}

/* Power and clocks are those of the whole GPU. */
static int find_whole(const struct lab_recording *recording, int track) {
    int parent = recording->tracks[track].entity.parent;
    return parent >= 0 && parent < recording->track_count ? parent : track;
}

/* --- figures --- */

struct answer {
    const struct lab_run_monitor_question *question;
    const struct lab_recording *recording;
    const struct monitor_processes *processes;
    struct lab_arena *arena;
    int rank, track, whole;
    int64_t from_ns, until_ns; /* of what was measured */
    struct lab_result *result;
};

/*
 * What a driver gives is the mean of a while before the reading, and only readings whose while lies
 * within what was measured tell of it: power is the mean of a second, utilisation of a sixth to a
 * whole one, as the GPU has it, and the rates of GPM are of the time since its last sample.
 */
#define WINDOW_LONG_NS LAB_NS_PER_S
#define WINDOW_GPM_NS  (2 * INTERVAL_GPU_NS)

#define FIGURE(member) #member, offsetof(struct lab_result, member)

static const struct figure {
    const char *key;
    size_t offset; /* in the result */
    enum lab_metric_id metric;
    int64_t window_ns; /* 0 = as it is at that moment */
    enum { MEAN, LEAST, MOST } of;
    double scale;
} figures[] = {
    {FIGURE(power_w), LAB_METRIC_POWER, WINDOW_LONG_NS, MEAN, 1},
    {FIGURE(sm_clock_mhz), LAB_METRIC_SM_CLOCK, 0, MEAN, 1},
    {FIGURE(sm_clock_min_mhz), LAB_METRIC_SM_CLOCK, 0, LEAST, 1},
    {FIGURE(temperature_c), LAB_METRIC_TEMPERATURE, 0, MOST, 1},
    {FIGURE(gpu_utilization), LAB_METRIC_UTILIZATION, WINDOW_LONG_NS, MEAN, 0.01},
    {FIGURE(sm_active), LAB_METRIC_SM_ACTIVE, WINDOW_GPM_NS, MEAN, 0.01},
    {FIGURE(tensor_active), LAB_METRIC_TENSOR_ACTIVE, WINDOW_GPM_NS, MEAN, 0.01},
    {FIGURE(dram_active), LAB_METRIC_DRAM_ACTIVE, WINDOW_GPM_NS, MEAN, 0.01},
};

/* Whether the GPU has it, and the figure is missing for want of time alone. */
static bool is_read(const struct lab_track *track, enum lab_metric_id metric) {
    return lab_track_between(track, metric, INT64_MIN, INT64_MAX).count > 0;
}

static double find_figure(const struct answer *answer, const struct figure *figure) {
    struct lab_track_figures found =
        lab_track_between(&answer->recording->tracks[answer->whole], figure->metric,
                          answer->from_ns + figure->window_ns, answer->until_ns);
    return figure->scale * (figure->of == LEAST  ? found.min
                            : figure->of == MOST ? found.max
                                                 : found.mean);
}

static void add_too_short(struct answer *answer, const char *key) {
    struct lab_result_text *name = LAB_RESULT_ADD(answer->result, too_short_for, answer->arena);
    name->text = key;
}

/* By a counter that is read each second, and by power before and after that. */
#define COVERED_SHARE 0.9
static void set_energy(struct answer *answer) {
    const struct lab_track *whole = &answer->recording->tracks[answer->whole];
    double span_s = (double)(answer->until_ns - answer->from_ns) * 1e-9;
    struct lab_energy energy =
        lab_track_energy(whole, answer->recording->interval_ns, answer->from_ns, answer->until_ns);
    bool brief = answer->until_ns - answer->from_ns < WINDOW_LONG_NS;
    bool known = !brief && !isnan(energy.joules) && energy.covered_s >= COVERED_SHARE * span_s;
    if (known) {
        answer->result->energy_j = energy.joules;
        answer->result->energy_estimated = energy.estimated;
    }
    if (brief && (is_read(whole, LAB_METRIC_ENERGY) || is_read(whole, LAB_METRIC_POWER)))
        add_too_short(answer, "energy_j");
}

static void set_figures(struct answer *answer) {
    const struct lab_track *whole = &answer->recording->tracks[answer->whole];
    const struct lab_track *own = &answer->recording->tracks[answer->track];
    struct lab_result *result = answer->result;
    set_energy(answer);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double value = find_figure(answer, &figures[i]);
        memcpy((char *)result + figures[i].offset, &value, sizeof value);
        if (isnan(value) && is_read(whole, figures[i].metric))
            add_too_short(answer, figures[i].key);
    }
    /* of the whole run: a worker may take most before it measures */
    result->gpu_memory_peak_mb =
        lab_track_between(own, LAB_METRIC_MEMORY_USED, answer->question->start_ns,
                          answer->question->now_ns)
            .max /
        0x1p20;
    const char *device = answer->question->ranks[answer->rank].device;
    result->whole_gpu = answer->whole != answer->track || strchr(device, '/');
    if (whole->entity.simulated)
        result->gpu_simulated = true;
}

static void add_sentence(struct answer *answer, bool spoils, const char *sentence) {
    (spoils ? lab_result_spoil : lab_result_warn)(answer->result, answer->arena, sentence);
}

/* A GPU at its power limit is in its normal state under load: that warns. Heat excludes. */
static void set_throttling(struct answer *answer) {
    const struct lab_track *whole = &answer->recording->tracks[answer->whole];
    double span_s = (double)(answer->until_ns - answer->from_ns) * 1e-9;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++) {
        double time_s = lab_track_flag_s(whole, LAB_METRIC_CLOCK_REASONS, reason->bit,
                                         answer->from_ns, answer->until_ns);
        if (!reason->harmful || isnan(time_s) || time_s <= 0)
            continue;
        struct lab_result_throttle *throttled =
            LAB_RESULT_ADD(answer->result, throttled_s, answer->arena);
        throttled->reason = reason->name;
        throttled->seconds = time_s;
        if (time_s >= HELD_BACK_LEAST_S && time_s >= HELD_BACK_SHARE * span_s)
            add_sentence(answer, reason->excludes && !answer->question->tells_throttling,
                         lab_arena_printf(answer->arena,
                                          "clocks were lowered for %.0f%% of the time: %s",
                                          100 * time_s / span_s, reason->words));
    }
}

static bool is_hardware(int64_t xid) {
    return xid == 48 || xid == 64 || xid == 74 || xid == 79;
}

/* What the driver says of work that it cleared away with its program, as after a worker was killed:
 * it comes late, in the time of the next run, which it does no harm. */
#define XID_CLEARED 45

static void set_xids(struct answer *answer) {
    for (size_t i = 0; i < answer->recording->event_count; i++) {
        const struct lab_sample_event *event = &answer->recording->events[i];
        if (event->kind != LAB_EVENT_XID || event->entity != answer->whole ||
            event->time_ns < answer->question->start_ns)
            continue;
        struct lab_result_xid *xid = LAB_RESULT_ADD(answer->result, xids, answer->arena);
        xid->number = event->number;
        add_sentence(
            answer, event->number != XID_CLEARED,
            lab_arena_printf(answer->arena, "the driver reported %s (Xid %lld)",
                             is_hardware(event->number) ? "a fault of the hardware" : "an error",
                             (long long)event->number));
    }
}

static void set_foreign(struct answer *answer) {
    struct monitor_view view = {answer->question, answer->recording, answer->processes,
                                answer->arena};
    monitor_find_foreign(&view, answer->track, answer->whole, answer->result);
    int count = answer->result->foreign_processes.count;
    if (count == 0)
        return;
    const struct lab_result_process *first = answer->result->foreign_processes.items;
    add_sentence(answer, true,
                 lab_arena_printf(answer->arena,
                                  "%d other process%s used the GPU during the run, %s (%lld) "
                                  "first",
                                  count, count > 1 ? "es" : "",
                                  first->name ? first->name : "of another namespace",
                                  (long long)first->pid));
}

/* Time without an answer of the GPU, of what was measured. */
static void set_gaps(struct answer *answer) {
    const struct lab_track *whole = &answer->recording->tracks[answer->whole];
    const char *why = NULL;
    bool any = false;
    for (size_t i = 0; i < answer->recording->event_count; i++) {
        const struct lab_sample_event *event = &answer->recording->events[i];
        if (event->kind == LAB_EVENT_GAP && event->entity == answer->whole &&
            event->time_ns >= answer->from_ns && event->time_ns <= answer->until_ns)
            why = event->text;
    }
    for (size_t i = 0; i < whole->count; i++)
        any |= whole->times_ns[i] >= answer->from_ns && whole->times_ns[i] <= answer->until_ns;
    if (!why && !any && answer->until_ns - answer->from_ns > LONG_NS)
        why = "no samples during the run";
    if (why)
        add_sentence(answer, false,
                     lab_arena_printf(answer->arena, "the GPU could not be sampled: %s", why));
}

static void answer_rank(struct answer *answer) {
    const struct lab_run_monitor_question *question = answer->question;
    bool measured = question->last_ns[answer->rank] > question->first_ns[answer->rank];
    answer->from_ns = measured ? question->first_ns[answer->rank] : question->start_ns;
    answer->until_ns = measured ? question->last_ns[answer->rank] : question->now_ns;
    set_figures(answer);
    set_throttling(answer);
    set_xids(answer);
    set_foreign(answer);
    set_gaps(answer);
}

void lab_run_monitor_answer(struct lab_run_monitor *monitor,
                            const struct lab_run_monitor_question *question,
                            struct lab_arena *arena, struct lab_result *results) {
    static const enum lab_metric_id metrics[] = {
        LAB_METRIC_UTILIZATION, LAB_METRIC_MEMORY_USED,   LAB_METRIC_POWER,
        LAB_METRIC_TEMPERATURE, LAB_METRIC_SM_CLOCK,      LAB_METRIC_CLOCK_REASONS,
        LAB_METRIC_SM_ACTIVE,   LAB_METRIC_TENSOR_ACTIVE, LAB_METRIC_DRAM_ACTIVE,
        LAB_METRIC_ENERGY,      LAB_METRIC_PROCESSES,
    };
    struct lab_recording recording;
    struct lab_err err = LAB_ERR_INIT;
    if (!monitor ||
        (!lab_run_uses_gpu(question->ranks, question->rank_count) && !monitor->processes.has_own))
        return;
    if (monitor->sampler)
        lab_sampler_take(monitor->sampler, &monitor->sink);
    flush(monitor, true);
    struct lab_recording_query query = {.metrics = metrics,
                                        .metric_count = sizeof metrics / sizeof *metrics,
                                        .from_ns = question->start_ns - BEFORE_NS,
                                        .until_ns = question->now_ns};
    if (lab_recording_read_store(monitor->store, &query, arena, &recording, &err) < 0) {
        lab_log(LAB_LOG_WARNING, "no GPU samples of this run: %s", err.text);
        return;
    }
    bool *given = lab_arena_alloc(arena, (size_t)recording.track_count + 1, sizeof *given);
    for (int i = 0; i < question->rank_count; i++) {
        struct answer answer = {.question = question,
                                .recording = &recording,
                                .processes = &monitor->processes,
                                .arena = arena,
                                .rank = i,
                                .result = &results[i]};
        answer.track = find_track(&recording, question->ranks[i].device);
        if (answer.track < 0)
            continue;
        answer.whole = find_whole(&recording, answer.track);
        given[answer.track] = given[answer.whole] = true;
        answer_rank(&answer);
    }
    struct monitor_view view = {question, &recording, &monitor->processes, arena};
    monitor_find_strayed(&view, given, results);
}
