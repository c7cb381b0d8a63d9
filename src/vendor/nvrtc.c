/* vendor/nvrtc.c: finds NVRTC in toolkits and in PyTorch's wheels. */
#include "vendor/nvrtc.h"

#include "vendor/vendor.h"

#include <pthread.h>

static struct lab_nvrtc nvrtc;
static struct lab_dl_report report;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define ROW(name, effect, parameters) {#name, &nvrtc.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NVRTC_FUNCTIONS(ROW){"nvrtcGetErrorString", &nvrtc.nvrtcGetErrorString,
                             "its errors are shown as numbers"},
    {NULL},
};
#undef ROW

static void load(void) {
    lab_vendor_find(
        &(struct lab_vendor_search){
            .title = "NVRTC",
            .sonames = {"libnvrtc.so.13", "libnvrtc.so.12"},
            .symbols = symbols,
            .effect = LAB_NVRTC_ESSENTIAL,
        },
        &report);
}

const struct lab_nvrtc *lab_nvrtc_load(const struct lab_dl_report **ret_report) {
    pthread_once(&once, load);
    if (ret_report)
        *ret_report = &report;
    return &nvrtc;
}

bool lab_nvrtc_ready(void) {
    lab_nvrtc_load(NULL);
#define CHECK(name, effect, parameters)                                                            \
    if (!nvrtc.name && strcmp(effect, LAB_NVRTC_ESSENTIAL) == 0)                                   \
        return false;
    LAB_NVRTC_FUNCTIONS(CHECK)
#undef CHECK
    return true;
}

int lab_nvrtc_version(void) {
    int major = 0, minor = 0;
    lab_nvrtc_load(NULL);
    if (!nvrtc.nvrtcVersion || nvrtc.nvrtcVersion(&major, &minor) != LAB_NVRTC_SUCCESS)
        return 0;
    return 1000 * major + 10 * minor;
}
