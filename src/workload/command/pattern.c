/*
 * command/pattern.c: numbers out of a line. Less than a regular expression on purpose: what a log
 * line says can be copied, and the numbers replaced by their names.
 *
 * Between two stars is a segment. Each is taken at the first place behind the one before: a star
 * stands for anything, so a later place can't let more match. That keeps the work linear; a bound
 * on it keeps a hostile line from making it anything else.
 */
#include "workload/command/command.h"

#include "base/list.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define STEPS_MAX     (1 << 21) /* of one line and pattern */
#define PATTERN_BYTES 1024

enum kind { LITERAL, BLANK, NUMBER, STAR };

struct token {
    enum kind kind;
    const char *text; /* LITERAL, and NUMBER's name */
    size_t length;
};

struct command_pattern {
    struct token *tokens;
    int count;
    const char *names[COMMAND_NUMBERS_MAX];
    int number_count;
    const struct token
        *anchor; /* its longest literal, which a line must have; NULL = it has none */
};

static bool is_blank(char c) {
    return isspace((unsigned char)c) || c == ':' || c == '=' || c == ',';
}

/* --- reading a pattern --- */

static void add_token(struct command_pattern *pattern, struct token token) {
    assert(pattern->tokens);
    struct token *last = pattern->count ? &pattern->tokens[pattern->count - 1] : NULL;
    if (last && last->kind == token.kind && (token.kind == BLANK || token.kind == STAR))
        return;
    if (!last && (token.kind == BLANK || token.kind == STAR))
        return; /* it may stand anywhere in the line */
    pattern->tokens[pattern->count++] = token;
}

static const struct token *longest_literal(const struct command_pattern *pattern) {
    const struct token *longest = NULL;
    for (int i = 0; i < pattern->count; i++)
        if (pattern->tokens[i].kind == LITERAL &&
            (!longest || pattern->tokens[i].length > longest->length))
            longest = &pattern->tokens[i];
    return longest;
}

static int take_name(struct command_pattern *pattern, const char *at, struct lab_arena *arena,
                     size_t *ret_length, struct lab_err *err) {
    size_t length = 0;
    while (isalnum((unsigned char)at[1 + length]) ||
           (at[1 + length] && strchr("_./-", at[1 + length])))
        length++;
    if (length == 0 || at[1 + length] != '}')
        return lab_err_set(err, LAB_ERR_USER,
                           "'{' begins no {name} at '%.40s': a number's name has letters, digits, "
                           "'_', '.', '/' and '-'; {{ is a brace",
                           at);
    const char *name = lab_arena_strndup(arena, at + 1, length);
    if (lab_list_find_text(pattern->names, pattern->number_count, name) >= 0)
        return lab_err_set(err, LAB_ERR_USER, "duplicate {%s}", name);
    if (pattern->number_count == COMMAND_NUMBERS_MAX)
        return lab_err_set(err, LAB_ERR_USER, "has more than %d numbers", COMMAND_NUMBERS_MAX);
    pattern->names[pattern->number_count++] = name;
    add_token(pattern, (struct token){.kind = NUMBER, .text = name});
    *ret_length = length + 2;
    return 0;
}

static int take_tokens(struct command_pattern *pattern, const char *at, struct lab_arena *arena,
                       struct lab_err *err) {
    while (*at) {
        size_t length = 1;
        if (is_blank(*at)) {
            add_token(pattern, (struct token){.kind = BLANK});
        } else if (*at == '*') {
            add_token(pattern, (struct token){.kind = STAR});
        } else if (at[0] == '{' && at[1] != '{') {
            if (take_name(pattern, at, arena, &length, err) < 0)
                return -1;
        } else {
            bool brace = (*at == '{' || *at == '}') && at[1] == *at;
            if (!brace)
                while (at[length] && !is_blank(at[length]) && !strchr("*{}", at[length]))
                    length++;
            add_token(pattern,
                      (struct token){LITERAL, lab_arena_strndup(arena, at, length), length});
            length += brace;
        }
        at += length;
    }
    /* what ends it needn't be there */
    while (pattern->count && (pattern->tokens[pattern->count - 1].kind == BLANK ||
                              pattern->tokens[pattern->count - 1].kind == STAR))
        pattern->count--;
    return 0;
}

