/* What a report advises: page, Markdown, best practices and terminal have the same lines. */
#include "model/reported_metric.h"
#include "page_fixture.h"

#include "report/analysis.h"

/* Given a line that an analysis advises, then page, best_practices.md and terminal have it; given a
 * question that was not tested, then no chart shows an answer and no choice is called tested. */
LAB_TEST(all_advise_the_same) {
    struct given *g = *state;
    struct lab_arena *arena = &g->study.arena;
    struct lab_chart *chart = given_charts(arena);
    g->claims[0].kind = "stability.drift"; /* bindings are no answer */
    write_page(g, "markdown");
    assert_null(strstr(g->text.text, "numactl"));
    assert_contains(g->text.text,
                    "Binding 2 GPUs to their NUMA nodes: 0 to +12.5% throughput compared with NUMA "
                    "node 0, by model, measured one GPU at a time; unbound: not tested. Lines to "
                    "paste: [b");
    g->lines[1].most = 0.2; /* the range is that of all of them */
    write_page(g, "markdown");
    assert_contains(g->text.text, "NUMA nodes: 0 to +20.0% throughput compared with ");
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

/* Given a GPU whose local node was not tested, then its lines say so, whatever the page is about. */
LAB_TEST(lines_name_local_nodes_that_were_not_tested) {
    struct given *g = *state;
    g->lines[1].provisional = true;
    g->lines[1].local_node = 3;
    write_page(g, "markdown");
    assert_contains(g->text.text,
                    "which PROGRAM chooses by LOCAL_RANK; measured one GPU at a time; "
                    "GPU 1: local NUMA node 3 not tested:\n");
    assert_contains(g->text.text, "# 0 to +12.5%; local NUMA node 3 not tested\n");
    g->claims[0].kind = "stability.drift";
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "Binding 2 GPUs to the nearest NUMA node tested: 0 to +12.5%");
    assert_contains(g->text.text,
                    "; unbound: not tested; GPU 1: local NUMA node 3 not tested. Lines");
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_contains(g->text.text, "(torchrun, mpirun, srun); measured one GPU at a time:\n");
    assert_contains(g->text.text, "--membind=1 PROGRAM  # local NUMA node 3 not tested\n");
    g->advice.line_count = 1; /* nothing to launch several of */
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_null(strstr(g->text.text, "One process per GPU"));
}

/* Given many points and a next step of many lines, then rows yield: thirty lines are the most, with
 * those that the terminal makes of a long command. */
LAB_TEST(rows_yield_to_the_next_step) {
    struct given *g = *state;
    LAB_AUTO(str, tests);
    for (int i = 0; i < 120; i++)
        lab_str_add(&tests, i ? " pairs" : "Test pairs");
    g->study.study.command = lab_arena_printf(
        &g->study.arena, "gpulab run throughput_study output_dir=/%0250d gpu_ids=[0,1]", 0);
    g->study.study.left_s = NAN;
    for (int gpu = 0; gpu < 8; gpu++)
        for (int node = 0; node < 4; node++)
            fixture_done(&g->study, fixture_plan(&g->study, gpu, 1, node, fixture_vits[gpu % 6]),
                         1000, "", "");
    g->page.advice = NULL;
    g->page.answer = "Not tested: the plan has no pair.";
    g->page.untested = true;
    g->page.tests = tests.text;
    g->page.further = "experiment.hardware.gpu_ids=[[0],[1],[0,1]]";
    write_end(g);
    assert_contains(g->text.text, "pairs pairs.\n");
    assert_contains(g->text.text, " rows shown (all: --verbose)");
    int lines = 0;
    for (const char *at = g->text.text, *line_end; *at; at = line_end + 1) {
        line_end = strchr(at, '\n');
        LAB_AUTO(str, line);
        lab_str_add_bytes(&line, at, (size_t)(line_end - at));
        int width = line.length ? lab_str_columns(line.text) : 0;
        lines += width > 100 ? (width + 99) / 100 : 1;
    }
    assert_in_range(lines, 1, 30);
}

/* Given a long line that follows the next step and no room for rows, then the report alone has it. */
LAB_TEST(a_long_line_yields_to_rows) {
    struct given *g = *state;
    g->study.study.command = "gpulab run throughput_study";
    g->study.study.left_s = NAN;
    g->page.advice = NULL;
    g->result.command = "numactl --cpunodebind=0 --membind=0 PROGRAM";
    g->result.action = "Restrict the program to these GPUs";
    g->result.tests = "Test GPU 0 with the others: 1530 runs";
    g->study.study.run_count = 0;
    for (int i = 0; i < 2 * 18; i++) {
        struct lab_run *run = fixture_plan(&g->study, i % 9, 1, i / 9 % 2, "vit32x2x128");
        run->repeat = i / 18;
        fixture_done(&g->study, run, 1000, "", "");
    }
    LAB_AUTO(str, answer);
    for (int i = 0; i < 100; i++)
        lab_str_printf(&answer, "%s is long", i ? " and" : "It");
    lab_str_add(&answer, ".");
    g->result.answer = answer.text;
    for (int longer = 0; longer < 2; longer++) {
        g->result.further =
            lab_arena_printf(&g->study.arena, "experiment.hardware.gpu_ids=[%s%0*d]",
                             longer ? "[0]," : "", longer ? 200 : 1, 0);
        write_end(g);
        assert_int_equal(strstr(g->text.text, g->result.further) == NULL, longer);
        assert_int_equal(strstr(g->text.text, "Then      Test GPU 0 with the others: 1530 runs "
                                              "(line: report).\n") != NULL,
                         longer);
    }
    write_page(g, "markdown");
    assert_contains(g->text.text, g->result.further);
}

