/*
 * gang.h: one device against several at the same work: how much faster, by what law, and from where
 * on it pays. For speedup.c alone.
 */
#ifndef LAB_ANALYSIS_SPEEDUP_GANG_H
#define LAB_ANALYSIS_SPEEDUP_GANG_H

#include "analysis/analysis_study.h"
#include "stats/fit.h"

#define LAB_SPEEDUP_BENEFICIAL 1.10
#define LAB_SPEEDUP_MARGINAL   0.95

enum lab_speedup_grade {
    LAB_SPEEDUP_UNKNOWN,   /* there is no interval, or nothing to compare with */
    LAB_SPEEDUP_APART,     /* each device trains a model of its own: no training is faster */
    LAB_SPEEDUP_AMBIGUOUS, /* the interval straddles a boundary */
    LAB_SPEEDUP_STAY,      /* below 0.95 */
    LAB_SPEEDUP_MAYBE,     /* 0.95 to 1.10 */
    LAB_SPEEDUP_PAYS,      /* 1.10 and above */
};
const char *lab_speedup_grade_name(enum lab_speedup_grade grade); /* "beneficial", "stay single" */
/* By the ratio alone: never APART. */
enum lab_speedup_grade lab_speedup_grade(const struct lab_study_ratio *ratio);

struct lab_gang {
    int work;                                   /* which, of lab_gangs.works */
    int size;                                   /* devices */
    const char *gpus;                           /* "0+2" */
    const struct lab_study_point *point, *base; /* base: the fastest single member; NULL = none */
    struct lab_study_ratio ratio;
    enum lab_speedup_grade grade;
    double communication; /* share of an iteration's time; NaN = unknown */
};

struct lab_gang_work { /* everything but the devices is the same */
    const char *name;
    const struct lab_study_run *example;
    int sizes;          /* that were run, one device among them */
    struct lab_fit usl; /* of throughput over devices; fewer than 3 sizes: LAB_FIT_TOO_FEW */
    struct lab_fit_derived peak; /* devices beyond which more are slower; NaN = none */
    const struct lab_gang *best; /* to be used: the smallest of those that pay most; NULL = none */
};

enum lab_even_axis { LAB_EVEN_PARAMETERS, LAB_EVEN_FLOPS, LAB_EVEN_BATCH };

struct lab_break_even { /* where so many devices are as fast as one */
    enum lab_even_axis axis;
    int size;
    const char *where; /* "batch 128"; "" = everywhere */
    double at, low,
        high; /* `at` NaN: no crossing from `from` / 10 to `until` × 10; ends may be ∞ */
    double from, until; /* that was measured */
    bool above;         /* it pays above, not below */
    bool faster;        /* without a crossing: the gang is faster all over, or nowhere */
};

struct lab_gangs {
    struct lab_gang_work *works;
    int work_count;
    struct lab_gang *items;
    int count;
    struct lab_break_even *break_even;
    int even_count;
};

void lab_gangs_make(const struct lab_study_table *study, struct lab_arena *arena,
                    struct lab_gangs *ret_gangs);

/* "break-even is near 9.0 M parameters [7.1 M, 12 M] at batch 128" */
/* "18.2 M [17.9 M, 18.6 M]" */
const char *lab_break_even_figure(const struct lab_break_even *even, struct lab_arena *arena);
const char *lab_break_even_words(const struct lab_break_even *even, struct lab_arena *arena);
/* Whether other devices, as many, did the same: only then it matters which ones these are. */
bool lab_gang_has_rival(const struct lab_gangs *gangs, const struct lab_gang *gang);
/* "Two devices are 0.74× [0.72, 0.76] one for mlp_medium: stay on one" */
const char *lab_gang_words(const struct lab_gangs *gangs, const struct lab_gang *gang,
                           struct lab_arena *arena);
const char *lab_gangs_answer(const struct lab_gangs *gangs, struct lab_arena *arena);
int lab_gangs_count(const struct lab_gangs *gangs, enum lab_speedup_grade grade);

#endif
