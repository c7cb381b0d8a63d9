/* plot_scale.c: where an axis begins and ends, and what stands at its ticks. */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

#define TIC_PIXELS_X   78
#define TIC_PIXELS_Y   34
#define COLUMN_PIXELS  6.8
#define LINE_PIXELS    15
#define DISTINCT_MOST  8
#define ZERO_SHARE     0.5 /* what begins below this share of its end begins at zero */
#define SMALLEST_DIGIT 1e-9

/* --- range --- */

struct range {
    double low, high;
    bool log;
};

static void widen(struct range *range, double value) {
    if (!isfinite(value) || (range->log && value <= 0))
        return;
    range->low = fmin(range->low, value); /* fmin passes NaN over */
    range->high = fmax(range->high, value);
}

static void widen_by_series(struct range *range, const struct lab_chart_series *series, bool of_x) {
    for (size_t i = 0; i < series->count; i++) {
        if (of_x) {
            widen(range, series->x[i]);
            continue;
        }
        if (series->mark != LAB_CHART_BAND && series->y)
            widen(range, series->y[i]);
        const double *others[] = {series->low, series->high, series->least, series->most};
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (others[k])
                widen(range, others[k][i]);
    }
    if (!of_x && series->mark == LAB_CHART_BARS && !range->log)
        widen(range, 0);
}

static bool stands_on_zero(const struct lab_chart_panel *const *panels, int count) {
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p]->series_count; s++)
            if (panels[p]->series[s].mark == LAB_CHART_BARS)
                return true;
    return false;
}

/* So that nothing lies on the frame, and what is near to zero shows how near. */
static void pad(struct range *range, bool of_x, bool on_zero) {
    if (isnan(range->low)) {
        range->low = range->log ? 1 : 0;
        range->high = range->log ? 10 : 1;
    }
    double low = range->low, high = range->high;
    if (range->log) {
        double factor = low == high ? 2 : pow(high / low, of_x ? 0.04 : 0.06);
        range->low = low / factor;
        range->high = high * factor;
        return;
    }
    double span = high - low;
    if (span <= 0)
        span = high != 0 ? fabs(high) * (of_x ? 0.5 : 1) : 1;
    double share = of_x ? 0.02 : 0.06;
    bool from_zero = low >= 0 && (on_zero || (!of_x && low <= ZERO_SHARE * high));
    range->low = from_zero ? 0 : low - share * span;
    if (from_zero)
        span = fmax(span, high);
    range->high = high == 0 && low < 0 && on_zero ? 0 : high + share * span;
}

static struct range find_range(const struct lab_chart_panel *const *panels, int count, bool of_x) {
    const struct lab_chart_axis *axis = of_x ? &panels[0]->x : &panels[0]->y;
    struct range range = {NAN, NAN, axis->log};
    for (int p = 0; p < count; p++) {
        for (int s = 0; s < panels[p]->series_count; s++)
            widen_by_series(&range, &panels[p]->series[s], of_x);
        for (int i = 0; of_x && i < panels[p]->shade_count; i++) {
            widen(&range, panels[p]->shades[i].from);
            widen(&range, panels[p]->shades[i].until);
        }
    }
    pad(&range, of_x, !of_x && stands_on_zero(panels, count));
    if (isfinite(axis->low) && (!axis->log || axis->low > 0)) {
        if (!axis->log && axis->low < range.low) /* room above grows with what is drawn below */
            range.high += (of_x ? 0.02 : 0.06) * (range.low - axis->low);
        range.low = axis->low;
    }
    if (isfinite(axis->high) && (!axis->log || axis->high > 0))
        range.high = axis->high;
    if (!(range.low < range.high))
        range.high = range.log ? range.low * 10 : range.low + 1;
    return range;
}

/* --- ticks --- */

