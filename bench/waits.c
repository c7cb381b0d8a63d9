/*
 * waits.c: which commands of one slice of a GPU the driver holds back while a kernel of another
 * slice runs, and whether kernels of slices that wait for each other always meet. Both are what
 * sums over slices rest on; the driver's manual promises neither.
 *
 *     bench_waits [DEVICE] [REPLAYS] [TRIES]     cuda:0/4, 500 and 10; two to 32 slices
 *
 * The driver has 32 queues for what is launched, as in workers (CUDA_DEVICE_MAX_CONNECTIONS), unless
 * the environment says otherwise: 8 is its own default.
 *
 * Commands: the first slice's kernel waits, for LIMIT_MS at most, until one of the second has set a
 * flag, which comes right behind the command. "held" = the kernel gave up first.
 *
 * Meetings: each slice, from a thread of its own, does REPLAYS steps whose last kernel waits until
 * it runs on all slices. Steps are launches or graphs, with few or many kernels, with and without
 * events in them. Before the first of them nothing was done, or the graph's upload was waited for
 * ("uploaded"), or a step was done whose kernels don't wait ("done once"). What is printed last is
 * who had not begun when another one gave up.
 */
#include "base/clock.h"
#include "base/str.h"
#include "device/cuda/cuda.h"
#include "machine/machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS   300
#define SLICES_MAX 32
#define KERNELS    8 /* of a step with many */

/* flag_wait: words[1] = 1 once words[0] is set, 2 at the limit. meet: words[0] counts who has come,
 * words[1] who gave up, behind whom nobody waits any more; words[2 + rank] is how often it came. */
static const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry flag_set(.param .u64 words) {\n"
                           ".reg .b64 %p;\n"
                           "ld.param.u64 %p, [words];\n"
                           "st.release.gpu.global.u32 [%p], 1;\n"
                           "ret;\n}\n"
                           ".visible .entry flag_wait(.param .u64 words, .param .u64 limit) {\n"
                           ".reg .pred %done, %late;\n.reg .b32 %seen;\n"
                           ".reg .b64 %p, %most, %begin, %now;\n"
                           "ld.param.u64 %p, [words];\nld.param.u64 %most, [limit];\n"
                           "mov.u64 %begin, %globaltimer;\n"
                           "again:\n"
                           "ld.acquire.gpu.global.u32 %seen, [%p];\n"
                           "setp.ne.u32 %done, %seen, 0;\n@%done bra set;\n"
                           "mov.u64 %now, %globaltimer;\nsub.u64 %now, %now, %begin;\n"
                           "setp.gt.u64 %late, %now, %most;\n@!%late bra again;\n"
                           "st.global.u32 [%p+4], 2;\nret;\n"
                           "set:\nst.global.u32 [%p+4], 1;\nret;\n}\n"
                           ".visible .entry meet(.param .u64 words, .param .u64 limit,\n"
                           "                     .param .u32 ranks, .param .u32 rank) {\n"
                           ".reg .pred %done, %late;\n.reg .b32 %n, %all, %r, %seen, %old;\n"
                           ".reg .b64 %p, %own, %most, %begin, %now;\n"
                           "ld.param.u64 %p, [words];\nld.param.u64 %most, [limit];\n"
                           "ld.param.u32 %n, [ranks];\nld.param.u32 %r, [rank];\n"
                           "ld.acquire.gpu.global.u32 %seen, [%p+4];\n"
                           "setp.ne.u32 %done, %seen, 0;\n@%done ret;\n"
                           "mul.wide.u32 %own, %r, 4;\nadd.u64 %own, %own, %p;\n"
                           "atom.global.add.u32 %old, [%own+8], 1;\n"
                           "atom.acq_rel.gpu.global.add.u32 %old, [%p], 1;\n"
                           "div.u32 %all, %old, %n;\nadd.u32 %all, %all, 1;\n"
                           "mul.lo.u32 %all, %all, %n;\n"
                           "mov.u64 %begin, %globaltimer;\n"
                           "again:\n"
                           "ld.acquire.gpu.global.u32 %seen, [%p];\n"
                           "setp.ge.u32 %done, %seen, %all;\n@%done ret;\n"
                           "mov.u64 %now, %globaltimer;\nsub.u64 %now, %now, %begin;\n"
                           "setp.gt.u64 %late, %now, %most;\n@!%late bra again;\n"
                           "atom.global.add.u32 %old, [%p+4], 1;\nret;\n}\n"
                           ".visible .entry nothing() {\nret;\n}\n";

enum { FLAG_SET, FLAG_WAIT, MEET, NOTHING, FUNCTIONS };

static const char *const names[FUNCTIONS] = {"flag_set", "flag_wait", "meet", "nothing"};

enum ready { AT_ONCE, UPLOADED, DONE_ONCE };

struct rank { /* a slice and what runs on it */
    struct cuda_device *device;
    struct lab_stream *stream;
    struct lab_event *events[2];
    lab_cu_function functions[FUNCTIONS];
    struct lab_buffer words; /* the first one's are everybody's */
    uint32_t number, ranks, replays;
    const struct way *way;
    struct lab_err err;
    int failed;
};

static struct rank all[SLICES_MAX];
static uint64_t limit_ns = LIMIT_MS * 1000000ull;

static int load(struct rank *rank, lab_cu_function functions[FUNCTIONS], struct lab_err *err) {
    const struct lab_cuda *cuda = rank->device->cuda;
    lab_cu_library library;
    if (cuda_enter(rank->device, err) ||
        cuda_check(cuda->cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0),
                   "cuLibraryLoadData", err))
        return -1;
    for (int i = 0; i < FUNCTIONS; i++) {
        lab_cu_kernel kernel;
        if (cuda_check(cuda->cuLibraryGetKernel(&kernel, library, names[i]), "cuLibraryGetKernel",
                       err) ||
            cuda_check(cuda->cuKernelGetFunction(&functions[i], kernel), "cuKernelGetFunction",
                       err))
            return -1;
    }
    return 0;
}

