/* page_choices.c: settings that gain, as actions: batch sizes, compiling, with the models that are
 * exceptions; and devices to check, in the order of the advice. */
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include "analysis/analysis_words.h"
#include "base/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_LINE "model = torch.compile(model)"

/* "+6.3%" */
static const char *gain(const struct lab_claim *claim, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_change(&text, claim->effect);
    return lab_arena_strdup(arena, text.text);
}

/* The best of its kind: of four batch sizes that pay off, one is chosen. */
static bool is_best(const struct lab_advice *advice, int index) {
    const struct lab_claim *claim = &advice->choices[index];
    for (int i = 0; i < advice->choice_count; i++)
        if (i != index && lab_str_equal(advice->choices[i].kind, claim->kind) &&
            !page_is_check(claim) && fabs(advice->choices[i].effect) > fabs(claim->effect))
            return false;
    return true;
}

/* Which models don't gain enough, by the analysis that says so; `ret_gain`: of those that do. */
static const char *compile_words(const struct page_making *making, const char **ret_gain) {
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
static const char *except_words(const struct page_making *making, const char *advised) {
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
static void add_exceptions(const struct page_making *making, const char *advised,
                           struct lab_str *text) {
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
static const char *choice_sentence(const struct page_making *making,
                                   const struct lab_claim *claim) {
    struct lab_arena *arena = making->arena;
    struct lab_claim chosen = *claim;
    bool batch = lab_str_equal(claim->kind, "recommend.batch");
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

/* A batch size that no other one beats on the mean is an answer, too; which models it isn't best
 * for belongs to it. */
static void add_kept(struct page_making *making, const struct lab_advice *advice) {
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
    page_add_action(
        making, (struct page_action){.kind = PAGE_CHOOSE,
                                     .text = page_named(making->names,
                                                        lab_arena_strdup(making->arena, text.text),
                                                        making->arena)});
}

void page_add_choices(struct page_making *making, const struct lab_advice *advice) {
    struct lab_arena *arena = making->arena;
    add_kept(making, advice);
    for (int i = 0; i < advice->choice_count; i++) {
        const struct lab_claim *claim = &advice->choices[i];
        bool compile = lab_str_equal(claim->kind, "recommend.compile");
        if (!is_best(advice, i) || fabs(claim->effect) < LAB_CLAIM_WORTH)
            continue;
        if (page_is_check(claim)) {
            page_add_action(making, page_check_device(making, claim));
            continue;
        }
        const char *gains = gain(claim, arena),
                   *text = compile ? compile_words(making, &gains) : choice_sentence(making, claim);
        page_add_action(making, (struct page_action){.kind = PAGE_CHOOSE,
                                                     .text = page_named(making->names, text, arena),
                                                     .command = compile ? COMPILE_LINE : NULL,
                                                     .gain = compile ? gains : NULL});
    }
}
