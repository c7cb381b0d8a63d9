/*
 * study.c: see study.h. The database is the only memory: results.json and the summary are made from
 * what it says, so that they can't disagree with it, and a crash between the two is mended by the
 * next writing.
 */
#include "run/study.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/own.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/yaml/yaml.h"
#include "run/plan_record.h"
#include "store/study/results.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Space that is given up when the disk is full, so that the run under way can still be marked. That
 * the file is there also says that the others may not be complete. */
#define ROOM_BYTES (256 << 10)

/* results.json is written at most once a second, and never takes more than a twentieth of the time:
 * a study of many short runs stays linear. */
#define WRITE_NS    LAB_NS_PER_S
#define WRITE_SHARE 20

static const char *file_of(const struct lab_study *study, const char *name,
                           struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s/%s", study->folder.path, name);
}

/* --- a new folder's content --- */

static int write_file(const struct lab_study *study, const char *name, const struct lab_str *text,
                      struct lab_arena *arena, struct lab_err *err) {
    return lab_file_write_atomic(file_of(study, name, arena), text->text, text->length, err);
}

static int write_config(const struct lab_study *study, const struct lab_study_request *request,
                        struct lab_arena *arena, struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_yaml_write(request->plan->config, &text);
    if (write_file(study, "config.yaml", &text, arena, err) < 0)
        return -1;
    lab_str_clear(&text);
    lab_yaml_write(lab_value_strings(arena, request->overrides), &text);
    if (write_file(study, "overrides.yaml", &text, arena, err) < 0)
        return -1;
    return lab_file_write_atomic(file_of(study, "machine.json", arena), request->machine_json,
                                 strlen(request->machine_json), err);
}

static const char *words_text(const struct lab_study_request *request, struct lab_arena *arena) {
    LAB_AUTO(str, words);
    lab_json_write(lab_value_strings(arena, request->words), 0, &words);
    return lab_arena_strdup(arena, words.text);
}

static int create_store(struct lab_study *study, const struct lab_study_request *request,
                        struct lab_arena *arena, struct lab_err *err) {
    const struct lab_plan *plan = request->plan;
    LAB_AUTO(str, config);
    lab_yaml_write(plan->config, &config);
    struct lab_store_study row = {
        .name = plan->study,
        .option = plan->option,
        .identity = plan->identity,
        .seed = plan->seed,
        .config = config.text,
        .words = words_text(request, arena),
        .machine = request->machine_json,
        .version = LAB_VERSION,
        .created_wall_ns = lab_clock_wall_ns(),
        .machine_identity = lab_machine_identity(request->machine),
    };
    return lab_store_create(file_of(study, "study.db", arena), &row,
                            lab_run_plan_records(plan, arena), plan->run_count, &study->store, err);
}

/* --- files that follow the store --- */

int lab_study_write_results(struct lab_store *store, const char *folder, const char *name,
                            struct lab_results_metrics *metrics, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_run *runs;
    int count;
    if (lab_store_runs(store, &arena, &runs, &count, err) < 0)
        return -1;
    lab_results_write(runs, count, store, metrics, &text);
    lab_failpoint("before-results");
    if (lab_file_write_atomic(lab_arena_printf(&arena, "%s/results.json", folder), text.text,
                              text.length, err) < 0)
        return -1;
    lab_failpoint("after-results");
    lab_str_clear(&text);
    lab_json_write(lab_results_summary(name, runs, count, &arena), 2, &text);
    lab_str_add(&text, "\n");
    return lab_file_write_atomic(lab_arena_printf(&arena, "%s/experiment_summary.json", folder),
                                 text.text, text.length, err);
}

static int write_results(struct lab_study *study, struct lab_err *err) {
    int64_t start_ns = lab_clock_now(lab_clock_system());
    if (!study->metrics)
        study->metrics = lab_results_metrics_open();
    int result = lab_study_write_results(study->store, study->folder.path, study->plan.study,
                                         study->metrics, err);
    study->written_ns = lab_clock_now(lab_clock_system());
    study->write_cost_ns = study->written_ns - start_ns;
    study->stale = result < 0;
    return result;
}

/* Where they can't be written now, they will be at the next chance; nothing depends on them. Said
 * once, not every second. */
static void try_results(struct lab_study *study) {
    struct lab_err err = LAB_ERR_INIT;
    int result = write_results(study, &err);
    if (result < 0 && !study->complained)
        lab_log(LAB_LOG_WARNING, "%s", err.text);
    study->complained = result < 0;
}

