/*
 * test_sampler_open.c: what a sampler is asked to watch, what it refuses, how lanes hear of edges
 * and of each other's processes, and how it ends while a lane hangs.
 */
#include "sampler_fixture.h"

#include <poll.h>

/* --- what can't be had --- */

static void refused(const struct lab_sampler_config *config, const char *text) {
    struct lab_sampler *sampler = NULL;
    struct sampler_parts parts = {fake_probes, fake_wall_offset_ns};
    ASSERT_FAILS(lab_sampler_open_parts(&parts, config, &sampler, err), LAB_ERR_USER, text);
    assert_null(sampler);
}

LAB_TEST(intervals_that_make_no_sense_are_refused) {
    fake_reset(1);
    struct lab_sampler_config config = {0};
    refused(&config, "an interval of 0 ms is too short: the least is 1 ms");
    config.setup.interval_ns = -5 * MS;
    refused(&config, "an interval of -5 ms is too short");
    config.setup.interval_ns = MS / 2;
    refused(&config, "an interval of 0.5 ms is too short");
    config.setup.interval_ns = INT64_MAX;
    refused(&config, "the most is a day");
}

LAB_TEST(unknown_gpus_and_probes_are_refused_with_those_that_exist) {
    fake_reset(3);
    fake.lanes[0].entity.index = 4; /* lanes need not come in the order of indices */
    int gpus[] = {1, 3};
    struct lab_sampler_config config = {
        .setup.interval_ns = 100 * MS, .gpus = gpus, .gpu_count = 2};
    refused(&config, "there is no GPU 3; there are GPUs 1, 2 and 4");
    assert_int_equal(fake.closed, fake.opened);
    fake_reset(1);
    refused(&config, "there is no GPU 1; there is GPU 0");
    fake_reset(0);
    refused(&config, "there is no GPU 1; no GPU was found");
    const char *const names[] = {"fake", "fakr", NULL};
    config = (struct lab_sampler_config){.setup.interval_ns = 100 * MS, .probes = names};
    refused(&config, "there is no probe 'fakr'; there are fake");
}

static int broken_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    (void)setup, (void)ret_state;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "nothing of the kind");
}

static const struct lab_probe broken_probe = {.name = "broken", .open = broken_open};

LAB_TEST(a_probe_that_does_not_work_here_says_why) {
    struct rig rig;
    rig_open(&rig, 1);
    const struct lab_probe *const probes[] = {&broken_probe, &fake_probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, &err), 0);
    assert_string_equal(lab_sampler_refusal(rig.sampler, "broken"), "nothing of the kind");
    assert_null(lab_sampler_refusal(rig.sampler, "fake"));
    rig_close(&rig);
    /* none at all is a failure */
    rig_open(&rig, 1);
    const char *const names[] = {"broken", NULL};
    rig.config.probes = names;
    assert_int_equal(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, &err), -1);
    assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "nothing can be watched here: broken: nothing of the kind");
    told_release(&rig.told);
}

LAB_TEST(only_the_gpus_that_were_asked_for_are_read) {
    struct rig rig;
    rig_open(&rig, 3);
    int gpus[] = {2, 0};
    rig.config.gpus = gpus;
    rig.config.gpu_count = 2;
    rig.asleep = 3;
    rig_start(&rig);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.entities.text, "0:GPU-a/-1 1:GPU-c/-1 ");
    assert_string_equal(rig.told.ticks.text, "0@0=0 1@0=0 0@100=1 1@100=1 ");
    assert_int_equal(fake.lanes[1].readings, 0);
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_int_equal(stats.lanes, 2);
    rig_close(&rig);
}

/* --- entities that change --- */

static int late_mig; /* readings after which a MIG instance appears */

static int mig_read(void *state, int lane, enum lab_probe_when when,
                    const struct lab_probe_sink *sink, struct lab_err *err) {
    if (fake_read(state, lane, when, sink, err) < 0)
        return -1;
    if (lane == 1 && fake.lanes[1].readings > late_mig) {
        struct lab_entity mig = fake.lanes[1].entity;
        mig.kind = LAB_ENTITY_MIG;
        mig.id = "MIG-1";
        mig.index = 0;
        mig.parent = 0; /* as the lane counts */
        int local = sink->entity(sink->state, &mig);
        int64_t value = 77;
        uint64_t valid = 1;
        sink->tick(sink->state, local, lab_clock_now(fake.clock), &value, &valid);
    }
    return 0;
}

