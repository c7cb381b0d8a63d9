/*
 * process_tree.c: reads /proc/<pid>/stat of every process. (/proc/<pid>/task/<tid>/children would
 * be shorter, but may leave some out while others come and go, and isn't in every kernel.)
 */
#include "run/launch/process_tree.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRONMENT_MAX ((size_t)1 << 20) /* bytes looked at */

static ssize_t read_proc(pid_t pid, const char *file, char *buffer, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size && (got = read(fd, buffer + length, size - length)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        length += (size_t)got;
    }
    return got < 0 ? -1 : (ssize_t)length;
}

bool lab_process_read(pid_t pid, struct lab_process *ret_process) {
    char text[1024];
    ssize_t length = read_proc(pid, "stat", text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    /* the name stands in parentheses and may hold anything, parentheses too */
    const char *behind_name = strrchr(text, ')');
    char state = 0;
    int parent = 0, group = 0, session = 0, threads = 0;
    unsigned long long start = 0;
    if (!behind_name ||
        sscanf(behind_name + 1,
               " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
               &state, &parent, &group, &session, &threads, &start) != 6)
        return false;
    *ret_process = (struct lab_process){.pid = pid,
                                        .parent = parent,
                                        .group = group,
                                        .session = session,
                                        .start = start,
                                        .dead = (state == 'Z' || state == 'X') && threads <= 1};
    return true;
}

int64_t lab_process_memory(pid_t pid, bool proportional) {
    static const char key[] = "\nPss:";
    char text[4096];
    long long resident = 0;
    ssize_t length = proportional ? read_proc(pid, "smaps_rollup", text, sizeof text - 1) : -1;
    text[length > 0 ? length : 0] = '\0';
    const char *at = strstr(text, key);
    if (at)
        return 1024 * strtoll(at + sizeof key - 1, NULL, 10);
    length = read_proc(pid, "statm", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%*s %lld", &resident) == 1 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

static int by_pid(const void *a, const void *b) {
    pid_t left = ((const struct lab_process *)a)->pid, right = ((const struct lab_process *)b)->pid;
    return (left > right) - (left < right);
}

void lab_process_tree_read(struct lab_process_tree *tree) {
    tree->count = 0;
    LAB_AUTO_CLOSEDIR DIR *listing = opendir("/proc");
    if (!listing)
        return;
    for (const struct dirent *entry; (entry = readdir(listing));) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end)
            continue;
        tree->items = lab_mem_grow(tree->items, (size_t)tree->count, sizeof *tree->items);
        if (lab_process_read((pid_t)pid, &tree->items[tree->count]))
            tree->count++;
    }
    if (tree->count > 0)
        qsort(tree->items, (size_t)tree->count, sizeof *tree->items, by_pid);
}

void lab_process_tree_release(struct lab_process_tree *tree) {
    lab_mem_free(tree->items);
    *tree = (struct lab_process_tree){0};
}

const struct lab_process *lab_process_tree_find(const struct lab_process_tree *tree, pid_t pid) {
    struct lab_process wanted = {.pid = pid};
    if (tree->count == 0)
        return NULL;
    return bsearch(&wanted, tree->items, (size_t)tree->count, sizeof *tree->items, by_pid);
}

void lab_process_signal(const struct lab_process *process, int signal) {
    /* the pidfd first: whoever it refers to then keeps its start, whatever happens to the number */
    LAB_AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    struct lab_process now;
    if (lab_process_read(process->pid, &now) && now.start == process->start) {
        if (pidfd >= 0)
            syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
        else
            kill(process->pid, signal);
    }
}

static bool holds(const char *environment, size_t length, const char *variable, bool beginning) {
    size_t wanted = strlen(variable) + !beginning;
    bool found = false;
    const char *at = environment, *end = environment + length;
    while (!found && (size_t)(end - at) >= wanted) {
        found = memcmp(at, variable, wanted) == 0;
        const char *zero = memchr(at, '\0', (size_t)(end - at));
        at = zero ? zero + 1 : end;
    }
    return found;
}

size_t lab_process_environment(pid_t pid, char **ret_text) {
    char path[64];
    ssize_t length = 0;
    *ret_text = NULL;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    LAB_AUTO_CLOSEDIR DIR *threads = opendir(path);
    if (!threads)
        return 0;
    *ret_text = lab_mem_alloc(ENVIRONMENT_MAX, 1);
    /* the first thread that still has memory: those that have ended show none */
    for (const struct dirent *entry; length <= 0 && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "task/%.20s/environ", entry->d_name);
        length = read_proc(pid, path, *ret_text, ENVIRONMENT_MAX - 1);
    }
    return length > 0 ? (size_t)length : 0;
}

bool lab_process_has_variable(pid_t pid, const char *variable, bool beginning) {
    LAB_AUTO_FREE char *environment = NULL;
    size_t length = lab_process_environment(pid, &environment);
    return length > 0 && holds(environment, length, variable, beginning);
}
