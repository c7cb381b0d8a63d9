/* Whether two machines are the same for what is measured on them. */
#include "base/str.h"
#include "machine/machine.h"

#include "test.h"

static struct lab_machine *open_fixture(const char *name) {
    LAB_AUTO(str, path);
    lab_str_printf(&path, "%s/tests/fixtures/%s.xml", LAB_TEST_SOURCE_DIR, name);
    struct lab_machine *machine = NULL;
    ASSERT_OK(lab_machine_open(path.text, &machine, err));
    return machine;
}

LAB_TEST(free_memory_name_and_network_do_not_count) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");
    uint64_t identity = lab_machine_identity(machine);
    struct lab_machine other = *machine;
    other.host = "elsewhere";
    other.source = "another file";
    for (int i = 0; i < machine->node_count; i++)
        machine->nodes[i].free_bytes += 4096;
    int changed = 0;
    for (int i = 0; i < machine->pci_count; i++)
        if (machine->pci[i].kind == LAB_PCI_NETWORK) {
            machine->pci[i].device_id ^= 1;
            changed++;
        }
    assert_true(changed > 0);
    assert_true(lab_machine_identity(&other) == identity);
    lab_machine_close(machine);
}

LAB_TEST(what_is_measured_on_counts) {
    struct lab_machine *machine = open_fixture("2socket-4gpu");
    uint64_t identity = lab_machine_identity(machine);
    struct lab_machine other = *machine;
    other.cpu_model = "another model";
    assert_true(lab_machine_identity(&other) != identity);
    other = *machine;
    other.core_count--;
    assert_true(lab_machine_identity(&other) != identity);
    machine->distances[1]++;
    assert_true(lab_machine_identity(machine) != identity);
    machine->distances[1]--;
    for (int i = 0; i < machine->pci_count; i++)
        if (machine->pci[i].kind == LAB_PCI_GPU) {
            machine->pci[i].device_id ^= 1;
            assert_true(lab_machine_identity(machine) != identity);
            machine->pci[i].device_id ^= 1;
        }
    assert_true(lab_machine_identity(machine) == identity);
    lab_machine_close(machine);
}

LAB_TEST(every_recorded_machine_is_another) {
    static const char *const names[] = {"1node-nogpu", "2socket-4gpu",     "4node-10gpu",
                                        "8gpu",        "memory-only-node", "unknown-node"};
    enum { COUNT = sizeof names / sizeof *names };
    uint64_t identities[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct lab_machine *machine = open_fixture(names[i]);
        identities[i] = lab_machine_identity(machine);
        lab_machine_close(machine);
        for (int j = 0; j < i; j++)
            assert_true(identities[i] != identities[j]);
    }
}

LAB_TEST(this_machine_is_the_same_when_read_again) {
    struct lab_machine *first, *second;
    ASSERT_OK(lab_machine_open(NULL, &first, err));
    ASSERT_OK(lab_machine_open(NULL, &second, err));
    assert_true(lab_machine_identity(first) == lab_machine_identity(second));
    lab_machine_close(first);
    lab_machine_close(second);
}
