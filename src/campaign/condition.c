/*
 * condition.c: conditions on claims: "numa.penalty@locality > 5% and not crossover.work". Truth has
 * three values: what is inconclusive is neither true nor false, and "and", "or" and "not" keep it
 * so unless the other side decides.
 */
#include "campaign/campaign_internal.h"

#include "base/list.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 32 /* of parentheses and nots */

enum node { NODE_CLAIM, NODE_NOT, NODE_AND, NODE_OR };

struct lab_campaign_condition {
    enum node node;
    const struct lab_campaign_condition *left, *right; /* right: of and, or */
    const char *kind;                                  /* of a claim */
    const struct lab_analysis *analysis;
    int phase;     /* -1 = all before; of an expectation, the phase itself if it names none */
    char sign;     /* '>' or '<'; 0 = its verdict */
    bool or_equal; /* >= or <= */
    double value;
};

/* --- reading --- */

struct reading {
    const struct lab_campaign *campaign;
    int phase;
    bool own;
    const struct lab_value *place;
    const char *at;
    int depth;
    struct lab_arena *arena;
    struct lab_err *err;
};

const struct lab_analysis *campaign_analysis_of(const char *kind) {
    for (int i = 0; lab_analyses[i]; i++)
        if (lab_analyses[i]->source == LAB_ANALYSIS_OF_STUDIES &&
            lab_analysis_kind(lab_analyses[i], kind))
            return lab_analyses[i];
    return NULL;
}

static int refuse_kind(struct reading *reading, const char *kind) {
    const char **all = NULL;
    int count = 0;
    for (int i = 0; lab_analyses[i]; i++)
        for (const struct lab_analysis_kind *k = lab_analyses[i]->kinds; k && k->name; k++)
            if (lab_analyses[i]->source == LAB_ANALYSIS_OF_STUDIES)
                LAB_ADD(all, count, reading->arena) = k->name;
    const char *nearest = all ? lab_str_nearest(kind, all) : NULL;
    return lab_value_err(reading->place, reading->err, "no analysis makes a claim '%s'%s%s%s", kind,
                         nearest ? " (did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?)" : "");
}

static void skip_blanks(struct reading *reading) {
    reading->at += strspn(reading->at, " \t\n");
}

/* Whether this word stands here, and not at the beginning of a longer one; goes behind it. */
static bool take_word(struct reading *reading, const char *word) {
    size_t length = strlen(word);
    skip_blanks(reading);
    if (strncmp(reading->at, word, length) != 0 || isalnum((unsigned char)reading->at[length]) ||
        (reading->at[length] && strchr("_.@", reading->at[length])))
        return false;
    reading->at += length;
    return true;
}

static int refuse_rest(struct reading *reading, const char *expected) {
    bool end = !*reading->at;
    return lab_value_err(reading->place, reading->err, "condition '%s': %s expected at %s%.40s%s",
                         lab_value_as_text(reading->place, ""), expected, end ? "its end" : "'",
                         reading->at, end ? "" : "'");
}

static int find_phase(struct reading *reading, const char *name, int *ret_phase) {
    const struct lab_campaign *campaign = reading->campaign;
    int at = LAB_FIND(campaign->phases, campaign->phase_count, name, name);
    bool before = at >= 0 && ((reading->own && at == reading->phase) ||
                              lab_campaign_comes_before(campaign, at, reading->phase));
    if (!before)
        return lab_value_err(reading->place, reading->err, "%s: %s", name,
                             at < 0 ? "there is no such phase"
                                    : "this phase doesn't come after it; add it to 'after'");
    *ret_phase = at;
    return 0;
}

static int read_number(struct reading *reading, struct lab_campaign_condition *condition) {
    char *end;
    skip_blanks(reading);
    condition->value = strtod(reading->at, &end);
    if (end == reading->at || !isfinite(condition->value))
        return refuse_rest(reading, "a number, such as 5%,");
    if (*end == '%') {
        condition->value /= 100;
        end++;
    }
    reading->at = end;
    return 0;
}

