/*
 * transfer.c: `gpulab analyze transfer`: how fast copies are by their size, what batch and pool do
 * to the throughput, and whether a far node costs more under memory pressure.
 */
#include "analysis/transfer/transfer.h"

#include "base/str.h"

#include <math.h>

struct transfer_config {
    bool pressure;
};

static const struct lab_option transfer_options[] = {
    {"pressure", LAB_OPTION_FLAG, offsetof(struct transfer_config, pressure), .fallback = "true",
     .help = "hold the price of a far node against the size of the pool, where both vary"},
    {NULL},
};

/* --- columns --- */

enum { SETS, POINTS, BANDWIDTH, WAIT, CHANGE, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [SETS] = {"sets", NULL, LAB_UNIT_COUNT},
    [POINTS] = {"points", "Points", LAB_UNIT_COUNT, "Points"},
    [BANDWIDTH] = {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, "Bandwidth", true},
    [WAIT] = {"wait_ms", "Before each copy", LAB_UNIT_TIME, NULL, true},
    [CHANGE] = {"largest_change", "Largest change", LAB_UNIT_CHANGE, "Largest change", true},
};

enum {
    ROW_PLACE,
    ROW_SET,
    ROW_HEAD,
    ROW_LABEL,
    ROW_BYTES,
    ROW_BANDWIDTH,
    ROW_RATE,
    ROW_RATE_TEXT,
    ROW_CHANGE,
    ROW_CHANGE_TEXT,
    ROWS
};
static const struct lab_doc_column row_columns[ROWS] = {
    [ROW_PLACE] = {"place", NULL, LAB_UNIT_TEXT},
    [ROW_SET] = {"set", NULL, LAB_UNIT_TEXT},
    [ROW_HEAD] = {NULL, "What", LAB_UNIT_TEXT},
    [ROW_LABEL] = {"value", "", LAB_UNIT_TEXT},
    [ROW_BYTES] = {"bytes", "Bytes", LAB_UNIT_SIZE},
    [ROW_BANDWIDTH] = {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, .with_interval = true},
    [ROW_RATE] = {"rate_per_s", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [ROW_RATE_TEXT] = {NULL, "Samples/s", LAB_UNIT_FIGURE},
    [ROW_CHANGE] = {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [ROW_CHANGE_TEXT] = {NULL, "Against the first", LAB_UNIT_FIGURE},
};

enum { LAW_PLACE, LAW_SET, LAW_HEAD, LAW_POINTS, LAW_WAIT, LAW_BANDWIDTH, LAW_R_SQUARED, LAWS };
static const struct lab_doc_column law_columns[LAWS] = {
    [LAW_PLACE] = {"place", NULL, LAB_UNIT_TEXT},
    [LAW_SET] = {"set", NULL, LAB_UNIT_TEXT},
    [LAW_HEAD] = {NULL, "What", LAB_UNIT_TEXT},
    [LAW_POINTS] = {"points", "Points", LAB_UNIT_COUNT},
    [LAW_WAIT] = {"wait_ms", "Before each copy", LAB_UNIT_TIME, .with_interval = true},
    [LAW_BANDWIDTH] = {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, .with_interval = true},
    [LAW_R_SQUARED] = {"r_squared", "R²", LAB_UNIT_NUMBER},
};

enum {
    FAR_PLACE,
    FAR_SET,
    FAR_HEAD,
    FAR_NEAR,
    FAR_FAR,
    FAR_POOL,
    FAR_CHANGE,
    FAR_CHANGE_TEXT,
    FARS
};
static const struct lab_doc_column far_columns[FARS] = {
    [FAR_PLACE] = {"device", NULL, LAB_UNIT_TEXT},
    [FAR_SET] = {"set", NULL, LAB_UNIT_TEXT},
    [FAR_HEAD] = {NULL, "What", LAB_UNIT_TEXT},
    [FAR_NEAR] = {"near_node", "Near", LAB_UNIT_COUNT},
    [FAR_FAR] = {"far_node", "Far", LAB_UNIT_COUNT},
    [FAR_POOL] = {"memory_size_mb", "Pool, MiB", LAB_UNIT_COUNT},
    [FAR_CHANGE] = {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [FAR_CHANGE_TEXT] = {NULL, "From the far node", LAB_UNIT_FIGURE},
};

struct wording {
    const char *key, *name, *value, *noun;
};

static const struct wording wordings[TRANSFER_QUESTIONS] = {
    [TRANSFER_H2D] = {"h2d", "H2D by image size", "Images", "Copies to the device"},
    [TRANSFER_D2H] = {"d2h", "D2H by model", "Model", "Copies to the host"},
    [TRANSFER_BATCH] = {"batch", "Throughput by batch", "Batch", "batch"},
    [TRANSFER_POOL] = {"pool", "Throughput by pool", "Pool", "pool"},
};

/* --- cells and words --- */

static struct lab_doc_cell wait_cell(const struct transfer_set *set, struct lab_arena *arena) {
    struct lab_doc_cell cell = lab_analysis_effect((struct lab_effect){
        set->law.coefficients[0], lab_fit_interval(&set->law, 0, TRANSFER_CONFIDENCE)});
    if (cell.value == 0 && !isnan(cell.high))
        cell.text = lab_arena_printf(arena, "(at most %s)", lab_words_time(cell.high, arena));
    return cell;
}

/* --- tables --- */

/* What tells a set from the others of its table; where none differs in place, that is left out. */
static const char *head_of(const struct lab_study_group *group, const struct lab_study_group *first,
                           const struct lab_study_group *last) {
    bool one_place = lab_str_equal(first->place, last->place);
    return one_place && *group->what ? group->what : group->name;
}

static const char *set_head(const struct transfer_sets *sets, const struct transfer_set *set) {
    return head_of(set->group, sets->items[0].group, sets->items[sets->count - 1].group);
}

static int count_points(const struct transfer_sets *sets) {
    int count = 0;
    for (int i = 0; i < sets->count; i++)
        count += sets->items[i].count;
    return count;
}

static const struct lab_doc_column *columns_for(enum transfer_question question,
                                                struct lab_arena *arena) {
    bool copies = transfer_is_copies(question);
    struct lab_doc_column *columns = lab_arena_alloc(arena, ROWS, sizeof *columns);
    for (int c = 0; c < ROWS; c++)
        columns[c] = row_columns[c];
    columns[ROW_LABEL].title = wordings[question].value;
    columns[copies ? ROW_RATE_TEXT : ROW_BANDWIDTH].title = NULL;
    if (copies)
        columns[ROW_CHANGE_TEXT].title = NULL;
    else
        columns[ROW_BYTES].title = NULL;
    return columns;
}

static struct lab_doc_table row_table(const struct transfer_sets *sets, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count_points(sets) * ROWS + 1, sizeof *cells);
    enum lab_stage stage = sets->question == TRANSFER_D2H ? LAB_STAGE_D2H : LAB_STAGE_H2D;
    int count = 0;
    for (int s = 0; s < sets->count; s++)
        for (int i = 0; i < sets->items[s].count; i++) {
            const struct transfer_row *from = &sets->items[s].rows[i];
            struct lab_doc_cell *row = cells + (ptrdiff_t)count++ * ROWS;
            row[ROW_PLACE] = lab_cell_text(sets->items[s].group->place);
            row[ROW_SET] = lab_cell_text(sets->items[s].group->what);
            row[ROW_HEAD] = lab_cell_text(i == 0 ? set_head(sets, &sets->items[s]) : "");
            row[ROW_LABEL] = lab_cell_text(from->label);
            row[ROW_BYTES] = lab_cell_figure(transfer_bytes(from->point, stage));
            row[ROW_BANDWIDTH] = lab_analysis_effect(from->bandwidth);
            row[ROW_RATE] = lab_analysis_effect(from->rate);
            row[ROW_RATE_TEXT] = lab_cell_text(lab_words_effect(from->rate, arena));
            bool first = i == 0 || transfer_is_copies(sets->question);
            row[ROW_CHANGE] = first ? lab_cell_figure(NAN) : lab_analysis_ratio(&from->change);
            row[ROW_CHANGE_TEXT] =
                lab_cell_text(first ? "" : lab_study_ratio_words(&from->change, arena));
        }
    return (struct lab_doc_table){.key = "points",
                                  .title = "Points",
                                  .columns = columns_for(sets->question, arena),
                                  .column_count = ROWS,
                                  .cells = cells,
                                  .row_count = count};
}

static struct lab_doc_table law_table(const struct transfer_sets *sets, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)sets->count * LAWS + 1, sizeof *cells);
    int count = 0;
    for (int s = 0; s < sets->count; s++) {
        const struct transfer_set *set = &sets->items[s];
        if (!set->fitted)
            continue;
        struct lab_doc_cell *row = cells + (ptrdiff_t)count++ * LAWS;
        row[LAW_PLACE] = lab_cell_text(set->group->place);
        row[LAW_SET] = lab_cell_text(set->group->what);
        row[LAW_HEAD] = lab_cell_text(set_head(sets, set));
        row[LAW_POINTS] = lab_cell_figure(set->count);
        row[LAW_WAIT] = wait_cell(set, arena);
        row[LAW_BANDWIDTH] = lab_analysis_effect(transfer_law_bandwidth(set));
        row[LAW_R_SQUARED] = lab_cell_figure(set->law.r_squared);
    }
    return (struct lab_doc_table){.key = "laws",
                                  .title = "Time of a copy = what comes before + bytes/bandwidth",
                                  .columns = law_columns,
                                  .column_count = LAWS,
                                  .cells = cells,
                                  .row_count = count};
}

