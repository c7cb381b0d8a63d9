/*
 * process.c: the probe `process`: who uses the GPUs, and if asked for who else uses the CPUs: name,
 * user, container, CPU time, memory, and whether cores and memory are on the GPU's node. Who is on
 * a GPU comes from the board (probe.h), the rest from /proc. A list each second; a process that
 * ends between two files of it is no error.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/list.h"
#include "probe/placement.h"
#include "probe/probe_host.h"
#include "probe/process/details.h"
#include "probe/process/known.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS    LAB_NS_PER_S
#define COST_SHARE   100 /* thousands of processes are listed less often: at most 1 % of a CPU */
#define DETAILS_NS   (2 * LAB_NS_PER_S)
#define OTHERS_NS    (10 * LAB_NS_PER_S) /* details of those without a GPU */
#define OTHERS_MAX   500
#define PAGES_SPARED 1000 /* where the machine is to be spared: the share of the time for pages */
#define KERNEL_NS    (60 * LAB_NS_PER_S) /* after which a kernel thread's number may be another's */

struct process {
    const struct lab_probe_setup *setup;
    struct probe_nodes nodes;
    struct known_table table;
    struct details_users users;
    struct pages_budget budget;
    int64_t next_ns;
    unsigned round;
    int first; /* of those on GPUs: whose pages are read first, so that each has its turn */
};

static int process_open(const struct lab_probe_setup *setup, void **ret_state,
                        struct lab_err *err) {
    char text[16];
    if (probe_file_slurp(text, sizeof text, setup->root, "/proc/stat") <= 0)
        return lab_err_set_errno(err, LAB_ERR_UNSUPPORTED, errno, "/proc can't be read");
    struct process *process = lab_mem_alloc(1, sizeof *process);
    process->setup = setup;
    process->budget.share = setup->slow_ns > PERIOD_NS ? PAGES_SPARED : 0;
    probe_nodes_read(&process->nodes, setup, NULL); /* without them placement is unknown */
    known_init(&process->table);
    *ret_state = process;
    return 0;
}

static void process_close(void *state) {
    struct process *process = state;
    known_release(&process->table);
    details_users_release(&process->users);
    lab_mem_free(process);
}

/* --- who is listed --- */

struct listing { /* a list in the making */
    struct process *process;
    struct lab_arena *arena;
    int64_t now_ns;
    enum lab_probe_when when;
    struct lab_gpu_processes *gpus;
    int gpu_count;
    struct known **items; /* those on GPUs first */
    int count, on_gpus, left_out;
};

/* Reads one process, once a round; NULL = it was read in this round already. */
static struct known *meet(struct listing *listing, int32_t pid, bool on_gpu) {
    struct process *process = listing->process;
    struct known *known = known_find(&process->table, pid);
    if (known->round == process->round)
        return NULL;
    known->round = process->round;
    /* kernel threads stay what they are for long; on a large machine they are thousands */
    if (on_gpu || !known->kernel || listing->now_ns - known->read_ns > KERNEL_NS)
        known_read(known, process->setup->root, listing->now_ns);
    return known;
}

/* Those on GPUs, and those that were asked for. */
static void list_those_on_gpus(struct listing *listing) {
    const struct lab_probe_setup *setup = listing->process->setup;
    int most = setup->pid_count;
    for (int i = 0; i < listing->gpu_count; i++)
        most += listing->gpus[i].count;
    listing->items = lab_arena_alloc(listing->arena, (size_t)most, sizeof *listing->items);
    for (int i = 0; i < listing->gpu_count; i++)
        for (int j = 0; j < listing->gpus[i].count; j++) {
            struct known *known = meet(listing, listing->gpus[i].items[j].pid, true);
            if (known)
                listing->items[listing->count++] = known;
        }
    for (int i = 0; i < setup->pid_count; i++) {
        struct known *known = meet(listing, setup->pids[i], true);
        if (known && !known->missing)
            listing->items[listing->count++] = known;
    }
    listing->on_gpus = listing->count;
}

