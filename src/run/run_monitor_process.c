/*
 * run_monitor_process.c: whose processes were on which GPU. A run's own are its workers and what
 * descends from them, at any depth: a launcher starts processes that start others. Anyone else on
 * the run's GPUs spoils it, and so do its own processes on GPUs that it wasn't given, whose energy
 * and memory its result doesn't have.
 */
#include "run/run_monitor_internal.h"

#include "run/launch/process_tree.h"

#include <math.h>
#include <unistd.h>

#define GENERATIONS_MAX 64

/* --- whose they are --- */

/* From the parent that it was listed with: the process itself may have ended since. */
static pid_t find_child(pid_t pid, pid_t parent) {
    struct lab_process process;
    pid_t self = getpid();
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++) {
        if (parent == self)
            return pid;
        pid = parent;
        if (!lab_process_read(pid, &process))
            return 0;
        parent = process.parent;
    }
    return 0;
}

static struct monitor_process *find_noted(const struct monitor_processes *processes,
                                          const struct lab_process_sample *sample) {
    for (int i = processes->count - 1; i >= 0; i--)
        if (processes->items[i].pid == sample->pid && processes->items[i].start == sample->start)
            return &processes->items[i];
    return NULL;
}

/* One whose parent has ended stays whose it was. */
static void note(struct monitor_processes *processes, const struct lab_process_sample *sample) {
    struct monitor_process *known = find_noted(processes, sample);
    if (known && (known->child || known->parent == sample->parent_pid))
        return;
    if (!known)
        known = &LAB_PUSH(processes->items, processes->count);
    *known = (struct monitor_process){.pid = sample->pid,
                                      .parent = sample->parent_pid,
                                      .child = find_child(sample->pid, sample->parent_pid),
                                      .start = sample->start};
    processes->has_own |= known->child > 0;
}

void monitor_processes_note(struct monitor_processes *processes,
                            const struct lab_process_list *list) {
    for (int i = 0; i < list->count; i++)
        if (*list->items[i].name && list->items[i].gpu_count > 0)
            note(processes, &list->items[i]);
}

static bool is_listed(const struct monitor_view *view, pid_t pid) {
    for (int i = 0; i < view->question->own_count; i++)
        if (view->question->own[i] == pid)
            return true;
    return false;
}

static pid_t child_of(const struct monitor_view *view, const struct lab_process_sample *sample) {
    const struct monitor_process *known = find_noted(view->processes, sample);
    return known ? known->child : 0;
}

static bool is_own(const struct monitor_view *view, const struct lab_process_sample *sample) {
    return is_listed(view, sample->pid) || is_listed(view, sample->parent_pid) ||
           is_listed(view, child_of(view, sample));
}

/* --- where they were --- */

static const struct lab_process_gpu *find_use(const struct lab_process_sample *process, int track,
                                              int whole) {
    for (int i = 0; i < process->gpu_count; i++)
        if (process->gpus[i].entity == track || process->gpus[i].entity == whole)
            return &process->gpus[i];
    return NULL;
}

/*
 * From when on lists tell who was on the GPU since the run began. Who is on it is read once a
 * second; a list that is made before that still has the last run's worker. So the GPU has to have
 * told it since, and a tick later than that is sure to find it written down.
 */
static int64_t find_fresh(const struct lab_track *track, int64_t start_ns) {
    int column = lab_entity_column(&track->entity, LAB_METRIC_PROCESSES, -1);
    bool told = false;
    for (size_t i = 0; column >= 0 && track->values[column] && i < track->count; i++) {
        if (told)
            return track->times_ns[i];
        told = track->times_ns[i] >= start_ns && track->valid[column][i];
    }
    return INT64_MAX;
}

static bool was_there_before(const struct monitor_view *view, pid_t pid, int track, int whole) {
    const struct lab_recording *recording = view->recording;
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        for (int j = 0; list->time_ns < view->question->start_ns && j < list->count; j++)
            if (list->items[j].pid == pid && find_use(&list->items[j], track, whole))
                return true;
    }
    return false;
}

/* --- others --- */

/* The service through which the processes of several share a GPU; what they do counts, it does
 * nothing itself. */
static bool is_service(const struct lab_process_sample *process) {
    return lab_str_starts(process->name, "nvidia-cuda-mps");
}

/* In a container the driver may give numbers that mean nothing here: then only who was there before
 * the run is known to be another's. */
static bool is_foreign(const struct monitor_view *view, const struct lab_process_sample *process,
                       int track, int whole) {
    pid_t runner = view->question->runner;
    bool of_other = runner && (process->parent_pid == runner ||
                               (view->question->shares && child_of(view, process)));
    if (is_own(view, process) || is_service(process) || of_other)
        return false;
    return *process->name || was_there_before(view, process->pid, track, whole);
}

static bool is_known(const struct lab_result *result, pid_t pid) {
    for (int i = 0; i < result->foreign_processes.count; i++)
        if (result->foreign_processes.items[i].pid == pid)
            return true;
    return false;
}

void monitor_find_foreign(const struct monitor_view *view, int track, int whole,
                          struct lab_result *result) {
    const struct lab_recording *recording = view->recording;
    int64_t fresh_ns = find_fresh(&recording->tracks[track], view->question->start_ns);
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        for (int j = 0; list->time_ns >= fresh_ns && j < list->count; j++) {
            const struct lab_process_sample *process = &list->items[j];
            const struct lab_process_gpu *use = find_use(process, track, whole);
            if (!use || !is_foreign(view, process, track, whole) || is_known(result, process->pid))
                continue;
            struct lab_result_process *seen =
                LAB_RESULT_ADD(result, foreign_processes, view->arena);
            seen->pid = process->pid;
            seen->name = *process->name ? process->name : NULL;
            seen->user = *process->user ? process->user : NULL;
            seen->memory_mb =
                use->memory_bytes < 0 ? (double)NAN : (double)use->memory_bytes / 0x1p20;
        }
    }
}

/* --- its own, elsewhere --- */

static void spoil_strayed(const struct monitor_view *view, int track,
                          const struct lab_process_sample *process, struct lab_result *results) {
    const char *sentence = lab_arena_printf(
        view->arena, "the program used GPU %d, which the run did not have: %s (%d)",
        view->recording->tracks[track].entity.index, process->name, (int)process->pid);
    for (int i = 0; i < view->question->rank_count; i++)
        lab_result_spoil(&results[i], view->arena, sentence);
}

void monitor_find_strayed(const struct monitor_view *view, const bool *given,
                          struct lab_result *results) {
    const struct lab_recording *recording = view->recording;
    bool *said = lab_arena_alloc(view->arena, (size_t)recording->track_count + 1, sizeof *said);
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        for (int j = 0; list->time_ns >= view->question->start_ns && j < list->count; j++) {
            const struct lab_process_sample *process = &list->items[j];
            for (int k = 0; k < process->gpu_count && *process->name; k++) {
                int at = process->gpus[k].entity;
                if (at < 0 || at >= recording->track_count || given[at] || said[at] ||
                    recording->tracks[at].entity.kind != LAB_ENTITY_GPU || !is_own(view, process) ||
                    was_there_before(view, process->pid, at, at))
                    continue;
                said[at] = true;
                spoil_strayed(view, at, process, results);
            }
        }
    }
}
