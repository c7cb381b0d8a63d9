/* Which way a metric is better. */
#include "model/metric_name.h"

#include "base/value.h"

#include "test.h"

LAB_TEST(words_of_a_name_or_the_study_give_the_direction) {
    static const struct {
        const char *name;
        enum lab_direction better;
    } cases[] = {
        {"top1_error", LAB_DIRECTION_LOWER},
        {"top5_err", LAB_DIRECTION_LOWER},
        {"accuracy_loss", LAB_DIRECTION_LOWER},
        {"reward_std", LAB_DIRECTION_NONE},
        {"loss_scale", LAB_DIRECTION_NONE},
        {"val/acc_gap", LAB_DIRECTION_NONE},
        {"acc@1", LAB_DIRECTION_HIGHER},
        {"tokens_per_s", LAB_DIRECTION_HIGHER},
        {"val_loss", LAB_DIRECTION_LOWER},
        {"Final accuracy", LAB_DIRECTION_HIGHER},
        {"eval/acc", LAB_DIRECTION_HIGHER},
        {"lossless", LAB_DIRECTION_NONE},
        {"tokens", LAB_DIRECTION_NONE},
        {"", LAB_DIRECTION_NONE},
        {"score_x", LAB_DIRECTION_LOWER},
        {"score_y", LAB_DIRECTION_HIGHER},
        {"train.loss", LAB_DIRECTION_HIGHER},
        {"acc", LAB_DIRECTION_NONE},
        {"val_map50-95", LAB_DIRECTION_HIGHER},
        {"ar_small", LAB_DIRECTION_HIGHER},
        {"eval_rougeLsum", LAB_DIRECTION_HIGHER},
        {"exact_match", LAB_DIRECTION_HIGHER},
        {"val_dice", LAB_DIRECTION_HIGHER},
        {"psnr", LAB_DIRECTION_HIGHER},
        {"rollout/ep_rew_mean", LAB_DIRECTION_HIGHER},
        {"val_ssim", LAB_DIRECTION_HIGHER},
        {"mIoU", LAB_DIRECTION_HIGHER},
        {"R2", LAB_DIRECTION_HIGHER},
        {"hellaswag", LAB_DIRECTION_HIGHER},
        {"AUROC", LAB_DIRECTION_HIGHER},
        {"ndcg@10", LAB_DIRECTION_HIGHER},
        {"episode_return", LAB_DIRECTION_HIGHER},
        {"cost", LAB_DIRECTION_LOWER},
        {"test/cer", LAB_DIRECTION_LOWER},
        {"fid50k", LAB_DIRECTION_NONE},
        {"FID", LAB_DIRECTION_LOWER},
        {"metrics/train/LanguageCrossEntropy", LAB_DIRECTION_LOWER},
        {"test_prec@1", LAB_DIRECTION_HIGHER},
        {"val_kappa", LAB_DIRECTION_HIGHER},
        {"success_rate", LAB_DIRECTION_HIGHER},
        {"val_log_likelihood", LAB_DIRECTION_HIGHER},
        {"neg_log_likelihood", LAB_DIRECTION_LOWER},
        {"rmsle", LAB_DIRECTION_LOWER},
        {"val_lpips", LAB_DIRECTION_LOWER},
        {"sacrebleu", LAB_DIRECTION_HIGHER},
        {"auprc", LAB_DIRECTION_HIGHER},
        {"val/jaccard", LAB_DIRECTION_HIGHER},
        {"hit_rate", LAB_DIRECTION_HIGHER},
        {"elbo", LAB_DIRECTION_HIGHER},
        {"val_pesq", LAB_DIRECTION_HIGHER},
        {"stoi", LAB_DIRECTION_HIGHER},
        {"si_sdr", LAB_DIRECTION_HIGHER},
        {"em", LAB_DIRECTION_HIGHER},
        {"pearson", LAB_DIRECTION_HIGHER},
        {"eval_spearmanr", LAB_DIRECTION_HIGHER},
        {"lddt", LAB_DIRECTION_HIGHER},
        {"mmlu", LAB_DIRECTION_HIGHER},
        {"gsm8k", LAB_DIRECTION_HIGHER},
        {"tflops", LAB_DIRECTION_HIGHER},
        {"episode_rewards", LAB_DIRECTION_HIGHER},
        {"val_kid", LAB_DIRECTION_LOWER},
        {"eer", LAB_DIRECTION_LOWER},
        {"ce", LAB_DIRECTION_LOWER},
        {"epe", LAB_DIRECTION_LOWER},
        {"rmsd", LAB_DIRECTION_LOWER},
        {"nmse", LAB_DIRECTION_LOWER},
        {"mpjpe", LAB_DIRECTION_LOWER},
        {"pa-mpjpe", LAB_DIRECTION_LOWER},
        {"brier_score", LAB_DIRECTION_LOWER},
        {"ece", LAB_DIRECTION_LOWER},
        {"elbo_loss", LAB_DIRECTION_LOWER},
        {"neg_elbo", LAB_DIRECTION_NONE},
        {"rewards/margins", LAB_DIRECTION_NONE},
        {"chosen_reward", LAB_DIRECTION_NONE},
        {"reject_reward", LAB_DIRECTION_NONE},
        {"return_code", LAB_DIRECTION_NONE},
        {"embedding", LAB_DIRECTION_NONE},
        {"price", LAB_DIRECTION_NONE},
    };
    struct lab_value *settings;
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(
        lab_value_parse("{direction: {score_x: lower, train.loss: higher, acc: none, tokens: 3}}",
                        &test_arena, &settings, &err),
        0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (lab_metric_direction(cases[i].name, settings) != cases[i].better)
            fail_msg("%s: not %d", cases[i].name, cases[i].better);
    assert_string_equal(lab_metric_rate_unit("train/tokens_per_second", ""), "tokens/s");
    assert_string_equal(lab_metric_rate_unit("wps", "words/s"), "words/s");
    assert_null(lab_metric_rate_unit("val_wps", "words/s"));
    assert_null(lab_metric_rate_unit("tps", ""));
    assert_true(lab_metric_name_is_evaluation("eval_samples_per_second"));
    assert_false(lab_metric_name_is_evaluation("train_samples_per_second"));
    assert_true(lab_metric_name_place("eval_steps_per_second", "") >
                lab_metric_name_place("train_steps_per_second", ""));
    assert_int_equal(lab_metric_direction("score_x", NULL), LAB_DIRECTION_HIGHER);
    assert_int_equal(lab_direction_find("lower"), LAB_DIRECTION_LOWER);
    assert_int_equal(lab_direction_find("Lower"), -1);
}

/* A reward or return is what reinforcement learning is for: before any loss, an evaluation's first,
 * the mean before extremes. Parts of a reward and their spread are none. */
LAB_TEST(a_reward_comes_before_losses) {
    static const char *const order[] = {"eval/mean_reward", "rollout/ep_rew_mean", "val_loss",
                                        "train/loss"};
    static const struct {
        const char *name;
        int goal;
    } cases[] = {{"episode_return", 0},     {"Mean reward", 0},       {"rollout/ep_rew_mean", 0},
                 {"episode_reward_max", 1}, {"reward_std", 2},        {"rewards/format_reward", 2},
                 {"chosen_reward", 2},      {"reward_model_loss", 2}, {"return_code", 2},
                 {"rewards/margins", 2},    {"reinforced_loss", 2}};
    for (size_t i = 1; i < sizeof order / sizeof *order; i++)
        assert_true(lab_metric_name_place(order[i - 1], "") < lab_metric_name_place(order[i], ""));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (lab_metric_name_goal(cases[i].name) != cases[i].goal)
            fail_msg("%s: not %d", cases[i].name, cases[i].goal);
}
