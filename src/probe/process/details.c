/* details.c: who a process is and where it runs, from its files in /proc. */
#include "probe/process/details.h"

#include "base/file/file.h"
#include "base/str.h"

#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>

#define COMMAND_BYTES 4096
#define THREADS_MAX   32 /* that are looked at: of a thousand, these tell as much */
#define ID_DIGITS     64 /* of a container */
#define SHORT_DIGITS  12

/* --- names --- */

static const char *user_name(struct details_users *users, uint32_t uid) {
    for (int i = 0; i < users->count; i++)
        if (users->items[i].uid == uid)
            return users->items[i].name;
    char buffer[4096], number[16];
    struct passwd entry, *found = NULL;
    snprintf(number, sizeof number, "%u", uid);
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0)
        found = NULL;
    char *name = lab_mem_strdup(found ? found->pw_name : number);
    lab_str_make_printable(name);
    LAB_PUSH(users->items, users->count) = (struct details_user){uid, name};
    return name;
}

void details_users_release(struct details_users *users) {
    for (int i = 0; i < users->count; i++)
        lab_mem_free(users->items[i].name);
    lab_mem_free(users->items);
}

/* --- containers --- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A part of the path that ends with an id of 64 digits: "docker-3f…", "3f…", "libpod-3f….scope". */
static bool find_id(const char *part, size_t length, char *ret_name, size_t size) {
    for (size_t at = 0; at + ID_DIGITS <= length; at++) {
        size_t digits = 0;
        while (at + digits < length && is_hex(part[at + digits]))
            digits++;
        if (digits < ID_DIGITS) {
            at += digits;
            continue;
        }
        /* the program that watches a container is not in it */
        static const char watcher[] = "conmon-";
        size_t before = sizeof watcher - 1;
        if (digits > ID_DIGITS ||
            (at >= before && memcmp(part + at - before, watcher, before) == 0))
            return false;
        snprintf(ret_name, size, "%.*s", SHORT_DIGITS, part + at);
        return true;
    }
    return false;
}

/* "lxc.payload.NAME", "lxc/NAME", "machine-NAME.scope" */
static bool find_name(const char *part, size_t length, const char *before, size_t before_length,
                      char *ret_name, size_t size) {
    static const char payload[] = "lxc.payload.", machine[] = "machine-", scope[] = ".scope";
    size_t skip = 0, drop = 0;
    if (length > sizeof payload - 1 && strncmp(part, payload, sizeof payload - 1) == 0)
        skip = sizeof payload - 1;
    else if (length > sizeof machine + sizeof scope - 2 &&
             strncmp(part, machine, sizeof machine - 1) == 0 &&
             strncmp(part + length - (sizeof scope - 1), scope, sizeof scope - 1) == 0)
        skip = sizeof machine - 1, drop = sizeof scope - 1;
    else if (!(before_length == 3 && strncmp(before, "lxc", 3) == 0))
        return false;
    snprintf(ret_name, size, "%.*s", (int)(length - skip - drop), part + skip);
    return true;
}

void details_container(const char *cgroup, char *ret_name, size_t size) {
    *ret_name = '\0';
    const char *before = "";
    size_t before_length = 0;
    /* the innermost counts: a container may hold containers */
    for (const char *part = cgroup; *part;) {
        size_t length = strcspn(part, "/\n");
        if (!find_id(part, length, ret_name, size) && length > 0)
            find_name(part, length, before, before_length, ret_name, size);
        before = part;
        before_length = length;
        part += length + (part[length] != '\0');
    }
    lab_str_make_printable(ret_name);
}

/* --- what stays --- */

static char *read_command(int32_t pid, const char *root) {
    LAB_AUTO_FREE char *text = lab_mem_alloc(COMMAND_BYTES, 1);
    ssize_t length = probe_file_slurp(text, COMMAND_BYTES, root, "/proc/%d/cmdline", pid);
    while (length > 0 && (text[length - 1] == '\0' || text[length - 1] == ' '))
        length--;
    for (ssize_t i = 0; i < length; i++)
        if (text[i] == '\0' || text[i] == '\n')
            text[i] = ' ';
    text[length > 0 ? length : 0] = '\0';
    lab_str_make_printable(text);
    return lab_mem_strdup(text);
}