/* --- answers --- */

/* The set that the answer speaks of: the one whose law is known best, else the longest. */
static const struct transfer_set *find_main(const struct transfer_sets *sets) {
    const struct transfer_set *main = &sets->items[0];
    for (int i = 1; i < sets->count; i++) {
        const struct transfer_set *set = &sets->items[i];
        if (set->fitted > main->fitted || (set->fitted == main->fitted && set->count > main->count))
            main = set;
    }
    return main;
}

static const char *copies_answer(const struct transfer_sets *sets, struct lab_arena *arena) {
    const struct transfer_set *set = find_main(sets), *slowest = set;
    const struct transfer_row *first = &set->rows[0], *last = &set->rows[set->count - 1];
    const char *noun = wordings[sets->question].noun, *more = "";
    if (!set->fitted)
        return lab_arena_printf(arena, "%s run at %s for %s and at %s for %s, on %s.", noun,
                                lab_words_rate(first->bandwidth, "B/s", arena), first->label,
                                lab_words_rate(last->bandwidth, "B/s", arena), last->label,
                                set->group->name);
    struct lab_effect bandwidth = transfer_law_bandwidth(set);
    for (int i = 0; i < sets->count; i++)
        if (sets->items[i].fitted &&
            transfer_law_bandwidth(&sets->items[i]).value < transfer_law_bandwidth(slowest).value)
            slowest = &sets->items[i];
    if (slowest != set)
        more = lab_arena_printf(arena, " Slowest: %s on %s.",
                                lab_words_rate(transfer_law_bandwidth(slowest), "B/s", arena),
                                slowest->group->name);
    const char *before = "";
    if (set->law.coefficients[0] > 0)
        before = lab_arena_printf(arena, "take %s before they move and then ",
                                  lab_words_time(set->law.coefficients[0], arena));
    return lab_arena_printf(arena, "%s %srun at %s on %s; %s reach %.0f %% of that.%s", noun,
                            before, lab_words_rate(bandwidth, "B/s", arena), set->group->name,
                            first->label, 100 * first->bandwidth.value / bandwidth.value, more);
}

