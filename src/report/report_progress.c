/*
 * report_progress.c: lines stay, the bar is drawn over itself. A run counts as done only after its
 * result is on the disk: whoever has read it will find it, whatever happens next.
 */
#include "report/report_progress.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/tty/console.h"

#include <math.h>
#include <string.h>

#define REDRAW_NS      (100 * LAB_NS_PER_MS)
#define ESTIMATE_NS    LAB_NS_PER_S
#define ESTIMATE_SHARE 50
#define NS_TO_S(time)  ((double)(time) / (double)LAB_NS_PER_S)

void lab_report_progress_start(struct lab_report_progress *view, struct lab_run *runs, int count) {
    view->runs = runs;
    view->run_count = count;
    view->start_ns = lab_clock_now(lab_clock_system());
    view->estimate.left_s = NAN;
    view->active = lab_arena_alloc(view->arena, (size_t)view->max_workers, sizeof *view->active);
    const struct lab_run **all = lab_arena_alloc(view->arena, (size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i] = &runs[i];
        view->repeated |= runs[i].repeat > 0;
    }
    view->axes = study_axes_make(all, count, view->arena);
    for (int i = 0; i < count; i++) {
        view->done += runs[i].state == LAB_RUN_DONE;
        if (runs[i].state != LAB_RUN_DONE)
            runs[i].state = LAB_RUN_PLANNED; /* what failed is done again */
        if (view->history && !view->simulated)
            lab_history_add(view->history, &runs[i]);
    }
}

static struct lab_report_progress_run *find_active(struct lab_report_progress *view,
                                                   const struct lab_runner_item *item) {
    for (int i = 0; i < view->active_count; i++)
        if (view->active[i].item == item)
            return &view->active[i];
    return NULL;
}

static int find_run(const struct lab_report_progress *view, int64_t number) {
    for (int i = 0; i < view->run_count; i++)
        if (view->runs[i].number == number)
            return i;
    return -1;
}

/* --- lines --- */

static void add_name(const struct lab_report_progress *view, int index, struct lab_str *out) {
    if (index < 0)
        return;
    study_axes_add_name(&view->axes, index, out);
    if (view->repeated)
        lab_str_printf(out, ", run %d", view->runs[index].repeat + 1);
}

double lab_report_progress_left_s(const struct lab_report_progress *view) {
    double elapsed_s = NS_TO_S(view->ended_ns - view->begun_ns) * view->max_workers;
    bool paced = view->ended >= view->max_workers && view->busy_s > 0;
    return view->estimate.left_s * (paced ? fmax(1, elapsed_s / view->busy_s) : 1) + view->report_s;
}

static void say_left(const struct lab_report_progress *view, struct lab_str *out) {
    if (isfinite(lab_report_progress_left_s(view)) && view->done + view->failed < view->run_count) {
        lab_str_add(out, ", about ");
        lab_str_add_duration(out, lab_report_progress_left_s(view), LAB_DURATION_ROUNDED);
        lab_str_add(out, " left");
    }
}

/* What was planned is asked: an outcome has what became of it alone. */
static void say_hint(const struct lab_runner_event *event) {
    const struct lab_value *planned = event->item ? event->item->planned->options : NULL;
    LAB_AUTO(str, hint);
    LAB_AUTO(str, options);
    if (planned)
        lab_json_write(planned, 0, &options);
    if (lab_report_hint(event->outcome->hint, planned ? options.text : NULL, event->outcome->error,
                        &hint))
        lab_console_say("    %s", hint.text);
}

