/*
 * plan_points.c: walking a job's axes. Each point starts from the job's constants, takes one value
 * from each axis, and is booked: as a new run, or as one more point of a run that is there already.
 */
#include "plan/plan_internal.h"

#include <math.h>

struct point { /* while it is filled in */
    void *config;
    struct plan_test test;
    const struct lab_value *gang, *nodes;
};

struct walk {
    struct plan_book *book;
    const struct plan_job *job;
    struct lab_err *err;
    void *config, *canonical; /* room for one point's */
};

/* --- filling in --- */

static int apply_element(const struct walk *w, struct point *point, const char *path,
                         const struct lab_value *element) {
    for (int i = 0; i < element->count; i++) {
        if (lab_str_equal(element->keys[i], "name"))
            continue;
        if (plan_set_option(w->job->workload, point->config, w->book->arena, element->keys[i],
                            element->items[i], w->err) < 0)
            return lab_err_context(w->err, "experiment.%s", path);
    }
    return 0;
}

static struct lab_value **tree_at(void *config, const struct lab_option *row) {
    return (struct lab_value **)(void *)((char *)config + row->offset);
}

/* Below one of the workload's maps: what stands for "matrix.lr" goes to the map's key `lr`, and an
 * element that is a map brings several keys. The job's constants stay as they are. */
static void apply_below(const struct walk *w, struct point *point, const struct lab_option *row,
                        const char *key, const struct lab_value *value) {
    struct lab_arena *arena = w->book->arena;
    struct lab_value **field = tree_at(point->config, row);
    if (*field == *tree_at(w->job->base, row)) {
        const struct lab_value *constants = *field;
        *field = lab_value_map(arena);
        for (int i = 0; constants && i < constants->count; i++)
            lab_value_set(arena, *field, constants->keys[i], constants->items[i]);
    }
    if (value->type != LAB_VALUE_MAP)
        lab_value_set(arena, *field, key, lab_value_copy(arena, value));
    for (int i = 0; value->type == LAB_VALUE_MAP && i < value->count; i++)
        lab_value_set(arena, *field, value->keys[i], lab_value_copy(arena, value->items[i]));
}

/* The workload's map option that the path leads into, or NULL. */
static const struct lab_option *map_above(const struct lab_workload *workload, const char *path) {
    size_t length = strcspn(path, ".");
    for (const struct lab_option *row = workload->options; path[length] && row->name; row++)
        if (row->type == LAB_OPTION_VALUE && strlen(row->name) == length &&
            strncmp(row->name, path, length) == 0)
            return row;
    return NULL;
}

static int apply(const struct walk *w, struct point *point, const char *path,
                 const struct lab_value *value) {
    if (strcmp(path, PLAN_GPU_IDS) == 0) {
        point->gang = value;
        return 0;
    }
    if (strcmp(path, PLAN_NUMA_NODES) == 0) {
        point->nodes = value;
        return 0;
    }
    if (lab_str_starts(path, "test."))
        return plan_set_test(w->job, &point->test, point->config, w->book->arena, path + 5, value,
                             w->err);
    const struct lab_option *map = map_above(w->job->workload, path);
    if (map) {
        apply_below(w, point, map, path + strlen(map->name) + 1, value);
        return 0;
    }
    const struct lab_option *row = lab_options_find(w->job->workload->options, path);
    if (value->type == LAB_VALUE_MAP && !(row && row->type == LAB_OPTION_VALUE))
        return apply_element(w, point, path, value);
    const char *dot = strrchr(path, '.');
    if (plan_set_option(w->job->workload, point->config, w->book->arena, dot ? dot + 1 : path,
                        value, w->err) < 0)
        return lab_err_context(w->err, "experiment.%s", path);
    return 0;
}

/* Without what plays no part: points that differ in nothing else are one run. */
static void drop_unused(const struct walk *w, struct point *point) {
    const struct lab_workload *workload = w->job->workload;
    struct lab_arena *arena = w->book->arena;
    for (const struct lab_option *row = workload->options; workload->uses && row->name; row++) {
        if (row->type != LAB_OPTION_VALUE)
            continue;
        struct lab_value **field = tree_at(point->config, row), *all = *field, *used = NULL;
        for (int i = 0; all && all->type == LAB_VALUE_MAP && i < all->count; i++)
            if (!workload->uses(point->config, row->name, all->keys[i]))
                used = lab_value_map(arena);
        for (int i = 0; used && i < all->count; i++)
            if (workload->uses(point->config, row->name, all->keys[i]))
                lab_value_set(arena, used, all->keys[i], all->items[i]);
        *field = used ? used : all;
    }
}

