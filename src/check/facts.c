/*
 * facts.c: the tests of level 1: what the driver and the kernel report. Nothing is opened and
 * nothing runs on a GPU, so that a prolog is done in seconds.
 */
#include "check/check_internal.h"

#include "base/file/file.h"
#include "machine/machine.h"
#include "model/metric.h"

#define GIB             1073741824.0
#define USED_BYTES_MOST (1 << 30) /* that a GPU without a process may hold: the driver's own */
#define CORRECTED_MOST  1000      /* memory errors since the driver was loaded */
#define IDLE_STATE      2         /* from this performance state on links may rest */
#define CAP_TOLERANCE   0.01

#define PRINT(...) lab_arena_printf(run->arena, __VA_ARGS__)

/* The subject is a GPU whose state is known; else the finding is complete. */
static const struct lab_gpu_health *begin(struct check_run *run, int index,
                                          struct lab_check_finding *finding) {
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    if (run->no_health) {
        check_break(finding, run->no_health);
        return NULL;
    }
    const struct lab_gpu_health *gpu = check_gpu(run, index);
    if (gpu->lost)
        check_break(finding, PRINT("the driver can't reach it: %s", gpu->lost));
    return gpu->lost ? NULL : gpu;
}

/* After an error nobody knows whether the value is fine. */
static void unknown(struct check_run *run, struct lab_check_finding *finding, const char *what) {
    const char *error =
        finding->gpu < 0 ? run->health.driver_error : check_gpu(run, finding->gpu)->error;
    if (error)
        check_break(finding, error);
    else
        check_skip(finding, PRINT("the driver doesn't report %s", what));
}

/* --- the host --- */

static void look_count(struct check_run *run, int index, int attempt,
                       struct lab_check_finding *finding) {
    (void)index, (void)attempt;
    const struct lab_expected *expected = check_expected(run, 0);
    int found = run->devices->count, wanted = run->no_health ? 0 : run->health.gpus_on_bus;
    if (expected && expected->gpus > wanted)
        wanted = (int)expected->gpus;
    if (wanted == 0)
        check_skip(finding,
                   "a container, cgroup or variable may hide GPUs; --against FILE says how many");
    else if (found < wanted && !run->setup->all_devices)
        check_skip(finding, PRINT("%d of %d GPUs were asked for", found, wanted));
    else if (found < wanted)
        check_fail(finding, PRINT("%d", found), PRINT("%d", wanted),
                   PRINT("%d of %d GPUs can be used", found, wanted));
    else
        check_pass(finding, PRINT("%d", found), PRINT("%d", wanted));
}

static void look_driver(struct check_run *run, int index, int attempt,
                        struct lab_check_finding *finding) {
    (void)index, (void)attempt;
    const struct lab_expected *expected = check_expected(run, 0);
    const char *driver = run->health.driver, *module = run->health.module;
    if (run->no_health)
        check_break(finding, run->no_health);
    else if (!driver)
        unknown(run, finding, "its version");
    else if (module && !lab_str_equal(driver, module))
        check_fail(
            finding, driver, module,
            PRINT("the library is %s, the kernel module %s: restart the host", driver, module));
    else if (expected && expected->driver && !lab_str_equal(driver, expected->driver))
        check_fail(finding, driver, expected->driver,
                   PRINT("driver %s, where the fleet has %s", driver, expected->driver));
    else
        check_pass(finding, driver, module ? module : driver);
}

static int count_fabric(struct check_run *run, const char **ret_why) {
    *ret_why = run->no_health ? run->no_health : "no GPU here is part of an NVSwitch fabric";
    for (int i = 0; !run->no_health && i < run->devices->count; i++)
        if (check_gpu(run, i)->fabric > LAB_FABRIC_NONE)
            return 1;
    return 0;
}

static void look_manager(struct check_run *run, int index, int attempt,
                         struct lab_check_finding *finding) {
    (void)index, (void)attempt;
    if (run->health.fabric_manager == 1)
        check_pass(finding, "runs", "runs");
    else if (run->health.fabric_manager == 0)
        check_fail(finding, "doesn't run", "runs",
                   "nv-fabricmanager doesn't run: systemctl start nvidia-fabricmanager");
    else
        check_skip(finding, "its process can't be seen from this container");
}

