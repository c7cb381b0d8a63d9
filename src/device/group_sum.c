/*
 * group_sum.c: sums over the devices of a group: which way is taken, by all ranks alike, and its
 * life. The ways themselves are group_host.c's and the backends' (sum.h).
 */
#include "base/mem.h"
#include "base/str.h"
#include "device/sum.h"

#include <stdio.h>

const char *const lab_sum_ways[] = {"auto", "ring", "hierarchical", "nccl", NULL};

enum lab_sum_way lab_sum_way_find(const char *name) {
    int way = lab_str_find(name, lab_sum_ways);
    return way < 0 ? LAB_SUM_AUTO : (enum lab_sum_way)way;
}

const char *lab_sum_way_name(enum lab_sum_way way) {
    return way == LAB_SUM_NVLINK ? "nvlink" : lab_sum_ways[way];
}

struct lab_sum {
    struct lab_sum_place place;
    const struct lab_sum_kind *kind; /* that is open; NULL = none is */
    bool joined;
    void *state;
    struct lab_device **devices;                        /* [ranks] */
    void **states;                                      /* [ranks] */
    char note[sizeof((struct lab_err *)0)->text + 128]; /* "" = none */
};

/* Meetings while a sum is opened; those of the group itself and of sums have other numbers. */
enum { AGREE_HEARD = 8 };

/* --- agreeing --- */

struct vote { /* what a rank shows the others about one stage */
    int failed;
    struct lab_err err;
    void *state;
};

/*
 * Hears how it went on all ranks. Returns 0 where all agree, -1 with the words of the first that
 * failed;
 * *ret_over says that the group itself has failed, so that there is nothing more to agree on.
 */
static int agree(struct lab_sum *sum, const struct vote *own, bool *ret_over, struct lab_err *err) {
    struct lab_sum_place *place = &sum->place;
    struct vote vote = *own, **all = lab_mem_alloc((size_t)place->ranks, sizeof *all);
    int failed = 0;
    *ret_over =
        lab_group_exchange(place->group, place->rank, place->device, &vote, (void **)all, err) < 0;
    for (int i = 0; i < place->ranks && !*ret_over; i++) {
        sum->states[i] = all[i]->state;
        if (all[i]->failed && !failed && err)
            *err = all[i]->err;
        failed |= all[i]->failed;
    }
    /* all have heard it before anybody's vote goes */
    if (!*ret_over)
        *ret_over = lab_group_meet(place->group, place->rank, place->device, AGREE_HEARD,
                                   failed ? NULL : err) < 0;
    lab_mem_free(all);
    return failed || *ret_over ? -1 : 0;
}

static void leave_kind(struct lab_sum *sum) {
    if (sum->joined && sum->kind->leave)
        sum->kind->leave(sum->state);
    sum->joined = false;
}

static void close_kind(struct lab_sum *sum, bool all_left) {
    leave_kind(sum);
    if (sum->kind)
        sum->kind->close(sum->state, all_left);
    sum->kind = NULL;
    sum->state = NULL;
}

/*
 * Opens it on all ranks, or leaves it closed on all; where the group itself has failed, as far as
 * it came: another rank may still look at this one's state, until all have parted.
 */
static int try_kind(struct lab_sum *sum, const struct lab_sum_kind *kind, bool *ret_over,
                    struct lab_err *err) {
    struct vote vote = {.err = LAB_ERR_INIT};
    vote.failed = kind->open(&sum->place, &sum->state, &vote.err);
    if (!vote.failed)
        sum->kind = kind;
    vote.state = sum->state;
    int status = agree(sum, &vote, ret_over, err);
    if (status == 0) {
        vote.failed = kind->join(sum->state, sum->states, &vote.err);
        sum->joined = !vote.failed;
        status = agree(sum, &vote, ret_over, err);
    }
    if (status < 0 && !*ret_over)
        close_kind(sum, true);
    return status;
}

/* --- choosing --- */

#define KINDS_MOST 6

/* The kinds that do for the way, the best first. */
static int list_kinds(const struct lab_sum *sum, enum lab_sum_way asked,
                      const struct lab_sum_kind *ret_kinds[KINDS_MOST]) {
    const char *name = sum->place.device->ref.backend;
    const struct lab_backend *backend = lab_backend_find(name);
    bool alike = true;
    int count = 0;
    for (int i = 0; i < sum->place.ranks; i++)
        alike &= lab_str_equal(sum->devices[i]->ref.backend, name);
    for (int pass = 0; pass < 2; pass++) /* what was asked for, then what else there is */
        for (int i = 0; alike && backend && backend->sums && backend->sums[i]; i++) {
            const struct lab_sum_kind *kind = backend->sums[i];
            bool wanted = asked == LAB_SUM_AUTO || kind->way == asked;
            if (wanted == (pass == 0) && asked != LAB_SUM_HIERARCHICAL &&
                !(asked == LAB_SUM_RING && pass == 1) && count < KINDS_MOST - 1)
                ret_kinds[count++] = kind;
        }
    ret_kinds[count++] = asked == LAB_SUM_HIERARCHICAL ? &lab_sum_host_gather : &lab_sum_host_ring;
    return count;
}

