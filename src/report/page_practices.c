/* page_practices.c: best_practices.md: the advice that follows from a report. */
#include "report/page_internal.h"

#define PARTS_MOST 24 /* of an analysis: more are no advice any more */

static bool has_lines(const struct lab_analysis_part *part) {
    for (int t = 0; t < part->table_count; t++)
        if (part->tables[t].title && part->tables[t].lines && part->tables[t].lines[0])
            return true;
    return false;
}

/* What the parts say on their own, and what they give to paste. */
static void add_practice(const struct lab_analysis_result *result, struct lab_str *out) {
    int shown = 0;
    for (int i = 0; i < result->part_count; i++) {
        const struct lab_analysis_part *part = &result->parts[i];
        bool own = result->part_count > 1 && part->answer;
        if (!own && !has_lines(part))
            continue;
        if (++shown > PARTS_MOST) {
            lab_str_printf(out, "- %d more are in [report.md](report.md).\n",
                           result->part_count - i);
            return;
        }
        lab_str_add(out, "- **");
        lab_doc_add_escaped(part->name, out);
        lab_str_add(out, "**");
        if (own) {
            lab_str_add(out, ": ");
            lab_doc_add_escaped(part->answer, out);
        }
        lab_str_add(out, "\n");
        for (int t = 0; t < part->table_count; t++) {
            const struct lab_doc_table *table = &part->tables[t];
            if (!table->title || !table->lines || !table->lines[0])
                continue;
            lab_str_printf(out, "\n  %s:\n\n  ```\n", table->title);
            for (int k = 0; table->lines[k]; k++)
                lab_str_printf(out, "  %s\n", table->lines[k]);
            lab_str_add(out, "  ```\n");
        }
    }
}

void lab_page_practices(const struct lab_page *page, struct lab_str *out) {
    lab_str_add(out, "# Best practices from ");
    lab_doc_add_escaped(page->title, out);
    lab_str_add(out, page->simulated ? " (simulated)\n\n" : "\n\n");
    if (page->study && page->study->machine && *page->study->machine) {
        lab_str_add(out, "For ");
        lab_doc_add_escaped(page->study->machine, out);
        lab_str_add(out, page->simulated ? ", **simulated**.\n" : ".\n");
    }
    bool any = false;
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        if (!page_tells(&page->analyses[i]))
            continue;
        any = true;
        lab_str_printf(out, "\n## %s%s\n\n", page->analyses[i].name,
                       result->simulated ? " (simulated)" : "");
        lab_doc_add_escaped(result->answer, out);
        lab_str_add(out, "\n\n");
        add_practice(result, out);
        for (int n = 0; result->notes && result->notes[n]; n++) {
            lab_str_add(out, n == 0 ? "\nBefore these figures are used:\n\n- " : "- ");
            lab_doc_add_escaped(result->notes[n], out);
            lab_str_add(out, "\n");
        }
    }
    if (!any)
        lab_str_add(out,
                    "\nNo analysis has anything to say about this, so that there is nothing to "
                    "do differently.\n");
    lab_str_add(out, "\nThe evidence for each sentence is in [report.md](report.md) and "
                     "[index.html](index.html).\n");
}
