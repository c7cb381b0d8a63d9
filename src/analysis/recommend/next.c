/* next.c: a command to paste that repeats what is inconclusive often enough. */
#include "analysis/analysis_build.h"
#include "analysis/recommend/recommend.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS     5  /* where nothing is known of the spread yet */
#define REPEATS_MAX 50 /* more aren't worth what they would tell */

/* --- sets of texts, in the order in which they came --- */

struct set {
    const char **items;
    int count;
};

static void set_add(struct set *set, const char *text, struct lab_arena *arena) {
    for (int i = 0; i < set->count; i++)
        if (lab_str_equal(set->items[i], text))
            return;
    LAB_ADD(set->items, set->count, arena) = text;
}

static void add_joined(const struct set *set, struct lab_str *out) {
    for (int i = 0; i < set->count; i++)
        lab_str_printf(out, "%s%s", i ? "," : "", set->items[i]);
}

struct choices { /* the values of each, whose product is run */
    struct set devices, nodes, batches, compiled;
};

static void choices_add(struct choices *choices, const struct lab_choice *placement,
                        struct lab_arena *arena) {
    set_add(&choices->devices, placement->devices, arena);
    set_add(&choices->nodes, placement->nodes, arena);
    set_add(&choices->batches, placement->batch_text, arena);
    set_add(&choices->compiled, placement->compiled ? "true" : "false", arena);
}

/* --- the devices that gpu_ids count --- */

/* "sim:l40s-10" of "sim:l40s-10:3", "cuda:0/4" of "cuda:0/4.2", "cuda" of "cuda:1": the list of
 * which it is the member number `index`; NULL if it isn't. */
static const char *family(const char *device, int index, struct lab_arena *arena) {
    bool slice = strchr(device, '/') && !lab_run_device_is_simulated(device); /* else a path */
    const char *mark = strrchr(device, slice ? '.' : ':');
    if (!mark)
        return NULL;
    char *end;
    long number = strtol(mark + 1, &end, 10);
    return end != mark + 1 && !*end && number == index
               ? lab_arena_strndup(arena, device, (size_t)(mark - device))
               : NULL;
}

#define DEVICES_MAX 256

/* Fills in which device each id stands for; returns the largest id. */
static int find_devices(const struct lab_study_table *study, const char *ret_names[DEVICES_MAX]) {
    int most = -1;
    for (int i = 0; i < study->run_count; i++)
        for (int k = 0; k < study->runs[i].rank_count; k++) {
            const struct lab_study_rank *rank = &study->runs[i].ranks[k];
            if (rank->gpu_id < 0 || rank->gpu_id >= DEVICES_MAX)
                continue;
            ret_names[rank->gpu_id] = rank->device;
            most = rank->gpu_id > most ? rank->gpu_id : most;
        }
    return most;
}

/* NULL = can't be told: devices that no run used have unknown names. */
static const char *selector(const struct lab_study_table *study, struct lab_arena *arena) {
    const char *names[DEVICES_MAX] = {0}, *common = NULL, *list = NULL;
    int most = find_devices(study, names);
    bool one_family = true, complete = true;
    for (int i = 0; i <= most; i++) {
        complete = complete && names[i];
        if (!names[i])
            continue;
        const char *own = family(names[i], i, arena);
        one_family = one_family && own && (!common || lab_str_equal(own, common));
        common = common ? common : own;
        list = list ? lab_arena_printf(arena, "%s,%s", list, names[i]) : names[i];
    }
    return one_family && common ? common : complete ? list : NULL;
}

/* --- the command --- */

struct line { /* a command line, and the word that is being made */
    struct lab_str text, word;
};

/* Whatever is in the word, a shell reads it back as one. */
static void end_word(struct line *line) {
    lab_str_add(&line->text, line->text.length ? " " : "");
    lab_str_add_shell(&line->text, line->word.text);
    lab_str_clear(&line->word);
}

static void add_word(struct line *line, const char *word) {
    lab_str_add(&line->word, word);
    end_word(line);
}

static void add_value(struct line *line, const char *key, const struct lab_value *value) {
    lab_str_printf(&line->word, "experiment.test.%s=", key);
    lab_value_write(value, &line->word);
    end_word(line);
}

/* The model itself, and what else the pipeline was asked for that studies don't ask for by
 * themselves. */
