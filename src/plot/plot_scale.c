/* plot_scale.c: where an axis begins and ends, and what stands at its ticks. */
#include "plot/plot_internal.h"

#include "base/list.h"

#include <math.h>
#include <string.h>

#define TIC_SIZES_X    6.2 /* from one tick to the next, in sizes of its letters */
#define TIC_SIZES_Y    3
#define LINE_SIZES     1.25
#define TICS_LEAST     3  /* of y; of x, names and widths decide */
#define NAME_SIZES     17 /* the longest name, before it is cut */
#define ROW_SIZES      26 /* of a row, on a page; a paper has no room for that */
#define DISTINCT_MOST  8
#define FIGURE_SHARE   0.14 /* of the height that values above bars take */
#define UPRIGHT_FROM   8    /* bars of a panel: values of more stand upright */
#define UPRIGHT_SIZES  3.6  /* their lengths, in sizes of their letters */
#define ZERO_SHARE     0.5  /* what begins below this share of its end begins at zero */
#define SMALLEST_DIGIT 1e-9
#define CONSTANT       1e-9 /* share of the values: a smaller range is rounding */
#define ZERO_AT        0.03 /* of a logarithmic axis: where 0 stands */
#define ZERO_ROOM      0.12
#define FARTHEST       10  /* times the largest value that intervals may reach beyond */
#define USUAL_WIDTHS   1.5 /* of the median interval: wider ones are cut at the area's edge */

/* --- range --- */

struct range {
    double low, high;
    bool log;
    bool valued; /* above bars */
    int bars;    /* that have their values there */
    bool zero;   /* of a logarithmic x: some are 0 */
};

static void widen(struct range *range, double value) {
    if (!isfinite(value) || (range->log && value <= 0))
        return;
    range->low = fmin(range->low, value); /* fmin passes NaN over */
    range->high = fmax(range->high, value);
}

static double within(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* Intervals as far as `low` and `high`: one of two runs, many times wider than all others, must not
 * press what was measured into a line. It leaves the area. */
static void widen_by_series(struct range *range, const struct lab_chart_series *series, bool of_x,
                            const struct range *most) {
    bool whiskers = plot_has_whiskers(series);
    for (size_t i = 0; i < series->count; i++) {
        if (of_x) {
            widen(range, series->x[i]);
            range->zero |= range->log && series->x[i] == 0;
            continue;
        }
        if (series->mark != LAB_CHART_BAND && series->y)
            widen(range, series->y[i]);
        const double *others[] = {series->low, series->high, series->least, series->most};
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (others[k])
                widen(range, whiskers && isfinite(others[k][i])
                                 ? within(others[k][i], most->low, most->high)
                                 : others[k][i]);
    }
    if (!of_x && series->mark == LAB_CHART_BARS && !range->log)
        widen(range, 0);
    range->valued |= !of_x && series->valued;
    range->bars += !of_x && series->valued ? (int)series->count : 0;
}

/* How far intervals may reach: twice the span of the values beyond them, or some of the usual
 * interval's widths. Of positive values, no farther than twice the largest: those of two runs would
 * press the values into a line. */
static struct range whiskers_most(const struct lab_chart_panel *const *panels, int count,
                                  struct lab_arena *arena) {
    struct range values = {.low = NAN, .high = NAN};
    double *widths = NULL;
    size_t room = 1, n = 0;
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p]->series_count; s++)
            room += 2 * panels[p]->series[s].count;
    widths = lab_arena_alloc(arena, room, sizeof *widths);
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p]->series_count; s++) {
            const struct lab_chart_series *series = &panels[p]->series[s];
            for (size_t i = 0; plot_has_whiskers(series) && i < series->count; i++) {
                widen(&values, series->y[i]);
                if (isfinite(series->high[i] - series->low[i]))
                    widths[n++] = series->high[i] - series->low[i];
            }
        }
    LAB_SORT_NUMBERS(widths, n);
    double beyond = fmax(2 * (values.high - values.low), n > 0 ? USUAL_WIDTHS * widths[n / 2] : 0);
    double scale = FARTHEST * fmax(fabs(values.low), fabs(values.high));
    if (n > 0) /* where half of them are as wide, the narrowest one decides */
        beyond = fmin(beyond, fmax(scale, USUAL_WIDTHS * widths[0]));
    if (values.low > 0)
        beyond = fmin(beyond, values.high);
    return (struct range){.low = values.low - beyond, .high = values.high + beyond};
}

