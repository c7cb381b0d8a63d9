/* studies_work.c: how much work an iteration is, counted by the workload from its options. */
#include "load/studies.h"

#include "workload/workload.h"

struct kernels {
    struct lab_study_kernel *items;
    int count;
    struct lab_arena *arena;
};

static void add_kernel(struct kernels *kernels, double flops, double bytes) {
    for (int i = 0; i < kernels->count; i++)
        if (kernels->items[i].flops == flops && kernels->items[i].bytes == bytes) {
            kernels->items[i].count++;
            return;
        }
    struct lab_study_kernel *grown =
        lab_arena_alloc(kernels->arena, (size_t)kernels->count + 1, sizeof *grown);
    for (int i = 0; i < kernels->count; i++)
        grown[i] = kernels->items[i];
    grown[kernels->count++] = (struct lab_study_kernel){flops, bytes, 1};
    kernels->items = grown;
}

static void visit_launch(const struct lab_launch *launch, void *state) {
    struct lab_cost cost = lab_op_cost(launch);
    add_kernel(state, cost.flops, cost.bytes_read + cost.bytes_written);
}

struct lab_study_work lab_studies_config_work(const struct lab_workload *workload,
                                              const void *config, struct lab_arena *arena) {
    struct lab_workload_cost cost = {0};
    struct kernels kernels = {.arena = arena};
    workload->cost(config, &cost);
    double bytes = cost.compute.bytes_read + cost.compute.bytes_written;
    if (workload->kernels)
        workload->kernels(config, visit_launch, &kernels);
    else if (cost.compute.flops > 0 || bytes > 0)
        add_kernel(&kernels, cost.compute.flops, bytes);
    return (struct lab_study_work){.flops = cost.compute.flops,
                                   .memory_bytes = bytes,
                                   .h2d_bytes = cost.h2d_bytes,
                                   .d2h_bytes = cost.d2h_bytes,
                                   .samples = cost.samples,
                                   .parameters = cost.parameters,
                                   .layers = cost.layers,
                                   .kernels = kernels.items,
                                   .kernel_count = kernels.count};
}

int lab_studies_work(const char *workload, const struct lab_value *options, struct lab_arena *arena,
                     struct lab_study_work *ret_work, struct lab_err *err) {
    const struct lab_workload *found = lab_workload_find(workload, err);
    const void *config;
    if (!found || lab_workload_read(found, options, arena, &config, err) < 0)
        return -1;
    *ret_work = lab_studies_config_work(found, config, arena);
    return 0;
}
