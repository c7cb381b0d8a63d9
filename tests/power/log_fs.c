/*
 * log_fs.c: a FUSE file system that shows another folder and logs what would change a disk, in order:
 * writes, truncations, names that are made, renamed and removed, and syncs. tests/power/power.py
 * replays prefixes of the log, and losses of what no sync covers.
 *
 *     log_fs BACKING LOG MOUNT
 *
 * One thread, so that the log's order is the one in which callers were answered. A record is a struct
 * record and its bytes: of a write the data, of names "name" or "from\0to".
 */
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct record {
    int64_t kind; /* Create, makeDir, Rename, Unlink, Link, Write, Truncate, Sync, syncFolder */
    int64_t inode, folder, to_folder, offset, length;
};

static const char *backing;
static int log_fd;

static void note(struct record record, const void *bytes) {
    struct iovec parts[] = {{&record, sizeof record}, {(void *)bytes, (size_t)record.length}};
    if (writev(log_fd, parts, 2) != (ssize_t)(sizeof record + (size_t)record.length))
        abort(); /* a log with holes proves nothing */
}

static const char *behind(const char *path, char *buffer) {
    snprintf(buffer, PATH_MAX, "%s%s", backing, path);
    return buffer;
}

static int64_t inode_of(const char *path) {
    struct stat info;
    return lstat(path, &info) < 0 ? 0 : (int64_t)info.st_ino;
}

