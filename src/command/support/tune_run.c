/*
 * support/tune_run.c: choose, look up, lease, tune, keep. What is found out is kept as it comes, so
 * that whatever ends the program, the same command goes on from there.
 */
#include "command/support/tune_run.h"

#include "base/json.h"
#include "base/log.h"
#include "command/command.h"
#include "command/support/interrupt.h"
#include "machine/machine.h"
#include "study/folder.h"

#include <math.h>

#define REDRAW_NS   (100 * LAB_NS_PER_MS)
#define BAR_COLUMNS 20
#define STOPPING    "\r\033[Kstopping after this step; Ctrl-C again ends it at once"

struct run {
    const struct lab_tune_request *request;
    struct lab_arena *arena;
    struct lab_machine *machine;
    struct lab_device_ref ref;
    struct lab_tuned_key key;
    const char *session;
    struct lab_tuning_cache *cache; /* NULL = there is no place for one */
    bool refused;                   /* it can't be written: said once */
    struct lab_tune_outcome *outcome;
    int64_t drawn_ns;
    bool waited; /* for the device: said once */
};

/* --- while it runs --- */

static void keep(const struct lab_trial *trial, void *state) {
    struct run *run = state;
    struct lab_err err = LAB_ERR_INIT;
    if (!run->cache || run->refused ||
        !lab_tuning_cache_keep(run->cache, run->session, trial, &err))
        return;
    run->refused = true;
    lab_log(LAB_LOG_WARNING, "what is found out isn't kept: %s", err.text);
}

static void draw(const struct run *run, const struct lab_tune_progress *now) {
    struct lab_str line, fitted;
    lab_str_init(&line);
    lab_str_init(&fitted);
    lab_str_printf(&line, "%s: %s %d of %d ", run->request->workload->name, now->phase, now->done,
                   now->total);
    int filled = (int)(now->fraction * BAR_COLUMNS + 0.5);
    lab_str_add_repeat(&line, run->request->unicode ? "█" : "#", filled);
    lab_str_add_repeat(&line, run->request->unicode ? "░" : ".", BAR_COLUMNS - filled);
    lab_str_printf(&line, " %3.0f %%", 100 * now->fraction);
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
    lab_command_status_line(fitted.text);
    lab_str_release(&fitted);
    lab_str_release(&line);
}

static bool on_progress(const struct lab_tune_progress *now, void *state) {
    struct run *run = state;
    int64_t time_ns = lab_clock_now(lab_clock_system());
    if (run->request->shown && (!run->drawn_ns || time_ns - run->drawn_ns >= REDRAW_NS)) {
        run->drawn_ns = time_ns;
        draw(run, now);
    }
    return lab_interrupt_seen();
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *state) {
    struct run *run = state;
    if (!run->waited) {
        struct lab_str text;
        lab_str_init(&text);
        lab_holder_describe(holder, &text);
        lab_command_note("%s is used by %s: waiting for it", device, text.text);
        lab_str_release(&text);
        run->waited = true;
    }
    return !lab_interrupt_seen();
}

/* --- before and after --- */

static int choose_device(struct run *run, struct lab_err *err) {
    struct lab_device_list list;
    if (lab_device_select(run->machine, run->request->selector, run->arena, &list, err) < 0)
        return -1;
    if (list.count == 0)
        return lab_err_set(err, LAB_ERR_USER, "--device %s names no device: see 'gpulab devices'",
                           run->request->selector);
    run->ref = list.items[0];
    run->outcome->selected = list.count;
    return 0;
}

/* Without a cache it tunes all the same. */
static void open_cache(struct run *run) {
    struct lab_err err = LAB_ERR_INIT;
    const char *path = lab_tuning_cache_path(run->arena);
    if (!path)
        run->outcome->note =
            "the result isn't kept: neither XDG_CACHE_HOME nor HOME names a folder";
    else if (lab_tuning_cache_open(path, true, run->arena, &run->cache, &run->outcome->note, &err))
        run->outcome->note = lab_arena_printf(run->arena, "the result isn't kept: %s", err.text);
}

