/* test_report_study.c: a study's end in the terminal, and report.md without analyses. */
#include "report/page/page.h"
#include "study_fixture.h"

static char *text_of(const struct fixture *f, struct lab_style style) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    struct lab_str out;
    lab_str_init(&out);
    lab_report_add_study(doc, &f->study, NULL, style, false);
    lab_doc_write(doc, "text", style, &out);
    return out.text;
}

static char *markdown_of(const struct fixture *f) {
    struct lab_str out;
    lab_str_init(&out);
    lab_report_study_markdown(&f->study, &out);
    return out.text;
}

static const struct lab_style narrow = {.columns = 80, .unicode = true};
static const struct lab_style wide = {.columns = 100, .unicode = true};

static const struct {
    const char *name;
    void (*make)(struct fixture *f);
} cases[] = {
    {"quick", fixture_quick},
    {"numa-running", fixture_numa_running},
    {"interrupted", fixture_interrupted},
    {"gangs", fixture_gangs},
    {"invalid", fixture_invalid},
    {"concurrent", fixture_concurrent},
    {"simulated", fixture_simulated},
    {"repeats", fixture_repeats},
    {"programs", fixture_programs},
};
#define CASE_COUNT (sizeof cases / sizeof *cases)

LAB_TEST(golden_files_hold) {
    static const struct {
        struct lab_style style;
        const char *suffix;
    } styles[] = {
        {{80, false, true}, "80"}, {{100, false, true}, "100"}, {{80, false, false}, "80-ascii"}};
    for (size_t i = 0; i < CASE_COUNT; i++) {
        struct fixture f;
        cases[i].make(&f);
        for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
            char *text = text_of(&f, styles[k].style), name[64];
            assert_fits(text, styles[k].style.columns);
            if (!styles[k].style.unicode)
                assert_ascii(text);
            snprintf(name, sizeof name, "study-%s-%s.txt", cases[i].name, styles[k].suffix);
            assert_golden(text, name);
            lab_mem_free(text);
        }
        fixture_release(&f);
    }
}

LAB_TEST(markdown_golden_files_hold) {
    for (size_t i = 0; i < CASE_COUNT; i++) {
        struct fixture f;
        cases[i].make(&f);
        char *text = markdown_of(&f), name[64];
        snprintf(name, sizeof name, "study-%s.md", cases[i].name);
        assert_golden(text, name);
        lab_mem_free(text);
        fixture_release(&f);
    }
}

