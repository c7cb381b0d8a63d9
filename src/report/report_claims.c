/* report_claims.c: claims as a table and as data. */
#include "report/report_build.h"

struct lab_claim *const *lab_report_claims(const struct lab_page *page, struct lab_arena *arena,
                                           int *ret_count) {
    int room = 0, count = 0;
    for (int i = 0; i < page->analysis_count; i++)
        room += page->analyses[i].result ? page->analyses[i].result->claim_count : 0;
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)room + 1, sizeof *claims);
    for (int i = 0; i < page->analysis_count; i++)
        for (int c = 0; page->analyses[i].result && c < page->analyses[i].result->claim_count; c++)
            claims[count++] = &page->analyses[i].result->claims[c];
    *ret_count = count;
    return claims;
}

/* "-12.5% [-13.8, -10.7]": the verdict has a column of its own. */
static const char *effect_text(const struct lab_claim *claim, struct lab_arena *arena) {
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return "";
    if (claim->unit || claim->difference || claim->verdict == LAB_CLAIM_NO)
        return lab_claim_short(claim, arena);
    return lab_claim_effect(claim, arena);
}

void lab_report_add_claims(struct lab_doc *doc, struct lab_claim *const *claims, int count) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Kind", LAB_UNIT_TEXT},          {NULL, "Subject", LAB_UNIT_TEXT},
        {NULL, "Compared with", LAB_UNIT_TEXT}, {NULL, "Effect", LAB_UNIT_TEXT},
        {NULL, "Runs", LAB_UNIT_COUNT},         {NULL, "Verdict", LAB_UNIT_TEXT},
    };
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *list = lab_value_list(arena);
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns)->uncut = true;
    for (int i = 0; i < count; i++) {
        lab_doc_add(doc, lab_cell_text(claims[i]->kind));
        lab_doc_add(doc, lab_cell_text(lab_claim_subject(claims[i], arena)));
        lab_doc_add(doc, lab_cell_text(claims[i]->reference));
        lab_doc_add(doc, lab_cell_text(effect_text(claims[i], arena)));
        lab_doc_figure(doc, claims[i]->n);
        lab_doc_add(doc, lab_cell_text(lab_claim_verdict_name(claims[i]->verdict)));
        lab_value_append(arena, list, lab_claim_value(claims[i], arena));
    }
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_data(doc, "claims", list);
}
