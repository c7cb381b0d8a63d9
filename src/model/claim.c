/* claim.c: from an interval to a verdict, from a verdict to a sentence and to JSON. */
#include "model/claim.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

const struct lab_claim lab_claim_none = {
    .kind = "",
    .subject = "",
    .reference = "",
    .quantity = "",
    .effect = NAN,
    .low = NAN,
    .high = NAN,
    .confidence = NAN,
    .p = NAN,
    .bound = NAN,
};

struct lab_claim lab_claim_named(struct lab_claim claim, const char *kind, const char *subject,
                                 const char *reference, const char *quantity) {
    claim.kind = kind;
    claim.subject = subject;
    claim.reference = reference;
    claim.quantity = quantity;
    return claim;
}

const char *lab_claim_subject(const struct lab_claim *claim, struct lab_arena *arena) {
    return claim->mean_of
               ? lab_arena_printf(arena, "%s, mean of %s", claim->subject, claim->mean_of)
               : claim->subject;
}

bool lab_claim_is_alike(const struct lab_claim *a, const struct lab_claim *b) {
    return lab_str_equal(a->subject, b->subject) && lab_str_equal(a->mean_of, b->mean_of) &&
           lab_str_equal(a->reference, b->reference) && lab_str_equal(a->quantity, b->quantity);
}

void lab_claim_add_scope(struct lab_claim *claim, const char *point, struct lab_arena *arena) {
    if (lab_list_find_text(claim->scope, claim->scope_count, point) >= 0)
        return;
    const char **grown = (const char **)claim->scope;
    if ((claim->scope_count & (claim->scope_count - 1)) == 0) { /* room doubles when it is full */
        grown = lab_arena_alloc(arena, 2 * (size_t)claim->scope_count + 1, sizeof *grown);
        for (int i = 0; i < claim->scope_count; i++)
            grown[i] = claim->scope[i];
    }
    grown[claim->scope_count++] = point;
    claim->scope = grown;
}

const char *lab_claim_verdict_name(enum lab_claim_verdict verdict) {
    static const char *const names[] = {[LAB_CLAIM_NOT_TESTED] = "not_tested",
                                        [LAB_CLAIM_YES] = "yes",
                                        [LAB_CLAIM_NO] = "no",
                                        [LAB_CLAIM_INCONCLUSIVE] = "inconclusive"};
    return names[verdict];
}

void lab_claim_judge(struct lab_claim *claim, double p) {
    double farther = fmax(fabs(claim->low), fabs(claim->high));
    double negligible = claim->negligible > 0 ? claim->negligible : LAB_CLAIM_NEGLIGIBLE;
    bool beyond_zero = claim->low > 0 || claim->high < 0;
    claim->bound = NAN;
    if (isnan(claim->effect))
        claim->verdict = LAB_CLAIM_NOT_TESTED;
    else if (claim->unit)
        claim->verdict = isnan(claim->low) ? LAB_CLAIM_INCONCLUSIVE : LAB_CLAIM_YES;
    else if (isnan(claim->low) || isnan(claim->high) || isnan(p))
        claim->verdict = LAB_CLAIM_INCONCLUSIVE;
    else if (claim->difference) /* what of it is negligible is unknown */
        claim->verdict =
            beyond_zero && p <= LAB_CLAIM_LEVEL ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE;
    else if (fabs(claim->effect) > negligible && beyond_zero && p <= LAB_CLAIM_LEVEL)
        claim->verdict = LAB_CLAIM_YES;
    else
        claim->verdict = farther <= LAB_CLAIM_DETECT ? LAB_CLAIM_NO : LAB_CLAIM_INCONCLUSIVE;
    if (claim->verdict == LAB_CLAIM_NO)
        claim->bound = farther;
}

bool lab_claim_is_corrected(const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_INCONCLUSIVE && claim->n > 1 && !claim->unit &&
           !claim->reason && (claim->low > 0 || claim->high < 0) && claim->p <= LAB_CLAIM_LEVEL;
}

void lab_claim_withhold(struct lab_claim *claim, const char *reason) {
    claim->low = claim->high = claim->confidence = claim->p = NAN;
    claim->needed = claim->decisive = 0;
    claim->reason = reason;
    lab_claim_judge(claim, NAN);
}

/* --- words --- */

