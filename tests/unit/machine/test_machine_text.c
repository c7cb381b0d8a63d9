/*
 * The kernel's and pci.ids' text, and links between devices that no fixture has.
 */
#include "base/str.h"
#include "machine/topology.h"

#include <unistd.h>

#include "test.h"

static const char meminfo[] = "Node 2 MemTotal:        1000000 kB\n"
                              "Node 2 MemFree:          100000 kB\n"
                              "Node 2 MemUsed:          900000 kB\n"
                              "Node 2 Active(file):     300000 kB\n"
                              "Node 2 Inactive(file):    50000 kB\n"
                              "Node 2 Shmem:             70000 kB\n";

static const char zoneinfo[] = "Node 1, zone   Normal\n"
                               "  pages free     5000\n"
                               "        min      100\n"
                               "        low      7777\n"
                               "        high     150\n"
                               "Node 2, zone      DMA\n"
                               "        low      10\n"
                               "Node 2, zone   Normal\n"
                               "  pages free     5000\n"
                               "        low      240\n"
                               "Node 20, zone   Normal\n"
                               "        low      9999\n";

LAB_TEST(free_memory_is_free_pages_and_idle_file_cache_less_the_reserve) {
    int64_t page = sysconf(_SC_PAGESIZE);
    assert_int_equal(topology_parse_node_free(meminfo, zoneinfo, 2), 150000 * 1024 - 250 * page);
    assert_int_equal(topology_parse_node_free(meminfo, "", 2), 150000 * 1024);
    assert_int_equal(topology_parse_node_free("Node 2 MemFree: 4 kB\n", zoneinfo, 2), 0);
    assert_int_equal(topology_parse_node_free("", zoneinfo, 2), -1);
}

static const char ids[] = "# comment\n"
                          "10de  NVIDIA Corporation\n"
                          "\t2237  GA102GL [A10G]\n"
                          "\t\t10de 152f  A sub-device\n"
                          "# in between\n"
                          "\t2330  GH100 [H100 SXM5 80GB]\n"
                          "15b3  Mellanox Technologies\n"
                          "\t1021  MT2910 Family [ConnectX-7]\n"
                          "C 03  Display controller\n"
                          "\t02  3D controller";

static void assert_named(unsigned vendor_id, unsigned device_id, const char *vendor,
                         const char *name) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    const char *found_vendor, *found_name;
    topology_parse_pci_ids(ids, strlen(ids), vendor_id, device_id, &arena, &found_vendor,
                           &found_name);
    assert_string_equal(found_vendor, vendor);
    assert_string_equal(found_name, name);
    lab_arena_release(&arena);
}

LAB_TEST(names_are_found_below_their_vendor_only) {
    assert_named(0x10de, 0x2237, "NVIDIA Corporation", "GA102GL [A10G]");
    assert_named(0x10de, 0x2330, "NVIDIA Corporation", "GH100 [H100 SXM5 80GB]");
    assert_named(0x10de, 0x1021, "NVIDIA Corporation", "");
    assert_named(0x15b3, 0x1021, "Mellanox Technologies", "MT2910 Family [ConnectX-7]");
    assert_named(0x1234, 0x1111, "", "");
}

/* --- links --- */

static struct lab_pci device(const char *address, int node, int *bridges, int count) {
    struct lab_pci pci = {.node = node, .bridges = bridges, .bridge_count = count};
    snprintf(pci.address, sizeof pci.address, "%s", address);
    return pci;
}

LAB_TEST(a_link_without_bridges_is_known_only_across_nodes) {
    struct lab_node nodes[2] = {{.number = 0}, {.number = 1}};
    struct lab_machine two = {.nodes = nodes, .node_count = 2};
    struct lab_machine one = {.nodes = nodes, .node_count = 1};
    struct lab_pci a = device("0000:01:00.0", 0, NULL, 0), b = device("0000:02:00.0", 0, NULL, 0);
    struct lab_pci c = device("0000:03:00.0", 1, NULL, 0);
    assert_int_equal(lab_machine_link(&two, &a, &c), LAB_LINK_SYS);
    assert_int_equal(lab_machine_link(&two, &a, &b), LAB_LINK_UNKNOWN);
    assert_int_equal(lab_machine_link(&one, &a, &b), LAB_LINK_UNKNOWN);
}

LAB_TEST(on_one_node_even_unplaced_devices_are_in_it) {
    struct lab_node node = {.number = 0};
    struct lab_machine one = {.nodes = &node, .node_count = 1};
    int left[] = {0, 1}, right[] = {2, 3};
    struct lab_pci a = device("0000:01:00.0", -1, left, 2);
    struct lab_pci b = device("0000:81:00.0", -1, right, 2);
    assert_int_equal(lab_machine_link(&one, &a, &b), LAB_LINK_NODE);
}

/* A card with two chips behind one port, and two functions of one chip. */
LAB_TEST(devices_on_one_bus_are_pix) {
    struct lab_node node = {.number = 0};
    struct lab_machine one = {.nodes = &node, .node_count = 1};
    int port[] = {0, 1};
    struct lab_pci a = device("0000:01:00.0", 0, port, 2), b = device("0000:01:00.1", 0, port, 2);
    assert_int_equal(lab_machine_link(&one, &a, &b), LAB_LINK_PIX);
    struct lab_pci c = device("0000:00:02.0", 0, port, 1);
    assert_int_equal(lab_machine_link(&one, &a, &c), LAB_LINK_PHB);
}

LAB_TEST(every_class_has_a_name_and_an_explanation) {
    for (enum lab_link link = LAB_LINK_SELF; link <= LAB_LINK_UNKNOWN; link++) {
        assert_true(strlen(lab_link_name(link)) > 0);
        assert_true(strlen(lab_link_explanation(link)) > 10);
    }
    assert_string_equal(lab_link_name(LAB_LINK_SELF), "X");
    assert_string_equal(lab_link_name(LAB_LINK_UNKNOWN), "?");
}

LAB_TEST(sets_of_cpus_read_as_the_kernel_writes_them) {
    int items[] = {0, 1, 2, 5, 7, 8};
    struct lab_cpus cpus = {items, 6};
    LAB_AUTO(str, text);
    lab_cpus_write(&cpus, &text);
    assert_string_equal(text.text, "0-2,5,7-8");
    assert_true(lab_cpus_contain(&cpus, 5));
    assert_false(lab_cpus_contain(&cpus, 6));
}
