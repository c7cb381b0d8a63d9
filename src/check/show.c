/*
 * show.c: a check's findings for people, for programs, and for node-exporter: measured, expected
 * and verdict of each test.
 */
#include "check/check_internal.h"

#include "base/list.h"
#include "doc/doc.h"

#include <stdlib.h>
#include <string.h>

#define LABEL_COLUMNS 19 /* of the longest test's name */

/* --- values in words --- */

/* "gemm (TFLOP/s)": a rate's unit stands once, where no narrow terminal cuts it. */
static const char *test_text(const struct lab_check_finding *finding, struct lab_arena *arena) {
    const struct lab_check_test *test = finding->test;
    return isnan(finding->measured) ? test->name
                                    : lab_arena_printf(arena, "%s (%s)", test->name, test->unit);
}

static const char *measured_text(const struct lab_check_finding *finding, struct lab_arena *arena) {
    return finding->found             ? finding->found
           : isnan(finding->measured) ? ""
                                      : lab_arena_printf(arena, "%.4g", finding->measured);
}

static const char *expected_text(const struct lab_check_finding *finding, struct lab_arena *arena) {
    if (finding->wanted)
        return finding->wanted;
    if (isnan(finding->expected))
        return "";
    return lab_arena_printf(arena, "%.4g (≥ %.4g)", finding->expected, finding->least);
}

/* --- a finding as a map, and back --- */

static void set_number(struct lab_arena *arena, struct lab_value *map, const char *key,
                       double value) {
    lab_value_set(arena, map, key,
                  isnan(value) ? lab_value_null(arena) : lab_value_float(arena, value));
}

static void set_text(struct lab_arena *arena, struct lab_value *map, const char *key,
                     const char *text) {
    lab_value_set(arena, map, key, text ? lab_value_string(arena, text) : lab_value_null(arena));
}

struct lab_value *lab_check_finding_value(const struct lab_check_finding *finding,
                                          struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "test", finding->test->name);
    lab_value_set_string(arena, map, "subject", finding->subject);
    lab_value_set_int(arena, map, "level", finding->test->level);
    lab_value_set_string(arena, map, "verdict", lab_check_verdicts[finding->verdict]);
    lab_value_set_bool(arena, map, "broken", finding->verdict == LAB_CHECK_BROKEN);
    lab_value_set_string(arena, map, "severity", lab_check_severities[finding->severity]);
    set_number(arena, map, "measured", finding->measured);
    set_number(arena, map, "expected", finding->expected);
    set_number(arena, map, "least", finding->least);
    set_text(arena, map, "unit", finding->test->unit);
    set_text(arena, map, "found", finding->found);
    set_text(arena, map, "wanted", finding->wanted);
    set_text(arena, map, "reason", finding->reason);
    set_text(arena, map, "key", finding->key);
    set_text(arena, map, "group", finding->group);
    lab_value_set_int(arena, map, "tries", finding->tries);
    if (finding->seen_count == 0)
        return map;
    struct lab_value *seen = lab_value_list(arena);
    for (int i = 0; i < finding->seen_count; i++)
        lab_value_append(arena, seen, lab_value_float(arena, finding->seen[i]));
    lab_value_set(arena, map, "seen", seen);
    return map;
}

int lab_check_finding_read(const struct lab_value *map, struct lab_arena *arena,
                           struct lab_check_finding *ret_finding) {
    const struct lab_check_test *test =
        lab_check_test_find(lab_value_get_text(map, "test", ""), NULL);
    int verdict = lab_str_find(lab_value_get_text(map, "verdict", ""), lab_check_verdicts);
    int severity = lab_str_find(lab_value_get_text(map, "severity", ""), lab_check_severities);
    if (!test || verdict < 0 || severity < 0)
        return -1;
    if (lab_value_get_bool(map, "broken"))
        verdict = LAB_CHECK_BROKEN;
    const char *texts[6];
    static const char *const keys[6] = {"subject", "found", "wanted", "reason", "key", "group"};
    for (int i = 0; i < 6; i++) {
        const char *text = lab_value_get_text(map, keys[i], NULL);
        texts[i] = text ? lab_arena_strdup(arena, text) : NULL;
    }
    const struct lab_value *list = lab_value_get(map, "seen");
    int seen_count = list && list->type == LAB_VALUE_LIST ? list->count : 0;
    double *seen = lab_arena_alloc(arena, (size_t)seen_count, sizeof *seen);
    for (int i = 0; i < seen_count; i++)
        seen[i] = lab_value_as_number(list->items[i]);
    *ret_finding = (struct lab_check_finding){.test = test,
                                              .subject = texts[0] ? texts[0] : "",
                                              .gpu = -1,
                                              .peer = -1,
                                              .node = -1,
                                              .measured = lab_value_get_number(map, "measured"),
                                              .expected = lab_value_get_number(map, "expected"),
                                              .least = lab_value_get_number(map, "least"),
                                              .found = texts[1],
                                              .wanted = texts[2],
                                              .reason = texts[3],
                                              .key = texts[4],
                                              .group = texts[5],
                                              .seen = seen,
                                              .seen_count = seen_count,
                                              .verdict = (enum lab_check_verdict)verdict,
                                              .severity = (enum lab_check_severity)severity,
                                              .tries = (int)lab_value_get_int(map, "tries", 1)};
    return 0;
}