/* --- ranks; plan_check_hardware has seen to it that all of them are here --- */

static int64_t number_at(const struct lab_value *value, int index) {
    return value->type == LAB_VALUE_LIST ? value->items[index]->integer : value->integer;
}

static int count_of(const struct lab_value *value) {
    return value->type == LAB_VALUE_LIST ? value->count : 1;
}

/* Of a device whose node is unknown, the machine's first. */
static int local_node(const struct plan_book *book, int gpu_id) {
    int node = book->devices.items[gpu_id].node;
    return node >= 0 ? node : book->machine->nodes[0].number;
}

static int make_ranks(const struct walk *w, const struct point *point, const struct lab_value *gang,
                      struct lab_run_rank *ranks, int *ret_count) {
    int count = count_of(gang), nodes = count_of(point->nodes);
    if (nodes != 1 && nodes != count)
        return lab_value_err(
            point->nodes, w->err,
            "experiment.hardware.numa_nodes: an inner list has a NUMA node for each "
            "device of the gang: %d nodes, but %d device%s",
            nodes, count, count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        int gpu_id = (int)number_at(gang, i);
        ranks[i] = (struct lab_run_rank){
            .gpu_id = gpu_id,
            .device = w->book->devices.items[gpu_id].name,
            .numa_node = plan_is_local_node(point->nodes)
                             ? local_node(w->book, gpu_id)
                             : (int)number_at(point->nodes, nodes == 1 ? 0 : i),
        };
    }
    *ret_count = count;
    return 0;
}

/* The slots of a spread point, one after the other: the first one's ranks stand for the others. */
static int make_slots(const struct walk *w, const struct point *point, struct plan_draft *draft,
                      struct lab_run_rank *ranks) {
    int slot_count = plan_spread_count(point->gang);
    draft->rank_count = count_of(plan_spread_slot(point->gang, 0));
    struct lab_run_rank one[LAB_OPTION_INTS_MAX],
        *slots = lab_arena_alloc(w->book->arena, (size_t)slot_count * (size_t)draft->rank_count,
                                 sizeof *slots);
    for (int i = 0; i < slot_count; i++) {
        int count = 0;
        if (make_ranks(w, point, plan_spread_slot(point->gang, i), one, &count) < 0)
            return -1;
        if (i == 0)
            memcpy(ranks, one, (size_t)count * sizeof *one);
        if (count != draft->rank_count)
            return lab_value_err(point->gang, w->err,
                                 "experiment.hardware.gpu_ids: with spread=true each gang has as "
                                 "many devices: one has %d, another %d",
                                 draft->rank_count, count);
        memcpy(&slots[(ptrdiff_t)i * count], one, (size_t)count * sizeof *one);
    }
    draft->slots = slots;
    draft->slot_count = slot_count;
    return plan_spread_place(w->book, point->gang, point->nodes, slots, slot_count,
                             draft->rank_count, &draft->place, w->err);
}

/* --- booking --- */

static int64_t batches(int64_t samples, double batch) {
    return batch > 0 ? (int64_t)ceil((double)samples / batch) : samples;
}

static int book_work(const struct walk *w, const void *config, uint64_t hash) {
    struct plan_book *book = w->book;
    const struct lab_workload *workload = w->job->workload;
    int at = plan_index_find(&book->work_index, hash);
    if (at >= 0)
        return at;
    struct plan_work *work = &LAB_PUSH(book->works, book->work_count);
    void *kept = lab_arena_alloc(book->arena, 2, workload->config_size);
    void *canonical = (char *)kept + workload->config_size;
    memcpy(kept, config, workload->config_size);
    memcpy(canonical, w->canonical, workload->config_size);
    *work = (struct plan_work){
        .workload = workload,
        .config = kept,
        .canonical = canonical,
        .options = lab_options_to_map(workload->options, kept, book->arena),
    };
    workload->cost(kept, &work->cost);
    work->label = lab_workload_label(workload, kept, book->arena);
    plan_index_add(&book->work_index, hash, book->work_count - 1);
    return book->work_count - 1;
}

