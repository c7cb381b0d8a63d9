/*
 * Data-parallel training from the parts that are there: each device computes its rows' share of the
 * gradient, a ring sums the shares, each updates its own copy. The parameters must be those of one device
 * that does whole batches, to rounding, and the same on all of them to the bit.
 */
#include "unit/workload/on_cpu.h"
#include "workload/mlp/mlp.h"
#include "workload/ring/ring.h"

#include <math.h>
#include <pthread.h>

extern const struct lab_workload lab_workload_mlp;

enum { RANKS = 3, STEPS = 20, BATCH = 20 };

#define MODEL "widths=50-40-24-3", "dropout=0.3", "batch_size=20", "dataset_size=200"

struct rank {
    struct on_cpu cpu;
    struct mlp_training *training;
    struct ring *ring;
    int index;
    int64_t first_row, rows;
    int failed;
    struct lab_err err;
    pthread_t thread;
};

static int train(struct rank *rank, struct lab_err *err) {
    struct mlp_training *t = rank->training;
    struct lab_launch forward = t->launches[0], backward = t->launches[1];
    struct ring_member *member = NULL;
    forward.mlp.first_row = backward.mlp.first_row = rank->first_row;
    forward.mlp.rows = backward.mlp.rows = rank->rows;
    forward.out.shape[0] = lab_mlp_forward_count(&forward.mlp);
    backward.in[2].shape[0] = lab_mlp_work_count(&forward.mlp);
    int failed = ring_join(rank->ring, rank->index, rank->cpu.device, -1, &member, err);
    for (int step = 0; step < STEPS && !failed; step++)
        failed = lab_launch(t->stream, &forward, err) || lab_launch(t->stream, &backward, err) ||
                 lab_stream_sync(t->stream, err) ||
                 ring_sum(member, t->gradient.data, lab_mlp_gradient_count(&t->shape.mlp), err) ||
                 lab_launch(t->stream, &t->launches[2], err) || lab_stream_sync(t->stream, err);
    ring_leave(member);
    return failed;
}

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    rank->failed = train(rank, &rank->err);
    return NULL;
}

static int open_ranks(void **state) {
    struct rank *ranks = lab_mem_alloc(RANKS, sizeof *ranks);
    for (int i = 0; i < RANKS; i++)
        on_cpu_open(&ranks[i].cpu);
    *state = ranks;
    return 0;
}

static int close_ranks(void **state) {
    struct rank *ranks = *state;
    for (int i = 0; i < RANKS; i++)
        on_cpu_close(&ranks[i].cpu);
    lab_mem_free(ranks);
    return 0;
}

/* Shards of 20 rows over two and three ranks: 10 + 10; 6 + 7 + 7. */
static void train_together(struct rank *ranks, int count) {
    struct lab_err err = LAB_ERR_INIT;
    struct ring *ring = NULL;
    const struct ring_setup setup = {.members = count, .slice_bytes = 1024, .limit_s = 30};
    if (ring_open(&setup, &ring, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < count; i++) {
        ranks[i].training = on_cpu_start(&ranks[i].cpu, &lab_workload_mlp, WORDS(MODEL));
        ranks[i].ring = ring;
        ranks[i].index = i;
        ranks[i].first_row = BATCH * i / count;
        ranks[i].rows = BATCH * (i + 1) / count - ranks[i].first_row;
        ranks[i].err = (struct lab_err)LAB_ERR_INIT;
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    ring_close(ring);
    for (int i = 0; i < count; i++)
        if (ranks[i].failed)
            fail_msg("rank %d: %s", i, ranks[i].err.text);
}

/* What one device makes of the same steps; the caller frees. */
static double *state_of_one(struct rank *rank, int64_t *ret_count) {
    struct lab_iteration records[STEPS];
    struct lab_err err = LAB_ERR_INIT;
    struct mlp_training *t = on_cpu_start(&rank->cpu, &lab_workload_mlp, WORDS(MODEL));
    if (lab_workload_mlp.run(t, STEPS, records, &err))
        fail_msg("%s", err.text);
    *ret_count = lab_mlp_state_count(&t->shape.mlp);
    double *state = lab_mem_alloc((size_t)*ret_count, sizeof *state);
    for (int64_t i = 0; i < *ret_count; i++)
        state[i] = (double)((const float *)t->state.data)[i];
    lab_workload_mlp.close(t);
    return state;
}

static void ranks_learn_what_one_device_learns(void **state) {
    struct rank *ranks = *state;
    int64_t count = 0;
    double *expected = state_of_one(&ranks[0], &count);
    for (int n = 2; n <= RANKS; n++) {
        train_together(ranks, n);
        const float *first = ranks[0].training->state.data;
        struct lab_verification v;
        lab_verify_compare(first, expected, lab_mlp_parameters(&ranks[0].training->shape.mlp),
                           LAB_POISON, 1e-5, &v);
        if (!v.passed)
            fail_msg("%d ranks: %s", n, v.text);
        for (int64_t i = count - LAB_MLP_TAIL; i < count; i++) /* the step and the losses */
            assert_true(fabs((double)first[i] - expected[i]) <= 1e-5 * fabs(expected[i]));
        for (int i = 0; i < n; i++)
            assert_memory_equal(ranks[i].training->state.data, first,
                                (size_t)count * sizeof *first);
        for (int i = 0; i < n; i++)
            lab_workload_mlp.close(ranks[i].training);
    }
    lab_mem_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_learn_what_one_device_learns),
    };
    return cmocka_run_group_tests(tests, open_ranks, close_ranks);
}