/* "12.5%", "0.8%", "150%"; an end of an interval likewise, without its sign. */
static const char *percent(double share, struct lab_arena *arena) {
    double value = 100 * fabs(share);
    if (value >= 99.95 && value < 100 - 1e-6) /* nearly all isn't "100% lower" */
        return lab_arena_printf(arena, "%.2f", fmin(value, 99.99));
    return lab_arena_printf(arena, value < 99.95 ? "%.1f" : "%.0f", value);
}

/* An end of a signed interval: none of zero's sign. */
static double tenths(double share) {
    return round(1000 * share) / 10 + 0.0;
}

/* "31.2" */
static const char *factor(double share, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_factor(&text, 1 + share);
    return lab_arena_strdup(arena, text.text);
}

/* Whether per cent would have four digits: in the effect, or in an interval above 0. */
static bool is_factor(const struct lab_claim *claim) {
    return !claim->difference &&
           (claim->effect >= LAB_CHANGE_FACTOR ||
            (claim->high >= LAB_CHANGE_FACTOR && (claim->low > 0 || isnan(claim->low))));
}

static double rounded_up(double share) {
    return fmax(0, ceil(1000 * share - 1e-9) / 1000);
}

const char *lab_claim_larger(double bound, struct lab_arena *arena) {
    double share = rounded_up(bound);
    return share > 0 ? lab_arena_printf(arena, " larger than %s%%", percent(share, arena)) : "";
}

/* "12.5%"; of a difference "12.4 points". */
static const char *amount(const struct lab_claim *claim, struct lab_arena *arena) {
    if (!claim->difference)
        return lab_arena_printf(arena, "%s%%", percent(claim->effect, arena));
    return lab_arena_printf(arena, "%.3g%s%s", fabs(claim->effect), *claim->difference ? " " : "",
                            claim->difference);
}

/* A time is shorter or longer: "time", "CPU time". */
static bool is_time(const struct lab_claim *claim) {
    size_t length = strlen(claim->quantity);
    return lab_str_equal(claim->quantity, "time") ||
           (length > 5 && lab_str_equal(claim->quantity + length - 5, " time"));
}

/* "85.0% lower", "109% higher"; "more than 900% higher" */
static const char *end_words(const struct lab_claim *claim, double end, struct lab_arena *arena) {
    bool time = is_time(claim), far = end >= LAB_CHANGE_FACTOR;
    return lab_arena_printf(arena, "%s%s%% %s", far ? "more than " : "",
                            percent(far ? LAB_CHANGE_FACTOR : end, arena),
                            end < 0 ? (time ? "shorter" : "lower") : (time ? "longer" : "higher"));
}

/* Ends in the direction of the effect: of "lower", how much lower at least and at most. Of an
 * interval with 0 in it each end has its own: "85.0% lower to 109% higher". */
static const char *interval(const struct lab_claim *claim, struct lab_arena *arena) {
    double least = claim->effect < 0 ? -claim->high : claim->low,
           most = claim->effect < 0 ? -claim->low : claim->high, level = 100 * claim->confidence;
    if (is_factor(claim))
        return lab_arena_printf(arena, "%.0f%% CI [%s, %s]×", level, factor(claim->low, arena),
                                factor(claim->high, arena));
    if (claim->difference)
        return lab_arena_printf(arena, "%.0f%% CI [%s%.3g, %.3g]", level, least < 0 ? "-" : "",
                                fabs(least), most);
    if (least < 0)
        return lab_arena_printf(arena, "%.0f%% CI: %s to %s", level,
                                end_words(claim, claim->low, arena),
                                end_words(claim, claim->high, arena));
    return lab_arena_printf(arena, "%.0f%% CI [%s, %s]%%", level, percent(least, arena),
                            percent(most, arena));
}

const char *lab_claim_amount(const struct lab_claim *claim, struct lab_arena *arena) {
    const char *value = amount(claim, arena);
    double least = fmin(fabs(claim->low), fabs(claim->high)),
           most = fmax(fabs(claim->low), fabs(claim->high));
    if (is_factor(claim))
        return lab_arena_printf(arena, "over %d%%", 100 * LAB_CHANGE_FACTOR);
    if (isnan(least) || claim->low * claim->high < 0)
        return value;
    return claim->difference ? lab_arena_printf(arena, "%s [%.3g, %.3g]", value, least, most)
                             : lab_arena_printf(arena, "%s [%s, %s]", value, percent(least, arena),
                                                percent(most, arena));
}

#define ONE_RUN ": no interval"