static void say_end(const struct lab_report_progress *view, const char *name,
                    const struct lab_runner_event *event) {
    LAB_AUTO(str, line);
    const struct lab_run *run = event->outcome;
    lab_str_printf(&line, "[%d/%d] %s: ", view->done + view->failed, view->run_count, name);
    if (event->kind == LAB_RUNNER_FAILED)
        lab_str_printf(&line, "failed: %s", run->error);
    else
        lab_report_rate(run, &line);
    if (event->kind == LAB_RUNNER_DONE && !run->valid)
        lab_str_add(&line, ", not valid");
    lab_str_add(&line, event->kind == LAB_RUNNER_FAILED ? " (after " : " (");
    lab_str_add_time(&line, 1e-9 * (double)(run->end_ns - run->start_ns));
    lab_str_add(&line, ")");
    say_left(view, &line);
    lab_console_say("%s", line.text);
    if (event->kind == LAB_RUNNER_FAILED)
        say_hint(event);
}

static void say(const struct lab_report_progress *view, const struct lab_runner_event *event) {
    LAB_AUTO(str, name);
    bool wrong = event->kind == LAB_RUNNER_FAILED ||
                 (event->kind == LAB_RUNNER_DONE && !event->outcome->valid);
    const struct lab_plan_run *run = event->item ? event->item->planned : NULL;
    bool spread = event->item && run->slot_count > 0;
    if (event->item)
        add_name(view, find_run(view, event->item->number), &name);
    if (wrong || (event->kind == LAB_RUNNER_DONE && view->each))
        say_end(view, name.text, event);
    else if (event->kind == LAB_RUNNER_RETRY)
        lab_console_say("%s: attempt %d failed: %s; trying again", name.text, event->attempt,
                        event->text);
    else if (event->kind == LAB_RUNNER_WARNING && view->each)
        lab_console_say("%s: %s", name.text, event->text);
    else if (event->kind == LAB_RUNNER_STARTED && view->each)
        /* a log shows what a run that never ends was */
        lab_console_say("[%d/%d] %s begins%s%s", view->done + view->failed + view->active_count,
                        view->run_count, name.text, spread ? " on " : "",
                        spread ? run->ranks[0].device : "");
}

/* --- state --- */

static void end_run(struct lab_report_progress *view, const struct lab_runner_event *event) {
    struct lab_report_progress_run *active = find_active(view, event->item);
    if (!active)
        return;
    struct lab_run *run = &view->runs[active->index];
    int64_t begun_ns = run->start_ns;
    run->state = event->outcome->state;
    run->start_ns = event->outcome->start_ns;
    run->end_ns = event->outcome->end_ns;
    view->ended_ns = lab_clock_now(lab_clock_system());
    if (view->simulated) {
        run->start_ns = begun_ns;
        run->end_ns = view->ended_ns;
    }
    view->ended++;
    view->busy_s += NS_TO_S(run->end_ns - run->start_ns);
    view->done += event->kind == LAB_RUNNER_DONE;
    view->failed += event->kind == LAB_RUNNER_FAILED;
    if (view->history) {
        struct lab_run timed = *run;
        timed.result = view->simulated ? NULL : event->outcome->result;
        lab_history_add(view->history, &timed);
    }
    run->state = LAB_RUN_DONE; /* what failed isn't tried again before the next command */
    *active = view->active[--view->active_count];
}

static void begin_run(struct lab_report_progress *view, const struct lab_runner_event *event) {
    struct lab_report_progress_run *active = find_active(view, event->item);
    int index = active ? active->index : find_run(view, event->item->number);
    if (index < 0 || (!active && view->active_count == view->max_workers))
        return;
    active = active ? active : &view->active[view->active_count++];
    *active =
        (struct lab_report_progress_run){.item = event->item, .index = index, .phase = "starting"};
    view->runs[index].state = LAB_RUN_RUNNING;
    view->runs[index].start_ns = lab_clock_now(lab_clock_system());
    view->runs[index].end_ns = 0;
    view->begun_ns = view->begun_ns ? view->begun_ns : view->runs[index].start_ns;
}

/* The phases are few; those that are unknown here share one name. */
static const char *phase_name(const char *text) {
    static const char *const known[] = {"opening",   "tuning",  "verifying", "warm-up",
                                        "measuring", "probing", "tracing",   "waiting for its gang",
                                        NULL};
    int found = lab_str_find(text, known);
    return found < 0 ? "working" : known[found];
}

