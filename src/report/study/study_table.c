/*
 * study_table.c: a study's points as one table for a terminal: a column for each axis that varies,
 * sorted by them. Where there are more points than rows, one axis goes across. Cells are rates;
 * where a claim compares the point with another one, the change.
 */
#include "base/list.h"
#include "report/study/study_axes.h"
#include "report/study/study_internal.h"

#include "model/result.h"

#include <math.h>
#include <stdlib.h>

#define ACROSS_MOST 12
#define GAP         2 /* between columns */

struct sheet {
    const struct study_digest *digest;
    const struct study_row **rows; /* those that have ended */
    int count;
    struct study_axes axes;
    int **ranks;                     /* by axis: each row's place among the axis's values */
    int *value_counts;               /* by axis */
    const struct lab_claim **claims; /* of each row; NULL = none */
    bool compared;                   /* some row has one */
    int contrast;                    /* the axis that they compare along; -1 = none */
    int across;                      /* axis whose values are columns; -1 = none */
    int *order;                      /* axes as rows are sorted by them */
    bool rated;                      /* with an axis across, some cell shown is a rate */
    const char *words;               /* of study_room */
    struct study_line *lines;
    int line_count, left_out;
    struct lab_arena *arena;
};

/* --- sorting --- */

struct ranked {
    const char *value;
    double size; /* of models and of sets of GPUs, sorted by it: small ones first */
    int row;
};

/* Its arithmetic per sample; of what has none that is known, the time. */
static double size_of(const struct study_row *row) {
    double flops = lab_run_result(row->run[0])->flops_per_second / row->run[0]->rate;
    return isfinite(flops) ? (float)flops : 1 / row->rate;
}

/* The least size of each model, for all of its rows. */
static void size_models(struct ranked *items, int count, const struct sheet *sheet) {
    LAB_SORT(items, count, LAB_BY_BYTES(items, value), LAB_BY(items, row));
    for (int from = 0, to; from < count; from = to) {
        double least = INFINITY;
        for (to = from; to < count && strcmp(items[to].value, items[from].value) == 0; to++)
            least = fmin(least, size_of(sheet->rows[items[to].row]));
        for (int i = from; i < to; i++)
            items[i].size = least;
    }
}

static void rank_axis(struct sheet *sheet, int axis) {
    const struct study_axis *item = &sheet->axes.items[axis];
    LAB_AUTO_FREE struct ranked *items = lab_mem_alloc((size_t)sheet->count + 1, sizeof *items);
    for (int i = 0; i < sheet->count; i++)
        items[i] = (struct ranked){
            .value = item->values[i], .size = item->sizes ? item->sizes[i] : 0, .row = i};
    if (item->kind == STUDY_AXIS_MODEL && sheet->digest->range_count == 1)
        size_models(items, sheet->count, sheet);
    LAB_SORT(items, sheet->count, LAB_BY(items, size), LAB_BY(items, value), LAB_BY(items, row));
    int *ranks = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *ranks);
    int rank = 0;
    for (int i = 0; i < sheet->count; i++) {
        rank += i > 0 && strcmp(items[i].value, items[i - 1].value) != 0;
        ranks[items[i].row] = rank;
    }
    sheet->ranks[axis] = ranks;
    sheet->value_counts[axis] = rank + 1;
}

static int compare_rows(const void *a, const void *b, void *state) {
    const struct sheet *sheet = state;
    int x = *(const int *)a, y = *(const int *)b;
    for (int i = 0; i < sheet->axes.count; i++) {
        const int *ranks = sheet->ranks[sheet->order[i]];
        if (sheet->order[i] != sheet->across && ranks[x] != ranks[y])
            return ranks[x] - ranks[y];
    }
    return 0;
}

static int compare_all(const void *a, const void *b, void *state) {
    const struct sheet *sheet = state;
    int x = *(const int *)a, y = *(const int *)b, order = compare_rows(a, b, state);
    if (!order && sheet->across >= 0)
        order = sheet->ranks[sheet->across][x] - sheet->ranks[sheet->across][y];
    return order ? order : x - y;
}

