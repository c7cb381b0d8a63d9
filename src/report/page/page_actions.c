/*
 * page_actions.c: what to do after a study, as one list. The page, report.md, best_practices.md and
 * the end in the terminal are made from it: none advises what another one doesn't.
 */
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include "analysis/analysis_words.h"
#include "base/list.h"
#include "model/reported_metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_LINE "model = torch.compile(model)"
#define ACTIONS_MOST 512

struct making {
    const struct lab_page *page; /* NULL = it wasn't analysed */
    const struct study_digest *digest;
    const struct page_names *names;
    struct page_actions made;
    struct lab_arena *arena;
    /* of the analysis that answers the study's question: what it couldn't test, and the keys that
     * test it; NULL once a line has them */
    const char *tests, *further;
};

static void add(struct making *making, struct page_action action) {
    if (making->made.count < ACTIONS_MOST)
        making->made.items[making->made.count++] = action;
}

/* "+6.3%" */
static const char *gain(const struct lab_claim *claim, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_change(&text, claim->effect);
    return lab_arena_strdup(arena, text.text);
}

/* --- what claims advise --- */

/* Of a device that is slower than its peers. */
static bool is_check(const struct lab_claim *claim) {
    return lab_str_starts(claim->kind, "peers.");
}

/* " (GPU 7 is slower than its peers)" of devices that the line uses; "" = none. */
static const char *slow_words(const struct lab_advice *advice, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int i = 0; i < advice->line_count; i++)
        for (int c = 0; c < advice->choice_count; c++)
            if (is_check(&advice->choices[c]) &&
                lab_str_equal(advice->choices[c].subject, advice->lines[i].device) &&
                lab_list_find_text(names, count, advice->lines[i].device) < 0)
                LAB_ADD(names, count, arena) = advice->lines[i].device;
    if (count == 0)
        return "";
    return lab_arena_printf(arena, " (%s %s peers)", lab_words_devices(names, count, arena),
                            count == 1 ? "is slower than its" : "are slower than their");
}

static bool ran_alone(const struct study_digest *digest) {
    for (int i = 0; digest && i < digest->row_count; i++)
        if (digest->rows[i].run[0]->rank_count > 1)
            return false;
    return digest && digest->row_count > 0;
}

static void add_bindings(struct making *making, const struct lab_advice *advice) {
    int before = making->made.count;
    const char *all = lab_arena_printf(
                   making->arena, "Bind one process per GPU%s%s", slow_words(advice, making->arena),
                   ran_alone(making->digest) ? "; measured one GPU at a time" : ""),
               *one = NULL;
    if (advice->line_count > 0)
        one = lab_arena_printf(making->arena,
                               "Bind a single process (gain over %s by model; unbound: not tested)",
                               advice->lines[0].gain.reference);
    if (advice->line_count > 1 && advice->all.torchrun)
        add(making,
            (struct page_action){.kind = PAGE_BIND, .text = all, .command = advice->all.torchrun});
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].plain)
            add(making, (struct page_action){.kind = PAGE_BIND,
                                             .text = i == 0 ? one : NULL,
                                             .command = advice->lines[i].plain,
                                             .gain = lab_words_range(advice->lines[i].least,
                                                                     advice->lines[i].most,
                                                                     making->arena)});
    const struct lab_advice_line *first = advice->lines;
    if (advice->line_count > 0 && making->made.count == before && first->missing)
        add(making,
            (struct page_action){.kind = PAGE_BIND,
                                 .text = lab_arena_printf(
                                     making->arena, "Bind %s to NUMA node %d. No line to paste: %s",
                                     first->device, first->numa_node, first->missing)});
}

/* Whether the analysis that answers the study's question compares NUMA nodes. */
static bool asks_for_nodes(const struct lab_page *page) {
    const struct lab_analysis_result *result = page->answer ? NULL : page_leading(page);
    for (int i = 0; result && i < result->claim_count; i++) {
        const char *kind = result->claims[i].kind ? result->claims[i].kind : "";
        if (lab_str_starts(kind, "numa.") || lab_str_equal(strchr(kind, '.'), ".node"))
            return true;
    }
    return !result;
}

