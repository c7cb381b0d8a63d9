/*
 * others.c: what phases found that no question of the campaign asks about: the answer of each
 * study's own first analysis, as its page opens with it.
 */
#include "command/campaign/answers.h"

#include "analysis/analysis.h"
#include "doc/doc.h"
#include "load/studies.h"

#include <string.h>

bool course_is_asked_about(const struct lab_campaign *campaign, int phase) {
    for (int q = 0; q < campaign->question_count; q++)
        for (int i = 0; i < campaign->questions[q].phase_count; i++)
            if (campaign->questions[q].phases[i] == phase)
                return true;
    return false;
}

/* NULL = it has none, or can't be read. */
static const char *answer_of(const char *folder, struct lab_arena *arena) {
    const char *const folders[] = {folder, NULL};
    struct lab_analysis_input input = {.study_count = 0};
    struct lab_analysis_result result;
    struct lab_study_table *tables;
    if (lab_studies_read(folders, 1, 0, arena, &tables, &input.study_count, NULL) < 0 ||
        input.study_count == 0 || !tables[0].answers || !tables[0].answers[0])
        return NULL;
    const struct lab_analysis *analysis = lab_analysis_find(tables[0].answers[0], NULL);
    if (!analysis ||
        lab_studies_read(folders, 1, analysis->needs, arena, &tables, &input.study_count, NULL) < 0)
        return NULL;
    input.studies = tables;
    return lab_analysis_run(analysis, NULL, &input, arena, &result, NULL) < 0 ? NULL
                                                                              : result.answer;
}

void course_add_others(const struct course *course, struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {"phase", "Phase"}, {"study", "Study"}, {"found", "Found"}};
    bool any = false;
    for (int p = 0; p < course->campaign.phase_count; p++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[p];
        for (int s = 0; s < phase->study_count && !course_is_asked_about(&course->campaign, p);
             s++) {
            const char *folder = course->studies[phase->first_study + s].folder;
            const char *answer = folder ? answer_of(folder, course->arena) : NULL;
            if (!answer)
                continue;
            if (!any) {
                lab_doc_begin(doc, (struct lab_doc_section){.title = "What other phases found",
                                                            .id = "others"});
                lab_doc_rows(doc, "others", NULL, columns, 3);
            }
            any = true;
            lab_doc_cell(doc, "%s", phase->name);
            lab_doc_cell(doc, "%s", phase->studies[s].label);
            lab_doc_cell(doc, "%s", answer);
        }
    }
    if (any)
        lab_doc_end(doc);
}