/* Given a question that this machine can't answer, then its runs that are left aren't advised. */
LAB_TEST(runs_that_answer_nothing_are_not_advised) {
    struct given *g = *state;
    g->study.study.left_s = NAN;
    fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
    g->page.advice = NULL;
    g->page.answer = "Not tested: this machine has one NUMA node. Nothing to bind.";
    g->page.untested = true;
    write_end(g);
    assert_contains(g->text.text, "Resume    gpulab run");
    lab_str_clear(&g->text);
    g->page.elsewhere = true;
    write_end(g);
    assert_contains(g->text.text, "Not tested: this machine has one NUMA node.");
    assert_contains(g->text.text, "Next      gpulab show");
    assert_contains(g->text.text, "Nothing to do on this machine. All values.");
    assert_null(strstr(g->text.text, "Resume"));
}

/* Given a question that the plan doesn't test, then the keys that do come before the runs left. */
LAB_TEST(what_the_plan_lacks_comes_first) {
    struct given *g = *state;
    g->study.study.command = "gpulab run throughput_study gpu_ids=[0,1]";
    g->study.study.left_s = NAN;
    fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
    g->page.advice = NULL;
    g->page.answer = "Not tested: the plan has no pair. Batch sizes: no difference (5 runs each).";
    g->page.untested = true;
    g->page.tests = "Test pairs, too";
    g->page.further = "experiment.hardware.gpu_ids=[[0],[1],[0,1]]";
    write_page(g, "markdown");
    assert_contains(g->text.text, "**Not tested after 4 of 5 runs: the plan has no pair.**\n\n"
                                  "Batch sizes: no difference (5 runs each).\n");
    const char *pairs = strstr(g->text.text, "Test pairs, too:\n\n```\ngpulab run "
                                             "throughput_study experiment.hardware.gpu_ids=[[0],"),
               *rest = strstr(g->text.text, "Finish the study (resumes in the same folder: 1 run "
                                            "left):");
    assert_true(pairs && rest && pairs < rest);
    write_end(g);
    assert_contains(g->text.text, "Next      gpulab run throughput_study experiment.hardware.gpu");
    g->page.further = NULL; /* where nothing is left to do, values are shown */
    g->study.study.run_count--;
    g->study.study.command = "";
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "All values:\n\n```\ngpulab show outputs/");
}

/* Given advice that holds for simulated devices alone, then the study on real ones comes before it. */
LAB_TEST(a_study_on_real_devices_comes_first) {
    struct given *g = *state;
    g->page.advice = NULL;
    g->study.study.run_count = 0; /* two runs of one point */
    for (int i = 0; i < 2; i++) {
        struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
        run->repeat = i;
        fixture_done(&g->study, run, 1000, "", "");
    }
    g->result.command = "torchrun --nproc-per-node=8 PROGRAM";
    g->result.action = "Start one process per GPU";
    g->result.further = "device=cuda";
    g->result.tests = "Measure on real GPUs";
    for (int first = 0; first < 2; first++) {
        g->result.further_first = first;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        const char *real = strstr(g->text.text, "device=cuda"),
                   *line = strstr(g->text.text, "torchrun");
        assert_true(real && line && (real < line) == first);
        lab_str_clear(&g->text);
        write_end(g);
        assert_contains(g->text.text, first ? "Next      gpulab run" : "Next      torchrun");
        assert_contains(g->text.text, first ? "Then      torchrun" : "Then      gpulab run");
    }
}

/* Given a command with the study's folder, then reports have it absolute and a terminal as the report's
 * path. */
LAB_TEST(commands_on_paper_have_the_whole_path) {
    struct given *g = *state;
    g->study.study.command = "";
    g->study.study.folder = "outputs/study";
    g->study.study.path = "/home/user/outputs/study";
    g->page.advice = NULL;
    write_page(g, "markdown");
    assert_contains(g->text.text, "\ngpulab show /home/user/outputs/study\n");
    write_end(g);
    assert_contains(g->text.text, "  gpulab show outputs/study\n");
}

/* Given a bound of single models above 1%, then neither page nor terminal says that no gain is as
 * large: of devices alone, any of them will do. */
LAB_TEST(bounds_stand_with_no_gain) {
    struct given *g = *state;
    struct lab_claim claims[] = {g->claims[0], g->claims[0], g->claims[0]};
    for (int i = 0; i < 3; i++) {
        claims[i].kind = i == 2 ? "peers.model" : "peers.device";
        claims[i].subject = i == 1 ? "GPU 1" : "GPU 0";
        claims[i].verdict = LAB_CLAIM_NO;
        claims[i].effect = 0;
        claims[i].low = i == 2 ? -0.0199 : -0.004;
        claims[i].high = 0.003;
        claims[i].bound = -claims[i].low;
    }
    g->result.claims = claims;
    g->result.claim_count = 3;
    g->study.study.command = "";
    g->advice = (struct lab_advice){.tested = claims, .tested_count = 1};
    write_page(g, "markdown");
    assert_contains(g->text.text,
                    "No setting to change: no difference larger than 2.0% was found. All");
    g->advice.tested_count = 2;
    for (int terminal = 0; terminal < 2; terminal++) {
        lab_str_clear(&g->text);
        if (terminal)
            write_end(g);
        else
            write_page(g, "markdown");
        assert_contains(
            g->text.text,
            "Any of GPUs 0 and 1 will do: no difference larger than 0.4% (any model: 2.0%).");
    }
}