static int64_t folder_of(const char *path) {
    char copy[PATH_MAX], buffer[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", behind(path, buffer));
    return inode_of(dirname(copy));
}

static void note_name(int kind, int64_t inode, const char *path) {
    const char *name = strrchr(path, '/') + 1;
    note((struct record){kind, inode, folder_of(path), 0, 0, (int64_t)strlen(name)}, name);
}

static int64_t inode_of_fd(int fd) {
    struct stat info;
    return fstat(fd, &info) < 0 ? 0 : (int64_t)info.st_ino;
}

#define DONE(call) ((call) < 0 ? -errno : 0)

/* --- names --- */

static int do_mkdir(const char *path, mode_t mode) {
    char at[PATH_MAX];
    int result = DONE(mkdir(behind(path, at), mode));
    if (result == 0)
        note_name('D', inode_of(at), path);
    return result;
}

static int remove_with(int (*call)(const char *), const char *path) {
    char at[PATH_MAX];
    int64_t inode = inode_of(behind(path, at));
    int result = DONE(call(at));
    if (result == 0)
        note_name('U', inode, path);
    return result;
}

static int do_unlink(const char *path) {
    return remove_with(unlink, path);
}

static int do_rmdir(const char *path) {
    return remove_with(rmdir, path);
}

static int do_rename(const char *from, const char *to, unsigned flags) {
    char from_at[PATH_MAX], to_at[PATH_MAX], names[2 * NAME_MAX + 2];
    int64_t inode = inode_of(behind(from, from_at));
    int result = DONE(renameat2(AT_FDCWD, from_at, AT_FDCWD, behind(to, to_at), flags));
    int length =
        snprintf(names, sizeof names, "%s%c%s", strrchr(from, '/') + 1, '\0', strrchr(to, '/') + 1);
    if (result == 0)
        note((struct record){'R', inode, folder_of(from), folder_of(to), 0, length}, names);
    return result;
}

static int do_link(const char *from, const char *to) {
    char from_at[PATH_MAX], to_at[PATH_MAX];
    int result = DONE(link(behind(from, from_at), behind(to, to_at)));
    if (result == 0)
        note_name('L', inode_of(to_at), to);
    return result;
}

/* --- files --- */

/* The kernel gives the offset of what is appended. */
static int do_create(const char *path, mode_t mode, struct fuse_file_info *file) {
    char at[PATH_MAX];
    int fd = open(behind(path, at), (file->flags & ~O_APPEND) | O_CREAT | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    note_name('C', inode_of_fd(fd), path);
    file->fh = (uint64_t)fd;
    return 0;
}

static int do_open(const char *path, struct fuse_file_info *file) {
    char at[PATH_MAX];
    int fd = open(behind(path, at), (file->flags & ~O_APPEND) | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (file->flags & O_TRUNC)
        note((struct record){'T', inode_of_fd(fd), 0, 0, 0, 0}, "");
    file->fh = (uint64_t)fd;
    return 0;
}

static int do_release(const char *path, struct fuse_file_info *file) {
    (void)path;
    return DONE(close((int)file->fh));
}

static int do_read(const char *path, char *bytes, size_t length, off_t at,
                   struct fuse_file_info *file) {
    (void)path;
    ssize_t got = pread((int)file->fh, bytes, length, at);
    return got < 0 ? -errno : (int)got;
}

static int do_write(const char *path, const char *bytes, size_t length, off_t at,
                    struct fuse_file_info *file) {
    (void)path;
    ssize_t put = pwrite((int)file->fh, bytes, length, at);
    if (put < 0)
        return -errno;
    note((struct record){'W', inode_of_fd((int)file->fh), 0, 0, at, put}, bytes);
    return (int)put;
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *file) {
    char at[PATH_MAX];
    if ((file ? ftruncate((int)file->fh, size) : truncate(behind(path, at), size)) < 0)
        return -errno;
    note((struct record){'T', file ? inode_of_fd((int)file->fh) : inode_of(at), 0, 0, size, 0}, "");
    return 0;
}

static int do_fsync(const char *path, int data_only, struct fuse_file_info *file) {
    (void)path, (void)data_only; /* without the size, no data */
    note((struct record){'S', inode_of_fd((int)file->fh), 0, 0, 0, 0}, "");
    return 0;
}

/* --- folders, and what is looked at --- */

static int do_opendir(const char *path, struct fuse_file_info *file) {
    char at[PATH_MAX];
    int fd = open(behind(path, at), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file->fh = (uint64_t)fd;
    return fd < 0 ? -errno : 0;
}

static int do_fsyncdir(const char *path, int data_only, struct fuse_file_info *file) {
    (void)path, (void)data_only;
    note((struct record){'F', inode_of_fd((int)file->fh), 0, 0, 0, 0}, "");
    return 0;
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t at,
                      struct fuse_file_info *file, enum fuse_readdir_flags flags) {
    (void)path, (void)at, (void)flags;
    int fd = openat((int)file->fh, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries)
        return -errno;
    for (struct dirent *entry; (entry = readdir(entries));)
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(entries);
    return 0;
}

static int do_getattr(const char *path, struct stat *info, struct fuse_file_info *file) {
    char at[PATH_MAX];
    return DONE(file ? fstat((int)file->fh, info) : lstat(behind(path, at), info));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *file) {
    char at[PATH_MAX];
    return DONE(file ? fchmod((int)file->fh, mode) : chmod(behind(path, at), mode));
}

static int do_utimens(const char *path, const struct timespec times[2],
                      struct fuse_file_info *file) {
    char at[PATH_MAX];
    return DONE(file ? futimens((int)file->fh, times)
                     : utimensat(AT_FDCWD, behind(path, at), times, AT_SYMLINK_NOFOLLOW));
}

static int do_statfs(const char *path, struct statvfs *info) {
    char at[PATH_MAX];
    return DONE(statvfs(behind(path, at), info));
}

/* A file that is removed while it is open keeps its descriptor, and has no path any more. */
static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    (void)connection;
    config->use_ino = config->hard_remove = config->nullpath_ok = 1;
    return NULL;
}

int main(int argc, char **argv) {
    static const struct fuse_operations operations = {
        .init = do_init,
        .mkdir = do_mkdir,
        .unlink = do_unlink,
        .rmdir = do_rmdir,
        .rename = do_rename,
        .link = do_link,
        .create = do_create,
        .open = do_open,
        .release = do_release,
        .read = do_read,
        .write = do_write,
        .truncate = do_truncate,
        .fsync = do_fsync,
        .opendir = do_opendir,
        .releasedir = do_release,
        .fsyncdir = do_fsyncdir,
        .readdir = do_readdir,
        .getattr = do_getattr,
        .chmod = do_chmod,
        .utimens = do_utimens,
        .statfs = do_statfs,
    };
    if (argc != 4)
        return 2;
    backing = argv[1];
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char foreground[] = "-f", single[] = "-s";
    char *arguments[] = {argv[0], foreground, single, argv[3], NULL};
    return log_fd < 0 ? 1 : fuse_main(4, arguments, &operations, NULL);
}
