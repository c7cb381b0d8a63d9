/* placement.c: points of a study as placements, by the work that they did. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTING "nccl_" /* how the keys of NCCL's settings begin */

/* Keys that are the owner's choice: they change how fast the work is done, not what it is. */
static bool is_choice(const char *key) {
    return lab_str_equal(key, "batch_size") || lab_str_equal(key, "compile_model") ||
           lab_str_starts(key, SETTING);
}

/* --- a point as a placement --- */

enum listed { IDS, NODES, DISTANCES };

static int listed(const struct lab_study_rank *rank, enum listed what) {
    return what == IDS ? rank->gpu_id : what == NODES ? rank->numa_node : rank->distance;
}

/* "1", or "[0,1]"; nodes and distances that are all the same are one. */
static const char *list_text(const struct lab_study_run *run, enum listed what,
                             struct lab_arena *arena) {
    bool same = run->rank_count > 0 && (what != IDS || run->rank_count == 1);
    for (int i = 1; i < run->rank_count; i++)
        same = same && listed(&run->ranks[i], what) == listed(&run->ranks[0], what);
    LAB_AUTO(str, text);
    lab_str_add(&text, same ? "" : "[");
    for (int i = 0; i < (same ? 1 : run->rank_count); i++)
        lab_str_printf(&text, "%s%d", i ? "," : "", listed(&run->ranks[i], what));
    lab_str_add(&text, same ? "" : "]");
    return lab_arena_strdup(arena, text.text);
}

/* Those that aren't left to the library, by "auto" or 0. */
static const char *settings_of(const struct lab_study_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < run->options->count; i++) {
        const struct lab_value *value = run->options->items[i];
        const char *name = run->options->keys[i], *comma = text.length ? ", " : "";
        if (!lab_str_starts(name, SETTING))
            continue;
        name += strlen(SETTING);
        if (value->type == LAB_VALUE_STRING && !lab_str_equal(value->string, "auto"))
            lab_str_printf(&text, "%s%s %s", comma, name, value->string);
        if (value->type == LAB_VALUE_INT && value->integer != 0)
            lab_str_printf(&text, "%s%s %lld", comma, name, (long long)value->integer);
    }
    return lab_arena_strdup(arena, text.text);
}

static struct lab_choice make_placement(const struct lab_study_point *point,
                                        struct lab_arena *arena) {
    const struct lab_study_run *run = point->runs[0];
    double batch = lab_study_number(run, "options.batch_size"), sum = 0;
    batch = isnan(batch) ? lab_study_number(run, "test.batch_size") : batch;
    for (int i = 0; i < point->count; i++)
        sum += log(point->rates[i]);
    struct lab_choice made = {.point = point,
                              .devices = list_text(run, IDS, arena),
                              .nodes = list_text(run, NODES, arena),
                              .batch = batch,
                              .batch_text =
                                  isnan(batch) ? "" : lab_arena_printf(arena, "%.0f", batch),
                              .compiled = lab_study_number(run, "options.compile_model") == 1 ||
                                          lab_study_number(run, "test.compile_model") == 1,
                              .local = run->rank_count > 0,
                              .settings = settings_of(run, arena),
                              .rate = exp(sum / point->count),
                              .claim = lab_claim_none};
    bool known = run->rank_count > 0;
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_study_rank *rank = &run->ranks[i];
        known = known && rank->distance > 0;
        made.distance = rank->distance > made.distance ? rank->distance : made.distance;
        made.local = made.local && rank->device_node == rank->numa_node;
    }
    made.distances = known ? list_text(run, DISTANCES, arena) : made.nodes;
    made.distance = known ? made.distance : 0;
    return made;
}

/* --- the same work --- */

static bool same_work(const struct lab_study_run *a, const struct lab_study_run *b) {
    if (!lab_str_equal(a->model, b->model) || !lab_str_equal(a->phase, b->phase) ||
        !lab_str_equal(a->run->workload, b->run->workload) || a->rank_count != b->rank_count ||
        a->options->count != b->options->count)
        return false;
    for (int i = 0; i < a->options->count; i++) {
        const char *key = a->options->keys[i];
        const struct lab_value *other = lab_value_get(b->options, key);
        if (!is_choice(key) && (!other || !lab_value_equal(a->options->items[i], other)))
            return false;
    }
    return true;
}

/* What a failed or constant run leaves: no rate, no placement. */
static bool is_usable(const struct lab_study_point *point) {
    for (int i = 0; i < point->count; i++)
        if (!(point->rates[i] > 0) || isinf(point->rates[i]))
            return false;
    return point->count > 0;
}

/* ", 512 MiB pool", ", 3×224×224", ", heads 8" */
static void add_setting(struct lab_str *name, const char *key, const struct lab_value *value) {
    bool pool = lab_str_equal(key, "memory_size_mb"),
         shape = lab_str_equal(key, "tensor_shape") && value->type == LAB_VALUE_LIST;
    lab_str_add(name, ", ");
    if (!pool && !shape)
        lab_str_printf(name, "%s ", key);
    for (int i = 0; shape && i < value->count; i++) {
        lab_str_add(name, i ? "×" : "");
        lab_value_write(value->items[i], name);
    }
    if (!shape)
        lab_value_write(value, name);
    lab_str_add(name, pool ? " MiB pool" : "");
}

