/*
 * folder_known.c: all studies of this user, wherever they lie, and which of them a word means.
 *
 * The registry is a directory with a small file for each study, named by a hash of the study's path
 * and holding that path. Nobody has to lock it, a torn or lost file costs one line of a list, and
 * what it says about a study is nothing that the study's folder doesn't say better.
 */
#include "run/folder_internal.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/out_file.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/hash.h"
#include "base/str.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE        "outputs" /* output_dir unless it is set */
#define NAME_DIGITS 16        /* of a registry's file */

/* --- the registry --- */

const char *lab_folder_state(struct lab_arena *arena) {
    const char *state = getenv("XDG_STATE_HOME");
    if (state && *state == '/') /* a relative one is to be ignored, says the specification */
        return lab_arena_printf(arena, "%s/gpulab", state);
    const char *home = getenv("HOME");
    if (!home || *home != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : NULL;
    }
    return home ? lab_arena_printf(arena, "%s/.local/state/gpulab", home) : NULL;
}

static const char *registry_path(struct lab_arena *arena) {
    const char *state = lab_folder_state(arena);
    return state ? lab_arena_printf(arena, "%s/studies", state) : NULL;
}

void lab_folder_register(const char *path) {
    LAB_AUTO(arena, arena);
    const char *registry = registry_path(&arena), *refused;
    LAB_AUTO_FREE char *real = realpath(path, NULL);
    if (registry && real && lab_file_make_folders(registry, 0777, &arena, &refused) == 0) {
        const char *entry =
            lab_arena_printf(&arena, "%s/%016llx", registry,
                             (unsigned long long)lab_hash_text(LAB_HASH_START, real));
        struct lab_err ignored = LAB_ERR_INIT;
        if (access(entry, F_OK) < 0)
            lab_out_file_save(entry, real, strlen(real), &ignored);
    }
}

/* A path of it, or NULL: what isn't an absolute path in a file of the right name is nobody's. */
static const char *read_entry(int directory, const char *name, struct lab_arena *arena) {
    char path[PATH_MAX + 1];
    if (strspn(name, "0123456789abcdef") != NAME_DIGITS || name[NAME_DIGITS])
        return NULL;
    LAB_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    ssize_t length = read(fd, path, sizeof path);
    if (length <= 1 || length > PATH_MAX || path[0] != '/' || memchr(path, '\0', (size_t)length))
        return NULL;
    return lab_arena_strndup(arena, path, (size_t)length);
}

/* --- their order --- */

struct known {
    const char *path;
    const char *date, *time; /* "2026-11-15", "10-42-03_2" */
    int64_t changed_ns;      /* its database: tells apart what began in the same second */
};

/* The last `count` parts of a path, from behind the slash before them; NULL where it has fewer. */
static const char *last_parts(const char *path, int count) {
    for (const char *at = path + strlen(path); at > path; at--)
        if (at[-1] == '/' && --count == 0)
            return at;
    return NULL;
}

/* From the folder's name; from the file's age where somebody gave it another one. */
static void find_time(struct known *known, struct lab_arena *arena) {
    const char *tail = last_parts(known->path, 2);
    const char *slash = tail ? strchr(tail, '/') : NULL;
    if (slash && folder_is_time(slash + 1)) {
        known->date = lab_arena_strndup(arena, tail, (size_t)(slash - tail));
        known->time = slash + 1;
        if (folder_is_date(known->date))
            return;
    }
    LAB_AUTO(str, date);
    LAB_AUTO(str, time);
    lab_str_add_clock(&date, known->changed_ns, "%Y-%m-%d");
    lab_str_add_clock(&time, known->changed_ns, "%H-%M-%S");
    known->date = lab_arena_strdup(arena, date.text);
    known->time = lab_arena_strdup(arena, time.text);
}

