/* Which files lie beside the report of a study that trains models. */
#include "report/report_internal.h"
#include "unit/analysis/study_fixture.h"

#include "test.h"

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

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
