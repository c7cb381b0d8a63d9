/*
 * measure_conditions.c: what else happened on the machine, from /proc before and after. Each file
 * may be missing (containers, old kernels, PSI switched off): its figures are then NaN, and no
 * warning rests on them.
 */
#include "base/file/file.h"
#include "measure/measure_internal.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_BYTES_MOST (4 << 20) /* /proc/stat lists every CPU and interrupt */

/* Fewer ticks than this can't be told from the rounding of those counted. */
#define TICKS_LEAST 10

#define LOAD_PERIOD_S 60.0

/* user nice system idle iowait irq softirq steal; guest time is already in user */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, CPU_FIELDS };

static void parse_stat(const char *text, double ticks_per_s, struct lab_conditions_reading *ret) {
    unsigned long long f[CPU_FIELDS] = {0};
    int found = sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &f[USER], &f[NICE],
                       &f[SYSTEM], &f[IDLE], &f[IOWAIT], &f[IRQ], &f[SOFTIRQ], &f[STEAL]);
    if (found < IDLE + 1)
        return;
    double busy = (double)(f[USER] + f[NICE] + f[SYSTEM] + f[IRQ] + f[SOFTIRQ]);
    ret->busy_s = busy / ticks_per_s;
    ret->total_s = (busy + (double)(f[IDLE] + f[IOWAIT] + f[STEAL])) / ticks_per_s;
    if (found == CPU_FIELDS)
        ret->steal_s = (double)f[STEAL] / ticks_per_s;
    int cpus = 0;
    for (const char *line = text; (line = strstr(line, "\ncpu")); line++)
        cpus++;
    ret->cpus = cpus > 0 ? cpus : NAN;
}

/* "some avg10=… total=<µs>" */
static double parse_pressure(const char *text) {
    unsigned long long total_us;
    if (!text || sscanf(text, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &total_us) != 1)
        return NAN;
    return (double)total_us * 1e-6;
}

struct lab_conditions_reading lab_conditions_parse(const char *stat, const char *loadavg,
                                                   const char *pressure_cpu,
                                                   const char *pressure_memory,
                                                   double ticks_per_s) {
    struct lab_conditions_reading reading = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (stat)
        parse_stat(stat, ticks_per_s, &reading);
    double load;
    if (loadavg && sscanf(loadavg, "%lf", &load) == 1)
        reading.load = load;
    reading.pressure_cpu_s = parse_pressure(pressure_cpu);
    reading.pressure_memory_s = parse_pressure(pressure_memory);
    return reading;
}

/* The second field is the program's name in brackets, and may itself hold brackets and blanks. */
static const char *after_name(const char *process_stat) {
    return process_stat ? strrchr(process_stat, ')') : NULL;
}

double lab_conditions_parse_cpu(const char *process_stat, double ticks_per_s) {
    const char *rest = after_name(process_stat);
    unsigned long long user, system;
    long long children_user, children_system;
    if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
                        &user, &system, &children_user, &children_system) != 4)
        return NAN;
    return ((double)(user + system) + (double)(children_user + children_system)) / ticks_per_s;
}

double lab_conditions_parse_start(const char *process_stat, double ticks_per_s) {
    const char *rest = after_name(process_stat);
    unsigned long long start;
    if (!rest || sscanf(rest,
                        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%*d %*d %llu",
                        &start) != 1)
        return NAN;
    return (double)start / ticks_per_s;
}

