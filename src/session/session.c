/*
 * session.c: the steps that `bench`, a worker's rank and the tuner take, each written once. The
 * measuring loop reports between chunks, outside of what it times; there the listener hears.
 */
#include "session/session.h"

#include "base/auto.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/tty/console.h"
#include "base/tty/interrupt.h"
#include "device/tunable.h"
#include "machine/machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- choose --- */

int lab_session_choose(struct lab_session *session, const char *selector, struct lab_err *err) {
    if (lab_device_select(session->machine, selector, session->arena, &session->devices, err) < 0)
        return -1;
    if (session->devices.count == 0)
        return lab_err_set(err, LAB_ERR_USER, "--device %s names no device: see 'gpulab devices'",
                           selector);
    session->ref = session->devices.items[0];
    return 0;
}

/* --- lease --- */

static int64_t parent_of(int64_t pid) {
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    const char *path = lab_arena_printf(&arena, "/proc/%lld/stat", (long long)pid);
    if (lab_file_read(path, 4096, &arena, &text, &length, NULL) < 0)
        return 0;
    const char *behind = strrchr(text, ')'); /* the name may hold anything: "… (name) S 4711 …" */
    return behind && strlen(behind) > 4 ? strtoll(behind + 4, NULL, 10) : 0;
}

/* Whether this process was started by the holder, or by what it started. */
static bool descends_from(const struct lab_holder *holder) {
    struct lab_holder self;
    lab_holder_self("", NULL, &self);
    if (holder->pid <= 0 || strcmp(holder->host, self.host) != 0)
        return false;
    int64_t pid = getppid();
    while (pid > 1 && pid != holder->pid)
        pid = parent_of(pid);
    return pid == holder->pid;
}

struct waiting {
    bool said;
    bool ours; /* the holder has started this process */
};

static bool on_wait(const char *device, const struct lab_holder *holder, void *state) {
    struct waiting *waiting = state;
    waiting->ours = descends_from(holder);
    if (!waiting->said && !waiting->ours) {
        LAB_AUTO(str, text);
        lab_holder_describe(holder, &text);
        lab_console_note("%s is used by %s: waiting for it", device, text.text);
        waiting->said = true;
    }
    return !waiting->ours && !lab_interrupt_seen();
}

