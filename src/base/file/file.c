/* file.c: reading within bounds; writing through a temporary file, fsync and rename. */
#include "base/file/file.h"

#include "base/failpoint.h"
#include "base/file/lock.h"
#include "base/file/map.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20) /* the most that Linux gives every user */

/* A path that isn't there was named by somebody; other refusals are the system's. */
static int fail(struct lab_err *err, int errno_value, const char *path) {
    bool users = errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ENAMETOOLONG ||
                 errno_value == ELOOP;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno_value, "%s", path);
}

static ssize_t read_some(int fd, char *bytes, size_t length) {
    ssize_t got;
    do
        got = read(fd, bytes, length);
    while (got < 0 && errno == EINTR);
    return got;
}

static int check_kind(int fd, const char *path, size_t max_bytes, struct lab_err *err) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return fail(err, errno, path);
    if (S_ISDIR(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a directory, not a file", path);
    if (!S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a device or pipe, not a file", path);
    if ((uintmax_t)info.st_size > max_bytes)
        return lab_err_set(err, LAB_ERR_USER, "%s is too large: %lld bytes, at most %zu are read",
                           path, (long long)info.st_size, max_bytes);
    return 0;
}

/* Reads to the end rather than to the size: files of the kernel have none. */
static int read_all(int fd, const char *path, size_t max_bytes, struct lab_str *text,
                    struct lab_err *err) {
    char chunk[16384];
    for (;;) {
        ssize_t got = read_some(fd, chunk, sizeof chunk);
        if (got < 0)
            return fail(err, errno, path);
        if (got == 0)
            return 0;
        if ((size_t)got > max_bytes - text->length)
            return lab_err_set(err, LAB_ERR_USER, "%s is too large: at most %zu bytes are read",
                               path, max_bytes);
        lab_str_add_bytes(text, chunk, (size_t)got);
    }
}

int lab_file_read(const char *path, size_t max_bytes, struct lab_arena *arena, char **ret_text,
                  size_t *ret_length, struct lab_err *err) {
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(err, errno, path);
    LAB_AUTO(str, text);
    if (check_kind(fd, path, max_bytes, err) < 0 || read_all(fd, path, max_bytes, &text, err) < 0)
        return -1;
    *ret_text = lab_arena_strndup(arena, text.text, text.length);
    *ret_length = text.length;
    return 0;
}

int lab_file_map_open(const char *path, struct lab_file_map *ret_map, struct lab_err *err) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(err, errno, path);
    struct lab_file_map map = {NULL, 0};
    struct stat info;
    if (check_kind(fd, path, SIZE_MAX, err) < 0)
        return -1;
    if (fstat(fd, &info) < 0)
        return fail(err, errno, path);
    map.length = (size_t)info.st_size;
    void *bytes = map.length ? mmap(NULL, map.length, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return fail(err, errno, path);
    map.bytes = bytes;
    *ret_map = map;
    return 0;
}

void lab_file_map_close(struct lab_file_map *map) {
    if (map->bytes)
        munmap((void *)map->bytes, map->length);
    *map = (struct lab_file_map){NULL, 0};
}

void lab_file_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void lab_file_closedir(DIR **folder) {
    if (*folder)
        closedir(*folder);
}

int lab_file_write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

void lab_file_widen_pipe(int fd) {
    if (fcntl(fd, F_GETPIPE_SZ) < PIPE_BYTES)
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* a refusal changes nothing */
}

/* Linux before 5.11 doesn't have the call. */
void lab_file_keep_from_children(int first) {
    if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    LAB_AUTO_CLOSEDIR DIR *open_ones = opendir("/proc/self/fd");
    for (const struct dirent *entry; open_ones && (entry = readdir(open_ones));) {
        int fd = (int)strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */
        if (fd >= first)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

int lab_file_open_beside(const char *directory, struct lab_arena *arena, const char **ret_path) {
    static atomic_uint counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        const char *path = lab_arena_printf(arena, "%s" LAB_FILE_TEMPORARY "%d-%u.tmp", directory,
                                            (int)getpid(), atomic_fetch_add(&counter, 1));
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
        enum lab_lock got = fd < 0 ? LAB_LOCK_GONE : lab_lock_try(fd, path);
        if (got == LAB_LOCK_TAKEN || got == LAB_LOCK_FAILED) {
            *ret_path = path;
            return fd;
        }
        lab_file_close(&fd); /* taken for a leftover before it was locked */
    }
    return -1;
}

int lab_file_sync_directory(const char *path) {
    LAB_AUTO_CLOSE int fd = open(path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    /* some file systems can't, and say EINVAL */
    return fsync(fd) < 0 && errno != EINVAL ? -1 : 0;
}

int lab_file_sync_above(const char *path) {
    const char *slash = strrchr(path, '/');
    LAB_AUTO_FREE char *above = lab_mem_strdup(path);
    above[slash ? slash - path + 1 : 0] = '\0';
    return lab_file_sync_directory(above);
}

static int write_and_rename(int fd, const char *temporary, const char *path, const char *bytes,
                            size_t length, bool durable) {
    struct stat old;
    if (stat(path, &old) == 0 && fchmod(fd, old.st_mode & 07777) < 0 && errno != EPERM)
        return -1;
    if (lab_file_write_all(fd, bytes, length) < 0 || (durable && fsync(fd) < 0))
        return -1;
    lab_failpoint("before-rename");
    int result = rename(temporary, path);
    lab_failpoint("after-rename");
    return result;
}

static int write_file(const char *path, const char *bytes, size_t length, bool durable,
                      struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *slash = strrchr(path, '/');
    size_t prefix = slash ? (size_t)(slash - path) + 1 : 0;
    const char *directory = lab_arena_strndup(&arena, path, prefix);
    const char *temporary = NULL;
    LAB_AUTO_CLOSE int fd = lab_file_open_beside(directory, &arena, &temporary);
    bool renamed = fd >= 0 && write_and_rename(fd, temporary, path, bytes, length, durable) == 0;
    int result = 0;
    if (!renamed || (durable && lab_file_sync_directory(directory) < 0))
        result = fail(err, errno, path);
    if (fd >= 0 && !renamed)
        unlink(temporary);
    return result;
}

int lab_file_write_atomic(const char *path, const char *bytes, size_t length, struct lab_err *err) {
    return write_file(path, bytes, length, true, err);
}

int lab_file_replace(const char *path, const char *bytes, size_t length, struct lab_err *err) {
    return write_file(path, bytes, length, false, err);
}

int lab_file_read_int(const char *path, int64_t *ret_value) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    char text[64];
    ssize_t got = read_some(fd, text, sizeof text - 1);
    if (got <= 0)
        return -1;
    text[got] = '\0';
    const char *digits = text + strspn(text, " \t+-");
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, lab_str_starts(digits, "0x") ? 16 : 10);
    if (errno || end == text)
        return -1;
    while (isspace((unsigned char)*end))
        end++;
    if (*end)
        return -1;
    *ret_value = value;
    return 0;
}

static bool is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int lab_file_make_folders(const char *path, mode_t mode, struct lab_arena *arena,
                          const char **ret_refused) {
    char *part = lab_arena_strdup(arena, path);
    for (char *end = part + 1;; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char kept = *end;
        *end = '\0';
        int refused = mkdir(part, mode) < 0 ? errno : 0;
        if (refused && !is_directory(part)) {
            *ret_refused = part;
            return refused == EEXIST ? ENOTDIR : refused;
        }
        if (!refused)
            (void)lab_file_sync_above(part);
        *end = kept;
        if (!kept)
            return 0;
    }
}

const char *lab_file_config_folder(struct lab_arena *arena) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *folder = NULL;
    if (config && *config)
        folder = lab_arena_printf(arena, "%s/gpulab", config);
    else if (home && *home)
        folder = lab_arena_printf(arena, "%s/.config/gpulab", home);
    return folder && is_directory(folder) ? folder : NULL;
}
