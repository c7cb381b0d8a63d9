/* report_internal.h: between the parts of report_build: what was found, before it is written. */
#pragma once

#include "report/report_build.h"

#define REPORT_ANALYSES_MOST 64

struct report_file { /* beside the page */
    const char *name, *text;
};

struct report_found { /* analyses, in the order in which they are shown */
    struct lab_page_analysis items[REPORT_ANALYSES_MOST];
    int count;
    const char *answer; /* where no analysis has one of its own; NULL = the first that has */
    bool untested;      /* it says why no run answers the study's question */
    bool elsewhere;     /* and that none on this machine will */
    const char *further, *tests; /* then: as a page has them */
    struct lab_advice *advice;   /* NULL = there is no study */
    int64_t deadline_ns;         /* CLOCK_MONOTONIC; 0 = none */
    struct report_file *files;
    int file_count;
    struct lab_arena *arena;
};

/* Lets an analysis work and adds what it says, or why it can't. */
void report_analyse(struct report_found *found, const struct lab_analysis *analysis,
                    const struct lab_analysis_input *input);

/* A sentence from the rates of the runs alone; NULL = they have none, or of different kinds.
 * `bounds`: with which models are transfer-bound, by their values, where points have one run. */
struct lab_study_table;
const char *report_runs_answer(const struct lab_study_table *study, bool bounds,
                               struct lab_arena *arena);

/* Of a study with phases: what each run chose and how long it took, as JSON; the analyses of
 * variance and, for each device, of correlation as text. Nothing of any other study. */
void report_phase_files(struct report_found *found, const struct lab_study_table *study);

/* Of a study that trains models: its figures as JSON, and a comparison of one device with several.
 * Nothing of any other study. */
void report_training_files(struct report_found *found, const struct lab_study_table *study);
/* The latter of one model, where there is anything to compare. */
void report_training_comparison(struct report_found *found, const struct lab_study_table *study,
                                const char *model, double parameters);
/* There is room for it; keeps a copy of the text. */
struct lab_str;
void report_add_file(struct report_found *found, const char *name, const struct lab_str *text);

/* Draws and writes everything into the folder. `made->page` is complete but for pictures. */
int report_write(struct report_found *found, const struct lab_report_request *request,
                 struct lab_report_made *made, struct lab_err *err);
