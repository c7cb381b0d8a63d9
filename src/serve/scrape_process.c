/*
 * scrape_process.c: the processes that use a GPU, one series for each GPU of each. Their number is
 * bounded by the sampler; command lines aren't shown, since they may hold what isn't for others.
 */
#include "serve/scrape_internal.h"

#include <math.h>
#include <stddef.h>

/* A list that is older than this is of processes that may be gone: whoever lists them hangs. */
#define OLD_NS        (30 * LAB_NS_PER_S)
#define OLD_INTERVALS 3

static const char *const placement_names[] = {[LAB_PLACEMENT_UNKNOWN] = "unknown",
                                              [LAB_PLACEMENT_ONE_NODE] = "one_node",
                                              [LAB_PLACEMENT_LOCAL] = "local",
                                              [LAB_PLACEMENT_LOOSE] = "loose",
                                              [LAB_PLACEMENT_CORES] = "wrong_cores",
                                              [LAB_PLACEMENT_MEMORY] = "wrong_memory",
                                              [LAB_PLACEMENT_BOTH] = "wrong_cores_and_memory"};

static const char *process_labels(const struct lab_process_sample *process,
                                  struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "pid=\"%d\"", (int)process->pid);
    scrape_add_label("user", process->user, &text);
    scrape_add_label("name", process->name, &text);
    scrape_add_label("container", process->container, &text);
    return lab_arena_strdup(arena, text.text);
}

/* --- figures --- */

/* Of a process, or of each of its GPUs. */
static const struct figure {
    const char *name, *help;
    bool of_gpu;
    enum { BYTES, PERCENT, NODE } kind; /* int64_t; double; int; below 0 or NaN = unknown */
    size_t offset;
} figures[] = {
    {"gpulab_process_gpu_memory_bytes", "Memory of the GPU that the process holds", true, BYTES,
     offsetof(struct lab_process_gpu, memory_bytes)},
    {"gpulab_process_gpu_sm_ratio", "Share of time in which the process kept multiprocessors busy",
     true, PERCENT, offsetof(struct lab_process_gpu, sm_percent)},
    {"gpulab_process_gpu_memory_active_ratio",
     "Share of time in which the process kept the GPU's memory busy", true, PERCENT,
     offsetof(struct lab_process_gpu, memory_percent)},
    {"gpulab_process_cpu_ratio", "CPUs that the process keeps busy", false, PERCENT,
     offsetof(struct lab_process_sample, cpu_percent)},
    {"gpulab_process_resident_memory_bytes", "Host memory of the process", false, BYTES,
     offsetof(struct lab_process_sample, memory_bytes)},
    {"gpulab_process_node", "NUMA node on which most of its threads ran last", false, NODE,
     offsetof(struct lab_process_sample, cpu_node)},
};

static double read_figure(const struct figure *figure, const void *from) {
    const void *at = (const char *)from + figure->offset;
    if (figure->kind == PERCENT)
        return *(const double *)at / 100;
    double value = figure->kind == BYTES ? (double)*(const int64_t *)at : *(const int *)at;
    return value < 0 ? NAN : value;
}

/* The labels of its GPU; NULL if that is away, or was named before. */
static const char *labels_of_gpu(const struct lab_scrape *scrape,
                                 const struct scrape_labels *labels,
                                 const struct lab_process_sample *process, int index) {
    int number = process->gpus[index].entity;
    for (int i = 0; i < index; i++)
        if (process->gpus[i].entity == number)
            return NULL;
    if (number < 0 || number >= scrape->entity_count || !scrape->entities[number].up)
        return NULL;
    return labels[number].dcgm ? labels[number].own : NULL;
}

static bool is_on_gpu(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                      const struct lab_process_sample *process) {
    for (int i = 0; i < process->gpu_count; i++)
        if (labels_of_gpu(scrape, labels, process, i))
            return true;
    return false;
}

static void write_figure(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                         const char *const *who, const struct figure *figure, struct lab_str *out) {
    bool begun = false;
    for (int i = 0; i < scrape->processes.count; i++) {
        const struct lab_process_sample *process = &scrape->processes.items[i];
        for (int j = 0; j < (figure->of_gpu ? process->gpu_count : 1); j++) {
            const char *where = figure->of_gpu ? labels_of_gpu(scrape, labels, process, j)
                                : is_on_gpu(scrape, labels, process) ? ""
                                                                     : NULL;
            double value = read_figure(figure, figure->of_gpu ? (const void *)&process->gpus[j]
                                                              : (const void *)process);
            if (!where || isnan(value))
                continue;
            if (!begun)
                scrape_add_header(figure->name, "gauge", figure->help, out);
            begun = true;
            scrape_add_sample(figure->name, figure->of_gpu ? where : who[i],
                              figure->of_gpu ? who[i] : "", value, out);
        }
    }
}

static void write_placements(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                             const char *const *who, struct lab_str *out) {
    const char *name = "gpulab_process_placement";
    bool begun = false;
    for (int i = 0; i < scrape->processes.count; i++) {
        const struct lab_process_sample *process = &scrape->processes.items[i];
        if (!is_on_gpu(scrape, labels, process))
            continue;
        LAB_AUTO(str, state);
        scrape_add_label("placement", placement_names[process->placement], &state);
        if (!begun)
            scrape_add_header(name, "gauge",
                              "1 for its placement relative to the NUMA node of its GPU", out);
        begun = true;
        scrape_add_sample(name, who[i], state.text, 1, out);
    }
}

static bool is_old(const struct lab_scrape *scrape) {
    int64_t limit = OLD_INTERVALS * scrape->setup.interval_ns;
    if (limit < OLD_NS)
        limit = OLD_NS;
    return scrape->latest_ns - scrape->processes.time_ns > limit;
}

void scrape_write_processes(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                            struct lab_str *out) {
    if (!scrape->has_processes || is_old(scrape))
        return;
    LAB_AUTO(arena, arena);
    const char **who = lab_arena_alloc(&arena, (size_t)scrape->processes.count, sizeof *who);
    for (int i = 0; i < scrape->processes.count; i++)
        who[i] = process_labels(&scrape->processes.items[i], &arena);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        write_figure(scrape, labels, who, &figures[i], out);
    write_placements(scrape, labels, who, out);
    scrape_add_header("gpulab_process_left_out", "gauge", "Processes beyond the limit, not listed",
                      out);
    scrape_add_sample("gpulab_process_left_out", "", "", scrape->processes.left_out, out);
}
