/* top_process.c: the list of processes: in order, filtered, as a tree; and its page. */
#include "top/top_internal.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

const char *top_sort_title(enum lab_top_sort sort) {
    static const char *const titles[LAB_TOP_SORT_COUNT] = {
        "GPU memory", "SM share", "CPU share", "memory", "process number",
        "user",       "GPU",      "placement", "command"};
    return titles[sort];
}

enum lab_top_sort top_sort(const struct lab_top_history *history, const struct lab_top_view *view) {
    switch (view->sort) {
    case LAB_TOP_BY_GPU_MEMORY:
    case LAB_TOP_BY_SM:
    case LAB_TOP_BY_GPU:
    case LAB_TOP_BY_PLACEMENT:
        return top_has_gpus(history) ? view->sort : LAB_TOP_BY_CPU;
    default:
        return view->sort;
    }
}

static const char *placement_words(enum lab_placement placement) {
    static const char *const words[] = {
        [LAB_PLACEMENT_UNKNOWN] = "?",    [LAB_PLACEMENT_ONE_NODE] = "–",
        [LAB_PLACEMENT_LOCAL] = "local",  [LAB_PLACEMENT_LOOSE] = "loose",
        [LAB_PLACEMENT_CORES] = "!cores", [LAB_PLACEMENT_MEMORY] = "!memory",
        [LAB_PLACEMENT_BOTH] = "!both"};
    return words[placement];
}

/* --- figures of one --- */

static double gpu_memory(const struct lab_process_sample *process) {
    double sum = NAN;
    for (int i = 0; i < process->gpu_count; i++)
        if (process->gpus[i].memory_bytes >= 0)
            sum = (isnan(sum) ? 0 : sum) + (double)process->gpus[i].memory_bytes;
    return sum;
}

static double sm_percent(const struct lab_process_sample *process) {
    double most = NAN;
    for (int i = 0; i < process->gpu_count; i++)
        most = fmax(most, process->gpus[i].sm_percent);
    return most;
}

/* "0-3", "0,2"; "–" = none */
static const char *gpu_list(const struct lab_top_history *history,
                            const struct lab_process_sample *process, char text[TOP_TEXT]) {
    uint64_t seen = 0;
    for (int i = 0; i < process->gpu_count; i++) {
        int index = top_gpu_index(history, process->gpus[i].entity);
        if (index >= 0 && index < 64)
            seen |= UINT64_C(1) << index;
    }
    size_t at = 0;
    snprintf(text, TOP_TEXT, "–");
    for (int i = 0; i < 64; i++) {
        if (!(seen >> i & 1))
            continue;
        int last = i;
        while (last < 63 && (seen >> (last + 1) & 1))
            last++;
        if (at > TOP_TEXT - 10)
            break;
        at += (size_t)snprintf(text + at, TOP_TEXT - at, "%s%d", at ? "," : "", i);
        if (last > i)
            at +=
                (size_t)snprintf(text + at, TOP_TEXT - at, "%c%d", last > i + 1 ? '-' : ',', last);
        i = last;
    }
    return text;
}

static const char *command_of(const struct lab_process_sample *process) {
    return *process->command ? process->command : process->name;
}

/* --- which --- */

static bool contains(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

static bool matches(const struct lab_top_view *view, const struct lab_process_sample *process) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", process->pid);
    const char *filter = view->filter;
    return !*filter || contains(process->command, filter) || contains(process->name, filter) ||
           contains(process->user, filter) || contains(process->container, filter) ||
           lab_str_starts(pid, filter) || contains(placement_words(process->placement), filter);
}

/* --- order --- */

struct order {
    enum lab_top_sort sort;
    bool reverse;
    const struct lab_top_history *history;
};

static int first_gpu(const struct lab_top_history *history,
                     const struct lab_process_sample *process) {
    return process->gpu_count ? top_gpu_index(history, process->gpus[0].entity) : 1 << 20;
}

