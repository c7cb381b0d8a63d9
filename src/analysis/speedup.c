/*
 * speedup.c: `gpulab analyze speedup`: whether several devices do the same work faster than one, by
 * how much, how well they are used, and from which model or batch on it pays.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_group.h"
#include "analysis/speedup/gang.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- columns --- */

static const struct lab_doc_column figure_columns[] = {
    {"works", "Works", LAB_UNIT_COUNT, "Works"},
    {"comparisons", "Comparisons", LAB_UNIT_COUNT},
    {"beneficial", "Beneficial", LAB_UNIT_COUNT, "Beneficial"},
    {"stay_single", "Stay single", LAB_UNIT_COUNT, "Stay single"},
    {"ambiguous", "Ambiguous", LAB_UNIT_COUNT},
};

static const struct lab_doc_column gang_columns[] = {
    {"work", "Work", LAB_UNIT_TEXT},
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"gpu_ids", NULL, LAB_UNIT_TEXT},
    {NULL, "GPUs", LAB_UNIT_FIGURE},
    {"runs", NULL, LAB_UNIT_COUNT},
    {"one_per_s", NULL, LAB_UNIT_PER_SECOND},
    {"many_per_s", NULL, LAB_UNIT_PER_SECOND},
    {"speedup", NULL, LAB_UNIT_RATIO, .with_interval = true},
    {NULL, "Speed-up", LAB_UNIT_FIGURE},
    {"within_one_run", NULL, LAB_UNIT_TEXT},
    {"efficiency", NULL, LAB_UNIT_SHARE, .with_interval = true},
    {NULL, "Efficiency", LAB_UNIT_SHARE},
    {"communication", "Communication", LAB_UNIT_SHARE},
    {"grade", "Grade", LAB_UNIT_TEXT},
};

static const struct lab_doc_column use_columns[] = {
    {"work", "Work", LAB_UNIT_TEXT},
    {"devices", "Use", LAB_UNIT_COUNT},
    {"gpu_ids", "GPUs", LAB_UNIT_TEXT},
    {"sure", "", LAB_UNIT_TEXT},
};

static const struct lab_doc_column law_columns[] = {
    {"work", "Work", LAB_UNIT_TEXT},
    {"sizes", "Sizes", LAB_UNIT_COUNT},
    {"contention", "Waiting (σ)", LAB_UNIT_NUMBER, .with_interval = true},
    {"coherence", "Talking (κ)", LAB_UNIT_NUMBER, .with_interval = true},
    {"peak_devices", "Most devices", LAB_UNIT_NUMBER, .with_interval = true},
};

static const struct lab_doc_column even_columns[] = {
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"over", NULL, LAB_UNIT_TEXT},
    {NULL, "Over", LAB_UNIT_TEXT},
    {"where", "At", LAB_UNIT_TEXT},
    {"at", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Break-even", LAB_UNIT_FIGURE},
};

/* As the ratio is made: the two rates of a row divide to it. */
static double rate_of(const struct lab_study_point *point) {
    return point ? lab_study_estimate(point->rates, point->count).value : (double)NAN;
}

static void add_gang_table(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                           struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "speedups", "Several devices against one", gang_columns, arena);
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        const struct lab_study_ratio *ratio = &gang->ratio;
        LAB_ROW(table, arena, lab_cell_text(gangs->works[gang->work].name),
                lab_cell_figure(gang->size), lab_cell_text(gang->gpus),
                lab_cell_text(lab_gang_has_rival(gangs, gang) ? gang->gpus : NULL),
                lab_cell_figure(gang->point->count), lab_cell_figure(rate_of(gang->base)),
                lab_cell_figure(rate_of(gang->point)),
                lab_cell_interval(ratio->ratio, ratio->low, ratio->high, CONFIDENCE),
                lab_cell_text(lab_words_times(ratio->ratio, ratio->low, ratio->high, arena)),
                lab_cell_text(ratio->within ? "yes" : "no"),
                lab_cell_interval(ratio->ratio / gang->size, ratio->low / gang->size,
                                  ratio->high / gang->size, CONFIDENCE),
                lab_cell_figure(ratio->ratio / gang->size), lab_cell_figure(gang->communication),
                lab_cell_text(lab_speedup_grade_name(gang->grade)));
    }
    lab_analysis_hide_empty(table);
    lab_analysis_hide_columns(table, arena);
}

