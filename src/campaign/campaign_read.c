/* campaign_read.c: a campaign's file, checked as a whole before anything runs. */
#include "campaign/campaign_internal.h"

#include "base/list.h"
#include "base/option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the keys --- */

struct file {
    const char *title;
    struct lab_value *questions, *phases, *budget, *risks, *replaces, *side_by_side;
};

const struct lab_option lab_campaign_keys[] = {
    {"title", LAB_OPTION_STRING, offsetof(struct file, title), .help = "what it is about"},
    {"questions", LAB_OPTION_VALUE, offsetof(struct file, questions),
     .help = "a list: what the report answers, in this order"},
    {"phases", LAB_OPTION_VALUE, offsetof(struct file, phases),
     .help = "a list: studies that belong together"},
    {"budget", LAB_OPTION_VALUE, offsetof(struct file, budget),
     .help = "what all phases may take; those of low priority are dropped first"},
    {"risks", LAB_OPTION_VALUE, offsetof(struct file, risks), .help = "when to stop or to wait"},
    {"side_by_side", LAB_OPTION_VALUE, offsetof(struct file, side_by_side),
     .help = "true: phases whose devices and NUMA nodes are disjoint run at the same time; false: "
             "never; simulated ones do if not given"},
    {"replaces", LAB_OPTION_VALUE, offsetof(struct file, replaces),
     .help = "studies that it does the work of; --dry-run compares the number of runs"},
    {NULL},
};

struct question {
    const char *name, *ask, *analysis;
    struct lab_value *claims, *phases;
};

const struct lab_option lab_campaign_question_keys[] = {
    {"name", LAB_OPTION_STRING, offsetof(struct question, name), .help = "a short name"},
    {"ask", LAB_OPTION_STRING, offsetof(struct question, ask), .help = "the question"},
    {"analysis", LAB_OPTION_STRING, offsetof(struct question, analysis),
     .help = "whose result answers it, of all studies of its phases"},
    {"claims", LAB_OPTION_VALUE, offsetof(struct question, claims),
     .help = "kinds of claims that answer it; the analysis's first one if not given"},
    {"phases", LAB_OPTION_VALUE, offsetof(struct question, phases),
     .help = "names of the phases whose studies are pooled for it"},
    {NULL},
};

struct phase {
    const char *name, *goal, *priority;
    struct lab_value *after, *when, *studies, *gate, *expect;
};

static const char *const priorities[] = {"high", "medium", "low", NULL};

const struct lab_option lab_campaign_phase_keys[] = {
    {"name", LAB_OPTION_STRING, offsetof(struct phase, name), .help = "a short name"},
    {"goal", LAB_OPTION_STRING, offsetof(struct phase, goal), .help = "what it is for"},
    {"priority", LAB_OPTION_CHOICE, offsetof(struct phase, priority), .fallback = "medium",
     .choices = priorities, .help = "which runs first, and which the budget drops last"},
    {"after", LAB_OPTION_VALUE, offsetof(struct phase, after),
     .help = "names of phases that must have ended before"},
    {"when", LAB_OPTION_VALUE, offsetof(struct phase, when),
     .help = "a condition on claims of phases before it, such as numa.penalty > 5%"},
    {"studies", LAB_OPTION_VALUE, offsetof(struct phase, studies),
     .help = "a list: the words of 'gpulab run' for each study"},
    {"gate", LAB_OPTION_VALUE, offsetof(struct phase, gate),
     .help = "what it must reach, or phases after it don't run"},
    {"expect", LAB_OPTION_VALUE, offsetof(struct phase, expect),
     .help = "a map of expectations and conditions; the report compares them"},
    {NULL},
};

struct gate {
    struct lab_value *success, *valid;
};

const struct lab_option lab_campaign_gate_keys[] = {
    {"success", LAB_OPTION_VALUE, offsetof(struct gate, success),
     .help = "least share of runs that succeed, such as 95%"},
    {"valid", LAB_OPTION_VALUE, offsetof(struct gate, valid),
     .help = "least share of these with a valid result"},
    {NULL},
};

struct budget {
    double time_s;
    int64_t disk_bytes;
};

