/*
 * probe_demo_machine.h: what the demonstration's GPUs are plugged into: this machine, or where that
 * has a single NUMA node, this machine as if half of its cores were on a second one, so that
 * placement is seen at work.
 */
#pragma once

#include "base/mem.h"
#include "model/machine.h"

/* `machine` itself without the demonstration, with several nodes, or with a single CPU; else a copy
 * in the arena that refers to it. */
const struct lab_machine *lab_probe_demo_machine(const struct lab_machine *machine,
                                                 struct lab_arena *arena);
