/*
 * examine.c: the checks of `gpulab doctor`, a row each in the table at the end. A check looks at
 * one thing, as the part of the program that needs it would, and says what its lack costs and which
 * line mends it.
 */
#include "command/doctor/doctor.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/subprocess.h"
#include "device/device.h"
#include "device/kernel_cache.h"
#include "machine/limit.h"
#include "machine/machine.h"
#include "plot/plot.h"
#include "run/folder.h"
#include "session/lease.h"
#include "vendor/cuda.h"
#include "vendor/vendor.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NVIDIA          0x10de
#define CAP_IPC_LOCK    14
#define CAP_SYS_ADMIN   21
#define SMALL_FILE      (64u << 10)
#define FREE_DISK_BYTES ((double)(1u << 30)) /* a large study with traces */
#define CLOCK_READS     10000
#define CLOCK_SLOW_NS   300 /* a clock that the kernel has to be asked for takes more */

struct exam {
    struct lab_arena *arena;
    struct lab_machine *machine; /* NULL: it can't be read */
    struct lab_err err;          /* why */
    struct lab_vendor_library *libraries;
    int library_count;
    int gpus, usable; /* NVIDIA GPUs on the PCI bus, and those that CUDA offers */
    const char *why_none;
};

/* --- how a check ends --- */

static bool ok(struct lab_doctor_finding *finding, const char *found) {
    finding->found = found;
    return true;
}

static bool lacks(struct lab_doctor_finding *finding, enum lab_doctor_state state,
                  const char *found, const char *cost, const char *mend) {
    *finding =
        (struct lab_doctor_finding){finding->check, finding->essential, state, found, cost, mend};
    return true;
}

static const char *size_text(double bytes, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_bytes_binary(&text, bytes);
    return lab_arena_strdup(arena, text.text);
}

/* A small file of the kernel's without its last newline; "" where there is none. */
static const char *kernel_text(const char *path, struct lab_arena *arena) {
    char *text;
    size_t length;
    if (lab_file_read(path, SMALL_FILE, arena, &text, &length, NULL))
        return "";
    if (length && text[length - 1] == '\n')
        text[length - 1] = '\0';
    return text;
}

static bool may(int capability, struct lab_arena *arena) {
    const char *row = strstr(kernel_text("/proc/self/status", arena), "CapEff:");
    return row && strtoull(row + strlen("CapEff:"), NULL, 16) >> capability & 1;
}

/* --- the machine --- */

/* Without it nothing can be said about NUMA nodes, huge pages and GPUs that aren't seen. */
static bool has_sysfs(void) {
    return access("/sys/kernel", F_OK) == 0;
}

static bool look_topology(struct exam *exam, struct lab_doctor_finding *finding) {
    if (!exam->machine)
        return lacks(finding, LAB_DOCTOR_MISSING, lab_arena_strdup(exam->arena, exam->err.text),
                     "no device can be placed or measured",
                     "mount -t proc proc /proc && mount -t sysfs sysfs /sys");
    if (!has_sysfs())
        return lacks(finding, LAB_DOCTOR_LIMITED, "read without /sys, which isn't mounted",
                     "NUMA nodes, caches and PCI devices aren't seen", "mount -t sysfs sysfs /sys");
    return ok(finding, lab_arena_printf(exam->arena, "%s, %d cores",
                                        *exam->machine->cpu_model ? exam->machine->cpu_model
                                                                  : "CPU of unknown model",
                                        exam->machine->core_count));
}

static bool look_cpus(struct exam *exam, struct lab_doctor_finding *finding) {
    struct lab_cpus allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    double quota = lab_limit_cpus();
    if (quota >= 0 && quota < (double)online)
        return lacks(finding, LAB_DOCTOR_LIMITED,
                     lab_arena_printf(exam->arena, "time of %.3g CPUs, of %ld", quota, online),
                     "the kernel pauses threads once their time is used up: iterations scatter",
                     "Give the container whole CPUs: --cpuset-cpus instead of --cpus");
    if (lab_bind_read_cpus(0, &allowed, NULL) < 0)
        return false;
    int count = allowed.count;
    lab_mem_free(allowed.items);
    if (count < online)
        return lacks(finding, LAB_DOCTOR_LIMITED,
                     lab_arena_printf(exam->arena, "%d of %ld", count, online),
                     "placements on the other CPUs and their NUMA nodes can't be measured",
                     "Start it with all CPUs: srun --exclusive, docker --cpuset-cpus, taskset");
    return ok(finding, lab_arena_printf(exam->arena, "all %ld", online));
}

