/*
 * override_call.c: the functions of the override grammar. A row of the table says which arguments a
 * function has; calls are read and bound in one place, as Python binds them: by position first,
 * then by name.
 */
#include "base/str.h"
#include "compose/override_internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define PARAMETERS 3
#define CALLS_DEEP 8 /* each may write a million values out once more */

struct call {
    struct lab_value_text *text;
    const struct function *function;
    size_t at, open; /* of the name and the '(' */
    struct lab_override_result *values;
    int count, capacity;
    struct lab_override_result
        *named[PARAMETERS]; /* as the function's parameters; NULL = not given */
};

struct function {
    const char *name;
    const char *usage;
    const char *parameters[PARAMETERS + 1];
    bool has_fixed; /* parameters can be given by position, and nothing else can */
    int (*evaluate)(struct call *call, struct lab_override_result *ret);
    enum lab_override_cast cast; /* of cast() */
    const char *refusal;         /* instead of evaluating: why the function can't be called here */
};

static bool is_sweep(const struct lab_override_result *result) {
    return result->kind != LAB_RESULT_ELEMENT;
}

int lab_override_result_count(const struct lab_override_result *result) {
    assert(result->kind == LAB_RESULT_VALUES || result->kind == LAB_RESULT_RANGE);
    return result->kind == LAB_RESULT_RANGE ? result->range->count : result->value->count;
}

struct lab_value *lab_override_result_values(const struct lab_override_result *result,
                                             struct lab_arena *arena) {
    assert(result->kind == LAB_RESULT_VALUES || result->kind == LAB_RESULT_RANGE);
    return result->kind == LAB_RESULT_RANGE ? lab_override_range_write(result->range, arena)
                                            : result->value;
}

static int fail_usage(struct call *call, size_t at, const char *what) {
    return lab_value_text_fail(call->text, at, "%s() %s: %s", call->function->name, what,
                               call->function->usage);
}

/* The values given by position as a sweep. */
static struct lab_override_result gather(struct call *call) {
    struct lab_override_result sweep = {.kind = LAB_RESULT_VALUES, .at = call->at};
    sweep.value = lab_value_list(call->text->arena);
    for (int i = 0; i < call->count; i++)
        lab_value_append(call->text->arena, sweep.value, call->values[i].value);
    return sweep;
}

/* --- functions --- */

static int choose(struct call *call, struct lab_override_result *ret) {
    if (call->count == 0)
        return fail_usage(call, call->at, "is empty");
    if (is_sweep(&call->values[0]))
        return lab_value_text_fail(call->text, call->values[0].at,
                                   "choice() can't hold a sweep; write its values out");
    *ret = gather(call);
    return 0;
}

static int make_range(struct call *call, struct lab_override_result *ret) {
    struct lab_override_range *range = lab_arena_alloc(call->text->arena, 1, sizeof *range);
    const struct lab_value *numbers[PARAMETERS] = {NULL};
    for (int i = 0; i < PARAMETERS; i++) {
        if (!call->named[i])
            continue;
        numbers[i] = call->named[i]->value;
        if (is_sweep(call->named[i]) ||
            (numbers[i]->type != LAB_VALUE_INT && numbers[i]->type != LAB_VALUE_FLOAT))
            return fail_usage(call, call->named[i]->at, "takes numbers");
    }
    bool only_end = !numbers[0] || !numbers[1];
    range->start = only_end ? lab_value_int(call->text->arena, 0) : numbers[0];
    range->stop = numbers[1] ? numbers[1] : numbers[0];
    range->step = numbers[2] ? numbers[2] : lab_value_int(call->text->arena, 1);
    if (!range->stop)
        return fail_usage(call, call->at, "needs an end");
    *ret = (struct lab_override_result){.kind = LAB_RESULT_RANGE, .range = range};
    return lab_override_range_count(call->text, call->at, range);
}

static int take_patterns(struct call *call, const struct lab_override_result *given,
                         const char ***ret_patterns) {
    struct lab_arena *arena = call->text->arena;
    const struct lab_value *value = given ? given->value : NULL;
    bool is_list = value && value->type == LAB_VALUE_LIST;
    int count = is_list ? value->count : value ? 1 : 0;
    const char **patterns = lab_arena_alloc(arena, (size_t)count + 1, sizeof *patterns);
    for (int i = 0; i < count; i++) {
        const struct lab_value *pattern = is_list ? value->items[i] : value;
        if (pattern->type != LAB_VALUE_STRING)
            return fail_usage(call, given->at, "takes patterns, which are text");
        patterns[i] = pattern->string;
    }
    *ret_patterns = patterns;
    return 0;
}

