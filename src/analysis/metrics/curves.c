/*
 * curves.c: metrics over a program's steps and over time, several settings in one chart. A line is
 * the mean over a setting's runs, a band goes from the least to the most of them. Of a single run,
 * the band is what its thinned points stand for. A setting that diverged is drawn up to there, and
 * marked.
 */
#include "analysis/metrics/metrics.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define SETTINGS_MOST 8    /* of a chart: one colour each */
#define PANELS_MOST   6    /* metrics */
#define GRID_MOST     160  /* points of a line */
#define FAR           10   /* times its first values: a metric that diverged */
#define WIDE          50   /* a loss whose range is that wide is drawn logarithmically */
#define NEAR          0.05 /* of a panel's height: ends of curves that look like one */
#define ENDS_SHOWN    0.15 /* likewise: those that are drawn again, larger */
#define END_FROM      0.75 /* of the longest curve */

struct drawing {
    const struct metrics_metric *metric;
    bool over_time;
    double limit;     /* values above it aren't drawn; NaN = none */
    double low, high; /* of what is drawn */
    bool repeated, thinned, cut, marked;
    struct lab_arena *arena;
};

static bool is_of(const struct lab_study_metric *said, const struct metrics_metric *metric) {
    return lab_str_equal(said->name, metric->name) && said->curve.points && said->curve.finite > 1;
}

/* --- one run: the mean of its ranks --- */

/* Programs take a while before they report: their time counts from the first value of all. */
static double run_start(const struct lab_study_run *run) {
    double first = NAN;
    for (int i = 0; i < run->metric_count; i++)
        if (run->metrics[i].curve.points)
            first = fmin(first, run->metrics[i].curve.points[0].time_s);
    return isnan(first) ? 0 : first;
}

static bool has_curve_of(const struct lab_study_run *run, const struct metrics_metric *metric) {
    for (int i = 0; i < run->metric_count; i++)
        if (is_of(&run->metrics[i], metric))
            return true;
    return false;
}

static double run_at(const struct lab_study_run *run, const struct drawing *d, double x) {
    double sum = 0, start = d->over_time ? run_start(run) : 0;
    int count = 0;
    for (int i = 0; i < run->metric_count; i++) {
        if (!is_of(&run->metrics[i], d->metric))
            continue;
        double value = lab_curve_at(&run->metrics[i].curve, d->over_time, x + start);
        if (isnan(value))
            continue;
        sum += value;
        count++;
    }
    return count ? sum / count : (double)NAN;
}

/* The longest of its curves, whose points are the grid. */
static const struct lab_curve *longest_curve(const struct lab_study_point *point,
                                             const struct metrics_metric *metric,
                                             const struct lab_study_run **ret_run) {
    const struct lab_curve *longest = NULL;
    for (int r = 0; r < point->count; r++)
        for (int i = 0; i < point->runs[r]->metric_count; i++) {
            const struct lab_study_metric *said = &point->runs[r]->metrics[i];
            if (!is_of(said, metric) || (longest && said->curve.values <= longest->values))
                continue;
            longest = &said->curve;
            *ret_run = point->runs[r];
        }
    return longest;
}

/* --- one setting --- */

/* At least half of the runs that have a curve: a line doesn't end with the first that does. */
static void add_at(const struct lab_study_point *point, struct drawing *d, double x,
                   struct lab_series *line) {
    double sum = 0, low = NAN, high = NAN;
    int count = 0, all = 0;
    for (int r = 0; r < point->count; r++) {
        double value = run_at(point->runs[r], d, x);
        all += has_curve_of(point->runs[r], d->metric);
        if (isnan(value))
            continue;
        sum += value;
        low = fmin(low, value);
        high = fmax(high, value);
        count++;
    }
    double mean = sum / count;
    if (count == 0 || 2 * count < all)
        return;
    if (mean > d->limit) {
        d->cut = true;
        return;
    }
    high = fmin(high, isnan(d->limit) ? (double)INFINITY : d->limit);
    lab_series_add(line, x, mean, low, high);
    d->repeated |= count > 1;
    d->low = fmin(d->low, low);
    d->high = fmax(d->high, high);
}

static bool is_banded(const struct lab_series *line) {
    for (size_t i = 0; i < line->count; i++)
        if (line->high[i] > line->low[i])
            return true;
    return false;
}