const struct lab_option lab_campaign_budget_keys[] = {
    {"time", LAB_OPTION_DURATION, offsetof(struct budget, time_s), .help = "of all studies"},
    {"disk", LAB_OPTION_SIZE, offsetof(struct budget, disk_bytes), .help = "of all studies"},
    {NULL},
};

struct risks {
    struct lab_value *failures;
    double temperature_c, wait_s;
};

const struct lab_option lab_campaign_risk_keys[] = {
    {"failures", LAB_OPTION_VALUE, offsetof(struct risks, failures),
     .help = "share of a phase's runs; if more fail, the phase is stopped"},
    {"temperature", LAB_OPTION_FLOAT, offsetof(struct risks, temperature_c), .min = 0, .max = 150,
     .unit = "°C", .help = "a study starts once all GPUs are cooler; 0 starts at once"},
    {"wait", LAB_OPTION_DURATION, offsetof(struct risks, wait_s), .fallback = "30min",
     .help = "at most, for that"},
    {NULL},
};

/* --- reading --- */

static int read_map(const struct lab_value *map, const char *what, const struct lab_option *table,
                    void *config, struct lab_arena *arena, struct lab_err *err) {
    lab_options_defaults(table, config, arena);
    if (!map)
        return 0;
    if (map->type != LAB_VALUE_MAP)
        return lab_value_err(map, err, "%s must be a map, not %s", what,
                             lab_value_type_name(map->type));
    for (int i = 0; i < map->count; i++)
        if (lab_options_set_value(table, config, arena, map->keys[i], map->items[i], err) < 0)
            return -1;
    return 0;
}

static int check_list(const struct lab_value *list, const char *what, const struct lab_value *place,
                      struct lab_err *err) {
    if (list && list->type == LAB_VALUE_LIST)
        return 0;
    return lab_value_err(list ? list : place, err, "%s must be a list", what);
}

/* 95% or 0.95. NULL = 0. */
static int read_share(const struct lab_value *value, const char *key, double *ret_share,
                      struct lab_err *err) {
    double share = lab_value_as_number(value);
    char *end;
    *ret_share = 0;
    if (!value)
        return 0;
    if (value->type == LAB_VALUE_STRING) {
        share = strtod(value->string, &end) / 100;
        share = end > value->string && lab_str_equal(end, "%") ? share : NAN;
    }
    if (!(share >= 0 && share <= 1))
        return lab_value_err(value, err, "%s must be a share, such as 95%%", key);
    *ret_share = share;
    return 0;
}

static bool is_name(const char *text) {
    return text && *text &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               strlen(text);
}

static int check_name(const struct lab_value *place, const char *what, const char *name,
                      struct lab_err *err) {
    if (is_name(name))
        return 0;
    return lab_value_err(place, err, "a %s needs a name of letters, digits, '_' and '-'%s%s", what,
                         name ? ", not " : "", name ? name : "");
}

/* The place of each name among the phases. */
static int find_phases(const struct lab_campaign *campaign, const struct lab_value *names,
                       const char *what, struct lab_arena *arena, const int **ret_phases,
                       int *ret_count, struct lab_err *err) {
    const char **all = lab_arena_alloc(arena, (size_t)campaign->phase_count + 1, sizeof *all);
    for (int i = 0; i < campaign->phase_count; i++)
        all[i] = campaign->phases[i].name;
    if (!names)
        return 0;
    if (check_list(names, what, names, err) < 0)
        return -1;
    int *phases = lab_arena_alloc(arena, (size_t)names->count + 1, sizeof *phases);
    for (int i = 0; i < names->count; i++) {
        const char *name = lab_value_as_text(names->items[i], "");
        int at = LAB_FIND(campaign->phases, campaign->phase_count, name, name);
        const char *nearest = at < 0 ? lab_str_nearest(name, all) : NULL;
        if (at < 0)
            return lab_value_err(names->items[i], err, "there is no phase '%s'%s%s%s", name,
                                 nearest ? "; did you mean '" : "", nearest ? nearest : "",
                                 nearest ? "'?" : "");
        phases[i] = at;
    }
    *ret_phases = phases;
    *ret_count = names->count;
    return 0;
}

/* --- studies --- */

