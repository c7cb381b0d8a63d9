/* vendor/nccl.c: finds NCCL in the loader's path, in toolkits and in PyTorch's wheels. */
#include "vendor/nccl.h"

#include "vendor/vendor.h"

#include <pthread.h>
#include <string.h>

static struct lab_nccl nccl;
static struct lab_dl_report report;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define ROW(name, effect, parameters) {#name, &nccl.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_NCCL_FUNCTIONS(ROW){"ncclGetErrorString", &nccl.ncclGetErrorString, LAB_NCCL_TEXTS},
    {"ncclGetLastError", &nccl.ncclGetLastError, LAB_NCCL_TEXTS},
    {NULL},
};
#undef ROW

static void load(void) {
    lab_vendor_find(
        &(struct lab_vendor_search){
            .title = "NCCL",
            .sonames = {"libnccl.so.2"},
            .symbols = symbols,
            .effect = LAB_NCCL_ESSENTIAL,
        },
        &report);
}

const struct lab_nccl *lab_nccl_load(const struct lab_dl_report **ret_report) {
    pthread_once(&once, load);
    if (ret_report)
        *ret_report = &report;
    return &nccl;
}

bool lab_nccl_ready(void) {
    lab_nccl_load(NULL);
#define CHECK(name, effect, parameters)                                                            \
    if (!nccl.name && strcmp(effect, LAB_NCCL_ESSENTIAL) == 0)                                     \
        return false;
    LAB_NCCL_FUNCTIONS(CHECK)
#undef CHECK
    return true;
}

int lab_nccl_version(void) {
    int version = 0;
    lab_nccl_load(NULL);
    if (!nccl.ncclGetVersion || nccl.ncclGetVersion(&version) != LAB_NCCL_SUCCESS)
        return 0;
    return version;
}
