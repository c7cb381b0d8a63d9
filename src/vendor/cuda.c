/*
 * vendor/cuda.c: finds the driver through the loader alone: a copy from a toolkit's folder would be
 * a stub or belong to another kernel module.
 */
#include "vendor/cuda.h"

#include <ctype.h>
#include <pthread.h>

typedef lab_cu_result get_proc_address(const char *name, void **ret_function, int version,
                                       uint64_t flags, lab_cu_query_result *ret_status);

static struct lab_cuda cuda;
static struct lab_dl_report report;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define ROW(name, suffix, version, effect, parameters) {#name #suffix, &cuda.name, effect, version},
static const struct lab_dl_symbol symbols[] = {LAB_CUDA_FUNCTIONS(ROW){NULL}};
#undef ROW

/* The function's name without the "_v2" that its symbol carries. */
static void plain_name(const char *symbol, char *ret_name, size_t size) {
    size_t length = strlen(symbol);
    size_t digits = length;
    while (digits > 0 && isdigit((unsigned char)symbol[digits - 1]))
        digits--;
    if (digits < length && digits >= 2 && symbol[digits - 1] == 'v' && symbol[digits - 2] == '_')
        length = digits - 2;
    snprintf(ret_name, size, "%.*s", (int)length, symbol);
}

/* A name alone may mean a later signature than ours in a later driver: the version says which. */
static void *find(const struct lab_dl_symbol *symbol,
                  void *(*lookup)(void *handle, const char *name), void *handle) {
    get_proc_address *get;
    void *address = lookup(handle, "cuGetProcAddress_v2"), *function = NULL;
    char name[80];
    lab_cu_query_result status = 0;
    memcpy(&get, &address, sizeof get);
    plain_name(symbol->name, name, sizeof name);
    if (!get) /* a driver for CUDA 11 */
        return lookup(handle, symbol->name);
    if (get(name, &function, symbol->version, 0, &status) != LAB_CU_SUCCESS || status != 0)
        return NULL;
    return function;
}

static void load(void) {
    static const struct lab_dl_library library = {.title = "CUDA driver",
                                                  .sonames = {"libcuda.so.1"},
                                                  .symbols = symbols,
                                                  .effect = LAB_CUDA_ESSENTIAL,
                                                  .refused = "/stubs/",
                                                  .find = find};
    static struct lab_arena arena; /* never released: its strings are given out for good */
    lab_arena_init(&arena);
    lab_dl_load(&library, NULL, &arena, &report);
}

const struct lab_cuda *lab_cuda_load(const struct lab_dl_report **ret_report) {
    pthread_once(&once, load);
    if (ret_report)
        *ret_report = &report;
    return &cuda;
}

const char *lab_cuda_lacks(void) {
    lab_cuda_load(NULL);
#define CHECK(name, suffix, version, effect, parameters)                                           \
    if (!cuda.name && strcmp(effect, LAB_CUDA_ESSENTIAL) == 0)                                     \
        return #name;
    LAB_CUDA_FUNCTIONS(CHECK)
#undef CHECK
    return NULL;
}

int lab_cuda_version(void) {
    int version = 0;
    const struct lab_cuda *driver = lab_cuda_load(NULL);
    if (!driver->cuDriverGetVersion || driver->cuDriverGetVersion(&version) != LAB_CU_SUCCESS)
        return 0;
    return version;
}