static int *sort_rows(struct sheet *sheet) {
    int *sorted = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *sorted);
    for (int i = 0; i < sheet->count; i++)
        sorted[i] = i;
    qsort_r(sorted, (size_t)sheet->count, sizeof *sorted, compare_all, sheet);
    return sorted;
}

/* --- comparisons --- */

static int find_row(const struct sheet *sheet, const char *point) {
    for (int i = 0; i < sheet->count; i++)
        if (strcmp(sheet->rows[i]->name, point) == 0)
            return i;
    return -1;
}

/* Not a device with its peers: which those are changes with what is found. */
static bool compares_points(const struct lab_claim *claim) {
    return !claim->unit && claim->scope_count == 2 &&
           lab_str_equal(claim->quantity, "throughput") && !lab_str_starts(claim->kind, "peers.");
}

/* Whether it is the NUMA node, and each GPU ran from one: the node is no choice then. */
static bool follows_gpu(const struct sheet *sheet, int axis, int gpu) {
    if (sheet->axes.items[axis].kind != STUDY_AXIS_NODE ||
        sheet->axes.items[gpu].kind != STUDY_AXIS_GPU)
        return false;
    LAB_AUTO_FREE int *first =
        lab_mem_alloc((size_t)sheet->value_counts[gpu] + 1, sizeof *first); /* rows, from 1 */
    for (int i = 0; i < sheet->count; i++) {
        int *own = &first[sheet->ranks[gpu][i]];
        if (*own && sheet->ranks[axis][*own - 1] != sheet->ranks[axis][i])
            return false;
        *own = i + 1;
    }
    return true;
}

/* The one axis along which a claim compares two points; -1 = there are several, or no such points.
 */
static int contrast_of(const struct sheet *sheet, const struct lab_claim *claim, int row) {
    int reference = find_row(sheet, claim->scope[0]), contrast = -1, differ = 0;
    for (int a = 0; a < sheet->axes.count && reference >= 0; a++) {
        if (sheet->ranks[a][row] == sheet->ranks[a][reference])
            continue;
        if (contrast >= 0 && follows_gpu(sheet, a, contrast))
            continue;
        contrast = a;
        differ++;
    }
    return differ == 1 ? contrast : -1;
}

static int take_kind(const struct sheet *sheet, const struct study_claims *all, int from,
                     const struct lab_claim **ret_claims, int *ret_contrast) {
    int found = 0;
    memset(ret_claims, 0, (size_t)sheet->count * sizeof(struct lab_claim *));
    for (int i = from; i < all->count; i++) {
        const struct lab_claim *claim = all->items[i];
        int row = compares_points(claim) && strcmp(claim->kind, all->items[from]->kind) == 0
                      ? find_row(sheet, claim->scope[1])
                      : -1;
        int axis = row < 0 || ret_claims[row] ? -1 : contrast_of(sheet, claim, row);
        if (axis < 0 || (found && axis != *ret_contrast))
            continue;
        *ret_contrast = axis;
        ret_claims[row] = claim;
        found++;
    }
    return found;
}

/* Claims of one kind, so that all have a like reference: the first that covers a third of the
 * points. */
static void take_claims(struct sheet *sheet, const struct study_claims *all) {
    sheet->claims = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *sheet->claims);
    const char *tried = "";
    for (int i = 0; i < all->count && !sheet->compared; i++) {
        if (!compares_points(all->items[i]) || strcmp(all->items[i]->kind, tried) == 0)
            continue;
        tried = all->items[i]->kind;
        int found = take_kind(sheet, all, i, sheet->claims, &sheet->contrast);
        sheet->compared = found && 3 * found >= sheet->count;
    }
    if (!sheet->compared)
        sheet->contrast = -1;
    if (!sheet->compared)
        memset(sheet->claims, 0, (size_t)sheet->count * sizeof(struct lab_claim *));
}