static int read_claim(struct reading *reading, struct lab_campaign_condition *condition) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    skip_blanks(reading);
    size_t length = strspn(reading->at, letters);
    if (length == 0)
        return refuse_rest(reading, "a kind of claim, such as numa.penalty,");
    condition->kind = lab_arena_strndup(reading->arena, reading->at, length);
    condition->analysis = campaign_analysis_of(condition->kind);
    condition->phase = reading->own ? reading->phase : -1;
    reading->at += length;
    if (!condition->analysis)
        return refuse_kind(reading, condition->kind);
    if (*reading->at == '@') {
        length = strcspn(++reading->at, " \t\n()<>=");
        const char *name = lab_arena_strndup(reading->arena, reading->at, length);
        reading->at += length;
        if (find_phase(reading, name, &condition->phase) < 0)
            return -1;
    }
    skip_blanks(reading);
    if (*reading->at != '<' && *reading->at != '>')
        return 0;
    condition->sign = *reading->at++;
    condition->or_equal = *reading->at == '=';
    reading->at += condition->or_equal;
    return read_number(reading, condition);
}

static int read_either(struct reading *reading, struct lab_campaign_condition **ret_condition);

static int read_term(struct reading *reading, struct lab_campaign_condition **ret_condition) {
    struct lab_campaign_condition *made = lab_arena_alloc(reading->arena, 1, sizeof *made);
    if (++reading->depth > DEPTH_MOST)
        return lab_value_err(reading->place, reading->err, "more than %d levels in a condition",
                             DEPTH_MOST);
    if (take_word(reading, "not")) {
        struct lab_campaign_condition *inner = NULL;
        if (read_term(reading, &inner) < 0)
            return -1;
        *made = (struct lab_campaign_condition){.node = NODE_NOT, .left = inner};
    } else if (*reading->at == '(') { /* behind the blanks, which take_word passed over */
        reading->at++;
        if (read_either(reading, &made) < 0)
            return -1;
        skip_blanks(reading);
        if (*reading->at != ')')
            return refuse_rest(reading, "')'");
        reading->at++;
    } else if (read_claim(reading, made) < 0) {
        return -1;
    }
    reading->depth--;
    *ret_condition = made;
    return 0;
}

/* Terms joined by `word`; "and" binds closer than "or". */
static int read_joined(struct reading *reading, enum node node,
                       struct lab_campaign_condition **ret_condition) {
    bool is_and = node == NODE_AND;
    struct lab_campaign_condition *left = NULL, *right = NULL;
    if ((is_and ? read_term(reading, &left) : read_joined(reading, NODE_AND, &left)) < 0)
        return -1;
    while (take_word(reading, is_and ? "and" : "or")) {
        if ((is_and ? read_term(reading, &right) : read_joined(reading, NODE_AND, &right)) < 0)
            return -1;
        struct lab_campaign_condition *both = lab_arena_alloc(reading->arena, 1, sizeof *both);
        *both = (struct lab_campaign_condition){.node = node, .left = left, .right = right};
        left = both;
    }
    *ret_condition = left;
    return 0;
}

static int read_either(struct reading *reading, struct lab_campaign_condition **ret_condition) {
    return read_joined(reading, NODE_OR, ret_condition);
}

int campaign_condition_read(const struct lab_campaign *campaign, int phase, bool own,
                            const struct lab_value *text, struct lab_arena *arena,
                            const struct lab_campaign_condition **ret_condition,
                            struct lab_err *err) {
    struct reading reading = {.campaign = campaign,
                              .phase = phase,
                              .own = own,
                              .place = text,
                              .at = lab_value_as_text(text, ""),
                              .arena = arena,
                              .err = err};
    struct lab_campaign_condition *made;
    if (!own && campaign->phases[phase].after_count == 0)
        return lab_value_err(text, err,
                             "phase %s has a condition and no phase before it: nothing is known "
                             "then; add 'after'",
                             campaign->phases[phase].name);
    if (read_either(&reading, &made) < 0)
        return -1;
    skip_blanks(&reading);
    if (*reading.at)
        return refuse_rest(&reading, "'and', 'or' or the end");
    *ret_condition = made;
    return 0;
}

