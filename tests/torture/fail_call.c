/*
 * fail_call.c: a library for LD_PRELOAD that counts gpulab's calls into the system by class and makes
 * call n of one class fail, as a full disk or a machine without memory would. tests/torture/torture.py
 * uses it.
 *
 *     GPULAB_TORTURE=FILE               counters and the list of calls, shared by all processes
 *     GPULAB_TORTURE_FAIL=ROLE:CLASS:N  that call fails; ROLE is main or worker
 *     GPULAB_TORTURE_FAIL=ROLE:CLASS:N+ that one and all later ones
 *
 * A role is the program itself or its hidden command `worker`; other programs that it starts are left
 * alone. Calls that come from libraries which don't check them (hwloc, OpenBLAS) never fail: a walk up
 * the stack tells. The list holds each call's place in the program, so that one call of each place can
 * be chosen. A failure's place is noted.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum class { MALLOC, OPEN, WRITE, RENAME, SYNC, MKDIR, PROCESS, PIPE, MMAP, THREAD, STEP, CLASSES };
static const char *const class_names[] = {"malloc",  "open", "write", "rename", "sync", "mkdir",
                                          "process", "pipe", "mmap",  "thread", "step"};
enum { ROLES = 2, CALLS_MAX = 1 << 20, FRAMES = 24, FAILURE_FRAMES = 3 };

/* The driver reads this: see torture.py. */
struct shared {
    _Atomic int64_t counts[ROLES][CLASSES];
    _Atomic int64_t listed;         /* calls in the list */
    _Atomic int64_t failed;         /* calls that failed */
    int64_t places[FAILURE_FRAMES]; /* of the first failure, in the program's file */
    struct {
        uint32_t kind, place; /* class | role << 8 | spared << 16; a hash of the place */
    } calls[CALLS_MAX];
};

static struct shared *shared; /* NULL: nothing is counted here */
static int own_role, wanted_class = -1;
static int64_t wanted_call;
static bool wanted_later, lists;
static uintptr_t program_base;

/* --- whose call it is --- */

static struct {
    uintptr_t begin, end;
    bool checked, program;
} images[128];
static int image_count;

/* Code that checks what it is given: the program's own, SQLite, jansson, libyaml, and the C library
 * on their behalf. */
static int add_image(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    bool checked = !*name || strncmp(name, "libc.", 5) == 0 || strstr(name, "sqlite3") ||
                   strstr(name, "jansson") || strstr(name, "libyaml") || strstr(name, "torture");
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || image_count == 128)
            continue;
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        images[image_count].begin = begin;
        images[image_count].end = begin + part->p_memsz;
        images[image_count].program = image_count == 0;
        images[image_count++].checked = checked;
    }
    if (image_count == 1)
        program_base = info->dlpi_addr;
    return 0;
}

/* The hash of the program's own innermost frames; whether another library made the call. */
static uint32_t look_up(bool *ret_spared, int64_t *places) {
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), own = 0;
    uint32_t hash = 2166136261u;
    *ret_spared = false;
    for (int i = 0; i < count && own < FAILURE_FRAMES; i++) {
        uintptr_t at = (uintptr_t)frames[i];
        int image = 0;
        while (image < image_count && (at < images[image].begin || at >= images[image].end))
            image++;
        if (image == image_count || !images[image].checked)
            *ret_spared = own == 0 || *ret_spared;
        if (image < image_count && images[image].program) {
            hash = (hash ^ (uint32_t)(at - program_base)) * 16777619u;
            if (places)
                places[own] = (int64_t)(at - program_base);
            own++;
        }
    }
    *ret_spared |= own == 0; /* a thread of a library's own, or before main */
    return hash;
}

/* --- counting --- */

/* The walk up the stack may allocate, and so may other models of such a variable. */
static _Thread_local __attribute__((tls_model("initial-exec"))) bool inside;

/* Whether this call has to fail. */
static bool fails(enum class class) {
    if (!shared || inside || (!lists && (int)class != wanted_class))
        return false;
    inside = true;
    int64_t call = atomic_fetch_add(&shared->counts[own_role][class], 1) + 1;
    bool due =
        (int)class == wanted_class && (call == wanted_call || (wanted_later && call > wanted_call));
    bool spared = false;
    if (lists) {
        int64_t place = atomic_fetch_add(&shared->listed, 1);
        uint32_t hash = look_up(&spared, NULL);
        if (place < CALLS_MAX) {
            shared->calls[place].kind = class | (unsigned)own_role << 8 | (unsigned)spared << 16;
            shared->calls[place].place = hash;
        }
    } else if (due) {
        int64_t places[FAILURE_FRAMES] = {0};
        look_up(&spared, places);
        if (!spared && atomic_fetch_add(&shared->failed, 1) == 0)
            memcpy(shared->places, places, sizeof places);
    }
    inside = false;
    return due && !spared;
}

