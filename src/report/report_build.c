/*
 * report_build.c: which analyses a report has, in which order, and what they are given.
 */
#include "report/report_internal.h"

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "analysis/analysis_timeline.h"
#include "analysis/claims/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/yaml/yaml.h"
#include "load/recordings.h"
#include "load/study_file.h"
#include "version.h"

#include <limits.h>
#include <string.h>

#define TIMELINE "resource_timeline"

/* --- one analysis --- */

static int64_t now_ns(void) {
    return lab_clock_now(lab_clock_system());
}

void report_analyse(struct report_found *found, const struct lab_analysis *analysis,
                    const struct lab_analysis_input *input) {
    if (found->count == REPORT_ANALYSES_MOST)
        return;
    struct lab_page_analysis *item = &found->items[found->count++];
    struct lab_analysis_result *result = lab_arena_alloc(found->arena, 1, sizeof *result);
    struct lab_err err = LAB_ERR_INIT;
    *item = (struct lab_page_analysis){.name = analysis->name, .summary = analysis->summary};
    bool answers = found->count == 1; /* the study's question: never left out */
    if (!answers && found->deadline_ns && now_ns() > found->deadline_ns) {
        item->skipped = true;
        item->failure = lab_arena_printf(
            found->arena, "skipped for lack of time; 'gpulab analyze %s' runs it", analysis->name);
        return;
    }
    if (lab_analysis_run(analysis, NULL, input, found->arena, result, &err) == 0)
        item->result = result;
    else
        item->failure = lab_arena_strdup(found->arena, err.text);
}

/* Those of each analysis, and those of different analyses against each other. */
static const char *const *find_faults(const struct lab_page *page, struct lab_arena *arena) {
    const char *const *faults = NULL;
    int count;
    struct lab_claim *const *claims = lab_report_claims(page, arena, &count);
    for (int i = 0; i < page->analysis_count; i++)
        if (page->analyses[i].result)
            lab_analysis_add_notes(&faults, page->analyses[i].result->faults, "", arena);
    lab_claims_check(claims, count, true, &faults, arena);
    return faults;
}

static void analyse_by_name(struct report_found *found, const char *name,
                            const struct lab_analysis_input *input) {
    const struct lab_analysis *analysis = lab_analysis_find(name, NULL);
    if (analysis)
        report_analyse(found, analysis, input);
}

static bool has_chart(const struct report_found *found, const char *name) {
    for (int i = 0; i < found->count; i++)
        if (found->items[i].result &&
            LAB_FIND(found->items[i].result->charts, found->items[i].result->chart_count, name,
                     name) >= 0)
            return true;
    return false;
}

static bool some_is_simulated(const struct report_found *found) {
    for (int i = 0; i < found->count; i++)
        if (found->items[i].result && found->items[i].result->simulated)
            return true;
    return false;
}

/* The machine during the runs, where no analysis has drawn it already. */
static void add_timeline(struct report_found *found, struct lab_chart *chart) {
    if (found->count == REPORT_ANALYSES_MOST)
        return;
    lab_chart_fit_units(chart, found->arena);
    struct lab_analysis_result *result = lab_arena_alloc(found->arena, 1, sizeof *result);
    *result = (struct lab_analysis_result){.answer = "What the devices and the host did over time.",
                                           .part_key = "parts",
                                           .simulated = chart->simulated,
                                           .charts = chart,
                                           .chart_count = 1};
    found->items[found->count++] = (struct lab_page_analysis){
        .name = "resources", .summary = "what the machine did during the run", .result = result};
}

/* --- studies --- */

static int count_gpus(const struct lab_recording *recording) {
    int count = 0;
    for (int i = 0; i < recording->track_count; i++)
        count +=
            recording->tracks[i].entity.kind == LAB_ENTITY_GPU && recording->tracks[i].count > 0;
    return count;
}

/* Balance and memory, where a run had several GPUs. */
static void analyse_samples(struct report_found *found, const struct lab_study_table *study) {
    struct lab_labelled_recording *recordings =
        lab_arena_alloc(found->arena, (size_t)study->run_count + 1, sizeof *recordings);
    const struct lab_run **runs =
        lab_arena_alloc(found->arena, (size_t)study->run_count + 1, sizeof *runs);
    int count = 0, most = 0;
    for (int i = 0; i < study->run_count; i++)
        runs[i] = study->runs[i].run;
    const char **labels = lab_study_file_labels(runs, study->run_count, found->arena);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        if (!run->recording || !run->used)
            continue;
        const struct lab_recording *own =
            lab_recordings_of_run(run->recording, run->run, found->arena);
        int gpus = count_gpus(own);
        if (gpus == 0)
            continue;
        most = gpus > most ? gpus : most;
        const char *unit = run->run->rate_unit;
        recordings[count++] = (struct lab_labelled_recording){
            run->run->id, labels[i], own, run->rate, unit && *unit ? unit : NULL};
    }
    if (most < 2)
        return;
    struct lab_analysis_input input = {.recordings = recordings, .recording_count = count};
    analyse_by_name(found, "balance", &input);
    analyse_by_name(found, "memory", &input);
}

