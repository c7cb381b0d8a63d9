/* comparison_result.c: comparisons as parts, tables, claims and a chart. */
#include "analysis/comparison/comparison_result.h"

#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "base/list.h"
#include "base/str.h"

#define NAMES_MOST 30 /* of points on an axis; more are numbered, in the order of their changes */
#define ALONE_MOST 5  /* points of one set alone that a note names */
#define FACTS_MOST 5  /* that differ, likewise: a table has them all */

struct row {
    const char *point, *set, *quantity, *unit, *verdict, *reference_text, *value_text;
    double reference, value, number;
    struct lab_claim change;
};

enum { REFERENCE_TEXT = 2, VALUE_TEXT = 4 };
static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, point, "point", "Point", LAB_UNIT_TEXT, .align = LAB_ALIGN_NAME),
    LAB_FIELD(struct row, reference, "reference", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, reference_text, NULL, "A", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, value, "value", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, value_text, NULL, "B", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, quantity, "quantity", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, unit, "unit", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, change, "change", "Change", LAB_UNIT_CHANGE),
    LAB_FIELD(struct row, verdict, "verdict", "Verdict", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE),
    LAB_FIELD(struct row, set, "set", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, number, "number", NULL, LAB_UNIT_NUMBER),
};

static const struct lab_field fact_fields[] = {
    LAB_FIELD(struct lab_compared_fact, topic, "topic", "Differs", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_compared_fact, name, "name", " ", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_compared_fact, base, "reference", "A", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_compared_fact, other, "value", "B", LAB_UNIT_TEXT),
};

struct figures {
    int points, slower, faster, inconclusive, same;
    struct lab_claim pooled;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, pooled, "change", "Change, pooled", LAB_UNIT_CHANGE,
              .brief = "Change, pooled"),
    LAB_FIELD(struct figures, points, "points", "Points", LAB_UNIT_COUNT, .brief = "Points"),
    LAB_FIELD(struct figures, slower, "slower", "Slower", LAB_UNIT_COUNT, .brief = "Slower"),
    LAB_FIELD(struct figures, faster, "faster", "Faster", LAB_UNIT_COUNT, .brief = "Faster"),
    LAB_FIELD(struct figures, inconclusive, "inconclusive", "Inconclusive", LAB_UNIT_COUNT,
              .brief = "Inconclusive"),
    LAB_FIELD(struct figures, same, "same", "Same", LAB_UNIT_COUNT, .brief = "Same"),
};

/* --- rows --- */

/* "all" where the point is the only one, which needs no axis. */
static struct row *make_rows(const struct lab_comparison *comparison, struct lab_arena *arena) {
    struct row *rows = lab_arena_alloc(arena, (size_t)comparison->point_count + 1, sizeof *rows);
    for (int i = 0; i < comparison->point_count; i++) {
        const struct lab_compared_point *point = &comparison->points[i];
        const char *name = lab_comparison_point_name(comparison, point->base, arena);
        double reference = lab_comparison_mean(point->base),
               value = lab_comparison_mean(point->other);
        if (point->base->better)
            name =
                lab_arena_printf(arena, "%s%s%s", point->base->quantity, *name ? ", " : "", name);
        rows[i] = (struct row){
            .point = *name ? name : "all",
            .set = comparison->other->name,
            .unit = point->base->unit,
            .quantity = point->base->quantity,
            .verdict = lab_comparison_point_verdict(point),
            .reference = reference,
            .reference_text = lab_comparison_value_text(reference, point->base->unit, arena),
            .value = value,
            .value_text = lab_comparison_value_text(value, point->base->unit, arena),
            .number = i + 1,
            .change = point->claim};
    }
    return rows;
}

static void title_values(struct lab_doc_table *table, const struct lab_comparison *comparison,
                         int reference, int value, struct lab_arena *arena) {
    struct lab_doc_column *columns = lab_analysis_own_columns(table, arena);
    columns[reference].title = comparison->base->name;
    columns[value].title = comparison->other->name;
}

/* --- notes --- */

static void note_alone(struct lab_analysis_part *part, const struct lab_comparison *comparison,
                       const char *name, const struct lab_point *const *points, int count,
                       struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < count && i < ALONE_MOST; i++)
        lab_str_printf(&text, "%s%s", i ? "; " : "",
                       lab_comparison_point_name(comparison, points[i], arena));
    if (count > ALONE_MOST)
        lab_str_printf(&text, "; %d more", count - ALONE_MOST);
    if (count)
        lab_analysis_note(&part->notes, arena, "Only in %s: %d point%s: %s.", name, count,
                          count == 1 ? "" : "s", text.text);
}

/* "Differs: device (sim:l40s-10, sim:dgx-h100); seed (1, 2)." */
static void note_facts(struct lab_analysis_part *part, const struct lab_comparison *comparison,
                       struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int count = comparison->fact_count;
    for (int i = 0; i < count && i < FACTS_MOST; i++) {
        const struct lab_compared_fact *fact = &comparison->facts[i];
        lab_str_printf(&text, "%s%s (%s, %s)", i ? "; " : "", fact->name,
                       fact->base ? fact->base : "–", fact->other ? fact->other : "–");
    }
    if (count > FACTS_MOST)
        lab_str_printf(&text, "; %d more", count - FACTS_MOST);
    if (count)
        lab_analysis_note(&part->notes, arena, "Differs: %s.", text.text);
}

