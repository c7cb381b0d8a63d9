/*
 * page_practices.c: what to do: on the page's first screen, and as best_practices.md. Both are made
 * from the advice that `gpulab advise` prints of the study.
 */
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include <math.h>

#define LINES_SHOWN   4 /* on the first screen */
#define CHOICES_SHOWN 3
#define CHOICES_MOST  12
#define COMPILE_LINE  "model = torch.compile(model)"

/* --- words --- */

/* "+6.3%" */
static const char *gain(const struct lab_claim *claim, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%+.1f%%", 100 * claim->effect);
}

static const struct lab_advice_line *all_lines(const struct lab_advice *advice) {
    return advice->line_count > 1 ? &advice->all : advice->lines;
}

/* --- the first screen --- */

static void add_lines(const struct page_build *build, const struct lab_advice *advice) {
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_advice_line *all = all_lines(advice);
    int shown = 0;
    if (advice->line_count > 1 && all->torchrun)
        lab_doc_command(doc, all->torchrun, NULL);
    for (int i = 0; i < advice->line_count && shown < LINES_SHOWN; i++)
        if (advice->lines[i].plain) {
            lab_doc_command(doc, advice->lines[i].plain, gain(&advice->lines[i].gain, arena));
            shown++;
        }
    for (int i = 0; i < advice->line_count && shown == 0; i++)
        if (advice->lines[i].missing && i == 0)
            lab_doc_text(doc, LAB_DOC_PLAIN, "Bind %s to NUMA node %d. No line to paste: %s.",
                         advice->lines[i].device, advice->lines[i].numa_node,
                         advice->lines[i].missing);
    lab_doc_marked(doc, LAB_DOC_FAINT,
                   "Throughput compared with %s, mean of all models. More lines (mpirun, srun): "
                   "[best_practices.md](best_practices.md)",
                   advice->lines[0].gain.reference);
}

/* Why most of the failed runs failed, and what helps. */
static void add_failure(const struct page_build *build) {
    const struct study_note *note = build->digest->failures.items;
    struct lab_arena *arena = lab_doc_arena(build->doc);
    if (build->digest->failures.count == 0)
        return;
    const char *hint = study_hint(note, arena);
    lab_doc_text(build->doc, LAB_DOC_PLAIN, "%d run%s failed: %s. %s", note->run_count,
                 study_plural(note->run_count), note->text, hint ? hint : "");
}

/* The command that may decide an open verdict: with more runs, or on a quiet machine. */
static const char *add_repeat(const struct page_build *build, struct lab_str *command) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const struct lab_study_info *study = build->digest->study;
    int count;
    struct lab_claim *const *claims = lab_report_claims(build->page, arena, &count);
    if (count == 0 || claims[0]->verdict != LAB_CLAIM_INCONCLUSIVE || !study->command ||
        !*study->command)
        return NULL;
    if (claims[0]->needed > claims[0]->n && claims[0]->needed <= LAB_CLAIM_RUNS_MOST) {
        study_add_repeat_command(study, claims[0]->needed, command);
        return lab_arena_printf(
            arena, "Inconclusive. %d runs per point detect 2%% (80%% power):", claims[0]->needed);
    }
    lab_str_add(command, study->command);
    return "Inconclusive: too noisy. Quiet the machine, then run it again:";
}

/* What goes on with the study, or repeats it for a verdict; else what shows all of it. */
static void add_next(const struct page_build *build, bool advised) {
    struct lab_doc *doc = build->doc;
    LAB_AUTO(str, command);
    LAB_AUTO(str, next);
    const struct lab_study_info *study = build->digest->study;
    const char *words = NULL;
    study_add_next(build->digest, &next);
    study_add_verdict_command(build->digest, &command);
    if (next.length && study->command && *study->command) {
        lab_str_clear(&command);
        lab_str_add(&command, study->command);
        words = "Finish the study:";
    } else if (command.length) {
        words = "For a verdict, 5 runs per point:";
    } else if (!advised) {
        words = add_repeat(build, &command);
    }
    if (!words && !advised && study->folder) {
        bool tested = build->page->advice && build->page->advice->tested_count > 0;
        words = tested ? "No setting to change: no tested choice has a certain gain. Every value:"
                       : "No setting to change follows from this study. Every value:";
        lab_str_add(&command, "gpulab show ");
        lab_str_add_shell(&command, study->folder);
    }
    if (!words)
        return;
    lab_doc_text(doc, LAB_DOC_PLAIN, "%s", words);
    lab_doc_command(doc, command.text, NULL);
}

