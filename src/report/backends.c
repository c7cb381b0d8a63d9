/* backends.c: the devices that can be selected, with the names to paste behind --device. */
#include "report/report.h"

/* Which cores a device has is what tells slices of a node apart. */
static bool has_cpus(const struct lab_device_offer *offer) {
    for (int i = 0; i < offer->devices.count; i++)
        if (offer->devices.items[i].cpus.count)
            return true;
    return false;
}

static void add_devices(const struct lab_device_offer *offer, struct lab_style style,
                        struct lab_str *out) {
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "--device", LAB_ALIGN_WHOLE);
    lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Memory", LAB_ALIGN_RIGHT);
    if (has_cpus(offer))
        lab_table_column(table, "CPUs", LAB_ALIGN_LEFT);
    lab_table_column(table, "What", LAB_ALIGN_LEFT);
    for (int i = 0; i < offer->devices.count; i++) {
        const struct lab_device_ref *device = &offer->devices.items[i];
        struct lab_str text;
        lab_str_init(&text);
        if (device->memory_bytes > 0)
            lab_str_add_bytes_binary(&text, (double)device->memory_bytes);
        else
            lab_str_add(&text, "unknown");
        lab_table_cell(table, "%s", device->name);
        if (device->node >= 0)
            lab_table_cell(table, "%d", device->node);
        else
            lab_table_cell(table, "unknown");
        lab_table_cell(table, "%s", text.text);
        if (has_cpus(offer)) {
            lab_str_clear(&text);
            lab_cpus_write(&device->cpus, &text);
            lab_table_cell(table, "%s", text.text);
        }
        lab_table_cell(table, "%s%s", device->description, device->simulated ? " (simulated)" : "");
        lab_str_release(&text);
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
}

void lab_report_backends(const struct lab_device_offer *offers, int count, struct lab_style style,
                         struct lab_str *out) {
    lab_text_heading("Devices", style, out);
    for (int i = 0; i < count; i++) {
        const struct lab_device_offer *offer = &offers[i];
        struct lab_str line;
        lab_str_init(&line);
        lab_str_printf(&line, "%s: %s", offer->backend, offer->help);
        if (offer->devices.count == 0)
            lab_str_printf(&line, ". None here: %s",
                           offer->why_none ? offer->why_none : "nothing was found");
        lab_str_add(out, "  ");
        lab_text_wrap(line.text, 2, 4, style.columns, out);
        lab_str_add(out, "\n");
        lab_str_release(&line);
        if (offer->devices.count)
            add_devices(offer, style, out);
    }
}
