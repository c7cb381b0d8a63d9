/* break_even.h: from where on several devices are as fast as one; for gang.c alone. */
#ifndef LAB_ANALYSIS_SPEEDUP_BREAK_EVEN_H
#define LAB_ANALYSIS_SPEEDUP_BREAK_EVEN_H

#include "analysis/speedup/gang.h"

/* Fills `evens` from the gangs that are there. */
void lab_break_even_make(struct lab_gangs *gangs, struct lab_arena *arena);

#endif
