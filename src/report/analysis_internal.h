/* analysis_internal.h: figures of an analysis as text, for all forms that they are shown in. */
#ifndef LAB_REPORT_ANALYSIS_INTERNAL_H
#define LAB_REPORT_ANALYSIS_INTERNAL_H

#include "report/analysis.h"

/* A figure with its interval, or text; a dash where there is none. In a table there is no room for
 * the confidence of an interval that few values could not make as sure as the others. */
void analysis_add_cell(const struct lab_analysis_cell *cell,
                       const struct lab_analysis_column *column, bool in_table,
                       struct lab_str *out);
/* A figure that there is none of, or that isn't for people, has no line. */
bool analysis_is_shown(const struct lab_analysis_cell *cell,
                       const struct lab_analysis_column *column);

/* Text in Markdown, whatever signs are in it. '_' within a word is none. */
void analysis_add_escaped(const char *text, struct lab_str *out);

#endif
