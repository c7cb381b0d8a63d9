/*
 * on_ranks.h: several CPU devices whose ranks train one model, a thread each, as a worker's do.
 */
#pragma once

#include "unit/workload/on_cpu.h"

#include <pthread.h>
#include <stdatomic.h>

enum { RANKS = 3, STEPS = 20 };

struct rank {
    struct on_cpu cpu;
    const struct lab_workload *workload;
    const char *const *words;
    void *training;
    int steps; /* that it does */
    int failed;
    struct lab_err err;
    struct lab_verification *verified; /* not NULL: verifies instead */
    pthread_t thread;
    _Atomic int communications; /* times that communication was told, none of them negative */
    struct lab_sink sink;
};

static inline void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    struct rank *rank = state;
    for (size_t i = 0; i < count; i++)
        if (lab_str_equal(items[i].name, "communication_time_ms") && items[i].value > 0)
            rank->communications++;
}

static inline void *rank_main(void *argument) {
    struct rank *rank = argument;
    struct lab_iteration records[STEPS];
    const struct lab_workload *workload = rank->workload;
    void *training = NULL;
    const void *config = on_cpu_configure(&rank->cpu, workload, rank->words);
    rank->failed = workload->open(config, &rank->cpu.rank, &training, &rank->err) ||
                   (rank->verified ? workload->verify(training, (uint64_t)rank->cpu.rank.index,
                                                      rank->verified, &rank->err)
                                   : workload->run(training, rank->steps, records, &rank->err));
    if (rank->failed)
        lab_group_fail(rank->cpu.rank.group, rank->cpu.rank.index, &rank->err);
    rank->training = training;
    return NULL;
}

static inline void *close_main(void *argument) { /* ranks part together */
    struct rank *rank = argument;
    rank->workload->close(rank->training);
    return NULL;
}

static inline int open_ranks(void **state) {
    struct rank *ranks = lab_mem_alloc(RANKS, sizeof *ranks);
    for (int i = 0; i < RANKS; i++)
        on_cpu_open(&ranks[i].cpu);
    *state = ranks;
    return 0;
}

static inline int close_ranks(void **state) {
    struct rank *ranks = *state;
    for (int i = 0; i < RANKS; i++)
        on_cpu_close(&ranks[i].cpu);
    lab_mem_free(ranks);
    return 0;
}

static inline void in_threads(struct rank *ranks, int count, void *(*run)(void *)) {
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run, &ranks[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
}

static inline struct lab_group *train_together(struct rank *ranks, int count,
                                               const struct lab_workload *workload,
                                               const char *const *words, int steps) {
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = count, .limit_s = 20});
    for (int i = 0; i < count; i++) {
        ranks[i].sink = (struct lab_sink){.metrics = on_metrics, .state = &ranks[i]};
        ranks[i].cpu.rank.group = group;
        ranks[i].cpu.rank.index = i;
        ranks[i].cpu.rank.count = count;
        ranks[i].cpu.rank.sink = &ranks[i].sink;
        ranks[i].workload = workload;
        ranks[i].words = words;
        ranks[i].steps = steps;
        ranks[i].err = LAB_ERR_INIT;
        ranks[i].communications = 0;
    }
    in_threads(ranks, count, rank_main);
    return group;
}

static inline void close_together(struct rank *ranks, int count, struct lab_group *group) {
    in_threads(ranks, count, close_main);
    lab_group_close(group);
    for (int i = 0; i < count; i++) {
        ranks[i].verified = NULL;
        ranks[i].cpu.rank = (struct lab_rank){.device = ranks[i].cpu.device,
                                              .numa_node = ranks[i].cpu.rank.numa_node,
                                              .count = 1,
                                              .seed = 42};
    }
}
