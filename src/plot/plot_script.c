/*
 * plot_script.c: a chart as gnuplot's script. It draws the PNG and the SVG from one text; the
 * figures lie in NAME.dat.
 */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

const char *const lab_plot_colours[LAB_PLOT_COLOURS] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                        "#56b4e9", "#d55e00", "#000000", "#999999"};

#define FIGURE_PIXELS 34  /* of a bar that has room for its figure */
#define BAR_SHARE     0.8 /* of the distance between neighbours that bars fill */
#define BOX_SHARE     0.7
#define WIDEST        72 /* pixels of a bar */
#define DODGE         0.14
#define AXIS_COLUMNS  6.6
#define PNG_SCALE     2

struct script {
    const struct plot_layout *layout;
    struct lab_str *out;
    int index;  /* of the next block in it */
    int object; /* the last tag */
};

/* --- words --- */

/* In single quotes nothing but the quote itself means anything. */
static void add_quoted(struct lab_str *out, const char *text) {
    lab_str_add(out, "'");
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            lab_str_add(out, "''");
        else
            lab_str_add_bytes(out, (unsigned char)*c < ' ' ? " " : c, 1);
    lab_str_add(out, "'");
}

static void add_cut(struct lab_str *out, const char *text, int columns) {
    LAB_AUTO(str, cut);
    plot_cut(text, columns, &cut);
    add_quoted(out, cut.text);
}

/* A tick's text is a format of its position. */
static void add_tics(struct lab_str *out, const char *axis, const struct plot_axis *made,
                     bool with_texts) {
    lab_str_printf(out, "    set %stics %s(", axis, made->angle ? "" : "norotate ");
    LAB_AUTO(str, text);
    for (int i = 0; i < made->tic_count; i++) {
        lab_str_clear(&text);
        for (const char *c = made->tics[i].text; *c && with_texts; c++)
            lab_str_add_bytes(&text, *c == '%' ? "%%" : c, *c == '%' ? 2 : 1);
        lab_str_add(out, i ? ", " : "");
        add_quoted(out, text.text);
        lab_str_printf(out, " %.10g", made->tics[i].at);
    }
    lab_str_add(out, ")");
    if (made->angle)
        lab_str_printf(out, " rotate by %d right", made->angle);
    lab_str_add(out, "\n");
}

static double across(const struct script *script, double pixels) {
    return pixels / script->layout->width;
}

static double up(const struct script *script, double pixels) {
    return 1 - pixels / script->layout->height;
}

static void add_label(struct script *script, const char *text, int columns, double x, double y,
                      const char *how) {
    lab_str_add(script->out, "    set label ");
    add_cut(script->out, text, columns);
    lab_str_printf(script->out, " at screen %.5f,%.5f %s\n", across(script, x), up(script, y), how);
}

/* "Throughput [samples/s]" beside a low panel: its unit in a second line. */
static void add_y_title(struct script *script, const struct plot_panel *made) {
    const char *title = made->panel->y.title;
    if (!title || !*title)
        return;
    int room = (int)((made->bottom - made->top + 16) / AXIS_COLUMNS);
    double middle = (made->top + made->bottom) / 2.0;
    const char *unit = strstr(title, " [");
    lab_str_add(script->out, "    set label ");
    if (lab_str_columns(title) > room && unit) {
        LAB_AUTO(str, first);
        lab_str_add_bytes(&first, title, (size_t)(unit - title));
        add_cut(script->out, first.text, room);
        lab_str_add(script->out, ".\"\\n\".");
        add_cut(script->out, unit + 1, room);
    } else {
        add_cut(script->out, title, room > 60 ? 60 : room);
    }
    lab_str_printf(script->out, " at screen %.5f,%.5f center rotate by 90 tc rgb '%s'\n",
                   across(script, made->edge + 16), up(script, middle), PLOT_INK);
}

static bool has_figures(const struct lab_chart_panel *panel) {
    for (int i = 0; panel->heat && i < panel->x.name_count * panel->y.name_count; i++)
        if (isfinite(panel->heat->values[i]))
            return true;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        const double *values = series->y ? series->y : series->low;
        for (size_t i = 0; i < series->count; i++)
            if (values && isfinite(values[i]))
                return true;
    }
    return false;
}

