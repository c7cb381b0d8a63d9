/*
 * machine_links.c: what lies between devices: the matrix that nvidia-smi topo -m made everyone's
 * habit, and which node should feed which GPU.
 */
#include "report/machine_internal.h"

#include <stdio.h>

/* Indices of GPUs, then network cards; returns how many. */
static int pick_members(const struct lab_machine *machine, int *members) {
    int count = 0;
    for (enum lab_pci_kind kind = LAB_PCI_GPU; kind <= LAB_PCI_NETWORK; kind++)
        for (int i = 0; i < machine->pci_count; i++)
            if (machine->pci[i].kind == kind &&
                (kind != LAB_PCI_GPU || lab_pci_is_gpu(&machine->pci[i])))
                members[count++] = i;
    return count;
}

static int widest_name(const struct lab_machine *machine, const int *members, int count) {
    int widest = 4; /* "NODE" */
    for (int i = 0; i < count; i++) {
        char name[LAB_PCI_NAME_BYTES];
        lab_machine_pci_name(machine, members[i], name);
        widest = lab_str_columns(name) > widest ? lab_str_columns(name) : widest;
    }
    return widest;
}

static void add_row(const struct lab_machine *machine, const int *members, int row, int begin,
                    int end, int width, bool seen[LAB_LINK_UNKNOWN + 1], struct lab_str *out) {
    char name[LAB_PCI_NAME_BYTES];
    lab_machine_pci_name(machine, members[row], name);
    lab_str_printf(out, "  %-*s", width, name);
    for (int i = begin; i < end; i++) {
        enum lab_link link =
            lab_machine_link(machine, &machine->pci[members[row]], &machine->pci[members[i]]);
        seen[link] = true;
        lab_str_printf(out, " %*s", width, lab_link_name(link));
    }
    lab_str_add(out, "\n");
}

static void add_legend(const bool seen[LAB_LINK_UNKNOWN + 1], struct lab_style style,
                       struct lab_str *out) {
    for (int link = LAB_LINK_PIX; link <= LAB_LINK_UNKNOWN; link++)
        if (seen[link]) {
            lab_str_printf(out, "  %-4s = ", lab_link_name((enum lab_link)link));
            lab_text_wrap(lab_link_explanation((enum lab_link)link), 9, 9, style.columns, out);
            lab_str_add(out, "\n");
        }
}

static void draw_links(const void *state, struct lab_style style, struct lab_str *out) {
    const struct lab_machine *machine = state;
    LAB_AUTO(arena, arena);
    int *members = lab_arena_alloc(&arena, (size_t)machine->pci_count, sizeof *members);
    int count = pick_members(machine, members);
    int width = widest_name(machine, members, count);
    int fit = (style.columns - 2 - width) / (width + 1);
    bool seen[LAB_LINK_UNKNOWN + 1] = {false};
    /* a matrix too wide for the terminal is cut into blocks of columns */
    for (int begin = 0; begin < count; begin += fit) {
        int end = begin + fit < count ? begin + fit : count;
        lab_str_add_repeat(out, " ", 2 + width);
        for (int i = begin; i < end; i++) {
            char name[LAB_PCI_NAME_BYTES];
            lab_machine_pci_name(machine, members[i], name);
            lab_str_printf(out, " %*s", width, name);
        }
        lab_str_add(out, "\n");
        for (int row = 0; row < count; row++)
            add_row(machine, members, row, begin, end, width, seen, out);
        lab_str_add(out, "\n");
    }
    add_legend(seen, style, out);
}

void report_add_links(struct lab_doc *doc, const struct lab_machine *machine) {
    int *members =
        lab_arena_alloc(lab_doc_arena(doc), (size_t)machine->pci_count + 1, sizeof *members);
    if (pick_members(machine, members) < 2)
        return;
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Links"});
    lab_doc_drawing(doc, draw_links, machine);
    lab_doc_end(doc);
}

/* The node with cores that is nearest to `node`, by the kernel's distances. */
static int nearest_with_cores(const struct lab_machine *machine, int node) {
    int best = -1, best_distance = 0;
    for (int i = 0; i < machine->node_count; i++) {
        int distance = lab_machine_distance(machine, node, i);
        if (machine->nodes[i].cpus.count && distance > 0 &&
            (best < 0 || distance < best_distance)) {
            best = i;
            best_distance = distance;
        }
    }
    return best;
}

/* Names of the GPUs on `node`, NULL-terminated, in the arena; returns how many. */
static int gpus_on_node(const struct lab_machine *machine, int node, struct lab_arena *arena,
                        const char ***ret_names) {
    const char **names = lab_arena_alloc(arena, (size_t)machine->pci_count + 1, sizeof *names);
    int count = 0;
    for (int i = 0; i < machine->pci_count; i++) {
        if (!lab_pci_is_gpu(&machine->pci[i]) || machine->pci[i].node != node)
            continue;
        char name[LAB_PCI_NAME_BYTES];
        lab_machine_pci_name(machine, i, name);
        names[count++] = lab_arena_strdup(arena, name);
    }
    *ret_names = names;
    return count;
}

static void describe_node(const struct lab_machine *machine, int index, struct lab_str *line) {
    const struct lab_node *node = &machine->nodes[index];
    lab_str_printf(line, "NUMA node %d ", node->number);
    if (node->cpus.count) {
        lab_str_add(line, "(CPUs ");
        lab_cpus_write(&node->cpus, line);
        lab_str_add(line, ")");
        return;
    }
    lab_str_add(line, "(memory only");
    int nearest = nearest_with_cores(machine, index);
    if (nearest >= 0) {
        lab_str_printf(line, "; nearest cores: NUMA node %d, CPUs ",
                       machine->nodes[nearest].number);
        lab_cpus_write(&machine->nodes[nearest].cpus, line);
    }
    lab_str_add(line, ")");
}

void report_add_feeding(struct lab_doc *doc, const struct lab_machine *machine) {
    lab_doc_gap(doc);
    for (int node = 0; node <= machine->node_count; node++) {
        bool unknown = node == machine->node_count;
        const char **names;
        int count = gpus_on_node(machine, unknown ? -1 : node, lab_doc_arena(doc), &names);
        if (count == 0)
            continue;
        LAB_AUTO(str, line);
        lab_str_add_list(&line, names, "and");
        if (unknown) {
            lab_str_add(&line, ": the firmware doesn't report the local NUMA node");
        } else {
            lab_str_add(&line, ": local ");
            describe_node(machine, node, &line);
        }
        lab_doc_text(doc, LAB_DOC_FREE, "%s", line.text);
    }
}
