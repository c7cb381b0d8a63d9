/* analysis_words.c: figures put in words, and figures with an interval as cells. */
#include "analysis/analysis_words.h"

#include "base/str.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

const char *lab_words_si(double value, const char *unit, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (!isfinite(value))
        return "–";
    lab_str_add_si(&text, value, unit);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_time(double seconds, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_time(&text, seconds);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_memory(double mib, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add_bytes_binary(&text, mib * 1048576);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_capital(const char *words, struct lab_arena *arena) {
    char *text = lab_arena_strdup(arena, words);
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    return text;
}

const char *lab_words_number(double value, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return lab_arena_printf(arena, fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
}

double lab_words_bound_percent(double share) {
    double tenths = ceil(1000 * share - 1e-9);
    return tenths <= 0 ? 0 : tenths / 10; /* ceil of a little less than 0 is −0 */
}

double lab_words_reach(double most, const struct lab_claim *claim) {
    return fmax(most, fmax(-claim->low, claim->high)); /* fmax passes NaN over */
}

const char *lab_words_beyond(double bound, double reach, const char *who, struct lab_arena *arena) {
    double percent = lab_words_bound_percent(reach);
    return percent > lab_words_bound_percent(bound)
               ? lab_arena_printf(arena, " (any %s: %.1f%%)", who, percent)
               : "";
}

void lab_words_add_single(struct lab_words_singles *singles, const struct lab_claim *claim) {
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE;
    singles->count += claim->verdict != LAB_CLAIM_NOT_TESTED;
    singles->open += open;
    singles->certain += claim->verdict == LAB_CLAIM_YES;
    singles->reach = open ? singles->reach : lab_words_reach(singles->reach, claim);
}

const char *lab_words_singles(double bound, const struct lab_words_singles *singles,
                              const char *who, struct lab_arena *arena) {
    double percent = fmax(lab_words_bound_percent(bound), lab_words_bound_percent(singles->reach));
    if (singles->open == 0 && singles->certain == 0)
        return lab_words_beyond(bound, singles->reach, who, arena);
    const char *certain =
        singles->certain
            ? lab_arena_printf(arena, "; %d of %d %s", singles->certain, singles->count,
                               singles->certain == 1 ? "differs" : "differ")
            : "";
    const char *open =
        singles->open ? lab_arena_printf(arena, "%s %d of %d inconclusive",
                                         *certain ? "," : ", but", singles->open, singles->count)
                      : "";
    return lab_arena_printf(arena, " (any %s: %.1f%%%s%s)", who, percent, certain, open);
}

/* Without the sign of zero. */
static const char *signed_percent(double share, struct lab_arena *arena) {
    double tenths = round(1000 * share);
    return tenths == 0 ? "0" : lab_arena_printf(arena, "%+.1f", tenths / 10);
}

const char *lab_words_range(double least, double most, struct lab_arena *arena) {
    const char *from = signed_percent(least, arena), *to = signed_percent(most, arena);
    return lab_str_equal(from, to) ? lab_arena_printf(arena, "%s%%", to)
                                   : lab_arena_printf(arena, "%s to %s%%", from, to);
}

const char *lab_words_ratio(double ratio, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (isnan(ratio))
        return "–";
    lab_str_add_factor(&text, ratio);
    return lab_arena_printf(arena, "%s×", text.text);
}

/* Of "GPU 3": 3; -1 = it has another name. */
static int gpu_number(const char *name) {
    int number = -1, length = 0;
    return sscanf(name, "GPU %d%n", &number, &length) == 1 && !name[length] ? number : -1;
}

/* NULL `join`: as a list. */
static const char *devices_of(const char *const *names, int count, const char *join,
                              struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char **parts = NULL;
    int part_count = 0;
    bool numbered = count > 1;
    for (int i = 0; i < count; i++)
        numbered = numbered && gpu_number(names[i]) >= 0;
    for (int i = 0, next; i < count; i = next) {
        next = i + 1;
        while (numbered && next < count &&
               gpu_number(names[next]) == gpu_number(names[next - 1]) + 1)
            next++;
        next = next < i + 3 ? i + 1 : next; /* a range is of three */
        LAB_ADD(parts, part_count, arena) =
            !numbered      ? names[i]
            : next > i + 1 ? lab_arena_printf(arena, "%d–%d", gpu_number(names[i]),
                                              gpu_number(names[next - 1]))
                           : lab_arena_printf(arena, "%d", gpu_number(names[i]));
    }
    LAB_ADD(parts, part_count, arena) = NULL;
    lab_str_add(&text, numbered ? "GPUs " : "");
    if (!join || !numbered)
        lab_str_add_list(&text, parts, "and");
    for (int i = 0; join && numbered && parts[i]; i++)
        lab_str_printf(&text, "%s%s", i ? join : "", parts[i]);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_words_node(int node, struct lab_arena *arena) {
    return node < 0 ? "" : lab_arena_printf(arena, ", NUMA node %d", node);
}

const char *lab_words_devices(const char *const *names, int count, struct lab_arena *arena) {
    return devices_of(names, count, NULL, arena);
}

const char *lab_words_gang(const struct lab_study_run *run, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int i = 0; i < run->rank_count; i++)
        LAB_ADD(names, count, arena) = lab_study_device_title(run->ranks[i].device, arena);
    return devices_of(names, count, "+", arena);
}

const struct lab_claim *lab_words_told(const struct lab_claim *device,
                                       const struct lab_claim *const *claims, int count) {
    const struct lab_claim *differs = NULL;
    int found = 0;
    for (int i = 0; i < count; i++)
        if (lab_str_equal(claims[i]->kind, "peers.class") && claims[i]->verdict == LAB_CLAIM_YES &&
            lab_str_equal(claims[i]->subject, device->subject)) {
            differs = claims[i];
            found++;
        }
    return found == 1 && (device->verdict != LAB_CLAIM_YES ||
                          fabs(differs->effect) > fabs(device->effect))
               ? differs
               : device;
}
