/*
 * Data-parallel training: each rank computes its rows' share of the gradient, the shares are
 * summed, each updates its own copy. The parameters must be those of one device that does whole
 * batches, to rounding, and the same on all ranks to the bit; and a rank that fails ends the
 * others.
 */
#include "unit/workload/on_ranks.h"
#include "workload/mlp/mlp.h"

#include <math.h>

extern const struct lab_workload lab_workload_mlp;

#define MODEL "widths=50-40-24-3", "dropout=0.3", "batch_size=17", "dataset_size=200"

/* What one device makes of the same steps; the caller frees. */
static double *state_of_one(struct rank *rank, const char *const *words, int64_t *ret_count) {
    struct lab_iteration records[STEPS];
    struct mlp_training *t = on_cpu_start(&rank->cpu, &lab_workload_mlp, words);
    ASSERT_OK(lab_workload_mlp.run(t, STEPS, records, err));
    *ret_count = lab_mlp_state_count(&t->shape.mlp);
    double *state = lab_mem_alloc((size_t)*ret_count, sizeof *state);
    for (int64_t i = 0; i < *ret_count; i++)
        state[i] = (double)((const float *)t->state.data)[i];
    lab_workload_mlp.close(t);
    return state;
}

static void check_ranks(struct rank *ranks, int count, const char *const *words,
                        const double *expected, int64_t size) {
    struct lab_group *group = train_together(ranks, count, &lab_workload_mlp, words, STEPS);
    for (int i = 0; i < count; i++)
        if (ranks[i].failed)
            fail_msg("rank %d of %d: %s", i, count, ranks[i].err.text);
    const struct mlp_training *one = ranks[0].training;
    const float *first = one->state.data;
    struct lab_verification v;
    lab_verify_compare(first, expected, lab_mlp_parameters(&one->shape.mlp), LAB_POISON, 1e-5, &v);
    if (!v.passed)
        fail_msg("%d ranks: %s", count, v.text);
    for (int64_t i = size - LAB_MLP_TAIL; i < size; i++) /* the step and the losses */
        assert_true(fabs((double)first[i] - expected[i]) <= 1e-5 * fabs(expected[i]));
    for (int i = 0; i < count; i++) {
        const struct mlp_training *own = ranks[i].training;
        assert_memory_equal(own->state.data, first, (size_t)size * sizeof *first);
        assert_true(ranks[i].communications > 0);
    }
    close_together(ranks, count, group);
}

/* A batch that doesn't divide: 9 + 8 rows on two ranks, 6 + 6 + 5 on three. */
LAB_TEST(ranks_learn_what_one_device_learns) {
    struct rank *ranks = *state;
    int64_t size = 0;
    double *expected = state_of_one(&ranks[0], WORDS(MODEL), &size);
    for (int n = 2; n <= RANKS; n++) {
        check_ranks(ranks, n, WORDS(MODEL), expected, size);
        /* a bucket for each layer, summed while the others are computed */
        check_ranks(ranks, n, WORDS(MODEL, "bucket=4"), expected, size);
        check_ranks(ranks, n, WORDS(MODEL, "overlap=false", "allreduce=hierarchical"), expected,
                    size);
        /* forward and backward as one operation in a graph; then the buckets' launches in one */
        check_ranks(ranks, n, WORDS(MODEL, "compile_model=true"), expected, size);
        check_ranks(ranks, n, WORDS(MODEL, "compile_model=true", "bucket=4"), expected, size);
    }
    lab_mem_free(expected);
}

/* Rounded operands are the same numbers wherever they are multiplied. */
LAB_TEST(ranks_learn_the_same_in_fewer_digits) {
    struct rank *ranks = *state;
    int64_t size = 0;
    double *expected = state_of_one(&ranks[0], WORDS(MODEL, "dtype=bf16"), &size);
    check_ranks(ranks, 2, WORDS(MODEL, "dtype=bf16", "compile_model=true"), expected, size);
    lab_mem_free(expected);
}

/* What of the first hidden layer is dropped or not positive in a step, row by row of the batch. */
static int zeros_of(const struct mlp_training *t, bool *zero) {
    const float *outputs = (const float *)t->work.data + lab_mlp_output_at(&t->shape.mlp, 0);
    int64_t width = t->shape.mlp.widths[1];
    int count = 0;
    for (int64_t i = 0; i < t->shape.mlp.rows * width; i++) {
        bool *at = &zero[t->shape.mlp.first_row * width + i];
        *at = outputs[i] == 0;
        count += *at;
    }
    return count;
}

LAB_TEST(what_is_dropped_is_the_same_on_any_number_of_ranks) {
    struct rank *ranks = *state;
    bool one[17 * 40], several[17 * 40];
    int zeros[RANKS + 1] = {0};
    for (int n = 1; n <= RANKS; n++) {
        struct lab_group *group = train_together(ranks, n, &lab_workload_mlp, WORDS(MODEL), STEPS);
        for (int i = 0; i < n; i++)
            zeros[n] += zeros_of(ranks[i].training, n == 1 ? one : several);
        if (n > 1)
            assert_memory_equal(several, one, sizeof one);
        close_together(ranks, n, group);
    }
    assert_int_equal(zeros[2], zeros[1]);
    assert_int_equal(zeros[3], zeros[1]);
    /* half are not positive, and of the others three in ten are dropped: 0.65 of them, ± 5 σ */
    assert_true(zeros[1] > 0.56 * 680 && zeros[1] < 0.74 * 680);
}

LAB_TEST(weak_scaling_is_a_larger_batch) {
    struct rank *ranks = *state;
    int64_t size = 0;
    double *expected = state_of_one(&ranks[0], WORDS(MODEL, "batch_size=20"), &size);
    check_ranks(ranks, 2, WORDS(MODEL, "batch_size=10", "scaling=weak"), expected, size);
    lab_mem_free(expected);
}

LAB_TEST(shares_add_up_to_the_batch) {
    struct rank *ranks = *state;
    struct lab_workload_cost cost;
    const void *config = on_cpu_configure(&ranks[0].cpu, &lab_workload_mlp, WORDS(MODEL));
    double samples = 0;
    for (int i = 0; i < RANKS; i++) {
        lab_workload_mlp.cost(config, &cost);
        assert_true(cost.samples == 17);
        lab_workload_mlp.share(config, i, RANKS, &cost);
        samples += cost.samples;
    }
    assert_true(samples == 17);
}

LAB_TEST(too_few_samples_are_refused) {
    struct rank *ranks = *state;
    struct lab_group *group =
        train_together(ranks, 3, &lab_workload_mlp, WORDS(MODEL, "batch_size=2"), STEPS);
    assert_true(ranks[2].failed);
    assert_contains(ranks[2].err.text, "too few for 3 devices");
    close_together(ranks, 3, group);
}

const struct lab_test_program lab_test_program = {.open = open_ranks, .close = close_ranks};
