/* Values out of what a program prints: JSON lines, trainings, labels of ranks. */
#include "command_fixture.h"

/* --- JSON --- */

LAB_TEST(numbers_of_a_json_line_go_by_their_keys) {
    static const struct {
        const char *line, *found;
    } cases[] = {
        {"{\"iter\": 3, \"loss\": 0.5}", "loss=0.5@3"},
        {"  {\"a\": {\"b\": 1, \"c\": {\"d\": 2}}}  ", "a.b=1 a.c.d=2"},
        {"{\"a\": true, \"b\": null, \"c\": \"3x\", \"d\": [1, 2]}", ""},
        {"{}", ""},
        {"{\"a\": 1", ""},
        {"{\"a\": 1} end", ""},
        {"[1]", ""},
        {"{\"a\\n\": 1}", ""},
        /* what a JSON library refuses */
        {"{\"step\": 2, \"loss\": NaN, \"x\": 1e400, \"x\": 3}", "loss=nan@2 x=3@2"},
        {"{\"n\": 123456789012345678901234567890}", "n=1.23456789e+29"},
        {"{'loss': 1.9, 'learning_rate': 5e-05, 'epoch': 0.5}",
         "loss=1.9@e0.5 learning_rate=5e-05@e0.5 epoch=0.5@e0.5"},
        {"{'loss': 1.9, 'epoch': 0.5, 'step': 50}", "loss=1.9@50 epoch=0.5@50"},
        {"{'loss': tensor(0.5, device='cuda:0'), 'ok': True, 'shape': (3,)}", "loss=0.5"},
        /* newer transformers */
        {"{'loss': '1.8', 'learning_rate': '5e-05', 'note': '', 'id': '3b', 'epoch': '0.5'}",
         "loss=1.8@e0.5 learning_rate=5e-05@e0.5 epoch=0.5@e0.5"},
    };
    const struct command_reader *reader = reader_of("{}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_str_clear(&seen);
        read_line(reader, cases[i].line);
        assert_string_equal(seen.text, cases[i].found);
    }
}

LAB_TEST(json_can_be_switched_off_and_patterns_see_the_rest) {
    static const char line[] = "{\"loss\": 2}";
    read_line(reader_of("{json: false, printed: false}"), line);
    assert_string_equal(seen.text, "");
    read_line(reader_of("{patterns: ['a {a}', 'b {b}']}"), "a 1 b 2");
    assert_string_equal(seen.text, "a=1 b=2");
    lab_str_clear(&seen); /* the step that the line has is theirs */
    read_line(reader_of("{patterns: ['acc = {score}']}"), "Epoch 2 step 30/40 loss 3 acc = 0.5");
    assert_string_equal(seen.text, "score=0.5@70");
}

/* --- lines of trainings --- */

/* Given lines as programs print them, then their values, steps and units are read; lines of one
 * program stand together. */
