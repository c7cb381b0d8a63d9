/*
 * machine_json.h: machine.json, which a study keeps of where it ran. Written and read here, so that
 * one knows the other's keys; `gpulab devices --json` shows the same.
 */
#pragma once

#include "base/mem.h"
#include "base/value.h"
#include "model/machine.h"

/* The whole machine as a map in the arena. */
struct lab_value *lab_machine_json_value(const struct lab_machine *machine,
                                         struct lab_arena *arena);

/* The machine from the text, in the arena; NULL where it says nothing of nodes. Cores and caches
 * aren't kept one by one there, and are empty. */
const struct lab_machine *lab_machine_json_read(const char *json, struct lab_arena *arena);

/* Whether the text says that the machine is simulated. */
bool lab_machine_json_is_simulated(const char *json, struct lab_arena *arena);

struct lab_machine_words {
    /* "node7: AMD EPYC 7763, 64 cores, 2 NUMA nodes, 4 × NVIDIA L40S", as much of it as the text
     * has; in the arena */
    const char *line;
    int gpu_count, node_count; /* 0 = none, or unknown */
};
struct lab_machine_words lab_machine_json_words(const char *json, struct lab_arena *arena);
