/* study_status.c: where studies stand, for whoever looks from another terminal; and all of them. */
#include "report/study/study_internal.h"

#include <math.h>

#define RUNS_SHOWN  16
#define BAR_COLUMNS 50
#define KNOWN_SHARE 0.05 /* of a run's iterations, before its own pace says how long it takes */

/* --- one run under way --- */

static const struct lab_run_progress *progress_of(const struct lab_study_info *study,
                                                  const struct lab_run *run) {
    for (int i = 0; i < study->progress_count; i++)
        if (study->progress[i].run == run->number)
            return &study->progress[i];
    return NULL;
}

static bool is_phase(const struct lab_run_progress *progress, const char *phase) {
    return progress && lab_str_equal(progress->phase, phase);
}

/* Of all its iterations, those for warm-up included; 0 = none is known to be done. */
static double share_of(const struct lab_run *run, const struct lab_run_progress *progress) {
    double all = (double)(run->warmup_iterations + run->iterations);
    if (!progress || all <= 0)
        return 0;
    if (is_phase(progress, "measuring") && progress->total > 0) {
        double measured = (double)progress->done / (double)progress->total;
        return ((double)run->warmup_iterations + measured * (double)run->iterations) / all;
    }
    if (is_phase(progress, "warm-up"))
        return fmin((double)progress->done, (double)run->warmup_iterations) / all;
    return 0;
}

/* By its own pace since it started; NaN = too early to tell. */
static double left_of(const struct lab_run *run, const struct lab_run_progress *progress) {
    double share = share_of(run, progress);
    if (!progress || share < KNOWN_SHARE || progress->time_ns <= run->start_ns)
        return NAN;
    return 1e-9 * (double)(progress->time_ns - run->start_ns) * (1 - share) / share;
}

