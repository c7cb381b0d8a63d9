/*
 * plan.c: a sweep's jobs, one after the other, into one list of runs. A job's tree is dropped as
 * soon as its points are booked, so that ten thousand jobs take the memory of their runs alone.
 */
#include "plan/plan.h"

#include "base/list.h"
#include "base/random.h"
#include "plan/plan_internal.h"

/* --- jobs --- */

/* The study that the words chose: the option of the group `experiment` in the primary config. */
static const char *chosen_study(const struct lab_config *config, struct lab_arena *arena) {
    for (int i = 0; i < config->choice_count; i++) {
        const struct lab_config_choice *choice = &config->choices[i];
        if (choice->group && lab_str_equal(choice->group, "experiment") &&
            lab_str_equal(choice->package, "experiment") && choice->parent &&
            lab_str_equal(choice->parent, "config"))
            return lab_arena_strdup(arena, choice->option);
    }
    return NULL;
}

struct planner {
    const struct lab_sweep *sweep;
    struct lab_composer *composer;
    struct plan_book book;
    struct plan_keys keys; /* the first job's */
    struct lab_plan *plan;
};

/* Nodes and memory are those of the machine that the devices are in, which can be one only. */
static int choose_machine(struct plan_book *book, struct lab_err *err) {
    const struct lab_device_ref *first = &book->devices.items[0];
    for (int i = 1; i < book->devices.count; i++) {
        const struct lab_device_ref *other = &book->devices.items[i];
        if (!lab_str_equal(first->definition, other->definition))
            return lab_err_set(err, LAB_ERR_USER,
                               "%s and %s aren't in one machine: a study is of one machine, real "
                               "or simulated",
                               first->name, other->name);
    }
    if (first->machine)
        book->machine = first->machine;
    return 0;
}

/* Those of a plan before, where it selected the same: a simulated machine is described once. */
static int select_devices(struct plan_book *book, const char *selector, struct lab_err *err) {
    struct lab_plan_devices *kept = book->strategy ? book->strategy->devices : NULL;
    if (!kept)
        return lab_device_select(book->machine, selector, book->arena, &book->devices, err);
    if (!kept->selector || !lab_str_equal(kept->selector, selector)) {
        struct lab_device_list list = {0};
        if (lab_device_select(book->machine, selector, kept->arena, &list, err) < 0)
            return -1;
        kept->list = list;
        kept->selector = lab_arena_strdup(kept->arena, selector);
    }
    book->devices = kept->list;
    return 0;
}

static int start_plan(struct planner *p, const struct lab_config *config,
                      const struct plan_job *job, struct lab_err *err) {
    p->keys = job->keys;
    p->plan->config = config->tree;
    p->book.workload_count = job->workload_count;
    const char *option = chosen_study(config, p->book.arena);
    p->plan->option = p->book.option = option ? option : job->keys.name;
    if (select_devices(&p->book, job->keys.device, err) < 0)
        return lab_err_context(err, "device");
    return choose_machine(&p->book, err);
}

/* The job's points with one of its workloads. */
static int plan_workload(struct planner *p, struct plan_job *job, int index,
                         struct lab_arena *arena, struct lab_err *err) {
    job->workload = job->workloads[index];
    job->base = lab_arena_alloc(arena, 1, job->workload->config_size);
    job->product = (struct plan_product){0};
    job->series = NULL;
    job->series_count = 0;
    if (plan_axes_read(job, arena, err) < 0 || plan_constants_read(&p->book, job, err) < 0 ||
        plan_check_hardware(&p->book, job, err) < 0)
        return -1;
    plan_spread_note(&p->book, job);
    plan_note_programs(&p->book, job);
    return plan_points_book(&p->book, job, err);
}

