/* campaign_internal.h: what the files of campaign.h share. Nobody else includes it. */
#pragma once

#include "campaign/campaign.h"

/*
 * Reads a phase's `when` or one of its expectations. Phases and what they come after are known;
 * kinds must be declared by an analysis of studies, phases must come before `phase`, or be it where
 * `own` says so.
 */
int campaign_condition_read(const struct lab_campaign *campaign, int phase, bool own,
                            const struct lab_value *text, struct lab_arena *arena,
                            const struct lab_campaign_condition **ret_condition,
                            struct lab_err *err);

/* The analysis of studies that declares such claims; NULL = none does. */
const struct lab_analysis *campaign_analysis_of(const char *kind);

/* Adds the analyses that the condition asks about claims of that phase, each once. */
void campaign_condition_analyses(const struct lab_campaign *campaign,
                                 const struct lab_campaign_condition *condition, int phase,
                                 int asked, struct lab_arena *arena,
                                 const struct lab_analysis ***analyses, int *count);

/* Sums of a phase's studies. */
struct campaign_counts {
    int planned, done, failed, invalid;
    bool begun, ended;
    const char *error; /* of the first run that failed; NULL = none */
};
struct campaign_counts campaign_count(const struct lab_campaign *campaign, int phase,
                                      const struct lab_campaign_known *known);

/* experiment.hardware.KEY=[0,3] of these numbers, ascending. */
struct campaign_numbers { /* distinct, in the order in which they came */
    int64_t *items;
    int count;
};
void campaign_number_add(struct campaign_numbers *numbers, int64_t number, struct lab_arena *arena);
const char *campaign_number_word(const char *key, struct campaign_numbers *numbers,
                                 struct lab_arena *arena);

/* bisect.c: as lab_campaign_refine, of a study that bisects. */
const char *const *campaign_bisect(const struct lab_campaign *campaign, int phase, int study,
                                   const struct lab_campaign_known *known, struct lab_arena *arena,
                                   const char **ret_why);