static int by_cpu(const void *a, const void *b) {
    const struct known *x = *(struct known *const *)a, *y = *(struct known *const *)b;
    double left = isnan(x->is.cpu_percent) ? 0 : x->is.cpu_percent;
    double right = isnan(y->is.cpu_percent) ? 0 : y->is.cpu_percent;
    return left != right ? (left < right ? 1 : -1)
                         : (x->is.pid > y->is.pid) - (x->is.pid < y->is.pid);
}

/* Half of the places go to those that use most CPU time, the rest to the largest of the others. */
static int choose(struct known **others, int count) {
    if (count <= OTHERS_MAX)
        return count;
    qsort(others, (size_t)count, sizeof(struct known *), by_cpu);
    int half = OTHERS_MAX / 2;
    LAB_SORT_REFS(others + half, count - half, LAB_BY_MOST(*others, is.memory_bytes),
                  LAB_BY(*others, is.pid));
    return OTHERS_MAX;
}

static void list_others(struct listing *listing) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc", listing->process->setup->root);
    LAB_AUTO_CLOSEDIR DIR *folder = opendir(path);
    struct known **others = NULL;
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *at = entry->d_name;
        int64_t pid;
        if (!probe_text_number(&at, &pid) || *at != '\0' || pid <= 0 || pid > INT32_MAX)
            continue;
        struct known *known = meet(listing, (int32_t)pid, false);
        if (!known || known->missing || known->kernel)
            continue;
        LAB_ADD(others, count, listing->arena) = known;
    }
    int chosen = choose(others, count);
    listing->left_out = count - chosen;
    struct known **all =
        lab_arena_alloc(listing->arena, (size_t)(listing->count + chosen), sizeof(struct known *));
    if (listing->count > 0)
        memcpy(all, listing->items, (size_t)listing->count * sizeof(struct known *));
    if (chosen > 0)
        memcpy(all + listing->count, others, (size_t)chosen * sizeof(struct known *));
    listing->items = all;
    listing->count += chosen;
}

/* --- what is told of each --- */

static void refresh(struct listing *listing, struct known *known, bool on_gpu) {
    struct process *process = listing->process;
    const char *root = process->setup->root;
    if (known->missing)
        return;
    if (!known->described)
        details_describe(known, root, &process->users);
    bool at_once = on_gpu && listing->when == LAB_PROBE_EDGE;
    if (listing->now_ns < known->details_ns && !at_once)
        return;
    known->details_ns = listing->now_ns + (on_gpu ? DETAILS_NS : OTHERS_NS);
    details_locate(known, root, &process->nodes, on_gpu);
}

/* Where the memory of those on GPUs lies; with one node there is nothing to ask. */
static void read_pages(struct listing *listing) {
    struct process *process = listing->process;
    const struct lab_machine *machine = process->setup->machine;
    if (!machine || machine->node_count < 2 || listing->on_gpus == 0)
        return;
    pages_budget_refill(&process->budget, listing->now_ns);
    process->first = process->first % listing->on_gpus;
    for (int i = 0; i < listing->on_gpus; i++) {
        struct known *known = listing->items[(process->first + i) % listing->on_gpus];
        if (known->missing)
            continue;
        if (!pages_read(&known->pages, process->setup->root, known->is.pid, machine,
                        listing->now_ns, &process->budget)) {
            process->first += i;
            return;
        }
    }
}

static void add_gpus(struct listing *listing, struct lab_process_sample *sample, int *gpu_nodes) {
    for (int i = 0; i < listing->gpu_count; i++)
        for (int j = 0; j < listing->gpus[i].count; j++) {
            const struct lab_gpu_process *item = &listing->gpus[i].items[j];
            if (item->pid != sample->pid)
                continue;
            gpu_nodes[sample->gpu_count] = listing->gpus[i].node;
            sample->gpus[sample->gpu_count++] =
                (struct lab_process_gpu){.entity = listing->gpus[i].entity,
                                         .memory_bytes = item->memory_bytes,
                                         .sm_percent = item->sm_percent,
                                         .memory_percent = item->memory_percent,
                                         .compute = item->compute,
                                         .graphics = item->graphics};
            break; /* once for each GPU */
        }
}

