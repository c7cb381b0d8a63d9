/* Steps and epochs of one name; objects with many keys. */
#include "command_fixture.h"

#include "workload/command/form.h"

/* Given a name that lines of steps and lines of epochs have, then it is two metrics, whichever of
 * the lines came first. */
LAB_TEST(steps_and_epochs_of_one_name_are_two) {
    static const char *const cases[][2] = {
        {"epoch 1 step 100: loss 2.0", "loss=2@100"},
        {"epoch 1 step 200: loss 1.8", "loss=1.8@200"},
        {"Epoch 1: loss 1.9, lr 0.1", "loss_epoch=1.9@200 lr=0.1@200"},
        {"epoch 2 step 100: loss 1.7", "loss=1.7@300"},
        {"Epoch 2: loss 1.75, lr 0.1", "loss_epoch=1.75@300 lr=0.1@300"},
        {NULL},
        {"Epoch 0: loss 5", "loss=5@e0 epoch=0@e0"},
        {"step 1 loss 4", "loss=4@1"},
        {"Epoch 1: loss 3", "loss_epoch=3@1"},
        {NULL},
        {"{\"step\": 1, \"loss\": 2, \"Loss\": 2.5}", "loss=2.5@1"},
        {"{\"epoch\": 1, \"LOSS\": 1.9, \"time\": \"10:00:01\"}", "epoch=1@1 loss_epoch=1.9@1"},
        {"{\"epoch\": 2, \"LOSS\": 1.8, \"time\": \"10:01:02\"}", "epoch=2@1 loss_epoch=1.8@1"},
        {NULL},
        /* rows of a table; its names end with it */
        {"epoch     train_loss  valid_loss  time", ""},
        {"0         0.523112    0.312345    00:12", "train_loss=0.523112@e0 valid_loss=0.312345@e0 "
                                                    "epoch=0@e0"},
        {"10        0.4         nan         01:13", "train_loss=0.4@e10 valid_loss=nan@e10 "
                                                    "epoch=10@e10"},
        {"epoch     loss  acc  time", ""},
        {"11        0.4         0.3         01:13", "loss=0.4@e11 acc=0.3@e11 epoch=11@e11"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given an object with hundreds of keys, then all are read; of more than fit, the line is counted. */
LAB_TEST(objects_may_have_many_keys) {
    for (int count = 700; count <= COMMAND_FIELDS_MAX + 1; count += COMMAND_FIELDS_MAX - 699) {
        struct lab_str line;
        struct command_reading reading = {0};
        lab_str_init(&line);
        lab_str_add(&line, "{\"step\": 3");
        for (int i = 1; i < count; i++)
            lab_str_printf(&line, ", \"k%d\": %d", i, i);
        lab_str_add(&line, "}");
        lab_str_clear(&seen);
        command_reader_line(reader_of("{}"), &reading, line.text, line.length, note, NULL);
        assert_int_equal(reading.full, count > COMMAND_FIELDS_MAX);
        assert_contains(seen.text, count > 700 ? "k4095=4095@3" : "k699=699@3");
        lab_str_release(&line);
        command_reading_release(&reading);
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
