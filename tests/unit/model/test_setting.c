/* Names of a program's runs, by what varies between them; what names of metrics say. */
#include "base/json.h"
#include "base/str.h"
#include "model/metric_name.h"
#include "model/setting.h"

#include "test.h"

#include <string.h>

/* The name of the last of these runs. */
static const char *name(struct lab_arena *arena, const char *first, const char *last) {
    const char *texts[] = {first, last};
    const struct lab_value *options[2];
    for (int i = 0; i < 2; i++) {
        struct lab_value *value;
        ASSERT_OK(lab_json_parse(texts[i], strlen(texts[i]), "options", arena, &value, err));
        options[i] = value;
    }
    struct lab_settings settings = lab_settings_make(options, 2, arena);
    return lab_setting_name(&settings, 1, arena);
}

LAB_TEST(settings_are_named_by_what_varies) {
    static const struct {
        const char *first, *last, *name;
    } cases[] = {
        {"{\"matrix\": {\"max_iters\": 500, \"optimizer\": \"adam\"}}",
         "{\"matrix\": {\"max_iters\": 500, \"optimizer\": \"adamw\"}}", "adamw"},
        {"{\"matrix\": {\"lr\": 0.1}}", "{\"matrix\": {\"lr\": 0.03}}", "lr=0.03"},
        {"{\"matrix\": {\"shape\": \"8x8\"}}", "{\"matrix\": {\"shape\": \"16x8\"}}", "shape=16x8"},
        {"{\"matrix\": {\"lr\": 1, \"opt\": \"a\"}}", "{\"matrix\": {\"lr\": 2, \"opt\": \"b\"}}",
         "lr=2, opt=b"},
        {"{\"matrix\": {\"amp\": false}}", "{\"matrix\": {\"amp\": true}}", "amp=true"},
        {"{\"matrix\": {\"lr\": 1}}", "{\"matrix\": {\"lr\": 1, \"wd\": 0.1}}", "wd=0.1"},
        {"{\"matrix\": {\"lr\": 1}}", "{\"matrix\": {\"lr\": 1}}", ""},
        {"{}", "{\"matrix\": 3}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        LAB_AUTO(arena, arena);
        assert_string_equal(name(&arena, cases[i].first, cases[i].last), cases[i].name);
    }
}

/* Given the command of a run, then its script, module or program names it. */
LAB_TEST(a_program_is_named_by_its_script) {
    static const char *const cases[][2] = {
        {"{\"command\": \"torchrun --nproc_per_node=4 src/train.py --lr 0.1\"}", "train"},
        {"{\"command\": [\"python3\", \"-m\", \"pkg.train\", \"x\"]}", "pkg.train"},
        {"{\"command\": \"/usr/bin/cat out.txt\"}", "cat"},
        {"{\"command\": \"\"}", NULL},
        {"{}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_value *options;
        struct lab_err err = LAB_ERR_INIT;
        assert_int_equal(lab_value_parse(cases[i][0], &test_arena, &options, &err), 0);
        const char *named = lab_setting_program(options, &test_arena);
        assert_string_equal(named ? named : "none", cases[i][1] ? cases[i][1] : "none");
    }
}

LAB_TEST(names_of_metrics_say_what_they_are) {
    static const struct {
        const char *name, *unit;
        enum lab_direction better;
        bool rate;
        int place; /* among these: validation first, schedules last */
    } cases[] = {
        {"val_loss", "", LAB_DIRECTION_LOWER, false, 0},
        {"eval_accuracy", "", LAB_DIRECTION_HIGHER, false, 1},
        {"Final loss", "", LAB_DIRECTION_LOWER, false, 0},
        {"loss", "", LAB_DIRECTION_LOWER, false, 4},
        {"value", "", LAB_DIRECTION_NONE, false, 6}, /* no "val" */
        {"tokens_per_s", "", LAB_DIRECTION_HIGHER, true, 8},
        {"speed", "it/s", LAB_DIRECTION_NONE, true, 8},
        {"samples/sec", "", LAB_DIRECTION_HIGHER, true, 8},
        {"tokens/s/device", "", LAB_DIRECTION_HIGHER, true, 8},
        /* folders whose names begin with an s are no seconds: their last value counts */
        {"eval/score", "", LAB_DIRECTION_HIGHER, false, 1},
        {"objective/scores", "", LAB_DIRECTION_NONE, false, 6},
        {"loss/s_student", "", LAB_DIRECTION_LOWER, false, 4},
        {"timing_s/step", "", LAB_DIRECTION_NONE, false, 16},
        {"lr", "", LAB_DIRECTION_NONE, false, 16},
        {"grad_norm", "", LAB_DIRECTION_NONE, false, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(lab_metric_direction(cases[i].name, NULL), cases[i].better);
        assert_int_equal(lab_metric_name_is_rate(cases[i].name, cases[i].unit), cases[i].rate);
        assert_int_equal(lab_metric_name_place(cases[i].name, cases[i].unit), cases[i].place);
    }
}
