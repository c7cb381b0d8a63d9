/* metrics_fixture.h: runs of a matrix of the user's own programs, and what the analysis says. */
#pragma once

#include "study_fixture.h"

#include "test.h"

struct given {
    struct given_study study;
    struct lab_analysis_result result;
};

static inline int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    given_begin(&g->study, "test_matrix");
    *state = g;
    return 0;
}

static inline int end(void **state) {
    struct given *g = *state;
    given_end(&g->study);
    lab_mem_free(g);
    return 0;
}

/* A run of a setting that said one number, and took so much memory of its GPU. */
static inline struct lab_study_run *add(struct given *g, const char *setting, int repeat,
                                        const char *metric, double value, double memory_mib) {
    struct lab_arena *arena = &g->study.arena;
    struct lab_study_run *run = given_add(
        &g->study, (struct given_run){.model = setting,
                                      .repeat = repeat,
                                      .rate = 1,
                                      .result = lab_arena_printf(
                                          arena, "{\"gpu_memory_peak_mb\": %g}", memory_mib)});
    struct lab_study_metric *said = lab_arena_alloc(arena, 1, sizeof *said);
    *said = (struct lab_study_metric){metric, "", -1, value};
    run->metrics = said;
    run->metric_count = 1;
    run->options = given_json(
        &g->study, lab_arena_printf(arena, "{\"matrix\": {\"optimizer\": \"%s\"}}", setting));
    return run;
}

/* The same with a curve from 1 to the value, over `steps` steps of a second each. */
static inline struct lab_study_run *add_curve(struct given *g, const char *setting, int repeat,
                                              double value, int steps) {
    struct lab_study_run *run = add(g, setting, repeat, "loss", value, NAN);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
    *said = run->metrics[0];
    for (int i = 0; i <= steps; i++)
        lab_curve_add(&said->curve, i, 5 + repeat + i, 1 + (value - 1) * i / steps,
                      &g->study.arena);
    run->metrics = said;
    return run;
}

static inline void analyse(struct given *g) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_analysis *analysis = lab_analysis_find("metrics", &err);
    assert_non_null(analysis);
    struct lab_analysis_input input = given_input(&g->study);
    if (lab_analysis_run(analysis, NULL, &input, &g->study.arena, &g->result, &err) < 0)
        fail_msg("%s", err.text);
}

/* Of the first part's table of that key; NULL = no column has that title. */
static inline const struct lab_doc_cell *cell(const struct given *g, const char *table, int row,
                                              const char *title) {
    const struct lab_analysis_part *part = &g->result.parts[0];
    for (int t = 0; t < part->table_count; t++)
        for (int c = 0; c < part->tables[t].column_count; c++)
            if (lab_str_equal(part->tables[t].key, table) &&
                lab_str_equal(part->tables[t].columns[c].title, title))
                return &part->tables[t].cells[row * part->tables[t].column_count + c];
    return NULL;
}