static void add_titles(struct script *script, const struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    int room = (int)((made->right - made->left) / AXIS_COLUMNS);
    add_y_title(script, made);
    if (made->with_x && panel->x.title && *panel->x.title)
        add_label(script, panel->x.title, room, (made->left + made->right) / 2.0,
                  made->bottom + made->under - 10, "center tc rgb '" PLOT_INK "'");
    if (!has_figures(panel))
        lab_str_printf(script->out,
                       "    set label 'no figures' at graph 0.5,0.5 center tc rgb '%s'\n",
                       PLOT_AXIS);
    if (panel->title && *panel->title)
        add_label(script, panel->title, room, made->left, made->top - 11,
                  "left tc rgb '" PLOT_INK "'");
}

/* The title, and at its right the word that no simulated figure is shown without. */
static void add_headline(struct script *script) {
    const struct lab_chart *chart = script->layout->chart;
    double width = script->layout->width - 24 - (chart->simulated ? 90 : 0);
    if (chart->title && *chart->title)
        add_label(script, chart->title, (int)(width / 8.2), 12, 20,
                  "left font large tc rgb '" PLOT_INK "'");
    if (chart->simulated)
        add_label(script, "simulated", 20, script->layout->width - 12, 20,
                  "right font large tc rgb '" PLOT_WARN "'");
}

/* --- behind the data --- */

static void add_shades(struct script *script, const struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    double per_x = (made->right - made->left) / (made->x.high - made->x.low);
    for (int i = 0; i < panel->shade_count; i++) {
        const struct lab_chart_shade *shade = &panel->shades[i];
        int colour = shade->colour % PLOT_SHADES;
        double from = fmax(shade->from, made->x.low), until = fmin(shade->until, made->x.high);
        if (!(from < until))
            continue;
        lab_str_printf(
            script->out,
            "    set object %d rectangle from first %.10g, graph 0 to first %.10g, graph "
            "1 behind fillcolor rgb '%s' fillstyle solid noborder\n",
            ++script->object, from, until, plot_shades[colour < 0 ? 0 : colour]);
        if (!shade->title || !*shade->title || plot_shade_title(panel, shade->colour) ||
            (until - from) * per_x < lab_str_columns(shade->title) * AXIS_COLUMNS + 6)
            continue;
        lab_str_add(script->out, "    set label ");
        add_quoted(script->out, shade->title);
        lab_str_printf(script->out,
                       " at first %.10g, graph 1 offset 0,-0.7 center font small tc rgb '%s'\n",
                       (from + until) / 2, PLOT_AXIS);
    }
}

/* --- series --- */

static void add_title(struct script *script, const struct plot_panel *made, const char *title) {
    if (!made->with_key || !plot_in_key(script->layout, made, title)) {
        lab_str_add(script->out, " notitle");
        return;
    }
    lab_str_add(script->out, " title ");
    add_cut(script->out, title, PLOT_KEY_MOST);
}

struct look { /* of a series */
    const char *colour;
    int dash, sign;
};

static struct look find_look(const struct lab_chart_panel *panel, int series) {
    static const int signs[] = {7, 5, 9, 13, 11, 15, 6, 4};
    int colour = plot_colour(panel, series);
    return (struct look){lab_plot_colours[colour % LAB_PLOT_COLOURS],
                         colour / LAB_PLOT_COLOURS % 5 + 1,
                         signs[(colour + colour / LAB_PLOT_COLOURS) % 8]};
}

static void add_source(struct script *script, bool *first) {
    lab_str_printf(script->out, "%s        data index %d ", *first ? "" : ", \\\n", script->index);
    *first = false;
}

/* How far the nth of so many that stand beside each other is moved. */
static double moved(int nth, int count, double each) {
    return (nth - (count - 1) / 2.0) * each;
}

/* gnuplot's own error bars leave a hole where a point would be. */
static void add_whiskers(struct script *script, double by, const char *colour, bool *first) {
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed "
                   "linewidth 1.4 linecolor rgb '%s' notitle",
                   by, colour);
}