/* What to use for each work: so many devices, or one. */
static void add_use_table(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                          struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "recommendations", "How many devices to use", use_columns, arena);
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang *best = gangs->works[w].best;
        bool compared = false, open = false, apart = false;
        for (int i = 0; i < gangs->count; i++) {
            const struct lab_gang *gang = &gangs->items[i];
            compared |= gang->work == w && gang->base;
            apart |= gang->work == w && gang->grade == LAB_SPEEDUP_APART;
            open |= gang->work == w && gang->base &&
                    (gang->grade == LAB_SPEEDUP_AMBIGUOUS || gang->grade == LAB_SPEEDUP_UNKNOWN);
        }
        if (!compared)
            continue;
        LAB_ROW(table, arena, lab_cell_text(gangs->works[w].name),
                lab_cell_figure(best ? best->size : 1), lab_cell_text(best ? best->gpus : NULL),
                lab_cell_text(best    ? lab_words_times(best->ratio.ratio, best->ratio.low,
                                                        best->ratio.high, arena)
                              : open  ? "more may pay: ambiguous"
                              : apart ? "more train a model each: none is faster"
                                      : "more don't pay"));
    }
    lab_analysis_hide_empty(table);
    lab_analysis_hide_columns(table, arena);
}

static struct lab_doc_cell coefficient(const struct lab_fit *fit, size_t number) {
    struct lab_interval interval = lab_fit_interval(fit, number, CONFIDENCE);
    return lab_cell_interval(fit->coefficients[number], interval.low, interval.high, CONFIDENCE);
}

static void add_law_table(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(
        part, "laws", "Universal Scalability Law: throughput over devices", law_columns, arena);
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang_work *work = &gangs->works[w];
        if (work->usl.state != LAB_FIT_OK)
            continue;
        LAB_ROW(table, arena, lab_cell_text(work->name), lab_cell_figure(work->sizes),
                coefficient(&work->usl, 1), coefficient(&work->usl, 2),
                lab_cell_interval(work->peak.value, work->peak.interval.low,
                                  work->peak.interval.high, CONFIDENCE));
    }
    lab_analysis_hide_empty(table);
    lab_analysis_hide_columns(table, arena);
}

static void add_even_table(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                           struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "break_even", "Break-even", even_columns, arena);
    static const char *const axes[] = {[LAB_EVEN_PARAMETERS] = "parameters",
                                       [LAB_EVEN_FLOPS] = "flops",
                                       [LAB_EVEN_BATCH] = "batch_size"};
    static const char *const titles[] = {[LAB_EVEN_PARAMETERS] = "parameters",
                                         [LAB_EVEN_FLOPS] = "operations",
                                         [LAB_EVEN_BATCH] = "batch size"};
    for (int i = 0; i < gangs->even_count; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        LAB_ROW(table, arena, lab_cell_figure(even->size), lab_cell_text(axes[even->axis]),
                lab_cell_text(titles[even->axis]), lab_cell_text(even->where),
                lab_cell_interval(even->at, even->low, even->high, CONFIDENCE),
                lab_cell_text(lab_break_even_figure(even, arena)));
    }
    lab_analysis_hide_empty(table);
}

/* --- the picture --- */

#define BARS_MAX 12

/* What one colour stands for: a gang of these devices; of too many gangs, a size's extremes. */
struct bars {
    int size;
    const char *gpus;    /* NULL = any of this size */
    const char *slowest; /* the title where the slowest of the size counts; NULL = the fastest */
};

static bool comes_before(const struct bars *bars, const struct lab_gang *gang) {
    return bars->size < gang->size ||
           (bars->size == gang->size && bars->gpus && strcmp(bars->gpus, gang->gpus) < 0);
}

