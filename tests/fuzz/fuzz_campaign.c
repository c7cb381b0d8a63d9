/*
 * fuzz_campaign.c: a campaign's file is refused with words, or its phases can be scheduled: each
 * study has words, each condition is judged, and nothing that is unknown holds.
 * covers: src/campaign/campaign_read.c src/campaign/condition.c src/campaign/campaign_decide.c
 */
#include "base/yaml/yaml.h"
#include "campaign/campaign.h"
#include "folder.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *tree;
    struct lab_campaign campaign;
    struct lab_campaign_schedule schedule;
    if (lab_yaml_parse((const char *)data, size, "f.yaml", LAB_YAML_LIMITS, &arena, &tree, &err) <
            0 ||
        lab_campaign_read(tree, "f", &arena, &campaign, &err) < 0) {
        require_error(&err);
        return 0;
    }
    size_t phases = (size_t)campaign.phase_count + 1, studies = (size_t)campaign.study_count + 1;
    struct lab_campaign_found *found = lab_arena_alloc(&arena, studies, sizeof *found);
    struct lab_campaign_claims *claims = lab_arena_alloc(&arena, phases, sizeof *claims);
    struct lab_campaign_claims *steps = lab_arena_alloc(&arena, studies, sizeof *steps);
    for (size_t i = 0; i < studies; i++)
        found[i] = (struct lab_campaign_found){
            .planned = 1, .expected_s = NAN, .expected_j = NAN, .taken_s = NAN, .energy_j = NAN};
    struct lab_campaign_known known = {.studies = found, .phases = claims, .steps = steps};
    for (int p = 0; p < campaign.phase_count; p++)
        for (int s = 0; s < campaign.phases[p].study_count; s++)
            require(campaign.phases[p].studies[s].words && campaign.phases[p].studies[s].label);
    if (lab_campaign_make_schedule(&campaign, &known, &arena, &schedule, &err) < 0)
        require_error(&err);
    const struct lab_campaign_status *statuses = lab_campaign_decide(&campaign, &known, &arena);
    for (int p = 0; p < campaign.phase_count; p++)
        require(statuses[p].state != LAB_CAMPAIGN_DONE || campaign.phases[p].study_count == 0);
    return 0;
}