/* Given one run per point, then one sentence says that no result has an interval. */
LAB_TEST(single_runs_have_no_interval) {
    struct given *g = *state;
    struct lab_claim claims[] = {g->claims[0], g->claims[0]};
    for (int i = 0; i < 2; i++) {
        claims[i].n = 1;
        claims[i].verdict = LAB_CLAIM_INCONCLUSIVE;
        claims[i].low = claims[i].high = NAN;
    }
    g->result.claims = claims;
    g->result.claim_count = 2;
    write_page(g, "markdown");
    assert_contains(g->text.text, "Each point ran once: [none of the 2 results](index.html#"
                                  "inconclusive) has an interval over runs.");
}

/* Given settings to choose, then the terminal names them after the next step, each in a line. */
LAB_TEST(the_terminal_names_settings) {
    struct given *g = *state;
    struct lab_claim batch =
        lab_claim_named(g->claims[0], "recommend.batch", "Batch 16", "batch 4", "throughput");
    batch.mean_of = "6 configurations on the local NUMA node";
    batch.confidence = 0.95;
    g->advice.choices = &batch;
    g->advice.choice_count = 1;
    write_end(g);
    assert_contains(g->text.text,
                    "\n  Also      Use batch 16: 12.5% higher throughput than batch 4.\n");
}

/* Given a sentence that doesn't fit for its interval, then the terminal keeps its value. */
LAB_TEST(the_terminal_keeps_values_of_devices) {
    struct given *g = *state;
    static const char *const others[] = {
        "Find what else copies over GPU 9's PCIe path: 18.2% lower rate than its peers (95% CI "
        "[11.4, 24.5]%, 5 runs each). GPU 9 varies between runs",
        NULL};
    g->result.others = others;
    write_end(g);
    assert_contains(g->text.text, "GPU 9's PCIe path: 18.2% lower rate than its peers.\n");
}

/* Given a column of nothing but references, then the table of the parts is without it. */
LAB_TEST(a_column_of_references_compares_nothing) {
    struct given *g = *state;
    for (int i = 0; i < g->result.part_count; i++) {
        assert_true(lab_report_is_compared(&g->result, 0));
        g->result.parts[i].cells[0].text = "reference";
    }
    assert_false(lab_report_is_compared(&g->result, 0));
}

/* Given a line that is for an analysis's own question, then a page about another one leaves it. */
LAB_TEST(a_line_can_be_for_its_own_question) {
    struct given *g = *state;
    struct lab_analysis_result other = g->result;
    other.answer = "Predicted.";
    other.action = "Predict the throughput of your own model";
    other.command = "gpulab analyze scaling outputs/study predict=vit32xDEPTHxWIDTH";
    g->analyses[1] = g->analyses[0];
    g->analyses[1].name = "scaling";
    g->analyses[1].result = &other;
    g->page.analysis_count = 2;
    for (int own = 0; own < 2; own++) {
        other.own_question = own;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_int_equal(strstr(g->text.text, other.command) == NULL, own);
    }
}

/* Given a model that gains less than 1% by compiling, then it isn't among those to compile. */
LAB_TEST(models_that_gain_too_little_are_not_compiled) {
    struct given *g = *state;
    static const char *const models[] = {"vit32x4x256, compiled", "vit32x6x512, compiled",
                                         "vit16x12x1024, compiled"};
    static const double gains[] = {0.3, 0.1, 0.009};
    struct lab_claim all = lab_claim_named(g->claims[0], "recommend.compile", "Compiled",
                                           "uncompiled", "throughput"),
                     each[3];
    for (int i = 0; i < 3; i++) {
        each[i] =
            lab_claim_named(g->claims[0], "compile.model", models[i], "uncompiled", "throughput");
        each[i].effect = gains[i];
    }
    g->result.claims = each;
    g->result.claim_count = 3;
    g->advice.choices = &all;
    g->advice.choice_count = 1;
    write_page(g, "markdown");
    assert_contains(
        g->text.text,
        "Compile the model, but not vit16x12x1024 (no throughput gain of 1% or more found)");
    assert_contains(g->text.text, "model = torch.compile(model)  # +10.0 to +30.0%");
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

/* Given runs of a single iteration, which the report warns of, then the line to paste has more. */
LAB_TEST(runs_that_were_too_short_are_run_longer) {
    struct given *g = *state;
    g->study.study.command = "gpulab run numa_study experiment.test.num_steps=1 repeat=1";
    for (int i = 0; i < g->study.study.run_count; i++)
        g->study.runs[i].iterations = 1;
    write_page(g, "markdown");
    assert_contains(g->text.text,
                    "gpulab run numa_study experiment.repeat=5 ++experiment.test.num_steps=20");
    g->result.further = "experiment.duration=240s"; /* which gives more iterations, too */
    write_page(g, "markdown");
    assert_contains(g->text.text, "experiment.repeat=5 experiment.duration=240s\n");
}

/* Given secondary advice, then best_practices.md has it after the tables of bindings; and says what
 * PROGRAM is wherever it stands, on a page about something else too. */
LAB_TEST(practices_begin_with_the_main_advice) {
    struct given *g = *state;
    for (int minor = 0; minor < 2; minor++) {
        g->result.action = "Predict other models";
        g->result.minor = minor;
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        const char *said = strstr(g->text.text, "Predict other models."),
                   *table = strstr(g->text.text, "## Placement");
        assert_true(said && table);
        assert_int_equal(said > table, minor);
    }
    g->result.action = NULL;
    g->claims[0].kind = "stability.drift"; /* bindings are no answer */
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text);
    assert_contains(g->text.text, "torchrun gpulab bind PROGRAM");
    assert_contains(g->text.text, "\nPROGRAM: your command. ");
    g->advice.unbound = "GPU 3: NUMA node 0 until local node 1 is tested.";
    for (int said = 0; said < 2; said++) { /* once */
        g->result.answer =
            said ? "Bind it. GPU 3: NUMA node 0 until local node 1 is tested." : "Nothing.";
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        const char *first = strstr(g->text.text, g->advice.unbound);
        assert_non_null(first);
        assert_null(strstr(first + 1, g->advice.unbound));
    }
}

