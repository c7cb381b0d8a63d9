/* A whole report: page, Markdown, advice and terminal say the same; nothing in them is taken as
 * code. */
#include "study_fixture.h"
#include "unit/plot/chart_fixture.h"

#include "report/page/page.h"

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
    struct lab_claim claims[2];
    struct lab_advice advice;
    struct lab_advice_line lines[2];
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
    return (struct lab_analysis_part){.name = name,
                                      .about = "cuda:0",
                                      .answer =
                                          lab_arena_printf(arena, "Bind %s to NUMA node 1.", name),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = 2,
                                      .notes = notes};
}

/* Two devices that are bound to node 1, one node that was not tested. */
static void advise(struct given *g) {
    static const char *const names[] = {"GPU 0", "GPU 1"};
    for (int i = 0; i < 2; i++) {
        g->claims[0] = lab_claim_none;
        g->claims[0].kind = "numa.penalty";
        g->claims[0].reference = "NUMA node 0";
        g->claims[0].effect = 0.125;
        g->claims[0].low = 0.107;
        g->claims[0].high = 0.138;
        g->claims[0].n = 5;
        g->claims[0].verdict = LAB_CLAIM_YES;
        g->lines[i] = (struct lab_advice_line){
            .device = names[i],
            .numa_node = 1,
            .cpus = i ? "16-31" : NULL,
            .plain = i ? "CUDA_VISIBLE_DEVICES=1 numactl --cpunodebind=1 --membind=1 PROGRAM"
                       : "CUDA_VISIBLE_DEVICES=0 numactl --cpunodebind=1 --membind=1 PROGRAM",
            .gain = g->claims[0]};
    }
    g->claims[1] = lab_claim_none;
    g->claims[1].subject = "GPU 1, NUMA node 0";
    g->advice = (struct lab_advice){
        .lines = g->lines, .line_count = 2, .all = {.torchrun = "torchrun gpulab bind PROGRAM"}};
    g->result.claims = g->claims;
    g->result.claim_count = 2;
    g->page.advice = &g->advice;
}

