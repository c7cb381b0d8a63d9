/*
 * study.c: a study's end in a terminal, within 30 lines at 100 columns: verdict, one table,
 * warnings, the report's path, the next command. With `verbose`, all that is known, at any length.
 */
#include "analysis/analysis_words.h"
#include "base/list.h"
#include "model/metric_name.h"
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include <ctype.h>
#include <string.h>

#define LINES_MOST    30
#define COLUMNS_USUAL 100
#define VERDICT_MOST  4
#define ROWS_LEAST    3 /* and all warnings shown, where there is room */
#define ROWS_MOST     16
#define NOTES_SHOWN   3
#define METRICS_MOST  4 /* runs, of programs that report values */
#define ALSO_MOST     3
#define NEXT_LINES    2 /* of what is said of a line to paste */

struct end {
    struct study_digest digest;
    const struct lab_page *page; /* NULL = it wasn't analysed */
    struct study_claims claims;
    struct page_actions actions;
    struct lab_style style;
    bool verbose;
    bool brief; /* a long line that follows the next step yields to rows: the report has it */
    int warnings_most;
};

/* --- text in a given room --- */

/* Text without its end where it is longer than a line; else itself. */
static const char *cut_line(const char *text, int columns, bool unicode, struct lab_arena *arena) {
    LAB_AUTO(str, cut);
    if (lab_str_columns(text) <= columns)
        return text;
    lab_text_fit(text, columns, unicode, &cut);
    while (cut.length && cut.text[cut.length - 1] == ' ')
        cut.text[--cut.length] = '\0';
    return lab_arena_strdup(arena, cut.text);
}

#define CLAUSES_LEAST 0.4 /* of the room: fewer don't say what it is about */

/* Whole clauses, as many as fit, none of them within parentheses unless there are no others; where
 * these fill too little of the room, as much as does. */
static const char *cut_clauses(const char *text, int columns, bool unicode,
                               struct lab_arena *arena) {
    size_t kept = 0, within = 0;
    int depth = 0;
    for (size_t i = 0; i <= (size_t)columns && text[i] && lab_str_columns(text) > columns; i++) {
        bool ends = (strchr(",;:", text[i]) && text[i + 1] == ' ') ||
                    (text[i] == ' ' && text[i + 1] == '(');
        if (ends && i > 20)
            *(depth == 0 ? &kept : &within) = i;
        depth += strchr("([", text[i]) ? 1 : strchr(")]", text[i]) ? -1 : 0;
    }
    kept = (double)kept > CLAUSES_LEAST * columns ? kept : within;
    return (double)kept > CLAUSES_LEAST * columns ? lab_arena_strndup(arena, text, kept)
                                                  : cut_line(text, columns, unicode, arena);
}

static int count_lines(const char *text, int columns) {
    LAB_AUTO(str, wrapped);
    int lines = 1;
    lab_text_wrap(text, 0, 0, columns, &wrapped);
    for (const char *at = wrapped.text; *at; at++)
        lines += *at == '\n';
    return lines;
}

/* The end of the sentence that begins there: a full stop before a capital or after a parenthesis,
 * or the text's end. */
static const char *sentence_end(const char *text) {
    for (const char *at = text; *at; at++)
        if (at[0] == '.' && (!at[1] || (at[1] == ' ' && (isupper((unsigned char)at[2]) ||
                                                         (at > text && at[-1] == ')')))))
            return at + 1;
    return text + strlen(text);
}

/* As many whole sentences as fit into so many lines; the first one in any case. */
static const char *fit_sentences(const char *text, int lines, int columns,
                                 struct lab_arena *arena) {
    size_t kept = (size_t)(sentence_end(text) - text), length = strlen(text);
    while (kept < length) {
        size_t more = (size_t)(sentence_end(text + kept + 1) - text);
        if (count_lines(lab_arena_strndup(arena, text, more), columns) > lines)
            break;
        kept = more;
    }
    return lab_arena_strndup(arena, text, kept);
}

/* --- verdict --- */

static const char *verdict_of(const struct end *end, struct lab_arena *arena) {
    size_t headline;
    const char *answer =
        end->page ? page_verdict(end->page, &end->digest, NULL, arena, &headline) : NULL;
    if (!answer)
        return NULL;
    return end->verbose ? answer : fit_sentences(answer, VERDICT_MOST, end->style.columns, arena);
}

