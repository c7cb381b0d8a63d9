/*
 * top_program.c: the page of a program that a study runs: a chart for each metric, main ones
 * first. The vertical axis goes from the least to the most of its values.
 */
#include "model/program.h"
#include "top/top_internal.h"

#include <math.h>

#define GUTTER      9 /* "0.00123│" and a space before it */
#define HEIGHT      6 /* of a chart, with its heading; at least */
#define TWO_COLUMNS 100
#define WIDE        50 /* a positive metric with that range is drawn logarithmically */

struct area {
    struct lab_top_grid *grid;
    int row, column, width, height; /* of the drawing itself */
    bool unicode;
};

static const char *figure(double value, char text[TOP_TEXT]) {
    LAB_AUTO(str, number);
    lab_str_add_digits(&number, value, fabs(value) < 1000 ? 4 : 7);
    snprintf(text, TOP_TEXT, "%s", isnan(value) ? "–" : number.text);
    return text;
}

/* Steps are whole, however many. */
static const char *place(double value, char text[TOP_TEXT]) {
    if (value != floor(value) || fabs(value) > 1e15)
        return figure(value, text);
    snprintf(text, TOP_TEXT, "%.0f", value);
    return text;
}

/* --- one curve --- */

struct shape {
    const struct lab_curve *curve;
    const char *axis; /* "time", "step" or "epoch" */
    bool over_time, log;
    double from, until, low, high;
};

static struct shape shape_of(const struct lab_curve *curve, bool by_epoch) {
    struct shape shape = {.curve = curve, .over_time = !curve->stepped, .low = NAN, .high = NAN};
    shape.axis = shape.over_time ? "time" : by_epoch ? "epoch" : "step";
    struct lab_curve_line line = lab_curve_line(curve, shape.over_time);
    for (int i = 0; i < line.count; i++) {
        shape.low = fmin(shape.low, line.points[i].value); /* fmin passes NaN over */
        shape.high = fmax(shape.high, line.points[i].value);
    }
    const struct lab_curve_point *first = &line.points[0], *last = &line.points[line.count - 1];
    shape.from = shape.over_time ? first->time_s : first->step;
    shape.until = shape.over_time ? last->time_s : last->step;
    shape.log = shape.low > 0 && shape.high > WIDE * shape.low;
    return shape;
}

/* From 0 (the least) to 1; NaN = nothing is there. */
static double height_at(const struct shape *shape, double share) {
    double value = lab_curve_at(shape->curve, shape->over_time,
                                shape->from + share * (shape->until - shape->from));
    double low = shape->low, high = shape->high;
    if (shape->log) {
        value = log(value);
        low = log(low);
        high = log(high);
    }
    return high > low ? (value - low) / (high - low) : 0.5 + 0 * value;
}

static void draw_braille(const struct area *area, const struct shape *shape) {
    LAB_AUTO_FREE uint8_t *dots = lab_mem_alloc((size_t)area->width * (size_t)area->height, 1);
    int high = 4 * area->height, before = -1, wide = 2 * area->width;
    for (int x = 0; x < wide; x++) {
        double value = height_at(shape, (double)x / (wide - 1));
        if (isnan(value)) {
            before = -1;
            continue;
        }
        int y = high - 1 - (int)lround(fmin(fmax(value, 0), 1) * (high - 1));
        int from = before < 0 ? y : before < y ? before + 1 : before > y ? before - 1 : y;
        before = y;
        for (int at = from < y ? from : y; at <= (from < y ? y : from); at++) {
            uint8_t *cell = &dots[at / 4 * area->width + x / 2];
            *cell |= (uint8_t)top_dot(x, at);
            top_put_dots(area->grid, area->row + at / 4, area->column + x / 2, *cell,
                         LAB_TOP_FIRST);
        }
    }
}

static void draw_ascii(const struct area *area, const struct shape *shape) {
    for (int x = 0; x < area->width; x++) {
        double value = height_at(shape, (double)x / (area->width > 1 ? area->width - 1 : 1));
        if (isnan(value))
            continue;
        int y = area->height - 1 - (int)lround(fmin(fmax(value, 0), 1) * (area->height - 1));
        top_put(area->grid, area->row + y, area->column + x, 1, LAB_TOP_FIRST, "*");
    }
}

static void draw_axis(const struct area *area, const struct shape *shape) {
    char text[TOP_TEXT];
    for (int y = 0; y < area->height; y++)
        top_put(area->grid, area->row + y, area->column - 1, 1, LAB_TOP_DIM, "│");
    if (shape->high > shape->low)
        top_right(area->grid, area->row, area->column - GUTTER, GUTTER - 1, LAB_TOP_DIM,
                  figure(shape->high, text));
    if (area->height > 1)
        top_right(area->grid, area->row + area->height - 1, area->column - GUTTER, GUTTER - 1,
                  LAB_TOP_DIM, figure(shape->low, text));
}

