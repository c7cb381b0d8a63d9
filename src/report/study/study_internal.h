/*
 * study_internal.h: what the reports about studies share: a study's records digested into rows,
 * ranges and sentences, and the words for them.
 */
#pragma once

#include "doc/doc.h"
#include "model/claim.h"
#include "model/run.h"
#include "report/study/study.h"

#include <stddef.h>

/* --- the digest --- */

/* Runs that differ only in `repeat`. */
struct study_row {
    const char *name;                 /* the run's id, without its repeat */
    const struct lab_run *const *run; /* by repeat */
    int run_count;
    int state_counts[LAB_RUN_STATE_COUNT];
    int invalid, concurrent;

    /* Mean of the rates of valid runs, else of all that are done; NaN = none. The interval, at 95%,
     * is the one within the run where there is one rate, and across the runs where there are more.
     */
    double rate, low, high;
    int rate_count;
    const char *unit; /* "" = none; STUDY_TIME */
    bool valid;
};

/* The unit of runs that do one thing once, such as a program: their rates are shown as times. */
#define STUDY_TIME        "time"
#define STUDY_FEW_ADVISED 20 /* iterations, where a run had too few to show a rate */

struct study_range { /* of all rows with one unit */
    const char *unit;
    const struct study_row *worst, *best;
    int row_count;
};

/* What is said about several runs, in words that differ at most in their figures. A rank stands in
 * it where it is the same in all of them. */
struct study_note {
    enum lab_run_warning kind;
    const char *text;                 /* of the first run */
    const char *most;                 /* of the run with the largest share */
    const struct lab_run *const *run; /* in the rows' order */
    int run_count;
    bool exact; /* it is the same text for all */
};

struct study_notes {
    struct study_note *items; /* those of most runs first */
    int count;
};

struct study_digest {
    const struct lab_study_info *study;
    int state_counts[LAB_RUN_STATE_COUNT];
    int invalid, concurrent;
    bool repeats;           /* some row has several runs */
    bool nothing_valid;     /* runs are done, but none is valid: figures of all are used */
    struct study_row *rows; /* small gangs first, then by name with its numbers as numbers */
    int row_count;
    struct study_range *ranges;
    int range_count;
    struct study_notes failures, problems, warnings; /* problems: why runs are invalid */
    double busy_s;                                   /* Σ durations of runs that ended */
    int64_t first_wall_ns, last_wall_ns;             /* 0 = nothing has started */
    struct lab_arena arena;
};

void study_digest_init(struct study_digest *digest, const struct lab_study_info *study);
void study_digest_release(struct study_digest *digest);
/* p95 of the latency, the mean of the row's runs: read from their results when asked for. NaN =
 * none. */
double study_row_latency_s(const struct study_row *row);
/* "tokens/s", "Time"; "Rate or time" where rows have their units. */
const char *study_rate_title(const struct study_digest *digest);
/* "p95 latency"; "Time" where each run is one iteration, such as a program from start to exit. */
const char *study_latency_title(const struct study_digest *digest);

/* --- the table of its points --- */

struct study_claims {
    struct lab_claim *const *items; /* the headline first */
    int count;
};

struct study_room {
    int rows, columns;
    const char
        *words; /* what is said above and below: lines that it names are shown; NULL = none */
};

/* --- what of it is shown --- */

struct study_line {
    int leading; /* rank on the axis that rows are sorted by first */
    int group;   /* lines that are compared with each other */
    bool named, shown;
};

/* Marks at most so many lines, or all where one more would do. Returns how many it left out. */
int study_cut(struct study_line *lines, int count, int most);
/* Whether lines before one that is shown were left out. */
bool study_cut_skips(const struct study_line *lines, int count);
/* Whether the words have that value, of a number with its axis's title: "GPU 7". */
bool study_cut_is_named(const char *words, const char *title, const char *value);

/* One table and a line below it; nothing where no run has ended. */
void study_add_table(struct lab_doc *doc, const struct study_digest *digest,
                     const struct study_claims *claims, struct study_room room);

/* --- words --- */

const char *study_plural(int64_t count); /* "" or "s" */
/* "12.4", "3100", "1.23 million": so many significant digits. NaN is a dash. */
void study_add_figure(struct lab_str *out, double value, int digits);
/* With three of them, four from 1000 to 9999, where 1220 and 1230 would be a difference of less
 * than 1%: "12.4 samples/s"; of STUDY_TIME "80.6 ms". */
void study_add_rate(struct lab_str *out, double value, const char *unit);
/* "40.4k", "776"; "40.4k samples/s" where the unit isn't the table's. */
void study_add_short_rate(double rate, const char *unit, struct lab_str *out);
/* "-12.5%", "±0.8%" where no difference is larger, "-0.3%?" where it is inconclusive. */
void study_add_change(const struct lab_claim *claim, struct lab_str *out);
/* The interval's farther end: "1.2 %"; a dash where there is none. */
void study_add_spread(struct lab_str *out, double rate, double low, double high);
/* "2026-11-15 10:42:03 to 10:43:10, 62.1 s of it in runs" */
void study_add_when(const struct study_digest *digest, struct lab_str *out);
/* "GPUs 0–3 of 10, NUMA nodes 0 and 2 of 4": what was measured where the machine has more. */
void study_add_measured(const struct study_digest *digest, struct lab_str *out);
/* "GPUs 0+1, 0+2": pairs of devices that ran at once; "" = none, or there is no other. */
void study_add_pairs(const struct study_digest *digest, struct lab_str *out);
/* What varies between points: "GPU, NUMA node and model". */
void study_add_axes(const struct study_digest *digest, struct lab_str *out);
/* What all points share: "batch 8, fp32, 3×224×224". */
void study_add_shared(const struct study_digest *digest, struct lab_str *out);
/* "14 × 5 repeats = 70 runs"; where points share runs "14 distinct of 15 × …". */
void study_add_points_counted(const struct study_digest *digest, struct lab_str *out);
/* "failed", "invalid", "2 of 3 runs, concurrent"; "" = done and nothing to be said. */
void study_add_remark(const struct study_digest *digest, const struct study_row *row,
                      struct lab_str *out);
