/* Which files lie beside the report of a study that trains models. */
#include "report/report_internal.h"

#include "base/json.h"
#include "unit/analysis/study_fixture.h"

#include "test.h"
#include <math.h>

static struct given_study given;

static int begin(void **state) {
    (void)state;
    given_begin(&given, "train_scaling");
    return 0;
}

static int end(void **state) {
    (void)state;
    given_end(&given);
    return 0;
}

static void train(const char *model, int devices, double rate) {
    struct lab_study_run *run =
        given_add(&given, (struct given_run){.model = model,
                                             .rate = rate,
                                             .parameters = 1e4,
                                             .options = "{\"batch_size\": 16, \"scaling\": "
                                                        "\"strong\"}"});
    struct lab_study_rank *ranks =
        lab_arena_alloc(&given.arena, (size_t)devices, sizeof *run->ranks);
    for (int i = 0; i < devices; i++) {
        ranks[i] = run->ranks[0];
        ranks[i].gpu_id = i;
        ranks[i].device = lab_arena_printf(&given.arena, "cuda:%d", i);
    }
    run->ranks = ranks;
    run->rank_count = devices;
    run->point =
        lab_arena_printf(&given.arena, "%s_numa0_%s", devices > 1 ? "gpu0+1" : "gpu0", model);
}

static void has_file(const struct report_found *found, const char *start, int width,
                     const char *end_of_name) {
    const char *name = lab_arena_printf(&given.arena, "%s_50-%d-3%s", start, width, end_of_name);
    for (int i = 0; i < found->file_count; i++)
        if (strcmp(found->files[i].name, name) == 0)
            return;
    fail_msg("%s is missing", name);
}

LAB_TEST(every_model_has_its_files_however_many_there_are) {
    enum { MODELS = 40 };
    for (int i = 0; i < MODELS; i++) {
        const char *model = lab_arena_printf(&given.arena, "mlp_50-%d-3_batch16", 8 * (i + 1));
        train(model, 1, 1000);
        train(model, 2, 1500);
    }
    struct report_found found = {.arena = &given.arena};
    struct lab_analysis_input input = given_input(&given);
    report_analyse(&found, lab_analysis_find("speedup", NULL), &input);
    report_training_files(&found, &given.table);
    assert_int_equal(found.file_count, 3 * MODELS);
    for (int i = 0; i < MODELS; i++) {
        has_file(&found, "benchmark", 8 * (i + 1), "_single_gpu.json");
        has_file(&found, "benchmark", 8 * (i + 1), "_multi_gpu.json");
        has_file(&found, "comparison_report", 8 * (i + 1), ".md");
    }
}

LAB_TEST(what_trains_nothing_has_none) {
    train("vit32x2x128", 1, 1000);
    struct report_found found = {.arena = &given.arena};
    report_training_files(&found, &given.table);
    assert_int_equal(found.file_count, 0);
}

static const struct lab_value *first_entry(const struct report_found *found, const char *name) {
    struct lab_err err = LAB_ERR_INIT;
    for (int i = 0; i < found->file_count; i++)
        if (strcmp(found->files[i].name, name) == 0) {
            struct lab_value *list = NULL;
            const char *text = found->files[i].text;
            assert_int_equal(lab_json_parse(text, strlen(text), name, &given.arena, &list, &err),
                             0);
            return list->items[0];
        }
    fail_msg("%s is missing", name);
    return NULL;
}

/* Two runs that differ by half: Student's t of two is 12.7, and a mean's low end below 0. */
LAB_TEST(no_end_of_a_rate_is_negative) {
    train("mlp_50-8-3_batch16", 1, 1000);
    train("mlp_50-8-3_batch16", 1, 1500);
    struct report_found found = {.arena = &given.arena};
    report_training_files(&found, &given.table);
    const struct lab_value *ends = lab_value_get(
        first_entry(&found, "benchmark_50-8-3_single_gpu.json"), "confidence_interval_95");
    double low = lab_value_as_number(ends->items[0]), high = lab_value_as_number(ends->items[1]);
    assert_true(low > 0 && low < 1000 && high > 1500);
    assert_true(fabs(low * high - 1000 * 1500) < 1); /* about the geometric mean */
}

/* A step's stages fill it, the GPU is idle nearly all the time. */
LAB_TEST(a_gpu_is_as_busy_as_was_sampled) {
    train("mlp_50-8-3_batch16", 2, 1000);
    struct lab_result *ranks = lab_arena_alloc(&given.arena, 2, sizeof *ranks);
    struct lab_result *result = lab_arena_alloc(&given.arena, 1, sizeof *result);
    ranks[0] = ranks[1] = *result = lab_result_none;
    ranks[0].gpu_utilization = 0.002;
    ranks[1].gpu_utilization = 0.004;
    result->compute_utilization = 1;
    result->ranks = ranks;
    result->rank_count = 2;
    given.table.runs[0].result = result;
    struct report_found found = {.arena = &given.arena};
    report_training_files(&found, &given.table);
    const struct lab_value *entry = first_entry(&found, "benchmark_50-8-3_multi_gpu.json");
    assert_true(fabs(lab_value_as_number(lab_value_get(entry, "mean_gpu_utilization")) - 0.3) <
                1e-9);
    assert_true(lab_value_as_number(lab_value_get(entry, "mean_compute_utilization")) == 1);
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
