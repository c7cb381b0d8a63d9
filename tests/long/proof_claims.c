/*
 * proof_claims.c: studies drawn at random, with noise and without; claims of both are matched and
 * counted by kind. Every study has a seed of its own, so that jobs, which are processes, share them
 * out and one of them can be run again by its number.
 */
#include "proof_claims.h"

#include "base/clock.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROMISED     0.95
#define NO_EFFECT    1e-4  /* closer to nothing is nothing */
#define ROUNDING     1e-5  /* an interval that misses by less holds */
#define LOSS         0.005 /* that nobody would notice */
#define LOSS_LEVEL   0.01
#define BOUND_LEVEL  0.05
#define ANALYSES_MAX 32
#define TRUTH_BLOCKS 40 /* where the truth is a mean over noise */

/* --- one study --- */

struct pair { /* a study with noise and without */
    struct proof_study noisy, quiet;
    struct proof_drawn_machine machine;
    struct proof_drawn_study drawn;
    uint64_t index;
    bool loud; /* says all on stdout */
};

static double normal(struct proof_random *random) {
    double radius = sqrt(-2 * log(1 - proof_uniform(random)));
    return radius * cos(2 * M_PI * proof_uniform(random));
}

static int run_block(struct pair *pair, struct proof_random *random, int repeat, double pace,
                     const int *order, struct lab_err *err) {
    const struct proof_drawn_study *drawn = &pair->drawn;
    proof_define_drawn(&pair->machine, !drawn->in_step, drawn->drifts, pace);
    for (int i = 0; i < drawn->count; i++) {
        const struct proof_drawn_point *point = &drawn->points[order[i]];
        if (drawn->in_step)
            proof_define_drawn(&pair->machine, false, drawn->drifts,
                               pace * exp(pair->machine.noise.compute * normal(random)));
        if (proof_study_add_gang(&pair->noisy, point->ranks, point->count, repeat, err) < 0)
            return -1;
    }
    return 0;
}

/* Devices that compete for a link wait for each other in every iteration as long as none is faster.
 * Noise pulls them apart, and one copies while the other computes: all of them are faster with
 * noise than without. The truth of such a study is a mean over noise, for all its points alike. */
static bool is_shifted(const struct pair *pair) {
    bool shared = false;
    for (int i = 0; i < pair->drawn.count; i++)
        shared |= pair->drawn.points[i].count > 1 && !pair->drawn.points[i].ranks[0].phase;
    return shared && !pair->drawn.in_step && proof_shares_links(&pair->machine);
}

static int run_quiet(struct pair *pair, const int *order, struct lab_err *err) {
    const struct proof_drawn_study *drawn = &pair->drawn;
    bool shifted = is_shifted(pair);
    proof_define_drawn(&pair->machine, shifted, drawn->drifts, 1);
    for (int k = 0; k < (shifted ? TRUTH_BLOCKS : 1) * drawn->count; k++) {
        const struct proof_drawn_point *point = &drawn->points[order[k % drawn->count]];
        if (proof_study_add_gang(&pair->quiet, point->ranks, point->count, k / drawn->count, err) <
            0)
            return -1;
    }
    if (drawn->repeats > 1 && !shifted)
        proof_study_double(&pair->quiet);
    return 0;
}

