/* further.c: the study that tests what this one left out: other GPUs, local nodes, more runs. */
#include "analysis/analysis_words.h"
#include "analysis/numa/numa.h"
#include "base/list.h"

/* GPUs of the machine that no run used: "GPUs 4–9"; NULL = none. */
static const char *untested_gpus(const struct lab_study_table *study, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0, gpus = 0, known = 0;
    for (int i = 0; study->machine && i < study->machine->pci_count; i++)
        gpus += lab_pci_is_gpu(&study->machine->pci[i]);
    for (int g = 0; g < gpus; g++) {
        bool used = false;
        for (int i = 0; i < study->run_count && !used; i++)
            for (int r = 0; r < study->runs[i].rank_count; r++)
                used |= study->runs[i].ranks[r].gpu == g;
        known += used;
        if (!used)
            LAB_ADD(names, count, arena) = lab_arena_printf(arena, "GPU %d", g);
    }
    return count > 0 && known > 0 ? lab_words_devices(names, count, arena) : NULL;
}

/* As often as the spread asks for, of what anybody runs. */
static int runs_for(const struct lab_claim *claim) {
    int needed = lab_claim_runs(claim), twice = 2 * claim->n;
    return needed > claim->n && needed <= LAB_CLAIM_RUNS_MOST ? needed
           : twice > LAB_CLAIM_RUNS_MOST                      ? LAB_CLAIM_RUNS_MOST
           : twice < LAB_CLAIM_RUNS_LEAST                     ? LAB_CLAIM_RUNS_LEAST
                                                              : twice;
}

static int gpu_id_of(const struct lab_numa_grid *grid, const struct lab_numa_device *device) {
    for (int m = 0; m < grid->model_count; m++) {
        const struct lab_study_point *point = lab_numa_cell_at(device, m, device->reference)->point;
        if (point)
            return point->runs[0]->ranks[0].gpu_id;
    }
    return -1;
}

/* Devices without a verdict among others that have one: only these need more runs. */
static void repeat_the_open(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                            struct lab_arena *arena) {
    const char **names = NULL, **noisy = NULL, *ids = "", *limit = "";
    int count = 0, noisy_count = 0, decided = 0, runs = 0;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        decided +=
            lab_numa_verdict(device) == LAB_CLAIM_YES || lab_numa_verdict(device) == LAB_CLAIM_NO;
        if (lab_numa_verdict(device) != LAB_CLAIM_INCONCLUSIVE ||
            device->binding.verdict == LAB_CLAIM_NOT_TESTED || device->binding.n < 2)
            continue;
        int own = runs_for(&device->binding), id = gpu_id_of(grid, device);
        runs = own > runs ? own : runs;
        ids = lab_arena_printf(arena, "%s%s%d", ids, count ? "," : "", id);
        LAB_ADD(names, count, arena) = device->title;
        if (lab_claim_runs(&device->binding) > LAB_CLAIM_RUNS_MOST)
            LAB_ADD(noisy, noisy_count, arena) = device->title;
    }
    if (count == 0 || decided == 0)
        return;
    if (noisy_count > 0) /* no number of runs is promised to decide it */
        limit = lab_arena_printf(arena, " (%s: too noisy, more than %d are needed)",
                                 lab_words_devices(noisy, noisy_count, arena), LAB_CLAIM_RUNS_MOST);
    result->further =
        lab_arena_printf(arena, "experiment.hardware.gpu_ids=[%s] experiment.repeat=%d", ids, runs);
    result->tests = lab_arena_printf(arena, "%s: inconclusive. For a verdict, %d runs per point%s",
                                     lab_words_devices(names, count, arena), runs, limit);
}

/* GPUs first: what holds for those tested need not hold for the others. */
void lab_numa_test_the_rest(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                            struct lab_arena *arena) {
    const char **names = NULL, *gpus = untested_gpus(grid->study, arena);
    int count = 0;
    for (int d = 0; d < grid->device_count; d++)
        if (grid->pooled_count > 0 && !lab_numa_home_tested(&grid->devices[d]))
            LAB_ADD(names, count, arena) = grid->devices[d].title;
    if (grid->pooled_count > 0 && count == 0 && !gpus)
        repeat_the_open(result, grid, arena);
    if (grid->pooled_count == 0 || (count == 0 && !gpus))
        return;
    result->further = gpus ? "experiment.hardware.gpu_ids=all experiment.hardware.numa_nodes=all"
                           : "experiment.hardware.numa_nodes=all";
    result->tests =
        lab_arena_printf(arena, "Test %s%s%s%s", gpus ? gpus : "", gpus && count ? " and " : "",
                         count ? "the local NUMA node of " : "",
                         count ? lab_words_devices(names, count, arena) : "");
}