/* On a page about something else: what binding gains, and where its lines are. */
static void add_bound(struct making *making, const struct lab_advice *advice) {
    struct lab_arena *arena = making->arena;
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < advice->line_count; i++) {
        least = fmin(least, advice->lines[i].least);
        most = fmax(most, advice->lines[i].most);
    }
    if (!(most >= LAB_CLAIM_WORTH))
        return;
    const struct lab_advice_line *first = advice->lines;
    const char *who =
        advice->line_count > 1
            ? lab_arena_printf(arena, "%d GPUs to their NUMA nodes", advice->line_count)
            : lab_arena_printf(arena, "%s to NUMA node %d", first->device, first->numa_node);
    add(making,
        (struct page_action){.kind = PAGE_BOUND,
                             .text = lab_arena_printf(
                                 arena,
                                 "Binding %s: %s throughput compared with %s, by model; "
                                 "unbound: not tested",
                                 who, lab_words_range(least, most, arena), first->gain.reference)});
}

/* The best of its kind: of four batch sizes that pay off, one is chosen. */
static bool is_best(const struct lab_advice *advice, int index) {
    const struct lab_claim *claim = &advice->choices[index];
    for (int i = 0; i < advice->choice_count; i++)
        if (i != index && lab_str_equal(advice->choices[i].kind, claim->kind) && !is_check(claim) &&
            fabs(advice->choices[i].effect) > fabs(claim->effect))
            return false;
    return true;
}

/* What `peers` says of a device in a column of its table; "" = nothing. */
static const char *told_of_peer(const struct making *making, const char *device, const char *key) {
    for (int i = 0; i < making->page->analysis_count; i++) {
        const struct lab_analysis_result *result = making->page->analyses[i].result;
        if (!result || !lab_str_equal(making->page->analyses[i].name, "peers"))
            continue;
        for (int t = 0; result->part_count > 0 && t < result->parts[0].table_count; t++) {
            const struct lab_doc_table *table = &result->parts[0].tables[t];
            int name = LAB_FIND(table->columns, table->column_count, key, "device"),
                told = LAB_FIND(table->columns, table->column_count, key, key);
            for (int r = 0; name >= 0 && told >= 0 && r < table->row_count; r++) {
                const struct lab_doc_cell *cells =
                    &table->cells[(ptrdiff_t)r * table->column_count];
                if (lab_str_equal(cells[name].text, device) && cells[told].text)
                    return cells[told].text;
            }
        }
    }
    return "";
}

/* Where nothing that was sampled explains a slow device, only the card itself is left to look
 * at: lower power follows from less work. Short runs show no heat, so they come first. */
static const char *check_sentence(const struct making *making, const struct lab_claim *claim) {
    struct lab_arena *arena = making->arena;
    struct lab_claim chosen = *claim;
    const char *device = claim->subject, *differs = told_of_peer(making, device, "differs"),
               *symptoms = told_of_peer(making, device, "symptoms"),
               *alike = told_of_peer(making, device, "alike"),
               *brief = told_of_peer(making, device, "brief");
    bool unexplained = !*differs && (*alike || *symptoms);
    chosen.subject =
        *differs ? lab_arena_printf(arena, "Check %s, which differs in %s", device, differs)
        : unexplained && *brief
            ? lab_arena_printf(arena, "Test %s for minutes, then inspect it", device)
        : unexplained ? lab_arena_printf(arena, "Inspect or swap %s", device)
                      : lab_arena_printf(arena, "Check clocks, cooling and link of %s", device);
    LAB_AUTO(str, text);
    lab_str_add(&text, lab_claim_sentence(&chosen, arena));
    if (*symptoms)
        lab_str_printf(&text, ". Symptom: %s", symptoms);
    if (unexplained && *brief)
        lab_str_printf(&text, ". Runs of at most %s show no heat", brief);
    if (unexplained && *alike)
        lab_str_printf(&text, ". What%s was sampled doesn't explain it: no difference in %s",
                       *symptoms ? " else" : "", alike);
    return lab_arena_strdup(arena, text.text);
}

