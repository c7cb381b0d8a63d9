/* Text in a given width and character set. */
#include "base/tty/text.h"

#include "test.h"

LAB_TEST(ascii_replaces_what_it_knows) {
    LAB_AUTO(str, out);
    lab_text_to_ascii("41.3 µs ± 2 %, 3×4 … └─ GPU0", &out);
    assert_string_equal(out.text, "41.3 us +- 2 %, 3x4 ... +- GPU0");
    lab_str_clear(&out);
    lab_text_to_ascii("漢", &out);
    assert_string_equal(out.text, "?");
}

LAB_TEST(ascii_survives_broken_utf8) {
    LAB_AUTO(str, out);
    lab_text_to_ascii("a\x80\xff\xc3", &out);
    for (size_t i = 0; i < out.length; i++)
        assert_true((unsigned char)out.text[i] < 0x80);
}

LAB_TEST(fit_pads_and_cuts_by_columns) {
    LAB_AUTO(str, out);
    lab_text_fit("µs", 4, true, &out);
    assert_string_equal(out.text, "µs  ");
    lab_str_clear(&out);
    lab_text_fit("µµµµµ", 4, true, &out);
    assert_string_equal(out.text, "µµµ…");
    lab_str_clear(&out);
    lab_text_fit("abcde", 4, false, &out);
    assert_string_equal(out.text, "abc~");
}

LAB_TEST(a_figure_stays_with_its_sign) {
    LAB_AUTO(str, out);
    lab_text_wrap("it took 45 % more", 0, 0, 11, &out);
    assert_string_equal(out.text, "it took\n45 % more");
    lab_str_clear(&out);
    lab_text_wrap("it took 2.1 × the median ± 30 %", 0, 0, 13, &out);
    assert_string_equal(out.text, "it took 2.1 ×\nthe median\n± 30 %");
}

LAB_TEST(wrap_indents_later_lines) {
    LAB_AUTO(str, out);
    lab_text_wrap("one two three four", 0, 2, 10, &out);
    assert_string_equal(out.text, "one two\n  three\n  four");
    lab_str_clear(&out);
    /* a word that fits nowhere stands alone rather than being cut */
    lab_text_wrap("a incomprehensibilities b", 0, 1, 10, &out);
    assert_string_equal(out.text, "a\n incomprehensibilities\n b");
}
