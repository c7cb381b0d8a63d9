/*
 * fuzz_config.c: any files and words either compose to a tree without interpolations or are refused
 * with a message. An input is files, each after a line "=== NAME", and words of the command line,
 * one a line, after "===" alone. The primary config is test.yaml.
 * covers: src/compose
 */
#include "compose/config.h"
#include "folder.h"

#include <string.h>

#define WORDS_MAX 8
#define JOBS_MAX  4

static const char *const names[] = {"test", "db/a", "db/b", "db/deep/c", "experiment/own", "_base"};
#define NAMES (sizeof names / sizeof *names)

/* Removes the files of the previous input first. */
static void write_files(char *text, struct lab_arena *arena) {
    folder_remove();
    mkdir(folder, 0700);
    mkdir(folder_file("db"), 0700);
    mkdir(folder_file("db/deep"), 0700);
    mkdir(folder_file("experiment"), 0700);
    for (char *part = text; part;) {
        char *next = strstr(part, "\n=== "), *line = strchr(part, '\n');
        if (next)
            *next = '\0';
        for (size_t i = 0; i < NAMES && line; i++)
            if (strncmp(part, names[i], (size_t)(line - part)) == 0 &&
                strlen(names[i]) == (size_t)(line - part))
                folder_write(lab_arena_printf(arena, "%s.yaml", names[i]), line + 1,
                             strlen(line + 1));
        part = next ? next + 5 : NULL;
    }
}

static void check_tree(const struct lab_value *value, int depth) {
    require(value && depth < 10000);
    for (int i = 0; i < value->count; i++)
        check_tree(value->items[i], depth + 1);
}

static void compose(struct lab_override *words, int count, struct lab_arena *arena) {
    static const char *const folders[] = {folder, NULL};
    const struct lab_config_path path = {folders};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_sweep sweep;
    struct lab_composer *composer;
    if (lab_sweep_init(&path, words, count, true, arena, &sweep, &err) < 0 ||
        lab_composer_make(&path, "test", arena, &composer, &err) < 0) {
        require_error(&err);
        return;
    }
    for (int64_t job = 0; job < sweep.job_count && job < JOBS_MAX; job++) {
        struct lab_override *own;
        struct lab_config config;
        int own_count;
        err = LAB_ERR_INIT;
        if (lab_sweep_job(&sweep, job, arena, &own, &own_count, &err) == 0 &&
            lab_composer_compose(composer, own, own_count, arena, &config, &err) == 0)
            check_tree(config.tree, 0);
        else
            require_error(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    char *text = lab_arena_strndup(&arena, (const char *)data, size);
    char *line = strstr(text, "\n===\n"), *rest = line ? line + 5 : NULL;
    struct lab_override words[WORDS_MAX];
    int count = 0;
    if (line)
        *line = '\0';
    folder_file("");
    write_files(strncmp(text, "=== ", 4) == 0 ? text + 4 : text, &arena);
    for (char *word = strsep(&rest, "\n"); word && count < WORDS_MAX; word = strsep(&rest, "\n"))
        if (lab_override_parse(word, &arena, &words[count], NULL) == 0)
            count++;
    compose(words, count, &arena);
    return 0;
}
