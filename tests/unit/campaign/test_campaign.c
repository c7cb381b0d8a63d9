/* A campaign's file is checked as a whole; what runs next follows from what was found. */
#include "base/str.h"
#include "base/yaml/yaml.h"
#include "campaign/campaign.h"

#include "test.h"

#include <math.h>
#include <string.h>

#define QUESTION "questions: [{name: q, ask: 'Which?', analysis: numa, phases: [a, b]}]\n"

static int read_campaign(const char *text, struct lab_campaign *campaign, struct lab_err *err) {
    struct lab_value *tree;
    if (lab_yaml_parse(text, strlen(text), "x.yaml", LAB_YAML_LIMITS, &test_arena, &tree, err) < 0)
        return -1;
    return lab_campaign_read(tree, "x", &test_arena, campaign, err);
}

static struct lab_campaign given(const char *text) {
    struct lab_campaign campaign;
    ASSERT_OK(read_campaign(text, &campaign, err));
    return campaign;
}

static const char three_phases[] =
    QUESTION "risks: {failures: 5%, temperature: 80, wait: 10min}\n"
             "phases:\n"
             "  - {name: c, priority: low, after: [a, b], studies: [stability]}\n"
             "  - {name: b, priority: medium, after: [a], when: numa.penalty > 5%,\n"
             "     studies: [-m quick_test repeat=1, [quick_test, 'x=[1, 2]']]}\n"
             "  - {name: a, priority: high, studies: [numa_study], gate: {valid: 90%},\n"
             "     expect: {strong: numa.transfer_bound > 30%}}\n";

LAB_TEST(a_file_is_read_and_ordered) {
    struct lab_campaign campaign = given(three_phases);
    assert_int_equal(campaign.phase_count, 3);
    assert_int_equal(campaign.study_count, 4);
    assert_near(campaign.failures_most, .05, 1e-12);
    assert_near(campaign.wait_s, 600, 0);
    static const char *const order[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(campaign.phases[campaign.order[i]].name, order[i]);
    const struct lab_campaign_phase *b = &campaign.phases[1];
    assert_string_equal(b->studies[0].words[0], "-m");
    assert_string_equal(b->studies[0].label, "quick_test");
    assert_string_equal(b->studies[1].label, "quick_test_2");
    assert_string_equal(b->studies[1].words[1], "x=[1, 2]");
    assert_true(lab_campaign_comes_before(&campaign, 2, 0));
    assert_false(lab_campaign_comes_before(&campaign, 0, 2));
    const struct lab_analysis *const *asked;
    assert_int_equal(lab_campaign_asked(&campaign, 2, &test_arena, &asked), 1);
    assert_string_equal(asked[0]->name, "numa");
    assert_int_equal(lab_campaign_asked(&campaign, 0, &test_arena, &asked), 0);
}

#define A "phases: [{name: a, studies: [quick_test]}"

LAB_TEST(what_is_wrong_is_one_line_with_its_place) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"phases: [{name: a, after: [c], studies: [s]}, {name: b, after: [a], studies: [s]}, "
         "{name: c, after: [b], studies: [s]}]",
         "x.yaml:1: phases wait for each other: a after c after b after a"},
        {A ", {name: b, after: [aa], studies: [s]}]", "there is no phase 'aa'; did you mean 'a'?"},
        {A ", {name: a, studies: [s]}]", "two phases have the name 'a'"},
        {A ", {name: b, after: [a], when: numa.penalti > 5%, studies: [s]}]",
         "no analysis makes a claim 'numa.penalti' (did you mean 'numa.penalty'?)"},
        {A ", {name: b, when: numa.penalty, studies: [s]}]",
         "phase b has a condition and no phase before it"},
        {A ", {name: b, after: [a], when: numa.penalty > lots, studies: [s]}]",
         "a number, such as 5%, expected at 'lots'"},
        {A ", {name: b, after: [a], when: (numa.penalty, studies: [s]}]", "')' expected"},
        {A ", {name: b, after: [a], when: numa.penalty 5, studies: [s]}]", "'and', 'or' or the"},
        {A ", {name: b, after: [a], when: numa.penalty@c, studies: [s]}, "
           "{name: c, studies: [s]}]",
         "c: this phase doesn't come after it"},
        {A ", {name: b, after: [a], when: numa.penalty@d, studies: [s]}]", "no such phase"},
        {A ", {name: b, studies: []}]", "phase b has no study"},
        {A ", {name: b, studies: [' ']}]", "a study is missing"},
        {A ", {name: b, studys: [s]}]", "unknown key 'studys'; did you mean 'studies'?"},
        {A ", {name: b, studies: [s], gate: {success: 95}}]", "success must be a share"},
        {A "]\nquestions: [{name: q, ask: x, analysis: nume, phases: [a]}]", "'numa'"},
        {A "]\nquestions: [{name: q, ask: x, analysis: numa, claims: [numa.x], phases: [a]}]",
         "numa makes no claim 'numa.x'"},
        {A "]\nquestions: [{name: q, ask: x, analysis: balance, phases: [a]}]", "is not about"},
        {A "]\nquestions: [{name: q, ask: x}]", "question q needs ask, analysis and phases"},
        {"phases: [{name: a, studies: [{refine: eliminate, claim: numa.cell, study: s}]}]",
         "phase a refines, and no phase comes before it"},
        {A ", {name: b, after: [a], studies: [{refine: eliminate, study: s}]}]",
         "a study that refines needs refine, claim and study"},
        {A ", {name: b, after: [a], studies: [{refine: halve, claim: numa.cell, study: s}]}]",
         "refine=halve: must be eliminate or bisect"},
        {A ", {name: b, after: [a], studies: [{refine: bisect, claim: numa.cell, study: s}]}]",
         "bisect goes by claim: crossover.model, not numa.cell"},
        {A ", {name: b, after: [a], studies: [{refine: bisect, claim: crossover.model, study: s, "
           "width: 5}]}]",
         "width must be a share"},
        {"title: x", "campaign x has no phases"},
        {"phases: x", "phases must be a list"},
    };
    struct lab_campaign campaign;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_FAILS(read_campaign(cases[i].text, &campaign, err), LAB_ERR_USER, cases[i].says);
}

