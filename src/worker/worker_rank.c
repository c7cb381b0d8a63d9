/*
 * worker_rank.c: one rank, in a thread of its own: a session, in step with the other ranks. The
 * session warms up and measures in one call. It reports between chunks, outside of what it times,
 * and there the rank waits for the others and tells the runner what came about.
 */
#include "worker/worker_internal.h"

#include "base/clock.h"
#include "base/random.h"

#include <unistd.h>

#define PROGRESS_EVERY_NS (200 * LAB_NS_PER_MS)
#define ITERATIONS_MOST   10000000 /* of a run by time; all are kept until its end, 64 bytes each */
#define VERIFY_DRAW       1 /* which number of the rank's seed draws the data that is verified */

/* --- telling --- */

static void tell_phase(void *state, const char *phase) {
    struct rank *rank = state;
    worker_send(
        rank->worker,
        &(struct lab_frame){.type = LAB_FRAME_PHASE, .rank = rank->job->index, .text = phase});
    atomic_store(&rank->progress_ns, 0); /* a new phase's first progress is news */
}

/* A few times a second, and once when all is done: a program may go on beyond its last step. */
static void tell_progress(struct rank *rank, int64_t done, int64_t total, bool last) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    bool news = last && done != atomic_load(&rank->progress_done);
    if (!news && now_ns - atomic_load(&rank->progress_ns) < PROGRESS_EVERY_NS)
        return;
    atomic_store(&rank->progress_ns, now_ns);
    atomic_store(&rank->progress_done, done);
    worker_send(rank->worker, &(struct lab_frame){.type = LAB_FRAME_PROGRESS,
                                                  .rank = rank->job->index,
                                                  .progress = {done, total}});
}

/* --- what the session tells --- */

static void on_iterations(void *state, const struct lab_iteration *records, int total) {
    struct rank *rank = state;
    for (int done = 0; done < total;) {
        int count = total - done;
        count = count < LAB_FRAME_MAX_ITERATIONS ? count : LAB_FRAME_MAX_ITERATIONS;
        worker_send(rank->worker,
                    &(struct lab_frame){.type = LAB_FRAME_ITERATIONS,
                                        .rank = rank->job->index,
                                        .iterations = {rank->sent, records + done, (size_t)count}});
        rank->sent += count;
        done += count;
    }
}

static void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    struct rank *rank = state;
    if (rank->measurement.count == 0) /* else they are a trace's, and none of the run's */
        worker_tell_metrics(rank, items, count);
}

static void on_workload_progress(void *state, int64_t done, int64_t total) {
    struct rank *rank = state;
    atomic_store(&rank->tells_progress, true);
    total = total > 0 ? total : 0;
    done = done > 0 ? done : 0;
    done = total > 0 && done > total ? total : done;
    tell_progress(rank, done, total, total > 0 && done == total);
}

static void on_output(void *state, bool is_stderr, const char *bytes, size_t length) {
    (void)state;
    /* that nobody reads it is no reason to stop the run */
    worker_write(is_stderr ? STDERR_FILENO : STDOUT_FILENO, false, bytes, length);
}

static void on_held(void *state, int64_t held_ns, int64_t whole_ns) {
    struct rank *rank = state;
    rank->held_ns += held_ns;
    rank->whole_ns += whole_ns;
}

static bool on_stopped(void *state) {
    struct rank *rank = state;
    if (rank->worker->workload->external)
        worker_look_at_memory(rank->worker);
    return atomic_load(&rank->worker->stopping);
}

static void on_warning(void *state, const char *text) {
    worker_warn(state, text);
}

static void on_notice(void *state, const char *text) {
    struct rank *rank = state;
    worker_send(
        rank->worker,
        &(struct lab_frame){.type = LAB_FRAME_WARNING, .rank = rank->job->index, .text = text});
}

/* --- before it measures --- */

static int choose_device(struct rank *rank, const char *device, struct lab_err *err) {
    if (lab_session_choose(&rank->session, device, err) < 0)
        return -1;
    if (rank->session.devices.count != 1)
        return lab_err_set(err, LAB_ERR_USER, "%s names %d devices, a rank has one", device,
                           rank->session.devices.count);
    return 0;
}

/* Those of a program that is started once for all of them; the first one is the session's. */
static int choose_gang(struct rank *rank, struct lab_err *err) {
    const struct lab_job *job = &rank->worker->job;
    rank->gang.count = job->rank_count;
    rank->gang.items =
        lab_arena_alloc(&rank->arena, (size_t)job->rank_count, sizeof *rank->gang.items);
    for (int i = job->rank_count - 1; i >= 0; i--) {
        if (choose_device(rank, job->ranks[i].device, err) < 0)
            return -1;
        rank->gang.items[i] = rank->session.ref;
    }
    rank->session.rank.gang = &rank->gang;
    return 0;
}

