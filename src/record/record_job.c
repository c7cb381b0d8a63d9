/* record_job.c: who belongs to a job, from /proc: parents, control groups and environments. */
#include "record/record_job.h"

#include "base/file/file.h"
#include "base/list.h"
#include "base/str.h"
#include "run/launch/process_tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const job_variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", NULL};
static const char *const rank_variables[] = {
    "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK", NULL};
static const char *const world_variables[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                              "SLURM_NTASKS", NULL};
#define RANK_VARIABLES ((int)(sizeof rank_variables / sizeof *rank_variables) - 1)

/* --- environments --- */

/* The value of a variable in texts one after the other; NULL = it isn't set. */
static const char *find_variable(const char *text, size_t length, const char *name) {
    size_t name_length = strlen(name);
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (strncmp(text + at, name, name_length) == 0 && text[at + name_length] == '=')
            return text + at + name_length + 1;
    return NULL;
}

/* --- who belongs to it --- */

/* "…/job_123/step_0": as Slurm names its groups, in either version of control groups. */
static bool is_in_group(pid_t pid, const char *id) {
    char path[64], text[4096], part[128];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    snprintf(part, sizeof part, "/job_%s", id);
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    for (const char *at = text; (at = strstr(at, part)); at++) {
        char behind = at[strlen(part)];
        if (behind == '/' || behind == '\n' || behind == '\0')
            return true;
    }
    return false;
}

static bool names_job(pid_t pid, const char *id) {
    LAB_AUTO_FREE char *text = NULL;
    size_t length = lab_process_environment(pid, &text);
    for (int i = 0; length > 0 && job_variables[i]; i++)
        if (lab_str_equal(find_variable(text, length, job_variables[i]), id))
            return true;
    return false;
}

static void add_process(struct lab_record_job *job, const struct lab_process *process,
                        struct lab_arena *arena) {
    LAB_ADD(job->items, job->count, arena) =
        (struct lab_record_job_process){process->pid, process->parent, process->start, NULL, false};
}

/* Not we ourselves, who may have been started within the job. */
static bool is_candidate(const struct lab_process *process) {
    return !process->dead && process->pid != getpid();
}

/* Parents may have higher numbers than their children: rounds until none is new. */
static void add_tree(struct lab_record_job *job, const struct lab_process_tree *tree,
                     struct lab_arena *arena) {
    LAB_AUTO_FREE bool *taken = lab_mem_alloc((size_t)tree->count + 1, sizeof *taken);
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < tree->count; i++) {
            const struct lab_process *process = &tree->items[i];
            if (taken[i] || !is_candidate(process) ||
                (process->pid != job->root && !lab_record_job_process(job, process->parent)))
                continue;
            add_process(job, process, arena);
            taken[i] = grew = true;
        }
    }
}

/* Unless another way to tell found some. */
static void add_group(struct lab_record_job *job, const struct lab_process_tree *tree,
                      const char *id, bool (*belongs)(pid_t pid, const char *id),
                      struct lab_arena *arena) {
    if (job->count > 0)
        return;
    for (int i = 0; i < tree->count; i++)
        if (is_candidate(&tree->items[i]) && belongs(tree->items[i].pid, id))
            add_process(job, &tree->items[i], arena);
}

/* --- ranks --- */

struct environment {
    const char *ranks[RANK_VARIABLES];
    const char *world;
};

static struct environment read_environment(const struct lab_record_job_process *process,
                                           bool *ret_hidden, struct lab_arena *arena) {
    struct environment found = {.world = NULL};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)process->pid);
    if (access(path, R_OK) < 0 && errno == EACCES)
        *ret_hidden = true;
    LAB_AUTO_FREE char *text = NULL;
    size_t length = lab_process_environment(process->pid, &text);
    for (int v = 0; v < RANK_VARIABLES; v++) {
        const char *value = find_variable(text, length, rank_variables[v]);
        if (value && isdigit((unsigned char)*value) && strlen(value) < 12)
            found.ranks[v] = lab_arena_strdup(arena, value);
    }
    for (int v = 0; !found.world && world_variables[v]; v++) {
        const char *value = find_variable(text, length, world_variables[v]);
        found.world = value ? lab_arena_strdup(arena, value) : NULL;
    }
    return found;
}

/* The first that differs within the job; else the first that any process has; -1 = none. */
static int choose_variable(const struct environment *found, int count) {
    int any = -1;
    for (int v = 0; v < RANK_VARIABLES; v++) {
        const char *first = NULL;
        for (int i = 0; i < count; i++) {
            const char *value = found[i].ranks[v];
            if (value && first && !lab_str_equal(value, first))
                return v;
            first = first ? first : value;
        }
        any = any < 0 && first ? v : any;
    }
    return any;
}

static void find_ranks(struct lab_record_job *job, struct lab_arena *arena) {
    struct environment *found = lab_arena_alloc(arena, (size_t)job->count + 1, sizeof *found);
    for (int i = 0; i < job->count; i++)
        found[i] = read_environment(&job->items[i], &job->hidden, arena);
    int variable = choose_variable(found, job->count);
    if (variable < 0)
        return;
    job->variable = rank_variables[variable];
    for (int i = 0; i < job->count; i++) {
        job->items[i].rank = found[i].ranks[variable];
        if (found[i].ranks[variable] && found[i].world)
            job->world = (int)strtol(found[i].world, NULL, 10);
    }
    for (int i = 0; i < job->count; i++) {
        const struct lab_record_job_process *parent =
            lab_record_job_process(job, job->items[i].parent);
        job->items[i].leads =
            job->items[i].rank && !(parent && lab_str_equal(parent->rank, job->items[i].rank));
    }
}

