/*
 * phases.c: which runs are the same kernel on the same device, and how phases compare. A gang's
 * ranks are taken one by one: a kernel that ran on four devices at once is compared with each
 * device alone.
 */
#include "analysis/variance/phases.h"

#include "base/list.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define SPREAD_NEGLIGIBLE 0.1 /* as a share: deciles of a run's iterations vary by a few percent */
#define SPREAD_LEAST      10  /* iterations */
#define GROUPS_MOST       4   /* that are named */
#define BASELINE          "baseline"
#define CONCURRENT        "concurrent"
#define NORMAL_DECILES    2.5631031310892007 /* from the first to the last decile, in σ */

/* --- runs --- */

/*
 * From the first decile to the last, in σ of normal values, over the median. Single outliers don't
 * count, but what befalls one iteration in ten does, which the median deviation would miss.
 */
static double spread_of(const struct lab_study_rank *rank) {
    LAB_AUTO(arena, scratch);
    size_t count;
    const double *values = lab_study_intervals(rank, &scratch, &count);
    if (count < SPREAD_LEAST)
        return NAN;
    double spread = lab_stats_quantile(values, count, 0.9) - lab_stats_quantile(values, count, 0.1);
    return spread > 0 ? spread / NORMAL_DECILES / lab_stats_median(values, count) : (double)NAN;
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

static void add_run(struct lab_phase_point *point, const struct lab_study_run *view, int most,
                    struct lab_arena *arena) {
    if (point->time.count == 0) {
        size_t room = (size_t)most;
        point->rates = lab_arena_alloc(arena, 3 * room, sizeof *point->rates);
        point->times_s = point->rates + room;
        point->spreads = point->times_s + room;
        point->time = (struct lab_study_point){
            .name = view->point,
            .runs = lab_arena_alloc(arena, room, sizeof(const struct lab_study_run *)),
            .rates = point->rates,
            .times_s = point->times_s};
        point->spread = point->time;
        point->spread.rates = point->spread.times_s = point->spreads;
    }
    int at = point->spread.count = point->time.count++;
    point->spread.count++;
    point->time.runs[at] = view;
    point->rates[at] = view->rate;
    point->times_s[at] = view->time_s;
    point->spreads[at] = spread_of(&view->ranks[0]);
}

/* --- names --- */

static void move_name(const char **names, int from, int to) {
    const char *name = names[from];
    int step = to < from ? -1 : 1;
    for (int i = from; i != to; i += step)
        names[i] = names[i + step];
    names[to] = name;
}

void lab_phases_order(const char **names, int count) {
    int at = lab_list_find_text(names, count, BASELINE);
    if (at > 0)
        move_name(names, at, 0);
    at = lab_list_find_text(names, count, CONCURRENT);
    if (at > 1)
        move_name(names, at, 1);
    at = lab_list_find_text(names, count, LAB_PHASE_REGRET);
    if (at >= 0)
        move_name(names, at, count - 1);
}

/* --- units --- */

/* -1 = none */
static int find_phase(const struct lab_phases *phases, const char *name) {
    return lab_list_find_text(phases->names, phases->count, name);
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
            there += phases->units[u].points[p].time.count > 0;
        if (there > 1)
            return true;
    }
    return false;
}

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
        phases->repeated |= study->repeated;
        for (int i = 0; i < study->run_count; i++) {
            const char *phase = named                    ? study->runs[i].phase
                                : input->study_count > 1 ? study->name
                                                         : "";
            if (!study->runs[i].used || !phase[0] || strcmp(phase, LAB_PHASE_REGRET) == 0)
                continue;
            phases->runs[phases->run_count] = &study->runs[i];
            phases->run_phases[phases->run_count++] = phase;
            if (find_phase(phases, phase) < 0 && phases->count < LAB_PHASES_MAX)
                phases->names[phases->count++] = phase;
        }
    }
}

/* In that order. */
static void choose_phases(struct lab_phases *phases) {
    phases->base = phases->count > 0 ? 0 : -1;
    phases->concurrent = phases->count > 1 ? 1 : -1;
}

