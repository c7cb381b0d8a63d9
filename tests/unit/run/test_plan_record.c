/* test_plan_record.c: a planned run as the store has it, and which runs share their texts. */
#include "run/plan_record.h"

#include "test.h"
#include <math.h>
#include <string.h>

static const char *const notes[] = {"nobody else", NULL};
static const char *const series[] = {"depth", NULL}, *const others[] = {"batch", NULL};
static const struct lab_run_rank ranks[] = {{3, "cuda:3", 1}, {4, "cuda:4", 0}};
static const struct lab_plan_phase phase = {.name = "isolated", .mitigations = 0};
static struct lab_plan_run runs[2];
static struct lab_plan plan;

/* Two runs that differ in nothing. */
static void given_runs(void) {
    struct lab_value *options = lab_value_map(&test_arena);
    lab_value_set_int(&test_arena, options, "depth", 6);
    for (int i = 0; i < 2; i++)
        runs[i] = (struct lab_plan_run){.id = i ? "b" : "a",
                                        .identity = (uint64_t)i + 7,
                                        .workload = "vit",
                                        .options = options,
                                        .label = "vit6",
                                        .ranks = ranks,
                                        .rank_count = 2,
                                        .num_samples = 100,
                                        .warmup_samples = 20,
                                        .iterations = 10,
                                        .warmup_iterations = 2,
                                        .timeout_s = 300,
                                        .series = series};
    plan = (struct lab_plan){.runs = runs, .run_count = 2, .notes = notes};
}

static const char *texts_of(struct lab_run run) {
    return lab_arena_printf(&test_arena, "%s %s %s", run.options, run.series, run.test);
}

/* What differs is in the texts of both, however they are made; what is the same is made once. */
static void assert_differ(bool differ) {
    struct lab_plan_texts texts = {.count = 0};
    for (int i = 0; i < 2; i++) {
        struct lab_run run = lab_run_plan_record_with(&plan, i, &texts, &test_arena);
        assert_string_equal(texts_of(run), texts_of(lab_run_plan_record(&plan, i, &test_arena)));
        assert_int_equal(run.number, i + 1);
    }
    assert_int_equal(texts.count, differ ? 2 : 1);
}

LAB_TEST(runs_that_are_alike_share_their_texts) {
    given_runs();
    assert_differ(false);
    /* another place, another repeat */
    runs[1].ranks = &ranks[1];
    runs[1].rank_count = 1;
    runs[1].repeat = 3;
    assert_differ(false);
    for (int field = 0; field < 11; field++) {
        given_runs();
        struct lab_plan_run *run = &runs[1];
        if (field >= 7 && field < 10)
            runs[0].phase = runs[1].phase = &phase;
        switch (field) {
        case 0:
            run->options = lab_value_map(&test_arena);
            break;
        case 1:
            run->series = others;
            break;
        case 2:
            run->num_samples = 101;
            break;
        case 3:
            run->warmup_samples = 0;
            break;
        case 4:
            run->timeout_s = 1;
            break;
        case 5:
            run->processes = LAB_PLAN_LAUNCHER;
            break;
        case 6:
            run->phase = &phase;
            break;
        case 7:
            run->duration_s = 1;
            break;
        case 8:
            run->tune_s = 1;
            break;
        case 9:
            run->processes = LAB_PLAN_SHARED;
            break;
        case 10:
            run->slots = ranks, run->slot_count = 1;
            break;
        default:
            fail();
        }
        assert_differ(true);
    }
}