/* Of a single run: extremes of what its points stand for. */
static void widen(struct lab_series *line, const struct lab_curve_line *grid, double start,
                  struct drawing *d) {
    for (size_t i = 0; i < line->count; i++)
        for (int p = 0; p < grid->count; p++) {
            const struct lab_curve_point *point = &grid->points[p];
            if ((d->over_time ? point->time_s : point->step) - start != line->x[i])
                continue;
            line->low[i] = fmin(line->low[i], point->low);
            line->high[i] = fmin(fmax(line->high[i], point->high),
                                 isnan(d->limit) ? (double)INFINITY : d->limit);
            d->low = fmin(d->low, line->low[i]);
            d->high = fmax(d->high, line->high[i]);
            d->thinned = true;
        }
}

/* "sgd (diverged)", with a point at the line's end; "sgd (1 of 3 runs diverged)". */
static const char *mark_diverged(struct lab_chart_panel *panel, const struct metrics_value *value,
                                 const struct lab_series *line, struct drawing *d, int colour) {
    int lost = metrics_lost(value->setting, d->metric);
    if (lost == 0)
        return value->name;
    if (!value->diverged)
        return lab_arena_printf(d->arena, "%s (%d of %d runs diverged)", value->name, lost,
                                value->setting->point.count);
    struct lab_series end = {.arena = d->arena};
    lab_series_add_point(&end, line->x[line->count - 1], line->y[line->count - 1]);
    lab_panel_add_series(panel, lab_series_chart(&end, NULL, LAB_CHART_POINTS, colour), d->arena);
    d->marked = true;
    return lab_arena_printf(d->arena, "%s (diverged)", value->name);
}

static void add_setting(struct lab_chart_panel *panel, const struct metrics_value *value,
                        struct drawing *d, int colour) {
    const struct lab_study_point *point = &value->setting->point;
    const struct lab_study_run *run = NULL;
    const struct lab_curve *longest = longest_curve(point, d->metric, &run);
    double start = longest && d->over_time ? run_start(run) : 0, before = NAN;
    struct lab_series line = {.arena = d->arena};
    struct lab_curve_line grid = {0};
    if (longest)
        grid = lab_curve_line(longest, d->over_time);
    int stride = (grid.count + GRID_MOST - 1) / GRID_MOST;
    for (int i = 0; i < grid.count; i += stride) {
        int at = i + stride >= grid.count ? grid.count - 1 : i; /* the last one counts */
        double x = (d->over_time ? grid.points[at].time_s : grid.points[at].step) - start;
        if (x != before) /* values that came at once */
            add_at(point, d, x, &line);
        before = x;
    }
    if (line.count < 2)
        return;
    if (point->count == 1 && grid.share > 1)
        widen(&line, &grid, start, d);
    if (is_banded(&line))
        lab_panel_add_series(panel, lab_series_chart(&line, NULL, LAB_CHART_BAND, colour),
                             d->arena);
    struct lab_chart_series series = lab_series_chart(
        &line, mark_diverged(panel, value, &line, d, colour), LAB_CHART_LINE, colour);
    series.low = series.high = NULL;
    lab_panel_add_series(panel, series, d->arena);
}

/* --- one metric --- */

bool metrics_has_curve(const struct metrics_metric *metric) {
    const struct lab_study_run *run;
    for (int i = 0; i < metric->drawn; i++)
        if (longest_curve(&metric->values[i].setting->point, metric, &run))
            return true;
    return false;
}

static bool is_stepped(const struct metrics_metric *metric) {
    for (int v = 0; v < metric->drawn; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        for (int r = 0; r < point->count; r++)
            for (int i = 0; i < point->runs[r]->metric_count; i++)
                if (is_of(&point->runs[r]->metrics[i], metric) &&
                    !point->runs[r]->metrics[i].curve.stepped)
                    return false;
    }
    return true;
}

/* Whether some run's values are so. */
static bool some_run(const struct metrics_metric *metric,
                     bool (*is_so)(const struct lab_curve *curve)) {
    for (int v = 0; v < metric->drawn; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        for (int r = 0; r < point->count; r++)
            for (int i = 0; i < point->runs[r]->metric_count; i++)
                if (is_of(&point->runs[r]->metrics[i], metric) &&
                    is_so(&point->runs[r]->metrics[i].curve))
                    return true;
    }
    return false;
}

static bool lacks_times(const struct lab_curve *curve) {
    return !lab_curve_has_times(curve);
}

/* In one block, a second or more after the program began. */
static bool came_at_once(const struct lab_curve *curve) {
    return lacks_times(curve) && curve->points[0].time_s >= 1;
}

