/* analysis_internal.h: figures of an analysis as text, for all forms that they are shown in. */
#ifndef LAB_REPORT_ANALYSIS_INTERNAL_H
#define LAB_REPORT_ANALYSIS_INTERNAL_H

#include "report/analysis.h"

/* Text in Markdown, whatever signs are in it. '_' within a word is none. */
void analysis_add_escaped(const char *text, struct lab_str *out);

#endif
