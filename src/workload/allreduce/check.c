/*
 * check.c: whether sums are right: one sum of vectors that each rank draws from its own seed,
 * against double precision, and to the bit the same on all ranks. Each rank checks its own, and
 * shows the others what they need for it.
 */
#include "workload/allreduce/allreduce.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>

/* A meeting of its own, at which all have read what was shown. */
enum { CHECK_READ = 12 };

struct shown {
    uint64_t seed, hash;
};

/* What each rank shows; `ret_all` has room for all of them. */
static int show(struct allreduce_end *end, struct shown own, struct shown *ret_all,
                struct lab_err *err) {
    LAB_AUTO_FREE struct shown **all = lab_mem_alloc((size_t)end->ranks, sizeof *all);
    int failed =
        lab_group_exchange(end->group, end->rank, end->device, &own, (void **)all, err) < 0;
    for (int i = 0; i < end->ranks && !failed; i++)
        ret_all[i] = *all[i];
    return failed || lab_group_meet(end->group, end->rank, end->device, CHECK_READ, err) ? -1 : 0;
}

static uint64_t hash_of(const float *values, int64_t count) {
    uint64_t hash = 1;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = lab_random_bits(hash, bits);
    }
    return hash;
}

/* Sums of [first, first + count) over all ranks' draws. */
static void add_up(const struct shown *all, int ranks, int64_t first, int64_t count, double *sums) {
    for (int i = 0; i < ranks; i++)
        for (int64_t v = 0; v < count; v++)
            sums[v] += (double)lab_random_symmetric(all[i].seed, (uint64_t)(first + v));
}

static int compare(struct allreduce_end *end, const struct shown *seeds, struct shown *all,
                   struct lab_verification *ret, struct lab_err *err) {
    int64_t values = allreduce_values(end->config);
    int64_t count = values < ALLREDUCE_CHECKED_MOST ? values : ALLREDUCE_CHECKED_MOST;
    int64_t first = values - count;
    LAB_AUTO_FREE float *found = lab_mem_alloc((size_t)count, sizeof *found);
    LAB_AUTO_FREE double *sums = lab_mem_alloc((size_t)count, sizeof *sums);
    int failed = lab_data_download(end->stream, (const float *)end->pool.data + first, LAB_FP32,
                                   count, found, err);
    if (!failed) {
        add_up(seeds, end->ranks, first, count, sums);
        lab_verify_compare(found, sums, count, LAB_POISON, lab_verify_tolerance(LAB_FP32), ret);
        failed = show(end, (struct shown){.hash = hash_of(found, count)}, all, err);
    }
    for (int i = 0; i < end->ranks && !failed && ret->passed; i++) {
        if (all[i].hash == all[end->rank].hash)
            continue;
        ret->passed = false;
        snprintf(ret->text, sizeof ret->text, "rank %d has other sums than rank %d", i, end->rank);
    }
    return failed ? -1 : 0;
}

int allreduce_end_verify(struct allreduce_end *end, uint64_t seed, struct lab_verification *ret,
                         struct lab_err *err) {
    if (lab_verify_skip(end->device, ret))
        return 0;
    if (lab_verify_room(end->device,
                        (double)ALLREDUCE_CHECKED_MOST * (sizeof(float) + sizeof(double)), err))
        return -1;
    int64_t values = allreduce_values(end->config);
    LAB_AUTO_FREE struct shown *seeds = lab_mem_alloc((size_t)end->ranks, sizeof *seeds);
    LAB_AUTO_FREE struct shown *hashes = lab_mem_alloc((size_t)end->ranks, sizeof *hashes);
    int failed = show(end, (struct shown){.seed = seed}, seeds, err) ||
                 lab_data_upload(end->stream, end->pool.data, LAB_FP32, values, lab_data_random,
                                 &seed, err) ||
                 lab_sum_enqueue(end->sum, end->stream, end->pool.data, values, err) ||
                 lab_stream_sync(end->stream, err) || compare(end, seeds, hashes, ret, err) ||
                 allreduce_end_refresh(end, err);
    return failed ? -1 : 0;
}
