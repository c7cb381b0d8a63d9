/* run_study.c: the words of `gpulab run`: config path, study, overrides. */
#include "run/run_study.h"

#include "base/file/file.h"

#include <string.h>

#define GROUP "experiment"

/* --- where configs come from --- */

struct lab_config_path lab_run_path(const char *config_dir, struct lab_arena *arena) {
    const char **folders = lab_arena_alloc(arena, 3, sizeof *folders);
    int count = 0;
    if (config_dir)
        folders[count++] = config_dir;
    const char *user = lab_file_config_folder(arena);
    if (user)
        folders[count++] = user;
    return (struct lab_config_path){.folders = folders};
}

/* --- presets --- */

const char *const *lab_run_presets(const struct lab_config_path *path, struct lab_arena *arena) {
    const char *const *groups = lab_config_groups(path, GROUP, arena), **presets = NULL;
    int count = 0;
    for (int g = 0; groups[g]; g++) {
        const char *group = lab_arena_printf(arena, GROUP "/%s", groups[g]);
        const char *const *options = lab_config_options(path, group, arena);
        for (int i = 0; options[i]; i++)
            LAB_ADD(presets, count, arena) =
                lab_arena_printf(arena, "%s=%s", groups[g], options[i]);
    }
    LAB_ADD(presets, count, arena) = NULL;
    return presets;
}

/* "ddp=4gpus" by that name, "ddp/4gpus", "4gpus", each also below "experiment/"; `ret_count`: how
 * many have that name. */
static const char *find_preset(const struct lab_config_path *path, const char *name,
                               struct lab_arena *arena, int *ret_count) {
    const char *const *presets = lab_run_presets(path, arena), *found = NULL;
    *ret_count = 0;
    if (lab_str_starts(name, GROUP "/"))
        name += strlen(GROUP "/");
    for (int i = 0; presets[i]; i++) {
        const char *equals = strchr(presets[i], '=');
        size_t length = (size_t)(equals - presets[i]);
        bool is_same = lab_str_equal(name, equals + 1) ||
                       (strncmp(name, presets[i], length) == 0 && strchr("=/", name[length]) &&
                        name[length] && lab_str_equal(name + length + 1, equals + 1));
        if (is_same && (*ret_count)++ == 0)
            found = presets[i];
    }
    return found;
}

/* --- words --- */

static int refuse_study(const struct lab_config_path *path, const char *name,
                        struct lab_arena *arena, struct lab_err *err) {
    const char *const *all = lab_config_options(path, GROUP, arena);
    const char *nearest = lab_str_nearest(name, all);
    LAB_AUTO(str, list);
    int count;
    const char *preset = find_preset(path, name, arena, &count);
    if (preset)
        return lab_err_set(err, LAB_ERR_USER, "'%.80s' is a preset: gpulab run STUDY experiment/%s",
                           name, preset);
    lab_str_add_list(&list, all, "and");
    lab_err_set(err, LAB_ERR_USER, "there is no study '%.80s'%s%s%s; there are %s%s", name,
                nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "",
                list.text, strchr(name, '.') ? "; a key is changed by key=value" : "");
    return -1;
}

bool lab_run_is_study(const struct lab_config_path *path, const char *name,
                      struct lab_arena *arena) {
    return lab_str_find(name, lab_config_options(path, GROUP, arena)) >= 0;
}

/* The override that a word stands for; `*study` is the study named so far. */
static int expand_word(const struct lab_config_path *path, const char *word, const char **study,
                       struct lab_arena *arena, const char **ret_text, struct lab_err *err) {
    *ret_text = word;
    if (strchr(word, '=') || word[0] == '~')
        return 0;
    if (*study)
        return lab_err_set(err, LAB_ERR_USER,
                           "'%.80s' after '%.80s': one study at a time; its keys are changed by "
                           "key=value",
                           word, *study);
    /* a sweep of studies is for the grammar to read */
    if (!strpbrk(word, ",()") && !lab_run_is_study(path, word, arena))
        return refuse_study(path, word, arena, err);
    *study = word;
    *ret_text = lab_arena_printf(arena, "experiment=%s", word);
    return 0;
}

