/*
 * test_monitor_formats.c: files of other monitors (tests/fixtures/monitors, each as its program
 * writes it): what they hold in our units, and what becomes of broken ones.
 */
#include "monitor_fixture.h"

#include "base/file/file.h"

#include <sys/mman.h>

#define FIXTURES LAB_TEST_SOURCE_DIR "/tests/fixtures/monitors/"

static struct lab_recording *read_file(const char *name) {
    struct lab_recording *recording = lab_arena_alloc(&test_arena, 1, sizeof *recording);
    assert_works(lab_monitor_read(lab_arena_printf(&test_arena, FIXTURES "%s", name), &test_arena,
                                  recording, &err));
    return recording;
}

#define MIB       1048576.0
#define WALL_2026 INT64_C(1794942270) /* 2026-11-17T19:04:30Z, where the driver's files begin */

/* A value of each file: of a kind of device and its number, a metric, a tick. */
static const struct {
    const char *file;
    int devices;
    enum lab_entity_kind kind;
    int index;
    size_t ticks;
    double first_s; /* since 1970, of the device's first tick */
    enum lab_metric_id metric;
    int instance;
    size_t tick;
    double value;
    const char *note; /* NULL = all of it was read */
} cases[] = {
    {"smi_query.csv", 2, LAB_ENTITY_GPU, 1, 3, WALL_2026 + .281, LAB_METRIC_POWER, -1, 0, 498.2},
    {"smi_query.csv", 2, LAB_ENTITY_GPU, 0, 3, WALL_2026 + .272, LAB_METRIC_MEMORY_USED, -1, 2,
     3059 * MIB},
    {"smi_query.csv", 2, LAB_ENTITY_GPU, 1, 3, WALL_2026 + .281, LAB_METRIC_POWER_INSTANT, -1, 2,
     NAN},
    {"smi_query.csv", 2, LAB_ENTITY_GPU, 0, 3, WALL_2026 + .272, LAB_METRIC_CLOCK_REASONS, -1, 0,
     4},
    {"smi_query_nounits.csv", 2, LAB_ENTITY_GPU, 0, 3, WALL_2026 + .272, LAB_METRIC_SM_CLOCK, -1, 1,
     1845},
    {"smi_query_noheader.csv", 2, LAB_ENTITY_GPU, 1, 3, WALL_2026 + .394, LAB_METRIC_MEMORY_USED,
     -1, 1, 3161 * MIB, "by their units they are taken for memory.used"},
    {"smi_query_noheader.csv", 2, LAB_ENTITY_GPU, 0, 3, WALL_2026 + .386, LAB_METRIC_MEMORY_USED,
     -1, 1, 3157 * MIB, "lines of one sample are taken as GPU 0, 1"},
    {"smi_query_no_time.csv", 2, LAB_ENTITY_GPU, 1, 2, 0, LAB_METRIC_UTILIZATION, -1, 1, 84,
     "it has no times"},
    {"smi_dmon.txt", 2, LAB_ENTITY_GPU, 0, 3, 0, LAB_METRIC_UTILIZATION, -1, 2, 35,
     "1 s between samples is assumed"},
    {"smi_dmon.txt", 2, LAB_ENTITY_GPU, 1, 3, 0, LAB_METRIC_MEMORY_TEMPERATURE, -1, 0, NAN,
     "1 s between samples is assumed"},
    {"smi_dmon_dt.txt", 1, LAB_ENTITY_GPU, 0, 4, WALL_2026 + 2, LAB_METRIC_PCIE_RX_RATE, -1, 1,
     24471e6},
    {"smi_dmon_dt.txt", 1, LAB_ENTITY_GPU, 0, 4, WALL_2026 + 2, LAB_METRIC_MEMORY_USED, -1, 3,
     3059 * MIB},
    {"smi_dmon_t.csv", 1, LAB_ENTITY_GPU, 0, 3, 86398, LAB_METRIC_MEMORY_CLOCK, -1, 2, 3201,
     "its date is unknown"},
    {"smi_dmon_noheader.csv", 1, LAB_ENTITY_GPU, 0, 3, WALL_2026 - 118, LAB_METRIC_SM_CLOCK, -1, 0,
     345, "taken for pwr, gtemp, mtemp, sm, mem, enc, dec, mclk, pclk"},
    {"smi_dmon_gpm.txt", 1, LAB_ENTITY_GPU, 0, 3, 0, LAB_METRIC_TENSOR_ACTIVE, -1, 2, 41,
     "1 s between samples is assumed"},
    {"smi_pmon.txt", 2, LAB_ENTITY_GPU, 0, 2, 0, LAB_METRIC_PROCESSES, -1, 0, 2,
     "1 s between samples is assumed"},
    {"smi_pmon_dt.txt", 1, LAB_ENTITY_GPU, 0, 3, WALL_2026 + 9, LAB_METRIC_PROCESSES, -1, 2, 1},
    {"nvitop.csv", 4, LAB_ENTITY_GPU, 1, 3, 1655909466.998188, LAB_METRIC_UTILIZATION, -1, 2, 83},
    {"nvitop.csv", 4, LAB_ENTITY_CPU, 0, 3, 1655909466.998188, LAB_METRIC_CPU_UTILIZATION, -1, 1,
     9.9},
    {"gpustat.json", 2, LAB_ENTITY_GPU, 0, 2, 1744491425.123456, LAB_METRIC_POWER_LIMIT, -1, 1, 300,
     "samples of GPU 2, which has no values: "},
    {"all_smi.json", 4, LAB_ENTITY_GPU, 1, 1, 1786188751, LAB_METRIC_UTILIZATION, -1, 0, NAN},
    {"all_smi.json", 4, LAB_ENTITY_GPU, 0, 1, 1786188751, LAB_METRIC_SM_OCCUPANCY, -1, 0, 42.5},
    {"all_smi.ndjson", 4, LAB_ENTITY_CPU, 0, 3, 1786188751, LAB_METRIC_CORE_UTILIZATION, 1, 2, 7.5},
    {"all_smi.ndjson", 4, LAB_ENTITY_MEMORY, 0, 3, 1786188751, LAB_METRIC_HOST_CACHED, -1, 0,
     8192 * MIB},
};
enum { CASES = sizeof cases / sizeof *cases };

