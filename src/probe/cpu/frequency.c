/* frequency.c: the CPUs' frequencies. */
#include "probe/cpu/frequency.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "probe/probe_host.h"

#include <string.h>
#include <unistd.h>

#define AT_ONCE    64
#define INFO_BYTES 16384

static bool read_cpufreq(const char *root, int cpu, int64_t *ret_mhz) {
    char text[32];
    const char *at = text;
    int64_t khz;
    if (probe_file_slurp(text, sizeof text, root,
                         "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu) <= 0 ||
        !probe_text_number(&at, &khz) || khz <= 0)
        return false;
    *ret_mhz = (khz + 500) / 1000;
    return true;
}

/* A value behind "name \t: ". */
static bool info_value(const char *line, const char *name, int64_t *ret_value) {
    const char *at = probe_text_line(line, name);
    if (!at || at > line + strlen(name))
        return false;
    at += strspn(at, " \t");
    if (*at != ':')
        return false;
    at++;
    return probe_text_number(&at, ret_value);
}

static void read_info_line(struct frequency *frequency, const char *line, const int *cpus,
                           int count, int *index) {
    int64_t value;
    if (info_value(line, "processor", &value)) {
        while (*index < count && cpus[*index] < value)
            ++*index;
    } else if (*index < count && info_value(line, "cpu MHz", &value) && value > 0) {
        frequency->mhz[*index] = value;
        frequency->fresh[*index] = true;
    }
}

/* Line by line: the file has kilobytes for each CPU. */
static void read_cpuinfo(struct frequency *frequency, const char *root, const int *cpus,
                         int count) {
    int fd = probe_file_open(root, "/proc/cpuinfo"), index = 0;
    LAB_AUTO_FREE char *text = lab_mem_alloc(INFO_BYTES, 1);
    size_t used = 0;
    for (;;) {
        ssize_t got = fd < 0 ? 0 : read(fd, text + used, INFO_BYTES - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
        text[used] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            read_info_line(frequency, line, cpus, count, &index);
        }
        used -= (size_t)(line - text);
        if (used == INFO_BYTES - 1)
            used = 0; /* a line that long is none of ours */
        memmove(text, line, used);
    }
    lab_file_close(&fd);
}

static bool any_fresh(const struct frequency *frequency, int count) {
    bool any = false;
    for (int i = 0; i < count; i++)
        any = any || frequency->fresh[i];
    return any;
}

void frequency_open(struct frequency *frequency, const char *root, const int *cpus, int count) {
    *frequency = (struct frequency){.mhz = lab_mem_alloc((size_t)count, sizeof(int64_t)),
                                    .fresh = lab_mem_alloc((size_t)count, sizeof(bool))};
    int64_t mhz;
    if (count > 0 && read_cpufreq(root, cpus[0], &mhz)) {
        frequency->source = FREQUENCY_CPUFREQ;
        return;
    }
    read_cpuinfo(frequency, root, cpus, count);
    if (any_fresh(frequency, count))
        frequency->source = FREQUENCY_CPUINFO;
}

void frequency_close(struct frequency *frequency) {
    lab_mem_free(frequency->mhz);
    lab_mem_free(frequency->fresh);
}

void frequency_read(struct frequency *frequency, const char *root, const int *cpus, int count) {
    if (count == 0 || frequency->source == FREQUENCY_NONE)
        return;
    memset(frequency->fresh, 0, (size_t)count * sizeof *frequency->fresh);
    if (frequency->source == FREQUENCY_CPUINFO) {
        read_cpuinfo(frequency, root, cpus, count);
        return;
    }
    for (int i = 0; i < count && i < AT_ONCE; i++) {
        int index = frequency->next++ % count;
        frequency->next %= count;
        frequency->fresh[index] = read_cpufreq(root, cpus[index], &frequency->mhz[index]);
        if (!frequency->fresh[index])
            frequency->mhz[index] = 0;
    }
}