static void add_difference(struct lab_str *name, const struct lab_study_run *run,
                           const struct lab_study_run *other) {
    if (!lab_str_equal(run->run->workload, other->run->workload))
        lab_str_printf(name, ", %s", run->run->workload);
    if (run->rank_count != other->rank_count)
        lab_str_printf(name, ", %d device%s", run->rank_count, run->rank_count == 1 ? "" : "s");
    if (*run->phase && !lab_str_equal(run->phase, other->phase))
        lab_str_printf(name, ", %s", run->phase);
    for (int i = 0; i < run->options->count; i++) {
        const char *key = run->options->keys[i];
        const struct lab_value *value = lab_value_get(other->options, key);
        if (is_choice(key) || (value && lab_value_equal(run->options->items[i], value)))
            continue;
        add_setting(name, key, run->options->items[i]);
    }
}

/* A model that did several works is named with what differs from the first other of them. */
static const char *name_model(const struct lab_study_run **first, int count, int at,
                              struct lab_arena *arena) {
    LAB_AUTO(str, name);
    lab_str_add(&name, first[at]->model);
    for (int i = 0; i < count; i++)
        if (i != at && lab_str_equal(first[i]->model, first[at]->model)) {
            add_difference(&name, first[at], first[i]);
            break;
        }
    return lab_arena_strdup(arena, name.text);
}

/* --- words --- */

static void find_varying(struct lab_choices *placements) {
    const struct lab_choice *first = NULL; /* of its model: they are sorted by it */
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *a = &placements->items[i], *b = first;
        if (!first || a->model != first->model) {
            first = a;
            continue;
        }
        placements->varies[LAB_FACTOR_NODE] |= !lab_str_equal(a->nodes, b->nodes);
        placements->varies[LAB_FACTOR_DEVICE] |= !lab_str_equal(a->devices, b->devices);
        placements->varies[LAB_FACTOR_BATCH] |= !lab_str_equal(a->batch_text, b->batch_text);
        placements->varies[LAB_FACTOR_COMPILE] |= a->compiled != b->compiled;
        placements->varies[LAB_FACTOR_SETTINGS] |= !lab_str_equal(a->settings, b->settings);
    }
}

static const char *rest_of(const struct lab_choices *placements, const struct lab_choice *placement,
                           struct lab_arena *arena) {
    LAB_AUTO(str, words);
    if (placements->varies[LAB_FACTOR_BATCH])
        lab_str_printf(&words, ", batch %s", placement->batch_text);
    if (placements->varies[LAB_FACTOR_COMPILE])
        lab_str_add(&words, placement->compiled ? ", compiled" : ", uncompiled");
    if (placements->varies[LAB_FACTOR_SETTINGS])
        lab_str_printf(&words, ", %s",
                       *placement->settings ? placement->settings : "NCCL defaults");
    return lab_arena_strdup(arena, words.text);
}

static const char *words_of(const struct lab_choice *placement, struct lab_arena *arena) {
    const char *nodes = placement->nodes, *s = nodes[0] == '[' ? "s" : "";
    return lab_arena_printf(
        arena, "%s%s%s", lab_words_gang(placement->point->runs[0], arena),
        lab_str_equal(nodes, "-1") ? "" : lab_arena_printf(arena, ", NUMA node%s %s", s, nodes),
        placement->rest);
}

/* Small models first, on one device before several. */
static int by_work(const void *a, const void *b) {
    const struct lab_study_point *x = a, *y = b;
    const struct lab_study_run *p = x->runs[0], *q = y->runs[0];
    int order = p->rank_count - q->rank_count;
    order = order ? order
                  : lab_study_order(lab_study_complexity(p), p->model, lab_study_complexity(q),
                                    q->model);
    return order ? order : strverscmp(x->name, y->name);
}

/* Which all-reduce was used instead of NCCL; NULL = none was. */
static const char *find_allreduce(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        const char *used = run->result->allreduce;
        if (used && !lab_str_equal(used, "nccl") &&
            lab_str_equal(lab_study_text(run, "options.allreduce"), "nccl"))
            return used;
    }
    return NULL;
}

static bool has_whole_gpus(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        for (int k = 0; k < study->runs[i].rank_count; k++) {
            const char *device = study->runs[i].ranks[k].device;
            if (!lab_str_starts(device, "cuda:") || strchr(device, '/'))
                return false;
        }
    return true;
}

struct lab_choices lab_choices_make(const struct lab_study_table *study, const char *model,
                                    struct lab_arena *arena) {
    struct lab_choices placements = {
        .study = study, .allreduce = find_allreduce(study), .whole_gpus = has_whole_gpus(study)};
    struct lab_study_point *points;
    const struct lab_study_run **first = NULL;
    int count = lab_study_points(study, arena, &points);
    if (count > 0)
        qsort(points, (size_t)count, sizeof *points, by_work);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = points[i].runs[0];
        int at = 0;
        if (!is_usable(&points[i]) || (model && *model && !lab_str_equal(run->model, model)))
            continue;
        while (at < placements.model_count && !same_work(first[at], run))
            at++;
        if (at == placements.model_count)
            LAB_ADD(first, placements.model_count, arena) = run;
        struct lab_choice made = make_placement(&points[i], arena);
        made.model = at;
        LAB_ADD(placements.items, placements.count, arena) = made;
    }
    placements.models =
        lab_arena_alloc(arena, (size_t)placements.model_count + 1, sizeof *placements.models);
    for (int i = 0; i < placements.model_count; i++)
        placements.models[i] = name_model(first, placements.model_count, i, arena);
    LAB_SORT(placements.items, placements.count, LAB_BY(placements.items, model),
             LAB_BY(placements.items, devices), LAB_BY(placements.items, nodes),
             LAB_BY(placements.items, batch_text), LAB_BY(placements.items, compiled),
             LAB_BY_BYTES(placements.items, settings));
    find_varying(&placements);
    for (int i = 0; i < placements.count; i++) {
        placements.items[i].rest = rest_of(&placements, &placements.items[i], arena);
        placements.items[i].words = words_of(&placements.items[i], arena);
    }
    return placements;
}
