/* chart.c: every device alone and next to the others: a mean hides the one that differs. */
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "analysis/contention/contention.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define CONFIDENCE 0.95

struct row { /* a device in a phase */
    const char *device, *phase;
    struct lab_effect value;
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, device, "device", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, phase, "phase", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, value, "value", NULL, LAB_UNIT_NUMBER),
};

struct drawn {
    const struct contention *made;
    int resource;       /* -1 = times, relative to the kernel's median device alone */
    const char *kernel; /* NULL = the mean of all */
    const char **devices;
    int device_count;
    double *times; /* room for one of each unit */
};

/* A unit's time in a block of a phase; NaN = it has none. */
static double time_of(const struct lab_phase_unit *unit, int phase, int block) {
    const struct lab_study_point *point = &unit->points[phase].time;
    for (int i = 0; i < point->count; i++)
        if (point->runs[i]->run->repeat == block)
            return point->times_s[i];
    return NAN;
}

/* The time of the kernel's median device alone, in the same block: what drifts cancels. */
static double reference_of(const struct drawn *d, const char *kernel, int block) {
    const struct lab_phases *phases = &d->made->phases;
    size_t n = 0;
    for (int u = 0; u < phases->unit_count; u++) {
        d->times[n] = time_of(&phases->units[u], phases->base, block);
        n += lab_str_equal(phases->units[u].kernel, kernel) && d->times[n] > 0;
    }
    return n > 0 ? lab_stats_median(d->times, n) : (double)NAN;
}

/* The logarithm of a unit's value in a block of a phase; NaN = it has none. */
static double log_of(const struct drawn *d, int unit, int phase, int block) {
    const struct lab_phase_unit *own = &d->made->phases.units[unit];
    const struct lab_study_point *point = &own->points[phase].time;
    if (d->resource < 0)
        return log(time_of(own, phase, block) / reference_of(d, own->kernel, block));
    for (int i = 0; i < point->count; i++)
        if (point->runs[i]->run->repeat == block)
            return log(contention_probe(point->runs[i], &d->resource));
    return NAN;
}

static int count_blocks(const struct lab_phases *phases) {
    int blocks = 0;
    for (int i = 0; i < phases->run_count; i++)
        if (phases->runs[i]->run->repeat >= blocks)
            blocks = phases->runs[i]->run->repeat + 1;
    return blocks;
}

/* Of a kernel, or the geometric mean over a device's kernels, and its interval over blocks. */
static struct lab_effect value_of(const struct drawn *d, const char *device, int phase) {
    const struct lab_phases *phases = &d->made->phases;
    int blocks = count_blocks(phases), n = 0;
    double *logs = lab_arena_alloc(d->made->arena, (size_t)blocks + 1, sizeof *logs);
    for (int b = 0; b < blocks; b++) {
        double sum = 0;
        int count = 0;
        for (int u = 0; u < phases->unit_count; u++)
            if (lab_str_equal(phases->units[u].device, device) &&
                (!d->kernel || lab_str_equal(phases->units[u].kernel, d->kernel))) {
                sum += log_of(d, u, phase, b);
                count++;
            }
        if (count > 0 && isfinite(sum))
            logs[n++] = sum / count;
    }
    if (n == 0)
        return (struct lab_effect){NAN, {NAN, NAN, NAN}};
    struct lab_interval interval = lab_stats_mean_interval(logs, (size_t)n, CONFIDENCE);
    double shift = d->resource < 0 ? 1 : 0, scale = d->resource < 0 ? 100 : 1e-9;
    return (struct lab_effect){
        scale * (exp(lab_stats_mean(logs, (size_t)n)) - shift),
        {scale * (exp(interval.low) - shift), scale * (exp(interval.high) - shift), CONFIDENCE}};
}

static void add_panel(struct lab_chart *chart, const struct drawn *d, struct lab_chart_axis axis) {
    struct lab_arena *arena = d->made->arena;
    const struct lab_phases *phases = &d->made->phases;
    struct row *rows = NULL;
    int count = 0;
    for (int p = -1; p < d->made->count; p++) {
        int phase = p < 0 ? phases->base : d->made->list[p].number;
        for (int i = 0; i < d->device_count; i++)
            LAB_ADD(rows, count, arena) = (struct row){d->devices[i], phases->names[phase],
                                                       value_of(d, d->devices[i], phase)};
    }
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, d->kernel, lab_axis(""), axis, arena);
    struct lab_chart_series *series =
        lab_rows_add_series(panel, &LAB_ROWS(row_fields, rows, count), "device", "value", "phase",
                            LAB_CHART_POINTS, arena);
    for (int s = 0; s < panel->series_count; s++)
        series[s].colour = lab_list_find_text(phases->names, phases->count, series[s].title);
}

