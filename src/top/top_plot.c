/*
 * top_plot.c: charts of what was watched as a PNG. The data stand in gnuplot's script, which stays
 * beside the picture: it can be changed and run again, on a machine that has gnuplot if this one
 * doesn't.
 */
#include "base/file/file.h"
#include "plot/plot.h"
#include "top/top_internal.h"

#include <math.h>
#include <unistd.h>

#define PANEL_HEIGHT 260
#define GNUPLOT_NS   (60 * TOP_NS_PER_S)

#define SCRIPT_HEAD       "# What gpulab top showed"
#define SCRIPT_MAX_BYTES  ((size_t)64 << 20)
#define PICTURE_MAX_BYTES ((size_t)256 << 20)

struct panel {
    const char *title, *unit;
    enum lab_metric_id metric, of_host; /* of_host: of the CPUs or the memory, without GPUs */
    double scale;
    bool percent;
};

static const struct panel panels[] = {
    {"Utilisation", "%", LAB_METRIC_UTILIZATION, LAB_METRIC_CPU_UTILIZATION, 1, true},
    {"Multiprocessors active", "%", LAB_METRIC_SM_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Tensor cores active", "%", LAB_METRIC_TENSOR_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Memory interface active", "%", LAB_METRIC_DRAM_ACTIVE, LAB_METRIC_COUNT, 1, true},
    {"Memory used", "GiB", LAB_METRIC_MEMORY_USED, LAB_METRIC_HOST_USED, 1.0 / (1 << 30), false},
    {"Power", "W", LAB_METRIC_POWER, LAB_METRIC_COUNT, 1, false},
    {"Temperature", "°C", LAB_METRIC_TEMPERATURE, LAB_METRIC_COUNT, 1, false},
    {"Clock", "MHz", LAB_METRIC_SM_CLOCK, LAB_METRIC_CPU_FREQUENCY, 1, false},
    {"PCIe into the GPU", "GB/s", LAB_METRIC_PCIE_RX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"PCIe out of the GPU", "GB/s", LAB_METRIC_PCIE_TX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"NVLink into the GPU", "GB/s", LAB_METRIC_NVLINK_RX_RATE, LAB_METRIC_COUNT, 1e-9, false},
    {"NVLink out of the GPU", "GB/s", LAB_METRIC_NVLINK_TX_RATE, LAB_METRIC_COUNT, 1e-9, false},
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

static void add_data(const struct lab_top_history *history, const struct panel *panel,
                     const struct lines *lines, int number, struct lab_str *out) {
    int back = points_back(history);
    lab_str_printf(out, "$panel%d << EOD\n", number);
    for (int i = back; i >= 0; i--) {
        lab_str_printf(out, "%.3f", (double)(back - i) * (double)history->bucket_ns * 1e-9);
        for (int k = 0; k < lines->count; k++) {
            double value =
                top_point(history, lines->entities[k], lines->columns[k], history->time_ns, i);
            if (isnan(value))
                lab_str_add(out, " NaN");
            else
                lab_str_printf(out, " %.6g", value * panel->scale);
        }
        lab_str_add(out, "\n");
    }
    lab_str_add(out, "EOD\n");
}

static void add_limit(const struct lines *lines, struct lab_str *out) {
    double limit = NAN;
    for (int i = 0; i < lines->count; i++)
        limit = fmax(limit, top_latest(lines->entities[i], LAB_METRIC_POWER_LIMIT, -1));
    if (!isnan(limit))
        lab_str_printf(out, ", %.6g with lines dashtype 2 linecolor \"#888888\" title \"limit\"",
                       limit);
}

static void add_panel(const struct lab_top_history *history, const struct panel *panel,
                      const struct lines *lines, int number, struct lab_str *out) {
    lab_str_printf(out, "set title \"%s\"\nset ylabel \"%s\"\n", panel->title, panel->unit);
    lab_str_printf(out, "set yrange [0:%s]\n", panel->percent ? "105" : "*");
    lab_str_add(out, "plot ");
    for (int i = 0; i < lines->count; i++) {
        LAB_AUTO(str, name);
        top_device_name(history, lines->entities[i], &name);
        if (lines->entities[i]->entity.kind == LAB_ENTITY_MEMORY) {
            lab_str_clear(&name);
            lab_str_add(&name, "host");
        }
        lab_str_printf(out,
                       "%s$panel%d using 1:%d with lines linewidth 2 dashtype %d linecolor \"%s\" "
                       "title \"%s\"",
                       i ? ", " : "", number, i + 2, i / LAB_PLOT_COLOURS + 1,
                       lab_plot_colours[i % LAB_PLOT_COLOURS], name.text);
    }
    if (panel->metric == LAB_METRIC_POWER)
        add_limit(lines, out);
    lab_str_add(out, "\n");
}

/* In gnuplot's double quotes. */
static void add_quoted(const char *text, struct lab_str *out) {
    lab_str_add(out, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '`')
            lab_str_printf(out, "\\%c", c);
        else if (c >= ' ')
            lab_str_add_bytes(out, text, 1);
    }
    lab_str_add(out, "\"");
}

