/* report/compare/compare.c: what `gpulab compare` answers. */
#include "report/compare/compare.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define NAME_COLUMNS 16 /* longer names are letters in sentences and titles */
#define ROWS_MOST    20 /* of points, unless all are asked for */
#define NAMES_MOST   3  /* of points that one set alone has */
#define FACTS_MOST   12
#define TEXT_COLUMNS 32 /* of a fact */

#define SECTION "experiment." /* of the config: where most settings are */

struct showing {
    const struct lab_compare_report *report;
    struct lab_doc *doc;
    struct lab_arena *arena;
    bool letters;
};

/* "A", or the set's name where all are short. */
static const char *title_of(const struct showing *showing, int set) {
    return showing->letters ? lab_arena_printf(showing->arena, "%c", 'A' + set % 26)
                            : showing->report->sets[set].name;
}

/* --- words --- */

static const char *sentence(const struct showing *showing, int set) {
    return lab_comparison_sentence(&showing->report->comparisons[set - 1], title_of(showing, set),
                                   title_of(showing, 0), showing->arena);
}

/* "48 points: 12 slower, 36 same." */
static const char *count_text(const struct lab_comparison *comparison, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d points: ", comparison->point_count);
    static const char *const of_metrics[] = {[LAB_COMPARISON_SLOWER] = " or worse",
                                             [LAB_COMPARISON_FASTER] = " or better",
                                             [LAB_COMPARISON_INCONCLUSIVE] = "",
                                             [LAB_COMPARISON_SAME] = ""};
    for (int v = 0, any = 0; v < LAB_COMPARISON_VERDICTS; v++)
        if (comparison->counts[v])
            lab_str_printf(&text, "%s%d %s%s", any++ ? ", " : "", comparison->counts[v],
                           lab_comparison_verdict_name(v),
                           comparison->metric_count ? of_metrics[v] : "");
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

/* --- a threshold --- */

struct worst { /* the largest slow-down that is shown, and what can't be excluded */
    double shown, possible;
    struct lab_claim claim; /* of `shown` */
    bool metric;            /* it is of a reported metric: not slower, but worse */
    int failed, set;        /* points that failed, and in which set */
};

static void take_claim(const struct showing *showing, int set, const struct lab_claim *claim,
                       enum lab_comparison_verdict verdict, bool metric, const char *point,
                       struct worst *worst) {
    double shown = lab_comparison_shown(claim, verdict);
    if (!(shown > worst->shown))
        return;
    const char *title = title_of(showing, set);
    worst->shown = shown;
    worst->metric = metric;
    worst->claim = *claim;
    worst->claim.reference = title_of(showing, 0);
    worst->claim.subject =
        *point ? lab_arena_printf(showing->arena, "%s, %s", title, point) : title;
}

static struct worst find_worst(const struct showing *showing) {
    struct worst worst = {.possible = -INFINITY};
    for (int i = 1; i < showing->report->set_count; i++) {
        const struct lab_comparison *comparison = &showing->report->comparisons[i - 1];
        double possible = lab_comparison_possible(&comparison->pooled);
        take_claim(showing, i, &comparison->pooled, comparison->verdict, false, "", &worst);
        if (comparison->failed_count > worst.failed) {
            worst.failed = comparison->failed_count;
            worst.set = i;
        }
        worst.possible = isnan(possible) ? possible : fmax(worst.possible, possible);
        for (int p = 0; p < comparison->point_count; p++)
            take_claim(
                showing, i, &comparison->points[p].claim, comparison->points[p].verdict,
                comparison->points[p].base->better != LAB_DIRECTION_NONE,
                lab_comparison_point_name(comparison, comparison->points[p].base, showing->arena),
                &worst);
    }
    return worst;
}

/* "Slow-down above 2% shown: …"; NULL = nobody asked. */
static const char *threshold_text(const struct showing *showing, bool *ret_fails) {
    struct worst worst = find_worst(showing);
    double limit = 100 * showing->report->fail_above;
    bool shown = worst.shown > showing->report->fail_above;
    *ret_fails = shown || worst.failed;
    if (isnan(limit))
        return NULL;
    if (shown)
        return lab_arena_printf(showing->arena, "%s above %g%% shown: %s.",
                                worst.metric ? "Worse result" : "Slow-down", limit,
                                lab_claim_sentence(&worst.claim, showing->arena));
    if (worst.failed)
        return lab_arena_printf(showing->arena, "Failed in %s: %d point%s that %s has.",
                                title_of(showing, worst.set), worst.failed,
                                worst.failed == 1 ? "" : "s", title_of(showing, 0));
    return isnan(worst.possible)
               ? lab_arena_printf(showing->arena,
                                  "No slow-down above %g%% shown: inconclusive, too few runs.",
                                  limit)
               : lab_arena_printf(showing->arena,
                                  "No slow-down above %g%% shown; pooled, at most %.1f%%.", limit,
                                  100 * fmax(0, worst.possible));
}

/* --- tables --- */

static const char *shortened(const char *text, struct lab_arena *arena) {
    if (!text)
        return "–";
    if (lab_str_columns(text) <= TEXT_COLUMNS)
        return text;
    return lab_arena_printf(arena, "%.*s…", (int)lab_str_utf8_prefix(text, TEXT_COLUMNS - 1), text);
}

static void add_facts(const struct showing *showing, int set) {
    const struct lab_comparison *comparison = &showing->report->comparisons[set - 1];
    int count = comparison->fact_count, shown = 0;
    struct lab_doc_column *columns = lab_arena_alloc(showing->arena, 3, sizeof *columns);
    columns[0] = (struct lab_doc_column){NULL, "Differs", .align = LAB_ALIGN_WHOLE};
    columns[1] = (struct lab_doc_column){NULL, title_of(showing, 0)};
    columns[2] = (struct lab_doc_column){NULL, title_of(showing, set)};
    if (count == 0)
        return;
    lab_doc_gap(showing->doc);
    lab_doc_rows(showing->doc, NULL, NULL, columns, 3);
    for (; shown < count && (showing->report->all || shown < FACTS_MOST); shown++) {
        const struct lab_compared_fact *fact = &comparison->facts[shown];
        lab_doc_cell(showing->doc, "%s: %s", fact->topic,
                     fact->name + (lab_str_starts(fact->name, SECTION) ? strlen(SECTION) : 0));
        lab_doc_cell(showing->doc, "%s", shortened(fact->base, showing->arena));
        lab_doc_cell(showing->doc, "%s", shortened(fact->other, showing->arena));
    }
    if (shown < count)
        lab_doc_text(showing->doc, LAB_DOC_FAINT, "%d more settings differ.%s", count - shown,
                     showing->report->hint);
}

static const char *axis_title(const char *name, struct lab_arena *arena) {
    char *title = lab_arena_strdup(arena, lab_comparison_axis_words(name, arena));
    if (*title >= 'a' && *title <= 'z')
        *title = (char)(*title - 'a' + 'A');
    return title;
}

static bool is_shown(const struct showing *showing, const struct lab_compared_point *point,
                     int row) {
    return showing->report->all ||
           (row < ROWS_MOST && (point->verdict != LAB_COMPARISON_SAME ||
                                showing->report->comparisons[0].point_count <= ROWS_MOST));
}

/* What all rows have in common, which takes no column: "Throughput, samples/s; GPU 0". */
struct rows {
    const struct lab_comparison *comparison;
    int count;
    const char *unit; /* of the rates of all; NULL = each value has its own */
    bool mixed;       /* they have different quantities */
};

static bool is_axis_shown(const struct rows *rows, const char *axis) {
    const struct lab_compared_point *points = rows->comparison->points;
    for (int p = 1; p < rows->count; p++)
        if (!lab_str_equal(lab_point_axis(points[p].base, axis),
                           lab_point_axis(points[0].base, axis)))
            return true;
    return rows->count == 1;
}

static struct rows find_rows(const struct showing *showing, int set) {
    struct rows rows = {.comparison = &showing->report->comparisons[set - 1]};
    const struct lab_compared_point *points = rows.comparison->points;
    while (rows.count < rows.comparison->point_count &&
           is_shown(showing, &points[rows.count], rows.count))
        rows.count++;
    bool rate = rows.count > 0 && lab_str_equal(points[0].base->quantity, "throughput");
    rows.unit = rate ? points[0].base->unit : NULL;
    for (int p = 1; p < rows.count; p++)
        rows.mixed |= !lab_str_equal(points[p].base->quantity, points[0].base->quantity);
    for (int p = 1; p < rows.count; p++)
        if (rows.mixed || !lab_str_equal(points[p].base->unit, points[0].base->unit))
            rows.unit = NULL;
    return rows;
}

static const char *rows_title(const struct rows *rows, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (rows->unit)
        lab_str_printf(&text, "Throughput, %s", rows->unit);
    for (int i = 0; i < rows->comparison->axis_count; i++) {
        const char *axis = rows->comparison->axes[i],
                   *value = lab_point_axis(rows->comparison->points[0].base, axis);
        if (value && !is_axis_shown(rows, axis))
            lab_str_printf(&text, "%s%s: %s", text.length ? "; " : "",
                           text.length ? lab_comparison_axis_words(axis, arena)
                                       : axis_title(axis, arena),
                           value);
    }
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

static void add_row(const struct showing *showing, const struct rows *rows,
                    const struct lab_compared_point *point) {
    for (int i = 0; i < rows->comparison->axis_count; i++)
        if (is_axis_shown(rows, rows->comparison->axes[i]))
            lab_doc_cell(
                showing->doc, "%s",
                shortened(lab_point_axis(point->base, rows->comparison->axes[i]), showing->arena));
    if (rows->mixed)
        lab_doc_cell(showing->doc, "%s", point->base->quantity);
    lab_doc_cell(showing->doc, "%s",
                 lab_comparison_value_text(lab_comparison_mean(point->base),
                                           rows->unit ? "" : point->base->unit, showing->arena));
    lab_doc_cell(showing->doc, "%s",
                 lab_comparison_value_text(lab_comparison_mean(point->other),
                                           rows->unit ? "" : point->other->unit, showing->arena));
    lab_doc_cell(showing->doc, "%s", lab_claim_effect(&point->claim, showing->arena));
    lab_doc_cell(showing->doc, "%s", lab_comparison_point_verdict(point));
}

/* Values yield before names are cut: the change is what was asked for. */
static void add_rows(const struct showing *showing, int set) {
    struct rows rows = find_rows(showing, set);
    int axes = rows.comparison->axis_count, count = 0;
    struct lab_doc_column *columns =
        lab_arena_alloc(showing->arena, (size_t)axes + 5, sizeof *columns);
    if (rows.count == 0)
        return;
    for (int i = 0; i < axes; i++)
        if (is_axis_shown(&rows, rows.comparison->axes[i]))
            columns[count++] =
                (struct lab_doc_column){NULL, axis_title(rows.comparison->axes[i], showing->arena),
                                        .align = LAB_ALIGN_NAME};
    if (rows.mixed)
        columns[count++] = (struct lab_doc_column){NULL, "Quantity"};
    columns[count++] =
        (struct lab_doc_column){NULL, title_of(showing, 0), LAB_UNIT_FIGURE, .yields = 1};
    columns[count++] =
        (struct lab_doc_column){NULL, title_of(showing, set), LAB_UNIT_FIGURE, .yields = 2};
    columns[count++] = (struct lab_doc_column){NULL, "Change, 95% CI", LAB_UNIT_FIGURE};
    columns[count++] = (struct lab_doc_column){NULL, "Verdict", .align = LAB_ALIGN_WHOLE};
    lab_doc_gap(showing->doc);
    lab_doc_rows(showing->doc, NULL, rows_title(&rows, showing->arena), columns, count)->untitled =
        true;
    for (int p = 0; p < rows.count; p++)
        add_row(showing, &rows, &rows.comparison->points[p]);
}

/* Points that the table has no row for. */
static void add_left_out(const struct showing *showing, int set) {
    const struct lab_comparison *comparison = &showing->report->comparisons[set - 1];
    double bound = 0;
    int same = 0, others = 0;
    for (int p = 0; p < comparison->point_count; p++) {
        const struct lab_compared_point *point = &comparison->points[p];
        if (is_shown(showing, point, p))
            continue;
        if (point->verdict == LAB_COMPARISON_SAME)
            bound = fmax(bound, point->claim.bound);
        same += point->verdict == LAB_COMPARISON_SAME;
        others += point->verdict != LAB_COMPARISON_SAME;
    }
    if (others)
        lab_doc_text(showing->doc, LAB_DOC_FAINT, "%d more points.%s", others,
                     showing->report->hint);
    if (same)
        lab_doc_text(showing->doc, LAB_DOC_FAINT, "%d points: same, no difference%s.%s", same,
                     lab_claim_larger(bound, showing->arena), showing->report->hint);
}

static void add_alone(const struct showing *showing, const struct lab_comparison *comparison,
                      const char *title, const struct lab_point *const *points, int count) {
    LAB_AUTO(str, text);
    if (count == 0)
        return;
    for (int i = 0; i < count && (showing->report->all || i < NAMES_MOST); i++)
        lab_str_printf(&text, "%s%s", i ? "; " : "",
                       lab_comparison_point_name(comparison, points[i], showing->arena));
    if (!showing->report->all && count > NAMES_MOST)
        lab_str_printf(&text, "; %d more", count - NAMES_MOST);
    lab_doc_text(showing->doc, LAB_DOC_PLAIN, "Only in %s: %d point%s: %s.", title, count,
                 count == 1 ? "" : "s", text.text);
}

/* What failed isn't slower: it has no verdict, and stands before those that do. */
static void add_failures(const struct showing *showing, int set) {
    const struct lab_point_set *sets = showing->report->sets;
    LAB_AUTO(str, text);
    int count = sets[set].failure_count;
    for (int i = 0; i < count && (showing->report->all || i < NAMES_MOST); i++) {
        const struct lab_point_failure *failure = &sets[set].failures[i];
        lab_str_printf(
            &text, "%s%s (%s)", i ? "; " : "",
            lab_comparison_failure_name(&showing->report->comparisons[set > 0 ? set - 1 : 0],
                                        failure, showing->arena),
            failure->reason);
    }
    if (!showing->report->all && count > NAMES_MOST)
        lab_str_printf(&text, "; %d more", count - NAMES_MOST);
    if (count)
        lab_doc_text(showing->doc, LAB_DOC_NOTE, "Failed in %s, not compared: %s.",
                     title_of(showing, set), text.text);
}

static void add_identical(const struct showing *showing, int set) {
    const struct lab_comparison *comparison = &showing->report->comparisons[set - 1];
    if (comparison->identical_count && comparison->identical_count < comparison->timed_count)
        lab_doc_text(showing->doc, LAB_DOC_NOTE,
                     "%d of %d points have identical values on both sides.",
                     comparison->identical_count, comparison->timed_count);
}

/* --- for programs --- */

static struct lab_value *names_value(const struct lab_comparison *comparison,
                                     const struct lab_point *const *points, int count,
                                     struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++)
        lab_value_append(
            arena, list,
            lab_value_string(arena, lab_comparison_point_name(comparison, points[i], arena)));
    return list;
}

static struct lab_value *point_value(const struct lab_comparison *comparison,
                                     const struct lab_compared_point *point,
                                     struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *axes = lab_value_map(arena);
    for (int i = 0; i < comparison->axis_count; i++)
        lab_value_set_string(arena, axes, comparison->axes[i],
                             lab_point_axis(point->base, comparison->axes[i]));
    lab_value_set(arena, map, "axes", axes);
    lab_value_set_string(arena, map, "quantity", point->base->quantity);
    lab_value_set_string(arena, map, "unit", point->base->unit);
    lab_value_set_float(arena, map, "reference", lab_comparison_mean(point->base));
    lab_value_set_float(arena, map, "value", lab_comparison_mean(point->other));
    lab_value_set_float(arena, map, "ratio", 1 + point->claim.effect);
    lab_value_set_float(arena, map, "ratio_low", 1 + point->claim.low);
    lab_value_set_float(arena, map, "ratio_high", 1 + point->claim.high);
    lab_value_set_int(arena, map, "runs", point->claim.n);
    lab_value_set_string(arena, map, "verdict", lab_comparison_point_verdict(point));
    return map;
}

static struct lab_value *comparison_value(const struct lab_comparison *comparison,
                                          struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *points = lab_value_list(arena),
                     *facts = lab_value_list(arena);
    for (int i = 0; i < comparison->point_count; i++)
        lab_value_append(arena, points, point_value(comparison, &comparison->points[i], arena));
    for (int i = 0; i < comparison->fact_count; i++) {
        const struct lab_compared_fact *fact = &comparison->facts[i];
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "topic", fact->topic);
        lab_value_set_string(arena, item, "name", fact->name);
        lab_value_set_string(arena, item, "reference", fact->base);
        lab_value_set_string(arena, item, "value", fact->other);
        lab_value_append(arena, facts, item);
    }
    lab_value_set_string(arena, map, "reference", comparison->base->name);
    lab_value_set_string(arena, map, "subject", comparison->other->name);
    lab_value_set_string(arena, map, "verdict", lab_comparison_verdict_name(comparison->verdict));
    lab_value_set_float(arena, map, "ratio", 1 + comparison->pooled.effect);
    lab_value_set_float(arena, map, "ratio_low", 1 + comparison->pooled.low);
    lab_value_set_float(arena, map, "ratio_high", 1 + comparison->pooled.high);
    lab_value_set_int(arena, map, "runs", comparison->pooled.n);
    lab_value_set_int(arena, map, "identical_points", comparison->identical_count);
    lab_value_set(arena, map, "points", points);
    lab_value_set(arena, map, "missing",
                  names_value(comparison, comparison->missing, comparison->missing_count, arena));
    lab_value_set(arena, map, "added",
                  names_value(comparison, comparison->added, comparison->added_count, arena));
    lab_value_set(arena, map, "differs", facts);
    return map;
}

