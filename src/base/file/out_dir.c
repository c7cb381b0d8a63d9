/* out_dir.c: staged files, renamed through a directory's descriptor; the manifest of what is
 * ours. */
#include "base/file/out_dir.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/lock.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/list.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_HEAD      "gpulab files 1"
#define MANIFEST_MAX_BYTES ((size_t)1 << 20)
#define COPY_MAX_BYTES     ((size_t)1 << 30)
#define TEMPORARY_BYTES    64
#define LOCK_NS            (10 * LAB_NS_PER_S)
#define LOOK_NS            (20 * LAB_NS_PER_MS) /* between two tries to lock */

struct staged {
    const char *name;
    char temporary[TEMPORARY_BYTES];
};

struct names {
    const char **items;
    int count;
};

struct lab_out_dir {
    struct lab_out_dir_spec spec;
    struct lab_arena arena;
    int fd;
    bool listed; /* there is a manifest */
    struct names manifest;
    struct staged *files;
    int file_count;
};

/* --- names --- */

static void add_name(struct names *names, const char *name, struct lab_arena *arena) {
    if (lab_str_find(name, names->items) >= 0)
        return;
    LAB_ADD(names->items, names->count, arena) = name;
}

/* A file of this directory, visible: nothing else is ever written or removed. */
static bool is_plain_name(const char *name) {
    return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 256;
}

/* --- the manifest --- */

static bool is_own_file(const struct lab_out_dir *dir, int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && lab_own_is(dir->fd, info.st_uid);
}

static const char *manifest_name(const struct lab_out_dir *dir) {
    return dir->spec.keep ? LAB_OUT_DIR_KEPT : LAB_OUT_DIR_MANIFEST;
}

static void read_manifest(struct lab_out_dir *dir) {
    LAB_AUTO_CLOSE int fd = openat(dir->fd, manifest_name(dir),
                                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    LAB_AUTO_FREE char *text = lab_mem_alloc(MANIFEST_MAX_BYTES + 1, 1);
    ssize_t length = is_own_file(dir, fd) ? read(fd, text, MANIFEST_MAX_BYTES) : -1;
    char *rest = text, *line = length > 0 ? strsep(&rest, "\n") : NULL;
    /* one that was cut off may end in half a name */
    dir->listed = line && lab_str_equal(line, MANIFEST_HEAD) && (size_t)length < MANIFEST_MAX_BYTES;
    while (dir->listed && (line = strsep(&rest, "\n")))
        if (is_plain_name(line))
            add_name(&dir->manifest, lab_arena_strdup(&dir->arena, line), &dir->arena);
}

static bool is_empty(int fd) {
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    LAB_AUTO_CLOSEDIR DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    bool empty = true;
    for (struct dirent *entry; entries && empty && (entry = readdir(entries));)
        empty = lab_str_equal(entry->d_name, ".") || lab_str_equal(entry->d_name, "..") ||
                lab_str_starts(entry->d_name, LAB_FILE_TEMPORARY);
    return empty;
}

/* --- opening --- */

static int fail(const struct lab_out_dir *dir, const char *name, struct lab_err *err) {
    int reason = errno;
    bool users = reason == ENOENT || reason == ENOTDIR || reason == EACCES || reason == EROFS;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, reason,
                             "can't write %s%s%s", dir->spec.path, *name ? "/" : "", name);
}

static const char *owner_name(uid_t uid, struct lab_arena *arena) {
    const struct passwd *user = getpwuid(uid);
    return user ? lab_arena_strdup(arena, user->pw_name) : lab_arena_printf(arena, "uid %u", uid);
}

static const char *force_words(struct lab_out_dir *dir) {
    return dir->spec.force ? lab_arena_printf(&dir->arena, ", or add %s", dir->spec.force) : "";
}

/* Closing unlocks. Anybody who can read the directory can lock it: another user's lock doesn't
 * count, and the wait is bounded. A file system without locks goes without. */
static int lock(struct lab_out_dir *dir, struct lab_err *err) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t limit_ns = lab_clock_now(clock) + LOCK_NS;
    while (flock(dir->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
           !lab_lock_by_others(dir->fd)) {
        int64_t now_ns = lab_clock_now(clock);
        if (now_ns > limit_ns)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s is locked by another process that writes there: wait for it, or "
                               "name another directory",
                               dir->spec.path);
        clock->sleep_until(clock, now_ns + LOOK_NS);
    }
    return 0;
}

static int check_directory(struct lab_out_dir *dir, struct lab_err *err) {
    const struct lab_out_dir_spec *spec = &dir->spec;
    struct stat info;
    if (fstat(dir->fd, &info) < 0)
        return fail(dir, "", err);
    if (!lab_own_is(dir->fd, info.st_uid))
        return lab_err_set(err, LAB_ERR_USER, "%s belongs to %s: name a directory of your own",
                           spec->path, owner_name(info.st_uid, &dir->arena));
    if (lock(dir, err) < 0)
        return -1;
    lab_own_remove_leftovers(dir->fd, 0);
    read_manifest(dir);
    if (!dir->listed && !spec->forced && !spec->owner && !spec->keep && !is_empty(dir->fd))
        return lab_err_set(
            err, LAB_ERR_USER,
            "%s is not empty and was not written by gpulab: name another directory%s", spec->path,
            force_words(dir));
    return 0;
}

