/*
 * limits.c: what the device can do at best, found by small loops on its own cores: multiply-adds
 * from registers on all of them at once, copies between buffers larger than the caches by all of
 * them, and the copy that a stream makes. Best of a few rounds, since whatever else runs on the
 * machine only slows them down. All together they take about 0.3 s, up to a second
 * where caches are very large.
 */
#include "base/file/file.h"
#include "base/mem.h"
#include "device/cpu/cpu.h"

#include <string.h>

#define FLOPS_ROUNDS   2
#define FLOPS_NS       (25 * LAB_NS_PER_MS)
#define COPY_ROUNDS    2
#define COPY_UNIT      ((size_t)2 << 20)
#define COPY_BYTES_MIN ((size_t)32 << 20)
#define COPY_BYTES_MAX ((size_t)320 << 20) /* large caches; libc copies better beyond them */

struct probe {
    struct cpu_device *device;
    double *flops; /* of each unit */
    char *device_memory, *host_memory;
    size_t size_bytes;
    struct lab_device_limits found;
};

static void flops_task(void *state, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct probe *probe = state;
    for (int64_t unit = begin; unit < end; unit++)
        probe->flops[unit] = cpu_simd_peak_flops(probe->device->simd, FLOPS_NS);
}

static void copy_task(void *state, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct probe *probe = state;
    size_t at = (size_t)begin * COPY_UNIT;
    memcpy(probe->device_memory + at, probe->host_memory + at, (size_t)(end - begin) * COPY_UNIT);
}

static void keep_best(double *best, double value) {
    if (value > *best)
        *best = value;
}

static double rate(const struct probe *probe, double amount, int64_t start_ns) {
    int64_t elapsed_ns = lab_clock_now(probe->device->base.clock) - start_ns;
    return amount / ((double)(elapsed_ns > 0 ? elapsed_ns : 1) * 1e-9);
}

static void probe_flops(struct cpu_stream *stream, void *context) {
    struct probe *probe = context;
    int cores = probe->device->base.ref.cpus.count;
    struct cpu_work work = {.task = flops_task, .context = probe, .units = cores, .threads = cores};
    for (int round = 0; round < FLOPS_ROUNDS; round++) {
        double sum = 0;
        cpu_pool_run(probe->device->pool, &work, &stream->caller);
        for (int unit = 0; unit < cores; unit++)
            sum += probe->flops[unit];
        keep_best(&probe->found.flops_per_s, sum);
    }
}

static void probe_copies(struct cpu_stream *stream, void *context) {
    struct probe *probe = context;
    struct lab_device_limits *found = &probe->found;
    const struct lab_clock *clock = probe->device->base.clock;
    double size = (double)probe->size_bytes;
    struct cpu_work work = {.task = copy_task,
                            .context = probe,
                            .units = (int64_t)(probe->size_bytes / COPY_UNIT),
                            .threads = probe->device->base.ref.cpus.count};
    for (int round = 0; round < COPY_ROUNDS; round++) {
        int64_t start_ns = lab_clock_now(clock);
        cpu_pool_run(probe->device->pool, &work, &stream->caller);
        keep_best(&found->memory_bytes_per_s, rate(probe, 2 * size, start_ns));
        start_ns = lab_clock_now(clock);
        cpu_stream_copy_now(stream, probe->device_memory, probe->host_memory, probe->size_bytes);
        keep_best(&found->h2d_bytes_per_s, rate(probe, size, start_ns));
        start_ns = lab_clock_now(clock);
        cpu_stream_copy_now(stream, probe->host_memory, probe->device_memory, probe->size_bytes);
        keep_best(&found->d2h_bytes_per_s, rate(probe, size, start_ns));
    }
    /* one core may copy no faster than all, but rounds differ by chance */
    keep_best(&found->memory_bytes_per_s, 2 * found->h2d_bytes_per_s);
    keep_best(&found->memory_bytes_per_s, 2 * found->d2h_bytes_per_s);
}

/* Twice the caches that the device's cores can fill: what is copied must come from memory. */
static size_t copy_size(const struct cpu_device *device) {
    const struct lab_machine *machine = device->base.machine;
    int64_t last_level = 0;
    for (int i = 0, level = 0; i < machine->cache_count; i++) {
        const struct lab_cache *cache = &machine->caches[i];
        if (cache->kind == 'i' || cache->level < level)
            continue;
        int shared = cache->shared_by_cores > 0 ? cache->shared_by_cores : 1;
        level = cache->level;
        last_level = cache->size_bytes * ((device->base.ref.cpus.count + shared - 1) / shared);
    }
    size_t size_bytes = ((size_t)last_level + COPY_UNIT - 1) / COPY_UNIT * COPY_UNIT;
    if (size_bytes < COPY_BYTES_MIN)
        return COPY_BYTES_MIN;
    return size_bytes < COPY_BYTES_MAX ? size_bytes : COPY_BYTES_MAX;
}

