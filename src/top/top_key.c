/* top_key.c: what a key does. */
#include "top/top_internal.h"

#include <math.h>
#include <signal.h>

#define SEEK_NS     (10 * TOP_NS_PER_S)
#define SEEK_FAR_NS (60 * TOP_NS_PER_S)
#define SPEED_MOST  64
#define SPEED_LEAST 0.125
#define ZOOM_MOST   3

static const struct lab_top_request nothing = {.action = LAB_TOP_NOTHING};

/* --- moving --- */

static int clamp(int value, int count) {
    return value >= count ? (count > 0 ? count - 1 : 0) : value < 0 ? 0 : value;
}

/* Which of the listed devices is the GPU of that number; -1 = none. */
static int find_gpu(const struct lab_top_history *history, int index) {
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    for (int i = 0; i < count; i++) {
        const struct lab_entity *entity = &history->entities[devices[i]].entity;
        if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
            return i;
    }
    return -1;
}

/* Digits name GPUs as they are numbered, whatever lies between them; two in a row one from 10 on,
 * if there is such a one. */
static void select_gpu(struct lab_top_view *view, const struct lab_top_history *history,
                       int digit) {
    int index = view->typed ? 10 * (view->typed - 1) + digit : digit;
    if (view->typed && (index < 10 || find_gpu(history, index) < 0))
        index = digit;
    int device = find_gpu(history, index);
    view->typed = 0;
    if (device < 0) {
        snprintf(view->message, sizeof view->message, "there is no GPU %d", index);
        return;
    }
    view->device = device;
    view->typed = index + 1;
}

static void select_process(struct lab_top_view *view, const struct lab_top_history *history,
                           int by) {
    LAB_AUTO(arena, arena);
    struct top_row *rows;
    int count = top_process_rows(history, view, &arena, &rows);
    if (count)
        view->pid = rows[clamp(top_process_selected(view, rows, count) + by, count)].process->pid;
}

static void move(struct lab_top_view *view, const struct lab_top_history *history, int by) {
    int devices[TOP_DEVICES_MAX];
    if (view->page == LAB_TOP_PROCESSES)
        select_process(view, history, by);
    else if (view->page == LAB_TOP_NUMA)
        view->scroll = view->scroll + by < 0 ? 0 : view->scroll + by;
    else if (view->page == LAB_TOP_PROGRAM)
        view->program = view->program_count ? clamp(view->program + by, view->program_count) : 0;
    else
        view->device = clamp(view->device + by, top_devices(history, devices));
}

/* A page of rows; on a device's page, of charts. The drawing holds it within what there is. */
static void move_far(struct lab_top_view *view, const struct lab_top_history *history, int sign) {
    if (view->page == LAB_TOP_PROCESSES) {
        move(view, history, sign * (view->rows > 12 ? view->rows - 8 : 4));
    } else if (view->page == LAB_TOP_OVERVIEW) {
        move(view, history, 4 * sign);
    } else {
        int scroll = view->scroll + sign;
        view->scroll = scroll < 0 ? 0 : scroll > 64 ? 64 : scroll;
    }
}

/* --- a process's end --- */

/* Settles which one is meant before the question is asked: the list may change under it. */
static void ask_kill(struct lab_top_view *view, const struct lab_top_history *history) {
    const char *why = view->readonly ? "--readonly: nothing can be ended from here"
                      : view->replay ? "these processes are of a recording"
                      : lab_top_history_simulated(history) ? "these processes are simulated"
                      : view->page != LAB_TOP_PROCESSES    ? "select a process first (F4)"
                                                           : NULL;
    if (why) {
        snprintf(view->message, sizeof view->message, "%s", why);
        return;
    }
    select_process(view, history, 0);
    if (view->pid <= 0)
        return;
    view->signal = view->warned == view->pid ? SIGKILL : SIGTERM;
    view->prompt = LAB_TOP_ASK_KILL;
}

static struct lab_top_request answer_kill(struct lab_top_view *view,
                                          const struct lab_top_history *history, int key) {
    view->prompt = LAB_TOP_NO_PROMPT;
    if (key != 'y' && key != 'Y')
        return nothing;
    for (int i = 0; i < history->processes.count; i++) {
        const struct lab_process_sample *process = &history->processes.items[i];
        if (process->pid != view->pid)
            continue;
        view->warned = view->pid;
        return (struct lab_top_request){.action = LAB_TOP_KILL,
                                        .pid = process->pid,
                                        .start = process->start,
                                        .signal = view->signal};
    }
    snprintf(view->message, sizeof view->message, "process %d has ended by itself", view->pid);
    return nothing;
}