static int plan_job(struct planner *p, int64_t index, struct lab_arena *scratch,
                    struct lab_err *err) {
    /* the first job's config is kept, and its texts serve to compare the others' with */
    struct lab_arena *arena = index == 0 ? p->book.arena : scratch;
    struct lab_override *words;
    int word_count;
    struct lab_config config;
    if (lab_sweep_job(p->sweep, index, arena, &words, &word_count, err) < 0 ||
        lab_composer_compose(p->composer, words, word_count, arena, &config, err) < 0)
        return -1;
    struct plan_job job = {.index = index, .tree = config.tree};
    lab_options_defaults(lab_plan_keys, &job.keys, arena);
    if (plan_keys_read(&job, arena, err) < 0)
        return -1;
    if (index == 0 ? start_plan(p, &config, &job, err) < 0
                   : plan_keys_agree(&p->keys, &job.keys, index, err) < 0)
        return -1;
    job.devices = &p->book.devices;
    job.machine = p->book.machine;
    if (plan_phases_read(&p->book, &job, err) < 0)
        return -1;
    for (int i = 0; i < job.workload_count; i++)
        if (plan_workload(p, &job, i, arena, err) < 0)
            return -1;
    return 0;
}

static int plan_jobs(struct planner *p, struct lab_err *err) {
    for (int64_t i = 0; i < p->sweep->job_count; i++) {
        LAB_AUTO(arena, scratch);
        if (plan_job(p, i, &scratch, err) < 0)
            return -1;
    }
    return 0;
}

/* --- runs --- */

