/*
 * runner_frame.c: hears the workers. frame.c has seen to it that a frame is well formed; here it
 * must also fit into the conversation (worker.h). What doesn't is a lie, and nothing that a liar
 * said counts: the attempt fails.
 */
#include "run/runner_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FRAMES_PER_S  20000
#define MAX_BYTES_PER_S   (256 << 20)
#define READS_AT_ONCE     16 /* then others have their turn */
#define PROGRESS_PAUSE_NS (100 * LAB_NS_PER_MS)

/* One line for people: what a worker sends must not play with their terminal. */
static void clean(const char *text, char *out, size_t size) {
    size_t length = strlen(text);
    if (length >= size)
        length = lab_str_utf8_prefix(text, size - 1);
    for (size_t i = 0; i < length; i++)
        out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    out[length] = '\0';
}

/* --- phases and progress --- */

/* A gang is in a phase once all its ranks are. */
static void hear_phase(struct runner *runner, struct runner_run *run, struct runner_rank *rank,
                       const char *text) {
    clean(text, rank->phase, sizeof rank->phase);
    rank->done = rank->total = 0;
    for (int i = 0; i < run->speaker_count; i++)
        if (strcmp(run->ranks[i].phase, rank->phase) != 0)
            return;
    if (strcmp(run->phase, rank->phase) == 0)
        return;
    memcpy(run->phase, rank->phase, sizeof run->phase);
    run->told_ns = 0;
    runner->progress_changed = true;
    runner_tell(runner, run,
                (struct lab_runner_event){.kind = LAB_RUNNER_PHASE, .text = run->phase});
}

const struct runner_rank *runner_run_slowest(const struct runner_run *run) {
    const struct runner_rank *slowest = &run->ranks[0];
    for (int i = 1; i < run->speaker_count; i++)
        if (run->ranks[i].done < slowest->done)
            slowest = &run->ranks[i];
    return slowest;
}

static void hear_progress(struct runner *runner, struct runner_run *run, struct runner_rank *rank,
                          const struct lab_frame *frame, int64_t now_ns) {
    rank->done = frame->progress.done;
    rank->total = frame->progress.total;
    runner->progress_changed = true;
    const struct runner_rank *slowest = runner_run_slowest(run);
    bool complete = slowest->total > 0 && slowest->done == slowest->total;
    if (run->told_ns > 0 && now_ns - run->told_ns < PROGRESS_PAUSE_NS && !complete)
        return;
    run->told_ns = now_ns;
    runner_tell(runner, run,
                (struct lab_runner_event){.kind = LAB_RUNNER_PROGRESS,
                                          .text = run->phase,
                                          .done = slowest->done,
                                          .total = slowest->total});
}

/* --- what is kept --- */

static int check_iterations(const struct runner *runner, const struct runner_run *run,
                            const struct runner_rank *rank, const struct lab_frame *frame,
                            struct lab_err *err) {
    int64_t first = frame->iterations.first, count = (int64_t)frame->iterations.count;
    int64_t planned = run->item->planned->iterations;
    if (!run->all_ready)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent iterations before its GO");
    if (rank->result)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent iterations after its result");
    if (first != rank->next_iteration)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "it sent iterations from %lld on, where %lld was the next",
                           (long long)first, (long long)rank->next_iteration);
    if (runner_run_duration_s(runner, run->item->planned) <= 0 && planned > 0 &&
        first + count > planned)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent %lld iterations, but %lld were asked for",
                           (long long)(first + count), (long long)planned);
    return 0;
}

static void hear_time(struct runner_run *run, int64_t time_ns) {
    run->heard_ns = time_ns > run->heard_ns ? time_ns : run->heard_ns;
}

static int hear_iterations(struct runner *runner, struct runner_run *run, struct runner_rank *rank,
                           const struct lab_frame *frame, struct lab_err *err) {
    struct lab_err refusal = LAB_ERR_INIT;
    if (check_iterations(runner, run, rank, frame, err) < 0)
        return -1;
    if (lab_store_add_iterations(runner->spec->store, run->item->number, frame->rank,
                                 frame->iterations.first, frame->iterations.items,
                                 frame->iterations.count, &refusal) < 0)
        runner_give_up(runner, &refusal, true);
    rank->next_iteration += (int64_t)frame->iterations.count;
    for (size_t i = 0; i < frame->iterations.count; i++)
        hear_time(run, frame->iterations.items[i].end_ns);
    return 0;
}

/* --- samples of a simulated machine --- */

static int check_samples(const struct runner *runner, const struct runner_run *run,
                         const struct lab_frame *frame, struct lab_err *err) {
    if (!runner->simulated)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent samples, but its devices are real");
    if (frame->type == LAB_FRAME_ENTITY)
        return 0;
    for (size_t i = 0; i < frame->ticks.count; i++)
        if (frame->ticks.times_ns[i] < run->start_ns)
            return lab_err_set(err, LAB_ERR_SYSTEM, "it sent a sample from before it began");
    return 0;
}

