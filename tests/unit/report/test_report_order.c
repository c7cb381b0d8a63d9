/*
 * The analyses of each shipped study's report, in their order. Expected are the orders that reports
 * had when analyses still knew studies by name: read off reports of simulated studies.
 */
#include "analysis/analysis.h"
#include "base/yaml/yaml.h"
#include "load/studies.h"
#include "run/plan_record.h"
#include "store/store.h"
#include "unit/plan/plan_fixture.h"

#define MOST 32

static const struct shipped {
    const char *study, *order;
    const char *words[4]; /* fewer devices and repeats: they don't matter for the order */
    const char *device;   /* NULL = a simulated machine */
    bool by_name;         /* opened by its name alone: plans before `answers` don't tell */
} shipped[] = {
    {"compile_study", "compile scaling recommend crossover stability correlate"},
    {"contention", "contention variance correlate",
     .words = {"experiment.hardware.gpu_ids=[0,1]", "experiment.repeat=1"}},
    {"nccl_settings", "recommend stability correlate",
     .words = {"experiment.hardware.gpu_ids=[0,1]", "experiment.repeat=1"}},
    {"numa_study", "numa peers recommend crossover stability scaling correlate"},
    {"quick_test", "crossover correlate"},
    {"scaling_extended", "scaling crossover stability correlate"},
    {"scaling_study", "scaling crossover stability correlate"},
    {"stability", "stability numa peers recommend crossover scaling correlate", .by_name = true},
    {"test_matrix", "metrics correlate", .words = {"experiment.command=echo"}, .device = "cpu"},
    {"throughput_study", "speedup recommend peers crossover transfer scaling correlate"},
    {"train_scaling", "training stability transfer correlate",
     .words = {"experiment.hardware.gpu_ids=[0,1]", "experiment.repeat=1"}},
    {"transfer_study", "transfer numa recommend crossover stability correlate"},
};

static void assert_works(int result, const struct lab_err *err) {
    if (result < 0)
        fail_msg("%s", err->text);
}

static void plan_study(const struct shipped *known) {
    const char *texts[8] = {
        lab_arena_printf(&arena, "device=%s", known->device ? known->device : "sim:l40s-10"),
        lab_arena_printf(&arena, "experiment=%s", known->study)};
    for (int i = 0; known->words[i]; i++)
        texts[2 + i] = known->words[i];
    if (plan_words(FOUR_NODES, texts) < 0)
        fail_msg("%s: %s", known->study, plan_err.text);
}

/* All of its runs are done, each a bit faster than the one before. */
static void carry_out(struct lab_store *store, const struct lab_run *runs) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t epoch = 0;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err), &err);
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run outcome = runs[i];
        outcome.state = LAB_RUN_DONE;
        outcome.end_ns = 10 * i + 9;
        outcome.rate = outcome.rate_low = outcome.rate_high = 100 + i;
        outcome.rate_unit = "samples/s";
        outcome.valid = true;
        struct lab_store_metric loss = {"loss", "", 0, 1, 1};
        assert_works(lab_store_begin_run(store, i + 1, epoch, 10 * i, &err), &err);
        if (lab_workload_is_external(plan.runs[i].workload))
            assert_works(lab_store_add_metrics(store, i + 1, &loss, 1, &err), &err);
        assert_works(lab_store_finish_run(store, i + 1, &outcome, &err), &err);
    }
}

/* The study as its file holds it, read back. */
static struct lab_study_table table_of(const struct shipped *known) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_store *store = NULL;
    struct lab_study_table table;
    struct lab_str config;
    lab_str_init(&config);
    plan_study(known);
    lab_yaml_write(plan.config, &config);
    struct lab_store_study study = {.name = plan.study,
                                    .option = plan.option,
                                    .config = config.text,
                                    .words = "[]",
                                    .machine = "{}",
                                    .version = ""};
    struct lab_run *runs = lab_run_plan_records(&plan, &arena);
    const char *where = lab_arena_printf(&arena, "%s/%s", folder, known->study);
    mkdir(where, 0700);
    assert_works(lab_store_create(lab_arena_printf(&arena, "%s/study.db", where), &study, runs,
                                  plan.run_count, &store, &err),
                 &err);
    carry_out(store, runs);
    lab_store_close(store);
    assert_works(lab_studies_read_one(where, 0, &arena, &table, &err), &err);
    lab_str_release(&config);
    return table;
}

