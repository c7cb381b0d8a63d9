/*
 * campaign.h: a plan of several studies in one file (conf/campaign/NAME.yaml): questions, phases
 * that depend on each other, conditions on what earlier phases found, gates, a budget.
 * docs/CAMPAIGNS.md has the keys and examples.
 *
 * Pure: what comes next follows from the file and from what is known of each study so far. It reads
 * no study and starts nothing. `gpulab campaign` says what was found and asks what follows, again
 * from the beginning whenever it is started: a campaign that was killed goes on by the same
 * decisions, since they depend on stored results alone.
 *
 *     phase    studies that belong together; they run once all phases in `after` have ended and
 *              `when` holds
 *     study    as `gpulab run` takes it: the words of its command line
 *     gate     what a phase must reach, or those that depend on it don't run
 */
#pragma once

#include "analysis/analysis.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"
#include "model/claim.h"

#define LAB_CAMPAIGN_PHASES_MOST  256
#define LAB_CAMPAIGN_STUDIES_MOST 4096 /* of all phases */

/* --- the file --- */

enum lab_campaign_priority { LAB_CAMPAIGN_HIGH, LAB_CAMPAIGN_MEDIUM, LAB_CAMPAIGN_LOW };

struct lab_campaign_question {
    const char *name; /* "sensitivity" */
    const char *ask;  /* "Which models lose most on a remote NUMA node?" */
    const struct lab_analysis *analysis;
    const char *const *kinds; /* of claims that answer it, the first that was made is the answer;
                                 NULL-terminated, NULL = the analysis's first claim */
    const int *phases;        /* whose studies are pooled for it */
    int phase_count;
};

struct lab_campaign_gate { /* least shares, checked when the phase has ended; 0 = not asked */
    double success;        /* of runs that succeeded */
    double valid;          /* of those whose result is valid */
};

enum lab_campaign_strategy {
    LAB_CAMPAIGN_AS_WRITTEN,
    LAB_CAMPAIGN_ELIMINATE, /* more runs of placements that are inconclusive, none of the others */
    LAB_CAMPAIGN_BISECT,    /* a model between the two that are next to the crossover */
};

struct lab_campaign_study {
    const char *const *words;            /* of `gpulab run`; NULL-terminated */
    enum lab_campaign_strategy strategy; /* what it runs follows from claims of phases before */
    const char *kind;                    /* of these */
    const struct lab_analysis *analysis;
    int step;          /* of a bisection, which is as many studies as it has steps; 0 = the first */
    double width;      /* it ends once a model is this near to the crossover; a share */
    int64_t runs;      /* or its steps have so many runs */
    const char *label; /* unique in its phase and fit for a folder's name: "numa_study_2" */
};

struct lab_campaign_condition; /* condition.c */

struct lab_campaign_expectation { /* what the plan's author expects, to be compared */
    const char *text;             /* "Light models: strong NUMA effects" */
    const struct lab_campaign_condition *condition;
};

struct lab_campaign_phase {
    const char *name, *goal;
    enum lab_campaign_priority priority;
    const int *after; /* phases before it, by index */
    int after_count;
    const struct lab_campaign_condition *when; /* NULL = always */
    const char *when_text;
    const struct lab_campaign_study *studies;
    int study_count, first_study; /* in all of the campaign's */
    struct lab_campaign_gate gate;
    const struct lab_campaign_expectation *expectations;
    int expectation_count;
};

struct lab_campaign {
    const char *name, *title;
    const struct lab_campaign_question *questions;
    int question_count;
    const struct lab_campaign_phase *phases; /* in the order of the file */
    int phase_count, study_count;
    const int *order;   /* phases as they run: by what they come after, priority, the file */
    const bool *before; /* [phase × phases + earlier]: lab_campaign_comes_before */
    const struct lab_campaign_study *replaced; /* command lines that it does the work of */
    int replaced_count;
    double budget_s;      /* 0 = none */
    int64_t budget_bytes; /* 0 = none */
    double failures_most; /* share of a phase's runs: more stop it. 0 = any */
    double temperature_c; /* a study starts once all GPUs are below it; 0 = at once */
    double wait_s;        /* at most, for that */
    int side_by_side;     /* phases that may: 1 = they do, 0 = not, -1 = simulated ones do */
};