static void estimate(struct lab_report_progress *view, int64_t now_ns) {
    struct lab_run_progress *progress =
        lab_mem_alloc((size_t)view->active_count + 1, sizeof *progress);
    for (int i = 0; i < view->active_count; i++) {
        const struct lab_report_progress_run *active = &view->active[i];
        progress[i] = (struct lab_run_progress){.run = active->item->number,
                                                .phase = active->phase,
                                                .done = active->done,
                                                .total = active->total,
                                                .time_ns = now_ns};
    }
    view->estimate = lab_history_estimate(view->history, view->runs, view->run_count, progress,
                                          view->active_count, now_ns, view->max_workers);
    lab_mem_free(progress);
}

/* It looks at every run, so it is made seldom enough to cost next to nothing: after a run has ended
 * if it is cheap, else every second or less often. */
static void estimate_if_due(struct lab_report_progress *view, int64_t now_ns, bool run_ended) {
    int64_t pause_ns = (run_ended ? 0 : ESTIMATE_NS) + ESTIMATE_SHARE * view->estimate_cost_ns;
    if (!view->history || now_ns - view->estimate_ns < pause_ns)
        return;
    estimate(view, now_ns);
    view->estimate_ns = now_ns;
    view->estimate_cost_ns = lab_clock_now(lab_clock_system()) - now_ns;
}

/* The event is about a run. */
static void take_event(struct lab_report_progress *view, const struct lab_runner_event *event) {
    struct lab_report_progress_run *active = find_active(view, event->item);
    if (event->kind == LAB_RUNNER_STARTED) {
        begin_run(view, event);
    } else if (event->kind == LAB_RUNNER_DONE || event->kind == LAB_RUNNER_FAILED) {
        end_run(view, event);
        estimate_if_due(view, lab_clock_now(lab_clock_system()), true);
    } else if (event->kind == LAB_RUNNER_PHASE && active) {
        active->phase = phase_name(event->text);
        active->done = active->total = 0;
    } else if (event->kind == LAB_RUNNER_PROGRESS && active) {
        active->done = event->done;
        active->total = event->total;
    }
}

void lab_report_progress_event(struct lab_report_progress *view,
                               const struct lab_runner_event *event) {
    if (event->item)
        take_event(view, event);
    if (view->lines)
        say(view, event);
    lab_report_progress_tick(view);
}

/* --- the bar --- */

static double fraction(const struct lab_report_progress *view) {
    double done = view->done + view->failed;
    for (int i = 0; view->active && i < view->active_count; i++)
        if (view->active[i].total > 0)
            done += (double)view->active[i].done / (double)view->active[i].total;
    return view->run_count ? fmin(done / view->run_count, 1) : 1;
}

void lab_report_progress_tick(struct lab_report_progress *view) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    if (!view->bar || now_ns - view->drawn_ns < REDRAW_NS)
        return;
    estimate_if_due(view, now_ns, false);
    view->drawn_ns = now_ns;
    LAB_AUTO(str, name);
    const struct lab_report_progress_run *one = view->active_count == 1 ? &view->active[0] : NULL;
    if (one)
        add_name(view, one->index, &name);
    else if (view->active_count)
        lab_str_printf(&name, "%d runs", view->active_count);
    struct lab_report_bar bar = {
        .done = view->done + view->failed,
        .failed = view->failed,
        .total = view->run_count,
        .fraction = fraction(view),
        .run = name.text,
        .phase = one ? one->phase : "",
        .iterations = one ? one->done : 0,
        .iteration_total = one ? one->total : 0,
        .elapsed_s = 1e-9 * (double)(now_ns - view->start_ns),
        .left_s = lab_report_progress_left_s(view),
    };
    LAB_AUTO(str, line);
    lab_report_bar(&bar, view->style, &line);
    lab_console_status_line(line.text);
}

void lab_report_progress_end(struct lab_report_progress *view) {
    if (view->bar)
        lab_console_status_line(NULL);
    view->bar = false;
}
