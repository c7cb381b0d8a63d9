/* studies_find.c: which studies the words of a command line mean. */
#include "load/studies.h"

#include "base/str.h"
#include "run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* of studies below a folder: output_dir/study/date/time and some room above */

struct found {
    const char **items;
    int count, capacity;
    struct lab_arena *arena;
};

static bool holds_study(const char *folder, struct lab_arena *arena) {
    return access(lab_arena_printf(arena, "%s/study.db", folder), F_OK) == 0;
}

static void add(struct found *found, const char *folder) {
    struct stat a, b;
    for (int i = 0; i < found->count; i++)
        if (stat(folder, &a) == 0 && stat(found->items[i], &b) == 0 && a.st_dev == b.st_dev &&
            a.st_ino == b.st_ino)
            return;
    LAB_MEM_GROW(&found->items, found->count, &found->capacity);
    found->items[found->count++] = folder;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Links aren't followed: a study is found once, and a circle ends. */
static int look(struct found *found, const char *folder, int depth, struct lab_err *err) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name), result = 0;
    if (count < 0 && depth > 0 && (errno == EACCES || errno == ENOENT))
        return 0; /* somebody else's, or gone meanwhile */
    if (count < 0)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s can't be read", folder);
    for (int i = 0; i < count; i++) {
        const char *path = lab_arena_printf(found->arena, "%s/%s", folder, entries[i]->d_name);
        struct stat info;
        if (result == 0 && entries[i]->d_name[0] != '.' && lstat(path, &info) == 0 &&
            S_ISDIR(info.st_mode)) {
            if (holds_study(path, found->arena))
                add(found, path);
            else if (depth < DEPTH_MAX)
                result = look(found, path, depth + 1, err);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
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
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    folder = lab_arena_strndup(found->arena, word, length);
    if (holds_study(folder, found->arena)) {
        add(found, folder);
        return 0;
    }
    int before = found->count;
    if (look(found, folder, 0, err) < 0)
        return -1;
    /* a folder within a study, such as its traces */
    if (found->count == before && lab_folder_resolve(word, found->arena, &folder, NULL) == 0)
        add(found, folder);
    if (found->count == before)
        return lab_err_set(err, LAB_ERR_USER, "no study in %s: a study's folder holds study.db",
                           word);
    return 0;
}

int lab_studies_find(const char *const *words, int count, struct lab_arena *arena,
                     const char *const **ret_folders, int *ret_count, struct lab_err *err) {
    struct found found = {.arena = arena};
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = take_word(&found, words[i], err);
    if (result == 0) {
        const char **folders = lab_arena_alloc(arena, (size_t)found.count + 1, sizeof *folders);
        for (int i = 0; i < found.count; i++)
            folders[i] = found.items[i];
        *ret_folders = folders;
        *ret_count = found.count;
    }
    lab_mem_free(found.items);
    return result;
}
