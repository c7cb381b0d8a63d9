/* command/character.h: what bytes of a line are to those who cut it (line.c, meaning.c). */
#pragma once

#include <stdbool.h>

enum {
    SPACE = 1,
    LETTER = 2, /* of ASCII */
    WORD = 4,   /* that words begin with */
    DIGIT = 64, /* inside a word, as JOINS */
    JOINS = 8,
    NUMERIC = 16, /* a number may begin with it */
    SIGN = 32,
    SPLITS = 128, /* a word into parts */
    BEFORE_PATH = 256,
    ENDS_PATH = 512,
    AROUND_PATH = BEFORE_PATH | ENDS_PATH,
};

/* By their value. */
extern const unsigned short command_classes[256];

static inline bool is(char c, int class) {
    return command_classes[(unsigned char)c] & class;
}
