/*
 * top_device.c: the page of one device: what it is and how it is, in a few lines, then charts of
 * all that it tells. Charts without data leave their room to the others.
 */
#include "top/top_internal.h"

#include <math.h>

#define CHART_ROWS_MIN 4

static const struct top_chart gpu_charts[] = {
    {"utilisation",
     TOP_CHART_PERCENT,
     {{"", LAB_METRIC_UTILIZATION}, {"SM", LAB_METRIC_SM_ACTIVE}}},
    {"activity",
     TOP_CHART_PERCENT,
     {{"tensor", LAB_METRIC_TENSOR_ACTIVE}, {"DRAM", LAB_METRIC_DRAM_ACTIVE}}},
    {"memory", TOP_CHART_MEMORY, {{"", LAB_METRIC_MEMORY_USED}}},
    {"power", TOP_CHART_POWER, {{"", LAB_METRIC_POWER}}},
    {"temperature",
     TOP_CHART_HEAT,
     {{"", LAB_METRIC_TEMPERATURE}, {"memory", LAB_METRIC_MEMORY_TEMPERATURE}}},
    {"clock", TOP_CHART_CLOCK, {{"SM", LAB_METRIC_SM_CLOCK}, {"mem", LAB_METRIC_MEMORY_CLOCK}}},
    {"PCIe", TOP_CHART_RATE, {{"in", LAB_METRIC_PCIE_RX_RATE}, {"out", LAB_METRIC_PCIE_TX_RATE}}},
    {"NVLink",
     TOP_CHART_RATE,
     {{"in", LAB_METRIC_NVLINK_RX_RATE}, {"out", LAB_METRIC_NVLINK_TX_RATE}}},
    {"pipes",
     TOP_CHART_PERCENT,
     {{"FP32", LAB_METRIC_FP32_ACTIVE}, {"FP16", LAB_METRIC_FP16_ACTIVE}}},
    {"occupancy", TOP_CHART_PERCENT, {{"", LAB_METRIC_SM_OCCUPANCY}}},
};

static const struct top_chart cpu_charts[] = {
    {"CPUs",
     TOP_CHART_PERCENT,
     {{"", LAB_METRIC_CPU_UTILIZATION}, {"kernel", LAB_METRIC_CPU_SYSTEM}}},
    {"frequency", TOP_CHART_CLOCK, {{"", LAB_METRIC_CPU_FREQUENCY}}},
    {"lost to",
     TOP_CHART_PERCENT,
     {{"others", LAB_METRIC_CPU_STEAL}, {"disk", LAB_METRIC_CPU_IOWAIT}}},
    {"waiting for",
     TOP_CHART_PERCENT,
     {{"CPU", LAB_METRIC_PRESSURE_CPU}, {"disk", LAB_METRIC_PRESSURE_IO}}},
};

/* --- the lines above the charts --- */

