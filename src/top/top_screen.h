/* top_screen.h: `top` at a terminal: draws, reads keys and does what they ask, until the user
 * leaves. */
#pragma once

#include "base/tty/console.h"
#include "top/top_source.h"

/* Looks for programs that run: sets the view's, at most once a second. NULL = nobody looks. */
struct lab_top_programs {
    void (*read)(void *state, struct lab_top_view *view);
    void *state;
};

/* `view` says how it begins. `ret_write`: the user asked for a summary and a picture. */
int lab_top_screen_run(const struct lab_console *console, struct lab_top_source *source,
                       struct lab_top_view *view, const struct lab_top_programs *programs,
                       bool *ret_write, struct lab_err *err);
