/* advise.c: from the claims of a study to what to do. */
#include "advise/advise.h"

#include "advise/advise_place.h"
#include "analysis/analysis.h"
#include "analysis/analysis_words.h"
#include "analysis/numa/numa.h"
#include "base/list.h"
#include "base/str.h"
#include "load/study_view.h"

#include <math.h>

/* --- claims --- */

static void add_claim(struct lab_claim **claims, int *count, struct lab_claim claim,
                      struct lab_arena *arena) {
    struct lab_claim *grown = lab_arena_alloc(arena, (size_t)*count + 1, sizeof *grown);
    for (int i = 0; i < *count; i++)
        grown[i] = (*claims)[i];
    grown[(*count)++] = claim;
    *claims = grown;
}

/* --- binding --- */

struct bindings { /* of devices that were bound to several nodes */
    const struct lab_numa_device **devices;
    int *chosen;
    struct lab_claim *claims, pooled; /* one each, and their mean */
    int count;
};

static int choose_node(const struct lab_numa_device *device, const struct lab_advice *before) {
    for (int i = 0; before && i < before->line_count; i++)
        for (int n = 0; n < device->node_count; n++)
            if (lab_str_equal(before->lines[i].device, device->title) &&
                before->lines[i].numa_node == device->nodes[n].number)
                return n;
    return before ? device->reference : lab_numa_best_node(device);
}

static struct bindings find_bindings(const struct lab_study_table *study,
                                     const struct lab_numa_grid *grid,
                                     const struct lab_advice *before, struct lab_arena *arena) {
    size_t room = (size_t)grid->device_count + 1;
    struct bindings bindings = {.devices = lab_arena_alloc(arena, room, sizeof *bindings.devices),
                                .chosen = lab_arena_alloc(arena, room, sizeof *bindings.chosen),
                                .claims = lab_arena_alloc(arena, room, sizeof *bindings.claims)};
    struct lab_claim **family = lab_arena_alloc(arena, room, sizeof *family);
    bool local = true;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        int chosen = choose_node(device, before), at = bindings.count;
        if (device->binding.verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        local = local && device->nodes[chosen].number == device->home;
        bindings.devices[at] = device;
        bindings.chosen[at] = chosen;
        bindings.claims[at] = before ? lab_numa_claim_binding(grid, device, chosen, arena)
                                     : device->binding; /* as certain as the study's answer */
        bindings.claims[at].simulated = study->simulated;
        family[bindings.count++] = &bindings.claims[at];
    }
    if (before)
        lab_claim_adjust(family, bindings.count);
    struct lab_contrast all = {.arena = arena};
    for (int i = 0; i < bindings.count; i++) {
        int pairs = lab_numa_add_pairs(grid, bindings.devices[i], bindings.chosen[i], 0, NULL);
        lab_numa_add_pairs(grid, bindings.devices[i], bindings.chosen[i],
                           1.0 / pairs / bindings.count, &all);
    }
    bindings.pooled = lab_claim_named(lab_claim_estimate(&all, LAB_STUDY_RATE), "advise.bind_all",
                                      local ? "Local NUMA nodes" : "Advised NUMA nodes",
                                      "the other NUMA nodes", "throughput");
    bindings.pooled.simulated = study->simulated;
    bindings.pooled.mean_of =
        lab_arena_printf(arena, "%d device%s", bindings.count, bindings.count == 1 ? "" : "s");
    return bindings;
}

/* --- lines --- */

static struct lab_advice_line make_line(const struct lab_study_rank *ranks, int count,
                                        const struct lab_study_table *study,
                                        struct lab_arena *arena) {
    struct lab_advice_place place =
        lab_advice_place_make(ranks, count, study->machine, study->simulated, arena);
    struct lab_advice_line line = {.numa_node = ranks[0].numa_node, .missing = place.missing};
    if (place.missing)
        return line;
    line.cpus = place.cpus;
    line.plain = count == 1 ? lab_advice_place_line(&place, arena) : NULL;
    line.torchrun = lab_advice_place_torchrun(&place, arena);
    line.mpirun = lab_advice_place_mpi(&place, arena);
    line.srun = lab_advice_place_slurm(&place, arena);
    return line;
}

