/* study_status.c: progress of studies, as seen from another terminal; and the list of all. */
#include "model/metric_name.h"
#include "report/study/study_axes.h"
#include "report/study/study_internal.h"

#include <math.h>

#define RUNS_SHOWN  16
#define BAR_COLUMNS 50
#define KNOWN_SHARE 0.05 /* of a run's iterations, before its own pace says how long it takes */

/* --- one run under way --- */

static const struct lab_run_progress *progress_of(const struct lab_study_info *study,
                                                  const struct lab_run *run) {
    return lab_run_find_progress(study->progress, study->progress_count, run->number);
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

static void add_run(struct lab_doc *doc, const char *name, const struct lab_run *run,
                    const struct lab_run_progress *progress) {
    double left_s = left_of(run, progress);
    LAB_AUTO(str, left);
    if (isnan(left_s))
        lab_str_add(&left, "?");
    else
        lab_str_add_duration(&left, left_s, LAB_DURATION_ROUNDED);
    lab_doc_cell(doc, "%s", name);
    lab_doc_cell(doc, "%s",
                 progress && progress->phase && *progress->phase ? progress->phase : "starting");
    if (progress && progress->total > 0)
        lab_doc_cell(doc, "%lld of %lld", (long long)progress->done, (long long)progress->total);
    else if (progress && progress->done > 0)
        lab_doc_cell(doc, "%lld", (long long)progress->done);
    else
        lab_doc_cell(doc, "%s", "");
    lab_doc_cell(doc, "%s", left.text);
}

/* --- what it reports --- */

#define METRICS_SHOWN 4 /* in a line */
#define CURVES_SHOWN  6
#define SPARK_COLUMNS 16

static const struct lab_program *program_of(const struct lab_study_info *study,
                                            const struct lab_run *run) {
    for (int i = 0; i < study->program_count; i++)
        if (study->programs[i].run == run->number && study->programs[i].metric_count > 0)
            return &study->programs[i];
    return NULL;
}

/* Of several ranks, the first that reported it. */
static bool is_again(const struct lab_program *program, int index) {
    for (int i = 0; i < index; i++)
        if (lab_str_equal(program->metrics[i].name, program->metrics[index].name))
            return true;
    return false;
}

/* "val_loss 0.0312"; of a rate, its unit says what it is: "1516 tokens/s". */
static void add_metric(const struct lab_metric_curve *metric, struct lab_str *out) {
    if (!lab_metric_name_is_rate(metric->name, NULL) || !*metric->unit)
        lab_str_printf(out, "%s ", metric->name);
    lab_str_add_digits(out, metric->curve.last, fabs(metric->curve.last) < 1000 ? 4 : 7);
    lab_str_printf(out, "%s%s", *metric->unit ? " " : "", metric->unit);
}

void lab_report_add_program(const struct lab_program *program, struct lab_str *out) {
    int shown = 0;
    if (!isnan(program->step))
        lab_str_printf(out, "%s %.10g", program->by_epoch ? "epoch" : "step", program->step);
    for (int i = 0; i < program->metric_count && shown < METRICS_SHOWN; i++) {
        if (is_again(program, i))
            continue;
        lab_str_add(out, out->length ? ", " : "");
        add_metric(&program->metrics[i], out);
        shown++;
    }
}

/* A metric so far, from its least to its most. */
static void add_spark(const struct lab_curve *curve, struct lab_str *out) {
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    bool over_time = !curve->stepped;
    struct lab_curve_line line = lab_curve_line(curve, over_time);
    const struct lab_curve_point *first = &line.points[0], *last = &line.points[line.count - 1];
    double from = over_time ? first->time_s : first->step,
           until = over_time ? last->time_s : last->step;
    for (int i = 0; i < SPARK_COLUMNS; i++) {
        double value =
            lab_curve_at(curve, over_time, from + (until - from) * i / (SPARK_COLUMNS - 1));
        double share = (value - curve->least) / (curve->most - curve->least);
        lab_str_add(out, isnan(share) ? " " : levels[(int)lround(7 * fmin(fmax(share, 0), 1))]);
    }
}

/* Each with its curve, on as many lines as that takes: a metric that is printed now and then, such
 * as val_loss, has none for long. */
static void draw_program(const void *state, struct lab_style style, struct lab_str *out) {
    const struct lab_program *program = state;
    LAB_AUTO(str, line);
    if (!isnan(program->step))
        lab_str_printf(&line, "  %s %.10g", program->by_epoch ? "epoch" : "step", program->step);
    for (int i = 0, shown = 0; i < program->metric_count && shown < CURVES_SHOWN; i++) {
        const struct lab_curve *curve = &program->metrics[i].curve;
        LAB_AUTO(str, piece);
        if (is_again(program, i))
            continue;
        lab_str_add(&piece, "  ");
        add_metric(&program->metrics[i], &piece);
        if (style.unicode && curve->count > 2 && curve->most > curve->least) {
            lab_str_add(&piece, " ");
            add_spark(curve, &piece);
        }
        if (line.length &&
            lab_str_columns(line.text) + lab_str_columns(piece.text) > style.columns) {
            lab_str_printf(out, "%s\n", line.text);
            lab_str_clear(&line);
        }
        lab_str_add(&line, piece.text);
        shown++;
    }
    lab_str_printf(out, "%s\n", line.text);
}

static void add_programs(struct lab_doc *doc, const struct lab_study_info *study) {
    int shown = 0;
    for (int i = 0; i < study->run_count && shown < RUNS_SHOWN; i++) {
        const struct lab_program *program =
            study->runs[i].state == LAB_RUN_RUNNING ? program_of(study, &study->runs[i]) : NULL;
        if (!program)
            continue;
        lab_doc_gap(doc);
        if (study->program_count > 1)
            lab_doc_text(doc, LAB_DOC_PLAIN, "%s:", program->name);
        lab_doc_drawing(doc, draw_program, program);
        shown++;
    }
}

static void add_running(struct lab_doc *doc, const struct lab_study_info *study, int count) {
    static const struct lab_doc_column columns[] = {{NULL, "Run"},
                                                    {NULL, "Phase"},
                                                    {NULL, "Iterations", LAB_UNIT_FIGURE},
                                                    {NULL, "Left", LAB_UNIT_FIGURE}};
    int shown = 0;
    if (count == 0 || !study->running)
        return;
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_run **runs = lab_arena_alloc(arena, (size_t)study->run_count, sizeof *runs);
    for (int i = 0; i < study->run_count; i++)
        runs[i] = &study->runs[i];
    struct study_axes axes = study_axes_make(runs, study->run_count, arena);
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, 4);
    for (int i = 0; i < study->run_count && shown < RUNS_SHOWN; i++) {
        LAB_AUTO(str, name);
        if (study->runs[i].state != LAB_RUN_RUNNING)
            continue;
        study_axes_add_name(&axes, i, &name);
        add_run(doc, name.text, &study->runs[i], progress_of(study, &study->runs[i]));
        shown++;
    }
    if (count > shown)
        lab_doc_text(doc, LAB_DOC_PLAIN, "… and %d more", count - shown);
    add_programs(doc, study);
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
        lab_str_printf(out, ", %d run%s of it estimated from the others", study->left_unknown,
                       study_plural(study->left_unknown));
}

