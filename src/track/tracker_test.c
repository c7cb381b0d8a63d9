/* tracker_test.c: a synthetic run: a loss that falls, two GPUs that warm up. */
#include "track/tracker_test.h"

#include "base/clock.h"
#include "base/hash.h"
#include "track/tracker_internal.h"

#include <math.h>
#include <unistd.h>

static void add_sample(const struct lab_tracker *tracker, const struct lab_track_run *run,
                       int64_t number, int step, struct lab_track_out *out) {
    struct lab_track_gpu gpus[2];
    struct lab_track_sample sample = {.number = number,
                                      .wall_ns = run->start_wall_ns + step * LAB_NS_PER_S,
                                      .gpus = gpus,
                                      .gpu_count = 2};
    for (int m = 0; m < LAB_METRIC_COUNT; m++)
        gpus[0].values[m] = gpus[1].values[m] = sample.host[m] = (double)NAN;
    for (int i = 0; i < 2; i++) {
        gpus[i].index = i;
        gpus[i].values[LAB_METRIC_UTILIZATION] = 90 + 5 * i;
        gpus[i].values[LAB_METRIC_MEMORY_USED] = 0x1p34;
        gpus[i].values[LAB_METRIC_MEMORY_TOTAL] = 0x1p35;
        gpus[i].values[LAB_METRIC_POWER] = 300 + 10 * i + 0.1 * step;
        gpus[i].values[LAB_METRIC_POWER_LIMIT] = 400;
        gpus[i].values[LAB_METRIC_TEMPERATURE] = 40 + 0.2 * step;
    }
    lab_track_add_sample(tracker, run, &sample, out);
}

static void add_rows(const struct lab_tracker *tracker, const struct lab_track_run *run,
                     struct lab_track_out *out) {
    int64_t number = 0;
    for (int step = 0; step < LAB_TRACK_TEST_STEPS; step++) {
        struct lab_track_value values[] = {{"loss", 2 * exp(-0.05 * step)},
                                           {"accuracy", 1 - exp(-0.03 * step)}};
        struct lab_track_row row = {.number = number,
                                    .wall_ns = run->start_wall_ns + step * LAB_NS_PER_S,
                                    .step = step,
                                    .whole_step = step,
                                    .values = values,
                                    .count = 2};
        tracker->row(run, &row, out);
        number++;
        if (step % 10 == 0) {
            add_sample(tracker, run, number, step, out);
            number++;
        }
    }
}

int lab_track_test(const struct lab_tracker *tracker, const char *folder, struct lab_arena *arena,
                   const char **ret_place, struct lab_err *err) {
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    int64_t end_ns = lab_clock_wall_ns();
    int64_t start_ns = end_ns - LAB_TRACK_TEST_STEPS * LAB_NS_PER_S;
    struct lab_value *config = lab_value_map(arena), *summary = lab_value_map(arena);
    const char *id = lab_arena_printf(
        arena, "%016llx",
        (unsigned long long)lab_hash_bytes(LAB_HASH_START, &end_ns, sizeof end_ns));
    lab_value_set_string(arena, config, "purpose", "track-test");
    lab_value_set_float(arena, summary, "best_loss", 2 * exp(-0.05 * (LAB_TRACK_TEST_STEPS - 1)));
    struct lab_track_run run = {.folder = folder,
                                .project = LAB_TRACK_TEST_PROJECT,
                                .group = "track-test",
                                .point = "curve",
                                .name = "track-test",
                                .id = id,
                                .file = id,
                                .host = host,
                                .notes = "a synthetic curve",
                                .tags = (const char *const[]){"simulated", NULL},
                                .label = "",
                                .prefix = "",
                                .renamed = "",
                                .config = config,
                                .study_wall_ns = start_ns,
                                .start_wall_ns = start_ns,
                                .attempt = 1};
    struct lab_track_end end = {
        .wall_ns = end_ns, .summary = summary, .text = "A synthetic curve."};
    LAB_AUTO(track_out, out);
    tracker->begin(&run, &out);
    add_rows(tracker, &run, &out);
    tracker->end(&run, &end, &out);
    *ret_place = tracker->place(&run, arena);
    return track_deliver(tracker, &run, *ret_place, 0, &out, err);
}