/* As a quoted text, since names joined by commas would be a sweep. */
static const char *device_word(const char *device, struct lab_arena *arena) {
    LAB_AUTO(str, word);
    lab_str_add(&word, "device='");
    for (const char *c = device; *c; c++)
        lab_str_printf(&word, *c == '\'' ? "\\%c" : "%c", *c);
    lab_str_add(&word, "'");
    return lab_arena_strdup(arena, word.text);
}

/* Several trackers are a list, with -m too: nobody runs a study once for each. */
static void join_trackers(struct lab_override *word) {
    if (word->sweep != LAB_SWEEP_VALUES || !lab_str_equal(word->key, "tracker"))
        return;
    word->sweep = LAB_SWEEP_NONE;
    word->value = word->values;
    word->values = NULL;
}

int lab_run_words(const struct lab_config_path *path, const char *device, const char *const *words,
                  int count, struct lab_arena *arena, struct lab_override **ret_overrides,
                  int *ret_count, struct lab_err *err) {
    struct lab_override *overrides = lab_arena_alloc(arena, (size_t)count + 1, sizeof *overrides);
    const char *study = NULL, *text;
    int at = 0;
    if (device && lab_override_parse(device_word(device, arena), arena, &overrides[at++], err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (expand_word(path, words[i], &study, arena, &text, err) < 0 ||
            lab_override_parse(text, arena, &overrides[at++], err) < 0)
            return -1;
    for (int i = 0; i < at; i++)
        join_trackers(&overrides[i]);
    *ret_overrides = overrides;
    *ret_count = at;
    return 0;
}

/* --- studies --- */

static int refuse_preset(const struct lab_config_path *path, const char *name, int count,
                         struct lab_arena *arena, struct lab_err *err) {
    LAB_AUTO(str, list);
    lab_str_add_list(&list, lab_run_presets(path, arena), "and");
    return lab_err_set(err, LAB_ERR_USER, "%s preset '%.80s'; there are %s",
                       count ? "more than one" : "there is no", name, list.text);
}

int lab_run_read_study(const struct lab_config_path *path, const char *name,
                       struct lab_arena *arena, const char **ret_text, size_t *ret_length,
                       const char **ret_origin, struct lab_err *err) {
    int count = 0;
    bool study = lab_run_is_study(path, name, arena);
    const char *preset = study ? NULL : find_preset(path, name, arena, &count);
    if (!study && (count > 1 || (count == 0 && strpbrk(name, "=/"))))
        return refuse_preset(path, name, count, arena, err);
    if (!study && count == 0)
        return refuse_study(path, name, arena, err);
    char *file = lab_arena_printf(arena, GROUP "/%s.yaml", study ? name : preset);
    if (preset)
        *strchr(file, '=') = '/';
    return lab_config_read(path, file, arena, ret_text, ret_length, ret_origin, err);
}

const char *lab_run_comment(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, comment);
    while (*text == '#') {
        text += 1 + (text[1] == ' ');
        size_t length = strcspn(text, "\n");
        if (!lab_str_starts(text, "@package")) {
            lab_str_add_bytes(&comment, text, length);
            lab_str_add(&comment, "\n");
        }
        text += length + (text[length] == '\n');
    }
    return lab_arena_strdup(arena, comment.text);
}

const char *lab_run_summary(const char *text, struct lab_arena *arena) {
    char *summary = lab_arena_strdup(arena, lab_run_comment(text, arena));
    for (char *c = summary; *c; c++) {
        if (*c == '\n')
            *c = ' ';
        if (strchr(".?!", *c) && (c[1] == ' ' || c[1] == '\n' || !c[1])) {
            c[*c == '.' ? 0 : 1] = '\0';
            break;
        }
    }
    size_t length = strlen(summary);
    while (length && summary[length - 1] == ' ')
        summary[--length] = '\0';
    return summary;
}

/* --- history --- */

struct lab_history *lab_run_history(const struct lab_machine *machine) {
    enum { STUDIES = 50 }; /* more of them don't make an estimate better, only slower */
    /* what simulated runs took is simulated, too */
    return lab_history_open(lab_machine_identity(machine), machine->simulated ? 0 : STUDIES, NULL);
}

/* --- as it can be pasted --- */

const char *lab_run_command(const char *const *words, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "gpulab run");
    for (int i = 0; words && words[i]; i++) {
        lab_str_add(&text, " ");
        lab_str_add_shell(&text, words[i]);
    }
    return lab_arena_strdup(arena, text.text);
}
