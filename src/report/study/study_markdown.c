/*
 * study_markdown.c: a study's report/report.md: all that the terminal shows, and all of the runs,
 * for people who weren't there. GitHub's Markdown; the same records always give the same text.
 */
#include "report/study/study_internal.h"

#include <ctype.h>
#include <math.h>

#define DIGITS      4  /* of a rate: one more than is sure, so that intervals show */
#define NAMES_SHOWN 20 /* runs named for one note, and figures of one row */

/* --- text --- */

/* Text as it is meant, whatever signs are in it. '_' within a word is no sign. */
static void add_text(struct lab_str *out, const char *text) {
    for (const char *c = text; *c; c++) {
        bool within =
            *c == '_' && c > text && isalnum((unsigned char)c[-1]) && isalnum((unsigned char)c[1]);
        if (*c == '\n' || *c == '\r')
            lab_str_add(out, " ");
        else if (strchr("\\`*_<>[]|~&#", *c) && !within)
            lab_str_printf(out, "\\%c", *c);
        else
            lab_str_add_bytes(out, c, 1);
    }
}

/* A hint has code in it already. */
static void add_hint(struct lab_str *out, const char *hint) {
    bool code = false;
    for (const char *c = hint; *c; c++) {
        code ^= *c == '`';
        if (!code && (*c == '<' || *c == '[' || *c == ']'))
            lab_str_add(out, "\\");
        lab_str_add_bytes(out, c, 1);
    }
}

/* As code. A pipe would end a table's cell even there. */
static void add_code(struct lab_str *out, const char *text) {
    const char *fence = strchr(text, '`') ? "``" : "`";
    lab_str_printf(out, "%s%s", fence, fence[1] ? " " : "");
    for (const char *c = text; *c; c++)
        if (*c == '|')
            lab_str_add(out, "\\|");
        else
            lab_str_add_bytes(out, *c == '\n' ? " " : c, 1);
    lab_str_printf(out, "%s%s", fence[1] ? " " : "", fence);
}

/* Words that are kept together in a terminal, on one line here. */
static void add_words(struct lab_str *out, const char *words) {
    struct lab_str plain;
    lab_str_init(&plain);
    lab_text_wrap(words, 0, 0, INT32_MAX, &plain);
    add_text(out, plain.text);
    lab_str_release(&plain);
}

static void add_heading(const struct study_digest *digest, const char *text, struct lab_str *out) {
    lab_str_printf(out, "\n## %s%s\n\n", text, digest->study->simulated ? " (simulated)" : "");
}

/* --- the table of runs --- */

static void add_figure(struct lab_str *out, double rate, const char *unit) {
    if (strcmp(unit, STUDY_TIME) == 0)
        study_add_rate(out, rate, unit);
    else
        study_add_figure(out, rate, DIGITS);
}

/* Of what was done once, the latency is the time again. */
static bool shows_latency(const struct study_digest *digest) {
    return digest->range_count != 1 || strcmp(digest->ranges[0].unit, STUDY_TIME) != 0;
}

static void add_interval(const struct study_row *row, struct lab_str *out) {
    if (isnan(row->low) || isnan(row->high)) {
        lab_str_add(out, "–");
        return;
    }
    bool time = strcmp(row->unit, STUDY_TIME) == 0;
    add_figure(out, time ? row->high : row->low, row->unit);
    lab_str_add(out, " to ");
    add_figure(out, time ? row->low : row->high, row->unit);
    if (row->rate_count > 1)
        lab_str_printf(out, ", %.0f %%", 100 * row->confidence);
}

static void add_each(const struct study_row *row, struct lab_str *out) {
    int shown = 0;
    for (int i = 0; i < row->run_count && shown < NAMES_SHOWN; i++) {
        if (!study_row_counts(row, row->run[i]))
            continue;
        lab_str_add(out, shown++ ? ", " : "");
        add_figure(out, row->run[i]->rate, row->unit);
    }
    lab_str_add(out, shown == 0 ? "–" : shown < row->rate_count ? ", …" : "");
}

static void add_state(const struct study_digest *digest, const struct study_row *row,
                      struct lab_str *out) {
    int done = row->state_counts[LAB_RUN_DONE];
    if (done == row->run_count)
        lab_str_add(out, "done");
    else if (done)
        lab_str_printf(out, "%d done", done);
    struct lab_str remark;
    lab_str_init(&remark);
    study_add_remark(digest, row, &remark);
    lab_str_printf(out, "%s%s", done && remark.length ? ", " : "", remark.text);
    lab_str_release(&remark);
    double overlap = study_result_number(row->run[0], "gang_overlap", NULL);
    if (row->run[0]->rank_count > 1 && row->rate_count && !isnan(overlap))
        lab_str_printf(out, "; ranks overlap %.0f %%", 100 * overlap);
}

