/* One document in every format: what each shows, leaves out, and takes as it stands. */
#include "base/tty/safe_text.h"
#include "doc/doc.h"
#include "doc/stream.h"

#include <math.h>
#include <string.h>

#include "test.h"

static const struct lab_style wide = {.columns = 80, .unicode = true};

static const struct lab_doc_column columns[] = {
    {"device", "Device"},
    {"rate_gb_per_s", "Rate", LAB_UNIT_RATE, .with_interval = true},
    {"secret", NULL, LAB_UNIT_COUNT},
};

struct given {
    struct lab_arena arena;
    struct lab_doc *doc;
    struct lab_str text;
};

static int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    lab_arena_init(&g->arena);
    lab_str_init(&g->text);
    g->doc = lab_doc_open("Copies", &g->arena);
    *state = g;
    return 0;
}

static int end(void **state) {
    struct given *g = *state;
    lab_str_release(&g->text);
    lab_arena_release(&g->arena);
    lab_mem_free(g);
    return 0;
}

static const char *write(struct given *g, const char *format, struct lab_style style) {
    lab_str_clear(&g->text);
    lab_doc_write(g->doc, format, style, &g->text);
    return g->text.text;
}

static void add_row(struct given *g, const char *device, double rate) {
    lab_doc_cell(g->doc, "%s", device);
    lab_doc_add(g->doc,
                (struct lab_doc_cell){
                    .value = rate, .low = 0.9 * rate, .high = 1.1 * rate, .confidence = 0.95});
    lab_doc_figure(g->doc, 7);
}

/* Given an answer, a section of figures and a note, … */
static void fill(struct given *g) {
    static const char *const notes[] = {"copies < 1 MiB aren't counted", NULL};
    lab_doc_text_as(g->doc, "answer", LAB_DOC_SAYS, "Copies reach 25 GB/s.");
    lab_doc_begin(g->doc, (struct lab_doc_section){.title = "Devices", .about = "2 of them"});
    lab_doc_gap(g->doc);
    lab_doc_rows(g->doc, "devices", NULL, columns, 3);
    add_row(g, "cuda:0", 25e9);
    add_row(g, "cuda_1", NAN);
    lab_doc_gap(g->doc);
    lab_doc_notes(g->doc, "notes", notes, false);
    lab_doc_end(g->doc);
}

LAB_TEST(text_shows_what_has_a_title) {
    struct given *g = *state;
    fill(g);
    assert_string_equal(write(g, "text", wide), "Copies reach 25 GB/s.\n"
                                                "\n"
                                                "Devices (2 of them)\n"
                                                "\n"
                                                "  Device               Rate\n"
                                                "  ──────  ─────────────────\n"
                                                "  cuda:0  25.0 GB/s ± 10.0%\n"
                                                "  cuda_1                  –\n"
                                                "\n"
                                                "  ! copies < 1 MiB aren't counted\n");
    assert_contains(write(g, "text", (struct lab_style){.columns = 80}),
                    "  cuda:0  25.0 GB/s +- 10.0%\n");
}

LAB_TEST(markdown_escapes_and_nests) {
    struct given *g = *state;
    fill(g);
    assert_string_equal(write(g, "markdown", wide), "# Copies\n"
                                                    "\n"
                                                    "Copies reach 25 GB/s.\n"
                                                    "\n"
                                                    "## Devices\n"
                                                    "\n"
                                                    "| Device | Rate |\n"
                                                    "|---|--:|\n"
                                                    "| cuda:0 | 25.0 GB/s ± 10.0% |\n"
                                                    "| cuda_1 | – |\n"
                                                    "\n"
                                                    "- copies \\< 1 MiB aren't counted\n");
}

/* Values have a minus sign; dates, names, options and code keep their hyphens. */
LAB_TEST(values_below_zero_have_a_minus_sign) {
    static const char *const cases[][2] = {
        {"-5.9% [-6.2, -5.6] (-1)", "−5.9% [−6.2, −5.6] (−1)"},
        {"2026-11-18, l40s-10, -n 3, 4-7, a - 1", "2026-11-18, l40s-10, -n 3, 4-7, a - 1"},
        {"`head -5` -5", "`head -5` −5"},
    };
    for (int i = 0; i < 3; i++) {
        LAB_AUTO(str, text);
        lab_safe_text_add_signed(&text, cases[i][0]);
        assert_string_equal(text.text, cases[i][1]);
    }
}

