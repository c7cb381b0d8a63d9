/* selftest.c: one point's runs under many names, and how often claims find a difference. */
#include "campaign/selftest.h"

#include "analysis/analysis.h"
#include "base/list.h"
#include "base/random.h"
#include "base/str.h"
#include "stats/stats.h"

#define ANALYSES_MOST 64

/* --- names --- */

static void set(struct lab_study_run *run, const char *key, struct lab_value *value,
                struct lab_arena *arena) {
    const struct lab_value **maps[] = {&run->options, &run->test};
    for (int i = 0; i < 2; i++) {
        struct lab_value *copy = lab_value_map(arena);
        for (int k = 0; *maps[i] && k < (*maps[i])->count; k++)
            lab_value_set(arena, copy, (*maps[i])->keys[k], (*maps[i])->items[k]);
        lab_value_set(arena, copy, key, value);
        *maps[i] = copy;
    }
}

static void set_rank(struct lab_study_run *run, int rank, int device, int node,
                     struct lab_arena *arena) {
    run->ranks[rank].gpu_id = run->ranks[rank].gpu = device;
    run->ranks[rank].device = lab_arena_printf(arena, "cuda:%d", device);
    run->ranks[rank].numa_node = node;
    run->ranks[rank].device_node = device % 2;
    run->ranks[rank].distance = node == device % 2 ? 10 : 21;
}

static void name_placement(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, name & 3, name >> 2, arena);
}

static void name_settings(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, 0, 0, arena);
    set(run, "compile_model", lab_value_bool(arena, name & 1), arena);
    set(run, "batch_size", lab_value_int(arena, name & 2 ? 8 : 4), arena);
    set(run, "memory_size_mb", lab_value_int(arena, name & 4 ? 16 : 8), arena);
}

static void name_phase(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, name >> 1 & 1, name >> 1 & 1, arena);
    run->phase = name & 1 ? "concurrent" : "baseline";
    run->model = name & 4 ? "b" : "a";
    set(run, "place", lab_value_string(arena, name & 1 ? "together" : "alone"), arena);
}

static void name_mitigation(struct lab_study_run *run, int name, struct lab_arena *arena) {
    static const char *const phases[] = {"baseline", "concurrent", "isolated", "disturbed"};
    struct lab_value *apart = lab_value_list(arena);
    set_rank(run, 0, 0, 0, arena);
    run->phase = phases[name & 3];
    run->model = name & 4 ? "b" : "a";
    if ((name & 3) == 2)
        lab_value_append(arena, apart, lab_value_string(arena, "numa"));
    if ((name & 3) == 3)
        set(run, "disturb", lab_value_string(arena, "membw"), arena);
    set(run, "apart", apart, arena);
    set(run, "place", lab_value_string(arena, name & 1 ? "together" : "alone"), arena);
}

static void name_models(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, name & 3, name & 1, arena);
    run->model = name & 4 ? "b" : "a";
}

static void name_compiled(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, 0, name & 1, arena);
    set(run, "compile_model", lab_value_bool(arena, name & 2), arena);
    run->model = name & 4 ? "b" : "a";
}

static void name_sizes(struct lab_study_run *run, int name, struct lab_arena *arena) {
    set_rank(run, 0, name >> 1 & 1, name & 1, arena);
    set(run, "memory_size_mb", lab_value_int(arena, name & 4 ? 16 : 8), arena);
}

static void name_gang(struct lab_study_run *run, int name, struct lab_arena *arena) {
    struct lab_study_rank *ranks = lab_arena_alloc(arena, 2, sizeof *ranks);
    ranks[0] = ranks[1] = run->ranks[0];
    run->ranks = ranks;
    run->rank_count = 1 + (name & 1);
    set_rank(run, 0, name & 1 ? 0 : name >> 1 & 1, 0, arena);
    set_rank(run, 1, name & 2 ? 2 : 1, 0, arena);
    run->model = lab_arena_printf(arena, "m%d", name >> 2);
}

static void (*const namings[])(struct lab_study_run *run, int name, struct lab_arena *arena) = {
    name_placement,  name_settings, name_phase,    name_gang,
    name_mitigation, name_models,   name_compiled, name_sizes};
#define NAMINGS (int)(sizeof namings / sizeof *namings)

