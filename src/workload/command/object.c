/*
 * command/object.c: a line that is an object, as JSON writes it or as Python prints a dictionary:
 * {"loss": 1.9, "time": {"epoch_s": NaN}}, {'loss': 1.9, 'done': False}. A JSON library refuses
 * NaN, Infinity, 1e400, integers beyond 64 bits, keys that come twice and quotes of Python. A
 * program that prints one of them still has values that count, and a line that is dropped whole
 * would leave an older value as the last one.
 */
#include "model/metric_name.h"
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX  16
#define NAME_BYTES 128
#define ORDERED    "OrderedDict" /* as Python prints one: OrderedDict([('loss', 2.1)]) */

struct object {
    const char *line;
    size_t length, place;
    char name[NAME_BYTES];   /* keys so far, joined by '.' */
    const char *of;          /* what its values are of: "val_"; "" = the training */
    char metric[NAME_BYTES]; /* that "value" is of: {"name": "loss", "value": 1.5}; "" = none */
    struct command_draft *draft;
};

static bool begins(const char *text, size_t length, const char *with) {
    return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static char here(const struct object *object) {
    return object->place < object->length ? object->line[object->place] : '\0';
}

static void skip_blanks(struct object *object) {
    while (isspace((unsigned char)here(object)))
        object->place++;
}

static bool take(struct object *object, char c) {
    skip_blanks(object);
    if (here(object) != c)
        return false;
    object->place++;
    return true;
}

/* Text in quotes of either kind; what it holds goes to `key` unless that is NULL. Keys that are too
 * long or hold control characters are "". */
static bool take_text(struct object *object, char *key, size_t room) {
    skip_blanks(object);
    char quote = here(object);
    size_t length = 0;
    bool plain = true;
    if (quote != '"' && quote != '\'')
        return false;
    for (object->place++; object->place < object->length && here(object) != quote;
         object->place++) {
        if (here(object) == '\\') {
            object->place++;
            plain &= here(object) && strchr("\"'\\/", here(object)); /* \n, \u0007 */
        }
        plain &= !iscntrl((unsigned char)here(object)) && length + 1 < room;
        if (key && length + 1 < room)
            key[length++] = here(object);
    }
    if (object->place >= object->length)
        return false;
    object->place++;
    if (key)
        key[plain ? length : 0] = '\0';
    return true;
}

static bool take_value(struct object *object, size_t name_length, int depth, bool named);
static bool take_number(struct object *object, bool named, const char *unit);

/* "[0.5]" of "tensor([0.5])": the only element of a list. */
static bool take_single(struct object *object, bool named) {
    double value;
    size_t start = object->place + 1;
    if (here(object) != '[')
        return false;
    size_t end = command_number(object->line, object->length, start, COMMAND_UNGROUPED, &value);
    if (end == start || end >= object->length || object->line[end] != ']')
        return false;
    object->place = start;
    take_number(object, named, "");
    object->place = end + 1;
    return true;
}

/* Elements of a list have no names of their own: they are passed over. */
static bool take_list(struct object *object, char end, int depth) {
    object->place++;
    if (take(object, end))
        return true;
    do {
        skip_blanks(object);
        if (here(object) == end) /* (3,) */
            break;
        if (!take_value(object, 0, depth + 1, false))
            return false;
    } while (take(object, ','));
    return take(object, end);
}

/* A key and its value, with a mark between them. */
static bool take_member(struct object *object, char mark, size_t name_length, int depth,
                        bool named) {
    char key[NAME_BYTES];
    if (!take_text(object, key, sizeof key) || !take(object, mark))
        return false;
    size_t length = strlen(key), point = name_length > 0;
    bool fits = length > 0 && name_length + point + length < sizeof object->name;
    if (fits) {
        memcpy(object->name + name_length, ".", point);
        memcpy(object->name + name_length + point, key, length + 1);
    }
    if (!take_value(object, name_length + (fits ? point + length : 0), depth + 1, named && fits))
        return false;
    object->name[name_length] = '\0';
    return true;
}

static bool take_map(struct object *object, size_t name_length, int depth, bool named) {
    object->place++;
    if (take(object, '}'))
        return true;
    do {
        if (!take_member(object, ':', name_length, depth, named))
            return false;
    } while (take(object, ','));
    return take(object, '}');
}

/* "[('loss', 2.1), ('step', 4)]" of an OrderedDict */
static bool take_pairs(struct object *object, size_t name_length, int depth, bool named) {
    object->place++;
    do {
        if (!take(object, '(') || !take_member(object, ',', name_length, depth, named) ||
            !take(object, ')'))
            return false;
    } while (take(object, ','));
    return take(object, ']') && take(object, ')');
}

/* true, None: a word that is no value of ours; tensor(0.5, device='cuda:0'), np.float32(0.5): the
 * value that it holds. */
static bool take_word(struct object *object, size_t name_length, int depth, bool named) {
    size_t start = object->place;
    while (command_is_word(here(object)) || here(object) == '.')
        object->place++;
    if (object->place == start || here(object) != '(')
        return object->place > start;
    bool ordered = begins(object->line + start, object->place - start, ORDERED);
    object->place++;
    if (ordered && here(object) == '[')
        return take_pairs(object, name_length, depth, named);
    if (!take_single(object, named) && !take_value(object, name_length, depth + 1, named))
        return false;
    while (take(object, ',')) {
        skip_blanks(object);
        while (command_is_word(here(object)))
            object->place++;
        if (take(object, '=') && !take_value(object, 0, depth + 1, false))
            return false;
    }
    return take(object, ')');
}

static unsigned step_kind(const char *name) {
    return COMMAND_IS_STEP | (command_is_global(name) ? COMMAND_IS_GLOBAL : 0);
}

/* "timestamp", "metadata.lineno": of a log's line, no value. */
static bool is_of_log(const char *name) {
    static const char *const keys[] = {"timestamp", "lineno", "unix_time", "unix_timestamp"};
    const char *point = strrchr(name, '.');
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcasecmp(point ? point + 1 : name, keys[i]) == 0)
            return true;
    return false;
}

