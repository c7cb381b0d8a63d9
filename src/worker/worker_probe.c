/*
 * worker_probe.c: a device's available resources, measured on the device itself. Short probes
 * take turns while everything that ran beside the timed pass still does. Each needs one resource
 * and little of any other, so that whoever takes that resource slows this probe more than the rest.
 * Ranks of a gang start each probe together, and keep it up until the others have timed theirs: the
 * rate of a link that they share is that of all at once, whatever else slows one of them down.
 *
 *     compute     time on the cores or multiprocessors. On a CPU multiply-adds out of registers.
 *                 (A product in the cores' caches won't do: its threads meet through the shared
 *                 one, and it lost more to streams on eight other cores than a sum of arrays.) On a
 *                 GPU attention in which all heads share one key and value head: matrix products at
 *                 full rate out of 1 MB that every multiprocessor reads all the time, so that even
 *                 a neighbour that streams past the cache doesn't drive it out. (A large product
 *                 won't do: on an H200 it lost as much to such a neighbour as a sum of arrays did.)
 *     memory      a sum of arrays that no cache holds
 *     h2d, d2h    GPUs: copies from and to the host
 *
 * A GPU's clock and power are read behind each probe. (Copies within a GPU are no probe of their
 * own: the driver does them by a kernel on the same multiprocessors.)
 */
#include "worker/worker_internal.h"

#include "base/clock.h"
#include "device/tunable.h"
#include "stats/stats.h"

#include <math.h>

#define ROUNDS_MOST  64
#define ROUNDS_LEAST 4
/* No further round begins behind that: a slow device makes do with fewer. Twice as long as what was
 * timed, but no longer than the second and no shorter than the first. */
#define PROBING_LEAST_S 0.5
#define PROBING_MOST_S  2
/* of a CPU's rounds: where memory is contended now and then, these tell */
#define LOW      0.2
#define OPERANDS 4
/* How long a rank of a gang keeps a probe up, of the time that it took itself. */
#define OVERLAP    2
#define BYTES_MOST ((int64_t)512 << 20)
#define COPY_BYTES ((int64_t)32 << 20)

enum { PROBE_COMPUTE, PROBE_MEMORY, PROBE_H2D, PROBE_D2H, PROBES };

/* How large probes are on a kind of device. */
struct size {
    int64_t bytes;   /* of the arrays, at least */
    int rounds;      /* cores that share their path to memory only now and then need more of them */
    int64_t turn_ns; /* of each probe in each round: several of a scheduler's turns on a CPU */
};

static const struct size of_cpus = {(int64_t)64 << 20, ROUNDS_MOST, 15 * LAB_NS_PER_MS};
static const struct size of_gpus = {(int64_t)256 << 20, 16, 8 * LAB_NS_PER_MS};

/* Between two waits of the host: waking up must not be what is measured. */
#define AT_ONCE_NS   (4 * LAB_NS_PER_MS)
#define AT_ONCE_MOST 64

struct prober {
    struct rank *rank;
    struct lab_device *device;
    const struct size *size;
    double probing_s;
    struct lab_stream *stream;
    struct lab_buffer operands[OPERANDS], memory, host;
    struct lab_launch compute, sum;
    bool is_gpu;
    int at_once[PROBES]; /* units between two waits */
    double rates[PROBES][ROUNDS_MOST];
    int rounds;                /* that were done */
    double clock_mhz, power_w; /* sums over what was read */
    int clock_count, power_count;
};

/* --- life --- */

static int64_t largest_cache(const struct lab_machine *machine) {
    int64_t largest = 0;
    for (int i = 0; i < machine->cache_count; i++)
        if (machine->caches[i].size_bytes > largest)
            largest = machine->caches[i].size_bytes;
    return largest;
}

bool worker_attention(const struct lab_device *device, struct lab_launch *ret_launch) {
    enum { TOKENS = 2048, HEADS = 16, WIDTH = 128 };
    int64_t many[] = {1, TOKENS, HEADS, WIDTH}, one[] = {1, TOKENS, 1, WIDTH};
    if (!device->ops->supports || !device->ops->supports(device, LAB_OP_FLASH_ATTENTION, LAB_BF16))
        return false;
    struct lab_tensor queries = lab_tensor(NULL, LAB_BF16, 4, many),
                      keys = lab_tensor(NULL, LAB_BF16, 4, one);
    *ret_launch = (struct lab_launch){.op = LAB_OP_FLASH_ATTENTION,
                                      .in = {queries, keys, keys},
                                      .out = queries,
                                      .scale = 1 / sqrtf(WIDTH)};
    return true;
}

