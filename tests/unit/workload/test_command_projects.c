/* Lines of well-known projects, as their code prints them; steps and epochs of one name; objects
 * with many keys. */
#include "command_fixture.h"

#include "workload/command/form.h"
#include "workload/command/program_log.h"

#include <unistd.h>

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
        /* PyTorch's tutorial, LitGPT */
        {"  batch 1000 loss: 1.5", "loss=1.5@1000"},
        {"LOSS train 0.5 valid 0.6", "loss_train=0.5@1000 loss_valid=0.6@1000"},
        {NULL},
        {"Epoch 1 | iter 100 step 25 | loss train: 1.25, val: 1.5 | iter time: 12.5 ms",
         "loss_train=1.25@100 loss_val=1.5@100 iter_time=12.5ms@100"},
        {"iter 101: loss 2.5 train 3 | val 4", "loss=2.5@101 train=3@101 val=4@101"},
        {NULL},
        /* Lightning's list of modules */
        {"1 | loss  | CrossEntropyLoss | 0      | train", ""},
        {"│ 1 │ loss  │ CrossEntropyLoss │ 0      │ train │", ""},
        {"100 | loss | 0.5 | acc | 0.25 |", "loss=0.5 acc=0.25"},
        {NULL},
        /* loguru, logging's %(name)s:%(funcName)s:%(lineno)d */
        {"2026-01-01 12:00:00.123 | INFO     | __main__:train:45 - Epoch 3 - loss 0.5",
         "loss=0.5@e3 epoch=3@e3"},
        {"2026-01-01 12:00:00.123 | INFO     | trainer:train_loss:45 - val:acc:93",
         "val_acc=93@e3 epoch=3@e3"},
        {NULL},
        {"pkg.train:train_step:77: step 3 loss 0.5", "loss=0.5@3"},
        {"INFO:root:45:step 4: loss 0.5", "loss=0.5@4"},
        {"trainer:fit:45 step 5 loss 0.5 val:acc:93", "loss=0.5@5 val_acc=93@5"},
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
        {NULL},
        /* LightGBM, llm.c; a mark of UTF-8, tensors of one element */
        {"[10]\ttraining's l2: 0.123\tvalid_1's l2: 0.2",
         "trainings_l2=0.123@10 valid_1s_l2=0.2@10"},
        {"HellaSwag: 2500/10000 = 0.25", "hellaswag=25%@10"},
        {NULL},
        {"\xef\xbb\xbfstep 1 loss tensor([2.0]) 12,345 tokens/s/gpu",
         "loss=2@1 tokens_per_s_per_gpu=12345tokens/s/GPU@1"},
        {"{'step': 2, 'loss': tensor([0.5], device='cuda:0'), 'w': tensor([1, 2])}", "loss=0.5@2"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given lines of more projects, each of which was once read wrong, then a duration is no step, an
 * evaluation's mean is its value, and what was drawn before is not read again. */
LAB_TEST(durations_means_and_prefixes_are_told_apart) {
    static const char *const cases[][2] = {
        /* torchtitan's validation */
        {"step: 10  loss:  9.5  tps: 5,431", "loss=9.5@10 tps=5431tokens/s@10"},
        {"validate step: 10  loss:  9.75  tps: 15,431",
         "val_loss=9.75@10 val_tps=15431tokens/s@10"},
        {NULL},
        /* DeepSpeed's timers, Megatron's memory */
        {"[Rank 0] step=10, skipped=0", "r0:skipped=0@10"},
        {"[Rank 0] time (ms) | fwd: 12.3 | bwd_allreduce: 4.5 | step: 5.67",
         "r0:fwd=12.3ms@10 r0:bwd_allreduce=4.5ms@10 r0:step=5.67ms@10"},
        {"[Rank 0] (after 10 iterations) memory (MB) | allocated: 12.5 | max allocated: 23.5",
         "r0:allocated=12.5MB@10 r0:max_allocated=23.5MB@10"},
        {NULL},
        /* pytorch-cifar, rl_games, TensorFlow's tutorials */
        {"[=====>]  Step: 69ms | Tot: 18s521ms | Loss: 1.25 | Acc: 55.1% (27561/50000) 391/391",
         "step_time=69ms loss=1.25 acc=55.1%"},
        {"fps step: 900 fps total: 800 epoch: 100/1000",
         "fps_step=900@e100 fps_total=800@e100 epoch=100@e100"},
        {"Epoch 101 loss: 2", "loss=2@e101 epoch=101@e101"},
        {"Time taken for 1 epoch: 45.2 secs", "epoch_time=45200ms@e101 epoch=101@e101"},
        {"loss step: 2.5, step 0.5", "loss_step=2.5@e101 epoch=101@e101"},
        {NULL},
        /* TensorFlow's estimators; a value that is missing */
        {"INFO:tensorflow:loss = 0.3, step = 100 (0.810 sec)", "loss=0.3@100"},
        {"INFO:tensorflow:global_step/sec: 123.5", "iterations_per_s=123.5iterations/s@100"},
        {"INFO:tensorflow:Saving dict for global step 100: accuracy = 0.9, loss = 0.5",
         "eval_accuracy=0.9@100 eval_loss=0.5@100"},
        {"step 101 loss: None acc: 0.5", "acc=0.5@101"},
        {NULL},
        /* timm, torchvision: the mean over an evaluation's batches */
        {"Train: 0 [  50/1250 (  4%)]  Loss: 6.5 (6.9)", "loss=6.5@e0.04 epoch=0.04@e0.04"},
        {"Test: [ 195/195]  Loss:   6.7 ( 6.8)  Acc@1:  0.59 (  0.61)  Acc@5: 2.9% (2.4%)",
         "test_loss=6.8@e0.04 test_acc@1=0.61@e0.04 test_acc@5=2.4%@e0.04 epoch=0.04@e0.04"},
        {NULL},
        {"Test: [70/79]\tTime 0.013 (0.024)\tLoss 1.5 (1.6)\tPrec@1 45.3 (42.1)",
         "test_loss=1.6 test_prec@1=42.1"},
        {" * Prec@1 42.560", "test_prec@1=42.56"},
        {NULL},
        /* sockeye, Horovod, tf_cnn_benchmarks, rsl_rl */
        {"Epoch[0] Batch [50] Speed: 1234.5 samples/sec 9876.5 tokens/sec 1.2 updates/sec "
         "perplexity=12.5",
         "speed=1234.5samples/s@50 tokens_per_s=9876.5tokens/s@50 "
         "iterations_per_s=1.2iterations/s@50 perplexity=12.5@50"},
        {NULL},
        {"Epoch 1 Speed: 10 samples/sec 2.1 sentences/sec loss=2",
         "speed=10samples/s@e1 loss=2@e1 epoch=1@e1"},
        {NULL},
        {"images/sec: 123.4 +/- 1.2 (jitter = 3.4)", "samples_per_s=123.4samples/s"},
        {"Iter #1: 1234.5 img/sec per GPU", "samples_per_s=1234.5samples/s@1"},
        {"step 5 throughput=1.2e6 tok/sec/GPU mem=12GB",
         "throughput=1200000tokens/s/GPU@5 mem=12GB@5"},
        {"       Computation: 65321 steps/s (collection: 0.9s)", "computation=65321iterations/s@5"},
        {NULL},
        /* NeMo, sample-factory, DLLogger */
        {"[NeMo I 2024-05-01 10:00:00 nemo_logging:393] Epoch 0: step 5 loss=2.5", "loss=2.5@5"},
        {"[2024-05-01 10:00:00,123][4711] Throughput: 0: 3086.4. Samples: 12345", ""},
        {"[2024-05-01 10:00:00,123] [6] loss=6.5", "loss=6.5@6"},
        {"DLLL {\"step\": [0, 10], \"data\": {\"train.loss\": 6.5}}", "data.train.loss=6.5@6"},
        {"\"step\": [0, 10], \"loss\": 6.5", "loss=6.5@6"},
        {NULL},
        /* Lightning draws the bar anew before the next epoch; its callbacks' words */
        {"Epoch 0: 100%|#| 63/63 [00:12<00:00, 5.00it/s, loss=0.3, val_loss=0.4]",
         "iterations_per_s=5iterations/s@63 loss=0.3@63 val_loss=0.4@63"},
        {"Metric val_loss improved by 0.1 >= min_delta = 0.0. New best score: 0.4", ""},
        {"Epoch 0, global step 63: 'val_loss' reached 0.30320 (best 0.30320), saving model to "
         "'/x/epoch=0-step=63.ckpt' as top 1",
         "best_val_loss=0.3032@63"},
        {"Epoch 0:   0%| | 0/63 [00:00<?, ?it/s, loss=0.3, val_loss=0.4]", ""},
        {"Epoch 1:   2%| | 1/63 [00:00<00:10, 6.00it/s, loss=0.2, val_loss=0.4]",
         "iterations_per_s=6iterations/s@64 loss=0.2@64 val_loss=0.4@64"},
        {"precision: 0.9, recall: 0.8, kappa: 0.5", "precision=0.9@64 recall=0.8@64 kappa=0.5@64"},
        {NULL},
        /* CatBoost without a loss of the training */
        {"0:\ttest: 0.95\tbest: 0.95 (0)\ttotal: 181ms\tremaining: 10.7s",
         "test=0.95@0 best=0.95@0 total=181ms@0"},
        {"10:\ttest: 0.97\tbest: 0.97 (10)\ttotal: 486ms\tremaining: 0us",
         "test=0.97@10 best=0.97@10 total=486ms@10"},
        {NULL},
        /* a report of scikit-learn ends the table before it, and its columns stay as many */
        {"      Iter       Train Loss   Remaining Time ", ""},
        {"         1           1.2291            2.07s", "train_loss=1.2291@1"},
        {"         2     0.9   0.8     0.7   257", ""},
        {"              precision    recall  f1-score   support", ""},
        {"         3           1.2291            2.07s", ""},
        {"    accuracy                           0.95       500", "accuracy=0.95@1"},
        {NULL},
        {"Step\tTraining Loss", ""},
        {"500\t3.4", "training_loss=3.4@500"},
        {NULL},
        /* two values of one name; steps in brackets behind an epoch */
        {"Train/Val loss: 2.3 / 2.2", "train_loss=2.3 val_loss=2.2"},
        {"step 5 | acc train/valid 90/85", "acc_train=90@5 acc_valid=85@5"},
        {"Loss (train/val): 2.3/2.2", "loss=2.3@5"},
        {"step 7 train/loss: 2.5, val/loss: 2.4", "train/loss=2.5@7 val/loss=2.4@7"},
        {NULL},
        {"Epoch 1 (200/500): loss 2.5", "loss=2.5@200"},
        {"Accuracy: 55% (27561/50000)", "accuracy=55%@200"},
        {"Epoch 2 (200/500): loss 2.25", "loss=2.25@700"},
        {NULL},
        /* objects that say what they are of */
        {"{\"type\": \"eval\", \"step\": 5, \"loss\": 1.5}", "eval_loss=1.5@5"},
        {"{\"name\": \"loss\", \"value\": 1.25, \"step\": 7, \"time\": 17}", "loss=1.25@7"},
        {"{\"metric\": \"acc@1\", \"value\": 0.5}", "acc@1=0.5@7"},
        {"{\"metric\": \"acc@5\", \"value\": 0.75}", "acc@5=0.75@7"},
        {":::MLLOG {\"time_ms\": 17, \"key\": \"eval_accuracy\", \"value\": 0.75, "
         "\"metadata\": {\"lineno\": 123}}",
         "eval_accuracy=0.75@7"},
        {"{\"name\": \"a\", \"loss\": 2}", "loss=2@7"},
        {"{\"level\": \"INFO\", \"ts\": 17.5, \"message\": \"step 8 loss 2.5\"}", "loss=2.5@8"},
        {"{\"msg\": \"epoch done\", \"step\": 9, \"loss\": 2.25}", "loss=2.25@9"},
        {"{\"trainer/global_step\": 110, \"train/loss\": 2.25}", "train/loss=2.25@110"},
        {"trainer/global_step: 120, train/loss: 2.5", "train/loss=2.5@120"},
        {NULL},
        /* what is saved was printed before; a frame of a table */
        {"Epoch 2: loss 0.9", "loss=0.9@e2 epoch=2@e2"},
        {"Model saved with loss 0.7 at epoch 2", "saved_loss=0.7@e2 epoch=2@e2"},
        {"Epoch 2: best model saved with val acc 0.91", "best_val_acc=0.91@e2 epoch=2@e2"},
        {"INFO  * Acc@1 81.5 Acc@5 96", "test_acc@1=81.5@e2 test_acc@5=96@e2 epoch=2@e2"},
        {NULL},
        {"step-64 loss 2.5", "loss=2.5@64"},
        {"iter_65 loss......: 2.4 rate[tok/s]=9", "loss=2.4@65 rate=9tokens/s@65"},
        {"Step #66: mem=12.3GiB/79.2GiB top-1 acc 3", "mem=12.3GiB@66 top-1_acc=3@66"},
        {"Update: 67 | loss: 2.25", "loss=2.25@67"},
        {"loss[0]: 2.5 loss[1]: 2.25", ""},
        {"saved loss 2", "saved_loss=2@67"},
        {"loss/5 acc 3", "loss/5_acc=3@67"},
        {NULL},
        {"┃ Epoch ┃ Train Loss ┃ Val Loss ┃", ""},
        {"│ 1     │ 0.5        │ 0.4      │", "train_loss=0.5@e1 val_loss=0.4@e1 epoch=1@e1"},
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

/* Given steps of an epoch and of all epochs in a line, and those of all alone in another, then the
 * latter has the epoch's means (fairseq). */
LAB_TEST(means_of_epochs_may_have_global_steps) {
    static const char *const cases[][2] = {
        {"| train_inner | epoch 001:    100 / 2000 loss=10.5, ppl=1234, num_updates=100",
         "loss=10.5@100 ppl=1234@100"},
        {"| valid | epoch 001 | valid on 'valid' subset | loss 10.1 | num_updates 2000",
         "val_loss=10.1@2000"},
        {"| train | epoch 001 | loss 10.3 | ppl 1024 | num_updates 2000",
         "loss_epoch=10.3@2000 ppl_epoch=1024@2000"},
        {"| train_inner | epoch 002:    100 / 2000 loss=9.5, ppl=1034, num_updates=2100",
         "loss=9.5@2100 ppl=1034@2100"},
        {NULL},
        {"epoch 1 | loss 2.5 | num_updates 20", "loss=2.5@20"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given lines about an epoch of before, then they neither count it nor are its values the last. */
LAB_TEST(what_was_before_is_kept_apart) {
    static const char *const cases[][2] = {
        {"epoch 3: loss 1.0, val_loss 2.5", "loss=1@e3 val_loss=2.5@e3 epoch=3@e3"},
        {"Best epoch: 2, loss: 2.0, val_loss: 2.1",
         "best_loss=2@e3 best_val_loss=2.1@e3 epoch=3@e3"},
        {"Loaded best model (epoch 2, val_loss 2.1)", "best_val_loss=2.1@e3 epoch=3@e3"},
        {"Early stopping. Best val_loss 2.1 at epoch 2", "best_val_loss=2.1@e3 epoch=3@e3"},
        {"Restored model from epoch 2 with val_loss=2.1", "restored_val_loss=2.1@e3 epoch=3@e3"},
        {"Best result: epoch 2, val_loss 2.1", "best_val_loss=2.1@e3 epoch=3@e3"},
        {"Best model saved at epoch 2 with val_loss: 2.1000", "best_val_loss=2.1@e3 epoch=3@e3"},
        {"Minimum val_loss: 2.1 (epoch 2)", "minimum_val_loss=2.1@e3 epoch=3@e3"},
        {"=> loaded checkpoint 'ck.pt' (epoch 2, loss 2.0)", "restored_loss=2@e3 epoch=3@e3"},
        {"Resuming from step 2, val_loss 2.1", "restored_val_loss=2.1@e3 epoch=3@e3"},
        {"Epoch 4 | loss 2 | best epoch 2 | acc 0.1", "loss=2@e4 acc=0.1@e4 epoch=4@e4"},
        {"train completed, best_metric: 0.9 at epoch: 2", "best_metric=0.9@e4 epoch=4@e4"},
        {"Epoch 5: best acc 0.9, loss 0.4", "best_acc=0.9@e5 loss=0.4@e5 epoch=5@e5"},
        {NULL},
        {"New best at epoch 7: val_loss 1.05", "best_val_loss=1.05@e7 epoch=7@e7"},
        {NULL},
        /* LightGBM: the line after */
        {"[15]\ttraining's l2: 0.1\tvalid_1's l2: 0.58", "trainings_l2=0.1@15 valid_1s_l2=0.58@15"},
        {"Early stopping, best iteration is:", ""},
        {"[6]\ttraining's l2: 0.3\tvalid_1's l2: 0.52",
         "best_trainings_l2=0.3@15 best_valid_1s_l2=0.52@15"},
        {"[16]\ttraining's l2: 0.1\tvalid_1's l2: 0.6", "trainings_l2=0.1@16 valid_1s_l2=0.6@16"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given steps of each epoch, then they are counted on from its end, or by the global step; in the
 * end the epochs that were done are known. Each object of a list has its own step. */
LAB_TEST(epochs_of_steps_are_counted) {
    static const struct {
        const char *of;
        int steps, each, first, ends;
        const char *last, *end;
    } cases[] = {
        {"", 100, 10, 0, 0, "loss=1@290", "epoch=3@290"},
        {"", 50, 10, 0, 0, "loss=1@140", "epoch=3@140"},
        {"/3", 100, 25, 0, 0, "loss=1@275", "epoch=3@275"},
        {"", 100, 10, 1, 0, "loss=1@291", "epoch=3@291"},
        {"", 100, 10, 10, 1, "loss=1@300", "epoch=3@300"},
    };
    const struct command_reader *reader = reader_of("{}");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct command_reading reading = {0};
        char line[128];
        for (int epoch = 1; epoch <= 3; epoch++)
            for (int i = cases[c].first; i < cases[c].steps + cases[c].ends; i += cases[c].each) {
                lab_str_clear(&seen);
                snprintf(line, sizeof line, "Epoch %d%s step %d loss 1", epoch, cases[c].of, i);
                command_reader_line(reader, &reading, line, strlen(line), note, NULL);
            }
        assert_string_equal(seen.text, cases[c].last);
        lab_str_clear(&seen);
        command_reading_end(&reading, note, NULL);
        assert_string_equal(seen.text, cases[c].end);
        command_reading_release(&reading);
    }
    static const char *const lines[][2] = {
        {"epoch 3 | iter 90 | global_step 290 | loss 1.1", "loss=1.1@290"},
        {"epoch 4 | iter 0 | global_step 300 | loss 1.0", "loss=1@300"},
        {"Epoch: 5 Iter: 10 loss: 2.5 Global Step: 410", "loss=2.5@410"},
        {"valid | epoch 005 | valid on 'valid' subset | loss 10.1 | num_updates 500",
         "val_loss=10.1@500"},
        {"{\"global_step\": 600, \"step\": 1, \"loss\": 1}", "loss=1@600"},
        {"[{\"step\": 1, \"loss\": 2.5}, {\"step\": 2, \"loss\": 2.4, \"name\": \"}\"}]",
         "loss=2.5@1 loss=2.4@2"},
    };
    assert_reads(lines, sizeof lines / sizeof *lines);
}

/* Given few lines of each epoch, then those that were done are known from totals, from how far the
 * epoch before came, or from a line after its steps. A printed share of epochs stays as it is. */
LAB_TEST(epochs_are_known_by_few_lines) {
    static const char *const cases[][2] = {
        {"Epoch 1/2, step 100/100, loss 2", "loss=2@100"},
        {"Epoch 2/2, step 100/100, loss 1", "loss=1@200"},
        {END, "epoch=2@200"},
        {NULL},
        {"Epoch 1/1, step 50/100, loss 2", "loss=2@50"},
        {END, "epoch=0.5@50"},
        {"Epoch 1/1, step 100/100, loss 2", "loss=2@100"},
        {END, "epoch=1@100"},
        {NULL},
        {"Epoch 0: 100%|#| 938/938 [00:10<00:00, 88.0it/s, loss=4]",
         "iterations_per_s=88iterations/s@938 loss=4@938"},
        {"Epoch 1: 100%|#| 938/938 [00:10<00:00, 90.0it/s, loss=2]",
         "iterations_per_s=90iterations/s@1876 loss=2@1876"},
        {END, "epoch=2@1876"},
        {NULL},
        {"Epoch [1/5], Step [100/600], Loss: 3", "loss=3@100"},
        {"Epoch [1/5], Step [600/600], Loss: 2", "loss=2@600"},
        {"Epoch [2/5], Step [300/600], Loss: 1", "loss=1@900"},
        {END, "epoch=1.5@900"},
        {NULL},
        {"Epoch: 0 Iter: 10 loss: 4 Global Step: 10", "loss=4@10"},
        {"Epoch: 0 Iter: 90 loss: 3 Global Step: 90", "loss=3@90"},
        {"Epoch: 1 Iter: 10 loss: 2 Global Step: 110", "loss=2@110"},
        {END, "epoch=1@110"},
        {NULL},
        {"Training: 50%|#| 50/100 [00:01<00:00, 95it/s, loss=2]",
         "iterations_per_s=95iterations/s@50 loss=2@50"},
        {"epoch 1 done: val_loss=2.5", "val_loss=2.5@50"},
        {"Training: 100%|#| 100/100 [00:01<00:00, 95it/s, loss=1]",
         "iterations_per_s=95iterations/s@100 loss=1@100"},
        {"epoch 2 done: val_loss=2.4", "val_loss=2.4@100"},
        {END, "epoch=2@100"},
        {NULL},
        {"Global step 500 (epoch 1.5): loss=2.1", "epoch=1.5@500 loss=2.1@500"},
        {"Global step 1000 (epoch 3.0): loss=1.9", "epoch=3@1000 loss=1.9@1000"},
        {END, ""},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given a line, an object or a bar that says what it is of, then training and evaluation are two
 * metrics, and an evaluation counts no steps. */
LAB_TEST(evaluations_are_kept_apart) {
    static const char *const cases[][2] = {
        /* Keras: fit, then evaluate, also over as many batches */
        {"Epoch 1/1", ""},
        {"10/10 ━━━ 1s 15ms/step - loss: 1.4", "step_time=15ms@10 loss=1.4@10"},
        {"10/10 ━━━ 1s 16ms/step - loss: 1.5", "step_time=16ms@10 loss=1.5@10"},
        {"300/313 ━━━ 0s 1ms/step - loss: 0.4", "eval_step_time=1ms@10 eval_loss=0.4@10"},
        {"313/313 ━━━ 0s 1ms/step - loss: 0.3", "eval_step_time=1ms@10 eval_loss=0.3@10"},
        {"Test loss: 0.3", "test_loss=0.3@10"},
        {END, "epoch=1@10"},
        {"Epoch 2/2", ""},
        {"10/10 ━━━ 1s 15ms/step - loss: 1.2", "step_time=15ms@20 loss=1.2@20"},
        {"5/10 ━━━ 1s 15ms/step - loss: 0.5", "eval_step_time=15ms@20 eval_loss=0.5@20"},
        {"10/10 ━━━ 1s 15ms/step - loss: 0.4", "eval_step_time=15ms@20 eval_loss=0.4@20"},
        {NULL},
        /* PyTorch's tutorial; others */
        {"train Loss: 0.48 Acc: 0.79", "train_loss=0.48 train_acc=0.79"},
        {"val Loss: 0.25 Acc: 0.91", "val_loss=0.25 val_acc=0.91"},
        {"Epoch 1: Train loss 2.5 acc 0.3, Val loss 2.6 acc 0.2, lr 0.1",
         "train_loss=2.5@e1 train_acc=0.3@e1 val_loss=2.6@e1 val_acc=0.2@e1 lr=0.1@e1 epoch=1@e1"},
        {"Epoch 2: loss=2.5 acc=30% (train), loss=2.6 acc=20% (val)",
         "loss=2.5@e2 acc=30%@e2 val_loss=2.6@e2 val_acc=0.2@e2 epoch=2@e2"},
        {"step 3 | train loss 2.4 | mfu 38%", "train_loss=2.4@3 mfu=38%@3"},
        {NULL},
        {"I1118 10:00:08.5 1234 solver.cpp:397]     Test net output #1: loss = 0.06 (* 1 = 0.06 "
         "loss)",
         "test_loss=0.06"},
        {"{\"split\": \"train\", \"step\": 200, \"loss\": 2.4}", "loss=2.4@200"},
        {"{\"step\": 200, \"loss\": 2.5, \"split\": \"val\"}", "val_loss=2.5@200"},
        {"{\"mode\": \"test\", \"step\": 200, \"test_loss\": 2.5}", "test_loss=2.5@200"},
        {"New best! val_loss 2.1 < 3.1", "best_val_loss=2.1@200"},
        {"Reloading best weights (val loss 2.6)", "best_val_loss=2.6@200"},
        {"Evaluation on 1000 samples: loss 2.6, accuracy 0.5", "eval_loss=2.6@200 "
                                                               "eval_accuracy=0.5@200"},
        /* what a file is called was said before */
        {"Restoring states from the path at /x/ck/epoch=1-step=200-val_loss=0.51.ckpt", ""},
        {"model saved to out/loss=2.40/model.pt", ""},
        {"train/loss=3.5 acc: 0.5", "train/loss=3.5@200 acc=0.5@200"},
        {"The loss at step 300 was 2.5", "loss=2.5@300"},
        {NULL},
        {"Validation loss after epoch 3 = 2.2", "validation_loss=2.2@e3 epoch=3@e3"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given rates by their short names and sizes, then each has its unit: sizes as they are printed. */
LAB_TEST(units_are_kept) {
    static const char *const cases[][2] = {
        {"step: 1 loss: 7.9 memory: 20.1GiB(25.5%) tps: 5,432 mfu: 11.2%",
         "loss=7.9@1 memory=20.1GiB@1 tps=5432tokens/s@1 mfu=11.2%@1"},
        {"step=2 loss=3 wps=12345.6 TGS 100",
         "loss=3@2 wps=12345.6words/s@2 tgs=100tokens/s/GPU@2"},
        {"{\"loss\": 2, \"train/tps\": 10}", "loss=2@2 train/tps=10tokens/s@2"},
        {NULL},
        {"{\"tps\": 10, \"connections\": 5}", "tps=10 connections=5"},
        {NULL},
        /* a bar that gets slower than an iteration per second */
        {" 10%|#| 1/10 [00:01<00:01, 2.00it/s, loss=2]",
         "iterations_per_s=2iterations/s@1 loss=2@1"},
        {" 20%|#| 2/10 [00:01<00:01, 1.60s/it, loss=2]",
         "iterations_per_s=0.625iterations/s@2 loss=2@2"},
        {NULL},
        {"step 1 loss 3 time 1.6 s/it", "loss=3@1 time=1600ms@1"},
        {NULL},
        {"step 1.5k loss 2.5", "loss=2.5@1500"},
        {NULL},
        /* samples are no steps */
        {"Epoch 1/2: 5%|#| 50/1000 [00:00<00:01, 980img/s, loss=2.9]",
         "samples_per_s=980samples/s@e0.05 loss=2.9@e0.05 epoch=0.05@e0.05"},
        {NULL},
        /* Hugging Face: a bar of an evaluation in between */
        {" 10%|#| 10/100 [00:05<00:45, 2.00it/s]", "iterations_per_s=2iterations/s@10"},
        {" 40%|#| 2/5 [00:00<00:00, 9.00it/s]", ""},
        {" 11%|#| 11/100 [00:05<00:45, 2.10it/s]", "iterations_per_s=2.1iterations/s@11"},
        {NULL},
        {"step=10 MemAllocated=2.1GB max_mem: 5000M", "memallocated=2.1GB@10 max_mem=5000M@10"},
        {"step=11 MemAllocated=2100MB max_mem: 5G", "memallocated=2.1GB@11 max_mem=5120M@11"},
        {NULL},
        {"OrderedDict([('step', 2), ('loss', 2.4), ('val', OrderedDict({'acc': 0.5}))])",
         "loss=2.4@2 val.acc=0.5@2"},
        {NULL},
        {"INFO epoch 3 OrderedDict([('loss', 2.1), ('acc', tensor(0.5))])",
         "loss=2.1@e3 acc=0.5@e3 epoch=3@e3"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

static int count_values(void *state, const struct lab_reported_metric *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        lab_str_printf(state, "%s=%g ", items[i].name, items[i].value);
    return 0;
}

/* Given an attempt whose output ends without a line feed, then the next one's alone is read. */
LAB_TEST(the_last_attempt_is_read) {
    static const char *const marks[] = {
        "junk=== attempt 2 ===", "\n=== attempt 12 ===", "5%|#| 5/9 [loss=9]=== started again ==="};
    char path[] = "/tmp/gpulab-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        struct lab_program_log log;
        lab_str_clear(&seen);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        dprintf(fd, "step 1 loss 99\n%s\nstep 1 loss 3\n=== x === loss 2\n", marks[i]);
        assert_int_equal(lab_program_log_read(path, NULL, true, count_values, &seen, &log, &err),
                         0);
        assert_string_equal(seen.text, "loss=3 loss=2 ");
    }
    close(fd);
    unlink(path);
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
