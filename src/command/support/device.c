/* support/device.c */
#include "command/support/device.h"

struct lab_report_device lab_support_device(const struct lab_device_ref *ref) {
    return (struct lab_report_device){
        .name = ref->name,
        .description = ref->description,
        .physical = ref->physical,
        .node = ref->node,
        .cpus = ref->cpus,
        .memory_bytes = ref->memory_bytes,
        .simulated = ref->simulated,
    };
}

int lab_support_backends(const struct lab_machine *machine, struct lab_arena *arena,
                         struct lab_report_backend **ret_backends) {
    int count = 0;
    while (lab_backends[count])
        count++;
    struct lab_report_backend *backends = lab_arena_alloc(arena, (size_t)count, sizeof *backends);
    for (int i = 0; i < count; i++) {
        const struct lab_backend *backend = lab_backends[i];
        struct lab_device_list list = {0};
        struct lab_err err = LAB_ERR_INIT;
        const char *why_none = NULL;
        /* a backend that fails has no devices to offer, and its failure is the reason */
        if (backend->select(machine, "", arena, &list, &why_none, &err) < 0) {
            list.count = 0;
            why_none = lab_arena_strdup(arena, err.text);
        }
        struct lab_report_device *devices =
            lab_arena_alloc(arena, (size_t)list.count, sizeof *devices);
        for (int j = 0; j < list.count; j++)
            devices[j] = lab_support_device(&list.items[j]);
        backends[i] = (struct lab_report_backend){backend->name, backend->help, devices, list.count,
                                                  why_none};
    }
    *ret_backends = backends;
    return count;
}
