/*
 * The pool and its threads: work is done once, by several threads where there are several cores,
 * and each thread stays where it belongs, read back from /proc.
 */
#include "cpu_fixture.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

/* --- work --- */

struct tally {
    _Atomic int *done; /* by unit */
    int64_t units;
};

static void count_units(void *context, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct tally *tally = context;
    for (int64_t unit = begin; unit < end; unit++)
        atomic_fetch_add(&tally->done[unit], 1);
}

struct order { /* work for a stream's thread to give to the pool */
    struct cpu_work work;
};

static void run_order(struct cpu_stream *stream, void *context) {
    struct order *order = context;
    cpu_pool_run(((struct cpu_device *)stream->base.device)->pool, &order->work, &stream->caller);
}

LAB_TEST(every_unit_is_done_once) {
    struct cpu_fixture *fixture = *state;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 16, 17, 1000, 4099};
    struct lab_stream *streams[3];
    for (int i = 0; i < 3; i++)
        streams[i] = fixture_stream(fixture->device);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct tally tallies[3];
        struct order orders[3];
        for (int i = 0; i < 3; i++) { /* three callers at once */
            tallies[i].units = sizes[s];
            tallies[i].done = lab_mem_alloc((size_t)sizes[s] + 1, sizeof(_Atomic int));
            orders[i].work = (struct cpu_work){
                .task = count_units, .context = &tallies[i], .units = sizes[s], .threads = 1 + i};
            for (int repeat = 0; repeat < 5; repeat++)
                cpu_stream_call((struct cpu_stream *)streams[i], run_order, &orders[i]);
        }
        for (int i = 0; i < 3; i++) {
            ASSERT_OK(lab_stream_sync(streams[i], err));
            for (int64_t unit = 0; unit < sizes[s]; unit++)
                assert_int_equal(tallies[i].done[unit], 5);
            assert_int_equal(tallies[i].done[sizes[s]], 0);
            lab_mem_free(tallies[i].done);
        }
    }
    for (int i = 0; i < 3; i++)
        lab_stream_close(streams[i]);
}

static void meet(void *context, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    for (int64_t unit = begin; unit < end; unit++)
        pthread_barrier_wait(context); /* passed only by as many threads as there are units */
}

LAB_TEST(a_launch_runs_on_all_cores_at_once) {
    struct cpu_fixture *fixture = *state;
    int cores = fixture->device->ref.cpus.count;
    struct lab_stream *stream = fixture_stream(fixture->device);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)cores);
    struct order order = {
        .work = {.task = meet, .context = &barrier, .units = cores, .threads = cores}};
    for (int i = 0; i < 20; i++)
        cpu_stream_call((struct cpu_stream *)stream, run_order, &order);
    ASSERT_OK(lab_stream_sync(stream, err));
    pthread_barrier_destroy(&barrier);
    lab_stream_close(stream);
}

/*
 * Work under way when a copy begins: the tenth piece lets the copying stream go, the ones after it
 * wait until that has its core.
 */
struct intrusion {
    int cpu; /* that the copy should take */
    sem_t go;
    _Atomic int pieces, units, there, trespasses;
    int taken_cpu; /* that it took */
};

static void work_on(void *context, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct intrusion *intrusion = context;
    atomic_fetch_add(&intrusion->units, (int)(end - begin));
    int piece = atomic_fetch_add(&intrusion->pieces, 1);
    if (piece == 10)
        sem_post(&intrusion->go);
    if (piece <= 10)
        return;
    bool was_there = atomic_load(&intrusion->there);
    while (!atomic_load(&intrusion->there))
        sched_yield();
    if (was_there && sched_getcpu() == intrusion->cpu)
        atomic_fetch_add(&intrusion->trespasses, 1);
    usleep(100);
}

static void take_core(struct cpu_stream *stream, void *context) {
    struct intrusion *intrusion = context;
    cpu_pool_sit(((struct cpu_device *)stream->base.device)->pool, &stream->caller);
    intrusion->taken_cpu = sched_getcpu();
    atomic_store(&intrusion->there, 1);
}