static int make_glob(struct call *call, struct lab_override_result *ret) {
    for (int i = 0; i < 2; i++)
        if (call->named[i] && is_sweep(call->named[i]))
            return fail_usage(call, call->named[i]->at, "takes patterns, not a sweep");
    *ret = (struct lab_override_result){.kind = LAB_RESULT_GLOB};
    if (take_patterns(call, call->named[0], &ret->glob.include) < 0 ||
        take_patterns(call, call->named[1], &ret->glob.exclude) < 0)
        return -1;
    return ret->glob.include[0] ? 0 : fail_usage(call, call->at, "needs a pattern");
}

/* Tags are for optimisers, of which there is none: they are checked and dropped. */
static int drop_tags(struct call *call, struct lab_override_result *ret) {
    const struct lab_override_result *sweep = call->named[0];
    int tags = call->count;
    if (!sweep && tags > 0)
        sweep = &call->values[--tags];
    if (!sweep || !is_sweep(sweep))
        return fail_usage(call, sweep ? sweep->at : call->at, "needs a sweep, and that last");
    for (int i = 0; i < tags; i++)
        if (is_sweep(&call->values[i]) || call->values[i].value->type != LAB_VALUE_STRING)
            return fail_usage(call, call->values[i].at, "takes tags, which are text");
    *ret = *sweep;
    return 0;
}

static int cast(struct call *call, struct lab_override_result *ret) {
    if (call->named[0] && call->count > 0)
        return fail_usage(call, call->named[0]->at, "has its value twice");
    if (!call->named[0] && call->count == 0)
        return fail_usage(call, call->at, "needs a value");
    if (call->named[0])
        *ret = *call->named[0];
    else
        *ret = call->count == 1 ? call->values[0] : gather(call);
    return lab_override_cast(call->text, call->at, call->function->cast, ret);
}

/* What sort() and shuffle() work on: a sweep, written out; a list; or one value, left alone. */
static int take_order_input(struct call *call, struct lab_override_result *ret) {
    struct lab_override_result *sweep = call->named[0], *list = call->named[1];
    if ((call->count > 0) + (sweep != NULL) + (list != NULL) != 1)
        return fail_usage(call, call->at, "takes values, or a sweep, or a list");
    if (sweep && !is_sweep(sweep))
        return fail_usage(call, sweep->at, "takes a sweep by that name");
    if (list && (is_sweep(list) || list->value->type != LAB_VALUE_LIST))
        return fail_usage(call, list->at, "takes a list by that name");
    if (sweep || list)
        *ret = sweep ? *sweep : *list;
    else
        *ret = call->count == 1 ? call->values[0] : gather(call);
    if (ret->kind == LAB_RESULT_GLOB)
        return lab_value_text_fail(call->text, ret->at,
                                   "%s() can't order a glob, whose options come in order of name",
                                   call->function->name);
    if (is_sweep(ret)) {
        ret->value = lab_override_result_values(ret, call->text->arena);
        ret->kind = LAB_RESULT_VALUES;
    }
    return 0;
}

static int sort(struct call *call, struct lab_override_result *ret) {
    const struct lab_override_result *reverse = call->named[2];
    if (reverse && (is_sweep(reverse) || reverse->value->type != LAB_VALUE_BOOL))
        return fail_usage(call, reverse->at, "takes reverse=true or reverse=false");
    if (take_order_input(call, ret) < 0)
        return -1;
    if (ret->value->type != LAB_VALUE_LIST)
        return 0;
    return lab_override_sort(call->text, call->at, ret->value, reverse && reverse->value->boolean);
}

static int shuffle(struct call *call, struct lab_override_result *ret) {
    const struct lab_override_result *seed = call->named[2];
    if (seed && (is_sweep(seed) || seed->value->type != LAB_VALUE_INT || seed->value->integer < 0))
        return fail_usage(call, seed->at, "takes a whole number from 0 as its seed");
    if (take_order_input(call, ret) < 0)
        return -1;
    if (ret->value->type == LAB_VALUE_LIST)
        lab_override_shuffle(ret->value, seed ? (uint64_t)seed->value->integer : LAB_SHUFFLE_SEED);
    return 0;
}