static int by_number(double a, double b) { /* largest first, unknown last */
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

static int compare(const void *left, const void *right, void *state) {
    const struct order *order = state;
    const struct lab_process_sample *a = ((const struct top_row *)left)->process;
    const struct lab_process_sample *b = ((const struct top_row *)right)->process;
    int result = 0;
    if (order->sort == LAB_TOP_BY_GPU_MEMORY)
        result = by_number(gpu_memory(a), gpu_memory(b));
    else if (order->sort == LAB_TOP_BY_SM)
        result = by_number(sm_percent(a), sm_percent(b));
    else if (order->sort == LAB_TOP_BY_CPU)
        result = by_number(a->cpu_percent, b->cpu_percent);
    else if (order->sort == LAB_TOP_BY_MEMORY)
        result = by_number((double)a->memory_bytes, (double)b->memory_bytes);
    else if (order->sort == LAB_TOP_BY_USER)
        result = strcmp(a->user, b->user);
    else if (order->sort == LAB_TOP_BY_GPU)
        result = first_gpu(order->history, a) - first_gpu(order->history, b);
    else if (order->sort == LAB_TOP_BY_PLACEMENT)
        result = by_number((double)a->placement, (double)b->placement);
    else if (order->sort == LAB_TOP_BY_COMMAND)
        result = strcmp(command_of(a), command_of(b));
    if (!result)
        result = (a->pid > b->pid) - (a->pid < b->pid);
    return order->reverse ? -result : result;
}

/* --- the tree --- */

static int find_pid(const struct top_row *rows, int count, int32_t pid) {
    for (int i = 0; i < count; i++)
        if (rows[i].process->pid == pid)
            return i;
    return -1;
}

struct tree {
    const struct top_row *rows; /* in order */
    int count;
    int *parent, *first, *next; /* by row; -1 = none. Children keep the order */
    bool *shown;
    struct top_row *out;
    int out_count;
};

struct pid_row {
    int32_t pid;
    int row;
};

static int compare_pids(const void *left, const void *right) {
    const struct pid_row *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void link_rows(struct tree *tree, struct lab_arena *arena) {
    size_t count = (size_t)tree->count;
    struct pid_row *pids = lab_arena_alloc(arena, count + 1, sizeof *pids);
    tree->parent = lab_arena_alloc(arena, count + 1, sizeof *tree->parent);
    tree->first = lab_arena_alloc(arena, count + 1, sizeof *tree->first);
    tree->next = lab_arena_alloc(arena, count + 1, sizeof *tree->next);
    for (int i = 0; i < tree->count; i++) {
        pids[i] = (struct pid_row){tree->rows[i].process->pid, i};
        tree->first[i] = tree->next[i] = -1;
    }
    qsort(pids, count, sizeof *pids, compare_pids);
    for (int i = tree->count - 1; i >= 0; i--) {
        struct pid_row key = {tree->rows[i].process->parent_pid, 0};
        struct pid_row *found = bsearch(&key, pids, count, sizeof *pids, compare_pids);
        int parent = found && found->row != i ? found->row : -1;
        tree->parent[i] = parent;
        if (parent < 0)
            continue;
        tree->next[i] = tree->first[parent];
        tree->first[parent] = i;
    }
}

static void add_to_tree(struct tree *tree, int row, int depth) {
    if (!tree->shown[row])
        return;
    tree->shown[row] = false; /* once: parents of a broken file may go round in a circle */
    tree->out[tree->out_count] = tree->rows[row];
    tree->out[tree->out_count++].depth = depth;
    for (int child = tree->first[row]; child >= 0; child = tree->next[child])
        add_to_tree(tree, child, depth + 1);
}

/* Those that match, and above each the ones that it comes from. */
static int make_tree(struct top_row *rows, int count, struct lab_arena *arena,
                     struct top_row **ret_rows) {
    struct tree tree = {.rows = rows, .count = count};
    link_rows(&tree, arena);
    tree.shown = lab_arena_alloc(arena, (size_t)count + 1, sizeof *tree.shown);
    tree.out = lab_arena_alloc(arena, (size_t)count + 1, sizeof *tree.out);
    for (int i = 0; i < count; i++)
        for (int at = rows[i].context ? -1 : i; at >= 0 && !tree.shown[at]; at = tree.parent[at])
            tree.shown[at] = true;
    for (int i = 0; i < count; i++)
        if (tree.parent[i] < 0)
            add_to_tree(&tree, i, 0);
    *ret_rows = tree.out;
    return tree.out_count;
}

int top_process_rows(const struct lab_top_history *history, const struct lab_top_view *view,
                     struct lab_arena *arena, struct top_row **ret_rows) {
    const struct lab_process_list *list = &history->processes;
    struct top_row *rows = lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *rows);
    bool all = view->all || !top_has_gpus(history);
    int count = 0;
    for (int i = 0; i < list->count; i++) {
        bool match = (all || list->items[i].gpu_count) && matches(view, &list->items[i]);
        if (match || view->tree)
            rows[count++] = (struct top_row){&list->items[i], 0, !match};
    }
    struct order order = {top_sort(history, view), view->reverse, history};
    qsort_r(rows, (size_t)count, sizeof *rows, compare, &order);
    *ret_rows = rows;
    return view->tree ? make_tree(rows, count, arena, ret_rows) : count;
}

int top_process_selected(const struct lab_top_view *view, const struct top_row *rows, int count) {
    int at = find_pid(rows, count, view->pid);
    return at < 0 ? 0 : at;
}

/* --- drawing --- */

struct layout {
    int pid, user, gpu, kind, sm, gpu_memory, cpu, memory, place, command; /* columns; -1 = none */
    bool gpus;
};

static struct layout make_layout(const struct lab_top_history *history, int columns) {
    struct layout l = {.gpus = top_has_gpus(history),
                       .user = -1,
                       .kind = -1,
                       .place = -1,
                       .gpu = -1,
                       .sm = -1,
                       .gpu_memory = -1,
                       .memory = -1,
                       .cpu = -1};
    int at = 1;
    l.pid = at, at += 8;
    if (columns >= 60)
        l.user = at, at += 9;
    if (l.gpus) {
        l.gpu = at, at += 5;
        if (columns >= 80)
            l.kind = at, at += 3;
        if (columns >= 60)
            l.sm = at, at += 5;
        l.gpu_memory = at, at += 6;
    }
    if (columns >= 60 || !l.gpus) {
        l.cpu = at, at += 6;
        l.memory = at, at += 6;
    }
    if (l.gpus)
        l.place = at + 1, at += 9;
    l.command = at + (l.gpus ? 0 : 1);
    return l;
}

static void heading(const struct lab_top_view *view, enum lab_top_sort sort, const struct layout *l,
                    int row, struct lab_top_grid *grid) {
    static const struct {
        const char *title;
        size_t offset;
        int width; /* 0 = left-aligned */
        int sort;
    } columns[] = {
        {"PID", offsetof(struct layout, pid), 7, LAB_TOP_BY_PID},
        {"USER", offsetof(struct layout, user), 0, LAB_TOP_BY_USER},
        {"GPU", offsetof(struct layout, gpu), 0, LAB_TOP_BY_GPU},
        {"TY", offsetof(struct layout, kind), 0, -1},
        {"SM", offsetof(struct layout, sm), 4, LAB_TOP_BY_SM},
        {"GMEM", offsetof(struct layout, gpu_memory), 6, LAB_TOP_BY_GPU_MEMORY},
        {"CPU", offsetof(struct layout, cpu), 6, LAB_TOP_BY_CPU},
        {"MEM", offsetof(struct layout, memory), 6, LAB_TOP_BY_MEMORY},
        {"PLACE", offsetof(struct layout, place), 0, LAB_TOP_BY_PLACEMENT},
        {"COMMAND", offsetof(struct layout, command), 0, LAB_TOP_BY_COMMAND},
    };
    top_style(grid, row, 0, grid->columns, LAB_TOP_TITLE);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        int at = *(const int *)((const char *)l + columns[i].offset);
        char text[32];
        bool sorted = columns[i].sort == (int)sort && !view->snapshot;
        snprintf(text, sizeof text, "%s%s", columns[i].title,
                 !sorted         ? ""
                 : view->reverse ? "▲"
                                 : "▼");
        if (at >= 0 && columns[i].width)
            top_right(grid, row, at, columns[i].width, LAB_TOP_TITLE, text);
        else if (at >= 0)
            top_put(grid, row, at, 8, LAB_TOP_TITLE, text);
    }
}

