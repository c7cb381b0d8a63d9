/*
 * break_even.h: at how many samples the compile time breaks even. For compile.c.
 */
#pragma once

#include "model/claim.h"

/* cost / saved over `n` blocks, in samples, with Fieller's interval; none where saving isn't
 * certain. */
struct lab_claim compile_break_even(const double *costs_s, const double *saved_s, int n);
