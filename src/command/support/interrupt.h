/* support/interrupt.h: Ctrl-C asks for the end once; a second one ends the program as always. */
#ifndef LAB_COMMAND_SUPPORT_INTERRUPT_H
#define LAB_COMMAND_SUPPORT_INTERRUPT_H

#include <stdbool.h>

void lab_interrupt_watch(void);
bool lab_interrupt_seen(void);

#endif