static int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    fixture_setup(NULL);
    fixture_init(&g->study, "numa_locality_study", "numa_study");
    g->study.study.gpu_count = g->study.study.node_count = 4;
    g->study.study.names = "vit32x2x128: patch 32, depth 2, width 128.";
    struct lab_arena *arena = &g->study.arena;
    for (int i = 0; i < 4; i++)
        fixture_done(&g->study, fixture_plan(&g->study, i % 2, 1, i / 2, "vit32x2x128"),
                     1000.0 + 10 * i, "", "");
    static const char *const notes[] = {"One run of a point tells nothing of another.", NULL};
    struct lab_analysis_part *parts = lab_arena_alloc(arena, 3, sizeof *parts);
    for (int i = 0; i < 3; i++)
        parts[i] = make_part(arena, lab_arena_printf(arena, "GPU %d", i), 0.124 - 0.06 * i);
    g->result = (struct lab_analysis_result){
        .answer = "Bind GPU 0 to NUMA node 1: node 0 has 12.4% lower throughput, \"<b>\" & more.",
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
    g->page = (struct lab_page){.title = "numa_study",
                                .study = &g->study.study,
                                .analyses = g->analyses,
                                .analysis_count = 2,
                                .source = g->study.study.folder,
                                .folder = "/nowhere",
                                .config = "experiment:\n  name: \"a<b>\"\n",
                                .order = "random",
                                .question = "Which NUMA node should each GPU be bound to?",
                                .version = "0.3.0"};
    advise(g);
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

/* The body alone: neither style nor script. */
static int count_in_page(const struct given *g, const char *text) {
    const char *at = strstr(g->text.text, "</style>"), *end = strstr(g->text.text, "<script>\n");
    int count = 0;
    for (; (at = strstr(at, text)) && at < end; at++)
        count++;
    return count;
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

static void write_end(struct given *g) {
    struct lab_doc *doc = lab_doc_open(NULL, &g->study.arena);
    struct lab_style style = {.columns = 100, .unicode = true};
    lab_report_add_study(doc, &g->study.study, &g->page, style, false);
    lab_str_clear(&g->text);
    lab_doc_write(doc, "text", style, &g->text);
}

/* Given a line that an analysis advises, then page, best_practices.md and terminal have it; given a
 * question that was not tested, then no chart shows an answer and no choice is called tested. */
LAB_TEST(all_advise_the_same) {
    struct given *g = *state;
    struct lab_arena *arena = &g->study.arena;
    struct lab_chart *chart = given_charts(arena);
    g->claims[0].kind = "stability.drift"; /* bindings are no answer */
    write_page(g, "markdown");
    assert_null(strstr(g->text.text, "numactl"));
    assert_contains(g->text.text, "Binding 2 GPUs to their NUMA nodes: 12.5% higher throughput, "
                                  "mean of all models. Lines to paste: [b");
    g->lines[1].gain.effect = 0.2; /* intervals that overlap name nobody */
    for (int apart = 0; apart < 2; apart++) {
        g->lines[1].gain.low = apart ? 0.19 : 0.13;
        write_page(g, "markdown");
        assert_contains(g->text.text,
                        apart ? "Binding gains most for GPU 1: 20.0% higher throughput on NUMA "
                                "node 1 than on NUMA node 0, mean of all models."
                              : "NUMA nodes: 12.5 to 20.0% higher throughput, ");
    }
    g->advice = (struct lab_advice){.tested = g->claims, .tested_count = 1};
    g->result.charts = chart;
    g->result.chart_count = 1;
    g->study.study.command = ""; /* nothing to repeat */
    for (int untested = 0; untested < 2; untested++) {
        g->result.command = "gpulab run nccl_settings device=cuda";
        g->result.action = untested ? "Test it on whole GPUs" : NULL;
        g->result.answer = "Use it.";
        g->result.untested = untested ? "NCCL was not used." : NULL;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, g->result.command);
        assert_null(strstr(g->text.text, "significant gain"));
        lab_str_clear(&g->text);
        write_page(g, "html");
        assert_int_equal(count_in_page(g, "picture desk"), 2 - untested);
        assert_int_equal(count_in_page(g, "picture phone"), 2 - untested);
        assert_int_equal(count_in_page(g, "viewBox=\"0 0 420 "), 2 - untested);
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        assert_contains(g->text.text, g->result.command);
        write_end(g);
        assert_contains(g->text.text, "Next      gpulab run nccl_settings device=cuda");
    }
    struct lab_claim slow =
        lab_claim_named(g->claims[0], "peers.device", "GPU 7", "its peers", "throughput");
    g->advice = (struct lab_advice){.choices = &slow, .choice_count = 1};
    g->result.command = NULL; /* a slow device goes before what has no line */
    write_end(g);
    assert_contains(g->text.text, "Next      nvidia-smi -i 7 -q -d CLOCK,TEMPERATURE,PERFORMANCE");
}

/* Given an action of the analysis that answers and what it left out, then the page has the one
 * before the lines of binding and the other after them, in the line that runs it again. */
LAB_TEST(actions_are_in_order) {
    struct given *g = *state;
    static const char *const order[] = {
        "Nothing to mend.",
        "Bind one process per",
        "torchrun",
        "CUDA_VISIBLE_DEVICES=1",
        "Test GPU 3:",
        "gpulab run numa_study experiment.repeat=5 experiment.hardware.numa_nodes=all"};
    g->study.study.command = "gpulab run numa_study numa_nodes=[0,2] repeat=1";
    g->result.action = "Nothing to mend";
    g->result.tests = "Test GPU 3";
    g->result.further = "experiment.hardware.numa_nodes=all";
    write_page(g, "markdown");
    const char *at = g->text.text;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
}

/* Given an open headline, then the line to paste has the runs that its spread asks for. */
LAB_TEST(what_is_open_is_run_often_enough) {
    struct given *g = *state;
    static const struct {
        int n, needed, decisive;
        const char *text, *repeat;
    } cases[] = {
        {2, 30, 3, "Inconclusive. 30 runs per point detect 2% (80% power)", "repeat=30"},
        {2, 2040, 3, "5 runs per point detect an effect this large (80% power)", "repeat=5"},
        {2, 2040, 60, "it takes 2040 runs per point. Quiet the machine, then run 5", "repeat=5"},
        {8, 2040, 60, "it takes 2040 runs per point. Quiet the machine, then run 16", "repeat=16"},
        {8, 6, 6, "Inconclusive with 8 runs per point: run 16", "repeat=16"},
    };
    g->page.advice = NULL;
    g->study.study.command = "gpulab run numa_study experiment.repeat=2";
    g->study.study.run_count = 0; /* two runs of one point */
    for (int i = 0; i < 2; i++) {
        struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
        run->repeat = i;
        fixture_done(&g->study, run, 1000, "", "");
    }
    g->claims[0].verdict = LAB_CLAIM_INCONCLUSIVE;
    g->claims[0].low = -0.1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g->claims[0].n = cases[i].n;
        g->claims[0].needed = cases[i].needed;
        g->claims[0].decisive = cases[i].decisive;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, cases[i].text);
        assert_contains(g->text.text,
                        lab_arena_printf(&g->study.arena, "gpulab run numa_study experiment.%s\n",
                                         cases[i].repeat));
    }
}

