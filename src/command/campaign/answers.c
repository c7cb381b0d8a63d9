/* answers.c: the analyses that answer a campaign's questions; see answers.h. */
#include "command/campaign/answers.h"

#include "base/list.h"
#include "load/studies.h"

#include <math.h>

/* Studies of another machine than the newest one's are left out: they can't be pooled. */
static int keep_machine(struct lab_study_table *tables, int count, int *ret_others) {
    uint64_t newest = 0;
    int64_t began_ns = INT64_MIN;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (tables[i].run_count > 0 && tables[i].runs[0].run->start_wall_ns >= began_ns) {
            began_ns = tables[i].runs[0].run->start_wall_ns;
            newest = tables[i].machine_identity;
        }
    for (int i = 0; i < count; i++)
        if (tables[i].machine_identity == newest)
            tables[kept++] = tables[i];
    *ret_others = count - kept;
    return kept;
}

static void count_points(struct course_answer *answer, struct lab_arena *arena) {
    const char **points = NULL;
    for (int t = 0; t < answer->table_count; t++)
        for (int r = 0; r < answer->tables[t].run_count; r++) {
            const char *point = answer->tables[t].runs[r].point;
            answer->run_count++;
            if (lab_list_find_text(points, answer->point_count, point) < 0)
                LAB_ADD(points, answer->point_count, arena) = point;
        }
}

/* Of the studies of its phases. */
static double mean_run_s(const struct course *course,
                         const struct lab_campaign_question *question) {
    double taken_s = 0;
    int done = 0;
    for (int i = 0; i < question->phase_count; i++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[question->phases[i]];
        for (int s = 0; s < phase->study_count; s++) {
            const struct lab_campaign_found *found = &course->found[phase->first_study + s];
            if (!isnan(found->taken_s) && found->done > 0) {
                taken_s += found->taken_s;
                done += found->done;
            }
        }
    }
    return done ? taken_s / done : NAN;
}

/* The first claim of the kinds that the question names, in their order. */
static const struct lab_claim *find_claim(const struct lab_campaign_question *question,
                                          const struct lab_analysis_result *result) {
    for (int k = 0; question->kinds && question->kinds[k]; k++)
        for (int c = 0; c < result->claim_count; c++)
            if (lab_str_equal(result->claims[c].kind, question->kinds[k]))
                return &result->claims[c];
    return question->kinds || result->claim_count == 0 ? NULL : &result->claims[0];
}

/* Where no run of its phases succeeded; NULL = one did. */
static const char *why_nothing(const struct course *course,
                               const struct lab_campaign_question *question) {
    const char *error = NULL;
    int done = 0, failed = 0;
    for (int i = 0; i < question->phase_count; i++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[question->phases[i]];
        for (int s = 0; s < phase->study_count; s++) {
            const struct lab_campaign_found *found = &course->found[phase->first_study + s];
            done += found->done;
            failed += found->failed;
            error = error ? error : found->error;
        }
    }
    if (done > 0)
        return NULL;
    return failed == 0 ? "no run of its phases has ended"
                       : lab_arena_printf(course->arena, "all %d runs of its phases failed%s%s",
                                          failed, error ? ", the first: " : "", error ? error : "");
}

static int answer_one(const struct course *course, struct course_answer *answer,
                      struct lab_err *err) {
    const struct lab_campaign_question *question = answer->question;
    struct lab_arena *arena = course->arena;
    struct lab_analysis_input input = {0};
    struct lab_study_table *tables;
    struct lab_err refused = LAB_ERR_INIT;
    int count;
    const char *const *folders =
        course_folders(course, question->phases, question->phase_count, &count);
    answer->run_s = mean_run_s(course, question);
    answer->failure = "no study of its phases has begun";
    if (count == 0)
        return 0;
    answer->failure = why_nothing(course, question);
    if (answer->failure)
        return 0;
    if (lab_studies_read(folders, count, question->analysis->needs, arena, &tables,
                         &input.study_count, err) < 0)
        return -1;
    input.study_count = keep_machine(tables, input.study_count, &answer->others);
    input.studies = tables;
    struct lab_analysis_result *result = lab_arena_alloc(arena, 1, sizeof *result);
    if (lab_studies_pool(tables, &input.study_count, arena, &refused) < 0 ||
        lab_analysis_run(question->analysis, NULL, &input, arena, result, &refused) < 0) {
        answer->failure = lab_arena_strdup(arena, refused.text);
        return 0;
    }
    answer->failure = NULL;
    answer->result = result;
    answer->tables = tables;
    answer->table_count = input.study_count;
    count_points(answer, arena);
    return 0;
}

/* Of each kind of study once. */
static void add_advice(const struct course *course, struct course_answers *answers) {
    struct lab_advice *advice = NULL;
    const char **seen = NULL;
    int seen_count = 0;
    for (int i = 0; i < answers->count; i++)
        for (int t = 0; t < answers->items[i].table_count; t++) {
            const struct lab_study_table *table = &answers->items[i].tables[t];
            if (lab_list_find_text(seen, seen_count, table->option) >= 0)
                continue;
            LAB_ADD(seen, seen_count, course->arena) = table->option;
            struct lab_advice made = lab_advice_make(table, NULL, course->arena);
            made.study = table->option;
            if (advice) /* devices are bound as the first of them found */
                made.line_count = 0;
            LAB_ADD(advice, answers->advice_count, course->arena) = made;
        }
    answers->advice = advice;
}

static bool is_same(const struct lab_campaign_question *a, const struct lab_campaign_question *b) {
    bool same = a->analysis == b->analysis && a->phase_count == b->phase_count;
    for (int i = 0; same && i < a->phase_count; i++)
        same = a->phases[i] == b->phases[i];
    return same;
}

/* What was analysed for an earlier question isn't again. */
static bool take_earlier(struct course_answers *answers, int number) {
    const struct lab_campaign_question *question = answers->items[number].question;
    for (int i = 0; i < number; i++)
        if (is_same(answers->items[i].question, question)) {
            answers->items[number] = answers->items[i];
            answers->items[number].question = question;
            answers->items[number].same = true;
            return true;
        }
    return false;
}

int course_answer(struct course *course, struct course_answers *ret_answers, struct lab_err *err) {
    int count = course->campaign.question_count;
    struct course_answers answers = {
        .items = lab_arena_alloc(course->arena, (size_t)count + 1, sizeof *answers.items),
        .count = count};
    for (int i = 0; i < count; i++) {
        answers.items[i].question = &course->campaign.questions[i];
        struct course_answer *answer = &answers.items[i];
        if (!take_earlier(&answers, i) && answer_one(course, answer, err) < 0)
            return -1;
        answer->claim = answer->result ? find_claim(answer->question, answer->result) : NULL;
        answer->answered = answer->claim && (answer->claim->verdict == LAB_CLAIM_YES ||
                                             answer->claim->verdict == LAB_CLAIM_NO);
        answers.answered += answer->answered;
    }
    add_advice(course, &answers);
    *ret_answers = answers;
    return 0;
}