/* --- conditions --- */

static struct lab_claim claim_of(const char *kind, enum lab_claim_verdict verdict, double effect,
                                 double half) {
    struct lab_claim claim = lab_claim_named(lab_claim_none, kind, "A", "B", "throughput");
    claim.verdict = verdict;
    claim.effect = effect;
    claim.low = effect - half;
    claim.high = effect + half;
    claim.confidence = .95;
    claim.n = 5;
    claim.bound = verdict == LAB_CLAIM_NO ? half : NAN;
    return claim;
}

LAB_TEST(conditions_have_three_values) {
    struct lab_claim claims[] = {
        claim_of("numa.penalty", LAB_CLAIM_YES, -.12, .01),
        claim_of("numa.cell", LAB_CLAIM_YES, -.02, .01),
        claim_of("numa.cell", LAB_CLAIM_NO, .001, .008),
        claim_of("numa.device", LAB_CLAIM_INCONCLUSIVE, .01, .03),
        claim_of("compile.gain", LAB_CLAIM_NO, 0, .004),
        claim_of("compile.gain", LAB_CLAIM_NOT_TESTED, NAN, NAN),
    };
    struct lab_claim *refs[6];
    for (int i = 0; i < 6; i++)
        refs[i] = &claims[i];
    static const struct {
        const char *when;
        enum lab_campaign_truth truth;
    } cases[] = {
        {"numa.penalty", LAB_CAMPAIGN_TRUE},
        {"numa.penalty > 5%", LAB_CAMPAIGN_TRUE},
        {"numa.penalty@a>=0.1", LAB_CAMPAIGN_TRUE},
        {"numa.penalty > 11.5%", LAB_CAMPAIGN_UNKNOWN}, /* its interval is 11 to 13% */
        {"numa.penalty > 14%", LAB_CAMPAIGN_FALSE},
        {"numa.penalty < 5%", LAB_CAMPAIGN_FALSE},
        {"numa.penalty <= 14%", LAB_CAMPAIGN_TRUE},
        {"numa.penalty < 12.5%", LAB_CAMPAIGN_UNKNOWN},
        {"not numa.penalty", LAB_CAMPAIGN_FALSE},
        {"not numa.penalty > 12%", LAB_CAMPAIGN_UNKNOWN},
        {"numa.cell > 0.9%", LAB_CAMPAIGN_TRUE},
        {"numa.cell < 3.1%", LAB_CAMPAIGN_TRUE},
        {"numa.device", LAB_CAMPAIGN_UNKNOWN},
        {"numa.device > 2%", LAB_CAMPAIGN_UNKNOWN},
        {"numa.device > 5%", LAB_CAMPAIGN_FALSE},
        {"compile.gain", LAB_CAMPAIGN_FALSE},
        {"compile.gain < 1%", LAB_CAMPAIGN_TRUE},
        {"compile.gain > 0.1%", LAB_CAMPAIGN_UNKNOWN},
        {"compile.model", LAB_CAMPAIGN_UNKNOWN},
        {"numa.device and compile.gain", LAB_CAMPAIGN_FALSE},
        {"numa.device or numa.penalty", LAB_CAMPAIGN_TRUE},
        {"numa.device and numa.penalty", LAB_CAMPAIGN_UNKNOWN},
        {"compile.gain or numa.penalty and not numa.cell > 5%", LAB_CAMPAIGN_TRUE},
        {"(compile.gain or numa.penalty) and compile.gain", LAB_CAMPAIGN_FALSE},
    };
    struct lab_campaign_claims found[2] = {{refs, 6}, {0}};
    struct lab_campaign_known known = {.phases = found};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why;
        struct lab_campaign campaign = given(lab_arena_printf(
            &test_arena, A ", {name: b, after: [a], when: '%s', studies: [s]}]", cases[i].when));
        if (lab_campaign_judge(&campaign, campaign.phases[1].when, 1, &known, &test_arena, &why) !=
            cases[i].truth)
            fail_msg("%s", cases[i].when);
    }
}

