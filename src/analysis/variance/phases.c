/*
 * phases.c: which runs are the same kernel on the same device, and how phases compare.
 *
 * A gang's ranks are taken one by one: a kernel that ran on four devices at once is held against
 * each device alone.
 */
#include "analysis/variance/phases.h"
#include "analysis/analysis_build.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE     0.95
#define SPREAD_LEAST   10 /* iterations */
#define WITHIN_VALUES  600
#define WITHIN_SAMPLES 300
#define WITHIN_SEED    0x5eed
#define NORMAL_DECILES 2.5631031310892007 /* from the first to the last decile, in σ */

/* --- spread --- */

/*
 * From the first decile to the last, in σ of normal values, over the median. Single outliers don't
 * count, but what befalls one iteration in ten does, which the median deviation would miss.
 */
static double relative_spread(const double *x, size_t n) {
    double median = lab_stats_quantile(x, n, 0.5);
    return (lab_stats_quantile(x, n, 0.9) - lab_stats_quantile(x, n, 0.1)) / NORMAL_DECILES /
           median;
}

static double spread_of(const struct lab_study_rank *rank) {
    LAB_AUTO(arena, scratch);
    size_t count;
    const double *values = lab_study_intervals(rank, &scratch, &count);
    double spread = count >= SPREAD_LEAST ? relative_spread(values, count) : (double)NAN;
    return spread > 0 ? spread : (double)NAN;
}

/* Within one run, by blocks; every so manieth iteration where there are many. */
static struct lab_interval within_spread(const struct lab_study_rank *rank) {
    LAB_AUTO(arena, scratch);
    size_t count, n = 0;
    const double *values = lab_study_intervals(rank, &scratch, &count);
    size_t step = (count + WITHIN_VALUES - 1) / WITHIN_VALUES;
    double *kept = lab_arena_alloc(&scratch, WITHIN_VALUES + 1, sizeof *kept);
    for (size_t i = 0; i < count; i += step)
        kept[n++] = values[i];
    return lab_stats_block_interval(kept, n, relative_spread, 0, CONFIDENCE, WITHIN_SAMPLES,
                                    WITHIN_SEED);
}

/*
 * The ratio's interval from each side's own (Zou and Donner 2008: squares of the distances to the
 * ends add up), in logarithms.
 */
static void set_within(struct lab_study_ratio *ratio, const struct lab_phase_point *base,
                       const struct lab_phase_point *other) {
    struct lab_interval a = within_spread(&base->point.runs[0]->ranks[0]);
    struct lab_interval b = within_spread(&other->point.runs[0]->ranks[0]);
    double of_a = log(base->spreads[0]), of_b = log(other->spreads[0]);
    double low = hypot(of_b - log(b.low), log(a.high) - of_a);
    double high = hypot(log(b.high) - of_b, of_a - log(a.low));
    if (isnan(low) || isnan(high) || isinf(low) || isinf(high))
        return;
    double error = (low + high) / 2 / lab_stats_normal_quantile((1 + CONFIDENCE) / 2);
    ratio->within = true;
    ratio->confidence = CONFIDENCE;
    ratio->low = exp(of_b - of_a - low);
    ratio->high = exp(of_b - of_a + high);
    ratio->bound = fmax(fabs(ratio->low - 1), fabs(ratio->high - 1));
    ratio->p = error > 0 ? 2 * lab_stats_normal_cdf(-fabs(of_b - of_a) / error) : (double)NAN;
}

static struct lab_study_ratio compare_values(const double *base, int base_count,
                                             const double *other, int other_count) {
    struct lab_study_point a = {.count = base_count, .rates = base, .times_s = base};
    struct lab_study_point b = {.count = other_count, .rates = other, .times_s = other};
    return lab_study_compare(&a, &b, LAB_STUDY_TIME);
}

/* --- units --- */

static int find_phase(struct lab_phases *phases, const char *name) {
    int phase = 0;
    while (phase < phases->count && strcmp(phases->names[phase], name) != 0)
        phase++;
    if (phase == LAB_PHASES_MAX)
        return -1;
    if (phase == phases->count)
        phases->names[phases->count++] = name;
    return phase;
}

static struct lab_phase_unit *
find_unit(struct lab_phases *phases, const struct lab_phase_entry *entry, struct lab_arena *arena) {
    const struct lab_study_rank *rank = &entry->run->ranks[entry->rank];
    for (int i = 0; i < phases->unit_count; i++)
        if (phases->units[i].gpu_id == rank->gpu_id &&
            strcmp(phases->units[i].key, entry->key) == 0)
            return &phases->units[i];
    struct lab_phase_unit *unit = &phases->units[phases->unit_count++];
    *unit = (struct lab_phase_unit){
        .key = entry->key,
        .kernel = entry->name,
        .device = lab_study_device_title(rank->device, arena),
        .gpu_id = rank->gpu_id,
        .points = lab_arena_alloc(arena, LAB_PHASES_MAX, sizeof *unit->points)};
    return unit;
}

