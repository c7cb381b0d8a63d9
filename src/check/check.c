/*
 * check.c: a check's course: each test looks at each of its subjects; what fails is looked at twice
 * more before it counts; and what has no time left is broken, not passed.
 */
#include "check/check_internal.h"

#include "base/clock.h"
#include "base/list.h"
#include "machine/machine.h"
#include "stats/stats.h"

#include <assert.h>
#include <string.h>

#define PAUSE_NS     (250 * LAB_NS_PER_MS) /* before a fact that failed is looked at again */
#define PAUSE_LEFT_S 5.0                   /* if so much time is left */

const char *const lab_check_verdicts[] = {"PASS", "FAIL", "SKIPPED", "SKIPPED", NULL};
const char *const lab_check_severities[] = {"monitor", "reset", "isolate", NULL};

static const struct lab_check_test *const tables[] = {check_facts, check_rates_tests,
                                                      check_long_tests};

const struct lab_check_test *lab_check_test_at(int index) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct lab_check_test *test = tables[i]; test->name; test++)
            if (index-- == 0)
                return test;
    return NULL;
}

const struct lab_check_test *lab_check_test_find(const char *name, struct lab_err *err) {
    const char *names[64];
    int count = 0;
    for (const struct lab_check_test *test; (test = lab_check_test_at(count)); count++) {
        if (lab_str_equal(test->name, name))
            return test;
        names[count] = test->name;
    }
    names[count] = NULL;
    const char *nearest = lab_str_nearest(name, names);
    lab_err_set(err, LAB_ERR_USER, "there is no test '%.60s'%s%s%s", name,
                nearest ? "; did you mean '" : "; 'gpulab help check' lists them",
                nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

double lab_check_limit_s(int level) {
    static const double limits_s[LAB_CHECK_LEVELS] = {15, 300, 3600};
    assert(level >= 1 && level <= LAB_CHECK_LEVELS);
    return limits_s[level - 1];
}

/* --- findings --- */

void check_pass(struct lab_check_finding *finding, const char *found, const char *wanted) {
    finding->verdict = LAB_CHECK_PASS;
    finding->found = found;
    finding->wanted = wanted;
}

void check_fail(struct lab_check_finding *finding, const char *found, const char *wanted,
                const char *reason) {
    check_pass(finding, found, wanted);
    finding->verdict = LAB_CHECK_FAIL;
    finding->reason = reason;
}

void check_skip(struct lab_check_finding *finding, const char *reason) {
    finding->verdict = LAB_CHECK_SKIPPED;
    finding->reason = reason;
}

void check_break(struct lab_check_finding *finding, const char *reason) {
    finding->verdict = LAB_CHECK_BROKEN;
    finding->reason = reason;
}

void check_error(struct lab_check_finding *finding, const struct lab_err *err,
                 struct check_run *run) {
    const char *reason = lab_arena_strdup(run->arena, err->text);
    if (err->code == LAB_ERR_UNSUPPORTED)
        check_skip(finding, reason);
    else
        check_break(finding, reason);
}

/* --- what tests ask --- */

const struct lab_gpu_health *check_gpu(const struct check_run *run, int gpu) {
    return &run->health.gpus[gpu];
}

const struct lab_expected *check_expected(const struct check_run *run, int gpu) {
    const char *name =
        run->no_health ? run->devices->items[gpu].description : check_gpu(run, gpu)->name;
    return lab_expected_find(run->setup->expected, run->setup->expected_count, name);
}

const char *check_gpu_name(const struct check_run *run, int gpu) {
    return lab_arena_printf(run->arena, "GPU %d", run->devices->items[gpu].unit);
}

double check_left_s(const struct check_run *run) {
    return 1e-9 * (double)(run->deadline_ns - lab_clock_now(lab_clock_system()));
}

int check_each_gpu(struct check_run *run, const char **ret_why) {
    *ret_why = "no GPU";
    return run->devices->count;
}

int check_host(struct check_run *run, const char **ret_why) {
    (void)run;
    *ret_why = NULL;
    return 1;
}

/* --- one test --- */

static void read_health(struct check_run *run) {
    struct lab_err err = LAB_ERR_INIT;
    run->no_health = NULL;
    if (lab_device_health(run->machine, run->devices, run->arena, &run->health, &err) < 0)
        run->no_health = lab_arena_strdup(run->arena, err.text);
}

static struct lab_check_finding blank(const struct lab_check_test *test) {
    return (struct lab_check_finding){.test = test,
                                      .subject = "host",
                                      .gpu = -1,
                                      .peer = -1,
                                      .node = -1,
                                      .measured = NAN,
                                      .expected = NAN,
                                      .least = NAN,
                                      .severity = test->severity};
}

static void look(struct check_run *run, const struct lab_check_test *test, int index, int attempt,
                 struct lab_check_finding *ret_finding) {
    struct lab_check_finding finding = blank(test);
    if (check_left_s(run) > 0)
        test->look(run, index, attempt, &finding);
    else
        check_break(&finding, "the time limit was reached");
    finding.tries = attempt + 1;
    *ret_finding = finding;
}

static void look_again(struct check_run *run, const struct lab_check_test *test, int first,
                       int count, int index, int attempt) {
    struct lab_check_finding *kept = &run->findings[first + index];
    const char *failure = kept->reason;
    look(run, test, index, attempt, kept);
    if (test->unit)
        check_judge_one(run, first, count, index);
    if (kept->verdict == LAB_CHECK_PASS)
        kept->reason =
            lab_arena_printf(run->arena, "passed when tested again; at first: %s", failure);
    else if (kept->verdict == LAB_CHECK_BROKEN)
        kept->reason =
            lab_arena_printf(run->arena, "%s; the test again broke: %s", failure, kept->reason);
}

/* What a job that has just ended leaves behind takes a moment to pass. */
static void read_health_again(struct check_run *run) {
    if (!run->machine->simulated && check_left_s(run) > PAUSE_LEFT_S)
        lab_clock_sleep(lab_clock_system(), PAUSE_NS);
    read_health(run);
}

/* A failure counts when it is seen again and again. */
static void look_at_failures(struct check_run *run, const struct lab_check_test *test, int first,
                             int count) {
    for (int attempt = 1; attempt < CHECK_TRIES; attempt++) {
        bool read = test->unit != NULL; /* a rate is measured again */
        for (int i = 0; i < count; i++) {
            if (run->findings[first + i].verdict != LAB_CHECK_FAIL)
                continue;
            if (!read)
                read_health_again(run);
            read = true;
            look_again(run, test, first, count, i, attempt);
        }
    }
}

/* A rate that is learnt: the median of several tries; the first one that isn't a pass stays. */
static void add_try(struct check_run *run, struct lab_check_finding *kept,
                    const struct lab_check_finding *found) {
    int count = kept->seen_count;
    double *seen = lab_arena_alloc(run->arena, CHECK_LEARN_TRIES, sizeof *seen);
    if (kept->verdict != LAB_CHECK_PASS)
        return;
    for (int i = 0; i < count; i++)
        seen[i] = kept->seen[i];
    *kept = *found;
    if (isnan(found->measured))
        return;
    seen[count++] = found->measured;
    kept->seen = seen;
    kept->seen_count = count;
    kept->measured = lab_stats_median(seen, (size_t)count);
}

static void run_test(struct check_run *run, const struct lab_check_test *test) {
    const char *why = test->level > 1 ? run->setup->no_rates : NULL;
    int first = run->count, count = why ? 0 : test->count(run, &why);
    if (count <= 0) {
        struct lab_check_finding *none = &LAB_ADD(run->findings, run->count, run->arena);
        *none = blank(test);
        check_skip(none, why);
    }
    int tries = run->setup->learns && test->unit ? CHECK_LEARN_TRIES : 1;
    for (int attempt = 0; attempt < tries; attempt++)
        for (int i = 0; i < count; i++) {
            struct lab_check_finding finding;
            look(run, test, i, attempt, &finding);
            if (attempt == 0)
                LAB_ADD(run->findings, run->count, run->arena) = blank(test);
            if (tries > 1)
                add_try(run, &run->findings[first + i], &finding);
            else
                run->findings[first + i] = finding;
        }
    if (test->unit)
        check_judge(run, first, count);
    if (tries == 1)
        look_at_failures(run, test, first, count);
    check_close_devices(run);
    for (int i = first; i < run->count && run->setup->told; i++)
        run->setup->told(run->setup->state, &run->findings[i]);
}

static bool is_wanted(const struct lab_check_test *test, int level, const char *const *only) {
    return test->level <= level && (!only || lab_str_find(test->name, only) >= 0);
}

void lab_check_run(const struct lab_check_setup *setup, struct lab_arena *arena,
                   struct lab_check_result *ret_result) {
    assert(setup->devices.count > 0);
    const struct lab_device_ref *first = &setup->devices.items[0];
    double limit_s = setup->limit_s > 0 ? setup->limit_s : lab_check_limit_s(setup->level);
    struct check_run run = {.setup = setup,
                            .arena = arena,
                            .machine = first->machine ? first->machine : setup->machine,
                            .devices = &setup->devices,
                            .start_ns = lab_clock_now(lab_clock_system())};
    size_t gpus = (size_t)setup->devices.count;
    run.deadline_ns = run.start_ns + (int64_t)(1e9 * limit_s);
    run.loads = lab_arena_alloc(arena, gpus, sizeof *run.loads);
    run.open = lab_arena_alloc(arena, gpus, sizeof(struct lab_device *));
    read_health(&run);
    const struct lab_check_test *test;
    for (int i = 0; (test = lab_check_test_at(i)); i++)
        if (is_wanted(test, setup->level, setup->only))
            run_test(&run, test);
    check_end_measuring(&run);
    *ret_result = (struct lab_check_result){
        .level = setup->level,
        .gpu_name = run.no_health ? first->description : check_gpu(&run, 0)->name,
        .gpu_count = setup->devices.count,
        .driver = run.health.driver,
        .simulated = first->simulated,
        .findings = run.findings,
        .count = run.count,
        .duration_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - run.start_ns)};
}

/* --- its end --- */

void lab_check_complete(struct lab_check_result *result, const char *const *only,
                        const char *reason, struct lab_arena *arena) {
    const struct lab_check_test *test;
    for (int i = 0; (test = lab_check_test_at(i)); i++) {
        bool there = !is_wanted(test, result->level, only);
        for (int k = 0; k < result->count && !there; k++)
            there = result->findings[k].test == test;
        if (there)
            continue;
        struct lab_check_finding *finding = &LAB_ADD(result->findings, result->count, arena);
        *finding = blank(test);
        check_break(finding, reason);
    }
}

static bool counts(const struct lab_check_finding *finding, enum lab_check_severity least) {
    return finding->verdict == LAB_CHECK_FAIL && finding->severity >= least;
}

int lab_check_status(const struct lab_check_result *result, enum lab_check_severity least) {
    bool broken = false, passed = false;
    for (int i = 0; i < result->count; i++) {
        if (counts(&result->findings[i], least))
            return 1;
        broken |= result->findings[i].verdict == LAB_CHECK_BROKEN;
        passed |= result->findings[i].verdict == LAB_CHECK_PASS;
    }
    return broken || !passed ? 2 : 0;
}

/* The worst first; among equals the first. */
static const struct lab_check_finding *worst(const struct lab_check_result *result,
                                             enum lab_check_verdict verdict) {
    const struct lab_check_finding *found = NULL;
    for (int i = 0; i < result->count; i++)
        if (result->findings[i].verdict == verdict &&
            (!found || result->findings[i].severity > found->severity))
            found = &result->findings[i];
    return found;
}

static int tally(const struct lab_check_result *result, enum lab_check_verdict verdict) {
    int count = 0;
    for (int i = 0; i < result->count; i++)
        count += result->findings[i].verdict == verdict;
    return count;
}

const char *check_unjudged(const struct lab_check_result *result, struct lab_arena *arena) {
    int count = 0;
    for (int i = 0; i < result->count; i++)
        count += result->findings[i].verdict == LAB_CHECK_SKIPPED &&
                 !isnan(result->findings[i].measured);
    return count ? lab_arena_printf(arena, " (%d not judged)", count) : "";
}

/* "not checked: answers: nvmlInit: …", or why the first test was skipped where all were. */
static void add_unchecked(const struct lab_check_result *result,
                          const struct lab_check_finding *broken, struct lab_str *line) {
    const struct lab_check_finding *found = broken ? broken : worst(result, LAB_CHECK_SKIPPED);
    bool named = found && (!broken || tally(result, LAB_CHECK_PASS) > 0);
    lab_str_printf(line, "not checked: %s%s%s%s",
                   broken ? "" : "no test could run: ", named ? found->test->name : "",
                   named ? ": " : "", found ? found->reason : "there is none");
}

const char *lab_check_fit(const char *text, int columns, struct lab_arena *arena) {
    char *copy = lab_arena_strdup(arena, text);
    if (lab_str_columns(copy) <= columns)
        return copy;
    for (size_t length = strlen(copy); lab_str_columns(copy) > columns - 1;) {
        do
            length--;
        while (((unsigned char)copy[length] & 0xc0u) == 0x80u); /* whole characters */
        copy[length] = '\0';
    }
    return lab_arena_printf(arena, "%s…", copy);
}

const char *lab_check_reason(const struct lab_check_result *result, enum lab_check_severity least,
                             struct lab_arena *arena) {
    int status = lab_check_status(result, least), failures = tally(result, LAB_CHECK_FAIL);
    const struct lab_check_finding *found =
        worst(result, status == 2 ? LAB_CHECK_BROKEN : LAB_CHECK_FAIL);
    LAB_AUTO(str, line);
    if (status == 1) {
        const char *more = failures > 1 ? lab_arena_printf(arena, " (+%d more)", failures - 1) : "";
        more = lab_arena_printf(arena, "%s%s", more, result->simulated ? " (simulated)" : "");
        lab_str_printf(&line, "%s: %s: %s: %s", lab_check_severities[found->severity],
                       found->subject, found->test->name, found->reason);
        return lab_arena_printf(
            arena, "%s%s",
            lab_check_fit(line.text, LAB_CHECK_REASON_COLUMNS - (int)strlen(more), arena), more);
    }
    if (status == 2)
        add_unchecked(result, found, &line);
    else
        lab_str_printf(&line, "healthy: %d x %s%s, level %d, %d passed, %d skipped%s%s",
                       result->gpu_count, result->gpu_name, result->simulated ? " (simulated)" : "",
                       result->level, tally(result, LAB_CHECK_PASS),
                       tally(result, LAB_CHECK_SKIPPED), check_unjudged(result, arena),
                       failures ? ", failures below --fail-on" : "");
    return lab_check_fit(line.text, LAB_CHECK_REASON_COLUMNS, arena);
}
