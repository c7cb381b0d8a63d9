/* command/stream.c: what a program prints, cut into lines. Most are read where they lie. */
#include "base/auto.h"
#include "workload/command/command.h"

#include <string.h>

typedef void take_line(void *state, const char *text, size_t length);

/* Where the escape sequence at `i` has its last byte: ESC [ … letter, ESC ] … BEL or ESC \\, as
 * titles are set, ESC ( B, as tput resets. `i` = none begins there. */
static size_t escape_end(const char *text, size_t length, size_t i) {
    char kind = i + 1 < length ? text[i + 1] : '\0';
    size_t at = i + 2;
    if (kind == '[') {
        while (at < length && !(text[at] >= '@' && text[at] <= '~'))
            at++;
        return at;
    }
    if (kind == ']') {
        while (at < length && text[at] != '\a' && text[at] != '\033')
            at++;
        return at + (at < length && text[at] == '\033');
    }
    return kind == '(' || kind == ')' ? at : i;
}

/* Takes out what colours and moves a terminal's text. */
static size_t without_escapes(char *text, size_t length) {
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) {
        size_t end = text[i] == '\033' ? escape_end(text, length, i) : i;
        if (end == i)
            text[kept++] = text[i];
        i = end;
    }
    return kept;
}

static void keep(struct command_lines *lines, const char *bytes, size_t length) {
    size_t room = COMMAND_LINE_MAX - lines->length;
    lines->over |= length > room;
    length = length < room ? length : room;
    if (lines->length + length > lines->capacity) {
        lines->capacity = 2 * (lines->length + length);
        lines->text = lab_mem_resize(lines->text, lines->capacity, 1);
    }
    if (length > 0)
        memcpy(lines->text + lines->length, bytes, length);
    lines->length += length;
}

static void hand_over(struct command_lines *lines, take_line *line, void *state) {
    bool seen = lines->length == lines->seen; /* all of it */
    size_t length = without_escapes(lines->text, lines->length);
    lines->length = lines->seen = 0;
    lines->longer += lines->over;
    lines->over = false;
    if (length > 0 && !seen)
        line(state, lines->text, length);
}

/* A line ends: what was kept of it goes before. Most lines are read where they lie. */
static void end_line(struct command_lines *lines, const char *bytes, size_t length, take_line *line,
                     void *state) {
    if (lines->length > 0 || length > COMMAND_LINE_MAX || memchr(bytes, '\033', length)) {
        keep(lines, bytes, length);
        hand_over(lines, line, state);
    } else if (length > 0) {
        line(state, bytes, length);
    }
}

void command_lines_add(struct command_lines *lines, const char *bytes, size_t length,
                       take_line *line, void *state) {
    const char *end = bytes + length;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline : end, *returns;
        while ((returns = memchr(bytes, '\r', (size_t)(stop - bytes)))) {
            end_line(lines, bytes, (size_t)(returns - bytes), line, state);
            bytes = returns + 1;
            lines->redrawn = true;
        }
        if (!newline)
            break;
        end_line(lines, bytes, (size_t)(newline - bytes), line, state);
        bytes = newline + 1;
        lines->redrawn = false;
    }
    if (bytes < end)
        keep(lines, bytes, (size_t)(end - bytes));
}

/* What tqdm's and Lightning's bars end with. */
static bool is_bar(const char *text, size_t length) {
    return length > 0 && text[length - 1] == ']';
}

void command_lines_look(struct command_lines *lines, take_line *line, void *state) {
    if (lines->seen == lines->length || !lines->redrawn || lines->over)
        return;
    LAB_AUTO_FREE char *text = lab_mem_alloc(lines->length, 1);
    memcpy(text, lines->text, lines->length);
    size_t length = without_escapes(text, lines->length);
    if (!is_bar(text, length))
        return;
    lines->seen = lines->length;
    line(state, text, length);
}

int64_t command_lines_end(struct command_lines *lines, take_line *line, void *state) {
    hand_over(lines, line, state);
    int64_t longer = lines->longer;
    lab_mem_free(lines->text);
    *lines = (struct command_lines){0};
    return longer;
}