struct refine {
    const char *refine, *claim;
    struct lab_value *study, *width;
    int64_t steps, runs;
};

static const char *const strategies[] = {"as_written", "eliminate", "bisect", NULL};

#define WIDTH 0.05 /* of a bisection, where none is given */

const struct lab_option lab_campaign_refine_keys[] = {
    {"refine", LAB_OPTION_CHOICE, offsetof(struct refine, refine), .choices = strategies + 1,
     .help = "eliminate: more runs of placements that are inconclusive; bisect: models next to the "
             "crossover"},
    {"claim", LAB_OPTION_STRING, offsetof(struct refine, claim),
     .help = "the kind of claims that it follows from, of phases before"},
    {"study", LAB_OPTION_VALUE, offsetof(struct refine, study),
     .help = "the words of 'gpulab run', to which the points are added"},
    {"width", LAB_OPTION_VALUE, offsetof(struct refine, width),
     .help = "of bisect: it ends once a model's compute time is this near to its transfer time; "
             "5% if not given"},
    {"steps", LAB_OPTION_INT, offsetof(struct refine, steps), .fallback = "4", .min = 1, .max = 16,
     .help = "of bisect: most studies"},
    {"runs", LAB_OPTION_INT, offsetof(struct refine, runs), .fallback = "200", .min = 1,
     .max = 100000, .help = "of bisect: at most, of all steps"},
    {NULL},
};

static int read_words(const struct lab_value *item, struct lab_arena *arena,
                      const char *const **ret_words, struct lab_err *err) {
    const char **words = NULL;
    int count = 0;
    if (item->type == LAB_VALUE_LIST) {
        for (int i = 0; i < item->count; i++) {
            if (item->items[i]->type != LAB_VALUE_STRING)
                return lab_value_err(item->items[i], err, "a study's words must be texts");
            LAB_ADD(words, count, arena) = item->items[i]->string;
        }
    } else {
        const char *text = lab_value_as_text(item, "");
        for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
            size_t length = strcspn(text, " ");
            LAB_ADD(words, count, arena) = lab_arena_strndup(arena, text, length);
            text += length;
        }
    }
    if (count == 0)
        return lab_value_err(item, err, "a study is missing: the words of 'gpulab run'");
    *ret_words = words;
    return 0;
}

/* {refine: eliminate, claim: numa.cell, study: numa_study} */
static int read_refine(const struct lab_value *item, struct lab_arena *arena,
                       struct lab_campaign_study *study, int64_t *ret_steps, struct lab_err *err) {
    struct refine raw = {0};
    if (read_map(item, "a study", lab_campaign_refine_keys, &raw, arena, err) < 0)
        return -1;
    if (!raw.refine || !raw.claim || !raw.study)
        return lab_value_err(item, err, "a study that refines needs refine, claim and study");
    study->strategy = (enum lab_campaign_strategy)lab_str_find(raw.refine, strategies);
    study->kind = raw.claim;
    study->analysis = campaign_analysis_of(raw.claim);
    if (!study->analysis)
        return lab_value_err(item, err, "no analysis makes a claim '%s'", raw.claim);
    bool bisects = study->strategy == LAB_CAMPAIGN_BISECT;
    if (bisects && !lab_str_equal(raw.claim, "crossover.model"))
        return lab_value_err(item, err, "bisect goes by claim: crossover.model, not %s", raw.claim);
    if (read_share(raw.width, "width", &study->width, err) < 0)
        return -1;
    study->width = raw.width ? study->width : WIDTH;
    study->runs = raw.runs;
    *ret_steps = bisects ? raw.steps : 1;
    return read_words(raw.study, arena, &study->words, err);
}

/* The study's name, with a number where the phase has it already. */
static const char *make_label(const struct lab_campaign_study *studies, int count,
                              const char *const *words, struct lab_arena *arena) {
    const char *name = "study";
    for (int i = 0; words && words[i]; i++)
        if (is_name(words[i]) && words[i][0] != '-') {
            name = words[i];
            break;
        }
    const char *label = name;
    for (int n = 2; LAB_FIND(studies, count, label, label) >= 0; n++)
        label = lab_arena_printf(arena, "%s_%d", name, n);
    return label;
}

