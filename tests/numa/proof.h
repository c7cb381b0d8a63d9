/*
 * proof.h: what the parts of the proof share. Results are TAP: one line for each claim, and behind
 * a failed one why it failed.
 */
#pragma once

#include "base/err.h"
#include "model/machine.h"

#include <stdbool.h>

/* Reports a claim. The error, if it has a text, explains a failure and is cleared. */
void claim(bool holds, struct lab_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The call failed with that code and its text holds `part`. */
bool failed_with(int result, const struct lab_err *err, enum lab_err_code code, const char *part);

/* Whether every CPU in `inner` is in `outer`, and there is one. */
bool cpus_within(const struct lab_cpus *inner, const struct lab_cpus *outer);

void prove_device(const struct lab_machine *machine);
void prove_bench(const struct lab_machine *machine);
void prove_study(const struct lab_machine *machine);
void prove_monitor(const struct lab_machine *machine);
