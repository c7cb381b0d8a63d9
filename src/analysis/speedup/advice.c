/* advice.c: which line to paste after a study of several devices, and which study tests what it
 * left out. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/peers/peers.h"
#include "analysis/speedup/gang.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

/* --- what to do --- */

/* "0,2": numbers in PCI order */
static const char *gpu_list(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *list = "";
    for (int i = 0; i < run->rank_count; i++)
        list = lab_arena_printf(arena, "%s%s%d", list, i ? "," : "", run->ranks[i].gpu);
    return list;
}

/* The GPU of the highest throughput alone: its mean relative to the references of each gang. NULL =
 * one has no number, or none was run. */
static const char *best_alone(const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct sum {
        const char *device;
        double logs;
        int count;
    } *sums = NULL, *best = NULL;
    int count = 0;
    for (int g = 0; g < gangs->count; g++)
        for (int i = 0; i < gangs->items[g].alone_count; i++) {
            const struct lab_study_point *point = gangs->items[g].alone[i];
            const char *device = point->runs[0]->ranks[0].device;
            int at = 0;
            while (at < count && !lab_str_equal(sums[at].device, device))
                at++;
            if (at == count)
                LAB_ADD(sums, count, arena) = (struct sum){.device = device};
            for (int r = 0; r < point->count; r++, sums[at].count++)
                sums[at].logs += log(point->rates[r] / gangs->items[g].one_per_s);
        }
    for (int i = 0; i < count; i++)
        if (!best || sums[i].logs / sums[i].count > best->logs / best->count)
            best = &sums[i];
    const char *title = best ? lab_study_device_title(best->device, arena) : "";
    return lab_str_starts(title, "GPU ") ? title + strlen("GPU ") : NULL;
}

/* By numbers, which CUDA gives to the fastest first unless told otherwise. */
#define ON_GPUS "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%s %sPROGRAM"

/* "numactl --cpunodebind=0 --membind=0 ": as all ranks ran; "" = not on one node, or on the only
 * one. */
static const char *bind_words(const struct lab_study_table *study, const struct lab_study_run *run,
                              struct lab_arena *arena) {
    int node = run->ranks[0].numa_node,
        at = study->machine ? lab_machine_node_index(study->machine, node) : -1;
    for (int i = 1; i < run->rank_count; i++)
        at = run->ranks[i].numa_node == node ? at : -1;
    if (at < 0 || study->machine->node_count < 2 || study->machine->nodes[at].cpus.count == 0)
        return "";
    return lab_arena_printf(arena, "numactl --cpunodebind=%d --membind=%d ", node, node);
}

static const char *study_line(const struct lab_gangs *gangs, struct lab_arena *arena) {
    return lab_arena_printf(arena, "gpulab run %s device=cuda", gangs->study->option);
}

/* " from batch 32 up"; "" = everywhere. */
static const char *where_words(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const char *where = lab_gangs_by_batch_where(gangs, arena);
    return where ? lab_arena_printf(arena, " %s", where) : "";
}

static const char *make_command(const struct lab_gangs *gangs, struct lab_arena *arena,
                                const char **ret_action) {
    const struct lab_gang_pool *best = gangs->pool_count > 0 ? lab_gangs_best(gangs) : NULL;
    int single = lab_gangs_count(gangs, "stay single") + lab_gangs_count(gangs, "marginal");
    if (!lab_str_equal(gangs->unit, "GPU") || lab_gangs_count(gangs, "independent") > 0)
        return NULL;
    if (lab_gangs_unshared(gangs->study) || (lab_gangs_lack_nvlink(gangs) && !best)) {
        *ret_action = LAB_GANGS_REAL;
        return study_line(gangs, arena);
    }
    bool choose = (best || gangs->pool_count == 0) && lab_gangs_find_rivals(gangs);
    *ret_action =
        choose  ? "Restrict the program to these GPUs"
        : !best ? "Restrict the program to one GPU"
                : lab_arena_printf(arena, "%s one process per GPU%s",
                                   lab_gangs_lack_nvlink(gangs) ? "Without NVLink, start" : "Start",
                                   where_words(gangs, arena));
    if (choose && gangs->rivals->base) {
        const struct lab_study_run *run = gangs->rivals->base->point->runs[0];
        return lab_arena_printf(arena, ON_GPUS, gpu_list(run, arena),
                                bind_words(gangs->study, run, arena));
    }
    const char *alone = best || single < gangs->count ? NULL : best_alone(gangs, arena);
    if (!best)
        return alone ? lab_arena_printf(arena, ON_GPUS, alone, "") : NULL;
    return lab_arena_printf(arena, "torchrun --standalone --nproc-per-node=%d PROGRAM",
                            best->devices);
}

