/*
 * test_gpu_sums.c: sums over four slices of a GPU, in device memory: right and to the bit the same
 * on all ranks for any length and alignment, a thousand times from a graph; and a rank that is
 * missing, out of step or has failed ends the others' kernels in bounded time, by name. NCCL with
 * one rank on the whole GPU.
 *
 * Each rank is a thread with a slice of its own. Skipped where there is no GPU.
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/str.h"
#include "device/group.h"
#include "machine/machine.h"
#include "vendor/nccl.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { RANKS = 4, LONGEST = (1 << 21) + 64, SPARE = 8 };

struct rank;
typedef int rank_work(struct rank *rank, struct lab_err *err);

struct rank {
    struct lab_group *group;
    int index;
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer data, fresh;
    struct lab_sum *sum;
    float *found; /* [LONGEST] */
    enum lab_sum_way way;
    enum lab_dtype dtype;
    rank_work *work;
    int64_t count;
    int offset; /* of the vector, in values */
    int failed;
    struct lab_err err;
    pthread_t thread;
};

static struct lab_machine *machine;
static struct lab_arena arena;
static struct rank ranks[RANKS];

static void require(int failed, const struct lab_err *err) {
    if (failed)
        fail_msg("%s", err->text);
}

/* --- what ranks do --- */

static float drawn(int rank, int64_t i) {
    return lab_random_symmetric((uint64_t)rank + 1, (uint64_t)i);
}

static float *vector_of(struct rank *rank) {
    return (float *)rank->data.data + rank->offset;
}

static int refresh(struct rank *rank, struct lab_err *err) {
    return lab_copy(rank->stream, rank->data.data, rank->fresh.data, rank->data.size_bytes,
                    LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE, err);
}

static int fetch(struct rank *rank, struct lab_err *err) {
    size_t bytes = (size_t)(rank->count + rank->offset + SPARE) * sizeof(float);
    return lab_copy(rank->stream, rank->found, rank->data.data, bytes, LAB_MEMORY_HOST_PAGEABLE,
                    LAB_MEMORY_DEVICE, err) ||
                   lab_stream_sync(rank->stream, err)
               ? -1
               : 0;
}

static int sum_once(struct rank *rank, struct lab_err *err) {
    return refresh(rank, err) ||
                   lab_sum_enqueue(rank->sum, rank->stream, vector_of(rank), rank->count, err) ||
                   fetch(rank, err)
               ? -1
               : 0;
}

/*
 * A hundred replays of ten sums, each of fresh vectors and of another length than the one before.
 * All ranks have their graphs before the first one replays its own: the driver makes a graph only
 * when no kernel runs on the GPU, and a sum runs until the last rank has come.
 */
static int sum_from_a_graph(struct rank *rank, struct lab_err *err) {
    struct lab_graph *graph = NULL;
    int failed = lab_graph_begin(rank->stream, err);
    for (int i = 0; i < 5 && !failed; i++)
        failed = refresh(rank, err) ||
                 lab_sum_enqueue(rank->sum, rank->stream, rank->data.data, 1 + 100 * i, err) ||
                 refresh(rank, err) ||
                 lab_sum_enqueue(rank->sum, rank->stream, vector_of(rank), rank->count, err);
    failed = failed || lab_graph_end(rank->stream, &graph, err) ||
             lab_stream_sync(rank->stream, err) ||
             lab_group_meet(rank->group, rank->index, rank->device, 1, err);
    for (int i = 0; i < 100 && !failed; i++)
        failed = lab_graph_launch(graph, rank->stream, err);
    failed = failed || fetch(rank, err);
    lab_graph_close(graph);
    return failed ? -1 : 0;
}

/* --- all of them --- */

static int open_rank(struct rank *rank, struct lab_err *err) {
    struct lab_sum_setup setup = {.rank = rank->index,
                                  .device = rank->device,
                                  .numa_node = -1,
                                  .way = rank->way,
                                  .dtype = rank->dtype,
                                  .count_most = LONGEST};
    return lab_sum_open(rank->group, &setup, &rank->sum, err);
}

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    rank->err = LAB_ERR_INIT;
    rank->sum = NULL;
    rank->failed = open_rank(rank, &rank->err);
    if (!rank->failed && rank->work)
        rank->failed = rank->work(rank, &rank->err);
    struct lab_err second = LAB_ERR_INIT;
    lab_stream_sync(rank->stream, &second);
    lab_sum_close(rank->sum);
    return NULL;
}

/* `works`: what each of them does. */
static void run_all(rank_work *const works[RANKS], double limit_s) {
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = RANKS, .limit_s = limit_s});
    for (int i = 0; i < RANKS; i++) {
        ranks[i].group = group;
        ranks[i].work = works[i];
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    lab_group_close(group);
}

