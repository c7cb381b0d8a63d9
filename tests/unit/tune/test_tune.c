/*
 * The tuner on the CPU: with kernels that are real, and with one that only pretends, so that every
 * time is known beforehand. What fails, is wrong or vanishes is made to do so by slots of the
 * device and of the workload that the test has swapped.
 */
#include "device/tunable.h"
#include "tune/tune.h"
#include "unit/workload/on_cpu.h"

#include "base/json.h"
#include "base/random.h"
#include "store/tuning/timing_file.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a kernel that only pretends: the space of softmax, times as the test wants them --- */

struct pretend {
    struct lab_tuning tuning;
};

static double (*time_us)(const struct lab_tuning *tuning); /* of the configuration */
static double noise;                                       /* ± share */
static uint64_t drawn;
static struct lab_tuning wrong_one, failing_one; /* planted; count 0 = none */
static struct lab_tuning tiring_one;             /* works `tires_after` times */
static int tires_after;
static int runs_left; /* then the device is gone; -1 = never */
static int verified, ran;

static bool same(const struct lab_tuning *a, const struct lab_tuning *b) {
    return a->count && lab_tuning_equal(a, b);
}

static void pretend_launch(const void *config, struct lab_launch *ret_launch) {
    (void)config;
    struct lab_tensor x = lab_tensor_matrix(NULL, LAB_FP32, 64, 100);
    *ret_launch = (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {x}, .out = x};
}

static int pretend_open(const void *config, const struct lab_rank *rank, void **ret_state,
                        struct lab_err *err) {
    (void)config, (void)rank, (void)err;
    *ret_state = lab_mem_alloc(1, sizeof(struct pretend));
    return 0;
}

static int pretend_configure(void *state, const struct lab_tuning *tuning, struct lab_err *err) {
    (void)err;
    ((struct pretend *)state)->tuning = *tuning;
    return 0;
}

static int pretend_run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    const struct pretend *pretend = state;
    if (runs_left == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the device fell off the bus");
    if (same(&failing_one, &pretend->tuning))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "ptxas: too many registers");
    if (same(&tiring_one, &pretend->tuning) && tires_after-- <= 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "too many resources requested for launch");
    runs_left -= runs_left > 0;
    for (int i = 0; i < count; i++) {
        double share = 1 + noise * (2 * lab_random_uniform(7, drawn++) - 1);
        records[i].start_ns = lab_clock_now(lab_clock_system());
        records[i].end_ns =
            records[i].start_ns + (int64_t)(1e3 * time_us(&pretend->tuning) * share);
    }
    ran++;
    return 0;
}

static int pretend_verify(void *state, uint64_t seed, struct lab_verification *ret,
                          struct lab_err *err) {
    struct lab_iteration record;
    (void)seed;
    verified++;
    if (pretend_run(state, 1, &record, err))
        return -1;
    *ret = (struct lab_verification){.applicable = true, .passed = true};
    if (same(&wrong_one, &((struct pretend *)state)->tuning)) {
        ret->passed = false;
        snprintf(ret->text, sizeof ret->text, "relative error 3.1e-01");
    }
    return 0;
}

static const struct lab_workload pretending = {
    .name = "pretending",
    .help = "takes as long as it is told",
    .open = pretend_open,
    .close = lab_mem_free,
    .run = pretend_run,
    .verify = pretend_verify,
    .launch = pretend_launch,
    .configure = pretend_configure,
};

/* --- fixture --- */

static struct on_cpu cpu;

static int set_up(void **state) {
    (void)state;
    on_cpu_open(&cpu);
    noise = 0.01;
    drawn = 0;
    wrong_one = failing_one = tiring_one = (struct lab_tuning){0};
    runs_left = -1;
    verified = ran = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    on_cpu_close(&cpu);
    return 0;
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};

static struct lab_tuning tuning_of(int rows, int stream) {
    return (struct lab_tuning){.count = 3, .values = {rows, stream, 0}};
}