/* --- for people --- */

static const struct lab_doc_column columns[] = {
    {"test", "Test", .align = LAB_ALIGN_WHOLE},
    {"subject", "Subject", .align = LAB_ALIGN_WHOLE},
    {"measured", "Measured"},
    {"expected", "Expected"},
    {"verdict", "Verdict", .align = LAB_ALIGN_WHOLE},
};

static void add_row(struct lab_doc *doc, const struct lab_check_finding *finding,
                    const char *subject) {
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_cell(doc, "%s", test_text(finding, arena));
    lab_doc_cell(doc, "%s", subject);
    lab_doc_cell(doc, "%s", measured_text(finding, arena));
    lab_doc_cell(doc, "%s", expected_text(finding, arena));
    lab_doc_cell(doc, "%s", lab_check_verdicts[finding->verdict]);
}

/* Findings of one test that end alike are one row: how many, and from where to where. Each is
 * compared with the same: at another distance another rate is expected. */
static bool joins(const struct lab_check_finding *a, const struct lab_check_finding *b) {
    return a->test == b->test && a->verdict == b->verdict && a->verdict != LAB_CHECK_FAIL &&
           lab_str_equal(a->key, b->key) && lab_str_equal(a->group, b->group) &&
           lab_str_equal(a->wanted, b->wanted) &&
           (a->verdict == LAB_CHECK_PASS || lab_str_equal(a->reason, b->reason));
}

/* Whether an earlier finding's row speaks for this one too. */
static bool is_told(const struct lab_check_result *result, int index) {
    for (int i = 0; i < index; i++)
        if (joins(&result->findings[i], &result->findings[index]))
            return true;
    return false;
}

/* "8 GPUs", "8 GPUs, dist. 20", "56 pairs, NVLink" */
static const char *joined_subject(const struct lab_check_finding *finding, int count, int gpus,
                                  struct lab_arena *arena) {
    const char *place = finding->group ? strstr(finding->group, CHECK_DISTANCE) : NULL;
    if (strstr(finding->subject, " to "))
        return lab_arena_printf(arena, "%d pairs%s%s", count, finding->group ? ", " : "",
                                finding->group ? finding->group : "");
    bool remote = finding->key && strstr(finding->key, "_remote_");
    return lab_arena_printf(arena, "%d GPUs%s", gpus, place && remote ? place : "");
}

/* Whether both are about one GPU, from whatever NUMA node. */
static bool is_same_gpu(const char *a, const char *b) {
    size_t length = strcspn(a, ",");
    return length == strcspn(b, ",") && strncmp(a, b, length) == 0;
}

/* The number that a fact begins with, and what follows it; NaN = it has none. */
static double number_of(const char *found, const char **ret_rest) {
    char *end = NULL;
    double value = found ? strtod(found, &end) : NAN;
    *ret_rest = end;
    return end == found ? NAN : value;
}

/* "53.32–54.31"; "1980" where both ends read alike. */
static const char *range_text(double low, double high, const char *unit, struct lab_arena *arena) {
    const char *from = lab_arena_printf(arena, "%.4g", low),
               *to = lab_arena_printf(arena, "%.4g", high);
    return lab_str_equal(from, to) ? lab_arena_printf(arena, "%s%s", to, unit)
                                   : lab_arena_printf(arena, "%s–%s%s", from, to, unit);
}

