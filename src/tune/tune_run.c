/*
 * tune_run.c: choose, look up, lease, tune, keep. What is found out is kept as it comes, so that
 * whatever ends the program, the same command goes on from there. Looking up only reads: a cache
 * that can't be written still answers. And nothing about the cache makes a tuning fail: a result
 * that can't be kept is shown all the same.
 */
#include "tune/tune_run.h"

#include "base/json.h"
#include "base/log.h"
#include "base/tty/console.h"
#include "base/tty/interrupt.h"
#include "machine/machine.h"
#include "store/tuning/timing_file.h"

#include <math.h>
#include <string.h>

#define REDRAW_NS   (100 * LAB_NS_PER_MS)
#define WRITE_NS    (250 * LAB_NS_PER_MS)
#define BAR_COLUMNS 20
#define STOPPING    "\r\033[Kstopping after this step; Ctrl-C again ends it at once"

struct run {
    const struct lab_tune_request *request;
    struct lab_arena *arena;
    struct lab_session session;
    struct lab_tuned_key key;
    const char *name;               /* of this tuning in the cache; NULL = it has none */
    const char *path;               /* of the cache; NULL = there is no place for one */
    struct lab_tuning_cache *cache; /* to write to; NULL = it can't be */
    bool refused;                   /* it can't be written any more: said once */
    const struct lab_trial **found; /* out, and not written yet */
    int found_count;
    int64_t written_ns;
    struct lab_tune_outcome *outcome;
    int64_t drawn_ns;
    int64_t asked_ns; /* when it was looked up */
};

/* --- while it runs --- */

/* A disk takes longer for a transaction than a kernel to be verified: they are written four times a
 * second, and that much is lost if the program is killed. */
static void write_found(struct run *run, bool now) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t time_ns = lab_clock_now(lab_clock_system());
    if (!run->found_count || (!now && time_ns - run->written_ns < WRITE_NS))
        return;
    if (lab_tuning_cache_keep_all(run->cache, run->name, run->found, run->found_count, &err)) {
        run->refused = true;
        lab_log(LAB_LOG_WARNING, "results aren't stored: %s", err.text);
    }
    run->found_count = 0;
    run->written_ns = lab_clock_now(lab_clock_system());
}

static void keep(const struct lab_trial *trial, void *state) {
    struct run *run = state;
    if (!run->cache || run->refused)
        return;
    LAB_ADD(run->found, run->found_count, run->arena) = trial;
    write_found(run, false);
}

static void draw(const struct run *run, const struct lab_tune_progress *now) {
    LAB_AUTO(str, fitted);
    LAB_AUTO(str, line);
    lab_str_printf(&line, "%s: %s %d of %d ", run->request->workload->name, now->phase, now->done,
                   now->total);
    int filled = (int)(now->fraction * BAR_COLUMNS + 0.5);
    lab_str_add_repeat(&line, run->request->unicode ? "█" : "#", filled);
    lab_str_add_repeat(&line, run->request->unicode ? "░" : ".", BAR_COLUMNS - filled);
    lab_str_printf(&line, " %3.0f%%", 100 * now->fraction);
    if (isfinite(now->left_s))
        lab_str_printf(&line, "  %.0f s left", ceil(now->left_s));
    if (now->best) {
        lab_str_printf(&line, "  %s ", now->best);
        lab_str_add_time(&line, now->best_s);
    }
    if (lab_str_columns(line.text) < run->request->columns)
        lab_str_add(&fitted, line.text);
    else
        lab_text_fit(line.text, run->request->columns - 1, run->request->unicode, &fitted);
    lab_console_status_line(fitted.text);
}

static bool on_progress(const struct lab_tune_progress *now, void *state) {
    struct run *run = state;
    int64_t time_ns = lab_clock_now(lab_clock_system());
    if (run->request->shown && (!run->drawn_ns || time_ns - run->drawn_ns >= REDRAW_NS)) {
        run->drawn_ns = time_ns;
        draw(run, now);
    }
    write_found(run, false);
    return lab_interrupt_seen();
}

