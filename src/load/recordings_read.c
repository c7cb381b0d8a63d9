/* recordings_read.c: reads what was found; of a study, a recording for each of its runs. */
#include "load/recordings.h"

#include "base/tty/console.h"
#include "load/study_file.h"
#include "load/study_samples.h"
#include "store/foreign/monitor_file.h"

#include <math.h>
#include <string.h>

struct reading {
    struct lab_labelled_recording *items;
    int count;
    struct lab_arena *arena;
};

static void add(struct reading *reading, const char *name, const char *label,
                const struct lab_recording *recording, double rate, const char *rate_unit) {
    LAB_ADD(reading->items, reading->count, reading->arena) =
        (struct lab_labelled_recording){name, label, recording, rate, rate_unit};
}

/* --- runs of a study --- */

static bool uses(const struct lab_run *run, int gpu) {
    for (int i = 0; i < run->rank_count; i++) {
        int own = lab_run_device_gpu(run->ranks[i].device);
        if (own == gpu || own == LAB_RUN_GPU_BY_ID)
            return true;
    }
    return false;
}

const struct lab_recording *lab_recordings_of_run(const struct lab_recording *recording,
                                                  const struct lab_run *run,
                                                  struct lab_arena *arena) {
    struct lab_recording *own = lab_arena_alloc(arena, 1, sizeof *own);
    *own = *recording;
    own->tracks = lab_arena_alloc(arena, (size_t)own->track_count + 1, sizeof *own->tracks);
    own->track_count = 0;
    own->event_count = own->process_count = 0; /* which refer to tracks by number */
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        if (entity->kind == LAB_ENTITY_MIG ||
            (entity->kind == LAB_ENTITY_GPU && !uses(run, entity->index)))
            continue;
        own->tracks[own->track_count++] = recording->tracks[i];
    }
    return own;
}

static int read_run(struct reading *reading, struct lab_study_samples *samples, const char *label,
                    const char *prefix, const struct lab_run *run, struct lab_err *err) {
    const struct lab_recording *whole = lab_study_samples_read(samples, run, err);
    if (!whole)
        return -1;
    const struct lab_recording *recording = lab_recordings_of_run(whole, run, reading->arena);
    if (lab_recording_has_ticks(recording))
        add(reading, *prefix ? lab_arena_printf(reading->arena, "%s/%s", prefix, run->id) : run->id,
            label, recording, run->rate, run->rate_unit && *run->rate_unit ? run->rate_unit : NULL);
    return 0;
}

/* Of several studies the whole names of their points: the same settings may be of two plans. */
static const char **labels_of(const struct lab_run *runs, int count, const char *given, bool alone,
                              struct lab_arena *arena) {
    const struct lab_run **all = lab_arena_alloc(arena, (size_t)count + 1, sizeof *all);
    const char **labels = lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    for (int i = 0; i < count; i++) {
        all[i] = &runs[i];
        labels[i] = given ? given : lab_study_file_point(&runs[i], arena);
    }
    return given || !alone ? labels : lab_study_file_labels(all, count, arena);
}

static int read_runs(struct reading *reading, struct lab_store *store,
                     const struct lab_recording_source *source, const char *prefix,
                     struct lab_err *err) {
    struct lab_run *runs;
    int count, valid = 0, left_out = 0, before = reading->count;
    static const char *const rates_alone[] = {NULL};
    if (lab_store_runs_with(store, rates_alone, reading->arena, &runs, &count, err) < 0)
        return -1;
    struct lab_study_samples samples =
        lab_study_samples_of(store, runs, count, true, reading->arena);
    const char **labels = labels_of(runs, count, source->label, !*prefix, reading->arena);
    for (int i = 0; i < count; i++)
        valid += runs[i].state == LAB_RUN_DONE && runs[i].valid;
    for (int i = 0; i < count; i++) {
        if (runs[i].state != LAB_RUN_DONE)
            continue;
        if (valid > 0 && !runs[i].valid)
            left_out++;
        else if (read_run(reading, &samples, labels[i], prefix, &runs[i], err) < 0)
            return -1;
    }
    if (left_out > 0)
        lab_console_note("%s: %d run%s not valid and left out", source->path, left_out,
                         left_out == 1 ? " is" : "s are");
    if (reading->count == before)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s holds no samples: nothing was recorded while its runs were measured",
                           source->path);
    return 0;
}

static int read_study(struct reading *reading, const struct lab_recording_source *source,
                      bool alone, struct lab_err *err) {
    struct lab_store *store;
    const char *slash = strrchr(source->path, '/');
    const char *folder =
        slash ? lab_arena_strndup(reading->arena, source->path, (size_t)(slash - source->path))
              : ".";
    if (lab_store_open(source->path, LAB_STORE_READ, &store, err) < 0)
        return -1;
    int result = read_runs(reading, store, source, alone ? "" : folder, err);
    lab_store_close(store);
    return result;
}

/* --- all --- */

static int read_source(struct reading *reading, const struct lab_recording_source *source,
                       bool alone, struct lab_err *err) {
    if (source->study)
        return read_study(reading, source, alone, err);
    struct lab_recording *recording = lab_arena_alloc(reading->arena, 1, sizeof *recording);
    if (lab_monitor_read(source->path, reading->arena, recording, err) < 0)
        return -1;
    const char *why = recording->missing ? recording->missing[0] : NULL;
    if (!lab_recording_has_ticks(recording))
        return lab_err_set(err, LAB_ERR_USER, "%s holds no samples%s%s", source->path,
                           why ? ": " : "", why ? why : "");
    add(reading, source->name, source->label, recording, NAN, NULL);
    return 0;
}

static int finish(struct reading *reading, const struct lab_recording_source *sources, int count,
                  int left_out, struct lab_err *err) {
    if (reading->count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to analyse: no recording in %s%s",
                           count == 1 ? sources[0].path : "any of the files",
                           count == 1 ? "" : " that were found");
    if (left_out > 0)
        lab_console_note(left_out == 1 ? "%d file is not a recording and was left out"
                                       : "%d files are not recordings and were left out",
                         left_out);
    return 0;
}

int lab_recordings_read(const struct lab_recording_source *sources, int count,
                        struct lab_arena *arena, struct lab_labelled_recording **ret_recordings,
                        int *ret_count, int *ret_status, struct lab_err *err) {
    struct reading reading = {.arena = arena};
    int left_out = 0;
    for (int i = 0; i < count; i++) {
        struct lab_err refused = LAB_ERR_INIT;
        if (read_source(&reading, &sources[i], count == 1, &refused) == 0)
            continue;
        if (sources[i].named || count == 1) {
            return lab_err_set(err, refused.code, "%s", refused.text);
        } else if (refused.code == LAB_ERR_USER) {
            left_out++;
        } else {
            lab_console_note("%s", refused.text);
            *ret_status = lab_err_exit_status(refused.code);
        }
    }
    if (finish(&reading, sources, count, left_out, err) < 0)
        return -1;
    *ret_recordings = reading.items;
    *ret_count = reading.count;
    return 0;
}