static int open_rank(struct rank *rank, const struct lab_machine *machine,
                     const struct lab_device_ref *ref, struct lab_err *err) {
    struct lab_device *device;
    if (lab_device_open(machine, ref, LAB_DEVICE_SETUP, &device, err))
        return -1;
    rank->device = (struct cuda_device *)device;
    return lab_stream_open(device, LAB_STREAM_COMPUTE, &rank->stream, err) ||
                   lab_event_open(device, &rank->events[0], err) ||
                   lab_event_open(device, &rank->events[1], err) ||
                   lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, 4096, &rank->words, err) ||
                   load(rank, rank->functions, err)
               ? -1
               : 0;
}

static int launch_function(struct rank *rank, lab_cu_function function, struct lab_err *err) {
    struct lab_cu_launch_config config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    void *words = all[0].words.data;
    void *parameters[] = {&words, &limit_ns, &rank->ranks, &rank->number};
    config.stream = ((struct cuda_stream *)rank->stream)->handle;
    return cuda_enter(rank->device, err) || cuda_check(rank->device->cuda->cuLaunchKernelEx(
                                                           &config, function, parameters, NULL),
                                                       "cuLaunchKernelEx", err)
               ? -1
               : 0;
}

static int launch(struct rank *rank, int which, struct lab_err *err) {
    return launch_function(rank, rank->functions[which], err);
}

/* given_up: no kernel waits for others. */
static int set_words(bool given_up, struct lab_err *err) {
    uint32_t words[1024] = {0, given_up};
    return lab_copy(all[0].stream, all[0].words.data, words, sizeof words, LAB_MEMORY_DEVICE,
                    LAB_MEMORY_HOST_PAGEABLE, err) ||
                   lab_stream_sync(all[0].stream, err)
               ? -1
               : 0;
}

