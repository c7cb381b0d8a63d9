/*
 * tracker_recording.c: a recording as a run of its own: what was recorded, and how the command
 * around which it was made ended. Everything of it lies in <recording>.track.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "store/recording/recording.h"
#include "track/tracker_about.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUIET_S 10 /* a recorder writes each second */

bool track_recording_is_open(const char *path) {
    LAB_AUTO(arena, arena);
    struct stat info;
    int64_t now_s = lab_clock_wall_ns() / LAB_NS_PER_S;
    return stat(lab_arena_printf(&arena, "%s-wal", path), &info) == 0 &&
           now_s - info.st_mtim.tv_sec < QUIET_S;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Between the first tick and the last; false = there is none yet. */
static bool find_times(const struct lab_recording *recording, struct lab_run *run) {
    run->start_ns = INT64_MAX;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (!track->count)
            continue;
        if (track->times_ns[0] < run->start_ns)
            run->start_ns = track->times_ns[0];
        if (track->times_ns[track->count - 1] > run->end_ns)
            run->end_ns = track->times_ns[track->count - 1];
    }
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == LAB_EVENT_MARK &&
            lab_str_equal(recording->events[i].text, "command ended"))
            run->exit_code = (int)recording->events[i].number;
    if (run->start_ns == INT64_MAX)
        return false;
    run->start_wall_ns = lab_recording_wall_ns(recording, run->start_ns);
    return true;
}

/* Marks that the recorder makes; false = it recorded no command. */
static bool find_usage(const struct lab_recording *recording, struct track_usage *usage,
                       struct lab_arena *arena) {
    bool command = false;
    *usage = (struct track_usage){.first_ns = INT64_MAX};
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].entity.index >= usage->count)
            usage->count = recording->tracks[i].entity.index + 1;
    usage->used_ns = lab_arena_alloc(arena, (size_t)usage->count + 1, sizeof *usage->used_ns);
    for (int i = 0; i < usage->count; i++)
        usage->used_ns[i] = INT64_MAX;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct lab_sample_event *event = &recording->events[i];
        if (event->kind != LAB_EVENT_MARK)
            continue;
        command |= lab_str_equal(event->text, "command began");
        if (event->entity < 0 || event->entity >= recording->track_count ||
            !lab_str_equal(event->text, LAB_RECORDING_USED))
            continue;
        const struct lab_entity *gpu = &recording->tracks[event->entity].entity;
        if (gpu->kind == LAB_ENTITY_MIG && gpu->parent >= 0 && gpu->parent < recording->track_count)
            gpu = &recording->tracks[gpu->parent].entity;
        int64_t *used_ns = &usage->used_ns[gpu->index];
        *used_ns = event->time_ns < *used_ns ? event->time_ns : *used_ns;
        usage->first_ns = *used_ns < usage->first_ns ? *used_ns : usage->first_ns;
    }
    return command;
}

static struct lab_track_run describe(const char *path, const struct lab_run *run,
                                     const struct lab_recording *recording, const char *project,
                                     struct lab_arena *arena) {
    const char *home = lab_track_home(path, arena);
    struct lab_value *config = lab_value_map(arena);
    uint64_t hash = lab_hash_text(LAB_HASH_START, project);
    hash = lab_hash_text(hash, home);
    hash = lab_hash_bytes(hash, &run->start_ns, sizeof run->start_ns);
    const char *host = recording->epoch_count ? recording->epochs[0].host : "";
    uint64_t own = lab_hash_bytes(LAB_HASH_START, &run->start_wall_ns, sizeof run->start_wall_ns);
    own = lab_hash_text(own, host);
    lab_value_set_string(arena, config, "recording", path);
    lab_value_set_string(arena, config, "gpulab", recording->maker);
    lab_value_set_float(arena, config, "interval_s",
                        (double)recording->interval_ns / (double)LAB_NS_PER_S);
    return (struct lab_track_run){
        .folder = home,
        .project = project,
        .group = "recordings",
        .point = "recording",
        .name = run->id,
        .id = lab_arena_printf(arena, "%016llx", (unsigned long long)hash),
        .file = lab_arena_printf(arena, "%016llx", (unsigned long long)own),
        .host = host,
        .notes = "gpulab record",
        .tags = lab_arena_copy(arena, (const char *const[]){"recording"}, 1, sizeof(char *)),
        .config = config,
        .label = "",
        .prefix = "",
        .renamed = "",
        .study_wall_ns = run->start_wall_ns,
        .start_wall_ns = run->start_wall_ns,
        .attempt = 1,
    };
}

/* A run that several hosts write: its id follows from its name, and names of values have the
 * host's. */
static void share(struct lab_track_run *about, struct lab_arena *arena) {
    uint64_t hash = lab_hash_text(lab_hash_text(LAB_HASH_START, about->project), about->name);
    about->id = lab_arena_printf(arena, "%016llx", (unsigned long long)hash);
    about->label = lab_track_safe_name(*about->host ? about->host : "host", false, arena);
}

int track_send_recording(struct track_sender *sender, const char *path, struct lab_arena *arena,
                         struct lab_err *err) {
    static const enum lab_metric_id brief[] = {LAB_METRIC_CPU_UTILIZATION};
    struct lab_recording_query query = {
        .metrics = brief, .metric_count = 1, .without_processes = true};
    struct lab_recording recording;
    LAB_AUTO(arena, scratch);
    LAB_AUTO_FREE char *real = realpath(path, NULL);
    if (lab_recording_read(path, &query, &scratch, &recording, err) < 0)
        return -1;
    struct lab_run run = {.number = 1,
                          .id = base_name(path),
                          .workload = "record",
                          .label = "",
                          .options = "{}",
                          .series = "[]",
                          .test = "{}",
                          .error = "",
                          .rate_unit = "",
                          .rate = (double)NAN,
                          .rate_low = (double)NAN,
                          .rate_high = (double)NAN,
                          .valid = true,
                          .attempts = 1,
                          .state = sender->sent->running ? LAB_RUN_RUNNING : LAB_RUN_DONE};
    if (!find_times(&recording, &run))
        return 0;
    if (run.exit_code != 0 && run.state == LAB_RUN_DONE)
        run.state = LAB_RUN_FAILED;
    run.error = lab_arena_printf(&scratch, "the command ended with status %d", run.exit_code);
    const char *project = sender->request->project;
    sender->recording = path;
    sender->sent->project =
        lab_track_safe_name(project && *project ? project : "gpulab-recordings", true, arena);
    struct lab_track_run about =
        describe(real ? real : path, &run, &recording, sender->sent->project, &scratch);
    const char *home = about.folder;
    track_about_override(&about, sender->request, &scratch);
    if (sender->request->run_name && *sender->request->run_name)
        share(&about, &scratch);
    struct track_usage *usage = lab_arena_alloc(arena, 1, sizeof *usage);
    if (find_usage(&recording, usage, arena))
        sender->usage = usage;
    if (track_send_open(sender, home, 1, arena, err) < 0)
        return -1;
    sender->arena = arena;
    int result = sender->sent->busy ? 0 : track_send_run(sender, &run, &about, err);
    track_journal_close(&sender->journal);
    return result;
}
