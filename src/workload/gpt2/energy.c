/*
 * energy.c: what a step's tokens cost, by the device's counter. The counter takes milliseconds to
 * read and changes ten times a second. So it is read between chunks, at most each two seconds, and
 * windows that follow each other add up: what a reading is late by then counts at the ends alone.
 * A window whose time isn't steps', as limits were measured in it, is left out.
 */
#include "workload/gpt2/gpt2.h"

#define WINDOW_NS  INT64_C(2000000000)
#define BUSY_SHARE 0.9 /* of a window: least time of steps */

static void begin(struct gpt2_energy *energy, int64_t now_ns, double counter_j) {
    energy->since_ns = now_ns;
    energy->counter_j = counter_j;
    energy->busy_ns = energy->steps = 0;
}

bool gpt2_energy_is_due(const struct gpt2_energy *energy, int64_t now_ns) {
    return energy->counter_j == 0 || now_ns - energy->since_ns >= WINDOW_NS;
}

void gpt2_energy_add(struct gpt2_energy *energy, int64_t steps, int64_t busy_ns) {
    energy->steps += steps;
    energy->busy_ns += busy_ns;
}

void gpt2_energy_take(struct gpt2_energy *energy, int64_t now_ns, double counter_j) {
    double grown_j = counter_j - energy->counter_j;
    bool filled = (double)energy->busy_ns >= BUSY_SHARE * (double)(now_ns - energy->since_ns);
    if (energy->counter_j > 0 && energy->steps > 0 && filled && grown_j > 0) {
        energy->used_j += grown_j;
        energy->counted_steps += energy->steps;
    }
    begin(energy, now_ns, counter_j);
}

double gpt2_energy_of_step(const struct gpt2_energy *energy) {
    return energy->counted_steps ? energy->used_j / (double)energy->counted_steps : 0;
}
