/*
 * recording.c: what a recording costs: its size over a day of one GPU at 10 Hz, the time to write a
 * tick, the time to read ten million values back.
 *
 *     bench_recording FOLDER [HOURS]       prints `name value` lines; bench/recording judges them
 *
 * The GPU is made up but behaves like a busy one: jobs of some minutes with pauses between them,
 * utilisation in whole per cent, shares in hundredths of one, power that follows the load with
 * noise of some watts, clocks that step, counters read each second. Its times have the jitter of a
 * real timer.
 */
#include "store/recording/recording.h"
#include "base/random.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_NS (100 * LAB_NS_PER_MS)

enum { READ_METRICS = 25, READ_VALUES = 10000000 };

static const struct lab_column columns[] = {
    {LAB_METRIC_UTILIZATION, -1},     {LAB_METRIC_MEMORY_UTILIZATION, -1},
    {LAB_METRIC_MEMORY_USED, -1},     {LAB_METRIC_POWER, -1},
    {LAB_METRIC_POWER_INSTANT, -1},   {LAB_METRIC_TEMPERATURE, -1},
    {LAB_METRIC_SM_CLOCK, -1},        {LAB_METRIC_MEMORY_CLOCK, -1},
    {LAB_METRIC_CLOCK_REASONS, -1},   {LAB_METRIC_PERFORMANCE_STATE, -1},
    {LAB_METRIC_GRAPHICS_ACTIVE, -1}, {LAB_METRIC_SM_ACTIVE, -1},
    {LAB_METRIC_SM_OCCUPANCY, -1},    {LAB_METRIC_TENSOR_ACTIVE, -1},
    {LAB_METRIC_DRAM_ACTIVE, -1},     {LAB_METRIC_FP32_ACTIVE, -1},
    {LAB_METRIC_FP16_ACTIVE, -1},     {LAB_METRIC_INTEGER_ACTIVE, -1},
    {LAB_METRIC_PCIE_TX_RATE, -1},    {LAB_METRIC_PCIE_RX_RATE, -1},
    {LAB_METRIC_NVLINK_TX_RATE, -1},  {LAB_METRIC_NVLINK_RX_RATE, -1},
    {LAB_METRIC_ENERGY, -1},          {LAB_METRIC_PCIE_TX_BYTES, -1},
    {LAB_METRIC_PCIE_RX_BYTES, -1},
};
_Static_assert(sizeof columns / sizeof *columns == READ_METRICS, "as the goal counts them");

static const struct lab_entity gpu = {
    .kind = LAB_ENTITY_GPU,
    .id = "GPU-00000000-0000-0000-0000-000000000000",
    .name = "a made-up GPU",
    .pci = "0000:3b:00.0",
    .node = 0,
    .parent = -1,
    .simulated = true,
    .columns = columns,
    .column_count = READ_METRICS,
};

/* --- the made-up GPU --- */

static uint64_t drawn;

/* About normal, mean 0, deviation 1. */
static double noise(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += lab_random_uniform(7, drawn++);
    return sum;
}

struct load {
    double share, temperature, memory_kib, clock_mhz;
    double energy_mj, tx_kib, rx_kib;
    int64_t until; /* tick at which the job ends */
    bool busy;
};

static int64_t between(double value, double low, double high) {
    return llround(value < low ? low : value > high ? high : value);
}

static void step(struct load *load, int64_t tick) {
    if (tick >= load->until) {
        load->busy = !load->busy;
        load->until =
            tick + 600 + (int64_t)(lab_random_uniform(8, drawn++) * (load->busy ? 9000 : 2000));
        load->memory_kib = load->busy ? 4e7 + 8e7 * lab_random_uniform(9, drawn++) : 5e5;
    }
    double target = load->busy ? 0.85 : 0.0;
    load->share += 0.2 * (target - load->share) + (load->busy ? 0.03 * noise() : 0);
    load->share = load->share < 0 ? 0 : load->share > 1 ? 1 : load->share;
    load->temperature += 0.002 * (35 + 40 * load->share - load->temperature) + 0.01 * noise();
    if (lab_random_uniform(10, drawn++) < 0.1)
        load->clock_mhz =
            load->busy ? 1755 + 15 * floor(14 * lab_random_uniform(11, drawn++)) : 345;
}

