/* record_pages.c: readings of numa_maps between a program's start and its end. */
#include "record/record_pages.h"

#include "base/mem.h"
#include "probe/placement.h"
#include "record/record_child.h"
#include "run/launch/process_tree.h"

#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FIRST_MS 50 /* then twice as long each time, so that a short program is read too */
#define LAST_MS  2000

static bool descends(const struct lab_process_tree *tree, const struct lab_process *process,
                     pid_t from) {
    for (int depth = 0; process && depth < 64; depth++) {
        if (process->pid == from)
            return true;
        process = lab_process_tree_find(tree, process->parent);
    }
    return false;
}

static int64_t sum(const int64_t *bytes, int count) {
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += bytes[i];
    return total;
}

static void read_pages(pid_t pid, const struct lab_machine *machine, int64_t *most) {
    struct lab_process_tree tree = {0};
    size_t size = (size_t)machine->node_count;
    LAB_AUTO_FREE int64_t *bytes = lab_mem_alloc(size, sizeof *bytes);
    lab_process_tree_read(&tree);
    for (int i = 0; i < tree.count; i++)
        if (descends(&tree, &tree.items[i], pid))
            lab_placement_add_pages(machine, tree.items[i].pid, bytes);
    if (sum(bytes, machine->node_count) >= sum(most, machine->node_count))
        memcpy(most, bytes, size * sizeof *bytes);
    lab_process_tree_release(&tree);
}

/* The terminal's Ctrl-C has reached the program already; what was sent to us alone is handed on. */
static void hand_on(int signals, pid_t pid) {
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_code != SI_KERNEL)
            kill(pid, (int)info.ssi_signo);
}

int lab_record_pages_run(const char *const *argv, const struct lab_machine *machine,
                         int64_t *ret_bytes, struct lab_err *err) {
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    struct lab_record_child child = {.argv = argv, .pidfd = -1};
    sigset_t handed, old;
    memset(ret_bytes, 0, (size_t)machine->node_count * sizeof *ret_bytes);
    sigemptyset(&handed);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&handed, numbers[i]);
    sigprocmask(SIG_BLOCK, &handed, &old);
    int status = lab_record_child_start(&child, &old, err);
    if (status == 0) {
        int signals = signalfd(-1, &handed, SFD_CLOEXEC | SFD_NONBLOCK), wait_ms = FIRST_MS;
        struct pollfd files[] = {{child.pidfd, POLLIN, 0}, {signals, POLLIN, 0}};
        while (!lab_record_child_ended(&child)) {
            if (poll(files, 2, wait_ms) == 0) {
                read_pages(child.pid, machine, ret_bytes);
                wait_ms = 2 * wait_ms < LAST_MS ? 2 * wait_ms : LAST_MS;
            }
            hand_on(signals, child.pid);
        }
        close(signals);
        status = lab_record_child_status(&child);
    }
    lab_record_child_release(&child);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}
