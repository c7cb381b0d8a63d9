/*
 * vendor.c: the folders in which the vendor's libraries lie, and the list of what was found.
 *
 * Toolkits and PyTorch's wheels may be there in several versions at once. What a compiler of a
 * later major version makes, an older driver can't load, so libraries of the driver's major version
 * go first wherever they are, and others come only where there is none of those.
 */
#include "vendor/vendor.h"

#include "base/list.h"
#include "base/str.h"
#include "vendor/ask.h"
#include "vendor/cublaslt.h"
#include "vendor/cuda.h"
#include "vendor/cupti.h"
#include "vendor/nccl.h"
#include "vendor/nvml.h"
#include "vendor/nvrtc.h"

#include <glob.h>
#include <sys/stat.h>

#define DRIVER_BYTES 96
#define MAX_SONAMES  (sizeof((struct lab_dl_library *)0)->sonames / sizeof(const char *))

/* --- folders --- */

struct folders {
    const char **items; /* NULL-terminated */
    int count;
    struct lab_arena *arena;
};

static void folders_add(struct folders *folders, const char *folder) {
    LAB_ADD(folders->items, folders->count, folders->arena) =
        lab_arena_strdup(folders->arena, folder);
}

/* The last match first: of cuda-12.4 and cuda-13.0 the newer one. */
static void folders_glob(struct folders *folders, const char *pattern) {
    glob_t found;
    if (glob(pattern, GLOB_BRACE | GLOB_ONLYDIR, NULL, &found) == 0) {
        for (size_t i = found.gl_pathc; i > 0; i--)
            folders_add(folders, found.gl_pathv[i - 1]);
        globfree(&found);
    }
}

/* lib/python3.11/site-packages/nvidia/cublas/lib, and likewise below a few other roots. */
static void folders_of_wheels(struct folders *folders, const char *root) {
    if (root && *root)
        folders_glob(folders,
                     lab_arena_printf(folders->arena,
                                      "%s/lib/python3*/{site,dist}-packages/nvidia/*/lib", root));
}

/* Where libraries lie in a toolkit, by how it was installed. */
#define BELOW_TOOLKIT "{lib64,lib,targets/x86_64-linux/lib,extras/CUPTI/lib64}"

static void folders_read(struct folders *folders) {
    const char *home = getenv("HOME");
    folders_glob(folders, "/usr/local/cuda/" BELOW_TOOLKIT);
    folders_glob(folders, "/usr/local/cuda-*/" BELOW_TOOLKIT);
    folders_glob(folders, "/opt/cuda/" BELOW_TOOLKIT);
    folders_of_wheels(folders, getenv("VIRTUAL_ENV"));
    folders_of_wheels(folders, getenv("CONDA_PREFIX"));
    if (home && *home)
        folders_of_wheels(folders, lab_arena_printf(folders->arena, "%s/.local", home));
    folders_of_wheels(folders, "/usr/local");
    folders_of_wheels(folders, "/usr");
    folders_of_wheels(folders, "/opt/conda");
}

/* --- searching --- */

/* Sonames that end in the major version. */
static int pick(const struct lab_vendor_search *search, int major,
                const char *ret_names[MAX_SONAMES]) {
    char ending[16];
    int count = 0;
    snprintf(ending, sizeof ending, ".so.%d", major);
    for (size_t i = 0; i < MAX_SONAMES && search->sonames[i]; i++)
        if (lab_str_equal(strstr(search->sonames[i], ".so."), ending))
            ret_names[count++] = search->sonames[i];
    return count;
}

/* First where the user points to, then the loader's path and the usual folders. */
static void find_among(const struct lab_vendor_search *search, const char *const *names, int count,
                       const struct folders *folders, struct lab_dl_report *report) {
    struct lab_arena *arena = folders->arena;
    struct lab_dl_library library = {.title = search->title,
                                     .symbols = search->symbols,
                                     .effect = search->effect,
                                     .refused = "/stubs/"};
    static const char *const below[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                        "extras/CUPTI/lib64"};
    const char *home = getenv("CUDA_HOME");
    *report = (struct lab_dl_report){0};
    for (size_t k = 0; home && *home && k < sizeof below / sizeof *below; k++) {
        for (int i = 0; i < count; i++)
            library.sonames[i] = lab_arena_printf(arena, "%s/%s/%s", home, below[k], names[i]);
        lab_dl_load(&library, NULL, arena, report);
        if (report->handle)
            return;
    }
    for (int i = 0; i < count; i++)
        library.sonames[i] = names[i];
    lab_dl_load(&library, folders->items, arena, report);
}

