/*
 * compile.c: `gpulab analyze compile`: what compiling a model (fused operations, captured graphs)
 * gains per model, device and node; what it costs; and after how many samples that is paid back.
 */
#include "analysis/analysis_build.h"
#include "analysis/compile/pair.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

struct compile_config {
    double least; /* share; a smaller gain isn't worth a recommendation */
};

static const struct lab_option compile_options[] = {
    {"least", LAB_OPTION_FLOAT, offsetof(struct compile_config, least), .fallback = "0.0", .min = 0,
     .max = 1, .help = "smallest gain that is worth naming, as a share; 0 = any that is certain"},
    {NULL},
};

static const char *const pair_keys[] = {"compile_model", NULL};
static const char *const part_keys[] = {"compile_model", "model", "patch_size", "depth",
                                        "heads",         "dim",   "mlp_dim",    NULL};

/* --- columns --- */

static const struct lab_doc_column figure_columns[] = {
    {"models", "Models", LAB_UNIT_COUNT, "Models"},
    {"faster", "Faster", LAB_UNIT_COUNT, "Faster"},
    {"slower", "Slower", LAB_UNIT_COUNT, "Slower"},
    {"largest_gain", "Largest gain", LAB_UNIT_CHANGE, "Largest gain", true},
    {"gain_against_work", "Gain against work", LAB_UNIT_NUMBER, NULL, true},
};

static const struct lab_doc_column model_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"flops_per_sample", NULL, LAB_UNIT_NUMBER},
    {"rate_per_s", NULL, LAB_UNIT_NUMBER},
    {NULL, "Samples/s", LAB_UNIT_FIGURE},
    {"compiled_rate_per_s", NULL, LAB_UNIT_NUMBER},
    {NULL, "Compiled", LAB_UNIT_FIGURE},
    {"gain", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Gain", LAB_UNIT_FIGURE},
    {"cost_ms", NULL, LAB_UNIT_TIME, .with_interval = true},
    {NULL, "Cost", LAB_UNIT_FIGURE},
    {"break_even_samples", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Paid back after", LAB_UNIT_FIGURE},
    {"verdict", NULL, LAB_UNIT_TEXT},
};

/* --- pairs --- */

static double work_of(const struct compile_pair *pair) {
    const struct lab_study_work *work = &pair->plain->runs[0]->work;
    return work->samples > 0 ? work->flops / work->samples : work->flops;
}

static int by_work(const void *a, const void *b) {
    double left = work_of(*(struct compile_pair *const *)a);
    double right = work_of(*(struct compile_pair *const *)b);
    return (left > right) - (left < right);
}

/* The first plain and the first compiled point of a group; false = one is lacking. */
static bool find_pair(const struct lab_study_group *group, struct compile_pair *ret_pair) {
    *ret_pair = (struct compile_pair){0};
    for (int i = 0; i < group->count; i++) {
        double compiled = lab_study_setting_number(group->points[i]->runs[0], "compile_model");
        if (compiled == 1 && !ret_pair->compiled)
            ret_pair->compiled = group->points[i];
        if (compiled == 0 && !ret_pair->plain)
            ret_pair->plain = group->points[i];
    }
    return ret_pair->plain && ret_pair->compiled;
}

static int add_pairs(const struct lab_study_group *group, struct lab_arena *arena,
                     struct compile_pair *pairs) {
    struct lab_study_point *points =
        lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *points);
    struct lab_study_group *models;
    int count = 0;
    for (int i = 0; i < group->count; i++)
        points[i] = *group->points[i];
    int model_count = lab_study_groups(points, group->count, pair_keys, arena, &models);
    for (int i = 0; i < model_count; i++) {
        struct compile_pair *pair = &pairs[count];
        if (!find_pair(&models[i], pair))
            continue;
        pair->gain = lab_study_compare(pair->plain, pair->compiled, LAB_STUDY_RATE);
        compile_pair_weigh(pair);
        count++;
    }
    return count;
}

/* --- words --- */

static const char *samples_words(double samples, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (samples < 1000)
        lab_str_printf(&text, "%.0f", ceil(samples));
    else
        lab_str_add_si(&text, samples, "");
    while (text.length > 0 && text.text[text.length - 1] == ' ')
        text.text[--text.length] = '\0';
    return lab_arena_strdup(arena, text.text);
}