/* The run backwards in time: what drifts up drifts down. */
static const struct lab_study_run *reverse(const struct lab_study_run *run,
                                           struct lab_arena *arena) {
    struct lab_study_run *copy = lab_arena_alloc(arena, 1, sizeof *copy);
    *copy = *run;
    copy->ranks = lab_arena_alloc(arena, 1, sizeof *copy->ranks);
    copy->ranks[0] = run->ranks[0];
    size_t count = run->ranks[0].iteration_count;
    const struct lab_iteration *old = run->ranks[0].iterations;
    struct lab_iteration *items = lab_arena_alloc(arena, count + 1, sizeof *items);
    for (size_t i = 0; old && i < count; i++) { /* ends, from which intervals are taken */
        const struct lab_iteration *from = &old[count - 1 - i];
        int64_t later_ns = old[0].end_ns + old[count - 1].end_ns - 2 * from->end_ns;
        items[i] = *from;
        items[i].start_ns += later_ns;
        items[i].end_ns += later_ns;
        for (int k = 0; k < LAB_STAGE_COUNT; k++) {
            items[i].stages[k].start_ns += from->stages[k].end_ns ? later_ns : 0;
            items[i].stages[k].end_ns += from->stages[k].end_ns ? later_ns : 0;
        }
    }
    copy->ranks[0].iterations = old ? items : NULL;
    return copy;
}

/* A run as repeat `block` of the point `name`; every other one of a point, and half of a block,
 * backwards: what all runs have in common cancels out. By chance, the few runs of a point would
 * often have one direction. */
static struct lab_study_run rename_run(const struct lab_study_run *run, int naming, int name,
                                       int block, struct lab_arena *arena) {
    run = (block + name) % 2 ? reverse(run, arena) : run;
    struct lab_study_run named = *run;
    struct lab_run *copy = lab_arena_alloc(arena, 1, sizeof *copy);
    named.ranks = lab_arena_alloc(arena, 1, sizeof *named.ranks);
    named.ranks[0] = run->ranks[0];
    named.rank_count = 1;
    named.phase = "";
    namings[naming](&named, name, arena);
    named.point = lab_arena_printf(arena, "aa%d", name);
    *copy = *run->run;
    copy->repeat = block;
    copy->id = lab_arena_printf(arena, "%s_r%d", named.point, block);
    named.run = copy;
    return named;
}

static struct lab_study_table rename_all(const struct lab_study_table *table,
                                         const struct lab_study_run *const *used, int blocks,
                                         int naming, uint64_t seed, struct lab_arena *arena) {
    struct lab_study_table named = *table;
    int count = blocks * LAB_SELFTEST_POINTS;
    named.runs = lab_arena_alloc(arena, (size_t)count, sizeof *named.runs);
    named.run_count = named.planned_count = count;
    named.failed_count = named.invalid_count = 0;
    named.repeated = true;
    for (int block = 0; block < blocks; block++) {
        int names[LAB_SELFTEST_POINTS] = {0};
        for (int i = 0; i < LAB_SELFTEST_POINTS; i++) { /* Fisher and Yates */
            uint64_t draw = (uint64_t)(block * LAB_SELFTEST_POINTS + i);
            int other = (int)lab_random_below(seed, draw, (uint64_t)i + 1);
            names[i] = names[other];
            names[other] = i;
        }
        for (int i = 0; i < LAB_SELFTEST_POINTS; i++) {
            int at = block * LAB_SELFTEST_POINTS + i;
            named.runs[at] = rename_run(used[at], naming, names[i], block, arena);
        }
    }
    return named;
}

/* --- claims --- */

const struct lab_analysis_kind *lab_selftest_uncovered(const struct lab_selftest_tally *tally,
                                                       struct lab_arena *arena) {
    int count = 0, room = 1;
    for (int a = 0; lab_analyses[a]; a++)
        for (int k = 0; lab_analyses[a]->kinds && lab_analyses[a]->kinds[k].name; k++)
            room++;
    struct lab_analysis_kind *missing = lab_arena_alloc(arena, (size_t)room, sizeof *missing);
    for (int a = 0; lab_analyses[a]; a++)
        for (int k = 0; lab_analyses[a]->kinds && lab_analyses[a]->kinds[k].name; k++) {
            struct lab_analysis_kind kind = lab_analyses[a]->kinds[k];
            if (LAB_FIND(tally->kinds, tally->kind_count, kind, kind.name) >= 0)
                continue;
            kind.untested = kind.untested ? kind.untested : "no study made such a claim";
            missing[count++] = kind;
        }
    return missing;
}

static struct lab_selftest_kind *find_kind(struct lab_selftest_tally *tally, const char *kind,
                                           struct lab_arena *arena) {
    int found = LAB_FIND(tally->kinds, tally->kind_count, kind, kind);
    if (found >= 0)
        return &tally->kinds[found];
    struct lab_selftest_kind *added = &LAB_PUSH(tally->kinds, tally->kind_count);
    *added = (struct lab_selftest_kind){.kind = lab_arena_strdup(arena, kind)};
    return added;
}

/* An estimate in a unit finds nothing. */
static bool compares(const struct lab_analysis *analysis, const struct lab_claim *claim) {
    const struct lab_analysis_kind *kind = lab_analysis_kind(analysis, claim->kind);
    return kind && !kind->untested && !claim->unit && claim->verdict != LAB_CLAIM_NOT_TESTED;
}

/* Once a study for each kind, under the first naming that makes it: families of the same runs
 * aren't independent. */