static void choose_compute(struct prober *prober, enum lab_dtype dtype) {
    enum { SIDE = 1024 };
    if (worker_attention(prober->device, &prober->compute))
        return;
    struct lab_tensor matrix = lab_tensor_matrix(NULL, dtype, SIDE, SIDE);
    prober->compute = (struct lab_launch){.op = LAB_OP_GEMM, .in = {matrix, matrix}, .out = matrix};
}

static int open_compute(struct prober *prober, enum lab_dtype dtype, struct lab_err *err) {
    struct lab_launch *compute = &prober->compute;
    struct lab_tensor *tensors[OPERANDS] = {&compute->out, &compute->in[0], &compute->in[1],
                                            &compute->in[2]};
    choose_compute(prober, dtype);
    for (int i = 0; i < (compute->op == LAB_OP_GEMM ? OPERANDS - 1 : OPERANDS); i++) {
        if (lab_buffer_open(prober->device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensors[i]),
                            &prober->operands[i], err) < 0)
            return -1;
        tensors[i]->data = prober->operands[i].data;
        struct lab_launch fill = {.op = LAB_OP_FILL, .out = *tensors[i], .value = 0.5f};
        if (lab_launch(prober->stream, &fill, err) < 0)
            return -1;
    }
    return lab_launch_complete(compute, err);
}

static int open_arrays(struct prober *prober, struct lab_err *err) {
    int64_t bytes = prober->size->bytes;
    if (!prober->is_gpu && bytes < 4 * largest_cache(prober->device->machine))
        bytes = 4 * largest_cache(prober->device->machine);
    bytes = bytes < BYTES_MOST ? bytes : BYTES_MOST;
    if (lab_buffer_open(prober->device, LAB_MEMORY_DEVICE, -1, (size_t)bytes, &prober->memory,
                        err) < 0)
        return -1;
    int64_t half = bytes / 2 / (int64_t)sizeof(float);
    struct lab_tensor sum = lab_tensor_vector(prober->memory.data, LAB_FP32, half);
    prober->sum = (struct lab_launch){
        .op = LAB_OP_ADD,
        .in = {sum, lab_tensor_vector((float *)prober->memory.data + half, LAB_FP32, half)},
        .out = sum};
    struct lab_launch clear = {.op = LAB_OP_FILL,
                               .out = lab_tensor_vector(prober->memory.data, LAB_FP32, 2 * half),
                               .value = 0.0f};
    return lab_launch(prober->stream, &clear, err);
}

static int prober_open(struct prober *prober, enum lab_dtype dtype, int node, struct lab_err *err) {
    prober->is_gpu = prober->device->ref.cpus.count == 0;
    prober->size = prober->is_gpu ? &of_gpus : &of_cpus;
    if (lab_stream_open(prober->device, LAB_STREAM_COMPUTE, &prober->stream, err) < 0 ||
        open_arrays(prober, err) < 0)
        return -1;
    if (prober->is_gpu && (open_compute(prober, dtype, err) < 0 ||
                           lab_buffer_open(prober->device, LAB_MEMORY_HOST_PINNED, node, COPY_BYTES,
                                           &prober->host, err) < 0))
        return -1;
    return lab_stream_sync(prober->stream, err);
}

static void prober_close(struct prober *prober) {
    lab_stream_close(prober->stream);
    for (int i = 0; i < OPERANDS; i++)
        lab_buffer_close(&prober->operands[i]);
    lab_buffer_close(&prober->memory);
    lab_buffer_close(&prober->host);
}

/* --- probing --- */

/* A CPU's copies are its memory once more. */
static bool has(const struct prober *prober, int probe) {
    return prober->is_gpu || probe <= PROBE_MEMORY;
}

static bool is_of_cores(const struct prober *prober, int probe) {
    return !prober->is_gpu && probe == PROBE_COMPUTE;
}

