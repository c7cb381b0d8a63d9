/* heat.c: a study starts on GPUs that are cool enough. */
#include "command/campaign/course.h"

#include "base/clock.h"
#include "base/tty/stop.h"
#include "probe/sampler.h"

#define INTERVAL_NS LAB_NS_PER_S
#define PAUSE_NS    (200 * LAB_NS_PER_MS)
#define FIRST_NS    (5 * LAB_NS_PER_S) /* by then a driver has answered, or there is none */
#define GPUS_MOST   256

struct heat {
    int columns[GPUS_MOST];  /* of the temperature, by entity; -1 = it has none */
    double now_c[GPUS_MOST]; /* 0 = not read yet */
    int known;               /* that have one */
};

static void on_entity(void *state, int number, const struct lab_entity *entity) {
    struct heat *heat = state;
    if (number >= GPUS_MOST)
        return;
    heat->columns[number] =
        entity->kind == LAB_ENTITY_GPU ? lab_entity_column(entity, LAB_METRIC_TEMPERATURE, -1) : -1;
    heat->known += heat->columns[number] >= 0;
}

static void on_tick(void *state, const struct lab_tick *tick) {
    struct heat *heat = state;
    int column = tick->entity < GPUS_MOST ? heat->columns[tick->entity] : -1;
    if (column < 0 || !lab_valid_get(tick->valid, column))
        return;
    heat->now_c[tick->entity] =
        (double)tick->values[column] * lab_metric(LAB_METRIC_TEMPERATURE)->scale;
}

static void on_event(void *state, const struct lab_sample_event *event) {
    (void)state;
    (void)event;
}

static void on_processes(void *state, const struct lab_process_list *list) {
    (void)state;
    (void)list;
}

static double hottest(const struct heat *heat) {
    double most = 0;
    for (int i = 0; i < GPUS_MOST; i++)
        most = heat->now_c[i] > most ? heat->now_c[i] : most;
    return most;
}

/* Whether each GPU that is known has been read. */
static bool is_read(const struct heat *heat) {
    for (int i = 0; i < GPUS_MOST; i++)
        if (heat->columns[i] >= 0 && heat->now_c[i] <= 0)
            return false;
    return heat->known > 0;
}

/* Until all GPUs are read, at most FIRST_NS, then until the hottest is cooler, at most the wait.
 * GPUs are read by a thread each, a lane. */
static void wait_for(const struct course *course, struct lab_sampler *sampler) {
    const struct lab_campaign *campaign = &course->campaign;
    const struct lab_clock *clock = lab_clock_system();
    struct heat heat = {.known = 0};
    struct lab_sink_samples sink = {.entity = on_entity,
                                    .tick = on_tick,
                                    .event = on_event,
                                    .processes = on_processes,
                                    .state = &heat};
    int64_t start_ns = lab_clock_now(clock), hot_ns = 0;
    for (int i = 0; i < GPUS_MOST; i++)
        heat.columns[i] = -1;
    while (lab_stop_level() == 0) {
        struct lab_sampler_stats stats;
        lab_sampler_take(sampler, &sink);
        lab_sampler_stats(sampler, &stats);
        int64_t now_ns = lab_clock_now(clock);
        bool hot = hottest(&heat) >= campaign->temperature_c,
             all = is_read(&heat) && heat.known >= stats.lanes;
        if (!hot && (all || now_ns - start_ns > FIRST_NS))
            return;
        if (hot && hot_ns == 0) {
            hot_ns = now_ns;
            if (!course->call->console->quiet)
                lab_console_note("waiting until all GPUs are below %.0f °C: one has %.0f °C",
                                 campaign->temperature_c, hottest(&heat));
        }
        if (hot && (double)(now_ns - hot_ns) > campaign->wait_s * 1e9) {
            lab_console_note("a GPU still has %.0f °C, starting all the same", hottest(&heat));
            return;
        }
        lab_clock_sleep(clock, PAUSE_NS);
    }
}

void course_wait_for_heat(const struct course *course) {
    static const char *const probes[] = {"nvml", NULL};
    struct lab_sampler *sampler;
    if (course->campaign.temperature_c <= 0 || course->simulated)
        return;
    struct lab_sampler_config config = {.setup = {.machine = course->machine,
                                                  .clock = lab_clock_system(),
                                                  .interval_ns = INTERVAL_NS,
                                                  .root = ""},
                                        .probes = probes};
    if (lab_sampler_open(&config, &sampler, NULL) < 0)
        return; /* no GPU, no heat */
    wait_for(course, sampler);
    lab_sampler_close(sampler);
}
