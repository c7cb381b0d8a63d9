/* clean.c: finds and removes files of a study by the names that gpulab gives them. */
#include "run/clean.h"

#include "base/file/file.h"
#include "base/file/out_dir.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/list.h"
#include "base/str.h"
#include "run/folder_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct part {
    const char *folder; /* below the study; "" = itself */
    unsigned set;       /* it is removed with any of these */
    const char *names[16];
} parts[] = {
    {"traces", LAB_CLEAN_TRACES | LAB_CLEAN_STUDY, {"pipeline_*"}},
    {"logs", LAB_CLEAN_LOGS | LAB_CLEAN_STUDY, {"experiment.log", "*.stdout", "*.stderr"}},
    {"track", LAB_CLEAN_STUDY, {"*.log"}},
    /* and what its manifests list */
    {"report", LAB_CLEAN_STUDY, {"report.md", LAB_OUT_DIR_MANIFEST, LAB_OUT_DIR_KEPT}},
    {"",
     LAB_CLEAN_STUDY,
     {"config.yaml", "overrides.yaml", "machine.json", "results.json", "experiment_summary.json",
      LAB_FOLDER_ROOM, FOLDER_DATABASE "-wal", FOLDER_DATABASE "-shm", FOLDER_DATABASE "-journal",
      LAB_FILE_TEMPORARY "*", FOLDER_DATABASE, FOLDER_LOCK}},
};
#define PART_COUNT (sizeof parts / sizeof *parts)

/* --- finding --- */

struct finder {
    const char *folder;
    struct lab_clean clean;
    const char **files, **kept;
    int file_room, kept_room;
    struct lab_arena *arena;
};

static void add_name(const char ***names, int *count, int *room, const char *name,
                     struct lab_arena *arena) {
    if (*count == *room) {
        int larger = *room ? 2 * *room : 64;
        const char **grown = lab_arena_alloc(arena, (size_t)larger, sizeof *grown);
        for (int i = 0; i < *count; i++)
            grown[i] = (*names)[i];
        *names = grown;
        *room = larger;
    }
    (*names)[(*count)++] = name;
}

/* The lines of a manifest; what isn't one lists nothing. */
static bool is_listed(const char *manifest, const char *name) {
    size_t length = strlen(name);
    for (const char *at = manifest; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && (at[length] == '\n' || !at[length]))
            return true;
    }
    return false;
}

static const char *read_manifest(const char *folder, const char *name, struct lab_arena *arena) {
    char *text;
    size_t length;
    const char *path = lab_arena_printf(arena, "%s/%s", folder, name);
    return lab_file_read(path, 1 << 20, arena, &text, &length, NULL) == 0 ? text : NULL;
}

static bool is_ours(const struct part *part, const char *name, const char *const manifests[2]) {
    for (int i = 0; part->names[i]; i++)
        if (fnmatch(part->names[i], name, 0) == 0)
            return true;
    return is_listed(manifests[0], name) || is_listed(manifests[1], name);
}

static void find_in(struct finder *f, const struct part *part, bool whole) {
    const char *slash = *part->folder ? "/" : "";
    const char *folder = lab_arena_printf(f->arena, "%s%s%s", f->folder, slash, part->folder);
    struct stat info;
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode))
        return; /* a link in its place is the study's folder's own matter */
    bool report = strcmp(part->folder, "report") == 0;
    const char *manifests[2] = {report ? read_manifest(folder, LAB_OUT_DIR_MANIFEST, f->arena)
                                       : NULL,
                                report ? read_manifest(folder, LAB_OUT_DIR_KEPT, f->arena) : NULL};
    const char *const *names = lab_walk_names(folder, f->arena);
    for (int i = 0; names && names[i]; i++) {
        const char *path = lab_arena_printf(f->arena, "%s/%s", folder, names[i]);
        const char *below = lab_arena_printf(f->arena, "%s%s%s", part->folder, slash, names[i]);
        if (lstat(path, &info) < 0 || (!*part->folder && S_ISDIR(info.st_mode) &&
                                       LAB_FIND(parts, PART_COUNT, folder, names[i]) >= 0))
            continue;
        if (S_ISREG(info.st_mode) && is_ours(part, names[i], manifests)) {
            add_name(&f->files, &f->clean.file_count, &f->file_room, below, f->arena);
            f->clean.bytes += (int64_t)info.st_blocks * 512;
        } else if (whole) {
            add_name(&f->kept, &f->clean.kept_count, &f->kept_room, below, f->arena);
        }
    }
}

/* Whoever is interrupted finds the study again: its database goes last but the lock. */
static void put_last(struct finder *f, const char *name) {
    for (int i = 0; i < f->clean.file_count; i++) {
        if (strcmp(f->files[i], name) != 0)
            continue;
        memmove(&f->files[i], &f->files[i + 1],
                (size_t)(f->clean.file_count - i - 1) * sizeof *f->files);
        f->files[f->clean.file_count - 1] = name;
        return;
    }
}

int lab_clean_find(const char *folder, unsigned set, struct lab_arena *arena,
                   struct lab_clean *ret_clean, struct lab_err *err) {
    struct finder f = {.folder = folder, .arena = arena};
    if (folder_check(folder, err) < 0)
        return -1;
    for (size_t i = 0; i < PART_COUNT; i++)
        if (parts[i].set & set)
            find_in(&f, &parts[i], set & LAB_CLEAN_STUDY);
    put_last(&f, FOLDER_DATABASE);
    put_last(&f, FOLDER_LOCK);
    f.clean.files = f.files;
    f.clean.kept = f.kept;
    *ret_clean = f.clean;
    return 0;
}

/* --- removing --- */

static int remove_file(int study, const char *path, struct lab_err *err) {
    char part[16] = "";
    const char *slash = strchr(path, '/');
    snprintf(part, sizeof part, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    LAB_AUTO_CLOSE int fd = openat(study, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = fd < 0 ? -1 : lab_own_remove_at(fd, slash ? slash + 1 : path);
    int error = errno;
    return result == 0 || error == ENOENT
               ? 0
               : lab_err_set_errno(err, LAB_ERR_SYSTEM, error, "%s", path);
}

/* Of <study>/<date>/<time> the last, and those above that are empty then. */
static void remove_folders(const char *folder) {
    LAB_AUTO(arena, arena);
    for (size_t i = 0; i < PART_COUNT; i++)
        if (*parts[i].folder)
            (void)lab_own_remove(lab_arena_printf(&arena, "%s/%s", folder, parts[i].folder));
    char *path = lab_arena_strdup(&arena, folder), *slash;
    if (lab_own_remove(path) < 0 || !(slash = strrchr(path, '/')) || slash == path)
        return;
    *slash = '\0';
    slash = strrchr(path, '/');
    if (!slash || !folder_is_date(slash + 1) || lab_own_remove(path) < 0 || slash == path)
        return;
    *slash = '\0';
    (void)lab_own_remove(path);
}

int lab_clean_remove(const char *folder, const struct lab_clean *clean, struct lab_err *err) {
    if (folder_check(folder, err) < 0)
        return -1;
    int lock = folder_hold(folder, err), result = 0;
    if (lock < 0)
        return -1;
    LAB_AUTO_CLOSE int study = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (study < 0)
        result = lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", folder);
    for (int i = 0; result == 0 && i < clean->file_count; i++)
        result = remove_file(study, clean->files[i], err);
    if (result == 0 && clean->file_count &&
        strcmp(clean->files[clean->file_count - 1], FOLDER_LOCK) == 0)
        remove_folders(folder);
    close(lock);
    return result;
}