/* Given keys that the study's own command has in quotes, then a line that changes them has each
 * once, and leaves other quoted words whole. */
LAB_TEST(a_changed_line_has_each_key_once) {
    struct given *g = *state;
    g->study.study.command = "gpulab run numa_study 'gpu_ids=[0, 1]' 'name=it'\\''s one' "
                             "'numa_nodes=[0,1]' repeat=3";
    g->result.tests = "GPU 1: inconclusive. For a verdict, 8 runs per point";
    g->result.further = "experiment.hardware.gpu_ids=[1] experiment.repeat=8";
    write_page(g, "markdown");
    assert_contains(g->text.text, "gpulab run numa_study 'name=it'\\''s one' 'numa_nodes=[0,1]' "
                                  "experiment.hardware.gpu_ids=[1] experiment.repeat=8\n");
}

/* Given an open headline, then the line to paste has the runs that its spread asks for. */
LAB_TEST(what_is_open_is_run_often_enough) {
    struct given *g = *state;
    static const struct {
        int n, needed, decisive;
        const char *text, *repeat;
    } cases[] = {
        {2, 30, 3, "). 2 runs hardly show the spread: run 5 per point", "repeat=5"},
        {2, 2040, 60, "2 runs hardly show the spread: run 5 per point", "repeat=5"},
        {3, 2040, 60, "Quiet the machine, then run 5 per point. Inconclusive (", "repeat=5"},
        {8, 2040, 60, "Quiet the machine, then run 16 per point. Inconclusive (", "repeat=16"},
        {8, 6, 6, ") with 8 runs per point: run 16", "repeat=16"},
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
        assert_contains(g->text.text, "Inconclusive (");
        assert_contains(g->text.text, " compared with ");
        assert_contains(g->text.text, cases[i].text);
        assert_contains(g->text.text,
                        lab_arena_printf(&g->study.arena, "gpulab run numa_study experiment.%s\n",
                                         cases[i].repeat));
    }
}

/* Given more runs of the study and one that tests what it left out, then the second line says that
 * it follows the first. */
LAB_TEST(lines_that_run_studies_have_an_order) {
    struct given *g = *state;
    g->page.advice = NULL;
    g->study.study.command = "gpulab run numa_study experiment.repeat=2";
    g->result.tests = "Test for drift over minutes";
    g->result.further = "experiment.duration=120s experiment.repeat=5";
    write_page(g, "markdown");
    assert_contains(g->text.text,
                    "experiment.repeat=5\n```\n\nThen test for drift over minutes:\n");
}

/* Given points whose runs were too short for the study's question, then the next line makes them
 * longer, by the key that its command has or else by its samples. */
LAB_TEST(the_next_runs_test_what_was_too_short) {
    struct given *g = *state;
    static const char *const cases[][2] = {
        {"gpulab run stability", "gpulab run stability experiment.repeat=5 "
                                 "experiment.test.num_samples=3000\n"},
        {"gpulab run stability experiment.test.num_samples=210",
         "gpulab run stability experiment.repeat=5 experiment.test.num_samples=630\n"},
        {"gpulab run stability experiment.test.num_samples=9 experiment.duration=1.5s",
         " experiment.test.num_samples=9 experiment.repeat=5 experiment.duration=4.5s\n"},
    };
    g->page.advice = NULL;
    g->result.longer = 3;
    g->result.why_longer = "Runs 3 times as long also test the other 4 of 6 points";
    g->study.runs[0].test = "{\"num_samples\": 1000}";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g->study.study.command = cases[i][0];
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, "For a verdict, 5 runs per point. Runs 3 times as long also "
                                      "test the other 4 of 6 points:\n");
        assert_contains(g->text.text, cases[i][1]);
        write_end(g);
        assert_contains(g->text.text, cases[i][1]);
    }
}

/* Given runs that are left, then they are advised unless the spread says that they decide nothing. */
LAB_TEST(what_is_left_is_run_where_it_may_decide) {
    struct given *g = *state;
    static const struct {
        int n, needed;
        const char *text, *line;
    } cases[] = {
        {2, 3, "Then finish the study (resumes in the same folder: 1 run left, in about 9 s):",
         "repeat=3"},
        {2, 3, "Then run 5 per point (the study has 3):", "repeat=5"}, /* behind that */
        {1, 0, "were running. Then finish the study (resumes", "repeat=3"},
        {2, 600, "Then finish the study (resumes", "repeat=3"}, /* two show no spread */
        {3, 30, "the planned 3 runs per point can't change. 30 runs per point detect", "repeat=30"},
        {3, 600, "other processes were running. Then run 5 per point.", "repeat=5"},
    };
    g->page.advice = NULL;
    g->study.study.command = "gpulab run numa_study experiment.repeat=3";
    g->study.study.left_s = 9;
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
        assert_contains(g->text.text, "Quiet the machine first: other processes were running.");
    }
}

/* Given several sentences without parentheses, then those that fit two lines are the headline. */
LAB_TEST(a_headline_stays_short) {
    struct given *g = *state;
    g->result.answer = "GPUs 0–3: transfer-bound up to a. Crossover between 1 and 4 GFLOP/sample. "
                       "Throughput, mean of 4 placements: vit0x0x0 38.1k, vit32x2x256 38.6k, "
                       "vit32x4x512 18.8k samples/s.";
    write_page(g, "markdown");
    assert_contains(g->text.text, "**GPUs 0–3: transfer-bound up to a. Crossover between 1 and 4 "
                                  "GFLOP/sample.**\n\nThroughput, mean of 4");
}