void details_describe(struct known *known, const char *root, struct details_users *users) {
    char text[4096], container[128] = "";
    int64_t uid = 0;
    lab_mem_free((char *)known->is.command);
    lab_mem_free((char *)known->is.container);
    known->is.command = read_command(known->is.pid, root);
    if (probe_file_slurp(text, sizeof text, root, "/proc/%d/cgroup", known->is.pid) > 0)
        details_container(text, container, sizeof container);
    known->is.container = lab_mem_strdup(container);
    const char *at = NULL;
    if (probe_file_slurp(text, sizeof text, root, "/proc/%d/status", known->is.pid) > 0)
        at = probe_text_line(text, "Uid:");
    bool told = at && probe_text_number(&at, &uid);
    known->is.uid = told && uid >= 0 && uid <= UINT32_MAX ? (uint32_t)uid : UINT32_MAX;
    known->is.user = told ? user_name(users, known->is.uid) : "?";
    known->described = true;
}

/* --- where --- */

static uint64_t allowed_nodes(const struct known *known, const char *root,
                              const struct probe_nodes *nodes) {
    char text[8192];
    uint64_t allowed = 0;
    const char *at = NULL;
    if (probe_file_slurp(text, sizeof text, root, "/proc/%d/status", known->is.pid) > 0)
        at = probe_text_line(text, "Cpus_allowed_list:");
    if (!at)
        return 0;
    LAB_AUTO_FREE bool *marks = lab_mem_alloc((size_t)nodes->cpu_limit, sizeof *marks);
    probe_text_cpus(at, marks, nodes->cpu_limit);
    for (int cpu = 0; cpu < nodes->cpu_limit; cpu++)
        if (marks[cpu] && nodes->of_cpu[cpu] >= 0 && nodes->of_cpu[cpu] < LAB_PROCESS_NODES_MAX)
            allowed |= UINT64_C(1) << nodes->of_cpu[cpu];
    return allowed;
}

static int node_of(const struct probe_nodes *nodes, int cpu) {
    return cpu >= 0 && cpu < nodes->cpu_limit ? nodes->of_cpu[cpu] : -1;
}

/* Field 39 of a thread's stat. */
static int thread_node(int32_t pid, const char *tid, const char *root,
                       const struct probe_nodes *nodes) {
    char text[1024];
    if (probe_file_slurp(text, sizeof text, root, "/proc/%d/task/%s/stat", pid, tid) <= 0)
        return -1;
    const char *at = strrchr(text, ')');
    int64_t value = -1;
    if (!at || strlen(at) < 4)
        return -1;
    at += 3;
    for (int field = 4; field <= 39; field++)
        if (!probe_text_number(&at, &value))
            return -1;
    return value > INT32_MAX ? -1 : node_of(nodes, (int)value);
}

/* The node where most of the threads ran last; of equals, the first thread's. */
static int busiest_node(const struct known *known, const char *root,
                        const struct probe_nodes *nodes) {
    char path[PATH_MAX];
    int counts[PROBE_NODES_MAX] = {0}, looked_at = 0;
    int main_node = node_of(nodes, known->processor), best = main_node, best_count = 0;
    snprintf(path, sizeof path, "%s/proc/%d/task", root, known->is.pid);
    LAB_AUTO_CLOSEDIR DIR *folder = opendir(path);
    for (struct dirent *entry; folder && looked_at < THREADS_MAX && (entry = readdir(folder));) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || strlen(entry->d_name) > 16)
            continue;
        looked_at++;
        int node = thread_node(known->is.pid, entry->d_name, root, nodes);
        for (int i = 0; i < nodes->count; i++)
            counts[i] += nodes->numbers[i] == node;
    }
    for (int i = 0; i < nodes->count; i++)
        if (counts[i] > best_count ||
            (counts[i] == best_count && counts[i] > 0 && nodes->numbers[i] == main_node)) {
            best = nodes->numbers[i];
            best_count = counts[i];
        }
    return best;
}

void details_locate(struct known *known, const char *root, const struct probe_nodes *nodes,
                    bool threads) {
    known->is.allowed_nodes = allowed_nodes(known, root, nodes);
    bool alone = nodes->count <= 1 || known->is.threads <= 1 || !threads;
    known->is.cpu_node =
        alone ? node_of(nodes, known->processor) : busiest_node(known, root, nodes);
}
