/* proof_page.c: counts of claims into verdicts, a table for terminals and the page that people
 * read. */
#include "proof_claims.h"

#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define COVERED      0.95
#define COVERED_LOW  0.93
#define COVERED_HIGH 0.97
#define FALSE_SHARE  0.05
#define SLOWER       0.01
#define INTERVALS    2000
#define NULL_STUDIES 300
#define RARE         0.05 /* share of studies: the kind is hardly ever without effect */
#define LEVEL        0.01
#define SAMPLE_P     0.001 /* over all checks of all kinds together */
/* so many claims of a kind, and none with a truth: the proof doesn't know it */
#define SAMPLE_CLAIMS 20

enum check { CHECK_COVERS, CHECK_FALSE, CHECK_NULL, CHECK_BOUNDS, CHECK_SLOWER, CHECKS };

static double share(int64_t hits, int64_t trials) {
    return trials > 0 ? (double)hits / (double)trials : (double)NAN;
}

/* Claims of one study share runs, so that they are worth fewer independent ones. */
static int64_t independent(const struct proof_rate *rate, double promised) {
    double alone = promised * (1 - promised) * (double)rate->trials;
    double excess = alone > 0 ? fmax(1, rate->squares / alone) : 1;
    return (int64_t)((double)rate->trials / excess + 0.5);
}

/* Of so many hits or more, as many independent trials would have them. */
static double p_above(const struct proof_rate *rate, double promised) {
    int64_t n = independent(rate, promised);
    int64_t hits = (int64_t)(share(rate->hits, rate->trials) * (double)n + 0.5);
    return 1 - lab_stats_binomial_cdf(hits - 1, n, promised);
}

/* That a study's mean share of false ones among its YES is so large or larger at 5 %. */
static double p_false(const struct proof_kind_count *kind) {
    double n = (double)kind->studies, mean = kind->false_share / n;
    double variance = (kind->false_share_squares / n - mean * mean) / n;
    return variance > 0 ? 0.5 * erfc((mean - FALSE_SHARE) / sqrt(2 * variance)) : 1;
}

/* Intervals of three runs and more. Those of two are wider on purpose: they have no upper limit. */
static struct proof_count without_two_runs(const struct proof_kind_count *kind) {
    const struct proof_count *two = &kind->under[PROOF_REPEATS_2];
    return (struct proof_count){.hits = kind->covered.hits - two->hits,
                                .trials = kind->covered.trials - two->trials};
}

/* That a coverage on the edge of what is promised gives so few hits, or so many. */
static double p_covers(const struct proof_kind_count *kind) {
    double worth = (double)independent(&kind->covered, COVERED) / (double)kind->covered.trials;
    struct proof_count more = without_two_runs(kind);
    int64_t n = (int64_t)(worth * (double)kind->covered.trials + 0.5),
            hits = (int64_t)(worth * (double)kind->covered.hits + 0.5),
            more_n = (int64_t)(worth * (double)more.trials + 0.5),
            more_hits = (int64_t)(worth * (double)more.hits + 0.5);
    double few = lab_stats_binomial_cdf(hits, n, COVERED_LOW),
           many = kind->at_least || more_n == 0
                      ? 1
                      : 1 - lab_stats_binomial_cdf(more_hits - 1, more_n, COVERED_HIGH);
    return n > 0 ? fmin(few, many) : (double)NAN;
}

/* NaN = there is nothing to check. */
static double check_p(const struct proof_kind_count *kind, enum check check) {
    switch (check) {
    case CHECK_COVERS:
        return kind->covered.trials > 0 ? p_covers(kind) : (double)NAN;
    case CHECK_FALSE:
        return kind->yes > 0 ? p_false(kind) : (double)NAN;
    case CHECK_NULL:
        return kind->null_studies > 0 ? 1 - lab_stats_binomial_cdf(kind->null_false - 1,
                                                                   kind->null_studies, FALSE_SHARE)
                                      : (double)NAN;
    case CHECK_BOUNDS:
        return kind->bounds.trials > 0 ? p_above(&kind->bounds, FALSE_SHARE) : (double)NAN;
    default:
        return kind->slower.trials > 0 ? p_above(&kind->slower, SLOWER) : (double)NAN;
    }
}

static double check_share(const struct proof_kind_count *kind, enum check check) {
    switch (check) {
    case CHECK_COVERS:
        return share(kind->covered.hits, kind->covered.trials);
    case CHECK_FALSE:
        return kind->yes > 0 ? kind->false_share / (double)kind->studies : (double)NAN;
    case CHECK_NULL:
        return share(kind->null_false, kind->null_studies);
    case CHECK_BOUNDS:
        return share(kind->bounds.hits, kind->bounds.trials);
    default:
        return share(kind->slower.hits, kind->slower.trials);
    }
}

