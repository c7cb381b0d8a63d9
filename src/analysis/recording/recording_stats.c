/* recording_stats.c: what a recording tells of all its GPUs together, and of its host. */
#include "analysis/recording/recording_stats.h"
#include "analysis/claims/contrast.h"

#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

#define MIB 1048576.0
/* less utilisation than this, and less memory than a tenth of the most: unused */
#define UNUSED_PERCENT 1.0
#define UNUSED_MEMORY  0.1

#define ROWS_MAX 2048 /* means of so many stretches hold all that an interval of a mean needs */

const struct lab_recording_stats_kind lab_recording_stats_kinds[LAB_RECORDING_STATS_METRICS] = {
    [LAB_RECORDING_STATS_MEMORY] = {"memory", "Memory", "memory", "MiB", "mib", true},
    [LAB_RECORDING_STATS_UTILIZATION] = {"utilization", "Utilisation", "utilisation", "%",
                                         "percent", false},
    [LAB_RECORDING_STATS_POWER] = {"power", "Power", "power", "W", "w", true},
    [LAB_RECORDING_STATS_TEMPERATURE] = {"temperature", "Temperature", "temperature", "°C", "c",
                                         false},
    [LAB_RECORDING_STATS_CLOCK] = {"sm_clock", "SM clock", "SM clock", "MHz", "mhz", false},
};

/* --- all GPUs together --- */

/*
 * The most that all GPUs had at one time: each holds its last value until its next tick, and a
 * total counts while every GPU has one. GPUs are read at slightly different times.
 */
static double find_peak_total(const struct lab_recording_stats *stats) {
    int gpus = stats->gpu_count;
    LAB_AUTO_FREE size_t *next = lab_mem_alloc((size_t)gpus + 1, sizeof *next);
    double *held = lab_mem_alloc((size_t)gpus + 1, sizeof *held), peak = NAN;
    double scale = lab_metric(LAB_METRIC_MEMORY_USED)->scale / MIB;
    for (int g = 0; g < gpus; g++)
        held[g] = NAN;
    for (;;) {
        int first = -1;
        for (int g = 0; g < gpus; g++) {
            const struct lab_track *track = stats->gpus[g].track;
            if (next[g] < track->count &&
                (first < 0 ||
                 track->times_ns[next[g]] < stats->gpus[first].track->times_ns[next[first]]))
                first = g;
        }
        if (first < 0)
            break;
        const struct lab_track *track = stats->gpus[first].track;
        double total = 0;
        int column = lab_recording_stats_column(track, LAB_METRIC_MEMORY_USED);
        size_t tick = next[first]++;
        held[first] = column >= 0 && track->valid[column][tick]
                          ? (double)track->values[column][tick] * scale
                          : (double)NAN;
        for (int g = 0; g < gpus; g++)
            total += held[g];
        peak = fmax(peak, total);
    }
    lab_mem_free(held);
    return peak;
}

double lab_recording_stats_together(const struct lab_recording_stats *stats,
                                    enum lab_recording_stats_metric metric) {
    double sum = 0;
    int count = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        double mean = stats->gpus[g].figures[metric].mean;
        if (isnan(mean))
            continue;
        sum += mean;
        count++;
    }
    return count == 0 ? (double)NAN : lab_recording_stats_kinds[metric].adds_up ? sum : sum / count;
}

int lab_recording_stats_known(const struct lab_recording_stats *stats,
                              enum lab_recording_stats_metric metric) {
    int known = 0;
    for (int g = 0; g < stats->gpu_count; g++)
        known += stats->gpus[g].figures[metric].count > 0;
    return known;
}

double lab_recording_stats_energy(const struct lab_recording_stats *stats, bool *ret_integrated) {
    double sum = NAN;
    *ret_integrated = false;
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_recording_stats_gpu *gpu = &stats->gpus[g];
        if (isnan(gpu->energy_j))
            continue;
        sum = isnan(sum) ? gpu->energy_j : sum + gpu->energy_j;
        *ret_integrated |= gpu->energy_integrated;
    }
    return sum;
}

