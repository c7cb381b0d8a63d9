/* record_session.c: the loop of `gpulab record`: sampler, recorder, files, child. */
#include "record/record_session.h"

#include "base/tty/console.h"

#include "base/clock.h"
#include "base/file/own.h"
#include "device/watched_gpus.h"
#include "machine/machine.h"
#include "probe/probe_demo_machine.h"
#include "run/launch/process_tree.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FLUSH_NS LAB_NS_PER_S
#define TAKE_NS                                                                                    \
    (LAB_NS_PER_S / 2) /* files need nothing sooner; the sampler keeps four times that */
#define LAST_NS (200 * LAB_NS_PER_MS) /* for the last readings, which read everything */
#define LOOK_NS (50 * LAB_NS_PER_MS)  /* between looks where there is no descriptor to wait on */
#define IDLE_NS (10 * LAB_NS_PER_S)

static int64_t now(void) {
    return lab_clock_now(lab_clock_system());
}

/* --- signals --- */

/* Only we read them: the sampler's threads take none. A shell's background job ignores SIGINT,
 * nohup ignores SIGHUP; that stays so. */
static void watch_signals(struct lab_record_session *session) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t watched;
    sigemptyset(&watched);
    for (int i = 0; i < 3; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&watched, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &watched, &session->old_mask);
    session->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The terminal's Ctrl-C has reached the command already; what was sent to us alone is handed on. */
static void take_signals(struct lab_record_session *session) {
    struct signalfd_siginfo info;
    while (read(session->signal_fd, &info, sizeof info) == sizeof info) {
        if (session->child.pid == 0)
            session->stop_signal = (int)info.ssi_signo;
        else if (info.ssi_code != SI_KERNEL && !lab_record_child_ended(&session->child))
            kill(session->child.pid, (int)info.ssi_signo);
    }
}

/* --- opening --- */

static int open_sampler(struct lab_record_session *session,
                        const struct lab_record_request *request, struct lab_err *err) {
    static const char *const host_probes[] = {"cpu", "memory", "numa", "process", NULL};
    const int *gpus = NULL;
    int gpu_count = 0;
    if (lab_machine_open(NULL, &session->machine, err) < 0 ||
        lab_device_watched_gpus(session->machine, request->device, request->arena, &gpus,
                                &gpu_count, err) < 0)
        return -1;
    session->host_only = gpus && gpu_count == 0;
    struct lab_sampler_config config = {
        .setup = {.machine = lab_probe_demo_machine(session->machine, request->arena),
                  .clock = lab_clock_system(),
                  .interval_ns = request->interval_ns,
                  .root = "",
                  .all_processes =
                      request->all_processes || (request->any_processes && session->host_only)},
        .probes = session->host_only ? host_probes : NULL,
        .gpus = session->host_only ? NULL : gpus,
        .gpu_count = gpu_count,
    };
    if (lab_sampler_open(&config, &session->sampler, err) < 0)
        return -1;
    /* without GPUs there would be none to list */
    if (request->any_processes && !session->host_only &&
        lab_sampler_refusal(session->sampler, "nvml") &&
        (!lab_sampler_awaits(session->sampler, "nvml") ||
         lab_sampler_retries(session->sampler, "nvml"))) {
        lab_sampler_close(session->sampler);
        session->sampler = NULL;
        config.setup.all_processes = true;
        return lab_sampler_open(&config, &session->sampler, err);
    }
    return 0;
}

static int open_csv(struct lab_record_session *session, const struct lab_record_request *request,
                    const struct lab_monitor_stream_setup *setup, struct lab_err *err) {
    int fd = STDOUT_FILENO;
    if (strcmp(request->csv, "-") != 0) {
        fd = session->csv_fd = lab_own_open(request->csv, LAB_OWN_NEW, NULL);
        if (fd < 0 && errno == EEXIST)
            return lab_err_set(err, LAB_ERR_USER, "%s exists already: choose another name",
                               request->csv);
        if (fd < 0)
            return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s can't be written", request->csv);
    }
    return lab_monitor_stream_csv(fd, setup, &session->csv, err);
}

static int open_outputs(struct lab_record_session *session,
                        const struct lab_record_request *request, struct lab_err *err) {
    /* a little less than our own, so that each of ours finds it due */
    struct lab_recorder_setup recorder = {
        .interval_ns = request->interval_ns, .note = request->note, .flush_ns = FLUSH_NS * 9 / 10};
    struct lab_monitor_stream_setup stream = {.interval_ns = request->interval_ns,
                                              .gpu = -1,
                                              .without_host =
                                                  request->device && !session->host_only};
    if (lab_recorder_create(request->path, &recorder, &session->recorder, err) < 0)
        return -1;
    if (request->stats_name &&
        lab_monitor_stream_files(request->stats_name, &stream, &session->stats, err) < 0)
        return -1;
    return request->csv ? open_csv(session, request, &stream, err) : 0;
}