static uint64_t hash_draft(uint64_t hash, const struct plan_draft *draft,
                           const struct lab_run_rank *ranks) {
    char text[96];
    if (draft->place)
        hash = lab_hash_text(hash, draft->place);
    for (int i = 0; i < draft->rank_count && !draft->place; i++) {
        hash = lab_hash_text(lab_hash_text(hash, "rank "), ranks[i].device);
        snprintf(text, sizeof text, " %d\n", ranks[i].numa_node);
        hash = lab_hash_text(hash, text);
    }
    snprintf(text, sizeof text, "iterations %lld\nwarmup %lld\n", (long long)draft->iterations,
             (long long)draft->warmup_iterations);
    hash = lab_hash_text(hash, text);
    if (draft->launched)
        hash = lab_hash_text(hash, "launcher\n");
    if (!draft->phase)
        return hash;
    LAB_AUTO(str, phase);
    lab_str_printf(&phase, "phase %s ", draft->phase->name);
    plan_phase_write(draft->phase, &phase);
    lab_str_add(&phase, "\n");
    hash = lab_hash_text(hash, phase.text);
    return hash;
}

static int book_draft(struct plan_book *book, const struct plan_draft *draft,
                      const struct lab_run_rank *ranks) {
    int at = plan_index_find(&book->draft_index, draft->hash);
    if (at >= 0) {
        double *timeout_s = &book->drafts[at].test.timeout_s;
        *timeout_s = fmax(*timeout_s, draft->test.timeout_s);
        return at;
    }
    struct plan_draft *kept = &LAB_PUSH(book->drafts, book->draft_count);
    *kept = *draft;
    kept->ranks = lab_arena_alloc(book->arena, (size_t)draft->rank_count, sizeof *kept->ranks);
    memcpy(kept->ranks, ranks, (size_t)draft->rank_count * sizeof *kept->ranks);
    plan_index_add(&book->draft_index, draft->hash, book->draft_count - 1);
    return book->draft_count - 1;
}

static void add_series(struct plan_book *book, struct plan_draft *draft, const char *name) {
    for (int i = 0; i < draft->series_count; i++)
        if (strcmp(draft->series[i], name) == 0)
            return;
    const char **names =
        lab_arena_alloc(book->arena, (size_t)draft->series_count + 2, sizeof *names);
    if (draft->series_count)
        memcpy(names, draft->series, (size_t)draft->series_count * sizeof *names);
    /* the job's tree goes, the plan stays */
    names[draft->series_count++] = lab_arena_strdup(book->arena, name);
    draft->series = names;
}

struct filled { /* a point's work, and how it is measured */
    struct point point;
    uint64_t hash;
    int work;
};

/* The axes' values at `at`. */
static int fill_point(const struct walk *w, const struct plan_product *product, const int *at,
                      struct filled *ret) {
    const struct lab_workload *workload = w->job->workload;
    struct point point = {.config = w->config, .test = w->job->keys.test};
    memcpy(point.config, w->job->base, workload->config_size);
    for (int i = 0; i < product->count; i++)
        for (int k = 0; k < product->axes[i].key_count; k++)
            if (apply(w, &point, product->axes[i].paths[k], product->axes[i].values[k][at[i]]) < 0)
                return -1;
    if (workload->check && workload->check(point.config, w->err) < 0)
        return lab_err_context(w->err, "%s", w->book->option);
    drop_unused(w, &point);
    memcpy(w->canonical, point.config, workload->config_size);
    if (workload->canonical)
        workload->canonical(w->canonical);
    uint64_t hash = plan_hash_work(workload, w->canonical);
    *ret = (struct filled){point, hash, book_work(w, point.config, hash)};
    return 0;
}

static bool is_launched(const struct walk *w, const struct plan_work *work) {
    const char *processes = w->job->keys.processes;
    const struct lab_workload *workload = work->workload;
    return processes ? lab_str_equal(processes, "launcher")
                     : workload->launches_gang && workload->launches_gang(work->config);
}

#define ITERATIONS_LEAST 20 /* where neither samples nor steps were given */

