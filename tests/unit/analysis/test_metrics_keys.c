/* Which key of a matrix matters: no more than its crossing and its repeats show. */
#include "metrics_fixture.h"

/* Accuracies of four learning rates × three batch sizes, each run's by `value`. */
struct crossing {
    int rates, batches, repeats;
    double (*value)(struct given *g, int rate, int batch, int repeat);
};

static void add_run(struct given *g, int rate, int batch, int repeat, double value) {
    static const char *const rates[] = {"0.001", "0.003", "0.01", "0.03"};
    struct lab_arena *arena = &g->study.arena;
    struct lab_study_run *run =
        add(g, lab_arena_printf(arena, "r%d_b%d", rate, batch), repeat, "val/acc", value, NAN);
    run->options = given_json(
        &g->study, lab_arena_printf(arena,
                                    "{\"command\": \"train --lr {lr}\", \"matrix\": {\"lr\": %s, "
                                    "\"batch\": %d}}",
                                    rates[rate], 16 << batch));
}

static void analyse_crossing(struct given *g, const struct crossing *crossing) {
    for (int repeat = 0; repeat < crossing->repeats; repeat++)
        for (int rate = 0; rate < crossing->rates; rate++)
            for (int batch = 0; batch < crossing->batches; batch++)
                add_run(g, rate, batch, repeat, crossing->value(g, rate, batch, repeat));
    analyse(g);
}

static double seed_of(int repeat) {
    return 0.004 * ((repeat * 7) % 5 - 2);
}

/* Rates matter, batches don't. */
static double rates_matter(struct given *g, int rate, int batch, int repeat) {
    static const double lost[] = {0, 0.0003, 0.009, 0.03};
    (void)batch;
    return 0.9 + seed_of(repeat) - lost[rate] + 0.0003 * given_normal(&g->study);
}

/* Both do, and no setting beats all others: two rates are alike. */
static double both_matter(struct given *g, int rate, int batch, int repeat) {
    return rates_matter(g, rate, batch, repeat) - (batch == 2 ? 0.01 : 0);
}

/* The best batch is the largest. */
static double largest_wins(struct given *g, int rate, int batch, int repeat) {
    return rates_matter(g, 0, batch, repeat) + 0.01 * batch + 0 * rate;
}

/* The best rate is another one with the largest batch. */
static double rates_turn(struct given *g, int rate, int batch, int repeat) {
    return rates_matter(g, batch == 2 ? 3 - rate : rate, batch, repeat);
}

/* The largest batch loses, with high rates more. */
static double rates_depend(struct given *g, int rate, int batch, int repeat) {
    return both_matter(g, rate, batch, repeat) - (batch == 2 && rate == 3 ? 0.05 : 0);
}

LAB_TEST(the_key_that_matters_is_named) {
    static const struct {
        double (*value)(struct given *g, int rate, int batch, int repeat);
        const char *answer, *action, *kind, *without;
    } cases[] = {
        {rates_matter,
         "Use lr=0.001 or 0.003: 0.01 and 0.03 have 1.0% [1.0, 1.0] and 3.3% [3.3, 3.4] lower "
         "val/acc (95% CI, means over batch, 4 runs each). batch, mean over lr: no difference "
         "larger "
         "than 0.1%.",
         "Use lr=0.001 or 0.003", "metrics.key", "Not tested"},
        {largest_wins,
         " lr, mean over batch: no difference larger than 0.1%. Not tested: batch above 64.",
         "Use batch=64", "metrics.key", "effect on loss"},
        {both_matter, "Use batch=16 or 32: 64 has 1.1% [1.1, 1.2] lower val/acc.",
         "Use lr=0.001 or 0.003; batch=16 or 32", "metrics.key", "depend"},
        {rates_depend,
         "Use batch=16 or 32: 64 has 2.6% [2.6, 2.6] lower val/acc. The effects of lr and batch "
         "depend on each other. lr=0.03 with batch=64: 5.8% lower val/acc than their separate "
         "effects (95% CI",
         "Use lr=0.001 or 0.003; batch=16 or 32", "metrics.key", "no difference"},
        {rates_turn,
         "Use lr=0.001, batch=16; 5 other settings are not certainly worse. The effects of lr and "
         "batch depend on each other. lr=0.001, batch=64: 3.4% lower val/acc than lr=0.001, "
         "batch=16 (95% CI [3.3, 3.4]%, 4 runs each). lr=0.03 with batch=64: 4.4% higher val/acc "
         "than their separate effects (95% CI [4.3, 4.6]%, 4 runs each).",
         "Use lr=0.001, batch=16", NULL, "means over"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        analyse_crossing(g, &(struct crossing){4, 3, 4, cases[i].value});
        assert_contains(g->result.answer, cases[i].answer);
        assert_null(strstr(g->result.answer, cases[i].without));
        if (cases[i].action)
            assert_string_equal(g->result.action, cases[i].action);
        if (cases[i].kind)
            assert_string_equal(g->result.claims[0].kind, cases[i].kind);
        assert_contains(g->result.command, "train --lr 0.0"); /* Next is a line to paste */
        given_end(&g->study);
    }
}

LAB_TEST(levels_have_a_table) {
    struct given made, *g = &made;
    given_begin(&g->study, "test_matrix");
    analyse_crossing(g, &(struct crossing){4, 3, 4, rates_matter});
    const struct lab_doc_cell *best = cell(g, "by_key", 0, "Value"),
                              *worst = cell(g, "by_key", 3, "Change");
    assert_non_null(best);
    assert_string_equal(best->text, "lr=0.001");
    assert_string_equal(worst->text, "-3.3% [-3.4, -3.3]");
    assert_string_equal(cell(g, "by_key", 4, "Change")->text, "reference");
    given_end(&g->study);
}

/* Given keys that are no crossing, one run each, or a setting without a value, then settings are
 * compared, not keys. */
LAB_TEST(without_a_whole_crossing_keys_are_not_compared) {
    for (int lacks = 0; lacks < 4; lacks++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int repeat = 0; repeat < (lacks == 1 ? 1 : 4); repeat++)
            for (int rate = 0; rate < 4; rate++)
                for (int batch = 0; batch < (lacks == 3 ? 1 : 3); batch++)
                    if (lacks != 2 || rate != 2 || batch != 1)
                        add_run(g, rate, batch, repeat, rates_matter(g, rate, batch, repeat));
        analyse(g);
        assert_int_equal(cell(g, "by_key", 0, "Value") != NULL, lacks == 0);
        given_end(&g->study);
    }
}

