/*
 * test_monitor_read.c: files of monitors as recordings: ours there and back, others' with all that
 * may be wrong with them, and each cut off at every byte.
 */
#include "monitor_fixture.h"

#define RECORD(stamp, index, used)                                                                 \
    "{\"timestamp\": \"" stamp "\", \"gpu_index\": " #index                                        \
    ", \"gpu_name\": \"NVIDIA A10G\", \"utilization\": 85, \"memory_used\": " #used                \
    ", \"memory_total\": 24576, \"power\": 150}"

static const char three[] = "[" RECORD("2025-01-15T10:30:00", 0, 12800) ",\n" RECORD(
    "2025-01-15T10:30:01", 0, 12801) ",\n" RECORD("2025-01-15T10:30:02", 0, 12802) "]";

/* --- there and back --- */

static struct lab_recording *again(const struct lab_recording *recording,
                                   enum lab_monitor_format format) {
    export_as(recording, format, -1);
    return read_bytes(written.text, written.length);
}

static void assert_same_track(const struct lab_track *a, const struct lab_track *b) {
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->entity.column_count; i++) {
        enum lab_metric_id metric = (enum lab_metric_id)a->entity.columns[i].metric;
        int instance = a->entity.columns[i].instance;
        for (size_t k = 0; k < a->count; k++) {
            double x = track_value(a, metric, instance, k), y = track_value(b, metric, instance, k);
            if (x != y && !(isnan(x) && isnan(y)))
                fail_msg("%s[%d] at %zu: %g became %g", lab_metric(metric)->name, instance, k, x,
                         y);
        }
    }
}

LAB_TEST(our_own_document_gives_everything_back) {
    struct lab_recording machine = make_machine(12);
    machine.tracks[1].entity.simulated = machine.simulated = true;
    machine.tracks[1].values[3][0] = -7; /* a negative power is odd, but it is what was read */
    struct lab_sample_event events[] = {
        {START_NS + 5, 2, LAB_EVENT_GAP, 0, "the driver doesn't answer"},
        {START_NS + 9, -1, LAB_EVENT_MARK, 3, "command began"},
    };
    int64_t nodes[] = {5, 6};
    struct lab_process_gpu on_gpu = {1, 1 << 20, 12.5, NAN, true, false};
    struct lab_process_sample process = {.pid = 7,
                                         .parent_pid = 1,
                                         .start = 99,
                                         .uid = 1000,
                                         .user = "ada",
                                         .name = "python3",
                                         .command = "python3 train.py \"x\"",
                                         .container = "",
                                         .cpu_percent = 101.25,
                                         .memory_bytes = 4096,
                                         .threads = 3,
                                         .cpu_node = 1,
                                         .allowed_nodes = 3,
                                         .node_bytes = nodes,
                                         .node_count = 2,
                                         .gpus = &on_gpu,
                                         .gpu_count = 1,
                                         .placement = LAB_PLACEMENT_CORES,
                                         .advice = "numactl -N 0"};
    struct lab_process_list list = {START_NS + 7, &process, 1, 12};
    const char *missing[] = {"the last second", NULL};
    machine.events = events;
    machine.event_count = 2;
    machine.processes = &list;
    machine.process_count = 1;
    machine.missing = missing;
    struct lab_recording *back = again(&machine, LAB_MONITOR_JSON);
    assert_int_equal(back->track_count, 7);
    for (int i = 0; i < 7; i++) {
        const struct lab_entity *a = &machine.tracks[i].entity, *b = &back->tracks[i].entity;
        assert_same_track(&machine.tracks[i], &back->tracks[i]);
        assert_memory_equal(machine.tracks[i].times_ns, back->tracks[i].times_ns,
                            machine.tracks[i].count * sizeof(int64_t));
        assert_int_equal(a->kind, b->kind);
        assert_string_equal(a->id, b->id);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->simulated, b->simulated);
    }
    assert_string_equal(back->maker, "gpulab 0.1.0");
    assert_string_equal(back->label, "machine");
    assert_int_equal(back->interval_ns, machine.interval_ns);
    assert_true(back->simulated);
    assert_string_equal(back->missing[0], "the last second");
    assert_null(back->missing[1]);
    assert_int_equal(back->epochs[0].offset_ns, OFFSET_NS);
    assert_string_equal(back->epochs[0].host, "node7");
    assert_int_equal(back->event_count, 2);
    assert_int_equal(back->events[0].entity, 2);
    assert_int_equal(back->events[0].kind, LAB_EVENT_GAP);
    assert_string_equal(back->events[0].text, events[0].text);
    const struct lab_process_sample *read = &back->processes[0].items[0];
    assert_int_equal(back->processes[0].left_out, 12);
    assert_string_equal(read->command, process.command);
    assert_int_equal(read->node_bytes[1], 6);
    assert_int_equal(read->gpus[0].entity, 1);
    assert_true(read->gpus[0].sm_percent == 12.5 && isnan(read->gpus[0].memory_percent));
    assert_int_equal(read->placement, LAB_PLACEMENT_CORES);
}