static void set_all(int64_t count, const int offsets[RANKS]) {
    for (int i = 0; i < RANKS; i++) {
        ranks[i].count = count;
        ranks[i].offset = offsets[i];
        ranks[i].way = LAB_SUM_AUTO;
        ranks[i].dtype = LAB_FP32;
    }
}

/* The sums, and that nothing beside the vectors was touched. */
static void check_all(void) {
    int64_t count = ranks[0].count;
    for (int i = 0; i < RANKS; i++)
        require(ranks[i].failed, &ranks[i].err);
    for (int64_t v = 0; v < count; v++) {
        float found = ranks[0].found[ranks[0].offset + v];
        double sum = 0;
        for (int i = 0; i < RANKS; i++) {
            sum += (double)drawn(i, ranks[i].offset + v);
            assert_memory_equal(&ranks[i].found[ranks[i].offset + v], &found, sizeof found);
        }
        if (fabs((double)found - sum) > 1e-6)
            fail_msg("value %lld of %lld is %g, must be %g", (long long)v, (long long)count,
                     (double)found, sum);
    }
    for (int i = 0; i < RANKS; i++) {
        for (int v = 0; v < ranks[i].offset; v++)
            assert_true(ranks[i].found[v] == drawn(i, v));
        for (int64_t v = ranks[i].offset + count; v < ranks[i].offset + count + SPARE; v++)
            assert_true(ranks[i].found[v] == drawn(i, v));
    }
}

/* --- sums --- */

static rank_work *const all_sum[RANKS] = {sum_once, sum_once, sum_once, sum_once};

static int say_way(struct rank *rank, struct lab_err *err) {
    (void)err;
    return lab_group_sum_way(rank->group) == LAB_SUM_RING && lab_sum_is_captured(rank->sum) &&
                   strcmp(lab_sum_through(rank->sum), "device memory") == 0
               ? 0
               : lab_err_set(err, LAB_ERR_WRONG, "sums go through %s", lab_sum_through(rank->sum));
}

LAB_TEST(slices_sum_in_device_memory) {
    set_all(1, (int[]){0, 0, 0, 0});
    run_all((rank_work *const[]){say_way, say_way, say_way, say_way}, 20);
    for (int i = 0; i < RANKS; i++)
        require(ranks[i].failed, &ranks[i].err);
}

LAB_TEST(any_length_and_alignment_is_summed) {
    static const int64_t counts[] = {1, 2, 3, 5, 1000, 1023, 54405, (1 << 21) + 1};
    static const int offsets[][RANKS] = {{0, 0, 0, 0}, {3, 3, 3, 3}, {0, 1, 2, 3}};
    for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++)
        for (int o = 0; o < 3; o++) {
            set_all(counts[c], offsets[o]);
            run_all(all_sum, 20);
            check_all();
        }
}

/* --- of 16 bits --- */

static uint16_t half_of(int rank, int64_t i) { /* whole numbers to 32, as bf16: sums are exact */
    float value = (float)((i * 7 + 3 * rank) % 33);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* And between two of them one of fp32, as a training does with its loss. */
static int sum_halves(struct rank *rank, struct lab_err *err) {
    uint16_t *halves = (uint16_t *)(void *)rank->found;
    size_t bytes = (size_t)(rank->count + rank->offset + SPARE) * sizeof *halves;
    for (int64_t i = 0; i < rank->count + rank->offset + SPARE; i++)
        halves[i] = half_of(rank->index, i - rank->offset + 8);
    return lab_copy(rank->stream, rank->data.data, halves, bytes, LAB_MEMORY_DEVICE,
                    LAB_MEMORY_HOST_PAGEABLE, err) ||
                   lab_sum_enqueue_as(rank->sum, rank->stream, LAB_BF16,
                                      (uint16_t *)rank->data.data + rank->offset, rank->count,
                                      err) ||
                   lab_sum_enqueue(rank->sum, rank->stream, (float *)rank->data.data + LONGEST - 1,
                                   1, err) ||
                   lab_copy(rank->stream, halves, rank->data.data, bytes, LAB_MEMORY_HOST_PAGEABLE,
                            LAB_MEMORY_DEVICE, err) ||
                   lab_stream_sync(rank->stream, err)
               ? -1
               : 0;
}

static void check_halves(void) {
    for (int i = 0; i < RANKS; i++) {
        const uint16_t *found = (const uint16_t *)(const void *)ranks[i].found;
        require(ranks[i].failed, &ranks[i].err);
        for (int64_t v = -ranks[i].offset; v < ranks[i].count + SPARE; v++) {
            uint32_t bits = (uint32_t)found[v + ranks[i].offset] << 16;
            float value, sum = 0;
            memcpy(&value, &bits, sizeof value);
            bool inside = v >= 0 && v < ranks[i].count;
            for (int k = inside ? 0 : i; k < (inside ? RANKS : i + 1); k++)
                sum += (float)((int)((v + 8) * 7 + 3 * k) % 33);
            if (value != sum)
                fail_msg("value %lld of %lld on rank %d is %g, must be %g", (long long)v,
                         (long long)ranks[i].count, i, (double)value, (double)sum);
        }
    }
}

LAB_TEST(bf16_is_summed_in_fp32_and_rounded_once) {
    static const int64_t counts[] = {1, 7, 1001, 54405, (1 << 21) + 1};
    static const int offsets[][RANKS] = {{0, 0, 0, 0}, {3, 3, 3, 3}, {0, 1, 2, 3}};
    rank_work *const works[RANKS] = {sum_halves, sum_halves, sum_halves, sum_halves};
    for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++)
        for (int o = 0; o < 3; o++) {
            set_all(counts[c], offsets[o]);
            for (int i = 0; i < RANKS; i++)
                ranks[i].dtype = LAB_BF16;
            run_all(works, 20);
            check_halves();
        }
}

