/*
 * analysis/latency/span.h: stretches of time as sets: what ran at all, however many things at once.
 */
#pragma once

#include "model/iteration.h"

#include <stddef.h>
#include <stdint.h>

/* The time they take, which for joined ones is the time in which any of them runs. */
int64_t lab_spans_busy_ns(const struct lab_span *spans, size_t count);

/* The time that two joined sets have in common. */
int64_t lab_spans_common_ns(const struct lab_span *a, size_t a_count, const struct lab_span *b,
                            size_t b_count);
