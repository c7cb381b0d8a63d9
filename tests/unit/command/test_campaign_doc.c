/*
 * test_campaign_doc.c: what a campaign shows, of one that is written by hand: its schedule, its phases and
 * its report, whole, against tests/golden/campaign-doc.txt. Every case of a question, a claim and a slot
 * is in it.
 */
#include "command/campaign/answers.h"

#include "base/file/own.h"
#include "base/json.h"
#include "doc/doc.h"
#include "golden.h"
#include "version.h"

#include <math.h>

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* --- the campaign --- */

enum { LOCAL, FUSED, BISECTED, REFINED, PHASES };

static const struct lab_campaign_study local[] = {{.label = "numa_study"},
                                                  {.label = "quick_*test*"}};
static const struct lab_campaign_study fused[] = {{.label = "a_study_with_a_name_that_is_long"}};
static const struct lab_campaign_study bisected[] = {
    {.label = "bisect", .strategy = LAB_CAMPAIGN_BISECT, .runs = 40},
    {.label = "bisect_2", .strategy = LAB_CAMPAIGN_BISECT, .step = 1},
    {.label = "bisect_3", .strategy = LAB_CAMPAIGN_BISECT, .step = 2}};
static const struct lab_campaign_study refined[] = {
    {.label = "eliminate", .strategy = LAB_CAMPAIGN_ELIMINATE}};
static const struct lab_campaign_phase phases[PHASES] = {
    {.name = "near", .studies = local, .study_count = 2},
    {.name = "compile-and-fuse",
     .priority = LAB_CAMPAIGN_LOW,
     .studies = fused,
     .study_count = 1,
     .first_study = 2},
    {.name = "bisected",
     .priority = LAB_CAMPAIGN_MEDIUM,
     .studies = bisected,
     .study_count = 3,
     .first_study = 3},
    {.name = "refined",
     .priority = LAB_CAMPAIGN_MEDIUM,
     .studies = refined,
     .study_count = 1,
     .first_study = 6},
};
enum { STUDIES = 7 };

static struct course_study studies[STUDIES];
static struct lab_campaign_found found[STUDIES];
static struct course course;

static void given_campaign(void) {
    const char *folder = test_path("campaign");
    static const char *const titles[STUDIES] = {"numa_study", "quick_test", "fused", "b",
                                                "b 2",        "b 3",        "e"};
    static const char *const whys[STUDIES] = {
        NULL, NULL, NULL, "between 4 and 8", "as near as asked", "as near as asked", NULL};
    for (int i = 0; i < STUDIES; i++) {
        studies[i] = (struct course_study){
            .title = titles[i],
            .why = whys[i],
            .refined = i < 4,
            .folder = i == 0   ? lab_arena_printf(&test_arena, "%s/near/numa_study/x", folder)
                      : i == 1 ? lab_arena_printf(&test_arena, "%s/near/quick/y", folder)
                      : i == 2 ? "/elsewhere/z"
                               : NULL};
        found[i] = (struct lab_campaign_found){.planned = 10 * (i + 1),
                                               .done = i < 3 ? 9 : 0,
                                               .failed = i == 0,
                                               .taken_s = i == 1 ? NAN : 1.5 * (i + 1),
                                               .energy_j = i == 0 ? 1500 : NAN,
                                               .energy_runs = i == 0 ? 4 : 0};
    }
    course = (struct course){.arena = &test_arena,
                             .campaign = {.name = "whole",
                                          .title = "Some of everything",
                                          .phases = phases,
                                          .phase_count = PHASES,
                                          .study_count = STUDIES},
                             .studies = studies,
                             .found = found,
                             .folder = folder};
}

/* --- as text --- */

static struct lab_str all;

/* Without what is this test's or this version's alone. */
static void add_masked(const char *text) {
    const char *const masks[][2] = {{course.folder, "FOLDER"}, {"gpulab " LAB_VERSION, "gpulab"}};
    while (*text) {
        int mask = 0;
        while (mask < 2 && !lab_str_starts(text, masks[mask][0]))
            mask++;
        if (mask < 2)
            lab_str_add(&all, masks[mask][1]);
        else
            lab_str_add_bytes(&all, text, 1);
        text += mask < 2 ? strlen(masks[mask][0]) : 1;
    }
    lab_str_add(&all, "\n");
}