static void add_tic(struct plot_axis *axis, double at, const char *text) {
    if (axis->tic_count >= PLOT_TICS_MOST)
        return;
    struct plot_tic *tic = &axis->tics[axis->tic_count++];
    tic->at = at;
    snprintf(tic->text, sizeof tic->text, "%s", text);
    int columns = lab_str_columns(tic->text);
    axis->longest = columns > axis->longest ? columns : axis->longest;
}

/* "25", "0.25", "20k", "1.5M": figures of one axis agree in their prefix by the largest, and in
 * their decimals by `step`. */
static void add_number(struct plot_axis *axis, double at, double step, double largest) {
    static const struct {
        double from, by;
        const char *sign;
    } prefixes[] = {{1e13, 1e12, "T"}, {1e10, 1e9, "G"}, {1e7, 1e6, "M"}, {1e5, 1e3, "k"}};
    char text[PLOT_TIC_BYTES];
    const char *sign = "";
    double value = at;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !*sign; i++)
        if (largest >= prefixes[i].from) {
            value /= prefixes[i].by;
            step /= prefixes[i].by;
            sign = prefixes[i].sign;
        }
    int decimals = 0;
    double rest = step;
    while (decimals < 6 && fabs(rest - round(rest)) > 1e-6 * rest) {
        rest *= 10;
        decimals++;
    }
    if (largest < 1e-4)
        snprintf(text, sizeof text, "%.3g", value);
    else
        snprintf(text, sizeof text, "%.*f%s", decimals, value, value == 0 ? "" : sign);
    add_tic(axis, at, text);
}

static void add_linear(struct plot_axis *axis, int wanted) {
    double span = axis->high - axis->low, raw = span / (wanted > 1 ? wanted : 1);
    double magnitude = pow(10, floor(log10(raw))), step = 10 * magnitude;
    static const double steps[] = {1, 2, 2.5, 5};
    for (int i = 3; i >= 0; i--)
        if (steps[i] * magnitude >= raw * 0.999)
            step = steps[i] * magnitude;
    double largest = fmax(fabs(axis->low), fabs(axis->high));
    double first = ceil(axis->low / step - 1e-6);
    for (int i = 0; i < PLOT_TICS_MOST; i++) {
        double at = (first + i) * step;
        if (at > axis->high + 1e-6 * step)
            break;
        add_number(axis, fabs(at) < SMALLEST_DIGIT * step ? 0 : at, step, largest);
    }
}

static void add_logarithmic(struct plot_axis *axis, int wanted) {
    static const double fine[] = {1, 1.5, 2, 3, 4, 5, 7}, middle[] = {1, 2, 5}, coarse[] = {1};
    double decades = log10(axis->high / axis->low);
    const double *steps = decades * 7 <= wanted       ? fine
                          : decades * 3 <= wanted + 2 ? middle
                                                      : coarse;
    int count = steps == fine ? 7 : steps == middle ? 3 : 1;
    int every = steps == coarse ? (int)ceil(decades / (wanted > 1 ? wanted : 1)) : 1;
    every = every > 0 ? every : 1;
    for (int e = (int)floor(log10(axis->low)); e <= (int)ceil(log10(axis->high)); e++)
        for (int i = 0; i < count; i++) {
            double at = steps[i] * pow(10, e);
            if (at >= axis->low * 0.9999 && at <= axis->high * 1.0001 && e % every == 0)
                add_number(axis, at, at, at); /* decades have no common prefix */
        }
}

/* --- ticks where the data are --- */

static double place(const struct plot_axis *axis, bool in_log, double at) {
    return in_log ? log(at / axis->low) / log(axis->high / axis->low)
                  : (at - axis->low) / (axis->high - axis->low);
}

/* A few values that were chosen, such as batch sizes, are better ticks than round numbers. False =
 * there are too many, or they lie too near to each other. */