static void add_data(const struct showing *showing) {
    const struct lab_compare_report *report = showing->report;
    struct lab_arena *arena = showing->arena;
    struct lab_value *list = lab_value_list(arena), *claims = lab_value_list(arena);
    for (int i = 0; i < report->set_count - 1; i++) {
        lab_value_append(arena, list, comparison_value(&report->comparisons[i], arena));
        lab_value_append(arena, claims, lab_claim_value(&report->comparisons[i].pooled, arena));
        for (int m = 0; m < report->comparisons[i].metric_count; m++)
            lab_value_append(arena, claims,
                             lab_claim_value(&report->comparisons[i].metrics[m].claim, arena));
    }
    for (int i = 0; i < report->set_count - 1; i++)
        for (int p = 0; p < report->comparisons[i].point_count; p++)
            lab_value_append(arena, claims,
                             lab_claim_value(&report->comparisons[i].points[p].claim, arena));
    lab_doc_data(
        showing->doc, "verdict",
        lab_value_string(arena, lab_comparison_verdict_name(report->comparisons[0].verdict)));
    lab_doc_data(showing->doc, "comparisons", list);
    lab_doc_data(showing->doc, "claims", claims);
    lab_doc_data(showing->doc, "sets",
                 lab_point_sets_value(report->sets, report->set_count, arena));
}

