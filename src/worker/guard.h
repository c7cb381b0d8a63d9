/*
 * guard.h: a command that starts programs of the user's by itself, without a runner, so that none
 * of them outlives it. The process splits in two: the one that was started stays and watches, its
 * child goes on with the command. Whichever ends first, and however, the other one kills every
 * process that the programs have started.
 */
#pragma once

#include "base/err.h"

/*
 * Returns in the child alone, before any thread is started. Signals that end the one that stays are
 * passed on to the child; then it ends as the child did.
 */
int lab_guard_begin(struct lab_err *err);
