/* test_tracker.c: names, numbers, a sample's values, and the files' bytes at their edges. */
#include "test.h"

#include "track/tracker.h"
#include "track/tracker_bytes.h"

#include <math.h>
#include <string.h>

LAB_TEST(trackers_are_named_in_lists) {
    const struct lab_tracker *const *list;
    ASSERT_OK(lab_tracker_list("wandb, trackio,wandb,none", &test_arena, &list, err));
    assert_string_equal(list[0]->name, "wandb");
    assert_string_equal(list[1]->name, "trackio");
    assert_null(list[2]);
    ASSERT_OK(lab_tracker_list(NULL, &test_arena, &list, err));
    assert_null(list[0]);
    ASSERT_FAILS(lab_tracker_list("wandb,tensorbord", &test_arena, &list, err), LAB_ERR_USER,
                 "no tracker 'tensorbord'; did you mean 'tensorboard'?");
    ASSERT_SAYS(lab_tracker_list("x", &test_arena, &list, err),
                "there are mlflow, tensorboard, trackio and wandb");
    for (int i = 0; lab_trackers[i]; i++) {
        const struct lab_tracker *tracker = lab_trackers[i];
        assert_string_equal(tracker->name, lab_tracker_names[i]);
        assert_true(tracker->summary && tracker->view && tracker->place && tracker->begin &&
                    tracker->row && !tracker->system_row == !tracker->system_keys && tracker->end);
    }
}

