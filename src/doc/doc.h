/*
 * doc.h: an answer as data. Whoever answers builds one document; the format writes it: text on a
 * terminal, Markdown, a page, JSON.
 *
 *     struct lab_doc *doc = lab_doc_open("studies", arena);
 *     lab_doc_rows(doc, "studies", NULL, columns, 3);
 *     for (…) { lab_doc_cell(doc, "%s", name); … }
 *     lab_doc_print(doc, call->console);
 *
 * Blocks stand in the order in which they are added; sections and lists hold others. A key of NULL
 * is not for programs, a title of NULL not for people. Texts are copied, tables are not. Everything
 * lives as long as the arena.
 *
 * A marked text has Markdown's marks in it: `code`, *so*, **so**, [words](link), and a backslash
 * before a sign that is none (lab_doc_add_escaped). Every other text is taken as it stands.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/tty/console.h"
#include "doc/column.h"

#include <stdbool.h>
#include <stddef.h>

/* --- a document --- */

/* Whom a format serves, and whom a block is for. */
enum lab_doc_readers {
    LAB_DOC_TERMINAL = 1,
    LAB_DOC_PAPER = 2,  /* a file of text: Markdown */
    LAB_DOC_SCREEN = 4, /* a page in a browser */
    LAB_DOC_PROGRAMS = 8,
    LAB_DOC_PEOPLE = LAB_DOC_TERMINAL | LAB_DOC_PAPER | LAB_DOC_SCREEN,
    LAB_DOC_ALL = LAB_DOC_PEOPLE | LAB_DOC_PROGRAMS,
};

/* Of a paragraph. */
enum lab_doc_tone {
    LAB_DOC_QUESTION, /* above the answer: what was asked, for short */
    LAB_DOC_ANSWER,   /* opens the document; a page's heading */
    LAB_DOC_TITLE,    /* an answer that names its subject: a heading on a terminal */
    LAB_DOC_SAYS,     /* opens a section */
    LAB_DOC_PLAIN,
    LAB_DOC_FREE,   /* not indented on a terminal */
    LAB_DOC_WHOLE,  /* neither that nor broken into lines: it is to be pasted */
    LAB_DOC_ITEM,   /* one of several; its later lines are indented */
    LAB_DOC_CHOICE, /* likewise, of lines to paste or what stands instead of one */
    LAB_DOC_BELOW,  /* about the line above it */
    LAB_DOC_FAINT,  /* aside */
    LAB_DOC_LIMIT,  /* what an answer doesn't cover */
    LAB_DOC_NOTE,   /* to be known first: a box on a page, a quotation in Markdown */
    LAB_DOC_HINT,   /* what can be done about the paragraph before it */
    LAB_DOC_WARNING,
    LAB_DOC_ERROR,
};

enum lab_doc_look { /* of a section on a page */
                    LAB_DOC_FLOW,
                    LAB_DOC_COLUMNS, /* its sections stand side by side where there is room */
                    LAB_DOC_CARD,    /* in a frame */
                    LAB_DOC_FOLD,    /* behind its title, which opens it */
};

struct lab_doc_section {
    enum lab_doc_look look;
    const char *key;   /* its blocks are a map of that key; in a list, an item of it */
    const char *title; /* "Which node feeds which device best" */
    const char *name;  /* what it is called for short, in a page's links; NULL = the title */
    const char *about; /* behind the title, in a few words; NULL = nothing */
    const char *id;    /* what a page's links lead to; NULL = none */
    bool simulated;    /* on a terminal, the word stands behind the title */
};

struct lab_doc_list { /* of sections that are alike */
    const char *key;
    /* of parts, which a page folds: the command that shows those that it has no room for */
    const char *elsewhere;
};

struct lab_doc_item {
    const char *text;
    const char *who;  /* below it, marked: "`gpu0_numa1_vit32x6x512` and 2 more"; NULL = nobody */
    const char *hint; /* what can be done, marked; NULL = nothing is known */
};

struct lab_doc_chart {
    const char *name;    /* of its files, without an ending */
    const char *title;   /* NULL = the name */
    const char *caption; /* NULL = none */
    /* Appends the picture to a page, for a desk or a phone; nothing = there is none. */
    void (*draw)(const void *state, bool narrow, struct lab_str *out);
    const void *state;
};

struct lab_doc;

/* `title` may be NULL: then the document has none. */
struct lab_doc *lab_doc_open(const char *title, struct lab_arena *arena);

/* For what lives as long as the document does. */
struct lab_arena *lab_doc_arena(const struct lab_doc *doc);

struct lab_doc_page {    /* what a page says of itself */
    const char *version; /* of the gpulab that writes it */
    const char *source;  /* what was read, as the user would write it */
    const char *banner;  /* a condition of all values, above the page; NULL = none */
    size_t bytes_most;   /* charts and parts beyond are left out, which is said; 0 = any */
};
void lab_doc_set_page(struct lab_doc *doc, struct lab_doc_page page);
void lab_doc_set_simulated(struct lab_doc *doc, bool simulated);
/* Columns of a terminal before the text of a line (lab_doc_line); 12 unless set. */
void lab_doc_set_labels(struct lab_doc *doc, int columns);

/* --- blocks --- */

/* Blocks that follow are for these readers, until it is called again. LAB_DOC_ALL at first. */
void lab_doc_only(struct lab_doc *doc, unsigned readers);
/* On a terminal, a blank line before the next block that shows anything. */
void lab_doc_gap(struct lab_doc *doc);

void lab_doc_begin(struct lab_doc *doc, struct lab_doc_section section);
void lab_doc_begin_list(struct lab_doc *doc, struct lab_doc_list list);
void lab_doc_end(struct lab_doc *doc); /* of either */

