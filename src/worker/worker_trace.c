/*
 * worker_trace.c: a short pass under the device's eye, after the timed one and in the same state,
 * so that a trace shows how the run went and its figures know nothing of it. Whatever goes wrong
 * here is a warning: the run itself has succeeded by then.
 *
 * The names of the ranges are those that readers of such traces know: test_double_buffer around the
 * whole, batch_i, h2d_batch_i, compute_batch_i and d2h_batch_i in it, from the iterations' records.
 * They follow the device and not the host, which is far ahead of it, and the whole closes behind
 * the last wait, so that no tail is lost.
 */
#include "worker/worker_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/own.h"
#include "stats/stats.h"
#include "store/trace/trace.h"
#include "version.h"

#include <math.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORDS_MOST     (1 << 16)
#define SECONDS_MOST     0.5
#define ITERATIONS_MOST  32 /* and less where they would take longer */
#define ITERATIONS_MIN   3  /* fewer show no batch under its neighbours */
#define WARMUP_MOST      2  /* what tracing does at first use is not what it costs */
#define ROOM_LEAST_BYTES ((uint64_t)64 << 20)
#define RANGES_EACH      (LAB_STAGE_COUNT + 2)

struct pass {
    struct rank *rank;
    int count;
    struct lab_iteration *records;
    int64_t warmup_start_ns, start_ns, end_ns;
    struct lab_trace trace;
    double overhead; /* NaN = unknown */
};

/* --- the pass --- */

/* As many as fit into the time, as far as the timed pass had so many. */
static int choose_count(const struct lab_measurement *m) {
    double each_s = m->wall_s / (double)m->count;
    double fit = each_s > 0 ? SECONDS_MOST / each_s : ITERATIONS_MOST;
    int count = fit < ITERATIONS_MOST ? (int)fit : ITERATIONS_MOST;
    count = count < ITERATIONS_MIN ? ITERATIONS_MIN : count;
    return (size_t)count < m->count ? count : (int)m->count;
}

static int run_pass(struct pass *pass, struct lab_err *err) {
    struct rank *rank = pass->rank;
    const struct lab_workload *workload = rank->worker->workload;
    const struct lab_clock *clock = rank->session.device->clock;
    struct lab_iteration unused[WARMUP_MOST];
    int warmup = pass->count > ITERATIONS_MIN ? WARMUP_MOST : 1; /* few are those that take long */
    char place[32]; /* of a test that lets one rank of several fail */
    snprintf(place, sizeof place, "trace-of-rank-%d", rank->job->index);
    pass->warmup_start_ns = lab_clock_now(clock);
    if (lab_failpoint_error(place, err) < 0 ||
        workload->run(rank->session.state, warmup, unused, err) < 0)
        return -1;
    pass->start_ns = lab_clock_now(clock);
    if (workload->run(rank->session.state, pass->count, pass->records, err) < 0)
        return -1;
    pass->end_ns = lab_clock_now(clock);
    return 0;
}

/*
 * Tracing stops whatever the pass comes to. Ranks meet before that: what is traced is then all of
 * them side by side, and none takes its records while others still make some. Of ranks that work
 * together none goes on without one that has failed: it would wait for it until the group's limit.
 */
static int carry_out(struct pass *pass, struct lab_err *err) {
    struct rank *rank = pass->rank;
    struct worker *worker = rank->worker;
    struct lab_err second = LAB_ERR_INIT;
    bool begun = lab_device_trace_begin(rank->session.device, RECORDS_MOST, err) == 0;
    int failed = begun ? run_pass(pass, err) : -1;
    if (failed)
        lab_group_fail(worker->group, rank->job->index, err);
    worker_meet(rank, false, true);
    int not_ended = begun && lab_device_trace_end(rank->session.device, &rank->arena, &pass->trace,
                                                  failed ? &second : err);
    return failed || not_ended ? -1 : 0;
}

/*
 * How much longer an iteration took than in the timed pass: medians of the time between two ends,
 * or of latencies where there are no intervals. Within the noise of both it may be below 0.
 */
static double find_overhead(const struct pass *pass) {
    const struct lab_measurement *m = &pass->rank->measurement;
    double values[ITERATIONS_MOST];
    bool intervals = pass->count > 1 && m->interval.n > 0;
    size_t n = 0;
    for (int i = intervals ? 1 : 0; i < pass->count; i++) {
        const struct lab_iteration *record = &pass->records[i];
        int64_t since_ns = intervals ? pass->records[i - 1].end_ns : record->start_ns;
        values[n++] = (double)(record->end_ns - since_ns) / (double)LAB_NS_PER_S;
    }
    double untraced_s = intervals ? m->interval.median : m->latency.median;
    return untraced_s > 0 ? lab_stats_median(values, n) / untraced_s - 1 : NAN;
}

/* --- ranges and notes --- */

static void add_range(struct lab_trace *trace, const char *text, int64_t start_ns, int64_t end_ns) {
    trace->ranges[trace->range_count++] =
        (struct lab_trace_range){.start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .text = text,
                                 .thread = (uint32_t)syscall(SYS_gettid),
                                 .kind = LAB_TRACE_RANGE_NESTED};
}

static void add_stage(struct pass *pass, int i, enum lab_stage stage, const char *name) {
    const struct lab_span *span = &pass->records[i].stages[stage];
    if (span->end_ns)
        add_range(&pass->trace, lab_arena_printf(&pass->rank->arena, "%s_%d", name, i),
                  span->start_ns, span->end_ns);
}

