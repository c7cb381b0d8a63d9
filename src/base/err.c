/* err.c: error texts are kept in place, so that reporting a failure can't fail. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* Room for what is formatted, before it is cut: words of a command line may be this long. */
#define LONGEST 16384
/* Bytes kept of the beginning of a text that is too long. */
#define HEAD 200
#define MARK "…"

/* Text that is too long loses its middle: the end says what is right instead. */
static void store(struct lab_err *err, const char *text) {
    size_t length = strlen(text), room = sizeof err->text - 1;
    if (length <= room) {
        memcpy(err->text, text, length + 1);
        return;
    }
    size_t head = HEAD, tail = length - (room - HEAD - strlen(MARK));
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    while (((unsigned char)text[tail] & 0xc0) == 0x80)
        tail++;
    memcpy(err->text, text, head);
    memcpy(err->text + head, MARK, strlen(MARK));
    memcpy(err->text + head + strlen(MARK), text + tail, length - tail + 1);
}

int lab_err_vset(struct lab_err *err, enum lab_err_code code, const char *format, va_list args) {
    if (!err)
        return -1;
    /* the arguments may point into the text that is being replaced */
    char text[LONGEST];
    vsnprintf(text, sizeof text, format, args);
    store(err, text);
    err->code = code;
    return -1;
}

int lab_err_set(struct lab_err *err, enum lab_err_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lab_err_vset(err, code, format, args);
    va_end(args);
    return -1;
}

int lab_err_set_errno(struct lab_err *err, enum lab_err_code code, int errno_value,
                      const char *format, ...) {
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    lab_err_vset(err, code, format, args);
    va_end(args);
    char buffer[128];
    return lab_err_set(err, code, "%s: %s", err->text,
                       strerror_r(errno_value, buffer, sizeof buffer));
}

int lab_err_context(struct lab_err *err, const char *format, ...) {
    if (!err)
        return -1;
    char before[LONGEST];
    va_list args;
    va_start(args, format);
    vsnprintf(before, sizeof before, format, args);
    va_end(args);
    return lab_err_set(err, err->code, "%s: %s", before, err->text);
}

int lab_err_exit_status(enum lab_err_code code) {
    switch (code) {
    case LAB_ERR_NONE:
        return 0;
    case LAB_ERR_USER:
        return 2;
    case LAB_ERR_INTERRUPTED:
        return 130;
    default:
        return 1;
    }
}