static int count_balancing(struct check_run *run, const char **ret_why) {
    *ret_why = run->machine->simulated ? "a simulated host" : "one NUMA node";
    return !run->machine->simulated && run->machine->node_count > 1;
}

static void look_balancing(struct check_run *run, int index, int attempt,
                           struct lab_check_finding *finding) {
    (void)run, (void)index, (void)attempt;
    int64_t on = 0;
    if (lab_file_read_int("/proc/sys/kernel/numa_balancing", &on) != 0)
        check_skip(finding, "the kernel doesn't report it");
    else if (on)
        check_fail(finding, "on", "off",
                   "the kernel moves pages between NUMA nodes: sysctl kernel.numa_balancing=0");
    else
        check_pass(finding, "off", "off");
}

/* --- links --- */

/* GPUs that the driver lists as lost, and that none of the devices is. */
static int lost_before(const struct check_run *run) {
    int lost = run->no_health || !run->setup->all_devices ? 0 : run->health.gpus_lost;
    for (int i = 0; lost > 0 && i < run->devices->count; i++)
        lost -= check_gpu(run, i)->lost != NULL;
    return lost > 0 ? lost : 0;
}

/* The last subject is the host, for GPUs without a device. */
static int count_answers(struct check_run *run, const char **ret_why) {
    return check_each_gpu(run, ret_why) + (lost_before(run) > 0);
}

static void look_answers(struct check_run *run, int index, int attempt,
                         struct lab_check_finding *finding) {
    (void)attempt;
    int count = run->devices->count, lost = lost_before(run);
    if (index == count) {
        if (lost)
            check_fail(finding, PRINT("%d lost", lost), "answers",
                       PRINT("the driver can't reach %d of %d GPUs", lost, count + lost));
        else
            check_pass(finding, "answers", "answers");
        return;
    }
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    if (run->no_health)
        check_break(finding, run->no_health);
    else if (check_gpu(run, index)->lost)
        check_fail(finding, "lost", "answers",
                   PRINT("the driver can't reach it: %s", check_gpu(run, index)->lost));
    else if (check_gpu(run, index)->error)
        check_break(finding, check_gpu(run, index)->error);
    else
        check_pass(finding, "answers", "answers");
}

static void look_width(struct check_run *run, int index, int attempt,
                       struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    int64_t width = gpu->pcie_width, most = gpu->pcie_width_most;
    if (width <= 0 || most <= 0)
        unknown(run, finding, "the PCIe link's width");
    else if (width < most)
        check_fail(finding, PRINT("%lld lanes", (long long)width),
                   PRINT("%lld lanes", (long long)most),
                   PRINT("PCIe link has %lld of %lld lanes", (long long)width, (long long)most));
    else
        check_pass(finding, PRINT("%lld lanes", (long long)width),
                   PRINT("%lld lanes", (long long)most));
}

static void look_generation(struct check_run *run, int index, int attempt,
                            struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    int64_t now = gpu->pcie_generation, most = gpu->pcie_generation_most;
    const char *found = PRINT("generation %lld", (long long)now);
    const char *wanted = PRINT("generation %lld", (long long)most);
    if (now <= 0 || most <= 0)
        unknown(run, finding, "the PCIe link's generation");
    else if (now >= most)
        check_pass(finding, found, wanted);
    else if (gpu->performance_state >= IDLE_STATE)
        check_skip(finding,
                   PRINT("the GPU idles (P%lld) and its link rests at generation %lld of "
                         "%lld; level 2 reads it under load",
                         (long long)gpu->performance_state, (long long)now, (long long)most));
    else
        check_fail(
            finding, found, wanted,
            PRINT("PCIe link runs at generation %lld of %lld", (long long)now, (long long)most));
}

/* On GPUs that no bridge or switch joins all NVLinks are inactive. */
static bool has_active_links(const struct check_run *run) {
    for (int i = 0; i < run->devices->count; i++)
        if (check_gpu(run, i)->nvlinks_active > 0 || check_gpu(run, i)->fabric > LAB_FABRIC_NONE)
            return true;
    return false;
}

