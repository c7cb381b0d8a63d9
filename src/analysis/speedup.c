/*
 * speedup.c: `gpulab analyze speedup`: whether several devices do the same work faster than one, by
 * how much, how well they are used, and from which model or batch on it pays.
 */
#include "analysis/analysis.h"
#include "analysis/analysis_group.h"
#include "analysis/analysis_series.h"
#include "analysis/speedup/gang.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- columns --- */

enum { WORKS, GANGS, PAYS, STAYS, AMBIGUOUS, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [WORKS] = {"works", "Works", LAB_UNIT_COUNT, "Works"},
    [GANGS] = {"comparisons", "Comparisons", LAB_UNIT_COUNT},
    [PAYS] = {"beneficial", "Beneficial", LAB_UNIT_COUNT, "Beneficial"},
    [STAYS] = {"stay_single", "Stay single", LAB_UNIT_COUNT, "Stay single"},
    [AMBIGUOUS] = {"ambiguous", "Ambiguous", LAB_UNIT_COUNT},
};

enum {
    GANG_WORK,
    GANG_SIZE,
    GANG_GPUS,
    GANG_GPUS_TEXT,
    GANG_RUNS,
    GANG_RATE_ONE,
    GANG_RATE,
    GANG_SPEEDUP,
    GANG_SPEEDUP_TEXT,
    GANG_WITHIN,
    GANG_EFFICIENCY,
    GANG_EFFICIENCY_SHOWN,
    GANG_COMMUNICATION,
    GANG_GRADE,
    GANG_COLUMNS
};

static const struct lab_doc_column gang_columns[GANG_COLUMNS] = {
    [GANG_WORK] = {"work", "Work", LAB_UNIT_TEXT},
    [GANG_SIZE] = {"devices", "Devices", LAB_UNIT_COUNT},
    [GANG_GPUS] = {"gpu_ids", NULL, LAB_UNIT_TEXT},
    [GANG_GPUS_TEXT] = {NULL, "GPUs", LAB_UNIT_FIGURE},
    [GANG_RUNS] = {"runs", NULL, LAB_UNIT_COUNT},
    [GANG_RATE_ONE] = {"one_per_s", NULL, LAB_UNIT_PER_SECOND},
    [GANG_RATE] = {"many_per_s", NULL, LAB_UNIT_PER_SECOND},
    [GANG_SPEEDUP] = {"speedup", NULL, LAB_UNIT_RATIO, .with_interval = true},
    [GANG_SPEEDUP_TEXT] = {NULL, "Speed-up", LAB_UNIT_FIGURE},
    [GANG_WITHIN] = {"within_one_run", NULL, LAB_UNIT_TEXT},
    [GANG_EFFICIENCY] = {"efficiency", NULL, LAB_UNIT_SHARE, .with_interval = true},
    [GANG_EFFICIENCY_SHOWN] = {NULL, "Efficiency", LAB_UNIT_SHARE},
    [GANG_COMMUNICATION] = {"communication", "Communication", LAB_UNIT_SHARE},
    [GANG_GRADE] = {"grade", "Grade", LAB_UNIT_TEXT},
};

enum { USE_WORK, USE_SIZE, USE_GPUS, USE_WORDS, USE_COLUMNS };
static const struct lab_doc_column use_columns[USE_COLUMNS] = {
    [USE_WORK] = {"work", "Work", LAB_UNIT_TEXT},
    [USE_SIZE] = {"devices", "Use", LAB_UNIT_COUNT},
    [USE_GPUS] = {"gpu_ids", "GPUs", LAB_UNIT_TEXT},
    [USE_WORDS] = {"sure", "", LAB_UNIT_TEXT},
};

enum { LAW_WORK, LAW_SIZES, LAW_CONTENTION, LAW_COHERENCE, LAW_PEAK, LAW_COLUMNS };
static const struct lab_doc_column law_columns[LAW_COLUMNS] = {
    [LAW_WORK] = {"work", "Work", LAB_UNIT_TEXT},
    [LAW_SIZES] = {"sizes", "Sizes", LAB_UNIT_COUNT},
    [LAW_CONTENTION] = {"contention", "Waiting (σ)", LAB_UNIT_NUMBER, .with_interval = true},
    [LAW_COHERENCE] = {"coherence", "Talking (κ)", LAB_UNIT_NUMBER, .with_interval = true},
    [LAW_PEAK] = {"peak_devices", "Most devices", LAB_UNIT_NUMBER, .with_interval = true},
};

