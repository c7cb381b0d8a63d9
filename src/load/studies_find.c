/* studies_find.c: which studies the words of a command line mean. */
#include "load/studies.h"

#include "base/file/walk.h"
#include "load/recordings.h"
#include "load/studies_files.h"
#include "run/folder.h"

#include <sys/stat.h>

/* Studies below a folder: output_dir/study/date/time and some room above. */
static const struct lab_walk studies_below = {.holds = "study.db", .depth = 8};

struct found {
    const char **items, **labels; /* of each its label, or NULL */
    const char *label;            /* of the word that is looked at */
    int count;
    struct lab_walk_seen seen;
    struct lab_arena *arena;
};

static void add(struct found *found, const char *folder) {
    if (lab_walk_again(&found->seen, folder, found->arena))
        return;
    int count = found->count;
    LAB_ADD(found->labels, count, found->arena) = found->label;
    LAB_ADD(found->items, found->count, found->arena) = folder;
}

/* The folder's own study, or else those below it. */
static int look_in(struct found *found, const char *word, struct lab_err *err) {
    const char *folder = lab_walk_trim(word, found->arena);
    int before = found->count, count;
    struct lab_walk_find *finds;
    struct stat info;
    if (stat(lab_arena_printf(found->arena, "%s/study.db", folder), &info) == 0) {
        add(found, folder);
        return 0;
    }
    if (lab_walk(folder, &studies_below, found->arena, &finds, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        add(found, finds[i].path);
    /* a folder within a study, such as its traces */
    if (found->count == before && lab_folder_resolve(word, found->arena, &folder, NULL) == 0)
        add(found, folder);
    if (found->count == before)
        return lab_err_set(err, LAB_ERR_USER, "no study in %s: a study's folder holds study.db",
                           word);
    return 0;
}

static int take_word(struct found *found, const char *word, struct lab_err *err) {
    struct stat info;
    const char *folder;
    bool is_there = stat(word, &info) == 0;
    if (!is_there || !S_ISDIR(info.st_mode)) {
        struct lab_err refused = LAB_ERR_INIT;
        if (lab_folder_resolve(word, found->arena, &folder, &refused) < 0)
            return is_there ? lab_err_set(err, LAB_ERR_USER,
                                          "%s belongs to no study: name a study's folder", word)
                            : lab_err_set(err, refused.code, "%s", refused.text);
        add(found, folder);
        return 0;
    }
    return look_in(found, word, err);
}

int lab_studies_find(const char *const *words, int count, struct lab_arena *arena,
                     const char *const **ret_folders, int *ret_count, struct lab_err *err) {
    struct found found = {.arena = arena};
    for (int i = 0; i < count; i++)
        if (take_word(&found, words[i], err) < 0)
            return -1;
    *ret_folders = found.items;
    *ret_count = found.count;
    return 0;
}

int lab_studies_find_labelled(const char *const *words, int count, struct lab_arena *arena,
                              const char *const **ret_folders, const char *const **ret_labels,
                              int *ret_count, struct lab_err *err) {
    struct found found = {.arena = arena};
    for (int i = 0; i < count; i++) {
        const char *path;
        found.label = lab_recordings_split(words[i], arena, &path);
        if (take_word(&found, path, err) < 0)
            return -1;
    }
    *ret_folders = found.items;
    *ret_labels = found.labels;
    *ret_count = found.count;
    return 0;
}
