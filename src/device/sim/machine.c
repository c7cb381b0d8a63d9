/*
 * machine.c: a description as the rest of the program sees machines: nodes with CPUs, distances,
 * GPUs on PCI bridges. What is planted isn't in it.
 */
#include "base/hash.h"
#include "device/sim/sim.h"

#include <stdio.h>

#define NVIDIA    0x10de
#define CLASS_3D  0x0302
#define BYTES_GB  1e9
#define FIRST_BUS 0x10
/* Ids of bridges: a link's is its index, the others begin here. */
#define BRIDGE_HOST 10000
#define BRIDGE_PORT 20000

static void show_nodes(const struct sim_machine *from, struct lab_arena *arena,
                       struct lab_machine *to) {
    int cores = 0, cpu = 0;
    for (int i = 0; i < from->node_count; i++)
        cores += (int)from->nodes[i].cores;
    to->nodes = lab_arena_alloc(arena, (size_t)from->node_count, sizeof *to->nodes);
    to->cores = lab_arena_alloc(arena, (size_t)cores, sizeof *to->cores);
    int *cpus = lab_arena_alloc(arena, (size_t)cores, sizeof *cpus);
    for (int i = 0; i < from->node_count; i++) {
        const struct sim_node *node = &from->nodes[i];
        to->nodes[i] = (struct lab_node){.number = (int)node->number,
                                         .cpus = {.items = cpus + cpu, .count = (int)node->cores},
                                         .core_count = (int)node->cores,
                                         .memory_bytes = (int64_t)(node->memory_gb * BYTES_GB),
                                         .free_bytes = -1};
        for (int k = 0; k < node->cores; k++, cpu++) {
            cpus[cpu] = cpu;
            to->cores[cpu] = (struct lab_core){.node = i,
                                               .package = (int)node->package,
                                               .cpus = {.items = cpus + cpu, .count = 1}};
        }
        if (node->package >= to->package_count)
            to->package_count = (int)node->package + 1;
    }
    to->node_count = from->node_count;
    to->core_count = cores;
    to->distances = from->distances;
}

static void add_bridge(struct lab_pci *pci, int id, const char *name) {
    pci->bridges[pci->bridge_count] = id;
    pci->bridge_names[pci->bridge_count++] = name;
}

/* As the firmware has it, which may be wrong. */
int sim_shown_node(const struct sim_machine *machine, const struct sim_gpu *gpu) {
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].number == gpu->fault.node)
            return i;
    return gpu->node;
}

/* GPUs in the order of their numbers are so by address, as CUDA counts them. */
static void show_gpus(const struct sim_machine *from, struct lab_arena *arena,
                      struct lab_machine *to) {
    to->pci = lab_arena_alloc(arena, (size_t)from->gpu_count, sizeof *to->pci);
    for (int i = 0; i < from->gpu_count; i++) {
        const struct sim_gpu *gpu = &from->gpus[i];
        struct lab_pci *pci = &to->pci[i];
        *pci = (struct lab_pci){.kind = LAB_PCI_GPU,
                                .class_id = CLASS_3D,
                                .vendor_id = NVIDIA,
                                .vendor = "NVIDIA Corporation",
                                .name = gpu->model->name,
                                .os_name = "",
                                .node = sim_shown_node(from, gpu),
                                .link_gbs = gpu->model->slot_gb_s};
        snprintf(pci->address, sizeof pci->address, "0000:%02x:00.0",
                 (unsigned char)(FIRST_BUS + i));
        /* from the host bridge down: the links of its path, in reverse, and a port of the last
         * one */
        int top = gpu->path_count ? gpu->path[gpu->path_count - 1] : SIM_LINKS_MAX + i;
        pci->bridges = lab_arena_alloc(arena, SIM_PATH_MAX + 2, sizeof *pci->bridges);
        pci->bridge_names = lab_arena_alloc(arena, SIM_PATH_MAX + 2, sizeof *pci->bridge_names);
        add_bridge(pci, BRIDGE_HOST + top, lab_arena_printf(arena, "host%d", top));
        for (int k = gpu->path_count; k-- > 0;)
            add_bridge(pci, gpu->path[k], from->links[gpu->path[k]].name);
        add_bridge(pci, BRIDGE_PORT + i, lab_arena_printf(arena, "port%d", i));
    }
    to->pci_count = from->gpu_count;
}

struct lab_machine *sim_show(const struct sim_machine *machine, struct lab_arena *arena) {
    struct lab_machine *shown = lab_arena_alloc(arena, 1, sizeof *shown);
    *shown = (struct lab_machine){
        .source = lab_arena_printf(arena, "sim:%s", machine->name),
        .recorded = true,
        .simulated = true,
        .definition = lab_hash_text(LAB_HASH_START, machine->definition),
        .binds_itself = machine->unbound_node < 0,
        .host = "",
        .cpu_model = machine->cpu,
        .numa_in_kernel = true,
    };
    show_nodes(machine, arena, shown);
    show_gpus(machine, arena, shown);
    return shown;
}