static struct lab_tune_plan plan_of(const struct lab_workload *workload, const void *config) {
    static struct lab_session session;
    session = (struct lab_session){.machine = cpu.machine,
                                   .workload = workload,
                                   .config = config,
                                   .arena = &cpu.arena,
                                   .rank = cpu.rank,
                                   .ref = cpu.device->ref,
                                   .device = cpu.device};
    return (struct lab_tune_plan){.session = &session, .budget_s = 5, .warm = true};
}

static struct lab_tuning_result tune(const struct lab_tune_plan *plan) {
    struct lab_tuning_result result;
    ASSERT_OK(lab_tune(plan, &cpu.arena, &result, err));
    return result;
}

static void refused(const struct lab_tune_plan *plan, enum lab_err_code code, const char *part) {
    struct lab_tuning_result result;
    ASSERT_FAILS(lab_tune(plan, &cpu.arena, &result, err), code, part);
}

static const struct lab_trial *trial_of(const struct lab_tuning_result *result,
                                        const char *config) {
    for (int i = 0; i < result->trial_count; i++)
        if (lab_str_equal(result->trials[i].config, config))
            return &result->trials[i];
    fail_msg("there is no %s", config);
    return NULL;
}

/* --- who wins --- */

static double streaming_is_twice_as_fast_with_16(const struct lab_tuning *tuning) {
    return tuning->values[0] == 16 && tuning->values[1] ? 50 : 100 + tuning->values[0];
}

LAB_TEST(a_clear_winner_is_named_with_every_strategy) {
    time_us = streaming_is_twice_as_fast_with_16;
    for (int strategy = 0; lab_tune_strategies[strategy]; strategy++) {
        struct lab_tune_plan plan = plan_of(&pretending, NULL);
        plan.strategy = (enum lab_tune_strategy)strategy;
        struct lab_tuning_result result = tune(&plan);
        assert_int_equal(result.trial_count, 8); /* rows 1, 4, 16, 64 × stream: rows are 64 */
        assert_int_equal(result.illegal, 48 - 8);
        assert_string_equal(result.trials[result.best].config, "rows=16,stream=1,part=0");
        assert_true(result.certain && result.alike_count == 1);
        assert_true(result.speedup > 2 && result.speedup_low > 2 && result.speedup_high < 4);
        double median_s = result.trials[result.best].median_s;
        assert_true(median_s > 49e-6 && median_s < 51e-6);
        assert_true(result.trials[result.best].low_s <= median_s);
        assert_false(result.interrupted);
        assert_int_equal(lab_tuning_result_count(&result, LAB_TRIAL_MEASURED), 8);
    }
}

static double all_alike(const struct lab_tuning *tuning) {
    (void)tuning;
    return 100;
}

LAB_TEST(what_can_not_be_told_apart_is_a_set_and_the_default_stays) {
    time_us = all_alike;
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    struct lab_tuning_result result = tune(&plan);
    assert_false(result.certain);
    assert_true(result.alike_count >= 2);
    assert_int_equal(result.best, 0);
    assert_string_equal(result.trials[0].config, "rows=64,stream=0,part=0");
    assert_true(isnan(result.speedup)); /* over itself */
}

static double drifting_us;
static double drifts(const struct lab_tuning *tuning) {
    drifting_us *= 1.001; /* each run slower than the last: a clock that goes down */
    return drifting_us * (tuning->values[1] ? 1 : 1.05);
}

/* Unpaired, five per cent would drown in a drift of several hundred. */
LAB_TEST(a_drift_hits_all_alike) {
    time_us = drifts;
    drifting_us = 100;
    noise = 0.001;
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    struct lab_tuning_result result = tune(&plan);
    for (int i = 0; i < result.alike_count; i++)
        assert_contains(result.trials[result.alike[i]].config, "stream=1");
    assert_true(result.speedup_low > 1.03 && result.speedup_high < 1.07);
    assert_non_null(result.warnings[0]);
    bool warned = false;
    for (int i = 0; result.warnings[i]; i++)
        warned = warned || strstr(result.warnings[i], "default's time changed");
    assert_true(warned);
}

