/*
 * check.h: is this machine healthy? Tests in three levels, each a row of a table: what it looks at,
 * what it expects, and what its failure means. `gpulab check` runs them; docs/CHECK.md lists them.
 *
 * Facts come from the driver without opening a GPU (device/health.h), rates from the measuring loop
 * (measure/measure.h). A rate is compared with the expected value of the GPU's model and with the
 * peer GPUs of the machine. A test that could not run is skipped with its reason; it never passes.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "model/device_ref.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_doc;
struct check_run;

enum lab_check_verdict {
    LAB_CHECK_PASS,
    LAB_CHECK_FAIL,
    LAB_CHECK_SKIPPED, /* nothing to test here, or nobody may look: the finding's reason */
    LAB_CHECK_BROKEN,  /* skipped because an attempt failed or time ran out: not known to be fine */
};

enum lab_check_severity {                    /* what a failure asks for */
                          LAB_CHECK_MONITOR, /* watch it; jobs may run */
                          LAB_CHECK_RESET,   /* reset the GPU or restart a service, then check */
                          LAB_CHECK_ISOLATE, /* take the host out of service */
};

extern const char *const lab_check_verdicts[];   /* "PASS", …; by number */
extern const char *const lab_check_severities[]; /* "monitor", …; by number, NULL-terminated */

#define LAB_CHECK_LEVELS 3
double lab_check_limit_s(int level); /* 15 s, 5 min, 1 h */

/* --- a test --- */

/* What a test found about one subject. Texts live in the run's arena. */
struct lab_check_finding {
    const struct lab_check_test *test;
    const char *subject; /* "GPU 3", "GPU 2 to GPU 5", "host" */
    int gpu, peer, node; /* position in the list of devices, NUMA node; -1 = none */
    const char *group;   /* findings of one test with equal groups are peers; NULL = none */
    const double *seen;  /* of a learning run: what `measured` is the median of; else NULL */
    int seen_count;
    const char *key;        /* of the expected value; NULL = there is none */
    double measured;        /* of a rate; NaN = a fact, or nothing was measured */
    double expected, least; /* least: what would still pass; NaN = nothing to compare with. A test
                               may set both: what the GPU itself reached before */
    const char *found;      /* of a fact, in words: "8 of 16 lanes"; NULL = the number */
    const char *wanted;     /* likewise: "16 lanes"; NULL = the number, or nothing */
    enum lab_check_verdict verdict;
    enum lab_check_severity severity; /* the test's, unless the fault has its own */
    const char *reason;               /* of a failure or skip; of a pass, a note or NULL */
    int tries;                        /* how often it was looked at */
};

struct lab_check_test {
    const char *name;  /* "pcie_width"; in JSON, in --only, in docs/CHECK.md */
    const char *title; /* "PCIe width" */
    int level;         /* the first level that has it */
    enum lab_check_severity severity;
    const char *unit; /* of a rate: "GB/s"; NULL = it finds facts */
    /* of rates: how far below its peers, those of its group, or a learnt value it may be, at least;
     * 0 = it is compared with neither */
    double peer_tolerance;
    /* how many subjects it has here; 0 and a reason = it has none */
    int (*count)(struct check_run *run, const char **ret_why);
    /*
     * Looks at subject `index` the `attempt`th time, from 0. Fills the finding: of a fact also the
     * verdict; of a rate `measured`, and the verdict only where nothing could be measured.
     */
    void (*look)(struct check_run *run, int index, int attempt, struct lab_check_finding *finding);
    const char *help; /* what a failure means, in a sentence */
};

/* All tests, by level; NULL behind the last. */
const struct lab_check_test *lab_check_test_at(int index);
/* By name; NULL and an error that names the nearest. */
const struct lab_check_test *lab_check_test_find(const char *name, struct lab_err *err);

/* --- expected values --- */

struct lab_expected_value {
    const char *key;         /* "gemm_bf16_tflops" */
    double value, tolerance; /* a share: 0.05 = 5 % below still passes */
    const double *seen;
    int seen_count; /* what it was learnt from */
};