/* --- before and after --- */

static void note(struct run *run, const char *what, const struct lab_err *err) {
    run->outcome->note = lab_arena_printf(run->arena, "%s: %s", what, err->text);
}

static int name_it(struct run *run, struct lab_err *err) {
    const struct lab_tunable_place place = {run->session.machine, &run->session.ref};
    const struct lab_tune_request *request = run->request;
    if (lab_tuned_key(request->workload, request->config, &place, run->arena, &run->key, err))
        return -1;
    if (!run->key.text)
        return 0;
    run->name =
        lab_arena_printf(run->arena, "%s|%s|%s%s", run->key.text,
                         lab_workload_label(request->workload, request->config, run->arena),
                         lab_tune_strategies[request->strategy], request->warm ? "|warm" : "");
    run->path = lab_tuning_cache_path(run->arena);
    return 0;
}

/*
 * Whether it was tuned as is asked for now; of what was imported nobody knows. Its JSON is our own,
 * and long: parsing it would take most of a look-up's time.
 */
static bool is_alike(const struct run *run, const struct lab_tuning_entry *entry) {
    return !strstr(entry->result, run->request->warm ? "\"warm\": false" : "\"warm\": true");
}

/* What was tuned for another shape of the class may be too large for this one: then it is tuned
 * anew. */
static bool is_legal(const struct run *run, const struct lab_tuning_entry *entry) {
    const struct lab_tunable_place place = {run->session.machine, &run->session.ref};
    const struct lab_tuned_key *key = &run->key;
    struct lab_tuning tuning;
    return lab_tuning_parse(key->tunable, &place, &key->launch, entry->config, &tuning, NULL) ==
               0 &&
           lab_tuning_check(key->tunable, &place, &key->launch, &tuning, NULL) == 0;
}

static void look_up(struct run *run) {
    struct lab_tune_outcome *outcome = run->outcome;
    struct lab_tuning_cache *cache = NULL;
    struct lab_tuning_entry entry;
    struct lab_err err = LAB_ERR_INIT;
    if (!run->path || run->request->again)
        return;
    int found = lab_tuning_cache_open(run->path, false, run->arena, &cache, &outcome->note, &err)
                    ? -1
                    : lab_tuning_cache_find(cache, run->key.text, run->arena, &entry, &err);
    lab_tuning_cache_close(cache);
    if (found < 0)
        note(run, "earlier tunings can't be read", &err);
    if (found <= 0 || !is_alike(run, &entry) || !is_legal(run, &entry))
        return;
    outcome->entry = entry;
    outcome->cached = true;
    outcome->lookup_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - run->asked_ns);
}

static void open_cache(struct run *run) {
    struct lab_err err = LAB_ERR_INIT;
    if (!run->name)
        return;
    if (!run->path)
        run->outcome->note =
            "the result isn't kept: neither XDG_CACHE_HOME nor HOME names a folder";
    else if (lab_tuning_cache_open(run->path, true, run->arena, &run->cache, &run->outcome->note,
                                   &err))
        note(run, "the result isn't kept", &err);
    else if (run->request->again && lab_tuning_cache_forget(run->cache, run->name, &err))
        note(run, "the interrupted tuning can't be removed", &err);
}

/* Only a tuning that came to its end is an answer; an unfinished one goes on another time. */
static void keep_result(struct run *run) {
    struct lab_tuning_result *result = &run->outcome->result;
    const struct lab_trial *best = &result->trials[result->best];
    struct lab_err err = LAB_ERR_INIT;
    if (!run->cache || result->interrupted)
        return;
    run->outcome->entry = (struct lab_tuning_entry){
        .key = run->key.text,
        .kernel = run->key.kernel,
        .shape = run->key.shape,
        .device = run->key.device,
        .config = best->config,
        .time_s = best->median_s,
        .low_s = best->low_s,
        .high_s = best->high_s,
        .certain = result->certain,
        .tuned_wall_ns = lab_clock_wall_ns(),
        .result = lab_json_text(lab_timing_file_value(result, run->arena), run->arena),
    };
    if (lab_tuning_cache_put(run->cache, &run->outcome->entry, &err)) {
        note(run, "the result isn't kept", &err);
        return;
    }
    run->outcome->kept = true;
    if (lab_tuning_cache_forget(run->cache, run->name, &err))
        note(run, "the trials can't be removed", &err);
}

