/* condition.c: clocks, temperatures, links and errors of a GPU, from results and samples. */
#include "analysis/peers/condition.h"

#include "analysis/analysis_build.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

struct sum { /* NaN doesn't count */
    double total;
    int count;
};

static void add(struct sum *sum, double value) {
    if (!isnan(value)) {
        sum->total += value;
        sum->count++;
    }
}

static double mean(const struct sum *sum) {
    return sum->count ? sum->total / sum->count : (double)NAN;
}

static double total(const struct sum *sum) {
    return sum->count ? sum->total : (double)NAN;
}

static const struct lab_result *result_of(const struct lab_study_run *run) {
    return run->result->rank_count > 0 ? &run->result->ranks[0] : run->result;
}

/* What the machine's record says of the link: the most that it can carry. */
static double link_of(const struct lab_machine *machine, int gpu) {
    const struct lab_pci *pci = lab_machine_gpu(machine, gpu);
    return pci && pci->link_gbs > 0 ? pci->link_gbs : (double)NAN;
}

enum { POWER_LIMIT, GENERATION, WIDTH, SAMPLED };

static void add_samples(const struct lab_study_run *run, struct sum *sums, struct sum *errors,
                        struct sum *power) {
    static const enum lab_metric_id gauges[SAMPLED] = {
        LAB_METRIC_POWER_LIMIT, LAB_METRIC_PCIE_GENERATION, LAB_METRIC_PCIE_WIDTH};
    const struct lab_track *track =
        run->recording ? lab_recording_gpu(run->recording, run->ranks[0].gpu) : NULL;
    if (!track)
        return;
    int64_t from_ns = run->run->start_ns, until_ns = run->run->end_ns;
    add(power, lab_track_between(track, LAB_METRIC_POWER, from_ns, until_ns).mean);
    for (int i = 0; i < SAMPLED; i++)
        add(&sums[i], lab_track_between(track, gauges[i], from_ns, until_ns).mean);
    add(errors, lab_track_growth(track, LAB_METRIC_ECC_CORRECTED, from_ns, until_ns));
    add(errors, lab_track_growth(track, LAB_METRIC_ECC_UNCORRECTED, from_ns, until_ns));
}

struct lab_condition lab_condition_of(const struct lab_study_table *study, const char *device) {
    struct sum clock = {0}, heat = {0}, power = {0}, drawn = {0}, throttled = {0}, xids = {0},
               errors = {0}, sampled[SAMPLED] = {0};
    struct lab_condition found = {.numa_node = NAN, .link_gb_s = NAN};
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        if (!run->used || run->rank_count != 1 || !lab_str_equal(run->ranks[0].device, device))
            continue;
        const struct lab_result *result = result_of(run);
        add(&clock, result->sm_clock_mhz);
        add(&heat, result->temperature_c);
        add(&power, result->power_w);
        for (int k = 0; k < result->throttled_s.count; k++)
            add(&throttled, result->throttled_s.items[k].seconds);
        add(&xids, result->xids.count);
        add_samples(run, sampled, &errors, &drawn);
        found.runs++;
        found.longest_s =
            fmax(found.longest_s, 1e-9 * (double)(run->run->end_ns - run->run->start_ns));
        found.numa_node = run->ranks[0].device_node >= 0 ? run->ranks[0].device_node : (double)NAN;
        found.link_gb_s = link_of(study->machine, run->ranks[0].gpu);
    }
    found.sm_clock_mhz = mean(&clock);
    found.temperature_c = mean(&heat);
    found.power_w = mean(power.count ? &power : &drawn); /* never mixed */
    found.power_limit_w = mean(&sampled[POWER_LIMIT]);
    found.pcie_generation = mean(&sampled[GENERATION]);
    found.pcie_width = mean(&sampled[WIDTH]);
    found.throttled_s = total(&throttled);
    found.ecc_errors = total(&errors);
    found.xids = total(&xids);
    return found;
}

/* --- differences --- */