void lab_recording_stats_set_rate(double rate, const char *unit, struct lab_doc_cell *ret_rate,
                                  struct lab_doc_cell *ret_unit) {
    *ret_rate = lab_cell_figure(rate);
    ret_rate->unit = unit;
    *ret_unit = lab_cell_text(isnan(rate) ? NULL : unit ? unit : "samples/s");
}

/* --- a recording --- */

static bool is_wanted(const struct lab_recording_stats_config *config, int index) {
    for (int i = 0; i < config->gpus.count; i++)
        if (config->gpus.items[i] == index)
            return true;
    return config->gpus.count == 0;
}

static int by_index(const void *a, const void *b) {
    const struct lab_recording_stats_gpu *x = a, *y = b;
    return x->track->entity.index - y->track->entity.index;
}

static void describe_host(struct lab_recording_stats *stats) {
    const struct lab_recording *recording = stats->source->recording;
    stats->cpu_percent = stats->host_peak_mib = NAN;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        bool cpu = track->entity.kind == LAB_ENTITY_CPU;
        enum lab_metric_id metric = cpu ? LAB_METRIC_CPU_UTILIZATION : LAB_METRIC_HOST_USED;
        int column = lab_recording_stats_column(track, metric);
        if ((!cpu && track->entity.kind != LAB_ENTITY_MEMORY) || column < 0)
            continue;
        double sum = 0, peak = NAN;
        size_t count = 0;
        for (size_t t = 0; t < track->count; t++) {
            if (!track->valid[column][t])
                continue;
            double value = (double)track->values[column][t] * lab_metric(metric)->scale;
            sum += value;
            peak = fmax(peak, value);
            count++;
        }
        if (cpu && count > 0)
            stats->cpu_percent = sum / (double)count;
        else if (!cpu)
            stats->host_peak_mib = peak / MIB;
    }
}

static void find_span(struct lab_recording_stats *stats) {
    const struct lab_recording *recording = stats->source->recording;
    bool any = false;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->count == 0)
            continue;
        int64_t first = track->times_ns[0], last = track->times_ns[track->count - 1];
        stats->start_ns = !any || first < stats->start_ns ? first : stats->start_ns;
        stats->end_ns = !any || last > stats->end_ns ? last : stats->end_ns;
        any = true;
    }
    stats->duration_s = (double)(stats->end_ns - stats->start_ns) / 1e9;
}

/* Unknown isn't idle, unless nothing at all is known of a GPU. */
static bool is_idle(const struct lab_recording_stats *stats) {
    int idle = 0, lost = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_recording_stats_figures *figures = stats->gpus[g].figures;
        idle += figures[LAB_RECORDING_STATS_UTILIZATION].mean < LAB_RECORDING_STATS_IDLE;
        lost += figures[LAB_RECORDING_STATS_UTILIZATION].count == 0 &&
                figures[LAB_RECORDING_STATS_MEMORY].count == 0 &&
                figures[LAB_RECORDING_STATS_POWER].count == 0;
    }
    return idle > 0 && idle + lost == stats->gpu_count;
}

/* GPUs that were asked for by their index count in any case. */
static void find_used(struct lab_recording_stats *stats, bool asked) {
    double most = 0;
    for (int g = 0; g < stats->gpu_count; g++)
        most = fmax(most, stats->gpus[g].figures[LAB_RECORDING_STATS_MEMORY].mean);
    for (int g = 0; g < stats->gpu_count; g++) {
        struct lab_recording_stats_gpu *gpu = &stats->gpus[g];
        gpu->unused = !asked && !stats->idle &&
                      gpu->figures[LAB_RECORDING_STATS_UTILIZATION].mean < UNUSED_PERCENT &&
                      gpu->figures[LAB_RECORDING_STATS_MEMORY].mean < UNUSED_MEMORY * most;
        stats->used_count += !gpu->unused;
    }
}

