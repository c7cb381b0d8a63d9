/* tuning.c: configurations and results of a tuning as values. */
#include "model/tuning.h"

const char *lab_trial_state_name(enum lab_trial_state state) {
    static const char *const names[] = {
        [LAB_TRIAL_UNTRIED] = "untried",   [LAB_TRIAL_VERIFIED] = "verified",
        [LAB_TRIAL_MEASURED] = "measured", [LAB_TRIAL_FAILED] = "failed",
        [LAB_TRIAL_WRONG] = "wrong",
    };
    return names[state];
}

int lab_tuning_result_count(const struct lab_tuning_result *result, enum lab_trial_state state) {
    int count = 0;
    for (int i = 0; i < result->trial_count; i++)
        count += result->trials[i].state == state;
    return count;
}
