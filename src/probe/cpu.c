/*
 * cpu.c: the probe `cpu`: how busy the CPUs are, together and each, their frequency, the load, and
 * how much of the time something had to wait for a CPU, memory or the disk (the kernel's pressure
 * figures).
 *
 * The kernel counts CPU time in steps of 10 ms, so shares of less than 100 ms would be noise: ticks
 * that come faster are left out. What is slow or changes slowly is read each second.
 */
#include "base/file/file.h"
#include "probe/cpu/frequency.h"
#include "probe/probe_host.h"

#include <string.h>

#define FAST_NS (LAB_NS_PER_S / 10)
#define SLOW_NS LAB_NS_PER_S

enum {
    ALL_BUSY,
    ALL_SYSTEM,
    ALL_IOWAIT,
    ALL_STEAL,
    FREQUENCY,
    LOAD,
    PRESSURE,
    EACH = PRESSURE + 3
};

static const char *const pressure_files[3] = {"cpu", "memory", "io"};

struct cpu {
    const struct lab_probe_setup *setup;
    struct probe_stat stat;
    struct probe_times all_before, *each_before;
    struct frequency frequency;
    int load_fd, pressure_fds[3];
    int64_t pressure_us[3];   /* -1 = not read yet */
    int64_t pressure_ns;      /* when */
    int64_t fast_ns, slow_ns; /* when they are due */
    int64_t times_ns;         /* when the CPUs' times were taken */
    struct probe_row row;
    struct lab_entity entity;
};

static void read_pressure(struct cpu *cpu, int64_t now_ns);

static void make_columns(struct cpu *cpu) {
    struct probe_row *row = &cpu->row;
    static const enum lab_metric_id first[] = {
        LAB_METRIC_CPU_UTILIZATION, LAB_METRIC_CPU_SYSTEM,      LAB_METRIC_CPU_IOWAIT,
        LAB_METRIC_CPU_STEAL,       LAB_METRIC_CPU_FREQUENCY,   LAB_METRIC_LOAD,
        LAB_METRIC_PRESSURE_CPU,    LAB_METRIC_PRESSURE_MEMORY, LAB_METRIC_PRESSURE_IO};
    for (int i = 0; i < EACH; i++)
        probe_row_add(row, first[i], -1);
    for (int i = 0; i < cpu->stat.count; i++)
        probe_row_add(row, LAB_METRIC_CORE_UTILIZATION, cpu->stat.numbers[i]);
    for (int i = 0; cpu->frequency.source != FREQUENCY_NONE && i < cpu->stat.count; i++)
        probe_row_add(row, LAB_METRIC_CORE_FREQUENCY, cpu->stat.numbers[i]);
}

static int cpu_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    struct probe_stat stat;
    if (probe_stat_open(&stat, setup->root, err) < 0)
        return -1;
    struct cpu *cpu = lab_mem_alloc(1, sizeof *cpu);
    cpu->setup = setup;
    cpu->stat = stat;
    cpu->all_before = stat.all;
    cpu->each_before = lab_mem_alloc((size_t)stat.count, sizeof *cpu->each_before);
    if (stat.count > 0)
        memcpy(cpu->each_before, stat.each, (size_t)stat.count * sizeof *stat.each);
    frequency_open(&cpu->frequency, setup->root, stat.numbers, stat.count);
    cpu->load_fd = probe_file_open(setup->root, "/proc/loadavg");
    for (int i = 0; i < 3; i++) {
        cpu->pressure_fds[i] = probe_file_open(setup->root, "/proc/pressure/%s", pressure_files[i]);
        cpu->pressure_us[i] = -1;
    }
    make_columns(cpu);
    cpu->times_ns = lab_clock_now(setup->clock);
    read_pressure(cpu, lab_clock_now(setup->clock)); /* what differences are taken from */
    bool named = setup->machine && setup->machine->cpu_model && *setup->machine->cpu_model;
    cpu->entity = (struct lab_entity){.kind = LAB_ENTITY_CPU,
                                      .id = "cpu",
                                      .name = named ? setup->machine->cpu_model : "CPU",
                                      .pci = "",
                                      .node = -1,
                                      .parent = -1,
                                      .columns = cpu->row.columns,
                                      .column_count = cpu->row.count};
    *ret_state = cpu;
    return 0;
}

static void cpu_close(void *state) {
    struct cpu *cpu = state;
    probe_stat_close(&cpu->stat);
    frequency_close(&cpu->frequency);
    lab_file_close(&cpu->load_fd);
    for (int i = 0; i < 3; i++)
        lab_file_close(&cpu->pressure_fds[i]);
    lab_mem_free(cpu->each_before);
    probe_row_release(&cpu->row);
    lab_mem_free(cpu);
}

static void cpu_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    struct cpu *cpu = state;
    (void)lane;
    sink->entity(sink->state, &cpu->entity);
}

/* --- reading --- */

