/* effects.c: figures by block, and what they come to. */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95
#define LEVEL      0.05
#define EQUAL      1e-9
#define TIME_LEAST 0.01 /* a slow-down of less is none that anybody would act upon */
#define LEFT_LEAST 0.02 /* likewise of resources, whose probes are short */
#define LEFT_CLEAR 0.10 /* and where it isn't even from block to block */
#define RANK_LEVEL 0.10 /* two-sided: three blocks that are all below three others have just that */
#define MORE_SHARE (1.0 / 3) /* so much of the interval of what is called likely may lie above 1 */

/* --- effects --- */

void contention_add(struct contention_sum *sum, int block, double difference) {
    if (!isfinite(difference) || block < 0 || block >= CONTENTION_BLOCKS_MAX)
        return;
    sum->sum[block] += difference;
    sum->count[block]++;
}

static size_t by_block(const struct contention_sum *sum, double ret_values[CONTENTION_BLOCKS_MAX]) {
    size_t n = 0;
    for (int b = 0; b < CONTENTION_BLOCKS_MAX; b++)
        if (sum->count[b] > 0)
            ret_values[n++] = sum->sum[b] / sum->count[b];
    return n;
}

struct contention_effect contention_estimate(const struct contention_sum *sum) {
    double values[CONTENTION_BLOCKS_MAX];
    size_t n = by_block(sum, values);
    struct contention_effect effect = {.ratio = NAN,
                                       .low = NAN,
                                       .high = NAN,
                                       .p = NAN,
                                       .confidence = CONFIDENCE,
                                       .blocks = (int)n};
    if (n == 0)
        return effect;
    double mean = lab_stats_mean(values, n);
    effect.ratio = exp(mean);
    if (n < 2)
        return effect;
    double error = lab_stats_stddev(values, n) / sqrt((double)n), freedom = (double)n - 1;
    double distance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom);
    effect.low = exp(mean - distance);
    effect.high = exp(mean + distance);
    if (error > EQUAL)
        effect.p = lab_stats_t_two_sided(mean / error, freedom);
    else
        effect.p = fabs(mean) <= EQUAL ? 1 : 0;
    return effect;
}

void contention_judge(struct contention_effect *effects, int count, double least) {
    double *p = lab_mem_resize(NULL, (size_t)count + 1, sizeof *p);
    for (int i = 0; i < count; i++)
        p[i] = effects[i].p;
    lab_stats_adjust_bh(p, (size_t)count, p);
    for (int i = 0; i < count; i++) {
        struct contention_effect *effect = &effects[i];
        bool sure = p[i] <= LEVEL && !effect->within;
        effect->more = sure && effect->low > 1 && effect->ratio >= 1 + least;
        effect->less = sure && effect->high < 1 && effect->ratio <= 1 - least;
    }
    lab_mem_free(p);
}

bool contention_is_same(const struct contention_effect *effect) {
    return !effect->more && !effect->less && effect->high - 1 <= CONTENTION_SAME &&
           1 / effect->low - 1 <= CONTENTION_SAME;
}

/* An interval of half the width tells in any case: it lies within what is the same, or 1 isn't in
 * it. */
int contention_blocks_needed(const struct contention_effect *effect) {
    int blocks = effect->blocks;
    if (effect->within || blocks < 2 || !(effect->high > effect->low))
        return CONTENTION_BLOCKS_LEAST;
    double quantile = lab_stats_t_quantile((1 + CONFIDENCE) / 2, blocks - 1);
    double spread = log(effect->high / effect->low) / 2 * sqrt(blocks) / quantile;
    for (int n = blocks + 1; n <= CONTENTION_BLOCKS_MOST; n++)
        if (lab_stats_t_quantile((1 + CONFIDENCE) / 2, n - 1) * spread / sqrt(n) <=
            log1p(CONTENTION_SAME) / 2)
            return n > CONTENTION_BLOCKS_LEAST ? n : CONTENTION_BLOCKS_LEAST;
    return 0;
}

/* --- runs of a unit --- */

static const struct lab_study_run *run_in(const struct lab_phase_point *point, int block,
                                          double *ret_time_s) {
    for (int i = 0; i < point->point.count; i++)
        if (point->point.runs[i]->run->repeat == block) {
            if (ret_time_s)
                *ret_time_s = point->times_s[i];
            return point->point.runs[i];
        }
    return NULL;
}

