/* vendor/nccl.c: finds NCCL in the loader's path, in toolkits and in PyTorch's wheels. */
#include "vendor/nccl.h"

#include "vendor/vendor.h"

static struct lab_nccl nccl;

#define ROW(name, effect, parameters) {#name, &nccl.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NCCL_FUNCTIONS(ROW){"ncclGetErrorString", &nccl.ncclGetErrorString, LAB_NCCL_TEXTS},
    {"ncclGetLastError", &nccl.ncclGetLastError, LAB_NCCL_TEXTS},
    {NULL},
};
#undef ROW

static struct lab_vendor_search search = {
    .title = "NCCL",
    .sonames = {"libnccl.so.2"},
    .symbols = symbols,
    .effect = LAB_NCCL_ESSENTIAL,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct lab_nccl *lab_nccl_load(const struct lab_dl_report **ret_report) {
    lab_vendor_load(&search, ret_report);
    return &nccl;
}

bool lab_nccl_ready(void) {
    lab_nccl_load(NULL);
    return !lab_vendor_lacks(symbols, LAB_NCCL_ESSENTIAL);
}

int lab_nccl_version(void) {
    int version = 0;
    lab_nccl_load(NULL);
    if (!nccl.ncclGetVersion || nccl.ncclGetVersion(&version) != LAB_NCCL_SUCCESS)
        return 0;
    return version;
}
