/*
 * console.h: how results and messages reach the user. Results go to `out`, in the style that it can
 * show; messages and the status line go to stderr and never mix.
 */
#pragma once

#include "base/tty/text.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdio.h>

struct lab_console {
    FILE *out;
    struct lab_style style; /* what `out` can show */
    bool out_is_terminal, err_is_terminal;
    bool json;  /* results as JSON */
    bool quiet; /* no progress, no hints */
};

/* Whether a status line can be drawn, and is wanted. */
bool lab_console_draws(const struct lab_console *console);

/* What a terminal or file can show, from the environment and the terminal's size. */
struct lab_style lab_console_style(bool is_terminal, int fd);

/* Writes bytes as they are. A failure is remembered until lab_console_finish. */
void lab_console_write(const struct lab_console *console, const char *bytes, size_t length);
/* Writes text in the console's style. */
void lab_console_print(const struct lab_console *console, const struct lab_str *text);
/* Writes an object and a newline; "schema" comes first. On one line: for streams. */
void lab_console_print_json_line(const struct lab_console *console, const struct lab_value *value);
void lab_console_print_json(const struct lab_console *console, const struct lab_value *value);
/* Flushes stdout: 0, or errno of the first write that failed since the program began. */
int lab_console_finish(void);
/* One line for the user beside the result, on stderr; "gpulab: " goes before it. */
void lab_console_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same without "gpulab: ", for lines that tell how the work goes on. */
void lab_console_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A status line at the bottom of the terminal (stderr) that is drawn over itself. Anything else
 * that goes to stderr through this layer takes it away first. `text` may be NULL: takes it away.
 */
void lab_console_status_line(const char *text);
