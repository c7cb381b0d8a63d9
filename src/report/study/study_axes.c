/* study_axes.c: finds what varies between runs, from their ranks, labels and options. */
#include "report/study/study_axes.h"

#include "base/json.h"
#include "base/list.h"
#include "model/setting.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define AXES_MOST 64

struct finder {
    const struct lab_run *const *runs;
    int count;
    struct lab_value **options, **tests; /* of each run; NULL = unreadable */
    struct study_axes axes;
    struct lab_arena *arena;
};

/* --- values --- */

/* "0" of "cuda:0" and "sim:l40s-10:0"; NULL of a slice, a CPU, or a MIG device. */
static const char *gpu_number(const char *device) {
    const char *colon = strrchr(device, ':');
    bool gpu = colon && (lab_str_starts(device, "cuda:") || lab_str_starts(device, "sim:"));
    return gpu && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? colon + 1
                                                                                   : NULL;
}

static bool all_gpus(const struct finder *f) {
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < f->runs[i]->rank_count; k++)
            if (!gpu_number(f->runs[i]->ranks[k].device))
                return false;
    return true;
}

/* "0–3" where they follow each other, else "0, 2". */
static const char *gpu_value(const struct lab_run *run, bool numbers, struct lab_arena *arena) {
    LAB_AUTO(str, list);
    bool series = numbers && run->rank_count > 2;
    for (int k = 0; k < run->rank_count; k++) {
        const char *name = numbers ? gpu_number(run->ranks[k].device) : run->ranks[k].device;
        series &= k == 0 || run->ranks[k].gpu_id == run->ranks[k - 1].gpu_id + 1;
        lab_str_printf(&list, "%s%s", k == 0 ? "" : numbers ? "+" : ", ", name);
    }
    if (series)
        return lab_arena_printf(arena, "%s–%s", gpu_number(run->ranks[0].device),
                                gpu_number(run->ranks[run->rank_count - 1].device));
    return lab_arena_strdup(arena, list.text);
}

static const char *node_value(const struct lab_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, list);
    for (int k = 0; k < run->rank_count; k++) {
        bool again = false;
        for (int j = 0; j < k && !again; j++)
            again = run->ranks[j].numa_node == run->ranks[k].numa_node;
        if (again)
            continue;
        lab_str_add(&list, list.length ? ", " : "");
        if (run->ranks[k].numa_node < 0)
            lab_str_add(&list, "any");
        else
            lab_str_printf(&list, "%d", run->ranks[k].numa_node);
    }
    return lab_arena_strdup(arena, list.text);
}

static void add_value(const struct lab_value *value, struct lab_str *out) {
    switch (value->type) {
    case LAB_VALUE_NULL:
        lab_str_add(out, "none");
        break;
    case LAB_VALUE_BOOL:
        lab_str_add(out, value->boolean ? "yes" : "no");
        break;
    case LAB_VALUE_STRING:
        lab_str_add(out, value->string);
        break;
    case LAB_VALUE_LIST:
        for (int i = 0; i < value->count; i++) {
            lab_str_add(out, i ? "×" : "");
            add_value(value->items[i], out);
        }
        break;
    case LAB_VALUE_INT:
    case LAB_VALUE_FLOAT:
    case LAB_VALUE_MAP:
        lab_json_write(value, 0, out);
        break;
    }
}

static const char *key_value(const struct lab_value *options, const char *key,
                             struct lab_arena *arena) {
    const struct lab_value *value = lab_value_get(options, key);
    LAB_AUTO(str, text);
    if (value)
        add_value(value, &text);
    lab_str_make_printable(text.text);
    return lab_arena_strdup(arena, text.text);
}

/* A label that has the batch in it names no model; one that has a matrix is long where nothing of
 * it varies, so that its program stands there. */
static const char *model_value(const struct lab_run *run, const struct lab_value *options,
                               struct lab_arena *arena) {
    const struct lab_value *matrix = lab_value_get(options, "matrix");
    const char *program = matrix && matrix->count > 0 ? lab_setting_program(options, arena) : NULL;
    const char *label = run->label ? run->label : "",
               *batch = key_value(options, "batch_size", arena);
    const char *tail = strstr(label, lab_arena_printf(arena, "_batch%s", batch));
    if (tail && *batch) /* "gpt2_12x768x1024" of "gpt2_12x768x1024_batch8x4" */
        label = lab_arena_strndup(arena, label, (size_t)(tail - label));
    return program ? program : lab_value_get_text(options, "model", label);
}