static void add_pipeline(struct line *line, const struct lab_study_run *run) {
    static const char *const model[] = {"patch_size", "depth", "heads", "dim", "mlp_dim"};
    static const struct {
        const char *key, *usual;
    } asked[] = {{"tensor_shape", "[3,224,224]"},
                 {"dtype", "fp32"},
                 {"d2h", "output"},
                 {"fill", "random"},
                 {"memory_size_mb", ""}};
    lab_str_add(&line->word, "experiment.vit_configs=[{");
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        const struct lab_value *value = lab_value_get(run->options, model[i]);
        if (!value)
            continue;
        lab_str_printf(&line->word, "%s%s:", i ? "," : "", model[i]);
        lab_value_write(value, &line->word);
    }
    lab_str_add(&line->word, "}]");
    end_word(line);
    LAB_AUTO(str, text);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const struct lab_value *value = lab_value_get(run->options, asked[i].key);
        if (!value)
            continue;
        lab_str_clear(&text);
        lab_value_write(value, &text);
        if (!lab_str_equal(text.text, asked[i].usual))
            add_value(line, asked[i].key, value);
    }
}

static void add_list(struct line *line, const char *key, const struct set *values) {
    lab_str_printf(&line->word, "experiment.hardware.%s=[", key);
    add_joined(values, &line->word);
    lab_str_add(&line->word, "]");
    end_word(line);
}

static void add_swept(struct line *line, const char *key, const struct set *values) {
    if (values->count == 0 || !*values->items[0])
        return;
    lab_str_printf(&line->word, "experiment.test.%s=", key);
    add_joined(values, &line->word);
    end_word(line);
}

static void add_words(struct line *line, const struct lab_choices *placements, int model,
                      const struct choices *choices, int repeats, struct lab_arena *arena) {
    const struct lab_study_table *study = placements->study;
    const struct lab_study_run *run =
        placements->items[lab_choices_default(placements, model)].point->runs[0];
    bool pipeline = lab_value_get(run->options, "patch_size") && study->study_for;
    const char *grid = pipeline ? study->study_for("numa", arena) : NULL;
    const char *device = selector(study, arena);
    const struct lab_value *samples = lab_value_get(run->test, "num_samples");
    add_word(line, "gpulab");
    add_word(line, "run");
    add_word(line, grid ? grid : study->option);
    if (grid && (choices->batches.count > 1 || choices->compiled.count > 1))
        add_word(line, "-m");
    if (device) {
        add_word(line, "--device");
        add_word(line, device);
    }
    add_list(line, "gpu_ids", &choices->devices);
    add_list(line, "numa_nodes", &choices->nodes);
    if (grid) {
        add_pipeline(line, run);
        add_swept(line, "batch_size", &choices->batches);
        add_swept(line, "compile_model", &choices->compiled);
    }
    if (samples)
        add_value(line, "num_samples", samples);
    lab_str_printf(&line->word, "experiment.repeat=%d", repeats);
    end_word(line);
}

/* The study of NUMA nodes crosses devices, nodes and models and nothing else, so that any pipeline
 * can be asked of it; other workloads are repeated by the study that they came from. */
static const char *make_command(const struct lab_choices *placements, int model,
                                const struct choices *choices, int repeats,
                                struct lab_arena *arena) {
    struct line line;
    lab_str_init(&line.text);
    lab_str_init(&line.word);
    add_words(&line, placements, model, choices, repeats, arena);
    const char *copy = lab_arena_strdup(arena, line.text.text);
    lab_str_release(&line.text);
    lab_str_release(&line.word);
    return copy;
}

/* --- how often --- */

static int wanted_repeats(const struct lab_choices *placements, int model) {
    int wanted = 0;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        const struct lab_claim *claim = &row->claim;
        if (claim->verdict != LAB_CLAIM_INCONCLUSIVE || (row->model >= 0 && row->model != model))
            continue;
        int needed = claim->needed > claim->n ? claim->needed : claim->n < REPEATS ? REPEATS : 0;
        wanted = needed > wanted && needed <= REPEATS_MAX ? needed : wanted;
    }
    return wanted;
}

const char *lab_choices_next(const struct lab_choices *placements, int model,
                             struct lab_arena *arena) {
    struct choices choices = {0};
    int repeats = wanted_repeats(placements, model);
    for (int i = 0; i < placements->count; i++)
        if (placements->items[i].model == model)
            choices_add(&choices, &placements->items[i], arena);
    return repeats > 0 ? make_command(placements, model, &choices, repeats, arena) : NULL;
}
