/*
 * The ring all-reduce between CPU devices, a thread each: sums are right and the same everywhere,
 * whatever the sizes, again and again; and nobody waits for ever.
 */
#include "base/random.h"
#include "unit/workload/on_cpu.h"
#include "workload/ring/ring.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

extern const struct lab_workload lab_workload_allreduce;

enum { MEMBERS = 4, SUMS = 3 };

struct rider {
    struct ring *ring;
    int index, members;
    int64_t count;
    struct on_cpu cpu; /* a device of its own */
    bool stays_away;
    int failed;
    struct lab_err err;
    float *result;
    pthread_t thread;
};

/* What member `index` brings to the first sum. */
static float value_of(int index, int64_t i) {
    return lab_random_symmetric((uint64_t)index + 1, (uint64_t)i);
}

/* Each later sum is of what the one before left. */
static int ride(struct rider *rider, struct lab_err *err) {
    struct lab_buffer data = {0};
    struct ring_member *member = NULL;
    size_t bytes = (size_t)rider->count * sizeof(float);
    int failed = lab_buffer_open(rider->cpu.device, LAB_MEMORY_DEVICE, -1, bytes, &data, err) ||
                 ring_join(rider->ring, rider->index, rider->cpu.device, -1, &member, err);
    for (int64_t i = 0; i < rider->count && !failed; i++)
        ((float *)data.data)[i] = value_of(rider->index, i);
    for (int s = 0; s < SUMS && !failed; s++)
        failed = ring_sum(member, data.data, rider->count, err);
    if (!failed)
        memcpy(rider->result, data.data, bytes);
    ring_leave(member);
    lab_buffer_close(&data);
    return failed ? -1 : 0;
}

static void *rider_main(void *argument) {
    struct rider *rider = argument;
    if (!rider->stays_away)
        rider->failed = ride(rider, &rider->err);
    return NULL;
}

static void ride_all(struct rider *riders, int members, int64_t count, double limit_s) {
    struct lab_err err = LAB_ERR_INIT;
    struct ring *ring = NULL;
    const struct ring_setup setup = {.members = members, .slice_bytes = 4096, .limit_s = limit_s};
    if (ring_open(&setup, &ring, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < members; i++) {
        riders[i].ring = ring;
        riders[i].index = i;
        riders[i].members = members;
        riders[i].count = count;
        riders[i].err = (struct lab_err)LAB_ERR_INIT;
        riders[i].result = lab_mem_alloc((size_t)count, sizeof(float));
    }
    for (int i = 0; i < members; i++)
        assert_int_equal(pthread_create(&riders[i].thread, NULL, rider_main, &riders[i]), 0);
    for (int i = 0; i < members; i++)
        pthread_join(riders[i].thread, NULL);
    ring_close(ring);
}

static void release_results(struct rider *riders, int members) {
    for (int i = 0; i < members; i++)
        lab_mem_free(riders[i].result);
}

static int open_riders(void **state) {
    struct rider *riders = lab_mem_alloc(MEMBERS, sizeof *riders);
    for (int i = 0; i < MEMBERS; i++)
        on_cpu_open(&riders[i].cpu);
    *state = riders;
    return 0;
}

static int close_riders(void **state) {
    struct rider *riders = *state;
    for (int i = 0; i < MEMBERS; i++)
        on_cpu_close(&riders[i].cpu);
    lab_mem_free(riders);
    return 0;
}

static void every_member_gets_the_same_sums(void **state) {
    struct rider *riders = *state;
    /* fewer values than members, parts of unequal length, several slices, more than all slots */
    const int64_t counts[] = {1, 3, 1000, 5000, 40003};
    for (int members = 1; members <= MEMBERS; members++)
        for (int c = 0; c < 5; c++) {
            ride_all(riders, members, counts[c], 30);
            double scale = pow(members, SUMS - 1);
            for (int i = 0; i < members; i++) {
                if (riders[i].failed)
                    fail_msg("%s", riders[i].err.text);
                assert_memory_equal(riders[i].result, riders[0].result,
                                    (size_t)counts[c] * sizeof(float));
            }
            for (int64_t v = 0; v < counts[c]; v++) {
                double sum = 0;
                for (int i = 0; i < members; i++)
                    sum += (double)value_of(i, v);
                if (fabs((double)riders[0].result[v] - scale * sum) > 1e-6 * scale * members)
                    fail_msg("%d members, value %lld of %lld: %g, must be %g", members,
                             (long long)v, (long long)counts[c], (double)riders[0].result[v],
                             scale * sum);
            }
            release_results(riders, members);
        }
}

static void a_member_that_never_comes_ends_it_for_all(void **state) {
    struct rider *riders = *state;
    riders[2].stays_away = true;
    ride_all(riders, 3, 1000, 0.05);
    riders[2].stays_away = false;
    int waited = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(riders[i].failed, -1);
        waited += strstr(riders[i].err.text, "has waited 0.05 s for member") != NULL;
    }
    assert_true(waited >= 1); /* the others may have heard of it first */
    release_results(riders, 3);
}

