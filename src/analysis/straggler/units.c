/* units.c: what is compared: a job's GPUs or ranks, and what samples and processes tell of each. */
#include "analysis/straggler/straggler.h"

#include "base/list.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define WINDOW_TICKS 1.5 /* so that each window has a reading, though one is late */
#define WINDOWS_MOST 60
#define STRANGER_SM  5.0 /* % of a GPU that another job's process has to use to count */

const struct lab_straggler_kind lab_straggler_kinds[LAB_STRAGGLER_METRICS] = {
    [LAB_STRAGGLER_CLOCK] = {"sm_clock", "SM clock", "SM clock", LAB_METRIC_SM_CLOCK, 0.015, 1,
                             .low = "runs at a lower clock"},
    [LAB_STRAGGLER_UTILIZATION] = {"utilization", "Utilisation", "utilisation",
                                   LAB_METRIC_UTILIZATION, 0.02, LAB_RECORDING_STATS_IDLE,
                                   .low = "has no kernel to run while its peers have",
                                   .high = "is busy while its peers wait"},
    [LAB_STRAGGLER_SM] = {"sm_active", "SM activity", "SM activity", LAB_METRIC_SM_ACTIVE, 0.03, 1,
                          .high = "is busy while its peers wait"},
    [LAB_STRAGGLER_POWER] = {"power", "Power", "power", LAB_METRIC_POWER, 0.02, 1,
                             .high = "is busy while its peers wait"},
    [LAB_STRAGGLER_PCIE] = {"pcie_rx", "PCIe in", "PCIe rate", LAB_METRIC_PCIE_RX_RATE, 0.05, 50e6,
                            .low = "copies at a lower rate"},
    [LAB_STRAGGLER_SHARE] = {"gpu_share", "GPU share", "share of its GPU", -1, 0.05, 1,
                             .high = "is busy while its peers wait"},
    [LAB_STRAGGLER_CPU] = {"cpu", "CPU time", "CPU time", -1, 0.05, 5},
};

/* --- who they are --- */

static bool is_wanted(const struct lab_recording_stats_config *config, int index) {
    for (int i = 0; i < config->gpus.count; i++)
        if (config->gpus.items[i] == index)
            return true;
    return config->gpus.count == 0;
}

/* Whether a process of the job computes on that GPU in this list. */
static bool computes_on(const struct lab_process_sample *process, int entity) {
    for (int i = 0; i < process->gpu_count; i++)
        if (process->gpus[i].entity == entity && process->gpus[i].compute)
            return true;
    return false;
}

static bool belongs(const struct lab_process_sample *process,
                    const struct lab_straggler_unit *unit) {
    return !process->foreign &&
           (unit->track ? computes_on(process, unit->entity) : process->pid == unit->pid);
}

/* Whether any process of the recording is known to compute on a GPU: then those GPUs count. */
static bool knows_processes(const struct lab_recording *recording, int entity) {
    for (size_t l = 0; l < recording->process_count; l++)
        for (int p = 0; p < recording->processes[l].count; p++) {
            const struct lab_process_sample *process = &recording->processes[l].items[p];
            for (int g = 0; g < process->gpu_count && !process->foreign; g++)
                if (process->gpus[g].compute && (entity < 0 || process->gpus[g].entity == entity))
                    return true;
        }
    return false;
}

static void add_gpus(const struct lab_recording *recording,
                     const struct lab_recording_stats_config *config, struct lab_arena *arena,
                     struct lab_straggler_units *units) {
    bool by_process = knows_processes(recording, -1);
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->entity.kind != LAB_ENTITY_GPU || !is_wanted(config, track->entity.index))
            continue;
        double used = lab_track_between(track, LAB_METRIC_UTILIZATION, INT64_MIN, INT64_MAX).mean;
        bool counts = by_process ? knows_processes(recording, i)
                                 : used >= LAB_RECORDING_STATS_IDLE || config->gpus.count > 0;
        if (counts && track->count == 0)
            lab_analysis_note(&units->notes, arena, "GPU %d gave no samples.", track->entity.index);
        else if (counts)
            LAB_ADD(units->items, units->count, arena) =
                (struct lab_straggler_unit){.track = track, .entity = i};
    }
}

