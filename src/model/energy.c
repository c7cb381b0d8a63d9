/* energy.c: a counter's growth, and power over time where the counter wasn't read. */
#include "model/energy.h"

#include <math.h>

#define NS_PER_S         1000000000LL
#define GAP_INTERVALS    3
#define COUNTER_LEAST_NS NS_PER_S /* drivers renew it several times a second, but not evenly */
#define ESTIMATED_SHARE  0.01

int64_t lab_energy_gap_ns(int64_t interval_ns) {
    return GAP_INTERVALS * interval_ns > NS_PER_S ? GAP_INTERVALS * interval_ns : NS_PER_S;
}

void lab_energy_begin(struct lab_energy_meter *meter, int64_t gap_ns, int64_t from_ns,
                      int64_t until_ns) {
    *meter = (struct lab_energy_meter){.from_ns = from_ns,
                                       .until_ns = until_ns,
                                       .gap_ns = gap_ns,
                                       .power_w = NAN,
                                       .counter_j = NAN};
}

static void add(struct lab_energy_sum *sum, const struct lab_energy_sum *other) {
    sum->joules += other->joules;
    sum->seconds += other->seconds;
}

static void take_power(struct lab_energy_meter *meter, int64_t time_ns, double power_w) {
    int64_t begin_ns = meter->power_ns > meter->from_ns ? meter->power_ns : meter->from_ns;
    int64_t end_ns = time_ns < meter->until_ns ? time_ns : meter->until_ns;
    if (!isnan(meter->power_w) && time_ns - meter->power_ns <= meter->gap_ns && end_ns > begin_ns) {
        double seconds = (double)(end_ns - begin_ns) / NS_PER_S;
        struct lab_energy_sum part = {seconds * (meter->power_w + power_w) / 2, seconds};
        add(isnan(meter->counter_j) ? &meter->before : &meter->after, &part);
    }
    meter->power_w = power_w;
    meter->power_ns = time_ns;
}

static void take_counter(struct lab_energy_meter *meter, int64_t time_ns, double counter_j) {
    if (time_ns < meter->from_ns || time_ns > meter->until_ns)
        return;
    if (isnan(meter->counter_j)) {
        meter->first_ns = time_ns;
    } else { /* a counter that fell started anew */
        meter->counted_j +=
            counter_j >= meter->counter_j ? counter_j - meter->counter_j : counter_j;
        add(&meter->between, &meter->after);
        meter->after = (struct lab_energy_sum){0};
    }
    meter->counter_j = counter_j;
    meter->last_ns = time_ns;
}

void lab_energy_take(struct lab_energy_meter *meter, int64_t time_ns, double power_w,
                     double counter_j) {
    if (!isnan(power_w))
        take_power(meter, time_ns, power_w);
    if (!isnan(counter_j))
        take_counter(meter, time_ns, counter_j);
}

struct lab_energy lab_energy_of(const struct lab_energy_meter *meter) {
    struct lab_energy_sum by_power = meter->before;
    add(&by_power, &meter->after);
    if (!isnan(meter->counter_j) && meter->last_ns - meter->first_ns >= COUNTER_LEAST_NS) {
        double joules = meter->counted_j + by_power.joules;
        return (struct lab_energy){
            .joules = joules,
            .covered_s = (double)(meter->last_ns - meter->first_ns) / NS_PER_S + by_power.seconds,
            .estimated = by_power.joules > ESTIMATED_SHARE * joules,
        };
    }
    add(&by_power, &meter->between);
    if (by_power.seconds <= 0)
        return (struct lab_energy){.joules = NAN};
    return (struct lab_energy){by_power.joules, by_power.seconds, true};
}