/* What the rank itself said, where runs were tuned rank by rank; NULL = the run speaks for it. */
static const struct lab_result *own_result(const struct lab_study_run *run, int rank) {
    if (rank >= run->result->rank_count)
        return NULL;
    const struct lab_result *own = &run->result->ranks[rank];
    bool probed = !isnan(own->capacity_flops_per_second) || !isnan(own->capacity_memory_gb_per_s) ||
                  !isnan(own->capacity_h2d_gb_per_s) || !isnan(own->capacity_d2h_gb_per_s) ||
                  !isnan(own->capacity_clock_mhz);
    return own->best_config || probed ? own : NULL;
}

/* One rank of a run as a run of its own. */
static const struct lab_study_run *view_of(const struct lab_study_run *run, int rank,
                                           struct lab_arena *arena) {
    const struct lab_result *own = own_result(run, rank);
    if (run->rank_count == 1 && !own)
        return run;
    struct lab_study_run *view = lab_arena_alloc(arena, 1, sizeof *view);
    *view = *run;
    view->result = own ? own : run->result;
    if (run->rank_count == 1)
        return view;
    view->ranks = &run->ranks[rank];
    view->rank_count = 1;
    view->rate = run->ranks[rank].rate;
    view->time_s = run->work.samples > 0 ? run->work.samples / view->rate : 1 / view->rate;
    LAB_AUTO(arena, scratch);
    size_t count;
    const double *values = lab_study_intervals(view->ranks, &scratch, &count);
    if (count > 0)
        view->time_s = lab_stats_median(values, count);
    return view;
}

static double best_time(const struct lab_study_run *run) {
    double time_ms = run->result->best_time_ms;
    return time_ms > 0 ? 1e-3 * time_ms : (double)NAN;
}

static void add_run(struct lab_phase_point *point, const struct lab_study_run *view, int most,
                    struct lab_arena *arena) {
    if (point->point.count == 0) {
        size_t room = (size_t)most;
        point->point = (struct lab_study_point){
            .name = view->point,
            .runs = lab_arena_alloc(arena, room, sizeof(const struct lab_study_run *))};
        point->point.rates = point->rates = lab_arena_alloc(arena, room, sizeof *point->rates);
        point->point.times_s = point->times_s =
            lab_arena_alloc(arena, room, sizeof *point->times_s);
        point->spreads = lab_arena_alloc(arena, room, sizeof *point->spreads);
        point->best_times = lab_arena_alloc(arena, room, sizeof *point->best_times);
    }
    int at = point->point.count++;
    point->point.runs[at] = view;
    point->rates[at] = view->rate;
    point->times_s[at] = view->time_s;
    point->spreads[at] = spread_of(&view->ranks[0]);
    point->best_times[at] = best_time(view);
}

/* How many runs a point may have at most: those of its kernel's model. */
static int count_alike(const struct lab_phases *phases, int number) {
    int count = 0;
    for (int i = 0; i < phases->run_count; i++)
        count += strcmp(phases->runs[i]->model, phases->runs[number]->model) == 0 &&
                 strcmp(phases->run_phases[i], phases->run_phases[number]) == 0;
    return count;
}

static void add_units(struct lab_phases *phases, bool by_model, struct lab_arena *arena) {
    struct lab_phase_entry *entries = NULL;
    int count = 0;
    for (int i = 0; i < phases->run_count; i++) {
        int phase = find_phase(phases, phases->run_phases[i]);
        for (int r = 0; phase >= 0 && r < phases->runs[i]->rank_count; r++)
            LAB_ADD(entries, count, arena) = (struct lab_phase_entry){
                .run = phases->runs[i], .number = i, .rank = r, .phase = phase};
    }
    lab_phases_name(entries, count, by_model, arena);
    phases->unit_count = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_phase_entry *entry = &entries[i];
        struct lab_phase_unit *unit = find_unit(phases, entry, arena);
        add_run(&unit->points[entry->phase], view_of(entry->run, entry->rank, arena),
                count_alike(phases, entry->number) * entry->run->rank_count, arena);
    }
}

static bool has_pair(const struct lab_phases *phases) {
    for (int u = 0; u < phases->unit_count; u++) {
        int there = 0;
        for (int p = 0; p < phases->count; p++)
            there += phases->units[u].points[p].point.count > 0;
        if (there > 1)
            return true;
    }
    return false;
}

