/* A whole report: page, Markdown, advice and terminal say the same; nothing in them is taken as
 * code. */
#include "page_fixture.h"

static void write_answers(struct given *g) {
    struct lab_doc *doc = lab_doc_open(NULL, &g->study.arena);
    lab_page_add_answers(&g->page, doc);
    lab_doc_write(doc, "text", (struct lab_style){.columns = 80, .unicode = true}, &g->text);
}

LAB_TEST(page_holds) {
    struct given *g = *state;
    write_page(g, "html");
    char *body = strstr(g->text.text, "<header>"), *end = strstr(g->text.text, "<script>\n");
    assert_true(body && end); /* how it looks and what it does isn't said twice */
    *end = '\0';
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

static int count_lines(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Given names with signs of HTML in them, then none of it becomes an element. */
LAB_TEST(nothing_is_taken_as_code) {
    struct given *g = *state;
    g->page.title = "<script>alert(1)</script>";
    g->page.question = "<iframe>";
    g->study.study.name = "\"><img src=x>";
    g->study.study.machine = "<iframe>";
    g->page.source = "<a href='x'>";
    g->page.missing = "<i>none</i>";
    g->study.runs[0].id = "<b>run</b>";
    g->lines[0].plain = "</code><script>";
    write_page(g, "html");
    static const char *const bad[] = {"<script", "<img", "<iframe", "<a href='x'", "<i>", "<b>run"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(count_in_page(g, bad[i]), 0);
    assert_contains(g->text.text, "&lt;script&gt;alert(1)");
}

/* No network: nothing but links to files beside it, and a script of its own. */
LAB_TEST(page_needs_nothing_else) {
    struct given *g = *state;
    write_page(g, "html");
    static const char *const bad[] = {"http", " src=", "<link", "@import", "url("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(strstr(g->text.text, bad[i]));
}

/* Given a simulated study, then its title and a banner say so, once each. */
LAB_TEST(simulated_is_said_once) {
    struct given *g = *state;
    g->page.simulated = g->study.study.simulated = g->result.simulated = true;
    write_page(g, "html");
    assert_contains(g->text.text, "<title>numa_study (simulated)</title>");
    assert_int_equal(count_in_page(g, "(simulated)"), 0);
    assert_int_equal(count_in_page(g, "<div class=\"banner\">Simulated"), 1);
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "# numa_study (simulated)");
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
    assert_contains(g->text.text, "<h1>4 of 4 runs succeeded");
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
    assert_contains(g->text.text, "<h1>4 of 4 runs succeeded");
    lab_str_clear(&g->text);
    g->page.answer = "It runs at 5 samples/s.";
    write_page(g, "markdown");
    assert_contains(g->text.text, "**It runs at 5 samples/s.**");
    lab_str_clear(&g->text);
    write_answers(g);
    assert_string_equal(g->text.text, "It runs at 5 samples/s.\n");
}

/* Given warnings, then the first screen has how many of the runs done have some, and which of
 * them most have. */
LAB_TEST(warnings_are_on_the_first_screen) {
    struct given *g = *state;
    static const char *const shown[] = {
        "Warnings: 1 of 5 runs: the machine was busy.", NULL, NULL,
        "Warnings in 4 of 8 runs. 3 of 8 runs: the machine was busy. 1 of 8 runs: it was hot."};
    fixture_plan(&g->study, 0, 1, 9, "vit32x2x128"); /* it is left */
    for (int i = 0; i < 4; i++) {
        fixture_done(&g->study, fixture_plan(&g->study, i % 2, 1, 2 + i / 2, "vit32x2x128"), 1000,
                     i == 1 ? "\"it was hot\"" : "\"the machine was busy\"", "");
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        if (shown[i])
            assert_contains(g->text.text, shown[i]);
    }
}

/* Given a simulated machine, then nothing disturbs it, but its noise is warned of. */
LAB_TEST(noise_of_a_simulated_machine_is_on_the_first_screen) {
    struct given *g = *state;
    g->page.simulated = true;
    fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 9, "vit32x2x128"), 1000,
                 "\"severe outliers: 43 of 99 measured times (43.4%)\", \"it was hot\"", "");
    write_page(g, "markdown");
    assert_contains(g->text.text, "Warnings: 1 of 5 runs: severe outliers.");
    assert_null(strstr(g->text.text, "Warnings in"));
}

/* Given GPUs that never ran from their own NUMA node, then it is said which. */
LAB_TEST(remote_gpus_are_named) {
    struct given *g = *state;
    for (int i = 0; i < g->study.study.run_count; i++) {
        struct lab_run *run = (struct lab_run *)&g->study.study.runs[i];
        struct lab_run_rank *rank = lab_arena_alloc(&g->study.arena, 1, sizeof *rank);
        *rank = (struct lab_run_rank){0, i % 2 ? "cuda:3" : "cuda:1", 0};
        run->ranks = rank;
        run->result =
            result_from(i % 2 ? "{\"device_node\": 2}" : "{\"device_node\": 0}", &g->study.arena);
    }
    write_page(g, "markdown");
    assert_contains(
        g->text.text,
        "Measured: GPUs 1 and 3 of 4, NUMA node 0 of 4; GPU 3 ran from remote NUMA node 0 · ");
    lab_str_clear(&g->text);
    write_page(g, "html"); /* it is no limit of the answer */
    assert_contains(g->text.text, "<p class=\"faint\">Measured: GPUs 1 and 3 of 4");
}

/* Given an analysis that nobody asked for and that tested nothing, then it is no evidence. */
LAB_TEST(what_was_not_tested_is_no_evidence) {
    struct given *g = *state;
    struct lab_analysis_result other = g->result;
    other.answer = "Not tested: each model was run in one placement.";
    other.untested = "each model was run in one placement.";
    g->analyses[1].result = &other;
    g->analyses[1].named = true;
    write_page(g, "markdown");
    assert_contains(g->text.text, other.answer);
    lab_str_clear(&g->text);
    g->analyses[1].named = false;
    write_page(g, "markdown");
    assert_null(strstr(g->text.text, other.answer));
}

/* Given more warnings than are named, then the others are where the text says, all of them. */
LAB_TEST(other_warnings_are_where_it_is_said) {
    struct given *g = *state;
    for (int i = 0; i < 8; i++)
        fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 2 + i, "vit32x2x128"), 1000,
                     lab_arena_printf(&g->study.arena, "\"trouble %c\"", 'a' + i), "");
    write_page(g, "markdown");
    assert_contains(g->text.text, " more kinds below.");
    for (int i = 0; i < 8; i++)
        assert_contains(g->text.text, lab_arena_printf(&g->study.arena, "- trouble %c", 'a' + i));
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_contains(g->text.text, " more kinds in report.md.");
}