/* A value without a verdict: there is no second run. */
static bool is_single(const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_INCONCLUSIVE && claim->n == 1 && isnan(claim->low) &&
           !claim->reason;
}

static const char *runs(const struct lab_claim *claim, struct lab_arena *arena) {
    if (claim->of > claim->n)
        return lab_arena_printf(arena, "%d of %d runs", claim->n, claim->of);
    if (claim->most > claim->n)
        return lab_arena_printf(arena, "%d to %d runs each", claim->n, claim->most);
    return claim->n == 1 ? "1 run each" : lab_arena_printf(arena, "%d runs each", claim->n);
}

struct estimate { /* in words, all in one prefix: "52.1", "51.3", "52.9", "TFLOP/s" */
    const char *value, *low, *high, *unit;
};

/* That show three digits of the value. */
static int decimals(double value) {
    static const double limits[] = {99.95, 9.995, 0.9995, 0.09995};
    int count = 0;
    while (count < 4 && fabs(value) < limits[count])
        count++;
    return count;
}

/* Value and ends have the same decimals: "10.00 [9.98, 10.02]". Those of the value, or one more
 * where an end has a digit less before the point. */
static struct estimate rounded(const struct lab_claim *claim, double scale, const char *unit,
                               struct lab_arena *arena) {
    double least = fmin(fabs(claim->effect), fmin(fabs(claim->low), fabs(claim->high)));
    int own = decimals(claim->effect / scale), most = decimals(least / scale),
        places = most > own ? own + 1 : own;
    return (struct estimate){lab_arena_printf(arena, "%.*f", places, claim->effect / scale),
                             lab_arena_printf(arena, "%.*f", places, claim->low / scale),
                             lab_arena_printf(arena, "%.*f", places, claim->high / scale), unit};
}

static struct estimate estimate(const struct lab_claim *claim, struct lab_arena *arena) {
    static const char *const prefixes[] = {"µ", "m", "", "k", "M", "G", "T", "P"};
    int i = 0, last = sizeof prefixes / sizeof *prefixes - 1;
    double scale = 1e-6;
    if (lab_str_equal(claim->unit, "samples")) /* a count */
        return (struct estimate){lab_arena_printf(arena, "%.0f", claim->effect),
                                 lab_arena_printf(arena, "%.0f", claim->low),
                                 lab_arena_printf(arena, "%.0f", claim->high), " samples"};
    if (!claim->unit[0]) /* a plain number */
        return (struct estimate){lab_arena_printf(arena, "%.2f", claim->effect),
                                 lab_arena_printf(arena, "%.2f", claim->low),
                                 lab_arena_printf(arena, "%.2f", claim->high), ""};
    if (lab_str_equal(claim->unit, "FLOP/sample")) /* as tables and axes have the work of models */
        return rounded(claim, 1e9, " GFLOP/sample", arena);
    while (i < last && fabs(claim->effect) >= 999.5 * scale) {
        scale *= 1000;
        i++;
    }
    return rounded(claim, scale, lab_arena_printf(arena, " %s%s", prefixes[i], claim->unit), arena);
}

static const char *estimate_sentence(const struct lab_claim *claim, struct lab_arena *arena) {
    struct estimate words = estimate(claim, arena);
    const char *about = lab_arena_printf(arena, "%s: %s", lab_claim_subject(claim, arena),
                                         claim->quantity),
               *count = claim->n == 1 ? "1 run" : lab_arena_printf(arena, "%d runs", claim->n);
    switch (claim->verdict) {
    case LAB_CLAIM_YES:
        return lab_arena_printf(arena, "%s %s%s (%.0f%% CI [%s, %s]%s, %s)", about, words.value,
                                words.unit, 100 * claim->confidence, words.low, words.high,
                                words.unit, count);
    case LAB_CLAIM_NO:
        return isnan(claim->bound)
                   ? lab_arena_printf(arena, "%s not within the tested range (%s)", about, count)
                   : lab_arena_printf(arena, "%s below %.2f (%s)", about, claim->bound, count);
    case LAB_CLAIM_NOT_TESTED:
        return lab_arena_printf(arena, "%s not tested", about);
    default:
        if (isnan(claim->effect))
            return lab_arena_printf(arena, "%s inconclusive (%s)", about, count);
        if (!isnan(claim->low))
            count = lab_arena_printf(arena, "%.0f%% CI [%s, %s]%s, %s", 100 * claim->confidence,
                                     words.low, words.high, words.unit, count);
        return lab_arena_printf(arena, "%s%s %s%s (%s%s)%s%s",
                                is_single(claim) ? "" : "Inconclusive: ", about, words.value,
                                words.unit, count, is_single(claim) ? ONE_RUN : "",
                                claim->reason ? "; " : "", claim->reason ? claim->reason : "");
    }
}