static int read_studies(const struct lab_value *list, struct lab_arena *arena,
                        const struct lab_campaign_study **ret_studies, int *ret_count,
                        struct lab_err *err) {
    struct lab_campaign_study *studies = NULL;
    int count = 0;
    for (int i = 0; i < list->count; i++) {
        bool refines = list->items[i]->type == LAB_VALUE_MAP;
        struct lab_campaign_study study = {0};
        int64_t steps = 1;
        if ((refines ? read_refine(list->items[i], arena, &study, &steps, err)
                     : read_words(list->items[i], arena, &study.words, err)) < 0)
            return -1;
        for (study.step = 0; study.step < steps; study.step++) {
            study.label = make_label(studies, count, study.words, arena);
            LAB_ADD(studies, count, arena) = study;
        }
    }
    *ret_studies = studies;
    *ret_count = count;
    return 0;
}

/* --- phases --- */

/* All but what refers to other phases. */
static int read_phase(const struct lab_value *item, struct lab_campaign *campaign,
                      struct phase *ret_raw, struct lab_arena *arena,
                      struct lab_campaign_phase *phase, struct lab_err *err) {
    struct gate gate = {0};
    if (read_map(item, "a phase", lab_campaign_phase_keys, ret_raw, arena, err) < 0 ||
        check_name(item, "phase", ret_raw->name, err) < 0)
        return -1;
    if (LAB_FIND(campaign->phases, campaign->phase_count, name, ret_raw->name) >= 0)
        return lab_value_err(item, err, "two phases have the name '%s'", ret_raw->name);
    if (check_list(ret_raw->studies, "studies", item, err) < 0 ||
        read_studies(ret_raw->studies, arena, &phase->studies, &phase->study_count, err) < 0 ||
        read_map(ret_raw->gate, "gate", lab_campaign_gate_keys, &gate, arena, err) < 0 ||
        read_share(gate.success, "success", &phase->gate.success, err) < 0 ||
        read_share(gate.valid, "valid", &phase->gate.valid, err) < 0)
        return -1;
    phase->name = ret_raw->name;
    phase->goal = ret_raw->goal;
    phase->priority = (enum lab_campaign_priority)lab_str_find(ret_raw->priority, priorities);
    phase->first_study = campaign->study_count;
    campaign->study_count += phase->study_count;
    if (phase->study_count == 0)
        return lab_value_err(item, err, "phase %s has no study", phase->name);
    if (campaign->study_count > LAB_CAMPAIGN_STUDIES_MOST)
        return lab_value_err(item, err, "more than %d studies", LAB_CAMPAIGN_STUDIES_MOST);
    return 0;
}

/* What refines needs a phase before, whose claims it goes by. */
static int check_refined(const struct lab_campaign_phase *phase, const struct lab_value *item,
                         struct lab_err *err) {
    for (int s = 0; s < phase->study_count; s++)
        if (phase->studies[s].strategy != LAB_CAMPAIGN_AS_WRITTEN && phase->after_count == 0)
            return lab_value_err(item, err,
                                 "phase %s refines, and no phase comes before it; add 'after'",
                                 phase->name);
    return 0;
}

static int read_conditions(struct lab_campaign *campaign, int number, const struct phase *raw,
                           struct lab_arena *arena, struct lab_campaign_phase *phase,
                           struct lab_err *err) {
    const struct lab_value *map = raw->expect;
    phase->when_text = lab_value_as_text(raw->when, NULL);
    if (raw->when &&
        campaign_condition_read(campaign, number, false, raw->when, arena, &phase->when, err) < 0)
        return -1;
    if (map && map->type != LAB_VALUE_MAP)
        return lab_value_err(map, err, "expect must be a map of sentences and conditions");
    int count = map ? map->count : 0;
    struct lab_campaign_expectation *made = lab_arena_alloc(arena, (size_t)count + 1, sizeof *made);
    for (int i = 0; i < count; i++) {
        made[i].text = map->keys[i];
        if (campaign_condition_read(campaign, number, true, map->items[i], arena,
                                    &made[i].condition, err) < 0)
            return -1;
    }
    phase->expectations = made;
    phase->expectation_count = count;
    return 0;
}