static void draw_row(const struct lab_top_history *history, const struct layout *l,
                     const struct top_row *process_row, int row, struct lab_top_grid *grid) {
    const struct lab_process_sample *p = process_row->process;
    enum lab_top_style style = process_row->context ? LAB_TOP_DIM : LAB_TOP_PLAIN;
    char text[TOP_TEXT];
    snprintf(text, sizeof text, "%d", p->pid);
    top_right(grid, row, l->pid, 7, style, text);
    if (l->user >= 0)
        top_put(grid, row, l->user, 8, style, p->user);
    if (l->gpu >= 0)
        top_put(grid, row, l->gpu, 4, style, gpu_list(history, p, text));
    if (l->kind >= 0 && p->gpu_count) {
        bool compute = false, graphics = false;
        for (int i = 0; i < p->gpu_count; i++) {
            compute |= p->gpus[i].compute;
            graphics |= p->gpus[i].graphics;
        }
        top_print(grid, row, l->kind, 2, style, "%s%s", compute ? "C" : "", graphics ? "G" : "");
    }
    if (l->sm >= 0)
        top_right(grid, row, l->sm, 4, style, top_percent(sm_percent(p), text));
    if (l->gpu_memory >= 0)
        top_right(grid, row, l->gpu_memory, 6, style, top_size(gpu_memory(p), text));
    if (l->cpu >= 0)
        top_right(grid, row, l->cpu, 6, style, top_percent(p->cpu_percent, text));
    if (l->memory >= 0)
        top_right(grid, row, l->memory, 6, style,
                  top_size(p->memory_bytes < 0 ? (double)NAN : (double)p->memory_bytes, text));
    if (l->place >= 0 && p->gpu_count)
        top_put(grid, row, l->place, 8,
                *placement_words(p->placement) == '!' ? LAB_TOP_WARNING : style,
                placement_words(p->placement));
    int at = l->command;
    if (process_row->depth)
        at = top_put(grid, row, at + 2 * (process_row->depth - 1), 2, LAB_TOP_DIM, "└") + 1;
    if (*p->container)
        at = top_print(grid, row, at, 14, LAB_TOP_DIM, "[%s]", p->container) + 1;
    top_put(grid, row, at, grid->columns - at, style, command_of(p));
}