static int tune_on(struct run *run, struct lab_err *err) {
    struct lab_trial *known = NULL;
    int known_count = 0;
    struct lab_err why = LAB_ERR_INIT;
    if (run->cache && !run->request->again &&
        lab_tuning_cache_trials(run->cache, run->name, run->arena, &known, &known_count, &why))
        note(run, "the interrupted tuning can't be read", &why);
    struct lab_tune_plan plan = {
        .session = &run->session,
        .strategy = run->request->strategy,
        .budget_s = run->request->budget_s,
        .warm = run->request->warm,
        .known = known,
        .known_count = known_count,
        .keep = keep,
        .progress = on_progress,
        .state = run,
    };
    if (known_count && run->request->shown)
        lab_console_note("resuming: %d configurations are known; --again starts over", known_count);
    int result = lab_tune(&plan, run->arena, &run->outcome->result, err);
    write_found(run, true);
    if (result < 0 && err->code == LAB_ERR_INTERRUPTED && run->cache && !run->refused)
        lab_err_set(err, err->code, "%s; the same command resumes",
                    lab_arena_strdup(run->arena, err->text));
    return result;
}

/* The cache is asked again: who had the device until now may have tuned the same. */
static int tune(struct run *run, struct lab_err *err) {
    struct lab_session *session = &run->session;
    const char *kernel = session->workload->name;
    if (lab_session_lease(session, 1, lab_arena_printf(run->arena, "gpulab tune %s", kernel), err) <
        0)
        return -1;
    run->asked_ns = lab_clock_now(lab_clock_system());
    look_up(run);
    if (run->outcome->cached)
        return 0;
    open_cache(run);
    session->rank =
        (struct lab_rank){.numa_node = session->ref.node, .count = 1, .seed = run->request->seed};
    int result = lab_session_bind(session, err);
    if (result == 0)
        result = lab_session_open_device(session, err);
    if (result == 0)
        result = tune_on(run, err);
    lab_session_close(session);
    lab_console_status_line(NULL);
    if (result == 0)
        keep_result(run); /* before others have the device: they ask for it then */
    return result < 0 ? lab_err_context(err, "%s on %s", kernel, session->ref.name) : 0;
}

static int choose_and_tune(struct run *run, struct lab_err *err) {
    if (lab_session_choose(&run->session, run->request->selector, err) < 0)
        return -1;
    run->outcome->selected = run->session.devices.count;
    run->outcome->device = run->session.ref.name;
    run->asked_ns = lab_clock_now(lab_clock_system());
    if (name_it(run, err) < 0)
        return -1;
    look_up(run);
    return run->outcome->cached ? 0 : tune(run, err);
}

int lab_tune_run(const struct lab_tune_request *request, struct lab_arena *arena,
                 struct lab_tune_outcome *ret_outcome, struct lab_err *err) {
    *ret_outcome = (struct lab_tune_outcome){0};
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    struct run run = {.request = request,
                      .arena = arena,
                      .session = {.machine = machine,
                                  .workload = request->workload,
                                  .config = request->config,
                                  .arena = arena},
                      .outcome = ret_outcome};
    lab_interrupt_watch(request->shown ? STOPPING : NULL);
    int result = choose_and_tune(&run, err);
    lab_session_release(&run.session);
    lab_tuning_cache_close(run.cache);
    lab_machine_close(machine);
    return result;
}