static bool is_program(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash, "/gpulab") == 0;
}

static int read_role(void) {
    char text[4096] = "";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 && strcmp(text + strlen(text) + 1, "worker") == 0;
}

static void read_wish(const char *wish) {
    char role[16], class[16];
    long long call;
    if (sscanf(wish, "%15[a-z]:%15[a-z]:%lld", role, class, &call) != 3 ||
        (strcmp(role, "worker") == 0) != own_role)
        return;
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(class, class_names[i]) == 0)
            wanted_class = i;
    wanted_call = call;
    wanted_later = wish[strlen(wish) - 1] == '+';
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("GPULAB_TORTURE"), *wish = getenv("GPULAB_TORTURE_FAIL");
    void *frames[FRAMES];
    if (!path || !is_program())
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    void *memory = fd < 0 ? MAP_FAILED
                          : (void *)syscall(SYS_mmap, NULL, sizeof(struct shared),
                                            PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return;
    backtrace(frames, FRAMES); /* loads what it needs now rather than in the middle of a call */
    dl_iterate_phdr(add_image, NULL);
    own_role = read_role();
    lists = !wish;
    if (wish)
        read_wish(wish);
    shared = memory;
}

/* --- the calls --- */

/* The call itself, which dlsym finds; it may allocate. */
static void *next_of(const char *name) {
    bool before = inside;
    inside = true;
    void *found = dlsym(RTLD_NEXT, name);
    inside = before;
    return found;
}

/* Where it fails: sets errno and returns `bad`. */
#define WRAP(class, reason, bad, type, name, parameters, ...)                                      \
    EXPORT type name parameters {                                                                  \
        static type(*next) parameters;                                                             \
        if (!next)                                                                                 \
            *(void **)&next = next_of(#name);                                                      \
        if (fails(class)) {                                                                        \
            errno = reason;                                                                        \
            return bad;                                                                            \
        }                                                                                          \
        return next(__VA_ARGS__);                                                                  \
    }

/* No dlsym for those that it needs itself. NOLINTBEGIN(cert-dcl51-cpp): the C library's own names */
extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size), *__libc_memalign(size_t align, size_t size);

/* NOLINTEND(cert-dcl51-cpp) */
static bool no_memory(void) {
    if (!fails(MALLOC))
        return false;
    errno = ENOMEM;
    return true;
}
EXPORT void *malloc(size_t size) {
    return no_memory() ? NULL : __libc_malloc(size);
}
EXPORT void *calloc(size_t count, size_t size) {
    return no_memory() ? NULL : __libc_calloc(count, size);
}
EXPORT void *realloc(void *old, size_t size) {
    return no_memory() ? NULL : __libc_realloc(old, size);
}
EXPORT void *aligned_alloc(size_t align, size_t size) {
    return no_memory() ? NULL : __libc_memalign(align, size);
}

