/*
 * detect.c: what `gpulab check` finds on simulated machines whose faults are known: the share of
 * checks that find each planted fault, a curve of how slow a GPU must be, and how many checks of
 * healthy machines fail. Prints tables in Markdown, and puts them into a document between its marks.
 *
 *   check_detect [--sample | --curve | --faults | --healthy] [DOCUMENT]
 *
 * --sample: few checks, for every build. The others are one part of it.
 *
 * Exit status 1: fewer than 95 % found at 3 %, a fault that was missed, or more than 1 failure in
 * 4,000 healthy checks.
 */
#include "check/check.h"

#include "base/file/file.h"
#include "device/device.h"
#include "machine/machine.h"
#include "stats/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_MARK "<!-- detection: begin -->\n"
#define END_MARK   "<!-- detection: end -->"
#define GPU        1 /* that is slow */

/* L40S without what l40s-10 plants: GPUs on PCIe alone, more noise. */
static const char noisy_effects[] = "effects:";

struct plan {
    int curve, faults, healthy; /* checks of each point, fault and machine */
};

static struct lab_machine *here;
static const char *quiet_text, *noisy_text; /* definitions that end below `effects:` */

static const char *read_machine(const char *root, const char *name, struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    char *text;
    size_t length;
    const char *path = lab_arena_printf(arena, "%s/conf/machine/%s.yaml", root, name);
    if (lab_file_read(path, 1 << 20, arena, &text, &length, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return text;
}

/* One check at level 2; which of the GPU's own tests failed, and whether anything did. */
static bool check_once(const char *definition, uint64_t seed, int level, const char *test,
                       const char *subject, int *ret_status) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_check_setup setup = {
        .machine = here, .all_devices = true, .level = level, .seed = seed};
    struct lab_check_result result;
    bool found = false;
    const char *names[64];
    int count = 0;
    /* allreduce has no expected value on these machines, so it never fails: it would take half of
     * the time */
    for (int i = 0; lab_check_test_at(i); i++)
        if (!lab_str_equal(lab_check_test_at(i)->name, "allreduce"))
            names[count++] = lab_check_test_at(i)->name;
    names[count] = NULL;
    setup.only = names;
    lab_device_define("m", definition);
    if (lab_device_select(here, "sim:m", &arena, &setup.devices, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    lab_check_run(&setup, &arena, &result);
    *ret_status = lab_check_status(&result, LAB_CHECK_MONITOR);
    for (int i = 0; i < result.count; i++)
        found |= result.findings[i].verdict == LAB_CHECK_FAIL &&
                 (!test || lab_str_equal(result.findings[i].test->name, test)) &&
                 lab_str_starts(result.findings[i].subject, subject);
    return found;
}

static void add_share(struct lab_str *out, int count, int all) {
    struct lab_interval interval = lab_stats_binomial_interval(count, all, 0.95);
    lab_str_printf(out, "%.1f%% [%.1f, %.1f]", 100.0 * count / all, 100 * interval.low,
                   100 * interval.high);
}

/* Faults that can be small: so much of the GPU's speed, its copies' or its power limit. */
static const struct curve {
    const char *effect; /* "{gpu: 1, KEY: VALUE}" of it */
    const char *key;
    double of; /* what the share is of; below 0: what is left */
    int level;
    bool noisy;
    double bound; /* shares from here on are found in 95 of 100 */
} curves[] = {
    {"slow_gpu", "compute", 1, 2, false, 0.03},     {"slow_gpu", "compute", 1, 2, true, 0.03},
    {"slow_gpu", "copy", 1, 2, false, 0.10},        {"slow_gpu", "copy", 1, 2, true, 0.10},
    {"power_cap", "limit_w", -700, 1, false, 0.02},
};

static bool write_curve(struct lab_str *out, int checks) {
    static const double shares[] = {0.01, 0.02, 0.03, 0.05, 0.10};
    bool good = true;
    lab_str_printf(
        out,
        "One GPU with a fault of this size (%d checks of each, share that found it; 95%% "
        "interval):\n\n"
        "| size | computes slower: h200-8 | 10 × L40S | copies slower: h200-8 | 10 × "
        "L40S | power cap, level 1 |\n|---|---|---|---|---|---|\n",
        checks);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        lab_str_printf(out, "| %.0f%%", 100 * shares[i]);
        for (size_t c = 0; c < sizeof curves / sizeof *curves; c++) {
            LAB_AUTO(arena, arena);
            const struct curve *curve = &curves[c];
            double value = curve->of < 0 ? -curve->of * (1 - shares[i]) : curve->of * shares[i];
            const char *text = lab_arena_printf(&arena, "%s  %s: [{gpu: %d, %s: %.3f}]\n",
                                                curve->noisy ? noisy_text : quiet_text,
                                                curve->effect, GPU, curve->key, value);
            int found = 0, status;
            for (int k = 0; k < checks; k++)
                found += check_once(text, 1000 + (uint64_t)k, curve->level, NULL, "GPU 1", &status);
            lab_str_add(out, " | ");
            add_share(out, found, checks);
            good &= shares[i] < curve->bound || found >= 0.95 * checks;
        }
        lab_str_add(out, " |\n");
    }
    return good;
}

static const struct {
    const char *name, *effect;
    int level;
    const char *test, *subject;
} faults[] = {
    {"PCIe link at 8 of 16 lanes", "link: [{gpu: 3, width: 8}]", 1, "pcie_width", "GPU 3"},
    {"the same, by measuring", "link: [{gpu: 3, width: 8}]", 2, "h2d", "GPU 3, NUMA node 0"},
    {"PCIe generation 4 of 5", "link: [{gpu: 3, generation: 4}]", 1, "pcie_generation", "GPU 3"},
    {"power cap at half", "power_cap: [{gpu: 2, limit_w: 350}]", 1, "power_limit", "GPU 2"},
    {"the same, by measuring", "power_cap: [{gpu: 2, limit_w: 350}]", 2, "gemm", "GPU 2"},
    {"dead NVLink that shows as active", "dead_nvlink: [{gpus: [2, 5]}]", 2, "p2p",
     "GPU 2 to GPU 5"},
    {"uncorrected memory errors", "errors: [{gpu: 6, ecc_uncorrected: 1}]", 1, "ecc", "GPU 6"},
    {"Xid 79", "errors: [{gpu: 6, xid: 79}]", 1, "xid", "GPU 6"},
    {"wrong NUMA node", "wrong_node: [{gpu: 4, node: 0}]", 1, "numa_node", "GPU 4"},
    {"the same, by measuring", "wrong_node: [{gpu: 4, node: 0}]", 2, "numa_nearest", "GPU 4"},
};

static bool write_faults(struct lab_str *out, int checks) {
    bool good = true;
    lab_str_printf(out,
                   "\nFaults that are there or not, on h200-8 (%d checks of each):\n\n"
                   "| fault | level | test | found |\n|---|---|---|---|\n",
                   checks);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        LAB_AUTO(arena, arena);
        const char *text = lab_arena_printf(&arena, "%s  %s\n", quiet_text, faults[i].effect);
        int found = 0, status;
        for (int k = 0; k < checks; k++)
            found += check_once(text, 50000 + (uint64_t)k, faults[i].level, faults[i].test,
                                faults[i].subject, &status);
        lab_str_printf(out, "| %s | %d | `%s` | %d of %d |\n", faults[i].name, faults[i].level,
                       faults[i].test, found, checks);
        good &= found == checks;
    }
    return good;
}

static bool write_healthy(struct lab_str *out, int checks) {
    int failed = 0, unsure = 0, all = 0;
    for (int m = 0; m < 2; m++) {
        LAB_AUTO(arena, arena);
        const char *text = lab_arena_printf(&arena, "%s%s\n", m ? noisy_text : quiet_text,
                                            m ? "  unbound_node: -1"
                                              : ""); /* a list of effects may not be empty */
        for (int k = 0; k < checks; k++, all++) {
            int status;
            check_once(text, 900000 + (uint64_t)k, 2, NULL, "", &status);
            failed += status == 1;
            unsure += status == 2;
            if (all % 500 == 499)
                fprintf(stderr, "%d of %d healthy checks: %d failed\n", all + 1, 2 * checks,
                        failed);
        }
    }
    lab_str_printf(out,
                   "\nHealthy machines, level 2, half h200-8, half 10 × L40S: **%d failures in %d "
                   "checks** (95%% interval: at most %.2f%%). Not checked: %d.\n",
                   failed, all, 100 * lab_stats_binomial_interval(failed, all, 0.95).high, unsure);
    return failed <= (all < 4000 ? 0 : all / 4000) && unsure == 0;
}

static int put_into(const char *path, const char *text, struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    char *old;
    size_t length;
    if (lab_file_read(path, 1 << 20, arena, &old, &length, &err) == 0) {
        const char *begin = strstr(old, BEGIN_MARK), *end = strstr(old, END_MARK);
        if (begin && end && begin < end) {
            const char *whole = lab_arena_printf(
                arena, "%.*s%s\n%s", (int)(begin + strlen(BEGIN_MARK) - old), old, text, end);
            if (lab_file_write_atomic(path, whole, strlen(whole), &err) == 0)
                return 0;
        } else
            lab_err_set(&err, LAB_ERR_USER, "%s has no marks for the tables", path);
    }
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(int argc, char **argv) {
    static const char *const parts[] = {"--sample", "--curve", "--faults", "--healthy", NULL};
    int part = argc > 1 ? lab_str_find(argv[1], parts) : -1;
    bool sample = part == 0, all = part <= 0;
    struct plan plan = sample ? (struct plan){1, 1, 3} : (struct plan){100, 20, 2000};
    const char *document = argc > 1 + (part >= 0) ? argv[1 + (part >= 0)] : NULL;
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, out);
    struct lab_err err = LAB_ERR_INIT;
    if (lab_machine_open(NULL, &here, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    quiet_text = read_machine(GPULAB_SOURCE_DIR, "h200-8", &arena);
    const char *noisy = read_machine(GPULAB_SOURCE_DIR, "l40s-10", &arena);
    const char *planted = strstr(noisy, noisy_effects);
    noisy_text = lab_arena_printf(&arena, "%.*s%s\n", (int)(planted - noisy), noisy, noisy_effects);
    bool good = !(all || part == 1) || write_curve(&out, plan.curve);
    good &= !(all || part == 2) || write_faults(&out, plan.faults);
    good &= !(all || part == 3) || write_healthy(&out, plan.healthy);
    fputs(out.text, stdout);
    lab_device_define(NULL, NULL);
    lab_machine_close(here);
    if (document && put_into(document, out.text, &arena))
        return 1;
    if (!good)
        fprintf(stderr, "check_detect: a bound isn't kept: see the tables\n");
    return !good;
}
