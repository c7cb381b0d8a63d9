/*
 * test_cpu_stress.c: random programs on many streams against a model that does the same steps one
 * after the other. A program orders its steps by events alone, and only where two of them touch the
 * same memory, so whatever the streams, the pool, the events or the graphs get wrong appears as a
 * wrong number (or, under ThreadSanitizer, as a race). All arithmetic is exact: nothing is "close".
 *
 * The seeds are fixed; `test_cpu_stress SECONDS` goes on with new ones for so long.
 */
#include "cpu_fixture.h"

#include "base/random.h"

#include <dirent.h>

enum {
    STREAMS = 5,
    CELLS = 10,       /* pieces of memory that steps read and write */
    DEVICE_CELLS = 7, /* the others are the host's */
    ELEMENTS = 40000, /* of a cell: a copy takes a seat, a launch is cut among threads */
    FACTORS = 3,      /* constant matrices that are multiplied */
    SIDE = 128,       /* of each */
    FREE_EVENTS = 16, /* handed out to single steps */
    GRAPHS = 3,       /* each with events of its own: one for each step, and a gate */
    GRAPH_STEPS = 6,
    EVENTS = FREE_EVENTS + GRAPHS * (GRAPH_STEPS + 1),
};

enum step_kind { COPY, FILL, ADD, GEMM, STEP_KINDS };

struct step {
    enum step_kind kind;
    int out, a, b; /* cells; of GEMM, factors */
    int64_t count;
    float value;
};

struct cell {
    struct lab_buffer buffer;
    float *model;
    uint64_t writers, readers; /* events behind which the last write and the reads since are done */
};

struct graph {
    struct lab_graph *graph;
    struct step steps[GRAPH_STEPS];
};

struct world {
    struct lab_device *device;
    uint64_t seed, drawn;
    struct lab_stream *streams[STREAMS];
    struct lab_event *events[EVENTS];
    int64_t enqueued_ns[EVENTS]; /* when each was recorded last, by the host */
    struct cell cells[CELLS];
    struct graph graphs[GRAPHS];
    struct lab_buffer factors[FACTORS];
    float *products[FACTORS][FACTORS];
    /* refused calls and cells that differ; counted since not all is in main's thread */
    int failures;
};

static int draw(struct world *world, int bound) {
    return (int)lab_random_below(world->seed, world->drawn++, (uint64_t)bound);
}

