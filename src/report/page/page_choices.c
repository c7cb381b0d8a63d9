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

/* Which models don't gain enough, by the analysis that says so; `ret_gain`: of those that do.
 * `ret_advised`: of each. */
static const char *compile_words(const struct page_making *making, const struct lab_claim *claim,
                                 const char **ret_gain,
                                 const struct lab_analysis_advised **ret_advised) {
    const char *names[4] = {NULL}, *text = "Compile the model";
    struct lab_analysis_advised *advised = lab_arena_alloc(making->arena, 1, sizeof *advised);
    double least = INFINITY, most = 0;
    int count = 0, rest = 0;
    struct lab_claim *const *claims = lab_report_claims(making->page, making->arena, &count);
    advised->claim = *claim;
    *ret_advised = advised;
    for (int i = 0; i < count; i++) {
        if (!lab_str_equal(claims[i]->kind, "compile.model"))
            continue;
        struct lab_claim model = *claims[i];
        model.subject =
            lab_arena_strndup(making->arena, model.subject, strcspn(model.subject, ","));
        LAB_ADD(advised->models, advised->model_count, making->arena) = model;
        if (claims[i]->verdict == LAB_CLAIM_YES && claims[i]->effect >= LAB_CLAIM_WORTH) {
            least = fmin(least, claims[i]->effect);
            most = fmax(most, claims[i]->effect);
        } else if (rest++ < 3) {
            names[rest - 1] = model.subject;
        }
    }
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    if (rest > 3)
        text = lab_arena_printf(making->arena,
                                "%s, but not %d models (no throughput gain of 1%% or more found)",
                                text, rest);
    else if (rest)
        text = lab_arena_printf(making->arena,
                                "%s, but not %s (no throughput gain of 1%% or more found)", text,
                                list.text);
    if (most > least)
        *ret_gain = lab_words_range(least, most, making->arena);
    return text;
}

#define EXCEPTIONS_NAMED 4

/* Of `advised` on a model; NULL = it is none. */
static const char *exception_model(const struct lab_claim *claim, const char *advised) {
    const char *model = strchr(claim->subject, ',');
    return model && lab_str_equal(claim->reference, advised) ? model + 2 : NULL;
}

enum except_form {
    EXCEPT_BRIEF,  /* "32 for vit32x6x512; 64 for vit16x8x768" */
    EXCEPT_WITHIN, /* "32 for vit32x6x512, +5.5% [5.2, 5.7]", for parentheses */
    EXCEPT_APART, /* "32 for vit32x6x512 (+5.5% [5.2, 5.7]); 64 for vit16x8x768 (…; 5 runs each)" */
};

/* Models for which another batch beats the advised one, each once; "" = it is best for all. */
static const char *except_words(const struct lab_page *page, const char *advised,
                                enum except_form form, struct lab_arena *arena) {
    const char **models = NULL;
    const struct lab_claim *last = NULL;
    int count = 0;
    LAB_AUTO(str, text);
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        for (int c = 0; result && c < result->exception_count; c++) {
            const struct lab_claim *claim = &result->exceptions[c];
            const char *subject = claim->subject; /* "Batch 32, vit32x6x512" */
            const char *model = exception_model(claim, advised);
            if (!model || lab_list_find_text(models, count, model) >= 0)
                continue;
            LAB_ADD(models, count, arena) = model;
            if (count > EXCEPTIONS_NAMED)
                continue;
            const char *value = model - 2;
            while (value > subject && value[-1] != ' ')
                value--;
            lab_str_printf(&text, "%s%.*s for %s", last ? "; " : "", (int)(model - 2 - value),
                           value, model);
            last = claim;
            const char *effect = lab_claim_effect(claim, arena);
            if (form == EXCEPT_WITHIN)
                lab_str_printf(&text, ", %s", effect);
            else if (form == EXCEPT_APART)
                lab_str_printf(&text, " (%s)", effect);
        }
    }
    if (last && form == EXCEPT_APART) { /* within the last parentheses */
        text.text[--text.length] = '\0';
        lab_str_printf(&text, "; %d runs each)", last->n);
    }
    if (count > EXCEPTIONS_NAMED)
        lab_str_printf(&text, "; %d more", count - EXCEPTIONS_NAMED);
    return text.length ? lab_arena_strdup(arena, text.text) : "";
}

