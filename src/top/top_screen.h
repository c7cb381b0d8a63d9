/* top_screen.h: `top` at a terminal: draws, reads keys and does what they ask, until the user
 * leaves. */
#pragma once

#include "base/tty/console.h"
#include "top/top_source.h"

/* `view` says how it begins. `ret_write`: the user asked for a summary and a picture. */
int lab_top_screen_run(const struct lab_console *console, struct lab_top_source *source,
                       struct lab_top_view *view, bool *ret_write, struct lab_err *err);