/* Given no valid run, then no analysis answers, and no chart is on the first screen. */
LAB_TEST(invalid_runs_answer_nothing) {
    struct given *g = *state;
    for (int i = 0; i < g->study.study.run_count; i++)
        ((struct lab_run *)g->study.study.runs)[i].valid = false;
    write_page(g, "markdown");
    const char *opening = lab_arena_strndup(
        &g->study.arena, g->text.text, (size_t)(strstr(g->text.text, "## Evi") - g->text.text));
    assert_contains(opening, "4 of 4 runs succeeded, but all of them are invalid");
    assert_null(strstr(opening, g->result.answer));
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_null(strstr(g->text.text, g->result.answer));
}

/* Given a name of 200 letters, then sentences have its ends. */
LAB_TEST(long_names_lose_their_middles) {
    struct given *g = *state;
    g->result.answer = lab_arena_printf(&g->study.arena, "Use %0200d1, not b.", 0);
    write_page(g, "markdown");
    write_end(g);
    for (const char *word = g->text.text; *word; word += strcspn(word, " \n") + !!*word)
        assert_false(lab_str_starts(word, "0000") && strcspn(word, " ") > 72);
    assert_contains(g->text.text, "00…00");
    assert_contains(g->text.text, "0001, not b.");
}

/* Given a program's metric with a name of 200 letters, then the terminal's table shows its values. */
LAB_TEST(long_titles_leave_room_for_values) {
    struct given *g = *state;
    struct lab_arena *arena = &g->study.arena;
    const char *name = lab_arena_printf(arena, "loss_%0195d", 1);
    struct lab_doc_column own[] = {{.key = "setting", .title = "Setting"},
                                   {.key = "loss", .title = name, .align = LAB_ALIGN_RIGHT},
                                   {.key = "change", .title = "Change"}};
    struct lab_doc_cell cells[] = {lab_cell_text("lr=1"), lab_cell_text("3.1"),
                                   lab_cell_text("+3.2%")};
    struct lab_doc_table table = {.key = "settings",
                                  .title = "Settings",
                                  .columns = own,
                                  .column_count = 3,
                                  .cells = cells,
                                  .row_count = 1};
    struct lab_analysis_part part = {.name = "all", .tables = &table, .table_count = 1};
    g->result.parts = &part;
    g->result.part_count = 1;
    g->result.by_point = "Mean over runs.";
    write_end(g);
    assert_contains(g->text.text, "…0000");
    assert_contains(g->text.text, "+3.2%");
    assert_null(strstr(g->text.text, name));
}

