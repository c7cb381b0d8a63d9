/*
 * fuzz_journal.c: a tracker's journal is refused with words, or no position in it is negative. What is
 * noted behind it is read again, whatever a crash left of its last line.
 * covers: src/track/tracker_journal.c
 */
#include "folder.h"
#include "track/tracker_internal.h"

#include <string.h>

#define RUNS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    static const struct track_position noted = {1, 2, 3, 4, 5, 6, 1};
    struct lab_err err = LAB_ERR_INIT;
    struct track_journal journal;
    bool busy;
    (void)mkdir(folder_file("track"), 0700);
    folder_write("track/fuzz.log", data, size);
    if (track_journal_open(folder, "fuzz", RUNS, false, &arena, &journal, &busy, &err) < 0) {
        require_error(&err);
        return 0;
    }
    require(!busy && journal.count == RUNS + 1);
    for (int i = 0; i < journal.count; i++)
        require(journal.items[i].attempt >= 0 && journal.items[i].bytes >= 0 &&
                journal.items[i].sample_ns >= 0);
    require(track_journal_note(&journal, 2, &noted, false, &err) == 0);
    track_journal_close(&journal);
    struct track_journal again;
    require(track_journal_open(folder, "fuzz", RUNS, true, &arena, &again, &busy, &err) == 0);
    require(memcmp(&again.items[2], &noted, sizeof noted) == 0);
    require(memcmp(&again.items[1], &journal.items[1], sizeof noted) == 0);
    track_journal_close(&again);
    return 0;
}
