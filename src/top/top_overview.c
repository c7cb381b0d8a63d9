/*
 * top_overview.c: all devices at a glance: the host in a line or two, a line or two for each
 * device, a chart of the selected one where there is room, and the processes below.
 */
#include "base/tty/text.h"
#include "top/top_internal.h"

#include <math.h>

/* --- the host --- */

static int core_count(const struct top_entity *cpu) {
    int count = 0;
    for (int i = 0; cpu && i < cpu->entity.column_count; i++)
        count += cpu->entity.columns[i].metric == LAB_METRIC_CORE_UTILIZATION;
    return count;
}

static bool has_host(const struct lab_top_history *history) {
    return top_of_kind(history, LAB_ENTITY_CPU) || top_of_kind(history, LAB_ENTITY_MEMORY);
}

static void draw_host(const struct lab_top_history *history, const struct lab_top_view *view,
                      int row, struct lab_top_grid *grid) {
    const struct top_entity *cpu = top_of_kind(history, LAB_ENTITY_CPU);
    const struct top_entity *memory = top_of_kind(history, LAB_ENTITY_MEMORY);
    char text[TOP_TEXT];
    int bar = grid->columns / 10, at = 1;
    if (cpu) {
        double share = top_latest(cpu, LAB_METRIC_CPU_UTILIZATION, -1);
        at = top_put(grid, row, at, 4, LAB_TOP_BOLD, "CPU") + 1;
        top_bar(grid, row, at, bar, LAB_TOP_FIRST, share / 100, view->unicode);
        top_right(grid, row, at + bar, 5, LAB_TOP_PLAIN, top_percent(share, text));
        at += bar + 6;
        if (grid->columns >= 60 && core_count(cpu))
            at = top_print(grid, row, at, 12, LAB_TOP_DIM, "of %d", core_count(cpu)) + 1;
        double load = top_latest(cpu, LAB_METRIC_LOAD, -1);
        if (grid->columns >= 60 && !isnan(load))
            at = top_print(grid, row, at, 14, LAB_TOP_DIM, "load %.1f", load) + 1;
        double steal = top_latest(cpu, LAB_METRIC_CPU_STEAL, -1);
        if (grid->columns >= 80 && steal >= 1)
            at = top_print(grid, row, at, 14, LAB_TOP_WARNING, "steal %.0f%%", steal) + 1;
        at++;
    }
    if (memory) {
        at = top_put(grid, row, at, 7, LAB_TOP_BOLD, grid->columns >= 60 ? "memory" : "mem") + 1;
        top_bar(grid, row, at, bar, LAB_TOP_SECOND,
                top_latest(memory, LAB_METRIC_HOST_USED, -1) /
                    top_latest(memory, LAB_METRIC_HOST_TOTAL, -1),
                view->unicode);
        at = top_put(grid, row, at + bar + 1, 14, LAB_TOP_PLAIN,
                     top_used(top_latest(memory, LAB_METRIC_HOST_USED, -1),
                              top_latest(memory, LAB_METRIC_HOST_TOTAL, -1), text)) +
             2;
        double swap = top_latest(memory, LAB_METRIC_SWAP_USED, -1);
        if (swap > 0)
            at = top_print(grid, row, at, 14, LAB_TOP_DIM, "swap %s", top_size(swap, text)) + 2;
    }
    double pressure = top_latest(cpu, LAB_METRIC_PRESSURE_CPU, -1);
    if (grid->columns >= 110 && !isnan(pressure))
        top_print(grid, row, at, 48, LAB_TOP_DIM,
                  "waiting for CPU %.0f%% memory %.0f%% disk %.0f%%", pressure,
                  top_latest(cpu, LAB_METRIC_PRESSURE_MEMORY, -1),
                  top_latest(cpu, LAB_METRIC_PRESSURE_IO, -1));
}