LAB_TEST(an_entity_that_appears_later_is_told_before_its_first_tick) {
    struct rig rig;
    rig_open(&rig, 2);
    struct lab_probe probe = fake_probe;
    probe.read = mig_read;
    late_mig = 1;
    const struct lab_probe *const probes[] = {&probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err));
    rig_pass(&rig, 50);
    rig_take(&rig);
    rig_pass(&rig, 200);
    rig_take(&rig);
    /* its parent is GPU-b, the sampler's entity 1; told once though it came twice */
    assert_string_equal(rig.told.entities.text, "2:MIG-1/1 ");
    assert_contains(rig.told.ticks.text, "1@100=1 2@100=77 ");
    assert_contains(rig.told.ticks.text, "1@200=2 2@200=77 ");
    rig_close(&rig);
}

/* --- processes --- */

static int lister_lanes(void *state) {
    (void)state;
    return 1;
}

static void lister_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    (void)state, (void)lane, (void)sink;
}

static int lister_edges; /* under the lanes' mutex */

/* Lists whom the board names, as `process` does. */
static int lister_read(void *state, int lane, enum lab_probe_when when,
                       const struct lab_probe_sink *sink, struct lab_err *err) {
    (void)state, (void)lane, (void)err;
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_gpu_processes *gpus;
    pthread_mutex_lock(&fake.mutex);
    struct lab_gpu_process_table *table = fake.table;
    pthread_mutex_unlock(&fake.mutex);
    int count = lab_gpu_process_table_read(table, &arena, &gpus);
    for (int i = 0; i < count; i++) {
        struct lab_process_gpu gpu = {.entity = gpus[i].entity};
        struct lab_process_sample items[2] = {0};
        for (int j = 0; j < gpus[i].count; j++)
            items[j] = (struct lab_process_sample){.pid = gpus[i].items[j].pid,
                                                   .user = "",
                                                   .name = "",
                                                   .command = "",
                                                   .container = "",
                                                   .gpus = &gpu,
                                                   .gpu_count = 1};
        struct lab_process_list list = {.items = items, .count = gpus[i].count};
        list.time_ns = lab_clock_now(fake.clock);
        sink->processes(sink->state, &list);
    }
    lab_arena_release(&arena);
    pthread_mutex_lock(&fake.mutex);
    lister_edges += when == LAB_PROBE_EDGE;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
    return 0;
}

static const struct lab_probe lister_probe = {
    .name = "lister",
    .open = fake_open,
    .close = fake_close,
    .lane_count = lister_lanes,
    .lane_name = fake_lane_name,
    .describe = lister_describe,
    .read = lister_read,
};

LAB_TEST(processes_on_gpus_reach_the_lane_that_reads_proc) {
    struct rig rig;
    rig_open(&rig, 2);
    fake.lanes[0].processes[0].pid = 100;
    fake.lanes[0].process_count = 1;
    fake.lanes[1].processes[0].pid = 200;
    fake.lanes[1].processes[1].pid = 100;
    fake.lanes[1].process_count = 2;
    const struct lab_probe *const probes[] = {&fake_probe, &lister_probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err));
    rig.asleep = 4;
    rig_pass(&rig, 50);
    rig_take(&rig);
    rig_pass(&rig, 50);
    rig_take(&rig);
    assert_string_equal(rig.told.processes.text, "100:0, ; 200:1, 100:1, ; ");
    /* nobody is on a GPU that is away */
    FAKE_SET(1, fails, true);
    rig_pass(&rig, 100);
    rig_take(&rig);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.processes.text, "100:0, ; ; ");
    rig_close(&rig);
}

/* --- edges, and the end --- */

static void wait_readable(struct lab_sampler *sampler) {
    struct pollfd fd = {.fd = lab_sampler_fd(sampler), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 60000), 1);
}

LAB_TEST(an_edge_is_read_at_once_and_the_end_waits_for_no_tick) {
    struct rig rig;
    rig_open(&rig, 2);
    rig.config.setup.clock = lab_clock_system();
    rig.config.setup.interval_ns = 3600 * LAB_NS_PER_S;
    struct sampler_parts parts = {fake_probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err));
    FAKE_WAIT(fake.lanes[0].readings == 1 && fake.lanes[1].readings == 1);
    wait_readable(rig.sampler);
    lab_sampler_edge(rig.sampler);
    FAKE_WAIT(fake.lanes[0].edges == 1 && fake.lanes[1].edges == 1);
    wait_readable(rig.sampler);
    rig_close(&rig);
    assert_int_equal(fake.closed, 1);
}

