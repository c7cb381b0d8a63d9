/* out_file.c: temporary file, fsync, rename, fsync of the folder. */
#include "base/file/out_file.h"

#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEFTOVER_S 600

static int fail(const struct lab_out_file *file, struct lab_err *err) {
    bool users = errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == EACCES ||
                 errno == ENAMETOOLONG || errno == EROFS;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno,
                             "%s can't be written", file->path);
}

static const char *folder_of(const char *place, struct lab_arena *arena) {
    const char *slash = strrchr(place, '/');
    return slash ? lab_arena_strndup(arena, place, (size_t)(slash - place) + 1) : "";
}

/* Of exports that were killed. A file system may keep locks to one host: there the age decides. */
static void remove_leftovers(const char *folder) {
    LAB_AUTO_CLOSE int fd = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        lab_own_remove_leftovers(fd, LEFTOVER_S);
}

/* Or what SQLite keeps beside one: changes that aren't in it yet, in a WAL or a journal. */
static bool is_database(const char *path) {
    static const struct {
        size_t length;
        const char *bytes;
    } heads[] = {{16, "SQLite format 3"},
                 {4, "\x37\x7f\x06\x82"},
                 {4, "\x37\x7f\x06\x83"},
                 {8, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"}};
    char bytes[16];
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (got >= (ssize_t)heads[i].length && memcmp(bytes, heads[i].bytes, heads[i].length) == 0)
            return true;
    return false;
}

int lab_out_file_check(const char *path, struct lab_err *err) {
    struct stat old;
    if (stat(path, &old) < 0)
        return 0;
    if (S_ISDIR(old.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a directory: give the file's name as well",
                           path);
    if (S_ISREG(old.st_mode) && is_database(path))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is a database, such as a study's or a recording, which is never "
                           "overwritten: name another file",
                           path);
    return 0;
}

int lab_out_file_open(const char *path, struct lab_arena *arena, struct lab_out_file *ret_file,
                      struct lab_err *err) {
    struct lab_out_file file = {.path = path, .place = path, .fd = -1};
    struct stat old;
    if (lab_out_file_check(path, err) < 0)
        return -1;
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        file.fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        LAB_AUTO_FREE char *real = exists ? realpath(path, NULL) : NULL;
        if (real)
            file.place = lab_arena_strdup(arena, real);
        remove_leftovers(folder_of(file.place, arena));
        file.fd = lab_file_open_beside(folder_of(file.place, arena), arena, &file.temporary);
        if (file.fd >= 0 && exists && fchmod(file.fd, old.st_mode & 07777) < 0 && errno != EPERM) {
            fail(&file, err);
            lab_out_file_drop(&file);
            return -1;
        }
    }
    if (file.fd < 0)
        return fail(&file, err);
    *ret_file = file;
    return 0;
}

int lab_out_file_write(struct lab_out_file *file, const char *bytes, size_t length,
                       struct lab_err *err) {
    return lab_file_write_all(file->fd, bytes, length) < 0 ? fail(file, err) : 0;
}

static int put_in_place(struct lab_out_file *file) {
    LAB_AUTO(arena, arena);
    lab_failpoint("before-replace");
    if (fsync(file->fd) < 0 || rename(file->temporary, file->place) < 0)
        return -1;
    lab_failpoint("after-replace");
    file->temporary = NULL;
    return lab_file_sync_directory(folder_of(file->place, &arena));
}

int lab_out_file_finish(struct lab_out_file *file, struct lab_err *err) {
    int result = file->temporary && put_in_place(file) < 0 ? fail(file, err) : 0;
    lab_out_file_drop(file);
    return result;
}

int lab_out_file_save(const char *path, const char *bytes, size_t length, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_out_file file;
    if (lab_out_file_open(path, &arena, &file, err) < 0)
        return -1;
    if (lab_out_file_write(&file, bytes, length, err) < 0) {
        lab_out_file_drop(&file);
        return -1;
    }
    return lab_out_file_finish(&file, err);
}

void lab_out_file_drop(struct lab_out_file *file) {
    if (file->temporary)
        unlink(file->temporary);
    lab_file_close(&file->fd);
    file->temporary = NULL;
    file->fd = -1;
}