static struct lab_doc_table given_models(struct given *g, struct lab_analysis_part *part,
                                         struct lab_doc_cell *cells, int rows) {
    static const struct lab_doc_column own[] = {{.key = "model", .title = "Model"},
                                                {.key = "change", .title = "Change"}};
    struct lab_doc_table table = {.key = "models",
                                  .title = "Models",
                                  .columns = own,
                                  .column_count = 2,
                                  .cells = cells,
                                  .row_count = rows};
    *part = (struct lab_analysis_part){.name = "all", .table_count = 1};
    g->result.parts = part;
    g->result.part_count = 1;
    g->result.by_point = "Mean over runs.";
    g->result.column_count = 0;
    return table;
}

/* Given more rows than the first screen has, then those whose change the answer quotes are among
 * them, and it says that this is a selection. */
LAB_TEST(rows_that_the_answer_quotes_are_shown) {
    struct given *g = *state;
    enum { ROWS = 12 };
    struct lab_doc_cell cells[2 * ROWS];
    for (int i = 0; i < ROWS; i++) {
        cells[2 * i] = lab_cell_text(lab_arena_printf(&g->study.arena, "model-%c", 'a' + i));
        cells[2 * i + 1] =
            lab_cell_text(lab_arena_printf(&g->study.arena, "-%d7.7%% [-%d7.9, -%d7.5]", i, i, i));
    }
    struct lab_analysis_part part;
    struct lab_doc_table table = given_models(g, &part, cells, ROWS);
    part.tables = &table;
    g->result.answer = "Doubling the depth: 17.7% lower, up to 117.7% (5 runs each).";
    write_page(g, "html");
    const char *end = strstr(g->text.text, ">Evidence<"), *last = strstr(g->text.text, "model-l");
    assert_true(end && last && last < end);
    assert_true(strstr(g->text.text, "model-c") < end);
    assert_true(strstr(g->text.text, "model-e") > end);
    assert_contains(
        g->text.text,
        "4 of 12 rows: the first 3, then those that the answer quotes. Mean over runs.");
    g->result.answer = /* all that are shown */
        "Lower by 07.7%, 17.7%, rising to 107.7% and 117.7% (5 runs each).";
    lab_str_clear(&g->text);
    write_page(g, "html");
    assert_contains(g->text.text, "4 of 12 rows: those that the answer quotes. Mean over runs.");
    /* a quoted row that would have been the last one shown takes no other one's place */
    g->result.answer = "Doubling the depth: 37.7% lower, up to 117.7% (5 runs each).";
    lab_str_clear(&g->text);
    write_page(g, "html");
    end = strstr(g->text.text, ">Evidence<");
    assert_true(end && strstr(g->text.text, "model-d") < end);
    assert_true(strstr(g->text.text, "model-l") < end);
    assert_true(strstr(g->text.text, "model-b") < end);
    assert_true(strstr(g->text.text, "model-c") > end);
}

