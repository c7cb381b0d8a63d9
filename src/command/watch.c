/*
 * watch.c: `gpulab watch`: samples the GPUs and processes of a running job for a while and names
 * the GPU or rank that the others wait for. The job isn't touched; what the samples show is the
 * analysis `straggler`'s business.
 */
#include "command/command.h"

#include "analysis/analysis.h"
#include "analysis/analysis_build.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/tty/stop.h"
#include "doc/doc.h"
#include "machine/machine.h"
#include "probe/sampler.h"
#include "record/record_job.h"
#include "record/record_memory.h"
#include "report/analysis.h"

#include <math.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

struct watch_config {
    double duration_s, interval_s;
    bool follow, fail;
};

static const struct lab_option watch_options[] = {
    {"duration", LAB_OPTION_DURATION, offsetof(struct watch_config, duration_s), .letter = 't',
     .fallback = "30s", .min = 1, .max = 1e6,
     .help = "how long to watch before the verdict: at least 14 intervals"},
    {"interval", LAB_OPTION_DURATION, offsetof(struct watch_config, interval_s), .letter = 'i',
     .fallback = "2s", .min = 0.01, .max = 3600, .help = "between two samples"},
    {"follow", LAB_OPTION_FLAG, offsetof(struct watch_config, follow), .letter = 'f',
     .help = "a verdict after each --duration, until the job ends or Ctrl-C"},
    {"fail", LAB_OPTION_FLAG, offsetof(struct watch_config, fail),
     .help = "exit with 3 if a straggler is named"},
    {NULL},
};

#define STATUS_FOUND  3
#define LOOK_NS       (250 * LAB_NS_PER_MS) /* that Ctrl-C and the job's end are noticed within */
#define SAMPLES_LEAST 14 /* 8 windows of 1.5, and two until every GPU has been read */
#define LISTS_LEAST   2  /* of processes, after which a job without a GPU has none */
/* Energy, ECC and the like aren't asked for; links and who is on a GPU hardly change. Both are read
 * when a round begins. */
#define SLOW_NS (60 * LAB_NS_PER_S)
#define GPM_NS  (100 * LAB_NS_PER_MS)
#define YOUNG_S 10                  /* since a job began: its ranks may follow */
#define OPEN_NS (30 * LAB_NS_PER_S) /* that a driver's start is waited for */

struct round { /* one verdict */
    const struct lab_command_call *call;
    struct lab_arena *arena; /* its own */
    struct lab_record_job job;
    struct lab_record_memory memory;
    struct lab_recording recording; /* the job's part of it */
    const char *refusal;            /* why there are no GPUs; NULL = there are */
    double watched_s;
    int rank_count; /* of those that are sampled */
    bool late;      /* ranks came since: the sampler has to begin anew */
    bool ended;
};

/* --- sampling --- */

static int64_t now(void) {
    return lab_clock_now(lab_clock_system());
}

/* Processes may have come since it was looked for; of a job that has ended, nothing is new. */
static void look_again(struct round *round) {
    struct lab_record_job job;
    if (lab_record_job_find(round->call->words[0], round->arena, &job, NULL) == 0)
        round->job = job;
}

/* Launchers take a while before they start their ranks. */
static bool is_young(const struct lab_record_job *job) {
    struct timespec boot;
    double ticks = (double)sysconf(_SC_CLK_TCK), began = NAN;
    for (int i = 0; i < job->count; i++)
        began = fmin(began, (double)job->items[i].start / ticks); /* fmin passes NaN over */
    return clock_gettime(CLOCK_BOOTTIME, &boot) == 0 && (double)boot.tv_sec - began < YOUNG_S;
}

/* A job that has neither GPUs nor ranks has nothing to compare: that is said at once, unless it has
 * just begun. `ret_done`: no further look is needed. */