static int count_blocks(const struct lab_phases *phases) {
    int blocks = 0;
    for (int i = 0; i < phases->run_count; i++)
        if (phases->runs[i]->run->repeat + 1 > blocks)
            blocks = phases->runs[i]->run->repeat + 1;
    return blocks < CONTENTION_BLOCKS_MAX ? blocks : CONTENTION_BLOCKS_MAX;
}

static void add_times(const struct contention *made, int unit, int phase,
                      struct contention_sum *sum) {
    const struct lab_phase_unit *it = &made->phases.units[unit];
    for (int b = 0; b < count_blocks(&made->phases); b++) {
        double base_s = NAN, other_s = NAN;
        run_in(&it->points[made->phases.base], b, &base_s);
        run_in(&it->points[phase], b, &other_s);
        contention_add(sum, b, log(other_s / base_s));
    }
}

/* One block tells nothing of how blocks differ: what is known from within the runs, of the
 * worst. */
static void take_within(const struct contention *made, const char *kernel, int phase,
                        struct contention_effect *effect) {
    const struct lab_study_ratio *worst = NULL;
    for (int i = 0; i < made->phases.pair_count; i++) {
        const struct lab_phase_pair *pair = &made->phases.pairs[i];
        bool asked = !kernel || strcmp(made->phases.units[pair->unit].kernel, kernel) == 0;
        if (pair->phase == phase && asked && !isnan(pair->time.low) &&
            (!worst || pair->time.ratio > worst->ratio))
            worst = &pair->time;
    }
    if (worst && effect->blocks == 1)
        *effect = (struct contention_effect){.ratio = worst->ratio,
                                             .low = worst->low,
                                             .high = worst->high,
                                             .p = worst->p,
                                             .confidence = CONFIDENCE,
                                             .blocks = 1,
                                             .within = true};
}

static void make_times(struct contention *made) {
    int phases = made->phases.count, effects = 0;
    struct contention_effect *all = lab_arena_alloc(
        made->arena, (size_t)(made->kernel_count + 1) * (size_t)phases, sizeof *all);
    for (int k = 0; k <= made->kernel_count; k++)
        for (int p = 0; p < phases; p++, effects++) {
            struct contention_sum *sum = lab_arena_alloc(made->arena, 1, sizeof *sum);
            const char *kernel = k < made->kernel_count ? made->kernels[k].name : NULL;
            for (int u = 0; u < made->phases.unit_count && p != made->phases.base; u++)
                if (!kernel || strcmp(made->phases.units[u].kernel, kernel) == 0)
                    add_times(made, u, p, sum);
            all[effects] = contention_estimate(sum);
            take_within(made, kernel, p, &all[effects]);
        }
    contention_judge(all, effects, TIME_LEAST);
    for (int k = 0; k < made->kernel_count; k++)
        made->kernels[k].times = all + (ptrdiff_t)k * phases;
    made->overall = all + (ptrdiff_t)made->kernel_count * phases;
}

/* --- resources --- */

/* The logarithm of what its probe gave; NaN = unknown. */
static double amount_of(const struct lab_study_run *run, int resource) {
    switch (resource) {
    case CONTENTION_COMPUTE:
        return log(run->result->capacity_flops_per_second);
    case CONTENTION_MEMORY:
        return log(run->result->capacity_memory_gb_per_s);
    case CONTENTION_PCIE:
        return (log(run->result->capacity_h2d_gb_per_s) + log(run->result->capacity_d2h_gb_per_s)) /
               2;
    default:
        return log(run->result->capacity_clock_mhz);
    }
}

/*
 * What explains a loss without the resource: a clock that is held back slows all that a GPU does,
 * and kernels that share cores or multiprocessors get less of memory, too. 0 = nothing does, or it
 * isn't known.
 */
static double excuse_of(const struct lab_study_run *run, int resource) {
    double excuse = NAN;
    if (resource == CONTENTION_COMPUTE || resource == CONTENTION_PCIE)
        excuse = amount_of(run, CONTENTION_CLOCK);
    else if (resource == CONTENTION_MEMORY)
        excuse = amount_of(run, CONTENTION_COMPUTE);
    return isfinite(excuse) ? excuse : 0;
}

/* Only what is lost beyond the excuse counts; and an excuse makes no gain of a smaller loss. */
static double beyond(double change, double excuse) {
    return change < 0 ? fmin(0, change - fmin(0, excuse)) : change;
}

struct amounts { /* of a resource: in the baseline, in a phase, and of that against the baseline */
    struct contention_sum base, phase, differences;
};

/* Every kernel's run of a block is a replicate here: what is probed doesn't depend on the
 * kernel. */
