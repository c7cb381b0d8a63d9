/*
 * machine.c: the machine in words and tables. What is unknown is said, not left out: a GPU without
 * a node is the first thing to repair on a machine whose placement is in question.
 */
#include "report/machine_internal.h"

#include <stdio.h>
#include <string.h>

void lab_report_pci_model(const struct lab_pci *pci, struct lab_str *out) {
    const char *open = strchr(pci->name, '['), *close = open ? strchr(open, ']') : NULL;
    if (close && close > open + 1)
        lab_str_add_bytes(out, open + 1, (size_t)(close - open - 1));
    else if (*pci->name)
        lab_str_add(out, pci->name);
    else if (*pci->vendor)
        lab_str_add(out, pci->vendor);
    else
        lab_str_printf(out, "%04x:%04x", pci->vendor_id, pci->device_id);
}

static void add_count(struct lab_str *out, int count, const char *one, const char *many) {
    lab_str_printf(out, "%d %s", count, count == 1 ? one : many);
}

/* What machine this is. */
static void add_title(struct lab_doc *doc, const struct lab_machine *machine) {
    LAB_AUTO(str, line);
    int threads = 0;
    bool named = machine->host && *machine->host;
    lab_doc_text(doc, LAB_DOC_TITLE, "%s%s%s%s",
                 machine->simulated  ? "Simulated machine "
                 : machine->recorded ? "Recorded topology "
                                     : "This machine",
                 machine->simulated || machine->recorded ? machine->source : "",
                 !named              ? ""
                 : machine->recorded ? " of "
                                     : ": ",
                 named ? machine->host : "");
    for (int i = 0; i < machine->core_count; i++)
        threads += machine->cores[i].cpus.count;
    lab_str_printf(&line, "%s, ", *machine->cpu_model ? machine->cpu_model : "CPU model unknown");
    add_count(&line, machine->package_count, "package", "packages");
    lab_str_add(&line, ", ");
    add_count(&line, machine->core_count, "core", "cores");
    if (threads != machine->core_count) {
        lab_str_add(&line, " with ");
        add_count(&line, threads, "hardware thread", "hardware threads");
    }
    lab_str_add(&line, ", ");
    if (machine->numa_in_kernel)
        add_count(&line, machine->node_count, "NUMA node", "NUMA nodes");
    else
        lab_str_add(&line, "no NUMA in the kernel: one NUMA node is the whole machine");
    lab_doc_text(doc, LAB_DOC_PLAIN, "%s", line.text);
}

static void add_caches(struct lab_doc *doc, const struct lab_machine *machine) {
    LAB_AUTO(str, line);
    for (int i = 0; i < machine->cache_count; i++) {
        const struct lab_cache *cache = &machine->caches[i];
        lab_str_add(&line, i ? ", " : "Caches: ");
        size_t from = line.length;
        lab_str_printf(&line, "L%d%s ", cache->level,
                       cache->kind == 'd'   ? "d"
                       : cache->kind == 'i' ? "i"
                                            : "");
        lab_str_add_bytes_binary(&line, (double)cache->size_bytes);
        if (cache->shared_by_cores > 1)
            lab_str_printf(&line, " for %d cores", cache->shared_by_cores);
        else
            lab_str_add(&line, " a core");
        lab_text_keep(&line, from);
    }
    lab_doc_text(doc, LAB_DOC_ITEM, "%s", line.text);
}

void report_add_size(struct lab_doc *doc, int64_t bytes) {
    LAB_AUTO(str, text);
    if (bytes >= 0)
        lab_str_add_bytes_binary(&text, (double)bytes);
    lab_doc_cell(doc, "%s", bytes < 0 ? "unknown" : text.text);
}

void report_add_node(struct lab_doc *doc, int number) {
    if (number >= 0)
        lab_doc_cell(doc, "%d", number);
    else
        lab_doc_cell(doc, "unknown");
}

static void add_nodes(struct lab_doc *doc, const struct lab_machine *machine) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Node", LAB_UNIT_COUNT},
        {NULL, "Cores", LAB_UNIT_COUNT},
        {NULL, "Memory", LAB_UNIT_FIGURE},
        {NULL, "Free", LAB_UNIT_FIGURE, .optional = true},
        {NULL, "CPUs"}};
    lab_doc_begin(doc, (struct lab_doc_section){.title = "NUMA nodes"});
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        LAB_AUTO(str, cpus);
        lab_cpus_write(&node->cpus, &cpus);
        lab_doc_figure(doc, node->number);
        lab_doc_figure(doc, node->core_count);
        report_add_size(doc, node->memory_bytes);
        if (machine->recorded)
            lab_doc_cell(doc, "%s", "");
        else
            report_add_size(doc, node->free_bytes);
        lab_doc_cell(doc, "%s", node->cpus.count ? cpus.text : "none: memory only");
    }
    lab_doc_end(doc);
}