LAB_TEST(names_and_numbers_are_safe) {
    static const char *const names[][3] = {
        {"a/b c", "a-b-c", "a-b-c"},   {"../x", "..-x", "..-x"}, {"..", "unnamed", "unnamed"},
        {"", "unnamed", "unnamed"},    {"é👍", "unnamed", "é👍"},  {"a\n\xff!", "a", "a"},
        {"lr=0.1", "lr-0.1", "lr-0.1"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_string_equal(lab_track_safe_name(names[i][0], false, &test_arena), names[i][1]);
        assert_string_equal(lab_track_safe_name(names[i][0], true, &test_arena), names[i][2]);
    }
    LAB_AUTO(str, out);
    char longer[2][121] = {0};
    const char *safe[2];
    for (int i = 0; i < 2; i++) { /* those that differ behind the longest name stay two */
        memset(longer[i], 'n', 120);
        longer[i][119] = (char)('a' + i);
        safe[i] = lab_track_safe_name(longer[i], false, &test_arena);
        assert_int_equal(strlen(safe[i]), 96);
    }
    assert_string_not_equal(safe[0], safe[1]);
    longer[0][96] = '\0';
    assert_string_equal(lab_track_safe_name(longer[0], false, &test_arena), longer[0]);
    static const double values[] = {1, -3, 0.1, 1e300, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        lab_track_add_number(&out, values[i], i == 4);
        lab_str_add(&out, " ");
    }
    lab_track_add_text(&out, "a\"\xff\n");
    assert_string_equal(out.text, "1 -3 0.1 1e+300 \"Infinity\" -Infinity NaN \"a\\\"?\\n\"");
}

static struct lab_track_sample make_sample(struct lab_track_gpu gpus[2]) {
    struct lab_track_sample sample = {.number = 7, .wall_ns = 1500, .gpus = gpus, .gpu_count = 2};
    for (int m = 0; m < LAB_METRIC_COUNT; m++)
        gpus[0].values[m] = gpus[1].values[m] = sample.host[m] = NAN;
    gpus[0].index = 0;
    gpus[1].index = 3;
    return sample;
}

LAB_TEST(a_sample_has_totals_and_each_gpu) {
    struct lab_track_gpu gpus[2];
    struct lab_track_sample sample = make_sample(gpus);
    struct lab_track_run run = {.label = "", .prefix = "", .renamed = ""};
    struct lab_track_row row;
    assert_int_equal(lab_track_sample_row(&run, &sample, &test_arena, &row),
                     0); /* unknown is never 0 */
    gpus[0].values[LAB_METRIC_UTILIZATION] = 60;
    gpus[1].values[LAB_METRIC_UTILIZATION] = 100;
    gpus[0].values[LAB_METRIC_MEMORY_USED] = 256 << 20;
    gpus[1].values[LAB_METRIC_MEMORY_USED] = 512 << 20;
    gpus[1].values[LAB_METRIC_POWER] = 300; /* of GPU 0 unknown: there is no total */
    static const struct lab_track_value right[] = {
        {"gpu_0_memory", 256},       {"gpu_3_memory", 512},       {"gpu_0_utilization", 60},
        {"gpu_3_utilization", 100},  {"gpu_3_power", 300},        {"gpu_total_memory", 768},
        {"gpu_avg_utilization", 80}, {"gpu_load_balance_cv", 25},
    };
    assert_int_equal(lab_track_sample_row(&run, &sample, &test_arena, &row), 8);
    for (int i = 0; i < row.count; i++) {
        assert_string_equal(row.values[i].key, right[i].key);
        assert_near(row.values[i].value, right[i].value, 1e-9);
    }
}

LAB_TEST(names_of_values_can_be_others) {
    struct lab_track_run run = {.label = "", .prefix = "", .renamed = "loss=error,x=a/b"};
    assert_string_equal(lab_track_name(&run, "loss", &test_arena), "error");
    assert_string_equal(lab_track_name(&run, "los", &test_arena), "los");
    assert_string_equal(lab_track_name(&run, "losses", &test_arena), "losses");
    run.prefix = "train/";
    run.label = "host1";
    assert_string_equal(lab_track_name(&run, "x", &test_arena), "train/host1/a/b");
}

/* Chunks of a .wandb file: each has its checksum, none crosses a block. Returns how many records. */
static int count_records(const struct lab_str *bytes) {
    int records = 0;
    for (size_t at = 7; at < bytes->length;) {
        size_t left = 32768 - at % 32768;
        const unsigned char *head = (const unsigned char *)bytes->text + at;
        if (left < 7) {
            at += left;
            continue;
        }
        uint32_t crc = head[0] | head[1] << 8 | head[2] << 16 | (uint32_t)head[3] << 24;
        size_t length = (size_t)(head[4] | head[5] << 8);
        assert_true(length + 7 <= left);
        assert_int_equal(lab_track_crc32(0, head + 6, length + 1), crc);
        records += head[6] == 1 || head[6] == 4;
        at += 7 + length;
    }
    return records;
}

LAB_TEST(records_of_wandb_end_at_blocks) {
    const struct lab_tracker *wandb = lab_tracker_find("wandb", NULL);
    struct lab_track_run run = {"/study",
                                "p",
                                "g",
                                "point",
                                "run",
                                "0123456789abcdef",
                                "0123456789abcdef",
                                "host",
                                "",
                                (const char *const[]){NULL},
                                lab_value_map(&test_arena),
                                "",
                                "",
                                "",
                                0,
                                0,
                                1};
    char key[40000];
    struct lab_track_value value = {key, 0.5};
    memset(key, 'k', sizeof key);
    for (size_t length = 32600; length < 32800; length += 3) {
        LAB_AUTO(track_out, out);
        key[length] = '\0';
        wandb->begin(&run, &out);
        struct lab_track_row row = {.values = &value, .count = 1, .step = NAN};
        wandb->row(&run, &row, &out);
        assert_int_equal(count_records(&out.bytes), 3);
        /* a batch that begins anywhere in the file goes on as one that was never interrupted */
        LAB_AUTO(track_out, rest);
        rest.offset = (int64_t)out.bytes.length;
        wandb->row(&run, &row, &rest);
        lab_str_add_bytes(&out.bytes, rest.bytes.text, rest.bytes.length);
        assert_int_equal(count_records(&out.bytes), 4);
        key[length] = 'k';
    }
}