LAB_TEST(the_table_gives_every_metric_back) {
    struct lab_recording machine = make_machine(12);
    struct lab_recording *back = again(&machine, LAB_MONITOR_CSV);
    assert_null(back->missing);
    assert_int_equal(back->track_count, 7);
    assert_same_track(&machine.tracks[3], lab_recording_gpu(back, 3));
    assert_same_track(&machine.tracks[4], track_of(back, LAB_ENTITY_CPU));
    assert_same_track(&machine.tracks[6], track_of(back, LAB_ENTITY_NUMA));
    const struct lab_track *gpu = lab_recording_gpu(back, 3);
    assert_int_equal(lab_recording_wall_ns(back, gpu->times_ns[1]),
                     START_NS + OFFSET_NS + 103 * LAB_NS_PER_MS);
}

LAB_TEST(gpus_come_back_from_each_format) {
    struct lab_recording machine = make_machine(12);
    static const enum lab_monitor_format formats[] = {LAB_MONITOR_SINGLE, LAB_MONITOR_MULTI,
                                                      LAB_MONITOR_EXPERIMENT};
    for (int i = 0; i < 3; i++) {
        struct lab_recording *back = again(&machine, formats[i]);
        const struct lab_track *gpu = lab_recording_gpu(back, 0);
        assert_null(back->missing);
        assert_int_equal(back->track_count, formats[i] == LAB_MONITOR_SINGLE ? 1 : 4);
        /* an experiment begins with the first rates of all GPUs */
        size_t left_out = formats[i] == LAB_MONITOR_EXPERIMENT ? 10 : 0, last = 11 - left_out;
        int64_t late_ns = (int64_t)left_out * 100 * LAB_NS_PER_MS;
        assert_int_equal(gpu->count, 12 - left_out);
        assert_string_equal(gpu->entity.name, "NVIDIA A10G");
        assert_true(track_value(gpu, LAB_METRIC_MEMORY_USED, -1, last) == 12800 * 1048576.0);
        assert_true(track_value(gpu, LAB_METRIC_POWER, -1, 1) == 150.125);
        assert_true(track_value(gpu, LAB_METRIC_PCIE_RX_RATE, -1, 1) ==
                    (double)(2001 + left_out) * 1024);
        assert_true(track_value(gpu, LAB_METRIC_CLOCK_REASONS, -1, 0) == 0x44);
        assert_true(left_out || isnan(track_value(gpu, LAB_METRIC_PCIE_RX_RATE, -1, 0)));
        assert_int_equal(lab_recording_wall_ns(back, gpu->times_ns[0]),
                         START_NS + OFFSET_NS + late_ns);
        assert_int_equal(gpu->times_ns[last] - gpu->times_ns[0], 1100 * LAB_NS_PER_MS - late_ns);
    }
    struct lab_recording *back = again(&machine, LAB_MONITOR_PCIE_CSV);
    assert_int_equal(lab_recording_gpu(back, 2)->count, 11);
    assert_true(track_value(lab_recording_gpu(back, 2), LAB_METRIC_PCIE_RX_RATE, -1, 0) ==
                2001 * 1024);
}

LAB_TEST(a_place_without_a_value_is_no_tick) {
    struct lab_recording machine = make_machine(40);
    machine.tracks[0].count = 3; /* of 0.1 s each; its values are held for 2 s more */
    struct lab_recording *back = again(&machine, LAB_MONITOR_EXPERIMENT);
    assert_int_equal(lab_recording_gpu(back, 0)->count, 12);
    assert_int_equal(lab_recording_gpu(back, 1)->count, 30);
}

