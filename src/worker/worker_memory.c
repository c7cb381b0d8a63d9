/*
 * worker_memory.c: the peak memory of a run. Of a program that is what all its processes had at one
 * time, as looks at /proc show: the kernel keeps no peak of a process tree. Pages that several of
 * them share count once (PSS). That takes the kernel a walk over all pages, so that it is asked
 * only where their resident memory has grown since.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "worker/worker_internal.h"

#include <math.h>
#include <sys/resource.h>

#define STATUS_MAX_BYTES (1u << 20)
#define KIB_PER_MIB      1024.0
#define LOOK_NS          (LAB_NS_PER_S / 10)
#define COST_SHARE       50   /* looks take at most 2% of a CPU */
#define GROWN            1.01 /* by less isn't worth a walk */

static double sum_memory(const struct lab_process_tree *tree, bool proportional) {
    double sum = 0;
    for (int i = 0; i < tree->count; i++)
        if (worker_is_descendant(tree, &tree->items[i]))
            sum += (double)lab_process_memory(tree->items[i].pid, proportional);
    return sum;
}

void worker_look_at_memory(struct worker *worker) {
    struct worker_memory *memory = &worker->memory;
    int64_t now_ns = lab_clock_now(lab_clock_system());
    if (pthread_mutex_trylock(&memory->mutex) != 0)
        return; /* another rank looks */
    if (now_ns >= memory->next_ns) {
        int64_t before_ns = lab_clock_thread_ns();
        lab_process_tree_read(&memory->tree);
        double resident = sum_memory(&memory->tree, false);
        if (resident > GROWN * memory->resident_bytes) {
            memory->resident_bytes = resident;
            memory->peak_bytes = fmax(memory->peak_bytes, sum_memory(&memory->tree, true));
        }
        int64_t cost_ns = COST_SHARE * (lab_clock_thread_ns() - before_ns);
        memory->next_ns = now_ns + (cost_ns > LOOK_NS ? cost_ns : LOOK_NS);
    }
    pthread_mutex_unlock(&memory->mutex);
}

/* Of all processes together; one that was too short to be seen is known by its own peak. */
static double peak_of_program(struct worker *worker) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    pthread_mutex_lock(&worker->memory.mutex);
    double peak_mib = worker->memory.peak_bytes / KIB_PER_MIB / KIB_PER_MIB;
    pthread_mutex_unlock(&worker->memory.mutex);
    peak_mib = fmax(peak_mib, (double)usage.ru_maxrss / KIB_PER_MIB);
    return peak_mib > 0 ? peak_mib : (double)NAN;
}

/* getrusage would count what the runner had when it started us. */
double worker_peak_memory_mib(struct worker *worker, struct lab_arena *arena) {
    static const char key[] = "\nVmHWM:";
    char *text;
    size_t length;
    if (worker->workload->external)
        return peak_of_program(worker);
    if (lab_file_read("/proc/self/status", STATUS_MAX_BYTES, arena, &text, &length, NULL) < 0)
        return NAN;
    const char *at = strstr(text, key);
    return at ? (double)strtoll(at + sizeof key - 1, NULL, 10) / KIB_PER_MIB : NAN;
}
