/* study_run.h: runs as `gpulab show` prints them: all of a study in a table, or one in full. */
#pragma once

#include "report/study/study.h"
#include "store/store.h"

/* A line for each run, in their order. `unicode`: how errors that are cut end. */
void lab_show_add_runs(struct lab_doc *doc, const struct lab_study_info *study, bool unicode);

struct lab_show_run {
    const struct lab_run *run;
    const struct lab_study_info *study;
    struct lab_store_metric *metrics; /* in the order in which they came */
    int metric_count;
};

/* For programs: the fields of results.json, every metric, the hint. */
void lab_show_add_run(struct lab_doc *doc, const struct lab_show_run *shown);
