/* top_numa.c: the page of NUMA nodes: memory, utilisation, a small bar for each CPU, and the GPUs
 * that each node feeds. */
#include "top/top_internal.h"

#include <math.h>

/* --- CPUs --- */

static int node_of(const struct lab_top_history *history, int cpu) {
    const struct lab_machine *machine = history->setup.machine;
    for (int i = 0; machine && i < machine->node_count; i++)
        if (lab_cpus_contain(&machine->nodes[i].cpus, cpu))
            return machine->nodes[i].number;
    return -1;
}

static const char *core_glyph(double percent, bool unicode) {
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const signs[] = {".", "1", "2", "3", "4", "5", "6", "7", "8", "9", "#"};
    if (isnan(percent))
        return "?";
    if (!unicode)
        return signs[(int)(fmin(fmax(percent, 0), 100) / 10)];
    int level = (int)(fmin(fmax(percent, 0), 99.9) * 8 / 100);
    return blocks[level];
}

int top_draw_cores(const struct lab_top_history *history, const struct lab_top_view *view, int node,
                   int row, int indent, int rows_max, struct lab_top_grid *grid) {
    const struct top_entity *cpu = top_of_kind(history, LAB_ENTITY_CPU);
    int column = indent, last = row + rows_max;
    bool any = false;
    for (int i = 0; cpu && i < cpu->entity.column_count; i++) {
        const struct lab_column *what = &cpu->entity.columns[i];
        if (what->metric != LAB_METRIC_CORE_UTILIZATION ||
            (node >= 0 && node_of(history, what->instance) != node))
            continue;
        if (column >= grid->columns - 1) {
            column = indent;
            if (++row >= last)
                return row;
        }
        double percent = cpu->columns[i].count ? (double)cpu->columns[i].value *
                                                     lab_metric(LAB_METRIC_CORE_UTILIZATION)->scale
                                               : (double)NAN;
        if (!any)
            top_put(grid, row, indent - 6, 6, LAB_TOP_DIM, "cores");
        top_put(grid, row, column++, 1, LAB_TOP_FIRST, core_glyph(percent, view->unicode));
        if ((column - indent + 1) % 9 == 0) /* in eights, to be counted */
            column++;
        any = true;
    }
    return any ? row + 1 : row;
}

/* --- the page --- */

static int draw_fed(const struct lab_top_history *history, const struct lab_top_view *view,
                    int node, int row, int column, struct lab_top_grid *grid) {
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices), shown = 0;
    for (int i = 0; i < count; i++) {
        const struct top_entity *e = &history->entities[devices[i]];
        char text[TOP_TEXT], reason[200];
        if (e->entity.kind != LAB_ENTITY_GPU || e->entity.node != node)
            continue;
        bool gap = top_gap(history, e, view->now_ns, reason, sizeof reason) != NULL;
        column = top_put(grid, row, column, grid->columns - column, LAB_TOP_DIM,
                         shown++ ? ", " : "local ");
        column = top_print(grid, row, column, grid->columns - column, LAB_TOP_BOLD, "%s%d",
                           shown == 1 ? "GPU " : "", e->entity.index);
        column = top_print(
            grid, row, column, grid->columns - column, gap ? LAB_TOP_ALARM : LAB_TOP_PLAIN, " %s",
            gap ? "away" : top_percent(top_latest(e, LAB_METRIC_UTILIZATION, -1), text));
    }
    if (!shown)
        column = top_put(grid, row, column, grid->columns - column, LAB_TOP_DIM, "no local GPU");
    return column;
}

/* Pages that a node gave to others' processes: what wrong placement costs. */
static double remote_share(const struct top_entity *numa, int node) {
    const struct top_column *hit = top_column(numa, LAB_METRIC_NODE_HIT, node);
    const struct top_column *miss = top_column(numa, LAB_METRIC_NODE_OTHER, node);
    double all = (hit ? hit->growth : 0) + (miss ? miss->growth : 0);
    return hit && miss && all > 0 ? 100 * miss->growth / all : (double)NAN;
}