/* Given runs that are left, load in most of them or parts of a CPU, then the answer begins with it,
 * on the page and in the terminal; of a simulated machine no load counts. */
LAB_TEST(the_headline_says_what_it_rests_on) {
    struct given *g = *state;
    static const struct {
        int done, loaded, n;
        const char *answer, *headline;
    } cases[] = {
        {4, 1, 4, "Use A (4 runs each).", "Use A (4 runs each)."},
        {4, 2, 4, "Use A (4 runs each).", "Provisional (busy machine): Use A (4 runs each)."},
        {3, 0, 3, "Use A. It is 3% up (3 runs each).", "Provisional (3 of 4 runs): Use A."},
        {3, 3, 3, "Use A (x).", "Provisional (3 of 4 runs, busy machine): Use A (x)."},
        {4, 4, 4, "Inconclusive: A (x).", "No answer: 4 runs per point on a busy machine."},
        {4, 4, 5, "Inconclusive: A (x).", "Inconclusive on a busy machine: A (x)."},
        {3, 0, 2, "Inconclusive: A (x).", "Inconclusive after 3 of 4 runs: A (x)."},
        {3, 0, 2, "Inconclusive for B. C (x).", "Inconclusive after 3 of 4 runs for B."},
        {3, 3, 5, "Not tested: no A. B (x).", "Not tested after 3 of 4 runs: no A."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g->study.study.run_count = 0;
        for (int r = 0; r < 4; r++) {
            struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
            run->repeat = r;
            static const struct lab_run_rank slice = {.device = "cpu:0/2.0"};
            run->ranks = &slice;
            if (r < cases[i].done)
                fixture_done(&g->study, run, 1000,
                             r >= cases[i].loaded ? ""
                             : r % 2              ? "\"other processes took 85.1% of it\""
                                                  : "\"5.41 other threads per CPU were ready\"",
                             "");
        }
        g->result.answer = cases[i].answer;
        g->result.untested = lab_str_starts(cases[i].answer, "Not tested") ? "no A." : NULL;
        g->claims[0].n = cases[i].n;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text,
                        lab_arena_printf(&g->study.arena, "**%s**\n",
                                         lab_doc_escape(cases[i].headline, &g->study.arena)));
        assert_contains(g->text.text, "> Devices are slices of one CPU: they share memory and "
                                      "caches. cpu:0/2.0 is the first of 2.");
        write_end(g);
        assert_contains(g->text.text, cases[i].headline);
        assert_contains(g->text.text, "  Devices are slices of one CPU: ");
    }
    g->result.answer = "Both at once: all inconclusive (x)."; /* whatever its first word */
    for (int i = 0; i < g->result.claim_count; i++)
        g->claims[i].verdict = LAB_CLAIM_INCONCLUSIVE;
    g->claims[0].n = 4;
    g->result.untested = NULL;
    fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 0, "vit32x2x128"), 1000,
                 "\"other processes took 85.1% of it\"", "");
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "**No answer: 4 runs per point on a busy machine.**\n");
    g->claims[0].n = 5; /* as many as show a spread */
    g->study.study.report = "";
    write_end(g);
    assert_contains(g->text.text, "No answer: 5 runs per point on a busy machine. Both at once");
    assert_contains(g->text.text, "\n            no report yet: gpulab report outputs/");
    g->page.simulated = true;
    write_end(g);
    assert_null(strstr(g->text.text, "busy machine"));
    assert_null(strstr(g->text.text, "Warning: "));
}

/* Given the best setting and the worst one in the headline, then the advice names those two, and
 * not the two best. */
LAB_TEST(advice_is_about_what_the_headline_compares) {
    struct given *g = *state;
    struct lab_claim claims[2] = {g->claims[0], g->claims[0]};
    g->page.advice = NULL;
    g->result.claims = claims;
    g->result.claim_count = 2;
    g->result.answer = "Throughput from 125k (batch 128) to 89.7k (batch 32): inconclusive.";
    for (int i = 0; i < 2; i++) {
        claims[i].verdict = LAB_CLAIM_INCONCLUSIVE;
        claims[i].low = -0.1;
        claims[i].n = 5;
        claims[i].needed = 9 + 10 * i;
        claims[i].subject = "batch 128";
        claims[i].reference = i ? "batch 32" : "batch 64";
    }
    for (int i = 0; i < 2 * 4; i++) {
        struct lab_run *run = fixture_plan(&g->study, i % 4, 1, 0, "vit32x2x128");
        run->repeat = 1 + i / 4;
        fixture_done(&g->study, run, 1000, "", "");
    }
    write_page(g, "markdown");
    assert_contains(g->text.text, "Inconclusive (batch 128 compared with batch 32). 19 runs");
}

/* Given an answer from a busy machine, then it is to be repeated on a quiet one, before anything
 * that it advises. */
