/* page_internal.h: parts of the report's document, each a file. */
#pragma once

#include "report/page/page.h"
#include "report/study/study_internal.h"

/* --- names: points by what varies, devices as people call them --- */

struct page_names;
/* NULL digest: of recordings, which keep their names. Lives in the arena. */
const struct page_names *page_names_make(const struct study_digest *digest,
                                         struct lab_arena *arena);
/* The text with ids of runs and points, and devices, by their names; the text itself where it has
 * none. NULL is NULL; without names it stays. */
const char *page_named(const struct page_names *names, const char *text, struct lab_arena *arena);
/* A sentence whose overlong words, names of settings mostly, lose their middles; tables have them
 * whole. NULL stays NULL. */
const char *page_cut_words(const char *text, struct lab_arena *arena);

/* --- tables of an analysis --- */

/* What its parts have in common: a row for each, the part's name first. `brief`: only columns that
 * parts are compared by. Without such columns it has no rows. */
struct lab_doc_table page_figures(const struct lab_analysis_result *result, bool brief,
                                  const struct page_names *names, struct lab_arena *arena);
/* Tables of its parts that have one key, as one. NULL = there is none of that number. */
const struct lab_doc_table *page_merged(const struct lab_analysis_result *result, int number,
                                        const struct page_names *names, struct lab_arena *arena);

/* Cells don't repeat "1 run each" where the table's caption begins with it. */
void page_drop_single(struct lab_doc_table *table, const char *caption, struct lab_arena *arena);

/* --- what to do --- */

enum page_action_kind {
    PAGE_BIND,   /* a device to its NUMA node */
    PAGE_BOUND,  /* that best_practices.md binds devices, which isn't what the study asks */
    PAGE_PASTE,  /* what an analysis says, with a line to paste or without */
    PAGE_CHOOSE, /* a setting that gains; a device to check */
    PAGE_MEND,   /* why runs failed, and what helps */
    PAGE_RESUME, /* the study's own command */
    PAGE_RUN,    /* a study that gives a verdict */
    PAGE_SHOW,   /* nothing of all that: where the values are */
    PAGE_ACTION_KINDS
};

struct page_action {
    enum page_action_kind kind;
    const char *text;    /* without its full stop or colon; NULL = the command says it */
    size_t first;        /* characters of it that the command follows at once; 0 = all */
    const char *command; /* NULL = nothing to paste */
    const char *gain;    /* "+6.3%"; NULL = none */
    const struct lab_analysis_advised *advised; /* of a setting: by model; NULL = unknown */
    bool check;                                 /* of a device that is slower than its peers */
    bool finding; /* of PAGE_SHOW: the text has what was found, not only where it is */
    bool study;   /* the command runs a study */
    bool quiet;   /* the text says that other processes were running */
};

struct page_actions {
    struct page_action *items; /* in the page's order: what answers the study's question first */
    int count;
};

/* How to decide an open headline. `resumes`: runs are left; where these can't decide it, by the
 * spread of those done, it replaces them; where they are fewer than it asks for, it follows. */
struct page_repeat {
    const char *text; /* as an action's; NULL = nothing to repeat */
    int runs;         /* per point */
    bool quiet;       /* likewise */
    bool replaces;    /* the remaining runs */
};
#define PAGE_BUSY  "other processes were running"
#define PAGE_QUIET "Quiet the machine first: " PAGE_BUSY
struct page_repeat page_repeat_make(const struct lab_page *page, const struct study_digest *digest,
                                    bool resumes, struct lab_arena *arena);

struct page_making {             /* of page_actions.c, its choices and its devices */
    const struct lab_page *page; /* NULL = it wasn't analysed */
    const struct study_digest *digest;
    const struct page_names *names;
    struct page_actions made;
    struct lab_arena *arena;
    /* of the analysis that answers the study's question: what it couldn't test, and the keys that
     * test it; NULL once a line has them */
    const char *tests, *further;
    bool further_first;
};
/* Up to what anybody reads. */
void page_add_action(struct page_making *making, struct page_action action);
/* Of a device that is slower than its peers. */
bool page_is_check(const struct lab_claim *claim);
/* What to look at, and what shows it: where its runs were short, a load of minutes. */
struct page_action page_check_device(const struct page_making *making,
                                     const struct lab_claim *claim);
/* Of two devices that differ for certain, which of them is at fault is open; NULL = they don't. */
const char *page_two_devices(const struct page_making *making);
/* "Use batch 16; 32 for vit32x6x512; 64 for vit16x8x768.": where the study asks for a batch,
 * too, and another analysis answers first; NULL = it doesn't, or that isn't known. */
const char *page_batch(const struct lab_page *page, struct lab_arena *arena);
/* Settings that gain 1% or more, and devices to check. */
void page_add_choices(struct page_making *making, const struct lab_advice *advice);

/* `page` NULL: it wasn't analysed. `digest` NULL: of recordings. */
struct page_actions page_actions_make(const struct lab_page *page,
                                      const struct study_digest *digest,
                                      const struct page_names *names, struct lab_arena *arena);
/* Whether no run had several devices. */
bool page_ran_alone(const struct study_digest *digest);
/* What a claim comes to on the placements that are advised, and by model; itself where nothing else
 * is known. */
const struct lab_claim *page_advised(const struct lab_page *page, const struct lab_claim *claim,
                                     const struct lab_analysis_advised **ret_advised);
/* The one to do first: what goes on with the study, else the first of them; a device to check goes
 * before what has no line to paste. NULL = none. */
const struct page_action *page_actions_next(const struct page_actions *actions);

/* --- how far values can be trusted --- */