/* The change that is farthest from none, of those that are certain; NULL = none is. */
static const struct transfer_row *find_change(const struct transfer_sets *sets,
                                              const struct transfer_set **ret_set) {
    const struct transfer_row *most = NULL;
    for (int s = 0; s < sets->count; s++)
        for (int i = 1; i < sets->items[s].count; i++) {
            const struct transfer_row *row = &sets->items[s].rows[i];
            bool certain =
                row->change.verdict == LAB_STUDY_MORE || row->change.verdict == LAB_STUDY_LESS;
            if (certain &&
                (!most || fabs(log(row->change.ratio)) > fabs(log(most->change.ratio)))) {
                most = row;
                *ret_set = &sets->items[s];
            }
        }
    return most;
}

static const char *change_answer(const struct transfer_sets *sets, struct lab_arena *arena) {
    const struct transfer_set *set = NULL;
    const struct transfer_row *most = find_change(sets, &set);
    const char *noun = wordings[sets->question].noun;
    if (most)
        return lab_arena_printf(arena,
                                "The %s changes the throughput by up to %s: %s against %s on %s.",
                                noun, lab_study_ratio_words(&most->change, arena), most->label,
                                set->rows[0].label, set->group->name);
    double bound = 0;
    bool decided = true;
    for (int s = 0; s < sets->count; s++)
        for (int i = 1; i < sets->items[s].count; i++) {
            const struct lab_study_ratio *change = &sets->items[s].rows[i].change;
            decided &= change->verdict == LAB_STUDY_SAME;
            bound = fmax(bound, change->bound);
        }
    if (decided && bound <= LAB_WORDS_BOUND_MOST)
        return lab_arena_printf(arena, "The %s changes the throughput by no more than %.1f %%.",
                                noun, lab_words_bound_percent(bound));
    return lab_arena_printf(arena,
                            "Whether the %s changes the throughput is undecided: runs are too few "
                            "or vary too much.",
                            noun);
}

