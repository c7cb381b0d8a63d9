/* trace_find.c: files and folders of traces, in an order that doesn't depend on the file system. */
#include "store/trace/trace_find.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* of folders below the one that was named */

struct found {
    struct lab_trace_source *items;
    dev_t *devices;
    ino_t *inodes;
    int count, capacity, device_capacity, inode_capacity;
    struct lab_arena *arena;
};

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static const char *const endings[] = {".sqlite", ".nsys-rep", ".qdrep"};
enum { ENDINGS = sizeof endings / sizeof *endings };

static const char *make_name(const char *path, bool whole_path, struct lab_arena *arena) {
    const char *slash = strrchr(path, '/'), *name = whole_path || !slash ? path : slash + 1;
    if (!whole_path && lab_str_starts(name, "pipeline_") && name[strlen("pipeline_")])
        name += strlen("pipeline_");
    for (int i = 0; i < ENDINGS; i++)
        if (ends_with(name, endings[i]))
            return lab_arena_strndup(arena, name, strlen(name) - strlen(endings[i]));
    return name;
}

static void add(struct found *found, const char *path, const struct stat *info, bool named) {
    for (int i = 0; i < found->count; i++)
        if (found->devices[i] == info->st_dev && found->inodes[i] == info->st_ino)
            return;
    LAB_MEM_GROW(&found->items, found->count, &found->capacity);
    LAB_MEM_GROW(&found->devices, found->count, &found->device_capacity);
    LAB_MEM_GROW(&found->inodes, found->count, &found->inode_capacity);
    found->devices[found->count] = info->st_dev;
    found->inodes[found->count] = info->st_ino;
    found->items[found->count++] = (struct lab_trace_source){.path = path, .named = named};
}

/* --- folders --- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A report of Nsight's beside a trace of the same name: both tell of the same run. */
static bool has_sibling(const char *path, struct lab_arena *arena) {
    for (int i = 1; i < ENDINGS; i++)
        if (ends_with(path, endings[i]))
            return access(lab_arena_printf(arena, "%.*s%s",
                                           (int)(strlen(path) - strlen(endings[i])), path,
                                           endings[0]),
                          F_OK) == 0;
    return false;
}

static bool is_named_as_trace(const char *path) {
    for (int i = 0; i < ENDINGS; i++)
        if (ends_with(path, endings[i]))
            return true;
    return false;
}

static int look(struct found *found, const char *folder, int depth, struct lab_err *err) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    if (count < 0 && depth > 0 && (errno == EACCES || errno == ENOENT))
        return 0; /* somebody else's, or gone meanwhile */
    if (count < 0)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s can't be read", folder);
    int result = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        const char *path = lab_arena_printf(found->arena, "%s/%s", folder, name);
        struct stat info;
        if (result == 0 && name[0] != '.' && lstat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
                result = look(found, path, depth + 1, err);
            else if (S_ISREG(info.st_mode) && is_named_as_trace(name) &&
                     !has_sibling(path, found->arena))
                add(found, path, &info, false);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int look_in(struct found *found, const char *word, struct lab_err *err) {
    struct lab_arena *arena = found->arena;
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    const char *folder = lab_arena_strndup(arena, word, length);
    const char *traces = lab_arena_printf(arena, "%s/traces", folder);
    struct stat info;
    bool study = access(lab_arena_printf(arena, "%s/study.db", folder), F_OK) == 0;
    int before = found->count;
    if (study && stat(traces, &info) == 0 && S_ISDIR(info.st_mode))
        folder = traces;
    if (look(found, folder, 0, err) < 0)
        return -1;
    if (found->count > before)
        return 0;
    if (study)
        return lab_err_set(
            err, LAB_ERR_USER,
            "no traces in %s: the study was run with experiment.trace=false, or on a "
            "device that can't be traced",
            word);
    return lab_err_set(
        err, LAB_ERR_USER,
        "no traces in %s: they end in .sqlite or .nsys-rep, and a study keeps its own "
        "in traces/",
        word);
}

/* --- names --- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void make_names(struct found *found) {
    const char **names = lab_mem_alloc((size_t)found->count + 1, sizeof *names);
    for (int i = 0; i < found->count; i++)
        names[i] = found->items[i].name = make_name(found->items[i].path, false, found->arena);
    qsort(names, (size_t)found->count, sizeof *names, by_text);
    for (int i = 0; i < found->count; i++) {
        struct lab_trace_source *source = &found->items[i];
        const char **hit =
            bsearch(&source->name, names, (size_t)found->count, sizeof *names, by_text);
        bool twice = (hit > names && by_text(hit, hit - 1) == 0) ||
                     (hit + 1 < names + found->count && by_text(hit, hit + 1) == 0);
        if (twice)
            source->name = source->path;
    }
    lab_mem_free(names);
}

int lab_trace_find(const char *const *words, int count, struct lab_arena *arena,
                   struct lab_trace_source **ret_sources, int *ret_count, struct lab_err *err) {
    struct found found = {.arena = arena};
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        struct stat info;
        if (stat(words[i], &info) < 0)
            result = lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", words[i]);
        else if (S_ISDIR(info.st_mode))
            result = look_in(&found, words[i], err);
        else
            add(&found, words[i], &info, true);
    }
    if (result == 0) {
        make_names(&found);
        *ret_sources = lab_arena_alloc(arena, (size_t)found.count + 1, sizeof **ret_sources);
        for (int i = 0; i < found.count; i++)
            (*ret_sources)[i] = found.items[i];
        *ret_count = found.count;
    }
    lab_mem_free(found.items);
    lab_mem_free(found.devices);
    lab_mem_free(found.inodes);
    return result;
}
