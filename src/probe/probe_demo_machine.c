/* probe_demo_machine.c: one node as two. */
#include "probe/probe_demo_machine.h"

#include "vendor/nvml.h"

#define NODES  2
#define REMOTE 20 /* distance, as between two sockets */

static struct lab_cpus part(const struct lab_cpus *cpus, int from, int until) {
    return (struct lab_cpus){.items = cpus->items + from, .count = until - from};
}

const struct lab_machine *lab_probe_demo_machine(const struct lab_machine *machine,
                                                 struct lab_arena *arena) {
    const struct lab_node *whole = &machine->nodes[0];
    int half = whole->cpus.count / NODES;
    if (!lab_nvml_is_demo() || machine->node_count > 1 || half == 0)
        return machine;
    struct lab_machine *made = lab_arena_alloc(arena, 1, sizeof *made);
    struct lab_node *nodes = lab_arena_alloc(arena, NODES, sizeof *nodes);
    int *distances = lab_arena_alloc(arena, (size_t)NODES * NODES, sizeof *distances);
    for (int i = 0; i < NODES; i++) {
        nodes[i] = *whole;
        nodes[i].number = i;
        nodes[i].cpus =
            i == 0 ? part(&whole->cpus, 0, half) : part(&whole->cpus, half, whole->cpus.count);
        nodes[i].memory_bytes /= NODES;
        nodes[i].free_bytes /= NODES;
        nodes[i].core_count /= NODES;
    }
    for (int i = 0; i < NODES * NODES; i++)
        distances[i] = i / NODES == i % NODES ? 10 : REMOTE;
    struct lab_core *cores = lab_arena_alloc(arena, (size_t)machine->core_count + 1, sizeof *cores);
    for (int i = 0; i < machine->core_count; i++) {
        cores[i] = machine->cores[i];
        cores[i].node =
            cores[i].cpus.count > 0 && lab_cpus_contain(&nodes[1].cpus, cores[i].cpus.items[0]);
    }
    *made = *machine;
    made->cores = cores;
    made->nodes = nodes;
    made->node_count = NODES;
    made->numa_in_kernel = true;
    made->distances = distances;
    return made;
}
