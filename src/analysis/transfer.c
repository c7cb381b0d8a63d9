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

enum { ROW_LABEL = 3, ROW_BYTES, ROW_BANDWIDTH, ROW_RATE_TEXT = 7, ROW_CHANGE_TEXT = 9 };
static const struct lab_doc_column row_columns[] = {
    {"place", NULL, LAB_UNIT_TEXT},
    {"set", NULL, LAB_UNIT_TEXT},
    {NULL, "What", LAB_UNIT_TEXT},
    {"value", "", LAB_UNIT_TEXT},
    {"bytes", "Bytes", LAB_UNIT_SIZE},
    {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, .with_interval = true},
    {"rate_per_s", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Samples/s", LAB_UNIT_FIGURE},
    {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Against the first", LAB_UNIT_FIGURE},
};

static const struct lab_doc_column law_columns[] = {
    {"place", NULL, LAB_UNIT_TEXT},
    {"set", NULL, LAB_UNIT_TEXT},
    {NULL, "What", LAB_UNIT_TEXT},
    {"points", "Points", LAB_UNIT_COUNT},
    {"wait_ms", "Before each copy", LAB_UNIT_TIME, .with_interval = true},
    {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, .with_interval = true},
    {"r_squared", "R²", LAB_UNIT_NUMBER},
};

static const struct lab_doc_column far_columns[] = {
    {"device", NULL, LAB_UNIT_TEXT},
    {"set", NULL, LAB_UNIT_TEXT},
    {NULL, "What", LAB_UNIT_TEXT},
    {"near_node", "Near", LAB_UNIT_COUNT},
    {"far_node", "Far", LAB_UNIT_COUNT},
    {"memory_size_mb", "Pool, MiB", LAB_UNIT_COUNT},
    {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "From the far node", LAB_UNIT_FIGURE},
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

static void set_columns(struct lab_doc_column *columns, enum transfer_question question) {
    bool copies = transfer_is_copies(question);
    columns[ROW_LABEL].title = wordings[question].value;
    columns[copies ? ROW_RATE_TEXT : ROW_BANDWIDTH].title = NULL;
    columns[copies ? ROW_CHANGE_TEXT : ROW_BYTES].title = NULL;
}

static void add_row_table(struct lab_analysis_part *part, const struct transfer_sets *sets,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "points", "Points", row_columns, arena);
    enum lab_stage stage = sets->question == TRANSFER_D2H ? LAB_STAGE_D2H : LAB_STAGE_H2D;
    set_columns(lab_analysis_own_columns(table, arena), sets->question);
    for (int s = 0; s < sets->count; s++)
        for (int i = 0; i < sets->items[s].count; i++) {
            const struct transfer_row *from = &sets->items[s].rows[i];
            bool first = i == 0 || transfer_is_copies(sets->question);
            LAB_ROW(table, arena, lab_cell_text(sets->items[s].group->place),
                    lab_cell_text(sets->items[s].group->what),
                    lab_cell_text(i == 0 ? set_head(sets, &sets->items[s]) : ""),
                    lab_cell_text(from->label), lab_cell_figure(transfer_bytes(from->point, stage)),
                    lab_analysis_effect(from->bandwidth), lab_analysis_effect(from->rate),
                    lab_cell_text(lab_words_effect(from->rate, arena)),
                    first ? lab_cell_figure(NAN) : lab_analysis_ratio(&from->change),
                    lab_cell_text(first ? "" : lab_study_ratio_words(&from->change, arena)));
        }
}

static void add_law_table(struct lab_analysis_part *part, const struct transfer_sets *sets,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(
        part, "laws", "Time of a copy = what comes before + bytes/bandwidth", law_columns, arena);
    for (int s = 0; s < sets->count; s++) {
        const struct transfer_set *set = &sets->items[s];
        if (!set->fitted)
            continue;
        LAB_ROW(table, arena, lab_cell_text(set->group->place), lab_cell_text(set->group->what),
                lab_cell_text(set_head(sets, set)), lab_cell_figure(set->count),
                wait_cell(set, arena), lab_analysis_effect(transfer_law_bandwidth(set)),
                lab_cell_figure(set->law.r_squared));
    }
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

static void add_question(struct lab_analysis_result *result, const struct transfer_sets *sets,
                         const char *prefix, struct lab_arena *arena) {
    bool copies = transfer_is_copies(sets->question);
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%s%s", prefix, wordings[sets->question].name), arena);
    part->answer = copies ? copies_answer(sets, arena) : change_answer(sets, arena);
    part->cells[SETS] = lab_cell_figure(sets->count);
    part->cells[POINTS] = lab_cell_figure(count_points(sets));
    if (copies) {
        const struct transfer_set *set = find_main(sets);
        add_law_table(part, sets, arena);
        lab_analysis_drop_empty(part);
        if (set->fitted) {
            part->cells[BANDWIDTH] = lab_analysis_effect(transfer_law_bandwidth(set));
            part->cells[WAIT] = wait_cell(set, arena);
        }
    } else {
        const struct transfer_set *set;
        const struct transfer_row *most = find_change(sets, &set);
        if (most)
            part->cells[CHANGE] = lab_analysis_ratio(&most->change);
    }
    add_row_table(part, sets, arena);
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

static void add_pressure(struct lab_analysis_result *result,
                         const struct transfer_pressure *pressures, int count, const char *prefix,
                         struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%sFar node under memory pressure", prefix), arena);
    struct lab_doc_table *table = LAB_TABLE(
        part, "pools", "Throughput from the far node against the near one", far_columns, arena);
    const struct lab_study_group *first = pressures[0].group, *last = pressures[count - 1].group;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < pressures[i].count; k++) {
            const struct lab_study_group *group = pressures[i].group;
            LAB_ROW(table, arena, lab_cell_text(group->place), lab_cell_text(group->what),
                    lab_cell_text(k == 0 ? head_of(group, first, last) : ""),
                    lab_cell_figure(pressures[i].near), lab_cell_figure(pressures[i].far),
                    lab_cell_figure(pressures[i].pools_mib[k]),
                    lab_analysis_ratio(&pressures[i].penalty[k]),
                    lab_cell_text(lab_study_ratio_words(&pressures[i].penalty[k], arena)));
        }
    bool certain;
    const struct lab_effect *growth = &find_pressure(pressures, count, &certain)->growth;
    part->answer = pressure_answer(pressures, count, arena);
    part->cells[SETS] = lab_cell_figure(count);
    part->cells[POINTS] = lab_cell_figure(table->row_count);
    part->cells[CHANGE] = lab_analysis_effect((struct lab_effect){
        growth->value - 1,
        {growth->interval.low - 1, growth->interval.high - 1, TRANSFER_CONFIDENCE}});
}

/* --- the whole --- */

static void add_study(const struct transfer_config *config, const struct lab_analysis_input *input,
                      const struct lab_study_table *study, struct lab_arena *arena,
                      struct lab_analysis_result *result) {
    struct lab_study_point *points;
    struct transfer_sets sets[TRANSFER_QUESTIONS];
    struct transfer_pressure *pressures = NULL;
    int count = lab_study_points(study, arena, &points), pressure_count = 0;
    const char *prefix = lab_analysis_prefix(input, study, arena);
    const char *suffix =
        lab_analysis_suffix(result->part_count > 0 ? (int)(study - input->studies) : 0, arena);
    for (int q = 0; q < TRANSFER_QUESTIONS; q++) {
        sets[q] = transfer_sets_make((enum transfer_question)q, points, count, arena);
        if (sets[q].count > 0)
            add_question(result, &sets[q], prefix, arena);
    }
    if (config->pressure)
        pressure_count = transfer_pressures(points, count, arena, &pressures);
    if (pressure_count > 0)
        add_pressure(result, pressures, pressure_count, prefix, arena);
    transfer_add_charts(sets, pressures, pressure_count, suffix, study->simulated, arena, result);
    lab_study_add_notes(study, "", &result->notes, arena);
}

static int transfer_run(const void *opaque, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    if (lab_analysis_open(input, LAB_RESULT("questions", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++)
        add_study(opaque, input, &input->studies[i], arena, ret_result);
    ret_result->answer = ret_result->part_count > 0
                             ? ret_result->parts[0].answer
                             : "There is nothing to hold against each other: no points differ "
                               "in image size, model, batch or pool alone.";
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