static int count_checks(const struct proof_claims *claims) {
    int count = 0;
    for (int i = 0; i < claims->count; i++)
        for (int c = 0; c < CHECKS; c++)
            count += !isnan(check_p(&claims->kinds[i], (enum check)c));
    return count;
}

/* Hardly any study is without effect, by chance alone: their share says nothing. */
static bool is_null_rare(const struct proof_kind_count *kind) {
    return kind->null_studies < NULL_STUDIES &&
           (double)kind->null_studies < RARE * (double)kind->studies;
}

/* Claimed because it was found, which chose its interval, but for a few. */
static bool is_interval_rare(const struct proof_kind_count *kind) {
    return (double)kind->covered.trials <= RARE * (double)kind->studies;
}

/* Enough of them for the numbers to mean what they say. */
static bool is_enough(const struct proof_kind_count *kind) {
    return (is_interval_rare(kind) || kind->covered.trials >= INTERVALS) &&
           (is_null_rare(kind) || kind->null_studies >= NULL_STUDIES);
}

/* Whether anything that it says was compared with the truth. */
static bool is_judged(const struct proof_kind_count *kind) {
    return kind->covered.trials + kind->bounds.trials + kind->yes > 0;
}

static bool check_holds(const struct proof_claims *claims, const struct proof_kind_count *kind,
                        enum check check, bool sample) {
    double p = check_p(kind, check), value = check_share(kind, check);
    if (isnan(p))
        return true;
    if (sample)
        return p > SAMPLE_P / count_checks(claims);
    if (check == CHECK_COVERS && is_interval_rare(kind))
        return true;
    if (check == CHECK_COVERS && kind->covered.trials >= INTERVALS) {
        struct proof_count more = without_two_runs(kind);
        return value >= COVERED_LOW && (kind->at_least || more.trials == 0 ||
                                        share(more.hits, more.trials) <= COVERED_HIGH);
    }
    if (check == CHECK_NULL && is_null_rare(kind))
        return true;
    return p > LEVEL; /* not above what is promised for certain */
}

/* Why a kind says nothing of simulated machines; NULL = there is no reason. */
static const char *why_not_judged(const struct proof_kind_count *kind) {
    static const struct {
        const char *kind, *reason;
    } reasons[] = {
        {"contention.tuning", "drawn studies don't tune"},
        {"variance.different_configurations", "drawn studies don't tune"},
        {"variance.suboptimal_convergence", "drawn studies don't tune"},
        {"variance.pcie_correlation", "drawn contention studies aren't sampled"},
        {"variance.cpu_spikes", "drawn contention studies aren't sampled"},
        {"numa.local", "says that a GPU's local NUMA node wasn't tested"},
        {"stability.change", "named by a measured time"},
        {"metrics.unused", "says that a key had no effect"},
        {"stability.longer", "says that longer runs weren't tested"},
    };
    bool unknown = 2 * kind->unmatched >= kind->tested; /* most of them have no truth */
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && unknown; i++)
        if (strcmp(reasons[i].kind, kind->kind) == 0)
            return reasons[i].reason;
    return NULL;
}

/* NULL = it holds. */
static const char *fault_of(const struct proof_claims *claims, const struct proof_kind_count *kind,
                            bool sample) {
    static const char *const names[] = {"coverage", "false yes", "null studies", "bounds",
                                        "advice"};
    for (int c = 0; c < CHECKS; c++)
        if (!check_holds(claims, kind, (enum check)c, sample))
            return names[c];
    if (why_not_judged(kind) || (sample && (is_judged(kind) || kind->claims < SAMPLE_CLAIMS)))
        return NULL;
    return !is_judged(kind) ? "not judged" : is_enough(kind) ? NULL : "too few";
}

bool proof_claims_hold(const struct proof_claims *claims, bool sample) {
    bool good = claims->count > 0;
    for (int i = 0; i < claims->count; i++)
        good = good && !fault_of(claims, &claims->kinds[i], sample);
    return good;
}

/* --- tables --- */

