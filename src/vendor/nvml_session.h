/*
 * vendor/nvml_session.h: NVML's life while several threads use it. A GPU that was lost is seen
 * again only after NVML was shut down and initialised anew, which makes all handles worthless;
 * nobody may be inside a call meanwhile. So whoever uses handles is inside a session:
 *
 *     if (lab_nvml_enter(&generation, err)) …          handles of another generation are worthless
 *     … calls …
 *     lab_nvml_leave();
 *
 * and whoever finds a GPU lost may ask, outside, for lab_nvml_restart. No lock is held while the
 * driver is called: a call that never returns keeps NVML from being restarted, and nothing else.
 */
#pragma once

#include "vendor/nvml.h"

#include <stdint.h>

/*
 * What must be given up before NVML is shut down. `release` is called from any thread while nobody
 * is inside, and not again before its owner was inside. The owner keeps the struct in place.
 */
struct lab_nvml_holder {
    void (*release)(void *state);
    void *state;
    struct lab_nvml_holder *next; /* ours */
};

void lab_nvml_hold(struct lab_nvml_holder *holder);
/* false = a restart that doesn't come to its end is using it: it must stay in place for ever */
bool lab_nvml_unhold(struct lab_nvml_holder *holder);

/*
 * Opens NVML if need be. -1 = it can't be used now, and why: it isn't there, it is being restarted
 * and that takes longer than a moment (waits for it up to a second), or the last restart failed;
 * the generation is told then too, for lab_nvml_restart. 0 = it was never started.
 * LAB_ERR_UNSUPPORTED = it won't come.
 */
int lab_nvml_enter(unsigned *ret_generation, struct lab_err *err);
void lab_nvml_leave(void);

/*
 * Shuts NVML down and initialises it, unless that was done since `generation` was current. Not
 * while the caller is inside. -1 = not now, and why: others are inside and don't come out (waits
 * 0.1 s), or it was done less than a second ago. A restart is a pause for all GPUs, so where it
 * `disturbs` others that work, each one that follows soon waits twice as long as the last, up to a
 * minute. `now_ns` is of any clock, but always the same.
 */
int lab_nvml_restart(unsigned generation, int64_t now_ns, bool disturbs, struct lab_err *err);