static void add_resource(const struct contention *made, int phase, int resource,
                         struct amounts *amounts) {
    const struct lab_phases *phases = &made->phases;
    int blocks = count_blocks(phases);
    for (int u = 0; u < phases->unit_count; u++) {
        int kernel = 0;
        while (strcmp(made->kernels[kernel].name, phases->units[u].kernel) != 0)
            kernel++;
        for (int b = 0; b < blocks; b++) {
            int at = b + kernel * blocks;
            const struct lab_study_run *base =
                                           run_in(&phases->units[u].points[phases->base], b, NULL),
                                       *other = run_in(&phases->units[u].points[phase], b, NULL);
            if (!base || !other)
                continue;
            double before = amount_of(base, resource), after = amount_of(other, resource);
            double excused = excuse_of(base, resource), excuse = excuse_of(other, resource);
            if (!isfinite(before) || !isfinite(after))
                continue;
            contention_add(&amounts->base, at, before - excused);
            contention_add(&amounts->phase, at, after - excuse);
            contention_add(&amounts->differences, at, beyond(after - before, excuse - excused));
        }
    }
}

/*
 * A neighbour may take much in one block and little in the next: a virtual machine's cores share a
 * path to memory only while they happen to lie beside each other. Then the differences vary so much
 * that Student's interval holds 1, though hardly a run has as much left as any of the baseline's.
 * Ranks see that; they are asked only about losses that are large, and must leave no doubt by the
 * interval that goes with them.
 */
static void ask_ranks(const struct amounts *amounts, struct contention_effect *effect) {
    double base[CONTENTION_BLOCKS_MAX], phase[CONTENTION_BLOCKS_MAX];
    size_t n_base = by_block(&amounts->base, base), n_phase = by_block(&amounts->phase, phase);
    if (effect->less || effect->more || n_base < 3 || n_phase < 3 ||
        !(lab_stats_mann_whitney(phase, n_phase, base, n_base).p <= RANK_LEVEL + EQUAL))
        return;
    struct lab_effect shift = lab_stats_shift(phase, n_phase, base, n_base, 1 - RANK_LEVEL);
    if (!(exp(shift.value) <= 1 - LEFT_CLEAR) || !(shift.interval.high < 0))
        return;
    effect->ratio = exp(shift.value);
    effect->low = exp(shift.interval.low);
    effect->high = exp(shift.interval.high);
    effect->confidence = shift.interval.confidence;
    effect->less = true;
}

static void make_resources(struct contention *made) {
    int count = made->phases.count, effects = count * CONTENTION_RESOURCES;
    struct amounts *amounts = lab_arena_alloc(made->arena, (size_t)effects + 1, sizeof *amounts);
    made->left = lab_arena_alloc(made->arena, (size_t)count, sizeof *made->left);
    struct contention_effect *left = &made->left[0][0];
    for (int i = 0; i < effects; i++) {
        if (i / CONTENTION_RESOURCES != made->phases.base)
            add_resource(made, i / CONTENTION_RESOURCES, i % CONTENTION_RESOURCES, &amounts[i]);
        left[i] = contention_estimate(&amounts[i].differences);
    }
    contention_judge(left, effects, LEFT_LEAST);
    for (int i = 0; i < effects; i++)
        ask_ranks(&amounts[i], &left[i]);
}

static double mean_over(const struct contention *made, int phase, size_t offset) {
    double sum = 0;
    int count = 0;
    for (int u = 0; u < made->phases.unit_count; u++) {
        const struct lab_study_point *point = &made->phases.units[u].points[phase].point;
        for (int i = 0; i < point->count; i++) {
            double value = lab_result_number(point->runs[i]->result, offset);
            sum += isfinite(value) ? value : 0;
            count += isfinite(value);
        }
    }
    return count > 0 ? sum / count : (double)NAN;
}

static void make_power(struct contention *made) {
    made->power = lab_arena_alloc(made->arena, (size_t)made->phases.count + 1, sizeof *made->power);
    for (int p = 0; p < made->phases.count; p++)
        made->power[p] = (struct contention_power){
            mean_over(made, p, offsetof(struct lab_result, capacity_power_w)),
            mean_over(made, p, offsetof(struct lab_result, capacity_power_limit_w))};
}

bool contention_counts(const struct contention *made, int phase, int resource) {
    const struct contention_phase *it = &made->list[phase];
    return resource != CONTENTION_PCIE || !it->together || it->copies;
}

