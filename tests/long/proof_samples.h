/* proof_samples.h: what a sampler would have seen of a simulated run, as a recording in memory. */
#pragma once

#include "device/device.h"
#include "model/recording.h"

/* All since the device was opened; lives in the arena. */
const struct lab_recording *proof_samples_read(struct lab_device *device, struct lab_arena *arena);
