/*
 * fuzz_frame.c: a worker that sends any bytes. The same frames and the same end come out whether
 * they arrive at once or cut; a lie has a message; what was heard, written again, is heard the
 * same.
 * covers: src/run/frame.c
 */
#include "base/random.h"
#include "run/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct talk {
    struct lab_str heard; /* every frame, written again */
    struct lab_err err;
    int status;
    int64_t skipped;
};

static void take_all(struct lab_frame_reader *reader, struct talk *talk) {
    struct lab_frame frame;
    LAB_AUTO(arena, arena);
    while ((talk->status = lab_frame_reader_next(reader, &arena, &frame, &talk->err)) > 0)
        lab_frame_write(&frame, &talk->heard);
    if ((talk->status < 0) != (talk->err.code == LAB_ERR_SYSTEM && talk->err.text[0]))
        abort();
}

/* Pieces of up to `most` bytes. */
static void listen(const uint8_t *data, size_t size, size_t most, struct talk *talk) {
    struct lab_frame_reader reader;
    lab_frame_reader_init(&reader);
    lab_str_init(&talk->heard);
    talk->err = LAB_ERR_INIT;
    talk->status = 0;
    for (size_t at = 0, piece; at < size && talk->status == 0; at += piece) {
        piece = 1 + (size_t)(lab_random_bits(most, at) % most);
        piece = most >= size || piece > size - at ? size - at : piece;
        lab_frame_reader_feed(&reader, data + at, piece);
        /* no room behind the last byte, so that the sanitizer sees any read there */
        reader.bytes.capacity = reader.bytes.length + 1;
        reader.bytes.text = lab_mem_resize(reader.bytes.text, reader.bytes.capacity, 1);
        take_all(&reader, talk);
    }
    talk->skipped = reader.skipped;
    lab_frame_reader_release(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct talk whole, cut, again;
    listen(data, size, size + 1, &whole);
    listen(data, size, 1 + size % 23, &cut);
    if (whole.status != cut.status || whole.skipped != cut.skipped ||
        strcmp(whole.err.text, cut.err.text) != 0 || whole.heard.length != cut.heard.length ||
        memcmp(whole.heard.text, cut.heard.text, cut.heard.length) != 0)
        abort();
    listen((const uint8_t *)whole.heard.text, whole.heard.length, whole.heard.length + 1, &again);
    if (again.status != 0 || again.heard.length != whole.heard.length ||
        memcmp(whole.heard.text, again.heard.text, again.heard.length) != 0)
        abort();
    lab_str_release(&whole.heard);
    lab_str_release(&cut.heard);
    lab_str_release(&again.heard);
    return 0;
}
