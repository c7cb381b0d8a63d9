/*
 * page_state.c: how far a study's values can be trusted: whether runs are left, what disturbed
 * those that are done, and whether devices are parts of one CPU. Page, Markdown and terminal say
 * the same.
 */
#include "report/page/page_internal.h"

#include "model/reported_metric.h"

#include <stdlib.h>
#include <string.h>

#define AFFECTS        "; affects times and rates, not "
#define WARNINGS_NAMED 3 /* as many as the terminal has */

/* --- warnings --- */

/* What settings are compared by, where that is no time nor rate: "loss"; NULL = it is one. */
static const char *computed(const struct lab_page *page) {
    const struct lab_analysis_result *leading = page ? page_leading(page) : NULL;
    const struct lab_claim *claim = leading && leading->claim_count ? leading->claims : NULL;
    bool timed = !claim || !lab_str_starts(claim->kind, "metrics.") ||
                 strstr(claim->quantity, "/s") || strstr(claim->quantity, "time") ||
                 lab_str_equal(claim->quantity, "throughput");
    return timed ? NULL : claim->quantity;
}

bool page_concerns(const struct lab_page *page, const struct study_note *note) {
    return !lab_run_warning_is_of_times(note->kind) || !computed(page);
}

bool page_is_shown(const struct lab_page *page, const struct study_note *note) {
    return !page || !page->simulated || note->kind == LAB_RUN_WARNING_NO_METRIC ||
           note->kind == LAB_RUN_WARNING_FEW || note->kind == LAB_RUN_WARNING_OUTLIERS;
}

const char *page_warning(const struct lab_page *page, const struct study_digest *digest,
                         const struct study_note *note, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    study_add_note(digest, note, &text);
    if (!page_concerns(page, note)) {
        size_t advice = strcspn(text.text, ";");
        return lab_arena_printf(arena, "%.*s" AFFECTS "%s", (int)advice, text.text, computed(page));
    }
    return lab_arena_strdup(arena, text.text);
}

/* Runs that have any, each once. */
static int count_warned(const struct study_digest *digest, const struct lab_page *page,
                        struct lab_arena *arena) {
    bool *seen = lab_arena_alloc(arena, (size_t)digest->study->run_count + 1, sizeof *seen);
    int count = 0;
    for (int i = 0; i < digest->warnings.count; i++)
        for (int r = 0; r < digest->warnings.items[i].run_count &&
                        page_is_shown(page, &digest->warnings.items[i]);
             r++) {
            bool *own = &seen[digest->warnings.items[i].run[r] - digest->study->runs];
            count += !*own;
            *own = true;
        }
    return count;
}

void page_add_warnings(const struct lab_page *page, const struct study_digest *digest,
                       const char *where, struct lab_str *text, struct lab_arena *arena) {
    int ended = digest->state_counts[LAB_RUN_DONE] + digest->state_counts[LAB_RUN_FAILED];
    int shown = 0, warned = count_warned(digest, page, arena);
    if (warned == 0)
        return;
    int kinds = 0;
    for (int i = 0; i < digest->warnings.count; i++)
        kinds += page_is_shown(page, &digest->warnings.items[i]);
    if (kinds == 1)
        lab_str_printf(text, "%sWarnings: ", text->length ? " " : "");
    else
        lab_str_printf(text, "%sWarnings in %d of %d runs. ", text->length ? " " : "", warned,
                       ended);
    for (int i = 0; i < digest->warnings.count; i++) {
        const struct study_note *note = &digest->warnings.items[i];
        if (!page_is_shown(page, note) || shown++ >= WARNINGS_NAMED)
            continue;
        char *line = lab_arena_strdup(arena, page_warning(page, digest, note, arena));
        if (page_concerns(page, note))
            line[strcspn(line, ";")] = '\0';
        char *noise = page->simulated ? strstr(line, LAB_WARNS_OUTLIERS) : NULL;
        if (noise)
            noise[strlen(LAB_WARNS_OUTLIERS)] = '\0';
        line[0] = line[0] == 'a' && kinds > 1 ? 'A' : line[0];
        lab_str_printf(text, "%s. ", line);
    }
    if (shown > WARNINGS_NAMED)
        lab_str_printf(text, "%d more kind%s %s. ", shown - WARNINGS_NAMED,
                       study_plural(shown - WARNINGS_NAMED), where);
    text->text[--text->length] = '\0';
}

