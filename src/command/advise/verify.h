/* verify.h: what advice gains, measured again. */
#pragma once

#include "advise/advise.h"
#include "command/command.h"

/* Runs the points of the study that the advice rests on, 5 runs each, in random order within each
 * block, and prints the gains as claims. The study's command line has to mean the same here. */
int lab_command_verify(const struct lab_command_call *call, const struct lab_machine *machine,
                       const struct lab_study_table *study, const struct lab_advice *before,
                       int *ret_status, struct lab_err *err);