static int newest_first(const void *a, const void *b) {
    const struct known *first = a, *second = b;
    int order = strcmp(second->date, first->date);
    if (!order)
        order = folder_compare_times(second->time, first->time);
    if (!order)
        order = (second->changed_ns > first->changed_ns) - (second->changed_ns < first->changed_ns);
    return order ? order : strcmp(first->path, second->path);
}

static bool is_study(struct known *known, struct lab_arena *arena) {
    struct stat info;
    if (stat(lab_arena_printf(arena, "%s/" FOLDER_DATABASE, known->path), &info) < 0)
        return false;
    known->changed_ns = info.st_mtim.tv_sec * LAB_NS_PER_S + info.st_mtim.tv_nsec;
    find_time(known, arena);
    return true;
}

/* Whether there is a study at the path; an entry whose folder is gone is removed. */
static bool still_there(int directory, const char *name, struct known *known,
                        struct lab_arena *arena) {
    struct stat info;
    if (is_study(known, arena))
        return true;
    if ((errno == ENOENT || errno == ENOTDIR) && stat(known->path, &info) < 0 &&
        (errno == ENOENT || errno == ENOTDIR))
        lab_own_remove_at(directory, name);
    return false;
}

/* Whether studies could be noted there: it, or what is there of the way to it, can be written. */
static bool can_be_made(const char *registry, struct lab_arena *arena) {
    char *part = lab_arena_strdup(arena, registry), *slash;
    while (access(part, F_OK) < 0 && errno == ENOENT && (slash = strrchr(part, '/')) &&
           slash > part)
        *slash = '\0';
    return access(part, W_OK | X_OK) == 0;
}

/* Where there is no place for a registry, as in a container without HOME: those in the usual place
 * here. */
static void add_here(struct known **all, int *count, struct lab_arena *arena) {
    static const struct lab_walk wanted = {.holds = FOLDER_DATABASE, .depth = 2};
    struct lab_walk_find *finds;
    int found = 0;
    if (lab_walk(HERE, &wanted, arena, &finds, &found, NULL) < 0)
        return;
    for (int i = 0; i < found; i++) {
        LAB_AUTO_FREE char *real = realpath(finds[i].path, NULL);
        struct known known = {.path = real ? lab_arena_strdup(arena, real) : NULL};
        if (real && is_study(&known, arena))
            LAB_PUSH(*all, *count) = known;
    }
}

void lab_folder_known(struct lab_arena *arena, const char *const **ret_paths, int *ret_count) {
    LAB_AUTO_FREE struct known *all = NULL;
    int count = 0;
    const char *registry = registry_path(arena);
    LAB_AUTO_CLOSEDIR DIR *directory = registry ? opendir(registry) : NULL;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        struct known known = {.path = read_entry(dirfd(directory), entry->d_name, arena)};
        if (!known.path || !still_there(dirfd(directory), entry->d_name, &known, arena))
            continue;
        LAB_PUSH(all, count) = known;
    }
    if (!directory && (!registry || !can_be_made(registry, arena)))
        add_here(&all, &count, arena);
    if (count)
        qsort(all, (size_t)count, sizeof *all, newest_first);
    const char **paths = lab_arena_alloc(arena, (size_t)count + 1, sizeof *paths);
    for (int i = 0; i < count; i++)
        paths[i] = all[i].path;
    *ret_paths = paths;
    *ret_count = count;
}

/* --- words of a command line --- */

