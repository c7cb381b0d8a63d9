/*
 * fuzz_machine.c: any bytes as a recorded topology or as the machine.json of a study either are
 * refused or give a machine whose parts refer to each other; written as JSON, it reads back with
 * as many nodes.
 * covers: src/machine/recorded.c src/machine/machine_json.c src/machine/nodes.c src/machine/pci.c
 */
#include "base/json.h"
#include "folder.h"
#include "machine/machine.h"
#include "machine/machine_json.h"

#include <string.h>

static void check_nodes(const struct lab_machine *machine) {
    for (int i = 0; i < machine->pci_count; i++)
        require(machine->pci[i].node >= -1 && machine->pci[i].node < machine->node_count);
}

static void check_json(const char *text, struct lab_arena *arena) {
    const struct lab_machine *machine = lab_machine_json_read(text, arena);
    struct lab_machine_words words = lab_machine_json_words(text, arena);
    lab_machine_json_is_simulated(text, arena);
    require(words.line && words.gpu_count >= 0 && words.node_count >= 0);
    if (machine)
        check_nodes(machine);
}

static void check_topology(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine;
    if (lab_machine_open(folder_write("topology.xml", data, size), &machine, &err) < 0) {
        require_error(&err);
        return;
    }
    check_nodes(machine);
    const char *text = lab_json_text(lab_machine_json_value(machine, &arena), &arena);
    const struct lab_machine *again = lab_machine_json_read(text, &arena);
    require(again && again->node_count == machine->node_count &&
            again->pci_count == machine->pci_count);
    lab_machine_close(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    if (size && memchr(data, '<', size)) /* a child reads it first, which takes a while */
        check_topology(data, size);
    else
        check_json(lab_arena_strndup(&arena, (const char *)data, size), &arena);
    return 0;
}