/* What a key counts; 0 = nothing: those that begin with '_' are of a tracker, such as wandb's
 * _timestamp. */
static unsigned kind_of(const char *name) {
    return command_is_step(name)             ? step_kind(name)
           : *name == '_' || is_of_log(name) ? 0
           : command_is_epoch(name)          ? COMMAND_IS_EPOCH | COMMAND_IS_VALUE
           : lab_str_equal(name, "rank")     ? COMMAND_IS_RANK | COMMAND_IS_VALUE
                                             : COMMAND_IS_VALUE;
}

/* False: no number is there. */
static bool take_number(struct object *object, bool named, const char *unit) {
    double value;
    size_t end =
        command_number(object->line, object->length, object->place, COMMAND_UNGROUPED, &value);
    if (end == object->place)
        return false;
    int number = command_draft_number(object->draft, object->place, end, value);
    unsigned kind = named && number >= 0 ? kind_of(object->name) : 0;
    if (kind)
        command_draft_add(object->draft,
                          &(struct command_field){object->name, unit, 1, number, -1, kind});
    object->place = end;
    return true;
}

/* Numbers of a text have no names: lines that differ in a date are of one form. */
static void take_numbers(struct object *object, size_t start) {
    for (size_t at = start, end; at < object->place; at = end) {
        double value;
        end = at + 1;
        if (!isdigit((unsigned char)object->line[at]))
            continue;
        end = command_number(object->line, object->place, at, COMMAND_UNGROUPED, &value);
        if (end > at)
            command_draft_number(object->draft, at, end, value);
        end = end > at ? end : at + 1;
    }
}

/* "val_" of {"split": "val"}; NULL = the key, or what it has, is none of these. */
static const char *part_of(const char *key, const char *text, size_t length) {
    static const char *const keys[] = {"split", "mode", "phase", "stage",   "subset", "type",
                                       "event", "kind", "set",   "dataset", "prefix"};
    static const char *const parts[][2] = {
        {"val", "val_"},         {"valid", "val_"}, {"validation", "val_"},
        {"dev", "val_"},         {"eval", "eval_"}, {"evaluate", "eval_"},
        {"evaluation", "eval_"}, {"test", "test_"}, {"testing", "test_"}};
    bool known = false;
    key += *key == '_';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        known |= strcasecmp(key, keys[i]) == 0;
    for (size_t i = 0; known && i < sizeof parts / sizeof *parts; i++) {
        size_t part = strlen(parts[i][0]);
        if (length >= part && strncasecmp(text, parts[i][0], part) == 0 &&
            (length == part || text[part] == '_')) /* "val_iter" */
            return parts[i][1];
    }
    return NULL;
}

