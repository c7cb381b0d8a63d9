/*
 * tracker_journal.c: how far a study was sent. A line is appended once a batch lies with the
 * tracker; the last line of a run counts. A line that a crash cut off is none: its batch is sent
 * again, over the same bytes of the file, or under the same number. For trackers that deliver
 * by themselves a line "next …" before it says what that batch has.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/lock.h"
#include "base/file/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER       "gpulab tracker 1\n"
#define JOURNAL_MOST (256 << 20)
#define FIELDS       14
#define FIELDS_LEAST 8 /* of earlier versions */
#define ABOUT_TO     "next "

static void keep(struct track_journal *journal, int64_t run, const struct track_position *position,
                 bool about_to) {
    if (!about_to)
        journal->items[run] = *position;
    journal->next[run] = about_to ? *position : (struct track_position){0};
}

/* One with fewer fields is none: strtoll would go on in the next line. */
static void read_line(struct track_journal *journal, const char *line) {
    int64_t fields[FIELDS] = {0};
    char *end = NULL;
    bool about_to = lab_str_starts(line, ABOUT_TO);
    line += about_to ? strlen(ABOUT_TO) : 0;
    for (int i = 0; i < FIELDS; i++, line = end) {
        fields[i] = strtoll(line, &end, 10);
        bool missing = end == line || memchr(line, '\n', (size_t)(end - line));
        if (i < FIELDS_LEAST && (missing || fields[i] < 0))
            return;
        if (missing) {
            fields[i] = 0;
            break;
        }
    }
    struct track_position position = {fields[1],  fields[2],  fields[3], fields[4], fields[5],
                                      fields[6],  fields[7],  fields[8], fields[9], fields[10],
                                      fields[11], fields[12], fields[13]};
    if (fields[0] < journal->count)
        keep(journal, fields[0], &position, about_to);
}

/* Returns the length of what is whole, or -1. */
static int64_t read_journal(struct track_journal *journal, const char *path,
                            struct lab_arena *arena, struct lab_err *err) {
    char *text;
    size_t length;
    if (lab_file_read(path, JOURNAL_MOST, arena, &text, &length, err) < 0)
        return -1;
    size_t whole = length;
    while (whole > 0 && text[whole - 1] != '\n')
        whole--;
    text[whole] = '\0';
    for (char *zero;
         (zero = memchr(text, '\0', whole));) /* of a block that never reached the disk */
        *zero = '?';
    if (whole > 0 && !lab_str_starts(text, HEADER))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s isn't a journal of this version: remove it to send everything again",
                           path);
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
        read_line(journal, line + 1);
    return (int64_t)whole;
}

/* To write: the torn end goes, a new one gets its first line. */
static int prepare(struct track_journal *journal, const char *path, struct lab_arena *arena,
                   struct lab_err *err) {
    int64_t whole = read_journal(journal, path, arena, err);
    if (whole < 0)
        return -1;
    if (ftruncate(journal->fd, whole) < 0 || lseek(journal->fd, whole, SEEK_SET) < 0 ||
        (whole == 0 && lab_file_write_all(journal->fd, HEADER, strlen(HEADER)) < 0))
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", path);
    return 0;
}

int track_journal_open(const char *folder, const char *name, int run_count, bool look,
                       struct lab_arena *arena, struct track_journal *ret_journal, bool *ret_busy,
                       struct lab_err *err) {
    const char *above = lab_arena_printf(arena, "%s/track", folder);
    const char *path = lab_arena_printf(arena, "%s/%s.log", above, name);
    struct track_journal journal = {.fd = -1, .count = run_count + 1};
    journal.items = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *journal.items);
    journal.next = lab_arena_alloc(arena, (size_t)run_count + 1, sizeof *journal.next);
    struct stat info;
    *ret_busy = false;
    if (stat(path, &info) == 0)
        journal.changed_ns = info.st_mtim.tv_sec * LAB_NS_PER_S + info.st_mtim.tv_nsec;
    if (look && access(path, F_OK) == 0 && read_journal(&journal, path, arena, err) < 0)
        return -1;
    if (!look) {
        if (lab_own_folder(folder, err) < 0 || lab_own_folder(above, err) < 0 ||
            (journal.fd = lab_own_open(path, LAB_OWN_CHANGE, err)) < 0)
            return -1;
        *ret_busy = lab_lock_try(journal.fd, path) != LAB_LOCK_TAKEN;
        if (!*ret_busy && prepare(&journal, path, arena, err) < 0) {
            lab_file_close(&journal.fd);
            return -1;
        }
    }
    *ret_journal = journal;
    return 0;
}

void track_journal_close(struct track_journal *journal) {
    if (journal->noted)
        (void)fdatasync(journal->fd);
    lab_file_close(&journal->fd);
}

int track_journal_note(struct track_journal *journal, int64_t run,
                       const struct track_position *position, bool about_to, struct lab_err *err) {
    LAB_AUTO(str, line);
    lab_str_printf(
        &line, "%s%lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld\n",
        about_to ? ABOUT_TO : "", (long long)run, (long long)position->attempt,
        (long long)position->batch, (long long)position->bytes, (long long)position->rows,
        (long long)position->metric, (long long)position->sample_ns, (long long)position->ended,
        (long long)position->read, (long long)position->digest, (long long)position->revision,
        (long long)position->all_gpus, (long long)position->counted,
        (long long)position->fractions);
    lab_failpoint("before-track-note");
    if (lab_file_write_all(journal->fd, line.text, line.length) < 0 ||
        (about_to && fdatasync(journal->fd) < 0))
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "noting what was sent");
    lab_failpoint("after-track-note");
    journal->noted = true;
    keep(journal, run, position, about_to);
    return 0;
}
