/*
 * studies_beside.c: recordings that were made beside runs, cut to their times.
 *
 * Recordings and runs count their own clocks; the wall clock is what they share. Values stay where
 * they were read: only times are made anew, since they are moved.
 */
#include "load/studies_files.h"

#include "base/str.h"
#include "store/foreign/monitor_file.h"

#include <string.h>

struct stretch {               /* of runs that share a recording */
    int64_t from_ns, until_ns; /* by the runs' clock */
    int64_t offset_ns;         /* wall clock = that + this */
};

/* Files of timings overlap where their GPUs ran at once: they share one recording, so that a
 * picture over time has each reading once. A study's run has its own. */
static int find_stretch(const struct lab_study_table *table, int first,
                        struct stretch *ret_stretch) {
    const struct lab_run *run = table->runs[first].run;
    struct stretch stretch = {run->start_ns, run->end_ns, run->start_wall_ns - run->start_ns};
    int behind = first + 1;
    while (!*table->option && behind < table->run_count &&
           table->runs[behind].run->start_ns <= stretch.until_ns) {
        if (table->runs[behind].run->end_ns > stretch.until_ns)
            stretch.until_ns = table->runs[behind].run->end_ns;
        behind++;
    }
    *ret_stretch = stretch;
    return behind;
}

/* --- tracks --- */

static bool has_column(const struct lab_recording *recording, const struct lab_entity *entity,
                       struct lab_column column) {
    for (int t = 0; t < recording->track_count; t++) {
        const struct lab_track *track = &recording->tracks[t];
        if (track->entity.kind != entity->kind || track->entity.index != entity->index)
            continue;
        int at =
            lab_entity_column(&track->entity, (enum lab_metric_id)column.metric, column.instance);
        if (at >= 0 && track->values[at])
            return true;
    }
    return false;
}

/* Which ticks of the track lie in the stretch; returns how many. */
static size_t find_ticks(const struct lab_recording *from, const struct lab_track *track,
                         const struct stretch *stretch, size_t *ret_first) {
    size_t first = 0, behind;
    while (first < track->count && lab_recording_wall_ns(from, track->times_ns[first]) <
                                       stretch->from_ns + stretch->offset_ns)
        first++;
    for (behind = first; behind < track->count; behind++)
        if (lab_recording_wall_ns(from, track->times_ns[behind]) >
            stretch->until_ns + stretch->offset_ns)
            break;
    *ret_first = first;
    return behind - first;
}

/* Without the columns that `into` has already. */
static bool cut_track(const struct lab_recording *from, const struct lab_track *track, size_t first,
                      size_t count, const struct stretch *stretch, const struct lab_recording *into,
                      struct lab_arena *arena, struct lab_track *ret_track) {
    size_t columns = (size_t)track->entity.column_count;
    struct lab_track cut = {.entity = track->entity,
                            .count = count,
                            .times_ns = lab_arena_alloc(arena, count, sizeof *cut.times_ns),
                            .values = lab_arena_alloc(arena, columns + 1, sizeof *cut.values),
                            .valid = lab_arena_alloc(arena, columns + 1, sizeof *cut.valid)};
    cut.entity.parent = -1;
    for (size_t i = 0; i < count; i++)
        cut.times_ns[i] =
            lab_recording_wall_ns(from, track->times_ns[first + i]) - stretch->offset_ns;
    bool any = false;
    for (size_t c = 0; c < columns; c++) {
        if (!track->values[c] || has_column(into, &track->entity, track->entity.columns[c]))
            continue;
        cut.values[c] = track->values[c] + first;
        cut.valid[c] = track->valid[c] + first;
        any = true;
    }
    *ret_track = cut;
    return any;
}

/* --- runs --- */

