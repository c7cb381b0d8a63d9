/* auto.c: how many devices gpu_mode=auto chose for each model and batch, compared with one. */
#include "analysis/training/training.h"

#include "base/str.h"

struct choice {
    const char *title; /* "large, batch 128" */
    int chosen;
    const char *best; /* that was measured: "2", "1"; NULL = inconclusive, or not tested */
    struct lab_claim claim;
};

static const struct lab_field choice_fields[] = {
    LAB_FIELD(struct choice, title, "work", "Workload", LAB_UNIT_TEXT),
    LAB_FIELD(struct choice, chosen, "chosen", "gpu_mode=auto", LAB_UNIT_COUNT),
    LAB_FIELD(struct choice, best, "measured_best", "Measured best", LAB_UNIT_TEXT),
    LAB_FIELD(struct choice, claim, "change", "Throughput, compared with one", LAB_UNIT_CHANGE),
};

/* The most devices that it ran this on; NULL = it left it on one. */
static const struct lab_gang *chosen_gang(const struct lab_gangs *gangs,
                                          const struct lab_training_row *row) {
    const struct lab_gang *most = NULL;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (lab_str_equal(gang->model, row->model) && gang->batch == row->work.batch &&
            !gang->scaling == !row->work.weak && (!most || gang->devices > most->devices))
            most = gang;
    }
    return most;
}

static struct choice make_choice(const struct lab_gangs *gangs, const struct lab_training_row *row,
                                 struct lab_contrast *all, struct lab_arena *arena) {
    const struct lab_gang *gang = chosen_gang(gangs, row);
    struct choice choice = {
        .title = gang ? gang->title
                      : lab_arena_printf(arena, "%s, batch %.0f", row->model, row->work.batch),
        .chosen = gang ? gang->devices : 1,
        .claim = gang ? gang->claim : lab_claim_none};
    for (int i = 0; gang && i < gang->alone_count; i++)
        lab_contrast_add_pair(all, gang->alone[i], gang->point, 1.0 / gang->alone_count);
    choice.claim = lab_claim_named(
        choice.claim, "training.auto",
        lab_arena_printf(arena, "gpu_mode=auto, %s, %d %s%s", choice.title, choice.chosen,
                         gangs->unit, gang ? "s" : ""),
        lab_arena_printf(arena, gang ? "1 %s" : "more %ss", gangs->unit), "throughput");
    if (choice.claim.verdict == LAB_CLAIM_YES)
        choice.best = choice.claim.effect > 0 ? lab_arena_printf(arena, "%d", choice.chosen) : "1";
    return choice;
}

static const char *make_answer(const struct choice *choices, int count, const char *unit,
                               const struct lab_claim *pooled, struct lab_arena *arena) {
    int several = 0;
    for (int i = 0; i < count; i++)
        several += choices[i].chosen > 1;
    if (several == 0)
        return lab_arena_printf(arena,
                                "gpu_mode=auto chose 1 %s at all %d points. More %ss were not "
                                "tested: experiment.gpu_mode=compare tests them.",
                                unit, count, unit);
    return lab_arena_printf(arena, "gpu_mode=auto chose several %ss at %d of %d points. %s.", unit,
                            several, count, lab_claim_sentence(pooled, arena));
}

const char *training_add_auto(struct lab_analysis_result *result, struct lab_analysis_part *part,
                              const struct lab_gangs *gangs, const struct lab_training_set *set,
                              struct lab_arena *arena) {
    struct choice *choices = NULL;
    struct lab_contrast all = {.arena = arena};
    int count = 0, several = 0;
    if (!lab_str_equal(gangs->study->gpu_mode, "auto"))
        return NULL;
    for (int i = 0; i < set->count; i++)
        if (set->rows[i].work.devices == 1) {
            struct choice choice = make_choice(gangs, &set->rows[i], &all, arena);
            several += choice.chosen > 1;
            LAB_ADD(choices, count, arena) = choice;
        }
    for (int t = 0; t < all.count; t++)
        all.terms[t].weight /= several;
    struct lab_claim pooled =
        lab_claim_named(lab_claim_estimate(&all, LAB_STUDY_RATE), "training.auto", "gpu_mode=auto",
                        lab_arena_printf(arena, "1 %s", gangs->unit), "throughput");
    if (several > 1)
        pooled.mean_of = lab_arena_printf(arena, "%d points", several);
    struct lab_rows rows = LAB_ROWS(choice_fields, choices, count);
    if (several > 0)
        lab_analysis_add_claim(result, &pooled, arena);
    lab_rows_add_claims(result, &rows, arena);
    lab_analysis_hide_columns(
        lab_rows_add_table(part, "auto", "What gpu_mode=auto chose", &rows, arena), arena);
    return make_answer(choices, count, gangs->unit, &pooled, arena);
}
