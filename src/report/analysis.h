/*
 * report/analysis.h: what an analysis found, in a document. One way for all analyses: the result's
 * columns say what each figure is.
 */
#pragma once

#include "analysis/analysis.h"
#include "doc/doc.h"
#include "report/report.h"

struct lab_report_analysis {
    const char *name; /* "numa" */
    const struct lab_analysis_result *result;
    const char *source; /* what was analysed, for a line to paste; NULL = unknown */
};

/* Adds the answer; where there are several parts, a table that compares them; then each part: its
 * figures, a line each, its tables, its notes. */
void lab_report_add_analysis(struct lab_doc *doc, const struct lab_report_analysis *analysis);
/* What a row of that table is: "Model", "Device"; else "Name". */
const char *lab_report_part_title(const struct lab_analysis_result *result);
/* Whether that table has this column: parts are compared by it, and one has a value. */
bool lab_report_is_compared(const struct lab_analysis_result *result, int column);
/* A document of that alone. */
struct lab_doc *lab_report_analysis(const char *name, const struct lab_analysis_result *result,
                                    struct lab_arena *arena);
