/* tracker_follow.c: `gpulab sync --watch` next to a study, and at the end what came of it. */
#include "track/tracker_follow.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/own.h"
#include "base/str.h"
#include "base/subprocess.h"
#include "base/tty/fork.h"
#include "base/tty/stop.h"
#include "track/tracker_send.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_MOST (1 << 20)
#define WAIT_NS  (10 * LAB_NS_PER_S)
#define LOOK_MS  100 /* for a Ctrl-C */

static const char *log_path(const char *path, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s/track/sync.log", lab_track_home(path, arena));
}

static int spawn(struct lab_track_process *process, const char *folder, int log,
                 struct lab_arena *arena) {
    const char *const argv[] = {"gpulab",          "sync",    folder,    "--to",
                                process->trackers, "--watch", "--quiet", NULL};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    lab_subprocess_attributes(&attributes, POSIX_SPAWN_SETPGROUP); /* not ended by our Ctrl-C */
    posix_spawn_file_actions_init(&actions);
    /* its stdin, which it doesn't read: whoever has the other end sees when it is closed */
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    int failure = lab_fork_spawn(&process->pid, "/proc/self/exe", &actions, &attributes, argv,
                                 lab_subprocess_environment(NULL, arena));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    lab_file_close(&ends[1]);
    if (failure)
        lab_file_close(&ends[0]);
    process->end = ends[0];
    return failure;
}

static void add_name(struct lab_track_process *process, const char *name) {
    size_t length = strlen(process->trackers);
    snprintf(process->trackers + length, sizeof process->trackers - length, "%s%s",
             length ? "," : "", name);
}

int lab_track_follow(const char *folder, const char *trackers,
                     struct lab_track_follower *ret_follower, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    *ret_follower = (struct lab_track_follower){.folder = folder};
    const struct lab_tracker *const *list;
    if (lab_tracker_list(trackers, &arena, &list, err) < 0)
        return -1;
    if (!list[0])
        return 0;
    const char *home = lab_track_home(folder, &arena);
    if (lab_own_folder(home, err) < 0 ||
        lab_own_folder(lab_arena_printf(&arena, "%s/track", home), err) < 0)
        return -1;
    LAB_AUTO_CLOSE int log = lab_own_open(log_path(folder, &arena), LAB_OWN_CHANGE, err);
    if (log < 0)
        return -1;
    struct lab_track_process *const processes[] = {&ret_follower->files, &ret_follower->servers};
    for (int i = 0; list[i]; i++)
        add_name(processes[list[i]->destination != NULL], list[i]->name);
    int failure = ftruncate(log, 0) < 0 ? errno : 0;
    for (int i = 0; i < 2 && !failure; i++)
        if (*processes[i]->trackers)
            failure = spawn(processes[i], folder, log, &arena);
    return failure ? lab_err_set_errno(err, LAB_ERR_SYSTEM, failure, "sending to %s", trackers) : 0;
}

/* Whether it has ended by then, or until the user asks to stop once more. */
static bool wait_for(struct lab_track_process *process, int64_t until_ns, int stop_level) {
    const struct lab_clock *clock = lab_clock_system();
    struct pollfd watched = {.fd = process->end};
    bool ended = false, last = false;
    while (!ended && !last) {
        int64_t left_ns = until_ns - lab_clock_now(clock);
        last = left_ns <= 0 || lab_stop_level() > stop_level;
        ended = poll(&watched, 1, last ? 0 : LOOK_MS) > 0;
    }
    lab_file_close(&process->end);
    process->pid = 0;
    return ended;
}

/* Those that haven't got everything, joined by commas; "" = all have. */
static const char *find_unsent(const char *folder, const char *names, struct lab_arena *arena) {
    const struct lab_tracker *const *trackers;
    struct lab_track_request look = {.look = true};
    const char *unsent = "";
    lab_track_request_complete(&look);
    if (lab_tracker_list(names, arena, &trackers, NULL) < 0)
        return unsent;
    for (int i = 0; trackers[i]; i++) {
        struct lab_track_sent sent;
        if (lab_track_send(folder, trackers[i], &look, arena, &sent, NULL) < 0 || sent.unsent)
            unsent =
                lab_arena_printf(arena, "%s%s%s", unsent, *unsent ? "," : "", trackers[i]->name);
    }
    return unsent;
}

/* The first line of the messages that is on the first of these trackers: what went wrong. */
static const char *read_reason(const char *path, const char *names, struct lab_arena *arena) {
    const char *name = lab_arena_printf(arena, ": %.*s: ", (int)strcspn(names, ","), names);
    char *text, *rest = NULL;
    size_t length;
    if (lab_file_read(log_path(path, arena), LOG_MOST, arena, &text, &length, NULL) == 0)
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if (strstr(line, name))
                return lab_str_starts(line, "gpulab: ") ? line + strlen("gpulab: ") : line;
    return "no reason is known";
}

/* Lines on metrics of which not all points were sent, joined; NULL = there is none. */
static const char *find_thinned(const char *path, struct lab_arena *arena) {
    const char *found = NULL;
    char *text, *rest = NULL;
    size_t length;
    if (lab_file_read(log_path(path, arena), LOG_MOST, arena, &text, &length, NULL) < 0)
        return NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (!strstr(line, LAB_TRACK_THINNED))
            continue;
        line += lab_str_starts(line, "gpulab: ") ? strlen("gpulab: ") : 0;
        found = found ? lab_arena_printf(arena, "%s; %s", found, line) : line;
    }
    return found;
}

bool lab_track_follows(const struct lab_track_follower *follower) {
    return follower->files.pid || follower->servers.pid;
}

/* What came of one process; NULL = all is sent. */
static const char *end_process(struct lab_track_process *process, const char *folder,
                               int64_t until_ns, int stop_level, struct lab_arena *arena) {
    LAB_AUTO(str, path);
    if (process->pid == 0)
        return NULL;
    lab_str_add_shell(&path, folder);
    if (!wait_for(process, until_ns, stop_level))
        return lab_arena_printf(arena,
                                "still sending to %s; what is left: gpulab sync %s --to %s "
                                "--dry-run",
                                process->trackers, path.text, process->trackers);
    const char *unsent = find_unsent(folder, process->trackers, arena);
    if (!*unsent)
        return NULL;
    return lab_arena_printf(arena,
                            "not all was sent to %s: %s; send the rest: gpulab sync %s --to %s",
                            unsent, read_reason(folder, unsent, arena), path.text, unsent);
}

const char *lab_track_follow_end(struct lab_track_follower *follower, struct lab_arena *arena) {
    if (!lab_track_follows(follower))
        return NULL;
    int64_t until_ns = lab_clock_now(lab_clock_system()) + WAIT_NS;
    int level = lab_stop_level();
    const char *files = end_process(&follower->files, follower->folder, until_ns, level, arena);
    const char *servers = end_process(&follower->servers, follower->folder, until_ns, level, arena);
    if (files && servers)
        return lab_arena_printf(arena, "%s; %s", files, servers);
    if (files || servers)
        return files ? files : servers;
    return find_thinned(follower->folder, arena);
}