LAB_TEST(an_expectation_is_about_its_own_phase) {
    struct lab_claim before = claim_of("stability.drift", LAB_CLAIM_INCONCLUSIVE, .001, .034);
    struct lab_claim own = claim_of("stability.drift", LAB_CLAIM_NO, 0, .002);
    struct lab_claim *refs[] = {&before, &own};
    struct lab_campaign_claims found[2] = {{&refs[0], 1}, {&refs[1], 1}};
    struct lab_campaign_known known = {.phases = found};
    struct lab_campaign campaign =
        given(A ", {name: b, after: [a], studies: [s], when: stability.drift < 2%,\n"
                "   expect: {x: stability.drift < 2%, y: stability.drift@a < 2%}}]");
    const struct lab_campaign_phase *b = &campaign.phases[1];
    const struct lab_analysis *const *asked;
    const char *why;
    assert_int_equal(
        lab_campaign_judge(&campaign, b->expectations[0].condition, 1, &known, &test_arena, &why),
        LAB_CAMPAIGN_TRUE);
    assert_int_equal(
        lab_campaign_judge(&campaign, b->expectations[1].condition, 1, &known, &test_arena, &why),
        LAB_CAMPAIGN_UNKNOWN);
    /* and a condition about those before, also once the phase has run */
    before.verdict = LAB_CLAIM_NO;
    before.bound = .001;
    own.verdict = LAB_CLAIM_YES;
    own.effect = own.low = own.high = .5;
    assert_int_equal(lab_campaign_judge(&campaign, b->when, 1, &known, &test_arena, &why),
                     LAB_CAMPAIGN_TRUE);
    /* phases that nothing asks about aren't analysed */
    campaign = given(A ", {name: b, after: [a], studies: [s], expect: {x: stability.drift < 2%}}]");
    assert_int_equal(lab_campaign_asked(&campaign, 0, &test_arena, &asked), 0);
    assert_int_equal(lab_campaign_asked(&campaign, 1, &test_arena, &asked), 1);
}

/* --- decisions --- */

#define ENDED(planned_, failed_)                                                                   \
    {                                                                                              \
        .begun = true, .planned = (planned_), .done = (planned_) - (failed_), .failed = (failed_), \
        .taken_s = 10, .expected_s = NAN                                                           \
    }

static const struct lab_campaign_status *decide(const struct lab_campaign *campaign,
                                                const struct lab_campaign_found *found,
                                                struct lab_claim *claim) {
    struct lab_claim **refs = lab_arena_alloc(&test_arena, 1, sizeof *refs);
    struct lab_campaign_claims *claims = lab_arena_alloc(&test_arena, 3, sizeof *claims);
    *refs = claim;
    claims[2] = (struct lab_campaign_claims){refs, claim != NULL};
    struct lab_campaign_known known = {found, claims};
    return lab_campaign_decide(campaign, &known, &test_arena);
}

