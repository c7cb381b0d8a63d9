/* tune.c: which kernels have several ways, and what the choice between them holds for. */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"

#include <cblas.h>

const struct lab_tunable *cpu_tunable(const struct lab_tunable_place *place,
                                      const struct lab_launch *launch) {
    (void)place;
    if (launch->out.dtype != LAB_FP32)
        return NULL;
    return lab_op_is_gemm(launch->op)             ? &cpu_tunable_gemm
           : launch->op == LAB_OP_FLASH_ATTENTION ? &cpu_tunable_flash
           : launch->op == LAB_OP_SOFTMAX         ? &cpu_tunable_softmax
                                                  : NULL;
}

int cpu_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                 struct lab_device_identity *ret_identity, struct lab_err *err) {
    (void)err;
    const char *model = place->machine->cpu_model;
    const char *core = cpu_blas_core(); /* before its version is asked for: it may change it */
    *ret_identity = (struct lab_device_identity){
        .model = lab_arena_strdup(arena, model && *model ? model : "an unknown CPU"),
        .compute_units = place->ref->cpus.count,
        .driver = "",
        .compiler = lab_arena_printf(arena, "%s, %s %s kernels", cpu_simd_name(cpu_simd_select()),
                                     openblas_get_config(), core),
    };
    return 0;
}