/* The best of its kind: of four batch sizes that pay off, one is chosen. */
static bool is_best(const struct lab_advice *advice, int index) {
    const struct lab_claim *claim = &advice->choices[index];
    for (int i = 0; i < advice->choice_count; i++)
        if (i != index && lab_str_equal(advice->choices[i].kind, claim->kind) &&
            !lab_str_equal(claim->kind, "peers.device") &&
            fabs(advice->choices[i].effect) > fabs(claim->effect))
            return false;
    return true;
}

/* "Use batch 32, mean of 12 points: 0.6% higher throughput …", "Check GPU 7, …: 3.2% lower …" */
static const char *choice_sentence(const struct lab_claim *claim, struct lab_arena *arena) {
    struct lab_claim chosen = *claim;
    if (lab_str_equal(claim->kind, "recommend.compile"))
        return lab_arena_printf(arena, "Compile the model (%s)", lab_claim_short(claim, arena));
    if (lab_str_starts(claim->kind, "recommend."))
        chosen.subject = lab_arena_printf(arena, "Use %s", lab_claim_within(claim->subject, arena));
    if (lab_str_equal(claim->kind, "peers.device"))
        chosen.subject = lab_arena_printf(arena, "Check %s", claim->subject);
    return lab_claim_sentence(&chosen, arena);
}

static int add_choices_shown(const struct page_build *build, const struct lab_advice *advice) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    int shown = 0;
    for (int i = 0; i < advice->choice_count && shown < CHOICES_SHOWN; i++) {
        const struct lab_claim *claim = &advice->choices[i];
        if (!is_best(advice, i))
            continue;
        shown++;
        lab_doc_text(build->doc, LAB_DOC_PLAIN, "%s.",
                     page_named(build->names, choice_sentence(claim, arena), arena));
        if (lab_str_equal(claim->kind, "recommend.compile"))
            lab_doc_command(build->doc, COMPILE_LINE, gain(claim, arena));
    }
    return shown;
}

/* Lines that follow from other analyses; whether there is one. */
static bool add_commands(const struct page_build *build) {
    bool any = false;
    for (int i = 0; i < build->page->analysis_count; i++) {
        const struct lab_analysis_result *result = build->page->analyses[i].result;
        if (!result || !result->command)
            continue;
        lab_doc_command(build->doc, result->command, NULL);
        any = true;
    }
    return any;
}

void page_add_actions(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    const struct lab_advice *advice = build->page->advice;
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
    lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_CARD, .title = "What to do"});
    bool advised = advice && advice->line_count + advice->choice_count > 0;
    if (advice && advice->line_count > 0)
        add_lines(build, advice);
    advised = add_commands(build) || advised;
    int shown = advice ? add_choices_shown(build, advice) : 0;
    if (advice && advice->choice_count > shown)
        lab_doc_marked(doc, LAB_DOC_FAINT,
                       "%d more choices: [best_practices.md](best_practices.md)",
                       advice->choice_count - shown);
    if (build->digest) {
        add_failure(build);
        add_next(build, advised);
    }
    lab_doc_end(doc);
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
}

/* --- best_practices.md --- */