LAB_TEST(phases_follow_from_what_was_found) {
    struct lab_campaign campaign = given(three_phases); /* c, b, a: studies 0, 1 and 2, 3 */
    struct lab_claim large = claim_of("numa.penalty", LAB_CLAIM_YES, -.12, .01),
                     none = claim_of("numa.penalty", LAB_CLAIM_NO, 0, .004);
    struct lab_campaign_found found[4] = {{0}};

    const struct lab_campaign_status *now = decide(&campaign, found, NULL);
    assert_int_equal(now[2].state, LAB_CAMPAIGN_READY);
    assert_int_equal(now[1].state, LAB_CAMPAIGN_WAITS);
    assert_string_equal(now[1].why, "for phase a");
    assert_int_equal(lab_campaign_next(&campaign, now), 2);

    found[3] = (struct lab_campaign_found){.begun = true, .planned = 100, .done = 40, .failed = 5};
    now = decide(&campaign, found, NULL);
    assert_int_equal(now[2].state, LAB_CAMPAIGN_RUNS);
    found[3].failed = 6; /* whatever the others do, more than 5% have failed */
    now = decide(&campaign, found, NULL);
    assert_int_equal(now[2].state, LAB_CAMPAIGN_STOPPED);
    assert_string_equal(now[2].why, "6 of 100 runs failed (6.0%, at most 5% may)");
    assert_int_equal(now[1].state, LAB_CAMPAIGN_BLOCKED);
    assert_int_equal(now[0].state, LAB_CAMPAIGN_BLOCKED);
    assert_int_equal(lab_campaign_next(&campaign, now), -1);
    found[3].again = true;
    assert_int_equal(decide(&campaign, found, NULL)[2].state, LAB_CAMPAIGN_RUNS);

    found[3] = (struct lab_campaign_found)ENDED(100, 5);
    now = decide(&campaign, found, &none);
    assert_int_equal(now[2].state, LAB_CAMPAIGN_DONE);
    assert_int_equal(now[1].state, LAB_CAMPAIGN_SKIPPED);
    assert_contains(now[1].why, "'numa.penalty > 5%' doesn't hold (numa.penalty: No difference");
    assert_int_equal(now[0].state, LAB_CAMPAIGN_READY); /* a skipped phase holds up nothing */
    now = decide(&campaign, found, &large);
    assert_int_equal(now[1].state, LAB_CAMPAIGN_READY);
    assert_contains(now[1].why, "holds (numa.penalty: A: 12.0% lower throughput than B");
    now = decide(&campaign, found, NULL);
    assert_int_equal(now[1].state, LAB_CAMPAIGN_READY);
    assert_contains(now[1].why, "is undecided, so it runs");

    found[3].invalid = 20;
    now = decide(&campaign, found, &large);
    assert_int_equal(now[2].state, LAB_CAMPAIGN_STOPPED);
    assert_contains(now[2].why, "78.9% of its results are valid, at least 90% must be");
    found[3] = (struct lab_campaign_found)ENDED(7, 7);
    found[3].error = "timed out after 1 s";
    assert_string_equal(decide(&campaign, found, NULL)[2].why,
                        "all 7 runs failed, the first: timed out after 1 s");
}

LAB_TEST(placements_are_refined_where_they_are_inconclusive) {
    struct lab_campaign campaign =
        given(A ", {name: b, after: [a], studies: [{refine: eliminate, claim: numa.cell, study: "
                "numa_study repeat=9}]}]");
    static const char *const scopes[][2] = {{"gpu0_numa0_m", "gpu0_numa1_m"},
                                            {"gpu0_numa0_m", "gpu0_numa2_m"},
                                            {"gpu3_numa0_m", "gpu3_numa1_m"}};
    struct lab_claim claims[3], *refs[3];
    for (int i = 0; i < 3; i++) {
        claims[i] =
            claim_of("numa.cell", i == 1 ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE, .01, .02);
        claims[i].needed = i ? 8 : 6;
        claims[i].scope = scopes[i];
        claims[i].scope_count = 2;
        refs[i] = &claims[i];
    }
    struct lab_campaign_claims found[2] = {{refs, 3}, {0}};
    struct lab_campaign_known known = {.phases = found};
    const char *why, *const *words =
                         lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why);
    assert_string_equal(words[0], "experiment.hardware.gpu_ids=[0,3]");
    assert_string_equal(words[1], "experiment.hardware.numa_nodes=[0,1]"); /* 2 is worse */
    assert_string_equal(words[2], "experiment.repeat=3");
    assert_null(words[3]);
    assert_contains(why, "2 of 3 comparisons of placements are inconclusive");
    claims[0].needed = claims[2].needed = 60; /* runs that nobody would take */
    assert_null(lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why));
    found[0].count = 0;
    assert_null(lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why));
    const struct lab_analysis *const *asked;
    assert_int_equal(lab_campaign_asked(&campaign, 0, &test_arena, &asked), 1);
}