LAB_TEST(at_an_edge_processes_are_listed_after_the_gpus_have_told_theirs) {
    struct rig rig;
    rig_open(&rig, 2);
    rig.config.setup.clock = lab_clock_system();
    rig.config.setup.interval_ns = 3600 * LAB_NS_PER_S;
    const struct lab_probe *const probes[] = {&fake_probe, &lister_probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    lister_edges = 0;
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err));
    FAKE_WAIT(fake.lanes[0].readings == 1 && fake.lanes[1].readings == 1);
    /* given a GPU that takes its time, when an edge comes, then the list waits for it */
    FAKE_SET(0, hangs, true);
    lab_sampler_edge(rig.sampler);
    FAKE_WAIT(fake.lanes[0].hanging && fake.lanes[1].edges == 1);
    pthread_mutex_lock(&fake.mutex);
    assert_int_equal(lister_edges, 0);
    fake.lanes[0].processes[0].pid = 100;
    fake.lanes[0].process_count = 1;
    pthread_mutex_unlock(&fake.mutex);
    FAKE_SET(0, hangs, false);
    FAKE_WAIT(lister_edges == 1);
    wait_readable(rig.sampler);
    for (int i = 0; i < 1000 && !strstr(rig.told.processes.text, "100:0,"); i++) {
        rig_take(&rig);
        usleep(1000);
    }
    assert_contains(rig.told.processes.text, "100:0,");
    rig_close(&rig);
}

/* --- a driver whose start hangs --- */

static bool driver_hangs, driver_fails; /* under the lanes' mutex */
static int driver_errors;               /* so many times it says: not now */

static int driver_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    pthread_mutex_lock(&fake.mutex);
    while (driver_hangs)
        pthread_cond_wait(&fake.changed, &fake.mutex);
    bool fails = driver_fails;
    if (driver_errors > 0) {
        driver_errors--;
        pthread_mutex_unlock(&fake.mutex);
        return lab_err_set(err, LAB_ERR_SYSTEM, "not loaded");
    }
    pthread_mutex_unlock(&fake.mutex);
    return fails ? lab_err_set(err, LAB_ERR_UNSUPPORTED, "no such driver")
                 : fake_open(setup, ret_state, err);
}

static void let_driver_go(bool fails) {
    pthread_mutex_lock(&fake.mutex);
    driver_hangs = false;
    driver_fails = fails;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
}

/* A sampler over a lister, which works, and GPUs whose driver doesn't come back. */
static struct lab_probe driver_probe;
static void open_driver(struct rig *rig, bool hangs, int64_t patience_ns) {
    rig_open(rig, 2);
    driver_probe = fake_probe;
    driver_probe.open = driver_open;
    driver_probe.driver = true;
    driver_hangs = hangs;
    driver_fails = false;
    rig->config.setup.clock = lab_clock_system();
    rig->config.setup.interval_ns = 10 * MS;
    rig->config.open_patience_ns = patience_ns;
    static const struct lab_probe *const probes[] = {&driver_probe, &lister_probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig->config, &rig->sampler, err));
}

static void open_without_driver(struct rig *rig) {
    open_driver(rig, true, MS);
}

/* Takes until a line of what was told has the text. */
static void take_until(struct rig *rig, const struct lab_str *where, const char *text) {
    for (int i = 0; i < 10000; i++) {
        rig_take(rig);
        if (strstr(where->text, text))
            return;
        usleep(1000);
    }
    fail_msg("'%s' was never told", text);
}

LAB_TEST(a_driver_that_starts_late_joins_by_itself) {
    struct rig rig;
    open_without_driver(&rig);
    assert_true(lab_sampler_awaits(rig.sampler, "fake"));
    assert_contains(lab_sampler_refusal(rig.sampler, "fake"), "the driver has not started");
    rig_take(&rig);
    assert_contains(rig.told.events.text, "gap the driver has not started");
    assert_string_equal(rig.told.entities.text, "");
    let_driver_go(false);
    take_until(&rig, &rig.told.entities, "0:GPU-a/-1 1:GPU-b/-1 ");
    assert_false(lab_sampler_awaits(rig.sampler, "fake"));
    assert_null(lab_sampler_refusal(rig.sampler, "fake"));
    take_until(&rig, &rig.told.ticks, "1@");
    lab_sampler_edge(rig.sampler);
    FAKE_WAIT(fake.lanes[0].edges == 1 && fake.lanes[1].edges == 1);
    rig_close(&rig);
    assert_int_equal(fake.closed, 2); /* and the lister */
}