/* compute-sanitizer has graphs run one after the other: there GPULAB_TEST_GRAPHS=0 leaves this
 * out. */
LAB_TEST(a_graph_sums_a_thousand_times) {
    if (lab_str_equal(getenv("GPULAB_TEST_GRAPHS"), "0"))
        skip();
    set_all(54405, (int[]){1, 1, 1, 1});
    run_all((rank_work *const[]){sum_from_a_graph, sum_from_a_graph, sum_from_a_graph,
                                 sum_from_a_graph},
            20);
    check_all();
}

/* --- trouble --- */

static int stay_away(struct rank *rank, struct lab_err *err) {
    (void)rank;
    (void)err;
    return 0;
}

static int fail_instead(struct rank *rank, struct lab_err *err) {
    lab_err_set(err, LAB_ERR_MEMORY, "made up by the test");
    lab_group_fail(rank->group, rank->index, err);
    return -1;
}

static int sum_another_length(struct rank *rank, struct lab_err *err) {
    return lab_sum_enqueue(rank->sum, rank->stream, vector_of(rank), rank->count - 1, err) ||
                   lab_stream_sync(rank->stream, err)
               ? -1
               : 0;
}

static void expect_words(int except, const char *words) {
    for (int i = 0; i < RANKS; i++) {
        if (i == except)
            continue;
        assert_true(ranks[i].failed);
        if (!strstr(ranks[i].err.text, words))
            fail_msg("rank %d says '%s'", i, ranks[i].err.text);
    }
}

LAB_TEST(a_rank_that_never_comes_is_named) {
    set_all(54405, (int[]){0, 0, 0, 0});
    run_all((rank_work *const[]){sum_once, sum_once, sum_once, stay_away}, 1);
    expect_words(3, "for rank 3");
    /* and the GPU is as good as before */
    run_all(all_sum, 20);
    check_all();
}

LAB_TEST(a_rank_that_fails_ends_the_others_at_once) {
    int64_t start_ns = lab_clock_now(lab_clock_system());
    set_all(54405, (int[]){0, 0, 0, 0});
    run_all((rank_work *const[]){sum_once, sum_once, fail_instead, sum_once}, 60);
    expect_words(-1, "made up by the test");
    assert_true(lab_clock_now(lab_clock_system()) - start_ns < 30 * LAB_NS_PER_S);
}

LAB_TEST(ranks_out_of_step_are_told_so) {
    set_all(54405, (int[]){0, 0, 0, 0});
    run_all((rank_work *const[]){sum_once, sum_another_length, sum_once, sum_once}, 20);
    expect_words(-1, "out of step");
}

/* --- NCCL --- */

static char note[512];

static int keep_note(struct rank *rank, struct lab_err *err) {
    if (rank->index == 0 && lab_sum_note(rank->sum))
        snprintf(note, sizeof note, "%s", lab_sum_note(rank->sum));
    return sum_once(rank, err);
}

LAB_TEST(nccl_gives_way_on_slices_and_says_so) {
    set_all(1000, (int[]){0, 0, 0, 0});
    for (int i = 0; i < RANKS; i++)
        ranks[i].way = LAB_SUM_NCCL;
    run_all((rank_work *const[]){keep_note, sum_once, sum_once, sum_once}, 20);
    check_all();
    assert_contains(note, "used ring through device memory: NCCL takes whole GPUs");
}

