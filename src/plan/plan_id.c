/*
 * plan_id.c: names for runs: gpu0_numa1_vit32x6x512_compiled, and behind that what else tells runs
 * of one label apart. A key is named only if it varies among runs that would otherwise look alike,
 * so that most studies keep the short form.
 */
#include "plan/plan_internal.h"

struct variation { /* of all works with one label */
    const char *label;
    int first;               /* work */
    bool *varies;            /* by row of the workload's table */
    int64_t samples, warmup; /* of the first draft */
    bool samples_vary, warmup_varies, seen;
};

static struct variation *variation_of(struct variation *all, const struct plan_index *index,
                                      const struct plan_work *work) {
    uint64_t hash = lab_hash_text(LAB_HASH_START, work->label);
    return &all[plan_index_find(index, hash)];
}

static int count_rows(const struct lab_workload *workload) {
    int count = 0;
    while (workload->options[count].name)
        count++;
    return count;
}

/* Returns how many labels there are. */
static int compare_works(const struct plan_book *book, struct variation *all,
                         struct plan_index *index) {
    int count = 0;
    for (int i = 0; i < book->work_count; i++) {
        const struct plan_work *work = &book->works[i];
        uint64_t hash = lab_hash_text(LAB_HASH_START, work->label);
        int at = plan_index_find(index, hash);
        if (at < 0) {
            int rows = count_rows(work->workload);
            all[count] = (struct variation){
                .label = work->label,
                .first = i,
                .varies = lab_arena_alloc(book->arena, (size_t)rows + 1, sizeof(bool)),
            };
            plan_index_add(index, hash, count++);
            continue;
        }
        const struct plan_work *first = &book->works[all[at].first];
        for (int k = 0; first->workload == work->workload && work->workload->options[k].name; k++)
            if (!plan_option_equal(&work->workload->options[k], first->canonical, work->canonical))
                all[at].varies[k] = true;
    }
    return count;
}

static void compare_samples(const struct plan_book *book, struct variation *all,
                            const struct plan_index *index) {
    for (int i = 0; i < book->draft_count; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        struct variation *variation = variation_of(all, index, &book->works[draft->work]);
        if (!variation->seen) {
            variation->seen = true;
            variation->samples = draft->test.num_samples;
            variation->warmup = draft->test.warmup_samples;
        }
        variation->samples_vary |= variation->samples != draft->test.num_samples;
        variation->warmup_varies |= variation->warmup != draft->test.warmup_samples;
    }
}

/* "gpu0+1_numa0", "gpu0+1_numa0+2"; "gpu0+1" where the system chooses the node */
static void add_ranks(const struct plan_draft *draft, struct lab_str *out) {
    bool one_node = true;
    for (int i = 0; i < draft->rank_count; i++) {
        lab_str_printf(out, "%s%d", i ? "+" : "gpu", draft->ranks[i].gpu_id);
        one_node &= draft->ranks[i].numa_node == draft->ranks[0].numa_node;
    }
    if (one_node && draft->ranks[0].numa_node < 0)
        return;
    for (int i = 0; i < (one_node ? 1 : draft->rank_count); i++)
        lab_str_printf(out, "%s%d", i ? "+" : "_numa", draft->ranks[i].numa_node);
}

static void add_variation(const struct plan_draft *draft, const struct plan_work *work,
                          const struct variation *variation, struct lab_str *out) {
    for (int i = 0; work->workload->options[i].name; i++) {
        const struct lab_option *row = &work->workload->options[i];
        bool compiled = strcmp(row->name, "compile_model") == 0 && row->type == LAB_OPTION_FLAG;
        if (!variation->varies[i] || compiled)
            continue;
        /* as in runs of before it could be set */
        if (row->later && plan_option_is_default(row, work->canonical))
            continue;
        lab_str_printf(out, "_%s", row->name);
        plan_option_write(row, work->canonical, true, out);
    }
    if (variation->samples_vary)
        lab_str_printf(out, "_num_samples%lld", (long long)draft->test.num_samples);
    if (variation->warmup_varies)
        lab_str_printf(out, "_warmup_samples%lld", (long long)draft->test.warmup_samples);
}

static bool is_compiled(const struct plan_work *work) {
    const struct lab_option *row = lab_options_find(work->workload->options, "compile_model");
    return row && row->type == LAB_OPTION_FLAG &&
           *(const bool *)(const void *)((const char *)work->config + row->offset);
}

/* Fit for a file name: of a plain alphabet, and short enough with what is put behind it. */
static const char *settle(struct lab_arena *arena, struct lab_str *id, uint64_t hash) {
    for (char *c = id->text; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-", *c))
            *c = '-';
    enum { TAIL = 17, REPEAT = 8 };
    if (id->length + REPEAT <= LAB_PLAN_ID_MAX)
        return lab_arena_strdup(arena, id->text);
    return lab_arena_printf(arena, "%.*s_%016llx", LAB_PLAN_ID_MAX - TAIL - REPEAT, id->text,
                            (unsigned long long)hash);
}

const char **plan_ids(const struct plan_book *book) {
    LAB_AUTO_FREE struct variation *all = lab_mem_alloc((size_t)book->work_count, sizeof *all);
    struct plan_index labels = {0}, taken = {0};
    compare_works(book, all, &labels);
    compare_samples(book, all, &labels);
    const char **ids = lab_arena_alloc(book->arena, (size_t)book->draft_count, sizeof *ids);
    LAB_AUTO(str, id);
    for (int i = 0; i < book->draft_count; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        const struct plan_work *work = &book->works[draft->work];
        lab_str_clear(&id);
        if (!draft->place)
            add_ranks(draft, &id);
        lab_str_printf(&id, "%s%s", id.length ? "_" : "", work->label);
        add_variation(draft, work, variation_of(all, &labels, work), &id);
        if (is_compiled(work))
            lab_str_add(&id, "_compiled");
        if (draft->phase)
            lab_str_printf(&id, "_%s", draft->phase->name);
        ids[i] = settle(book->arena, &id, draft->hash);
        /* what the alphabet made alike, or two workloads' labels */
        if (plan_index_find(&taken, lab_hash_text(LAB_HASH_START, ids[i])) >= 0) {
            lab_str_printf(&id, "_%016llx", (unsigned long long)draft->hash);
            ids[i] = settle(book->arena, &id, draft->hash);
        }
        plan_index_add(&taken, lab_hash_text(LAB_HASH_START, ids[i]), i);
    }
    plan_index_release(&labels);
    plan_index_release(&taken);
    return ids;
}
