/*
 * command/table.c: values that a program prints as a table, the names once and then a row for each
 * epoch or step, as fastai, YOLO and scikit-learn do:
 *
 *   epoch     train_loss  valid_loss  accuracy  time
 *   0         0.523112    0.312345    0.912345  00:12
 *
 * Columns lie between blanks, ',', '|' or "│"; names may have single blanks inside, which the
 * number of the first row's columns tells. The first one counts, another has a known name. Of
 * YOLO's evaluations the first one is a class, and the row of all classes is read:
 *
 *   Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|███| 4/4
 *     all        128        929      0.64       0.537      0.605      0.446
 */
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MIN 2
#define OTHER_MIN   3 /* of a head that ends the table */
#define COLUMNS_MAX 24
#define NAME_BYTES  48

struct layout {
    char names[COLUMNS_MAX][NAME_BYTES]; /* "" = it has no value that is kept */
    unsigned kinds[COLUMNS_MAX];         /* of its numbers (form.h) */
    int count;                           /* 0 = it is no table so */
    char group[NAME_BYTES];              /* that the next columns are of: "Box(P  R)"; "" = none */
};

struct command_table {
    struct layout narrow, wide; /* columns end at a blank, or at two */
    bool classes;
};

/* Also the bytes of "│" and "┃": names are of ASCII. */
static bool separates(char c) {
    return c == ' ' || c == '\t' || c == ',' || c == '|' || c == ';' || c == '\xe2' ||
           c == '\x94' || c == '\x82' || c == '\x83';
}

/* The next column: [*place, end); false = there is none. */
static bool next_column(const char *text, size_t length, bool wide, size_t *place,
                        size_t *ret_end) {
    while (*place < length && separates(text[*place]))
        (*place)++;
    *ret_end = *place;
    while (*ret_end < length &&
           (!separates(text[*ret_end]) || (wide && text[*ret_end] == ' ' && *ret_end + 1 < length &&
                                           !separates(text[*ret_end + 1]))))
        (*ret_end)++;
    return *ret_end > *place;
}

/* --- its head --- */

static bool is_name(const char *text, size_t length) {
    if (length == 0 || length >= NAME_BYTES || !isalpha((unsigned char)*text))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_/@.- ", text[i]))
            return false;
    return true;
}

/* What is no value of the training: an estimate, or how many were evaluated. */
static bool is_dropped(const char *name, bool of_class) {
    static const char *const counts[] = {"images", "instances", "labels"};
    bool dropped = strncmp(name, "remaining", 9) == 0 || strcmp(name, "eta") == 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        dropped |= of_class && strcmp(name, counts[i]) == 0;
    return dropped;
}

static const char *full_name(const char *name, bool of_class) {
    return !of_class                ? name
           : strcmp(name, "p") == 0 ? "precision"
           : strcmp(name, "r") == 0 ? "recall"
                                    : name;
}

/* In small letters, with '_' for blanks. */
static void add_text(char name[NAME_BYTES], const char *text) {
    size_t length = strlen(name);
    for (; *text && length + 1 < NAME_BYTES; text++)
        name[length++] = *text == ' ' ? '_' : (char)tolower((unsigned char)*text);
    name[length] = '\0';
}

/* "Train Loss", "Box(P", "mAP50-95)" */
static bool add_name(struct layout *layout, bool of_class, const char *text, size_t length) {
    const char *bracket = memchr(text, '(', length);
    if (bracket) {
        size_t group = (size_t)(bracket - text);
        if (!is_name(text, group))
            return false;
        memcpy(layout->group, text, group);
        layout->group[group] = '\0';
        text += group + 1;
        length -= group + 1;
    }
    bool closes = length > 0 && *layout->group && text[length - 1] == ')';
    length -= closes;
    if (layout->count == COLUMNS_MAX || !is_name(text, length))
        return false;
    char name[NAME_BYTES] = "", plain[NAME_BYTES];
    memcpy(plain, text, length);
    plain[length] = '\0';
    add_text(name, plain);
    if (!is_dropped(name, of_class)) {
        char *full = layout->names[layout->count];
        add_text(full, of_class ? "val_" : "");
        add_text(full, layout->group);
        add_text(full, *layout->group ? "_" : "");
        add_text(full, full_name(name, of_class));
    }
    layout->count++;
    layout->group[0] = closes ? '\0' : layout->group[0];
    return true;
}

