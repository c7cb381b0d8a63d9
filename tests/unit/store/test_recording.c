/*
 * test_recording.c: what was recorded comes back, from a file of its own and from a study: all of
 * it, or the metrics and the time that were asked for.
 */
#include "recording_fixture.h"

LAB_TEST(ticks_come_back) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int64_t k = 0; k < 1000; k++) {
        send_tick(&sink, GPU, k);
        if (k >= 100)
            send_tick(&sink, CPUS, k);
        now_ns = tick_time(k);
        assert_works(lab_recorder_flush(recorder, false, &err));
    }
    assert_works(lab_recorder_close(recorder, &err));
    assert_int_equal(count_files(folder, false), 1);

    struct lab_recording recording = read_back(path, NULL);
    assert_all_there(recording);
    assert_int_equal(recording.track_count, 3);
    check_ticks(track_of(&recording, GPU), GPU, 0, 1000);
    check_ticks(track_of(&recording, CPUS), CPUS, 100, 1000);
    check_ticks(track_of(&recording, MIG), MIG, 0, 0);
    assert_string_equal(recording.label, "study");
    assert_string_equal(recording.path, path);
    assert_contains(recording.maker, "gpulab ");
    assert_true(recording.interval_ns == TICK_NS);
    assert_true(recording.simulated);
    assert_int_equal(recording.epoch_count, 1);
}

/* --- entities --- */

LAB_TEST(entities_come_back_as_they_were_told) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    tell(&sink); /* again, as after a gap */
    assert_works(lab_recorder_close(recorder, &err));

    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(recording.track_count, ENTITIES);
    for (int i = 0; i < ENTITIES; i++) {
        const struct lab_entity *entity = &recording.tracks[i].entity;
        assert_int_equal(entity->kind, machine[i].kind);
        assert_int_equal(entity->index, machine[i].index);
        assert_string_equal(entity->id, machine[i].id);
        assert_string_equal(entity->name, machine[i].name);
        assert_string_equal(entity->pci, machine[i].pci);
        assert_int_equal(entity->node, machine[i].node);
        assert_int_equal(entity->parent, machine[i].parent);
        assert_int_equal(entity->simulated, machine[i].simulated);
        assert_int_equal(entity->column_count, machine[i].column_count);
        assert_memory_equal(entity->columns, machine[i].columns,
                            (size_t)entity->column_count * sizeof *entity->columns);
    }
}

static void change(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *text = NULL;
    sqlite3_exec(db, sql, NULL, NULL, &text);
    assert_string_equal(text ? text : "", "");
    sqlite3_close(db);
}

static void record_some(int64_t ticks) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, ticks);
    assert_works(lab_recorder_close(recorder, &err));
}

/* A later version may know more metrics and kinds; the rest of its file is of use all the same. */
LAB_TEST(what_is_unknown_is_left_out) {
    record_some(20);
    change("UPDATE entity SET columns = replace(columns, 'power', 'aura[3]') WHERE kind = 'gpu';"
           "UPDATE entity SET kind = 'quantum' WHERE kind = 'cpu';"
           "INSERT INTO event (epoch, time_ns, entity, kind, value, text)"
           " VALUES (1, 5, 0, 'sighing', 1, '')");
    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(recording.track_count, 2);
    const struct lab_track *track = track_of(&recording, GPU);
    assert_int_equal(track->entity.column_count, 4);
    assert_int_equal(lab_entity_column(&track->entity, LAB_METRIC_POWER, -1), -1);
    int memory = lab_entity_column(&track->entity, LAB_METRIC_MEMORY_USED, -1);
    assert_true(track->values[memory][7] == tick_value(GPU, 2, 7));
    assert_int_equal(recording.event_count, 0);
    assert_non_null(recording.missing);
    assert_contains(recording.missing[0], "quantum 'cpu'");
}

/* A GPU whose driver learnt a metric in between is one GPU. */
LAB_TEST(rows_of_one_device_are_one_track) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    struct lab_entity poor = machine[GPU];
    poor.column_count = 2;
    sink.entity(sink.state, GPU, &poor);
    send_ticks(&sink, GPU, 0, 30); /* its further columns are not looked at */
    tell(&sink);
    send_ticks(&sink, GPU, 30, 60);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(recording.track_count, ENTITIES);
    const struct lab_track *track = track_of(&recording, GPU);
    assert_int_equal(track->count, 60);
    assert_int_equal(track->entity.column_count, 5);
    assert_true(track->valid[1][29] && track->values[1][29] == tick_value(GPU, 1, 29));
    assert_false(track->valid[2][29]);
    assert_true(track->valid[2][30] && track->values[2][30] == tick_value(GPU, 2, 30));
}

/* --- asking for less --- */

