/* studies_files.c: which words are studies, which are files, which of these is what; and the
 * tables of them all. */
#include "load/studies_files.h"

#include "base/file/walk.h"
#include "load/recordings.h"
#include "load/study_view.h"
#include "store/foreign/monitor_file.h"
#include "store/tuning/timing_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct lab_walk files_below = {.any_file = true, .depth = 3};

struct sorted {
    const char **studies;
    struct lab_studies_recording *recordings;
    struct lab_studies_timing *timings;
    int study_count, recording_count, timing_count;
    struct lab_arena *arena;
};

static bool is_timing(const char *path) {
    LAB_AUTO(arena, scratch);
    struct lab_timing_file file;
    return lab_timing_file_read(path, &scratch, &file, NULL) == 0;
}

/* False: neither timings nor a recording. */
static bool take_file(struct sorted *sorted, const char *path, const char *phase, bool named) {
    if (lab_monitor_is_file(path)) {
        LAB_ADD(sorted->recordings, sorted->recording_count, sorted->arena) =
            (struct lab_studies_recording){path, named};
        return true;
    }
    if (!is_timing(path))
        return false;
    LAB_ADD(sorted->timings, sorted->timing_count, sorted->arena) =
        (struct lab_studies_timing){path, phase};
    return true;
}

static void take_study(struct sorted *sorted, const char *word) {
    LAB_ADD(sorted->studies, sorted->study_count, sorted->arena) = word;
}

/* A folder of studies is that, whatever else lies in it. A file in it that is neither timings nor a
 * recording is no mistake: folders hold notes and pictures, too. */
static void take_folder(struct sorted *sorted, const char *path, const char *phase) {
    const char *const *folders;
    struct lab_walk_find *finds;
    int count, before = sorted->timing_count + sorted->recording_count;
    if (lab_studies_find(&path, 1, sorted->arena, &folders, &count, NULL) < 0 &&
        lab_walk(path, &files_below, sorted->arena, &finds, &count, NULL) == 0)
        for (int i = 0; i < count; i++)
            take_file(sorted, finds[i].path, phase, false);
    if (sorted->timing_count + sorted->recording_count == before) /* which says what it lacks */
        take_study(sorted, *phase ? lab_arena_printf(sorted->arena, "%s=%s", phase, path) : path);
}

/* --- words --- */

/* The parts of "a,b"; a name with a comma in it that is there is one. */
static int split(const char *word, struct lab_arena *arena, const char ***ret_parts) {
    int room = 1, count = 0;
    for (const char *at = word; *at; at++)
        room += *at == ',';
    const char **parts = lab_arena_alloc(arena, (size_t)room, sizeof *parts);
    if (access(word, F_OK) == 0)
        parts[count++] = word;
    else
        for (const char *at = word;; at += strcspn(at, ",") + 1) {
            parts[count++] = lab_arena_strndup(arena, at, strcspn(at, ","));
            if (!at[strcspn(at, ",")])
                break;
        }
    *ret_parts = parts;
    return count;
}

bool lab_studies_is_list(const char *word, struct lab_arena *arena) {
    const char **parts;
    int count = split(word, arena, &parts);
    for (int i = 0; i < count; i++)
        if (access(parts[i], F_OK) < 0)
            return false;
    return count > 1;
}

static int take_word(struct sorted *sorted, const char *word, struct lab_err *err) {
    const char *path, *phase = lab_recordings_split(word, sorted->arena, &path);
    const char **parts;
    bool list = lab_studies_is_list(path, sorted->arena);
    int count = list ? split(path, sorted->arena, &parts) : 1;
    for (int i = 0; i < count; i++) {
        const char *part = list ? parts[i] : path;
        struct stat info;
        bool there = stat(part, &info) == 0;
        if (there && S_ISDIR(info.st_mode))
            take_folder(sorted, part, phase ? phase : "");
        else if (there && take_file(sorted, part, phase ? phase : "", true))
            continue;
        else if (there && (phase || list))
            return lab_err_set(err, LAB_ERR_USER, "%s holds neither timings nor a recording", part);
        else
            take_study(sorted, word);
    }
    return 0;
}

int lab_studies_sort(const char *const *words, int count, struct lab_arena *arena,
                     struct lab_studies_words *ret_words, struct lab_err *err) {
    struct sorted sorted = {.arena = arena};
    for (int i = 0; i < count; i++)
        if (take_word(&sorted, words[i], err) < 0)
            return -1;
    if (sorted.study_count == 0 && sorted.timing_count == 0 && sorted.recording_count > 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is a recording: name a study or a file of timings with it, to "
                           "compare it with its times",
                           sorted.recordings[0].path);
    *ret_words =
        (struct lab_studies_words){sorted.studies,      sorted.study_count, sorted.timings,
                                   sorted.timing_count, sorted.recordings,  sorted.recording_count};
    return 0;
}

/* --- tables --- */

/* By its label. Two studies of one name are told apart by experiment.name, or else their
 * folders. */
static void make_names(struct lab_study_table *tables, int count, struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        bool same = false, alike = false;
        for (int k = 0; k < count; k++) {
            bool other = i != k && !tables[k].label;
            same |= other && lab_str_equal(tables[k].name, tables[i].name);
            alike |= other && lab_str_equal(tables[k].folder_name, tables[i].folder_name);
        }
        names[i] = tables[i].label ? tables[i].label
                   : !same         ? tables[i].name
                   : alike         ? lab_study_view_shorten(tables[i].folder, arena)
                                   : tables[i].folder_name;
    }
    for (int i = 0; i < count; i++)
        tables[i].name = names[i];
}

int lab_studies_read(const char *const *words, int count, unsigned needs, struct lab_arena *arena,
                     struct lab_study_table **ret_tables, int *ret_count, struct lab_err *err) {
    struct lab_studies_words sorted = {.studies = words, .study_count = count};
    const char *const *folders = NULL, *const *labels = NULL;
    if ((needs & LAB_STUDY_WITH_FILES && lab_studies_sort(words, count, arena, &sorted, err) < 0) ||
        lab_studies_find_labelled(sorted.studies, sorted.study_count, arena, &folders, &labels,
                                  &count, err) < 0)
        return -1;
    struct lab_study_table *tables = lab_arena_alloc(arena, (size_t)count + 1, sizeof *tables);
    for (int i = 0; i < count; i++) {
        if (lab_studies_read_one(folders[i], needs, arena, &tables[i], err) < 0)
            return -1;
        tables[i].label = labels[i];
    }
    lab_studies_leave_copies(tables, &count, arena);
    make_names(tables, count, arena);
    if (sorted.timing_count > 0 &&
        lab_studies_read_timings(sorted.timings, sorted.timing_count, needs, arena,
                                 &tables[count++], err) < 0)
        return -1;
    if (lab_studies_lay_beside(tables, count, sorted.recordings, sorted.recording_count, arena,
                               err) < 0)
        return -1;
    *ret_tables = tables;
    *ret_count = count;
    return 0;
}