LAB_TEST(page_takes_nothing_as_code) {
    struct given *g = *state;
    fill(g);
    lab_doc_marked(g->doc, LAB_DOC_FAINT, "See [x.json](../x.json), `a<b`, **so** and \\*.");
    static const struct lab_doc_column named[] = {{.title = "a\\_b", .marked = true}};
    lab_doc_rows(g->doc, NULL, NULL, named, 1);
    lab_doc_cell(g->doc, "1\\_2");
    const char *page = write(g, "html", wide);
    static const char *const parts[] = {
        "<th>a_b</th>",
        "<title>Copies</title>",
        "<p class=\"says\">Copies reach 25 GB/s.</p>",
        "<td class=\"figure\">25.0 GB/s ± 10.0%</td>",
        "<li>copies &lt; 1 MiB aren&#39;t counted</li>",
        "<a href=\"../x.json\">x.json</a>, <code>a&lt;b</code>, <strong>so</strong> and *.</p>",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(page, parts[i]))
            fail_msg("no %s in %s", parts[i], strstr(page, "<body>"));
}

/* Given five columns, then a phone has those that don't yield; of four it has all. */
LAB_TEST(a_phone_has_the_results) {
    struct given *g = *state;
    static const struct lab_doc_column five[] = {{.title = "Model"},
                                                 {.title = "Runs", .yields = 2},
                                                 {.title = "Node", .yields = 1},
                                                 {.title = "Rate"},
                                                 {.title = "Change"}};
    for (int count = 5; count >= 3; count -= 2) {
        lab_doc_rows(g->doc, NULL, NULL, five + 5 - count, (size_t)count);
        for (int c = 0; c < count; c++)
            lab_doc_cell(g->doc, "%d", c);
    }
    const char *page = write(g, "html", wide);
    assert_contains(page, "<th>Model</th><th class=\"yields\">Runs</th><th>Node</th>");
    assert_contains(page, "<tr><th>Node</th>");
}

LAB_TEST(programs_get_keys_and_scaled_figures) {
    struct given *g = *state;
    fill(g);
    struct lab_value *map = lab_doc_value(g->doc, &g->arena);
    assert_string_equal(lab_value_get(map, "answer")->string, "Copies reach 25 GB/s.");
    const struct lab_value *rows = lab_value_get(map, "devices");
    assert_int_equal(rows->count, 2);
    assert_float_equal(lab_value_get(rows->items[0], "rate_gb_per_s")->number, 25, 1e-9);
    const struct lab_value *interval = lab_value_get(rows->items[0], "rate_gb_per_s_interval");
    assert_float_equal(lab_value_get(interval, "high")->number, 27.5, 1e-9);
    assert_int_equal(lab_value_get(rows->items[0], "secret")->integer, 7);
    assert_int_equal(lab_value_get(rows->items[1], "rate_gb_per_s")->type, LAB_VALUE_NULL);
    assert_int_equal(lab_value_get(map, "notes")->count, 1);
    assert_contains(write(g, "json", wide), "{\n  \"schema\": 1,\n  \"answer\": ");
}

/* Given blocks for some readers, then others don't see them. */
LAB_TEST(readers_see_what_is_theirs) {
    struct given *g = *state;
    static const unsigned readers[] = {LAB_DOC_TERMINAL, LAB_DOC_PAPER, LAB_DOC_SCREEN};
    static const char *const formats[] = {"text", "markdown", "html"};
    for (int i = 0; i < 3; i++) {
        lab_doc_only(g->doc, readers[i]);
        lab_doc_text(g->doc, LAB_DOC_PLAIN, "only %s", formats[i]);
    }
    for (int i = 0; i < 3; i++) {
        const char *text = write(g, formats[i], wide);
        for (int k = 0; k < 3; k++)
            assert_int_equal(strstr(text, lab_arena_printf(&g->arena, "only %s", formats[k])) != 0,
                             i == k);
    }
}

