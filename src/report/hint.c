/*
 * hint.c: what a user can do about a failed run: the text of its hint. What takes less memory
 * differs between workloads: a hint names keys that the run has, or none.
 */
#include "report/study/study.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* --- what a workload has --- */

static bool has(const struct lab_value *options, const char *key) {
    return options && lab_value_get(options, key);
}

/* "a smaller batch_size", "smaller m, n or k"; nothing where the workload has no such key. Where a
 * study has them differs from one to the next, but for those of the test. */
static void add_less(const struct lab_value *options, struct lab_str *out) {
    static const char *const sizes[] = {"batch_size", "batch", "seq", "rows", "columns",
                                        "m",          "n",     "k",   "size", "bytes"};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    const char *found[SIZES + 1] = {NULL};
    int count = 0;
    if (has(options, "memory_size_mb")) {
        lab_str_add(out, "a smaller experiment.test.batch_size or experiment.test.memory_size_mb");
        return;
    }
    for (int i = 0; i < SIZES; i++)
        if (has(options, sizes[i]))
            found[count++] = sizes[i];
    lab_str_add(out, count > 1 ? "smaller " : count == 1 ? "a smaller " : "");
    lab_str_add_list(out, found, "or");
}

/* Its keys; NULL = unknown. */
static const struct lab_value *parse(const char *options, struct lab_arena *arena) {
    struct lab_err ignored = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    if (!options || lab_json_parse(options, strlen(options), "options", arena, &value, &ignored))
        return NULL;
    return value->type == LAB_VALUE_MAP ? value : NULL;
}

/* ".rank1" of a gang's "rank 1: …": ranks but the first have logs of their own. */
static void add_rank(const char *error, struct lab_str *out) {
    int rank;
    if (error && sscanf(error, "rank %d:", &rank) == 1 && rank > 0)
        lab_str_printf(out, ".rank%d", rank);
}

bool lab_report_hint(enum lab_hint_id id, const char *options, const char *error,
                     struct lab_str *out) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, less);
    const struct lab_hint *hint = lab_hint(id);
    if (id == LAB_HINT_PROGRAM_FAILED && error && lab_str_ends(error, "without output"))
        return false; /* no log says anything */
    const struct lab_value *keys = parse(options, &arena);
    size_t before = out->length;
    add_less(keys, &less);
    const char *at = strstr(hint->text, "{less}") && !less.length ? hint->without : hint->text;
    for (const char *open; at && (open = strchr(at, '{')); at = strchr(open, '}') + 1) {
        lab_str_add_bytes(out, at, (size_t)(open - at));
        if (lab_str_starts(open, "{less}"))
            lab_str_add(out, less.text);
        else if (lab_str_starts(open, "{rank}"))
            add_rank(error, out);
        else if (has(keys, "model") || has(keys, "depth"))
            lab_str_add(out, ", or a smaller model");
    }
    if (at)
        lab_str_add(out, at);
    return out->length > before;
}
