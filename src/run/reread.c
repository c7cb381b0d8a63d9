/*
 * reread.c: see reread.h. Logs are read in one pass and their values go straight into the
 * transaction: what is kept here is a summary of each metric.
 */
#include "run/reread.h"

#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/walk.h"
#include "base/str.h"
#include "model/result.h"
#include "run/folder_internal.h"
#include "run/study.h"
#include "store/study/results.h"
#include "workload/command/program_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUMMARIES_MOST 256 /* of a run */
#define BATCH_MOST     1024

struct rereading {
    const struct lab_reread_request *request;
    struct lab_arena *arena;
    struct lab_store *store;
    struct lab_reread reread;
    const struct lab_run *run;
    struct lab_reread_run *now;  /* of `run` */
    int first_metric, at_metric; /* of its summaries, and the one that was met last */
    int rank;                    /* of lines without a label */
    uint64_t matched;            /* of the patterns asked for */
    struct lab_err *err;
};

/* --- values --- */

static bool is_metric(const struct lab_reread_metric *metric,
                      const struct lab_reported_metric *item, int rank) {
    return metric->rank == rank && strcmp(metric->name, item->name) == 0;
}

/* Metrics come in the same order again and again: the search begins behind the last one. */
static struct lab_reread_metric *find_metric(struct rereading *all,
                                             const struct lab_reported_metric *item, int rank) {
    struct lab_reread *reread = &all->reread;
    int count = reread->metric_count - all->first_metric;
    for (int i = 1; i <= count; i++) {
        int at = all->first_metric + (all->at_metric - all->first_metric + i) % count;
        if (!is_metric(&reread->metrics[at], item, rank))
            continue;
        all->at_metric = at;
        return &reread->metrics[at];
    }
    if (count >= SUMMARIES_MOST)
        return NULL;
    all->at_metric = reread->metric_count;
    LAB_ADD(reread->metrics, reread->metric_count, all->arena) =
        (struct lab_reread_metric){.run = all->run->id,
                                   .name = lab_arena_strdup(all->arena, item->name),
                                   .unit = lab_arena_strdup(all->arena, item->unit),
                                   .rank = rank};
    return &reread->metrics[all->at_metric];
}

static int on_metrics(void *opaque, const struct lab_reported_metric *items, size_t count) {
    struct rereading *all = opaque;
    struct lab_store_metric rows[BATCH_MOST];
    int64_t room = LAB_REREAD_VALUES_MOST - all->now->values;
    all->now->capped |= (int64_t)count > room;
    count = (int64_t)count < room ? count : (size_t)room;
    all->now->values += (int64_t)count;
    for (size_t done = 0, part; done < count; done += part) {
        part = count - done < BATCH_MOST ? count - done : BATCH_MOST;
        for (size_t i = 0; i < part; i++) {
            const struct lab_reported_metric *item = &items[done + i];
            int rank = item->rank < 0 ? all->rank : item->rank;
            struct lab_reread_metric *metric = find_metric(all, item, rank);
            if (metric) {
                metric->values++;
                metric->last = item->value;
                metric->step = item->step;
            }
            rows[i] = (struct lab_store_metric){item->name,  item->unit,    rank,
                                                item->value, item->time_ns, item->step};
        }
        if (lab_store_reread_add(all->store, rows, part, all->err) < 0)
            return -1;
    }
    return 0;
}

/* --- logs --- */

struct log_file {
    const char *path;
    int rank; /* -1 = of the whole run */
};

/* "<id>.stdout" and "<id>.rank1.stdout"; the first is rank 0's where others have their own, and
 * where a launcher starts them. */
static int find_logs(const struct rereading *all, const char *const *names,
                     struct log_file **ret_files) {
    static const char *const endings[] = {".stdout", ".stderr"};
    struct log_file *files = NULL;
    int count = 0;
    const struct lab_value *test = lab_result_json(all->run->test, all->arena);
    bool others = all->run->rank_count == 1 ||
                  lab_str_equal(lab_value_get_text(test, "processes", ""), "launcher");
    size_t length = strlen(all->run->id);
    for (int pass = 0; pass < 2; pass++)
        for (int e = 0; e < 2; e++)
            for (int i = 0; names && names[i]; i++) {
                const char *rest = names[i] + length;
                char *end = NULL;
                if (strncmp(names[i], all->run->id, length) != 0)
                    continue;
                bool ranked = lab_str_starts(rest, ".rank");
                long rank = ranked ? strtol(rest + strlen(".rank"), &end, 10) : 0;
                if (strcmp(ranked ? end : rest, endings[e]) != 0)
                    continue;
                others |= ranked;
                if (pass == 1)
                    LAB_ADD(files, count, all->arena) = (struct log_file){
                        lab_arena_printf(all->arena, "%s/logs/%s", all->request->folder, names[i]),
                        ranked || others ? (int)rank : -1};
            }
    *ret_files = files;
    return count;
}

/* The run's own settings, with the patterns that were asked for. */
static const struct lab_value *settings_of(const struct rereading *all) {
    struct lab_value *settings =
        lab_value_get(lab_result_json(all->run->options, all->arena), "metrics");
    if (!settings || settings->type != LAB_VALUE_MAP)
        settings = lab_value_map(all->arena);
    if (all->request->patterns)
        lab_value_set(all->arena, settings, "patterns",
                      lab_value_strings(all->arena, all->request->patterns));
    return settings;
}

static int read_logs(struct rereading *all, const struct log_file *files, int count) {
    const struct lab_value *settings = settings_of(all);
    for (int i = 0; i < count; i++) {
        struct lab_program_log log;
        all->rank = files[i].rank;
        if (lab_program_log_read(files[i].path, settings, all->run->attempts > 1, on_metrics, all,
                                 &log, all->err) < 0)
            return -1;
        all->now->bytes += log.bytes;
        all->matched |= log.matched;
        all->now->cut |= log.cut;
        all->now->split |= log.split > 0;
        all->now->clipped |= log.clipped > 0;
    }
    return 0;
}

