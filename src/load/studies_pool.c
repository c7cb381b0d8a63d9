/* studies_pool.c: several studies of one kind and one machine as one: the blocks of all. */
#include "load/studies.h"

#include "base/str.h"
#include "load/point_sets.h"

#include <string.h>

/* --- whether they can be --- */

static int check_machine(const struct lab_study_table *a, const struct lab_study_table *b,
                         struct lab_arena *arena, struct lab_err *err) {
    struct lab_point_set facts[2] = {{0}, {0}};
    if (a->machine_identity == b->machine_identity)
        return 0;
    if (lab_point_set_add_study_facts(&facts[0], a->folder, arena, err) < 0 ||
        lab_point_set_add_study_facts(&facts[1], b->folder, arena, err) < 0)
        return -1;
    const char *differs = lab_point_set_other_machine(&facts[0], &facts[1], arena);
    return lab_err_set(
        err, LAB_ERR_USER,
        "%s and %s ran on different machines (%s): gpulab compare shows what changed", a->name,
        b->name, differs ? differs : "unknown");
}

/* "batch_size: 8, 16"; NULL = they ran the same. */
static const char *other_settings(const struct lab_value *a, const struct lab_value *b,
                                  struct lab_arena *arena) {
    for (int i = 0; a && a->type == LAB_VALUE_MAP && i < a->count; i++) {
        const struct lab_value *other = lab_value_get(b, a->keys[i]);
        if (other && lab_value_equal(a->items[i], other))
            continue;
        LAB_AUTO(str, text);
        lab_str_printf(&text, "%s: ", a->keys[i]);
        lab_value_write(a->items[i], &text);
        lab_str_add(&text, ", ");
        if (other)
            lab_value_write(other, &text);
        else
            lab_str_add(&text, "none");
        return lab_arena_strdup(arena, text.text);
    }
    return NULL;
}

/* Runs of one point's name ran the same. */
static int check_points(const struct lab_study_table *a, const struct lab_study_table *b,
                        struct lab_arena *arena, struct lab_err *err) {
    for (int i = 0; i < b->run_count; i++) {
        const struct lab_study_run *run = &b->runs[i], *same = NULL;
        for (int k = 0; k < a->run_count && !same; k++)
            if (lab_str_equal(a->runs[k].point, run->point) &&
                lab_str_equal(a->runs[k].phase, run->phase))
                same = &a->runs[k];
        if (!same)
            continue;
        const char *differs = other_settings(same->options, run->options, arena);
        differs = differs ? differs : other_settings(same->test, run->test, arena);
        if (differs)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s and %s ran %s with different settings (%s): gpulab compare "
                               "shows what changed",
                               a->name, b->name, run->point, differs);
    }
    return 0;
}

/* A program of the user's is what its command and variables are: the same matrix over another one
 * is something else. */
static bool is_other_program(const struct lab_study_table *a, const struct lab_study_table *b) {
    static const char *const keys[] = {"command", "env"};
    const struct lab_value *first = a->run_count ? a->runs[0].options : NULL,
                           *second = b->run_count ? b->runs[0].options : NULL;
    for (size_t i = 0; first && second && i < sizeof keys / sizeof *keys; i++) {
        const struct lab_value *x = lab_value_get(first, keys[i]),
                               *y = lab_value_get(second, keys[i]);
        if (x && y ? !lab_value_equal(x, y) : x != y)
            return true;
    }
    return false;
}

/* Whether they are one kind of study, which its user doesn't tell apart. */
static bool is_same_kind(const struct lab_study_table *a, const struct lab_study_table *b) {
    return *b->option && /* else files of timings */
           lab_str_equal(a->option, b->option) && lab_str_equal(a->label, b->label) &&
           !is_other_program(a, b);
}

/* --- as one --- */

