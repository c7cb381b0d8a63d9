/* analysis_resource.c: what resources are called, and whose they are. */
#include "analysis/analysis_resource.h"

#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

static const struct lab_clock_reason *find_reason(uint64_t bit) {
    for (int i = 0; lab_clock_reasons[i].bit; i++)
        if (lab_clock_reasons[i].bit == bit)
            return &lab_clock_reasons[i];
    return NULL;
}

static bool is_of_gpu(const struct lab_resource *resource) {
    return resource->kind == LAB_ENTITY_GPU || resource->kind == LAB_ENTITY_MIG;
}

/* "Power draw" within a sentence: "power draw"; "PCIe …" and "CPU …" stay. */
static const char *lower_first(const char *title, struct lab_arena *arena) {
    char *text = lab_arena_strdup(arena, title);
    if (!isupper((unsigned char)text[1]) && !lab_str_starts(text, "NVLink"))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

static const char *replace(const char *title, const char *part, const char *by,
                           struct lab_arena *arena) {
    const char *at = strstr(title, part);
    return lab_arena_printf(arena, "%.*s%s%s", (int)(at - title), title, by, at + strlen(part));
}

/* "PCIe into the GPU" of GPU 3: "PCIe into GPU 3"; "GPU utilisation": "utilisation of GPU 3" */
static const char *gpu_title(const char *title, const struct lab_resource *resource,
                             struct lab_arena *arena) {
    const char *gpu = lab_arena_printf(
        arena, "%s %d", resource->kind == LAB_ENTITY_MIG ? "MIG instance" : "GPU", resource->index);
    if (resource->bit)
        return lab_arena_printf(arena, "clock limit of %s by %s", gpu,
                                find_reason(resource->bit)->words);
    if (strstr(title, "the GPU"))
        return replace(title, "the GPU", gpu, arena);
    return lab_arena_printf(arena, "%s of %s",
                            lower_first(title + (lab_str_starts(title, "GPU ") ? 4 : 0), arena),
                            gpu);
}

const char *lab_resource_title(const struct lab_resource *resource, struct lab_arena *arena) {
    const char *title = lab_metric(resource->metric)->title;
    if (resource->metric == LAB_METRIC_ENERGY) /* per second */
        title = "Mean power";
    if (is_of_gpu(resource))
        return gpu_title(title, resource, arena);
    if (strstr(title, "[n]"))
        title = replace(title, "[n]",
                        lab_arena_printf(arena, "%s%d",
                                         strstr(title, "node [n]")           ? ""
                                         : resource->kind == LAB_ENTITY_NUMA ? "on NUMA node "
                                                                             : "of CPU ",
                                         resource->instance),
                        arena);
    return lower_first(title, arena);
}

const char *lab_resource_key(const struct lab_resource *resource, struct lab_arena *arena) {
    const char *name = lab_metric(resource->metric)->name;
    if (resource->bit)
        name = lab_arena_printf(arena, "%s:%s", name, find_reason(resource->bit)->name);
    if (resource->instance >= 0)
        name = lab_arena_printf(arena, "%s:%d", name, resource->instance);
    return is_of_gpu(resource) ? lab_arena_printf(arena, "%s%d.%s",
                                                  resource->kind == LAB_ENTITY_GPU ? "gpu" : "mig",
                                                  resource->index, name)
                               : name;
}

const char *lab_resource_unit(const struct lab_resource *resource, struct lab_arena *arena) {
    const struct lab_metric *metric = lab_metric(resource->metric);
    if (metric->kind == LAB_METRIC_FLAGS)
        return "share of the time";
    if (metric->kind == LAB_METRIC_GAUGE)
        return strcmp(metric->unit, "C") == 0 ? "°C" : metric->unit;
    return strcmp(metric->unit, "J") == 0 ? "W" : lab_arena_printf(arena, "%s/s", metric->unit);
}

/* --- whose it is --- */

/* What an iteration does not set by running slower or faster. Heat is not among them: it follows
 * the GPU's own power, rises during every run, and slows nothing but through the clocks. */
static bool is_state(enum lab_metric_id metric) {
    switch (metric) {
    case LAB_METRIC_MEMORY_USED:
    case LAB_METRIC_MEMORY_RESERVED:
    case LAB_METRIC_SM_CLOCK:
    case LAB_METRIC_MEMORY_CLOCK:
    case LAB_METRIC_CLOCK_REASONS:
    case LAB_METRIC_PERFORMANCE_STATE:
    case LAB_METRIC_ENCODER:
    case LAB_METRIC_DECODER:
    case LAB_METRIC_POWER_LIMIT:
    case LAB_METRIC_PCIE_REPLAYS:
    case LAB_METRIC_PCIE_GENERATION:
    case LAB_METRIC_PCIE_WIDTH:
    case LAB_METRIC_ECC_CORRECTED:
    case LAB_METRIC_ECC_UNCORRECTED:
    case LAB_METRIC_THROTTLED_POWER:
    case LAB_METRIC_THROTTLED_SYNC:
    case LAB_METRIC_THROTTLED_THERMAL:
    case LAB_METRIC_THROTTLED_HW_THERMAL:
    case LAB_METRIC_THROTTLED_BRAKE:
    case LAB_METRIC_XIDS:
    case LAB_METRIC_PROCESSES:
        return true;
    default:
        return false;
    }
}

enum lab_resource_role lab_resource_role(const struct lab_resource *resource, int gpu) {
    if (!is_of_gpu(resource) || resource->index != gpu)
        return LAB_RESOURCE_OUTSIDE;
    return is_state(resource->metric) ? LAB_RESOURCE_STATE : LAB_RESOURCE_OWN;
}

bool lab_resource_is_cpu(const struct lab_resource *resource) {
    return resource->metric == LAB_METRIC_CPU_UTILIZATION ||
           resource->metric == LAB_METRIC_CORE_UTILIZATION ||
           resource->metric == LAB_METRIC_NODE_UTILIZATION ||
           resource->metric == LAB_METRIC_CPU_SYSTEM || resource->metric == LAB_METRIC_CPU_STEAL ||
           resource->metric == LAB_METRIC_PRESSURE_CPU;
}

bool lab_resource_is_pcie(const struct lab_resource *resource) {
    return resource->metric == LAB_METRIC_PCIE_TX_RATE ||
           resource->metric == LAB_METRIC_PCIE_RX_RATE ||
           resource->metric == LAB_METRIC_PCIE_TX_BYTES ||
           resource->metric == LAB_METRIC_PCIE_RX_BYTES;
}

/* --- devices --- */

int lab_resource_gpu(const struct lab_study_rank *rank) {
    const char *device = rank->placed ? rank->placed : rank->device;
    int gpu = lab_run_device_gpu(device);
    if (gpu >= 0)
        return gpu;
    const char *last = strrchr(device, ':'); /* "sim:l40s-10:3" */
    if (!lab_str_starts(device, "sim:") || !last || !isdigit((unsigned char)last[1]))
        return -1;
    return (int)strtol(last + 1, NULL, 10);
}

int lab_resource_devices(const struct lab_study_run *const *runs, int run_count, int *ret_ids,
                         int most) {
    int count = 0;
    for (int i = 0; i < run_count; i++)
        for (int r = 0; r < runs[i]->rank_count; r++) {
            int id = runs[i]->ranks[r].gpu_id, at = 0;
            while (at < count && ret_ids[at] < id)
                at++;
            if ((at < count && ret_ids[at] == id) || count == most)
                continue;
            for (int k = count++; k > at; k--)
                ret_ids[k] = ret_ids[k - 1];
            ret_ids[at] = id;
        }
    return count;
}
