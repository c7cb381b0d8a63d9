/*
 * selftest.c: `gpulab selftest`: the rate of false claims on this machine. Studies of one point
 * under different names are run and analysed as any study is; every effect that is claimed is
 * false.
 */
#include "command/command_trial.h"

#include "base/clock.h"
#include "base/tty/stop.h"
#include "campaign/selftest.h"
#include "doc/doc.h"
#include "machine/machine.h"
#include "stats/stats.h"

#include <math.h>
#include <stddef.h>

struct selftest_config {
    int64_t studies, runs;
    double duration_s;
};

static const struct lab_option selftest_options[] = {
    {"studies", LAB_OPTION_INT, offsetof(struct selftest_config, studies), .letter = 'n',
     .fallback = "0", .min = 0, .max = 100000, .value_name = "N",
     .help = "A/A studies; 0 = as many as the duration allows"},
    {"runs", LAB_OPTION_INT, offsetof(struct selftest_config, runs), .letter = 'r', .fallback = "5",
     .min = 2, .max = 100, .value_name = "N", .help = "runs per point"},
    {"duration", LAB_OPTION_DURATION, offsetof(struct selftest_config, duration_s), .letter = 'd',
     .fallback = "60s", .min = 0, .max = 1e6, .help = "start no study after this time"},
    {NULL},
};

/* --- the point --- */

/* A small model and a few batches of it: what a run measures plays no part, how runs differ does.
 * Studies take turns, for claims on training. */
static const char *const infers[] = {
    "quick_test",
    "experiment.name=selftest",
    "experiment.vit_configs=[{patch_size:16,depth:1,heads:1,dim:64,mlp_dim:0}]",
    "experiment.test.tensor_shape=[3,64,64]",
    "experiment.test.batch_size=4",
    "experiment.test.num_samples=400",
    "experiment.test.warmup_samples=40",
    "experiment.test.memory_size_mb=8",
    "experiment.order=as_given",
    NULL,
};
static const char *const trains[] = {
    "train_scaling",
    "experiment.name=selftest",
    "experiment.gpu_mode=single",
    "experiment.hardware.gpu_ids=[0]",
    "experiment.model=medium",
    "experiment.widths=50-64-64-3",
    "experiment.batch_sizes=[16]",
    "experiment.order=as_given",
    NULL,
};
static const char *const *const points[] = {infers, trains};
#define POINTS     (int)(sizeof points / sizeof *points)
#define WORDS_MOST 16

struct session {
    struct lab_trial_study trial;
    struct lab_plan plans[POINTS];
    struct lab_selftest_tally tally;
    int64_t start_ns;
};

static int make_plans(struct session *session, struct lab_err *err) {
    const struct lab_command_call *call = session->trial.call;
    const struct selftest_config *config = call->config;
    struct lab_config_path path = {0}; /* built-in files alone: the test is the same everywhere */
    for (int p = 0; p < POINTS; p++) {
        const char **words = lab_arena_alloc(call->arena, WORDS_MOST, sizeof *words);
        int count = 0;
        for (; points[p][count]; count++)
            words[count] = points[p][count];
        words[count++] = lab_arena_printf(call->arena, "experiment.repeat=%lld",
                                          LAB_SELFTEST_POINTS * (long long)config->runs);
        if (lab_trial_study_plan(&session->trial, &path, lab_command_device(call), words, count,
                                 false, &session->plans[p], err) < 0)
            return -1;
    }
    return 0;
}

/* --- studies --- */

static double elapsed_s(const struct session *session) {
    return 1e-9 * (double)(lab_clock_now(lab_clock_system()) - session->start_ns);
}

static double fraction(void *opaque, double of_study) {
    const struct session *session = opaque;
    const struct selftest_config *config = session->trial.call->config;
    if (config->studies > 0)
        return (session->tally.studies + of_study) / (double)config->studies;
    return config->duration_s > 0 ? elapsed_s(session) / config->duration_s : 0;
}

static const char *status(void *opaque) {
    const struct session *session = opaque;
    return lab_arena_printf(session->trial.call->arena, "%d studies, %d false claims",
                            session->tally.studies, lab_selftest_sum(&session->tally).wrong);
}

