/*
 * lock.c: locks by flock, and what they say about their holder.
 *
 * The lock is what counts; the content is for people. It is written by whoever has the lock and
 * read by those who haven't, so a reader may find half of it, that of an earlier holder, or
 * anything at all that another user put there. None of that may do more harm than a wrong word in a
 * message.
 */
#include "base/file/lock.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONTENT_BYTES 8192 /* every field at its longest, each character escaped, fits */
#define LOCKS_BYTES   ((size_t)4 << 20)

/* --- the lock --- */

enum lab_lock lab_lock_try(int fd, const char *path) {
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK || errno == EINTR ? LAB_LOCK_HELD : LAB_LOCK_FAILED;
    /* whoever tidied up may have removed the file after we opened it: then the lock is nobody's */
    struct stat ours, there;
    if (fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
        ours.st_dev == there.st_dev)
        return LAB_LOCK_TAKEN;
    flock(fd, LOCK_UN);
    return LAB_LOCK_GONE;
}

/* The kernel lists who took a lock. The device is left out, since some file systems name another
 * one than stat does: a file with the same number elsewhere only adds doubt. */
bool lab_lock_by_others(int fd) {
    LAB_AUTO(arena, arena);
    struct stat file, process;
    char *text, *line;
    size_t length;
    bool others = false;
    if (fstat(fd, &file) < 0 ||
        lab_file_read("/proc/locks", LOCKS_BYTES, &arena, &text, &length, NULL) < 0)
        return false;
    while ((line = strsep(&text, "\n"))) {
        long pid;
        unsigned long inode;
        if (sscanf(line, "%*d: FLOCK %*s %*s %ld %*x:%*x:%lu", &pid, &inode) != 2 ||
            inode != file.st_ino)
            continue;
        if (stat(lab_arena_printf(&arena, "/proc/%ld", pid), &process) < 0 || process.st_uid == 0 ||
            process.st_uid == geteuid())
            return false;
        others = true;
    }
    return others;
}

void lab_lock_write(int fd, const struct lab_holder *holder) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_value *map = lab_value_map(&arena);
    lab_value_set_int(&arena, map, "pid", holder->pid);
    lab_value_set_string(&arena, map, "host", holder->host);
    lab_value_set_int(&arena, map, "since_wall_ns", holder->since_wall_ns);
    lab_value_set_string(&arena, map, "command", holder->command);
    lab_value_set_string(&arena, map, "folder", holder->folder);
    lab_json_write(map, 0, &text);
    lab_str_add(&text, "\n");
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text.text, text.length, 0) < 0)
        (void)!ftruncate(fd, 0);
}

/* --- its content --- */

/* Copies what fits, in whole characters. A control character could steer a terminal: it becomes
 * '?'. */
static void copy_text(char *to, size_t size, const char *from) {
    size_t length = strnlen(from, size - 1);
    if (from[length])
        length = lab_str_utf8_prefix(from, length);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)from[i];
        bool control = byte < 0x20 || byte == 0x7f ||
                       (byte >= 0x80 && byte < 0xa0 && i > 0 && (unsigned char)from[i - 1] == 0xc2);
        if (control && byte >= 0x80)
            to[i - 1] = '?'; /* both bytes of it */
        to[i] = control ? '?' : (char)byte;
    }
    to[length] = '\0';
}

static void copy_field(const struct lab_value *map, const char *key, char *to, size_t size) {
    const char *text = lab_value_get_text(map, key, NULL);
    if (text)
        copy_text(to, size, text);
}

static int64_t read_number(const struct lab_value *map, const char *key) {
    int64_t number = lab_value_get_int(map, key, 0);
    return number > 0 ? number : 0;
}

void lab_lock_read(int fd, struct lab_holder *ret_holder) {
    char text[CONTENT_BYTES];
    LAB_AUTO(arena, arena);
    struct lab_value *map = NULL;
    *ret_holder = (struct lab_holder){0};
    ssize_t length = pread(fd, text, sizeof text, 0);
    if (length > 0 && lab_json_parse(text, (size_t)length, "lock", &arena, &map, NULL) == 0) {
        ret_holder->pid = read_number(map, "pid");
        ret_holder->since_wall_ns = read_number(map, "since_wall_ns");
        copy_field(map, "host", ret_holder->host, sizeof ret_holder->host);
        copy_field(map, "command", ret_holder->command, sizeof ret_holder->command);
        copy_field(map, "folder", ret_holder->folder, sizeof ret_holder->folder);
    }
}

/* --- holders --- */

void lab_holder_self(const char *command, const char *folder, struct lab_holder *ret_holder) {
    char host[256] = "";
    *ret_holder = (struct lab_holder){.pid = getpid(), .since_wall_ns = lab_clock_wall_ns()};
    gethostname(host, sizeof host - 1);
    copy_text(ret_holder->host, sizeof ret_holder->host, host);
    size_t room = sizeof ret_holder->command;
    bool cut = command && strlen(command) >= room;
    copy_text(ret_holder->command, cut ? room - 3 : room, command ? command : "");
    if (cut)
        memcpy(ret_holder->command + strlen(ret_holder->command), "...", 4);
    copy_text(ret_holder->folder, sizeof ret_holder->folder, folder ? folder : "");
}

static void add_since(int64_t wall_ns, struct lab_str *out) {
    time_t then_s = (time_t)(wall_ns / LAB_NS_PER_S);
    time_t now_s = (time_t)(lab_clock_wall_ns() / LAB_NS_PER_S);
    struct tm then, now;
    char text[32];
    if (!localtime_r(&then_s, &then) || !localtime_r(&now_s, &now))
        return;
    bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
    if (strftime(text, sizeof text, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then))
        lab_str_printf(out, "since %s", text);
}

void lab_holder_describe(const struct lab_holder *holder, struct lab_str *out) {
    if (holder->pid)
        lab_str_printf(out, "process %lld", (long long)holder->pid);
    else
        lab_str_add(out, "another process");
    if (*holder->host)
        lab_str_printf(out, " on %s", holder->host);
    bool command = *holder->command, since = holder->since_wall_ns > 0;
    if (!command && !since)
        return;
    lab_str_add(out, " (");
    lab_str_add(out, holder->command);
    if (command && since)
        lab_str_add(out, ", ");
    if (since)
        add_since(holder->since_wall_ns, out);
    lab_str_add(out, ")");
}

bool lab_lock_held(const char *path, struct lab_holder *ret_holder) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (ret_holder)
        *ret_holder = (struct lab_holder){0};
    if (fd < 0)
        return false;
    /* a shared one, for an instant: two who look don't see each other as a holder */
    bool held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (held && ret_holder)
        lab_lock_read(fd, ret_holder);
    return held;
}
