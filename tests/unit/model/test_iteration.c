/* test_iteration.c: iterations as bytes and back: exact whatever they are, small when they
 * repeat. */
#include "base/random.h"
#include "model/iteration.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>

static struct lab_str packed;

static int set_up(void **state) {
    (void)state;
    lab_str_init(&packed);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_str_release(&packed);
    return 0;
}

static void comes_back(const struct lab_iteration *items, size_t count) {
    struct lab_iteration *again = NULL;
    size_t again_count = 999;
    lab_str_clear(&packed);
    lab_iterations_pack(items, count, &packed);
    ASSERT_OK(lab_iterations_unpack(packed.text, packed.length, count, &test_arena, &again,
                                    &again_count, err));
    assert_int_equal(again_count, count);
    if (count)
        assert_memory_equal(again, items, count * sizeof *items);
}

/* The bytes are copied to memory of their exact size, so that ASan sees any read behind them. */
static void refuses(const char *bytes, size_t length, size_t max_count, const char *gist) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_iteration *items = NULL;
    size_t count = 999;
    char *exact = memcpy(malloc(length ? length : 1), bytes, length);
    assert_int_equal(
        lab_iterations_unpack(exact, length, max_count, &test_arena, &items, &count, &err), -1);
    free(exact);
    assert_int_equal(err.code, LAB_ERR_SYSTEM);
    assert_contains(err.text, gist);
    assert_null(items);
    assert_int_equal(count, 999);
}

/* A pipeline that overlaps: the next H2D starts while the compute before it runs. */
static struct lab_iteration pipelined(int64_t index, int64_t jitter_ns) {
    int64_t times[2 * LAB_STAGE_COUNT], start = 900000000000000 + index * 1500000;
    for (int i = 0; i < 2 * LAB_STAGE_COUNT; i++)
        times[i] = start + (int64_t[]){0, 400000, 402000, 1900000, 1901000, 2200000}[i] +
                   (int64_t)(lab_random_symmetric(1, (uint64_t)(index * 8 + i)) * (float)jitter_ns);
    return (struct lab_iteration){
        .start_ns = times[0],
        .end_ns = times[5],
        .stages = {{times[0], times[1]}, {times[2], times[3]}, {times[4], times[5]}}};
}

LAB_TEST(any_number_of_iterations) {
    struct lab_iteration items[300];
    for (int i = 0; i < 300; i++)
        items[i] = pipelined(i, 2000);
    comes_back(items, 0);
    comes_back(NULL, 0);
    comes_back(items, 1);
    comes_back(items, 2);
    comes_back(items, 300);
}

LAB_TEST(stages_that_do_not_exist) {
    struct lab_iteration items[16] = {0};
    for (unsigned i = 0; i < 16; i++) {
        items[i] = pipelined(i, 50);
        for (int s = 0; s < LAB_STAGE_COUNT; s++)
            if (!(i & (1u << s)))
                items[i].stages[s] = (struct lab_span){0};
    }
    comes_back(items, 16);
    struct lab_iteration nothing[3] = {0};
    comes_back(nothing, 3);
    struct lab_iteration odd = {.start_ns = 5, .end_ns = 4, .stages = {{0, 7}, {-7, 0}, {0, 0}}};
    comes_back(&odd, 1);
}

LAB_TEST(nonsense_is_exact_too) {
    static const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, 63, 64, -65};
    static int64_t times[500 * sizeof(struct lab_iteration) / sizeof(int64_t)];
    struct lab_iteration items[500];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        uint64_t bits = lab_random_bits(7, i);
        times[i] = bits % 3 ? edges[bits / 3 % 9] : (int64_t)lab_random_bits(8, i);
    }
    memcpy(items, times, sizeof items);
    comes_back(items, 500);
    assert_true(packed.length <= 500 * 81 + 21);
}

static double bytes_each(int64_t jitter_ns, int stages) {
    enum { COUNT = 1000 };
    static struct lab_iteration items[COUNT];
    for (int i = 0; i < COUNT; i++) {
        items[i] = pipelined(i, jitter_ns);
        if (stages == 1) {
            struct lab_span compute = items[i].stages[LAB_STAGE_COMPUTE];
            items[i] =
                (struct lab_iteration){.start_ns = compute.start_ns, .end_ns = compute.end_ns};
            items[i].stages[LAB_STAGE_COMPUTE] = compute;
        }
    }
    comes_back(items, COUNT);
    return (double)packed.length / COUNT;
}

LAB_TEST(repetition_is_small) {
    assert_true(bytes_each(0, 3) < 7.1);
    assert_true(bytes_each(10, 3) < 10);
    assert_true(bytes_each(1000, 3) < 13.1);
    assert_true(bytes_each(1000, 1) < 5.1);
    assert_true(bytes_each(100000, 3) < 20);
}

LAB_TEST(packing_appends) {
    struct lab_iteration item = pipelined(0, 0), *again;
    size_t count;
    lab_str_add(&packed, "before");
    lab_iterations_pack(&item, 1, &packed);
    assert_memory_equal(packed.text, "before", 6);
    ASSERT_OK(lab_iterations_unpack(packed.text + 6, packed.length - 6, 1, &test_arena, &again,
                                    &count, err));
    assert_memory_equal(again, &item, sizeof item);
}

#define REFUSES(literal, max, gist) refuses(literal, sizeof(literal) - 1, max, gist)

LAB_TEST(what_was_not_packed_so) {
    REFUSES("", 10, "packed iterations: empty");
    REFUSES("\x02\x00\x00", 10, "version 2, known is 1");
    REFUSES("\x01", 10, "invalid count");
    REFUSES("\x01\x80", 10, "invalid count");
    REFUSES("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00", 10, "invalid count");
    REFUSES("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 10,
            "18446744073709551615, at most 10");
    REFUSES("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", SIZE_MAX,
            "cut off, 18446744073709551615 can't be in 1 bytes");
    REFUSES("\x01\x01\x00\x00\x00\x00", 0, "1, at most 0");
    REFUSES("\x01\x00", 10, "invalid first start");
    REFUSES("\x01\x00\x80\x80", 10, "invalid first start");
    REFUSES("\x01\x01\x00\x20\x00\x00", 10, "number 1 of 1 is cut off or damaged");
    REFUSES("\x01\x01\x00\x08\x00\x00", 10, "number 1 of 1 is cut off or damaged");
    REFUSES("\x01\x00\x00more", 10, "4 bytes too many after 0");
}

LAB_TEST(cut_off_anywhere) {
    struct lab_iteration items[5];
    for (int i = 0; i < 5; i++)
        items[i] = pipelined(i, 2000);
    lab_iterations_pack(items, 5, &packed);
    for (size_t length = 0; length < packed.length; length++)
        refuses(packed.text, length, 5, "packed iterations: ");
    refuses(packed.text, packed.length, 4, "5, at most 4 may be here");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
