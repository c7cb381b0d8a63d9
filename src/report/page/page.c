/* page.c: the report as a whole: its first screen, and the order of what follows. */
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "base/list.h"

#include <ctype.h>
#include <string.h>

#define HERO_WIDTH     560 /* of the first screen's chart */
#define HERO_MAPS      6   /* panels of a map, in two rows; of other charts one row */
#define HERO_NARROW    2   /* columns of a map, of which three fit a row */
#define HERO_ROWS      16  /* of a map */
#define HERO_HALF      10  /* rows from which one panel fills it */
#define HEADLINE_MOST  160 /* characters of more than one sentence */
#define LEAD_SENTENCES 3
#define LEAD_MOST      330 /* characters of them */
#define SUBJECTS_SHOWN 3

/* One without parts has only said what it lacks. */
bool page_tells(const struct lab_page_analysis *analysis) {
    return analysis->result && analysis->result->answer && analysis->result->part_count > 0 &&
           !analysis->result->lacks;
}

const struct lab_analysis_result *page_leading(const struct lab_page *page) {
    for (int i = 0; i < page->analysis_count; i++)
        if (page_tells(&page->analyses[i]))
            return page->analyses[i].result;
    return NULL;
}

const struct lab_page_analysis *page_by_point(const struct lab_page *page) {
    for (int i = 0; i < page->analysis_count && !page->answer; i++)
        if (page_tells(&page->analyses[i]))
            return page->analyses[i].result->by_point ? &page->analyses[i] : NULL;
    return NULL;
}

const char *page_answer(const struct lab_page *page) {
    const struct lab_analysis_result *leading = page_leading(page);
    return page->answer ? page->answer : leading ? leading->answer : NULL;
}

bool page_is_untested(const struct lab_page *page) {
    const struct lab_analysis_result *leading = page_leading(page);
    return page->answer ? page->untested : leading && leading->untested;
}

bool page_is_elsewhere(const struct lab_page *page) {
    const struct lab_analysis_result *leading = page_leading(page);
    return page_is_untested(page) && (page->elsewhere || (leading && leading->command));
}

/* --- words --- */

/* The length of the first sentence, its full stop included; parentheses hold no end. */
static size_t sentence_length(const char *text) {
    int depth = 0;
    for (size_t i = 0; text[i]; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth <= 0 && text[i] == '.' && text[i + 1] == ' ' &&
            (isupper((unsigned char)text[i + 2]) || (i > 0 && text[i - 1] == ')')))
            return i + 1;
    }
    return strlen(text);
}

/* What to do comes in one or several sentences without a number's conditions: all of them. */
size_t page_headline_length(const char *text) {
    size_t end = sentence_length(text);
    while (text[end] && !memchr(text, '(', end)) {
        size_t next = sentence_length(text + end + 1);
        if (memchr(text + end + 1, '(', next) || end + 1 + next > HEADLINE_MOST)
            break;
        end += next + 1;
    }
    return end;
}

static const char *question(const struct page_build *build) {
    const struct lab_page *page = build->page;
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const char *name = page->study ? lab_study_info_title(page->study) : page->title;
    const char *asked = page->question;
    for (int i = 0; i < page->analysis_count && !asked; i++)
        if (page_tells(&page->analyses[i]))
            asked = page->analyses[i].summary;
    LAB_AUTO(str, text); /* that everything ran is an answer, too */
    lab_str_add(&text, name);
    if (build->digest) {
        const struct study_digest *digest = build->digest;
        int done = digest->state_counts[LAB_RUN_DONE];
        bool all = done > 1 && done == digest->study->run_count && !digest->invalid;
        lab_str_printf(&text, " · %s", all ? "All " : "");
        if (all)
            lab_str_printf(&text, "%d runs succeeded", done);
        else
            study_add_counts(digest->study, digest->state_counts, digest->invalid, &text);
    }
    if (asked)
        lab_str_printf(&text, " · %s", asked);
    return lab_arena_strdup(arena, text.text);
}

