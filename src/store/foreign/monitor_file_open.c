/*
 * monitor_file_open.c: any file that holds what a monitor saw, told by what is in it and not by its
 * name: our recordings and studies are SQLite's, everything else is text.
 */
#include "store/foreign/monitor_file_reader.h"

#include "base/file/file.h"
#include "store/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SQLITE_MAGIC "SQLite format 3"

#define STUDY_ID  "glab" /* application_id of a study's database */
#define ID_OFFSET 68

static bool is_sqlite(int fd) {
    char head[sizeof SQLITE_MAGIC];
    return pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, SQLITE_MAGIC, sizeof head) == 0;
}

/* A recording, or something that reading it will tell of. */
static bool is_study(int fd) {
    char id[4];
    return pread(fd, id, sizeof id, ID_OFFSET) == sizeof id && memcmp(id, STUDY_ID, sizeof id) == 0;
}

bool lab_monitor_is_file(const char *path) {
    struct stat info;
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    return is_file && (is_sqlite(fd) ? !is_study(fd) : lab_monitor_is_text(fd));
}

int lab_monitor_read(const char *path, struct lab_arena *arena, struct lab_recording *ret_recording,
                     struct lab_err *err) {
    struct stat info;
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) < 0) {
        bool users = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
        return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno, "%s", path);
    }
    if (!S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a %s, not a file", path,
                           S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
    return is_sqlite(fd) ? lab_recording_read(path, NULL, arena, ret_recording, err)
                         : lab_monitor_read_text(fd, path, arena, ret_recording, err);
}
