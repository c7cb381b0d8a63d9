/* backends.c: the devices that can be selected, with the names to paste behind --device. */
#include "report/machine_internal.h"

/* Which cores a device has is what tells slices of a node apart. */
static bool has_cpus(const struct lab_device_offer *offer) {
    for (int i = 0; i < offer->devices.count; i++)
        if (offer->devices.items[i].cpus.count)
            return true;
    return false;
}

static void add_devices(struct lab_doc *doc, const struct lab_device_offer *offer) {
    static const struct lab_doc_column columns[] = {{NULL, "--device", .align = LAB_ALIGN_WHOLE},
                                                    {NULL, "Node", LAB_UNIT_FIGURE},
                                                    {NULL, "Memory", LAB_UNIT_FIGURE},
                                                    {NULL, "CPUs", .optional = true},
                                                    {NULL, "What"}};
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < offer->devices.count; i++) {
        const struct lab_device_ref *device = &offer->devices.items[i];
        LAB_AUTO(str, cpus);
        if (has_cpus(offer))
            lab_cpus_write(&device->cpus, &cpus);
        lab_doc_cell(doc, "%s", device->name);
        report_add_node(doc, device->node);
        report_add_size(doc, device->memory_bytes > 0 ? device->memory_bytes : -1);
        lab_doc_cell(doc, "%s", cpus.text);
        lab_doc_cell(doc, "%s%s", device->description, device->simulated ? " (simulated)" : "");
    }
}

/* --- for programs --- */

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

static struct lab_value *backends_value(const struct lab_device_offer *offers, int count,
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

void lab_report_add_backends(struct lab_doc *doc, const struct lab_device_offer *offers,
                             int count) {
    lab_doc_data(doc, "backends", backends_value(offers, count, lab_doc_arena(doc)));
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Devices"});
    for (int i = 0; i < count; i++) {
        const struct lab_device_offer *offer = &offers[i];
        bool none = offer->devices.count == 0;
        const char *why = offer->why_none ? offer->why_none : "nothing was found";
        lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s%s%s", offer->backend, offer->help,
                     none ? ". None here: " : "", none ? why : "");
        if (!none)
            add_devices(doc, offer);
    }
    lab_doc_end(doc);
}