static const char *const conditions[PROOF_CONDITIONS] = {
    [PROOF_REPEATS_2] = "2 runs",
    [PROOF_REPEATS_3] = "3 runs",
    [PROOF_REPEATS_4] = "4 runs",
    [PROOF_REPEATS_5] = "5 runs",
    [PROOF_REPEATS_6] = "6 runs",
    [PROOF_NOISE_LOW] = "noise below 0.3%",
    [PROOF_NOISE_MEDIUM] = "noise of 0.3 to 1%",
    [PROOF_NOISE_HIGH] = "noise of 1 to 3%",
    [PROOF_NOISE_LOUD] = "noise of 5 to 20%",
    [PROOF_AUTOCORRELATED] = "autocorrelated within runs",
    [PROOF_HEAVY_TAILS] = "heavy tails",
    [PROOF_BLOCK_DRIFT] = "drift between blocks",
    [PROOF_NOTHING_PLANTED] = "nothing planted",
};

static struct proof_count sum_under(const struct proof_claims *claims, int condition) {
    struct proof_count sum = {0};
    for (int i = 0; i < claims->count; i++) {
        sum.hits += claims->kinds[i].under[condition].hits;
        sum.trials += claims->kinds[i].under[condition].trials;
    }
    return sum;
}

static const char *percent(double value, struct lab_arena *arena) {
    return isnan(value) ? "–" : lab_arena_printf(arena, "%.1f%%", 100 * value);
}

void proof_claims_text(const struct proof_claims *claims, bool sample, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    lab_str_printf(out, "%-22s %9s %8s %7s %6s %6s %7s %6s %6s %7s  %s\n", "claim kind",
                   "intervals", "coverage", "YES", "false", "NO", "beyond", "null", "false",
                   "slower", "");
    for (int i = 0; i < claims->count; i++) {
        const struct proof_kind_count *kind = &claims->kinds[i];
        const char *fault = fault_of(claims, kind, sample);
        lab_str_printf(out, "%-22s %9lld %8s %7lld %6lld %6lld %7lld %6lld %6lld %7lld  %s%s",
                       kind->kind, (long long)kind->covered.trials,
                       percent(check_share(kind, CHECK_COVERS), &arena), (long long)kind->yes,
                       (long long)kind->yes_false, (long long)kind->bounds.trials,
                       (long long)kind->bounds.hits, (long long)kind->null_studies,
                       (long long)kind->null_false, (long long)kind->slower.hits,
                       fault             ? "FAILS: "
                       : is_judged(kind) ? "holds"
                                         : "not judged",
                       fault ? fault : "");
        if (kind->unmatched > 0)
            lab_str_printf(out, "; %lld of %lld claims without a truth", (long long)kind->unmatched,
                           (long long)kind->claims);
        if (fault && kind->example)
            lab_str_printf(out, "; see --study %llu", (unsigned long long)kind->example);
        lab_str_add(out, "\n");
    }
    for (int c = 0; c < PROOF_CONDITIONS; c++) {
        struct proof_count sum = sum_under(claims, c);
        lab_str_printf(out, "%s%s %s of %lld", c ? ", " : "coverage: ", conditions[c],
                       percent(share(sum.hits, sum.trials), &arena), (long long)sum.trials);
    }
    lab_str_printf(out, "\n%lld studies; of %lld with nothing planted, %lld make a false claim\n",
                   (long long)claims->studies, (long long)claims->null_studies,
                   (long long)claims->null_false);
}

/* --- the page --- */

static const char promises[] =
    "## What is promised\n\n"
    "| a claim says | promise |\n|---|---|\n"
    "| an interval at 95% | it holds the truth in 93 to 97% of at least 2,000 |\n"
    "| an interval of two runs, or a prediction's | wider on purpose: it holds the truth in at "
    "least 93% |\n"
    "| yes, there is an effect | of a study's claims at most 5% are false: no effect, or in the "
    "other direction |\n"
    "| no difference larger than x | the truth is farther in at most 5% |\n"
    "| anything, of a machine with nothing planted | at most 5% of at least 300 studies make any "
    "false claim of a kind |\n"
    "| which of two is faster | who acts on it loses more than 0.5% in at most 1% |\n\n";

static const char legend[] =
    "\n*Beyond*: claims of no difference whose bound is violated. *Null studies*: nothing is "
    "planted, and no claim of the kind has an effect; *with a false claim*: any of that kind. "
    "*Loses*: acting on the claim loses more than 0.5% of throughput. – : there is none. *Rare*: "
    "the kind is hardly ever without effect, so that no share is judged.\n";

