/* analysis_study.c: a study's runs as points, their keys, and what to know before they are used. */
#include "analysis/analysis_study.h"
#include "analysis/analysis_build.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- points --- */

/* Phases may share a point's name: what ran under another load doesn't repeat it. */
static bool same_point(const struct lab_study_run *a, const struct lab_study_run *b) {
    return lab_str_equal(a->point, b->point) && lab_str_equal(a->phase, b->phase);
}

static void fill_point(struct lab_study_point *point, const struct lab_study_run **members,
                       int count, struct lab_arena *arena) {
    double *rates = lab_arena_alloc(arena, (size_t)count, sizeof *rates);
    double *times_s = lab_arena_alloc(arena, (size_t)count, sizeof *times_s);
    for (int i = 0; i < count; i++) {
        rates[i] = members[i]->rate;
        times_s[i] = members[i]->time_s;
    }
    *point = (struct lab_study_point){members[0]->point, members, count, rates, times_s};
}

int lab_study_points(const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_study_point **ret_points) {
    size_t room = (size_t)study->run_count + 1;
    struct lab_study_point *points = lab_arena_alloc(arena, room, sizeof *points);
    /* runs of a point lie beside each other in one array: each run is in exactly one */
    const struct lab_study_run **members = lab_arena_alloc(arena, room, sizeof *members);
    bool *taken = lab_arena_alloc(arena, room, sizeof *taken);
    int count = 0;
    for (int i = 0; i < study->run_count; i++) {
        if (taken[i] || !study->runs[i].used)
            continue;
        int size = 0;
        for (int k = i; k < study->run_count; k++) {
            if (taken[k] || !study->runs[k].used || !same_point(&study->runs[i], &study->runs[k]))
                continue;
            taken[k] = true;
            members[size++] = &study->runs[k];
        }
        fill_point(&points[count++], members, size, arena);
        members += size;
    }
    *ret_points = points;
    return count;
}

bool lab_study_has_phases(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (lab_value_get(study->runs[i].test, "place"))
            return true;
    return false;
}

bool lab_study_trains(const struct lab_study_table *study) {
    bool one = false, many = false;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        bool trains = run->work.layers > 0 && run->work.parameters > 0;
        one |= trains && run->rank_count == 1;
        many |= trains && run->rank_count > 1;
    }
    return one && many;
}

/* "3x224x224" = "224", "3x224x384" = "224x384": channels are left out, and so is what repeats. */
static void add_pixels(struct lab_str *out, const char *shape, size_t length) {
    const char *end = shape + length, *height = memchr(shape, 'x', length);
    const char *width = height ? memchr(height + 1, 'x', (size_t)(end - height) - 1) : NULL;
    if (!width)
        lab_str_printf(out, "%.*s", (int)length, shape);
    else if (width - height == end - width && memcmp(height, width, (size_t)(end - width)) == 0)
        lab_str_printf(out, "%.*s", (int)(end - width) - 1, width + 1);
    else
        lab_str_printf(out, "%.*s", (int)(end - height) - 1, height + 1);
}

/* "vit0x0x0_batch_size4_memory_size_mb512" = "vit0x0x0, batch 4, 512 MiB pool" */
static const char *name_keys(const char *name, struct lab_arena *arena) {
    static const struct {
        const char *key, *before, *after;
    } words[] = {{"_batch_size", ", batch ", ""},
                 {"_tensor_shape", ", ", " px"},
                 {"_memory_size_mb", ", ", " MiB pool"}};
    LAB_AUTO(str, text);
    while (*name) {
        size_t w = 0, count = sizeof words / sizeof *words;
        while (w < count && !(lab_str_starts(name, words[w].key) &&
                              strspn(name + strlen(words[w].key), "0123456789") > 0))
            w++;
        if (w == count) {
            lab_str_printf(&text, "%c", *name++);
            continue;
        }
        name += strlen(words[w].key);
        size_t length = strcspn(name, "_");
        lab_str_add(&text, words[w].before);
        add_pixels(&text, name, length);
        lab_str_add(&text, words[w].after);
        name += length;
    }
    return lab_arena_strdup(arena, text.text);
}

const char *lab_study_point_model(const struct lab_study_point *point, struct lab_arena *arena) {
    const char *numa = strstr(point->name, "_numa"), *phase = point->runs[0]->phase;
    size_t length = numa ? strspn(numa + 5, "0123456789+") : 0;
    const char *rest =
        length && numa[5 + length] == '_' ? numa + 6 + length : point->runs[0]->model;
    rest = name_keys(rest, arena);
    return *phase ? lab_arena_printf(arena, "%s, %s", rest, phase) : rest;
}

