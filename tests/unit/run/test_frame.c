/*
 * test_frame.c: a worker's conversation as bytes and back, however the pipe cuts them; and workers
 * that lie, each told what its lie was.
 */
#include "frame_fixture.h"

#include "base/random.h"
#include <math.h>
#include <stdlib.h>

/* --- honest workers --- */

LAB_TEST(every_type_comes_back) {
    SAY(.type = LAB_FRAME_HELLO, .rank = 2, .hello = {3, INT64_MAX, 3});
    struct lab_frame frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_HELLO);
    assert_int_equal(frame.rank, 2);
    assert_int_equal(frame.hello.version, 3);
    assert_true(frame.hello.pid == INT64_MAX);
    assert_int_equal(frame.hello.rank_count, 3);
    assert_int_equal(reader.rank_count, 3);

    static const enum lab_frame_type texts[] = {LAB_FRAME_PHASE, LAB_FRAME_WARNING, LAB_FRAME_JOB};
    for (int i = 0; i < 3; i++) {
        SAY(.type = texts[i], .rank = i, .text = i == 1 ? "" : "wärm-up");
        frame = hear();
        assert_int_equal(frame.type, texts[i]);
        assert_int_equal(frame.rank, i);
        assert_string_equal(frame.text, i == 1 ? "" : "wärm-up");
    }

    SAY(.type = LAB_FRAME_PROGRESS, .rank = 1, .progress = {INT64_MAX - 1, INT64_MAX});
    frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_PROGRESS);
    assert_true(frame.progress.done == INT64_MAX - 1 && frame.progress.total == INT64_MAX);
    SAY(.type = LAB_FRAME_PROGRESS, .progress = {12, 0});
    frame = hear();
    assert_true(frame.progress.done == 12 && frame.progress.total == 0);

    SAY(.type = LAB_FRAME_ITERATIONS, .rank = 1, .iterations = {500, some, 3});
    frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_ITERATIONS);
    assert_int_equal(frame.iterations.first, 500);
    assert_int_equal(frame.iterations.count, 3);
    assert_memory_equal(frame.iterations.items, some, sizeof some);

    const struct lab_reported_metric told[] = {{"loss", "µ", -3.25, 120, 3, -7},
                                               {"acc", "", NAN, NAN, -1, 0},
                                               {"x", NULL, -INFINITY, 0, -1, 0}};
    SAY(.type = LAB_FRAME_METRICS, .metrics = {told, 3});
    frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_METRICS);
    assert_int_equal(frame.metrics.count, 3);
    const struct lab_reported_metric *heard = frame.metrics.items;
    assert_string_equal(heard[0].name, "loss");
    assert_string_equal(heard[0].unit, "µ");
    assert_true(heard[0].value == -3.25 && heard[0].time_ns == -7 && heard[0].step == 120);
    assert_true(heard[0].rank == 3 && heard[1].rank == -1);
    assert_true(isnan(heard[1].value) && isnan(heard[1].step));
    assert_true(heard[2].value == -INFINITY && !*heard[2].unit);

    SAY(.type = LAB_FRAME_FAILURE,
        .failure = {LAB_ERR_MEMORY, "device full", LAB_HINT_OUT_OF_DEVICE_MEMORY});
    frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_FAILURE);
    assert_int_equal(frame.failure.code, LAB_ERR_MEMORY);
    assert_string_equal(frame.failure.text, "device full");
    assert_int_equal(frame.failure.hint, LAB_HINT_OUT_OF_DEVICE_MEMORY);

    SAY(.type = LAB_FRAME_ACK, .rank = 2);
    frame = hear();
    assert_int_equal(frame.type, LAB_FRAME_ACK);
    assert_int_equal(frame.rank, 2);
    hears_nothing();
    assert_int_equal(lab_frame_reader_pending(&reader), 0);
    assert_int_equal(reader.skipped, 0);
}

LAB_TEST(the_bytes_are_as_documented) {
    SAY(.type = LAB_FRAME_FAILURE, .rank = 0x0102,
        .failure = {LAB_ERR_MEMORY, "ä", LAB_HINT_CPUSET});
    assert_int_equal(sent.length, 22);
    assert_memory_equal(sent.text, "\16\0\0\0\10\0\2\1\3\0\0\0\303\244\0cpuset\0", 22);
}