static int check_job(struct round *round, bool *ret_done, struct lab_err *err) {
    int32_t *ranks;
    if (round->memory.recording.process_count < LISTS_LEAST)
        return 0;
    look_again(round);
    int count = lab_record_job_ranks(&round->job, round->arena, &ranks);
    round->late = count >= 2 && round->rank_count < 2;
    *ret_done = count >= 2 || !is_young(&round->job);
    if (!*ret_done || count >= 2)
        return 0;
    lab_record_job_select(&round->job, &round->memory.recording, round->arena, &round->recording);
    if (round->recording.track_count > 0)
        return 0;
    return lab_err_set(err, LAB_ERR_USER, "%s uses no GPU and has no two ranks to compare%s%s",
                       round->job.title, round->refusal ? ": " : "",
                       round->refusal ? round->refusal : "");
}

static int sample(struct round *round, struct lab_sampler *sampler, struct lab_err *err) {
    const struct watch_config *config = round->call->config;
    struct lab_sink_samples sink = lab_record_memory_sink(&round->memory);
    int64_t start_ns = now(), duration_ns = llround(config->duration_s * LAB_NS_PER_S);
    const struct timespec look = {.tv_nsec = LOOK_NS};
    bool checked = false;
    lab_sampler_edge(sampler); /* what is read seldom is there at once */
    while (lab_stop_level() == 0 && !round->ended && !round->late &&
           now() - start_ns < duration_ns) {
        nanosleep(&look, NULL);
        lab_sampler_take(sampler, &sink);
        round->ended = lab_record_job_has_ended(&round->job);
        if (!checked && check_job(round, &checked, err) < 0)
            return -1;
    }
    round->watched_s = (double)(now() - start_ns) / LAB_NS_PER_S;
    return 0;
}

static int watch_job(struct round *round, struct lab_err *err) {
    static const char *const probes[] = {"nvml", "process", NULL};
    const struct watch_config *config = round->call->config;
    struct lab_machine *machine;
    struct lab_sampler *sampler = NULL;
    int32_t *pids;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    struct lab_sampler_config setup = {
        .setup = {.machine = machine,
                  .clock = lab_clock_system(),
                  .interval_ns = llround(config->interval_s * LAB_NS_PER_S),
                  .slow_ns = SLOW_NS,
                  .gpm_ns = GPM_NS,
                  .root = ""},
        .probes = probes,
        .open_patience_ns = OPEN_NS};
    setup.setup.pid_count = lab_record_job_ranks(&round->job, round->arena, &pids);
    setup.setup.pids = pids;
    round->rank_count = setup.setup.pid_count;
    round->late = false;
    round->memory = (struct lab_record_memory){
        .arena = round->arena,
        .recording = {
            .path = "", .label = "", .maker = "", .interval_ns = setup.setup.interval_ns}};
    int result = lab_sampler_open(&setup, &sampler, err);
    if (result == 0) {
        const char *why = lab_sampler_refusal(sampler, "nvml");
        round->refusal = why ? lab_arena_strdup(round->arena, why) : NULL;
        result = sample(round, sampler, err);
    }
    lab_sampler_close(sampler);
    lab_machine_close(machine);
    if (result == 0 && !round->ended)
        look_again(round);
    if (result == 0)
        lab_record_job_select(&round->job, &round->memory.recording, round->arena,
                              &round->recording);
    return result;
}

/* --- the verdict --- */

static void add_notes(const struct round *round, struct lab_analysis_result *result) {
    const struct lab_record_job *job = &round->job;
    int32_t *ranks;
    int count = lab_record_job_ranks(job, round->arena, &ranks);
    if (round->ended)
        lab_analysis_note(&result->notes, round->arena, "The job ended after %.1f s.",
                          round->watched_s);
    if (job->world > count)
        lab_analysis_note(&result->notes, round->arena,
                          "%d of %d ranks are on this host; the others are not watched.", count,
                          job->world);
    if (job->hidden)
        lab_analysis_note(&result->notes, round->arena,
                          "Ranks may be missing: environments of another user can't be read.");
    if (round->refusal && count >= 2)
        lab_analysis_note(&result->notes, round->arena, "No GPU is watched: %s.", round->refusal);
}

