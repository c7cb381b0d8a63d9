/*
 * option.c: option tables and command lines. A word finds its row here; what its value means is
 * option_value.c's.
 */
#include "base/option.h"

#include "base/option_value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct lab_option *find_row(const struct lab_option *table, const char *name,
                                         size_t length) {
    for (const struct lab_option *row = table; row->name; row++)
        if (row->name[0] == name[0] && strncmp(row->name, name, length) == 0 && !row->name[length])
            return row;
    return NULL;
}

const struct lab_option *lab_options_find(const struct lab_option *table, const char *name) {
    return table ? find_row(table, name, strlen(name)) : NULL;
}

/* All names of the tables behind `prefix`, NULL-terminated. */
static const char *const *names_of(const struct lab_option *const *tables, const char *prefix,
                                   struct lab_arena *arena) {
    int count = 0;
    for (int t = 0; tables[t]; t++)
        for (const struct lab_option *row = tables[t]; row->name; row++)
            count++;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    count = 0;
    for (int t = 0; tables[t]; t++)
        for (const struct lab_option *row = tables[t]; row->name; row++)
            names[count++] = lab_arena_printf(arena, "%s%s", prefix, row->name);
    return names;
}

/* "unknown key 'dept'; did you mean 'depth'?", or else all there are. */
static int refuse_unknown(const char *what, const char *name, const char *const *names,
                          struct lab_err *err) {
    const char *nearest = lab_str_nearest(name, names);
    if (nearest)
        return lab_err_set(err, LAB_ERR_USER, "unknown %s '%.80s'; did you mean '%s'?", what, name,
                           nearest);
    if (!names[0])
        return lab_err_set(err, LAB_ERR_USER, "unknown %s '%.80s'; there are none here", what,
                           name);
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    lab_err_set(err, LAB_ERR_USER, "unknown %s '%.80s'; there %s %s", what, name,
                names[1] ? "are" : "is", list.text);
    return -1;
}

static int refuse_key(const struct lab_option *table, const char *key, struct lab_arena *arena,
                      struct lab_err *err) {
    const struct lab_option *const tables[] = {table, NULL};
    return refuse_unknown("key", key, names_of(tables, "", arena), err);
}

void lab_options_defaults(const struct lab_option *table, void *config, struct lab_arena *arena) {
    static const size_t sizes[] = {[LAB_OPTION_FLAG] = sizeof(bool),
                                   [LAB_OPTION_INT] = sizeof(int64_t),
                                   [LAB_OPTION_FLOAT] = sizeof(double),
                                   [LAB_OPTION_DURATION] = sizeof(double),
                                   [LAB_OPTION_SIZE] = sizeof(int64_t),
                                   [LAB_OPTION_STRING] = sizeof(const char *),
                                   [LAB_OPTION_CHOICE] = sizeof(const char *),
                                   [LAB_OPTION_INTS] = sizeof(struct lab_option_ints),
                                   [LAB_OPTION_VALUE] = sizeof(struct lab_value *)};
    for (const struct lab_option *row = table; row->name; row++) {
        struct lab_err err = LAB_ERR_INIT;
        memset((char *)config + row->offset, 0, sizes[row->type]);
        if (row->fallback &&
            lab_options_set(table, config, arena, row->name, row->fallback, &err) < 0) {
            dprintf(STDERR_FILENO, "gpulab: default of an option: %s\n", err.text);
            abort();
        }
    }
}

/*
 * The grammar's own message is the best one for lists and text. For the others text that it refuses
 * (a number too large for any type) is as wrong as any, and the row says what would be right.
 */
static int read_value(const struct lab_option *row, const char *text, struct lab_arena *arena,
                      struct lab_value **ret_value, struct lab_err *err) {
    struct lab_err why = LAB_ERR_INIT;
    if (lab_value_parse(text, arena, ret_value, &why) == 0)
        return 0;
    if (row->type == LAB_OPTION_INTS || row->type == LAB_OPTION_STRING ||
        row->type == LAB_OPTION_VALUE)
        return lab_err_set(err, why.code, "%s", why.text);
    *ret_value = lab_value_string(arena, text);
    return 0;
}

int lab_options_set(const struct lab_option *table, void *config, struct lab_arena *arena,
                    const char *key, const char *text, struct lab_err *err) {
    const struct lab_option *row = lab_options_find(table, key);
    if (!row)
        return refuse_key(table, key, arena, err);
    struct lab_value *value;
    if (read_value(row, text, arena, &value, err) < 0)
        return lab_err_context(err, "%s=%.60s", key, text);
    struct lab_option_source source = {.value = value, .text = text};
    return lab_option_store(row, config, arena, &source, err);
}