/* Given a hint that a later version made, then the failure comes without one. */
LAB_TEST(an_unknown_hint_is_none) {
    say_hello(1);
    hear();
    RAW(LAB_FRAME_FAILURE, 0, "\1\0\0\0x\0of_a_later_version\0");
    struct lab_frame frame = hear();
    assert_string_equal(frame.failure.text, "x");
    assert_int_equal(frame.failure.hint, LAB_HINT_NONE);
}

LAB_TEST(a_worker_hears_its_acknowledgement) {
    reader.rank_count = 4;
    SAY(.type = LAB_FRAME_ACK, .rank = 3);
    assert_int_equal(hear().type, LAB_FRAME_ACK);
}

LAB_TEST(unknown_types_are_skipped_and_counted) {
    say_hello(1);
    RAW(UNKNOWN_TYPE, 0, "from the future");
    RAW(0, 0, "");
    RAW(65535, 0, "\xff");
    SAY(.type = LAB_FRAME_WARNING, .text = "known");
    assert_int_equal(hear().type, LAB_FRAME_HELLO);
    assert_string_equal(hear().text, "known");
    assert_int_equal(reader.skipped, 3);
    RAW(UNKNOWN_TYPE, 0, "last");
    hears_nothing();
    assert_int_equal(reader.skipped, 4);
    assert_int_equal(lab_frame_reader_pending(&reader), 0);
}

static char *text_of(size_t length, const char *end) {
    char *text = lab_arena_alloc(&arena, length + strlen(end) + 1, 1);
    memset(text, 'x', length);
    memcpy(text + length, end, strlen(end) + 1);
    return text;
}

LAB_TEST(texts_are_cut_at_the_cap) {
    const size_t most = LAB_FRAME_MAX_BYTES - 1;
    say_hello(1);
    hear();
    const char *fits = text_of(most - 2, "ä");
    SAY(.type = LAB_FRAME_WARNING, .text = fits);
    assert_string_equal(hear().text, fits);
    SAY(.type = LAB_FRAME_WARNING, .text = text_of(most - 1, "ä"));
    assert_int_equal(strlen(hear().text), most - 1); /* no half of a letter */
    SAY(.type = LAB_FRAME_WARNING, .text = text_of(most, "\xff"));
    assert_int_equal(strlen(hear().text), most);
    SAY(.type = LAB_FRAME_FAILURE, .failure = {LAB_ERR_USER, text_of(2 * most, "")});
    assert_int_equal(strlen(hear().failure.text), most - 4 - 1024); /* its hint needs room */
    const char *huge = text_of(2 * most, "");
    SAY(.type = LAB_FRAME_METRICS, .metrics = {&(struct lab_reported_metric){huge, huge, 1, 1}, 1});
    assert_int_equal(strlen(hear().metrics.items[0].unit), LAB_FRAME_MAX_NAME - 1);
}

LAB_TEST(what_is_not_utf8_is_replaced_by_the_writer) {
    say_hello(1);
    hear();
    SAY(.type = LAB_FRAME_WARNING, .text = "a\xff\xfe ä \xc3");
    assert_string_equal(hear().text, "a?? ä ?");
    SAY(.type = LAB_FRAME_WARNING, .text = NULL);
    assert_string_equal(hear().text, "");
}

LAB_TEST(the_worst_chunk_of_iterations_fits) {
    const size_t numbers = LAB_FRAME_MAX_ITERATIONS * sizeof *some / sizeof(int64_t);
    uint64_t *noise = lab_arena_alloc(&arena, numbers, sizeof *noise);
    for (size_t i = 0; i < numbers; i++)
        noise[i] = lab_random_bits(3, i);
    say_hello(1);
    hear();
    SAY(.type = LAB_FRAME_ITERATIONS,
        .iterations = {0, (const struct lab_iteration *)(const void *)noise,
                       LAB_FRAME_MAX_ITERATIONS});
    struct lab_frame frame = hear();
    assert_int_equal(frame.iterations.count, LAB_FRAME_MAX_ITERATIONS);
    assert_memory_equal(frame.iterations.items, noise, numbers * sizeof *noise);
}

/* --- cuts --- */

