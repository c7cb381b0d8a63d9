/* top_internal.h: what the parts of `top` share: the history's inside, and putting text on a
 * grid. */
#pragma once

#include "top/top.h"

#define TOP_DEVICES_MAX 256
#define TOP_EVENTS_KEPT 64
#define TOP_NS_PER_S    1000000000LL

/* --- history --- */

struct top_column {
    double scale;          /* the metric's */
    bool counter, charted; /* charted: its past is kept */
    int64_t value;
    int64_t time_ns; /* of the value; valid where count > 0 */
    double sum, highest;
    double growth; /* of a counter, since the first reading */
    int64_t count;
    double rate; /* of a counter, between the last two readings; NaN = fewer */
    /* the past of a gauge, or a counter's rate: NaN = nothing; NULL = not kept */
    float *points;
    double bucket_sum;
    int bucket_count;
};

struct top_entity {
    bool known;
    struct lab_entity entity; /* its strings and columns are our own */
    struct top_column *columns;
    int64_t first_ns, last_ns; /* ticks with a value; -1 = none yet */
    int64_t ticks;             /* of those */
    int64_t gap_ns, back_ns;   /* -1 = never */
    char gap_text[160];
    int64_t held_back_ns; /* while a clock reason did harm, from the flags */
    int64_t missed;
    int64_t bucket;       /* that points are being collected for; -1 = none */
    int64_t bucket_first; /* the oldest that there is */
};

struct top_event {
    int64_t time_ns, number;
    int entity;
    enum lab_event_kind kind;
    char text[120];
};

struct lab_top_history {
    struct lab_top_setup setup;
    int64_t bucket_ns;
    struct top_entity *entities;
    int count;
    struct lab_arena process_arena;
    struct lab_process_list processes;
    bool has_processes;
    struct top_event events[TOP_EVENTS_KEPT]; /* a ring */
    int64_t event_count;
    int64_t time_ns;
    /* what of a recording has been taken in */
    const struct lab_recording *recording;
    size_t *next_tick, next_event, next_list;
    int64_t loaded_ns;
};

/* Devices as they are listed: GPUs by index, MIG instances below their GPU; without any, the CPUs.
 * Returns how many; `ret` are indices into entities. */
int top_devices(const struct lab_top_history *history, int ret[TOP_DEVICES_MAX]);
/* The first entity of a kind that is known, or NULL. */
const struct top_entity *top_of_kind(const struct lab_top_history *history,
                                     enum lab_entity_kind kind);
bool top_has_gpus(const struct lab_top_history *history);

const struct top_column *top_column(const struct top_entity *entity, enum lab_metric_id metric,
                                    int instance);
/* The latest in the metric's unit; a rate also from the bytes in all. NaN = never read. */
double top_latest(const struct top_entity *entity, enum lab_metric_id metric, int instance);
/* Likewise the column whose past is to be charted, or NULL. */
const struct top_column *top_charted(const struct top_entity *entity, enum lab_metric_id metric,
                                     int instance);
double top_mean(const struct top_entity *entity, enum lab_metric_id metric);
double top_highest(const struct top_entity *entity, enum lab_metric_id metric);
double top_growth(const struct top_entity *entity, enum lab_metric_id metric);
/* Seconds in which something held it back: by the driver's counters where it has them. NaN =
 * unknown */
double top_held_back_s(const struct top_entity *entity);
double top_energy_j(const struct top_entity *entity); /* since the first reading */

/* Why an entity gives nothing at that time, in words; NULL = it does. */
const char *top_gap(const struct lab_top_history *history, const struct top_entity *entity,
                    int64_t now_ns, char *text, size_t size);

/* A point of the past, `back` buckets before the one of now_ns; NaN = there is none. What is read
 * seldom holds for a while. */
double top_point(const struct lab_top_history *history, const struct top_entity *entity,
                 const struct top_column *column, int64_t now_ns, int back);

/* "GPU 3", "GPU 3 MIG 1", "CPU" */
void top_device_name(const struct lab_top_history *history, const struct top_entity *entity,
                     struct lab_str *out);
/* A GPU's model without its maker. */
const char *top_model(const struct lab_entity *entity);
int top_gpu_index(const struct lab_top_history *history, int number); /* of a process's GPU; -1 */

/* --- the grid --- */