static int one_study(struct session *session, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_study_table table;
    /* a simulated device draws its chance from the seed: with one for all, they would be one
     * study */
    struct lab_plan plan = session->plans[session->tally.studies % POINTS];
    plan.seed += (uint64_t)session->tally.studies;
    int result =
        lab_trial_study_run(&session->trial, &plan, lab_selftest_needs(), &arena, &table, err);
    if (result)
        return result < 0 ? -1 : 0;
    if (!lab_selftest_judge(&table, plan.seed, &session->tally, session->trial.call->arena))
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%d of %d runs failed or aren't valid: see 'gpulab run %s'",
                           table.planned_count - table.run_count + table.invalid_count,
                           table.planned_count, plan.option);
    return 0;
}

static int all_studies(struct session *session, struct lab_err *err) {
    const struct selftest_config *config = session->trial.call->config;
    session->start_ns = lab_clock_now(lab_clock_system());
    for (;;) {
        bool enough = config->studies > 0 && session->tally.studies >= config->studies;
        bool late = config->studies == 0 && session->tally.studies > 0 &&
                    elapsed_s(session) >= config->duration_s;
        if (enough || late || lab_stop_level() > 0)
            return 0;
        if (one_study(session, err) < 0)
            return -1;
    }
}

/* --- output --- */

static bool is_simulated(const struct session *session) {
    return session->plans[0].devices.count > 0 && session->plans[0].devices.items[0].simulated;
}

static void add_kind(struct lab_doc *doc, const struct lab_selftest_kind *kind,
                     struct lab_value *list) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *map = lab_value_map(arena);
    struct lab_interval share =
        lab_stats_binomial_interval(kind->wrong_studies, kind->studies, 1 - LAB_CLAIM_LEVEL);
    double rate = kind->studies ? (double)kind->wrong_studies / kind->studies : (double)NAN;
    lab_doc_cell(doc, "%s", kind->kind);
    lab_doc_figure(doc, kind->claims);
    lab_doc_figure(doc, kind->wrong);
    lab_doc_figure(doc, kind->studies);
    lab_doc_figure(doc, kind->wrong_studies);
    lab_doc_cell(doc, "%.1f [%.1f, %.1f]%%", 100 * rate, 100 * share.low, 100 * share.high);
    lab_value_set_string(arena, map, "kind", kind->kind);
    lab_value_set_int(arena, map, "claims", kind->claims);
    lab_value_set_int(arena, map, "false_claims", kind->wrong);
    lab_value_set_int(arena, map, "families", kind->studies);
    lab_value_set_int(arena, map, "false_families", kind->wrong_studies);
    lab_value_set_float(arena, map, "rate", rate);
    lab_value_set_float(arena, map, "low", share.low);
    lab_value_set_float(arena, map, "high", share.high);
    lab_value_append(arena, list, map);
}

/* By reason: {kind: reason} for programs. */
static struct lab_value *add_uncovered(struct lab_doc *doc,
                                       const struct lab_selftest_tally *tally) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_analysis_kind *missing = lab_selftest_uncovered(tally, arena);
    struct lab_value *map = lab_value_map(arena);
    for (int i = 0; missing[i].name; i++) {
        LAB_AUTO(str, names);
        bool told = lab_value_get(map, missing[i].name) != NULL;
        for (int k = i; !told && missing[k].name; k++) {
            if (!lab_str_equal(missing[k].untested, missing[i].untested))
                continue;
            lab_str_printf(&names, "%s%s", names.length ? ", " : "", missing[k].name);
            lab_value_set_string(arena, map, missing[k].name, missing[k].untested);
        }
        if (!told)
            lab_doc_text(doc, LAB_DOC_FAINT, "Not covered, %s: %s.", missing[i].untested,
                         names.text);
    }
    return map;
}