LAB_TEST(trainings_are_read_as_they_print) {
    static const char *const cases[][2] = {
        {"Iter   100 | loss 3.4512 | ppl 31.5", "loss=3.4512@100 ppl=31.5@100"},
        {NULL},
        /* nanoGPT */
        {"iter 100: loss 3.4, time 45.00ms, mfu 38.00%", "loss=3.4@100 time=45ms@100 mfu=38%@100"},
        {"step 250: train loss 1.9655, val loss 2.0012",
         "train_loss=1.9655@250 val_loss=2.0012@250"},
        {NULL},
        {"Epoch 1/10, Iter 100/500, Loss: 3.4", "loss=3.4@100"},
        {"Epoch 2/10, Iter 100/500, Loss: 3.1", "loss=3.1@600"},
        {NULL},
        /* steps that go on when an epoch begins count over all */
        {"Epoch 1/3, step 200/600, loss 3", "loss=3@200"},
        {"Epoch 2/3, step 300/600, loss 2", "loss=2@300"},
        {NULL},
        {"Val. Loss: 0.571 | Val. Acc.: 71.99%", "val_loss=0.571 val_acc=71.99%"},
        {"step 3: acc 0.9 ± 0.1, loss 0.5±0.2", "acc=0.9@3 loss=0.5@3"},
        {NULL},
        /* llm.c */
        {"step   12/14 | loss 10.970000 (+nanz)| norm 15.3 (-0.32z)| lr 3.00e-04 | 45.70 ms | "
         "55.1% bf16 MFU | 358383 tok/s",
         "loss=10.97@12 norm=15.3@12 lr=0.0003@12 time=45.7ms@12 bf16_mfu=55.1%@12 "
         "tokens_per_s=358383tokens/s@12"},
        {"val loss 4.51", "val_loss=4.51@12"},
        {NULL},
        /* Lightning, tqdm */
        {"Epoch 0:  32%|███▏      | 600/1875 [00:05<00:10, 118.20it/s, v_num=0, train_loss=0.123]",
         "iterations_per_s=118.2iterations/s@600 train_loss=0.123@600"},
        {"Epoch 1:  32%|███▏      | 600/1875 [00:05<00:10, 118.20it/s, v_num=0, train_loss=0.1]",
         "iterations_per_s=118.2iterations/s@2475 train_loss=0.1@2475"},
        {NULL},
        /* Keras */
        {"Epoch 1/10", ""},
        {"1875/1875 [=======] - 4s 2ms/step - loss: 0.2912 - accuracy: 0.9153",
         "step_time=2ms@1875 loss=0.2912@1875 accuracy=0.9153@1875"},
        {"1875/1875 ━━━━━━ 4s 2ms/step - accuracy: 0.9 - loss: 0.29",
         "step_time=2ms@1875 accuracy=0.9@1875 loss=0.29@1875"},
        {NULL},
        /* PyTorch's ImageNet example, Megatron, torchtitan */
        {"Epoch: [0][  10/5005]\tTime  0.530 ( 1.245)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.39 (  "
         "0.10)",
         "time=0.53@10 loss=6.9@10 acc@1=0.39@10"},
        {NULL},
        {" iteration      100/  500000 | elapsed time per iteration (ms): 123.4 | lm loss: 6.5E+00 "
         "|",
         "elapsed_time_per_iteration=123.4ms@100 lm_loss=6.5@100"},
        {"step:  1  loss: 12.2386  memory:  5.10GiB(5.37%)  tps: 1,234  mfu: 3.2%",
         "loss=12.2386@1 memory=5.1GiB@1 tps=1234tokens/s@1 mfu=3.2%@1"},
        {NULL},
        /* PyTorch's MNIST example: samples of an epoch are no steps */
        {"Train Epoch: 1 [15000/60000 (25%)]\tLoss: 0.3", "loss=0.3@e0.25 epoch=0.25@e0.25"},
        {"Test set: Average loss: 0.05, Accuracy: 9852/10000 (99%)",
         "test_average_loss=0.05@e0.25 test_accuracy=98.52%@e0.25 epoch=0.25@e0.25"},
        {"Train Epoch: 2 [15000/60000 (25%)]\tLoss: 0.2", "loss=0.2@e1.25 epoch=1.25@e1.25"},
        {NULL},
        /* PyTorch's tutorial, timm, and a part without epochs; batches in brackets are steps */
        {"Epoch 2", ""},
        {"loss: 2.3  [30000/60000]", "loss=2.3@e1.5 epoch=1.5@e1.5"},
        {" Accuracy: 44.1%, Avg loss: 2.16",
         "accuracy=44.1%@e1.5 avg_loss=2.16@e1.5 epoch=1.5@e1.5"},
        {NULL},
        {"Train: 0 [  50/1250 (  4%)]  Loss: 6.9 (6.9)", "loss=6.9@e0.04 epoch=0.04@e0.04"},
        {"Train: 1 [  50/1250 (  4%)]  Loss: 6.5 (6.9)", "loss=6.5@e1.04 epoch=1.04@e1.04"},
        {NULL},
        {"[30/40 (75%)] loss 3", "loss=3@e0.75 epoch=0.75@e0.75"},
        {"[10/40 (25%)] loss 2", "loss=2@e1.25 epoch=1.25@e1.25"},
        {NULL},
        {"loss 3 [10/40]", "loss=3@10"},
        {NULL},
        {"Epoch 3 with loss 2.5", "loss=2.5@e3 epoch=3@e3"},
        {NULL},
        /* what a log puts before a name, and sentences */
        {"INFO loss: 2.3", "loss=2.3"},
        {"INFO:root:loss: 2.3", "loss=2.3"},
        {"2024-01-01 12:00:00,123 - INFO - train loss: 2.3", "train_loss=2.3"},
        {"2024-01-01 12:00:00 INFO train.py val loss: 2.3", "val_loss=2.3"},
        {"2024/01/01 12:00:00 WARNING loss 2.3", "loss=2.3"},
        {"INFO 2024-01-01 12:00:00,123 step 5 loss 2.3", "loss=2.3@5"},
        {"train error: 0.5, loss 2", "loss=2@5"},
        {"step 6: train error 0.5", "train_error=0.5@6"},
        {"Loss is nan, stopping training", "loss=nan@6"},
        {"the validation loss was 0.5", "validation_loss=0.5@6"},
        {"training loss of 0.5", "training_loss=0.5@6"},
        {"epoch 6 of 10: time of 3", ""},
        {NULL},
        {"Final loss: 0.512", "final_loss=0.512"},
        {"Final accuracy 93.1%", "final_accuracy=93.1%"},
        {"train loss: nan", "train_loss=nan"},
        /* what is no value of a training */
        {"Loading 12 files from /data/v1.2.3", ""},
        {"number of parameters: 124.34M", ""},
        {"learning_rate = 0.001, batch_size = 12", ""},
        {"2026-11-17 16:02:17 INFO listening on 127.0.0.1:29500", ""},
        {"Downloading: 50%|█████     | 5/10 [00:01<00:01,  4.98MB/s]", ""},
        {"Map: 100%|██████████| 5000/5000 [00:01<00:00, 4000 examples/s]", ""},
        {"step 100 took 45 ms", ""},
        {"Iter 120: \x9d\x90\x8c=3.21", ""}, /* no UTF-8 */
        {"ETA: 0:05:12 step 5 loss 2.5", "loss=2.5@5"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given lines that trainers of the field print, then what is a value is told from what is not. */
LAB_TEST(well_known_trainers_are_read) {
    static const char *const cases[][2] = {
        /* a unit's word before a value is its name */
        {"loss 0.14 tok/s 1000", "loss=0.14 tokens_per_s=1000tokens/s"},
        {"step 5 loss=0.1449 tok/s=1000", "loss=0.1449@5 tokens_per_s=1000tokens/s@5"},
        {"step 6 loss 0.5 min 0.3 max 0.9 | 45 ms 12 tok/s",
         "loss=0.5@6 min=0.3@6 max=0.9@6 tokens_per_s=12tokens/s@6"},
        {"step 7 speed 900 tok/s 45 ms", "speed=900tokens/s@7"},
        /* one unit for all values of a metric */
        {"step 1 time 800ms mem 512MiB", "time=800ms@1 mem=512MiB@1"},
        {"step 2 time 2.5s mem 1.5GiB", "time=2500ms@2 mem=1536MiB@2"},
        {"step 3 time 1.5 min mem 1073.741824 MB", "time=90000ms@3 mem=1024MiB@3"},
        /* thousands */
        {"step 4 | 12,345 tok/s | 12.5K tok/s | seen 1.2M | 1.5kit/s",
         "tokens_per_s=12345tokens/s@4 tokens_per_s=12500tokens/s@4 seen=1200000@4 "
         "iterations_per_s=1500iterations/s@4"},
        {"12,345 tok/s", "tokens_per_s=12345tokens/s@4"},
        {NULL},
        /* names out of sentences */
        {"Using loss function 2", ""},
        {"loss function: 2", ""},
        {"Attempted loss scale: 65536, reducing to 32768", ""},
        {"saved best model with loss 0.5", "best_loss=0.5"},
        {"Best accuracy so far: 93.2", "best_accuracy_so_far=93.2"},
        {"Accuracy of the network on the 10000 test images: 55 %", "accuracy=55%"},
        {"Epoch 1: val_loss improved from inf to 0.15000, saving model to best.keras", ""},
        {"step 3: saving shard 4", ""},
        {NULL},
        /* evaluations */
        {"Validation: loss 0.9", "val_loss=0.9"},
        {"[val] loss 0.9", "val_loss=0.9"},
        {"Test - loss: 0.9, test acc: 0.5", "test_loss=0.9 test_acc=0.5"},
        {"Eval results: loss=0.9", "eval_loss=0.9"},
        {"eval epoch: 1, loss: 0.5", "eval_loss=0.5@e1 epoch=1@e1"},
        {"Epoch 1 | Train: loss 0.5 | Val: loss 0.6", "loss=0.5@e1 val_loss=0.6@e1 epoch=1@e1"},
        {"Epoch 1 | Val Acc: 82.1% | Time: 2s", "val_acc=82.1%@e1 time=2000ms@e1 epoch=1@e1"},
        {"Evaluating:  50%|█████     | 5/10 [00:01<00:01,  5.00it/s, loss=0.3]",
         "eval_loss=0.3@e1 epoch=1@e1"},
        {NULL},
        /* tqdm alone; an object has epochs of its own */
        {" 12%|█▏        | 12/100 [00:05<00:40,  2.20it/s]", "iterations_per_s=2.2iterations/s@12"},
        {" 13%|█▎        | 13/100 [00:07<00:40,  2.20s/it]",
         "iterations_per_s=0.4545454545iterations/s@13"},
        {"Training:  14%|█▍        | 14/100 [00:07<00:40,  2.20s/it]",
         "iterations_per_s=0.4545454545iterations/s@14"},
        {"100%|██████████| 28881/28881 [00:00<00:00, 2500000.00it/s]", ""},
        {"120it [00:05, 22.0it/s]", "iterations_per_s=22iterations/s@120"},
        {"{'loss': 1.9, 'epoch': 0.5}", "loss=1.9@e0.5 epoch=0.5@e0.5"},
        {" 15%|█▌        | 15/100 [00:05<00:40,  2.20it/s]", "iterations_per_s=2.2iterations/s@15"},
        {"Loading checkpoint shards: 100%|██████████| 3/3 [00:01<00:00,  2.00it/s]", ""},
        {"Steps:  16%|█▌        | 16/100 [00:05<00:40,  2.20it/s, lr=1e-5, step_loss=0.1]",
         "iterations_per_s=2.2iterations/s@16 lr=1e-05@16 step_loss=0.1@16"},
        {NULL},
        /* DeepSpeed, detectron2, mmengine, torchvision, timm */
        {"[2026-01-05 10:00:00,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=10/"
         "global_step=10, CurrSamplesPerSec=13.1",
         "micro_step=10@10 currsamplespersec=13.1@10"},
        {NULL},
        {"[05/01 10:00:00 d2.utils.events]:  eta: 1 day, 2:03:04  iter: 19  total_loss: 5.1  "
         "max_mem: 5000M",
         "total_loss=5.1@19 max_mem=5000M@19"},
        {NULL},
        {"05/01 10:00:00 - mmengine - INFO - Epoch(train)  [2][  50/3000]  lr: 1e-03  loss: 2.3",
         "lr=0.001@3050 loss=2.3@3050"},
        {"05/01 10:00:00 - mmengine - INFO - Epoch(val)  [2][100/100]    accuracy/top1: 76.5",
         "val_accuracy/top1=76.5@3050"},
        {NULL},
        {"Epoch: [0]  [  10/5005]  eta: 1:23:45  img/s: 512.3  loss: 6.9 (7.0)",
         "samples_per_s=512.3samples/s@10 loss=6.9@10"},
        {"Test:   [  0/100]  eta: 0:01:02  loss: 2.1 (2.1)  acc1: 55.0 (55.0)",
         "test_loss=2.1@10 test_acc1=55@10"},
        {NULL},
        /* Megatron, fairseq, Flax, Lightning's table, llm.c on a CPU */
        {" [2026-01-05 10:00:00] iteration       20/     100 | throughput per GPU (TFLOP/s/GPU): "
         "345.6 | lm loss: 9.0E+00 | loss scale: 1.0 | number of nan iterations:   0 |",
         "throughput_per_gpu=345.6@20 lm_loss=9@20 loss_scale=1@20"},
        {" validation loss at iteration 20 | lm loss value: 8.9E+00 | lm loss PPL: 7.3E+03 |",
         "val_lm_loss_value=8.9@20 val_lm_loss_ppl=7300@20"},
        {NULL},
        {"2026-01-05 10:00:00 | INFO | train_inner | epoch 002:    100 / 2000 loss=15.1, "
         "wps=1234.5",
         "loss=15.1@2100 wps=1234.5words/s@2100"},
        {"2026-01-05 10:00:00 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 4.2",
         "val_loss=4.2@2100"},
        {NULL},
        {"I0501 10:00:00.123456 140123456789 logging_writer.py:48] [100] loss=6.5, lr=0.1",
         "loss=6.5@100 lr=0.1@100"},
        {"│         test_loss         │    0.1623000055551529     │", "test_loss=0.1623000056@100"},
        {"step 1/74 | train loss 4.36 | (123.4 ms | 33189 tok/s)",
         "train_loss=4.36@1 time=123.4ms@1 tokens_per_s=33189tokens/s@1"},
        {"Loss: tensor(2.3, device='cuda:0', grad_fn=<NllLossBackward0>)", "loss=2.3@1"},
        {"loss=Array(2.25, dtype=float32), acc: array([0.5], dtype=float32)",
         "loss=2.25@1 acc=0.5@1"},
        {NULL},
        {"MSE: 0.5  R2: 0.9", "mse=0.5 r2=0.9"},
        {NULL},
        /* PyTorch's tutorial: steps go on from epoch to epoch; XGBoost, LightGBM */
        {"[1,  2000] loss: 2.2", "loss=2.2@2000"},
        {"[1,  4000] loss: 1.8", "loss=1.8@4000"},
        {"[2,  2000] loss: 1.2", "loss=1.2@6000"},
        {NULL},
        {"[10]\ttrain-logloss:0.45\teval-logloss:0.51",
         "train-logloss=0.45@10 eval-logloss=0.51@10"},
        {"[20]\tvalid_0's l2: 0.1\tvalid_0's auc: 0.9", "valid_0s_l2=0.1@20 valid_0s_auc=0.9@20"},
        {NULL},
        /* tables: fastai, YOLO, CSV */
        {"epoch     train_loss  valid_loss  time", ""},
        {"0         0.523112    0.312345    00:12     ",
         "train_loss=0.523112@e0 valid_loss=0.312345@e0 epoch=0@e0"},
        {"1         0.423112    nan         00:12     ",
         "train_loss=0.423112@e1 valid_loss=nan@e1 epoch=1@e1"},
        {"2 files 3 more", ""},
        {"2         0.4         0.3         00:12  5", ""},
        {NULL},
        {"      Epoch    GPU_mem   box_loss       Size", ""},
        {"      1/100      3.51G      1.234        640: 100%|███| 10/10 [00:05<00:00,  1.90it/s]",
         "gpu_mem=3.51G@e1 box_loss=1.234@e1 size=640@e1 epoch=1@e1"},
        {NULL},
        /* YOLO's evaluations, the head of which a bar follows; COCO, scikit-learn, Composer */
        {"                 Class     Images  Instances      Box(P          R      mAP50  "
         "mAP50-95): "
         "100%|███| 4/4 [00:01<00:00,  3.2it/s]",
         ""},
        {"                   all        128        929      0.64      0.537      0.605      0.446",
         "val_box_precision=0.64 val_box_recall=0.537 val_box_map50=0.605 val_box_map50-95=0.446"},
        {"                person        128        254      0.7        0.6        0.7        0.5",
         ""},
        {"      Epoch    GPU_mem   box_loss       Size", ""},
        {"      1/100      3.51G      1.234        640",
         "gpu_mem=3.51G@e1 box_loss=1.234@e1 size=640@e1 epoch=1@e1"},
        {"                 Class     Images  Instances          P          R      mAP50", ""},
        {"                   all        128        929      0.64          0          1",
         "val_precision=0.64@e1 val_recall=0@e1 val_map50=1@e1 epoch=1@e1"},
        {"      Epoch    GPU_mem   box_loss       Size", ""},
        {"      2/100      3.51G        1.1        640",
         "gpu_mem=3.51G@e2 box_loss=1.1@e2 size=640@e2 epoch=2@e2"},
        {NULL},
        {" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.374",
         "ap=0.374"},
        {" Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 0.4",
         "ap75=0.4"},
        {" Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000", ""},
        {" Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.3",
         "ar1=0.3"},
        {" Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.5",
         "ar_large=0.5"},
        {NULL},
        {"      Iter       Train Loss      OOB Improve   Remaining Time ", ""},
        {"         1           1.2000           0.1000            0.50s",
         "train_loss=1.2@1 oob_improve=0.1@1"},
        {"       100           0.9000          -0.0010            1.50m",
         "train_loss=0.9@100 oob_improve=-0.001@100"},
        {NULL},
        {"metrics/train/LanguageCrossEntropy: 3.4", "metrics/train/languagecrossentropy=3.4"},
        {"loss/train/total: 3.4", "loss/train/total=3.4"},
        {"Number of metrics: 3", ""},
        {NULL},
        {"step,loss,lr", ""},
        {"10,2.5,1e-3", "loss=2.5@10 lr=0.001@10"},
        {"the loss is 3", "loss=3@10"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given lines of more trainers, then they are read as well; each failed once. */
LAB_TEST(more_trainers_are_read) {
    static const char *const cases[][2] = {
        /* a value and a reference; counts are shares; decimal commas */
        {"step 5 loss 0.7/0.75 acc 12/14", "loss=0.7@5 acc=85.71428571%@5"},
        {"step 6 mem 10.5/80.0 GB files 3/9", "mem=10.5GB@6"},
        {NULL},
        {"step 7 loss=1,5, acc=0,532", "loss=1.5@7 acc=0.532@7"},
        {"step 8 loss=1,234 size=1,5,7", "loss=1234@8 size=1@8"},
        {"step 9 loss=1.5 gpus=0,1", "loss=1.5@9 gpus=0@9"},
        {NULL},
        /* memory without a unit, as YOLO prints it; modded-nanogpt */
        {"step 5 gpu_mem 2400M seen 2M", "gpu_mem=2400M@5 seen=2000000@5"},
        {"step:100/1395 val_loss:4.5 train_time:12345ms step_avg:123.45ms",
         "val_loss=4.5@100 train_time=12345ms@100 step_avg=123.45ms@100"},
        {NULL},
        {"     Epoch   gpu_mem       box    labels", ""},
        {"     0/299     2400M    0.1234        23",
         "gpu_mem=2400M@e0 box=0.1234@e0 labels=23@e0 epoch=0@e0"},
        {NULL},
        /* one spelling, one unit */
        {"step 5 Loss 1.2 acc 0.902", "loss=1.2@5 acc=0.902@5"},
        {"{\"Loss\": 1.1, \"b\": 1, \"B\": 2}", "loss=1.1@5 b=2@5"},
        {"step 6 acc 90.2%", "acc=0.902@6"},
        {"acc: 9/10", "acc=0.9@6"},
        {NULL},
        {"Accuracy 90.2%", "accuracy=90.2%"},
        {"accuracy: 0.902", "accuracy=90.2%"},
        {NULL},
        /* MaxText, Composer, OpenNMT, fairseq, wandb, mlx, a DCGAN, CatBoost, scikit-learn */
        {"completed step: 5, seconds: 1.2, loss: 8.7", "seconds=1.2@5 loss=8.7@5"},
        {"eval metrics after step: 50, loss=6.5", "eval_loss=6.5@50"},
        {"[Eval batch=10/10] Eval on eval data:", ""},
        {"\t Train loss/train/total: 10.9", "train_loss/train/total=10.9@50"},
        {NULL},
        {"train          Epoch   0:   12%|█▏  | 12/100 [00:10<01:10,  1.2ba/s, loss/train/total=2]",
         "iterations_per_s=1.2iterations/s@12 loss/train/total=2@12"},
        {NULL},
        {"[2026-01-05 10:00:00,123 INFO] Step 50/1000; acc: 12.3; bsz: 345/ 298/ 5; 123/112 tok/s;"
         "  12 sec;",
         "acc=12.3@50 tokens_per_s=123tokens/s@50"},
        {NULL},
        {"2026-01-05 10:00:00 | INFO | train | epoch 001 | loss 12.3 | num_updates 500 | lr 6e-05",
         "loss=12.3@500 lr=6e-05@500"},
        {NULL},
        {"{\"_step\": 5, \"loss\": 1.2, \"_timestamp\": 1712345678.1}", "loss=1.2@5"},
        {"Iter 10: Tokens per second 500, It/sec 1.2",
         "tokens_per_s=500tokens/s@10 iterations_per_s=1.2iterations/s@10"},
        {"step 12 500 tokens per second", "tokens_per_s=500tokens/s@12"},
        {"step 13 loss 2.6 tokens per second: 500", "loss=2.6@13 tokens_per_s=500tokens/s@13"},
        {NULL},
        {"Epoch 1 | iter 16 step 1 | loss train: 11.5, val: n/a | iter time: 551.02 ms (step)",
         "loss_train=11.5@16 iter_time=551.02ms@16"},
        {NULL},
        {"[1/25][100/1583]\tLoss_D: 0.5\tD(x): 0.8", "loss_d=0.5@100 d=0.8@100"},
        {"[2/25][100/1583]\tLoss_D: 0.4\tD(x): 0.8", "loss_d=0.4@1683 d=0.8@1683"},
        {NULL},
        {"200:\tlearn: 0.64\ttest: 0.65\tbest: 0.66 (199)\ttotal: 25.3s\tremaining: 3m 5s",
         "learn=0.64@200 test=0.65@200 best=0.66@200 total=25300ms@200"},
        {NULL},
        {"Iteration 1, loss = 0.69314718", "loss=0.69314718@1"},
        {"Validation score: 0.912000", "validation_score=0.912@1"},
        {"SPS: 1234", "sps=1234@1"},
        {NULL},
        /* a bar that no newline ended, and one that grows */
        {" 20%|██   | 10/50 [1:00<4:00, 3.6s/it]{'loss': 0.12, 'epoch': 2.0}",
         "loss=0.12@e2 epoch=2@e2"},
        {NULL},
        {"Epoch 0:  32%|███▏      | 600/1875 [00:05<00:10, 118.2it/s, loss=0.123]",
         "iterations_per_s=118.2iterations/s@600 loss=0.123@600"},
        {"Epoch 0:  64%|██████▍   | 1200/1875 [00:09<00:06, 118.3it/s, loss=0.1]",
         "iterations_per_s=118.3iterations/s@1200 loss=0.1@1200"},
        {NULL},
        {" 32/100 [===>..........] - ETA: 4s - loss: 0.3", "loss=0.3@32"},
        {" 64/100 [=======>......] - ETA: 2s - loss: 0.2", "loss=0.2@64"},
        {NULL},
        /* Stable-Baselines3: the step comes after the values */
        {"| rollout/            |          |", ""},
        {"|    ep_rew_mean      | 21.3     |", ""},
        {"| time/               |          |", ""},
        {"|    fps              | 1050     |", ""},
        {"|    iterations       | 1        |", ""},
        {"|    total_timesteps  | 2048     |", ""},
        {"----------------------------------", "rollout/ep_rew_mean=21.3@2048 time/fps=1050@2048"},
        {"| train/              |          |", ""},
        {"|    loss             | -1e-3    |", ""},
        {"loss 5", "train/loss=-0.001@2048 loss=5@2048"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given what programs print besides, then no value is read of it, though steps may be counted. */
LAB_TEST(prose_and_settings_are_no_metrics) {
    static const char *const lines[] = {
        "Step 3: install 4 packages and 2 tools",
        "Step 7 - download 3 files",
        "Step 2/5 : RUN pip install torch==2.1.0",
        "Perplexity of 12 was reported",
        "The accuracy of 3 models was compared",
        "loss of 4 packets detected",
        "Loss functions: 3 available",
        "We train for 3 epochs with batch size 32",
        "Training for 3 epochs, 500 steps per epoch",
        "Total steps: 1000, warmup steps: 100",
        "Early stopping after 5 epochs without improvement",
        "Resuming from step 500",
        "Epoch 3, global step 500: 'val_loss' was not in top 1",
        "KeyError: 'loss' at step 5",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        /* settings */
        "Namespace(lr=0.1, loss=2, epochs=3, step=5)",
        "args: Namespace(lr=0.1, loss_weight=2, max_steps=5)",
        "TrainConfig(epochs=3, loss=0.5, weight_decay=0.1)",
        "Config: {'lr': 0.1, 'epochs': 3, 'loss_weight': 0.5}",
        "python train.py --epochs 3 --loss-weight 0.5 --step 100 --lr 0.1",
        "epochs: 3",
        "loss_weight: 0.5",
        "accuracy_threshold: 0.9",
        "  Num Epochs = 3",
        "  Total optimization steps = 375",
        "AdamW (Parameter Group 0 lr: 0.001 weight_decay: 0.01)",
        /* downloads, pip */
        "model.safetensors: 100%|██████████| 548M/548M [00:05<00:00, 105MB/s]",
        "Fetching 4 files: 100%|██████████| 4/4 [00:00<00:00, 12.0it/s]",
        "Generating train split: 100%|██████| 36718/36718 [00:00<00:00, 500000.00 examples/s]",
        " 12%|█▏        | 20.5M/170M [00:02<00:10, 13.0MB/s]",
        "     ━━━━━━━━━━━━━━━━━━━━ 670.2/670.2 MB 1.9 MB/s eta 0:00:00",
        "Requirement already satisfied: tqdm>=4.27 in /usr/lib/python3/dist-packages (4.66.1)",
        /* warnings, tracebacks, tables of other programs */
        "lr_scheduler.py:136: UserWarning: Detected call of `lr_scheduler.step()`. PyTorch 1.1.0",
        "    loss = criterion(out, y) / 4",
        "    for epoch in range(3): step(5)",
        "ValueError: Expected input batch_size (32) to match target batch_size (16).",
        "host:1234:1300 [0] NCCL INFO comm 0x5581 rank 0 nranks 2 cudaDev 0 busId 1000",
        "| NVIDIA-SMI 535.104.05      Driver Version: 535.104.05   CUDA Version: 12.2     |",
        "| N/A   31C    P0    61W / 400W |      4MiB / 81920MiB |      0%      Default |",
        "top - 04:12:33 up 3 days,  2 users,  load average: 0.12, 0.34, 0.56",
        "1 | loss  | MSELoss    | 0     ",
        "`Trainer.fit` stopped: `max_epochs=3` reached.",
        "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  5.00it/s]",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        lab_str_clear(&seen);
        read_line(reader_of("{}"), lines[i]);
        if (seen.length > 0)
            fail_msg("%s: %s", lines[i], seen.text);
    }
}

/* Given lines that differ in their numbers alone, then those are read as if each were the first. */
LAB_TEST(a_form_that_is_known_reads_as_a_new_one) {
    static const char *const cases[][2] = {
        {"step  5/99 | loss  2.5 | 1,234 tok/s | 5%", "loss=2.5@5 tokens_per_s=1234tokens/s@5"},
        {"step 10/99 | loss -1e-3 | 99 tok/s | 7%", "loss=-0.001@10 tokens_per_s=99tokens/s@10"},
        {"step 11/99 | loss nan | 9 tok/s | 7%", "loss=nan@11 tokens_per_s=9tokens/s@11"},
        {"step 12/99 | loss none | 9 tok/s | 7%", "tokens_per_s=9tokens/s@12"},
        {"step 13/99 | loss 1.2.3 | 9 tok/s | 7%", "tokens_per_s=9tokens/s@13"},
        {"step 14/99 | loss 2 | 9 tok/s | 7%|", "loss=2@14 tokens_per_s=9tokens/s@14"},
        {"step 15/99 | loss2.5 | 9 tok/s | 7%", "tokens_per_s=9tokens/s@15"},
        {NULL},
        {"Accuracy: 5/10", "accuracy=50%"},
        {"Accuracy: 12/10", ""},
        {"loss/+5 acc 3", "acc=3"},
        {"loss/5 acc 3", "loss/5_acc=3"},
        {"Train: 1 [10/40 (25%)] loss 2", "loss=2@e0.25 epoch=0.25@e0.25"},
        {"Train: 1.5 [20/40 (50%)] loss 2", "train=1.5@e0.5 loss=2@e0.5 epoch=0.5@e0.5"},
        {"{'loss': '1.5', 'rank': 1}", "r1:loss=1.5"},
        {"{'loss': '1.5x', 'rank': 1}", ""},
        {"{'loss': '2.5', 'rank': 1.5}", "loss=2.5@e0.5 rank=1.5@e0.5"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given lines of several ranks in one output, then each value has its rank, and its rank's step. */
LAB_TEST(labels_of_ranks_are_taken_off) {
    static const char *const cases[][2] = {
        /* torchrun */
        {"[rank0]: step 5 loss 2.5", "r0:loss=2.5@5"},
        {"[rank1]: step 4 loss 2.6", "r1:loss=2.6@4"},
        {"[rank0]: val loss 2.4", "r0:val_loss=2.4@5"},
        {"[rank1]: val loss 2.3", "r1:val_loss=2.3@4"},
        {"val loss 2.2", "val_loss=2.2"}, /* of nobody: no rank's step is its step */
        {"[default0]:{'loss': 1.9, 'step': 7}", "r0:loss=1.9@7"},
        {"[default3]:Iter   100 | loss 3.4512 | ppl 31.5", "r3:loss=3.4512@100 r3:ppl=31.5@100"},
        {NULL},
        /* mpirun --tag-output, of Open MPI 4 and 5; MPICH -prepend-rank */
        {"[1,0]<stdout>:step 5 loss 2.5", "r0:loss=2.5@5"},
        {"[1,12]<stderr>: step 6 loss 2.5", "r12:loss=2.5@6"},
        {"[prterun-node1-4711@1,3]<stdout>: step 6 loss 2.5", "r3:loss=2.5@6"},
        {"[0] step 7 loss 2.5", "r0:loss=2.5@7"},
        {"[0]: step 8 loss 2.5", "r0:loss=2.5@8"},
        {"[1]:step 8 loss 2.5", "r1:loss=2.5@8"},
        {NULL},
        /* srun --label, and what only looks like it */
        {"0: iter 100: loss 3.4, time 45.00ms", "r0:loss=3.4@100 r0:time=45ms@100"},
        {" 3: iter 90: loss 3.5", "r3:loss=3.5@90"},
        {"2: {\"step\": 3, \"loss\": 0.5}", "r2:loss=0.5@3"},
        {"0: 2026-01-05 10:00:00,123 INFO step 4 loss 2.5", "r0:loss=2.5@4"},
        {"1: [2026-01-05 10:00:00] step 4 loss 2.25", "r1:loss=2.25@4"},
        {NULL},
        {"100: loss 3.4", "loss=3.4"},
        {"12:30:05 step 9 loss 3", "loss=3@9"},
        {"[12/40] loss: 3", "loss=3@12"},
        {NULL},
        /* accelerate, Lightning, DeepSpeed, programs */
        {"[RANK 2] step 5 loss 2.5", "r2:loss=2.5@5"},
        {"[rank: 1] step 5 loss 2.5", "r1:loss=2.5@5"},
        {"rank 1 | step 6 | loss 2.25", "r1:loss=2.25@6"},
        {"Rank 0: step 6 loss 2", "r0:loss=2@6"},
        {"(rank 3) step 6 loss 2", "r3:loss=2@6"},
        {"[2026-01-05 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, "
         "loss=2.5",
         "r0:skipped=0@10 r0:loss=2.5@10"},
        {"2026-01-05 10:00:00,123 - INFO - [rank1] step=10 loss=2.5", "r1:loss=2.5@10"},
        {"{\"rank\": 1, \"step\": 8, \"loss\": 2}", "r1:loss=2@8"},
        {"worker-1: [rank9]: step 3 loss 2", "r9:loss=2@3"},
        {"worker 1: step 5 loss 1.2", "r1:loss=1.2@5"},
        {"GPU 2 | step 5 loss 1.2", "r2:loss=1.2@5"},
        /* syslog, Ray: no rank */
        {"Nov 18 04:12:33 host prog[123]: [rank4]: step 5 loss 2", "r4:loss=2@5"},
        {NULL},
        {"Nov 18 04:12:33 host prog[123]: step 5 loss 1.2", "loss=1.2@5"},
        {"Nov 18 04:12:33 train loss: 1.2", "train_loss=1.2@5"},
        {"2026-11-18T04:12:33.123456+00:00 host prog[123]: {\"step\": 6, \"loss\": 2}", "loss=2@6"},
        {"2026-11-18T04:12:33Z step 7 loss 1.2", "loss=1.2@7"},
        {"(RayTrainWorker pid=12, ip=10.0.0.3) {'loss': 1.9, 'step': 8}", "loss=1.9@8"},
        {"(RayTrainWorker pid=12) step 9 loss 1.2", "loss=1.2@9"},
        {NULL},
        {"worker-1: {'loss': 1.5, 'step': 3}", "loss=1.5@3"},
        {"config1: batch size 3", ""},
        {"Rank-1 accuracy: 0.85", "rank-1_accuracy=0.85@3"},
        {"rank 99999999: step 3 loss 2", "loss=2@3"},
    };
    assert_reads(cases, sizeof cases / sizeof *cases);
}

/* Given ranks that write a line and its end apart, then each of their lines is one; what only looks
 * so stays whole. */
LAB_TEST(lines_of_ranks_that_ran_together_are_split) {
    static const struct {
        const char *line, *found;
        int split;
    } cases[] = {
        {"[rank0] step 10 loss 3.1[rank1] step 11 loss 3.2", "r0:loss=3.1@10 r1:loss=3.2@11", 1},
        {"[1,0]<stdout>:loss nan[1,1]<stdout>:loss 2", "r0:loss=nan r1:loss=2", 1},
        {"step 10: loss 3.41step 20: loss 3.4", "loss=3.41@10 loss=3.4@20", 1},
        {"iter 1: mfu 38%iter 2: loss 3e-05Iter 3", "mfu=38%@1 loss=3e-05@2", 2},
        {"Loss 6.9 (7.0)Epoch: [0][ 20/50] Loss 5", "loss=6.9 loss=5@20", 1},
        {"Loss: 0.3Train Epoch: 1, loss: 0.2", "loss=0.3 loss=0.2@e1 epoch=1@e1", 1},
        {"Rank 0: loss 3.1Rank 1: loss 3.2", "r0:loss=3.1 r1:loss=3.2", 1},
        {"{'loss': 1.9}{'loss': 1.8}", "loss=1.9 loss=1.8", 1},
        {"step 12 | loss 3.1 | 900 tok/sstep 13 | loss 3",
         "loss=3.1@12 tokens_per_s=900tokens/s@12 loss=3@13", 1},
        {"iter 1: loss 3, time 45.00msiter 2: loss 2", "loss=3@1 time=45ms@1 loss=2@2", 1},
        {"0: step 10 loss 3.11: step 20 loss 3", "r0:loss=3.1@10 r1:loss=3@20", 1},
        {" 0: step 10 loss 3.112: step 20 loss 3", "r0:loss=3.1@10 r12:loss=3@20", 1},
        {" 0: step 10 mfu 38% 1: step 20 loss 3", "r0:mfu=38%@10 r1:loss=3@20", 1},
        {"0: epoch 12: step 5 loss 3", "r0:loss=3@5", 0},
        {"loss 3.11: step 20", "loss=3.11@20", 0},
        {"loss[rank0]: 3.1 loss: 3.2", "loss=3.2", 0},
        {"[INFO][rank0] step 5, x2step 5, 100steps 5, 3 step 5", "r0:x2step=5@5", 0},
        {"5/5 [===] - 4s 2ms/step - v1.2epoch 3", "", 0},
        {"loss 2}{b [2026-01-05 10:00:00][rank1] loss 3", "loss=2 loss=3", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_reading reading = {0};
        lab_str_clear(&seen);
        command_reader_line(reader_of("{}"), &reading, cases[i].line, strlen(cases[i].line), note,
                            NULL);
        if (strcmp(seen.text, cases[i].found) != 0 || reading.split != cases[i].split)
            fail_msg("%s: %s, %d split", cases[i].line, seen.text, (int)reading.split);
        command_reading_release(&reading);
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