void top_draw_processes(const struct lab_top_history *history, const struct lab_top_view *view,
                        bool select, int row, int height, struct lab_top_grid *grid) {
    LAB_AUTO(arena, arena);
    struct top_row *rows;
    int count = top_process_rows(history, view, &arena, &rows);
    struct layout l = make_layout(history, grid->columns);
    int selected = select ? top_process_selected(view, rows, count) : -1;
    int room = height - 1;
    int first = selected >= room ? selected - room + 1 : 0;
    heading(view, top_sort(history, view), &l, row, grid);
    for (int i = first; i < count && i - first < room; i++) {
        int at = row + 1 + i - first;
        bool more = i - first == room - 1 && i + 1 < count && !select;
        if (more) {
            top_print(grid, at, l.user >= 0 ? l.user : l.pid, 60, LAB_TOP_DIM, "… %d more (%s)",
                      count - i, view->snapshot ? "--all" : "F4");
            break;
        }
        draw_row(history, &l, &rows[i], at, grid);
        if (i == selected)
            top_style(grid, at, 0, grid->columns, LAB_TOP_SELECTED);
        if (i == selected)
            top_put(grid, at, 0, 1, LAB_TOP_SELECTED, "›");
    }
    if (!count && room > 0)
        top_put(grid, row + 1, 2, grid->columns - 2, LAB_TOP_DIM,
                !history->has_processes  ? "no list of processes yet"
                : *view->filter          ? "no process matches the filter"
                : !top_has_gpus(history) ? "no process is known"
                                         : "no process uses a GPU (a lists them all)");
}

