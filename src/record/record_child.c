/* record_child.c: the program that `record -- CMD` runs and samples. */
#include "record/record_child.h"

#include "base/file/file.h"
#include "base/str.h"
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0, or errno. */
static int check_file(const char *path) {
    struct stat info;
    if (stat(path, &info) < 0)
        return errno;
    if (S_ISDIR(info.st_mode))
        return EACCES;
    return access(path, X_OK) < 0 ? errno : 0;
}

/* As execvp looks: what can't be executed is remembered, but looked past. */
static int check_path(const char *name) {
    const char *path = getenv("PATH");
    int problem = ENOENT;
    LAB_AUTO(str, file);
    for (const char *at = path ? path : "/bin:/usr/bin"; problem; at++) {
        size_t length = strcspn(at, ":");
        lab_str_clear(&file);
        lab_str_add_bytes(&file, at, length);
        lab_str_printf(&file, "%s%s", length ? "/" : "", name);
        int found = check_file(file.text);
        if (found == 0 || found == EACCES)
            problem = found;
        at += length;
        if (!*at)
            break;
    }
    return problem;
}

static int refuse(const char *name, int problem, struct lab_err *err) {
    lab_err_set_errno(err, LAB_ERR_USER, problem, "can't start '%s'", name);
    return problem == ENOENT || problem == ENOTDIR ? LAB_RECORD_NOT_FOUND
                                                   : LAB_RECORD_NOT_EXECUTABLE;
}

int lab_record_child_check(const char *const *argv, struct lab_err *err) {
    int problem = !*argv[0]              ? ENOENT
                  : strchr(argv[0], '/') ? check_file(argv[0])
                                         : check_path(argv[0]);
    return problem ? refuse(argv[0], problem, err) : 0;
}

int lab_record_child_start(struct lab_record_child *child, const sigset_t *mask,
                           struct lab_err *err) {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, mask);
    LAB_AUTO(arena, arena);
    int problem =
        posix_spawnp(&child->pid, child->argv[0], NULL, &attributes, (char *const *)child->argv,
                     (char *const *)lab_subprocess_environment(NULL, &arena));
    posix_spawnattr_destroy(&attributes);
    if (problem) {
        child->pid = 0;
        return refuse(child->argv[0], problem, err);
    }
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd >= 0)
        fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
    return 0;
}

bool lab_record_child_ended(struct lab_record_child *child) {
    siginfo_t info = {0};
    if (child->pid == 0 || child->ended)
        return child->ended;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return false;
    child->ended = true;
    child->exit_status = info.si_code == CLD_EXITED ? info.si_status : -1;
    child->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    return true;
}

int lab_record_child_status(const struct lab_record_child *child) {
    return child->signal ? 128 + child->signal : child->exit_status;
}

void lab_record_child_release(struct lab_record_child *child) {
    lab_file_close(&child->pidfd);
}