static void find(const struct lab_vendor_search *search, struct lab_dl_report *ret_report) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct lab_arena arena; /* never released: its strings are given out for good */
    int major = lab_cuda_version() / 1000;
    LAB_AUTO_LOCK(&lock);
    struct folders folders = {.arena = &arena};
    folders_read(&folders);
    const char *names[MAX_SONAMES] = {NULL};
    int count = pick(search, major, names), all = 0;
    *ret_report = (struct lab_dl_report){0};
    if (count)
        find_among(search, names, count, &folders, ret_report);
    while (all < (int)MAX_SONAMES && search->sonames[all])
        all++;
    if (!ret_report->handle)
        find_among(search, search->sonames, all, &folders, ret_report);
}

void lab_vendor_load(struct lab_vendor_search *search, const struct lab_dl_report **ret_report) {
    if (!atomic_load_explicit(&search->loaded, memory_order_acquire)) {
        pthread_mutex_lock(&search->lock);
        if (!atomic_load_explicit(&search->loaded, memory_order_relaxed))
            find(search, &search->report);
        atomic_store_explicit(&search->loaded, true, memory_order_release);
        pthread_mutex_unlock(&search->lock);
    }
    if (ret_report)
        *ret_report = &search->report;
}

const char *lab_vendor_lacks(const struct lab_dl_symbol *symbols, const char *effect) {
    for (const struct lab_dl_symbol *symbol = symbols; symbol->name; symbol++) {
        void *address;
        memcpy(&address, symbol->slot, sizeof address);
        if (!address && lab_str_equal(symbol->effect, effect))
            return symbol->name;
    }
    return NULL;
}

/* --- whether a search would find the same --- */

static void add_place(struct lab_str *text, const char *path) {
    struct stat info;
    if (stat(path, &info) == 0)
        lab_str_printf(text, " %s@%lld.%09ld", path, (long long)info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec);
}