static void add_run(struct lab_table *table, const struct lab_run *run,
                    const struct lab_run_progress *progress) {
    struct lab_str text;
    lab_str_init(&text);
    lab_table_cell(table, "%s", run->id);
    lab_table_cell(table, "%s",
                   progress && progress->phase && *progress->phase ? progress->phase : "starting");
    if (progress && progress->total > 0)
        lab_str_printf(&text, "%lld of %lld", (long long)progress->done,
                       (long long)progress->total);
    else if (progress && progress->done > 0)
        lab_str_printf(&text, "%lld", (long long)progress->done);
    lab_table_cell(table, "%s", text.text);
    lab_str_clear(&text);
    double left_s = left_of(run, progress);
    if (isnan(left_s))
        lab_str_add(&text, "?");
    else
        lab_str_add_duration(&text, left_s, LAB_DURATION_ROUNDED);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

static void write_running(const struct lab_study_info *study, int count, struct lab_style style,
                          struct lab_str *out) {
    if (count == 0 || !study->running)
        return;
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "Run", LAB_ALIGN_LEFT);
    lab_table_column(table, "Phase", LAB_ALIGN_LEFT);
    lab_table_column(table, "Iterations", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Left", LAB_ALIGN_RIGHT);
    int shown = 0;
    for (int i = 0; i < study->run_count && shown < RUNS_SHOWN; i++) {
        const struct lab_run *run = &study->runs[i];
        if (run->state != LAB_RUN_RUNNING)
            continue;
        add_run(table, run, progress_of(study, run));
        shown++;
    }
    lab_str_add(out, "\n");
    lab_table_write(table, style, out);
    lab_table_close(table);
    if (count > shown) {
        struct lab_str text;
        lab_str_init(&text);
        lab_str_printf(&text, "… and %d more", count - shown);
        study_write_text(text.text, style, out);
        lab_str_release(&text);
    }
}

/* --- one study --- */

static double fraction_of(const struct study_digest *digest) {
    const struct lab_study_info *study = digest->study;
    double done = digest->state_counts[LAB_RUN_DONE] + digest->state_counts[LAB_RUN_FAILED];
    for (int i = 0; study->running && i < study->run_count; i++)
        if (study->runs[i].state == LAB_RUN_RUNNING)
            done += share_of(&study->runs[i], progress_of(study, &study->runs[i]));
    return study->run_count ? done / study->run_count : 0;
}

static void add_left(const struct lab_study_info *study, struct lab_str *out) {
    if (isnan(study->left_s))
        return;
    lab_str_add(out, "about ");
    lab_str_add_duration(out, study->left_s, LAB_DURATION_ROUNDED);
    lab_str_add(out, study->running ? " left" : " to go");
    if (study->left_unknown)
        lab_str_printf(out, ", %d run%s of it guessed from the others", study->left_unknown,
                       study_plural(study->left_unknown));
}

static void write_bar(const struct study_digest *digest, struct lab_style style,
                      struct lab_str *out) {
    double fraction = fraction_of(digest);
    enum { INDENT = 2, SHARE = 6 };
    int columns = style.columns - INDENT - SHARE;
    lab_str_add(out, "\n  ");
    study_add_bar(fraction, columns < BAR_COLUMNS ? columns : BAR_COLUMNS, style.unicode, out);
    lab_str_printf(out, " %.0f %%\n", floor(100 * fraction));
}

void lab_report_status(const struct lab_study_info *study, struct lab_style style,
                       struct lab_str *out) {
    struct study_digest digest;
    study_digest_init(&digest, study);
    int left = digest.state_counts[LAB_RUN_PLANNED] + digest.state_counts[LAB_RUN_RUNNING];
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "%s%s: ", study->name, study->simulated ? " (simulated)" : "");
    study_add_counts(study, digest.state_counts, digest.invalid, &text);
    if (left && !isnan(study->left_s)) {
        lab_str_add(&text, "; ");
        add_left(study, &text);
    }
    lab_str_add(&text, ".");
    study_write_heading(text.text, style, out);
    write_bar(&digest, style, out);
    write_running(study, digest.state_counts[LAB_RUN_RUNNING], style, out);
    if (digest.failures.count)
        lab_str_add(out, "\n");
    study_write_failures(&digest, style, out);
    lab_str_add(out, "\n");
    if (study->running && study->holder && *study->holder)
        study_write_line("Running", study->holder, style, out);
    study_write_line("Folder", study->folder, style, out);
    lab_str_clear(&text);
    study_add_next(&digest, &text);
    if (text.length && study->command && *study->command) {
        study_write_whole("Go on", study->command, style, out);
        study_write_line("", text.text, style, out);
    }
    lab_str_release(&text);
    study_digest_release(&digest);
}

/* --- all studies --- */

enum { STUDY, STARTED, RUNS, STATE, FOLDER, COLUMN_COUNT };

static void count_states(const struct lab_study_info *study, int counts[LAB_RUN_STATE_COUNT]) {
    for (int i = 0; i < LAB_RUN_STATE_COUNT; i++)
        counts[i] = study->state_counts ? study->state_counts[i] : 0;
    for (int i = 0; !study->state_counts && i < study->run_count; i++)
        counts[study->runs[i].state]++;
}

static void add_state(const struct lab_study_info *study, const int *counts, struct lab_str *out) {
    int failed = counts[LAB_RUN_FAILED], done = counts[LAB_RUN_DONE];
    if (study->running)
        lab_str_add(out, "running");
    else if (counts[LAB_RUN_PLANNED] + counts[LAB_RUN_RUNNING])
        lab_str_add(out, done + failed + counts[LAB_RUN_RUNNING] ? "unfinished" : "not begun");
    else
        lab_str_add(out, failed ? "" : "done");
    if (failed)
        lab_str_printf(out, "%s%d failed", out->length ? ", " : "", failed);
    if (study->simulated)
        lab_str_add(out, ", simulated");
}

