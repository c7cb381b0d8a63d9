/*
 * advise.h: what a study's claims say to do, as lines that can be pasted. There is a line for each
 * device that is faster when bound to a NUMA node, and none where that isn't certain; settings and
 * phases that pay off are claims of other analyses.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "base/value.h"
#include "doc/doc.h"
#include "model/claim.h"

struct lab_advice_line { /* a device, bound; or all of them, a process each */
    const char *device;  /* "GPU 3" */
    int numa_node;
    bool provisional; /* until its local node is tested, too: */
    int local_node;
    const char *cpus; /* of that node: "16-19"; NULL = unknown */
    /* PROGRAM stands for the user's own; a form that there isn't is NULL */
    const char *plain, *torchrun, *mpirun, *srun;
    const char *missing;   /* why there is none, a sentence without full stop; NULL = there are */
    struct lab_claim gain; /* "advise.bind": against the other NUMA nodes tested */
    double least, most;    /* of single models, where it is certain; else 0 */
    bool averaged;         /* some of these ran with several settings: it is their mean */
};

struct lab_advice_untested { /* may help here; no study measures it */
    const char *name;        /* "openmp" */
    const char *line, *reason;
};

struct lab_advice { /* from one study */
    const char *study;
    const char *answer; /* the first sentences */
    bool simulated;
    struct lab_advice_line *lines; /* a device each */
    int line_count;
    struct lab_advice_line all; /* of all lines, where there are several; else zeroed */
    const char
        *unbound; /* of devices without a line: "GPU 3: inconclusive: …"; "" or NULL = none */
    struct lab_claim *choices; /* settings and phases that pay off, devices to avoid */
    int choice_count;
    const char *command;      /* runs programs as the best phase did; NULL = none gains */
    struct lab_claim *tested; /* what decided all that, whatever its verdict: pooled first */
    int tested_count;         /* 0 = the study compares nothing that could be advised */
    struct lab_advice_untested *untested;
    int untested_count;
};

/* `before` NULL = the nodes are chosen by this study; else they are those of its lines, and this
 * study shows what they gain. */
struct lab_advice lab_advice_make(const struct lab_study_table *study,
                                  const struct lab_advice *before, struct lab_arena *arena);

/* What else applies to the devices of the study (advise_untested.c); lab_advice_make calls it. */
void lab_advice_add_untested(struct lab_advice *advice, const struct lab_study_table *study,
                             struct lab_arena *arena);

/* "0", "0 (until 1 is tested)" */
const char *lab_advice_node(const struct lab_advice_line *line, struct lab_arena *arena);

/* As text, from the study on; as data. */
void lab_advice_add(struct lab_doc *doc, const struct lab_advice *advice);
struct lab_value *lab_advice_value(const struct lab_advice *advice, struct lab_arena *arena);
