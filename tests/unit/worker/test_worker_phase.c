/*
 * test_worker_phase.c: what a worker does beside measuring in a study with phases: it tunes, runs
 * what was chosen, times choices side by side, probes its device, and has a neighbour on purpose.
 */
#include "unit/worker/worker_fixture.h"

static const struct lab_job_rank any_node[] = {{.device = "cpu:0", .numa_node = -1}};
static const char *const small[] = {"rows=64", "columns=256", NULL};

static struct lab_job small_job(const struct lab_job_rank *ranks) {
    struct lab_job job = job_of("softmax", small, ranks, 1);
    lab_value_set_string(&arena, job.options, LAB_WORKLOAD_CONFIG, LAB_CONFIG_DEFAULT);
    job.iterations = 20;
    job.verify = true;
    return job;
}

/* All the way; the result. */
static struct lab_value *carry_out(const struct lab_job *job) {
    struct runner runner = start_job(job);
    struct lab_frame frame;
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT)
        assert_true(frame.type != LAB_FRAME_READY && frame.type != LAB_FRAME_FAILURE);
    struct lab_value *result = value_of(frame.result);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
    return result;
}

static const char *text(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    assert_non_null(value);
    assert_int_equal(value->type, LAB_VALUE_STRING);
    return value->string;
}

static bool warns(const struct lab_value *result, const char *part) {
    const struct lab_value *list = lab_value_get(result, "warnings");
    for (int i = 0; list && i < list->count; i++)
        if (strstr(list->items[i]->string, part))
            return true;
    return false;
}

LAB_TEST(it_tunes_and_runs_what_it_chose) {
    struct lab_job job = small_job(any_node);
    job.tune_s = 0.3;
    job.probe = true;
    struct lab_value *result = carry_out(&job);
    const struct lab_value *tuning = lab_value_get(result, "tuning");
    assert_string_equal(text(tuning, "kernel_name"), "softmax");
    assert_string_equal(text(result, "configuration"), text(tuning, "best_config_text"));
    assert_true(number(result, "best_time_ms") > 0);
    assert_int_equal(lab_value_get(result, "best_config")->type, LAB_VALUE_MAP);
    assert_true(lab_value_get(lab_value_get(result, "verification"), "passed")->boolean);
    assert_true(number(result, "capacity.flops_per_second") > 0);
    assert_true(number(result, "capacity.memory_gb_per_s") > 0);
    assert_true(is_null(lab_value_get(result, "capacity"), "h2d_gb_per_s")); /* a CPU has no bus */
}

LAB_TEST(it_runs_what_it_is_told) {
    struct lab_job_rank told = any_node[0];
    told.config = "rows=4,stream=1,part=0";
    struct lab_job job = small_job(&told);
    struct lab_value *result = carry_out(&job);
    assert_string_equal(text(result, "configuration"), "rows=4,stream=1,part=0");
    assert_null(lab_value_get(result, "tuning"));
    /* what can't be done is said, not replaced by something else */
    told.config = "rows=3";
    struct runner runner = start_job(&job);
    struct lab_frame frame = hear_type(&runner, LAB_FRAME_FAILURE);
    assert_non_null(strstr(frame.failure.text, "configuration rows=3"));
    assert_int_equal(end_worker(&runner), 1);
}

LAB_TEST(choices_are_timed_side_by_side) {
    static const struct lab_job_choice choices[] = {
        {"baseline", "rows=1,stream=0,part=0"},
        {"concurrent", "rows=64,stream=0,part=0"},
        {"isolated", "rows=1,stream=0,part=0"}, /* the same as the first */
    };
    struct lab_job_rank rank = any_node[0];
    rank.choices = choices;
    rank.choice_count = 3;
    struct lab_job job = small_job(&rank);
    job.iterations = 60;
    struct lab_value *result = carry_out(&job);
    const struct lab_value *regret = lab_value_get(result, "regret");
    assert_int_equal(regret->count, 2);
    assert_string_equal(text(regret->items[0], "phase"), "concurrent");
    assert_false(lab_value_get(regret->items[0], "same")->boolean);
    assert_true(number(regret->items[0], "ratio") > 0);
    assert_true(lab_value_get(regret->items[1], "same")->boolean);
    assert_true(number(regret->items[1], "ratio") == 1);
    assert_true(number(result, "iterations") == 60); /* the first one's are the run's own */
}

LAB_TEST(a_neighbour_on_purpose_is_said) {
    static const char *const kinds[] = {"cpu", "membw"};
    for (int i = 0; i < 2; i++) {
        struct lab_job job = small_job(any_node);
        job.disturb = kinds[i];
        struct lab_value *result = carry_out(&job);
        assert_string_equal(text(result, "disturbed"), kinds[i]);
        assert_true(warns(result, lab_arena_printf(&arena, "disturbed on purpose: %s", kinds[i])));
    }
}

LAB_TEST(what_is_no_kernel_can_not_be_tuned) {
    struct lab_job job = job_of("memcpy", NULL, any_node, 1);
    job.iterations = 5;
    job.tune_s = 0.3;
    struct runner runner = start_job(&job);
    assert_non_null(
        strstr(hear_type(&runner, LAB_FRAME_FAILURE).failure.text, "not a tunable kernel"));
    assert_int_equal(end_worker(&runner), 1);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = worker_begin};
