/* test_monitor_export.c: a recording in the formats of other monitors, field by field. */
#include "monitor_fixture.h"

/* --- single --- */

LAB_TEST(a_single_gpu_is_a_list_of_records) {
    struct lab_recording machine = make_machine(3);
    export_as(&machine, LAB_MONITOR_SINGLE, 1);
    struct lab_value *list = parse(written.text, written.length), *first = list->items[0];
    assert_int_equal(list->count, 3);
    assert_string_equal(get_text(first, "timestamp"), "2025-01-15T10:30:00.001");
    assert_string_equal(first->keys[0], "timestamp");
    assert_string_equal(first->keys[1], "gpu_index");
    assert_int_equal(lab_value_get(first, "gpu_index")->integer, 1);
    assert_string_equal(get_text(first, "gpu_name"), "NVIDIA A10G");
    assert_int_equal(lab_value_get(first, "utilization")->integer, 81);
    assert_int_equal(lab_value_get(first, "memory_used")->integer, 12750);
    assert_int_equal(lab_value_get(first, "memory_total")->integer, 24576);
    assert_true(get_number(first, "power") == 150.126);
    assert_int_equal(lab_value_get(first, "temperature")->integer, 71);
    assert_string_equal(lab_value_get(first, "clock_event_reasons")->items[1]->string,
                        "hw_thermal");
    assert_null(lab_value_get(first, "simulated"));
}

LAB_TEST(the_last_value_is_repeated_and_null_is_never_known) {
    struct lab_recording machine = make_machine(3);
    machine.tracks[0].valid[0][1] = machine.tracks[0].valid[3][0] = 0;
    export_as(&machine, LAB_MONITOR_SINGLE, -1);
    struct lab_value *list = parse(written.text, written.length);
    assert_int_equal(lab_value_get(list->items[0], "gpu_index")->integer, 0);
    assert_true(is_null(list->items[0], "power"));
    assert_true(get_number(list->items[1], "power") == 150.125);
    assert_true(get_number(list->items[1], "utilization") ==
                get_number(list->items[0], "utilization"));
    assert_true(get_number(list->items[1], "memory_total") == 24576);
    assert_true(is_null(list->items[1], "fan"));
    assert_true(is_null(list->items[1], "power_limit"));
}

