/*
 * analysis.h: an analysis takes tables and gives tables. It reads no file, prints nothing and knows
 * no machine: the command layer brings what it asks for (`source`), the report layer shows what it
 * found, as text, Markdown or JSON, from the columns alone.
 *
 * An analysis is one file in this folder, named as the analysis, that defines
 * `const struct lab_analysis lab_analysis_<name>`. Results grow part by part (analysis_build.h).
 * Files named analysis*.c serve them all; what a single one needs beside its own file lies in a
 * folder of its name.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/option.h"
#include "doc/column.h"
#include "model/chart.h"
#include "model/claim.h"
#include "model/recording.h"
#include "model/study_table.h"
#include "model/trace.h"

#include <stdbool.h>

/* --- what comes out --- */

struct lab_analysis_part {      /* one thing that was analysed: a pipeline, a pair of devices */
    const char *name;           /* unique in the result */
    const char *about;          /* what and where it was, in a few words; NULL = nothing to say */
    const char *answer;         /* a sentence */
    const char *untested;       /* why there is none, as the result has it */
    struct lab_doc_cell *cells; /* one for each column of the result */
    int cell_count;
    struct lab_doc_table *tables;
    int table_count;
    /* what to know before the figures are used; NULL-terminated, NULL = nothing */
    const char *const *notes;
};

/* Whether an analysis found what it looks for, for scripts: `gpulab analyze --fail`. Of a result
 * with claims it follows from them (lab_analysis_run). */
enum lab_analysis_finding {
    LAB_ANALYSIS_NOT_REQUESTED, /* it doesn't look for one thing that is there or not */
    LAB_ANALYSIS_FINDS_NOTHING,
    LAB_ANALYSIS_FINDS,
    LAB_ANALYSIS_CANT_TELL, /* nothing is found, but there may be much all the same */
};

struct lab_analysis_result {
    struct lab_arena *arena; /* that all of it lies in */
    const char *answer;      /* the first sentence; NULL = the first part's */
    const char *untested;    /* why no run answers the question, a sentence: lab_analysis_run makes
                                the answer of it. NULL = they do */
    bool elsewhere;          /* nor will one on this machine */
    const char *command;     /* a line to paste that follows from its claims; NULL = none does */
    const char *action;      /* what to do, or what that line does; without full stop. NULL = the
                                answer says it */
    const char *const *others; /* further things to do, a sentence each; NULL-terminated, or NULL */
    bool minor;                /* that comes after what else is advised */
    bool own_question;         /* it is advised only where the study asks what this answers */
    struct lab_claim *exceptions; /* of models for which another batch beats the one advised */
    int exception_count;
    /* what claims about a batch size come to on the placements that are advised: for sentences, the
     * claims themselves are over all */
    struct lab_analysis_advised {
        struct lab_claim claim;
        /* "0 to +51.2%" by model, of what isn't certain 0; NULL = all gain alike */
        const char *range;
        struct lab_claim *models; /* subject: the model; the largest effect first */
        int model_count;
    } * advised;
    int advised_count;
    const char *further; /* keys that test, with the study's own command, what it left out */
    const char *tests;   /* what they test, without full stop; NULL both = nothing is left */
    bool further_first;  /* before what it advises: that holds for simulated devices alone */
    int longer;          /* how many times as long runs must be to test all points; 0 = all were */
    const char *why_longer; /* then: a sentence, without full stop */
    const char *by_point;   /* its first table has a row for each point or setting, which reports of
                                a study show in place of rates; what stands below it: a sentence
                                about a column begins with its title and a colon. NULL = it
                                hasn't */
    enum lab_analysis_finding finding;
    bool lacks;           /* it only says what is missing: no report opens with it */
    const char *part_key; /* what the parts are called by programs: "pipelines" */
    const struct lab_doc_column *columns;
    int column_count;
    struct lab_analysis_part *parts;
    int part_count;
    bool simulated;           /* some figure is: the word stands in every heading */
    const char *const *notes; /* about the whole; NULL-terminated */
    /* what was found, the headline first; all else says the same in other words */
    struct lab_claim *claims;
    int claim_count;
    const char *const *faults;      /* claims that were withdrawn, and why; NULL-terminated */
    const struct lab_chart *charts; /* pictures of the same figures */
    int chart_count;
};

/* --- what goes in --- */

enum lab_analysis_source {
    LAB_ANALYSIS_OF_TRACES, /* the words are traces, or folders of them */
    /* recordings, studies, or files of other monitors; or folders of them */
    LAB_ANALYSIS_OF_RECORDINGS,
    LAB_ANALYSIS_OF_STUDIES, /* studies, by their folders */
};

struct lab_field; /* claims/rows.h */

