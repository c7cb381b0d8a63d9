/* vendor/nvml.c: finds NVML through the loader alone, since it belongs to the kernel module. */
#include "vendor/nvml.h"

#include <pthread.h>

static struct lab_nvml nvml;
static struct lab_dl_report report;
static pthread_once_t once = PTHREAD_ONCE_INIT, open_once = PTHREAD_ONCE_INIT;
static char why_not[200];

#define ROW(name, effect, parameters) {#name, &nvml.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NVML_FUNCTIONS(ROW){"nvmlErrorString", &nvml.nvmlErrorString,
                            "its errors are shown as numbers"},
    {NULL},
};
#undef ROW

static void load(void) {
    static const struct lab_dl_library library = {.title = "NVML",
                                                  .sonames = {"libnvidia-ml.so.1"},
                                                  .symbols = symbols,
                                                  .effect = LAB_NVML_ESSENTIAL,
                                                  .refused = "/stubs/"};
    static struct lab_arena arena; /* never released: its strings are given out for good */
    lab_arena_init(&arena);
    lab_dl_load(&library, NULL, &arena, &report);
}

const struct lab_nvml *lab_nvml_load(const struct lab_dl_report **ret_report) {
    pthread_once(&once, load);
    if (ret_report)
        *ret_report = &report;
    return &nvml;
}

static const char *lacks(void) {
#define CHECK(name, effect, parameters)                                                            \
    if (!nvml.name && strcmp(effect, LAB_NVML_ESSENTIAL) == 0)                                     \
        return #name;
    LAB_NVML_FUNCTIONS(CHECK)
#undef CHECK
    return NULL;
}

static void initialise(void) {
    lab_nvml_load(NULL);
    if (!report.handle) {
        snprintf(why_not, sizeof why_not, "%s", report.reason);
        return;
    }
    if (lacks()) {
        snprintf(why_not, sizeof why_not, "%s lacks %s: the driver is too old", report.path,
                 lacks());
        return;
    }
    lab_nvml_result result = nvml.nvmlInit_v2();
    if (result == LAB_NVML_SUCCESS)
        return;
    const char *text = nvml.nvmlErrorString ? nvml.nvmlErrorString(result) : "error";
    snprintf(why_not, sizeof why_not, "nvmlInit: %s (%d)", text, result);
}

const struct lab_nvml *lab_nvml_open(const char **ret_why) {
    pthread_once(&open_once, initialise);
    if (!*why_not)
        return &nvml;
    if (ret_why)
        *ret_why = why_not;
    return NULL;
}
