/* uncertain.c: what a campaign leaves uncertain, and what it would take to know. */
#include "command/campaign/answers.h"

#include "doc/doc.h"

#include <math.h>

#define OPEN_MOST    20
#define OPEN_UNASKED 5    /* rows of a question that it doesn't ask for by name */
#define NEGLIGIBLE   0.02 /* the difference that runs are counted for */
#define DETECTS      1.43 /* (1.960 + 0.842) / 1.960: 80% power to detect, by an interval */

/* --- a claim in words --- */

const char *course_claim_effect(const struct lab_claim *claim, struct lab_arena *arena) {
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE && !claim->unit && !claim->difference &&
                !isnan(claim->low);
    return open ? lab_claim_effect(claim, arena) : lab_claim_short(claim, arena);
}

const char *course_claim_quantity(const struct lab_claim *claim, struct lab_arena *arena) {
    const char *what = claim->quantity ? claim->quantity : "";
    const char *reference = claim->reference ? claim->reference : "";
    return lab_arena_printf(arena, "%s%s%s%s", what, *what && *reference ? ", " : "",
                            *reference ? "compared with " : "", reference);
}

bool course_is_asked(const struct lab_campaign_question *question, const struct lab_claim *claim) {
    return !question->kinds || lab_str_find(claim->kind, question->kinds) >= 0;
}

/* --- what would decide it --- */

/* Runs of a point that decide it: those that detect an effect as large as this one, or bound it
 * by NEGLIGIBLE, whatever is fewer; an interval shrinks with their square root. 0 = unknown. */
static int runs_wanted(const struct lab_claim *claim) {
    double half = (claim->high - claim->low) / 2, effect = fabs(claim->effect);
    int planned = lab_claim_runs(claim);
    planned = planned > claim->n && planned < LAB_CLAIM_RUNS_LEAST ? LAB_CLAIM_RUNS_LEAST : planned;
    if (planned > claim->n || claim->n < 2 || !(half > 0))
        return planned > claim->n ? planned : 0;
    double factor = effect > 0 ? DETECTS * half / effect : INFINITY;
    if (!claim->unit && !claim->difference && effect < NEGLIGIBLE)
        factor = fmin(factor, half / (NEGLIGIBLE - effect));
    double wanted = fmax(claim->n + 1, ceil(claim->n * factor * factor));
    return wanted < 1e6 ? (int)wanted : 0;
}

/* "4 more runs of each of 2 points, about 40 s", or what else would decide it. */
static const char *cost_of(const struct course_answer *answer, const struct lab_claim *claim,
                           struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int wanted = runs_wanted(claim), more = wanted - claim->n;
    int points = claim->scope_count > 0 ? claim->scope_count : answer->point_count;
    if (claim->reason)
        return claim->reason;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return "no run tests it";
    if (wanted == 0)
        return "more runs, number unknown";
    if (wanted > LAB_CLAIM_RUNS_MOST)
        return lab_arena_printf(arena, "over %d runs of each point: quiet the machine first",
                                LAB_CLAIM_RUNS_MOST);
    lab_str_printf(&text, "%d more run%s of %s%d point%s", more, more == 1 ? "" : "s",
                   points == 1 ? "" : "each of ", points, points == 1 ? "" : "s");
    if (!isnan(answer->run_s)) {
        lab_str_add(&text, ", about ");
        lab_str_add_duration(&text, answer->run_s * more * points, LAB_DURATION_ROUNDED);
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

/* A question's by name, or of the first one with that analysis if no other names it. What
 * nobody asked for isn't missed where it wasn't tested. */
static bool is_of(const struct course_answers *answers, int index, const struct lab_claim *claim) {
    const struct course_answer *answer = &answers->items[index];
    if (course_is_asked(answer->question, claim))
        return !answer->same || answer->question->kinds;
    for (int i = 0; i < answers->count; i++)
        if (answers->items[i].result == answer->result &&
            course_is_asked(answers->items[i].question, claim))
            return false;
    return !answer->same && claim->verdict != LAB_CLAIM_NOT_TESTED;
}

/* Rows of one question; how many there would be. */
static int add_open(const struct course_answers *answers, int index, int *shown,
                    struct lab_doc *doc) {
    const struct course_answer *answer = &answers->items[index];
    struct lab_arena *arena = lab_doc_arena(doc);
    const char *question = lab_arena_printf(arena, "%d. %s", index + 1, answer->question->name);
    int open = 0, unasked = 0;
    if (!answer->result) { /* its runs failed, or are still to come */
        const char *const cells[] = {question, "all of it", "", "–", answer->failure};
        for (int c = 0; c < 5; c++)
            lab_doc_cell(doc, "%s", cells[c]);
        (*shown)++;
        return 1;
    }
    for (int c = 0; c < answer->result->claim_count; c++) {
        const struct lab_claim *claim = &answer->result->claims[c];
        if (!is_open(claim) || !is_of(answers, index, claim))
            continue;
        open++;
        bool asked = course_is_asked(answer->question, claim) && answer->question->kinds;
        if ((!asked && unasked++ >= OPEN_UNASKED) || *shown >= OPEN_MOST)
            continue;
        (*shown)++;
        const char *subject = lab_claim_subject(claim, arena);
        lab_doc_cell(doc, "%s", question);
        lab_doc_cell(doc, "%s", *subject ? subject : "all of it");
        lab_doc_cell(doc, "%s", course_claim_quantity(claim, arena));
        lab_doc_cell(doc, "%s",
                     claim->verdict == LAB_CLAIM_NOT_TESTED ? "–"
                                                            : course_claim_effect(claim, arena));
        lab_doc_cell(doc, "%s", cost_of(answer, claim, arena));
    }
    return open;
}

static bool any_open(const struct course_answers *answers) {
    for (int i = 0; i < answers->count; i++) {
        const struct lab_analysis_result *result = answers->items[i].result;
        for (int c = 0; result && c < result->claim_count; c++)
            if (is_open(&result->claims[c]) && is_of(answers, i, &result->claims[c]))
                return true;
        if (!result)
            return true;
    }
    return false;
}

/* Others than the questions' phases are in the section on these. */
static bool has_others(const struct course *course) {
    bool any = false;
    for (int p = 0; p < course->campaign.phase_count; p++)
        any |= !course_is_asked_about(&course->campaign, p);
    return any;
}

void course_add_uncertain(const struct course *course, const struct course_answers *answers,
                          struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {"question", "Question"}, {"subject", "Subject"}, {"quantity", "Quantity"},
        {"effect", "Effect"},     {"cost", "To know it"},
    };
    int open = 0, shown = 0;
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER | LAB_DOC_PROGRAMS);
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = "What remains uncertain", .id = "uncertain"});
    if (any_open(answers))
        lab_doc_rows(doc, "uncertain", NULL, columns, sizeof columns / sizeof *columns);
    else
        lab_doc_text(doc, LAB_DOC_PLAIN,
                     "Every comparison that was tested for a question has a verdict, or an "
                     "interval within ±%.0f%%.%s",
                     100 * NEGLIGIBLE,
                     has_others(course) ? " Phases without a question are not counted here." : "");
    for (int i = 0; i < answers->count && any_open(answers); i++)
        open += add_open(answers, i, &shown, doc);
    if (open > shown)
        lab_doc_text(doc, LAB_DOC_FAINT, "%d more.", open - shown);
    lab_doc_end(doc);
}