/* Whoever owns a folder above may replace the parent by a link at any time: what counts is that the
 * directory which is opened here is the caller's and holds the file that makes it the program's. */
static int open_parent(struct lab_out_dir *dir, const char *slash, struct lab_err *err) {
    const char *path =
        !slash ? "."
        : slash == dir->spec.path
            ? "/"
            : lab_arena_strndup(&dir->arena, dir->spec.path, (size_t)(slash - dir->spec.path));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat own, file;
    if (fd < 0)
        return fail(dir, "", err);
    if (fstat(fd, &own) == 0 && lab_own_is(fd, own.st_uid) &&
        fstatat(fd, dir->spec.owner, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode) &&
        lab_own_is(fd, file.st_uid))
        return fd;
    close(fd);
    return lab_err_set(err, LAB_ERR_USER, "%s holds no %s of yours: name a directory of your own",
                       path, dir->spec.owner);
}

static int open_directory(struct lab_out_dir *dir, struct lab_err *err) {
    const char *path = dir->spec.path;
    const char *slash = strrchr(path, '/'), *name = path;
    int parent = AT_FDCWD;
    if (dir->spec.owner) {
        name = slash ? slash + 1 : path;
        parent = open_parent(dir, slash, err);
        if (parent < 0)
            return -1;
    }
    bool is_new = mkdirat(parent, name, 0777) == 0, made = is_new || errno == EEXIST;
    if (is_new)
        (void)(parent >= 0 ? fsync(parent) : lab_file_sync_above(path));
    if (made)
        dir->fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int reason = errno;
    if (parent >= 0)
        close(parent);
    errno = reason;
    if (made && dir->fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return lab_err_set(err, LAB_ERR_USER, "%s is a link or a file, not a directory", path);
    return dir->fd < 0 ? fail(dir, "", err) : check_directory(dir, err);
}

int lab_out_dir_open(const struct lab_out_dir_spec *spec, struct lab_out_dir **ret_dir,
                     struct lab_err *err) {
    struct lab_out_dir *dir = lab_mem_alloc(1, sizeof *dir);
    dir->spec = *spec;
    dir->fd = -1;
    lab_arena_init(&dir->arena);
    dir->spec.path = lab_arena_strdup(&dir->arena, spec->path);
    if (open_directory(dir, err) < 0) {
        lab_out_dir_close(dir);
        return -1;
    }
    *ret_dir = dir;
    return 0;
}

const char *lab_out_dir_resolve(const char *path, struct lab_arena *arena) {
    LAB_AUTO_FREE char *real = path ? realpath(path, NULL) : NULL;
    return real ? lab_arena_strdup(arena, real) : path;
}

/* --- staging --- */

static int check_name(struct lab_out_dir *dir, const char *name, struct lab_err *err) {
    const struct lab_out_dir_spec *spec = &dir->spec;
    struct stat info;
    if (!is_plain_name(name))
        return lab_err_set(err, LAB_ERR_USER, "'%s' is not a file name in %s", name, spec->path);
    if (fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail(dir, name, err);
    bool known = lab_str_find(name, dir->manifest.items) >= 0 || (spec->owner && !dir->listed);
    bool directory = S_ISDIR(info.st_mode);
    if (directory || (!known && !spec->forced))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s/%s exists and was not written by gpulab: name another directory%s",
                           spec->path, name, directory ? "" : force_words(dir));
    return 0;
}

/* A new file with a name of its own; mkstemp ignores the umask. */
static int open_temporary(struct lab_out_dir *dir, char *ret_name) {
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(ret_name, TEMPORARY_BYTES, LAB_FILE_TEMPORARY "%d-%d-%d.tmp", (int)getpid(),
                 dir->file_count, attempt);
        int fd =
            openat(dir->fd, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int write_temporary(struct lab_out_dir *dir, const char *bytes, size_t length,
                           char *ret_name) {
    int fd = open_temporary(dir, ret_name);
    if (fd < 0)
        return -1;
    int result = lab_file_write_all(fd, bytes, length);
    if (result == 0)
        result = fsync(fd); /* a name that outlives a power cut must not lead to an empty file */
    int reason = errno;
    if (close(fd) < 0 && result == 0) {
        result = -1;
        reason = errno;
    }
    if (result < 0)
        unlinkat(dir->fd, ret_name, 0);
    errno = reason;
    return result;
}

int lab_out_dir_add(struct lab_out_dir *dir, const char *name, const char *bytes, size_t length,
                    struct lab_err *err) {
    if (check_name(dir, name, err) < 0)
        return -1;
    dir->files =
        lab_arena_grow(&dir->arena, dir->files, (size_t)dir->file_count, sizeof *dir->files);
    struct staged *file = &dir->files[dir->file_count];
    if (write_temporary(dir, bytes, length, file->temporary) < 0)
        return fail(dir, name, err);
    file->name = lab_arena_strdup(&dir->arena, name);
    dir->file_count++;
    return 0;
}

int lab_out_dir_add_copy(struct lab_out_dir *dir, const char *name, const char *from,
                         struct lab_err *err) {
    LAB_AUTO(arena, arena);
    char *bytes;
    size_t length;
    if (lab_file_read(from, COPY_MAX_BYTES, &arena, &bytes, &length, err) < 0)
        return -1;
    return lab_out_dir_add(dir, name, bytes, length, err);
}

/* --- committing --- */

/* Some file systems can't, and say EINVAL. */
static int sync_names(const struct lab_out_dir *dir) {
    return fsync(dir->fd) < 0 && errno != EINVAL ? -1 : 0;
}

static int write_manifest(struct lab_out_dir *dir, bool with_old, struct lab_err *err) {
    struct names names = {0};
    LAB_AUTO(str, text);
    char temporary[TEMPORARY_BYTES];
    for (int i = 0; i < dir->manifest.count && with_old; i++)
        add_name(&names, dir->manifest.items[i], &dir->arena);
    for (int i = 0; i < dir->file_count; i++)
        add_name(&names, dir->files[i].name, &dir->arena);
    lab_str_add(&text, MANIFEST_HEAD "\n");
    for (int i = 0; i < names.count; i++)
        lab_str_printf(&text, "%s\n", names.items[i]);
    int result = write_temporary(dir, text.text, text.length, temporary);
    if (result == 0 && renameat(dir->fd, temporary, dir->fd, manifest_name(dir)) < 0) {
        fail(dir, manifest_name(dir), err);
        unlinkat(dir->fd, temporary, 0);
        result = -1;
    } else if (result < 0 || sync_names(dir) < 0) {
        result = fail(dir, manifest_name(dir), err);
    }
    return result;
}

int lab_out_dir_commit(struct lab_out_dir *dir, struct lab_err *err) {
    if (write_manifest(dir, true, err) < 0)
        return -1;
    for (int i = 0; i < dir->file_count; i++) {
        struct staged *file = &dir->files[i];
        lab_failpoint("before-replace");
        if (renameat(dir->fd, file->temporary, dir->fd, file->name) < 0)
            return fail(dir, file->name, err);
        lab_failpoint("after-replace");
        file->temporary[0] = '\0';
    }
    for (int i = 0; i < dir->manifest.count && !dir->spec.keep; i++)
        if (LAB_FIND(dir->files, dir->file_count, name, dir->manifest.items[i]) < 0)
            unlinkat(dir->fd, dir->manifest.items[i], 0);
    return write_manifest(dir, dir->spec.keep, err);
}

void lab_out_dir_close(struct lab_out_dir *dir) {
    if (!dir)
        return;
    for (int i = 0; i < dir->file_count; i++)
        if (dir->files[i].temporary[0])
            unlinkat(dir->fd, dir->files[i].temporary, 0);
    lab_file_close(&dir->fd);
    lab_arena_release(&dir->arena);
    lab_mem_free(dir);
}

/* --- scratch --- */

#define SCRATCH_NAME "gpulab-scratch-"

/* Those of killed programs: whoever lives holds the lock of his. */
static void remove_scratch(const char *base, struct lab_arena *arena) {
    const char *const *names = lab_walk_names(base, arena);
    for (; names && *names; names++) {
        if (!lab_str_starts(*names, SCRATCH_NAME))
            continue;
        const char *path = lab_arena_printf(arena, "%s/%s", base, *names);
        LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat info;
        if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
            lab_lock_try(fd, path) == LAB_LOCK_TAKEN)
            lab_own_remove_tree(path);
    }
}

/* -1 with errno; ENOENT: a cleaner came between, so that another one is needed. */
static int make_scratch(const char *base, struct lab_arena *arena,
                        struct lab_scratch_dir *ret_dir) {
    char *path = lab_arena_printf(arena, "%s/" SCRATCH_NAME "XXXXXX", base);
    if (!mkdtemp(path))
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    enum lab_lock got = fd < 0 ? LAB_LOCK_GONE : lab_lock_try(fd, path);
    if (got == LAB_LOCK_TAKEN || got == LAB_LOCK_FAILED) {
        *ret_dir = (struct lab_scratch_dir){path, fd};
        return 0;
    }
    lab_file_close(&fd);
    errno = ENOENT;
    return -1;
}

int lab_scratch_dir_open(struct lab_arena *arena, struct lab_scratch_dir *ret_dir,
                         struct lab_err *err) {
    const char *base = getenv("TMPDIR");
    base = lab_out_dir_resolve(base && *base ? base : "/tmp", arena);
    remove_scratch(base, arena);
    for (int attempt = 0; attempt < 10; attempt++) {
        if (make_scratch(base, arena, ret_dir) == 0)
            return 0;
        if (access(base, F_OK) < 0 || errno != ENOENT)
            break;
    }
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno,
                             "no scratch directory in %s; TMPDIR names another", base);
}

void lab_scratch_dir_close(struct lab_scratch_dir *dir) {
    if (dir->fd < 0)
        return;
    lab_own_remove_tree(dir->path);
    close(dir->fd);
    *dir = (struct lab_scratch_dir){NULL, -1};
}
