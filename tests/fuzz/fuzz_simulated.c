/*
 * fuzz_simulated.c: a description of a simulated machine is refused with words, or each of its NUMA
 * nodes has a way to each GPU, both ways.
 * covers: src/device/sim/describe src/device/sim/faults.c src/device/sim/route.c
 */
#include "device/sim/sim.h"
#include "folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct sim_machine *machine;
    struct sim_route route;
    if (sim_describe("f", (const char *)data, size, "f.yaml", &arena, &machine, &err) < 0) {
        require_error(&err);
        return 0;
    }
    require(machine->node_count > 0 && machine->shown && machine->definition);
    for (int node = 0; node < machine->node_count && node < 8; node++)
        for (int gpu = 0; gpu < machine->gpu_count && gpu < 8; gpu++) {
            require(sim_route(machine, node, gpu, true, &route) == 0 && route.count > 0);
            require(sim_route(machine, node, gpu, false, &route) == 0 && route.count > 0);
        }
    return 0;
}