static bool look_memory(struct exam *exam, struct lab_doctor_finding *finding) {
    double total = 0;
    for (int i = 0; exam->machine && i < exam->machine->node_count; i++)
        total += (double)exam->machine->nodes[i].memory_bytes;
    int64_t left = lab_limit_memory_left();
    const char *all = size_text(total, exam->arena);
    if (left >= 0 && (double)left < total)
        return lacks(finding, LAB_DOCTOR_LIMITED,
                     lab_arena_printf(exam->arena, "%s left of %s by a limit of its control group",
                                      size_text((double)left, exam->arena), all),
                     "runs that need more are ended by the kernel",
                     "Raise the limit: docker --memory, srun --mem=0, systemd MemoryMax=");
    return exam->machine ? ok(finding, all) : false;
}

static bool look_numa(struct exam *exam, struct lab_doctor_finding *finding) {
    int64_t balancing = 0;
    if (!exam->machine || !has_sysfs())
        return false;
    if (!exam->machine->numa_in_kernel)
        return lacks(finding, LAB_DOCTOR_LIMITED, "a kernel without NUMA",
                     "memory can't be placed, and where it lies can't be checked",
                     "Boot a kernel with CONFIG_NUMA=y");
    int nodes = exam->machine->node_count;
    const char *found =
        lab_arena_printf(exam->arena, "%d NUMA %s", nodes, nodes == 1 ? "node" : "nodes");
    if (nodes > 1 && !lab_file_read_int("/proc/sys/kernel/numa_balancing", &balancing) && balancing)
        return lacks(finding, LAB_DOCTOR_LIMITED,
                     lab_arena_printf(exam->arena, "%s, pages are balanced", found),
                     "the kernel moves pages during runs, which then fail their placement check",
                     "sudo sysctl kernel.numa_balancing=0");
    return ok(finding, found);
}

/* As a run does it: a page on a node, and where it is by the kernel's own word. */
static bool look_placement(struct exam *exam, struct lab_doctor_finding *finding) {
    struct lab_err err = LAB_ERR_INIT;
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *memory;
    if (!exam->machine)
        return false;
    int node = exam->machine->nodes[0].number;
    int result = lab_memory_map(exam->machine, node, size, LAB_MEMORY_TOUCH, &memory, &err);
    if (!result) {
        result = lab_memory_prove(exam->machine, memory, size, node, &err);
        lab_memory_unmap(memory, size);
    }
    if (!result)
        return ok(finding, "checked page by page");
    return lacks(finding, LAB_DOCTOR_LIMITED, lab_arena_strdup(exam->arena, err.text),
                 "runs that are to prove where their memory lies fail",
                 err.hint ? lab_hint(err.hint)->text : NULL);
}

static bool look_huge_pages(struct exam *exam, struct lab_doctor_finding *finding) {
#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/enabled"
    const char *modes = kernel_text(HUGE_PAGES, exam->arena);
    if (!has_sysfs())
        return false;
    if (!*modes)
        return lacks(finding, LAB_DOCTOR_MISSING, "a kernel without transparent huge pages",
                     "host buffers lie in small pages, whose TLB misses take time",
                     "Boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y");
    if (strstr(modes, "[never]"))
        return lacks(finding, LAB_DOCTOR_MISSING, "switched off",
                     "host buffers lie in small pages, whose TLB misses take time",
                     "echo madvise | sudo tee " HUGE_PAGES);
    return ok(finding, strstr(modes, "[always]") ? "always" : "where asked for");
}