/* Given keys whose values always change together, then they are one. */
LAB_TEST(keys_that_move_together_are_one) {
    struct given made, *g = &made;
    given_begin(&g->study, "test_matrix");
    for (int repeat = 0; repeat < 4; repeat++)
        for (int model = 0; model < 2; model++)
            for (int batch = 0; batch < 3; batch++) {
                add_run(g, model, batch, repeat, rates_matter(g, 3 * model, batch, repeat));
                g->study.table.runs[g->study.table.run_count - 1].options = given_json(
                    &g->study,
                    lab_arena_printf(&g->study.arena,
                                     "{\"matrix\": {\"depth\": %d, \"width\": %d, \"batch\": %d}}",
                                     2 + model, 64 << model, 16 << batch));
            }
    analyse(g);
    assert_contains(g->result.answer,
                    "Use depth=2, width=64: depth=3, width=128 has 3.3% [3.3, 3.4] lower val/acc");
    given_end(&g->study);
}

/* --- how often it is right --- */

static double noise(struct given *g, int rate, int batch, int repeat) {
    (void)rate, (void)batch;
    return 0.9 + seed_of(repeat) + 0.002 * given_normal(&g->study);
}

/* What a rate is to a seed is the same with every batch. */
static double shared[16][4];
static double shared_noise(struct given *g, int rate, int batch, int repeat) {
    if (batch == 0)
        shared[repeat][rate] = 0.002 * given_normal(&g->study);
    return noise(g, rate, batch, repeat) + shared[repeat][rate];
}

/* Two batches differ by 0.3%. */
static double slight(struct given *g, int rate, int batch, int repeat) {
    return noise(g, rate, batch, repeat) * (batch == 2 ? 0.997 : 1);
}

static double planted(struct given *g, int rate, int batch, int repeat) {
    return noise(g, rate, batch, repeat) * (rate == 3 ? 0.98 : 1);
}

static double crossed(struct given *g, int rate, int batch, int repeat) {
    return noise(g, rate, batch, repeat) * (rate == 3 && batch == 2 ? 0.97 : 1);
}

struct counts {
    int claimed, named, exceeded, crossed;
};

static struct counts simulate(int studies, struct crossing crossing, double difference) {
    struct counts counts = {0};
    uint64_t drawn = 0;
    for (int i = 0; i < studies; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        g->study.random = drawn;
        analyse_crossing(g, &crossing);
        drawn = g->study.random;
        bool claimed = g->result.action != NULL, interaction = false;
        for (int c = 0; c < g->result.claim_count; c++) {
            bool yes = g->result.claims[c].verdict == LAB_CLAIM_YES;
            claimed |= yes;
            interaction |= yes && lab_str_equal(g->result.claims[c].kind, "metrics.interaction");
        }
        const char *said =
            g->result.answer ? strstr(g->result.answer, "batch: no difference") : NULL;
        double bound = 1;
        if (said && sscanf(said, "batch: no difference larger than %lf%%", &bound) == 1)
            counts.exceeded += bound < difference;
        counts.claimed += claimed;
        counts.crossed += interaction;
        counts.named += g->result.answer && strstr(g->result.answer, "0.03 has 2.") != NULL;
        given_end(&g->study);
    }
    return counts;
}

/* Given keys that make no difference, then at most 5% of studies show one; a difference is seldom
 * larger than what is stated as the most; a planted one is found, and so is an interaction. */
LAB_TEST(verdicts_by_key_are_seldom_false_and_often_found) {
    enum { STUDIES = 200 };
    static const struct {
        struct crossing crossing;
        double difference, named, crossed; /* per cent, and shares of studies, at least */
        bool equal;
    } cases[] = {{{4, 3, 4, noise}, 0, 0, 0, true}, {{4, 3, 2, noise}, 0, 0, 0, true},
                 {{2, 2, 5, noise}, 0, 0, 0, true}, {{4, 3, 4, shared_noise}, 0, 0, 0, true},
                 {{4, 3, 4, slight}, 0.3},          {{4, 3, 4, planted}, 0, .6, 0},
                 {{4, 3, 5, crossed}, 0, 0, .9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct counts counts = simulate(STUDIES, cases[i].crossing, cases[i].difference);
        if (getenv("SHOW_COUNTS"))
            printf("%zu: claimed %d named %d exceeded %d crossed %d\n", i, counts.claimed,
                   counts.named, counts.exceeded, counts.crossed);
        if (cases[i].equal)
            assert_true(counts.claimed <= STUDIES / 20);
        assert_true(counts.exceeded <= STUDIES / 20);
        assert_true(counts.named >= cases[i].named * STUDIES);
        assert_true(counts.crossed >= cases[i].crossed * STUDIES);
    }
}

const struct lab_test_program lab_test_program = {0};
