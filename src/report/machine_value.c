/* machine_value.c: the machine and its devices for programs; keys in the order of the tables. */
#include "report/report.h"

static struct lab_value *cpus_value(const struct lab_cpus *cpus, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < cpus->count; i++)
        lab_value_append(arena, list, lab_value_int(arena, cpus->items[i]));
    return list;
}

/* Unknown is null, never a magic number. */
static void set_known(struct lab_arena *arena, struct lab_value *map, const char *key,
                      int64_t value) {
    lab_value_set(arena, map, key,
                  value >= 0 ? lab_value_int(arena, value) : lab_value_null(arena));
}

static struct lab_value *nodes_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_int(arena, map, "node", node->number);
        lab_value_set_int(arena, map, "cores", node->core_count);
        lab_value_set(arena, map, "cpus", cpus_value(&node->cpus, arena));
        lab_value_set_int(arena, map, "memory_bytes", node->memory_bytes);
        set_known(arena, map, "free_bytes", node->free_bytes);
        struct lab_value *distances = lab_value_map(arena);
        for (int j = 0; j < machine->node_count; j++) {
            int distance = lab_machine_distance(machine, i, j);
            set_known(arena, distances, lab_arena_printf(arena, "%d", machine->nodes[j].number),
                      distance ? distance : -1);
        }
        lab_value_set(arena, map, "distances", distances);
        lab_value_append(arena, list, map);
    }
    return list;
}

static struct lab_value *caches_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->cache_count; i++) {
        const struct lab_cache *cache = &machine->caches[i];
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_int(arena, map, "level", cache->level);
        lab_value_set_string(arena, map, "kind",
                             cache->kind == 'd'   ? "data"
                             : cache->kind == 'i' ? "instruction"
                                                  : "unified");
        lab_value_set_int(arena, map, "size_bytes", cache->size_bytes);
        lab_value_set_int(arena, map, "line_bytes", cache->line_bytes);
        lab_value_set_int(arena, map, "count", cache->count);
        lab_value_set_int(arena, map, "shared_by_cores", cache->shared_by_cores);
        lab_value_append(arena, list, map);
    }
    return list;
}

static struct lab_value *pci_value(const struct lab_machine *machine, struct lab_arena *arena) {
    static const char *const kinds[] = {"gpu", "network", "storage", "other"};
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->pci_count; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        struct lab_value *map = lab_value_map(arena);
        char name[LAB_PCI_NAME_BYTES];
        lab_report_pci_name(machine, i, name);
        lab_value_set_string(arena, map, "name", *name ? name : NULL);
        lab_value_set_string(arena, map, "address", pci->address);
        lab_value_set_string(arena, map, "kind", kinds[pci->kind]);
        lab_value_set_string(arena, map, "vendor", *pci->vendor ? pci->vendor : NULL);
        lab_value_set_string(arena, map, "model", *pci->name ? pci->name : NULL);
        lab_value_set_string(arena, map, "id",
                             lab_arena_printf(arena, "%04x:%04x", pci->vendor_id, pci->device_id));
        lab_value_set_string(arena, map, "os_name", *pci->os_name ? pci->os_name : NULL);
        set_known(arena, map, "node", pci->node < 0 ? -1 : machine->nodes[pci->node].number);
        lab_value_set(arena, map, "link_gb_per_second",
                      pci->link_gbs > 0 ? lab_value_float(arena, pci->link_gbs)
                                        : lab_value_null(arena));
        lab_value_append(arena, list, map);
    }
    return list;
}

static bool is_linked(const struct lab_pci *pci) {
    return lab_report_is_gpu(pci) || pci->kind == LAB_PCI_NETWORK;
}

/* Each pair of GPUs and network cards once. */
static struct lab_value *links_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->pci_count; i++)
        for (int j = i + 1; j < machine->pci_count; j++) {
            const struct lab_pci *a = &machine->pci[i], *b = &machine->pci[j];
            if (!is_linked(a) || !is_linked(b))
                continue;
            char name[LAB_PCI_NAME_BYTES];
            struct lab_value *map = lab_value_map(arena);
            lab_report_pci_name(machine, i, name);
            lab_value_set_string(arena, map, "a", name);
            lab_report_pci_name(machine, j, name);
            lab_value_set_string(arena, map, "b", name);
            enum lab_link link = lab_machine_link(machine, a, b);
            lab_value_set_string(arena, map, "link",
                                 link == LAB_LINK_UNKNOWN ? NULL : lab_link_name(link));
            lab_value_append(arena, list, map);
        }
    return list;
}

struct lab_value *lab_report_machine_value(const struct lab_machine *machine,
                                           struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "source", machine->source);
    lab_value_set_bool(arena, map, "recorded", machine->recorded);
    lab_value_set_bool(arena, map, "simulated", machine->simulated);
    lab_value_set_string(arena, map, "host", *machine->host ? machine->host : NULL);
    lab_value_set_string(arena, map, "cpu_model", *machine->cpu_model ? machine->cpu_model : NULL);
    lab_value_set_int(arena, map, "packages", machine->package_count);
    lab_value_set_int(arena, map, "cores", machine->core_count);
    lab_value_set_bool(arena, map, "numa_in_kernel", machine->numa_in_kernel);
    lab_value_set(arena, map, "nodes", nodes_value(machine, arena));
    lab_value_set(arena, map, "caches", caches_value(machine, arena));
    lab_value_set(arena, map, "pci", pci_value(machine, arena));
    lab_value_set(arena, map, "links", links_value(machine, arena));
    return map;
}

struct lab_value *lab_report_device_value(const struct lab_report_device *device,
                                          struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", device->name);
    lab_value_set_string(arena, map, "description", device->description);
    lab_value_set_string(arena, map, "physical", device->physical);
    set_known(arena, map, "node", device->node);
    lab_value_set(arena, map, "cpus", cpus_value(&device->cpus, arena));
    lab_value_set_int(arena, map, "memory_bytes", device->memory_bytes);
    lab_value_set_bool(arena, map, "simulated", device->simulated);
    return map;
}

struct lab_value *lab_report_backends_value(const struct lab_report_backend *backends, int count,
                                            struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        struct lab_value *map = lab_value_map(arena), *devices = lab_value_list(arena);
        lab_value_set_string(arena, map, "backend", backends[i].name);
        for (int j = 0; j < backends[i].device_count; j++)
            lab_value_append(arena, devices,
                             lab_report_device_value(&backends[i].devices[j], arena));
        lab_value_set(arena, map, "devices", devices);
        lab_value_set_string(arena, map, "why_none", backends[i].why_none);
        lab_value_append(arena, list, map);
    }
    return list;
}
