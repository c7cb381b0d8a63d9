/*
 * test_analysis_figures.c: every figure that the analyses make of the studies, the recording and the
 * traces in tests/fixtures, against tests/golden. Words may change; a figure that does has a reason.
 */
#include "figures.h"
#include "load/studies.h"
#include "store/recording/recording.h"
#include "store/trace/trace_read.h"

#include <math.h>

#define FIXTURES LAB_TEST_SOURCE_DIR "/tests/fixtures/"
#define ALL_NEEDS                                                                                  \
    (LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_CONFIGURATIONS |          \
     LAB_STUDY_WITH_CURVES)

static void add_analyses(const char *name, enum lab_analysis_source source,
                         const struct lab_analysis_input *input, struct lab_str *out) {
    for (int i = 0; lab_analyses[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_analysis_result result;
        if (lab_analyses[i]->source != source)
            continue;
        lab_str_printf(out, "%s %s", name, lab_analyses[i]->name);
        if (lab_analysis_run(lab_analyses[i], NULL, input, &test_arena, &result, &err) < 0) {
            lab_str_printf(out, " refused: %s\n", err.text);
            continue;
        }
        lab_str_printf(out, " finding %d%s\n", result.finding, result.untested ? " untested" : "");
        figures_add_result(&result, out);
    }
}

LAB_TEST(figures_of_studies) {
    static const char *const names[] = {"numa", "contention", "program", "training"};
    LAB_AUTO(str, out);
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct lab_study_table table;
        const char *folder = lab_arena_printf(&test_arena, FIXTURES "0.1.0/%s", names[i]);
        ASSERT_OK(lab_studies_read_one(folder, ALL_NEEDS, &test_arena, &table, err));
        const struct lab_analysis_input input = {.studies = &table, .study_count = 1};
        add_analyses(names[i], LAB_ANALYSIS_OF_STUDIES, &input, &out);
    }
    assert_golden(out.text, "figures-studies.txt");
}

LAB_TEST(figures_of_recordings) {
    LAB_AUTO(str, out);
    struct lab_recording recording;
    ASSERT_OK(
        lab_recording_read(FIXTURES "0.1.0/recording.db", NULL, &test_arena, &recording, err));
    const struct lab_labelled_recording named = {
        .name = "recording.db", .label = "recording", .recording = &recording, .rate = NAN};
    const struct lab_analysis_input input = {.recordings = &named, .recording_count = 1};
    add_analyses("recording", LAB_ANALYSIS_OF_RECORDINGS, &input, &out);
    assert_golden(out.text, "figures-recordings.txt");
}

LAB_TEST(figures_of_traces) {
    static const char *const names[] = {"nsight2022", "graphs", "two_processes",
                                        "pipeline_gpu0_numa1_vit32x6x512"};
    LAB_AUTO(str, out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct lab_trace_file file;
        const char *path = lab_arena_printf(&test_arena, FIXTURES "traces/%s.sqlite", names[i]);
        ASSERT_OK(lab_trace_read(path, &test_arena, &file, err));
        const struct lab_analysis_trace named = {names[i], file.traces};
        const struct lab_analysis_input input = {.traces = &named, .trace_count = 1};
        add_analyses(names[i], LAB_ANALYSIS_OF_TRACES, &input, &out);
    }
    assert_golden(out.text, "figures-traces.txt");
}