/* Lives in the arena and refers to the recording. */
static struct lab_recording_stats make_stats(const struct lab_labelled_recording *source,
                                             const struct lab_recording_stats_config *config,
                                             struct lab_arena *arena) {
    const struct lab_recording *recording = source->recording;
    struct lab_recording_stats stats = {.source = source,
                                        .missing = (const char *const *)recording->missing};
    stats.gpus = lab_arena_alloc(arena, (size_t)recording->track_count + 1, sizeof *stats.gpus);
    find_span(&stats);
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->entity.kind == LAB_ENTITY_MIG)
            stats.mig_count++;
        if (track->entity.kind != LAB_ENTITY_GPU || !is_wanted(config, track->entity.index))
            continue;
        stats.gpus[stats.gpu_count].track = track;
        lab_recording_stats_gpu_describe(&stats.gpus[stats.gpu_count++], &stats, arena);
    }
    if (stats.gpu_count > 1)
        qsort(stats.gpus, (size_t)stats.gpu_count, sizeof *stats.gpus, by_index);
    describe_host(&stats);
    stats.idle = is_idle(&stats);
    find_used(&stats, config->gpus.count > 0);
    stats.peak_total_mib = find_peak_total(&stats);
    return stats;
}

int lab_recording_stats_make_all(const struct lab_analysis_input *input,
                                 const struct lab_recording_stats_config *config,
                                 struct lab_arena *arena,
                                 struct lab_recording_stats **ret_all_stats, struct lab_err *err) {
    if (input->recording_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no recording");
    bool any = false;
    struct lab_recording_stats *all_stats =
        lab_arena_alloc(arena, (size_t)input->recording_count, sizeof *all_stats);
    for (int i = 0; i < input->recording_count; i++) {
        all_stats[i] = make_stats(&input->recordings[i], config, arena);
        any |= all_stats[i].end_ns > all_stats[i].start_ns || all_stats[i].gpu_count > 0;
    }
    if (!any)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: %s holds no samples",
                           input->recordings[0].name);
    *ret_all_stats = all_stats;
    return 0;
}

int lab_recording_stats_all(const struct lab_analysis_input *input,
                            const struct lab_recording_stats_config *config,
                            struct lab_arena *arena, struct lab_recording_stats **ret_all_stats,
                            struct lab_err *err) {
    bool any = false, mig = false, values = false;
    if (lab_recording_stats_make_all(input, config, arena, ret_all_stats, err) < 0)
        return -1;
    for (int i = 0; i < input->recording_count; i++) {
        any |= (*ret_all_stats)[i].gpu_count > 0;
        mig |= (*ret_all_stats)[i].mig_count > 0;
        values |= lab_recording_stats_has_values(&(*ret_all_stats)[i]);
    }
    if (values)
        return 0;
    const char *name = input->recordings[0].name;
    const char *others = input->recording_count > 1 ? " and the others" : "";
    if (any)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s%s: neither memory nor load of a GPU was recorded, but %s", name,
                           others, lab_recording_stats_others(*ret_all_stats, arena));
    if (config->gpus.count > 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s%s: none of the GPUs that gpus= names was recorded", name, others);
    if (mig)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s%s: only MIG instances were recorded, of which drivers give neither "
                           "utilisation nor power; record their GPUs",
                           name, others);
    return lab_err_set(err, LAB_ERR_USER,
                       "%s%s: no GPU was recorded; 'gpulab analyze summary' shows the host", name,
                       others);
}

/* --- over time --- */

int lab_recording_stats_rows(const struct lab_recording_stats *stats) {
    size_t fewest = ROWS_MAX;
    for (int g = 0; g < stats->gpu_count; g++)
        if (stats->gpus[g].track->count > 1 && stats->gpus[g].track->count - 1 < fewest)
            fewest = stats->gpus[g].track->count - 1;
    return (int)fewest;
}