int command_pattern_read(const char *text, struct lab_arena *arena,
                         struct command_pattern **ret_pattern, struct lab_err *err) {
    size_t length = strlen(text);
    if (length > PATTERN_BYTES)
        return lab_err_set(err, LAB_ERR_USER, "is longer than %d bytes", PATTERN_BYTES);
    struct command_pattern *pattern = lab_arena_alloc(arena, 1, sizeof *pattern);
    pattern->tokens = lab_arena_alloc(arena, length + 1, sizeof *pattern->tokens);
    if (take_tokens(pattern, text, arena, err) < 0)
        return -1;
    if (pattern->number_count == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "reads no number: put a {name} where one stands, such as 'loss {loss}'");
    pattern->anchor = longest_literal(pattern);
    *ret_pattern = pattern;
    return 0;
}

int command_pattern_count(const struct command_pattern *pattern) {
    return pattern->number_count;
}

const char *command_pattern_name(const struct command_pattern *pattern, int index) {
    return pattern->names[index];
}

/* --- matching --- */

struct matcher {
    const struct command_pattern *pattern;
    const char *line;
    size_t length;
    double *values;
    int steps;
    bool comma; /* the line has decimal commas */
};

static char at(const struct matcher *m, size_t place) {
    return place < m->length ? m->line[place] : '\0';
}

/* Tokens from `t` up to a star or the end, at `place`; `ret_end` is behind what they took. */
static bool match_here(struct matcher *m, int t, int number, size_t place, size_t *ret_end) {
    const struct command_pattern *pattern = m->pattern;
    for (;; t++) {
        if (++m->steps > STEPS_MAX)
            return false;
        if (t == pattern->count || pattern->tokens[t].kind == STAR) {
            *ret_end = place;
            return true;
        }
        const struct token *token = &pattern->tokens[t];
        bool last = t + 1 == pattern->count;
        if (token->kind == LITERAL) {
            if (m->length - place < token->length ||
                memcmp(m->line + place, token->text, token->length) != 0)
                return false;
            place += token->length;
            if (last && command_is_word(token->text[token->length - 1]) &&
                command_is_word(at(m, place)))
                return false;
        } else if (token->kind == BLANK) {
            if (place < m->length && !is_blank(m->line[place]))
                return false;
            if (pattern->tokens[t + 1].kind == STAR)
                continue; /* that takes it */
            if (place == m->length)
                return false;
            while (place < m->length && is_blank(m->line[place]))
                place++;
        } else {
            static const enum command_groups groups[] = {COMMAND_GROUPED, COMMAND_COMMA,
                                                         COMMAND_UNGROUPED};
            for (int i = 0; i < 3; i++) {
                if (groups[i] == COMMAND_COMMA && !m->comma)
                    continue;
                size_t end =
                    command_number(m->line, m->length, place, groups[i], &m->values[number]);
                double value = m->values[number];
                if (end > place && match_here(m, t + 1, number + 1, end, ret_end)) {
                    m->values[number] = value;
                    return true;
                }
            }
            return false;
        }
    }
}

/* Whether a segment that begins with this token may begin at this place. */
static bool may_begin(const struct matcher *m, int t, size_t place) {
    char before = place ? m->line[place - 1] : ' ';
    if (m->pattern->tokens[t].kind == NUMBER)
        return !command_is_word(before) && !strchr(".+-", before);
    if (t == 0)
        return !command_is_word(before) || !command_is_word(m->line[place]);
    return true;
}

bool command_pattern_match(const struct command_pattern *pattern, const char *line, size_t length,
                           double values[COMMAND_NUMBERS_MAX]) {
    struct matcher m = {.pattern = pattern, .line = line, .length = length, .values = values};
    size_t place = 0;
    int number = 0;
    if (pattern->anchor && !memmem(line, length, pattern->anchor->text, pattern->anchor->length))
        return false;
    m.comma = command_line_has_comma(line, length);
    for (int t = 0; t < pattern->count; t++) {
        size_t end = place;
        while (place < length &&
               (!may_begin(&m, t, place) || !match_here(&m, t, number, place, &end)))
            place++;
        if (place >= length || m.steps > STEPS_MAX)
            return false;
        place = end;
        for (; t < pattern->count && pattern->tokens[t].kind != STAR; t++)
            number += pattern->tokens[t].kind == NUMBER;
    }
    return true;
}
