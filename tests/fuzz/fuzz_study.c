/*
 * fuzz_study.c: a study's database with any rows either is refused with a message or loads, and
 * then is exported, written as results.json and analysed. The study has runs in every state, with
 * iterations, metrics and a result.
 * covers: src/store/study src/store/store_sql.c src/store/sql.c src/load/study_file.c src/store/export
 */
#include "analysis/analysis.h"
#include "doc/doc.h"
#include "load/study_file.h"
#include "rows.h"
#include "store/export/export.h"
#include "store/study/results.h"

#include <math.h>

#define NEEDS (LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_CURVES)

static const char machine[] =
    "{\"nodes\": [{\"id\": 0, \"distances\": [10, 21]}, {\"id\": 1, \"distances\": [21, 10]}]}";
static const char result[] =
    "{\"rate\": 100, \"rate_unit\": \"samples/s\", \"h2d_gb_per_s\": 12.5, \"valid\": true, "
    "\"ranks\": [{\"rate\": 100, \"interval_ms\": {\"median\": 1.5}}]}";

static void finish(struct lab_store *store, int64_t epoch, int run, bool done) {
    LAB_AUTO(arena, arena);
    struct lab_iteration items[8];
    for (int i = 0; i < 8; i++)
        items[i] = (struct lab_iteration){.start_ns = i * INT64_C(1000), .end_ns = i * 1000 + 500};
    const struct lab_store_metric metrics[] = {{"loss", "", 0, 2.5, 1000, 1},
                                               {"loss", "", 0, 1.5, 2000, 2},
                                               {"tokens", "tokens/s", -1, INFINITY, -1, NAN}};
    struct lab_run outcome = {.state = done ? LAB_RUN_DONE : LAB_RUN_FAILED,
                              .end_ns = 9000,
                              .error = done ? "" : "no",
                              .rate = 100,
                              .rate_low = 99,
                              .rate_high = 101,
                              .rate_unit = "samples/s",
                              .valid = true};
    outcome.result = lab_result_read(lab_result_json(result, &arena), &arena);
    require(lab_store_begin_run(store, run, epoch, 1000, NULL) == 0 &&
            lab_store_add_iterations(store, run, 0, 0, items, 8, NULL) == 0 &&
            lab_store_add_metrics(store, run, metrics, 3, NULL) == 0 &&
            lab_store_finish_run(store, run, &outcome, NULL) == 0);
}

static void make_study(void) {
    static const struct lab_run_rank ranks[] = {{0, "sim:l40s-10:0", 0}, {1, "cpu:0/2.1", 1}};
    const struct lab_store_study study = {.name = "numa_locality_study",
                                          .option = "numa_study",
                                          .config = "experiment:\n  name: numa_study\n",
                                          .words = "[\"run\", \"numa_study\"]",
                                          .machine = machine,
                                          .version = "0.2.0",
                                          .created_wall_ns = 1700000000123456789};
    struct lab_run runs[6];
    static const char *const ids[] = {"a_r0", "a_r1", "b_r0", "b_r1", "failed", "open"};
    for (int i = 0; i < 6; i++)
        runs[i] = (struct lab_run){.id = ids[i],
                                   .identity = (uint64_t)i + 1,
                                   .position = i,
                                   .repeat = i % 2,
                                   .workload = "vit",
                                   .label = "vit32x2x256",
                                   .options = "{\"patch_size\": 32, \"depth\": 2}",
                                   .series = "[\"depth\"]",
                                   .test = "{\"num_samples\": 20}",
                                   .iterations = 8,
                                   .ranks = ranks + i / 2 % 2,
                                   .rank_count = 1};
    struct lab_store *store;
    int64_t epoch;
    require(lab_store_create(folder_file("study.db"), &study, runs, 6, &store, NULL) == 0 &&
            lab_store_epoch(store, "runner", &epoch, NULL) == 0);
    for (int i = 1; i <= 5; i++)
        finish(store, epoch, i, i < 5);
    const struct lab_run_progress progress = {.run = 6};
    require(lab_store_begin_run(store, 6, epoch, 9000, NULL) == 0 &&
            lab_store_set_progress(store, &progress, 1, NULL) == 0);
    lab_store_close(store);
}

static int ignore(void *state, const char *bytes, size_t length) {
    (void)bytes;
    *(size_t *)state += length;
    return 0;
}

static void write_all(struct lab_study_file *file, struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    size_t length = 0;
    LAB_AUTO(str, text);
    LAB_AUTO(doc_sink, out);
    out.write = ignore, out.state = &length;
    const struct lab_doc_format *csv = lab_doc_row_format_find("csv");
    lab_export_runs(file->runs, file->run_count, csv, &out);
    lab_export_iterations(file->store, file->runs, file->run_count, csv, &out, &err);
    lab_export_metrics(file->store, file->runs, file->run_count, csv, &out, &err);
    lab_export_json(file->store, file->runs, file->run_count, true, &out, &err);
    struct lab_results_metrics *metrics = lab_results_metrics_open();
    lab_results_write(file->runs, file->run_count, file->store, metrics, &text);
    lab_results_metrics_close(metrics);
    lab_results_summary(file->study.name, file->runs, file->run_count, arena);
}

/* One of the analyses of studies, by the input's length: each gets its turn. */
static void analyse(const struct lab_study_table *table, size_t turn, struct lab_arena *arena) {
    const struct lab_analysis_input input = {.studies = table, .study_count = 1};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_analysis_result found;
    size_t count = 0;
    while (lab_analyses[count])
        count++;
    const struct lab_analysis *one = lab_analyses[turn % count];
    if (one->source == LAB_ANALYSIS_OF_STUDIES &&
        lab_analysis_run(one, NULL, &input, arena, &found, &err) < 0)
        require_error(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rows rows;
    if (!rows.scratch) {
        make_study();
        rows_learn(&rows, "study.db");
    }
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_study_file *file = NULL;
    struct lab_study_table table;
    rows_write(&rows, "study.db", data, size);
    if (lab_study_file_open(folder, &arena, &file, &err) < 0) {
        require_error(&err);
        return 0;
    }
    if (lab_study_file_runs(file, &err) == 0)
        write_all(file, &arena);
    if (lab_study_file_table(file, NEEDS, &table, &err) == 0)
        analyse(&table, size, &arena);
    else
        require_error(&err);
    lab_study_file_close(file);
    return 0;
}