struct lab_analysis_trace {
    const char *name; /* of its file, unique in the input */
    const struct lab_trace *trace;
};

struct lab_analysis_input {
    const void *config; /* of the analysis; NULL = the defaults, or it has no options */
    const struct lab_analysis_trace *traces;
    int trace_count;
    const struct lab_labelled_recording *recordings;
    int recording_count;
    const struct lab_study_table *studies; /* analysis_study.h */
    int study_count;
};

/* --- an analysis --- */

#define LAB_INTEREST_IF_NAMED (-1) /* it is part of a report only where the study asks for it */

struct lab_analysis_kind { /* of claims */
    const char *name;      /* "numa.penalty" */
    /* why A/A studies (campaign/selftest.h) show none that is known to be false; NULL = they do */
    const char *untested;
};

#define LAB_KIND_ESTIMATE "values in a unit, which compare nothing"
#define LAB_KIND_OBSERVED "observed, not estimated"
#define LAB_KIND_WITHIN   "about times within runs, where an effect of the machine is real"
#define LAB_KIND_PROBED   "needs a contention study's probes or tuning"
#define LAB_KIND_MODELS   "needs models that are transfer-bound and others"
#define LAB_KIND_PROGRAM  "about programs of the user and their settings"
#define LAB_KIND_PLANNED  "needs gpu_mode=auto on several devices"
#define LAB_KIND_OTHER    "about recordings, traces or several studies"

struct lab_analysis {
    const char *name;
    const char *summary;              /* one line */
    const char *description;          /* paragraphs; may be NULL */
    const struct lab_option *options; /* NULL = none, and no config */
    size_t config_size;
    const struct lab_analysis_kind *kinds; /* of all of its claims, ends with NULL; NULL = none */
    enum lab_analysis_source source;
    unsigned needs; /* of studies: LAB_STUDY_WITH_ITERATIONS, … */
    /*
     * optional, of studies: how much it has to say about this one, from its plan alone, whatever it
     * is called: 0 = nothing. A report has the analyses that the study names (`answers`) first, and
     * the others by interest. NULL = it is never part of a study's report
     */
    int (*interest)(const struct lab_study_table *study);
    /* the parts of its result: what programs call them, and their figures (LAB_PARTS_OF) */
    const char *part_key;
    const struct lab_field *figures;
    int figure_count;
    /* Fills a result without parts, which refers to the input. Called by lab_analysis_run. */
    int (*run)(const struct lab_analysis_input *input, struct lab_analysis_result *result,
               struct lab_err *err);
};

extern const struct lab_analysis *const lab_analyses[]; /* NULL-terminated, generated */

/* By name; NULL and an error that names the nearest and all there are. */
const struct lab_analysis *lab_analysis_find(const char *name, struct lab_err *err);

/* Of its claims; NULL = it declares none of that name. */
const struct lab_analysis_kind *lab_analysis_kind(const struct lab_analysis *analysis,
                                                  const char *name);

/* Names of analyses, as a study's `answers` has them: a list or a text. Any that no report of a
 * study can have is refused with its place, the nearest and all there are. NULL = none. */
int lab_analysis_check_answers(const struct lab_value *names, struct lab_err *err);

/* Those of a study's report, in its order, at most `most`: by `answers`, then by interest. */
struct lab_analysis_choice {
    const struct lab_analysis *analysis;
    int answer; /* place in `answers`; INT_MAX = it isn't named there */
    int interest;
    int position; /* in lab_analyses */
};
int lab_analysis_choose(const struct lab_study_table *study, int most,
                        struct lab_analysis_choice *ret_choices);

/* A config with the defaults, in the arena; NULL where there are no options. */
void *lab_analysis_config(const struct lab_analysis *analysis, struct lab_arena *arena);

/*
 * Runs it; `config` NULL = the defaults. The result is simulated where some study or recording is.
 * Its claims are marked so and checked (claims/check.h), and the finding follows from the headline:
 * the first claim and all others of its kind. LAB_ERR_USER where it is about studies and there is
 * none.
 */
int lab_analysis_run(const struct lab_analysis *analysis, const void *config,
                     const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_analysis_result *ret_result, struct lab_err *err);

/* --- for members --- */

/* Figures of many values: their median with its interval, and the 95th percentile. `values` are in
 * order of time, since neighbours may depend on each other; none: NaN. */
struct lab_analysis_summary {
    size_t count;
    double median, low, high, confidence, p95, total;
};
struct lab_analysis_summary lab_analysis_summarize(const double *values, size_t count);

/* --- cells --- */

struct lab_doc_cell lab_cell_interval(double value, double low, double high, double confidence);
struct lab_doc_cell lab_cell_remark(double value, const char *remark);