const struct lab_claim *page_advised(const struct lab_page *page, const struct lab_claim *claim,
                                     const struct lab_analysis_advised **ret_advised) {
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        for (int c = 0; result && c < result->advised_count; c++) {
            const struct lab_analysis_advised *own = &result->advised[c];
            if (lab_str_equal(own->claim.kind, claim->kind) &&
                lab_str_equal(own->claim.subject, claim->subject) &&
                lab_str_equal(own->claim.reference, claim->reference)) {
                *ret_advised = own;
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

/* "Use batch 16 (32 for vit16x8x768, +1.9% [1.6, 2.3]): 0 to +60.1% over batch 4, by model (6
 * configurations, 5 runs each)"; where all gain alike "Use batch 16: 18.9% higher
 * throughput than batch 4, mean of 6 configurations (…)" */
static const char *batch_sentence(const struct page_making *making, const struct lab_claim *claim,
                                  const struct lab_analysis_advised **ret_advised) {
    struct lab_arena *arena = making->arena;
    const struct lab_analysis_advised *advised = NULL;
    struct lab_claim chosen = *page_advised(making->page, claim, &advised);
    *ret_advised = advised;
    const char *use = lab_claim_within(claim->subject, arena),
               *except = except_words(making->page, use, EXCEPT_WITHIN, arena);
    chosen.subject = *except ? lab_arena_printf(arena, "Use %s (%s)", use, except)
                             : lab_arena_printf(arena, "Use %s", use);
    if (chosen.mean_of)
        chosen.reference =
            lab_arena_printf(arena, "%s, mean of %s", claim->reference, chosen.mean_of);
    LAB_AUTO(str, text);
    if (advised && advised->range)
        lab_str_printf(&text, "%s: %s over %s, by model (%s%s%d runs each)", chosen.subject,
                       advised->range, claim->reference, chosen.mean_of ? chosen.mean_of : "",
                       chosen.mean_of ? ", " : "", chosen.n);
    chosen.mean_of = NULL;
    if (!text.length)
        lab_str_add(&text, lab_claim_sentence(&chosen, arena));
    if (!*except && has_larger(making->page->advice, claim))
        lab_str_add(&text, ". No model is shown to gain 1% or more from a larger batch");
    return lab_arena_strdup(arena, text.text);
}

/* "Check GPU 7, …: 3.2% lower …" */
static const char *choice_sentence(const struct page_making *making, const struct lab_claim *claim,
                                   const struct lab_analysis_advised **ret_advised) {
    struct lab_arena *arena = making->arena;
    struct lab_claim chosen = *claim;
    if (lab_str_equal(claim->kind, "recommend.batch"))
        return batch_sentence(making, claim, ret_advised);
    if (lab_str_starts(claim->kind, "recommend.")) {
        chosen.subject = lab_arena_printf(arena, "Use %s", lab_claim_within(claim->subject, arena));
        if (chosen.mean_of)
            chosen.reference =
                lab_arena_printf(arena, "%s, mean of %s", claim->reference, chosen.mean_of);
        chosen.mean_of = NULL;
    }
    return lab_claim_sentence(&chosen, arena);
}

/* The claim whose reference no other batch beats on the mean; NULL = one does, or that is open. */
static const struct lab_claim *find_kept(const struct lab_page *page,
                                         const struct lab_advice *advice) {
    const struct lab_claim *kept = NULL;
    bool known = true;
    for (int i = 0; i < advice->tested_count; i++) {
        const struct lab_analysis_advised *advised = NULL;
        const struct lab_claim *claim = &advice->tested[i];
        if (!lab_str_equal(claim->kind, "recommend.batch"))
            continue;
        claim = page_advised(page, claim, &advised);
        bool yes = claim->verdict == LAB_CLAIM_YES;
        known &= yes ? claim->effect < LAB_CLAIM_WORTH
                     : claim->verdict == LAB_CLAIM_NO && claim->bound < LAB_CLAIM_WORTH;
        kept = claim;
    }
    return known ? kept : NULL;
}

const char *page_batch(const struct lab_page *page, struct lab_arena *arena) {
    bool asked = false;
    for (int i = 0; i < page->analysis_count; i++)
        asked |= lab_str_equal(page->analyses[i].name, "recommend") && page->analyses[i].named &&
                 page->analyses[i].result != page_leading(page);
    const struct lab_advice *advice = page->advice;
    const struct lab_claim *kept = asked && advice ? find_kept(page, advice) : NULL;
    const char *batch = kept ? kept->reference : NULL;
    for (int i = 0; asked && advice && i < advice->choice_count; i++)
        if (lab_str_equal(advice->choices[i].kind, "recommend.batch") &&
            advice->choices[i].effect >= LAB_CLAIM_WORTH)
            batch = lab_claim_within(advice->choices[i].subject, arena);
    if (!batch)
        return NULL;
    const char *except = except_words(page, batch, EXCEPT_BRIEF, arena);
    return lab_arena_printf(arena, "Use %s%s%s.", batch, *except ? "; " : "", except);
}

/* A batch size that no other one beats on the mean is an answer, too; which models it isn't best
 * for belongs to it. */
static void add_kept(struct page_making *making, const struct lab_advice *advice) {
    const struct lab_claim *kept = find_kept(making->page, advice);
    if (!kept)
        return;
    const char *except = except_words(making->page, kept->reference, EXCEPT_APART, making->arena),
               *text = lab_arena_printf(
                   making->arena,
                   "Keep %s%s%s%so other batch size gains 1%% or "
                   "more%s%s",
                   kept->reference, *except ? "; " : "", except, *except ? ". N" : ": n",
                   kept->mean_of ? " on average, over " : "", kept->mean_of ? kept->mean_of : "");
    page_add_action(making,
                    (struct page_action){.kind = PAGE_CHOOSE,
                                         .text = page_named(making->names, text, making->arena)});
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
        const struct lab_analysis_advised *advised = NULL;
        const char *gains = gain(claim, arena),
                   *text = compile ? compile_words(making, claim, &gains, &advised)
                                   : choice_sentence(making, claim, &advised);
        page_add_action(making, (struct page_action){.kind = PAGE_CHOOSE,
                                                     .text = page_named(making->names, text, arena),
                                                     .command = compile ? COMPILE_LINE : NULL,
                                                     .gain = compile ? gains : NULL,
                                                     .advised = advised});
    }
}
