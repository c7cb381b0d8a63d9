/*
 * model/device_ref.h: a device that isn't open, as plain data: what a selector names. Its backend
 * is a name; opening it looks the backend up (device/device.h).
 */
#pragma once

#include "model/machine.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_device_ref {
    const char *name;        /* "cpu:0/2.1"; selecting it again gives this member */
    const char *backend;     /* "cpu" */
    const char *description; /* "2 of 4 cores of NUMA node 0" */
    const char *physical;    /* what it shares with the other slices: "cpu:0" */
    int unit, slices, slice; /* 0, 2, 1; slices is 1 for a whole device */
    int node;                /* the kernel's number of the node it sits on; -1 = unknown */
    struct lab_cpus cpus;    /* cpu backend: one logical CPU for each of its cores */
    int64_t memory_bytes;    /* of the whole physical device */
    /* GPUs, as far as it is known without opening them: this member's multiprocessors, and 90 for
     * compute capability 9.0; 0 = unknown */
    int compute_units, capability;
    bool simulated;
    const char *uuid; /* of the physical device, "GPU-…" or "MIG-…"; NULL = it has none */
    /* simulated: the machine that it is part of, and the text that describes it; else NULL */
    const struct lab_machine *machine;
    const char *definition;
};

struct lab_device_list {
    struct lab_device_ref *items; /* in the arena of the caller */
    int count;
};

/* What one backend offers. */
struct lab_device_offer {
    const char *backend, *help;
    struct lab_device_list devices;
    const char *why_none; /* where there are none; NULL = nothing was found */
};
