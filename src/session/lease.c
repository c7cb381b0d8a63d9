/*
 * lease.c: physical devices are lent to one study at a time, across all users of the machine.
 *
 * A lease is an flock on a file in a directory that everybody may write to, where no one is
 * trusted: a file there may be a link to another one, a pipe, or locked for ever by another user.
 * What isn't a plain file with one name isn't touched. Files are never removed: two processes could
 * then hold "the same" lock on two of them.
 */
#include "session/lease.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS (200 * LAB_NS_PER_MS) /* between two looks at a device in use by another process */

/* --- files --- */

static const char *file_name(const char *device, struct lab_arena *arena) {
    LAB_AUTO(str, name);
    lab_str_add(&name, "gpulab-");
    for (; *device; device++) {
        unsigned char byte = (unsigned char)*device;
        if (isalnum(byte) || strchr(":._-", byte))
            lab_str_add_bytes(&name, device, 1);
        else
            lab_str_printf(&name, "%%%02X", byte);
    }
    lab_str_add(&name, ".lock");
    return lab_arena_strdup(arena, name.text);
}

/*
 * Opens the file, or makes it; -1 with errno. Not in one step: where the directory is sticky, the
 * kernel refuses O_CREAT for a file that another user has made (fs.protected_regular).
 */
static int open_or_make(const char *path) {
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    for (int attempt = 0; attempt < 10; attempt++) {
        int fd = open(path, O_RDWR | flags);
        if (fd < 0 &&
            errno == EACCES) /* made a moment ago, its mode not yet set; enough to lock it */
            fd = open(path, O_RDONLY | flags);
        if (fd >= 0 || errno != ENOENT)
            return fd;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0666);
        if (fd >= 0 && fchmod(fd, 0666) < 0) { /* other users lock it too, whatever our umask is */
            close(fd);
            return -1;
        }
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int refuse_file(const char *path, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_SYSTEM,
                       "%s is not a plain file: have it removed, or name another directory "
                       "for locks in GPULAB_LOCK_DIR",
                       path);
}

static int check_file(int fd, const char *path, struct lab_err *err) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", path);
    if (!S_ISREG(info.st_mode) || info.st_nlink > 1)
        return refuse_file(path, err);
    return 0;
}

/* Open to every user of the machine: for all of them alike, whoever asks. Whether the caller may
 * write there would choose one directory for root and another one for the others. */
static bool is_open_to_all(const char *path) {
    struct stat info;
    struct statvfs system; /* a container's may be read-only */
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
           (info.st_mode & (S_IWOTH | S_IXOTH)) == (S_IWOTH | S_IXOTH) &&
           statvfs(path, &system) == 0 && !(system.f_flag & ST_RDONLY);
}

const char *lab_lease_directory(const char *const *places) {
    for (const char *const *place = places; *place; place++)
        if (is_open_to_all(*place))
            return *place;
    for (; *places; places++)
        if (access(*places, W_OK | X_OK) == 0)
            return *places;
    return NULL;
}

const char *lab_lease_folder(struct lab_arena *arena, struct lab_err *err) {
    static const char *const places[] = {"/run/lock", "/tmp", NULL};
    const char *own = getenv("GPULAB_LOCK_DIR"), *refused;
    if (own && *own) {
        int reason = lab_file_make_folders(own, 0777, arena, &refused);
        if (!reason && access(own, W_OK | X_OK) == 0)
            return own;
        lab_log(LAB_LOG_WARNING, "GPULAB_LOCK_DIR=%s can't be used for locks: %s", own,
                strerror(reason ? reason : errno));
    }
    const char *shared = lab_lease_directory(places);
    if (!shared)
        lab_err_set(
            err, LAB_ERR_SYSTEM,
            "no directory for locks: neither /run/lock nor /tmp can be written to; name one in "
            "GPULAB_LOCK_DIR");
    return shared;
}

/* --- taking --- */

struct taking {
    const char **devices; /* sorted, each once */
    const char **paths;   /* a file for each */
    int count;
    const struct lab_holder *self;
    int *fds; /* -1 = not held */
};

static void drop_all(struct taking *taking) {
    for (int i = 0; i < taking->count; i++)
        lab_file_close(&taking->fds[i]);
}