int lab_record_begin(struct lab_record_session *session, const struct lab_record_request *request,
                     struct lab_err *err) {
    *session = (struct lab_record_session){.csv_fd = -1, .signal_fd = -1};
    session->child = (struct lab_record_child){.argv = request->argv, .pidfd = -1};
    lab_record_summary_init(&session->summary, request->interval_ns);
    /* the sampler first: it knows which GPUs there are, and makes no file; so while a driver takes
     * long to start, Ctrl-C may simply end it all */
    if (open_sampler(session, request, err) == 0) {
        watch_signals(session);
        if (open_outputs(session, request, err) == 0)
            return 0;
    }
    lab_record_undo(session, request);
    return -1;
}

/* --- sampling --- */

#define ENTITIES_MOST 64 /* of the sets of entities */

static bool is_of_command(const struct lab_record_session *session, pid_t pid) {
    struct lab_process process;
    for (int i = 0; i < 64 && pid > 1; i++, pid = process.parent) {
        if (pid == session->child.pid)
            return true;
        if (!lab_process_read(pid, &process))
            return false;
    }
    return false;
}

static void look_for_usage(void *state, const struct lab_process_list *list) {
    struct lab_record_session *session = state;
    for (int p = 0; p < list->count && session->child.pid; p++) {
        const struct lab_process_sample *process = &list->items[p];
        uint64_t on = 0;
        for (int g = 0; g < process->gpu_count; g++)
            on |= process->gpus[g].entity < ENTITIES_MOST ? 1ULL << process->gpus[g].entity : 0;
        if ((on & ~session->used_gpus) && is_of_command(session, process->pid))
            session->used_gpus |= on;
    }
}

static void mark(struct lab_record_session *session, int entity, int64_t number, const char *text) {
    struct lab_sample_event event = {
        .time_ns = now(), .entity = entity, .kind = LAB_EVENT_MARK, .number = number, .text = text};
    struct lab_sink_samples sink = lab_recorder_sink(session->recorder);
    sink.event(sink.state, &event);
}

static void mark_usage(struct lab_record_session *session) {
    for (int i = 0; i < ENTITIES_MOST && session->used_gpus != session->marked_gpus; i++)
        if ((session->used_gpus & ~session->marked_gpus) >> i & 1) {
            mark(session, i, session->child.pid, LAB_RECORDING_USED);
            session->marked_gpus |= 1ULL << i;
        }
}

static void take(struct lab_record_session *session) {
    struct lab_sink_samples sinks[5];
    const struct lab_sink_samples *all[6] = {NULL};
    int count = 0;
    sinks[count++] = (struct lab_sink_samples){.processes = look_for_usage, .state = session};
    sinks[count++] = lab_record_summary_sink(&session->summary);
    if (session->recorder)
        sinks[count++] = lab_recorder_sink(session->recorder);
    if (session->stats)
        sinks[count++] = lab_monitor_stream_sink(session->stats);
    if (session->csv)
        sinks[count++] = lab_monitor_stream_sink(session->csv);
    for (int i = 0; i < count; i++)
        all[i] = &sinks[i];
    struct lab_sink_fan fan = {all};
    struct lab_sink_samples sink = lab_sink_fan(&fan);
    lab_sampler_take(session->sampler, &sink);
    if (session->recorder)
        mark_usage(session);
}

static void tell_once(bool *told, const struct lab_err *err) {
    if (!*told)
        lab_console_note("%s; sampling continues", err->text);
    *told = true;
}

/* The lines of a pipe at once, files each second. */
static void flush(struct lab_record_session *session, bool files) {
    struct lab_err err = LAB_ERR_INIT;
    if (session->csv && lab_monitor_stream_flush(session->csv, &err) < 0)
        tell_once(&session->told_csv, &err);
    if (lab_recorder_flush(session->recorder, false, &err) < 0)
        tell_once(&session->told_disk, &err);
    if (files && session->stats && lab_monitor_stream_flush(session->stats, &err) < 0)
        tell_once(&session->told_stats, &err);
}

/* Waits for anything to do, until `until_ns` at most; for samples too only if they are `urgent`. */
static void wait_for_work(struct lab_record_session *session, bool urgent, int64_t until_ns) {
    struct pollfd watched[3];
    int count = 0, sampler_fd = urgent ? lab_sampler_fd(session->sampler) : -1;
    bool running = session->child.pid && !session->child.ended;
    watched[count++] = (struct pollfd){.fd = session->signal_fd, .events = POLLIN};
    if (sampler_fd >= 0)
        watched[count++] = (struct pollfd){.fd = sampler_fd, .events = POLLIN};
    if (running && session->child.pidfd >= 0)
        watched[count++] = (struct pollfd){.fd = session->child.pidfd, .events = POLLIN};
    int64_t wait_ns = until_ns - now();
    bool looks = (urgent && sampler_fd < 0) || (running && session->child.pidfd < 0);
    if (looks && wait_ns > LOOK_NS)
        wait_ns = LOOK_NS;
    struct timespec wait = {.tv_sec = wait_ns > 0 ? wait_ns / LAB_NS_PER_S : 0,
                            .tv_nsec = wait_ns > 0 ? wait_ns % LAB_NS_PER_S : 0};
    ppoll(watched, (nfds_t)count, &wait, NULL);
}

