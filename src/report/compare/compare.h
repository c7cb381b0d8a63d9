/*
 * report/compare/compare.h: comparisons as a document: the pooled change first, then what differs
 * in machine, software and config, then the points that changed. For programs all points, the
 * claims, and the sets themselves, which `gpulab compare` reads again.
 */
#pragma once

#include "analysis/comparison/comparison.h"
#include "doc/doc.h"

struct lab_compare_report {
    const struct lab_point_set *sets;
    int set_count;
    const struct lab_comparison *comparisons; /* one less */
    double fail_above;                        /* NaN = no limit */
    bool all;                                 /* for people all points, too */
    const char *hint; /* behind a line about what is left out: " --all lists them." */
    bool letters;     /* sets are A, B, …, however short their names */
};

/* True: a slow-down above `fail_above` is shown. */
bool lab_report_add_compare(struct lab_doc *doc, const struct lab_compare_report *report);
