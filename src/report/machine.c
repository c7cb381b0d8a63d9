/*
 * machine.c: the machine in words and tables. What isn't known is said, not left out: a GPU without
 * a node is the first thing to repair on a machine whose placement is in question.
 */
#include "report/report.h"

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

void lab_report_machine_title(const struct lab_machine *machine, struct lab_style style,
                              struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    if (machine->simulated)
        lab_str_printf(&line, "Simulated machine %s", machine->source);
    else if (machine->recorded)
        lab_str_printf(&line, "Recorded topology %s", machine->source);
    else
        lab_str_add(&line, "This machine");
    if (machine->host && *machine->host)
        lab_str_printf(&line, "%s%s", machine->recorded ? " of " : ": ", machine->host);
    struct lab_str heading;
    lab_str_init(&heading);
    lab_text_wrap(line.text, 0, 2, style.columns, &heading);
    lab_text_heading(heading.text, style, out);
    lab_str_release(&heading);

    lab_str_clear(&line);
    int threads = 0;
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
        lab_str_add(&line, "no NUMA in the kernel: one node stands for the whole machine");
    lab_str_add(out, "  ");
    lab_text_wrap(line.text, 2, 2, style.columns, out);
    lab_str_add(out, "\n");
    lab_str_release(&line);
}

static void add_caches(const struct lab_machine *machine, struct lab_style style,
                       struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
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
    if (line.length) {
        lab_str_add(out, "  ");
        lab_text_wrap(line.text, 2, 4, style.columns, out);
        lab_str_add(out, "\n");
    }
    lab_str_release(&line);
}

static void cell_bytes(struct lab_table *table, int64_t bytes) {
    struct lab_str text;
    lab_str_init(&text);
    if (bytes < 0)
        lab_str_add(&text, "unknown");
    else
        lab_str_add_bytes_binary(&text, (double)bytes);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

static void add_nodes(const struct lab_machine *machine, struct lab_style style,
                      struct lab_str *out) {
    lab_text_heading("NUMA nodes", style, out);
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Cores", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Memory", LAB_ALIGN_RIGHT);
    if (!machine->recorded)
        lab_table_column(table, "Free", LAB_ALIGN_RIGHT);
    lab_table_column(table, "CPUs", LAB_ALIGN_LEFT);
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        lab_table_cell(table, "%d", node->number);
        lab_table_cell(table, "%d", node->core_count);
        cell_bytes(table, node->memory_bytes);
        if (!machine->recorded)
            cell_bytes(table, node->free_bytes);
        struct lab_str cpus;
        lab_str_init(&cpus);
        lab_cpus_write(&node->cpus, &cpus);
        lab_table_cell(table, "%s", node->cpus.count ? cpus.text : "none: memory only");
        lab_str_release(&cpus);
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
}

void lab_report_distances(const struct lab_machine *machine, struct lab_style style,
                          struct lab_str *out) {
    if (machine->node_count < 2)
        return;
    bool known = false;
    for (int i = 0; i < machine->node_count; i++)
        for (int j = 0; j < machine->node_count; j++)
            known |= i != j && lab_machine_distance(machine, i, j) > 0;
    if (!known) {
        lab_str_add(out, "  Distances between the nodes are unknown\n");
        return;
    }
    lab_text_heading("Distances between nodes (10 = local)", style, out);
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "From", LAB_ALIGN_RIGHT);
    for (int j = 0; j < machine->node_count; j++) {
        char title[24];
        snprintf(title, sizeof title, "to %d", machine->nodes[j].number);
        lab_table_column(table, title, LAB_ALIGN_RIGHT);
    }
    for (int i = 0; i < machine->node_count; i++) {
        lab_table_cell(table, "%d", machine->nodes[i].number);
        for (int j = 0; j < machine->node_count; j++) {
            int distance = lab_machine_distance(machine, i, j);
            if (distance > 0)
                lab_table_cell(table, "%d", distance);
            else
                lab_table_cell(table, "?");
        }
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
}

static void add_pci_row(const struct lab_machine *machine, int index, struct lab_table *table) {
    const struct lab_pci *pci = &machine->pci[index];
    char name[LAB_PCI_NAME_BYTES];
    lab_machine_pci_name(machine, index, name);
    lab_table_cell(table, "%s", name);
    lab_table_cell(table, "%s", pci->address);
    if (pci->node >= 0)
        lab_table_cell(table, "%d", machine->nodes[pci->node].number);
    else
        lab_table_cell(table, "unknown");
    if (pci->link_gbs > 0)
        lab_table_cell(table, "%.1f GB/s", pci->link_gbs);
    else
        lab_table_cell(table, "unknown");
    struct lab_str model;
    lab_str_init(&model);
    lab_report_pci_model(pci, &model);
    lab_table_cell(table, "%s%s%s", pci->os_name, *pci->os_name ? ", " : "", model.text);
    lab_str_release(&model);
}

static void add_pci(const struct lab_machine *machine, struct lab_style style,
                    struct lab_str *out) {
    int shown = 0, other = 0;
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "Name", LAB_ALIGN_LEFT);
    lab_table_column(table, "Address", LAB_ALIGN_LEFT);
    lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Link", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Device", LAB_ALIGN_LEFT);
    static const char *const order[] = {"GPU", "NIC", "SSD", "VGA"};
    for (size_t group = 0; group < sizeof order / sizeof *order; group++)
        for (int i = 0; i < machine->pci_count; i++) {
            char name[LAB_PCI_NAME_BYTES];
            lab_machine_pci_name(machine, i, name);
            if (!lab_str_starts(name, order[group]))
                continue;
            add_pci_row(machine, i, table);
            shown++;
        }
    for (int i = 0; i < machine->pci_count; i++)
        other += machine->pci[i].kind == LAB_PCI_OTHER;
    lab_text_heading("PCI devices", style, out);
    if (shown)
        lab_table_write(table, style, out);
    else
        lab_str_add(out, "  No GPU, network card or drive on a PCI bus\n");
    if (other)
        lab_str_printf(out, "  and %d other%s\n", other, other == 1 ? "" : "s");
    lab_table_close(table);
}

void lab_report_machine(const struct lab_machine *machine, struct lab_style style,
                        struct lab_str *out) {
    lab_report_machine_title(machine, style, out);
    add_caches(machine, style, out);
    lab_str_add(out, "\n");
    add_nodes(machine, style, out);
    if (machine->node_count > 1) {
        lab_str_add(out, "\n");
        lab_report_distances(machine, style, out);
    }
    lab_str_add(out, "\n");
    add_pci(machine, style, out);
    lab_report_links(machine, style, out);
    lab_report_feeding(machine, style, out);
}
