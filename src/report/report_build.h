/*
 * report_build.h: the report of a study or of recordings: lets the analyses work that have
 * something to say about it, draws their charts, writes all files. `gpulab report` and the end of
 * `gpulab run` do it through this alone.
 */
#pragma once

#include "load/study_view.h"
#include "report/page/page.h"

struct lab_report_request {
    const char
        *folder; /* that the files go to; made where it isn't there. NULL = nothing is written */
    int64_t limit_ns; /* for analyses and pictures together; what isn't done by then is left out and
                           said. 0 = none */
    bool without_pictures;
    bool own;    /* the folder is the program's own: report/ of the caller's study */
    bool forced; /* replace files that no report wrote */
};

struct lab_report_made {
    struct lab_page page;
    int picture_count; /* that were drawn */
};

/*
 * The view's file is open. Everything lies in the arena. What an analysis can't tell is said in its
 * place; that is no failure. Files are staged and renamed into their places when all are whole, the
 * page last. Only what an earlier report wrote is replaced or removed (base/file/out_dir.h).
 * Pictures are drawn in a private directory.
 */
int lab_report_build_study(const struct lab_study_view *view,
                           const struct lab_report_request *request, struct lab_arena *arena,
                           struct lab_report_made *ret_made, struct lab_err *err);

/* The claims of all its analyses, in the order in which they are shown. */
struct lab_claim *const *lab_report_claims(const struct lab_page *page, struct lab_arena *arena,
                                           int *ret_count);

/* As a table; for programs, as `claims`. */
void lab_report_add_claims(struct lab_doc *doc, struct lab_claim *const *claims, int count);

/* Of recordings, by words as `analyze` takes them. */
int lab_report_build_recordings(const char *const *words, int count,
                                const struct lab_report_request *request, struct lab_arena *arena,
                                struct lab_report_made *ret_made, struct lab_err *err);

/* Of several studies, point by point: whether the words all mean studies, and their report. A word
 * may be "before=PATH". */
bool lab_report_are_studies(const char *const *words, int count, struct lab_arena *arena);
int lab_report_build_studies(const char *const *words, int count,
                             const struct lab_report_request *request, struct lab_arena *arena,
                             struct lab_report_made *ret_made, struct lab_err *err);
