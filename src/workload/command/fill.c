/*
 * command/fill.c: {placeholders}: what differs from run to run in a command that is written once. A
 * name that nobody knows is found when the study is planned, not an hour later.
 */
#include "workload/command/command.h"

#include <ctype.h>
#include <math.h>

#define NAME_MAX_BYTES 128

enum own {
    GPU_ID,
    GPU_IDS,
    GPU_COUNT,
    NUMA_NODE,
    SEED,
    REPEAT,
    PORT,
    RUN_ID,
    RANK,
    WORLD_SIZE,
    DEVICE,
    OUTPUT_DIR,
    OWN_COUNT
};

static const char *const own_names[] = {
    [GPU_ID] = "gpu_id",
    [GPU_IDS] = COMMAND_GPU_IDS,
    [GPU_COUNT] = COMMAND_GPU_COUNT,
    [NUMA_NODE] = "numa_node",
    [SEED] = "seed",
    [REPEAT] = "repeat",
    [PORT] = "port",
    [RUN_ID] = "run_id",
    [RANK] = "rank",
    [WORLD_SIZE] = "world_size",
    [DEVICE] = "device",
    [OUTPUT_DIR] = "output_dir",
};

static size_t name_length(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    size_t length = 1;
    while (isalnum((unsigned char)text[length]) || (text[length] && strchr("_.-", text[length])))
        length++;
    return length < NAME_MAX_BYTES ? length : 0;
}

enum part { TEXT, NAME, BRACE, END };

/* The next part of a text from `*at` on, which is moved behind it. A '{' that begins no name is a
 * BRACE of length 0. */
static enum part next_part(const char **at, const char **ret_start, size_t *ret_length) {
    const char *text = *at;
    if (!*text)
        return END;
    if ((text[0] == '{' || text[0] == '}') && text[1] == text[0]) {
        *ret_start = text;
        *ret_length = 1;
        *at = text + 2;
        return BRACE;
    }
    if (*text == '{') {
        size_t length = name_length(text + 1);
        bool name = length > 0 && text[1 + length] == '}';
        *ret_start = text + 1;
        *ret_length = name ? length : 0;
        *at = text + (name ? length + 2 : 1);
        return name ? NAME : BRACE;
    }
    size_t length = *text == '}' ? 1 : strcspn(text, "{}");
    *ret_start = text;
    *ret_length = length;
    *at = text + length;
    return TEXT;
}

