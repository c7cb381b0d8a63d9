/*
 * config_fixture.h: composing in tests. A test writes the config files that it needs into a folder
 * of its own, composes words as a command line would, and compares trees as text, in which types
 * show (1, 1.0, '1').
 */
#pragma once

#include "base/file/file.h"
#include "compose/config.h"

#include "test.h"
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS_MAX 16

static struct lab_arena arena;
static char folder[] = "/tmp/gpulab-config-XXXXXX";
static const char *const own_folders[] = {folder, NULL};
static struct lab_config_path path; /* the built-in files, until a test adds a folder */
static const char *primary;

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    path.folders = NULL;
    primary = "config";
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *name, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)kind;
    (void)walk;
    return remove(name);
}

static int tear_down(void **state) {
    (void)state;
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    lab_arena_release(&arena);
    return 0;
}

/* A file below the test's folder, which is in front of the built-in files from now on. */
static inline const char *given_bytes(const char *name, const char *bytes, size_t length) {
    path.folders = own_folders;
    char *full = lab_arena_printf(&arena, "%s/%s", folder, name);
    for (char *slash = full + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    ASSERT_OK(lab_file_write_atomic(full, bytes, length, err));
    return full;
}

static inline const char *given(const char *name, const char *text) {
    return given_bytes(name, text, strlen(text));
}

/* The text of a primary config called `test`. */
static inline void given_primary(const char *text) {
    given("test.yaml", text);
    primary = "test";
}

/* Words in a row, split at single spaces: none of the tests' values needs one. */
static inline int read_words(const char *line, struct lab_override *ret_words) {
    int count = 0;
    char *rest = lab_arena_strdup(&arena, line);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        assert_true(count < WORDS_MAX);
        ASSERT_OK(lab_override_parse(word, &arena, &ret_words[count++], err));
    }
    return count;
}

static inline struct lab_config compose(const char *line) {
    struct lab_override words[WORDS_MAX];
    int count = read_words(line, words);
    struct lab_config config = {0};
    struct lab_err err = LAB_ERR_INIT;
    if (lab_config_compose(&path, primary, words, count, &arena, &config, &err) < 0)
        fail_msg("'%s': %s", line, err.text);
    return config;
}

static inline struct lab_value *value_at(struct lab_value *tree, const char *key) {
    const char **parts = NULL;
    ASSERT_OK(lab_key_split(key, &arena, &parts, err));
    for (; *parts && tree; parts++) {
        char *end;
        long index = strtol(*parts, &end, 10);
        if (tree->type == LAB_VALUE_LIST)
            tree = !*end && index < tree->count ? tree->items[index] : NULL;
        else
            tree = lab_value_get(tree, *parts);
    }
    return tree;
}

static inline const char *text_of(const struct lab_value *value) {
    if (!value)
        return "(nothing)";
    LAB_AUTO(str, out);
    lab_value_write(value, &out);
    const char *text = lab_arena_strdup(&arena, out.text);
    return text;
}

/* The words give a tree that holds the value at the key; "" is the whole tree. */
static inline void composes(const char *line, const char *key, const char *expected) {
    struct lab_value *tree = compose(line).tree;
    const char *text = text_of(*key ? value_at(tree, key) : tree);
    if (strcmp(text, expected) != 0)
        fail_msg("'%s' makes %s %s, not %s", line, *key ? key : "it all", text, expected);
}

/* The words are refused; the error holds each of the gists (NULL ends them). */
#define refuses(line, ...) refuses_with(line, (const char *const[]){__VA_ARGS__})
static inline void refuses_with(const char *line, const char *const *gists) {
    struct lab_override words[WORDS_MAX];
    int count = read_words(line, words);
    struct lab_config config = {.choice_count = -7};
    struct lab_err err = LAB_ERR_INIT;
    if (lab_config_compose(&path, primary, words, count, &arena, &config, &err) == 0)
        fail_msg("'%s' was taken", line);
    assert_int_equal(config.choice_count, -7);
    assert_int_equal(err.code, LAB_ERR_USER);
    for (; *gists; gists++)
        if (!strstr(err.text, *gists))
            fail_msg("'%s': '%s' lacks '%s'", line, err.text, *gists);
}