struct lab_expected {   /* of one model of GPU: a file of conf/expected */
    const char *model;  /* a GPU's name begins with it */
    const char *origin; /* "measured", "published", "learned" */
    const char *source; /* where the values come from */
    int64_t gpus;       /* of a host; 0 = not said */
    const char *driver; /* NULL = not said */
    const struct lab_expected_value *values;
    int count;
};

/* Reads a file's text; `name` is said in errors. */
int lab_expected_read(const char *text, size_t length, const char *name, struct lab_arena *arena,
                      struct lab_expected *ret_expected, struct lab_err *err);
/* The one whose model the name begins with, the longest of them; NULL = none. */
const struct lab_expected *lab_expected_find(const struct lab_expected *items, int count,
                                             const char *gpu_name);
const struct lab_expected_value *lab_expected_get(const struct lab_expected *expected,
                                                  const char *key);

/* --- a check --- */

struct lab_check_setup {
    const struct lab_machine *machine; /* the real one; simulated devices have theirs */
    struct lab_device_list devices;    /* of one backend, at least one */
    bool all_devices; /* nothing was left out on purpose: a GPU that is missing is a failure */
    /* why nothing can be measured, so that levels 2 and 3 are skipped; NULL = it can */
    const char *no_rates;
    int level;
    double limit_s; /* 0 = the level's */
    const struct lab_expected *expected;
    int expected_count;
    const char *const *only; /* names of tests, NULL-terminated; NULL = all of the level */
    uint64_t seed;           /* of the data, and of simulated chance */
    bool learns;             /* measures each rate several times and judges their median */
    /* optional: a finding is final */
    void (*told)(void *state, const struct lab_check_finding *finding);
    void *state;
};

struct lab_check_result {
    int level;
    const char *gpu_name; /* of the first GPU */
    int gpu_count;
    const char *driver; /* NULL = unknown */
    bool simulated;
    struct lab_check_finding *findings; /* in the tests' order */
    int count;
    double duration_s;
};

/* Runs the level's tests in order. Always has a result: what goes wrong is a finding. */
void lab_check_run(const struct lab_check_setup *setup, struct lab_arena *arena,
                   struct lab_check_result *ret_result);

/*
 * 0 = healthy, 1 = at least one failure that is `least` or worse, 2 = none, but a test was broken
 * or none passed.
 */
int lab_check_status(const struct lab_check_result *result, enum lab_check_severity least);

#define LAB_CHECK_REASON_COLUMNS 120
/* Text that is longer loses its end. */
const char *lab_check_fit(const char *text, int columns, struct lab_arena *arena);
/* The line for a prolog: at most that many columns. */
const char *lab_check_reason(const struct lab_check_result *result, enum lab_check_severity least,
                             struct lab_arena *arena);

/*
 * What a learning run measured, pooled with what `before` (NULL = none) had seen: median and
 * tolerance of each value, as the text of a file. Fails where a test failed, or without a rate.
 */
int lab_check_learn(const struct lab_check_result *result, const struct lab_expected *before,
                    struct lab_arena *arena, const char **ret_text, struct lab_err *err);

/* --- showing it --- */

struct lab_doc *lab_check_doc(const struct lab_check_result *result, enum lab_check_severity least,
                              struct lab_arena *arena);
/* For node-exporter's textfile collector. */
void lab_check_write_textfile(const struct lab_check_result *result, enum lab_check_severity least,
                              int64_t wall_s, struct lab_str *out);

/* A finding as a map, and back: the part that may hang is another process. -1: it is none. */
struct lab_value *lab_check_finding_value(const struct lab_check_finding *finding,
                                          struct lab_arena *arena);
int lab_check_finding_read(const struct lab_value *map, struct lab_arena *arena,
                           struct lab_check_finding *ret_finding);
/* Of each test without a finding, one that is broken for this reason. */
void lab_check_complete(struct lab_check_result *result, const char *const *only,
                        const char *reason, struct lab_arena *arena);