static int read_words(uint32_t words[2 + SLICES_MAX], struct lab_err *err) {
    return lab_copy(all[0].stream, words, all[0].words.data, (2 + SLICES_MAX) * sizeof *words,
                    LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, err) ||
                   lab_stream_sync(all[0].stream, err)
               ? -1
               : 0;
}

/* --- commands --- */

/* of one kernel: replayed before, only uploaded, and this with an event */
static struct lab_graph *replayed, *fresh, *fresh_event;
static lab_cu_function loaded[FUNCTIONS]; /* on the second slice, never launched */

static int capture_one(struct rank *rank, bool event, struct lab_graph **ret_graph,
                       struct lab_err *err) {
    return lab_graph_begin(rank->stream, err) || launch(rank, NOTHING, err) ||
                   (event && lab_event_record(rank->events[0], rank->stream, err)) ||
                   lab_graph_end(rank->stream, ret_graph, err)
               ? -1
               : 0;
}

static int do_nothing(struct rank *rank, struct lab_err *err) {
    (void)rank, (void)err;
    return 0;
}

static int do_launch(struct rank *rank, struct lab_err *err) {
    return launch(rank, NOTHING, err);
}

static int do_event(struct rank *rank, struct lab_err *err) {
    return lab_event_record(rank->events[0], rank->stream, err);
}

static int do_fill(struct rank *rank, struct lab_err *err) {
    const struct lab_cuda *cuda = rank->device->cuda;
    lab_cu_pointer to = (lab_cu_pointer)(uintptr_t)rank->words.data;
    return cuda_enter(rank->device, err) ||
                   cuda_check(cuda->cuMemsetD8Async(to, 0, 4096,
                                                    ((struct cuda_stream *)rank->stream)->handle),
                              "cuMemsetD8Async", err)
               ? -1
               : 0;
}

static int do_copy(struct rank *rank, struct lab_err *err) {
    return lab_copy(rank->stream, rank->words.data, (char *)rank->words.data + 2048, 1024,
                    LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE, err);
}

static int do_replay(struct rank *rank, struct lab_err *err) {
    return lab_graph_launch(replayed, rank->stream, err);
}

static int do_first_replay(struct rank *rank, struct lab_err *err) {
    return lab_graph_launch(fresh, rank->stream, err);
}

static int do_first_replay_event(struct rank *rank, struct lab_err *err) {
    return lab_graph_launch(fresh_event, rank->stream, err);
}

static int do_graph(struct rank *rank, struct lab_err *err) {
    struct lab_graph *graph;
    return capture_one(rank, false, &graph, err);
}

static int do_graph_event(struct rank *rank, struct lab_err *err) {
    struct lab_graph *graph;
    return capture_one(rank, true, &graph, err);
}

static int do_close_graph(struct rank *rank, struct lab_err *err) {
    (void)rank, (void)err;
    lab_graph_close(replayed);
    return 0;
}

static int do_first_launch(struct rank *rank, struct lab_err *err) {
    return launch_function(rank, loaded[NOTHING], err);
}

static int do_load(struct rank *rank, struct lab_err *err) {
    lab_cu_function functions[FUNCTIONS];
    return load(rank, functions, err);
}

static int do_allocate(struct rank *rank, struct lab_err *err) {
    struct lab_buffer buffer;
    return lab_buffer_open(&rank->device->base, LAB_MEMORY_DEVICE, -1, 64 << 20, &buffer, err);
}

static int do_free(struct rank *rank, struct lab_err *err) {
    struct lab_buffer buffer;
    if (lab_buffer_open(&rank->device->base, LAB_MEMORY_DEVICE, -1, 64 << 20, &buffer, err))
        return -1;
    lab_buffer_close(&buffer);
    return 0;
}

static int do_stream(struct rank *rank, struct lab_err *err) {
    struct lab_stream *stream;
    return lab_stream_open(&rank->device->base, LAB_STREAM_COPY, &stream, err);
}