/* "numa recommend …" */
static const char *order_of(const struct lab_study_table *study) {
    struct lab_analysis_choice chosen[MOST];
    int count = lab_analysis_choose(study, MOST, chosen);
    const char *order = "";
    for (int i = 0; i < count; i++)
        order = lab_arena_printf(&arena, "%s%s%s", order, i ? " " : "", chosen[i].analysis->name);
    return order;
}

LAB_TEST(shipped_studies_open_with_their_questions) {
    const char *const *names = lab_config_options(&path, "experiment", &arena);
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        const char *expected = shipped[i].order;
        assert_string_equal(names[i], shipped[i].study); /* every study is here */
        struct lab_study_table table = table_of(&shipped[i]);
        assert_non_null(table.answers);
        assert_int_equal(
            lab_analysis_check_answers(
                lab_value_get(lab_value_get(plan.config, "experiment"), "answers"), NULL),
            0);
        /* whatever it is called */
        table.name = table.option = "mine";
        if (strcmp(order_of(&table), expected) != 0)
            fail_msg("%s: %s", shipped[i].study, order_of(&table));
        /* studies of 0.1.0 name no questions: their plans tell */
        table.answers = NULL;
        if (!shipped[i].by_name && strncmp(order_of(&table), expected, strcspn(expected, " ")) != 0)
            fail_msg("%s without answers: %s", shipped[i].study, order_of(&table));
    }
    assert_null(names[sizeof shipped / sizeof *shipped]);
}

/* A question that the runs of a study don't answer is left out; one that is asked is answered. */
LAB_TEST(what_runs_decides_what_is_answered) {
    static const struct shipped one_model = {
        "quick_test", "correlate", .words = {"experiment.vit_configs=[{depth: 4, dim: 512}]"}};
    static const struct shipped short_runs = {
        "stability", "stability numa peers recommend crossover scaling correlate",
        .words = {"experiment.test.num_samples=10", "experiment.test.warmup_samples=0"}};
    struct lab_study_table table = table_of(&one_model);
    assert_string_equal(order_of(&table), one_model.order);
    table = table_of(&short_runs);
    assert_string_equal(order_of(&table), short_runs.order);
    table.answers = NULL;
    assert_null(strstr(order_of(&table), "stability"));
}

LAB_TEST(unknown_answers_name_the_nearest) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *list = lab_value_list(&arena);
    assert_int_equal(lab_analysis_check_answers(NULL, &err), 0);
    assert_int_equal(lab_analysis_check_answers(list, &err), 0);
    lab_value_append(&arena, list, lab_value_string(&arena, "numa"));
    assert_int_equal(lab_analysis_check_answers(list, &err), 0);
    lab_value_append(&arena, list, lab_value_string(&arena, "recomend"));
    assert_int_equal(lab_analysis_check_answers(list, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_non_null(strstr(err.text, "experiment.answers: unknown analysis 'recomend' (did you "
                                     "mean 'recommend'?); reports have compile, "));
    /* one that reads traces is no part of a study's report */
    list->items[1] = lab_value_string(&arena, "latency");
    assert_int_equal(lab_analysis_check_answers(list, &err), -1);
}

/* Others find a study by its question. */
LAB_TEST(a_question_has_its_study) {
    assert_string_equal(lab_config_study_for("numa", &arena), "numa_study");
    assert_string_equal(lab_config_study_for("compile", &arena), "compile_study");
    assert_string_equal(lab_config_study_for("training", &arena), "train_scaling");
    assert_string_equal(lab_config_study_for("contention", &arena), "contention");
    assert_null(lab_config_study_for("latency", &arena));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
