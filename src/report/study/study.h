/*
 * study.h: studies as people read them: the first report of one, its status while it runs, the
 * list of them. What is added to a document is for a terminal.
 */
#pragma once

#include "doc/doc.h"
#include "model/study_info.h"
#include "report/report.h"

struct lab_page; /* report/page.h */

/*
 * The end of `gpulab run`, in at most 30 lines of 100 columns: the verdict of the page's first
 * analysis, one table by the axes that vary, warnings and failures a line each, where the report
 * is, what to type next. `page` NULL = it wasn't analysed. `verbose`: every row, every analysis's
 * sentence, time, machine and folder.
 */
void lab_report_add_study(struct lab_doc *doc, const struct lab_study_info *study,
                          const struct lab_page *page, struct lab_style style, bool verbose);
/* report/report.md without analyses: all runs, no colour, tables in Markdown. */
void lab_report_study_markdown(const struct lab_study_info *study, struct lab_str *out);

/* Appends the step and the last values of a program's main metrics: "step 250, loss 0.03". */
void lab_report_add_program(const struct lab_program *program, struct lab_str *out);

/* `gpulab status`: bar, counts, each run under way with its phase, iterations and time left. */
void lab_report_add_status(struct lab_doc *doc, const struct lab_study_info *study);

/* `gpulab list`: a line each. */
void lab_report_add_studies(struct lab_doc *doc, const struct lab_study_info *studies, int count);

/* "312 samples/s ± 1.2 %" of a run that is done; "done" for one that counts nothing, or did one
 * thing once. */
void lab_report_rate(const struct lab_run *run, struct lab_str *out);

/* --- hints --- */

/*
 * The text of a failed run's hint: appends a sentence or two; false where there is nothing to say.
 * `options`: the run's, since a hint names no key that its workload doesn't have; NULL = unknown.
 * `error`: the run's, which begins with the rank that failed, whose log is named; NULL = unknown.
 */
bool lab_report_hint(enum lab_hint_id id, const char *options, const char *error,
                     struct lab_str *out);

/* --- the bar of `gpulab run` --- */

struct lab_report_bar {
    int done, failed, total;             /* runs; done includes failed */
    double fraction;                     /* of the whole study, current runs' progress included */
    const char *run;                     /* what runs: "gpu0_numa1_vit32x6x512", or "2 runs" */
    const char *phase;                   /* may be "" */
    int64_t iterations, iteration_total; /* of the phase; total 0 = unknown */
    double elapsed_s, left_s;            /* left NaN = unknown */
};

/* One line of at most columns − 1:
 * " 3/48 ▕███▏    ▏ gpu0_numa1_vit32x6x512 measuring 120/200 · 2 min left".
 * Where it is too long, the run's name is cut before figures go. */
void lab_report_bar(const struct lab_report_bar *bar, struct lab_style style, struct lab_str *out);