/* "0-3", "0,2" of GPUs fed by a node. */
static void add_fed(const struct lab_top_history *history, int node, struct lab_str *out) {
    int before = -2, shown = -2;
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    for (int i = 0; i < count; i++) {
        const struct lab_entity *entity = &history->entities[devices[i]].entity;
        if (entity->kind != LAB_ENTITY_GPU || entity->node != node)
            continue;
        if (entity->index != before + 1) {
            if (shown != before)
                lab_str_printf(out, "-%d", before);
            lab_str_printf(out, "%s%d", before < 0 ? "" : ",", entity->index);
            shown = entity->index;
        }
        before = entity->index;
    }
    if (shown != before)
        lab_str_printf(out, "-%d", before);
}

static void draw_nodes(const struct lab_top_history *history, const struct lab_top_view *view,
                       int row, struct lab_top_grid *grid) {
    const struct top_entity *numa = top_of_kind(history, LAB_ENTITY_NUMA);
    int at = 1;
    for (int i = 0; numa && i < numa->entity.column_count; i++) {
        if (numa->entity.columns[i].metric != LAB_METRIC_NODE_TOTAL)
            continue;
        if (at + 34 > grid->columns) {
            top_put(grid, row, at, 2, LAB_TOP_DIM, "…");
            break;
        }
        int node = numa->entity.columns[i].instance;
        double total = top_latest(numa, LAB_METRIC_NODE_TOTAL, node);
        double used = total - top_latest(numa, LAB_METRIC_NODE_FREE, node);
        double share = top_latest(numa, LAB_METRIC_NODE_UTILIZATION, node);
        char text[TOP_TEXT];
        LAB_AUTO(str, fed);
        at = top_print(grid, row, at, 10, LAB_TOP_BOLD, "node %d", node) + 1;
        top_bar(grid, row, at, 4, LAB_TOP_FIRST, share / 100, view->unicode);
        top_right(grid, row, at + 4, 5, LAB_TOP_PLAIN, top_percent(share, text));
        at = top_put(grid, row, at + 10, 12, LAB_TOP_PLAIN, top_used(used, total, text)) + 1;
        add_fed(history, node, &fed);
        if (fed.length)
            at = top_print(grid, row, at, 14, LAB_TOP_DIM, "GPU %s", fed.text) + 1;
        at += 2;
    }
}

static int node_count(const struct lab_top_history *history) {
    const struct top_entity *numa = top_of_kind(history, LAB_ENTITY_NUMA);
    int count = 0;
    for (int i = 0; numa && i < numa->entity.column_count; i++)
        count += numa->entity.columns[i].metric == LAB_METRIC_NODE_TOTAL;
    return count;
}

/* --- devices --- */

struct layout {
    int name, name_width, util, util_bar, memory, memory_bar; /* columns and widths */
    int power, heat, clock, pcie, held;                       /* -1 = no room */
    int more; /* SM, tensor, DRAM, NVLink in the same line */
};

static struct layout make_layout(int columns, bool gpus, bool detail) {
    struct layout l = {.power = -1, .heat = -1, .pcie = -1, .clock = -1, .more = -1};
    bool power = gpus && columns >= 60, clock = columns >= 70, pcie = gpus && columns >= 80;
    bool more = gpus && columns >= 132 && !detail;
    /* mark and number, shares; heat and letters; the rest as there is room */
    int fixed = 4 + 1 + 5 + 1 + 11 + (gpus ? 5 + 3 : 0) + (power ? 9 : 0) + (clock ? 5 : 0) +
                (pcie ? 12 : 0) + (more ? 32 : 0);
    int left = columns - fixed;
    l.name_width = left / 3 < 6 ? 6 : left / 3 > 24 ? 24 : left / 3;
    if (left > 20 && l.name_width < 11)
        l.name_width = 11;
    l.util_bar = (left - l.name_width) / 2;
    l.util_bar = l.util_bar < 2 ? 2 : l.util_bar > 40 ? 40 : l.util_bar;
    l.memory_bar = l.util_bar;
    int at = 4;
    l.name = at, at += l.name_width + 1;
    l.util = at, at += l.util_bar + 5 + 1;
    l.memory = at, at += l.memory_bar + 11;
    if (power)
        l.power = at, at += 9;
    if (gpus)
        l.heat = at, at += 5;
    if (clock)
        l.clock = at, at += 5;
    if (pcie)
        l.pcie = at, at += 12;
    l.held = at + 1, at += 3;
    if (more)
        l.more = at + 1;
    return l;
}