static void add_heading(struct lab_doc *doc, const struct end *end) {
    const struct lab_study_info *study = end->digest.study;
    LAB_AUTO(str, counts);
    study_add_counts(study, end->digest.state_counts, end->digest.invalid, &counts);
    const char *name = cut_line(lab_study_info_title(study), end->style.columns / 2,
                                end->style.unicode, lab_doc_arena(doc));
    lab_doc_text(doc, LAB_DOC_TITLE, "%s%s: %s", name, study->simulated ? " (simulated)" : "",
                 counts.text);
}

/* What the other analyses found, a paragraph each, and what was withdrawn. */
static void add_others(struct lab_doc *doc, const struct end *end) {
    const struct lab_page *page = end->page;
    const char *first = page ? page_answer(page) : NULL;
    lab_doc_gap(doc);
    for (int i = 0; page && end->verbose && i < page->analysis_count; i++)
        if (page_tells(&page->analyses[i]) && page->analyses[i].result->answer != first)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s", page->analyses[i].name,
                         page->analyses[i].result->answer);
    for (int i = 0; page && page->warnings && page->warnings[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", page->warnings[i]);
}

/* What isn't known, as on the page; its warnings have lines of their own here. */
static const char *limits_of(const struct end *end, struct lab_arena *arena) {
    struct page_build build = {.page = end->page, .digest = (struct study_digest *)&end->digest};
    bool over = end->page && !end->digest.study->running && !end->digest.nothing_valid;
    const char *limits = over ? page_limits(&build, NULL, arena) : NULL,
               *measured = over ? page_measured(&build, arena) : NULL;
    return limits && measured ? lab_arena_printf(arena, "%s %s", limits, measured)
           : limits           ? limits
                              : measured;
}

static void add_limits(struct lab_doc *doc, const struct end *end) {
    const char *limits = limits_of(end, lab_doc_arena(doc));
    lab_doc_gap(doc);
    if (limits)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s", limits);
}

/* --- what is wrong --- */

/* In full of each run, or in a line for all of them. */
static void add_note(struct lab_doc *doc, const struct end *end, const char *word,
                     enum lab_doc_tone tone, const struct study_note *note) {
    struct lab_arena *arena = lab_doc_arena(doc);
    LAB_AUTO(str, line);
    if (end->verbose) {
        study_add_who(note, end->digest.study->run_count, &line);
        lab_str_printf(&line, ": %s", note->text);
    } else {
        lab_str_add(&line, page_warning(end->page, &end->digest, note, arena));
    }
    bool whole =
        end->verbose || note->kind == LAB_RUN_WARNING_NO_METRIC || !page_concerns(end->page, note);
    int room = end->style.columns - 3 - (int)strlen(word);
    lab_doc_said(doc, word, tone, "%s",
                 whole ? line.text : cut_clauses(line.text, room, end->style.unicode, arena));
}

static void add_notes(struct lab_doc *doc, const struct end *end, const char *word,
                      enum lab_doc_tone tone, const struct study_notes *notes, int most) {
    int shown = end->verbose || notes->count < most ? notes->count : most;
    for (int i = 0; i < shown; i++)
        add_note(doc, end, word, tone, &notes->items[i]);
    if (shown < notes->count) /* a run may have several */
        lab_doc_said(doc, word, tone, "%d more kind%s (--verbose)", notes->count - shown,
                     study_plural(notes->count - shown));
}

void study_add_failures(struct lab_doc *doc, const struct study_digest *digest) {
    const struct study_notes *failures = &digest->failures;
    int shown = failures->count < NOTES_SHOWN ? failures->count : NOTES_SHOWN, others = 0;
    for (int i = 0; i < shown; i++) {
        const struct study_note *note = &failures->items[i];
        LAB_AUTO(str, who);
        study_add_who(note, digest->study->run_count, &who);
        lab_doc_said(doc, "Failed:", LAB_DOC_ERROR, "%s: %s", who.text, note->text);
        const char *hint = study_hint(note, lab_doc_arena(doc));
        const char *next = i + 1 < shown ? study_hint(note + 1, lab_doc_arena(doc)) : NULL;
        /* where the next has it too, it follows once, below the last of them */
        if (hint && !lab_str_equal(hint, next))
            lab_doc_text(doc, LAB_DOC_HINT, "%s", hint);
    }
    for (int i = shown; i < failures->count; i++)
        others += failures->items[i].run_count;
    if (others)
        lab_doc_said(doc, "Failed:", LAB_DOC_ERROR,
                     "%d more run%s, for other reasons: report/report.md has them all", others,
                     study_plural(others));
}

/* "objective bleu: not reported; metrics read: loss, top1"; NULL = it was, or there is none. */
static const char *missing_objective(const struct lab_study_info *study, struct lab_arena *arena) {
    enum { NAMES_MOST = 6 };
    const char **names = NULL;
    int count = 0;
    size_t length;
    enum lab_direction better;
    LAB_AUTO(str, list);
    if (!study->objective || study->metric_count == 0 ||
        lab_metric_objective_read(study->objective, &length, &better, NULL) < 0)
        return NULL;
    for (int i = 0; i < study->metric_count; i++) {
        const char *name = study->metrics[i].name;
        if (strlen(name) == length && strncasecmp(name, study->objective, length) == 0)
            return NULL;
        if (lab_list_find_text(names, count, name) >= 0)
            continue;
        LAB_ADD(names, count, arena) = name;
        if (count <= NAMES_MOST)
            lab_str_printf(&list, "%s%s", count > 1 ? ", " : "", name);
    }
    return lab_arena_printf(arena, "objective %.*s: not reported; metrics read: %s%s", (int)length,
                            study->objective, list.text, count > NAMES_MOST ? ", …" : "");
}

static void add_problems(struct lab_doc *doc, const struct end *end) {
    const struct study_digest *digest = &end->digest;
    lab_doc_gap(doc);
    if (digest->nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_ERROR, STUDY_NOTHING_VALID);
    study_add_failures(doc, digest);
    add_notes(doc, end, "Invalid:", LAB_DOC_ERROR, &digest->problems, NOTES_SHOWN);
    if (digest->concurrent)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%d run%s %s", digest->concurrent,
                     study_plural(digest->concurrent), STUDY_CONCURRENT);
    const char *objective = missing_objective(digest->study, lab_doc_arena(doc));
    if (objective)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%s", objective);
    struct study_notes warnings = {lab_arena_copy(lab_doc_arena(doc), digest->warnings.items,
                                                  (size_t)digest->warnings.count,
                                                  sizeof *warnings.items),
                                   0};
    for (int i = 0; i < digest->warnings.count; i++)
        if (end->verbose || page_is_shown(end->page, &digest->warnings.items[i]))
            warnings.items[warnings.count++] = digest->warnings.items[i];
    add_notes(doc, end, "Warning:", LAB_DOC_WARNING, &warnings, end->warnings_most);
}

