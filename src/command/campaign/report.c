/*
 * report.c: one report over all phases: the questions in order, each with its claim, chart and
 * evidence; what to do; what remains uncertain and what it would take to know; the phases.
 */
#include "command/campaign/answers.h"

#include "analysis/analysis_build.h"
#include "base/file/out_dir.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "plot/plot.h"
#include "version.h"

#include <math.h>
#include <string.h>

#define WIDTH       860 /* of a chart */
#define WIDTH_PHONE 420
#define CLAIMS_MOST 12 /* of a question's table */
#define OPEN_MOST   20
#define NEGLIGIBLE  0.02 /* the difference that runs are counted for */
#define PAGE_BYTES  2000000

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

/* Without the verdict, which has a column or a section of its own. */
static const char *effect_text(const struct lab_claim *claim, struct lab_arena *arena) {
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE && !claim->unit && !claim->difference &&
                !isnan(claim->low);
    return open ? lab_claim_effect(claim, arena) : lab_claim_short(claim, arena);
}

static void add_claim_row(struct lab_doc *doc, const struct lab_claim *claim) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const char *reference = claim->reference ? claim->reference : "";
    lab_doc_cell(doc, "%s", lab_claim_subject(claim, arena));
    lab_doc_cell(doc, "%s", effect_text(claim, arena));
    lab_doc_cell(doc, "%s",
                 claim->verdict == LAB_CLAIM_NOT_TESTED ? "not tested"
                                                        : lab_claim_verdict_name(claim->verdict));
    lab_doc_figure(doc, claim->n);
    lab_doc_cell(doc, "%s%s%s", claim->quantity ? claim->quantity : "",
                 *reference ? ", compared with " : "", reference);
}

/* Where the question names kinds, claims of these. */
static bool is_asked(const struct lab_campaign_question *question, const struct lab_claim *claim) {
    return !question->kinds || lab_str_find(claim->kind, question->kinds) >= 0;
}

