/*
 * selftest.c: `gpulab selftest`: does this machine, measured by this program, find differences
 * where there are none? Studies of one point under two names are run and judged as any study is;
 * how often a verdict finds a difference is the false-positive rate of our own verdicts, here.
 */
#include "command/command.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/tty/stop.h"
#include "campaign/selftest.h"
#include "load/studies.h"
#include "machine/machine.h"
#include "plan/plan.h"
#include "report/study/study.h"
#include "run/folder.h"
#include "run/run_study.h"
#include "run/study.h"
#include "stats/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct selftest_config {
    int64_t studies, runs;
    double duration_s;
};

static const struct lab_option selftest_options[] = {
    {"studies", LAB_OPTION_INT, offsetof(struct selftest_config, studies), .letter = 'n',
     .fallback = "0", .min = 0, .max = 100000, .value_name = "N",
     .help = "A/A studies; 0 = as many as the duration allows"},
    {"runs", LAB_OPTION_INT, offsetof(struct selftest_config, runs), .letter = 'r', .fallback = "5",
     .min = 2, .max = 100, .value_name = "N", .help = "of each name in a study"},
    {"duration", LAB_OPTION_DURATION, offsetof(struct selftest_config, duration_s), .letter = 'd',
     .fallback = "60s", .min = 0, .max = 1e6, .help = "no study begins after so much time"},
    {NULL},
};

/* --- the point --- */

/* A small model and a few batches of it: what a run measures plays no part, how runs differ
 * does. */
static const char *const point_words[] = {
    "quick_test",
    "experiment.name=selftest",
    "experiment.vit_configs=[{patch_size:16,depth:1,heads:1,dim:64,mlp_dim:0}]",
    "experiment.test.tensor_shape=[3,64,64]",
    "experiment.test.batch_size=4",
    "experiment.test.num_samples=400",
    "experiment.test.warmup_samples=40",
    "experiment.test.memory_size_mb=8",
    "experiment.trace=false",
    "experiment.resume=false",
    "experiment.order=as_given",
};
#define POINT_WORDS (int)(sizeof point_words / sizeof *point_words)

static int make_plan(const struct lab_command_call *call, const struct lab_machine *machine,
                     const char *folder, struct lab_plan *ret_plan, struct lab_err *err) {
    const struct selftest_config *config = call->config;
    struct lab_config_path path = {0}; /* built-in files alone: the test is the same everywhere */
    const char **words = lab_arena_alloc(call->arena, POINT_WORDS + 4, sizeof *words);
    int count = 0;
    for (; count < POINT_WORDS; count++)
        words[count] = point_words[count];
    words[count++] =
        lab_arena_printf(call->arena, "experiment.repeat=%lld", (long long)(2 * config->runs));
    words[count++] = lab_arena_printf(call->arena, "output_dir='%s'", folder);
    struct lab_override *overrides;
    struct lab_sweep sweep;
    int override_count;
    if (lab_run_words(&path, lab_command_device(call), words, count, call->arena, &overrides,
                      &override_count, err) < 0 ||
        lab_sweep_init(&path, overrides, override_count, false, call->arena, &sweep, err) < 0)
        return -1;
    return lab_plan_make(machine, &path, &sweep, call->arena, ret_plan, err);
}

/* --- one study --- */

struct session {
    const struct lab_command_call *call;
    const struct lab_machine *machine;
    const struct lab_plan *plan;
    struct lab_selftest_tally tally;
    int64_t start_ns;
    int done; /* runs of the study under way */
    bool bar;
    struct lab_style style;
};

static void draw(struct session *session) {
    const struct selftest_config *config = session->call->config;
    if (!session->bar)
        return;
    double elapsed_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - session->start_ns);
    double studies = session->tally.studies + (double)session->done / session->plan->run_count;
    double by_time = config->duration_s > 0 ? elapsed_s / config->duration_s : 0;
    double fraction = config->studies > 0 ? studies / (double)config->studies : by_time;
    LAB_AUTO(str, line);
    int filled = (int)(24 * fmin(1, fraction));
    lab_str_add(&line, "selftest ");
    lab_str_add_repeat(&line, session->style.unicode ? "█" : "#", filled);
    lab_str_add_repeat(&line, session->style.unicode ? "░" : ".", 24 - filled);
    lab_str_printf(&line, " %d studies, %d alarm%s", session->tally.studies, session->tally.alarms,
                   session->tally.alarms == 1 ? "" : "s");
    lab_console_status_line(line.text);
}

