/*
 * stream.h: tables that needn't fit into memory. Rows are written as they come, in a format of
 * rows, and leave through a sink that holds a bounded part of them.
 *
 *     LAB_AUTO(doc_sink, sink);
 *     sink.write = write_piece, sink.state = file;
 *     lab_doc_stream_begin(&stream, lab_doc_row_format_find("csv"), columns, 3, &sink.text);
 *     for (…) { lab_doc_stream_add(&stream, lab_cell_text(name)); … lab_doc_sink_pass(&sink); }
 *     lab_doc_sink_flush(&sink);
 */
#pragma once

#include "base/tty/console.h"
#include "doc/column.h"

/* --- where it goes --- */

struct lab_doc_sink {
    struct lab_str text; /* what hasn't been handed on yet */
    /* takes a piece; anything but 0 ends the stream, and says why itself */
    int (*write)(void *state, const char *bytes, size_t length);
    void *state;
};

void lab_doc_sink_init(struct lab_doc_sink *sink);
void lab_doc_sink_release(struct lab_doc_sink *sink);

/* Data for a program, whatever the terminal shows. What the console refuses is told at the end of
 * the program, as for every command. */
void lab_doc_sink_to_console(struct lab_doc_sink *sink, const struct lab_console *console);

/* Hands on what is there: once enough has gathered, or in any case. 0, or -1 if it isn't wanted. */
int lab_doc_sink_pass(struct lab_doc_sink *sink);
int lab_doc_sink_flush(struct lab_doc_sink *sink);

/* --- rows --- */

struct lab_doc_format;

struct lab_doc_stream {
    const struct lab_doc_format *format;
    const struct lab_doc_column *columns; /* those without a key are left out */
    int column_count, next;               /* the column of the next cell */
    bool begun;                           /* the row has a cell */
    struct lab_str *out;
};

/* By its name or by the ending of a file's; NULL = there is none that writes rows. */
const struct lab_doc_format *lab_doc_row_format_find(const char *name);

/* Appends what stands before the rows. The columns aren't copied. */
void lab_doc_stream_begin(struct lab_doc_stream *stream, const struct lab_doc_format *format,
                          const struct lab_doc_column *columns, int count, struct lab_str *out);
/* The next cell; the last column's ends the row. */
void lab_doc_stream_add(struct lab_doc_stream *stream, struct lab_doc_cell cell);

/* --- one JSON document, written as it goes --- */

enum lab_doc_layout {
    LAB_DOC_INLINE, /* all of it on one line */
    LAB_DOC_BROKEN, /* a line for each member */
    LAB_DOC_FILLED, /* likewise, but its end stands behind the last one */
    LAB_DOC_SPREAD, /* as BROKEN, its end on its own line even where there is none */
};

#define LAB_DOC_TREE_DEPTH 8

struct lab_doc_tree {
    struct lab_str *out;
    struct lab_doc_level { /* a map or list that is open */
        char end;
        enum lab_doc_layout layout;
        bool begun; /* it has a member */
    } levels[LAB_DOC_TREE_DEPTH];
    int depth, indent;
};

/* A map ('{') or a list ('[') within the one that is open; the first is the document. Keys are NULL
 * in lists and of the document, and are taken as they stand. */
void lab_doc_tree_begin(struct lab_doc_tree *tree, const char *key, char mark,
                        enum lab_doc_layout layout);
void lab_doc_tree_end(struct lab_doc_tree *tree);
void lab_doc_tree_value(struct lab_doc_tree *tree, const char *key, const struct lab_value *value);
/* Its exact figure, figure or text, whichever it has; null where there is none. */
void lab_doc_tree_cell(struct lab_doc_tree *tree, const char *key, struct lab_doc_cell cell);
