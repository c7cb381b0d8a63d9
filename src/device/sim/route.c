/*
 * route.c: which links a copy crosses between a node's memory and a GPU: the memory, the links
 * between the two nodes (as few as possible, the first described among equals), the GPU's path, its
 * slot.
 */
#include "device/sim/sim.h"

int sim_memory_link(const struct sim_machine *machine, int node) {
    return machine->described_count + node;
}

int sim_slot_link(const struct sim_machine *machine, int gpu) {
    return machine->described_count + machine->node_count + gpu;
}

static void add(const struct sim_machine *machine, struct sim_route *route, int link, int way) {
    route->hops[route->count++] = (struct sim_hop){link, way};
    route->latency_s += 1e-6 * machine->links[link].latency_us;
}

/* The number of a link's end, as an index; -1 = the link joins no nodes. */
static int end_of(const struct sim_machine *machine, int link, int end) {
    const struct sim_link *item = &machine->links[link];
    for (int i = 0; item->joins.count == 2 && i < machine->node_count; i++)
        if (machine->nodes[i].number == item->joins.items[end])
            return i;
    return -1;
}

/* Breadth first from `to`, so that each node knows its next hop on the way there. */
static int between(const struct sim_machine *machine, int from, int to, struct sim_route *route) {
    struct sim_hop next[SIM_NODES_MAX] = {{0}};
    int queue[SIM_NODES_MAX], count = 0;
    bool seen[SIM_NODES_MAX] = {false};
    queue[count++] = to;
    seen[to] = true;
    for (int i = 0; i < count; i++)
        for (int link = 0; link < machine->described_count; link++)
            for (int end = 0; end < 2; end++) {
                int other = end_of(machine, link, !end);
                if (end_of(machine, link, end) != queue[i] || other < 0 || seen[other])
                    continue;
                seen[other] = true;
                next[other] = (struct sim_hop){link, end == 1 ? 0 : 1};
                queue[count++] = other;
            }
    if (!seen[from])
        return -1;
    for (int at = from, steps = 0; at != to; steps++) {
        if (steps == SIM_PATH_MAX)
            return -1;
        struct sim_hop hop = next[at];
        add(machine, route, hop.link, hop.way);
        at = end_of(machine, hop.link, hop.way == 0 ? 1 : 0);
    }
    return 0;
}

int sim_route(const struct sim_machine *machine, int node, int gpu, bool to_gpu,
              struct sim_route *ret_route) {
    const struct sim_gpu *end = &machine->gpus[gpu];
    *ret_route =
        (struct sim_route){.distance = machine->distances[node * machine->node_count + end->node]};
    add(machine, ret_route, sim_memory_link(machine, node), 0);
    if (between(machine, to_gpu ? node : end->node, to_gpu ? end->node : node, ret_route) < 0)
        return -1;
    for (int i = 0; i < end->path_count; i++)
        add(machine, ret_route, end->path[i], to_gpu ? 0 : 1);
    add(machine, ret_route, sim_slot_link(machine, gpu), to_gpu ? 0 : 1);
    return 0;
}