LAB_TEST(only_what_is_asked_for_is_read) {
    record_some(1000);
    const enum lab_metric_id metrics[] = {LAB_METRIC_ENERGY, LAB_METRIC_UTILIZATION};
    const struct lab_recording_query query = {.metrics = metrics,
                                              .metric_count = 2,
                                              .from_ns = tick_time(300),
                                              .until_ns = tick_time(700)};
    struct lab_recording recording = read_back(path, &query);
    assert_all_there(recording);
    const struct lab_track *track = track_of(&recording, GPU);
    check_ticks(track, GPU, 300, 701);
    assert_true(track->values[0] && track->values[3] && track->valid[3]);
    assert_true(!track->values[1] && !track->valid[1] && !track->values[2] && !track->values[4]);
    double growth = lab_track_growth(track, LAB_METRIC_ENERGY, tick_time(300), tick_time(700));
    assert_true(growth == 400 * 30000 * 0.001);
}

LAB_TEST(a_time_without_anything_is_empty) {
    record_some(100);
    const struct lab_recording_query query = {.from_ns = tick_time(200),
                                              .until_ns = tick_time(300)};
    struct lab_recording recording = read_back(path, &query);
    assert_int_equal(recording.track_count, ENTITIES);
    check_ticks(track_of(&recording, GPU), GPU, 0, 0);
    assert_all_there(recording);
}

LAB_TEST(more_than_fits_in_memory_is_refused) {
    record_some(1000);
    const struct lab_recording_query query = {.max_bytes = 50000};
    struct lab_recording recording;
    assert_refused(lab_recording_read(path, &query, &arena, &recording, &err), LAB_ERR_USER,
                   "GPU-5f0c alone: 1000 ticks of 5 metrics): ask for a shorter time");
    /* what a chunk's row claims is bounded too */
    change("UPDATE chunk SET count = 1000000000 WHERE number = 1");
    recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 256, 1000);
    assert_contains(recording.missing[0], "ticks of GPU-5f0c: 1 stretch is damaged");
}

/* --- events --- */

LAB_TEST(events_come_back_in_order) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    const struct lab_sample_event events[] = {
        {2000, GPU, LAB_EVENT_GAP, 0, "GPU is lost"},
        {1000, -1, LAB_EVENT_MARK, 0, "the command began"},
        {3000, GPU, LAB_EVENT_BACK, 1000, ""},
        {3000, CPUS, LAB_EVENT_XID, 79, ""},
    };
    for (int i = 0; i < 4; i++)
        sink.event(sink.state, &events[i]);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    static const int order[] = {1, 0, 2, 3};
    assert_int_equal(recording.event_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct lab_sample_event *event = &recording.events[i], *expected = &events[order[i]];
        assert_true(event->time_ns == expected->time_ns && event->number == expected->number);
        assert_int_equal(event->entity, expected->entity);
        assert_int_equal(event->kind, expected->kind);
        assert_string_equal(event->text, expected->text);
    }
    const struct lab_recording_query query = {.from_ns = 1500, .until_ns = 2500};
    recording = read_back(path, &query);
    assert_int_equal(recording.event_count, 1);
}

/* --- the wall clock --- */

static int64_t wall_now_ns;

static int64_t wall(void) {
    return wall_now_ns;
}

/* Set back by an hour: no time in between is negative, and each tick has the wall time it had. */
LAB_TEST(a_wall_clock_that_is_set_begins_an_epoch) {
    struct lab_clock clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {.clock = &clock, .wall_ns = wall};
    struct lab_recorder *recorder;
    const int64_t start_ns = 1700000000 * LAB_NS_PER_S, hour_ns = 3600 * LAB_NS_PER_S;
    now_ns = 0;
    wall_now_ns = start_ns;
    assert_works(lab_recorder_create(path, &setup, &recorder, &err));
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int64_t k = 0; k < 300; k++) {
        now_ns = tick_time(k);
        wall_now_ns = start_ns + now_ns - (k >= 150 ? hour_ns : 0) + k * 1000; /* and it drifts */
        assert_works(lab_recorder_flush(recorder, false, &err));
        send_tick(&sink, GPU, k);
    }
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    assert_all_there(recording);
    check_ticks(track_of(&recording, GPU), GPU, 0, 300);
    assert_int_equal(recording.epoch_count, 2);
    assert_true(recording.epochs[0].from_ns < recording.epochs[1].from_ns);
    int64_t before = lab_recording_wall_ns(&recording, tick_time(100));
    int64_t after = lab_recording_wall_ns(&recording, tick_time(200));
    assert_true(before == start_ns + tick_time(100));
    assert_true(llabs(after - (start_ns + tick_time(200) - hour_ns)) < LAB_NS_PER_MS);
}

LAB_TEST(a_clock_event_begins_an_epoch) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, 10);
    const struct lab_sample_event event = {tick_time(10), -1, LAB_EVENT_CLOCK, -5 * LAB_NS_PER_S,
                                           ""};
    sink.event(sink.state, &event);
    send_ticks(&sink, GPU, 10, 20);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 0, 20);
    assert_int_equal(recording.epoch_count, 2);
    assert_true(recording.epochs[1].offset_ns == recording.epochs[0].offset_ns - 5 * LAB_NS_PER_S);
    assert_int_equal(recording.event_count, 1);
}

