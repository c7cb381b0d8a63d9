/*
 * record_memory.h: samples as they come, kept as a recording in memory: for what is analysed at
 * once and never written.
 */
#pragma once

#include "base/mem.h"
#include "model/recording.h"

struct lab_record_memory { /* {.arena = …, .recording.interval_ns = …} = empty */
    struct lab_arena *arena;
    struct lab_recording recording;
    int *tracks; /* by the sampler's numbers; -1 = not told */
    int told;
};

/* Keeps all but events. */
struct lab_sink_samples lab_record_memory_sink(struct lab_record_memory *memory);