static void add_joined(struct lab_doc *doc, const struct lab_check_result *result, int first) {
    const struct lab_check_finding *finding = &result->findings[first];
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_check_finding row = *finding;
    const char *unit, *rest;
    double high = finding->measured, low_fact = number_of(finding->found, &unit);
    double high_fact = low_fact;
    int count = 0, gpus = 0;
    bool alike = true, numbers = !isnan(low_fact);
    for (int i = first; i < result->count; i++) {
        const struct lab_check_finding *other = &result->findings[i];
        if (i > first && !joins(finding, other))
            continue;
        bool counted = false;
        for (int k = first; k < i && !counted; k++)
            counted = joins(finding, &result->findings[k]) &&
                      is_same_gpu(result->findings[k].subject, other->subject);
        gpus += !counted;
        count++;
        row.measured = fmin(row.measured, other->measured);
        high = fmax(high, other->measured);
        double fact = number_of(other->found, &rest);
        numbers = numbers && !isnan(fact) && lab_str_equal(rest, unit);
        low_fact = fmin(low_fact, fact);
        high_fact = fmax(high_fact, fact);
        alike &= lab_str_equal(other->found, finding->found);
    }
    if (count > 1 && !isnan(high))
        row.found = range_text(row.measured, high, "", arena);
    else if (!alike && numbers)
        row.found = range_text(low_fact, high_fact, unit, arena);
    else if (!alike)
        row.found = "as expected";
    add_row(doc, &row, count > 1 ? joined_subject(finding, count, gpus, arena) : finding->subject);
}

/* What a pass has to note, and why others were skipped: a line for each row. */
static void add_reasons(struct lab_doc *doc, const struct lab_check_result *result,
                        const char *title, bool skipped) {
    bool any = false;
    for (int i = 0; i < result->count; i++) {
        const struct lab_check_finding *finding = &result->findings[i];
        bool is_skip = finding->verdict >= LAB_CHECK_SKIPPED;
        if (finding->verdict == LAB_CHECK_FAIL || is_skip != skipped || !finding->reason ||
            is_told(result, i))
            continue;
        if (!any)
            lab_doc_begin(doc, (struct lab_doc_section){.title = title});
        any = true;
        lab_doc_line(doc, finding->test->name, "%s", finding->reason);
    }
    if (any)
        lab_doc_end(doc);
}

static int tally(const struct lab_check_result *result, enum lab_check_verdict verdict) {
    int count = 0;
    for (int i = 0; i < result->count; i++)
        count += result->findings[i].verdict == verdict;
    return count;
}

/* What a reader wants to know first. */
static void add_heading(struct lab_doc *doc, const struct lab_check_result *result, int status,
                        const char *reason, struct lab_arena *arena) {
    static const char unchecked[] = "not checked: ";
    int passed = tally(result, LAB_CHECK_PASS), failed = tally(result, LAB_CHECK_FAIL);
    int skipped = tally(result, LAB_CHECK_SKIPPED) + tally(result, LAB_CHECK_BROKEN);
    const char *tests = passed == 1 ? "test" : "tests", *unjudged = check_unjudged(result, arena);
    if (status == 2)
        lab_doc_text(doc, LAB_DOC_ANSWER, "Not checked: %s",
                     lab_str_starts(reason, unchecked) ? reason + strlen(unchecked) : reason);
    else if (status == 1)
        lab_doc_text(doc, LAB_DOC_ANSWER, "Not healthy: %d of %d tests failed, %d skipped", failed,
                     passed + failed, skipped);
    else if (failed)
        lab_doc_text(doc, LAB_DOC_ANSWER,
                     "Healthy enough: %d %s passed, %d failed below --fail-on, %d skipped%s",
                     passed, tests, failed, skipped, unjudged);
    else
        lab_doc_text(doc, LAB_DOC_ANSWER, "Healthy: %d %s passed, %d skipped%s", passed, tests,
                     skipped, unjudged);
    LAB_AUTO(str, gpus);
    if (result->gpu_count)
        lab_str_printf(&gpus, "%d × %s", result->gpu_count, result->gpu_name);
    else /* the driver didn't answer */
        lab_str_add(&gpus, "GPUs unknown");
    lab_doc_text(doc, LAB_DOC_PLAIN, "%s%s, level %d, %.1f s%s%s", gpus.text,
                 result->simulated ? " (simulated)" : "", result->level, result->duration_s,
                 result->driver ? ", driver " : "", result->driver ? result->driver : "");
}