LAB_TEST(files_of_other_monitors_are_read) {
    for (int i = 0; i < CASES; i++) {
        struct lab_recording *recording = read_file(cases[i].file);
        const struct lab_track *track = NULL;
        for (int k = 0; k < recording->track_count; k++)
            if (recording->tracks[k].entity.kind == cases[i].kind &&
                recording->tracks[k].entity.index == cases[i].index)
                track = &recording->tracks[k];
        assert_int_equal(recording->track_count, cases[i].devices);
        if (!track || track->count != cases[i].ticks)
            fail_msg("%s: %zu ticks", cases[i].file, track ? track->count : 0);
        double first_s = (double)lab_recording_wall_ns(recording, track->times_ns[0]) / 1e9;
        double value = track_value(track, cases[i].metric, cases[i].instance, cases[i].tick);
        if (fabs(first_s - cases[i].first_s) > 1e-5)
            fail_msg("%s begins at %f", cases[i].file, first_s);
        if (isnan(value) != isnan(cases[i].value) || fabs(value - cases[i].value) > 1024)
            fail_msg("%s: %s is %g", cases[i].file, lab_metric(cases[i].metric)->name, value);
        if (fabs(cases[i].value) < 1e6 && fabs(value - cases[i].value) > .01)
            fail_msg("%s: %s is %g", cases[i].file, lab_metric(cases[i].metric)->name, value);
        if (cases[i].note ? !is_missing(recording, cases[i].note) : recording->missing != NULL)
            fail_msg("%s: %s", cases[i].file, recording->missing ? recording->missing[0] : "-");
        assert_true(
            lab_monitor_is_file(lab_arena_printf(&test_arena, FIXTURES "%s", cases[i].file)));
    }
}

LAB_TEST(devices_have_their_names) {
    struct lab_recording *smi = read_file("smi_query.csv"), *all = read_file("all_smi.json");
    const struct lab_entity *gpu = &lab_recording_gpu(smi, 1)->entity;
    assert_string_equal(gpu->name, "NVIDIA H200");
    assert_string_equal(gpu->id, "GPU-5f0c21de-9b7a-41c6-8d35-0a1b2c3d4e5f");
    assert_string_equal(gpu->pci, "00000000:00:07.0");
    assert_int_equal(lab_recording_gpu(all, 1)->entity.node, 1);
    assert_null(lab_recording_gpu(read_file("gpustat.json"), 2)); /* which is lost */
}

