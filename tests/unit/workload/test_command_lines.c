/* Lines that need others, or all of their own words, to be read right: ranks and epochs in them,
 * bars of epochs, tables with a rule, and what a line before says. */
#include "command_fixture.h"

/* Given a rank among a line's values, then they are of that rank, which has its own steps. */
LAB_TEST(a_line_may_name_its_rank) {
    static const char *const cases[][2] = {
        {"Epoch: 0, Step: 1, Rank: 0, loss = 3.1", "r0:loss=3.1@1"},
        {"Epoch: 0, Step: 1, Rank: 1, loss = 3.3", "r1:loss=3.3@1"},
        {"Epoch: 0, Step: 2, Rank: 1, loss = 3.2", "r1:loss=3.2@2"},
        {"val loss 3.0", "val_loss=3@2"},
        {NULL},
        {"step 5 loss 2.5 rank 1", "r1:loss=2.5@5"},
        {"step 5 lora rank: 16 loss 2.5", "loss=2.5@5"},
        {"Rank-1: 95.1%", ""},
        {"[cuda:1] step 6 loss 2.4", "r1:loss=2.4@6"},
        {"local_rank: 1 | step 7 | loss 2.3", "r1:loss=2.3@7"},
        {NULL},
        {"it 2500/10000 loss 2.6", "loss=2.6@2500"},
        {"updates: 3100 loss 2.0", "loss=2@3100"},
        {NULL},
        {"Rank-1: policy_step=128, reward_env_0=22.0", "r1:reward_env_0=22@128"},
        {NULL},
        /* icefall: each batch and the mean so far; "(1/4)" is a rank of four */
        {"2024-01-01 10:00:10,123 INFO [train.py:1050] (1/4) Epoch 1, batch 50, loss[loss=1.31, "
         "simple_loss=1.16, over 5893.00 frames. ], tot_loss[loss=2.27, simple_loss=2.07, over "
         "267000.00 frames. ], lr: 2.48e-02",
         "r1:loss=1.31@50 r1:simple_loss=1.16@50 r1:tot_loss=2.27@50 r1:tot_loss_simple_loss=2.07@"
         "50 r1:lr=0.0248@50"},
        {NULL},
        /* FunASR: its total step counts; "val," is what the line is of */
        {"[2024-01-01 10:00:00,123][root][INFO] - train, rank: 1, epoch: 0/50, total step: 50, "
         "(acc_avg: 0.312), [('loss', 3.301)]",
         "r1:acc_avg=0.312@50 r1:loss=3.301@50"},
        {"[2024-01-01 10:00:10,123][root][INFO] - val, rank: 1, epoch: 0/50, total step: 50, "
         "(acc_avg: 0.412), [('loss', 2.901)]",
         "r1:val_acc_avg=0.412@50 r1:val_loss=2.901@50"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given two bars, or numbers before one, then steps go on from epoch to epoch. */
LAB_TEST(bars_of_epochs_count_no_steps) {
    static const char *const cases[][2] = {
        /* Swin Transformer */
        {"Train: [0/300][10/1251]\teta 1:10:00 lr 0.000001\tloss 6.85 (6.95)",
         "lr=1e-06@10 loss=6.85@10"},
        {"Train: [1/300][0/1251]\teta 1:10:00 lr 0.000001\tloss 5.95 (5.95)",
         "lr=1e-06@1251 loss=5.95@1251"},
        {"[2024-01-01 10:10:40 swin_tiny] (main.py 287): INFO  * Acc@1 9.123 Acc@5 23.123",
         "test_acc@1=9.123@1251 test_acc@5=23.123@1251"},
        {NULL},
        /* CenterNet, DINOv2 */
        {"train: [1][990/1000]|Tot: 0:08:20 |loss 12.3 |", "loss=12.3@990"},
        {"train: [2][10/1000]|Tot: 0:00:20 |loss 10.3 |", "loss=10.3@1010"},
        {NULL},
        {"Training  [    10/125000]  eta: 3 days, 12:34:56  wd: 0.04 (0.04)  total_loss: 11.1 "
         "(11.2)",
         "wd=0.04@10 total_loss=11.1@10"},
        {NULL},
        /* Lightning's bar by rich */
        {"Epoch 0/1 ━━━╸━━ 50/100 0:00:05 • 0:00:05 10.12it/s train_loss: 1.234",
         "iterations_per_s=10.12iterations/s@50 train_loss=1.234@50"},
        {"Epoch 1/1 ━━━━━━ 50/100 0:00:10 • 0:00:00 10.12it/s train_loss: 0.834",
         "iterations_per_s=10.12iterations/s@150 train_loss=0.834@150"},
        {NULL},
        /* pytorch-cifar writes its count over the rest; the test's bar is of other batches */
        {"Epoch: 0", ""},
        {" [===>]  Step: 12ms | Loss: 1.9 | Acc: 31.1% (155/500)\b\b\b\b 391/391 ",
         "step_time=12ms@391 loss=1.9@391 acc=31.1%@391"},
        {" [===>]  Step: 8ms | Loss: 1.5 | Acc: 45.1% (45/100)\b\b\b\b 100/100 ",
         "eval_step_time=8ms@391 eval_loss=1.5@391 eval_acc=45.1%@391"},
        {NULL},
        {"===> Epoch[1](50/50): Loss: 0.0123", "loss=0.0123@50"},
        {"===> Epoch[2](1/50): Loss: 0.0113", "loss=0.0113@51"},
        {NULL},
        {"Epoch 1 | Iter 0 | Train Loss 3.1", "train_loss=3.1@0"},
        {"Epoch 1 | Iter 100 | Train Loss 2.1", "train_loss=2.1@100"},
        {"Epoch 1 | Iter 0 | Eval Loss 2.6", "eval_loss=2.6@100"},
        {"Epoch 2 | Iter 0 | Train Loss 1.9", "train_loss=1.9@200"},
        {NULL},
        /* torchtune: an epoch, a step of all epochs, and a bar of its own */
        {"1|8|Loss: 1.6:  80%|████      | 8/8 [00:08<00:10,  1.20s/it]",
         "loss=1.6@8 iterations_per_s=0.8333333333iterations/s@8"},
        {"2|9|Loss: 1.3:  10%|█         | 1/8 [00:01<00:10,  1.20s/it]",
         "loss=1.3@9 iterations_per_s=0.8333333333iterations/s@9"},
        {NULL},
        {"Epochs:   0%|          | 0/2 [00:00<?, ?it/s]", ""},
        {"Batches: 100%|█| 10/10 [00:02<00:00, 5.0it/s, loss=1.9]",
         "iterations_per_s=5iterations/s@10 loss=1.9@10"},
        {"Epochs:  50%|█         | 1/2 [00:02<00:02, 2.0s/it, val_loss=1.8]", "val_loss=1.8@10"},
        {"Batches:  50%|█| 5/10 [00:01<00:01, 5.0it/s, loss=1.6]",
         "iterations_per_s=5iterations/s@15 loss=1.6@15"},
        {"Epochs: 100%|██████████| 2/2 [00:04<00:00, 2.0s/it]", ""},
        {END, "epoch=2@15"},
        {NULL},
        /* tqdm with unit='img', which prints s/img while it is slow */
        {"Epoch 1/2:   0%|          | 0/4580 [00:00<?, ?img/s]", ""},
        {"Epoch 1/2:   5%|▌         | 229/4580 [01:31<06:06, 1.25s/img, loss (batch)=1.23]",
         "samples_per_s=0.8samples/s@e0.05 loss=1.23@e0.05 epoch=0.05@e0.05"},
        {"Epoch 1/2:  20%|██        | 916/4580 [01:31<06:06, 10.00img/s, loss (batch)=0.523]",
         "samples_per_s=10samples/s@e0.2 loss=0.523@e0.2 epoch=0.2@e0.2"},
        {NULL},
        {"Epoch 1:  10%|█  | 10/100 [00:20<03:00,  2.00s/batch]",
         "iterations_per_s=0.5iterations/s@10"},
        {"Epoch 1: 100%|███| 100/100 [01:00<00:00,  1.50batch/s]",
         "iterations_per_s=1.5iterations/s@100"},
        {NULL},
        /* OpenCLIP: samples of an evaluation are no steps */
        {"Train Epoch: 1 [32000/64000 (50%)]\tLoss: 1.3", "loss=1.3@e0.5 epoch=0.5@e0.5"},
        {"Eval Epoch: 1 [5000/10000]\tLoss: 0.9", "eval_loss=0.9@e0.5 epoch=0.5@e0.5"},
        {"Train Epoch: 2 [32000/64000 (50%)]\tLoss: 0.7", "loss=0.7@e1.5 epoch=1.5@e1.5"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given epochs that are counted in two ways, or as fractions, then no more are done than there are. */
LAB_TEST(no_more_epochs_are_done_than_there_are) {
    static const char *const cases[][2] = {
        {"Beginning of Epoch 1/2, Total Micro Batches 3", "total_micro_batches=3@e1 epoch=1@e1"},
        {"Epoch: 0, Step: 2, loss = 3.3", "loss=3.3@2"},
        {"Beginning of Epoch 2/2", ""},
        {"Epoch: 1, Step: 2, loss = 2.2", "loss=2.2@4"},
        {"Saved at the end of Epoch 2/2", ""},
        {END, "epoch=2@4"},
        {NULL},
        {"Epoch 0/1 step 10 loss 2", "loss=2@10"},
        {"Epoch 1/1 step 10 loss 1", "loss=1@20"},
        {END, "epoch=2@20"},
        {NULL},
        {"loss: 2.3, global_step: 10, epoch: 0.01", "loss=2.3@10 epoch=0.01@10"},
        {"eval_loss: 2.1, epoch: 0.01", "eval_loss=2.1@10 epoch=0.01@10"},
        {END, ""},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given values without a word for what they are of, then a line before says it. */
LAB_TEST(a_line_says_what_those_behind_it_are_of) {
    static const char *const cases[][2] = {
        {"Epoch: 0, Step: 9, loss = 2.2", "loss=2.2@9"},
        {"***** Evaluating perplexity, Epoch 1/2 *****", ""},
        {"ppl: 5.123, loss: 1.612", "eval_ppl=5.123@9 eval_loss=1.612@9"},
        {"acc (higher is better) : 0.71, loss (lower is better) : 0.571",
         "eval_acc=0.71@9 eval_loss=0.571@9"},
        {"saving the final model ...", ""},
        {"loss: 2.1", "loss=2.1@9"},
        {"===== Training =====", ""},
        {"loss: 2.05", "loss=2.05@9"},
        {NULL},
        {"Epoch 2 - Evaluation time (seconds): 1.12 - test metrics:",
         "evaluation_time=1120ms@e2 epoch=2@e2"},
        {"\tAccuracy: 0.6023", "test_accuracy=0.6023@e2 epoch=2@e2"},
        {"\tLoss: 1.2456", "test_loss=1.2456@e2 epoch=2@e2"},
        {"Epoch 3 loss 1.3", "loss=1.3@e3 epoch=3@e3"},
        {NULL},
        {"step 5 loss 2.1", "loss=2.1@5"},
        {"        \"validation\": {", ""},
        {"            \"loss\": 5.756,", "val_loss=5.756@5"},
        {"            \"top1\": 0.81", "val_top1=0.81@5"},
        {"        }", ""},
        {NULL},
        {"time=\"2024-01-01T10:00:00Z\" level=info msg=\"train\" step=10 loss=2.31",
         "loss=2.31@10"},
        {"time=\"2024-01-01T10:00:01Z\" level=info msg=\"eval\" step=10 loss=2.41",
         "eval_loss=2.41@10"},
        {NULL},
        /* PySlowFast */
        {"[01/01 10:00:00][INFO] logging.py:  99: json_stats: {\"_type\": \"train_iter\", "
         "\"epoch\": "
         "\"1/2\", \"gpu_mem\": \"5.1G\", \"iter\": \"10/20\", \"loss\": 2.3}",
         "gpu_mem=5.1G@10 loss=2.3@10"},
        {"[01/01 10:00:00][INFO] logging.py:  99: json_stats: {\"_type\": \"val_iter\", \"epoch\": "
         "\"1/2\", \"iter\": \"10/10\", \"loss\": 2.1}",
         "val_loss=2.1@10"},
        {"[01/01 10:00:00][INFO] logging.py:  99: json_stats: {\"_type\": \"train_iter\", "
         "\"epoch\": "
         "\"2/2\", \"iter\": \"10/20\", \"loss\": 1.3}",
         "loss=1.3@30"},
        {NULL},
        /* DETR's, MAE's and others' MetricLogger */
        {"Epoch: [0]  [  10/100]  lr: 0.0001  loss: 40.12 (42.12)", "lr=0.0001@10 loss=40.12@10"},
        {"Averaged stats: lr: 0.0001  loss: 38.12 (41.12)", "loss=38.12@10"},
        {"Test:  [   0/2500]  eta: 0:40:00  loss: 30.12 (30.12)", "test_loss=30.12@10"},
        {"Averaged stats: class_error: 81.12  loss: 29.12 (31.12)",
         "test_class_error=81.12@10 test_loss=31.12@10"},
        {NULL},
        {"epoch: [2/500], global_step: 100, loss: 13.4", "loss=13.4@100"},
        {"cur metric, acc: 0.4123, fps: 1234.5", "acc=0.4123@100"},
        {"best metric, acc: 0.5123, fps: 1222.5, best_epoch: 1", "best_acc=0.5123@100"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given the word for an evaluation right before a bracket or another mark, then the values behind it
 * are the evaluation's, up to the bracket's end. */
LAB_TEST(values_in_brackets_are_of_the_word_before) {
    static const char *const cases[][2] = {
        {"Epoch 1 train(loss=2.5, acc=0.5) val(loss=2.6, acc=0.4) lr=0.1",
         "loss=2.5@e1 acc=0.5@e1 val_loss=2.6@e1 val_acc=0.4@e1 lr=0.1@e1 epoch=1@e1"},
        {"Epoch 2 val [loss 2.6 acc 0.4]", "val_loss=2.6@e2 val_acc=0.4@e2 epoch=2@e2"},
        {"Epoch 3 train={'loss': 2.5} val={'loss': 2.6}", "loss=2.5@e3 val_loss=2.6@e3 epoch=3@e3"},
        {"Epoch 4 eval {'loss': 2.6}", "eval_loss=2.6@e4 epoch=4@e4"},
        {"test metrics {'loss': 2.6}", "test_loss=2.6@e4 epoch=4@e4"},
        {"Epoch 5: (train) loss=2.5 acc=0.5 (val) loss=2.6 acc=0.4",
         "loss=2.5@e5 acc=0.5@e5 val_loss=2.6@e5 val_acc=0.4@e5 epoch=5@e5"},
        {"Epoch 6 (val) loss=2.6", "val_loss=2.6@e6 epoch=6@e6"},
        {"Epoch 7: loss=2.5 (train), loss=2.6 (val)", "loss=2.5@e7 val_loss=2.6@e7 epoch=7@e7"},
        {"Epoch 8, Train, loss=2.5, Val, loss=2.6", "loss=2.5@e8 val_loss=2.6@e8 epoch=8@e8"},
        {"Epoch 9: train> loss=2.5 val> loss=2.6", "loss=2.5@e9 val_loss=2.6@e9 epoch=9@e9"},
        {">>> Validation @ epoch 9: loss 2.6", "val_loss=2.6@e9 epoch=9@e9"},
        {"Epoch 10 val (smoothed) loss 2.6 acc 0.4", "val_loss=2.6@e10 val_acc=0.4@e10 "
                                                     "epoch=10@e10"},
        {"Epoch 11 loss: 2.5 (2.6 val) acc: 0.5", "loss=2.5@e11 acc=0.5@e11 epoch=11@e11"},
        {"Epoch 12 | train_loss 2.1 | val_loss - | lr 1e-4",
         "train_loss=2.1@e12 lr=0.0001@e12 epoch=12@e12"},
        {"Epoch 13 loss: 2.5 (val: 2.6) acc: 0.5 (val: 0.4)",
         "loss=2.5@e13 loss_val=2.6@e13 acc=0.5@e13 acc_val=0.4@e13 epoch=13@e13"},
        {NULL},
        /* a phase before a '|' */
        {"step 1 train loss: 2.5 | acc: 0.5 || val loss: 2.6 | acc: 0.4 | mfu 38%",
         "train_loss=2.5@1 acc=0.5@1 val_loss=2.6@1 val_acc=0.4@1 mfu=38%@1"},
        {"  Train Loss: 2.5 | Acc: 50%", "train_loss=2.5@1 acc=0.5@1"},
        {"   Val Loss: 2.6 | Acc: 40%", "val_loss=2.6@1 val_acc=0.4@1"},
        {NULL},
        {"Epoch 2 | Val Acc 0.4 | Loss 2.5", "val_acc=0.4@e2 loss=2.5@e2 epoch=2@e2"},
        {NULL},
        /* Catalyst */
        {"train (2/3) accuracy01: 0.81 | loss: 0.41", "loss=0.41"},
        {"valid (2/3) accuracy01: 0.71 | loss: 0.51", "val_loss=0.51"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given a step between a loss and its value, or behind words of a sentence, then it is no value, and
 * neither a batch's size nor an epoch stands for it. */
LAB_TEST(steps_are_found_where_trainers_put_them) {
    static const char *const cases[][2] = {
        /* NVIDIA's Tacotron 2 */
        {"Train loss 10 1.234567 Grad Norm 2.345678 0.50s/it",
         "train_loss=1.234567@10 grad_norm=2.345678@10 iterations_per_s=2iterations/s@10"},
        {"Validation loss 11:  1.334567  ", "validation_loss=1.334567@11"},
        {"loss 10 acc 0.5", "loss=10@11 acc=0.5@11"},
        {NULL},
        /* DLRM */
        {"Finished training it 1024/4096 of epoch 0, 12.34 ms/it, loss 0.512345",
         "iteration_time=12.34ms@1024 loss=0.512345@1024"},
        {"Testing at - 1024/4096 of epoch 0, loss 0.51, accuracy 78.9 %",
         "test_loss=0.51@1024 test_accuracy=78.9%@1024"},
        {"Finished training it 1024/4096 of epoch 1, 12.34 ms/it, loss 0.412345",
         "iteration_time=12.34ms@5120 loss=0.412345@5120"},
        {NULL},
        /* StyleGAN */
        {"tick 2     kimg 8.0      minibatch 32   time 2m 20s        sec/tick 60.1",
         "kimg=8@2 sec/tick=60.1@2"},
        {NULL},
        {"step 133 min loss 2.0 max loss 3.0", "min_loss=2@133 max_loss=3@133"},
        {"step 134 loss 2.0 time 45 μs", "loss=2@134 time=0.045ms@134"},
        {"step 135 loss 2.0 time 3 min", "loss=2@135 time=180000ms@135"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given a line that is the heading of an evaluation alone, then the values behind it are that one's,
 * and its steps are none of the training's; a heading of the training ends it. */
LAB_TEST(headings_of_evaluations_name_values) {
    static const char *const cases[][2] = {
        /* Coqui */
        {"   --> STEP: 24/100 -- GLOBAL_STEP: 125", ""},
        {"     | > loss: 1.23  (1.345)", "loss=1.23@125"},
        {" > EVALUATION ", ""},
        {"  --> STEP: 0", ""},
        {"     | > loss: 1.53  (1.53)", "eval_loss=1.53@125"},
        {" > EPOCH: 1/1000", ""},
        {"   --> STEP: 24/100 -- GLOBAL_STEP: 225", ""},
        {"     | > loss: 1.03  (1.145)", "loss=1.03@225"},
        {NULL},
        /* BERT */
        {"INFO:tensorflow:***** Eval results *****", ""},
        {"INFO:tensorflow:  eval_accuracy = 0.8578", "eval_accuracy=0.8578"},
        {"INFO:tensorflow:  global_step = 343", ""},
        {"INFO:tensorflow:  loss = 0.4131", "eval_loss=0.4131@343"},
        {NULL},
        {"step 9 loss 2.5", "loss=2.5@9"},
        {"--- Evaluation ---", ""},
        {"loss: 2.7", "eval_loss=2.7@9"},
        {"--- Training ---", ""},
        {"loss: 2.4", "loss=2.4@9"},
        {"Validation Results", ""},
        {"loss: 2.8, train_loss: 2.3", "loss=2.8@9 train_loss=2.3@9"},
        {"Validating...", ""},
        {"loss: 2.8", "val_loss=2.8@9"},
        {"step 10 loss 2.3", "loss=2.3@10"},
        {"### Test set ###", ""},
        {"acc: 0.5", "test_acc=0.5@10"},
        {"test the new loss", ""},
        {"acc: 0.6", "acc=0.6@10"},
        {"2026-01-05 10:00:00,123 - INFO - Evaluating...", ""},
        {"2026-01-05 10:00:01,123 - INFO - acc: 0.7", "eval_acc=0.7@10"},
        {"[rank0]: Validation", ""},
        {"[rank0]: acc: 0.8", "r0:val_acc=0.8"},
        {"Loading the test set", ""},
        {"acc: 0.6", "acc=0.6@10"},
        {"split: test", ""},
        {"acc: 0.7", "acc=0.7@10"},
        {"INFO Testing", ""},
        {"INFO acc 0.9", "test_acc=0.9@10"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given a table whose columns are not names and their values, or a logger's own line number, then
 * no number of it is a value. */
LAB_TEST(other_numbers_are_no_values) {
    static const char *const cases[][2] = {
        {"|hellaswag|      1|none  |     0|acc     |↑  |0.2853|±  |0.0045|", ""},
        {"| Train | Accuracy | 84.123   | 1        | 98.512   | 10       |", ""},
        {"Epoch 1 Pseudo dice [0.5123, 0.6123]", ""},
        {"Losses: [2.312, 2.023], step: 200, lr: 0.0001", "lr=0.0001@200"},
        {"step 201 | loss 8.1 | elapsed 1h 2m 3s", "loss=8.1@201"},
        {"Wed Nov 19 04:12:33 2025: step 202 | loss 2.3", "loss=2.3@202"},
        {"step 203 208.469/s/gpu LR: 0.00001", "lr=1e-05@203"},
        {"| val_loss_every | 20 |", ""},
        {"Training starts at step 1, with sequence length 2048, total steps 10 (warmup 2)", ""},
        {"{\"step\": 204, \"loss\": 2.5, \"timestamp\": 1.7e9, \"metadata\": {\"lineno\": 12}}",
         "loss=2.5@204"},
        {"  loss = 0.5 * F.mse_loss(pred, y)", ""},
        {"    accuracy = 100 * correct / total", ""},
        {"[NeMo I 2024-05-01 10:00:10 wer:320] reference:the cat sat", ""},
        {"2024-01-01 10:00:00,123 loss:45 INFO starting", ""},
        {"2024-01-01 10:00:00,123 - metrics:88 - INFO - step 20 loss 2.21", "loss=2.21@20"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given a table that a line of dashes begins, then its rows have the step or epoch that one of them
 * is, wherever that stands. */
LAB_TEST(rows_of_a_ruled_table_wait_for_its_end) {
    static const char *const cases[][2] = {
        {"-------------------------", ""},
        {"| grad_norm  | 1.23     |", ""},
        {"| loss       | 0.998    |", ""},
        {"| step       | 10       |", ""},
        {"-------------------------", "grad_norm=1.23@10 loss=0.998@10"},
        {NULL},
        {"---------------------------------------", ""},
        {"|             Epoch |               1 |", ""},
        {"|      AverageEpRet |            41.1 |", ""},
        {"---------------------------------------", "AverageEpRet=41.1@e1"},
        {NULL},
        {"-----------------", ""},
        {"| params | 25   |", ""},
        {"-----------------", ""},
        {NULL},
        /* an evaluation's own steps: Stable-Baselines3 */
        {"Eval num_timesteps=5000, episode_reward=187.20 +/- 41.10", "episode_reward=187.2@5000"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