static void draw_heading(const struct layout *l, bool gpus, int row, struct lab_top_grid *grid) {
    top_style(grid, row, 0, grid->columns, LAB_TOP_TITLE);
    top_put(grid, row, 1, 3, LAB_TOP_TITLE, gpus ? "GPU" : "   ");
    top_put(grid, row, l->name + 1, l->name_width - 1, LAB_TOP_TITLE, gpus ? "model" : "device");
    top_put(grid, row, l->util, l->util_bar + 5, LAB_TOP_TITLE,
            l->util_bar >= 6 ? "utilisation" : "util");
    top_put(grid, row, l->memory, l->memory_bar + 10, LAB_TOP_TITLE, "memory");
    if (l->power >= 0)
        top_right(grid, row, l->power, 9, LAB_TOP_TITLE, "power");
    if (l->heat >= 0)
        top_right(grid, row, l->heat, 5, LAB_TOP_TITLE, "temp");
    if (l->clock >= 0)
        top_right(grid, row, l->clock, 5, LAB_TOP_TITLE, "MHz");
    if (l->pcie >= 0)
        top_right(grid, row, l->pcie, 12, LAB_TOP_TITLE, "PCIe in/out");
    if (l->more >= 0)
        top_put(grid, row, l->more, 32, LAB_TOP_TITLE, "  SM tens DRAM  NVLink in/out");
    if (gpus)
        top_put(grid, row, l->held, 2, LAB_TOP_TITLE, "!");
}

/* A letter for each reason that does harm; in words on the device's page and the second line. */
static const char *held_letters(const struct top_entity *entity, char text[TOP_TEXT]) {
    static const struct {
        uint64_t bits;
        char letter;
    } letters[] = {{0x4, 'P'}, {0x20 | 0x40, 'T'}, {0x8, 'H'}, {0x80, 'B'}, {0x10, 'S'}};
    const struct top_column *reasons = top_column(entity, LAB_METRIC_CLOCK_REASONS, -1);
    size_t at = 0;
    for (size_t i = 0; reasons && i < sizeof letters / sizeof *letters; i++)
        if ((uint64_t)reasons->value & letters[i].bits)
            text[at++] = letters[i].letter;
    text[at] = 0;
    return text;
}

static void draw_shares(const struct layout *l, const struct lab_top_view *view, double share,
                        double used, double total, int row, struct lab_top_grid *grid) {
    char text[TOP_TEXT];
    if (l->util_bar >= 3)
        top_bar(grid, row, l->util, l->util_bar, LAB_TOP_FIRST, share / 100, view->unicode);
    top_right(grid, row, l->util + l->util_bar, 5, LAB_TOP_PLAIN, top_percent(share, text));
    if (l->memory_bar >= 3)
        top_bar(grid, row, l->memory, l->memory_bar, LAB_TOP_SECOND, used / total, view->unicode);
    top_right(grid, row, l->memory + l->memory_bar, 11, LAB_TOP_PLAIN, top_used(used, total, text));
}