/* Series that stand on each other reach their sum. */
static void widen_by_stack(struct range *range, const struct lab_chart_panel *panel) {
    for (int s = 0; s < panel->series_count; s++)
        for (size_t i = 0; panel->series[s].mark == LAB_CHART_STACK && i < panel->series[s].count;
             i++) {
            double sum = 0;
            for (int k = 0; k <= s; k++)
                for (size_t j = 0;
                     panel->series[k].mark == LAB_CHART_STACK && j < panel->series[k].count; j++)
                    if (panel->series[k].x[j] == panel->series[s].x[i] &&
                        isfinite(panel->series[k].y[j]))
                        sum += panel->series[k].y[j];
            widen(range, sum);
        }
}

static bool stands_on_zero(const struct lab_chart_panel *const *panels, int count) {
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p]->series_count; s++)
            if (panels[p]->series[s].mark == LAB_CHART_BARS ||
                panels[p]->series[s].mark == LAB_CHART_STACK)
                return true;
    return false;
}

/* So that nothing lies on the frame, and what is near to zero shows how near. */
static void pad(struct range *range, bool of_x, bool on_zero, double figures) {
    if (isnan(range->low)) {
        range->low = range->log ? 1 : 0;
        range->high = range->log ? 10 : 1;
    }
    double low = range->low, high = range->high;
    if (!of_x && high - low <= CONSTANT * fmax(fabs(low), fabs(high)))
        low = high;
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
    if (range->valued && high > 0)
        range->high += figures * span;
    if (range->valued && low < 0)
        range->low -= figures * span;
}

/* Of the span, that values above bars take. */
static double figure_share(int bars, double pixels, double size) {
    double length = UPRIGHT_SIZES * size;
    return bars > UPRIGHT_FROM && pixels > 2 * length
               ? fmax(FIGURE_SHARE, length / (pixels - length))
               : FIGURE_SHARE;
}

static struct range find_range(const struct lab_chart_panel *const *panels, int count, bool of_x,
                               double pixels, double size) {
    const struct lab_chart_axis *axis = of_x ? &panels[0]->x : &panels[0]->y;
    struct range range = {.low = NAN, .high = NAN, .log = axis->log};
    LAB_AUTO(arena, arena);
    struct range most = whiskers_most(panels, count, &arena);
    for (int p = 0; p < count; p++) {
        for (int s = 0; s < panels[p]->series_count; s++)
            widen_by_series(&range, &panels[p]->series[s], of_x, &most);
        if (!of_x)
            widen_by_stack(&range, panels[p]);
        for (int i = 0; of_x && i < panels[p]->shade_count; i++) {
            widen(&range, panels[p]->shades[i].from);
            widen(&range, panels[p]->shades[i].until);
        }
    }
    pad(&range, of_x, !of_x && stands_on_zero(panels, count),
        figure_share(range.bars / (count > 0 ? count : 1), pixels, size));
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
    tic->text[lab_str_utf8_prefix(tic->text, strlen(tic->text))] = 0;
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
    const char *minus = value < 0 ? "−" : "";
    if (largest < 1e-4)
        snprintf(text, sizeof text, "%s%.3g", minus, fabs(value));
    else
        snprintf(text, sizeof text, "%s%.*f%s", minus, decimals, fabs(value),
                 value == 0 ? "" : sign);
    add_tic(axis, at, text);
}

/* From tick to tick: at least `raw`, a round number. */
static double step_of(double raw) {
    static const double steps[] = {1, 2, 2.5, 5};
    double magnitude = pow(10, floor(log10(raw))), step = 10 * magnitude;
    for (int i = 3; i >= 0; i--)
        if (steps[i] * magnitude >= raw * 0.999)
            step = steps[i] * magnitude;
    return step;
}