/* --- the whole --- */

static void add_comparison(const struct showing *showing, int set) {
    const struct lab_comparison *comparison = &showing->report->comparisons[set - 1];
    bool several = showing->report->set_count > 2;
    if (several)
        lab_doc_begin(showing->doc,
                      (struct lab_doc_section){
                          .title = lab_arena_printf(showing->arena, "%s, compared with %s",
                                                    title_of(showing, set), title_of(showing, 0))});
    if (comparison->point_count > 1)
        lab_doc_text(showing->doc, several ? LAB_DOC_SAYS : LAB_DOC_PLAIN, "%s",
                     count_text(comparison, showing->arena));
    add_identical(showing, set);
    if (set == 1)
        add_failures(showing, 0);
    add_failures(showing, set);
    add_facts(showing, set);
    add_rows(showing, set);
    add_left_out(showing, set);
    add_alone(showing, comparison, title_of(showing, 0), comparison->missing,
              comparison->missing_count);
    add_alone(showing, comparison, title_of(showing, set), comparison->added,
              comparison->added_count);
    if (several)
        lab_doc_end(showing->doc);
}

static void add_hint(const struct showing *showing) {
    for (int i = 1; i < showing->report->set_count; i++)
        if (showing->report->comparisons[i - 1].pooled.n == 1) {
            lab_doc_gap(showing->doc);
            lab_doc_text(showing->doc, LAB_DOC_FREE,
                         "One run gives no verdict: repeat it; of a benchmark's files, list all "
                         "runs: a1.json,a2.json b1.json,b2.json.");
            return;
        }
}