static bool look_locked(struct exam *exam, struct lab_doctor_finding *finding) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return false;
    if (limit.rlim_cur == RLIM_INFINITY || may(CAP_IPC_LOCK, exam->arena))
        return ok(finding, "unlimited");
    return lacks(finding, LAB_DOCTOR_LIMITED, size_text((double)limit.rlim_cur, exam->arena),
                 "larger host buffers aren't locked: the kernel may swap them out",
                 "ulimit -l unlimited; docker --ulimit memlock=-1; or memlock in limits.conf");
}

static bool look_clock(struct exam *exam, struct lab_doctor_finding *finding) {
    const struct lab_clock *clock = lab_clock_system();
    const char *source = kernel_text(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource", exam->arena);
    int64_t best_ns = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        int64_t start_ns = lab_clock_now(clock), end_ns = start_ns;
        for (int i = 0; i < CLOCK_READS; i++)
            end_ns = lab_clock_now(clock);
        best_ns = end_ns - start_ns < best_ns ? end_ns - start_ns : best_ns;
    }
    double each_ns = (double)best_ns / CLOCK_READS;
    const char *found = lab_arena_printf(exam->arena, "%s, %.0f ns a reading",
                                         *source ? source : "unknown source", each_ns);
    if (each_ns < CLOCK_SLOW_NS)
        return ok(finding, found);
    return lacks(finding, LAB_DOCTOR_LIMITED, found,
                 "each reading asks the kernel: short iterations take longer when timed",
                 "Boot with clocksource=tsc, where the CPU's counter is steady");
}

static bool look_processes(struct exam *exam, struct lab_doctor_finding *finding) {
    (void)exam;
    if (access("/proc/1/stat", R_OK) == 0)
        return ok(finding, "those of all users");
    return lacks(finding, LAB_DOCTOR_LIMITED, "your own alone",
                 "top, record and runs don't see other users' processes",
                 "sudo mount -o remount,hidepid=0 /proc");
}

/* --- GPUs --- */

/* In a container the kernel's part is there without the libraries. */
static const char *mend_driver(void) {
    return access("/proc/driver/nvidia/version", F_OK) == 0
               ? "Start the container with GPUs: docker --gpus all, apptainer --nv"
               : "sudo apt install nvidia-driver";
}

static bool look_gpus(struct exam *exam, struct lab_doctor_finding *finding) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (exam->gpus == 0 && exam->usable == 0)
        return has_sysfs() && lacks(finding, LAB_DOCTOR_MISSING, "no NVIDIA GPU in this machine",
                                    "CPUs and simulated machines are measured", NULL);
    if (exam->usable >= exam->gpus)
        return ok(finding, lab_arena_printf(exam->arena, "%d usable", exam->usable));
    finding->essential = exam->usable == 0;
    const char *mend = visible ? "unset CUDA_VISIBLE_DEVICES" : mend_driver();
    const char *found = lab_arena_printf(exam->arena, "%d of %d usable", exam->usable, exam->gpus);
    if (exam->usable == 0 && exam->why_none)
        found = lab_arena_printf(exam->arena, "%s: %s", found, exam->why_none);
    return lacks(finding, exam->usable ? LAB_DOCTOR_LIMITED : LAB_DOCTOR_MISSING, found,
                 exam->usable ? "the others are neither measured nor compared"
                              : "no GPU can be measured",
                 mend);
}

/* The vendor's wheels, which are looked for in virtual environments and in ~/.local. */
static const char *mend_library(const struct exam *exam, const char *title) {
    static const char *const wheels[][3] = {
        {"NVRTC", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"},
        {"cuBLASLt", "nvidia-cublas-cu12", "nvidia-cublas"},
        {"NCCL", "nvidia-nccl-cu12", "nvidia-nccl-cu13"},
        {"CUPTI", "nvidia-cuda-cupti-cu12", "nvidia-cuda-cupti"},
    };
    for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++)
        if (lab_str_equal(wheels[i][0], title))
            return lab_arena_printf(exam->arena, "python3 -m pip install --user %s",
                                    wheels[i][lab_cuda_version() >= 13000 ? 2 : 1]);
    return lab_str_equal(title, "NVML")
               ? "Give the container NVIDIA_DRIVER_CAPABILITIES=compute,utility"
               : mend_driver();
}

