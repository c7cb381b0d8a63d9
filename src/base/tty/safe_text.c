/* safe_text.c: see the header. */
#include "base/tty/safe_text.h"

#include <ctype.h>
#include <string.h>

void lab_safe_text_add(struct lab_str *out, const char *text) {
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        bool printable;
        length = lab_str_next(text, left, &printable);
        if (printable || *text == '\n' || *text == '\t' || strncmp(text, "\r\n", 2) == 0)
            lab_str_add_bytes(out, text, length);
        else
            lab_str_add(out, "?");
    }
}

/* "=1+1", "@SUM", "+cmd", "-cmd"; numbers are none. */
static bool is_formula(const char *text) {
    if (*text == '=' || *text == '@')
        return true;
    return (*text == '+' || *text == '-') && text[1] && text[1] != '.' &&
           !isdigit((unsigned char)text[1]);
}

void lab_safe_text_add_csv(struct lab_str *out, const char *text, bool always) {
    LAB_AUTO(str, safe);
    if (is_formula(text))
        lab_str_add(&safe, "'");
    lab_safe_text_add(&safe, text);
    const char *rest = safe.text;
    if (!always && !rest[strcspn(rest, ",\"\r\n")]) {
        lab_str_add(out, rest);
        return;
    }
    lab_str_add(out, "\"");
    for (size_t plain; *rest; rest += plain) {
        plain = strcspn(rest, "\"");
        lab_str_add_bytes(out, rest, plain);
        if (rest[plain] == '"') {
            lab_str_add(out, "\"\"");
            plain++;
        }
    }
    lab_str_add(out, "\"");
}

/* A hyphen before a digit, at the start or after a space or a bracket. */
static bool is_minus(const char *text, const char *at) {
    return *at == '-' && isdigit((unsigned char)at[1]) && (at == text || strchr(" [(", at[-1]));
}

void lab_safe_text_add_signed(struct lab_str *out, const char *text) {
    bool code = false;
    for (const char *c = text; *c; c++) {
        code ^= *c == '`';
        if (!code && is_minus(text, c))
            lab_str_add(out, "−");
        else
            lab_str_add_bytes(out, c, 1);
    }
}