/* Puts one unit of a probe on the stream, and says how much it is. */
static int enqueue(struct prober *prober, int probe, double *ret_amount, struct lab_err *err) {
    switch (probe) {
    case PROBE_COMPUTE:
        *ret_amount = prober->compute.cost.flops;
        return lab_launch(prober->stream, &prober->compute, err);
    case PROBE_MEMORY:
        *ret_amount = 1.5 * (double)prober->memory.size_bytes; /* two halves read, one written */
        return lab_launch(prober->stream, &prober->sum, err);
    case PROBE_H2D:
        *ret_amount = COPY_BYTES;
        return lab_copy(prober->stream, prober->memory.data, prober->host.data, COPY_BYTES,
                        LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, err);
    default:
        *ret_amount = COPY_BYTES;
        return lab_copy(prober->stream, prober->host.data, prober->memory.data, COPY_BYTES,
                        LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err);
    }
}

static int run_units(struct prober *prober, int probe, int count, double *total,
                     struct lab_err *err) {
    for (int i = 0; i < count; i++) {
        double amount = 0;
        if (enqueue(prober, probe, &amount, err) < 0)
            return -1;
        *total += amount;
    }
    return lab_stream_sync(prober->stream, err);
}

/* The first unit may have to be compiled; the second tells how many a wait is worth. */
static int warm_up_probe(struct prober *prober, int probe, struct lab_err *err) {
    const struct lab_clock *clock = prober->device->clock;
    double unused = 0;
    if (run_units(prober, probe, 1, &unused, err) < 0)
        return -1;
    int64_t start_ns = lab_clock_now(clock);
    if (run_units(prober, probe, 1, &unused, err) < 0)
        return -1;
    int64_t unit_ns = lab_clock_now(clock) - start_ns;
    int64_t fit = unit_ns > 0 ? AT_ONCE_NS / unit_ns : AT_ONCE_MOST;
    prober->at_once[probe] = fit < 1 ? 1 : fit > AT_ONCE_MOST ? AT_ONCE_MOST : (int)fit;
    return 0;
}

static int warm_up(struct prober *prober, struct lab_err *err) {
    for (int probe = 0; probe < PROBES; probe++)
        if (has(prober, probe) && !is_of_cores(prober, probe) &&
            warm_up_probe(prober, probe, err) < 0)
            return -1;
    return 0;
}

/* Often, since a driver's reading is as old as a tenth of a second. */
static void read_clock(struct prober *prober) {
    double clock_mhz = lab_device_clock_mhz(prober->device);
    double power_w = lab_device_power_w(prober->device);
    prober->clock_mhz += clock_mhz > 0 ? clock_mhz : 0;
    prober->clock_count += clock_mhz > 0;
    prober->power_w += power_w > 0 ? power_w : 0;
    prober->power_count += power_w > 0;
}

static bool is_alone(const struct prober *prober) {
    return prober->rank->worker->job.gang_size == 1;
}

/* Until so much time has passed; leaves how long it took. */
static int run_for(struct prober *prober, int probe, int64_t least_ns, int64_t *ret_ns,
                   double *total, struct lab_err *err) {
    const struct lab_clock *clock = prober->device->clock;
    int64_t start_ns = lab_clock_now(clock);
    if (is_of_cores(prober, probe)) {
        *ret_ns = least_ns;
        *total = 1e-9 * (double)least_ns * lab_stream_core_rate(prober->stream, least_ns);
        return 0;
    }
    do {
        if (run_units(prober, probe, prober->at_once[probe], total, err) < 0)
            return -1;
        *ret_ns = lab_clock_now(clock) - start_ns;
    } while (*ret_ns < least_ns);
    return 0;
}

static int run_probe(struct prober *prober, int probe, struct lab_err *err) {
    int64_t took_ns, unused_ns;
    double total = 0, unused = 0;
    if (!has(prober, probe))
        return 0;
    if (run_for(prober, probe, prober->size->turn_ns, &took_ns, &total, err) < 0)
        return -1;
    prober->rates[probe][prober->rounds] = total / (1e-9 * (double)took_ns);
    read_clock(prober);
    return is_alone(prober)
               ? 0
               : run_for(prober, probe, (OVERLAP - 1) * took_ns, &unused_ns, &unused, err);
}

static bool wants_round(const struct prober *prober, int64_t end_ns) {
    return prober->rounds < prober->size->rounds &&
           (prober->rounds < ROUNDS_LEAST || lab_clock_now(prober->device->clock) < end_ns);
}