static void draw_gpu(const struct layout *l, const struct lab_top_view *view,
                     const struct top_entity *e, int row, struct lab_top_grid *grid) {
    char text[TOP_TEXT], other[TOP_TEXT], both[2 * TOP_TEXT + 2];
    double used = top_latest(e, LAB_METRIC_MEMORY_USED, -1);
    double share = top_latest(e, LAB_METRIC_UTILIZATION, -1);
    if (isnan(share)) /* a MIG instance has no other */
        share = top_latest(e, LAB_METRIC_SM_ACTIVE, -1);
    draw_shares(l, view, share, used, top_latest(e, LAB_METRIC_MEMORY_TOTAL, -1), row, grid);
    double power = top_latest(e, LAB_METRIC_POWER, -1);
    double limit = top_latest(e, LAB_METRIC_POWER_LIMIT, -1);
    if (l->power >= 0) {
        snprintf(both, sizeof both, "%s/%s", top_whole(power, "", text),
                 top_whole(limit, "W", other));
        top_right(grid, row, l->power, 9, LAB_TOP_PLAIN,
                  isnan(limit) ? top_whole(power, "W", text) : both);
    }
    top_right(grid, row, l->heat, 5, LAB_TOP_PLAIN,
              top_whole(top_latest(e, LAB_METRIC_TEMPERATURE, -1), "°C", text));
    if (l->clock >= 0)
        top_right(grid, row, l->clock, 5, LAB_TOP_PLAIN,
                  top_whole(top_latest(e, LAB_METRIC_SM_CLOCK, -1), "", text));
    double in = top_latest(e, LAB_METRIC_PCIE_RX_RATE, -1);
    double out = top_latest(e, LAB_METRIC_PCIE_TX_RATE, -1);
    if (l->pcie >= 0 && !(isnan(in) && isnan(out))) {
        snprintf(both, sizeof both, "%s/%s", top_rate(in, text), top_rate(out, other));
        top_right(grid, row, l->pcie, 12, LAB_TOP_PLAIN, both);
    } else if (l->pcie >= 0) {
        top_right(grid, row, l->pcie, 12, LAB_TOP_PLAIN, "–");
    }
    top_put(grid, row, l->held, 2, LAB_TOP_WARNING, held_letters(e, text));
    if (l->more < 0)
        return;
    top_right(grid, row, l->more, 4, LAB_TOP_PLAIN,
              top_percent(top_latest(e, LAB_METRIC_SM_ACTIVE, -1), text));
    top_right(grid, row, l->more + 4, 5, LAB_TOP_PLAIN,
              top_percent(top_latest(e, LAB_METRIC_TENSOR_ACTIVE, -1), text));
    top_right(grid, row, l->more + 9, 5, LAB_TOP_PLAIN,
              top_percent(top_latest(e, LAB_METRIC_DRAM_ACTIVE, -1), text));
    snprintf(both, sizeof both, "%s/%s",
             top_rate(top_latest(e, LAB_METRIC_NVLINK_RX_RATE, -1), text),
             top_rate(top_latest(e, LAB_METRIC_NVLINK_TX_RATE, -1), other));
    top_right(grid, row, l->more + 14, 15, LAB_TOP_PLAIN, both);
}

static void draw_cpu(const struct lab_top_history *history, const struct layout *l,
                     const struct lab_top_view *view, const struct top_entity *e, int row,
                     struct lab_top_grid *grid) {
    const struct top_entity *memory = top_of_kind(history, LAB_ENTITY_MEMORY);
    char text[TOP_TEXT];
    draw_shares(l, view, top_latest(e, LAB_METRIC_CPU_UTILIZATION, -1),
                top_latest(memory, LAB_METRIC_HOST_USED, -1),
                top_latest(memory, LAB_METRIC_HOST_TOTAL, -1), row, grid);
    if (l->clock >= 0)
        top_right(grid, row, l->clock, 5, LAB_TOP_PLAIN,
                  top_whole(top_latest(e, LAB_METRIC_CPU_FREQUENCY, -1), "", text));
}

