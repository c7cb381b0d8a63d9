/* frame_fixture.h: frames that are said, honest ones and lies, and what a reader hears of them. */
#pragma once

#include "run/frame.h"

#include "test.h"
#include <string.h>

#define UNKNOWN_TYPE 77

static struct lab_arena arena;
static struct lab_str sent;
static struct lab_frame_reader reader;

static inline int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    lab_str_init(&sent);
    lab_frame_reader_init(&reader);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    lab_arena_release(&arena);
    lab_str_release(&sent);
    lab_frame_reader_release(&reader);
    return 0;
}

/* --- saying --- */

static inline void say(struct lab_frame frame) {
    lab_frame_write(&frame, &sent);
}

#define SAY(...) say((struct lab_frame){__VA_ARGS__})

static inline void say_hello(int rank_count) {
    SAY(.type = LAB_FRAME_HELLO, .hello = {LAB_FRAME_VERSION, 4711, rank_count});
}

static inline void say_raw(int64_t length, int type, int rank, const char *payload, size_t bytes) {
    for (int i = 0; i < 4; i++)
        lab_str_add_bytes(&sent, (char[]){(char)(length >> (8 * i))}, 1);
    for (int i = 0; i < 2; i++)
        lab_str_add_bytes(&sent, (char[]){(char)(type >> (8 * i))}, 1);
    for (int i = 0; i < 2; i++)
        lab_str_add_bytes(&sent, (char[]){(char)(rank >> (8 * i))}, 1);
    lab_str_add_bytes(&sent, payload, bytes);
}

#define RAW(type, rank, literal)                                                                   \
    say_raw((int64_t)sizeof(literal) - 1, type, rank, literal, sizeof(literal) - 1)

/* --- hearing --- */

static inline void feed(void) {
    lab_frame_reader_feed(&reader, sent.text, sent.length);
    lab_str_clear(&sent);
}

static inline struct lab_frame hear(void) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_frame frame = {0};
    feed();
    int status = lab_frame_reader_next(&reader, &arena, &frame, &err);
    if (status != 1)
        fail_msg("status %d: %s", status, err.text);
    return frame;
}

static inline void hears_nothing(void) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_frame frame;
    feed();
    assert_int_equal(lab_frame_reader_next(&reader, &arena, &frame, &err), 0);
    assert_int_equal(err.code, LAB_ERR_NONE);
}

/* Everything before the lie is taken, the lie is named, and so it stays. */
static inline void catches(const char *gist) {
    struct lab_frame frame = {.rank = 999};
    /* the frames behind it must not lend it their bytes, nor be read */
    say_raw(8, LAB_FRAME_WARNING, 0, "honest!", 8);
    feed();
    /* no room behind the last byte: ASan sees any read there */
    reader.bytes.text = lab_mem_resize(reader.bytes.text, reader.bytes.length + 1, 1);
    reader.bytes.capacity = reader.bytes.length + 1;
    for (int again = 0; again < 2; again++) {
        struct lab_err err = LAB_ERR_INIT;
        assert_int_equal(lab_frame_reader_next(&reader, &arena, &frame, &err), -1);
        assert_int_equal(err.code, LAB_ERR_SYSTEM);
        if (!strstr(err.text, gist))
            fail_msg("'%s' doesn't say '%s'", err.text, gist);
        assert_int_equal(frame.rank, 999);
        size_t pending = lab_frame_reader_pending(&reader);
        say_hello(1);
        feed();
        assert_int_equal(lab_frame_reader_pending(&reader), pending);
    }
    lab_frame_reader_release(&reader);
    lab_frame_reader_init(&reader);
}

static inline void catches_after_hello(const char *gist) {
    struct lab_str lie = sent;
    lab_str_init(&sent);
    say_hello(2);
    assert_int_equal(hear().type, LAB_FRAME_HELLO);
    lab_str_add_bytes(&sent, lie.text, lie.length);
    lab_str_release(&lie);
    catches(gist);
}

#define CATCHES(type, literal, gist)                                                               \
    do {                                                                                           \
        RAW(type, 1, literal);                                                                     \
        catches_after_hello(gist);                                                                 \
    } while (0)

static const struct lab_iteration some[] = {
    {1000, 1900, {{1000, 1200}, {1210, 1800}, {1805, 1900}}},
    {1900, 2800, {{1900, 2100}, {2110, 2700}, {2705, 2800}}},
    {5000, 6000, {{0, 0}, {5000, 6000}, {0, 0}}},
};
