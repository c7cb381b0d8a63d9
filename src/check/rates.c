/*
 * rates.c: the tests of level 2: what GPUs and links reach. Links can show as active and carry
 * nothing, so copies are measured; a GPU that is slow shows next to its peers.
 */
#include "check/check_internal.h"

#include "base/clock.h"
#include "machine/machine.h"
#include "model/metric.h"

#define PRINT(...) lab_arena_printf(run->arena, __VA_ARGS__)

#define COPY_S         0.15
#define COMPUTE_S      1.0
#define MEMORY_S       0.3
#define NEARER         1.04 /* a NUMA node is nearer when copies reach so many times as much */
#define NVLINK_GB_S    25.0 /* of a link each way, by NVIDIA's data sheets from A100 on, at least */
#define NVLINK_SHARE   0.25 /* of all links that a copy reaches at least: PCIe stays below */
#define ALLREDUCE_KEY  "bytes=64MiB"
#define ALLREDUCE_SUMS 48

const char *const check_keys[] = {"h2d_gb_s",
                                  "d2h_gb_s",
                                  "h2d_remote_gb_s",
                                  "d2h_remote_gb_s",
                                  "gemm_bf16_tflops",
                                  "hbm_gb_s",
                                  "load_clock_mhz",
                                  "load_power_w",
                                  "p2p_gb_s",
                                  "allreduce_gb_s",
                                  "soak_bf16_tflops",
                                  "contended_h2d_gb_s",
                                  NULL};

/* --- copies --- */

/* NUMA nodes with cores, from which a program could copy. */
static int nodes_of(const struct check_run *run, int *numbers) {
    int count = 0;
    for (int i = 0; i < run->machine->node_count; i++)
        if (run->machine->nodes[i].cpus.count > 0)
            numbers[count++] = run->machine->nodes[i].number;
    return count;
}

static int count_copies(struct check_run *run, const char **ret_why) {
    int numbers[LAB_MACHINE_NODES_MAX];
    *ret_why = "no NUMA node with cores";
    return run->devices->count * nodes_of(run, numbers);
}

static int distance_to(const struct check_run *run, int gpu, int node) {
    const struct lab_machine *machine = run->machine;
    int own = lab_machine_node_index(machine, run->devices->items[gpu].node);
    int other = lab_machine_node_index(machine, node);
    return own < 0 || other < 0 ? 0 : lab_machine_distance(machine, own, other);
}

static double measure_copy(struct check_run *run, int gpu, int node, bool to_gpu,
                           struct lab_check_finding *finding) {
    const char *const keys[] = {to_gpu ? "direction=h2d" : "direction=d2h", NULL};
    struct check_work work = {.workload = "memcpy", .keys = keys, .seconds = COPY_S};
    struct check_rates rates;
    struct lab_err err = LAB_ERR_INIT;
    if (check_measure(run, gpu, node, &work, &rates, &err) < 0) {
        check_error(finding, &err, run);
        return NAN;
    }
    if (rates.wrong) {
        check_fail(finding, "wrong data", "what was sent", PRINT("wrong data: %s", rates.wrong));
        finding->severity = LAB_CHECK_ISOLATE;
        return NAN;
    }
    return 1e-9 * (to_gpu ? rates.rates.h2d_bytes_per_s : rates.rates.d2h_bytes_per_s);
}

static void look_copy(struct check_run *run, int index, int attempt, bool to_gpu,
                      struct lab_check_finding *finding) {
    int numbers[LAB_MACHINE_NODES_MAX], count = nodes_of(run, numbers);
    int gpu = index / count, node = numbers[index % count];
    bool local = run->devices->items[gpu].node == node || count == 1;
    finding->gpu = gpu;
    finding->node = node;
    finding->subject = PRINT("GPU %d, NUMA node %d", run->devices->items[gpu].unit, node);
    finding->group = PRINT("%s" CHECK_DISTANCE "%d", run->devices->items[gpu].description,
                           local ? 10 : distance_to(run, gpu, node));
    finding->key = to_gpu  ? local ? "h2d_gb_s" : "h2d_remote_gb_s"
                   : local ? "d2h_gb_s"
                           : "d2h_remote_gb_s";
    double known = attempt == 0 && to_gpu && run->h2d ? run->h2d[index] : NAN;
    finding->measured = isnan(known) ? measure_copy(run, gpu, node, to_gpu, finding) : known;
}

static void look_h2d(struct check_run *run, int index, int attempt,
                     struct lab_check_finding *finding) {
    look_copy(run, index, attempt, true, finding);
}