/* --- what the plan says of a phase --- */

static const char *text_in(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_STRING ? value->string : "";
}

static const char *list_in(const struct lab_value *map, const char *key, struct lab_arena *arena) {
    const struct lab_value *list = lab_value_get(map, key);
    const char *text = "";
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            text = lab_arena_printf(arena, "%s%s%s", text, i ? ", " : "", list->items[i]->string);
    return text;
}

static const char *device_word(const struct lab_study_run *run) {
    const char *device = run->ranks[0].device;
    return lab_str_starts(device, "sim:")   ? "GPU"
           : strchr(device, '/')            ? "slice"
           : lab_str_starts(device, "cpu:") ? "CPU device"
                                            : "GPU";
}

/* "4 GPUs at once", "2 slices at once, isolated (process, numa)", "with a neighbour (membw)" */
static const char *title_of(const struct lab_phases *phases, int phase,
                            const struct lab_study_run *run) {
    const char *name = phases->names[phase];
    if (phases->disturb[phase][0])
        return lab_arena_printf(phases->arena, "with a neighbour (%s)", phases->disturb[phase]);
    if (phases->mitigations[phase][0] && strcmp(phases->mitigations[phase], name) != 0)
        return lab_arena_printf(phases->arena, "%s (%s)", name, phases->mitigations[phase]);
    if (!phases->mitigations[phase][0] && lab_str_equal(text_in(run->test, "place"), "together"))
        return lab_arena_printf(phases->arena, "%d %ss at once", run->rank_count, phases->device);
    return strcmp(name, "baseline") == 0 ? "alone" : name;
}

/* "GPUs 0+2, then 1": groups that run one after another; NULL = all run at once. */
static const char *groups_of(const struct lab_phases *phases, int phase) {
    const struct lab_study_run *groups[LAB_PHASES_MAX];
    int count = 0;
    const char *text = "";
    for (int i = 0; i < phases->run_count && count < LAB_PHASES_MAX; i++) {
        const struct lab_study_run *run = phases->runs[i];
        bool known = strcmp(phases->run_phases[i], phases->names[phase]) != 0;
        int at = 0;
        for (int k = 0; k < count; k++) {
            known |= groups[k]->ranks[0].gpu_id == run->ranks[0].gpu_id;
            at += groups[k]->ranks[0].gpu_id < run->ranks[0].gpu_id;
        }
        if (known)
            continue;
        memmove(&groups[at + 1], &groups[at], (size_t)(count++ - at) * sizeof *groups);
        groups[at] = run;
    }
    for (int k = 0; k < count; k++)
        for (int r = 0; r < groups[k]->rank_count; r++)
            text = lab_arena_printf(phases->arena, "%s%s%d", text,
                                    r       ? "+"
                                    : k > 0 ? ", then "
                                            : "",
                                    groups[k]->ranks[r].gpu_id);
    return count < 2             ? NULL
           : count > GROUPS_MOST ? lab_arena_printf(phases->arena, "%d groups in turn", count)
                                 : lab_arena_printf(phases->arena, "%ss %s", phases->device, text);
}

static void describe_phases(struct lab_phases *phases) {
    int ranks[LAB_PHASES_MAX] = {0};
    phases->device = phases->run_count > 0 ? device_word(phases->runs[0]) : "device";
    for (int i = 0; i < phases->run_count; i++) {
        const struct lab_study_run *run = phases->runs[i];
        int p = find_phase(phases, phases->run_phases[i]);
        if (p < 0 || run->rank_count <= ranks[p])
            continue;
        ranks[p] = run->rank_count; /* the run with most devices speaks for its phase */
        phases->disturb[p] = text_in(run->test, "disturb");
        phases->mitigations[p] = list_in(run->test, "apart", phases->arena);
        phases->titles[p] = title_of(phases, p, run);
    }
    for (int p = 0; p < phases->count && phases->concurrent >= 0; p++) {
        bool idle = phases->mitigations[p][0] && ranks[p] < ranks[phases->concurrent];
        const char *groups = idle ? groups_of(phases, p) : NULL;
        if (groups)
            phases->titles[p] =
                lab_arena_printf(phases->arena, "%s (%s)", phases->names[p], groups);
    }
}

