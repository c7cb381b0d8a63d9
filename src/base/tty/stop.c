/* stop.c: Ctrl-C once lets runs finish, twice ends them. */
#include "base/tty/stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t level, first_signal;
static const char *replies[3];
static size_t lengths[3];

static void on_signal(int number) {
    int saved = errno;
    if (!first_signal)
        first_signal = number;
    if (number != SIGINT)
        level = 2;
    else if (level < 2)
        level = level + 1;
    else
        signal(SIGINT, SIG_DFL);
    /* stdio may not be used here; a terminal that doesn't take it is no matter */
    if (number == SIGINT && lengths[level] &&
        write(STDERR_FILENO, replies[level], lengths[level]) < 0)
        lengths[level] = 0;
    errno = saved;
}

static void watch(int number) {
    struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    /* a shell's background job ignores SIGINT, nohup ignores SIGHUP; that stays so */
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void lab_stop_watch(const char *first, const char *second) {
    replies[1] = first;
    replies[2] = second;
    for (int i = 1; i <= 2; i++)
        lengths[i] = replies[i] ? strlen(replies[i]) : 0;
    watch(SIGINT);
    watch(SIGTERM);
    watch(SIGHUP);
}

int lab_stop_level(void) {
    return level;
}

int lab_stop_signal(void) {
    return first_signal;
}