/* "throttled: power limit, thermal limit (driver)"; nothing where nothing does harm. */
static void add_held_words(const struct top_entity *e, struct lab_str *out) {
    const struct top_column *reasons = top_column(e, LAB_METRIC_CLOCK_REASONS, -1);
    uint64_t harmful = reasons ? lab_clock_harmful((uint64_t)reasons->value) : 0;
    for (const struct lab_clock_reason *r = lab_clock_reasons; r->bit; r++)
        if (harmful & r->bit)
            lab_str_printf(out, "%s%s", out->length ? ", " : "throttled: ", r->words);
}

/* Shares, then what there is room for in whole words: clock event reasons come before links
 * and energy, but stands behind them, so that columns stay columns. */
static void draw_detail(const struct top_entity *e, int row, struct lab_top_grid *grid) {
    static const struct {
        const char *label;
        enum lab_metric_id metric;
    } shares[] = {{"SM", LAB_METRIC_SM_ACTIVE},
                  {"tensor", LAB_METRIC_TENSOR_ACTIVE},
                  {"DRAM", LAB_METRIC_DRAM_ACTIVE}};
    char text[TOP_TEXT], other[TOP_TEXT], link[2 * TOP_TEXT + 16] = "", energy[TOP_TEXT + 16] = "";
    LAB_AUTO(str, held);
    int at = 5, end = grid->columns;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double value = top_latest(e, shares[i].metric, -1);
        if (!isnan(value))
            at = top_print(grid, row, at, end - at, LAB_TOP_DIM, "%s %4s", shares[i].label,
                           top_percent(value, text)) +
                 2;
    }
    double rate = top_latest(e, LAB_METRIC_NVLINK_RX_RATE, -1);
    double joules = top_growth(e, LAB_METRIC_ENERGY);
    if (!isnan(rate))
        snprintf(link, sizeof link, "NVLink %4s/%-4s", top_rate(rate, text),
                 top_rate(top_latest(e, LAB_METRIC_NVLINK_TX_RATE, -1), other));
    if (!isnan(joules))
        snprintf(energy, sizeof energy, "energy %7s", top_energy(joules, text));
    add_held_words(e, &held);
    const char *const parts[] = {link, energy};
    int room = end - at - (held.length ? lab_str_columns(held.text) : 0);
    for (int i = 0; i < 2; i++) {
        int width = lab_str_columns(parts[i]) + 2;
        if (!*parts[i] || width - (held.length ? 0 : 2) > room)
            continue;
        at = top_put(grid, row, at, end - at, LAB_TOP_DIM, parts[i]) + 2;
        room -= width;
    }
    top_put(grid, row, at, end - at, LAB_TOP_WARNING, held.length ? held.text : "");
}

/* In as many rows as the device has, broken between words. */
static void draw_gap(const char *gap, int row, int rows, int column, struct lab_top_grid *grid) {
    int width = grid->columns - column - 1;
    LAB_AUTO(str, text);
    if (rows > 1)
        lab_text_wrap(gap, 0, 0, width, &text);
    else
        lab_str_add(&text, gap);
    char *line = text.text;
    for (int i = 0; i < rows && line; i++) {
        char *end = i + 1 < rows ? strchr(line, '\n') : NULL;
        if (end)
            *end = 0;
        for (char *rest = line; (rest = strchr(rest, '\n'));)
            *rest = ' '; /* what has no row of its own is cut */
        top_put(grid, row + i, column, width, LAB_TOP_ALARM, line);
        line = end ? end + 1 : NULL;
    }
}