static int count_linear(const struct plot_axis *axis, double step) {
    return (int)(floor(axis->high / step + 1e-6) - ceil(axis->low / step - 1e-6)) + 1;
}

static void add_linear(struct plot_axis *axis, int wanted, int least) {
    double raw = (axis->high - axis->low) / (wanted > 1 ? wanted : 1), step = step_of(raw);
    while (count_linear(axis, step) < least)
        step = step_of(raw *= 0.8);
    double largest = fmax(fabs(axis->low), fabs(axis->high));
    double first = ceil(axis->low / step - 1e-6);
    for (int i = 0; i < PLOT_TICS_MOST; i++) {
        double at = (first + i) * step;
        if (at > axis->high + 1e-6 * step)
            break;
        add_number(axis, fabs(at) < SMALLEST_DIGIT * step ? 0 : at, step, largest);
    }
}

/* Decades have no common prefix. Where large ones have one, all from 1000 do: "1k", "10k". */
static double prefix_of(double at, double highest) {
    return highest < 1e5 || at < 1e3 ? at : at < 1e6 ? 1e5 : at < 1e9 ? 1e7 : 10 * at;
}

/* Of steps of a decade, those within the axis; returns how many. `axis` NULL: they are counted. */
static int add_steps(const struct plot_axis *of, const double *steps, int count, int every,
                     struct plot_axis *axis) {
    int found = 0;
    for (int e = (int)floor(log10(of->low)); e <= (int)ceil(log10(of->high)); e++)
        for (int i = 0; i < count; i++) {
            double at = steps[i] * pow(10, e);
            if (at < of->low * 0.9999 || at > of->high * 1.0001 || e % every != 0)
                continue;
            found++;
            if (axis)
                add_number(axis, at, at, prefix_of(at, of->high * 1.0001));
        }
    return found;
}

/* Two ticks look like those of a linear axis: then more, where they fit. */
static void add_logarithmic(struct plot_axis *axis, int wanted) {
    static const double fine[] = {1, 1.5, 2, 3, 4, 5, 7}, closer[] = {1, 2, 3, 5},
                        thirds[] = {1, 3}, middle[] = {1, 2, 5}, coarse[] = {1};
    double decades = log10(axis->high / axis->low);
    if (decades * 7 <= wanted) {
        add_steps(axis, fine, 7, 1, axis);
    } else if (decades * 3 <= wanted + 2) {
        bool few = add_steps(axis, middle, 3, 1, NULL) < TICS_LEAST &&
                   add_steps(axis, closer, 4, 1, NULL) <= wanted;
        add_steps(axis, few ? closer : middle, few ? 4 : 3, 1, axis);
    } else {
        int every = (int)fmax(1, ceil(decades / (wanted > 1 ? wanted : 1)));
        bool few = add_steps(axis, coarse, 1, every, NULL) < TICS_LEAST;
        if (few && add_steps(axis, middle, 3, 1, NULL) <= 2 * wanted)
            add_steps(axis, middle, 3, 1, axis);
        else if (few && add_steps(axis, thirds, 2, 1, NULL) <= 2 * wanted)
            add_steps(axis, thirds, 2, 1, axis);
        else
            add_steps(axis, coarse, 1, every, axis);
    }
}

/* --- ticks where the data are --- */

double plot_axis_share(const struct plot_axis *axis, double at) {
    if (axis->log && at <= 0)
        return axis->zero && at == 0 ? ZERO_AT : (double)NAN;
    double share = axis->log ? log(at / axis->low) / log(axis->high / axis->low)
                             : (at - axis->low) / (axis->high - axis->low);
    return axis->reversed ? 1 - share : share;
}

/* Whether the text of a tick would touch that of the one before. */
static bool lies_near(const struct plot_axis *axis, double before, double at, double pixels,
                      double size) {
    char text[PLOT_TIC_BYTES];
    double gap = fabs(plot_axis_share(axis, at) - plot_axis_share(axis, before));
    snprintf(text, sizeof text, "%g", at);
    return gap * pixels < plot_text_width(text, size) + size;
}

