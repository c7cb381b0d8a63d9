/*
 * page_repeat.c: how often a study whose headline is open has to be run: as often as its spread
 * asks for. On a machine that is too noisy that is more than anybody runs, and it says so.
 */
#include "report/page/page_internal.h"

#include <string.h>

struct repeat {
    const struct lab_claim *claim; /* whose spread counts; NULL = none shows any */
    bool first;                    /* the headline is open, not just most comparisons */
    int open, compared;
    int n, needed, advised; /* runs per point: done, by the spread (0 = unknown), to be run */
};

/* Of a range of values, the open claim that compares its best with its worst; else the first of
 * all. */
static const struct lab_claim *headline_claim(const struct lab_page *page,
                                              const struct lab_claim *first) {
    const struct lab_analysis_result *result = page_leading(page);
    const char *answer = page_answer(page);
    if (!result || !answer || !first->reference || strstr(answer, first->reference))
        return first;
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        if (claim->verdict == LAB_CLAIM_INCONCLUSIVE && claim->reference && *claim->reference &&
            lab_str_equal(claim->subject, first->subject) && strstr(answer, claim->reference))
            return claim;
    }
    return first;
}

/* False = nothing is open, or more runs like these decide nothing. */
static bool find_repeat(const struct lab_page *page, struct repeat *ret_repeat) {
    struct page_open open = page ? page_open_count(page, true) : (struct page_open){0};
    bool first = open.first && open.first->verdict == LAB_CLAIM_INCONCLUSIVE;
    if (!(first || 2 * open.open > open.compared) || page_is_untested(page) ||
        (first && open.first->reason))
        return false;
    if (first)
        open.first = headline_claim(page, open.first);
    struct repeat made = {.claim = first ? open.first : open.most,
                          .first = first,
                          .open = open.open,
                          .compared = open.compared,
                          .n = open.first ? open.first->n : 0};
    made.needed = made.claim ? lab_claim_runs(made.claim) : 0;
    bool known = made.needed > made.n && made.needed <= LAB_CLAIM_RUNS_MOST;
    made.advised = known                              ? made.needed
                   : made.n < LAB_CLAIM_RUNS_LEAST    ? LAB_CLAIM_RUNS_LEAST
                   : 2 * made.n > LAB_CLAIM_RUNS_MOST ? LAB_CLAIM_RUNS_MOST
                                                      : 2 * made.n;
    *ret_repeat = made;
    return true;
}

/* "2 devices compared with 1 device, mean of 4 points" */
static const char *claim_name(const struct lab_claim *claim, struct lab_arena *arena) {
    bool against = claim->reference && *claim->reference;
    return lab_arena_printf(arena, "%s%s%s%s%s", lab_claim_within(claim->subject, arena),
                            against ? " compared with " : "", against ? claim->reference : "",
                            claim->mean_of ? ", mean of " : "",
                            claim->mean_of ? claim->mean_of : "");
}

/* With more runs, or on a quiet machine. `planned`: runs per point that don't decide it; 0 = the
 * study is over. */
static void add_text(const struct repeat *repeat, int planned, bool busy, struct lab_arena *arena,
                     struct lab_str *text) {
    bool noisy = repeat->needed > LAB_CLAIM_RUNS_MOST;
    if (noisy && !busy)
        lab_str_printf(text, "Quiet the machine, then run %d per point. ", repeat->advised);
    else if (noisy)
        lab_str_printf(text, PAGE_QUIET ". Then run %d per point. ", repeat->advised);
    else if (busy)
        lab_str_add(text, PAGE_QUIET ". ");
    lab_str_add(text, "Inconclusive");
    if (!repeat->first)
        lab_str_printf(text, " in %d of %d comparisons", repeat->open, repeat->compared);
    if (repeat->claim) /* whose spread the number of runs is from */
        lab_str_printf(text, " (%s%s)", repeat->first ? "" : "such as ",
                       claim_name(repeat->claim, arena));
    if (planned)
        lab_str_printf(text, ", which the planned %d runs per point can't change", planned);
    if (noisy)
        lab_str_printf(text, ": too noisy, at this spread more than %d runs per point are needed",
                       LAB_CLAIM_RUNS_MOST);
    else if (repeat->needed > repeat->n)
        lab_str_printf(text, ". %s%s", lab_claim_next(repeat->claim, arena),
                       busy ? " at this noise; fewer on a quiet machine" : "");
    else /* the spread would do: so few runs, or so many comparisons, don't */
        lab_str_printf(text, " with %d run%s per point: run %d", repeat->n,
                       repeat->n == 1 ? "" : "s", repeat->advised);
}

struct page_repeat page_repeat_make(const struct lab_page *page, const struct study_digest *digest,
                                    bool resumes, struct lab_arena *arena) {
    const struct lab_study_info *study = digest->study;
    struct repeat repeat;
    int planned = 0;
    for (int i = 0; i < study->run_count && resumes; i++)
        planned = study->runs[i].repeat >= planned ? study->runs[i].repeat + 1 : planned;
    if (!find_repeat(page, &repeat))
        return (struct page_repeat){0};
    if (resumes && (planned < 2 || repeat.advised <= planned))
        return (struct page_repeat){0};
    /* two runs say too little of the spread to give up on those that are left */
    if (resumes && repeat.n == 2)
        return (struct page_repeat){
            .text = lab_arena_printf(arena, "Then run %d per point (the study has %d)",
                                     repeat.advised, planned),
            .runs = repeat.advised};
    if (resumes &&
        (repeat.n < 2 || repeat.needed <= planned || digest->state_counts[LAB_RUN_FAILED] > 0))
        return (struct page_repeat){0};
    LAB_AUTO(str, text);
    bool busy = page_is_busy(digest);
    add_text(&repeat, planned, busy, arena, &text);
    return (struct page_repeat){.text = lab_arena_strdup(arena, text.text),
                                .runs = repeat.advised,
                                .quiet = busy,
                                .replaces = true};
}