static int on_stop(void *opaque) {
    draw(opaque);
    return lab_stop_level() > 0 ? 2 : 0;
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct session *session = opaque;
    if (event->kind == LAB_RUNNER_DONE || event->kind == LAB_RUNNER_FAILED)
        session->done++;
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    (void)holder;
    struct session *session = opaque;
    if (session->bar)
        lab_console_status_line(lab_arena_printf(
            session->call->arena, "waiting for %s, on which a study measures", device));
    return lab_stop_level() == 0;
}

static int carry_out(struct session *session, struct lab_arena *arena, struct lab_study *study,
                     struct lab_err *err) {
    struct lab_study_listener listener = {on_stop, on_event, on_wait, session};
    struct lab_runner_outcome outcome;
    session->done = 0;
    if (lab_study_run(study, &listener, &outcome, err) < 0)
        return -1;
    if (outcome.stopped)
        return 0;
    struct lab_study_table table;
    if (lab_studies_read_one(study->folder.path, lab_selftest_needs(), arena, &table, err) < 0)
        return -1;
    uint64_t seed = study->plan.seed;
    if (!lab_selftest_judge(&table, seed, &session->tally))
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%d of %d runs failed or aren't valid: see 'gpulab run "
                           "quick_test'",
                           table.planned_count - table.run_count + table.invalid_count,
                           table.planned_count);
    return 0;
}

static int one_study(struct session *session, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    /* a simulated device draws its chance from the seed: with one for all, they would be one
     * study */
    struct lab_plan plan = *session->plan;
    plan.seed += (uint64_t)session->tally.studies;
    struct lab_study_request request = {.plan = &plan,
                                        .machine = session->machine,
                                        .words = session->call->words,
                                        .overrides = session->call->words,
                                        .command = "gpulab selftest",
                                        .machine_json = "{}\n"};
    int result = lab_study_open(&request, &arena, &study, err);
    if (result == 0)
        result = carry_out(session, &arena, &study, err);
    lab_study_close(&study);
    return result;
}

static int all_studies(struct session *session, struct lab_err *err) {
    const struct selftest_config *config = session->call->config;
    session->start_ns = lab_clock_now(lab_clock_system());
    for (;;) {
        double elapsed_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - session->start_ns);
        bool enough = config->studies > 0 && session->tally.studies >= config->studies;
        bool late =
            config->studies == 0 && session->tally.studies > 0 && elapsed_s >= config->duration_s;
        if (enough || late || lab_stop_level() > 0)
            return 0;
        if (one_study(session, err) < 0)
            return -1;
    }
}

/* --- output --- */

static bool is_simulated(const struct session *session) {
    return session->plan->devices.count > 0 && session->plan->devices.items[0].simulated;
}

