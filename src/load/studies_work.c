/* studies_work.c: how much work an iteration is, counted by the workload from its options. */
#include "load/studies.h"

#include "workload/workload.h"

static int count_work(const struct lab_workload *workload, const struct lab_value *options,
                      struct lab_arena *arena, struct lab_study_work *ret_work,
                      struct lab_err *err) {
    const void *config;
    struct lab_workload_cost cost = {0};
    if (lab_workload_read(workload, options, arena, &config, err) < 0)
        return -1;
    workload->cost(config, &cost);
    *ret_work = (struct lab_study_work){.flops = cost.compute.flops,
                                        .memory_bytes =
                                            cost.compute.bytes_read + cost.compute.bytes_written,
                                        .h2d_bytes = cost.h2d_bytes,
                                        .d2h_bytes = cost.d2h_bytes,
                                        .samples = cost.samples,
                                        .parameters = cost.parameters,
                                        .layers = cost.layers};
    return 0;
}

int lab_studies_work(const char *workload, const struct lab_value *options,
                     struct lab_study_work *ret_work, struct lab_err *err) {
    const struct lab_workload *found = lab_workload_find(workload, err);
    if (!found)
        return -1;
    LAB_AUTO(arena, arena);
    return count_work(found, options, &arena, ret_work, err);
}
