/* pages.c: reading numa_maps within a budget. */
#include "probe/process/pages.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "probe/placement.h"
#include "probe/probe_host.h"

#include <string.h>
#include <unistd.h>

#define PERIOD_NS     (5 * LAB_NS_PER_S)
#define REFUSED_NS    (60 * LAB_NS_PER_S) /* another user's: it won't change soon */
#define BUDGET_SHARE  100
#define BUDGET_MAX_NS (20 * LAB_NS_PER_MS)
#define LINE_BYTES    8192 /* a path has up to 4096 */

void pages_init(struct pages *pages) {
    *pages = (struct pages){.fd = -1};
}

void pages_release(struct pages *pages) {
    lab_file_close(&pages->fd);
    lab_mem_free(pages->bytes);
    lab_mem_free(pages->so_far);
    lab_mem_free(pages->rest);
    pages_init(pages);
}

void pages_budget_refill(struct pages_budget *budget, int64_t now_ns) {
    if (budget->at_ns == 0)
        budget->left_ns = BUDGET_MAX_NS;
    else
        budget->left_ns +=
            (now_ns - budget->at_ns) / (budget->share > 0 ? budget->share : BUDGET_SHARE);
    if (budget->left_ns > BUDGET_MAX_NS)
        budget->left_ns = BUDGET_MAX_NS;
    budget->at_ns = now_ns;
}

/* --- lines --- */

/* A file's pages lie where whoever read it first ran; only shared memory is the process's own. */
static bool is_own(const char *line) {
    const char *file = strstr(line, " file=");
    if (!file || strstr(line, " huge "))
        return true;
    static const char *const own[] = {"/dev/shm/", "/dev/zero", "/memfd:", "/SYSV",
                                      "/anon_hugepage"};
    file += strlen(" file=");
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (lab_str_starts(file, own[i]))
            return true;
    return false;
}

/* "7f1200000000 default anon=64 dirty=64 N0=60 N1=4 kernelpagesize_kB=4" */
static void parse_line(const char *line, const struct lab_machine *machine, int64_t *bytes) {
    const char *size = strstr(line, " kernelpagesize_kB=");
    int64_t page_kib;
    if (!size || !is_own(line))
        return;
    size += strlen(" kernelpagesize_kB=");
    if (!probe_text_number(&size, &page_kib) || page_kib <= 0 || page_kib > 16 << 20)
        return;
    for (const char *at = line; (at = strstr(at, " N"));) {
        int64_t node, count;
        at += 2;
        if (*at < '0' || *at > '9' || !probe_text_number(&at, &node) || *at != '=')
            continue;
        at++;
        if (!probe_text_number(&at, &count) || node > INT32_MAX || count < 0)
            continue;
        int index = lab_machine_node_index(machine, (int)node);
        int64_t add;
        if (index >= 0 && !__builtin_mul_overflow(count, page_kib * 1024, &add) &&
            add <= INT64_MAX - bytes[index])
            bytes[index] += add;
    }
}

/* --- reading --- */

static bool begin(struct pages *pages, const char *root, int32_t pid,
                  const struct lab_machine *machine, int64_t now_ns) {
    pages->fd = probe_file_open(root, "/proc/%d/numa_maps", pid);
    pages->due_ns = now_ns + (pages->fd < 0 ? REFUSED_NS : PERIOD_NS);
    if (pages->fd < 0)
        return false;
    size_t bytes = (size_t)machine->node_count * sizeof *pages->so_far;
    if (!pages->so_far)
        pages->so_far = lab_mem_alloc(bytes, 1);
    if (!pages->rest)
        pages->rest = lab_mem_alloc(LINE_BYTES, 1);
    memset(pages->so_far, 0, bytes);
    pages->rest_length = 0;
    return true;
}

static void end(struct pages *pages) {
    int64_t *spare = pages->bytes;
    pages->bytes = pages->so_far;
    pages->so_far = spare;
    lab_file_close(&pages->fd);
}

/* A page's worth of lines; false = that was all. */
static bool read_piece(struct pages *pages, const struct lab_machine *machine) {
    size_t room = LINE_BYTES - 1 - pages->rest_length;
    ssize_t got = read(pages->fd, pages->rest + pages->rest_length, room);
    if (got <= 0)
        return false; /* it ended: what was read of it is as good as anything */
    pages->rest_length += (size_t)got;
    pages->rest[pages->rest_length] = '\0';
    char *line = pages->rest;
    for (char *stop; (stop = strchr(line, '\n')); line = stop + 1) {
        *stop = '\0';
        parse_line(line, machine, pages->so_far);
    }
    pages->rest_length -= (size_t)(line - pages->rest);
    if (pages->rest_length == LINE_BYTES - 1)
        pages->rest_length = 0;
    memmove(pages->rest, line, pages->rest_length);
    return true;
}

bool pages_read(struct pages *pages, const char *root, int32_t pid,
                const struct lab_machine *machine, int64_t now_ns, struct pages_budget *budget) {
    if (pages->fd < 0 && now_ns < pages->due_ns)
        return true;
    if (budget->left_ns <= 0)
        return false;
    if (pages->fd < 0 && !begin(pages, root, pid, machine, now_ns))
        return true;
    bool more = true;
    while (more && budget->left_ns > 0) {
        int64_t before_ns = lab_clock_thread_ns();
        more = read_piece(pages, machine);
        budget->left_ns -= lab_clock_thread_ns() - before_ns;
    }
    if (!more)
        end(pages);
    return budget->left_ns > 0;
}

bool lab_placement_add_pages(const struct lab_machine *machine, int32_t pid, int64_t *bytes) {
    struct pages pages;
    struct pages_budget all = {.left_ns = INT64_MAX};
    pages_init(&pages);
    pages_read(&pages, "", pid, machine, 0, &all);
    bool whole = pages.bytes;
    for (int i = 0; whole && i < machine->node_count; i++)
        bytes[i] += pages.bytes[i];
    pages_release(&pages);
    return whole;
}
