/*
 * column.h: what a figure is: its unit, and the columns and cells that tables and lists of figures
 * are made of. One unit has one form for people and one for programs, whoever writes it.
 */
#pragma once

#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* Of a figure, and what it is given as to programs. */
enum lab_unit {
    LAB_UNIT_TEXT,
    LAB_UNIT_COUNT,
    LAB_UNIT_TIME,  /* seconds; key_ms */
    LAB_UNIT_SHARE, /* 1 = all of it */
    LAB_UNIT_RATIO,
    LAB_UNIT_RATE,     /* bytes a second; key_gb_per_s */
    LAB_UNIT_SIZE,     /* bytes */
    LAB_UNIT_DURATION, /* seconds, of something long; key_s */
    LAB_UNIT_PERCENT,  /* 100 = all of it; key_percent */
    /* shown as "12800.0 MiB", from 300 GiB on in GiB; key_mib */
    LAB_UNIT_MEBIBYTES,
    LAB_UNIT_WATTS,      /* key_w */
    LAB_UNIT_JOULES,     /* key_j */
    LAB_UNIT_CELSIUS,    /* key_c */
    LAB_UNIT_PER_SECOND, /* samples, or as the cell has it; key_per_s */
    LAB_UNIT_CHANGE,     /* a share with its sign; 0.1 = a tenth more */
    LAB_UNIT_NUMBER,     /* in a unit that another column names */
    LAB_UNIT_DATE,       /* seconds since 1970, shown as local time to the minute; key_unix_s */
    /* put in words by whoever made it, aligned as a figure */
    LAB_UNIT_FIGURE,
};

enum lab_align {
    LAB_ALIGN_BY_UNIT, /* words left, figures right */
    LAB_ALIGN_LEFT,
    LAB_ALIGN_RIGHT, /* never cut */
    LAB_ALIGN_WHOLE, /* left, never cut: names to paste */
    /* left; where the table is too wide it loses its middle: both ends of a run's name matter */
    LAB_ALIGN_NAME,
};

struct lab_doc_column {
    const char *key;   /* for programs: "h2d_gb_per_s", its unit in it; NULL = not for them */
    const char *title; /* for people: "H2D bandwidth"; NULL = not for them */
    enum lab_unit unit;
    const char *brief;  /* its heading where parts are compared; NULL = not shown there */
    bool with_interval; /* of the median, at 95 % or as near to it as the number of values allows */
    enum lab_align align;
    bool code;     /* its text is code: a name to paste */
    bool marked;   /* its title and text have marks in them (doc.h) */
    bool optional; /* on a terminal, only where some row has more than a dash in it */
    /* On a terminal, columns with the highest number go first, all of it at once, where a table is
     * too wide; 0 = it stays. */
    int yields;
    /* On a terminal that is too narrow all the same: on a line of its own below each row. */
    bool below;
    const char *hidden; /* its title where no row has a value: words about it are left out, too */
};

#define LAB_UNIT_SAMPLES "samples/s" /* of a PER_SECOND without a unit of its own */

struct lab_doc_cell {
    const char *text;        /* of a TEXT; beside a figure, a remark in a few words, or NULL */
    double value, low, high; /* NaN = there is none */
    double confidence;       /* of the interval */
    const char *unit;        /* of a PER_SECOND that doesn't count samples: "iterations/s" */
    struct lab_value *data;  /* what programs get instead of all that; NULL = that */
    /* of a row of a stream: the figure is count / 10^decimals, to the digit */
    bool exact;
    int decimals;
    int64_t count;
};

struct lab_doc_table {
    const char *key, *title; /* a title of NULL: for programs alone, unless it is `untitled` */
    const struct lab_doc_column *columns;
    int column_count;
    const struct lab_doc_cell *cells; /* row by row */
    int row_count;
    /* what people see instead of the rows, as it stands; NULL-terminated, NULL = the rows */
    const char *const *lines;
    bool untitled;
    bool shortened;   /* on a terminal, names in the first column by what tells them apart */
    bool uncut;       /* on a terminal, rather too wide than without the end of a name */
    bool folds;       /* on a terminal, columns that don't fit go below, behind the first again */
    bool aside;       /* on a page, folded */
    int row_total;    /* how many rows there would be; 0 = these */
    const char *more; /* said below it on a terminal, where columns or rows are left out */
    /* of a page, which may have no room for all: where the others are: "in x.json" */
    const char *elsewhere;
};

struct lab_doc_cell lab_cell_text(const char *text);
struct lab_doc_cell lab_cell_figure(double value);
struct lab_doc_cell lab_cell_exact(int64_t count, int decimals);
struct lab_doc_cell lab_cell_flag(bool flag);

bool lab_unit_is_words(enum lab_unit unit); /* TEXT and FIGURE: cells have text and no value */
/* As people read it; `name` of a PER_SECOND, or NULL. Appends, as all of these do. */
void lab_unit_add(double value, enum lab_unit unit, const char *name, struct lab_str *out);
/* As programs are given it: times in ms, rates in GB/s, others as they are. */
double lab_unit_scaled(double value, enum lab_unit unit);

/* A figure with its interval, or text; a dash where there is none. `narrow`: there is no room for
 * the confidence of an interval that few values could not make as sure as the others. */
void lab_doc_add_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                      bool narrow, struct lab_str *out);
/* A figure that there is none of, or that isn't for people, has no line. */
bool lab_doc_cell_is_shown(const struct lab_doc_cell *cell, const struct lab_doc_column *column);
/* Its value as JSON, exact where it is; null where there is none. */
void lab_doc_add_json(const struct lab_doc_cell *cell, enum lab_unit unit, struct lab_str *out);
/* `<key>`, and `<key>_interval` where the column has intervals; null where there is none. */
void lab_doc_set_cell(struct lab_arena *arena, struct lab_value *map,
                      const struct lab_doc_cell *cell, const struct lab_doc_column *column);