/* Claims of a kind behind this one that no run shows either; the last of them. */
static int count_alike(const struct lab_analysis_result *result, int first,
                       const struct lab_claim **ret_last) {
    int count = 0;
    for (int c = first + 1; c < result->claim_count; c++)
        if (result->claims[c].verdict == LAB_CLAIM_NOT_TESTED && !result->claims[c].unit &&
            lab_str_equal(result->claims[c].kind, result->claims[first].kind)) {
            *ret_last = &result->claims[c];
            count++;
        }
    return count;
}

/* What no run shows, a part for each kind of claim: "GPU 3, NUMA node 1 (local)". A parameter in a
 * unit that the runs don't determine is no gap of the study. */
static void add_untested(const struct lab_analysis_result *result, struct lab_arena *arena,
                         struct lab_str *text) {
    const char *kinds[SUBJECTS_SHOWN] = {NULL};
    int count = 0;
    for (int c = 0; c < result->claim_count && count < SUBJECTS_SHOWN; c++) {
        const struct lab_claim *claim = &result->claims[c];
        if (claim->verdict != LAB_CLAIM_NOT_TESTED || !claim->subject || claim->unit ||
            lab_list_find_text(kinds, count, claim->kind) >= 0)
            continue;
        const struct lab_claim *last = NULL;
        int more = count_alike(result, c, &last);
        bool named =
            claim->quantity && *claim->quantity && !lab_str_equal(claim->quantity, "throughput");
        lab_str_printf(text, "%s%s%s%s",
                       count ? "; " : "Not tested: ", named ? claim->quantity : "",
                       named ? " of " : "", lab_claim_subject(claim, arena));
        kinds[count++] = claim->kind;
        if (more == 1 && last->subject)
            lab_str_printf(text, " and %s", lab_claim_subject(last, arena));
        else if (more)
            lab_str_printf(text, " and %d more", more);
    }
    lab_str_add(text, count ? "." : "");
}

bool page_is_asked(const struct lab_page *page, const struct lab_page_analysis *analysis) {
    return page_tells(analysis) && (analysis->named || analysis->result == page_leading(page));
}

/* Whether `a` asks for more than `b`; what nobody runs counts least. */
static bool asks_more(const struct lab_claim *a, const struct lab_claim *b) {
    int own = lab_claim_runs(a), other = b ? lab_claim_runs(b) : 0;
    bool noisy = own > LAB_CLAIM_RUNS_MOST, other_noisy = other > LAB_CLAIM_RUNS_MOST;
    return !b || (noisy != other_noisy ? other_noisy : own > other);
}

static void count_open(const struct lab_claim *claim, struct page_open *made, int *estimates) {
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE;
    made->first = made->first ? made->first : claim;
    if (claim->unit) {
        *estimates += claim->verdict != LAB_CLAIM_NOT_TESTED;
        made->estimates |= open;
    } else {
        made->compared += claim->verdict != LAB_CLAIM_NOT_TESTED;
        made->single &= claim->n <= 1;
        if (open && asks_more(claim, made->most))
            made->most = claim;
    }
    made->open += open;
}

struct page_open page_open_count(const struct lab_page *page, bool asked) {
    struct page_open made = {.single = true};
    int estimates = 0;
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_page_analysis *analysis = &page->analyses[i];
        if (asked ? !page_is_asked(page, analysis) : !page_tells(analysis))
            continue;
        for (int c = 0; c < analysis->result->claim_count; c++)
            count_open(&analysis->result->claims[c], &made, &estimates);
    }
    made.compared += made.estimates ? estimates : 0;
    return made;
}

static const char *marked(const struct page_build *build, const struct lab_str *text, bool plain,
                          struct lab_arena *arena) {
    if (plain)
        return lab_arena_strdup(arena, text->text ? text->text : "");
    const char *kept = lab_arena_strdup(arena, text->text ? text->text : "");
    return lab_doc_escape(page_named(build->names, kept, arena), arena);
}

/* " (spread of iteration times)" where all that is open on the study's question is of one quantity
 * that isn't the main answer's. */
