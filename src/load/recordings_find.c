/* recordings_find.c: files, folders and studies of recordings, in an order of their own, with
 * labels. */
#include "load/recordings.h"

#include "base/file/walk.h"
#include "base/str.h"
#include "run/folder.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Best first: of files that differ in these alone, one is taken. */
static const char *const endings[] = {".db", ".sqlite", "_multi_gpu.json", ".json", ".csv", NULL};
static const struct lab_walk recordings_below = {
    .holds = "study.db", .endings = endings, .depth = 16};

struct found {
    struct lab_recording_source *items;
    int count;
    struct lab_walk_seen seen;
    struct lab_arena *arena;
};

/* --- names --- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *without_ending(const char *name, struct lab_arena *arena) {
    int ending = lab_walk_ending(name, endings);
    return ending < 0 ? name
                      : lab_arena_strndup(arena, name, strlen(name) - strlen(endings[ending]));
}

static size_t digits_before(const char *text, size_t end) {
    size_t count = 0;
    while (count < end && isdigit((unsigned char)text[end - 1 - count]))
        count++;
    return count;
}

/* The length without a repetition's number or a time at the end; the whole if there is none. */
static size_t common_length(const char *name, size_t length) {
    static const char *const words[] = {"run", "repeat", "rep", "r"};
    size_t digits = digits_before(name, length), at = length - digits;
    if (digits == 0 || at == 0)
        return length;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t word = strlen(words[i]);
        if (at > word + 1 && strncmp(name + at - word, words[i], word) == 0 &&
            strchr("_-.", name[at - word - 1]))
            return at - word - 1;
    }
    if (!strchr("_-", name[at - 1]))
        return length;
    if (digits == 8 && at > 1) /* a date */
        return at - 1;
    size_t date = digits_before(name, at - 1);
    bool time = (digits == 6 || digits == 4) && date == 8 && at > date + 2 &&
                strchr("_-", name[at - 2 - date]);
    return time ? at - 2 - date : length;
}

const char *lab_recordings_label(const char *name, struct lab_arena *arena) {
    static const char *const all_gpus[] = {"_multi_gpu", NULL};
    size_t length = strlen(name);
    if (lab_walk_ending(name, all_gpus) == 0)
        length -= strlen(all_gpus[0]);
    return lab_arena_strndup(arena, name, common_length(name, length));
}

const char *lab_recordings_split(const char *word, struct lab_arena *arena, const char **ret_path) {
    const char *equals = strchr(word, '=');
    *ret_path = word;
    if (!equals || equals == word || !equals[1] || memchr(word, '/', (size_t)(equals - word)) ||
        access(word, F_OK) == 0)
        return NULL;
    *ret_path = equals + 1;
    return lab_arena_strndup(arena, word, (size_t)(equals - word));
}

/* --- files --- */

static void add(struct found *found, const char *path, const char *label, bool study, bool named) {
    if (lab_walk_again(&found->seen, path, found->arena))
        return;
    LAB_ADD(found->items, found->count, found->arena) =
        (struct lab_recording_source){.path = path, .label = label, .study = study, .named = named};
}

static const char *database_in(const char *folder, struct lab_arena *arena) {
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* --- folders --- */

/* Without `label` files are labelled by their names here, by their folders below. */
static int look_in(struct found *found, const char *word, const char *label, struct lab_err *err) {
    struct lab_arena *arena = found->arena;
    const char *folder = lab_walk_trim(word, arena), *database = database_in(folder, arena);
    struct lab_walk_find *finds;
    int count;
    if (database) {
        add(found, database, label, true, true);
        return 0;
    }
    if (lab_walk(folder, &recordings_below, arena, &finds, &count, err) < 0)
        return -1;
    int before = found->count;
    for (int i = 0; i < count; i++) {
        const struct lab_walk_find *find = &finds[i];
        if (find->folder)
            add(found, lab_arena_printf(arena, "%s/study.db", find->path), label, true, false);
        else
            add(found, find->path,
                label          ? label
                : *find->below ? find->below
                               : lab_recordings_label(without_ending(find->name, arena), arena),
                false, false);
    }
    if (found->count > before)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "no recordings in %s: they end in .db, .json or .csv, and a study keeps its "
                       "own in study.db",
                       word);
}

/* --- words --- */

/* What a word labels where there are several: the folder's or file's name, or all of the word where
 * another has the same. */
static const char *label_of_word(const char *const *words, int count, int own,
                                 struct lab_arena *arena) {
    const char *path;
    lab_recordings_split(words[own], arena, &path);
    const char *name = without_ending(base_of(path), arena);
    for (int i = 0; i < count; i++) {
        const char *other;
        if (i == own || lab_recordings_split(words[i], arena, &other))
            continue;
        if (lab_str_equal(without_ending(base_of(other), arena), name) &&
            !lab_str_equal(other, path))
            return lab_recordings_label(without_ending(path, arena), arena);
    }
    return lab_recordings_label(name, arena);
}

static int take_word(struct found *found, const char *const *words, int count, int own,
                     struct lab_err *err) {
    const char *path, *label = lab_recordings_split(words[own], found->arena, &path);
    struct lab_err refused = LAB_ERR_INIT;
    struct stat info;
    if (stat(path, &info) < 0) {
        int missing = errno;
        bool file = strchr(path, '/') || lab_walk_ending(path, endings) >= 0;
        if (!label && count > 1)
            label = label_of_word(words, count, own, found->arena); /* not its folder's: a time */
        if (lab_folder_resolve(path, found->arena, &path, &refused) < 0)
            return file ? lab_err_set_errno(err, LAB_ERR_USER, missing, "%s", words[own])
                        : lab_err_set(err, refused.code, "%s", refused.text);
        return look_in(found, path, label, err);
    }
    bool study = lab_str_equal(base_of(path), "study.db");
    if (!label && (count > 1 || (!S_ISDIR(info.st_mode) && !study)))
        label = label_of_word(words, count, own, found->arena);
    if (S_ISDIR(info.st_mode))
        return look_in(found, path, label, err);
    add(found, path, label, study, true);
    return 0;
}

static void make_names(struct found *found) {
    for (int i = 0; i < found->count; i++)
        found->items[i].name = without_ending(base_of(found->items[i].path), found->arena);
    for (int i = 0; i < found->count; i++)
        for (int k = 0; k < found->count; k++)
            if (i != k && lab_str_equal(without_ending(base_of(found->items[k].path), found->arena),
                                        found->items[i].name))
                found->items[i].name = without_ending(found->items[i].path, found->arena);
}

int lab_recordings_find(const char *const *words, int count, struct lab_arena *arena,
                        struct lab_recording_source **ret_sources, int *ret_count,
                        struct lab_err *err) {
    struct found found = {.arena = arena};
    for (int i = 0; i < count; i++)
        if (take_word(&found, words, count, i, err) < 0)
            return -1;
    make_names(&found);
    *ret_sources = found.items;
    *ret_count = found.count;
    return 0;
}