/* Where the device ran when it was bound so. */
static const struct lab_study_rank *find_rank(const struct lab_numa_grid *grid,
                                              const struct lab_numa_device *device, int node) {
    for (int m = 0; m < grid->model_count; m++)
        if (lab_numa_cell_at(device, m, node)->point)
            return &lab_numa_cell_at(device, m, node)->point->runs[0]->ranks[0];
    return NULL;
}

/* Adds the chosen node of that configuration against the others; returns how many pairs there are.
 * `ret_certain`: that one of the others differs. */
static int add_configuration(const struct lab_numa_device *device, int model, int chosen,
                             struct lab_contrast *contrast, bool *ret_certain) {
    int pairs = 0;
    for (int n = 0; n < device->node_count; n++) {
        const struct lab_study_point *base = lab_numa_cell_at(device, model, n)->point,
                                     *other = lab_numa_cell_at(device, model, chosen)->point;
        *ret_certain |= lab_numa_cell_at(device, model, n)->claim.verdict == LAB_CLAIM_YES;
        if (n == chosen || !base || !other)
            continue;
        lab_contrast_add_pair(contrast, base, other, 1);
        pairs++;
    }
    return pairs;
}

/* What a mean over all models hides: those without a difference gain nothing. Of a model with
 * several settings it is their mean. */
static void set_range(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                      int chosen, struct lab_advice_line *line, struct lab_arena *arena) {
    const struct lab_numa_model *models = grid->models;
    line->least = INFINITY;
    line->most = -INFINITY;
    for (int m = 0; m < grid->model_count; m++) {
        struct lab_contrast contrast = {.arena = arena};
        bool certain = false;
        int pairs = 0, settings = 0;
        if (LAB_FIND(models, m, whole, models[m].whole) >= 0)
            continue;
        for (int k = m; k < grid->model_count; k++)
            if (lab_str_equal(models[k].whole, models[m].whole)) {
                pairs += add_configuration(device, k, chosen, &contrast, &certain);
                settings++;
            }
        line->averaged |= settings > 1;
        for (int t = 0; t < contrast.count; t++)
            contrast.terms[t].weight /= pairs;
        if (pairs == 0)
            continue;
        double gain = certain ? lab_claim_estimate(&contrast, LAB_STUDY_RATE).effect : 0;
        line->least = fmin(line->least, gain);
        line->most = fmax(line->most, gain);
    }
}

static void add_lines(struct lab_advice *advice, const struct lab_study_table *study,
                      const struct lab_numa_grid *grid, const struct bindings *bindings,
                      struct lab_arena *arena) {
    size_t room = (size_t)bindings->count + 1;
    struct lab_study_rank *ranks = lab_arena_alloc(arena, room, sizeof *ranks);
    advice->lines = lab_arena_alloc(arena, room, sizeof *advice->lines);
    for (int i = 0; i < bindings->count; i++) {
        const struct lab_claim *claim = &bindings->claims[i];
        if (claim->verdict != LAB_CLAIM_YES || claim->effect < 0)
            continue;
        ranks[advice->line_count] = *find_rank(grid, bindings->devices[i], bindings->chosen[i]);
        struct lab_advice_line line = make_line(&ranks[advice->line_count], 1, study, arena);
        line.device = bindings->devices[i]->title;
        line.provisional = !lab_numa_home_tested(bindings->devices[i]);
        line.local_node = bindings->devices[i]->home;
        line.gain = *claim;
        set_range(grid, bindings->devices[i], bindings->chosen[i], &line, arena);
        advice->lines[advice->line_count++] = line;
    }
    if (advice->line_count > 1)
        advice->all = make_line(ranks, advice->line_count, study, arena);
}

/* --- settings and phases --- */

/* Whether claims of this kind are advice; `better`: that their subject is better. */
static bool is_choice(const struct lab_claim *claim, bool *ret_better) {
    static const char *const kinds[] = {"recommend.batch",
                                        "recommend.compile",
                                        "recommend.settings",
                                        "contention.throughput",
                                        "peers.device",
                                        "peers.class",
                                        NULL};
    *ret_better = lab_str_equal(claim->quantity, "time") ? claim->effect < 0 : claim->effect > 0;
    return lab_str_find(claim->kind, kinds) >= 0;
}

