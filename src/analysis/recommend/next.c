/* next.c: a command to paste that repeats what is inconclusive often enough. */
#include "analysis/analysis_build.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <string.h>

/* --- the devices that gpu_ids count --- */

/* "sim:l40s-10" of "sim:l40s-10:3", "cuda:0/4" of "cuda:0/4.2", "cuda" of "cuda:1": the list of
 * which it is the member number `index`; NULL if it isn't. */
static const char *family(const char *device, int index, struct lab_arena *arena) {
    bool slice = strchr(device, '/') && !lab_run_device_is_simulated(device); /* else a path */
    const char *mark = strrchr(device, slice ? '.' : ':');
    if (!mark || !lab_str_equal(mark + 1, lab_arena_printf(arena, "%d", index)))
        return NULL;
    return lab_arena_strndup(arena, device, (size_t)(mark - device));
}

/* NULL = unknown: they aren't all of one list. */
static const char *selector(const struct lab_study_table *study, struct lab_arena *arena) {
    const char *common = NULL;
    for (int i = 0; i < study->run_count; i++)
        for (int k = 0; k < study->runs[i].rank_count; k++) {
            const struct lab_study_rank *rank = &study->runs[i].ranks[k];
            const char *own = family(rank->device, rank->gpu_id, arena);
            if (!own || (common && !lab_str_equal(own, common)))
                return NULL;
            common = own;
        }
    return common;
}

/* --- the command --- */

/* Whatever is in the word, a shell reads it back as one. */
static void add_word(struct lab_str *line, const char *word) {
    lab_str_add(line, " ");
    lab_str_add_shell(line, word);
}

static const char *value_text(const struct lab_value *value, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    return lab_arena_strdup(arena, text.text);
}

enum listed { DEVICES, NODES, BATCHES, COMPILED };

/* "0,1,3": what the placements of a model have, each once; `ret_count`: how many. */
static const char *list_of(const struct lab_choices *placements, int model, enum listed what,
                           struct lab_arena *arena, int *ret_count) {
    const char **items = NULL, *list = "";
    int count = 0;
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        const char *own = what == DEVICES   ? item->devices
                          : what == NODES   ? item->nodes
                          : what == BATCHES ? item->batch_text
                          : item->compiled  ? "true"
                                            : "false";
        if (item->model != model || !*own || lab_list_find_text(items, count, own) >= 0)
            continue;
        list = lab_arena_printf(arena, "%s%s%s", list, count ? "," : "", own);
        LAB_ADD(items, count, arena) = own;
    }
    *ret_count = count;
    return list;
}

/* The model itself, and what else the pipeline was asked for that studies don't ask for by
 * themselves. */
static void add_pipeline(struct lab_str *line, const struct lab_study_run *run,
                         struct lab_arena *arena) {
    static const char *const model[] = {"patch_size", "depth", "heads", "dim", "mlp_dim"};
    static const struct {
        const char *key, *usual;
    } asked[] = {{"tensor_shape", "[3,224,224]"},
                 {"dtype", "fp32"},
                 {"d2h", "output"},
                 {"fill", "random"},
                 {"memory_size_mb", ""}};
    const char *keys = "";
    for (int i = 0; i < LAB_COUNT_OF(model); i++) {
        const struct lab_value *value = lab_value_get(run->options, model[i]);
        if (value)
            keys = lab_arena_printf(arena, "%s%s%s:%s", keys, *keys ? "," : "", model[i],
                                    value_text(value, arena));
    }
    add_word(line, lab_arena_printf(arena, "experiment.vit_configs=[{%s}]", keys));
    for (int i = 0; i < LAB_COUNT_OF(asked); i++) {
        const struct lab_value *value = lab_value_get(run->options, asked[i].key);
        const char *text = value ? value_text(value, arena) : asked[i].usual;
        if (!lab_str_equal(text, asked[i].usual))
            add_word(line, lab_arena_printf(arena, "experiment.test.%s=%s", asked[i].key, text));
    }
}

/* Several devices, each bound to its local node alone, are not crossed with all of these. */
static const char *node_list(const struct lab_choices *placements, int model, const char *list,
                             struct lab_arena *arena) {
    for (int i = 0; i < placements->count; i++)
        if (placements->items[i].model == model && !placements->items[i].local)
            return lab_arena_printf(arena, "[%s]", list);
    return "local";
}

/* The study of NUMA nodes crosses devices, nodes and models and nothing else, so that any pipeline
 * can be asked of it; other workloads are repeated by the study that they came from. */
static const char *make_command(const struct lab_choices *placements, int model, int repeats,
                                struct lab_arena *arena) {
    const struct lab_study_table *study = placements->study;
    const struct lab_study_run *run =
        placements->items[lab_choices_default(placements, model)].point->runs[0];
    bool pipeline = lab_value_get(run->options, "patch_size") && study->study_for;
    const char *grid = pipeline ? study->study_for("numa", arena) : NULL,
               *device = selector(study, arena);
    const struct lab_value *samples = lab_value_get(run->test, "num_samples");
    int counts[4];
    const char *lists[4];
    for (int what = 0; what < 4; what++)
        lists[what] = list_of(placements, model, (enum listed)what, arena, &counts[what]);
    LAB_AUTO(str, line);
    lab_str_add(&line, "gpulab run");
    add_word(&line, grid ? grid : study->option);
    if (grid && (counts[BATCHES] > 1 || counts[COMPILED] > 1))
        add_word(&line, "-m");
    if (device) {
        add_word(&line, "--device");
        add_word(&line, device);
    }
    add_word(&line, lab_arena_printf(arena, "experiment.hardware.gpu_ids=[%s]", lists[DEVICES]));
    add_word(&line, lab_arena_printf(arena, "experiment.hardware.numa_nodes=%s",
                                     node_list(placements, model, lists[NODES], arena)));
    if (grid) {
        add_pipeline(&line, run, arena);
        if (counts[BATCHES] > 0)
            add_word(&line,
                     lab_arena_printf(arena, "experiment.test.batch_size=%s", lists[BATCHES]));
        add_word(&line,
                 lab_arena_printf(arena, "experiment.test.compile_model=%s", lists[COMPILED]));
    }
    if (samples)
        add_word(&line, lab_arena_printf(arena, "experiment.test.num_samples=%s",
                                         value_text(samples, arena)));
    add_word(&line, lab_arena_printf(arena, "experiment.repeat=%d", repeats));
    return lab_arena_strdup(arena, line.text);
}

/* --- how often --- */

static int wanted_repeats(const struct lab_choices *placements, int model) {
    int wanted = 0;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        const struct lab_claim *claim = &row->claim;
        if (claim->verdict != LAB_CLAIM_INCONCLUSIVE || (row->model >= 0 && row->model != model))
            continue;
        int runs = lab_claim_runs(claim), needed = runs > claim->n ? runs
                                                   : claim->n < LAB_CLAIM_RUNS_LEAST
                                                       ? LAB_CLAIM_RUNS_LEAST
                                                       : 0;
        wanted = needed > wanted && needed <= LAB_CLAIM_RUNS_MOST ? needed : wanted;
    }
    return wanted;
}

const char *lab_choices_next(const struct lab_choices *placements, int model,
                             struct lab_arena *arena) {
    int repeats = wanted_repeats(placements, model);
    return repeats > 0 ? make_command(placements, model, repeats, arena) : NULL;
}
