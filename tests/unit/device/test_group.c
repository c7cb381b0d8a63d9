/*
 * Ranks that meet, and sums over their devices: every rank gets the same sum to the bit, whatever
 * the way and the length, and nobody waits for one that is out.
 */
#include "device/group.h"
#include "machine/machine.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { RANKS_MOST = 5, LONGEST = 1000 };

struct rank {
    struct lab_group *group;
    int index, count;
    const char *selector;
    const struct lab_machine *machine;
    struct lab_device_ref ref;
    enum lab_sum_way way;
    int64_t values;
    int sums;   /* that it does */
    bool fails; /* instead of its second sum */
    bool fails_opening;
    bool stays_away; /* does none, and says nothing */
    int sums_fewer;  /* than the others */
    int pause_ms;    /* before its second sum, without a word */
    enum lab_sum_way taken;
    char note[256];
    float *found;    /* [LONGEST] */
    int64_t time_ns; /* that the device says it took */
    int failed;
    struct lab_err err;
    pthread_t thread;
};

/* --- one rank's part --- */

/* Simulated time goes on meanwhile. */
static void pause_for(const struct rank *rank, struct lab_device *device) {
    if (rank->pause_ms == 0)
        return;
    lab_device_rest(device);
    usleep((useconds_t)rank->pause_ms * 1000);
    lab_device_wake(device);
}

/* As a rank does that comes to open sums, and fails when the others have seen its device. */
static int fail_opening(const struct rank *rank, struct lab_device *device, struct lab_err *err) {
    void *all[RANKS_MOST];
    lab_group_hold(rank->group);
    if (lab_group_exchange(rank->group, rank->index, device, device, all, err))
        return -1;
    lab_err_set(err, LAB_ERR_MEMORY, "made up by the test");
    lab_group_fail(rank->group, rank->index, err);
    lab_group_part(rank->group, rank->index, device);
    return -1;
}

static int add_up(struct rank *rank, struct lab_device *device, struct lab_err *err) {
    struct lab_sum_setup setup = {.rank = rank->index,
                                  .device = device,
                                  .numa_node = -1,
                                  .way = rank->way,
                                  .count_most = LONGEST};
    struct lab_buffer data = {0}, host = {0};
    struct lab_stream *stream = NULL;
    struct lab_sum *sum = NULL;
    size_t bytes = (size_t)rank->values * sizeof(float);
    int64_t start_ns = 0;
    int failed = lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, err) ||
                 lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &data, err) ||
                 lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, bytes, &host, err) ||
                 (rank->fails_opening ? fail_opening(rank, device, err)
                                      : lab_sum_open(rank->group, &setup, &sum, err));
    for (int64_t i = 0; i < rank->values && !failed; i++)
        ((float *)host.data)[i] = sinf((float)(i + 1) * (float)(rank->index + 1));
    failed = failed || lab_copy(stream, data.data, host.data, bytes, LAB_MEMORY_DEVICE,
                                LAB_MEMORY_HOST_PINNED, err);
    start_ns = lab_clock_now(device->clock);
    for (int i = 0; i < rank->sums - rank->sums_fewer && !failed; i++) {
        if (i == 1)
            pause_for(rank, device);
        failed = rank->fails && i == 1 ? lab_err_set(err, LAB_ERR_MEMORY, "made up by the test")
                                       : lab_sum_enqueue(sum, stream, data.data, rank->values, err);
    }
    if (failed)
        lab_group_fail(rank->group, rank->index, err);
    else
        failed = lab_copy(stream, host.data, data.data, bytes, LAB_MEMORY_HOST_PINNED,
                          LAB_MEMORY_DEVICE, err);
    struct lab_err second = LAB_ERR_INIT;
    if (stream)
        lab_stream_sync(stream, &second);
    rank->time_ns = lab_clock_now(device->clock) - start_ns;
    if (!failed) {
        memcpy(rank->found, host.data, bytes);
        rank->taken = lab_group_sum_way(rank->group);
        snprintf(rank->note, sizeof rank->note, "%s", lab_sum_note(sum) ? lab_sum_note(sum) : "");
    }
    lab_sum_close(sum);
    lab_stream_close(stream);
    lab_buffer_close(&data);
    lab_buffer_close(&host);
    return failed ? -1 : 0;
}

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    struct lab_device *device = NULL;
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    setup.gang = rank->count;
    if (rank->stays_away)
        return NULL;
    rank->failed = lab_device_open(rank->machine, &rank->ref, setup, &device, &rank->err) ||
                   add_up(rank, device, &rank->err);
    lab_device_close(device);
    return NULL;
}

