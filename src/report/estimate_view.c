/* estimate_view.c: estimates of studies and plans from history and progress. */
#include "report/estimate_view.h"

#include "base/clock.h"
#include "run/estimate/plan_estimate.h"
#include "run/plan_record.h"
#include "store/recording/recording.h"

#include <math.h>

static const char *basis_name(enum lab_history_basis basis) {
    switch (basis) {
    case LAB_HISTORY_NONE:
        break;
    case LAB_HISTORY_SAME:
        return "same run";
    case LAB_HISTORY_SCALED:
        return "scaled";
    case LAB_HISTORY_WORK:
        return "work";
    case LAB_HISTORY_SIMILAR:
        return "similar";
    }
    return "unknown";
}

/* --- a study on disk --- */

static const struct lab_run_progress *find_progress(const struct lab_study_info *study,
                                                    int64_t run) {
    for (int i = 0; i < study->progress_count; i++)
        if (study->progress[i].run == run)
            return &study->progress[i];
    return NULL;
}

/* Time left of one run, by the study's rule, so that the two agree. */
static double left_s(const struct lab_history *history, const struct lab_run *run,
                     const struct lab_run_progress *progress, int64_t now_ns) {
    return lab_history_estimate(history, run, 1, progress, progress ? 1 : 0, now_ns, 1).left_s;
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void fill_running(struct lab_report_estimate_run *item, const struct lab_run *run,
                         const struct lab_study_info *study, const struct lab_history *history) {
    const struct lab_run_progress *progress = find_progress(study, run->number);
    int64_t now_ns = lab_clock_now(lab_clock_system());
    item->state = progress && *progress->phase ? progress->phase : "running";
    item->taken_s = (double)(lab_clock_wall_ns() - run->start_wall_ns) / (double)LAB_NS_PER_S;
    item->left_s = left_s(history, run, progress, now_ns);
    if (progress && progress->total) {
        item->done = progress->done;
        item->total = progress->total;
    }
    enum lab_history_basis basis;
    lab_history_expect(history, run, &basis);
    /* whether its progress was used is seen from what it changes */
    bool by_progress = !same(item->left_s, left_s(history, run, NULL, now_ns));
    item->basis = by_progress ? "progress" : basis_name(basis);
}

/* A run that time has still to be spent on from its beginning. */
static void fill_waiting(struct lab_report_estimate_run *item, const struct lab_run *run,
                         const struct lab_history *history) {
    enum lab_history_basis basis;
    item->left_s = lab_history_expect(history, run, &basis);
    item->basis = basis_name(basis);
}

static double taken_s(const struct lab_run *run) {
    return (double)(run->end_ns - run->start_ns) / (double)LAB_NS_PER_S;
}

static struct lab_report_estimate_run study_run(const struct lab_study_view *view,
                                                const struct lab_run *run,
                                                const struct lab_history *history) {
    const struct lab_study_info *study = &view->report;
    struct lab_report_estimate_run item = {.id = run->id,
                                           .repeat = run->repeat,
                                           .state = lab_run_state_name(run->state),
                                           .total = run->iterations,
                                           .taken_s = NAN,
                                           .basis = ""};
    switch (run->state) {
    case LAB_RUN_DONE:
        item.ended = true;
        item.done = run->iterations;
        item.taken_s = taken_s(run);
        break;
    case LAB_RUN_FAILED:
        item.taken_s = taken_s(run);
        /* what failed under an earlier runner is tried again by the next one */
        item.ended = study->running && run->start_wall_ns >= view->holder.since_wall_ns;
        if (!item.ended)
            fill_waiting(&item, run, history);
        break;
    case LAB_RUN_RUNNING:
        if (study->running) {
            fill_running(&item, run, study, history);
        } else {
            item.state = "interrupted";
            fill_waiting(&item, run, history);
        }
        break;
    case LAB_RUN_PLANNED:
    case LAB_RUN_STATE_COUNT:
        fill_waiting(&item, run, history);
        break;
    }
    return item;
}

/* The last value of a column, and the highest. */
static bool find_memory(const struct lab_track *track, enum lab_metric_id metric, double *ret_last,
                        double *ret_peak) {
    int column = lab_entity_column(&track->entity, metric, -1);
    bool found = false;
    for (size_t i = 0; column >= 0 && track->values[column] && i < track->count; i++) {
        if (!track->valid[column][i])
            continue;
        *ret_last = (double)track->values[column][i] * lab_metric(metric)->scale;
        *ret_peak = found ? fmax(*ret_peak, *ret_last) : *ret_last;
        found = true;
    }
    return found;
}

int lab_estimate_memory(const struct lab_study_file *file,
                        struct lab_report_estimate_memory **ret_items) {
    static const enum lab_metric_id metrics[] = {LAB_METRIC_MEMORY_USED, LAB_METRIC_MEMORY_TOTAL,
                                                 LAB_METRIC_HOST_USED, LAB_METRIC_HOST_TOTAL};
    const struct lab_recording_query query = {.metrics = metrics,
                                              .metric_count = sizeof metrics / sizeof *metrics,
                                              .without_processes = true};
    struct lab_arena *arena = file->arena;
    struct lab_recording recording;
    int count = 0;
    if (lab_recording_read_store(file->store, &query, arena, &recording, NULL) < 0)
        return 0;
    *ret_items = lab_arena_alloc(arena, (size_t)recording.track_count + 1, sizeof **ret_items);
    for (int i = 0; i < recording.track_count; i++) {
        const struct lab_track *track = &recording.tracks[i];
        bool gpu = track->entity.kind == LAB_ENTITY_GPU;
        struct lab_report_estimate_memory *item = &(*ret_items)[count];
        double most;
        if ((gpu || track->entity.kind == LAB_ENTITY_MEMORY) &&
            find_memory(track, gpu ? LAB_METRIC_MEMORY_USED : LAB_METRIC_HOST_USED,
                        &item->used_bytes, &item->peak_bytes) &&
            find_memory(track, gpu ? LAB_METRIC_MEMORY_TOTAL : LAB_METRIC_HOST_TOTAL,
                        &item->total_bytes, &most)) {
            item->device =
                gpu ? lab_arena_printf(arena, "GPU %d", track->entity.index) : "the host";
            item->simulated = track->entity.simulated;
            count++;
        }
    }
    return count;
}

/* Simulated runs have no real times: what has passed since its runner began; 0 = none runs. */
static double simulated_s(const struct lab_study_view *view) {
    return view->report.running
               ? (double)(lab_clock_wall_ns() - view->holder.since_wall_ns) / (double)LAB_NS_PER_S
               : 0;
}

struct lab_report_estimate lab_estimate_of_study(const struct lab_study_view *view,
                                                 const struct lab_history *history,
                                                 struct lab_arena *arena) {
    const struct lab_study_info *study = &view->report;
    struct lab_report_estimate_run *runs =
        lab_arena_alloc(arena, (size_t)study->run_count + 1, sizeof *runs);
    const struct lab_run **all = lab_arena_alloc(arena, (size_t)study->run_count + 1, sizeof *all);
    int open = 0;
    for (int i = 0; i < study->run_count; i++) {
        all[i] = &study->runs[i];
        runs[i] = study_run(view, &study->runs[i], history);
        open += !runs[i].ended;
    }
    for (int i = 0; study->simulated && i < study->run_count; i++) { /* not in simulated seconds */
        runs[i].taken_s = NAN;
        runs[i].left_s = runs[i].ended ? NAN : view->estimate.left_s / open;
        runs[i].basis = runs[i].ended ? "" : "pace";
    }
    bool unfinished = view->counts[LAB_RUN_PLANNED] || view->counts[LAB_RUN_RUNNING];
    return (struct lab_report_estimate){
        .study = study->option,
        .folder = study->folder,
        .state = study->running ? "running"
                 : unfinished   ? "interrupted"
                                : "ended",
        .running = study->running,
        .simulated = study->simulated,
        .holder = study->holder,
        .command = study->command,
        .runs = runs,
        .run_count = study->run_count,
        .axes = study_axes_make(all, study->run_count, arena),
        .done = view->counts[LAB_RUN_DONE],
        .failed = view->counts[LAB_RUN_FAILED],
        .taken_s = study->simulated ? simulated_s(view) : view->estimate.elapsed_s,
        .left_s = view->estimate.left_s,
        .unknown = view->estimate.unknown,
        .guessed = view->estimate.guessed,
        .most_s = NAN,
        .now_wall_ns = lab_clock_wall_ns(),
    };
}

/* --- a plan --- */

struct lab_report_estimate lab_estimate_of_plan(const struct lab_plan *plan,
                                                const struct lab_history *history,
                                                struct lab_arena *arena) {
    struct lab_report_estimate_run *runs =
        lab_arena_alloc(arena, (size_t)plan->run_count + 1, sizeof *runs);
    struct lab_run *records = lab_run_plan_records(plan, arena);
    const struct lab_run **all = lab_arena_alloc(arena, (size_t)plan->run_count + 1, sizeof *all);
    for (int i = 0; i < plan->run_count; i++) {
        all[i] = &records[i];
        enum lab_history_basis basis;
        double expected_s = lab_run_plan_estimate_run(plan, all[i], history, &basis);
        bool by_duration = basis == LAB_HISTORY_NONE && !isnan(expected_s);
        runs[i] = (struct lab_report_estimate_run){
            .id = all[i]->id,
            .repeat = all[i]->repeat,
            .state = "planned",
            .total = all[i]->iterations,
            .taken_s = NAN,
            .left_s = expected_s,
            .basis = by_duration ? "duration" : basis_name(basis),
        };
    }
    LAB_AUTO(str, counts);
    lab_report_add_counts(plan, &counts);
    struct lab_plan_estimate estimate = lab_run_plan_estimate(plan, history);
    return (struct lab_report_estimate){
        .study = plan->option,
        .simulated = lab_run_plan_is_simulated(plan),
        .holder = "",
        .command = "",
        .runs = runs,
        .run_count = plan->run_count,
        .axes = study_axes_make(all, plan->run_count, arena),
        .counts = lab_arena_strdup(arena, counts.text),
        .point_count = plan->point_count,
        .repeat = plan->repeat,
        .left_s = estimate.expected_s,
        .unknown = estimate.unknown,
        .guessed = estimate.guessed,
        .most_s = estimate.most_s,
        .disk_bytes = estimate.disk_bytes,
        .now_wall_ns = lab_clock_wall_ns(),
    };
}
