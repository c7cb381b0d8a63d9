/*
 * command/kept.c: forms of lines that were met before. A line has one of them where the text
 * between its numbers is the same; only its numbers are read then. Blanks before a number may be
 * more or fewer, since columns are aligned, and a bar of progress may be longer or shorter.
 */
#include "workload/command/form.h"

#include <string.h>

#define FORMS_MOST      32
#define ASCII_BAR_LEAST 8
#define MISSED_MANY     256 /* lines in a row: forms are no use to this program */
#define TRY_EACH        16  /* then, and for a place once all are taken: one line of so many */

enum { NUMBER, BAR, END };

struct piece { /* of a line: what stands before a number or a bar, or behind the last */
    uint32_t length;
    unsigned char before; /* what comes behind it */
    bool blank;           /* one at least follows it */
    const char *text;
};

struct kept {
    struct command_form form;
    struct piece *pieces; /* the last is an END */
    struct piece tail;    /* that one: a look at it spares most others */
    enum command_groups groups;
    bool bare; /* no line of it has a label */
    int next;  /* the form of the line that came after it last */
};

struct command_forms {
    struct kept *items[FORMS_MOST];
    int count, oldest, last;
    int64_t missed, missed_in_a_row;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* "███▏", "━━━╸", "[=====>....": where the bar at `place` ends, with the blanks behind it; or
 * `place`. */
static size_t bar_end(const char *text, size_t length, size_t place) {
    size_t at = place;
    if (text[at] == '\xe2') {
        for (; length - at >= 3 && text[at] == '\xe2'; at += 3)
            if (text[at + 1] != '\x96' && memcmp(text + at + 1, "\x94\x81", 2) != 0 &&
                memcmp(text + at + 1, "\x95\xb8", 2) != 0)
                break;
    } else if (place > 0 && text[place - 1] == '[' && (text[at] == '=' || text[at] == '>')) {
        while (at < length && (text[at] == '=' || text[at] == '>' || text[at] == '.'))
            at++;
        at = at - place < ASCII_BAR_LEAST ? place : at;
    }
    while (at > place && at < length && is_blank(text[at]))
        at++;
    return at;
}

static bool match(const struct kept *kept, const char *text, size_t length, double *numbers) {
    size_t place = 0;
    for (const struct piece *piece = kept->pieces;; piece++) {
        if (length - place < piece->length || memcmp(text + place, piece->text, piece->length) != 0)
            return false;
        place += piece->length;
        if (piece->before == END)
            return place == length;
        if (piece->blank) {
            if (place >= length || !is_blank(text[place]))
                return false;
            while (place < length && is_blank(text[place]))
                place++;
        }
        size_t end = place >= length ? place
                     : piece->before == BAR
                         ? bar_end(text, length, place)
                         : command_number(text, length, place, kept->groups, numbers++);
        if (end == place)
            return false;
        place = end;
    }
}

static bool ends_so(const struct piece *tail, const char *text, size_t length) {
    return length >= tail->length &&
           memcmp(text + length - tail->length, tail->text, tail->length) == 0;
}

const struct command_form *command_forms_next(struct command_forms *forms, bool bare,
                                              const char *text, size_t length,
                                              double numbers[COMMAND_FORM_MAX]) {
    struct kept *last = forms->items[forms->last], *next = forms->items[last->next];
    if ((bare && !next->bare) || !match(next, text, length, numbers))
        return NULL;
    forms->missed_in_a_row = 0;
    forms->last = last->next;
    return &next->form;
}

const struct command_form *command_forms_find(struct command_forms *forms, const char *text,
                                              size_t length, double numbers[COMMAND_FORM_MAX]) {
    if (!forms)
        return NULL;
    struct kept *last = forms->items[forms->last];
    int found = last->next;
    if (!match(forms->items[found], text, length, numbers)) {
        bool tried = forms->missed_in_a_row < MISSED_MANY || forms->missed_in_a_row % TRY_EACH == 0;
        for (found = tried ? 0 : forms->count; found < forms->count; found++)
            if (ends_so(&forms->items[found]->tail, text, length) &&
                match(forms->items[found], text, length, numbers))
                break;
        if (found == forms->count) {
            forms->missed_in_a_row++;
            return NULL;
        }
    }
    forms->missed_in_a_row = 0;
    last->next = forms->last = found;
    return &forms->items[found]->form;
}

/* What stands between the line's numbers and bars; `pieces` NULL: they are only counted. */
static size_t cut_pieces(const struct command_draft *draft, const char *text, size_t length,
                         struct piece *pieces) {
    size_t count = 0, start = 0;
    for (int i = 0; i <= draft->number_count; i++) {
        bool last = i == draft->number_count;
        size_t stop = last ? length : draft->places[i].start, end = stop;
        for (size_t at = start, bar; at < stop; at++) {
            if ((bar = bar_end(text, stop, at)) == at)
                continue;
            if (pieces)
                pieces[count] = (struct piece){(uint32_t)(at - start), BAR, false, text + start};
            count++;
            start = bar;
            at = bar - 1;
        }
        while (!last && end > start && is_blank(text[end - 1]))
            end--;
        if (pieces)
            pieces[count] = (struct piece){(uint32_t)(end - start), last ? END : NUMBER, end < stop,
                                           text + start};
        count++;
        start = last ? length : draft->places[i].end;
    }
    return count;
}

/* In one block, with what it points to. */
static struct kept *copy(const struct command_draft *draft, const char *text, size_t length) {
    int fields = draft->form.count;
    size_t fields_at = sizeof(struct kept),
           pieces_at = fields_at + (size_t)fields * sizeof(struct command_field),
           names_at = pieces_at + cut_pieces(draft, text, length, NULL) * sizeof(struct piece),
           text_at = names_at + draft->length;
    char *block = lab_mem_alloc(text_at + length, 1);
    struct kept *kept = (void *)block;
    struct command_field *items = (void *)(block + fields_at);
    *kept = (struct kept){draft->form, (void *)(block + pieces_at), {0}, draft->groups, false, 0};
    kept->form.fields = items;
    memcpy(block + names_at, draft->names, draft->length);
    memcpy(block + text_at, text, length);
    for (int i = 0; i < fields; i++) {
        items[i] = draft->fields[i];
        items[i].name = block + names_at + (draft->fields[i].name - draft->names);
    }
    kept->tail = kept->pieces[cut_pieces(draft, block + text_at, length, kept->pieces) - 1];
    return kept;
}

void command_forms_keep(struct command_forms **all, const struct command_draft *draft, bool bare,
                        const char *text, size_t length) {
    if (!draft->lasting)
        return;
    if (!*all)
        *all = lab_mem_alloc(1, sizeof **all);
    struct command_forms *forms = *all;
    int place = forms->count;
    if (place == FORMS_MOST) { /* some programs' lines are all new */
        if (forms->missed++ % TRY_EACH)
            return;
        place = forms->oldest;
        forms->oldest = (forms->oldest + 1) % FORMS_MOST;
        lab_mem_free(forms->items[place]);
    } else {
        forms->count++;
    }
    forms->items[place] = copy(draft, text, length);
    forms->items[place]->bare = bare;
    forms->items[place]->next = place;
    forms->items[forms->last]->next = place;
    forms->last = place;
}

void command_forms_release(struct command_forms *forms) {
    for (int i = 0; forms && i < forms->count; i++)
        lab_mem_free(forms->items[i]);
    lab_mem_free(forms);
}
