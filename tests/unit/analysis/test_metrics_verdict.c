/* What is said of settings of the user's own programs: no more than their repeats show. */
#include "metrics_fixture.h"

static void add_loss(struct given *g, const char *setting, int repeat, double loss) {
    add(g, setting, repeat, "final_loss", loss, NAN);
}

/* Given a setting that is certainly better than the next alone, then others may be as good. */
LAB_TEST(only_what_is_certainly_worse_is_left_out) {
    static const struct {
        double c[5];
        const char *action, *answer, *best;
    } cases[] = {
        {{.80, 1.30, .90, 1.25, 1.00},
         "Use a or c, not b",
         "Use a or c, not b. b: 2.0% higher final_loss than a (95% CI [2.0, 2.0]%, 5 runs each).",
         NULL},
        {{1.30, 1.31, 1.29, 1.30, 1.32},
         "Use a",
         "a has the lowest final_loss; b: 2.0% higher",
         "a"},
    };
    static const double a[] = {1.000, 1.001, .999, 1.000, 1.001},
                        b[] = {1.020, 1.021, 1.019, 1.020, 1.021};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < 5; r++) {
            add_loss(g, "a", r, a[r]);
            add_loss(g, "b", r, b[r]);
            add_loss(g, "c", r, cases[i].c[r]);
        }
        analyse(g);
        assert_string_equal(g->result.action, cases[i].action);
        assert_contains(g->result.answer, cases[i].answer);
        assert_true(lab_str_equal(g->result.parts[0].cells[1].text, cases[i].best));
        given_end(&g->study);
    }
}

/* Given an interval without 0 that is none of three pairs', then the row says so. */
LAB_TEST(a_corrected_verdict_is_in_its_row) {
    static const double a[] = {1, 1.01, 0.99}, more[] = {.05, .06, .08}, c[] = {1, 1.09, 1.12};
    struct given made, *g = &made;
    given_begin(&g->study, "test_matrix");
    for (int r = 0; r < 3; r++) {
        add_loss(g, "a", r, a[r]);
        add_loss(g, "b", r, a[r] * (1 + more[r]));
        add_loss(g, "c", r, c[r]);
    }
    analyse(g);
    const struct lab_doc_table *table = &g->result.parts[0].tables[0];
    bool found = false;
    for (int i = 0; i < table->column_count; i++)
        found |= lab_str_equal(table->cells[table->column_count + i].text,
                               "+6.3% [0.4, 12.6], inconclusive");
    assert_true(found);
    assert_null(g->result.action);
    given_end(&g->study);
}

/* Given a setting that diverged in most of its runs, then the others are compared without it. */
LAB_TEST(what_mostly_diverged_does_not_lead) {
    struct given made, *g = &made;
    given_begin(&g->study, "test_matrix");
    for (int r = 0; r < 3; r++) {
        add_loss(g, "sgd", r, r == 1 ? 0.1 : (double)NAN);
        add_loss(g, "adam", r, 0.30 + 0.001 * r);
        add_loss(g, "rms", r, 0.50 + 0.001 * r);
    }
    analyse(g);
    assert_string_equal(g->result.action, "Use adam");
    assert_contains(g->result.answer, "adam has the lowest final_loss; rms: 66.4% higher");
    assert_contains(g->result.answer, "sgd (2 of 3 runs)");
    const struct lab_doc_table *table = &g->result.parts[0].tables[0];
    assert_string_equal(table->cells[0].text, "adam");
    assert_string_equal(table->cells[2 * table->column_count].text, "sgd");
    for (int i = 0; i < g->result.claim_count; i++)
        assert_int_equal(g->result.claims[i].n, 3);
    given_end(&g->study);
}

/* --- how often it is right --- */

struct counts {
    int claimed, named; /* studies with a verdict of a difference, and with the planted "Use s1" */
};

/* Losses are 1 ± 1% but for s1's, which are lower by that many standard errors of a difference. */
static struct counts simulate(int studies, int settings, int repeats, double planted) {
    struct counts counts = {0};
    uint64_t drawn = 0;
    for (int i = 0; i < studies; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        g->study.random = drawn;
        for (int s = 0; s < settings; s++)
            for (int r = 0; r < repeats; r++)
                add_loss(g, lab_arena_printf(&g->study.arena, "s%d", s), r,
                         1 + 0.01 * given_normal(&g->study) -
                             (s == 1 ? 0.01 * planted * sqrt(2.0 / repeats) : 0));
        drawn = g->study.random;
        analyse(g);
        bool claimed = g->result.action != NULL;
        for (int c = 0; c < g->result.claim_count; c++)
            claimed |= g->result.claims[c].verdict == LAB_CLAIM_YES;
        counts.claimed += claimed;
        counts.named += lab_str_equal(g->result.action, "Use s1");
        given_end(&g->study);
    }
    return counts;
}

/* Given settings that are all alike, then at most 5% of studies show a difference; given one that is
 * better, then most do. */
LAB_TEST(verdicts_are_seldom_false_and_often_found) {
    enum { STUDIES = 400 };
    static const struct {
        int settings, repeats;
        double planted, claimed, named; /* shares of studies, at least */
    } cases[] = {{10, 3, 0}, {4, 5, 0}, {3, 3, 0}, {4, 5, 5, .95, .93}, {10, 3, 6.1, .95, .93}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct counts counts =
            simulate(STUDIES, cases[i].settings, cases[i].repeats, cases[i].planted);
        if (cases[i].planted > 0)
            assert_true(counts.claimed >= cases[i].claimed * STUDIES &&
                        counts.named >= cases[i].named * STUDIES);
        else
            assert_true(counts.claimed <= STUDIES / 20);
    }
}

const struct lab_test_program lab_test_program = {0};