/* A few values that were chosen, such as batch sizes, are better ticks than round numbers; those
 * that lie too near to others have none. False = there are too many, or less than half have room.
 */
static bool add_own(const struct lab_chart_panel *const *panels, int count, double pixels,
                    double size, struct plot_axis *axis) {
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
    int kept = 0;
    double ends[DISTINCT_MOST];
    for (int i = 0; i < distinct; i++) {
        if (found[i] < axis->low || found[i] > axis->high)
            return false;
        bool last = i == distinct - 1;
        while (last && kept > 1 && lies_near(axis, ends[kept - 1], found[i], pixels, size))
            kept--;
        if (kept == 0 || !lies_near(axis, ends[kept - 1], found[i], pixels, size))
            ends[kept++] = found[i];
    }
    if (kept < 2 || 2 * kept < distinct)
        return false;
    for (int i = 0; i < kept; i++)
        add_number(axis, ends[i], 1, axis->log ? ends[i] : ends[kept - 1]);
    return true;
}

/* --- categories --- */

/* Along the axis where all fit; else slanted or upright, not all where that is too much. */
static void add_names(const struct lab_chart_axis *from, bool of_x, double pixels, double size,
                      struct plot_axis *axis) {
    LAB_AUTO(arena, arena);
    double most = (of_x || size < plot_page.small ? NAME_SIZES : ROW_SIZES) * size;
    double each = pixels / (from->name_count ? from->name_count : 1), longest = 0;
    for (int i = 0; i < from->name_count; i++)
        longest = fmax(longest, plot_text_width(from->names[i], size));
    if (of_x && fmin(longest, NAME_SIZES * size) + 1.5 * size > each)
        axis->angle = each > 1.9 * size ? PLOT_SLANTED : 90;
    int every = of_x && axis->angle == 0 ? 1 : (int)ceil(LINE_SIZES * size / each);
    while (every < 1 || from->name_count > every * PLOT_TICS_MOST)
        every++;
    for (int i = 0; i < from->name_count; i += every)
        add_tic(axis, i, plot_text_cut(from->names[i], size, most, &arena));
}

static void add_numbers(const struct lab_chart_panel *const *panels, int count, bool of_x,
                        double pixels, double size, struct plot_axis *ret) {
    struct range range = find_range(panels, count, of_x, pixels, size);
    ret->low = range.low;
    ret->high = range.high;
    ret->log = range.log;
    if (of_x && !range.zero && add_own(panels, count, pixels, size, ret))
        return;
    ret->tic_count = 0;
    int wanted = (int)(pixels / (size * (of_x ? TIC_SIZES_X : TIC_SIZES_Y)));
    wanted = wanted < 2 ? 2 : wanted > 9 ? 9 : wanted;
    if (ret->log)
        add_logarithmic(ret, wanted);
    int least = of_x ? 2 : TICS_LEAST;
    if (ret->tic_count < least) {
        ret->tic_count = 0;
        add_linear(ret, wanted, of_x ? 0 : least);
    }
    if (range.zero) { /* beyond an empty stretch, so that nobody takes it for a small number */
        ret->zero = true;
        ret->low /= pow(ret->high / ret->low, ZERO_ROOM);
        add_tic(ret, 0, "0");
    }
}

void plot_axis_make(const struct lab_chart_panel *const *panels, int count, bool of_x,
                    double pixels, double size, struct plot_axis *ret) {
    const struct lab_chart_axis *axis = of_x ? &panels[0]->x : &panels[0]->y;
    memset(ret, 0, sizeof *ret);
    if (axis->names) {
        double beyond = panels[0]->heat || !of_x ? 0 : 0.1;
        ret->low = -0.5 - beyond;
        ret->high = fmax(axis->name_count, 1) - 0.5 + beyond;
        ret->reversed = !of_x; /* the first row, as of any table, is the uppermost */
        add_names(axis, of_x, pixels, size, ret);
    } else {
        add_numbers(panels, count, of_x, pixels, size, ret);
    }
    for (int i = 0; i < ret->tic_count; i++)
        ret->longest = fmax(ret->longest, plot_text_width(ret->tics[i].text, size));
}
