/*
 * test_run_result.c: a run's result, from those of its ranks and from what was recorded of its GPUs.
 * Results are written as JSON here; of what comes out the keys that a case names are compared.
 */
#include "base/clock.h"
#include "base/json.h"
#include "run/run_monitor_internal.h"
#include "run/runner_internal.h"
#include "store/recording/recording.h"

#include "test.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lab_store *store;
static struct lab_recorder *recorder;
static struct lab_run_monitor *monitor;

static int set_up(void **state) {
    (void)state;
    struct lab_store_study study = {
        .name = "s", .option = "s", .config = "", .words = "[]", .machine = "{}", .version = "0"};
    static const struct lab_run_rank rank = {0, "cuda:0", 0};
    struct lab_run run = {.id = "r",
                          .workload = "null",
                          .label = "null",
                          .options = "{}",
                          .series = "[]",
                          .test = "{}",
                          .ranks = &rank,
                          .rank_count = 1};
    static int made; /* some tests need one for each case */
    int64_t epoch;
    ASSERT_OK(lab_store_create(test_path("study%d.db", made++), &study, &run, 1, &store, err));
    ASSERT_OK(lab_store_epoch(store, "runner", &epoch, err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_run_monitor_close(monitor);
    monitor = NULL;
    lab_store_close(store);
    return 0;
}

/* --- what is compared --- */

static struct lab_value *parse(const char *text) {
    struct lab_value *value = NULL;
    ASSERT_OK(lab_json_parse(text, strlen(text), "test", &test_arena, &value, err));
    return value;
}

static const char *json(const struct lab_value *value) {
    struct lab_str text;
    lab_str_init(&text);
    lab_json_write(value, 0, &text);
    const char *copy = lab_arena_strdup(&test_arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* Each key of `expected` is so in `found`, as JSON: 6 digits of a number. */
static void assert_has(const struct lab_value *found, const char *expected) {
    struct lab_value *wanted = parse(expected);
    for (int i = 0; i < wanted->count; i++) {
        const struct lab_value *value = lab_value_get(found, wanted->keys[i]);
        const struct lab_value *other = wanted->items[i];
        bool number = value && value->type == LAB_VALUE_FLOAT &&
                      (other->type == LAB_VALUE_FLOAT || other->type == LAB_VALUE_INT);
        double second = other->type == LAB_VALUE_INT ? (double)other->integer : other->number;
        if (number && value->number > second - 1e-6 && value->number < second + 1e-6)
            continue;
        if (other->type == LAB_VALUE_MAP && value && value->type == LAB_VALUE_MAP && other->count)
            assert_has(value, json(other));
        else if (!value || strcmp(json(value), json(other)) != 0)
            fail_msg("%s is %s, not %s", wanted->keys[i], value ? json(value) : "absent",
                     json(other));
    }
}

/* --- ranks alone --- */

#define RANKS_MAX 4

static struct lab_run outcome;

/* The devices and the ranks' results, a list; the run's. */
static const struct lab_value *merge(enum lab_plan_processes processes, const char *profiler,
                                     const char *devices, const char *results) {
    struct lab_value *list = parse(results);
    struct runner_rank ranks[RANKS_MAX] = {0};
    struct lab_run_rank places[RANKS_MAX] = {0};
    char *rest = lab_arena_strdup(&test_arena, devices);
    for (int i = 0; i < list->count; i++) {
        char *device = strsep(&rest, " ");
        ranks[i].result = lab_result_read(list->items[i], &test_arena);
        places[i].device = device ? device : "cpu:0";
    }
    struct lab_run_monitor_question question = {.ranks = places,
                                                .rank_count = list->count,
                                                .start_ns = 100 * LAB_NS_PER_S,
                                                .now_ns = 110 * LAB_NS_PER_S};
    outcome = (struct lab_run){.end_ns = 5};
    runner_result_merge(ranks, list->count, processes, profiler, monitor, &question, &test_arena,
                        &outcome);
    return lab_result_value(outcome.result, LAB_RESULT_RUN_VIEW, NULL, &test_arena);
}

LAB_TEST(ranks_become_one_result) {
    static const struct {
        enum lab_plan_processes processes;
        const char *profiler, *ranks, *run;
    } cases[] = {
        /* rates and counts add up, but not if one is unknown; the rest is the slowest one's */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":4,\"rate_low\":3,\"rate_high\":5,\"rate_unit\":\"samples/s\",\"samples\":7,"
         "\"iterations\":9,\"setup_s\":1,\"overlap\":0.25,\"peak_memory_mb\":30,\"steady\":true},"
         "{\"rate\":2,\"rate_low\":1,\"rate_high\":9,\"rate_unit\":\"samples/s\",\"samples\":5,"
         "\"iterations\":8,\"setup_s\":3,\"overlap\":0.5,\"peak_memory_mb\":20,\"steady\":false}]",
         "{\"rate\":6,\"rate_low\":4,\"rate_high\":14,\"rate_unit\":\"samples/s\",\"samples\":12,"
         "\"iterations\":8,\"setup_s\":3,\"overlap\":0.5,\"peak_memory_mb\":50,\"steady\":false,"
         "\"valid\":true,\"gang_overlap\":null,\"warnings\":[]}"},
        {LAB_PLAN_PER_RANK, NULL, "[{\"rate\":4,\"samples\":3},{\"steady\":true}]",
         "{\"rate\":null,\"rate_unit\":null,\"samples\":null,\"steady\":true}"},
        {LAB_PLAN_PER_RANK, NULL, "[{\"samples\":9223372036854775807},{\"samples\":1}]",
         "{\"samples\":null,\"steady\":null,\"peak_memory_mb\":null}"},
        /* without rates the one that ended last is the slowest */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"iterations\":1,\"last_ns\":5},{\"iterations\":2,\"last_ns\":7},"
         "{\"iterations\":3,\"last_ns\":6}]",
         "{\"iterations\":2}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":2,\"iterations\":1},{\"rate\":2,\"iterations\":2},{\"rate\":1,"
         "\"iterations\":3}]",
         "{\"iterations\":3,\"rate\":5}"},
        /* one process tells its memory in each rank */
        {LAB_PLAN_SHARED, NULL, "[{\"peak_memory_mb\":30},{\"peak_memory_mb\":40}]",
         "{\"peak_memory_mb\":40}"},
        /* a launcher's first rank has the values */
        {LAB_PLAN_LAUNCHER, NULL, "[{\"rate\":4,\"samples\":3,\"first_ns\":1,\"last_ns\":2},{}]",
         "{\"rate\":4,\"samples\":3,\"gang_overlap\":null,\"warnings\":[]}"},
        /* an all-reduce is one iteration of all */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":4,\"rate_low\":3,\"rate_high\":5,\"allreduce\":\"ring\"},"
         "{\"rate\":2,\"rate_low\":1,\"rate_high\":9,\"allreduce\":\"ring\"}]",
         "{\"rate\":2,\"rate_low\":1,\"rate_high\":9,\"allreduce\":\"ring\"}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":4,\"allreduce\":\"ring\",\"samples_per_second\":8},"
         "{\"rate\":2,\"allreduce\":\"ring\",\"samples_per_second\":4}]",
         "{\"rate\":6,\"samples_per_second\":12}"},
        /* a program's pace is that of its slowest, in the unit that says most */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":9,\"rate_unit\":\"steps/s\"},"
         "{\"rate\":5,\"rate_low\":4,\"rate_high\":6,\"rate_unit\":\"tokens/s\"},"
         "{\"rate\":7,\"rate_unit\":\"tokens/s\"},{\"rate\":1,\"rate_unit\":\"epochs/h\"}]",
         "{\"rate\":5,\"rate_low\":4,\"rate_high\":6,\"rate_unit\":\"tokens/s\"}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"rate\":9,\"rate_unit\":\"steps/s\"},{\"rate\":5,\"rate_unit\":\"words/s\"}]",
         "{\"rate\":5,\"rate_unit\":\"words/s\"}"},
        {LAB_PLAN_PER_RANK, NULL, "[{\"rate\":9,\"rate_unit\":\"runs/h\"}]",
         "{\"rate\":9,\"rate_unit\":\"runs/h\"}"},
        /* how long all measured, of the time in which any did */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"first_ns\":100,\"last_ns\":190},{\"first_ns\":110,\"last_ns\":200}]",
         "{\"gang_overlap\":0.8,\"warnings\":[\"its ranks did not overlap for 20% of the "
         "time\"],\"valid\":true}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"first_ns\":100,\"last_ns\":195},{\"first_ns\":105,\"last_ns\":200}]",
         "{\"gang_overlap\":0.9,\"warnings\":[]}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"first_ns\":100,\"last_ns\":110},{\"first_ns\":150,\"last_ns\":160}]",
         "{\"gang_overlap\":0}"},
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"first_ns\":100,\"last_ns\":100},{\"first_ns\":100,\"last_ns\":100}]",
         "{\"gang_overlap\":null,\"warnings\":[]}"},
        {LAB_PLAN_PER_RANK, NULL, "[{\"first_ns\":100,\"last_ns\":110},{\"first_ns\":100}]",
         "{\"gang_overlap\":null,\"warnings\":[]}"},
        /* what all say is said once; else by whom */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"invalid\":[\"wrong\"],\"warnings\":[\"hot\",\"loud\"]},"
         "{\"invalid\":[\"wrong\"],\"warnings\":[\"loud\",\"loud\"]}]",
         "{\"invalid\":[\"wrong\"],\"warnings\":[\"rank 0: hot\",\"loud\"],\"valid\":false}"},
        {LAB_PLAN_PER_RANK, "ncu", "[{\"warnings\":[\"hot\"]}]",
         "{\"warnings\":[\"hot\",\"profiled by ncu: its times include the profiler's overhead\"]}"},
        /* of GPUs nobody but the monitor knows */
        {LAB_PLAN_PER_RANK, NULL,
         "[{\"gpu\":{\"energy_j\":3,\"power_w\":4,\"whole_gpu\":true,\"throttled_s\":{\"idle\":1}}}"
         "]",
         "{\"energy_j\":null,\"power_w\":null,\"throttled_s\":null}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_has(merge(cases[i].processes, cases[i].profiler, "", cases[i].ranks), cases[i].run);
}

