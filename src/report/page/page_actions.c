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

#define ACTIONS_MOST 512

void page_add_action(struct page_making *making, struct page_action action) {
    if (making->made.count < ACTIONS_MOST)
        making->made.items[making->made.count++] = action;
}

bool page_is_check(const struct lab_claim *claim) {
    return lab_str_starts(claim->kind, "peers.");
}

/* --- what claims advise --- */

/* " (GPU 7 is slower than its peers)" of devices that the line uses; "" = none. */
static const char *slow_words(const struct lab_advice *advice, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int i = 0; i < advice->line_count; i++)
        for (int c = 0; c < advice->choice_count; c++)
            if (page_is_check(&advice->choices[c]) &&
                lab_str_equal(advice->choices[c].subject, advice->lines[i].device) &&
                lab_list_find_text(names, count, advice->lines[i].device) < 0)
                LAB_ADD(names, count, arena) = advice->lines[i].device;
    if (count == 0)
        return "";
    return lab_arena_printf(arena, " (%s %s peers)", lab_words_devices(names, count, arena),
                            count == 1 ? "is slower than its" : "are slower than their");
}

bool page_ran_alone(const struct study_digest *digest) {
    for (int i = 0; digest && i < digest->row_count; i++)
        if (digest->rows[i].run[0]->rank_count > 1)
            return false;
    return digest && digest->row_count > 0;
}

/* "; GPU 3: local NUMA node 1 not tested" of lines to other nodes; "" = there are none. */
static const char *untested_words(const struct lab_advice *advice, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0, node = -1;
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].provisional) {
            LAB_ADD(names, count, arena) = advice->lines[i].device;
            node = advice->lines[i].local_node;
        }
    if (count == 0)
        return "";
    return count == 1
               ? lab_arena_printf(arena, "; %s: local NUMA node %d not tested", names[0], node)
               : lab_arena_printf(arena, "; %s: local NUMA nodes not tested",
                                  lab_words_devices(names, count, arena));
}

/* "0 to +12.5%; local NUMA node 1 not tested" */
static const char *gain_words(const struct lab_advice_line *line, struct lab_arena *arena) {
    const char *range = lab_words_range(line->least, line->most, arena);
    return line->provisional ? lab_arena_printf(arena, "%s; local NUMA node %d not tested", range,
                                                line->local_node)
                             : range;
}

