/* trace_find.c: files and folders of traces, in an order that doesn't depend on the file system. */
#include "store/trace/trace_find.h"

#include "base/file/walk.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A report of Nsight's beside a trace of the same name tells of the same run. */
static const char *const endings[] = {".sqlite", ".nsys-rep", ".qdrep", NULL};
static const struct lab_walk traces_below = {.endings = endings, .depth = 16};

struct found {
    struct lab_trace_source *items;
    int count;
    struct lab_walk_seen seen;
    struct lab_arena *arena;
};

static const char *make_name(const char *path, bool whole_path, struct lab_arena *arena) {
    const char *slash = strrchr(path, '/'), *name = whole_path || !slash ? path : slash + 1;
    if (!whole_path && lab_str_starts(name, "pipeline_") && name[strlen("pipeline_")])
        name += strlen("pipeline_");
    int ending = lab_walk_ending(name, endings);
    return ending < 0 ? name
                      : lab_arena_strndup(arena, name, strlen(name) - strlen(endings[ending]));
}

static void add(struct found *found, const char *path, bool named) {
    if (lab_walk_again(&found->seen, path, found->arena))
        return;
    LAB_ADD(found->items, found->count, found->arena) =
        (struct lab_trace_source){.path = path, .named = named};
}

/* --- folders --- */

static int look_in(struct found *found, const char *word, struct lab_err *err) {
    struct lab_arena *arena = found->arena;
    const char *folder = lab_walk_trim(word, arena);
    const char *traces = lab_arena_printf(arena, "%s/traces", folder);
    struct stat info;
    bool study = access(lab_arena_printf(arena, "%s/study.db", folder), F_OK) == 0;
    int before = found->count, count;
    struct lab_walk_find *finds;
    if (study && stat(traces, &info) == 0 && S_ISDIR(info.st_mode))
        folder = traces;
    if (lab_walk(folder, &traces_below, arena, &finds, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        add(found, finds[i].path, false);
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

static void make_names(struct found *found) {
    LAB_AUTO_FREE const char **names = lab_mem_alloc((size_t)found->count + 1, sizeof *names);
    for (int i = 0; i < found->count; i++)
        names[i] = found->items[i].name = make_name(found->items[i].path, false, found->arena);
    qsort(names, (size_t)found->count, sizeof *names, lab_str_compare);
    for (int i = 0; i < found->count; i++) {
        struct lab_trace_source *source = &found->items[i];
        const char **hit =
            bsearch(&source->name, names, (size_t)found->count, sizeof *names, lab_str_compare);
        bool twice = (hit > names && lab_str_compare(hit, hit - 1) == 0) ||
                     (hit + 1 < names + found->count && lab_str_compare(hit, hit + 1) == 0);
        if (twice)
            source->name = source->path;
    }
}

int lab_trace_find(const char *const *words, int count, struct lab_arena *arena,
                   struct lab_trace_source **ret_sources, int *ret_count, struct lab_err *err) {
    struct found found = {.arena = arena};
    for (int i = 0; i < count; i++) {
        struct stat info;
        if (stat(words[i], &info) < 0)
            return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", words[i]);
        if (!S_ISDIR(info.st_mode))
            add(&found, words[i], true);
        else if (look_in(&found, words[i], err) < 0)
            return -1;
    }
    make_names(&found);
    *ret_sources = found.items;
    *ret_count = found.count;
    return 0;
}