LAB_TEST(the_outcome_has_what_the_store_sorts_by) {
    merge(LAB_PLAN_PER_RANK, NULL, "",
          "[{\"rate\":4,\"rate_low\":3,\"rate_high\":5,\"rate_unit\":\"samples/s\",\"end_ns\":9},"
          "{\"rate\":4,\"rate_low\":3,\"rate_high\":5,\"rate_unit\":\"samples/s\",\"end_ns\":7}]");
    assert_true(outcome.rate == 8 && outcome.rate_low == 6 && outcome.rate_high == 10);
    assert_string_equal(outcome.rate_unit, "samples/s");
    assert_true(outcome.valid);
    assert_int_equal(outcome.end_ns, 5); /* of simulated devices alone it is theirs */
    merge(LAB_PLAN_PER_RANK, NULL, "",
          "[{\"simulated\":true,\"end_ns\":9},{\"simulated\":true,\"end_ns\":7},"
          "{\"end_ns\":11}]");
    assert_int_equal(outcome.end_ns, 9);
    assert_string_equal(outcome.rate_unit, "");
    merge(LAB_PLAN_PER_RANK, NULL, "", "[{\"simulated\":true,\"end_ns\":4}]");
    assert_int_equal(outcome.end_ns, 5);
}

/* --- GPUs --- */