/*
 * From a composed tree. LAB_ERR_USER, with file and line, and one sentence: a cycle (its phases are
 * named), an unknown key, phase, analysis or kind of claim (the nearest is named), a condition on a
 * phase that doesn't come before.
 */
int lab_campaign_read(const struct lab_value *tree, const char *name, struct lab_arena *arena,
                      struct lab_campaign *ret_campaign, struct lab_err *err);

/* The keys, for help: of the file, of a question, of a phase, of a study that refines, of a gate,
 * the budget and the risks. */
extern const struct lab_option lab_campaign_keys[], lab_campaign_question_keys[],
    lab_campaign_phase_keys[], lab_campaign_refine_keys[], lab_campaign_gate_keys[],
    lab_campaign_budget_keys[], lab_campaign_risk_keys[];

/* Whether `earlier` comes before `phase`, by any number of steps. */
bool lab_campaign_comes_before(const struct lab_campaign *campaign, int earlier, int phase);

/* --- what is known --- */

struct lab_campaign_use { /* what a study takes of the machine */
    uint64_t devices;     /* a bit for each, the same one in all studies; 0 = unknown */
    uint64_t nodes;       /* NUMA nodes of these, and of the memory that they copy from */
    bool simulated;       /* each study has a machine of its own */
};

struct lab_campaign_found { /* of one study */
    bool begun;
    bool again; /* what failed is to be tried again, or its files completed */
    int planned, done, failed, invalid; /* runs; invalid ones are done */
    double taken_s, energy_j;           /* of runs that are done; NaN = unknown */
    int energy_runs;                    /* of these, those that energy_j is of */
    const char *error;                  /* of the first run that failed; NULL = none */
    int64_t bytes;
    double expected_s, expected_j; /* what is left; NaN = unknown */
    int64_t expected_bytes;
    struct lab_campaign_use use;
};

struct lab_campaign_point { /* that claims rest on: a model on a device */
    const char *name;       /* "gpu0_numa2_vit32x4x256" */
    int gpu, node;
    int patch_size, depth, heads, dim, mlp_dim;
    double work; /* of a sample */
};

struct lab_campaign_claims { /* of one phase, its studies pooled; none before it has ended */
    struct lab_claim *const *items;
    int count;
    const struct lab_campaign_point *points; /* those with a size */
    int point_count;
};

struct lab_study_table;
/* The points of these studies, for `claims`. */
void lab_campaign_add_points(const struct lab_study_table *studies, int count,
                             struct lab_arena *arena, struct lab_campaign_claims *claims);

struct lab_campaign_known {
    const struct lab_campaign_found *studies; /* of each, in the order of the file */
    const struct lab_campaign_claims *phases; /* of each */
    const struct lab_campaign_claims *steps;  /* of each study alone that a bisection goes by */
};

/* Whether a later study of its phase goes by the claims of this one. */
bool lab_campaign_is_step(const struct lab_campaign *campaign, int phase, int study);

/* Whether nothing of it is left to do. */
bool lab_campaign_has_ended(const struct lab_campaign_found *found);

/* --- conditions --- */

enum lab_campaign_truth { LAB_CAMPAIGN_FALSE, LAB_CAMPAIGN_TRUE, LAB_CAMPAIGN_UNKNOWN };

/*
 *     KIND                 such a claim was made and its verdict is yes
 *     KIND > 5%            the largest effect of such claims, without its sign; also < >= <=
 *     KIND@PHASE           claims of that phase alone; else of all phases before, and of an
 *                          expectation those of its own phase
 *     not, and, or, ( )
 *
 * A claim that says "no difference larger than 0.8%" counts as at most that. Unknown: all such
 * claims are inconclusive, or there is none. `ret_why` is what was found: "numa.penalty: -12.1%
 * [-12.4, -11.8]".
 */