static const char *open_quantity(const struct lab_page *page, const struct lab_claim *main,
                                 struct lab_arena *arena) {
    const char *quantity = NULL;
    for (int i = 0; i < page->analysis_count; i++)
        for (int c = 0;
             page_is_asked(page, &page->analyses[i]) && c < page->analyses[i].result->claim_count;
             c++) {
            const struct lab_claim *claim = &page->analyses[i].result->claims[c];
            if (claim->verdict != LAB_CLAIM_INCONCLUSIVE)
                continue;
            if (!claim->quantity || (quantity && !lab_str_equal(quantity, claim->quantity)))
                return "";
            quantity = claim->quantity;
        }
    return !quantity || !*quantity || !main || lab_str_equal(quantity, main->quantity) ||
                   strstr(quantity, "throughput")
               ? ""
               : lab_arena_printf(arena, " (%s)", quantity);
}

/* "Inconclusive: 7 of 70 comparisons on the study's question, 3 of 50 others. The main answer isn't
 * among them." Of one run per point there is no interval that could decide any. */
static void add_open(const struct lab_page *page, bool plain, struct lab_str *text,
                     struct lab_arena *arena) {
    struct page_open all = page_open_count(page, false), asked = page_open_count(page, true);
    const char *quantity = open_quantity(page, asked.first, arena);
    const char *what = all.estimates ? "comparisons and estimates" : "comparisons";
    int others = all.compared - asked.compared, open = all.open - asked.open;
    if (all.open == 0 || (plain && all.single)) /* a terminal's table has its runs below it */
        return;
    lab_str_add(text, text->length ? " " : "");
    if (all.single) {
        lab_str_printf(text,
                       "Each point ran once: [none of the %d results](index.html#" PAGE_INCONCLUSIVE
                       ") has an interval over runs.",
                       all.open);
        return;
    }
    lab_str_printf(text, "Inconclusive: %s", plain ? "" : "[");
    if (asked.open == 0)
        lab_str_printf(text, "%d of %d other %s", open, others, what);
    else
        lab_str_printf(text, "%d of %d %s on the study's question%s", asked.open, asked.compared,
                       what, quantity);
    if (asked.open > 0 && open > 0)
        lab_str_printf(text, ", %d of %d others", open, others);
    lab_str_add(text, plain ? "." : "](index.html#" PAGE_INCONCLUSIVE ").");
    const char *answer = page_answer(page);
    if (!plain && !*quantity && asked.open > 0 && asked.first &&
        asked.first->verdict != LAB_CLAIM_INCONCLUSIVE && !strstr(answer, "nconclusive"))
        lab_str_add(text, " The main answer isn't among them.");
}

