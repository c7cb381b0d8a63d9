/*
 * stop.h: Ctrl-C for work that comes in pieces: once asks to end after what is under way, twice
 * to end it now, a third time ends the program. TERM and HUP ask to end now.
 */
#pragma once

/* `first` and `second` are written to stderr at once, as they are; both must last, and may be
 * NULL. */
void lab_stop_watch(const char *first, const char *second);

int lab_stop_level(void);  /* 0, 1 = after what is under way, 2 = now */
int lab_stop_signal(void); /* which one asked first; 0 = none */