static void say_at_random(uint64_t seed, uint64_t i) {
    uint64_t bits = lab_random_bits(seed, i);
    int rank = (int)(bits >> 32 & 3);
    const char *text = text_of(bits >> 40 & 63, "ü");
    struct lab_result result = lab_result_none;
    switch (bits % 8) {
    case 0:
        SAY(.type = LAB_FRAME_PHASE, .rank = rank, .text = text);
        break;
    case 1:
        SAY(.type = LAB_FRAME_PROGRESS, .rank = rank, .progress = {(int64_t)i, 0});
        break;
    case 2:
        SAY(.type = LAB_FRAME_ITERATIONS, .rank = rank, .iterations = {7, some, 3});
        break;
    case 3:
        SAY(.type = LAB_FRAME_METRICS, .rank = rank,
            .metrics = {&(struct lab_reported_metric){text, "s", NAN, 5}, 1});
        break;
    case 4:
        SAY(.type = LAB_FRAME_FAILURE, .rank = rank, .failure = {LAB_ERR_USER, text});
        break;
    case 5:
        SAY(.type = LAB_FRAME_ACK, .rank = rank);
        break;
    default:
        result.device = text;
        SAY(.type = LAB_FRAME_RESULT, .rank = rank, .result = &result);
        break;
    }
}

static void hear_all(struct lab_str *heard) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_frame frame;
    int status;
    while ((status = lab_frame_reader_next(&reader, &arena, &frame, &err)) == 1)
        lab_frame_write(&frame, heard);
    if (status < 0)
        fail_msg("%s", err.text);
}

LAB_TEST(any_cuts_give_the_same_frames) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct lab_str known, heard;
        lab_str_init(&heard);
        say_hello(4);
        for (uint64_t i = 0; i < 40; i++)
            say_at_random(seed, i);
        known = sent;
        lab_str_init(&sent);
        lab_str_add_bytes(&sent, known.text, known.length);
        RAW(UNKNOWN_TYPE, 0, "skipped");

        uint64_t most = 1 + lab_random_bits(seed, 1000) % (seed % 2 ? 300 : 12);
        for (size_t at = 0, piece = 0; at < sent.length; piece++) {
            size_t length = (size_t)(lab_random_bits(seed, 2000 + piece) % (most + 1));
            length = length < sent.length - at ? length : sent.length - at;
            lab_frame_reader_feed(&reader, sent.text + at, length);
            at += length;
            hear_all(&heard);
            assert_true(reader.bytes.capacity <= 4096);
        }
        assert_int_equal(lab_frame_reader_pending(&reader), 0);
        assert_int_equal(reader.skipped, 1);
        assert_int_equal(heard.length, known.length);
        assert_memory_equal(heard.text, known.text, known.length);
        lab_str_release(&known);
        lab_str_release(&heard);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* Were the buffer moved for each frame, this would move 600 GB, and run into the time limit. */
LAB_TEST(a_long_backlog_is_taken_in_linear_time) {
    enum { COUNT = 400000 };
    say_hello(1);
    hear();
    for (int i = 0; i < COUNT; i++)
        SAY(.type = LAB_FRAME_ACK);
    feed();
    for (int i = 0; i < COUNT; i++) {
        struct lab_frame frame;
        assert_int_equal(lab_frame_reader_next(&reader, &arena, &frame, NULL), 1);
        lab_frame_reader_feed(&reader, &"\0\0\0\0\11\0\0\0"[i % 8], 1);
    }
    assert_int_equal(lab_frame_reader_pending(&reader), COUNT);
    assert_true(reader.bytes.capacity <= (size_t)16 * COUNT);
}

/* --- liars --- */

LAB_TEST(nothing_comes_before_hello) {
    SAY(.type = LAB_FRAME_WARNING, .text = "early");
    catches("a frame of type 6 came before HELLO");
    RAW(UNKNOWN_TYPE, 0, "");
    catches("a frame of type 77 came before HELLO");
    lab_str_add(&sent, "Iter 120 loss 3.21\n");
    catches("came before HELLO");
    say_hello(2);
    catches_after_hello("HELLO came twice");
}