/* Phases as they run: of those whose phases before are placed, by priority, then by the file. What
 * is left when none can be placed is a cycle. */
static int order_phases(struct lab_campaign *campaign, const struct lab_value *list,
                        struct lab_arena *arena, struct lab_err *err) {
    int count = campaign->phase_count, placed = 0;
    int *order = lab_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    bool *done = lab_arena_alloc(arena, (size_t)count + 1, sizeof *done);
    while (placed < count) {
        int best = -1;
        for (int i = 0; i < count; i++) {
            const struct lab_campaign_phase *phase = &campaign->phases[i];
            bool ready = !done[i];
            for (int k = 0; k < phase->after_count; k++)
                ready &= done[phase->after[k]];
            if (ready && (best < 0 || phase->priority < campaign->phases[best].priority))
                best = i;
        }
        if (best < 0)
            break;
        done[best] = true;
        order[placed++] = best;
    }
    campaign->order = order;
    if (placed == count)
        return 0;
    LAB_AUTO(str, names);
    int at = 0, first;
    while (done[at])
        at++;
    for (int step = 0; step < count; step++) /* behind so many steps it is in the cycle */
        for (int k = 0; k < campaign->phases[at].after_count; k++)
            if (!done[campaign->phases[at].after[k]]) {
                at = campaign->phases[at].after[k];
                break;
            }
    first = at;
    do {
        lab_str_printf(&names, "%s after ", campaign->phases[at].name);
        int k = 0;
        while (done[campaign->phases[at].after[k]])
            k++;
        at = campaign->phases[at].after[k];
    } while (at != first);
    return lab_value_err(list->items[first], err, "phases wait for each other: %s%s", names.text,
                         campaign->phases[first].name);
}

/* In the order of execution, each has those before it, and what comes before these. */
static void find_before(struct lab_campaign *campaign, struct lab_arena *arena) {
    int count = campaign->phase_count;
    bool *before = lab_arena_alloc(arena, (size_t)count * (size_t)count + 1, sizeof *before);
    for (int i = 0; i < count; i++) {
        int phase = campaign->order[i];
        for (int k = 0; k < campaign->phases[phase].after_count; k++) {
            int direct = campaign->phases[phase].after[k];
            before[phase * count + direct] = true;
            for (int p = 0; p < count; p++)
                before[phase * count + p] |= before[direct * count + p];
        }
    }
    campaign->before = before;
}

static int read_phases(const struct lab_value *list, struct lab_arena *arena,
                       struct lab_campaign *campaign, struct lab_err *err) {
    if (list->count == 0 || list->count > LAB_CAMPAIGN_PHASES_MOST)
        return lab_value_err(list, err, "1 to %d phases are needed", LAB_CAMPAIGN_PHASES_MOST);
    struct lab_campaign_phase *phases =
        lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *phases);
    struct phase *raw = lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *raw);
    campaign->phases = phases;
    for (int i = 0; i < list->count; i++) {
        if (read_phase(list->items[i], campaign, &raw[i], arena, &phases[i], err) < 0)
            return -1;
        campaign->phase_count++;
    }
    for (int i = 0; i < list->count; i++)
        if (find_phases(campaign, raw[i].after, "after", arena, &phases[i].after,
                        &phases[i].after_count, err) < 0)
            return -1;
    if (order_phases(campaign, list, arena, err) < 0)
        return -1;
    find_before(campaign, arena);
    for (int i = 0; i < list->count; i++)
        if (check_refined(&phases[i], list->items[i], err) < 0 ||
            read_conditions(campaign, i, &raw[i], arena, &phases[i], err) < 0)
            return -1;
    return 0;
}

bool lab_campaign_comes_before(const struct lab_campaign *campaign, int earlier, int phase) {
    return campaign->before[phase * campaign->phase_count + earlier];
}

/* --- questions --- */

static int read_kinds(const struct lab_value *list, const struct lab_analysis *analysis,
                      struct lab_arena *arena, const char *const **ret_kinds, struct lab_err *err) {
    if (!list)
        return 0;
    if (check_list(list, "claims", list, err) < 0)
        return -1;
    const char **kinds = lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *kinds);
    for (int i = 0; i < list->count; i++) {
        kinds[i] = lab_value_as_text(list->items[i], "");
        if (!lab_analysis_kind(analysis, kinds[i]))
            return lab_value_err(list->items[i], err, "%s makes no claim '%s'", analysis->name,
                                 kinds[i]);
    }
    *ret_kinds = list->count ? kinds : NULL;
    return 0;
}