/* Shares of the time since the last reading in which the clock of this CPU moved. */
static void read_times(struct cpu *cpu, int64_t now_ns) {
    if (now_ns - cpu->times_ns < FAST_NS / 2) /* at an edge: a step or two of the kernel's clock */
        return;
    cpu->times_ns = now_ns;
    struct probe_row *row = &cpu->row;
    const struct probe_times *now = &cpu->stat.all, *before = &cpu->all_before;
    int64_t total = now->total - before->total;
    if (total > 0) {
        int64_t busy = probe_times_busy(now) - probe_times_busy(before);
        probe_row_set(row, ALL_BUSY, probe_share(busy, total));
        probe_row_set(row, ALL_SYSTEM, probe_share(now->system - before->system, total));
        probe_row_set(row, ALL_IOWAIT, probe_share(now->iowait - before->iowait, total));
        probe_row_set(row, ALL_STEAL, probe_share(now->steal - before->steal, total));
    }
    if (total != 0)
        cpu->all_before = *now;
    for (int i = 0; i < cpu->stat.count; i++) {
        struct probe_times *last = &cpu->each_before[i];
        if (!cpu->stat.online[i])
            continue;
        total = cpu->stat.each[i].total - last->total;
        int64_t busy = probe_times_busy(&cpu->stat.each[i]) - probe_times_busy(last);
        if (total > 0)
            probe_row_set(row, EACH + i, (probe_share(busy, total) + 5) / 10);
        if (total != 0)
            *last = cpu->stat.each[i];
    }
}

static void read_load(struct cpu *cpu) {
    char text[128];
    const char *at = text;
    int64_t whole, hundredths = 0;
    if (probe_file_read(cpu->load_fd, text, sizeof text) <= 0 || !probe_text_number(&at, &whole))
        return;
    /* "12.34 …" */
    if (*at == '.')
        for (int i = 1, weight = 10; i <= 2 && at[i] >= '0' && at[i] <= '9'; i++, weight /= 10)
            hundredths += (int64_t)weight * (at[i] - '0');
    probe_row_set(&cpu->row, LOAD, whole * 100 + hundredths);
}

static void read_pressure(struct cpu *cpu, int64_t now_ns) {
    int64_t passed_us = (now_ns - cpu->pressure_ns) / LAB_NS_PER_US;
    for (int i = 0; i < 3; i++) {
        char text[256];
        int64_t total_us;
        const char *at = probe_file_read(cpu->pressure_fds[i], text, sizeof text) > 0
                             ? probe_text_line(text, "some ")
                             : NULL;
        at = at ? strstr(at, "total=") : NULL;
        if (!at)
            continue;
        at += strlen("total=");
        if (!probe_text_number(&at, &total_us))
            continue;
        if (cpu->pressure_us[i] >= 0 && passed_us > 0)
            probe_row_set(&cpu->row, PRESSURE + i,
                          probe_share(total_us - cpu->pressure_us[i], passed_us));
        cpu->pressure_us[i] = total_us;
    }
    cpu->pressure_ns = now_ns;
}

static void read_frequency(struct cpu *cpu) {
    int count = cpu->stat.count;
    frequency_read(&cpu->frequency, cpu->setup->root, cpu->stat.numbers, count);
    int64_t sum = 0, known = 0;
    for (int i = 0; cpu->frequency.source != FREQUENCY_NONE && i < count; i++) {
        if (cpu->frequency.mhz[i] <= 0)
            continue;
        sum += cpu->frequency.mhz[i];
        known++;
        if (cpu->frequency.fresh[i])
            probe_row_set(&cpu->row, EACH + count + i, cpu->frequency.mhz[i]);
    }
    if (known > 0)
        probe_row_set(&cpu->row, FREQUENCY, (sum + known / 2) / known);
}

static int cpu_read(void *state, int lane, enum lab_probe_when when,
                    const struct lab_probe_sink *sink, struct lab_err *err) {
    struct cpu *cpu = state;
    (void)lane;
    int64_t now_ns = lab_clock_now(cpu->setup->clock);
    if (!probe_due(&cpu->fast_ns, now_ns, FAST_NS, cpu->setup, when))
        return 0;
    if (probe_stat_read(&cpu->stat, err) < 0)
        return -1;
    probe_row_clear(&cpu->row);
    read_times(cpu, now_ns);
    if (probe_due(&cpu->slow_ns, now_ns, SLOW_NS, cpu->setup, when)) {
        read_load(cpu);
        read_pressure(cpu, now_ns);
        read_frequency(cpu);
    }
    sink->tick(sink->state, 0, now_ns, cpu->row.values, cpu->row.valid);
    return 0;
}

static int64_t cpu_due(void *state, int lane) {
    const struct cpu *cpu = state;
    (void)lane;
    return cpu->fast_ns;
}

const struct lab_probe lab_probe_cpu = {
    .name = "cpu",
    .summary = "utilisation of the CPUs and of each, frequency, load, pressure",
    .without = "how busy the CPUs are",
    .open = cpu_open,
    .close = cpu_close,
    .only_lane = "the CPUs",
    .describe = cpu_describe,
    .read = cpu_read,
    .due = cpu_due,
};