void lab_phases_make(const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_phases *ret_phases) {
    struct lab_phases phases = {.base = -1, .concurrent = -1, .arena = arena};
    list_runs(input, &phases, arena);
    lab_phases_order(phases.names, phases.count);
    add_units(&phases, false, arena);
    if (!has_pair(&phases)) /* what identifies runs may differ by phase, as tuned options do */
        add_units(&phases, true, arena);
    LAB_SORT(phases.units, phases.unit_count, LAB_BY_BYTES(phases.units, kernel),
             LAB_BY(phases.units, gpu_id));
    choose_phases(&phases);
    describe_phases(&phases);
    *ret_phases = phases;
}

const char *lab_phases_lack(const struct lab_phases *phases) {
    if (phases->count == 0)
        return "the runs have no phases. 'gpulab run contention' has, and two studies "
               "given together count as two.";
    if (phases->count == 1)
        return lab_arena_printf(phases->arena, "there is only one phase, %s.", phases->names[0]);
    return has_pair(phases)
               ? NULL
               : "no kernel ran in two phases, such as alone and at once, on the same device.";
}

/* --- claims --- */

static bool is_asked(const struct lab_phases *phases, const struct lab_phase_question *question,
                     int unit) {
    const struct lab_phase_unit *it = &phases->units[unit];
    return (question->unit == 0 || question->unit == unit + 1) &&
           (!question->kernel || strcmp(question->kernel, it->kernel) == 0) &&
           it->points[question->phase].time.count > 0 &&
           it->points[question->against].time.count > 0 &&
           !(question->spread && (isnan(it->points[question->phase].spreads[0]) ||
                                  isnan(it->points[question->against].spreads[0])));
}

static struct lab_contrast contrast_of(const struct lab_phases *phases,
                                       const struct lab_phase_question *question) {
    struct lab_contrast contrast = {
        .arena = phases->arena, .value = question->value, .context = question->context};
    int count = 0;
    for (int u = 0; u < phases->unit_count; u++)
        count += is_asked(phases, question, u);
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_phase_point *other = &phases->units[u].points[question->phase],
                                     *base = &phases->units[u].points[question->against];
        if (is_asked(phases, question, u))
            lab_contrast_add_pair(&contrast, question->spread ? &base->spread : &base->time,
                                  question->spread ? &other->spread : &other->time, 1.0 / count);
    }
    return contrast;
}

double lab_phases_mean(const struct lab_phases *phases, const struct lab_phase_question *question,
                       int phase) {
    struct lab_contrast contrast = contrast_of(phases, question);
    double logs = 0;
    int count = 0;
    for (int u = 0; u < phases->unit_count; u++)
        if (is_asked(phases, question, u)) {
            logs += log(
                lab_contrast_mean(&contrast, &phases->units[u].points[phase].time, LAB_STUDY_TIME));
            count++;
        }
    return count > 0 ? exp(logs / count) : (double)NAN;
}

struct lab_claim lab_phases_ask(const struct lab_phases *phases,
                                const struct lab_phase_question *question) {
    struct lab_contrast contrast = contrast_of(phases, question);
    struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_TIME);
    const char *title = phases->titles[question->phase];
    claim = lab_claim_named(
        claim, question->kind,
        question->what ? lab_arena_printf(phases->arena, "%s, %s", question->what, title) : title,
        phases->titles[question->against], question->quantity);
    if (question->spread) { /* nobody repeats runs to see 2% of it */
        claim.needed = 0;
        claim.negligible = SPREAD_NEGLIGIBLE;
        lab_claim_judge(&claim, claim.p);
    }
    return claim;
}

bool lab_phases_cover(const struct lab_phases *phases, int phase, int other) {
    for (int u = 0; u < phases->unit_count; u++)
        if (phases->units[u].points[phase].time.count > 0 &&
            phases->units[u].points[other].time.count == 0)
            return false;
    return true;
}
