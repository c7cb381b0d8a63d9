/*
 * select.c: which devices a selector of the sim backend names: `sim:NAME` all GPUs of a machine,
 * `sim:NAME:3` one of them. NAME is a file where it has a '/' or ends in .yaml.
 */
#include "device/sim/sim.h"

#include <stdlib.h>
#include <string.h>

extern const struct lab_backend lab_backend_sim;

#define BYTES_GB 1e9

/* The number behind the last colon, or -1; `*ret_length` is that of the name before it. */
static int read_unit(const char *text, size_t *ret_length) {
    const char *colon = strrchr(text, ':');
    *ret_length = strlen(text);
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strlen(colon + 1) > 6)
        return -1;
    *ret_length = (size_t)(colon - text);
    return (int)strtol(colon + 1, NULL, 10);
}

static void add(const struct sim_machine *machine, int unit, struct lab_arena *arena,
                struct lab_device_list *list) {
    const struct sim_gpu *gpu = &machine->gpus[unit];
    struct lab_device_ref *ref = lab_device_list_add(list, arena);
    const char *name = lab_arena_printf(arena, "sim:%s:%d", machine->name, unit);
    *ref = (struct lab_device_ref){
        .backend = "sim",
        .name = name,
        .description = gpu->model->name,
        .physical = name,
        .unit = unit,
        .slices = 1,
        .node = (int)machine->nodes[sim_shown_node(machine, gpu)].number,
        .memory_bytes = (int64_t)(gpu->model->memory_gb * BYTES_GB),
        .simulated = true,
        .machine = machine->shown,
        .definition = machine->definition,
    };
}

int sim_select(const struct lab_machine *here, const char *rest, struct lab_arena *arena,
               struct lab_device_list *list, const char **ret_why_none, struct lab_err *err) {
    (void)here; /* a simulated machine is the same everywhere */
    if (!*rest) {
        *ret_why_none = "name a machine, such as sim:l40s-10; 'gpulab help devices' lists them";
        return 0;
    }
    if (*rest != ':' || !rest[1])
        return lab_err_set(err, LAB_ERR_USER,
                           "sim%s isn't a device; write sim:MACHINE or sim:MACHINE:NUMBER, such as "
                           "sim:l40s-10:3",
                           rest);
    size_t length;
    int unit = read_unit(rest + 1, &length);
    const char *name = lab_arena_strndup(arena, rest + 1, length);
    const char *text, *origin;
    size_t size;
    struct sim_machine *machine;
    if (sim_find(name, arena, &text, &size, &origin, err) < 0 ||
        sim_describe(name, text, size, origin, arena, &machine, err) < 0)
        return -1;
    if (unit >= machine->gpu_count)
        return lab_err_set(err, LAB_ERR_USER, "sim%s: %s has %d GPU%s, so the last is sim:%s:%d",
                           rest, name, machine->gpu_count, machine->gpu_count == 1 ? "" : "s", name,
                           machine->gpu_count - 1);
    for (int i = unit < 0 ? 0 : unit; i < (unit < 0 ? machine->gpu_count : unit + 1); i++)
        add(machine, i, arena, list);
    return 0;
}