/* Halfway between what is thought to be left and the most that may be: of two that are lost alike
 * the surer one is the lower. */
static double surely_left(const struct contention_effect *left) {
    return sqrt(left->ratio * left->high);
}

/* By chance alone half of the interval lies above 1. */
static bool is_mostly_less(const struct contention_effect *left) {
    return left->ratio < 1 && log(left->high) <= MORE_SHARE * log(left->high / left->low);
}

/*
 * The only one of those probed that may be lost: of all others as much is left as before, for
 * certain. That alone is no reason to name it: it has to be less by its own figures, too, though
 * they aren't certain.
 */
static int only_resource(const struct contention *made, int phase) {
    int only = -1, probed = 0;
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct contention_effect *left = &made->left[phase][r];
        if (!contention_counts(made, phase, r) || !isfinite(left->low))
            continue;
        probed++;
        if (left->low >= 1 - CONTENTION_LIKELY)
            continue;
        if (only >= 0)
            return -1;
        only = r;
    }
    return probed > 1 && only >= 0 && is_mostly_less(&made->left[phase][only]) ? only : -1;
}

/* Something is slowed for certain, but of no resource it is certain that less is left. */
static int likely_resource(const struct contention *made, int phase) {
    bool slowed = false;
    int least = -1;
    for (int k = 0; k < made->kernel_count; k++)
        slowed |= made->kernels[k].times[phase].more;
    for (int r = 0; slowed && r < CONTENTION_RESOURCES; r++)
        if (contention_counts(made, phase, r) &&
            made->left[phase][r].ratio <= 1 - CONTENTION_LIKELY &&
            (least < 0 || made->left[phase][r].ratio < made->left[phase][least].ratio))
            least = r;
    return slowed && least < 0 ? only_resource(made, phase) : least;
}

int contention_first_resource(const struct contention *made, int phase) {
    const struct contention_effect *left = made->left[phase];
    int first = -1;
    for (int r = 0; r < CONTENTION_RESOURCES; r++)
        if (left[r].less && contention_counts(made, phase, r) &&
            (first < 0 || surely_left(&left[r]) < surely_left(&left[first])))
            first = r;
    return first < 0 ? likely_resource(made, phase) : first;
}

enum lab_analysis_finding contention_finding(const struct contention *made) {
    bool sure = true;
    for (int p = 0; p < made->phases.count; p++) {
        if (p != made->main && !made->list[p].disturb[0])
            continue;
        for (int k = 0; k < made->kernel_count; k++) {
            if (made->kernels[k].times[p].more)
                return LAB_ANALYSIS_FINDS;
            sure &= made->kernels[k].times[p].high - 1 <= CONTENTION_SAME;
        }
        if (contention_first_resource(made, p) >= 0)
            return LAB_ANALYSIS_FINDS;
    }
    return sure ? LAB_ANALYSIS_FINDS_NOTHING : LAB_ANALYSIS_CANT_TELL;
}

/* --- what was chosen --- */

static int find_phase(const struct contention *made, const char *name) {
    for (int p = 0; p < made->phases.count; p++)
        if (strcmp(made->phases.names[p], name) == 0)
            return p;
    return -1;
}

static const char *text_in(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_STRING ? value->string : "";
}

static void add_regret(struct contention *made, const struct lab_study_run *run,
                       struct contention_sum *sums) {
    for (int r = 0; r < run->result->rank_count; r++) {
        const struct lab_result *rank = &run->result->ranks[r];
        for (int i = 0; i < rank->regret.count; i++) {
            const struct lab_result_regret *regret = &rank->regret.items[i];
            int phase = find_phase(made, regret->phase ? regret->phase : "");
            if (phase >= 0)
                contention_add(&sums[phase], run->run->repeat, log(regret->ratio));
        }
    }
}