/* --- runs --- */

/* Of values whose log has no step: those that they had. */
static int find_steps(struct rereading *all) {
    for (int i = all->first_metric; i < all->reread.metric_count; i++) {
        struct lab_reread_metric *metric = &all->reread.metrics[i];
        if (isnan(metric->step) && lab_store_reread_step(all->store, metric->name, metric->rank,
                                                         &metric->step, all->err) < 0)
            return -1;
    }
    return 0;
}

static int reread_run(struct rereading *all, const struct lab_run *run, const char *const *names) {
    struct log_file *files;
    struct lab_reread *reread = &all->reread;
    LAB_ADD(reread->runs, reread->run_count, all->arena) = (struct lab_reread_run){.id = run->id};
    all->run = run;
    all->now = &reread->runs[reread->run_count - 1];
    all->first_metric = all->at_metric = reread->metric_count;
    int count = find_logs(all, names, &files);
    all->now->missing = count == 0;
    if (lab_store_count_metrics(all->store, run->number, &all->now->earlier, all->err) < 0)
        return -1;
    if (count == 0)
        return 0;
    return lab_store_reread_run(all->store, run->number, all->err) < 0 ||
                   read_logs(all, files, count) < 0 ||
                   lab_store_reread_end_run(all->store, run->number, !all->request->dry_run,
                                            &all->now->lost, all->err) < 0 ||
                   find_steps(all) < 0
               ? -1
               : 0;
}

static int reread_all(struct rereading *all) {
    struct lab_run *runs;
    int count;
    const char *const *names =
        lab_walk_names(lab_arena_printf(all->arena, "%s/logs", all->request->folder), all->arena);
    if (lab_store_runs(all->store, all->arena, &runs, &count, all->err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        bool ended = runs[i].state == LAB_RUN_DONE || runs[i].state == LAB_RUN_FAILED;
        if (ended && strcmp(runs[i].workload, "command") == 0 &&
            reread_run(all, &runs[i], names) < 0)
            return -1;
    }
    if (all->reread.run_count == 0)
        return lab_err_set(all->err, LAB_ERR_USER,
                           "%s has no run of a program of your own that has ended",
                           all->request->folder);
    for (int i = 0; all->request->patterns && all->request->patterns[i]; i++)
        if (!(all->matched & UINT64_C(1) << i))
            all->reread.unmatched = all->request->patterns[i];
    return 0;
}

static int64_t count_values(const struct lab_reread *reread) {
    int64_t values = 0;
    for (int i = 0; i < reread->run_count; i++)
        values += reread->runs[i].values;
    return values;
}

/* What was read before stays where less would take its place. */
static int check(const struct rereading *all) {
    const struct lab_reread *reread = &all->reread;
    if (count_values(reread) == 0)
        return lab_err_set(all->err, LAB_ERR_USER,
                           "no value was read from the logs of %d run%s: nothing was changed",
                           reread->run_count, reread->run_count == 1 ? "" : "s");
    if (reread->unmatched)
        return lab_err_set(all->err, LAB_ERR_USER,
                           "the pattern '%s' reads no line of the logs: nothing was changed",
                           reread->unmatched);
    for (int i = 0; i < reread->run_count; i++) {
        const struct lab_reread_run *run = &reread->runs[i];
        if (run->lost > 0 && !all->request->force)
            return lab_err_set(all->err, LAB_ERR_USER,
                               "%s: %s%lld of the run's %lld values would be lost: "
                               "nothing was changed; --force replaces them",
                               run->id,
                               run->cut ? "its log holds only the first part of the output, " : "",
                               (long long)run->lost, (long long)run->earlier);
    }
    return 0;
}

static int replace_all(struct rereading *all) {
    struct lab_store_study study;
    if (lab_store_study(all->store, all->arena, &study, all->err) < 0 ||
        lab_store_reread_begin(all->store, true, all->err) < 0)
        return -1;
    int result = reread_all(all);
    result = result < 0 ? result : check(all);
    lab_failpoint("before-reread-commit");
    if (lab_store_reread_end(all->store, result == 0, all->err) < 0 || result < 0)
        return -1;
    struct lab_results_metrics *metrics = lab_results_metrics_open();
    result =
        lab_study_write_results(all->store, all->request->folder, study.name, metrics, all->err);
    lab_results_metrics_close(metrics);
    return result;
}

static int try_all(struct rereading *all) {
    if (lab_store_reread_begin(all->store, false, all->err) < 0)
        return -1;
    int result = reread_all(all);
    return lab_store_reread_end(all->store, false, NULL) < 0 ? -1 : result;
}

int lab_reread(const struct lab_reread_request *request, struct lab_arena *arena,
               struct lab_reread *ret_reread, struct lab_err *err) {
    struct rereading all = {.request = request, .arena = arena, .err = err};
    if (!request->dry_run && folder_check(request->folder, err) < 0)
        return -1;
    LAB_AUTO_CLOSE int lock = request->dry_run ? -1 : folder_hold(request->folder, err);
    if (!request->dry_run && lock < 0)
        return -1;
    const char *path = lab_arena_printf(arena, "%s/" FOLDER_DATABASE, request->folder);
    if (lab_store_open(path, request->dry_run ? LAB_STORE_READ : LAB_STORE_WRITE, &all.store, err) <
        0)
        return -1;
    int result = request->dry_run ? try_all(&all) : replace_all(&all);
    lab_store_close(all.store);
    if (result == 0)
        *ret_reread = all.reread;
    return result;
}