const char *page_limits(const struct page_build *build, const char *where,
                        struct lab_arena *arena) {
    const struct lab_page *page = build->page;
    bool plain = !where;
    LAB_AUTO(str, text);
    LAB_AUTO(str, rest);
    if (page_leading(page) && !page_is_untested(page))
        add_untested(page_leading(page), arena, &rest);
    lab_str_add(&text, marked(build, &rest, plain, arena));
    if (!page_is_untested(page)) /* else only what nobody asked for is open */
        add_open(page, plain, &text, arena);
    lab_str_clear(&rest);
    if (build->digest && where)
        page_add_warnings(page, build->digest, where, &rest, arena);
    lab_str_printf(&text, "%s%s", text.length && rest.length ? " " : "",
                   marked(build, &rest, plain, arena));
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

const char *page_measured(const struct page_build *build, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    LAB_AUTO(str, measured);
    LAB_AUTO(str, pairs);
    if (!build->digest)
        return NULL;
    study_add_measured(build->digest, &measured);
    if (measured.length)
        lab_str_printf(&text, "Measured: %s.", measured.text);
    study_add_pairs(build->digest, &pairs);
    if (pairs.length)
        lab_str_printf(&text, "%sPairs tested: %s.", text.length ? " " : "", pairs.text);
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

/* "Point: one combination of GPU, NUMA node and model (48). Comparison: …." and what models' names
 * mean; NULL = nothing to define. */
static const char *page_terms(const struct page_build *build, const char *limits) {
    const struct study_digest *digest = build->digest;
    struct lab_arena *arena = lab_doc_arena(build->doc);
    LAB_AUTO(str, text);
    LAB_AUTO(str, axes);
    if (!digest)
        return NULL;
    if (digest->row_count > 1)
        study_add_axes(digest, &axes);
    if (axes.length)
        lab_str_printf(&text,
                       strstr(axes.text, " and ") ? "Point: one combination of %s (%d points)."
                                                  : "Points differ by %s (%d points).",
                       axes.text, digest->row_count);
    if (axes.length && limits && strstr(limits, " comparisons"))
        lab_str_add(&text, " Comparison: of two points that differ in one setting, or averaged "
                           "over several such pairs.");
    bool repeated = false;
    for (int i = 0; i < digest->row_count; i++)
        repeated |= digest->rows[i].rate_count > 1;
    if (repeated)
        lab_str_printf(&text, "%sMean: geometric, over runs.", text.length ? " " : "");
    if (digest->study->names && *digest->study->names)
        lab_str_printf(&text, "%s%s", text.length ? " " : "", digest->study->names);
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

/* --- the first screen --- */

static void add_data(struct lab_doc *doc, const struct lab_page *page) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *map = lab_value_map(arena), *pictures = lab_value_list(arena);
    for (int i = 0; i < page->analysis_count; i++)
        for (int p = 0; p < page->analyses[i].plot_count; p++)
            if (page->analyses[i].plots[p].drawn)
                lab_value_append(
                    arena, pictures,
                    lab_value_string(arena, lab_arena_printf(arena, "%s/%s.png", page->folder,
                                                             page->analyses[i].plots[p].name)));
    lab_value_set_string(arena, map, "title", page->title);
    lab_value_set_string(arena, map, "question", page->question);
    lab_value_set_bool(arena, map, "simulated", page->simulated);
    lab_value_set_string(arena, map, "page", page->index);
    lab_value_set(arena, map, "pictures", pictures);
    lab_value_set_string(arena, map, "missing", page->missing);
    lab_doc_data(doc, NULL, map);
}

#define SLOW_NAMED 3

/* "GPU 7: 5.7% lower throughput than its peers (…)."; NULL = none is slower for certain by what is
 * worth a change, or the answer is about that. */
static const char *slow_devices(const struct lab_page *page, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int count = 0, slow = 0;
    struct lab_claim *const *claims = lab_report_claims(page, arena, &count);
    if (count > 0 && lab_str_equal(claims[0]->kind, "peers.device"))
        return NULL;
    for (int i = 0; i < count; i++) {
        if (!lab_str_equal(claims[i]->kind, "peers.device"))
            continue;
        const struct lab_claim *told =
            lab_words_told(claims[i], (const struct lab_claim *const *)claims, count);
        if (told->verdict == LAB_CLAIM_YES && told->effect <= -LAB_CLAIM_WORTH &&
            slow++ < SLOW_NAMED)
            lab_str_printf(&text, "%s%s.", slow > 1 ? " " : "", lab_claim_sentence(told, arena));
    }
    if (slow > SLOW_NAMED)
        lab_str_printf(&text, " %d more are slower than their peers.", slow - SLOW_NAMED);
    return slow ? lab_arena_strdup(arena, text.text) : NULL;
}

const char *page_verdict(const struct lab_page *page, const struct study_digest *digest,
                         const struct page_names *names, struct lab_arena *arena,
                         size_t *ret_headline) {
    if (digest && digest->nothing_valid)
        return NULL;
    const char *answer = page_cut_words(page_named(names, page_answer(page), arena), arena),
               *slow = page_named(names, slow_devices(page, arena), arena);
    size_t first = answer ? page_headline_length(answer) : 0;
    if (answer && slow) {
        answer = lab_arena_printf(arena, "%.*s %s%s", (int)first, answer, slow, answer + first);
        first += strlen(slow) + 1;
    }
    if (!answer)
        return NULL;
    const char *batch = page_named(names, page_batch(page, arena), arena);
    if (batch)
        answer = lab_arena_printf(arena, "%.*s %s%s", (int)first, answer, batch, answer + first);
    struct page_state state = page_state(page, digest, answer, arena);
    size_t length = strlen(state.words);
    *ret_headline = state.sentence ? length - 1 : first - state.replaced + length;
    return lab_arena_printf(arena, "%s%s", state.words, answer + state.replaced);
}

void page_add_answer(const struct page_build *build, const char *answer, size_t first) {
    size_t end = first;
    lab_doc_text(build->doc, LAB_DOC_ANSWER, "%.*s", (int)first, answer);
    for (int i = 0; i < LEAD_SENTENCES && answer[end]; i++) {
        size_t more = end + sentence_length(answer + end + 1) + 1;
        if (more - first > LEAD_MOST)
            break;
        end = more;
    }
    if (end > first)
        lab_doc_text(build->doc, LAB_DOC_SAYS, "%.*s", (int)(end - first - 1), answer + first + 1);
}

static void add_verdict(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    size_t headline;
    const char *answer =
        page_verdict(build->page, build->digest, build->names, lab_doc_arena(doc), &headline);
    LAB_AUTO(str, counts);
    if (!answer && build->digest) {
        study_add_answer(build->digest, INT32_MAX, true, &counts);
        counts.text[0] = (char)toupper((unsigned char)counts.text[0]);
        answer = page_cut_words(page_named(build->names, counts.text, lab_doc_arena(doc)),
                                lab_doc_arena(doc));
        headline = page_headline_length(answer);
    }
    lab_doc_text(doc, LAB_DOC_QUESTION, "%s", question(build));
    page_add_answer(build, answer ? answer : "No data to report.",
                    answer ? headline : strlen("No data to report."));
}

/* The first that has data, rather one that the screen has room for. */
static const struct lab_chart *first_chart(const struct lab_analysis_result *result) {
    const struct lab_chart *tall = NULL;
    for (int c = 0; c < result->chart_count; c++) {
        const struct lab_chart *chart = &result->charts[c];
        if (!lab_chart_has_data(chart))
            continue;
        if (!chart->panels[0].heat || chart->panels[0].y.name_count <= HERO_ROWS)
            return chart;
        tall = tall ? tall : chart;
    }
    return tall;
}

/* Whether the first panel has a place for each device. */
static bool shows_devices(const struct lab_chart *chart) {
    const struct lab_chart_axis *x = chart ? &chart->panels[0].x : NULL;
    return x && x->name_count > 0 && lab_str_starts(x->names[0], "GPU ");
}

/* Of the analysis that gives the verdict, or of the next one that has any; none where there is no
 * verdict to show. Where that analysis found nothing, the device that the headline names instead is
 * shown. */
static const struct lab_chart *hero(const struct lab_page *page, struct lab_arena *arena) {
    const struct lab_analysis_result *leading = page_leading(page);
    const struct lab_chart *chart = NULL;
    if (leading && leading->finding == LAB_ANALYSIS_FINDS_NOTHING && slow_devices(page, arena) &&
        !shows_devices(first_chart(leading)))
        for (int i = 0; i < page->analysis_count && !chart; i++)
            if (lab_str_equal(page->analyses[i].name, "peers") && page_tells(&page->analyses[i]))
                chart = first_chart(page->analyses[i].result);
    for (int i = 0; i < page->analysis_count && !page_is_untested(page) && !chart; i++)
        if (page_tells(&page->analyses[i]))
            chart = first_chart(page->analyses[i].result);
    return chart;
}

static void add_columns(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    bool none = build->digest && build->digest->nothing_valid;
    const struct lab_chart *chart =
        none || !page_answer(build->page) ? NULL : hero(build->page, lab_doc_arena(doc));
    if (chart) {
        lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_COLUMNS});
        lab_doc_only(doc, LAB_DOC_SCREEN);
        lab_doc_begin(doc,
                      (struct lab_doc_section){.look = LAB_DOC_CARD,
                                               .title = chart->title ? chart->title : chart->name});
        bool map = chart->panels[0].heat != NULL, tall = chart->panels[0].y.name_count > 5;
        int row = map && chart->panels[0].x.name_count <= HERO_NARROW ? HERO_MAPS / 2 : 2;
        int panels = map && !tall ? HERO_MAPS : map || chart->columns > 1 ? row : 1;
        if (map && chart->panels[0].y.name_count > HERO_HALF)
            panels = 1;
        page_add_chart(build, chart, HERO_WIDTH, panels);
        lab_doc_end(doc);
    }
    page_add_actions(build);
    if (chart)
        lab_doc_end(doc);
    lab_doc_only(doc, LAB_DOC_ALL);
}