static const struct {
    const char *file;
    size_t lists, list;
    int count, at;
    int32_t pid;
    const char *name;
    int64_t gpu_bytes; /* -1 = unknown; INT64_MIN = of no GPU */
    double sm_percent, cpu_percent;
} process_cases[] = {
    {"smi_pmon.txt", 2, 0, 2, 1, 512, "Xorg :0", -1, 3, NAN},
    {"smi_pmon.txt", 2, 1, 1, 0, 445, "python3", -1, 57, NAN},
    {"smi_pmon_dt.txt", 3, 2, 1, 0, 445, "python3", INT64_C(3050) << 20, 57, NAN},
    {"nvitop.csv", 2, 0, 1, 0, 12345, "", INT64_C(2861) << 20, 48.25, 151.25},
    {"gpustat.json", 2, 1, 1, 0, 4242, "python3", INT64_C(12790) << 20, NAN, 101.2},
    {"all_smi.json", 1, 0, 2, 0, 445, "python3", 3198156800, 57, 99.5},
    {"all_smi.json", 1, 0, 2, 1, 77, "bash", INT64_MIN, NAN, 99.5},
};

LAB_TEST(processes_of_other_monitors_are_read) {
    for (size_t i = 0; i < sizeof process_cases / sizeof *process_cases; i++) {
        struct lab_recording *recording = read_file(process_cases[i].file);
        assert_int_equal(recording->process_count, process_cases[i].lists);
        const struct lab_process_list *list = &recording->processes[process_cases[i].list];
        assert_int_equal(list->count, process_cases[i].count);
        const struct lab_process_sample *process = &list->items[process_cases[i].at];
        assert_int_equal(process->pid, process_cases[i].pid);
        assert_string_equal(process->name, process_cases[i].name);
        assert_true(isnan(process_cases[i].cpu_percent)
                        ? isnan(process->cpu_percent)
                        : process->cpu_percent == process_cases[i].cpu_percent);
        assert_int_equal(process->gpu_count, process_cases[i].gpu_bytes != INT64_MIN);
        if (process->gpu_count == 0)
            continue;
        assert_int_equal(process->gpus[0].memory_bytes, process_cases[i].gpu_bytes);
        assert_true(isnan(process_cases[i].sm_percent)
                        ? isnan(process->gpus[0].sm_percent)
                        : process->gpus[0].sm_percent == process_cases[i].sm_percent);
    }
    assert_string_equal(read_file("gpustat.json")->processes[0].items[0].command,
                        "python3 train.py --batch 256");
}

/* By what names GPUs where no time does: a line of each is a sample. */
LAB_TEST(a_line_of_each_gpu_is_a_sample_each_second) {
    static const char *const names[][2] = {
        {"name", "H100, H200"}, {"uuid", "GPU-1, GPU-2"}, {"pci.bus_id", "0:1:0.0, 0:2:0.0"}};
    struct lab_recording *recording;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LAB_AUTO(str, text);
        int cut = (int)strcspn(names[i][1], ",");
        lab_str_printf(&text, "%s, memory.used [MiB]\n", names[i][0]);
        for (int t = 0; t < 3; t++)
            lab_str_printf(&text, "%.*s, 1 MiB\n%s, 2 MiB\n", cut, names[i][1],
                           names[i][1] + cut + 2);
        recording = read_text(text.text);
        assert_int_equal(recording->track_count, 2);
        assert_int_equal(recording->tracks[1].count, 3);
        assert_int_equal(recording->tracks[1].times_ns[2], 2 * LAB_NS_PER_S);
    }
    assert_int_equal(read_text("memory.used [MiB]\n1 MiB\n")->tracks[0].count, 1);
    /* of uniform pauses none is between samples of one GPU */
    recording = read_text("timestamp, memory.used [MiB]\n2026/11/17 19:04:30.000, 1 MiB\n"
                          "2026/11/17 19:04:30.050, 2 MiB\n2026/11/17 19:04:30.100, 3 MiB\n");
    assert_int_equal(recording->track_count, 1);
    assert_int_equal(recording->tracks[0].count, 3);
}

/* nvidia-smi has a column for each reason, too; columns that nobody knows are named. */
LAB_TEST(reasons_may_have_a_column_each) {
    struct lab_recording *recording =
        read_text("timestamp, index, clocks_event_reasons.sw_power_cap, colour, "
                  "clocks_throttle_reasons.hw_thermal_slowdown, memory.used [MiB]\n"
                  "2026/11/17 19:04:30.000, 0, Active, red, Not Active, 1 MiB\n"
                  "2026/11/17 19:04:31.000, 0, Active, red, Active, 1 MiB\n"
                  "2026/11/17 19:04:32.000, 0, [N/A], red, [N/A], 1 MiB\n");
    static const double bits[] = {0x4, 0x44, NAN};
    for (size_t i = 0; i < 3; i++) {
        double value = track_value(&recording->tracks[0], LAB_METRIC_CLOCK_REASONS, -1, i);
        assert_true(isnan(bits[i]) ? isnan(value) : value == bits[i]);
    }
    assert_string_equal(recording->missing[0], "left out: unknown columns: colour (1)");
}