static void keep_note(struct lab_sum *sum, enum lab_sum_way asked, const char *why) {
    bool simulated = sum->place.device->ref.simulated && sum->place.ranks > 1;
    if (simulated && asked == LAB_SUM_AUTO && sum->kind->way != LAB_SUM_NVLINK)
        snprintf(
            sum->note, sizeof sum->note,
            "simulated sums go through %s: without NVLink, copies between GPUs aren't simulated",
            sum->kind->through);
    if (asked == LAB_SUM_AUTO || sum->kind->way == asked)
        return;
    snprintf(sum->note, sizeof sum->note, "allreduce=%s not available, used %s through %s: %s",
             lab_sum_ways[asked], lab_sum_way_name(sum->kind->way), sum->kind->through, why);
}

static int choose(struct lab_sum *sum, enum lab_sum_way asked, struct lab_err *err) {
    const struct lab_sum_kind *kinds[KINDS_MOST];
    int count = list_kinds(sum, asked, kinds);
    struct lab_err why = LAB_ERR_INIT;
    bool known = false, over = false;
    for (int i = 0; i < count; i++) {
        struct lab_err own = LAB_ERR_INIT;
        /* one rank needs nobody, unless it was told how */
        bool idle = sum->place.ranks == 1 && asked != kinds[i]->way;
        if (i < count - 1 && idle)
            continue;
        int status = kinds[i]->suits(&sum->place, &own);
        if (status == 0)
            status = try_kind(sum, kinds[i], &over, &own);
        if (status == 0) {
            keep_note(sum, asked, known ? why.text : "only real NVIDIA GPUs have it");
            return 0;
        }
        if (over || i == count - 1) {
            if (err)
                *err = own;
            return -1;
        }
        if (!known)
            why = own;
        known = true;
    }
    return -1;
}

/* --- use --- */

const char *lab_sum_through(const struct lab_sum *sum) {
    return sum->kind->through;
}

const char *lab_sum_note(const struct lab_sum *sum) {
    return *sum->note ? sum->note : NULL;
}

bool lab_sum_is_captured(const struct lab_sum *sum) {
    return sum->kind->is_captured;
}

int lab_sum_check(struct lab_sum *sum, struct lab_err *err) {
    if (sum->kind->check && sum->kind->check(sum->state, err))
        return -1;
    return lab_group_check(sum->place.group, err);
}

/* tf32 is a way to multiply: its values are fp32's. */
static enum lab_dtype stored_as(enum lab_dtype dtype) {
    return dtype == LAB_TF32 ? LAB_FP32 : dtype;
}

int lab_sum_enqueue_as(struct lab_sum *sum, struct lab_stream *stream, enum lab_dtype dtype,
                       void *data, int64_t count, struct lab_err *err) {
    const struct lab_sum_place *place = &sum->place;
    dtype = stored_as(dtype);
    int64_t most = place->count_most * (int64_t)lab_dtype_bytes(place->dtype) /
                   (int64_t)lab_dtype_bytes(dtype);
    if (count > most)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a sum of %lld values where %lld are the most",
                           (long long)count, (long long)most);
    if (dtype != place->dtype && dtype != LAB_FP32)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a sum of %s where %s was opened",
                           lab_dtype_name(dtype), lab_dtype_name(place->dtype));
    return count > 0 ? sum->kind->enqueue(sum->state, stream, dtype, data, count, err) : 0;
}

int lab_sum_enqueue(struct lab_sum *sum, struct lab_stream *stream, float *data, int64_t count,
                    struct lab_err *err) {
    return lab_sum_enqueue_as(sum, stream, LAB_FP32, data, count, err);
}

/* --- life --- */

int lab_sum_open(struct lab_group *group, const struct lab_sum_setup *setup,
                 struct lab_sum **ret_sum, struct lab_err *err) {
    struct lab_sum *sum = lab_mem_alloc(1, sizeof *sum);
    int ranks = lab_group_ranks(group);
    sum->devices = lab_mem_alloc((size_t)ranks, sizeof(struct lab_device *));
    sum->states = lab_mem_alloc((size_t)ranks, sizeof(void *));
    sum->place = (struct lab_sum_place){.group = group,
                                        .rank = setup->rank,
                                        .ranks = ranks,
                                        .device = setup->device,
                                        .devices = sum->devices,
                                        .numa_node = setup->numa_node,
                                        .dtype = stored_as(setup->dtype),
                                        .count_most = setup->count_most};
    lab_group_hold(group);
    if (lab_group_exchange(group, setup->rank, setup->device, setup->device, (void **)sum->devices,
                           err) ||
        choose(sum, setup->way, err)) {
        lab_sum_close(sum);
        return -1;
    }
    lab_group_set_sum_way(group, sum->kind->way);
    *ret_sum = sum;
    return 0;
}

void lab_sum_close(struct lab_sum *sum) {
    if (!sum)
        return;
    leave_kind(sum);
    bool all_left = lab_group_part(sum->place.group, sum->place.rank, sum->place.device);
    if (!all_left)
        lab_device_keep(sum->place.device);
    close_kind(sum, all_left);
    lab_mem_free(sum->devices);
    lab_mem_free(sum->states);
    lab_mem_free(sum);
}