static bool look_library(struct exam *exam, struct lab_doctor_finding *finding) {
    const struct lab_vendor_library *library = NULL;
    for (int i = 0; i < exam->library_count; i++)
        if (lab_str_equal(exam->libraries[i].title, finding->check))
            library = &exam->libraries[i];
    if (!library || (!library->path && exam->gpus == 0 && library == exam->libraries))
        return false; /* not looked for without a driver; a driver not without a GPU */
    const char *version = library->version ? library->version : "found";
    if (library->reason)
        return lacks(finding, LAB_DOCTOR_MISSING,
                     library->path
                         ? lab_arena_printf(exam->arena, "%s, %s", version, library->reason)
                         : library->reason,
                     library->effect, mend_library(exam, library->title));
    if (library->effects[0])
        return lacks(finding, LAB_DOCTOR_LIMITED,
                     lab_arena_printf(exam->arena, "%s, without some functions", version),
                     library->effects[0], "Install a later version of NVIDIA's driver");
    return ok(finding, version);
}

static bool look_profiling(struct exam *exam, struct lab_doctor_finding *finding) {
    const char *params = kernel_text("/proc/driver/nvidia/params", exam->arena);
    if (!*params)
        return false;
    if (!strstr(params, "RmProfilingAdminOnly: 1"))
        return ok(finding, "open to all users");
    if (may(CAP_SYS_ADMIN, exam->arena))
        return ok(finding, "for root, as here");
    return lacks(finding, LAB_DOCTOR_LIMITED, "for root alone",
                 "traces of GPUs (run trace=true) are refused",
                 "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo tee "
                 "/etc/modprobe.d/gpulab.conf && sudo reboot");
}

/* --- programs and folders --- */

static bool look_gnuplot(struct exam *exam, struct lab_doctor_finding *finding) {
    const char *const argv[] = {"gnuplot", "--version", NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = 200, .timeout_ns = 10 * LAB_NS_PER_S};
    struct lab_subprocess_result result = {0};
    if (lab_subprocess_run(&spec, exam->arena, &result, NULL) < 0 || result.exit_status != 0)
        return lacks(finding, LAB_DOCTOR_MISSING, "not installed",
                     "charts come as SVG alone, without PNG and PDF", "sudo " LAB_PLOT_GET);
    result.out[strcspn(result.out, "\n")] = '\0';
    return ok(finding, result.out);
}

/* Whether the folder can be written to, or made. */
static bool can_write(const char *folder, struct lab_arena *arena) {
    char *path = lab_arena_strdup(arena, folder);
    while (*path && access(path, F_OK) < 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return access(".", W_OK | X_OK) == 0;
        slash[slash == path] = '\0'; /* of "/name" the root stays */
    }
    return access(path, W_OK | X_OK) == 0;
}

static bool look_outputs(struct exam *exam, struct lab_doctor_finding *finding) {
    struct statvfs disk;
    if (!can_write("outputs", exam->arena))
        return lacks(finding, LAB_DOCTOR_MISSING, "this folder can't be written to",
                     "no study can be stored here",
                     "cd to a folder of yours, or give output_dir=FOLDER");
    if (statvfs(".", &disk) < 0)
        return ok(finding, "writable");
    double bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    const char *found = lab_arena_printf(exam->arena, "%s free", size_text(bytes, exam->arena));
    if (bytes < FREE_DISK_BYTES)
        return lacks(finding, LAB_DOCTOR_LIMITED, found, "long studies and recordings may fill it",
                     "gpulab clean shows which studies can go; or give output_dir=FOLDER");
    return ok(finding, found);
}

static bool look_folder(struct exam *exam, struct lab_doctor_finding *finding, const char *folder,
                        const char *cost, const char *variable) {
    if (folder && can_write(folder, exam->arena))
        return ok(finding, folder);
    return lacks(finding, LAB_DOCTOR_MISSING,
                 folder ? lab_arena_printf(exam->arena, "%s can't be written to", folder)
                        : "HOME isn't set",
                 cost, lab_arena_printf(exam->arena, "export %s=/tmp/$USER", variable));
}