/* As a run on these ranks; its index. */
static int book_point(const struct walk *w, const struct filled *filled, struct plan_draft draft,
                      const struct lab_run_rank *ranks) {
    draft.test = filled->point.test;
    draft.work = filled->work;
    double batch = w->book->works[draft.work].cost.samples;
    draft.iterations = batches(draft.test.num_samples, batch);
    /* a batch may have more samples than the default, such as tokens */
    if (!draft.test.counted && draft.iterations < ITERATIONS_LEAST)
        draft.test.num_steps = ITERATIONS_LEAST;
    draft.warmup_iterations = batches(draft.test.warmup_samples, batch);
    if (draft.test.num_steps >= 0)
        draft.iterations = draft.test.num_steps;
    if (draft.test.warmup_steps >= 0)
        draft.warmup_iterations = draft.test.warmup_steps;
    draft.launched =
        draft.rank_count > 1 && !draft.phase && is_launched(w, &w->book->works[draft.work]);
    draft.hash = hash_draft(filled->hash, &draft, ranks);
    return book_draft(w->book, &draft, ranks);
}

#define LEFT_OUT (-2)

/* As a run; its index, or -1 and the error is set, or LEFT_OUT. */
static int take_point(const struct walk *w, const struct plan_product *product, const int *at) {
    struct filled filled;
    struct lab_run_rank ranks[LAB_OPTION_INTS_MAX];
    struct plan_draft draft = {0};
    if (fill_point(w, product, at, &filled) < 0)
        return -1;
    const struct point *point = &filled.point;
    if (w->job->keys.spread ? make_slots(w, point, &draft, ranks) < 0
                            : make_ranks(w, point, point->gang, ranks, &draft.rank_count) < 0)
        return -1;
    const struct plan_work *work = &w->book->works[filled.work];
    if (plan_mode_skips(w->book, w->job, work, ranks, draft.rank_count))
        return LEFT_OUT;
    plan_mode_note_nccl(w->book, work, ranks, draft.rank_count);
    int index = book_point(w, &filled, draft, ranks);
    plan_merge_point(w->book, w->job, product, at, &w->book->drafts[index]);
    return index;
}

/* --- phases --- */

/* On the device's own node where the phase says so; else the system chooses. */
static void place_gang(const struct walk *w, const struct lab_plan_phase *phase,
                       const struct plan_gang *gang, struct lab_run_rank *ranks) {
    for (int i = 0; i < gang->count; i++) {
        const struct lab_device_ref *ref = &w->book->devices.items[gang->gpu_ids[i]];
        ranks[i] =
            (struct lab_run_rank){.gpu_id = gang->gpu_ids[i],
                                  .device = ref->name,
                                  .numa_node = phase->mitigations & LAB_PLAN_NUMA ? ref->node : -1};
    }
}

/* What a phase begins with must have been chosen: where nothing can be tuned, nothing is. */
static bool has_choice(const struct walk *w, const struct filled *filled,
                       const struct lab_plan_phase *phase, int gpu_id) {
    const struct plan_work *work = &w->book->works[filled->work];
    bool cached = phase->mitigations & LAB_PLAN_TUNING_CACHE;
    if ((!phase->regret && !cached) || plan_can_tune(w->book, work, gpu_id))
        return true;
    if (cached)
        plan_note(w->book, "phase %s is left out of %s: nothing of it can be tuned on %s",
                  phase->name, work->label, w->book->devices.items[gpu_id].name);
    return false;
}

static int take_phase(const struct walk *w, const struct filled *filled,
                      const struct lab_plan_phase *phase) {
    struct plan_book *book = w->book;
    int gpu_ids[LAB_OPTION_INTS_MAX], count = count_of(filled->point.gang);
    for (int i = 0; i < count; i++)
        gpu_ids[i] = (int)number_at(filled->point.gang, i);
    struct plan_gang *gangs;
    int gang_count = plan_phase_gangs(book, phase, gpu_ids, count, &gangs);
    struct lab_run_rank ranks[LAB_OPTION_INTS_MAX];
    for (int i = 0; i < gang_count; i++) {
        if (!has_choice(w, filled, phase, gangs[i].gpu_ids[0]))
            continue;
        place_gang(w, phase, &gangs[i], ranks);
        int index = book_point(
            w, filled, (struct plan_draft){.rank_count = gangs[i].count, .phase = phase}, ranks);
        book->drafts[index].point_count++;
        book->point_count++;
    }
    return 0;
}

