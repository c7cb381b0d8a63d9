/*
 * nodes.c: NUMA nodes, cores, caches and distances out of hwloc's tree.
 *
 * hwloc hangs memory into the tree of CPUs: a node's cpuset is who is near to it, which for a node
 * with memory only (CXL, HBM) may be CPUs that belong to another node. The kernel gives every CPU
 * to exactly one node, and so do we: to the nearest one, which is the smallest that holds it, and
 * of equal ones the first, as kernels number memory-only nodes behind those with CPUs.
 */
#include "machine/topology.h"

#include <hwloc/distances.h>

#define LOCAL_DISTANCE 10 /* by definition of ACPI's SLIT */

static struct lab_cpus cpus_of(struct lab_arena *arena, hwloc_const_bitmap_t set) {
    struct lab_cpus cpus = {0};
    int weight = hwloc_bitmap_weight(set);
    if (weight <= 0)
        return cpus;
    cpus.items = lab_arena_alloc(arena, (size_t)weight, sizeof *cpus.items);
    int cpu;
    hwloc_bitmap_foreach_begin(cpu, set) {
        cpus.items[cpus.count++] = cpu;
    }
    hwloc_bitmap_foreach_end();
    return cpus;
}

/* hwloc's levels are in the order of the tree; ours is that of the kernel's numbers. */
static hwloc_obj_t *nodes_by_number(struct topology *topology, int count) {
    hwloc_obj_t *objects = lab_arena_alloc(&topology->arena, (size_t)count, sizeof *objects);
    for (int i = 0; i < count; i++) {
        hwloc_obj_t object =
            hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)i);
        int place = i;
        for (; place > 0 && objects[place - 1]->os_index > object->os_index; place--)
            objects[place] = objects[place - 1];
        objects[place] = object;
    }
    return objects;
}

/* Index of the node to which the kernel gives this CPU, or -1. */
static int node_of_cpu(hwloc_obj_t const *nodes, int count, int cpu) {
    int best = -1, best_weight = 0;
    for (int i = 0; i < count; i++) {
        if (!nodes[i]->cpuset || !hwloc_bitmap_isset(nodes[i]->cpuset, (unsigned)cpu))
            continue;
        int weight = hwloc_bitmap_weight(nodes[i]->cpuset);
        if (best < 0 || weight < best_weight) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

static void read_nodes(struct topology *topology, hwloc_obj_t const *objects, int count) {
    struct lab_machine *machine = &topology->machine;
    machine->nodes = lab_arena_alloc(&topology->arena, (size_t)count, sizeof *machine->nodes);
    machine->node_count = count;
    LAB_AUTO_FREE hwloc_bitmap_t *sets = lab_mem_alloc((size_t)count, sizeof *sets);
    for (int i = 0; i < count; i++)
        sets[i] = hwloc_bitmap_alloc();
    int cpu;
    hwloc_bitmap_foreach_begin(cpu, hwloc_topology_get_topology_cpuset(topology->hwloc)) {
        int node = node_of_cpu(objects, count, cpu);
        if (node >= 0)
            hwloc_bitmap_set(sets[node], (unsigned)cpu);
    }
    hwloc_bitmap_foreach_end();
    for (int i = 0; i < count; i++) {
        struct lab_node *node = &machine->nodes[i];
        node->number = (int)objects[i]->os_index;
        node->cpus = cpus_of(&topology->arena, sets[i]);
        node->memory_bytes = (int64_t)objects[i]->attr->numanode.local_memory;
        node->free_bytes = topology_free_bytes(machine, node->number, NULL);
        hwloc_bitmap_free(sets[i]);
    }
    /* the only node's memory is the machine's, part of which may be yet to come (free.c) */
    if (count == 1 && !machine->recorded && machine->nodes[0].memory_bytes < topology_total_bytes())
        machine->nodes[0].memory_bytes = topology_total_bytes();
}

static void read_cores(struct topology *topology, hwloc_obj_t const *nodes) {
    struct lab_machine *machine = &topology->machine;
    hwloc_topology_t hwloc = topology->hwloc;
    int packages = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PACKAGE);
    machine->package_count = packages > 0 ? packages : 1;
    /* some virtual machines don't tell cores from hardware threads */
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    machine->core_count = hwloc_get_nbobjs_by_type(hwloc, type);
    machine->cores =
        lab_arena_alloc(&topology->arena, (size_t)machine->core_count, sizeof *machine->cores);
    for (int i = 0; i < machine->core_count; i++) {
        hwloc_obj_t object = hwloc_get_obj_by_type(hwloc, type, (unsigned)i);
        hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, object);
        struct lab_core *core = &machine->cores[i];
        core->cpus = cpus_of(&topology->arena, object->cpuset);
        core->package = package ? (int)package->logical_index : 0;
        core->node = core->cpus.count > 0
                         ? node_of_cpu(nodes, machine->node_count, core->cpus.items[0])
                         : -1;
        if (core->node >= 0)
            machine->nodes[core->node].core_count++;
    }
}

