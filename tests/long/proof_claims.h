/*
 * proof_claims.h: every claim of every analysis against planted truth, without knowing any of them.
 * A machine and a study are drawn at random; the study is run on the machine, and once more on the
 * same machine without noise. Whatever claims an analysis makes of both have the same kind,
 * subject, reference and quantity: the effect without noise is the truth of the other.
 *
 *   proof_draw.c   a machine at random
 *   proof_plan.c   a study of it at random
 *   proof_claims.c runs both, matches the claims, counts
 *   proof_page.c   counts into verdicts, tables and the first page of docs/PROOF.md
 */
#pragma once

#include "proof.h"

/* --- what is drawn --- */

struct proof_random {
    uint64_t seed, drawn;
};

#define PROOF_GPUS_MAX  8
#define PROOF_NODES_MAX 4

struct proof_drawn_machine {
    bool nothing; /* is planted: no remote effect, no slow device, nothing shared */
    int nodes, gpus;
    int node_of[PROOF_GPUS_MAX];
    int distances[PROOF_NODES_MAX][PROOF_NODES_MAX];
    double tflops, memory_gb_s, kernel_us, launch_us, copy_us, slot_gb_s, slot_us;
    double join_gb_s, join_us;           /* between nodes */
    double bridge_gb_s[PROOF_NODES_MAX]; /* that a node's GPUs share; 0 = none */
    double remote_small, remote_large;   /* a copy takes so much longer from the farthest node */
    double slow_compute[PROOF_GPUS_MAX], slow_copy[PROOF_GPUS_MAX];
    double drift_per_minute[PROOF_GPUS_MAX]; /* in studies of long runs */
    double framework_us;                     /* a layer of training, on the host; 0 = none */
    struct {
        double compute, copy;    /* between runs: standard deviation of logarithms */
        double within, within_s; /* autocorrelated, and how long it is remembered */
        double each;             /* of single kernels and copies */
        double tail_per_s, tail_us;
        double slope_per_minute; /* within a run */
        double blocks;           /* the last block's pace against the first's, as a logarithm */
    } noise;
};

struct proof_drawn_point { /* one rank, or several at once */
    struct proof_point ranks[PROOF_RANKS_MAX];
    int count;
};

struct proof_drawn_study {
    const char *option; /* "numa_study" */
    const char *const *answers;
    struct proof_drawn_point *points;
    int count, repeats;
    /* Ranks wait for each other in every step. Noise of each by itself would make all of them
     * slower, as the slowest is: that isn't the machine without noise any more. So a run has one
     * pace for all. */
    bool in_step;
    bool drifts; /* its runs are long enough for devices to become slower */
};

void proof_draw_machine(struct proof_random *random, struct proof_drawn_machine *ret_machine);
bool proof_shares_links(const struct proof_drawn_machine *machine);
/* Makes `sim:drawn` mean it; all its rates are multiplied by `pace`. */
void proof_define_drawn(const struct proof_drawn_machine *machine, bool noisy, bool drifts,
                        double pace);
void proof_draw_study(struct proof_random *random, const struct proof_drawn_machine *machine,
                      struct lab_arena *arena, struct proof_drawn_study *ret_study);
double proof_uniform(struct proof_random *random);

/* --- what is counted --- */

struct proof_rate {
    int64_t hits, trials;
    /* Σ over studies of (hits − promised · trials)²: claims of one study share runs */
    double squares;
};

enum { /* under which intervals are counted by themselves */
       PROOF_REPEATS_2,
       PROOF_REPEATS_3,
       PROOF_REPEATS_4,
       PROOF_REPEATS_5,
       PROOF_REPEATS_6,
       PROOF_NOISE_LOW,
       PROOF_NOISE_MEDIUM,
       PROOF_NOISE_HIGH,
       PROOF_NOISE_LOUD,
       PROOF_AUTOCORRELATED,
       PROOF_HEAVY_TAILS,
       PROOF_BLOCK_DRIFT,
       PROOF_NOTHING_PLANTED,
       PROOF_CONDITIONS
};

struct proof_kind_count {
    char kind[64];
    char sentence[240]; /* of one such claim */
    struct proof_count under[PROOF_CONDITIONS];
    int64_t studies; /* that tested it */
    int64_t claims, tested;
    bool at_least;             /* its intervals cover at least so often */
    int64_t unmatched;         /* claims that the machine without noise doesn't have */
    struct proof_rate covered; /* of intervals */
    struct proof_rate bounds;  /* NO: of those, the truth is farther than the bound */
    struct proof_rate slower;  /* YES: of those, who acts on it loses more than 0.5 % */
    int64_t yes, yes_false;    /* there is no such effect, or in the other direction */
    double false_share, false_share_squares; /* of a study's YES, summed over studies */
    int64_t null_studies, null_false; /* nothing planted; with any false claim of this kind */
    uint64_t example;                 /* a study with a false claim, or not covered; 0 = none */
};

#define PROOF_KINDS_MAX 96

struct proof_claims {
    struct proof_kind_count kinds[PROOF_KINDS_MAX];
    int count;
    int64_t studies, null_studies, null_false; /* with any false claim of any kind */
    int64_t runs;
};

struct proof_claims_request {
    uint64_t seed;
    int studies, jobs;
    double limit_s; /* no study is begun later; 0 = none */
    int64_t only;   /* this one alone, with all its claims on stdout; -1 = all */
};

int proof_claims_run(const struct proof_claims_request *request, struct proof_claims *ret_claims,
                     struct lab_err *err);

/* --- verdicts --- */

bool proof_claims_hold(const struct proof_claims *claims, bool sample);
void proof_claims_text(const struct proof_claims *claims, bool sample, struct lab_str *out);
/* The first page of docs/PROOF.md. */
void proof_claims_page(const struct proof_claims *claims, bool sample, uint64_t seed,
                       struct lab_str *out);