/* --- the page --- */

/* Broken anywhere, since it is to be pasted; returns the next free row. */
static int put_lines(const char *text, const char *label, enum lab_top_style style, int row,
                     int last, struct lab_top_grid *grid) {
    int column = *label ? top_put(grid, row, 1, 6, style, label) + 1 : 1;
    for (int left = lab_str_columns(text); left > 0 && row < last; row++) {
        int width = grid->columns - column - 1;
        bool ends = row + 1 == last && left > width;
        LAB_AUTO(str, line);
        for (int i = 0; i < width + (ends ? 2 : 0) && *text; i++) {
            do
                lab_str_add_bytes(&line, text++, 1);
            while (((unsigned char)*text & 0xc0) == 0x80);
        }
        top_put(grid, row, column, width + 1, style, line.text);
        left -= width;
    }
    return row;
}

/* The selected process: its placement, and the command that corrects it. */
static void draw_selected(const struct lab_top_history *history, const struct lab_process_sample *p,
                          int row, int rows, struct lab_top_grid *grid) {
    const struct lab_machine *machine = history->setup.machine;
    LAB_AUTO(str, about);
    lab_str_printf(&about, " · %s%s%d thread%s", p->container, *p->container ? " · " : "",
                   p->threads, p->threads == 1 ? "" : "s");
    if (p->cpu_node >= 0)
        lab_str_printf(&about, " on NUMA node %d", p->cpu_node);
    for (int i = 0, said = 0; p->node_bytes && i < p->node_count; i++) {
        char size[TOP_TEXT];
        int node = machine && i < machine->node_count ? machine->nodes[i].number : i;
        if (p->node_bytes[i] > 0)
            lab_str_printf(&about, "%s%s on %d", said++ ? ", " : " · memory ",
                           top_size((double)p->node_bytes[i], size), node);
    }
    int at = top_print(grid, row, 1, grid->columns - 1, LAB_TOP_BOLD, "%d %s", p->pid, p->name);
    top_put(grid, row, at, grid->columns - at, LAB_TOP_PLAIN, about.text);
    int line = row + 1, last = row + rows;
    if (*p->advice && line < last)
        line = put_lines(p->advice, "fix:", LAB_TOP_WARNING, line, last, grid);
    if (line < last)
        put_lines(command_of(p), "", LAB_TOP_DIM, line, last, grid);
}

void top_draw_process_page(const struct lab_top_history *history, const struct lab_top_view *view,
                           struct lab_top_grid *grid) {
    LAB_AUTO(arena, arena);
    struct top_row *rows;
    int count = top_process_rows(history, view, &arena, &rows);
    int left_out = history->processes.left_out;
    char extra[80] = "";
    if (left_out)
        snprintf(extra, sizeof extra, ", %d left out", left_out);
    char filter[96] = "";
    if (*view->filter)
        snprintf(filter, sizeof filter, ", filter \"%s\"", view->filter);
    top_print(grid, 1, 1, grid->columns - 1, LAB_TOP_DIM, "%d process%s%s%s by %s%s%s%s", count,
              count == 1 ? "" : "es", view->all || !top_has_gpus(history) ? "" : " on GPUs",
              view->tree ? " as a tree," : ",", top_sort_title(top_sort(history, view)),
              view->reverse ? ", reversed" : "", filter, extra);
    int below = grid->rows >= 16 ? 4 : 2;
    top_draw_processes(history, view, true, 2, grid->rows - 3 - below, grid);
    if (count)
        draw_selected(history, rows[top_process_selected(view, rows, count)].process,
                      grid->rows - 1 - below, below, grid);
}
