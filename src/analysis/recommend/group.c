/* group.c: which points did the same work, which of them was fastest, and what can be told
 * apart. */
#include "analysis/recommend/recommend.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE    0.95
#define RESAMPLES     2000
#define RESAMPLES_MIN 200
#define DRAWS_MAX     20000000.0 /* of all resamples of a group */
#define SEED          1

/* --- a point as a place --- */

#define SETTING "nccl_" /* how the keys of NCCL's settings begin */

static bool is_setting(const char *key) {
    return lab_str_starts(key, SETTING);
}

/* Keys that are the owner's choice: they change how fast the work is done, not what it is. */
static bool is_choice(const char *key) {
    return lab_str_equal(key, "batch_size") || lab_str_equal(key, "compile_model") ||
           is_setting(key);
}

static bool same_nodes(const struct lab_study_run *run) {
    for (int i = 1; i < run->rank_count; i++)
        if (run->ranks[i].numa_node != run->ranks[0].numa_node)
            return false;
    return true;
}

/* "1", or "[0,1]" */
static const char *list_text(const struct lab_study_run *run, bool nodes, struct lab_arena *arena) {
    bool single = run->rank_count == 1 || (nodes && same_nodes(run));
    LAB_AUTO(str, text);
    lab_str_add(&text, single ? "" : "[");
    for (int i = 0; i < (single && run->rank_count > 0 ? 1 : run->rank_count); i++)
        lab_str_printf(&text, "%s%d", i ? "," : "",
                       nodes ? run->ranks[i].numa_node : run->ranks[i].gpu_id);
    lab_str_add(&text, single ? "" : "]");
    return lab_arena_strdup(arena, text.text);
}

static double batch_of(const struct lab_study_run *run) {
    double batch = lab_study_number(run, "options.batch_size");
    return isnan(batch) ? lab_study_number(run, "test.batch_size") : batch;
}

static bool is_compiled(const struct lab_study_run *run) {
    return lab_study_number(run, "options.compile_model") == 1 ||
           lab_study_number(run, "test.compile_model") == 1;
}

/* Those that aren't left to the library, by "auto" or 0. */
static const char *settings_of(const struct lab_study_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < run->options->count; i++) {
        const struct lab_value *value = run->options->items[i];
        if (!is_setting(run->options->keys[i]))
            continue;
        const char *name = run->options->keys[i] + strlen(SETTING),
                   *comma = text.length ? ", " : "";
        if (value->type == LAB_VALUE_STRING && !lab_str_equal(value->string, "auto"))
            lab_str_printf(&text, "%s%s %s", comma, name, value->string);
        if (value->type == LAB_VALUE_INT && value->integer != 0)
            lab_str_printf(&text, "%s%s %lld", comma, name, (long long)value->integer);
    }
    return lab_arena_strdup(arena, text.text);
}

static double mean_rate(const struct lab_study_point *point) {
    double sum = 0;
    for (int i = 0; i < point->count; i++)
        sum += log(point->rates[i]);
    return exp(sum / point->count);
}

static struct lab_place make_place(const struct lab_study_point *point, struct lab_arena *arena) {
    const struct lab_study_run *run = point->runs[0];
    struct lab_place place = {.point = point,
                              .devices = list_text(run, false, arena),
                              .nodes = list_text(run, true, arena),
                              .batch = batch_of(run),
                              .compiled = is_compiled(run),
                              .settings = settings_of(run, arena),
                              .local = true,
                              .knows_home = run->rank_count > 0,
                              .rate = mean_rate(point),
                              .low = run->run->rate_low,
                              .high = run->run->rate_high};
    for (int i = 0; i < run->rank_count; i++) {
        place.knows_home = place.knows_home && run->ranks[i].device_node >= 0;
        place.local = place.local && run->ranks[i].device_node == run->ranks[i].numa_node;
    }
    if (point->count > 1) {
        struct lab_interval interval =
            lab_stats_median_interval(point->rates, (size_t)point->count, CONFIDENCE);
        place.low = interval.low;
        place.high = interval.high;
    }
    return place;
}

/* --- groups --- */

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

/* What a failed or constant run leaves: no rate, no place. */
static bool is_usable(const struct lab_study_point *point) {
    for (int i = 0; i < point->count; i++)
        if (!(point->rates[i] > 0) || isinf(point->rates[i]))
            return false;
    return point->count > 0;
}

static int by_rate(const void *a, const void *b) {
    const struct lab_place *first = a, *second = b;
    return (first->rate < second->rate) - (first->rate > second->rate);
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
        lab_str_printf(name, ", %s ", key);
        lab_value_write(run->options->items[i], name);
    }
}

/* A model that did several works is told apart by what differs from the first other of them. */
static const char *name_group(const struct lab_place_group *groups, int count, int at,
                              struct lab_arena *arena) {
    const struct lab_study_run *run = groups[at].places[0].point->runs[0];
    LAB_AUTO(str, name);
    lab_str_add(&name, groups[at].model);
    for (int i = 0; i < count; i++)
        if (i != at && lab_str_equal(groups[i].model, groups[at].model)) {
            add_difference(&name, run, groups[i].places[0].point->runs[0]);
            break;
        }
    return lab_arena_strdup(arena, name.text);
}

/* --- what can be told apart --- */

static void find_varying(struct lab_place_group *group) {
    const struct lab_place *best = &group->places[0];
    for (int i = 1; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        group->varies_device |= !lab_str_equal(place->devices, best->devices);
        group->varies_node |= !lab_str_equal(place->nodes, best->nodes);
        group->varies_batch |= place->batch != best->batch && !isnan(best->batch);
        group->varies_compile |= place->compiled != best->compiled;
        group->varies_settings |= !lab_str_equal(place->settings, best->settings);
    }
}