static void add_small_print(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    const char *measured = page_measured(build, lab_doc_arena(doc));
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_page *page = build->page;
    LAB_AUTO(str, text);
    LAB_AUTO(str, when);
    LAB_AUTO(str, shared);
    if (measured) { /* without its full stop */
        const char *shown = lab_doc_escape(measured, arena);
        lab_str_printf(&text, "%.*s · ", (int)strlen(shown) - 1, shown);
    }
    if (build->digest) {
        const struct study_digest *digest = build->digest;
        study_add_shared(digest, &shared);
        if (shared.length)
            lab_str_printf(&text, "%s · ", lab_doc_escape(shared.text, arena));
        if (page->study->machine && *page->study->machine)
            lab_str_printf(&text, "%s · ", lab_doc_escape(page->study->machine, arena));
        study_add_when(digest, &when);
        if (when.length)
            lab_str_printf(&text, "%s · ", when.text);
        lab_str_printf(&text,
                       "gpulab %s · [runs.csv](runs.csv) · [study.db](../study.db) · "
                       "[results.json](../results.json)",
                       page->version ? page->version : "");
    } else {
        lab_str_printf(&text, "From %s", lab_doc_as_code(page->source, arena));
    }
    lab_str_add(&text, " · [best_practices.md](best_practices.md) · [report.md](report.md)");
    lab_doc_marked(doc, LAB_DOC_FAINT, "%s", text.text);
}

