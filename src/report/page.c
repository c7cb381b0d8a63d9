/* page.c: the report as a whole: what stands in it, in which order. */
#include "report/page_internal.h"

#include <ctype.h>
#include <string.h>

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

/* --- pictures --- */

static void draw_picture(const void *state, const char *prefix, struct lab_str *out) {
    const struct lab_plot *plot = state;
    (void)prefix;
    lab_plot_svg(plot->chart, (struct lab_plot_view){.inlined = true}, out);
}

static int add_charts(const struct lab_page_analysis *analysis, struct lab_arena *arena,
                      struct lab_doc_chart **ret_charts) {
    int count = 0;
    size_t room = (size_t)analysis->plot_count + 1;
    struct lab_doc_chart *charts = lab_arena_alloc(arena, room, sizeof *charts);
    for (int i = 0; i < analysis->plot_count; i++) {
        const struct lab_plot *plot = &analysis->plots[i];
        if (plot->written)
            charts[count++] = (struct lab_doc_chart){.name = plot->name,
                                                     .title = plot->chart->title,
                                                     .caption = plot->chart->caption,
                                                     .simulated = plot->chart->simulated,
                                                     .draw = draw_picture,
                                                     .state = plot};
    }
    *ret_charts = charts;
    return count;
}

/* --- evidence --- */

static void add_failure(struct lab_doc *doc, const struct lab_page_analysis *analysis) {
    struct lab_arena *arena = lab_doc_arena(doc);
    static const char told[] = "This could not be told: %s.";
    const char *why = analysis->failure ? analysis->failure : "no reason was given";
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "analysis", analysis->name);
    lab_value_set_string(arena, map, "failure", analysis->failure);
    lab_doc_data(doc, NULL, map);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    lab_doc_text(doc, LAB_DOC_NOTE, told, why);
    lab_doc_only(doc, LAB_DOC_PAPER);
    lab_doc_text(doc, LAB_DOC_PLAIN, told, why);
    lab_doc_only(doc, LAB_DOC_ALL);
}

/* "Which NUMA node feeds which device best": what it tells is its heading. */
static void add_analysis(struct lab_doc *doc, const struct lab_page *page,
                         const struct lab_page_analysis *analysis) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_analysis_result *result = analysis->result;
    char *title = lab_arena_strdup(arena, analysis->summary ? analysis->summary : analysis->name);
    title[0] = (char)toupper((unsigned char)title[0]);
    lab_doc_begin(doc, (struct lab_doc_section){.title = title,
                                                .name = analysis->name,
                                                .id = analysis->name,
                                                .simulated = result && result->simulated});
    if (result) {
        struct lab_report_analysis added = {.name = analysis->name,
                                            .result = result,
                                            .source = page->source,
                                            .opened = result->answer == page_answer(page)};
        struct lab_doc_chart *charts;
        added.chart_count = add_charts(analysis, arena, &charts);
        added.charts = charts;
        lab_report_add_analysis(doc, &added);
    } else {
        add_failure(doc, analysis);
    }
    lab_doc_end(doc);
}

static void add_evidence(struct lab_doc *doc, const struct lab_page *page) {
    struct lab_doc_section section = {.title = page->analysis_count ? "Evidence" : NULL,
                                      .id = page->analysis_count ? "evidence" : NULL,
                                      .simulated = page->simulated,
                                      .reserve = PAGE_FOR_METHOD + PAGE_FOR_RUNS};
    lab_doc_begin(doc, section);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = "analyses"});
    for (int i = 0; i < page->analysis_count; i++)
        add_analysis(doc, page, &page->analyses[i]);
    lab_doc_end(doc);
    lab_doc_end(doc);
}

/* --- opening --- */