/* "node7 (simulated), 12 min from 2026-11-15 10:42:03" */
static void add_title(const struct lab_top_history *history, const struct lab_top_view *view,
                      struct lab_str *out) {
    LAB_AUTO(str, title);
    char text[TOP_TEXT];
    int64_t span_ns = points_back(history) * history->bucket_ns;
    lab_str_printf(&title, "%s%s, %s", view->source ? view->source : "",
                   lab_top_history_simulated(history) ? " (simulated)" : "",
                   top_seconds((double)span_ns * 1e-9, text));
    if (history->time_ns) {
        lab_str_add(&title, " from ");
        lab_str_add_clock(&title, history->time_ns - span_ns + view->wall_offset_ns, LAB_STR_DATE);
    }
    add_quoted(title.text, out);
}

static void write_script(const struct lab_top_history *history, const struct lab_top_view *view,
                         const char *path, struct lab_str *out) {
    LAB_AUTO_FREE struct lines *lines = lab_mem_alloc(PANEL_COUNT, sizeof *lines);
    int shown = 0;
    for (int i = 0; i < PANEL_COUNT; i++) {
        find_lines(history, &panels[i], &lines[i]);
        shown += lines[i].count > 0;
    }
    int rows = (shown + 1) / 2;
    const char *slash = strrchr(path, '/');
    lab_str_add(out, SCRIPT_HEAD ", for gnuplot: `gnuplot FILE.gp` redraws it.\n");
    lab_str_printf(out, "set terminal pngcairo size 1200,%d font \"sans,10\"\nset output ",
                   (rows ? rows : 1) * PANEL_HEIGHT + 60);
    add_quoted(slash ? slash + 1 : path, out);
    lab_str_add(out, "\nset encoding utf8\nset datafile missing \"NaN\"\nset grid linecolor "
                     "\"#dddddd\"\nset key outside right top\nset offsets 0, 0, graph 0.05, 0\nset "
                     "xlabel \"s\"\n");
    for (int i = 0; i < PANEL_COUNT; i++)
        if (lines[i].count)
            add_data(history, &panels[i], &lines[i], i, out);
    lab_str_printf(out, "set multiplot layout %d,2 title ", rows ? rows : 1);
    add_title(history, view, out);
    lab_str_add(out, " noenhanced\n");
    for (int i = 0; i < PANEL_COUNT; i++)
        if (lines[i].count)
            add_panel(history, &panels[i], &lines[i], i, out);
    lab_str_add(out, "unset multiplot\n");
}

/* The picture was named by the user, the script beside it was not: one of his own is kept. */
static int check_script(const char *path, struct lab_arena *arena, struct lab_err *err) {
    char *text;
    size_t length;
    if (access(path, F_OK) < 0)
        return 0;
    if (lab_file_read(path, SCRIPT_MAX_BYTES, arena, &text, &length, NULL) == 0 &&
        lab_str_starts(text, SCRIPT_HEAD))
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "%s exists and was not written by gpulab: give the picture another name",
                       path);
}

static int draw(const char *script, const char *stem, const char *path, struct lab_arena *arena,
                struct lab_err *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct lab_scratch_dir scratch;
    char *picture;
    size_t length;
    if (lab_scratch_dir_open(arena, &scratch, err) < 0)
        return -1;
    int result = lab_plot_run(script, stem, scratch.path, GNUPLOT_NS, err);
    if (result == 0)
        result = lab_file_read(lab_arena_printf(arena, "%s/%s", scratch.path, name),
                               PICTURE_MAX_BYTES, arena, &picture, &length, err);
    if (result == 0)
        result = lab_file_replace(path, picture, length, err);
    lab_scratch_dir_close(&scratch);
    return result;
}

int lab_top_plot(const struct lab_top_history *history, const struct lab_top_view *view,
                 const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, script);
    size_t length = strlen(path);
    bool png = length > 4 && lab_str_equal(path + length - 4, ".png");
    const char *stem = lab_arena_strndup(&arena, path, png ? length - 4 : length);
    const char *script_path = lab_arena_printf(&arena, "%s.gp", stem);
    int result = check_script(script_path, &arena, err);
    if (result == 0) {
        write_script(history, view, path, &script);
        result = lab_file_replace(script_path, script.text, script.length, err);
    }
    if (result == 0)
        result = draw(script.text, stem, path, &arena, err);
    return result;
}