enum { UTILIZATION, MEMORY, POWER, HEAT, CLOCK, REASONS, DRAM, ENERGY, PROCESSES, COLUMNS };

static const struct lab_column columns[COLUMNS] = {
    {LAB_METRIC_UTILIZATION, -1}, {LAB_METRIC_MEMORY_USED, -1}, {LAB_METRIC_POWER, -1},
    {LAB_METRIC_TEMPERATURE, -1}, {LAB_METRIC_SM_CLOCK, -1},    {LAB_METRIC_CLOCK_REASONS, -1},
    {LAB_METRIC_DRAM_ACTIVE, -1}, {LAB_METRIC_ENERGY, -1},      {LAB_METRIC_PROCESSES, -1}};

enum { GPU_0, SLICE, GPU_1, HOST };

static struct lab_entity entity(int number) {
    return (struct lab_entity){.kind = number == SLICE  ? LAB_ENTITY_MIG
                                       : number == HOST ? LAB_ENTITY_MEMORY
                                                        : LAB_ENTITY_GPU,
                               .index = number == GPU_1,
                               .id = (const char *[]){"GPU-a", "MIG-b", "GPU-c", "host"}[number],
                               .name = "Fake",
                               .pci = "",
                               .node = -1,
                               .parent = number == SLICE ? GPU_0 : -1,
                               .columns = columns,
                               .column_count = COLUMNS};
}