/* Peers are of one model: the one that most are of. */
static void keep_one_model(struct lab_straggler_units *units, struct lab_arena *arena) {
    const char *model = NULL;
    int most = 0, kept = 0;
    for (int i = 0; i < units->count; i++) {
        int alike = 0;
        for (int k = 0; k < units->count; k++)
            alike += lab_str_equal(units->items[i].track->entity.name,
                                   units->items[k].track->entity.name);
        if (alike > most) {
            most = alike;
            model = units->items[i].track->entity.name;
        }
    }
    for (int i = 0; i < units->count; i++) {
        const struct lab_entity *gpu = &units->items[i].track->entity;
        if (lab_str_equal(gpu->name, model))
            units->items[kept++] = units->items[i];
        else
            lab_analysis_note(&units->notes, arena,
                              "GPU %d is of another model (%s) and is not compared.", gpu->index,
                              gpu->name);
    }
    units->count = kept;
}

static void add_ranks(const struct lab_recording *recording, struct lab_arena *arena,
                      struct lab_straggler_units *units) {
    units->items = NULL;
    units->count = 0;
    units->processes = true;
    for (size_t l = 0; l < recording->process_count; l++)
        for (int p = 0; p < recording->processes[l].count; p++) {
            const struct lab_process_sample *process = &recording->processes[l].items[p];
            bool known = !process->rank || process->foreign;
            for (int i = 0; i < units->count; i++)
                known |= lab_str_equal(units->items[i].ranks, process->rank);
            if (!known)
                LAB_ADD(units->items, units->count, arena) = (struct lab_straggler_unit){
                    .entity = -1, .pid = process->pid, .ranks = process->rank};
        }
    LAB_SORT(units->items, units->count, LAB_BY(units->items, ranks));
}

/* Of all processes that compute on a GPU: their ranks, and the first one's pid. */
static void find_ranks(const struct lab_recording *recording, struct lab_straggler_unit *unit,
                       struct lab_arena *arena) {
    const char **ranks = NULL;
    int count = 0;
    for (size_t l = 0; l < recording->process_count; l++)
        for (int p = 0; p < recording->processes[l].count; p++) {
            const struct lab_process_sample *process = &recording->processes[l].items[p];
            if (!belongs(process, unit))
                continue;
            unit->pid = unit->pid ? unit->pid : process->pid;
            if (process->rank && lab_list_find_text(ranks, count, process->rank) < 0)
                LAB_ADD(ranks, count, arena) = process->rank;
        }
    LAB_AUTO(str, text);
    for (int i = 0; i < count; i++)
        lab_str_printf(&text, "%s%s", i ? ", " : "", ranks[i]);
    unit->ranks = count ? lab_arena_strdup(arena, text.text) : NULL;
    int index = unit->track->entity.index;
    unit->name = count ? lab_arena_printf(arena, "GPU %d (rank%s %s)", index, count > 1 ? "s" : "",
                                          unit->ranks)
                 : unit->pid ? lab_arena_printf(arena, "GPU %d (pid %d)", index, (int)unit->pid)
                             : lab_arena_printf(arena, "GPU %d", index);
}

/* --- windows --- */

struct bins {
    double *sums;
    int *counts;
    const struct lab_straggler_units *units;
};

static void put(struct bins *bins, int64_t time_ns, double value) {
    double at = (double)(time_ns - bins->units->start_ns) / 1e9 / bins->units->window_s;
    if (isnan(value) || !(at >= 0 && at < bins->units->windows)) /* NaN = there are no windows */
        return;
    bins->sums[(int)at] += value;
    bins->counts[(int)at]++;
}

