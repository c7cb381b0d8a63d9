/*
 * report.c: one report over all phases: the questions in order, each with its claim, chart and
 * evidence; what to do; the phases.
 */
#include "command/campaign/answers.h"

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "analysis/analysis_words.h"
#include "base/file/file.h"
#include "base/file/out_dir.h"
#include "base/json.h"
#include "base/list.h"
#include "base/yaml/yaml.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "plot/plot.h"
#include "version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH       860 /* of a chart */
#define WIDTH_PHONE 420
#define CLAIMS_MOST 12 /* of a question's table */
#define PAGE_BYTES  2000000
#define RECOVERY    "contention.recovery" /* of what the analysis\'s first claim has lost */

#define PAGES (LAB_DOC_SCREEN | LAB_DOC_PAPER)

/* --- charts --- */

static void draw(const void *state, bool narrow, struct lab_str *out) {
    lab_plot_svg(state,
                 (struct lab_plot_view){
                     .width = narrow ? WIDTH_PHONE : WIDTH, .untitled = true, .inlined = true},
                 out);
}

static void add_chart(struct lab_doc *doc, const struct lab_analysis_result *result) {
    if (result->chart_count == 0 || !lab_chart_has_data(&result->charts[0]))
        return;
    struct lab_chart *chart = lab_arena_copy(lab_doc_arena(doc), result->charts, 1, sizeof *chart);
    chart->simulated = false; /* the page has a banner */
    lab_doc_only(doc, LAB_DOC_SCREEN);
    lab_doc_chart(doc, (struct lab_doc_chart){
                           .name = chart->name,
                           .title = chart->title,
                           .caption = lab_plot_caption(
                               chart, (struct lab_plot_view){.width = WIDTH}, lab_doc_arena(doc)),
                           .draw = draw,
                           .state = chart});
}

/* --- a question --- */

static void add_claim_row(struct lab_doc *doc, const struct lab_claim *claim) {
    struct lab_arena *arena = lab_doc_arena(doc);
    bool tested = claim->verdict != LAB_CLAIM_NOT_TESTED;
    lab_doc_cell(doc, "%s", lab_claim_subject(claim, arena));
    lab_doc_cell(doc, "%s", tested ? course_claim_effect(claim, arena) : "–");
    lab_doc_cell(doc, "%s", tested ? lab_claim_verdict_name(claim->verdict) : "not tested");
    lab_doc_figure(doc, claim->n);
    lab_doc_cell(doc, "%s", course_claim_quantity(claim, arena));
}

static void add_claims(const struct course *course, const struct course_answer *answer,
                       struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Subject", LAB_UNIT_TEXT},  {NULL, "Effect", LAB_UNIT_TEXT},
        {NULL, "Verdict", LAB_UNIT_TEXT},  {NULL, "Runs", LAB_UNIT_COUNT},
        {NULL, "Quantity", LAB_UNIT_TEXT},
    };
    lab_doc_only(doc, PAGES);
    const struct lab_analysis_result *result = answer->result;
    int count = 0;
    if (!answer->claim || !answer->claim->subject || !*answer->claim->subject)
        return;
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int round = 0; round < 2; round++) /* what was asked first */
        for (int c = 0; c < result->claim_count; c++)
            if (course_is_asked(answer->question, &result->claims[c]) == (round == 0) &&
                (round == 0 || !answer->same) && count++ < CLAIMS_MOST)
                add_claim_row(doc, &result->claims[c]);
    if (count > CLAIMS_MOST)
        lab_doc_text(doc, LAB_DOC_FAINT, "%d more claims: gpulab campaign report %s --json",
                     count - CLAIMS_MOST, course->folder);
}

/* " ([numa_study](../locality/numa_study/…/report/index.html))": the pages of studies that ran. */
static void add_links(const struct course *course, const struct lab_campaign_phase *phase,
                      struct lab_str *text) {
    size_t length = strlen(course->folder);
    int count = 0;
    for (int s = 0; s < phase->study_count; s++) {
        const char *folder = course->studies[phase->first_study + s].folder;
        if (!folder || strncmp(folder, course->folder, length) != 0)
            continue;
        lab_str_printf(text, "%s[%s](..%s/report/index.html)", count++ ? ", " : " (",
                       lab_doc_escape(phase->studies[s].label, course->arena), folder + length);
    }
    lab_str_add(text, count ? ")" : "");
}

