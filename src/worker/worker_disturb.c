/*
 * worker_disturb.c: a neighbour on purpose, so that a study can be shown to find one. It lives in
 * the worker beside the rank that it disturbs, from before the tuning to behind the last
 * measurement, and uses one thing as hard as it can:
 *
 *     cpu     arithmetic on the very CPUs of the device
 *     membw   streams of memory: on a CPU device from the cores beside it (its own where there are
 *             none), on a GPU from the slices beside it (its own multiprocessors where it isn't
 *             sliced)
 *     pcie    copies in both directions, a thread for each
 *     sm      a product in fp32 on the very multiprocessors of the device
 *     power   attention over random numbers in bf16, which draws most, from the slices beside it
 *             like membw
 *
 * Simulated devices plant their own (device.h: disturb).
 */
#include "worker/worker_internal.h"

#include "base/clock.h"

#define THREADS_MAX  256
#define STREAM_BYTES ((size_t)64 << 20) /* of each half: beyond a core's share of any cache */
#define COPY_BYTES   ((size_t)8 << 20)  /* others' copies wait for one of these at a time */
#define FILL_BYTES   ((size_t)256 << 20)

/* What kernels of a kind are like on a GPU. */
struct load_kind {
    const char *name;
    bool beside; /* on the slices beside the device, where it is one */
    int at_once; /* launches between two waits, a millisecond or a few */
};

static const struct load_kind load_kinds[] = {
    {"membw", .beside = true, .at_once = 4},
    {"sm", .at_once = 16},
    {"power", .beside = true, .at_once = 8},
    {"pcie", .at_once = 16},
};

/* Of a product's matrices, on a slice and on a whole GPU: enough for all multiprocessors, and
 * little enough to stay in the GPU's cache, so that memory isn't what it takes. */
#define SIDE_OF_SLICE 1024
#define SIDE_OF_WHOLE 2048

#define OPERANDS 4

struct neighbour { /* a thread of it */
    struct disturber *disturber;
    pthread_t thread;
    struct lab_cpus cpus;      /* of a CPU device's */
    struct lab_device_ref ref; /* of a GPU's */
    bool to_host;              /* which way it copies */
};

struct disturber {
    const struct rank *rank;
    const char *kind;
    struct neighbour *neighbours;
    int count;
    atomic_bool stop;
    atomic_int ready; /* threads that are at work, or have failed */
    atomic_int failed;
    pthread_mutex_t mutex;
    struct lab_err err; /* of the first that failed; under the mutex */
};

static bool is_over(struct disturber *disturber) {
    return atomic_load(&disturber->stop) || atomic_load(&disturber->rank->worker->stopping);
}

/* --- CPUs --- */

static double burn(struct disturber *disturber) {
    double a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    while (!is_over(disturber))
        for (int i = 0; i < 4096; i++)
            for (int k = 0; k < 8; k++)
                a[k] = a[k] * 0.999999 + 1e-9;
    return a[0] + a[7];
}

/* Plain stores, each line read first: that takes more from others than what libc does past the
 * caches. */
static void stream_memory(struct disturber *disturber, char *memory) {
    uint64_t *words = (uint64_t *)(void *)memory;
    for (uint64_t round = 1; !is_over(disturber); round++)
        for (size_t i = 0; i < 2 * STREAM_BYTES / sizeof *words; i++)
            words[i] = round + i;
}

static int disturb_cpus(struct neighbour *self, struct lab_err *err) {
    struct disturber *disturber = self->disturber;
    const struct lab_machine *machine = disturber->rank->worker->machine;
    void *memory = NULL;
    if (lab_bind_cpus(machine, &self->cpus, false, err) < 0)
        return -1;
    if (lab_str_equal(disturber->kind, "cpu")) {
        atomic_fetch_add(&disturber->ready, 1);
        static _Atomic double kept; /* what is never looked at is never computed */
        atomic_store(&kept, burn(disturber));
        return 0;
    }
    if (lab_memory_map(machine, disturber->rank->session.ref.node, 2 * STREAM_BYTES,
                       LAB_MEMORY_TOUCH, &memory, err) < 0)
        return -1;
    atomic_fetch_add(&disturber->ready, 1);
    stream_memory(disturber, memory);
    lab_memory_unmap(memory, 2 * STREAM_BYTES);
    return 0;
}

/* --- GPUs --- */

struct load { /* what one thread keeps its GPU busy with */
    struct lab_device *device;
    const struct load_kind *kind;
    struct lab_stream *streams[2];
    struct lab_buffer buffers[OPERANDS], host;
    struct lab_launch launch;
    bool to_host; /* which way it copies */
    int turn;     /* the stream that comes next */
};

static const struct load_kind *find_kind(const char *name) {
    const struct load_kind *kind = load_kinds;
    while (!lab_str_equal(kind->name, name))
        kind++;
    return kind;
}

