/*
 * probe_sampler_real.c: the sampler over the probes of this program. Apart from the rest, so that
 * what links the sampler with probes of its own, as tests do, doesn't need all of these.
 */
#include "probe/probe_sampler.h"

/* A thread that is held up between the two readings makes them differ: the tightest of some
 * counts. */
static int64_t wall_offset_ns(void) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t best_ns = 0, width_ns = INT64_MAX;
    for (int i = 0; i < 4 && width_ns > 10 * LAB_NS_PER_US; i++) {
        int64_t before_ns = lab_clock_now(clock);
        int64_t wall_ns = lab_clock_wall_ns();
        int64_t after_ns = lab_clock_now(clock);
        if (after_ns - before_ns < width_ns) {
            width_ns = after_ns - before_ns;
            best_ns = wall_ns - before_ns;
        }
    }
    return best_ns;
}

int lab_sampler_open(const struct lab_sampler_config *config, struct lab_sampler **ret_sampler,
                     struct lab_err *err) {
    struct sampler_parts parts = {lab_probes, wall_offset_ns};
    return lab_sampler_open_parts(&parts, config, ret_sampler, err);
}