static void add_text(const struct lab_doc *doc, const char *format, struct lab_style style) {
    LAB_AUTO(str, text);
    lab_doc_write(doc, format, style, &text);
    add_masked(text.text);
}

static void add_json(const struct lab_doc *doc) {
    LAB_AUTO(str, text);
    lab_json_write(lab_doc_value(doc, &test_arena), 2, &text);
    add_masked(text.text);
}

static void add_title(const char *title) {
    lab_str_printf(&all, "=== %s\n", title);
}

static const struct lab_style wide = {.columns = 120, .unicode = true}, narrow = {.columns = 60},
                              vast = {.columns = 300};

/* --- the schedule --- */

static void add_schedules(void) {
    struct lab_campaign_slot slots[] = {
        {.phase = LOCAL,
         .study = 0,
         .start_s = 0,
         .seconds = 60,
         .energy_j = 1234,
         .bytes = 1 << 20},
        {.phase = LOCAL, .study = 1, .start_s = 60, .seconds = 0.5, .energy_j = NAN, .bytes = 5000},
        {.phase = BISECTED, .study = 0, .start_s = 60, .seconds = 60, .energy_j = NAN},
        {.phase = BISECTED, .study = 1, .start_s = 90, .seconds = NAN, .energy_j = NAN},
        {.phase = BISECTED, .study = 2, .start_s = 90, .seconds = NAN, .energy_j = NAN},
        {.phase = REFINED, .study = 0, .start_s = 120, .seconds = NAN, .energy_j = NAN},
        {.phase = FUSED, .study = 0, .start_s = 120, .seconds = 20, .energy_j = 5, .dropped = true},
    };
    const struct lab_campaign_schedule cases[] = {
        {slots, COUNT(slots), 120, 1234, 1 << 21, 2, 1},
        {slots, 2, 60.5, 0, 5000, 2, 0},
        {slots, 1, 60, 1234, 0, 0, 0},
        {slots, 1, 0, 0, 0, 0, 0},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        struct lab_doc *doc = lab_doc_open("x", &test_arena);
        course.simulated = i == 1;
        studies[4].refined = false;
        add_title(lab_arena_printf(&test_arena, "schedule %d", i));
        course_add_schedule(&course, &cases[i], doc);
        add_text(doc, "text", wide);
        if (i > 0)
            continue;
        add_text(doc, "text", narrow);
        add_text(doc, "text", vast);
        add_json(doc);
        studies[3].refined = false;
        studies[4].refined = true;
        add_text(doc, "text", wide);
        studies[3].refined = true;
    }
    course.simulated = false;
}

static const struct lab_campaign_status statuses[PHASES] = {
    {LAB_CAMPAIGN_DONE, NULL},
    {LAB_CAMPAIGN_STOPPED, "70% of runs succeeded, 90% asked"},
    {LAB_CAMPAIGN_RUNS, NULL},
    {LAB_CAMPAIGN_WAITS, "bisected hasn't ended"}};

static void add_phases(void) {
    struct lab_doc *doc = lab_doc_open("x", &test_arena);
    add_title("phases");
    course_add_phases(&course, statuses, doc);
    add_text(doc, "text", wide);
    add_json(doc);
    for (int i = 0; i < STUDIES; i++) /* all were measured: nothing is said of it */
        found[i].energy_runs = found[i].done;
    doc = lab_doc_open("x", &test_arena);
    course_add_phases(&course, statuses, doc);
    add_text(doc, "text", wide);
    given_campaign();
}

/* --- the report --- */

static struct lab_claim claim_of(const char *kind, const char *subject, double effect, double half,
                                 int n, enum lab_claim_verdict verdict) {
    struct lab_claim claim =
        lab_claim_named(lab_claim_none, kind, subject, "NUMA node 0", "throughput");
    claim.effect = effect;
    claim.low = effect - half;
    claim.high = effect + half;
    claim.confidence = 0.95;
    claim.n = n;
    claim.verdict = verdict;
    if (verdict == LAB_CLAIM_NO)
        claim.bound = fabs(effect) + half;
    return claim;
}

