/*
 * command/object.c: a line that is an object, as JSON writes it or as Python prints a dictionary:
 * {"loss": 1.9, "time": {"epoch_s": NaN}}, {'loss': 1.9, 'done': False}. A JSON library refuses
 * NaN, Infinity, 1e400, integers beyond 64 bits, keys that come twice and quotes of Python. A
 * program that prints one of them still has values that count, and a line that is dropped whole
 * would leave an older value as the last one.
 */
#include "workload/command/command.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define DEPTH_MAX  16
#define COUNT_MAX  256 /* values of one line */
#define NAME_BYTES 128

struct object {
    const char *line;
    size_t length, place;
    char name[NAME_BYTES]; /* keys so far, joined by '.' */
    double values[COUNT_MAX];
    char names[COUNT_MAX][NAME_BYTES];
    bool counts[COUNT_MAX]; /* steps or ranks: no value */
    int count;
};

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

static bool take_map(struct object *object, size_t name_length, int depth, bool named) {
    object->place++;
    if (take(object, '}'))
        return true;
    do {
        char key[NAME_BYTES];
        if (!take_text(object, key, sizeof key) || !take(object, ':'))
            return false;
        size_t length = strlen(key), point = name_length > 0;
        bool fits = length > 0 && name_length + point + length < sizeof object->name;
        if (fits) {
            memcpy(object->name + name_length, ".", point);
            memcpy(object->name + name_length + point, key, length + 1);
        }
        if (!take_value(object, name_length + (fits ? point + length : 0), depth + 1,
                        named && fits))
            return false;
        object->name[name_length] = '\0';
    } while (take(object, ','));
    return take(object, '}');
}

/* true, None: a word that is no value of ours; tensor(0.5, device='cuda:0'), np.float32(0.5): the
 * value that it holds. */
static bool take_word(struct object *object, size_t name_length, int depth, bool named) {
    size_t start = object->place;
    while (command_is_word(here(object)) || here(object) == '.')
        object->place++;
    if (object->place == start || here(object) != '(')
        return object->place > start;
    object->place++;
    if (!take_value(object, name_length, depth + 1, named))
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

static bool take_value(struct object *object, size_t name_length, int depth, bool named) {
    double value;
    skip_blanks(object);
    char first = here(object);
    if (depth > DEPTH_MAX)
        return false;
    if (first == '{')
        return take_map(object, name_length, depth, named);
    if (first == '[' || first == '(')
        return take_list(object, first == '[' ? ']' : ')', depth);
    if (first == '"' || first == '\'')
        return take_text(object, NULL, 0);
    size_t end =
        command_number(object->line, object->length, object->place, COMMAND_UNGROUPED, &value);
    if (end == object->place)
        return take_word(object, name_length, depth, named);
    object->place = end;
    if (named && object->count < COUNT_MAX) {
        memcpy(object->names[object->count], object->name, name_length);
        object->names[object->count][name_length] = '\0';
        object->values[object->count++] = value;
    }
    return true;
}

/* {"rank": 1, …} */
static bool is_rank(const char *name, double value) {
    return *name == 'r' && strcmp(name, "rank") == 0 && value >= 0 && value < COMMAND_RANKS_MAX &&
           value == floor(value);
}

bool command_object_line(struct command_reading *reading, const char *line, size_t length,
                         command_found *found, void *state) {
    size_t start = 0;
    while (start < length && isspace((unsigned char)line[start]))
        start++;
    while (length > start && isspace((unsigned char)line[length - 1]))
        length--;
    if (length - start < 2 || line[start] != '{' || line[length - 1] != '}')
        return false;
    struct object whole, *object = &whole; /* too much to set to zero for each line */
    object->line = line;
    object->length = length;
    object->place = start;
    object->name[0] = '\0';
    object->count = 0;
    if (!take_value(object, 0, 0, true) || object->place != length)
        return false;
    double given = NAN, epoch = NAN; /* {'loss': 1.9, 'epoch': 0.5}: the step where none is known */
    int rank = -1;
    for (int i = 0; i < object->count; i++) {
        const char *name = object->names[i];
        bool counts_steps = command_is_step(name), counts_ranks = is_rank(name, object->values[i]);
        rank = counts_ranks ? (int)object->values[i] : rank;
        given = counts_steps ? object->values[i] : given;
        epoch = isnan(epoch) && command_is_epoch(name) ? object->values[i] : epoch;
        object->counts[i] = counts_steps || counts_ranks;
    }
    struct command_progress *progress = command_reading_of(reading, rank);
    if (!isnan(given)) {
        progress->has_step = true;
        progress->step = given;
    }
    double step = progress->has_step ? progress->step : epoch;
    for (int i = 0; i < object->count; i++) {
        struct command_value value = {object->names[i],  "",
                                      object->values[i], step,
                                      reading->rank,     .by_epoch = !progress->has_step};
        if (!object->counts[i])
            found(state, &value);
    }
    return true;
}
