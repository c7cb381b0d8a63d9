/*
 * study_cut.c: which lines of a table a terminal shows where it has no room for all: those that the
 * answer names, then one of each value of the leading axis, then the rest in order. Lines that are
 * compared with each other stay together.
 */
#include "report/study/study_internal.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char byte) {
    return isalnum((unsigned char)byte) || strchr("_.+-", byte) != NULL;
}

/* A number alone says nothing: it counts with its axis's title, "GPU 7". */
bool study_cut_is_named(const char *words, const char *title, const char *value) {
    LAB_AUTO(str, name);
    bool number = value[strspn(value, "0123456789+.")] == '\0';
    if (!words || !*value || (number && !title))
        return false;
    lab_str_printf(&name, "%s%s%s", number ? title : "", number ? " " : "", value);
    for (const char *at = words; (at = strcasestr(at, name.text)); at++) {
        const char *end = at + name.length;
        bool whole = !is_word(*end) || (strchr(".+-", *end) && !isalnum((unsigned char)end[1]));
        if (whole && (at == words || !is_word(at[-1])))
            return true;
    }
    return false;
}

/* Its lines with those of the same group after it. */
static int group_size(const struct study_line *lines, int count, int first) {
    int size = 0;
    while (first + size < count && lines[first + size].group == lines[first].group)
        size++;
    return size;
}

static bool is_group_named(const struct study_line *lines, int first, int size) {
    bool named = false;
    for (int i = first; i < first + size; i++)
        named |= lines[i].named;
    return named;
}

static bool has_leading(const struct study_line *lines, int count, int leading) {
    for (int i = 0; i < count; i++)
        if (lines[i].shown && lines[i].leading == leading)
            return true;
    return false;
}

/* Groups of a round that fit: named ones in rounds 0 and 2, one of each leading value in 0 and 1.
 */
static int take_round(struct study_line *lines, int count, int room, int round) {
    for (int i = 0, size; i < count && room > 0; i += size) {
        size = group_size(lines, count, i);
        bool wanted = (round % 2 || is_group_named(lines, i, size)) &&
                      (round > 1 || !has_leading(lines, count, lines[i].leading));
        if (lines[i].shown || !wanted || size > room)
            continue;
        for (int k = i; k < i + size; k++)
            lines[k].shown = true;
        room -= size;
    }
    return room;
}

int study_cut(struct study_line *lines, int count, int most) {
    int room = most, shown = 0;
    if (count <= most + 1) /* a line, or one that says that it is left out */
        room = count;
    for (int round = 0; round < 4; round++)
        room = take_round(lines, count, room, round);
    for (int i = 0; i < count; i++)
        shown += lines[i].shown;
    for (int i = 0; i < count && shown == 0 && i < most; i++) /* no group fits */
        lines[i].shown = true;
    return count - (shown ? shown : most);
}

bool study_cut_skips(const struct study_line *lines, int count) {
    for (int i = 1; i < count; i++)
        if (lines[i].shown && !lines[i - 1].shown)
            return true;
    return false;
}