static void read_distances(struct topology *topology) {
    struct lab_machine *machine = &topology->machine;
    int count = machine->node_count;
    machine->distances =
        lab_arena_alloc(&topology->arena, (size_t)count * (size_t)count, sizeof(int));
    unsigned found = 1;
    struct hwloc_distances_s *matrix = NULL;
    if (hwloc_distances_get_by_type(
            topology->hwloc, HWLOC_OBJ_NUMANODE, &found, &matrix,
            HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) == 0 &&
        found > 0) {
        for (unsigned i = 0; i < matrix->nbobjs; i++)
            for (unsigned j = 0; j < matrix->nbobjs; j++) {
                int from = lab_machine_node_index(machine, (int)matrix->objs[i]->os_index);
                int to = lab_machine_node_index(machine, (int)matrix->objs[j]->os_index);
                if (from >= 0 && to >= 0)
                    machine->distances[from * count + to] =
                        (int)matrix->values[i * matrix->nbobjs + j];
            }
        hwloc_distances_release(topology->hwloc, matrix);
    }
    for (int i = 0; i < count; i++)
        if (machine->distances[i * count + i] == 0)
            machine->distances[i * count + i] = LOCAL_DISTANCE;
}

/* --- caches --- */

static struct lab_cache cache_of(struct topology *topology, hwloc_obj_t object, bool cores) {
    static const char kinds[] = {[HWLOC_OBJ_CACHE_UNIFIED] = 'u',
                                 [HWLOC_OBJ_CACHE_DATA] = 'd',
                                 [HWLOC_OBJ_CACHE_INSTRUCTION] = 'i'};
    return (struct lab_cache){
        .level = (int)object->attr->cache.depth,
        .kind = kinds[object->attr->cache.type],
        .size_bytes = (int64_t)object->attr->cache.size,
        .line_bytes = (int)object->attr->cache.linesize,
        .count = 1,
        .shared_by_cores = hwloc_get_nbobjs_inside_cpuset_by_type(
            topology->hwloc, object->cpuset, cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU),
    };
}

/* Equal caches are one row with a count; machines with two kinds of core have two rows a level. */
static void count_cache(struct lab_machine *machine, const struct lab_cache *cache) {
    for (int i = 0; i < machine->cache_count; i++) {
        struct lab_cache *row = &machine->caches[i];
        if (row->level == cache->level && row->kind == cache->kind &&
            row->size_bytes == cache->size_bytes && row->line_bytes == cache->line_bytes &&
            row->shared_by_cores == cache->shared_by_cores) {
            row->count++;
            return;
        }
    }
    machine->caches[machine->cache_count++] = *cache;
}

static void read_caches(struct topology *topology) {
    static const hwloc_obj_type_t types[] = {
        HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L2ICACHE,
        HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L3ICACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE,
    };
    enum { TYPES = sizeof types / sizeof types[0] };
    bool cores = hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE) > 0;
    int counts[TYPES], total = 0;
    for (int t = 0; t < TYPES; t++) {
        counts[t] = hwloc_get_nbobjs_by_type(topology->hwloc, types[t]);
        total += counts[t] > 0 ? counts[t] : 0;
    }
    topology->machine.caches =
        lab_arena_alloc(&topology->arena, (size_t)total + 1, sizeof(struct lab_cache));
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < counts[t]; i++) {
            hwloc_obj_t object = hwloc_get_obj_by_type(topology->hwloc, types[t], (unsigned)i);
            struct lab_cache cache = cache_of(topology, object, cores);
            count_cache(&topology->machine, &cache);
        }
}

void topology_read_nodes(struct topology *topology) {
    int count = hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE);
    hwloc_obj_t *objects = nodes_by_number(topology, count); /* hwloc promises one at least */
    topology->all_cpus =
        cpus_of(&topology->arena, hwloc_topology_get_topology_cpuset(topology->hwloc));
    read_nodes(topology, objects, count);
    read_cores(topology, objects);
    read_distances(topology);
    read_caches(topology);
}