static void an_aborted_ring_sums_no_more(void **state) {
    struct rider *riders = *state;
    struct lab_err err = LAB_ERR_INIT;
    struct ring *ring = NULL;
    struct ring_member *member = NULL;
    const struct ring_setup setup = {.members = 2, .slice_bytes = 64, .limit_s = 30};
    assert_int_equal(ring_open(&setup, &ring, &err), 0);
    assert_int_equal(ring_join(ring, 0, riders[0].cpu.device, -1, &member, &err), 0);
    ring_abort(ring);
    assert_int_equal(ring_sum(member, NULL, 100, &err), -1);
    assert_non_null(strstr(err.text, "has failed before"));
    ring_leave(member);
    ring_close(ring);
}

static void bad_rings_are_refused(void **state) {
    (void)state;
    struct lab_err err = LAB_ERR_INIT;
    struct ring *ring = NULL;
    assert_int_equal(ring_open(&(struct ring_setup){.members = 0, .slice_bytes = 4}, &ring, &err),
                     -1);
    assert_int_equal(ring_open(&(struct ring_setup){.members = 2, .slice_bytes = 6}, &ring, &err),
                     -1);
    ring_close(NULL);
    ring_leave(NULL);
}

/* The figures as nccl-tests defines them. */
static void the_bus_carries_twice_all_but_one_part(void **state) {
    (void)state;
    assert_true(ring_bus_bytes(8e6, 1) == 0);
    assert_true(ring_bus_bytes(8e6, 2) == 8e6);
    assert_true(ring_bus_bytes(8e6, 4) == 12e6);
}

static void the_workload_sums_over_slices_of_its_device(void **state) {
    struct rider *riders = *state;
    struct on_cpu *cpu = &riders[0].cpu;
    struct lab_device_list list = {0};
    struct lab_device *slice = NULL;
    struct lab_err err = LAB_ERR_INIT;
    char selector[64];
    if (cpu->device->ref.cpus.count < 2)
        skip();
    snprintf(selector, sizeof selector, "%s/2", cpu->device->ref.name);
    if (lab_device_select(cpu->machine, selector, &cpu->arena, &list, &err) ||
        lab_device_open(cpu->machine, &list.items[1], LAB_DEVICE_SETUP, &slice, &err))
        fail_msg("%s", err.text);
    struct lab_rank rank = {.device = slice, .numa_node = -1, .count = 1};
    void *config = on_cpu_configure(cpu, &lab_workload_allreduce,
                                    WORDS("bytes=40004", "slice=1024", "wait=30s"));
    void *all = NULL;
    struct lab_iteration records[7];
    struct lab_verification v = {0};
    if (lab_workload_allreduce.open(config, &rank, &all, &err) ||
        lab_workload_allreduce.run(all, 7, records, &err) ||
        lab_workload_allreduce.verify(all, 3, &v, &err))
        fail_msg("%s", err.text);
    assert_true(v.applicable && v.passed && v.elements == 10001);
    for (int i = 1; i < 7; i++)
        assert_true(records[i].start_ns >= records[i - 1].start_ns &&
                    records[i].end_ns > records[i].start_ns);
    lab_workload_allreduce.close(all);
    config = on_cpu_configure(cpu, &lab_workload_allreduce, WORDS("devices=cpu:0/2.0"));
    assert_int_equal(lab_workload_allreduce.open(config, &rank, &all, &err), -1);
    assert_non_null(strstr(err.text, "must be among them"));
    lab_device_close(slice);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_gets_the_same_sums),
        cmocka_unit_test(a_member_that_never_comes_ends_it_for_all),
        cmocka_unit_test(an_aborted_ring_sums_no_more),
        cmocka_unit_test(bad_rings_are_refused),
        cmocka_unit_test(the_bus_carries_twice_all_but_one_part),
        cmocka_unit_test(the_workload_sums_over_slices_of_its_device),
    };
    return cmocka_run_group_tests(tests, open_riders, close_riders);
}