static void look_nvlink(struct check_run *run, int index, int attempt,
                        struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    int64_t active = gpu->nvlinks_active, all = gpu->nvlinks;
    if (all < 0)
        unknown(run, finding, "NVLinks");
    else if (all == 0)
        check_skip(finding, "it has no NVLink");
    else if (active == 0 && !has_active_links(run))
        check_skip(finding, PRINT("none of its %lld NVLinks is active, nor another GPU's: no "
                                  "bridge joins them, or all are dead",
                                  (long long)all));
    else if (active < all)
        check_fail(finding, PRINT("%lld active", (long long)active),
                   PRINT("%lld active", (long long)all),
                   PRINT("%lld of %lld NVLinks are active", (long long)active, (long long)all));
    else
        check_pass(finding, PRINT("%lld active", (long long)active),
                   PRINT("%lld active", (long long)all));
}

static void look_fabric(struct check_run *run, int index, int attempt,
                        struct lab_check_finding *finding) {
    (void)attempt;
    static const char *const states[] = {"none", "not started", "in progress", "completed"};
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (gpu->fabric == LAB_FABRIC_UNKNOWN) {
        unknown(run, finding, "the fabric's state");
        return;
    }
    if (gpu->fabric == LAB_FABRIC_NONE) {
        check_skip(finding, "it isn't part of an NVSwitch fabric");
        return;
    }
    const char *found =
        PRINT("%s, clique %lld", states[gpu->fabric], (long long)gpu->fabric_clique);
    int64_t clique = check_gpu(run, 0)->fabric_clique;
    const char *wanted = PRINT("completed, clique %lld", (long long)clique);
    if (gpu->fabric != LAB_FABRIC_COMPLETED)
        check_fail(finding, found, wanted, PRINT("fabric registration is %s", states[gpu->fabric]));
    else if (gpu->fabric_status > 0)
        check_fail(
            finding, found, wanted,
            PRINT("fabric registration ended with NVML error %lld", (long long)gpu->fabric_status));
    else if (gpu->fabric_clique != clique)
        check_fail(finding, found, wanted,
                   PRINT("in clique %lld, while GPU 0 is in %lld", (long long)gpu->fabric_clique,
                         (long long)clique));
    else if (gpu->fabric_degraded == 1)
        check_fail(finding, found, wanted, "the fabric reports degraded bandwidth");
    else
        check_pass(finding, found, wanted);
}

/* --- errors --- */

static void look_ecc(struct check_run *run, int index, int attempt,
                     struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    const char *found = PRINT("%lld (%lld corrected)", (long long)gpu->ecc_uncorrected,
                              (long long)gpu->ecc_corrected);
    const char *wanted = PRINT("0 (≤ %d corrected)", CORRECTED_MOST);
    if (gpu->ecc_on == 0) { /* the driver counts nothing then */
        check_fail(finding, "ECC is off", "on", "ECC is off: memory errors go unnoticed");
        finding->severity = LAB_CHECK_MONITOR;
    } else if (gpu->ecc_uncorrected < 0)
        unknown(run, finding, "memory errors");
    else if (gpu->ecc_uncorrected > 0)
        check_fail(finding, found, wanted,
                   PRINT("%lld uncorrected memory error%s since the driver was loaded",
                         (long long)gpu->ecc_uncorrected, gpu->ecc_uncorrected == 1 ? "" : "s"));
    else if (gpu->ecc_corrected > CORRECTED_MOST) {
        check_fail(finding, found, wanted,
                   PRINT("%lld corrected memory errors since the driver was loaded",
                         (long long)gpu->ecc_corrected));
        finding->severity = LAB_CHECK_MONITOR;
    } else
        check_pass(finding, found, wanted);
}

static void look_rows(struct check_run *run, int index, int attempt,
                      struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    const char *found = PRINT("%lld failed, %lld pending", (long long)gpu->rows_failed,
                              (long long)gpu->rows_pending);
    const char *wanted = "0 failed, 0 pending";
    if (gpu->rows_failed < 0 || gpu->rows_pending < 0)
        check_skip(finding, "it reports no row remapping");
    else if (gpu->rows_failed > 0)
        check_fail(finding, found, wanted,
                   "a row of memory could not be remapped: replace the GPU");
    else if (gpu->rows_pending > 0) {
        check_fail(finding, found, wanted, "a row of memory is to be remapped: reset the GPU");
        finding->severity = LAB_CHECK_RESET;
    } else
        check_pass(finding, found, wanted);
}