static void add_bindings(struct page_making *making, const struct lab_advice *advice) {
    int before = making->made.count;
    const char *all = lab_arena_printf(
                   making->arena,
                   "Bind one process per GPU%s, which PROGRAM chooses by LOCAL_RANK%s%s",
                   slow_words(advice, making->arena),
                   page_ran_alone(making->digest) ? "; measured one GPU at a time" : "",
                   untested_words(advice, making->arena)),
               *one = NULL;
    if (advice->line_count > 0)
        one = lab_arena_printf(making->arena,
                               "Bind a single process (gain over %s by model%s; unbound: not "
                               "tested)",
                               advice->lines[0].gain.reference,
                               advice->lines[0].averaged ? ", mean of its settings" : "");
    if (advice->line_count > 1 && advice->all.torchrun)
        page_add_action(
            making,
            (struct page_action){.kind = PAGE_BIND, .text = all, .command = advice->all.torchrun});
    for (int i = 0; i < advice->line_count; i++)
        if (advice->lines[i].plain)
            page_add_action(
                making, (struct page_action){.kind = PAGE_BIND,
                                             .text = i == 0 ? one : NULL,
                                             .command = advice->lines[i].plain,
                                             .gain = gain_words(&advice->lines[i], making->arena)});
    const struct lab_advice_line *first = advice->lines;
    if (advice->line_count > 0 && making->made.count == before && first->missing)
        page_add_action(
            making,
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
static void add_bound(struct page_making *making, const struct lab_advice *advice) {
    struct lab_arena *arena = making->arena;
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < advice->line_count; i++) {
        least = fmin(least, advice->lines[i].least);
        most = fmax(most, advice->lines[i].most);
    }
    if (!(most >= LAB_CLAIM_WORTH))
        return;
    const struct lab_advice_line *first = advice->lines;
    const char *untested = untested_words(advice, arena);
    const char *who =
        advice->line_count > 1
            ? lab_arena_printf(arena, "%d GPUs to %s", advice->line_count,
                               *untested ? "the nearest NUMA node tested" : "their NUMA nodes")
            : lab_arena_printf(arena, "%s to NUMA node %d", first->device, first->numa_node);
    page_add_action(making, (struct page_action){
                                .kind = PAGE_BOUND,
                                .text = lab_arena_printf(
                                    arena,
                                    "Binding %s: %s throughput compared with %s, by model%s; "
                                    "unbound: not tested%s",
                                    who, lab_words_range(least, most, arena), first->gain.reference,
                                    advice->line_count > 1 && page_ran_alone(making->digest)
                                        ? ", measured one GPU at a time"
                                        : "",
                                    untested)});
}

/* What follows from the analysis that answers the study's question, or the others' lines to
 * paste. */
static void add_followed(struct page_making *making, bool leading, bool minor) {
    bool first = true;
    for (int i = 0; i < making->page->analysis_count; i++) {
        const struct lab_analysis_result *result = making->page->analyses[i].result;
        bool tells = page_tells(&making->page->analyses[i]);
        bool follows = result && (result->command || (leading && result->action)) &&
                       (leading || !result->own_question);
        if (follows && (tells && first) == leading && (leading && result->minor) == minor)
            page_add_action(
                making, (struct page_action){.kind = PAGE_PASTE,
                                             .text = page_cut_words(result->action, making->arena),
                                             .command = result->command});
        bool own = result && leading && tells && first && result->minor == minor;
        for (int k = 0; own && result->others && result->others[k]; k++)
            page_add_action(making, (struct page_action){
                                        .kind = PAGE_PASTE,
                                        .text = page_cut_words(result->others[k], making->arena)});
        first &= !tells;
    }
}

static void find_further(struct page_making *making) {
    const struct lab_page *page = making->page;
    const struct lab_analysis_result *result = page_leading(page);
    making->tests = page->further ? page->tests : result ? result->tests : NULL;
    making->further = page->further ? page->further : result ? result->further : NULL;
    making->further_first = page->further || (result && result->further_first);
}

/* --- what goes on with the study --- */

/* Why most of the failed runs failed, and what helps. */
static void add_failure(struct page_making *making) {
    const struct study_note *note = making->digest->failures.items;
    if (making->digest->failures.count == 0)
        return;
    const char *hint = study_hint(note, making->arena);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d run%s failed: %s%s%s", note->run_count, study_plural(note->run_count),
                   note->text, hint ? ". " : "", hint ? hint : "");
    if (text.text[text.length - 1] == '.')
        text.text[text.length - 1] = '\0';
    page_add_action(making,
                    (struct page_action){.kind = PAGE_MEND,
                                         .text = lab_arena_strdup(making->arena, text.text)});
}

/* Keys that a line with more runs of each point can have, too; NULL = none, or they set how many
 * runs there are. */
static const char *joined_keys(const struct page_making *making) {
    bool apart = making->further && strstr(making->further, "experiment.repeat=");
    return apart ? NULL : making->further;
}

/* Where points kept too few iterations for the study's question: what the next run tests, too. */
static const struct lab_analysis_result *too_short(const struct page_making *making) {
    const struct lab_analysis_result *result = making->page ? page_leading(making->page) : NULL;
    return result && result->longer > 1 ? result : NULL;
}

/* Those, and what the report warns of: as few iterations again would show as little. Most studies
 * count samples, and don't have the key; a longer duration gives more iterations, too. */