LAB_TEST(nccl_sums_one_rank_on_a_whole_gpu) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device_list list = {0};
    struct lab_device *device = NULL;
    struct lab_stream *stream = NULL;
    struct lab_buffer data = {0};
    struct lab_sum *sum = NULL;
    struct lab_graph *graph = NULL;
    float values[1001], found[1001];
    if (lab_str_equal(getenv("GPULAB_TEST_KERNELS"), "own"))
        skip();
    if (!lab_nccl_ready()) {
        print_message("NCCL isn't here\n");
        skip();
    }
    require(lab_device_select(machine, "cuda:0", &arena, &list, &err), &err);
    require(lab_device_open(machine, &list.items[0], LAB_DEVICE_SETUP, &device, &err) ||
                lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, &err) ||
                lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, sizeof values, &data, &err),
            &err);
    for (int i = 0; i < 1001; i++)
        values[i] = drawn(0, i);
    struct lab_group *group = lab_group_open(&(struct lab_group_setup){.ranks = 1, .limit_s = 20});
    struct lab_sum_setup setup = {
        .device = device, .numa_node = -1, .way = LAB_SUM_NCCL, .count_most = 1001};
    require(lab_sum_open(group, &setup, &sum, &err), &err);
    assert_string_equal(lab_sum_through(sum), "NCCL");
    assert_null(lab_sum_note(sum));
    require(lab_copy(stream, data.data, values, sizeof values, LAB_MEMORY_DEVICE,
                     LAB_MEMORY_HOST_PAGEABLE, &err) ||
                lab_sum_enqueue(sum, stream, data.data, 1001, &err) ||
                lab_graph_begin(stream, &err) ||
                lab_sum_enqueue(sum, stream, data.data, 1001, &err) ||
                lab_graph_end(stream, &graph, &err) || lab_graph_launch(graph, stream, &err) ||
                lab_copy(stream, found, data.data, sizeof found, LAB_MEMORY_HOST_PAGEABLE,
                         LAB_MEMORY_DEVICE, &err) ||
                lab_stream_sync(stream, &err) || lab_sum_check(sum, &err),
            &err);
    assert_memory_equal(found, values, sizeof values);
    lab_graph_close(graph);
    lab_sum_close(sum);
    lab_group_close(group);
    lab_buffer_close(&data);
    lab_stream_close(stream);
    lab_device_close(device);
}

/* --- the GPU --- */

static int open_slice(struct rank *rank, const struct lab_device_ref *ref, struct lab_err *err) {
    size_t bytes = LONGEST * sizeof(float);
    rank->found = lab_mem_alloc(LONGEST, sizeof *rank->found);
    if (lab_device_open(machine, ref, LAB_DEVICE_SETUP, &rank->device, err) ||
        lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &rank->stream, err) ||
        lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, bytes, &rank->data, err) ||
        lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, bytes, &rank->fresh, err))
        return -1;
    for (int64_t i = 0; i < LONGEST; i++)
        rank->found[i] = drawn(rank->index, i);
    return lab_copy(rank->stream, rank->fresh.data, rank->found, bytes, LAB_MEMORY_DEVICE,
                    LAB_MEMORY_HOST_PAGEABLE, err) ||
                   lab_stream_sync(rank->stream, err)
               ? -1
               : 0;
}

/* 0, or the status to end with. */
static int open_gpu(void) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device_list list = {0};
    lab_arena_init(&arena);
    if (lab_machine_open(NULL, &machine, &err) ||
        lab_device_select(machine, "cuda:0/4", &arena, &list, &err) || list.count != RANKS) {
        print_message("skipped: %s\n", err.text);
        return LAB_TEST_SKIPPED;
    }
    for (int i = 0; i < RANKS; i++) {
        ranks[i].index = i;
        if (open_slice(&ranks[i], &list.items[i], &err)) {
            print_message("%s\n", err.text);
            return 1;
        }
    }
    return LAB_TEST_GO;
}

static void close_gpu(void) {
    for (int i = 0; i < RANKS; i++) {
        lab_buffer_close(&ranks[i].data);
        lab_buffer_close(&ranks[i].fresh);
        lab_stream_close(ranks[i].stream);
        lab_device_close(ranks[i].device);
        lab_mem_free(ranks[i].found);
    }
    lab_machine_close(machine);
    lab_arena_release(&arena);
}

static int begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
    int status = open_gpu();
    if (status != LAB_TEST_GO)
        close_gpu();
    return status;
}

static int end(int failed) {
    close_gpu();
    return failed;
}

const struct lab_test_program lab_test_program = {.begin = begin, .end = end};