LAB_TEST(the_host_comes_back) {
    struct lab_recording machine = make_machine(3);
    struct lab_process_sample process = {
        .pid = 9, .name = "python", .cpu_percent = 50, .memory_bytes = 1 << 30};
    struct lab_process_list list = {START_NS, &process, 1, 0};
    machine.processes = &list;
    machine.process_count = 1;
    struct lab_recording *back = again(&machine, LAB_MONITOR_SYSTEM);
    assert_same_track(&machine.tracks[5], track_of(back, LAB_ENTITY_MEMORY));
    assert_same_track(&machine.tracks[6], track_of(back, LAB_ENTITY_NUMA));
    assert_true(track_value(track_of(back, LAB_ENTITY_CPU), LAB_METRIC_CORE_UTILIZATION, 3, 2) ==
                39);
    assert_int_equal(back->process_count, 1); /* repeated in each sample, but one list */
    assert_int_equal(back->processes[0].items[0].pid, 9);
    assert_int_equal(back->processes[0].items[0].memory_bytes, 1 << 30);
}

/* --- what others wrote --- */

LAB_TEST(the_guide_s_experiment_is_read) {
    struct lab_recording *recording = read_text(
        "{\n  \"start_time\": \"2025-07-01T12:00:00.250000\",\n  \"samples\": [\n    {\n"
        "      \"timestamp\": 0.5,\n      \"gpus\": [\n        {\n          \"gpu_id\": 0,\n"
        "          \"gpu_util\": 97,\n          \"mem_util\": 40,\n"
        "          \"mem_used_gb\": 3.5,\n          \"power_w\": 301.25,\n"
        "          \"temp_c\": 61,\n          \"pcie_tx_mb\": 0,\n          \"pcie_rx_mb\": 2.048\n"
        "        }\n      ]\n    }\n  ]\n}");
    const struct lab_track *gpu = lab_recording_gpu(recording, 0);
    assert_null(recording->missing);
    assert_true(track_value(gpu, LAB_METRIC_UTILIZATION, -1, 0) == 97);
    assert_true(track_value(gpu, LAB_METRIC_MEMORY_USED, -1, 0) == 3.5 * 1073741824);
    assert_true(track_value(gpu, LAB_METRIC_PCIE_RX_RATE, -1, 0) == 2048000);
    assert_int_equal(lab_recording_wall_ns(recording, gpu->times_ns[0]),
                     INT64_C(1751371200750) * LAB_NS_PER_MS);
}

LAB_TEST(the_guide_s_system_is_read) {
    struct lab_recording *recording =
        read_text("{\"start_time\": \"2025-07-01T12:00:00\", \"samples\": [{\"timestamp\": 0.1, "
                  "\"cpu_percent\": [10.0, 30.0], \"memory\": {\"total_gb\": 100, \"used_gb\": 20, "
                  "\"percent\": 25.0}, \"numa_stats\": \"\\nPer-node numastat info (in MBs):\\n"
                  "                Node 0 Node 1  Total\\n                ------ ------ ------\\n"
                  "Numa_Hit           100    200    300\\nNuma_Miss            0      7      7\\n"
                  "Interleave_Hit       1      1      2\\n\", \"python_processes\": "
                  "[{\"pid\": 12, \"cpu_percent\": 5.5, \"memory_percent\": 1.0}]}]}");
    assert_null(recording->missing);
    const struct lab_track *numa = track_of(recording, LAB_ENTITY_NUMA);
    assert_true(track_value(numa, LAB_METRIC_NODE_HIT, 1, 0) == 200 * 256);
    assert_true(track_value(numa, LAB_METRIC_NODE_MISS, 1, 0) == 7 * 256);
    assert_true(isnan(track_value(numa, LAB_METRIC_NODE_FOREIGN, 0, 0)));
    const struct lab_track *cpu = track_of(recording, LAB_ENTITY_CPU);
    assert_true(track_value(cpu, LAB_METRIC_CPU_UTILIZATION, -1, 0) == 20);
    assert_true(track_value(track_of(recording, LAB_ENTITY_MEMORY), LAB_METRIC_HOST_AVAILABLE, -1,
                            0) == 75 * 1073741824.0);
    assert_int_equal(recording->processes[0].items[0].pid, 12);
}

