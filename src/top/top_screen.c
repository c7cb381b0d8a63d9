/*
 * top_screen.c: one loop that never waits for a driver: the sampler has threads of its own, and
 * here is only taken what they have found. Drawn at most ten times a second, and only if something
 * changed: samples, a key, the terminal's size, or the second that the clock shows.
 */
#include "top/top_screen.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/tty/stop.h"
#include "top/top_terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAME_NS  (100 * LAB_NS_PER_MS)
#define LOOK_NS   LAB_NS_PER_S /* between looks at programs */
#define SELDOM_NS (5 * LAB_NS_PER_S)

struct screen {
    struct lab_top_source *source;
    struct lab_top_view *view;
    struct lab_top_terminal *terminal;
    struct lab_top_grid grid;
    struct lab_top_history *frozen; /* what is shown while live is paused */
    const struct lab_top_programs *programs;
    bool changed, write;
    int64_t drawn_ns, looked_ns;
};

/* --- ending a process --- */

/* Field 22 of its stat: with the pid it names one process for good. 0 = gone or not readable. */
static uint64_t start_of(int32_t pid) {
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    uint64_t start = 0;
    const char *path = lab_arena_printf(&arena, "/proc/%d/stat", pid);
    if (lab_file_read(path, 4096, &arena, &text, &length, NULL) == 0) {
        const char *at = strrchr(text, ')'); /* the name before it may hold anything */
        for (int field = 2; at && field < 22; field++)
            at = strchr(at + 1, ' ');
        if (at)
            start = strtoull(at + 1, NULL, 10);
    }
    return start;
}

/* A descriptor of the process first, then the check: no other can take its number between. */
static void end_process(const struct lab_top_request *request, char *message, size_t size) {
    const char *name = request->signal == SIGKILL ? "KILL" : "TERM";
    int fd = (int)syscall(SYS_pidfd_open, request->pid, 0), failed = errno;
    if (fd >= 0 && request->start && start_of(request->pid) != request->start) {
        close(fd);
        fd = -1;
        failed = ESRCH;
    }
    if (fd >= 0) {
        failed = syscall(SYS_pidfd_send_signal, fd, request->signal, NULL, 0) < 0 ? errno : 0;
        close(fd);
    }
    if (failed == 0 || fd < 0) {
        if (fd >= 0)
            snprintf(message, size, "sent %s to %d%s", name, request->pid,
                     request->signal == SIGTERM ? "; k again sends KILL" : "");
        else
            snprintf(message, size, "process %d has ended", request->pid);
        return;
    }
    snprintf(message, size, "process %d: %s", request->pid,
             failed == EPERM ? "it belongs to another user; you may not end it" : strerror(failed));
}

/* --- what is shown --- */

static const struct lab_top_history *shown(const struct screen *screen) {
    return screen->frozen ? screen->frozen : screen->source->history;
}

static void set_time(struct screen *screen) {
    if (screen->frozen)
        return;
    int64_t before_s = screen->view->now_ns / LAB_NS_PER_S;
    screen->view->now_ns = lab_top_source_now(screen->source);
    screen->view->wall_offset_ns = lab_top_source_wall_offset(screen->source);
    if (screen->view->now_ns / LAB_NS_PER_S != before_s)
        screen->changed = true;
}

/* A live machine goes on while its picture stands. */
static void follow_pause(struct screen *screen) {
    if (screen->source->recording)
        return;
    if (screen->view->paused && !screen->frozen) {
        set_time(screen);
        screen->frozen = lab_top_history_copy(screen->source->history);
    } else if (!screen->view->paused && screen->frozen) {
        lab_top_history_close(screen->frozen);
        screen->frozen = NULL;
        screen->changed = true;
    }
}