/* Every value has a step, and one is smaller than the one before. */
static bool goes_back(const struct lab_curve *curve) {
    bool known = curve->count > 0;
    for (int i = 0; i < curve->count; i++)
        known &= !isnan(curve->points[i].step);
    return known && !curve->stepped;
}

/* How many values each of its steps has, where that is about the same number; 1 = other numbers. */
static int values_per_step(const struct lab_curve *curve) {
    double steps = 0, values = (double)curve->values;
    for (int i = 0; i < curve->by_step.count; i++)
        steps += (double)curve->by_step.points[i].count;
    double each = steps > 0 ? round(values / steps) : 1;
    return steps > 1 && fabs(values - each * steps) <= 0.1 * steps && each < 1e6 ? (int)each : 1;
}

/* Steps of a bar go on beyond the epochs that other values have. */
static bool run_is_by_epoch(const struct lab_study_run *run, const struct metrics_metric *metric) {
    double epochs = NAN, steps = NAN;
    for (int i = 0; i < run->metric_count; i++) {
        const struct lab_curve *curve = &run->metrics[i].curve;
        if (lab_curve_is_epoch_axis(run->metrics[i].name, curve))
            epochs = fmax(epochs, curve->most);
        if (is_of(&run->metrics[i], metric))
            steps = fmax(steps, curve->last_step);
    }
    return steps <= epochs;
}

/* Whether all of its runs count epochs alone. */
static bool is_by_epoch(const struct metrics_metric *metric) {
    for (int v = 0; v < metric->drawn; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        for (int r = 0; r < point->count; r++)
            if (has_curve_of(point->runs[r], metric) && !run_is_by_epoch(point->runs[r], metric))
                return false;
    }
    return true;
}

static void note_repeated_steps(struct lab_analysis_result *result,
                                const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_study_run *run;
    int each = 1;
    for (int v = 0; v < metric->drawn && each < 2; v++) {
        const struct lab_curve *curve =
            longest_curve(&metric->values[v].setting->point, metric, &run);
        each = curve ? values_per_step(curve) : 1;
    }
    if (each > 1 && is_by_epoch(metric)) /* Hugging Face's, with two digits */
        lab_analysis_note(&result->notes, arena,
                          "%s has %d values at each epoch: the last one counts. Its epochs are "
                          "rounded: print the step, too.",
                          metric->name, each);
    else if (each > 1)
        lab_analysis_note(&result->notes, arena,
                          "%s has %d values at each step: the last one counts. If these are of "
                          "several ranks, label their lines: torchrun --tee 3, mpirun --tag-output "
                          "or srun --label.",
                          metric->name, each);
}

/* What is better lower and grows far beyond where it began has diverged: it would hide the rest. */
static double limit_of(const struct metrics_metric *metric) {
    double first = NAN;
    for (int v = 0; v < metric->drawn && metric->better == LAB_DIRECTION_LOWER; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        for (int r = 0; r < point->count; r++)
            for (int i = 0; i < point->runs[r]->metric_count; i++)
                if (is_of(&point->runs[r]->metrics[i], metric))
                    first = fmax(first, point->runs[r]->metrics[i].curve.first);
    }
    return first > 0 ? FAR * first : (double)NAN;
}

/* Of more settings than there are colours, the worst that was compared stands for the others: a
 * verdict may name it. */
static int worst_of(const struct metrics_metric *metric) {
    return metric->compared > SETTINGS_MOST ? metric->compared - 1 : SETTINGS_MOST - 1;
}

static struct drawing add_panel(struct lab_chart *chart, const struct metrics_metric *metric,
                                bool over_time, const char *title, struct lab_arena *arena) {
    struct drawing d = {.metric = metric,
                        .over_time = over_time,
                        .limit = limit_of(metric),
                        .low = NAN,
                        .high = NAN,
                        .arena = arena};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, title,
                            lab_axis(over_time             ? "Time since the first value [s]"
                                     : is_by_epoch(metric) ? "Epoch"
                                                           : "Step"),
                            lab_axis(metrics_title(metric, arena)), arena);
    for (int i = 0; i < metric->drawn && i < SETTINGS_MOST; i++) {
        bool last = i == SETTINGS_MOST - 1;
        add_setting(panel, &metric->values[last ? worst_of(metric) : i], &d, i);
    }
    chart->panel_count -= panel->series_count == 0;
    panel->y.log = metric->better == LAB_DIRECTION_LOWER && d.low > 0 && d.high > WIDE * d.low;
    return d;
}

/* --- the end of curves that lie on each other --- */