static void shuffle(struct proof_random *random, int *order, int count) {
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(proof_uniform(random) * (i + 1)), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* Blocks in random order, each at its own pace; and the first one again without noise, in the same
 * order: analyses may name things by what came first. */
static int run_pair(struct pair *pair, struct proof_random *random, struct lab_err *err) {
    const struct proof_drawn_study *drawn = &pair->drawn;
    int *order = lab_mem_alloc((size_t)drawn->count, sizeof *order), result = 0;
    for (int r = 0; r < drawn->repeats && result == 0; r++) {
        double part = drawn->repeats > 1 ? (double)r / (drawn->repeats - 1) - 0.5 : 0;
        shuffle(random, order, drawn->count);
        if (r == 0)
            result = run_quiet(pair, order, err);
        if (result == 0)
            result = run_block(pair, random, r, exp(part * pair->machine.noise.blocks), order, err);
    }
    lab_mem_free(order);
    return result;
}

/* --- matching --- */

static bool same(const struct lab_claim *a, const struct lab_claim *b) {
    return lab_str_equal(a->kind, b->kind) && lab_claim_is_alike(a, b);
}

/* The same claim without noise: of several that are named alike, the one in the same place. */
static const struct lab_claim *find_truth(const struct lab_analysis_result *noisy, int at,
                                          const struct lab_analysis_result *quiet) {
    int before = 0;
    for (int i = 0; i < at; i++)
        before += same(&noisy->claims[i], &noisy->claims[at]);
    for (int i = 0; i < quiet->claim_count; i++)
        if (same(&quiet->claims[i], &noisy->claims[at]) && before-- == 0)
            return &quiet->claims[i];
    return NULL;
}

/* The second point's rate against the first's, less 1. */
static double compare(const struct proof_study *study, const char *const *points) {
    double logs[2] = {0};
    for (int p = 0; p < 2; p++) {
        int count = 0;
        for (int i = 0; i < study->table.run_count; i++)
            if (lab_str_equal(study->table.runs[i].point, points[p])) {
                logs[p] += log(study->table.runs[i].rate);
                count++;
            }
        logs[p] /= count;
    }
    return expm1(logs[1] - logs[0]);
}

static bool is_correlation(const struct lab_claim *claim) {
    return lab_str_equal(claim->unit, "");
}

struct truth {
    double effect;       /* NaN = unknown */
    double below, above; /* its own error, where it is a mean over noise */
    bool outside;        /* of an estimate: it isn't within what was run */
    bool found;          /* claimed since it was found: that chose its interval */
};

static bool is_drifting(const struct pair *pair) {
    bool drifts = false;
    for (int g = 0; g < pair->machine.gpus; g++)
        drifts |= pair->drawn.drifts && pair->machine.drift_per_minute[g] > 0;
    return drifts;
}

/* Two that take the same time without noise have the same noise. */
static bool take_the_same(const struct lab_claim *claim, const struct lab_analysis_result *quiet) {
    for (int i = 0; i < quiet->claim_count && !claim->unit; i++) {
        const struct lab_claim *other = &quiet->claims[i];
        struct lab_claim timed = *claim;
        timed.quantity = "time";
        if (lab_claim_is_alike(other, &timed) && fabs(other->effect) < NO_EFFECT)
            return true;
    }
    return false;
}

/* Where an analysis chose what to compare by what it saw, the machine without noise may have chosen
 * otherwise: then the rates of the two points tell, whichever is the reference. Where that gives
 * the analysis nothing to look at, what it finds is of noise, which correlates with nothing. */
static struct truth truth_of(const struct pair *pair, const struct lab_analysis_result *noisy,
                             int at, const struct lab_analysis_result *quiet) {
    const struct lab_claim *claim = &noisy->claims[at], *same = find_truth(noisy, at, quiet);
    if (same && !isnan(same->effect))
        return (struct truth){.effect = same->effect,
                              .below = isnan(same->low) ? 0 : same->effect - same->low,
                              .above = isnan(same->high) ? 0 : same->high - same->effect};
    if (same && same->unit && same->verdict == LAB_CLAIM_NO)
        return (struct truth){.effect = NAN, .outside = true};
    if (is_correlation(claim) || (!same && quiet->lacks))
        return (struct truth){.effect = is_drifting(pair) ? (double)NAN : 0, .found = true};
    if (take_the_same(claim, quiet))
        return (struct truth){.effect = 0};
    if (same || claim->unit || claim->scope_count != 2 ||
        !lab_str_equal(claim->quantity, "throughput"))
        return (struct truth){.effect = NAN};
    const char *const turned[] = {claim->scope[1], claim->scope[0]};
    double ahead = fabs(compare(&pair->noisy, claim->scope) - claim->effect),
           back = fabs(compare(&pair->noisy, turned) - claim->effect);
    return (struct truth){.effect = compare(&pair->quiet, ahead <= back ? claim->scope : turned)};
}

/* --- counting --- */

struct study_count { /* of one kind in one study */
    struct proof_count covered, bounds, slower;
    int64_t claims, tested, unmatched, yes, yes_false, compared, none;
};

static struct proof_kind_count *kind_of(struct proof_claims *claims, const char *kind) {
    for (int i = 0; i < claims->count; i++)
        if (strcmp(claims->kinds[i].kind, kind) == 0)
            return &claims->kinds[i];
    if (claims->count == PROOF_KINDS_MAX)
        return NULL;
    struct proof_kind_count *fresh = &claims->kinds[claims->count++];
    snprintf(fresh->kind, sizeof fresh->kind, "%s", kind);
    return fresh;
}

/* There is an effect or none, rather than a value in a unit. */
static bool is_effect(const struct lab_claim *claim) {
    return !claim->unit || is_correlation(claim);
}

static bool holds(const struct lab_claim *claim, struct truth truth) {
    double room = ROUNDING * (claim->unit ? fabs(truth.effect) : 1);
    double low = claim->effect - hypot(claim->effect - claim->low, truth.above),
           high = claim->effect + hypot(claim->high - claim->effect, truth.below);
    return !truth.outside && low - room <= truth.effect && truth.effect <= high + room;
}

static bool is_false(const struct lab_claim *claim, double truth) {
    return claim->n == 1 || fabs(truth) < NO_EFFECT || (claim->effect > 0) != (truth > 0);
}

/* NO without a bound: the estimate isn't within what was run. */
static bool is_beyond(const struct lab_claim *claim, struct truth truth) {
    return isnan(claim->bound) ? !truth.outside : fabs(truth.effect) > claim->bound + ROUNDING;
}

static void count_claim(const struct lab_claim *claim, struct truth truth,
                        struct study_count *count) {
    count->claims++;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return;
    count->tested++;
    if (isnan(truth.effect) && !truth.outside) {
        count->unmatched++;
        return;
    }
    count->compared += is_effect(claim);
    count->none += is_effect(claim) && fabs(truth.effect) < NO_EFFECT;
    if (!isnan(claim->low) && !isnan(claim->high) && !truth.found)
        proof_count_hit(&count->covered, holds(claim, truth));
    if (claim->verdict == LAB_CLAIM_NO)
        proof_count_hit(&count->bounds, is_beyond(claim, truth));
    if (claim->verdict != LAB_CLAIM_YES || !is_effect(claim))
        return;
    count->yes++;
    count->yes_false += is_false(claim, truth.effect);
    proof_count_hit(&count->slower, (claim->effect > 0 ? truth.effect : -truth.effect) < -LOSS);
}

static void add_rate(struct proof_rate *rate, const struct proof_count *count, double promised) {
    double off = (double)count->hits - promised * (double)count->trials;
    rate->hits += count->hits;
    rate->trials += count->trials;
    rate->squares += off * off;
}

/* A bit for each condition that the study meets. */
static unsigned conditions_of(const struct pair *pair) {
    const struct proof_drawn_machine *machine = &pair->machine;
    double level = fmax(machine->noise.compute, machine->noise.copy);
    int repeats = pair->drawn.repeats;
    unsigned noise = level < 0.003  ? PROOF_NOISE_LOW
                     : level < 0.01 ? PROOF_NOISE_MEDIUM
                     : level < 0.05 ? PROOF_NOISE_HIGH
                                    : PROOF_NOISE_LOUD;
    unsigned conditions = repeats >= 2 ? 1u << (PROOF_REPEATS_2 + repeats - 2) : 0;
    return conditions | 1u << noise | (machine->noise.within > 0) << PROOF_AUTOCORRELATED |
           (machine->noise.tail_per_s > 0) << PROOF_HEAVY_TAILS |
           (machine->noise.blocks != 0) << PROOF_BLOCK_DRIFT |
           machine->nothing << PROOF_NOTHING_PLANTED;
}

/* Returns whether one is false. */
static bool add_study(struct proof_kind_count *kind, const struct study_count *count,
                      const struct pair *pair) {
    double share = count->yes ? (double)count->yes_false / (double)count->yes : 0;
    bool wrong = count->yes_false > 0;
    /* where some are effects, such as what compiling gains, the share of false ones is promised */
    bool null = pair->machine.nothing && count->none > 0 && count->none == count->compared;
    kind->studies += count->tested > 0;
    kind->claims += count->claims;
    kind->tested += count->tested;
    kind->unmatched += count->unmatched;
    kind->yes += count->yes;
    kind->yes_false += count->yes_false;
    kind->false_share += share;
    kind->false_share_squares += share * share;
    kind->null_studies += null;
    kind->null_false += null && wrong;
    for (int c = 0; c < PROOF_CONDITIONS; c++)
        if (conditions_of(pair) & 1u << c) {
            kind->under[c].hits += count->covered.hits;
            kind->under[c].trials += count->covered.trials;
        }
    add_rate(&kind->covered, &count->covered, PROMISED);
    add_rate(&kind->bounds, &count->bounds, BOUND_LEVEL);
    add_rate(&kind->slower, &count->slower, LOSS_LEVEL);
    if (wrong || (!kind->example && 2 * count->covered.hits < count->covered.trials))
        kind->example = pair->index;
    return wrong;
}

static void say(const struct lab_claim *claim, struct truth truth) {
    bool missed = !isnan(claim->low) && (!isnan(truth.effect) || truth.outside),
         wrong = claim->verdict == LAB_CLAIM_YES && is_effect(claim);
    printf("  %-20s %-12s effect %+.5g [%.5g, %.5g] truth %+.5g n %d%s%s  %s / %s\n", claim->kind,
           lab_claim_verdict_name(claim->verdict), claim->effect, claim->low, claim->high,
           truth.effect, claim->n, missed && !holds(claim, truth) ? " MISSED" : "",
           wrong && is_false(claim, truth.effect) ? " FALSE" : "", claim->subject,
           claim->reference);
}

static bool count_result(const struct pair *pair, const struct lab_analysis_result *noisy,
                         const struct lab_analysis_result *quiet, struct proof_claims *claims) {
    bool wrong = false;
    struct study_count counts[PROOF_KINDS_MAX] = {0};
    LAB_AUTO(arena, arena);
    for (int i = 0; i < noisy->claim_count; i++) {
        struct proof_kind_count *kind = kind_of(claims, noisy->claims[i].kind);
        struct truth truth = truth_of(pair, noisy, i, quiet);
        if (!kind)
            continue;
        kind->at_least |= noisy->claims[i].at_least;
        count_claim(&noisy->claims[i], truth, &counts[kind - claims->kinds]);
        if (!kind->sentence[0] && noisy->claims[i].verdict == LAB_CLAIM_YES)
            snprintf(kind->sentence, sizeof kind->sentence, "%s.",
                     lab_claim_sentence(&noisy->claims[i], &arena));
        if (pair->loud)
            say(&noisy->claims[i], truth);
    }
    for (int k = 0; k < claims->count; k++)
        if (counts[k].claims > 0)
            wrong |= add_study(&claims->kinds[k], &counts[k], pair);
    return wrong;
}

/* Every analysis that would be part of the study's report. */
static int analyse(struct pair *pair, struct proof_claims *claims, struct lab_err *err) {
    struct lab_analysis_choice choices[ANALYSES_MAX];
    int count = lab_analysis_choose(&pair->noisy.table, ANALYSES_MAX, choices);
    bool wrong = false;
    for (int i = 0; i < count; i++) {
        struct lab_analysis_result noisy = {0}, quiet = {0};
        const char *name = choices[i].analysis->name;
        if (proof_analyse(&pair->noisy, name, &noisy, err) < 0)
            return lab_err_context(err, "%s", name);
        if (pair->loud)
            printf("%s: %s\n", name, noisy.answer);
        if (noisy.claim_count == 0)
            continue;
        if (proof_analyse(&pair->quiet, name, &quiet, err) < 0)
            return lab_err_context(err, "%s without noise", name);
        wrong |= count_result(pair, &noisy, &quiet, claims);
    }
    claims->studies++;
    claims->runs += pair->noisy.table.run_count;
    claims->null_studies += pair->machine.nothing;
    claims->null_false += pair->machine.nothing && wrong;
    return 0;
}

static void describe(const struct pair *pair) {
    const struct proof_drawn_machine *m = &pair->machine;
    printf("study %llu: %s, %d points, %d repeats; %d GPUs, %d NUMA nodes, %s\n"
           "  noise: compute %.4f, copy %.4f, within %.4f over %.4g s, each %.4f, tails %.3g/s, "
           "slope %.3g/min, blocks %.4f; remote %.4f to %.4f, join %.3g GB/s of %.3g\n",
           (unsigned long long)pair->index, pair->drawn.option, pair->drawn.count,
           pair->drawn.repeats, m->gpus, m->nodes, m->nothing ? "nothing planted" : "planted",
           m->noise.compute, m->noise.copy, m->noise.within, m->noise.within_s, m->noise.each,
           m->noise.tail_per_s, m->noise.slope_per_minute, m->noise.blocks, m->remote_small,
           m->remote_large, m->join_gb_s, m->slot_gb_s);
}

static int run_study(uint64_t index, const struct proof_claims_request *request,
                     const struct lab_machine *host, struct proof_claims *claims,
                     struct lab_err *err) {
    struct proof_random random = {.seed = lab_random_bits(request->seed, index)};
    struct pair pair = {.index = index, .loud = request->only >= 0};
    uint64_t seed = lab_random_bits(random.seed, UINT64_MAX),
             quiet_seed = lab_random_bits(random.seed, UINT64_MAX - 1);
    LAB_AUTO(arena, arena);
    proof_draw_machine(&random, &pair.machine);
    proof_draw_study(&random, &pair.machine, &arena, &pair.drawn);
    if (pair.loud)
        describe(&pair);
    proof_study_begin(&pair.noisy, host, "drawn", pair.drawn.option, seed);
    proof_study_begin(&pair.quiet, host, "drawn", pair.drawn.option, quiet_seed);
    pair.noisy.table.answers = pair.quiet.table.answers = pair.drawn.answers;
    int result = run_pair(&pair, &random, err);
    if (result == 0)
        result = analyse(&pair, claims, err);
    proof_study_end(&pair.noisy);
    proof_study_end(&pair.quiet);
    return result < 0 ? lab_err_context(err, "study %llu (%s)", (unsigned long long)index,
                                        pair.drawn.option)
                      : 0;
}

/* --- all of them, in jobs --- */

static int run_job(int job, const struct proof_claims_request *request, struct proof_claims *claims,
                   struct lab_err *err) {
    struct lab_machine *host = NULL;
    int64_t began_ns = lab_clock_now(lab_clock_system());
    int result = lab_machine_open(NULL, &host, err);
    int from = request->only >= 0 ? (int)request->only : 1 + job,
        to = request->only >= 0 ? from : request->studies;
    for (int i = from; i <= to && result == 0; i += request->jobs) {
        double passed_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - began_ns);
        if (request->limit_s > 0 && passed_s > request->limit_s)
            break;
        result = run_study((uint64_t)i, request, host, claims, err);
    }
    lab_machine_close(host);
    return result;
}

