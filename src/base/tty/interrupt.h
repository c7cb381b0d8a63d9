/* interrupt.h: Ctrl-C asks for the end once; a second one ends the program as always. */
#pragma once

#include <stdbool.h>

/* `reply` is written to stderr as soon as it comes, since the end may take a step's time; it must
 * last, and may be NULL. */
void lab_interrupt_watch(const char *reply);
bool lab_interrupt_seen(void);

/* While held, the second Ctrl-C is only noted too: whoever holds it has a program to end first. */
void lab_interrupt_hold(bool on);
bool lab_interrupt_seen_twice(void);