static const struct command {
    const char *name;
    int (*run)(struct rank *rank, struct lab_err *err);
} commands[] = {
    {"nothing", do_nothing},
    {"a launch", do_launch},
    {"an event", do_event},
    {"a fill", do_fill},
    {"a copy", do_copy},
    {"a replay", do_replay},
    {"a graph's first replay", do_first_replay},
    {"the same with an event", do_first_replay_event},
    {"making a graph", do_graph},
    {"making one with an event", do_graph_event},
    {"closing a graph", do_close_graph},
    {"loading a module", do_load},
    {"a module's first launch", do_first_launch},
    {"taking memory", do_allocate},
    {"taking and giving it back", do_free},
    {"opening a stream", do_stream},
};

static int try_command(const struct command *command, struct lab_err *err) {
    uint32_t words[2 + SLICES_MAX];
    if (set_words(false, err) || launch(&all[0], FLAG_WAIT, err))
        return -1;
    usleep(5000); /* it runs */
    int64_t start_ns = lab_clock_now(lab_clock_system());
    if (command->run(&all[1], err))
        return -1;
    int64_t end_ns = lab_clock_now(lab_clock_system());
    if (launch(&all[1], FLAG_SET, err) || lab_stream_sync(all[1].stream, err) ||
        lab_stream_sync(all[0].stream, err) || read_words(words, err))
        return -1;
    static const char *const results[] = {"no kernel ran", "goes on", "held"};
    printf("%-28s %-14s %8.2f ms in the call\n", command->name, results[words[1] % 3],
           1e-6 * (double)(end_ns - start_ns));
    return 0;
}

static int try_commands(struct lab_err *err) {
    if (capture_one(&all[1], false, &replayed, err) || capture_one(&all[1], false, &fresh, err) ||
        capture_one(&all[1], true, &fresh_event, err) || load(&all[1], loaded, err) ||
        lab_graph_launch(replayed, all[1].stream, err) || lab_stream_sync(all[1].stream, err))
        return -1;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (try_command(&commands[i], err))
            return lab_err_context(err, "%s", commands[i].name);
    return 0;
}

/* --- meetings --- */

static const struct way {
    const char *name;
    enum ready ready;
    bool graph, events;
    int kernels;
} ways[] = {
    {"launches, 1 kernel", AT_ONCE, false, false, 1},
    {"launches, 1 kernel, done once", DONE_ONCE, false, false, 1},
    {"launches, 8 kernels", AT_ONCE, false, false, KERNELS},
    {"graphs, 1 kernel", AT_ONCE, true, false, 1},
    {"graphs, 8 kernels", AT_ONCE, true, false, KERNELS},
    {"graphs, 8 kernels, done once", DONE_ONCE, true, false, KERNELS},
    {"graphs with events", AT_ONCE, true, true, KERNELS},
    {"graphs with events, uploaded", UPLOADED, true, true, KERNELS},
    {"graphs with events, done once", DONE_ONCE, true, true, KERNELS},
};

static pthread_barrier_t begin;

static int enqueue_step(struct rank *rank, struct lab_graph *graph, struct lab_err *err) {
    if (graph)
        return lab_graph_launch(graph, rank->stream, err);
    if (rank->way->events && lab_event_record(rank->events[0], rank->stream, err))
        return -1;
    for (int i = 1; i < rank->way->kernels; i++)
        if (launch(rank, NOTHING, err))
            return -1;
    return launch(rank, MEET, err) ||
                   (rank->way->events && lab_event_record(rank->events[1], rank->stream, err))
               ? -1
               : 0;
}

static int make_ready(struct rank *rank, struct lab_graph **graph, struct lab_err *err) {
    if (rank->way->graph && (lab_graph_begin(rank->stream, err) || enqueue_step(rank, NULL, err) ||
                             lab_graph_end(rank->stream, graph, err)))
        return -1;
    if (rank->way->ready == DONE_ONCE && enqueue_step(rank, *graph, err))
        return -1;
    return rank->way->ready == AT_ONCE ? 0 : lab_stream_sync(rank->stream, err);
}