static const char method[] =
    "\n## How it was done\n\n"
    "- **Machines are drawn at random**: 1 to 8 GPUs, 1 to 4 NUMA nodes, rates, links, latencies. "
    "Planted: remote penalties, slow devices, drift within runs, shared bridges; in a third of "
    "them nothing.\n"
    "- **So is noise**: 0.2 to 3% between runs, autocorrelated, heavy-tailed and sloping within "
    "runs, drift of up to 5% between blocks.\n"
    "- **So are studies**: every shipped kind, 2 to 6 runs a point, in blocks of random order.\n"
    "- **The truth is the same study on the same machine without noise.** Where GPUs share a link, "
    "it is the mean of 40 runs with noise: without noise they run in step and wait for each "
    "other.\n"
    "- Claims are matched by kind, subject, reference and quantity. No code of the proof knows an "
    "analysis.\n"
    "- Noise has no truth on a machine without it. Its spread is the same in two phases whose "
    "times are; nothing that a sampler sees correlates with it.\n"
    "- A break-even that isn't within the tested range must not be claimed, and vice versa.\n"
    "- Effects below 0.01% count as none. Intervals that miss by less than 0.001% hold.\n"
    "- Claims of one study share runs. Tests count them as fewer independent ones.\n"
    "- One run a point must give no verdict: 4% of the studies have one; any \"yes\" there is "
    "false.\n"
    "- Seeds are fresh each time. `build/proof --only claims --seed SEED --study N` shows one "
    "study.\n"
    "- `make test` runs a sample. It fails at p < 0.001 over all checks together.\n\n";

static const char others[] =
    "## Published rates of others\n\n"
    "| who | what | rate |\n|---|---|--:|\n"
    "| Mozilla Perfherder | alert groups that were false | 12.5% |\n"
    "| ROCm TransformerEngine | A/A comparisons, a fresh process per sample | about 0% |\n";

static const char not_proven[] =
    "\nThe others' rates are from real machines, ours from simulated ones: they are no contest.\n\n"
    "## What is not proven\n\n"
    "- **Anything about real machines.** `gpulab selftest` measures the false-claim rate of the "
    "machine it runs on.\n"
    "- Claims that aren't in the tables. Causes of contention and copies of a GPU alone need "
    "probes, which aren't simulated here.\n"
    "- The size of a correlation: only those found are claimed, which favours large ones.\n"
    "- Spreads of iteration times where phases take different times.\n"
    "- Truth is the machine without noise. Noise also shifts means where two terms balance: copies "
    "as long as compute.\n"
    "- Estimates in a unit, such as a compute rate, are compared with the same analysis without "
    "noise. A model that is wrong without noise is not found here, but by planted rates below.\n"
    "- Drift is common to all points of a block. Drift of a single device within a block is not "
    "covered.\n"
    "- Noise of one run in a block is independent of the others'. In training studies it is the "
    "same for all devices of a run: each one's own would slow all that wait for it.\n";

static const char *null_words(const struct proof_kind_count *kind, struct lab_arena *arena) {
    return is_null_rare(kind) && kind->null_studies > 0
               ? "rare"
               : percent(check_share(kind, CHECK_NULL), arena);
}

static void add_row(const struct proof_claims *claims, const struct proof_kind_count *kind,
                    bool sample, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    const char *fault = fault_of(claims, kind, sample);
    struct proof_count more = without_two_runs(kind);
    lab_str_printf(out,
                   "| `%s` | %lld | %s%s | %s | %lld | %s | %lld | %s | %lld | %s | %s | %s |\n",
                   kind->kind, (long long)kind->covered.trials, kind->at_least ? "≥93%: " : "",
                   percent(check_share(kind, CHECK_COVERS), &arena),
                   percent(share(more.hits, more.trials), &arena), (long long)kind->yes,
                   percent(check_share(kind, CHECK_FALSE), &arena), (long long)kind->bounds.trials,
                   percent(check_share(kind, CHECK_BOUNDS), &arena), (long long)kind->null_studies,
                   null_words(kind, &arena), percent(check_share(kind, CHECK_SLOWER), &arena),
                   fault ? lab_arena_printf(&arena, "**no: %s**", fault) : "yes");
}