static void add_row(const struct study_digest *digest, const struct study_row *row, bool one_unit,
                    struct lab_str *out) {
    struct lab_str devices, nodes;
    lab_str_init(&devices);
    lab_str_init(&nodes);
    study_add_places(row->run[0], &devices, &nodes);
    lab_str_add(out, "| ");
    add_code(out, row->name);
    lab_str_add(out, " | ");
    add_text(out, devices.text);
    lab_str_printf(out, " | %s | ", nodes.text);
    add_figure(out, row->rate, row->unit);
    if (!one_unit && *row->unit && strcmp(row->unit, STUDY_TIME) != 0)
        lab_str_printf(out, " %s", row->unit);
    lab_str_add(out, " | ");
    add_interval(row, out);
    lab_str_add(out, " | ");
    if (digest->repeats) {
        add_each(row, out);
        lab_str_add(out, " | ");
    }
    double latency_s = study_row_latency_s(row);
    if (shows_latency(digest)) {
        lab_str_add(out, isnan(latency_s) ? "–" : "");
        if (!isnan(latency_s))
            lab_str_add_time(out, latency_s);
        lab_str_add(out, " | ");
    }
    add_state(digest, row, out);
    lab_str_add(out, " |\n");
    lab_str_release(&devices);
    lab_str_release(&nodes);
}

static void add_meaning(const struct study_digest *digest, struct lab_str *out) {
    bool across = false, within = false;
    for (int i = 0; i < digest->row_count; i++) {
        across |= digest->rows[i].rate_count > 1;
        within |= digest->rows[i].rate_count == 1 && !isnan(digest->rows[i].low);
    }
    if (!across && !within)
        return;
    lab_str_add(out, "\n");
    if (across)
        lab_str_add(out,
                    "Rates are medians of the runs of a row. Intervals are those of the median "
                    "*across runs*, from order statistics, with the confidence that so many runs "
                    "reach; they speak about another run.");
    if (across && within)
        lab_str_add(out, " Where a row has one run, the interval is the one *within the run*.");
    if (!across)
        lab_str_add(out,
                    "Intervals are 95 % *within the run*: they say how well this run's rate is "
                    "known, not how far another run may be. `repeat=5` tells that.");
    if (shows_latency(digest))
        lab_str_add(out, " Latency is the time of one iteration from its first to its last stage; "
                         "95 % of them are shorter than p95.");
    lab_str_add(out, "\n");
}

static void add_runs(const struct study_digest *digest, struct lab_str *out) {
    add_heading(digest, "Runs", out);
    bool one_unit = digest->range_count == 1;
    lab_str_add(out, "| Run | Device | Node | ");
    lab_str_printf(out, "%s%s", digest->study->simulated ? "Simulated " : "",
                   !shows_latency(digest)                ? "Time"
                   : one_unit && *digest->ranges[0].unit ? digest->ranges[0].unit
                   : digest->study->simulated            ? "rate"
                                                         : "Rate");
    lab_str_printf(out, " | Interval | %s%sState |\n", digest->repeats ? "Each run | " : "",
                   shows_latency(digest) ? "p95 latency | " : "");
    lab_str_printf(out, "|---|---|--:|--:|--:|%s%s---|\n", digest->repeats ? "---|" : "",
                   shows_latency(digest) ? "--:|" : "");
    for (int i = 0; i < digest->row_count; i++)
        add_row(digest, &digest->rows[i], one_unit, out);
    add_meaning(digest, out);
}

/* --- what is wrong --- */

static void add_names(const struct study_note *note, int of, struct lab_str *out) {
    if (note->run_count == of && of > NAMES_SHOWN) {
        lab_str_printf(out, "all %d runs", of);
        return;
    }
    for (int i = 0; i < note->run_count && i < NAMES_SHOWN; i++) {
        lab_str_add(out, i ? ", " : "");
        add_code(out, note->run[i]->id);
        if (note->run[i]->attempts > 1)
            lab_str_printf(out, " (%d attempts)", note->run[i]->attempts);
    }
    if (note->run_count > NAMES_SHOWN)
        lab_str_printf(out, " and %d more", note->run_count - NAMES_SHOWN);
}

static void add_notes(const struct study_digest *digest, const char *title,
                      const struct study_notes *notes, struct lab_str *out) {
    if (notes->count == 0)
        return;
    bool failures = notes == &digest->failures;
    add_heading(digest, title, out);
    int of = failures ? digest->study->run_count : digest->state_counts[LAB_RUN_DONE];
    struct lab_str hint;
    lab_str_init(&hint);
    for (int i = 0; i < notes->count; i++) {
        const struct study_note *note = &notes->items[i];
        lab_str_add(out, "- ");
        add_text(out, note->text);
        lab_str_add(out, note->run_count > 1 && !note->exact ? " (the others with other figures)\n"
                                                             : "\n");
        lab_str_add(out, "  - ");
        add_names(note, of, out);
        lab_str_add(out, "\n");
        lab_str_clear(&hint);
        if (!failures || !study_add_hint(note, &hint))
            continue;
        lab_str_add(out, "  - **Hint:** ");
        add_hint(out, hint.text);
        lab_str_add(out, "\n");
    }
    lab_str_release(&hint);
}

