/* interrupt.c: Ctrl-C as a flag. */
#include "base/tty/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t seen, held;
static const char *reply_text;
static size_t reply_length;

static void on_interrupt(int number) {
    int saved = errno;
    if (seen && !held) {
        signal(number, SIG_DFL);
        raise(number); /* comes when this handler returns */
        return;
    }
    seen = seen ? 2 : 1;
    /* stdio may not be used here; a terminal that doesn't take it is no matter */
    if (reply_length && write(STDERR_FILENO, reply_text, reply_length) < 0)
        reply_length = 0;
    errno = saved;
}

void lab_interrupt_watch(const char *reply) {
    reply_text = reply;
    reply_length = reply ? strlen(reply) : 0;
    /* a shell's background job ignores SIGINT; that stays so */
    struct sigaction old, action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

bool lab_interrupt_seen(void) {
    return seen != 0;
}

void lab_interrupt_hold(bool on) {
    held = on;
}

bool lab_interrupt_seen_twice(void) {
    return seen > 1;
}