static void print(const struct session *session, bool holds) {
    const struct lab_command_call *call = session->call;
    const struct selftest_config *config = call->config;
    const struct lab_selftest_tally *tally = &session->tally;
    struct lab_value *map = lab_value_map(call->arena), *interval = lab_value_map(call->arena);
    struct lab_interval share = lab_stats_binomial_interval(tally->alarms, tally->studies, 0.95);
    const char *answer = lab_selftest_answer(tally, (int)config->runs, call->arena);
    const char *device = session->plan->runs[0].ranks[0].device;
    double blind = lab_stats_median(tally->bounds, (size_t)tally->studies);
    lab_value_set_string(call->arena, map, "answer", answer);
    lab_value_set_string(call->arena, map, "device", device);
    lab_value_set_bool(call->arena, map, "simulated", is_simulated(session));
    lab_value_set_int(call->arena, map, "studies", tally->studies);
    lab_value_set_int(call->arena, map, "runs_per_name", config->runs);
    lab_value_set_int(call->arena, map, "alarms", tally->alarms);
    lab_value_set_int(call->arena, map, "alarms_in_turn", tally->alarms_in_turn);
    lab_value_set_int(call->arena, map, "alarms_spread", tally->alarms_spread);
    lab_value_set_int(call->arena, map, "studies_spread", tally->spreads);
    lab_value_set_float(call->arena, map, "share",
                        tally->studies ? (double)tally->alarms / tally->studies : (double)NAN);
    lab_value_set_float(call->arena, interval, "low", share.low);
    lab_value_set_float(call->arena, interval, "high", share.high);
    lab_value_set_float(call->arena, interval, "confidence", 0.95);
    lab_value_set(call->arena, map, "share_interval", interval);
    lab_value_set_float(call->arena, map, "promised", LAB_SELFTEST_LEVEL);
    lab_value_set_bool(call->arena, map, "consistent", holds);
    lab_value_set_float(call->arena, map, "bound_median", blind);
    struct lab_doc *doc = lab_doc_open("Self-test", call->arena);
    lab_doc_set_labels(doc, 16);
    lab_doc_data(doc, NULL, map);
    lab_doc_text(doc, LAB_DOC_SAYS, "%s", answer);
    lab_doc_gap(doc);
    if (tally->studies > 0) {
        lab_doc_line(doc, "Device", "%s%s", device, is_simulated(session) ? ", simulated" : "");
        lab_doc_line(doc, "Interleaved", "%d of %d: A and B by turns, as studies run",
                     tally->alarms, tally->studies);
        lab_doc_line(doc, "One by one", "%d of %d, had all of A come before all of B",
                     tally->alarms_in_turn, tally->studies);
        lab_doc_line(doc, "Spread", "%d of %d: one name varied more than the other",
                     tally->alarms_spread, tally->spreads);
        lab_doc_line(doc, "Blind to", "differences below about %.2g %%, with so many runs",
                     100 * blind);
    }
    lab_doc_print(doc, call->console);
}

/* --- the command --- */

/* Its studies are of no use to anybody: they lie, and are known, in a folder that goes away with
 * them. */
static char *make_folder(struct lab_arena *arena, struct lab_err *err) {
    const char *temporary = getenv("TMPDIR");
    char *folder = lab_arena_printf(arena, "%s/gpulab-selftest-XXXXXX",
                                    temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't make a folder in %s",
                          temporary && *temporary ? temporary : "/tmp");
        return NULL;
    }
    setenv("XDG_STATE_HOME", folder, 1);
    return folder;
}

static int test(const struct lab_command_call *call, const struct lab_machine *machine,
                const char *folder, int *ret_status, struct lab_err *err) {
    struct lab_plan plan;
    if (make_plan(call, machine, folder, &plan, err) < 0)
        return -1;
    struct session session = {.call = call,
                              .machine = machine,
                              .plan = &plan,
                              .bar = lab_console_draws(call->console),
                              .style =
                                  lab_console_style(call->console->err_is_terminal, STDERR_FILENO)};
    lab_stop_watch(NULL, NULL);
    int result = all_studies(&session, err);
    lab_console_status_line(NULL);
    bool holds = lab_selftest_holds(session.tally.alarms, session.tally.studies);
    if (result == 0)
        print(&session, holds);
    if (lab_stop_signal())
        *ret_status = 128 + lab_stop_signal();
    else
        *ret_status = holds ? 0 : 3;
    lab_selftest_release(&session.tally);
    return result;
}

static int selftest_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    char *folder = make_folder(call->arena, err);
    int result = folder ? test(call, machine, folder, ret_status, err) : -1;
    if (folder)
        lab_folder_remove(folder);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab selftest", "a minute of A/A studies on the best device here"},
    {"gpulab selftest --device cpu:0/2 --duration 10min", "longer: the rate is known better"},
    {"gpulab selftest --studies 200 --runs 3", "as many studies, with three runs of each name"},
    {NULL},
};

const struct lab_command lab_command_selftest = {
    .name = "selftest",
    .summary = "how often our own verdicts find a difference that isn't there",
    .usage = "",
    .description =
        "Runs A/A studies: one point under two names, each run a process of its own, the names "
        "interleaved in random order as studies are. A verdict of a difference is a false alarm; "
        "verdicts promise no more than 5 % of them. The share is given with its binomial interval, "
        "and beside it what would have been found if all runs of one name had come first, which is "
        "how drift and neighbours fool comparisons. Exit status 3 if the share is larger than "
        "promised, at 99 %.",
    .options = selftest_options,
    .config_size = sizeof(struct selftest_config),
    .uses_device = true,
    .examples = examples,
    .run = selftest_run,
};