LAB_TEST(a_driver_that_fails_late_says_why) {
    struct rig rig;
    open_without_driver(&rig);
    let_driver_go(true);
    for (int i = 0; i < 10000 && lab_sampler_awaits(rig.sampler, "fake"); i++)
        usleep(1000);
    assert_string_equal(lab_sampler_refusal(rig.sampler, "fake"), "no such driver");
    rig_close(&rig);
}

LAB_TEST(a_driver_that_is_not_there_yet_is_asked_again) {
    struct rig rig;
    driver_errors = 1;
    open_driver(&rig, false, 1000 * MS);
    assert_true(lab_sampler_awaits(rig.sampler, "fake"));
    assert_true(lab_sampler_retries(rig.sampler, "fake"));
    assert_string_equal(lab_sampler_refusal(rig.sampler, "fake"), "not loaded; retrying");
    take_until(&rig, &rig.told.ticks, "1@");
    assert_null(lab_sampler_refusal(rig.sampler, "fake"));
    assert_false(lab_sampler_retries(rig.sampler, "fake"));
    rig_close(&rig);
    assert_int_equal(fake.closed, 2);
}

LAB_TEST(closing_waits_for_no_driver_that_is_asked_again) {
    struct rig rig;
    driver_errors = 1000000;
    open_driver(&rig, false, 1000 * MS);
    rig_close(&rig);
    assert_int_equal(fake.closed, 1); /* the lister */
    /* GPUs that were named are missed at once */
    rig_open(&rig, 2);
    int gpus[] = {1};
    rig.config.gpus = gpus;
    rig.config.gpu_count = 1;
    static const struct lab_probe *const probes[] = {&driver_probe, &lister_probe, NULL};
    struct sampler_parts parts = {probes, fake_wall_offset_ns};
    ASSERT_FAILS(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err), LAB_ERR_USER, "");
    driver_errors = 0;
    told_release(&rig.told);
}

LAB_TEST(closing_leaves_a_driver_that_hangs_to_itself) {
    struct rig rig;
    open_without_driver(&rig);
    rig_close(&rig);
    pthread_mutex_lock(&fake.mutex);
    assert_int_equal(fake.closed, 1); /* the lister */
    pthread_mutex_unlock(&fake.mutex);
    let_driver_go(false);
    FAKE_WAIT(fake.closed == 2);
}

LAB_TEST(closing_leaves_a_lane_that_hangs_to_itself) {
    struct rig rig;
    rig_open(&rig, 2);
    fake.lanes[1].hangs = true;
    rig.config.setup.clock = lab_clock_system();
    rig.config.setup.interval_ns = 10 * MS;
    struct sampler_parts parts = {fake_probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig.config, &rig.sampler, err));
    FAKE_WAIT(fake.lanes[1].hanging);
    rig_close(&rig);
    /* the probe is in use, so it is open still; when the lane comes back it closes it */
    pthread_mutex_lock(&fake.mutex);
    assert_int_equal(fake.closed, 0);
    pthread_mutex_unlock(&fake.mutex);
    FAKE_SET(1, hangs, false);
    FAKE_WAIT(fake.closed == 1);
}

LAB_TEST(what_one_sink_gets_all_get) {
    struct told a, b;
    told_init(&a, 0);
    told_init(&b, 0);
    struct lab_sink_samples first = told_sink(&a), second = told_sink(&b), deaf = {0};
    const struct lab_sink_samples *const sinks[] = {&first, &deaf, &second, NULL};
    struct lab_sink_fan fan = {sinks};
    struct lab_sink_samples all = lab_sink_fan(&fan);
    fake_reset(1);
    all.entity(all.state, 3, &fake.lanes[0].entity);
    int64_t value = 5;
    uint64_t valid = 1;
    all.tick(all.state,
             &(struct lab_tick){.entity = 3, .time_ns = 7 * MS, .values = &value, .valid = &valid});
    all.event(all.state,
              &(struct lab_sample_event){.entity = 3, .kind = LAB_EVENT_MARK, .text = "x"});
    all.processes(all.state, &(struct lab_process_list){0});
    assert_string_equal(a.entities.text, "3:GPU-a/-1 ");
    assert_string_equal(a.ticks.text, "3@7=5 ");
    assert_string_equal(a.events.text, "3@0 mark x; ");
    assert_string_equal(a.processes.text, "; ");
    assert_string_equal(b.entities.text, a.entities.text);
    assert_string_equal(b.ticks.text, a.ticks.text);
    assert_string_equal(b.events.text, a.events.text);
    assert_string_equal(b.processes.text, a.processes.text);
    told_release(&a);
    told_release(&b);
}
