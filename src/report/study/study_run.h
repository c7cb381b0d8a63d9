/* study_run.h: runs as `gpulab show` prints them: all of a study in a table, or one in full. */
#ifndef LAB_REPORT_STUDY_STUDY_RUN_H
#define LAB_REPORT_STUDY_STUDY_RUN_H

#include "report/study/study.h"
#include "store/store.h"

/* A line for each run, in their order. */
void lab_show_runs(const struct lab_study_info *study, struct lab_style style, struct lab_str *out);

struct lab_show_run {
    const struct lab_run *run;
    const struct lab_study_info *study;
    struct lab_store_metric *metrics; /* in the order in which they came */
    int metric_count;
};

void lab_show_run(const struct lab_show_run *shown, struct lab_style style, struct lab_arena *arena,
                  struct lab_str *out);
/* For programs: the fields of results.json, every metric, the hint. */
struct lab_value *lab_show_run_value(const struct lab_show_run *shown, struct lab_arena *arena);

#endif