/* Fisher and Yates; block b of a seed is the same, however many blocks there are. */
static void shuffle(int *order, int count, uint64_t seed, int block) {
    uint64_t stream = lab_random_bits(seed, (uint64_t)block);
    for (int i = count - 1; i > 0; i--) {
        int other = (int)lab_random_below(stream, (uint64_t)i, (uint64_t)i + 1);
        int swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
}

/* A phase's time on a device is shared by its kernels and repeats, and in each by tuning and
 * timing. */
static void set_times(const struct plan_book *book, const struct lab_plan *plan,
                      const struct plan_draft *draft, struct lab_plan_run *run) {
    enum { TUNE_S = 5 }; /* where nothing says how long a run takes */
    enum {
        SIMULATED_S = 1
    }; /* a model has told all by then, and each of its iterations takes time here */
    const struct lab_plan_phase *phase = draft->phase;
    run->duration_s = plan->duration_s;
    if (!phase)
        return;
    double share_s = plan->duration_s / (book->workload_count * plan->repeat);
    bool tunes = !phase->regret && !(phase->mitigations & LAB_PLAN_TUNING_CACHE) &&
                 plan_can_tune(book, &book->works[draft->work], draft->ranks[0].gpu_id);
    run->duration_s = tunes ? share_s / 2 : share_s;
    if (book->machine->simulated && run->duration_s > SIMULATED_S)
        run->duration_s = SIMULATED_S;
    if (tunes)
        run->tune_s = share_s > 0 ? share_s / 2 : TUNE_S;
}

/* `asked` samples, or those of so many steps where they were asked for instead. */
static int64_t samples_of(const struct plan_work *work, int64_t asked, int64_t steps,
                          int64_t iterations) {
    double batch = work->cost.samples;
    return steps >= 0 && batch > 0 ? iterations * (int64_t)batch : asked;
}

struct block { /* a repeat of all points; texts that its runs share */
    int repeat;
    char tail[16]; /* of their ids: "_r3", or "" */
    char text[32]; /* of their identities */
};

static struct block make_block(int repeat, int repeats) {
    struct block block = {.repeat = repeat};
    snprintf(block.text, sizeof block.text, "repeat %d\n", repeat);
    if (repeats > 1)
        snprintf(block.tail, sizeof block.tail, "_r%d", repeat);
    return block;
}

static const char *join(const char *id, const char *tail, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add(&text, id);
    lab_str_add(&text, tail);
    return lab_arena_strdup(arena, text.text);
}

static struct lab_plan_run make_run(const struct plan_book *book, const struct plan_draft *draft,
                                    const char *id, const struct block *block) {
    static const char *const none[] = {NULL};
    const struct plan_work *work = &book->works[draft->work];
    return (struct lab_plan_run){
        .id = *block->tail ? join(id, block->tail, book->arena) : id,
        .identity = lab_hash_text(draft->hash, block->text),
        .workload = work->workload->name,
        .options = work->options,
        .label = work->label,
        .ranks = draft->ranks,
        .rank_count = draft->rank_count,
        .slots = draft->slots,
        .slot_count = draft->slot_count,
        .repeat = block->repeat,
        .num_samples =
            samples_of(work, draft->test.num_samples, draft->test.num_steps, draft->iterations),
        .warmup_samples = samples_of(work, draft->test.warmup_samples, draft->test.warmup_steps,
                                     draft->warmup_iterations),
        .iterations = draft->iterations,
        .warmup_iterations = draft->warmup_iterations,
        .timeout_s = draft->test.timeout_s,
        .device_bytes = work->cost.device_bytes,
        .host_bytes = work->cost.host_bytes,
        .launches = work->cost.launches,
        .collective = work->workload->collective,
        .copies = work->cost.h2d_bytes > 0,
        .series = draft->series ? draft->series : none,
        .point_count = draft->point_count,
        .phase = draft->phase,
    };
}

/* What needs the choices of others comes behind them: the idle winner from the first block on, what
 * was chosen under load in each. */
static int stage_of(const struct plan_draft *draft, int block) {
    const struct lab_plan_phase *phase = draft->phase;
    if (phase && phase->regret)
        return 2;
    return phase && block == 0 && phase->mitigations & LAB_PLAN_TUNING_CACHE ? 1 : 0;
}

/* Stable: the order within a stage stays as it was drawn. */
static void sort_stages(const struct plan_book *book, int *order, int block) {
    LAB_AUTO_FREE int *sorted = lab_mem_alloc((size_t)book->draft_count, sizeof *sorted);
    int count = 0;
    for (int stage = 0; stage <= 2; stage++)
        for (int i = 0; i < book->draft_count; i++)
            if (stage_of(&book->drafts[order[i]], block) == stage)
                sorted[count++] = order[i];
    memcpy(order, sorted, (size_t)count * sizeof *order);
}

static void make_runs(const struct planner *p, struct lab_plan *plan) {
    const struct plan_book *book = &p->book;
    const char **ids = plan_ids(book);
    LAB_AUTO_FREE int *order = lab_mem_alloc((size_t)book->draft_count, sizeof *order);
    plan->runs = lab_arena_alloc(book->arena, (size_t)book->draft_count * (size_t)plan->repeat,
                                 sizeof *plan->runs);
    for (int block = 0; block < plan->repeat; block++) {
        struct block texts = make_block(block, plan->repeat);
        for (int i = 0; i < book->draft_count; i++)
            order[i] = i;
        if (!plan->ordered_as_given)
            shuffle(order, book->draft_count, plan->seed, block);
        sort_stages(book, order, block);
        for (int i = 0; i < book->draft_count; i++) {
            const struct plan_draft *draft = &book->drafts[order[i]];
            struct lab_plan_run *run = &plan->runs[plan->run_count++];
            *run = make_run(book, draft, ids[order[i]], &texts);
            set_times(book, plan, draft, run);
            run->processes = draft->phase ? plan_phase_processes(book, draft->phase, draft->ranks,
                                                                 draft->rank_count)
                             : draft->launched ? LAB_PLAN_LAUNCHER
                                               : plan->processes;
        }
    }
}

/* Of the set of the first `count` runs, whatever their order, and of the study's name. */
/* As "%016llx\n". */
static uint64_t hash_hex_line(uint64_t hash, uint64_t number) {
    char text[17];
    for (int i = 15; i >= 0; i--, number >>= 4)
        text[i] = "0123456789abcdef"[number & 15];
    text[16] = '\n';
    return lab_hash_bytes(hash, text, sizeof text);
}

static uint64_t identify(const struct lab_plan *plan, int count) {
    LAB_AUTO_FREE uint64_t *all = lab_mem_alloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = plan->runs[i].identity;
    LAB_SORT_NUMBERS(all, count);
    uint64_t hash = lab_hash_text(lab_hash_text(LAB_HASH_START, plan->study), "\n");
    for (int i = 0; i < count; i++)
        hash = hash_hex_line(hash, all[i]);
    return hash;
}

/* Threads of one worker where a gang's devices are slices of one, which two processes would have to
 * take in turns, or simulated, which share one world, or where its ranks do their work together. */
static enum lab_plan_processes processes_needed(const struct plan_book *book) {
    for (int i = 0; i < book->draft_count; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        if (draft->phase || draft->launched) /* decided phase by phase; needs no threads of ours */
            continue;
        if (book->works[draft->work].workload->external) /* a process each, whatever we do */
            continue;
        if (draft->rank_count > 1 && book->works[draft->work].workload->collective)
            return LAB_PLAN_SHARED;
        for (int k = 1; k < draft->rank_count; k++)
            for (int j = 0; j < k; j++)
                if (book->machine->simulated ||
                    lab_str_equal(book->devices.items[draft->ranks[j].gpu_id].physical,
                                  book->devices.items[draft->ranks[k].gpu_id].physical))
                    return LAB_PLAN_SHARED;
    }
    return LAB_PLAN_PER_RANK;
}

static bool is_launcher(const struct plan_keys *keys) {
    return keys->processes && lab_str_equal(keys->processes, "launcher");
}

static void fill_plan(const struct planner *p, struct lab_plan *plan) {
    const struct plan_keys *keys = &p->keys;
    plan->study = keys->name;
    plan->selector = keys->device;
    plan->devices = p->book.devices;
    plan->machine = p->book.machine;
    plan->point_count = p->book.point_count;
    plan->job_count = p->sweep->job_count;
    plan->seed = (uint64_t)keys->seed;
    plan->ordered_as_given = lab_str_equal(keys->order, "as_given");
    plan->output_dir = keys->output_dir;
    plan->tracker = keys->tracker;
    plan->resume = keys->resume;
    plan->fail_fast = keys->fail_fast;
    plan->trace = keys->trace;
    plan->monitor = keys->monitor;
    plan->max_workers = plan_spread_workers(&p->book, keys);
    if (keys->max_workers == 0) /* whoever reads the config finds what was done */
        lab_value_set_int(p->book.arena, lab_value_get(plan->config, "experiment"), "max_workers",
                          plan->max_workers);
    plan->runs_per_device = (int)keys->runs_per_device;
    plan->max_retries = (int)keys->max_retries;
    plan->repeat = (int)keys->repeat;
    plan->cooldown_s = keys->cooldown_s;
    plan->budget_s = keys->budget_s;
    plan->duration_s = keys->duration_s;
    plan->profiler = keys->profiler;
    plan->disturb = keys->disturb;
    plan->processes = !keys->processes || is_launcher(keys)      ? processes_needed(&p->book)
                      : lab_str_equal(keys->processes, "shared") ? LAB_PLAN_SHARED
                                                                 : LAB_PLAN_PER_RANK;
}

/* A list of GPUs is a run on each, not a run on all of them. */
static void note_launcher(struct planner *p) {
    struct plan_book *book = &p->book;
    int most = 0;
    for (int i = 0; i < book->draft_count; i++)
        most = book->drafts[i].rank_count > most ? book->drafts[i].rank_count : most;
    if (is_launcher(&p->keys) && most == 1)
        plan_note(book, "experiment.processes=launcher: each run has one device; "
                        "experiment.gpu_mode=multi gives it all of gpu_ids");
}

/* Ranks that work together in processes of their own couldn't. */
static int check_together(const struct planner *p, struct lab_err *err) {
    const struct plan_book *book = &p->book;
    for (int i = 0; i < book->draft_count && p->plan->processes == LAB_PLAN_PER_RANK; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        const struct lab_workload *workload = book->works[draft->work].workload;
        if (!draft->phase && draft->rank_count > 1 && workload->collective)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s: the ranks of a gang do %s together, as threads of one process; "
                               "leave experiment.processes=per_rank out",
                               book->option, workload->name);
    }
    return 0;
}

