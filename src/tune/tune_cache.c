/* tune_cache.c: `gpulab cache … tuning`: list, clear, export, import. */
#include "tune/tune_cache.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/json.h"
#include "doc/doc.h"
#include "store/tuning/tuning.h"

#define FILE_BYTES_MOST (64 << 20)

static int open_cache(struct lab_arena *arena, bool writable, struct lab_tuning_cache **ret_cache,
                      const char **ret_path, struct lab_err *err) {
    const char *note = NULL;
    *ret_path = lab_tuning_cache_path(arena);
    if (!*ret_path)
        return lab_err_set(err, LAB_ERR_USER,
                           "tunings aren't kept: neither XDG_CACHE_HOME nor HOME names a folder");
    if (lab_tuning_cache_open(*ret_path, writable, arena, ret_cache, &note, err))
        return -1;
    if (note)
        lab_console_note("%s", note);
    return 0;
}

static const char *plural(int count) {
    return count == 1 ? "tuning" : "tunings";
}

/* --- list --- */

static struct lab_value *entry_value(const struct lab_tuning_entry *entry,
                                     struct lab_arena *arena) {
    struct lab_value *item = lab_value_map(arena);
    lab_value_set_string(arena, item, "kernel", entry->kernel);
    lab_value_set_string(arena, item, "shape", entry->shape);
    lab_value_set_string(arena, item, "device", entry->device);
    lab_value_set_string(arena, item, "config", entry->config);
    lab_value_set_float(arena, item, "time_ms", 1e3 * entry->time_s);
    lab_value_set_bool(arena, item, "winner_is_certain", entry->certain);
    lab_value_set_float(arena, item, "tuned_unix_s",
                        (double)entry->tuned_wall_ns / (double)LAB_NS_PER_S);
    lab_value_set_string(arena, item, "key", entry->key);
    return item;
}

/* Two lines each: neither shapes nor configurations may be cut short, and tables are too narrow. */
static void add_entry(struct lab_doc *doc, const struct lab_tuning_entry *entry) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s, tuned on ", entry->shape);
    lab_unit_add((double)entry->tuned_wall_ns / (double)LAB_NS_PER_S, LAB_UNIT_DATE, NULL, &text);
    lab_str_printf(&text, "\n    %s: ", entry->config);
    lab_str_add_time(&text, entry->time_s);
    lab_str_add(&text, entry->certain ? "" : ", not the only one");
    lab_doc_code(doc, NULL, text.text);
}

/* By device: entries of the same one come together, the latest first. */
static void print_list(const struct lab_console *console, struct lab_arena *arena, const char *path,
                       const struct lab_tuning_entry *entries, int count, int unfinished) {
    struct lab_doc *doc = lab_doc_open("Tunings", arena);
    struct lab_value *list = lab_value_list(arena);
    bool *done = lab_arena_alloc(arena, (size_t)count + 1, sizeof *done);
    for (int first = 0; first < count; first++) {
        lab_value_append(arena, list, entry_value(&entries[first], arena));
        if (done[first])
            continue;
        lab_doc_begin(doc, (struct lab_doc_section){.title = entries[first].device});
        for (int i = first; i < count; i++)
            if (lab_str_equal(entries[i].device, entries[first].device)) {
                add_entry(doc, &entries[i]);
                done[i] = true;
            }
        lab_doc_end(doc);
    }
    lab_doc_data(doc, "file", lab_value_string(arena, path));
    lab_doc_data(doc, "tunings", list);
    lab_doc_data(doc, "interrupted", lab_value_int(arena, unfinished));
    lab_doc_gap(doc);
    if (count)
        lab_doc_text(doc, LAB_DOC_WHOLE, "%d %s, in %s", count, plural(count), path);
    else
        lab_doc_text(doc, LAB_DOC_WHOLE, "No tunings are kept in %s.", path);
    if (unfinished)
        lab_doc_text(doc, LAB_DOC_WHOLE, "%d interrupted: the same command resumes.", unfinished);
    lab_doc_print(doc, console);
}

int lab_cache_list_tuning(const struct lab_console *console, struct lab_arena *arena,
                          struct lab_err *err) {
    struct lab_tuning_cache *cache = NULL;
    struct lab_tuning_entry *entries;
    const char *path;
    int count, unfinished;
    if (open_cache(arena, false, &cache, &path, err))
        return -1;
    int result = lab_tuning_cache_list(cache, arena, &entries, &count, err) ||
                 lab_tuning_cache_unfinished(cache, &unfinished, err);
    lab_tuning_cache_close(cache);
    if (result)
        return -1;
    print_list(console, arena, path, entries, count, unfinished);
    return 0;
}

/* --- clear, export, import --- */

/* One line for people, or `name`: count and the path. */
static void say(const struct lab_console *console, struct lab_arena *arena, const char *name,
                int count, const char *path, const char *line) {
    struct lab_doc *doc = lab_doc_open("Tunings", arena);
    lab_doc_data(doc, "file", lab_value_string(arena, path));
    lab_doc_data(doc, name, lab_value_int(arena, count));
    lab_doc_text(doc, LAB_DOC_WHOLE, "%s", line);
    lab_doc_print(doc, console);
}

int lab_cache_clear_tuning(const struct lab_console *console, struct lab_arena *arena,
                           struct lab_err *err) {
    struct lab_tuning_cache *cache = NULL;
    const char *path;
    int count;
    if (open_cache(arena, true, &cache, &path, err))
        return -1;
    int result = lab_tuning_cache_clear(cache, &count, err);
    lab_tuning_cache_close(cache);
    if (result == 0)
        say(console, arena, "removed", count, path,
            lab_arena_printf(arena, "Removed %d %s from %s.", count, plural(count), path));
    return result;
}

int lab_cache_export_tuning(const struct lab_console *console, struct lab_arena *arena,
                            const char *file, struct lab_err *err) {
    struct lab_tuning_cache *cache = NULL;
    struct lab_value *value;
    LAB_AUTO(str, text);
    const char *path;
    int count;
    if (open_cache(arena, false, &cache, &path, err))
        return -1;
    int result = lab_tuning_cache_export(cache, arena, &value, &count, err);
    lab_tuning_cache_close(cache);
    if (result)
        return -1;
    lab_json_write(value, 2, &text);
    lab_str_add(&text, "\n");
    if (lab_file_write_atomic(file, text.text, text.length, err) < 0)
        return -1;
    say(console, arena, "exported", count, file,
        lab_arena_printf(arena, "Wrote %d %s to %s.", count, plural(count), file));
    return 0;
}

int lab_cache_import_tuning(const struct lab_console *console, struct lab_arena *arena,
                            const char *file, struct lab_err *err) {
    struct lab_tuning_cache *cache = NULL;
    struct lab_value *value;
    const char *path;
    char *text;
    size_t length;
    int taken = 0, count = 0;
    if (lab_file_read(file, FILE_BYTES_MOST, arena, &text, &length, err) ||
        lab_json_parse(text, length, file, arena, &value, err) ||
        open_cache(arena, true, &cache, &path, err))
        return -1;
    int result = lab_tuning_cache_import(cache, value, &taken, &count, err);
    lab_tuning_cache_close(cache);
    if (result == 0)
        say(console, arena, "imported", taken, path,
            lab_arena_printf(arena, "Imported %d of %d %s from %s%s.", taken, count, plural(count),
                             file,
                             taken < count ? "; the others, or later ones, exist already" : ""));
    return result;
}
