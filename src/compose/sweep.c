/*
 * sweep.c: the jobs that a command line stands for. Job numbers are read as digits: each word is a
 * digit with as many values as the word has, the last word the lowest.
 */
#include "compose/config_internal.h"

#include <assert.h>
#include <fnmatch.h>
#include <string.h>

/* Values outlive the jobs that take them, so that their origin is the sweeping word, not a
 * job's. */
static void mark_values(const struct lab_override *word) {
    if (word->sweep == LAB_SWEEP_VALUES)
        lab_config_mark(word->values, word->text);
    for (int i = 0; word->sweep == LAB_SWEEP_ZIP && i < word->column_count; i++)
        lab_config_mark(word->columns[i].values, word->text);
}

/* A word that sweeps, in a study that doesn't. */
static int refuse(const struct lab_override *word, struct lab_err *err) {
    const char *value = word->text + strcspn(word->text, "=");
    value += *value == '=';
    /* a comma may have been meant for something else; a call can only be a sweep */
    bool simple = word->sweep == LAB_SWEEP_VALUES && strchr(value, ',') &&
                  strcspn(value, "(") > strcspn(value, ",");
    int shown = (int)strcspn(word->text, "=");
    if (simple && strlen(value) <= 60)
        lab_err_set(err, LAB_ERR_USER,
                    "a comma makes a sweep: run all of them with -m, make it one text with quotes "
                    "(\"%.*s='%s'\"), or a list with brackets (%.*s=[%s])",
                    shown, word->text, value, shown, word->text, value);
    else
        lab_err_set(err, LAB_ERR_USER,
                    "this is a sweep: run all of it with -m, make it one text with quotes ('…'), "
                    "or a list with brackets ([…])");
    if (word->value_column > 0)
        lab_err_context(err, "column %d", word->value_column);
    return lab_config_blame_word(word, err);
}

static bool matches(const char *const *patterns, const char *option) {
    for (; patterns && *patterns; patterns++)
        if (fnmatch(*patterns, option, 0) == 0)
            return true;
    return false;
}

/* glob(…) as the options that it stands for. */
static int write_out(const struct lab_config_path *path, struct lab_override *word,
                     struct lab_arena *arena, struct lab_err *err) {
    if (!lab_config_has_group(path, word->key)) {
        lab_err_set(err, LAB_ERR_USER,
                    "glob() chooses among a config group's options, and '%s' is not a group",
                    word->key);
        return lab_config_blame_word(word, err);
    }
    const char *const *options = lab_config_options(path, word->key, arena);
    struct lab_value *values = lab_value_list(arena);
    for (int i = 0; options[i]; i++)
        if (matches((const char *const *)word->glob.include, options[i]) &&
            !matches((const char *const *)word->glob.exclude, options[i]))
            lab_value_append(arena, values, lab_value_string(arena, options[i]));
    if (values->count == 0) {
        LAB_AUTO(str, names);
        lab_str_add_list(&names, options, "and");
        lab_err_set(err, LAB_ERR_USER, "no option of '%s' matches; there are %s", word->key,
                    names.text);
        return lab_config_blame_word(word, err);
    }
    word->sweep = LAB_SWEEP_VALUES;
    word->values = values;
    return 0;
}

int lab_sweep_init(const struct lab_config_path *path, struct lab_override *words, int count,
                   bool multirun, struct lab_arena *arena, struct lab_sweep *ret_sweep,
                   struct lab_err *err) {
    if (lab_config_check_path(path, err) < 0)
        return -1;
    int64_t jobs = 1;
    for (int i = 0; i < count; i++) {
        if (words[i].sweep != LAB_SWEEP_NONE && !multirun)
            return refuse(&words[i], err);
        if (words[i].sweep == LAB_SWEEP_GLOB && write_out(path, &words[i], arena, err) < 0)
            return -1;
        mark_values(&words[i]);
        jobs *= lab_override_count(&words[i]);
        if (jobs > LAB_SWEEP_MAX) {
            lab_err_set(err, LAB_ERR_USER,
                        "with this word the sweep has %lld jobs; at most %d are possible",
                        (long long)jobs, LAB_SWEEP_MAX);
            return lab_config_blame_word(&words[i], err);
        }
    }
    *ret_sweep = (struct lab_sweep){.words = words, .word_count = count, .job_count = jobs};
    return 0;
}

/* One value of a sweeping word, as a word of its own. */
static struct lab_override pick(const struct lab_override *word, const char *key,
                                const char *package, struct lab_value *value,
                                struct lab_arena *arena) {
    static const char *const signs[] = {
        [LAB_OVERRIDE_CHANGE] = "",
        [LAB_OVERRIDE_ADD] = "+",
        [LAB_OVERRIDE_FORCE] = "++",
        [LAB_OVERRIDE_DELETE] = "~",
    };
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s%s%s%s=", signs[word->kind], key, package ? "@" : "",
                   package ? package : "");
    int value_column = lab_str_columns(text.text) + 1;
    lab_value_write(value, &text);
    struct lab_override single = {
        .text = lab_arena_strndup(arena, text.text, text.length),
        .kind = word->kind,
        .key = key,
        .package = package,
        .sweep = LAB_SWEEP_NONE,
        .value = value,
        .value_column = value_column,
    };
    return single;
}

static int count_overrides(const struct lab_sweep *sweep) {
    int count = 0;
    for (int i = 0; i < sweep->word_count; i++)
        count += sweep->words[i].sweep == LAB_SWEEP_ZIP ? sweep->words[i].column_count : 1;
    return count;
}

int lab_sweep_job(const struct lab_sweep *sweep, int64_t index, struct lab_arena *arena,
                  struct lab_override **ret_overrides, int *ret_count, struct lab_err *err) {
    if (index < 0 || index >= sweep->job_count)
        return lab_err_set(err, LAB_ERR_USER, "no job %lld: the sweep has 0 to %lld",
                           (long long)index, (long long)sweep->job_count - 1);
    int count = count_overrides(sweep);
    struct lab_override *overrides = lab_arena_alloc(arena, (size_t)count, sizeof *overrides);
    int at = count;
    for (int i = sweep->word_count - 1; i >= 0; i--) {
        const struct lab_override *word = &sweep->words[i];
        int64_t digit = index % lab_override_count(word);
        index /= lab_override_count(word);
        if (word->sweep == LAB_SWEEP_VALUES)
            overrides[--at] =
                pick(word, word->key, word->package, word->values->items[digit], arena);
        else if (word->sweep == LAB_SWEEP_NONE)
            overrides[--at] = *word;
        else
            for (int j = word->column_count - 1; j >= 0; j--)
                overrides[--at] = pick(word, word->columns[j].key, word->columns[j].package,
                                       word->columns[j].values->items[digit], arena);
    }
    assert(at == 0);
    *ret_overrides = overrides;
    *ret_count = count;
    return 0;
}
