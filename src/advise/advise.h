/*
 * advise.h: from what `analyze recommend` found to lines that can be pasted. A line whose gain
 * was measured carries it; every other says that it wasn't. Lines that start PROGRAM name its GPU,
 * cores and memory, whichever of them the gain belongs to (advise_place.h).
 */
#ifndef LAB_ADVISE_ADVISE_H
#define LAB_ADVISE_ADVISE_H

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "base/value.h"
#include "doc/doc.h"
#include "report/report.h"

enum lab_advice_state {
    LAB_ADVICE_WORTH,        /* measured: faster */
    LAB_ADVICE_NOT_WORTH,    /* measured: can't be told from no gain */
    LAB_ADVICE_UNDECIDED,    /* measured once: no verdict */
    LAB_ADVICE_SAME_PLACE,   /* the measured placement by another tool's words */
    LAB_ADVICE_NOT_MEASURED, /* may help; nobody has looked here */
};

struct lab_advice_line {
    const char *line;    /* to paste; PROGRAM stands for the user's own; NULL = `no_line` */
    const char *tool;    /* "numactl" */
    const char *choice;  /* "node", "device", "batch", "compile"; NULL = none that was measured */
    const char *setting; /* "batch_size=16": PROGRAM's own, which no line can hold; NULL = none */
    const char *why;     /* "node 1 rather than node 0" */
    double gain, low, high; /* as shares; NaN = not measured */
    enum lab_advice_state state;
};

struct lab_advice {            /* for one model */
    const char *model, *study; /* study: its folder's name */
    const char *best;          /* "device 3 from node 1, compiled"; "device 3 from any node" */
    const char *answer;        /* recommend's sentence */
    const char *no_line;       /* why none starts PROGRAM there; NULL = they do */
    bool simulated;
    struct lab_advice_line *lines;
    int count;
    const char *next; /* a `gpulab run …` that would tell more; NULL = none is needed */
};

/* Advice from a part of recommend's result on that study. Without a record of its machine, lines
 * that name single cores are left out. */
struct lab_advice lab_advice_make(const struct lab_analysis_result *result, int part,
                                  const struct lab_study_table *study, struct lab_arena *arena);

/* One sentence over all of them: what is worth most, or that nothing is and how well that is
 * known. */
const char *lab_advice_answer(const struct lab_advice *list, int count, struct lab_arena *arena);

/* As text, from the studies on. What wasn't measured is said once, for the model that gains
 * most. */
void lab_advice_add(struct lab_doc *doc, const struct lab_advice *list, int count);
struct lab_value *lab_advice_value(const struct lab_advice *advice, struct lab_arena *arena);

#endif