/* "gpu0" is a reader's name for a GPU of which no file told one. */
LAB_TEST(a_uuid_is_not_made_up) {
    static const struct {
        enum lab_monitor_format format;
        const char *list;
    } cases[] = {{LAB_MONITOR_MULTI, "multi_gpu_data"}, {LAB_MONITOR_EXPERIMENT, "gpus"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_recording machine = make_machine(3);
        machine.tracks[0].entity.id = "gpu0";
        export_as(&machine, cases[i].format, -1);
        struct lab_value *all = parse(written.text, written.length);
        all = all->type == LAB_VALUE_LIST ? all : lab_value_get(all, "samples");
        struct lab_value *gpus = lab_value_get(all->items[0], cases[i].list);
        const struct lab_value *uuid = lab_value_get(gpus->items[0], "gpu_uuid");
        assert_true(i == 0 ? uuid && uuid->type == LAB_VALUE_NULL : !uuid);
        assert_non_null(get_text(gpus->items[1], "gpu_uuid"));
    }
}

LAB_TEST(a_tick_without_an_answer_is_no_record) {
    struct lab_recording machine = make_machine(3);
    for (int i = 0; i < GPU_COLUMNS; i++)
        machine.tracks[0].valid[i][1] = 0;
    export_as(&machine, LAB_MONITOR_SINGLE, 0);
    assert_int_equal(parse(written.text, written.length)->count, 2);
}

/* --- multi --- */

LAB_TEST(all_gpus_of_an_interval_are_one_record) {
    struct lab_recording machine = make_machine(3);
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    struct lab_value *list = parse(written.text, written.length);
    assert_int_equal(list->count, 3);
    struct lab_value *record = list->items[0], *gpus = lab_value_get(record, "multi_gpu_data");
    assert_string_equal(get_text(record, "timestamp"), "2025-01-15T10:30:00.000");
    assert_int_equal(gpus->count, 4);
    assert_int_equal(lab_value_get(gpus->items[2], "gpu_index")->integer, 2);
    assert_true(get_number(gpus->items[2], "memory_used") == 12825);
    struct lab_value *sums = lab_value_get(record, "aggregate_stats");
    assert_true(get_number(sums, "total_memory_used") == 51155);
    assert_true(get_number(sums, "total_memory_total") == 98304);
    assert_true(get_number(sums, "total_memory_percent") == 52.04);
    assert_true(get_number(sums, "average_utilization") == 81.5);
    assert_true(get_number(sums, "total_power") == 600.506);
    assert_true(get_number(sums, "max_temperature") == 73);
    assert_int_equal(lab_value_get(sums, "gpu_count")->integer, 4);
}

/* The order in which threads come in says nothing, and lateness below an interval neither. */
LAB_TEST(late_gpus_belong_to_their_interval) {
    struct lab_recording machine = make_machine(3);
    machine.tracks[0].times_ns[1] += 60 * LAB_NS_PER_MS;
    machine.tracks[3].times_ns[2] -= 20 * LAB_NS_PER_MS;
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    struct lab_value *list = parse(written.text, written.length);
    assert_int_equal(list->count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lab_value_get(list->items[i], "multi_gpu_data")->count, 4);
}

LAB_TEST(a_gpu_in_a_gap_is_in_no_sum) {
    struct lab_recording machine = make_machine(4);
    struct lab_track *gone = &machine.tracks[1]; /* answers in the first tick and the last */
    gone->count = 2;
    gone->times_ns[1] = gone->times_ns[3];
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    struct lab_value *list = parse(written.text, written.length);
    assert_int_equal(list->count, 4);
    static const int counts[] = {4, 3, 3, 4};
    for (int i = 0; i < 4; i++) {
        struct lab_value *sums = lab_value_get(list->items[i], "aggregate_stats");
        assert_int_equal(lab_value_get(sums, "gpu_count")->integer, counts[i]);
        assert_int_equal(lab_value_get(list->items[i], "multi_gpu_data")->count, counts[i]);
    }
    struct lab_value *sums = lab_value_get(list->items[1], "aggregate_stats");
    assert_true(get_number(sums, "total_memory_used") == 51155 - 12750);
}

LAB_TEST(sums_are_over_what_is_known) {
    struct lab_recording machine = make_machine(1);
    machine.tracks[0].valid[1][0] = 0; /* memory used of GPU 0 */
    for (int i = 0; i < 4; i++)
        machine.tracks[i].valid[3][0] = 0; /* power of all */
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    struct lab_value *sums =
        lab_value_get(parse(written.text, written.length)->items[0], "aggregate_stats");
    assert_true(get_number(sums, "total_memory_used") == 51155 - 12800);
    assert_true(get_number(sums, "total_memory_total") == 98304);
    assert_true(get_number(sums, "total_memory_percent") == 52.02); /* of the three GPUs */
    assert_true(is_null(sums, "total_power"));
    assert_int_equal(lab_value_get(sums, "gpu_count")->integer, 4);
}

LAB_TEST(what_is_simulated_says_so) {
    struct lab_recording machine = make_machine(2);
    machine.tracks[2].entity.simulated = machine.simulated = true;
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    struct lab_value *record = parse(written.text, written.length)->items[0];
    assert_true(lab_value_get(record, "simulated")->boolean);
    struct lab_value *gpus = lab_value_get(record, "multi_gpu_data");
    assert_null(lab_value_get(gpus->items[1], "simulated"));
    assert_true(lab_value_get(gpus->items[2], "simulated")->boolean);
    export_as(&machine, LAB_MONITOR_PCIE_CSV, -1);
    assert_contains(written.text, "pcie_tx_mb,simulated\n");
    assert_contains(written.text, ",2,2.049,,true\n");
    assert_contains(written.text, ",3,2.049,,false\n");
}

/* --- experiment and system --- */

LAB_TEST(an_experiment_has_the_source_s_fields) {
    struct lab_recording machine = make_machine(12);
    export_as(&machine, LAB_MONITOR_EXPERIMENT, -1);
    struct lab_value *document = parse(written.text, written.length);
    assert_string_equal(get_text(document, "start_time"), "2025-01-15T10:30:00.000");
    struct lab_value *samples = lab_value_get(document, "samples");
    assert_int_equal(samples->count, 2); /* the counters are read again after a second */
    assert_true(get_number(samples->items[0], "timestamp") == 1);
    struct lab_value *gpu = lab_value_get(samples->items[0], "gpus")->items[0];
    assert_int_equal(lab_value_get(gpu, "gpu_id")->integer, 0);
    assert_true(get_number(gpu, "gpu_util") == 80);
    assert_null(lab_value_get(gpu, "mem_util")); /* never has a value */
    assert_true(get_number(gpu, "mem_used_gb") == 12.5);
    assert_true(get_number(gpu, "power_w") == 150.125);
    assert_true(get_number(gpu, "temp_c") == 70);
    /* 50,000 KiB in a second by the counters; 2010 KiB/s by the driver */
    assert_true(get_number(gpu, "pcie_tx_mb") == 51.2);
    assert_true(get_number(gpu, "pcie_rx_mb") == 2.0582);
}

/* As in a study whose runs have one GPU each, and then all: scripts take no null. */
LAB_TEST(an_experiment_has_no_null) {
    struct lab_recording machine = make_machine(31);
    for (int g = 0; g < 2; g++) /* the first two GPUs are at work from 1.2 s on */
        for (size_t i = 0; i < 12; i++)
            for (int c = 0; c < machine.tracks[g].entity.column_count; c++)
                if (machine.tracks[g].valid[c])
                    machine.tracks[g].valid[c][i] = 0;
    export_as(&machine, LAB_MONITOR_EXPERIMENT, -1);
    struct lab_value *samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_true(samples->count > 0 && get_number(samples->items[0], "timestamp") >= 1.2);
    for (int i = 0; i < samples->count; i++) {
        struct lab_value *gpus = lab_value_get(samples->items[i], "gpus");
        for (int g = 0; g < gpus->count; g++)
            for (int k = 0; k < gpus->items[g]->count; k++)
                if (gpus->items[g]->items[k]->type == LAB_VALUE_NULL)
                    fail_msg("sample %d, GPU %d: %s is null", i, g, gpus->items[g]->keys[k]);
    }
}

/* As in a study that has one GPU at work: scripts take s["gpus"][2] for GPU 2. */
LAB_TEST(a_gpu_of_an_experiment_has_its_place) {
    struct lab_recording machine = make_machine(3);
    machine.tracks++; /* GPU 0 isn't in it */
    machine.track_count--;
    machine.tracks[0].count = 0;
    export_as(&machine, LAB_MONITOR_EXPERIMENT, -1);
    struct lab_value *samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_int_equal(samples->count, 2);
    struct lab_value *gpus = lab_value_get(samples->items[0], "gpus");
    assert_int_equal(gpus->count, 4);
    assert_true(is_null(gpus->items[0], "gpu_util") && is_null(gpus->items[1], "pcie_rx_mb"));
    assert_true(get_number(gpus->items[2], "gpu_util") == 82);
}

/* GPU 0 has its first rate after 3.9 s. */
LAB_TEST(an_experiment_waits_two_seconds_at_most) {
    struct lab_recording machine = make_machine(40);
    memset(machine.tracks[0].valid[6], 0, 39);
    export_as(&machine, LAB_MONITOR_EXPERIMENT, -1);
    struct lab_value *samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_int_equal(samples->count, 20);
    assert_true(get_number(samples->items[0], "timestamp") == 2);
}

LAB_TEST(a_record_of_the_system_has_a_cpu_s_value) {
    struct lab_recording machine = make_machine(3);
    for (int column = 0; column < 4; column++) /* a difference needs two readings */
        machine.tracks[4].valid[column][0] = 0;
    export_as(&machine, LAB_MONITOR_SYSTEM, -1);
    struct lab_value *samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_int_equal(samples->count, 2);
    assert_true(get_number(samples->items[0], "timestamp") == 0.1);
    machine.tracks[5].count = 1; /* memory is read less often: the last value stays */
    export_as(&machine, LAB_MONITOR_SYSTEM, -1);
    samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_true(get_number(lab_value_get(samples->items[1], "memory"), "total_gb") == 64);
}

static struct lab_process_sample some_processes[] = {
    {.pid = 4711, .name = "python3.11", .cpu_percent = 99.5, .memory_bytes = INT64_C(32) << 30},
    {.pid = 4712, .name = "bash", .cpu_percent = NAN, .memory_bytes = 1 << 20},
};

LAB_TEST(the_system_has_the_source_s_fields) {
    struct lab_recording machine = make_machine(3);
    struct lab_process_list list = {
        .time_ns = START_NS + 50 * LAB_NS_PER_MS, .items = some_processes, .count = 2};
    machine.processes = &list;
    machine.process_count = 1;
    export_as(&machine, LAB_MONITOR_SYSTEM, -1);
    struct lab_value *document = parse(written.text, written.length);
    struct lab_value *samples = lab_value_get(document, "samples"), *last = samples->items[2];
    assert_int_equal(samples->count, 3);
    struct lab_value *cores = lab_value_get(last, "cpu_percent");
    assert_int_equal(cores->count, 4);
    assert_true(cores->items[0]->number == 12.5);
    assert_int_equal(cores->items[2]->type, LAB_VALUE_NULL); /* is off */
    assert_int_equal(cores->items[3]->integer, 39);
    struct lab_value *memory = lab_value_get(last, "memory");
    assert_true(get_number(memory, "total_gb") == 64 && get_number(memory, "used_gb") == 16);
    assert_true(get_number(memory, "percent") == 37.5);
    assert_string_equal(get_text(last, "numa_stats"),
                        "Per-node numastat info (in MBs):\n"
                        "                Node   0 Node   2    Total\n"
                        "Numa_Hit               3        4        7\n"
                        "Numa_Miss              5        6       11\n"
                        "Numa_Foreign           -        -        -\n"
                        "Other_Node             -        -        -\n");
    struct lab_value *processes = lab_value_get(last, "processes");
    assert_int_equal(processes->count, 2);
    assert_true(get_number(processes->items[0], "memory_percent") == 50);
    assert_true(is_null(processes->items[1], "cpu_percent"));
    struct lab_value *python = lab_value_get(last, "python_processes");
    assert_int_equal(python->count, 1);
    assert_int_equal(lab_value_get(python->items[0], "pid")->integer, 4711);
    assert_true(is_null(samples->items[0], "processes")); /* not read yet then */
}

/* --- tables --- */

LAB_TEST(pcie_rates_are_a_line_each) {
    struct lab_recording machine = make_machine(2);
    export_as(&machine, LAB_MONITOR_PCIE_CSV, -1);
    assert_string_equal(written.text, "timestamp,gpu,pcie_rx_mb,pcie_tx_mb\n"
                                      "1736937000.100000,0,2.049,\n"
                                      "1736937000.101000,1,2.049,\n"
                                      "1736937000.102000,2,2.049,\n"
                                      "1736937000.103000,3,2.049,\n");
}

LAB_TEST(a_counter_that_fell_gives_no_rate) {
    struct lab_recording machine = make_machine(21);
    machine.tracks[0].values[7][10] = 5; /* reset */
    machine.track_count = 1;
    export_as(&machine, LAB_MONITOR_EXPERIMENT, -1);
    struct lab_value *samples = lab_value_get(parse(written.text, written.length), "samples");
    assert_int_equal(samples->count, 1); /* none after the first second */
    double rate = get_number(lab_value_get(samples->items[0], "gpus")->items[0], "pcie_tx_mb");
    assert_true(fabs(rate - (1100000 - 5) * 1024e-6) < 1e-3);
}

LAB_TEST(the_table_has_every_metric) {
    struct lab_recording machine = make_machine(1);
    machine.tracks[0].entity.name = "NVIDIA \"A10G\", 24 GB";
    export_as(&machine, LAB_MONITOR_CSV, -1);
    const char *first = strchr(written.text, '\n') + 1;
    assert_contains(written.text, "timestamp,elapsed_s,kind,index,id,name,simulated,"
                                  "utilization_percent,memory_utilization_percent,"
                                  "memory_used_bytes,");
    static const char line[] = "2025-01-15T10:30:00.000,0.000000,gpu,0,GPU-0,"
                               "\"NVIDIA \"\"A10G\"\", 24 GB\",false,80,,13421772800,,25769803776,"
                               "150.125,,70,";
    assert_int_equal(strncmp(first, line, sizeof line - 1), 0);
    assert_contains(written.text, ",12.5;25;;39,");
    int lines = 0;
    for (const char *at = written.text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 1 + 7);
}

/* --- what is refused --- */

static int take_two(void *pieces, const char *bytes, size_t length) {
    (void)bytes, (void)length;
    return ++*(int *)pieces > 2 ? -1 : 0;
}

LAB_TEST(a_sink_that_takes_no_more_ends_each_format) {
    struct lab_recording machine = make_machine(3000);
    for (int format = 0; format < LAB_MONITOR_FORMAT_COUNT; format++) {
        int pieces = 0;
        LAB_AUTO(doc_sink, out);
        out.write = take_two;
        out.state = &pieces;
        assert_int_equal(
            lab_monitor_export(&machine, (enum lab_monitor_format)format, -1, &out, &err), -1);
        assert_int_equal(pieces, 3);
    }
}

LAB_TEST(a_gpu_that_is_not_there_is_an_error) {
    struct lab_recording machine = make_machine(1);
    assert_int_equal(lab_monitor_export(&machine, LAB_MONITOR_SINGLE, 7, NULL, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "no GPU 7, but 0, 1, 2, 3");
}

LAB_TEST(a_format_that_would_be_empty_is_an_error) {
    struct lab_recording machine = make_machine(1);
    machine.track_count = 4;
    assert_int_equal(lab_monitor_export(&machine, LAB_MONITOR_SYSTEM, -1, NULL, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    machine.tracks += 4;
    machine.track_count = 3;
    assert_int_equal(lab_monitor_export(&machine, LAB_MONITOR_MULTI, -1, NULL, &err), -1);
    assert_contains(err.text, "no GPU");
    assert_int_equal(written.length, 0);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = lab_test_in_utc};
