/* recording_stats_words.c: recordings sorted by label, and what is to be said of them in words. */
#include "analysis/recording/recording_stats.h"

#include "base/str.h"

#include <string.h>

#define MISSING_SHARE 0.001 /* of the time: less than that isn't worth a note */

/* --- labels --- */

int lab_recording_stats_labels(const struct lab_recording_stats *all_stats, int count,
                               struct lab_arena *arena,
                               struct lab_recording_stats_label **ret_labels) {
    struct lab_recording_stats_label *labels =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    int label_count = 0;
    for (int i = 0; i < count; i++) {
        const char *name =
            all_stats[i].source->label ? all_stats[i].source->label : all_stats[i].source->name;
        int l = 0;
        while (l < label_count && !lab_str_equal(labels[l].name, name))
            l++;
        if (l == label_count) {
            labels[label_count].name = name;
            labels[label_count++].all_stats =
                lab_arena_alloc(arena, (size_t)count, sizeof *labels->all_stats);
        }
        labels[l].all_stats[labels[l].count++] = &all_stats[i];
    }
    *ret_labels = labels;
    return label_count;
}

int lab_recording_stats_label_gpus(const struct lab_recording_stats_label *label,
                                   int ret_indices[LAB_RECORDING_STATS_GPUS_MAX]) {
    int count = 0;
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            int index = label->all_stats[i]->gpus[g].track->entity.index, at = 0;
            while (at < count && ret_indices[at] < index)
                at++;
            if ((at < count && ret_indices[at] == index) || count == LAB_RECORDING_STATS_GPUS_MAX)
                continue;
            memmove(ret_indices + at + 1, ret_indices + at,
                    (size_t)(count - at) * sizeof *ret_indices);
            ret_indices[at] = index;
            count++;
        }
    return count;
}

/* --- what it is --- */

bool lab_recording_stats_has_values(const struct lab_recording_stats *stats) {
    for (int g = 0; g < stats->gpu_count; g++)
        for (int m = 0; m < LAB_RECORDING_STATS_METRICS; m++)
            if (stats->gpus[g].figures[m].count > 0)
                return true;
    return false;
}

static bool is_known(const struct lab_track *track, int column) {
    for (size_t i = 0; track->values[column] && track->valid[column] && i < track->count; i++)
        if (track->valid[column][i])
            return true;
    return false;
}

const char *lab_recording_stats_others(const struct lab_recording_stats *stats,
                                       struct lab_arena *arena) {
    const char *words[LAB_METRIC_COUNT + 1] = {0};
    int count = 0;
    LAB_AUTO(str, text);
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_entity *entity = &stats->gpus[g].track->entity;
        for (int c = 0; c < entity->column_count; c++) {
            const char *name = lab_metric(entity->columns[c].metric)->name;
            if (is_known(stats->gpus[g].track, c) && lab_str_find(name, words) < 0)
                words[count++] = name;
        }
    }
    lab_str_add_list(&text, words, "and");
    return count ? lab_arena_strdup(arena, text.text) : "nothing";
}

static bool same_devices(const struct lab_recording_stats *a, const struct lab_recording_stats *b) {
    if (a->gpu_count != b->gpu_count)
        return false;
    for (int g = 0; g < a->gpu_count; g++)
        if (!lab_str_equal(a->gpus[g].track->entity.name, b->gpus[g].track->entity.name))
            return false;
    return true;
}

/* "2 × NVIDIA A10G and 1 × NVIDIA L4" */
static void add_devices(const struct lab_recording_stats *stats, struct lab_str *out) {
    bool first = true;
    for (int g = 0; g < stats->gpu_count; g++) {
        const char *name = stats->gpus[g].track->entity.name;
        bool seen = false;
        int same = 0;
        for (int k = 0; k < stats->gpu_count; k++) {
            bool equal = lab_str_equal(stats->gpus[k].track->entity.name, name);
            seen |= k < g && equal;
            same += equal;
        }
        if (seen)
            continue;
        lab_str_printf(out, "%s%d × %s", first ? "" : " and ", same, name && *name ? name : "GPU");
        first = false;
    }
    if (stats->gpu_count == 0)
        lab_str_add(out, "no GPU");
}

const char *lab_recording_stats_about(const struct lab_recording_stats *const *all_stats, int count,
                                      struct lab_arena *arena) {
    LAB_AUTO(str, text);
    double seconds = 0;
    bool same = true;
    for (int i = 0; i < count; i++) {
        seconds += all_stats[i]->duration_s;
        same &= same_devices(all_stats[0], all_stats[i]);
    }
    if (same)
        add_devices(all_stats[0], &text);
    else
        lab_str_add(&text, "various GPUs");
    if (count > 1)
        lab_str_printf(&text, ", %d recordings", count);
    lab_str_add(&text, ", ");
    lab_str_add_duration(&text, seconds, LAB_DURATION_PRECISE);
    return lab_arena_strdup(arena, text.text);
}

static void add_gap(const char *const **notes, const char *prefix,
                    const struct lab_recording_stats_gpu *gpu,
                    const struct lab_recording_stats *stats, struct lab_arena *arena) {
    double share = stats->duration_s > 0 ? gpu->missing_s / stats->duration_s : 1;
    if (gpu->gap_count == 0 || share < MISSING_SHARE)
        return;
    if (!lab_recording_stats_has_values(stats))
        return; /* of none there is any: the answer says so */
    if (gpu->figures[LAB_RECORDING_STATS_MEMORY].count == 0 &&
        gpu->figures[LAB_RECORDING_STATS_UTILIZATION].count == 0)
        lab_analysis_note(notes, arena, "%s%s has no samples", prefix, gpu->name);
    else
        lab_analysis_note(
            notes, arena,
            "%s%s has no samples for %.1f%% of the time (%d gap%s): its values are over the rest",
            prefix, gpu->name, 100 * share, gpu->gap_count, gpu->gap_count == 1 ? "" : "s");
}

void lab_recording_stats_add_notes(const struct lab_recording_stats *const *all_stats, int count,
                                   const char *const **notes, struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        const struct lab_recording_stats *stats = all_stats[i];
        const char *prefix = count > 1 ? lab_arena_printf(arena, "%s: ", stats->source->name) : "";
        for (int k = 0; stats->missing && stats->missing[k]; k++)
            lab_analysis_note(notes, arena, "%sread in part: %s", prefix, stats->missing[k]);
        for (int g = 0; g < stats->gpu_count; g++)
            add_gap(notes, prefix, &stats->gpus[g], stats, arena);
        if (stats->mig_count > 0)
            lab_analysis_note(
                notes, arena,
                "%s%d MIG instance%s recorded: values are those of whole GPUs; the load by "
                "instance is unknown",
                prefix, stats->mig_count, stats->mig_count == 1 ? " was" : "s were");
        if (stats->gpu_count == 0)
            lab_analysis_note(notes, arena, "%sno GPU was recorded: only its host is shown",
                              prefix);
    }
}