/* A GPU that gives no values is named. */
LAB_TEST(a_lost_gpu_is_told) {
    struct lab_recording *recording =
        read_text("{\"query_time\": \"2026-11-18T10:00:00\", \"gpus\": [{\"index\": 0, "
                  "\"memory.used\": 1}, {\"index\": 1, \"name\": \"((GPU is lost))\"}]}");
    assert_string_equal(recording->missing[0], "left out: samples of GPU 1, which has no values: "
                                               "((GPU is lost)) (1)");
}

/* Bytes as a file: 0, or -1 with an error of the user's. */
static int try_bytes(const char *bytes, size_t length, struct lab_recording *ret) {
    LAB_AUTO(arena, arena);
    LAB_AUTO_CLOSE int fd = memfd_create("broken", MFD_CLOEXEC);
    assert_true(write(fd, bytes, length) == (ssize_t)length && lseek(fd, 0, SEEK_SET) == 0);
    err = LAB_ERR_INIT;
    int result = lab_monitor_read_text(fd, "broken", &arena, ret, &err);
    if (result < 0)
        assert_int_equal(err.code, LAB_ERR_USER);
    return result;
}

LAB_TEST(what_is_not_known_is_refused_with_its_fields) {
    static const char *const texts[][2] = {
        {"2026/11/17 19:04:30.386, 3059\n", "the first: 2026/11/17 19:04:30.386, 3059"},
        {"memory.used [MiB]\n1 MiB\n2 MiB\n", "add index and timestamp to --query-gpu"},
        {"name, memory.used [MiB]\nH200, 1 MiB\nH200, 2 MiB\n", "names neither GPUs nor times"},
        {"epoch,loss,accuracy\n1,0.5,0.9\n", "the first: epoch, loss, accuracy"},
        {"{\"colour\": \"red\", \"size\": 3}", "the first: colour, size"},
        {"{\"schema\":1,\"header\":true,\"all_smi_version\":\"0.25.0\"}\n", "no value that can"},
        {"# gpu  colour\n# Idx  rgb\n    0  3\n", "the first: gpu, colour"},
        {"timestamp, utilization.gpu [%]\nnoon, 3 %\n", "lines without a valid time or device (1)"},
        {"2026/11/17 19:04:30.386, 0, 3059\n", "put the list of --query-gpu before them"},
        {"2026/11/17 19:04:30.386, 0, 90 %, 81920 MiB, 71680 MiB, 10240 MiB\n", "noheader"},
        {"H200, 10240 MiB, 81920 MiB\n", "Use --format=csv without noheader"},
        {"2026/11/17 19:04:30.386, 40 %, 90 %\n", "Use --format=csv without noheader"},
        {"\x28\xb5\x2f\xfd\x04\x00 …", "unpack it first: zstd -d"},
        {"\x1f\x8b\x08\x08 …", "unpack it first: gunzip"},
        {"\xff\xfei", "is UTF-16: convert it first: iconv"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lab_recording recording;
        if (try_bytes(texts[i][0], strlen(texts[i][0]), &recording) == 0)
            fail_msg("'%s' was read", texts[i][0]);
        assert_contains(err.text, texts[i][1]);
    }
    assert_int_equal(lab_monitor_is_file(FIXTURES "smi_query_noheader_nounits.csv"), false);
    static const char one[] = "memory.used [MiB]\n1 MiB\n"; /* a sample of one GPU */
    struct lab_recording recording;
    assert_int_equal(try_bytes(one, strlen(one), &recording), 0);
}

/* Cut off anywhere, or with a byte changed: fewer values or an error, and never a crash. */
LAB_TEST(broken_files_are_read_in_part_or_refused) {
    const char *last = "";
    for (int i = 0; i < CASES; i++) {
        struct lab_recording recording;
        size_t length;
        char *bytes;
        if (lab_str_equal(cases[i].file, last))
            continue;
        last = cases[i].file;
        assert_works(lab_file_read(lab_arena_printf(&test_arena, FIXTURES "%s", last), 1 << 20,
                                   &test_arena, &bytes, &length, &err));
        for (size_t cut = 1; cut < length; cut += 1 + length / 60)
            try_bytes(bytes, cut, &recording);
        for (size_t at = 0; at < length; at += 1 + length / 60) {
            char old = bytes[at];
            bytes[at] = "0,#[\n\"{-\xff"[at % 9];
            try_bytes(bytes, length, &recording);
            bytes[at] = old;
        }
    }
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = lab_test_in_utc};
