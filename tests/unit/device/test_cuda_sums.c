/*
 * Sums over GPUs on the way to the driver and to NCCL, both fake: which way is taken between which
 * devices, that all ranks agree on it, and that a rank which fails lets the others go. That the
 * kernel's own sums are right is tests/gpu's matter.
 */
#include "cuda_fixture.h"

#include "device/group.h"
#include "vendor/nvrtc.h"
#include "workload/workload.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 2, VALUES = 1001 };

struct rank {
    struct lab_group *group;
    int index;
    struct lab_device *device;
    enum lab_sum_way way;
    bool fails; /* instead of its sum */
    bool captures;
    float found[VALUES];
    char through[32], note[256];
    int failed;
    struct lab_err err;
    pthread_t thread;
};

/* --- one rank's part --- */

static int sum_up(struct rank *rank, struct lab_sum *sum, struct lab_stream *stream, float *data,
                  struct lab_err *err) {
    struct lab_graph *graph = NULL;
    int failed = 0;
    snprintf(rank->through, sizeof rank->through, "%s", lab_sum_through(sum));
    snprintf(rank->note, sizeof rank->note, "%s", lab_sum_note(sum) ? lab_sum_note(sum) : "");
    if (rank->fails) {
        lab_err_set(err, LAB_ERR_MEMORY, "made up by the test");
        lab_group_fail(rank->group, rank->index, err);
        return -1;
    }
    for (int i = 0; i < VALUES; i++)
        rank->found[i] = (float)((i + 1) * (rank->index + 1));
    failed = lab_copy(stream, data, rank->found, sizeof rank->found, LAB_MEMORY_DEVICE,
                      LAB_MEMORY_HOST_PAGEABLE, err);
    if (rank->captures)
        failed = failed || lab_graph_begin(stream, err) ||
                 lab_sum_enqueue(sum, stream, data, VALUES, err) ||
                 lab_graph_end(stream, &graph, err) || lab_graph_launch(graph, stream, err);
    else
        failed = failed || lab_sum_enqueue(sum, stream, data, VALUES, err);
    failed = failed || lab_stream_sync(stream, err) || lab_sum_check(sum, err) ||
             lab_copy(stream, rank->found, data, sizeof rank->found, LAB_MEMORY_HOST_PAGEABLE,
                      LAB_MEMORY_DEVICE, err) ||
             lab_stream_sync(stream, err);
    lab_graph_close(graph);
    return failed ? -1 : 0;
}

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    struct lab_sum_setup setup = {.rank = rank->index,
                                  .device = rank->device,
                                  .numa_node = -1,
                                  .way = rank->way,
                                  .count_most = VALUES};
    struct lab_stream *stream = NULL;
    struct lab_buffer data = {0};
    struct lab_sum *sum = NULL;
    rank->err = LAB_ERR_INIT;
    rank->failed = lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &stream, &rank->err) ||
                   lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, sizeof rank->found, &data,
                                   &rank->err) ||
                   lab_sum_open(rank->group, &setup, &sum, &rank->err) ||
                   sum_up(rank, sum, stream, data.data, &rank->err);
    lab_sum_close(sum);
    lab_buffer_close(&data);
    lab_stream_close(stream);
    return NULL;
}

static void run_within(double limit_s, struct cuda_fixture *fixture, const char *selector,
                       struct rank *ranks) {
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = RANKS, .limit_s = limit_s});
    for (int i = 0; i < RANKS; i++) {
        ranks[i].group = group;
        ranks[i].index = i;
        ranks[i].device = cuda_fixture_device(fixture, selector, i);
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        lab_device_close(ranks[i].device);
    }
    lab_group_close(group);
}

static void run(struct cuda_fixture *fixture, const char *selector, struct rank *ranks) {
    run_within(20, fixture, selector, ranks);
}

static void check_sums(const struct rank *ranks) {
    for (int r = 0; r < RANKS; r++) {
        if (ranks[r].failed)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
        for (int i = 0; i < VALUES; i++)
            assert_true(ranks[r].found[i] == (float)(3 * (i + 1)));
    }
}

/* --- GPUs --- */

LAB_TEST(gpus_sum_by_nccl) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_AUTO}, {.way = LAB_SUM_AUTO}};
    run(*state, "cuda", ranks);
    check_sums(ranks);
    assert_string_equal(ranks[1].through, "NCCL");
    assert_string_equal(ranks[1].note, "");
}

LAB_TEST(what_nccl_refuses_goes_through_host_memory) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_NCCL}, {.way = LAB_SUM_NCCL}};
    setenv("FAKE_CUDA_FAIL", "ncclCommInitAll:5", 1);
    run(*state, "cuda", ranks);
    for (int r = 0; r < RANKS; r++) {
        if (ranks[r].failed)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
        assert_string_equal(ranks[r].through, "host memory");
        assert_string_equal(ranks[r].note,
                            "allreduce=nccl not available, used ring through host memory: "
                            "ncclCommInitAll: invalid usage (5): as the test has it");
    }
}

