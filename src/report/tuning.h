/* tuning.h: what came of tuning a kernel, as text for people. */
#ifndef LAB_REPORT_TUNING_H
#define LAB_REPORT_TUNING_H

#include "model/tuning.h"
#include "report/report.h"

void lab_report_tuning(const struct lab_tuning_result *result, struct lab_style style,
                       struct lab_str *out);

#endif