static void draw_device(const struct lab_top_history *history, const struct lab_top_view *view,
                        const struct layout *l, int number, bool selected, int per_device, int row,
                        struct lab_top_grid *grid) {
    const struct top_entity *e = &history->entities[number];
    char reason[200];
    const char *gap = top_gap(history, e, view->now_ns, reason, sizeof reason);
    enum lab_top_style style = gap ? LAB_TOP_DIM : LAB_TOP_BOLD;
    if (e->entity.kind == LAB_ENTITY_MIG) {
        top_put(grid, row, 3, 1, LAB_TOP_DIM, "└");
        top_print(grid, row, l->name + 1, l->name_width - 1, style, "%d %s", e->entity.index,
                  top_model(&e->entity));
    } else {
        char index[TOP_TEXT];
        snprintf(index, sizeof index, "%d", e->entity.index);
        if (e->entity.kind == LAB_ENTITY_GPU)
            top_right(grid, row, 1, 3, style, index);
        top_put(grid, row, l->name + 1, l->name_width - 1, style,
                e->entity.kind == LAB_ENTITY_GPU ? top_model(&e->entity) : "CPUs");
    }
    if (gap)
        draw_gap(gap, row, per_device, l->util, grid);
    else if (e->entity.kind == LAB_ENTITY_CPU)
        draw_cpu(history, l, view, e, row, grid);
    else
        draw_gpu(l, view, e, row, grid);
    if (selected && !view->snapshot) {
        top_style(grid, row, 1, l->name + l->name_width, LAB_TOP_SELECTED);
        top_put(grid, row, 0, 1, LAB_TOP_SELECTED, "›");
    }
}

/* --- charts --- */

#define CHART_ROWS 7

static void draw_charts_of(const struct lab_top_history *history, const struct lab_top_view *view,
                           const struct top_entity *e, int row, int height, int left, int width,
                           struct lab_top_grid *grid) {
    static const struct top_chart of_gpu[] = {
        {"utilisation",
         TOP_CHART_PERCENT,
         {{"", LAB_METRIC_UTILIZATION}, {"SM", LAB_METRIC_SM_ACTIVE}}},
        {"memory", TOP_CHART_MEMORY, {{"", LAB_METRIC_MEMORY_USED}}}};
    static const struct top_chart of_cpu[] = {
        {"utilisation",
         TOP_CHART_PERCENT,
         {{"", LAB_METRIC_CPU_UTILIZATION}, {"kernel", LAB_METRIC_CPU_SYSTEM}}},
        {"memory", TOP_CHART_MEMORY, {{"", LAB_METRIC_HOST_USED}}}};
    bool cpu = e->entity.kind == LAB_ENTITY_CPU;
    const struct top_entity *memory = cpu ? top_of_kind(history, LAB_ENTITY_MEMORY) : e;
    const struct top_chart *charts = cpu ? of_cpu : of_gpu;
    int half = width / 2 - 1;
    LAB_AUTO(str, title);
    top_device_name(history, e, &title);
    lab_str_printf(&title, " %s", charts[0].title);
    struct top_chart first = charts[0];
    first.title = title.text;
    bool both = memory && top_chart_has_data(memory, &charts[1]) && top_chart_has_data(e, &first) &&
                width >= 70;
    if (both)
        top_draw_chart(history, view, memory, &charts[1], row, left + half + 1, half, height, grid);
    if (top_chart_has_data(e, &first))
        top_draw_chart(history, view, e, &first, row, left, both ? half : width - 2, height, grid);
}

/* Of the selected one; of the others below and beside it where there is room for more. */
static void draw_charts(const struct lab_top_history *history, const struct lab_top_view *view,
                        const int *devices, int count, int row, int height,
                        struct lab_top_grid *grid) {
    int lines = height / CHART_ROWS < 1 ? 1 : height / CHART_ROWS;
    int across = grid->columns >= 150 && count > lines ? 2 : 1;
    lines = lines * across > count ? (count + across - 1) / across : lines;
    int shown = lines * across > count ? count : lines * across;
    int first = view->device < count ? view->device : 0;
    first = first + shown > count ? count - shown : first;
    for (int i = 0; i < shown; i++) {
        int line = i / across, left = 1 + i % across * (grid->columns / across);
        int from = row + height * line / lines, to = row + height * (line + 1) / lines;
        draw_charts_of(history, view, &history->entities[devices[first + i]], from, to - from, left,
                       grid->columns / across, grid);
    }
}

/* --- the page --- */