/* What the run has, and behind it what the recordings add; NULL = nothing at all. */
static const struct lab_recording *join(const struct lab_recording *own,
                                        const struct lab_recording *recordings, int count,
                                        const struct stretch *stretch, struct lab_arena *arena,
                                        bool *used) {
    struct lab_recording *joined = lab_arena_alloc(arena, 1, sizeof *joined);
    struct lab_recording_epoch *epoch = lab_arena_alloc(arena, 1, sizeof *epoch);
    size_t room = own ? (size_t)own->track_count : 0;
    for (int i = 0; i < count; i++)
        room += (size_t)recordings[i].track_count;
    *epoch = (struct lab_recording_epoch){INT64_MIN, stretch->offset_ns, "", ""};
    *joined = own ? *own
                  : (struct lab_recording){.path = recordings[0].path,
                                           .label = recordings[0].label,
                                           .maker = "",
                                           .epochs = epoch,
                                           .epoch_count = 1,
                                           .interval_ns = recordings[0].interval_ns};
    joined->tracks = lab_arena_alloc(arena, room + 1, sizeof *joined->tracks);
    if (own && own->track_count > 0)
        memcpy(joined->tracks, own->tracks, (size_t)own->track_count * sizeof *own->tracks);
    for (int i = 0; i < count; i++)
        for (int t = 0; t < recordings[i].track_count; t++) {
            const struct lab_track *track = &recordings[i].tracks[t];
            size_t first, ticks = find_ticks(&recordings[i], track, stretch, &first);
            if (ticks == 0)
                continue;
            used[i] = true;
            if (cut_track(&recordings[i], track, first, ticks, stretch, joined, arena,
                          &joined->tracks[joined->track_count]))
                joined->track_count++;
        }
    return joined->track_count > 0 ? joined : NULL;
}

static void lay_beside_table(struct lab_study_table *table, const struct lab_recording *recordings,
                             int count, struct lab_arena *arena, bool *used) {
    for (int i = 0; i < table->run_count;) {
        struct stretch stretch;
        int behind = find_stretch(table, i, &stretch);
        const struct lab_recording *joined =
            join(table->runs[i].recording, recordings, count, &stretch, arena, used);
        while (i < behind)
            table->runs[i++].recording = joined;
    }
}

/* --- words --- */

static const char *note_of(const struct lab_recording *recording, struct lab_arena *arena) {
    int64_t from_ns = INT64_MAX, until_ns = INT64_MIN;
    for (int t = 0; t < recording->track_count; t++) {
        const struct lab_track *track = &recording->tracks[t];
        if (track->count == 0)
            continue;
        int64_t first = lab_recording_wall_ns(recording, track->times_ns[0]);
        int64_t last = lab_recording_wall_ns(recording, track->times_ns[track->count - 1]);
        from_ns = first < from_ns ? first : from_ns;
        until_ns = last > until_ns ? last : until_ns;
    }
    if (until_ns < from_ns)
        return lab_arena_printf(arena, "%s holds no samples.", recording->path);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s was recorded from ", recording->path);
    lab_str_add_clock(&text, from_ns, LAB_STR_DATE);
    lab_str_add(&text, " to ");
    lab_str_add_clock(&text, until_ns, LAB_STR_DATE);
    lab_str_add(&text, ", when none of the runs ran: it is left out.");
    return lab_arena_strdup(arena, text.text);
}

static void add_notes(struct lab_study_table *table, const struct lab_recording *recordings,
                      const bool *used, int count, struct lab_arena *arena) {
    int had = 0;
    while (table->notes && table->notes[had])
        had++;
    const char **notes = lab_arena_alloc(arena, (size_t)(had + count + 1), sizeof *notes);
    for (int i = 0; i < had; i++)
        notes[i] = table->notes[i];
    for (int i = 0; i < count; i++)
        if (!used[i])
            notes[had++] = note_of(&recordings[i], arena);
    table->notes = notes;
}

int lab_studies_lay_beside(struct lab_study_table *tables, int count,
                           const struct lab_studies_recording *recordings, int recording_count,
                           struct lab_arena *arena, struct lab_err *err) {
    size_t room = (size_t)recording_count;
    struct lab_recording *read = lab_arena_alloc(arena, room + 1, sizeof *read);
    bool *used = lab_arena_alloc(arena, room + 1, sizeof *used);
    int kept = 0;
    for (int i = 0; i < recording_count; i++) {
        struct lab_err refused = LAB_ERR_INIT;
        if (lab_monitor_read(recordings[i].path, arena, &read[kept], &refused) == 0)
            kept++;
        else if (recordings[i].named || refused.code != LAB_ERR_USER)
            return lab_err_set(err, refused.code, "%s", refused.text);
    }
    if (kept == 0 || count == 0)
        return 0;
    for (int t = 0; t < count; t++)
        lay_beside_table(&tables[t], read, kept, arena, used);
    for (int i = 0; i < kept; i++)
        tables[0].simulated |= used[i] && read[i].simulated;
    add_notes(&tables[0], read, used, kept, arena);
    return 0;
}