/* Which runs it rests on. */
static void add_evidence(const struct course *course, const struct course_answer *answer,
                         struct lab_doc *doc) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "From %d runs of %d points. Analysis: `%s`. Phases: ", answer->run_count,
                   answer->point_count, answer->question->analysis->name);
    for (int i = 0; i < answer->question->phase_count; i++) {
        const struct lab_campaign_phase *phase =
            &course->campaign.phases[answer->question->phases[i]];
        lab_str_printf(&text, "%s%s", i ? ", " : "", lab_doc_escape(phase->name, course->arena));
        add_links(course, phase, &text);
    }
    lab_str_add(&text, ".");
    if (answer->others)
        lab_str_printf(&text, " Left out: %d %s of another machine.", answer->others,
                       answer->others == 1 ? "study" : "studies");
    lab_doc_only(doc, PAGES);
    lab_doc_marked(doc, LAB_DOC_FAINT, "%s", text.text);
}

static void add_question_data(const struct course *course, const struct course_answer *answer,
                              struct lab_doc *doc) {
    struct lab_arena *arena = course->arena;
    struct lab_value *map = lab_value_map(arena), *claims = lab_value_list(arena);
    lab_value_set_string(arena, map, "name", answer->question->name);
    lab_value_set_string(arena, map, "ask", answer->question->ask);
    lab_value_set_string(arena, map, "analysis", answer->question->analysis->name);
    lab_value_set_bool(arena, map, "answered", answer->answered);
    lab_value_set_string(arena, map, "answer", answer->result ? answer->result->answer : NULL);
    lab_value_set_string(arena, map, "failure", answer->failure);
    lab_value_set(arena, map, "claim",
                  answer->claim ? lab_claim_value(answer->claim, arena) : lab_value_null(arena));
    lab_value_set_int(arena, map, "runs", answer->run_count);
    for (int c = 0; answer->result && c < answer->result->claim_count; c++)
        lab_value_append(arena, claims, lab_claim_value(&answer->result->claims[c], arena));
    lab_value_set(arena, map, "claims", claims);
    lab_doc_data(doc, NULL, map);
}

/* The analysis's own words where the claim is its headline; else the claim's. */
static const char *answer_words(const struct course_answer *answer, struct lab_arena *arena,
                                enum lab_doc_tone *ret_tone) {
    const struct lab_analysis_result *result = answer->result;
    const struct lab_claim *claim = answer->claim;
    *ret_tone = LAB_DOC_NOTE;
    if (!result)
        return lab_arena_printf(arena, "Not answered: %s.", answer->failure);
    if (!claim && result->untested && result->answer)
        return result->answer; /* with the reason */
    if (!claim)
        return "Not answered: no run shows it.";
    *ret_tone = LAB_DOC_SAYS;
    if (claim == result->claims && result->answer)
        return result->answer;
    if (lab_str_equal(claim->kind, RECOVERY) && result->claims[0].verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, "Nothing to recover. %s.",
                                lab_claim_sentence(&result->claims[0], arena));
    if (claim->verdict != LAB_CLAIM_NOT_TESTED)
        return lab_arena_printf(arena, "%s.",
                                lab_words_capital(lab_claim_sentence(claim, arena), arena));
    *ret_tone = LAB_DOC_NOTE;
    return lab_arena_printf(arena, "Not tested: %s.",
                            claim->reason ? claim->reason : "no run shows it");
}

/* The first sentences, up to one with a value's conditions: "Bind GPU 0 to NUMA node 0. NUMA node
 * 2: 12.3% lower throughput than NUMA node 0 (95% CI …)." */
static const char *first_words(const char *words, struct lab_arena *arena) {
    size_t length = 0;
    do {
        const char *end = strstr(words + length, ". ");
        length = end ? (size_t)(end - words) + 1 : strlen(words);
    } while (words[length] && !memchr(words, '(', length));
    return lab_arena_strndup(arena, words, length);
}

/* All answers on the first screen of a page, each with the way to its evidence. */
static void add_short_answers(const struct course *course, const struct course_answers *answers,
                              struct lab_doc *doc) {
    lab_doc_only(doc, PAGES);
    for (int i = 0; i < answers->count && answers->count > 1; i++) {
        enum lab_doc_tone tone;
        const struct course_answer *answer = &answers->items[i];
        const char *words = first_words(answer_words(answer, course->arena, &tone), course->arena);
        lab_doc_marked(doc, LAB_DOC_ITEM, "[%d. %s](#%s) %s", i + 1,
                       lab_doc_escape(answer->question->name, course->arena),
                       answer->question->name, lab_doc_escape(words, course->arena));
    }
}

