/*
 * folder.c: a study's own folder: found again or made anew, and given its name.
 *
 * A new one is made under a hidden name, ".<HH-MM-SS>.<pid>", and its lock is taken before anything
 * else goes in. So a hidden folder whose lock is free belongs to nobody who lives: whoever makes
 * the next one removes it. Maker and remover may meet at any instant; the maker then finds its lock
 * taken, or its file gone, and begins again under another name.
 */
#include "run/folder_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/log.h"
#include "base/str.h"
#include "run/launch/child.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS   (2 * LAB_NS_PER_S) /* until the workers of a killed runner are gone */
#define PAUSE_NS      (50 * LAB_NS_PER_MS)
#define TURN_PAUSE_NS (5 * LAB_NS_PER_MS)
#define ATTEMPTS      100 /* at a name that nobody else has */

/* --- what is there already --- */

/* Names in a directory that `wanted` takes, the last one first; NULL with errno where it is there
 * and can't be read. */
static const char **list_names(const char *path, bool (*wanted)(const char *name),
                               int (*compare)(const void *a, const void *b),
                               struct lab_arena *arena, int *ret_count) {
    const char *const *all = lab_walk_names(path, arena);
    int room = 0, count = 0;
    if (!all && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        return NULL;
    while (all && all[room])
        room++;
    const char **names = lab_arena_alloc(arena, (size_t)room + 1, sizeof *names);
    for (int i = 0; i < room; i++)
        if (wanted(all[i]))
            names[count++] = all[i];
    qsort(names, (size_t)count, sizeof *names, compare);
    *ret_count = count;
    return names;
}

static int latest_date_first(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

static int latest_time_first(const void *a, const void *b) {
    return folder_compare_times(*(char *const *)b, *(char *const *)a);
}

/* The plan's, or that of the same words in a version which repeated nothing by default. */
static bool is_same(const struct lab_folder_request *request, const struct lab_store_study *study) {
    bool once = request->words && study->identity == request->once_identity &&
                lab_str_equal(study->words, request->words);
    return (once || study->identity == request->identity) &&
           study->machine_identity == request->machine_identity;
}

/* 1 = the study in this folder is the one that is asked for, and has runs that are left or files
 * that may not be complete; 0 = it isn't; -1 = the system keeps it unknown. `ret_resume`: how one
 * of the same words and other defaults is resumed, in the arena; NULL = nobody asks. */
static int is_unfinished(const struct lab_folder_request *request, const char *path,
                         const char **ret_resume, struct lab_arena *resume_arena,
                         struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_err why = LAB_ERR_INIT;
    struct lab_store *store = NULL;
    struct lab_store_study study;
    int counts[LAB_RUN_STATE_COUNT], left = 0;
    bool same = false;
    const char *database = lab_arena_printf(&arena, "%s/" FOLDER_DATABASE, path);
    if (access(database, F_OK) < 0)
        return 0;
    if (lab_store_open(database, LAB_STORE_READ, &store, &why) < 0 ||
        lab_store_study(store, &arena, &study, &why) < 0 ||
        lab_store_count(store, counts, &why) < 0) {
        if (why.code != LAB_ERR_SYSTEM)
            lab_log(LAB_LOG_WARNING, "skipping a study that can't be read: %s", why.text);
    } else {
        left += access(lab_arena_printf(&arena, "%s/" LAB_FOLDER_ROOM, path), F_OK) == 0;
        for (int state = 0; state < LAB_RUN_STATE_COUNT; state++)
            left += state == LAB_RUN_DONE ? 0 : counts[state];
        same = is_same(request, &study);
        if (left > 0 && !same && ret_resume && !*ret_resume &&
            study.machine_identity == request->machine_identity &&
            lab_str_equal(study.words, request->words))
            *ret_resume = folder_resume_command(request, &study, resume_arena);
    }
    lab_store_close(store);
    if (why.code == LAB_ERR_SYSTEM) /* no memory, no descriptor: the next try may find it whole */
        return lab_err_set(err, why.code,
                           "%s; is it unfinished? Try again, or start another study with "
                           "experiment.resume=false",
                           why.text);
    return same && left > 0;
}

/* Whether the runner has ended that a lock names; of another host nobody knows. */
static bool is_gone(const struct lab_holder *holder) {
    struct lab_holder self;
    lab_holder_self("", "", &self);
    return holder->pid > 0 && holder->pid <= INT_MAX && strcmp(holder->host, self.host) == 0 &&
           kill((pid_t)holder->pid, 0) < 0 && errno == ESRCH;
}

/* What a runner that was killed together with its worker has left, a program of the user's; 0 =
 * none. */
static pid_t find_left(const struct lab_holder *holder) {
    return is_gone(holder) ? lab_children_find_left((pid_t)holder->pid) : 0;
}

static int refuse_held(int fd, const char *path, struct lab_err *err) {
    struct lab_holder holder;
    LAB_AUTO(str, text);
    lab_lock_read(fd, &holder);
    lab_holder_describe(&holder, &text);
    pid_t left = find_left(&holder);
    if (left)
        return lab_err_set(
            err, LAB_ERR_USER,
            "%s is locked by process %d, which outlived its runner, %s: end it (kill "
            "%d), or start another with experiment.resume=false",
            path, (int)left, text.text, (int)left);
    if (is_gone(&holder))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is locked by another process, though its runner has ended: %s; find "
                           "it with 'fuser %s/" FOLDER_LOCK "', or start another with "
                           "experiment.resume=false",
                           path, text.text, path);
    return lab_err_set(err, LAB_ERR_USER,
                       "%s is in use by %s: wait for it, or start another with "
                       "experiment.resume=false",
                       path, text.text);
}

/* Locks a study that is there; a descriptor, or -1. `path` is as the user would write it. */
static int lock_existing(const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *lock = lab_arena_printf(&arena, "%s/" FOLDER_LOCK, path);
    int64_t until_ns = lab_clock_now(lab_clock_system()) + PATIENCE_NS;
    int fd = -1, result = -1;
    for (;;) {
        if (fd < 0)
            fd = lab_own_open(lock, LAB_OWN_CHANGE, err);
        enum lab_lock got = fd < 0 ? LAB_LOCK_FAILED : lab_lock_try(fd, lock);
        if (got == LAB_LOCK_TAKEN) {
            result = fd;
            break;
        }
        if (got == LAB_LOCK_FAILED) {
            if (fd >= 0)
                lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", lock);
            lab_err_context(err,
                            "%s is unfinished but can't be locked (start another with "
                            "experiment.resume=false)",
                            path);
            break;
        }
        if (got == LAB_LOCK_HELD && lab_lock_by_others(fd) && lab_own_remove(lock) == 0)
            got = LAB_LOCK_GONE; /* a reader's, who can't be the runner: another file */
        if (lab_clock_now(lab_clock_system()) >= until_ns) {
            refuse_held(fd, path, err);
            break;
        }
        if (got == LAB_LOCK_GONE) {
            close(fd);
            fd = -1;
        }
        lab_clock_sleep(lab_clock_system(), PAUSE_NS);
    }
    if (result < 0 && fd >= 0)
        close(fd);
    return result;
}

/* 1 = this one goes on; 0 = it isn't the one; -1 = it is, but can't be had. */
static int try_existing(const struct lab_folder_request *request, const char *path, int *ret_fd,
                        const char **ret_resume, struct lab_arena *arena, struct lab_err *err) {
    struct lab_err other = LAB_ERR_INIT;
    if (folder_check(path, &other) < 0) { /* of another user: it is neither read nor written */
        lab_log(LAB_LOG_INFO, "not resumed: %s", other.text);
        return 0;
    }
    int unfinished = is_unfinished(request, path, ret_resume, arena, err);
    if (unfinished <= 0)
        return unfinished;
    int fd = lock_existing(path, err);
    if (fd < 0)
        return -1;
    unfinished = is_unfinished(request, path, NULL, NULL, err);
    if (unfinished <= 0) { /* whoever held it has just finished it */
        close(fd);
        return unfinished;
    }
    *ret_fd = fd;
    return 1;
}

/* 1 = found and locked, 0 = there is none, -1. */
static int find(const struct lab_folder_request *request, struct lab_arena *arena,
                const char **ret_path, int *ret_fd, struct lab_err *err) {
    const char *study = lab_arena_printf(arena, "%s/%s", request->output_dir, request->study);
    int date_count, result = 0;
    const char *resume = NULL, *other = NULL;
    const char **dates = list_names(study, folder_is_date, latest_date_first, arena, &date_count);
    if (!dates)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s can't be read", study);
    for (int i = 0; i < date_count && result == 0; i++) {
        const char *date = lab_arena_printf(arena, "%s/%s", study, dates[i]);
        int time_count;
        const char **times =
            list_names(date, folder_is_time, latest_time_first, arena, &time_count);
        if (!times)
            return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s can't be read", date);
        for (int j = 0; j < time_count && result == 0; j++) {
            *ret_path = lab_arena_printf(arena, "%s/%s", date, times[j]);
            result = try_existing(request, *ret_path, ret_fd, &resume, arena, err);
            other = resume && !other ? *ret_path : other;
        }
    }
    if (result == 0 && other)
        lab_log(LAB_LOG_WARNING,
                "%s is unfinished and has other defaults: a new study starts. To resume it: %s",
                other, resume);
    return result;
}

/* --- a new one --- */

static bool is_hidden(const char *name) {
    if (name[0] != '.' || strlen(name) < sizeof ".00-00-00.1" - 1 || name[9] != '.')
        return false;
    char time[9] = "";
    memcpy(time, name + 1, sizeof time - 1);
    return folder_is_time(time) && strspn(name + 10, "0123456789.") == strlen(name + 10);
}

static void remove_stale(const char *date, struct lab_arena *arena) {
    int count;
    const char **names = list_names(date, is_hidden, latest_date_first, arena, &count);
    for (int i = 0; names && i < count; i++) {
        const char *path = lab_arena_printf(arena, "%s/%s", date, names[i]);
        const char *lock = lab_arena_printf(arena, "%s/" FOLDER_LOCK, path);
        if (lab_own_check_folder(path, NULL) < 0)
            continue;
        LAB_AUTO_CLOSE int fd = lab_own_open(lock, LAB_OWN_CHANGE, NULL);
        if (fd >= 0 && lab_lock_try(fd, lock) == LAB_LOCK_TAKEN)
            lab_own_remove_tree(path);
    }
}

/* Makes a hidden folder and takes its lock; a descriptor, or -1 with errno. EAGAIN = somebody came
 * between: another name. */
static int make_hidden(const char *path, struct lab_arena *arena) {
    if (lab_own_new_folder(path) < 0)
        return -1;
    const char *lock = lab_arena_printf(arena, "%s/" FOLDER_LOCK, path);
    int fd = lab_own_open(lock, LAB_OWN_NEW, NULL);
    if (fd < 0) {
        int reason = errno == ENOENT || errno == EEXIST ? EAGAIN : errno;
        lab_own_remove(path);
        errno = reason;
        return -1;
    }
    enum lab_lock got = lab_lock_try(fd, lock);
    if (got == LAB_LOCK_TAKEN && lab_own_new_folder(lab_arena_printf(arena, "%s/logs", path)) == 0)
        return fd;
    int reason = got == LAB_LOCK_TAKEN || got == LAB_LOCK_FAILED ? errno : EAGAIN;
    if (reason != EAGAIN)
        lab_own_remove_tree(path);
    close(fd);
    errno = reason;
    return -1;
}

static int refuse_place(int reason, const char *path, struct lab_err *err) {
    bool full = reason == ENOSPC || reason == EDQUOT || reason == EIO || reason == EMFILE;
    if (reason == ENOTDIR)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is a file, but a study needs a directory there: move it, or choose "
                           "another directory with output_dir=…",
                           path);
    return lab_err_set_errno(err, full ? LAB_ERR_SYSTEM : LAB_ERR_USER, reason,
                             "can't make the study's directory (output_dir=… chooses another): %s",
                             path);
}