/* Given lines behind labels, then they wrap behind them; what is to be pasted stays whole. */
LAB_TEST(lines_stand_behind_their_labels) {
    struct given *g = *state;
    lab_doc_line(g->doc, "Time", "%s", "one two three four five");
    lab_doc_line(g->doc, "Nothing", "%s", "");
    lab_doc_line_whole(g->doc, "Go on", "%s", "gpulab run with words that are not to be broken");
    assert_string_equal(write(g, "text", (struct lab_style){.columns = 26, .unicode = true}),
                        "  Time      one two three\n"
                        "            four five\n"
                        "  Go on     gpulab run with words that are not to be broken\n");
}

/* Given a table that is too wide, then the columns that yield go, and words are cut; figures
 * aren't. */
LAB_TEST(tables_fit) {
    struct given *g = *state;
    static const struct lab_doc_column some[] = {{NULL, "Name"},
                                                 {NULL, "Time", LAB_UNIT_FIGURE},
                                                 {NULL, "Place", .yields = 1},
                                                 {NULL, "Remark", .optional = true}};
    lab_doc_rows(g->doc, NULL, NULL, some, 4);
    for (int i = 1; i < 3; i++) {
        lab_doc_cell(g->doc, "a device called %d of many", i);
        lab_doc_cell(g->doc, "%s", i == 1 ? "123456789 ms" : "5 ms");
        lab_doc_cell(g->doc, "here");
        lab_doc_cell(g->doc, "–");
    }
    assert_string_equal(write(g, "text", wide),
                        "  Name                               Time  Place\n"
                        "  ─────────────────────────  ────────────  ─────\n"
                        "  a device called 1 of many  123456789 ms  here\n"
                        "  a device called 2 of many          5 ms  here\n");
    assert_string_equal(write(g, "text", (struct lab_style){.columns = 30, .unicode = true}),
                        "  Name                        Time\n"
                        "  ──────────────────  ────────────\n"
                        "  a device called 1…  123456789 ms\n"
                        "  a device called 2…          5 ms\n");
}

/* Given a table that is too wide, then its rates' unit goes to the title; names stay whole as long as
 * other texts can be cut, whatever the width is. */
LAB_TEST(names_stay_whole) {
    struct given *g = *state;
    static const struct lab_doc_column some[] = {{NULL, "#", LAB_UNIT_COUNT},
                                                 {NULL, "Model"},
                                                 {NULL, "Throughput", LAB_UNIT_PER_SECOND},
                                                 {NULL, "Remark"}};
    lab_doc_rows(g->doc, NULL, NULL, some, 4);
    for (int i = 1; i < 3; i++) {
        lab_doc_figure(g->doc, i);
        lab_doc_cell(g->doc, "vit32x6x512 of %d", i);
        lab_doc_figure(g->doc, 1000 * i);
        lab_doc_cell(g->doc, "measured on a busy machine");
    }
    assert_string_equal(write(g, "text", (struct lab_style){.columns = 46, .unicode = true}),
                        "  #  Model             samples/s  Remark\n"
                        "  ─  ────────────────  ─────────  ────────────\n"
                        "  1  vit32x6x512 of 1       1000  measured on…\n"
                        "  2  vit32x6x512 of 2       2000  measured on…\n");
}

/* Given a table that says where the rest is, then the last columns go where nothing can be cut. */
LAB_TEST(tables_with_more_elsewhere_lose_columns) {
    struct given *g = *state;
    static const struct lab_doc_column some[] = {{NULL, "Name"},
                                                 {NULL, "Time", LAB_UNIT_FIGURE},
                                                 {NULL, "Rate", LAB_UNIT_FIGURE},
                                                 {NULL, "Runs", LAB_UNIT_FIGURE}};
    lab_doc_rows(g->doc, NULL, NULL, some, 4)->more = "More columns: elsewhere.";
    for (int c = 0; c < 4; c++)
        lab_doc_cell(g->doc, "123456");
    assert_string_equal(write(g, "text", (struct lab_style){.columns = 24}),
                        "  Name      Time    Rate\n"
                        "  ------  ------  ------\n"
                        "  123456  123456  123456\n"
                        "  More columns: elsewhere.\n");
}

