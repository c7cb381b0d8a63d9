/*
 * test_recording_process_unpack.c: lists of processes out of bytes that anybody may have written, with the
 * right sum: each is read as it says, or refused with the number of the list.
 */
#include "store/recording/recording_pack.h"
#include "store/recording/recording_process.h"

#include "test.h"

#include <math.h>
#include <string.h>

/* --- what is read, as text --- */

static bool identify(void *state, int64_t number, struct lab_process_sample *ret) {
    (void)state;
    ret->pid = (int)number;
    ret->name = "it";
    return number != 9;
}

static int track_of(void *state, int64_t row) {
    (void)state;
    return row > 0 ? (int)row - 1 : -1;
}

static void dump_sample(const struct lab_process_sample *sample, struct lab_str *out) {
    lab_str_printf(out, " %s%d", sample->name, (int)sample->pid);
    if (!isnan(sample->cpu_percent))
        lab_str_printf(out, " cpu %g", sample->cpu_percent);
    if (sample->memory_bytes)
        lab_str_printf(out, " memory %lld", (long long)sample->memory_bytes);
    if (sample->threads)
        lab_str_printf(out, " threads %d", sample->threads);
    if (sample->cpu_node >= 0)
        lab_str_printf(out, " node %d", sample->cpu_node);
    if (sample->allowed_nodes)
        lab_str_printf(out, " allowed %llx", (unsigned long long)sample->allowed_nodes);
    for (int i = 0; i < sample->node_count; i++)
        lab_str_printf(out, "%s%lld", i ? "," : " nodes ", (long long)sample->node_bytes[i]);
    for (int i = 0; i < sample->gpu_count; i++) {
        const struct lab_process_gpu *gpu = &sample->gpus[i];
        lab_str_printf(out, " gpu%d=%lld/%g/%g%s%s", gpu->entity, (long long)gpu->memory_bytes,
                       gpu->sm_percent, gpu->memory_percent, gpu->compute ? "C" : "",
                       gpu->graphics ? "G" : "");
    }
    if (sample->placement)
        lab_str_printf(out, " placement %d", (int)sample->placement);
}

/* "1: …; 2 (3 more): …", or the error. */
static const char *unpack(const char *bytes, size_t length, int max_items) {
    const struct lab_process_unpacking unpacking = {identify, track_of, NULL};
    struct lab_process_list *lists;
    struct lab_err err = LAB_ERR_INIT;
    int count = 0;
    LAB_AUTO(str, packed);
    LAB_AUTO(str, text);
    lab_str_add_bytes(&packed, bytes, length);
    lab_packed_sum_put(&packed, 0);
    if (lab_process_unpack(packed.text, packed.length, max_items, &unpacking, &test_arena, &lists,
                           &count, &err) < 0)
        return lab_arena_strdup(&test_arena, err.text);
    for (int i = 0; i < count; i++) {
        lab_str_printf(&text, "%s%lld", i ? "; " : "", (long long)lists[i].time_ns);
        if (lists[i].left_out)
            lab_str_printf(&text, " (%d more)", lists[i].left_out);
        lab_str_add(&text, ":");
        for (int j = 0; j < lists[i].count; j++)
            dump_sample(&lists[i].items[j], &text);
    }
    return lab_arena_strdup(&test_arena, text.text);
}

#define INVALID "packed processes: invalid list "

/* --- the bytes --- */

/* Behind version and head: the new process 5 ("\x16"; "\x17" with figures), alone in a list at 1. */
#define V        "\x11"
#define ALONE(x) V "\x02\x01\x00" x

