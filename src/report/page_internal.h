/* page_internal.h: parts of the page that others of it write. */
#ifndef LAB_REPORT_PAGE_INTERNAL_H
#define LAB_REPORT_PAGE_INTERNAL_H

#include "report/analysis_internal.h"
#include "report/page.h"
#include "report/study/study_internal.h"

extern const char page_style[]; /* CSS */

/* Text, whatever signs are in it, in an element or in an attribute's double quotes. */
void page_add_text(struct lab_str *out, const char *text);
/* A heading with the word behind it where figures below are simulated. */
void page_add_heading(struct lab_str *out, int level, const char *id, const char *text,
                      bool simulated);

/* Pictures and page have one budget: bytes that may still be written. */
struct page_budget {
    size_t limit; /* of out->length */
    int charts;   /* so far: ids in pictures are made of it */
};
void page_add_analysis(const struct lab_page *page, const struct lab_page_analysis *analysis,
                       struct page_budget *budget, struct lab_str *out);

/* How it was measured; the runs. */
void page_add_method(const struct lab_page *page, const struct study_digest *digest,
                     struct lab_str *out);
void page_add_runs(const struct lab_page *page, const struct study_digest *digest, size_t limit,
                   struct lab_str *out);

/* Whether an analysis has an answer, and not only found that it can't give one. */
bool page_tells(const struct lab_page_analysis *analysis);
/* The first sentence: of the first analysis that has one; NULL = none has. */
const char *page_answer(const struct lab_page *page);

#endif