static int hear_samples(struct runner *runner, struct runner_run *run,
                        const struct lab_frame *frame, struct lab_err *err) {
    if (check_samples(runner, run, frame, err) < 0)
        return -1;
    if (frame->type == LAB_FRAME_ENTITY) {
        lab_run_monitor_entity(runner->monitor, frame->entity.number, &frame->entity.entity);
        return 0;
    }
    for (size_t i = 0; i < frame->ticks.count; i++) {
        size_t columns = (size_t)frame->ticks.column_count;
        if (lab_run_monitor_tick(runner->monitor, frame->ticks.number, frame->ticks.times_ns[i],
                                 frame->ticks.values + i * columns, frame->ticks.column_count) < 0)
            return lab_err_set(err, LAB_ERR_SYSTEM, "it sent samples of an unknown entity");
        hear_time(run, frame->ticks.times_ns[i]);
    }
    return 0;
}

/* One that a program labels with a rank is that rank's, whichever rank read it. */
static void hear_metrics(struct runner *runner, struct runner_run *run,
                         const struct lab_frame *frame, struct lab_arena *arena) {
    struct lab_err refusal = LAB_ERR_INIT;
    size_t count = frame->metrics.count;
    struct lab_store_metric *metrics = lab_arena_alloc(arena, count + 1, sizeof *metrics);
    for (size_t i = 0; i < count; i++) {
        const struct lab_reported_metric *metric = &frame->metrics.items[i];
        char name[256], unit[64];
        clean(metric->name, name, sizeof name);
        clean(metric->unit, unit, sizeof unit);
        metrics[i] =
            (struct lab_store_metric){.name = lab_arena_strdup(arena, name),
                                      .unit = lab_arena_strdup(arena, unit),
                                      .rank = metric->rank < 0 ? frame->rank : metric->rank,
                                      .value = metric->value,
                                      .time_ns = metric->time_ns,
                                      .step = metric->step};
    }
    if (lab_store_add_metrics(runner->spec->store, run->item->number, metrics, count, &refusal) < 0)
        runner_give_up(runner, &refusal, true);
    for (size_t i = 0; i < count; i++)
        runner_tell(runner, run,
                    (struct lab_runner_event){.kind = LAB_RUNNER_METRIC,
                                              .text = metrics[i].name,
                                              .value = metrics[i].value});
}

/* --- the order of things --- */

static int hear_ready(struct runner_run *run, struct runner_rank *rank, struct lab_err *err) {
    if (rank->ready)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent READY twice");
    rank->ready = true;
    for (int i = 0; i < run->speaker_count; i++)
        if (!run->ranks[i].ready)
            return 0;
    run->all_ready = true;
    for (int i = 0; i < run->worker_count; i++)
        runner_say(&run->workers[i], &(struct lab_frame){.type = LAB_FRAME_GO});
    return 0;
}

/* A worker that dies instead fails the run, which ends those that wait for it. */
static int hear_meet(struct runner_run *run, struct runner_worker *worker, bool willing,
                     struct lab_err *err) {
    if (!run->all_ready || worker->waits)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent MEET out of turn");
    worker->waits = true;
    run->unwilling |= !willing;
    for (int i = 0; i < run->worker_count; i++)
        if (!run->workers[i].waits)
            return 0;
    for (int i = 0; i < run->worker_count; i++) {
        run->workers[i].waits = false;
        runner_say(&run->workers[i],
                   &(struct lab_frame){.type = LAB_FRAME_MEET, .willing = !run->unwilling});
    }
    run->unwilling = false;
    return 0;
}

static int hear_result(struct runner_run *run, struct runner_rank *rank,
                       const struct lab_frame *frame, struct lab_err *err) {
    if (!run->all_ready)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent RESULT before GO");
    if (rank->result)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent RESULT twice");
    rank->result = lab_result_copy(frame->result, &run->arena);
    return 0;
}

static int hear_hello(const struct runner_run *run, const struct lab_frame *frame,
                      struct lab_err *err) {
    if (frame->hello.version != LAB_FRAME_VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it uses protocol version %d, not %d",
                           frame->hello.version, LAB_FRAME_VERSION);
    if (frame->hello.rank_count != run->item->planned->rank_count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it reports %d ranks, the run has %d",
                           frame->hello.rank_count, run->item->planned->rank_count);
    return 0;
}

static void hear_failure(struct runner_run *run, struct runner_worker *worker,
                         const struct lab_frame *frame) {
    struct lab_err why = {.code = frame->failure.code, .hint = frame->failure.hint};
    clean(frame->failure.text, why.text, sizeof why.text);
    if (worker->rank_count > 1 && run->speaker_count > 1) /* else it is known whose it is */
        lab_err_context(&why, "rank %d", frame->rank);
    runner_run_fail(run, worker, &why);
    run->last_word = run->failed_worker == worker;
}

