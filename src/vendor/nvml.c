/*
 * vendor/nvml.c: finds NVML through the loader alone, since it belongs to the kernel module; or,
 * for the demonstration, a library of our own that plays a machine.
 */
#include "vendor/nvml.h"

#include "base/cond.h"
#include "base/str.h"
#include "vendor/ask.h"
#include "vendor/vendor.h"

#include <stdatomic.h>
#include <unistd.h>

#define SONAME "libnvidia-ml.so.1"

static struct lab_nvml nvml;
static struct lab_dl_report report;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;     /* under the lock */
static char demo_path[1024]; /* "" = the driver's own */
static atomic_bool loaded;

#define ROW(name, effect, parameters) {#name, &nvml.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NVML_FUNCTIONS(ROW){"nvmlErrorString", &nvml.nvmlErrorString,
                            "its errors are shown as numbers"},
    {"nvmlDeviceGetConfComputeMemSizeInfo", &nvml.nvmlDeviceGetConfComputeMemSizeInfo, NULL},
    {"nvmlDeviceGetRunningProcessDetailList", &nvml.nvmlDeviceGetRunningProcessDetailList, NULL},
    {"lab_fake_nvml", &nvml.lab_fake_nvml, NULL},
    {NULL},
};
#undef ROW

/* A library that plays a driver says which functions that driver has. */
static void *find(const struct lab_dl_symbol *symbol,
                  void *(*lookup)(void *handle, const char *name), void *handle) {
    void *address = lookup(handle, "lab_fake_nvml");
    int (*has)(const char *function);
    memcpy(&has, &address, sizeof has);
    if (has && lab_str_starts(symbol->name, "nvml") && !has(symbol->name))
        return NULL;
    return lookup(handle, symbol->name);
}

/* Is there another function that does the same? */
static bool is_replaced(const char *name) {
#define PAIR(newer, older)                                                                         \
    if ((strcmp(name, #newer) == 0 && nvml.older) || (strcmp(name, #older) == 0 && nvml.newer))    \
        return true;
    LAB_NVML_REPLACED(PAIR)
#undef PAIR
    return false;
}

/* Leaves out what is missing but not missed. */
static void judge_effects(struct lab_arena *arena) {
    int count = 0;
    if (!report.handle)
        return;
    report.effects = lab_arena_alloc(arena, (size_t)report.missing + 1, sizeof *report.effects);
    for (const struct lab_dl_symbol *symbol = symbols; symbol->name; symbol++) {
        void *address;
        memcpy(&address, symbol->slot, sizeof address);
        if (!address && symbol->effect && !is_replaced(symbol->name))
            report.effects[count++] = symbol->effect;
    }
}

static void load(void) {
    struct lab_dl_library library = {.title = "NVML",
                                     .sonames = {*demo_path ? demo_path : SONAME},
                                     .symbols = symbols,
                                     .effect = LAB_NVML_ESSENTIAL,
                                     .refused = "/stubs/",
                                     .find = find};
    static struct lab_arena arena; /* never released: its strings are given out for good */
    atomic_store(&loaded, true);
    lab_arena_init(&arena);
    lab_dl_load(&library, NULL, &arena, &report);
    judge_effects(&arena);
}

const struct lab_nvml *lab_nvml_load(const struct lab_dl_report **ret_report) {
    pthread_once(&once, load);
    if (ret_report)
        *ret_report = &report;
    return &nvml;
}

/* A kernel module may be loaded later, and a GPU may come back; a library that doesn't fit the
 * module stays what it is for as long as this process lives. */
static bool may_pass(lab_nvml_result result) {
    return result == LAB_NVML_UNINITIALIZED || result == LAB_NVML_DRIVER_NOT_LOADED ||
           result == LAB_NVML_GPU_IS_LOST || result == LAB_NVML_UNKNOWN;
}

static int initialise(struct lab_err *err) {
    if (!report.handle)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "no NVIDIA driver: %s", report.reason);
    const char *lacking = lab_vendor_lacks(symbols, LAB_NVML_ESSENTIAL);
    if (lacking)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s lacks %s: the driver is too old",
                           report.path, lacking);
    lab_ask_calling("nvmlInit_v2");
    lab_nvml_result result = nvml.nvmlInit_v2();
    if (result == LAB_NVML_SUCCESS)
        return 0;
    return lab_err_set(err, may_pass(result) ? LAB_ERR_SYSTEM : LAB_ERR_UNSUPPORTED,
                       "%s (nvmlInit: %d)", lab_nvml_words(&nvml, result), result);
}

const struct lab_nvml *lab_nvml_open(struct lab_err *err) {
    lab_nvml_load(NULL);
    LAB_AUTO_LOCK(&open_lock);
    if (!initialised)
        initialised = initialise(err) == 0;
    return initialised ? &nvml : NULL;
}

/* --- the demonstration --- */

const char *lab_nvml_demo_folder(struct lab_arena *arena) {
    static const char *const beside[] = {"fake", "../lib/gpulab/demo"};
    char program[1024];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const char *folder = lab_arena_printf(arena, "%s/%s", program, beside[i]);
        if (access(lab_arena_printf(arena, "%s/" SONAME, folder), R_OK) == 0)
            return folder;
    }
    return NULL;
}