static int count_lines(const char *text) {
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Given 10,000 runs, of which every 50th warns and every 1000th failed, each in its own words. */
static void fixture_large(struct fixture *f) {
    fixture_init(f, "large", "large");
    for (int i = 0; i < 10000; i++) {
        struct lab_run *run =
            fixture_plan(f, i % 8, 1, i % 2, lab_arena_printf(&f->arena, "vit16x%dx64", 1 + i / 8));
        if (i % 1000 == 0)
            fixture_failed(f, run,
                           lab_arena_printf(&f->arena, "the program says %c%c", 'a' + i / 1000,
                                            'a' + i / 1000),
                           LAB_HINT_PROGRAM_FAILED, 1);
        else
            fixture_done(f, run, 1e6 / (i + 1),
                         i % 50 ? "" : lab_arena_printf(&f->arena, "\"the load was %d.5 %%\"", i),
                         "");
    }
}

LAB_TEST(many_runs_stay_short) {
    struct fixture f;
    fixture_large(&f);
    char *text = text_of(&f, wide);
    assert_fits(text, 100);
    assert_int_equal(count_lines(text), 30); /* hints of failures among them */
    assert_contains(text, "large: 9990 of 10000 runs succeeded, 10 failed\n");
    assert_contains(text, " of 2500 rows shown (all: --verbose). Values: samples/s. 1 run per "
                          "point.\n");
    assert_contains(text,
                    "  Failed: 7 more runs, for other reasons: report/report.md has them all\n");
    assert_contains(text, "  Warning: 190 of 10000 runs: the load was up to ");
    lab_mem_free(text);
    text = markdown_of(&f);
    assert_true(count_lines(text) < 300);
    assert_contains(text, "; 187 more\n");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given two units, then each value has its own. */
LAB_TEST(units_are_not_mixed) {
    struct fixture f;
    fixture_quick(&f);
    f.runs[0].rate_unit = "iterations/s";
    char *text = text_of(&f, narrow);
    assert_contains(text, "  Model                     Rate     ±");
    assert_contains(text, "  vit0x0x0        3104 samples/s  0.8%");
    assert_contains(text, "  vit32x4x512  12.4 iterations/s  0.8%");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given a name of 200 characters, then every line fits and values are whole. */
LAB_TEST(long_names_are_cut) {
    struct fixture f;
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    fixture_init(&f, name, name);
    f.study.folder = "here";
    f.study.command = "again";
    for (int i = 0; i < 3; i++)
        fixture_done(&f,
                     fixture_plan(&f, i % 2, 1, 0, lab_arena_printf(&f.arena, "%s%d", name, i / 2)),
                     100 + i, lab_arena_printf(&f.arena, "\"%s\"", name), "");
    for (int columns = 60; columns <= 140; columns += 10) {
        char *text = text_of(&f, (struct lab_style){columns, false, true});
        assert_contains(text, " 101");
        assert_fits(text, columns);
        lab_mem_free(text);
    }
    fixture_release(&f);
}

/* Given a study whose claims compare each remote point with the local one, then rows are GPU and
 * NUMA node, models go across, and a remote cell is the change. */
LAB_TEST(a_numa_study_is_a_table_of_changes) {
    struct fixture f;
    fixture_numa(&f, 48);
    struct lab_claim claims[24];
    int count = 0;
    for (int gpu = 0; gpu < 4; gpu++)
        for (int i = 0; i < 6; i++) {
            const char **scope = lab_arena_alloc(&f.arena, 2, sizeof *scope);
            for (int node = 0; node < 2; node++)
                scope[node] =
                    lab_arena_printf(&f.arena, "gpu%d_numa%d_%s", gpu, 2 * node, fixture_vits[i]);
            struct lab_claim *claim = &claims[count++];
            *claim = lab_claim_none;
            claim->kind = "numa.cell";
            claim->reference = "NUMA node 0";
            claim->quantity = "throughput";
            claim->effect = i < 3 ? -0.125 : 0.002;
            claim->bound = 0.0081;
            claim->verdict = i < 3 ? LAB_CLAIM_YES : i < 5 ? LAB_CLAIM_NO : LAB_CLAIM_INCONCLUSIVE;
            claim->scope = scope;
            claim->scope_count = 2;
        }
    struct lab_analysis_part part = {.name = "all"};
    struct lab_analysis_result result = {
        .answer = "Bind GPUs 0–3 to NUMA node 0. Node 2: 12.5% lower throughput.",
        .parts = &part,
        .part_count = 1,
        .claims = claims,
        .claim_count = count};
    struct lab_page_analysis analysis = {.name = "numa", .result = &result};
    struct lab_page page = {.study = &f.study, .analyses = &analysis, .analysis_count = 1};
    struct lab_doc *doc = lab_doc_open(NULL, &f.arena);
    LAB_AUTO(str, text);
    lab_report_add_study(doc, &f.study, &page, wide, false);
    lab_doc_write(doc, "text", wide, &text);
    assert_fits(text.text, 100);
    assert_true(count_lines(text.text) <= 30);
    assert_golden(text.text, "study-numa-claims-100.txt");
    fixture_release(&f);
}

/* Given a warning of many outliers, then the longest of all runs is named, which is in another one. */
LAB_TEST(the_longest_iteration_is_named) {
    struct fixture f;
    fixture_init(&f, "numa_locality_study", "numa_study");
    for (int node = 0; node < 2; node++)
        fixture_done(&f, fixture_plan(&f, 0, 1, node, "vit32x2x128"), 100,
                     node ? ""
                          : "\"severe outliers: 3 of 97 measured times (3.1%), the longest 2.1 × "
                            "the median\"",
                     "");
    f.runs[1].result = result_from("{\"interval_ms\": {\"median\": 2, \"max\": 15.1}}", &f.arena);
    char *text = markdown_of(&f);
    assert_contains(text, "the longest 2.1 × the median. Longest of all runs: 7.55 × its median "
                          "(NUMA node 1)");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given GPUs that are each compared with their local NUMA node, another one for each, then the
 * table says that; of changes alone it names no unit. */
LAB_TEST(references_that_differ_are_the_local_nodes) {
    enum { GPUS = 20 };
    struct fixture f;
    fixture_init(&f, "numa_locality_study", "numa_study");
    struct lab_claim claims[GPUS];
    for (int gpu = 0; gpu < GPUS; gpu++) {
        int local = gpu % 2;
        const char **scope = lab_arena_alloc(&f.arena, 2, sizeof *scope);
        for (int node = 0; node < 2; node++) {
            struct lab_run *run = fixture_plan(&f, gpu, 1, node, "vit32x2x128");
            fixture_done(&f, run, 100, "", "");
            run->result =
                result_from(lab_arena_printf(
                                &f.arena, "{\"ranks\": [{\"numa_node\": %d, \"device_node\": %d}]}",
                                node, local),
                            &f.arena);
            scope[node == local ? 0 : 1] = run->id;
        }
        claims[gpu] = lab_claim_none;
        claims[gpu].kind = "numa.cell";
        claims[gpu].reference = local ? "NUMA node 1" : "NUMA node 0";
        claims[gpu].quantity = "throughput";
        claims[gpu].effect = -0.125;
        claims[gpu].verdict = LAB_CLAIM_YES;
        claims[gpu].scope = scope;
        claims[gpu].scope_count = 2;
    }
    struct lab_analysis_part part = {.name = "all"};
    struct lab_analysis_result result = {.answer = "Bind each GPU to its local NUMA node.",
                                         .parts = &part,
                                         .part_count = 1,
                                         .claims = claims,
                                         .claim_count = GPUS};
    struct lab_page_analysis analysis = {.name = "numa", .result = &result};
    struct lab_page page = {.study = &f.study, .analyses = &analysis, .analysis_count = 1};
    struct lab_doc *doc = lab_doc_open(NULL, &f.arena);
    LAB_AUTO(str, text);
    lab_report_add_study(doc, &f.study, &page, wide, false);
    lab_doc_write(doc, "text", wide, &text);
    assert_contains(text.text, "Change from the local NUMA node.");
    assert_null(strstr(text.text, "Values: samples/s"));
    fixture_release(&f);
}

/* Given devices that each ran from their own NUMA node, then one on another node is compared with
 * the reference, too: its node is no choice. */
LAB_TEST(a_device_on_its_own_node_has_its_change) {
    struct fixture f;
    fixture_init(&f, "quick_test", "quick_test");
    enum { GPUS = 3, MODELS = 2 };
    struct lab_claim claims[GPUS * MODELS];
    int count = 0;
    for (int m = 0; m < MODELS; m++) {
        const char *reference = NULL;
        for (int gpu = 0; gpu < GPUS; gpu++) {
            struct lab_run *run = fixture_plan(&f, gpu, 1, gpu / 2, fixture_vits[m]);
            fixture_done(&f, run, m ? 400 : 800, "", "");
            const char **scope = lab_arena_alloc(&f.arena, 2, sizeof *scope);
            scope[0] = reference = gpu == 0 ? run->id : reference;
            scope[1] = run->id;
            if (gpu == 0)
                continue;
            claims[count] = lab_claim_named(lab_claim_none, "recommend.placement", "placement",
                                            "GPU 0, NUMA node 0", "throughput");
            claims[count].effect = gpu == 2 ? -0.125 : -0.25;
            claims[count].verdict = LAB_CLAIM_YES;
            claims[count].scope = scope;
            claims[count++].scope_count = 2;
        }
    }
    struct lab_analysis_part part = {.name = "all"};
    struct lab_analysis_result result = {.answer = "Devices differ.",
                                         .parts = &part,
                                         .part_count = 1,
                                         .claims = claims,
                                         .claim_count = count};
    struct lab_page_analysis analysis = {.name = "recommend", .result = &result};
    struct lab_page page = {.study = &f.study, .analyses = &analysis, .analysis_count = 1};
    struct lab_doc *doc = lab_doc_open(NULL, &f.arena);
    LAB_AUTO(str, text);
    lab_report_add_study(doc, &f.study, &page, wide, false);
    lab_doc_write(doc, "text", wide, &text);
    assert_contains(text.text, "Change from GPU 0, NUMA node 0.");
    const char *other = strstr(text.text, "-12.5%");
    assert_non_null(other);
    assert_non_null(strstr(other + 1, "-12.5%"));
    fixture_release(&f);
}

/* Given only invalid runs, then their figures are shown under a banner. */
LAB_TEST(nothing_valid_has_a_banner) {
    struct fixture f;
    fixture_invalid(&f);
    f.runs[1].valid = false;
    char *text = text_of(&f, narrow), *markdown = markdown_of(&f);
    assert_contains(text, "3 of 3 runs succeeded, but all of them are invalid\n");
    assert_contains(text,
                    "  Invalid: no run of this study is valid, so the values of all are shown");
    assert_contains(text,
                    "  Invalid: 1 of 3 runs: its values must not be used, for an unknown reason\n");
    assert_contains(markdown, "\n> **Invalid:** no run of this study is valid");
    lab_mem_free(text);
    lab_mem_free(markdown);
    fixture_release(&f);
}

LAB_TEST(before_anything_has_ended) {
    struct fixture f;
    fixture_numa(&f, 0);
    char *text = text_of(&f, narrow), *markdown = markdown_of(&f);
    assert_contains(text, "numa_study: none of 48 runs has ended yet\n\n  Report ");
    assert_contains(text, "resumes in the same folder: 48 runs left\n");
    assert_contains(markdown, "| planned |\n");
    lab_mem_free(text);
    lab_mem_free(markdown);
    fixture_release(&f);

    fixture_init(&f, "empty", "empty");
    text = text_of(&f, narrow);
    markdown = markdown_of(&f);
    assert_contains(text, "empty: no runs\n");
    lab_mem_free(text);
    lab_mem_free(markdown);
    fixture_release(&f);
}

/* Given programs of which one has a rate and others a time alone, then the column is both. */
LAB_TEST(rates_and_times_share_a_column) {
    struct fixture f;
    fixture_programs(&f);
    f.runs[0].rate_unit = "tokens/s";
    char *text = text_of(&f, narrow), *markdown = markdown_of(&f);
    assert_contains(text, "Rate or time");
    assert_contains(markdown, "| Rate or time |");
    lab_mem_free(text);
    lab_mem_free(markdown);
    fixture_release(&f);
}

/* Given several failures in words of their own that one hint fits, then it is given once. */
LAB_TEST(a_hint_is_given_once) {
    struct fixture f;
    fixture_init(&f, "mine", "mine");
    fixture_failed(&f, fixture_plan(&f, 0, 1, 0, "a"), "the program says no",
                   LAB_HINT_PROGRAM_FAILED, 1);
    fixture_failed(&f, fixture_plan(&f, 0, 1, 0, "b"), "the program says never",
                   LAB_HINT_PROGRAM_FAILED, 1);
    char *text = text_of(&f, narrow);
    assert_contains(text, "  Failed: gpu0_numa0_a: the program says no\n"
                          "  Failed: gpu0_numa0_b: the program says never\n"
                          "    → Its logs/<run>.stderr and logs/<run>.stdout say why, mostly at "
                          "their ends.\n");
    lab_mem_free(text);
    fixture_release(&f);
}

LAB_TEST(all_failed_alike_is_said_once) {
    struct fixture f;
    fixture_init(&f, "mine", "mine");
    for (int i = 0; i < 3; i++)
        fixture_failed(&f, fixture_plan(&f, i, 1, 0, "vit0x0x0"), "the program ended with status 3",
                       LAB_HINT_PROGRAM_FAILED, 1);
    char *text = text_of(&f, narrow);
    assert_contains(text, "mine: none of 3 runs succeeded, 3 failed\n");
    assert_contains(text, "  Failed: all 3 runs: the program ended with status 3\n"
                          "    → Its logs/<run>.stderr and logs/<run>.stdout say why, mostly at "
                          "their ends.\n");
    assert_contains(text, "tries the 3 failed runs again, in the same folder\n");
    assert_null(strstr(text, "±"));
    lab_mem_free(text);
    fixture_release(&f);
}

/* Whatever stands in an error, Markdown shows it and the table keeps its columns. */
LAB_TEST(markdown_is_escaped) {
    struct fixture f;
    fixture_init(&f, "mine", "mine");
    struct lab_run *run = fixture_plan(&f, 0, 1, 0, "a|b`c");
    fixture_failed(&f, run, "<b>bold</b> | *star* _under_ snake_case [x](y)\nsecond `line` #1",
                   LAB_HINT_NONE, 1);
    char *markdown = markdown_of(&f);
    assert_contains(markdown, "| a\\|b\\`c | 0 | – | – | – | failed |\n");
    assert_contains(markdown, "- \\<b\\>bold\\</b\\> \\| \\*star\\* \\_under\\_ snake_case "
                              "\\[x\\](y) second \\`line\\` \\#1\n");
    lab_mem_free(markdown);
    fixture_release(&f);
}

/* A result without values costs its figures, nothing else. */
LAB_TEST(empty_results_are_survived) {
    struct fixture f;
    fixture_quick(&f);
    static const char *const texts[] = {"{}", "{\"latency_ms\": 7, \"warnings\": {}}",
                                        "{\"warnings\": [1, null, [\"x\"]]}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        f.runs[2].result = result_from(texts[i], &f.arena);
        char *text = text_of(&f, narrow);
        assert_contains(text, "124  0.8%            –\n");
        assert_null(strstr(text, "Warning"));
        lab_mem_free(text);
    }
    f.runs[2].result = NULL;
    char *text = text_of(&f, narrow);
    assert_contains(text, "  vit32x2x256        124  0.8%");
    lab_mem_free(text);
    fixture_release(&f);
}

LAB_TEST(colour_changes_no_letter) {
    struct fixture f;
    fixture_numa_running(&f);
    char *plain = text_of(&f, narrow), *coloured = text_of(&f, (struct lab_style){80, true, true});
    struct lab_str stripped;
    lab_str_init(&stripped);
    for (const char *c = coloured; *c; c++) {
        if (*c == '\033')
            c += strcspn(c, "m");
        else
            lab_str_add_bytes(&stripped, c, 1);
    }
    assert_string_equal(stripped.text, plain);
    assert_string_not_equal(coloured, plain);
    lab_str_release(&stripped);
    lab_mem_free(coloured);
    lab_mem_free(plain);
    fixture_release(&f);
}

/* Three significant digits, however large or small. */
LAB_TEST(rates_have_three_or_four_digits) {
    static const struct {
        double rate;
        const char *text;
    } rows[] = {
        {0.001234, " 0.00123 "}, {0.9999, " 1.00 "}, {9.999, " 10.0 "},  {99.96, " 100 "},
        {310.4, " 310 "},        {3104, " 3104 "},   {31049, " 31.0k "}, {999600, " 1.00M "},
        {1234567, " 1.23M "},    {0, " 0.00"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        fixture_init(&f, "q", "q");
        fixture_done(&f, fixture_plan(&f, 0, 1, 0, "x"), rows[i].rate, "", "");
        char *text = text_of(&f, narrow);
        assert_contains(text, rows[i].text);
        lab_mem_free(text);
        fixture_release(&f);
    }
}

/* Given one iteration, then its rate is a guess; but a program's is of the lines that it printed. */
LAB_TEST(programs_that_train_once_have_enough_iterations) {
    struct fixture f;
    fixture_init(&f, "q", "q");
    struct lab_run *run = fixture_plan(&f, 0, 1, 0, "a");
    fixture_done(&f, run, 10, "", "");
    run->iterations = 1;
    run->rate_unit = "tokens/s";
    char *text = text_of(&f, wide);
    assert_contains(text, "only 1 iteration each (++experiment.test.");
    lab_mem_free(text);
    run->workload = "command";
    text = text_of(&f, wide);
    assert_null(strstr(text, "only 1 iteration"));
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given warnings that quote lines of output, then a number in such a line is no share. */
LAB_TEST(a_line_that_a_warning_quotes_stays_as_it_is) {
    struct fixture f;
    fixture_init(&f, "q", "q");
    fixture_done(&f, fixture_plan(&f, 0, 1, 0, "a"), 10, "\"its line 'goal 0.8 at 1'\"", "");
    fixture_done(&f, fixture_plan(&f, 0, 2, 0, "b"), 10, "\"its line 'goal 0.9 at 1'\"", "");
    char *text = text_of(&f, wide);
    assert_contains(text, "Warning: all 2 runs, e.g. its line 'goal 0.8 at 1'\n");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given a warning that is longer than a line, then no short clause is all that is left of it. */
LAB_TEST(a_long_warning_is_cut_behind_most_of_it) {
    struct fixture f;
    fixture_init(&f, "q", "q");
    for (int i = 0; i < 28; i++)
        fixture_done(&f, fixture_plan(&f, 0, i, 0, "a"), 10,
                     "\"tuning: the budget was too short to time 2 correct configurations for an "
                     "interval\"",
                     "");
    char *text = text_of(&f, narrow);
    assert_contains(text, "Warning: all 28 runs: tuning: the budget was too short to time 2 ");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given warnings of several runs, then a rank stands there only where all have it; the machine's
 * load is no rank's, and runs of few iterations are counted. */
LAB_TEST(warnings_of_several_runs_name_no_single_rank) {
    struct fixture f;
    fixture_init(&f, "q", "q");
    fixture_done(&f, fixture_plan(&f, 0, 1, 0, "a"), 10,
                 "\"severe outliers: 3 of 97 measured times (3.1%)\"", "");
    fixture_done(&f, fixture_plan(&f, 0, 2, 0, "b"), 10,
                 "\"rank 3: severe outliers: 9 of 97 measured times (9.3%)\", \"rank 1: late by 2 "
                 "ms\", \"rank 0: other processes took 9.1% of it\"",
                 "");
    fixture_done(&f, fixture_plan(&f, 0, 2, 0, "c"), 10, "\"rank 1: late by 5 ms\"", "");
    f.runs[0].iterations = 1;
    f.runs[2].iterations = 5;
    char *text = text_of(&f, wide);
    /* other work on the machine comes first, in however few runs */
    assert_contains(text, "Warning: 1 of 3 runs: other processes took 9.1% of it\n"
                          "  Warning: 2 of 3 runs: severe outliers, up to 9.3% of a run's times\n");
    assert_contains(text, "Warning: 2 of 3 runs, e.g. rank 1: late by 2 ms\n");
    lab_mem_free(text);
    text = markdown_of(&f);
    assert_contains(text, "only 1 to 5 iterations each (++experiment.test.");
    f.runs[0].iterations = f.runs[2].iterations = 6;
    lab_mem_free(text);
    text = text_of(&f, wide);
    assert_contains(text, "Warning: 1 of 3 runs: other processes took 9.1% of it\n");
    assert_null(strstr(text, "iterations each"));
    lab_mem_free(text);
    text = markdown_of(&f);
    assert_contains(text, "9 of 97 measured times (9.3%) (the run with most)\n");
    lab_mem_free(text);
    fixture_release(&f);
}

/* Given a model whose label has the batch in it, then points differ by that alone. */
LAB_TEST(a_batch_in_a_label_is_an_axis_of_its_own) {
    struct fixture f;
    fixture_init(&f, "q", "q");
    fixture_done(&f, fixture_plan(&f, 0, 1, 0, "gpt2_1x8x8_batch10"), 10, "", "");
    fixture_done(&f, fixture_plan(&f, 0, 1, 0, "gpt2_1x8x8_batch16x2"), 10, "", "");
    f.runs[1].options = "{\"batch_size\": 16, \"depth\": 6, \"memory_size_mb\": 512}";
    char *text = text_of(&f, wide);
    assert_contains(text, "\n  Batch ");
    assert_null(strstr(text, "Model"));
    lab_mem_free(text);
    fixture_release(&f);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
