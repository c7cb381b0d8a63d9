/* text.c: text in a given width and character set. */
#include "base/tty/text.h"

#include <string.h>

static const struct {
    const char *from, *to;
} ascii_for[] = {
    {"µ", "u"},    {"±", "+-"}, {"×", "x"},  {"·", "*"},  {"–", "-"},  {"—", "-"},     {"−", "-"},
    {"…", "..."},  {"≤", "<="}, {"≥", ">="}, {"→", "->"}, {"‖", "||"}, {"√", "sqrt "}, {"²", "^2"},
    {"°", " deg"}, {"›", ">"},  {"’", "'"},  {"‘", "'"},  {"“", "\""}, {"”", "\""},    {"®", "(R)"},
    {"™", "(TM)"}, {"█", "#"},  {"▌", "="},  {"░", "."},  {"─", "-"},  {"│", "|"},     {"┌", "+"},
    {"┐", "+"},    {"└", "+"},  {"┘", "+"},  {"├", "+"},  {"┤", "+"},  {"┬", "+"},     {"┴", "+"},
    {"┼", "+"},    {"╶", "-"},  {"é", "e"},  {"ü", "u"},  {"ö", "o"},  {"ä", "a"},     {"ß", "ss"},
};

#define ASCII_COUNT (sizeof ascii_for / sizeof *ascii_for)

/* Bytes of the code point that begins here; a stray continuation byte counts as one. */
static size_t code_point_bytes(const char *text) {
    size_t bytes = 1;
    while (((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

void lab_text_to_ascii(const char *text, struct lab_str *out) {
    while (*text) {
        size_t bytes = code_point_bytes(text);
        if (bytes == 1 && (unsigned char)*text < 0x80) {
            lab_str_add_bytes(out, text, 1);
        } else {
            const char *to = "?";
            for (size_t i = 0; i < ASCII_COUNT; i++)
                if (strlen(ascii_for[i].from) == bytes &&
                    memcmp(ascii_for[i].from, text, bytes) == 0)
                    to = ascii_for[i].to;
            lab_str_add(out, to);
        }
        text += bytes;
    }
}

void lab_text_fit(const char *text, int columns, bool unicode, struct lab_str *out) {
    int width = lab_str_columns(text);
    if (width <= columns) {
        lab_str_add(out, text);
        lab_str_add_repeat(out, " ", columns - width);
        return;
    }
    int room = columns - 1;
    for (int used = 0; used < room; used++) {
        size_t bytes = code_point_bytes(text);
        lab_str_add_bytes(out, text, bytes);
        text += bytes;
    }
    if (columns > 0)
        lab_str_add(out, unicode ? "…" : "~");
}

void lab_text_keep(struct lab_str *text, size_t from) {
    for (size_t i = from; i < text->length; i++)
        if (text->text[i] == ' ')
            text->text[i] = LAB_TEXT_KEPT;
}

static void add_word(const char *text, size_t length, struct lab_str *out) {
    size_t from = out->length;
    lab_str_add_bytes(out, text, length);
    for (size_t i = from; i < out->length; i++)
        if (out->text[i] == LAB_TEXT_KEPT)
            out->text[i] = ' ';
}

/* Bytes of the next word, with the sign that belongs to it: "2.5 %", "± 3", "4 × the". */
static size_t word_bytes(const char *text) {
    size_t length = strcspn(text, " ");
    while (text[length] == ' ') {
        const char *next = text + length + 1;
        bool before =
            length >= strlen("±") && strncmp(text + length - strlen("±"), "±", strlen("±")) == 0;
        if (*next != '%' && strncmp(next, "× ", strlen("× ")) != 0 && !before)
            break;
        length += 1 + strcspn(next, " ");
    }
    return length;
}

void lab_text_wrap(const char *text, int start, int indent, int columns, struct lab_str *out) {
    LAB_AUTO(str, word);
    int at = start;
    bool first = true;
    while (*text) {
        size_t length = word_bytes(text);
        lab_str_clear(&word);
        add_word(text, length, &word);
        int width = lab_str_columns(word.text);
        if (!first && at + 1 + width > columns) {
            lab_str_add(out, "\n");
            lab_str_add_repeat(out, " ", indent);
            at = indent;
            first = true;
        }
        lab_str_add(out, first ? "" : " ");
        lab_str_add(out, word.text);
        at += width + !first;
        first = false;
        text += length;
        text += strspn(text, " ");
    }
}

int lab_text_columns(const char *text) {
    LAB_AUTO(str, plain);
    while (*text) {
        size_t escape = *text == '\033' ? strcspn(text, "m") : 0;
        if (!escape)
            lab_str_add_bytes(&plain, text, 1);
        text += escape ? escape + (text[escape] == 'm') : 1;
    }
    return lab_str_columns(plain.text);
}