static int64_t at(double seconds) {
    return (int64_t)(seconds * 1e9 + 0.5);
}

/* One tick each 100 ms from 97 s to 110 s: 100 W and 50% until 105 s, then 200 W and 70%; 1.5 GHz,
 * and 1.4 at 106 s; 60 degrees, and 65 at 104 s; 512 MiB, and 768 at 101 s; reasons from 104 s on,
 * as long as `held_s`. What a slice has is its memory, a quarter. */
static void record_gpus(int64_t reasons, double held_s) {
    struct lab_recorder_setup setup = {.interval_ns = at(0.1), .note = ""};
    ASSERT_OK(lab_recorder_attach(store, &setup, &recorder, err));
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    for (int i = GPU_0; i <= HOST; i++) {
        struct lab_entity one = entity(i);
        sink.entity(sink.state, i, &one);
    }
    int64_t energy = 1000;
    for (int tick = 970; tick <= 1100; tick++)
        for (int i = GPU_0; i <= GPU_1; i++) {
            int64_t watts = tick < 1050 ? 100 : 200;
            energy += i == GPU_0 ? watts * 100 : 0;
            int64_t values[COLUMNS] = {
                [UTILIZATION] = tick < 1050 ? 50 : 70,
                [MEMORY] = (tick == 1010 ? 768 : 512) * INT64_C(1024) / (i == SLICE ? 4 : 1),
                [POWER] = watts * 1000,
                [HEAT] = tick == 1040 ? 65 : 60,
                [CLOCK] = tick == 1060 ? 1400 : 1500,
                [REASONS] = tick >= 1040 && tick < 1040 + held_s * 10 ? reasons : 1,
                [DRAM] = 2500,
                [ENERGY] = energy,
                [PROCESSES] = 1};
            uint64_t valid = i == SLICE ? 1 << MEMORY | 1 << PROCESSES : (1 << COLUMNS) - 1;
            sink.tick(sink.state, &(struct lab_tick){.entity = i,
                                                     .time_ns = at(tick / 10.0),
                                                     .cost_ns = -1,
                                                     .values = values,
                                                     .valid = &valid});
        }
}

static void tell(double time_s, int number, enum lab_event_kind kind, int64_t xid,
                 const char *text) {
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    sink.event(sink.state, &(struct lab_sample_event){at(time_s), number, kind, xid, text});
}

static void list_process(double time_s, int pid, int parent, const char *name, int on,
                         int64_t bytes) {
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    struct lab_process_gpu use = {.entity = on, .memory_bytes = bytes, .compute = true};
    struct lab_process_sample process = {.pid = pid,
                                         .parent_pid = parent,
                                         .start = 7,
                                         .user = "ada",
                                         .name = name,
                                         .command = "",
                                         .container = "",
                                         .gpus = &use,
                                         .gpu_count = 1,
                                         .advice = ""};
    sink.processes(sink.state, &(struct lab_process_list){
                                   .time_ns = at(time_s), .items = &process, .count = 1});
}

static void watch(void) {
    struct lab_run_monitor_spec spec = {.store = store, .gpus = true, .simulated = true};
    ASSERT_OK(lab_recorder_close(recorder, err));
    lab_run_monitor_close(monitor);
    ASSERT_OK(lab_run_monitor_open(&spec, &monitor, err));
}

static const pid_t own_pids[] = {40};

