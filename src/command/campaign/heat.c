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
    int columns[GPUS_MOST]; /* of the temperature, by entity; -1 = it has none */
    double now_c[GPUS_MOST];
    bool told;
};

static void on_entity(void *state, int number, const struct lab_entity *entity) {
    struct heat *heat = state;
    if (number < GPUS_MOST)
        heat->columns[number] = entity->kind == LAB_ENTITY_GPU
                                    ? lab_entity_column(entity, LAB_METRIC_TEMPERATURE, -1)
                                    : -1;
}

static void on_tick(void *state, const struct lab_tick *tick) {
    struct heat *heat = state;
    int column = tick->entity < GPUS_MOST ? heat->columns[tick->entity] : -1;
    if (column < 0 || !lab_valid_get(tick->valid, column))
        return;
    heat->now_c[tick->entity] =
        (double)tick->values[column] * lab_metric(LAB_METRIC_TEMPERATURE)->scale;
    heat->told = true;
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

/* Until the hottest GPU is cooler, at most `wait`. */
static void wait_for(const struct course *course, struct lab_sampler *sampler) {
    const struct lab_campaign *campaign = &course->campaign;
    const struct lab_clock *clock = lab_clock_system();
    struct heat heat = {.told = false};
    struct lab_sink_samples sink = {.entity = on_entity,
                                    .tick = on_tick,
                                    .event = on_event,
                                    .processes = on_processes,
                                    .state = &heat};
    int64_t start_ns = lab_clock_now(clock);
    bool said = false;
    for (int i = 0; i < GPUS_MOST; i++)
        heat.columns[i] = -1;
    while (lab_stop_level() == 0) {
        lab_sampler_take(sampler, &sink);
        int64_t waited_ns = lab_clock_now(clock) - start_ns;
        bool hot = heat.told && hottest(&heat) >= campaign->temperature_c;
        if ((heat.told && !hot) || (!heat.told && waited_ns > FIRST_NS))
            return;
        if ((double)waited_ns > campaign->wait_s * 1e9) {
            if (hot)
                lab_console_note("a GPU still has %.0f °C, starting all the same", hottest(&heat));
            return;
        }
        if (hot && !said && !course->call->console->quiet)
            lab_console_note("waiting until all GPUs are below %.0f °C: one has %.0f °C",
                             campaign->temperature_c, hottest(&heat));
        said |= hot;
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