#define WRAP_OPEN(name, parameters, ...)                                                           \
    EXPORT int name parameters {                                                                   \
        static int(*next) parameters;                                                              \
        if (!next)                                                                                 \
            *(void **)&next = next_of(#name);                                                      \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                    \
        va_end(rest);                                                                              \
        if (fails(OPEN)) {                                                                         \
            errno = flags & O_CREAT ? ENOSPC : EMFILE;                                             \
            return -1;                                                                             \
        }                                                                                          \
        return next(__VA_ARGS__, mode);                                                            \
    }
WRAP_OPEN(open, (const char *path, int flags, ...), path, flags)
WRAP_OPEN(open64, (const char *path, int flags, ...), path, flags)
WRAP_OPEN(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
WRAP_OPEN(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)
/* NOLINTBEGIN(cert-dcl51-cpp) */
int __open_2(const char *path, int flags); /* what `open` becomes under _FORTIFY_SOURCE */
int __open64_2(const char *path, int flags);
WRAP(OPEN, EMFILE, -1, int, __open_2, (const char *path, int flags), path, flags)
WRAP(OPEN, EMFILE, -1, int, __open64_2, (const char *path, int flags), path, flags)
/* NOLINTEND(cert-dcl51-cpp) */
WRAP(OPEN, EMFILE, NULL, DIR *, opendir, (const char *path), path)
WRAP(OPEN, ENOMEM, NULL, DIR *, fdopendir, (int fd), fd)

/* Pipes and sockets don't fill up a disk. Where nothing can be said, no line can be asked for. */
static bool no_space(int fd) {
    struct stat info;
    return fd != STDERR_FILENO && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && fails(WRITE);
}
#define WRAP_WRITE(type, name, parameters, ...)                                                    \
    EXPORT type name parameters {                                                                  \
        static type(*next) parameters;                                                             \
        if (!next)                                                                                 \
            *(void **)&next = next_of(#name);                                                      \
        if (no_space(fd)) {                                                                        \
            errno = ENOSPC;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return next(__VA_ARGS__);                                                                  \
    }
WRAP_WRITE(ssize_t, write, (int fd, const void *bytes, size_t length), fd, bytes, length)
WRAP_WRITE(ssize_t, pwrite, (int fd, const void *bytes, size_t length, off_t at), fd, bytes, length,
           at)
WRAP_WRITE(ssize_t, pwrite64, (int fd, const void *bytes, size_t length, off_t at), fd, bytes,
           length, at)
WRAP_WRITE(int, ftruncate, (int fd, off_t length), fd, length)
WRAP_WRITE(int, ftruncate64, (int fd, off_t length), fd, length)
WRAP(WRITE, ENOSPC, ENOSPC, int, posix_fallocate, (int fd, off_t at, off_t length), fd, at, length)

WRAP(RENAME, ENOSPC, -1, int, rename, (const char *from, const char *to), from, to)
WRAP(RENAME, ENOSPC, -1, int, renameat, (int from_at, const char *from, int to_at, const char *to),
     from_at, from, to_at, to)
WRAP(RENAME, ENOSPC, -1, int, renameat2,
     (int from_at, const char *from, int to_at, const char *to, unsigned flags), from_at, from,
     to_at, to, flags)
WRAP(RENAME, ENOSPC, -1, int, link, (const char *from, const char *to), from, to)
WRAP(SYNC, EIO, -1, int, fsync, (int fd), fd)
WRAP(SYNC, EIO, -1, int, fdatasync, (int fd), fd)
WRAP(MKDIR, ENOSPC, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
WRAP(MKDIR, ENOSPC, -1, int, mkdirat, (int folder, const char *path, mode_t mode), folder, path,
     mode)
WRAP(MKDIR, ENOSPC, NULL, char *, mkdtemp, (char *path), path)

#define SPAWN                                                                                      \
    (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,                     \
     const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
WRAP(PROCESS, EAGAIN, EAGAIN, int, posix_spawn, SPAWN, pid, path, actions, attributes, argv,
     environment)
WRAP(PROCESS, EAGAIN, EAGAIN, int, posix_spawnp, SPAWN, pid, path, actions, attributes, argv,
     environment)
WRAP(PROCESS, EAGAIN, -1, pid_t, fork, (void), )
WRAP(PIPE, EMFILE, -1, int, pipe, (int ends[2]), ends)
WRAP(PIPE, EMFILE, -1, int, pipe2, (int ends[2], int flags), ends, flags)
WRAP(PIPE, EMFILE, -1, int, socketpair, (int domain, int type, int protocol, int ends[2]), domain,
     type, protocol, ends)
WRAP(PIPE, EMFILE, -1, int, eventfd, (unsigned count, int flags), count, flags)
WRAP(MMAP, ENOMEM, MAP_FAILED, void *, mmap,
     (void *at, size_t length, int protection, int flags, int fd, off_t offset), at, length,
     protection, flags, fd, offset)
WRAP(MMAP, ENOMEM, MAP_FAILED, void *, mmap64,
     (void *at, size_t length, int protection, int flags, int fd, off_t offset), at, length,
     protection, flags, fd, offset)
WRAP(THREAD, EAGAIN, EAGAIN, int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
     thread, attributes, body, argument)

/* A step fails as SQLite's own do: interrupted, so that the connection knows why and undoes what has
 * to be undone. Some have nothing that could be interrupted. Without its header: */
int sqlite3_step(void *statement);
typedef int (*progress)(void *);
static int interrupt(void *unused) {
    (void)unused;
    return 1;
}
EXPORT int sqlite3_step(void *statement) {
    static int (*step)(void *);
    static void *(*handle)(void *);
    static void (*watch)(void *db, int operations, progress, void *), (*stop)(void *db);
    if (!step) {
        *(void **)&handle = next_of("sqlite3_db_handle");
        *(void **)&watch = next_of("sqlite3_progress_handler");
        *(void **)&stop = next_of("sqlite3_interrupt");
        *(void **)&step = next_of("sqlite3_step");
    }
    if (!fails(STEP))
        return step(statement);
    watch(handle(statement), 1, interrupt, NULL);
    stop(handle(statement));
    int result = step(statement);
    watch(handle(statement), 0, NULL, NULL);
    return result;
}