/* --- the filter --- */

static void add_utf8(char *text, size_t size, int point) {
    char bytes[5] = {0};
    if (point < 0x80) {
        bytes[0] = (char)point;
    } else if (point < 0x800) {
        bytes[0] = (char)(0xc0 | point >> 6);
        bytes[1] = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        bytes[0] = (char)(0xe0 | point >> 12);
        bytes[1] = (char)(0x80 | (point >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (point & 0x3f));
    } else {
        return;
    }
    size_t length = strlen(text), more = strlen(bytes);
    if (length + more + 1 <= size)
        memcpy(text + length, bytes, more + 1);
}

static void type_filter(struct lab_top_view *view, int key) {
    size_t length = strlen(view->filter);
    if (key == LAB_TOP_KEY_ENTER) {
        view->prompt = LAB_TOP_NO_PROMPT;
    } else if (key == LAB_TOP_KEY_ESCAPE) {
        view->filter[0] = 0;
        view->prompt = LAB_TOP_NO_PROMPT;
    } else if (key == LAB_TOP_KEY_BACKSPACE) {
        while (length > 0 && ((unsigned char)view->filter[--length] & 0xc0) == 0x80)
            ;
        view->filter[length] = 0;
    } else if (key >= ' ' && key < LAB_TOP_KEY_UP && key != 0x7f) {
        add_utf8(view->filter, sizeof view->filter, key);
    }
    view->pid = 0;
}

/* --- replay --- */

static bool replay_key(struct lab_top_view *view, int key, struct lab_top_request *ret) {
    const struct {
        int key;
        int64_t time_ns;
    } places[] = {{LAB_TOP_KEY_LEFT, view->now_ns - SEEK_NS},
                  {LAB_TOP_KEY_RIGHT, view->now_ns + SEEK_NS},
                  {LAB_TOP_KEY_SHIFT_LEFT, view->now_ns - SEEK_FAR_NS},
                  {LAB_TOP_KEY_SHIFT_RIGHT, view->now_ns + SEEK_FAR_NS},
                  {LAB_TOP_KEY_HOME, view->begin_ns},
                  {LAB_TOP_KEY_END, view->end_ns}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (key == places[i].key) {
            int64_t time_ns = places[i].time_ns;
            time_ns = time_ns < view->begin_ns ? view->begin_ns : time_ns;
            time_ns = time_ns > view->end_ns ? view->end_ns : time_ns;
            *ret = (struct lab_top_request){.action = LAB_TOP_SEEK, .time_ns = time_ns};
            return true;
        }
    if (key != '+' && key != '=' && key != '-')
        return false;
    view->speed =
        key == '-' ? fmax(view->speed / 2, SPEED_LEAST) : fmin(2 * view->speed, SPEED_MOST);
    return true;
}

/* --- all keys --- */

static bool page_key(struct lab_top_view *view, int key) {
    int page = -1, pages = LAB_TOP_PAGE_COUNT - (view->program_count == 0);
    if (key >= LAB_TOP_KEY_F1 + 1 && key <= LAB_TOP_KEY_F1 + 4)
        page = key - LAB_TOP_KEY_F1 - 1;
    else if (key == LAB_TOP_KEY_TAB)
        page = ((int)view->page + 1) % pages;
    else if (key == LAB_TOP_KEY_BACK_TAB)
        page = ((int)view->page + pages - 1) % pages;
    else if (key == 'o' || (key == LAB_TOP_KEY_ESCAPE && !*view->filter))
        page = LAB_TOP_OVERVIEW;
    else if (key == 'd' || (key == LAB_TOP_KEY_ENTER && view->page == LAB_TOP_OVERVIEW))
        page = LAB_TOP_DEVICE;
    else if (key == 'l')
        page = LAB_TOP_PROCESSES;
    else if (key == 'n')
        page = LAB_TOP_NUMA;
    else if (key == 'm' || key == LAB_TOP_KEY_F1 + 5)
        page = LAB_TOP_PROGRAM;
    if (page < 0)
        return false;
    view->page = (enum lab_top_page)page;
    view->scroll = 0;
    return true;
}

static void list_key(struct lab_top_view *view, const struct lab_top_history *history, int key) {
    switch (key) {
    case 's':
        do /* past columns that aren't there */
            view->sort = (enum lab_top_sort)(((int)view->sort + 1) % LAB_TOP_SORT_COUNT);
        while (top_sort(history, view) != view->sort);
        snprintf(view->message, sizeof view->message, "processes by %s",
                 top_sort_title(view->sort));
        break;
    case 'S':
        view->reverse = !view->reverse;
        break;
    case 't':
        view->tree = !view->tree;
        break;
    case 'a':
        view->all = !view->all;
        break;
    case '/':
        view->prompt = LAB_TOP_ASK_FILTER;
        break;
    case LAB_TOP_KEY_ESCAPE: /* page_key took it where there is no filter */
        view->filter[0] = 0;
        break;
    case 'k':
    case LAB_TOP_KEY_F1 + 8:
        ask_kill(view, history);
        break;
    default:
        break;
    }
}

static void move_key(struct lab_top_view *view, const struct lab_top_history *history, int key) {
    if (key == LAB_TOP_KEY_UP || key == LAB_TOP_KEY_LEFT)
        move(view, history, -1);
    else if (key == LAB_TOP_KEY_DOWN || key == LAB_TOP_KEY_RIGHT)
        move(view, history, 1);
    else if (key == LAB_TOP_KEY_PAGE_UP || key == LAB_TOP_KEY_PAGE_DOWN)
        move_far(view, history, key == LAB_TOP_KEY_PAGE_UP ? -1 : 1);
    else if (key == LAB_TOP_KEY_HOME)
        move(view, history, -(1 << 20));
    else if (key == LAB_TOP_KEY_END)
        move(view, history, view->page == LAB_TOP_NUMA ? 0 : 1 << 20);
    else if (key >= '0' && key <= '9')
        select_gpu(view, history, key - '0');
}

static struct lab_top_request prompt_key(struct lab_top_view *view,
                                         const struct lab_top_history *history, int key) {
    switch (view->prompt) {
    case LAB_TOP_ASK_FILTER:
        type_filter(view, key);
        break;
    case LAB_TOP_ASK_KILL:
        return answer_kill(view, history, key);
    case LAB_TOP_ASK_LEAVE:
        view->prompt = LAB_TOP_NO_PROMPT;
        if (key == 'w' || key == 'q')
            return (struct lab_top_request){.action =
                                                key == 'w' ? LAB_TOP_WRITE_AND_QUIT : LAB_TOP_QUIT};
        break;
    case LAB_TOP_HELP:
        if (key == LAB_TOP_KEY_DOWN) {
            view->scroll++;
        } else if (key == LAB_TOP_KEY_UP) {
            view->scroll -= view->scroll > 0;
        } else if (key == LAB_TOP_KEY_PAGE_DOWN) {
            view->scroll += view->rows - 3;
        } else if (key == LAB_TOP_KEY_PAGE_UP) {
            view->scroll -= view->scroll < view->rows - 3 ? view->scroll : view->rows - 3;
        } else {
            view->prompt = LAB_TOP_NO_PROMPT;
            view->scroll = 0;
        }
        break;
    case LAB_TOP_NO_PROMPT:
        break;
    }
    return nothing;
}

struct lab_top_request lab_top_key(struct lab_top_view *view, const struct lab_top_history *history,
                                   int key) {
    struct lab_top_request request = nothing;
    view->message[0] = 0;
    if (key < '0' || key > '9')
        view->typed = 0;
    if (view->prompt != LAB_TOP_NO_PROMPT)
        return prompt_key(view, history, key);
    if (view->replay && replay_key(view, key, &request))
        return request;
    switch (key) {
    case 'q':
    case LAB_TOP_KEY_F10:
        return (struct lab_top_request){.action = LAB_TOP_QUIT};
    case 'w':
        view->prompt = LAB_TOP_ASK_LEAVE;
        break;
    case '?':
    case LAB_TOP_KEY_F1:
        view->prompt = LAB_TOP_HELP;
        view->scroll = 0;
        break;
    case 'p':
    case ' ':
        view->paused = !view->paused;
        break;
    case 'z':
        view->zoom = (view->zoom + 1) % (ZOOM_MOST + 1);
        break;
    default:
        if (!page_key(view, key)) {
            list_key(view, history, key);
            move_key(view, history, key);
        }
    }
    return nothing;
}