static void add_rates(struct proof_rate *sum, const struct proof_rate *other) {
    sum->hits += other->hits;
    sum->trials += other->trials;
    sum->squares += other->squares;
}

static void add_claims(struct proof_claims *sum, const struct proof_claims *other) {
    sum->studies += other->studies;
    sum->runs += other->runs;
    sum->null_studies += other->null_studies;
    sum->null_false += other->null_false;
    for (int i = 0; i < other->count; i++) {
        const struct proof_kind_count *kind = &other->kinds[i];
        struct proof_kind_count *into = kind_of(sum, kind->kind);
        if (!into)
            continue;
        into->studies += kind->studies;
        into->claims += kind->claims;
        into->tested += kind->tested;
        into->at_least |= kind->at_least;
        into->unmatched += kind->unmatched;
        into->yes += kind->yes;
        into->yes_false += kind->yes_false;
        into->false_share += kind->false_share;
        into->false_share_squares += kind->false_share_squares;
        into->null_studies += kind->null_studies;
        into->null_false += kind->null_false;
        into->example = into->example ? into->example : kind->example;
        if (!into->sentence[0])
            memcpy(into->sentence, kind->sentence, sizeof into->sentence);
        for (int c = 0; c < PROOF_CONDITIONS; c++) {
            into->under[c].hits += kind->under[c].hits;
            into->under[c].trials += kind->under[c].trials;
        }
        add_rates(&into->covered, &kind->covered);
        add_rates(&into->bounds, &kind->bounds);
        add_rates(&into->slower, &kind->slower);
    }
}