/* Which models don't gain enough, by the analysis that says so; `ret_gain`: of those that do. */
static const char *compile_words(const struct making *making, const char **ret_gain) {
    const char *names[4] = {NULL}, *text = "Compile the model";
    double least = INFINITY, most = 0;
    int count = 0, rest = 0;
    struct lab_claim *const *claims = lab_report_claims(making->page, making->arena, &count);
    for (int i = 0; i < count; i++) {
        if (!lab_str_equal(claims[i]->kind, "compile.model"))
            continue;
        if (claims[i]->verdict == LAB_CLAIM_YES && claims[i]->effect >= LAB_CLAIM_WORTH) {
            least = fmin(least, claims[i]->effect);
            most = fmax(most, claims[i]->effect);
        } else if (rest++ < 3) {
            names[rest - 1] = lab_arena_strndup(making->arena, claims[i]->subject,
                                                strcspn(claims[i]->subject, ","));
        }
    }
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    if (rest > 3)
        text = lab_arena_printf(making->arena,
                                "%s, but not %d models (no gain of 1%% or more found)", text, rest);
    else if (rest)
        text = lab_arena_printf(making->arena, "%s, but not %s (no gain of 1%% or more found)",
                                text, list.text);
    if (most > least)
        *ret_gain = lab_words_range(least, most, making->arena);
    return text;
}

#define EXCEPTIONS_NAMED 4
#define MODELS_NAMED     2 /* in a line of a terminal */

/* Of `advised` on a model; NULL = it is none. */
static const char *exception_model(const struct lab_claim *claim, const char *advised) {
    const char *model = strchr(claim->subject, ',');
    return model && lab_str_equal(claim->reference, advised) ? model + 2 : NULL;
}

/* " except for vit32x6x512 (32)" with what is better there, " except for 3 models"; "" = it is best
 * for all. A line in a terminal ends before the gains. */
static const char *except_words(const struct making *making, const char *advised) {
    const char **models = NULL, **words = NULL;
    int count = 0, named = 0;
    for (int i = 0; i < making->page->analysis_count; i++) {
        const struct lab_analysis_result *result = making->page->analyses[i].result;
        for (int c = 0; result && c < result->exception_count; c++) {
            const char *subject = result->exceptions[c].subject; /* "Batch 32, vit32x6x512" */
            const char *model = exception_model(&result->exceptions[c], advised);
            if (!model || lab_list_find_text(models, count, model) >= 0)
                continue;
            LAB_ADD(models, count, making->arena) = model;
            const char *value = model - 2;
            while (value > subject && value[-1] != ' ')
                value--;
            LAB_ADD(words, named, making->arena) = lab_arena_printf(
                making->arena, "%s (%.*s)", model, (int)(model - 2 - value), value);
        }
    }
    LAB_ADD(words, named, making->arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, words, "and");
    return count == 0 ? ""
           : count <= MODELS_NAMED
               ? lab_arena_printf(making->arena, " except for %s", list.text)
               : lab_arena_printf(making->arena, " except for %d models", count);
}

/* ". Exceptions (gain over batch 16): batch 32 for vit32x6x512 (+5.5%)": models for which another
 * batch beats the advised one. */