LAB_TEST(the_guide_s_pcie_log_is_read) {
    struct lab_recording *recording =
        read_text("timestamp,gpu,pcie_rx_mb,pcie_tx_mb\n1751371200.123456789,0, 12, 34\n"
                  "1751371200.123456789,1,none,[N/A]\n\n1751371200.223456789,0, 13, 35\n");
    const struct lab_track *gpu = lab_recording_gpu(recording, 0);
    assert_int_equal(gpu->count, 2);
    assert_int_equal(gpu->times_ns[0], INT64_C(1751371200123456789));
    assert_true(fabs(track_value(gpu, LAB_METRIC_PCIE_TX_RATE, -1, 1) - 35e6) < 1024);
    assert_true(
        isnan(track_value(lab_recording_gpu(recording, 1), LAB_METRIC_PCIE_TX_RATE, -1, 0)));
    assert_true(is_missing(recording, "fields that are not numbers (1)"));
}

/* One object, objects behind each other, a line each, lists behind each other. */
LAB_TEST(records_may_stand_in_any_way) {
#define A RECORD("2025-01-15T10:30:00", 0, 12800)
#define B RECORD("2025-01-15 10:30:01.5", 0, 12801)
    static const char *const texts[] = {
        A,
        A B,
        A "\n" B "\n",
        "[" A "]\n[" B "]",
        "\xef\xbb\xbf[ " A " ,\r\n\t" B "\r\n]\r\n",
        "[" A " " B "]",
        "{\"samples\": [" A "," B "]}",
        "{\"label\": \"x\", \"samples\": [" A "]}",
    };
    static const size_t counts[] = {1, 2, 2, 2, 2, 2, 2, 1};
    for (int i = 0; i < 8; i++) {
        struct lab_recording *recording = read_text(texts[i]);
        const struct lab_track *gpu = lab_recording_gpu(recording, 0);
        assert_non_null(gpu);
        assert_int_equal(gpu->count, counts[i]);
        assert_null(recording->missing);
    }
}

LAB_TEST(python_s_numbers_are_read) {
    struct lab_recording *recording = read_text(
        "[{\"timestamp\": 1736937000.25, \"gpu_index\": 0, \"gpu_name\": \"NaN \\\" Infinity\", "
        "\"utilization\": NaN, \"memory_used\": 1, \"power\": -Infinity, \"temperature\": 50}]");
    const struct lab_track *gpu = lab_recording_gpu(recording, 0);
    assert_null(recording->missing);
    assert_string_equal(gpu->entity.name, "NaN \" Infinity");
    assert_true(isnan(track_value(gpu, LAB_METRIC_UTILIZATION, -1, 0)));
    assert_true(track_value(gpu, LAB_METRIC_TEMPERATURE, -1, 0) == 50);
    assert_int_equal(gpu->times_ns[0], INT64_C(1736937000250) * LAB_NS_PER_MS);
}

LAB_TEST(wrong_types_are_left_out_and_told) {
    struct lab_recording *recording = read_text(
        "[{\"timestamp\": \"2025-01-15T10:30:00\", \"gpu_index\": 0, \"utilization\": \"85 %\", "
        "\"memory_used\": 1e300, \"power\": [1], \"temperature\": 50},"
        "{\"timestamp\": \"yesterday\", \"gpu_index\": 0, \"utilization\": 1},"
        "{\"timestamp\": 1, \"gpu_index\": -3, \"utilization\": 1},"
        "{\"colour\": \"red\"}, 17, \"text\"]");
    const struct lab_track *gpu = lab_recording_gpu(recording, 0);
    assert_int_equal(gpu->count, 1);
    assert_true(track_value(gpu, LAB_METRIC_TEMPERATURE, -1, 0) == 50);
    assert_true(is_missing(recording, "fields that are not numbers (3)"));
    assert_true(is_missing(recording, "records without a time stamp (1)"));
    assert_true(is_missing(recording, "GPUs without a valid index (1)"));
    assert_true(is_missing(recording, "records of an unknown format (1)"));
    assert_true(is_missing(recording, "bytes that belong to no record (8)"));
}

LAB_TEST(times_may_be_relative) {
    struct lab_recording *recording =
        read_text("[{\"timestamp\": 0.5, \"gpu_index\": 0, \"utilization\": 1}]");
    assert_int_equal(lab_recording_gpu(recording, 0)->times_ns[0], LAB_NS_PER_S / 2);
    assert_true(is_missing(recording, "its date is unknown"));
}

