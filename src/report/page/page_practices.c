/*
 * page_practices.c: what to do (page_actions.c): on the page's first screen, and as
 * best_practices.md, which has bindings and settings as tables.
 */
#include "report/page/page_internal.h"

#include "analysis/analysis_words.h"

#include <math.h>
#include <string.h>

#define LINES_SHOWN   4 /* on the first screen: for all GPUs, and one each */
#define LINES_FEW     3 /* of more: examples, since best_practices.md has the rest anyway */
#define CHOICES_SHOWN 3
#define CHOICES_MOST  12
#define POINTS_SHOWN  8

#define OVERVIEW_COLUMNS 3 /* what a card has room for */
#define OVERVIEW_ROWS    6
#define OVERVIEW_FEW     4 /* of more rows */

/* What a setting gains on each model, which its mean over them hides. */
static void add_models(struct lab_doc *doc, const struct lab_analysis_advised *advised) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_doc_column *columns = lab_arena_alloc(arena, 2, sizeof *columns);
    columns[0] = (struct lab_doc_column){NULL, "Model", LAB_UNIT_TEXT};
    columns[1] = (struct lab_doc_column){
        NULL, lab_arena_printf(arena, "Throughput compared with %s", advised->claim.reference),
        LAB_UNIT_FIGURE};
    lab_doc_rows(doc, NULL, NULL, columns, 2);
    for (int i = 0; i < advised->model_count; i++) {
        lab_doc_add(doc, lab_cell_text(advised->models[i].subject));
        lab_doc_add(doc, lab_cell_text(lab_claim_short(&advised->models[i], arena)));
    }
}

static bool has_models(const struct page_action *action) {
    return action->advised && action->advised->model_count > 1;
}

static void add_action(struct lab_doc *doc, const struct page_action *action) {
    size_t length = action->text ? strlen(action->text) : 0,
           first = action->first && action->command ? action->first : length;
    if (action->kind == PAGE_BOUND)
        lab_doc_marked(doc, LAB_DOC_FAINT,
                       "%s. Lines to paste: [best_practices.md](best_practices.md)", action->text);
    else if (action->text)
        lab_doc_text(doc, LAB_DOC_PLAIN, "%.*s%s", (int)first, action->text,
                     action->command ? ":" : ".");
    if (action->command)
        lab_doc_command(doc, action->command, action->gain);
    if (first < length) /* behind its full stop */
        lab_doc_text(doc, LAB_DOC_FAINT, "%s.", action->text + first + 2);
}

#define PROGRAM_MEANS "PROGRAM: your command."

static bool has_program(const struct page_action *action) {
    return action->command && strstr(action->command, " PROGRAM");
}

/* --- the first screen --- */

/* Where settings aren't what it is about: how fast its few points are; of a matrix what its
 * settings give. */
static void add_rates(const struct page_build *build) {
    bool compared = false;
    const char *words = NULL;
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const struct lab_doc_table *overview = page_overview(
        build->page, build->names, NULL, OVERVIEW_COLUMNS, OVERVIEW_ROWS, arena, &words);
    if (overview && overview->row_count == OVERVIEW_ROWS && overview->row_total > OVERVIEW_ROWS)
        overview = page_overview(build->page, build->names, NULL, OVERVIEW_COLUMNS, OVERVIEW_FEW,
                                 arena, &words);
    for (int i = 0; i < build->actions.count && !overview; i++)
        compared |= build->actions.items[i].kind < PAGE_RUN;
    if (!build->digest || compared || (!overview && build->digest->row_count > POINTS_SHOWN))
        return;
    lab_doc_only(build->doc, LAB_DOC_SCREEN);
    if (overview) {
        lab_doc_table(build->doc, overview);
        lab_doc_text(build->doc, LAB_DOC_FAINT, "%s", words);
    } else {
        study_add_points(build->doc, build->digest, POINTS_SHOWN, NULL);
    }
    lab_doc_only(build->doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
}

void page_add_actions(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    const struct page_actions *actions = &build->actions;
    int shown[PAGE_ACTION_KINDS] = {0}, most[PAGE_ACTION_KINDS], lines = 0;
    for (int i = 0; i < actions->count; i++)
        lines += actions->items[i].kind == PAGE_BIND;
    for (int k = 0; k < PAGE_ACTION_KINDS; k++)
        most[k] = k == PAGE_CHOOSE ? CHOICES_SHOWN : k == PAGE_BIND ? LINES_SHOWN : INT32_MAX;
    if (lines > LINES_SHOWN)
        most[PAGE_BIND] = LINES_FEW;
    if (actions->count == 0 && !build->digest) /* recordings without a finding */
        return;
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
    lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_CARD, .title = "What to do"});
    bool program = false; /* a line has it, and no text yet */
    for (int i = 0; i < actions->count; i++) {
        const struct page_action *action = &actions->items[i];
        program |= has_program(action);
        if (shown[action->kind]++ < most[action->kind]) {
            add_action(doc, action);
            if (has_models(action) && !action->gain &&
                action->advised->model_count <= OVERVIEW_ROWS)
                add_models(doc, action->advised);
        }
        bool last = i + 1 == actions->count || actions->items[i + 1].kind != action->kind;
        if (last && action->kind == PAGE_BIND && lines > 1) {
            lab_doc_marked(doc, LAB_DOC_FAINT, "%s%s: [best_practices.md](best_practices.md)",
                           program ? PROGRAM_MEANS " " : "",
                           lines > LINES_SHOWN ? "The other GPUs, and lines for mpirun and srun"
                                               : "More lines (mpirun, srun)");
            program = false;
        }
    }
    if (program)
        lab_doc_text(doc, LAB_DOC_FAINT, PROGRAM_MEANS);
    int left = shown[PAGE_CHOOSE] - CHOICES_SHOWN;
    if (left > 0)
        lab_doc_marked(doc, LAB_DOC_FAINT,
                       "%d more choice%s: [best_practices.md](best_practices.md)", left,
                       study_plural(left));
    add_rates(build);
    lab_doc_end(doc);
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
}

