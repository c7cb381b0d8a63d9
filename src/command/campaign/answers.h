/*
 * answers.h: what a campaign found: an analysis for each question, over the studies of its phases,
 * those of one kind pooled.
 */
#pragma once

#include "advise/advise.h"
#include "command/campaign/course.h"

struct course_answer {
    const struct lab_campaign_question *question;
    struct lab_analysis_result *result;   /* NULL = it could not be done */
    const char *failure;                  /* then: why, a sentence without full stop */
    const struct lab_claim *claim;        /* that answers it; NULL = none */
    bool answered;                        /* that claim has a verdict */
    const struct lab_study_table *tables; /* pooled */
    int table_count;
    int run_count, point_count; /* that it rests on */
    double run_s;               /* mean real time of a run; NaN = unknown */
    bool same;                  /* an earlier question has the same analysis and phases */
    int others;                 /* studies left out: they ran on another machine */
};

struct course_answers {
    struct course_answer *items; /* one for each question */
    int count, answered;
    const struct lab_advice *advice; /* one for each kind of study */
    int advice_count;
};

int course_answer(struct course *course, struct course_answers *ret_answers, struct lab_err *err);

/* A claim's effect without the verdict, which has a column or a section of its own. */
const char *course_claim_effect(const struct lab_claim *claim, struct lab_arena *arena);
/* "throughput, compared with the local node" */
const char *course_claim_quantity(const struct lab_claim *claim, struct lab_arena *arena);
/* Where the question names kinds, claims of these. */
bool course_is_asked(const struct lab_campaign_question *question, const struct lab_claim *claim);

/* Whether any question is about the phase. */
bool course_is_asked_about(const struct lab_campaign *campaign, int phase);
/* A section on phases that no question is about; nothing where there is none. */
void course_add_others(const struct course *course, struct lab_doc *doc);
/* A section on inconclusive and untested comparisons of the questions. */
void course_add_uncertain(const struct course *course, const struct course_answers *answers,
                          struct lab_doc *doc);

struct lab_doc *course_report(const struct course *course, const struct course_answers *answers,
                              const struct lab_campaign_status *statuses);
/* report/index.html and report.md of the folder; the page's path, as the user would write it. */
int course_report_write(const struct course *course, const struct lab_doc *doc,
                        const char **ret_page, struct lab_err *err);