static void add_exceptions(const struct making *making, const char *advised, struct lab_str *text) {
    struct lab_arena *arena = making->arena;
    int named = 0;
    for (int i = 0; i < making->page->analysis_count; i++) {
        const struct lab_analysis_result *result = making->page->analyses[i].result;
        for (int c = 0; result && c < result->exception_count; c++) {
            const struct lab_claim *claim = &result->exceptions[c];
            const char *model = exception_model(claim, advised);
            if (!model || named++ >= EXCEPTIONS_NAMED)
                continue;
            if (named == 1)
                lab_str_printf(text, ". Exceptions (gain over %s): ", advised);
            const char *level =
                lab_arena_strndup(arena, claim->subject, (size_t)(model - 2 - claim->subject));
            lab_str_printf(text, "%s%s for %s (%s%s%s)", named > 1 ? "; " : "",
                           lab_claim_within(level, arena), model, gain(claim, arena),
                           claim->mean_of ? ", mean of " : "",
                           claim->mean_of ? claim->mean_of : "");
        }
    }
    if (named > EXCEPTIONS_NAMED)
        lab_str_printf(text, "; %d more", named - EXCEPTIONS_NAMED);
}

const struct lab_claim *page_advised(const struct lab_page *page, const struct lab_claim *claim,
                                     const char **ret_range) {
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        for (int c = 0; result && c < result->advised_count; c++) {
            const struct lab_analysis_advised *own = &result->advised[c];
            if (lab_str_equal(own->claim.kind, claim->kind) &&
                lab_str_equal(own->claim.subject, claim->subject) &&
                lab_str_equal(own->claim.reference, claim->reference)) {
                *ret_range = own->range;
                return &own->claim;
            }
        }
    }
    return claim;
}

static double batch_of(const struct lab_claim *claim) {
    return strtod(claim->subject + strcspn(claim->subject, "0123456789"), NULL);
}

/* Whether a larger batch was tested. */
static bool has_larger(const struct lab_advice *advice, const struct lab_claim *batch) {
    for (int i = 0; i < advice->tested_count; i++)
        if (lab_str_equal(advice->tested[i].kind, batch->kind) &&
            batch_of(&advice->tested[i]) > batch_of(batch))
            return true;
    return false;
}

/* "Use batch 32: 0.6% higher throughput than batch 16, mean of 12 configurations (…)", "Check GPU
 * 7, …: 3.2% lower …" */
static const char *choice_sentence(const struct making *making, const struct lab_claim *claim) {
    struct lab_arena *arena = making->arena;
    struct lab_claim chosen = *claim;
    bool batch = lab_str_equal(claim->kind, "recommend.batch");
    if (is_check(claim))
        return check_sentence(making, claim);
    const char *range = NULL;
    if (batch)
        chosen = *page_advised(making->page, claim, &range);
    const char *mean_of = chosen.mean_of;
    if (lab_str_starts(claim->kind, "recommend.")) {
        const char *use = lab_claim_within(claim->subject, arena);
        chosen.subject =
            lab_arena_printf(arena, "Use %s%s", use, batch ? except_words(making, use) : "");
        if (mean_of)
            chosen.reference = lab_arena_printf(arena, "%s, mean of %s", claim->reference, mean_of);
        chosen.mean_of = NULL;
    }
    LAB_AUTO(str, text);
    lab_str_add(&text, lab_claim_sentence(&chosen, arena));
    if (range)
        lab_str_printf(&text, ". By model: %s", range);
    if (batch && has_larger(making->page->advice, claim))
        lab_str_add(&text, ". No larger batch is faster on average");
    if (batch)
        add_exceptions(making, lab_claim_within(claim->subject, arena), &text);
    return lab_arena_strdup(arena, text.text);
}

/* The devices that one is compared with, as --device takes them: "cuda" of cuda:7, "sim:l40s-10".
 * NULL = no run has one of that title. */
static const char *selector_of(const struct making *making, const char *title) {
    const struct lab_study_info *study = making->digest ? making->digest->study : NULL;
    for (int i = 0; study && i < study->run_count; i++)
        for (int r = 0; r < study->runs[i].rank_count; r++) {
            const char *device = study->runs[i].ranks[r].device, *number = strrchr(device, ':');
            if (number && lab_str_equal(lab_run_device_title(device, making->arena), title))
                return lab_arena_strndup(making->arena, device, (size_t)(number - device));
        }
    return NULL;
}