static void look_recovery(struct check_run *run, int index, int attempt,
                          struct lab_check_finding *finding) {
    (void)attempt;
    static const char *const actions[] = {"none", "reset the GPU", "restart the host",
                                          "drain, then reset", "drain, then reset the GPU"};
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    int64_t action = gpu->recovery_action;
    if (action < 0)
        unknown(run, finding, "a recovery action");
    else if (action > 0)
        check_fail(
            finding, PRINT("action %lld", (long long)action), "none",
            PRINT("the driver asks to %s", action < 5 ? actions[action] : "recover this GPU"));
    else
        check_pass(finding, "none", "none");
}

/* Xids of programs' own mistakes are no fault of the GPU. */
static const struct {
    int number;
    bool program;
    enum lab_check_severity severity;
    const char *words;
} xids[] = {
    {13, true, LAB_CHECK_MONITOR, "a program's kernel failed"},
    {31, true, LAB_CHECK_MONITOR, "invalid memory access of a program"},
    {32, true, LAB_CHECK_MONITOR, "a program's commands were invalid"},
    {43, true, LAB_CHECK_MONITOR, "a program's work was stopped"},
    {45, true, LAB_CHECK_MONITOR, "work was removed with its program"},
    {68, true, LAB_CHECK_MONITOR, "a video unit's work failed"},
    {69, true, LAB_CHECK_MONITOR, "a program's kernel failed"},
    {48, false, LAB_CHECK_RESET, "memory error that could not be corrected"},
    {63, false, LAB_CHECK_MONITOR, "a row of memory was remapped"},
    {64, false, LAB_CHECK_ISOLATE, "a row of memory could not be remapped"},
    {74, false, LAB_CHECK_RESET, "NVLink error"},
    {79, false, LAB_CHECK_ISOLATE, "the GPU fell off the bus"},
    {92, false, LAB_CHECK_MONITOR, "many corrected memory errors"},
    {94, false, LAB_CHECK_RESET, "memory error, contained in one program"},
    {95, false, LAB_CHECK_RESET, "memory error that was not contained"},
    {119, false, LAB_CHECK_RESET, "the GPU's firmware doesn't answer"},
    {120, false, LAB_CHECK_RESET, "the GPU's firmware failed"},
    {140, false, LAB_CHECK_RESET, "unrecovered memory error"},
};

static void look_xid(struct check_run *run, int index, int attempt,
                     struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (run->health.xids_unknown) {
        check_skip(finding, run->health.xids_unknown);
        return;
    }
    check_pass(finding, "none", "none");
    int harmless = 0;
    enum lab_check_severity worst = LAB_CHECK_MONITOR;
    for (int i = 0; i < run->health.xid_count; i++) {
        const struct lab_xid *xid = &run->health.xids[i];
        if (!lab_str_equal(xid->address, gpu->address))
            continue;
        size_t row = 0, rows = sizeof xids / sizeof *xids;
        while (row < rows && xids[row].number != xid->number)
            row++;
        if (row < rows && xids[row].program) {
            harmless++;
            continue;
        }
        enum lab_check_severity severity = row < rows ? xids[row].severity : LAB_CHECK_MONITOR;
        if (finding->verdict == LAB_CHECK_FAIL && severity <= worst)
            continue;
        worst = finding->severity = severity;
        check_fail(finding, PRINT("Xid %d", xid->number), "none",
                   PRINT("Xid %d since boot: %s", xid->number,
                         row < rows ? xids[row].words : "see the driver's list of Xids"));
    }
    LAB_AUTO(str, from);
    lab_str_add_duration(&from, run->health.xids_from_s, LAB_DURATION_ROUNDED);
    if (finding->verdict == LAB_CHECK_PASS && run->health.xids_from_s > 0)
        check_skip(finding, PRINT("none, but the kernel log begins %s after boot", from.text));
    else if (finding->verdict == LAB_CHECK_PASS && harmless)
        check_pass(finding, PRINT("%d of programs", harmless), "none of the GPU");
}

/* --- clocks and limits --- */

