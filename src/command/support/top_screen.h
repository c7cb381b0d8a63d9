/* support/top_screen.h: `top` at a terminal: draws, reads keys and does what they ask, until the user
 * leaves. */
#ifndef LAB_COMMAND_SUPPORT_TOP_SCREEN_H
#define LAB_COMMAND_SUPPORT_TOP_SCREEN_H

#include "command/support/top_source.h"

/* `view` says how it begins. `ret_write`: the user asked for a summary and a picture. */
int lab_top_screen_run(const struct lab_command_call *call, struct lab_top_source *source,
                       struct lab_top_view *view, bool *ret_write, struct lab_err *err);

#endif