static void add_placement(struct lab_doc *doc, const struct lab_advice *advice) {
    static const struct lab_doc_column columns[] = {
        {NULL, "GPU", LAB_UNIT_TEXT},           {NULL, "NUMA node", LAB_UNIT_COUNT},
        {NULL, "Cores", LAB_UNIT_TEXT},         {NULL, "Throughput", LAB_UNIT_FIGURE},
        {NULL, "Compared with", LAB_UNIT_TEXT},
    };
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Placement"});
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < advice->line_count; i++) {
        const struct lab_advice_line *line = &advice->lines[i];
        lab_doc_add(doc, lab_cell_text(line->device));
        lab_doc_figure(doc, line->numa_node);
        lab_doc_add(doc, lab_cell_text(line->cpus ? line->cpus
                                                  : lab_arena_printf(arena, "all of NUMA node %d",
                                                                     line->numa_node)));
        lab_doc_add(doc, lab_cell_text(lab_claim_short(&line->gain, arena)));
        lab_doc_add(doc, lab_cell_text(line->gain.reference));
    }
    lab_doc_end(doc);
    const struct lab_advice_line *all = all_lines(advice);
    const char *const lines[] = {all->torchrun, all->mpirun, all->srun};
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Lines to paste"});
    lab_doc_text(doc, LAB_DOC_PLAIN, "One process per GPU (torchrun, mpirun, srun):");
    for (int i = 0; i < 3; i++)
        if (lines[i])
            lab_doc_command(doc, lines[i], NULL);
    if (advice->lines[0].missing)
        lab_doc_text(doc, LAB_DOC_PLAIN, "No line to paste: %s.", advice->lines[0].missing);
    lab_doc_text(doc, LAB_DOC_PLAIN, "One process on one GPU:");
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].plain)
            lab_doc_command(doc, advice->lines[i].plain, NULL);
    lab_doc_end(doc);
}

static void add_choices(const struct page_build *build, const struct lab_advice *advice) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Choose", LAB_UNIT_TEXT},   {NULL, "Compared with", LAB_UNIT_TEXT},
        {NULL, "Quantity", LAB_UNIT_TEXT}, {NULL, "Change", LAB_UNIT_FIGURE},
        {NULL, "Runs", LAB_UNIT_COUNT},
    };
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Settings"});
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < advice->choice_count && i < CHOICES_MOST; i++) {
        const struct lab_claim *claim = &advice->choices[i];
        lab_doc_add(doc, lab_cell_text(page_named(build->names, claim->subject, arena)));
        lab_doc_add(doc, lab_cell_text(page_named(build->names, claim->reference, arena)));
        lab_doc_add(doc, lab_cell_text(claim->quantity));
        lab_doc_add(doc, lab_cell_text(lab_claim_short(claim, arena)));
        lab_doc_figure(doc, claim->n);
    }
    for (int i = 0; i < advice->choice_count; i++)
        if (lab_str_equal(advice->choices[i].kind, "recommend.compile"))
            lab_doc_command(doc, COMPILE_LINE, NULL);
    if (advice->choice_count > CHOICES_MOST)
        lab_doc_marked(doc, LAB_DOC_PLAIN, "%d more: `gpulab advise --study %s`",
                       advice->choice_count - CHOICES_MOST, advice->study);
    lab_doc_end(doc);
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
    build.doc = lab_doc_open(lab_arena_printf(&arena, "Best practices: %s", page->title), &arena);
    lab_doc_set_simulated(build.doc, page->simulated);
    if (page->study && page->study->machine && *page->study->machine)
        lab_doc_text(build.doc, LAB_DOC_PLAIN, "Machine: %s.", page->study->machine);
    const char *answer = page_answer(page);
    if (answer)
        lab_doc_text(build.doc, LAB_DOC_ANSWER, "%s", page_named(build.names, answer, &arena));
    if (advice && advice->line_count > 0)
        add_placement(build.doc, advice);
    if (advice && advice->choice_count > 0)
        add_choices(&build, advice);
    if (!advice || advice->line_count + advice->choice_count == 0)
        lab_doc_text(build.doc, LAB_DOC_PLAIN, "No setting is advised: none has a certain gain.");
    const char *limits = page_limits(&build);
    if (limits)
        lab_doc_text(build.doc, LAB_DOC_LIMIT, "%s", limits);
    lab_doc_marked(build.doc, LAB_DOC_PLAIN,
                   "Intervals are 95%%, across runs. Evidence: [index.html](index.html), "
                   "[report.md](report.md).");
    lab_doc_write(build.doc, "markdown", (struct lab_style){0}, out);
    if (page->study)
        study_digest_release(&digest);
}
