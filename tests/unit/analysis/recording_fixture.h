/*
 * recording_fixture.h: recordings made by hand, for the tests of what analyses say of them. A GPU
 * is added with its columns, then ticks are added to it, a value for each column; NONE is one that
 * isn't there.
 */
#pragma once

#include "analysis/analysis.h"
#include "base/str.h"
#include "figures.h"

#include <math.h>
#include <string.h>

#include "test.h"

#define SECOND       1000000000LL
#define GIVEN_START  (1000 * SECOND)
#define GIVEN_WALL   1794739323000000000LL /* 2026-11-15 10:42:03 UTC */
#define GIVEN_TICKS  4096
#define GIVEN_TRACKS 16
#define GIVEN_FILES  48
#define NONE         NAN

struct given {
    struct lab_arena arena;
    struct lab_labelled_recording recordings[GIVEN_FILES];
    int count;
    struct lab_recording *now; /* the one that is being made */
    struct lab_analysis_result result;
};

static inline int given_setup(void **state) {
    struct given *f = lab_mem_alloc(1, sizeof *f);
    lab_arena_init(&f->arena);
    *state = f;
    return 0;
}

static inline int given_teardown(void **state) {
    struct given *f = *state;
    lab_arena_release(&f->arena);
    lab_mem_free(f);
    return 0;
}

/* A recording that ticks each second. */
static inline struct lab_recording *given_recording(struct given *f, const char *name,
                                                    const char *label) {
    struct lab_recording *recording = lab_arena_alloc(&f->arena, 1, sizeof *recording);
    struct lab_recording_epoch *epoch = lab_arena_alloc(&f->arena, 1, sizeof *epoch);
    *epoch = (struct lab_recording_epoch){GIVEN_START, GIVEN_WALL - GIVEN_START, "node7", ""};
    *recording = (struct lab_recording){
        .path = name,
        .label = label,
        .maker = "",
        .tracks = lab_arena_alloc(&f->arena, GIVEN_TRACKS, sizeof *recording->tracks),
        .epochs = epoch,
        .epoch_count = 1,
        .interval_ns = SECOND,
    };
    f->recordings[f->count++] =
        (struct lab_labelled_recording){name, label, recording, .rate = NAN};
    f->now = recording;
    return recording;
}

static inline struct lab_track *given_track(struct given *f, enum lab_entity_kind kind, int index,
                                            const enum lab_metric_id *metrics, int count) {
    struct lab_track *track = &f->now->tracks[f->now->track_count++];
    struct lab_column *columns = lab_arena_alloc(&f->arena, (size_t)count, sizeof *columns);
    track->entity = (struct lab_entity){.kind = kind,
                                        .index = index,
                                        .id = "",
                                        .name = "NVIDIA A10G",
                                        .pci = "",
                                        .node = -1,
                                        .parent = -1,
                                        .columns = columns,
                                        .column_count = count};
    track->times_ns = lab_arena_alloc(&f->arena, GIVEN_TICKS, sizeof *track->times_ns);
    track->values = lab_arena_alloc(&f->arena, (size_t)count, sizeof *track->values);
    track->valid = lab_arena_alloc(&f->arena, (size_t)count, sizeof *track->valid);
    for (int c = 0; c < count; c++) {
        columns[c] = (struct lab_column){(int16_t)metrics[c], -1};
        track->values[c] = lab_arena_alloc(&f->arena, GIVEN_TICKS, sizeof **track->values);
        track->valid[c] = lab_arena_alloc(&f->arena, GIVEN_TICKS, sizeof **track->valid);
    }
    return track;
}

/* Memory in MiB, utilisation, power, temperature. */
static inline struct lab_track *given_gpu(struct given *f, int index) {
    static const enum lab_metric_id metrics[] = {LAB_METRIC_MEMORY_USED, LAB_METRIC_UTILIZATION,
                                                 LAB_METRIC_POWER, LAB_METRIC_TEMPERATURE,
                                                 LAB_METRIC_MEMORY_TOTAL};
    return given_track(f, LAB_ENTITY_GPU, index, metrics, 5);
}

/* A column's value at a time after the start, in the metric's unit. */
static inline void put(struct lab_track *track, int column, double value) {
    if (isnan(value))
        return;
    double scale = lab_metric(track->entity.columns[column].metric)->scale;
    track->values[column][track->count] = llround(value / scale);
    track->valid[column][track->count] = 1;
}

static inline void given_tick(struct lab_track *track, double second, double memory_mib,
                              double utilization, double power, double temperature) {
    track->times_ns[track->count] = GIVEN_START + llround(second * 1e9);
    put(track, 0, memory_mib * 1048576);
    put(track, 1, utilization);
    put(track, 2, power);
    put(track, 3, temperature);
    put(track, 4, 24576 * 1048576.0);
    track->count++;
}

/* --- asking --- */

static inline void set_keys(const struct lab_analysis *analysis, void *config, const char *words,
                            struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    if (words && lab_options_set_word(analysis->options, config, arena, words, &err) < 0)
        fail_msg("%s", err.text);
}

static inline int ask(struct given *f, const char *name, const char *words, struct lab_err *err) {
    const struct lab_analysis *analysis = lab_analysis_find(name, err);
    assert_non_null(analysis);
    void *config = lab_analysis_config(analysis, &f->arena);
    struct lab_analysis_input input = {.recordings = f->recordings, .recording_count = f->count};
    set_keys(analysis, config, words, &f->arena);
    return figures_run(analysis, config, &input, &f->arena, &f->result, err);
}

static inline void when_analysed(struct given *f, const char *name, const char *words) {
    ASSERT_OK(ask(f, name, words, err));
}

static inline const struct lab_doc_cell *figure(const struct given *f, int part, const char *key) {
    for (int c = 0; c < f->result.column_count; c++)
        if (lab_str_equal(f->result.columns[c].key, key))
            return &f->result.parts[part].cells[c];
    fail_msg("no figure '%s'", key);
    return NULL;
}

static inline const struct lab_doc_table *table(const struct given *f, int part, const char *key) {
    for (int t = 0; t < f->result.parts[part].table_count; t++)
        if (lab_str_equal(f->result.parts[part].tables[t].key, key))
            return &f->result.parts[part].tables[t];
    return NULL;
}

static inline const struct lab_doc_cell *cell(const struct given *f, int part, const char *key,
                                              int row, const char *column) {
    const struct lab_doc_table *found = table(f, part, key);
    if (!found || row >= found->row_count)
        fail_msg("no row %d of '%s'", row, key);
    for (int c = 0; found && c < found->column_count; c++)
        if (lab_str_equal(found->columns[c].key, column))
            return &found->cells[row * found->column_count + c];
    fail_msg("no column '%s' in '%s'", column, key);
    return NULL;
}

static inline bool has_note(const char *const *notes, const char *text) {
    for (int i = 0; notes && notes[i]; i++)
        if (strstr(notes[i], text))
            return true;
    return false;
}