/* Whether other processes took CPU time in half of the runs that are done. */
bool page_is_busy(const struct study_digest *digest);
/* Whether that bears on what the page answers, which is provisional then. */
bool page_is_disturbed(const struct lab_page *page, const struct study_digest *digest);
/* What an answer begins with: "Provisional (110 of 800 runs, busy machine): "; in place of its
 * first words "Inconclusive after 33 of 80 runs"; a sentence of its own, "No answer: 2 runs per
 * point on a busy machine. ". */
struct page_state {
    const char *words; /* "" = all runs are done and nothing disturbed them */
    size_t replaced;   /* characters of the answer */
    bool sentence;
};
#define PAGE_OPEN     "Inconclusive"
#define PAGE_UNTESTED "Not tested"
struct page_state page_state(const struct lab_page *page, const struct study_digest *digest,
                             const char *answer, struct lab_arena *arena);
/* That devices are parts of one CPU, a sentence without its full stop; NULL = they aren't. */
const char *page_slices(const struct study_digest *digest, struct lab_arena *arena);
/* Whether the first screen and the terminal show it: nothing disturbs a simulated machine, but its
 * noise may be large. */
bool page_is_shown(const struct lab_page *page, const struct study_note *note);
/* Whether it bears on the verdict: a busy machine doesn't on what a program computed. */
bool page_concerns(const struct lab_page *page, const struct study_note *note);
/* "68 of 110 runs: other processes took up to 64.3% of …". */
const char *page_warning(const struct lab_page *page, const struct study_digest *digest,
                         const struct study_note *note, struct lab_arena *arena);
/* How many of the runs that ended have any, and the most frequent ones; the others are "below", or
 * where else. */
void page_add_warnings(const struct lab_page *page, const struct study_digest *digest,
                       const char *where, struct lab_str *text, struct lab_arena *arena);

/* --- parts of the document --- */

struct page_build {
    const struct lab_page *page;
    struct lab_doc *doc;
    struct study_digest *digest; /* NULL = of recordings */
    const struct page_names *names;
    struct page_actions actions;
};

void page_add_evidence(const struct page_build *build);
/* Those of page_limits, folded; nothing where there are none. */
void page_add_inconclusive(const struct page_build *build);
/* How it was measured, failures and warnings, points, files. */
void page_add_method(const struct page_build *build);
/* The length of an answer's first sentences, up to the one that has a number's conditions. */
size_t page_headline_length(const char *text);
/* Its first sentences as a heading, a few more below; the whole stands with the evidence. */
void page_add_answer(const struct page_build *build, const char *answer, size_t headline);
/* What to do, as a card. */
void page_add_actions(const struct page_build *build);
/* `panels_most` 0: all of them, below its title. */
void page_add_chart(const struct page_build *build, const struct lab_chart *chart, int width,
                    int panels_most);
/* What compares the analysis's parts; of a single part its first table. */
void page_add_small_table(const struct page_build *build, const struct lab_page_analysis *analysis);
#define PAGE_INCONCLUSIVE "inconclusive" /* the id of the section that lists them */
/* "Not tested: …. Inconclusive: 3 of 48 comparisons. Warnings: …", marked. NULL = none of these.
 * `where`: of page_add_warnings; NULL = plain text, without warnings. */
const char *page_limits(const struct page_build *build, const char *where, struct lab_arena *arena);
/* "Measured: GPUs 0–3 of 10. Pairs tested: …." NULL = all of the machine. */
const char *page_measured(const struct page_build *build, struct lab_arena *arena);

struct page_open {                 /* comparisons, and estimates where one is inconclusive */
    int compared, open;            /* inconclusive ones are open */
    bool estimates;                /* some of them are estimates */
    bool single;                   /* of one run per point */
    const struct lab_claim *most;  /* the open one that asks for most runs, of those that anybody
                                     would run; NULL = none */
    const struct lab_claim *first; /* of all; NULL = none */
};
/* Whether the study asks for it, or it gives the first sentence. */
bool page_is_asked(const struct lab_page *page, const struct lab_page_analysis *analysis);
/* `asked`: of the analyses that answer the study's question; else of all that the page shows. */
struct page_open page_open_count(const struct lab_page *page, bool asked);
/* Its answer, devices that are slower than their peers after the headline. NULL = there is none, or
 * no run is valid: values that aren't to be used answer nothing. */
const char *page_verdict(const struct lab_page *page, const struct study_digest *digest,
                         const struct page_names *names, struct lab_arena *arena,
                         size_t *ret_headline);

/* Whether an analysis has an answer, and not only found that it can't give one. */
bool page_tells(const struct lab_page_analysis *analysis);
/* The result of the first analysis that has one; NULL = none has. */
const struct lab_analysis_result *page_leading(const struct lab_page *page);
/* The analysis whose first table shows each point or setting; NULL = rates do. */
const struct lab_page_analysis *page_by_point(const struct lab_page *page);
/* That table, with so many columns and rows at most, and what stands below it; NULL = there is
 * none. `terminal` NULL = on a page's card; a terminal's table itself says what is left out. */
struct lab_doc_table *page_overview(const struct lab_page *page, const struct page_names *names,
                                    const struct lab_style *terminal, int columns, int rows,
                                    struct lab_arena *arena, const char **ret_words);
/* What stands below a table, without sentences about columns that aren't shown: of "Drift: from
 * start to end.", that one; of "±: …", any interval. */
const char *page_caption(const char *words, const struct lab_doc_table *whole, const bool *shown,
                         struct lab_arena *arena);
/* The first sentence. */
const char *page_answer(const struct lab_page *page);
/* Whether that is that its question was not tested. */
bool page_is_untested(const struct lab_page *page);
/* Nor can be by more runs on this machine. */
bool page_is_elsewhere(const struct lab_page *page);
