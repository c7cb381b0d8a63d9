/*
 * resource_fixture.h: runs with iterations and samples beside them, for tests of what analyses say
 * of the two together. A test gives functions of time: how long an iteration takes, what a column
 * holds.
 */
#pragma once

#include "figures.h"
#include "study_fixture.h"

#include "base/str.h"

#include "test.h"

#define TRACKS_MAX  24
#define COLUMNS_MAX 64

struct beside { /* samples of one run */
    struct given_study *given;
    struct lab_recording *recording;
    double interval_s, duration_s;
    int64_t start_ns;
};

typedef double at_time(double seconds, void *context);

/* A run of so many seconds whose iterations take what `time_s` says, each with a spread. */
static inline struct lab_study_run *given_paced(struct given_study *given, struct given_run row,
                                                double duration_s, at_time *time_s, void *context) {
    int64_t start_ns = given->time_ns;
    double spread = row.spread;
    row.iterations = 0;
    struct lab_study_run *run = given_add(given, row);
    size_t room = 1024, count = 0;
    struct lab_iteration *iterations = lab_arena_alloc(&given->arena, room, sizeof *iterations);
    for (double at = 0; at < duration_s;) {
        double took_s = time_s(at, context) * (1 + spread * given_normal(given));
        if (count == room) {
            struct lab_iteration *more = lab_arena_alloc(&given->arena, 2 * room, sizeof *more);
            memcpy(more, iterations, room * sizeof *more);
            iterations = more;
            room *= 2;
        }
        iterations[count].start_ns = start_ns + (int64_t)(1e9 * at);
        at += took_s;
        iterations[count++].end_ns = start_ns + (int64_t)(1e9 * at);
    }
    run->ranks[0].iterations = iterations;
    run->ranks[0].iteration_count = count;
    struct lab_run *planned = lab_arena_alloc(&given->arena, 1, sizeof *planned);
    *planned = *run->run;
    planned->iterations = (int64_t)count;
    planned->end_ns = start_ns + (int64_t)(1e9 * duration_s);
    run->run = planned;
    given->time_ns = planned->end_ns + 1000000000;
    return run;
}

/* Makes its iterations those of a pipeline, as long as before but for every `stretch`th: that one
 * finds it empty and takes three times as long. */
static inline void given_refills(struct given_study *given, struct lab_study_run *run,
                                 size_t stretch) {
    struct lab_study_rank *rank = &run->ranks[0];
    struct lab_iteration *made =
        lab_arena_alloc(&given->arena, rank->iteration_count, sizeof *made);
    int64_t end_ns = rank->iterations[0].start_ns;
    for (size_t i = 0; i < rank->iteration_count; i++) {
        int64_t took_ns = rank->iterations[i].end_ns - rank->iterations[i].start_ns;
        bool empty = i % stretch == 0;
        made[i].start_ns = empty ? end_ns : end_ns - took_ns / 2;
        made[i].end_ns = end_ns += empty ? 3 * took_ns : took_ns;
    }
    rank->iterations = made;
    struct lab_run *planned = lab_arena_alloc(&given->arena, 1, sizeof *planned);
    *planned = *run->run;
    planned->end_ns = end_ns;
    run->run = planned;
}

static inline struct beside given_samples(struct given_study *given, struct lab_study_run *run,
                                          double interval_s) {
    struct lab_recording *recording = lab_arena_alloc(&given->arena, 1, sizeof *recording);
    struct lab_recording_epoch *epoch = lab_arena_alloc(&given->arena, 1, sizeof *epoch);
    *epoch = (struct lab_recording_epoch){0, 0, "node7", ""};
    *recording = (struct lab_recording){
        .path = "given",
        .label = "given",
        .maker = "",
        .tracks = lab_arena_alloc(&given->arena, TRACKS_MAX, sizeof *recording->tracks),
        .epochs = epoch,
        .epoch_count = 1,
        .interval_ns = (int64_t)(1e9 * interval_s)};
    run->recording = recording;
    return (struct beside){given, recording, interval_s,
                           1e-9 * (double)(run->run->end_ns - run->run->start_ns),
                           run->run->start_ns};
}