/* Claims of models, of one GPU on two NUMA nodes, as a phase or step makes them. */
struct given_model {
    int depth, dim;
    double excess; /* compute time against transfer time, ± 1% */
};

static struct lab_campaign_claims claims_of(const struct given_model *models, int count) {
    struct lab_campaign_point *points = lab_arena_alloc(&test_arena, 20, sizeof *points);
    struct lab_claim **refs = lab_arena_alloc(&test_arena, 20, sizeof *refs);
    for (int i = 0; i < 2 * count; i++) { /* node 2 copies slowly, and isn't what is asked about */
        const struct given_model *model = &models[i % count];
        const char **scope = lab_arena_alloc(&test_arena, 1, sizeof *scope);
        *scope = lab_arena_printf(&test_arena, "gpu3_numa%d_vit32x%dx%d", i < count ? 0 : 2,
                                  model->depth, model->dim);
        points[i] =
            (struct lab_campaign_point){.name = *scope,
                                        .gpu = 3,
                                        .node = i < count ? 0 : 2,
                                        .patch_size = 32,
                                        .depth = model->depth,
                                        .heads = 8,
                                        .dim = model->dim,
                                        .work = 1e3 * model->depth * model->dim * model->dim};
        refs[i] = lab_arena_alloc(&test_arena, 1, sizeof **refs);
        *refs[i] = claim_of("crossover.model", LAB_CLAIM_YES,
                            i < count ? model->excess : 0.5 * model->excess - 0.5, .01);
        refs[i]->scope = scope;
        refs[i]->scope_count = 1;
    }
    return (struct lab_campaign_claims){refs, 2 * count, points, 2 * count};
}

#define BISECT                                                                                     \
    A ", {name: b, after: [a], studies: [{refine: bisect, claim: crossover.model, "                \
      "study: numa_study, runs: 40}]}]"

LAB_TEST(a_crossover_is_bisected) {
    static const struct given_model first[] = {{2, 128, -.5}, {6, 512, 1.5}, {12, 1024, 38}};
    struct lab_campaign campaign = given(BISECT);
    assert_int_equal(campaign.phases[1].study_count, 4); /* steps */
    assert_string_equal(campaign.phases[1].studies[3].label, "numa_study_4");
    assert_true(lab_campaign_is_step(&campaign, 1, 2) && !lab_campaign_is_step(&campaign, 1, 3));
    struct lab_campaign_found found[5] = {{.planned = 9}, {.planned = 15}, {.planned = 15}};
    struct lab_campaign_claims phases[2] = {claims_of(first, 3), {0}}, steps[5] = {{0}};
    struct lab_campaign_known known = {found, phases, steps};
    const char *why, *const *words =
                         lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why);
    assert_string_equal(words[0], "experiment.hardware.gpu_ids=[3]");
    assert_string_equal(words[1], "experiment.hardware.numa_nodes=[0]");
    assert_string_equal(words[2], "experiment.repeat=5");
    assert_string_equal(words[3], "experiment.vit_configs=["
                                  "{patch_size:32,depth:2,heads:8,dim:128,mlp_dim:0},"
                                  "{patch_size:32,depth:3,heads:8,dim:288,mlp_dim:0},"
                                  "{patch_size:32,depth:6,heads:8,dim:512,mlp_dim:0}]");
    assert_null(words[4]);
    assert_string_equal(why, "crossover between vit32x2x128 and vit32x6x512: next is vit32x3x288");

    static const struct {
        struct given_model model; /* that the first step ran */
        const char *why;
    } cases[] = {
        {{3, 288, -.2}, "crossover between vit32x3x288 and vit32x6x512: next is vit32x4x384"},
        {{3, 288, .2}, "crossover between vit32x2x128 and vit32x3x288: next is vit32x2x224"},
        {{3, 288, .03}, "crossover within 4.0% of vit32x3x288, 5% asked for"},
        {{3, 288, -.03}, "crossover within 4.2% of vit32x3x288, 5% asked for"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        steps[1] = claims_of(&cases[i].model, 1);
        words = lab_campaign_refine(&campaign, 1, 1, &known, &test_arena, &why);
        assert_string_equal(why, cases[i].why);
        assert_true((words != NULL) == (i < 2));
    }
    found[1].planned = 30; /* and 15 more are too many */
    steps[1] = claims_of(&cases[0].model, 1);
    assert_null(lab_campaign_refine(&campaign, 1, 1, &known, &test_arena, &why));
    assert_contains(why, "; 40 runs are allowed, the next step would make 45");

    static const struct given_model above[] = {{2, 128, .5}, {6, 512, 1.5}},
                                    close[] = {{2, 128, -.5}, {2, 160, .5}};
    phases[0] = claims_of(above, 2);
    assert_null(lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why));
    assert_string_equal(why, "no crossover between the models that were run");
    phases[0] = claims_of(close, 2);
    assert_null(lab_campaign_refine(&campaign, 1, 0, &known, &test_arena, &why));
    assert_contains(why, "; no model lies between vit32x2x128 and vit32x2x160");
}