static const struct function functions[] = {
    {"choice", "choice(a,b)", {NULL}, .evaluate = choose},
    {"range",
     "range(5), range(1,5) or range(0,10,2)",
     {"start", "stop", "step"},
     .has_fixed = true,
     .evaluate = make_range},
    {"glob",
     "glob(*) or glob([s*,w*],exclude=x)",
     {"include", "exclude"},
     .has_fixed = true,
     .evaluate = make_glob},
    {"sort",
     "sort(1,3,2), sort(range(5),reverse=true) or sort([1,3,2])",
     {"sweep", "list", "reverse"},
     .evaluate = sort},
    {"shuffle",
     "shuffle(a,b,c), shuffle(range(5),seed=7) or shuffle([a,b,c])",
     {"sweep", "list", "seed"},
     .evaluate = shuffle},
    {"tag", "tag(t1,t2,choice(a,b))", {"sweep"}, .evaluate = drop_tags},
    {"int",
     "int(3.7), int([1.5,2.5]) or int(1.5,2.5)",
     {"value"},
     .evaluate = cast,
     .cast = LAB_CAST_INT},
    {"float",
     "float(3), float([1,2]) or float(range(5))",
     {"value"},
     .evaluate = cast,
     .cast = LAB_CAST_FLOAT},
    {"str", "str(10), str([1,2]) or str(1,2)", {"value"}, .evaluate = cast, .cast = LAB_CAST_STR},
    {"bool",
     "bool(0), bool([0,1]) or bool(0,1)",
     {"value"},
     .evaluate = cast,
     .cast = LAB_CAST_BOOL},
    {"interval", .refusal = "needs an optimiser to pick values, and there is none here; give "
                            "the values: range(1,5,0.5) or choice(1,2,5)"},
    {"zip", .refusal = "is a word of its own, without a key: zip(a=[1,2],b=[x,y])"},
};

#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* --- calling them --- */

static const struct function *find_function(const char *name, size_t length) {
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
            return &functions[i];
    return NULL;
}

bool lab_override_is_function(const char *name, size_t length) {
    return find_function(name, length) != NULL;
}

static int fail_unknown(struct lab_value_text *t, size_t length) {
    const char *candidates[FUNCTIONS + 1] = {NULL};
    for (size_t i = 0; i < FUNCTIONS; i++)
        candidates[i] = functions[i].name;
    const char *name = lab_arena_strndup(t->arena, t->text + t->at, length);
    const char *nearest = lab_str_nearest(name, candidates);
    if (nearest)
        return lab_value_text_fail(
            t, t->at,
            "there is no function '%.40s', but there is %s(); parentheses in "
            "text need quotes or a backslash",
            name, nearest);
    return lab_value_text_fail(
        t, t->at,
        "'%.40s' is not a function, and parentheses in text need quotes or a "
        "backslash: \\( \\)",
        name);
}

/* The length of `name` if `name=` stands at the place, and 0 otherwise. */
static size_t argument_name(const struct lab_value_text *t) {
    const char *name = t->text + t->at;
    if (!isalpha((unsigned char)*name) && *name != '_')
        return 0;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_' || name[length] == '-')
        length++;
    return name[length + strspn(name + length, " \t")] == '=' ? length : 0;
}

/* Where an argument of that name goes. */
static int find_parameter(struct call *call, size_t length, int *ret_index) {
    const struct function *function = call->function;
    struct lab_value_text *t = call->text;
    const char *name = lab_arena_strndup(t->arena, t->text + t->at, length);
    for (int i = 0; function->parameters[i]; i++) {
        if (strcmp(function->parameters[i], name) != 0)
            continue;
        if (call->named[i])
            return lab_value_text_fail(t, t->at, "%s() has its '%s' twice", function->name, name);
        *ret_index = i;
        return 0;
    }
    const char *nearest = lab_str_nearest(name, function->parameters);
    if (nearest)
        return lab_value_text_fail(t, t->at, "%s() has no argument '%.40s', but '%s'",
                                   function->name, name, nearest);
    return lab_value_text_fail(t, t->at,
                               "%s() has no argument '%.40s'; '=' in text needs quotes or a "
                               "backslash",
                               function->name, name);
}

/* Puts an argument without a name where it belongs. */
static int place_value(struct call *call, const struct lab_override_result *result) {
    const struct function *function = call->function;
    for (int i = 0; function->parameters[i]; i++)
        if (call->named[i] && (!function->has_fixed || i >= call->count))
            return lab_value_text_fail(call->text, result->at,
                                       "an argument without a name can't follow one with a name");
    if (function->has_fixed) {
        if (!function->parameters[call->count])
            return fail_usage(call, result->at, "has too many arguments");
        call->named[call->count] = lab_arena_alloc(call->text->arena, 1, sizeof *result);
        *call->named[call->count++] = *result;
        return 0;
    }
    /* Refused as soon as they are seen: written out one by one they would fill the memory. */
    const struct lab_override_result *sweep = NULL;
    if (call->count > 0 && is_sweep(&call->values[call->count - 1]))
        sweep = &call->values[call->count - 1];
    else if (call->count > 0 && is_sweep(result) && function->evaluate != drop_tags)
        sweep = result;
    if (sweep)
        return lab_value_text_fail(call->text, sweep->at,
                                   "a sweep can't be one of several values; write its values out");
    if (call->count == LAB_SWEEP_MAX)
        return lab_value_text_fail(call->text, result->at, "more than %d values", LAB_SWEEP_MAX);
    if (call->count == call->capacity) {
        call->capacity = call->capacity ? 2 * call->capacity : 8;
        struct lab_override_result *values =
            lab_arena_alloc(call->text->arena, (size_t)call->capacity, sizeof *values);
        if (call->count > 0)
            memcpy(values, call->values, (size_t)call->count * sizeof *values);
        call->values = values;
    }
    call->values[call->count++] = *result;
    return 0;
}