const char *lab_claim_within(const char *name, struct lab_arena *arena) {
    char *copy = lab_arena_strdup(arena, name);
    if (copy[0] >= 'A' && copy[0] <= 'Z' && copy[1] >= 'a' && copy[1] <= 'z')
        copy[0] = (char)(copy[0] - 'A' + 'a');
    return copy;
}

int lab_claim_runs(const struct lab_claim *claim) {
    if (claim->n == 2 && claim->needed > 0) /* two runs hardly show what more would detect */
        return LAB_CLAIM_RUNS_LEAST;
    bool likely = claim->low > 0 || claim->high < 0;
    if ((claim->needed <= LAB_CLAIM_RUNS_MOST && !likely) || claim->decisive <= 0 ||
        claim->decisive > LAB_CLAIM_RUNS_MOST)
        return claim->needed;
    return claim->decisive < LAB_CLAIM_RUNS_LEAST ? LAB_CLAIM_RUNS_LEAST : claim->decisive;
}

const char *lab_claim_next(const struct lab_claim *claim, struct lab_arena *arena) {
    int wanted = lab_claim_runs(claim);
    if (claim->verdict != LAB_CLAIM_INCONCLUSIVE || (!claim->reason && wanted <= claim->n))
        return "";
    if (claim->reason)
        return claim->reason;
    if (wanted > LAB_CLAIM_RUNS_MOST)
        return "too noisy here: quiet the machine";
    if (claim->n == 2)
        return lab_arena_printf(arena, "2 runs hardly show the spread: run %d per point", wanted);
    if (wanted == claim->needed)
        return lab_arena_printf(arena, "%d runs per point detect %g%% (80%% power)", wanted,
                                100 * LAB_CLAIM_DETECT);
    return lab_arena_printf(arena, "%d runs per point detect an effect this large (80%% power)",
                            wanted);
}

/* "NUMA node 2: 12.5% lower throughput than NUMA node 0 (95% CI [10.7, 13.8]%, 5 runs each)" */
static const char *comparison(const struct lab_claim *claim, const char *subject,
                              struct lab_arena *arena) {
    bool time = is_time(claim), lower = claim->effect < 0;
    const char *words, *within = isnan(claim->low) ? "" : interval(claim, arena);
    if (is_factor(claim))
        words = lab_arena_printf(arena, "%s %s× that of %s", claim->quantity,
                                 factor(claim->effect, arena), claim->reference);
    else
        words =
            lab_arena_printf(arena, "%s %s %s than %s", amount(claim, arena),
                             lower ? (time ? "shorter" : "lower") : (time ? "longer" : "higher"),
                             claim->quantity, claim->reference);
    return lab_arena_printf(arena, "%s: %s (%s%s%s%s)", subject, words, within, *within ? ", " : "",
                            runs(claim, arena), is_single(claim) ? ONE_RUN : "");
}

const char *lab_claim_sentence(const struct lab_claim *claim, struct lab_arena *arena) {
    if (claim->unit)
        return estimate_sentence(claim, arena);
    const char *subject = lab_claim_subject(claim, arena), *next = lab_claim_next(claim, arena);
    switch (claim->verdict) {
    case LAB_CLAIM_YES:
        return comparison(claim, subject, arena);
    case LAB_CLAIM_NO:
        return lab_arena_printf(arena, "No difference%s in %s between %s and %s (%s)",
                                lab_claim_larger(claim->bound, arena), claim->quantity,
                                lab_claim_within(subject, arena),
                                lab_claim_within(claim->reference, arena), runs(claim, arena));
    case LAB_CLAIM_INCONCLUSIVE:
        if (is_single(claim))
            return comparison(claim, subject, arena);
        if (claim->n <= 2) /* so few runs say it themselves */
            next = "";
        return lab_arena_printf(arena, "Inconclusive: %s%s%s",
                                comparison(claim, lab_claim_within(subject, arena), arena),
                                *next ? "; " : "", next);
    default:
        return lab_arena_printf(arena, "%s: not tested", subject);
    }
}

