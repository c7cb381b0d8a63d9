/* vendor/cupti.c: finds CUPTI in toolkits and in PyTorch's wheels. */
#include "vendor/cupti.h"

#include "vendor/vendor.h"

#define VERSION_MIN 18 /* CUDA 12.0 */

static struct lab_cupti cupti;

#define ROW(name, effect, parameters) {#name, &cupti.name, effect},
static const struct lab_dl_symbol symbols[] = {LAB_CUPTI_FUNCTIONS(ROW){NULL}};
#undef ROW

static struct lab_vendor_search search = {
    .title = "CUPTI",
    .sonames = {"libcupti.so.13", "libcupti.so.12"},
    .symbols = symbols,
    .effect = LAB_CUPTI_ESSENTIAL,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct lab_cupti *lab_cupti_load(const struct lab_dl_report **ret_report) {
    lab_vendor_load(&search, ret_report);
    return &cupti;
}

bool lab_cupti_ready(void) {
    lab_cupti_load(NULL);
    return !lab_vendor_lacks(symbols, LAB_CUPTI_ESSENTIAL) && lab_cupti_version() >= VERSION_MIN;
}

uint32_t lab_cupti_version(void) {
    uint32_t version = 0;
    lab_cupti_load(NULL);
    if (!cupti.cuptiGetVersion || cupti.cuptiGetVersion(&version) != LAB_CUPTI_SUCCESS)
        return 0;
    return version;
}

int lab_cupti_cuda_major(void) {
    uint32_t version = lab_cupti_version();
    if (version >= 10000)
        return (int)(version / 10000);
    return version >= VERSION_MIN ? 12 : version ? 11 : 0;
}