static int read_argument(struct lab_override_reader *reader, struct call *call) {
    struct lab_value_text *t = &reader->text;
    lab_value_text_skip_spaces(t);
    size_t name_length = argument_name(t);
    int parameter = -1;
    if (name_length > 0) {
        if (find_parameter(call, name_length, &parameter) < 0)
            return -1;
        t->at += name_length;
        lab_value_text_skip_spaces(t);
        t->at++;
        lab_value_text_skip_spaces(t);
    }
    if (!t->text[t->at])
        return lab_value_text_fail(t, call->open, "'(' without its ')'");
    struct lab_override_result result;
    if (lab_override_read(reader, ",)", &result) < 0)
        return -1;
    if (parameter < 0)
        return place_value(call, &result);
    call->named[parameter] = lab_arena_alloc(t->arena, 1, sizeof result);
    *call->named[parameter] = result;
    return 0;
}

static int read_arguments(struct lab_override_reader *reader, struct call *call) {
    struct lab_value_text *t = &reader->text;
    t->at = call->open + 1;
    lab_value_text_skip_spaces(t);
    bool more = t->text[t->at] != ')';
    while (more) {
        if (read_argument(reader, call) < 0)
            return -1;
        char c = t->text[t->at];
        if (!c)
            return lab_value_text_fail(t, call->open, "'(' without its ')'");
        more = c == ',';
        t->at += more;
    }
    t->at++;
    return 0;
}

/* A call, up to behind its ')'. */
static int read_call(struct lab_override_reader *reader, size_t name_length,
                     struct lab_override_result *ret_result) {
    struct lab_value_text *t = &reader->text;
    struct call call = {.text = t, .at = t->at};
    call.function = find_function(t->text + t->at, name_length);
    if (!call.function)
        return fail_unknown(t, name_length);
    if (call.function->refusal)
        return lab_value_text_fail(t, t->at, "%s() %s", call.function->name,
                                   call.function->refusal);
    if (reader->call_depth == CALLS_DEEP)
        return lab_value_text_fail(t, t->at, "calls nest deeper than %d", CALLS_DEEP);
    call.open = t->at + name_length + strspn(t->text + t->at + name_length, " \t");
    reader->call_depth++;
    int result = read_arguments(reader, &call);
    reader->call_depth--;
    if (result < 0 || call.function->evaluate(&call, ret_result) < 0)
        return -1;
    ret_result->at = call.at;
    return 0;
}

int lab_override_read(struct lab_override_reader *reader, const char *stops,
                      struct lab_override_result *ret_result) {
    struct lab_value_text *t = &reader->text;
    lab_value_text_skip_spaces(t);
    size_t start = t->at, name_length = lab_value_text_at_call(t);
    *ret_result = (struct lab_override_result){.kind = LAB_RESULT_ELEMENT, .at = start};
    if (name_length == 0)
        return lab_value_text_read(t, stops, &ret_result->value);
    if (read_call(reader, name_length, ret_result) < 0)
        return -1;
    lab_value_text_skip_spaces(t);
    char c = t->text[t->at];
    if (c && !strchr(stops, c))
        return lab_value_text_fail(t, t->at,
                                   "text after a ')'; parentheses in text need quotes or a "
                                   "backslash");
    return 0;
}

int lab_override_read_inner(struct lab_value_text *t, struct lab_value **ret_value) {
    struct lab_override_reader *reader = (struct lab_override_reader *)t;
    struct lab_override_result result = {.kind = LAB_RESULT_ELEMENT};
    if (read_call(reader, lab_value_text_at_call(t), &result) < 0)
        return -1;
    if (is_sweep(&result))
        return lab_value_text_fail(t, result.at,
                                   "a sweep can't be part of a list or dict; sweep over "
                                   "whole ones: [a],[b]");
    *ret_value = result.value;
    return 0;
}