static bool has_phase(const struct course_answer *answer, const char *name) {
    for (int t = 0; t < answer->table_count; t++)
        for (int r = 0; r < answer->tables[t].run_count; r++)
            if (lab_str_equal(answer->tables[t].runs[r].phase, name))
                return true;
    return false;
}

/* Phases of a study's own config without a run: these devices can't have them. */
static void add_left_out(const struct course *course, const struct course_answer *answer,
                         struct lab_doc *doc) {
    const char **names = NULL;
    int count = 0;
    LAB_AUTO(str, list);
    for (int t = 0; t < answer->table_count; t++) {
        char *text;
        size_t length;
        struct lab_value *tree;
        const char *path =
            lab_arena_printf(course->arena, "%s/config.yaml", answer->tables[t].folder);
        if (lab_file_read(path, PAGE_BYTES, course->arena, &text, &length, NULL) < 0 ||
            lab_yaml_parse(text, length, path, LAB_YAML_LIMITS, course->arena, &tree, NULL) < 0)
            continue;
        const struct lab_value *experiment = lab_value_get(tree, "experiment");
        const struct lab_value *phases = experiment ? lab_value_get(experiment, "phases") : NULL;
        for (int i = 0; phases && phases->type == LAB_VALUE_LIST && i < phases->count; i++) {
            const char *name = lab_value_as_text(phases->items[i], "");
            if (*name && !has_phase(answer, name) && lab_list_find_text(names, count, name) < 0)
                LAB_ADD(names, count, course->arena) = name;
        }
    }
    if (count == 0)
        return;
    LAB_ADD(names, count, course->arena) = NULL;
    lab_str_add_list(&list, names, "and");
    lab_doc_text(doc, LAB_DOC_NOTE, "Phases not run, since these devices don't have them: %s.",
                 list.text);
}

/* Whether no question before it is about the same phase. */
static bool is_first_of(const struct course_answer *answer, int number) {
    for (int i = 1; i < number; i++)
        if (answer[-i].question->phases[0] == answer->question->phases[0])
            return false;
    return true;
}

static void add_question(const struct course *course, const struct course_answer *answer,
                         int number, struct lab_doc *doc) {
    const struct lab_analysis_result *result = answer->result;
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = lab_arena_printf(course->arena, "%d. %s",
                                                                     number, answer->question->ask),
                                           .name = answer->question->name,
                                           .id = answer->question->name});
    add_question_data(course, answer, doc);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    enum lab_doc_tone tone;
    const char *words = answer_words(answer, course->arena, &tone);
    lab_doc_text(doc, tone, "%s", words);
    if (result) {
        if (is_first_of(answer, number))
            add_left_out(course, answer, doc);
        if (!answer->same)
            add_chart(doc, result);
        add_claims(course, answer, doc);
        add_evidence(course, answer, doc);
    }
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_end(doc);
}

/* --- what to do --- */

static void add_lines(const struct lab_advice *advice, struct lab_doc *doc) {
    const struct lab_advice_line *all = advice->line_count > 1 ? &advice->all : advice->lines;
    const char *const lines[] = {all->torchrun, all->mpirun, all->srun};
    for (int i = 0; i < 3; i++)
        if (lines[i])
            lab_doc_command(doc, lines[i], NULL);
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].plain)
            lab_doc_command(doc, advice->lines[i].plain,
                            lab_claim_short(&advice->lines[i].gain, lab_doc_arena(doc)));
    if (advice->lines[0].missing)
        lab_doc_text(doc, LAB_DOC_PLAIN, "No line to paste: %s.", advice->lines[0].missing);
}

