/* page_devices.c: a device that is slower than its peers, as an action: what to look at, by what
 * was sampled, and a line that shows more. */
#include "report/page/page_internal.h"
#include "report/report_build.h"

#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What `peers` says of a device in a column of its table; "" = nothing. */
static const char *told_of_peer(const struct page_making *making, const char *device,
                                const char *key) {
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

/* The devices that one is compared with, as --device takes them: "cuda" of cuda:7, "sim:l40s-10".
 * NULL = no run has one of that title. */
static const char *selector_of(const struct page_making *making, const char *title) {
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
static const char *check_line(const struct page_making *making, const struct lab_claim *claim) {
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

/* Where nothing that was sampled explains a slow device, only the card itself is left to look
 * at: lower power follows from less work. Short runs show no heat, so they come first. */
struct page_action page_check_device(const struct page_making *making,
                                     const struct lab_claim *claim) {
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
    LAB_AUTO(str, why);
    if (*symptoms)
        lab_str_printf(&why, ". Symptom: %s", symptoms);
    if (unexplained && *brief)
        lab_str_printf(&why, ". Runs of at most %s show no heat", brief);
    if (unexplained && *alike)
        lab_str_printf(&why, ". What%s was sampled doesn't explain it: no difference in %s",
                       *symptoms ? " else" : "", alike);
    const char *what = page_named(making->names, lab_claim_sentence(&chosen, arena), arena),
               *rest = page_named(making->names, why.text ? why.text : "", arena);
    return (struct page_action){.kind = PAGE_CHOOSE,
                                .text = lab_arena_printf(arena, "%s%s", what, rest),
                                .first = strlen(what),
                                .command = check_line(making, claim),
                                .check = true};
}

const char *page_two_devices(const struct page_making *making) {
    int count = 0;
    struct lab_claim *const *claims = lab_report_claims(making->page, making->arena, &count);
    for (int i = 0; i < count; i++)
        if (lab_str_equal(claims[i]->kind, "recommend.device") &&
            claims[i]->verdict == LAB_CLAIM_YES && fabs(claims[i]->effect) >= LAB_CLAIM_WORTH)
            return lab_arena_printf(making->arena, "Find out why the two differ: %s",
                                    lab_claim_sentence(claims[i], making->arena));
    return NULL;
}
