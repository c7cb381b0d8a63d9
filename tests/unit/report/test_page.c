/* A whole report: page, Markdown, advice and terminal say the same; nothing in them is taken as
 * code. */
#include "study_fixture.h"
#include "unit/plot/chart_fixture.h"

#include "report/page.h"

static const struct lab_doc_column columns[] = {
    {"penalty", "Penalty", LAB_UNIT_CHANGE, "Penalty", .with_interval = true},
    {"best", "Best node", LAB_UNIT_TEXT, "Best node"},
    {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND},
};
static const struct lab_doc_column row_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"penalty", "Penalty", LAB_UNIT_CHANGE, .with_interval = true},
};

struct given {
    struct fixture study;
    struct lab_analysis_result result;
    struct lab_page_analysis analyses[3];
    struct lab_page page;
    struct lab_str text;
};

static struct lab_analysis_part make_part(struct lab_arena *arena, const char *name, double share) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, 3, sizeof *cells),
                        *rows = lab_arena_alloc(arena, 4, sizeof *rows);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    static const char *const lines[] = {"CUDA_VISIBLE_DEVICES=GPU-5f0c numactl --cpunodebind=1 "
                                        "--membind=1 ./train",
                                        NULL};
    static const char *const notes[] = {"2 of 8 runs < 3 & not valid", NULL};
    cells[0] = (struct lab_doc_cell){NULL, share, share - 0.01, share + 0.01, 0.95};
    cells[1] = lab_cell_text("node <1>");
    cells[2] = lab_cell_figure(3100);
    for (int i = 0; i < 2; i++) {
        struct lab_doc_cell *row = rows + (ptrdiff_t)2 * i;
        row[0] = lab_cell_text(i ? "vit32x6x512" : "vit0x0x0");
        row[1] = cells[0];
    }
    tables[0] = (struct lab_doc_table){"models", "By model", row_columns, 2, rows, 2, NULL};
    tables[1] = (struct lab_doc_table){"lines", "To paste", row_columns, 2, rows, 2, lines};
    return (struct lab_analysis_part){
        .name = name,
        .about = "cuda:0",
        .answer = lab_arena_printf(arena, "%s is best fed from node 1.", name),
        .cells = cells,
        .tables = tables,
        .table_count = 2,
        .notes = notes};
}

static int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    fixture_setup(NULL);
    fixture_init(&g->study, "numa_locality_study", "numa_study");
    struct lab_arena *arena = &g->study.arena;
    for (int i = 0; i < 4; i++)
        fixture_done(&g->study, fixture_plan(&g->study, i % 2, 1, i / 2, "vit32x2x128"),
                     1000.0 + 10 * i, "", "");
    static const char *const notes[] = {"One run of a point tells nothing of another.", NULL};
    struct lab_analysis_part *parts = lab_arena_alloc(arena, 3, sizeof *parts);
    for (int i = 0; i < 3; i++)
        parts[i] = make_part(arena, lab_arena_printf(arena, "GPU %d", i), 0.124 - 0.06 * i);
    g->result = (struct lab_analysis_result){
        .answer =
            "GPU 0 is best fed from node 1: node 0 costs 12.4 % [11.4, 13.4], \"<b>\" & more.",
        .part_key = "gpus",
        .columns = columns,
        .column_count = 3,
        .parts = parts,
        .part_count = 3,
        .notes = notes};
    g->analyses[0] = (struct lab_page_analysis){
        .name = "numa", .summary = "which node feeds which device best", .result = &g->result};
    g->analyses[1] = (struct lab_page_analysis){.name = "crossover",
                                                .summary = "where compute passes copies",
                                                .failure = "all models are <alike>"};
    g->page = (struct lab_page){.title = "numa_locality_study",
                                .study = &g->study.study,
                                .analyses = g->analyses,
                                .analysis_count = 2,
                                .source = g->study.study.folder,
                                .folder = "/nowhere",
                                .config = "experiment:\n  name: \"a<b>\"\n",
                                .order = "random",
                                .version = "0.3.0"};
    lab_str_init(&g->text);
    *state = g;
    return 0;
}

static int end(void **state) {
    struct given *g = *state;
    lab_str_release(&g->text);
    fixture_release(&g->study);
    lab_mem_free(g);
    return 0;
}

static void write_page(struct given *g, const char *format) {
    lab_doc_write(lab_page_doc(&g->page, &g->study.arena), format, (struct lab_style){0}, &g->text);
}

static void write_answers(struct given *g) {
    struct lab_doc *doc = lab_doc_open(NULL, &g->study.arena);
    lab_page_add_answers(&g->page, doc);
    lab_doc_write(doc, "text", (struct lab_style){.columns = 80, .unicode = true}, &g->text);
}

LAB_TEST(page_holds) {
    struct given *g = *state;
    write_page(g, "html");
    const char *body = strstr(g->text.text, "</style>"); /* how it looks isn't said twice */
    assert_non_null(body);
    assert_golden(body, "page-numa.html");
}

LAB_TEST(markdown_holds) {
    struct given *g = *state;
    write_page(g, "markdown");
    assert_golden(g->text.text, "page-numa.md");
}

LAB_TEST(practices_hold) {
    struct given *g = *state;
    lab_page_practices(&g->page, &g->text);
    assert_golden(g->text.text, "page-numa-practices.md");
}

