/*
 * bench_run.h: one workload on one device, from the choice of the device to figures whose
 * placement is proven.
 */
#ifndef LAB_SESSION_BENCH_RUN_H
#define LAB_SESSION_BENCH_RUN_H

#include "report/report.h"
#include "session/session_progress.h"
#include "workload/workload.h"

struct lab_bench_request {
    const struct lab_workload *workload;
    const void *config;             /* checked */
    struct lab_value *config_value; /* all keys, for the report */
    const char *selector; /* its first member; all, of a workload that has a key `devices` */
    int numa_node;        /* the kernel's number; -1 = the device's own */
    int repeat;           /* ≥ 1 */
    bool verify;
    bool limits;                  /* find out what the device reaches at best */
    bool profile;                 /* by operation */
    struct lab_measure_plan plan; /* progress and clock are set by the run */
    struct lab_progress progress;
};

/*
 * Fills `ret_report`, which lives in the arena. A failed verification or proof makes the result
 * invalid and is no error. The calling thread stays bound. LAB_ERR_INTERRUPTED if the user stopped
 * it before anything was measured; later, `interrupted` is set and what there is, is reported.
 * `ret_selected` counts the devices that might have been used instead of the first, it among them.
 */
int lab_bench_run(const struct lab_bench_request *request, struct lab_arena *arena,
                  struct lab_bench_report *ret_report, int *ret_selected, struct lab_err *err);

#endif
