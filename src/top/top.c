/* top.c: what all pages share: the title, the line of keys, questions, help; and the page
 * between. */
#include "top/top_internal.h"

#include <signal.h>

/* --- the title --- */

static void add_state(const struct lab_top_history *history, const struct lab_top_view *view,
                      struct lab_str *out) {
    if (lab_top_history_simulated(history))
        lab_str_add(out, "SIMULATED  ");
    if (view->replay && !view->snapshot) {
        lab_str_add(out, view->paused ? "PAUSED " : "▶ ");
        lab_str_add_duration(out, (double)(view->now_ns - view->begin_ns) / TOP_NS_PER_S,
                             LAB_DURATION_CLOCK);
        lab_str_add(out, " of ");
        lab_str_add_duration(out, (double)(view->end_ns - view->begin_ns) / TOP_NS_PER_S,
                             LAB_DURATION_CLOCK);
        if (view->speed != 1)
            lab_str_printf(out, " ×%g", view->speed);
        lab_str_add(out, "  ");
    } else if (view->paused && !view->snapshot) {
        lab_str_add(out, "PAUSED  ");
    }
    bool with_day = view->snapshot || (view->replay && view->columns >= 100);
    if (view->now_ns)
        lab_str_add_clock(out, view->now_ns + view->wall_offset_ns,
                          with_day ? LAB_STR_DATE : "%H:%M:%S");
}

static void draw_title(const struct lab_top_history *history, const struct lab_top_view *view,
                       struct lab_top_grid *grid) {
    static const char *const pages[LAB_TOP_PAGE_COUNT] = {"overview", "device", "processes",
                                                          "NUMA nodes", "program"};
    LAB_AUTO(str, state);
    add_state(history, view, &state);
    int right = lab_str_columns(state.text);
    top_style(grid, 0, 0, grid->columns, LAB_TOP_TITLE);
    top_right(grid, 0, grid->columns - right - 1, right, LAB_TOP_TITLE, state.text);
    int end = grid->columns - right - 2;
    int at = top_put(grid, 0, 1, end - 1, LAB_TOP_TITLE, "gpulab");
    if (!view->snapshot && grid->columns >= 60)
        at = top_print(grid, 0, at, end - at, LAB_TOP_TITLE, " · %s", pages[view->page]);
    const char *source = view->source ? view->source : "", *slash;
    bool whole = true;
    while (at + 4 + lab_str_columns(source) > end && (slash = strchr(source, '/'))) {
        source = slash + 1; /* the end of a path tells more than its beginning */
        whole = false;
    }
    if (*source)
        top_print(grid, 0, at, end - at, LAB_TOP_TITLE, " · %s%s", whole ? "" : "…/", source);
}

/* --- the last line --- */

static const char *selected_name(const struct lab_top_history *history,
                                 const struct lab_top_view *view, char *text, size_t size) {
    text[0] = 0;
    for (int i = 0; i < history->processes.count; i++)
        if (history->processes.items[i].pid == view->pid)
            snprintf(text, size, "%s", history->processes.items[i].name);
    return text;
}

static bool draw_question(const struct lab_top_history *history, const struct lab_top_view *view,
                          int row, struct lab_top_grid *grid) {
    char name[64];
    int width = grid->columns - 1;
    switch (view->prompt) {
    case LAB_TOP_ASK_FILTER:
        top_print(grid, row, 1, width, LAB_TOP_BOLD, "filter: %s_   Enter keeps, Esc clears",
                  view->filter);
        return true;
    case LAB_TOP_ASK_KILL:
        top_print(grid, row, 1, width, LAB_TOP_ALARM, "%ssend %s to %d %s? y or n",
                  view->signal == SIGKILL ? "still there: " : "",
                  view->signal == SIGKILL ? "KILL" : "TERM", view->pid,
                  selected_name(history, view, name, sizeof name));
        return true;
    case LAB_TOP_ASK_LEAVE:
        top_put(grid, row, 1, width, LAB_TOP_BOLD,
                "quit: w writes a summary and a picture first, q doesn't, Esc stays");
        return true;
    case LAB_TOP_NO_PROMPT:
    case LAB_TOP_HELP:
        break;
    }
    return false;
}

struct key_name {
    const char *key, *word;
};

static void draw_keys(const struct lab_top_view *view, int row, struct lab_top_grid *grid) {
    static const struct key_name pages[] = {
        {"F2", "overview"}, {"F3", "device"}, {"F4", "processes"}, {"F5", "NUMA"}, {NULL, NULL}};
    static const struct key_name program[] = {{"F6", "program"}, {NULL, NULL}};
    static const struct key_name live[] = {{"p", "pause"}, {NULL, NULL}};
    static const struct key_name replay[] = {{"←→", "seek"}, {"+-", "speed"}, {NULL, NULL}};
    static const struct key_name list[] = {
        {"s", "sort"}, {"/", "filter"}, {"t", "tree"}, {"k", "kill"}, {NULL, NULL}};
    static const struct key_name ends[] = {{"?", "help"}, {"q", "quit"}, {NULL, NULL}};
    const struct key_name *const groups[] = {ends, view->page == LAB_TOP_PROCESSES ? list : NULL,
                                             pages, view->program_count ? program : NULL,
                                             view->replay ? replay : live};
    int at = 1;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int i = 0; groups[g] && groups[g][i].key; i++) {
            const struct key_name *name = &groups[g][i];
            int width = lab_str_columns(name->key) + 1 + lab_str_columns(name->word);
            if (at + width > grid->columns)
                return;
            bool here = groups[g] == pages ? i == (int)view->page
                                           : groups[g] == program && view->page == LAB_TOP_PROGRAM;
            at = top_put(grid, row, at, 3, LAB_TOP_BOLD, name->key) + 1;
            at = top_put(grid, row, at, 12, here ? LAB_TOP_SELECTED : LAB_TOP_DIM, name->word) + 2;
        }
}

