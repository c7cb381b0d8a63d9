/* walk.c: the one directory walk; what it looks for is data. */
#include "base/file/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walking {
    const struct lab_walk *wanted;
    struct lab_walk_find *finds;
    int count;
    struct lab_arena *arena;
};

/* --- names --- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_name(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

const char *const *lab_walk_names(const char *folder, struct lab_arena *arena) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_name, by_name);
    if (count < 0)
        return NULL;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        names[i] = lab_arena_strdup(arena, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

const char *lab_walk_trim(const char *path, struct lab_arena *arena) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return lab_arena_strndup(arena, path, length);
}

int lab_walk_ending(const char *name, const char *const *endings) {
    size_t length = strlen(name);
    for (int i = 0; endings && endings[i]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
            return i;
    }
    return -1;
}

/* --- finds --- */

static bool is_there(const char *folder, const char *name, struct lab_arena *arena) {
    return access(lab_arena_printf(arena, "%s/%s", folder, name), F_OK) == 0;
}

static bool is_wanted_file(const struct walking *walking, const char *folder, const char *name) {
    const char *const *endings = walking->wanted->endings;
    int own = lab_walk_ending(name, endings);
    if (own < 0)
        return walking->wanted->any_file;
    int stem = (int)(strlen(name) - strlen(endings[own]));
    for (int i = 0; i < own; i++)
        if (is_there(folder, lab_arena_printf(walking->arena, "%.*s%s", stem, name, endings[i]),
                     walking->arena))
            return false;
    return true;
}

static void add(struct walking *walking, struct lab_walk_find find) {
    LAB_ADD(walking->finds, walking->count, walking->arena) = find;
}

static int walk(struct walking *walking, const char *folder, const char *below, int depth,
                struct lab_err *err) {
    const struct lab_walk *wanted = walking->wanted;
    struct lab_arena *arena = walking->arena;
    const char *const *names = lab_walk_names(folder, arena);
    if (!names && depth > 0 && (errno == EACCES || errno == ENOENT))
        return 0;
    if (!names)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s can't be read", folder);
    for (; *names; names++) {
        const char *path = lab_arena_printf(arena, "%s/%s", folder, *names);
        struct stat info;
        if (**names == '.' || lstat(path, &info) < 0)
            continue;
        bool is_folder = S_ISDIR(info.st_mode);
        if (is_folder ? wanted->holds && is_there(path, wanted->holds, arena)
                      : S_ISREG(info.st_mode) && is_wanted_file(walking, folder, *names))
            add(walking, (struct lab_walk_find){path, *names, below, is_folder});
        else if (is_folder && depth < wanted->depth &&
                 walk(walking, path,
                      lab_arena_printf(arena, "%s%s%s", below, *below ? "/" : "", *names),
                      depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

int lab_walk(const char *folder, const struct lab_walk *wanted, struct lab_arena *arena,
             struct lab_walk_find **ret_finds, int *ret_count, struct lab_err *err) {
    struct walking walking = {.wanted = wanted, .arena = arena};
    if (walk(&walking, folder, "", 0, err) < 0)
        return -1;
    *ret_finds = walking.finds;
    *ret_count = walking.count;
    return 0;
}

/* --- files that are named twice --- */

bool lab_walk_again(struct lab_walk_seen *seen, const char *path, struct lab_arena *arena) {
    struct stat info;
    if (stat(path, &info) < 0)
        return false;
    for (int i = 0; i < seen->count; i++)
        if (seen->items[i].device == info.st_dev && seen->items[i].inode == info.st_ino)
            return true;
    LAB_ADD(seen->items, seen->count, arena) = (struct lab_walk_id){info.st_dev, info.st_ino};
    return false;
}