/* --- best_practices.md --- */

/* `answer`: what is said already. */
static void add_placement(const struct page_build *build, const struct lab_advice *advice,
                          const char *answer) {
    static const struct lab_doc_column columns[] = {
        {NULL, "GPU", LAB_UNIT_TEXT},           {NULL, "NUMA node", LAB_UNIT_FIGURE},
        {NULL, "Cores", LAB_UNIT_TEXT},         {NULL, "Throughput, by model", LAB_UNIT_FIGURE},
        {NULL, "Compared with", LAB_UNIT_TEXT},
    };
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Placement"});
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < advice->line_count; i++) {
        const struct lab_advice_line *line = &advice->lines[i];
        lab_doc_add(doc, lab_cell_text(line->device));
        lab_doc_add(doc, lab_cell_text(lab_advice_node(line, arena)));
        lab_doc_add(doc, lab_cell_text(line->cpus ? line->cpus
                                                  : lab_arena_printf(arena, "all of NUMA node %d",
                                                                     line->numa_node)));
        lab_doc_add(doc, lab_cell_text(lab_words_range(line->least, line->most, arena)));
        lab_doc_add(doc, lab_cell_text(line->gain.reference));
    }
    if (advice->unbound && *advice->unbound && !(answer && strstr(answer, advice->unbound)))
        lab_doc_text(doc, LAB_DOC_PLAIN, "%s", advice->unbound);
    lab_doc_end(doc);
    const struct lab_advice_line *all = &advice->all;
    const char *const lines[] = {all->torchrun, all->mpirun, all->srun};
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Lines to paste"});
    if (advice->line_count > 1)
        lab_doc_text(doc, LAB_DOC_PLAIN, "One process per GPU (torchrun, mpirun, srun)%s:",
                     page_ran_alone(build->digest) ? "; measured one GPU at a time" : "");
    for (int i = 0; i < 3 && advice->line_count > 1; i++)
        if (lines[i])
            lab_doc_command(doc, lines[i], NULL);
    if (all->torchrun)
        lab_doc_text(doc, LAB_DOC_PLAIN,
                     "Every process sees all these GPUs: PROGRAM must choose its own by local rank "
                     "(LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID).");
    if (advice->lines[0].missing)
        lab_doc_text(doc, LAB_DOC_PLAIN, "No line to paste: %s.", advice->lines[0].missing);
    if (advice->line_count > 1)
        lab_doc_text(doc, LAB_DOC_PLAIN, "One process on one GPU:");
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].plain)
            lab_doc_command(doc, advice->lines[i].plain,
                            advice->lines[i].provisional
                                ? lab_arena_printf(arena, "local NUMA node %d not tested",
                                                   advice->lines[i].local_node)
                                : NULL);
    lab_doc_end(doc);
}

/* Whether a setting has a table of its own. */
static bool is_by_model(const struct page_build *build, const struct lab_claim *claim) {
    for (int i = 0; i < build->actions.count; i++)
        if (has_models(&build->actions.items[i]) &&
            lab_str_equal(build->actions.items[i].advised->claim.kind, claim->kind))
            return true;
    return false;
}