/* Phases of one workload are neighbours, whatever devices they ran on. */
static bool leads(const struct sheet *sheet, int axis) {
    bool phases = false;
    for (int a = 0; a < sheet->axes.count; a++)
        phases |= sheet->axes.items[a].kind == STUDY_AXIS_PHASE;
    enum study_axis_kind kind = sheet->axes.items[axis].kind;
    return phases && (kind == STUDY_AXIS_MODEL || kind == STUDY_AXIS_PHASE);
}

/* The axis that claims compare along goes last, and what follows from it before it: a point and its
 * reference are neighbours. */
static void order_axes(struct sheet *sheet) {
    int count = 0, contrast = sheet->contrast;
    for (int a = sheet->axes.count - 1; a >= 0; a--) /* the workload before its phases */
        if (a != contrast && leads(sheet, a))
            sheet->order[count++] = a;
    for (int a = 0; a < sheet->axes.count; a++)
        if (a != contrast && !leads(sheet, a) && (contrast < 0 || !follows_gpu(sheet, a, contrast)))
            sheet->order[count++] = a;
    for (int a = 0; a < sheet->axes.count && contrast >= 0; a++)
        if (a != contrast && !leads(sheet, a) && follows_gpu(sheet, a, contrast))
            sheet->order[count++] = a;
    if (contrast >= 0)
        sheet->order[count++] = contrast;
}

/* --- cells --- */

static const char *unit_of(const struct sheet *sheet, const struct study_row *row) {
    bool one = sheet->digest->range_count == 1 && strcmp(row->unit, STUDY_TIME) != 0;
    return one ? "" : row->unit;
}

/* Whether others of its column are changes: a rate among those would be taken for one. */
static bool is_among_changes(const struct sheet *sheet, int row) {
    for (int i = 0; i < sheet->count && sheet->across == sheet->contrast; i++)
        if (sheet->claims[i] && sheet->ranks[sheet->across][i] == sheet->ranks[sheet->across][row])
            return true;
    return false;
}

static bool is_rate(const struct sheet *sheet, int row) {
    const struct study_row *point = sheet->rows[row];
    return !sheet->claims[row] && !isnan(point->rate) && !point->invalid &&
           !(sheet->compared && sheet->across >= 0 && is_among_changes(sheet, row));
}

/* A point's cell of a table with an axis across. */
static const char *cell_across(const struct sheet *sheet, int row) {
    LAB_AUTO(str, text);
    const struct study_row *point = sheet->rows[row];
    if (sheet->claims[row])
        study_add_change(sheet->claims[row], &text);
    else if (sheet->compared && sheet->across >= 0 && is_among_changes(sheet, row))
        lab_str_add(&text, "–");
    else
        study_add_short_rate(point->rate, unit_of(sheet, point), &text);
    if (isnan(point->rate) || point->invalid) {
        lab_str_clear(&text);
        study_add_remark(sheet->digest, point, &text);
    }
    return lab_arena_strdup(sheet->arena, text.text);
}

static const char *value_title(const struct sheet *sheet, int axis, int row) {
    LAB_AUTO(str, title);
    study_axis_add_value(&sheet->axes.items[axis], row, &title);
    return lab_arena_strdup(sheet->arena, title.text);
}

/* --- shape --- */

static int count_lines(struct sheet *sheet, int across) {
    sheet->across = across;
    int *sorted = sort_rows(sheet), lines = sheet->count > 0;
    for (int i = 1; i < sheet->count; i++)
        lines += compare_rows(&sorted[i - 1], &sorted[i], sheet) != 0;
    return lines;
}

static int axis_width(const struct sheet *sheet, int axis) {
    int width = lab_str_columns(sheet->axes.items[axis].title);
    for (int i = 0; i < sheet->count; i++) {
        int own = lab_str_columns(sheet->axes.items[axis].values[i]);
        width = own > width ? own : width;
    }
    return width;
}

