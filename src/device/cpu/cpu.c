/*
 * cpu.c: the cpu backend: a NUMA node's cores, or a slice of them, as a device. Real arithmetic by
 * OpenBLAS and vectorised loops on the device's own threads, real copies by its streams' threads;
 * both share the same cores and the same memory, and `copy_cores` says who gives way.
 */
#include "device/cpu/cpu.h"
#include "device/cpu/blas.h"

#include <assert.h>

/* Longer than the gaps between the ops of a model, shorter than what anybody would notice. */
#define SPIN_NS (30 * LAB_NS_PER_US)

static bool cpu_supports(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype) {
    (void)device;
    return cpu_kernel_get(op, dtype) != NULL;
}

static void cpu_close(struct lab_device *base) {
    struct cpu_device *device = (struct cpu_device *)base;
    assert(device->buffers.count == 0 && "all buffers are closed");
    for (int i = 0; i < device->stream_count; i++)
        assert(!device->streams[i]->open && "all streams are closed");
    cpu_pool_close(device->pool); /* first: helpers touch the streams' counters */
    for (int i = 0; i < device->stream_count; i++)
        cpu_stream_free(device->streams[i]);
    lab_mem_free(device->streams);
    lab_mem_free(device->buffers.items);
    lab_trace_log_free(base);
    lab_arena_release(&device->arena);
    lab_mem_free(device);
}

static void cpu_op_times(const struct lab_device *base,
                         struct lab_op_time ret_times[LAB_OP_COUNT]) {
    const struct cpu_device *device = (const struct cpu_device *)base;
    for (int op = 0; op < LAB_OP_COUNT; op++) {
        const struct cpu_op_count *count = &device->op_counts[op];
        ret_times[op] = (struct lab_op_time){
            .launches = count->launches, .time_ns = count->time_ns, .flops = (double)count->flops};
    }
}

static int cpu_trace_end(struct lab_device *device, struct lab_arena *arena,
                         struct lab_trace *ret_trace, struct lab_err *err) {
    const struct lab_device_ref *ref = &device->ref;
    return lab_trace_log_end(
        device,
        &(struct lab_trace_gpu){.device = ref->unit,
                                .name = lab_arena_strdup(arena, ref->description),
                                .compute_units = device->info.compute_units,
                                .memory_bytes = device->info.memory_bytes},
        ref->slices > 1 ? (uint32_t)ref->slice + 1 : 0, "streams", arena, ret_trace, err);
}

static const struct lab_device_ops device_ops = {
    .close = cpu_close,
    .limits = cpu_limits,
    .op_times = cpu_op_times,
    .clock_mhz = cpu_clock_mhz,
    .core_rate = cpu_core_rate,
    .buffer_open = cpu_buffer_open,
    .buffer_close = cpu_buffer_close,
    .stream_open = cpu_stream_open,
    .stream_close = cpu_stream_close,
    .stream_sync = cpu_stream_sync,
    .copy = cpu_copy,
    .launch = cpu_launch,
    .supports = cpu_supports,
    .event_open = cpu_event_open,
    .event_close = cpu_event_close,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_sync = cpu_event_sync,
    .event_time = cpu_event_time,
    .graph_begin = cpu_graph_begin,
    .graph_end = cpu_graph_end,
    .graph_launch = cpu_graph_launch,
    .graph_close = cpu_graph_close,
    .trace_begin = lab_trace_log_begin,
    .trace_end = cpu_trace_end,
};

static void fill_info(struct cpu_device *device) {
    struct lab_device_info *info = &device->base.info;
    info->compute_units = device->base.ref.cpus.count;
    info->arithmetic = lab_arena_printf(&device->arena, "%s, OpenBLAS %s kernels",
                                        cpu_simd_name(device->simd), cpu_blas_core());
    info->overlaps = info->compute_units > 1;
    info->overlap_why_not = info->overlaps ? NULL : "one core does both";
    info->memory_bytes = device->base.ref.memory_bytes;
}

static int cpu_open(const struct lab_machine *machine, const struct lab_device_ref *ref,
                    struct lab_device_setup setup, struct lab_device **ret_device,
                    struct lab_err *err) {
    int cores = ref->cpus.count;
    if (machine->recorded)
        return lab_err_set(err, LAB_ERR_USER, "%s is recorded, so nothing can run on it",
                           machine->source);
    if (cpu_blas_check(err))
        return -1;
    if (setup.copy_cores > 0 && setup.copy_cores >= cores)
        setup.copy_cores = cores - 1;
    struct cpu_device *device = lab_mem_alloc(1, sizeof *device);
    lab_arena_init(&device->arena);
    device->base.ops = &device_ops;
    device->base.ref = lab_device_ref_copy(ref, &device->arena);
    device->base.machine = machine;
    device->base.clock = lab_clock_system();
    device->simd = cpu_simd_select();
    device->copy_cores = setup.copy_cores;
    device->spin_ns = cores > 1 ? SPIN_NS : 0;
    fill_info(device);
    if (cpu_pool_open(machine, &device->base.ref.cpus, device->base.ref.name, device->spin_ns,
                      &device->pool, err)) {
        cpu_close(&device->base);
        return -1;
    }
    *ret_device = &device->base;
    return 0;
}

const struct lab_backend lab_backend_cpu = {
    .name = "cpu",
    .help = "a NUMA node's cores (cpu:0), or slices of them (cpu:0/2, cpu:0/2.1)",
    .rank = 100,
    .select = cpu_select,
    .open = cpu_open,
    .tunable = cpu_tunable,
    .identity = cpu_identity,
};
