/* probe_stat.c: the CPUs' times from /proc/stat, and the NUMA nodes' CPUs from /sys. */
#include "base/file/file.h"
#include "probe/probe_host.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define LINE_BYTES 128 /* ten numbers of a CPU that has run for years are shorter */

/* "cpu3 1 2 3 …", behind the name: user nice system idle iowait irq softirq steal; guests' time is
 * part of the first two. Old kernels have fewer. */
static bool parse_times(const char *at, struct probe_times *times) {
    int64_t fields[8] = {0};
    int count = 0;
    while (count < 8 && probe_text_number(&at, &fields[count]))
        count++;
    if (count < 4)
        return false;
    *times = (struct probe_times){.idle = fields[3],
                                  .iowait = fields[4],
                                  .system = fields[2] + fields[5] + fields[6],
                                  .steal = fields[7]};
    for (int i = 0; i < 8; i++)
        times->total += fields[i];
    return true;
}

/* The number behind "cpu" of the line at `text`; -1 = the line of all; -2 = another line. */
static int parse_name(const char **text) {
    if (strncmp(*text, "cpu", 3) != 0)
        return -2;
    *text += 3;
    int64_t number;
    if (**text == ' ')
        return -1;
    return probe_text_number(text, &number) && number >= 0 && number < PROBE_CPU_NUMBERS
               ? (int)number
               : -2;
}

static const char *next_line(const char *text) {
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text + strlen(text);
}

static void learn_numbers(struct probe_stat *stat) {
    for (const char *line = stat->text; *line; line = next_line(line)) {
        const char *at = line;
        int number = parse_name(&at);
        if (number < 0 || stat->count == PROBE_CPUS_MAX ||
            (stat->count > 0 && number <= stat->numbers[stat->count - 1]))
            continue;
        LAB_PUSH(stat->numbers, stat->count) = number;
    }
    stat->each = lab_mem_alloc((size_t)stat->count, sizeof *stat->each);
    stat->online = lab_mem_alloc((size_t)stat->count, sizeof *stat->online);
}

int probe_stat_open(struct probe_stat *stat, const char *root, struct lab_err *err) {
    *stat = (struct probe_stat){.fd = probe_file_open(root, "/proc/stat")};
    if (stat->fd < 0)
        return lab_err_set_errno(err, LAB_ERR_UNSUPPORTED, errno, "/proc/stat can't be read");
    /* what comes behind the CPUs' lines is of no interest, and may be long */
    stat->size = (size_t)PROBE_CPU_NUMBERS * LINE_BYTES;
    stat->text = lab_mem_alloc(stat->size, 1);
    if (probe_file_read(stat->fd, stat->text, stat->size) > 0)
        learn_numbers(stat);
    stat->size = (size_t)(stat->count + 1) * LINE_BYTES + 1;
    stat->text = lab_mem_resize(stat->text, stat->size, 1);
    if (probe_stat_read(stat, err) == 0)
        return 0;
    probe_stat_close(stat);
    return -1;
}

void probe_stat_close(struct probe_stat *stat) {
    lab_file_close(&stat->fd);
    lab_mem_free(stat->numbers);
    lab_mem_free(stat->each);
    lab_mem_free(stat->online);
    lab_mem_free(stat->text);
    *stat = (struct probe_stat){.fd = -1};
}

int probe_stat_read(struct probe_stat *stat, struct lab_err *err) {
    if (probe_file_read(stat->fd, stat->text, stat->size) <= 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "/proc/stat can't be read any more");
    bool whole = false;
    int index = 0;
    if (stat->count > 0)
        memset(stat->online, 0, (size_t)stat->count * sizeof *stat->online);
    for (const char *line = stat->text; *line; line = next_line(line)) {
        const char *at = line;
        int number = parse_name(&at);
        if (number == -1)
            whole = parse_times(at, &stat->all) || whole;
        if (number < 0)
            continue;
        while (index < stat->count && stat->numbers[index] < number)
            index++;
        /* the buffer may end within the line behind the last CPU's, or in a number */
        if (index < stat->count && stat->numbers[index] == number && strchr(at, '\n'))
            stat->online[index] = parse_times(at, &stat->each[index]);
    }
    if (!whole)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "/proc/stat has no line of CPU times");
    return 0;
}

int64_t probe_times_busy(const struct probe_times *times) {
    return times->total - times->idle - times->iowait;
}

int64_t probe_share(int64_t part, int64_t whole) {
    if (part <= 0 || whole <= 0)
        return 0; /* the kernel's counters of idle time step back now and then */
    double share = (double)part / (double)whole * 10000;
    return share > 10000 ? 10000 : (int64_t)(share + 0.5);
}

/* --- nodes --- */

static void add_node(struct probe_nodes *nodes, int number) {
    int place = nodes->count;
    if (nodes->count == PROBE_NODES_MAX)
        return;
    for (; place > 0 && nodes->numbers[place - 1] > number; place--)
        nodes->numbers[place] = nodes->numbers[place - 1];
    nodes->numbers[place] = number;
    nodes->count++;
}

static void read_cpus(struct probe_nodes *nodes, const char *root, bool *marks) {
    char text[4096];
    for (int i = 0; i < nodes->count; i++) {
        if (probe_file_slurp(text, sizeof text, root, "/sys/devices/system/node/node%d/cpulist",
                             nodes->numbers[i]) < 0)
            continue;
        memset(marks, 0, PROBE_CPU_NUMBERS * sizeof *marks);
        probe_text_cpus(text, marks, PROBE_CPU_NUMBERS);
        for (int cpu = 0; cpu < PROBE_CPU_NUMBERS; cpu++)
            if (marks[cpu])
                nodes->of_cpu[cpu] = (int16_t)nodes->numbers[i];
    }
}

static void take_from_machine(struct probe_nodes *nodes, const struct lab_machine *machine) {
    for (int i = 0; machine && i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        add_node(nodes, node->number);
        for (int j = 0; j < node->cpus.count; j++)
            if (node->cpus.items[j] >= 0 && node->cpus.items[j] < PROBE_CPU_NUMBERS)
                nodes->of_cpu[node->cpus.items[j]] = (int16_t)node->number;
    }
}

/* Not the machine's list first: it lacks the CPUs that this program may not use. */
int probe_nodes_read(struct probe_nodes *nodes, const struct lab_probe_setup *setup,
                     struct lab_err *err) {
    nodes->count = 0;
    for (int i = 0; i < PROBE_CPU_NUMBERS; i++)
        nodes->of_cpu[i] = -1;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/devices/system/node", setup->root);
    LAB_AUTO_CLOSEDIR DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *at = entry->d_name + 4;
        int64_t number;
        if (strncmp(entry->d_name, "node", 4) == 0 && probe_text_number(&at, &number) &&
            *at == '\0' && number >= 0 && number <= INT16_MAX)
            add_node(nodes, (int)number);
    }
    if (nodes->count > 0) {
        bool *marks = lab_mem_alloc(PROBE_CPU_NUMBERS, sizeof *marks);
        read_cpus(nodes, setup->root, marks);
        lab_mem_free(marks);
    } else {
        take_from_machine(nodes, setup->machine);
    }
    nodes->cpu_limit = PROBE_CPU_NUMBERS;
    while (nodes->cpu_limit > 0 && nodes->of_cpu[nodes->cpu_limit - 1] < 0)
        nodes->cpu_limit--;
    if (nodes->count == 0)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "this kernel doesn't report NUMA nodes");
    return 0;
}