/* Everything is read once more, so that counters tell of the whole time. */
static void take_last(struct lab_record_session *session) {
    int64_t edge_ns = now();
    lab_sampler_edge(session->sampler);
    while (now() < edge_ns + LAST_NS && !lab_record_summary_is_since(&session->summary, edge_ns)) {
        wait_for_work(session, true, edge_ns + LAST_NS);
        take(session);
    }
}

static bool is_over(struct lab_record_session *session, const struct lab_record_request *request,
                    int64_t now_ns) {
    bool has_child = session->child.pid != 0;
    if (has_child && lab_record_child_ended(&session->child))
        return true;
    if (request->duration_ns && now_ns - session->start_ns >= request->duration_ns)
        return true;
    /* who reads no more has seen enough; a command has not */
    return !has_child &&
           (session->stop_signal || (session->csv && lab_monitor_stream_is_over(session->csv)));
}

static void sample(struct lab_record_session *session, const struct lab_record_request *request) {
    int64_t flush_ns = session->start_ns + FLUSH_NS;
    for (;;) {
        int64_t now_ns = now(), until_ns;
        take(session);
        flush(session, now_ns >= flush_ns);
        if (now_ns >= flush_ns)
            flush_ns = now_ns + FLUSH_NS;
        if (is_over(session, request, now_ns))
            return;
        until_ns = now_ns + TAKE_NS < flush_ns ? now_ns + TAKE_NS : flush_ns;
        if (request->duration_ns && session->start_ns + request->duration_ns < until_ns)
            until_ns = session->start_ns + request->duration_ns;
        wait_for_work(session, session->csv, until_ns);
        take_signals(session);
    }
}

/* The time is up, but the command goes on: its exit status is ours. */
static void wait_for_child(struct lab_record_session *session) {
    while (session->child.pid && !lab_record_child_ended(&session->child)) {
        wait_for_work(session, false, now() + IDLE_NS);
        take_signals(session);
    }
}

int lab_record_run(struct lab_record_session *session, const struct lab_record_request *request,
                   struct lab_err *err) {
    session->start_ns = now();
    if (request->argv) {
        take(session); /* the devices are known before the command begins */
        lab_sampler_edge(session->sampler);
        int status = lab_record_child_start(&session->child, &session->old_mask, err);
        if (status)
            return status;
        mark(session, -1, session->child.pid, "command began");
    }
    sample(session, request);
    session->end_ns = now();
    if (session->child.ended)
        mark(session, -1, lab_record_child_status(&session->child), "command ended");
    take_last(session);
    lab_sampler_stats(session->sampler, &session->sampled);
    return 0;
}

/* --- the end --- */

/* The first failure is told; all are closed. */
static int close_all(struct lab_record_session *session, struct lab_err *err) {
    int result = 0;
    lab_sampler_close(session->sampler);
    lab_machine_close(session->machine);
    if (session->recorder && lab_recorder_flush(session->recorder, true, err) < 0)
        result = -1;
    session->lost = session->recorder ? lab_recorder_lost(session->recorder) : 0;
    if (lab_recorder_close(session->recorder, result < 0 ? NULL : err) < 0)
        result = -1;
    if (lab_monitor_stream_close(session->stats, result < 0 ? NULL : err) < 0)
        result = -1;
    if (lab_monitor_stream_close(session->csv, result < 0 ? NULL : err) < 0)
        result = -1;
    if (session->csv_fd >= 0 && close(session->csv_fd) < 0 && result == 0)
        result = lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "CSV can't be written");
    session->sampler = NULL;
    session->machine = NULL;
    session->recorder = NULL;
    session->stats = session->csv = NULL;
    session->csv_fd = -1;
    return result;
}

int lab_record_end(struct lab_record_session *session, struct lab_err *err) {
    int result = close_all(session, err);
    wait_for_child(session);
    return result;
}

void lab_record_undo(struct lab_record_session *session, const struct lab_record_request *request) {
    bool made_recording = session->recorder, made_csv = session->csv_fd >= 0;
    lab_monitor_stream_undo(session->stats);
    session->stats = NULL;
    close_all(session, NULL);
    if (made_recording)
        lab_own_remove(request->path);
    if (made_csv)
        lab_own_remove(request->csv);
    lab_record_release(session);
}

void lab_record_release(struct lab_record_session *session) {
    lab_record_child_release(&session->child);
    lab_record_summary_release(&session->summary);
    if (session->signal_fd < 0)
        return;
    take_signals(session); /* what came too late must not end us now */
    close(session->signal_fd);
    session->signal_fd = -1;
    pthread_sigmask(SIG_SETMASK, &session->old_mask, NULL);
}
