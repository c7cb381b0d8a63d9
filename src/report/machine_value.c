/* machine_value.c: devices for programs; keys in the order of the tables. */
#include "report/report.h"

struct lab_value *lab_report_device_value(const struct lab_device_ref *device,
                                          struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", device->name);
    lab_value_set_string(arena, map, "description", device->description);
    lab_value_set_string(arena, map, "physical", device->physical);
    lab_value_set(arena, map, "node",
                  device->node >= 0 ? lab_value_int(arena, device->node) : lab_value_null(arena));
    lab_value_set(arena, map, "cpus", lab_cpus_value(&device->cpus, arena));
    lab_value_set_int(arena, map, "memory_bytes", device->memory_bytes);
    lab_value_set_bool(arena, map, "simulated", device->simulated);
    return map;
}

struct lab_value *lab_report_backends_value(const struct lab_device_offer *offers, int count,
                                            struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        struct lab_value *map = lab_value_map(arena), *devices = lab_value_list(arena);
        lab_value_set_string(arena, map, "backend", offers[i].backend);
        for (int j = 0; j < offers[i].devices.count; j++)
            lab_value_append(arena, devices,
                             lab_report_device_value(&offers[i].devices.items[j], arena));
        lab_value_set(arena, map, "devices", devices);
        lab_value_set_string(arena, map, "why_none", offers[i].why_none);
        lab_value_append(arena, list, map);
    }
    return list;
}