static void add_claims(struct lab_doc *doc, const struct course_answer *answer) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Subject", LAB_UNIT_TEXT},  {NULL, "Effect", LAB_UNIT_TEXT},
        {NULL, "Verdict", LAB_UNIT_TEXT},  {NULL, "Runs", LAB_UNIT_COUNT},
        {NULL, "Quantity", LAB_UNIT_TEXT},
    };
    lab_doc_only(doc, PAGES);
    const struct lab_analysis_result *result = answer->result;
    int count = 0;
    if (!answer->claim)
        return;
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int round = 0; round < 2; round++) /* what was asked first */
        for (int c = 0; c < result->claim_count; c++)
            if (is_asked(answer->question, &result->claims[c]) == (round == 0) &&
                (round == 0 || !answer->same) && count++ < CLAIMS_MOST)
                add_claim_row(doc, &result->claims[c]);
    if (count > CLAIMS_MOST)
        lab_doc_text(doc, LAB_DOC_FAINT, "%d more claims: gpulab campaign report --json",
                     count - CLAIMS_MOST);
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
        lab_str_printf(&text, "%s[%s](../%s/)", i ? ", " : "",
                       lab_doc_escape(phase->name, course->arena), phase->name);
    }
    lab_str_add(&text, ".");
    if (answer->others)
        lab_str_printf(&text, " Left out: %d studies of another machine.", answer->others);
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
static void add_answer(const struct course *course, const struct course_answer *answer,
                       struct lab_doc *doc) {
    const struct lab_analysis_result *result = answer->result;
    const struct lab_claim *claim = answer->claim;
    if (!result)
        lab_doc_text(doc, LAB_DOC_NOTE, "Not answered: %s.", answer->failure);
    else if (!claim && result->untested && result->answer)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", result->answer); /* with the reason */
    else if (!claim)
        lab_doc_text(doc, LAB_DOC_NOTE, "Not answered: no run shows it.");
    else if (claim == result->claims && result->answer)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s", result->answer);
    else if (claim->subject && *claim->subject)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s.", lab_claim_sentence(claim, course->arena));
    else
        lab_doc_text(doc, LAB_DOC_SAYS, "Not tested.");
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
    add_answer(course, answer, doc);
    if (result) {
        if (!answer->same)
            add_chart(doc, result);
        add_claims(doc, answer);
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

/* --- what remains uncertain --- */

/* "4 more runs of each of 48 points, about 40 s", or what else would decide it. */
static const char *cost_of(const struct course_answer *answer, const struct lab_claim *claim,
                           struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int more = claim->needed - claim->n;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return "no run tests it";
    const char *next = lab_claim_next(claim, arena);
    if (claim->needed <= 0 || more <= 0)
        return *next ? next : "more runs, number unknown";
    lab_str_printf(&text, "%d more run%s of each of %d points", more, more == 1 ? "" : "s",
                   answer->point_count);
    if (!isnan(answer->run_s)) {
        lab_str_add(&text, ", about ");
        lab_str_add_duration(&text, answer->run_s * more * answer->point_count,
                             LAB_DURATION_ROUNDED);
    }
    return lab_arena_strdup(arena, text.text);
}

/* Where all of the interval is within what is asked for, no more is to be known. */
static bool is_open(const struct lab_claim *claim) {
    bool small = !claim->unit && !claim->difference && fabs(claim->low) <= NEGLIGIBLE &&
                 fabs(claim->high) <= NEGLIGIBLE;
    return (claim->verdict == LAB_CLAIM_INCONCLUSIVE && !small) ||
           (claim->verdict == LAB_CLAIM_NOT_TESTED && !claim->unit);
}

static void add_uncertain(const struct course *course, const struct course_answers *answers,
                          struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {"question", "Question"}, {"subject", "Subject"}, {"reference", "Compared with"},
        {"effect", "Effect"},     {"cost", "To know it"},
    };
    int open = 0;
    lab_doc_only(doc, PAGES | LAB_DOC_PROGRAMS);
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = "What remains uncertain", .id = "uncertain"});
    for (int i = 0; i < answers->count; i++)
        for (int c = 0; answers->items[i].result && !answers->items[i].same &&
                        c < answers->items[i].result->claim_count;
             c++)
            open += is_open(&answers->items[i].result->claims[c]);
    if (open)
        lab_doc_rows(doc, "uncertain", NULL, columns, sizeof columns / sizeof *columns);
    else
        lab_doc_text(doc, LAB_DOC_PLAIN, "Every comparison has a verdict.");
    for (int i = 0, shown = 0; i < answers->count; i++) {
        const struct course_answer *answer = &answers->items[i];
        for (int c = 0; answer->result && c < answer->result->claim_count; c++) {
            const struct lab_claim *claim = &answer->result->claims[c];
            if (answer->same || !is_open(claim) || shown++ >= OPEN_MOST)
                continue;
            lab_doc_cell(doc, "%s", answer->question->name);
            lab_doc_cell(doc, "%s", lab_claim_subject(claim, course->arena));
            lab_doc_cell(doc, "%s", claim->reference ? claim->reference : "");
            lab_doc_cell(doc, "%s", effect_text(claim, course->arena));
            lab_doc_cell(doc, "%s", cost_of(answer, claim, course->arena));
        }
    }
    if (open > OPEN_MOST)
        lab_doc_text(doc, LAB_DOC_FAINT, "%d more.", open - OPEN_MOST);
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
    lab_doc_text(doc, LAB_DOC_ANSWER, "%d of %d questions answered by %lld runs in %d phases%s.",
                 answers->answered, answers->count, (long long)done, course->campaign.phase_count,
                 course->simulated ? " (simulated)" : "");
    if (course->machine_note)
        lab_doc_text(doc, LAB_DOC_WARNING, "%s.", course->machine_note);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = "questions"});
    for (int i = 0; i < answers->count; i++)
        add_question(course, &answers->items[i], i + 1, doc);
    lab_doc_end(doc);
    add_practices(answers, doc);
    add_uncertain(course, answers, doc);
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