/* "val_loss 0.0312  least 0.0301" and what the horizontal axis is. */
static void draw_heading(const struct area *area, const struct lab_metric_curve *metric, bool ranks,
                         const struct shape *shape, int column, int end) {
    char text[TOP_TEXT], span[4 * TOP_TEXT];
    int row = area->row - 1;
    column = top_put(area->grid, row, column, end - column, LAB_TOP_BOLD, metric->name);
    if (ranks && metric->rank >= 0)
        column =
            top_print(area->grid, row, column, end - column, LAB_TOP_DIM, " rank %d", metric->rank);
    column = top_print(area->grid, row, column, end - column, LAB_TOP_PLAIN, " %s%s%s",
                       figure(metric->curve.last, text), *metric->unit ? " " : "", metric->unit);
    if (shape) {
        char until[TOP_TEXT];
        snprintf(span, sizeof span, "%s %s to %s%s%s", shape->axis, place(shape->from, text),
                 place(shape->until, until), shape->over_time ? " s" : "",
                 shape->log ? ", log" : "");
        if (column + 1 + lab_str_columns(span) <= end)
            top_right(area->grid, row, column, end - column, LAB_TOP_DIM, span);
    }
}

/* Whether several ranks report it. */
static bool has_ranks(const struct lab_program *program, const struct lab_metric_curve *metric) {
    for (int i = 0; i < program->metric_count; i++)
        if (program->metrics[i].rank != metric->rank &&
            lab_str_equal(program->metrics[i].name, metric->name))
            return true;
    return false;
}

static void draw_metric(const struct lab_top_view *view, const struct lab_program *program,
                        int index, int row, int column, int width, int height,
                        struct lab_top_grid *grid) {
    const struct lab_metric_curve *metric = &program->metrics[index];
    bool ranks = has_ranks(program, metric);
    struct area area = {grid, row + 1, column + GUTTER, width - GUTTER, height - 1, view->unicode};
    if (metric->curve.count < 2 || metric->curve.finite < 2) {
        draw_heading(&area, metric, ranks, NULL, column, column + width);
        return;
    }
    struct shape shape = shape_of(&metric->curve, program->by_epoch);
    draw_heading(&area, metric, ranks, &shape, column, column + width);
    draw_axis(&area, &shape);
    if (view->unicode)
        draw_braille(&area, &shape);
    else
        draw_ascii(&area, &shape);
}

/* --- the page --- */

static void draw_first_line(const struct lab_top_view *view, const struct lab_program *program,
                            struct lab_top_grid *grid) {
    int at = top_print(grid, 1, 1, grid->columns - 2, LAB_TOP_BOLD, "%s", program->study);
    at = top_print(grid, 1, at, grid->columns - 1 - at, LAB_TOP_PLAIN, ": %s", program->name);
    if (!isnan(program->step))
        at = top_print(grid, 1, at, grid->columns - 1 - at, LAB_TOP_PLAIN, ", %s %.10g",
                       program->by_epoch ? "epoch" : "step", program->step);
    if (view->program_count > 1)
        top_print(grid, 1, at, grid->columns - 1 - at, LAB_TOP_DIM, "  (%d of %d, ↑↓ selects)",
                  view->program + 1, view->program_count);
}

void top_draw_program(const struct lab_top_view *view, struct lab_top_grid *grid) {
    if (view->program_count == 0) {
        top_put(grid, 2, 1, grid->columns - 2, LAB_TOP_PLAIN,
                "No study runs a program on this host now.");
        top_put(grid, 3, 1, grid->columns - 2, LAB_TOP_DIM,
                "'gpulab run test_matrix …' runs one; 'gpulab status' shows studies.");
        return;
    }
    int index = view->program < view->program_count ? view->program : view->program_count - 1;
    const struct lab_program *program = &view->programs[index];
    draw_first_line(view, program, grid);
    if (program->metric_count == 0) {
        top_put(grid, 3, 1, grid->columns - 2, LAB_TOP_PLAIN, "It has reported no metric yet.");
        return;
    }
    int across = grid->columns >= TWO_COLUMNS && program->metric_count > 1 ? 2 : 1;
    int room = grid->rows - 3, width = (grid->columns - 1) / across;
    int rows = (program->metric_count + across - 1) / across;
    int shown = room / HEIGHT < rows ? room / HEIGHT : rows;
    shown = shown > 0 ? shown : 1;
    int first = view->scroll > rows - shown ? rows - shown : view->scroll;
    for (int r = 0; r < shown; r++)
        for (int c = 0; c < across; c++) {
            int metric = (first + r) * across + c;
            if (metric < program->metric_count)
                draw_metric(view, program, metric, 2 + r * (room / shown), c * width + 1, width - 2,
                            room / shown, grid);
        }
    if (first + shown < rows)
        top_put(grid, grid->rows - 2, 0, 1, LAB_TOP_DIM, "▼");
}