LAB_TEST(a_busy_machine_is_quieted_first) {
    struct given *g = *state;
    enum { ALL, SOME, NONE, CASES };
    g->study.study.command = "gpulab run train_scaling device=cpu:0/2";
    g->study.study.left_s = NAN;
    g->result.answer = "Use 2 devices (5 runs each).";
    g->result.action = "Use 2 devices";
    g->claims[0].kind = "speedup.devices";
    for (int i = 0; i < CASES; i++) {
        g->study.study.run_count = 0;
        for (int r = 0; r < 4; r++) {
            struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
            run->repeat = r;
            fixture_done(
                &g->study, run, 1000,
                i == ALL || (i == SOME && r < 2) ? "\"other processes took 85.1% of it\"" : "", "");
        }
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        const char *quiet = strstr(g->text.text, "Quiet the machine first: other processes "
                                                 "were running. Then run the study again"),
                   *advised = strstr(g->text.text, i != NONE ? "If confirmed: use 2 devices.\n"
                                                             : "Use 2 devices.\n");
        assert_int_equal(quiet != NULL, i != NONE);
        assert_true(advised && quiet < advised);
        write_end(g);
        assert_contains(g->text.text, i != NONE
                                          ? "Next      gpulab run train_scaling device=cpu:0/2\n"
                                          : "Next      Use 2 devices.\n");
        assert_int_equal(strstr(g->text.text, "Also      If confirmed: use 2 devices.\n") != NULL,
                         i != NONE);
    }
}

/* Given a slow device with and without a condition that differs, then it is to be checked for that,
 * or to be inspected; lower power is a symptom and explains nothing. */
LAB_TEST(a_slow_device_is_checked_for_causes) {
    struct given *g = *state;
    static const struct lab_doc_column of_peers[] = {{"device", "Device", LAB_UNIT_TEXT},
                                                     {"differs", NULL, LAB_UNIT_TEXT},
                                                     {"symptoms", NULL, LAB_UNIT_TEXT},
                                                     {"alike", NULL, LAB_UNIT_TEXT},
                                                     {"brief", NULL, LAB_UNIT_TEXT}};
    static const struct {
        const char *differs, *symptoms, *alike, *brief, *sentence;
    } cases[] = {
        {"SM clock 1710 MHz (peers 1980)", "", "power", "",
         "Check GPU 7, which differs in SM clock 1710 MHz (peers 1980): 5.7% lower throughput than "
         "its peers (5 runs each).\n"},
        {"", "power 263 W (peers 277)", "SM clock, power limit", "",
         "Inspect or swap GPU 7: 5.7% lower throughput than its peers (5 runs each). Symptom: "
         "power "
         "263 W (peers 277). What else was sampled doesn't explain it: no difference in SM clock, "
         "power limit.\n"},
        {"", "", "power", "6.90 ms",
         "Test GPU 7 for minutes, then inspect it: 5.7% lower throughput than its peers (5 runs "
         "each):\n\n```\ngpulab check --level 3 --device cuda\n```\n\nRuns of at most 6.90 ms show "
         "no heat. What was sampled doesn't explain it: no difference in power.\n"},
        {"", "", "power", "",
         "Inspect or swap GPU 7: 5.7% lower throughput than its peers (5 runs each). What was "
         "sampled doesn't explain it: no difference in power.\n"},
        {"", "", "", "", "Check clocks, cooling and link of GPU 7: 5.7% lower throughput"},
    };
    struct lab_claim slow =
        lab_claim_named(g->claims[0], "peers.device", "GPU 7", "its peers", "throughput");
    slow.effect = -0.057;
    slow.low = slow.high = NAN;
    slow.simulated = true; /* nvidia-smi doesn't know it */
    ((struct lab_run_rank *)g->study.study.runs[0].ranks)[0].device = "cuda:7";
    g->advice = (struct lab_advice){.choices = &slow, .choice_count = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_doc_cell cells[] = {lab_cell_text("GPU 7"), lab_cell_text(cases[i].differs),
                                       lab_cell_text(cases[i].symptoms),
                                       lab_cell_text(cases[i].alike),
                                       lab_cell_text(cases[i].brief)};
        struct lab_doc_table table = {"devices", "Devices", of_peers, 5, cells, 1, NULL};
        struct lab_analysis_part part = {.name = "it", .tables = &table, .table_count = 1};
        struct lab_analysis_result peers = {
            .answer = "GPU 7 is slow.", .parts = &part, .part_count = 1};
        g->analyses[2] = (struct lab_page_analysis){.name = "peers", .result = &peers};
        g->page.analysis_count = 3;
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        assert_contains(g->text.text, cases[i].sentence);
        assert_int_equal(strstr(g->text.text, "gpulab check --level 3 --device cuda\n") != NULL,
                         *cases[i].brief != '\0');
    }
}

/* Given a line to paste of which much is said, then the terminal has what fits into two lines. */
LAB_TEST(a_next_step_takes_two_lines) {
    struct given *g = *state;
    g->page.advice = NULL;
    g->study.study.command = "";
    g->result.claim_count = 1;
    g->result.command = "gpulab run it";
    g->result.action = "Run it again on a quiet machine. The second sentence still fits, as it is "
                       "on the second line of two. The third one would need a line of its own, "
                       "which the page has, not the terminal";
    write_end(g);
    assert_contains(g->text.text, "            Run it again on a quiet machine. The second ");
    assert_contains(g->text.text, "line of two.\n");
    assert_null(strstr(g->text.text, "The third one"));
}

/* Given a launch line with a GPU that is slow, then it says so; what is left to run for other GPUs
 * comes after it in the terminal, too. */