static int make(const struct lab_folder_request *request, struct lab_arena *arena,
                const char **ret_path, const char **ret_time, int *ret_fd, struct lab_err *err) {
    int64_t now_ns = lab_clock_wall_ns();
    LAB_AUTO(str, date);
    LAB_AUTO(str, time);
    lab_str_add_clock(&date, now_ns, "%Y-%m-%d");
    lab_str_add_clock(&time, now_ns, "%H-%M-%S");
    const char *folder =
        lab_arena_printf(arena, "%s/%s/%s", request->output_dir, request->study, date.text);
    const char *path = folder;
    int reason = 0;
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
        reason = lab_file_make_folders(folder, 0777, arena, &path);
        if (reason)
            break;
        remove_stale(folder, arena);
        path = lab_arena_printf(arena, "%s/.%s.%d", folder, time.text, (int)getpid());
        if (attempt > 1)
            path = lab_arena_printf(arena, "%s.%d", path, attempt);
        *ret_fd = make_hidden(path, arena);
        if (*ret_fd >= 0) {
            *ret_path = path;
            *ret_time = lab_arena_strdup(arena, time.text);
            return 0;
        }
        reason = errno;
        if (reason != EAGAIN && reason != EEXIST && reason != ENOENT)
            break;
    }
    return refuse_place(reason, path, err);
}

