/*
 * fuzz_monitor.c: any bytes either are refused with a message or read as a recording whose times
 * ascend; and that one, written as our own document, reads back with as many ticks.
 * covers: src/store/foreign/monitor_file
 */
#include "store/foreign/monitor_file_reader.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int to_text(void *state, const char *bytes, size_t length) {
    lab_str_add_bytes(state, bytes, length);
    return 0;
}

static int read_bytes(const void *bytes, size_t size, struct lab_arena *arena,
                      struct lab_recording *ret, struct lab_err *err) {
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    int result = lab_monitor_read_text(fd, "input", arena, ret, err);
    close(fd);
    return result;
}

static size_t count_ticks(const struct lab_recording *recording) {
    size_t count = 0;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        for (size_t k = 1; k < track->count; k++)
            if (track->times_ns[k] < track->times_ns[k - 1])
                abort();
        count += track->count;
    }
    if (count && recording->epoch_count < 1)
        abort();
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lab_arena arena;
    struct lab_recording recording, again;
    struct lab_err err = LAB_ERR_INIT;
    lab_arena_init(&arena);
    if (read_bytes(data, size, &arena, &recording, &err) < 0) {
        if (err.code != LAB_ERR_USER || !err.text[0])
            abort();
        lab_arena_release(&arena);
        return 0;
    }
    LAB_AUTO(str, text);
    LAB_AUTO(doc_sink, out);
    out.write = to_text;
    out.state = &text;
    size_t ticks = count_ticks(&recording);
    if (lab_monitor_export(&recording, LAB_MONITOR_JSON, -1, &out, &err) < 0 ||
        read_bytes(text.text, text.length, &arena, &again, &err) < 0 ||
        count_ticks(&again) != ticks)
        abort();
    static const enum lab_monitor_format others[] = {LAB_MONITOR_MULTI, LAB_MONITOR_SYSTEM,
                                                     LAB_MONITOR_CSV, LAB_MONITOR_PCIE_CSV};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        lab_monitor_export(&recording, others[i], -1, &out, &err);
    lab_arena_release(&arena);
    return 0;
}