static const char *value_of(const struct finder *f, enum study_axis_kind kind, const char *key,
                            bool numbers, int at) {
    const struct lab_run *run = f->runs[at];
    if ((kind == STUDY_AXIS_GPU || kind == STUDY_AXIS_NODE) && run->spread)
        return ""; /* chance, no axis */
    switch (kind) {
    case STUDY_AXIS_GPUS:
        return lab_arena_printf(f->arena, "%d", run->rank_count);
    case STUDY_AXIS_GPU:
        return gpu_value(run, numbers, f->arena);
    case STUDY_AXIS_NODE:
        return node_value(run, f->arena);
    case STUDY_AXIS_PHASE:
        return lab_value_get_text(f->tests[at], "phase", "");
    case STUDY_AXIS_MODEL:
        return model_value(run, f->options[at], f->arena);
    case STUDY_AXIS_KEY:
    case STUDY_AXIS_MATRIX:
    case STUDY_AXIS_SETTINGS:
        break;
    }
    return key_value(f->options[at], key, f->arena);
}

/* --- which vary --- */

static bool varies(const char *const *values, int count) {
    for (int i = 1; i < count; i++)
        if (strcmp(values[i], values[0]) != 0)
            return true;
    return false;
}

/* Whether `given` decides `value`: no two runs that share the former differ in the latter. Sorted
 * runs would make it faster; there are few distinct values, and each is looked up once. */
static bool follows(const char *const *value, const char *const *given, int count,
                    struct lab_arena *arena) {
    int *first = lab_arena_alloc(arena, (size_t)count, sizeof *first), known = 0;
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < known && strcmp(given[first[at]], given[i]) != 0)
            at++;
        if (at == known)
            first[known++] = i;
        else if (strcmp(value[first[at]], value[i]) != 0)
            return false;
    }
    return true;
}

static const struct study_axis *find_axis(const struct study_axes *axes,
                                          enum study_axis_kind kind) {
    for (int i = 0; i < axes->count; i++)
        if (axes->items[i].kind == kind)
            return &axes->items[i];
    return NULL;
}

/* Which GPUs ran says how many they were. */
static void drop_gpu_count(struct study_axes *axes) {
    if (axes->count != 2)
        return;
    axes->items[0] = axes->items[1];
    axes->count = 1;
}

/* What it follows from makes it no axis of its own. */
static void add_axis(struct finder *f, enum study_axis_kind kind, const char *title,
                     const char *key, bool forced) {
    bool numbers = kind <= STUDY_AXIS_GPU && all_gpus(f);
    const char **values = lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *values);
    for (int i = 0; i < f->count; i++)
        values[i] = value_of(f, kind, key, numbers, i);
    if (f->axes.count == AXES_MOST || (!varies(values, f->count) && !forced))
        return;
    static const int given[][2] = {{STUDY_AXIS_KEY, STUDY_AXIS_MODEL},
                                   {STUDY_AXIS_GPU, STUDY_AXIS_GPUS},
                                   {STUDY_AXIS_NODE, STUDY_AXIS_GPUS},
                                   {STUDY_AXIS_NODE, STUDY_AXIS_PHASE}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const struct study_axis *from = (int)kind == given[i][0]
                                            ? find_axis(&f->axes, (enum study_axis_kind)given[i][1])
                                            : NULL;
        if (from && follows(values, from->values, f->count, f->arena))
            return;
    }
    if (kind <= STUDY_AXIS_GPU && !numbers)
        title = kind == STUDY_AXIS_GPUS ? "Devices" : "Device";
    int *sizes = kind == STUDY_AXIS_GPU
                     ? lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *sizes)
                     : NULL;
    for (int i = 0; i < f->count && sizes; i++)
        sizes[i] = f->runs[i]->rank_count;
    f->axes.items[f->axes.count++] = (struct study_axis){kind, title, values, sizes, false};
}

static const char *key_title(const char *key) {
    static const struct {
        const char *key, *title;
    } names[] = {
        {"batch_size", "Batch"},     {"compile_model", "Compiled"},
        {"tensor_shape", "Input"},   {"memory_size_mb", "Pool MiB"},
        {"dtype", "Dtype"},          {"num_samples", "Samples"},
        {"allreduce", "All-reduce"}, {"optimizer", "Optimizer"},
    };
    int found = LAB_FIND(names, sizeof names / sizeof *names, key, key);
    return found < 0 ? key : names[found].title;
}

static struct lab_value *parse(const char *json, struct lab_arena *arena) {
    struct lab_value *value = NULL;
    if (!json || lab_json_parse(json, strlen(json), "options", arena, &value, NULL) < 0)
        return NULL;
    return value;
}