static void draw_last(const struct lab_top_history *history, const struct lab_top_view *view,
                      struct lab_top_grid *grid) {
    int row = grid->rows - 1;
    if (draw_question(history, view, row, grid))
        return;
    if (*view->message)
        top_put(grid, row, 1, grid->columns - 1, LAB_TOP_BOLD, view->message);
    else
        draw_keys(view, row, grid);
}

/* --- help --- */

static void draw_help(const struct lab_top_view *view, struct lab_top_grid *grid) {
    static const struct key_name lines[] = {
        {"F2 o, F3 d, F4 l, F5 n", "overview, device, processes, NUMA"},
        {"F6 m", "metrics of a program that a study runs"},
        {"Tab, Shift-Tab", "next page, the one before"},
        {"digits, arrows", "select a device or process"},
        {"Enter, Esc", "open the selected device; back"},
        {"Page Up, Page Down", "more charts, NUMA nodes, processes"},
        {"z", "charts over a longer time"},
        {"s, S", "sort by the next column; reversed"},
        {"/ , t, a", "filter; tree; all or GPU processes"},
        {"k", "end the process: TERM, then KILL"},
        {"p, Space", "pause and continue"},
        {"← →, with Shift", "replay: 10 s, 1 min back or on"},
        {"Home, End, + -", "replay: begin, end, faster, slower"},
        {"w", "quit with a summary and a picture"},
        {"q, Ctrl-C", "quit"},
        {"", ""},
        {"! P, T, H", "throttled: power limit, thermal, hardware"},
        {"! B, S", "by power brake, other GPUs' clocks"},
        {"!cores !memory !both", "NUMA node is remote to its GPU"},
        {"loose", "on the local NUMA node, but not bound"},
        {"TY C, G", "it computes, draws on the GPU"},
        {"SM, GMEM", "its share and memory of GPUs"},
    };
    int count = (int)(sizeof lines / sizeof *lines), room = grid->rows - 2;
    int keys = grid->columns >= 60 ? 24 : 14;
    int first = view->scroll + room > count ? count - room : view->scroll;
    for (int i = first < 0 ? 0 : first, row = 1; i < count && row <= room; i++, row++) {
        top_put(grid, row, 1, keys - 1, LAB_TOP_BOLD, lines[i].key);
        top_put(grid, row, 1 + keys, grid->columns - keys - 1, LAB_TOP_PLAIN, lines[i].word);
    }
    if (first + room < count)
        top_put(grid, grid->rows - 2, 0, 1, LAB_TOP_DIM, "▼");
    top_put(grid, grid->rows - 1, 1, grid->columns - 1, LAB_TOP_DIM,
            room < count ? "Esc leaves this, Page Down shows more" : "Esc leaves this");
}

/* --- all of it --- */

static void draw_too_small(const struct lab_top_view *view, struct lab_top_grid *grid) {
    top_print(grid, 0, 0, grid->columns, LAB_TOP_PLAIN, "needs %d x %d,", LAB_TOP_COLUMNS_MIN,
              LAB_TOP_ROWS_MIN);
    top_print(grid, 1, 0, grid->columns, LAB_TOP_PLAIN, "has %d x %d", view->columns, view->rows);
}

#define SNAPSHOT_PROCESSES 20 /* of those without a GPU, unless all are asked for */

static int snapshot_rows(const struct lab_top_history *history, const struct lab_top_view *view) {
    int devices[TOP_DEVICES_MAX], processes = history->processes.count;
    if (!view->all && !top_has_gpus(history) && processes > SNAPSHOT_PROCESSES)
        processes = SNAPSHOT_PROCESSES;
    return 12 + 2 * top_devices(history, devices) + processes;
}

/* What is empty at the end goes. */
static void crop(struct lab_top_grid *grid) {
    for (; grid->rows > 0; grid->rows--)
        for (int column = 0; column < grid->columns; column++)
            if (!lab_str_equal(
                    grid->cells[(size_t)(grid->rows - 1) * (size_t)grid->columns + (size_t)column]
                        .glyph,
                    " "))
                return;
}

void lab_top_draw(const struct lab_top_history *history, const struct lab_top_view *view,
                  struct lab_top_grid *grid) {
    top_grid_resize(grid, view->columns,
                    view->snapshot ? snapshot_rows(history, view) : view->rows);
    if (view->columns < LAB_TOP_COLUMNS_MIN || (!view->snapshot && view->rows < LAB_TOP_ROWS_MIN)) {
        draw_too_small(view, grid);
        return;
    }
    draw_title(history, view, grid);
    if (view->prompt == LAB_TOP_HELP) {
        draw_help(view, grid);
    } else {
        switch (view->page) {
        case LAB_TOP_DEVICE:
            top_draw_device(history, view, grid);
            break;
        case LAB_TOP_PROCESSES:
            top_draw_process_page(history, view, grid);
            break;
        case LAB_TOP_NUMA:
            top_draw_numa(history, view, grid);
            break;
        case LAB_TOP_PROGRAM:
            top_draw_program(view, grid);
            break;
        case LAB_TOP_OVERVIEW:
        case LAB_TOP_PAGE_COUNT:
            top_draw_overview(history, view, grid);
        }
        if (!view->snapshot)
            draw_last(history, view, grid);
    }
    if (view->snapshot)
        crop(grid);
    if (!view->unicode)
        top_grid_to_ascii(grid);
}