static void add_opening(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    const struct lab_page *page = build->page;
    lab_doc_only(doc, LAB_DOC_PAPER | LAB_DOC_SCREEN);
    const char *slices = page_slices(build->digest, lab_doc_arena(doc));
    if (slices) {
        lab_doc_only(doc, LAB_DOC_PAPER);
        lab_doc_text(doc, LAB_DOC_NOTE, "%s.", slices);
        lab_doc_only(doc, LAB_DOC_PAPER | LAB_DOC_SCREEN);
    }
    add_verdict(build);
    if (build->digest && build->digest->nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_NOTE, STUDY_NOTHING_VALID ".");
    add_columns(build);
    lab_doc_only(doc, LAB_DOC_PAPER | LAB_DOC_SCREEN);
    const char *limits = page_limits(build, "below", lab_doc_arena(doc));
    const char *terms = page_terms(build, limits);
    if (limits)
        lab_doc_marked(doc, LAB_DOC_LIMIT, "%s", limits);
    for (int i = 0; page->warnings && page->warnings[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s",
                     page_named(build->names, page->warnings[i], lab_doc_arena(doc)));
    add_small_print(build);
    if (terms)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s", terms);
    lab_doc_only(doc, LAB_DOC_ALL);
}

struct lab_doc *lab_page_doc(const struct lab_page *page, struct lab_arena *arena) {
    struct study_digest digest;
    struct page_build build = {.page = page, .doc = lab_doc_open(page->title, arena)};
    lab_doc_set_simulated(build.doc, page->simulated);
    if (page->study) {
        study_digest_init(&digest, page->study);
        build.digest = &digest;
    }
    lab_doc_set_page(build.doc, (struct lab_doc_page){.version = page->version,
                                                      .source = page->source,
                                                      .banner = page_slices(build.digest, arena),
                                                      .bytes_most = LAB_PAGE_BYTES_MOST});
    build.names = page_names_make(build.digest, arena);
    build.actions = page_actions_make(page, build.digest, build.names, arena);
    add_data(build.doc, page);
    add_opening(&build);
    page_add_evidence(&build);
    page_add_inconclusive(&build);
    page_add_method(&build);
    if (page->study)
        study_digest_release(&digest);
    return build.doc;
}

/* --- terminal --- */

int lab_page_add_answers(const struct lab_page *page, struct lab_doc *doc) {
    static const char *const words[] = {"", " (simulated)"};
    int count = 0;
    if (page->answer) {
        lab_doc_text(doc, LAB_DOC_ANSWER, "%s%s", page->answer, words[page->simulated]);
        count++;
    }
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_analysis_result *result = page->analyses[i].result;
        if (!page_tells(&page->analyses[i]))
            continue;
        if (count == 0)
            lab_doc_text(doc, LAB_DOC_ANSWER, "%s%s", result->answer, words[result->simulated]);
        if (count == 1)
            lab_doc_gap(doc);
        if (count > 0)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s", page->analyses[i].name, result->answer);
        count++;
    }
    for (int i = 0; page->warnings && page->warnings[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", page->warnings[i]);
    return count;
}
