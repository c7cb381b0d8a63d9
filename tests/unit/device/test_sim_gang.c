/*
 * test_sim_gang.c: several threads with a GPU each in one simulated world: they share links, wait
 * for each other in the world's time, and come out the same however the system schedules them.
 */
#include "sim_fixture.h"

#include <pthread.h>
#include <unistd.h>

enum { COPIES = 20, RANKS_MAX = 3 };

struct rank {
    const char *selector;
    struct lab_device_setup setup;
    pthread_barrier_t *barrier; /* NULL = it meets nobody */
    int copies, pause_us;
    double pause_s; /* of its own time, before it begins */
    pthread_t thread;
    int64_t times_ns[COPIES]; /* results */
    int64_t end_ns;
};

/* Not a function of the fixture's that fails the test: this thread isn't the test's. */
static void copy_once(struct sim_bench *bench) {
    struct lab_err err = LAB_ERR_INIT;
    if (lab_copy(bench->there, bench->near.data, bench->host.data, 100 * SIM_MB, LAB_MEMORY_DEVICE,
                 LAB_MEMORY_HOST_PINNED, &err) < 0 ||
        lab_stream_sync(bench->there, &err) < 0)
        abort();
}

static void *rank_main(void *state) {
    struct rank *rank = state;
    usleep((useconds_t)rank->pause_us);
    struct sim_bench bench = sim_bench_open(rank->selector, rank->setup, 0);
    lab_clock_sleep(bench.device->clock, (int64_t)(rank->pause_s * 1e9));
    if (rank->barrier) {
        lab_device_rest(bench.device);
        pthread_barrier_wait(rank->barrier);
        lab_device_wake(bench.device);
    }
    for (int i = 0; i < rank->copies; i++) {
        copy_once(&bench);
        rank->times_ns[i] = lab_clock_now(bench.device->clock);
    }
    rank->end_ns = lab_clock_now(bench.device->clock) - LAB_NS_PER_S;
    sim_bench_close(&bench);
    return NULL;
}

static void run(struct rank *ranks, int count) {
    for (int i = 0; i < count; i++) {
        ranks[i].setup.gang = count;
        ranks[i].setup.copy_cores = ranks[i].setup.host_node = -1;
        pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
}

LAB_TEST(two_copies_on_one_link_take_twice_as_long) {
    struct rank ranks[] = {{.selector = "sim:toy:0", .copies = 1},
                           {.selector = "sim:toy:1", .copies = 1}};
    run(ranks, 2);
    /* 10 µs of the slot's latency, then half of 10 GB/s each */
    assert_int_equal(ranks[0].end_ns, 20010000);
    assert_int_equal(ranks[1].end_ns, 20010000);
}

LAB_TEST(copies_on_links_of_their_own_dont_meet) {
    lab_device_define("toy", toy_with(&sim_arena, "node: 2}", "node: 0}"));
    struct rank ranks[] = {{.selector = "sim:toy:0", .copies = 1},
                           {.selector = "sim:toy:2", .copies = 1}};
    run(ranks, 2);
    assert_int_equal(ranks[0].end_ns, 10010000);
    assert_int_equal(ranks[1].end_ns, 5010000); /* its slot has 20 GB/s */
}

LAB_TEST(a_link_is_shared_while_both_cross_it_and_no_longer) {
    /* the second comes when the first has done half: both then have half of the rate */
    struct rank ranks[] = {{.selector = "sim:toy:0", .copies = 1},
                           {.selector = "sim:toy:1", .copies = 1, .pause_s = 0.005}};
    run(ranks, 2);
    assert_in_range(ranks[0].end_ns, 15009990, 15010010);
    assert_in_range(ranks[1].end_ns, 20009990, 20010010);
}

LAB_TEST(who_leaves_holds_nobody) {
    struct rank ranks[] = {{.selector = "sim:toy:0", .copies = 3},
                           {.selector = "sim:toy:1", .copies = 0}};
    run(ranks, 2);
    assert_int_equal(ranks[0].end_ns, 3 * 10010000);
}

LAB_TEST(those_who_rest_wake_together_at_the_latest_time) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    struct rank ranks[] = {
        {.selector = "sim:toy:0", .copies = 1, .barrier = &barrier, .pause_s = 1},
        {.selector = "sim:toy:1", .copies = 1, .barrier = &barrier, .pause_us = 3000}};
    run(ranks, 2);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(ranks[0].end_ns, LAB_NS_PER_S + 20010000);
    assert_int_equal(ranks[1].end_ns, LAB_NS_PER_S + 20010000);
}

static const char *noisy(void) {
    return TOY_HEAD "noise:\n"
                    "  between: {compute: 0.05, copy: 0.05}\n"
                    "  within: {compute: 0.05, copy: 0.05}\n"
                    "  each: {compute: 0.05, copy: 0.05}\n"
                    "  tail_per_s: 50\n"
                    "  drift_per_minute: 0.1\n"
                    "effects:\n"
                    "  neighbour: {node: 0, links: [up], gb_s: 4, on_s: 0.01, off_s: 0.01}\n";
}

static void noisy_times(uint64_t seed, bool reversed, int64_t *ret_times_ns) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    struct rank ranks[RANKS_MAX] = {
        {.selector = "sim:toy:0", .pause_us = reversed ? 2000 : 0},
        {.selector = "sim:toy:1", .pause_us = 1000},
        {.selector = "sim:toy:2", .pause_us = reversed ? 0 : 2000},
    };
    for (int i = 0; i < RANKS_MAX; i++) {
        ranks[i].copies = COPIES;
        ranks[i].barrier = &barrier;
        ranks[i].setup.seed = seed;
    }
    run(ranks, RANKS_MAX);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < RANKS_MAX; i++)
        memcpy(ret_times_ns + (size_t)i * COPIES, ranks[i].times_ns, sizeof ranks[i].times_ns);
}

LAB_TEST(the_same_seed_gives_the_same_times_whoever_comes_first) {
    int64_t once[RANKS_MAX * COPIES], again[RANKS_MAX * COPIES], other[RANKS_MAX * COPIES];
    lab_device_define("toy", noisy());
    noisy_times(7, false, once);
    noisy_times(7, true, again);
    noisy_times(8, false, other);
    assert_memory_equal(once, again, sizeof once);
    assert_memory_not_equal(once, other, sizeof once);
}

LAB_TEST(nobody_waits_for_one_who_never_comes_once_all_was_stopped) {
    struct lab_err err = LAB_ERR_INIT;
    atomic_bool stopped = true;
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    setup.gang = 2;
    setup.stopped = &stopped;
    struct sim_bench bench = sim_bench_open("sim:toy:0", setup, 0);
    struct lab_event *event;
    sim_ok(lab_event_open(bench.device, &event, &err), &err);
    sim_put(&bench, bench.there, 100);
    sim_ok(lab_event_record(event, bench.there, &err), &err);
    assert_int_equal(lab_stream_sync(bench.there, &err), -1);
    assert_int_equal(err.code, LAB_ERR_INTERRUPTED);
    lab_event_close(event);
    sim_bench_close(&bench);
}

const struct lab_test_program lab_test_program = {.set_up = sim_set_up, .tear_down = sim_tear_down};