/* Keys in the order in which the first run that has them has them. */
static void add_keys(struct finder *f) {
    struct lab_value *seen = lab_value_map(f->arena);
    for (int i = 0; i < f->count; i++) {
        const struct lab_value *options = f->options[i];
        bool repeated = i > 0 && lab_str_equal(f->runs[i]->workload, f->runs[i - 1]->workload);
        for (int k = 0; options && !repeated && k < options->count; k++) {
            const char *key = options->keys[k];
            if (lab_value_get(seen, key) || strcmp(key, "phase") == 0 ||
                strcmp(key, "model") == 0 || strcmp(key, "matrix") == 0)
                continue;
            lab_value_set_bool(f->arena, seen, key, true);
            add_axis(f, STUDY_AXIS_KEY, key_title(key), key, false);
        }
    }
}

/* Of programs: an axis for each key of the matrix. False: no matrix has one that varies. */
static bool add_matrix(struct finder *f) {
    struct lab_settings settings =
        lab_settings_make((const struct lab_value *const *)f->options, f->count, f->arena);
    for (int k = 0; k < settings.key_count && f->axes.count < AXES_MOST; k++) {
        const char **values = lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *values);
        for (int i = 0; i < f->count; i++)
            values[i] = settings.values[i * settings.key_count + k];
        f->axes.items[f->axes.count++] =
            (struct study_axis){STUDY_AXIS_MATRIX, settings.keys[k], values, NULL, settings.bare};
    }
    return settings.key_count > 0;
}

#define SETTINGS_MOST  4 /* columns of settings; more become one */
#define SETTINGS_NAMED 3 /* of a run, in that one */

/* The value that most runs have; there are few distinct ones. */
static const char *usual_value(const struct study_axis *axis, int count, struct lab_arena *arena) {
    int *first = lab_arena_alloc(arena, (size_t)count, sizeof *first), known = 0, usual = 0;
    int *runs = lab_arena_alloc(arena, (size_t)count, sizeof *runs);
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < known && strcmp(axis->values[first[at]], axis->values[i]) != 0)
            at++;
        if (at == known)
            first[known++] = i;
        usual = ++runs[at] > runs[usual] ? at : usual;
    }
    return axis->values[first[usual]];
}

/* One column with what differs from what is usual, "nccl_algo ring", in place of many, unless most
 * runs differ in several. */
static void merge_settings(struct finder *f) {
    int first = 0, unusual = 0;
    while (first < f->axes.count && f->axes.items[first].kind != STUDY_AXIS_KEY)
        first++;
    if (f->axes.count - first <= SETTINGS_MOST)
        return;
    const char **merged = lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *merged);
    const char **lead = lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *lead);
    int *counts = lab_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *counts);
    for (int a = first; a < f->axes.count; a++) {
        const struct study_axis *axis = &f->axes.items[a];
        const char *usual = usual_value(axis, f->count, f->arena);
        for (int i = 0; i < f->count; i++)
            if (strcmp(axis->values[i], usual) != 0) {
                unusual++;
                merged[i] = lab_arena_printf(f->arena, "%s%s%s %s", merged[i] ? merged[i] : "",
                                             merged[i] ? ", " : "", axis->title, axis->values[i]);
                lead[i] = counts[i]++ == 0 ? merged[i] : lead[i];
            }
    }
    if (unusual > 2 * f->count)
        return;
    for (int i = 0; i < f->count; i++)
        merged[i] = counts[i] == 0 ? "default"
                    : counts[i] <= SETTINGS_NAMED
                        ? merged[i]
                        : lab_arena_printf(f->arena, "%s, … (%d settings)", lead[i], counts[i]);
    f->axes.items[first] =
        (struct study_axis){STUDY_AXIS_SETTINGS, "Settings", merged, NULL, false};
    f->axes.count = first + 1;
}

static struct finder begin(const struct lab_run *const *runs, int count, struct lab_arena *arena) {
    struct finder f = {.runs = runs, .count = count, .arena = arena};
    f.options = lab_arena_alloc(arena, (size_t)count + 1, sizeof *f.options);
    f.tests = lab_arena_alloc(arena, (size_t)count + 1, sizeof *f.tests);
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && lab_str_equal(runs[i]->options, runs[i - 1]->options);
        f.options[i] = same ? f.options[i - 1] : parse(runs[i]->options, arena);
        same = i > 0 && lab_str_equal(runs[i]->test, runs[i - 1]->test);
        f.tests[i] = same ? f.tests[i - 1] : parse(runs[i]->test, arena);
    }
    return f;
}

#define BYTES "bytes" /* of a sum */