/* "12.3 k [9.8 k, 15.1 k]", "at once", "never", "at least 3.1 k" */
static const char *break_even_words(const struct compile_pair *pair, struct lab_arena *arena) {
    const struct lab_interval *interval = &pair->break_even.interval;
    double at = pair->break_even.at;
    if (pair->gain.verdict == LAB_STUDY_LESS)
        return "never";
    if (pair->gain.verdict != LAB_STUDY_MORE)
        return "–";
    if (isnan(pair->cost_s.value))
        return "unknown";
    if (pair->cost_s.value <= 0)
        return "at once";
    if (isnan(at))
        return "–";
    if (isnan(interval->low))
        return lab_arena_printf(arena, "about %s", samples_words(at, arena));
    if (interval->high >= COMPILE_NEVER)
        return lab_arena_printf(arena, "at least %s", samples_words(interval->low, arena));
    return lab_arena_printf(arena, "%s [%s, %s]", samples_words(at, arena),
                            samples_words(interval->low, arena),
                            samples_words(interval->high, arena));
}

/* --- a place --- */

static bool is_worth_naming(const struct compile_pair *pair, const struct compile_config *config) {
    return pair->gain.verdict == LAB_STUDY_MORE && pair->gain.ratio - 1 >= config->least;
}

static const struct compile_pair *find_most(const struct compile_place *place,
                                            const struct compile_config *config) {
    const struct compile_pair *most = NULL;
    for (int i = 0; i < place->count; i++)
        if (is_worth_naming(place->pairs[i], config) &&
            (!most || place->pairs[i]->gain.ratio > most->gain.ratio))
            most = place->pairs[i];
    return most;
}

static int count_verdicts(const struct compile_place *place, enum lab_study_verdict verdict) {
    int count = 0;
    for (int i = 0; i < place->count; i++)
        count += place->pairs[i]->gain.verdict == verdict;
    return count;
}

/* Whether larger models gain less, by ranks. */
static struct lab_correlation find_trend(const struct compile_place *place,
                                         struct lab_arena *arena) {
    struct lab_series gains = {.arena = arena};
    for (int i = 0; i < place->count; i++)
        if (work_of(place->pairs[i]) > 0 && !isnan(place->pairs[i]->gain.ratio))
            lab_series_add_point(&gains, work_of(place->pairs[i]), place->pairs[i]->gain.ratio);
    return lab_stats_spearman(gains.x, gains.y, gains.count, (double)gains.count,
                              COMPILE_CONFIDENCE);
}

static void add_rest(const struct compile_place *place, struct lab_str *text) {
    int slower = count_verdicts(place, LAB_STUDY_LESS),
        same = count_verdicts(place, LAB_STUDY_SAME),
        undecided = count_verdicts(place, LAB_STUDY_UNDECIDED);
    double bound = 0;
    const struct compile_pair *worst = NULL;
    for (int i = 0; i < place->count; i++) {
        const struct compile_pair *pair = place->pairs[i];
        if (pair->gain.verdict == LAB_STUDY_SAME)
            bound = fmax(bound, pair->gain.bound);
        if (pair->gain.verdict == LAB_STUDY_LESS &&
            (!worst || pair->gain.ratio < worst->gain.ratio))
            worst = pair;
    }
    if (worst)
        lab_str_printf(text, "; it slows %d, %s by %.1f %%", slower, worst->plain->runs[0]->model,
                       100 * (1 - worst->gain.ratio));
    if (same > 0 && bound <= LAB_WORDS_BOUND_MOST)
        lab_str_printf(text, "; on %d there is no difference larger than %.1f %%", same,
                       lab_words_bound_percent(bound));
    else if (same > 0)
        lab_str_printf(text, "; on %d of them runs are too few or vary too much to tell", same);
    if (undecided > 0)
        lab_str_printf(text, "; %d %s undecided", undecided, undecided == 1 ? "is" : "are");
}