static void look_clocks(struct check_run *run, int index, int attempt,
                        struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (gpu->clock_reasons < 0) {
        unknown(run, finding, "why clocks are lowered");
        return;
    }
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        if (reason->excludes && ((uint64_t)gpu->clock_reasons & reason->bit)) {
            if (gpu->process_count > 0) /* of a host that jobs share */
                check_skip(finding, PRINT("lowered: %s, while a process is on it: see the test "
                                          "'processes'",
                                          reason->words));
            else
                check_fail(finding, reason->words, "not lowered",
                           PRINT("clocks are lowered before any load: %s", reason->words));
            return;
        }
    check_pass(finding, "not lowered", "not lowered");
}

static void look_limit(struct check_run *run, int index, int attempt,
                       struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (isnan(gpu->power_limit_w) || isnan(gpu->power_default_w))
        unknown(run, finding, "the power limit and its default");
    else if (gpu->power_limit_w < (1 - CAP_TOLERANCE) * gpu->power_default_w)
        check_fail(finding, PRINT("%.0f W", gpu->power_limit_w),
                   PRINT("%.0f W", gpu->power_default_w),
                   PRINT("power limit is %.0f W, the default %.0f W", gpu->power_limit_w,
                         gpu->power_default_w));
    else
        check_pass(finding, PRINT("%.0f W", gpu->power_limit_w),
                   PRINT("%.0f W", gpu->power_default_w));
}

static void look_persistence(struct check_run *run, int index, int attempt,
                             struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (gpu->persistence < 0)
        unknown(run, finding, "persistence mode");
    else if (gpu->persistence == 0)
        check_fail(finding, "off", "on",
                   "persistence mode is off: the first use of the GPU takes seconds");
    else
        check_pass(finding, "on", "on");
}

/* --- placement and use --- */

/* A GPU whose switch has another one: both are near the same NUMA node. */
static const struct lab_pci *pci_of(const struct check_run *run, int gpu) {
    const char *address = check_gpu(run, gpu)->address;
    for (int i = 0; i < run->machine->pci_count; i++)
        if (lab_str_equal(run->machine->pci[i].address, address))
            return &run->machine->pci[i];
    return NULL;
}

static void look_node(struct check_run *run, int index, int attempt,
                      struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (run->machine->node_count < 2) {
        check_skip(finding, "the host has one NUMA node");
        return;
    }
    if (gpu->node < 0) {
        check_fail(finding, "not reported", "a NUMA node",
                   "the firmware reports no NUMA node for it");
        return;
    }
    const struct lab_pci *own = pci_of(run, index);
    for (int i = 0; own && i < run->devices->count; i++) {
        const struct lab_pci *other = i == index ? NULL : pci_of(run, i);
        if (!other || check_gpu(run, i)->node < 0 || check_gpu(run, i)->node == gpu->node ||
            lab_machine_link(run->machine, own, other) > LAB_LINK_PXB)
            continue;
        check_fail(finding, PRINT("NUMA node %d", gpu->node),
                   PRINT("NUMA node %d", check_gpu(run, i)->node),
                   PRINT("on NUMA node %d, but %s on its switch is on NUMA node %d", gpu->node,
                         check_gpu_name(run, i), check_gpu(run, i)->node));
        return;
    }
    check_pass(finding, PRINT("NUMA node %d", gpu->node), "a NUMA node");
}

static void look_memory(struct check_run *run, int index, int attempt,
                        struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    double used = (double)gpu->memory_used_bytes;
    const char *found = PRINT("%.1f GiB used", used / GIB), *wanted = "≤ 1.0 GiB used";
    if (gpu->memory_used_bytes < 0)
        unknown(run, finding, "used memory");
    else if (gpu->process_count > 0)
        check_skip(finding, "a process is on it: see the test 'processes'");
    else if (gpu->memory_used_bytes > USED_BYTES_MOST)
        check_fail(finding, found, wanted,
                   PRINT("%.1f GiB are used, though no process is listed", used / GIB));
    else
        check_pass(finding, found, wanted);
}

