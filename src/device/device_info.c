/* device_info.c: devices of each backend as plain data, for reports. */
#include "device/device_info.h"

struct lab_report_device lab_device_describe(const struct lab_device_ref *ref) {
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

static int count_backends(void) {
    int count = 0;
    while (lab_backends[count])
        count++;
    return count;
}

/* The members of `list` that belong to this backend. */
static struct lab_report_backend report_backend(const struct lab_backend *backend,
                                                const struct lab_device_list *list,
                                                struct lab_arena *arena) {
    struct lab_report_device *devices =
        lab_arena_alloc(arena, (size_t)list->count, sizeof *devices);
    int count = 0;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].backend == backend)
            devices[count++] = lab_device_describe(&list->items[i]);
    return (struct lab_report_backend){
        .name = backend->name, .help = backend->help, .devices = devices, .device_count = count};
}

int lab_device_backends(const struct lab_machine *machine, struct lab_arena *arena,
                        struct lab_report_backend **ret_backends) {
    struct lab_report_backend *backends =
        lab_arena_alloc(arena, (size_t)count_backends(), sizeof *backends);
    int count = 0;
    for (int i = 0; lab_backends[i]; i++) {
        const struct lab_backend *backend = lab_backends[i];
        if (backend->rank < 0) /* its devices are nowhere: they have to be named */
            continue;
        struct lab_device_list list = {0};
        struct lab_err err = LAB_ERR_INIT;
        const char *why_none = NULL;
        /* a backend that fails has no devices to offer, and its failure is the reason */
        if (backend->select(machine, "", arena, &list, &why_none, &err) < 0) {
            list.count = 0;
            why_none = lab_arena_strdup(arena, err.text);
        }
        backends[count] = report_backend(backend, &list, arena);
        backends[count++].why_none = why_none;
    }
    *ret_backends = backends;
    return count;
}

int lab_device_selected(const struct lab_machine *machine, const char *selector,
                        struct lab_arena *arena, struct lab_report_backend **ret_backends,
                        struct lab_err *err) {
    struct lab_device_list list;
    if (lab_device_select(machine, selector, arena, &list, err) < 0)
        return -1;
    struct lab_report_backend *backends =
        lab_arena_alloc(arena, (size_t)count_backends(), sizeof *backends);
    int count = 0;
    for (int i = 0; lab_backends[i]; i++) {
        backends[count] = report_backend(lab_backends[i], &list, arena);
        count += backends[count].device_count > 0;
    }
    *ret_backends = backends;
    return count;
}