LAB_TEST(answers_hold) {
    struct given *g = *state;
    write_answers(g);
    assert_fits(g->text.text, 80);
    assert_golden(g->text.text, "page-numa-80.txt");
}

/* Given names with signs of HTML in them, then none of it becomes an element. */
LAB_TEST(nothing_is_taken_as_code) {
    struct given *g = *state;
    g->page.title = "<script>alert(1)</script>";
    g->study.study.name = "\"><img src=x>";
    g->study.study.machine = "<iframe>";
    g->page.source = "<a href='x'>";
    g->page.missing = "<i>none</i>";
    g->study.runs[0].id = "<b>run</b>";
    write_page(g, "html");
    static const char *const bad[] = {"<script", "<img", "<iframe", "<a href='x'", "<i>", "<b>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(strstr(g->text.text, bad[i]));
    assert_contains(g->text.text, "&lt;script&gt;alert(1)");
}

/* No network, no scripts: nothing but links to files beside it. */
LAB_TEST(page_needs_nothing_else) {
    struct given *g = *state;
    write_page(g, "html");
    assert_null(strstr(g->text.text, "http"));
    assert_null(strstr(g->text.text, "<script"));
    assert_null(strstr(g->text.text, "<link"));
    assert_null(strstr(g->text.text, "@import"));
}

/* Given a simulated study, then the word stands with every heading of figures and in every text. */
LAB_TEST(simulated_is_said_everywhere) {
    struct given *g = *state;
    g->page.simulated = g->study.study.simulated = g->result.simulated = true;
    write_page(g, "html");
    static const char *const marks[] = {"<title>numa_locality_study (simulated)</title>",
                                        "Evidence <span class=\"simulated\">",
                                        "How it was measured <span class=\"simulated\">",
                                        "All runs <span class=\"simulated\">",
                                        "Simulated rate",
                                        "device best <span class=\"simul"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        assert_contains(g->text.text, marks[i]);
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "# numa_locality_study (simulated)");
    assert_contains(g->text.text, "## Evidence (simulated)");
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_contains(g->text.text, "(simulated)");
    lab_str_clear(&g->text);
    write_answers(g);
    assert_contains(g->text.text, "(simulated)");
}

/* Given an analysis that only says what it lacks, then the study's own sentence opens the page. */
LAB_TEST(what_is_lacking_is_no_answer) {
    struct given *g = *state;
    g->result.part_count = 0;
    g->result.answer = "There is nothing to compare.";
    write_page(g, "html");
    assert_contains(g->text.text, "<p class=\"answer\">4 of 4 runs succeeded");
    assert_contains(g->text.text, "There is nothing to compare.");
    lab_str_clear(&g->text);
    write_answers(g);
    assert_string_equal(g->text.text, "");
}

/* Given an analysis with parts that says of itself that something is missing, then the same; and a
 * sentence from the runs stands before all. */
LAB_TEST(what_lacks_something_opens_no_page) {
    struct given *g = *state;
    g->result.lacks = true;
    g->result.answer = "The samples don't reach.";
    write_page(g, "html");
    assert_contains(g->text.text, "<p class=\"answer\">4 of 4 runs succeeded");
    lab_str_clear(&g->text);
    g->page.answer = "It runs at 5 samples/s.";
    write_page(g, "markdown");
    assert_contains(g->text.text, "**It runs at 5 samples/s.**");
    lab_str_clear(&g->text);
    write_answers(g);
    assert_string_equal(g->text.text, "It runs at 5 samples/s.\n");
}

/* Given no analysis at all, or recordings without a study, then there still is a page. */
LAB_TEST(little_makes_a_page_too) {
    struct given *g = *state;
    g->page.analysis_count = 0;
    write_page(g, "html");
    assert_contains(g->text.text, "<p class=\"answer\">4 of 4 runs succeeded");
    lab_str_clear(&g->text);
    g->page.study = NULL;
    write_page(g, "html");
    assert_contains(g->text.text, "Nothing could be told from this.");
}

/* Given more parts than paper should carry, then those beyond a few stay folded there, and it is
 * said. */
LAB_TEST(paper_has_some_of_many_parts) {
    struct given *g = *state;
    struct lab_analysis_part *parts = lab_arena_alloc(&g->study.arena, 9, sizeof *parts);
    for (int i = 0; i < 9; i++)
        parts[i] = g->result.parts[0];
    g->result.parts = parts;
    g->result.part_count = 9;
    write_page(g, "html");
    int folded = 0;
    const char *more = "<details class=\"more\"><summary>GPU 0";
    for (const char *at = g->text.text; (at = strstr(at, more)); at++)
        folded++;
    assert_int_equal(folded, 5);
    assert_contains(g->text.text, "Printed are the details of the first 4 of 9");
}

/* Given 60,000 runs, then the page stays small enough to be sent, and says what it leaves out. */
LAB_TEST(page_stays_small) {
    struct given *g = *state;
    struct lab_run *runs = lab_mem_alloc(60000, sizeof *runs);
    for (int i = 0; i < 60000; i++)
        runs[i] = g->study.runs[0];
    g->study.study.runs = runs;
    g->study.study.run_count = 60000;
    write_page(g, "html");
    assert_true(g->text.length < LAB_PAGE_BYTES_MOST);
    assert_contains(g->text.text, "more are in results.json");
    lab_mem_free(runs);
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
