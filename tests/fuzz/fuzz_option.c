/*
 * fuzz_option.c: any command line either fails with a message or fills the struct within the rows'
 * bounds; what it filled in, written out and read again, is the same. A line of the input is a
 * word.
 * covers: src/base/option
 */
#include "base/option.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 64

struct config {
    bool flag;
    int64_t count, size;
    double number, wait;
    const char *text, *choice;
    struct lab_option_ints list;
    bool json;
};

static const char *const choices[] = {"fp32", "tf32", "null", "1e3", NULL};

static const struct lab_option own[] = {
    {"flag", LAB_OPTION_FLAG, offsetof(struct config, flag), .letter = 'f'},
    {"count", LAB_OPTION_INT, offsetof(struct config, count), .fallback = "3", .min = -8,
     .max = 512, .letter = 'c', .once = true},
    {"number", LAB_OPTION_FLOAT, offsetof(struct config, number)},
    {"wait", LAB_OPTION_DURATION, offsetof(struct config, wait), .fallback = "100ms", .min = 1e-9,
     .max = 86400, .letter = 'w'},
    {"size", LAB_OPTION_SIZE, offsetof(struct config, size), .fallback = "64MiB", .min = 1,
     .max = 0x1p40},
    {"text", LAB_OPTION_STRING, offsetof(struct config, text), .letter = 't'},
    {"choice", LAB_OPTION_CHOICE, offsetof(struct config, choice), .choices = choices},
    {"list", LAB_OPTION_INTS, offsetof(struct config, list), .fallback = "[0,2]", .min = 0,
     .max = 4096},
    {NULL},
};

static const struct lab_option shared[] = {
    {"json", LAB_OPTION_FLAG, offsetof(struct config, json), .letter = 'j'},
    {NULL},
};

static const struct lab_option *const tables[] = {own, shared, NULL};

static void require(bool holds) {
    if (!holds)
        abort();
}

static void check_bounds(const struct config *config) {
    require(config->count >= -8 && config->count <= 512);
    require(!isnan(config->number));
    require(config->wait >= 1e-9 && config->wait <= 86400);
    require(config->size >= 1 && config->size <= INT64_C(1) << 40);
    require(config->list.count >= 0 && config->list.count <= LAB_OPTION_INTS_MAX);
    for (int i = 0; i < config->list.count; i++)
        require(config->list.items[i] >= 0 && config->list.items[i] <= 4096);
    bool known = !config->choice;
    for (int i = 0; choices[i]; i++)
        known |= config->choice == choices[i];
    require(known);
}

/* Each row as `key=value` and as a value, as study files will hold it. */
static void check_round_trip(const struct config *config, struct lab_arena *arena) {
    struct config by_word, by_value;
    struct lab_err err = LAB_ERR_INIT;
    lab_options_defaults(own, &by_word, arena);
    lab_options_defaults(own, &by_value, arena);
    const struct lab_value *map = lab_options_to_map(own, config, arena);
    for (int i = 0; i < map->count; i++) {
        LAB_AUTO(str, word);
        lab_str_printf(&word, "%s=", map->keys[i]);
        lab_value_write(map->items[i], &word);
        require(lab_options_set_word(own, &by_word, arena, word.text, &err) == 0);
        require(lab_options_set_value(own, &by_value, arena, map->keys[i], map->items[i], &err) ==
                0);
    }
    require(lab_value_equal(map, lab_options_to_map(own, &by_word, arena)));
    require(lab_value_equal(map, lab_options_to_map(own, &by_value, arena)));
}

static void check_line(int argc, const char *const *argv, struct lab_arena *arena) {
    struct config config;
    lab_options_defaults(own, &config, arena);
    lab_options_defaults(shared, &config, arena);
    struct lab_err err = LAB_ERR_INIT;
    const char **words = NULL, *const *rest = NULL;
    int count = -1;
    if (lab_options_parse(tables, &config, arena, argc, argv, argc % 2, &words, &count, &rest,
                          &err) < 0) {
        require(err.code == LAB_ERR_USER && err.text[0] && !words && count == -1 && !rest);
        return;
    }
    require(count >= 0 && count <= argc && words[count] == NULL);
    for (int i = 0; rest && rest[i]; i++)
        require(i < argc);
    check_bounds(&config);
    check_round_trip(&config, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    char *text = lab_arena_strndup(&arena, (const char *)data, size);
    const char *argv[WORDS_MAX + 1] = {NULL};
    int argc = 0;
    for (char *line = strsep(&text, "\n"); line && argc < WORDS_MAX; line = strsep(&text, "\n"))
        argv[argc++] = line;
    check_line(argc, argv, &arena);
    /* the same words as key=value */
    for (int i = 0; i < argc; i++) {
        struct config config;
        struct lab_err err = LAB_ERR_INIT;
        lab_options_defaults(own, &config, &arena);
        if (lab_options_set_word(own, &config, &arena, argv[i], &err) == 0) {
            check_bounds(&config);
            check_round_trip(&config, &arena);
        } else {
            require(err.code == LAB_ERR_USER && err.text[0]);
        }
    }
    return 0;
}
