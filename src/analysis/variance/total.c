/*
 * total.c: what all devices of a phase do together. A phase that runs groups of devices one after
 * another leaves the others idle, so each kernel may be faster while the machine does less.
 */
#include "analysis/variance/phases.h"

#include "base/list.h"

#include <math.h>
#include <string.h>

/* Work per second of wall time of one kernel in a block: its runs follow one another and take
 * equally long. NaN = a device that ran it in `like` has no value. */
static double total_of(const struct lab_phases *phases, const char *kernel, int phase, int like,
                       int block, struct lab_arena *scratch) {
    const struct lab_run **runs = NULL;
    double sum = 0;
    int count = 0;
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_phase_unit *unit = &phases->units[u];
        const struct lab_phase_point *point = &unit->points[phase];
        double rate = NAN;
        if (strcmp(unit->kernel, kernel) != 0 || unit->points[like].time.count == 0)
            continue;
        for (int i = 0; i < point->time.count; i++) {
            const struct lab_run *run = point->time.runs[i]->run;
            bool known = false;
            if (!run || run->repeat != block)
                continue;
            for (int k = 0; k < count && !known; k++)
                known = runs[k] == run;
            if (!known)
                LAB_ADD(runs, count, scratch) = run;
            rate = point->rates[i];
        }
        sum += rate;
    }
    return count > 0 ? sum / count : (double)NAN;
}

static void set_scope(const struct lab_phases *phases, int phase, struct lab_claim *claim) {
    for (int u = 0; u < phases->unit_count; u++)
        if (phases->units[u].points[phase].time.count > 0)
            lab_claim_add_scope(claim, phases->units[u].points[phase].time.name, phases->arena);
}

struct lab_claim lab_phases_total(const struct lab_phases *phases, int phase, int against) {
    LAB_AUTO(arena, scratch);
    double *logs = NULL;
    int blocks = 0, count = 0;
    for (int i = 0; i < phases->run_count; i++)
        if (phases->runs[i]->run && phases->runs[i]->run->repeat >= blocks)
            blocks = phases->runs[i]->run->repeat + 1;
    for (int b = 0; b < blocks; b++) {
        double sum = 0;
        int kernels = 0;
        for (int u = 0; u < phases->unit_count; u++) {
            const char *kernel = phases->units[u].kernel;
            if (LAB_FIND(phases->units, u, kernel, kernel) >= 0 ||
                phases->units[u].points[against].time.count == 0)
                continue;
            sum += log(total_of(phases, kernel, phase, against, b, &scratch)) -
                   log(total_of(phases, kernel, against, against, b, &scratch));
            kernels++;
        }
        LAB_ADD(logs, count, &scratch) = kernels > 0 ? sum / kernels : (double)NAN;
    }
    struct lab_claim claim =
        lab_claim_named(lab_claim_from_blocks(logs, count, NULL), "contention.throughput",
                        phases->titles[phase], phases->titles[against], "total throughput");
    set_scope(phases, phase, &claim);
    set_scope(phases, against, &claim);
    return claim;
}