const char *lab_vendor_places(struct lab_arena *arena) {
    const char *home = getenv("CUDA_HOME"), *loader = getenv("LD_LIBRARY_PATH");
    struct folders folders = {.arena = arena};
    LAB_AUTO(str, text);
    lab_str_printf(&text, "CUDA_HOME=%s LD_LIBRARY_PATH=%s", home ? home : "",
                   loader ? loader : "");
    for (const char *part = loader; part && *part;) {
        size_t length = strcspn(part, ":");
        folders_add(&folders, lab_arena_printf(arena, "%.*s", (int)length, part));
        part += length + (part[length] == ':');
    }
    if (home && *home)
        folders_glob(&folders, lab_arena_printf(arena, "%s/" BELOW_TOOLKIT, home));
    folders_read(&folders);
    add_place(&text, "/etc/ld.so.cache");
    for (int i = 0; i < folders.count; i++)
        add_place(&text, folders.items[i]);
    for (char *at = text.text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    const char *line = lab_arena_strdup(arena, text.text);
    return line;
}

/* --- the list --- */

/* Each effect once, though several functions may have it. */
static const char **distinct(const char *const *effects, struct lab_arena *arena) {
    int count = 0, kept = 0;
    while (effects && effects[count])
        count++;
    const char **list = lab_arena_alloc(arena, (size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        if (lab_list_find_text(list, kept, effects[i]) < 0)
            list[kept++] = effects[i];
    }
    return list;
}

static struct lab_vendor_library describe(const char *title, const struct lab_dl_report *report,
                                          const char *effect, const char *version,
                                          struct lab_arena *arena) {
    struct lab_vendor_library library = {.title = title};
    if (!report->handle) {
        library.reason = lab_arena_strdup(arena, report->reason);
        library.effect = effect;
        return library;
    }
    library.path = lab_arena_strdup(arena, report->path);
    library.version = version;
    library.effects = distinct(report->effects, arena);
    return library;
}

/*
 * What belongs to a CUDA of its own needs a driver of that major version or a later one: an older
 * driver doesn't load what NVRTC compiles, and the runtime within cuBLASLt, like CUPTI, refuses it.
 * Of the driver's own major version any minor one will do.
 */
static struct lab_vendor_library describe_of_cuda(const char *title,
                                                  const struct lab_dl_report *report,
                                                  const char *effect, const char *version,
                                                  int major, struct lab_arena *arena) {
    struct lab_vendor_library library = describe(title, report, effect, version, arena);
    int driver = lab_cuda_version();
    if (!library.path || driver == 0 || major <= driver / 1000)
        return library;
    library.reason = lab_arena_printf(arena, "too new for the driver, which is for CUDA %d.%d",
                                      driver / 1000, driver % 1000 / 10);
    library.effect = effect;
    return library;
}

static void ask_driver_version(void *name) {
    const struct lab_nvml *nvml = lab_nvml_open(NULL);
    lab_ask_calling("nvmlSystemGetDriverVersion");
    if (nvml && nvml->nvmlSystemGetDriverVersion)
        nvml->nvmlSystemGetDriverVersion(name, DRIVER_BYTES);
}

static const char *driver_version(struct lab_arena *arena) {
    char *name = lab_mem_alloc(DRIVER_BYTES, 1);
    const char *kept = "";
    int version = lab_cuda_version();
    if (lab_ask(ask_driver_version, name, NULL) == 0) { /* else it is the driver's for ever */
        kept = lab_arena_strdup(arena, name);
        lab_mem_free(name);
    }
    return lab_arena_printf(arena, "%s%sCUDA %d.%d", kept, *kept ? ", " : "", version / 1000,
                            version % 1000 / 10);
}

static const char *nvrtc_version(struct lab_arena *arena) {
    int version = lab_nvrtc_version();
    return lab_arena_printf(arena, "%d.%d", version / 1000, version % 1000 / 10);
}

static const char *cublaslt_version(struct lab_arena *arena) {
    int version = (int)lab_cublaslt_version();
    return lab_arena_printf(arena, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static const char *nccl_version(struct lab_arena *arena) {
    int version = lab_nccl_version();
    if (!version)
        return NULL;
    return lab_arena_printf(arena, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

int lab_vendor_list(struct lab_arena *arena, struct lab_vendor_library **ret_libraries) {
    const struct lab_dl_report *report;
    struct lab_vendor_library *list = lab_arena_alloc(arena, 6, sizeof *list);
    int count = 0;
    lab_cuda_load(&report);
    bool driver = report->handle != NULL;
    list[count++] = describe("CUDA driver", report, LAB_CUDA_ESSENTIAL,
                             driver ? driver_version(arena) : NULL, arena);
    *ret_libraries = list;
    if (!driver)
        return count;
    lab_nvml_load(&report);
    list[count++] = describe("NVML", report, LAB_NVML_ESSENTIAL, NULL, arena);
    lab_nvrtc_load(&report);
    list[count++] = describe_of_cuda("NVRTC", report, LAB_NVRTC_ESSENTIAL, nvrtc_version(arena),
                                     lab_nvrtc_version() / 1000, arena);
    lab_cublaslt_load(&report);
    list[count++] = describe_of_cuda("cuBLASLt", report, LAB_LT_ESSENTIAL, cublaslt_version(arena),
                                     (int)(lab_cublaslt_version() / 10000), arena);
    lab_nccl_load(&report);
    list[count++] = describe("NCCL", report, LAB_NCCL_ESSENTIAL, nccl_version(arena), arena);
    lab_cupti_load(&report);
    list[count++] = describe_of_cuda("CUPTI", report, LAB_CUPTI_ESSENTIAL,
                                     lab_arena_printf(arena, "API %u", lab_cupti_version()),
                                     lab_cupti_cuda_major(), arena);
    return count;
}