static void draw_bar(const void *state, struct lab_style style, struct lab_str *out) {
    double fraction = *(const double *)state;
    enum { INDENT = 2, SHARE = 6 };
    int columns = style.columns - INDENT - SHARE;
    lab_str_add(out, "  ");
    study_add_bar(fraction, columns < BAR_COLUMNS ? columns : BAR_COLUMNS, style.unicode, out);
    lab_str_printf(out, " %.0f%%\n", floor(100 * fraction));
}

void lab_report_add_status(struct lab_doc *doc, const struct lab_study_info *study) {
    struct study_digest digest;
    study_digest_init(&digest, study);
    int left = digest.state_counts[LAB_RUN_PLANNED] + digest.state_counts[LAB_RUN_RUNNING];
    double *fraction = lab_arena_alloc(lab_doc_arena(doc), 1, sizeof *fraction);
    LAB_AUTO(str, counts);
    study_add_counts(study, digest.state_counts, digest.invalid, &counts);
    if (left && !isnan(study->left_s)) {
        lab_str_add(&counts, "; ");
        add_left(study, &counts);
    }
    *fraction = fraction_of(&digest);
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s%s: %s.", lab_study_info_title(study),
                 study->simulated ? " (simulated)" : "", counts.text);
    lab_doc_gap(doc);
    lab_doc_drawing(doc, draw_bar, fraction);
    add_running(doc, study, digest.state_counts[LAB_RUN_RUNNING]);
    lab_doc_gap(doc);
    study_add_failures(doc, &digest);
    lab_doc_gap(doc);
    if (study->running)
        lab_doc_line(doc, "Running", "%s", study->holder ? study->holder : "");
    lab_doc_line(doc, "Folder", "%s", study->folder);
    study_add_command(doc, &digest, NULL);
    study_digest_release(&digest);
}

/* --- all studies --- */

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

/* Folders are there to be copied, so they are never cut. A folder says of itself which study it is
 * and when it began, so those go first; where that isn't enough, it gets a line of its own. */
void lab_report_add_studies(struct lab_doc *doc, const struct lab_study_info *studies, int count) {
    static const struct lab_doc_column columns[] = {{NULL, "Study", .yields = 1},
                                                    {NULL, "Started", .yields = 1},
                                                    {NULL, "Runs", LAB_UNIT_FIGURE},
                                                    {NULL, "State"},
                                                    {NULL, "Folder", .below = true}};
    if (count == 0)
        lab_doc_text(doc, LAB_DOC_WHOLE, "No studies yet: `gpulab run` lists what can be run.");
    else
        lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < count; i++) {
        int counts[LAB_RUN_STATE_COUNT], total = 0;
        LAB_AUTO(str, started);
        LAB_AUTO(str, state);
        count_states(&studies[i], counts);
        for (int k = 0; k < LAB_RUN_STATE_COUNT; k++)
            total += counts[k];
        lab_str_add_clock(&started, studies[i].created_wall_ns, LAB_STR_DATE);
        add_state(&studies[i], counts, &state);
        lab_doc_cell(doc, "%s", lab_study_info_title(&studies[i]));
        lab_doc_cell(doc, "%s", started.text);
        lab_doc_cell(doc, "%d/%d", counts[LAB_RUN_DONE] + counts[LAB_RUN_FAILED], total);
        lab_doc_cell(doc, "%s", state.text);
        lab_doc_cell(doc, "%s", studies[i].folder);
    }
}
