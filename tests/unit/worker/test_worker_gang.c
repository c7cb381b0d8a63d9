/*
 * test_worker_gang.c: ranks of one worker that iterate together: they have the same stretches,
 * whatever each one's own clock says. Else a workload that does something once in each stretch,
 * such as a sum that isn't timed, would do it more often on one rank than on another, and wait for
 * ever. And they probe together what they share.
 */
#include "unit/worker/worker_fixture.h"

#include "unit/device/sim_fixture.h"

#include <math.h>

enum { RANKS = 3, STRETCHES_MOST = 200, CHANCES = 5 };

/* Commands take now longer, now shorter, and stall: the ranks' clocks differ after a stretch. */
#define MACHINE                                                                                    \
    TOY_HEAD "noise: {each: {compute: 0.2, copy: 0.2}, tail_per_s: 100, tail_us: 200, "            \
             "tail_shape: 2, tail_most_us: 5000}\n"

static const struct lab_job_rank simulated[RANKS] = {
    {0, 0, "sim:toy:0", -1}, {1, 1, "sim:toy:1", -1}, {2, 2, "sim:toy:2", -1}};

struct chunks { /* of one rank, after its warm-up */
    size_t sizes[STRETCHES_MOST];
    int count;
    int64_t iterations;
};

static void note(struct chunks *chunks, const struct lab_frame *frame) {
    assert_true(chunks->count < STRETCHES_MOST);
    assert_int_equal(frame->iterations.first, chunks->iterations);
    chunks->sizes[chunks->count++] = frame->iterations.count;
    chunks->iterations += (int64_t)frame->iterations.count;
}

/* Leaves the slowest rank's rate of copies to its device. */
static double carry_out(const struct lab_job *job, struct chunks ret_stretches[RANKS]) {
    struct runner runner = start_job(job);
    struct lab_frame frame;
    int results = 0;
    double h2d_gb_per_s = INFINITY;
    for (int i = 0; i < job->rank_count; i++)
        hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    while (results < job->rank_count && hear(&runner, &frame)) {
        if (frame.type == LAB_FRAME_FAILURE)
            fail_msg("the worker failed: %s", frame.failure.text);
        if (frame.type == LAB_FRAME_ITERATIONS)
            note(&ret_stretches[frame.rank], &frame);
        if (frame.type != LAB_FRAME_RESULT)
            continue;
        h2d_gb_per_s = fmin(h2d_gb_per_s, frame.result->capacity_h2d_gb_per_s);
        results++;
    }
    assert_int_equal(results, job->rank_count);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
    return h2d_gb_per_s;
}

static void check_stretches(const char *workload, const char *const *words, uint64_t chance) {
    struct chunks found[RANKS] = {{{0}}};
    struct lab_job job = job_of(workload, words, simulated, RANKS);
    job.machine = "toy";
    job.definition = MACHINE;
    job.chance = chance;
    job.start_ns = LAB_NS_PER_S;
    job.iterations = 500;
    job.warmup_iterations = 20;
    carry_out(&job, found);
    assert_int_equal(found[0].iterations, 500);
    assert_true(found[0].count > 1);
    for (int i = 1; i < RANKS; i++) {
        assert_int_equal(found[i].count, found[0].count);
        assert_memory_equal(found[i].sizes, found[0].sizes, sizeof found[0].sizes);
    }
}

LAB_TEST(ranks_that_sum_have_the_same_stretches) {
    static const char *const words[] = {"bytes=2MiB", "allreduce=ring", NULL};
    for (uint64_t chance = 1; chance <= CHANCES; chance++)
        check_stretches("allreduce", words, chance);
}

LAB_TEST(ranks_that_train_have_the_same_stretches) {
    static const char *const words[] = {"model=medium", "batch_size=64", NULL};
    for (uint64_t chance = 1; chance <= CHANCES; chance++)
        check_stretches("mlp", words, chance);
}

/* Of the first `ranks`, of which GPU 1 computes slower by as much. */
static double probe_copies(int ranks, double slower, const char *noise, uint64_t chance) {
    static const char *const words[] = {"rows=64", "columns=256", NULL};
    struct chunks unused[RANKS] = {{{0}}};
    struct lab_job job = job_of("softmax", words, simulated, ranks);
    job.machine = "toy";
    job.definition = lab_arena_printf(
        &arena, TOY_HEAD "%seffects: {slow_gpu: [{gpu: 1, compute: %g}]}\n", noise, slower);
    job.chance = chance;
    job.start_ns = LAB_NS_PER_S;
    job.iterations = 20;
    job.probe = true;
    return carry_out(&job, unused);
}

LAB_TEST(probes_of_a_shared_bridge_overlap_entirely) {
    static const char noise[] = "noise: {each: {compute: 0.02, copy: 0.02}, tail_per_s: 3, "
                                "tail_us: 40, tail_shape: 1.8, tail_most_us: 3000}\n";
    for (uint64_t chance = 1; chance <= CHANCES; chance++)
        for (double slower = 0; slower < 0.8; slower += 0.35) {
            /* given two GPUs on one bridge, then each has half of it, whatever else slows one */
            double exact =
                probe_copies(2, slower, "", chance) / probe_copies(1, slower, "", chance);
            assert_true(fabs(exact - 0.5) < 0.002);
            double noisy =
                probe_copies(2, slower, noise, chance) / probe_copies(1, slower, noise, chance);
            assert_true(fabs(noisy - 0.5) < 0.02);
        }
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = worker_begin};