/* Of devices that no launcher counts, such as slices: which number of them; NULL = inconclusive. */
static const char *number_action(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const struct lab_gang_pool *best = gangs->pool_count > 0 ? lab_gangs_best(gangs) : NULL;
    int single = lab_gangs_count(gangs, "stay single") + lab_gangs_count(gangs, "marginal");
    if (lab_gangs_count(gangs, "independent") > 0 || lab_gangs_unshared(gangs->study))
        return NULL;
    if (best)
        return lab_arena_printf(arena, "Use %d %ss%s", best->devices, gangs->unit,
                                where_words(gangs, arena));
    return gangs->pool_count > 0 && single == gangs->count
               ? lab_arena_printf(arena, "Stay on one %s", gangs->unit)
               : NULL;
}

void lab_gangs_add_command(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                           struct lab_arena *arena) {
    const struct lab_gang_pool *best = gangs->pool_count > 0 ? lab_gangs_best(gangs) : NULL;
    const char *action = NULL,
               *command = result->action ? NULL : make_command(gangs, arena, &action);
    const char *where =
        best && !lab_gangs_find_rivals(gangs) && !lab_gangs_by_batch_where(gangs, arena)
            ? lab_gangs_graded(gangs, best->devices, "beneficial", arena)
            : NULL;
    if (!command && !result->action && !lab_str_equal(gangs->unit, "GPU"))
        action = number_action(gangs, arena);
    else if (!command)
        return;
    result->command = command;
    result->action = where && action ? lab_arena_printf(arena, "%s for %s", action, where) : action;
}

/* --- what was left out --- */

#define ALONE_MOST    8
#define PARTNERS_MOST 8

/* Where positions in the study's list are numbers in PCI order: how many GPUs the machine has; 0 =
 * they aren't. */
static int count_gpus(const struct lab_study_table *study) {
    int count = 0;
    for (int i = 0; i < study->run_count; i++)
        for (int r = 0; r < study->runs[i].rank_count; r++)
            if (study->runs[i].ranks[r].gpu_id != study->runs[i].ranks[r].gpu)
                return 0;
    while (lab_machine_gpu(study->machine, count))
        count++;
    return count;
}

static bool is_pair(const struct lab_gang *gang, int first, int second) {
    const struct lab_study_rank *ranks = gang->point->runs[0]->ranks;
    return gang->devices == 2 && ((ranks[0].gpu == first && ranks[1].gpu == second) ||
                                  (ranks[0].gpu == second && ranks[1].gpu == first));
}

static bool same_ranks(const struct lab_study_run *a, const struct lab_study_run *b) {
    bool same = a->rank_count == b->rank_count;
    for (int i = 0; i < a->rank_count && same; i++)
        same = a->ranks[i].gpu == b->ranks[i].gpu && a->ranks[i].numa_node == b->ranks[i].numa_node;
    return same;
}

/* Whether devices are bound to NUMA nodes, and have local ones: then pairs are compared from these,
 * since a remote node slows a pair, too. */
static bool has_local_nodes(const struct lab_study_run *run) {
    for (int i = 0; i < run->rank_count; i++)
        if (run->ranks[i].numa_node < 0 || run->ranks[i].device_node < 0)
            return false;
    return true;
}

/* Which pair is best is known of those that were run: the first GPU of the best one with each of
 * those it hasn't run with, and that pair again. */
