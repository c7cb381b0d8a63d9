/*
 * plan_fixture.h: planning in tests, on machines that were recorded, so that a plan is the same
 * wherever the tests run. 4node-10gpu.xml has nodes 0 to 3, of 4 CPU devices.
 */
#pragma once

#include "machine/machine.h"
#include "plan/plan.h"
#include "unit/compose/config_fixture.h"
#include "workload/workload.h"

#define FOUR_NODES LAB_TEST_SOURCE_DIR "/tests/fixtures/4node-10gpu.xml"
#define ONE_NODE   LAB_TEST_SOURCE_DIR "/tests/fixtures/1node-nogpu.xml"

#define PLAN_WORDS_MAX 32

static struct lab_plan plan;
static struct lab_err plan_err;

static struct lab_plan_strategy
    plan_strategy; /* without a function: nobody has measured anything */

static inline int plan_words(const char *topology, const char *const *texts) {
    struct lab_machine *machine = NULL;
    struct lab_override words[PLAN_WORDS_MAX];
    struct lab_sweep sweep;
    int count = 0, result = 0;
    bool multirun = false;
    plan_err = LAB_ERR_INIT;
    assert_int_equal(lab_machine_open(topology, &machine, &plan_err), 0);
    for (; *texts && result == 0; texts++) {
        if (strcmp(*texts, "-m") == 0)
            multirun = true;
        else
            result = lab_override_parse(*texts, &arena, &words[count++], &plan_err);
    }
    if (result == 0)
        result = lab_sweep_init(&path, words, count, multirun, &arena, &sweep, &plan_err);
    if (result == 0)
        result = lab_plan_make_by(plan_strategy.choose ? &plan_strategy : NULL, machine, &path,
                                  &sweep, &arena, &plan, &plan_err);
    lab_machine_close(machine);
    return result;
}

/* Plans on the four-node machine's CPUs; fails the test with the message if it can't. */
#define PLAN(...)                                                                                  \
    do {                                                                                           \
        const char *const texts_[] = {"device=cpu", __VA_ARGS__, NULL};                            \
        if (plan_words(FOUR_NODES, texts_) < 0)                                                    \
            fail_msg("%s", plan_err.text);                                                         \
    } while (0)

/* Fails unless planning fails with a message that holds `part`. */
#define REFUSED(topology, part, ...)                                                               \
    do {                                                                                           \
        const char *const texts_[] = {__VA_ARGS__, NULL};                                          \
        assert_int_equal(plan_words(topology, texts_), -1);                                        \
        assert_int_equal(plan_err.code, LAB_ERR_USER);                                             \
        if (!strstr(plan_err.text, part))                                                          \
            fail_msg("no '%s' in: %s", part, plan_err.text);                                       \
    } while (0)

static inline const struct lab_plan_run *find_run(const char *id) {
    for (int i = 0; i < plan.run_count; i++)
        if (strcmp(plan.runs[i].id, id) == 0)
            return &plan.runs[i];
    fail_msg("no run %s; the first is %s", id, plan.runs[0].id);
    return NULL;
}