static int width_across(const struct sheet *sheet, int across) {
    int total = 0, *widths = lab_mem_alloc((size_t)sheet->value_counts[across], sizeof *widths);
    for (int i = 0; i < sheet->count; i++) {
        int *width = &widths[sheet->ranks[across][i]];
        int title = lab_str_columns(value_title(sheet, across, i));
        int cell = lab_str_columns(cell_across(sheet, i));
        *width = title > *width ? title : *width;
        *width = cell > *width ? cell : *width;
    }
    for (int i = 0; i < sheet->value_counts[across]; i++)
        total += GAP + widths[i];
    for (int a = 0; a < sheet->axes.count; a++)
        total += a == across ? 0 : GAP + axis_width(sheet, a);
    lab_mem_free(widths);
    return total;
}

/* No axis where all points fit below each other; else that which leaves the fewest rows, of those
 * whose values fit next to each other and are there for at least half of the points. */
static void choose_across(struct sheet *sheet, int rows_most, int columns) {
    int best = -1, fewest = sheet->count;
    for (int a = 0; a < sheet->axes.count && sheet->count > rows_most; a++) {
        int values = sheet->value_counts[a];
        if (values < 2 || values > ACROSS_MOST || sheet->axes.count < 2)
            continue;
        int lines = count_lines(sheet, a);
        if (lines < fewest && 2 * sheet->count >= lines * values &&
            width_across(sheet, a) <= columns) {
            best = a;
            fewest = lines;
        }
    }
    sheet->across = best;
}

/* --- what of it is shown --- */

static bool is_named(const struct sheet *sheet, int row) {
    for (int a = 0; a < sheet->axes.count; a++) {
        const struct study_axis *axis = &sheet->axes.items[a];
        if (a != sheet->across && a != sheet->contrast &&
            study_cut_is_named(sheet->words, axis->title, axis->values[row]))
            return true;
    }
    return false;
}

/* Whether both differ only along the axis that claims compare along. */
static bool is_compared_with(const struct sheet *sheet, int row, int other) {
    for (int a = 0; a < sheet->axes.count; a++)
        if (a != sheet->across && a != sheet->contrast &&
            sheet->ranks[a][row] != sheet->ranks[a][other])
            return false;
    return sheet->compared && sheet->contrast >= 0 && sheet->contrast != sheet->across;
}

/* With an axis across, points that differ along it alone share a line. */
static void choose_lines(struct sheet *sheet, const int *sorted, int rows_most) {
    int leading = sheet->order[0] == sheet->across ? sheet->order[1] : sheet->order[0], before = -1;
    sheet->lines = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *sheet->lines);
    for (int i = 0; i < sheet->count; i++) {
        int row = sorted[i];
        if (before >= 0 && sheet->across >= 0 && compare_rows(&before, &row, sheet) == 0)
            continue;
        int group = before < 0 ? 0 : sheet->lines[sheet->line_count - 1].group;
        group += before >= 0 && !is_compared_with(sheet, before, row);
        sheet->lines[sheet->line_count++] = (struct study_line){
            .leading = sheet->ranks[leading][row], .group = group, .named = is_named(sheet, row)};
        before = row;
    }
    sheet->left_out = study_cut(sheet->lines, sheet->line_count, rows_most);
}

/* --- tables --- */

enum { RUNS, RATE, SPREAD, CHANGE, LATENCY, REMARK, VALUE_COUNT };

const char *study_rate_title(const struct study_digest *digest) {
    const char *unit = digest->range_count == 1 ? digest->ranges[0].unit : "";
    bool times = false;
    for (int i = 0; i < digest->range_count; i++)
        times |= strcmp(digest->ranges[i].unit, STUDY_TIME) == 0;
    if (times)
        return digest->range_count == 1 ? "Time" : "Rate or time";
    return *unit ? unit : "Rate";
}

static bool counts_differ(const struct sheet *sheet) {
    for (int i = 1; i < sheet->count; i++)
        if (sheet->rows[i]->rate_count != sheet->rows[0]->rate_count)
            return true;
    return false;
}

static void add_axis_columns(const struct sheet *sheet, struct lab_doc_column *columns) {
    int at = 0;
    for (int i = 0; i < sheet->axes.count; i++)
        if (sheet->order[i] != sheet->across)
            columns[at++] = study_axis_column(&sheet->axes.items[sheet->order[i]]);
}