enum { EVEN_SIZE, EVEN_AXIS, EVEN_AXIS_TEXT, EVEN_WHERE, EVEN_AT, EVEN_TEXT, EVEN_COLUMNS };
static const struct lab_doc_column even_columns[EVEN_COLUMNS] = {
    [EVEN_SIZE] = {"devices", "Devices", LAB_UNIT_COUNT},
    [EVEN_AXIS] = {"over", NULL, LAB_UNIT_TEXT},
    [EVEN_AXIS_TEXT] = {NULL, "Over", LAB_UNIT_TEXT},
    [EVEN_WHERE] = {"where", "At", LAB_UNIT_TEXT},
    [EVEN_AT] = {"at", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [EVEN_TEXT] = {NULL, "Break-even", LAB_UNIT_FIGURE},
};

/* --- tables --- */

static struct lab_doc_cell with_interval(double value, double low, double high) {
    return (struct lab_doc_cell){
        .value = value, .low = low, .high = high, .confidence = CONFIDENCE};
}

static const char *ratio_text(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    if (isnan(ratio->ratio))
        return "–";
    return isnan(ratio->low) ? lab_arena_printf(arena, "%.2f×", ratio->ratio)
                             : lab_arena_printf(arena, "%.2f× [%.2f, %.2f]", ratio->ratio,
                                                ratio->low, ratio->high);
}

/* As the ratio is made: the two rates of a row divide to it. */
static double rate_of(const struct lab_study_point *point) {
    return point ? lab_study_estimate(point->rates, point->count).value : (double)NAN;
}

static struct lab_doc_table gang_table(const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)gangs->count * GANG_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        const struct lab_study_ratio *ratio = &gang->ratio;
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * GANG_COLUMNS;
        row[GANG_WORK] = lab_cell_text(gangs->works[gang->work].name);
        row[GANG_SIZE] = lab_cell_figure(gang->size);
        row[GANG_GPUS] = lab_cell_text(gang->gpus);
        row[GANG_GPUS_TEXT] = lab_cell_text(lab_gang_has_rival(gangs, gang) ? gang->gpus : NULL);
        row[GANG_RUNS] = lab_cell_figure(gang->point->count);
        row[GANG_RATE_ONE] = lab_cell_figure(rate_of(gang->base));
        row[GANG_RATE] = lab_cell_figure(rate_of(gang->point));
        row[GANG_SPEEDUP] = with_interval(ratio->ratio, ratio->low, ratio->high);
        row[GANG_SPEEDUP_TEXT] = lab_cell_text(ratio_text(ratio, arena));
        row[GANG_WITHIN] = lab_cell_text(ratio->within ? "yes" : "no");
        row[GANG_EFFICIENCY] = with_interval(ratio->ratio / gang->size, ratio->low / gang->size,
                                             ratio->high / gang->size);
        row[GANG_EFFICIENCY_SHOWN] = lab_cell_figure(ratio->ratio / gang->size);
        row[GANG_COMMUNICATION] = lab_cell_figure(gang->communication);
        row[GANG_GRADE] = lab_cell_text(lab_speedup_grade_name(gang->grade));
    }
    return (struct lab_doc_table){
        .key = "speedups",
        .title = gangs->count ? "Several devices against one" : NULL,
        .columns = lab_analysis_shown(gang_columns, GANG_COLUMNS, cells, gangs->count, arena),
        .column_count = GANG_COLUMNS,
        .cells = cells,
        .row_count = gangs->count};
}

/* What to use for each work: so many devices, or one. */
static struct lab_doc_table use_table(const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)gangs->work_count * USE_COLUMNS + 1, sizeof *cells);
    int rows = 0;
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
        struct lab_doc_cell *row = cells + (ptrdiff_t)rows++ * USE_COLUMNS;
        row[USE_WORK] = lab_cell_text(gangs->works[w].name);
        row[USE_SIZE] = lab_cell_figure(best ? best->size : 1);
        row[USE_GPUS] = lab_cell_text(best ? best->gpus : NULL);
        row[USE_WORDS] = lab_cell_text(best    ? ratio_text(&best->ratio, arena)
                                       : open  ? "more may pay: ambiguous"
                                       : apart ? "more train a model each: none is faster"
                                               : "more don't pay");
    }
    return (struct lab_doc_table){
        .key = "recommendations",
        .title = rows ? "How many devices to use" : NULL,
        .columns = lab_analysis_shown(use_columns, USE_COLUMNS, cells, rows, arena),
        .column_count = USE_COLUMNS,
        .cells = cells,
        .row_count = rows};
}

static struct lab_doc_cell coefficient(const struct lab_fit *fit, size_t number) {
    struct lab_interval interval = lab_fit_interval(fit, number, CONFIDENCE);
    return with_interval(fit->coefficients[number], interval.low, interval.high);
}

