/* Files that tuners left, and recordings laid beside them, as analyses of studies see them. */
#include "analysis/analysis_study.h"
#include "load/studies_files.h"

#include "analysis/analysis.h"
#include "base/file/file.h"
#include "base/str.h"
#include "store/tuning/timing_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define START_S 1763200000 /* of every file here, since 1970 */

static int set_up(void **state) {
    (void)state;
    setenv("XDG_STATE_HOME", "/nonexistent", 1); /* no study is known by its name */
    return 0;
}

static const char *write_text(const char *name, const char *text) {
    const char *path = test_path("%s", name);
    test_write(path, text);
    return path;
}

/* Whether another GPU is busy in that tenth of a second: by no rhythm, so that few windows tell. */
static bool is_busy(int tenth) {
    return (unsigned)tenth * 2654435761U >> 17 & 1;
}

/* 400 timings, 25 ms apart, of 10 ms, or of 12 ms beside a busy GPU; two configurations in turn. */
static const char *write_timings(const char *name, double offset_s, bool stamped) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(&text, "{\"kernel_name\": \"gemm\", \"gpu\": \"cuda:0\", \"best_config\": "
                       "{\"tile\": 64, \"warps\": 4}, \"best_time_ms\": 10, "
                       "\"detailed_timings\": [");
    for (int i = 0; i < 400; i++) {
        double at_s = 0.025 * i, time_ms = is_busy(i / 4) ? 12 : 10;
        time_ms += 0.01 * (i * 7 % 13); /* equal ones have no spread */
        lab_str_printf(&text, "%s{\"config\": \"tile=%d,warps=4\", \"time_ms\": %.3f",
                       i ? ", " : "", i % 2 ? 32 : 64, i % 2 ? 3 * time_ms : time_ms);
        if (stamped)
            lab_str_printf(&text, ", \"timestamp\": %.3f", START_S + offset_s + at_s);
        lab_str_add(&text, "}");
    }
    lab_str_add(&text, "]}");
    const char *path = write_text(name, text.text);
    lab_str_release(&text);
    return path;
}

/* Of PCIe rates, every 0.1 s; each tells of the time since the one before. */
static const char *write_recording(const char *name, double offset_s) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(&text, "timestamp,gpu,pcie_rx_mb,pcie_tx_mb\n");
    for (int i = 0; i < 100; i++)
        lab_str_printf(&text, "%.3f,1,%d,%d\n", START_S + offset_s + 0.1 * i,
                       is_busy(i - 1) ? 900 + i % 7 : 100 + i % 7, i % 3);
    const char *path = write_text(name, text.text);
    lab_str_release(&text);
    return path;
}

static void read_table(const char *path, unsigned needs, struct lab_study_table *ret_table) {
    struct lab_studies_timing timing = {path, ""};
    assert_int_equal(lab_studies_read_timings(&timing, 1, needs, &test_arena, ret_table, NULL), 0);
}

/* --- words --- */

LAB_TEST(test_words_are_told_by_what_they_hold) {
    const char *a = write_timings("a.json", 0, true), *b = write_timings("b.json", 0, true);
    const char *recording = write_recording("pcie.log", 0);
    const char *list = lab_arena_printf(&test_arena, "%s,%s", a, b);
    const char *words[] = {lab_arena_printf(&test_arena, "baseline=%s", list), recording,
                           "numa_study"};
    struct lab_studies_words sorted;

    assert_true(lab_studies_is_list(list, &test_arena));
    assert_false(lab_studies_is_list(a, &test_arena));
    assert_int_equal(lab_studies_sort(words, 3, &test_arena, &sorted, NULL), 0);

    assert_int_equal(sorted.timing_count, 2);
    assert_string_equal(sorted.timings[1].path, b);
    assert_string_equal(sorted.timings[1].phase, "baseline");
    assert_int_equal(sorted.recording_count, 1);
    assert_string_equal(sorted.recordings[0].path, recording);
    assert_int_equal(sorted.study_count, 1);
    assert_string_equal(sorted.studies[0], "numa_study");
}

LAB_TEST(test_a_folder_is_looked_through) {
    write_timings("baseline_0_gemm.json", 0, true);
    write_recording("pcie.log", 0);
    write_text("notes.txt", "nothing of the kind");
    const char *word = test_folder();
    struct lab_studies_words sorted;
    assert_int_equal(lab_studies_sort(&word, 1, &test_arena, &sorted, NULL), 0);
    assert_int_equal(sorted.timing_count, 1);
    assert_int_equal(sorted.recording_count, 1);
    assert_false(sorted.recordings[0].named);
    assert_int_equal(sorted.study_count, 0);
}