/* What joins the GPUs may wait for something that never comes: the ranks don't wait for it for
 * ever. */
LAB_TEST(what_never_joins_the_gpus_is_an_error_at_the_limit) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_NCCL}, {.way = LAB_SUM_NCCL}};
    setenv("FAKE_NCCL_MS", "600", 1); /* then it comes, and finds nobody */
    run_within(0.5, *state, "cuda", ranks);
    unsetenv("FAKE_NCCL_MS");
    for (int r = 0; r < RANKS; r++) {
        assert_true(ranks[r].failed);
        assert_string_equal(ranks[r].err.text,
                            "ncclCommInitAll hasn't joined 2 GPUs within 0.4 s: NCCL_DEBUG=INFO "
                            "shows what it waits for, and allreduce=ring avoids NCCL");
    }
}

LAB_TEST(a_rank_that_fails_ends_what_the_others_wait_for_in_nccl) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_NCCL}, {.way = LAB_SUM_NCCL, .fails = true}};
    run(*state, "cuda", ranks);
    assert_true(ranks[0].failed && ranks[1].failed);
    assert_string_equal(ranks[0].err.text, "rank 1 has failed: made up by the test");
}

LAB_TEST(an_error_that_comes_later_is_told_at_the_next_wait) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_NCCL}, {.way = LAB_SUM_NCCL}};
    setenv("FAKE_NCCL_ASYNC", "6", 1);
    run(*state, "cuda", ranks);
    unsetenv("FAKE_NCCL_ASYNC");
    for (int r = 0; r < RANKS; r++) {
        assert_true(ranks[r].failed);
        assert_contains(ranks[r].err.text, "a sum by NCCL: remote process error (6)");
    }
}

/* --- slices --- */

LAB_TEST(slices_sum_in_device_memory_and_in_graphs) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_NCCL, .captures = true},
                                {.way = LAB_SUM_NCCL, .captures = true}};
    run(*state, "cuda:0/2", ranks);
    for (int r = 0; r < RANKS; r++) {
        if (ranks[r].failed)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
        assert_string_equal(ranks[r].through, "device memory");
        assert_non_null(
            strstr(ranks[r].note, "NCCL takes whole GPUs, one rank on each; cuda:0/2.0"));
    }
}

LAB_TEST(a_rank_that_fails_is_told_to_who_waits_for_its_slice) {
    struct rank ranks[RANKS] = {{.way = LAB_SUM_RING}, {.way = LAB_SUM_RING, .fails = true}};
    run(*state, "cuda:0/2", ranks);
    assert_string_equal(ranks[1].err.text, "made up by the test");
    /* the fake's kernels wait for nobody: the first may have been through by then */
    if (ranks[0].failed)
        assert_string_equal(ranks[0].err.text, "rank 1 has failed: made up by the test");
}

/* --- the workload --- */

extern const struct lab_workload lab_workload_allreduce;

/* Sums of a graph share its time; what is asked for needn't fill the last one. */
LAB_TEST(sums_of_a_graph_share_its_time) {
    struct cuda_fixture *fixture = *state;
    const struct lab_workload *workload = &lab_workload_allreduce;
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0/2", 0);
    struct lab_rank rank = {.device = device, .numa_node = -1, .count = 1};
    struct lab_iteration records[41] = {{0}};
    void *config = lab_workload_config(workload, &fixture->arena), *all = NULL;
    ASSERT_OK(lab_options_set_word(workload->options, config, &fixture->arena, "graph=16", err));
    ASSERT_OK(lab_options_set_word(workload->options, config, &fixture->arena, "bytes=4KiB", err));
    ASSERT_OK(workload->open(config, &rank, &all, err));
    ASSERT_OK(workload->run(all, 41, records, err));
    for (int i = 0; i < 41; i++) {
        assert_true(records[i].start_ns > 0 && records[i].end_ns >= records[i].start_ns);
        assert_true(i % 16 == 0 || records[i].start_ns == records[i - 1].end_ns);
        assert_true(i == 0 || records[i].start_ns >= records[i - 1].end_ns);
    }
    workload->close(all);
    lab_device_close(device);
}

static int begin(int argc, char **argv) {
    (void)argc;
    if (cuda_is_real()) {
        print_message("skipped: a real GPU's sums are test_gpu_sums's matter\n");
        return LAB_TEST_SKIPPED;
    }
    cuda_use_fake_at(argv, LAB_TEST_BINARY_DIR "/fake:" LAB_TEST_BINARY_DIR "/fake/nccl");
    if (!lab_nvrtc_ready()) {
        print_message("skipped: NVRTC isn't here\n");
        return LAB_TEST_SKIPPED;
    }
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = begin};