/* What shows why a GPU is slow: where its runs were short, a load of minutes; else its state now.
 * NULL = it isn't a whole GPU, or none that is there. */
static const char *check_line(const struct making *making, const struct lab_claim *claim) {
    int gpu, length = 0;
    if (sscanf(claim->subject, "GPU %d%n", &gpu, &length) != 1 || claim->subject[length])
        return NULL;
    const char *selector = selector_of(making, claim->subject);
    if (selector && *told_of_peer(making, claim->subject, "brief"))
        return lab_arena_printf(making->arena, "gpulab check --level 3 --device %s", selector);
    return claim->simulated
               ? NULL
               : lab_arena_printf(making->arena,
                                  "nvidia-smi -i %d -q -d CLOCK,TEMPERATURE,PERFORMANCE", gpu);
}

/* Of two devices that differ for certain, which of them is at fault is open; NULL = they don't. */
static const char *two_devices(const struct making *making) {
    int count = 0;
    struct lab_claim *const *claims = lab_report_claims(making->page, making->arena, &count);
    for (int i = 0; i < count; i++)
        if (lab_str_equal(claims[i]->kind, "recommend.device") &&
            claims[i]->verdict == LAB_CLAIM_YES && fabs(claims[i]->effect) >= LAB_CLAIM_WORTH)
            return lab_arena_printf(making->arena, "Find out why the two differ: %s",
                                    lab_claim_sentence(claims[i], making->arena));
    return NULL;
}

/* A batch size that no other one beats on the mean is an answer, too; which models it isn't best
 * for belongs to it. */
static void add_kept(struct making *making, const struct lab_advice *advice) {
    const struct lab_claim *kept = NULL;
    bool known = true;
    for (int i = 0; i < advice->tested_count; i++) {
        const char *range = NULL;
        const struct lab_claim *claim = &advice->tested[i];
        if (!lab_str_equal(claim->kind, "recommend.batch"))
            continue;
        claim = page_advised(making->page, claim, &range);
        bool yes = claim->verdict == LAB_CLAIM_YES;
        known &= yes ? claim->effect < LAB_CLAIM_WORTH
                     : claim->verdict == LAB_CLAIM_NO && claim->bound < LAB_CLAIM_WORTH;
        kept = claim;
    }
    if (!kept || !known)
        return;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "Keep %s%s: no other batch size gains 1%% or more%s%s", kept->reference,
                   except_words(making, kept->reference), kept->mean_of ? " on average, over " : "",
                   kept->mean_of ? kept->mean_of : "");
    add_exceptions(making, kept->reference, &text);
    add(making, (struct page_action){.kind = PAGE_CHOOSE,
                                     .text = page_named(making->names,
                                                        lab_arena_strdup(making->arena, text.text),
                                                        making->arena)});
}

static void add_choices(struct making *making, const struct lab_advice *advice) {
    struct lab_arena *arena = making->arena;
    add_kept(making, advice);
    for (int i = 0; i < advice->choice_count; i++) {
        const struct lab_claim *claim = &advice->choices[i];
        bool compile = lab_str_equal(claim->kind, "recommend.compile"), check = is_check(claim);
        const char *gains = gain(claim, arena),
                   *text = compile ? compile_words(making, &gains) : choice_sentence(making, claim);
        if (is_best(advice, i) && fabs(claim->effect) >= LAB_CLAIM_WORTH)
            add(making, (struct page_action){.kind = PAGE_CHOOSE,
                                             .text = page_named(making->names, text, arena),
                                             .command = compile ? COMPILE_LINE
                                                        : check ? check_line(making, claim)
                                                                : NULL,
                                             .gain = compile ? gains : NULL,
                                             .check = check});
    }
}

