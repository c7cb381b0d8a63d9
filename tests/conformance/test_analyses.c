/*
 * Every analysis, whoever added it: its descriptor says what help and command line need, its
 * defaults hold, and nothing comes out of nothing but an error.
 */
#include "analysis/analysis.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

LAB_TEST(names_are_those_of_the_files) {
    assert_non_null(lab_analyses[0]);
    for (int i = 0; lab_analyses[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        char path[512];
        snprintf(path, sizeof path, "%s/src/analysis/%s.c", LAB_TEST_SOURCE_DIR,
                 lab_analyses[i]->name);
        FILE *file = fopen(path, "r");
        if (!file)
            fail_msg("there is no %s", path);
        fclose(file);
        assert_ptr_equal(lab_analysis_find(lab_analyses[i]->name, &err), lab_analyses[i]);
    }
}

LAB_TEST(texts_are_there_and_end_as_they_should) {
    for (int i = 0; lab_analyses[i]; i++) {
        const struct lab_analysis *analysis = lab_analyses[i];
        assert_true(analysis->summary && *analysis->summary && analysis->run);
        assert_true(analysis->summary[strlen(analysis->summary) - 1] != '.');
        for (const struct lab_option *row = analysis->options; row && row->name; row++) {
            assert_true(row->help && *row->help);
            assert_true(row->help[strlen(row->help) - 1] != '.');
            assert_true(row->offset < analysis->config_size);
        }
    }
}

LAB_TEST(nothing_in_is_an_error) {
    for (int i = 0; lab_analyses[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_analysis_result result;
        LAB_AUTO(arena, arena);
        struct lab_trace empty = {0};
        struct lab_analysis_trace traces[] = {{"nothing", &empty}};
        struct lab_analysis_input none = {0}, one = {.traces = traces, .trace_count = 1};
        assert_int_equal(lab_analysis_run(lab_analyses[i], NULL, &none, &arena, &result, &err), -1);
        assert_int_equal(lab_analysis_run(lab_analyses[i], NULL, &one, &arena, &result, &err), -1);
        assert_contains(err.text, "nothing");
        assert_int_equal(err.code, LAB_ERR_USER);
    }
}

LAB_TEST(unknown_ones_suggest_the_nearest) {
    struct lab_err err = LAB_ERR_INIT;
    assert_null(lab_analysis_find("latncy", &err));
    assert_contains(err.text, "did you mean 'latency'?");
}