static void put_track(struct bins *bins, const struct lab_track *track, enum lab_metric_id metric) {
    LAB_AUTO_FREE double *values = lab_mem_alloc(track->count + 1, sizeof *values);
    if (!lab_track_read(track, metric, -1, values))
        return;
    for (size_t t = 0; t < track->count; t++)
        put(bins, track->times_ns[t], values[t]);
}

/* Of all processes of a unit together. */
static void put_processes(struct bins *bins, const struct lab_recording *recording,
                          const struct lab_straggler_unit *unit, bool share) {
    for (size_t l = 0; l < recording->process_count; l++) {
        const struct lab_process_list *list = &recording->processes[l];
        double sum = NAN;
        for (int p = 0; p < list->count; p++) {
            const struct lab_process_sample *process = &list->items[p];
            if (!belongs(process, unit))
                continue;
            double value = process->cpu_percent;
            if (share)
                value = process->gpu_count > 0 ? process->gpus[0].sm_percent : (double)NAN;
            sum = isnan(sum) ? value : sum + value;
        }
        put(bins, list->time_ns, sum);
    }
}

static void fill_windows(const struct lab_recording *recording,
                         const struct lab_straggler_units *units, struct lab_straggler_unit *unit,
                         int metric, struct lab_arena *arena) {
    const struct lab_straggler_kind *kind = &lab_straggler_kinds[metric];
    size_t count = (size_t)units->windows + 1;
    struct bins bins = {lab_arena_alloc(arena, count, sizeof(double)),
                        lab_arena_alloc(arena, count, sizeof(int)), units};
    double sum = 0;
    int filled = 0;
    if (kind->metric >= 0 && unit->track)
        put_track(&bins, unit->track, (enum lab_metric_id)kind->metric);
    else if (kind->metric < 0 && (metric == LAB_STRAGGLER_CPU || !unit->track))
        put_processes(&bins, recording, unit, metric == LAB_STRAGGLER_SHARE);
    for (int w = 0; w < units->windows; w++) {
        bins.sums[w] = bins.counts[w] ? bins.sums[w] / bins.counts[w] : (double)NAN;
        sum += bins.counts[w] ? bins.sums[w] : 0;
        filled += bins.counts[w] > 0;
    }
    unit->windows[metric] = bins.sums;
    unit->mean[metric] = filled ? sum / filled : (double)NAN;
}

/* From when all units have been read to when one ends; windows of a reading or more. */
static void lay_windows(const struct lab_recording *recording, struct lab_straggler_units *units) {
    int64_t start_ns = INT64_MIN, end_ns = INT64_MAX;
    double interval_s = (double)recording->interval_ns / 1e9;
    for (int i = 0; i < units->count; i++) {
        const struct lab_track *track = units->items[i].track;
        const int64_t *times_ns = track ? track->times_ns : NULL;
        if (!track && recording->process_count > 0) {
            start_ns = recording->processes[0].time_ns;
            end_ns = recording->processes[recording->process_count - 1].time_ns;
            interval_s = fmax(interval_s, 1); /* processes are listed once a second */
        } else if (track) {
            start_ns = times_ns[0] > start_ns ? times_ns[0] : start_ns;
            end_ns = times_ns[track->count - 1] < end_ns ? times_ns[track->count - 1] : end_ns;
        }
    }
    if (units->count == 0 || end_ns <= start_ns)
        return;
    double duration_s = (double)(end_ns - start_ns) / 1e9;
    units->start_ns = start_ns;
    units->end_ns = end_ns;
    units->window_s = fmax(WINDOW_TICKS * interval_s, duration_s / WINDOWS_MOST);
    units->windows = (int)(duration_s / units->window_s);
}

/* --- what else is known --- */

