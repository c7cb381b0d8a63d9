/*
 * Data-parallel training of GPT-2: each rank does its sequences of a batch, gradients are summed in
 * buckets. Parameters and losses must be those of one device that does whole batches, to rounding,
 * and the same on all ranks to the bit.
 */
#include "unit/workload/on_ranks.h"
#include "workload/gpt2/gpt2.h"

#include <math.h>
#include <string.h>

extern const struct lab_workload lab_workload_gpt2;

/* Two ranks have 2 + 1 sequences. */
#define MODEL                                                                                      \
    "depth=3", "width=64", "heads=1", "seq=5", "positions=7", "vocab=11", "batch_size=3",          \
        "lr=0.01", "dtype=fp32"

/* Adam divides gradients by their own size, so that the rounding of small ones counts in full: up to
 * 1.4e-4 with OpenBLAS's oldest kernels. A wrong share or scale of a gradient is off by 1e-2. */
#define TOLERANCE 3e-4

static double loss_of(const struct gpt2_training *t) {
    return (double)((const float *)t->told.data)[(STEPS - 1) * GPT2_TOLD + GPT2_LOSS];
}

static void check_ranks(struct rank *ranks, int count, const char *const *words,
                        const double *parameters, double loss) {
    struct lab_group *group = train_together(ranks, count, &lab_workload_gpt2, words, STEPS);
    for (int i = 0; i < count; i++)
        if (ranks[i].failed)
            fail_msg("rank %d of %d: %s", i, count, ranks[i].err.text);
    const struct gpt2_training *first = ranks[0].training;
    int64_t size = first->model.shape.parameters;
    struct lab_verification v;
    lab_verify_compare(first->singles.data, parameters, size, LAB_POISON, TOLERANCE, &v);
    if (!v.passed)
        fail_msg("%d ranks: off by %g %s", count, v.relative_error, v.text);
    assert_true(fabs(loss_of(first) - loss) <= 1e-4 * loss);
    for (int i = 0; i < count; i++) {
        const struct gpt2_training *own = ranks[i].training;
        assert_memory_equal(own->singles.data, first->singles.data, (size_t)(3 * size) * 4);
        assert_true(loss_of(own) == loss_of(first));
        assert_true(ranks[i].communications > 0);
    }
    close_together(ranks, count, group);
}

static double *train_one(struct rank *rank, const char *const *words, double *ret_loss) {
    struct lab_iteration records[STEPS];
    struct gpt2_training *t = on_cpu_start(&rank->cpu, &lab_workload_gpt2, words);
    int64_t size = t->model.shape.parameters;
    ASSERT_OK(gpt2_run(t, STEPS, records, err));
    double *parameters = lab_mem_alloc((size_t)size, sizeof *parameters);
    for (int64_t i = 0; i < size; i++)
        parameters[i] = (double)((const float *)t->singles.data)[i];
    *ret_loss = loss_of(t);
    gpt2_close(t);
    return parameters;
}

LAB_TEST(ranks_learn_what_one_device_learns) {
    struct rank *ranks = *state;
    static const char *const cases[][3] = {
        {"overlap=true"},
        {"bucket=4"}, /* one for each block */
        {"bucket=4", "compile_model=false", "recompute=gelu"},
        {"overlap=false", "allreduce=hierarchical"},
    };
    double loss = 0, *parameters = train_one(&ranks[0], WORDS(MODEL), &loss);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int n = 2; n <= RANKS; n++)
            check_ranks(ranks, n, WORDS(MODEL, cases[i][0], cases[i][1], cases[i][2]), parameters,
                        loss);
    lab_mem_free(parameters);
}

LAB_TEST(accumulation_and_weak_scaling_are_a_larger_batch) {
    struct rank *ranks = *state;
    double loss = 0;
    double *parameters =
        train_one(&ranks[0], WORDS(MODEL, "batch_size=4", "accumulation=2"), &loss);
    check_ranks(ranks, 2,
                WORDS(MODEL, "batch_size=2", "accumulation=2", "scaling=weak", "bucket=4"),
                parameters, loss);
    lab_mem_free(parameters);
}

/* Of a small model itself, and of one that is too large, for which a small one stands. */
LAB_TEST(sums_are_verified_with_double_precision) {
    struct rank *ranks = *state;
    static const char *const models[2][3] = {{"depth=2", "seq=2", "batch_size=3"},
                                             {"depth=4", "seq=7", "batch_size=130"}};
    for (int i = 0; i < 2; i++) {
        struct lab_verification found[2] = {{0}};
        ranks[0].verified = &found[0];
        ranks[1].verified = &found[1];
        struct lab_group *group =
            train_together(ranks, 2, &lab_workload_gpt2,
                           WORDS(MODEL, "bucket=4", models[i][0], models[i][1], models[i][2]), 1);
        for (int r = 0; r < 2; r++) {
            if (ranks[r].failed || !found[r].passed)
                fail_msg("rank %d: %s", r, ranks[r].failed ? ranks[r].err.text : found[r].text);
            assert_int_equal(strstr(found[r].text, "of a model with 2 blocks") != NULL, i);
        }
        close_together(ranks, 2, group);
    }
}

LAB_TEST(shares_add_up_and_too_few_sequences_are_refused) {
    struct rank *ranks = *state;
    struct lab_workload_cost cost, share;
    double samples = 0;
    const void *config = on_cpu_configure(&ranks[0].cpu, &lab_workload_gpt2, WORDS(MODEL));
    lab_workload_gpt2.cost(config, &cost);
    for (int i = 0; i < 2; i++) {
        lab_workload_gpt2.share(config, i, 2, &share);
        samples += share.samples;
    }
    assert_true(samples == cost.samples);
    struct lab_group *group =
        train_together(ranks, 3, &lab_workload_gpt2, WORDS(MODEL, "batch_size=2"), 1);
    assert_true(ranks[2].failed);
    assert_contains(ranks[2].err.text, "too few for 3 devices, each needs at least one sequence");
    close_together(ranks, 3, group);
    group = train_together(ranks, 2, &lab_workload_gpt2,
                           WORDS(MODEL, "allreduce=none", "checkpoint=test_gpt2.ranks"), 1);
    assert_true(ranks[0].failed);
    assert_contains(ranks[0].err.text, "checkpoint: one file, but with allreduce=none each of 2");
    close_together(ranks, 2, group);
}

const struct lab_test_program lab_test_program = {.open = open_ranks, .close = close_ranks};
