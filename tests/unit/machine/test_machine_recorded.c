/*
 * Recorded machines: everything that is read from a topology, and the whole table of links between
 * PCI devices, against what the machines in tests/fixtures were built as.
 */
#include "base/str.h"
#include "machine/machine.h"

#include "test.h"

static struct lab_machine *open_fixture(const char *name) {
    LAB_AUTO(str, path);
    lab_str_printf(&path, "%s/tests/fixtures/%s.xml", LAB_TEST_SOURCE_DIR, name);
    struct lab_machine *machine = NULL;
    ASSERT_OK(lab_machine_open(path.text, &machine, err));
    assert_string_equal(machine->source, path.text);
    return machine;
}

static void assert_cpus(const struct lab_cpus *cpus, const char *expected) {
    LAB_AUTO(str, text);
    lab_cpus_write(cpus, &text);
    assert_string_equal(text.text, expected);
}

struct expected_pci {
    const char *address;
    const char *links; /* to each device, itself among them, in the order of addresses */
    int node;
    enum lab_pci_kind kind;
    unsigned ids; /* vendor << 16 | device */
    const char *os_name;
};

static void assert_links(const struct lab_machine *machine, int row, const char *expected) {
    LAB_AUTO(str, text);
    for (int i = 0; i < machine->pci_count; i++) {
        enum lab_link link = lab_machine_link(machine, &machine->pci[row], &machine->pci[i]);
        assert_int_equal(link, lab_machine_link(machine, &machine->pci[i], &machine->pci[row]));
        lab_str_printf(&text, "%s%s", i > 0 ? " " : "", lab_link_name(link));
    }
    assert_string_equal(text.text, expected);
}

static void assert_pci(const struct lab_machine *machine, const struct expected_pci *expected,
                       int count) {
    assert_int_equal(machine->pci_count, count);
    for (int i = 0; i < count; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        assert_string_equal(pci->address, expected[i].address);
        assert_int_equal(pci->node, expected[i].node);
        assert_int_equal(pci->kind, expected[i].kind);
        assert_int_equal((unsigned)pci->vendor_id << 16 | pci->device_id, expected[i].ids);
        assert_string_equal(pci->os_name, expected[i].os_name);
        assert_true(pci->bridge_count >= 2);
        assert_links(machine, i, expected[i].links);
    }
}

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* --- two sockets, four GPUs --- */

LAB_TEST(two_sockets_have_their_cores_memory_and_distances) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");

    assert_true(machine->recorded);
    assert_string_equal(machine->host, "a10g-4");
    assert_string_equal(machine->cpu_model, "Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz");
    assert_int_equal(machine->package_count, 2);
    assert_int_equal(machine->core_count, 32);
    assert_cpus(&machine->cores[17].cpus, "17,49");
    assert_int_equal(machine->cores[17].package, 1);
    assert_int_equal(machine->cores[17].node, 1);

    assert_int_equal(machine->node_count, 2);
    assert_cpus(&machine->nodes[0].cpus, "0-15,32-47");
    assert_cpus(&machine->nodes[1].cpus, "16-31,48-63");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(machine->nodes[i].number, i);
        assert_int_equal(machine->nodes[i].core_count, 16);
        assert_int_equal(machine->nodes[i].memory_bytes, 256LL << 30);
        assert_int_equal(machine->nodes[i].free_bytes, -1);
        assert_int_equal(lab_machine_free_bytes(machine, i), -1);
    }
    assert_int_equal(lab_machine_distance(machine, 0, 0), 10);
    assert_int_equal(lab_machine_distance(machine, 0, 1), 20);
    assert_int_equal(lab_machine_distance(machine, 1, 0), 20);
    assert_int_equal(lab_machine_distance(machine, 0, 2), 0);
    lab_machine_close(machine);
}

LAB_TEST(equal_caches_are_one_row) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");
    static const struct lab_cache expected[] = {
        {1, 'd', 48 << 10, 64, 32, 1},
        {1, 'i', 32 << 10, 64, 32, 1},
        {2, 'u', 1280 << 10, 64, 32, 1},
        {3, 'u', 24 << 20, 64, 2, 16},
    };
    assert_int_equal(machine->cache_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(machine->caches[i].level, expected[i].level);
        assert_int_equal(machine->caches[i].kind, expected[i].kind);
        assert_int_equal(machine->caches[i].size_bytes, expected[i].size_bytes);
        assert_int_equal(machine->caches[i].line_bytes, 64);
        assert_int_equal(machine->caches[i].count, expected[i].count);
        assert_int_equal(machine->caches[i].shared_by_cores, expected[i].shared_by_cores);
    }
    lab_machine_close(machine);
}