static void add_intervals(const struct proof_claims *claims, bool sample, struct lab_str *out) {
    lab_str_add(out, "## What was measured\n\n"
                     "| claim kind | intervals | coverage | of 3 runs and more | yes | false | no "
                     "| beyond | null studies | with a false claim | loses | holds |\n"
                     "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
    for (int i = 0; i < claims->count; i++)
        if (!is_interval_rare(&claims->kinds[i]))
            add_row(claims, &claims->kinds[i], sample, out);
    lab_str_add(out, legend);
}

/* Kinds that have no interval, or none whose truth is known. */
static void add_others(const struct proof_claims *claims, bool sample, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    lab_str_add(out,
                "\nClaims without an interval:\n\n"
                "| claim kind | yes | false | no | beyond | null studies | with a false claim | "
                "result |\n|---|--:|--:|--:|--:|--:|--:|---|\n");
    for (int i = 0; i < claims->count; i++) {
        const struct proof_kind_count *kind = &claims->kinds[i];
        const char *fault = fault_of(claims, kind, sample), *reason = why_not_judged(kind);
        if (!is_interval_rare(kind))
            continue;
        lab_str_printf(out, "| `%s` | %lld | %s | %lld | %s | %lld | %s | %s |\n", kind->kind,
                       (long long)kind->yes, percent(check_share(kind, CHECK_FALSE), &arena),
                       (long long)kind->bounds.trials,
                       percent(check_share(kind, CHECK_BOUNDS), &arena),
                       (long long)kind->null_studies, null_words(kind, &arena),
                       reason  ? lab_arena_printf(&arena, "no truth of %lld claims: %s",
                                                  (long long)kind->claims, reason)
                       : fault ? lab_arena_printf(&arena, "**%s**", fault)
                               : "false in at most 5%");
    }
}

static void add_conditions(const struct proof_claims *claims, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    lab_str_add(out, "\n## Details: coverage by condition\n\n"
                     "All kinds together.\n\n| studies with | intervals | coverage |\n"
                     "|---|--:|--:|\n");
    for (int c = 0; c < PROOF_CONDITIONS; c++) {
        struct proof_count sum = sum_under(claims, c);
        lab_str_printf(out, "| %s | %lld | %s |\n", conditions[c], (long long)sum.trials,
                       percent(share(sum.hits, sum.trials), &arena));
    }
    lab_str_add(out, "\n## Details: a claim of each kind\n\n| kind | claims | without a truth | "
                     "one of them |\n|---|--:|--:|---|\n");
    for (int i = 0; i < claims->count; i++)
        lab_str_printf(out, "| `%s` | %lld | %lld | `%s` |\n", claims->kinds[i].kind,
                       (long long)claims->kinds[i].claims, (long long)claims->kinds[i].unmatched,
                       claims->kinds[i].sentence);
    lab_str_add(out, "\nA claim has no truth where the machine without noise gives none of that "
                     "name.\n");
}

/* "All 55 kinds of claims keep their promise; 5 can't be tested on simulated machines." */
static void add_verdict(const struct proof_claims *claims, bool sample, struct lab_str *out) {
    int judged = 0, kept = 0, few = 0;
    for (int i = 0; i < claims->count; i++) {
        const struct proof_kind_count *kind = &claims->kinds[i];
        const char *fault = fault_of(claims, kind, sample);
        judged += !why_not_judged(kind);
        kept += !why_not_judged(kind) && !fault;
        few += fault && strcmp(fault, "too few") == 0;
    }
    if (kept == judged)
        lab_str_printf(out, "**All %d kinds of claims keep their promise.**", kept);
    else
        lab_str_printf(out,
                       "**%d of %d kinds of claims keep their promise, %d don't; %d were drawn too "
                       "rarely to be judged.**",
                       kept, judged, judged - kept - few, few);
    if (judged < claims->count)
        lab_str_printf(out, " %d more can't be tested on simulated machines.",
                       claims->count - judged);
    lab_str_add(out, "\n\n");
}

void proof_claims_page(const struct proof_claims *claims, bool sample, uint64_t seed,
                       struct lab_str *out) {
    LAB_AUTO(arena, arena);
    lab_str_add(out, "# Proof by planted truth\n\nCan the claims be trusted? They are checked on "
                     "simulated machines whose truth is known.\n\n");
    add_verdict(claims, sample, out);
    lab_str_printf(out,
                   "Written by `tools/proof`; do not edit. Seed %llu: %lld random studies, %lld "
                   "runs%s.\n\n",
                   (unsigned long long)seed, (long long)claims->studies, (long long)claims->runs,
                   sample ? " (a sample)" : "");
    lab_str_add(out, promises);
    add_intervals(claims, sample, out);
    add_others(claims, sample, out);
    lab_str_add(out, method);
    lab_str_add(out, others);
    lab_str_printf(out, "| gpulab | null studies with any false claim, all kinds together | %s |\n",
                   percent(share(claims->null_false, claims->null_studies), &arena));
    lab_str_add(out, not_proven);
    add_conditions(claims, out);
}