static int show(struct round *round, int *ret_status, struct lab_err *err) {
    const struct watch_config *config = round->call->config;
    const struct lab_analysis *analysis = lab_analysis_find("straggler", err);
    struct lab_labelled_recording recording = {round->job.title, round->job.title,
                                               &round->recording, .rate = NAN};
    struct lab_analysis_input input = {.recordings = &recording, .recording_count = 1};
    struct lab_analysis_result result;
    if (!analysis || lab_analysis_run(analysis, NULL, &input, round->arena, &result, err) < 0)
        return -1;
    add_notes(round, &result);
    lab_doc_print(lab_report_analysis(analysis->name, &result, round->arena), round->call->console);
    fflush(round->call->console->out);
    if (config->fail && result.finding == LAB_ANALYSIS_FINDS)
        *ret_status = STATUS_FOUND;
    return 0;
}

/* One verdict; `ret_over`: the job has ended, or it was interrupted. */
static int run_round(const struct lab_command_call *call, bool again, bool *ret_over,
                     int *ret_status, struct lab_err *err) {
    const struct watch_config *config = call->config;
    LAB_AUTO(arena, arena);
    struct round round = {.call = call, .arena = &arena};
    struct lab_err gone = LAB_ERR_INIT;
    if (lab_record_job_find(call->words[0], &arena, &round.job, &gone) < 0) {
        *ret_over = true;
        return again ? 0 : lab_err_set(err, gone.code, "%s", gone.text);
    }
    if (!call->console->quiet && !again)
        lab_console_say("watching %s, %d process%s, for %.0f s; Ctrl-C ends it", round.job.title,
                        round.job.count, round.job.count == 1 ? "" : "es", config->duration_s);
    do {
        if (watch_job(&round, err) < 0)
            return -1;
    } while (round.late && !round.ended && lab_stop_level() == 0);
    if (again && !call->console->json)
        lab_console_write(call->console, "\n", 1);
    if (show(&round, ret_status, err) < 0)
        return -1;
    *ret_over = !config->follow || round.ended || lab_stop_level() > 0;
    return 0;
}

static int watch_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct watch_config *config = call->config;
    bool over = false;
    if (config->duration_s < SAMPLES_LEAST * config->interval_s)
        return lab_err_set(
            err, LAB_ERR_USER,
            "watch: --duration %gs is too short: with --interval %gs a verdict needs "
            "%gs",
            config->duration_s, config->interval_s, SAMPLES_LEAST * config->interval_s);
    lab_stop_watch(NULL, NULL);
    for (bool again = false; !over; again = true)
        if (run_round(call, again, &over, ret_status, err) < 0)
            return -1;
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab watch 4100", "the process and all that it started: torchrun, mpirun, a script"},
    {"gpulab watch job:123", "the processes of a batch job on this host"},
    {"gpulab watch 4100 --duration 2min --fail", "exit status 3 if a straggler is named"},
    {"gpulab watch 4100 --follow --json", "a document for programs each 30 s"},
    {"gpulab record -o a.db -- torchrun train.py; gpulab analyze straggler a.db",
     "the same of a recording"},
    {NULL},
};

const struct lab_command lab_command_watch = {
    .name = "watch",
    .summary = "name the GPU or rank that lags in a running job",
    .usage = "PID|job:ID",
    .description =
        "Samples the GPUs of a running job and its processes, and compares them: clocks, "
        "utilisation, SM activity, power, PCIe, NUMA placement, CPU time. The program needs no "
        "change and isn't touched. A PID stands for that process and all its descendants. job:ID "
        "is a job of Slurm, PBS or LSF, and so is a number that no process has. Ranks are read "
        "from RANK and the like in the environment of each process.\n"
        "\n"
        "The verdict is a name, none, or inconclusive, with its detection limits. Two GPUs that "
        "merely "
        "differ are inconclusive, unless a cause singles one out: a throttled clock, a narrower "
        "PCIe "
        "link, a remote NUMA node. 'gpulab help analyze straggler' has the rules. Ranks on other "
        "hosts are not watched.",
    .options = watch_options,
    .config_size = sizeof(struct watch_config),
    .min_words = 1,
    .max_words = 1,
    .examples = examples,
    .run = watch_run,
};