static void look_d2h(struct check_run *run, int index, int attempt,
                     struct lab_check_finding *finding) {
    look_copy(run, index, attempt, false, finding);
}

/* --- is the NUMA node that it claims the nearest? --- */

static int count_nearest(struct check_run *run, const char **ret_why) {
    int numbers[LAB_MACHINE_NODES_MAX];
    *ret_why = "one NUMA node";
    return nodes_of(run, numbers) > 1 ? run->devices->count : 0;
}

static void look_nearest(struct check_run *run, int index, int attempt,
                         struct lab_check_finding *finding) {
    int numbers[LAB_MACHINE_NODES_MAX], count = nodes_of(run, numbers);
    int own = run->devices->items[index].node, best = -1;
    double local = NAN, most = 0;
    (void)attempt;
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    if (!run->h2d) {
        size_t all = (size_t)(count * run->devices->count);
        run->h2d = lab_arena_alloc(run->arena, all, sizeof *run->h2d);
        for (size_t i = 0; i < all; i++)
            run->h2d[i] = NAN;
    }
    for (int i = 0; i < count; i++) {
        double rate = measure_copy(run, index, numbers[i], true, finding);
        if (isnan(rate))
            return;
        run->h2d[index * count + i] = rate;
        if (numbers[i] == own)
            local = rate;
        if (rate > most) {
            most = rate;
            best = numbers[i];
        }
    }
    if (isnan(local))
        check_skip(finding, "its NUMA node isn't reported: see the test 'numa_node'");
    else if (most > NEARER * local)
        check_fail(finding, PRINT("NUMA node %d", own), PRINT("NUMA node %d", best),
                   PRINT("claims NUMA node %d (%.1f GB/s), but node %d gives %.1f GB/s", own, local,
                         best, most));
    else
        check_pass(finding, PRINT("NUMA node %d", own), "the nearest");
}

/* --- computing --- */

static void watch_load(void *opaque, struct lab_device *device) {
    struct check_load *load = opaque;
    load->clock_mhz = lab_device_clock_mhz(device);
    load->power_w = lab_device_power_w(device);
    load->known = true;
}

struct load_watch {
    struct check_run *run;
    struct check_load *load;
    int gpu;
    int64_t asked_ns;
};

/* The driver's state once, in the middle of it; its clock and power each time. */
static void watch_all(void *opaque, struct lab_device *device) {
    struct load_watch *watch = opaque;
    watch_load(watch->load, device);
    if (device->ref.simulated || watch->asked_ns)
        return;
    struct lab_device_list one = {&watch->run->devices->items[watch->gpu], 1};
    struct lab_health health;
    watch->asked_ns = lab_clock_now(lab_clock_system());
    if (lab_device_health(watch->run->machine, &one, watch->run->arena, &health, NULL) == 0) {
        watch->load->clock_reasons = health.gpus[0].clock_reasons;
        watch->load->pcie_generation = health.gpus[0].pcie_generation;
    }
}

static double measure_gemm(struct check_run *run, int gpu, struct lab_check_finding *finding) {
    static const char *const keys[] = {"m=4096",     "n=4096",         "k=4096",
                                       "dtype=bf16", "config=default", NULL};
    struct check_load *load = &run->loads[gpu];
    *load = (struct check_load){.clock_reasons = LAB_HEALTH_UNKNOWN,
                                .pcie_generation = LAB_HEALTH_UNKNOWN};
    struct load_watch watch = {run, load, gpu, 0};
    struct check_work work = {.workload = "gemm",
                              .keys = keys,
                              .seconds = COMPUTE_S,
                              .watch = watch_all,
                              .state = &watch};
    struct check_rates rates;
    struct lab_err err = LAB_ERR_INIT;
    if (check_measure(run, gpu, -1, &work, &rates, &err) < 0) {
        check_error(finding, &err, run);
        return NAN;
    }
    if (rates.wrong) {
        check_fail(finding, "wrong results", "those of double precision",
                   PRINT("wrong results: %s", rates.wrong));
        finding->severity = LAB_CHECK_ISOLATE;
        return NAN;
    }
    return 1e-12 * rates.rates.flops_per_s;
}

static void begin_gpu(struct check_run *run, int index, const char *key,
                      struct lab_check_finding *finding) {
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    finding->group = run->devices->items[index].description;
    finding->key = key;
}

static void look_gemm(struct check_run *run, int index, int attempt,
                      struct lab_check_finding *finding) {
    (void)attempt;
    begin_gpu(run, index, "gemm_bf16_tflops", finding);
    finding->measured = measure_gemm(run, index, finding);
}