static bool has_database(const char *folder, struct lab_arena *arena) {
    struct stat info;
    return stat(lab_arena_printf(arena, "%s/" FOLDER_DATABASE, folder), &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* The study that a path is, or lies in: study.db itself, results.json, logs/….stderr. */
static const char *study_of_path(const char *word, struct lab_arena *arena) {
    LAB_AUTO_FREE char *real = realpath(word, NULL);
    if (!real && errno == ENOMEM) /* else it would be taken for a name */
        lab_mem_exhausted(1, PATH_MAX);
    if (!real)
        return NULL;
    char *path = lab_arena_strdup(arena, real);
    for (int level = 0; level < 3 && *path; level++) {
        if (has_database(path, arena))
            return path;
        *strrchr(path, '/') = '\0';
    }
    return NULL;
}

enum match { MATCH_PARTS, MATCH_BEGINNING, MATCH_OPTION, MATCH_COUNT };

static bool has_option(const char *path, const char *option, struct lab_arena *arena) {
    struct lab_store *store = NULL;
    struct lab_store_study study = {0};
    const char *database = lab_arena_printf(arena, "%s/" FOLDER_DATABASE, path);
    bool same = lab_store_open(database, LAB_STORE_READ, &store, NULL) == 0 &&
                lab_store_study(store, arena, &study, NULL) == 0 &&
                lab_str_equal(study.option, option);
    lab_store_close(store);
    return same;
}

/* Whole parts go before a beginning ("quick_test" before "quick_test_large"), and both before what
 * the study was asked for by ("numa_study"), which only its database says. */
static bool matches(const char *path, const char *word, enum match how, struct lab_arena *arena) {
    const char *tail = last_parts(path, 3);
    if (how == MATCH_OPTION)
        return has_option(path, word, arena);
    if (!tail || !lab_str_starts(tail, word))
        return false;
    const char *rest = tail + strlen(word);
    return how == MATCH_BEGINNING || !*rest || *rest == '/' || rest[-1] == '/';
}

static int refuse_word(const char *word, const char *const *paths, int count,
                       struct lab_arena *arena, struct lab_err *err) {
    struct stat info;
    if (stat(word, &info) == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "there is no study in %s (no " FOLDER_DATABASE
                           "); 'gpulab list' shows all studies",
                           word);
    if (strchr(word, '/') || lab_str_ends(word, ".db"))
        return lab_err_set(err, LAB_ERR_USER,
                           "there is no file or directory '%s'; 'gpulab list' shows all studies",
                           word);
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    int name_count = 0;
    for (int i = 0; i < count; i++) {
        const char *tail = last_parts(paths[i], 3);
        if (tail)
            names[name_count++] = lab_arena_strndup(arena, tail, strcspn(tail, "/"));
    }
    const char *nearest = lab_str_nearest(word, names);
    if (nearest)
        return lab_err_set(err, LAB_ERR_USER,
                           "no study '%s'; did you mean '%s'? 'gpulab list' shows all studies",
                           word, nearest);
    return lab_err_set(err, LAB_ERR_USER,
                       "no study '%s': give its directory, or the beginning of a line of "
                       "'gpulab list'",
                       word);
}

/* The newest study somewhere below a directory, "outputs/quick_test"; NULL where there is none. */
static const char *newest_below(const char *word, const char *const *paths, int count) {
    LAB_AUTO_FREE char *real = realpath(word, NULL);
    size_t length = real ? strlen(real) : 0;
    const char *found = NULL;
    for (int i = 0; real && i < count && !found; i++)
        if (lab_str_starts(paths[i], real) && paths[i][length] == '/')
            found = paths[i];
    return found;
}

static const char *find_word(const char *word, const char *const *paths, int count,
                             struct lab_arena *arena) {
    const char *below = newest_below(word, paths, count);
    if (below)
        return below;
    for (int how = 0; how < MATCH_COUNT; how++)
        for (int i = 0; i < count; i++)
            if (matches(paths[i], word, (enum match)how, arena))
                return paths[i];
    return NULL;
}

int lab_folder_resolve(const char *word, struct lab_arena *arena, const char **ret_path,
                       struct lab_err *err) {
    const char *const *paths;
    int count;
    const char *path = word ? study_of_path(word, arena) : NULL;
    if (!path) {
        lab_folder_known(arena, &paths, &count);
        path = word ? find_word(word, paths, count, arena) : paths[0];
    }
    if (!path && word)
        return refuse_word(word, paths, count, arena, err);
    if (!path)
        return lab_err_set(err, LAB_ERR_USER,
                           "there is no study yet: 'gpulab run quick_test' makes one");
    *ret_path = path;
    return 0;
}
