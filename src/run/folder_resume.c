/*
 * folder_resume.c: how an unfinished study is resumed whose words mean another plan now, since
 * defaults have changed with the program's version or in the user's files.
 */
#include "run/folder_internal.h"

#include "base/json.h"
#include "base/str.h"
#include "base/yaml/yaml.h"

#include <string.h>

/* Appends " key=value" for each leaf of the old config that the new one has otherwise. */
static void add_changes(const struct lab_value *old, const struct lab_value *now, const char *path,
                        struct lab_str *out, struct lab_arena *arena) {
    for (int i = 0; i < old->count; i++) {
        const char *key = lab_arena_printf(arena, "%s%s%s", path, *path ? "." : "", old->keys[i]);
        const struct lab_value *other = lab_value_get(now, old->keys[i]);
        if (!other || lab_value_equal(old->items[i], other))
            continue;
        if (old->items[i]->type == LAB_VALUE_MAP && other->type == LAB_VALUE_MAP) {
            add_changes(old->items[i], other, key, out, arena);
            continue;
        }
        LAB_AUTO(str, word);
        lab_str_printf(&word, "%s=", key);
        lab_json_write(old->items[i], 0, &word);
        lab_str_add(out, " ");
        lab_str_add_shell(out, word.text);
    }
}

const char *folder_resume_command(const struct lab_folder_request *request,
                                  const struct lab_store_study *study, struct lab_arena *arena) {
    LAB_AUTO(str, command);
    struct lab_value *old;
    lab_str_add(&command, request->command);
    if (!request->config ||
        lab_yaml_parse(study->config, strlen(study->config), "config", LAB_YAML_LIMITS, arena, &old,
                       NULL) < 0 ||
        old->type != LAB_VALUE_MAP)
        return NULL;
    add_changes(old, request->config, "", &command, arena);
    return lab_arena_strdup(arena, command.text);
}
