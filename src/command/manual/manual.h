/*
 * manual.h: what a program's descriptors say about it, written as help text, man page or shell
 * completion. It knows nothing of commands: the command layer hands it this plain description.
 */
#pragma once

#include "base/option.h"

struct lab_manual_section { /* a titled table of keys, e.g. a workload's */
    const char *title;
    const char *text;              /* may be NULL */
    const struct lab_option *keys; /* may be NULL: text alone */
};

struct lab_manual_example {
    const char *line;
    const char *text; /* what it does */
};

struct lab_manual_page { /* one command */
    const char *name;
    const char *summary;                       /* one line */
    const char *usage;                         /* "WORKLOAD [key=value...]" */
    const char *description;                   /* paragraphs; lines are wrapped anew */
    const struct lab_option *const *tables;    /* option tables, NULL-terminated */
    const struct lab_manual_section *sections; /* title NULL ends; may be NULL */
    const struct lab_manual_example *examples; /* line NULL ends; may be NULL */
    const char *const *words; /* what the first word completes to, e.g. workloads */
    /* keys that complete behind each of them; NULL = none, as may be an item */
    const struct lab_option *const *word_keys;
};

struct lab_manual {
    const char *program, *version, *summary;
    const struct lab_manual_page *const *pages; /* NULL-terminated */
};

enum lab_manual_style { LAB_MANUAL_PLAIN, LAB_MANUAL_COLOUR };

/* `gpulab help`: all commands, a line each. `columns` = width of the terminal. */
void lab_manual_overview(const struct lab_manual *manual, int columns, enum lab_manual_style style,
                         struct lab_str *out);
/* `gpulab help bench`, `gpulab bench --help`. */
void lab_manual_help(const struct lab_manual *manual, const struct lab_manual_page *page,
                     int columns, enum lab_manual_style style, struct lab_str *out);
/* roff for gpulab(1) where page is NULL, gpulab-bench(1) otherwise. */
void lab_manual_man(const struct lab_manual *manual, const struct lab_manual_page *page,
                    struct lab_str *out);
/* A completion script for "bash", "zsh" or "fish"; -1 for any other shell. */
int lab_manual_completion(const struct lab_manual *manual, const char *shell, struct lab_str *out);