/* All ranks end at the same meeting: when one has its rounds, or has failed. */
static int run_probes(struct prober *prober, struct lab_err *err) {
    const struct lab_clock *clock = prober->device->clock;
    double probing_s = prober->probing_s * (is_alone(prober) ? 1 : OVERLAP);
    int64_t end_ns = INT64_MAX;
    for (; worker_meet(prober->rank, true, wants_round(prober, end_ns)); prober->rounds++) {
        if (prober->rounds == 0)
            end_ns = lab_clock_now(clock) + (int64_t)(probing_s * LAB_NS_PER_S);
        for (int probe = 0; probe < PROBES; probe++) {
            if (probe > 0 && !worker_meet(prober->rank, true, true))
                return 0;
            if (run_probe(prober, probe, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* --- what it comes to --- */

/* The mean of the middle half: bursts don't move it, and a neighbour that comes and goes counts by
 * its share. */
static double middle(const double *values, int count) {
    double sorted[ROUNDS_MOST];
    int outside = count / 4;
    lab_stats_sort(values, (size_t)count, sorted);
    return lab_stats_mean(sorted + outside, (size_t)(count - 2 * outside));
}

/*
 * Cores of a virtual machine share a path to memory for a second, and then they don't, as its host
 * moves them about: what is left in the worst fifth of the rounds is what a neighbour leaves when
 * it is felt. A GPU's parts stay where they are.
 */
static double memory_rate(const struct prober *prober) {
    const double *rates = prober->rates[PROBE_MEMORY];
    double sorted[ROUNDS_MOST];
    if (prober->is_gpu)
        return middle(rates, prober->rounds);
    lab_stats_sort(rates, (size_t)prober->rounds, sorted);
    return lab_stats_quantile_sorted(sorted, (size_t)prober->rounds, LOW);
}

static double power_limit_w(struct rank *rank) {
    struct lab_tunable_place place = {rank->session.device->machine, &rank->session.device->ref};
    struct lab_device_identity identity;
    if (lab_device_identity(&place, &rank->arena, &identity, NULL) < 0)
        return NAN;
    return identity.power_limit_w > 0 ? identity.power_limit_w : (double)NAN;
}

/* Each by itself: a ratio of two probes would fall when the other one rises. */
static void summarize(const struct prober *prober, struct lab_result *result) {
    double rates[PROBES];
    for (int i = 0; i < PROBES; i++)
        rates[i] = has(prober, i) ? middle(prober->rates[i], prober->rounds) : (double)NAN;
    result->capacity_flops_per_second = rates[PROBE_COMPUTE];
    result->capacity_memory_gb_per_s = has(prober, PROBE_MEMORY) ? 1e-9 * memory_rate(prober) : NAN;
    result->capacity_h2d_gb_per_s = 1e-9 * rates[PROBE_H2D];
    result->capacity_d2h_gb_per_s = 1e-9 * rates[PROBE_D2H];
    if (prober->clock_count > 0)
        result->capacity_clock_mhz = prober->clock_mhz / prober->clock_count;
    if (prober->power_count > 0)
        result->capacity_power_w = prober->power_w / prober->power_count;
}

void worker_probe(struct rank *rank) {
    struct prober prober = {.rank = rank, .device = rank->session.device};
    struct lab_err err = LAB_ERR_INIT;
    prober.probing_s =
        fmin(PROBING_MOST_S, fmax(PROBING_LEAST_S, 2 * rank->worker->job.duration_s));
    enum lab_dtype dtype = rank->worker->cost.dtype;
    int node = rank->job->numa_node >= 0 ? rank->job->numa_node : rank->session.device->ref.node;
    bool failed = prober_open(&prober, dtype, node, &err) < 0 || warm_up(&prober, &err) < 0 ||
                  run_probes(&prober, &err) < 0;
    if (failed) /* the others wait for it */
        worker_meet(rank, true, false);
    if (!failed && prober.rounds > 0) {
        summarize(&prober, &rank->result);
        rank->result.capacity_power_limit_w = power_limit_w(rank);
    } else {
        worker_warn(rank,
                    lab_arena_printf(&rank->arena, "its available resources were not measured: %s",
                                     failed ? err.text : "another rank's probe failed"));
    }
    prober_close(&prober);
}
