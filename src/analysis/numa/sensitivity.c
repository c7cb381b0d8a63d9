/* numa/sensitivity.c: how much a model minds the distance, over all devices of a study. */
#include "analysis/numa/numa.h"

#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95

/* Mean of a device's logarithms at that distance: nodes equally far away are no devices more. */
static double of_device(const struct lab_numa_device *device, int model, int distance) {
    double sum = 0;
    int count = 0;
    for (int n = 0; n < device->node_count; n++) {
        const struct lab_numa_cell *cell = lab_numa_cell_at(device, model, n);
        if (n == device->reference || device->nodes[n].distance != distance ||
            !(cell->ratio.ratio > 0))
            continue;
        sum += log(cell->ratio.ratio);
        count++;
    }
    return count ? sum / count : (double)NAN;
}

static bool has_distance(const int *distances, int count, int distance) {
    for (int i = 0; i < count; i++)
        if (distances[i] == distance)
            return true;
    return false;
}

static int collect_distances(const struct lab_numa_grid *grid, struct lab_arena *arena,
                             int **ret_distances) {
    int room = 1, count = 0;
    for (int d = 0; d < grid->device_count; d++)
        room += grid->devices[d].node_count;
    int *distances = lab_arena_alloc(arena, (size_t)room, sizeof *distances);
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++) {
            int distance = grid->devices[d].nodes[n].distance;
            if (n == grid->devices[d].reference || has_distance(distances, count, distance))
                continue;
            int at = count++;
            for (; at > 0 && distances[at - 1] > distance; at--)
                distances[at] = distances[at - 1];
            distances[at] = distance;
        }
    *ret_distances = distances;
    return count;
}

int lab_numa_sensitivities(const struct lab_numa_grid *grid, struct lab_arena *arena,
                           struct lab_numa_sensitivity **ret_rows) {
    int *distances, distance_count = collect_distances(grid, arena, &distances), count = 0;
    struct lab_numa_sensitivity *rows =
        lab_arena_alloc(arena, (size_t)(grid->model_count * distance_count) + 1, sizeof *rows);
    double *logs = lab_arena_alloc(arena, (size_t)grid->device_count + 1, sizeof *logs);
    for (int k = 0; k < distance_count; k++)
        for (int m = 0; m < grid->model_count; m++) {
            size_t n = 0;
            for (int d = 0; d < grid->device_count; d++) {
                double value = of_device(&grid->devices[d], m, distances[k]);
                if (!isnan(value))
                    logs[n++] = value;
            }
            if (n == 0)
                continue;
            struct lab_interval interval = lab_stats_mean_interval(logs, n, CONFIDENCE);
            rows[count++] =
                (struct lab_numa_sensitivity){.model = m,
                                              .distance = distances[k],
                                              .devices = (int)n,
                                              .penalty = 1 - exp(lab_stats_mean(logs, n)),
                                              .low = 1 - exp(interval.high),
                                              .high = 1 - exp(interval.low)};
        }
    *ret_rows = rows;
    return count;
}