static void must(struct world *world, int failed, const struct lab_err *err, const char *what) {
    if (failed && world->failures++ < 3)
        print_error("%s: %s\n", what, err->text);
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct lab_err must_err = LAB_ERR_INIT;                                                    \
        struct lab_err *err = &must_err;                                                           \
        int failed = (call);                                                                       \
        must(world, failed, err, #call);                                                           \
    } while (0)

/* --- steps: for real and in the model --- */

static struct step draw_step(struct world *world) {
    static const int64_t counts[] = {1000, 20000, ELEMENTS};
    struct step step = {.kind = (enum step_kind)draw(world, STEP_KINDS),
                        .count = counts[draw(world, 3)],
                        .value = (float)(1 + draw(world, 9))};
    step.out = draw(world, step.kind == COPY ? CELLS : DEVICE_CELLS);
    step.a = draw(world, step.kind == COPY ? CELLS : step.kind == GEMM ? FACTORS : DEVICE_CELLS);
    step.b = draw(world, step.kind == GEMM ? FACTORS : DEVICE_CELLS);
    if (step.kind == COPY && step.a == step.out)
        step.a = (step.out + 1) % CELLS;
    return step;
}

static uint64_t step_reads(const struct step *step) {
    uint64_t a = 1ULL << step->a, b = 1ULL << step->b;
    return step->kind == COPY ? a : step->kind == ADD ? a | b : 0;
}

static struct lab_tensor tensor(const struct world *world, int cell, int64_t count) {
    return lab_tensor_vector(world->cells[cell].buffer.data, LAB_FP32, count);
}

static void enqueue(struct world *world, struct lab_stream *stream, const struct step *step) {
    const struct cell *out = &world->cells[step->out], *a = &world->cells[step->a];
    struct lab_launch launch = {.op = step->kind == FILL  ? LAB_OP_FILL
                                      : step->kind == ADD ? LAB_OP_ADD
                                                          : LAB_OP_GEMM,
                                .value = step->value,
                                .out = tensor(world, step->out, step->count)};
    if (step->kind == COPY) {
        MUST(lab_copy(stream, out->buffer.data, a->buffer.data, (size_t)step->count * sizeof(float),
                      out->buffer.kind, a->buffer.kind, err));
        return;
    }
    if (step->kind == ADD) {
        launch.in[0] = tensor(world, step->a, step->count);
        launch.in[1] = tensor(world, step->b, step->count);
    }
    if (step->kind == GEMM) {
        launch.in[0] = lab_tensor_matrix(world->factors[step->a].data, LAB_FP32, SIDE, SIDE);
        launch.in[1] = lab_tensor_matrix(world->factors[step->b].data, LAB_FP32, SIDE, SIDE);
        launch.out = lab_tensor_matrix(out->buffer.data, LAB_FP32, SIDE, SIDE);
    }
    MUST(lab_launch(stream, &launch, err));
}

static void model(struct world *world, const struct step *step) {
    float *out = world->cells[step->out].model;
    const float *a = world->cells[step->a].model, *b = world->cells[step->b].model;
    switch (step->kind) {
    case COPY:
        memcpy(out, a, (size_t)step->count * sizeof *out);
        break;
    case FILL:
        for (int64_t i = 0; i < step->count; i++)
            out[i] = step->value;
        break;
    case ADD:
        for (int64_t i = 0; i < step->count; i++)
            out[i] = a[i] + b[i];
        break;
    case GEMM:
        memcpy(out, world->products[step->a][step->b], SIDE * SIDE * sizeof *out);
        break;
    case STEP_KINDS:
        break;
    }
}

/* --- order: by events, and only where memory is shared --- */

static void wait_for(struct world *world, struct lab_stream *stream, uint64_t events) {
    for (int e = 0; e < EVENTS; e++)
        if (events >> e & 1)
            MUST(lab_event_wait(world->events[e], stream, err));
}

static uint64_t events_before(const struct world *world, const struct step *step) {
    uint64_t events = world->cells[step->out].writers | world->cells[step->out].readers;
    for (int c = 0; c < CELLS; c++)
        if (step_reads(step) >> c & 1)
            events |= world->cells[c].writers;
    return events;
}

static void mark(struct world *world, const struct step *step, int event) {
    for (int c = 0; c < CELLS; c++)
        if (step_reads(step) >> c & 1)
            world->cells[c].readers |= 1ULL << event;
    world->cells[step->out].writers = 1ULL << event;
    world->cells[step->out].readers = 0;
}

static void note_time(struct world *world, int event) {
    world->enqueued_ns[event] = lab_clock_now(lab_clock_system());
}

/* Makes an event free for another meaning: the host waits for what it stands for. */
static void settle(struct world *world, int event) {
    uint64_t others = ~(1ULL << event), used = 0;
    for (int c = 0; c < CELLS; c++) {
        used |= (world->cells[c].writers | world->cells[c].readers) & ~others;
        world->cells[c].writers &= others;
        world->cells[c].readers &= others;
    }
    if (used)
        MUST(lab_event_sync(world->events[event], err));
}

/* --- what a program consists of --- */

static void do_step(struct world *world) {
    struct step step = draw_step(world);
    struct lab_stream *stream = world->streams[draw(world, STREAMS)];
    int event = draw(world, FREE_EVENTS);
    settle(world, event);
    wait_for(world, stream, events_before(world, &step));
    enqueue(world, stream, &step);
    note_time(world, event);
    MUST(lab_event_record(world->events[event], stream, err));
    mark(world, &step, event);
    model(world, &step);
}

static int graph_event(int graph, int step) { /* step GRAPH_STEPS: the gate */
    return FREE_EVENTS + graph * (GRAPH_STEPS + 1) + step;
}

static void capture(struct world *world, int index) {
    struct graph *graph = &world->graphs[index];
    struct lab_stream *stream = world->streams[draw(world, STREAMS)];
    lab_graph_close(graph->graph); /* while it may be running */
    graph->graph = NULL;
    for (int i = 0; i <= GRAPH_STEPS; i++)
        settle(world, graph_event(index, i));
    MUST(lab_graph_begin(stream, err));
    MUST(lab_event_wait(world->events[graph_event(index, GRAPH_STEPS)], stream, err));
    for (int i = 0; i < GRAPH_STEPS; i++) {
        graph->steps[i] = draw_step(world);
        enqueue(world, stream, &graph->steps[i]);
        MUST(lab_event_record(world->events[graph_event(index, i)], stream, err));
    }
    MUST(lab_graph_end(stream, &graph->graph, err));
}

/* Behind everything that touched its cells: on its own stream or, through its gate, on another. */
static void launch_graph(struct world *world) {
    int index = draw(world, GRAPHS);
    struct graph *graph = &world->graphs[index];
    if (!graph->graph || draw(world, 8) == 0)
        capture(world, index);
    struct lab_stream *stream = world->streams[draw(world, STREAMS)];
    struct lab_stream *before = draw(world, 2) ? stream : world->streams[draw(world, STREAMS)];
    uint64_t cells = 0;
    for (int i = 0; i < GRAPH_STEPS; i++)
        cells |= step_reads(&graph->steps[i]) | 1ULL << graph->steps[i].out;
    for (int c = 0; c < CELLS; c++)
        if (cells >> c & 1)
            wait_for(world, before, world->cells[c].writers | world->cells[c].readers);
    if (before != stream)
        MUST(lab_event_record(world->events[graph_event(index, GRAPH_STEPS)], before, err));
    for (int i = 0; i < GRAPH_STEPS; i++)
        note_time(world, graph_event(index, i));
    MUST(lab_graph_launch(graph->graph, stream, err));
    for (int i = 0; i < GRAPH_STEPS; i++) {
        mark(world, &graph->steps[i], graph_event(index, i));
        model(world, &graph->steps[i]);
    }
}

/* The last recording was passed, and that one's time is told, not an earlier one's. */
static void check_event(struct world *world, int event) {
    int64_t time_ns = 0;
    if (draw(world, 2)) {
        MUST(lab_event_sync(world->events[event], err));
        return;
    }
    MUST(lab_event_time(world->events[event], &time_ns, err));
    if (time_ns < world->enqueued_ns[event] && world->failures++ < 3)
        print_error("seed %llu: event %d was passed %lld ns before it was recorded\n",
                    (unsigned long long)world->seed, event,
                    (long long)(world->enqueued_ns[event] - time_ns));
}

static void check(struct world *world, int cell) {
    struct cell *c = &world->cells[cell];
    for (int e = 0; e < EVENTS; e++)
        if (c->writers >> e & 1)
            check_event(world, e);
    if (memcmp(c->buffer.data, c->model, ELEMENTS * sizeof *c->model) && world->failures++ < 3)
        print_error("seed %llu: cell %d differs after %llu draws\n",
                    (unsigned long long)world->seed, cell, (unsigned long long)world->drawn);
}

/* Closes something that is in use and opens another in its place. */
static void renew(struct world *world) {
    if (draw(world, 2)) {
        int s = draw(world, STREAMS);
        lab_stream_close(world->streams[s]);
        MUST(lab_stream_open(world->device, (enum lab_stream_kind)draw(world, 2),
                             &world->streams[s], err));
    } else {
        int e = draw(world, FREE_EVENTS);
        settle(world, e);
        lab_event_close(world->events[e]);
        MUST(lab_event_open(world->device, &world->events[e], err));
    }
}

static void go_on(struct world *world) {
    int what = draw(world, 100);
    if (what < 70)
        do_step(world);
    else if (what < 90)
        launch_graph(world);
    else if (what < 97)
        check(world, draw(world, CELLS));
    else if (what < 99)
        MUST(lab_stream_sync(world->streams[draw(world, STREAMS)], err));
    else
        renew(world);
}

/* --- life --- */

/* Factor f is the outer product of two short vectors, so that its products are quickly foreseen. */
static void open_factors(struct world *world) {
    int column[FACTORS][SIDE], row[FACTORS][SIDE];
    for (int f = 0; f < FACTORS; f++) {
        MUST(lab_buffer_open(world->device, LAB_MEMORY_DEVICE, -1, SIDE * SIDE * sizeof(float),
                             &world->factors[f], err));
        for (int i = 0; i < SIDE; i++) {
            column[f][i] = draw(world, 4);
            row[f][i] = draw(world, 4);
        }
        float *values = world->factors[f].data;
        for (int i = 0; i < SIDE * SIDE; i++)
            values[i] = (float)(column[f][i / SIDE] * row[f][i % SIDE]);
    }
    for (int f = 0; f < FACTORS; f++)
        for (int g = 0; g < FACTORS; g++) {
            int sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += row[f][k] * column[g][k];
            world->products[f][g] = lab_mem_alloc(SIDE * SIDE, sizeof(float));
            for (int i = 0; i < SIDE * SIDE; i++)
                world->products[f][g][i] = (float)(column[f][i / SIDE] * sum * row[g][i % SIDE]);
        }
}

static void world_open(struct world *world) {
    for (int s = 0; s < STREAMS; s++)
        MUST(
            lab_stream_open(world->device, (enum lab_stream_kind)(s % 2), &world->streams[s], err));
    for (int e = 0; e < EVENTS; e++)
        MUST(lab_event_open(world->device, &world->events[e], err));
    for (int c = 0; c < CELLS; c++) {
        enum lab_memory_kind kind = c < DEVICE_CELLS ? LAB_MEMORY_DEVICE
                                    : c % 2          ? LAB_MEMORY_HOST_PINNED
                                                     : LAB_MEMORY_HOST_PAGEABLE;
        MUST(lab_buffer_open(world->device, kind, -1, ELEMENTS * sizeof(float),
                             &world->cells[c].buffer, err));
        world->cells[c].model = lab_mem_alloc(ELEMENTS, sizeof(float));
    }
    open_factors(world);
}

static void world_close(struct world *world) {
    for (int g = 0; g < GRAPHS; g++)
        lab_graph_close(world->graphs[g].graph);
    for (int e = 0; e < EVENTS; e++)
        lab_event_close(world->events[e]);
    for (int s = 0; s < STREAMS; s++)
        lab_stream_close(world->streams[s]);
    for (int c = 0; c < CELLS; c++) {
        lab_buffer_close(&world->cells[c].buffer);
        lab_mem_free(world->cells[c].model);
    }
    for (int f = 0; f < FACTORS; f++) {
        lab_buffer_close(&world->factors[f]);
        for (int g = 0; g < FACTORS; g++)
            lab_mem_free(world->products[f][g]);
    }
}

/* How much went wrong in a program of `length` actions. */
static int run_program(struct lab_device *device, uint64_t seed, int length) {
    struct world *world = lab_mem_alloc(1, sizeof *world);
    world->device = device;
    world->seed = seed;
    world_open(world);
    for (int i = 0; i < length && !world->failures; i++)
        go_on(world);
    for (int c = 0; c < CELLS; c++)
        check(world, c);
    world_close(world);
    int failures = world->failures;
    lab_mem_free(world);
    return failures;
}

/* --- tests --- */

enum { LENGTH = 250 };

static uint64_t first_seed = 1;

LAB_TEST(programs_give_what_the_model_gives) {
    struct cpu_fixture *fixture = *state;
    for (uint64_t seed = first_seed; seed < first_seed + 3; seed++)
        assert_int_equal(run_program(fixture->device, seed, LENGTH), 0);
}

LAB_TEST(with_cores_kept_for_copies) {
    struct cpu_fixture *fixture = *state;
    for (int copy_cores = 0; copy_cores < 2; copy_cores++) {
        struct lab_device *device = fixture_device(fixture, fixture->device->ref.name, copy_cores);
        assert_int_equal(run_program(device, first_seed + 10, LENGTH), 0);
        lab_device_close(device);
    }
}

struct tenant {
    pthread_t thread;
    struct lab_device *device;
    uint64_t seed;
    int failures;
};

static void *tenant_main(void *argument) {
    struct tenant *tenant = argument;
    tenant->failures = run_program(tenant->device, tenant->seed, LENGTH);
    return NULL;
}

/* Devices that know nothing of each other, each with a thread that drives it. */
static int run_side_by_side(struct lab_device *const *devices, int count) {
    struct tenant tenants[4] = {0};
    int failures = 0;
    for (int i = 0; i < count; i++) {
        tenants[i] = (struct tenant){.device = devices[i], .seed = first_seed + 20 + (uint64_t)i};
        assert_int_equal(pthread_create(&tenants[i].thread, NULL, tenant_main, &tenants[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(tenants[i].thread, NULL);
        failures += tenants[i].failures;
    }
    return failures;
}

LAB_TEST(devices_opened_twice_share_their_cores) {
    struct cpu_fixture *fixture = *state;
    struct lab_device *devices[3] = {fixture->device};
    for (int i = 1; i < 3; i++)
        devices[i] = fixture_device(fixture, fixture->device->ref.name, -1);
    assert_int_equal(run_side_by_side(devices, 3), 0);
    lab_device_close(devices[1]);
    lab_device_close(devices[2]);
}

LAB_TEST(slices_work_side_by_side) {
    struct cpu_fixture *fixture = *state;
    struct lab_device *devices[2];
    int cores = fixture->device->ref.cpus.count;
    if (cores < 2)
        skip();
    for (int i = 0; i < 2; i++) {
        char selector[32];
        snprintf(selector, sizeof selector, "cpu:%d/2.%d", fixture->device->ref.unit, i);
        devices[i] = fixture_device(fixture, selector, -1);
    }
    assert_int_equal(run_side_by_side(devices, 2), 0);
    lab_device_close(devices[0]);
    lab_device_close(devices[1]);
}

static int entries(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static long mapped_mib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages * 4096 >> 20;
}

/* Of what is left behind a BLAS buffer would be the largest, 256 MiB each, and hardly seen in
 * RSS. */
LAB_TEST(opening_and_closing_leaves_nothing) {
    struct cpu_fixture *fixture = *state;
    int threads = 0, files = 0;
    long mib = 0;
    for (int cycle = 0; cycle < 12; cycle++) {
        struct lab_device *device = fixture_device(fixture, fixture->device->ref.name, -1);
        assert_int_equal(run_program(device, first_seed + 30, 40), 0);
        lab_device_close(device);
        if (cycle == 5) { /* by then the C library has all it keeps */
            threads = entries("/proc/self/task");
            files = entries("/proc/self/fd");
            mib = mapped_mib();
        }
    }
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_int_equal(entries("/proc/self/fd"), files);
    assert_in_range(mapped_mib(), 0, mib + 200);
}

static int begin(int argc, char **argv) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int64_t end_ns = lab_clock_now(clock) + seconds * LAB_NS_PER_S;
    int failed = 0;
    do {
        failed = on_all_and_on_one(argc, argv);
        first_seed += 100;
    } while (!failed && lab_clock_now(clock) < end_ns);
    return failed;
}

const struct lab_test_program lab_test_program = {.begin = begin};
