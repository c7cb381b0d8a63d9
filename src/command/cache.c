/*
 * cache.c: `gpulab cache`: what is kept on disk for later runs: compiled kernels, which make them
 * start faster, and tuned configurations (tune/tune_cache.c), which make them run faster.
 */
#include "command/command.h"

#include "base/clock.h"
#include "device/kernel_cache.h"
#include "doc/doc.h"
#include "tune/tune_cache.h"

static const char *const actions[] = {"list", "clear", "export", "import", NULL};
static const char *const caches[] = {"kernels", "tuning", NULL};

/* One of the words, or an error that names them all. */
static int check_word(const char *word, const char *const *words, struct lab_err *err) {
    LAB_AUTO(str, list);
    if (lab_str_find(word, words) >= 0)
        return 0;
    lab_str_add_list(&list, words, "or");
    return lab_err_set(err, LAB_ERR_USER, "cache: unknown '%s', must be %s", word, list.text);
}

static const char *folder_of(const struct lab_command_call *call, struct lab_err *err) {
    const char *folder = lab_kernel_cache_folder(call->arena);
    if (!folder)
        lab_err_set(err, LAB_ERR_USER,
                    "kernels aren't kept: neither XDG_CACHE_HOME nor HOME names a folder");
    return folder;
}

/* --- list --- */

static int list_kernels(const struct lab_command_call *call, struct lab_err *err) {
    static const struct lab_doc_column columns[] = {
        {"kernel"},
        {"file"},
        {"size_bytes", NULL, LAB_UNIT_SIZE},
        {"used_unix_s", NULL, LAB_UNIT_DATE},
        {"damaged"},
        {NULL, "last used", LAB_UNIT_DATE, .align = LAB_ALIGN_LEFT},
        {NULL, "size", LAB_UNIT_SIZE},
        {NULL, "kernel"},
    };
    const char *folder = folder_of(call, err);
    struct lab_kernel_cache_entry *entries;
    int count;
    double bytes = 0;
    if (!folder || lab_kernel_cache_list(folder, call->arena, &entries, &count, err))
        return -1;
    struct lab_doc *doc = lab_doc_open("Kernels", call->arena);
    LAB_AUTO(str, size);
    lab_doc_data(doc, "folder", lab_value_string(call->arena, folder));
    lab_doc_rows(doc, "kernels", NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        const struct lab_kernel_cache_entry *entry = &entries[i];
        struct lab_doc_cell used =
            lab_cell_figure((double)entry->used_wall_ns / (double)LAB_NS_PER_S);
        struct lab_value *damaged = lab_value_bool(call->arena, entry->damaged);
        lab_doc_add(doc, lab_cell_text(entry->title));
        lab_doc_add(doc, lab_cell_text(entry->file));
        lab_doc_figure(doc, (double)entry->size_bytes);
        lab_doc_add(doc, used);
        lab_doc_add(doc, (struct lab_doc_cell){.data = damaged});
        lab_doc_add(doc, used);
        lab_doc_figure(doc, (double)entry->size_bytes);
        lab_doc_add(doc, lab_cell_text(entry->title));
        bytes += (double)entry->size_bytes;
    }
    lab_str_add_bytes_binary(&size, bytes);
    lab_doc_gap(doc);
    if (count)
        lab_doc_text(doc, LAB_DOC_WHOLE, "%d %s, %s, in %s", count,
                     count == 1 ? "kernel" : "kernels", size.text, folder);
    else
        lab_doc_text(doc, LAB_DOC_WHOLE, "No kernels are kept in %s.", folder);
    lab_doc_print(doc, call->console);
    return 0;
}

/* --- clear --- */

static int clear_kernels(const struct lab_command_call *call, struct lab_err *err) {
    const char *folder = folder_of(call, err);
    int count;
    int64_t bytes;
    if (!folder || lab_kernel_cache_clear(folder, &count, &bytes, err))
        return -1;
    struct lab_doc *doc = lab_doc_open("Kernels", call->arena);
    LAB_AUTO(str, size);
    lab_str_add_bytes_binary(&size, (double)bytes);
    lab_doc_data(doc, "folder", lab_value_string(call->arena, folder));
    lab_doc_data(doc, "removed", lab_value_int(call->arena, count));
    lab_doc_data(doc, "removed_bytes", lab_value_int(call->arena, bytes));
    lab_doc_text(doc, LAB_DOC_WHOLE, "Removed %d %s, %s, from %s.", count,
                 count == 1 ? "kernel" : "kernels", size.text, folder);
    lab_doc_print(doc, call->console);
    return 0;
}

/* Kernels are made for one machine: only tunings go between files. */
static int share(const struct lab_command_call *call, struct lab_err *err) {
    const char *action = call->words[0];
    if (!lab_str_equal(call->words[1], "tuning"))
        return lab_err_set(err, LAB_ERR_USER, "cache %s: only 'tuning' can be shared, not '%s'",
                           action, call->words[1]);
    if (call->word_count < 3)
        return lab_err_set(err, LAB_ERR_USER, "cache %s tuning: a file must be named", action);
    return lab_str_equal(action, "export")
               ? lab_cache_export_tuning(call->console, call->arena, call->words[2], err)
               : lab_cache_import_tuning(call->console, call->arena, call->words[2], err);
}

static int cache_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    if (check_word(call->words[0], actions, err) || check_word(call->words[1], caches, err))
        return -1;
    bool tuning = lab_str_equal(call->words[1], "tuning");
    bool lists = lab_str_equal(call->words[0], "list");
    if (!lists && !lab_str_equal(call->words[0], "clear"))
        return share(call, err);
    if (call->word_count > 2)
        return lab_err_set(err, LAB_ERR_USER, "cache %s %s takes no '%s'", call->words[0],
                           call->words[1], call->words[2]);
    if (lists)
        return tuning ? lab_cache_list_tuning(call->console, call->arena, err)
                      : list_kernels(call, err);
    return tuning ? lab_cache_clear_tuning(call->console, call->arena, err)
                  : clear_kernels(call, err);
}

static const char *const *cache_complete(struct lab_arena *arena) {
    (void)arena;
    return actions;
}

static const struct lab_manual_example examples[] = {
    {"gpulab cache list kernels",
     "which kernels are kept, how large they are, when they were used"},
    {"gpulab cache clear kernels", "remove them: the next run on a GPU compiles them again"},
    {"gpulab cache list tuning", "which kernels were tuned, for what, and the result"},
    {"gpulab cache export tuning tuned.json", "what was tuned, for other machines of the kind"},
    {"gpulab cache import tuning tuned.json", "import it; of two tunings the later one is kept"},
    {NULL},
};

const struct lab_command lab_command_cache = {
    .name = "cache",
    .summary = "show, clear or share what is kept for later runs: kernels and tunings",
    .usage = "list|clear kernels|tuning, export|import tuning FILE",
    .description =
        "Kernels for GPUs are compiled when they are first needed and kept in "
        "$XDG_CACHE_HOME/gpulab/kernels (~/.cache/gpulab/kernels), one file for each, by source, "
        "options, compiler and architecture. Nothing else is lost when they are removed.\n"
        "\n"
        "Configurations that 'gpulab tune' has found are kept in $XDG_CACHE_HOME/gpulab/tuning.db. "
        "Each is valid for the kernel's version, the shape's class, the dtype and the device with "
        "its driver, compiler and power limit. An export can be imported on another machine; it is "
        "used where all of that is the same.",
    .min_words = 2,
    .max_words = 3,
    .examples = examples,
    .complete = cache_complete,
    .run = cache_run,
};
