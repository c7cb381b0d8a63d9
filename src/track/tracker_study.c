/*
 * tracker_study.c: a study as a whole, once it has ended: a run named "study" with mean and spread
 * of each point over its repeats, and what the analyses found. Trackers know nothing above a run.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "load/study_view.h"
#include "model/claim.h"
#include "report/report_build.h"
#include "stats/stats.h"
#include "track/tracker_about.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ANALYSES_NS  (20 * LAB_NS_PER_S) /* what isn't done by then is left out */
#define METRICS_MOST 50                  /* of a point, whose mean is given */

/* Runs of one point that may be used; they are marked as taken. */
static int take_point(const struct lab_study_file *file, int first, bool *taken,
                      const struct lab_run **runs, struct lab_arena *arena) {
    const char *point = lab_study_file_point(&file->runs[first], arena);
    int count = 0;
    for (int i = first; i < file->run_count; i++) {
        const struct lab_run *run = &file->runs[i];
        if (taken[i] || strcmp(lab_study_file_point(run, arena), point) != 0)
            continue;
        taken[i] = true;
        if (run->state == LAB_RUN_DONE && run->valid)
            runs[count++] = run;
    }
    return count;
}

/* What is made of a study's points: values by name, and a table. */
struct summary {
    struct lab_study_file *file;
    const struct lab_track_run *about;
    struct lab_value *map;
    struct lab_str *text;
    struct lab_arena *arena;
};

/* Of each value a run has one; what isn't finite doesn't count. */
static void add_spread(const struct summary *summary, const char *point, const char *name,
                       const char *unit, const double *values, int run_count) {
    struct lab_arena *arena = summary->arena;
    const char *key = lab_arena_printf(arena, "%s.%s", point, name), *spread = "";
    double *finite = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *finite);
    size_t count = 0;
    for (int i = 0; i < run_count; i++)
        if (isfinite(values[i]))
            finite[count++] = values[i];
    if (count == 0)
        return;
    double mean = lab_stats_mean(finite, count), deviation = lab_stats_stddev(finite, count);
    lab_value_set_float(arena, summary->map, lab_arena_printf(arena, "%s_mean", key), mean);
    if (count > 1) {
        lab_value_set_float(arena, summary->map, lab_arena_printf(arena, "%s_sd", key), deviation);
        spread = lab_arena_printf(arena, "%.3g", deviation);
    }
    lab_value_set_int(arena, summary->map, lab_arena_printf(arena, "%s_runs", key), (int)count);
    lab_str_printf(summary->text, "| %s | %s | %s | %.6g | %s | %d |\n", point, name, unit, mean,
                   spread, (int)count);
}

/* The last value of a run, of all ranks that reported it the mean; NaN = it has none. */
static double find_last(const struct lab_study_metric *metrics, int count, const char *name) {
    double sum = 0;
    int ranks = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(metrics[i].name, name) == 0) {
            sum += metrics[i].value;
            ranks++;
        }
    return ranks ? sum / ranks : (double)NAN;
}

/* Read with curves, as the analyses do next: of runs that are done they are kept. */
static void add_metrics(const struct summary *summary, const char *point,
                        const struct lab_run *const *runs, int run_count) {
    struct lab_arena *arena = summary->arena;
    struct lab_study_metric **all = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *all);
    int *counts = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *counts);
    double *values = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *values);
    const char *names[METRICS_MOST + 1] = {0};
    int name_count = 0;
    for (int r = 0; r < run_count; r++) {
        if (lab_study_file_metrics(summary->file, runs[r], true, &all[r], &counts[r], NULL) < 0)
            counts[r] = 0;
        for (int i = 0; i < counts[r] && name_count < METRICS_MOST; i++)
            if (lab_str_find(all[r][i].name, names) < 0)
                names[name_count++] = all[r][i].name;
    }
    for (int n = 0; n < name_count; n++) {
        for (int r = 0; r < run_count; r++)
            values[r] = find_last(all[r], counts[r], names[n]);
        const char *name = lab_track_name(summary->about, names[n], arena);
        add_spread(summary, point, lab_str_equal(name, "rate") ? "reported_rate" : name, "", values,
                   run_count);
    }
}

static void add_points(const struct summary *summary) {
    const struct lab_study_file *file = summary->file;
    size_t room = (size_t)file->run_count + 1;
    bool *taken = lab_arena_alloc(summary->arena, room, sizeof *taken);
    const struct lab_run **runs = lab_arena_alloc(summary->arena, room, sizeof *runs);
    double *rates = lab_arena_alloc(summary->arena, room, sizeof *rates);
    lab_str_add(summary->text, "| point | value | unit | mean | standard deviation | runs |\n"
                               "|---|---|---|--:|--:|--:|\n");
    for (int i = 0; i < file->run_count; i++) {
        if (taken[i])
            continue;
        const char *point = lab_study_file_point(&file->runs[i], summary->arena);
        int count = take_point(file, i, taken, runs, summary->arena);
        for (int r = 0; r < count; r++)
            rates[r] = runs[r]->rate;
        add_spread(summary, point, "rate", file->runs[i].rate_unit, rates, count);
        if (count > 1)
            add_metrics(summary, point, runs, count);
    }
}

