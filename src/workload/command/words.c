/*
 * command/words.c: one text into the words of a command line. A shell's quotes, because that is how
 * people write commands; none of its other powers, because a command that works in one directory,
 * with one set of variables, is no measurement that can be repeated.
 */
#include "workload/command/command.h"

bool command_is_scalar(const struct lab_value *value) {
    return value->type != LAB_VALUE_LIST && value->type != LAB_VALUE_MAP;
}

void command_add_scalar(const struct lab_value *value, struct lab_str *out) {
    if (value->type == LAB_VALUE_STRING)
        lab_str_add(out, value->string);
    else
        lab_value_write(value, out);
}

struct splitter {
    const struct lab_value *command;
    struct lab_arena *arena;
    struct lab_err *err;
    const char **words;
    int count;
    struct lab_str word;
};

static void add_word(struct splitter *s, const char *text) {
    LAB_ADD(s->words, s->count, s->arena) = lab_arena_strdup(s->arena, text);
}

/* What stands bare and would mean something to a shell. */
static int refuse_operator(const struct splitter *s, const char *word) {
    static const char *const operators[] = {"|",  "||", "|&", "&",  "&&",  ";",    ">",   ">>", "<",
                                            "<<", "2>", "&>", ">&", ">>&", "2>&1", "2>>", NULL};
    if (lab_str_find(word, operators) >= 0)
        return lab_value_err(s->command, s->err,
                             "command: no shell is started that would understand '%s'; put it "
                             "in quotes, or start one: [sh, -c, \"…\"]",
                             word);
    return 0;
}

/* Reads a quoted part, `at` behind the opening quote; returns the place behind the closing one. */
static const char *take_quoted(struct splitter *s, const char *at, char quote) {
    for (; *at && *at != quote; at++) {
        if (quote == '"' && at[0] == '\\' && at[1] && strchr("\\\"$`\n", at[1]))
            at++;
        lab_str_add_bytes(&s->word, at, 1);
    }
    if (*at)
        return at + 1;
    lab_value_err(s->command, s->err, "command: a %s quote is never closed: %.80s",
                  quote == '"' ? "double" : "single", s->command->string);
    return NULL;
}

static int split(struct splitter *s, const char *at) {
    static const char blanks[] = " \t\r\n";
    for (at += strspn(at, blanks); *at; at += strspn(at, blanks)) {
        bool bare = true;
        lab_str_clear(&s->word);
        while (*at && !strchr(blanks, *at)) {
            if (*at == '\'' || *at == '"') {
                bare = false;
                at = take_quoted(s, at + 1, *at);
                if (!at)
                    return -1;
                continue;
            }
            if (at[0] == '\\' && !at[1])
                return lab_value_err(s->command, s->err,
                                     "command: ends in a backslash, which takes the next "
                                     "character as it is: write \\\\ for one");
            if (*at == '\\') {
                bare = false;
                at++;
            }
            lab_str_add_bytes(&s->word, at++, 1);
        }
        if (bare && refuse_operator(s, s->word.text) < 0)
            return -1;
        add_word(s, s->word.text);
    }
    return 0;
}

static int take_list(struct splitter *s) {
    for (int i = 0; i < s->command->count; i++) {
        const struct lab_value *item = s->command->items[i];
        if (!command_is_scalar(item))
            return lab_value_err(item, s->err, "command: a word of the list is %s",
                                 lab_value_type_name(item->type));
        lab_str_clear(&s->word);
        command_add_scalar(item, &s->word);
        add_word(s, s->word.text);
    }
    return 0;
}

int command_words(const struct lab_value *command, struct lab_arena *arena, const char ***ret_words,
                  int *ret_count, struct lab_err *err) {
    if (!command)
        return lab_err_set(err, LAB_ERR_USER,
                           "command is missing: the program to run and its arguments, such as "
                           "command=\"python3 train.py\"");
    if (command->type == LAB_VALUE_MAP)
        return lab_value_err(command, err, "command: must be one text or a list of words");
    struct splitter s = {.command = command, .arena = arena, .err = err};
    lab_str_init(&s.word);
    int result;
    if (command->type == LAB_VALUE_LIST) {
        result = take_list(&s);
    } else if (command->type == LAB_VALUE_STRING) {
        result = split(&s, command->string);
    } else { /* the program named `true` reads as a constant */
        command_add_scalar(command, &s.word);
        add_word(&s, s.word.text);
        result = 0;
    }
    if (result == 0 && (s.count == 0 || !*s.words[0]))
        result = lab_value_err(command, err, "command: is empty; it begins with a program's name");
    if (result == 0) {
        *ret_words = s.words;
        *ret_count = s.count;
    }
    lab_str_release(&s.word);
    return result;
}
