/*
 * probe_sampler_setup.c: a copy of the machine for probes. A lane that hangs goes on, perhaps, long
 * after the sampler was closed and the machine with it.
 */
#include "probe/probe_sampler.h"

#include <string.h>

static void *copy(struct lab_arena *arena, const void *items, int count, size_t size) {
    if (!items || count <= 0)
        return NULL;
    return memcpy(lab_arena_alloc(arena, (size_t)count, size), items, (size_t)count * size);
}

static const char *copy_text(struct lab_arena *arena, const char *text) {
    return lab_arena_strdup(arena, text ? text : "");
}

const struct lab_machine *sampler_copy_machine(struct lab_arena *arena,
                                               const struct lab_machine *machine) {
    if (!machine)
        return NULL;
    struct lab_machine *mine = copy(arena, machine, 1, sizeof *machine);
    mine->source = copy_text(arena, machine->source);
    mine->host = copy_text(arena, machine->host);
    mine->cpu_model = copy_text(arena, machine->cpu_model);
    mine->nodes = copy(arena, machine->nodes, machine->node_count, sizeof *machine->nodes);
    for (int i = 0; i < mine->node_count; i++) {
        struct lab_cpus *cpus = &mine->nodes[i].cpus;
        cpus->items = copy(arena, cpus->items, cpus->count, sizeof *cpus->items);
    }
    mine->cores = copy(arena, machine->cores, machine->core_count, sizeof *machine->cores);
    for (int i = 0; i < mine->core_count; i++) {
        struct lab_cpus *cpus = &mine->cores[i].cpus;
        cpus->items = copy(arena, cpus->items, cpus->count, sizeof *cpus->items);
    }
    mine->distances = copy(arena, machine->distances, machine->node_count * machine->node_count,
                           sizeof *machine->distances);
    mine->caches = copy(arena, machine->caches, machine->cache_count, sizeof *machine->caches);
    mine->pci = copy(arena, machine->pci, machine->pci_count, sizeof *machine->pci);
    for (int i = 0; i < mine->pci_count; i++) {
        struct lab_pci *pci = &mine->pci[i];
        pci->vendor = copy_text(arena, pci->vendor);
        pci->name = copy_text(arena, pci->name);
        pci->os_name = copy_text(arena, pci->os_name);
        pci->bridges = copy(arena, pci->bridges, pci->bridge_count, sizeof *pci->bridges);
        pci->bridge_names = NULL;
    }
    return mine;
}