/* --- judging --- */

static bool is_in_scope(const struct lab_campaign *campaign,
                        const struct lab_campaign_condition *condition, int asking, int phase) {
    return condition->phase >= 0 ? condition->phase == phase
                                 : lab_campaign_comes_before(campaign, phase, asking);
}

/* Of one claim: whether its effect is larger than the value for certain, sign apart. An effect
 * without interval is taken as it is. */
static enum lab_campaign_truth exceeds(const struct lab_claim *claim, double value, bool or_equal) {
    bool known = !isnan(claim->low) && !isnan(claim->high);
    double low = fabs(known ? claim->low : claim->effect),
           high = fabs(known ? claim->high : claim->effect);
    double most = fmax(low, high), least = fmin(low, high);
    if (known && claim->low < 0 && claim->high > 0)
        least = 0;
    if (claim->verdict == LAB_CLAIM_YES && (least > value || (or_equal && least == value)))
        return LAB_CAMPAIGN_TRUE;
    if (claim->verdict == LAB_CLAIM_YES)
        return most < value || (!or_equal && most == value) ? LAB_CAMPAIGN_FALSE
                                                            : LAB_CAMPAIGN_UNKNOWN;
    if (claim->verdict == LAB_CLAIM_NO) /* an estimate outside of what was run has no bound */
        return isnan(claim->bound) || claim->bound <= value ? LAB_CAMPAIGN_FALSE
                                                            : LAB_CAMPAIGN_UNKNOWN;
    if (claim->verdict == LAB_CLAIM_INCONCLUSIVE && known && most < value)
        return LAB_CAMPAIGN_FALSE;
    return LAB_CAMPAIGN_UNKNOWN;
}

static enum lab_campaign_truth judge_one(const struct lab_campaign_condition *condition,
                                         const struct lab_claim *claim) {
    if (condition->sign == '>')
        return exceeds(claim, condition->value, condition->or_equal);
    if (condition->sign == '<') /* its negation: below means that none reaches it */
        return exceeds(claim, condition->value, !condition->or_equal);
    return claim->verdict == LAB_CLAIM_YES  ? LAB_CAMPAIGN_TRUE
           : claim->verdict == LAB_CLAIM_NO ? LAB_CAMPAIGN_FALSE
                                            : LAB_CAMPAIGN_UNKNOWN;
}

static enum lab_campaign_truth negate(enum lab_campaign_truth truth) {
    return truth == LAB_CAMPAIGN_UNKNOWN ? truth
           : truth == LAB_CAMPAIGN_TRUE  ? LAB_CAMPAIGN_FALSE
                                         : LAB_CAMPAIGN_TRUE;
}

static void add_why(struct lab_str *why, const char *kind, const struct lab_claim *claim,
                    struct lab_arena *arena) {
    lab_str_add(why, why->length ? "; " : "");
    if (claim)
        lab_str_printf(why, "%s: %s", kind, lab_claim_sentence(claim, arena));
    else
        lab_str_printf(why, "%s: no run before it tests this", kind);
}

/* True where one claim is; unknown where none is and one might be. */
static enum lab_campaign_truth judge_claims(const struct lab_campaign *campaign,
                                            const struct lab_campaign_condition *condition,
                                            int asking, const struct lab_campaign_known *known,
                                            struct lab_arena *arena, struct lab_str *why) {
    enum lab_campaign_truth truth = LAB_CAMPAIGN_FALSE;
    const struct lab_claim *shown = NULL;
    int count = 0;
    for (int p = 0; p < campaign->phase_count; p++)
        for (int c = 0; is_in_scope(campaign, condition, asking, p) && c < known->phases[p].count;
             c++) {
            const struct lab_claim *claim = known->phases[p].items[c];
            if (!lab_str_equal(claim->kind, condition->kind) ||
                claim->verdict == LAB_CLAIM_NOT_TESTED) /* which says nothing */
                continue;
            enum lab_campaign_truth one = judge_one(condition, claim);
            bool decides = one == LAB_CAMPAIGN_TRUE && truth != LAB_CAMPAIGN_TRUE;
            bool opens = one == LAB_CAMPAIGN_UNKNOWN && truth == LAB_CAMPAIGN_FALSE;
            shown = !shown || decides || opens ? claim : shown;
            truth = decides || opens ? one : truth;
            count++;
        }
    add_why(why, condition->kind, shown, arena);
    if (count == 0)
        return LAB_CAMPAIGN_UNKNOWN;
    return condition->sign == '<' ? negate(truth) : truth;
}