static void refresh_results(struct lab_study *study) {
    int64_t pause_ns = WRITE_SHARE * study->write_cost_ns;
    pause_ns = pause_ns > WRITE_NS ? pause_ns : WRITE_NS;
    if (!study->stale || lab_clock_now(lab_clock_system()) - study->written_ns < pause_ns)
        return;
    try_results(study);
}

/* --- the log --- */

static void log_line(const struct lab_study *study, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void log_line(const struct lab_study *study, const char *format, ...) {
    if (study->log_fd < 0)
        return;
    struct timespec now;
    struct tm local;
    char stamp[32], zone[8], text[2048];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &local);
    strftime(zone, sizeof zone, "%z", &local);
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    LAB_AUTO(str, line);
    lab_str_printf(&line, "%s.%03lld%s ", stamp, now.tv_nsec / LAB_NS_PER_MS, zone);
    for (char *c = text; *c; c++) /* one event, one line */
        *c = *c == '\n' ? ' ' : *c;
    lab_str_printf(&line, "%s\n", text);
    /* one write of O_APPEND: lines stay whole; a full disk loses them and nothing else */
    if (write(study->log_fd, line.text, line.length) < 0)
        lab_log(LAB_LOG_DEBUG, "experiment.log: %s", strerror(errno));
}

static void log_event(const struct lab_study *study, const struct lab_runner_event *event) {
    const struct lab_plan_run *run = event->item ? event->item->planned : NULL;
    const char *id = run ? run->id : "";
    bool spread = run && run->slot_count > 0;
    if (event->kind == LAB_RUNNER_STARTED)
        log_line(study, "%s: attempt %d begins%s%s", id, event->attempt, spread ? " on " : "",
                 spread ? run->ranks[0].device : "");
    else if (event->kind == LAB_RUNNER_PHASE)
        log_line(study, "%s: %s", id, event->text);
    else if (event->kind == LAB_RUNNER_WARNING)
        log_line(study, "%s: warning: %s", id, event->text);
    else if (event->kind == LAB_RUNNER_RETRY)
        log_line(study, "%s: attempt %d failed: %s", id, event->attempt, event->text);
    else if (event->kind == LAB_RUNNER_DONE)
        log_line(study, "%s: done, %.6g %s", id, event->outcome->rate, event->outcome->rate_unit);
    else if (event->kind == LAB_RUNNER_FAILED)
        log_line(study, "%s: failed: %s", id, event->outcome->error);
    else if (event->kind == LAB_RUNNER_COOLING)
        log_line(study, "pause of %g s", event->value);
    else if (event->kind == LAB_RUNNER_STOPPING)
        log_line(study, "stopping: %s", event->text);
}

/* --- room for the end --- */

static void keep_room(const struct lab_study *study) {
    LAB_AUTO(arena, arena);
    const char *path = file_of(study, LAB_FOLDER_ROOM, &arena);
    LAB_AUTO_CLOSE int fd = lab_own_open(path, LAB_OWN_CHANGE, NULL);
    if (fd >= 0 && posix_fallocate(fd, 0, ROOM_BYTES) != 0 && ftruncate(fd, 0) < 0)
        lab_log(LAB_LOG_DEBUG, "%s: %s", path, strerror(errno));
}

static bool give_room(const struct lab_study *study) {
    LAB_AUTO(arena, arena);
    return lab_own_remove(file_of(study, LAB_FOLDER_ROOM, &arena)) == 0;
}

/*
 * Brings the files up to date, with the space that was kept where there is no other. Where even
 * that is not enough, the file that kept it says so, and the same command completes them.
 */
static int settle_results(struct lab_study *study, struct lab_err *err) {
    if (!study->stale || write_results(study, NULL) == 0)
        return 0;
    give_room(study);
    int result = write_results(study, err);
    if (result < 0)
        keep_room(study);
    return result;
}

/* --- life --- */

static int by_identity(const void *a, const void *b) {
    uint64_t x = (*(const struct lab_plan_run *const *)a)->identity;
    uint64_t y = (*(const struct lab_plan_run *const *)b)->identity;
    return x < y ? -1 : x > y;
}