/* Given labels with the batch in them that points on two devices share, then sentences have the
 * model and the batch; what is inconclusive is marked wherever it stands in a cell. */
LAB_TEST(shared_labels_are_named_by_what_varies) {
    struct given *g = *state;
    struct fixture f;
    fixture_init(&f, "q", "q");
    for (int i = 0; i < 8; i++) {
        const char *model = i / 2 % 2 ? "large" : "medium", *batch = i / 4 ? "8" : "16";
        fixture_done(&f,
                     fixture_plan(&f, i % 2, 1, 0,
                                  lab_arena_printf(&f.arena, "mlp_%s_batch%s", model, batch)),
                     10, "", "");
        f.runs[i].options =
            lab_arena_printf(&f.arena, "{\"model\": \"%s\", \"batch_size\": %s}", model, batch);
    }
    struct lab_doc_cell cells[] = {lab_cell_text("a"),
                                   lab_cell_text("-4% [-7, 2], inconclusive; -9% [-10, -8]")};
    struct lab_analysis_part part;
    struct lab_doc_table table = given_models(g, &part, cells, 1);
    part.tables = &table;
    g->page.study = &f.study;
    g->result.answer = "Slow: cpu:0, mlp_medium_batch16.";
    write_page(g, "html");
    assert_contains(g->text.text, "Slow: cpu:0, medium, batch 16.");
    assert_contains(g->text.text, "−4% [−7, 2]?; −9% [−10, −8]");
    struct lab_chart_series series = {.title = "GPU 0, mlp_large_batch8"}; /* of a picture */
    struct lab_chart_panel panel = {.series = &series, .series_count = 1};
    struct lab_chart chart = {.panels = &panel, .panel_count = 1};
    lab_page_name_charts(&g->page, &chart, 1, &g->study.arena);
    assert_string_equal(chart.panels[0].series[0].title, "GPU 0, large, batch 8");
    fixture_release(&f);
}

/* Given sentences about columns, then those that the first screen has no room for have none. */
LAB_TEST(captions_are_of_columns_that_are_shown) {
    struct given *g = *state;
    static const struct lab_doc_column own[] = {{.key = "point", .title = "Point"},
                                                {.key = "p99", .title = "p99", .yields = 1},
                                                {.key = "drift", .title = "Drift"},
                                                {.key = "max", .title = "Max"},
                                                {.key = "gone", .hidden = "Gone"}};
    struct lab_doc_cell cells[] = {lab_cell_text("a"), lab_cell_text("1.1"), lab_cell_text("0.2%"),
                                   lab_cell_text("3.1"), lab_cell_text(NULL)};
    struct lab_doc_table table = {.key = "points",
                                  .title = "Points",
                                  .columns = own,
                                  .column_count = 5,
                                  .cells = cells,
                                  .row_count = 1};
    struct lab_analysis_part part = {.name = "all", .tables = &table, .table_count = 1};
    g->result.parts = &part;
    g->result.part_count = 1;
    g->result.column_count = 0;
    g->result.by_point =
        "±: 95% CI. Gone: of no row. p99: over the median. Drift: from start to end.";
    write_page(g, "html");
    const char *end = strstr(g->text.text, ">Evidence<"),
               *drift = strstr(g->text.text, "Drift: from start to end."),
               *p99 = strstr(g->text.text, "p99: over the median.");
    assert_true(drift && drift < end);
    assert_true(p99 && p99 > end);
    assert_null(strstr(g->text.text, "±: 95% CI"));
    assert_null(strstr(g->text.text, "Gone: of no row"));
}