void lab_doc_text(struct lab_doc *doc, enum lab_doc_tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for programs, too. NULL text is null for them, and nothing for people. */
void lab_doc_text_as(struct lab_doc *doc, const char *key, enum lab_doc_tone tone,
                     const char *text);
void lab_doc_marked(struct lab_doc *doc, enum lab_doc_tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Behind a word such as "Warning:", which is in colour. */
void lab_doc_said(struct lab_doc *doc, const char *word, enum lab_doc_tone tone, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* "Folder  outputs/…": consecutive ones are one list. No line where the text is empty. */
void lab_doc_line(struct lab_doc *doc, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same in one line however long: a command that is broken can't be pasted. */
void lab_doc_line_whole(struct lab_doc *doc, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a key; NULL text is null for programs. */
void lab_doc_line_as(struct lab_doc *doc, const char *key, const char *label, const char *text);
/* What the lines' labels are called where that is said: "Condition". */
void lab_doc_lines_title(struct lab_doc *doc, const char *title);
/* Figures in lines: a cell for each column. `title` heads the labels; remarks stand behind. */
void lab_doc_figures(struct lab_doc *doc, const char *title, const struct lab_doc_column *columns,
                     int count, const struct lab_doc_cell *cells);

/* Which of the columns a terminal has room for. */
void lab_doc_table_shown(const struct lab_doc_table *table, struct lab_style style,
                         bool *ret_shown);

/* A table that is there already. */
void lab_doc_table(struct lab_doc *doc, const struct lab_doc_table *table);
/* A table that is filled cell by cell, row by row; what is set in the result holds. The columns
 * aren't copied. */
struct lab_doc_table *lab_doc_rows(struct lab_doc *doc, const char *key, const char *title,
                                   const struct lab_doc_column *columns, int count);
void lab_doc_cell(struct lab_doc *doc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lab_doc_figure(struct lab_doc *doc, double value);          /* NaN = none */
void lab_doc_add(struct lab_doc *doc, struct lab_doc_cell cell); /* its text isn't copied */

/* Sentences, NULL-terminated; NULL = none, which programs see as an empty list. `apart`: each is a
 * paragraph of its own. */
void lab_doc_notes(struct lab_doc *doc, const char *key, const char *const *notes, bool apart);
void lab_doc_items(struct lab_doc *doc, const struct lab_doc_item *items, int count);
/* Lines as they stand, to paste. With a title, words of ours, they are folded on a page, and left
 * out on paper. */
void lab_doc_code(struct lab_doc *doc, const char *title, const char *text);
/* A line to paste, with a button that copies it; `remark`, such as its gain, stands beside it. NULL
 * = none. */
void lab_doc_command(struct lab_doc *doc, const char *line, const char *remark);
void lab_doc_chart(struct lab_doc *doc, struct lab_doc_chart chart);
/* On a terminal alone: what no other block can show. */
void lab_doc_drawing(struct lab_doc *doc,
                     void (*draw)(const void *state, struct lab_style style, struct lab_str *out),
                     const void *state);
/* For programs alone. A key of NULL: the members of the map. */
void lab_doc_data(struct lab_doc *doc, const char *key, struct lab_value *value);

/* --- formats --- */

/*
 * A format is one file in src/doc/format, named as the format, that defines
 * `const struct lab_doc_format lab_doc_format_<name>`.
 */
struct lab_doc_format {
    const char *name;
    const char *ending; /* of files: ".md" */
    enum lab_doc_readers readers;
    /* A document, appended; NULL = it has rows only. */
    void (*write)(const struct lab_doc *doc, struct lab_style style, struct lab_str *out);
    /* Rows one by one (stream.h), appended: what stands before them, NULL = nothing; a cell, the
     * `first` of its row or a later one, NULL = it has documents only; what ends a row. */
    void (*head)(const struct lab_doc_column *columns, int count, struct lab_str *out);
    void (*cell)(const struct lab_doc_cell *cell, const struct lab_doc_column *column, bool first,
                 struct lab_str *out);
    const char *row_end;
};

extern const struct lab_doc_format *const lab_doc_formats[]; /* NULL-terminated, generated */

/* By its name or by the ending of a file's; NULL = there is none that writes documents. */
const struct lab_doc_format *lab_doc_format_find(const char *name);

void lab_doc_write(const struct lab_doc *doc, const char *format, struct lab_style style,
                   struct lab_str *out);
/* --output of a command: LAB_ERR_USER where the path ends like no format; NULL = fits. */
int lab_doc_check_output(const char *path, struct lab_err *err);
/* As a file that appears whole or not at all, in the format that its name ends in. */
int lab_doc_save(const struct lab_doc *doc, const char *path, struct lab_err *err);
/* What programs are given: a map. */
struct lab_value *lab_doc_value(const struct lab_doc *doc, struct lab_arena *arena);
/* As the console wants it: JSON, or text in its style. */
void lab_doc_print(const struct lab_doc *doc, const struct lab_console *console);
void lab_doc_print_markdown(const struct lab_doc *doc, const struct lab_console *console);
/* Into the file of --output; without one (NULL) on the console. */
int lab_doc_output(const struct lab_doc *doc, const struct lab_console *console, bool markdown,
                   const char *path, struct lab_err *err);

/* Text in Markdown, whatever signs are in it. '_' within a word is none. */
void lab_doc_add_escaped(const char *text, struct lab_str *out);
/* Text in a page, whatever signs are in it, in an element or in an attribute's double quotes. */
void lab_doc_add_html(const char *text, struct lab_str *out);
/* The former in the arena, and as code. */
const char *lab_doc_escape(const char *text, struct lab_arena *arena);
const char *lab_doc_as_code(const char *text, struct lab_arena *arena);