static void make_regrets(struct contention *made) {
    size_t count = (size_t)made->phases.count + 1;
    struct contention_sum *sums = lab_arena_alloc(made->arena, count, sizeof *sums);
    struct contention_effect *costs = lab_arena_alloc(made->arena, count, sizeof *costs);
    struct lab_phase_difference *unused;
    made->regrets = lab_arena_alloc(made->arena, count, sizeof *made->regrets);
    for (int i = 0; i < made->study->run_count; i++)
        if (made->study->runs[i].used && strcmp(made->study->runs[i].phase, LAB_PHASE_REGRET) == 0)
            add_regret(made, &made->study->runs[i], sums);
    for (int p = 0; p < made->phases.count; p++)
        costs[p] = contention_estimate(&sums[p]);
    contention_judge(costs, made->phases.count, 0);
    for (int p = 0; p < made->phases.count; p++)
        made->regrets[p].cost = costs[p];
    lab_phases_configurations(&made->phases, made->arena, &unused);
    for (int i = 0; i < made->phases.pair_count; i++) {
        const struct lab_phase_pair *pair = &made->phases.pairs[i];
        if (!pair->tuned)
            continue;
        made->regrets[pair->phase].tunings += pair->blocks;
        made->regrets[pair->phase].other += pair->blocks_differing;
        if (pair->phase != made->main)
            continue;
        made->own_pairs += pair->own_pairs;
        made->own_other += pair->own_differing;
    }
}

/* --- the whole --- */

static const char *list_apart(const struct lab_study_run *run, struct lab_arena *arena) {
    const struct lab_value *list = lab_value_get(run->test, "apart");
    const char *text = "";
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            text = lab_arena_printf(arena, "%s%s%s", text, i ? ", " : "", list->items[i]->string);
    return text;
}

static void make_phases(struct contention *made) {
    const struct lab_phases *phases = &made->phases;
    made->list = lab_arena_alloc(made->arena, (size_t)phases->count + 1, sizeof *made->list);
    for (int p = 0; p < phases->count; p++)
        made->list[p] = (struct contention_phase){
            .name = phases->names[p], .base = p == phases->base, .apart = "", .disturb = ""};
    for (int i = 0; i < phases->run_count; i++) {
        const struct lab_study_run *run = phases->runs[i];
        int p = find_phase(made, phases->run_phases[i]);
        if (p < 0)
            continue;
        struct contention_phase *phase = &made->list[p];
        phase->together |= lab_str_equal(text_in(run->test, "place"), "together");
        phase->ranks = run->rank_count > phase->ranks ? run->rank_count : phase->ranks;
        phase->copies |= run->result->h2d_gb_per_s > 0 || run->result->d2h_gb_per_s > 0;
        phase->disturb = text_in(run->test, "disturb");
        phase->apart = list_apart(run, made->arena);
        made->cpus |= lab_str_starts(run->ranks[0].device, "cpu:");
    }
    made->main = phases->concurrent;
    made->order = lab_arena_alloc(made->arena, (size_t)phases->count + 1, sizeof *made->order);
    if (made->main >= 0)
        made->order[made->shown++] = made->main;
    for (int p = 0; p < phases->count; p++)
        if (p != made->main && p != phases->base)
            made->order[made->shown++] = p;
}

static void make_kernels(struct contention *made) {
    const struct lab_phases *phases = &made->phases;
    made->kernels =
        lab_arena_alloc(made->arena, (size_t)phases->unit_count + 1, sizeof *made->kernels);
    for (int u = 0; u < phases->unit_count; u++) {
        int k = 0;
        while (k < made->kernel_count &&
               strcmp(made->kernels[k].name, phases->units[u].kernel) != 0)
            k++;
        if (k == made->kernel_count)
            made->kernels[made->kernel_count++].name = phases->units[u].kernel;
    }
}

void contention_make(const struct lab_study_table *study, const struct lab_analysis_input *input,
                     struct lab_arena *arena, struct contention *ret) {
    *ret = (struct contention){.study = study, .main = -1, .arena = arena};
    lab_phases_make(input, arena, &ret->phases);
    if (ret->phases.base < 0)
        return;
    make_phases(ret);
    make_kernels(ret);
    make_times(ret);
    make_resources(ret);
    make_power(ret);
    make_regrets(ret);
}

bool contention_covers(const struct contention *made, int phase) {
    for (int k = 0; k < made->kernel_count; k++) {
        const struct contention_effect *times = made->kernels[k].times;
        if (!isnan(times[made->main].ratio) && isnan(times[phase].ratio))
            return false;
    }
    return true;
}

int contention_best_mitigation(const struct contention *made) {
    int best = -1;
    const struct contention_effect *worst = made->main >= 0 ? &made->overall[made->main] : NULL;
    for (int p = 0; worst && p < made->phases.count; p++) {
        const struct contention_effect *effect = &made->overall[p];
        if (p == made->main || made->list[p].base || !made->list[p].apart[0] ||
            !contention_covers(made, p) || !(effect->ratio < worst->ratio) ||
            !(effect->high < worst->ratio))
            continue;
        if (best < 0 || effect->ratio < made->overall[best].ratio)
            best = p;
    }
    return best;
}
