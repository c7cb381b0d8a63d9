/* tracker_follow.c: `gpulab sync --watch` next to a study, and at the end what came of it. */
#include "track/tracker_follow.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/own.h"
#include "base/str.h"
#include "base/subprocess.h"
#include "base/tty/fork.h"
#include "track/tracker_send.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LOG_MOST (1 << 20)
#define WAIT_NS  (10 * LAB_NS_PER_S)

static const char *log_path(const char *path, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s/track/sync.log", lab_track_home(path, arena));
}

static int spawn(struct lab_track_follower *follower, int log, struct lab_arena *arena) {
    const char *const argv[] = {"gpulab",           "sync",    follower->folder, "--to",
                                follower->trackers, "--watch", "--quiet",        NULL};
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
    int failure = lab_fork_spawn(&follower->pid, "/proc/self/exe", &actions, &attributes, argv,
                                 lab_subprocess_environment(NULL, arena));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    lab_file_close(&ends[1]);
    if (failure)
        lab_file_close(&ends[0]);
    follower->end = ends[0];
    return failure;
}

int lab_track_follow(const char *folder, const char *trackers,
                     struct lab_track_follower *ret_follower, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    *ret_follower = (struct lab_track_follower){.folder = folder, .trackers = trackers};
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
    int failure = ftruncate(log, 0) < 0 ? errno : spawn(ret_follower, log, &arena);
    return failure ? lab_err_set_errno(err, LAB_ERR_SYSTEM, failure, "sending to %s", trackers) : 0;
}

/* Whether it has ended. */
static bool wait_for(const struct lab_track_follower *follower) {
    const struct lab_clock *clock = lab_clock_system();
    struct pollfd watched = {.fd = follower->end};
    for (int64_t end_ns = lab_clock_now(clock) + WAIT_NS, now_ns;
         (now_ns = lab_clock_now(clock)) < end_ns;)
        if (poll(&watched, 1, (int)((end_ns - now_ns) / LAB_NS_PER_MS) + 1) > 0)
            return true;
    return false;
}

/* Those that haven't got everything, joined by commas; "" = all have. */
static const char *find_unsent(const struct lab_track_follower *follower, struct lab_arena *arena) {
    const struct lab_tracker *const *trackers;
    struct lab_track_request look = {.look = true};
    const char *names = "";
    lab_track_request_complete(&look);
    if (lab_tracker_list(follower->trackers, arena, &trackers, NULL) < 0)
        return names;
    for (int i = 0; trackers[i]; i++) {
        struct lab_track_sent sent;
        if (lab_track_send(follower->folder, trackers[i], &look, arena, &sent, NULL) < 0 ||
            sent.unsent)
            names = lab_arena_printf(arena, "%s%s%s", names, *names ? "," : "", trackers[i]->name);
    }
    return names;
}

/* The first line of its messages: what went wrong. */
static const char *read_reason(const char *path, struct lab_arena *arena) {
    char *text;
    size_t length;
    if (lab_file_read(log_path(path, arena), LOG_MOST, arena, &text, &length, NULL) < 0 ||
        length < 2)
        return "no reason is known";
    text[strcspn(text, "\n")] = '\0';
    return lab_str_starts(text, "gpulab: ") ? text + strlen("gpulab: ") : text;
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

const char *lab_track_follow_end(struct lab_track_follower *follower, struct lab_arena *arena) {
    LAB_AUTO(str, path);
    if (follower->pid == 0)
        return NULL;
    bool ended = wait_for(follower);
    lab_file_close(&follower->end);
    follower->pid = 0;
    lab_str_add_shell(&path, follower->folder);
    if (!ended)
        return lab_arena_printf(arena,
                                "still sending to %s; what is left: gpulab sync %s --to %s "
                                "--dry-run",
                                follower->trackers, path.text, follower->trackers);
    const char *unsent = find_unsent(follower, arena);
    if (!*unsent)
        return find_thinned(follower->folder, arena);
    return lab_arena_printf(arena,
                            "not all was sent to %s: %s; send the rest: gpulab sync %s --to %s",
                            unsent, read_reason(follower->folder, arena), path.text, unsent);
}