/* Random operands: multipliers that see the same number again and again draw little power. */
static int open_operands(struct load *load, struct lab_err *err) {
    struct lab_launch *launch = &load->launch;
    struct lab_tensor *tensors[OPERANDS] = {&launch->out, &launch->in[0], &launch->in[1],
                                            &launch->in[2]};
    for (int i = 0; i < (launch->op == LAB_OP_GEMM ? OPERANDS - 1 : OPERANDS); i++) {
        struct lab_tensor *tensor = tensors[i];
        uint64_t seed = (uint64_t)i;
        if (lab_buffer_open(load->device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensor),
                            &load->buffers[i], err) < 0)
            return -1;
        tensor->data = load->buffers[i].data;
        if (lab_data_upload(load->streams[0], tensor->data, tensor->dtype, lab_tensor_count(tensor),
                            lab_data_random, &seed, err) < 0)
            return -1;
    }
    return 0;
}

static int open_product(struct load *load, struct lab_err *err) {
    int64_t side = load->device->ref.slices > 1 ? SIDE_OF_SLICE : SIDE_OF_WHOLE;
    struct lab_tensor matrix = lab_tensor_matrix(NULL, LAB_FP32, side, side);
    load->launch = (struct lab_launch){.op = LAB_OP_GEMM, .in = {matrix, matrix}, .out = matrix};
    return open_operands(load, err);
}

static int open_load(struct load *load, int node, struct lab_err *err) {
    const char *kind = load->kind->name;
    for (int i = 0; i < 2; i++)
        if (lab_stream_open(load->device,
                            lab_str_equal(kind, "pcie") ? LAB_STREAM_COPY : LAB_STREAM_COMPUTE,
                            &load->streams[i], err) < 0)
            return -1;
    if (lab_str_equal(kind, "sm"))
        return open_product(load, err);
    if (lab_str_equal(kind, "power")) /* without attention, a product draws most */
        return worker_attention(load->device, &load->launch) ? open_operands(load, err)
                                                             : open_product(load, err);
    if (lab_str_equal(kind, "membw")) {
        if (lab_buffer_open(load->device, LAB_MEMORY_DEVICE, -1, FILL_BYTES, &load->buffers[0],
                            err) < 0)
            return -1;
        load->launch = (struct lab_launch){
            .op = LAB_OP_FILL,
            .out = lab_tensor_vector(load->buffers[0].data, LAB_FP32, FILL_BYTES / sizeof(float)),
            .value = 1.0f};
        return 0;
    }
    return lab_buffer_open(load->device, LAB_MEMORY_DEVICE, -1, COPY_BYTES, &load->buffers[0],
                           err) < 0 ||
                   lab_buffer_open(load->device, LAB_MEMORY_HOST_PINNED, node, COPY_BYTES,
                                   &load->host, err) < 0
               ? -1
               : 0;
}

static void close_load(struct load *load) {
    for (int i = 0; i < 2; i++)
        lab_stream_close(load->streams[i]);
    for (int i = 0; i < OPERANDS; i++)
        lab_buffer_close(&load->buffers[i]);
    lab_buffer_close(&load->host);
    lab_device_close(load->device);
}

static int push_one(struct load *load, struct lab_stream *stream, struct lab_err *err) {
    if (!lab_str_equal(load->kind->name, "pcie"))
        return lab_launch(stream, &load->launch, err);
    return load->to_host ? lab_copy(stream, load->host.data, load->buffers[0].data, COPY_BYTES,
                                    LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err)
                         : lab_copy(stream, load->buffers[0].data, load->host.data, COPY_BYTES,
                                    LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, err);
}

/* A little work at a time, so that it ends soon when it is told to; and the next is there before
 * the last is done, so that it never pauses. */
static int push(struct load *load, struct lab_err *err) {
    for (int i = 0; i < load->kind->at_once; i++)
        if (push_one(load, load->streams[load->turn], err) < 0)
            return -1;
    load->turn = !load->turn;
    return lab_stream_sync(load->streams[load->turn], err);
}

static int disturb_gpu(struct neighbour *self, struct lab_err *err) {
    struct disturber *disturber = self->disturber;
    const struct rank *rank = disturber->rank;
    struct load load = {.kind = find_kind(disturber->kind), .to_host = self->to_host};
    if (lab_device_open(rank->worker->machine, &self->ref, LAB_DEVICE_SETUP, &load.device, err) < 0)
        return -1;
    int result = open_load(&load, rank->session.ref.node, err);
    if (result == 0)
        result = push(&load, err); /* from here on it is at work */
    if (result == 0)
        atomic_fetch_add(&disturber->ready, 1);
    while (result == 0 && !is_over(disturber))
        result = push(&load, err);
    close_load(&load);
    return result;
}

/* --- life --- */

static void *neighbour_main(void *opaque) {
    struct neighbour *self = opaque;
    struct disturber *disturber = self->disturber;
    struct lab_err err = LAB_ERR_INIT;
    int result = self->cpus.count > 0 ? disturb_cpus(self, &err) : disturb_gpu(self, &err);
    if (result < 0) {
        pthread_mutex_lock(&disturber->mutex);
        if (atomic_fetch_add(&disturber->failed, 1) == 0)
            disturber->err = err;
        pthread_mutex_unlock(&disturber->mutex);
    }
    return NULL;
}