/* --- whose turn it is --- */

/*
 * Who looks for a study and makes one where there is none has the study's directory for himself
 * meanwhile. Only for some time, and not where directories can't be locked: two folders of one plan
 * are a nuisance, no more. -1 = not held.
 */
static int take_turn(const struct lab_folder_request *request, struct lab_arena *arena) {
    const char *study = lab_arena_printf(arena, "%s/%s", request->output_dir, request->study);
    const char *refused;
    if (lab_file_make_folders(study, 0777, arena, &refused) != 0)
        return -1; /* making the folder will say why */
    int64_t until_ns = lab_clock_now(lab_clock_system()) + PATIENCE_NS;
    int fd = open(study, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        bool busy = errno == EWOULDBLOCK || errno == EINTR;
        if (!busy || lab_clock_now(lab_clock_system()) >= until_ns)
            lab_file_close(&fd);
        else
            lab_clock_sleep(lab_clock_system(), TURN_PAUSE_NS);
    }
    return fd;
}

/* --- life --- */

static int check_name(const char *study, struct lab_err *err) {
    if (*study && *study != '.' && !strchr(study, '/') && strlen(study) <= NAME_MAX)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "experiment.name=%s can't be a directory's name: it needs 1 to %d "
                       "characters, none of them '/', the first no '.'",
                       study, NAME_MAX);
}