LAB_TEST(zones_are_understood) {
    static const char *const stamps[] = {"2025-01-15T10:30:00Z", "2025-01-15T11:30:00+01:00",
                                         "2025-01-15T05:30:00.000000-0500", "1736937000",
                                         "1736937000000"};
    for (int i = 0; i < 5; i++) {
        int64_t time_ns = 0;
        assert_int_equal(lab_monitor_parse_time(stamps[i], &time_ns), LAB_MONITOR_TIME_WALL);
        assert_int_equal(time_ns, INT64_C(1736937000) * LAB_NS_PER_S);
    }
    int64_t time_ns;
    static const char *const wrong[] = {
        "", "x", "2025-13-01T00:00:00", "2025-01-15T10:30:00 noon", "1e40", "nan"};
    for (int i = 0; i < 6; i++)
        assert_int_equal(lab_monitor_parse_time(wrong[i], &time_ns), LAB_MONITOR_TIME_NONE);
}

/* A wall clock set back an hour: the steady time goes on, the wall clock's is as it was written. */
LAB_TEST(a_clock_set_back_begins_an_epoch) {
    struct lab_recording *recording = read_text(
        "[" RECORD("2025-01-15T10:30:00", 0, 1) "," RECORD("2025-01-15T10:30:01", 0, 2) "," RECORD(
            "2025-01-15T09:30:02", 0, 3) "," RECORD("2025-01-15T09:30:03", 0, 4) "]");
    const struct lab_track *gpu = lab_recording_gpu(recording, 0);
    assert_int_equal(gpu->count, 4);
    for (int i = 1; i < 4; i++)
        assert_int_equal(gpu->times_ns[i] - gpu->times_ns[i - 1], LAB_NS_PER_S);
    assert_int_equal(recording->epoch_count, 2);
    assert_int_equal(lab_recording_wall_ns(recording, gpu->times_ns[1]),
                     INT64_C(1736937001) * LAB_NS_PER_S);
    assert_int_equal(lab_recording_wall_ns(recording, gpu->times_ns[3]),
                     INT64_C(1736933403) * LAB_NS_PER_S);
    assert_int_equal(recording->event_count, 1);
    assert_int_equal(recording->events[0].kind, LAB_EVENT_CLOCK);
    assert_int_equal(recording->events[0].number, -3600 * LAB_NS_PER_S);
}

/* Files of several GPUs, one behind the other. */
LAB_TEST(each_gpu_has_its_own_time) {
    struct lab_recording *recording = read_text("[" RECORD("2025-01-15T10:30:00", 0, 1) "," RECORD(
        "2025-01-15T10:30:09", 0, 2) "]\n"
                                     "[" RECORD("2025-01-15T10:30:00", 1,
                                                1) "," RECORD("2025-01-15T10:30:09", 1, 2) "]");
    assert_int_equal(recording->epoch_count, 1);
    assert_int_equal(lab_recording_gpu(recording, 1)->times_ns[0],
                     lab_recording_gpu(recording, 0)->times_ns[0]);
}

/* --- what is broken --- */

static size_t whole_records(const char *text, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '}';
    return count;
}

LAB_TEST(a_list_cut_off_anywhere_gives_all_whole_records) {
    size_t length = strlen(three);
    for (size_t cut = 1; cut <= length; cut++) {
        struct lab_recording *recording = read_bytes(three, cut);
        const struct lab_track *gpu = lab_recording_gpu(recording, 0);
        assert_int_equal(gpu ? gpu->count : 0, whole_records(three, cut));
        assert_int_equal(is_missing(recording, "cut off"), cut < length);
    }
}

/* No byte at which any of our formats fails, and never more than there was. */
LAB_TEST(every_format_can_be_cut_off_anywhere) {
    struct lab_recording machine = make_machine(2);
    for (int format = 0; format < LAB_MONITOR_FORMAT_COUNT; format++) {
        export_as(&machine, (enum lab_monitor_format)format, -1);
        size_t last = 0;
        for (size_t cut = 1; cut <= written.length; cut += format == LAB_MONITOR_CSV ? 13 : 7) {
            struct lab_recording recording = {0};
            LAB_AUTO(arena, own);
            const char *path = test_path("cut");
            test_write_bytes(path, written.text, cut);
            int fd = open(path, O_RDONLY);
            if (lab_monitor_read_text(fd, path, &own, &recording, &err) < 0)
                assert_int_equal(err.code, LAB_ERR_USER);
            size_t ticks = 0;
            for (int i = 0; i < recording.track_count; i++)
                ticks += recording.tracks[i].count;
            assert_true(ticks >= last && ticks <= 14);
            last = ticks;
            close(fd);
        }
    }
}

