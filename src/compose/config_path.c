/*
 * config_path.c: the search path of config files: folders of the user's, then the files built into
 * the program, seen as one tree of groups (folders) and options (files).
 */
#include "compose/config_internal.h"

#include "base/file/file.h"
#include "base/yaml/yaml.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".yaml"

/* No way out of the search path: "../x", "/x", "a//b". */
static bool is_inside(const char *name) {
    for (const char *part = name;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || strncmp(part, ".", length) == 0 || strncmp(part, "..", length) == 0)
            return false;
        if (!part[length])
            return true;
        part += length + 1;
    }
}

/* 1 = exists, 0 = doesn't, -1 = unknown: stat failed */
static int look_up(const char *folder, const char *name, struct lab_arena *arena,
                   const char **ret_full, struct stat *ret_info) {
    *ret_full = lab_arena_printf(arena, "%s/%s", folder, name);
    if (stat(*ret_full, ret_info) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

static const struct lab_config_file *find_built_in(const char *name) {
    for (const struct lab_config_file *file = lab_config_files; file->path; file++)
        if (strcmp(file->path, name) == 0)
            return file;
    return NULL;
}

/* The name below a group, if the built-in file lies in it or deeper: "x.yaml", "sub/x.yaml". */
static const char *below(const char *path, const char *group) {
    size_t length = strlen(group);
    return strncmp(path, group, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

int lab_config_check_path(const struct lab_config_path *path, struct lab_err *err) {
    for (const char *const *folder = path->folders; folder && *folder; folder++) {
        struct stat info;
        if (stat(*folder, &info) < 0)
            return lab_err_set_errno(err, LAB_ERR_USER, errno, "the config folder %s", *folder);
        if (!S_ISDIR(info.st_mode))
            return lab_err_set(err, LAB_ERR_USER, "the config folder %s is not a folder", *folder);
    }
    return 0;
}

int lab_config_read(const struct lab_config_path *path, const char *name, struct lab_arena *arena,
                    const char **ret_text, size_t *ret_length, const char **ret_origin,
                    struct lab_err *err) {
    if (!is_inside(name))
        return lab_err_set(err, LAB_ERR_USER, "'%s' is not a path below a config folder", name);
    if (lab_config_check_path(path, err) < 0)
        return -1;
    for (const char *const *folder = path->folders; folder && *folder; folder++) {
        const char *full;
        struct stat info;
        int there = look_up(*folder, name, arena, &full, &info);
        if (there < 0)
            return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", full);
        char *text = NULL;
        if (!there)
            continue;
        if (lab_file_read(full, LAB_CONFIG_MAX_BYTES, arena, &text, ret_length, err) < 0)
            return -1;
        *ret_text = text;
        *ret_origin = full;
        return 0;
    }
    const struct lab_config_file *file = find_built_in(name);
    if (!file)
        return lab_err_set(err, LAB_ERR_USER, "there is no config '%s'", name);
    *ret_text = file->text;
    *ret_length = file->length;
    *ret_origin = lab_arena_printf(arena, "built-in:%s", file->path);
    return 0;
}

bool lab_config_has_file(const struct lab_config_path *path, const char *name) {
    if (!is_inside(name))
        return false;
    LAB_AUTO(arena, arena);
    bool found = find_built_in(name) != NULL;
    const char *full;
    struct stat info;
    for (const char *const *folder = path->folders; !found && folder && *folder; folder++)
        found = look_up(*folder, name, &arena, &full, &info) != 0;
    return found;
}

bool lab_config_has_group(const struct lab_config_path *path, const char *group) {
    if (!is_inside(group))
        return false;
    for (const struct lab_config_file *file = lab_config_files; file->path; file++)
        if (below(file->path, group))
            return true;
    LAB_AUTO(arena, arena);
    bool found = false;
    const char *full;
    struct stat info;
    for (const char *const *folder = path->folders; !found && folder && *folder; folder++)
        found = look_up(*folder, group, &arena, &full, &info) == 1 && S_ISDIR(info.st_mode);
    return found;
}

struct names {
    const char **items;
    int count;
};

/* "x.yaml" as the option x, unless it is hidden. */
static void add_option(struct names *names, const char *file_name, struct lab_arena *arena) {
    size_t length = strlen(file_name);
    size_t suffix = strlen(SUFFIX);
    if (length <= suffix || strcmp(file_name + length - suffix, SUFFIX) != 0 ||
        strchr("._", file_name[0]) || strchr(file_name, '/'))
        return;
    LAB_ADD(names->items, names->count, arena) =
        lab_arena_strndup(arena, file_name, length - suffix);
}

static void add_folder(struct names *names, const char *folder, const char *group,
                       struct lab_arena *arena) {
    LAB_AUTO_CLOSEDIR DIR *directory = opendir(lab_arena_printf(arena, "%s/%s", folder, group));
    if (!directory)
        return;
    for (const struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type != DT_DIR)
            add_option(names, entry->d_name, arena);
}

/* Ascending, each once. */
static const char *const *ordered(const struct names *names, struct lab_arena *arena) {
    if (names->count)
        qsort(names->items, (size_t)names->count, sizeof *names->items, lab_str_compare);
    const char **items = lab_arena_alloc(arena, (size_t)names->count + 1, sizeof *items);
    int count = 0;
    for (int i = 0; i < names->count; i++)
        if (i == 0 || strcmp(names->items[i], names->items[i - 1]) != 0)
            items[count++] = names->items[i];
    return items;
}

const char *const *lab_config_options(const struct lab_config_path *path, const char *group,
                                      struct lab_arena *arena) {
    struct names names = {0};
    if (is_inside(group)) {
        for (const char *const *folder = path->folders; folder && *folder; folder++)
            add_folder(&names, *folder, group, arena);
        for (const struct lab_config_file *file = lab_config_files; file->path; file++)
            if (below(file->path, group))
                add_option(&names, below(file->path, group), arena);
    }
    return ordered(&names, arena);
}

const char *const *lab_config_groups(const struct lab_config_path *path, const char *group,
                                     struct lab_arena *arena) {
    struct names names = {0};
    const char *full;
    struct stat info;
    if (!is_inside(group))
        return ordered(&names, arena);
    for (const char *const *folder = path->folders; folder && *folder; folder++) {
        LAB_AUTO_CLOSEDIR DIR *directory =
            opendir(lab_arena_printf(arena, "%s/%s", *folder, group));
        for (const struct dirent *entry; directory && (entry = readdir(directory));) {
            const char *name = lab_arena_printf(arena, "%s/%s", group, entry->d_name);
            if (!strchr("._", entry->d_name[0]) &&
                look_up(*folder, name, arena, &full, &info) == 1 && S_ISDIR(info.st_mode))
                LAB_ADD(names.items, names.count, arena) = lab_arena_strdup(arena, entry->d_name);
        }
    }
    for (const struct lab_config_file *file = lab_config_files; file->path; file++) {
        const char *inner = below(file->path, group), *slash = inner ? strchr(inner, '/') : NULL;
        if (slash && !strchr("._", inner[0]))
            LAB_ADD(names.items, names.count, arena) =
                lab_arena_strndup(arena, inner, (size_t)(slash - inner));
    }
    return ordered(&names, arena);
}

const char *lab_config_study_for(const char *analysis, struct lab_arena *arena) {
    static const struct lab_config_path built_in;
    const char *const *names = lab_config_options(&built_in, "experiment", arena);
    for (int i = 0; names[i]; i++) {
        const char *name = lab_arena_printf(arena, "experiment/%s" SUFFIX, names[i]);
        const struct lab_config_file *file = find_built_in(name);
        struct lab_value *tree;
        if (lab_yaml_parse(file->text, file->length, name, LAB_YAML_LIMITS, arena, &tree, NULL) < 0)
            continue;
        const struct lab_value *answers = lab_value_get(tree, "answers");
        if (answers && answers->type == LAB_VALUE_LIST && answers->count > 0 &&
            lab_str_equal(lab_value_as_text(answers->items[0], NULL), analysis))
            return names[i];
    }
    return NULL;
}