/* GPUs 19 and 1a share a switch; 99 and b1 have a host bridge each. */
LAB_TEST(two_sockets_show_every_class_of_link_but_pxb) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");
    static const struct expected_pci expected[] = {
        {"0000:01:00.0", "X NODE NODE NODE SYS SYS SYS", 0, LAB_PCI_GPU, 0x1a032000, "card0"},
        {"0000:19:00.0", "NODE X PIX PHB SYS SYS SYS", 0, LAB_PCI_GPU, 0x10de2237, "card1"},
        {"0000:1a:00.0", "NODE PIX X PHB SYS SYS SYS", 0, LAB_PCI_GPU, 0x10de2237, "card2"},
        {"0000:1b:00.0", "NODE PHB PHB X SYS SYS SYS", 0, LAB_PCI_NETWORK, 0x80861572, "eno1"},
        {"0000:99:00.0", "SYS SYS SYS SYS X PHB NODE", 1, LAB_PCI_GPU, 0x10de2237, "card3"},
        {"0000:9a:00.0", "SYS SYS SYS SYS PHB X NODE", 1, LAB_PCI_STORAGE, 0x144da80a, "nvme0n1"},
        {"0000:b1:00.0", "SYS SYS SYS SYS NODE NODE X", 1, LAB_PCI_GPU, 0x10de2237, "card4"},
    };
    assert_pci(machine, expected, COUNT(expected));
    assert_string_equal(machine->pci[1].vendor, "NVIDIA Corporation");
    assert_string_equal(machine->pci[1].name, "GA102GL [A10G]");
    assert_true(machine->pci[1].link_gbs > 31.5 && machine->pci[1].link_gbs < 31.6);
    assert_true(machine->pci[0].link_gbs == 0);
    assert_int_equal(machine->pci[1].class_id, 0x0302);
    lab_machine_close(machine);
}

/* --- eight GPUs --- */

/* Its 21 × 21 links follow a rule that can be written down, so that is what is compared with. */
LAB_TEST(eight_gpus_reach_their_own_nic_by_pix_and_their_pair_by_pxb) {
    struct lab_machine *machine = open_fixture("8gpu");
    assert_int_equal(machine->package_count, 2);
    assert_int_equal(machine->core_count, 112);
    assert_cpus(&machine->nodes[1].cpus, "56-111,168-223");
    assert_int_equal(lab_machine_distance(machine, 0, 1), 21);

    /* in the order of addresses: VGA, then four of {GPU, NIC, GPU, NIC, NVMe} */
    assert_int_equal(machine->pci_count, 21);
    int gpus = 0;
    for (int i = 0; i < 21; i++)
        gpus += machine->pci[i].vendor_id == 0x10de;
    assert_int_equal(gpus, 8);
    for (int a = 0; a < 21; a++)
        for (int b = 0; b < 21; b++) {
            int host_a = a == 0 ? -1 : (a - 1) / 5, host_b = b == 0 ? -1 : (b - 1) / 5;
            int place_a = (a - 1) % 5, place_b = (b - 1) % 5;
            enum lab_link expected = a == b                       ? LAB_LINK_SELF
                                     : (a > 10) != (b > 10)       ? LAB_LINK_SYS
                                     : host_a != host_b           ? LAB_LINK_NODE
                                     : place_a / 2 == place_b / 2 ? LAB_LINK_PIX
                                                                  : LAB_LINK_PXB;
            const struct lab_pci *from = &machine->pci[a], *to = &machine->pci[b];
            if (lab_machine_link(machine, from, to) != expected)
                fail_msg("%s to %s is %s, not %s", from->address, to->address,
                         lab_link_name(lab_machine_link(machine, from, to)),
                         lab_link_name(expected));
        }
    lab_machine_close(machine);
}