LAB_TEST(a_launch_line_names_slow_devices) {
    struct given *g = *state;
    struct lab_claim slow = lab_claim_named(g->claims[0], "peers.device", g->lines[0].device,
                                            "its peers", "throughput");
    slow.effect = -0.057;
    g->advice.choices = &slow;
    g->advice.choice_count = 1;
    g->study.study.command = "";
    struct lab_analysis_result other = {
        .answer = "GPU 9 is open.", .command = "gpulab run it", .action = "Decide on GPU 9"};
    g->analyses[2] = (struct lab_page_analysis){.name = "peers", .result = &other};
    g->page.analysis_count = 3;
    const char *bind =
        lab_arena_printf(&g->study.arena, "Bind one process per GPU (%s is slower than its peers)",
                         g->lines[0].device);
    write_page(g, "markdown");
    assert_contains(g->text.text, bind);
    assert_contains(g->text.text, " peers), which PROGRAM chooses by LOCAL_RANK");
    write_end(g);
    assert_contains(g->text.text, bind);
    assert_contains(g->text.text, "Then      gpulab run it\n            Decide on GPU 9.\n");
}

/* Given a slow device without a line to paste, then it is the first on the page as in the terminal.
 */
LAB_TEST(a_slow_device_is_the_first_step_everywhere) {
    struct given *g = *state;
    struct lab_claim slow =
        lab_claim_named(g->claims[0], "peers.device", "GPU 7", "its peers", "throughput");
    slow.effect = -0.057;
    slow.simulated = true;
    g->advice = (struct lab_advice){.choices = &slow, .choice_count = 1};
    g->result.action = "Run both at once";
    g->study.study.command = "";
    write_page(g, "markdown");
    const char *check = strstr(g->text.text, "\nCheck clocks"),
               *action = strstr(g->text.text, "\nRun both at once");
    assert_true(check && action && check < action);
    write_end(g);
    assert_contains(g->text.text, "Next      Check clocks");
}

/* Given that no metric was read, then the logs are read before a machine is quieted for a run that
 * would read none, either. */
LAB_TEST(logs_are_read_before_another_run) {
    struct given *g = *state;
    g->study.study.command = "gpulab run test_matrix";
    g->study.study.left_s = NAN;
    g->study.study.run_count = 0;
    g->page.advice = NULL;
    fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 0, "train"), 1000,
                 "\"other processes took 85.1% of it\",\"" LAB_NO_METRIC
                 ": the pattern 'a {a}' would read its line 'a 5'\"",
                 "");
    write_page(g, "markdown");
    assert_contains(g->text.text, "--pattern 'a {a}'");
    assert_null(strstr(g->text.text, "Quiet the machine first"));
}

/* Given a question that was not tested on a busy machine, then that is quieted before the longer
 * test; nothing disturbs a simulated one. */
LAB_TEST(a_busy_machine_is_quieted_before_another_test) {
    struct given *g = *state;
    g->study.study.command = "gpulab run stability device=cpu:0/2";
    g->study.study.left_s = NAN;
    g->study.study.run_count = 0;
    g->page.advice = NULL;
    fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 0, "vit32x2x128"), 1000,
                 "\"other processes took 85.1% of it\"", "");
    g->page.answer = "Not tested: fewer than 21 iterations of each run were kept.";
    g->page.untested = true;
    g->page.tests = "Test for drift over minutes";
    g->page.further = "experiment.duration=120s experiment.repeat=5";
    for (int simulated = 0; simulated < 2; simulated++) {
        g->page.simulated = simulated;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, "Test for drift over minutes");
        assert_int_equal(strstr(g->text.text,
                                "Quiet the machine first: other processes were running. "
                                "Test for drift over minutes") != NULL,
                         !simulated);
    }
}

/* Given what is certain and what isn't, on a busy machine, then the evidence is as provisional as
 * the headline. */
LAB_TEST(evidence_of_a_busy_machine_is_provisional) {
    struct given *g = *state;
    g->study.study.left_s = NAN;
    g->study.study.run_count = 0;
    fixture_done(&g->study, fixture_plan(&g->study, 0, 1, 0, "vit32x2x128"), 1000,
                 "\"other processes took 85.1% of it\"", "");
    g->result.answer = "Use 2 devices (5 runs each).";
    write_page(g, "markdown");
    assert_contains(g->text.text, "\nProvisional (busy machine): Use 2 devices (5 runs each).\n");
    g->page.simulated = true;
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_null(strstr(g->text.text, "Provisional"));
}

/* Given an analysis that names the longest iteration of all ranks, then warnings don't name another
 * one, which is by results. */
LAB_TEST(the_longest_iteration_is_named_once) {
    struct given *g = *state;
    struct lab_analysis_result stability = {.answer = "No drift."};
    g->study.study.left_s = NAN;
    g->study.study.run_count = 0;
    struct lab_run *run = fixture_plan(&g->study, 0, 1, 0, "vit32x2x128");
    fixture_done(&g->study, run, 1000, "", "");
    run->result = result_from(
        "{\"interval_ms\": {\"median\": 2, \"max\": 15.1}, \"warnings\": [\"severe outliers: 3 of "
        "97 measured times (3.1%), the longest 2.1 × the median\"]}",
        &g->study.arena);
    for (int named = 0; named < 2; named++) {
        g->analyses[2] = (struct lab_page_analysis){.name = "stability", .result = &stability};
        g->page.analysis_count = named ? 3 : 2;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, "the longest 2.1 × the median");
        assert_int_equal(strstr(g->text.text, "Longest of all runs: 7.55 ×") != NULL, !named);
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
    struct lab_claim claims[] = {g->claims[0], g->claims[1], g->claims[1]}; /* by class */
    claims[2].kind = "peers.class";
    claims[2].quantity = "throughput on 3 compute-bound models";
    claims[2].effect = -0.061;
    g->result.claims = claims;
    g->result.claim_count = 3;
    lab_str_clear(&g->text);
    write_page(g, "html");
    assert_contains(g->text.text, "GPU 7: 6.1% lower throughput on 3 compute-bound models than "
                                  "its peers (95% CI [5.5, 5.9]%, 5 runs each).</h1>");
}

