/* test_frame_bounds.c: numbers in frames: what is just allowed is heard, what is beyond is a lie. */
#include "frame_fixture.h"

/* ENTITY, as numbers: its own, kind, index, node, parent, columns; then the first one's instance. */
enum { NUMBER, KIND, INDEX, NODE, PARENT, COLUMN_COUNT, INSTANCE, NUMBERS };

static void say_entity(int field, int64_t value) {
    int64_t numbers[NUMBERS] = {[NODE] = -1, [PARENT] = -1, [COLUMN_COUNT] = 1, [INSTANCE] = -1};
    struct lab_str payload;
    lab_str_init(&payload);
    numbers[field] = value;
    for (int i = 0; i < INSTANCE; i++)
        lab_str_add_bytes(&payload, (const char *)&(int32_t){(int32_t)numbers[i]}, 4);
    for (int64_t i = 0; i < numbers[COLUMN_COUNT]; i++) {
        lab_str_add_bytes(&payload, (const char *)&(int32_t){(int32_t)numbers[INSTANCE]}, 4);
        lab_str_add_bytes(&payload, "power", sizeof "power");
    }
    lab_str_add_bytes(&payload, "\0\0", 3);
    say_raw((int64_t)payload.length, LAB_FRAME_ENTITY, 1, payload.text, payload.length);
    lab_str_release(&payload);
}

LAB_TEST(numbers_of_an_entity_have_two_ends) {
    static const struct {
        int field;
        int64_t least, most;
        const char *name;
    } cases[] = {{NUMBER, 0, LAB_FRAME_MAX_ENTITIES - 1, "number"},
                 {KIND, 0, LAB_ENTITY_KIND_COUNT - 1, "kind"},
                 {INDEX, 0, INT32_MAX, "index"},
                 {NODE, -1, INT32_MAX, "node"},
                 {PARENT, -1, -1, "parent"},
                 {COLUMN_COUNT, 1, LAB_COLUMNS_MAX, "number of columns"},
                 {INSTANCE, -1, INT16_MAX, "instance"}};
    assert_true(lab_metric_find("power") >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int end = 0; end < 2; end++) {
            int64_t good = end ? cases[i].most : cases[i].least, bad = end ? good + 1 : good - 1;
            say_entity(cases[i].field, bad);
            catches_after_hello(
                lab_arena_printf(&arena, "%s %d, possible is", cases[i].name, (int)(int32_t)bad));
            say_hello(2);
            hear();
            say_entity(cases[i].field, good);
            struct lab_frame frame = hear();
            assert_int_equal(frame.type, LAB_FRAME_ENTITY);
            const struct lab_entity *entity = &frame.entity.entity;
            assert_int_equal(entity->columns[entity->column_count - 1].metric,
                             lab_metric_find("power"));
            hears_nothing();
            lab_frame_reader_release(&reader);
            lab_frame_reader_init(&reader);
        }
}

/* What is just allowed comes back. */
LAB_TEST(numbers_at_their_ends_are_taken) {
    struct lab_reported_metric told[LAB_FRAME_MAX_METRICS];
    for (int i = 0; i < LAB_FRAME_MAX_METRICS; i++)
        told[i] = (struct lab_reported_metric){
            .name = "x", .unit = "", .rank = i % 2 ? -1 : LAB_FRAME_MAX_RANKS - 1};
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, 1, 1});
    assert_int_equal(hear().hello.pid, 1);
    SAY(.type = LAB_FRAME_METRICS, .metrics = {told, LAB_FRAME_MAX_METRICS});
    struct lab_frame frame = hear();
    assert_int_equal(frame.metrics.count, LAB_FRAME_MAX_METRICS);
    assert_int_equal(frame.metrics.items[0].rank, LAB_FRAME_MAX_RANKS - 1);
    assert_int_equal(frame.metrics.items[1].rank, -1);
    SAY(.type = LAB_FRAME_METRICS, .metrics = {told, 0});
    assert_int_equal(hear().metrics.count, 0);
    for (int i = 0; i < 2; i++) {
        SAY(.type = LAB_FRAME_MEET, .willing = i);
        assert_int_equal(hear().willing, i);
        SAY(.type = LAB_FRAME_FAILURE, .failure = {i ? LAB_ERR_INTERRUPTED : 1, "x", 0});
        assert_int_equal(hear().failure.code, i ? LAB_ERR_INTERRUPTED : 1);
    }
    SAY(.type = LAB_FRAME_PROGRESS, .progress = {10, 10});
    assert_int_equal(hear().progress.done, 10);
    SAY(.type = LAB_FRAME_PROGRESS, .progress = {0, 0});
    assert_int_equal(hear().progress.total, 0);
    SAY(.type = LAB_FRAME_ITERATIONS, .iterations = {INT64_MAX - 2, some, 2});
    assert_true(hear().iterations.first == INT64_MAX - 2);
    /* a type beyond the last one is of a later version */
    RAW(LAB_FRAME_MEET + 1, 0, "");
    hears_nothing();
    assert_int_equal(reader.skipped, 1);
    /* a whole payload is waited for */
    say_raw((int64_t)LAB_FRAME_MAX_BYTES, LAB_FRAME_RESULT, 0, "", 0);
    hears_nothing();
    assert_int_equal(lab_frame_reader_pending(&reader), 8);
}

LAB_TEST(numbers_beyond_their_ends_are_refused) {
    CATCHES(LAB_FRAME_TICKS, "\0\4\0\0\1\0\0\0\1\0\0\0", "number 1024, possible is 0 to 1023");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\1\10\0\0\1\0\0\0", "number of columns 2049");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\1\0\0\0\0\0\0\0", "number of rows 0, possible is 1");
    CATCHES(LAB_FRAME_TICKS, "\0\0\0\0\1\0\0\0\1\0\4\0", "number of rows 262145, possible");
    CATCHES(LAB_FRAME_TICKS, "\377\3\0\0\0\10\0\0\0\0\4\0", "ends within its rows");
    CATCHES(LAB_FRAME_MEET, "\377\377\377\377", "answer -1, possible is 0 to 1");
    CATCHES(LAB_FRAME_METRICS, "123456781234567812345678\376\377\377\377a\0b\0",
            "metric of rank -2, possible is -1 to 65535");
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, 0, 1});
    catches("process id 0, the least is 1");
    SAY(.type = LAB_FRAME_HELLO, .hello = {1, 1, LAB_FRAME_MAX_RANKS + 1});
    catches("number of ranks 65537, possible is 1 to 65536");
    struct lab_reported_metric one = {.name = "x", .unit = ""};
    struct lab_str many;
    lab_str_init(&many);
    SAY(.type = LAB_FRAME_METRICS, .rank = 1, .metrics = {&one, 1});
    for (int i = 0; i <= LAB_FRAME_MAX_METRICS; i++)
        lab_str_add_bytes(&many, sent.text + 8, sent.length - 8);
    lab_str_clear(&sent);
    say_raw((int64_t)many.length, LAB_FRAME_METRICS, 1, many.text, many.length);
    lab_str_release(&many);
    catches_after_hello("31 bytes too many");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