static int more_than(int a, int b) {
    return a > b ? a : b;
}

/* Rows for each part; the processes take what is left. */
struct parts {
    int host, cores, first, shown, per_device, chart, processes;
};

static struct parts share_rows(const struct lab_top_history *history,
                               const struct lab_top_view *view, int devices, int rows,
                               int processes) {
    bool gpus = top_has_gpus(history);
    bool host = gpus ? has_host(history) : view->notes && view->notes[0];
    struct parts p = {.host = host, .per_device = 1};
    if (node_count(history) > 1 && rows >= 20 && rows - devices >= 9)
        p.host++;
    p.cores = !gpus && rows >= 16 ? 2 : 0;
    int fixed = 1 + p.host + 1 + p.cores + (view->snapshot ? 0 : 1);
    int least = 1 + (processes < 4 ? more_than(processes, 1) : 4); /* of the processes */
    if (fixed + 2 * devices + least <= rows && gpus)
        p.per_device = 2;
    p.shown = devices;
    if (fixed + devices + 2 > rows)
        p.shown = more_than(rows - fixed - 2, 1);
    if (view->device >= p.shown)
        p.first = view->device - p.shown + 1;
    int left = rows - fixed - p.shown * p.per_device;
    int wanted = 1 + (processes < 10 ? more_than(processes, 1) : 10);
    p.chart = view->snapshot ? 0 : left - wanted;
    if (p.chart > rows / 2)
        p.chart = rows / 2;
    if (p.chart < 5 && left - least >= 5 && devices <= 4 && !view->snapshot)
        p.chart = left - least < 7 ? left - least : 7;
    if (p.chart < 5)
        p.chart = 0;
    p.processes = left - p.chart;
    return p;
}

void top_draw_overview(const struct lab_top_history *history, const struct lab_top_view *view,
                       struct lab_top_grid *grid) {
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    LAB_AUTO(arena, arena);
    struct top_row *rows;
    int processes = top_process_rows(history, view, &arena, &rows);
    struct parts p = share_rows(history, view, count, grid->rows, processes);
    int row = 1;
    if (top_has_gpus(history) && has_host(history))
        draw_host(history, view, row++, grid);
    else if (!top_has_gpus(history) && view->notes && view->notes[0])
        top_put(grid, row++, 1, grid->columns - 1, LAB_TOP_DIM, view->notes[0]);
    if (node_count(history) > 1 && row < 1 + p.host)
        draw_nodes(history, view, row++, grid);
    struct layout l = make_layout(grid->columns, top_has_gpus(history), p.per_device == 2);
    draw_heading(&l, top_has_gpus(history), row++, grid);
    for (int i = p.first; i < p.first + p.shown && i < count; i++, row += p.per_device) {
        char reason[200];
        const struct top_entity *e = &history->entities[devices[i]];
        draw_device(history, view, &l, devices[i], i == view->device, p.per_device, row, grid);
        if (p.per_device == 2 && !top_gap(history, e, view->now_ns, reason, sizeof reason))
            draw_detail(e, row + 1, grid);
    }
    if (!count)
        top_put(grid, row++, 2, grid->columns - 2, LAB_TOP_DIM, "waiting for the first samples");
    int last = p.first + p.shown - 1; /* the mark of the selected one goes before those of more */
    if (p.first > 0 && view->device != p.first)
        top_put(grid, row - p.shown * p.per_device, 0, 1, LAB_TOP_DIM, "▲");
    if (last + 1 < count && view->device != last)
        top_put(grid, row - 1, 0, 1, LAB_TOP_DIM, "▼");
    if (p.cores)
        row = top_draw_cores(history, view, -1, row, 11, p.cores, grid);
    if (p.chart && count)
        draw_charts(history, view, devices, count, row, p.chart, grid);
    row += p.chart;
    top_draw_processes(history, view, false, row, grid->rows - row - (view->snapshot ? 0 : 1),
                       grid);
}
