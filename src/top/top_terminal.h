/*
 * top_terminal.h: a grid on a real terminal, and its keys; the only user of ncurses. One at a time.
 *
 * Whatever ends the program gives the terminal back: lab_top_terminal_close, or, where a fault ends
 * it, a handler that does the same with nothing but system calls.
 */
#pragma once

#include "top/top.h"

struct lab_top_terminal;

/*
 * Takes over stdin and stdout. INT, TERM and HUP must be handled by the caller before this, since
 * ncurses would otherwise end the program by itself. LAB_ERR_USER for an unknown TERM.
 */
int lab_top_terminal_open(bool colour, struct lab_top_terminal **ret_terminal, struct lab_err *err);
void lab_top_terminal_close(struct lab_top_terminal *terminal); /* accepts NULL */

void lab_top_terminal_size(struct lab_top_terminal *terminal, int *ret_columns, int *ret_rows);

/* Only cells that differ from what is there are written. */
void lab_top_terminal_paint(struct lab_top_terminal *terminal, const struct lab_top_grid *grid);

/* The next key as lab_top_key takes it; 0 = something happened that is none; -1 = nothing is left.
 * Never waits. */
int lab_top_terminal_key(struct lab_top_terminal *terminal);