/* Whether the text of the key names the metric that "value" is of. */
static bool names_metric(const char *key) {
    static const char *const keys[] = {"name", "metric", "metric_name", "key", "tag"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (lab_str_equal(key, keys[i]))
            return true;
    return false;
}

/* 'iter': '10/20', 'epoch': '1/2': of so many; the object counts as a printed line does then. */
static bool take_counted(struct object *object, size_t start, size_t slash, size_t end) {
    double value, of;
    unsigned kind = kind_of(object->name);
    if (!(kind & (COMMAND_IS_STEP | COMMAND_IS_EPOCH)) || object->line[slash] != '/' ||
        command_number(object->line, end, start, COMMAND_UNGROUPED, &value) != slash ||
        command_number(object->line, end, slash + 1, COMMAND_UNGROUPED, &of) != end)
        return false;
    int number = command_draft_number(object->draft, start, slash, value),
        total = command_draft_number(object->draft, slash + 1, end, of);
    kind = (kind & ~(unsigned)COMMAND_IS_VALUE) | COMMAND_IS_NAMED;
    if (number >= 0 && total >= 0)
        command_draft_add(object->draft,
                          &(struct command_field){object->name, "", 1, number, total, kind});
    object->draft->form.object = false;
    return true;
}

/* 'loss': '1.8' is a value, as some print it; 'name': '1.8b' is text. */
static bool take_quoted(struct object *object, bool named) {
    size_t start = object->place;
    if (named && names_metric(object->name))
        return take_text(object, object->metric, sizeof object->metric);
    double value;
    size_t end = command_number(object->line, object->length, start + 1, COMMAND_UNGROUPED, &value);
    if (!take_text(object, NULL, 0))
        return false;
    const char *of =
        named ? part_of(object->name, object->line + start + 1, object->place - start - 2) : NULL;
    object->of = of ? of : object->of;
    if (named && take_counted(object, start + 1, end, object->place - 1))
        return true;
    size_t stop = object->place;
    const char *letter = named && end > start + 1 && end == stop - 2 &&
                                 command_is_memory(object->name, strlen(object->name))
                             ? command_memory_letter(object->line[end])
                             : NULL;
    if (end > start + 1 && (letter || end == stop - 1)) {
        object->place = start + 1;
        take_number(object, named, letter ? letter : "");
        object->place = stop;
    } else {
        take_numbers(object, start);
    }
    return true;
}

static bool take_value(struct object *object, size_t name_length, int depth, bool named) {
    skip_blanks(object);
    char first = here(object);
    if (depth > DEPTH_MAX)
        return false;
    if (first == '{')
        return take_map(object, name_length, depth, named);
    if (first == '[' || first == '(')
        return take_list(object, first == '[' ? ']' : ')', depth);
    if (first == '"' || first == '\'')
        return take_quoted(object, named);
    return take_number(object, named, "") || take_word(object, name_length, depth, named);
}

/* {"name": "loss", "value": 1.5, "time_ms": 17}: one metric, what else it has is of a log. */
static void name_value(struct object *object) {
    struct command_draft *draft = object->draft;
    struct command_field *value = NULL;
    for (int i = 0; i < draft->form.count; i++)
        if (lab_str_equal(draft->fields[i].name, "value"))
            value = &draft->fields[i];
    if (!value || !*object->metric)
        return;
    int count = 0;
    for (int i = 0; i < draft->form.count; i++) {
        struct command_field field = draft->fields[i];
        const char *end = strrchr(field.name, '.');
        if (&draft->fields[i] == value) {
            field.name = "";
            command_draft_rename(draft, &field, object->metric, "");
        } else if (end && lab_str_equal(end, ".epoch_num")) {
            field.kind = COMMAND_IS_EPOCH; /* MLPerf */
        }
        if (*field.name && (&draft->fields[i] == value || field.kind != COMMAND_IS_VALUE))
            draft->fields[count++] = field;
    }
    draft->form.count = count;
}

bool command_object_line(struct command_draft *draft, const char *line, size_t length) {
    size_t start = 0, end = length;
    while (start < end && isspace((unsigned char)line[start]))
        start++;
    while (end > start && isspace((unsigned char)line[end - 1]))
        end--;
    if (end - start < 2 || !((line[start] == '{' && line[end - 1] == '}') ||
                             (begins(line + start, end - start, ORDERED) && line[end - 1] == ')')))
        return false;
    struct object object = {.line = line, .length = end, .place = start, .of = "", .draft = draft};
    command_draft_begin(draft, COMMAND_UNGROUPED);
    draft->form.object = true;
    if (!take_value(&object, 0, 0, true) || object.place != end)
        return false;
    name_value(&object);
    draft->form.evaluation = !draft->form.object && *object.of;
    draft->form.head = draft->form.evaluation ? object.of : NULL;
    for (int i = 0; i < draft->form.count && *object.of; i++)
        if (draft->fields[i].kind == COMMAND_IS_VALUE &&
            !lab_metric_name_is_evaluation(draft->fields[i].name))
            command_draft_rename(draft, &draft->fields[i], object.of, "");
    return true;
}