/* --- what is ruled out --- */

LAB_TEST(planted_faults_are_ruled_out_with_the_reason) {
    time_us = streaming_is_twice_as_fast_with_16;
    wrong_one = tuning_of(16, 1); /* the fastest, of all */
    failing_one = tuning_of(4, 1);
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    struct lab_tuning_result result = tune(&plan);
    const struct lab_trial *wrong = trial_of(&result, "rows=16,stream=1,part=0");
    const struct lab_trial *failed = trial_of(&result, "rows=4,stream=1,part=0");
    assert_int_equal(wrong->state, LAB_TRIAL_WRONG);
    assert_string_equal(wrong->reason, "relative error 3.1e-01");
    assert_int_equal(wrong->time_count, 0);
    assert_int_equal(failed->state, LAB_TRIAL_FAILED);
    assert_string_equal(failed->reason, "ptxas: too many registers");
    assert_string_not_equal(result.trials[result.best].config, wrong->config);
    assert_int_equal(lab_tuning_result_count(&result, LAB_TRIAL_MEASURED), 6);
}

/* It was right when it was verified; then it fails, while narrowing or as late as in the finals. */
LAB_TEST(what_fails_while_it_is_timed_is_out_and_the_others_go_on) {
    time_us = streaming_is_twice_as_fast_with_16;
    for (int strategy = 0; lab_tune_strategies[strategy]; strategy++)
        for (int after = 1; after <= 13; after += 12) {
            struct lab_tune_plan plan = plan_of(&pretending, NULL);
            plan.strategy = (enum lab_tune_strategy)strategy;
            tiring_one = tuning_of(16, 1); /* the fastest of all */
            tires_after = after;
            struct lab_tuning_result result = tune(&plan);
            const struct lab_trial *failed = trial_of(&result, "rows=16,stream=1,part=0");
            assert_int_equal(failed->state, LAB_TRIAL_FAILED);
            assert_string_equal(failed->reason, "too many resources requested for launch");
            assert_int_equal(lab_tuning_result_count(&result, LAB_TRIAL_MEASURED), 7);
            assert_int_equal(result.trials[result.best].state, LAB_TRIAL_MEASURED);
            assert_true(result.trials[result.best].final);
            for (int i = 0; i < result.alike_count; i++)
                assert_string_not_equal(result.trials[result.alike[i]].config, failed->config);
        }
}

/* The device itself computes something else where the launch has that configuration. */
static const struct lab_device_ops *real_ops;
static int spoil(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err) {
    struct lab_launch spoilt = *launch;
    if (same(&wrong_one, &launch->tuning))
        spoilt.scale *= 1.5f;
    return real_ops->launch(stream, &spoilt, err);
}

LAB_TEST(a_real_kernel_that_is_wrong_is_found_out) {
    const struct lab_workload *flash = lab_workload_find("flash_attention_v2", NULL);
    void *config = on_cpu_configure(&cpu, flash, WORDS("batch=1", "heads=1", "seq=20"));
    struct lab_device_ops ops = *cpu.device->ops;
    real_ops = cpu.device->ops;
    ops.launch = spoil;
    cpu.device->ops = &ops;
    wrong_one = (struct lab_tuning){.count = 2, .values = {32, 64}};
    struct lab_tune_plan plan = plan_of(flash, config);
    plan.budget_s = 0.3;
    plan.warm = false;
    struct lab_tuning_result result = tune(&plan);
    cpu.device->ops = real_ops;
    assert_int_equal(result.trial_count, 2);
    assert_int_equal(trial_of(&result, "block_q=32,block_k=64")->state, LAB_TRIAL_WRONG);
    assert_int_equal(trial_of(&result, "block_q=16,block_k=64")->state, LAB_TRIAL_MEASURED);
    assert_string_equal(result.trials[result.best].config, "block_q=16,block_k=64");
}