static int take_phases(const struct walk *w, const int *at) {
    struct filled filled;
    if (fill_point(w, &w->job->product, at, &filled) < 0)
        return -1;
    for (int i = 0; i < w->job->phase_count; i++)
        if (take_phase(w, &filled, &w->job->phases[i]) < 0)
            return -1;
    return 0;
}

/* --- walking --- */

static bool meets(const struct plan_product *product, bool *const *allowed, const int *at) {
    for (int i = 0; i < product->count; i++)
        if (!allowed[i][at[i]])
            return false;
    return true;
}

/* How many of the study's series see this place of its own axes; -1 = some series has it crossed
 * with axes of its own, and no other sees it. */
static int count_views(const struct plan_job *job, const int *at) {
    int views = 0;
    bool crossed = false;
    for (int i = 0; i < job->series_count; i++) {
        const struct plan_series *series = &job->series[i];
        if (series->own_axes)
            crossed |= meets(&job->product, series->taken, at);
        else
            views += meets(&job->product, series->allowed, at);
    }
    return views == 0 && crossed ? -1 : views;
}

/* Books a place of the study's own axes: a point for each series that sees it, or one of no
 * series. */
static int take_own_place(const struct walk *w, const int *at) {
    const struct plan_job *job = w->job;
    if (job->phase_count > 0)
        return take_phases(w, at);
    int views = count_views(job, at);
    int index = views < 0 ? 0 : take_point(w, &job->product, at);
    if (views < 0 || index < 0)
        return index == LEFT_OUT ? 0 : index;
    for (int i = 0; i < job->series_count; i++)
        if (!job->series[i].own_axes && meets(&job->product, job->series[i].allowed, at))
            add_series(w->book, &w->book->drafts[index], job->series[i].name);
    int points = views ? views : 1;
    w->book->drafts[index].point_count += points;
    w->book->point_count += points;
    return 0;
}

static int take_place(const struct walk *w, const struct plan_series *series, const int *at) {
    if (!meets(&series->product, series->allowed, at))
        return 0;
    int index = take_point(w, &series->product, at);
    if (index < 0)
        return index == LEFT_OUT ? 0 : -1;
    add_series(w->book, &w->book->drafts[index], series->name);
    w->book->drafts[index].point_count++;
    w->book->point_count++;
    return 0;
}

/* `series` NULL: the study's own axes. */
static int walk_product(const struct walk *w, const struct plan_series *series) {
    const struct plan_product *product = series ? &series->product : &w->job->product;
    double size = 1;
    for (int i = 0; i < product->count; i++)
        size *= product->axes[i].length;
    if ((double)w->book->point_count + size > LAB_PLAN_POINTS_MAX)
        return lab_err_set(w->err, LAB_ERR_USER,
                           "%s: %.3g points or more: a plan has %d at most; make axes or sweeps "
                           "shorter",
                           w->book->option, (double)w->book->point_count + size,
                           LAB_PLAN_POINTS_MAX);
    LAB_AUTO_FREE int *at = lab_mem_alloc((size_t)product->count, sizeof *at);
    int result = 0;
    for (int moved = 0; moved >= 0 && result == 0;) {
        result = series ? take_place(w, series, at) : take_own_place(w, at);
        for (moved = product->count - 1; moved >= 0; moved--) {
            if (++at[moved] < product->axes[moved].length)
                break;
            at[moved] = 0;
        }
    }
    return result;
}

int plan_points_book(struct plan_book *book, const struct plan_job *job, struct lab_err *err) {
    size_t bytes = job->workload->config_size;
    struct walk w = {.book = book,
                     .job = job,
                     .err = err,
                     .config = lab_mem_alloc(1, bytes),
                     .canonical = lab_mem_alloc(1, bytes)};
    int result = job->has_own_points ? walk_product(&w, NULL) : 0;
    for (int i = 0; i < job->series_count && result == 0; i++)
        if (job->series[i].own_axes)
            result = walk_product(&w, &job->series[i]);
    lab_mem_free(w.config);
    lab_mem_free(w.canonical);
    return result;
}