/* --- parts --- */

static struct lab_doc_cell *empty_figures(struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    for (int i = 0; i < FIGURES; i++)
        cells[i] = lab_cell_figure(NAN);
    return cells;
}

static struct lab_analysis_part question_part(const struct transfer_sets *sets, const char *prefix,
                                              struct lab_arena *arena) {
    bool copies = transfer_is_copies(sets->question);
    struct lab_doc_cell *cells = empty_figures(arena);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    int table_count = 0;
    cells[SETS] = lab_cell_figure(sets->count);
    cells[POINTS] = lab_cell_figure(count_points(sets));
    if (copies) {
        const struct transfer_set *set = find_main(sets);
        tables[table_count] = law_table(sets, arena);
        table_count += tables[table_count].row_count > 0;
        if (set->fitted) {
            cells[BANDWIDTH] = lab_analysis_effect(transfer_law_bandwidth(set));
            cells[WAIT] = wait_cell(set, arena);
        }
    } else {
        const struct transfer_set *set;
        const struct transfer_row *most = find_change(sets, &set);
        if (most)
            cells[CHANGE] = lab_analysis_ratio(&most->change);
    }
    tables[table_count++] = row_table(sets, arena);
    return (struct lab_analysis_part){
        .name = lab_arena_printf(arena, "%s%s", prefix, wordings[sets->question].name),
        .answer = copies ? copies_answer(sets, arena) : change_answer(sets, arena),
        .cells = cells,
        .tables = tables,
        .table_count = table_count,
    };
}

/* The one whose price changes most for certain; else the first. */
static const struct transfer_pressure *find_pressure(const struct transfer_pressure *pressures,
                                                     int count, bool *ret_certain) {
    const struct transfer_pressure *most = &pressures[0];
    *ret_certain = false;
    for (int i = 0; i < count; i++) {
        const struct lab_effect *growth = &pressures[i].growth;
        bool certain = growth->interval.low > 1 || growth->interval.high < 1;
        if (certain &&
            (!*ret_certain || fabs(log(growth->value)) > fabs(log(most->growth.value)))) {
            most = &pressures[i];
            *ret_certain = true;
        }
    }
    return most;
}