static int never(const struct lab_tunable_place *place, const struct lab_launch *launch,
                 const struct lab_tuning *tuning, struct lab_err *err) {
    (void)place, (void)launch, (void)tuning;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "heads of 80 don't fit");
}

static struct lab_tunable narrow_space;
static const struct lab_tunable *find_narrow(const struct lab_tunable_place *place,
                                             const struct lab_launch *launch) {
    (void)place, (void)launch;
    return &narrow_space;
}

/* The registry of this program: the CPU, and the same with another space. */
extern const struct lab_backend lab_backend_cpu;
static struct lab_backend narrow;
const struct lab_backend *const lab_backends[] = {&lab_backend_cpu, &narrow, NULL};

LAB_TEST(a_shape_that_nothing_supports_is_refused) {
    struct lab_launch launch;
    const struct lab_tunable_place place = {cpu.machine, &cpu.device->ref};
    pretend_launch(NULL, &launch);
    narrow_space = *lab_tunable_find(&place, &launch);
    narrow_space.check = never;
    narrow = lab_backend_cpu;
    narrow.name = "narrow";
    narrow.tunable = find_narrow;
    cpu.device->ref.backend = "narrow";
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    refused(&plan, LAB_ERR_UNSUPPORTED, "heads of 80 don't fit");
    narrow.tunable = NULL;
    refused(&plan, LAB_ERR_UNSUPPORTED, "has no configurations of pretending in fp32");
}

LAB_TEST(nothing_to_tune_is_refused) {
    const struct lab_workload *memcpy_workload = lab_workload_find("memcpy", NULL);
    struct lab_tune_plan plan = plan_of(memcpy_workload, NULL);
    refused(&plan, LAB_ERR_USER, "memcpy is not a tunable kernel");
}

/* --- interruptions --- */

static struct lab_trial kept[64];
static int kept_count;

static void keep(const struct lab_trial *trial, void *state) {
    (void)state;
    int at = 0;
    while (at < kept_count && !lab_str_equal(kept[at].config, trial->config))
        at++;
    kept[at] = *trial;
    kept_count = at == kept_count ? kept_count + 1 : kept_count;
}

static int tells_left;
static bool stop_soon(const struct lab_tune_progress *progress, void *state) {
    (void)state;
    assert_true(progress->fraction >= 0 && progress->fraction <= 1);
    return tells_left-- <= 0;
}

LAB_TEST(a_device_that_vanishes_leaves_what_was_known) {
    time_us = all_alike;
    kept_count = 0;
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    plan.keep = keep;
    /* while verifying: the fourth fails, and so does the default that worked before */
    runs_left = 3;
    refused(&plan, LAB_ERR_SYSTEM, "has stopped working (the device fell off the bus)");
    assert_int_equal(kept_count, 3);
    for (int i = 0; i < kept_count; i++)
        assert_int_equal(kept[i].state, LAB_TRIAL_VERIFIED);
    /* while timing */
    kept_count = 0;
    runs_left = 20;
    refused(&plan, LAB_ERR_SYSTEM, "the device fell off the bus");
    assert_int_equal(kept_count, 8);
}

