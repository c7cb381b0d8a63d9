/* vendor/nvrtc.c: finds NVRTC in toolkits and in PyTorch's wheels. */
#include "vendor/nvrtc.h"

#include "vendor/vendor.h"

static struct lab_nvrtc nvrtc;

#define ROW(name, effect, parameters) {#name, &nvrtc.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NVRTC_FUNCTIONS(ROW){"nvrtcGetErrorString", &nvrtc.nvrtcGetErrorString,
                             "its errors are shown as numbers"},
    {NULL},
};
#undef ROW

static struct lab_vendor_search search = {
    .title = "NVRTC",
    .sonames = {"libnvrtc.so.13", "libnvrtc.so.12"},
    .symbols = symbols,
    .effect = LAB_NVRTC_ESSENTIAL,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct lab_nvrtc *lab_nvrtc_load(const struct lab_dl_report **ret_report) {
    lab_vendor_load(&search, ret_report);
    return &nvrtc;
}

bool lab_nvrtc_ready(void) {
    lab_nvrtc_load(NULL);
    return !lab_vendor_lacks(symbols, LAB_NVRTC_ESSENTIAL);
}

int lab_nvrtc_version(void) {
    int major = 0, minor = 0;
    lab_nvrtc_load(NULL);
    if (!nvrtc.nvrtcVersion || nvrtc.nvrtcVersion(&major, &minor) != LAB_NVRTC_SUCCESS)
        return 0;
    return 1000 * major + 10 * minor;
}