/* --- where, and what next --- */

/* Commands with the study's folder as the report's path has it: they are pasted here. */
static void shorten_commands(const struct lab_study_info *study, struct page_actions *actions,
                             struct lab_arena *arena) {
    size_t length = study->path ? strlen(study->path) : 0;
    for (int i = 0; i < actions->count && length > 0; i++) {
        const char *command = actions->items[i].command,
                   *at = command ? strstr(command, study->path) : NULL;
        if (at && strchr(" '/", at[length])) /* or its end */
            actions->items[i].command = lab_arena_printf(arena, "%.*s%s%s", (int)(at - command),
                                                         command, study->folder, at + length);
    }
}

void study_add_command(struct lab_doc *doc, const struct study_digest *digest, const char *text) {
    LAB_AUTO(str, next);
    study_add_next(digest, &next);
    if (!next.length || !digest->study->command || !*digest->study->command)
        return;
    lab_doc_line_whole(doc, "Resume", "%s",
                       study_resume_command(digest->study, lab_doc_arena(doc)));
    lab_doc_line(doc, "", "%s%s", text ? text : next.text, text ? "." : "");
}

/* What a next step leaves to be run; NULL = nothing. After a run of the study, that is another. */
static const struct page_action *find_then(const struct page_actions *actions) {
    const struct page_action *next = page_actions_next(actions);
    for (int i = 0; i < actions->count && next; i++) {
        const struct page_action *action = &actions->items[i];
        if (action != next && action->kind == PAGE_PASTE && action->command &&
            (!next->study || action > next))
            return action;
    }
    return NULL;
}

#define INDENT 12 /* of what follows "Next" */

/* Its sentences that fit into two lines, a third behind that the machine is to be quiet; the page
 * has the others. No full stop at its end. */
static const char *next_text(const struct end *end, const struct page_action *action,
                             struct lab_arena *arena) {
    const char *text = action->text;
    if (end->verbose)
        return text;
    char *kept = lab_arena_strdup(arena, fit_sentences(text, NEXT_LINES + action->quiet,
                                                       end->style.columns - INDENT - 1, arena));
    size_t length = strlen(kept);
    if (length > 0 && kept[length - 1] == '.' && strlen(text) > length)
        kept[length - 1] = '\0';
    return kept;
}

/* "All values" says no more than the command does. */
static bool shows_text(const struct page_action *action) {
    return action->kind != PAGE_SHOW || action->finding;
}

/* Whether a line that follows the next step is left to the report; by the terminal alone it is
 * broken. */
