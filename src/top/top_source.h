/*
 * top_source.h: where `top` gets its samples: from this machine through the sampler, or from a
 * recording at any speed. Whoever shows them asks for nothing but a history and a time.
 */
#pragma once

#include "machine/machine.h"
#include "probe/sampler.h"
#include "top/top.h"

struct lab_top_source {
    struct lab_machine *machine; /* NULL for a recording: it was another */
    struct lab_sampler *sampler;
    struct lab_recording *recording; /* NULL = live */
    struct lab_top_history *history;
    const char *name; /* the host's, or the recording's file */
    const char *
        *notes; /* what can't be seen, and why; NULL-terminated; changes when GPUs come late */
    struct lab_arena *arena;
    bool awaits; /* the start of the GPUs' driver */
    int64_t interval_ns;
    /* of a recording */
    int64_t begin_ns, end_ns, position_ns;
    int64_t moved_ns; /* when the position was last moved, by the system's clock */
};

/* Names and notes live in the arena. A screen doesn't wait for a driver that is slow to start: its
 * GPUs come when they do. What is shown once does wait. */
int lab_top_source_live(const char *selector, struct lab_arena *arena, int64_t interval_ns,
                        bool screen, struct lab_top_source *ret_source, struct lab_err *err);
int lab_top_source_recording(struct lab_arena *arena, const char *path,
                             struct lab_top_source *ret_source, struct lab_err *err);
void lab_top_source_close(struct lab_top_source *source);

/* Takes in what is new; false = nothing was. Of a recording: what `speed` times the time since the
 * last call brings; 0 = it stands still. */
bool lab_top_source_take(struct lab_top_source *source, double speed);

/* Waits until all has been read twice, so that rates are known, but not for long. */
void lab_top_source_settle(struct lab_top_source *source);

void lab_top_source_seek(struct lab_top_source *source, int64_t time_ns);
bool lab_top_source_at_end(const struct lab_top_source *source);

/* The time that it stands at, and what makes wall time of it. */
int64_t lab_top_source_now(const struct lab_top_source *source);
int64_t lab_top_source_wall_offset(const struct lab_top_source *source);

/* What a summary is made of: of a recording, the whole of it. Closed with lab_top_history_close
 * unless it is the source's own. */
struct lab_top_history *lab_top_source_whole(struct lab_top_source *source);