static void fill(const struct lab_study_info *study, struct lab_arena *arena,
                 const char *ret_cells[COLUMN_COUNT]) {
    int counts[LAB_RUN_STATE_COUNT], total = 0;
    count_states(study, counts);
    for (int i = 0; i < LAB_RUN_STATE_COUNT; i++)
        total += counts[i];
    struct lab_str text;
    lab_str_init(&text);
    study_add_date(&text, study->created_wall_ns);
    ret_cells[STUDY] = study->option;
    ret_cells[STARTED] = lab_arena_strdup(arena, text.text);
    ret_cells[RUNS] =
        lab_arena_printf(arena, "%d/%d", counts[LAB_RUN_DONE] + counts[LAB_RUN_FAILED], total);
    lab_str_clear(&text);
    add_state(study, counts, &text);
    ret_cells[STATE] = lab_arena_strdup(arena, text.text);
    ret_cells[FOLDER] = study->folder;
    lab_str_release(&text);
}

static const struct {
    const char *title;
    enum lab_align align;
} columns_of_list[COLUMN_COUNT] = {
    [STUDY] = {"Study", LAB_ALIGN_LEFT},   [STARTED] = {"Started", LAB_ALIGN_LEFT},
    [RUNS] = {"Runs", LAB_ALIGN_RIGHT},    [STATE] = {"State", LAB_ALIGN_LEFT},
    [FOLDER] = {"Folder", LAB_ALIGN_LEFT},
};

static bool fits(const char *const (*cells)[COLUMN_COUNT], int count, const bool *shown,
                 int columns) {
    int total = 0;
    for (int c = 0; c < COLUMN_COUNT; c++) {
        int width = lab_str_columns(columns_of_list[c].title);
        for (int i = 0; i < count; i++) {
            int cell = lab_str_columns(cells[i][c]);
            width = cell > width ? cell : width;
        }
        total += shown[c] ? 2 + width : 0;
    }
    return total <= columns;
}

/* The table's lines with a folder under each; the titles and their rule stand above. */
static void add_folders(const char *lines, const struct lab_study_info *studies, int count,
                        struct lab_str *out) {
    for (int line = 0; *lines; line++) {
        size_t length = strcspn(lines, "\n");
        lab_str_add_bytes(out, lines, length);
        lab_str_add(out, "\n");
        if (line >= 2 && line - 2 < count)
            lab_str_printf(out, "    %s\n", studies[line - 2].folder);
        lines += length + (lines[length] == '\n');
    }
}

/* Folders are there to be copied, so they are never cut. A folder says of itself which study it is
 * and when it began, so those go first; where that isn't enough, it gets a line of its own. */
void lab_report_studies(const struct lab_study_info *studies, int count, struct lab_style style,
                        struct lab_str *out) {
    static const bool shapes[][COLUMN_COUNT] = {
        {true, true, true, true, true},
        {false, false, true, true, true},
        {true, true, true, true, false},
    };
    enum { LAST = sizeof shapes / sizeof *shapes - 1 };
    if (count == 0) {
        lab_str_add(out, "No studies yet: `gpulab run` lists what can be run.\n");
        return;
    }
    struct lab_arena arena;
    lab_arena_init(&arena);
    const char *(*cells)[COLUMN_COUNT] = lab_arena_alloc(&arena, (size_t)count, sizeof *cells);
    for (int i = 0; i < count; i++)
        fill(&studies[i], &arena, cells[i]);
    int shape = 0;
    while (shape < LAST &&
           !fits((const char *const(*)[COLUMN_COUNT])cells, count, shapes[shape], style.columns))
        shape++;
    struct lab_table *table = lab_table_open();
    for (int c = 0; c < COLUMN_COUNT; c++)
        if (shapes[shape][c])
            lab_table_column(table, columns_of_list[c].title, columns_of_list[c].align);
    for (int i = 0; i < count; i++)
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (shapes[shape][c])
                lab_table_cell(table, "%s", cells[i][c]);
    struct lab_str lines;
    lab_str_init(&lines);
    lab_table_write(table, style, &lines);
    if (shape < LAST)
        lab_str_add(out, lines.text);
    else
        add_folders(lines.text, studies, count, out);
    lab_str_release(&lines);
    lab_table_close(table);
    lab_arena_release(&arena);
}
