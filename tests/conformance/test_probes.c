/*
 * Every probe, whoever added it: its descriptor says what messages need, it opens here or says why
 * not, what it tells holds together, and the sampler runs with all of them.
 */
#include "machine/machine.h"
#include "probe/sampler.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

static struct lab_machine *machine;

static struct lab_probe_setup make_setup(void) {
    return (struct lab_probe_setup){.machine = machine,
                                    .clock = lab_clock_system(),
                                    .interval_ns = LAB_NS_PER_S / 100,
                                    .root = "",
                                    .all_processes = true,
                                    .speed = 1};
}

LAB_TEST(names_are_those_of_the_files) {
    assert_non_null(lab_probes[0]);
    for (int i = 0; lab_probes[i]; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/src/probe/%s.c", LAB_TEST_SOURCE_DIR, lab_probes[i]->name);
        FILE *file = fopen(path, "r");
        if (!file)
            fail_msg("there is no %s", path);
        fclose(file);
    }
}

static void check_text(const char *text) {
    if (text && *text && text[strlen(text) - 1] != '.')
        return;
    fail_msg("'%s' is missing, or a sentence", text ? text : "");
}

LAB_TEST(descriptors_are_whole) {
    for (int i = 0; lab_probes[i]; i++) {
        const struct lab_probe *probe = lab_probes[i];
        check_text(probe->summary);
        check_text(probe->without);
        assert_true(probe->open && probe->close &&
                    (probe->only_lane || (probe->lane_count && probe->lane_name)) && probe->read);
    }
}

/* --- what they tell --- */

struct heard {
    int entities, ticks, columns[64];
};

static void check_columns(const struct lab_entity *entity) {
    assert_true(entity->column_count > 0 && entity->column_count <= LAB_COLUMNS_MAX);
    for (int i = 0; i < entity->column_count; i++) {
        const struct lab_column *column = &entity->columns[i];
        assert_in_range(column->metric, 0, LAB_METRIC_COUNT - 1);
        bool instances = strstr(lab_metric((enum lab_metric_id)column->metric)->title, "[n]");
        assert_int_equal(column->instance >= 0, instances);
        assert_int_equal(
            lab_entity_column(entity, (enum lab_metric_id)column->metric, column->instance), i);
    }
}

static int hear_entity(void *state, const struct lab_entity *entity) {
    struct heard *heard = state;
    assert_true(entity->id && *entity->id && entity->name && entity->pci);
    check_columns(entity);
    heard->columns[heard->entities] = entity->column_count;
    return heard->entities++;
}

static void hear_tick(void *state, int entity, int64_t time_ns, const int64_t *values,
                      const uint64_t *valid) {
    struct heard *heard = state;
    assert_true(entity >= 0 && entity < heard->entities && time_ns > 0 && values && valid);
    heard->ticks++;
}

static void hear_event(void *state, int entity, enum lab_event_kind kind, int64_t number,
                       const char *text) {
    (void)state, (void)entity, (void)kind, (void)number, (void)text;
}

static void hear_gpu_processes(void *state, int entity, const struct lab_gpu_process *items,
                               int count) {
    const struct heard *heard = state;
    (void)items;
    assert_true(entity >= 0 && entity < heard->entities && count >= 0);
}

static void hear_processes(void *state, const struct lab_process_list *list) {
    (void)state;
    for (int i = 0; i < list->count; i++) {
        const struct lab_process_sample *item = &list->items[i];
        assert_true(item->pid > 0 && item->user && item->name && item->command && item->container &&
                    item->advice);
    }
}

static void read_lane(const struct lab_probe *probe, void *probe_state, int lane) {
    struct heard heard = {0};
    struct lab_probe_sink sink = {hear_entity,        hear_tick,      hear_event,
                                  hear_gpu_processes, hear_processes, &heard};
    assert_true(*lab_probe_lane_name(probe, probe_state, lane));
    if (probe->describe)
        probe->describe(probe_state, lane, &sink);
    for (int i = 0; i < 3; i++) {
        struct lab_err err = LAB_ERR_INIT;
        int result =
            probe->read(probe_state, lane, i ? LAB_PROBE_TICK : LAB_PROBE_EDGE, &sink, &err);
        if (result < 0 && !*err.text)
            fail_msg("%s fails without a word", probe->name);
        lab_clock_sleep(lab_clock_system(), LAB_NS_PER_MS);
    }
    assert_true(heard.entities == 0 || heard.ticks > 0);
}

LAB_TEST(each_opens_here_or_says_why_not) {
    for (int i = 0; lab_probes[i]; i++) {
        const struct lab_probe *probe = lab_probes[i];
        struct lab_probe_setup setup = make_setup();
        struct lab_err err = LAB_ERR_INIT;
        void *probe_state = NULL;
        if (probe->open(&setup, &probe_state, &err) < 0) {
            assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
            assert_true(*err.text);
            continue;
        }
        for (int lane = 0; lane < lab_probe_lane_count(probe, probe_state); lane++)
            read_lane(probe, probe_state, lane);
        probe->close(probe_state);
    }
}

/* --- all of them together --- */

struct sampled {
    int entities, lists;
    bool ticked[LAB_ENTITY_KIND_COUNT];
    enum lab_entity_kind kinds[64];
};

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct sampled *sampled = state;
    assert_int_equal(number, sampled->entities);
    sampled->kinds[sampled->entities++] = entity->kind;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct sampled *sampled = state;
    assert_true(tick->entity < sampled->entities && tick->cost_ns >= 0);
    sampled->ticked[sampled->kinds[tick->entity]] = true;
}

static void take_processes(void *state, const struct lab_process_list *list) {
    struct sampled *sampled = state;
    assert_true(list->count > 0);
    sampled->lists++;
}

LAB_TEST(the_sampler_runs_with_all_of_them) {
    struct lab_sampler_config config = {.setup = make_setup()};
    struct lab_sampler *sampler;
    ASSERT_OK(lab_sampler_open(&config, &sampler, err));
    assert_non_null(lab_sampler_refusal(sampler, "replay"));
    assert_null(lab_sampler_refusal(sampler, "cpu"));
    struct sampled sampled = {0};
    struct lab_sink_samples sink = {take_entity, take_tick, NULL, take_processes, &sampled};
    struct pollfd fd = {.fd = lab_sampler_fd(sampler), .events = POLLIN};
    while (!(sampled.ticked[LAB_ENTITY_CPU] && sampled.ticked[LAB_ENTITY_MEMORY] &&
             sampled.lists > 0)) {
        assert_int_equal(poll(&fd, 1, 60000), 1);
        lab_sampler_take(sampler, &sink);
    }
    lab_sampler_close(sampler);
}

static int open_machine(void **state) {
    struct lab_err err = LAB_ERR_INIT;
    (void)state;
    return lab_machine_open(NULL, &machine, &err);
}

static int close_machine(void **state) {
    (void)state;
    lab_machine_close(machine);
    return 0;
}

const struct lab_test_program lab_test_program = {.open = open_machine, .close = close_machine};
