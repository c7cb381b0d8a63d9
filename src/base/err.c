/* err.c: error texts are kept in place, so that reporting a failure can't fail. */
#include "base/err.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Room for what is formatted, before it is cut: words of a command line may be this long. */
#define LONGEST 16384
/* Bytes kept of the beginning of a text that is too long. */
#define HEAD 200
#define MARK "…"

/* Takes out characters that a format or a buffer cut in two; other bytes that aren't UTF-8 become
 * '?'. */
static void drop_halves(char *text) {
    char *to = text;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        bool printable;
        length = lab_str_next(text, left, &printable);
        unsigned char byte = (unsigned char)*text;
        if (length > 1 || byte < 0x80) {
            memmove(to, text, length);
            to += length;
        } else if (byte >= 0xc2 && byte <= 0xf4) {
            while (((unsigned char)text[length] & 0xc0) == 0x80)
                length++;
        } else {
            *to++ = '?';
        }
    }
    *to = '\0';
}

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
    drop_halves(text);
    store(err, text);
    err->code = code;
    err->hint = LAB_HINT_NONE;
    return -1;
}

int lab_err_set(struct lab_err *err, enum lab_err_code code, const char *format, ...) {
    LAB_WITH_ARGS(format, lab_err_vset(err, code, format, args));
    return -1;
}

static enum lab_hint_id hint_of(int errno_value) {
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
        return LAB_HINT_OUT_OF_SPACE;
    case EMFILE:
    case ENFILE:
        return LAB_HINT_OPEN_FILES;
    case EACCES:
        return LAB_HINT_PERMISSION;
    case ENOENT:
        return LAB_HINT_NO_SUCH_FILE;
    default:
        return LAB_HINT_NONE;
    }
}

int lab_err_set_errno(struct lab_err *err, enum lab_err_code code, int errno_value,
                      const char *format, ...) {
    if (!err)
        return -1;
    LAB_WITH_ARGS(format, lab_err_vset(err, code, format, args));
    char buffer[128];
    lab_err_set(err, code, "%s: %s", err->text, strerror_r(errno_value, buffer, sizeof buffer));
    return lab_err_hint(err, hint_of(errno_value));
}

int lab_err_hint(struct lab_err *err, enum lab_hint_id hint) {
    if (err)
        err->hint = hint;
    return -1;
}

int lab_err_context(struct lab_err *err, const char *format, ...) {
    if (!err)
        return -1;
    enum lab_hint_id hint = err->hint;
    char before[LONGEST];
    LAB_WITH_ARGS(format, vsnprintf(before, sizeof before, format, args));
    lab_err_set(err, err->code, "%s: %s", before, err->text);
    return lab_err_hint(err, hint);
}

int lab_err_exit_status(enum lab_err_code code) {
    return code == LAB_ERR_NONE          ? 0
           : code == LAB_ERR_USER        ? 2
           : code == LAB_ERR_INTERRUPTED ? 130
                                         : 1;
}