static void give_core_back(struct cpu_stream *stream, void *context) {
    (void)context;
    cpu_pool_rise(((struct cpu_device *)stream->base.device)->pool, &stream->caller);
}

LAB_TEST(helpers_leave_the_core_that_a_copy_takes) {
    struct cpu_fixture *fixture = *state;
    const struct lab_cpus *cpus = &fixture->device->ref.cpus;
    if (cpus->count < 2)
        skip();
    struct lab_stream *compute = fixture_stream(fixture->device), *copy = NULL;
    ASSERT_OK(lab_stream_open(fixture->device, LAB_STREAM_COPY, &copy, err));
    struct intrusion intrusion = {.cpu = cpus->items[cpus->count - 1]};
    struct order order = {
        .work = {.task = work_on, .context = &intrusion, .units = 40, .threads = cpus->count}};
    sem_init(&intrusion.go, 0, 0);
    stream_hold(copy, &intrusion.go);
    cpu_stream_call((struct cpu_stream *)copy, take_core, &intrusion);
    cpu_stream_call((struct cpu_stream *)compute, run_order, &order);
    ASSERT_OK(lab_stream_sync(compute, err));
    cpu_stream_call((struct cpu_stream *)copy, give_core_back, NULL);
    ASSERT_OK(lab_stream_sync(copy, err));
    /* one may have been taken up in the very moment the copy came */
    assert_in_range(intrusion.trespasses, 0, 1);
    assert_int_equal(intrusion.units, 40);
    assert_int_equal(intrusion.taken_cpu, intrusion.cpu);
    lab_stream_close(compute);
    lab_stream_close(copy);
    sem_destroy(&intrusion.go);
}

/* --- places --- */

static bool read_line(pid_t tid, const char *file, const char *key, char *ret_text, size_t size) {
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
    FILE *stream = fopen(path, "r");
    while (stream && !found && fgets(line, sizeof line, stream))
        if (!strncmp(line, key, strlen(key))) {
            snprintf(ret_text, size, "%s", line + strlen(key));
            ret_text[strcspn(ret_text, "\n")] = 0;
            found = true;
        }
    if (stream)
        fclose(stream);
    return found;
}

static int cpu_index(const struct lab_cpus *cpus, int cpu) {
    for (int i = 0; i < cpus->count; i++)
        if (cpus->items[i] == cpu)
            return i;
    return -1;
}

static int count_threads(const struct lab_device *device) {
    int count = 0;
    char name[32], prefix[32];
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    snprintf(prefix, sizeof prefix, "%s ", device->ref.name);
    for (struct dirent *entry; (entry = readdir(directory));) {
        int tid = (int)strtol(entry->d_name, NULL, 10);
        count += tid > 0 && read_line(tid, "comm", prefix, name, sizeof name);
    }
    closedir(directory);
    return count;
}

/* A thread that was joined is listed for another moment. */
static void await_threads(const struct lab_device *device, int expected) {
    for (int i = 0; i < 2000 && count_threads(device) != expected; i++)
        lab_clock_sleep(lab_clock_system(), LAB_NS_PER_MS);
}

/* Finds the device's threads by name; each may run on the device's cores only. */
static void assert_threads_stay(const struct lab_device *device, int expected_helpers,
                                int expected_streams) {
    int helpers = 0, streams = 0;
    await_threads(device, expected_helpers + expected_streams);
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        int tid = (int)strtol(entry->d_name, NULL, 10);
        char name[32], prefix[32];
        snprintf(prefix, sizeof prefix, "%s ", device->ref.name);
        if (tid <= 0 || !read_line(tid, "comm", prefix, name, sizeof name))
            continue;
        struct lab_cpus allowed = {0};
        ASSERT_OK(lab_bind_read_cpus(tid, &allowed, err));
        for (int i = 0; i < allowed.count; i++)
            assert_true(cpu_index(&device->ref.cpus, allowed.items[i]) >= 0);
        if (name[0] == 'p') {
            assert_int_equal(allowed.count, 1);
            assert_int_equal(cpu_index(&device->ref.cpus, allowed.items[0]),
                             strtol(name + 1, NULL, 10));
            helpers++;
        } else {
            assert_int_equal(name[0], 's');
            streams++;
        }
        lab_mem_free(allowed.items);
    }
    closedir(directory);
    assert_int_equal(helpers, expected_helpers);
    assert_int_equal(streams, expected_streams);
}