static const char *make_answer(const struct compile_place *place,
                               const struct compile_config *config, struct lab_arena *arena) {
    const struct compile_pair *most = find_most(place, config);
    struct lab_correlation trend = find_trend(place, arena);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "On %s, ", place->name);
    if (most) {
        int faster = 0;
        for (int i = 0; i < place->count; i++)
            faster += is_worth_naming(place->pairs[i], config);
        lab_str_printf(&text, "compiling speeds up %d of %d model%s, most of all %s: %s", faster,
                       place->count, place->count == 1 ? "" : "s", most->plain->runs[0]->model,
                       lab_study_ratio_words(&most->gain, arena));
        const char *paid = break_even_words(most, arena);
        if (lab_str_equal(paid, "at once"))
            lab_str_add(&text, ", at no cost that can be seen");
        else if (!isnan(most->break_even.at))
            lab_str_printf(&text, ", paid back after %s samples", paid);
    } else {
        lab_str_printf(&text, "compiling speeds up none of %d model%s for certain", place->count,
                       place->count == 1 ? "" : "s");
    }
    add_rest(place, &text);
    lab_str_add(&text, ".");
    if (trend.p < 0.05)
        lab_str_printf(&text,
                       " The gain %s with the model's work (rank correlation %.2f, p = %.2g).",
                       trend.r < 0 ? "falls" : "rises", trend.r, trend.p);
    return lab_arena_strdup(arena, text.text);
}

static void add_model_table(struct lab_analysis_part *part, const struct compile_place *place,
                            struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "models", "By model, the least work first", model_columns, arena);
    for (int i = 0; i < place->count; i++) {
        const struct compile_pair *pair = place->pairs[i];
        bool bounded = pair->break_even.interval.high < COMPILE_NEVER;
        double plain = lab_study_point_rate(pair->plain).value,
               compiled = lab_study_point_rate(pair->compiled).value;
        struct lab_doc_cell cost = lab_analysis_effect(pair->cost_s);
        struct lab_effect break_even = {pair->break_even.at,
                                        {pair->break_even.interval.low,
                                         bounded ? pair->break_even.interval.high : INFINITY,
                                         pair->break_even.interval.confidence}};
        LAB_ROW(table, arena, lab_cell_text(pair->plain->runs[0]->model),
                lab_cell_figure(work_of(pair)), lab_cell_figure(plain),
                lab_cell_text(lab_words_number(plain, arena)), lab_cell_figure(compiled),
                lab_cell_text(lab_words_number(compiled, arena)), lab_analysis_ratio(&pair->gain),
                lab_cell_text(lab_study_ratio_words(&pair->gain, arena)), cost,
                lab_cell_text(isnan(cost.value) ? "–" : lab_words_time(cost.value, arena)),
                lab_analysis_effect(break_even), lab_cell_text(break_even_words(pair, arena)),
                lab_cell_text(lab_words_verdict(pair->gain.verdict, "faster", "slower")));
    }
}

static void add_notes(const char *const **notes, const struct compile_place *place,
                      struct lab_arena *arena) {
    bool setup_known = true, cost_known = true, spread_known = true;
    for (int i = 0; i < place->count; i++) {
        setup_known &= place->pairs[i]->setup_known;
        cost_known &= !isnan(place->pairs[i]->cost_s.value);
        spread_known &= !isnan(place->pairs[i]->cost_s.interval.low);
    }
    if (!cost_known)
        lab_analysis_note(notes, arena, "What compiling costs wasn't kept for all of them.");
    else if (!setup_known)
        lab_analysis_note(notes, arena,
                          "How long setting up took wasn't kept: the cost is that of the first "
                          "iteration alone.");
    if (cost_known && !spread_known)
        lab_analysis_note(notes, arena,
                          "One run each says nothing about how the cost varies: break-even has no "
                          "interval. experiment.repeat=5 would give one.");
}

