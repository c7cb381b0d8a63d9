/*
 * record_pages.h: runs a program and reads, while it runs, on which NUMA nodes its memory and that
 * of its children lies.
 */
#pragma once

#include "base/err.h"
#include "model/machine.h"

#include <stdint.h>

/*
 * Passes the program's exit status on, as a shell does (126, 127: it can't be started, with an
 * error). `ret_bytes` has a number for each NUMA node of the machine, from the reading that found
 * most; all 0 = none could be read. Signals that are sent to us are handed on.
 */
int lab_record_pages_run(const char *const *argv, const struct lab_machine *machine,
                         int64_t *ret_bytes, struct lab_err *err);
