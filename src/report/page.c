/* page.c: the page as a whole: what stands in it, in which order. */
#include "report/page_internal.h"

#include <string.h>

void page_add_text(struct lab_str *out, const char *text) {
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        bool printable;
        length = lab_str_next(text, left, &printable);
        const char *instead = *text == '&'    ? "&amp;"
                              : *text == '<'  ? "&lt;"
                              : *text == '>'  ? "&gt;"
                              : *text == '"'  ? "&quot;"
                              : *text == '\'' ? "&#39;"
                              : *text == '\n' ? "\n"
                              : *text == '\t' ? " "
                              : !printable    ? "?"
                                              : NULL;
        if (instead)
            lab_str_add(out, instead);
        else
            lab_str_add_bytes(out, text, length);
    }
}

void page_add_heading(struct lab_str *out, int level, const char *id, const char *text,
                      bool simulated) {
    lab_str_printf(out, "<h%d", level);
    if (id)
        lab_str_printf(out, " id=\"%s\"", id);
    lab_str_add(out, ">");
    page_add_text(out, text);
    lab_str_printf(out, "%s</h%d>\n",
                   simulated ? " <span class=\"simulated\">simulated</span>" : "", level);
}

/* One without parts has only said what it lacks. */
bool page_tells(const struct lab_page_analysis *analysis) {
    return analysis->result && analysis->result->answer && analysis->result->part_count > 0 &&
           !analysis->result->lacks;
}

const char *page_answer(const struct lab_page *page) {
    if (page->answer)
        return page->answer;
    for (int i = 0; i < page->analysis_count; i++)
        if (page_tells(&page->analyses[i]))
            return page->analyses[i].result->answer;
    return NULL;
}

static void add_head(const struct lab_page *page, struct lab_str *out) {
    lab_str_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                     "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta "
                     "name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
                     "content=\"gpulab ");
    page_add_text(out, page->version);
    lab_str_add(out, "\">\n<title>");
    page_add_text(out, page->title);
    lab_str_printf(out, "%s</title>\n<style>\n", page->simulated ? " (simulated)" : "");
    lab_str_add(out, page_style);
    lab_str_add(out, "</style>\n</head>\n<body>\n");
}

static void add_counts(struct study_digest *digest, struct lab_str *out) {
    struct lab_str text, plain;
    lab_str_init(&text);
    lab_str_init(&plain);
    study_add_answer(digest, INT32_MAX, true, &text);
    lab_text_wrap(text.text, 0, 0, INT32_MAX, &plain);
    page_add_text(out, plain.text);
    lab_str_release(&text);
    lab_str_release(&plain);
}

static void add_links(const struct lab_page *page, struct lab_str *out) {
    lab_str_add(out, "<nav class=\"faint\">");
    for (int i = 0; i < page->analysis_count; i++) {
        lab_str_add(out, "<a href=\"#");
        page_add_text(out, page->analyses[i].name);
        lab_str_add(out, "\">");
        page_add_text(out, page->analyses[i].name);
        lab_str_add(out, "</a>");
    }
    if (page->study)
        lab_str_add(out, "<a href=\"#measured\">How it was measured</a><a href=\"#runs\">All "
                         "runs</a>");
    lab_str_add(out, "</nav>\n");
}

static void add_opening(const struct lab_page *page, struct study_digest *digest,
                        struct lab_str *out) {
    const char *answer = page_answer(page);
    lab_str_add(out, "<header>\n");
    page_add_heading(out, 1, NULL, page->title, page->simulated);
    lab_str_add(out, "<p class=\"answer\">");
    if (answer)
        page_add_text(out, answer);
    else if (digest)
        add_counts(digest, out);
    else
        lab_str_add(out, "Nothing could be told from this.");
    lab_str_add(out, "</p>\n<p class=\"faint\">");
    if (answer && digest) {
        add_counts(digest, out);
        lab_str_add(out, "<br>");
    }
    if (page->study && page->study->machine)
        page_add_text(out, page->study->machine);
    lab_str_add(out, "</p>\n");
    if (page->simulated)
        lab_str_add(out, "<p class=\"note\">These figures come from a <strong>simulated</strong> "
                         "machine. They tell what its model says, not what a real one does.</p>\n");
    if (digest && digest->nothing_valid)
        lab_str_add(out,
                    "<p class=\"note\"><strong>Invalid:</strong> " STUDY_NOTHING_VALID ".</p>\n");
    if (page->missing) {
        lab_str_add(out, "<p class=\"note\">");
        page_add_text(out, page->missing);
        lab_str_add(out, ".</p>\n");
    }
    add_links(page, out);
    lab_str_add(out, "</header>\n<main>\n");
}

#define FOR_METHOD (256 << 10) /* bytes that evidence leaves for what stands behind it */
#define FOR_RUNS   (768 << 10)

void lab_page_html(const struct lab_page *page, struct lab_str *out) {
    struct study_digest digest;
    struct page_budget budget = {LAB_PAGE_BYTES_MOST - FOR_METHOD - FOR_RUNS, 0};
    size_t start = out->length;
    if (page->study)
        study_digest_init(&digest, page->study);
    add_head(page, out);
    add_opening(page, page->study ? &digest : NULL, out);
    budget.limit += start;
    if (page->analysis_count)
        page_add_heading(out, 2, "evidence", "Evidence", page->simulated);
    for (int i = 0; i < page->analysis_count; i++)
        page_add_analysis(page, &page->analyses[i], &budget, out);
    page_add_method(page, page->study ? &digest : NULL, out);
    if (page->study)
        page_add_runs(page, &digest, start + LAB_PAGE_BYTES_MOST - FOR_METHOD, out);
    lab_str_add(out, "</main>\n<footer class=\"faint\">Written by gpulab ");
    page_add_text(out, page->version);
    lab_str_add(out, " from <code>");
    page_add_text(out, page->source);
    lab_str_add(out, "</code>.</footer>\n</body>\n</html>\n");
    if (page->study)
        study_digest_release(&digest);
}