#define OPEN(subject, effect, half, n)                                                             \
    claim_of("numa.penalty", subject, effect, half, n, LAB_CLAIM_INCONCLUSIVE)

static const char *const two_points[] = {"a", "b", NULL};

/* Inconclusive claims, each of another kind: what would decide them. */
static int open_claims(struct lab_claim *claims) {
    int count = 0;
    claims[count++] = claim_of("numa.penalty", "GPU 0", -0.1, 0.01, 5, LAB_CLAIM_YES);
    claims[count++] = OPEN("GPU 1", -0.03, 0.04, 5);
    claims[count++] = OPEN("GPU 2", -0.01, 0.04, 5); /* bounded by 2% sooner than detected */
    claims[count++] = OPEN("GPU 3", 0, 0.04, 5);
    claims[count++] = OPEN("GPU 4", 0.001, 0.004, 5); /* within 2%: not open */
    claims[count++] = OPEN("GPU 5", 0.02, 0.03, 1);
    claims[count++] = OPEN("GPU 6", 0.02, 0, 5);
    claims[count++] = OPEN("GPU 7", 0.019, 0.9, 5); /* nobody runs so many */
    claims[count++] = OPEN("GPU 8", 1e-9, 5, 900000);
    claims[count] = OPEN("GPU 9", 0.05, 0.06, 5);
    claims[count].scope = two_points;
    claims[count++].scope_count = 2;
    claims[count] = OPEN("GPU 10", 0.05, 0.051, 5);
    claims[count].scope = two_points;
    claims[count++].scope_count = 1;
    claims[count] = OPEN("GPU 11", 0.01, 0.02, 5);
    claims[count++].difference = "K";
    claims[count] = OPEN("GPU 12", 0.01, 0.02, 5);
    claims[count++].reason = "its runs differ by more than the devices";
    claims[count] = OPEN("GPU 13", 0.05, 0.06, 5);
    claims[count++].needed = 9;
    claims[count] = OPEN("", 0.05, 0.06, 5);
    claims[count++].quantity = "";
    claims[count++] = lab_claim_named(lab_claim_none, "numa.penalty", "GPU 15", "", "throughput");
    claims[count] = lab_claim_named(lab_claim_none, "numa.penalty", "GPU 16", "", "bandwidth");
    claims[count++].unit = "GB/s"; /* not missed */
    return count;
}

static const char *const local_kinds[] = {"numa.local", NULL};
static const char *const penalty[] = {"numa.penalty", NULL};
static const int near_alone[] = {LOCAL}, near_and_fused[] = {LOCAL, FUSED};

static struct lab_study_run ran_on(const char *phase, const char *first, const char *second) {
    struct lab_study_rank *ranks = lab_arena_alloc(&test_arena, 2, sizeof *ranks);
    ranks[0].device = first;
    ranks[1].device = second;
    return (struct lab_study_run){.phase = phase, .ranks = ranks, .rank_count = second ? 2 : 1};
}

static void write_in(const char *folder, const char *name, const char *text) {
    ASSERT_OK(lab_file_write_atomic(lab_arena_printf(&test_arena, "%s/%s", folder, name), text,
                                    strlen(text), err));
}

enum { QUESTIONS = 9 };

static struct lab_campaign_question questions[QUESTIONS];
static struct course_answer answers[QUESTIONS];
static struct lab_analysis_result results[QUESTIONS];
static struct lab_claim claims[QUESTIONS][20];

static void ask(int number, const char *analysis, const char *const *kinds, const int *of,
                int of_count) {
    questions[number] = (struct lab_campaign_question){
        .name = lab_arena_printf(&test_arena, "q%d", number + 1),
        .ask = lab_arena_printf(&test_arena, "Question %d?", number + 1),
        .analysis = lab_analysis_find(analysis, NULL),
        .kinds = kinds,
        .phases = of,
        .phase_count = of_count};
    results[number].claims = claims[number];
    answers[number] = (struct course_answer){.question = &questions[number],
                                             .result = &results[number],
                                             .claim = claims[number],
                                             .answered = true,
                                             .run_count = 40,
                                             .point_count = 8,
                                             .run_s = NAN};
}