LAB_TEST(test_recordings_alone_are_refused) {
    const char *recording = write_recording("pcie.log", 0);
    struct lab_studies_words sorted;
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_studies_sort(&recording, 1, &test_arena, &sorted, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_non_null(strstr(err.text, "name a study or a file of timings with it"));
}

/* --- timings --- */

LAB_TEST(test_the_best_configuration_is_the_run) {
    struct lab_study_table table;
    read_table(write_timings("concurrent_gpu3.json", 0, true), 0, &table);
    assert_int_equal(table.run_count, 1);
    const struct lab_study_run *run = table.runs;
    assert_string_equal(run->phase, "concurrent");
    assert_string_equal(run->model, "gemm");
    /* a tuner that sees GPU 3 alone calls it the first: the name knows better */
    assert_string_equal(run->ranks[0].device, "cuda:3");
    assert_int_equal(run->ranks[0].iteration_count, 200);
    assert_true(fabs(run->time_s - 0.010) < 1e-12);

    size_t count;
    const double *times = lab_study_intervals(&run->ranks[0], &test_arena, &count);
    assert_int_equal(count, 199);
    assert_true(fabs(times[0] - (is_busy(0) ? 0.01201 : 0.01001)) <
                1e-9); /* its own time, not the gap to the one before */
    assert_int_equal(run->run->start_wall_ns, START_S * INT64_C(1000000000));
}

LAB_TEST(test_each_configuration_is_a_run) {
    struct lab_study_table table;
    read_table(write_timings("x.json", 0, true), LAB_STUDY_WITH_CONFIGURATIONS, &table);
    assert_int_equal(table.run_count, 2);
    assert_string_equal(table.runs[0].model, "gemm tile=64,warps=4");
    assert_string_equal(table.runs[1].model, "gemm tile=32,warps=4");
    assert_true(table.runs[1].time_s > 0.029);
}

LAB_TEST(test_names_stand_for_what_a_file_lacks) {
    struct lab_study_table table;
    read_table(write_text("baseline_2_flash_attention_v2.json",
                          "{\"best_time_ms\": 4.5, \"best_config\": [64, 2],"
                          " \"all_benchmark_times\": [4.5, 5]}"),
               0, &table);
    const struct lab_study_run *run = table.runs;
    assert_string_equal(run->model, "flash_attention_v2");
    assert_string_equal(run->phase, "baseline");
    assert_string_equal(run->ranks[0].device, "cuda:2");
    assert_null(run->ranks[0].iterations);
    assert_non_null(strstr(run->result->best_config, "\"config\""));
    assert_non_null(strstr(table.notes[0], "1 file has no single timings"));
}

LAB_TEST(test_other_json_is_no_timing) {
    struct lab_timing_file file;
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_timing_file_read(write_text("a", "{\"a\": 1}"), &test_arena, &file, &err),
                     -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(lab_timing_file_read(write_text("b", "[1, 2"), &test_arena, &file, NULL), -1);
    assert_int_equal(
        lab_timing_file_read(
            write_text("c", "{\"detailed_timings\": [1, -2, null, {\"time_ms\": \"x\"}, 3]}"),
            &test_arena, &file, NULL),
        0);
    assert_int_equal(file.timing_count, 2);
    assert_true(isnan(file.best_time_s));
}

/* --- recordings --- */

static struct lab_analysis_result correlate(const struct lab_study_table *table) {
    const struct lab_analysis *analysis = lab_analysis_find("correlate", NULL);
    struct lab_analysis_input input = {.studies = table, .study_count = 1};
    struct lab_analysis_result result;
    assert_int_equal(lab_analysis_run(analysis, NULL, &input, &test_arena, &result, NULL), 0);
    return result;
}

LAB_TEST(test_a_recording_is_joined_by_time) {
    struct lab_study_table table;
    struct lab_studies_recording beside = {write_recording("pcie.csv", 0), true};
    read_table(write_timings("x.json", 0, true), LAB_STUDY_WITH_CONFIGURATIONS, &table);
    assert_int_equal(lab_studies_lay_beside(&table, 1, &beside, 1, &test_arena, NULL), 0);
    const struct lab_recording *joined = table.runs[0].recording;
    assert_non_null(joined);
    assert_ptr_equal(table.runs[1].recording, joined); /* at the same time: each reading once */
    assert_true(joined->tracks[0].times_ns[0] >= table.runs[0].run->start_ns);
    assert_null(table.notes[0]);

    struct lab_analysis_result result = correlate(&table);
    assert_non_null(strstr(result.answer, " and the PCIe into GPU 1: inconclusive (ρ = "));
}

LAB_TEST(test_a_recording_of_another_time_is_said) {
    struct lab_study_table table;
    struct lab_studies_recording beside = {write_recording("late.csv", 3600), true};
    read_table(write_timings("x.json", 0, true), LAB_STUDY_WITH_CONFIGURATIONS, &table);
    assert_int_equal(lab_studies_lay_beside(&table, 1, &beside, 1, &test_arena, NULL), 0);
    assert_null(table.runs[0].recording);
    assert_non_null(strstr(table.notes[0], "late.csv was recorded from "));
    assert_non_null(strstr(table.notes[0], "when none of the runs ran"));

    struct lab_analysis_result result = correlate(&table);
    assert_true(result.lacks);
    assert_non_null(strstr(result.answer, "nothing was sampled during the runs"));
}

LAB_TEST(test_timings_without_stamps_have_no_time) {
    struct lab_study_table table;
    struct lab_studies_recording beside = {write_recording("pcie.csv", 0), true};
    read_table(write_timings("x.json", 0, false), 0, &table);
    assert_int_equal(table.runs[0].ranks[0].iteration_count, 200);
    assert_non_null(strstr(table.notes[0], "without time stamps"));
    assert_int_equal(lab_studies_lay_beside(&table, 1, &beside, 1, &test_arena, NULL), 0);
    assert_null(table.runs[0].recording);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