static char *absolute(const char *path) {
    LAB_AUTO_FREE char *real = realpath(path, NULL);
    return lab_mem_strdup(real ? real : path);
}

/* The same with another last part. */
static char *beside(const char *path, const char *name) {
    LAB_AUTO(str, text);
    lab_str_add_bytes(&text, path, (size_t)(strrchr(path, '/') + 1 - path));
    lab_str_add(&text, name);
    return lab_mem_strdup(text.text);
}

int lab_folder_open(const struct lab_folder_request *request, struct lab_folder *ret_folder,
                    struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *path = NULL, *time = NULL;
    int fd = -1;
    if (check_name(request->study, err) < 0)
        return -1;
    struct lab_folder_request here = *request;
    here.output_dir = *request->output_dir ? lab_walk_trim(request->output_dir, &arena) : ".";
    int turn_fd = request->resume ? take_turn(&here, &arena) : -1;
    int found = request->resume ? find(&here, &arena, &path, &fd, err) : 0;
    int result = found < 0 ? -1 : 0;
    if (found == 0)
        result = make(&here, &arena, &path, &time, &fd, err);
    if (result < 0 || found)
        lab_file_close(&turn_fd);
    if (result == 0) {
        char *real = absolute(path);
        *ret_folder = (struct lab_folder){
            .path = real,
            .place = found ? lab_mem_strdup(real) : beside(real, time),
            .lock_fd = fd,
            .turn_fd = turn_fd,
            .resumed = found > 0,
        };
        struct lab_holder self;
        lab_holder_self(request->command, ret_folder->place, &self);
        lab_lock_write(fd, &self);
    }
    return result;
}

/* The folder and those above it: date, study, output_dir, and what output_dir lies in. */
static void sync_upwards(const char *path) {
    LAB_AUTO_FREE char *part = lab_mem_strdup(path);
    for (int level = 0; level < 5 && *part; level++) {
        lab_file_sync_directory(part);
        char *slash = strrchr(part, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
}

int lab_folder_publish(struct lab_folder *folder, struct lab_err *err) {
    lab_file_sync_directory(folder->path);
    lab_failpoint("before-publish");
    LAB_AUTO(str, place);
    int result = -1;
    for (int suffix = 1; result < 0; suffix++) {
        lab_str_clear(&place);
        lab_str_add(&place, folder->place);
        if (suffix > 1)
            lab_str_printf(&place, "_%d", suffix);
        result = lab_own_rename_new(folder->path, place.text);
        if (result < 0 && errno != EEXIST && errno != ENOTEMPTY)
            return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "naming the study's directory %s",
                                     place.text);
    }
    lab_file_close(&folder->turn_fd);
    lab_failpoint("after-publish");
    sync_upwards(place.text);
    lab_mem_free(folder->path);
    lab_mem_free(folder->place);
    folder->path = lab_mem_strdup(place.text);
    folder->place = lab_mem_strdup(place.text);
    return 0;
}

/* What was made for a study that never was: its hidden folder, and those above it that are
 * empty. */
static void take_back(const struct lab_folder *folder) {
    lab_own_remove_tree(folder->path);
    LAB_AUTO_FREE char *above = lab_mem_strdup(folder->path);
    for (int level = 0; level < 2; level++) {
        *strrchr(above, '/') = '\0';
        if (lab_own_remove(above) < 0)
            break;
    }
}

void lab_folder_close(struct lab_folder *folder) {
    if (folder->path && strcmp(folder->path, folder->place) != 0)
        take_back(folder);
    lab_file_close(&folder->turn_fd);
    lab_file_close(&folder->lock_fd);
    lab_mem_free(folder->path);
    lab_mem_free(folder->place);
    *folder = LAB_FOLDER_INIT;
}

/* Whoever can read the lock's file can lock it, too: that makes no runner of him. */
bool lab_folder_held(const char *path, struct lab_holder *ret_holder) {
    LAB_AUTO(str, lock);
    struct lab_holder holder;
    lab_str_printf(&lock, "%s/" FOLDER_LOCK, path);
    bool held = lab_lock_held(lock.text, &holder) && (!is_gone(&holder) || find_left(&holder));
    if (ret_holder)
        *ret_holder = held ? holder : (struct lab_holder){0};
    return held;
}
