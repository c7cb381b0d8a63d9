/* page_internal.h: parts of the report's document that others of it add. */
#ifndef LAB_REPORT_PAGE_INTERNAL_H
#define LAB_REPORT_PAGE_INTERNAL_H

#include "report/page.h"
#include "report/study/study_internal.h"

/* Bytes that evidence leaves for what stands behind it on the page. */
#define PAGE_FOR_METHOD (256 << 10)
#define PAGE_FOR_RUNS   (768 << 10)

/* How it was measured; the runs: on a screen. */
void page_add_method(struct lab_doc *doc, const struct lab_page *page,
                     const struct study_digest *digest);
void page_add_runs(struct lab_doc *doc, const struct lab_page *page,
                   const struct study_digest *digest);

/* Whether an analysis has an answer, and not only found that it can't give one. */
bool page_tells(const struct lab_page_analysis *analysis);
/* The first sentence: of the first analysis that has one; NULL = none has. */
const char *page_answer(const struct lab_page *page);

#endif
