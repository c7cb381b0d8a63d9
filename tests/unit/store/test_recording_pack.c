/*
 * test_recording_pack.c: ticks come back from their bytes exactly, take as few of them as they
 * should, and bytes that were changed or cut off are refused.
 */
#include "store/recording/recording_pack.h"

#include "base/mem.h"
#include "base/random.h"
#include "model/sample.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>

static struct lab_chunk chunk;
static struct lab_str packed;
static struct lab_chunk_reader *reader;
static struct lab_err err;

static int set_up(void **state) {
    (void)state;
    err = LAB_ERR_INIT;
    chunk = (struct lab_chunk){0};
    lab_str_init(&packed);
    reader = lab_mem_alloc(1, sizeof *reader);
    lab_chunk_reader_init(reader);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_mem_free(chunk.times_ns);
    lab_mem_free(chunk.values);
    lab_mem_free(chunk.valid);
    lab_str_release(&packed);
    lab_chunk_reader_release(reader);
    lab_mem_free(reader);
    return 0;
}

/* A chunk of ticks each 100 ms, without any value. */
static void begin(int columns, int ticks) {
    size_t capacity = (size_t)ticks;
    chunk = (struct lab_chunk){.column_count = columns, .count = ticks, .capacity = ticks};
    chunk.times_ns = lab_mem_alloc(capacity, sizeof *chunk.times_ns);
    chunk.values = lab_mem_alloc((size_t)columns * capacity + 1, sizeof *chunk.values);
    chunk.valid = lab_mem_alloc((size_t)columns * LAB_CHUNK_WORDS(ticks) + 1, sizeof *chunk.valid);
    for (int i = 0; i < ticks; i++)
        chunk.times_ns[i] = 5000000000 + i * INT64_C(100000000);
}

static void set(int column, int tick, int64_t value) {
    chunk.values[column * chunk.capacity + tick] = value;
    chunk.valid[(size_t)column * LAB_CHUNK_WORDS(chunk.capacity) + (size_t)tick / 64] |=
        UINT64_C(1) << (tick % 64);
}

static bool is_set(int column, int tick) {
    return chunk.valid[(size_t)column * LAB_CHUNK_WORDS(chunk.capacity) + (size_t)tick / 64] >>
               (tick % 64) &
           1;
}

static size_t pack(void) {
    lab_str_clear(&packed);
    lab_chunk_pack(&chunk, &packed);
    return packed.length;
}

/* All of the chunk is in the packed bytes. */
static void check(void) {
    int64_t *values = lab_mem_alloc((size_t)chunk.count, sizeof *values);
    uint8_t *valid = lab_mem_alloc((size_t)chunk.count, 1);
    assert_int_equal(lab_chunk_reader_open(reader, packed.text, packed.length, &err), 0);
    assert_int_equal(reader->count, chunk.count);
    assert_int_equal(reader->column_count, chunk.column_count);
    assert_int_equal(lab_chunk_reader_times(reader, values, &err), 0);
    assert_memory_equal(values, chunk.times_ns, (size_t)chunk.count * sizeof *values);
    for (int c = chunk.column_count - 1; c >= 0; c--) {
        assert_int_equal(lab_chunk_reader_column(reader, c, values, valid, &err), 0);
        for (int i = 0; i < chunk.count; i++) {
            assert_int_equal(valid[i], is_set(c, i));
            if (valid[i])
                assert_true(values[i] == chunk.values[c * chunk.capacity + i]);
        }
    }
    lab_mem_free(values);
    lab_mem_free(valid);
}

LAB_TEST(any_value_comes_back) {
    begin(6, 200);
    static const int64_t odd[] = {0, -1, INT64_MIN, INT64_MAX, 1, INT64_MIN + 1, 4096};
    for (int i = 0; i < 200; i++) {
        uint64_t random = lab_random_bits(1, (uint64_t)i);
        set(0, i, odd[random % 7]);
        set(1, i, (int64_t)random);
        set(2, i, (int64_t)(random >> (i % 64)));
        if (random % 3)
            set(3, i, -(int64_t)(random % 1000));
        if (i == 199)
            set(4, i, 7); /* 5 has none at all */
    }
    pack();
    check();
}

LAB_TEST(any_number_of_ticks_comes_back) {
    for (int ticks = 1; ticks <= 130; ticks++) {
        begin(2, ticks);
        for (int i = 0; i < ticks; i++) {
            set(0, i, (int64_t)i * i);
            if (i % 2)
                set(1, i, 100 - i);
        }
        pack();
        check();
        if (ticks < 130) {
            lab_mem_free(chunk.times_ns);
            lab_mem_free(chunk.values);
            lab_mem_free(chunk.valid);
        }
    }
}

LAB_TEST(a_chunk_as_large_as_can_be_comes_back) {
    begin(LAB_COLUMNS_MAX, LAB_CHUNK_TICKS_MAX);
    for (int c = 0; c < LAB_COLUMNS_MAX; c++)
        for (int i = c % 3; i < LAB_CHUNK_TICKS_MAX; i += 1 + c % 2)
            set(c, i, c + i % 5);
    pack();
    check();
}

/* --- sizes --- */

static size_t cost(int columns) {
    size_t with = pack();
    check();
    int all = chunk.column_count;
    chunk.column_count -= columns;
    size_t without = pack();
    chunk.column_count = all;
    return with - without;
}

LAB_TEST(what_never_changes_takes_two_bytes_and_its_value) {
    begin(1, 256);
    for (int i = 0; i < 256; i++)
        set(0, i, 45);
    assert_int_equal(cost(1), 3);
}