/* The one that fell most, PCIe where kernels don't use it; -1 = none fell. */
static int fallen(const struct contention_phase *main) {
    return main->lowest >= 0 ? main->lowest : contention_pcie_fall(main) ? CONTENTION_PCIE : -1;
}

#define KERNELS_MOST 3 /* with a panel each; of more, the mean */

/* How far a kernel's time changes; where none does for certain, how far it might. */
static double change_of(const struct contention_phase *phase, int kernel, bool certain) {
    const struct lab_claim *claim = &phase->kernels[kernel].change;
    double most = claim->verdict == LAB_CLAIM_YES ? fabs(claim->effect) : 0;
    for (int i = 0; i < phase->device_count && !certain; i++)
        if (lab_str_equal(phase->devices[i].kernel, phase->kernels[kernel].kernel))
            most = lab_words_reach(most, &phase->devices[i].change);
    return most;
}

static void add_resource(struct lab_chart *chart, struct drawn *d, int resource) {
    const struct contention_resource *it = &d->made->list[0].resources[resource];
    struct drawn own = *d;
    own.kernel = NULL;
    own.resource = resource;
    add_panel(chart, &own,
              lab_axis_from(lab_arena_printf(d->made->arena, "%s [%s]",
                                             lab_words_capital(it->title, d->made->arena),
                                             resource == CONTENTION_COMPUTE ? "GFLOP/s" : "GB/s"),
                            0));
}

/* The kernel that the answer's number is of comes first: a mean of several is true of none. Next to
 * it a resource, where it isn't -1. */
static void add_times(struct lab_chart *chart, struct drawn *d, int resource) {
    const struct contention_phase *main = &d->made->list[0];
    struct lab_chart_axis axis = lab_axis(lab_arena_printf(
        d->made->arena, "Time, from the median %s alone [%%]", d->made->phases.device));
    bool certain = false, single = main->kernel_count > 1 && main->kernel_count <= KERNELS_MOST;
    int first = 0;
    for (int k = 0; k < main->kernel_count; k++)
        certain |= change_of(main, k, true) > 0;
    for (int k = 1; k < main->kernel_count; k++)
        if (change_of(main, k, certain) > change_of(main, first, certain))
            first = k;
    for (int k = -1; k < main->kernel_count && single; k++) {
        if (k == first)
            continue;
        d->kernel = main->kernels[k < 0 ? first : k].kernel;
        add_panel(chart, d, axis);
        if (k < 0 && resource >= 0)
            add_resource(chart, d, resource);
    }
    d->kernel = NULL;
    if (!single)
        add_panel(chart, d, axis);
    if (!single && resource >= 0)
        add_resource(chart, d, resource);
}

#define NARROW_MOST 4 /* devices, of which two panels fit next to each other on the first screen */

void contention_add_devices(struct lab_analysis_result *result, const struct contention *made) {
    const struct lab_phases *phases = &made->phases;
    const struct contention_phase *main = &made->list[0];
    struct drawn d = {.made = made, .resource = -1};
    for (int u = 0; u < phases->unit_count; u++)
        if (lab_list_find_text(d.devices, d.device_count, phases->units[u].device) < 0)
            LAB_ADD(d.devices, d.device_count, made->arena) = phases->units[u].device;
    if (d.device_count < 2)
        return;
    d.times = lab_arena_alloc(made->arena, (size_t)phases->unit_count + 1, sizeof *d.times);
    bool narrow = d.device_count <= NARROW_MOST;
    struct lab_chart chart = {
        .name = "contention_devices",
        .title = lab_arena_printf(made->arena, "Each %s, alone (%s) and at once (%s)",
                                  phases->device, phases->names[phases->base], main->name),
        .intervals = "95% intervals over runs",
        .caption = lab_arena_printf(
            made->arena, "%s%s",
            main->kernel_count > KERNELS_MOST
                ? lab_arena_printf(made->arena, "Mean of %d kernels. ", main->kernel_count)
                : "",
            made->slow.as_time ? made->slow.as_time : ""),
        .columns = narrow ? 2 : 1,
        .simulated = phases->simulated};
    int resource = fallen(main);
    bool drawn = resource >= 0 && resource != CONTENTION_CLOCK;
    bool leads = drawn && !contention_is_slowed(main); /* then it is what there is to do */
    if (leads && !narrow)
        add_resource(&chart, &d, resource);
    add_times(&chart, &d, leads && narrow ? resource : -1);
    if (drawn && !leads)
        add_resource(&chart, &d, resource);
    lab_analysis_add_chart(result, chart, made->arena);
}