static void read_head(struct layout *layout, const char *text, size_t length, bool wide,
                      bool classes) {
    bool known = false, bar = false;
    for (size_t place = 0, end; !bar && next_column(text, length, wide, &place, &end);
         place = end) {
        bar = classes && text[end - 1] == ':'; /* of progress follows */
        bool first = layout->count == 0,
             named = add_name(layout, classes && !first, text + place, end - bar - place);
        const char *name = named ? layout->names[layout->count - 1] : "";
        if (!named || (command_is_epoch(name) || command_is_step(name)) != (first && !classes)) {
            layout->count = 0;
            return;
        }
        known |= !first && (command_line_is_candidate(name, strlen(name)) ||
                            command_is_memory(name, strlen(name)));
    }
    for (int i = 0; i < layout->count; i++)
        layout->kinds[i] = command_is_epoch(layout->names[i]) ? COMMAND_IS_EPOCH | COMMAND_IS_NAMED
                           : command_is_step(layout->names[i])
                               ? COMMAND_IS_STEP | COMMAND_IS_NAMED
                               : COMMAND_IS_VALUE | COMMAND_IS_KNOWN;
    layout->count = known && layout->count >= COLUMNS_MIN ? layout->count : 0;
}

/* "precision    recall  f1-score   support": names of other columns, two blanks apart. */
static bool is_other_head(const char *text, size_t length) {
    int count = 0;
    for (size_t place = 0, end; next_column(text, length, true, &place, &end); place = end, count++)
        if (!is_name(text + place, end - place))
            return false;
    return count >= OTHER_MIN;
}

bool command_table_head(struct command_table **table, const char *text, size_t length) {
    struct command_table head = {0};
    size_t place = 0, end;
    head.classes = next_column(text, length, false, &place, &end) && end - place == 5 &&
                   strncasecmp(text + place, "class", 5) == 0;
    read_head(&head.narrow, text, length, false, head.classes);
    read_head(&head.wide, text, length, true, head.classes);
    if (head.narrow.count == 0 && head.wide.count == 0 && !(*table && is_other_head(text, length)))
        return false;
    if (!*table)
        *table = lab_mem_alloc(1, sizeof **table);
    **table = head;
    return true;
}

/* --- its rows --- */

/* "0.52", "1/100", "3.51G", "640:", "0.5s"; "00:12" is no value. */
static bool take_cell(const char *name, unsigned kind, struct command_draft *draft,
                      const char *text, size_t start, size_t end) {
    struct command_field field = {.name = name, .unit = "", .scale = 1, .of = -1, .kind = kind};
    double value, of;
    size_t at = command_number(text, end, start, COMMAND_UNGROUPED, &value);
    if (at == start)
        return false;
    field.number = command_draft_number(draft, start, at, value);
    if (at < end && text[at] == ':' && at + 1 < end) { /* its numbers vary, and mean nothing */
        for (size_t next = at; next < end && text[at] == ':'; at = next) {
            next = command_number(text, end, at + 1, COMMAND_UNGROUPED, &value);
            if (next > at + 1)
                command_draft_number(draft, at + 1, next, value);
        }
        return true;
    }
    if (!*name)
        return true;
    if (at < end && text[at] == '/' &&
        command_number(text, end, at + 1, COMMAND_UNGROUPED, &of) == end) {
        field.of = command_draft_number(draft, at + 1, end, of);
        at = end;
    }
    const struct command_unit *unit = at < end ? command_unit_find(text + at, end - at) : NULL;
    const char *letter = at < end && !unit && command_is_memory(name, strlen(name))
                             ? command_memory_letter(text[at])
                             : NULL;
    if (letter) {
        field.unit = letter;
        at++;
    } else if (at < end && !unit && command_suffix(text[at]) > 0) {
        field.scale = command_suffix(text[at++]);
        unit = at < end ? command_unit_find(text + at, end - at) : NULL;
    }
    if (unit && unit->unit) {
        field.unit = unit->unit;
        field.scale *= unit->scale;
        at = end;
    }
    at += at < end && text[at] == ':';
    return at == end && command_draft_add(draft, &field);
}

static bool read_row(const struct layout *layout, bool classes, struct command_draft *draft,
                     const char *text, size_t length) {
    size_t place = 0, end = 0;
    command_draft_begin(draft, COMMAND_UNGROUPED);
    for (int i = 0; i < layout->count; i++, place = end)
        if (!next_column(text, length, false, &place, &end) ||
            (!(classes && i == 0) &&
             !take_cell(layout->names[i], layout->kinds[i], draft, text, place, end)))
            return false;
    return layout->count > 0 &&
           (text[end - 1] == ':' || !next_column(text, length, false, &place, &end));
}

bool command_table_may_be_row(const struct command_table *table, const char *text, size_t length) {
    size_t place = 0;
    while (place < length && separates(text[place]))
        place++;
    if (!table->classes)
        return place < length && isdigit((unsigned char)text[place]);
    return length - place > 3 && memcmp(text + place, "all", 3) == 0 && separates(text[place + 3]);
}

bool command_table_row(struct command_table *table, struct command_draft *draft, const char *text,
                       size_t length) {
    bool narrow = read_row(&table->narrow, table->classes, draft, text, length);
    if (!narrow && !read_row(&table->wide, table->classes, draft, text, length))
        return false;
    *(narrow ? &table->wide : &table->narrow) = (struct layout){0}; /* so are all of its rows */
    return true;
}