static void add_partners(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                         struct lab_arena *arena) {
    const struct lab_gang *best = gangs->rival_count > 0 ? gangs->rivals->base : NULL;
    int gpus = count_gpus(gangs->study), count = 0;
    if (!best || best->devices != 2 || !lab_gangs_find_rivals(gangs))
        return;
    const char *names[PARTNERS_MOST], *alone = "", *pairs = "";
    const struct lab_study_rank *ranks = best->point->runs[0]->ranks;
    for (int g = 0; g < gpus && count < PARTNERS_MOST; g++) {
        bool tested = g == ranks[0].gpu;
        for (int i = 0; i < gangs->count; i++)
            tested |= is_pair(&gangs->items[i], ranks[0].gpu, g);
        if (tested && g != ranks[1].gpu)
            continue;
        alone = lab_arena_printf(arena, "%s,[%d]", alone, g);
        pairs = lab_arena_printf(arena, "%s,[%d,%d]", pairs, ranks[0].gpu, g);
        if (!tested)
            names[count++] = lab_arena_printf(arena, "GPU %d", g);
    }
    if (count == 0)
        return;
    int runs = 0, patterns = 0;
    for (int i = 0; i < gangs->study->run_count; i++)
        runs += same_ranks(&gangs->study->runs[i], best->point->runs[0]);
    for (const char *at = alone; *at; at++)
        patterns += *at == '[';
    bool local = has_local_nodes(best->point->runs[0]);
    result->further =
        lab_arena_printf(arena, "'experiment.hardware.gpu_ids=[[%d]%s%s]'%s", ranks[0].gpu, alone,
                         pairs, local ? " experiment.hardware.numa_nodes=local" : "");
    result->tests =
        lab_arena_printf(arena, "Test GPU %d with %s%s%s: %d runs", ranks[0].gpu,
                         count > 1 ? "each of " : "", lab_words_devices(names, count, arena),
                         local ? ", from local NUMA nodes" : "", (1 + 2 * patterns) * runs);
}

/* Where a program needs one device alone: whether they differ. NULL = that is inconclusive. */
static const char *any_of(const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_peers peers = lab_peers_make(gangs->study, arena);
    const char **names = NULL, **odd = NULL;
    int count = 0, odd_count = 0;
    struct lab_words_singles singles = {0};
    double bound = 0;
    for (int d = 0; d < peers.device_count; d++) {
        const struct lab_peer *device = &peers.devices[d];
        if (device->odd)
            LAB_ADD(odd, odd_count, arena) = device->title;
        if (device->odd || device->claim.verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        if (device->claim.verdict != LAB_CLAIM_NO)
            return NULL;
        bound = fmax(bound, device->claim.bound);
        for (int i = 0; i < device->row_count; i++)
            lab_words_add_single(&singles, &device->rows[i].claim);
        LAB_ADD(names, count, arena) = device->title;
    }
    return count < 2 ? NULL
                     : lab_arena_printf(arena,
                                        "For one %s, take any of %s: no difference%s from their "
                                        "peers%s%s%s",
                                        gangs->unit, lab_words_devices(names, count, arena),
                                        lab_claim_larger(bound, arena),
                                        lab_words_singles(bound, &singles, "model", arena),
                                        odd_count ? ". Not " : "",
                                        odd_count ? lab_words_devices(odd, odd_count, arena) : "");
}

static void add_alone(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                      struct lab_arena *arena) {
    const char **others = NULL, *alone = any_of(gangs, arena);
    int count = 0;
    if (!alone || result->others)
        return;
    LAB_ADD(others, count, arena) = alone;
    LAB_ADD(others, count, arena) = NULL;
    result->others = others;
}

void lab_gangs_add_further(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                           struct lab_arena *arena) {
    const struct lab_study_table *study = gangs->study;
    int ids[ALONE_MOST], count = 0;
    for (int i = 0; i < study->run_count && count < ALONE_MOST; i++) {
        int id = study->runs[i].ranks[0].gpu_id, at = 0;
        while (at < count && ids[at] != id)
            at++;
        if (at == count)
            ids[count++] = id;
    }
    if (gangs->count > 0) {
        add_partners(result, gangs, arena);
        add_alone(result, gangs, arena);
    }
    if (gangs->count > 0 || study->gangs_planned || count < 2)
        return;
    LAB_SORT_NUMBERS(ids, count);
    LAB_AUTO(str, keys);
    lab_str_add(&keys, "'experiment.hardware.gpu_ids=[");
    for (int i = 0; i < count; i++)
        lab_str_printf(&keys, "[%d],", ids[i]);
    for (int i = 1; i < count && i < 3; i++)
        lab_str_printf(&keys, "%s[%d,%d]", i > 1 ? "," : "", ids[0], ids[i]);
    lab_str_add(&keys, "]'");
    result->further = lab_arena_strdup(arena, keys.text);
    result->tests = lab_arena_printf(arena, "Test pairs of %ss, too", gangs->unit);
}