static struct course_answers given_answers(void) {
    memset(results, 0, sizeof results);
    static struct lab_study_table tables[2];
    static struct lab_study_run runs[2];
    const char *study = test_path("study");
    ASSERT_OK(lab_own_folder(study, err));
    ASSERT_OK(lab_own_folder(course.folder, err));
    write_in(study, "config.yaml",
             "experiment: {phases: [baseline, isolated, concurrent, isolated]}\n");
    write_in(course.folder, "machine.json",
             "{\"pci\": [{\"kind\": \"gpu\"}, {\"kind\": \"nic\"}, {\"kind\": \"gpu\"}, "
             "{\"kind\": \"gpu\"}, {\"kind\": \"gpu\"}]}");
    runs[0] = ran_on("baseline", "cuda:0", NULL);
    runs[1] = ran_on("baseline", "cuda:0", "cuda:2");
    tables[0] = (struct lab_study_table){.folder = study, .runs = runs, .run_count = 2};
    tables[1] = (struct lab_study_table){.folder = "/nowhere"};
    /* the analysis's own words; a question on the same, by a kind of claim */
    ask(0, "numa", penalty, near_alone, 1);
    results[0].claim_count = open_claims(claims[0]);
    results[0].answer = "GPU 0 loses 10%.";
    answers[0].tables = tables;
    answers[0].table_count = 2;
    answers[0].run_s = 2;
    answers[0].others = 1;
    ask(1, "numa", local_kinds, near_and_fused, 2);
    claims[1][0] = claims[0][0];
    claims[1][1] = claim_of("numa.local", "GPU 1", 0.2, 0.01, 5, LAB_CLAIM_YES);
    claims[1][2] = claim_of("numa.local", "GPU 2", 0.02, 0.03, 5, LAB_CLAIM_INCONCLUSIVE);
    claims[1][3] = OPEN("GPU 3", 0.02, 0.03, 5);
    results[1].claim_count = 4;
    results[1].answer = "not said";
    answers[1].claim = &claims[1][1];
    answers[1].same = true;
    answers[1].others = 2;
    answers[1].tables = tables;
    answers[1].table_count = 1;
    /* without a result, without a claim */
    ask(2, "transfer", NULL, near_alone, 1);
    answers[2].result = NULL;
    answers[2].claim = NULL;
    answers[2].answered = false;
    answers[2].failure = "all of its runs failed";
    ask(3, "transfer", NULL, near_alone, 1);
    results[3].untested = "no run";
    results[3].answer = "Batches were not tested: no run has another one.";
    answers[3].claim = NULL;
    answers[3].answered = false;
    ask(4, "transfer", NULL, near_and_fused, 2);
    answers[4].claim = NULL;
    answers[4].answered = false;
    /* of contention, nothing to recover; not tested, with a reason and without */
    ask(5, "contention", NULL, near_alone, 1);
    claims[5][0] = claim_of("contention.slowdown", "All", 0.001, 0.002, 5, LAB_CLAIM_NO);
    claims[5][1] = claim_of("contention.recovery", "All", 0.001, 0.002, 5, LAB_CLAIM_INCONCLUSIVE);
    results[5].claim_count = 2;
    answers[5].claim = &claims[5][1];
    for (int i = 6; i < 8; i++) {
        ask(i, "contention", NULL, near_alone, 1);
        claims[i][0] = claim_of("contention.slowdown", "All", 0.2, 0.1, 5, LAB_CLAIM_YES);
        claims[i][1] = lab_claim_named(lab_claim_none, "contention.recovery", "All", "", "time");
        claims[i][1].reason = i == 6 ? "one device has no neighbours" : NULL;
        results[i].claim_count = 2;
        answers[i].claim = &claims[i][1];
    }
    /* the headline without an answer of its own */
    ask(8, "numa", NULL, near_and_fused, 2);
    claims[8][0] = claim_of("numa.penalty", "GPU 1", -0.2, 0.01, 5, LAB_CLAIM_YES);
    results[8].claim_count = 1;
    course.campaign.questions = questions;
    course.campaign.question_count = QUESTIONS;
    return (struct course_answers){.items = answers, .count = QUESTIONS, .answered = 4};
}

