/*
 * test_recording_process.c: lists of processes come back, each list as it was, while what doesn't
 * change costs nearly nothing.
 */
#include "recording_fixture.h"

enum { PROCESSES = 40 };

static struct lab_process_sample items[PROCESSES];
static struct lab_process_gpu gpus[PROCESSES][2];
static int64_t nodes[PROCESSES][2];
static char names[PROCESSES][16];

/* Process i as it is in second s: every fifth works, the others sleep. */
static struct lab_process_sample process(int i, int s) {
    bool works = i % 5 == 0;
    gpus[i][0] = (struct lab_process_gpu){.entity = GPU,
                                          .memory_bytes = works ? 1000 * i + s : -1,
                                          .sm_percent = works ? (s % 100) + 0.25 : (double)NAN,
                                          .memory_percent = NAN,
                                          .compute = true};
    gpus[i][1] = (struct lab_process_gpu){.entity = MIG, .sm_percent = 1, .graphics = true};
    nodes[i][0] = INT64_C(4096) * i;
    nodes[i][1] = works ? INT64_C(8192) * s : 0;
    snprintf(names[i], sizeof names[i], "worker %d", i);
    return (struct lab_process_sample){
        .pid = 1000 + i,
        .parent_pid = 1,
        .start = UINT64_MAX - (uint64_t)i,
        .uid = UINT32_MAX,
        .user = i % 2 ? "root" : "größer",
        .name = names[i],
        .command = i == 3 ? "" : "python3 train.py --epochs 10",
        .container = i == 4 ? "9f2c" : "",
        .cpu_percent = works    ? 12.5 * (s % 9)
                       : i == 1 ? (double)NAN
                                : 0,
        .memory_bytes = INT64_C(4096) * (1 + i) * (works ? s : 1),
        .threads = 1 + i,
        .cpu_node = i % 3 - 1,
        .allowed_nodes = i == 2 ? UINT64_MAX : 1,
        .node_bytes = i % 2 ? nodes[i] : NULL,
        .node_count = i % 2 ? 2 : 0,
        .gpus = gpus[i],
        .gpu_count = i % 3,
        .placement = (enum lab_placement)(i % 7),
        .advice = i == 10 ? "numactl --cpunodebind=1" : "",
    };
}

/* The list of second s: one comes, one goes, and now and then the order is another. */
static struct lab_process_list list(int s) {
    int count = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int which = s % 10 == 3 ? PROCESSES - 1 - i : i;
        if ((which == 7 && s < 5) || (which == 8 && s > 20))
            continue;
        items[count++] = process(which, s);
    }
    return (struct lab_process_list){
        .time_ns = s * LAB_NS_PER_S, .items = items, .count = count, .left_out = s % 4};
}

static bool same_number(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void check_process(const struct lab_process_sample *a, const struct lab_process_sample *b) {
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->parent_pid, b->parent_pid);
    assert_true(a->start == b->start && a->uid == b->uid);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->command, b->command);
    assert_string_equal(a->container, b->container);
    assert_string_equal(a->advice, b->advice);
    assert_true(same_number(a->cpu_percent, b->cpu_percent));
    assert_true(a->memory_bytes == b->memory_bytes && a->allowed_nodes == b->allowed_nodes);
    assert_int_equal(a->threads, b->threads);
    assert_int_equal(a->cpu_node, b->cpu_node);
    assert_int_equal(a->placement, b->placement);
    assert_int_equal(a->node_count, b->node_count);
    assert_int_equal(!a->node_bytes, !b->node_bytes);
    for (int i = 0; i < a->node_count && a->node_bytes && b->node_bytes; i++)
        assert_true(a->node_bytes[i] == b->node_bytes[i]);
    assert_int_equal(a->gpu_count, b->gpu_count);
    for (int i = 0; i < a->gpu_count; i++) {
        const struct lab_process_gpu *one = &a->gpus[i], *two = &b->gpus[i];
        assert_int_equal(one->entity, two->entity);
        assert_true(one->memory_bytes == two->memory_bytes);
        assert_true(same_number(one->sm_percent, two->sm_percent));
        assert_true(same_number(one->memory_percent, two->memory_percent));
        assert_true(one->compute == two->compute && one->graphics == two->graphics);
    }
}

static void check_lists(const struct lab_recording *recording, int from, int until) {
    assert_int_equal(recording->process_count, until - from);
    for (int s = from; s < until; s++) {
        const struct lab_process_list *got = &recording->processes[s - from], expected = list(s);
        assert_true(got->time_ns == expected.time_ns);
        assert_int_equal(got->left_out, expected.left_out);
        assert_int_equal(got->count, expected.count);
        for (int i = 0; i < got->count; i++)
            check_process(&got->items[i], &expected.items[i]);
    }
}

static void record_lists(int from, int until) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int s = from; s < until; s++) {
        struct lab_process_list now = list(s);
        sink.processes(sink.state, &now);
        now_ns = now.time_ns;
        assert_works(lab_recorder_flush(recorder, false, &err));
    }
    assert_works(lab_recorder_close(recorder, &err));
}

static int64_t ask(const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return number;
}

LAB_TEST(lists_come_back) {
    record_lists(1, 200);
    struct lab_recording recording = read_back(path, NULL);
    assert_all_there(recording);
    check_lists(&recording, 1, 200);
    /* who they are is written once */
    assert_int_equal(ask("SELECT count(*) FROM process"), PROCESSES);
}

LAB_TEST(lists_of_a_time_come_back) {
    record_lists(1, 200);
    struct lab_recording_query query = {.from_ns = 70 * LAB_NS_PER_S,
                                        .until_ns = 130 * LAB_NS_PER_S};
    struct lab_recording recording = read_back(path, &query);
    check_lists(&recording, 70, 131);
    query.without_processes = true;
    recording = read_back(path, &query);
    assert_int_equal(recording.process_count, 0);
    assert_all_there(recording);
}

/* 32 that sleep cost a byte each, 8 that work some more. */
LAB_TEST(what_does_not_change_costs_a_byte) {
    record_lists(1, 200);
    int64_t bytes = ask("SELECT sum(length(bytes)) FROM process_chunk");
    int64_t processes = ask("SELECT sum(items) FROM process_chunk");
    assert_true(bytes < 7 * processes);
}

LAB_TEST(a_damaged_stretch_loses_only_itself) {
    record_lists(1, 200);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "UPDATE process_chunk SET bytes = zeroblob(length(bytes)) WHERE number = 2",
                 NULL, NULL, NULL);
    sqlite3_exec(db, "DELETE FROM process WHERE pid = 1005", NULL, NULL, NULL);
    sqlite3_close(db);
    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(recording.process_count, 139);
    assert_string_equal(recording.missing[0], "lists of processes: 1 stretch is damaged");
    assert_string_equal(recording.processes[138].items[5].name, "?");
}

LAB_TEST(lists_beyond_memory_are_left_out) {
    record_lists(1, 200);
    const struct lab_recording_query query = {.max_bytes = 2000000};
    struct lab_recording recording = read_back(path, &query);
    assert_true(recording.process_count > 0 && recording.process_count < 199);
    assert_contains(recording.missing[0], "don't fit in memory");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
