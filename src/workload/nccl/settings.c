/* settings.c: which values NCCL accepts, and the variables that they become. */
#include "workload/nccl/settings.h"

#include "base/str.h"

/* Those that do a sum. NCCL has more, for other exchanges. */
const char *const nccl_algos[] = {"auto",         "ring", "tree",     "collnetdirect",
                                  "collnetchain", "nvls", "nvlstree", NULL};
const char *const nccl_protos[] = {"auto", "ll", "ll128", "simple", NULL};
const char *const nccl_switches[] = {"auto", "enabled", "disabled", NULL};
const char *const nccl_levels[] = {"auto", "LOC", "PIX", "PXB", "PHB", "SYS", NULL};
const char *const nccl_threads[] = {"auto", "64", "128", "256", "512", NULL};

#define BUFFER_MIN (64 << 10) /* below it a step has less than what a block moves at once */

int nccl_settings_check(const struct nccl_settings *settings, struct lab_err *err) {
    if (settings->buffer > 0 && settings->buffer < BUFFER_MIN)
        return lab_err_set(err, LAB_ERR_USER,
                           "nccl_buffer=%lld: must be 64KiB to 1GiB, or 0 for NCCL's own 4MiB",
                           (long long)settings->buffer);
    if (settings->channels_max > 0 && settings->channels_min > settings->channels_max)
        return lab_err_set(err, LAB_ERR_USER,
                           "nccl_channels_min=%lld: must be at most nccl_channels_max=%lld",
                           (long long)settings->channels_min, (long long)settings->channels_max);
    return 0;
}

struct words {
    struct lab_arena *arena;
    const char **items;
    int count;
};

static void add(struct words *words, const char *name, const char *value) {
    words->items[words->count++] = lab_arena_printf(words->arena, "%s=%s", name, value);
}

static void add_choice(struct words *words, const char *name, const char *value) {
    if (value && !lab_str_equal(value, "auto"))
        add(words, name, value);
}

/* NCCL's variables say the opposite of what they are about. */
static void add_switch(struct words *words, const char *name, const char *value) {
    if (value && !lab_str_equal(value, "auto"))
        add(words, name, lab_str_equal(value, "disabled") ? "1" : "0");
}

static void add_count(struct words *words, const char *name, int64_t value) {
    if (value > 0)
        add(words, name, lab_arena_printf(words->arena, "%lld", (long long)value));
}

const char *const *nccl_settings_words(const struct nccl_settings *settings,
                                       struct lab_arena *arena) {
    struct words words = {.arena = arena, .items = lab_arena_alloc(arena, 10, sizeof *words.items)};
    add_choice(&words, "NCCL_ALGO", settings->algo);
    add_choice(&words, "NCCL_PROTO", settings->proto);
    add_switch(&words, "NCCL_P2P_DISABLE", settings->p2p);
    add_switch(&words, "NCCL_SHM_DISABLE", settings->shm);
    add_choice(&words, "NCCL_NET_GDR_LEVEL", settings->gdr_level);
    add_choice(&words, "NCCL_NTHREADS", settings->threads);
    add_count(&words, "NCCL_BUFFSIZE", settings->buffer);
    add_count(&words, "NCCL_MIN_NCHANNELS", settings->channels_min);
    add_count(&words, "NCCL_MAX_NCHANNELS", settings->channels_max);
    return words.items;
}
