/*
 * top.h: the screen of `gpulab top` without a terminal. Three parts, each a function of what it is
 * given: a history that takes samples, a drawing of history and view as a grid of cells, and a key
 * handler that changes the view. So what a person sees is tested as text, and replaying a recording
 * is the same as watching a machine. The terminal itself is top_terminal.h.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "model/machine.h"
#include "model/recording.h"
#include "model/sample.h"

/* --- history: the latest of everything, and a bounded past of what charts show --- */

#define LAB_TOP_POINTS 1200 /* of one metric */

struct lab_top_setup {
    int64_t interval_ns;
    int64_t window_ns;                 /* how far back charts reach; 0 = ten minutes */
    const struct lab_machine *machine; /* whose CPUs are on which node; NULL = unknown */
};

struct lab_top_history;

struct lab_top_history *lab_top_history_open(const struct lab_top_setup *setup);
void lab_top_history_close(struct lab_top_history *history); /* accepts NULL */

/* A whole copy: what is looked at while paused. */
struct lab_top_history *lab_top_history_copy(const struct lab_top_history *history);

struct lab_sink_samples lab_top_history_sink(struct lab_top_history *history);

/*
 * What a watcher would have seen of the recording until then: goes on from where it was, or starts
 * afresh for an earlier time. The recording must be the same one each time, and outlive the
 * history.
 */
void lab_top_history_load(struct lab_top_history *history, const struct lab_recording *recording,
                          int64_t until_ns);

/* The first and last time of anything in a recording; both 0 if it holds nothing. */
void lab_top_recording_span(const struct lab_recording *recording, int64_t *ret_begin_ns,
                            int64_t *ret_end_ns);

int64_t
lab_top_history_time_ns(const struct lab_top_history *history); /* newest; 0 = nothing yet */
bool lab_top_history_simulated(const struct lab_top_history *history);
/* All has been read over at least that time, as rates need it, or is in a gap; processes too. */
bool lab_top_history_is_whole(const struct lab_top_history *history, int64_t span_ns);

/* --- the grid --- */

enum lab_top_style {
    LAB_TOP_PLAIN,
    LAB_TOP_DIM,
    LAB_TOP_BOLD,
    LAB_TOP_TITLE,    /* the first line, and headings of tables */
    LAB_TOP_SELECTED, /* the row that keys act on */
    LAB_TOP_FIRST,    /* blue: utilisation, the first line of a chart */
    LAB_TOP_SECOND,   /* orange: memory, the second */
    LAB_TOP_WARNING,  /* orange and bold; a mark or word says the same */
    LAB_TOP_ALARM,    /* reversed; likewise */
    LAB_TOP_STYLE_COUNT
};

struct lab_top_cell {
    char glyph[5]; /* one code point of one column, in UTF-8 */
    uint8_t style;
};

struct lab_top_grid {
    int columns, rows;
    struct lab_top_cell *cells; /* row by row */
};

void lab_top_grid_init(struct lab_top_grid *grid);
void lab_top_grid_release(struct lab_top_grid *grid);
/* Its lines without the spaces at their ends. */
void lab_top_grid_write(const struct lab_top_grid *grid, struct lab_str *out);

/* --- the view --- */

#define LAB_TOP_COLUMNS_MIN 40
#define LAB_TOP_ROWS_MIN    12

enum lab_top_page {
    LAB_TOP_OVERVIEW,
    LAB_TOP_DEVICE,
    LAB_TOP_PROCESSES,
    LAB_TOP_NUMA,
    LAB_TOP_PROGRAM, /* only where one runs */
    LAB_TOP_PAGE_COUNT
};

enum lab_top_prompt {
    LAB_TOP_NO_PROMPT,
    LAB_TOP_ASK_FILTER, /* its text is being typed */
    LAB_TOP_ASK_KILL,   /* `signal` to `pid`: yes or no */
    LAB_TOP_ASK_LEAVE,  /* quit, write and quit, stay */
    LAB_TOP_HELP,
};

enum lab_top_sort {
    LAB_TOP_BY_GPU_MEMORY,
    LAB_TOP_BY_SM,
    LAB_TOP_BY_CPU,
    LAB_TOP_BY_MEMORY,
    LAB_TOP_BY_PID,
    LAB_TOP_BY_USER,
    LAB_TOP_BY_GPU,
    LAB_TOP_BY_PLACEMENT,
    LAB_TOP_BY_COMMAND,
    LAB_TOP_SORT_COUNT
};

