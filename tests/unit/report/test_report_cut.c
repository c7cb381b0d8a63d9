/* test_report_cut.c: which points a terminal shows where it has no room for all. */
#include "report/page/page.h"
#include "report/study/study_internal.h"
#include "study_fixture.h"

static const struct lab_style narrow = {.columns = 80, .unicode = true},
                              wide = {.columns = 100, .unicode = true};

static int count_lines(const char *text) {
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

enum { MODELS = 9, GPUS = 3, NODES = 2, CELLS = MODELS * GPUS };

static void make_cell(struct fixture *f, int gpu, int depth, struct lab_claim *claim) {
    const char **scope = lab_arena_alloc(&f->arena, NODES, sizeof *scope);
    const char *model = lab_arena_printf(&f->arena, "vit32x%dx512", depth);
    for (int node = 0; node < NODES; node++) {
        struct lab_run *run = fixture_plan(f, gpu, 1, node, model);
        fixture_done(f, run, 1000 - 10 * node, "", "");
        scope[node] = run->id;
    }
    *claim = lab_claim_none;
    claim->kind = "numa.cell";
    claim->reference = "NUMA node 0";
    claim->quantity = "throughput";
    claim->effect = -0.1;
    claim->verdict = LAB_CLAIM_YES;
    claim->scope = scope;
    claim->scope_count = NODES;
}

/* A study of nine models on three GPUs and both of two NUMA nodes, of which the second has 10% less
 * throughput, as a terminal shows it. */
static const char *models_text(struct fixture *f, const char *answer, const char *reason,
                               struct lab_style style) {
    fixture_init(f, "mine", "mine");
    struct lab_claim *claims = lab_arena_alloc(&f->arena, CELLS + 1, sizeof *claims);
    for (int i = 0; i < CELLS; i++)
        make_cell(f, i % GPUS, 1 + i / GPUS, &claims[i]);
    claims[CELLS] = lab_claim_none;
    claims[CELLS].kind = "numa.device";
    claims[CELLS].subject = "GPU 0, NUMA node 3";
    claims[CELLS].quantity = "throughput";
    claims[CELLS].reason = reason;
    struct lab_analysis_part part = {.name = "all"};
    struct lab_analysis_result result = {.answer = answer,
                                         .parts = &part,
                                         .part_count = 1,
                                         .claims = claims,
                                         .claim_count = CELLS + (reason != NULL)};
    struct lab_page_analysis analysis = {.name = "numa", .result = &result};
    struct lab_page page = {.study = &f->study, .analyses = &analysis, .analysis_count = 1};
    struct lab_doc *doc = lab_doc_open(NULL, &f->arena);
    LAB_AUTO(str, text);
    lab_report_add_study(doc, &f->study, &page, style, false);
    lab_doc_write(doc, "text", style, &text);
    assert_true(count_lines(text.text) <= 30);
    return lab_arena_strdup(&f->arena, text.text);
}

/* Given a table of settings with a long caption, below a long verdict and above many warnings and
 * things to do, then its rows give way: 30 lines at most. */
LAB_TEST(what_is_said_leaves_fewer_rows) {
    static const char said[] = "NUMA node 2: 12.1% lower throughput on transfer-bound vit32x1x512 "
                               "and vit32x2x512 than NUMA node 0 (95% CI [11.8, 12.4]%, 5 runs). ";
    static const char *const words[] = {said, said, said, NULL};
    static const struct lab_doc_column columns[] = {{"point", "Point", LAB_UNIT_TEXT},
                                                    {"drift", "Drift", LAB_UNIT_TEXT}};
    struct lab_doc_cell cells[2 * MODELS];
    for (int i = 0; i < 2 * MODELS; i++)
        cells[i] = lab_cell_text("none");
    struct lab_doc_table table = {"points", "Points", columns, 2, cells, MODELS, NULL};
    struct fixture f;
    fixture_init(&f, "mine", "mine");
    for (int i = 0; i < MODELS; i++)
        fixture_done(&f, fixture_plan(&f, i, 1, 0, "vit32x2x512"), 1000,
                     "\"severe outliers: 3 of 97 measured times (3.1%)\", \"late\", \"hot\", "
                     "\"other processes took 9.1% of it\", \"slow\"",
                     "");
    const char *answer = lab_arena_printf(&f.arena, "%s%s%s%s", said, said, said, said);
    struct lab_claim open = lab_claim_none;
    open.kind = "stability.point";
    open.subject = "throttled time of all runs";
    struct lab_analysis_part part = {.name = "all", .tables = &table, .table_count = 1};
    struct lab_analysis_result result = {.answer = answer,
                                         .parts = &part,
                                         .part_count = 1,
                                         .claims = &open,
                                         .claim_count = 1,
                                         .by_point = lab_arena_printf(&f.arena, "%s%s", said, said),
                                         .action = said,
                                         .command = said,
                                         .others = words};
    struct lab_page_analysis analysis = {.name = "stability", .result = &result};
    struct lab_page page = {.study = &f.study, .analyses = &analysis, .analysis_count = 1};
    struct lab_doc *doc = lab_doc_open(NULL, &f.arena);
    LAB_AUTO(str, text);
    lab_report_add_study(doc, &f.study, &page, wide, false);
    lab_doc_write(doc, "text", wide, &text);
    assert_contains(text.text, "Warning: 2 more kinds (--verbose)\n");
    assert_contains(text.text, " more rows");
    assert_true(count_lines(text.text) <= 30);

    /* more is said still: then warnings give way, too */
    result.by_point = lab_arena_printf(&f.arena, "%s%s%s", said, said, said);
    doc = lab_doc_open(NULL, &f.arena);
    lab_str_clear(&text);
    lab_report_add_study(doc, &f.study, &page, wide, false);
    lab_doc_write(doc, "text", wide, &text);
    assert_contains(text.text, "Warning: 4 more kinds (--verbose)\n");
    assert_true(count_lines(text.text) <= 30);
    fixture_release(&f);
}

/* Given more points than lines, then a point and its reference are both shown or neither. */
LAB_TEST(a_cut_leaves_pairs_whole) {
    struct fixture f;
    const char *text = models_text(&f, "Use NUMA node 0.", NULL, narrow);
    int nodes[2] = {0};
    for (const char *at = text; (at = strstr(at, "vit32x")); at++)
        nodes[0]++;
    for (const char *at = text; (at = strstr(at, "-10.0%")); at++)
        nodes[1]++;
    assert_true(nodes[0] > 1);
    assert_int_equal(GPUS * nodes[0], nodes[1]);
    assert_contains(text, "more rows (--verbose)");
    fixture_release(&f);
}

/* Given a verdict on the last of them, then that one is shown, and how many are. */
LAB_TEST(a_cut_shows_what_the_answer_names) {
    struct fixture f;
    const char *text = models_text(&f, "Use NUMA node 0. vit32x9x512: 10.0% lower.", NULL, narrow);
    assert_contains(text, "\n  vit32x9x512 ");
    assert_contains(text, "of 18 rows shown (all: --verbose).");
    fixture_release(&f);
}

/* Given a node that was not tested, then the terminal names it as the page does, without links. */
LAB_TEST(a_terminal_names_what_was_not_tested) {
    struct fixture f;
    const char *text = models_text(&f, "Use NUMA node 0.", "no run", narrow);
    assert_contains(text, "\n  Not tested: GPU 0, NUMA node 3.");
    assert_null(strstr(text, "]("));
    fixture_release(&f);
}

/* Given words, then a value is named as a whole, a number with its axis's title. */
LAB_TEST(names_in_words) {
    const char *words = "GPU 7: 5.7% lower. Keep batch 16, vit32x2x128. GPUs 0+1 share a bridge.";
    assert_true(study_cut_is_named(words, "GPU", "7"));
    assert_true(study_cut_is_named(words, "Batch", "16"));
    assert_true(study_cut_is_named(words, "Model", "vit32x2x128"));
    assert_false(study_cut_is_named(words, "Model", "vit32x2x12"));
    assert_false(study_cut_is_named(words, "GPU", "5"));
    assert_false(study_cut_is_named(words, "GPU", "0"));
    assert_false(study_cut_is_named(NULL, "GPU", "0"));
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