static void add_bars(struct script *script, const struct plot_panel *made,
                     const struct lab_chart_series *series, struct look look, double by,
                     double width, bool *first) {
    double base = made->panel->y.log || made->y.low > 0 ? made->y.low : 0;
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):2:($1%+.8g):($1%+.8g):(%.8g):2 with boxxyerror fillstyle solid "
                   "0.85 noborder linecolor rgb '%s'",
                   by, by - width / 2, by + width / 2, base, look.colour);
    add_title(script, made, series->title);
    if (plot_has_whiskers(series))
        add_whiskers(script, by, PLOT_INK, first);
    double per_x = (made->right - made->left) / (made->x.high - made->x.low);
    if (!series->figures || width * per_x < FIGURE_PIXELS)
        return;
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):($4 > $2 ? $4 : $2):(sprintf('%s', $2)) with labels font small "
                   "offset 0,0.7 tc rgb '%s' notitle",
                   by, series->figures, PLOT_AXIS);
}

static void add_boxes(struct script *script, const struct plot_panel *made,
                      const struct lab_chart_series *series, struct look look, double by,
                      double width, bool *first) {
    bool whiskers = series->least && series->most;
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):3:%d:%d:4:(%.8g) with candlesticks whiskerbars 0.5 fillstyle "
                   "solid 0.35 border linewidth 1.3 linecolor rgb '%s'",
                   by, whiskers ? 5 : 3, whiskers ? 6 : 4, width, look.colour);
    add_title(script, made, series->title);
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):2:2:2:2:(%.8g) with candlesticks linewidth 2.5 linecolor rgb "
                   "'%s' notitle",
                   by, 0.96 * width, look.colour);
}

static void add_points(struct script *script, const struct plot_panel *made,
                       const struct lab_chart_series *series, struct look look, double by,
                       bool *first) {
    bool lines = series->mark == LAB_CHART_LINE_POINTS;
    double size = series->count > 400 ? 0.35 : series->count > 100 ? 0.6 : 0.9;
    if (plot_has_whiskers(series))
        add_whiskers(script, by, look.colour, first);
    add_source(script, first);
    lab_str_printf(script->out,
                   "using ($1%+.8g):2 with %s pointtype %d pointsize %.2g %s%s linecolor rgb '%s'",
                   by, lines ? "linespoints" : "points", look.sign, size,
                   lines ? "linewidth 1.8 dashtype " : "",
                   !lines           ? ""
                   : look.dash == 1 ? "1"
                                    : "2",
                   look.colour);
    add_title(script, made, series->title);
}

static void add_line(struct script *script, const struct plot_panel *made,
                     const struct lab_chart_series *series, struct look look, bool *first) {
    add_source(script, first);
    if (series->mark == LAB_CHART_BAND)
        lab_str_printf(script->out,
                       "using 1:3:4 with filledcurves fillstyle transparent solid 0.2 noborder "
                       "linecolor rgb '%s'",
                       look.colour);
    else
        lab_str_printf(script->out, "using 1:2 with %s linewidth %s dashtype %d linecolor rgb '%s'",
                       series->mark == LAB_CHART_STEPS ? "steps" : "lines",
                       series->count > 500 ? "1.2" : "1.8",
                       series->mark == LAB_CHART_DASHES ? 2 : look.dash, look.colour);
    add_title(script, made, series->title);
}

/* How wide each of so many is that share the distance to their neighbours: few aren't drawn as
 * walls. */
static double beside(const struct plot_panel *made, double share, int count) {
    double most = WIDEST * (made->x.high - made->x.low) / (made->right - made->left);
    return fmin(share * made->step / (count ? count : 1), most);
}

static void add_all_series(struct script *script, const struct plot_panel *made, bool *first) {
    int bar = 0, box = 0, dodged = 0;
    for (int s = 0; s < made->panel->series_count; s++, script->index++) {
        const struct lab_chart_series *series = &made->panel->series[s];
        struct look look = find_look(made->panel, s);
        double bar_width = beside(made, BAR_SHARE, made->bars);
        double box_width = beside(made, BOX_SHARE, made->boxes);
        if (series->mark == LAB_CHART_BARS)
            add_bars(script, made, series, look, moved(bar++, made->bars, bar_width), bar_width,
                     first);
        else if (series->mark == LAB_CHART_BOXES)
            add_boxes(script, made, series, look, moved(box++, made->boxes, box_width),
                      0.85 * box_width, first);
        else if (series->mark == LAB_CHART_POINTS)
            add_points(script, made, series, look,
                       made->dodged ? moved(dodged++, made->dodged, fmin(DODGE, 0.7 / made->dodged))
                                    : 0,
                       first);
        else if (series->mark == LAB_CHART_LINE_POINTS)
            add_points(script, made, series, look, 0, first);
        else
            add_line(script, made, series, look, first);
    }
}

