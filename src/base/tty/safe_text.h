/*
 * safe_text.h: texts from files of unknown origin, made harmless for whoever shows them: nothing
 * steers a terminal, and no spreadsheet takes a field for a formula.
 */
#pragma once

#include "base/str.h"

/* Appends it with '?' for what isn't printable; line ends and tabs stay. */
void lab_safe_text_add(struct lab_str *out, const char *text);

/* Appends it as a field of CSV, with RFC 4180's quotes where it needs them, or `always`. A text
 * that begins as a formula does gets a "'" before it. */
void lab_safe_text_add_csv(struct lab_str *out, const char *text, bool always);

/* Values below 0 with a minus sign instead of a hyphen, as pages and charts have them; not within
 * `code`. */
void lab_safe_text_add_signed(struct lab_str *out, const char *text);