/* --- the headline's condition --- */

bool page_is_busy(const struct study_digest *digest) {
    int count = 0; /* a run has one of them at most */
    for (int i = 0; i < digest->warnings.count; i++)
        if (digest->warnings.items[i].kind == LAB_RUN_WARNING_LOAD)
            count += digest->warnings.items[i].run_count;
    return count > 0 && 2 * count >= digest->state_counts[LAB_RUN_DONE];
}

bool page_is_disturbed(const struct lab_page *page, const struct study_digest *digest) {
    return page_is_busy(digest) && !page->simulated && !computed(page) && !page_is_untested(page);
}

/* "Inconclusive after 33 of 80 runs on a busy machine", in place of the answer's first words. */
static struct page_state reopened(const char *opening, const char *runs, bool busy,
                                  struct lab_arena *arena) {
    return (struct page_state){
        lab_arena_printf(arena, "%s%s%s", opening, runs, busy ? " on a busy machine" : ""),
        strlen(opening), false};
}

struct page_state page_state(const struct lab_page *page, const struct study_digest *digest,
                             const char *answer, struct lab_arena *arena) {
    struct page_state none = {"", 0, false};
    if (!digest)
        return none;
    int left = digest->state_counts[LAB_RUN_PLANNED] + digest->state_counts[LAB_RUN_RUNNING];
    bool untested = page_is_untested(page), open = lab_str_starts(answer, PAGE_OPEN);
    bool busy = page_is_disturbed(page, digest);
    struct page_open counted = page_open_count(page, true);
    int n = counted.first ? counted.first->n : 0;
    bool undecided = counted.compared > 0 && counted.open == counted.compared;
    if (busy && n > 0 && (undecided || (open && n < LAB_CLAIM_RUNS_LEAST)))
        return (struct page_state){
            lab_arena_printf(arena, "No answer: %d run%s per point on a busy machine. ", n,
                             study_plural(n)),
            0, true};
    if ((left == 0 && !busy) || page_is_elsewhere(page))
        return none;
    const char *of = lab_arena_printf(arena, "%d of %d runs", digest->state_counts[LAB_RUN_DONE],
                                      digest->study->run_count),
               *after = left ? lab_arena_printf(arena, " after %s", of) : "";
    if (open || lab_str_starts(answer, PAGE_UNTESTED))
        return reopened(open ? PAGE_OPEN : PAGE_UNTESTED, after, busy, arena);
    if (untested)
        return none;
    return (struct page_state){lab_arena_printf(arena, "Provisional (%s%s%s): ", left ? of : "",
                                                left && busy ? ", " : "",
                                                busy ? "busy machine" : ""),
                               0, false};
}

/* --- devices --- */

const char *page_slices(const struct study_digest *digest, struct lab_arena *arena) {
    const char *first = NULL;
    bool several = false;
    for (int i = 0; digest && i < digest->study->run_count; i++)
        for (int k = 0; k < digest->study->runs[i].rank_count; k++) {
            const char *device = digest->study->runs[i].ranks[k].device;
            if (!device || !lab_str_starts(device, "cpu:") || !strchr(device, '/'))
                continue;
            first = first ? first : device;
            several |= strncmp(device, first, strcspn(first, "/") + 1) != 0;
        }
    const char *count = first ? strchr(first, '/') + 1 : "", *number = strchr(count, '.');
    const char *words = several
                            ? "Devices are slices of CPUs: those of a NUMA node share memory and "
                              "caches"
                            : "Devices are slices of one CPU: they share memory and caches";
    if (!first || !number)
        return first ? words : NULL;
    return lab_arena_printf(arena, "%s. %.*s.0 is the first of %ld", words, (int)(number - first),
                            first, strtol(count, NULL, 10));
}