static double last_of(const struct lab_chart_series *line) {
    return line->count ? line->y[line->count - 1] : (double)NAN;
}

/* How far two ends lie from each other, of the panel's height. */
static double distance(const struct lab_chart_panel *panel, const struct drawing *d, double a,
                       double b) {
    return panel->y.log ? fabs(log(a / b)) / log(d->high / d->low)
                        : fabs(a - b) / (d->high - d->low);
}

/* The part of a series from an x on. */
static struct lab_chart_series end_of(const struct lab_chart_series *series, double from) {
    struct lab_chart_series end = *series;
    size_t first = 0;
    while (first < series->count && series->x[first] < from)
        first++;
    end.x += first;
    end.y += first;
    end.low = series->low ? series->low + first : NULL;
    end.high = series->high ? series->high + first : NULL;
    end.count -= first;
    return end;
}

/* Whether an end from an x on would be a line that lies on the best one's. */
static bool is_near(const struct lab_chart_panel *whole, const struct drawing *d,
                    const struct lab_chart_series *line, const struct lab_chart_series *best,
                    double from) {
    return line->mark == LAB_CHART_LINE && line != best && end_of(line, from).count > 1 &&
           distance(whole, d, last_of(line), last_of(best)) < NEAR;
}

/* Settings whose ends are too near to the best one's to be told apart: their last quarter again,
 * larger. Not where it has hardly a point, such as of three evaluations. */
static void add_ends(struct lab_chart *chart, const struct drawing *d) {
    const struct lab_chart_panel whole = chart->panels[0];
    const struct lab_chart_series *best = NULL;
    double until = NAN;
    int near = 0;
    for (int s = 0; s < whole.series_count; s++) {
        const struct lab_chart_series *line = &whole.series[s];
        if (line->mark != LAB_CHART_LINE)
            continue;
        best = best ? best : line;
        until = fmax(until, line->x[line->count - 1]);
    }
    for (int s = 0; s < whole.series_count; s++)
        near += is_near(&whole, d, &whole.series[s], best, END_FROM * until);
    if (near == 0 || end_of(best, END_FROM * until).count < 2)
        return;
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, "Last quarter", whole.x, lab_axis(whole.y.title), d->arena);
    for (int s = 0; s < whole.series_count; s++) {
        const struct lab_chart_series *own = &whole.series[s], *line = own;
        while (line->mark != LAB_CHART_LINE) /* behind its band */
            line++;
        struct lab_chart_series end = end_of(own, END_FROM * until);
        if (end.count > 1 && distance(&whole, d, last_of(line), last_of(best)) < ENDS_SHOWN)
            lab_panel_add_series(panel, end, d->arena);
    }
    chart->columns = 2;
}

/* --- charts --- */

/* Each setting keeps its colour: panels list settings in the objective's order. */
static struct metrics_metric in_order_of(const struct metrics_metric *metric,
                                         const struct metrics_metric *leading,
                                         struct lab_arena *arena) {
    struct metrics_metric sorted = *metric;
    sorted.values = lab_arena_alloc(arena, (size_t)metric->drawn + 1, sizeof *sorted.values);
    sorted.drawn = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < (pass ? metric : leading)->drawn; i++) {
            const char *name = (pass ? metric : leading)->values[i].name;
            int found = LAB_FIND(metric->values, metric->drawn, name, name);
            if (found >= 0 && LAB_FIND(sorted.values, sorted.drawn, name, name) < 0)
                sorted.values[sorted.drawn++] = metric->values[found];
        }
    return sorted;
}

/* "Compared by seed: adam is lower than adamw in 5 of 5.": bands overlap where seeds differ more
 * than settings do. */
static void add_paired(const struct metrics_metric *metric, struct lab_str *text) {
    const struct metrics_value *best = &metric->values[0], *next = &metric->values[1];
    int pairs = 0, better = 0;
    if (!metric->best || metric->compared < 2 || best->setting->study != next->setting->study)
        return;
    for (int i = 0; i < best->setting->point.count; i++)
        for (int k = 0; k < next->setting->point.count; k++) {
            const struct lab_study_run *a = best->setting->point.runs[i],
                                       *b = next->setting->point.runs[k];
            if (a->run->repeat != b->run->repeat)
                continue;
            double gap = metrics_compared_value(b, metric) - metrics_compared_value(a, metric);
            pairs += isfinite(gap);
            better += metric->better == LAB_DIRECTION_LOWER ? gap > 0 : gap < 0;
        }
    if (pairs > 1)
        lab_str_printf(text, "Compared by seed: %s is %s than %s in %d of %d. ", best->name,
                       metric->better == LAB_DIRECTION_LOWER ? "lower" : "higher", next->name,
                       better, pairs);
}