static int draw_node(const struct lab_top_history *history, const struct lab_top_view *view,
                     const struct top_entity *numa, int node, int row, int rows,
                     struct lab_top_grid *grid) {
    char text[TOP_TEXT];
    double total = top_latest(numa, LAB_METRIC_NODE_TOTAL, node);
    double used = total - top_latest(numa, LAB_METRIC_NODE_FREE, node);
    double share = top_latest(numa, LAB_METRIC_NODE_UTILIZATION, node);
    int bar = grid->columns >= 100 ? 20 : grid->columns >= 70 ? 10 : 4;
    int at = top_print(grid, row, 1, 10, LAB_TOP_BOLD, "node %d", node) + 1;
    at = top_put(grid, row, at, 5, LAB_TOP_DIM, "CPUs") + 1;
    top_bar(grid, row, at, bar, LAB_TOP_FIRST, share / 100, view->unicode);
    top_right(grid, row, at + bar, 5, LAB_TOP_PLAIN, top_percent(share, text));
    at = top_put(grid, row, at + bar + 7, 7, LAB_TOP_DIM, grid->columns >= 60 ? "memory" : "") + 1;
    top_bar(grid, row, at, bar, LAB_TOP_SECOND, used / total, view->unicode);
    top_put(grid, row, at + bar + 1, 12, LAB_TOP_PLAIN, top_used(used, total, text));
    int last = row + rows;
    row++;
    if (row < last) {
        at = draw_fed(history, view, node, row, 3, grid);
        double remote = remote_share(numa, node);
        const char *words = "of its pages used by remote CPUs";
        if (at + 8 + lab_str_columns(words) > grid->columns)
            words = "remote pages";
        if (!isnan(remote))
            top_print(grid, row, at, grid->columns - at,
                      remote >= 10 ? LAB_TOP_WARNING : LAB_TOP_DIM, " · %.0f%% %s", remote, words);
        row++;
    }
    if (row < last && history->setup.machine)
        row = top_draw_cores(history, view, node, row, 9, last - row, grid);
    return row;
}

/* Utilisation of the first nodes over time, where there is room. */
static void draw_charts(const struct lab_top_history *history, const struct lab_top_view *view,
                        const struct top_entity *numa, int row, int height,
                        struct lab_top_grid *grid) {
    int nodes[4], count = 0, most = grid->columns / 38;
    for (int i = 0; i < numa->entity.column_count && count < 4 && count < most; i++)
        if (numa->entity.columns[i].metric == LAB_METRIC_NODE_UTILIZATION)
            nodes[count++] = numa->entity.columns[i].instance;
    for (int i = 0; i < count; i++) {
        char title[TOP_TEXT];
        snprintf(title, sizeof title, "node %d", nodes[i]);
        struct top_chart chart = {
            title, TOP_CHART_PERCENT, {{"CPUs", LAB_METRIC_NODE_UTILIZATION}}, nodes[i] + 1};
        int left = 1 + (grid->columns - 1) * i / count, width = (grid->columns - 1) / count - 1;
        top_draw_chart(history, view, numa, &chart, row, left, width, height > 12 ? 12 : height,
                       grid);
    }
}

void top_draw_numa(const struct lab_top_history *history, const struct lab_top_view *view,
                   struct lab_top_grid *grid) {
    const struct top_entity *numa = top_of_kind(history, LAB_ENTITY_NUMA);
    int last = grid->rows - 1, row = 1, skip = view->scroll;
    if (!numa)
        top_put(grid, ++row, 2, grid->columns - 2, LAB_TOP_DIM, "NUMA nodes are unknown here");
    for (int i = 0; numa && i < numa->entity.column_count && row < last; i++) {
        if (numa->entity.columns[i].metric != LAB_METRIC_NODE_TOTAL || skip-- > 0)
            continue;
        row = draw_node(history, view, numa, numa->entity.columns[i].instance, row, last - row,
                        grid) +
              (grid->rows >= 20);
    }
    if (!history->setup.machine && row + 1 < last) {
        top_put(grid, row++, 1, 10, LAB_TOP_BOLD, "all CPUs");
        row = top_draw_cores(history, view, -1, row, 9, last - row, grid) + 1;
    }
    if (numa && last - row >= 5)
        draw_charts(history, view, numa, row, last - row, grid);
}
