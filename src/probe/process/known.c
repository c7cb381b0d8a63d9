/* known.c: the table of processes, and what /proc/PID/stat says of one. */
#include "probe/process/known.h"

#include "base/str.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define SELDOM        0.05 /* of the time: one that wants to run less often hardly waits */
#define BUCKETS       1024
#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD */

void known_init(struct known_table *table) {
    table->buckets = lab_mem_alloc(BUCKETS, sizeof *table->buckets);
    table->count = 0;
}

static void forget_details(struct known *known) {
    lab_mem_free((char *)known->is.command);
    lab_mem_free((char *)known->is.container);
    pages_release(&known->pages);
    known->is.command = known->is.container = NULL;
    known->described = false;
}

static void known_close(struct known *known) {
    forget_details(known);
    lab_mem_free(known);
}

void known_release(struct known_table *table) {
    for (int i = 0; i < BUCKETS; i++)
        for (struct known *known = table->buckets[i], *next; known; known = next) {
            next = known->next;
            known_close(known);
        }
    lab_mem_free(table->buckets);
}

struct known *known_find(struct known_table *table, int32_t pid) {
    struct known **bucket = &table->buckets[(uint32_t)pid % BUCKETS];
    for (struct known *known = *bucket; known; known = known->next)
        if (known->is.pid == pid)
            return known;
    struct known *known = lab_mem_alloc(1, sizeof *known);
    known->is = (struct lab_process_sample){.pid = pid,
                                            .name = known->name,
                                            .cpu_percent = NAN,
                                            .queue_percent = NAN,
                                            .active_percent = NAN,
                                            .advice = ""};
    known->next = *bucket;
    pages_init(&known->pages);
    *bucket = known;
    table->count++;
    return known;
}

void known_forget(struct known_table *table, unsigned round) {
    for (int i = 0; i < BUCKETS; i++)
        for (struct known **at = &table->buckets[i]; *at;) {
            struct known *known = *at;
            if (known->round == round) {
                at = &known->next;
                continue;
            }
            *at = known->next;
            known_close(known);
            table->count--;
        }
}

/* --- /proc/PID/stat --- */

/* The numbers of fields 4 to 39, as proc(5) counts. */
enum { PPID = 4, FLAGS = 9, UTIME = 14, STIME = 15, THREADS = 20, START = 22, RSS = 24, CPU = 39 };

/* The name may hold anything, blanks and brackets too; what follows its last bracket can't. */
static bool parse(char *text, int64_t *fields, char *ret_name) {
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || close[2] == '\0')
        return false;
    *close = '\0';
    snprintf(ret_name, NAME_BYTES, "%s", open + 1);
    lab_str_make_printable(ret_name);
    const char *at = close + 3;
    for (int i = PPID; i <= CPU; i++)
        if (!probe_text_number(&at, &fields[i]))
            return i > RSS;
    return true;
}

static void became_another(struct known *known) {
    forget_details(known);
    pages_init(&known->pages);
    known->is.cpu_percent = known->is.queue_percent = known->is.active_percent = NAN;
    known->read_ns = known->queued_ns = 0;
    known->details_ns = 0;
}

/* The kernel counts in steps of 10 ms: over less than 0.2 s they would be all there is to see. */
static void take_cpu_time(struct known *known, int64_t ticks, int64_t now_ns) {
    int64_t passed_ns = now_ns - known->read_ns;
    if (known->read_ns && passed_ns < LAB_NS_PER_S / 5)
        return;
    if (known->read_ns) {
        double used = (double)(ticks - known->cpu_ticks) / (double)sysconf(_SC_CLK_TCK);
        known->is.cpu_percent = used > 0 ? 100 * used / ((double)passed_ns / 1e9) : 0;
    }
    known->cpu_ticks = ticks;
    known->read_ns = now_ns;
}

void known_read(struct known *known, const char *root, int64_t now_ns) {
    char text[1024], name[NAME_BYTES];
    int64_t fields[CPU + 1] = {[CPU] = -1};
    known->missing =
        probe_file_slurp(text, sizeof text, root, "/proc/%d/stat", known->is.pid) <= 0 ||
        !parse(text, fields, name);
    if (known->missing)
        return;
    if (known->read_ns && known->is.start != (uint64_t)fields[START])
        became_another(known);
    if (strcmp(known->name, name) != 0) { /* it runs another program */
        memcpy(known->name, name, sizeof name);
        known->described = false;
        known->details_ns = 0;
    }
    take_cpu_time(known, fields[UTIME] + fields[STIME], now_ns);
    known->is.parent_pid = (int32_t)fields[PPID];
    known->is.start = (uint64_t)fields[START];
    known->kernel = (fields[FLAGS] & KERNEL_THREAD) != 0;
    known->is.threads = fields[THREADS] > INT32_MAX ? INT32_MAX : (int)fields[THREADS];
    known->processor = fields[CPU] > INT32_MAX ? -1 : (int)fields[CPU];
    int64_t pages = fields[RSS] < 0 ? 0 : fields[RSS];
    if (__builtin_mul_overflow(pages, (int64_t)sysconf(_SC_PAGESIZE), &known->is.memory_bytes))
        known->is.memory_bytes = INT64_MAX;
}

/* "ran waited slices", the first two in ns; a kernel without CONFIG_SCHED_INFO has zeros. The wait
 * is a share of the time in which it wanted to run: a process that spins wants to all the time. */
void known_read_queue(struct known *known, const char *root, int64_t now_ns) {
    char text[128];
    int64_t ran, waited, passed_ns = now_ns - known->queued_ns;
    const char *at = text;
    if (known->queued_ns && passed_ns < LAB_NS_PER_S / 5)
        return;
    known->is.queue_percent = known->is.active_percent = NAN;
    if (probe_file_slurp(text, sizeof text, root, "/proc/%d/schedstat", known->is.pid) <= 0 ||
        !probe_text_number(&at, &ran) || !probe_text_number(&at, &waited) || ran == 0)
        return;
    if (known->queued_ns && waited >= known->queue_ns && ran >= known->ran_ns) {
        double wait = (double)(waited - known->queue_ns), run = (double)(ran - known->ran_ns);
        double active = (wait + run) / (double)passed_ns;
        known->is.queue_percent = active < SELDOM ? 0 : 100 * wait / (wait + run);
        known->is.active_percent = 100 * active;
    }
    known->queue_ns = waited;
    known->ran_ns = ran;
    known->queued_ns = now_ns;
}
