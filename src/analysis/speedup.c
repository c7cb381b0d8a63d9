/*
 * speedup.c: `gpulab analyze speedup`: whether several devices do the same work faster than one,
 * which of them, and from which model or batch on. The claims are made in speedup/.
 */
#include "analysis/analysis_build.h"
#include "analysis/claims/rows.h"
#include "analysis/speedup/gang.h"

struct figures {
    int comparisons, beneficial, stay_single, inconclusive;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, comparisons, "comparisons", "Comparisons", LAB_UNIT_COUNT,
              "Comparisons"),
    LAB_FIELD(struct figures, beneficial, "beneficial", "Beneficial", LAB_UNIT_COUNT, "Beneficial"),
    LAB_FIELD(struct figures, stay_single, "stay_single", "Stay single", LAB_UNIT_COUNT,
              "Stay single"),
    LAB_FIELD(struct figures, inconclusive, "inconclusive", "Inconclusive", LAB_UNIT_COUNT),
};

static int speedup_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        const struct lab_study_table *study = &input->studies[i];
        struct lab_gangs gangs = lab_gangs_make(study, "speedup", arena);
        struct lab_analysis_part *part = lab_analysis_add_part(result, study->name, arena);
        struct figures figures = {gangs.count, lab_gangs_count(&gangs, "beneficial"),
                                  lab_gangs_count(&gangs, "stay single"),
                                  lab_gangs_count(&gangs, "inconclusive")};
        part->untested = lab_gangs_untested(&gangs, arena);
        part->answer = part->untested ? NULL : lab_gangs_answer(&gangs, arena);
        LAB_PART_FIGURES(part, figure_fields, &figures, arena);
        lab_gangs_add_command(result, &gangs, arena);
        lab_gangs_add_further(result, &gangs, arena);
        lab_gangs_add(result, part, &gangs, arena);
        lab_gangs_add_chart(result, &gangs,
                            lab_arena_printf(arena, "speedup%s", lab_analysis_suffix(i, arena)),
                            arena);
    }
    lab_study_add_notes(&input->studies[0], "", &result->notes, arena);
    return 0;
}

/* `training` has the same tables of a study that trains. */
static int speedup_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study) || lab_study_trains(study))
        return 0;
    for (int i = 1; i < study->run_count; i++) {
        const struct lab_study_run *first = &study->runs[0], *run = &study->runs[i];
        bool differs = run->rank_count != first->rank_count;
        for (int r = 0; r < run->rank_count && run->rank_count > 1 && !differs; r++)
            differs = !lab_str_equal(run->ranks[r].device, first->ranks[r].device);
        if (differs)
            return 70;
    }
    return 0;
}

const struct lab_analysis lab_analysis_speedup = {
    .name = "speedup",
    .summary = "whether several devices do the same work faster than one",
    .description =
        "Throughput of several devices compared with the mean of the same devices alone, at the "
        "same workload. First comes the mean over all workloads, by number of devices; then each "
        "point, with its efficiency and the all-reduce's share of an iteration. Devices that share "
        "a PCIe bridge are compared with others, as many. Break-even over batches and models is "
        "given within the tested range. Intervals are over runs, at 95%.\n"
        "\n"
        "Grades: beneficial from 1.10×, faster above 1 and across 1.10, stay single below 1, "
        "marginal from 0.95× to 1.10×, else inconclusive. The whole interval must lie there.",
    .kinds = (const struct lab_analysis_kind[]){{"speedup.devices"},
                                                {"speedup.cell"},
                                                {"speedup.gang"},
                                                {"speedup.gang_model", LAB_KIND_MODELS},
                                                {"speedup.transfer_bound", LAB_KIND_MODELS},
                                                {"speedup.break_even", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = speedup_interest,
    LAB_PARTS_OF("studies", figure_fields),
    .run = speedup_run,
};
