/*
 * cache.c: `gpulab cache`: what is kept on disk for later runs: compiled kernels, which make them
 * start faster, and tuned configurations (tune/tune_cache.c), which make them run faster.
 */
#include "command/command.h"

#include "base/clock.h"
#include "device/kernel_cache.h"
#include "doc/table.h"
#include "tune/tune_cache.h"

#include <time.h>

static const char *const actions[] = {"list", "clear", "export", "import", NULL};
static const char *const caches[] = {"kernels", "tuning", NULL};

/* One of the words, or an error that names them all. */
static int check_word(const char *word, const char *const *words, struct lab_err *err) {
    struct lab_str list;
    for (int i = 0; words[i]; i++)
        if (lab_str_equal(word, words[i]))
            return 0;
    lab_str_init(&list);
    lab_str_add_list(&list, words, "or");
    lab_err_set(err, LAB_ERR_USER, "cache: '%s' isn't known here, must be %s", word, list.text);
    lab_str_release(&list);
    return -1;
}

static const char *folder_of(const struct lab_command_call *call, struct lab_err *err) {
    const char *folder = lab_kernel_cache_folder(call->arena);
    if (!folder)
        lab_err_set(err, LAB_ERR_USER,
                    "kernels aren't kept: neither XDG_CACHE_HOME nor HOME names a folder");
    return folder;
}

/* --- list --- */

static void print_json(const struct lab_command_call *call, const char *folder,
                       const struct lab_kernel_cache_entry *entries, int count) {
    struct lab_arena *arena = call->arena;
    struct lab_value *map = lab_value_map(arena), *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "kernel", entries[i].title);
        lab_value_set_string(arena, item, "file", entries[i].file);
        lab_value_set_int(arena, item, "size_bytes", entries[i].size_bytes);
        lab_value_set_float(arena, item, "used_unix_s",
                            (double)entries[i].used_wall_ns / (double)LAB_NS_PER_S);
        lab_value_set_bool(arena, item, "damaged", entries[i].damaged);
        lab_value_append(arena, list, item);
    }
    lab_value_set_string(arena, map, "folder", folder);
    lab_value_set(arena, map, "kernels", list);
    lab_console_print_json(call->console, map);
}

static void print_text(const struct lab_command_call *call, const char *folder,
                       const struct lab_kernel_cache_entry *entries, int count) {
    struct lab_table *table = lab_table_open();
    struct lab_str text;
    int64_t bytes = 0;
    lab_table_column(table, "last used", LAB_ALIGN_LEFT);
    lab_table_column(table, "size", LAB_ALIGN_RIGHT);
    lab_table_column(table, "kernel", LAB_ALIGN_LEFT);
    lab_str_init(&text);
    for (int i = 0; i < count; i++) {
        time_t used = (time_t)(entries[i].used_wall_ns / LAB_NS_PER_S);
        struct tm parts;
        char when[32] = "";
        if (localtime_r(&used, &parts))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &parts);
        lab_str_clear(&text);
        lab_str_add_bytes_binary(&text, (double)entries[i].size_bytes);
        lab_table_cell(table, "%s", when);
        lab_table_cell(table, "%s", text.text);
        lab_table_cell(table, "%s", entries[i].title);
        bytes += entries[i].size_bytes;
    }
    lab_str_clear(&text);
    if (count) {
        lab_table_write(table, call->console->style, &text);
        lab_str_printf(&text, "\n%d %s, ", count, count == 1 ? "kernel" : "kernels");
        lab_str_add_bytes_binary(&text, (double)bytes);
        lab_str_printf(&text, ", in %s\n", folder);
    } else {
        lab_str_printf(&text, "No kernels are kept in %s.\n", folder);
    }
    lab_console_print(call->console, &text);
    lab_str_release(&text);
    lab_table_close(table);
}

static int list_kernels(const struct lab_command_call *call, struct lab_err *err) {
    const char *folder = folder_of(call, err);
    struct lab_kernel_cache_entry *entries;
    int count;
    if (!folder || lab_kernel_cache_list(folder, call->arena, &entries, &count, err))
        return -1;
    if (call->console->json)
        print_json(call, folder, entries, count);
    else
        print_text(call, folder, entries, count);
    return 0;
}

/* --- clear --- */

static int clear_kernels(const struct lab_command_call *call, struct lab_err *err) {
    const char *folder = folder_of(call, err);
    int count;
    int64_t bytes;
    if (!folder || lab_kernel_cache_clear(folder, &count, &bytes, err))
        return -1;
    if (call->console->json) {
        struct lab_value *map = lab_value_map(call->arena);
        lab_value_set_string(call->arena, map, "folder", folder);
        lab_value_set_int(call->arena, map, "removed", count);
        lab_value_set_int(call->arena, map, "removed_bytes", bytes);
        lab_console_print_json(call->console, map);
        return 0;
    }
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "Removed %d %s, ", count, count == 1 ? "kernel" : "kernels");
    lab_str_add_bytes_binary(&text, (double)bytes);
    lab_str_printf(&text, ", from %s.\n", folder);
    lab_console_print(call->console, &text);
    lab_str_release(&text);
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
    {"gpulab cache list tuning", "which kernels were tuned, for what, and what came of it"},
    {"gpulab cache export tuning tuned.json", "what was tuned, for other machines of the kind"},
    {"gpulab cache import tuning tuned.json", "take it in; of two tunings the later one stands"},
    {NULL},
};

const struct lab_command lab_command_cache = {
    .name = "cache",
    .summary = "show, clear or share what is kept for later runs: kernels and tunings",
    .usage = "list|clear kernels|tuning, export|import tuning FILE",
    .description =
        "Kernels for GPUs are compiled when they are first needed and kept in "
        "$XDG_CACHE_HOME/gpulab/kernels (~/.cache/gpulab/kernels), one file for each, by source, "
        "options, compiler and architecture. Nothing else is lost when they are removed.\n\n"
        "Configurations that 'gpulab tune' has found are kept in $XDG_CACHE_HOME/gpulab/tuning.db "
        "and hold for the kernel's version, the shape's class, the dtype and the device with its "
        "driver, compiler and power limit. An export can be taken in on another machine; it is "
        "used "
        "there where all of that is the same.",
    .min_words = 2,
    .max_words = 3,
    .examples = examples,
    .complete = cache_complete,
    .run = cache_run,
};