static void run(struct rank *ranks, int count, const struct rank *like, double limit_s) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine = NULL;
    struct lab_device_list list = {0};
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = count, .limit_s = limit_s});
    LAB_AUTO(arena, arena);
    if (lab_machine_open(NULL, &machine, &err) ||
        lab_device_select(machine, like->selector, &arena, &list, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < count; i++) {
        struct rank own = ranks[i];
        ranks[i] = *like;
        ranks[i].fails = own.fails;
        ranks[i].fails_opening = own.fails_opening;
        ranks[i].stays_away = own.stays_away;
        ranks[i].sums_fewer = own.sums_fewer;
        ranks[i].pause_ms = own.pause_ms;
        ranks[i].machine = machine;
        ranks[i].ref = list.items[i % list.count];
        ranks[i].group = group;
        ranks[i].index = i;
        ranks[i].count = count;
        ranks[i].err = LAB_ERR_INIT;
        ranks[i].found = lab_mem_alloc(LONGEST, sizeof *ranks[i].found);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    lab_group_close(group);
    lab_machine_close(machine);
}

static void release(struct rank *ranks, int count) {
    for (int i = 0; i < count; i++)
        lab_mem_free(ranks[i].found);
}

/* --- sums --- */

static void check_sums(enum lab_sum_way way, int count, int64_t values) {
    struct rank ranks[RANKS_MOST] = {{0}};
    struct rank like = {.selector = "cpu", .way = way, .values = values, .sums = 3};
    run(ranks, count, &like, 20);
    for (int i = 0; i < count; i++) {
        if (ranks[i].failed)
            fail_msg("rank %d: %s", i, ranks[i].err.text);
        assert_memory_equal(ranks[i].found, ranks[0].found, (size_t)values * sizeof(float));
    }
    for (int64_t v = 0; v < values; v++) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += (double)sinf((float)(v + 1) * (float)(i + 1));
        sum *= pow(count, 2); /* the second and third sum add up what is the same on all */
        assert_true(fabs((double)ranks[0].found[v] - sum) <= 1e-5 * (1 + fabs(sum)));
    }
    release(ranks, count);
}

LAB_TEST(a_ring_sums_over_all_ranks) {
    check_sums(LAB_SUM_RING, 2, LONGEST);
    check_sums(LAB_SUM_AUTO, 3, LONGEST - 1); /* parts of unequal length */
    check_sums(LAB_SUM_RING, 3, 2);           /* a part of nothing */
    check_sums(LAB_SUM_RING, 5, 333);
}

LAB_TEST(gathering_on_one_sums_over_all_ranks) {
    check_sums(LAB_SUM_HIERARCHICAL, 2, LONGEST);
    check_sums(LAB_SUM_HIERARCHICAL, 3, 7);
    check_sums(LAB_SUM_HIERARCHICAL, 5, 1);
}

LAB_TEST(one_rank_is_its_own_sum) {
    check_sums(LAB_SUM_RING, 1, 5);
    check_sums(LAB_SUM_HIERARCHICAL, 1, 5);
}

LAB_TEST(simulated_devices_take_simulated_time) {
    struct rank ranks[2] = {{0}};
    struct rank like = {
        .selector = "sim:rtx4070tis-2", .way = LAB_SUM_RING, .values = LONGEST, .sums = 10};
    run(ranks, 2, &like, 20);
    for (int i = 0; i < 2; i++) {
        if (ranks[i].failed)
            fail_msg("rank %d: %s", i, ranks[i].err.text);
        /* four copies each, of more than a microsecond */
        assert_true(ranks[i].time_ns > 40 * LAB_NS_PER_US && ranks[i].time_ns < LAB_NS_PER_S);
    }
    release(ranks, 2);
}

static int64_t longest_sums(enum lab_sum_way way, enum lab_sum_way taken, const char *note) {
    struct rank ranks[4] = {{0}};
    struct rank like = {.selector = "sim:dgx-h100", .way = way, .values = LONGEST, .sums = 10};
    int64_t longest_ns = 0;
    run(ranks, 4, &like, 20);
    for (int i = 0; i < 4; i++) {
        if (ranks[i].failed)
            fail_msg("rank %d: %s", i, ranks[i].err.text);
        assert_int_equal(ranks[i].taken, taken);
        assert_string_equal(ranks[i].note, note);
        longest_ns = ranks[i].time_ns > longest_ns ? ranks[i].time_ns : longest_ns;
    }
    release(ranks, 4);
    return longest_ns;
}