static struct lab_doc_table law_table(const struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)gangs->work_count * LAW_COLUMNS + 1, sizeof *cells);
    int rows = 0;
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang_work *work = &gangs->works[w];
        if (work->usl.state != LAB_FIT_OK)
            continue;
        struct lab_doc_cell *row = cells + (ptrdiff_t)rows++ * LAW_COLUMNS;
        row[LAW_WORK] = lab_cell_text(work->name);
        row[LAW_SIZES] = lab_cell_figure(work->sizes);
        row[LAW_CONTENTION] = coefficient(&work->usl, 1);
        row[LAW_COHERENCE] = coefficient(&work->usl, 2);
        row[LAW_PEAK] =
            with_interval(work->peak.value, work->peak.interval.low, work->peak.interval.high);
    }
    return (struct lab_doc_table){
        .key = "laws",
        .title = rows ? "Universal Scalability Law: throughput over devices" : NULL,
        .columns = lab_analysis_shown(law_columns, LAW_COLUMNS, cells, rows, arena),
        .column_count = LAW_COLUMNS,
        .cells = cells,
        .row_count = rows};
}

static struct lab_doc_table even_table(const struct lab_gangs *gangs, struct lab_arena *arena) {
    static const char *const axes[] = {[LAB_EVEN_PARAMETERS] = "parameters",
                                       [LAB_EVEN_FLOPS] = "flops",
                                       [LAB_EVEN_BATCH] = "batch_size"};
    static const char *const titles[] = {[LAB_EVEN_PARAMETERS] = "parameters",
                                         [LAB_EVEN_FLOPS] = "operations",
                                         [LAB_EVEN_BATCH] = "batch size"};
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)gangs->even_count * EVEN_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < gangs->even_count; i++) {
        const struct lab_break_even *even = &gangs->break_even[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * EVEN_COLUMNS;
        row[EVEN_SIZE] = lab_cell_figure(even->size);
        row[EVEN_AXIS] = lab_cell_text(axes[even->axis]);
        row[EVEN_WHERE] = lab_cell_text(even->where);
        row[EVEN_AT] = with_interval(even->at, even->low, even->high);
        row[EVEN_AXIS_TEXT] = lab_cell_text(titles[even->axis]);
        row[EVEN_TEXT] = lab_cell_text(lab_break_even_figure(even, arena));
    }
    return (struct lab_doc_table){.key = "break_even",
                                  .title = gangs->even_count ? "Break-even" : NULL,
                                  .columns = even_columns,
                                  .column_count = EVEN_COLUMNS,
                                  .cells = cells,
                                  .row_count = gangs->even_count};
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

static struct lab_chart_series bars_of(const struct lab_gangs *gangs, const struct bars *bars,
                                       struct lab_arena *arena) {
    size_t works = (size_t)gangs->work_count;
    double *x = lab_arena_alloc(arena, works, sizeof *x),
           *y = lab_arena_alloc(arena, works, sizeof *y);
    double *low = lab_arena_alloc(arena, works, sizeof *low);
    double *high = lab_arena_alloc(arena, works, sizeof *high);
    for (size_t w = 0; w < works; w++) {
        x[w] = (double)w;
        y[w] = low[w] = high[w] = NAN;
    }
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        double before = y[gang->work];
        bool kept = bars->slowest ? gang->ratio.ratio >= before : gang->ratio.ratio <= before;
        if (!is_of(gang, bars) || kept)
            continue;
        y[gang->work] = gang->ratio.ratio;
        low[gang->work] = gang->ratio.low;
        high[gang->work] = gang->ratio.high;
    }
    return (struct lab_chart_series){
        .mark = LAB_CHART_BARS, .x = x, .y = y, .low = low, .high = high, .count = works};
}

static struct lab_chart_series limit(const char *title, double at, int works, int colour,
                                     struct lab_arena *arena) {
    return lab_series_level(title, -0.5, works - 0.5, at, colour, arena);
}

/* "vit32x6x512, b64" of "vit32x6x512_batch_size64": the whole takes more room than the bars. */
static const char *axis_name(const char *name, struct lab_arena *arena) {
    static const char key[] = "_batch_size";
    const char *at = strstr(name, key);
    return at ? lab_arena_printf(arena, "%.*s, b%s", (int)(at - name), name, at + sizeof key - 1)
              : name;
}

