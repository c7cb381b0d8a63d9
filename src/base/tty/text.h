/*
 * text.h: text of a given width and character set: what a terminal or a file can show, wrapping,
 * headings, ASCII. Everything is appended to a string.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>

struct lab_style {
    int columns;
    bool colour, unicode;
};

/* Appends the text in ASCII alone: "±" becomes "+-", a line of a drawing "|", the unknown "?". */
void lab_text_to_ascii(const char *text, struct lab_str *out);
/* Appends the text in exactly that many columns: padded, or cut with a mark at its end. */
void lab_text_fit(const char *text, int columns, bool unicode, struct lab_str *out);
/* Appends words, broken into lines that fit; the second and later ones are indented. The first
 * begins at column `start`. No newline at the end. */
void lab_text_wrap(const char *text, int start, int indent, int columns, struct lab_str *out);
/* Keeps what was appended since `from` on one line, when the text is wrapped later: its spaces
 * become this sign, the unit separator, which no text of ours has. */
#define LAB_TEXT_KEPT '\x1f'
void lab_text_keep(struct lab_str *text, size_t from);
/* Columns of a line on the screen: what colours it takes none. */
int lab_text_columns(const char *text);