/* In order of size, then of devices; `apart`: by the devices. Returns how many, BARS_MAX + 1 = too
 * many.
 */
static int list_bars(const struct lab_gangs *gangs, bool apart, struct bars *list) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        int at = 0;
        while (at < count && comes_before(&list[at], gang))
            at++;
        bool known = at < count && list[at].size == gang->size &&
                     (!apart || lab_str_equal(list[at].gpus, gang->gpus));
        if (!gang->base || known)
            continue;
        if (count == BARS_MAX)
            return BARS_MAX + 1;
        for (int k = count++; k > at; k--)
            list[k] = list[k - 1];
        list[at] = (struct bars){gang->size, apart ? gang->gpus : NULL, NULL};
    }
    return count;
}

/* A bar for every gang; where they are too many, the fastest and the slowest of each size. */
static int choose_bars(const struct lab_gangs *gangs, struct bars *list, struct lab_arena *arena) {
    int count = list_bars(gangs, true, list);
    if (count <= BARS_MAX)
        return count;
    count = list_bars(gangs, false, list);
    if (count > BARS_MAX / 2)
        count = BARS_MAX / 2;
    for (int i = count - 1; i >= 0; i--) {
        struct bars *pair = list + (ptrdiff_t)2 * i;
        pair[0] = pair[1] = list[i];
        pair[1].slowest = lab_arena_printf(arena, "%d devices, slowest", pair[1].size);
    }
    return 2 * count;
}

static const char *bars_title(const struct bars *list, int count, int number,
                              struct lab_arena *arena) {
    const struct bars *bars = &list[number];
    bool rival = false;
    for (int i = 0; i < count; i++)
        rival = rival || (i != number && list[i].size == bars->size);
    if (bars->slowest)
        return bars->slowest;
    if (rival && bars->gpus)
        return lab_arena_printf(arena, "GPUs %s", bars->gpus);
    return lab_arena_printf(arena, "%d devices%s", bars->size, rival ? ", fastest" : "");
}

static bool is_of(const struct lab_gang *gang, const struct bars *bars) {
    return gang->base && gang->size == bars->size &&
           (!bars->gpus || lab_str_equal(bars->gpus, gang->gpus));
}

static void add_bars(struct lab_chart_panel *panel, const struct lab_gangs *gangs,
                     const struct bars *bars, const char *title, int colour,
                     struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int w = 0; w < gangs->work_count; w++)
        lab_series_add(&series, w, NAN, NAN, NAN);
    for (int i = 0; series.y && i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        double before = series.y[gang->work];
        bool kept = bars->slowest ? gang->ratio.ratio >= before : gang->ratio.ratio <= before;
        if (!is_of(gang, bars) || kept)
            continue;
        series.y[gang->work] = gang->ratio.ratio;
        series.low[gang->work] = gang->ratio.low;
        series.high[gang->work] = gang->ratio.high;
    }
    lab_panel_add_series(panel, lab_series_chart(&series, title, LAB_CHART_BARS, colour), arena);
}

/* "vit32x6x512, b64" of "vit32x6x512_batch_size64": the whole takes more room than the bars. */
static const char *axis_name(const char *name, struct lab_arena *arena) {
    static const char key[] = "_batch_size";
    const char *at = strstr(name, key);
    return at ? lab_arena_printf(arena, "%.*s, b%s", (int)(at - name), name, at + sizeof key - 1)
              : name;
}