/* "device 3 from node 1, batch 32, compiled" */
static const char *place_words(const struct lab_place_group *group, const struct lab_place *place,
                               bool brief, struct lab_arena *arena) {
    LAB_AUTO(str, words);
    if (!brief)
        lab_str_add(&words, place->point->runs[0]->rank_count == 1 ? "device " : "devices ");
    lab_str_printf(&words, "%s from node %s", place->devices, place->nodes);
    if (group->varies_batch)
        lab_str_printf(&words, brief ? ", b%.0f" : ", batch %.0f", place->batch);
    if (group->varies_compile)
        lab_str_add(&words, place->compiled ? ", compiled" : ", not compiled");
    if (group->varies_settings)
        lab_str_printf(&words, ", %s", *place->settings ? place->settings : "NCCL's own choices");
    return lab_arena_strdup(arena, words.text);
}

static void compare_all(struct lab_place_group *group, struct lab_arena *arena) {
    struct lab_study_ratio *ratios = lab_arena_alloc(arena, (size_t)group->count, sizeof *ratios);
    for (int i = 1; i < group->count; i++)
        ratios[i] =
            lab_study_compare(group->places[0].point, group->places[i].point, LAB_STUDY_RATE);
    lab_study_adjust(ratios + 1, group->count - 1);
    ratios[0] = (struct lab_study_ratio){1, 1, 1, 1, 0, 1, false, 0, LAB_STUDY_SAME};
    group->alike = 0;
    for (int i = 0; i < group->count; i++) {
        group->places[i].against_best = ratios[i];
        group->alike += ratios[i].verdict != LAB_STUDY_LESS;
    }
}

static void count_wins(struct lab_place_group *group, struct lab_arena *arena) {
    size_t count = (size_t)group->count, *sizes = lab_arena_alloc(arena, count, sizeof *sizes);
    const double **samples = lab_arena_alloc(arena, count, sizeof *samples);
    int *wins = lab_arena_alloc(arena, count, sizeof *wins);
    double draws = 0;
    for (size_t i = 0; i < count; i++) {
        const struct lab_study_point *point = group->places[i].point;
        double *logs = lab_arena_alloc(arena, (size_t)point->count, sizeof *logs);
        for (int k = 0; k < point->count; k++)
            logs[k] = log(point->rates[k]);
        samples[i] = logs;
        sizes[i] = (size_t)point->count;
        draws += point->count;
    }
    int resamples = (int)fmin(RESAMPLES, fmax(RESAMPLES_MIN, DRAWS_MAX / draws));
    if (count > 1 && lab_stats_wins(samples, sizes, count, resamples, SEED, wins)) {
        group->wins = wins[0];
        group->resamples = resamples;
    }
}

static int find_standard(const struct lab_place_group *group) {
    const struct lab_place *best = &group->places[0];
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        bool same_batch = place->batch == best->batch || isnan(best->batch);
        if (lab_str_equal(place->devices, best->devices) && same_batch && place->knows_home &&
            place->local && !place->compiled && !*place->settings)
            return i;
    }
    return -1;
}

struct lab_study_ratio lab_place_gain(const struct lab_place_group *group, int i) {
    struct lab_study_ratio gain = group->places[i].against_best;
    double low = gain.low;
    gain.ratio = 1 / gain.ratio;
    gain.low = 1 / gain.high;
    gain.high = 1 / low;
    gain.bound = fmax(fabs(gain.low - 1), fabs(gain.high - 1));
    if (gain.verdict == LAB_STUDY_LESS || gain.verdict == LAB_STUDY_MORE)
        gain.verdict = gain.verdict == LAB_STUDY_LESS ? LAB_STUDY_MORE : LAB_STUDY_LESS;
    return gain;
}

static void finish(struct lab_place_group *group, struct lab_arena *arena) {
    qsort(group->places, (size_t)group->count, sizeof *group->places, by_rate);
    find_varying(group);
    for (int i = 0; i < group->count; i++) {
        group->places[i].words = place_words(group, &group->places[i], false, arena);
        group->places[i].brief = place_words(group, &group->places[i], true, arena);
    }
    compare_all(group, arena);
    count_wins(group, arena);
    group->standard = find_standard(group);
}

int lab_place_groups(const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_place_group **ret_groups) {
    struct lab_study_point *points;
    int point_count = lab_study_points(study, arena, &points), count = 0;
    size_t room = (size_t)point_count + 1;
    struct lab_place_group *groups = lab_arena_alloc(arena, room, sizeof *groups);
    bool *taken = lab_arena_alloc(arena, room, sizeof *taken);
    int *members = lab_arena_alloc(arena, room, sizeof *members);
    for (int i = 0; i < point_count; i++) {
        if (taken[i] || !is_usable(&points[i]))
            continue;
        struct lab_place_group *group = &groups[count];
        int member_count = 0;
        for (int k = i; k < point_count; k++)
            if (!taken[k] && is_usable(&points[k]) &&
                same_work(points[i].runs[0], points[k].runs[0])) {
                taken[k] = true;
                members[member_count++] = k;
            }
        group->study = study;
        group->model = points[i].runs[0]->model;
        group->places = lab_arena_alloc(arena, (size_t)member_count, sizeof *group->places);
        for (; group->count < member_count; group->count++)
            group->places[group->count] = make_place(&points[members[group->count]], arena);
        finish(group, arena);
        count++;
    }
    for (int i = 0; i < count; i++)
        groups[i].name = name_group(groups, count, i, arena);
    *ret_groups = groups;
    return count;
}