void top_grid_resize(struct lab_top_grid *grid, int columns, int rows); /* and clears it */
void top_style(struct lab_top_grid *grid, int row, int from, int to, enum lab_top_style style);
/* Puts text into [column, column + width), cut with a mark; returns where it ends. */
int top_put(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
            const char *text);
int top_print(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
              const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Right-aligned in its width. */
void top_right(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
               const char *text);
/* A bar of a share, 0 to 1; NaN = nothing is known. */
void top_bar(struct lab_top_grid *grid, int row, int column, int width, enum lab_top_style style,
             double share, bool unicode);
void top_grid_to_ascii(struct lab_top_grid *grid);

/* --- figures in few columns; all write "–" for NaN --- */

#define TOP_TEXT 32
const char *top_size(double bytes, char text[TOP_TEXT]);                    /* "98.1G", binary */
const char *top_rate(double bytes_per_s, char text[TOP_TEXT]);              /* "3.2G", decimal */
const char *top_percent(double value, char text[TOP_TEXT]);                 /* "72%" */
const char *top_whole(double value, const char *unit, char text[TOP_TEXT]); /* "64°C" */
const char *top_used(double used, double total, char text[TOP_TEXT]);       /* "98.1/141G" */
const char *top_energy(double joules, char text[TOP_TEXT]);                 /* "12.3 kJ" */
const char *top_seconds(double seconds, char text[TOP_TEXT]); /* "12 s", "3 min 4 s" */

/* --- charts --- */

enum top_scale {
    TOP_CHART_PERCENT,
    TOP_CHART_MEMORY,
    TOP_CHART_POWER,
    TOP_CHART_HEAT,
    TOP_CHART_CLOCK,
    TOP_CHART_RATE
};

enum { TOP_LINES = 2 }; /* of a chart, at most */

struct top_line {
    const char *label; /* NULL = there is none */
    enum lab_metric_id metric;
};

struct top_chart {
    const char *title;
    enum top_scale scale;
    struct top_line lines[TOP_LINES];
    int node_from_1; /* of a node's metrics; 0 = they have no instances */
};

/* A heading with the latest values, then rows of the drawing. */
void top_draw_chart(const struct lab_top_history *history, const struct lab_top_view *view,
                    const struct top_entity *entity, const struct top_chart *chart, int row,
                    int column, int width, int height, struct lab_top_grid *grid);
/* A glyph of braille with these dots, as Unicode numbers them. */
void top_put_dots(struct lab_top_grid *grid, int row, int column, unsigned dots,
                  enum lab_top_style style);
/* The bit of a dot, counted from the upper left. */
unsigned top_dot(int x, int y);
bool top_chart_has_data(const struct top_entity *entity, const struct top_chart *chart);

/* --- processes --- */

struct top_row {
    const struct lab_process_sample *process;
    int depth;    /* in the tree */
    bool context; /* only there since a child is */
};

/* In the view's order, filtered; returns how many. */
int top_process_rows(const struct lab_top_history *history, const struct lab_top_view *view,
                     struct lab_arena *arena, struct top_row **ret_rows);
/* Which of them is selected; 0 where none is. */
int top_process_selected(const struct lab_top_view *view, const struct top_row *rows, int count);
/* A heading and rows from `row` on; the selected one is marked where `select`. */
void top_draw_processes(const struct lab_top_history *history, const struct lab_top_view *view,
                        bool select, int row, int height, struct lab_top_grid *grid);
const char *top_sort_title(enum lab_top_sort sort);
/* What the list is sorted by: where there are no GPUs, never by something of theirs. */
enum lab_top_sort top_sort(const struct lab_top_history *history, const struct lab_top_view *view);

/* --- pages --- */

void top_draw_overview(const struct lab_top_history *history, const struct lab_top_view *view,
                       struct lab_top_grid *grid);
void top_draw_device(const struct lab_top_history *history, const struct lab_top_view *view,
                     struct lab_top_grid *grid);
void top_draw_process_page(const struct lab_top_history *history, const struct lab_top_view *view,
                           struct lab_top_grid *grid);
void top_draw_numa(const struct lab_top_history *history, const struct lab_top_view *view,
                   struct lab_top_grid *grid);
void top_draw_program(const struct lab_top_view *view, struct lab_top_grid *grid);
/* Rows from `row` on with a small bar for each CPU of a node (-1 = all), labelled before `indent`;
 * returns the next free row. */
int top_draw_cores(const struct lab_top_history *history, const struct lab_top_view *view, int node,
                   int row, int indent, int rows_max, struct lab_top_grid *grid);