static void look_hbm(struct check_run *run, int index, int attempt,
                     struct lab_check_finding *finding) {
    (void)attempt;
    static const char *const keys[] = {"rows=16384", "columns=8192", "dtype=bf16", "config=default",
                                       NULL};
    struct check_work work = {.workload = "softmax", .keys = keys, .seconds = MEMORY_S};
    struct check_rates rates;
    struct lab_err err = LAB_ERR_INIT;
    begin_gpu(run, index, "hbm_gb_s", finding);
    if (check_measure(run, index, -1, &work, &rates, &err) < 0) {
        check_error(finding, &err, run);
    } else if (rates.wrong) {
        check_fail(finding, "wrong results", "those of double precision",
                   PRINT("wrong results: %s", rates.wrong));
        finding->severity = LAB_CHECK_ISOLATE;
    } else {
        finding->measured = 1e-9 * rates.rates.memory_bytes_per_s;
    }
}

/* The load that the test `gemm` has left, or one of its own. */
static const struct check_load *load_of(struct check_run *run, int gpu, int attempt,
                                        struct lab_check_finding *finding) {
    if ((attempt > 0 || !run->loads[gpu].known) && isnan(measure_gemm(run, gpu, finding)))
        return NULL;
    return &run->loads[gpu];
}

static void look_load_clock(struct check_run *run, int index, int attempt,
                            struct lab_check_finding *finding) {
    begin_gpu(run, index, "load_clock_mhz", finding);
    const struct check_load *load = load_of(run, index, attempt, finding);
    if (load && load->clock_mhz > 0)
        finding->measured = load->clock_mhz;
    else if (load)
        check_skip(finding, "the driver doesn't report the clock");
}

static void look_load_power(struct check_run *run, int index, int attempt,
                            struct lab_check_finding *finding) {
    begin_gpu(run, index, "load_power_w", finding);
    const struct check_load *load = load_of(run, index, attempt, finding);
    if (load && load->power_w > 0)
        finding->measured = load->power_w;
    else if (load)
        check_skip(finding, "the driver doesn't report the power");
}

static void look_load_state(struct check_run *run, int index, int attempt,
                            struct lab_check_finding *finding) {
    begin_gpu(run, index, NULL, finding);
    finding->group = NULL;
    const struct check_load *load = load_of(run, index, attempt, finding);
    if (!load)
        return;
    const char *found = PRINT("%.0f MHz, %.0f W", load->clock_mhz, load->power_w);
    int64_t most = run->no_health ? -1 : check_gpu(run, index)->pcie_generation_most;
    if (load->clock_reasons < 0) {
        check_skip(finding, "the driver reports no state under load");
        return;
    }
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        if (reason->excludes && ((uint64_t)load->clock_reasons & reason->bit)) {
            check_fail(finding, found, "not throttled",
                       PRINT("throttled under load: %s", reason->words));
            return;
        }
    if (load->pcie_generation > 0 && load->pcie_generation < most)
        check_fail(finding, PRINT("generation %lld", (long long)load->pcie_generation),
                   PRINT("generation %lld", (long long)most),
                   PRINT("PCIe link runs at generation %lld of %lld under load",
                         (long long)load->pcie_generation, (long long)most));
    else
        check_pass(finding, found, "not throttled");
}

/* --- between GPUs --- */

static int count_pairs(struct check_run *run, const char **ret_why) {
    int count = run->devices->count;
    *ret_why = "one GPU";
    return count * (count - 1);
}

static enum lab_link link_between(const struct check_run *run, int a, int b) {
    const struct lab_pci *found[2] = {NULL, NULL};
    const int gpus[2] = {a, b};
    for (int k = 0; k < 2 && !run->no_health; k++)
        for (int i = 0; i < run->machine->pci_count; i++)
            if (lab_str_equal(run->machine->pci[i].address, check_gpu(run, gpus[k])->address))
                found[k] = &run->machine->pci[i];
    return found[0] && found[1] ? lab_machine_link(run->machine, found[0], found[1])
                                : LAB_LINK_UNKNOWN;
}

static bool in_fabric(const struct check_run *run, int gpu) {
    return check_gpu(run, gpu)->fabric > LAB_FABRIC_NONE;
}