/* Nodes side by side, so that the table fits 80 columns however many there are. */
#define DISTANCES_ABREAST 10

static void add_distances_to(struct lab_doc *doc, const struct lab_machine *machine, int first,
                             int end) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_doc_column *columns = lab_arena_alloc(arena, DISTANCES_ABREAST + 1, sizeof *columns);
    columns[0] = (struct lab_doc_column){NULL, "From", LAB_UNIT_COUNT};
    for (int j = first; j < end; j++)
        columns[j - first + 1] = (struct lab_doc_column){
            NULL, lab_arena_printf(arena, "to %d", machine->nodes[j].number), LAB_UNIT_FIGURE};
    lab_doc_rows(doc, NULL, NULL, columns, end - first + 1);
    for (int i = 0; i < machine->node_count; i++) {
        lab_doc_figure(doc, machine->nodes[i].number);
        for (int j = first; j < end; j++) {
            int distance = lab_machine_distance(machine, i, j);
            if (distance > 0)
                lab_doc_cell(doc, "%d", distance);
            else
                lab_doc_cell(doc, "?");
        }
    }
}

static void add_distances(struct lab_doc *doc, const struct lab_machine *machine) {
    int count = machine->node_count;
    bool known = false;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            known |= i != j && lab_machine_distance(machine, i, j) > 0;
    if (count < 2)
        return;
    lab_doc_gap(doc);
    if (!known) {
        lab_doc_text(doc, LAB_DOC_PLAIN, "Distances between NUMA nodes are unknown");
        return;
    }
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Distances between NUMA nodes (10 = "
                                                         "local)"});
    for (int first = 0; first < count; first += DISTANCES_ABREAST)
        add_distances_to(doc, machine, first,
                         first + DISTANCES_ABREAST < count ? first + DISTANCES_ABREAST : count);
    lab_doc_end(doc);
}

static void add_pci_row(struct lab_doc *doc, const struct lab_machine *machine, int index) {
    const struct lab_pci *pci = &machine->pci[index];
    char name[LAB_PCI_NAME_BYTES];
    LAB_AUTO(str, model);
    lab_machine_pci_name(machine, index, name);
    lab_report_pci_model(pci, &model);
    lab_doc_cell(doc, "%s", name);
    lab_doc_cell(doc, "%s", pci->address);
    report_add_node(doc, pci->node >= 0 ? machine->nodes[pci->node].number : -1);
    if (pci->link_gbs > 0)
        lab_doc_cell(doc, "%.1f GB/s", pci->link_gbs);
    else
        lab_doc_cell(doc, "unknown");
    lab_doc_cell(doc, "%s%s%s", pci->os_name, *pci->os_name ? ", " : "", model.text);
}

static void add_pci(struct lab_doc *doc, const struct lab_machine *machine) {
    static const char *const order[] = {"GPU", "NIC", "SSD", "VGA"};
    static const struct lab_doc_column columns[] = {{NULL, "Name"},
                                                    {NULL, "Address"},
                                                    {NULL, "Node", LAB_UNIT_FIGURE},
                                                    {NULL, "Link", LAB_UNIT_FIGURE},
                                                    {NULL, "Device"}};
    int other = 0;
    lab_doc_begin(doc, (struct lab_doc_section){.title = "PCI devices"});
    const struct lab_doc_table *table = lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (size_t group = 0; group < sizeof order / sizeof *order; group++)
        for (int i = 0; i < machine->pci_count; i++) {
            char name[LAB_PCI_NAME_BYTES];
            lab_machine_pci_name(machine, i, name);
            if (lab_str_starts(name, order[group]))
                add_pci_row(doc, machine, i);
        }
    for (int i = 0; i < machine->pci_count; i++)
        other += machine->pci[i].kind == LAB_PCI_OTHER;
    if (table->row_count == 0)
        lab_doc_text(doc, LAB_DOC_PLAIN, "No GPU, network card or drive on a PCI bus");
    if (other)
        lab_doc_text(doc, LAB_DOC_PLAIN, "and %d other%s", other, other == 1 ? "" : "s");
    lab_doc_end(doc);
}

void lab_report_add_machine(struct lab_doc *doc, const struct lab_machine *machine, bool map) {
    add_title(doc, machine);
    if (map) {
        lab_doc_gap(doc);
        lab_doc_drawing(doc, report_draw_map, machine);
    } else {
        add_caches(doc, machine);
        add_nodes(doc, machine);
    }
    add_distances(doc, machine);
    if (!map) {
        add_pci(doc, machine);
        report_add_links(doc, machine);
    }
    report_add_feeding(doc, machine);
}