static void note_failures(struct lab_analysis_part *part, const struct lab_comparison *comparison,
                          const struct lab_point_set *set, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < set->failure_count && i < ALONE_MOST; i++)
        lab_str_printf(&text, "%s%s (%s)", i ? "; " : "",
                       lab_comparison_failure_name(comparison, &set->failures[i], arena),
                       set->failures[i].reason);
    if (set->failure_count > ALONE_MOST)
        lab_str_printf(&text, "; %d more", set->failure_count - ALONE_MOST);
    if (set->failure_count)
        lab_analysis_note(&part->notes, arena, "Failed in %s, not compared: %s.", set->name,
                          text.text);
}

static void add_notes(struct lab_analysis_part *part, const struct lab_comparison *comparison,
                      struct lab_arena *arena) {
    if (comparison->identical_count && comparison->identical_count < comparison->timed_count)
        lab_analysis_note(&part->notes, arena,
                          "%d of %d points have identical values on both sides.",
                          comparison->identical_count, comparison->timed_count);
    note_failures(part, comparison, comparison->base, arena);
    note_failures(part, comparison, comparison->other, arena);
    note_facts(part, comparison, arena);
    note_alone(part, comparison, comparison->base->name, comparison->missing,
               comparison->missing_count, arena);
    note_alone(part, comparison, comparison->other->name, comparison->added,
               comparison->added_count, arena);
}

/* --- the whole --- */

/* "old and new ran on different machines (GPUs: 10 × NVIDIA L40S, 8 × NVIDIA H100)." */
static const char *machines_text(const struct lab_comparison *comparison, struct lab_arena *arena) {
    for (int i = 0; i < comparison->fact_count; i++) {
        const struct lab_compared_fact *fact = &comparison->facts[i];
        if (lab_str_equal(fact->topic, "machine") && fact->base && fact->other)
            return lab_arena_printf(arena, " Different machines (%s: %s, %s).", fact->name,
                                    fact->base, fact->other);
    }
    return "";
}

static struct row *add_part(struct lab_analysis_result *result,
                            const struct lab_comparison *comparison, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, comparison->other->name, arena);
    struct row *rows = make_rows(comparison, arena);
    struct figures figures = {comparison->point_count,
                              comparison->counts[LAB_COMPARISON_SLOWER],
                              comparison->counts[LAB_COMPARISON_FASTER],
                              comparison->counts[LAB_COMPARISON_INCONCLUSIVE],
                              comparison->counts[LAB_COMPARISON_SAME],
                              comparison->pooled};
    title_values(lab_rows_add_table(part, "points", "By point",
                                    &LAB_ROWS(row_fields, rows, comparison->point_count), arena),
                 comparison, REFERENCE_TEXT, VALUE_TEXT, arena);
    if (comparison->fact_count)
        title_values(lab_rows_add_table(
                         part, "differs", "What differs",
                         &LAB_ROWS(fact_fields, comparison->facts, comparison->fact_count), arena),
                     comparison, 2, 3, arena);
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    part->about = lab_arena_printf(arena, "compared with %s", comparison->base->name);
    part->answer = lab_arena_printf(
        arena, "%s%s",
        lab_comparison_sentence(comparison, comparison->other->name, comparison->base->name, arena),
        machines_text(comparison, arena));
    add_notes(part, comparison, arena);
    lab_analysis_add_claim(result, &comparison->pooled, arena);
    for (int m = 0; m < comparison->metric_count; m++)
        lab_analysis_add_claim(result, &comparison->metrics[m].claim, arena);
    lab_rows_add_claims(result, &LAB_ROWS(row_fields, rows, comparison->point_count), arena);
    return rows;
}

static struct lab_chart *add_chart(struct lab_analysis_result *result, const char *reference,
                                   struct lab_arena *arena) {
    return lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = "comparison",
                           .title = lab_arena_printf(arena, "Change from %s", reference),
                           .intervals = "95% intervals over runs",
                           .simulated = result->simulated},
        arena);
}

/* Few points have names; of many, the curve of their changes shows how many are where. */
static void add_panels(struct lab_chart *chart, const struct lab_comparison *comparisons,
                       struct row *const *rows, int count, struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        int points = comparisons[i].point_count;
        bool named = points <= NAMES_MOST;
        const char *quantity = comparisons[i].points[0].base->quantity;
        for (int p = 1; p < points; p++)
            if (!lab_str_equal(comparisons[i].points[p].base->quantity, quantity))
                quantity = "value";
        struct lab_chart_panel *panel = lab_chart_add_panel(
            chart, count > 1 ? comparisons[i].other->name : NULL,
            lab_axis(named ? "" : "Points, in the order of the table"),
            lab_axis(lab_arena_printf(arena, "Change of %s [%%]", quantity)), arena);
        lab_rows_add_series(panel, &LAB_ROWS(row_fields, rows[i], points),
                            named ? "point" : "number", "change", NULL, LAB_CHART_POINTS, arena);
    }
}

struct lab_analysis_result lab_comparison_result(const struct lab_comparison *comparisons,
                                                 int count, struct lab_arena *arena) {
    struct lab_analysis_result result =
        lab_rows_result("comparisons", figure_fields, LAB_COUNT_OF(figure_fields), arena);
    struct row **rows = lab_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    LAB_AUTO(str, answer);
    for (int i = 0; i < count; i++)
        result.simulated |= comparisons[i].base->simulated || comparisons[i].other->simulated;
    for (int i = 0; i < count; i++) {
        rows[i] = add_part(&result, &comparisons[i], arena);
        lab_str_printf(&answer, "%s%s", i ? " " : "", result.parts[i].answer);
    }
    result.answer = lab_arena_strdup(arena, answer.text);
    add_panels(add_chart(&result, comparisons[0].base->name, arena), comparisons, rows, count,
               arena);
    return result;
}
