/* study_command.c: the command that goes on with a study, or runs it again with other keys, and
 * what it does. */
#include "report/study/study_internal.h"

#include "base/json.h"
#include "base/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the last part of a word's key begins: "duration" of " experiment.duration=60s". */
static const char *key_of(const char *word, size_t *ret_length) {
    const char *key = word + 1 + (word[1] == '\'');
    size_t length = strcspn(key, "= ");
    const char *dot = memrchr(key, '.', length), *last = dot ? dot + 1 : key;
    *ret_length = (size_t)(key + length - last);
    return last;
}

/* The space behind a shell word, or the end: spaces within quotes belong to it. */
static const char *word_end(const char *at) {
    bool quoted = false;
    for (; *at && (quoted || *at != ' '); at++) {
        if (*at == '\\' && !quoted && at[1])
            at++;
        else if (*at == '\'')
            quoted = !quoted;
    }
    return at;
}

/* Whether one of the words sets that key. */
static bool sets_key(const char *words, const char *key, size_t length) {
    for (const char *at = words; at && *at; at = word_end(at + 1)) {
        size_t own;
        const char *found = key_of(at, &own);
        if (own == length && strncmp(found, key, length) == 0)
            return true;
    }
    return false;
}

void study_add_repeat_command(const struct lab_study_info *study, int repeat, const char *keys,
                              struct lab_str *out) {
    LAB_AUTO(str, changed);
    if (repeat > 0)
        lab_str_printf(&changed, " experiment.repeat=%d", repeat);
    if (keys)
        lab_str_printf(&changed, " %s", keys);
    /* results of another device stand apart */
    bool elsewhere = keys && sets_key(changed.text, "device", strlen("device"));
    for (const char *at = study->command, *end; *at; at = end) {
        size_t length;
        const char *key = key_of(at, &length);
        end = word_end(at + 1);
        bool runs = repeat > 0 && length == 4 && strncmp(key, "runs", 4) == 0;
        bool apart = elsewhere && length == 10 && strncmp(key, "output_dir", 10) == 0;
        if (key[length] != '=' || !(runs || apart || sets_key(changed.text, key, length)))
            lab_str_add_bytes(out, at, (size_t)(end - at));
    }
    lab_str_add(out, changed.text);
}

/* "experiment.duration=30s" of three times "experiment.duration=10s": what that key of the command
 * comes to; NULL = it hasn't the key, or not as a number. */
static const char *scaled_key(const char *command, const char *name, int factor,
                              struct lab_arena *arena) {
    for (const char *at = command, *end; *at; at = end) {
        size_t length;
        const char *key = key_of(at, &length);
        end = word_end(at + 1);
        if (length != strlen(name) || strncmp(key, name, length) != 0 || key[length] != '=')
            continue;
        char *unit;
        double value = strtod(key + length + 1, &unit);
        if (unit > key + length + 1 && unit <= end && value > 0)
            return lab_arena_printf(arena, "%.*s%.10g%.*s", (int)(key + length + 1 - at - 1),
                                    at + 1, factor * value, (int)(end - unit), unit);
    }
    return NULL;
}

const char *study_longer_key(const struct lab_study_info *study, int factor,
                             struct lab_arena *arena) {
    static const char *const names[] = {"duration", "num_steps", "num_samples"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *key = scaled_key(study->command, names[i], factor, arena);
        if (key)
            return key;
    }
    const char *test = study->run_count > 0 ? study->runs[0].test : NULL;
    struct lab_value *keys = NULL;
    if (!test || lab_json_parse(test, strlen(test), "test", arena, &keys, NULL) < 0)
        return NULL;
    int64_t samples = lab_value_get_int(keys, "num_samples", 0);
    return samples > 0 ? lab_arena_printf(arena, "experiment.test.num_samples=%lld",
                                          (long long)(factor * samples))
                       : NULL;
}

const char *study_resume_command(const struct lab_study_info *study, struct lab_arena *arena) {
    LAB_AUTO(str, line);
    if (!study->start_folder)
        return study->command;
    lab_str_add(&line, "cd ");
    lab_str_add_shell(&line, study->start_folder);
    lab_str_printf(&line, " && %s", study->command);
    return lab_arena_strdup(arena, line.text);
}

bool study_lacks_seed(const struct lab_study_info *study) {
    const char *options = study->run_count > 0 ? study->runs[0].options : NULL;
    return options && strstr(options, "\"command\"") && !strstr(options, "{repeat}");
}

void study_add_verdict_command(const struct study_digest *digest, const char *keys,
                               struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    int left = digest->state_counts[LAB_RUN_PLANNED] + digest->state_counts[LAB_RUN_RUNNING];
    bool known = study->command && *study->command;
    if (!digest->repeats && digest->row_count > 1 && !study->running && left == 0 && known)
        study_add_repeat_command(study, 5, keys, out);
}

void study_add_next(const struct study_digest *digest, struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    int failed = digest->state_counts[LAB_RUN_FAILED];
    int left = digest->state_counts[LAB_RUN_PLANNED] + digest->state_counts[LAB_RUN_RUNNING];
    if (study->running || left + failed == 0)
        return;
    if (left == 1)
        lab_str_add(out, "resumes in the same folder: 1 run left");
    else if (left)
        lab_str_printf(out, "resumes in the same folder: %d runs left", left);
    if (failed)
        lab_str_add(out, left ? " and tries " : "tries ");
    if (failed == 1)
        lab_str_add(out,
                    left ? "the failed one again" : "the failed run again, in the same folder");
    else if (failed)
        lab_str_printf(out,
                       left ? "the %d failed ones again"
                            : "the %d failed runs again, in the same "
                              "folder",
                       failed);
    if (left && !isnan(study->left_s)) {
        lab_str_add(out, ", in ");
        size_t from = out->length;
        lab_str_add(out, "about ");
        lab_str_add_duration(out, study->left_s, LAB_DURATION_ROUNDED);
        lab_text_keep(out, from);
    }
}