static int look_up(struct run *run, struct lab_err *err) {
    const struct lab_tunable_place place = {run->machine, &run->ref};
    const struct lab_tune_request *request = run->request;
    if (lab_tuned_key(request->workload, request->config, &place, run->arena, &run->key, err))
        return -1;
    if (!run->key.text || !run->cache)
        return 0;
    struct lab_str label;
    lab_str_init(&label);
    if (request->workload->label)
        request->workload->label(request->config, &label);
    run->session = lab_arena_printf(run->arena, "%s|%s|%s", run->key.text, label.text,
                                    lab_tune_strategies[request->strategy]);
    lab_str_release(&label);
    if (request->again)
        return lab_tuning_cache_forget(run->cache, run->session, err);
    int found =
        lab_tuning_cache_find(run->cache, run->key.text, run->arena, &run->outcome->entry, err);
    run->outcome->cached = found == 1;
    return found < 0 ? -1 : 0;
}

/* Only a tuning that came to its end is an answer; an unfinished one goes on another time. */
static int keep_result(struct run *run, struct lab_err *err) {
    struct lab_tuning_result *result = &run->outcome->result;
    const struct lab_trial *best = &result->trials[result->best];
    if (!run->cache || result->interrupted)
        return 0;
    struct lab_str json;
    lab_str_init(&json);
    lab_json_write(lab_tune_result_value(result, run->arena), 0, &json);
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
        .result = lab_arena_strdup(run->arena, json.text),
    };
    lab_str_release(&json);
    if (lab_tuning_cache_put(run->cache, &run->outcome->entry, err) ||
        lab_tuning_cache_forget(run->cache, run->session, err))
        return -1;
    run->outcome->kept = true;
    return 0;
}

static int tune_on(struct run *run, struct lab_device *device, struct lab_err *err) {
    struct lab_trial *known = NULL;
    int known_count = 0;
    if (run->session &&
        lab_tuning_cache_trials(run->cache, run->session, run->arena, &known, &known_count, err))
        return -1;
    struct lab_tune_plan plan = {
        .workload = run->request->workload,
        .config = run->request->config,
        .rank = {.device = device,
                 .ref = &run->ref,
                 .numa_node = run->ref.node,
                 .count = 1,
                 .seed = run->request->seed},
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
        lab_command_note("going on with what is known of %d configurations; --again begins anew",
                         known_count);
    return lab_tune(&plan, run->arena, &run->outcome->result, err);
}

static int tune(struct run *run, struct lab_err *err) {
    const struct lab_workload *workload = run->request->workload;
    struct lab_lease lease = {0};
    struct lab_holder self;
    struct lab_device *device = NULL;
    lab_holder_self(lab_arena_printf(run->arena, "gpulab tune %s", workload->name), NULL, &self);
    if (lab_lease_take(&run->ref.physical, 1, &self, on_wait, run, &lease, err) < 0)
        return -1;
    int result = 0;
    if (run->ref.node >= 0)
        result = lab_bind_thread_to_node(run->machine, run->ref.node, err);
    if (result == 0)
        result = lab_device_open(run->machine, &run->ref,
                                 workload->setup ? workload->setup(run->request->config)
                                                 : LAB_DEVICE_SETUP,
                                 &device, err);
    if (result == 0)
        result = tune_on(run, device, err);
    lab_device_close(device);
    lab_lease_release(&lease);
    lab_command_status_line(NULL);
    if (result < 0)
        return lab_err_context(err, "%s on %s", workload->name, run->ref.name);
    return keep_result(run, err);
}

int lab_tune_run(const struct lab_tune_request *request, struct lab_arena *arena,
                 struct lab_tune_outcome *ret_outcome, struct lab_err *err) {
    *ret_outcome = (struct lab_tune_outcome){0};
    struct run run = {.request = request, .arena = arena, .outcome = ret_outcome};
    if (lab_machine_open(NULL, &run.machine, err) < 0)
        return -1;
    lab_interrupt_watch(request->shown ? STOPPING : NULL);
    int result = choose_device(&run, err);
    if (result == 0) {
        open_cache(&run);
        result = look_up(&run, err);
    }
    if (result == 0 && !ret_outcome->cached)
        result = tune(&run, err);
    lab_tuning_cache_close(run.cache);
    lab_machine_close(run.machine);
    return result;
}
