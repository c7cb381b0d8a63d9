/*
 * err.h: how a failure travels.
 *
 * A function that can fail takes a caller-owned `struct lab_err *` as its last parameter and
 * returns 0 or -1. The function that meets the failure sets code and text; each caller on the way
 * up may put its own context in front, so that the line a user reads goes from the large to the
 * small:
 *
 *     gpulab: run gpu0_numa1_vit32x6x512: loading kernel 'softmax': no binary for sm_90
 *
 * On success the struct is untouched. A text is one line, without a full stop. Running out of host
 * memory is no error of this kind: it aborts (see mem.h). Running out of *device* or *node* memory
 * is one, LAB_ERR_MEMORY, because sweeps meet it as an ordinary result.
 */
#pragma once

#include "base/auto.h"
#include "base/hint.h"

enum lab_err_code {
    LAB_ERR_NONE = 0,
    LAB_ERR_USER,   /* the user asked for something impossible: exit 2 */
    LAB_ERR_SYSTEM, /* the operating system or a library refused: exit 1 */
    LAB_ERR_MEMORY, /* a device or a NUMA node has too little memory: exit 1, a sweep goes on */
    LAB_ERR_UNSUPPORTED, /* this device or machine can't do that: exit 1, a sweep goes on */
    LAB_ERR_WRONG,       /* a result or a file failed its check: exit 1 */
    LAB_ERR_INTERRUPTED, /* the user stopped it: exit 130 */
};

struct lab_err {
    enum lab_err_code code;
    enum lab_hint_id hint; /* what a user can do about it */
    char text[1024];
};

#define LAB_ERR_INIT ((struct lab_err){.code = LAB_ERR_NONE, .text = ""})

/* Sets code and text, over whatever was there, without a hint; always returns -1. `err` may be
 * NULL. Text that is too long loses its middle, here and below. */
int lab_err_set(struct lab_err *err, enum lab_err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int lab_err_vset(struct lab_err *err, enum lab_err_code code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* As lab_err_set, with ": " and errno's text behind it, and with errno's hint where it has one. */
int lab_err_set_errno(struct lab_err *err, enum lab_err_code code, int errno_value,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Says what a user can do about an error that is set. Always returns -1. */
int lab_err_hint(struct lab_err *err, enum lab_hint_id hint);

/* Puts context and ": " before the text; code and hint stay. Always returns -1. */
int lab_err_context(struct lab_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status that main gives for this code. */
int lab_err_exit_status(enum lab_err_code code);