static const char *pressure_answer(const struct transfer_pressure *pressures, int count,
                                   struct lab_arena *arena) {
    bool certain;
    const struct transfer_pressure *most = find_pressure(pressures, count, &certain);
    const struct lab_study_ratio *first = &most->penalty[0],
                                 *last = &most->penalty[most->count - 1];
    double widest = 0;
    for (int i = 0; i < count; i++)
        widest = fmax(widest, fmax(fabs(pressures[i].growth.interval.low - 1),
                                   fabs(pressures[i].growth.interval.high - 1)));
    if (certain)
        return lab_arena_printf(
            arena,
            "Feeding from node %d instead of %d goes from %s with %.0f MiB to %s with %.0f MiB "
            "on %s: the price %s with the pool.",
            most->far, most->near, lab_study_ratio_words(first, arena), most->pools_mib[0],
            lab_study_ratio_words(last, arena), most->pools_mib[most->count - 1], most->group->name,
            most->growth.value < 1 ? "grows" : "shrinks");
    if (!(widest > 0) || widest > LAB_WORDS_BOUND_MOST)
        return "Whether a far node costs more with a larger pool can't be told: runs are too few "
               "or vary "
               "too much.";
    return lab_arena_printf(arena,
                            "The price of a far node doesn't change with the pool by more than "
                            "%.1f %% of the throughput.",
                            lab_words_bound_percent(widest));
}

static struct lab_analysis_part pressure_part(const struct transfer_pressure *pressures, int count,
                                              const char *prefix, struct lab_arena *arena) {
    int total = 0, next = 0;
    for (int i = 0; i < count; i++)
        total += pressures[i].count;
    struct lab_doc_cell *figures = empty_figures(arena),
                        *cells = lab_arena_alloc(arena, (size_t)total * FARS, sizeof *cells);
    struct lab_doc_table *table = lab_arena_alloc(arena, 1, sizeof *table);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < pressures[i].count; k++) {
            struct lab_doc_cell *row = cells + (ptrdiff_t)next++ * FARS;
            row[FAR_PLACE] = lab_cell_text(pressures[i].group->place);
            row[FAR_SET] = lab_cell_text(pressures[i].group->what);
            row[FAR_HEAD] = lab_cell_text(
                k == 0 ? head_of(pressures[i].group, pressures[0].group, pressures[count - 1].group)
                       : "");
            row[FAR_NEAR] = lab_cell_figure(pressures[i].near);
            row[FAR_FAR] = lab_cell_figure(pressures[i].far);
            row[FAR_POOL] = lab_cell_figure(pressures[i].pools_mib[k]);
            row[FAR_CHANGE] = lab_analysis_ratio(&pressures[i].penalty[k]);
            row[FAR_CHANGE_TEXT] =
                lab_cell_text(lab_study_ratio_words(&pressures[i].penalty[k], arena));
        }
    *table = (struct lab_doc_table){.key = "pools",
                                    .title = "Throughput from the far node against the near one",
                                    .columns = far_columns,
                                    .column_count = FARS,
                                    .cells = cells,
                                    .row_count = total};
    bool certain;
    const struct transfer_pressure *most = find_pressure(pressures, count, &certain);
    figures[SETS] = lab_cell_figure(count);
    figures[POINTS] = lab_cell_figure(total);
    figures[CHANGE] = lab_analysis_effect((struct lab_effect){
        most->growth.value - 1,
        {most->growth.interval.low - 1, most->growth.interval.high - 1, TRANSFER_CONFIDENCE}});
    return (struct lab_analysis_part){
        .name = lab_arena_printf(arena, "%sFar node under memory pressure", prefix),
        .answer = pressure_answer(pressures, count, arena),
        .cells = figures,
        .tables = table,
        .table_count = 1};
}