static bool look_cache(struct exam *exam, struct lab_doctor_finding *finding) {
    return look_folder(exam, finding, lab_kernel_cache_folder(exam->arena),
                       "each run compiles its kernels again; tuning results are lost",
                       "XDG_CACHE_HOME");
}

static bool look_state(struct exam *exam, struct lab_doctor_finding *finding) {
    return look_folder(exam, finding, lab_folder_state(exam->arena),
                       "list, show and status find only studies below this folder",
                       "XDG_STATE_HOME");
}

static bool look_leases(struct exam *exam, struct lab_doctor_finding *finding) {
    struct lab_err err = LAB_ERR_INIT;
    struct stat info;
    const char *folder = lab_lease_folder(exam->arena, &err);
    if (!folder)
        return lacks(finding, LAB_DOCTOR_MISSING, lab_arena_strdup(exam->arena, err.text),
                     "devices can't be reserved, so nothing is measured",
                     "export GPULAB_LOCK_DIR=FOLDER, the same for all users");
    if (stat(folder, &info) == 0 && !(info.st_mode & S_IWOTH) && info.st_uid == geteuid() &&
        geteuid() != 0)
        return lacks(finding, LAB_DOCTOR_LIMITED, folder,
                     "another user may measure the same device at the same time",
                     "export GPULAB_LOCK_DIR=/tmp");
    return ok(finding, folder);
}

/* --- all of them --- */

static const struct check {
    const char *name;
    bool essential;
    /* false: it has no meaning here, and is left out */
    bool (*look)(struct exam *exam, struct lab_doctor_finding *finding);
} checks[] = {
    {"topology", true, look_topology},
    {"CPUs", false, look_cpus},
    {"memory", false, look_memory},
    {"NUMA", false, look_numa},
    {"page placement", false, look_placement},
    {"huge pages", false, look_huge_pages},
    {"locked memory", false, look_locked},
    {"clock", false, look_clock},
    {"processes", false, look_processes},
    {"GPUs", false, look_gpus},
    {"CUDA driver", false, look_library},
    {"NVML", false, look_library},
    {"NVRTC", false, look_library},
    {"cuBLASLt", false, look_library},
    {"NCCL", false, look_library},
    {"CUPTI", false, look_library},
    {"GPU profiling", false, look_profiling},
    {"gnuplot", false, look_gnuplot},
    {"outputs", true, look_outputs},
    {"cache", false, look_cache},
    {"state", false, look_state},
    {"leases", true, look_leases},
};
#define CHECKS (int)(sizeof checks / sizeof *checks)

static void count_gpus(struct exam *exam) {
    struct lab_device_offer *offers;
    for (int i = 0; i < exam->machine->pci_count; i++)
        exam->gpus +=
            exam->machine->pci[i].vendor_id == NVIDIA && lab_pci_is_gpu(&exam->machine->pci[i]);
    int count = lab_device_offers(exam->machine, exam->arena, &offers);
    for (int i = 0; i < count; i++)
        if (lab_str_equal(offers[i].backend, "cuda")) {
            exam->usable = offers[i].devices.count;
            exam->why_none = offers[i].why_none;
        }
}

int lab_doctor_examine(struct lab_arena *arena, struct lab_doctor_finding **ret_findings) {
    struct exam exam = {.arena = arena, .err = LAB_ERR_INIT};
    struct lab_doctor_finding *findings = lab_arena_alloc(arena, CHECKS, sizeof *findings);
    int count = 0;
    if (lab_machine_open(NULL, &exam.machine, &exam.err) < 0)
        exam.machine = NULL;
    else
        count_gpus(&exam);
    exam.library_count = lab_vendor_list(arena, &exam.libraries);
    for (const struct check *check = checks; check < checks + CHECKS; check++) {
        findings[count] =
            (struct lab_doctor_finding){.check = check->name, .essential = check->essential};
        count += check->look(&exam, &findings[count]);
    }
    lab_machine_close(exam.machine);
    *ret_findings = findings;
    return count;
}