bool lab_report_add_compare(struct lab_doc *doc, const struct lab_compare_report *report) {
    struct showing showing = {report, doc, lab_doc_arena(doc), report->letters};
    LAB_AUTO(str, answer);
    bool simulated = false, fails;
    for (int i = 0; i < report->set_count; i++) {
        showing.letters |= lab_str_columns(report->sets[i].name) > NAME_COLUMNS;
        simulated |= report->sets[i].simulated;
        for (int k = 0; k < i; k++)
            showing.letters |= lab_str_equal(report->sets[i].name, report->sets[k].name);
    }
    for (int i = 1; i < report->set_count; i++)
        lab_str_printf(&answer, "%s%s", i > 1 ? " " : "", sentence(&showing, i));
    lab_doc_set_simulated(doc, simulated);
    lab_doc_text_as(doc, "answer", LAB_DOC_ANSWER, answer.text);
    const char *threshold = threshold_text(&showing, &fails);
    if (threshold)
        lab_doc_text_as(doc, "fail_above_answer", LAB_DOC_PLAIN, threshold);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    lab_doc_gap(doc);
    lab_doc_set_labels(doc, showing.letters ? 5 : NAME_COLUMNS + 4);
    lab_doc_lines_title(doc, "Set");
    for (int i = 0; i < report->set_count; i++)
        if (showing.letters || !lab_str_equal(report->sets[i].name, report->sets[i].source))
            lab_doc_line_whole(doc, title_of(&showing, i), "%s%s", report->sets[i].source,
                               report->sets[i].simulated ? " (simulated)" : "");
    lab_doc_gap(doc);
    for (int i = 1; i < report->set_count; i++)
        add_comparison(&showing, i);
    add_hint(&showing);
    lab_doc_only(doc, LAB_DOC_PROGRAMS);
    lab_doc_data(doc, "simulated", lab_value_bool(showing.arena, simulated));
    if (threshold) {
        lab_doc_data(doc, "fail_above", lab_value_float(showing.arena, report->fail_above));
        lab_doc_data(doc, "fails", lab_value_bool(showing.arena, fails));
    }
    add_data(&showing);
    lab_doc_only(doc, LAB_DOC_ALL);
    return fails;
}