static void fill(struct load *load, int64_t tick, int64_t *values, uint64_t *valid) {
    double share = load->share, percent = 1e4 * share, watts = 90 + 550 * share;
    double rate = 1.2e6 * share;
    load->energy_mj += 100 * watts;
    load->tx_kib += rate / 20;
    load->rx_kib += rate / 10;
    const int64_t row[READ_METRICS] = {
        between(100 * share + 2 * noise(), 0, 100),
        between(45 * share + 2 * noise(), 0, 100),
        (int64_t)load->memory_kib / 2048 * 2048,
        between(1e3 * (watts + 3 * noise()), 0, 7e5),
        between(1e3 * (watts + 12 * noise()), 0, 7e5),
        between(load->temperature, 0, 100),
        between(load->clock_mhz, 0, 1980),
        2619,
        load->busy ? (watts > 600 ? 4 : 0) : 1,
        load->busy ? 0 : 8,
        between(percent * 0.97 + 80 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.90 + 90 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.35 + 60 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.52 + 110 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.44 + 80 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.05 + 15 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.08 + 20 * noise() * (share > 0), 0, 1e4),
        between(percent * 0.12 + 25 * noise() * (share > 0), 0, 1e4),
        between(rate * 0.5 + 2e4 * noise() * (share > 0), 0, 6e7),
        between(rate + 4e4 * noise() * (share > 0), 0, 6e7),
        between(rate * 90 + 3e6 * noise() * (share > 0), 0, 9e8),
        between(rate * 90 + 3e6 * noise() * (share > 0), 0, 9e8),
        (int64_t)load->energy_mj,
        (int64_t)load->tx_kib,
        (int64_t)load->rx_kib,
    };
    *valid = tick % 10 ? (1u << 22) - 1 : (1u << 25) - 1;
    for (int i = 0; i < READ_METRICS; i++)
        values[i] = row[i];
}

/* --- measuring --- */

static int fail(const struct lab_err *err) {
    fprintf(stderr, "bench_recording: %s\n", err->text);
    return -1;
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Records so many ticks; what the recorder took of it, without what making them up took. */
static int record(const char *path, int64_t ticks, double *ret_seconds, struct lab_err *err) {
    int64_t now_ns = 0;
    struct lab_clock clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {
        .interval_ns = INTERVAL_NS, .note = "bench/recording", .clock = &clock};
    struct lab_recorder *recorder;
    if (lab_recorder_create(path, &setup, &recorder, err) < 0)
        return -1;
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    sink.entity(sink.state, 0, &gpu);
    struct load load = {.temperature = 40, .clock_mhz = 345};
    enum { BATCH = 1000 };
    static int64_t values[BATCH][READ_METRICS], times_ns[BATCH];
    static uint64_t valid[BATCH];
    double spent = 0;
    int result = 0;
    for (int64_t from = 0; from < ticks && result == 0; from += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            step(&load, from + i);
            fill(&load, from + i, values[i], &valid[i]);
            times_ns[i] = (from + i) * INTERVAL_NS + llround(fabs(25e3 * noise()));
        }
        double start = cpu_seconds();
        for (int i = 0; i < BATCH && result == 0; i++) {
            const struct lab_tick tick = {
                .time_ns = times_ns[i], .values = values[i], .valid = &valid[i]};
            sink.tick(sink.state, &tick);
            now_ns = times_ns[i];
            result = lab_recorder_flush(recorder, false, err);
        }
        spent += cpu_seconds() - start;
    }
    *ret_seconds = spent;
    return lab_recorder_close(recorder, err) < 0 ? -1 : result;
}

static int measure_day(const char *path, double hours, struct lab_err *err) {
    int64_t ticks = (int64_t)(hours * 36000) / 1000 * 1000;
    double seconds;
    if (record(path, ticks, &seconds, err) < 0)
        return -1;
    struct stat info;
    if (stat(path, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, 0, "%s", path);
    printf("ticks %lld\nfile_bytes %lld\nbytes_per_tick %.2f\nwrite_us_per_tick %.2f\n",
           (long long)ticks, (long long)info.st_size, (double)info.st_size / (double)ticks,
           1e6 * seconds / (double)ticks);
    return 0;
}

static int measure_read(const char *path, struct lab_err *err) {
    double best = 1e9;
    size_t values = 0;
    for (int round = 0; round < 5; round++) {
        struct lab_arena arena;
        lab_arena_init(&arena);
        struct lab_recording recording;
        const struct lab_recording_query query = {
            .from_ns = 0, .until_ns = READ_VALUES / READ_METRICS * INTERVAL_NS - 1};
        int64_t start_ns = lab_clock_now(lab_clock_system());
        if (lab_recording_read(path, &query, &arena, &recording, err) < 0)
            return -1;
        double seconds = (double)(lab_clock_now(lab_clock_system()) - start_ns) / LAB_NS_PER_S;
        best = seconds < best ? seconds : best;
        values = recording.tracks[0].count * READ_METRICS;
        lab_arena_release(&arena);
    }
    printf("read_values %zu\nread_seconds %.4f\n", values, best);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "bench_recording FOLDER [HOURS]\n");
        return 2;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/day.rec", argv[1]);
    double hours = argc > 2 ? strtod(argv[2], NULL) : 24;
    struct lab_err err = LAB_ERR_INIT;
    if (measure_day(path, hours, &err) < 0 || measure_read(path, &err) < 0)
        return fail(&err) < 0;
    return 0;
}