/* Axes that are as in the row before are left blank up to the first that differs. */
static void add_axis_cells(struct lab_doc *doc, const struct sheet *sheet, int row, int before) {
    bool same = before >= 0;
    for (int i = 0; i < sheet->axes.count; i++) {
        int axis = sheet->order[i];
        if (axis == sheet->across)
            continue;
        same = same && sheet->ranks[axis][row] == sheet->ranks[axis][before];
        lab_doc_cell(doc, "%s", same ? "" : sheet->axes.items[axis].values[row]);
    }
}

static void add_point(struct lab_doc *doc, const struct sheet *sheet, int row) {
    const struct study_row *point = sheet->rows[row];
    const struct lab_claim *claim = sheet->claims[row];
    bool is_time = strcmp(point->unit, STUDY_TIME) == 0;
    double latency_s = is_time ? NAN : study_row_latency_s(point);
    LAB_AUTO(str, rate);
    LAB_AUTO(str, spread);
    LAB_AUTO(str, latency);
    LAB_AUTO(str, remark);
    study_add_short_rate(point->rate, unit_of(sheet, point), &rate);
    study_add_spread(&spread, point->rate, point->low, point->high);
    if (!isnan(latency_s))
        lab_str_add_time(&latency, latency_s);
    study_add_remark(sheet->digest, point, &remark);
    lab_doc_cell(doc, "%d", point->rate_count);
    lab_doc_cell(doc, "%s", rate.text);
    lab_doc_cell(doc, "%s", spread.text);
    lab_doc_cell(doc, "%s", claim ? lab_claim_short(claim, sheet->arena) : "–");
    lab_doc_cell(doc, "%s", latency.length ? latency.text : "–");
    lab_doc_cell(doc, "%s", remark.text);
}

static void add_points(struct lab_doc *doc, struct sheet *sheet, int rows_most) {
    static const struct lab_doc_column values[VALUE_COUNT] = {
        [RUNS] = {NULL, "Runs", LAB_UNIT_FIGURE},
        [RATE] = {NULL, NULL, LAB_UNIT_FIGURE, .optional = true},
        [SPREAD] = {NULL, "±", LAB_UNIT_FIGURE, .optional = true, .yields = 1},
        [CHANGE] = {NULL, "Change", LAB_UNIT_FIGURE, .optional = true, .yields = 2},
        [LATENCY] = {NULL, "p95 latency", LAB_UNIT_FIGURE, .optional = true, .yields = 3},
        [REMARK] = {NULL, "Remark", .optional = true},
    };
    int axes = sheet->axes.count, *sorted = sort_rows(sheet);
    struct lab_doc_column *columns =
        lab_arena_alloc(sheet->arena, (size_t)axes + VALUE_COUNT, sizeof *columns);
    add_axis_columns(sheet, columns);
    memcpy(&columns[axes], values, sizeof values);
    columns[axes + RATE].title = study_rate_title(sheet->digest);
    columns[axes + LATENCY].title = study_latency_title(sheet->digest);
    if (!counts_differ(sheet))
        columns[axes + RUNS].title = NULL;
    lab_doc_rows(doc, NULL, NULL, columns, axes + VALUE_COUNT);
    choose_lines(sheet, sorted, rows_most);
    for (int i = 0, before = -1; i < sheet->count; i++) {
        if (!sheet->lines[i].shown)
            continue;
        add_axis_cells(doc, sheet, sorted[i], before);
        add_point(doc, sheet, sorted[i]);
        before = sorted[i];
    }
}