static void add_part(struct lab_analysis_result *result, const struct compile_place *place,
                     const struct compile_config *config, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, place->name, arena);
    const struct compile_pair *most = find_most(place, config);
    struct lab_correlation trend = find_trend(place, arena);
    struct lab_doc_cell against = lab_analysis_effect((struct lab_effect){trend.r, trend.interval});
    against.text = "(rank correlation)";
    LAB_FIGURES(part, lab_cell_figure(place->count),
                lab_cell_figure(count_verdicts(place, LAB_STUDY_MORE)),
                lab_cell_figure(count_verdicts(place, LAB_STUDY_LESS)),
                most ? lab_analysis_ratio(&most->gain) : lab_cell_figure(NAN), against);
    add_model_table(part, place, arena);
    part->about = lab_arena_printf(arena, "%d model%s", place->count, place->count == 1 ? "" : "s");
    part->answer = make_answer(place, config, arena);
    add_notes(&part->notes, place, arena);
}

/* --- the whole --- */

struct all {
    struct compile_place *places;
    struct compile_pair *pairs;
    int place_count, pair_count;
};

static void add_study(const struct lab_analysis_input *input, const struct lab_study_table *study,
                      struct lab_arena *arena, struct all *all) {
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int point_count = lab_study_points(study, arena, &points);
    int group_count = lab_study_groups(points, point_count, part_keys, arena, &groups);
    for (int g = 0; g < group_count; g++) {
        int added = add_pairs(&groups[g], arena, &all->pairs[all->pair_count]);
        if (added == 0)
            continue;
        all->pair_count += added;
        all->places[all->place_count++] = (struct compile_place){
            .name = lab_arena_printf(arena, "%s%s", lab_analysis_prefix(input, study, arena),
                                     groups[g].name),
            .count = added};
    }
}

/* One verdict for each pair that holds beside all others. */
static void judge(struct all *all, struct lab_arena *arena) {
    struct lab_study_ratio *ratios =
        lab_arena_alloc(arena, (size_t)all->pair_count + 1, sizeof *ratios);
    for (int i = 0; i < all->pair_count; i++)
        ratios[i] = all->pairs[i].gain;
    lab_study_adjust(ratios, all->pair_count);
    int next = 0;
    for (int p = 0; p < all->place_count; p++) {
        struct compile_place *place = &all->places[p];
        place->pairs = lab_arena_alloc(arena, (size_t)place->count + 1, sizeof *place->pairs);
        for (int i = 0; i < place->count; i++, next++) {
            all->pairs[next].gain = ratios[next];
            place->pairs[i] = &all->pairs[next];
        }
        qsort(place->pairs, (size_t)place->count, sizeof *place->pairs, by_work);
    }
}

static int compile_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    if (lab_analysis_open(input, LAB_RESULT("places", figure_columns), ret_result, err) < 0)
        return -1;
    size_t room = 1;
    for (int i = 0; i < input->study_count; i++)
        room += (size_t)input->studies[i].run_count;
    struct all all = {.places = lab_arena_alloc(arena, room, sizeof *all.places),
                      .pairs = lab_arena_alloc(arena, room, sizeof *all.pairs)};
    for (int i = 0; i < input->study_count; i++) {
        add_study(input, &input->studies[i], arena, &all);
        lab_study_add_notes(&input->studies[i], "", &ret_result->notes, arena);
    }
    judge(&all, arena);
    for (int i = 0; i < all.place_count; i++)
        add_part(ret_result, &all.places[i], opaque, arena);
    ret_result->answer =
        all.place_count > 0
            ? ret_result->parts[0].answer
            : "There is nothing to compare: no model ran both with compile_model=true and "
              "with false on the same device from the same node.";
    if (all.place_count > 0)
        compile_add_chart(ret_result, all.places, all.place_count, all.pair_count, arena);
    return 0;
}

static int compile_interest(const struct lab_study_table *study) {
    return lab_study_setting_values(study, "compile_model") > 1 ? 85 : 0;
}

const struct lab_analysis lab_analysis_compile = {
    .name = "compile",
    .summary = "what compiling a model gains, what it costs, and when that is paid back",
    .description =
        "Holds each model with compile_model=true against the same with false, on the same device "
        "from the same node: the change of throughput with its interval, the cost of setting up "
        "and "
        "of the first iteration beyond a usual one, and the number of samples after which the time "
        "of both is the same. Verdicts hold for all models together.",
    .options = compile_options,
    .config_size = sizeof(struct compile_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = compile_interest,
    .run = compile_run,
};