static void add_warnings(const struct study_digest *digest, struct lab_str *out) {
    int count = digest->concurrent;
    add_notes(digest, "Warnings", &digest->warnings, out);
    if (!count)
        return;
    if (!digest->warnings.count)
        add_heading(digest, "Warnings", out);
    lab_str_printf(out, "- %d run%s ", count, study_plural(count));
    add_text(out, STUDY_CONCURRENT);
    lab_str_add(out, "\n");
}

/* --- how it was done --- */

static void add_condition(struct lab_str *out, const char *name, const char *text) {
    if (!text || !*text)
        return;
    lab_str_printf(out, "| %s | ", name);
    add_text(out, text);
    lab_str_add(out, " |\n");
}

static void add_conditions(const struct study_digest *digest, struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    struct lab_str text;
    lab_str_init(&text);
    add_heading(digest, "Conditions", out);
    lab_str_add(out, "| Condition | Value |\n|---|---|\n");
    add_condition(out, "Study", study->option);
    if (study->point_count > 0) {
        lab_str_printf(&text, "%lld in %d run%s", (long long)study->point_count, study->run_count,
                       study_plural(study->run_count));
        add_condition(out, "Points", text.text);
    }
    add_condition(out, "Machine", study->machine);
    add_condition(out, "gpulab", study->version);
    lab_str_clear(&text);
    study_add_date(&text, study->created_wall_ns);
    add_condition(out, "Begun", text.text);
    lab_str_clear(&text);
    study_add_when(digest, &text);
    add_condition(out, "Time", text.text);
    if (study->seed_known) {
        lab_str_clear(&text);
        lab_str_printf(&text, "%llu, of the order of the runs and of their data",
                       (unsigned long long)study->seed);
        add_condition(out, "Seed", text.text);
    }
    lab_str_release(&text);
}

static void add_files(const struct study_digest *digest, struct lab_str *out) {
    static const struct {
        const char *name, *what;
    } files[] = {
        {"config.yaml", "the study as it was composed"},
        {"overrides.yaml", "what the command line added to it"},
        {"machine.json", "where it ran: nodes, cores, memory, devices"},
        {"study.db", "all of it, every iteration's times among them: one SQLite file"},
        {"results.json", "each run with its figures, for programs"},
        {"experiment_summary.json", "the study in a few figures, for programs"},
        {"logs/", "what each run printed"},
    };
    add_heading(digest, "Files", out);
    lab_str_add(out, "In ");
    add_code(out, digest->study->folder);
    lab_str_add(out, ":\n\n| File | Content |\n|---|---|\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        lab_str_printf(out, "| [%s](../%s) | %s |\n", files[i].name, files[i].name, files[i].what);
}

static void add_code_block(struct lab_str *out, const char *text) {
    lab_str_printf(out, "```\n%s\n```\n", text);
}

static void add_next(const struct study_digest *digest, struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    struct lab_str text;
    lab_str_init(&text);
    add_heading(digest, "How to go on", out);
    study_add_next(digest, &text);
    if (text.length && study->command && *study->command) {
        lab_str_add(out, "This ");
        add_words(out, text.text);
        lab_str_add(out, ":\n\n");
        add_code_block(out, study->command);
        lab_str_add(out, "\n");
    }
    if (study->running) {
        lab_str_add(out, "It is running");
        if (study->holder && *study->holder) {
            lab_str_add(out, ": ");
            add_text(out, study->holder);
        }
        lab_str_add(out, ". `gpulab status --follow` shows where it stands.\n\n");
    }
    lab_str_add(out, "All figures, here and for other programs:\n\n");
    lab_str_clear(&text);
    lab_str_printf(&text, "gpulab show %s\ngpulab export %s --format csv", study->folder,
                   study->folder);
    add_code_block(out, text.text);
    lab_str_release(&text);
}

void study_add_markdown(const struct study_digest *digest, struct lab_str *out) {
    if (digest->nothing_valid)
        lab_str_printf(out, "\n> **Invalid:** %s.\n", STUDY_NOTHING_VALID);
    add_runs(digest, out);
    if (digest->study->metric_count) {
        add_heading(digest, "Metrics", out);
        study_add_metrics(digest->study, out);
    }
    add_notes(digest, "Failures", &digest->failures, out);
    add_notes(digest, "Invalid runs", &digest->problems, out);
    add_warnings(digest, out);
    add_conditions(digest, out);
    add_files(digest, out);
    add_next(digest, out);
}

void lab_report_study_markdown(const struct lab_study_info *study, struct lab_str *out) {
    struct study_digest digest;
    study_digest_init(&digest, study);
    struct lab_str answer;
    lab_str_init(&answer);
    study_add_answer(&digest, INT32_MAX, true, &answer);
    lab_str_add(out, "# ");
    add_text(out, study->name);
    lab_str_printf(out, "%s\n\n", study->simulated ? " (simulated)" : "");
    add_words(out, answer.text);
    lab_str_add(out, "\n");
    study_add_markdown(&digest, out);
    lab_str_release(&answer);
    study_digest_release(&digest);
}