bool lab_nvml_is_demo(void) {
    return *demo_path != '\0';
}

int lab_nvml_use_demo(struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *folder = lab_nvml_demo_folder(&arena);
    int result = 0;
    if (atomic_load(&loaded))
        result = lab_err_set(err, LAB_ERR_SYSTEM,
                             "NVML is loaded already: too late for the "
                             "demonstration");
    else if (!folder)
        result = lab_err_set(err, LAB_ERR_SYSTEM,
                             "the demonstration's library (" SONAME ") is neither in fake/ next to "
                             "the program nor in "
                             "../lib/gpulab/demo: install "
                             "gpulab with `make install`");
    else if ((size_t)snprintf(demo_path, sizeof demo_path, "%s/" SONAME, folder) >=
             sizeof demo_path) {
        *demo_path = '\0';
        result = lab_err_set(err, LAB_ERR_SYSTEM, "the path %s is too long", folder);
    } else
        setenv("GPULAB_FAKE_NVML", "demo", 0);
    return result;
}

bool lab_nvml_simulated(const struct lab_nvml *table) {
    return table->lab_fake_nvml;
}

/* --- small things --- */

size_t lab_nvml_process_bytes(const struct lab_nvml *table) {
    bool first =
        table->nvmlDeviceGetConfComputeMemSizeInfo && !table->nvmlDeviceGetRunningProcessDetailList;
    return first ? sizeof(struct lab_nvml_process_v3) : sizeof(struct lab_nvml_process_v2);
}

const char *lab_nvml_words(const struct lab_nvml *table, lab_nvml_result result) {
    switch (result) {
    case LAB_NVML_UNINITIALIZED:
        return "NVML lost its connection to the driver";
    case LAB_NVML_NO_PERMISSION:
        return "the driver doesn't allow it";
    case LAB_NVML_DRIVER_NOT_LOADED:
        return "the NVIDIA driver is not loaded";
    case LAB_NVML_TIMEOUT:
        return "the driver gave no answer in time";
    case LAB_NVML_GPU_IS_LOST:
        return "the GPU is lost: it fell off the bus or was taken out";
    case LAB_NVML_RESET_REQUIRED:
        return "the GPU must be reset before it works again";
    case LAB_NVML_OPERATING_SYSTEM:
        return "the operating system (a cgroup, say) blocks the GPU";
    case LAB_NVML_LIB_RM_VERSION_MISMATCH:
        return "NVML and the kernel's driver differ in version: reboot, or reload the driver";
    case LAB_NVML_NOT_FOUND:
    case LAB_NVML_GPU_NOT_FOUND:
        return "the GPU is not there any more";
    case LAB_NVML_UNKNOWN:
        return "the driver met an error that it can't name";
    default:
        return table->nvmlErrorString ? table->nvmlErrorString(result) : "the driver refuses";
    }
}