LAB_TEST(threads_stay_on_the_cores_of_their_slice) {
    struct cpu_fixture *fixture = *state;
    struct lab_device_list list;
    struct lab_device *devices[64];
    struct lab_stream *streams[64][2];
    char selector[64];
    int cores = fixture->device->ref.cpus.count, slices = cores < 2 ? 1 : 2;
    snprintf(selector, sizeof selector, "%s/%d,%s", fixture->device->ref.name, slices,
             slices > 1 ? fixture->device->ref.name : "cpu:0");
    if (slices == 1)
        selector[strcspn(selector, ",")] = 0;
    ASSERT_OK(lab_device_select(fixture->machine, selector, &fixture->arena, &list, err));
    lab_device_close(fixture->device); /* else the whole node's threads would be there twice */
    for (int i = 0; i < list.count; i++) {
        ASSERT_OK(
            lab_device_open(fixture->machine, &list.items[i], LAB_DEVICE_SETUP, &devices[i], err));
        for (int k = 0; k < 2; k++)
            ASSERT_OK(lab_stream_open(devices[i], k ? LAB_STREAM_COPY : LAB_STREAM_COMPUTE,
                                      &streams[i][k], err));
    }
    for (int i = 0; i < list.count; i++) {
        int count = devices[i]->ref.cpus.count;
        assert_threads_stay(devices[i], count > 1 ? count : 0, 2);
    }
    for (int i = 0; i < list.count; i++) {
        for (int k = 0; k < 2; k++)
            lab_stream_close(streams[i][k]);
        assert_threads_stay(devices[i],
                            devices[i]->ref.cpus.count > 1 ? devices[i]->ref.cpus.count : 0, 0);
        lab_device_close(devices[i]);
    }
    fixture->device = fixture_device(fixture, "cpu", -1);
}

static void note_cpus(struct cpu_stream *stream, void *context) {
    (void)stream;
    struct lab_cpus *cpus = context;
    lab_bind_read_cpus(0, cpus, NULL);
}

LAB_TEST(cores_set_aside_for_copies_hold_copy_streams_alone) {
    struct cpu_fixture *fixture = *state;
    struct lab_device *device = fixture_device(fixture, "cpu", 1);
    struct lab_stream *streams[2];
    struct lab_cpus cpus[2] = {{0}, {0}};
    int cores = device->ref.cpus.count, aside = cores > 1 ? 1 : 0;
    for (int k = 0; k < 2; k++) {
        ASSERT_OK(
            lab_stream_open(device, k ? LAB_STREAM_COPY : LAB_STREAM_COMPUTE, &streams[k], err));
        cpu_stream_call((struct cpu_stream *)streams[k], note_cpus, &cpus[k]);
        ASSERT_OK(lab_stream_sync(streams[k], err));
    }
    assert_int_equal(cpus[0].count, cores - aside);
    assert_int_equal(cpus[1].count, aside ? 1 : cores);
    if (aside)
        assert_true(cpu_index(&cpus[0], cpus[1].items[0]) < 0);
    for (int k = 0; k < 2; k++) {
        lab_mem_free(cpus[k].items);
        lab_stream_close(streams[k]);
    }
    lab_device_close(device);
}

const struct lab_test_program lab_test_program = {.open = fixture_open, .close = fixture_close};
