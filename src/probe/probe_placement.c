/*
 * probe_placement.c: judges where a process runs and where its memory lies against its GPUs' nodes,
 * and writes the commands that would bring both together while it runs: taskset and migratepages.
 */
#include "probe/placement.h"

#include "base/list.h"
#include "base/str.h"

#define MEMORY_MIN_BYTES ((int64_t)64 << 20) /* less isn't worth a word */

struct verdict {
    const struct lab_machine *machine;
    uint64_t local; /* bits of the GPUs' nodes */
    bool all_known; /* of every GPU */
};

static bool is_local(const struct verdict *verdict, int node) {
    return node >= 0 && node < LAB_PROCESS_NODES_MAX && (verdict->local >> node & 1);
}

/* Whether the nodes have cores of which this machine knows; one that has memory only can't be
 * judged. */
static bool has_cores(const struct lab_machine *machine, uint64_t nodes) {
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].cpus.count > 0 && machine->nodes[i].number < LAB_PROCESS_NODES_MAX &&
            (nodes >> machine->nodes[i].number & 1))
            return true;
    return false;
}

enum where { ELSEWHERE, THERE, KEPT_THERE, NOBODY_KNOWS };

static enum where judge_cores(const struct verdict *verdict,
                              const struct lab_process_sample *process) {
    uint64_t allowed = process->allowed_nodes;
    if (process->cpu_node < 0) {
        if (allowed == 0 || ((allowed & verdict->local) && (allowed & ~verdict->local)))
            return NOBODY_KNOWS;
        return allowed & verdict->local ? KEPT_THERE : ELSEWHERE;
    }
    if (!is_local(verdict, process->cpu_node))
        return ELSEWHERE;
    return allowed & ~verdict->local ? THERE : KEPT_THERE;
}

static bool memory_is_elsewhere(const struct verdict *verdict,
                                const struct lab_process_sample *process) {
    int64_t all = 0, elsewhere = 0;
    for (int i = 0; process->node_bytes && i < process->node_count; i++) {
        all += process->node_bytes[i];
        if (!is_local(verdict, verdict->machine->nodes[i].number))
            elsewhere += process->node_bytes[i];
    }
    return all >= MEMORY_MIN_BYTES && elsewhere > all / 2;
}

/* --- advice --- */

static void write_nodes(uint64_t nodes, struct lab_str *out) {
    const char *between = "";
    for (int node = 0; node < LAB_PROCESS_NODES_MAX; node++)
        if (nodes >> node & 1) {
            lab_str_printf(out, "%s%d", between, node);
            between = ",";
        }
}

/* The cores of several nodes, ascending, as one list. */
static void write_cores(const struct lab_machine *machine, uint64_t nodes, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_cpus cpus = {0};
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        if (node->number >= LAB_PROCESS_NODES_MAX || !(nodes >> node->number & 1))
            continue;
        for (int j = 0; j < node->cpus.count; j++)
            LAB_ADD(cpus.items, cpus.count, &arena) = node->cpus.items[j];
    }
    LAB_SORT_NUMBERS(cpus.items, cpus.count);
    lab_cpus_write(&cpus, out);
}

static uint64_t nodes_with_memory(const struct verdict *verdict,
                                  const struct lab_process_sample *process) {
    uint64_t nodes = 0;
    for (int i = 0; process->node_bytes && i < process->node_count; i++) {
        int number = verdict->machine->nodes[i].number;
        if (process->node_bytes[i] > 0 && number < LAB_PROCESS_NODES_MAX)
            nodes |= UINT64_C(1) << number;
    }
    return nodes;
}

static const char *write_advice(const struct verdict *verdict, struct lab_arena *arena,
                                const struct lab_process_sample *process) {
    bool cores = process->placement == LAB_PLACEMENT_LOOSE ||
                 process->placement == LAB_PLACEMENT_CORES ||
                 process->placement == LAB_PLACEMENT_BOTH;
    bool memory =
        process->placement == LAB_PLACEMENT_MEMORY || process->placement == LAB_PLACEMENT_BOTH;
    LAB_AUTO(str, text);
    if (cores) {
        lab_str_add(&text, "taskset -a -cp ");
        write_cores(verdict->machine, verdict->local, &text);
        lab_str_printf(&text, " %d", process->pid);
    }
    if (memory) {
        lab_str_printf(&text, "%smigratepages %d ", cores ? " && " : "", process->pid);
        write_nodes(nodes_with_memory(verdict, process) & ~verdict->local, &text);
        lab_str_add(&text, " ");
        write_nodes(verdict->local, &text);
    }
    return lab_arena_strdup(arena, text.text);
}

/* --- the verdict --- */

static uint64_t known_nodes(const int *gpu_nodes, int count, bool *ret_all_known) {
    uint64_t nodes = 0;
    *ret_all_known = true;
    for (int i = 0; i < count; i++) {
        if (gpu_nodes[i] >= 0 && gpu_nodes[i] < LAB_PROCESS_NODES_MAX)
            nodes |= UINT64_C(1) << gpu_nodes[i];
        else
            *ret_all_known = false;
    }
    return nodes;
}

static enum lab_placement judge(const struct verdict *verdict,
                                const struct lab_process_sample *process) {
    if (process->gpu_count == 0)
        return LAB_PLACEMENT_UNKNOWN;
    if (verdict->machine->node_count == 1)
        return LAB_PLACEMENT_ONE_NODE;
    enum where cores = judge_cores(verdict, process);
    if (verdict->local == 0 || cores == NOBODY_KNOWS)
        return LAB_PLACEMENT_UNKNOWN;
    bool memory = memory_is_elsewhere(verdict, process);
    bool wrong = cores == ELSEWHERE || memory;
    /* elsewhere may be the node of the GPU whose node is unknown */
    if (wrong && (!verdict->all_known || !has_cores(verdict->machine, verdict->local)))
        return LAB_PLACEMENT_UNKNOWN;
    if (cores == ELSEWHERE)
        return memory ? LAB_PLACEMENT_BOTH : LAB_PLACEMENT_CORES;
    if (memory)
        return LAB_PLACEMENT_MEMORY;
    return cores == THERE && has_cores(verdict->machine, verdict->local) ? LAB_PLACEMENT_LOOSE
                                                                         : LAB_PLACEMENT_LOCAL;
}

void lab_placement_judge(const struct lab_machine *machine, const int *gpu_nodes,
                         struct lab_arena *arena, struct lab_process_sample *process) {
    struct verdict verdict = {.machine = machine};
    verdict.local = known_nodes(gpu_nodes, process->gpu_count, &verdict.all_known);
    process->placement = judge(&verdict, process);
    process->advice = write_advice(&verdict, arena, process);
}