void study_axes_add_shared(const struct lab_run *const *runs, int count, struct lab_str *out) {
    static const char *const keys[] = {"batch_size", "dtype", "tensor_shape", BYTES};
    LAB_AUTO(arena, arena);
    struct finder f = begin(runs, count, &arena);
    for (size_t k = 0; k < sizeof keys / sizeof *keys && count > 0; k++) {
        const char *value = key_value(f.options[0], keys[k], &arena);
        bool shared = *value != '\0';
        for (int i = 1; i < count && shared; i++)
            shared = f.options[i] == f.options[i - 1] ||
                     strcmp(key_value(f.options[i], keys[k], &arena), value) == 0;
        if (!shared)
            continue;
        lab_str_printf(out, "%s%s", out->length ? ", " : "", k == 0 ? "batch " : "");
        if (lab_str_equal(keys[k], BYTES)) {
            lab_str_add(out, "message ");
            lab_str_add_bytes_binary(out, strtod(value, NULL));
        } else {
            lab_str_add(out, value);
        }
    }
}

struct study_axes study_axes_make(const struct lab_run *const *runs, int count,
                                  struct lab_arena *arena) {
    struct finder f = begin(runs, count, arena);
    if (count == 0)
        return f.axes;
    f.axes.items = lab_arena_alloc(arena, AXES_MOST, sizeof *f.axes.items);
    add_axis(&f, STUDY_AXIS_GPUS, "GPUs", NULL, false);
    add_axis(&f, STUDY_AXIS_GPU, "GPU", NULL, false);
    drop_gpu_count(&f.axes);
    add_axis(&f, STUDY_AXIS_PHASE, "Phase", NULL, false);
    add_axis(&f, STUDY_AXIS_NODE, "NUMA node", NULL, false);
    bool model = lab_value_get(f.options[0], "depth") || lab_value_get(f.options[0], "model");
    if (!add_matrix(&f))
        add_axis(&f, STUDY_AXIS_MODEL, model ? "Model" : "Workload", NULL, false);
    add_keys(&f);
    merge_settings(&f);
    if (f.axes.count == 0)
        add_axis(&f, STUDY_AXIS_MODEL, model ? "Model" : "Workload", NULL, true);
    return f.axes;
}

struct lab_doc_column study_axis_column(const struct study_axis *axis) {
    bool named = axis->kind == STUDY_AXIS_MODEL || axis->kind == STUDY_AXIS_SETTINGS;
    return (struct lab_doc_column){NULL, axis->title,
                                   .align = named ? LAB_ALIGN_NAME : LAB_ALIGN_LEFT};
}

int study_axes_compare(const struct study_axes *axes, int run, int other) {
    int order = 0;
    for (int i = 0; i < axes->count && !order; i++) {
        const struct study_axis *axis = &axes->items[i];
        order = axis->sizes ? axis->sizes[run] - axis->sizes[other] : 0;
        order = order ? order : strverscmp(axis->values[run], axis->values[other]);
    }
    return order;
}

void study_axis_add_value(const struct study_axis *axis, int run, struct lab_str *out) {
    const char *value = axis->values[run];
    bool named = axis->kind == STUDY_AXIS_GPU && strcmp(axis->title, "Device") == 0; /* "cpu:2" */
    if (named || axis->kind == STUDY_AXIS_MODEL || axis->kind == STUDY_AXIS_PHASE ||
        axis->kind == STUDY_AXIS_SETTINGS)
        lab_str_add(out, *value ? value : "–");
    else if (axis->kind == STUDY_AXIS_MATRIX)
        lab_str_printf(out, "%s%s%s", axis->bare ? "" : axis->title, axis->bare ? "" : "=",
                       *value ? value : "–");
    else if (axis->kind == STUDY_AXIS_KEY && strcmp(value, "yes") == 0)
        lab_str_add(out, axis->title); /* "Compiled" */
    else if (axis->kind == STUDY_AXIS_KEY && strcmp(value, "no") == 0)
        lab_str_printf(out, "Not %c%s", tolower((unsigned char)axis->title[0]), axis->title + 1);
    else if (axis->kind != STUDY_AXIS_GPUS)
        lab_str_printf(out, "%s%s %s", axis->title, axis->sizes && axis->sizes[run] > 1 ? "s" : "",
                       value);
    else /* "1 GPU", "2 devices" */
        lab_str_printf(out, "%s %.*s%s", value, (int)strlen(axis->title) - 1, axis->title,
                       strcmp(value, "1") == 0 ? "" : "s");
}

void study_axis_add_within(const struct study_axis *axis, int run, struct lab_str *out) {
    size_t from = out->length;
    study_axis_add_value(axis, run, out);
    char *text = out->text + from;
    if (axis->kind == STUDY_AXIS_KEY && text[0] && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
}

void study_axes_add_name(const struct study_axes *axes, int run, struct lab_str *out) {
    for (int i = 0; i < axes->count; i++) {
        lab_str_add(out, i ? ", " : "");
        (i ? study_axis_add_within : study_axis_add_value)(&axes->items[i], run, out);
    }
}