static void add_people(struct lab_doc *doc, const struct lab_check_result *result) {
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    for (int severity = LAB_CHECK_ISOLATE; severity >= LAB_CHECK_MONITOR; severity--)
        for (int i = 0; i < result->count; i++) { /* the worst first */
            const struct lab_check_finding *finding = &result->findings[i];
            if (finding->verdict == LAB_CHECK_FAIL && (int)finding->severity == severity)
                lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s: %s: %s (%d of %d tries)",
                             lab_check_severities[severity], finding->subject, finding->test->name,
                             finding->reason, finding->tries, finding->tries);
        }
    lab_doc_set_labels(doc, LABEL_COLUMNS);
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, "Tests", columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < result->count; i++)
        if (!is_told(result, i))
            add_joined(doc, result, i);
    add_reasons(doc, result, "Notes", false);
    add_reasons(doc, result, "Skipped", true);
    lab_doc_only(doc, LAB_DOC_ALL);
}

struct lab_doc *lab_check_doc(const struct lab_check_result *result, enum lab_check_severity least,
                              struct lab_arena *arena) {
    struct lab_doc *doc = lab_doc_open("Check", arena);
    const char *reason = lab_check_reason(result, least, arena);
    int status = lab_check_status(result, least);
    lab_doc_set_simulated(doc, result->simulated);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    add_heading(doc, result, status, reason, arena);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_data(doc, "status", lab_value_int(arena, status));
    lab_doc_data(doc, "healthy", lab_value_bool(arena, status == 0));
    lab_doc_data(doc, "reason", lab_value_string(arena, reason));
    lab_doc_data(doc, "level", lab_value_int(arena, result->level));
    lab_doc_data(doc, "simulated", lab_value_bool(arena, result->simulated));
    bool known = result->gpu_count > 0;
    lab_doc_data(doc, "gpu",
                 known ? lab_value_string(arena, result->gpu_name) : lab_value_null(arena));
    lab_doc_data(doc, "gpus",
                 known ? lab_value_int(arena, result->gpu_count) : lab_value_null(arena));
    if (result->driver)
        lab_doc_data(doc, "driver", lab_value_string(arena, result->driver));
    lab_doc_data(doc, "duration_s", lab_value_float(arena, result->duration_s));
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < result->count; i++)
        lab_value_append(arena, list, lab_check_finding_value(&result->findings[i], arena));
    lab_doc_data(doc, "findings", list);
    add_people(doc, result);
    return doc;
}

/* --- node-exporter --- */

/* A label's value, whatever is in it. */
static void add_label(struct lab_str *out, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            lab_str_add(out, "\\");
        lab_str_add_bytes(out, *text == '\n' ? " " : text, 1);
    }
}

static void add_head(struct lab_str *out, const char *name, const char *help) {
    lab_str_printf(out, "# HELP gpulab_check_%s %s\n# TYPE gpulab_check_%s gauge\n", name, help,
                   name);
}

static void add_sample(struct lab_str *out, const char *name,
                       const struct lab_check_finding *finding, double value) {
    lab_str_printf(out, "gpulab_check_%s{test=\"%s\",severity=\"%s\",subject=\"", name,
                   finding->test->name, lab_check_severities[finding->severity]);
    add_label(out, finding->subject);
    lab_str_add(out, "\"");
    if (finding->test->unit && !lab_str_equal(name, "verdict"))
        lab_str_printf(out, ",unit=\"%s\"", finding->test->unit);
    lab_str_printf(out, "} %.9g\n", value);
}

void lab_check_write_textfile(const struct lab_check_result *result, enum lab_check_severity least,
                              int64_t wall_s, struct lab_str *out) {
    add_head(out, "status", "0 healthy, 1 failure, 2 not checked.");
    lab_str_printf(out, "gpulab_check_status{level=\"%d\"%s} %d\n", result->level,
                   result->simulated ? ",simulated=\"true\"" : "", lab_check_status(result, least));
    add_head(out, "time_seconds", "When the check ended, since 1970.");
    lab_str_printf(out, "gpulab_check_time_seconds %lld\n", (long long)wall_s);
    add_head(out, "duration_seconds", "How long it took.");
    lab_str_printf(out, "gpulab_check_duration_seconds %.3f\n", result->duration_s);
    add_head(out, "verdict", "0 pass, 1 fail, 2 skipped, 3 skipped after an error.");
    for (int i = 0; i < result->count; i++)
        add_sample(out, "verdict", &result->findings[i], result->findings[i].verdict);
    add_head(out, "measured", "Measured rate.");
    for (int i = 0; i < result->count; i++)
        if (!isnan(result->findings[i].measured))
            add_sample(out, "measured", &result->findings[i], result->findings[i].measured);
    add_head(out, "least", "Lowest rate that passes.");
    for (int i = 0; i < result->count; i++)
        if (!isnan(result->findings[i].least))
            add_sample(out, "least", &result->findings[i], result->findings[i].least);
}
