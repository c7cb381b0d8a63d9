/*
 * command/names.c: names of a program's values, as it first spelled them. "Loss" of its JSON and
 * "loss" of its lines are one metric, and so are "acc 0.902" and "acc 90.2%", in one unit. Forms of
 * lines are kept with what is found here, so that most lines need no look at it.
 */
#include "workload/command/form.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define NAMES_MOST 1024 /* others stay as they are */
#define SLOTS      (2 * NAMES_MOST)

struct name {
    uint32_t hash; /* in either case */
    bool percent;
    bool fraction; /* its first value is at most 1 */
    char *text;    /* NULL = an empty slot */
};

struct command_names {
    struct name slots[SLOTS]; /* from that of its hash on */
    int count;
};

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)(*text | 0x20)) * 16777619u;
    return hash;
}

/* As it is spelled, else in another case; NULL = it is new. */
static struct name *find(struct command_names *names, const char *text, uint32_t hash) {
    struct name *other = NULL;
    for (uint32_t i = hash % SLOTS; names->slots[i].text; i = (i + 1) % SLOTS) {
        struct name *name = &names->slots[i];
        if (name->hash != hash || strcasecmp(name->text, text) != 0)
            continue;
        if (strcmp(name->text, text) == 0)
            return name;
        other = other ? other : name;
    }
    return other;
}

static struct name *add(struct command_names *names, const char *text, uint32_t hash) {
    if (names->count == NAMES_MOST)
        return NULL;
    uint32_t i = hash % SLOTS;
    while (names->slots[i].text)
        i = (i + 1) % SLOTS;
    names->slots[i] = (struct name){.hash = hash, .text = lab_mem_alloc(strlen(text) + 1, 1)};
    memcpy(names->slots[i].text, text, strlen(text) + 1);
    names->count++;
    return &names->slots[i];
}

static struct command_names *made(struct command_names **names) {
    if (!*names)
        *names = lab_mem_alloc(1, sizeof **names);
    return *names;
}

const char *command_names_spell(struct command_names **names, const char *text) {
    uint32_t hash = hash_of(text);
    struct name *name = find(made(names), text, hash);
    name = name ? name : add(*names, text, hash);
    return name ? name->text : text;
}

/* Whether the line has a value of exactly that name: {"b": 1, "B": 2} are two. */
static bool has(const struct command_form *form, const char *text) {
    for (int i = 0; i < form->count; i++)
        if (strcmp(form->fields[i].name, text) == 0)
            return true;
    return false;
}

/* "12/14", not "0.7/0.75" */
static bool is_share(const struct command_field *field, const double *numbers) {
    return field->kind & COMMAND_IS_SHARE &&
           numbers[field->number] == floor(numbers[field->number]) &&
           numbers[field->of] == floor(numbers[field->of]);
}

/* As the name's first values were: 0.902 or 90.2%. */
static void settle_unit(struct command_field *field, const struct name *name, double value) {
    bool percent = strcmp(field->unit, "%") == 0;
    if (field->kind & COMMAND_IS_SHARE) {
        field->kind |= !name->percent && name->fraction ? COMMAND_IS_FRACTION : 0;
    } else if (percent && !name->percent) {
        field->unit = "";
        field->scale *= name->fraction ? 0.01 : 1;
    } else if (!*field->unit && name->percent) {
        field->unit = "%";
        field->scale *= fabs(value) <= 1 ? 100 : 1;
    }
}

void command_names_settle(struct command_names **all, struct command_draft *draft) {
    struct command_names *names = made(all);
    for (int i = 0; i < draft->form.count; i++) {
        struct command_field *field = &draft->fields[i];
        if (!(field->kind & COMMAND_IS_VALUE))
            continue;
        uint32_t hash = hash_of(field->name);
        struct name *name = find(names, field->name, hash);
        double value = draft->numbers[field->number];
        if (name && strcmp(name->text, field->name) != 0 && has(&draft->form, name->text))
            name = NULL;
        if (name) {
            memcpy(draft->names + (field->name - draft->names), name->text, strlen(name->text));
            settle_unit(field, name, value);
        } else if ((name = add(names, field->name, hash))) {
            name->percent = strcmp(field->unit, "%") == 0 || is_share(field, draft->numbers);
            name->fraction = fabs(value) <= 1;
        }
    }
}

void command_names_release(struct command_names *names) {
    for (int i = 0; names && i < SLOTS; i++)
        lab_mem_free(names->slots[i].text);
    lab_mem_free(names);
}