static void add_cpu(struct disturber *disturber, struct lab_arena *arena, int cpu) {
    int *item = lab_arena_alloc(arena, 1, sizeof *item);
    *item = cpu;
    if (disturber->count < THREADS_MAX)
        disturber->neighbours[disturber->count++] =
            (struct neighbour){.disturber = disturber, .cpus = {item, 1}};
}

/* The device's own CPUs, or those beside it: of its node, else of the machine. */
static void choose_cpus(struct disturber *disturber, struct lab_arena *arena) {
    const struct rank *rank = disturber->rank;
    const struct lab_machine *machine = rank->worker->machine;
    int node = lab_machine_node_index(machine, rank->session.ref.node);
    bool own = lab_str_equal(disturber->kind, "cpu");
    for (int anywhere = 0; anywhere < 2 && !own && disturber->count == 0; anywhere++)
        for (int i = 0; i < machine->core_count; i++) {
            const struct lab_core *core = &machine->cores[i];
            bool near = core->node == node || (core->node < 0 && machine->node_count == 1);
            if (core->cpus.count > 0 && (near || anywhere) &&
                !lab_cpus_contain(&rank->session.ref.cpus, core->cpus.items[0]))
                add_cpu(disturber, arena, core->cpus.items[0]);
        }
    bool none = disturber->count == 0;
    for (int i = 0; none && i < rank->session.ref.cpus.count; i++)
        add_cpu(disturber, arena, rank->session.ref.cpus.items[i]);
}

/* The device itself, or the slices beside it. */
static int choose_gpus(struct disturber *disturber, struct lab_arena *arena, struct lab_err *err) {
    const struct rank *rank = disturber->rank;
    const struct lab_device_ref *ref = &rank->session.ref;
    bool beside = ref->slices > 1 && find_kind(disturber->kind)->beside;
    struct lab_device_list all = {0};
    if (!beside) {
        for (int way = 0; way < (lab_str_equal(disturber->kind, "pcie") ? 2 : 1); way++)
            disturber->neighbours[disturber->count++] =
                (struct neighbour){.disturber = disturber, .ref = *ref, .to_host = way == 1};
        return 0;
    }
    const char *selector =
        lab_arena_printf(arena, "%s:%d/%d", ref->backend, ref->unit, ref->slices);
    if (lab_device_select(rank->worker->machine, selector, arena, &all, err) < 0)
        return -1;
    for (int i = 0; i < all.count && disturber->count < THREADS_MAX; i++)
        if (all.items[i].slice != ref->slice)
            disturber->neighbours[disturber->count++] =
                (struct neighbour){.disturber = disturber, .ref = all.items[i]};
    return 0;
}

int worker_disturb_start(struct rank *rank, struct lab_err *err) {
    const char *kind = rank->worker->job.disturb;
    if (kind)
        worker_warn(rank, lab_arena_printf(&rank->arena, "disturbed on purpose: %s", kind));
    if (!kind || rank->session.ref.simulated || !rank->session.device)
        return 0;
    struct disturber *disturber = lab_arena_alloc(&rank->arena, 1, sizeof *disturber);
    *disturber = (struct disturber){.rank = rank, .kind = kind};
    disturber->neighbours =
        lab_arena_alloc(&rank->arena, THREADS_MAX, sizeof *disturber->neighbours);
    if (rank->session.ref.cpus.count > 0)
        choose_cpus(disturber, &rank->arena);
    else if (choose_gpus(disturber, &rank->arena, err) < 0)
        return lab_err_context(err, "disturb=%s", kind);
    pthread_mutex_init(&disturber->mutex, NULL);
    rank->disturber = disturber;
    int started = 0;
    for (; started < disturber->count; started++)
        if (pthread_create(&disturber->neighbours[started].thread, NULL, neighbour_main,
                           &disturber->neighbours[started]) != 0)
            break;
    bool all = started == disturber->count;
    disturber->count = started;
    while (atomic_load(&disturber->ready) + atomic_load(&disturber->failed) < started)
        lab_clock_sleep(lab_clock_system(), LAB_NS_PER_MS);
    if (all && atomic_load(&disturber->failed) == 0)
        return 0;
    worker_disturb_stop(rank);
    if (!all)
        return lab_err_set(err, LAB_ERR_SYSTEM, "disturb=%s: can't start a thread", kind);
    if (err)
        *err = disturber->err;
    return lab_err_context(err, "disturb=%s", kind);
}

void worker_disturb_stop(struct rank *rank) {
    struct disturber *disturber = rank->disturber;
    if (!disturber)
        return;
    rank->disturber = NULL;
    atomic_store(&disturber->stop, true);
    for (int i = 0; i < disturber->count; i++)
        pthread_join(disturber->neighbours[i].thread, NULL);
    pthread_mutex_destroy(&disturber->mutex);
}