static int hear_frame(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                      const struct lab_frame *frame, struct lab_arena *arena, int64_t now_ns,
                      struct lab_err *err) {
    if (frame->type == LAB_FRAME_HELLO)
        return hear_hello(run, frame, err);
    if (frame->rank < worker->first_rank || frame->rank >= worker->first_rank + worker->rank_count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it sent a frame of rank %d of another worker",
                           frame->rank);
    struct runner_rank *rank = &run->ranks[frame->rank];
    char text[1024];
    switch (frame->type) {
    case LAB_FRAME_PHASE:
        hear_phase(runner, run, rank, frame->text);
        return 0;
    case LAB_FRAME_PROGRESS:
        hear_progress(runner, run, rank, frame, now_ns);
        return 0;
    case LAB_FRAME_ITERATIONS:
        return hear_iterations(runner, run, rank, frame, err);
    case LAB_FRAME_METRICS:
        hear_metrics(runner, run, frame, arena);
        return 0;
    case LAB_FRAME_WARNING:
        clean(frame->text, text, sizeof text);
        runner_warn(runner, run, "%s", text);
        return 0;
    case LAB_FRAME_ENTITY:
    case LAB_FRAME_TICKS:
        return hear_samples(runner, run, frame, err);
    case LAB_FRAME_READY:
        return hear_ready(run, rank, err);
    case LAB_FRAME_MEET:
        return hear_meet(run, worker, frame->willing, err);
    case LAB_FRAME_RESULT:
        return hear_result(run, rank, frame, err);
    case LAB_FRAME_FAILURE:
        hear_failure(run, worker, frame);
        return 0;
    case LAB_FRAME_HELLO:
    case LAB_FRAME_ACK:
    case LAB_FRAME_JOB:
    case LAB_FRAME_GO:
        break;
    }
    return lab_err_set(err, LAB_ERR_SYSTEM, "it sent a frame that only its runner sends");
}

/* --- bytes --- */

static bool is_flood(struct runner_worker *worker, int64_t frames, int64_t bytes, int64_t now_ns) {
    if (now_ns - worker->second_ns >= LAB_NS_PER_S) {
        worker->second_ns = now_ns;
        worker->second_frames = worker->second_bytes = 0;
    }
    worker->second_frames += frames;
    worker->second_bytes += bytes;
    return worker->second_frames > MAX_FRAMES_PER_S || worker->second_bytes > MAX_BYTES_PER_S;
}

static void decode(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                   size_t length, int64_t now_ns) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_frame frame;
    LAB_AUTO(arena, arena);
    lab_frame_reader_feed(&worker->reader, runner->chunk, length);
    bool flood = is_flood(worker, 0, (int64_t)length, now_ns);
    int got = 0;
    while (run->failure.code == LAB_ERR_NONE && runner->fatal.code == LAB_ERR_NONE && !flood &&
           (got = lab_frame_reader_next(&worker->reader, &arena, &frame, &err)) > 0) {
        flood = is_flood(worker, 1, 0, now_ns);
        if (hear_frame(runner, run, worker, &frame, &arena, now_ns, &err) < 0) {
            got = -1;
            break;
        }
    }
    if (got >= 0 && flood)
        lab_err_set(&err, LAB_ERR_SYSTEM, "it floods its runner with events");
    if (got < 0 || flood)
        runner_run_fail_wrong(run, worker, &err);
}

static void end_of_events(struct runner_worker *worker, int64_t now_ns) {
    close(worker->child.socket);
    worker->child.socket = -1;
    worker->closed = true;
    worker->closed_ns = now_ns;
}

/* false = there is nothing more for now. */
static bool hear_once(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                      int64_t now_ns) {
    if (worker->child.socket < 0)
        return false;
    ssize_t got = recv(worker->child.socket, runner->chunk, sizeof runner->chunk, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
        return true;
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        end_of_events(worker, now_ns);
        return false;
    }
    if (run->state == RUNNER_WORKING && run->failure.code == LAB_ERR_NONE)
        decode(runner, run, worker, (size_t)got, now_ns);
    return true;
}

void runner_hear(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                 int64_t now_ns) {
    for (int i = 0; i < READS_AT_ONCE; i++)
        if (!hear_once(runner, run, worker, now_ns))
            return;
}

void runner_hear_out(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                     int64_t now_ns) {
    /* bounded by the flood's limit: what comes behind a failure is only thrown away */
    while (run->failure.code == LAB_ERR_NONE && hear_once(runner, run, worker, now_ns))
        continue;
    if (!worker->closed)
        end_of_events(worker, now_ns);
}

/* --- saying --- */

void runner_say(struct runner_worker *worker, const struct lab_frame *frame) {
    lab_frame_write(frame, &worker->outgoing);
    runner_say_rest(worker);
}

/* What the socket doesn't take waits: a worker that doesn't listen can't hold the runner up. */
void runner_say_rest(struct runner_worker *worker) {
    while (worker->child.socket >= 0 && worker->sent < worker->outgoing.length) {
        ssize_t put = send(worker->child.socket, worker->outgoing.text + worker->sent,
                           worker->outgoing.length - worker->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return;
        if (put < 0)
            break;
        worker->sent += (size_t)put;
    }
    lab_str_clear(&worker->outgoing);
    worker->sent = 0;
}
