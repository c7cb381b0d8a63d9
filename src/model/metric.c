/* metric.c: the table of metrics as data, and the words for why clocks are lowered. */
#include "model/metric.h"

#include "base/list.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const struct lab_metric metrics[LAB_METRIC_COUNT] = {
#define ROW(id, name, unit, kind, scale, title)                                                    \
    [LAB_METRIC_##id] = {name, unit, title, LAB_METRIC_##kind, scale},
    LAB_METRICS(ROW)
#undef ROW
};

const struct lab_metric *lab_metric(enum lab_metric_id id) {
    assert(id < LAB_METRIC_COUNT);
    return &metrics[id];
}

const char *lab_metric_ending(enum lab_metric_id id) {
    static const char *const endings[][2] = {
        {"%", "_percent"}, {"B", "_bytes"},         {"W", "_w"}, {"C", "_c"},
        {"MHz", "_mhz"},   {"B/s", "_bytes_per_s"}, {"J", "_j"}, {"s", "_s"},
    };
    const char *ending = "", *name = metrics[id].name;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(metrics[id].unit, endings[i][0]) == 0)
            ending = endings[i][1];
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0 ? "" : ending;
}

int lab_metric_find(const char *name) {
    return LAB_FIND(metrics, LAB_METRIC_COUNT, name, name);
}

/* nvmlClocksEventReasons: the bits since the first driver that had them */
const struct lab_clock_reason lab_clock_reasons[] = {
    {0x1, "idle", "idle", false, false},
    {0x2, "applications_clocks", "clocks set by the user", false, false},
    {0x4, "sw_power_cap", "power limit", true, false},
    {0x8, "hw_slowdown", "hardware slowdown", true, true},
    {0x10, "sync_boost", "sync boost with other GPUs", true, false},
    {0x20, "sw_thermal", "thermal limit (driver)", true, true},
    {0x40, "hw_thermal", "thermal limit (hardware)", true, true},
    {0x80, "hw_power_brake", "power brake", true, true},
    {0x100, "display_clocks", "display's clocks", false, false},
    {0, NULL, NULL, false, false},
};

uint64_t lab_clock_harmful(uint64_t reasons) {
    uint64_t harmful = 0;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        harmful |= reason->harmful ? reason->bit : 0;
    return reasons & harmful;
}