LAB_TEST(what_was_never_read_takes_one_byte) {
    begin(1, 256);
    assert_int_equal(cost(1), 1);
}

LAB_TEST(steady_times_take_nearly_nothing) {
    begin(0, 256);
    assert_true(pack() < 40);
    check();
}

/* A counter read each tenth tick costs what its 26 readings do: the others nothing. */
LAB_TEST(slow_metrics_share_when_they_were_read) {
    begin(10, 256);
    for (int c = 0; c < 10; c++)
        for (int i = 0; i < 256; i += 10)
            set(c, i, 1000000 * c + i * 1000 + (i * 37) % 16);
    size_t ten = cost(10), one = cost(1);
    assert_true(one < 40);
    assert_true(ten < 10 * one + 40);
}

/* Noise of 8 bits takes hardly more than 8 bits. */
LAB_TEST(noise_takes_its_own_width) {
    begin(1, 256);
    for (int i = 0; i < 256; i++)
        set(0, i, 350000 + (int64_t)lab_random_below(3, (uint64_t)i, 256));
    assert_true(cost(1) <= 256 + 8 + 8);
}

LAB_TEST(a_burst_costs_only_where_it_is) {
    begin(1, 256);
    for (int i = 0; i < 256; i++)
        set(0, i, i == 100 ? INT64_C(1) << 40 : (int64_t)lab_random_below(3, (uint64_t)i, 4));
    assert_true(cost(1) < 300);
}

/* --- damage --- */

static int read_all(const char *bytes, size_t length) {
    int64_t values[LAB_CHUNK_TICKS_MAX];
    uint8_t valid[LAB_CHUNK_TICKS_MAX];
    if (lab_chunk_reader_open(reader, bytes, length, &err) < 0 ||
        lab_chunk_reader_times(reader, values, &err) < 0)
        return -1;
    for (int i = 0; i < reader->column_count; i++)
        if (lab_chunk_reader_column(reader, i, values, valid, &err) < 0)
            return -1;
    return 0;
}

static void make_some(void) {
    begin(3, 50);
    for (int i = 0; i < 50; i++) {
        set(0, i, INT64_C(3) * i);
        set(1, i, 9);
        if (i % 7 == 0)
            set(2, i, INT64_C(1000) * i);
    }
    pack();
}

LAB_TEST(every_cut_is_noticed) {
    make_some();
    for (size_t length = 0; length < packed.length; length++) {
        char *exact = lab_mem_alloc(length + 1, 1); /* the sanitizers see a read behind it */
        char *copy = lab_mem_resize(exact, length ? length : 1, 1);
        memcpy(copy, packed.text, length);
        assert_int_equal(read_all(copy, length), -1);
        assert_int_equal(err.code, LAB_ERR_SYSTEM);
        lab_mem_free(copy);
    }
    assert_int_equal(read_all(packed.text, packed.length), 0);
}

LAB_TEST(every_changed_bit_is_noticed) {
    make_some();
    for (size_t i = 0; i < 8 * packed.length; i++) {
        packed.text[i / 8] ^= (char)(1 << (i % 8));
        assert_int_equal(read_all(packed.text, packed.length), -1);
        packed.text[i / 8] ^= (char)(1 << (i % 8));
    }
    assert_int_equal(read_all(packed.text, packed.length), 0);
}

/* What has the right sum but makes no sense. */
static void refuses(const char *bytes, size_t length, const char *gist) {
    lab_str_clear(&packed);
    lab_str_add_bytes(&packed, bytes, length);
    lab_packed_sum_put(&packed, 0);
    err = LAB_ERR_INIT;
    assert_int_equal(read_all(packed.text, packed.length), -1);
    assert_contains(err.text, gist);
}

LAB_TEST(nonsense_is_refused) {
#define REFUSES(bytes, gist) refuses(bytes, sizeof(bytes) - 1, gist)
    REFUSES("", "no bytes");
    REFUSES("\x02\x01\x00\x00\x00", "version 2, known is 1");
    REFUSES("\x01\x81", "invalid header");
    REFUSES("\x01\x00\x00\x00\x00", "too many");                               /* no ticks */
    REFUSES("\x01\xff\x7f\x00\x00\x00", "too many");                           /* 16383 */
    REFUSES("\x01\x01\xff\xff\x7f\x00\x00", "too many");                       /* columns */
    REFUSES("\x01\x01\x01\x02\x00\x00\x00\x00", "too many");                   /* patterns */
    REFUSES("\x01\x01\x00\x00\x05\x00\x02", "inconsistent lengths");           /* times */
    REFUSES("\x01\x01\x01\x00\x02\x7f\x00\x02", "inconsistent lengths");       /* a column */
    REFUSES("\x01\x02\x00\x00\x02\x04\x02", "invalid times");                  /* no pattern */
    REFUSES("\x01\x02\x00\x00\x04\x02\x0a\x01\x01", "times don't ascend");     /* 5, 4 */
    REFUSES("\x01\x01\x01\x00\x02\x02\x00\x02\x04\x02", "invalid column");     /* pattern 1 */
    REFUSES("\x01\x01\x01\x00\x02\x03\x00\x02\x01\x02\x41", "invalid values"); /* 65 bits */
    REFUSES("\x01\x01\x01\x00\x02\x03\x00\x02\x03\x02\x02", "invalid values"); /* no second */
    REFUSES("\x01\x01\x01\x01\x02\x02\x02\x00\x02\x00\x00\x04\x02", "invalid values"); /* empty */
    REFUSES("\x01\x01\x01\x01\x02\x02\x02\x00\x02\x01\x09\x04\x02",
            "invalid values"); /* run of 9 */
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