/* Rates of copies stay unknown where there is no memory left to measure them. */
static void measure_copies(struct cpu_stream *stream, struct probe *probe) {
    struct lab_device *device = &probe->device->base;
    struct lab_buffer on_device = {0}, on_host = {0};
    probe->size_bytes = copy_size(probe->device);
    if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, probe->size_bytes, &on_device, NULL) == 0 &&
        lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, device->ref.node, probe->size_bytes,
                        &on_host, NULL) == 0) {
        probe->device_memory = on_device.data;
        probe->host_memory = on_host.data;
        cpu_stream_call(stream, probe_copies, probe);
        cpu_stream_sync(&stream->base, NULL);
    }
    lab_buffer_close(&on_device);
    lab_buffer_close(&on_host);
}

static const char *how(const struct probe *probe) {
    struct cpu_device *device = probe->device;
    int cores = device->base.ref.cpus.count;
    return lab_arena_printf(&device->arena,
                            "%s multiply-adds from registers and copies of %zu MiB on %d core%s; "
                            "one thread's copy of %zu MiB for h2d and d2h",
                            cpu_simd_name(device->simd), probe->size_bytes >> 20, cores,
                            cores == 1 ? "" : "s", probe->size_bytes >> 20);
}

int cpu_limits(struct lab_device *base, enum lab_dtype dtype, struct lab_device_limits *ret_limits,
               struct lab_err *err) {
    struct cpu_device *device = (struct cpu_device *)base;
    if (dtype == LAB_FP16) /* what training rounds its operands to is multiplied as fp32 */
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s doesn't compute in %s, which needs a GPU",
                           base->ref.name, lab_dtype_name(dtype));
    if (!device->limits_known) {
        struct probe probe = {.device = device};
        struct lab_stream *stream;
        if (cpu_stream_open(base, LAB_STREAM_COMPUTE, &stream, err))
            return -1;
        probe.flops = lab_mem_alloc((size_t)base->ref.cpus.count, sizeof *probe.flops);
        cpu_stream_call((struct cpu_stream *)stream, probe_flops, &probe);
        cpu_stream_sync(stream, NULL);
        measure_copies((struct cpu_stream *)stream, &probe);
        cpu_stream_close(stream);
        lab_mem_free(probe.flops);
        probe.found.how = how(&probe);
        device->limits = probe.found;
        device->limits_known = true;
    }
    *ret_limits = device->limits;
    return 0;
}

/* --- compute rate of the cores --- */

struct core_work {
    struct cpu_device *device;
    int64_t duration_ns, end_ns;
    double *flops; /* of each core */
    double rate;
};

static void core_task(void *state, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct core_work *work = state;
    for (int64_t core = begin; core < end; core++)
        work->flops[core] = cpu_simd_flops_until(work->device->simd, work->end_ns);
}

static void run_cores(struct cpu_stream *stream, void *context) {
    struct core_work *cores = context;
    const struct lab_clock *clock = lab_clock_system();
    int count = cores->device->base.ref.cpus.count;
    struct cpu_work work = {.task = core_task, .context = cores, .units = count, .threads = count};
    int64_t start_ns = lab_clock_now(clock);
    double sum = 0;
    cores->end_ns = start_ns + cores->duration_ns;
    cpu_pool_run(cores->device->pool, &work, &stream->caller);
    for (int core = 0; core < count; core++)
        sum += cores->flops[core];
    cores->rate = sum / (1e-9 * (double)(lab_clock_now(clock) - start_ns));
}

double cpu_core_rate(struct lab_stream *stream, int64_t duration_ns) {
    struct core_work cores = {.device = (struct cpu_device *)stream->device,
                              .duration_ns = duration_ns};
    LAB_AUTO_FREE double *flops =
        lab_mem_alloc((size_t)stream->device->ref.cpus.count, sizeof *flops);
    cores.flops = flops;
    cpu_stream_call((struct cpu_stream *)stream, run_cores, &cores);
    cpu_stream_sync(stream, NULL);
    return cores.rate;
}

#define CLOCKS_ASKED 4 /* of the device's cores, evenly spread: each costs microseconds */

double cpu_clock_mhz(struct lab_device *base) {
    const struct lab_cpus *cpus = &base->ref.cpus;
    int asked = cpus->count < CLOCKS_ASKED ? cpus->count : CLOCKS_ASKED, known = 0;
    double sum = 0;
    for (int i = 0; i < asked; i++) {
        char path[96];
        int64_t khz;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
                 cpus->items[i * cpus->count / asked]);
        if (lab_file_read_int(path, &khz) == 0 && khz > 0) {
            sum += 1e-3 * (double)khz;
            known++;
        }
    }
    return known ? sum / known : 0;
}
