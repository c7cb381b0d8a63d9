/* advise_write.c: advice for people and for programs. */
#include "advise/advise.h"

#include "base/str.h"

#include <math.h>

static const char *const state_names[] = {[LAB_ADVICE_WORTH] = "worth",
                                          [LAB_ADVICE_NOT_WORTH] = "not_worth",
                                          [LAB_ADVICE_UNDECIDED] = "undecided",
                                          [LAB_ADVICE_SAME_PLACE] = "same_place",
                                          [LAB_ADVICE_NOT_MEASURED] = "not_measured"};

static double farther_end(const struct lab_advice_line *line) {
    return fmax(fabs(line->low), fabs(line->high));
}

/* --- the answer --- */

static const struct lab_advice_line *most_worth(const struct lab_advice *list, int count,
                                                const struct lab_advice **ret_advice) {
    const struct lab_advice_line *most = NULL;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < list[i].count; k++) {
            const struct lab_advice_line *line = &list[i].lines[k];
            if (line->state != LAB_ADVICE_WORTH || (most && line->gain <= most->gain))
                continue;
            most = line;
            *ret_advice = &list[i];
        }
    return most;
}

const char *lab_advice_answer(const struct lab_advice *list, int count, struct lab_arena *arena) {
    const struct lab_advice *whose = NULL;
    const struct lab_advice_line *most = most_worth(list, count, &whose);
    if (most)
        return lab_arena_printf(arena, "Worth most: %s gains %.1f %% [%.1f, %.1f] on %s.",
                                most->why, 100 * most->gain, 100 * most->low, 100 * most->high,
                                whose->model);
    int same = 0, undecided = 0;
    double bound = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < list[i].count; k++) {
            const struct lab_advice_line *line = &list[i].lines[k];
            undecided += line->state == LAB_ADVICE_UNDECIDED;
            if (line->state != LAB_ADVICE_NOT_WORTH)
                continue;
            same++;
            bound = fmax(bound, farther_end(line));
        }
    if (same + undecided == 0)
        return "Nothing to choose from: each model was measured in one place only.";
    if (undecided > 0)
        return lab_arena_printf(arena,
                                "Nothing can be advised yet: %d of %d choices are undecided, since "
                                "one run each can't tell them apart.",
                                undecided, same + undecided);
    return lab_arena_printf(arena,
                            "Nothing is worth it: none of %d choice%s gains more than %.1f %% (at "
                            "95 %%).",
                            same, same == 1 ? "" : "s", 100 * bound + 0.05);
}

/* --- text --- */

static const char *gain_words(const struct lab_advice_line *line, struct lab_arena *arena) {
    switch (line->state) {
    case LAB_ADVICE_WORTH:
        return lab_arena_printf(arena, "%+.1f %% [%+.1f, %+.1f]: ", 100 * line->gain,
                                100 * line->low, 100 * line->high);
    case LAB_ADVICE_NOT_WORTH:
        return lab_arena_printf(arena,
                                "none larger than %.1f %%: ", 100 * farther_end(line) + 0.05);
    case LAB_ADVICE_UNDECIDED:
        return fabs(line->gain) < 0.0005
                   ? "no difference seen, undecided: "
                   : lab_arena_printf(arena, "%+.1f %%, undecided: ", 100 * line->gain);
    case LAB_ADVICE_SAME_PLACE:
    case LAB_ADVICE_NOT_MEASURED:
        break;
    }
    return "";
}

static const char *words_of(const struct lab_advice_line *line, bool pasted,
                            struct lab_arena *arena) {
    const char *own = pasted && line->setting ? "; set it in PROGRAM" : "";
    return lab_arena_printf(arena, "%s%s%s", gain_words(line, arena), line->why, own);
}