/* Given a bound in the answer that other rows have, too, then the first rows are shown. */
LAB_TEST(a_bound_of_the_answer_selects_no_rows) {
    struct given *g = *state;
    enum { ROWS = 12 };
    struct lab_doc_cell cells[2 * ROWS];
    for (int i = 0; i < ROWS; i++) {
        cells[2 * i] = lab_cell_text(lab_arena_printf(&g->study.arena, "model-%c", 'a' + i));
        cells[2 * i + 1] = lab_cell_text(i < 6 ? "within ±1.0%" : "within ±0.2%");
    }
    struct lab_analysis_part part;
    struct lab_doc_table table = given_models(g, &part, cells, ROWS);
    part.tables = &table;
    g->result.answer = "No drift larger than 0.2%.";
    write_page(g, "html");
    const char *end = strstr(g->text.text, ">Evidence<");
    assert_true(end && strstr(g->text.text, "model-d") < end);
    assert_true(strstr(g->text.text, "model-e") > end);
    assert_contains(g->text.text, "First 4 of 12 rows. Mean over runs.");
}

/* Given a map of ten GPUs and four NUMA nodes, then the first screen has the two panels of a row. */
LAB_TEST(tall_maps_have_one_row_on_the_first_screen) {
    struct given *g = *state;
    struct lab_chart map = given_map(&g->study.arena, 10, 4, 6);
    g->result.charts = &map;
    g->result.chart_count = 1;
    write_page(g, "html");
    const char *at = strstr(g->text.text, "<svg"), *end = strstr(at, "</svg>");
    int panels = 0;
    for (; (at = strstr(at, "<g class=\"p\"")) && at < end; at++)
        panels++;
    assert_int_equal(panels, 2);
    assert_contains(g->text.text, "2 of 6 panels: all of them in the evidence.");
}

/* Given more charts than Markdown shows, then it links the others. */
LAB_TEST(markdown_has_all_charts) {
    struct given *g = *state;
    struct lab_chart *charts = given_charts(&g->study.arena);
    struct lab_plot plots[5];
    for (int i = 0; i < 5; i++)
        plots[i] = (struct lab_plot){.chart = &charts[i],
                                     .name = lab_arena_printf(&g->study.arena, "chart%d", i),
                                     .written = i != 1};
    g->analyses[0].plots = plots;
    g->analyses[0].plot_count = 5;
    write_page(g, "markdown");
    assert_contains(g->text.text, "(chart0.svg)\n");
    assert_contains(g->text.text, "](chart2.svg)\n");
    assert_contains(g->text.text, "\nMore charts: [");
    assert_contains(g->text.text, "(chart4.svg).\n");
    assert_null(strstr(g->text.text, "chart1"));
}

/* Given no settings to choose from, then the first screen has the rates, and of two devices that
 * differ that they do. A column without a value is in no table. */
LAB_TEST(rates_are_on_the_first_screen) {
    struct given *g = *state;
    g->page.advice = NULL;
    g->study.study.command = "";
    g->result.claim_count = 1;
    for (int i = 0; i < 3; i++)
        ((struct lab_doc_cell *)g->result.parts[i].cells)[1] = lab_cell_text(NULL);
    write_page(g, "html");
    assert_contains(g->text.text, "Nothing to change. All values:");
    const char *rates = strstr(g->text.text, "1002 to 1015");
    assert_true(rates && rates < strstr(g->text.text, ">Evidence<"));
    assert_int_equal(count_in_page(g, "Best node</th>"), 0);
    g->claims[0].kind = "recommend.device";
    g->claims[0].subject = "GPU 1";
    write_page(g, "html");
    assert_contains(g->text.text, "Find out why the two differ: GPU 1: 12.5% higher");
}

