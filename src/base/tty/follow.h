/*
 * follow.h: text that is drawn again and again at the same place of a terminal, until what it shows
 * has ended or the user leaves: q or Ctrl-C. Where stdout is no terminal nothing is drawn over and
 * no key is read; the caller prints lines instead.
 */
#pragma once

#include "base/tty/console.h"

#include <termios.h>

struct lab_follow {
    const struct lab_console *console;
    bool in_place; /* the terminal can be drawn over */
    bool reads_keys;
    struct termios saved; /* the terminal as it was, while keys are read */
    int lines;            /* drawn, above the cursor */
};

/* From here on Ctrl-C asks for the end. The terminal is given back by lab_follow_end. */
void lab_follow_begin(struct lab_follow *follow, const struct lab_console *console);
void lab_follow_end(struct lab_follow *follow);

/* What the terminal can show now: it may have been resized. */
struct lab_style lab_follow_style(const struct lab_follow *follow);

/* Replaces what was drawn before. What the terminal has no lines for is cut off. */
void lab_follow_draw(struct lab_follow *follow, const struct lab_str *text);

/* false: the user has left, or nobody reads the output any more. */
bool lab_follow_wait(struct lab_follow *follow, double seconds);

/* Appends as many whole lines of the text as fit into the rows; "…" follows where there are more.
 * A line that is wider than the terminal fills several rows. Returns how many are filled. */
int lab_follow_cut(const char *text, int rows, int columns, struct lab_str *out);