static void fill(struct listing *listing, const struct known *known, bool on_gpu,
                 struct lab_process_sample *sample) {
    const struct lab_machine *machine = listing->process->setup->machine;
    *sample = known->missing ? (struct lab_process_sample){.pid = known->is.pid,
                                                           .user = "?",
                                                           .name = "",
                                                           .command = "",
                                                           .container = "",
                                                           .uid = UINT32_MAX,
                                                           .cpu_percent = NAN,
                                                           .queue_percent = NAN,
                                                           .active_percent = NAN,
                                                           .cpu_node = -1,
                                                           .advice = ""}
                             : known->is;
    if (!known->missing && known->pages.bytes) {
        sample->node_bytes = known->pages.bytes;
        sample->node_count = machine->node_count;
    }
    if (!on_gpu)
        return;
    size_t most = (size_t)listing->gpu_count;
    sample->gpus = lab_arena_alloc(listing->arena, most, sizeof *sample->gpus);
    int *gpu_nodes = lab_arena_alloc(listing->arena, most, sizeof *gpu_nodes);
    add_gpus(listing, sample, gpu_nodes);
    if (machine)
        lab_placement_judge(machine, gpu_nodes, listing->arena, sample);
}

static void tell(struct listing *listing, const struct lab_probe_sink *sink) {
    struct lab_process_list list = {
        .time_ns = listing->now_ns, .count = listing->count, .left_out = listing->left_out};
    list.items = lab_arena_alloc(listing->arena, (size_t)listing->count, sizeof *list.items);
    for (int i = 0; i < listing->count; i++) {
        bool on_gpu = i < listing->on_gpus;
        refresh(listing, listing->items[i], on_gpu);
        if (listing->process->setup->pids && on_gpu && !listing->items[i]->missing)
            known_read_queue(listing->items[i], listing->process->setup->root, listing->now_ns);
    }
    read_pages(listing);
    for (int i = 0; i < listing->count; i++)
        fill(listing, listing->items[i], i < listing->on_gpus, &list.items[i]);
    sink->processes(sink->state, &list);
}

static int process_read(void *state, int lane, enum lab_probe_when when,
                        const struct lab_probe_sink *sink, struct lab_err *err) {
    struct process *process = state;
    (void)lane, (void)err;
    int64_t now_ns = lab_clock_now(process->setup->clock), before_ns = lab_clock_thread_ns();
    if (!probe_due(&process->next_ns, now_ns, PERIOD_NS, process->setup, when))
        return 0;
    LAB_AUTO(arena, arena);
    process->round++;
    struct listing listing = {.process = process, .arena = &arena, .now_ns = now_ns, .when = when};
    listing.gpu_count = lab_gpu_process_table_read(process->setup->table, &arena, &listing.gpus);
    list_those_on_gpus(&listing);
    if (process->setup->all_processes)
        list_others(&listing);
    tell(&listing, sink);
    known_forget(&process->table, process->round);
    int64_t earliest_ns = now_ns + COST_SHARE * (lab_clock_thread_ns() - before_ns);
    if (process->next_ns < earliest_ns)
        process->next_ns = earliest_ns;
    return 0;
}

static int64_t process_due(void *state, int lane) {
    const struct process *process = state;
    (void)lane;
    return process->next_ns;
}

const struct lab_probe lab_probe_process = {
    .name = "process",
    .summary = "processes on GPUs, or all: CPU time, memory, user, container, placement",
    .without = "processes on GPUs and their placement",
    .open = process_open,
    .close = process_close,
    .only_lane = "processes",
    .read = process_read,
    .due = process_due,
};
