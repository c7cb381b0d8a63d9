/* recordings_find.c: files, folders and studies of recordings, in an order of their own, with
 * labels. */
#include "load/recordings.h"

#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* of folders below the one that was named */

struct found {
    struct lab_recording_source *items;
    int count, capacity;
    struct lab_arena *arena;
};

/* --- names --- */

/* Best first: of files that differ in these alone, one is taken. */
static const char *const endings[] = {".db", ".sqlite", "_multi_gpu.json", ".json", ".csv"};
enum { ENDINGS = sizeof endings / sizeof *endings };

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* -1 = none of them */
static int ending_of(const char *name) {
    for (int i = 0; i < ENDINGS; i++)
        if (ends_with(name, endings[i]))
            return i;
    return -1;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *without_ending(const char *name, struct lab_arena *arena) {
    int ending = ending_of(name);
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
    static const char all_gpus[] = "_multi_gpu";
    size_t length = strlen(name);
    if (ends_with(name, all_gpus))
        length -= strlen(all_gpus);
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

static bool is_there(const struct found *found, const char *path) {
    struct stat a, b;
    if (stat(path, &a) < 0)
        return false;
    for (int i = 0; i < found->count; i++)
        if (stat(found->items[i].path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return true;
    return false;
}

static void add(struct found *found, const char *path, const char *label, bool study, bool named) {
    if (is_there(found, path))
        return;
    LAB_MEM_GROW(&found->items, found->count, &found->capacity);
    found->items[found->count++] =
        (struct lab_recording_source){.path = path, .label = label, .study = study, .named = named};
}

static const char *database_in(const char *folder, struct lab_arena *arena) {
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* A file of the same name with a better ending lies beside it. */
static bool has_better(const char *path, struct lab_arena *arena) {
    int ending = ending_of(path);
    const char *stem = without_ending(path, arena);
    for (int i = 0; i < ending; i++)
        if (access(lab_arena_printf(arena, "%s%s", stem, endings[i]), F_OK) == 0)
            return true;
    return false;
}

/* --- folders --- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* `label`: of all there is; NULL = by the file's name here, by the folder's below. */
static int look(struct found *found, const char *folder, const char *below, const char *label,
                int depth, struct lab_err *err) {
    struct lab_arena *arena = found->arena;
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    if (count < 0 && depth > 0 && (errno == EACCES || errno == ENOENT))
        return 0; /* somebody else's, or gone meanwhile */
    if (count < 0)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s can't be read", folder);
    int result = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        const char *path = lab_arena_printf(arena, "%s/%s", folder, name);
        const char *own = label ? label : *below ? below : NULL;
        struct stat info;
        if (result < 0 || name[0] == '.' || lstat(path, &info) < 0) {
            free(entries[i]);
            continue;
        }
        const char *database = S_ISDIR(info.st_mode) ? database_in(path, arena) : NULL;
        if (database)
            add(found, database, label, true, false);
        else if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
            result =
                look(found, path, lab_arena_printf(arena, "%s%s%s", below, *below ? "/" : "", name),
                     label, depth + 1, err);
        else if (S_ISREG(info.st_mode) && ending_of(name) >= 0 && !has_better(path, arena))
            add(found, path, own ? own : lab_recordings_label(without_ending(name, arena), arena),
                false, false);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int look_in(struct found *found, const char *word, const char *label, struct lab_err *err) {
    struct lab_arena *arena = found->arena;
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    const char *folder = lab_arena_strndup(arena, word, length);
    const char *database = database_in(folder, arena);
    int before = found->count;
    if (database) {
        add(found, database, label, true, true);
        return 0;
    }
    if (look(found, folder, "", label, 0, err) < 0)
        return -1;
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
    struct stat info;
    if (stat(path, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", words[own]);
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
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = take_word(&found, words, count, i, err);
    if (result == 0) {
        make_names(&found);
        *ret_sources = lab_arena_alloc(arena, (size_t)found.count + 1, sizeof **ret_sources);
        if (found.count > 0)
            memcpy(*ret_sources, found.items, (size_t)found.count * sizeof *found.items);
        *ret_count = found.count;
    }
    lab_mem_free(found.items);
    return result;
}