/* What follows from the analysis that answers the study's question, or the others' lines to
 * paste. */
static void add_followed(struct making *making, bool leading, bool minor) {
    bool first = true;
    for (int i = 0; i < making->page->analysis_count; i++) {
        const struct lab_analysis_result *result = making->page->analyses[i].result;
        bool tells = page_tells(&making->page->analyses[i]);
        bool follows = result && (result->command || (leading && result->action)) &&
                       (leading || !result->own_question);
        if (follows && (tells && first) == leading && (leading && result->minor) == minor)
            add(making, (struct page_action){.kind = PAGE_PASTE,
                                             .text = page_cut_words(result->action, making->arena),
                                             .command = result->command});
        bool own = result && leading && tells && first && result->minor == minor;
        for (int k = 0; own && result->others && result->others[k]; k++)
            add(making,
                (struct page_action){.kind = PAGE_PASTE,
                                     .text = page_cut_words(result->others[k], making->arena)});
        first &= !tells;
    }
}

static void find_further(struct making *making) {
    const struct lab_page *page = making->page;
    const struct lab_analysis_result *result = page_leading(page);
    making->tests = page->further ? page->tests : result ? result->tests : NULL;
    making->further = page->further ? page->further : result ? result->further : NULL;
}

/* --- what goes on with the study --- */

/* Why most of the failed runs failed, and what helps. */
static void add_failure(struct making *making) {
    const struct study_note *note = making->digest->failures.items;
    if (making->digest->failures.count == 0)
        return;
    const char *hint = study_hint(note, making->arena);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d run%s failed: %s%s%s", note->run_count, study_plural(note->run_count),
                   note->text, hint ? ". " : "", hint ? hint : "");
    if (text.text[text.length - 1] == '.')
        text.text[text.length - 1] = '\0';
    add(making, (struct page_action){.kind = PAGE_MEND,
                                     .text = lab_arena_strdup(making->arena, text.text)});
}

/* Keys that a line with more runs of each point can have, too; NULL = none, or they set how many
 * runs there are. */
static const char *joined_keys(const struct making *making) {
    bool apart = making->further && strstr(making->further, "experiment.repeat=");
    return apart ? NULL : making->further;
}

/* Those, and what the report warns of: as few iterations again would show as little. Most studies
 * count samples, and don't have the key; a longer duration gives more iterations, too. */
static const char *repeat_keys(const struct making *making) {
    const struct study_notes *warnings = &making->digest->warnings;
    const char *joined = joined_keys(making);
    bool few = false;
    for (int i = 0; i < warnings->count; i++)
        few |= warnings->items[i].kind == LAB_RUN_WARNING_FEW &&
               !lab_str_equal(warnings->items[i].run[0]->workload, "command");
    if (!few || (joined && (strstr(joined, "experiment.test.num_steps=") ||
                            strstr(joined, "experiment.duration="))))
        return joined;
    return lab_arena_printf(making->arena, "++experiment.test.num_steps=%d%s%s", STUDY_FEW_ADVISED,
                            joined ? " " : "", joined ? joined : "");
}

/* A line that runs the study again also tests what was left out. */
static void add_again(struct making *making, const char *text, bool quiet, const char *command) {
    if (joined_keys(making)) {
        text = lab_arena_printf(making->arena, "%s. %s", text, making->tests);
        making->further = NULL;
    }
    add(making, (struct page_action){.kind = PAGE_RUN,
                                     .text = text,
                                     .command = lab_arena_strdup(making->arena, command),
                                     .study = true,
                                     .quiet = quiet});
}