/* The blocks of another study follow this one's. */
static void add_runs(struct lab_study_table *whole, const struct lab_study_table *more, int block,
                     struct lab_arena *arena) {
    struct lab_run *kept = lab_arena_alloc(arena, (size_t)more->run_count + 1, sizeof *kept);
    for (int i = 0; i < more->run_count; i++) {
        struct lab_study_run *run = &whole->runs[whole->run_count++];
        *run = more->runs[i];
        kept[i] = *more->runs[i].run;
        kept[i].repeat += block;
        run->run = &kept[i];
    }
    size_t failed = (size_t)(whole->failed_count + more->failed_count) + 1;
    struct lab_study_run *all = lab_arena_alloc(arena, failed, sizeof *all);
    for (int i = 0; whole->failed && i < whole->failed_count; i++)
        all[i] = whole->failed[i];
    for (int i = 0; more->failed && i < more->failed_count; i++)
        all[whole->failed_count + i] = more->failed[i];
    whole->failed = whole->failed && more->failed ? all : NULL;
    whole->planned_count += more->planned_count;
    whole->gangs_planned |= more->gangs_planned;
    whole->repeats_planned |= more->repeats_planned;
    whole->failed_count += more->failed_count;
    whole->invalid_count += more->invalid_count;
    whole->simulated |= more->simulated;
    whole->repeated |= more->repeated;
}

static int last_block(const struct lab_study_table *table) {
    int last = -1;
    for (int i = 0; i < table->run_count; i++)
        last = table->runs[i].run->repeat > last ? table->runs[i].run->repeat : last;
    return last;
}

/* A point that both ran has more than one run now. */
static bool share_point(const struct lab_study_table *a, const struct lab_study_table *b) {
    for (int i = 0; i < a->run_count; i++)
        for (int k = 0; k < b->run_count; k++)
            if (a->runs[i].used && b->runs[k].used &&
                lab_str_equal(a->runs[i].point, b->runs[k].point))
                return true;
    return false;
}

static const char *const *joined(const char *const *a, const char *const *b,
                                 struct lab_arena *arena) {
    int counts[2] = {0, 0};
    while (a && a[counts[0]])
        counts[0]++;
    while (b && b[counts[1]])
        counts[1]++;
    const char **all = lab_arena_alloc(arena, (size_t)(counts[0] + counts[1]) + 1, sizeof *all);
    for (int i = 0; i < counts[0] + counts[1]; i++)
        all[i] = i < counts[0] ? a[i] : b[i - counts[0]];
    return all;
}

static void merge(struct lab_study_table *whole, const struct lab_study_table *more,
                  struct lab_arena *arena) {
    size_t room = (size_t)(whole->run_count + more->run_count) + 1;
    struct lab_study_run *runs = lab_arena_alloc(arena, room, sizeof *runs);
    if (whole->run_count)
        memcpy(runs, whole->runs, (size_t)whole->run_count * sizeof *runs);
    bool repeats = share_point(whole, more);
    int block = last_block(whole) + 1;
    whole->runs = runs;
    whole->notes = joined(whole->notes, more->notes, arena);
    if (!lab_str_equal(whole->name, more->name))
        whole->name = lab_arena_printf(arena, "%s + %s", whole->name, more->name);
    add_runs(whole, more, block, arena);
    whole->repeated |= repeats;
    whole->all_invalid = whole->run_count > 0 && whole->invalid_count == whole->run_count;
    for (int i = 0; i < whole->run_count; i++)
        whole->runs[i].used = whole->runs[i].run->valid || whole->all_invalid;
}

static int64_t began_ns(const struct lab_study_table *table) {
    return table->run_count ? table->runs[0].run->start_wall_ns : INT64_MAX;
}

/* One label for studies that can't be pooled would mix them. */
static int check_labels(const struct lab_study_table *tables, int count, struct lab_err *err) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i && tables[i].label; k++)
            if (lab_str_equal(tables[k].label, tables[i].label))
                return lab_err_set(err, LAB_ERR_USER,
                                   "label '%s' is given to %s and %s, which ran different "
                                   "programs or studies: give each a label of its own",
                                   tables[i].label, tables[k].folder, tables[i].folder);
    return 0;
}

int lab_studies_pool(struct lab_study_table *tables, int *count, struct lab_arena *arena,
                     struct lab_err *err) {
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        int at = 0;
        while (at < kept && !is_same_kind(&tables[at], &tables[i]))
            at++;
        if (at == kept) {
            tables[kept++] = tables[i];
            continue;
        }
        struct lab_study_table *first = &tables[at], second = tables[i];
        if (check_machine(first, &second, arena, err) < 0 ||
            check_points(first, &second, arena, err) < 0)
            return -1;
        if (began_ns(&second) < began_ns(first)) {
            struct lab_study_table later = *first;
            *first = second;
            second = later;
        }
        merge(first, &second, arena);
    }
    *count = kept;
    return check_labels(tables, kept, err);
}
