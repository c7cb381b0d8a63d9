/* The drawing of a machine: who shares a path with whom, and what is not known. */
#include "report/report.h"

#include <string.h>

#include "test.h"

/* Two nodes. GPU0 and NIC0 share a bridge, SSD0 the host bridge above it; GPU1's node is
 * unknown. */
static int first[] = {0, 1, 8, 9}, second[] = {2, 3, 10, 11};
static struct lab_core cores[] = {
    {0, 0, {(int[]){0, 8}, 2}},
    {0, 0, {(int[]){1, 9}, 2}},
    {1, 1, {(int[]){2, 10}, 2}},
    {1, 1, {(int[]){3, 11}, 2}},
};
static struct lab_node nodes[] = {
    {0, {first, 4}, 2, 64LL << 30, -1},
    {3, {second, 4}, 2, 32LL << 30, -1},
};
static int distances[] = {10, 21, 21, 10};
static int below[] = {1, 2}, beside[] = {1};
static struct lab_pci pci[] = {
    {"0000:01:00.0", LAB_PCI_GPU, 0x0302, 0x10de, 1, "NVIDIA", "L40S", "", 0, 31.5, below, NULL, 2},
    {"0000:02:00.0", LAB_PCI_NETWORK, 0x0200, 0x15b3, 2, "Mellanox", "ConnectX-6", "eth0", 0, 0,
     below, NULL, 2},
    {"0000:03:00.0", LAB_PCI_STORAGE, 0x0108, 0x144d, 3, "", "", "nvme0n1", 0, 7.9, beside, NULL,
     1},
    {"0000:81:00.0", LAB_PCI_GPU, 0x0302, 0x10de, 1, "NVIDIA", "L40S", "", -1, 31.5, NULL, NULL, 0},
};

static struct lab_machine two_nodes(void) {
    return (struct lab_machine){
        .source = "box.xml",
        .recorded = true,
        .host = "box",
        .cpu_model = "Test CPU",
        .package_count = 2,
        .cores = cores,
        .core_count = 4,
        .nodes = nodes,
        .node_count = 2,
        .numa_in_kernel = true,
        .distances = distances,
        .pci = pci,
        .pci_count = 4,
    };
}

static char *shown(const struct lab_machine *machine, bool map, struct lab_style style) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    struct lab_str out;
    lab_str_init(&out);
    lab_report_add_machine(doc, machine, map);
    lab_doc_write(doc, "text", style, &out);
    return out.text;
}

static char *map_of(const struct lab_machine *machine, struct lab_style style) {
    return shown(machine, true, style);
}

LAB_TEST(stacked_where_narrow) {
    struct lab_machine machine = two_nodes();
    char *map = map_of(&machine, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(map, "┌─ NUMA node 0 ────────────────────────────────────┐\n"
                         "│ 2 cores of package 0: CPUs 0-1,8-9               │\n"
                         "│ 64.0 GiB memory                                  │\n"
                         "├──────────────────────────────────────────────────┤\n"
                         "│ host bridge                                      │\n"
                         "│ ├─ PCIe bridge                                   │\n"
                         "│ │  ├─ GPU0  01:00.0  31.5 GB/s  L40S             │\n"
                         "│ │  └─ NIC0  02:00.0  link ?     eth0, ConnectX-6 │\n"
                         "│ └─ SSD0  03:00.0   7.9 GB/s  nvme0n1, 144d:0003  │\n"
                         "└──────────────────────────────────────────────────┘\n");
    lab_mem_free(map);
}

LAB_TEST(side_by_side_where_wide) {
    struct lab_machine machine = two_nodes();
    char *map = map_of(&machine, (struct lab_style){.columns = 200, .unicode = true});
    const char *line = strstr(map, "┌─ NUMA node 0");
    assert_non_null(line);
    const char *end = strchr(line, '\n'), *other = strstr(line, "┌─ NUMA node 3");
    assert_true(other && other < end);
    lab_mem_free(map);
}

LAB_TEST(every_line_fits) {
    struct lab_machine machine = two_nodes();
    for (int columns = 40; columns <= 200; columns += 7) {
        char *map = map_of(&machine, (struct lab_style){.columns = columns, .unicode = true});
        for (char *line = map, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            if (lab_str_columns(line) > columns)
                fail_msg("%d columns, but: %s", columns, line);
        }
        lab_mem_free(map);
    }
}

LAB_TEST(unknown_is_said) {
    struct lab_machine machine = two_nodes();
    char *map = map_of(&machine, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(map, "┌─ NUMA node unknown ─");
    assert_contains(map, "GPU1: the firmware doesn't report the local NUMA node\n");
    assert_contains(map, "GPU0: local NUMA node 0 (CPUs 0-1,8-9)\n");
    assert_contains(map, "Recorded topology box.xml of box\n");
    lab_mem_free(map);
}

LAB_TEST(ascii_has_no_other_byte) {
    struct lab_machine machine = two_nodes();
    char *map = map_of(&machine, (struct lab_style){.columns = 80});
    for (const char *c = map; *c; c++)
        assert_true((unsigned char)*c < 0x80);
    assert_contains(map, "+- NUMA node 0 ---");
    lab_mem_free(map);
}

LAB_TEST(colour_changes_no_letter) {
    struct lab_machine machine = two_nodes();
    char *plain = map_of(&machine, (struct lab_style){.columns = 80, .unicode = true});
    char *coloured =
        map_of(&machine, (struct lab_style){.columns = 80, .unicode = true, .colour = true});
    LAB_AUTO(str, stripped);
    for (const char *c = coloured; *c; c++) {
        if (*c == '\033')
            c += strcspn(c, "m");
        else
            lab_str_add_bytes(&stripped, c, 1);
    }
    assert_string_equal(stripped.text, plain);
    assert_string_not_equal(coloured, plain);
    lab_mem_free(coloured);
    lab_mem_free(plain);
}

LAB_TEST(cpus_as_ranges_and_strides) {
    LAB_AUTO(str, out);
    int mixed[] = {0, 1, 2, 5, 8, 10, 12, 14, 16};
    lab_cpus_write(&(struct lab_cpus){mixed, 9}, &out);
    assert_string_equal(out.text, "0-2,5,8-16:2");
    lab_str_clear(&out);
    lab_cpus_write(&(struct lab_cpus){NULL, 0}, &out);
    assert_string_equal(out.text, "none");
}

LAB_TEST(tables_show_links) {
    struct lab_machine machine = two_nodes();
    char *text = shown(&machine, false, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(text, "Links\n"
                          "       GPU0 GPU1 NIC0\n"
                          "  GPU0    X    ?  PIX\n");
    assert_contains(text, "  From  to 0  to 3\n"
                          "  ────  ────  ────\n"
                          "     0    10    21\n");
    assert_contains(text, "unknown  31.5 GB/s  L40S\n");
    lab_mem_free(text);
}