/* Slices that would run at the same time in processes of their own, where that isn't the same
 * thing. */
static int check_apart(const struct planner *p, struct lab_err *err) {
    const struct lab_plan *plan = p->plan;
    bool gangs =
        plan->processes == LAB_PLAN_PER_RANK && processes_needed(&p->book) == LAB_PLAN_SHARED;
    if (!gangs && plan->max_workers == 1)
        return 0;
    for (int i = 0; i < p->book.draft_count; i++) {
        int count;
        const struct lab_run_rank *ranks = plan_draft_places(&p->book.drafts[i], &count);
        for (int k = 0; k < count && !p->book.drafts[i].phase; k++) {
            const struct lab_device_ref *ref = &p->book.devices.items[ranks[k].gpu_id];
            const char *why = lab_device_why_together(ref, p->book.arena);
            if (why)
                return lab_err_set(
                    err, LAB_ERR_USER,
                    "%s: %s would run with others of its %s in a process of its own, but %s; leave "
                    "%s out",
                    p->book.option, ref->name, ref->simulated ? "machine" : "GPU", why,
                    gangs ? "experiment.processes=per_rank" : "experiment.max_workers");
        }
    }
    return 0;
}

static int finish(struct planner *p, struct lab_err *err) {
    struct plan_book *book = &p->book;
    if (book->draft_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s: no point meets its series' where", book->option);
    double runs = (double)book->draft_count * (double)p->keys.repeat;
    if (runs > LAB_PLAN_POINTS_MAX)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s: %d points × repeat=%lld: a plan has %d runs at most", book->option,
                           book->draft_count, (long long)p->keys.repeat, LAB_PLAN_POINTS_MAX);
    if (plan_check_able(book, err) < 0 || plan_check_memory(book, err) < 0)
        return -1;
    fill_plan(p, p->plan);
    plan_merge_notes(book);
    note_launcher(p);
    p->plan->notes = book->notes;
    if (check_together(p, err) < 0 || check_apart(p, err) < 0)
        return -1;
    make_runs(p, p->plan);
    p->plan->identity = identify(p->plan, p->plan->run_count);
    p->plan->once_identity = identify(p->plan, book->draft_count); /* the first block */
    return 0;
}

int lab_plan_make(const struct lab_machine *machine, const struct lab_config_path *path,
                  const struct lab_sweep *sweep, struct lab_arena *arena, struct lab_plan *ret_plan,
                  struct lab_err *err) {
    return lab_plan_make_by(NULL, machine, path, sweep, arena, ret_plan, err);
}

int lab_plan_make_by(const struct lab_plan_strategy *strategy, const struct lab_machine *machine,
                     const struct lab_config_path *path, const struct lab_sweep *sweep,
                     struct lab_arena *arena, struct lab_plan *ret_plan, struct lab_err *err) {
    struct lab_plan plan = {0};
    struct planner p = {.sweep = sweep, .plan = &plan};
    p.book.arena = arena;
    p.book.machine = machine;
    p.book.strategy = strategy;
    p.book.sweep = sweep;
    int result = lab_composer_make(path, "config", arena, &p.composer, err);
    if (result == 0)
        result = plan_jobs(&p, err);
    if (result == 0)
        result = finish(&p, err);
    lab_mem_free(p.book.works);
    lab_mem_free(p.book.drafts);
    plan_index_release(&p.book.work_index);
    plan_index_release(&p.book.draft_index);
    if (result == 0)
        *ret_plan = plan;
    return result;
}