static void count_claims(const struct lab_analysis *analysis,
                         const struct lab_analysis_result *result, struct lab_selftest_tally *tally,
                         int naming, struct lab_arena *arena) {
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        if (!compares(analysis, claim))
            continue;
        struct lab_selftest_kind *kind = find_kind(tally, claim->kind, arena);
        if (kind->last_study == tally->studies + 1 && kind->last_naming != naming)
            continue;
        kind->last_study = tally->studies + 1;
        kind->last_naming = naming;
        bool first = true, first_wrong = claim->verdict == LAB_CLAIM_YES;
        for (int k = 0; k < i; k++)
            if (compares(analysis, &result->claims[k]) &&
                lab_str_equal(result->claims[k].kind, kind->kind)) {
                first = false;
                first_wrong = first_wrong && result->claims[k].verdict != LAB_CLAIM_YES;
            }
        kind->claims++;
        kind->wrong += claim->verdict == LAB_CLAIM_YES;
        kind->studies += first;
        kind->wrong_studies += first_wrong;
    }
}

unsigned lab_selftest_needs(void) {
    unsigned needs = 0;
    for (int i = 0; lab_analyses[i]; i++)
        if (lab_analyses[i]->interest)
            needs |= lab_analyses[i]->needs;
    return needs & ~(unsigned)(LAB_STUDY_WITH_FILES | LAB_STUDY_WITH_CONFIGURATIONS);
}

bool lab_selftest_judge(const struct lab_study_table *table, uint64_t seed,
                        struct lab_selftest_tally *tally, struct lab_arena *arena) {
    LAB_AUTO(arena, own);
    int count = 0;
    const struct lab_study_run **used =
        lab_arena_alloc(&own, (size_t)table->run_count + 1, sizeof *used);
    for (int i = 0; i < table->run_count; i++)
        if (table->runs[i].used && table->runs[i].rate > 0)
            used[count++] = &table->runs[i];
    int blocks = count / LAB_SELFTEST_POINTS;
    if (blocks < 2)
        return false;
    for (int i = 0; i < NAMINGS; i++) {
        int naming = (i + tally->studies / 2) % NAMINGS; /* another one first each time */
        struct lab_study_table named = rename_all(
            table, used, blocks, naming, (uint64_t)NAMINGS * seed + (uint64_t)naming, &own);
        struct lab_analysis_input input = {.studies = &named, .study_count = 1};
        struct lab_analysis_choice chosen[ANALYSES_MOST];
        int analyses = lab_analysis_choose(&named, ANALYSES_MOST, chosen);
        for (int a = 0; a < analyses; a++) {
            struct lab_analysis_result result;
            if (lab_analysis_run(chosen[a].analysis, NULL, &input, &own, &result, NULL) == 0)
                count_claims(chosen[a].analysis, &result, tally, naming, arena);
        }
    }
    tally->studies++;
    return true;
}

void lab_selftest_release(struct lab_selftest_tally *tally) {
    lab_mem_free(tally->kinds);
    *tally = (struct lab_selftest_tally){0};
}

/* --- the verdict on our verdicts --- */

struct lab_selftest_kind lab_selftest_sum(const struct lab_selftest_tally *tally) {
    struct lab_selftest_kind sum = {.kind = "all"};
    for (int i = 0; i < tally->kind_count; i++) {
        sum.claims += tally->kinds[i].claims;
        sum.wrong += tally->kinds[i].wrong;
        sum.studies += tally->kinds[i].studies;
        sum.wrong_studies += tally->kinds[i].wrong_studies;
    }
    return sum;
}

#define BOTH_SIDES 0.02 /* of the lower end alone, half of it */

bool lab_selftest_holds(const struct lab_selftest_tally *tally,
                        const struct lab_selftest_kind *kind) {
    double confidence = 1 - BOTH_SIDES / (tally->kind_count > 0 ? tally->kind_count : 1);
    return kind->studies == 0 ||
           lab_stats_binomial_interval(kind->wrong_studies, kind->studies, confidence).low <=
               LAB_CLAIM_LEVEL;
}

const char *lab_selftest_answer(const struct lab_selftest_tally *tally, struct lab_arena *arena) {
    struct lab_selftest_kind sum = lab_selftest_sum(tally);
    const char *bad = NULL;
    if (sum.studies == 0)
        return "Not tested: no A/A study has usable runs.";
    for (int i = 0; i < tally->kind_count && !bad; i++)
        if (!lab_selftest_holds(tally, &tally->kinds[i]))
            bad = tally->kinds[i].kind;
    return lab_arena_printf(
        arena, "%s: %d of %d families have a false claim (%d stud%s, %d kinds of claim).",
        bad ? lab_arena_printf(arena, "Above the 5%% limit: %s", bad)
            : "No kind of claim is above the 5% limit",
        sum.wrong_studies, sum.studies, tally->studies, tally->studies == 1 ? "y" : "ies",
        tally->kind_count);
}
