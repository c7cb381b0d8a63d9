/* tuning.h: what came of tuning a kernel, as text for people. */
#pragma once

#include "model/tuning.h"
#include "report/report.h"

void lab_report_add_tuning(struct lab_doc *doc, const struct lab_tuning_result *result);
