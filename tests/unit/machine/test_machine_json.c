/* test_machine_json.c: what a study keeps of its machine, written and read back. */
#include "machine/machine_json.h"

#include "base/file/file.h"
#include "base/json.h"
#include "machine/machine.h"
#include "test.h"

/* A file that version 0.1.0 wrote for a simulated machine with ten GPUs on four nodes. */
LAB_TEST(file_of_an_earlier_version_is_read) {
    char *text;
    size_t length;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_file_read(LAB_TEST_SOURCE_DIR "/tests/fixtures/0.1.0/numa/machine.json", 1 << 20,
                      &test_arena, &text, &length, &err) < 0)
        fail_msg("%s", err.text);
    const struct lab_machine *machine = lab_machine_json_read(text, &test_arena);
    assert_int_equal(machine->node_count, 4);
    assert_true(lab_cpus_contain(&machine->nodes[2].cpus, 47));
    assert_int_equal(lab_machine_distance(machine, 0, 1), 12);
    assert_int_equal(lab_machine_distance(machine, 0, 2), 32);
    assert_true(machine->nodes[3].free_bytes == -1);
    assert_int_equal(machine->pci_count, 10);
    assert_int_equal(machine->pci[9].kind, LAB_PCI_GPU);
    assert_true(machine->recorded && machine->simulated);
    assert_true(lab_machine_json_is_simulated(text, &test_arena));
    struct lab_machine_words words = lab_machine_json_words(text, &test_arena);
    assert_string_equal(
        words.line,
        "2 × 32-core server CPU, two nodes a socket, 64 cores, 4 NUMA nodes, 10 × NVIDIA L40S");
    assert_int_equal(words.gpu_count, 10);
    assert_int_equal(words.node_count, 4);
}

static void assert_same_nodes(const struct lab_machine *a, const struct lab_machine *b) {
    assert_int_equal(a->node_count, b->node_count);
    for (int i = 0; i < a->node_count; i++) {
        const struct lab_node *x = &a->nodes[i], *y = &b->nodes[i];
        assert_int_equal(x->number, y->number);
        assert_int_equal(x->core_count, y->core_count);
        assert_true(x->memory_bytes == y->memory_bytes && x->free_bytes == y->free_bytes);
        assert_int_equal(x->cpus.count, y->cpus.count);
        assert_memory_equal(x->cpus.items, y->cpus.items, (size_t)x->cpus.count * sizeof(int));
        for (int k = 0; k < a->node_count; k++)
            assert_int_equal(lab_machine_distance(a, i, k), lab_machine_distance(b, i, k));
    }
}

/* What hwloc said of a machine comes back as it was. */
LAB_TEST(what_is_written_is_read) {
    static const char *const names[] = {"2socket-4gpu", "4node-10gpu", "memory-only-node",
                                        "unknown-node", "1node-nogpu"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct lab_machine *machine;
        LAB_AUTO(str, text);
        ASSERT_OK(lab_machine_open(
            lab_arena_printf(&test_arena, LAB_TEST_SOURCE_DIR "/tests/fixtures/%s.xml", names[n]),
            &machine, err));
        lab_json_write(lab_machine_json_value(machine, &test_arena), 2, &text);
        const struct lab_machine *read = lab_machine_json_read(text.text, &test_arena);
        assert_same_nodes(machine, read);
        assert_string_equal(read->host, machine->host);
        assert_string_equal(read->cpu_model, machine->cpu_model);
        assert_int_equal(read->pci_count, machine->pci_count);
        for (int i = 0; i < machine->pci_count; i++) {
            assert_int_equal(lab_pci_shared_bridges(&read->pci[i], &read->pci[0]),
                             lab_pci_shared_bridges(&machine->pci[i], &machine->pci[0]));
            assert_string_equal(read->pci[i].address, machine->pci[i].address);
            assert_string_equal(read->pci[i].name, machine->pci[i].name);
            assert_int_equal(read->pci[i].kind, machine->pci[i].kind);
            assert_int_equal(read->pci[i].node, machine->pci[i].node);
            assert_int_equal(read->pci[i].vendor_id, machine->pci[i].vendor_id);
            assert_int_equal(read->pci[i].device_id, machine->pci[i].device_id);
        }
        assert_false(lab_machine_json_is_simulated(text.text, &test_arena));
        lab_machine_close(machine);
    }
}
