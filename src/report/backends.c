/* backends.c: the devices that can be selected, with the names to paste behind --device. */
#include "report/report.h"

static void add_devices(const struct lab_report_backend *backend, struct lab_style style,
                        struct lab_str *out) {
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "--device", LAB_ALIGN_LEFT);
    lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Memory", LAB_ALIGN_RIGHT);
    lab_table_column(table, "What", LAB_ALIGN_LEFT);
    for (int i = 0; i < backend->device_count; i++) {
        const struct lab_report_device *device = &backend->devices[i];
        struct lab_str memory;
        lab_str_init(&memory);
        if (device->memory_bytes > 0)
            lab_str_add_bytes_binary(&memory, (double)device->memory_bytes);
        else
            lab_str_add(&memory, "unknown");
        lab_table_cell(table, "%s", device->name);
        if (device->node >= 0)
            lab_table_cell(table, "%d", device->node);
        else
            lab_table_cell(table, "unknown");
        lab_table_cell(table, "%s", memory.text);
        lab_table_cell(table, "%s%s", device->description, device->simulated ? " (simulated)" : "");
        lab_str_release(&memory);
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
}

void lab_report_backends(const struct lab_report_backend *backends, int count,
                         struct lab_style style, struct lab_str *out) {
    lab_text_heading("Devices", style, out);
    for (int i = 0; i < count; i++) {
        const struct lab_report_backend *backend = &backends[i];
        struct lab_str line;
        lab_str_init(&line);
        lab_str_printf(&line, "%s: %s", backend->name, backend->help);
        if (backend->device_count == 0)
            lab_str_printf(&line, ". None here: %s",
                           backend->why_none ? backend->why_none : "nothing was found");
        lab_str_add(out, "  ");
        lab_text_wrap(line.text, 2, 4, style.columns, out);
        lab_str_add(out, "\n");
        lab_str_release(&line);
        if (backend->device_count)
            add_devices(backend, style, out);
    }
}
