/* studies_machine.c: a machine back from machine.json, as far as analyses ask. */
#include "load/studies.h"

#include "base/json.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define COUNT_MAX 100000

static const char *text_of(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_STRING ? value->string : "";
}

static int64_t whole(const struct lab_value *map, const char *key, int64_t fallback) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_INT ? value->integer : fallback;
}

static int count_of(const struct lab_value *list) {
    return list && list->type == LAB_VALUE_LIST && list->count <= COUNT_MAX ? list->count : 0;
}

static struct lab_cpus read_cpus(const struct lab_value *list, struct lab_arena *arena) {
    struct lab_cpus cpus = {.items =
                                lab_arena_alloc(arena, (size_t)count_of(list) + 1, sizeof(int))};
    for (int i = 0; i < count_of(list); i++)
        if (list->items[i]->type == LAB_VALUE_INT)
            cpus.items[cpus.count++] = (int)list->items[i]->integer;
    return cpus;
}

static void read_nodes(struct lab_machine *machine, const struct lab_value *list,
                       struct lab_arena *arena) {
    int count = machine->node_count;
    for (int i = 0; i < count; i++)
        machine->nodes[i] = (struct lab_node){
            .number = (int)whole(list->items[i], "node", i),
            .cpus = read_cpus(lab_value_get(list->items[i], "cpus"), arena),
            .core_count = (int)whole(list->items[i], "cores", 0),
            .memory_bytes = whole(list->items[i], "memory_bytes", 0),
            .free_bytes = whole(list->items[i], "free_bytes", -1),
        };
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            char key[16];
            snprintf(key, sizeof key, "%d", machine->nodes[to].number);
            machine->distances[from * count + to] =
                (int)whole(lab_value_get(list->items[from], "distances"), key, 0);
        }
}

static enum lab_pci_kind kind_of(const char *name) {
    return lab_str_equal(name, "gpu")       ? LAB_PCI_GPU
           : lab_str_equal(name, "network") ? LAB_PCI_NETWORK
           : lab_str_equal(name, "storage") ? LAB_PCI_STORAGE
                                            : LAB_PCI_OTHER;
}

static void read_pci(struct lab_machine *machine, const struct lab_value *list) {
    for (int i = 0; i < machine->pci_count; i++) {
        const struct lab_value *item = list->items[i];
        struct lab_pci *pci = &machine->pci[i];
        unsigned vendor = 0, device = 0;
        sscanf(text_of(item, "id"), "%4x:%4x", &vendor, &device);
        *pci =
            (struct lab_pci){.kind = kind_of(text_of(item, "kind")),
                             .vendor_id = (uint16_t)vendor,
                             .device_id = (uint16_t)device,
                             .vendor = text_of(item, "vendor"),
                             .name = text_of(item, "model"),
                             .os_name = text_of(item, "os_name"),
                             .node = lab_machine_node_index(machine, (int)whole(item, "node", -1))};
        snprintf(pci->address, sizeof pci->address, "%s", text_of(item, "address"));
    }
}

const struct lab_machine *lab_studies_machine(const char *json, struct lab_arena *arena) {
    struct lab_value *map;
    if (lab_json_parse(json, strlen(json), "machine.json", arena, &map, NULL) < 0)
        return NULL;
    const struct lab_value *nodes = lab_value_get(map, "nodes"), *pci = lab_value_get(map, "pci");
    const struct lab_value *in_kernel = lab_value_get(map, "numa_in_kernel");
    size_t node_count = (size_t)count_of(nodes);
    if (node_count == 0)
        return NULL;
    struct lab_machine *machine = lab_arena_alloc(arena, 1, sizeof *machine);
    *machine = (struct lab_machine){
        .source = "machine.json",
        .recorded = true,
        .host = text_of(map, "host"),
        .cpu_model = text_of(map, "cpu_model"),
        .package_count = (int)whole(map, "packages", 0),
        .nodes = lab_arena_alloc(arena, node_count, sizeof *machine->nodes),
        .node_count = (int)node_count,
        .numa_in_kernel = in_kernel && in_kernel->type == LAB_VALUE_BOOL && in_kernel->boolean,
        .distances = lab_arena_alloc(arena, node_count * node_count, sizeof(int)),
        .pci_count = count_of(pci),
        .pci = lab_arena_alloc(arena, (size_t)count_of(pci) + 1, sizeof *machine->pci)};
    read_nodes(machine, nodes, arena);
    read_pci(machine, pci);
    return machine;
}
