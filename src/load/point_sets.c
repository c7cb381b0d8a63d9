/* point_sets.c: words as sets of points, and baselines. */
#include "load/point_sets.h"

#include "base/file/file.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "load/study_view.h"
#include "run/folder.h"
#include "store/foreign/point_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING    ".json"
#define NAME_MOST 100

/* --- one word --- */

static int read_study(const char *folder, struct lab_arena *arena, struct lab_point_set *ret_set,
                      struct lab_err *err) {
    struct lab_study_table table;
    if (lab_studies_read_one(folder, 0, arena, &table, err) < 0)
        return -1;
    *ret_set = lab_point_set_of_study(&table, arena);
    ret_set->source = lab_study_view_shorten(folder, arena);
    if (ret_set->point_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s: no run is done", ret_set->source);
    return lab_point_set_add_study_facts(ret_set, folder, arena, err);
}

/* Repeated runs of one thing are of one machine. */
static int merge(struct lab_point_set *whole, const struct lab_point_set *more, const char *word,
                 struct lab_arena *arena, struct lab_err *err) {
    const char *differs = lab_point_set_other_machine(whole, more, arena);
    if (differs)
        return lab_err_set(err, LAB_ERR_USER, "%s: runs of different machines (%s): name one", word,
                           differs);
    lab_point_set_merge(whole, more, arena);
    return 0;
}

/* All studies that a word means, as one: the blocks of each. */
static int read_studies(const char *word, struct lab_arena *arena, struct lab_point_set *ret_set,
                        struct lab_err *err) {
    const char *const *folders;
    int count;
    if (lab_studies_find(&word, 1, arena, &folders, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        struct lab_point_set set;
        if (read_study(folders[i], arena, &set, err) < 0)
            return -1;
        if (i == 0) {
            *ret_set = set;
            continue;
        }
        if (merge(ret_set, &set, word, arena, err) < 0)
            return -1;
    }
    return 0;
}

/* Its file, there or not; NULL = this user has no place for it. */
static const char *baseline_path(const char *name, struct lab_arena *arena) {
    const char *state = lab_folder_state(arena);
    bool fits = *name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_MOST;
    return state && fits ? lab_arena_printf(arena, "%s/baselines/%s" ENDING, state, name) : NULL;
}

static int read_part(const char *word, struct lab_arena *arena, struct lab_point_set **ret_sets,
                     int *ret_count, struct lab_err *err) {
    const char *folder, *baseline = baseline_path(word, arena);
    struct stat info;
    bool there = stat(word, &info) == 0;
    if (!*word)
        return lab_err_set(err, LAB_ERR_USER, "an empty name: nothing to compare");
    if (there && S_ISREG(info.st_mode) && lab_folder_resolve(word, arena, &folder, NULL) < 0)
        return lab_point_file_read(word, arena, ret_sets, ret_count, err);
    if (!there && baseline && access(baseline, F_OK) == 0) {
        if (lab_point_file_read(baseline, arena, ret_sets, ret_count, err) < 0)
            return lab_err_context(err, "baseline '%s'", word);
        if (*ret_count == 1)
            (*ret_sets)->name = word;
        return 0;
    }
    *ret_sets = lab_arena_alloc(arena, 1, sizeof **ret_sets);
    *ret_count = 1;
    return read_studies(word, arena, *ret_sets, err);
}

int lab_point_sets_read(const char *word, struct lab_arena *arena, struct lab_point_set **ret_sets,
                        int *ret_count, struct lab_err *err) {
    if (access(word, F_OK) == 0 || !strchr(word, ','))
        return read_part(word, arena, ret_sets, ret_count, err);
    struct lab_point_set *whole = NULL;
    const char **parts = NULL;
    int part_count = 0;
    for (const char *at = word;; at += strcspn(at, ",") + 1) {
        const char *part = lab_arena_strndup(arena, at, strcspn(at, ","));
        struct lab_point_set *sets;
        int count;
        if (lab_list_find_text(parts, part_count, part) >= 0)
            return lab_err_set(err, LAB_ERR_USER, "%s: %s is named twice: one run counts once",
                               word, part);
        LAB_ADD(parts, part_count, arena) = part;
        if (read_part(part, arena, &sets, &count, err) < 0)
            return -1;
        if (count > 1)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s holds %d sets that are compared already: name it alone", part,
                               count);
        if (whole && merge(whole, sets, word, arena, err) < 0)
            return -1;
        whole = whole ? whole : sets;
        if (at[strcspn(at, ",")])
            continue;
        whole->source = word;
        whole->name = lab_arena_printf(arena, "%s and %d more", whole->name, part_count - 1);
        *ret_sets = whole;
        *ret_count = 1;
        return 0;
    }
}

/* --- baselines --- */

static int check_name(const char *name, struct lab_arena *arena, struct lab_err *err) {
    const char *folder;
    if (!lab_folder_state(arena))
        return lab_err_set(err, LAB_ERR_USER, "neither XDG_STATE_HOME nor HOME is set");
    if (!baseline_path(name, arena) || strpbrk(name, ",="))
        return lab_err_set(err, LAB_ERR_USER,
                           "'%s' can't be a baseline's name: up to %d characters, no '/', ',' or "
                           "'=', no '.' in front",
                           name, NAME_MOST);
    if (access(name, F_OK) == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s is a file here: choose another name", name);
    if (lab_folder_resolve(name, arena, &folder, NULL) == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s is a study's name: choose another name", name);
    return 0;
}

int lab_baseline_save(const char *name, const char *word, struct lab_arena *arena,
                      struct lab_err *err) {
    struct lab_point_set *sets = NULL;
    int count = 0;
    if (check_name(name, arena, err) < 0 ||
        lab_point_sets_read(word, arena, &sets, &count, err) < 0)
        return -1;
    const char *path = baseline_path(name, arena), *refused;
    const char *folder = lab_arena_printf(arena, "%s/baselines", lab_folder_state(arena));
    int reason = lab_file_make_folders(folder, 0777, arena, &refused);
    if (reason)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, reason, "can't make %s", refused);
    struct lab_value *map = lab_value_map(arena);
    LAB_AUTO(str, text);
    lab_value_set(arena, map, "sets", lab_point_sets_value(sets, count, arena));
    lab_json_write(map, 1, &text);
    return lab_file_write_atomic(path, text.text, text.length, err);
}

bool lab_baseline_is_there(const char *name, struct lab_arena *arena) {
    const char *path = baseline_path(name, arena);
    return path && access(path, F_OK) == 0;
}

const char *const *lab_baseline_names(struct lab_arena *arena) {
    static const char *const none[] = {NULL};
    const char *state = lab_folder_state(arena);
    const char *const *files =
        state ? lab_walk_names(lab_arena_printf(arena, "%s/baselines", state), arena) : NULL;
    int count = 0, kept = 0;
    while (files && files[count])
        count++;
    if (count == 0)
        return none;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        size_t length = strlen(files[i]), ending = strlen(ENDING);
        if (length > ending && lab_str_equal(files[i] + length - ending, ENDING))
            names[kept++] = lab_arena_strndup(arena, files[i], length - ending);
    }
    return names;
}

int lab_baseline_remove(const char *name, struct lab_arena *arena, struct lab_err *err) {
    const char *path = baseline_path(name, arena);
    if (path && lab_own_remove(path) == 0)
        return 0;
    if (path && errno != ENOENT)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't remove %s", path);
    const char *nearest = lab_str_nearest(name, lab_baseline_names(arena));
    return lab_err_set(err, LAB_ERR_USER, "no baseline '%s'%s%s", name,
                       nearest ? "; did you mean " : "", nearest ? nearest : "");
}
