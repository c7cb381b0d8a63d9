/* turn_process.h: `gpulab compare -- A -- B`: a turn as a process, and GPUs watched. */
#pragma once

#include "command/command.h"
#include "command/compare/turns.h"
#include "doc/doc.h"

struct lab_turn_options {
    int64_t runs, warmup;
    double budget_s;
};

/* The two commands in `call->rest`, run; what came of each run is for programs, what the GPUs did
 * for people, too. `ret_turns` is the caller's to release. 1 = the user asked to stop. */
int lab_turn_process_run(const struct lab_command_call *call,
                         const struct lab_turn_options *options, struct lab_turns *ret_turns,
                         struct lab_err *err);

/* Clocks, power and temperature, by GPU and command, as a table; each run as data. */
void lab_turn_process_add(struct lab_doc *doc, const struct lab_turns *turns);
