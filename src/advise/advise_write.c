/* advise_write.c: advice for people and for programs. */
#include "advise/advise.h"

#include <string.h>

#define ALIGNED_MOST 52 /* columns of a line whose reason stands in a column with others */

/* --- text --- */

const char *lab_advice_node(const struct lab_advice_line *line, struct lab_arena *arena) {
    return line->provisional ? lab_arena_printf(arena, "%d (until %d is tested)", line->numa_node,
                                                line->local_node)
                             : lab_arena_printf(arena, "%d", line->numa_node);
}

static void add_table(struct lab_doc *doc, const struct lab_advice *advice) {
    static const struct lab_doc_column columns[] = {{NULL, "Device", LAB_UNIT_TEXT},
                                                    {NULL, "NUMA node", LAB_UNIT_FIGURE},
                                                    {NULL, "CPUs", LAB_UNIT_TEXT},
                                                    {NULL, "Throughput", LAB_UNIT_TEXT}};
    bool cpus = false;
    for (int i = 0; i < advice->line_count; i++)
        cpus |= advice->lines[i].cpus != NULL;
    struct lab_doc_column *own =
        lab_arena_alloc(lab_doc_arena(doc), sizeof columns / sizeof *columns, sizeof *own);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        own[i] = columns[i];
    own[2].title = cpus ? own[2].title : NULL;
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, own, sizeof columns / sizeof *columns);
    for (int i = 0; i < advice->line_count; i++) {
        lab_doc_add(doc, lab_cell_text(advice->lines[i].device));
        lab_doc_add(doc, lab_cell_text(lab_advice_node(&advice->lines[i], lab_doc_arena(doc))));
        lab_doc_add(doc, lab_cell_text(advice->lines[i].cpus));
        lab_doc_add(doc,
                    lab_cell_text(lab_claim_short(&advice->lines[i].gain, lab_doc_arena(doc))));
    }
}

static void add_code(struct lab_doc *doc, const char *line) {
    if (line)
        lab_doc_code(doc, NULL, line);
}

static void add_lines(struct lab_doc *doc, const struct lab_advice *advice) {
    const struct lab_advice_line *all = advice->line_count > 1 ? &advice->all : advice->lines;
    add_table(doc, advice);
    lab_doc_gap(doc);
    if (advice->unbound && *advice->unbound) {
        lab_doc_text(doc, LAB_DOC_CHOICE, "%s", advice->unbound);
        lab_doc_gap(doc);
    }
    lab_doc_text(doc, LAB_DOC_TITLE, "One process");
    for (int i = 0; i < advice->line_count; i++) {
        add_code(doc, advice->lines[i].plain);
        if (advice->lines[i].missing)
            lab_doc_text(doc, LAB_DOC_CHOICE, "No line to paste: %s.", advice->lines[i].missing);
    }
    if (!all->torchrun && !all->mpirun && !all->srun)
        return;
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "One process per device: torchrun, mpirun, srun");
    add_code(doc, all->torchrun);
    add_code(doc, all->mpirun);
    add_code(doc, all->srun);
}

/* The answer is the one choice where there is nothing else. */
static void add_choices(struct lab_doc *doc, const struct lab_advice *advice) {
    if (advice->choice_count == 0 || advice->choice_count + advice->line_count < 2)
        return;
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "Other choices");
    for (int i = 0; i < advice->choice_count; i++)
        lab_doc_text(doc, LAB_DOC_CHOICE, "%s.",
                     lab_claim_sentence(&advice->choices[i], lab_doc_arena(doc)));
}

static void add_untested(struct lab_doc *doc, const struct lab_advice *advice) {
    int width = 0;
    for (int i = 0; i < advice->untested_count; i++) {
        int length = (int)strlen(advice->untested[i].line);
        width = length > width && length <= ALIGNED_MOST ? length : width;
    }
    if (advice->untested_count > 0) {
        lab_doc_gap(doc);
        lab_doc_text(doc, LAB_DOC_TITLE, "Not measured here");
    }
    for (int i = 0; i < advice->untested_count; i++)
        lab_doc_code(doc, NULL,
                     lab_arena_printf(lab_doc_arena(doc), "%-*s  # %s", width,
                                      advice->untested[i].line, advice->untested[i].reason));
}

void lab_advice_add(struct lab_doc *doc, const struct lab_advice *advice) {
    lab_doc_text(doc, LAB_DOC_WHOLE, "Study: %s%s", advice->study,
                 advice->simulated ? " (simulated)" : "");
    if (advice->line_count > 0)
        add_lines(doc, advice);
    add_choices(doc, advice);
    if (advice->command)
        lab_doc_gap(doc);
    add_code(doc, advice->command);
    add_untested(doc, advice);
}

/* --- for programs --- */

static struct lab_value *line_value(const struct lab_advice_line *line, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    if (line->device) {
        lab_value_set_string(arena, map, "device", line->device);
        lab_value_set_int(arena, map, "numa_node", line->numa_node);
        if (line->provisional)
            lab_value_set_int(arena, map, "untested_local_node", line->local_node);
        lab_value_set_string(arena, map, "cpus", line->cpus);
        lab_value_set_string(arena, map, "plain", line->plain);
    }
    lab_value_set_string(arena, map, "torchrun", line->torchrun);
    lab_value_set_string(arena, map, "mpirun", line->mpirun);
    lab_value_set_string(arena, map, "srun", line->srun);
    if (line->device)
        lab_value_set(arena, map, "gain", lab_claim_value(&line->gain, arena));
    return map;
}

static struct lab_value *claims_value(const struct lab_claim *claims, int count,
                                      struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++)
        lab_value_append(arena, list, lab_claim_value(&claims[i], arena));
    return list;
}

static struct lab_value *untested_value(const struct lab_advice *advice, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < advice->untested_count; i++) {
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_string(arena, map, "name", advice->untested[i].name);
        lab_value_set_string(arena, map, "line", advice->untested[i].line);
        lab_value_append(arena, list, map);
    }
    return list;
}

struct lab_value *lab_advice_value(const struct lab_advice *advice, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *lines = lab_value_list(arena);
    for (int i = 0; i < advice->line_count; i++)
        lab_value_append(arena, lines, line_value(&advice->lines[i], arena));
    lab_value_set_string(arena, map, "study", advice->study);
    lab_value_set_bool(arena, map, "simulated", advice->simulated);
    lab_value_set_string(arena, map, "answer", advice->answer);
    lab_value_set(arena, map, "lines", lines);
    lab_value_set(arena, map, "all",
                  advice->line_count > 1 ? line_value(&advice->all, arena) : lab_value_null(arena));
    lab_value_set(arena, map, "choices",
                  claims_value(advice->choices, advice->choice_count, arena));
    lab_value_set_string(arena, map, "command", advice->command);
    lab_value_set(arena, map, "not_measured", untested_value(advice, arena));
    lab_value_set(arena, map, "claims", claims_value(advice->tested, advice->tested_count, arena));
    return map;
}