/* The node of the rank, or of all ranks of a launcher; -1 = they are on several. */
static int find_node(const struct rank *rank) {
    const struct lab_job *job = &rank->worker->job;
    for (int i = 0; job->launcher && i < job->rank_count; i++)
        if (job->ranks[i].numa_node != rank->job->numa_node)
            return -1;
    return rank->job->numa_node;
}

static int verify(struct rank *rank, struct lab_err *err) {
    const struct worker *worker = rank->worker;
    if (!worker->job.verify || atomic_load(&worker->stopping))
        return 0;
    uint64_t seed = lab_random_bits(rank->session.rank.seed, VERIFY_DRAW);
    if (lab_session_verify(&rank->session, seed, err) < 0)
        return lab_err_context(err, "verifying");
    const char *why = lab_session_why_wrong(&rank->session);
    if (!why)
        return 0;
    lab_err_set(err, LAB_ERR_WRONG, "wrong results: %s", why);
    return lab_err_hint(err, LAB_HINT_WRONG_RESULTS);
}

/* --- measuring --- */

/*
 * The last thing before the measurement: from here on all ranks of the gang go together. It rests
 * before it says that it is ready, so that all do when they are sent off: one that rested only then
 * would let a simulated world go on without it, and on waking would wake those who have come to
 * their next meeting and wait there for it.
 */
static void wait_for_go(struct rank *rank) {
    lab_device_rest(rank->session.device);
    worker_send(rank->worker,
                &(struct lab_frame){.type = LAB_FRAME_READY, .rank = rank->job->index});
    rank->go = worker_wait_go(rank->worker);
    lab_device_wake(rank->session.device);
    if (rank->go)
        tell_phase(rank, "measuring");
}

static bool on_progress(void *state, const struct lab_measure_progress *now) {
    struct rank *rank = state;
    const struct lab_job *job = &rank->worker->job;
    bool warming = now->phase == LAB_MEASURE_WARMUP;
    int64_t total = job->duration_s > 0 ? 0 : job->iterations;
    if (warming)
        total = job->warmup_iterations;
    if (!atomic_load(&rank->tells_progress))
        tell_progress(rank, now->iterations, total, now->iterations == total);
    if (warming && now->iterations >= job->warmup_iterations)
        wait_for_go(rank);
    return atomic_load(&rank->worker->stopping);
}

/* Ranks that iterate together have the same stretches: a workload may do a sum more in each. */
static int agree(void *state, int64_t own, int64_t *ret_size, struct lab_err *err) {
    return worker_agree(state, own, ret_size, err);
}

static int measure(struct rank *rank, struct lab_err *err) {
    const struct lab_job *job = &rank->worker->job;
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.iterations = job->duration_s > 0 ? 0 : job->iterations;
    plan.duration_s = job->duration_s;
    plan.max_iterations = ITERATIONS_MOST;
    plan.warmup_iterations = job->warmup_iterations;
    plan.agree = agree;
    plan.agree_state = rank;
    if (rank->worker->group && job->duration_s > 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "experiment.duration: ranks that work together do a number of "
                           "iterations; set experiment.test.num_steps instead");
    bool choices = rank->job->choice_count > 1;
    if (job->warmup_iterations > 0 || choices)
        tell_phase(rank, "warm-up");
    else
        wait_for_go(rank);
    if (atomic_load(&rank->worker->stopping))
        return 0;
    if (choices ? worker_measure_choices(rank, &plan, wait_for_go, err) < 0
                : lab_session_measure(&rank->session, &plan, NULL, 1, &rank->arena,
                                      &rank->measurement, err) < 0)
        return -1;
    int64_t count = (int64_t)rank->measurement.count;
    if (job->duration_s > 0 && !atomic_load(&rank->tells_progress))
        tell_progress(rank, count, 0, true);
    return 0;
}

/* --- after it has measured --- */

static void tell_result(struct rank *rank) {
    struct worker *worker = rank->worker;
    const struct lab_job *job = &worker->job;
    worker_complete_result(rank);
    /* before it is sent: the acknowledgement may be here before this thread goes on */
    pthread_mutex_lock(&worker->mutex);
    worker->results_left -= job->launcher ? job->rank_count : 1;
    pthread_mutex_unlock(&worker->mutex);
    worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_RESULT,
                                            .rank = rank->job->index,
                                            .result = &rank->result});
    for (int i = 1; job->launcher && i < job->rank_count; i++) {
        struct lab_result other = worker_launched_result(rank, i);
        worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_RESULT,
                                                .rank = job->ranks[i].index,
                                                .result = &other});
    }
}

/* --- the whole --- */