/* The first number of a sentence that has decimals or is a percentage, and where it begins; -1 and
 * NULL = none. */
double study_share_of(const char *text, const char **ret_at);
/* "74 of 110 runs: severe outliers, up to 12.1% of a run's times", "all 3 runs: …"; of runs with
 * values of their own the largest, without advice. */
void study_add_note(const struct study_digest *digest, const struct study_note *note,
                    struct lab_str *out);
/* "gpu0_numa0_vit0x0x0 and 2 more runs"; "all 3 runs" where `of` are all there are. */
void study_add_who(const struct study_note *note, int of, struct lab_str *out);
const char *study_hint(const struct study_note *note, struct lab_arena *arena); /* NULL likewise */

/* "3 of 3 runs succeeded: 12.4 samples/s (a) to 3100 samples/s (b)."; names in so many columns. */
void study_add_answer(struct study_digest *digest, int name_columns, bool unicode,
                      struct lab_str *out);
/* In commands, which may be pasted anywhere. */
static inline const char *study_path(const struct lab_study_info *study) {
    return study->path ? study->path : study->folder;
}

/* "22 of 48 runs succeeded so far, 2 failed, 24 are left" */
void study_add_counts(const struct lab_study_info *study,
                      const int state_counts[LAB_RUN_STATE_COUNT], int invalid,
                      struct lab_str *out);
/* The command that goes on with the study, from any folder. */
const char *study_resume_command(const struct lab_study_info *study, struct lab_arena *arena);
/* Whether its program has no {repeat}: with a fixed seed, repeats are copies. */
bool study_lacks_seed(const struct lab_study_info *study);
#define STUDY_SEED ", with {repeat} in the command as its seed"
/* The command that runs each point often enough for a verdict; nothing where the study did, or goes
 * on, or has nothing to compare. `keys` as below. */
void study_add_verdict_command(const struct study_digest *digest, const char *keys,
                               struct lab_str *out);
/* The study's command, which is known, with so many runs of each point (0 = as many as it had) and
 * with other values of some keys: "experiment.duration=60s"; NULL = of none. */
void study_add_repeat_command(const struct lab_study_info *study, int repeat, const char *keys,
                              struct lab_str *out);
/* The key of that command, with its value, that makes runs so many times as long; NULL = unknown.
 */
const char *study_longer_key(const struct lab_study_info *study, int factor,
                             struct lab_arena *arena);

/* What goes on with it and what that does; "" = nothing is left, or nobody knows how. */
void study_add_next(const struct study_digest *digest, struct lab_str *out);

#define STUDY_CONCURRENT                                                                           \
    "shared the machine with other runs (experiment.max_workers or runs_per_device "               \
    "above 1) and disturbed each other; to compare values, run them one at a time"
#define STUDY_NOTHING_VALID                                                                        \
    "no run of this study is valid, so the values of all are shown: don't use them"

/* --- parts of documents --- */

/* Failures with their hints; those beyond the first kinds are counted. */
void study_add_failures(struct lab_doc *doc, const struct study_digest *digest);
/* The file of a rank's "stdout" or "stderr"; NULL = rank 0's has it. */
const char *study_log_path(const struct lab_study_info *study, const struct lab_run *run, int rank,
                           const char *stream, struct lab_arena *arena);
/* The last lines that each rank of the run printed, on stderr if anything; nothing where no file
 * is. */
void study_add_log_end(struct lab_doc *doc, const struct lab_study_info *study,
                       const struct lab_run *run);
/* The command that goes on with it, where anything is left, and what to do first: `text`, without
 * its full stop; NULL = what it does. */
void study_add_command(struct lab_doc *doc, const struct study_digest *digest, const char *text);
/* A table of what the runs said, as much as a terminal shows; nothing where they said nothing. */
void study_add_last_metrics(struct lab_doc *doc, const struct lab_study_info *study, int rows_most);
/* The same on paper and on a page; the runs' names are shown as they stand. */
void study_add_metrics(struct lab_doc *doc, const struct lab_study_info *study);
/* A row for each point, at most so many; the others "in runs.csv". NULL: rates and intervals
 * alone. */
void study_add_points(struct lab_doc *doc, const struct study_digest *digest, int most,
                      const char *elsewhere);
/* Sections of failures, invalid runs and warnings, each kind said once. `longest`: warnings of
 * outliers name the longest time of all runs, which no analysis does. */
void study_add_problems(struct lab_doc *doc, const struct study_digest *digest, bool longest);
/* Lines: study, machine, time, seed; `order` of the runs, NULL = unknown. */
void study_add_conditions(struct lab_doc *doc, const struct study_digest *digest,
                          const char *order);

/* A bar of so many columns, its ends included. */
void study_add_bar(double fraction, int columns, bool unicode, struct lab_str *out);
