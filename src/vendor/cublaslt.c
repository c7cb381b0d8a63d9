/* vendor/cublaslt.c: finds cuBLASLt in toolkits and in PyTorch's wheels. */
#include "vendor/cublaslt.h"

#include "vendor/vendor.h"

static struct lab_cublaslt cublaslt;

#define ROW(name, effect, parameters) {#name, &cublaslt.name, effect},
static const struct lab_dl_symbol symbols[] = {
    LAB_LT_FUNCTIONS(ROW){"cublasLtGetVersion", &cublaslt.cublasLtGetVersion,
                          "its version is unknown"},
    {NULL},
};
#undef ROW

static struct lab_vendor_search search = {
    .title = "cuBLASLt",
    .sonames = {"libcublasLt.so.13", "libcublasLt.so.12"},
    .symbols = symbols,
    .effect = LAB_LT_ESSENTIAL,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct lab_cublaslt *lab_cublaslt_load(const struct lab_dl_report **ret_report) {
    lab_vendor_load(&search, ret_report);
    return &cublaslt;
}

bool lab_cublaslt_ready(void) {
    lab_cublaslt_load(NULL);
    return !lab_vendor_lacks(symbols, LAB_LT_ESSENTIAL);
}

int64_t lab_cublaslt_version(void) {
    lab_cublaslt_load(NULL);
    return cublaslt.cublasLtGetVersion ? (int64_t)cublaslt.cublasLtGetVersion() : 0;
}

const char *lab_cublaslt_status_text(lab_lt_status status) {
    switch (status) {
    case LAB_LT_SUCCESS:
        return "success";
    case LAB_LT_NOT_INITIALIZED:
        return "the library isn't initialised";
    case LAB_LT_ALLOC_FAILED:
        return "out of memory";
    case LAB_LT_INVALID_VALUE:
        return "an invalid parameter";
    case LAB_LT_ARCH_MISMATCH:
        return "not supported on this GPU's architecture";
    case LAB_LT_EXECUTION_FAILED:
        return "the GPU failed to run it";
    case LAB_LT_INTERNAL_ERROR:
        return "an internal error";
    case LAB_LT_NOT_SUPPORTED:
        return "not supported";
    default:
        return "an unknown status";
    }
}
