/*
 * find.c: where descriptions come from: what this process was told (a worker is told by its
 * runner), a file, the folders of the search path, the program itself.
 */
#include "device/sim/find.h"

#include "base/file/file.h"
#include "base/file/walk.h"
#include "base/str.h"
#include "device/sim/sim.h"

#include <string.h>
#include <sys/stat.h>

#define SUFFIX    ".yaml"
#define MAX_BYTES ((size_t)1 << 20)

static struct {
    pthread_mutex_t lock;
    char **folders;          /* NULL-terminated; NULL = none were set */
    char *name, *definition; /* the last that was defined: a process has to do with one */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lab_device_set_folders(const char *const *folders) {
    int count = 0;
    LAB_AUTO_LOCK(&known.lock);
    for (int i = 0; known.folders && known.folders[i]; i++)
        lab_mem_free(known.folders[i]);
    lab_mem_free(known.folders);
    while (folders && folders[count])
        count++;
    known.folders = folders ? lab_mem_alloc((size_t)count + 1, sizeof *known.folders) : NULL;
    for (int i = 0; i < count; i++)
        known.folders[i] = lab_mem_strdup(folders[i]);
}

void lab_device_define(const char *name, const char *definition) {
    LAB_AUTO_LOCK(&known.lock);
    lab_mem_free(known.name);
    lab_mem_free(known.definition);
    known.name = name ? lab_mem_strdup(name) : NULL;
    known.definition = name ? lab_mem_strdup(definition) : NULL;
}

static const char *defined(const char *name, struct lab_arena *arena) {
    LAB_AUTO_LOCK(&known.lock);
    return known.name && lab_str_equal(known.name, name) ? lab_arena_strdup(arena, known.definition)
                                                         : NULL;
}

/* Those that were set, or the user's own: looked up only where a description is asked for. */
static const char *const *folders_of(struct lab_arena *arena) {
    int count = 0;
    LAB_AUTO_LOCK(&known.lock);
    while (known.folders && known.folders[count])
        count++;
    const char **copy = lab_arena_alloc(arena, (size_t)count + 2, sizeof *copy);
    for (int i = 0; i < count; i++)
        copy[i] = lab_arena_strdup(arena, known.folders[i]);
    if (!known.folders)
        copy[0] = lab_file_config_folder(arena);
    return copy;
}

/* --- lists --- */

struct names {
    const char **items;
    int count;
};

static void add_name(struct names *names, const char *file, struct lab_arena *arena) {
    if (!lab_str_ends(file, SUFFIX) || strchr("._", file[0]))
        return;
    const char *name = lab_arena_strndup(arena, file, strlen(file) - strlen(SUFFIX));
    if (lab_str_find(name, names->items) >= 0)
        return;
    LAB_ADD(names->items, names->count, arena) = name;
}

static const char *const *list_names(struct lab_arena *arena, int *ret_count) {
    struct names names = {0};
    for (const char *const *folder = folders_of(arena); *folder; folder++) {
        const char *const *files =
            lab_walk_names(lab_arena_printf(arena, "%s/machine", *folder), arena);
        for (; files && *files; files++)
            add_name(&names, *files, arena);
    }
    for (const struct sim_file *file = lab_machine_files; file->path; file++)
        add_name(&names, file->path, arena);
    if (names.count)
        qsort(names.items, (size_t)names.count, sizeof *names.items, lab_str_compare);
    *ret_count = names.count;
    return names.items;
}

int lab_device_definitions(struct lab_arena *arena, const char *const **ret_names,
                           const char *const **ret_titles) {
    int count;
    const char *const *names = list_names(arena, &count);
    const char **titles = lab_arena_alloc(arena, (size_t)count + 1, sizeof *titles);
    for (int i = 0; i < count; i++) {
        const char *text, *origin;
        size_t length;
        struct sim_machine *machine;
        struct lab_err err = LAB_ERR_INIT;
        bool sound = sim_find(names[i], arena, &text, &length, &origin, &err) == 0 &&
                     sim_describe(names[i], text, length, origin, arena, &machine, &err) == 0;
        titles[i] = sound ? machine->title : lab_arena_strdup(arena, err.text);
    }
    *ret_names = names;
    *ret_titles = titles;
    return count;
}

/* --- one --- */

static int refuse(const char *name, struct lab_arena *arena, struct lab_err *err) {
    int count;
    const char *const *names = list_names(arena, &count);
    const char *nearest = lab_str_nearest(name, names);
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    lab_err_set(err, LAB_ERR_USER,
                "there is no simulated machine '%.80s'%s%s%s; there are %s, and files: "
                "sim:./mine.yaml",
                name, nearest ? " (did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?)" : "", list.text);
    return -1;
}

static int read_file(const char *path, struct lab_arena *arena, const char **ret_text,
                     size_t *ret_length, const char **ret_origin, struct lab_err *err) {
    char *text = NULL;
    if (lab_file_read(path, MAX_BYTES, arena, &text, ret_length, err) < 0) {
        err->code = LAB_ERR_USER;
        return -1;
    }
    *ret_text = text;
    *ret_origin = lab_arena_strdup(arena, path);
    return 0;
}

int sim_find(const char *name, struct lab_arena *arena, const char **ret_text, size_t *ret_length,
             const char **ret_origin, struct lab_err *err) {
    const char *text = defined(name, arena);
    if (text) {
        *ret_text = text;
        *ret_length = strlen(text);
        *ret_origin = lab_arena_printf(arena, "sim:%s", name);
        return 0;
    }
    if (strchr(name, '/') || lab_str_ends(name, SUFFIX))
        return read_file(name, arena, ret_text, ret_length, ret_origin, err);
    for (const char *const *folder = folders_of(arena); *folder; folder++) {
        const char *path = lab_arena_printf(arena, "%s/machine/%s" SUFFIX, *folder, name);
        struct stat info;
        if (stat(path, &info) == 0)
            return read_file(path, arena, ret_text, ret_length, ret_origin, err);
    }
    const char *file_name = lab_arena_printf(arena, "%s" SUFFIX, name);
    for (const struct sim_file *file = lab_machine_files; file->path; file++)
        if (lab_str_equal(file->path, file_name)) {
            *ret_text = file->text;
            *ret_length = file->length;
            *ret_origin = lab_arena_printf(arena, "built-in:machine/%s", file->path);
            return 0;
        }
    return refuse(name, arena, err);
}