static void add_practices(const struct course_answers *answers, struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Setting or GPU", LAB_UNIT_TEXT}, {NULL, "Change", LAB_UNIT_TEXT},
        {NULL, "Verdict", LAB_UNIT_TEXT},        {NULL, "Runs", LAB_UNIT_COUNT},
        {NULL, "Quantity", LAB_UNIT_TEXT},
    };
    int choices = 0, lines = 0;
    lab_doc_only(doc, PAGES);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Best practices", .id = "practices"});
    for (int i = 0; i < answers->advice_count; i++) {
        if (answers->advice[i].answer)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s", answers->advice[i].study,
                         answers->advice[i].answer);
        choices += answers->advice[i].choice_count;
        lines += answers->advice[i].line_count;
    }
    for (int i = 0; i < answers->advice_count; i++)
        if (answers->advice[i].line_count > 0)
            add_lines(&answers->advice[i], doc);
    if (choices > 0)
        lab_doc_rows(doc, NULL, "Settings", columns, sizeof columns / sizeof *columns);
    for (int i = 0, shown = 0; i < answers->advice_count; i++)
        for (int c = 0; c < answers->advice[i].choice_count && shown < CLAIMS_MOST; c++, shown++)
            add_claim_row(doc, &answers->advice[i].choices[c]);
    if (choices + lines == 0)
        lab_doc_text(doc, LAB_DOC_PLAIN, "No setting was measured to gain.");
    lab_doc_end(doc);
}

/* --- phases --- */

static void add_expectations(const struct course *course, struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {"phase", "Phase"}, {"expected", "Expected"}, {"found", "Found"}, {"why", "Evidence"}};
    static const char *const words[] = {"no", "yes", "undecided"};
    const struct lab_campaign *campaign = &course->campaign;
    struct lab_campaign_known known = course_known(course);
    int count = 0;
    for (int p = 0; p < campaign->phase_count; p++)
        count += campaign->phases[p].expectation_count;
    if (count == 0)
        return;
    lab_doc_rows(doc, "expectations", "Expectations", columns, 4);
    for (int p = 0; p < campaign->phase_count; p++)
        for (int i = 0; i < campaign->phases[p].expectation_count; i++) {
            const struct lab_campaign_expectation *own = &campaign->phases[p].expectations[i];
            const char *why;
            enum lab_campaign_truth truth =
                lab_campaign_judge(campaign, own->condition, p, &known, course->arena, &why);
            lab_doc_cell(doc, "%s", campaign->phases[p].name);
            lab_doc_cell(doc, "%s", own->text);
            lab_doc_cell(doc, "%s", words[truth]);
            lab_doc_cell(doc, "%s", why);
        }
}

/* --- what it doesn't cover --- */

static int count_left(const struct course *course, const struct lab_campaign_status *statuses) {
    int left = 0;
    for (int p = 0; p < course->campaign.phase_count; p++)
        left += statuses[p].state < LAB_CAMPAIGN_DONE;
    return left;
}

/* GPUs of the machine, by the file next to the campaign's; 0 = it lists none. */
static int count_gpus(const struct course *course) {
    char *text;
    size_t length;
    struct lab_value *machine;
    int gpus = 0;
    const char *path = lab_arena_printf(course->arena, "%s/machine.json", course->folder);
    if (lab_file_read(path, PAGE_BYTES, course->arena, &text, &length, NULL) < 0 ||
        lab_json_parse(text, length, path, course->arena, &machine, NULL) < 0)
        return 0;
    const struct lab_value *pci = lab_value_get(machine, "pci");
    for (int i = 0; pci && pci->type == LAB_VALUE_LIST && i < pci->count; i++)
        gpus += lab_str_equal(lab_value_get_text(pci->items[i], "kind", ""), "gpu");
    return gpus;
}

/* "Tested: GPUs 0–3. Not tested: GPUs 4–9.", where a machine has more than ran. */
static void add_untested(const struct course *course, const struct course_answers *answers,
                         struct lab_doc *doc) {
    struct lab_arena *arena = course->arena;
    int gpus = count_gpus(course), counts[2] = {0};
    bool *ran = lab_arena_alloc(arena, (size_t)gpus + 1, sizeof *ran);
    const char **names[2] = {NULL, NULL}; /* not tested, tested */
    for (int i = 0; i < answers->count; i++)
        for (int t = 0; t < answers->items[i].table_count; t++)
            for (int r = 0; r < answers->items[i].tables[t].run_count; r++) {
                const struct lab_study_run *run = &answers->items[i].tables[t].runs[r];
                for (int k = 0; k < run->rank_count; k++) {
                    const char *title = lab_study_device_title(run->ranks[k].device, arena);
                    int number =
                        lab_str_starts(title, "GPU ") ? (int)strtol(title + 4, NULL, 10) : gpus;
                    if (strspn(title + 4, "0123456789") != strlen(title + 4) || number >= gpus)
                        return; /* slices, or other devices than the machine's */
                    ran[number] = true;
                }
            }
    for (int g = 0; g < gpus; g++)
        LAB_ADD(names[ran[g]], counts[ran[g]], arena) = lab_arena_printf(arena, "GPU %d", g);
    if (counts[0] > 0 && counts[1] > 0)
        lab_doc_text(doc, LAB_DOC_PLAIN, "Tested: %s. Not tested: %s.",
                     lab_words_devices(names[1], counts[1], arena),
                     lab_words_devices(names[0], counts[0], arena));
}