static const struct {
    const char *title, *unit;
    size_t offset;
    double share, least; /* no smaller difference is named */
    bool symptom;        /* a lower one follows from less work */
} compared[] = {
    {"SM clock", " MHz", offsetof(struct lab_condition, sm_clock_mhz), 0.01, 5, false},
    {"temperature", " °C", offsetof(struct lab_condition, temperature_c), 0, 5, true},
    {"power", " W", offsetof(struct lab_condition, power_w), 0.05, 1.5, true},
    {"power limit", " W", offsetof(struct lab_condition, power_limit_w), 0.01, 1, false},
    {"PCIe generation", "", offsetof(struct lab_condition, pcie_generation), 0, 0.5, false},
    {"PCIe lanes", "", offsetof(struct lab_condition, pcie_width), 0, 0.5, false},
    {"PCIe link", " GB/s", offsetof(struct lab_condition, link_gb_s), 0.05, 0.5, false},
    {"throttled", " s", offsetof(struct lab_condition, throttled_s), 0.5, 1, false},
    {"ECC errors", "", offsetof(struct lab_condition, ecc_errors), 0, 0.5, false},
    {"Xid errors", "", offsetof(struct lab_condition, xids), 0, 0.5, false},
};

#define WARM_S            60 /* a shorter run shows no heat */
#define PEERS_SHOW_SPREAD 3  /* fewer say little of it */
#define SPREADS_APART     3  /* farther than the farthest peer, from their median */

/* A share holds for peers that scatter; of peers that are alike less is a difference. */
static double threshold(int number, const double *values, size_t count, double usual) {
    double most = compared[number].share * fabs(usual), farthest = 0;
    for (size_t i = 0; i < count; i++)
        farthest = fmax(farthest, fabs(values[i] - usual));
    if (count >= PEERS_SHOW_SPREAD && compared[number].symptom)
        most = fmin(most, SPREADS_APART * farthest);
    return fmax(compared[number].least, most);
}

static double value_at(const struct lab_condition *condition, size_t offset) {
    double value;
    memcpy(&value, (const char *)condition + offset, sizeof value);
    return value;
}

/* Heat and throttling take minutes to show. */
static const char *brief_words(const struct lab_condition *own, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (own->longest_s > 0 && own->longest_s < WARM_S)
        lab_str_add_duration(&text, own->longest_s, 0);
    return lab_arena_strdup(arena, text.text);
}

struct lab_difference lab_condition_compare(const struct lab_condition *own,
                                            const struct lab_condition *const *peers, int count,
                                            struct lab_arena *arena) {
    enum { DIFFERS, SYMPTOM, ALIKE, KINDS };
    struct lab_str texts[KINDS];
    double *values = lab_arena_alloc(arena, (size_t)count + 1, sizeof *values);
    for (int k = 0; k < KINDS; k++)
        lab_str_init(&texts[k]);
    for (int c = 0; c < LAB_COUNT_OF(compared); c++) {
        double value = value_at(own, compared[c].offset);
        size_t n = 0;
        for (int i = 0; i < count; i++) {
            values[n] = value_at(peers[i], compared[c].offset);
            n += peers[i] != own && !isnan(values[n]);
        }
        if (isnan(value) || n == 0)
            continue;
        double usual = lab_stats_median(values, n);
        int kind = fabs(value - usual) < threshold(c, values, n, usual) ? ALIKE
                   : compared[c].symptom && value < usual               ? SYMPTOM
                                                                        : DIFFERS;
        lab_str_printf(&texts[kind], "%s%s", texts[kind].length ? ", " : "", compared[c].title);
        if (kind != ALIKE)
            lab_str_printf(&texts[kind], " %.0f%s (peers %.0f)", value, compared[c].unit, usual);
    }
    struct lab_difference made = {.differs = lab_arena_strdup(arena, texts[DIFFERS].text),
                                  .symptoms = lab_arena_strdup(arena, texts[SYMPTOM].text),
                                  .alike = lab_arena_strdup(arena, texts[ALIKE].text),
                                  .brief = brief_words(own, arena)};
    for (int k = 0; k < KINDS; k++)
        lab_str_release(&texts[k]);
    return made;
}
