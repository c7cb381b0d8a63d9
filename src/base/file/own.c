/* own.c: opening without following, checking what was opened, renaming over nothing. */
#include "base/file/own.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 10 /* at a file that others make and remove */

/* --- whose it is --- */

bool lab_own_is(int folder, uid_t uid) {
    if (uid == geteuid())
        return true;
    char name[64];
    struct stat info;
    snprintf(name, sizeof name, LAB_FILE_TEMPORARY "%d-owner.tmp", (int)getpid());
    LAB_AUTO_CLOSE int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool same = fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == uid;
    if (fd >= 0)
        unlinkat(folder, name, 0);
    return same;
}

static bool is_callers(const char *path, uid_t uid) {
    if (uid == geteuid())
        return true;
    LAB_AUTO(arena, arena);
    const char *slash = strrchr(path, '/');
    const char *above = !slash          ? "."
                        : slash == path ? "/"
                                        : lab_arena_strndup(&arena, path, (size_t)(slash - path));
    LAB_AUTO_CLOSE int folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 && lab_own_is(folder, uid);
}

/* --- refusals --- */

static int refuse(const char *path, const char *what, struct lab_err *err) {
    lab_err_set(err, LAB_ERR_USER, "%s %s", path, what);
    errno = EPERM;
    return -1;
}

static int refuse_owner(const char *path, uid_t uid, struct lab_err *err) {
    const struct passwd *user = getpwuid(uid);
    lab_err_set(err, LAB_ERR_USER, "%s belongs to another user (%s)", path,
                user ? user->pw_name : "unknown");
    errno = EPERM;
    return -1;
}

static int fail(const char *path, int reason, struct lab_err *err) {
    bool users = reason == ENOENT || reason == ENOTDIR || reason == ENAMETOOLONG ||
                 reason == EACCES || reason == EROFS;
    lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, reason, "%s", path);
    errno = reason;
    return -1;
}

/* --- files --- */

static int open_there(const char *path, int flags, struct lab_err *err) {
    struct stat info;
    int fd = open(path, flags), result = 0;
    if (fd < 0 && errno == ELOOP)
        return refuse(path, "is a link, which isn't followed", err);
    if (fd < 0 && errno == ENXIO)
        return refuse(path, "is a pipe or a device, not a file", err);
    if (fd < 0)
        return fail(path, errno, err);
    if (fstat(fd, &info) < 0)
        result = fail(path, errno, err);
    else if (!S_ISREG(info.st_mode))
        result = refuse(path, "is a pipe or a device, not a file", err);
    else if (!is_callers(path, info.st_uid))
        result = refuse_owner(path, info.st_uid, err);
    else if (info.st_nlink > 1)
        result = refuse(path, "has a second name (a hard link)", err);
    if (result == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int lab_own_open(const char *path, enum lab_own how, struct lab_err *err) {
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    flags |= how == LAB_OWN_APPEND ? O_WRONLY | O_APPEND : O_RDWR;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        /* what is made here needs no check, whatever number its owner has */
        int fd = open(path, flags | O_CREAT | O_EXCL, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST || how == LAB_OWN_NEW)
            return fail(path, errno, err);
        fd = open_there(path, flags, err);
        if (fd >= 0 || errno != ENOENT)
            return fd;
    }
    return fail(path, ENOENT, err);
}

/* --- folders --- */

int lab_own_check_folder(const char *path, struct lab_err *err) {
    struct stat info;
    if (lstat(path, &info) < 0)
        return fail(path, errno, err);
    if (!S_ISDIR(info.st_mode))
        return refuse(path, "is a link or a file, not a folder", err);
    return is_callers(path, info.st_uid) ? 0 : refuse_owner(path, info.st_uid, err);
}

int lab_own_new_folder(const char *path) {
    return mkdir(path, 0777);
}

int lab_own_folder(const char *path, struct lab_err *err) {
    if (mkdir(path, 0777) == 0)
        return lab_file_sync_above(path) < 0 ? fail(path, errno, err) : 0;
    return errno == EEXIST ? lab_own_check_folder(path, err) : fail(path, errno, err);
}

/* --- changing --- */

int lab_own_remove(const char *path) {
    return remove(path);
}

int lab_own_remove_empty(const char *path) {
    return rmdir(path);
}

int lab_own_remove_at(int folder, const char *name) {
    return unlinkat(folder, name, 0);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

void lab_own_remove_tree(const char *path) {
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static bool is_leftover(int folder, const char *name, int64_t age_s) {
    struct stat info;
    if (!lab_str_starts(name, LAB_FILE_TEMPORARY))
        return false;
    LAB_AUTO_CLOSE int fd =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
           lab_clock_wall_ns() / LAB_NS_PER_S - info.st_mtim.tv_sec >= age_s &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void lab_own_remove_leftovers(int folder, int64_t age_s) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    LAB_AUTO_CLOSEDIR DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_leftover(folder, entry->d_name, age_s))
            unlinkat(folder, entry->d_name, 0);
}

/* For a file system that can't refuse to replace: the name is first taken by a link to the file, or
 * by an empty folder, which rename may replace. */
static int rename_in_steps(const char *from, const char *to) {
    struct stat info;
    if (lstat(from, &info) < 0)
        return -1;
    if (!S_ISDIR(info.st_mode))
        return link(from, to) < 0 ? -1 : unlink(from);
    if (mkdir(to, 0777) < 0)
        return -1;
    if (rename(from, to) == 0)
        return 0;
    int reason = errno;
    rmdir(to);
    errno = reason;
    return -1;
}

int lab_own_rename_new(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? rename_in_steps(from, to) : -1;
}
