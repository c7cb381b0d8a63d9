/* setting.c: keys of a matrix that vary, and names made of them. */
#include "model/setting.h"

#include "base/json.h"
#include "base/list.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

static const struct lab_value *matrix_of(const struct lab_value *options) {
    const struct lab_value *matrix = options ? lab_value_get(options, "matrix") : NULL;
    return matrix && matrix->type == LAB_VALUE_MAP ? matrix : NULL;
}

static const char *text_of(const struct lab_value *matrix, const char *key,
                           struct lab_arena *arena) {
    const struct lab_value *value = matrix ? lab_value_get(matrix, key) : NULL;
    LAB_AUTO(str, text);
    if (value && value->type == LAB_VALUE_STRING)
        lab_str_add(&text, value->string);
    else if (value)
        lab_json_write(value, 0, &text);
    lab_str_make_printable(text.text);
    return lab_arena_strdup(arena, text.text);
}

static bool is_word(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_STRING && isalpha((unsigned char)value->string[0]);
}

/* Runs of a point follow each other and share their tree: equal ones are compared once. */
static bool varies(const struct lab_value *const *options, int count, const char *key) {
    LAB_AUTO(arena, scratch);
    const char *first = text_of(matrix_of(options[0]), key, &scratch);
    for (int i = 1; i < count; i++)
        if (options[i] != options[i - 1] &&
            strcmp(text_of(matrix_of(options[i]), key, &scratch), first) != 0)
            return true;
    return false;
}

static void find_keys(const struct lab_value *const *options, int count, struct lab_arena *arena,
                      struct lab_settings *settings) {
    const char **seen = NULL;
    int seen_count = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_value *matrix = matrix_of(options[i]);
        for (int k = 0; matrix && k < matrix->count; k++) {
            if (lab_list_find_text(seen, seen_count, matrix->keys[k]) >= 0)
                continue;
            LAB_ADD(seen, seen_count, arena) = matrix->keys[k];
            if (varies(options, count, matrix->keys[k]))
                LAB_ADD(settings->keys, settings->key_count, arena) = matrix->keys[k];
        }
    }
}

struct lab_settings lab_settings_make(const struct lab_value *const *options, int count,
                                      struct lab_arena *arena) {
    struct lab_settings settings = {.run_count = count};
    find_keys(options, count, arena, &settings);
    size_t cells = (size_t)count * (size_t)settings.key_count + 1;
    settings.values = lab_arena_alloc(arena, cells, sizeof *settings.values);
    settings.bare = settings.key_count == 1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < settings.key_count; k++) {
            const struct lab_value *matrix = matrix_of(options[i]);
            settings.values[i * settings.key_count + k] = text_of(matrix, settings.keys[k], arena);
            settings.bare &= matrix && is_word(lab_value_get(matrix, settings.keys[k]));
        }
    return settings;
}

const char *lab_setting_whole(const struct lab_value *matrix, struct lab_arena *arena) {
    LAB_AUTO(str, name);
    for (int k = 0; matrix && matrix->type == LAB_VALUE_MAP && k < matrix->count; k++)
        lab_str_printf(&name, "%s%s=%s", k ? ", " : "", matrix->keys[k],
                       text_of(matrix, matrix->keys[k], arena));
    return lab_arena_strdup(arena, name.text ? name.text : "");
}

const char *lab_setting_value(const struct lab_settings *settings, int run, int key,
                              struct lab_arena *arena) {
    const char *value = settings->values[run * settings->key_count + key];
    return settings->bare ? value : lab_arena_printf(arena, "%s=%s", settings->keys[key], value);
}

const char *lab_setting_name(const struct lab_settings *settings, int run,
                             struct lab_arena *arena) {
    LAB_AUTO(str, name);
    for (int k = 0; k < settings->key_count; k++) {
        if (!*settings->values[run * settings->key_count + k])
            continue;
        lab_str_add(&name, name.length ? ", " : "");
        lab_str_add(&name, lab_setting_value(settings, run, k, arena));
    }
    return lab_arena_strdup(arena, name.text);
}

/* --- the program's name --- */

/* Bytes of a script's ending; 0 = the word is none. */
static size_t script_ending(const char *word) {
    static const char *const endings[] = {".py", ".sh", ".jl", ".R", ".pl", ".js", ".rb", ".lua"};
    size_t length = strlen(word);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (*word != '-' && length > ending && strcmp(word + length - ending, endings[i]) == 0)
            return ending;
    }
    return 0;
}

/* "job" of "./job.txt" and "bash job.txt", in which a text is the program. */
static bool runs_text(const char *const *words, int count, int at) {
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh"};
    const char *slash = strrchr(words[0], '/'), *first = slash ? slash + 1 : words[0];
    bool shell = false;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        shell |= strcmp(first, shells[i]) == 0;
    return at < count && (at == 0 || (at == 1 && shell)) && strlen(words[at]) > 4 &&
           lab_str_ends(words[at], ".txt");
}

const char *lab_program_name(const char *const *words, int count, struct lab_arena *arena) {
    int chosen = 0;
    for (int i = 0; i < count && chosen == 0; i++)
        chosen = script_ending(words[i])                                 ? i
                 : i > 0 && i + 1 < count && strcmp(words[i], "-m") == 0 ? i + 1
                                                                         : 0;
    chosen = chosen == 0 && runs_text(words, count, 1) ? 1 : chosen;
    size_t ending = runs_text(words, count, chosen) ? strlen(".txt") : script_ending(words[chosen]);
    const char *slash = strrchr(words[chosen], '/');
    const char *name = slash && slash[1] ? slash + 1 : words[chosen];
    return lab_arena_strndup(arena, name, strlen(name) - ending);
}

const char *lab_setting_program(const struct lab_value *options, struct lab_arena *arena) {
    const struct lab_value *command = options ? lab_value_get(options, "command") : NULL;
    const char **words = NULL;
    int count = 0;
    for (int i = 0; command && command->type == LAB_VALUE_LIST && i < command->count; i++)
        if (command->items[i]->type == LAB_VALUE_STRING)
            LAB_ADD(words, count, arena) = command->items[i]->string;
    if (command && command->type == LAB_VALUE_STRING) {
        char *save = NULL, *text = lab_arena_strdup(arena, command->string);
        for (char *word = strtok_r(text, " \t\n'\"", &save); word;
             word = strtok_r(NULL, " \t\n'\"", &save))
            LAB_ADD(words, count, arena) = word;
    }
    return count > 0 ? lab_program_name(words, count, arena) : NULL;
}