/* Given no analysis at all, or recordings without a study, then there still is a page. */
LAB_TEST(little_makes_a_page_too) {
    struct given *g = *state;
    g->page.analysis_count = 0;
    g->page.advice = NULL;
    write_page(g, "html");
    assert_contains(g->text.text, "<h1>4 of 4 runs succeeded");
    lab_str_clear(&g->text);
    g->page.study = NULL;
    write_page(g, "html");
    assert_contains(g->text.text, "<h1>No data to report.");
    g->page.analysis_count = 1;
    g->claims[1].verdict = LAB_CLAIM_INCONCLUSIVE;
    write_page(g, "html");
    assert_contains(g->text.text, "Inconclusive: <a href=\"index.html#inconclusive\">1 of 2 "
                                  "comparisons on the study&#39;s question</a>. The main answer "
                                  "isn&#39;t among them.");
    assert_contains(g->text.text, "<details id=\"inconclusive\"><summary>Inconclusive: 1 of 2 ");
    assert_contains(g->text.text, ">Runs needed</");
    g->claims[1].n = 5;
    static const int needed[] = {9, 4}; /* of 5 runs: fewer aren't what it needs */
    for (int i = 0; i < 2; i++) {
        g->claims[1].needed = needed[i];
        lab_str_clear(&g->text);
        write_page(g, "html");
        const char *row = strstr(strstr(g->text.text, ">Runs needed</"), "<tbody>");
        row = lab_arena_strndup(&g->study.arena, row, (size_t)(strstr(row, "</tr>") - row));
        assert_int_equal(strstr(row, ">9<") != NULL, i == 0);
        assert_null(strstr(row, ">4<"));
    }
    /* an analysis that nobody asked for has the open one: the totals of both are those of the fold */
    struct lab_claim decided = g->claims[0];
    struct lab_analysis_result asked = g->result;
    asked.claims = &decided;
    asked.claim_count = 1;
    g->analyses[1] = g->analyses[0];
    g->analyses[1].named = false;
    g->analyses[0] = (struct lab_page_analysis){.name = "it", .result = &asked, .named = true};
    g->page.analysis_count = 2;
    lab_str_clear(&g->text);
    write_page(g, "html");
    assert_contains(g->text.text, ">1 of 2 other comparisons</a>.");
    assert_contains(g->text.text, "<summary>Inconclusive: 1 of 3 comparisons (");
}

/* Given many parts, a chart and names of 200 letters, then the page and report.md have the first
 * rows, and say which file has all of them. */
LAB_TEST(many_parts_go_to_a_file) {
    struct given *g = *state;
    struct lab_arena *arena = &g->study.arena;
    struct lab_analysis_part *parts = lab_arena_alloc(arena, 500, sizeof *parts);
    static const struct lab_chart charts[] = {{.name = "none", .title = "Empty"}};
    for (int i = 0; i < 500; i++)
        parts[i] = make_part(arena, lab_arena_printf(arena, "GPU %0200d", i), 0.1);
    parts[300].name = "GPU 300"; /* which the answer names */
    g->result.answer = "GPU 300: 10.0% lower.";
    g->result.parts = parts;
    g->result.part_count = 500;
    g->result.charts = charts;
    g->result.chart_count = 1;
    write_page(g, "html");
    assert_true(g->text.length < 100000);
    assert_contains(g->text.text, "488 more rows: <a href=\"table_numa.csv\">");
    assert_contains(g->text.text, ">GPU 300</td>");
    assert_int_equal(count_in_page(g, "<figure"), 0);
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_true(count_lines(g->text.text) < 300);
    lab_str_clear(&g->text);
    assert_string_equal(lab_page_csv(&g->page, 0, 1, arena, &g->text), "table_numa_models.csv");
    assert_int_equal(count_lines(g->text.text), 1 + 1000);
    assert_null(lab_page_csv(&g->page, 0, 2, arena, &g->text));
}

/* Given 60,000 runs, then the page stays small enough to be sent, and says what it leaves out. */
LAB_TEST(page_stays_small) {
    struct given *g = *state;
    struct lab_run *runs = lab_mem_alloc(60000, sizeof *runs);
    for (int i = 0; i < 60000; i++) {
        runs[i] = g->study.runs[0];
        runs[i].id = lab_arena_printf(&g->study.arena, "gpu0_numa1_vit%d", i);
        runs[i].label = runs[i].id + strlen("gpu0_numa1_");
    }
    g->study.study.runs = runs;
    g->study.study.run_count = 60000;
    write_page(g, "html");
    assert_true(g->text.length < 500000);
    assert_contains(g->text.text, "more in runs.csv");
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_true(count_lines(g->text.text) < 300);
    lab_mem_free(runs);
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