/* One batch is advised, one list of settings: the first that gains (recommend.h). */
static bool has_level(const struct lab_advice *advice, const struct lab_claim *claim) {
    return lab_str_starts(claim->kind, "recommend.") &&
           LAB_FIND(advice->choices, advice->choice_count, kind, claim->kind) >= 0;
}

static const struct lab_claim *told_of(const struct lab_claim *device,
                                       const struct lab_analysis_result *result,
                                       struct lab_arena *arena) {
    const struct lab_claim **claims =
        lab_arena_alloc(arena, (size_t)result->claim_count + 1, sizeof *claims);
    for (int i = 0; i < result->claim_count; i++)
        claims[i] = &result->claims[i];
    return lab_words_told(device, claims, result->claim_count);
}

static void add_choices(struct lab_advice *advice, const struct lab_study_table *study,
                        struct lab_arena *arena) {
    static const char *const names[] = {"recommend", "contention", "peers"};
    struct lab_analysis_input input = {.studies = study, .study_count = 1};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct lab_analysis *analysis = lab_analysis_find(names[i], NULL);
        struct lab_analysis_result result;
        if (!analysis || analysis->interest(study) == 0 ||
            lab_analysis_run(analysis, NULL, &input, arena, &result, NULL) < 0)
            continue;
        for (int c = 0; c < result.claim_count; c++) {
            const struct lab_claim *claim = &result.claims[c];
            bool better, avoided = lab_str_starts(claim->kind, "peers.");
            if (!is_choice(claim, &better) || claim->verdict == LAB_CLAIM_NOT_TESTED)
                continue;
            add_claim(&advice->tested, &advice->tested_count, *claim, arena);
            if (lab_str_equal(claim->kind, "peers.class"))
                continue; /* told in place of its device's */
            if (lab_str_equal(claim->kind, "peers.device"))
                claim = told_of(claim, &result, arena);
            if (claim->verdict != LAB_CLAIM_YES || better == avoided || has_level(advice, claim))
                continue;
            add_claim(&advice->choices, &advice->choice_count, *claim, arena);
            if (lab_str_equal(claim->kind, "contention.throughput"))
                advice->command = result.command;
        }
    }
}

/* --- the whole --- */

static const char *make_answer(const struct lab_advice *advice, const struct bindings *bindings,
                               struct lab_arena *arena) {
    const struct lab_claim *claim = advice->choice_count > 0   ? &advice->choices[0]
                                    : advice->tested_count > 0 ? &advice->tested[0]
                                                               : &lab_claim_none;
    const char *what = advice->choice_count > 0 ? "" : "No setting is advised. ";
    if (bindings->count > 0) {
        bool pooled = advice->line_count == 0 || bindings->pooled.verdict == LAB_CLAIM_YES;
        claim = pooled ? &bindings->pooled : &advice->lines[0].gain;
        what = advice->line_count == 0 ? "No binding is advised. "
               : advice->line_count == bindings->count
                   ? "Bind each device as below. "
                   : lab_arena_printf(arena, "Bind %d of %d devices as below. ", advice->line_count,
                                      bindings->count);
    }
    return lab_arena_printf(arena, "%s%s.", what, lab_claim_sentence(claim, arena));
}

struct lab_advice lab_advice_make(const struct lab_study_table *study,
                                  const struct lab_advice *before, struct lab_arena *arena) {
    struct lab_advice advice = {.study = lab_study_view_shorten(study->folder, arena),

                                .simulated = study->simulated,
                                .unbound = ""};
    struct bindings bindings = {0};
    if (!lab_study_has_phases(study)) {
        struct lab_numa_grid grid = lab_numa_grid_make(study, "", arena);
        bindings = find_bindings(study, &grid, before, arena);
        add_lines(&advice, study, &grid, &bindings, arena);
        advice.unbound = before || advice.line_count == 0 ? "" : lab_numa_unbound(&grid, arena);
    }
    if (bindings.count > 1)
        add_claim(&advice.tested, &advice.tested_count, bindings.pooled, arena);
    for (int i = 0; i < bindings.count; i++)
        add_claim(&advice.tested, &advice.tested_count, bindings.claims[i], arena);
    add_choices(&advice, study, arena);
    lab_advice_add_untested(&advice, study, arena);
    advice.answer = make_answer(&advice, &bindings, arena);
    return advice;
}