LAB_TEST(what_was_known_is_not_done_again) {
    time_us = streaming_is_twice_as_fast_with_16;
    kept_count = 0;
    wrong_one = tuning_of(1, 0);
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    plan.keep = keep;
    plan.progress = stop_soon;
    tells_left = 5; /* in the middle of verifying */
    refused(&plan, LAB_ERR_INTERRUPTED, "stopped before anything was timed");
    assert_int_equal(kept_count, 5);
    int before = verified;
    plan.progress = NULL;
    plan.known = lab_arena_alloc(&cpu.arena, (size_t)kept_count, sizeof *kept);
    memcpy((void *)plan.known, kept, (size_t)kept_count * sizeof *kept);
    plan.known_count = kept_count;
    struct lab_tuning_result result = tune(&plan);
    assert_int_equal(verified - before, 8 - 5);
    assert_string_equal(result.trials[result.best].config, "rows=16,stream=1,part=0");
    assert_int_equal(trial_of(&result, "rows=1,stream=0,part=0")->state, LAB_TRIAL_WRONG);
}

LAB_TEST(stopped_while_timing_names_nobody) {
    time_us = streaming_is_twice_as_fast_with_16;
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    plan.progress = stop_soon;
    tells_left = 8 + 24; /* behind the first rung */
    struct lab_tuning_result result = tune(&plan);
    assert_true(result.interrupted && !result.certain);
    assert_int_equal(result.alike_count, 0);
    assert_true(result.best >= 0);
}

/* --- the result --- */

LAB_TEST(the_result_has_the_published_fields) {
    time_us = streaming_is_twice_as_fast_with_16;
    wrong_one = tuning_of(1, 1);
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    struct lab_tuning_result result = tune(&plan);
    struct lab_value *value = lab_timing_file_value(&result, &cpu.arena);
    assert_string_equal(lab_value_get(value, "kernel_name")->string, "pretending");
    assert_string_equal(lab_value_get(value, "gpu")->string, cpu.device->ref.name);
    const struct lab_value *best = lab_value_get(value, "best_config");
    assert_int_equal(lab_value_get(best, "rows")->integer, 16);
    assert_int_equal(lab_value_get(best, "stream")->integer, 1);
    assert_true(lab_value_get(value, "best_time_ms")->number > 0.04);
    assert_int_equal(lab_value_get(value, "all_benchmark_times")->count, 7);
    assert_int_equal(lab_value_get(value, "num_configs_tested")->integer, 8);
    const struct lab_value *timings = lab_value_get(value, "detailed_timings");
    assert_true(timings->count >= 7);
    assert_true(lab_value_get(timings->items[0], "timestamp")->number > 1.6e9);
    assert_true(lab_value_get(timings->items[0], "time_ms")->number > 0);
    assert_true(lab_value_get(value, "autotune_duration_seconds")->number > 0);
}

LAB_TEST(a_result_that_was_written_is_read) {
    struct lab_tune_plan plan = plan_of(&pretending, NULL);
    struct lab_tuning_result result = tune(&plan);
    const struct lab_trial *best = &result.trials[result.best];
    struct lab_timing_file file;
    char path[] = "/tmp/gpulab-test-tune-XXXXXX";
    int fd = mkstemp(path), timings = 0;
    LAB_AUTO(str, text);
    lab_json_write(lab_timing_file_value(&result, &cpu.arena), 2, &text);
    assert_int_equal(write(fd, text.text, text.length), text.length);
    close(fd);
    ASSERT_OK(lab_timing_file_read(path, &cpu.arena, &file, err));
    unlink(path);
    for (int i = 0; i < result.trial_count; i++)
        timings += result.trials[i].time_count;
    assert_string_equal(file.kernel, result.kernel);
    assert_string_equal(file.gpu, result.device);
    assert_string_equal(file.best_text, best->config);
    assert_float_equal(file.best_time_s, best->median_s, 1e-12);
    assert_int_equal(file.timing_count, timings);
}

LAB_TEST(strategies_have_names) {
    enum lab_tune_strategy strategy;
    ASSERT_OK(lab_tune_strategy_parse("exhaustive", &strategy, err));
    assert_int_equal(strategy, LAB_TUNE_EXHAUSTIVE);
    ASSERT_SAYS(lab_tune_strategy_parse("greedy", &strategy, err),
                "must be successive_halving, exhaustive or random");
}
