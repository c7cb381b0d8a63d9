/*
 * next.c: which runs would make a recommendation surer, as commands that can be pasted: repeats of
 * the places that can't be told from the best, and places of the grid that weren't run.
 */
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

static struct set set_make(int room, struct lab_arena *arena) {
    return (struct set){lab_arena_alloc(arena, (size_t)room + 1, sizeof(char *)), 0};
}

static void set_add(struct set *set, const char *text) {
    for (int i = 0; i < set->count; i++)
        if (lab_str_equal(set->items[i], text))
            return;
    set->items[set->count++] = text;
}

static void add_joined(const struct set *set, struct lab_str *out) {
    for (int i = 0; i < set->count; i++)
        lab_str_printf(out, "%s%s", i ? "," : "", set->items[i]);
}

struct choices { /* the values of each, whose product is run */
    struct set devices, nodes, batches, compiled;
};

static struct choices choices_make(int room, struct lab_arena *arena) {
    return (struct choices){set_make(room, arena), set_make(room, arena), set_make(room, arena),
                            set_make(2, arena)};
}

static const char *batch_text(double batch, struct lab_arena *arena) {
    return isnan(batch) ? "" : lab_arena_printf(arena, "%.0f", batch);
}

static void choices_add(struct choices *choices, const struct lab_place *place,
                        struct lab_arena *arena) {
    set_add(&choices->devices, place->devices);
    set_add(&choices->nodes, place->nodes);
    set_add(&choices->batches, batch_text(place->batch, arena));
    set_add(&choices->compiled, place->compiled ? "true" : "false");
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

static void add_words(struct line *line, const struct lab_place_group *group,
                      const struct choices *choices, int repeats, struct lab_arena *arena) {
    const struct lab_study_run *run = group->places[0].point->runs[0];
    bool pipeline = lab_value_get(run->options, "patch_size") && group->study->study_for;
    const char *grid = pipeline ? group->study->study_for("numa", arena) : NULL;
    const char *device = selector(group->study, arena);
    const struct lab_value *samples = lab_value_get(run->test, "num_samples");
    add_word(line, "gpulab");
    add_word(line, "run");
    add_word(line, grid ? grid : group->study->option);
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
static const char *make_command(const struct lab_place_group *group, const struct choices *choices,
                                int repeats, struct lab_arena *arena) {
    struct line line;
    lab_str_init(&line.text);
    lab_str_init(&line.word);
    add_words(&line, group, choices, repeats, arena);
    const char *copy = lab_arena_strdup(arena, line.text.text);
    lab_str_release(&line.text);
    lab_str_release(&line.word);
    return copy;
}

/* --- places that can't be told apart --- */

static int wanted_repeats(const struct lab_place *place) {
    const struct lab_study_ratio *ratio = &place->against_best;
    return ratio->needed > 0 ? ratio->needed : place->point->count < REPEATS ? REPEATS : 0;
}

static bool next_repeats(const struct lab_place_group *group, struct lab_arena *arena,
                         struct lab_place_next *ret_next) {
    struct choices choices = choices_make(group->count, arena);
    int repeats = 0, count = 0;
    choices_add(&choices, &group->places[0], arena);
    for (int i = 1; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        int wanted = wanted_repeats(place);
        if (place->against_best.verdict == LAB_STUDY_LESS || wanted == 0 || wanted > REPEATS_MAX)
            continue;
        choices_add(&choices, place, arena);
        repeats = wanted > repeats ? wanted : repeats;
        count++;
    }
    if (count == 0)
        return false;
    *ret_next = (struct lab_place_next){
        .command = make_command(group, &choices, repeats, arena),
        .why = lab_arena_printf(arena,
                                "%d place%s can't be told from the best yet; %d runs of each would "
                                "tell a difference as large as the one seen in 4 of 5 cases",
                                count, count == 1 ? "" : "s", repeats)};
    return true;
}

/* --- places that weren't run --- */

static bool was_run(const struct lab_place_group *group, const char *device, const char *node,
                    const char *batch, const char *compiled, struct lab_arena *arena) {
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        if (lab_str_equal(place->devices, device) && lab_str_equal(place->nodes, node) &&
            lab_str_equal(batch_text(place->batch, arena), batch) &&
            lab_str_equal(place->compiled ? "true" : "false", compiled))
            return true;
    }
    return false;
}

/* A study of one node leaves open what others would do, where the machine has any. */
static void add_machine_nodes(const struct lab_place_group *group, struct set *nodes,
                              struct lab_arena *arena) {
    const struct lab_machine *machine = group->study->machine;
    if (nodes->count != 1 || !machine || machine->node_count < 2)
        return;
    for (int i = 0; i < machine->node_count; i++)
        set_add(nodes, lab_arena_printf(arena, "%d", machine->nodes[i].number));
}

static void collect_missing(const struct lab_place_group *group, const struct choices *all,
                            struct choices *missing, int *ret_count, struct lab_arena *arena) {
    for (int d = 0; d < all->devices.count; d++)
        for (int n = 0; n < all->nodes.count; n++)
            for (int b = 0; b < all->batches.count; b++)
                for (int c = 0; c < all->compiled.count; c++) {
                    const char *device = all->devices.items[d], *node = all->nodes.items[n],
                               *batch = all->batches.items[b], *compiled = all->compiled.items[c];
                    if (was_run(group, device, node, batch, compiled, arena))
                        continue;
                    set_add(&missing->devices, device);
                    set_add(&missing->nodes, node);
                    set_add(&missing->batches, batch);
                    set_add(&missing->compiled, compiled);
                    ++*ret_count;
                }
}

static bool next_missing(const struct lab_place_group *group, struct lab_arena *arena,
                         struct lab_place_next *ret_next) {
    int room = group->count + (group->study->machine ? group->study->machine->node_count : 0);
    struct choices all = choices_make(room, arena), missing = choices_make(room, arena);
    int count = 0, repeats = 1;
    for (int i = 0; i < group->count; i++) {
        choices_add(&all, &group->places[i], arena);
        repeats = group->places[i].point->count > repeats ? group->places[i].point->count : repeats;
    }
    add_machine_nodes(group, &all.nodes, arena);
    collect_missing(group, &all, &missing, &count, arena);
    if (count == 0)
        return false;
    *ret_next = (struct lab_place_next){
        .command = make_command(group, &missing, repeats, arena),
        .why = count == 1 ? "one place of the grid wasn't run"
                          : lab_arena_printf(arena, "%d places of the grid weren't run", count)};
    return true;
}

int lab_place_next(const struct lab_place_group *group, struct lab_arena *arena,
                   struct lab_place_next ret_next[LAB_PLACE_NEXT_MAX]) {
    int count = 0;
    if (next_repeats(group, arena, &ret_next[count]))
        count++;
    if (next_missing(group, arena, &ret_next[count]))
        count++;
    return count;
}
