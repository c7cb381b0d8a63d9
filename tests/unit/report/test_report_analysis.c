/* What an analysis found, as people read it: one pipeline, and several compared. */
#include "study_fixture.h"

#include "report/analysis.h"
#include "store/trace/trace_read.h"

#define FIXTURES LAB_TEST_SOURCE_DIR "/tests/fixtures/traces/"
#define MOST     16

struct given {
    struct lab_arena arena;
    struct lab_analysis_trace traces[MOST];
    int count;
    struct lab_analysis_result result;
};

static void add_trace(struct given *g, const char *name, const char *file) {
    struct lab_trace_file read;
    ASSERT_OK(lab_trace_read(lab_arena_printf(&g->arena, FIXTURES "%s", file), &g->arena, &read,
                             err) < 0);
    for (int i = 0; i < read.trace_count; i++)
        g->traces[g->count++] = (struct lab_analysis_trace){
            read.trace_count == 1
                ? name
                : lab_arena_printf(&g->arena, "%s/%u", name, read.traces[i].process),
            &read.traces[i]};
}

static void analyse(struct given *g) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_analysis *analysis = lab_analysis_find("latency", &err);
    assert_non_null(analysis);
    struct lab_analysis_input input = {.traces = g->traces, .trace_count = g->count};
    if (lab_analysis_run(analysis, NULL, &input, &g->arena, &g->result, &err) < 0)
        fail_msg("%s", err.text);
}

static void given_one(struct given *g) {
    add_trace(g, "gpu0_numa1_vit32x6x512", "pipeline_gpu0_numa1_vit32x6x512.sqlite");
}

static void given_several(struct given *g) {
    given_one(g);
    add_trace(g, "nsight2022", "nsight2022.sqlite");
    add_trace(g, "bare", "bare.sqlite");
    add_trace(g, "graphs", "graphs.sqlite");
    add_trace(g, "two_processes", "two_processes.sqlite");
}

static const struct {
    const char *name;
    void (*make)(struct given *g);
} cases[] = {{"one", given_one}, {"several", given_several}};

static void begin(struct given *g, void (*make)(struct given *g)) {
    *g = (struct given){.count = 0};
    lab_arena_init(&g->arena);
    make(g);
    analyse(g);
}

LAB_TEST(golden_files_hold) {
    static const struct {
        struct lab_style style;
        const char *suffix;
    } styles[] = {
        {{80, false, true}, "80"}, {{120, false, true}, "120"}, {{80, false, false}, "80-ascii"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given g;
        begin(&g, cases[i].make);
        for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
            char name[64];
            LAB_AUTO(str, text);
            lab_doc_write(lab_report_analysis("latency", &g.result, &g.arena), "text",
                          styles[k].style, &text);
            assert_fits(text.text, styles[k].style.columns);
            if (!styles[k].style.unicode)
                assert_ascii(text.text);
            snprintf(name, sizeof name, "latency-%s-%s.txt", cases[i].name, styles[k].suffix);
            assert_golden(text.text, name);
        }
        lab_arena_release(&g.arena);
    }
}

LAB_TEST(markdown_golden_files_hold) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given g;
        char name[64];
        begin(&g, cases[i].make);
        LAB_AUTO(str, text);
        lab_doc_write(lab_report_analysis("latency", &g.result, &g.arena), "markdown",
                      (struct lab_style){0}, &text);
        snprintf(name, sizeof name, "latency-%s.md", cases[i].name);
        assert_golden(text.text, name);
        lab_arena_release(&g.arena);
    }
}

/* Given a trace of a simulated device, the word stands wherever a figure does. */
LAB_TEST(simulated_figures_say_so) {
    struct given g = {.count = 0};
    lab_arena_init(&g.arena);
    given_one(&g);
    for (size_t i = 0; i < g.traces[0].trace->note_count; i++)
        if (strcmp(g.traces[0].trace->notes[i].name, LAB_TRACE_NOTE_DEVICE) == 0)
            g.traces[0].trace->notes[i].value = "sim:l40s-10:3";
    analyse(&g);
    LAB_AUTO(str, text);
    lab_doc_write(lab_report_analysis("latency", &g.result, &g.arena), "text",
                  (struct lab_style){.columns = 80, .unicode = true}, &text);
    assert_contains(text.text, "These are simulated devices.");
    assert_contains(text.text, "(sim:l40s-10:3), simulated");
    lab_str_clear(&text);
    lab_doc_write(lab_report_analysis("latency", &g.result, &g.arena), "markdown",
                  (struct lab_style){0}, &text);
    assert_contains(text.text, "# Latency (simulated)");
    lab_arena_release(&g.arena);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