/* Given columns that are to be seen all, then those that don't fit go below. */
LAB_TEST(tables_fold) {
    struct given *g = *state;
    static const struct lab_doc_column some[] = {{NULL, "Name"},
                                                 {NULL, "Time", LAB_UNIT_FIGURE},
                                                 {NULL, "Rate", LAB_UNIT_FIGURE},
                                                 {NULL, "None", LAB_UNIT_FIGURE, .optional = true},
                                                 {NULL, "Runs", LAB_UNIT_FIGURE}};
    lab_doc_rows(g->doc, NULL, NULL, some, 5)->folds = true;
    for (int c = 0; c < 5; c++)
        lab_doc_cell(g->doc, "%s", c == 3 ? "–" : "123456");
    assert_string_equal(write(g, "text", (struct lab_style){.columns = 24}),
                        "  Name      Time    Rate\n"
                        "  ------  ------  ------\n"
                        "  123456  123456  123456\n"
                        "\n"
                        "  Name      Runs\n"
                        "  ------  ------\n"
                        "  123456  123456\n");
}

/* Given names that differ behind the 40th column, then they still do when they are cut. */
LAB_TEST(cut_names_differ) {
    static const struct lab_doc_column some[] = {{NULL, "Run"}, {NULL, "Time", LAB_UNIT_FIGURE}};
    static const char *const cases[][2][2] = {
        {{"gpu0_numa0_model8_learning_rate3_batch_size_of_all1", "all1 "},
         {"gpu0_numa0_model8_learning_rate3_batch_size_of_all2", "all2 "}},
        {{"a name of one term only that is far too long for it 1 of two", "1 of two "},
         {"a name of one term only that is far too long for it 2 of two", "2 of two "}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given *g = *state;
        g->doc = lab_doc_open("Runs", &g->arena);
        lab_doc_rows(g->doc, NULL, NULL, some, 2);
        for (int r = 0; r < 2; r++) {
            lab_doc_cell(g->doc, "%s", cases[i][r][0]);
            lab_doc_cell(g->doc, "5 ms");
        }
        const char *text = write(g, "text", (struct lab_style){.columns = 50, .unicode = true});
        for (int r = 0; r < 2; r++)
            assert_contains(text, cases[i][r][1]);
    }
}

LAB_TEST(formats_are_found_by_file_names) {
    static const char *const names[][2] = {
        {"a/b.md", "markdown"}, {"x.html", "html"}, {"json", "json"}, {"y.txt", "text"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(lab_doc_format_find(names[i][0])->name, names[i][1]);
    assert_null(lab_doc_format_find("x.pdf"));
    assert_null(lab_doc_format_find("x.csv")); /* rows only, as documents alone in text */
    assert_string_equal(lab_doc_row_format_find("a.jsonl")->name, "jsonl");
    assert_null(lab_doc_row_format_find("text"));
}

/* --- streams --- */

static const char *write_rows(struct given *g, const char *format) {
    static const struct lab_doc_column some[] = {
        {"name"}, {NULL, "For people"}, {"time_ms", .unit = LAB_UNIT_TIME}, {"n"}, {"of, all"}};
    struct lab_doc_stream stream;
    struct lab_doc_cell data = {.data = lab_value_list(&g->arena)};
    lab_value_append(&g->arena, data.data, lab_value_string(&g->arena, "x"));
    const struct lab_doc_cell cells[] = {
        lab_cell_text("a \"b\""),
        lab_cell_text("?"),
        lab_cell_figure(0.0125),
        lab_cell_exact(-1500, 3),
        data,
        lab_cell_text(NULL),
        lab_cell_text("?"),
        lab_cell_figure(NAN),
        lab_cell_exact(INT64_MIN, 0),
        lab_cell_flag(true),
    };
    lab_str_clear(&g->text);
    lab_doc_stream_begin(&stream, lab_doc_row_format_find(format), some, 5, &g->text);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        lab_doc_stream_add(&stream, cells[i]);
    return g->text.text;
}

/* Given rows with signs, figures, exact figures, lists and gaps, then a format of rows writes what
 * programs read back. */
LAB_TEST(rows_are_written_one_by_one) {
    assert_string_equal(write_rows(*state, "csv"), "name,time_ms,n,\"of, all\"\n"
                                                   "\"a \"\"b\"\"\",12.5,-1.500,\"[\"\"x\"\"]\"\n"
                                                   ",,-9223372036854775808,true\n");
    assert_string_equal(
        write_rows(*state, "jsonl"),
        "{\"name\": \"a \\\"b\\\"\", \"time_ms\": 12.5, \"n\": -1.500, \"of, all\": [\"x\"]}\n"
        "{\"name\": null, \"time_ms\": null, \"n\": -9223372036854775808, \"of, all\": true}\n");
}

/* Given texts of a hostile database, then nothing steers a terminal or a spreadsheet. */
LAB_TEST(hostile_texts_are_harmless) {
    static const struct {
        const char *text, *csv, *markdown;
    } cases[] = {
        {"a\033[31mb\x9b"
         "c",
         "a?[31mb?c", "a?\\[31mb?c"},
        {"x\xe2\x80\xaey", "x?y", "x?y"},
        {"=1+1", "'=1+1", "=1+1"},
        {"@SUM(A1)", "'@SUM(A1)", "@SUM(A1)"},
        {"+cmd,\"x\"", "\"'+cmd,\"\"x\"\"\"", "+cmd,\"x\""},
        {"-cmd", "'-cmd", "-cmd"},
        {"-1.5", "-1.5", "-1.5"},
        {"-", "-", "-"},
        {"\xc3\xa4 \xe2\x80\x93", "\xc3\xa4 \xe2\x80\x93", "\xc3\xa4 \xe2\x80\x93"},
    };
    static const struct lab_doc_column column[] = {{"t", "T"}};
    struct given *g = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_doc_stream stream;
        lab_str_clear(&g->text);
        lab_doc_stream_begin(&stream, lab_doc_row_format_find("csv"), column, 1, &g->text);
        lab_doc_stream_add(&stream, lab_cell_text(cases[i].text));
        assert_string_equal(g->text.text, lab_arena_printf(&g->arena, "t\n%s\n", cases[i].csv));
        struct lab_doc *doc = lab_doc_open(cases[i].text, &g->arena);
        lab_str_clear(&g->text);
        lab_doc_write(doc, "markdown", wide, &g->text);
        assert_string_equal(g->text.text, lab_arena_printf(&g->arena, "# %s\n", cases[i].markdown));
    }
}

LAB_TEST(a_document_is_written_as_it_goes) {
    struct given *g = *state;
    struct lab_doc_tree tree = {.out = &g->text};
    lab_doc_tree_begin(&tree, NULL, '{', LAB_DOC_BROKEN);
    lab_doc_tree_begin(&tree, "none", '[', LAB_DOC_BROKEN);
    lab_doc_tree_end(&tree);
    lab_doc_tree_begin(&tree, "rows", '[', LAB_DOC_BROKEN);
    for (int i = 0; i < 2; i++) {
        lab_doc_tree_begin(&tree, NULL, '{', LAB_DOC_INLINE);
        lab_doc_tree_cell(&tree, "name", lab_cell_text("x"));
        lab_doc_tree_begin(&tree, "times", '[', LAB_DOC_FILLED);
        lab_doc_tree_cell(&tree, NULL, lab_cell_exact(5, 1));
        lab_doc_tree_cell(&tree, NULL, lab_cell_figure(INFINITY));
        lab_doc_tree_end(&tree);
        lab_doc_tree_end(&tree);
    }
    lab_doc_tree_end(&tree);
    lab_doc_tree_end(&tree);
    assert_string_equal(g->text.text,
                        "{\n  \"none\": [],\n  \"rows\": [\n"
                        "    {\"name\": \"x\", \"times\": [\n      0.5,\n      null]},\n"
                        "    {\"name\": \"x\", \"times\": [\n      0.5,\n      null]}\n"
                        "  ]\n}\n");
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
