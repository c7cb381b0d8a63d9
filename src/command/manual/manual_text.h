/*
 * manual_text.h: what the writers of help, man pages and completions share. Other code uses
 * manual.h.
 */
#pragma once

#include "command/manual/manual.h"

/*
 * Appends text wrapped to `columns`, each line behind `indent` spaces; the first line goes on at
 * column `at`. Lines are filled anew, empty lines part paragraphs, and a line that begins with a
 * space stays as it is. Ends with a newline.
 */
void lab_manual_wrap(struct lab_str *out, const char *text, int at, int indent, int columns);

/* What a row's help says behind its name: "layers (0 to 512; default 6)". */
void lab_manual_detail(const struct lab_option *row, struct lab_str *out);

/* What a value can be completed to. */
enum lab_manual_values {
    LAB_MANUAL_VALUES_NONE, /* nothing that could be listed */
    LAB_MANUAL_VALUES_WORDS,
    LAB_MANUAL_VALUES_FILE,
    LAB_MANUAL_VALUES_DIR,
};

/* `ret_words` (NULL-terminated) is set for WORDS. */
enum lab_manual_values lab_manual_values(const struct lab_option *row,
                                         const char *const **ret_words);

/* Whether a path may stand there, by the usage: first in "[PATH]", later in "NAME PATH...". */
bool lab_manual_takes_path(const struct lab_manual_page *page, bool first);

/* 'text', safe in bash, zsh and fish. */
void lab_manual_add_quoted(struct lab_str *out, const char *text);

struct lab_manual_file { /* a file of this folder that is no C */
    const char *path, *text;
    size_t length;
};
extern const struct lab_manual_file lab_manual_files[]; /* path NULL ends; generated */

/* The fixed part of a completion, a file that is written for gpulab, for any program. */
void lab_manual_add_script(struct lab_str *out, const char *name, const char *program);

void lab_manual_bash(const struct lab_manual *manual, struct lab_str *out);
void lab_manual_zsh(const struct lab_manual *manual, struct lab_str *out);
void lab_manual_fish(const struct lab_manual *manual, struct lab_str *out);