static void *run_steps(void *argument) {
    struct rank *rank = argument;
    struct lab_graph *graph = NULL;
    rank->err = LAB_ERR_INIT;
    rank->failed = make_ready(rank, &graph, &rank->err);
    pthread_barrier_wait(&begin); /* nobody makes a graph while a kernel waits */
    if (rank->number == 0 && !rank->failed)
        rank->failed = set_words(false, &rank->err);
    pthread_barrier_wait(&begin);
    for (uint32_t i = 0; i < rank->replays && !rank->failed; i++)
        rank->failed = enqueue_step(rank, graph, &rank->err);
    rank->failed = rank->failed || lab_stream_sync(rank->stream, &rank->err);
    pthread_barrier_wait(&begin); /* nor closes one */
    lab_graph_close(graph);
    return NULL;
}

/* Adds to `ret_missing` how often each slice had not begun. */
static int try_once(const struct way *way, uint32_t ranks, uint32_t replays, bool *ret_met,
                    uint32_t ret_missing[SLICES_MAX], struct lab_err *err) {
    pthread_t threads[SLICES_MAX];
    uint32_t words[2 + SLICES_MAX], least = 0;
    if (set_words(true, err))
        return -1;
    pthread_barrier_init(&begin, NULL, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        all[i].way = way;
        all[i].replays = replays;
        if (pthread_create(&threads[i], NULL, run_steps, &all[i]))
            abort();
    }
    for (uint32_t i = 0; i < ranks; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
    for (uint32_t i = 0; i < ranks; i++)
        if (all[i].failed) {
            *err = all[i].err;
            return -1;
        }
    if (read_words(words, err))
        return -1;
    for (uint32_t i = 0; i < ranks; i++)
        least = words[2 + i] < words[2 + least] ? i : least;
    *ret_met = !words[1];
    ret_missing[least] += words[1] > 0;
    return 0;
}

static int try_way(const struct way *way, uint32_t ranks, uint32_t replays, uint32_t tries,
                   struct lab_err *err) {
    uint32_t missing[SLICES_MAX] = {0}, met = 0;
    for (uint32_t i = 0; i < tries; i++) {
        bool all_met;
        if (try_once(way, ranks, replays, &all_met, missing, err))
            return -1;
        met += all_met;
    }
    printf("%-30s %u of %u tries met", way->name, met, tries);
    for (uint32_t i = 0; i < ranks; i++)
        if (missing[i])
            printf("; %u times slice %u had not begun", missing[i], i);
    printf("\n");
    return 0;
}

int main(int argc, char **argv) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine;
    struct lab_device_list list = {0};
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    LAB_AUTO(arena, arena);
    const char *selector = argc > 1 ? argv[1] : "cuda:0/4";
    uint32_t replays = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 500;
    uint32_t tries = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 10;
    int failed = lab_machine_open(NULL, &machine, &err) ||
                 lab_device_select(machine, selector, &arena, &list, &err);
    if (!failed && (list.count < 2 || list.count > SLICES_MAX || list.items[0].slices < 2))
        failed = lab_err_set(&err, LAB_ERR_USER, "%s: two to %d slices are needed", selector,
                             SLICES_MAX);
    for (int i = 0; i < list.count && !failed; i++) {
        all[i].number = (uint32_t)i;
        all[i].ranks = (uint32_t)list.count;
        failed = open_rank(&all[i], machine, &list.items[i], &err);
    }
    failed = failed || try_commands(&err);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !failed; i++)
        failed = try_way(&ways[i], (uint32_t)list.count, replays, tries, &err);
    if (failed)
        fprintf(stderr, "bench_waits: %s\n", err.text);
    return failed ? 1 : 0;
}