static bool add_own(const struct lab_chart_panel *const *panels, int count, bool in_log, int pixels,
                    struct plot_axis *axis) {
    double found[DISTINCT_MOST];
    int distinct = 0;
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p]->series_count; s++) {
            const struct lab_chart_series *series = &panels[p]->series[s];
            if (series->mark != LAB_CHART_BARS && series->mark != LAB_CHART_BOXES &&
                series->mark != LAB_CHART_LINE_POINTS && series->mark != LAB_CHART_POINTS)
                continue;
            for (size_t i = 0; i < series->count; i++) {
                int k = 0;
                while (k < distinct && found[k] < series->x[i])
                    k++;
                if (!isfinite(series->x[i]) || (k < distinct && found[k] == series->x[i]))
                    continue;
                if (distinct == DISTINCT_MOST || series->x[i] != round(series->x[i]))
                    return false;
                memmove(found + k + 1, found + k, (size_t)(distinct - k) * sizeof *found);
                found[k] = series->x[i];
                distinct++;
            }
        }
    for (int i = 0; i < distinct; i++) {
        if (found[i] < axis->low || found[i] > axis->high)
            return false;
        char text[PLOT_TIC_BYTES];
        double gap = i ? place(axis, in_log, found[i]) - place(axis, in_log, found[i - 1]) : 1;
        if (gap * pixels < COLUMN_PIXELS * (snprintf(text, sizeof text, "%g", found[i]) + 2))
            return false;
    }
    for (int i = 0; i < distinct; i++)
        add_number(axis, found[i], 1, in_log ? found[i] : found[distinct - 1]);
    return distinct > 1;
}

/* --- categories --- */

static void add_names(const struct lab_chart_axis *from, bool of_x, int pixels,
                      struct plot_axis *axis) {
    LAB_AUTO(str, cut);
    int each = pixels / (from->name_count ? from->name_count : 1), longest = 0;
    for (int i = 0; i < from->name_count; i++) {
        int columns = lab_str_columns(from->names[i]);
        longest = columns > longest ? columns : longest;
    }
    int most = of_x ? PLOT_NAME_FITS : PLOT_NAME_MOST; /* below the area they take of its height */
    longest = longest > most ? most : longest;
    if (of_x && longest * COLUMN_PIXELS + 8 > each)
        axis->angle = each > 16 ? PLOT_SLANTED : 90;
    bool along = of_x && axis->angle == 0;
    int every = along ? 1 : (LINE_PIXELS + each - 1) / (each > 0 ? each : 1);
    while (from->name_count > every * PLOT_TICS_MOST)
        every++;
    for (int i = 0; i<from->name_count; i += every> 0 ? every : 1) {
        lab_str_clear(&cut);
        plot_cut(from->names[i], most, &cut);
        add_tic(axis, i, cut.text);
    }
}

void plot_axis_make(const struct lab_chart_panel *const *panels, int count, bool of_x, int pixels,
                    struct plot_axis *ret) {
    const struct lab_chart_axis *axis = of_x ? &panels[0]->x : &panels[0]->y;
    memset(ret, 0, sizeof *ret);
    if (axis->names) {
        ret->low = -0.5 - (panels[0]->heat ? 0 : 0.1);
        ret->high = axis->name_count - 0.5 + (panels[0]->heat ? 0 : 0.1);
        add_names(axis, of_x, pixels, ret);
        return;
    }
    struct range range = find_range(panels, count, of_x);
    ret->low = range.low;
    ret->high = range.high;
    if (of_x && add_own(panels, count, axis->log, pixels, ret))
        return;
    ret->tic_count = ret->longest = 0;
    int wanted = pixels / (of_x ? TIC_PIXELS_X : TIC_PIXELS_Y);
    wanted = wanted < 2 ? 2 : wanted > 9 ? 9 : wanted;
    if (axis->log)
        add_logarithmic(ret, wanted);
    if (ret->tic_count < 2 || !axis->log) {
        ret->tic_count = ret->longest = 0;
        add_linear(ret, wanted);
    }
}
