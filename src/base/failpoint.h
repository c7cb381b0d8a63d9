/*
 * failpoint.h: named places where a test can make the program die, as a power cut or SIGKILL would,
 * so that "nothing is lost" is shown for each place and not hoped for; and some where it can make a
 * part of it fail, as a device would.
 *
 *     GPULAB_FAILPOINT=after-commit        dies at the first pass of that place
 *     GPULAB_FAILPOINT=after-commit:3      at the third
 *
 * Without the variable a place costs one comparison.
 */
#pragma once

#include "base/err.h"

/* Ends the process by SIGKILL if the environment names this place and it is its turn. */
void lab_failpoint(const char *name);

/* Fails then, instead of ending the process. */
int lab_failpoint_error(const char *name, struct lab_err *err);