static bool yields(const struct end *end, const struct page_action *then) {
    return end->brief && then->text &&
           INDENT + lab_str_columns(then->command) > NEXT_LINES * end->style.columns;
}

static void add_then(struct lab_doc *doc, const struct end *end) {
    const struct page_action *next = page_actions_next(&end->actions),
                             *then = find_then(&end->actions);
    if (end->digest.study->running || !next || !then)
        return;
    if (yields(end, then)) {
        lab_doc_line(doc, "Then", "%s (line: report).", next_text(end, then, lab_doc_arena(doc)));
        return;
    }
    lab_doc_line_whole(doc, "Then", "%s", then->command);
    if (then->text) /* the page has no label there */
        lab_doc_line(doc, "", "%s.",
                     lab_words_capital(then->text + (lab_str_starts(then->text, "Then ") ? 5 : 0),
                                       lab_doc_arena(doc)));
}

/* Settings that were found besides, such as a batch size; the page has all of each. */
static int find_also(const struct end *end, const struct page_action *ret_also[ALSO_MOST]) {
    const struct page_action *next = page_actions_next(&end->actions);
    int count = 0;
    for (int i = 0; i < end->actions.count && count < ALSO_MOST; i++) {
        const struct page_action *action = &end->actions.items[i];
        bool setting =
            action->kind == PAGE_CHOOSE || (action->kind == PAGE_PASTE && !action->command);
        if (setting && action != next && action->text && !end->digest.study->running)
            ret_also[count++] = action;
    }
    return count;
}

static void add_also(struct lab_doc *doc, const struct end *end) {
    const struct page_action *also[ALSO_MOST];
    struct lab_arena *arena = lab_doc_arena(doc);
    int count = find_also(end, also);
    for (int i = 0; i < count; i++) {
        const char *text = also[i]->text;
        size_t length = strlen(text), first = (size_t)(sentence_end(text) - text);
        text = lab_arena_strndup(arena, text, first < length ? first - 1 : length);
        text = cut_clauses(text, end->style.columns - INDENT - 1, end->style.unicode, arena);
        bool cut = lab_str_ends(text, "…") || lab_str_ends(text, "...");
        text = end->verbose ? also[i]->text : text;
        lab_doc_line(doc, i ? "" : "Also", "%s%s", text, cut ? "" : ".");
    }
}

static void add_next(struct lab_doc *doc, const struct end *end) {
    const struct lab_study_info *study = end->digest.study;
    const struct page_action *next = page_actions_next(&end->actions);
    if (study->running) {
        lab_doc_line_whole(doc, "Next", "gpulab status %s --follow",
                           study->name ? study->name : study->option);
    } else if (!next) {
        return;
    } else if (next->kind == PAGE_RESUME) {
        study_add_command(doc, &end->digest, next->quiet ? next->text : NULL);
    } else if (next->command) {
        lab_doc_line_whole(doc, "Next", "%s", next->command);
        if (next->text && shows_text(next))
            lab_doc_line(doc, "", "%s.", next_text(end, next, lab_doc_arena(doc)));
    } else {
        lab_doc_line(doc, "Next", "%s.", next->text);
    }
    add_also(doc, end);
    add_then(doc, end);
}

static void add_place(struct lab_doc *doc, const struct end *end) {
    const struct lab_study_info *study = end->digest.study;
    LAB_AUTO(str, when);
    LAB_AUTO(str, folder);
    study_add_when(&end->digest, &when);
    lab_str_add_shell(&folder, study->folder ? study->folder : "");
    lab_doc_gap(doc);
    if (end->verbose) {
        lab_doc_line(doc, "Time", "%s", when.text);
        lab_doc_line(doc, "Machine", "%s", study->machine ? study->machine : "");
    }
    bool missing = !study->running && study->report && !*study->report;
    if (end->verbose || missing)
        lab_doc_line_whole(doc, "Folder", "%s", study->folder);
    if (study->running)
        lab_doc_line(doc, "Running", "%s", study->holder ? study->holder : "");
    else if (!study->report) /* it is written at the end */
        lab_doc_line_whole(doc, "Report", "%s/report/report.md", study->folder);
    else if (*study->report)
        lab_doc_line_whole(doc, "Report", "%s", study->report);
    else if (study->folder)
        lab_doc_line_whole(doc, "", "no report yet: gpulab report %s", folder.text);
    add_next(doc, end);
}

/* --- all of it --- */