static double seconds_of(clockid_t id) {
    struct timespec t;
    return clock_gettime(id, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : NAN;
}

/* Programs that a workload ran and that have ended are ours as well. */
static double seconds_of_children(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static const char *text_of(const char *path, struct lab_arena *arena) {
    struct lab_err ignored = LAB_ERR_INIT;
    char *text;
    size_t length;
    return lab_file_read(path, FILE_BYTES_MOST, arena, &text, &length, &ignored) == 0 ? text : NULL;
}

static double seconds_of_process(long pid, double ticks_per_s, struct lab_arena *arena) {
    return lab_conditions_parse_cpu(text_of(lab_arena_printf(arena, "/proc/%ld/stat", pid), arena),
                                    ticks_per_s);
}

/* Of the children that a thread has started, but for this process. */
static double seconds_of_siblings(const char *children, double ticks_per_s,
                                  struct lab_arena *arena) {
    double sum = 0;
    char *end;
    for (long pid = children ? strtol(children, &end, 10) : 0; pid > 0; pid = strtol(end, &end, 10))
        if (pid != getpid()) {
            double one = seconds_of_process(pid, ticks_per_s, arena);
            sum += isnan(one) ? 0 : one; /* it has just ended: its parent has its time */
        }
    return sum;
}

/* Of a parent and its children, but for this process. Children that have ended are in the parent's
 * own time. NaN = it can't be read. */
static double seconds_of_family(int parent, double ticks_per_s, struct lab_arena *arena) {
    const char *path = lab_arena_printf(arena, "/proc/%d/task", parent);
    LAB_AUTO_CLOSEDIR DIR *threads = opendir(path);
    double sum = 0;
    for (const struct dirent *entry; threads && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            sum += seconds_of_siblings(
                text_of(lab_arena_printf(arena, "%s/%s/children", path, entry->d_name), arena),
                ticks_per_s, arena);
    return sum + seconds_of_process(parent, ticks_per_s, arena);
}

struct lab_conditions_reading lab_conditions_read(int parent) {
    LAB_AUTO(arena, arena);
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    struct lab_conditions_reading reading =
        lab_conditions_parse(text_of("/proc/stat", &arena), text_of("/proc/loadavg", &arena),
                             text_of("/proc/pressure/cpu", &arena),
                             text_of("/proc/pressure/memory", &arena), ticks_per_s);
    reading.time_s = seconds_of(CLOCK_MONOTONIC);
    reading.own_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + seconds_of_children();
    double family_s = parent > 0 ? seconds_of_family(parent, ticks_per_s, &arena) : NAN;
    bool known = !isnan(family_s);
    reading.own_s += known ? family_s : 0;
    const char *first =
        known ? lab_arena_printf(&arena, "/proc/%d/stat", parent) : "/proc/self/stat";
    reading.age_s = seconds_of(CLOCK_BOOTTIME) -
                    lab_conditions_parse_start(text_of(first, &arena), ticks_per_s);
    return reading;
}

static double bounded_share(double part, double whole) {
    double share = part / whole;
    return isnan(share) || whole <= 0 ? NAN : fmin(fmax(share, 0), 1);
}

/* The load average follows p runnable threads as p·(1 − e^(−t/60 s)); ours are taken off. */
static double foreign_load(const struct lab_conditions_reading *r) {
    double own = 0;
    if (r->age_s > 0 && r->own_s > 0)
        own = r->own_s / r->age_s * (1 - exp(-r->age_s / LOAD_PERIOD_S));
    double load = (r->load - own) / r->cpus;
    return isnan(load) ? NAN : fmax(load, 0);
}

struct lab_conditions lab_conditions_between(const struct lab_conditions_reading *before,
                                             const struct lab_conditions_reading *after) {
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    double total = after->total_s - before->total_s;
    if (!(total * ticks_per_s >= TICKS_LEAST))
        total = NAN;
    double foreign = after->busy_s - before->busy_s - (after->own_s - before->own_s);
    double time = after->time_s - before->time_s;
    return (struct lab_conditions){
        .load_before = foreign_load(before),
        .foreign_cpu = bounded_share(foreign, total),
        .steal = bounded_share(after->steal_s - before->steal_s, total),
        .pressure_cpu = bounded_share(after->pressure_cpu_s - before->pressure_cpu_s, time),
        .pressure_memory =
            bounded_share(after->pressure_memory_s - before->pressure_memory_s, time),
    };
}