const char *lab_study_counted(const struct lab_study_table *study, int count, int all,
                              const char *what, struct lab_arena *arena) {
    const char **models = NULL;
    int found = 0;
    for (int i = 0; i < study->run_count && found < all; i++) {
        if (lab_list_find_text(models, found, study->runs[i].model) < 0)
            LAB_ADD(models, found, arena) = study->runs[i].model;
    }
    return lab_arena_printf(arena, "%d %s%s%s", count, what,
                            found < all                   ? "configuration"
                            : lab_study_has_phases(study) ? "kernel"
                                                          : "model",
                            count == 1 ? "" : "s");
}

const char *lab_study_count_words(const struct lab_study_table *study, int count,
                                  struct lab_arena *arena) {
    return lab_study_counted(study, count, count, "", arena);
}

const char *lab_study_pair_words(const struct lab_study_table *study, int pairs, int works,
                                 struct lab_arena *arena) {
    const char *words = pairs == works ? lab_study_count_words(study, works, arena) : NULL;
    return words && !strstr(words, "configuration")
               ? words
               : lab_arena_printf(arena, "%d configuration%s", pairs, pairs == 1 ? "" : "s");
}

const char *lab_study_trained_model(const struct lab_study_run *run, struct lab_arena *arena) {
    size_t prefix = strlen(run->run->workload) + 1; /* "mlp_" */
    const char *end = strstr(run->model, "_batch");
    if (!end || !lab_str_starts(run->model, run->run->workload) || run->model[prefix - 1] != '_' ||
        end < run->model + prefix)
        return NULL;
    return lab_arena_strndup(arena, run->model + prefix, (size_t)(end - run->model) - prefix);
}

const char *lab_study_device_title(const char *device, struct lab_arena *arena) {
    return lab_run_device_title(device, arena);
}

double lab_study_complexity(const struct lab_study_run *run) {
    return run->work.samples > 0 ? run->work.flops / run->work.samples : (double)NAN;
}

bool lab_study_can_compile(const struct lab_study_run *run) {
    return run->work.flops > 0;
}

int lab_study_order(double a, const char *a_name, double b, const char *b_name) {
    double p = isnan(a) ? INFINITY : a, q = isnan(b) ? INFINITY : b;
    return p != q ? (p < q ? -1 : 1) : strverscmp(a_name, b_name);
}

/* --- keys --- */

static const struct lab_value *step(const struct lab_value *value, const char *key, size_t length) {
    if (value->type == LAB_VALUE_LIST) {
        char *end;
        long index = strtol(key, &end, 10);
        return end == key + length && length > 0 && index >= 0 && index < value->count
                   ? value->items[index]
                   : NULL;
    }
    char name[128];
    if (length >= sizeof name)
        return NULL;
    memcpy(name, key, length);
    name[length] = '\0';
    return lab_value_get(value, name);
}

static const struct lab_value *find(const struct lab_study_run *run, const char *key) {
    const struct lab_value *value = NULL;
    const char *dot = strchr(key, '.');
    if (!dot)
        return NULL;
    if (lab_str_starts(key, "options."))
        value = run->options;
    else if (lab_str_starts(key, "test."))
        value = run->test;
    while (value && dot) {
        const char *word = dot + 1;
        dot = strchr(word, '.');
        value = step(value, word, dot ? (size_t)(dot - word) : strlen(word));
    }
    return value;
}

double lab_study_value(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_BOOL ? value->boolean : lab_value_as_number(value);
}

double lab_study_number(const struct lab_study_run *run, const char *key) {
    return lab_study_value(find(run, key));
}

const char *lab_study_text(const struct lab_study_run *run, const char *key) {
    const struct lab_value *value = find(run, key);
    if (value && value->type == LAB_VALUE_STRING)
        return value->string;
    if (value && value->type == LAB_VALUE_BOOL)
        return value->boolean ? "true" : "false";
    return "";
}

/* --- iterations --- */

static bool begins_afresh(const struct lab_study_rank *rank, size_t i) {
    return rank->iterations[i + 1].start_ns >= rank->iterations[i].end_ns;
}