static int use_workload(struct rank *rank, struct lab_err *err) {
    const struct lab_device *device = rank->session.device;
    if (verify(rank, err) < 0 || measure(rank, err) < 0)
        return -1;
    if (atomic_load(&rank->worker->stopping))
        return 0;
    worker_tell_last_metrics(rank);
    if (rank->measurement.count == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "nothing was measured");
    lab_session_prove(&rank->session);
    if (rank->worker->job.probe && device && worker_meet(rank, true, true)) {
        tell_phase(rank, "probing");
        worker_probe(rank);
    }
    if (!rank->session.ref.simulated) /* what the simulator itself takes says nothing */
        rank->result.peak_memory_mb = worker_peak_memory_mib(rank->worker, &rank->arena);
    if (device) {
        rank->result.device_memory_mb = (double)device->buffer_bytes_most / (1024.0 * 1024.0);
        rank->result.share_note = lab_device_share_note(device);
    }
    if (worker_wants_trace(rank->worker) && worker_meet(rank, false, true)) {
        tell_phase(rank, "tracing");
        worker_trace(rank);
    }
    rank->end_ns = device ? lab_clock_now(device->clock) : 0;
    worker_tell_samples(rank);
    return 0;
}

/*
 * Ends the others, who must not wait for this one. The runner is told before they learn of it: else
 * the first of them would tell it that another has failed, and where.
 */
static void tell_failure(struct rank *rank, const char *where, const struct lab_err *err) {
    struct worker *worker = rank->worker;
    struct lab_err whole = *err;
    if (where)
        lab_err_context(&whole, "%s", where);
    if (worker_stop(worker))
        worker_send(worker,
                    &(struct lab_frame){.type = LAB_FRAME_FAILURE,
                                        .rank = rank->job->index,
                                        .failure = {whole.code ? whole.code : LAB_ERR_SYSTEM,
                                                    whole.text, whole.hint}});
    lab_group_fail(worker->group, rank->job->index, &whole);
}

static int use_device(struct rank *rank, struct lab_err *err) {
    struct lab_session *session = &rank->session;
    if (lab_session_open_device(session, err) < 0)
        return -1;
    rank->overlaps = session->device && session->device->info.overlaps;
    int result = worker_disturb_start(rank, err);
    if (result == 0 && rank->worker->job.tune_s > 0) {
        tell_phase(rank, "tuning");
        result = worker_tune(rank, err);
    }
    if (result == 0)
        result = lab_session_open(session, err);
    if (session->opened) {
        result = worker_configure(rank, err);
        if (result == 0)
            result = use_workload(rank, err);
        if (result < 0) /* before it closes, which waits for the others */
            tell_failure(rank, session->ref.name, err);
        lab_session_close_workload(session);
    }
    worker_disturb_stop(rank);
    lab_session_close(session);
    return result;
}

static void prepare(struct rank *rank) {
    struct worker *worker = rank->worker;
    const struct lab_job *job = &worker->job;
    rank->session = (struct lab_session){
        .machine = worker->machine,
        .workload = worker->workload,
        .config = worker->config,
        .arena = &rank->arena,
        .listener = {.phase = tell_phase,
                     .progress = on_progress,
                     .iterations = on_iterations,
                     .sink = {.metrics = on_metrics,
                              .progress = on_workload_progress,
                              .output = on_output,
                              .held = on_held,
                              .stopped = on_stopped,
                              .state = rank,
                              .warning = on_warning,
                              .notice = on_notice}},
        .rank = {.numa_node = find_node(rank),
                 .index = rank->job->index,
                 .count = job->gang_size,
                 .seed = worker->workload->external /* a program is told the study's own */
                             ? job->seed
                             : lab_random_bits(job->seed, (uint64_t)rank->job->index),
                 .gpu_id = rank->job->gpu_id,
                 .repeat = job->repeat,
                 .port = job->port,
                 .run_id = job->run_id,
                 .folder = *job->folder ? job->folder : NULL,
                 .group = worker->group},
        .setup = {.gang = job->rank_count,
                  .seed = job->chance,
                  .start_ns = job->start_ns,
                  .stopped = &worker->stopping,
                  .disturb = job->disturb},
    };
}

static int carry_out(struct rank *rank, struct lab_err *err) {
    bool simulated = rank->worker->job.machine; /* its nodes aren't this machine's */
    prepare(rank);
    if (!simulated && lab_session_bind(&rank->session, err) < 0)
        return lab_err_context(err, "NUMA node %d", rank->job->numa_node);
    if ((!simulated && worker_bind(rank, err) < 0) ||
        (rank->worker->job.launcher ? choose_gang(rank, err)
                                    : choose_device(rank, rank->job->device, err)) < 0)
        return -1;
    return use_device(rank, err) < 0 ? lab_err_context(err, "%s", rank->session.ref.name) : 0;
}

void *worker_rank_main(void *opaque) {
    struct rank *rank = opaque;
    struct worker *worker = rank->worker;
    struct lab_err err = LAB_ERR_INIT;
    lab_arena_init(&rank->arena);
    rank->result = lab_result_none;
    if (carry_out(rank, &err) < 0)
        tell_failure(rank, NULL, &err);
    else if (!atomic_load(&worker->stopping))
        tell_result(rank);
    lab_arena_release(&rank->arena);
    return NULL;
}