/* What other panels show beside this one's, for the key of all. */
static void add_guests(struct script *script, const struct plot_panel *made, bool *first) {
    const struct lab_chart_panel *panel;
    const struct lab_chart_series *guest;
    for (int state = 0; (guest = plot_next_guest(script->layout, made, &state, &panel));) {
        struct look look = find_look(panel, (int)(guest - panel->series));
        bool points = guest->mark == LAB_CHART_POINTS || guest->mark == LAB_CHART_LINE_POINTS;
        bool filled = guest->mark == LAB_CHART_BARS || guest->mark == LAB_CHART_BAND ||
                      guest->mark == LAB_CHART_BOXES;
        lab_str_printf(script->out, "%s        NaN with ", *first ? "" : ", \\\n");
        if (points)
            lab_str_printf(script->out, "points pointtype %d pointsize 0.9", look.sign);
        else if (filled)
            lab_str_add(script->out, "boxes fillstyle solid 0.85 noborder");
        else
            lab_str_printf(script->out, "lines linewidth 1.8 dashtype %d",
                           guest->mark == LAB_CHART_DASHES ? 2 : look.dash);
        lab_str_printf(script->out, " linecolor rgb '%s'", look.colour);
        *first = false;
        add_title(script, made, guest->title);
    }
}

static void add_shade_keys(struct script *script, const struct plot_panel *made, bool *first) {
    for (int c = 0; c < PLOT_SHADES && made->with_key; c++) {
        const char *title = plot_shade_title(made->panel, c);
        if (!title || !plot_in_key(script->layout, made, title))
            continue;
        lab_str_printf(script->out,
                       "%s        NaN with boxes fillstyle solid noborder linecolor rgb '%s'",
                       *first ? "" : ", \\\n", plot_shades[c]);
        *first = false;
        add_title(script, made, title);
    }
}

/* --- heat maps --- */

static void add_heat_look(struct script *script, const struct plot_panel *made) {
    const struct lab_chart_heat *heat = made->panel->heat;
    double low, high, bar = fmin(made->bottom - made->top, 220);
    plot_heat_range(made->panel, &low, &high);
    lab_str_printf(script->out, "    set palette defined (%s)\n    set cbrange [%.8g:%.8g]\n",
                   heat->diverging ? "0 '#0071b1', 0.5 '#f7f7f7', 1 '#d45d00'"
                                   : "0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#2171b5', 1 '#08306b'",
                   low, high);
    lab_str_printf(script->out,
                   "    set colorbox user origin screen %.5f,%.5f size screen %.5f,%.5f noborder\n",
                   across(script, made->right + 12), up(script, made->top + bar),
                   across(script, 12), bar / script->layout->height);
    lab_str_printf(script->out, "    set cbtics scale 0.4 font small tc rgb '%s'\n", PLOT_AXIS);
    if (!heat->title)
        return;
    lab_str_add(script->out, "    set label ");
    add_cut(script->out, heat->title, (int)((made->bottom - made->top + 10) / AXIS_COLUMNS));
    lab_str_printf(script->out, " at screen %.5f,%.5f center rotate by 90 tc rgb '%s'\n",
                   across(script, made->right + 84), up(script, made->top + bar / 2), PLOT_INK);
}

static void add_heat(struct script *script, bool *first) {
    add_source(script, first);
    lab_str_add(script->out,
                "using (valid(3) ? $1 : NaN):2:($1-0.485):($1+0.485):($2-0.46):($2+0.46):3 with "
                "boxxyerror fillstyle solid noborder linecolor palette notitle");
    add_source(script, first);
    lab_str_add(script->out, "using 1:2:4:5 with labels font small textcolor rgb variable notitle");
    script->index++;
}

/* --- a panel --- */

static void add_range(struct lab_str *out, const char *axis, const struct plot_axis *made, bool log,
                      bool reversed) {
    lab_str_printf(out, "    set %srange [%.10g:%.10g] noextend\n", axis,
                   reversed ? made->high : made->low, reversed ? made->low : made->high);
    lab_str_printf(out, "    %s logscale %s\n", log ? "set" : "unset", axis);
}