LAB_TEST(simulated_nvlinks_carry_a_ring) {
    int64_t auto_ns = longest_sums(LAB_SUM_AUTO, LAB_SUM_NVLINK, "");
    /* 10 sums of 6 steps of 3 us each, and two copies */
    assert_true(auto_ns > 170 * LAB_NS_PER_US && auto_ns < 260 * LAB_NS_PER_US);
    assert_true(longest_sums(LAB_SUM_RING, LAB_SUM_RING, "") > 2 * auto_ns);
    longest_sums(LAB_SUM_NCCL, LAB_SUM_NVLINK,
                 "allreduce=nccl not available, used nvlink through NVLink: only real NVIDIA GPUs "
                 "have it");
}

/* --- trouble --- */

LAB_TEST(a_rank_that_fails_ends_all) {
    struct rank ranks[RANKS_MOST] = {{0}};
    struct rank like = {.selector = "cpu", .way = LAB_SUM_RING, .values = LONGEST, .sums = 4};
    ranks[1].fails = true;
    run(ranks, 3, &like, 20);
    for (int i = 0; i < 3; i++) {
        assert_true(ranks[i].failed);
        assert_contains(ranks[i].err.text, "made up by the test");
    }
    release(ranks, 3);
}

LAB_TEST(simulated_ranks_end_as_well) {
    struct rank ranks[2] = {{0}};
    struct rank like = {
        .selector = "sim:rtx4070tis-2", .way = LAB_SUM_RING, .values = LONGEST, .sums = 4};
    ranks[1].fails = true;
    run(ranks, 2, &like, 20);
    assert_true(ranks[0].failed && ranks[1].failed);
    release(ranks, 2);
}

LAB_TEST(a_rank_that_fails_while_sums_are_opened_leaves_nothing_open) {
    static const char *const selectors[] = {"cpu", "sim:rtx4070tis-2", "sim:dgx-h100"};
    for (int i = 0; i < 3; i++) {
        struct rank ranks[2] = {{0}};
        struct rank like = {
            .selector = selectors[i], .way = LAB_SUM_AUTO, .values = LONGEST, .sums = 1};
        ranks[1].fails_opening = true;
        run(ranks, 2, &like, 20);
        assert_true(ranks[0].failed && ranks[1].failed);
        assert_string_equal(ranks[0].err.text, "rank 1 has failed: made up by the test");
        release(ranks, 2);
    }
}

#define ENDED "rank 1 ended its all-reduces before the others"

LAB_TEST(who_ends_its_sums_early_ends_those_who_wait_for_it) {
    static const char *const selectors[] = {"cpu", "sim:rtx4070tis-2", "sim:dgx-h100"};
    for (int i = 0; i < 3; i++) {
        struct rank ranks[2] = {{0}};
        struct rank like = {
            .selector = selectors[i], .way = LAB_SUM_AUTO, .values = LONGEST, .sums = 3};
        int64_t start_ns = lab_clock_now(lab_clock_system());
        ranks[1].sums_fewer = 1;
        run(ranks, 2, &like, 60);
        assert_true(lab_clock_now(lab_clock_system()) - start_ns < 30 * LAB_NS_PER_S);
        assert_true(ranks[0].failed && !ranks[1].failed);
        assert_string_equal(ranks[0].err.text, ENDED);
        release(ranks, 2);
    }
}

/* What a rank that doesn't answer may still use is never given back: in a process of its own. */
static int close_beside_one_that_pauses(const char *selector) {
    struct rank ranks[2] = {{0}};
    struct rank like = {.selector = selector, .way = LAB_SUM_AUTO, .values = LONGEST, .sums = 2};
    ranks[0].pause_ms = 1500;
    ranks[1].sums_fewer = 1;
    run(ranks, 2, &like, 0.5);
    return ranks[0].failed && !ranks[1].failed && strcmp(ranks[0].err.text, ENDED) == 0 ? 0 : 1;
}