double *lab_recording_stats_grid(const struct lab_recording_stats *stats,
                                 enum lab_recording_stats_metric metric, int rows,
                                 struct lab_arena *arena) {
    int gpus = stats->gpu_count;
    double *grid = lab_arena_alloc(arena, (size_t)rows * (size_t)gpus + 1, sizeof *grid);
    double span_ns = (double)(stats->end_ns - stats->start_ns);
    for (int g = 0; g < gpus; g++) {
        const struct lab_track *track = stats->gpus[g].track;
        double *values = lab_mem_resize(NULL, track->count + 1, sizeof *values);
        int64_t *times = lab_mem_resize(NULL, track->count + 1, sizeof *times);
        size_t count = lab_recording_stats_read(&stats->gpus[g], metric, values, times), next = 0;
        for (int row = 0; row < rows; row++) {
            double end_ns = span_ns * (row + 1) / rows, sum = 0;
            size_t first = next;
            while (next < count &&
                   (row == rows - 1 || (double)(times[next] - stats->start_ns) < end_ns))
                sum += values[next++];
            grid[(ptrdiff_t)row * gpus + g] = next > first ? sum / (double)(next - first) : NAN;
        }
        lab_mem_free(values);
        lab_mem_free(times);
    }
    return grid;
}

/* --- two labels --- */

/* A metric of each recording of a label: of all GPUs together, or of that index (-1 = all). */
static double *values_of(const struct lab_recording_stats_label *label,
                         enum lab_recording_stats_metric metric, int gpu, struct lab_arena *arena) {
    double *values = lab_arena_alloc(arena, (size_t)label->count + 1, sizeof *values);
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        values[i] = gpu < 0 ? lab_recording_stats_together(stats, metric) : (double)NAN;
        for (int g = 0; g < stats->gpu_count && gpu >= 0; g++)
            if (stats->gpus[g].track->entity.index == gpu)
                values[i] = stats->gpus[g].figures[metric].mean;
    }
    return values;
}

struct lab_claim lab_recording_stats_compare(const struct lab_recording_stats_label *first,
                                             const struct lab_recording_stats_label *second,
                                             enum lab_recording_stats_metric metric, int gpu,
                                             const char *kind, struct lab_arena *arena) {
    struct lab_claim claim =
        lab_claim_from_samples(values_of(first, metric, gpu, arena), first->count,
                               values_of(second, metric, gpu, arena), second->count);
    claim.kind = kind;
    claim.subject =
        gpu < 0 ? second->name : lab_arena_printf(arena, "%s, GPU %d", second->name, gpu);
    claim.reference = first->name;
    lab_claim_add_scope(&claim, first->name, arena);
    lab_claim_add_scope(&claim, second->name, arena);
    claim.quantity = lab_recording_stats_kinds[metric].noun;
    return claim;
}

/* --- grades --- */

double lab_recording_stats_cv(const double *values, int count) {
    LAB_AUTO_FREE double *there = lab_mem_alloc((size_t)count + 1, sizeof *there);
    size_t n = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(values[i]))
            there[n++] = values[i];
    double mean = n > 0 ? lab_stats_mean(there, n) : 0;
    return n < 2 || mean <= 0 ? (double)NAN : lab_stats_stddev_population(there, n) / mean;
}

double lab_recording_stats_cv_of(const struct lab_recording_stats *stats,
                                 enum lab_recording_stats_metric metric) {
    LAB_AUTO_FREE double *means = lab_mem_alloc((size_t)stats->gpu_count + 1, sizeof *means);
    for (int g = 0; g < stats->gpu_count; g++)
        means[g] = stats->gpus[g].unused ? (double)NAN : stats->gpus[g].figures[metric].mean;
    return lab_recording_stats_cv(means, stats->gpu_count);
}

const char *lab_recording_stats_grade(double cv) {
    return isnan(cv)   ? NULL
           : cv < 0.05 ? "excellent"
           : cv < 0.10 ? "good"
           : cv < 0.20 ? "fair"
                       : "poor";
}