static void add_data(struct lab_doc *doc, const struct lab_page *page) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *map = lab_value_map(arena), *pictures = lab_value_list(arena);
    for (int i = 0; i < page->analysis_count; i++)
        for (int p = 0; p < page->analyses[i].plot_count; p++)
            if (page->analyses[i].plots[p].drawn)
                lab_value_append(
                    arena, pictures,
                    lab_value_string(arena, lab_arena_printf(arena, "%s/%s.png", page->folder,
                                                             page->analyses[i].plots[p].name)));
    lab_value_set_string(arena, map, "title", page->title);
    lab_value_set_bool(arena, map, "simulated", page->simulated);
    lab_value_set_string(arena, map, "page", page->index);
    lab_value_set(arena, map, "pictures", pictures);
    lab_value_set_string(arena, map, "missing", page->missing);
    lab_doc_data(doc, NULL, map);
}

static void add_opening(struct lab_doc *doc, const struct lab_page *page,
                        struct study_digest *digest) {
    const char *answer = page_answer(page);
    const char *machine = page->study && page->study->machine ? page->study->machine : "";
    LAB_AUTO(str, counts);
    if (digest)
        study_add_answer(digest, INT32_MAX, true, &counts);
    lab_doc_only(doc, LAB_DOC_PAPER);
    if (answer)
        lab_doc_text(doc, LAB_DOC_ANSWER, "%s", answer);
    if (digest)
        lab_doc_text(doc, LAB_DOC_PLAIN, "%s", counts.text);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    lab_doc_text(doc, LAB_DOC_ANSWER, "%s",
                 answer   ? answer
                 : digest ? counts.text
                          : "Nothing could be told from this.");
    lab_doc_text(doc, LAB_DOC_FAINT, "%s%s%s", answer ? counts.text : "",
                 answer && digest ? "\n" : "", machine);
    if (page->simulated)
        lab_doc_marked(doc, LAB_DOC_NOTE,
                       "These figures come from a **simulated** machine. They tell what its model "
                       "says, not what a real one does.");
    if (digest && digest->nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_NOTE, STUDY_NOTHING_VALID ".");
    lab_doc_only(doc, LAB_DOC_ALL);
    for (int i = 0; page->warnings && page->warnings[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", page->warnings[i]);
    if (page->missing)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s.", page->missing);
}

struct lab_doc *lab_page_doc(const struct lab_page *page, struct lab_arena *arena) {
    struct study_digest digest;
    struct lab_doc *doc = lab_doc_open(page->title, arena);
    lab_doc_set_simulated(doc, page->simulated);
    lab_doc_set_page(doc, (struct lab_doc_page){.version = page->version,
                                                .source = page->source,
                                                .bytes_most = LAB_PAGE_BYTES_MOST});
    if (page->study)
        study_digest_init(&digest, page->study);
    add_data(doc, page);
    add_opening(doc, page, page->study ? &digest : NULL);
    add_evidence(doc, page);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    page_add_method(doc, page, page->study ? &digest : NULL);
    if (page->study)
        page_add_runs(doc, page, &digest);
    lab_doc_only(doc, LAB_DOC_PAPER);
    if (page->study) {
        study_add_paper(doc, &digest);
        study_digest_release(&digest);
    }
    return doc;
}

/* --- terminal --- */

int lab_page_add_answers(const struct lab_page *page, struct lab_doc *doc) {
    static const char *const words[] = {"", " (simulated)"};
    int count = 0;
    if (page->answer) {
        lab_doc_text(doc, LAB_DOC_ANSWER, "%s%s", page->answer, words[page->simulated]);
        count++;
    }
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        if (!page_tells(&page->analyses[i]))
            continue;
        if (count == 0)
            lab_doc_text(doc, LAB_DOC_ANSWER, "%s%s", result->answer, words[result->simulated]);
        if (count == 1)
            lab_doc_gap(doc);
        if (count > 0)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s", page->analyses[i].name, result->answer);
        count++;
    }
    for (int i = 0; page->warnings && page->warnings[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", page->warnings[i]);
    return count;
}