/* The first writer was killed, and another went on behind it. */
LAB_TEST(a_record_that_never_ends_costs_only_itself) {
    static const char *const texts[] = {
        "[\n" RECORD("2025-01-15T10:30:00", 0,
                     1) ",\n{\"timestamp\": \"2025-01-15T10:30:01\", "
                        "\"gpu_ind\n" RECORD("2025-01-15T10:30:02", 0,
                                             3) ",\n" RECORD("2025-01-15T10:30:03", 0, 4) "\n]\n",
        RECORD("2025-01-15T10:30:00", 0,
               1) "\n{\"timestamp\": \"2025-01-15T10:30:01\", "
                  "\"gpu_ind\n" RECORD("2025-01-15T10:30:02", 0,
                                       3) "\n" RECORD("2025-01-15T10:30:03", 0, 4) "\n",
        "[\n" RECORD("2025-01-15T10:30:00", 0, 1) ",\n{\"timestamp\": 17, \"gpu_index\": [0, "
                                                  "\n" RECORD("2025-01-15T10:30:02", 0,
                                                              3) ",\n" RECORD("2025-01-15T10:30:03",
                                                                              0, 4) "\n]\n",
    };
    for (int i = 0; i < 3; i++) {
        struct lab_recording *recording = read_text(texts[i]);
        assert_int_equal(lab_recording_gpu(recording, 0)->count, 3);
        assert_true(is_missing(recording, "records that don't end (1)"));
    }
}

LAB_TEST(a_record_that_is_no_json_costs_only_itself) {
    struct lab_recording *recording = read_text("[" RECORD(
        "2025-01-15T10:30:00", 0, 1) ", {\"a\" 5}, " RECORD("2025-01-15T10:30:01", 0, 2) "]");
    assert_int_equal(lab_recording_gpu(recording, 0)->count, 2);
    assert_true(is_missing(recording, "records that are invalid JSON (1)"));
}

LAB_TEST(a_table_s_last_line_may_be_cut_off) {
    struct lab_recording *recording = read_text(
        "timestamp,gpu,pcie_rx_mb,pcie_tx_mb\n1751371200.1,0,12,34\n"
        "1751371200.2,0,12\n1751371200.3,\"0,12,34\n1751371200.4,0,1,2\n1751371200.5,0,1,2");
    assert_int_equal(lab_recording_gpu(recording, 0)->count, 2);
    assert_true(is_missing(recording, "cut off"));
    assert_true(is_missing(recording, "lines with more or fewer fields than the first (1)"));
    assert_true(is_missing(recording, "records that don't end (1)"));
}

LAB_TEST(foreign_files_are_refused) {
    static const char *const texts[] = {
        "", " \n", "hello", "{}", "{\"a\": 1}", "[1, 2]", "[{\"a\": 1}]", "a,b\n1,2\n",
        "{\"run_id\"", "\1\2\3",
        /* a time and a device alone are no value */
        "[{\"timestamp\": 1736937000, \"gpu_index\": 0, \"colour\": 1}]",
        "timestamp, index, name\n2025/01/15 10:30:00.000, 0, A10G\n"};
    for (int i = 0; i < 12; i++) {
        struct lab_recording recording;
        const char *path = test_path("foreign");
        test_write_bytes(path, texts[i], strlen(texts[i]));
        int fd = open(path, O_RDONLY);
        err = LAB_ERR_INIT;
        if (lab_monitor_read_text(fd, path, &test_arena, &recording, &err) == 0)
            fail_msg("'%s' was read", texts[i]);
        assert_int_equal(err.code, LAB_ERR_USER);
        assert_contains(err.text, "foreign");
        close(fd);
    }
}

LAB_TEST(an_empty_list_is_an_empty_recording) {
    static const char *const texts[] = {
        "[]", "[\n]\n", "[", "{\"start_time\": \"2025-01-15T10:30:00\", \"samples\": []}"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(read_text(texts[i])->track_count, 0);
}

/* A line of many records without an end each must not take its length squared. */
LAB_TEST(garbage_ends) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "[\n" RECORD("2025-01-15T10:30:00", 0, 1));
    lab_str_add_repeat(&text, "\n{\"", 100000);
    assert_int_equal(lab_recording_gpu(read_bytes(text.text, text.length), 0)->count, 1);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = lab_test_in_utc};