LAB_TEST(hello_is_checked) {
    SAY(.type = LAB_FRAME_HELLO, .rank = 2, .hello = {1, 1, 2});
    catches("HELLO of rank 2, but the ranks are 0 to 1");
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, 1, 0});
    catches("HELLO frame of rank 0: number of ranks 0, possible is 1 to 65536");
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, 1, -1});
    catches("number of ranks 4294967295, possible");
    SAY(.type = LAB_FRAME_HELLO, .hello = {0, 1, 1});
    catches("version 0, possible is 1 to");
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, -5, 1});
    catches("process id -5, the least is 1");
    RAW(LAB_FRAME_HELLO, 0, "\1\0\0");
    catches("HELLO frame of rank 0: ends within a number");
}

LAB_TEST(a_length_above_the_cap_costs_no_memory) {
    say_raw((int64_t)LAB_FRAME_MAX_BYTES + 1, LAB_FRAME_RESULT, 0, "", 0);
    catches_after_hello("a frame of 4194305 bytes, at most 4194304 are allowed");
    say_raw(UINT32_MAX, UNKNOWN_TYPE, 0, "", 0);
    catches_after_hello("a frame of 4294967295 bytes");
    say_raw(UINT32_MAX, LAB_FRAME_HELLO, 0, "", 0);
    catches("a frame of 4294967295 bytes");
}

LAB_TEST(ranks_exist) {
    SAY(.type = LAB_FRAME_ACK, .rank = 2);
    catches_after_hello("a frame of rank 2, but the ranks are 0 to 1");
    RAW(UNKNOWN_TYPE, 65535, "");
    catches_after_hello("a frame of rank 65535");
    SAY(.type = LAB_FRAME_HELLO, .rank = 65535, .hello = {1, 1, LAB_FRAME_MAX_RANKS});
    assert_int_equal(hear().rank, 65535);
}

LAB_TEST(payloads_decode) {
    CATCHES(LAB_FRAME_PHASE, "", "PHASE frame of rank 1: a text has no end");
    CATCHES(LAB_FRAME_WARNING, "endless", "WARNING frame of rank 1: a text has no end");
    CATCHES(LAB_FRAME_RESULT, "\0\0{}", "RESULT frame of rank 1: 2 bytes too many");
    CATCHES(LAB_FRAME_RESULT, "\1\0device\0tabc\xc3\0", "a text isn't UTF-8 from byte 3 on");
    CATCHES(LAB_FRAME_WARNING, "\xed\xa0\x80\0", "a text isn't UTF-8 from byte 0 on");
    CATCHES(LAB_FRAME_FAILURE, "\0\0\0\0x\0", "code 0, possible is 1 to 6");
    CATCHES(LAB_FRAME_FAILURE, "\7\0\0\0x\0", "code 7, possible is 1 to 6");
    CATCHES(LAB_FRAME_FAILURE, "\1\0\0\0", "FAILURE frame of rank 1: a text has no end");
    CATCHES(LAB_FRAME_FAILURE, "\1\0\0\0x\0", "FAILURE frame of rank 1: a text has no end");
    CATCHES(LAB_FRAME_FAILURE, "\1\0\0", "ends within a number");
    CATCHES(LAB_FRAME_METRICS, "1234567\0", "METRICS frame of rank 1: ends within a number");
    CATCHES(LAB_FRAME_METRICS, "123456781234567812345678\1\0\0\0name\0", "a text has no end");
    CATCHES(LAB_FRAME_METRICS, "123456781234567812345678\1\0\0\0name\0unit", "a text has no end");
    CATCHES(LAB_FRAME_METRICS, "123456781234567812345678\1\0\0\0name\0\xff\0", "isn't UTF-8");
    CATCHES(LAB_FRAME_METRICS, "123456781234567812345678\0\0\1\0a\0b\0",
            "metric of rank 65536, possible is -1 to 65535");
    CATCHES(LAB_FRAME_MEET, "\2\0\0\0", "MEET frame of rank 1: answer 2, possible is 0 to 1");
    CATCHES(LAB_FRAME_ACK, "x", "ACK frame of rank 1: 1 bytes too many");
    CATCHES(LAB_FRAME_PROGRESS, "12345678", "ends within a number");
    SAY(.type = LAB_FRAME_PROGRESS, .rank = 1, .progress = {-1, 0});
    catches_after_hello("PROGRESS frame of rank 1: -1 of 0 iterations done");
    SAY(.type = LAB_FRAME_PROGRESS, .progress = {1, -1});
    catches_after_hello("1 of -1 iterations done");
    SAY(.type = LAB_FRAME_PROGRESS, .progress = {11, 10});
    catches_after_hello("11 of 10 iterations done");
}