int lab_session_lease(struct lab_session *session, int count, const char *command,
                      struct lab_err *err) {
    struct waiting waiting = {false};
    struct lab_holder self;
    struct lab_err why = LAB_ERR_INIT;
    if (session->ref.simulated) /* there are as many of it as anybody wants */
        return 0;
    const char **names = lab_arena_alloc(session->arena, (size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = session->devices.items[i].physical;
    lab_holder_self(command, NULL, &self);
    if (lab_lease_take(names, count, &self, on_wait, &waiting, &session->lease, &why) == 0 ||
        waiting.ours)
        return 0;
    if (err)
        *err = why;
    return -1;
}

/* --- bind and open --- */

int lab_session_bind(struct lab_session *session, struct lab_err *err) {
    int node = session->rank.numa_node;
    if (node < 0 || session->ref.simulated)
        return 0;
    return lab_bind_thread_to_node(session->machine, node, err);
}

int lab_session_open_device(struct lab_session *session, struct lab_err *err) {
    const struct lab_workload *workload = session->workload;
    struct lab_device_setup setup = session->setup;
    if (session->device || workload->external)
        return 0;
    setup.copy_cores =
        (workload->setup ? workload->setup(session->config) : LAB_DEVICE_SETUP).copy_cores;
    setup.host_node = session->rank.numa_node;
    if (session->listener.phase)
        session->listener.phase(session->listener.sink.state, "opening");
    return lab_device_open(session->machine, &session->ref, setup, &session->device, err);
}

/* A simulated device has a time of its own. */
static const struct lab_clock *clock_of(const struct lab_session *session) {
    return session->device ? session->device->clock : lab_clock_system();
}

int lab_session_open(struct lab_session *session, struct lab_err *err) {
    if (lab_session_open_device(session, err) < 0)
        return -1;
    struct lab_rank rank = session->rank;
    rank.device = session->device;
    rank.ref = &session->ref;
    rank.sink = &session->listener.sink;
    session->verified = session->thread_proven = session->memory_proven = false;
    session->invalid_count = 0;
    int64_t start_ns = lab_clock_now(clock_of(session));
    if (session->workload->open(session->config, &rank, &session->state, err) < 0)
        return -1;
    session->opened = true;
    session->setup_s = 1e-9 * (double)(lab_clock_now(clock_of(session)) - start_ns);
    return 0;
}

/* --- configure --- */

int lab_session_parse(const struct lab_session *session, const char *text,
                      struct lab_tuning *ret_tuning, struct lab_err *err) {
    const struct lab_workload *workload = session->workload;
    struct lab_tunable_place place = {session->device->machine, &session->device->ref};
    struct lab_launch launch;
    workload->launch(session->config, &launch);
    if (lab_launch_complete(&launch, err) < 0)
        return -1;
    const struct lab_tunable *tunable = lab_tunable_find(&place, &launch);
    if (!tunable)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has no configurations to choose from",
                           workload->name);
    if (lab_tuning_parse(tunable, &place, &launch, text, ret_tuning, err) < 0)
        return -1;
    return lab_tuning_check(tunable, &place, &launch, ret_tuning, err);
}

int lab_session_configure(struct lab_session *session, const struct lab_tuning *tuning,
                          struct lab_err *err) {
    return session->workload->configure(session->state, tuning, err);
}

/* --- verify --- */

int lab_session_verify(struct lab_session *session, uint64_t seed, struct lab_err *err) {
    struct lab_verification found = {0};
    if (session->workload->external)
        return 0;
    if (session->listener.phase)
        session->listener.phase(session->listener.sink.state, "verifying");
    if (session->workload->verify(session->state, seed, &found, err) < 0)
        return -1;
    session->verification = found;
    session->verified = true;
    return 0;
}

const char *lab_session_why_wrong(const struct lab_session *session) {
    const struct lab_verification *found = &session->verification;
    if (!session->verified || !found->applicable || found->passed)
        return NULL;
    if (*found->text)
        return found->text;
    return lab_arena_printf(session->arena, "relative error %.1e, allowed %.0e",
                            found->relative_error, found->tolerance);
}

/* --- measure --- */

struct subject {
    struct lab_session *session;
    int index;
};

int lab_session_run(struct lab_session *session, const struct lab_tuning *tuning, int count,
                    struct lab_iteration *records, struct lab_err *err) {
    if (tuning && lab_session_configure(session, tuning, err) < 0)
        return -1;
    return session->workload->run(session->state, count, records, err);
}

static int run_chunk(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    struct subject *subject = state;
    struct lab_session *session = subject->session;
    struct lab_err why = LAB_ERR_INIT;
    char place[32]; /* of a test that lets one rank of several fail */
    snprintf(place, sizeof place, "stretch-of-rank-%d", session->rank.index);
    if (lab_failpoint_error(place, &why) < 0 ||
        lab_session_run(session, session->choices ? &session->choices[subject->index].tuning : NULL,
                        count, records, &why) < 0) {
        session->failed = subject->index;
        session->failure = why;
        if (err)
            *err = why;
        return -1;
    }
    session->chunk = records;
    session->chunk_count = subject->index == 0 ? count : 0;
    return 0;
}

static int before(void *state, struct lab_err *err) {
    const struct subject *subject = state;
    return subject->session->before(subject->session->listener.sink.state, err);
}

static bool on_progress(const struct lab_measure_progress *now, void *state) {
    struct lab_session *session = state;
    const struct lab_session_listener *listener = &session->listener;
    if (now->phase == LAB_MEASURE_MEASURE && session->chunk_count > 0 && listener->iterations)
        listener->iterations(listener->sink.state, session->chunk, session->chunk_count);
    session->chunk_count = 0;
    return listener->progress && listener->progress(listener->sink.state, now);
}

int lab_session_measure(struct lab_session *session, const struct lab_measure_plan *plan,
                        const struct lab_session_choice *choices, int count,
                        struct lab_arena *arena, struct lab_measurement *ret, struct lab_err *err) {
    assert(count == 1 || choices);
    LAB_AUTO_FREE struct lab_subject *subjects = lab_mem_alloc((size_t)count, sizeof *subjects);
    LAB_AUTO_FREE struct subject *states = lab_mem_alloc((size_t)count, sizeof *states);
    for (int i = 0; i < count; i++) {
        states[i] = (struct subject){session, i};
        subjects[i] = (struct lab_subject){.name = choices ? choices[i].name : "measuring",
                                           .run = run_chunk,
                                           .state = &states[i],
                                           .before = session->before ? before : NULL,
                                           .apart = session->workload->external};
    }
    struct lab_measure_plan own = *plan;
    own.clock = clock_of(session);
    own.progress = on_progress;
    own.progress_state = session;
    own.parent = session->rank.run_id ? getppid() : 0; /* the runner, and other workers of it */
    session->choices = choices;
    session->chunk_count = 0;
    session->failed = -1;
    int result = lab_measure(&own, subjects, count, arena, ret, err);
    session->choices = NULL;
    session->chunk = NULL;
    if (result == 0 && !choices && session->workload->finish)
        return session->workload->finish(session->state, err);
    return result;
}

/* --- prove --- */

static void add_invalid(struct lab_session *session, const char *what, const struct lab_err *why) {
    session->invalid[session->invalid_count++] =
        lab_arena_printf(session->arena, "%s: %s", what, why->text);
}

void lab_session_prove(struct lab_session *session) {
    const struct lab_workload *workload = session->workload;
    struct lab_err err = LAB_ERR_INIT;
    int node = session->rank.numa_node;
    session->invalid_count = 0;
    if (session->ref.simulated) /* it lies where it says it does */
        return;
    if (node >= 0) {
        session->thread_proven = lab_bind_prove_thread(session->machine, node, &err) == 0;
        if (!session->thread_proven)
            add_invalid(session, "the host thread left its NUMA node", &err);
    }
    if (workload->prove_placement && !workload->external) {
        session->memory_proven = workload->prove_placement(session->state, &err) == 0;
        if (!session->memory_proven)
            add_invalid(session, "memory is on another NUMA node", &err);
    }
}

/* --- close --- */

void lab_session_close_workload(struct lab_session *session) {
    if (session->opened)
        session->workload->close(session->state);
    session->opened = false;
}

void lab_session_close(struct lab_session *session) {
    lab_session_close_workload(session);
    lab_device_close(session->device);
    session->device = NULL;
}

void lab_session_release(struct lab_session *session) {
    lab_session_close(session);
    lab_lease_release(&session->lease);
}