static void print(const struct session *session, bool holds) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Kind of claim", LAB_UNIT_TEXT},       {NULL, "Claims", LAB_UNIT_COUNT, .yields = 1},
        {NULL, "False", LAB_UNIT_COUNT, .yields = 1}, {NULL, "Families", LAB_UNIT_COUNT},
        {NULL, "False families", LAB_UNIT_COUNT},     {NULL, "Rate, 95% CI", LAB_UNIT_TEXT},
    };
    struct lab_arena *arena = session->trial.call->arena;
    const struct selftest_config *config = session->trial.call->config;
    const struct lab_selftest_tally *tally = &session->tally;
    struct lab_value *list = lab_value_list(arena);
    struct lab_doc *doc = lab_doc_open("Self-test", arena);
    lab_doc_set_simulated(doc, is_simulated(session));
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, lab_selftest_answer(tally, arena));
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < tally->kind_count; i++)
        add_kind(doc, &tally->kinds[i], list);
    lab_doc_gap(doc);
    lab_doc_text(
        doc, LAB_DOC_FAINT,
        "%s: %d A/A studies of %d points, %lld runs each. A family: claims of a kind in one study.",
        session->plans[0].runs[0].ranks[0].device, tally->studies, LAB_SELFTEST_POINTS,
        (long long)config->runs);
    struct lab_value *uncovered = add_uncovered(doc, tally);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_data(doc, "device", lab_value_string(arena, session->plans[0].runs[0].ranks[0].device));
    lab_doc_data(doc, "simulated", lab_value_bool(arena, is_simulated(session)));
    lab_doc_data(doc, "studies", lab_value_int(arena, tally->studies));
    lab_doc_data(doc, "runs", lab_value_int(arena, config->runs));
    lab_doc_data(doc, "limit", lab_value_float(arena, LAB_CLAIM_LEVEL));
    lab_doc_data(doc, "consistent", lab_value_bool(arena, holds));
    lab_doc_data(doc, "kinds", list);
    lab_doc_data(doc, "not_covered", uncovered);
    lab_doc_print(doc, session->trial.call->console);
}

/* --- the command --- */

static int test(struct session *session, int *ret_status, struct lab_err *err) {
    if (make_plans(session, err) < 0 || all_studies(session, err) < 0)
        return -1;
    bool holds = true;
    for (int i = 0; i < session->tally.kind_count; i++)
        holds = holds && lab_selftest_holds(&session->tally, &session->tally.kinds[i]);
    lab_console_status_line(NULL);
    print(session, holds);
    *ret_status = lab_stop_signal() ? 128 + lab_stop_signal() : holds ? 0 : 3;
    return 0;
}

static int selftest_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    struct session session = {
        .trial = {.call = call, .machine = machine, .status = status, .fraction = fraction}};
    session.trial.state = &session;
    int result = lab_trial_study_open(&session.trial, err);
    if (result == 0)
        result = test(&session, ret_status, err);
    lab_trial_study_close(&session.trial);
    lab_selftest_release(&session.tally);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab selftest", "a minute of A/A studies on the best device here"},
    {"gpulab selftest --device cpu:0/2 --duration 10min", "longer: a narrower interval"},
    {"gpulab selftest --studies 200 --runs 3", "200 studies, 3 runs per point"},
    {NULL},
};

const struct lab_command lab_command_selftest = {
    .name = "selftest",
    .summary = "rate of false claims on this machine, by kind of claim (A/A studies)",
    .usage = "",
    .description =
        "Runs A/A studies: one point under 8 names, each run a process of its own, the names in "
        "random order within each block. Every analysis of a report makes its claims. The names "
        "stand for devices and NUMA nodes, settings, phases, mitigations, gangs, models, compiled "
        "and not, and pools in turn. Every other run of a point is read backwards, so that no "
        "drift remains. Every claimed effect is then false. Inference and training take turns. A "
        "family is all claims of one kind in a study; at most 5% of families may have a false one. "
        "Kinds that were not covered are listed with the reason. Exit status 3 if some kind has "
        "more, at 99% over all kinds.",
    .options = selftest_options,
    .config_size = sizeof(struct selftest_config),
    .uses_device = true,
    .examples = examples,
    .run = selftest_run,
};