LAB_TEST(iterations_decode) {
    CATCHES(LAB_FRAME_ITERATIONS, "1234567", "ends within a number");
    CATCHES(LAB_FRAME_ITERATIONS, "\0\0\0\0\0\0\0\0", "packed iterations: empty");
    CATCHES(LAB_FRAME_ITERATIONS, "\0\0\0\0\0\0\0\0\1\5\0", "ITERATIONS frame of rank 1: packed");
    CATCHES(LAB_FRAME_ITERATIONS, "\0\0\0\0\0\0\0\0\1\xff\xff\xff\xff\x0f\0",
            "4294967295, at most 32768 may be here");
    CATCHES(LAB_FRAME_ITERATIONS, "\0\0\0\0\0\0\0\0\1\0\0?", "1 bytes too many after 0");
    SAY(.type = LAB_FRAME_ITERATIONS, .iterations = {-1, some, 1});
    catches_after_hello("no iteration can have the index -1");
    SAY(.type = LAB_FRAME_ITERATIONS, .iterations = {INT64_MAX - 1, some, 2});
    catches_after_hello("no iteration can have the index 9223372036854775806");
}

LAB_TEST(samples_come_back) {
    static const struct lab_column columns[] = {{LAB_METRIC_POWER, -1}, {LAB_METRIC_NODE_FREE, 2}};
    static const int64_t times_ns[] = {1000, 2000, INT64_MAX};
    static const int64_t values[] = {1, -2, 3, 4, INT64_MIN, INT64_MAX};
    struct lab_entity entity = {.kind = LAB_ENTITY_GPU,
                                .index = 3,
                                .id = "sim:x:3",
                                .name = "Töy",
                                .pci = "0000:13:00.0",
                                .node = -1,
                                .parent = -1,
                                .columns = columns,
                                .column_count = 2};
    say_hello(1);
    hear();
    SAY(.type = LAB_FRAME_ENTITY, .entity = {5, entity});
    struct lab_frame frame = hear();
    assert_int_equal(frame.entity.number, 5);
    assert_int_equal(frame.entity.entity.index, 3);
    assert_int_equal(frame.entity.entity.node, -1);
    assert_true(frame.entity.entity.simulated); /* nobody else sends them */
    assert_string_equal(frame.entity.entity.id, "sim:x:3");
    assert_string_equal(frame.entity.entity.name, "Töy");
    assert_string_equal(frame.entity.entity.pci, "0000:13:00.0");
    assert_memory_equal(frame.entity.entity.columns, columns, sizeof columns);
    SAY(.type = LAB_FRAME_TICKS, .ticks = {5, 2, times_ns, values, 3});
    frame = hear();
    assert_int_equal(frame.ticks.number, 5);
    assert_int_equal(frame.ticks.count, 3);
    assert_int_equal(frame.ticks.column_count, 2);
    assert_memory_equal(frame.ticks.times_ns, times_ns, sizeof times_ns);
    assert_memory_equal(frame.ticks.values, values, sizeof values);
}

LAB_TEST(samples_decode) {
    CATCHES(LAB_FRAME_ENTITY, "\0\0", "ends within a number");
    CATCHES(LAB_FRAME_ENTITY, "\xff\xff\xff\xff", "number -1, possible is 0 to");
    CATCHES(LAB_FRAME_ENTITY,
            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\1\0\0\0\xff\xff\xff\xffnone\0",
            "there is no metric 'none'");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\1\0\0\0\2\0\0\0xxxxxxxxxxxxxxxx", "ends within its rows");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\0\0\0\0\1\0\0\0", "number of columns 0");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\1\0\0\0\1\0\0\0xxxxxxxxxxxxxxxx!", "1 bytes too many");
}

LAB_TEST(a_conversation_that_breaks_off_is_seen) {
    say_hello(1);
    SAY(.type = LAB_FRAME_RESULT, .result = &lab_result_none);
    sent.length--;
    hear();
    hears_nothing();
    assert_int_equal(lab_frame_reader_pending(&reader), 9);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
