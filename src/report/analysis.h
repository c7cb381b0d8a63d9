/*
 * report/analysis.h: what an analysis found, for people and for programs. One way for all analyses:
 * the result's columns say what each figure is.
 */
#ifndef LAB_REPORT_ANALYSIS_H
#define LAB_REPORT_ANALYSIS_H

#include "analysis/analysis.h"
#include "report/report.h"

/* The answer; where there are several parts, a table that compares them; then each part: its
 * figures, a line each, its tables, its notes. */
void lab_report_analysis(const struct lab_analysis_result *result, struct lab_style style,
                         struct lab_str *out);
/* The same as a Markdown document under that title. */
void lab_report_analysis_markdown(const struct lab_analysis_result *result, const char *title,
                                  struct lab_str *out);
/* The same as a tree: times in ms (durations in s), rates in GB/s, shares of 1, others as their
 * keys say; `<key>_interval` beside figures that have one. */
struct lab_value *lab_report_analysis_value(const struct lab_analysis_result *result,
                                            const char *name, struct lab_arena *arena);

#endif
