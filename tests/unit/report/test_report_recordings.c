/*
 * What analyses of recordings say, as people read it at 80 columns: golden files. The recordings
 * are made up, by formulas that anyone can follow.
 */
#include "study_fixture.h"

#include "report/analysis.h"
#include "unit/analysis/recording_fixture.h"

/* Four GPUs for a minute; `memory` of the first, `skew` of the last one's load. */
static void add_four(struct given *f, const char *name, const char *label, double memory,
                     double skew) {
    static const double share[] = {12800, 12750, 12825, 12780};
    given_recording(f, name, label);
    for (int g = 0; g < 4; g++) {
        struct lab_track *gpu = given_gpu(f, g);
        for (int t = 0; t < 60; t++) {
            double wave = t % 3 - 1.0, load = (g == 3 ? skew : 1) * (84 + 2 * wave);
            given_tick(gpu, t, share[g] / 12800 * memory + 40 * wave, load, 60 + load, 60 + g);
        }
    }
}

static void given_even(struct given *f) {
    add_four(f, "even", "even", 12800, 1);
}

static void given_uneven(struct given *f) {
    add_four(f, "even", "even", 12800, 1);
    add_four(f, "uneven_1", "uneven", 14100, 0.4);
    add_four(f, "uneven_2", "uneven", 14000, 0.42);
    struct lab_track *last = &f->now->tracks[3];
    for (int t = 20; t < 40; t++) /* lost for a third of the time */
        for (int c = 0; c < 5; c++)
            last->valid[c][t] = 0;
    f->recordings[0].rate = 412.5;
    f->recordings[1].rate = 401;
    f->recordings[2].rate = 398.25;
}

static const struct {
    const char *analysis, *name;
    void (*make)(struct given *f);
} cases[] = {
    {"balance", "balance-even", given_even},     {"balance", "balance-uneven", given_uneven},
    {"memory", "memory-uneven", given_uneven},   {"summary", "summary-uneven", given_uneven},
    {"compare", "compare-uneven", given_uneven},
};

LAB_TEST(golden_files_hold) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given f = {.count = 0};
        char name[64];
        lab_arena_init(&f.arena);
        LAB_AUTO(str, text);
        cases[i].make(&f);
        when_analysed(&f, cases[i].analysis, NULL);
        lab_doc_write(lab_report_analysis("balance", &f.result, &f.arena), "text",
                      (struct lab_style){80, false, true}, &text);
        assert_fits(text.text, 80);
        snprintf(name, sizeof name, "%s-80.txt", cases[i].name);
        assert_golden(text.text, name);
        lab_str_clear(&text);
        lab_doc_write(lab_report_analysis("balance", &f.result, &f.arena), "text",
                      (struct lab_style){80, false, false}, &text);
        assert_fits(text.text, 80);
        assert_ascii(text.text);
        lab_arena_release(&f.arena);
    }
}

/* Lines as people see them are a block of their own in a document. */
LAB_TEST(markdown_golden_file_holds) {
    struct given f = {.count = 0};
    lab_arena_init(&f.arena);
    LAB_AUTO(str, text);
    given_even(&f);
    when_analysed(&f, "balance", NULL);
    lab_doc_write(lab_report_analysis("balance", &f.result, &f.arena), "markdown",
                  (struct lab_style){0}, &text);
    assert_golden(text.text, "balance-even.md");
    lab_arena_release(&f.arena);
}

/* Given a simulated recording, the word stands in every heading. */
LAB_TEST(simulated_figures_say_so) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given f = {.count = 0};
        lab_arena_init(&f.arena);
        LAB_AUTO(str, text);
        cases[i].make(&f);
        f.now->simulated = true;
        when_analysed(&f, cases[i].analysis, NULL);
        lab_doc_write(lab_report_analysis("balance", &f.result, &f.arena), "text",
                      (struct lab_style){80, false, true}, &text);
        assert_contains(text.text, "These are simulated devices.");
        assert_contains(text.text, ", simulated\n");
        lab_arena_release(&f.arena);
    }
}

/* Programs get MiB under keys that say so, and nothing that is for people alone. */
LAB_TEST(programs_get_units_in_keys) {
    struct given f = {.count = 0};
    lab_arena_init(&f.arena);
    given_even(&f);
    when_analysed(&f, "balance", NULL);
    const struct lab_value *map =
        lab_doc_value(lab_report_analysis("balance", &f.result, &f.arena), &f.arena);
    const struct lab_value *part = lab_value_get(map, "recordings")->items[0];
    assert_near(lab_value_get(part, "memory_total_mib")->number, 51155, 0.01);
    assert_string_equal(lab_value_get(part, "memory_grade")->string, "excellent");
    const struct lab_value *gpu = lab_value_get(part, "memory")->items[1];
    assert_near(lab_value_get(gpu, "mean_mib")->number, 12750, 0.01);
    assert_null(lab_value_get(gpu, "lines"));
    lab_arena_release(&f.arena);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