/* Sentences of what was found, and tags of the effects that there are. */
static const char *const *add_claims(struct lab_study_file *file, struct lab_value *summary,
                                     struct lab_str *text, struct lab_arena *arena) {
    struct lab_report_request request = {.limit_ns = ANALYSES_NS, .without_pictures = true};
    struct lab_report_made made = {0};
    struct lab_study_view view;
    const char **tags = NULL;
    int tag_count = 0, count = 0;
    LAB_ADD(tags, tag_count, arena) = file->study.option;
    if (lab_study_view_read(file, true, &view, NULL) < 0 ||
        lab_report_build_study(&view, &request, arena, &made, NULL) < 0)
        return tags;
    struct lab_claim *const *claims = lab_report_claims(&made.page, arena, &count);
    lab_str_add(text, count ? "\n" : "");
    for (int i = 0; i < count; i++) {
        const char *key = lab_arena_printf(arena, "claim.%s.%s", claims[i]->kind,
                                           lab_claim_subject(claims[i], arena));
        lab_value_set_float(arena, summary, key, claims[i]->effect);
        lab_str_printf(text, "- %s\n", lab_claim_sentence(claims[i], arena));
        if (claims[i]->verdict == LAB_CLAIM_YES && lab_str_find(claims[i]->kind, tags) < 0)
            LAB_ADD(tags, tag_count, arena) = claims[i]->kind;
    }
    return tags;
}

static int is_report_file(const struct dirent *entry) {
    static const char *const names[] = {"index.html", "report.md", "best_practices.md", NULL};
    return lab_str_ends(entry->d_name, ".png") || lab_str_find(entry->d_name, names) >= 0;
}

/* The report: its pages and pictures, as far as they were made. */
static const char *const *find_files(const char *folder, struct lab_arena *arena) {
    const char **files = NULL, *report = lab_arena_printf(arena, "%s/report", folder);
    struct dirent **entries;
    int count = 0, found = scandir(report, &entries, is_report_file, alphasort);
    for (int i = 0; i < found; i++) {
        LAB_ADD(files, count, arena) = lab_arena_printf(arena, "%s/%s", report, entries[i]->d_name);
        free(entries[i]); /* NOLINT: of scandir */
    }
    if (found >= 0)
        free(entries); /* NOLINT */
    return files;
}

static int deliver_study(struct track_sender *sender, struct lab_study_file *file,
                         struct track_position at, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    LAB_AUTO(track_out, out);
    struct lab_value *summary = lab_value_map(&arena);
    struct lab_run whole = {.id = "study",
                            .workload = "study",
                            .options = "{}",
                            .series = "[]",
                            .test = "{}",
                            .start_wall_ns = file->study.created_wall_ns,
                            .attempts = (int)at.attempt};
    struct lab_track_end end = {.wall_ns = file->study.created_wall_ns, .summary = summary};
    for (int i = 0; i < file->run_count; i++) {
        const struct lab_run *run = &file->runs[i];
        int64_t ended_ns = run->start_wall_ns + (run->end_ns - run->start_ns);
        end.wall_ns = ended_ns > end.wall_ns ? ended_ns : end.wall_ns;
    }
    struct lab_track_run about =
        track_about_run(file, &whole, sender->sent->project, sender->host, &arena);
    const char *folder = about.folder;
    struct lab_value *config = lab_value_map(&arena); /* a repeat or a device it has none */
    lab_value_set_string(&arena, config, "study", file->study.option);
    lab_value_set_string(&arena, config, "point", about.point);
    lab_value_set_string(&arena, config, "gpulab", file->study.version);
    about.config = config;
    about.whole = true;
    track_about_override(&about, sender->request, &arena);
    add_points(&(struct summary){file, &about, summary, &text, &arena});
    about.tags = add_claims(file, summary, &text, &arena);
    about.retried = false;
    about.revision = (int)at.revision;
    end.files = find_files(folder, &arena);
    end.text = text.text;
    sender->tracker->begin(&about, &out);
    sender->tracker->end(&about, &end, &out);
    if (track_deliver(sender->tracker, &about, sender->tracker->place(&about, &arena), at.batch,
                      &out, err) < 0)
        return lab_err_context(err, "%s: the study's summary", sender->tracker->name);
    at.batch++;
    at.bytes = (int64_t)out.bytes.length;
    at.ended = 1;
    return track_journal_note(&sender->journal, 0, &at, false, err);
}

int track_send_whole(struct track_sender *sender, struct lab_study_file *file,
                     struct lab_err *err) {
    struct track_position at = sender->journal.items[0];
    int64_t ended = 0;
    for (int i = 0; i < file->run_count; i++)
        ended += file->runs[i].state == LAB_RUN_DONE || file->runs[i].state == LAB_RUN_FAILED;
    if (ended == 0 || sender->sent->running || sender->sent->unsent ||
        (at.attempt == ended && !sender->sent->changed && !sender->sent->gone))
        return 0;
    at.revision += at.attempt == ended;
    at.attempt = ended; /* more runs make another summary, in the first one's stead */
    int result = sender->request->look ? 0 : deliver_study(sender, file, at, err);
    sender->sent->unsent += result < 0 || sender->request->look;
    return result;
}