/* Given runs that are left, then they are advised unless the spread says that they decide nothing. */
LAB_TEST(what_is_left_is_run_where_it_may_decide) {
    struct given *g = *state;
    static const struct {
        int n, needed;
        const char *text, *line;
    } cases[] = {
        {2, 3, "Finish the study:", "repeat=3"},
        {1, 0, "Finish the study:", "repeat=3"},
        {2, 30, "the planned 3 runs per point can't change. 30 runs per point detect", "repeat=30"},
        {2, 600, "Quiet the machine (other processes took much of its CPU time), then", "repeat=5"},
    };
    g->page.advice = NULL;
    g->study.study.command = "gpulab run numa_study experiment.repeat=3";
    g->study.study.run_count = 0;
    for (int i = 0; i < 3; i++) {
        struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
        run->repeat = i;
        if (i < 2)
            fixture_done(&g->study, run, 1000, "\"other processes took 85% of it\"", "");
    }
    g->claims[0].verdict = LAB_CLAIM_INCONCLUSIVE;
    g->claims[0].low = -0.1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g->claims[0].n = cases[i].n;
        g->claims[0].needed = cases[i].needed;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, cases[i].text);
        assert_contains(g->text.text,
                        lab_arena_printf(&g->study.arena, "gpulab run numa_study experiment.%s\n",
                                         cases[i].line));
        write_end(g);
        assert_contains(g->text.text, cases[i].line);
    }
}

/* Given a device that is slower than its peers, then the headline has it, whatever was asked. */
LAB_TEST(a_slow_device_is_in_the_headline) {
    struct given *g = *state;
    g->result.answer = "Use it: 3% more (5 runs each). Else not.";
    g->claims[1] =
        lab_claim_named(g->claims[0], "peers.device", "GPU 7", "its peers", "throughput");
    g->claims[1].effect = -0.057;
    g->claims[1].low = -0.059;
    g->claims[1].high = -0.055;
    g->claims[1].confidence = 0.95;
    static const char headline[] = "Use it: 3% more (5 runs each). GPU 7: 5.7% lower throughput "
                                   "than its peers (95% CI [5.5, 5.9]%, 5 runs each).";
    write_page(g, "html");
    assert_contains(g->text.text, lab_arena_printf(&g->study.arena, "<h1>%s</h1>", headline));
    write_end(g);
    assert_contains(g->text.text, "Use it: 3% more (5 runs each). GPU 7: 5.7% lower throughput");
}

/* Given a batch that is best on the mean, then models with a better one are named, with what they
 * gain over it; given one that gains too little, then no table of best_practices.md has it. */
LAB_TEST(a_batch_is_advised_with_its_exceptions) {
    struct given *g = *state;
    struct lab_claim batch = lab_claim_named(g->claims[0], "recommend.batch", "Batch 16", "batch 4",
                                             "throughput"),
                     others[] = {batch, batch};
    static const char *const kept[] = {"Batch 16 | batch 4", "Setting or GPU"};
    others[0].subject = "Batch 32, vit16x8x768";
    others[0].reference = "batch 16";
    others[0].effect = 0.046;
    others[0].mean_of = "2 placements"; /* the other is of another batch */
    g->result.exceptions = others;
    g->result.exception_count = 2;
    for (int i = 0; i < 2; i++) {
        batch.effect = i ? 0.007 : 0.157;
        batch.verdict = LAB_CLAIM_YES;
        g->advice = (struct lab_advice){
            .choices = &batch, .choice_count = 1, .tested = &batch, .tested_count = 1};
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, i ? "Keep batch 4: no other batch size gains 1% or more"
                                        : "Use batch 16, the smallest that no other beats: 15.7% ");
        assert_int_equal(strstr(g->text.text, ". Exceptions (gain over batch 16): batch 32 for "
                                              "vit16x8x768 (+4.6%, mean of 2 placements).") != NULL,
                         !i);
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        assert_int_equal(strstr(g->text.text, kept[i]) != NULL, !i);
    }
}

/* Given warnings, then the first screen has how many of the runs done have some, and which most
 * have. */
LAB_TEST(warnings_are_on_the_first_screen) {
    struct given *g = *state;
    static const char *const shown[] = {"Warning: 1 of 5 runs: the machine was busy.", NULL, NULL,
                                        "Warning: 4 of 8 runs, most: the machine was busy."};
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
    assert_true(rates && rates < strstr(g->text.text, "Evidence</h2>"));
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
                                  "comparisons</a>.");
    assert_contains(g->text.text, "<details id=\"inconclusive\"><summary>Inconclusive comparisons");
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
    g->result.parts = parts;
    g->result.part_count = 500;
    g->result.charts = charts;
    g->result.chart_count = 1;
    write_page(g, "html");
    assert_true(g->text.length < 100000);
    assert_contains(g->text.text, "488 more rows: <a href=\"table_numa.csv\">");
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