/* All of what comes; a job that fails says why and hands over nothing. */
static bool collect(int from, struct proof_claims *claims) {
    struct proof_claims *other = lab_mem_alloc(1, sizeof *other);
    size_t have = 0;
    ssize_t got;
    while (have < sizeof *other &&
           (got = read(from, (char *)other + have, sizeof *other - have)) > 0)
        have += (size_t)got;
    if (have == sizeof *other)
        add_claims(claims, other);
    lab_mem_free(other);
    close(from);
    return have == sizeof(struct proof_claims);
}

static bool hand_over(int to, const struct proof_claims *claims) {
    size_t done = 0;
    while (done < sizeof *claims) {
        ssize_t put = write(to, (const char *)claims + done, sizeof *claims - done);
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

static int child(int job, const struct proof_claims_request *request, int to) {
    struct proof_claims *claims = lab_mem_alloc(1, sizeof *claims);
    struct lab_err err = LAB_ERR_INIT;
    int result = run_job(job, request, claims, &err);
    if (result < 0)
        fprintf(stderr, "proof: seed %llu: %s\n", (unsigned long long)request->seed, err.text);
    fflush(stdout);
    bool handed = result == 0 && hand_over(to, claims);
    lab_mem_free(claims);
    return handed ? 0 : 1;
}

int proof_claims_run(const struct proof_claims_request *request, struct proof_claims *ret_claims,
                     struct lab_err *err) {
    int jobs = request->only >= 0 ? 1 : request->jobs, from[64];
    bool complete = true;
    *ret_claims = (struct proof_claims){0};
    for (int job = 0; job < jobs; job++) {
        int ends[2];
        pid_t pid = pipe(ends) < 0 ? -1 : fork();
        if (pid < 0)
            return lab_err_set(err, LAB_ERR_SYSTEM, "no job could be started");
        if (pid == 0) {
            close(ends[0]);
            _exit(child(job, request, ends[1]));
        }
        close(ends[1]);
        from[job] = ends[0];
    }
    for (int job = 0; job < jobs; job++) {
        int status;
        complete &= collect(from[job], ret_claims);
        wait(&status);
    }
    return complete ? 0 : lab_err_set(err, LAB_ERR_SYSTEM, "not all studies could be run");
}
