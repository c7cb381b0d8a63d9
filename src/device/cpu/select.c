/*
 * select.c: which devices a selector of the cpu backend names. A device is a NUMA node's cores, by
 * the kernel's number of the node, with one logical CPU for each: two hardware threads of a core
 * share its arithmetic units, and two threads there would disturb each other's timing.
 */
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/cpu/cpu.h"

static int node_cores(const struct lab_machine *machine, int node_index, int *ret_cpus) {
    int count = 0;
    for (int i = 0; i < machine->core_count; i++) {
        const struct lab_core *core = &machine->cores[i];
        bool here = core->node == node_index || (core->node < 0 && machine->node_count == 1);
        if (here && core->cpus.count) {
            if (ret_cpus)
                ret_cpus[count] = core->cpus.items[0];
            count++;
        }
    }
    return count;
}

/* Adds slice `slice` of `slices`: neighbouring cores, the first slices one more where it doesn't
 * divide evenly. */
static void add_slice(const struct lab_machine *machine, int node_index, int slices, int slice,
                      struct lab_arena *arena, struct lab_device_list *list) {
    const struct lab_node *node = &machine->nodes[node_index];
    int *cpus = lab_arena_alloc(arena, (size_t)machine->core_count, sizeof *cpus);
    int cores = node_cores(machine, node_index, cpus);
    LAB_SORT_NUMBERS(cpus, cores);
    int begin = slice * (cores / slices) + (slice < cores % slices ? slice : cores % slices);
    int count = cores / slices + (slice < cores % slices);
    struct lab_device_ref *ref = lab_device_list_add(list, arena);
    *ref = (struct lab_device_ref){.backend = "cpu",
                                   .physical = lab_arena_printf(arena, "cpu:%d", node->number),
                                   .unit = node->number,
                                   .slices = slices,
                                   .slice = slice,
                                   .node = node->number,
                                   .cpus = {.items = cpus + begin, .count = count},
                                   .memory_bytes = node->memory_bytes};
    const char *where = machine->numa_in_kernel
                            ? lab_arena_printf(arena, "of NUMA node %d", node->number)
                            : "of this machine (its kernel has no NUMA)";
    const char *noun = cores == 1 ? "core" : "cores";
    if (slices == 1) {
        ref->name = ref->physical;
        ref->description = lab_arena_printf(arena, "%d %s %s", cores, noun, where);
    } else {
        ref->name = lab_arena_printf(arena, "cpu:%d/%d.%d", node->number, slices, slice);
        ref->description = lab_arena_printf(arena, "%d of %d %s %s", count, cores, noun, where);
    }
}

static int no_such_node(const struct lab_machine *machine, const char *rest, int number,
                        struct lab_err *err) {
    LAB_AUTO(str, there);
    for (int i = 0, count = 0; i < machine->node_count; i++)
        if (node_cores(machine, i, NULL))
            lab_str_printf(&there, "%scpu:%d", count++ ? ", " : "", machine->nodes[i].number);
    if (lab_machine_node_index(machine, number) >= 0)
        lab_err_set(err, LAB_ERR_USER,
                    "cpu%s: NUMA node %d has memory but no cores%s; nodes with cores: %s", rest,
                    number, machine->recorded ? "" : " for this process", there.text);
    else
        lab_err_set(err, LAB_ERR_USER, "cpu%s: there is no NUMA node %d; nodes with cores: %s",
                    rest, number, there.text);
    return lab_err_hint(err, LAB_HINT_NUMA_NODE);
}

int cpu_select(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
               struct lab_device_list *list, const char **ret_why_none, struct lab_err *err) {
    struct lab_device_part part;
    if (lab_device_parse_part("cpu", rest, &part, err))
        return -1;
    if (part.unit < 0) {
        int before = list->count;
        for (int i = 0; i < machine->node_count; i++)
            if (node_cores(machine, i, NULL))
                add_slice(machine, i, 1, 0, arena, list);
        if (list->count == before)
            *ret_why_none = "no NUMA node has cores";
        return 0;
    }
    int node_index = lab_machine_node_index(machine, part.unit);
    int cores = node_index < 0 ? 0 : node_cores(machine, node_index, NULL);
    if (!cores)
        return no_such_node(machine, rest, part.unit, err);
    int slices = part.slices < 0 ? 1 : part.slices;
    if (slices > cores)
        return lab_err_set(err, LAB_ERR_USER,
                           "cpu%s: NUMA node %d has %d core%s, so at most %d "
                           "slice%s",
                           rest, part.unit, cores, cores == 1 ? "" : "s", cores,
                           cores == 1 ? "" : "s");
    int first = part.slice < 0 ? 0 : part.slice;
    int last = part.slice < 0 ? slices - 1 : part.slice;
    for (int slice = first; slice <= last; slice++)
        add_slice(machine, node_index, slices, slice, arena, list);
    return 0;
}