static void add_across(struct lab_doc *doc, struct sheet *sheet, int rows_most) {
    int axes = sheet->axes.count - 1, values = sheet->value_counts[sheet->across], lines = 0;
    int *sorted = sort_rows(sheet), before = -1;
    struct lab_doc_column *columns =
        lab_arena_alloc(sheet->arena, (size_t)(axes + values), sizeof *columns);
    add_axis_columns(sheet, columns);
    for (int i = 0; i < sheet->count; i++)
        columns[axes + sheet->ranks[sheet->across][i]] =
            (struct lab_doc_column){NULL, value_title(sheet, sheet->across, i), LAB_UNIT_FIGURE};
    lab_doc_rows(doc, NULL, NULL, columns, axes + values);
    choose_lines(sheet, sorted, rows_most);
    for (int from = 0, to; from < sheet->count; from = to) {
        for (to = from + 1; to < sheet->count; to++)
            if (compare_rows(&sorted[from], &sorted[to], sheet) != 0)
                break;
        if (!sheet->lines[lines++].shown)
            continue;
        add_axis_cells(doc, sheet, sorted[from], before);
        before = sorted[from];
        for (int value = 0, at = from; value < values; value++) {
            bool there = at < to && sheet->ranks[sheet->across][sorted[at]] == value;
            lab_doc_cell(doc, "%s", there ? cell_across(sheet, sorted[at]) : "–");
            sheet->rated |= there && is_rate(sheet, sorted[at]);
            at += there;
        }
    }
}

/* --- what stands below it --- */

static bool is_local(const struct study_row *row) {
    const struct lab_result *result = lab_run_result(row->run[0]);
    return result->rank_count == 1 && result->ranks[0].device_node >= 0 &&
           result->ranks[0].device_node == result->ranks[0].numa_node;
}

/* Whether each reference is the NUMA node that its device is attached to. */
static bool refers_to_local(const struct sheet *sheet) {
    if (sheet->axes.items[sheet->contrast].kind != STUDY_AXIS_NODE)
        return false;
    for (int i = 0; i < sheet->count; i++) {
        int row = sheet->claims[i] ? find_row(sheet, sheet->claims[i]->scope[0]) : -1;
        if (row >= 0 && !is_local(sheet->rows[row]))
            return false;
    }
    return true;
}

/* Where references differ elsewhere alone: their value of the axis that is compared along. */
static const char *common_reference(const struct sheet *sheet) {
    int first = -1;
    for (int i = 0; i < sheet->count; i++) {
        int row = sheet->claims[i] ? find_row(sheet, sheet->claims[i]->scope[0]) : -1;
        if (row >= 0 && first >= 0 &&
            sheet->ranks[sheet->contrast][row] != sheet->ranks[sheet->contrast][first])
            return refers_to_local(sheet) ? "the local NUMA node"
                                          : "the reference of the same group";
        first = row >= 0 ? row : first;
    }
    LAB_AUTO(str, title);
    study_axis_add_within(&sheet->axes.items[sheet->contrast], first, &title);
    return lab_arena_strdup(sheet->arena, title.text);
}

static const char *reference_of(const struct sheet *sheet) {
    const char *reference = NULL;
    for (int i = 0; i < sheet->count; i++) {
        const struct lab_claim *claim = sheet->claims[i];
        if (claim && reference && !lab_str_equal(claim->reference, reference))
            return common_reference(sheet);
        reference = claim ? claim->reference : reference;
    }
    return reference;
}

static void add_runs(const struct sheet *sheet, struct lab_str *out) {
    int fewest = INT32_MAX, most = 0;
    for (int i = 0; i < sheet->count; i++) {
        const struct study_row *row = sheet->rows[i];
        fewest = row->rate_count && row->rate_count < fewest ? row->rate_count : fewest;
        most = row->rate_count > most ? row->rate_count : most;
    }
    if (most > 1)
        lab_str_add(out, "Mean of ");
    if (fewest < most)
        lab_str_printf(out, "%d to ", fewest);
    lab_str_printf(out, "%d run%s per point", most, study_plural(most));
    if (sheet->across < 0 && most > 1)
        lab_str_add(out, ", ± its 95% CI");
    else if (sheet->across < 0 && most == 1 && !isnan(sheet->rows[0]->low))
        lab_str_add(out, ", ± 95% CI within the run");
}

