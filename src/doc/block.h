/*
 * block.h: a document's blocks, as formats read them. Whoever builds a document needs doc.h alone.
 */
#pragma once

#include "doc/doc.h"

enum lab_doc_kind {
    LAB_DOC_SECTION, /* holds blocks; the document itself is one */
    LAB_DOC_LIST,    /* holds sections */
    LAB_DOC_TEXT,
    LAB_DOC_LINES,
    LAB_DOC_TABLE,
    LAB_DOC_ITEMS,
    LAB_DOC_CODE,
    LAB_DOC_CHART,
    LAB_DOC_DRAWING,
    LAB_DOC_DATA,
    LAB_DOC_KIND_COUNT
};

struct lab_doc_text {
    const char *key, *word; /* "Warning:"; NULL = none */
    const char *text;       /* NULL = null for programs */
    enum lab_doc_tone tone;
    bool marked;
};

struct lab_doc_lines { /* a column and a cell for each line: its label, its text */
    const char *title;
    struct lab_doc_column *columns;
    struct lab_doc_cell *cells;
    int count, capacity;
    int label_columns;
    bool remarks; /* figures: what stands beside them has a column of its own */
};

struct lab_doc_notes {
    const char *key;
    const struct lab_doc_item *items;
    int count;
    bool apart, faint;
};

struct lab_doc_block {
    enum lab_doc_kind kind;
    unsigned readers;
    bool gap;
    struct lab_doc_block *next, *first, *last, *parent;
    int child_count;
    union {
        struct lab_doc_section section;
        struct lab_doc_list list;
        struct lab_doc_text text;
        struct lab_doc_lines lines;
        const struct lab_doc_table *table;
        struct lab_doc_notes notes;
        struct {
            const char *title, *text, *remark;
            bool copied; /* it has a button */
        } code;
        struct lab_doc_chart chart;
        struct {
            void (*draw)(const void *state, struct lab_style style, struct lab_str *out);
            const void *state;
        } drawing;
        struct {
            const char *key;
            struct lab_value *value;
        } data;
    };
};

struct lab_doc {
    struct lab_arena *arena;
    struct lab_doc_page page;
    struct lab_doc_block root; /* its section has the document's title */
    /* while it is built */
    struct lab_doc_block *current;
    struct lab_doc_table *table; /* that cells go to */
    int cell_count, cell_capacity, labels;
    unsigned readers;
    bool gap;
};

struct lab_doc_writer;
typedef void lab_doc_block_writer(struct lab_doc_writer *writer, const struct lab_doc_block *block);

/* A format at work on a document. */
struct lab_doc_writer {
    /* for each kind what writes such a block; NULL = nothing, of sections and lists their blocks */
    lab_doc_block_writer *const *kinds;
    unsigned readers;
    struct lab_style style;
    struct lab_str *out;
    struct lab_arena *arena;
    bool gap;          /* a blank line is due before what is shown next */
    int level;         /* of the section's heading */
    const char *about; /* of the section, still to be said; NULL = nothing */
    /* of a page */
    size_t limit; /* where it is full, in out->length; SIZE_MAX = never */
    /* of JSON */
    struct lab_value *map; /* that is filled */
};

void lab_doc_write_block(struct lab_doc_writer *writer, const struct lab_doc_block *block);
/* This one and those behind it. */
void lab_doc_write_blocks(struct lab_doc_writer *writer, const struct lab_doc_block *block);

/* The first block of these readers from this one on; NULL = there is none. */
const struct lab_doc_block *lab_doc_block_for(const struct lab_doc_block *block, unsigned readers);

/* A table's rows on a terminal: indented by two, columns as wide as they have to be. */
void lab_doc_table_write(const struct lab_doc_table *table, struct lab_style style,
                         struct lab_str *out);

extern const char lab_doc_page_style[], lab_doc_page_script[]; /* CSS, JavaScript */