static void add_ranges(struct pass *pass) {
    struct rank *rank = pass->rank;
    struct lab_trace *trace = &pass->trace;
    const char *compute = rank->worker->workload->compute_range;
    trace->ranges =
        lab_arena_alloc(&rank->arena, (size_t)pass->count * RANGES_EACH + 2, sizeof *trace->ranges);
    add_range(trace, LAB_TRACE_WARMUP, pass->warmup_start_ns, pass->start_ns);
    add_range(trace, LAB_TRACE_WINDOW, pass->start_ns, pass->end_ns);
    for (int i = 0; i < pass->count; i++) {
        const struct lab_iteration *record = &pass->records[i];
        add_range(trace, lab_arena_printf(&rank->arena, "batch_%d", i), record->start_ns,
                  record->end_ns);
        add_stage(pass, i, LAB_STAGE_H2D, "h2d_batch");
        add_stage(pass, i, LAB_STAGE_COMPUTE, "compute_batch");
        if (compute)
            add_stage(pass, i, LAB_STAGE_COMPUTE, compute);
        add_stage(pass, i, LAB_STAGE_D2H, "d2h_batch");
    }
}

static void add_notes(struct pass *pass) {
    struct rank *rank = pass->rank;
    struct lab_trace *trace = &pass->trace;
    struct lab_arena *arena = &rank->arena;
    const struct lab_trace_note own[] = {
        {LAB_TRACE_NOTE_MAKER, "gpulab " LAB_VERSION},
        {LAB_TRACE_NOTE_RUN, rank->worker->job.run_id},
        {LAB_TRACE_NOTE_DEVICE, rank->session.ref.name},
        {LAB_TRACE_NOTE_ITERATIONS, lab_arena_printf(arena, "%d", pass->count)},
        {LAB_TRACE_NOTE_OVERHEAD,
         isnan(pass->overhead) ? NULL : lab_arena_printf(arena, "%.4f", pass->overhead)},
        {LAB_TRACE_NOTE_DROPPED, lab_arena_printf(arena, "%lld", (long long)trace->dropped)},
    };
    size_t count = sizeof own / sizeof *own;
    struct lab_trace_note *notes = lab_arena_alloc(arena, trace->note_count + count, sizeof *notes);
    memcpy(notes, own, sizeof own);
    for (size_t i = 0; i < trace->note_count; i++)
        notes[count + i] = trace->notes[i];
    trace->notes = notes;
    trace->note_count += count;
}

/* --- the file --- */

/* Below the study's folder. A run id is unique in its study; ranks of a gang have a file each. */
static const char *path_of(struct rank *rank) {
    const struct lab_job *job = &rank->worker->job;
    if (job->gang_size == 1)
        return lab_arena_printf(&rank->arena, "traces/pipeline_%s.sqlite", job->run_id);
    return lab_arena_printf(&rank->arena, "traces/pipeline_%s_rank%d.sqlite", job->run_id,
                            rank->job->index);
}

static int save(struct pass *pass, const char *path, struct lab_err *err) {
    struct rank *rank = pass->rank;
    const char *study = rank->worker->job.folder;
    const char *folder = lab_arena_printf(&rank->arena, "%s/traces", study);
    if (lab_own_folder(folder, err) < 0)
        return -1;
    return lab_trace_write(lab_arena_printf(&rank->arena, "%s/%s", study, path), &pass->trace, err);
}

/* On a disk that is nearly full, what is left belongs to results. */
static int check_room(const char *folder, struct lab_err *err) {
    struct statvfs disk;
    if (statvfs(folder, &disk) < 0 || disk.f_bavail >= ROOM_LEAST_BYTES / disk.f_frsize)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "less than %lld MiB are free in %s",
                       (long long)(ROOM_LEAST_BYTES >> 20), folder);
}

static int trace(struct pass *pass, struct lab_err *err) {
    struct rank *rank = pass->rank;
    const char *path = path_of(rank);
    if (carry_out(pass, err) < 0 || check_room(rank->worker->job.folder, err) < 0)
        return -1;
    pass->overhead = find_overhead(pass);
    add_ranges(pass);
    add_notes(pass);
    if (save(pass, path, err) < 0)
        return -1;
    rank->result.trace_path = path;
    rank->result.trace_iterations = pass->count;
    rank->result.trace_overhead = pass->overhead;
    if (pass->trace.dropped > 0)
        rank->trace_warning =
            lab_arena_printf(&rank->arena, "the trace lacks %lld of its records: buffer full",
                             (long long)pass->trace.dropped);
    return 0;
}

bool worker_wants_trace(const struct worker *worker) {
    return worker->job.trace && *worker->job.folder && !worker->workload->external;
}

void worker_trace(struct rank *rank) {
    struct lab_err err = LAB_ERR_INIT;
    struct pass pass = {.rank = rank};
    int64_t count;
    /* ranks that work together do as many as the one that would do least */
    if (worker_agree(rank, choose_count(&rank->measurement), &count, &err) < 0) {
        rank->trace_warning = lab_arena_printf(&rank->arena, "no trace: %s", err.text);
        return;
    }
    pass.count = (int)count;
    pass.records = lab_arena_alloc(&rank->arena, (size_t)pass.count, sizeof *pass.records);
    if (trace(&pass, &err) < 0)
        rank->trace_warning = lab_arena_printf(&rank->arena, "no trace: %s", err.text);
}
