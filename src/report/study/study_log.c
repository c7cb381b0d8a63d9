/*
 * study_log.c: the end of what a run printed, for whoever asks why it failed. Ranks of a gang that
 * were processes of their own have files of their own; their lines have the rank before them.
 */
#include "base/file/file.h"
#include "report/study/study_internal.h"
#include "report/study/study_run.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define TAIL_BYTES 8192
#define LINES_MOST 5 /* of a rank */

const char *study_log_path(const struct lab_study_info *study, const struct lab_run *run, int rank,
                           const char *stream, struct lab_arena *arena) {
    if (rank == 0)
        return lab_arena_printf(arena, "%s/logs/%s.%s", study->folder, run->id, stream);
    const char *path =
        lab_arena_printf(arena, "%s/logs/%s.rank%d.%s", study->folder, run->id, rank, stream);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* The last bytes of a file, NUL-terminated; "" where there is none. */
static void read_tail(const char *path, char text[TAIL_BYTES + 1]) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    ssize_t got =
        size <= 0 ? 0 : pread(fd, text, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
    text[got > 0 ? got : 0] = '\0';
    if (size > TAIL_BYTES) { /* its first line isn't whole */
        const char *whole = strchr(text, '\n');
        memmove(text, whole ? whole + 1 : text, strlen(whole ? whole + 1 : text) + 1);
    }
}

/* The last lines that aren't empty, in their order. */
static int last_lines(char *text, const char *lines[LINES_MOST]) {
    int count = 0;
    for (char *line; (line = strsep(&text, "\r\n"));) {
        lab_str_make_printable(line);
        if (!line[strspn(line, " \t")])
            continue;
        if (count == LINES_MOST)
            memmove(lines, lines + 1, (LINES_MOST - 1) * sizeof *lines);
        count -= count == LINES_MOST;
        lines[count++] = line;
    }
    return count;
}

void study_add_log_end(struct lab_doc *doc, const struct lab_study_info *study,
                       const struct lab_run *run) {
    static const char *const streams[] = {"stderr", "stdout"};
    bool titled = false;
    for (int rank = 0; rank < run->rank_count; rank++) {
        char text[TAIL_BYTES + 1] = "";
        const char *lines[LINES_MOST];
        int count = 0;
        for (int i = 0; i < 2 && count == 0; i++) {
            const char *path = study_log_path(study, run, rank, streams[i], lab_doc_arena(doc));
            if (path)
                read_tail(path, text);
            count = path ? last_lines(text, lines) : 0;
        }
        for (int i = 0; i < count; i++) {
            if (!titled) {
                lab_doc_gap(doc);
                lab_doc_text(doc, LAB_DOC_TITLE, "Last lines");
                titled = true;
            }
            if (run->rank_count > 1)
                lab_doc_text(doc, LAB_DOC_CHOICE, "rank %d: %s", rank, lines[i]);
            else
                lab_doc_text(doc, LAB_DOC_CHOICE, "%s", lines[i]);
        }
    }
}