/* The store's runs that aren't done, each with its plan. */
static int find_items(struct lab_study *study, struct lab_arena *arena, struct lab_err *err) {
    static const char *const rates_alone[] = {NULL};
    if (lab_store_runs_with(study->store, rates_alone, arena, &study->runs, &study->run_count,
                            err) < 0)
        return -1;
    const struct lab_plan *plan = &study->plan;
    struct lab_plan_run **planned =
        lab_arena_alloc(arena, (size_t)plan->run_count, sizeof *planned);
    for (int i = 0; i < plan->run_count; i++)
        planned[i] = &plan->runs[i];
    qsort(planned, (size_t)plan->run_count, sizeof *planned, by_identity);
    if (study->run_count != plan->run_count)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s holds %d runs, but its plan has %d: start over with "
                           "experiment.resume=false",
                           study->folder.path, study->run_count, plan->run_count);
    study->items = lab_arena_alloc(arena, (size_t)study->run_count, sizeof *study->items);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_run *run = &study->runs[i];
        struct lab_plan_run wanted = {.identity = run->identity};
        const struct lab_plan_run *key = &wanted;
        struct lab_plan_run *const *found =
            bsearch(&key, planned, (size_t)plan->run_count, sizeof *planned, by_identity);
        if (!found)
            return lab_err_set(
                err, LAB_ERR_SYSTEM,
                "%s holds run %s, which isn't in the plan: start over with experiment.resume=false",
                study->folder.path, run->id);
        if (run->state != LAB_RUN_DONE)
            study->items[study->item_count++] =
                (struct lab_runner_item){.planned = *found, .number = run->number};
    }
    return 0;
}

static int open_log(struct lab_study *study, struct lab_arena *arena, struct lab_err *err) {
    if (lab_own_folder(file_of(study, "logs", arena), err) < 0)
        return -1;
    study->log_fd = lab_own_open(file_of(study, "logs/experiment.log", arena), LAB_OWN_APPEND, err);
    return study->log_fd < 0 ? -1 : 0;
}

static int fill_new(struct lab_study *study, const struct lab_study_request *request,
                    struct lab_arena *arena, struct lab_err *err) {
    if (write_config(study, request, arena, err) < 0 ||
        create_store(study, request, arena, err) < 0 || open_log(study, arena, err) < 0 ||
        write_results(study, err) < 0)
        return -1;
    /* the connection knows its file by the hidden name, which is about to go */
    lab_store_close(study->store);
    study->store = NULL;
    if (lab_folder_publish(&study->folder, err) < 0)
        return -1;
    if (!request->passing)
        lab_folder_register(study->folder.path);
    return lab_store_open(file_of(study, "study.db", arena), LAB_STORE_WRITE, &study->store, err);
}

/* Files that a killed program had not yet given their names. */
static void remove_leftovers(const char *folder) {
    LAB_AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        lab_own_remove_leftovers(fd, 0);
}

/* A folder of the same command with one run of each point: the plan's first block, named as there
 * was no other. */
static void drop_repeats(struct lab_plan *plan, struct lab_arena *arena) {
    plan->run_count /= plan->repeat;
    plan->repeat = 1;
    plan->identity = plan->once_identity;
    plan->runs = lab_arena_copy(arena, plan->runs, (size_t)plan->run_count, sizeof *plan->runs);
    for (int i = 0; i < plan->run_count; i++) {
        size_t length = strlen(plan->runs[i].id) - strlen("_r0");
        plan->runs[i].id = lab_arena_strndup(arena, plan->runs[i].id, length);
    }
}

static int take_up(struct lab_study *study, struct lab_arena *arena, struct lab_err *err) {
    struct lab_store_study row;
    if (lab_store_open(file_of(study, "study.db", arena), LAB_STORE_WRITE, &study->store, err) <
            0 ||
        lab_store_study(study->store, arena, &row, err) < 0 || open_log(study, arena, err) < 0)
        return -1;
    study->plan.seed = row.seed;
    if (row.identity != study->plan.identity)
        drop_repeats(&study->plan, arena);
    remove_leftovers(study->folder.path);
    remove_leftovers(file_of(study, "traces", arena));
    remove_leftovers(file_of(study, "report", arena));
    lab_folder_register(study->folder.path);
    /* what was committed just before the end may not have reached the files */
    study->complained = write_results(study, err) < 0;
    return study->complained ? -1 : 0;
}

int lab_study_open(const struct lab_study_request *request, struct lab_arena *arena,
                   struct lab_study *ret_study, struct lab_err *err) {
    struct lab_study study = {.plan = *request->plan,
                              .machine = request->machine,
                              .command = request->command,
                              .folder = LAB_FOLDER_INIT,
                              .log_fd = -1};
    struct lab_folder_request wanted = {
        .output_dir = request->plan->output_dir,
        .study = request->plan->study,
        .identity = request->plan->identity,
        .once_identity = request->plan->once_identity,
        .words = words_text(request, arena),
        .config = request->plan->config,
        .machine_identity = lab_machine_identity(request->machine),
        .resume = request->plan->resume,
        .command = request->command,
    };
    if (lab_folder_open(&wanted, &study.folder, err) < 0)
        return -1;
    int result =
        study.folder.resumed ? take_up(&study, arena, err) : fill_new(&study, request, arena, err);
    if (result == 0)
        result = lab_store_epoch(study.store, "runner", &study.epoch, err);
    if (result == 0)
        result = find_items(&study, arena, err);
    if (result < 0) {
        lab_study_close(&study);
        return -1;
    }
    keep_room(&study);
    log_line(&study, "%s: %d of %d runs to do (%s)", study.folder.resumed ? "taken up" : "begun",
             study.item_count, study.run_count, request->command);
    *ret_study = study;
    return 0;
}

