/*
 * flow.c: links shared by who crosses them. Progressive filling: all flows grow alike until a link
 * is full or a flow has all that it wants; those stop, the others grow on.
 */
#include "device/sim/sim.h"

#include <math.h>

#define CAPACITIES (2 * (SIM_LINKS_MAX + SIM_NODES_MAX + SIM_GPUS_MAX))
#define FLOWS_MAX  (SIM_GPUS_MAX * 16)
#define NEAR       (1 + 1e-9)

/* Each direction of a link is a capacity, or both together are one. */
static int capacity_of(const struct sim_machine *machine, struct sim_hop hop) {
    return 2 * hop.link + (machine->links[hop.link].both ? 0 : hop.way);
}

struct filling {
    const struct sim_machine *machine;
    double left[CAPACITIES]; /* bytes a second; only what flows cross is set */
    int users[CAPACITIES];
};

static double share_of(const struct filling *filling, const struct sim_flow *flow) {
    double share = flow->most_bytes_per_s;
    for (int i = 0; i < flow->route->count; i++) {
        int capacity = capacity_of(filling->machine, flow->route->hops[i]);
        share = fmin(share, filling->left[capacity] / filling->users[capacity]);
    }
    return share;
}

static void settle(struct filling *filling, struct sim_flow *flow, double share) {
    flow->bytes_per_s = fmax(share, 1);
    for (int i = 0; i < flow->route->count; i++) {
        int capacity = capacity_of(filling->machine, flow->route->hops[i]);
        filling->left[capacity] = fmax(0, filling->left[capacity] - share);
        filling->users[capacity]--;
    }
}

static void begin(struct filling *filling, struct sim_flow *const *flows, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < flows[i]->route->count; k++)
            filling->users[capacity_of(filling->machine, flows[i]->route->hops[k])] = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < flows[i]->route->count; k++) {
            struct sim_hop hop = flows[i]->route->hops[k];
            int capacity = capacity_of(filling->machine, hop);
            filling->left[capacity] = 1e9 * filling->machine->links[hop.link].bandwidth_gb_s;
            filling->users[capacity]++;
        }
}

void sim_flow_share(const struct sim_machine *machine, struct sim_flow *const *flows, int count) {
    struct filling filling;
    bool settled[FLOWS_MAX] = {false};
    filling.machine = machine;
    begin(&filling, flows, count);
    for (int left = count; left > 0;) {
        double least = INFINITY;
        for (int i = 0; i < count; i++)
            if (!settled[i])
                least = fmin(least, share_of(&filling, flows[i]));
        for (int i = 0; i < count; i++)
            if (!settled[i] && !(share_of(&filling, flows[i]) > least * NEAR)) {
                settle(&filling, flows[i], least);
                settled[i] = true;
                left--;
            }
    }
}