static void describe_processes(const struct lab_recording *recording,
                               struct lab_straggler_unit *unit) {
    double queue = 0, remote = 0, judged = 0, shared = 0, lists = 0, queued = 0, active = 0;
    unit->cpu_node = unit->gpu_node = -1;
    for (size_t l = 0; l < recording->process_count; l++) {
        const struct lab_process_list *list = &recording->processes[l];
        bool stranger = false;
        lists++;
        for (int p = 0; p < list->count; p++) {
            const struct lab_process_sample *process = &list->items[p];
            for (int g = 0; g < process->gpu_count && process->foreign && unit->track; g++)
                if (process->gpus[g].entity == unit->entity &&
                    !(process->gpus[g].sm_percent < STRANGER_SM)) {
                    stranger = true;
                    unit->stranger = process->pid;
                }
            if (!belongs(process, unit))
                continue;
            queue += isnan(process->queue_percent) ? 0 : process->queue_percent / 100;
            queued += !isnan(process->queue_percent);
            active += isnan(process->active_percent) ? 0 : process->active_percent / 100;
            unit->cpu_node = process->cpu_node;
            if (process->placement >= LAB_PLACEMENT_LOCAL) {
                judged++;
                bool away = process->placement >= LAB_PLACEMENT_CORES;
                remote += away;
                unit->advice = away && process->advice && *process->advice ? process->advice : NULL;
            }
        }
        shared += stranger;
    }
    unit->queue = queued > 0 ? queue / queued : (double)NAN;
    unit->active = queued > 0 ? active / queued : (double)NAN;
    unit->remote = judged > 0 ? remote / judged : (double)NAN;
    unit->shared_by = lists > 0 ? shared / lists : (double)NAN;
}

static void describe_gpu(const struct lab_straggler_units *units, struct lab_straggler_unit *unit) {
    const struct lab_track *track = unit->track;
    double duration_s = (double)(units->end_ns - units->start_ns) / 1e9;
    unit->throttled = unit->pcie_generation = unit->pcie_width = unit->pcie_rate = NAN;
    if (!track)
        return;
    unit->gpu_node = track->entity.node;
    /* the link sleeps when nothing is copied: the most that was seen is what it can do */
    unit->pcie_generation =
        lab_track_between(track, LAB_METRIC_PCIE_GENERATION, INT64_MIN, INT64_MAX).max;
    unit->pcie_width = lab_track_between(track, LAB_METRIC_PCIE_WIDTH, INT64_MIN, INT64_MAX).max;
    unit->pcie_rate =
        lab_track_between(track, LAB_METRIC_PCIE_RX_RATE, units->start_ns, units->end_ns).mean +
        lab_track_between(track, LAB_METRIC_PCIE_TX_RATE, units->start_ns, units->end_ns).mean;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++) {
        if (!reason->harmful)
            continue;
        double share = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, reason->bit,
                                        units->start_ns, units->end_ns) /
                       duration_s;
        if (isnan(share) || share <= (isnan(unit->throttled) ? -1 : unit->throttled))
            continue;
        unit->throttled = share;
        unit->reason = share > 0 ? reason : NULL;
    }
}

void lab_straggler_units_make(const struct lab_recording *recording,
                              const struct lab_recording_stats_config *config,
                              struct lab_arena *arena, struct lab_straggler_units *ret_units) {
    *ret_units = (struct lab_straggler_units){.window_s = NAN};
    add_gpus(recording, config, arena, ret_units);
    keep_one_model(ret_units, arena);
    LAB_SORT(ret_units->items, ret_units->count, LAB_BY(ret_units->items, entity));
    struct lab_straggler_units ranks = *ret_units;
    if (ret_units->count < 2) {
        add_ranks(recording, arena, &ranks);
        if (ranks.count > ret_units->count)
            *ret_units = ranks;
    }
    lay_windows(recording, ret_units);
    for (int i = 0; i < ret_units->count; i++) {
        struct lab_straggler_unit *unit = &ret_units->items[i];
        if (unit->track)
            find_ranks(recording, unit, arena);
        else
            unit->name = lab_arena_printf(arena, "rank %s (pid %d)", unit->ranks, (int)unit->pid);
        for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
            fill_windows(recording, ret_units, unit, m, arena);
        describe_processes(recording, unit);
        describe_gpu(ret_units, unit);
    }
}