static int read_question(const struct lab_value *item, const struct lab_campaign *campaign,
                         struct lab_arena *arena, struct lab_campaign_question *question,
                         struct lab_err *err) {
    struct question raw = {0};
    struct lab_err unknown = LAB_ERR_INIT;
    if (read_map(item, "a question", lab_campaign_question_keys, &raw, arena, err) < 0 ||
        check_name(item, "question", raw.name, err) < 0)
        return -1;
    if (!raw.ask || !raw.analysis || !raw.phases)
        return lab_value_err(item, err, "question %s needs ask, analysis and phases", raw.name);
    question->name = raw.name;
    question->ask = raw.ask;
    question->analysis = lab_analysis_find(raw.analysis, &unknown);
    if (!question->analysis)
        return lab_value_err(item, err, "%s", unknown.text);
    if (question->analysis->source != LAB_ANALYSIS_OF_STUDIES)
        return lab_value_err(item, err, "analysis %s is not about studies", raw.analysis);
    if (find_phases(campaign, raw.phases, "phases", arena, &question->phases,
                    &question->phase_count, err) < 0)
        return -1;
    return read_kinds(raw.claims, question->analysis, arena, &question->kinds, err);
}

static int read_questions(const struct lab_value *list, struct lab_arena *arena,
                          struct lab_campaign *campaign, struct lab_err *err) {
    if (!list)
        return 0;
    if (check_list(list, "questions", list, err) < 0)
        return -1;
    struct lab_campaign_question *questions =
        lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *questions);
    for (int i = 0; i < list->count; i++) {
        if (read_question(list->items[i], campaign, arena, &questions[i], err) < 0)
            return -1;
        if (LAB_FIND(questions, i, name, questions[i].name) >= 0)
            return lab_value_err(list->items[i], err, "two questions have the name '%s'",
                                 questions[i].name);
    }
    campaign->questions = questions;
    campaign->question_count = list->count;
    return 0;
}

/* --- the whole --- */

int lab_campaign_read(const struct lab_value *tree, const char *name, struct lab_arena *arena,
                      struct lab_campaign *ret_campaign, struct lab_err *err) {
    struct file file = {0};
    struct budget budget = {0};
    struct risks risks = {0};
    struct lab_campaign campaign = {.name = name, .side_by_side = -1};
    if (read_map(tree, "a campaign", lab_campaign_keys, &file, arena, err) < 0)
        return -1;
    if (!file.phases)
        return lab_err_set(err, LAB_ERR_USER, "campaign %s has no phases", name);
    if (check_list(file.phases, "phases", tree, err) < 0 ||
        read_map(file.budget, "budget", lab_campaign_budget_keys, &budget, arena, err) < 0 ||
        read_map(file.risks, "risks", lab_campaign_risk_keys, &risks, arena, err) < 0 ||
        read_share(risks.failures, "failures", &campaign.failures_most, err) < 0 ||
        read_phases(file.phases, arena, &campaign, err) < 0 ||
        read_questions(file.questions, arena, &campaign, err) < 0)
        return -1;
    if (file.replaces &&
        (check_list(file.replaces, "replaces", tree, err) < 0 ||
         read_studies(file.replaces, arena, &campaign.replaced, &campaign.replaced_count, err) < 0))
        return -1;
    if (file.side_by_side && file.side_by_side->type != LAB_VALUE_BOOL)
        return lab_value_err(file.side_by_side, err, "side_by_side: write true or false");
    if (file.side_by_side)
        campaign.side_by_side = lab_value_get_bool(tree, "side_by_side");
    campaign.title = file.title ? file.title : name;
    campaign.budget_s = budget.time_s;
    campaign.budget_bytes = budget.disk_bytes;
    campaign.temperature_c = risks.temperature_c;
    campaign.wait_s = risks.wait_s;
    *ret_campaign = campaign;
    return 0;
}
