/* test_tracker_bytes.c: checksums and Protocol Buffers, against values that others compute. */
#include "test.h"

#include "track/tracker_bytes.h"

#include <string.h>

LAB_TEST(checksums_are_those_of_the_formats) {
    char text[100];
    memset(text, 'a', sizeof text);
    assert_int_equal(lab_track_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(lab_track_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(lab_track_crc32c(0, (char[32]){0}, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(lab_track_crc32(0, "", 0), 0);
    for (size_t cut = 0; cut <= sizeof text; cut += 7) /* in two parts as in one */
        assert_int_equal(lab_track_crc32(lab_track_crc32(0, text, cut), text + cut, 100 - cut),
                         lab_track_crc32(0, text, 100));
}

LAB_TEST(messages_are_those_of_the_encoding) {
    static const char bytes[] = "\x08\x96\x01"     /* 1: 150 */
                                "\x12\x07testing"  /* 2: "testing" */
                                "\x1a\x02\x08\x03" /* 3: {1: 3} */
                                "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* 16: -1 */
                                "\x25\x00\x00\x80\x3f"                             /* 4: 1.0f */
                                "\x29\x00\x00\x00\x00\x00\x00\x00\xc0"             /* 5: -2.0 */
                                "\x32\x05\x08\x01\x10\xac\x02"; /* 6: 1 s and 300 ns */
    LAB_AUTO(str, out);
    lab_proto_int(&out, 1, 150);
    lab_proto_text(&out, 2, "testing");
    size_t message = lab_proto_open(&out, 3);
    lab_proto_int(&out, 1, 3);
    lab_proto_close(&out, message);
    lab_proto_int(&out, 16, -1);
    lab_proto_float(&out, 4, 1);
    lab_proto_double(&out, 5, -2);
    lab_proto_time(&out, 6, 1000000300);
    assert_int_equal(out.length, sizeof bytes - 1);
    assert_memory_equal(out.text, bytes, sizeof bytes - 1);
}

LAB_TEST(a_long_message_moves_behind_its_length) {
    LAB_AUTO(str, out);
    char text[20000];
    memset(text, 'x', sizeof text);
    for (size_t length = 120; length <= sizeof text;
         length = length < 200 ? length + 1 : length * 9) {
        lab_str_clear(&out);
        size_t message = lab_proto_open(&out, 1);
        lab_str_add_bytes(&out, text, length);
        lab_proto_close(&out, message);
        LAB_AUTO(str, whole);
        lab_proto_bytes(&whole, 1, text, length);
        assert_int_equal(out.length, whole.length);
        assert_memory_equal(out.text, whole.text, whole.length);
    }
}