/* --- all --- */

struct lab_doc *course_report(const struct course *course, const struct course_answers *answers,
                              const struct lab_campaign_status *statuses) {
    struct lab_doc *doc = lab_doc_open(course->campaign.name, course->arena);
    int64_t done = 0;
    for (int i = 0; i < course->campaign.study_count; i++)
        done += course->found[i].done;
    lab_doc_set_simulated(doc, course->simulated);
    lab_doc_set_page(doc, (struct lab_doc_page){.version = LAB_VERSION,
                                                .source = course->folder,
                                                .bytes_most = PAGE_BYTES});
    lab_doc_only(doc, PAGES);
    lab_doc_text(doc, LAB_DOC_QUESTION, "%s · %s", course->campaign.name, course->campaign.title);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    int left = count_left(course, statuses);
    lab_doc_text(doc, LAB_DOC_ANSWER, "%s%d of %d questions answered by %lld runs in %d phases%s.",
                 left ? "Unfinished: " : "", answers->answered, answers->count, (long long)done,
                 course->campaign.phase_count, course->simulated ? " (simulated)" : "");
    if (left)
        lab_doc_text(doc, LAB_DOC_WARNING,
                     "%d of %d phases are not done: answers may change. The command that began it "
                     "continues it.",
                     left, course->campaign.phase_count);
    for (int p = 0; p < course->campaign.phase_count; p++)
        if (statuses[p].state == LAB_CAMPAIGN_STOPPED)
            lab_doc_text(doc, LAB_DOC_WARNING, "Phase %s was stopped: %s.",
                         course->campaign.phases[p].name, statuses[p].why);
    add_untested(course, answers, doc);
    bool left_out = false;
    for (int i = 0; i < answers->count; i++)
        left_out |= answers->items[i].others > 0;
    if (course->machine_note)
        lab_doc_text(doc, LAB_DOC_WARNING, "%s%s.", course->machine_note,
                     left_out ? "; answers leave out what ran before" : "");
    add_short_answers(course, answers, doc);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = "questions"});
    for (int i = 0; i < answers->count; i++)
        add_question(course, &answers->items[i], i + 1, doc);
    lab_doc_end(doc);
    add_practices(answers, doc);
    lab_doc_only(doc, PAGES | LAB_DOC_PROGRAMS);
    course_add_others(course, doc);
    course_add_uncertain(course, answers, doc);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Phases", .id = "phases"});
    course_add_phases(course, statuses, doc);
    lab_doc_only(doc, PAGES | LAB_DOC_PROGRAMS);
    add_expectations(course, doc);
    lab_doc_only(doc, PAGES);
    lab_doc_marked(doc, LAB_DOC_FAINT,
                   "[campaign.yaml](../campaign.yaml) · [machine.json](../machine.json) · "
                   "[report.md](report.md) · gpulab %s",
                   LAB_VERSION);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_end(doc);
    return doc;
}

int course_report_write(const struct course *course, const struct lab_doc *doc,
                        const char **ret_page, struct lab_err *err) {
    static const char *const names[] = {"report.md", "index.html"};
    struct lab_out_dir_spec spec = {
        .path = lab_arena_printf(course->arena, "%s/report", course->folder),
        .owner = "campaign.json"};
    struct lab_out_dir *dir;
    if (lab_out_dir_open(&spec, &dir, err) < 0)
        return -1;
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++) {
        LAB_AUTO(str, text);
        lab_doc_write(doc, names[i], (struct lab_style){0}, &text);
        result = lab_out_dir_add(dir, names[i], text.text, text.length, err);
    }
    if (result == 0)
        result = lab_out_dir_commit(dir, err);
    lab_out_dir_close(dir);
    *ret_page = lab_study_view_shorten(lab_arena_printf(course->arena, "%s/index.html", spec.path),
                                       course->arena);
    return result;
}