/* Whether iterations begin before the one before them has ended, as most of a pipeline do. */
static bool is_pipeline(const struct lab_study_rank *rank) {
    size_t overlapping = 0;
    for (size_t i = 0; i + 1 < rank->iteration_count; i++)
        overlapping += !begins_afresh(rank, i);
    return !rank->apart && 2 * overlapping > rank->iteration_count;
}

const struct lab_span *lab_study_spans(const struct lab_study_rank *rank, struct lab_arena *arena,
                                       size_t *ret_count) {
    *ret_count = 0;
    if (!rank->iterations || rank->iteration_count < 2)
        return NULL;
    const struct lab_iteration *items = rank->iterations;
    size_t room = rank->iteration_count - 1, count = 0;
    bool pipeline = is_pipeline(rank);
    struct lab_span *spans = lab_arena_alloc(arena, room, sizeof *spans);
    for (size_t i = 0; i < room; i++)
        if (!pipeline || !begins_afresh(rank, i))
            spans[count++] = (struct lab_span){pipeline ? items[i].end_ns : items[i + 1].start_ns,
                                               items[i + 1].end_ns};
    *ret_count = count;
    return spans;
}

const double *lab_study_intervals(const struct lab_study_rank *rank, struct lab_arena *arena,
                                  size_t *ret_count) {
    LAB_AUTO(arena, scratch);
    const struct lab_span *spans = lab_study_spans(rank, &scratch, ret_count);
    double *intervals = spans ? lab_arena_alloc(arena, *ret_count, sizeof *intervals) : NULL;
    for (size_t i = 0; spans && i < *ret_count; i++)
        intervals[i] = 1e-9 * (double)(spans[i].end_ns - spans[i].start_ns);
    return intervals;
}

/* --- notes --- */

static const char *are(int count) {
    return count == 1 ? " is" : "s are";
}

/* "Every point was run once"; where runs are left, failed or invalid, how many points have one. */
static const char *single_runs(const struct lab_study_table *study, struct lab_arena *arena) {
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    if (count >= study->planned_count)
        return "Every point was run once";
    return lab_arena_printf(arena, "%d point%s 1 run%s", count, count == 1 ? " has" : "s have",
                            count == 1 ? "" : " each");
}

/* Whether some run has one of its own iterations. */
static bool has_intervals(const struct lab_study_table *study) {
    bool any = false;
    for (int i = 0; i < study->run_count; i++)
        any |= isfinite(study->runs[i].run->rate_low);
    return any;
}

static int count_open(const struct lab_study_table *study) {
    return study->planned_count - study->run_count - study->failed_count;
}

const char *lab_study_verdict_words(const struct lab_study_table *study) {
    return study->option && !*study->option ? "Several files of each give verdicts"
           : !study->repeats_planned        ? "experiment.repeat=5 gives verdicts"
           : count_open(study) > 0          ? "Finish the study: its repeats give verdicts"
                                            : "More valid runs give verdicts";
}

void lab_study_add_notes(const struct lab_study_table *study, const char *prefix,
                         const char *const **notes, struct lab_arena *arena) {
    const char *const *own = NULL;
    int open = count_open(study);
    if (study->failed_count > 0)
        lab_analysis_note(&own, arena, "%d of %d run%s failed and%s left out.", study->failed_count,
                          study->planned_count, study->planned_count == 1 ? "" : "s",
                          study->failed_count == 1 ? " is" : " are");
    if (open > 0)
        lab_analysis_note(&own, arena, "%d of %d runs%s still to be done.", open,
                          study->planned_count, open == 1 ? " is" : " are");
    if (study->all_invalid && study->run_count > 0)
        lab_analysis_note(&own, arena,
                          "No run is valid: co-located processes or thermal throttling. All runs "
                          "are used; do not rely on these values.");
    else if (study->invalid_count > 0)
        lab_analysis_note(&own, arena, "%d run%s done but not valid, and left out.",
                          study->invalid_count, are(study->invalid_count));
    if (study->run_count > 0 && !study->repeated)
        lab_analysis_note(&own, arena, "%s: there are values and no verdicts. %s%s.",
                          single_runs(study, arena),
                          has_intervals(study) ? "Intervals are from within one run and don't "
                                                 "cover other runs. "
                                               : "",
                          lab_study_verdict_words(study));
    lab_analysis_add_notes(notes, own, prefix, arena);
    lab_analysis_add_notes(notes, study->notes, prefix, arena);
}
