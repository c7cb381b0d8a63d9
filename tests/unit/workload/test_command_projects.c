/* Lines of well-known projects, as their code prints them; steps and epochs of one name; objects
 * with many keys. */
#include "command_fixture.h"

#include "workload/command/form.h"

/* Given what projects print, then names, steps and values are those that they mean. */
LAB_TEST(projects_are_read_as_they_print) {
    static const char *const cases[][2] = {
        /* Megatron-LM: a date in each line */
        {" [2024-05-01 10:00:00] iteration      100/  500000 | elapsed time per iteration (ms): "
         "123.4 "
         "| throughput per GPU (TFLOP/s/GPU): 180.3 | lm loss: 6.5E+00 | loss scale: 1.0 |",
         "elapsed_time_per_iteration=123.4ms@100 throughput_per_gpu=180.3@100 lm_loss=6.5@100 "
         "loss_scale=1@100"},
        {" [2024-05-02 11:01:02] iteration      200/  500000 | elapsed time per iteration (ms): "
         "120 "
         "| throughput per GPU (TFLOP/s/GPU): 181 | lm loss: 6.0E+00 | loss scale: 1.0 |",
         "elapsed_time_per_iteration=120ms@200 throughput_per_gpu=181@200 lm_loss=6@200 "
         "loss_scale=1@200"},
        {NULL},
        /* MMEngine: iterations of a validation are no steps of the training */
        {"05/01 10:00:00 - mmengine - INFO - Iter(train) [  100/90000]  lr: 1.0e-02  eta: 1 day, "
         "1:00:00  time: 0.45  loss: 2.3",
         "lr=0.01@100 time=0.45@100 loss=2.3@100"},
        {"05/01 10:00:01 - mmengine - INFO - Iter(val) [500/500]    aAcc: 80.1  mIoU: 35.2",
         "val_aacc=80.1@100 val_miou=35.2@100"},
        {NULL},
        /* PaddleClas: nor here; the mean over an epoch is another value */
        {"[2024/05/01 10:00:00] ppcls INFO: [Train][Epoch 1/120][Iter: 10/5005]lr(LinearWarmup): "
         "0.0001, top1: 0.1, CELoss: 7.5, loss: 7, batch_cost: 1.5s, ips: 208.1 samples/s, eta: 8 "
         "days, 1:02:03",
         "lr=0.0001@10 top1=0.1@10 celoss=7.5@10 loss=7@10 batch_cost=1500ms@10 "
         "ips=208.1samples/s@10"},
        {"[2024/05/01 10:00:01] ppcls INFO: [Eval][Epoch 1][Iter: 0/196]CELoss: 5.9, loss: 5.8",
         "eval_celoss=5.9@10 eval_loss=5.8@10"},
        {"[2024/05/01 10:00:02] ppcls INFO: [Eval][Epoch 1][Avg]CELoss: 5.7, loss: 5.6",
         "eval_celoss_epoch=5.7@10 eval_loss_epoch=5.6@10"},
        {NULL},
        /* PaddleNLP, NeMo, torchtune */
        {"global step 10, epoch: 0, batch: 9, loss: 0.69, speed: 3.2 step/s",
         "loss=0.69@10 speed=3.2iterations/s@10"},
        {NULL},
        {"Training epoch 0, iteration 7/99 | lr: 1e-06 | global_step: 7 | reduced_train_loss: "
         "11.03 "
         "| train_step_timing in s: 13.2",
         "lr=1e-06@7 reduced_train_loss=11.03@7 train_step_timing_in_s=13.2@7"},
        {NULL},
        {"1|100|Loss: 1.234:  25%|██▌       | 100/400 [01:23<04:10,  1.20it/s]",
         "loss=1.234@100 iterations_per_s=1.2iterations/s@100"},
        {"Step 101 | loss:2.345 lr:2e-05 tokens_per_second_per_gpu:1234.5",
         "loss=2.345@101 lr=2e-05@101 tokens_per_second_per_gpu=1234.5@101"},
        {NULL},
        /* LLaMA-Factory, OLMo: lines of their source are no values; ESPnet's is no rank */
        {"[INFO|2024-05-01 10:00:00] llamafactory.train.callbacks:157 >> {'loss': 1.25, 'epoch': "
         "0.10, 'throughput': 1234.5}",
         "loss=1.25@e0.1 throughput=1234.5@e0.1 epoch=0.1@e0.1"},
        {NULL},
        {"[2024-05-01 10:00:00] INFO     [olmo.train:1000, rank=0] [step=100/739328,epoch=0]", ""},
        {"    train/CrossEntropyLoss=6.5", "train/crossentropyloss=6.5@100"},
        {"    throughput/device/tokens_per_second=12,345",
         "throughput/device/tokens_per_second=12345@100"},
        {NULL},
        {"[host] 2024-05-01 10:00:00,123 (trainer:721) INFO: 1epoch:train:1-100batch: acc=0.3, "
         "loss=6.7",
         "acc=0.3 loss=6.7"},
        {NULL},
        /* torchvision's references and those after them: what ends an evaluation */
        {"Epoch: [0][  10/5005]\tTime  0.530 ( 1.245)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.39 (0.1)",
         "time=0.53@10 loss=6.9@10 acc@1=0.39@10"},
        {"* Acc@1 71.300 Acc@5 90.100 loss 1.200", "test_acc@1=71.3@10 test_acc@5=90.1@10 "
                                                   "test_loss=1.2@10"},
        {NULL},
        /* DeepSpeed, Megatron-DeepSpeed under torchrun, nanochat */
        {"[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, skipped=0, "
         "lr=[0.001], mom=[(0.9, 0.999)]",
         "r0:skipped=0@100 r0:lr=0.001@100"},
        {"[default3]: iteration       10/ 3125000 | lm loss: 1.01E+01 | samples per second: 13.276 "
         "| "
         "TFLOPs: 101.54 |",
         "r3:lm_loss=10.1@10 r3:samples_per_s=13.276samples/s@10 r3:tflops=101.54TFLOP/s@10"},
        {NULL},
        {"step 00100/21400 (0.47%) | loss: 5.12 | dt: 123.45ms | tok/sec: 1,234,567 | mfu: 45.67",
         "loss=5.12@100 dt=123.45ms@100 tokens_per_s=1234567tokens/s@100 mfu=45.67@100"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

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