/* --- the whole --- */

#define NOTES_OF_STUDY 16
#define PARTS_OF_STUDY (TRANSFER_QUESTIONS + 1)

struct parts {
    struct lab_analysis_part *items;
    struct lab_chart *charts;
    const char **notes;
    int count, chart_count, note_count;
};

static void add_study(const struct transfer_config *config, const struct lab_analysis_input *input,
                      const struct lab_study_table *study, struct lab_arena *arena,
                      struct parts *parts) {
    struct lab_study_point *points;
    struct transfer_sets sets[TRANSFER_QUESTIONS];
    struct transfer_pressure *pressures = NULL;
    int count = lab_study_points(study, arena, &points), pressure_count = 0;
    const char *prefix = input->study_count > 1 ? lab_arena_printf(arena, "%s: ", study->name) : "";
    const char *suffix =
        parts->count > 0 ? lab_arena_printf(arena, "_%d", (int)(study - input->studies) + 1) : "";
    for (int q = 0; q < TRANSFER_QUESTIONS; q++) {
        sets[q] = transfer_sets_make((enum transfer_question)q, points, count, arena);
        if (sets[q].count > 0)
            parts->items[parts->count++] = question_part(&sets[q], prefix, arena);
    }
    if (config->pressure)
        pressure_count = transfer_pressures(points, count, arena, &pressures);
    if (pressure_count > 0)
        parts->items[parts->count++] = pressure_part(pressures, pressure_count, prefix, arena);
    parts->chart_count += transfer_charts(sets, pressures, pressure_count, suffix, study->simulated,
                                          arena, &parts->charts[parts->chart_count]);
    const char **notes = lab_study_notes(study, 0, arena);
    for (int i = 0; notes[i]; i++)
        parts->notes[parts->note_count++] = notes[i];
}

static int transfer_run(const void *opaque, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study was given");
    size_t room = (size_t)input->study_count + 1;
    struct parts parts = {
        .items = lab_arena_alloc(arena, room * PARTS_OF_STUDY, sizeof *parts.items),
        .charts = lab_arena_alloc(arena, room * TRANSFER_CHARTS_MAX, sizeof *parts.charts),
        .notes = lab_arena_alloc(arena, room * NOTES_OF_STUDY, sizeof *parts.notes)};
    bool simulated = false;
    for (int i = 0; i < input->study_count; i++) {
        simulated |= input->studies[i].simulated;
        add_study(opaque, input, &input->studies[i], arena, &parts);
    }
    *ret_result = (struct lab_analysis_result){
        .answer = parts.count > 0 ? parts.items[0].answer
                                  : "There is nothing to hold against each other: no points differ "
                                    "in image size, model, batch or pool alone.",
        .part_key = "questions",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts.items,
        .part_count = parts.count,
        .simulated = simulated,
        .notes = parts.notes,
        .charts = parts.charts,
        .chart_count = parts.chart_count,
    };
    return 0;
}

static int transfer_interest(const struct lab_study_table *study) {
    int said = lab_study_setting_values(study, "tensor_shape") > 1 ? 40 : 0;
    said += lab_study_setting_values(study, "batch_size") > 1 ? 25 : 0;
    said += lab_study_setting_values(study, "memory_size_mb") > 1 ? 25 : 0;
    return said;
}

const struct lab_analysis lab_analysis_transfer = {
    .name = "transfer",
    .summary = "how fast copies are by size; what batch, pool and a far node do to them",
    .description =
        "Bandwidth of copies to the device by the size of images and to the host by model, with "
        "the "
        "law time = what comes before each copy + bytes/bandwidth; the throughput by batch and by "
        "the "
        "size of the pinned input pool, each against the smallest; and, where several nodes and "
        "pools "
        "were run, whether a far node costs more with a larger pool. Points are held against each "
        "other only where they agree in all else.",
    .options = transfer_options,
    .config_size = sizeof(struct transfer_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = transfer_interest,
    .run = transfer_run,
};