static bool make_chart(const struct lab_gangs *gangs, const char *name, bool simulated,
                       struct lab_arena *arena, struct lab_chart *ret_chart) {
    struct bars list[BARS_MAX];
    int count = choose_bars(gangs, list, arena);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    struct lab_chart_series *series = lab_arena_alloc(arena, BARS_MAX + 2, sizeof *series);
    const char **names = lab_arena_alloc(arena, (size_t)gangs->work_count + 1, sizeof *names);
    for (int w = 0; w < gangs->work_count; w++)
        names[w] = axis_name(gangs->works[w].name, arena);
    bool within = false, apart = false;
    for (int i = 0; i < gangs->count; i++) {
        within = within || gangs->items[i].ratio.within;
        apart = apart || gangs->items[i].grade == LAB_SPEEDUP_APART;
    }
    for (int i = 0; i < count; i++) {
        series[i] = bars_of(gangs, &list[i], arena);
        series[i].title = bars_title(list, count, i, arena);
        series[i].colour = i;
    }
    series[count] = limit("One device", 1, gangs->work_count, count, arena);
    series[count + 1] =
        limit("Worth it", LAB_SPEEDUP_BENEFICIAL, gangs->work_count, count + 1, arena);
    *panel = (struct lab_chart_panel){
        .x = {.title = "Work",
              .low = NAN,
              .high = NAN,
              .names = names,
              .name_count = gangs->work_count},
        .y = {.title = apart ? "Throughput over one device's [×]" : "Speed-up over one device [×]",
              .low = 0,
              .high = NAN},
        .series = series,
        .series_count = count + 2};
    *ret_chart =
        (struct lab_chart){.name = name,
                           .title = "Several devices against one",
                           .caption = within ? "Whiskers are 95 % intervals within one run each."
                                             : "Whiskers are 95 % intervals.",
                           .panels = panel,
                           .panel_count = 1,
                           .columns = 1,
                           .simulated = simulated};
    return count > 0;
}

/* --- the whole --- */

static int count_grade(const struct lab_gangs *gangs, enum lab_speedup_grade grade) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++)
        count += gangs->items[i].grade == grade;
    return count;
}

static const char *const *part_notes(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const char **notes =
        lab_arena_alloc(arena, (size_t)gangs->count + (size_t)gangs->work_count + 2, sizeof *notes);
    int count = 0, alone = 0;
    for (int i = 0; i < gangs->count; i++)
        alone += !gangs->items[i].base;
    if (alone > 0 && alone < gangs->count)
        notes[count++] =
            lab_arena_printf(arena, "%d of %d gangs have no run on one device to be compared with.",
                             alone, gangs->count);
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang_work *work = &gangs->works[w];
        if (work->sizes >= 3 && work->usl.state != LAB_FIT_OK)
            notes[count++] = lab_arena_printf(
                arena, "%s: throughput over devices follows no Universal Scalability Law.",
                work->name);
    }
    return notes;
}

static struct lab_analysis_part make_part(const struct lab_study_table *study,
                                          const struct lab_gangs *gangs, struct lab_arena *arena) {
    enum { TABLES = 4 };
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, TABLES, sizeof *tables);
    cells[WORKS] = lab_cell_figure(gangs->work_count);
    cells[GANGS] = lab_cell_figure(gangs->count);
    cells[PAYS] = lab_cell_figure(count_grade(gangs, LAB_SPEEDUP_PAYS));
    cells[STAYS] = lab_cell_figure(count_grade(gangs, LAB_SPEEDUP_STAY));
    cells[AMBIGUOUS] = lab_cell_figure(count_grade(gangs, LAB_SPEEDUP_AMBIGUOUS));
    cells[WORKS].text = "that differ in more than their devices";
    tables[0] = gang_table(gangs, arena);
    tables[1] = use_table(gangs, arena);
    tables[2] = law_table(gangs, arena);
    tables[3] = even_table(gangs, arena);
    return (struct lab_analysis_part){.name = study->name,
                                      .answer = lab_gangs_answer(gangs, arena),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = TABLES,
                                      .notes = part_notes(gangs, arena)};
}

static int speedup_run(const void *config, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    (void)config;
    int count = input->study_count;
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    struct lab_chart *charts = lab_arena_alloc(arena, (size_t)count, sizeof *charts);
    struct lab_analysis_result result = {.part_key = "studies",
                                         .columns = figure_columns,
                                         .column_count = FIGURES,
                                         .parts = parts,
                                         .part_count = count,
                                         .notes = lab_study_notes(&input->studies[0], 0, arena),
                                         .charts = charts};
    for (int i = 0; i < count; i++) {
        const struct lab_study_table *study = &input->studies[i];
        struct lab_gangs gangs;
        lab_gangs_make(study, arena, &gangs);
        if (lab_study_trains(study))
            gangs.even_count = 0; /* `training` knows what a step is made of, and tells it better */
        parts[i] = make_part(study, &gangs, arena);
        result.simulated |= study->simulated;
        const char *name = i > 0 ? lab_arena_printf(arena, "speedup_%d", i + 1) : "speedup";
        result.chart_count +=
            make_chart(&gangs, name, study->simulated, arena, &charts[result.chart_count]);
    }
    result.answer = parts[0].answer;
    *ret_result = result;
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