enum lab_campaign_truth lab_campaign_judge(const struct lab_campaign *campaign,
                                           const struct lab_campaign_condition *condition,
                                           int phase, const struct lab_campaign_known *known,
                                           struct lab_arena *arena, const char **ret_why);

/* The analyses that conditions and expectations ask about this phase's claims; returns how many. */
int lab_campaign_asked(const struct lab_campaign *campaign, int phase, struct lab_arena *arena,
                       const struct lab_analysis *const **ret_analyses);

/*
 * Further words of a study that refines (its number in the phase), from the claims of phases
 * before, and of steps before; NULL = nothing is left to refine. The same claims give the same
 * words. `ret_why` says what was chosen and why.
 */
const char *const *lab_campaign_refine(const struct lab_campaign *campaign, int phase, int study,
                                       const struct lab_campaign_known *known,
                                       struct lab_arena *arena, const char **ret_why);

/* --- what follows --- */

enum lab_campaign_state {
    LAB_CAMPAIGN_WAITS, /* for phases before it */
    LAB_CAMPAIGN_READY,
    LAB_CAMPAIGN_RUNS,
    LAB_CAMPAIGN_DONE,
    LAB_CAMPAIGN_SKIPPED, /* `when` doesn't hold, or the budget has no room */
    LAB_CAMPAIGN_STOPPED, /* its gate failed */
    LAB_CAMPAIGN_BLOCKED, /* one before it was stopped */
};

extern const char *const lab_campaign_state_names[]; /* "waits", …, "done" */

struct lab_campaign_status { /* of a phase */
    enum lab_campaign_state state;
    const char *why; /* a sentence without full stop; NULL = nothing to say */
};

/*
 * Of each phase, in the arena. A phase whose condition is unknown runs: it may be what decides it.
 * Phases after a skipped one run, those after a stopped one don't.
 */
const struct lab_campaign_status *lab_campaign_decide(const struct lab_campaign *campaign,
                                                      const struct lab_campaign_known *known,
                                                      struct lab_arena *arena);

/* The phase to carry out now, one that has begun first; -1 = none is left. */
int lab_campaign_next(const struct lab_campaign *campaign,
                      const struct lab_campaign_status *statuses);

/* Whether a phase has begun and has runs left to do. */
bool lab_campaign_is_begun(const struct lab_campaign *campaign,
                           const struct lab_campaign_status *statuses);

/* At most so many studies run at once. */
#define LAB_CAMPAIGN_BESIDE_MOST 4

/*
 * Whether two studies of different phases may run at the same time: they have no device in common,
 * and, where they are real, no NUMA node either. What is on different NUMA nodes shares neither a
 * PCIe switch nor memory.
 */
bool lab_campaign_runs_beside(const struct lab_campaign *campaign,
                              const struct lab_campaign_found *one,
                              const struct lab_campaign_found *other);

/* --- the schedule --- */

struct lab_campaign_slot {
    int phase, study;        /* study: among the phase's */
    double start_s, seconds; /* NaN = unknown, and takes no time */
    double energy_j;         /* NaN = unknown */
    int64_t bytes;
    bool dropped; /* the budget has no room for its phase */
};

struct lab_campaign_schedule {
    struct lab_campaign_slot *slots; /* one for each study, as they run; dropped ones too */
    int slot_count;
    double seconds; /* of all that isn't dropped */
    double energy_j;
    int64_t bytes;
    int energy_unknown; /* studies whose energy is, likewise */
    int unknown;        /* studies whose time is unknown, less those whose points are, too */
};

/*
 * What was done is in it by what it took. The budget counts studies that refine by the most runs
 * that they may have, each as long as others on average. What has no room is dropped: of the phases
 * that haven't begun and that none depends on, the lowest priority first, of these the last one;
 * then those that have room are taken back.
 * LAB_ERR_USER where it has no room for the first phase.
 */
int lab_campaign_make_schedule(const struct lab_campaign *campaign,
                               const struct lab_campaign_known *known, struct lab_arena *arena,
                               struct lab_campaign_schedule *ret_schedule, struct lab_err *err);
