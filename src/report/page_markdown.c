/*
 * page_markdown.c: the same report in Markdown, the advice that follows from it, and its answers
 * for a terminal.
 */
#include "report/page_internal.h"

#include <string.h>

/* --- report.md --- */

/* A document below headings of its own: two more levels, but not within code. */
static void add_lower(const char *text, struct lab_str *out) {
    bool code = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        code ^= lab_str_starts(text, "```");
        if (!code && *text == '#')
            lab_str_add(out, "##");
        lab_str_add_bytes(out, text, length);
        lab_str_add(out, "\n");
        text += length + (text[length] == '\n');
    }
}

static void add_pictures(const struct lab_page_analysis *analysis, struct lab_str *out) {
    for (int i = 0; i < analysis->plot_count; i++) {
        const struct lab_plot *plot = &analysis->plots[i];
        if (!plot->drawn)
            continue;
        lab_str_add(out, "\n![");
        analysis_add_escaped(plot->chart->title ? plot->chart->title : plot->name, out);
        lab_str_printf(out, "%s](%s.png)\n", plot->chart->simulated ? " (simulated)" : "",
                       plot->name);
        if (!plot->chart->caption)
            continue;
        lab_str_add(out, "\n*");
        analysis_add_escaped(plot->chart->caption, out);
        lab_str_add(out, "*\n");
    }
}

/* The pictures stand behind the analysis's first sentence. */
static void add_analysis(const struct lab_page_analysis *analysis, struct lab_str *out) {
    if (!analysis->result) {
        lab_str_printf(out, "\n### %s\n\nThis could not be told: ", analysis->name);
        analysis_add_escaped(analysis->failure ? analysis->failure : "no reason was given", out);
        lab_str_add(out, ".\n");
        return;
    }
    struct lab_str text, lower;
    lab_str_init(&text);
    lab_str_init(&lower);
    lab_report_analysis_markdown(analysis->result, analysis->name, &text);
    add_lower(text.text, &lower);
    const char *answer = strstr(lower.text, "\n\n");
    const char *behind = answer ? strchr(answer + 2, '\n') : NULL;
    size_t head = behind ? (size_t)(behind - lower.text) + 1 : lower.length;
    lab_str_add(out, "\n");
    lab_str_add_bytes(out, lower.text, head);
    add_pictures(analysis, out);
    lab_str_add(out, lower.text + head);
    lab_str_release(&text);
    lab_str_release(&lower);
}

static void add_counts(struct study_digest *digest, struct lab_str *out) {
    struct lab_str text, plain;
    lab_str_init(&text);
    lab_str_init(&plain);
    study_add_answer(digest, INT32_MAX, true, &text);
    lab_text_wrap(text.text, 0, 0, INT32_MAX, &plain);
    analysis_add_escaped(plain.text, out);
    lab_str_add(out, "\n");
    lab_str_release(&text);
    lab_str_release(&plain);
}

static void add_title(const struct lab_page *page, const char *what, struct lab_str *out) {
    lab_str_add(out, "# ");
    lab_str_add(out, what);
    analysis_add_escaped(page->title, out);
    lab_str_printf(out, "%s\n\n", page->simulated ? " (simulated)" : "");
}

void lab_page_markdown(const struct lab_page *page, struct lab_str *out) {
    const char *answer = page_answer(page);
    struct study_digest digest;
    if (page->study)
        study_digest_init(&digest, page->study);
    add_title(page, "", out);
    if (answer) {
        lab_str_add(out, "**");
        analysis_add_escaped(answer, out);
        lab_str_add(out, "**\n");
    }
    if (page->study) {
        lab_str_add(out, answer ? "\n" : "");
        add_counts(&digest, out);
    }
    if (page->missing) {
        lab_str_add(out, "\n> ");
        analysis_add_escaped(page->missing, out);
        lab_str_add(out, ".\n");
    }
    if (page->analysis_count)
        lab_str_printf(out, "\n## Evidence%s\n", page->simulated ? " (simulated)" : "");
    for (int i = 0; i < page->analysis_count; i++)
        add_analysis(&page->analyses[i], out);
    if (page->study) {
        study_add_markdown(&digest, out);
        study_digest_release(&digest);
    }
}

/* --- best_practices.md --- */

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
        analysis_add_escaped(part->name, out);
        lab_str_add(out, "**");
        if (own) {
            lab_str_add(out, ": ");
            analysis_add_escaped(part->answer, out);
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
    add_title(page, "Best practices from ", out);
    if (page->study && page->study->machine && *page->study->machine) {
        lab_str_add(out, "For ");
        analysis_add_escaped(page->study->machine, out);
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
        analysis_add_escaped(result->answer, out);
        lab_str_add(out, "\n\n");
        add_practice(result, out);
        for (int n = 0; result->notes && result->notes[n]; n++) {
            lab_str_add(out, n == 0 ? "\nBefore these figures are used:\n\n- " : "- ");
            analysis_add_escaped(result->notes[n], out);
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

/* --- terminal --- */

static void add_answer(const char *name, const char *answer, struct lab_style style, int number,
                       struct lab_str *out) {
    struct lab_str text, plain;
    lab_str_init(&text);
    lab_str_init(&plain);
    if (name)
        lab_str_printf(&text, "%s: ", name);
    lab_str_add(&text, answer);
    if (style.unicode)
        lab_str_add(&plain, text.text);
    else
        lab_text_to_ascii(text.text, &plain);
    if (number == 0 && style.colour)
        lab_str_add(out, "\033[1m");
    lab_str_add(out, number == 0 ? "" : number == 1 ? "\n  " : "  ");
    lab_text_wrap(plain.text, number ? 2 : 0, number ? 4 : 0, style.columns, out);
    lab_str_add(out, number == 0 && style.colour ? "\033[0m\n" : "\n");
    lab_str_release(&text);
    lab_str_release(&plain);
}

static void add_first(const char *answer, bool simulated, struct lab_style style,
                      struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "%s%s", answer, simulated ? " (simulated)" : "");
    add_answer(NULL, text.text, style, 0, out);
    lab_str_release(&text);
}

void lab_page_answers(const struct lab_page *page, struct lab_style style, struct lab_str *out) {
    int number = 0;
    if (page->answer) {
        add_first(page->answer, page->simulated, style, out);
        number++;
    }
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        if (!page_tells(&page->analyses[i]))
            continue;
        if (number == 0)
            add_first(result->answer, result->simulated, style, out);
        else
            add_answer(page->analyses[i].name, result->answer, style, number, out);
        number++;
    }
}