/* 1 = taken, 0 = another process has it, -1. */
static int take_one(struct taking *taking, int index, struct lab_holder *ret_holder,
                    struct lab_err *err) {
    const char *path = taking->paths[index];
    for (;;) {
        int fd = open_or_make(path);
        if (fd < 0 && (errno == ELOOP || errno == ENXIO))
            return refuse_file(path, err);
        if (fd < 0)
            return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno,
                                     "locking %s (GPULAB_LOCK_DIR names another directory for "
                                     "locks): %s",
                                     taking->devices[index], path);
        enum lab_lock got = LAB_LOCK_FAILED;
        if (check_file(fd, path, err) == 0) {
            got = lab_lock_try(fd, path);
            if (got == LAB_LOCK_FAILED)
                lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "locking %s: %s",
                                  taking->devices[index], path);
        }
        if (got == LAB_LOCK_TAKEN) {
            lab_lock_write(fd, taking->self);
            taking->fds[index] = fd;
            return 1;
        }
        if (got == LAB_LOCK_HELD)
            lab_lock_read(fd, ret_holder);
        close(fd);
        if (got != LAB_LOCK_GONE)
            return got == LAB_LOCK_HELD ? 0 : -1;
    }
}

/* All of them or none: who waits for one device keeps no other one idle. 1, 0 or -1 as above. */
static int take_all(struct taking *taking, const char **ret_device, struct lab_holder *ret_holder,
                    struct lab_err *err) {
    for (int i = 0; i < taking->count; i++) {
        int got = take_one(taking, i, ret_holder, err);
        if (got <= 0) {
            drop_all(taking);
            *ret_device = taking->devices[i];
            return got;
        }
    }
    return 1;
}

/* In one order for everybody, so that of two who want the same devices one gets them all. */
static void sort_devices(struct taking *taking, const char *const *devices, int count,
                         const char *directory, struct lab_arena *arena) {
    size_t room = (size_t)count + 1;
    taking->devices = lab_arena_alloc(arena, room, sizeof *taking->devices);
    taking->paths = lab_arena_alloc(arena, room, sizeof *taking->paths);
    taking->fds = lab_mem_alloc(room, sizeof *taking->fds);
    for (int i = 0; i < count; i++)
        taking->devices[i] = devices[i];
    qsort(taking->devices, (size_t)count, sizeof *taking->devices, lab_str_compare);
    for (int i = 0; i < count; i++)
        if (i == 0 || strcmp(taking->devices[i], taking->devices[i - 1]) != 0)
            taking->devices[taking->count++] = taking->devices[i];
    for (int i = 0; i < taking->count; i++) {
        taking->paths[i] =
            lab_arena_printf(arena, "%s/%s", directory, file_name(taking->devices[i], arena));
        taking->fds[i] = -1;
    }
}

static int refuse_busy(const char *device, const struct lab_holder *holder, struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_holder_describe(holder, &text);
    lab_err_set(err, LAB_ERR_USER,
                "%s is in use by %s; two studies on one device would disturb each other", device,
                text.text);
    return -1;
}

/* Not lab_clock_sleep: a signal ends this one early, so that Ctrl-C is heard at once. */
static void pause_a_little(void) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
}

int lab_lease_take(const char *const *devices, int count, const struct lab_holder *self,
                   bool (*wait)(const char *device, const struct lab_holder *holder, void *state),
                   void *state, struct lab_lease *ret_lease, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct taking taking = {.self = self};
    const char *directory = lab_lease_folder(&arena, err);
    int got = directory ? 0 : -1;
    if (directory)
        sort_devices(&taking, devices, count, directory, &arena);
    while (got == 0) {
        const char *device = NULL;
        struct lab_holder holder = {0};
        got = take_all(&taking, &device, &holder, err);
        if (got != 0)
            break;
        if (!wait)
            got = refuse_busy(device, &holder, err);
        else if (!wait(device, &holder, state))
            got = lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped while waiting for %s", device);
        else
            pause_a_little();
    }
    if (got > 0)
        *ret_lease = (struct lab_lease){.fds = taking.fds, .count = taking.count};
    else
        lab_mem_free(taking.fds);
    return got > 0 ? 0 : -1;
}

void lab_lease_release(struct lab_lease *lease) {
    for (int i = 0; i < lease->count; i++)
        close(lease->fds[i]);
    lab_mem_free(lease->fds);
    *lease = (struct lab_lease){0};
}