static void add_part(struct lab_str *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_part(struct lab_str *line, const char *format, ...) {
    char text[256];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    lab_str_printf(line, "%s%s", line->length ? " · " : "", text);
}

static void add_identity(const struct top_entity *e, struct lab_str *line) {
    double generation = top_latest(e, LAB_METRIC_PCIE_GENERATION, -1);
    double width = top_latest(e, LAB_METRIC_PCIE_WIDTH, -1);
    if (*e->entity.pci)
        add_part(line, "%s", e->entity.pci);
    if (!isnan(generation) && !isnan(width))
        add_part(line, "PCIe %.0f x%.0f", generation, width);
    if (e->entity.node >= 0)
        add_part(line, "NUMA node %d", e->entity.node);
    double state = top_latest(e, LAB_METRIC_PERFORMANCE_STATE, -1);
    if (!isnan(state))
        add_part(line, "P%.0f", state);
    double fan = top_latest(e, LAB_METRIC_FAN, -1);
    if (!isnan(fan))
        add_part(line, "fan %.0f%%", fan);
}

static void add_energy(const struct top_entity *e, struct lab_str *line) {
    char text[TOP_TEXT], other[TOP_TEXT];
    double since = top_growth(e, LAB_METRIC_ENERGY);
    double all = top_latest(e, LAB_METRIC_ENERGY, -1);
    if (!isnan(since))
        add_part(line, "energy %s since start (counter at %s)", top_energy(since, text),
                 top_energy(all, other));
    double held = top_held_back_s(e);
    if (!isnan(held))
        add_part(line, "throttled for %s", top_seconds(held, text));
}

static void add_health(const struct top_entity *e, struct lab_str *line, bool *bad) {
    double corrected = top_latest(e, LAB_METRIC_ECC_CORRECTED, -1);
    double uncorrected = top_latest(e, LAB_METRIC_ECC_UNCORRECTED, -1);
    double remapped = top_latest(e, LAB_METRIC_ROWS_REMAPPED, -1);
    double pending = top_latest(e, LAB_METRIC_ROWS_PENDING, -1);
    double failed = top_latest(e, LAB_METRIC_ROWS_FAILED, -1);
    double xids = top_latest(e, LAB_METRIC_XIDS, -1);
    double replays = top_latest(e, LAB_METRIC_PCIE_REPLAYS, -1);
    if (!isnan(corrected) || !isnan(uncorrected))
        add_part(line, "ECC errors: %.0f corrected, %.0f not", fmax(corrected, 0),
                 fmax(uncorrected, 0));
    if (remapped > 0)
        add_part(line, "%.0f rows remapped", remapped);
    if (pending > 0)
        add_part(line, "%.0f rows wait for a reset", pending);
    if (failed > 0)
        add_part(line, "%.0f rows could not be remapped", failed);
    if (xids > 0)
        add_part(line, "Xid %.0f (%.0f in all)", top_latest(e, LAB_METRIC_LAST_XID, -1), xids);
    else if (!isnan(xids))
        add_part(line, "no Xid");
    if (replays > 0)
        add_part(line, "%.0f PCIe replays", replays);
    *bad = uncorrected > 0 || pending > 0 || failed > 0 || xids > 0;
}

/* All reasons in words; those that do harm are what one looks for. */
static bool add_reasons(const struct top_entity *e, struct lab_str *line) {
    const struct top_column *reasons = top_column(e, LAB_METRIC_CLOCK_REASONS, -1);
    if (!reasons)
        return false;
    LAB_AUTO(str, rest);
    LAB_AUTO(str, harm);
    for (const struct lab_clock_reason *r = lab_clock_reasons; r->bit; r++) {
        struct lab_str *to = r->harmful ? &harm : &rest;
        if ((uint64_t)reasons->value & r->bit)
            lab_str_printf(to, "%s%s", to->length ? ", " : "", r->words);
    }
    bool harmful = harm.length > 0;
    if (harmful)
        lab_str_printf(line, "! clocks throttled: %s", harm.text);
    if (rest.length)
        lab_str_printf(line, "%sclocks lowered: %s", line->length ? "; " : "", rest.text);
    if (!line->length)
        lab_str_add(line, "clocks not throttled");
    return harmful;
}

static int draw_line(struct lab_top_grid *grid, int row, enum lab_top_style style,
                     struct lab_str *line) {
    if (line->length)
        top_put(grid, row++, 1, grid->columns - 1, style, line->text);
    lab_str_clear(line);
    return row;
}

static int draw_about(const struct lab_top_history *history, const struct lab_top_view *view,
                      const struct top_entity *e, struct lab_top_grid *grid) {
    LAB_AUTO(str, line);
    char reason[200];
    bool bad = false, tall = grid->rows >= 20;
    top_device_name(history, e, &line);
    int row = 1;
    int at = top_put(grid, row, 1, 20, LAB_TOP_BOLD, line.text) + 2;
    lab_str_clear(&line);
    const char *gap = top_gap(history, e, view->now_ns, reason, sizeof reason);
    at = top_put(grid, row, at, grid->columns - at, gap ? LAB_TOP_DIM : LAB_TOP_PLAIN,
                 e->entity.name) +
         2;
    if (e->entity.kind != LAB_ENTITY_CPU && at + lab_str_columns(e->entity.id) <= grid->columns)
        top_put(grid, row, at, grid->columns - at, LAB_TOP_DIM, e->entity.id);
    row++;
    if (gap)
        top_print(grid, row++, 1, grid->columns - 1, LAB_TOP_ALARM, "%s", gap);
    add_identity(e, &line);
    if (tall)
        row = draw_line(grid, row, LAB_TOP_DIM, &line);
    lab_str_clear(&line);
    bool harmful = !gap && add_reasons(e, &line);
    row = draw_line(grid, row, harmful ? LAB_TOP_WARNING : LAB_TOP_DIM, &line);
    add_energy(e, &line);
    row = draw_line(grid, row, LAB_TOP_DIM, &line);
    add_health(e, &line, &bad);
    if (tall || bad)
        row = draw_line(grid, row, bad ? LAB_TOP_WARNING : LAB_TOP_DIM, &line);
    return row;
}

/* --- charts --- */

static int with_data(const struct top_entity *e, const struct top_chart *ret[16]) {
    bool cpu = e->entity.kind == LAB_ENTITY_CPU;
    const struct top_chart *all = cpu ? cpu_charts : gpu_charts;
    int count = cpu ? (int)(sizeof cpu_charts / sizeof *cpu_charts)
                    : (int)(sizeof gpu_charts / sizeof *gpu_charts);
    int found = 0;
    for (int i = 0; i < count; i++)
        if (top_chart_has_data(e, &all[i]))
            ret[found++] = &all[i];
    return found;
}

static void draw_charts(const struct lab_top_history *history, const struct lab_top_view *view,
                        const struct top_entity *e, int row, struct lab_top_grid *grid) {
    const struct top_chart *charts[16];
    int count = with_data(e, charts), room = grid->rows - 1 - row;
    int across = grid->columns >= 150 ? 3 : grid->columns >= 70 ? 2 : 1;
    int lines = room / CHART_ROWS_MIN;
    if (lines < 1)
        lines = 1;
    int needed = (count + across - 1) / across;
    if (lines > needed)
        lines = needed;
    int first = view->scroll * across;
    if (first > (needed - lines) * across)
        first = (needed - lines) * across;
    for (int i = first; lines > 0 && i < count && i < first + lines * across; i++) {
        int line = (i - first) / across, column = (i - first) % across;
        int top = row + room * line / lines, bottom = row + room * (line + 1) / lines;
        int left = 1 + (grid->columns - 1) * column / across;
        int width = (grid->columns - 1) / across - 1; /* of all alike: they show the same time */
        top_draw_chart(history, view, e, charts[i], top, left, width, bottom - top, grid);
    }
    if (first + lines * across < count)
        top_put(grid, grid->rows - 2, 0, 1, LAB_TOP_DIM, "▼");
}

void top_draw_device(const struct lab_top_history *history, const struct lab_top_view *view,
                     struct lab_top_grid *grid) {
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    if (!count) {
        top_put(grid, 2, 2, grid->columns - 2, LAB_TOP_DIM, "waiting for the first samples");
        return;
    }
    const struct top_entity *e =
        &history->entities[devices[view->device < count ? view->device : count - 1]];
    int row = draw_about(history, view, e, grid);
    if (e->entity.kind == LAB_ENTITY_CPU)
        row = top_draw_cores(history, view, -1, row, 7, grid->rows / 4, grid);
    draw_charts(history, view, e, row, grid);
}