/* All that is said around the table: it shows what these name. */
static const char *words_of(const struct end *end, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char *verdict = verdict_of(end, arena);
    const struct page_action *also[ALSO_MOST], *next = page_actions_next(&end->actions);
    int count = find_also(end, also);
    lab_str_add(&text, verdict ? verdict : "");
    if (next && next->text)
        lab_str_printf(&text, " %s", next->text);
    for (int i = 0; i < count; i++)
        lab_str_printf(&text, " %.*s", (int)(sentence_end(also[i]->text) - also[i]->text),
                       also[i]->text);
    return lab_arena_strdup(arena, text.text ? text.text : "");
}

/* Whether other devices have to run the study: rates of these don't compare its points. */
static bool answers_nothing(const struct lab_page *page) {
    const struct lab_analysis_result *leading = page ? page_leading(page) : NULL;
    return leading && leading->command && page_is_untested(page);
}

/* Values of runs follow: behind a table of settings only where they are few. */
static void add_points(struct lab_doc *doc, const struct end *end, int rows) {
    const struct lab_study_info *study = end->digest.study;
    const char *words = NULL;
    const struct lab_doc_table *overview =
        page_overview(end->page, page_names_make(&end->digest, lab_doc_arena(doc)), &end->style,
                      INT32_MAX, rows, lab_doc_arena(doc), &words);
    if (overview) {
        lab_doc_gap(doc);
        lab_doc_table(doc, overview);
        lab_doc_text(doc, LAB_DOC_FAINT, "%s", words);
    } else if (end->verbose || !answers_nothing(end->page)) {
        study_add_table(doc, &end->digest, &end->claims,
                        (struct study_room){.rows = rows,
                                            .columns = end->style.columns,
                                            .words = words_of(end, lab_doc_arena(doc))});
    }
    if (!overview || end->verbose || study->run_count <= METRICS_MOST)
        study_add_last_metrics(doc, study, end->verbose ? INT32_MAX : METRICS_MOST);
}

static void add_all(struct lab_doc *doc, const struct end *end, int rows) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const char *verdict = verdict_of(end, arena), *slices = page_slices(&end->digest, arena);
    lab_doc_gap(doc);
    add_heading(doc, end);
    if (slices)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s.", slices);
    lab_doc_gap(doc);
    if (verdict)
        lab_doc_text(doc, LAB_DOC_ANSWER, "%s", verdict);
    add_others(doc, end);
    add_points(doc, end, rows);
    add_limits(doc, end);
    add_problems(doc, end);
    add_place(doc, end);
}

/* Of all, with that many rows, where the terminal is as wide as is usual: a command or a path is
 * broken by the terminal alone. */
static int lines_with(const struct end *end, int rows) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    struct lab_style style = {.columns = end->style.columns, .unicode = end->style.unicode};
    struct end wide = *end;
    int lines = 0;
    if (style.columns < COLUMNS_USUAL)
        wide.style.columns = style.columns = COLUMNS_USUAL;
    add_all(doc, &wide, rows);
    lab_doc_write(doc, "text", style, &text);
    for (const char *line = text.text, *next; line && *line; line = next) {
        next = line + strcspn(line, "\n");
        int columns = lab_str_columns(lab_arena_strndup(&arena, line, (size_t)(next - line)));
        lines += columns > style.columns ? (columns + style.columns - 1) / style.columns : 1;
        next += *next == '\n';
    }
    return lines;
}

/* As many rows as leave room for all else. Before there are too few, one warning is enough, and of
 * a long line that follows the next step its text. */
static int share_room(struct end *end) {
    end->warnings_most = NOTES_SHOWN;
    if (end->verbose || end->style.columns <= 0)
        return INT32_MAX;
    if (lines_with(end, ROWS_LEAST) > LINES_MOST)
        end->warnings_most = 1;
    end->brief = lines_with(end, ROWS_LEAST) > LINES_MOST;
    int rows = 1, most = ROWS_MOST;
    while (rows < most) {
        int middle = (rows + most + 1) / 2;
        if (lines_with(end, middle) <= LINES_MOST)
            rows = middle;
        else
            most = middle - 1;
    }
    return rows;
}

void lab_report_add_study(struct lab_doc *doc, const struct lab_study_info *study,
                          const struct lab_page *page, struct lab_style style, bool verbose) {
    struct end end = {.page = page, .style = style, .verbose = verbose};
    study_digest_init(&end.digest, study);
    if (page)
        end.claims.items = lab_report_claims(page, lab_doc_arena(doc), &end.claims.count);
    struct lab_arena *arena = lab_doc_arena(doc);
    end.actions = page_actions_make(page, &end.digest, page_names_make(&end.digest, arena), arena);
    shorten_commands(study, &end.actions, arena);
    add_all(doc, &end, share_room(&end));
    study_digest_release(&end.digest);
}