static const char *config_text(const char *config, const char *key, struct lab_arena *arena) {
    struct lab_value *tree;
    if (lab_yaml_parse(config, strlen(config), "config", LAB_YAML_LIMITS, arena, &tree, NULL) < 0)
        return NULL;
    return lab_value_get_text(lab_value_get(tree, "experiment"), key, NULL);
}

#define INTEREST_TO_OPEN 20 /* what has less to say is no answer to why a study was run */

static bool tells(const struct lab_page_analysis *item) {
    return item->result && item->result->part_count > 0 && !item->result->lacks;
}

/* Whether some point has runs to compare; of one run each there are values and no verdict. */
static bool has_repeats(const struct lab_study_table *study, struct lab_arena *arena) {
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    bool repeats = count == 0;
    for (int i = 0; i < count; i++)
        repeats |= points[i].count > 1;
    return repeats;
}

/* What says why nothing that was run answers the study's question; NULL = it is answered. */
static const struct lab_analysis_result *find_lack(const struct report_found *found,
                                                   const struct lab_study_table *study) {
    const char *name = study->answers ? study->answers[0] : NULL;
    const struct lab_analysis *analysis = name ? lab_analysis_find(name, NULL) : NULL;
    struct lab_analysis_input input = {.studies = study, .study_count = 1};
    int at = name ? LAB_FIND(found->items, found->count, name, name) : -1;
    const struct lab_page_analysis *item = at < 0 ? NULL : &found->items[at];
    if (item)
        return item->result && !tells(item) && item->result->untested ? item->result : NULL;
    struct lab_analysis_result *result = lab_arena_alloc(found->arena, 1, sizeof *result);
    if (!analysis || !analysis->interest || analysis->interest(study) != 0 ||
        lab_analysis_run(analysis, NULL, &input, found->arena, result, NULL) < 0)
        return NULL;
    return result->untested ? result : NULL;
}

/* "Not tested: each device …"; of a question with another half, what its other analysis found. */
static void answer_lack(struct report_found *found, const struct lab_study_table *study) {
    const struct lab_analysis_result *lack = find_lack(found, study);
    if (!lack)
        return;
    found->answer = lack->answer;
    found->untested = true;
    found->elsewhere = lack->elsewhere;
    found->further = lack->further;
    found->tests = lack->tests;
    for (int i = 0; i < found->count && lack->further; i++) {
        const struct lab_page_analysis *item = &found->items[i];
        if (!item->named || !tells(item) || !item->result->answer || item->result->untested)
            continue;
        found->answer = lab_arena_printf(found->arena, "%s %s", lack->answer, item->result->answer);
        return;
    }
}

static void analyse_study(struct report_found *found, const struct lab_study_view *view) {
    struct lab_study_table study, *whole = lab_arena_alloc(found->arena, 1, sizeof *whole);
    struct lab_analysis_choice chosen[REPORT_ANALYSES_MOST];
    struct lab_err err = LAB_ERR_INIT;
    unsigned needs = LAB_STUDY_WITH_SAMPLES;
    /* metrics are read once, with their curves: there may be millions of values */
    if (lab_study_file_table(view->file, LAB_STUDY_WITH_CURVES, &study, &err) < 0) {
        found->items[found->count++] = (struct lab_page_analysis){
            .name = "study", .failure = lab_arena_strdup(found->arena, err.text)};
        return;
    }
    int count = lab_analysis_choose(&study, REPORT_ANALYSES_MOST, chosen);
    for (int i = 0; i < count; i++)
        needs |= chosen[i].analysis->needs;
    /* what can't be read beside the runs is missing from the analyses that ask for it, no more */
    if (lab_study_file_table(view->file, needs, whole, &err) < 0) {
        lab_log(LAB_LOG_WARNING, "the report lacks samples and times of iterations: %s", err.text);
        *whole = study;
    }
    struct lab_analysis_input input = {.studies = whole, .study_count = 1};
    bool told = false;
    for (int i = 0; i < count; i++) {
        int before = found->count;
        bool named = chosen[i].answer < INT_MAX;
        report_analyse(found, chosen[i].analysis, &input);
        if (found->count > before)
            found->items[before].named = named;
        told = told || ((named || chosen[i].interest >= INTEREST_TO_OPEN) &&
                        found->count > before && tells(&found->items[before]));
    }
    answer_lack(found, whole);
    /* what programs reported says more than how long they took, also of one run each */
    bool reported = told && lab_str_equal(chosen[0].analysis->name, "metrics");
    if (!found->answer && (!told || (!reported && !has_repeats(whole, found->arena))))
        found->answer = report_runs_answer(
            whole, count > 0 && lab_str_equal(chosen[0].analysis->name, "crossover"), found->arena);
    found->advice = lab_arena_alloc(found->arena, 1, sizeof *found->advice);
    *found->advice = lab_advice_make(whole, NULL, found->arena);
    analyse_samples(found, whole);
    report_phase_files(found, whole);
    report_training_files(found, whole);
    struct lab_chart *chart = lab_arena_alloc(found->arena, 1, sizeof *chart);
    if (!has_chart(found, TIMELINE) && lab_timeline_of_study(whole, found->arena, chart))
        add_timeline(found, chart);
}