static const char *caption_of(const struct drawing *d, const struct metrics_metric *leading,
                              struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (leading->drawn > SETTINGS_MOST)
        lab_str_printf(&text, "The %d best and the worst of %d settings. ", SETTINGS_MOST - 1,
                       leading->drawn);
    if (d->repeated)
        lab_str_add(&text, "Lines are means over runs; bands go from their minimum to maximum. ");
    if (d->repeated && d->metric)
        add_paired(d->metric, &text);
    else if (d->thinned)
        lab_str_add(&text, "Bands: minimum to maximum of the values that a point stands for. ");
    if (d->marked)
        lab_str_add(&text, "A point marks where a setting diverged. ");
    if (d->cut)
        lab_str_printf(&text, "Values above %.3g aren't drawn. ", d->limit);
    if (text.length)
        text.text[text.length - 1] = '\0';
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

static void add_grid(struct lab_analysis_result *result, const struct metrics_metric *metrics,
                     int count, const struct metrics_metric *leading, bool over_time,
                     struct lab_chart chart, struct lab_arena *arena) {
    struct drawing all = {.limit = NAN};
    for (int i = 0; i < count && chart.panel_count < PANELS_MOST; i++) {
        const struct metrics_metric *metric = &metrics[i];
        if ((metric == leading && !over_time) || !metrics_has_curve(metric) ||
            (over_time ? some_run(metric, lacks_times) : !is_stepped(metric)))
            continue;
        struct metrics_metric *sorted = lab_arena_alloc(arena, 1, sizeof *sorted);
        *sorted = in_order_of(metric, leading, arena);
        struct drawing d = add_panel(&chart, sorted, over_time, NULL, arena);
        all.repeated |= d.repeated;
        all.thinned |= d.thinned;
        all.marked |= d.marked;
    }
    chart.caption = caption_of(&all, leading, arena);
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}

void metrics_add_curves(struct lab_analysis_result *result, const struct metrics_metric *metrics,
                        int count, int objective, bool simulated, struct lab_arena *arena) {
    int lead = objective >= 0 && metrics_has_curve(&metrics[objective]) ? objective : -1;
    for (int i = 0; i < count && lead < 0; i++)
        if (metrics_has_curve(&metrics[i]))
            lead = i;
    if (lead < 0)
        return;
    const struct metrics_metric *leading = &metrics[lead];
    bool over_time = !is_stepped(leading);
    struct lab_chart first = {.name = "curve",
                              .title = lab_arena_printf(arena, "%s over %s", leading->name,
                                                        over_time              ? "time"
                                                        : is_by_epoch(leading) ? "epochs"
                                                                               : "steps"),
                              .simulated = simulated};
    if (!over_time || !some_run(leading, lacks_times)) {
        struct drawing d = add_panel(&first, leading, over_time, NULL, arena);
        first.caption = caption_of(&d, leading, arena);
        if (first.panel_count > 0) {
            add_ends(&first, &d);
            lab_analysis_add_chart(result, first, arena);
        }
    }
    if (over_time && some_run(leading, goes_back))
        lab_analysis_note(&result->notes, arena,
                          "Not drawn over steps: a run's steps go back, as where it resumes from a "
                          "checkpoint.");
    if (!over_time)
        note_repeated_steps(result, leading, arena);
    if (some_run(leading, lab_curve_is_buffered))
        lab_analysis_note(&result->notes, arena,
                          "Not drawn over time: the program buffers its output, so that values "
                          "come in blocks. stdbuf -oL, or flush=True of Python's print, flushes "
                          "each line.");
    else if (some_run(leading, came_at_once))
        lab_analysis_note(
            &result->notes, arena,
            "Not drawn over time: all values came in one block. If the program buffers "
            "its output, stdbuf -oL, or flush=True of Python's print, flushes each "
            "line.");
    add_grid(result, metrics, count, leading, false,
             (struct lab_chart){.name = "curves_by_step",
                                .title = is_by_epoch(leading) ? "Other metrics over epochs"
                                                              : "Other metrics over steps",
                                .columns = 2,
                                .simulated = simulated},
             arena);
    add_grid(result, metrics, count, leading, true,
             (struct lab_chart){.name = "curves_over_time",
                                .title = "Metrics over time",
                                .columns = 2,
                                .simulated = simulated},
             arena);
}