static enum lab_campaign_truth judge(const struct lab_campaign *campaign,
                                     const struct lab_campaign_condition *condition, int asking,
                                     const struct lab_campaign_known *known,
                                     struct lab_arena *arena, struct lab_str *why) {
    if (condition->node == NODE_CLAIM)
        return judge_claims(campaign, condition, asking, known, arena, why);
    enum lab_campaign_truth left = judge(campaign, condition->left, asking, known, arena, why);
    if (condition->node == NODE_NOT)
        return negate(left);
    enum lab_campaign_truth right = judge(campaign, condition->right, asking, known, arena, why);
    enum lab_campaign_truth deciding =
        condition->node == NODE_AND ? LAB_CAMPAIGN_FALSE : LAB_CAMPAIGN_TRUE;
    if (left == deciding || right == deciding)
        return deciding;
    return left == LAB_CAMPAIGN_UNKNOWN ? left : right;
}

enum lab_campaign_truth lab_campaign_judge(const struct lab_campaign *campaign,
                                           const struct lab_campaign_condition *condition,
                                           int phase, const struct lab_campaign_known *known,
                                           struct lab_arena *arena, const char **ret_why) {
    LAB_AUTO(str, why);
    enum lab_campaign_truth truth = judge(campaign, condition, phase, known, arena, &why);
    *ret_why = lab_arena_strdup(arena, why.text);
    return truth;
}

/* --- which analyses --- */

static void add_once(const struct lab_analysis *analysis, struct lab_arena *arena,
                     const struct lab_analysis ***analyses, int *count) {
    for (int i = 0; i < *count; i++)
        if ((*analyses)[i] == analysis)
            return;
    LAB_ADD(*analyses, *count, arena) = analysis;
}

void campaign_condition_analyses(const struct lab_campaign *campaign,
                                 const struct lab_campaign_condition *condition, int phase,
                                 int asked, struct lab_arena *arena,
                                 const struct lab_analysis ***analyses, int *count) {
    if (!condition)
        return;
    if (condition->node == NODE_CLAIM) {
        if (is_in_scope(campaign, condition, phase, asked))
            add_once(condition->analysis, arena, analyses, count);
        return;
    }
    campaign_condition_analyses(campaign, condition->left, phase, asked, arena, analyses, count);
    campaign_condition_analyses(campaign, condition->right, phase, asked, arena, analyses, count);
}

int lab_campaign_asked(const struct lab_campaign *campaign, int phase, struct lab_arena *arena,
                       const struct lab_analysis *const **ret_analyses) {
    const struct lab_analysis **analyses = NULL;
    int count = 0;
    for (int p = 0; p < campaign->phase_count; p++) {
        const struct lab_campaign_phase *own = &campaign->phases[p];
        campaign_condition_analyses(campaign, own->when, p, phase, arena, &analyses, &count);
        for (int s = 0; s < own->study_count; s++)
            if (own->studies[s].analysis && lab_campaign_comes_before(campaign, phase, p))
                add_once(own->studies[s].analysis, arena, &analyses, &count);
        for (int i = 0; i < own->expectation_count; i++)
            campaign_condition_analyses(campaign, own->expectations[i].condition, p, phase, arena,
                                        &analyses, &count);
    }
    *ret_analyses = analyses;
    return count;
}
