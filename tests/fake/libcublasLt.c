/*
 * libcublasLt.c: matrix products that do nothing, beside the fake driver: the vendor's own library
 * reaches deep into its driver and would fall over the fake one. FAKE_CUBLASLT_FIRST=9 makes it
 * propose other algorithms than it does by itself.
 */
#include "fake/fake_cuda.h"
#include "vendor/cublaslt.h"

#define PROTOTYPE(name, effect, parameters) FAKE_EXPORT lab_lt_status name parameters;
LAB_LT_FUNCTIONS(PROTOTYPE)
FAKE_EXPORT size_t cublasLtGetVersion(void);

#define BEGIN(name)                                                                                \
    do {                                                                                           \
        int code = fake_injected(#name);                                                           \
        if (code)                                                                                  \
            return code;                                                                           \
    } while (0)

#define ALGORITHMS 3 /* that it proposes */

size_t cublasLtGetVersion(void) {
    return 130000;
}

lab_lt_status cublasLtCreate(lab_lt_handle *ret_handle) {
    BEGIN(cublasLtCreate);
    *ret_handle = malloc(1);
    return 0;
}

lab_lt_status cublasLtDestroy(lab_lt_handle handle) {
    free(handle);
    return 0;
}

lab_lt_status cublasLtMatmulDescCreate(lab_lt_matmul_desc *ret_desc, lab_lt_compute_type compute,
                                       lab_lt_data_type scale) {
    (void)compute, (void)scale;
    BEGIN(cublasLtMatmulDescCreate);
    *ret_desc = malloc(1);
    return 0;
}

lab_lt_status cublasLtMatmulDescDestroy(lab_lt_matmul_desc desc) {
    free(desc);
    return 0;
}

lab_lt_status cublasLtMatmulDescSetAttribute(lab_lt_matmul_desc desc,
                                             lab_lt_desc_attribute attribute, const void *value,
                                             size_t size_bytes) {
    (void)desc, (void)attribute, (void)value, (void)size_bytes;
    BEGIN(cublasLtMatmulDescSetAttribute);
    return 0;
}

lab_lt_status cublasLtMatrixLayoutCreate(lab_lt_layout *ret_layout, lab_lt_data_type type,
                                         uint64_t rows, uint64_t columns, int64_t leading) {
    (void)type, (void)rows, (void)columns, (void)leading;
    BEGIN(cublasLtMatrixLayoutCreate);
    *ret_layout = malloc(1);
    return 0;
}

lab_lt_status cublasLtMatrixLayoutDestroy(lab_lt_layout layout) {
    free(layout);
    return 0;
}

lab_lt_status cublasLtMatmulPreferenceCreate(lab_lt_preference *ret_preference) {
    BEGIN(cublasLtMatmulPreferenceCreate);
    *ret_preference = malloc(1);
    return 0;
}

lab_lt_status cublasLtMatmulPreferenceDestroy(lab_lt_preference preference) {
    free(preference);
    return 0;
}

lab_lt_status cublasLtMatmulPreferenceSetAttribute(lab_lt_preference preference,
                                                   lab_lt_preference_attribute attribute,
                                                   const void *value, size_t size_bytes) {
    (void)preference, (void)attribute, (void)value, (void)size_bytes;
    return 0;
}

lab_lt_status cublasLtMatmulAlgoGetHeuristic(lab_lt_handle handle, lab_lt_matmul_desc desc,
                                             lab_lt_layout a, lab_lt_layout b, lab_lt_layout c,
                                             lab_lt_layout d, lab_lt_preference preference,
                                             int wanted, struct lab_lt_heuristic *ret_results,
                                             int *ret_count) {
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference;
    BEGIN(cublasLtMatmulAlgoGetHeuristic);
    *ret_count = wanted < ALGORITHMS ? wanted : ALGORITHMS;
    memset(ret_results, 0, (size_t)*ret_count * sizeof *ret_results);
    for (int i = 0; i < *ret_count; i++) /* told apart, as real ones are */
        *(char *)&ret_results[i].algo = (char)(fake_number("FAKE_CUBLASLT_FIRST", 1) + i);
    return 0;
}

lab_lt_status cublasLtMatmul(lab_lt_handle handle, lab_lt_matmul_desc desc, const void *alpha,
                             const void *a, lab_lt_layout a_layout, const void *b,
                             lab_lt_layout b_layout, const void *beta, const void *c,
                             lab_lt_layout c_layout, void *d, lab_lt_layout d_layout,
                             const struct lab_lt_algo *algo, void *workspace,
                             size_t workspace_bytes, lab_cu_stream stream) {
    (void)handle, (void)desc, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout;
    (void)beta, (void)c, (void)c_layout, (void)d, (void)d_layout, (void)algo, (void)workspace;
    (void)workspace_bytes, (void)stream;
    BEGIN(cublasLtMatmul);
    return 0;
}