int lab_report_build_study(const struct lab_study_view *view,
                           const struct lab_report_request *request, struct lab_arena *arena,
                           struct lab_report_made *ret_made, struct lab_err *err) {
    struct report_found *found = lab_arena_alloc(arena, 1, sizeof *found);
    found->arena = arena;
    found->deadline_ns = request->limit_ns ? now_ns() + request->limit_ns : 0;
    analyse_study(found, view);
    *ret_made = (struct lab_report_made){
        .page = {.title = lab_study_info_title(&view->report),
                 .study = &view->report,
                 .question = config_text(view->study.config, "question", arena),
                 .advice = found->advice,
                 .answer = found->answer,
                 .untested = found->untested,
                 .elsewhere = found->elsewhere,
                 .further = found->further,
                 .tests = found->tests,
                 .source = view->report.folder,
                 .config = view->study.config,
                 .order = config_text(view->study.config, "order", arena),
                 .version = LAB_VERSION,
                 .simulated = view->report.simulated || some_is_simulated(found),
                 .analyses = found->items,
                 .analysis_count = found->count}};
    ret_made->page.warnings = find_faults(&ret_made->page, arena);
    return request->folder ? report_write(found, request, ret_made, err) : 0;
}

/* --- recordings --- */

static void add_timeline_of(struct report_found *found,
                            const struct lab_labelled_recording *recording) {
    struct lab_chart *chart = lab_arena_alloc(found->arena, 1, sizeof *chart);
    if (lab_timeline_make(&recording->recording, 1, NULL, 0, recording->recording->simulated,
                          found->arena, chart))
        add_timeline(found, chart);
}

static bool has_gpu(const struct lab_labelled_recording *recordings, int count, int wanted) {
    for (int i = 0; i < count; i++) {
        int gpus = 0;
        for (int t = 0; t < recordings[i].recording->track_count; t++)
            gpus += recordings[i].recording->tracks[t].entity.kind == LAB_ENTITY_GPU;
        if (gpus >= wanted)
            return true;
    }
    return false;
}

static bool has_several_labels(const struct lab_labelled_recording *recordings, int count) {
    for (int i = 1; i < count; i++)
        if (!lab_str_equal(recordings[i].label, recordings[0].label))
            return true;
    return false;
}

/* What was given: "runs/a and runs/b"; of one recording, its name. */
static const char *title_of(const struct lab_labelled_recording *recordings, int count,
                            const char *const *words, int word_count, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char *const named[] = {words[0], word_count > 1 ? words[1] : NULL, NULL};
    if (count == 1)
        return recordings[0].name;
    if (word_count > 2)
        return lab_arena_printf(arena, "%s and %d more", words[0], word_count - 1);
    lab_str_add_list(&text, named, "and");
    return lab_arena_strdup(arena, text.text);
}

int lab_report_build_recordings(const char *const *words, int count,
                                const struct lab_report_request *request, struct lab_arena *arena,
                                struct lab_report_made *ret_made, struct lab_err *err) {
    struct report_found *found = lab_arena_alloc(arena, 1, sizeof *found);
    struct lab_recording_source *sources;
    struct lab_labelled_recording *recordings;
    int status = 0, word_count = count;
    found->arena = arena;
    found->deadline_ns = request->limit_ns ? now_ns() + request->limit_ns : 0;
    if (lab_recordings_find(words, count, arena, &sources, &count, err) < 0 ||
        lab_recordings_read(sources, count, arena, &recordings, &count, &status, err) < 0)
        return -1;
    struct lab_analysis_input input = {.recordings = recordings, .recording_count = count};
    bool several = has_several_labels(recordings, count), gpu = has_gpu(recordings, count, 1);
    if (several && gpu)
        analyse_by_name(found, "memory", &input);
    if (has_gpu(recordings, count, 2))
        analyse_by_name(found, "balance", &input);
    if (several && gpu)
        analyse_by_name(found, "compare", &input);
    else if (gpu)
        analyse_by_name(found, "memory", &input);
    analyse_by_name(found, "summary", &input);
    if (count == 1 && !has_chart(found, TIMELINE))
        add_timeline_of(found, &recordings[0]);
    *ret_made = (struct lab_report_made){
        .page = {.title = title_of(recordings, count, words, word_count, arena),
                 .source = words[0],
                 .version = LAB_VERSION,
                 .simulated = some_is_simulated(found),
                 .analyses = found->items,
                 .analysis_count = found->count}};
    return request->folder ? report_write(found, request, ret_made, err) : 0;
}
