/* Where studies stand: one in detail, all of them in a line each. */
#include "study_fixture.h"

static char *status_of(const struct fixture *f, struct lab_style style) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    struct lab_str out;
    lab_str_init(&out);
    lab_report_add_status(doc, &f->study);
    lab_doc_write(doc, "text", style, &out);
    return out.text;
}

static void write_list(const struct lab_study_info *studies, int count, struct lab_style style,
                       struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_report_add_studies(doc, studies, count);
    lab_doc_write(doc, "text", style, out);
}

static const struct {
    struct lab_style style;
    const char *suffix;
} styles[] = {
    {{80, false, true}, "80"}, {{120, false, true}, "120"}, {{80, false, false}, "80-ascii"}};
#define STYLE_COUNT (sizeof styles / sizeof *styles)

LAB_TEST(status_golden_files_hold) {
    static const struct {
        const char *name;
        void (*make)(struct fixture *f);
    } cases[] = {{"quick", fixture_quick},
                 {"numa-running", fixture_numa_running},
                 {"interrupted", fixture_interrupted},
                 {"program", fixture_program_running},
                 {"simulated", fixture_simulated}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        cases[i].make(&f);
        for (size_t k = 0; k < STYLE_COUNT; k++) {
            char *text = status_of(&f, styles[k].style), name[64];
            assert_fits(text, styles[k].style.columns);
            if (!styles[k].style.unicode)
                assert_ascii(text);
            snprintf(name, sizeof name, "status-%s-%s.txt", cases[i].name, styles[k].suffix);
            assert_golden(text, name);
            lab_mem_free(text);
        }
        fixture_release(&f);
    }
}

/* Given a loss in each step and an evaluation now and then, then the loss keeps its curve. */
LAB_TEST(each_metric_of_a_program_has_its_curve) {
    struct fixture f;
    fixture_program_running(&f);
    struct lab_metric_curves curves = {.arena = &f.arena};
    lab_metric_curves_get(&curves, "test_loss", "", 0);
    lab_metric_curves_get(&curves, "train_loss", "", 0);
    for (int i = 0; i <= 40; i++)
        lab_curve_add(&curves.items[1].curve, 25 * i, i, 3 - 0.05 * i, &f.arena);
    lab_curve_add(&curves.items[0].curve, 500, 20, 2.1, &f.arena);
    lab_curve_add(&curves.items[0].curve, 1000, 40, 1.1, &f.arena);
    ((struct lab_program *)f.study.programs)->metrics = curves.items;
    ((struct lab_program *)f.study.programs)->metric_count = curves.count;
    char *text = status_of(&f, styles[0].style);
    assert_contains(text, "\n  step 1000  test_loss 1.1  train_loss 1 ██▇▇▆▆▅▅▄▄▃▃▂▂▁▁\n");
    lab_mem_free(text);
    fixture_release(&f);
}

LAB_TEST(list_golden_files_hold) {
    void (*const makes[])(struct fixture *) = {fixture_numa_running, fixture_interrupted,
                                               fixture_repeats, fixture_simulated};
    enum { COUNT = sizeof makes / sizeof *makes };
    struct fixture fixtures[COUNT];
    struct lab_study_info studies[COUNT];
    for (int i = 0; i < COUNT; i++) {
        makes[i](&fixtures[i]);
        studies[i] = fixtures[i].study;
    }
    for (size_t k = 0; k < STYLE_COUNT; k++) {
        LAB_AUTO(str, out);
        write_list(studies, COUNT, styles[k].style, &out);
        assert_fits(out.text, styles[k].style.columns);
        char name[64];
        snprintf(name, sizeof name, "list-%s.txt", styles[k].suffix);
        assert_golden(out.text, name);
    }
    for (int i = 0; i < COUNT; i++)
        fixture_release(&fixtures[i]);
}

/* Given counts alone, as a list that reads no runs has them, then the line is the same. */
LAB_TEST(list_needs_no_runs) {
    struct fixture f;
    fixture_repeats(&f);
    struct lab_style style = {.columns = 120, .unicode = true};
    LAB_AUTO(str, with);
    LAB_AUTO(str, without);
    write_list(&f.study, 1, style, &with);
    int counts[LAB_RUN_STATE_COUNT] = {[LAB_RUN_DONE] = 8, [LAB_RUN_FAILED] = 1};
    f.study.state_counts = counts;
    f.study.runs = NULL;
    f.study.run_count = 0;
    write_list(&f.study, 1, style, &without);
    assert_string_equal(with.text, without.text);
    fixture_release(&f);
}

/* Given a folder that leaves no room beside it, then it stands whole on a line of its own. */
LAB_TEST(folders_are_never_cut) {
    struct fixture f;
    fixture_quick(&f);
    f.study.folder = "/home/somebody/projects/placement/outputs/quick_test/2026-11-15/10-42-03";
    LAB_AUTO(str, out);
    write_list(&f.study, 1, (struct lab_style){.columns = 80, .unicode = true}, &out);
    assert_contains(out.text, "  quick_test  2026-11-15 10:42:03   3/3  done\n"
                              "    /home/somebody/projects/placement/outputs/quick_test/2026-11-15/"
                              "10-42-03\n");
    fixture_release(&f);
}

LAB_TEST(no_studies_is_no_riddle) {
    LAB_AUTO(str, out);
    write_list(NULL, 0, (struct lab_style){.columns = 80}, &out);
    assert_string_equal(out.text, "No studies yet: `gpulab run` lists what can be run.\n");
}

/* 20 s for 10 warm-up and 40 measured iterations of 110: 60 more take 24 s. */
LAB_TEST(time_left_follows_the_runs_own_pace) {
    struct fixture f;
    fixture_numa_running(&f);
    char *text = status_of(&f, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(text, "  cpu:2, NUMA node 0, vit0x0x0  measuring   40 of 100  24 s\n");
    lab_mem_free(text);

    /* too early to tell */
    struct lab_run_progress early = *f.study.progress;
    early.phase = "warm-up";
    early.done = 1;
    early.total = 10;
    f.study.progress = &early;
    text = status_of(&f, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(text, "  cpu:2, NUMA node 0, vit0x0x0  warm-up     1 of 10     ?\n");
    lab_mem_free(text);

    /* one that nothing was heard of yet */
    f.study.progress_count = 0;
    text = status_of(&f, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(text, "  cpu:2, NUMA node 0, vit0x0x0  starting                 ?\n");
    lab_mem_free(text);
    fixture_release(&f);
}

LAB_TEST(many_under_way_are_counted) {
    struct fixture f;
    fixture_numa(&f, 8);
    for (int i = 8; i < 48; i++)
        fixture_begin(&f, &f.runs[i]);
    f.study.running = true;
    char *text = status_of(&f, (struct lab_style){.columns = 80, .unicode = true});
    assert_contains(text, "40 are under way");
    assert_contains(text, "… and 24 more\n");
    lab_mem_free(text);
    fixture_release(&f);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