static void look_processes(struct check_run *run, int index, int attempt,
                           struct lab_check_finding *finding) {
    (void)attempt;
    const struct lab_gpu_health *gpu = begin(run, index, finding);
    if (!gpu)
        return;
    if (gpu->process_count < 0)
        unknown(run, finding, "processes");
    else if (gpu->process_count > 0)
        check_fail(finding, PRINT("%d", gpu->process_count), "0",
                   PRINT("a co-located process: pid %lld%s%s", (long long)gpu->processes[0].pid,
                         *gpu->processes[0].name ? " " : "", gpu->processes[0].name));
    else
        check_pass(finding, "0", "0");
}

const struct lab_check_test check_facts[] = {
    {"gpu_count", "GPUs", 1, LAB_CHECK_ISOLATE, .count = check_host, .look = look_count,
     .help = "a GPU of the PCI bus, or of the fleet's file, can't be used"},
    {"driver", "Driver version", 1, LAB_CHECK_RESET, .count = check_host, .look = look_driver,
     .help = "library and kernel module differ, or the fleet has another version"},
    {"answers", "Driver reaches the GPU", 1, LAB_CHECK_ISOLATE, .count = count_answers,
     .look = look_answers, .help = "the driver has lost the GPU"},
    {"pcie_width", "PCIe width", 1, LAB_CHECK_ISOLATE, .count = check_each_gpu, .look = look_width,
     .help = "the link has fewer lanes than both ends could use"},
    {"pcie_generation", "PCIe generation", 1, LAB_CHECK_ISOLATE, .count = check_each_gpu,
     .look = look_generation, .help = "the link runs at a lower speed than both ends could"},
    {"nvlink", "NVLinks active", 1, LAB_CHECK_RESET, .count = check_each_gpu, .look = look_nvlink,
     .help = "an NVLink isn't active"},
    {"fabric", "NVSwitch fabric", 1, LAB_CHECK_RESET, .count = check_each_gpu, .look = look_fabric,
     .help = "the GPU isn't registered with the fabric, or in another clique"},
    {"fabric_manager", "Fabric manager", 1, LAB_CHECK_RESET, .count = count_fabric,
     .look = look_manager, .help = "the service that configures NVSwitches doesn't run"},
    {"ecc", "Memory errors", 1, LAB_CHECK_RESET, .count = check_each_gpu, .look = look_ecc,
     .help = "uncorrected memory errors, many corrected ones, or ECC is off"},
    {"row_remap", "Memory rows", 1, LAB_CHECK_ISOLATE, .count = check_each_gpu, .look = look_rows,
     .help = "a row of memory could not be remapped, or waits for a reset"},
    {"xid", "Xid errors", 1, LAB_CHECK_RESET, .count = check_each_gpu, .look = look_xid,
     .help = "the driver wrote an error of the GPU to the kernel log since boot"},
    {"recovery", "Recovery action", 1, LAB_CHECK_RESET, .count = check_each_gpu,
     .look = look_recovery, .help = "the driver asks for a reset"},
    {"clocks", "Clocks", 1, LAB_CHECK_RESET, .count = check_each_gpu, .look = look_clocks,
     .help = "clocks are lowered by heat or the power brake, though nothing runs"},
    {"power_limit", "Power limit", 1, LAB_CHECK_MONITOR, .count = check_each_gpu,
     .look = look_limit, .help = "the power limit is below the GPU's default"},
    {"persistence", "Persistence mode", 1, LAB_CHECK_MONITOR, .count = check_each_gpu,
     .look = look_persistence, .help = "the driver unloads the GPU's state between programs"},
    {"numa_node", "NUMA node", 1, LAB_CHECK_MONITOR, .count = check_each_gpu, .look = look_node,
     .help = "the firmware reports no NUMA node, or another one than for its neighbour"},
    {"numa_balancing", "NUMA balancing", 1, LAB_CHECK_MONITOR, .count = count_balancing,
     .look = look_balancing, .help = "the kernel moves pages while programs run"},
    {"memory_free", "GPU memory free", 1, LAB_CHECK_RESET, .count = check_each_gpu,
     .look = look_memory, .help = "memory is used though no process is listed"},
    {"processes", "No co-located process", 1, LAB_CHECK_MONITOR, .count = check_each_gpu,
     .look = look_processes, .help = "a process of another job is on the GPU"},
    {NULL},
};