LAB_TEST(eight_gpus_and_their_nics_have_names_and_nodes) {
    struct lab_machine *machine = open_fixture("8gpu");
    const struct lab_pci *gpu = &machine->pci[1], *nic = &machine->pci[2],
                         *last = &machine->pci[18];
    assert_string_equal(gpu->address, "0000:1a:00.0");
    assert_string_equal(gpu->name, "GH100 [H100 SXM5 80GB]");
    assert_string_equal(gpu->os_name, "cuda0");
    assert_int_equal(gpu->node, 0);
    assert_int_equal(nic->kind, LAB_PCI_NETWORK);
    assert_string_equal(nic->os_name, "ibp0s0");
    assert_int_equal(nic->device_id, 0x1021);
    assert_int_equal(last->device_id, 0x2330);
    assert_string_equal(last->os_name, "cuda7");
    assert_int_equal(last->node, 1);
    assert_true(last->link_gbs > 63 && last->link_gbs < 63.1);
    lab_machine_close(machine);
}

/* --- four nodes, ten GPUs --- */

LAB_TEST(four_nodes_share_one_socket) {
    struct lab_machine *machine = open_fixture("4node-10gpu");
    assert_int_equal(machine->package_count, 1);
    assert_int_equal(machine->core_count, 96);
    assert_int_equal(machine->node_count, 4);
    static const char *const cpus[] = {"0-23,96-119", "24-47,120-143", "48-71,144-167",
                                       "72-95,168-191"};
    for (int i = 0; i < 4; i++) {
        assert_cpus(&machine->nodes[i].cpus, cpus[i]);
        assert_int_equal(machine->nodes[i].core_count, 24);
        assert_int_equal(machine->nodes[i].memory_bytes, 192LL << 30);
        for (int j = 0; j < 4; j++)
            assert_int_equal(lab_machine_distance(machine, i, j), i == j ? 10 : 12);
    }
    assert_int_equal(machine->caches[3].count, 12);
    assert_int_equal(machine->caches[3].shared_by_cores, 8);
    lab_machine_close(machine);
}

LAB_TEST(ten_gpus_lie_unevenly_on_four_nodes) {
    struct lab_machine *machine = open_fixture("4node-10gpu");
    static const struct expected_pci expected[] = {
        {"0000:03:00.0", "X PIX PHB SYS SYS SYS SYS SYS SYS SYS SYS SYS", 0, LAB_PCI_GPU,
         0x10de26b9, "card0"},
        {"0000:04:00.0", "PIX X PHB SYS SYS SYS SYS SYS SYS SYS SYS SYS", 0, LAB_PCI_GPU,
         0x10de26b9, "card1"},
        {"0000:05:00.0", "PHB PHB X SYS SYS SYS SYS SYS SYS SYS SYS SYS", 0, LAB_PCI_GPU,
         0x10de26b9, "card2"},
        {"0000:41:00.0", "SYS SYS SYS X PHB PHB SYS SYS SYS SYS SYS SYS", 1, LAB_PCI_GPU,
         0x10de26b9, "card3"},
        {"0000:42:00.0", "SYS SYS SYS PHB X PHB SYS SYS SYS SYS SYS SYS", 1, LAB_PCI_GPU,
         0x10de26b9, "card4"},
        {"0000:43:00.0", "SYS SYS SYS PHB PHB X SYS SYS SYS SYS SYS SYS", 1, LAB_PCI_NETWORK,
         0x15b31021, "ens1np0"},
        {"0000:83:00.0", "SYS SYS SYS SYS SYS SYS X PIX PHB SYS SYS SYS", 2, LAB_PCI_GPU,
         0x10de26b9, "card5"},
        {"0000:84:00.0", "SYS SYS SYS SYS SYS SYS PIX X PHB SYS SYS SYS", 2, LAB_PCI_GPU,
         0x10de26b9, "card6"},
        {"0000:85:00.0", "SYS SYS SYS SYS SYS SYS PHB PHB X SYS SYS SYS", 2, LAB_PCI_GPU,
         0x10de26b9, "card7"},
        {"0000:c1:00.0", "SYS SYS SYS SYS SYS SYS SYS SYS SYS X PHB PHB", 3, LAB_PCI_GPU,
         0x10de26b9, "card8"},
        {"0000:c2:00.0", "SYS SYS SYS SYS SYS SYS SYS SYS SYS PHB X PHB", 3, LAB_PCI_GPU,
         0x10de26b9, "card9"},
        {"0000:c3:00.0", "SYS SYS SYS SYS SYS SYS SYS SYS SYS PHB PHB X", 3, LAB_PCI_STORAGE,
         0x1e0f0025, "nvme0n1"},
    };
    assert_pci(machine, expected, COUNT(expected));
    lab_machine_close(machine);
}

/* --- the edges --- */

