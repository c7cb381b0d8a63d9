/* plan_record.c: a plan's runs as records of the store. */
#include "run/plan_record.h"

#include "base/json.h"

#include <assert.h>
#include <math.h>

/* What the phase was, so that whoever reads the runs need not know the study's file. */
static void add_phase(const struct lab_plan *plan, const struct lab_plan_run *run,
                      struct lab_value *map, struct lab_arena *arena) {
    const struct lab_plan_phase *phase = run->phase;
    struct lab_value *apart = lab_value_list(arena);
    for (int bit = 0; lab_plan_mitigations[bit]; bit++)
        if (phase->mitigations & (1u << bit))
            lab_value_append(arena, apart, lab_value_string(arena, lab_plan_mitigations[bit]));
    lab_value_set_string(arena, map, "phase", phase->name);
    lab_value_set_string(arena, map, "place", phase->together ? "together" : "alone");
    lab_value_set_string(arena, map, "processes",
                         run->processes == LAB_PLAN_SHARED ? "shared" : "per_rank");
    lab_value_set(arena, map, "apart", apart);
    lab_value_set_string(arena, map, "disturb", phase->disturb);
    lab_value_set_float(arena, map, "duration_s", run->duration_s);
    lab_value_set_float(arena, map, "tune_s", run->tune_s);
    lab_value_set(arena, map, "notes", lab_value_strings(arena, plan->notes));
}

static const char *test_text(const struct lab_plan *plan, const struct lab_plan_run *run,
                             struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "num_samples", run->num_samples);
    lab_value_set_int(arena, map, "warmup_samples", run->warmup_samples);
    lab_value_set_float(arena, map, "timeout_s", run->timeout_s);
    if (run->processes == LAB_PLAN_LAUNCHER)
        lab_value_set_string(arena, map, "processes", "launcher");
    if (run->phase)
        add_phase(plan, run, map, arena);
    if (run->slot_count > 0)
        lab_value_set_bool(arena, map, LAB_RUN_SPREAD, true);
    return lab_json_text(map, arena);
}

/* Where a run will be; a spread one is placed when it begins. */
static const struct lab_run_rank *ranks_of(const struct lab_plan_run *run,
                                           struct lab_arena *arena) {
    if (run->slot_count == 0)
        return run->ranks;
    struct lab_run_rank *ranks = lab_arena_alloc(arena, (size_t)run->rank_count, sizeof *ranks);
    for (int i = 0; i < run->rank_count; i++)
        ranks[i] = (struct lab_run_rank){.gpu_id = -1, .device = LAB_PLAN_ANY, .numa_node = -1};
    return ranks;
}

static struct lab_run make_record(const struct lab_plan *plan, int index,
                                  const struct lab_run *like, struct lab_arena *arena) {
    assert(index >= 0 && index < plan->run_count);
    const struct lab_plan_run *run = &plan->runs[index];
    return (struct lab_run){
        .number = index + 1,
        .id = run->id,
        .identity = run->identity,
        .position = index,
        .repeat = run->repeat,
        .workload = run->workload,
        .label = run->label,
        .options = like ? like->options : lab_json_text(run->options, arena),
        .series = like ? like->series : lab_json_text(lab_value_strings(arena, run->series), arena),
        .test = like ? like->test : test_text(plan, run, arena),
        .iterations = run->iterations,
        .warmup_iterations = run->warmup_iterations,
        .ranks = ranks_of(run, arena),
        .rank_count = run->rank_count,
        .state = LAB_RUN_PLANNED,
        .error = "",
        .rate = NAN,
        .rate_low = NAN,
        .rate_high = NAN,
        .rate_unit = "",
        .spread = run->slot_count > 0,
    };
}

struct lab_run lab_run_plan_record(const struct lab_plan *plan, int index,
                                   struct lab_arena *arena) {
    return make_record(plan, index, NULL, arena);
}

/* Whether their texts are the same; what differs may be the place and the repeat. */
static bool is_alike(const struct lab_plan_run *a, const struct lab_plan_run *b) {
    return a->options == b->options && a->series == b->series && a->phase == b->phase &&
           a->num_samples == b->num_samples && a->warmup_samples == b->warmup_samples &&
           a->timeout_s == b->timeout_s && a->processes == b->processes &&
           a->duration_s == b->duration_s && a->tune_s == b->tune_s &&
           (a->slot_count > 0) == (b->slot_count > 0);
}

struct lab_run lab_run_plan_record_with(const struct lab_plan *plan, int index,
                                        struct lab_plan_texts *texts, struct lab_arena *arena) {
    int kept = texts->count < LAB_PLAN_TEXTS ? texts->count : LAB_PLAN_TEXTS;
    for (int i = 0; i < kept; i++)
        if (is_alike(&plan->runs[texts->runs[i].position], &plan->runs[index]))
            return make_record(plan, index, &texts->runs[i], arena);
    struct lab_run made = make_record(plan, index, NULL, arena);
    texts->runs[texts->count++ % LAB_PLAN_TEXTS] = made;
    return made;
}

struct lab_run *lab_run_plan_records(const struct lab_plan *plan, struct lab_arena *arena) {
    struct lab_run *runs = lab_arena_alloc(arena, (size_t)plan->run_count, sizeof *runs);
    struct lab_plan_texts texts = {.count = 0};
    for (int i = 0; i < plan->run_count; i++)
        runs[i] = lab_run_plan_record_with(plan, i, &texts, arena);
    return runs;
}
