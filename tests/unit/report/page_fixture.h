/* page_fixture.h: a report of a small study of NUMA nodes, with advice. */
#pragma once

#include "study_fixture.h"
#include "unit/plot/chart_fixture.h"

#include "report/page/page.h"

static const struct lab_doc_column columns[] = {
    {"penalty", "Penalty", LAB_UNIT_CHANGE, "Penalty", .with_interval = true},
    {"best", "Best node", LAB_UNIT_TEXT, "Best node"},
    {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND},
};
static const struct lab_doc_column row_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"penalty", "Penalty", LAB_UNIT_CHANGE, .with_interval = true},
};

struct given {
    struct fixture study;
    struct lab_analysis_result result;
    struct lab_page_analysis analyses[3];
    struct lab_claim claims[2];
    struct lab_advice advice;
    struct lab_advice_line lines[2];
    struct lab_page page;
    struct lab_str text;
};

static inline struct lab_analysis_part make_part(struct lab_arena *arena, const char *name,
                                                 double share) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, 3, sizeof *cells),
                        *rows = lab_arena_alloc(arena, 4, sizeof *rows);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    static const char *const lines[] = {"CUDA_VISIBLE_DEVICES=GPU-5f0c numactl --cpunodebind=1 "
                                        "--membind=1 ./train",
                                        NULL};
    static const char *const notes[] = {"2 of 8 runs < 3 & not valid", NULL};
    cells[0] = (struct lab_doc_cell){NULL, share, share - 0.01, share + 0.01, 0.95};
    cells[1] = lab_cell_text("node <1>");
    cells[2] = lab_cell_figure(3100);
    for (int i = 0; i < 2; i++) {
        struct lab_doc_cell *row = rows + (ptrdiff_t)2 * i;
        row[0] = lab_cell_text(i ? "vit32x6x512" : "vit0x0x0");
        row[1] = cells[0];
    }
    tables[0] = (struct lab_doc_table){"models", "By model", row_columns, 2, rows, 2, NULL};
    tables[1] = (struct lab_doc_table){"lines", "To paste", row_columns, 2, rows, 2, lines};
    return (struct lab_analysis_part){.name = name,
                                      .about = "cuda:0",
                                      .answer =
                                          lab_arena_printf(arena, "Bind %s to NUMA node 1.", name),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = 2,
                                      .notes = notes};
}

/* Two devices that are bound to node 1, one node that was not tested. */
static inline void advise(struct given *g) {
    static const char *const names[] = {"GPU 0", "GPU 1"};
    for (int i = 0; i < 2; i++) {
        g->claims[0] = lab_claim_none;
        g->claims[0].kind = "numa.penalty";
        g->claims[0].reference = "NUMA node 0";
        g->claims[0].effect = 0.125;
        g->claims[0].low = 0.107;
        g->claims[0].high = 0.138;
        g->claims[0].n = 5;
        g->claims[0].verdict = LAB_CLAIM_YES;
        g->lines[i] = (struct lab_advice_line){
            .device = names[i],
            .numa_node = 1,
            .cpus = i ? "16-31" : NULL,
            .plain = i ? "CUDA_VISIBLE_DEVICES=1 numactl --cpunodebind=1 --membind=1 PROGRAM"
                       : "CUDA_VISIBLE_DEVICES=0 numactl --cpunodebind=1 --membind=1 PROGRAM",
            .gain = g->claims[0],
            .most = 0.125};
    }
    g->claims[1] = lab_claim_none;
    g->claims[1].subject = "GPU 1, NUMA node 0";
    g->advice = (struct lab_advice){
        .lines = g->lines, .line_count = 2, .all = {.torchrun = "torchrun gpulab bind PROGRAM"}};
    g->result.claims = g->claims;
    g->result.claim_count = 2;
    g->page.advice = &g->advice;
}

static inline int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    fixture_setup(NULL);
    fixture_init(&g->study, "numa_locality_study", "numa_study");
    g->study.study.gpu_count = g->study.study.node_count = 4;
    g->study.study.names = "vit32x2x128: patch 32, depth 2, width 128.";
    struct lab_arena *arena = &g->study.arena;
    for (int i = 0; i < 4; i++)
        fixture_done(&g->study, fixture_plan(&g->study, i % 2, 1, i / 2, "vit32x2x128"),
                     1000.0 + 10 * i, "", "");
    static const char *const notes[] = {"One run of a point tells nothing of another.", NULL};
    struct lab_analysis_part *parts = lab_arena_alloc(arena, 3, sizeof *parts);
    for (int i = 0; i < 3; i++)
        parts[i] = make_part(arena, lab_arena_printf(arena, "GPU %d", i), 0.124 - 0.06 * i);
    g->result = (struct lab_analysis_result){
        .answer = "Bind GPU 0 to NUMA node 1: node 0 has 12.4% lower throughput, \"<b>\" & more.",
        .part_key = "gpus",
        .columns = columns,
        .column_count = 3,
        .parts = parts,
        .part_count = 3,
        .notes = notes};
    g->analyses[0] = (struct lab_page_analysis){
        .name = "numa", .summary = "which node feeds which device best", .result = &g->result};
    g->analyses[1] = (struct lab_page_analysis){.name = "crossover",
                                                .summary = "where compute passes copies",
                                                .failure = "all models are <alike>"};
    g->page = (struct lab_page){.title = "numa_study",
                                .study = &g->study.study,
                                .analyses = g->analyses,
                                .analysis_count = 2,
                                .source = g->study.study.folder,
                                .folder = "/nowhere",
                                .config = "experiment:\n  name: \"a<b>\"\n",
                                .order = "random",
                                .question = "Which NUMA node should each GPU be bound to?",
                                .version = "0.3.0"};
    advise(g);
    lab_str_init(&g->text);
    *state = g;
    return 0;
}

static inline int end(void **state) {
    struct given *g = *state;
    lab_str_release(&g->text);
    fixture_release(&g->study);
    lab_mem_free(g);
    return 0;
}

static inline void write_page(struct given *g, const char *format) {
    lab_doc_write(lab_page_doc(&g->page, &g->study.arena), format, (struct lab_style){0}, &g->text);
}

/* As the terminal shows it when the study ends. */
static inline void write_end(struct given *g) {
    struct lab_doc *doc = lab_doc_open(NULL, &g->study.arena);
    struct lab_style style = {.columns = 100, .unicode = true};
    lab_report_add_study(doc, &g->study.study, &g->page, style, false);
    lab_str_clear(&g->text);
    lab_doc_write(doc, "text", style, &g->text);
}

/* The body alone: neither style nor script. */
static inline int count_in_page(const struct given *g, const char *text) {
    const char *at = strstr(g->text.text, "</style>"), *end = strstr(g->text.text, "<script>\n");
    int count = 0;
    for (; (at = strstr(at, text)) && at < end; at++)
        count++;
    return count;
}