/* `untested`: the rest of the study doesn't answer its question. */
static void add_further(struct making *making, bool untested) {
    const struct lab_study_info *study = making->digest->study;
    LAB_AUTO(str, line);
    if (!making->further || !study->command || !*study->command)
        return;
    study_add_repeat_command(study, 0, making->further, &line);
    bool quiet = making->page && !making->page->simulated && page_is_busy(making->digest);
    bool follows = false;
    for (int i = 0; i < making->made.count; i++) {
        quiet &= !making->made.items[i].quiet; /* once */
        follows |= making->made.items[i].study;
    }
    const char *tests = follows ? lab_arena_printf(making->arena, "Then %s",
                                                   lab_claim_within(making->tests, making->arena))
                                : making->tests;
    add(making,
        (struct page_action){
            .kind = untested ? PAGE_RUN : PAGE_PASTE,
            .text = quiet ? lab_arena_printf(making->arena, "%s. %s", PAGE_QUIET, tests) : tests,
            .command = lab_arena_strdup(making->arena, line.text),
            .study = true,
            .quiet = quiet});
    making->further = NULL;
}

/* No metric was read, but a pattern would: it can be applied to the logs that are kept. */
static bool add_reread(struct making *making) {
    static const char before[] = LAB_NO_METRIC ": the pattern '";
    const struct study_notes *warnings = &making->digest->warnings;
    const char *folder = making->digest->study->folder, *end = NULL;
    const struct study_note *note = NULL;
    for (int i = 0; i < warnings->count && !end; i++) {
        note = &warnings->items[i];
        end = lab_str_starts(note->text, before) ? strstr(note->text, "' would read ") : NULL;
    }
    if (!end || !folder)
        return false;
    LAB_AUTO(str, line);
    lab_str_add(&line, "gpulab metrics reread ");
    lab_str_add_shell(&line, folder);
    lab_str_printf(&line, " --pattern '%.*s'", (int)(end - note->text - (long)strlen(before)),
                   note->text + strlen(before));
    add(making, (struct page_action){.kind = PAGE_RUN,
                                     .text = "Read its metrics from the logs",
                                     .command = lab_arena_strdup(making->arena, line.text)});
    return true;
}

/* Before anything that rests on values of a busy machine. */
static void add_quiet(struct making *making) {
    int count = making->made.count;
    if (count >= ACTIONS_MOST)
        return;
    memmove(making->made.items + 1, making->made.items, (size_t)count * sizeof *making->made.items);
    making->made.items[0] = (struct page_action){.kind = PAGE_RUN,
                                                 .text = PAGE_QUIET ". Then run the study again",
                                                 .command = making->digest->study->command,
                                                 .study = true,
                                                 .quiet = true};
    making->made.count++;
}

static void add_run(struct making *making, bool advised) {
    const char *command = making->digest->study->command;
    LAB_AUTO(str, next);
    LAB_AUTO(str, repeat);
    study_add_next(making->digest, &next);
    study_add_verdict_command(making->digest, repeat_keys(making), &repeat);
    if (!command || !*command)
        return;
    bool rereads = !next.length && add_reread(making); /* else another run would read none, too */
    bool resumes = next.length && !(making->page && page_is_elsewhere(making->page)),
         busy = page_is_busy(making->digest);
    struct page_repeat more =
        page_repeat_make(making->page, making->digest, resumes, making->arena);
    if (resumes && !more.text) {
        bool mended = making->digest->failures.count > 0;
        const char *finish = busy     ? PAGE_QUIET ". Then finish the study"
                             : mended ? "Then finish the study"
                                      : "Finish the study";
        add(making, (struct page_action){
                        .kind = PAGE_RESUME,
                        .text = lab_arena_printf(making->arena, "%s (%s)", finish, next.text),
                        .command = study_resume_command(making->digest->study, making->arena),
                        .study = true,
                        .quiet = busy});
    } else if (!resumes && repeat.length) {
        add_again(making,
                  lab_arena_printf(making->arena, "%sFor a verdict, 5 runs per point%s",
                                   busy ? PAGE_QUIET ". " : "",
                                   study_lacks_seed(making->digest->study) ? STUDY_SEED : ""),
                  busy, repeat.text);
    } else if (more.text && (resumes || !advised)) {
        lab_str_clear(&repeat);
        study_add_repeat_command(making->digest->study, more.runs, repeat_keys(making), &repeat);
        add_again(making, page_named(making->names, more.text, making->arena), more.quiet,
                  repeat.text);
    } else if (!resumes && !rereads && making->page &&
               page_is_disturbed(making->page, making->digest)) {
        add_quiet(making);
    }
}