/* What the monitor says of a rank on the device that measured between two times. */
static struct lab_value *ask(const char *device, double first_s, double last_s,
                             struct lab_run_monitor_question more) {
    struct lab_run_rank place = {.device = device};
    int64_t first_ns = at(first_s), last_ns = at(last_s);
    struct lab_result *result = lab_arena_alloc(&test_arena, 1, sizeof *result);
    *result = lab_result_none;
    more.ranks = &place;
    more.rank_count = 1;
    more.start_ns = at(100);
    more.now_ns = at(110);
    more.first_ns = &first_ns;
    more.last_ns = &last_ns;
    more.own = own_pids;
    more.own_count = 1;
    lab_run_monitor_answer(monitor, &more, &test_arena, result);
    return lab_result_value(result, LAB_RESULT_RANK_VIEW, NULL, &test_arena);
}

static const struct lab_run_monitor_question plainly;

LAB_TEST(figures_are_of_the_measured_time) {
    record_gpus(1, 0);
    watch();
    /* power and utilisation are means of the second before: of readings from 103 s on */
    assert_has(ask("cuda:0", 102, 108, plainly),
               "{\"gpu\":{\"power_w\":160.784314,\"sm_clock_mhz\":1498.360656,"
               "\"sm_clock_min_mhz\":1400,\"temperature_c\":65,\"gpu_utilization\":0.621569,"
               "\"dram_active\":0.25,\"sm_active\":null,\"too_short_for\":[],"
               "\"gpu_memory_peak_mb\":768,\"whole_gpu\":false,\"energy_j\":910,"
               "\"throttled_s\":{},\"xids\":[],\"foreign_processes\":[]},\"warnings\":[],"
               "\"invalid\":[]}");
    /* a part of a GPU: its own memory, all else of the whole one */
    assert_has(ask("cuda:MIG-b", 102, 108, plainly),
               "{\"gpu\":{\"gpu_memory_peak_mb\":192,\"whole_gpu\":true,\"temperature_c\":65}}");
    assert_has(ask("cuda:0/4.1", 102, 108, plainly),
               "{\"gpu\":{\"gpu_memory_peak_mb\":768,\"whole_gpu\":true}}");
    /* less than a second is too short for some; unknown times are those of the run */
    assert_has(ask("cuda:1", 103.2, 104.1, plainly),
               "{\"gpu\":{\"power_w\":null,\"temperature_c\":65,\"dram_active\":0.25,"
               "\"too_short_for\":[\"energy_j\",\"power_w\",\"gpu_utilization\"]}}");
    assert_has(ask("cuda:0", 103.2, 103.3, plainly),
               "{\"gpu\":{\"dram_active\":null,\"too_short_for\":[\"energy_j\",\"power_w\","
               "\"gpu_utilization\",\"dram_active\"]}}");
    assert_has(ask("cuda:0", 102, 103, plainly),
               "{\"gpu\":{\"power_w\":100,\"energy_j\":100,\"too_short_for\":[]}}");
    assert_has(ask("cuda:0", 0, 0, plainly), "{\"gpu\":{\"power_w\":156.043956}}");
    /* nothing of what is no GPU, or is unknown */
    for (int i = 0; i < 3; i++)
        assert_null(lab_value_get(
            ask((const char *[]){"cpu:0", "cuda:7", "cuda:GPU-x"}[i], 102, 108, plainly), "gpu"));
}

