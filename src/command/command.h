/*
 * command.h: `gpulab <command>`. A command is one file in this folder that defines
 * `const struct lab_command lab_command_<file name>`; help, man page and completion come from it.
 * Files named command_*.c serve them all; the work itself is done in the module that it belongs to.
 */
#pragma once

#include "base/err.h"
#include "base/option.h"
#include "base/tty/console.h"
#include "base/value.h"
#include "command/manual/manual.h"
#include "compose/config.h"
#include "plan/plan.h"
#include "run/history.h"

#include <stdbool.h>

/* Options that mean the same in every command that takes them: rows for `struct lab_shared`. */
struct lab_shared {
    bool help;
    bool json, quiet;      /* as in struct lab_console */
    const char *log_level; /* --log-level */
    const char *device;    /* --device; NULL = not given, where a command has no default for it */
};

struct lab_command_call {
    const struct lab_command *command;
    const struct lab_shared *shared;
    const void *config;       /* filled by the command's own table */
    const char *const *words; /* NULL-terminated */
    int word_count;
    const char *const *rest; /* behind "--", or NULL */
    struct lab_arena *arena; /* lives as long as the call */
    const struct lab_console *console;
};

#define LAB_COMMAND_ALL_WORDS "*"

struct lab_command {
    const char *name;
    const char *summary;              /* one line */
    const char *usage;                /* the words: "WORKLOAD [key=value...]" */
    const char *description;          /* paragraphs; may be NULL */
    const struct lab_option *options; /* own rows; may be NULL */
    size_t config_size;
    bool hidden;              /* for programs, not for people: in no list, man page or completion */
    bool uses_device;         /* takes --device */
    const char *device_help;  /* what it means here; NULL = where to run, auto */
    int min_words, max_words; /* max -1 = any number */
    bool takes_rest;          /* words behind "--" too: another program and its own */
    bool takes_program;       /* likewise, and the first word needs no "--" in front of it */
    const struct lab_manual_example *examples; /* may be NULL */
    /* what help adds; `word` is the one behind the command in `help bench vit`, NULL if there is
     * none, or LAB_COMMAND_ALL_WORDS for the man page. An unknown word is an error. The slot may be
     * NULL: then no word is taken */
    const struct lab_manual_section *(*sections)(struct lab_arena *arena, const char *word,
                                                 struct lab_err *err);
    const char *const *(*complete)(struct lab_arena *arena); /* first word; may be NULL */
    /* keys that complete behind that word, NULL if it takes none; the slot may be NULL */
    const struct lab_option *(*word_keys)(const char *word, struct lab_arena *arena);
    /* 0, or -1 with an error that main prints; ret_status is the exit status on success */
    int (*run)(const struct lab_command_call *call, int *ret_status, struct lab_err *err);
};

extern const struct lab_command *const lab_commands[]; /* NULL-terminated, generated */

/* The names of all that aren't hidden, in the arena; NULL-terminated. */
const char *const *lab_command_names(struct lab_arena *arena);

/* By name; NULL and an error that names the nearest. */
const struct lab_command *lab_command_find(const char *name, struct lab_err *err);

/* Everything main does: picks the command, parses, runs, prints the error. Returns the exit status.
 */
int lab_command_main(int argc, char **argv);

/* --- what commands share --- */

/* --device, or NULL where it is "auto". */
const char *lab_command_device(const struct lab_command_call *call);
/* Says which device is used, where --device names several. */
void lab_command_note_devices(const struct lab_command_call *call, int count, const char *used);

/* Fails where the output file (NULL = none) is one of the words, which are read, or is none that
 * can be replaced. */
int lab_command_check_output(const struct lab_command_call *call, const char *path,
                             struct lab_err *err);

/* Completion of those that take a study's name, and its keys. */
const char *const *lab_command_studies(struct lab_arena *arena);
const struct lab_option *lab_command_study_keys(const char *word, struct lab_arena *arena);

/* What a command line of `run` or `estimate` means: its sweep, then its plan, on this machine or on
 * the one that a file describes. The caller closes the machine, also after a failure. `devices` are
 * kept from plan to plan; NULL = not. */
int lab_command_sweep(const struct lab_command_call *call, const struct lab_config_path *path,
                      bool multirun, struct lab_sweep *ret_sweep, struct lab_err *err);
int lab_command_plan(const struct lab_command_call *call, const struct lab_config_path *path,
                     const struct lab_sweep *sweep, const struct lab_machine *machine,
                     struct lab_plan_devices *devices, struct lab_plan *ret_plan,
                     struct lab_err *err);

/* What earlier studies on the plan's machine took; where nothing like its runs is known, a few
 * short ones are carried out first, in some seconds. Not with --quiet, nor for another machine.
 * NULL with an error where a signal interrupts them. */
struct lab_history *lab_command_history(const struct lab_command_call *call,
                                        const struct lab_plan *plan, struct lab_err *err);

struct lab_topic { /* a workload, a kernel, a study: what a command takes by name */
    const char *name, *help;
    const char *origin; /* for programs; NULL = nothing to say */
};

/* Workloads, or those that have something to tune. All of these end with a name of NULL. */
const struct lab_topic *lab_command_workloads(bool tunable, struct lab_arena *arena);
const char *const *lab_command_topic_names(const struct lab_topic *topics, struct lab_arena *arena);
/* What the command prints without a word. `keys` for programs: of the list, of a name and of what
 * is said about it. `columns`: where that begins, in one line; 0 = behind the names, broken. */
void lab_command_print_topics(const struct lab_command_call *call, const char *const keys[3],
                              const struct lab_topic *topics, int columns, const char *hint);
struct lab_doc;
/* The list alone, where a document has several. */
void lab_command_add_topics(struct lab_doc *doc, const char *const keys[3],
                            const struct lab_topic *topics, int columns, struct lab_arena *arena);
/* The same as a section of its help, with room for another behind it. */
struct lab_manual_section *lab_command_topic_section(const char *title,
                                                     const struct lab_topic *topics,
                                                     const char *hint, struct lab_arena *arena);

/* --- manual --- */

/* The shared rows that this command takes, each `base` bytes further on than in struct
 * lab_shared. */
const struct lab_option *lab_command_shared_options(const struct lab_command *command, size_t base,
                                                    struct lab_arena *arena);

/* The whole program's descriptors but for hidden ones, as manual pages in the arena. */
const struct lab_manual *lab_command_manual(struct lab_arena *arena);

/* One of its pages. `word` as for the slot `sections`; NULL and an error if it is unknown. */
const struct lab_manual_page *lab_command_page(const struct lab_command *command, const char *word,
                                               struct lab_arena *arena, struct lab_err *err);

/* Shows `gpulab help COMMAND [WORD]`, as text or as JSON, whichever the call asks for. */
int lab_command_show_help(const struct lab_command_call *call, const struct lab_command *command,
                          const char *word, struct lab_err *err);
/* Its parts: as text; as a tree, NULL if the word is unknown. */
int lab_command_write_help(const struct lab_command *command, const char *word,
                           struct lab_style style, struct lab_arena *arena, struct lab_str *out,
                           struct lab_err *err);
struct lab_value *lab_command_help_value(const struct lab_command *command, const char *word,
                                         struct lab_arena *arena, struct lab_err *err);
/* `gpulab help`. */
void lab_command_write_overview(struct lab_style style, struct lab_arena *arena,
                                struct lab_str *out);
