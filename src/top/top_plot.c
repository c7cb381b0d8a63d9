/* top_plot.c: what was watched as one chart: a panel for each metric, a line for each device. */
#include "plot/plot.h"
#include "top/top_internal.h"

#include <math.h>

#define MINUTES_FROM_S 300

struct panel {
    const char *title;                  /* with its unit */
    enum lab_metric_id metric, of_host; /* of_host: of the CPUs or the memory, without GPUs */
    double scale;
    bool percent;
};

static const struct panel panels[] = {
    {"Utilisation [%]", LAB_METRIC_UTILIZATION, LAB_METRIC_CPU_UTILIZATION, 1, true},
    {"Multiprocessors active [%]", LAB_METRIC_SM_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Tensor cores active [%]", LAB_METRIC_TENSOR_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Memory interface active [%]", LAB_METRIC_DRAM_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Memory used [GiB]", LAB_METRIC_MEMORY_USED, LAB_METRIC_HOST_USED, 1.0 / (1 << 30), false},
    {"Power [W]", LAB_METRIC_POWER, LAB_METRIC_COUNT, 1, false},
    {"Temperature [°C]", LAB_METRIC_TEMPERATURE, LAB_METRIC_COUNT, 1, false},
    {"Clock [MHz]", LAB_METRIC_SM_CLOCK, LAB_METRIC_CPU_FREQUENCY, 1, false},
    {"PCIe into the GPU [GB/s]", LAB_METRIC_PCIE_RX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"PCIe out of the GPU [GB/s]", LAB_METRIC_PCIE_TX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"NVLink into the GPU [GB/s]", LAB_METRIC_NVLINK_RX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"NVLink out of the GPU [GB/s]", LAB_METRIC_NVLINK_TX_RATE, LAB_METRIC_COUNT, 1e-9, false},
};

#define PANEL_COUNT ((int)(sizeof panels / sizeof *panels))

struct lines { /* what a panel shows */
    const struct top_entity *entities[TOP_DEVICES_MAX];
    const struct top_column *columns[TOP_DEVICES_MAX];
    int count;
};

static void find_lines(const struct lab_top_history *history, const struct panel *panel,
                       struct lines *ret) {
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    ret->count = 0;
    for (int i = 0; i < count; i++) {
        const struct top_entity *e = &history->entities[devices[i]];
        enum lab_metric_id metric = panel->metric;
        if (e->entity.kind == LAB_ENTITY_CPU) {
            if (panel->of_host == LAB_METRIC_COUNT)
                continue;
            metric = panel->of_host;
            if (metric == LAB_METRIC_HOST_USED)
                e = top_of_kind(history, LAB_ENTITY_MEMORY);
        }
        const struct top_column *column = top_charted(e, metric, -1);
        if (!column)
            continue;
        ret->entities[ret->count] = e;
        ret->columns[ret->count++] = column;
    }
}

/* How many points back the oldest is. */
static int points_back(const struct lab_top_history *history) {
    int64_t now = history->time_ns / history->bucket_ns, oldest = now;
    for (int i = 0; i < history->count; i++) {
        const struct top_entity *e = &history->entities[i];
        if (e->known && e->bucket >= 0 && e->bucket_first < oldest)
            oldest = e->bucket_first;
    }
    return now - oldest >= LAB_TOP_POINTS ? LAB_TOP_POINTS - 1 : (int)(now - oldest);
}

/* --- series --- */

struct making {
    const struct lab_top_history *history;
    int back;      /* points */
    double *times; /* of back + 1 points, in `unit_s` */
    double unit_s;
    struct lab_arena *arena;
};

static const char *name_line(const struct making *making, const struct top_entity *e) {
    LAB_AUTO(str, name);
    if (e->entity.kind == LAB_ENTITY_MEMORY)
        return "host";
    top_device_name(making->history, e, &name);
    return lab_arena_strdup(making->arena, name.text);
}

static struct lab_chart_series make_line(const struct making *making, const struct panel *panel,
                                         const struct lines *lines, int at) {
    const struct lab_top_history *history = making->history;
    double *values = lab_arena_alloc(making->arena, (size_t)making->back + 1, sizeof *values);
    for (int i = 0; i <= making->back; i++)
        values[i] = panel->scale * top_point(history, lines->entities[at], lines->columns[at],
                                             history->time_ns, making->back - i);
    return (struct lab_chart_series){.title = name_line(making, lines->entities[at]),
                                     .x = making->times,
                                     .y = values,
                                     .count = (size_t)making->back + 1,
                                     .colour = -1};
}

/* False: none of the lines has one. */
static bool make_limit(const struct making *making, const struct lines *lines,
                       struct lab_chart_series *ret) {
    double limit = NAN, *ends = lab_arena_alloc(making->arena, 4, sizeof *ends);
    for (int i = 0; i < lines->count; i++)
        limit = fmax(limit, top_latest(lines->entities[i], LAB_METRIC_POWER_LIMIT, -1));
    ends[1] = making->times[making->back];
    ends[2] = ends[3] = limit;
    *ret = (struct lab_chart_series){.title = "power limit",
                                     .mark = LAB_CHART_DASHES,
                                     .x = ends,
                                     .y = ends + 2,
                                     .count = 2,
                                     .colour = -1};
    return !isnan(limit);
}

/* False: no device has it. */
static bool make_panel(const struct making *making, const struct panel *panel,
                       struct lab_chart_panel *ret) {
    struct lines lines;
    find_lines(making->history, panel, &lines);
    struct lab_chart_series *series =
        lab_arena_alloc(making->arena, (size_t)lines.count + 1, sizeof *series);
    *ret = (struct lab_chart_panel){
        .title = panel->title,
        .x = {.title = making->unit_s > 1 ? "Time [min]" : "Time [s]",
              .low = 0,
              .high = making->times[making->back]},
        .y = {.title = "", .low = 0, .high = panel->percent ? 100 : (double)NAN},
        .series = series};
    while (ret->series_count < lines.count) {
        series[ret->series_count] = make_line(making, panel, &lines, ret->series_count);
        ret->series_count++;
    }
    if (panel->metric == LAB_METRIC_POWER)
        ret->series_count += make_limit(making, &lines, &series[lines.count]);
    return lines.count > 0;
}

/* "node7, 12 min from 2026-11-15 10:42:03" */
static const char *make_title(const struct lab_top_history *history,
                              const struct lab_top_view *view, int64_t span_ns,
                              struct lab_arena *arena) {
    LAB_AUTO(str, title);
    char text[TOP_TEXT];
    lab_str_printf(&title, "%s, %s", view->source ? view->source : "",
                   top_seconds((double)span_ns * 1e-9, text));
    if (history->time_ns) {
        lab_str_add(&title, " from ");
        lab_str_add_clock(&title, history->time_ns - span_ns + view->wall_offset_ns, LAB_STR_DATE);
    }
    return lab_arena_strdup(arena, title.text);
}

int lab_top_plot(const struct lab_top_history *history, const struct lab_top_view *view,
                 const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct making making = {.history = history, .back = points_back(history), .arena = &arena};
    struct lab_chart_panel shown[PANEL_COUNT];
    struct lab_chart chart = {.name = "top", .panels = shown, .columns = 2};
    double span_s = (double)(making.back * history->bucket_ns) * 1e-9;
    making.unit_s = span_s < MINUTES_FROM_S ? 1 : 60;
    making.times = lab_arena_alloc(&arena, (size_t)making.back + 1, sizeof *making.times);
    for (int i = 0; i <= making.back; i++)
        making.times[i] = (double)i * (double)history->bucket_ns * 1e-9 / making.unit_s;
    for (int i = 0; i < PANEL_COUNT; i++)
        chart.panel_count += make_panel(&making, &panels[i], &shown[chart.panel_count]);
    chart.title = make_title(history, view, making.back * history->bucket_ns, &arena);
    chart.simulated = lab_top_history_simulated(history);
    return lab_plot_save(&chart, path, err);
}
