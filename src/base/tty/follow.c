/* follow.c: text that is drawn again at the same place of a terminal, until a key or Ctrl-C. */
#include "base/tty/follow.h"

#include "base/clock.h"
#include "base/tty/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ROWS_UNKNOWN 24

/* --- the terminal --- */

/* Keys one by one and unseen. Only in the foreground: elsewhere the terminal isn't ours to
 * change. */
static void read_keys(struct lab_follow *follow) {
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &follow->saved) < 0)
        return;
    struct termios keys = follow->saved;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    follow->reads_keys = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

void lab_follow_begin(struct lab_follow *follow, const struct lab_console *console) {
    const char *term = getenv("TERM");
    *follow = (struct lab_follow){
        .console = console,
        .in_place = console->out_is_terminal && !console->json && term && *term &&
                    !lab_str_equal(term, "dumb"),
    };
    lab_interrupt_watch(NULL);
    if (follow->in_place)
        read_keys(follow);
}

void lab_follow_end(struct lab_follow *follow) {
    if (follow->reads_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &follow->saved);
    follow->reads_keys = false;
}

struct lab_style lab_follow_style(const struct lab_follow *follow) {
    return follow->in_place ? lab_console_style(true, STDOUT_FILENO) : follow->console->style;
}

/* --- drawing --- */

/* Rows of the terminal that a line fills: paths and commands aren't broken, so it breaks them. */
static int rows_of(const char *line, size_t length, int columns) {
    LAB_AUTO(str, text);
    lab_str_add_bytes(&text, line, length);
    int width = lab_text_columns(text.text);
    return width > columns ? (width + columns - 1) / columns : 1;
}

int lab_follow_cut(const char *text, int rows, int columns, struct lab_str *out) {
    int count = 0;
    while (*text && count < rows) {
        size_t length = strcspn(text, "\n");
        bool more = text[length] && text[length + 1];
        int needed = rows_of(text, length, columns);
        bool cut = count + needed + more > rows;
        if (cut)
            lab_str_add(out, "…");
        else
            lab_str_add_bytes(out, text, length);
        lab_str_add(out, "\n");
        if (cut)
            return count + 1;
        text += length + (text[length] == '\n');
        count += needed;
    }
    return count;
}

static int terminal_rows(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 ? size.ws_row
                                                                           : ROWS_UNKNOWN;
}

void lab_follow_draw(struct lab_follow *follow, const struct lab_str *text) {
    LAB_AUTO(str, screen);
    LAB_AUTO(str, shown);
    /* a line above the cursor's own is the furthest that it can go back to */
    int columns = lab_follow_style(follow).columns;
    int lines = lab_follow_cut(text->text, terminal_rows() - 1, columns, &shown);
    if (follow->lines)
        lab_str_printf(&screen, "\r\033[%dA", follow->lines);
    lab_str_add(&screen, "\033[J");
    follow->lines = lines;
    /* both are flushed at once, so that nobody sees the screen empty */
    lab_console_write(follow->console, screen.text, screen.length);
    lab_console_print(follow->console, &shown);
    fflush(follow->console->out);
}

/* --- waiting --- */

/* A key that came. The end of the keys' stream is no key: the terminal is gone. An interrupted read
 * is no end. */
static bool key_leaves(struct lab_follow *follow) {
    char keys[64];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
        follow->reads_keys = false;
    for (ssize_t i = 0; i < count; i++)
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 4 /* Ctrl-D */)
            return true;
    return false;
}

bool lab_follow_wait(struct lab_follow *follow, double seconds) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t until_ns = lab_clock_now(clock) + (int64_t)(seconds * (double)LAB_NS_PER_S);
    fflush(follow->console->out);
    for (;;) {
        if (lab_interrupt_seen() || ferror(follow->console->out))
            return false;
        int64_t left_ns = until_ns - lab_clock_now(clock);
        if (left_ns <= 0)
            return true;
        struct pollfd key = {.fd = follow->reads_keys ? STDIN_FILENO : -1, .events = POLLIN};
        /* not longer than this at once: Ctrl-C may come just before poll */
        int64_t wait_ms = left_ns / LAB_NS_PER_MS + 1;
        if (poll(&key, 1, wait_ms < 200 ? (int)wait_ms : 200) > 0 && key_leaves(follow))
            return false;
    }
}
