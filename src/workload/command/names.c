/*
 * command/names.c: names of a program's values, as it first spelled them. "Loss" of its JSON and
 * "loss" of its lines are one metric, and so are "acc 0.902" and "acc 90.2%", in one unit: the
 * first. Forms of
 * lines are kept with what is found here, so that most lines need no look at it. A loss of each
 * step and the mean of an epoch by the same name are two, since no curve could show both.
 */
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define NAMES_MOST 8192 /* others stay as they are */
#define SLOTS      (2 * NAMES_MOST)

struct name {
    uint32_t hash;    /* in either case */
    const char *unit; /* of its first value */
    bool percent;
    bool fraction;          /* its first value is at most 1 */
    bool by_step, by_epoch; /* lines that have it count steps, or epochs alone */
    bool within;            /* or steps within an epoch and those of all epochs */
    int field;              /* which one of the line that has it last */
    int64_t line;
    char *text; /* NULL = an empty slot */
};

struct command_names {
    struct name slots[SLOTS]; /* from that of its hash on */
    int count;
    int64_t line; /* that was settled last: they are counted */
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
    names->slots[i] =
        (struct name){.hash = hash, .text = lab_mem_alloc(strlen(text) + 1, 1), .unit = ""};
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

static bool has_kind(const struct command_form *form, unsigned kinds) {
    for (int i = 0; i < form->count; i++)
        if (form->fields[i].kind & kinds)
            return true;
    return false;
}

/* "epoch 001: 100 / 2000 loss=2.5, num_updates=100" (fairseq) */
static bool counts_within(const struct command_form *form) {
    for (int i = 0; i < form->count && form->global; i++)
        if (form->fields[i].kind & (COMMAND_IS_STEP | COMMAND_IS_PART) &&
            !(form->fields[i].kind & COMMAND_IS_GLOBAL))
            return true;
    return false;
}

/* "12/14", not "0.7/0.75" */
static bool is_share(const struct command_field *field, const double *numbers) {
    return field->kind & COMMAND_IS_SHARE &&
           numbers[field->number] == floor(numbers[field->number]) &&
           numbers[field->of] == floor(numbers[field->of]);
}

/* Whether it counts steps or epochs, or has a loss or the like. */
static bool is_of_training(const struct command_form *form) {
    bool known =
        has_kind(form, COMMAND_IS_STEP | COMMAND_IS_PART | COMMAND_IS_EPOCH | COMMAND_IS_KNOWN);
    for (int i = 0; i < form->count && !known; i++)
        known = command_line_is_candidate(form->fields[i].name, strlen(form->fields[i].name));
    return known;
}

/* "tps" of a training: torchtitan's and others' tokens per second; fairseq's words. */
static const char *unit_of_name(const char *name) {
    static const struct {
        const char *name, *unit;
    } rates[] = {{"tps", "tokens/s"}, {"wps", "words/s"}, {"tgs", "tokens/s/GPU"}};
    size_t length = strlen(name);
    if (length < 3 || (length > 3 && !strchr("_/.", name[length - 4])))
        return "";
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (strcasecmp(name + length - 3, rates[i].name) == 0)
            return rates[i].unit;
    return "";
}

/* As the name's first values were: 0.902 or 90.2%, 512 MiB and not 0.5 GiB. */
static void settle_unit(struct command_field *field, const struct name *name, double value) {
    bool percent = strcmp(field->unit, "%") == 0;
    double bytes = command_unit_bytes(field->unit), first = command_unit_bytes(name->unit);
    if (bytes > 0 && first > 0) {
        field->scale *= bytes / first;
        field->unit = name->unit;
    }
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

static void spell(struct command_draft *draft, const struct command_field *field,
                  const struct name *name) {
    memcpy(draft->names + (field->name - draft->names), name->text, strlen(name->text));
}

/* The name of the field, which is new where none is found; NULL = there is no room for another.
 * `of_epochs`: its line is about an epoch, though it may have the steps of all. */
static struct name *settle(struct command_names *names, struct command_draft *draft,
                           struct command_field *field, bool by_epoch, bool of_epochs) {
    double value = draft->numbers[field->number];
    uint32_t hash = hash_of(field->name);
    struct name *name = find(names, field->name, hash);
    if (name && ((name->by_step && by_epoch) || (name->within && of_epochs)) &&
        !(field->kind & COMMAND_IS_EPOCH)) {
        spell(draft, field, name);
        command_draft_rename(draft, field, "", "_epoch");
        hash = hash_of(field->name);
        name = find(names, field->name, hash);
    }
    if (name) {
        spell(draft, field, name);
        settle_unit(field, name, value);
    } else if ((name = add(names, field->name, hash))) {
        name->unit = field->unit;
        name->percent = strcmp(field->unit, "%") == 0 || is_share(field, draft->numbers);
        name->fraction = fabs(value) <= 1;
    }
    return name;
}

bool command_names_settle(struct command_names **all, struct command_draft *draft) {
    struct command_names *names = made(all);
    struct command_form *form = &draft->form;
    bool by_step = !form->bar && has_kind(form, COMMAND_IS_STEP | COMMAND_IS_PART),
         by_epoch = !form->bar && !by_step && has_kind(form, COMMAND_IS_EPOCH),
         within = counts_within(form),
         of_epochs = form->global && !within && has_kind(form, COMMAND_IS_EPOCH),
         trains = is_of_training(form), outdated = false;
    int count = form->count;
    form->count = 0;
    names->line++;
    for (int i = 0; i < count; i++) {
        struct command_field field = draft->fields[i];
        if (trains && !*field.unit)
            field.unit = unit_of_name(field.name);
        struct name *name = field.kind & COMMAND_IS_VALUE
                                ? settle(names, draft, &field, by_epoch, of_epochs)
                                : NULL;
        if (name && form->object && name->line == names->line) {
            draft->fields[name->field] = field;
            continue;
        }
        if (name) {
            outdated |= by_step && !name->by_step && name->by_epoch;
            name->by_step |= by_step;
            name->by_epoch |= by_epoch;
            name->within |= within;
            name->line = names->line;
            name->field = form->count;
        }
        draft->fields[form->count++] = field;
    }
    return outdated;
}

void command_names_release(struct command_names *names) {
    for (int i = 0; names && i < SLOTS; i++)
        lab_mem_free(names->slots[i].text);
    lab_mem_free(names);
}