LAB_TEST(a_rank_can_close_its_device_beside_one_that_does_not_answer) {
    static const char *const selectors[] = {"cpu", "sim:rtx4070tis-2", "sim:dgx-h100"};
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(close_beside_one_that_pauses(selectors[i]));
    }
    for (int i = 0; i < 3; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

LAB_TEST(nobody_waits_longer_than_the_limit) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = 2, .limit_s = 0.03});
    assert_int_equal(lab_group_meet(group, 0, NULL, 7, &err), -1);
    assert_string_equal(err.text, "rank 0 has waited 0.03 s for others");
    /* who comes later hears of it at once */
    assert_int_equal(lab_group_meet(group, 1, NULL, 7, &err), -1);
    lab_group_close(group);
}

LAB_TEST(a_stop_ends_a_meeting) {
    _Atomic(bool) stopped = true;
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = 2, .limit_s = 60, .stopped = &stopped});
    ASSERT_FAILS(lab_group_meet(group, 0, NULL, 7, err), LAB_ERR_INTERRUPTED, "");
    lab_group_close(group);
}

static void *come_to_another_meeting(void *group) {
    struct lab_err err = LAB_ERR_INIT;
    lab_group_meet(group, 1, NULL, 8, &err);
    return NULL;
}

LAB_TEST(ranks_out_of_step_are_told_so) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_group *group = lab_group_open(&(struct lab_group_setup){.ranks = 2, .limit_s = 20});
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, come_to_another_meeting, group), 0);
    assert_int_equal(lab_group_meet(group, 0, NULL, 7, &err), -1);
    pthread_join(other, NULL);
    assert_contains(err.text, "out of step");
    lab_group_close(group);
}

LAB_TEST(a_way_that_is_not_there_gives_way_to_the_ring_and_says_so) {
    struct rank ranks[2] = {{0}};
    struct rank like = {.selector = "cpu", .way = LAB_SUM_NCCL, .values = 4, .sums = 1};
    run(ranks, 2, &like, 20);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].failed, 0);
        assert_int_equal(ranks[i].taken, LAB_SUM_RING);
        assert_string_equal(ranks[i].note, "allreduce=nccl not available, used ring through host "
                                           "memory: only real NVIDIA GPUs have it");
    }
    release(ranks, 2);
}

static void note_failure(void *calls) {
    ++*(int *)calls;
}

LAB_TEST(who_watches_hears_of_a_failure_once) {
    struct lab_err why = LAB_ERR_INIT, err = LAB_ERR_INIT;
    int early = 0, late = 0, gone = 0;
    struct lab_group_watch watches[] = {{.failed = note_failure, .state = &early},
                                        {.failed = note_failure, .state = &late},
                                        {.failed = note_failure, .state = &gone}};
    struct lab_group *group = lab_group_open(&(struct lab_group_setup){.ranks = 2, .limit_s = 20});
    lab_group_watch(group, &watches[0]);
    lab_group_watch(group, &watches[2]);
    lab_group_unwatch(group, &watches[2]);
    assert_int_equal(lab_group_check(group, &err), 0);
    assert_int_equal(lab_group_failed_rank(group), -1);
    lab_err_set(&why, LAB_ERR_MEMORY, "made up by the test");
    lab_err_hint(&why, LAB_HINT_OUT_OF_MEMORY);
    lab_group_fail(group, 1, &why);
    lab_group_fail(group, 0, &why);
    lab_group_stop(group, &why);
    lab_group_watch(group, &watches[1]);
    assert_true(early == 1 && late == 1 && gone == 0);
    assert_int_equal(lab_group_check(group, &err), -1);
    assert_int_equal(err.code, LAB_ERR_MEMORY);
    assert_int_equal(err.hint, LAB_HINT_OUT_OF_MEMORY);
    assert_string_equal(err.text, "rank 1 has failed: made up by the test");
    assert_int_equal(lab_group_failed_rank(group), 1);
    lab_group_close(group);
}

LAB_TEST(a_rank_that_never_comes_is_waited_for_within_the_limit) {
    struct rank ranks[RANKS_MOST] = {{0}};
    struct rank like = {.selector = "cpu", .way = LAB_SUM_RING, .values = LONGEST, .sums = 4};
    ranks[2].stays_away = true;
    run(ranks, 3, &like, 0.05);
    for (int i = 0; i < 2; i++) {
        assert_true(ranks[i].failed);
        assert_contains(ranks[i].err.text, "has waited 0.05 s for others");
    }
    release(ranks, 3);
}