int lab_options_set_value(const struct lab_option *table, void *config, struct lab_arena *arena,
                          const char *key, const struct lab_value *value, struct lab_err *err) {
    const struct lab_option *row = lab_options_find(table, key);
    if (!row) {
        LAB_AUTO(str, place);
        lab_value_add_place(value, &place);
        struct lab_err unknown;
        refuse_key(table, key, arena, &unknown);
        return lab_err_set(err, LAB_ERR_USER, "%s%s", place.text, unknown.text);
    }
    struct lab_option_source source = {.value = value};
    return lab_option_store(row, config, arena, &source, err);
}

int lab_options_set_word(const struct lab_option *table, void *config, struct lab_arena *arena,
                         const char *word, struct lab_err *err) {
    const char *equals = strchr(word, '=');
    if (equals) {
        const char *key = lab_arena_strndup(arena, word, (size_t)(equals - word));
        return lab_options_set(table, config, arena, key, equals + 1, err);
    }
    const struct lab_option *row = lab_options_find(table, word);
    if (row)
        return lab_err_set(err, LAB_ERR_USER, "'%s' needs a value: %s=%s", word, word,
                           row->type == LAB_OPTION_FLAG ? "true" : lab_option_value_name(row));
    return lab_err_set(err, LAB_ERR_USER, "'%.80s' is not key=value", word);
}

struct lab_value *lab_options_to_map(const struct lab_option *table, const void *config,
                                     struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (const struct lab_option *row = table; row->name; row++)
        lab_value_set(arena, map, row->name, lab_options_value(row, config, arena));
    return map;
}

/* A command line while it is read. */
struct line {
    const struct lab_option *const *tables;
    void *config;
    struct lab_arena *arena;
    int argc;
    const char *const *argv;
    bool ends_at_word;
    int at;
    const struct lab_option **given; /* rows seen so far */
    int given_count;
    struct lab_err *err;
};

static const struct lab_option *find_name(const struct line *line, const char *name,
                                          size_t length) {
    for (int t = 0; line->tables[t]; t++) {
        const struct lab_option *row = find_row(line->tables[t], name, length);
        if (row)
            return row;
    }
    return NULL;
}

static const struct lab_option *find_letter(const struct line *line, char letter) {
    for (int t = 0; line->tables[t]; t++)
        for (const struct lab_option *row = line->tables[t]; row->name; row++)
            if (row->letter && row->letter == letter)
                return row;
    return NULL;
}

static int note_given(struct line *line, const struct lab_option *row) {
    for (int i = 0; i < line->given_count; i++)
        if (line->given[i] == row && row->once)
            return lab_err_set(line->err, LAB_ERR_USER, "--%s is given twice", row->name);
    LAB_ADD(line->given, line->given_count, line->arena) = row;
    return 0;
}

static int times_given(const struct line *line, const struct lab_option *row) {
    int times = 0;
    for (int i = 0; i < line->given_count; i++)
        times += line->given[i] == row;
    return times;
}

static int store_argument(struct line *line, const struct lab_option *row, const char *text) {
    struct lab_value *value;
    if (row->repeats && times_given(line, row) > 1) {
        const char *before;
        memcpy(&before, (const char *)line->config + row->offset, sizeof before);
        text = lab_arena_printf(line->arena, "%s\n%s", before, text);
    }
    bool verbatim = row->type == LAB_OPTION_STRING || row->type == LAB_OPTION_CHOICE;
    bool bare_list = row->type == LAB_OPTION_INTS && !strchr(text, '[') && text[0];
    const char *read = bare_list ? lab_arena_printf(line->arena, "[%s]", text) : text;
    if (verbatim)
        value = lab_value_string(line->arena, text);
    else if (read_value(row, read, line->arena, &value, line->err) < 0)
        return lab_err_context(line->err, "--%s=%.60s", row->name, text);
    struct lab_option_source source = {.value = value, .text = text, .dashes = true};
    return lab_option_store(row, line->config, line->arena, &source, line->err);
}

/* Whether the word is an option of ours, so that it can't be meant as the one before's value. */
static bool is_option(const struct line *line, const char *word) {
    if (word[0] != '-' || !word[1])
        return false;
    if (word[1] != '-')
        return find_letter(line, word[1]) != NULL;
    size_t length = strcspn(word + 2, "=");
    return length == 0 || find_name(line, word + 2, length) ||
           (lab_str_starts(word, "--no-") && find_name(line, word + 5, length - 3));
}