/* Given more kinds than are kept, then the last ones are. */
LAB_TEST(the_last_texts_are_kept) {
    enum { KINDS = LAB_PLAN_TEXTS + 1 };
    struct lab_plan_run many[2 * KINDS];
    struct lab_plan_texts texts = {.count = 0};
    given_runs();
    for (int i = 0; i < 2 * KINDS; i++) {
        many[i] = runs[0];
        many[i].num_samples = 1 + i % KINDS;
    }
    plan.runs = many;
    plan.run_count = 2 * KINDS;
    for (int i = 0; i < 2 * KINDS; i++) {
        struct lab_run run = lab_run_plan_record_with(&plan, i, &texts, &test_arena);
        assert_contains(run.test,
                        lab_arena_printf(&test_arena, "\"num_samples\": %d,", 1 + i % KINDS));
    }
    assert_int_equal(texts.count, 2 * KINDS);
    lab_run_plan_record_with(&plan, KINDS + 1, &texts, &test_arena);
    assert_int_equal(texts.count, 2 * KINDS);
    assert_int_equal(lab_run_plan_records(&plan, &test_arena)[KINDS].number, KINDS + 1);
}

LAB_TEST(a_record_says_how_the_run_is_carried_out) {
    given_runs();
    struct lab_run run = lab_run_plan_record(&plan, 1, &test_arena);
    assert_string_equal(run.options, "{\"depth\": 6}");
    assert_string_equal(run.series, "[\"depth\"]");
    assert_string_equal(run.test,
                        "{\"num_samples\": 100, \"warmup_samples\": 20, \"timeout_s\": 300.0}");
    assert_ptr_equal(run.ranks, ranks);
    assert_int_equal(run.rank_count, 2);
    assert_true(!run.spread && isnan(run.rate) && isnan(run.rate_low) && isnan(run.rate_high));
    assert_string_equal(run.rate_unit, "");
    assert_int_equal(run.identity, 8);
    /* one that is placed later is nowhere yet */
    runs[1].slots = ranks;
    runs[1].slot_count = 1;
    runs[1].processes = LAB_PLAN_LAUNCHER;
    run = lab_run_plan_record(&plan, 1, &test_arena);
    assert_true(run.spread);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run.ranks[i].gpu_id, -1);
        assert_int_equal(run.ranks[i].numa_node, -1);
        assert_string_equal(run.ranks[i].device, LAB_PLAN_ANY);
    }
    assert_string_equal(run.test,
                        "{\"num_samples\": 100, \"warmup_samples\": 20, \"timeout_s\": "
                        "300.0, \"processes\": \"launcher\", \"" LAB_RUN_SPREAD "\": true}");
}

LAB_TEST(a_phase_is_written_out) {
    static const struct {
        struct lab_plan_phase phase;
        enum lab_plan_processes processes;
        const char *said;
    } cases[] = {
        {{.name = "baseline"},
         LAB_PLAN_PER_RANK,
         "\"phase\": \"baseline\", \"place\": \"alone\", \"processes\": \"per_rank\", \"apart\": "
         "[], \"disturb\": null, \"duration_s\": 2.5, \"tune_s\": 1.5"},
        {{.name = "x", .together = true, .mitigations = 0x3f, .disturb = "membw"},
         LAB_PLAN_SHARED,
         "\"phase\": \"x\", \"place\": \"together\", \"processes\": \"shared\", \"apart\": "
         "[\"process\", \"affinity\", \"numa\", \"topology\", \"tuning_cache\", \"mps\"], "
         "\"disturb\": \"membw\", \"duration_s\": 2.5, \"tune_s\": 1.5"},
        {{.name = "y", .mitigations = 0x12},
         LAB_PLAN_SHARED,
         "\"phase\": \"y\", \"place\": \"alone\", \"processes\": \"shared\", \"apart\": "
         "[\"affinity\", \"tuning_cache\"], \"disturb\": null, \"duration_s\": 2.5, \"tune_s\": "
         "1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        given_runs();
        runs[0].phase = &cases[i].phase;
        runs[0].processes = cases[i].processes;
        runs[0].duration_s = 2.5;
        runs[0].tune_s = 1.5;
        assert_string_equal(lab_run_plan_record(&plan, 0, &test_arena).test,
                            lab_arena_printf(&test_arena,
                                             "{\"num_samples\": 100, \"warmup_samples\": 20, "
                                             "\"timeout_s\": 300.0, %s, \"notes\": "
                                             "[\"nobody else\"]}",
                                             cases[i].said));
    }
}
