/* claim_fixture.h: claims of a result, for tests of analyses. */
#pragma once

#include "analysis/analysis.h"
#include "base/str.h"

#include "test.h"
#include <string.h>

/* Of that kind, about a subject that has these words in it; NULL = none. */
static inline const struct lab_claim *find_claim(const struct lab_analysis_result *result,
                                                 const char *kind, const char *words) {
    for (int i = 0; i < result->claim_count; i++)
        if (lab_str_equal(result->claims[i].kind, kind) &&
            strstr(lab_claim_subject(&result->claims[i], result->arena), words))
            return &result->claims[i];
    return NULL;
}

/* The same where there must be one. */
static inline const struct lab_claim *claim_of(const struct lab_analysis_result *result,
                                               const char *kind, const char *words) {
    const struct lab_claim *claim = find_claim(result, kind, words);
    if (!claim)
        fail_msg("no claim %s of %s", kind, words);
    return claim;
}

static inline bool holds(const struct lab_claim *claim, double truth) {
    return claim->low <= truth && truth <= claim->high;
}