static void look_pair(struct check_run *run, int index, int attempt,
                      struct lab_check_finding *finding) {
    int others = run->devices->count - 1, from = index / others, to = index % others;
    const char *wrong;
    double rate;
    struct lab_err err = LAB_ERR_INIT;
    to += to >= from;
    begin_gpu(run, from, "p2p_gb_s", finding);
    finding->peer = to;
    finding->subject =
        PRINT("GPU %d to GPU %d", run->devices->items[from].unit, run->devices->items[to].unit);
    bool nvlink =
        !run->no_health && check_gpu(run, from)->nvlinks > 0 && check_gpu(run, to)->nvlinks > 0;
    finding->group = nvlink ? "NVLink" : lab_link_name(link_between(run, from, to));
    finding->key = nvlink ? finding->key : NULL;
    if (attempt > 0)
        check_close_devices(run);
    if (check_measure_pair(run, from, to, &rate, &wrong, &err) < 0) {
        check_error(finding, &err, run);
        if (nvlink && err.code == LAB_ERR_UNSUPPORTED)
            check_fail(finding, "no direct copies", "NVLink",
                       PRINT("NVLinks are there, but %s", err.text));
    } else if (wrong) {
        check_fail(finding, "wrong data", "what was sent", PRINT("wrong data: %s", wrong));
        finding->severity = LAB_CHECK_ISOLATE;
    } else {
        finding->measured = 1e-9 * rate;
    }
    if (nvlink && in_fabric(run, from) && in_fabric(run, to)) { /* all of its links lead to all */
        finding->expected = NVLINK_GB_S * (double)check_gpu(run, from)->nvlinks;
        finding->least = NVLINK_SHARE * finding->expected;
    }
}

static int count_together(struct check_run *run, const char **ret_why) {
    *ret_why = "one GPU";
    return run->devices->count > 1;
}

static void look_allreduce(struct check_run *run, int index, int attempt,
                           struct lab_check_finding *finding) {
    (void)index, (void)attempt;
    static const char *const keys[] = {ALLREDUCE_KEY, NULL};
    struct check_work work = {.workload = "allreduce", .keys = keys};
    int count = run->devices->count;
    struct check_rates *rates = lab_arena_alloc(run->arena, (size_t)count, sizeof *rates);
    struct lab_err err = LAB_ERR_INIT;
    finding->gpu = 0;
    finding->subject = PRINT("%d GPUs", count);
    finding->key = "allreduce_gb_s";
    if (check_measure_all(run, &work, ALLREDUCE_SUMS, rates, &err) < 0)
        check_error(finding, &err, run);
    else /* bus bandwidth, as nccl-tests has it */
        finding->measured = 1e-9 * 2 * (count - 1) / count * (double)(64 << 20) / rates[0].median_s;
}

const struct lab_check_test check_rates_tests[] = {
    {"numa_nearest", "Nearest NUMA node", 2, LAB_CHECK_ISOLATE, .count = count_nearest,
     .look = look_nearest,
     .help = "another NUMA node than the reported one is nearer: wrong firmware setting"},
    {"h2d", "Copies to the GPU", 2, LAB_CHECK_ISOLATE, "GB/s", 0.05, count_copies, look_h2d,
     "copies from a NUMA node's memory are slow"},
    {"d2h", "Copies from the GPU", 2, LAB_CHECK_ISOLATE, "GB/s", 0.05, count_copies, look_d2h,
     "copies to a NUMA node's memory are slow"},
    {"gemm", "Matrix product, bf16", 2, LAB_CHECK_ISOLATE, "TFLOP/s", 0.015, check_each_gpu,
     look_gemm, "the GPU computes slower than it should, or wrong"},
    {"hbm", "Memory bandwidth", 2, LAB_CHECK_ISOLATE, "GB/s", 0.015, check_each_gpu, look_hbm,
     "device memory is slower than it should be"},
    {"load_clock", "Clock under load", 2, LAB_CHECK_MONITOR, "MHz", 0.05, check_each_gpu,
     look_load_clock, "the clock under load is below that of the peers"},
    {"load_power", "Power under load", 2, LAB_CHECK_MONITOR, "W", 0.1, check_each_gpu,
     look_load_power,
     "the GPU draws less power under load than its peers: a cap, or a weak supply"},
    {"load_state", "State under load", 2, LAB_CHECK_RESET, .count = check_each_gpu,
     .look = look_load_state,
     .help = "throttled by heat or power brake, or the PCIe link stays slow under load"},
    {"p2p", "Copies between GPUs", 2, LAB_CHECK_RESET, "GB/s", 0.1, count_pairs, look_pair,
     "a link between two GPUs is slow or dead, whatever its state says"},
    {"allreduce", "All-reduce", 2, LAB_CHECK_RESET, "GB/s", 0.1, count_together, look_allreduce,
     "the GPUs together sum slower than expected"},
    {NULL},
};