static inline struct lab_track *given_entity(struct beside *beside, enum lab_entity_kind kind,
                                             int index) {
    struct lab_arena *arena = &beside->given->arena;
    struct lab_track *track = &beside->recording->tracks[beside->recording->track_count++];
    track->entity = (struct lab_entity){
        .kind = kind,
        .index = index,
        .id = "",
        .name = "",
        .pci = "",
        .node = -1,
        .parent = -1,
        .columns = lab_arena_alloc(arena, COLUMNS_MAX, sizeof(struct lab_column))};
    track->count = (size_t)(beside->duration_s / beside->interval_s) + 1;
    track->times_ns = lab_arena_alloc(arena, track->count, sizeof *track->times_ns);
    track->values = lab_arena_alloc(arena, COLUMNS_MAX, sizeof *track->values);
    track->valid = lab_arena_alloc(arena, COLUMNS_MAX, sizeof *track->valid);
    for (size_t i = 0; i < track->count; i++)
        track->times_ns[i] = beside->start_ns + (int64_t)(1e9 * beside->interval_s * (double)i);
    return track;
}

/* A column that holds what `value` says, at every `each`th tick. */
static inline void given_column(struct beside *beside, struct lab_track *track,
                                enum lab_metric_id metric, int instance, int each, at_time *value,
                                void *context) {
    struct lab_column *columns = (struct lab_column *)(uintptr_t)track->entity.columns;
    int c = track->entity.column_count++;
    columns[c] = (struct lab_column){(int16_t)metric, (int16_t)instance};
    track->values[c] = lab_arena_alloc(&beside->given->arena, track->count, sizeof **track->values);
    track->valid[c] = lab_arena_alloc(&beside->given->arena, track->count, sizeof **track->valid);
    for (size_t i = 0; i < track->count; i += (size_t)each) {
        double number = value(beside->interval_s * (double)i, context);
        track->values[c][i] = llround(number / lab_metric(metric)->scale);
        track->valid[c][i] = 1;
    }
}

/* --- asking --- */

static inline int ask_study(struct given_study *given, const char *name,
                            struct lab_analysis_result *ret_result, struct lab_err *err) {
    const struct lab_analysis *analysis = lab_analysis_find(name, err);
    assert_non_null(analysis);
    void *config = lab_analysis_config(analysis, &given->arena);
    struct lab_analysis_input input = given_input(given);
    return figures_run(analysis, config, &input, &given->arena, ret_result, err);
}

static inline struct lab_analysis_result when_asked(struct given_study *given, const char *name) {
    struct lab_analysis_result result = {0};
    ASSERT_OK(ask_study(given, name, &result, err));
    return result;
}

static inline const struct lab_doc_cell *figure_of(const struct lab_analysis_result *result,
                                                   const char *key) {
    for (int c = 0; c < result->column_count; c++)
        if (lab_str_equal(result->columns[c].key, key))
            return &result->parts[0].cells[c];
    fail_msg("no figure '%s'", key);
    return NULL;
}

static inline const struct lab_doc_table *table_of(const struct lab_analysis_result *result,
                                                   const char *key) {
    for (int t = 0; t < result->parts[0].table_count; t++)
        if (lab_str_equal(result->parts[0].tables[t].key, key))
            return &result->parts[0].tables[t];
    fail_msg("no table '%s'", key);
    return NULL;
}

static inline const struct lab_doc_cell *cell_of(const struct lab_analysis_result *result,
                                                 const char *key, int row, const char *column) {
    const struct lab_doc_table *table = table_of(result, key);
    if (row >= table->row_count)
        fail_msg("no row %d of '%s'", row, key);
    for (int c = 0; c < table->column_count; c++)
        if (lab_str_equal(table->columns[c].key, column))
            return &table->cells[(ptrdiff_t)row * table->column_count + c];
    fail_msg("no column '%s' in '%s'", column, key);
    return NULL;
}

static inline bool has_note(const char *const *notes, const char *part) {
    for (int i = 0; notes && notes[i]; i++)
        if (strstr(notes[i], part))
            return true;
    return false;
}

static inline const struct lab_chart *chart_of(const struct lab_analysis_result *result,
                                               const char *name) {
    for (int i = 0; i < result->chart_count; i++)
        if (lab_str_equal(result->charts[i].name, name))
            return &result->charts[i];
    return NULL;
}