/* "+12.4 [8.1, 16.7]" */
static const char *short_difference(const struct lab_claim *claim, struct lab_arena *arena) {
    const char *value = lab_arena_printf(arena, "%+.3g%s%s", claim->effect,
                                         *claim->difference ? " " : "", claim->difference);
    if (isnan(claim->low))
        return lab_arena_printf(arena, "%s, %s", value,
                                claim->reason ? "inconclusive" : runs(claim, arena));
    return lab_arena_printf(arena, "%s [%.3g, %.3g]%s", value, claim->low, claim->high,
                            claim->verdict == LAB_CLAIM_YES ? "" : ", inconclusive");
}

const char *lab_claim_effect(const struct lab_claim *claim, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (is_factor(claim) && !isnan(claim->low))
        lab_str_printf(&text, "%s× [%s, %s]", factor(claim->effect, arena),
                       factor(claim->low, arena), factor(claim->high, arena));
    else
        lab_str_add_change(&text, claim->effect);
    if (!is_factor(claim) && claim->high >= LAB_CHANGE_FACTOR)
        lab_str_printf(&text, " [%.1f, > %.0f]", tenths(claim->low), 100.0 * LAB_CHANGE_FACTOR);
    else if (!is_factor(claim) && !isnan(claim->low))
        lab_str_printf(&text, " [%.1f, %.1f]", tenths(claim->low), tenths(claim->high));
    return lab_arena_strdup(arena, text.text);
}

const char *lab_claim_short(const struct lab_claim *claim, struct lab_arena *arena) {
    if (claim->subject[0] && lab_str_equal(claim->subject, claim->reference))
        return LAB_CLAIM_REFERENCE;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return claim->unit ? "–" : "not tested";
    if (claim->unit && claim->verdict == LAB_CLAIM_NO)
        return isnan(claim->bound) ? "not within the tested range"
                                   : lab_arena_printf(arena, "below %.2f", claim->bound);
    if (claim->unit && isnan(claim->effect))
        return "inconclusive";
    if (claim->unit) {
        struct estimate words = estimate(claim, arena);
        return isnan(claim->low) ? lab_arena_printf(arena, "%s%s%s", words.value, words.unit,
                                                    claim->reason ? ", inconclusive" : "")
                                 : lab_arena_printf(arena, "%s%s [%s, %s]", words.value, words.unit,
                                                    words.low, words.high);
    }
    if (claim->difference)
        return short_difference(claim, arena);
    if (claim->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, "within ±%s%%", percent(rounded_up(claim->bound), arena));
    const char *open = claim->verdict == LAB_CLAIM_YES       ? ""
                       : isnan(claim->low) && !claim->reason ? runs(claim, arena)
                                                             : "inconclusive";
    return lab_arena_printf(arena, "%s%s%s", lab_claim_effect(claim, arena), *open ? ", " : "",
                            open);
}

/* --- JSON --- */

struct lab_value *lab_claim_value(const struct lab_claim *claim, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *scope = lab_value_list(arena);
    lab_value_set_string(arena, map, "kind", claim->kind);
    lab_value_set_string(arena, map, "subject", lab_claim_subject(claim, arena));
    lab_value_set_string(arena, map, "reference", claim->reference);
    lab_value_set_string(arena, map, "quantity", claim->quantity);
    if (claim->unit)
        lab_value_set_string(arena, map, "unit", claim->unit);
    if (claim->difference)
        lab_value_set_string(arena, map, "difference", claim->difference);
    lab_value_set_float(arena, map, "effect", claim->effect);
    lab_value_set_float(arena, map, "low", claim->low);
    lab_value_set_float(arena, map, "high", claim->high);
    lab_value_set_float(arena, map, "confidence", claim->confidence);
    lab_value_set_int(arena, map, "runs", claim->n);
    if (claim->of > claim->n)
        lab_value_set_int(arena, map, "planned", claim->of);
    lab_value_set_string(arena, map, "verdict", lab_claim_verdict_name(claim->verdict));
    lab_value_set_float(arena, map, "bound", claim->bound);
    if (claim->needed > 0)
        lab_value_set_int(arena, map, "needed", claim->needed);
    if (claim->reason)
        lab_value_set_string(arena, map, "reason", claim->reason);
    for (int i = 0; i < claim->scope_count; i++)
        lab_value_append(arena, scope, lab_value_string(arena, claim->scope[i]));
    lab_value_set(arena, map, "scope", scope);
    lab_value_set_bool(arena, map, "simulated", claim->simulated);
    return map;
}
