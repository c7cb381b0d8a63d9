/*
 * console.c: how results and messages reach the user: what the terminal can show, and one
 * status line that never mixes with other lines.
 */
#include "base/tty/console.h"

#include "base/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>

#define COLUMNS_WITHOUT_TERMINAL 80
#define COLUMNS_MIN              40
#define COLUMNS_MAX              400

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/*
 * The variables, not setlocale: in a container the locale that the user's terminal has is often not
 * installed, and the terminal shows UTF-8 all the same.
 */
static bool locale_is_utf8(void) {
    const char *locale = environment("LC_ALL");
    if (!locale)
        locale = environment("LC_CTYPE");
    if (!locale)
        locale = environment("LANG");
    const char *charset = locale ? strchr(locale, '.') : NULL;
    return charset &&
           (strncasecmp(charset, ".utf-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0);
}

static int terminal_columns(bool is_terminal, int fd) {
    const char *given = environment("COLUMNS");
    long columns = given ? strtol(given, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns <= 0)
        columns = COLUMNS_WITHOUT_TERMINAL;
    return (int)(columns < COLUMNS_MIN   ? COLUMNS_MIN
                 : columns > COLUMNS_MAX ? COLUMNS_MAX
                                         : columns);
}

struct lab_style lab_console_style(bool is_terminal, int fd) {
    const char *term = environment("TERM");
    bool dumb = !term || lab_str_equal(term, "dumb");
    return (struct lab_style){
        .columns = terminal_columns(is_terminal, fd),
        .colour = is_terminal && !dumb && !environment("NO_COLOR"),
        .unicode = locale_is_utf8(),
    };
}

bool lab_console_draws(const struct lab_console *console) {
    return console->err_is_terminal && !console->quiet && !console->json &&
           !lab_str_equal(getenv("TERM"), "dumb");
}

/* stdio keeps that a write failed, but not why */
static int write_errno;

void lab_console_write(const struct lab_console *console, const char *bytes, size_t length) {
    if (fwrite(bytes, 1, length, console->out) < length && !write_errno)
        write_errno = errno ? errno : EIO;
}

int lab_console_finish(void) {
    if (fflush(stdout) != 0 && !write_errno)
        write_errno = errno ? errno : EIO;
    return write_errno;
}

/* Bytes of a colour's escape sequence, 0 = it is none. */
static size_t colour_bytes(const char *text) {
    if (text[0] != '\033' || text[1] != '[')
        return 0;
    size_t digits = strspn(text + 2, "0123456789;");
    return text[2 + digits] == 'm' ? digits + 3 : 0;
}

/* Names in a report come from files and drivers: what would steer the terminal is shown as '?'. */
static void add_shown(const struct lab_str *text, bool colour, struct lab_str *out) {
    for (const char *at = text->text, *end = at + text->length; at < end;) {
        bool printable;
        size_t own = colour ? colour_bytes(at) : 0;
        size_t bytes = own ? own : lab_str_next(at, (size_t)(end - at), &printable);
        if (own || *at == '\n' || *at == '\t' || printable)
            lab_str_add_bytes(out, at, bytes);
        else
            lab_str_add(out, "?");
        at += bytes;
    }
}

void lab_console_print(const struct lab_console *console, const struct lab_str *text) {
    LAB_AUTO(str, plain);
    LAB_AUTO(str, shown);
    add_shown(text, console->style.colour, &shown);
    if (!console->style.unicode)
        lab_text_to_ascii(shown.text, &plain);
    const struct lab_str *written = console->style.unicode ? &shown : &plain;
    lab_console_write(console, written->text, written->length);
}

static void print_object(const struct lab_console *console, const struct lab_value *value,
                         int indent) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_value *object = lab_value_map(&arena);
    lab_value_set_int(&arena, object, "schema", LAB_JSON_SCHEMA);
    for (int i = 0; i < value->count; i++)
        lab_value_set(&arena, object, value->keys[i], value->items[i]);
    lab_json_write(object, indent, &text);
    if (text.length == 0 || text.text[text.length - 1] != '\n')
        lab_str_add(&text, "\n");
    lab_console_write(console, text.text, text.length);
}

void lab_console_print_json(const struct lab_console *console, const struct lab_value *value) {
    print_object(console, value, 2);
}

void lab_console_print_json_line(const struct lab_console *console, const struct lab_value *value) {
    print_object(console, value, 0);
}

/* What a user typed comes back in messages: a line break or an escape in it must not act. */
static void add_visible(const char *text, struct lab_str *out) {
    for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
        bool printable;
        bytes = lab_str_next(text, left, &printable);
        if (*text == '\n')
            lab_str_add(out, "\\n");
        else if (printable)
            lab_str_add_bytes(out, text, bytes);
        else
            for (size_t i = 0; i < bytes; i++)
                lab_str_printf(out, "\\x%02x", (unsigned char)text[i]);
    }
}

#define CLEAR_LINE "\r\033[K"

static atomic_bool status_shown; /* messages may come from a device's threads */

__attribute__((format(printf, 2, 0))) static void write_line(const char *prefix, const char *format,
                                                             va_list args) {
    char text[1200];
    vsnprintf(text, sizeof text, format, args);
    LAB_AUTO(str, visible);
    LAB_AUTO(str, line);
    if (atomic_exchange(&status_shown, false))
        lab_str_add(&line, CLEAR_LINE);
    lab_str_add(&line, prefix);
    add_visible(text, &visible);
    if (locale_is_utf8())
        lab_str_add(&line, visible.text);
    else
        lab_text_to_ascii(visible.text, &line);
    lab_str_add(&line, "\n");
    /* one console, so that lines of several threads stay whole */
    fwrite(line.text, 1, line.length, stderr);
}

void lab_console_note(const char *format, ...) {
    LAB_WITH_ARGS(format, write_line("gpulab: ", format, args));
}

void lab_console_say(const char *format, ...) {
    LAB_WITH_ARGS(format, write_line("", format, args));
}

void lab_console_status_line(const char *text) {
    if (!text) {
        if (atomic_exchange(&status_shown, false))
            fputs(CLEAR_LINE, stderr);
        return;
    }
    LAB_AUTO(str, line);
    lab_str_add(&line, CLEAR_LINE);
    if (locale_is_utf8())
        lab_str_add(&line, text);
    else
        lab_text_to_ascii(text, &line);
    atomic_store(&status_shown, true);
    fwrite(line.text, 1, line.length, stderr);
}
