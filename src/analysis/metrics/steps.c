/* steps.c: at which steps settings end, which a comparison of last values depends on. */
#include "analysis/metrics/metrics.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define NAMED_MOST 4 /* steps of the list */

struct ended {
    double step;
    const char *name; /* of the first setting that ends there */
    int settings;
};

/* Of its longest run; NaN = its steps are unknown. */
static double last_step(const struct lab_study_point *point, const struct metrics_metric *metric) {
    double last = NAN;
    for (int r = 0; r < point->count; r++)
        for (int i = 0; i < point->runs[r]->metric_count; i++) {
            const struct lab_study_metric *said = &point->runs[r]->metrics[i];
            if (lab_str_equal(said->name, metric->name) && said->curve.stepped)
                last = fmax(last, said->curve.step_before + said->curve.last_step);
        }
    return last;
}

void metrics_note_steps(struct lab_analysis_result *result, const struct metrics_metric *metric,
                        struct lab_arena *arena) {
    struct ended *ends = NULL;
    int count = 0;
    LAB_AUTO(str, list);
    for (int i = 0; i < metric->compared; i++) {
        const struct metrics_value *value = &metric->values[i];
        double step = last_step(&value->setting->point, metric);
        int at = 0;
        while (at < count && ends[at].step != step)
            at++;
        if (isnan(step))
            continue;
        if (at == count)
            LAB_ADD(ends, count, arena) = (struct ended){step, value->name, 0};
        ends[at].settings++;
    }
    if (count < 2 || metric->rate) /* a rate is a median, whatever the length */
        return;
    LAB_SORT(ends, count, LAB_BY(ends, step));
    for (int i = 0; i < count && i < NAMED_MOST; i++) {
        lab_str_printf(&list, "%s%.15g (%s", i ? ", " : "", ends[i].step, ends[i].name);
        if (ends[i].settings > 1)
            lab_str_printf(&list, " and %d more", ends[i].settings - 1);
        lab_str_add(&list, ")");
    }
    if (count > NAMED_MOST)
        lab_str_printf(&list, " … %.15g (%s)", ends[count - 1].step, ends[count - 1].name);
    lab_analysis_note(&result->notes, arena, "Settings end at different steps: %s.", list.text);
}