/* Where nothing else is to be done: what shows all of it. */
static void add_show(struct making *making) {
    const struct lab_page *page = making->page;
    const char *folder = making->digest->study->folder, *text = "Nothing to change";
    bool untested = page && page_is_untested(page);
    bool tested = !untested && page && page->advice && page->advice->tested_count > 0;
    LAB_AUTO(str, line);
    if (!folder || making->digest->row_count == 0)
        return;
    lab_str_add(&line, "gpulab show ");
    lab_str_add_shell(&line, folder);
    lab_str_add(&line, tested ? " --claims" : page ? "" : " --runs");
    const char *differ = page && !untested ? two_devices(making) : NULL;
    int open = 0;
    for (int i = 0; tested && i < page->advice->tested_count; i++)
        open += page->advice->tested[i].verdict == LAB_CLAIM_INCONCLUSIVE;
    if (tested)
        text = open ? "No setting to change: no gain of 1% or more was found"
                    : "No setting to change: no gain of 1% or more in any comparison";
    if (differ)
        text = page_named(making->names, differ, making->arena);
    add(making,
        (struct page_action){.kind = PAGE_SHOW,
                             .text = untested ? "All values"
                                              : lab_arena_printf(making->arena, "%s. All %s", text,
                                                                 tested ? "comparisons" : "values"),
                             .command = lab_arena_strdup(making->arena, line.text)});
}

/* A slow device that is to be looked at comes first where the terminal's next step is that. */
static void put_first(struct page_actions *actions) {
    const struct page_action *next = page_actions_next(actions);
    if (!next || !next->check)
        return;
    struct page_action first = *next;
    memmove(actions->items + 1, actions->items,
            (size_t)(next - actions->items) * sizeof *actions->items);
    actions->items[0] = first;
}

struct page_actions page_actions_make(const struct lab_page *page,
                                      const struct study_digest *digest,
                                      const struct page_names *names, struct lab_arena *arena) {
    struct making making = {.page = page, .digest = digest, .names = names, .arena = arena};
    making.made.items = lab_arena_alloc(arena, ACTIONS_MOST, sizeof *making.made.items);
    if (page)
        add_followed(&making, true, false);
    bool bind = page && page->advice && asks_for_nodes(page);
    if (bind)
        add_bindings(&making, page->advice);
    if (page && page->advice)
        add_choices(&making, page->advice);
    if (page)
        add_followed(&making, false, false);
    if (page)
        add_followed(&making, true, true);
    if (page)
        find_further(&making);
    bool advised = false;
    for (int i = 0; i < making.made.count; i++)
        advised |= making.made.items[i].command || making.made.items[i].kind == PAGE_CHOOSE;
    if (digest) {
        add_failure(&making);
        if (page && page->further)
            add_further(&making, true);
        add_run(&making, advised);
        add_further(&making, false);
    }
    if (page && page->advice && !bind)
        add_bound(&making, page->advice);
    if (digest && making.made.count == 0)
        add_show(&making);
    put_first(&making.made);
    return making.made;
}

const struct page_action *page_actions_next(const struct page_actions *actions) {
    const struct page_action *next = NULL;
    for (int i = 0; i < actions->count; i++) {
        const struct page_action *action = &actions->items[i];
        if (action->kind == PAGE_RESUME || action->kind == PAGE_RUN)
            return action;
        bool first = !next || (action->check && !next->command && !next->check);
        if (action->kind != PAGE_MEND && first)
            next = action;
    }
    return next;
}