void lab_study_close(struct lab_study *study) {
    if (!study->folder.path)
        return;
    struct lab_err err = LAB_ERR_INIT;
    if (study->store && settle_results(study, &err) < 0 && !study->complained)
        lab_log(LAB_LOG_WARNING, "%s", err.text);
    if (!study->stale)
        give_room(study); /* before the database becomes one file, which takes space, too */
    lab_store_close(study->store);
    lab_results_metrics_close(study->metrics);
    lab_lease_release(&study->lease);
    lab_file_close(&study->log_fd);
    lab_folder_close(&study->folder);
    *study = (struct lab_study){.folder = LAB_FOLDER_INIT, .log_fd = -1};
}

/* --- running --- */

struct running {
    struct lab_study *study;
    const struct lab_study_listener *listener;
};

static int on_stop(void *opaque) {
    struct running *running = opaque;
    refresh_results(running->study);
    return running->listener->stop ? running->listener->stop(running->listener->state) : 0;
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct running *running = opaque;
    log_event(running->study, event);
    if (event->kind == LAB_RUNNER_DONE || event->kind == LAB_RUNNER_FAILED) {
        running->study->stale = true;
        refresh_results(running->study);
    }
    if (running->listener->event)
        running->listener->event(event, running->listener->state);
}

static bool on_full(void *opaque) {
    struct running *running = opaque;
    return give_room(running->study);
}

static int lease_devices(struct lab_study *study, const struct lab_study_listener *listener,
                         struct lab_err *err) {
    LAB_AUTO(arena, arena);
    if (study->machine->simulated) /* there are as many of it as anybody wants */
        return 0;
    int count = 0, most;
    const char **names =
        lab_arena_alloc(&arena, (size_t)study->plan.devices.count + 1, sizeof *names);
    for (int i = 0; i < study->item_count; i++) {
        const struct lab_run_rank *ranks = lab_plan_run_places(study->items[i].planned, &most);
        for (int k = 0; k < most; k++) {
            const char *name = study->plan.devices.items[ranks[k].gpu_id].physical;
            if (lab_list_find_text(names, count, name) < 0)
                names[count++] = name;
        }
    }
    struct lab_holder self;
    lab_holder_self(study->command, study->folder.path, &self);
    return lab_lease_take(names, count, &self, listener->wait, listener->state, &study->lease, err);
}

/* A simulated study's time may be ahead of the machine's: what goes on begins behind it. */
static int64_t last_end(const struct lab_study *study) {
    int64_t last_ns = 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].end_ns > last_ns)
            last_ns = study->runs[i].end_ns;
    return last_ns;
}

int lab_study_run(struct lab_study *study, const struct lab_study_listener *listener,
                  struct lab_runner_outcome *ret_outcome, struct lab_err *err) {
    *ret_outcome = (struct lab_runner_outcome){.left = study->item_count};
    if (lease_devices(study, listener, err) < 0)
        return -1;
    int inherited_count = study->lease.count + 1;
    LAB_AUTO_FREE int *inherited = lab_mem_alloc((size_t)inherited_count, sizeof *inherited);
    inherited[0] = study->folder.lock_fd;
    for (int i = 0; i < study->lease.count; i++)
        inherited[i + 1] = study->lease.fds[i];
    struct running running = {study, listener};
    struct lab_runner_spec spec = {
        .plan = &study->plan,
        .machine = study->machine,
        .store = study->store,
        .epoch = study->epoch,
        .items = study->items,
        .item_count = study->item_count,
        .monitor = study->plan.monitor,
        .not_before_ns = last_end(study),
        .folder = study->folder.path,
        .inherit_fds = inherited,
        .inherit_count = inherited_count,
        .stop = on_stop,
        .event = on_event,
        .make_room = on_full,
        .state = &running,
    };
    int result = lab_runner_run(&spec, ret_outcome, err);
    log_line(study, "%d done, %d failed, %d left%s%s", ret_outcome->done, ret_outcome->failed,
             ret_outcome->left, result < 0 ? ": " : "", result < 0 ? err->text : "");
    /* before anything else, such as a report, takes the space */
    if (settle_results(study, result < 0 ? NULL : err) < 0 && result == 0) {
        study->complained = true;
        result = -1;
    }
    lab_lease_release(&study->lease);
    return result;
}