static int take_next(struct line *line, const struct lab_option *row, const char *shown) {
    const char *next = line->at + 1 < line->argc ? line->argv[line->at + 1] : NULL;
    if (!next || is_option(line, next)) {
        LAB_AUTO(str, what);
        lab_option_describe(row, &what);
        return lab_err_set(line->err, LAB_ERR_USER, "%s needs a value: %s", shown, what.text);
    }
    line->at++;
    return store_argument(line, row, next);
}

/* --name, --name=value, --name value, --no-name */
static int take_long(struct line *line) {
    const char *word = line->argv[line->at];
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct lab_option *row = find_name(line, name, length);
    bool negated = false;
    if (!row && lab_str_starts(name, "no-") && length > 3) {
        row = find_name(line, name + 3, length - 3);
        negated = true;
        if (row && row->type != LAB_OPTION_FLAG)
            return lab_err_set(line->err, LAB_ERR_USER,
                               "--no-%s: --%s takes a value and can't be switched off", row->name,
                               row->name);
        if (row && value)
            return lab_err_set(line->err, LAB_ERR_USER, "--no-%s takes no value", row->name);
    }
    if (!row)
        return refuse_unknown("option", lab_arena_strndup(line->arena, word, length + 2),
                              names_of(line->tables, "--", line->arena), line->err);
    if (note_given(line, row) < 0)
        return -1;
    if (row->type == LAB_OPTION_FLAG)
        return store_argument(line, row, negated ? "false" : value ? value : "true");
    if (value)
        return store_argument(line, row, value);
    return take_next(line, row, lab_arena_printf(line->arena, "--%s", row->name));
}

/* -q, -qj, -r 5, -qr 5 */
static int take_letters(struct line *line) {
    const char *word = line->argv[line->at];
    for (const char *c = word + 1; *c; c++) {
        const struct lab_option *row = find_letter(line, *c);
        if (!row) {
            const struct lab_option *meant = find_name(line, word + 1, strcspn(word + 1, "="));
            if (meant)
                return lab_err_set(line->err, LAB_ERR_USER,
                                   "unknown option '%.80s'; did you mean '-%.80s'?", word, word);
            if (!word[2])
                return refuse_unknown("option", word, names_of(line->tables, "--", line->arena),
                                      line->err);
            return lab_err_set(line->err, LAB_ERR_USER, "unknown option '-%c' in '%.80s'", *c,
                               word);
        }
        if (note_given(line, row) < 0)
            return -1;
        if (row->type == LAB_OPTION_FLAG) {
            if (store_argument(line, row, "true") < 0)
                return -1;
            continue;
        }
        if (c[1])
            return lab_err_set(line->err, LAB_ERR_USER,
                               "'%.80s': write the value of -%c after a space: -%c "
                               "%.80s",
                               word, *c, *c, c + 1 + (c[1] == '='));
        return take_next(line, row, lab_arena_printf(line->arena, "-%c", *c));
    }
    return 0;
}

static bool is_negative_number(const char *word) {
    return word[0] == '-' &&
           (isdigit((unsigned char)word[1]) || (word[1] == '.' && isdigit((unsigned char)word[2])));
}

static int take_line(struct line *line, const char **words, int *ret_count,
                     const char *const **ret_rest) {
    int count = 0;
    const char *const *rest = NULL;
    for (line->at = 0; line->at < line->argc && !rest; line->at++) {
        const char *word = line->argv[line->at];
        bool program = line->ends_at_word && (word[0] != '-' || !word[1]);
        if (program || strcmp(word, "--") == 0) {
            line->at -= program;
            int left = line->argc - line->at - 1;
            const char **copy = lab_arena_alloc(line->arena, (size_t)left + 1, sizeof *copy);
            memcpy(copy, line->argv + line->at + 1, (size_t)left * sizeof *copy);
            rest = copy;
        } else if (lab_str_starts(word, "--")) {
            if (take_long(line) < 0)
                return -1;
        } else if (word[0] == '-' && word[1] && !is_negative_number(word)) {
            if (take_letters(line) < 0)
                return -1;
        } else {
            words[count++] = word;
        }
    }
    *ret_count = count;
    *ret_rest = rest;
    return 0;
}

int lab_options_parse(const struct lab_option *const *tables, void *config, struct lab_arena *arena,
                      int argc, const char *const *argv, bool ends_at_word, const char ***ret_words,
                      int *ret_count, const char *const **ret_rest, struct lab_err *err) {
    struct line line = {.tables = tables,
                        .config = config,
                        .arena = arena,
                        .argc = argc,
                        .argv = argv,
                        .ends_at_word = ends_at_word,
                        .err = err};
    const char **words = lab_arena_alloc(arena, (size_t)argc + 1, sizeof *words);
    if (take_line(&line, words, ret_count, ret_rest) < 0)
        return -1;
    *ret_words = words;
    return 0;
}