/* --- the job --- */

static bool is_number(const char *word) {
    size_t digits = strspn(word, "0123456789");
    return digits > 0 && digits < 10 && word[digits] == '\0';
}

int lab_record_job_find(const char *word, struct lab_arena *arena, struct lab_record_job *ret_job,
                        struct lab_err *err) {
    struct lab_process_tree tree = {0};
    struct lab_record_job job = {.title = NULL};
    bool named = lab_str_starts(word, "job:");
    const char *id = named ? word + 4 : word;
    if ((!named && !is_number(word)) || !*id || strlen(id) > 64)
        return lab_err_set(err, LAB_ERR_USER, "'%s' is neither a process's number nor job:ID",
                           word);
    lab_process_tree_read(&tree);
    int32_t pid = named ? 0 : (int32_t)strtol(word, NULL, 10);
    const struct lab_process *process = lab_process_tree_find(&tree, pid);
    if (process && !process->dead) {
        job.root = pid;
        job.title = lab_arena_printf(arena, "process %d", (int)pid);
        add_tree(&job, &tree, arena);
    } else {
        job.title = lab_arena_printf(arena, "job %s", id);
        add_group(&job, &tree, id, is_in_group, arena);
        add_group(&job, &tree, id, names_job, arena);
    }
    lab_process_tree_release(&tree);
    if (job.count == 0)
        return lab_err_set(err, LAB_ERR_USER, "no %s%s runs on this host, or it can't be seen",
                           named ? "process of job " : "process or job ", id);
    find_ranks(&job, arena);
    *ret_job = job;
    return 0;
}

const struct lab_record_job_process *lab_record_job_process(const struct lab_record_job *job,
                                                            int32_t pid) {
    for (int i = 0; i < job->count; i++)
        if (job->items[i].pid == pid)
            return &job->items[i];
    return NULL;
}

int lab_record_job_ranks(const struct lab_record_job *job, struct lab_arena *arena,
                         int32_t **ret_pids) {
    int count = 0;
    *ret_pids = lab_arena_alloc(arena, (size_t)job->count + 1, sizeof **ret_pids);
    for (int i = 0; i < job->count; i++)
        if (job->items[i].leads)
            (*ret_pids)[count++] = job->items[i].pid;
    return count;
}

bool lab_record_job_has_ended(const struct lab_record_job *job) {
    for (int i = 0; i < job->count; i++) {
        struct lab_process now;
        if (job->root && job->items[i].pid != job->root)
            continue;
        if (lab_process_read(job->items[i].pid, &now) && now.start == job->items[i].start &&
            !now.dead)
            return false;
    }
    return true;
}

/* --- its part of a recording --- */

static bool is_used(const struct lab_record_job *job, const struct lab_recording *recording,
                    int track) {
    for (size_t l = 0; l < recording->process_count; l++)
        for (int p = 0; p < recording->processes[l].count; p++) {
            const struct lab_process_sample *process = &recording->processes[l].items[p];
            for (int g = 0; g < process->gpu_count && lab_record_job_process(job, process->pid);
                 g++)
                if (process->gpus[g].entity == track && process->gpus[g].compute)
                    return true;
        }
    return false;
}

/* The tracks are counted anew; false = it has no part in the job. */
static bool select_process(const struct lab_record_job *job, struct lab_process_sample *process,
                           const int *numbers, struct lab_arena *arena) {
    const struct lab_record_job_process *own = lab_record_job_process(job, process->pid);
    struct lab_process_gpu *gpus =
        lab_arena_alloc(arena, (size_t)process->gpu_count + 1, sizeof *gpus);
    int count = 0;
    for (int g = 0; g < process->gpu_count; g++)
        if (numbers[process->gpus[g].entity] >= 0) {
            gpus[count] = process->gpus[g];
            gpus[count++].entity = numbers[process->gpus[g].entity];
        }
    process->gpus = gpus;
    process->gpu_count = count;
    process->foreign = !own;
    process->rank = own && (own->leads || count > 0) ? own->rank : NULL;
    return own || count > 0;
}

void lab_record_job_select(const struct lab_record_job *job, const struct lab_recording *recording,
                           struct lab_arena *arena, struct lab_recording *ret_recording) {
    int *numbers = lab_arena_alloc(arena, (size_t)recording->track_count + 1, sizeof *numbers);
    *ret_recording = *recording;
    ret_recording->tracks =
        lab_arena_alloc(arena, (size_t)recording->track_count + 1, sizeof *ret_recording->tracks);
    ret_recording->track_count = 0;
    ret_recording->event_count = 0;
    for (int i = 0; i < recording->track_count; i++) {
        bool used = is_used(job, recording, i);
        numbers[i] = used ? ret_recording->track_count : -1;
        if (used)
            ret_recording->tracks[ret_recording->track_count++] = recording->tracks[i];
    }
    ret_recording->processes = lab_arena_copy(arena, recording->processes, recording->process_count,
                                              sizeof *recording->processes);
    for (size_t l = 0; l < recording->process_count; l++) {
        struct lab_process_list *list = &ret_recording->processes[l];
        int count = 0;
        list->items = lab_arena_copy(arena, list->items, (size_t)list->count, sizeof *list->items);
        for (int p = 0; p < list->count; p++)
            if (select_process(job, &list->items[p], numbers, arena))
                list->items[count++] = list->items[p];
        list->count = count;
    }
}
