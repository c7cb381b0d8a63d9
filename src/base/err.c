/* err.c: error texts are kept in place, so that reporting a failure can't fail. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int lab_err_vset(struct lab_err *err, enum lab_err_code code, const char *format, va_list args) {
    if (!err)
        return -1;
    /* the arguments may point into the text that is being replaced */
    char text[sizeof err->text];
    vsnprintf(text, sizeof text, format, args);
    memcpy(err->text, text, sizeof text);
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
    const char *reason = strerror_r(errno_value, buffer, sizeof buffer);
    size_t length = strlen(err->text);
    snprintf(err->text + length, sizeof err->text - length, ": %s", reason);
    return -1;
}

int lab_err_context(struct lab_err *err, const char *format, ...) {
    if (!err)
        return -1;
    char before[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(before, sizeof before, format, args);
    va_end(args);
    char text[2 * sizeof err->text + 2];
    snprintf(text, sizeof text, "%s: %s", before, err->text);
    memcpy(err->text, text, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
    return -1;
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