static const struct {
    const char *bytes;
    size_t length;
    const char *expected;
} cases[] = {
#define CASE(bytes, expected)                                                                      \
    { bytes, sizeof bytes - 1, expected }
    CASE("", "packed processes: checksum mismatch"),
    CASE("\x12\x02\x00\x00", "packed processes: version 18, known is 17"),
    CASE(V, ""),
    /* a list: a step in time, how many, how many were left out */
    CASE(V "\x02\x00\x00", "1:"),
    CASE(V "\x02\x00\x03", "1 (3 more):"),
    CASE(V "\x02\x00\xff\xff\xff\xff\x07", "1 (2147483647 more):"),
    CASE(V "\x02\x00\x80\x80\x80\x80\x08", INVALID "1"),
    CASE(V "\x02\x00\x00\x00\x00\x00", "1:; 1:"),
    CASE(V "\x02\x00\x00\x01\x00\x00", INVALID "2"), /* a second earlier */
    CASE(V "\x01\x00\x00", "-1:"),
    /* a process: a new one, or one of the list before, counted from the last one's place */
    CASE(ALONE("\x16"), "1: it5"),
    CASE(ALONE("\x26"), "1: ?9"),
    CASE(ALONE("\x00"), INVALID "1"),
    CASE(ALONE("\x16") "\x02\x01\x00\x00", "1: it5; 2: it5"),
    CASE(ALONE("\x16") "\x02\x01\x00\x04", INVALID "2"),
    CASE(ALONE("\x16") "\x02\x01\x00\x08", INVALID "2"),
    CASE(V "\x02\x02\x00\x16\x1a\x02\x02\x00\x00\x00", "1: it5 it6; 2: it5 it6"),
    CASE(V "\x02\x02\x00\x16\x1a\x02\x02\x00\x08\x0c", "1: it5 it6; 2: it6 it5"),
    /* its figures: a byte says which */
    CASE(ALONE("\x17\x00"), "1: it5"),
    CASE(ALONE("\x17\x01\x0a"), "1: it5 cpu 0.04"),
    CASE(ALONE("\x17\x01\x02"), "1: it5 cpu 0"),
    CASE(ALONE("\x17\x02\x0a"), "1: it5 memory 5"),
    CASE(ALONE("\x17\x04\x0a"), "1: it5 threads 5"),
    CASE(ALONE("\x17\x04\xfe\xff\xff\xff\x0f"), "1: it5 threads 2147483647"),
    CASE(ALONE("\x17\x04\x80\x80\x80\x80\x10"), "1: it5 threads -1"),
    CASE(ALONE("\x17\x04\xff\xff\xff\xff\x0f"), "1: it5 threads -2147483648"),
    CASE(ALONE("\x17\x04\x81\x80\x80\x80\x10"), "1: it5 threads -1"),
    CASE(ALONE("\x17\x08\x0a"), "1: it5 node 4"),
    CASE(ALONE("\x17\x10\x0a"), "1: it5 allowed a"),
    CASE(ALONE("\x17\x20\x00"), "1: it5"),
    CASE(ALONE("\x17\x20\x01"), "1: it5"),
    CASE(ALONE("\x17\x20\x03\x02\x04"), "1: it5 nodes 1,2"),
    CASE(ALONE("\x17\x20\x03\x02\x04") "\x02\x01\x00\x01\x20\x04\x02\x01\x0a",
         "1: it5 nodes 1,2; 2: it5 nodes 2,1,5"),
    CASE(ALONE("\x17\x40\x00"), "1: it5"),
    CASE(ALONE("\x17\x40\x01\x02\x0a\xca\x01\x92\x03\x01"), "1: it5 gpu0=5/1/2C"),
    CASE(ALONE("\x17\x40\x02\x00\x0a\x02\x02\x03\x04\x0a\x02\x02\x02"), "1: it5 gpu1=5/0/0G"),
    CASE(ALONE("\x17\x40\x01\x02\x0a\x02\x02\x03") "\x02\x01\x00\x01\x40\x02"
                                                   "\x02\x02\x02\x04\x00\x08\x04\x02\x02\x01",
         "1: it5 gpu0=5/0/0CG; 2: it5 gpu1=6/0.01/0.02 gpu3=2/0/0C"),
    CASE(ALONE("\x17\x80\x06"), "1: it5 placement 6"),
    CASE(ALONE("\x17\x80\x07"), INVALID "1"),
    CASE(ALONE("\x17\xff\x0a\x0a\x0a\x0a\x0a\x02\x02\x01\x02\x0a\x02\x02\x01\x06"),
         "1: it5 cpu 0.04 memory 5 threads 5 node 4 allowed a nodes 1 gpu0=5/0/0C placement 6"),
#undef CASE
};

LAB_TEST(bytes_of_anybody_are_read_or_refused) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(unpack(cases[i].bytes, cases[i].length, 10), cases[i].expected);
}

/* A cut anywhere leaves whole lists, or is noticed in the one it is in. */
LAB_TEST(every_cut_is_within_a_list_or_between_two) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t length = 1; length < cases[i].length; length++) {
            const char *cut = unpack(cases[i].bytes, length, 10);
            bool refused = lab_str_starts(cut, "packed processes: ");
            if (!refused && !lab_str_starts(cases[i].expected, cut) &&
                !lab_str_starts(cases[i].expected, INVALID))
                fail_msg("case %zu, cut at %zu: %s", i, length, cut);
            if (!refused && length > 1 && !strchr(cut, ':'))
                fail_msg("case %zu, cut at %zu, has no list", i, length);
        }
}

/* --- how many --- */

LAB_TEST(no_more_processes_are_read_than_the_row_says) {
    static const char two[] = V "\x02\x02\x00\x16\x1a", each[] = ALONE("\x16") "\x02\x01\x00\x00";
    assert_string_equal(unpack(two, sizeof two - 1, 2), "1: it5 it6");
    assert_string_equal(unpack(two, sizeof two - 1, 1), INVALID "1");
    assert_string_equal(unpack(each, sizeof each - 1, 2), "1: it5; 2: it5");
    assert_string_equal(unpack(each, sizeof each - 1, 1), INVALID "2");
}

/* The head, then a part so often. */
static const char *repeat(const char *head, size_t head_length, const char *part,
                          size_t part_length, int times) {
    LAB_AUTO(str, bytes);
    lab_str_add_bytes(&bytes, head, head_length);
    for (int i = 0; i < times; i++)
        lab_str_add_bytes(&bytes, part, part_length);
    return unpack(bytes.text, bytes.length, 10);
}
#define REPEAT(head, part, times) repeat(head, sizeof head - 1, part, sizeof part - 1, times)

LAB_TEST(lists_nodes_and_gpus_have_limits) {
    assert_contains(REPEAT(V, "\x02\x00\x00", LAB_PROCESS_LISTS), "; 60:");
    assert_string_equal(REPEAT(V, "\x02\x00\x00", LAB_PROCESS_LISTS + 1), INVALID "61");
    assert_contains(REPEAT(ALONE("\x17\x20\x41"), "\x02", 64), "1,1,1");
    assert_string_equal(REPEAT(ALONE("\x17\x20\x42"), "\x02", 65), INVALID "1");
    assert_contains(REPEAT(ALONE("\x17\x40\x80\x02"), "\x02\x00\x00\x00\x00", 256),
                    "gpu0=0/nan/nan");
    assert_string_equal(REPEAT(ALONE("\x17\x40\x81\x02"), "\x02\x00\x00\x00\x00", 257),
                        INVALID "1");
}

const struct lab_test_program lab_test_program = {0};
