/*
 * report/page.h: a whole report. One document, written as a page, as Markdown and for programs;
 * next to it best_practices.md, and its answers for a terminal.
 *
 * The first screen has the question, the verdict, one chart, what to do, what was not tested. Then
 * comes the evidence, a section for each analysis: claim, chart, small table. Whatever there is one
 * of for each run lies in CSV files.
 */
#pragma once

#include "advise/advise.h"
#include "plot/plot.h"
#include "report/analysis.h"
#include "report/study/study.h"

struct lab_page_analysis {
    const char *name;                         /* "numa" */
    const char *summary;                      /* what it tells, in a line; may be NULL */
    const struct lab_analysis_result *result; /* NULL = it could not be done */
    const char *failure;                      /* then: why */
    bool skipped;                             /* that is lack of time */
    const struct lab_plot *plots;             /* one for each chart of the result */
    int plot_count;                           /* 0 = pictures weren't asked for */
    bool named;                               /* the study names it among its answers */
};

struct lab_page {
    const char *title;                  /* "numa_study" */
    const struct lab_study_info *study; /* NULL = of recordings */
    const char *question;               /* the study's; NULL = what the first analysis tells */
    const struct lab_advice *advice;    /* NULL = of recordings */
    const char *answer; /* the first sentence; NULL = that of the first analysis that has one */
    bool untested;      /* that sentence says why no run answers the study's question */
    bool elsewhere;     /* and that none on this machine will */
    const char *further,
        *tests; /* then: keys that test it, and what they test; NULL = none known */
    const struct lab_page_analysis *analyses; /* the one that says most first */
    int analysis_count;
    const char *source;  /* what was read, as the user would write it */
    const char *folder;  /* in which the pictures lie */
    const char *index;   /* the page's path, once it is written; NULL = it isn't */
    const char *config;  /* the study's, as YAML; NULL = unknown */
    const char *order;   /* of the runs: "random"; NULL = unknown */
    const char *version; /* of the gpulab that writes this */
    const char *missing; /* about pictures that aren't there; NULL = all are */
    /* claims that were withdrawn, and why; NULL-terminated, NULL = none was */
    const char *const *warnings;
    bool simulated; /* some figure is */
};

/* A page has at most 2 MB, whatever there is: what is left out is said, and where it is. */
#define LAB_PAGE_BYTES_MOST 2000000
/* report/index.html, report/report.md, and `gpulab report --json`. */
struct lab_doc *lab_page_doc(const struct lab_page *page, struct lab_arena *arena);

/* The charts with points, series and panels named as on the page, for files of their own. */
void lab_page_name_charts(const struct lab_page *page, struct lab_chart *charts, int count,
                          struct lab_arena *arena);

/* report/best_practices.md, one page: device, NUMA node, cores; lines to paste; settings that pay
 * off, each with its measured gain. */
void lab_page_practices(const struct lab_page *page, struct lab_str *out);

/* All rows of an analysis as CSV: its parts (number 0), then its tables by key. Returns the file's
 * name; NULL = there is none of that number. */
const char *lab_page_csv(const struct lab_page *page, int analysis, int number,
                         struct lab_arena *arena, struct lab_str *out);
/* runs.csv: a row for each run. */
void lab_page_runs_csv(const struct lab_page *page, struct lab_str *out);

/* The answers, that of the first analysis first, a paragraph each, on a terminal. Returns how many
 * there are. */
int lab_page_add_answers(const struct lab_page *page, struct lab_doc *doc);
