/* objective.c: which metric settings are chosen by: the one asked for, else the one that most of
 * them can be compared by. */
#include "analysis/metrics/metrics.h"

#include "base/str.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Small = first, in the order of the keys: whether it differs between runs, whether it compares
 * settings at all, quality before rates, a reward before all else, then by how many settings and
 * runs reported it, then by its name; a curve before the value that sums it up. */
struct rank {
    int keys[8];
};

/* "loss" of "final_loss" and "best_loss"; NULL = the name is none of these. */
static const char *curve_name(const char *name) {
    static const char *const words[] = {"final_", "best_", "last_"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncasecmp(name, words[i], strlen(words[i])) == 0)
            return name + strlen(words[i]);
    return NULL;
}

/* The metric that this one sums up, where as many runs have its curve: settings of different
 * lengths can be compared along a curve. NULL = there is none. */
static const struct metrics_metric *find_curve(const struct metrics_metric *metric,
                                               const struct metrics_metric *metrics, int count) {
    const char *name = curve_name(metric->name);
    for (int i = 0; name && i < count; i++)
        if (strcasecmp(metrics[i].name, name) == 0 && metrics[i].reported >= metric->reported &&
            metrics_has_curve(&metrics[i]))
            return &metrics[i];
    return NULL;
}

/* The same value in all of several runs, such as one that a checkpoint had. */
static bool is_constant(const struct metrics_metric *metric,
                        const struct metrics_settings *settings) {
    double first = NAN;
    int count = 0;
    for (int i = 0; i < settings->count; i++)
        for (int r = 0; r < settings->items[i].point.count; r++) {
            double value = metrics_run_value(settings->items[i].point.runs[r], metric);
            if (isnan(value))
                continue;
            first = count++ ? first : value;
            if (value != first)
                return false;
        }
    return count > 1;
}

static struct rank rank_of(const struct metrics_metric *metric,
                           const struct metrics_metric *metrics, int count,
                           const struct metrics_settings *settings) {
    int several = settings->count < 2 ? settings->count : 2;
    const struct metrics_metric *curve = find_curve(metric, metrics, count),
                                *named = curve ? curve : metric;
    return (struct rank){{is_constant(metric, settings), metric->reported_by < several,
                          metric->rate, lab_metric_name_goal(named->name), -metric->reported_by,
                          -metric->reported, lab_metric_name_place(named->name, named->unit),
                          curve != NULL}};
}

static bool is_before(struct rank a, struct rank b) {
    for (size_t i = 0; i < sizeof a.keys / sizeof *a.keys; i++)
        if (a.keys[i] != b.keys[i])
            return a.keys[i] < b.keys[i];
    return false;
}

int metrics_objective(struct metrics_metric *metrics, int count,
                      const struct metrics_settings *settings, const char *asked) {
    int best = -1;
    size_t length = 0;
    enum lab_direction better = LAB_DIRECTION_NONE;
    if (asked && lab_metric_objective_read(asked, &length, &better, NULL) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (asked && strlen(metrics[i].name) == length &&
            strncasecmp(metrics[i].name, asked, length) == 0) {
            metrics[i].better = better == LAB_DIRECTION_NONE ? metrics[i].better : better;
            return i;
        }
        if (!asked && metrics[i].better != LAB_DIRECTION_NONE &&
            (best < 0 || is_before(rank_of(&metrics[i], metrics, count, settings),
                                   rank_of(&metrics[best], metrics, count, settings))))
            best = i;
    }
    return best;
}

static void add_names(const struct metrics_metric *metrics, int count, int without,
                      struct lab_str *out) {
    for (int i = 0; i < count; i++)
        if (i != without &&
            (without < 0 || metrics[i].better != LAB_DIRECTION_NONE)) /* to choose by */
            lab_str_printf(out, "%s%s", out->length ? ", " : "", metrics[i].name);
}

int metrics_refuse_objective(const struct metrics_metric *metrics, int count, const char *asked,
                             struct lab_err *err) {
    LAB_AUTO(str, names);
    size_t length;
    enum lab_direction better;
    if (lab_metric_objective_read(asked, &length, &better, err) < 0)
        return -1;
    add_names(metrics, count, -1, &names);
    return lab_err_set(err, LAB_ERR_USER,
                       "no run reported '%s', which settings are chosen by; "
                       "there are: %s",
                       asked, names.text);
}

void metrics_note_objective(struct lab_analysis_result *result,
                            const struct metrics_metric *metrics, int count, int objective,
                            const struct metrics_settings *settings, struct lab_arena *arena) {
    int runs = 0;
    LAB_AUTO(str, others);
    for (int i = 0; i < settings->count; i++)
        runs += settings->items[i].point.count;
    add_names(metrics, count, objective, &others);
    if (others.length)
        lab_analysis_note(&result->notes, arena,
                          "Settings are compared by %s, which %d of %d runs reported. "
                          "experiment.objective=NAME, or objective=NAME of analyze, takes another: "
                          "%s.",
                          metrics[objective].name, metrics[objective].reported, runs, others.text);
}