static bool is_name(const char *name, const char *text, size_t length) {
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

bool command_text_uses(const char *text, const char *key) {
    const char *start;
    size_t length;
    for (enum part part; (part = next_part(&text, &start, &length)) != END;)
        if (part == NAME && is_name(key, start, length))
            return true;
    return false;
}

static const struct lab_value *find(const struct lab_value *matrix, const char *name,
                                    size_t length) {
    for (int i = 0; matrix && i < matrix->count; i++)
        if (is_name(matrix->keys[i], name, length))
            return matrix->items[i];
    return NULL;
}

static int find_own(const char *name, size_t length) {
    for (int i = 0; i < OWN_COUNT; i++)
        if (is_name(own_names[i], name, length))
            return i;
    return -1;
}

/* "command: unknown placeholder {lrr}; did you mean {lr}? There are {lr}, … */
static int refuse_name(const char *what, const char *name, size_t length,
                       const struct lab_value *matrix, const struct lab_value *place,
                       struct lab_err *err) {
    int count = matrix ? matrix->count : 0, all = count + OWN_COUNT;
    LAB_AUTO(arena, arena);
    const char **bare = lab_arena_alloc(&arena, (size_t)all + 1, sizeof *bare);
    const char **shown = lab_arena_alloc(&arena, (size_t)all + 1, sizeof *shown);
    for (int i = 0; i < all; i++) {
        bare[i] = i < count ? matrix->keys[i] : own_names[i - count];
        shown[i] = lab_arena_printf(&arena, "{%s}", bare[i]);
    }
    const char *unknown = lab_arena_strndup(&arena, name, length);
    const char *nearest = lab_str_nearest(unknown, bare);
    LAB_AUTO(str, list);
    if (nearest)
        lab_str_printf(&list, "; did you mean {%s}?", nearest);
    lab_str_add(&list, nearest ? " There are " : "; there are ");
    lab_str_add_list(&list, shown, "and");
    lab_value_err(place, err, "%s: unknown placeholder {%s}%s", what, unknown, list.text);
    return -1;
}

/* One value, and one that a frozen config in JSON can hold. */
static int check_value(const char *name, size_t length, const struct lab_value *value,
                       struct lab_err *err) {
    if (!command_is_scalar(value))
        return lab_value_err(value, err,
                             "matrix.%.*s is %s, but a run takes one value: name it in "
                             "experiment.axes, or put it in quotes to pass it as text",
                             (int)length, name, lab_value_type_name(value->type));
    if (value->type == LAB_VALUE_FLOAT && !isfinite(value->number))
        return lab_value_err(
            value, err, "matrix.%.*s is not a finite number; put it in quotes to pass it as text",
            (int)length, name);
    return 0;
}

int command_check_text(const char *what, const char *text, const struct lab_value *matrix,
                       const struct lab_value *place, struct lab_err *err) {
    const char *all = text, *start;
    size_t length;
    for (enum part part; (part = next_part(&text, &start, &length)) != END;) {
        if (part == BRACE && length == 0)
            return lab_value_err(
                place, err, "%s: '{' begins no {name} in '%.80s': write {{ for a brace", what, all);
        const struct lab_value *value = part == NAME ? find(matrix, start, length) : NULL;
        if (value && check_value(start, length, value, err) < 0)
            return -1;
        if (part == NAME && !value && find_own(start, length) < 0)
            return refuse_name(what, start, length, matrix, place, err);
    }
    return 0;
}

int command_check_matrix(const struct lab_value *matrix, struct lab_err *err) {
    if (!matrix)
        return 0;
    if (matrix->type != LAB_VALUE_MAP)
        return lab_value_err(matrix, err, "matrix: must be a map of names with values, not %s",
                             lab_value_type_name(matrix->type));
    for (int i = 0; i < matrix->count; i++) {
        const char *key = matrix->keys[i];
        const struct lab_value *value = matrix->items[i];
        if (name_length(key) == 0 || key[name_length(key)])
            return lab_value_err(value, err,
                                 "matrix: '%.80s' can't be a {placeholder}: names begin with a "
                                 "letter, and have up to %d letters, digits, '_', '.' and '-'",
                                 key, NAME_MAX_BYTES - 1);
    }
    return 0;
}

const struct lab_device_ref *command_place(const struct lab_rank *rank) {
    return rank->ref ? rank->ref : rank->device ? &rank->device->ref : NULL;
}

int command_place_count(const struct lab_rank *rank) {
    return rank->gang ? rank->gang->count : 1;
}

const struct lab_device_ref *command_place_at(const struct lab_rank *rank, int index) {
    return rank->gang ? &rank->gang->items[index] : command_place(rank);
}

/* "0,2,3": a GPU's number is the machine's, which launchers expect that choose GPUs themselves;
 * other devices are counted. */
static void add_gpu_ids(const struct lab_rank *rank, struct lab_str *out) {
    for (int i = 0; i < command_place_count(rank); i++)
        lab_str_printf(out, "%s%d", i ? "," : "",
                       command_is_cuda(command_place_at(rank, i)) ? command_place_at(rank, i)->unit
                                                                  : i);
}

static void add_own(enum own which, const struct lab_rank *rank, struct lab_str *out) {
    const struct lab_device_ref *ref = command_place(rank);
    switch (which) {
    case GPU_ID:
        lab_str_printf(out, "%d", rank->gpu_id);
        break;
    case GPU_IDS:
        add_gpu_ids(rank, out);
        break;
    case GPU_COUNT:
        lab_str_printf(out, "%d", command_place_count(rank));
        break;
    case NUMA_NODE:
        lab_str_printf(out, "%d", rank->numa_node);
        break;
    case SEED:
        lab_str_printf(out, "%llu", (unsigned long long)rank->seed);
        break;
    case REPEAT:
        lab_str_printf(out, "%d", rank->repeat);
        break;
    case PORT:
        lab_str_printf(out, "%d", rank->port);
        break;
    case RUN_ID:
        lab_str_add(out, rank->run_id ? rank->run_id : "bench");
        break;
    case RANK:
        lab_str_printf(out, "%d", rank->index);
        break;
    case WORLD_SIZE:
        lab_str_printf(out, "%d", rank->count > 0 ? rank->count : 1);
        break;
    case DEVICE:
        lab_str_add(out, ref ? ref->name : "");
        break;
    case OUTPUT_DIR:
    case OWN_COUNT:
        lab_str_add(out, rank->folder && *rank->folder ? rank->folder : ".");
        break;
    }
}

void command_fill(const char *text, const struct lab_value *matrix, const struct lab_rank *rank,
                  struct lab_str *out) {
    const char *start;
    size_t length;
    for (enum part part; (part = next_part(&text, &start, &length)) != END;) {
        const struct lab_value *value = part == NAME ? find(matrix, start, length) : NULL;
        if (value)
            command_add_scalar(value, out);
        else if (part == NAME)
            add_own((enum own)find_own(start, length), rank, out);
        else
            lab_str_add_bytes(out, start, length);
    }
}
