/*
 * test_blas.c: many threads multiply at once and get what one thread alone gets. A serial OpenBLAS
 * without locks of its own fails this within moments unless its buffers are replaced.
 */
#include "base/mem.h"
#include "base/random.h"
#include "device/cpu/blas.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "test.h"

/* odd, small, and beyond the size that some CPUs' kernels multiply without packing */
static const int64_t shapes[][3] = {{7, 9, 11},    {50, 64, 50},  {33, 129, 65},
                                    {64, 96, 200}, {50, 384, 64}, {130, 110, 120}};

#define SHAPES      ((int)(sizeof shapes / sizeof shapes[0]))
#define MAX_ELEMENT (400 * 400)

struct worker {
    pthread_t thread;
    uint64_t seed;
    int rounds;
    float *a, *b, *out;
    float *expected[SHAPES]; /* by one thread alone */
    int wrong;
};

static pthread_barrier_t start;

static void multiply(struct worker *worker, int shape, float *out) {
    const int64_t *s = shapes[shape];
    cpu_blas_gemm(s[0], s[1], s[2], 1, (struct cpu_matrix){worker->a, s[2], false},
                  (struct cpu_matrix){worker->b, s[2], true}, 0, out, s[1]);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    pthread_barrier_wait(&start);
    for (int round = 0; round < worker->rounds; round++) {
        int shape = (int)lab_random_below(worker->seed, (uint64_t)round, SHAPES);
        multiply(worker, shape, worker->out);
        worker->wrong += memcmp(worker->out, worker->expected[shape],
                                (size_t)(shapes[shape][0] * shapes[shape][1]) * 4) != 0;
    }
    return NULL;
}

static int wrong_products(int threads, int rounds) {
    struct worker *workers = lab_mem_alloc((size_t)threads, sizeof *workers);
    LAB_AUTO(arena, arena);
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)threads), 0);
    for (int t = 0; t < threads; t++) {
        struct worker *worker = &workers[t];
        worker->seed = (uint64_t)t;
        worker->rounds = rounds;
        worker->a = lab_arena_alloc(&arena, MAX_ELEMENT, sizeof(float));
        worker->b = lab_arena_alloc(&arena, MAX_ELEMENT, sizeof(float));
        worker->out = lab_arena_alloc(&arena, MAX_ELEMENT, sizeof(float));
        for (int i = 0; i < MAX_ELEMENT; i++) {
            worker->a[i] = lab_random_symmetric((uint64_t)t, (uint64_t)i);
            worker->b[i] = lab_random_symmetric((uint64_t)t + 1000, (uint64_t)i);
        }
        for (int s = 0; s < SHAPES; s++) {
            worker->expected[s] =
                lab_arena_alloc(&arena, (size_t)(shapes[s][0] * shapes[s][1]), sizeof(float));
            multiply(worker, s, worker->expected[s]);
        }
    }
    for (int t = 0; t < threads; t++)
        assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    int wrong = 0;
    for (int t = 0; t < threads; t++) {
        pthread_join(workers[t].thread, NULL);
        wrong += workers[t].wrong;
    }
    pthread_barrier_destroy(&start);
    lab_mem_free(workers);
    return wrong;
}

LAB_TEST(two_threads_multiply_often) {
    assert_int_equal(wrong_products(2, 4000), 0);
}

/* More threads than OpenBLAS has buffers for: its own would overflow into a faulty table. */
LAB_TEST(many_threads_multiply) {
    assert_int_equal(wrong_products(160, 20), 0);
}

LAB_TEST(the_replacement_is_in_use) {
    assert_true(cpu_blas_is_concurrent());
}