static void draw(struct screen *screen) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    int columns, rows;
    lab_top_terminal_size(screen->terminal, &columns, &rows);
    if (columns != screen->view->columns || rows != screen->view->rows)
        screen->changed = true;
    if (!screen->changed || now_ns - screen->drawn_ns < FRAME_NS)
        return;
    screen->view->columns = columns;
    screen->view->rows = rows;
    lab_top_draw(shown(screen), screen->view, &screen->grid);
    lab_top_terminal_paint(screen->terminal, &screen->grid);
    screen->drawn_ns = now_ns;
    screen->changed = false;
}

/* --- what happens --- */

/* false = the user leaves. */
static bool handle(struct screen *screen, int key) {
    struct lab_top_view *view = screen->view;
    bool paused = view->paused;
    struct lab_top_request request = lab_top_key(view, shown(screen), key);
    screen->changed = true;
    screen->drawn_ns = 0; /* a key is answered at once */
    switch (request.action) {
    case LAB_TOP_QUIT:
        return false;
    case LAB_TOP_WRITE_AND_QUIT:
        screen->write = true;
        return false;
    case LAB_TOP_KILL:
        end_process(&request, view->message, sizeof view->message);
        break;
    case LAB_TOP_SEEK:
        lab_top_source_seek(screen->source, request.time_ns);
        break;
    case LAB_TOP_NOTHING:
        break;
    }
    if (paused && !view->paused && lab_top_source_at_end(screen->source))
        lab_top_source_seek(screen->source, screen->source->begin_ns);
    follow_pause(screen);
    return true;
}

static void take(struct screen *screen) {
    struct lab_top_view *view = screen->view;
    bool still = view->paused || lab_top_source_at_end(screen->source);
    if (lab_top_source_take(screen->source, still ? 0 : view->speed) && !screen->frozen)
        screen->changed = true;
    if (lab_top_source_at_end(screen->source) && !view->paused) {
        view->paused = true;
        screen->changed = true;
    }
    set_time(screen);
}

/* Its file is local and small; while nobody looks at the page, seldom. */
static void look_for_programs(struct screen *screen) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    bool shown_now = screen->view->page == LAB_TOP_PROGRAM;
    if (!screen->programs || screen->view->paused ||
        now_ns - screen->looked_ns < (shown_now ? LOOK_NS : SELDOM_NS))
        return;
    screen->programs->read(screen->programs->state, screen->view);
    screen->looked_ns = now_ns;
    screen->changed = true;
}

static int wait_ms(const struct screen *screen) {
    int64_t since_ns = lab_clock_now(lab_clock_system()) - screen->drawn_ns;
    if (screen->changed && since_ns < FRAME_NS) /* a drawing is due, but not yet */
        return (int)((FRAME_NS - since_ns) / LAB_NS_PER_MS) + 1;
    return screen->source->recording && !screen->view->paused ? 50 : 200;
}

static void loop(struct screen *screen) {
    struct lab_sampler *sampler = screen->source->sampler;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = sampler ? lab_sampler_fd(sampler) : -1, .events = POLLIN}};
    screen->changed = true;
    while (lab_stop_level() == 0) {
        take(screen);
        look_for_programs(screen);
        draw(screen);
        fds[0].revents = fds[1].revents = 0;
        poll(fds, 2, wait_ms(screen));
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) /* the terminal is gone */
            return;
        for (int key; (key = lab_top_terminal_key(screen->terminal)) >= 0;)
            if (key > 0 && !handle(screen, key))
                return;
    }
}

int lab_top_screen_run(const struct lab_console *console, struct lab_top_source *source,
                       struct lab_top_view *view, const struct lab_top_programs *programs,
                       bool *ret_write, struct lab_err *err) {
    struct screen screen = {.source = source, .view = view, .programs = programs};
    screen.looked_ns = INT64_MIN / 2;
    lab_stop_watch(NULL, NULL);
    if (lab_top_terminal_open(console->style.colour, &screen.terminal, err) < 0)
        return -1;
    lab_top_grid_init(&screen.grid);
    follow_pause(&screen);
    loop(&screen);
    lab_top_terminal_close(screen.terminal);
    lab_top_grid_release(&screen.grid);
    lab_top_history_close(screen.frozen);
    *ret_write = screen.write;
    return 0;
}