/* Given that no batch is better on the mean, then a line of the terminal says that it is a mean, and
 * that models differ, which the line that is cut off names. */
LAB_TEST(a_batch_is_kept_on_the_mean) {
    struct given *g = *state;
    struct lab_claim batch = lab_claim_named(g->claims[0], "recommend.batch", "Batch 32",
                                             "batch 16", "throughput"),
                     others[] = {batch, batch, batch};
    static const char *const subjects[] = {"Batch 32, vit32x6x512", "Batch 64, vit16x8x768",
                                           "Batch 64, vit32x6x512"};
    for (int i = 0; i < 3; i++) {
        others[i].subject = subjects[i];
        others[i].effect = 0.055;
        others[i].low = 0.052;
        others[i].high = 0.057;
        others[i].n = 5;
    }
    batch.verdict = LAB_CLAIM_YES;
    batch.effect = 0.004;
    batch.mean_of = "30 configurations without GPUs 0+1";
    g->result.exceptions = others;
    g->result.exception_count = 3;
    g->advice = (struct lab_advice){.tested = &batch, .tested_count = 1};
    g->result.command = "numactl --cpunodebind=0 PROGRAM";
    write_page(g, "markdown");
    assert_contains(
        g->text.text,
        "Keep batch 16; 32 for vit32x6x512 (+5.5% \\[5.2, 5.7\\]); 64 for vit16x8x768 (+5.5% "
        "\\[5.2, "
        "5.7\\]; 5 runs each). No other batch size gains 1% or more on average, over 30 "
        "configurations "
        "without GPUs 0+1.\n");
    g->analyses[1] = g->analyses[0]; /* the study asks for it, too */
    g->analyses[1].name = "recommend";
    g->analyses[1].named = true;
    struct lab_analysis_result other = g->result;
    other.answer = "Batch sizes differ.";
    g->analyses[1].result = &other;
    g->page.analysis_count = 2;
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text, "**\n\nUse batch 16; 32 for vit32x6x512; 64 for vit16x8x768.\n");
    write_end(g);
    assert_contains(g->text.text, "Also      Keep batch 16; 32 for vit32x6x512 (+5.5% [5.2, 5.7]); "
                                  "64 for vit16x8x768.\n");
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
    others[0].effect = 0.009; /* the other is of another batch */
    others[0].low = 0.006;
    others[0].high = 0.013;
    g->result.exceptions = others;
    g->result.exception_count = 2;
    for (int i = 0; i < 2; i++) {
        batch.effect = i ? 0.007 : 0.157;
        batch.verdict = LAB_CLAIM_YES;
        g->advice = (struct lab_advice){
            .choices = &batch, .choice_count = 1, .tested = &batch, .tested_count = 1};
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(
            g->text.text,
            i ? "Keep batch 4: no other batch size gains 1% or more"
              : "Use batch 16 (32 for vit16x8x768, +0.9% \\[0.6, 1.3\\]): 15.7% higher");
        lab_str_clear(&g->text);
        lab_page_practices(&g->page, &g->text);
        assert_int_equal(strstr(g->text.text, kept[i]) != NULL, !i);
    }
    struct lab_claim models[] = {batch, batch};
    models[0].subject = "vit32x4x256";
    models[0].effect = 0.601;
    models[1].subject = "b";
    models[1].verdict = LAB_CLAIM_NO;
    models[1].bound = 0.008;
    struct lab_analysis_advised advised = {
        .claim = batch, .range = "0 to +60.1%", .models = models, .model_count = 2};
    advised.claim.n = 5;
    advised.claim.mean_of = "6 configurations on the local NUMA node";
    g->result.advised = &advised;
    g->result.advised_count = 1;
    batch.effect = 0.157;
    lab_str_clear(&g->text);
    write_page(g, "markdown");
    assert_contains(g->text.text,
                    "(32 for vit16x8x768, +0.9% \\[0.6, 1.3\\]): 0 to +60.1% over batch 4, by "
                    "model (6 configurations on the local NUMA node, 5 runs each).\n\n| Model | "
                    "Throughput compared with batch 4 |\n|---|--:|\n| vit32x4x256 | +60.1%");
    lab_str_clear(&g->text);
    lab_page_practices(&g->page, &g->text); /* the mean of all models is near none of them */
    assert_contains(g->text.text, "| b | within ±0.8% |\n");
    assert_null(strstr(g->text.text, "Setting or GPU"));
    write_end(g);
    assert_contains(g->text.text, "[0.6, 1.3]): 0 to +60.1% over batch 4");
}

/* Given a line for each of many GPUs, then the first screen has examples, and says where the rest is. */
LAB_TEST(lines_of_many_devices_are_examples) {
    struct given *g = *state;
    struct lab_advice_line lines[6];
    for (int i = 0; i < 6; i++) {
        lines[i] = g->advice.lines[0];
        lines[i].plain = lab_arena_printf(&g->study.arena, "CUDA_VISIBLE_DEVICES=%d PROGRAM", i);
    }
    for (int count = 3; count <= 6; count += 3) {
        g->advice.lines = lines;
        g->advice.line_count = count;
        lab_str_clear(&g->text);
        write_page(g, "markdown");
        assert_contains(g->text.text, "CUDA_VISIBLE_DEVICES=1 PROGRAM");
        assert_int_equal(strstr(g->text.text, "CUDA_VISIBLE_DEVICES=2 PROGRAM") == NULL, count > 3);
        assert_int_equal(strstr(g->text.text, "The other GPUs, and lines for mpirun") != NULL,
                         count > 3);
    }
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