static void add_caption(struct lab_doc *doc, const struct sheet *sheet) {
    LAB_AUTO(str, text);
    bool bounded = false, open = false, corrected = false;
    int runs = 0, differ = 0; /* points that were not run yet don't count */
    for (int i = 0; i < sheet->count; i++) {
        int own = sheet->rows[i]->rate_count;
        differ |= own && runs && own != runs;
        runs = own ? own : runs;
        bounded |= sheet->claims[i] && sheet->claims[i]->verdict == LAB_CLAIM_NO;
        open |= sheet->claims[i] && sheet->claims[i]->verdict == LAB_CLAIM_INCONCLUSIVE;
        corrected |= sheet->claims[i] && lab_claim_is_corrected(sheet->claims[i]);
    }
    if (sheet->left_out && study_cut_skips(sheet->lines, sheet->line_count))
        lab_str_printf(&text, "%d of %d rows shown (all: --verbose). ",
                       sheet->line_count - sheet->left_out, sheet->line_count);
    else if (sheet->left_out)
        lab_str_printf(&text, "… %d more row%s (--verbose). ", sheet->left_out,
                       study_plural(sheet->left_out));
    if (sheet->rated && sheet->digest->range_count == 1)
        lab_str_printf(&text, "Values: %s. ", study_rate_title(sheet->digest));
    add_runs(sheet, &text);
    if (sheet->compared)
        lab_str_printf(&text, ". Change from %s%s", reference_of(sheet),
                       differ ? ", over repeats that both have" : "");
    bool single = false, several = false;
    for (int i = 0; i < sheet->count; i++)
        *(sheet->rows[i]->run[0]->rank_count > 1 ? &several : &single) = true;
    if (single && several)
        lab_str_printf(&text, ". Several devices: their total%s",
                       lab_str_equal(sheet->rows[0]->run[0]->workload, "vit")
                           ? ", each with its own batch"
                           : "");
    if (sheet->across >= 0 && bounded)
        lab_str_add(&text, ". ±: no difference larger than this");
    if (sheet->across >= 0 && open)
        lab_str_add(&text, ". ?: inconclusive");
    if (sheet->digest->range_count)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s.%s", text.text,
                     sheet->across < 0 && corrected ? " " LAB_CLAIM_CORRECTED : "");
}

static bool has_ended(const struct study_row *row) {
    return row->state_counts[LAB_RUN_DONE] + row->state_counts[LAB_RUN_FAILED] > 0;
}

void study_add_table(struct lab_doc *doc, const struct study_digest *digest,
                     const struct study_claims *claims, struct study_room room) {
    struct lab_arena *arena = lab_doc_arena(doc);
    size_t most = (size_t)digest->row_count + 1;
    struct sheet sheet = {
        .digest = digest, .contrast = -1, .across = -1, .words = room.words, .arena = arena};
    const struct lab_run **runs = lab_arena_alloc(arena, most, sizeof *runs);
    sheet.rows = lab_arena_alloc(arena, most, sizeof *sheet.rows);
    for (int i = 0; i < digest->row_count; i++)
        if (has_ended(&digest->rows[i])) {
            runs[sheet.count] = digest->rows[i].run[0];
            sheet.rows[sheet.count++] = &digest->rows[i];
        }
    if (sheet.count == 0)
        return;
    sheet.axes = study_axes_make(runs, sheet.count, arena);
    size_t axes = (size_t)sheet.axes.count + 1;
    sheet.ranks = lab_arena_alloc(arena, axes, sizeof *sheet.ranks);
    sheet.value_counts = lab_arena_alloc(arena, axes, sizeof *sheet.value_counts);
    sheet.order = lab_arena_alloc(arena, axes, sizeof *sheet.order);
    for (int a = 0; a < sheet.axes.count; a++)
        rank_axis(&sheet, a);
    take_claims(&sheet, claims);
    order_axes(&sheet);
    choose_across(&sheet, room.rows, room.columns);
    lab_doc_gap(doc);
    if (sheet.across < 0)
        add_points(doc, &sheet, room.rows);
    else
        add_across(doc, &sheet, room.rows);
    add_caption(doc, &sheet);
}