static struct lab_advice *given_advice(void) {
    static struct lab_advice_line lines[3];
    static struct lab_claim choices[13];
    static struct lab_advice advice[4];
    lines[0] = (struct lab_advice_line){
        .plain = "numactl -N 0 PROGRAM",
        .torchrun = "one torchrun",
        .mpirun = "one mpirun",
        .srun = "one srun",
        .gain = claim_of("advise.bind", "GPU 0", 0.1, 0.01, 5, LAB_CLAIM_YES)};
    lines[1] = lines[0];
    lines[1].plain = NULL;
    lines[1].missing = "its CPUs are unknown";
    lines[2] = lines[0];
    for (int i = 0; i < COUNT(choices); i++)
        choices[i] = claim_of("transfer.batch", lab_arena_printf(&test_arena, "Batch %d", i), 0.3,
                              0.1, 5, LAB_CLAIM_YES);
    advice[0] = (struct lab_advice){.study = "one",
                                    .answer = "Bind GPU 0.",
                                    .lines = lines,
                                    .line_count = 1,
                                    .choices = choices,
                                    .choice_count = 1};
    advice[1] = (struct lab_advice){.study = "two", .lines = &lines[1], .line_count = 2};
    advice[1].all = (struct lab_advice_line){.torchrun = "all torchrun", .srun = "all srun"};
    advice[2] = (struct lab_advice){
        .study = "three", .answer = "Batch 1 to 12.", .choices = &choices[1], .choice_count = 12};
    advice[3] = (struct lab_advice){.study = "four", .answer = "Nothing."};
    return advice;
}

static void add_report(const char *title, const struct course_answers *found_answers,
                       const struct lab_campaign_status *states, bool whole) {
    struct lab_doc *doc = course_report(&course, found_answers, states);
    add_title(title);
    add_text(doc, "report.md", wide);
    if (!whole)
        return;
    add_text(doc, "text", wide);
    add_json(doc);
}

LAB_TEST(all_that_a_campaign_shows) {
    static const struct lab_campaign_status done[PHASES] = {{LAB_CAMPAIGN_DONE, NULL},
                                                            {LAB_CAMPAIGN_SKIPPED, "no budget"},
                                                            {LAB_CAMPAIGN_DONE, NULL},
                                                            {LAB_CAMPAIGN_BLOCKED, NULL}};
    lab_str_init(&all);
    given_campaign();
    add_schedules();
    add_phases();
    struct course_answers given = given_answers();
    given.advice = given_advice();
    given.advice_count = 4;
    add_report("report", &given, statuses, true);
    /* one that has ended, with less to say */
    course.simulated = true;
    course.machine_note = "the machine is not the one that it began on (unknown)";
    given.count = course.campaign.question_count = 1;
    given.answered = 1;
    results[0].claim_count = 1;
    answers[0].others = 0;
    given.advice_count = 1;
    given.advice = &given_advice()[3];
    add_report("report of one that has ended", &given, done, false);
    /* on slices nothing is said of whole GPUs */
    answers[0].others = 2;
    static struct lab_study_run slice;
    slice = ran_on("isolated", "cuda:0/2.1", NULL);
    static struct lab_study_table table;
    table = *answers[0].tables;
    table.runs = &slice;
    table.run_count = 1;
    answers[0].tables = &table;
    answers[0].table_count = 1;
    questions[0].kinds = NULL; /* of what nobody asked for the first rows */
    results[0].claim_count = open_claims(claims[0]);
    add_report("report of slices", &given, done, false);
    assert_golden(all.text, "campaign-doc.txt");
    lab_str_release(&all);
}