LAB_TEST(one_node_needs_no_distances) {
    struct lab_machine *machine = open_fixture("1node-nogpu");
    assert_int_equal(machine->node_count, 1);
    assert_int_equal(machine->core_count, 8);
    assert_cpus(&machine->nodes[0].cpus, "0-15");
    assert_int_equal(lab_machine_distance(machine, 0, 0), 10);
    static const struct expected_pci expected[] = {
        {"0000:01:00.0", "X PHB", 0, LAB_PCI_STORAGE, 0x144da80a, "nvme0n1"},
        {"0000:02:00.0", "PHB X", 0, LAB_PCI_NETWORK, 0x808615f3, "enp2s0"},
    };
    assert_pci(machine, expected, COUNT(expected));

    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_machine_require_node(machine, 0, &err), 0);
    assert_int_equal(lab_machine_require_node(machine, 1, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "there is no NUMA node 1: ");
    assert_contains(err.text, "1node-nogpu.xml has only NUMA node 0");
    lab_machine_close(machine);
}

LAB_TEST(a_gpu_that_the_firmware_does_not_place_has_no_node) {
    struct lab_machine *machine = open_fixture("unknown-node");
    static const struct expected_pci expected[] = {
        {"0000:01:00.0", "X ? ?", 0, LAB_PCI_NETWORK, 0x80861572, "eno1"},
        {"0000:3b:00.0", "? X ?", -1, LAB_PCI_GPU, 0x10de2237, "card0"},
        {"0000:86:00.0", "? ? X", -1, LAB_PCI_GPU, 0x10de2237, "card1"},
    };
    assert_pci(machine, expected, COUNT(expected));
    lab_machine_close(machine);
}

LAB_TEST(a_node_with_memory_only_has_no_cores_and_takes_no_device) {
    struct lab_machine *machine = open_fixture("memory-only-node");
    assert_int_equal(machine->node_count, 3);
    assert_cpus(&machine->nodes[0].cpus, "0-11,24-35");
    assert_cpus(&machine->nodes[1].cpus, "12-23,36-47");
    assert_cpus(&machine->nodes[2].cpus, "none");
    assert_int_equal(machine->nodes[2].core_count, 0);
    assert_int_equal(machine->nodes[2].memory_bytes, 256LL << 30);
    assert_int_equal(lab_machine_distance(machine, 0, 2), 14);
    assert_int_equal(lab_machine_distance(machine, 2, 1), 24);
    assert_int_equal(machine->pci_count, 1);
    assert_int_equal(machine->pci[0].node, 0);
    lab_machine_close(machine);
}

LAB_TEST(a_node_that_is_not_there_is_refused_with_those_that_are) {
    struct lab_machine *machine = open_fixture("4node-10gpu");
    ASSERT_FAILS(lab_machine_require_node(machine, 4, err), LAB_ERR_USER,
                 "has nodes 0, 1, 2 and 3");
    assert_int_equal(lab_machine_node_index(machine, 4), -1);
    lab_machine_close(machine);
}

static void assert_only_a_recording(int result, struct lab_err *err) {
    assert_int_equal(result, -1);
    assert_int_equal(err->code, LAB_ERR_UNSUPPORTED);
    assert_contains(err->text, "2socket-4gpu.xml is only a recording");
    *err = LAB_ERR_INIT;
}

LAB_TEST(nothing_can_be_bound_or_proven_on_a_recording) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");
    struct lab_err err = LAB_ERR_INIT;
    void *memory = NULL;
    char byte = 0;
    struct lab_page_census census;
    assert_only_a_recording(lab_bind_cpus(machine, &machine->nodes[0].cpus, false, &err), &err);
    assert_only_a_recording(lab_bind_cpus(machine, &machine->nodes[0].cpus, true, &err), &err);
    assert_only_a_recording(lab_bind_thread_to_node(machine, 0, &err), &err);
    assert_only_a_recording(lab_bind_prove_thread(machine, 0, &err), &err);
    assert_only_a_recording(lab_memory_map(machine, 0, 4096, 0, &memory, &err), &err);
    assert_only_a_recording(lab_memory_map(machine, -1, 4096, 0, &memory, &err), &err);
    assert_only_a_recording(lab_memory_census(machine, &byte, 1, &census, &err), &err);
    assert_only_a_recording(lab_memory_prove(machine, &byte, 1, 0, &err), &err);
    assert_null(memory);
    lab_machine_close(machine);
}