struct lab_program; /* model/program.h */

struct lab_top_view {
    int columns, rows;
    bool unicode;
    enum lab_top_page page;
    enum lab_top_prompt prompt;
    int device; /* which of the listed ones, from 0 */
    int typed;  /* a GPU's number as far as it was typed, and 1; 0 = none */
    enum lab_top_sort sort;
    bool reverse, tree;
    bool all; /* processes without a GPU too; without any GPU they always are */
    char filter[64];
    int32_t pid;    /* the selected process; 0 = the first row */
    int scroll;     /* of a page that is longer than the screen */
    int zoom;       /* 0: a point of a chart is one of the history's, 1: two, 2: four, 3: eight */
    int signal;     /* that ASK_KILL is about */
    int32_t warned; /* process that was sent TERM: the next is KILL */
    bool paused, readonly;
    bool snapshot; /* text for a pipe: as many rows as it takes, no keys */

    int64_t now_ns;           /* the time that is shown */
    int64_t wall_offset_ns;   /* wall time = now_ns + this */
    const char *source;       /* the host's name, or the recording's file */
    bool replay;              /* of a recording, from begin to end: */
    double speed;             /* 1 = as it was */
    int64_t begin_ns, end_ns; /* of the recording */
    char message[160];        /* until the next key; "" = none */
    /* programs that studies run here; their page is there while there is one */
    const struct lab_program *programs;
    int program_count;
    int program;              /* which of them is shown, from 0 */
    const char *const *notes; /* why something can't be seen; NULL-terminated, or NULL */
};

/* One page with all that belongs to it. The grid gets the view's size; a snapshot's as many rows as
 * it needs. */
void lab_top_draw(const struct lab_top_history *history, const struct lab_top_view *view,
                  struct lab_top_grid *grid);

/* --- keys --- */

enum lab_top_key { /* beside code points */
                   LAB_TOP_KEY_UP = 0x110000,
                   LAB_TOP_KEY_DOWN,
                   LAB_TOP_KEY_LEFT,
                   LAB_TOP_KEY_RIGHT,
                   LAB_TOP_KEY_SHIFT_LEFT,
                   LAB_TOP_KEY_SHIFT_RIGHT,
                   LAB_TOP_KEY_HOME,
                   LAB_TOP_KEY_END,
                   LAB_TOP_KEY_PAGE_UP,
                   LAB_TOP_KEY_PAGE_DOWN,
                   LAB_TOP_KEY_ENTER,
                   LAB_TOP_KEY_ESCAPE,
                   LAB_TOP_KEY_BACKSPACE,
                   LAB_TOP_KEY_TAB,
                   LAB_TOP_KEY_BACK_TAB,
                   LAB_TOP_KEY_F1, /* F2 to F10 follow */
                   LAB_TOP_KEY_F10 = LAB_TOP_KEY_F1 + 9,
};

enum lab_top_action {
    LAB_TOP_NOTHING,
    LAB_TOP_QUIT,
    LAB_TOP_WRITE_AND_QUIT, /* summary and picture first */
    LAB_TOP_KILL,           /* send `signal` to the process */
    LAB_TOP_SEEK,           /* to time_ns of the recording */
};

struct lab_top_request {
    enum lab_top_action action;
    int32_t pid;
    uint64_t start; /* of the process, so that no other one of that pid is meant */
    int signal;
    int64_t time_ns;
};

/* What a key does: changes the view, and asks the caller for what a view can't do. */
struct lab_top_request lab_top_key(struct lab_top_view *view, const struct lab_top_history *history,
                                   int key);

/* --- what stays --- */

/* One snapshot for programs. */
struct lab_value *lab_top_value(const struct lab_top_history *history,
                                const struct lab_top_view *view, struct lab_arena *arena);

/* One for people without a terminal: the overview in full, then the lines that mend placements. */
void lab_top_snapshot(const struct lab_top_history *history, const struct lab_top_view *view,
                      struct lab_str *out);

/* Per device: mean and maximum, energy, throttled time; duration. */
void lab_top_summary(const struct lab_top_history *history, const struct lab_top_view *view,
                     bool unicode, struct lab_str *out);

/* Charts of all devices as a picture, by its name's ending (lab_plot_save). */
int lab_top_plot(const struct lab_top_history *history, const struct lab_top_view *view,
                 const char *path, struct lab_err *err);