static void add_panel(struct script *script, const struct plot_panel *made) {
    struct lab_str *out = script->out;
    const struct lab_chart_panel *panel = made->panel;
    lab_str_printf(
        out,
        "    unset label\n    unset object\n    unset colorbox\n    set lmargin at screen "
        "%.5f\n    set rmargin at screen %.5f\n    set tmargin at screen %.5f\n    set "
        "bmargin at screen %.5f\n",
        across(script, made->left), across(script, made->right), up(script, made->top),
        up(script, made->bottom));
    add_range(out, "x", &made->x, panel->x.log && !panel->x.names, false);
    /* the first row of a heat map, as of any table, is the uppermost */
    add_range(out, "y", &made->y, panel->y.log && !panel->y.names, panel->heat != NULL);
    add_tics(out, "x", &made->x, made->with_x);
    add_tics(out, "y", &made->y, true);
    lab_str_printf(out, "    set grid %s%s\n",
                   panel->heat || panel->x.names ? "noxtics " : "xtics ",
                   panel->heat || panel->y.names ? "noytics" : "ytics");
    lab_str_printf(out, "    set border %d\n", panel->heat ? 0 : 3);
    script->object = 0;
    if (made == script->layout->panels)
        add_headline(script);
    add_titles(script, made);
    add_shades(script, made);
    if (panel->heat)
        add_heat_look(script, made);
    if (made->with_key)
        lab_str_printf(out,
                       "    set key at screen %.5f,%.5f left top vertical maxcols 1 Left reverse "
                       "samplen 2 spacing 1.15 font small tc rgb '%s'\n",
                       across(script, made->right + 8), up(script, made->top - 4), PLOT_INK);
    else
        lab_str_add(out, "    unset key\n");
    bool first = true;
    lab_str_add(out, "    plot \\\n");
    if (panel->heat)
        add_heat(script, &first);
    add_all_series(script, made, &first);
    add_guests(script, made, &first);
    add_shade_keys(script, made, &first);
    lab_str_add(out, first ? "        NaN notitle\n" : "\n");
}

static void add_terminals(const struct plot_layout *layout, const char *name, struct lab_str *out) {
    lab_str_add(out, "do for [kind in \"png svg\"] {\n    if (kind eq \"png\") {\n");
    lab_str_printf(
        out,
        "        set terminal pngcairo size %d,%d noenhanced font 'Sans,9' fontscale %d "
        "linewidth %d pointscale %d background rgb '%s'\n        large = ',11.5'; small = "
        "',8.5'\n    } else {\n",
        layout->width * PNG_SCALE, layout->height * PNG_SCALE, PNG_SCALE, PNG_SCALE, PNG_SCALE,
        PLOT_BACK);
    lab_str_printf(out,
                   "        set terminal svg size %d,%d noenhanced font 'sans-serif,12' background "
                   "rgb '%s'\n        large = ',15'; small = ',11'\n    }\n    set output ",
                   layout->width, layout->height, PLOT_BACK);
    add_quoted(out, name);
    lab_str_add(out, ".'.'.kind\n");
}

void lab_plot_script(const struct lab_chart *chart, const char *name, struct lab_str *out) {
    struct plot_layout layout;
    LAB_AUTO(arena, arena);
    struct lab_chart shortened = plot_shorten(chart, &arena);
    plot_layout_make(&shortened, &layout);
    struct script script = {.layout = &layout, .out = out};
    lab_str_printf(out,
                   "# %s, for gnuplot 5.2 or newer: `gnuplot %s.gp`, here, draws it anew.\n"
                   "set encoding utf8\nset decimalsign '.'\ndata = '%s.dat'\n",
                   name, name, name);
    add_terminals(&layout, name, out);
    lab_str_printf(
        out,
        "    set multiplot\n    unset label\n    set tics nomirror out scale 0.5 textcolor "
        "rgb '%s'\n    set border 3 linecolor rgb '%s'\n    set grid linetype 1 linewidth "
        "0.6 linecolor rgb '%s', linetype 1 linewidth 0.6 linecolor rgb '%s'\n    set "
        "bars 0.6\n    set style fill solid\n",
        PLOT_AXIS, PLOT_AXIS, PLOT_GRID, PLOT_GRID);
    for (int p = 0; p < chart->panel_count; p++)
        add_panel(&script, &layout.panels[p]);
    lab_str_add(out, "    unset multiplot\n    unset output\n}\n");
    lab_mem_free(layout.panels);
}