static const char *repeat_keys(const struct page_making *making) {
    const struct study_notes *warnings = &making->digest->warnings;
    const struct lab_analysis_result *brief = too_short(making);
    const char *joined = joined_keys(making),
               *longer = brief && !joined && making->digest->study->command
                             ? study_longer_key(making->digest->study, brief->longer, making->arena)
                             : NULL;
    bool few = false;
    if (longer)
        return longer;
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
static void add_again(struct page_making *making, enum page_action_kind kind, const char *text,
                      bool quiet, const char *command) {
    if (joined_keys(making)) {
        text = lab_arena_printf(making->arena, "%s. %s", text, making->tests);
        making->further = NULL;
    } else if (too_short(making)) {
        text = lab_arena_printf(making->arena, "%s. %s", text, too_short(making)->why_longer);
    }
    page_add_action(making,
                    (struct page_action){.kind = kind,
                                         .text = text,
                                         .command = lab_arena_strdup(making->arena, command),
                                         .study = true,
                                         .quiet = quiet});
}

/* `untested`: the rest of the study doesn't answer its question. */
static void add_further(struct page_making *making, bool untested) {
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
    page_add_action(
        making,
        (struct page_action){
            .kind = untested ? PAGE_RUN : PAGE_PASTE,
            .text = quiet ? lab_arena_printf(making->arena, "%s. %s", PAGE_QUIET, tests) : tests,
            .command = lab_arena_strdup(making->arena, line.text),
            .study = true,
            .quiet = quiet});
    making->further = NULL;
}

/* No metric was read, but a pattern would: it can be applied to the logs that are kept. */
static bool add_reread(struct page_making *making) {
    static const char before[] = LAB_NO_METRIC ": the pattern '";
    const struct study_notes *warnings = &making->digest->warnings;
    const char *folder = study_path(making->digest->study), *end = NULL;
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
    page_add_action(making,
                    (struct page_action){.kind = PAGE_RUN,
                                         .text = "Read its metrics from the logs",
                                         .command = lab_arena_strdup(making->arena, line.text)});
    return true;
}

/* Before anything that rests on values of a busy machine. */
static void add_quiet(struct page_making *making) {
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

static void add_run(struct page_making *making, bool advised) {
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
    if (resumes && !more.replaces) {
        bool mended = making->digest->failures.count > 0;
        const char *finish = busy     ? PAGE_QUIET ". Then finish the study"
                             : mended ? "Then finish the study"
                                      : "Finish the study";
        page_add_action(making,
                        (struct page_action){
                            .kind = PAGE_RESUME,
                            .text = lab_arena_printf(making->arena, "%s (%s)", finish, next.text),
                            .command = study_resume_command(making->digest->study, making->arena),
                            .study = true,
                            .quiet = busy});
        if (!more.text)
            return;
        lab_str_clear(&repeat);
        study_add_repeat_command(making->digest->study, more.runs, repeat_keys(making), &repeat);
        add_again(making, PAGE_PASTE, more.text, false, repeat.text);
    } else if (!resumes && repeat.length) {
        add_again(making, PAGE_RUN,
                  lab_arena_printf(making->arena, "%sFor a verdict, 5 runs per point%s",
                                   busy ? PAGE_QUIET ". " : "",
                                   study_lacks_seed(making->digest->study) ? STUDY_SEED : ""),
                  busy, repeat.text);
    } else if (more.text && (resumes || !advised)) {
        lab_str_clear(&repeat);
        study_add_repeat_command(making->digest->study, more.runs, repeat_keys(making), &repeat);
        add_again(making, PAGE_RUN, page_named(making->names, more.text, making->arena), more.quiet,
                  repeat.text);
    } else if (!resumes && !rereads && making->page &&
               page_is_disturbed(making->page, making->digest)) {
        add_quiet(making);
    }
}

/* How far comparisons without a difference reach, single models among them. */
static double reach_of(const struct page_making *making) {
    double most = 0;
    int count = 0;
    struct lab_claim *const *claims = lab_report_claims(making->page, making->arena, &count);
    for (int i = 0; i < count; i++)
        if (lab_str_starts(claims[i]->kind, "recommend.") ||
            lab_str_starts(claims[i]->kind, "peers."))
            most = lab_words_reach(most, claims[i]);
    return most;
}

/* "Any of GPUs 0–3 will do: no difference larger than 0.8% (any model: 2.0%). No other setting was
 * compared" where that is all; NULL = some device differs, or there is more to choose. */
static const char *any_device(const struct page_making *making) {
    const struct lab_advice *advice = making->page->advice;
    const char **names = NULL;
    double bound = 0;
    int count = 0;
    for (int i = 0; i < advice->tested_count; i++) {
        const struct lab_claim *claim = &advice->tested[i];
        if (!lab_str_starts(claim->kind, "peers.") || claim->verdict != LAB_CLAIM_NO)
            return NULL;
        if (!lab_str_equal(claim->kind, "peers.device"))
            continue;
        LAB_ADD(names, count, making->arena) = claim->subject;
        bound = fmax(bound, claim->bound);
    }
    if (count < 2)
        return NULL;
    return lab_arena_printf(
        making->arena, "Any of %s will do: no difference%s%s. No other setting was compared",
        lab_words_devices(names, count, making->arena), lab_claim_larger(bound, making->arena),
        lab_words_beyond(bound, reach_of(making), "model", making->arena));
}

/* "no gain of 1% or more was found"; of bounds above that "no difference larger than 2.0% was
 * found". */
static const char *no_gain(const struct page_making *making, bool open) {
    double most = open ? 0 : reach_of(making);
    return most < LAB_CLAIM_WORTH ? "no gain of 1% or more was found"
                                  : lab_arena_printf(making->arena, "no difference%s was found",
                                                     lab_claim_larger(most, making->arena));
}

/* Where nothing else is to be done: what shows all of it. */
static void add_show(struct page_making *making) {
    const struct lab_page *page = making->page;
    const char *folder = study_path(making->digest->study), *text = "Nothing to change";
    bool untested = page && page_is_untested(page);
    bool tested = !untested && page && page->advice && page->advice->tested_count > 0;
    LAB_AUTO(str, line);
    if (!folder || making->digest->row_count == 0)
        return;
    lab_str_add(&line, "gpulab show ");
    lab_str_add_shell(&line, folder);
    lab_str_add(&line, tested ? " --claims" : page ? "" : " --runs");
    const char *differ = page && !untested ? page_two_devices(making) : NULL;
    int open = 0;
    for (int i = 0; tested && i < page->advice->tested_count; i++)
        open += page->advice->tested[i].verdict == LAB_CLAIM_INCONCLUSIVE;
    if (tested)
        text = any_device(making);
    if (!text)
        text = lab_arena_printf(making->arena, "No setting to change: %s", no_gain(making, open));
    if (differ)
        text = page_named(making->names, differ, making->arena);
    bool nothing = untested && page && page->elsewhere;
    page_add_action(making,
                    (struct page_action){
                        .kind = PAGE_SHOW,
                        .finding = tested || nothing,
                        .text = nothing    ? "Nothing to do on this machine. All values"
                                : untested ? "All values"
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

/* What runs of a busy machine advise is to be confirmed by the quiet ones that are asked for. */
static void add_condition(struct page_making *making) {
    bool quiet = false;
    for (int i = 0; i < making->made.count; i++)
        quiet |= making->made.items[i].quiet;
    for (int i = 0; i < making->made.count && quiet; i++) {
        struct page_action *action = &making->made.items[i];
        bool advises = action->kind == PAGE_CHOOSE || action->kind == PAGE_PASTE ||
                       action->kind == PAGE_BIND || action->kind == PAGE_BOUND;
        if (advises && action->text && !action->study && !action->check)
            action->text = lab_arena_printf(making->arena, "If confirmed: %s",
                                            lab_claim_within(action->text, making->arena));
    }
}

struct page_actions page_actions_make(const struct lab_page *page,
                                      const struct study_digest *digest,
                                      const struct page_names *names, struct lab_arena *arena) {
    struct page_making making = {.page = page, .digest = digest, .names = names, .arena = arena};
    making.made.items = lab_arena_alloc(arena, ACTIONS_MOST, sizeof *making.made.items);
    if (page)
        find_further(&making);
    if (digest && page && !page->further && making.further_first)
        add_further(&making, false);
    if (page)
        add_followed(&making, true, false);
    bool bind = page && page->advice && asks_for_nodes(page);
    if (bind)
        add_bindings(&making, page->advice);
    if (page && page->advice)
        page_add_choices(&making, page->advice);
    if (page)
        add_followed(&making, false, false);
    if (page)
        add_followed(&making, true, true);
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
    add_condition(&making);
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
