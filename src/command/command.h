/*
 * command.h: `gpulab <command>`. A command is one file in this folder that defines
 * `const struct lab_command lab_command_<file name>`; help, man page and completion come from it.
 */
#ifndef LAB_COMMAND_COMMAND_H
#define LAB_COMMAND_COMMAND_H

#include "base/err.h"
#include "base/manual.h"
#include "base/option.h"

#include <stdbool.h>
#include <stdio.h>

/* Options that mean the same in every command that takes them: rows for `struct lab_shared`. */
struct lab_shared {
    bool help;
    bool json;
    bool quiet;            /* -q: no progress, no hints */
    const char *log_level; /* --log-level */
    const char *device;    /* --device; only commands with uses_device */
};

struct lab_command_call {
    const struct lab_command *command;
    const struct lab_shared *shared;
    const void *config;       /* filled by the command's own table */
    const char *const *words; /* NULL-terminated */
    int word_count;
    const char *const *rest; /* behind "--", or NULL */
    struct lab_arena *arena; /* lives as long as the call */
    FILE *out;               /* results go here, messages to stderr */
    bool out_is_terminal, err_is_terminal;
    int columns;
};

struct lab_command {
    const char *name;
    const char *summary;              /* one line */
    const char *usage;                /* the words: "WORKLOAD [key=value...]" */
    const char *description;          /* paragraphs; may be NULL */
    const struct lab_option *options; /* own rows; may be NULL */
    size_t config_size;
    bool uses_device;                          /* takes --device */
    int min_words, max_words;                  /* max -1 = any number */
    const struct lab_manual_example *examples; /* may be NULL */
    const struct lab_manual_section *(*sections)(struct lab_arena *arena,
                                                 const char *word); /* may be NULL */
    const char *const *(*complete)(struct lab_arena *arena);        /* first word; may be NULL */
    /* 0, or -1 with an error that main prints; ret_status is the exit status on success */
    int (*run)(const struct lab_command_call *call, int *ret_status, struct lab_err *err);
};

extern const struct lab_command *const lab_commands[]; /* NULL-terminated, generated */

/* The whole program's descriptors as manual pages, in the arena. */
const struct lab_manual *lab_command_manual(struct lab_arena *arena);

/* Everything main does: picks the command, parses, runs, prints the error. Returns the exit status.
 */
int lab_command_main(int argc, char **argv);

#endif
