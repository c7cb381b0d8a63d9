/* support/interrupt.c */
#include "command/support/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void on_interrupt(int number) {
    (void)number;
    seen = 1;
}

void lab_interrupt_watch(void) {
    /* a shell's background job ignores SIGINT; that stays so */
    struct sigaction old,
        action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

bool lab_interrupt_seen(void) {
    return seen != 0;
}