LAB_TEST(held_back_clocks_warn_or_exclude) {
    static const struct {
        int64_t reasons;
        double held_s, last_s;
        bool looked_for;
        const char *expected;
    } cases[] = {
        {0x4, 0.6, 108, false,
         "{\"gpu\":{\"throttled_s\":{\"sw_power_cap\":0.6}},\"invalid\":[],"
         "\"warnings\":[\"clocks were lowered for 10% of the time: power limit\"]}"},
        {0x20, 0.6, 108, false,
         "{\"gpu\":{\"throttled_s\":{\"sw_thermal\":0.6}},\"warnings\":[],\"invalid\":"
         "[\"clocks were lowered for 10% of the time: thermal limit (driver)\"]}"},
        {0x20, 0.6, 108, true,
         "{\"invalid\":[],\"warnings\":[\"clocks were lowered for 10% of the time: thermal limit "
         "(driver)\"]}"},
        /* a twentieth of the time counts, at least two readings */
        {0x20, 0.3, 108, false,
         "{\"invalid\":[\"clocks were lowered for 5% of the time: thermal limit (driver)\"]}"},
        {0x20, 0.2, 108, false, "{\"gpu\":{\"throttled_s\":{\"sw_thermal\":0.2}},\"invalid\":[]}"},
        {0x20, 0.2, 105, false,
         "{\"invalid\":[\"clocks were lowered for 7% of the time: thermal limit (driver)\"]}"},
        {0x20, 0.1, 104.5, false,
         "{\"gpu\":{\"throttled_s\":{\"sw_thermal\":0.1}},\"invalid\":[]}"},
        {0x2, 5, 108, false, "{\"gpu\":{\"throttled_s\":{}},\"warnings\":[],\"invalid\":[]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_run_monitor_question question = {.tells_throttling = cases[i].looked_for};
        if (i > 0) {
            tear_down(NULL);
            set_up(NULL);
        }
        record_gpus(cases[i].reasons, cases[i].held_s);
        watch();
        assert_has(ask("cuda:0", 102, cases[i].last_s, question), cases[i].expected);
    }
}

LAB_TEST(what_the_driver_reports_is_told) {
    record_gpus(1, 0);
    tell(99, GPU_0, LAB_EVENT_XID, 13, "");
    tell(101, GPU_0, LAB_EVENT_XID, 79, "");
    tell(102, GPU_0, LAB_EVENT_XID, 45, "");
    tell(103, GPU_1, LAB_EVENT_XID, 31, "");
    tell(101.5, GPU_0, LAB_EVENT_GAP, 0, "too early");
    tell(103, GPU_0, LAB_EVENT_GAP, 0, "lost");
    tell(108.1, GPU_0, LAB_EVENT_GAP, 0, "too late");
    watch();
    assert_has(ask("cuda:0", 102, 108, plainly),
               "{\"gpu\":{\"xids\":[79,45]},"
               "\"invalid\":[\"the driver reported a fault of the hardware (Xid 79)\"],"
               "\"warnings\":[\"the driver reported an error (Xid 45)\","
               "\"the GPU could not be sampled: lost\"]}");
    assert_has(ask("cuda:1", 102, 108, plainly),
               "{\"gpu\":{\"xids\":[31]},\"warnings\":[],"
               "\"invalid\":[\"the driver reported an error (Xid 31)\"]}");
    for (int i = 0; i < 4; i++) {
        int64_t xid = (int64_t[]){48, 64, 74, 79}[i];
        tear_down(NULL);
        set_up(NULL);
        record_gpus(1, 0);
        tell(100, GPU_0, LAB_EVENT_XID, xid, "");
        watch();
        assert_has(ask("cuda:0", 102, 108, plainly),
                   lab_arena_printf(&test_arena,
                                    "{\"invalid\":[\"the driver reported a fault of the hardware "
                                    "(Xid %lld)\"]}",
                                    (long long)xid));
    }
    /* nothing was read meanwhile */
    assert_has(ask("cuda:0", 109.91, 109.99, plainly), "{\"warnings\":[]}");
    struct lab_run_monitor_question question = plainly;
    assert_has(ask("cuda:0", 110.5, 111, question),
               "{\"warnings\":[\"the GPU could not be sampled: no samples during the run\"]}");
    assert_has(ask("cuda:0", 110.5, 110.8, question), "{\"warnings\":[]}");
}

LAB_TEST(others_on_the_gpu_spoil_the_run) {
    static const struct {
        double time_s;
        int pid, parent;
        const char *name;
        int on;
        int64_t bytes;
        pid_t runner;
        const char *expected;
    } cases[] = {
        {103, 50, 1, "python", GPU_0, 3 << 20, 0,
         "{\"gpu\":{\"foreign_processes\":[{\"pid\":50,\"name\":\"python\",\"user\":\"ada\","
         "\"memory_mb\":3.0}]},\"invalid\":[\"1 other process used the GPU during the run, python "
         "(50) first\"]}"},
        {103, 50, 1, "python", GPU_0, -1, 0,
         "{\"gpu\":{\"foreign_processes\":[{\"pid\":50,\"name\":\"python\",\"user\":\"ada\","
         "\"memory_mb\":null}]}}"},
        /* its own and their children, the service, other workers of the runner, elsewhere */
        {103, 40, 1, "python", GPU_0, 1, 0, "{\"invalid\":[]}"},
        {103, 50, 40, "python", GPU_0, 1, 0, "{\"invalid\":[]}"},
        {103, 50, 1, "nvidia-cuda-mps-server", GPU_0, 1, 0, "{\"invalid\":[]}"},
        {103, 50, 30, "python", GPU_0, 1, 30, "{\"invalid\":[]}"},
        {103, 50, 31, "python", GPU_0, 1, 30,
         "{\"invalid\":[\"1 other process used the GPU during the run, python (50) first\"]}"},
        {103, 50, 1, "python", GPU_1, 1, 0, "{\"invalid\":[]}"},
        /* before the GPU has told it since the run began, the list may be the last run's */
        {100, 50, 1, "python", GPU_0, 1, 0, "{\"invalid\":[]}"},
        {99, 50, 1, "python", GPU_0, 1, 0, "{\"invalid\":[]}"},
        {100.1, 50, 1, "python", GPU_0, 1, 0,
         "{\"invalid\":[\"1 other process used the GPU during the run, python (50) first\"]}"},
        /* a number that means nothing here is another's only if it was there before */
        {103, 50, 0, "", GPU_0, 1, 0, "{\"invalid\":[]}"},
        /* its own, where the run has nothing */
        {103, 40, 1, "python", GPU_1, 1, 0,
         "{\"invalid\":[\"the program used GPU 1, which the run did not have: python (40)\"]}"},
        {99.9, 40, 1, "python", GPU_1, 1, 0, "{\"invalid\":[]}"},
        {100, 40, 1, "python", GPU_1, 1, 0,
         "{\"invalid\":[\"the program used GPU 1, which the run did not have: python (40)\"]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_run_monitor_question question = {.runner = cases[i].runner};
        if (i > 0) {
            tear_down(NULL);
            set_up(NULL);
        }
        record_gpus(1, 0);
        list_process(cases[i].time_s, cases[i].pid, cases[i].parent, cases[i].name, cases[i].on,
                     cases[i].bytes);
        watch();
        assert_has(ask("cuda:0", 102, 108, question), cases[i].expected);
    }
}

LAB_TEST(each_stranger_is_told_once) {
    record_gpus(1, 0);
    list_process(98, 60, 0, "", GPU_0, 1);
    list_process(103, 50, 1, "python", GPU_0, 1);
    list_process(104, 60, 0, "", GPU_0, 1);
    list_process(105, 50, 1, "python", GPU_0, 2);
    list_process(106, 40, 1, "own", GPU_1, 2);
    list_process(107, 40, 1, "own", GPU_1, 2);
    watch();
    assert_has(ask("cuda:MIG-b", 102, 108, plainly),
               "{\"invalid\":[\"2 other processes used the GPU during the run, python (50) first\","
               "\"the program used GPU 1, which the run did not have: own (40)\"]}");
    /* one of no name, on both ranks' GPU, which is one; energy counts once, clocks are the least */
    const struct lab_value *run = merge(LAB_PLAN_PER_RANK, NULL, "cuda:0/2.0 cuda:0/2.1",
                                        "[{\"first_ns\":102000000000,\"last_ns\":108000000000},"
                                        "{\"first_ns\":102000000000,\"last_ns\":108000000000}]");
    assert_has(run, "{\"energy_j\":910,\"gpu_memory_peak_mb\":768,\"sm_clock_mhz\":1498.360656}");
    assert_int_equal(outcome.result->foreign_processes.count, 2);
    assert_null(outcome.result->foreign_processes.items[1].name);
    /* and twice of two */
    run = merge(LAB_PLAN_PER_RANK, NULL, "cuda:0 cuda:1 cpu:0",
                "[{\"first_ns\":102000000000,\"last_ns\":108000000000},"
                "{\"first_ns\":102000000000,\"last_ns\":108000000000},{}]");
    assert_has(run, "{\"gpu_memory_peak_mb\":1536,\"power_w\":321.568627}");
}

static pid_t start(bool stays) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    while (true) {
        if (!stays)
            _exit(0);
        pause();
    }
}

LAB_TEST(a_process_that_ended_at_once_is_its_parents) {
    pid_t program = start(true), ended = start(false);
    assert_int_equal(waitpid(ended, NULL, 0), ended);
    struct lab_process_gpu use = {.entity = 0};
    struct lab_process_sample items[] = {
        {.pid = ended, .parent_pid = program, .name = "bash", .gpus = &use, .gpu_count = 1},
        {.pid = program, .parent_pid = getpid(), .name = "sh", .gpus = &use, .gpu_count = 1},
        {.pid = ended, .parent_pid = 1, .start = 1, .name = "bash", .gpus = &use, .gpu_count = 1}};
    struct lab_process_list list = {.items = items, .count = 3};
    struct monitor_processes processes = {0};
    monitor_processes_note(&processes, &list);
    kill(program, SIGKILL);
    waitpid(program, NULL, 0);
    assert_int_equal(processes.count, 3);
    assert_int_equal(processes.items[0].child, program);
    assert_int_equal(processes.items[1].child, program);
    assert_int_equal(processes.items[2].child, 0);
    lab_mem_free(processes.items);
}

LAB_TEST(the_worst_of_each_reason_is_the_runs) {
    record_gpus(0x24, 0.6);
    watch();
    const struct lab_value *run = merge(LAB_PLAN_PER_RANK, NULL, "cuda:0 cuda:1 cuda:1",
                                        "[{\"first_ns\":104200000000,\"last_ns\":108000000000},"
                                        "{\"first_ns\":102000000000,\"last_ns\":108000000000},"
                                        "{\"first_ns\":104300000000,\"last_ns\":108000000000}]");
    assert_has(run, "{\"throttled_s\":{\"sw_power_cap\":0.6,\"sw_thermal\":0.6}}");
    /* times that can't be the run's aren't believed: those of the whole run are */
    run = merge(LAB_PLAN_PER_RANK, NULL, "cuda:0 cuda:1",
                "[{\"first_ns\":99000000000,\"last_ns\":103000000000},"
                "{\"first_ns\":102000000000,\"last_ns\":111000000000}]");
    assert_has(run, "{\"throttled_s\":{\"sw_power_cap\":0.6,\"sw_thermal\":0.6}}");
}

/* --- simulated samples --- */

LAB_TEST(simulated_ticks_are_recorded_if_they_fit) {
    struct lab_run_monitor_spec spec = {.store = store, .gpus = true, .simulated = true};
    struct lab_entity gpu = entity(GPU_0);
    int64_t values[COLUMNS] = {[POWER] = 50000};
    gpu.simulated = true;
    assert_int_equal(lab_run_monitor_tick(NULL, 0, 0, values, COLUMNS), 0);
    lab_run_monitor_tend(NULL);
    lab_run_monitor_edge(NULL);
    assert_true(lab_run_monitor_is_settled(NULL) && lab_run_monitor_is_cool(NULL));
    assert_int_equal(lab_run_monitor_fd(NULL), -1);
    ASSERT_OK(lab_run_monitor_open(&spec, &monitor, err));
    assert_int_equal(lab_run_monitor_fd(monitor), -1);
    assert_int_equal(lab_run_monitor_tick(monitor, 1, at(101), values, COLUMNS), -1);
    lab_run_monitor_entity(monitor, 1, &gpu);
    assert_int_equal(lab_run_monitor_tick(monitor, -1, at(101), values, COLUMNS), -1);
    assert_int_equal(lab_run_monitor_tick(monitor, 2, at(101), values, COLUMNS), -1);
    assert_int_equal(lab_run_monitor_tick(monitor, 0, at(101), values, COLUMNS), -1);
    assert_int_equal(lab_run_monitor_tick(monitor, 1, at(101), values, COLUMNS - 1), -1);
    for (int i = 0; i <= 40; i++)
        assert_int_equal(lab_run_monitor_tick(monitor, 1, at(101 + i / 10.0), values, COLUMNS), 0);
    lab_run_monitor_tend(monitor);
    assert_has(ask("cuda:0", 102, 104, plainly), "{\"gpu\":{\"power_w\":50,\"simulated\":true}}");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