/* --- in a study --- */

static struct lab_recorder *attach(struct lab_store *store) {
    static struct lab_clock clock;
    clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {.interval_ns = TICK_NS, .clock = &clock};
    struct lab_recorder *recorder = NULL;
    assert_works(lab_recorder_attach(store, &setup, &recorder, &err));
    return recorder;
}

static void record_into(struct lab_store *store, int64_t from, int64_t until) {
    struct lab_recorder *recorder = attach(store);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, from, until);
    assert_works(lab_recorder_close(recorder, &err));
}

LAB_TEST(a_study_records_while_it_runs) {
    struct lab_store *store = create(path);
    int64_t epoch;
    now_ns = 0;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, tick_time(50), &err));
    record_into(store, 0, 200);
    const struct lab_run outcome = {.state = LAB_RUN_DONE, .end_ns = tick_time(150)};
    assert_works(lab_store_finish_run(store, 1, &outcome, &err));
    struct lab_run run = read_run(store, 1);
    struct lab_recording_query query = {
        .from_ns = run.start_ns, .until_ns = run.end_ns, .epoch = run.epoch};
    struct lab_recording recording;
    assert_works(lab_recording_read_store(store, &query, &arena, &recording, &err));
    check_ticks(track_of(&recording, GPU), GPU, 50, 151);
    record_into(store, 200, 300); /* the same devices: no new rows */
    lab_store_close(store);
    recording = read_back(path, NULL);
    assert_int_equal(recording.track_count, ENTITIES);
    check_ticks(track_of(&recording, GPU), GPU, 0, 300);
    assert_all_there(recording);
}

LAB_TEST(a_study_that_never_recorded_is_empty) {
    lab_store_close(create(path));
    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(recording.track_count, 0);
    assert_all_there(recording);
    recording = read_back(LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v2.db", NULL);
    assert_int_equal(recording.track_count, 0);
    assert_all_there(recording);
}

/* After a reboot CLOCK_MONOTONIC begins anew: read whole, the second boot comes behind the
 * first. */
LAB_TEST(a_study_that_went_on_after_a_reboot_is_in_order) {
    struct lab_store *store = create(path);
    record_into(store, 100, 200);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_exec(
        store, "UPDATE epoch SET boot_id = 'before', wall_ns = wall_ns - 3600000000000", &err));
    record_into(store, 50, 120);
    struct lab_recording recording;
    assert_works(lab_recording_read_store(store, NULL, &arena, &recording, &err));
    const struct lab_track *track = track_of(&recording, GPU);
    assert_int_equal(track->count, 170);
    for (size_t i = 1; i < track->count; i++)
        assert_true(track->times_ns[i] > track->times_ns[i - 1]);
    int64_t wall_ns = lab_recording_wall_ns(&recording, track->times_ns[100]) -
                      lab_recording_wall_ns(&recording, track->times_ns[0]);
    assert_true(llabs(wall_ns - 3600 * LAB_NS_PER_S + 5 * LAB_NS_PER_S) < 10 * LAB_NS_PER_S);
    /* a run of either boot finds its own */
    struct lab_recording_query query = {.from_ns = tick_time(110), .until_ns = tick_time(115)};
    assert_works(lab_recording_read_store(store, &query, &arena, &recording, &err));
    check_ticks(track_of(&recording, GPU), GPU, 110, 116);
    query.until_ns = tick_time(150);
    query.epoch = epoch;
    assert_works(lab_recording_read_store(store, &query, &arena, &recording, &err));
    check_ticks(track_of(&recording, GPU), GPU, 110, 151);
    lab_store_close(store);
}

/* A reader sees each flush of a writer that goes on. */
LAB_TEST(a_recording_is_read_while_it_is_written) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int64_t k = 0; k < 400; k += 40) {
        send_ticks(&sink, GPU, k, k + 40);
        now_ns = tick_time(k + 40);
        assert_works(lab_recorder_flush(recorder, false, &err));
        struct lab_recording recording = read_back(path, NULL);
        check_ticks(track_of(&recording, GPU), GPU, 0, k + 40);
        assert_only_open(recording);
    }
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording closed = read_back(path, NULL);
    assert_all_there(closed);
}

LAB_TEST(nothing_is_written_before_it_is_due) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, 9);
    now_ns = tick_time(9);
    assert_works(lab_recorder_flush(recorder, false, &err));
    assert_int_equal(read_back(path, NULL).track_count, 0);
    assert_works(lab_recorder_flush(recorder, true, &err));
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 0, 9);
    assert_works(lab_recorder_close(recorder, &err));
    assert_works(lab_recorder_close(NULL, &err));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
