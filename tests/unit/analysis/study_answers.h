/* study_answers.h: asking an analysis about a study made by hand, and looking into its answer. */
#pragma once

#include "figures.h"
#include "study_fixture.h"

#include "base/str.h"

#include "test.h"

/* `words` set keys of the analysis; NULL-ended, NULL = none. */
static inline int ask(struct given_study *given, const char *name, const char *const *words,
                      struct lab_analysis_result *ret_result, struct lab_err *err) {
    const struct lab_analysis *analysis = lab_analysis_find(name, err);
    assert_non_null(analysis);
    void *config = lab_analysis_config(analysis, &given->arena);
    struct lab_analysis_input input = given_input(given);
    for (int i = 0; words && words[i]; i++)
        if (lab_options_set_word(analysis->options, config, &given->arena, words[i], err) < 0)
            return -1;
    return figures_run(analysis, config, &input, &given->arena, ret_result, err);
}

static inline struct lab_analysis_result when_asked(struct given_study *given, const char *name,
                                                    const char *const *words) {
    struct lab_analysis_result result = {0};
    ASSERT_OK(ask(given, name, words, &result, err));
    return result;
}

static inline const struct lab_doc_cell *figure(const struct lab_analysis_result *result, int part,
                                                const char *key) {
    assert_true(part < result->part_count);
    for (int c = 0; c < result->column_count; c++)
        if (lab_str_equal(result->columns[c].key, key))
            return &result->parts[part].cells[c];
    fail_msg("no figure '%s'", key);
    return NULL;
}

static inline const struct lab_doc_table *table(const struct lab_analysis_result *result, int part,
                                                const char *key) {
    assert_true(part < result->part_count);
    for (int t = 0; t < result->parts[part].table_count; t++)
        if (lab_str_equal(result->parts[part].tables[t].key, key))
            return &result->parts[part].tables[t];
    return NULL;
}

static inline const struct lab_doc_cell *cell(const struct lab_analysis_result *result, int part,
                                              const char *key, int row, const char *column) {
    const struct lab_doc_table *found = table(result, part, key);
    if (!found || row >= found->row_count)
        fail_msg("no row %d of '%s'", row, key);
    for (int c = 0; found && c < found->column_count; c++)
        if (lab_str_equal(found->columns[c].key, column))
            return &found->cells[row * found->column_count + c];
    fail_msg("no column '%s' in '%s'", column, key);
    return NULL;
}

static inline void assert_says(const char *text, const char *part) {
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" isn't in \"%s\"", part, text ? text : "nothing");
}

static inline bool has_note(const char *const *notes, const char *text) {
    for (int i = 0; notes && notes[i]; i++)
        if (strstr(notes[i], text))
            return true;
    return false;
}

static inline const struct lab_chart *chart(const struct lab_analysis_result *result,
                                            const char *name) {
    for (int i = 0; i < result->chart_count; i++)
        if (lab_str_equal(result->charts[i].name, name))
            return &result->charts[i];
    fail_msg("no chart '%s'", name);
    return NULL;
}

static inline bool covers(const struct lab_doc_cell *cell, double truth) {
    return cell->low <= truth && truth <= cell->high;
}
