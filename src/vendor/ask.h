/*
 * vendor/ask.h: questions to a driver that may never answer: asked in a thread of their own, and
 * waited for with a limit.
 */
#pragma once

#include "base/err.h"

/*
 * Calls `question` and waits until it returns: for 120 s, or GPULAB_DRIVER_LIMIT seconds. After 5 s
 * a warning says which call is waited for, and another one that it is given up. -1: it has not
 * returned, and `state` stays in use for ever. From then on every question fails at once, until
 * that one returns.
 */
int lab_ask(void (*question)(void *state), void *state, struct lab_err *err);

/* For a question: the call that it makes next. Outside of one it does nothing. */
void lab_ask_calling(const char *function);