static void add_choices(const struct page_build *build, const struct lab_advice *advice) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Setting or GPU", LAB_UNIT_TEXT}, {NULL, "Compared with", LAB_UNIT_TEXT},
        {NULL, "Quantity", LAB_UNIT_TEXT},       {NULL, "Change", LAB_UNIT_FIGURE},
        {NULL, "Runs", LAB_UNIT_COUNT},
    };
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Settings"});
    for (int i = 0; i < build->actions.count; i++) {
        if (build->actions.items[i].kind != PAGE_CHOOSE)
            continue;
        add_action(doc, &build->actions.items[i]);
        if (has_models(&build->actions.items[i]))
            add_models(doc, build->actions.items[i].advised);
    }
    for (int i = 0, rows = 0; i < advice->choice_count && i < CHOICES_MOST; i++) {
        const struct lab_analysis_advised *advised = NULL;
        const struct lab_claim *claim = page_advised(build->page, &advice->choices[i], &advised);
        if (fabs(advice->choices[i].effect) < LAB_CLAIM_WORTH || is_by_model(build, claim))
            continue;
        if (rows++ == 0)
            lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
        lab_doc_add(
            doc, lab_cell_text(page_named(build->names, lab_claim_subject(claim, arena), arena)));
        lab_doc_add(doc, lab_cell_text(page_named(build->names, claim->reference, arena)));
        lab_doc_add(doc, lab_cell_text(claim->quantity));
        lab_doc_add(doc, lab_cell_text(lab_claim_short(claim, arena)));
        lab_doc_figure(doc, claim->n);
    }
    if (advice->choice_count > CHOICES_MOST)
        lab_doc_marked(doc, LAB_DOC_PLAIN, "%d more: `gpulab advise --study %s`",
                       advice->choice_count - CHOICES_MOST, advice->study);
    lab_doc_end(doc);
}

/* How many of the actions come before the tables of bindings and settings: in the page's order,
 * what stands behind those is secondary. Without such tables all that don't go on with the
 * study. */
static int count_main(const struct page_actions *actions, int later) {
    for (int i = 0; i < later; i++)
        if (actions->items[i].kind == PAGE_BIND || actions->items[i].kind == PAGE_CHOOSE)
            return i;
    return later;
}

static void add_pasted(const struct page_build *build, int from, int until) {
    for (int i = from; i < until; i++)
        if (build->actions.items[i].kind == PAGE_PASTE)
            add_action(build->doc, &build->actions.items[i]);
}

void lab_page_practices(const struct lab_page *page, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct study_digest digest;
    struct page_build build = {.page = page};
    const struct lab_advice *advice = page->advice;
    if (page->study) {
        study_digest_init(&digest, page->study);
        build.digest = &digest;
    }
    build.names = page_names_make(build.digest, &arena);
    build.actions = page_actions_make(page, build.digest, build.names, &arena);
    build.doc = lab_doc_open(lab_arena_printf(&arena, "Best practices: %s", page->title), &arena);
    lab_doc_set_simulated(build.doc, page->simulated);
    if (page->study && page->study->machine && *page->study->machine)
        lab_doc_text(build.doc, LAB_DOC_PLAIN, "Machine: %s.", page->study->machine);
    const char *slices = page_slices(build.digest, &arena);
    if (slices)
        lab_doc_text(build.doc, LAB_DOC_PLAIN, "%s.", slices);
    size_t headline;
    const char *answer = page_verdict(page, build.digest, build.names, &arena, &headline);
    if (answer)
        page_add_answer(&build, answer, headline);
    int later =
        0; /* the first that goes on with the study: behind the tables, in the page's order */
    while (later < build.actions.count && build.actions.items[later].kind <= PAGE_CHOOSE)
        later++;
    int before = count_main(&build.actions, later);
    add_pasted(&build, 0, before);
    if (page_by_point(page))
        page_add_small_table(&build, page_by_point(page));
    bool bound = advice && advice->line_count > 0, program = bound && !advice->lines[0].missing,
         chosen = false;
    for (int i = 0; i < build.actions.count; i++) {
        program |= has_program(&build.actions.items[i]);
        chosen |= advice && build.actions.items[i].kind == PAGE_CHOOSE;
    }
    if (bound)
        add_placement(&build, advice, answer);
    if (chosen)
        add_choices(&build, advice);
    add_pasted(&build, before, later);
    for (int i = later; i < build.actions.count; i++)
        if (build.actions.items[i].kind >= PAGE_PASTE && build.actions.items[i].kind != PAGE_CHOOSE)
            add_action(build.doc, &build.actions.items[i]);
    const char *limits = page_limits(&build, "in report.md", lab_doc_arena(build.doc));
    if (limits)
        lab_doc_marked(build.doc, LAB_DOC_LIMIT, "%s", limits);
    const char *measured = page_measured(&build, lab_doc_arena(build.doc));
    if (measured)
        lab_doc_text(build.doc, LAB_DOC_FAINT, "%s", measured);
    lab_doc_marked(build.doc, LAB_DOC_PLAIN,
                   "%s%sEvidence: [index.html](index.html), [report.md](report.md).",
                   program ? PROGRAM_MEANS " " : "",
                   bound || chosen ? "Intervals are 95%, across runs. " : "");
    lab_doc_write(build.doc, "markdown", (struct lab_style){0}, out);
    if (page->study)
        study_digest_release(&digest);
}