static void add_state(struct lab_doc *doc, const struct lab_advice *advice,
                      enum lab_advice_state state, const char *heading) {
    struct lab_arena *arena = lab_doc_arena(doc);
    bool advised = state != LAB_ADVICE_NOT_WORTH && state != LAB_ADVICE_UNDECIDED;
    const char *last = NULL;
    bool any = false;
    for (int i = 0; i < advice->count; i++) {
        const struct lab_advice_line *line = &advice->lines[i];
        if (line->state != state)
            continue;
        if (!any && heading) {
            lab_doc_gap(doc);
            lab_doc_text(doc, LAB_DOC_TITLE, "%s", heading);
        }
        any = true;
        /* a line to paste is never broken; what is said of it follows below. Several choices may
         * share one */
        const char *pasted = advised ? line->line : NULL;
        if (pasted && !lab_str_equal(pasted, last))
            lab_doc_code(doc, NULL, pasted);
        lab_doc_text(doc, pasted ? LAB_DOC_BELOW : LAB_DOC_CHOICE, "%s",
                     words_of(line, pasted != NULL, arena));
        last = pasted;
    }
    if (any && state == LAB_ADVICE_WORTH && advice->no_line)
        lab_doc_text(doc, LAB_DOC_CHOICE, "No line to paste: %s.", advice->no_line);
}

/* --- studies --- */

static bool has_study_before(const struct lab_advice *list, int at) {
    for (int i = 0; i < at; i++)
        if (lab_str_equal(list[i].study, list[at].study))
            return true;
    return false;
}

/* Each on a line of its own; returns how many there are. */
static int add_studies(struct lab_doc *doc, const struct lab_advice *list, int count) {
    int studies = 0;
    for (int i = 0; i < count; i++)
        if (!has_study_before(list, i)) {
            studies++;
            lab_doc_text(doc, LAB_DOC_WHOLE, "Study: %s%s", list[i].study,
                         list[i].simulated ? " (simulated)" : "");
        }
    return studies;
}

void lab_advice_add(struct lab_doc *doc, const struct lab_advice *list, int count) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_advice *whose = count > 0 ? &list[0] : NULL;
    most_worth(list, count, &whose);
    bool several = add_studies(doc, list, count) > 1;
    for (int i = 0; i < count; i++) {
        const struct lab_advice *advice = &list[i];
        lab_doc_gap(doc);
        lab_doc_text(doc, LAB_DOC_TITLE, "%s: %s", advice->model, advice->best);
        for (int state = LAB_ADVICE_WORTH; state <= LAB_ADVICE_UNDECIDED; state++)
            add_state(doc, advice, (enum lab_advice_state)state, NULL);
        if (several)
            lab_doc_code(doc, NULL, lab_arena_printf(arena, "from %s", advice->study));
    }
    if (!whose)
        return;
    add_state(doc, whose, LAB_ADVICE_SAME_PLACE,
              lab_arena_printf(arena, "The same place by other means, for %s", whose->model));
    add_state(doc, whose, LAB_ADVICE_NOT_MEASURED, "Not measured here");
    if (!whose->next)
        return;
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "To be surer of %s", whose->model);
    lab_doc_code(doc, NULL, whose->next);
}

/* --- for programs --- */

static struct lab_value *line_value(const struct lab_advice_line *line, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *interval = lab_value_null(arena);
    lab_value_set_string(arena, map, "line", line->line);
    lab_value_set_string(arena, map, "tool", line->tool);
    lab_value_set_string(arena, map, "choice", line->choice);
    lab_value_set_string(arena, map, "setting", line->setting);
    lab_value_set_string(arena, map, "why", line->why);
    lab_value_set_string(arena, map, "state", state_names[line->state]);
    lab_value_set_bool(arena, map, "measured", line->state <= LAB_ADVICE_UNDECIDED);
    lab_value_set_float(arena, map, "gain", line->gain);
    if (!isnan(line->low) && !isnan(line->high)) {
        interval = lab_value_map(arena);
        lab_value_set_float(arena, interval, "low", line->low);
        lab_value_set_float(arena, interval, "high", line->high);
        lab_value_set_float(arena, interval, "confidence", 0.95);
    }
    lab_value_set(arena, map, "gain_interval", interval);
    return map;
}

struct lab_value *lab_advice_value(const struct lab_advice *advice, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *lines = lab_value_list(arena);
    lab_value_set_string(arena, map, "model", advice->model);
    lab_value_set_string(arena, map, "study", advice->study);
    lab_value_set_string(arena, map, "best", advice->best);
    lab_value_set_string(arena, map, "answer", advice->answer);
    for (int i = 0; i < advice->count; i++)
        lab_value_append(arena, lines, line_value(&advice->lines[i], arena));
    lab_value_set(arena, map, "lines", lines);
    lab_value_set_string(arena, map, "no_line", advice->no_line);
    lab_value_set_string(arena, map, "next", advice->next);
    return map;
}