/* --- schedules --- */

static struct lab_campaign_schedule schedule(const struct lab_campaign *campaign,
                                             const struct lab_campaign_found *found) {
    struct lab_campaign_schedule made;
    struct lab_campaign_known known = {.studies = found};
    ASSERT_OK(lab_campaign_make_schedule(campaign, &known, &test_arena, &made, err));
    return made;
}

LAB_TEST(a_budget_drops_low_priorities_first) {
    struct lab_campaign campaign =
        given("phases:\n"
              "  - {name: a, priority: high, studies: [s]}\n"
              "  - {name: low, priority: low, studies: [s]}\n"
              "  - {name: needed, priority: low, studies: [s]}\n"
              "  - {name: b, priority: high, after: [needed], studies: [s]}\n"
              "  - {name: m, priority: medium, studies: [s]}\n");
    struct lab_campaign_found found[5];
    for (int i = 0; i < 5; i++)
        found[i] = (struct lab_campaign_found){
            .planned = 1, .expected_s = 100, .expected_j = i ? 7000 : NAN, .expected_bytes = 1000};
    struct lab_campaign_schedule all = schedule(&campaign, found);
    assert_int_equal(all.slot_count, 5);
    assert_near(all.seconds, 500, 0);
    assert_near(all.slots[4].start_s, 400, 0);
    assert_int_equal(all.bytes, 5000);
    assert_near(all.energy_j, 28000, 0);
    assert_int_equal(all.energy_unknown, 1);

    static const struct {
        double budget_s;
        int64_t bytes;
        const char *dropped; /* by phase */
    } cases[] = {{500, 0, "....."}, {400, 0, ".x..."},  {300, 0, ".x..x"},
                 {200, 0, ".x.xx"}, {0, 3999, ".x..x"}, {100, 0, ".xxxx"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        campaign.budget_s = cases[i].budget_s;
        campaign.budget_bytes = cases[i].bytes;
        struct lab_campaign_schedule made = schedule(&campaign, found);
        for (int s = 0; s < 5; s++)
            if (made.slots[s].dropped != (cases[i].dropped[made.slots[s].phase] == 'x'))
                fail_msg("budget %g: %s", cases[i].budget_s,
                         campaign.phases[made.slots[s].phase].name);
    }
    /* b is long: without it there is room for what was dropped before it, not for what is after */
    struct lab_campaign_schedule made;
    found[3].expected_s = 1000;
    campaign.budget_s = 450;
    campaign.budget_bytes = 0;
    made = schedule(&campaign, found);
    for (int s = 0; s < 5; s++)
        assert_int_equal(made.slots[s].dropped, made.slots[s].phase == 3);
    found[3].expected_s = 100;
    found[2].expected_s = 1000;
    made = schedule(&campaign, found);
    for (int s = 0; s < 5; s++)
        assert_int_equal(made.slots[s].dropped,
                         made.slots[s].phase == 2 || made.slots[s].phase == 3);
    found[2].expected_s = 100;
    struct lab_campaign_known known = {.studies = found};
    campaign.budget_s = 99;
    ASSERT_FAILS(lab_campaign_make_schedule(&campaign, &known, &test_arena, &made, err),
                 LAB_ERR_USER,
                 "the budget is too small for the first phase, a: 100 s expected, budget.time has");
    found[0] = (struct lab_campaign_found)ENDED(1, 0); /* what is done took what it took */
    assert_near(schedule(&campaign, found).seconds, 10, 0);
    found[0].energy_j = 50; /* of some of its runs, or of all */
    assert_int_equal(schedule(&campaign, found).energy_unknown, 1);
    found[0].energy_runs = 1;
    assert_int_equal(schedule(&campaign, found).energy_unknown, 0);
}

LAB_TEST(a_budget_counts_runs_that_are_found_later) {
    struct lab_campaign campaign =
        given("phases:\n"
              "  - {name: a, priority: high, studies: [s]}\n"
              "  - {name: b, after: [a], studies: [{refine: bisect, claim: crossover.model, study: "
              "s, runs: 20}]}\n");
    struct lab_campaign_found found[5] = {ENDED(10, 0)}; /* 10 s */
    for (int i = 1; i < 5; i++)
        found[i] = (struct lab_campaign_found){.expected_s = NAN, .expected_j = NAN};
    for (int fits = 0; fits < 2; fits++) { /* 20 more runs take about 20 s */
        campaign.budget_s = fits ? 31 : 29;
        assert_int_equal(schedule(&campaign, found).slots[1].dropped, !fits);
    }
}

LAB_TEST(phases_on_other_devices_run_at_the_same_time) {
    static const struct {
        int side_by_side;
        bool simulated;
        uint64_t devices, nodes; /* of phase b; phase a has device 0 on NUMA node 0 */
        double start_s;          /* of phase b */
    } cases[] = {
        {-1, true, 2, 1, 0},  {-1, true, 3, 1, 10},  {-1, true, 0, 1, 10},
        {0, true, 2, 1, 10},  {-1, false, 2, 2, 10}, {1, false, 2, 2, 0},
        {1, false, 2, 3, 10}, {1, false, 1, 2, 10},  {1, false, 2, UINT64_MAX, 10},
    };
    struct lab_campaign campaign = given("phases:\n"
                                         "  - {name: a, studies: [s]}\n"
                                         "  - {name: b, studies: [s]}\n"
                                         "  - {name: c, after: [b], studies: [s]}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_campaign_found found[3];
        for (int s = 0; s < 3; s++)
            found[s] = (struct lab_campaign_found){.expected_s = 10 + s,
                                                   .use = {1, 1, cases[i].simulated}};
        found[1].use.devices = cases[i].devices;
        found[1].use.nodes = cases[i].nodes;
        campaign.side_by_side = cases[i].side_by_side;
        struct lab_campaign_schedule made = schedule(&campaign, found);
        assert_near(made.slots[0].start_s, 0, 0);
        assert_near(made.slots[1].start_s, cases[i].start_s, 0);
        assert_near(made.slots[2].start_s, cases[i].start_s + 11, 0);
        assert_near(made.seconds, cases[i].start_s + 11 + 12, 0);
    }
}

LAB_TEST(a_thousand_studies_are_scheduled) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "phases:\n");
    for (int i = 0; i < 200; i++) {
        lab_str_printf(&text, "  - {name: p%d, studies: [s, s, s, s, s]", i);
        if (i >= 10)
            lab_str_printf(&text, ", after: [p%d, p%d]", i - 10, i - 9);
        lab_str_add(&text, "}\n");
    }
    struct lab_campaign campaign = given(text.text);
    struct lab_campaign_found *found = lab_arena_alloc(&test_arena, 1000, sizeof *found);
    struct lab_campaign_claims *claims = lab_arena_alloc(&test_arena, 200, sizeof *claims);
    for (int i = 0; i < 1000; i++)
        found[i].expected_s = 1;
    campaign.budget_s = 500;
    struct lab_campaign_known known = {found, claims};
    assert_int_equal(schedule(&campaign, found).slot_count, 1000);
    assert_int_equal(lab_campaign_decide(&campaign, &known, &test_arena)[0].state,
                     LAB_CAMPAIGN_READY);
}