static void add_chart(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                      const char *name, bool simulated, struct lab_arena *arena) {
    struct bars list[BARS_MAX];
    int count = choose_bars(gangs, list, arena), works = gangs->work_count;
    if (count == 0)
        return;
    const char **names = lab_arena_alloc(arena, (size_t)works + 1, sizeof *names);
    for (int w = 0; w < works; w++)
        names[w] = axis_name(gangs->works[w].name, arena);
    bool within = false, apart = false;
    for (int i = 0; i < gangs->count; i++) {
        within = within || gangs->items[i].ratio.within;
        apart = apart || gangs->items[i].grade == LAB_SPEEDUP_APART;
    }
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = name,
                           .title = "Several devices against one",
                           .caption = within ? "Whiskers are 95 % intervals within one run each."
                                             : "Whiskers are 95 % intervals.",
                           .columns = 1,
                           .simulated = simulated},
        arena);
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, NULL, lab_axis_names("Work", names, works),
        lab_axis_from(apart ? "Throughput over one device's [×]" : "Speed-up over one device [×]",
                      0),
        arena);
    for (int i = 0; i < count; i++)
        add_bars(panel, gangs, &list[i], bars_title(list, count, i, arena), i, arena);
    lab_panel_add_series(panel, lab_series_level("One device", -0.5, works - 0.5, 1, count, arena),
                         arena);
    lab_panel_add_series(
        panel,
        lab_series_level("Worth it", -0.5, works - 0.5, LAB_SPEEDUP_BENEFICIAL, count + 1, arena),
        arena);
}

static void add_part_notes(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                           struct lab_arena *arena) {
    int alone = 0;
    for (int i = 0; i < gangs->count; i++)
        alone += !gangs->items[i].base;
    if (alone > 0 && alone < gangs->count)
        lab_analysis_note(&part->notes, arena,
                          "%d of %d gangs have no run on one device to be compared with.", alone,
                          gangs->count);
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang_work *work = &gangs->works[w];
        if (work->sizes >= 3 && work->usl.state != LAB_FIT_OK)
            lab_analysis_note(&part->notes, arena,
                              "%s: throughput over devices follows no Universal Scalability Law.",
                              work->name);
    }
}

static void add_part(struct lab_analysis_result *result, const struct lab_study_table *study,
                     const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, study->name, arena);
    part->answer = lab_gangs_answer(gangs, arena);
    LAB_FIGURES(part, lab_cell_remark(gangs->work_count, "that differ in more than their devices"),
                lab_cell_figure(gangs->count),
                lab_cell_figure(lab_gangs_count(gangs, LAB_SPEEDUP_PAYS)),
                lab_cell_figure(lab_gangs_count(gangs, LAB_SPEEDUP_STAY)),
                lab_cell_figure(lab_gangs_count(gangs, LAB_SPEEDUP_AMBIGUOUS)));
    add_gang_table(part, gangs, arena);
    add_use_table(part, gangs, arena);
    add_law_table(part, gangs, arena);
    add_even_table(part, gangs, arena);
    add_part_notes(part, gangs, arena);
}

static int speedup_run(const void *config, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("studies", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++) {
        const struct lab_study_table *study = &input->studies[i];
        struct lab_gangs gangs;
        lab_gangs_make(study, arena, &gangs);
        if (lab_study_trains(study))
            gangs.even_count = 0; /* `training` knows what a step is made of, and tells it better */
        add_part(ret_result, study, &gangs, arena);
        add_chart(ret_result, &gangs,
                  lab_arena_printf(arena, "speedup%s", lab_analysis_suffix(i, arena)),
                  study->simulated, arena);
    }
    ret_result->answer = ret_result->parts[0].answer;
    lab_study_add_notes(&input->studies[0], "", &ret_result->notes, arena);
    return 0;
}

static int speedup_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study))
        return 0;
    for (int i = 1; i < study->run_count; i++)
        if (study->runs[i].rank_count != study->runs[0].rank_count)
            return lab_study_trains(study) ? 90 : 70;
    return 0;
}

static const struct lab_option speedup_options[] = {{NULL}};

const struct lab_analysis lab_analysis_speedup = {
    .name = "speedup",
    .summary = "whether several devices do the same work faster than one",
    .description =
        "Each gang of devices against the fastest of its members alone at the same work: speed-up "
        "with "
        "its interval, efficiency, the share of communication, and a grade: 1.10 and above is "
        "beneficial, 0.95 and above marginal, below that stay single; ambiguous where the interval "
        "straddles a boundary. With three sizes or more the Universal Scalability Law; over models "
        "and "
        "batches the break-even.",
    .options = speedup_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = speedup_interest,
    .run = speedup_run,
};