/* --- runs --- */

static void list_runs(const struct lab_analysis_input *input, struct lab_phases *phases,
                      struct lab_arena *arena) {
    int total = 0, ranks = 0;
    bool named = false;
    for (int s = 0; s < input->study_count; s++)
        for (int i = 0; i < input->studies[s].run_count; i++) {
            total++;
            ranks += input->studies[s].runs[i].rank_count;
            named |= input->studies[s].runs[i].phase[0] != '\0';
        }
    phases->runs = lab_arena_alloc(arena, (size_t)total + 1, sizeof *phases->runs);
    phases->run_phases = lab_arena_alloc(arena, (size_t)total + 1, sizeof *phases->run_phases);
    phases->units = lab_arena_alloc(arena, (size_t)ranks + 1, sizeof *phases->units);
    for (int s = 0; s < input->study_count; s++) {
        const struct lab_study_table *study = &input->studies[s];
        phases->simulated |= study->simulated;
        for (int i = 0; i < study->run_count; i++) {
            const char *phase = named                    ? study->runs[i].phase
                                : input->study_count > 1 ? study->name
                                                         : "";
            if (!study->runs[i].used || !phase[0] || strcmp(phase, LAB_PHASE_REGRET) == 0)
                continue;
            phases->runs[phases->run_count] = &study->runs[i];
            phases->run_phases[phases->run_count++] = phase;
        }
    }
}

static void choose_phases(struct lab_phases *phases) {
    phases->base = phases->count > 0 ? 0 : -1;
    for (int p = 0; p < phases->count; p++)
        if (strcmp(phases->names[p], "baseline") == 0)
            phases->base = p;
    phases->concurrent = -1;
    for (int p = phases->count - 1; p >= 0; p--)
        if (p != phases->base)
            phases->concurrent = p;
    for (int p = 0; p < phases->count; p++)
        if (p != phases->base && strcmp(phases->names[p], "concurrent") == 0)
            phases->concurrent = p;
}

/* --- pairs --- */

static struct lab_phase_pair make_pair(const struct lab_phases *phases, int unit, int phase) {
    const struct lab_phase_point *base = &phases->units[unit].points[phases->base];
    const struct lab_phase_point *other = &phases->units[unit].points[phase];
    struct lab_phase_pair pair = {.unit = unit, .phase = phase, .base = base, .other = other};
    int of_base = base->point.count, of_other = other->point.count;
    pair.time = lab_study_compare(&base->point, &other->point, LAB_STUDY_TIME);
    pair.spread = compare_values(base->spreads, of_base, other->spreads, of_other);
    pair.best = compare_values(base->best_times, of_base, other->best_times, of_other);
    if (of_base == 1 && of_other == 1 && !isnan(pair.spread.ratio))
        set_within(&pair.spread, base, other);
    return pair;
}

/* Verdicts hold for all pairs together. */
static void adjust(struct lab_phases *phases, struct lab_arena *arena) {
    struct lab_study_ratio *ratios =
        lab_arena_alloc(arena, (size_t)phases->pair_count + 1, sizeof *ratios);
    for (int figure = 0; figure < 3; figure++) {
        for (int i = 0; i < phases->pair_count; i++) {
            struct lab_phase_pair *pair = &phases->pairs[i];
            ratios[i] = figure == 0 ? pair->time : figure == 1 ? pair->spread : pair->best;
        }
        lab_study_adjust(ratios, phases->pair_count);
        for (int i = 0; i < phases->pair_count; i++) {
            struct lab_phase_pair *pair = &phases->pairs[i];
            *(figure == 0 ? &pair->time : figure == 1 ? &pair->spread : &pair->best) = ratios[i];
        }
    }
}

void lab_phases_make(const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_phases *ret_phases) {
    struct lab_phases phases = {.base = -1, .concurrent = -1};
    list_runs(input, &phases, arena);
    add_units(&phases, false, arena);
    if (!has_pair(&phases)) /* what tells runs apart may differ by phase, as tuned options do */
        add_units(&phases, true, arena);
    choose_phases(&phases);
    phases.pairs = lab_arena_alloc(
        arena, (size_t)phases.unit_count * (size_t)(phases.count + 1) + 1, sizeof *phases.pairs);
    for (int u = 0; u < phases.unit_count; u++)
        for (int p = 0; p < phases.count; p++)
            if (p != phases.base && phases.units[u].points[phases.base].point.count > 0 &&
                phases.units[u].points[p].point.count > 0)
                phases.pairs[phases.pair_count++] = make_pair(&phases, u, p);
    adjust(&phases, arena);
    *ret_phases = phases;
}
