/*
 * value_text.c: the value grammar of options and `key=value` words, read by descent and written. It
 * follows Hydra's, so that what its users type means the same here; sweeps are read elsewhere, and
 * meeting one is an error that says so.
 */
#include "base/value_text.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DEPTH 64

static int parse_element(struct lab_value_text *p, struct lab_value **ret_value);

int lab_value_text_column(struct lab_value_text *p, size_t at) {
    if (at < p->column_at) {
        p->column_at = 0;
        p->column = 1;
    }
    for (; p->column_at < at; p->column_at++)
        p->column += (p->text[p->column_at] & 0xc0) != 0x80;
    return p->column;
}

int lab_value_text_fail(struct lab_value_text *p, size_t at, const char *format, ...) {
    LAB_WITH_ARGS(format, lab_err_vset(p->err, LAB_ERR_USER, format, args));
    return lab_err_context(p->err, "column %d", lab_value_text_column(p, at));
}

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

void lab_value_text_skip_spaces(struct lab_value_text *p) {
    while (is_space(p->text[p->at]))
        p->at++;
}

static bool is_plain(char c) {
    return c && ((c & 0x80) || isalnum((unsigned char)c) || strchr("_/-\\+.$%*@?|: \t", c));
}

static bool is_escapable(char c) {
    return c && strchr("\\()[]{}:=, ", c);
}

static int fail_at_character(struct lab_value_text *p, size_t at) {
    char c = p->text[at];
    switch (c) {
    case '\0':
        return lab_value_text_fail(p, at, "a value is missing");
    case ',':
        return lab_value_text_fail(
            p, at,
            "a comma outside of brackets makes a sweep, which needs `run -m`; a string "
            "with a comma needs quotes");
    case '(':
    case ')':
        if (p->call)
            return lab_value_text_fail(p, at, "'%c' needs quotes or a backslash here", c);
        return lab_value_text_fail(
            p, at, "'%c' needs quotes or a backslash (a sweep such as range(5) needs `run -m`)", c);
    case '#':
        return lab_value_text_fail(p, at, "'#' needs quotes");
    case '\'':
    case '"':
        return lab_value_text_fail(p, at, "a quote inside of unquoted text; quote all of it");
    case '=':
    case '[':
    case ']':
    case '{':
    case '}':
        return lab_value_text_fail(p, at, "'%c' needs quotes or a backslash here", c);
    default:
        if (isprint((unsigned char)c))
            return lab_value_text_fail(p, at, "'%c' needs quotes", c);
        return lab_value_text_fail(p, at, "the control character 0x%02x needs quotes",
                                   (unsigned)c & 0xff);
    }
}

/* Digits with single underscores between them; returns their end, or `c` if there are none. */
static const char *skip_digits(const char *c) {
    if (!isdigit((unsigned char)*c))
        return c;
    while (isdigit((unsigned char)*c) || (*c == '_' && isdigit((unsigned char)c[1])))
        c++;
    return c;
}

enum number { NO_NUMBER, WHOLE, FRACTION };

/* Whether the whole text is a number. A leading zero (007) makes text, as in Hydra. */
static enum number classify(const char *text) {
    const char *c = text + (*text == '+' || *text == '-');
    if (strcasecmp(c, "inf") == 0 || strcasecmp(c, "nan") == 0)
        return FRACTION;
    const char *end = skip_digits(c);
    bool digits = end > c;
    if (digits && *c == '0' && end > c + 1)
        return NO_NUMBER;
    if (digits && !*end)
        return WHOLE;
    if (*end == '.') {
        const char *fraction = skip_digits(end + 1);
        if (!digits && fraction == end + 1)
            return NO_NUMBER;
        digits = true;
        end = fraction;
    }
    if (digits && (*end == 'e' || *end == 'E')) {
        const char *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
        end = skip_digits(exponent);
        if (end == exponent)
            return NO_NUMBER;
    }
    return digits && !*end ? FRACTION : NO_NUMBER;
}

static int read_number(struct lab_value_text *p, size_t start, const char *text, enum number kind,
                       struct lab_value **ret_value) {
    char *digits = lab_arena_alloc(p->arena, strlen(text) + 1, 1);
    size_t length = 0;
    for (const char *c = text; *c; c++)
        if (*c != '_')
            digits[length++] = *c;
    errno = 0;
    if (kind == WHOLE) {
        int64_t integer = strtoll(digits, NULL, 10);
        if (errno == ERANGE)
            return lab_value_text_fail(
                p, start, "%.40s is too large for a whole number; a string needs quotes", text);
        *ret_value = lab_value_int(p->arena, integer);
        return 0;
    }
    double number = strtod(digits, NULL);
    if (isinf(number) && errno == ERANGE)
        return lab_value_text_fail(p, start,
                                   "%.40s is too large for a number; a string needs quotes", text);
    /* strtod keeps a NaN's sign, which means nothing */
    *ret_value = lab_value_float(p->arena, isnan(number) ? (double)NAN : number);
    return 0;
}

/* What unquoted text without escapes stands for. */
static int interpret(struct lab_value_text *p, size_t start, const char *text,
                     struct lab_value **ret_value) {
    enum number kind = classify(text);
    if (kind != NO_NUMBER)
        return read_number(p, start, text, kind, ret_value);
    if (strcasecmp(text, "null") == 0)
        *ret_value = lab_value_null(p->arena);
    else if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
        *ret_value = lab_value_bool(p->arena, tolower((unsigned char)text[0]) == 't');
    else
        *ret_value = lab_value_string(p->arena, text);
    return 0;
}

/* Copies `${…}` as it stands, with whatever nests in it. */
static int take_interpolation(struct lab_value_text *p) {
    size_t start = p->at;
    int depth = 0;
    char quote = 0;
    for (;; p->at++) {
        char c = p->text[p->at];
        if (!c) {
            p->at = start;
            return lab_value_text_fail(p, start, "'${' without its '}'");
        }
        if (quote) {
            if (c == quote)
                quote = 0;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            break;
        }
    }
    p->at++;
    lab_str_add_bytes(&p->scratch, p->text + start, p->at - start);
    return 0;
}

/*
 * Unquoted text into the scratch string, up to a character that ends it: one of `stops`, or the end
 * of the text. Spaces at its ends are dropped. `ret_literal`: no escape or interpolation was in it,
 * so that it may be a number or constant.
 */
static int take_unquoted(struct lab_value_text *p, const char *stops, bool *ret_literal) {
    lab_str_clear(&p->scratch);
    *ret_literal = true;
    size_t end = 0; /* behind the last character that isn't a plain space */
    while (p->text[p->at] && !strchr(stops, p->text[p->at])) {
        char c = p->text[p->at];
        if (c == '\\' && is_escapable(p->text[p->at + 1])) {
            lab_str_add_bytes(&p->scratch, &p->text[p->at + 1], 1);
            p->at += 2;
            *ret_literal = false;
            end = p->scratch.length;
        } else if (c == '$' && p->text[p->at + 1] == '{') {
            if (take_interpolation(p) < 0)
                return -1;
            *ret_literal = false;
            end = p->scratch.length;
        } else if (is_plain(c)) {
            lab_str_add_bytes(&p->scratch, &c, 1);
            p->at++;
            if (!is_space(c))
                end = p->scratch.length;
        } else {
            return fail_at_character(p, p->at);
        }
    }
    p->scratch.length = end;
    p->scratch.text[end] = '\0';
    return 0;
}

/* A quoted string into the scratch string. Backslashes count only in a run that meets the quote. */
static int take_quoted(struct lab_value_text *p) {
    size_t start = p->at;
    char quote = p->text[p->at++];
    lab_str_clear(&p->scratch);
    for (;;) {
        char c = p->text[p->at];
        if (!c) {
            p->at = start;
            return lab_value_text_fail(p, start, "the quote (%c) is never closed", quote);
        }
        size_t run = strspn(p->text + p->at, "\\");
        if (p->text[p->at + run] == quote) {
            lab_str_add_bytes(&p->scratch, p->text + p->at, run / 2);
            p->at += run + 1;
            if (run % 2 == 0)
                return 0;
            lab_str_add_bytes(&p->scratch, &quote, 1);
        } else {
            size_t step = run ? run : 1;
            lab_str_add_bytes(&p->scratch, p->text + p->at, step);
            p->at += step;
        }
    }
}

/* Behind an item: whether another follows. -1 = neither that nor the end of the brackets. */
static int end_item(struct lab_value_text *p, size_t start, char close) {
    char c = p->text[p->at];
    if (!c)
        return lab_value_text_fail(p, start, "'%c' without its '%c'", p->text[start], close);
    if (c != ',' && c != close)
        return lab_value_text_fail(p, p->at, "'%c' where ',' or '%c' belongs", c, close);
    p->at++;
    return c == ',';
}

static int parse_key(struct lab_value_text *p, const char **ret_key) {
    lab_value_text_skip_spaces(p);
    size_t start = p->at;
    char c = p->text[p->at];
    bool literal;
    if (c == '\'' || c == '"' ? take_quoted(p) < 0 : take_unquoted(p, ":,}", &literal) < 0)
        return -1;
    lab_value_text_skip_spaces(p);
    if (p->text[p->at] != ':')
        return lab_value_text_fail(p, p->at, "':' and a value belong after the key '%.40s'",
                                   p->scratch.text);
    if (p->at == start)
        return lab_value_text_fail(p, start, "a key is missing before ':'");
    p->at++;
    *ret_key = lab_arena_strdup(p->arena, p->scratch.text);
    return 0;
}

/* A list or a map. */
static int parse_items(struct lab_value_text *p, struct lab_value **ret_value) {
    size_t start = p->at++;
    bool is_map = p->text[start] == '{';
    char close = is_map ? '}' : ']';
    struct lab_value *value = is_map ? lab_value_map(p->arena) : lab_value_list(p->arena);
    lab_value_text_skip_spaces(p);
    int more = p->text[p->at] != close;
    p->at += !more;
    while (more > 0) {
        const char *key = NULL;
        struct lab_value *item = NULL;
        size_t key_at = p->at;
        if (is_map && parse_key(p, &key) < 0)
            return -1;
        if (is_map && lab_value_get(value, key))
            return lab_value_text_fail(p, key_at, "duplicate key '%.40s'", key);
        if (parse_element(p, &item) < 0)
            return -1;
        if (is_map)
            lab_value_set(p->arena, value, key, item);
        else
            lab_value_append(p->arena, value, item);
        more = end_item(p, start, close);
    }
    *ret_value = value;
    return more;
}

static int parse_scalar(struct lab_value_text *p, struct lab_value **ret_value) {
    size_t start = p->at;
    char c = p->text[p->at];
    if (c == '\'' || c == '"') {
        if (take_quoted(p) < 0)
            return -1;
        *ret_value = lab_value_string(p->arena, p->scratch.text);
        (*ret_value)->quoted = true;
        return 0;
    }
    bool literal;
    if (take_unquoted(p, p->stops, &literal) < 0)
        return -1;
    if (p->at == start && c && (p->depth > 0 || p->call))
        return lab_value_text_fail(p, start, "a value is missing before '%c'", c);
    if (p->at == start)
        return fail_at_character(p, start);
    if (literal)
        return interpret(p, start, p->scratch.text, ret_value);
    *ret_value = lab_value_string(p->arena, p->scratch.text);
    return 0;
}

size_t lab_value_text_at_call(const struct lab_value_text *p) {
    const char *name = p->text + p->at, *end = name;
    if (!isalpha((unsigned char)*name) && *name != '_')
        return 0;
    while (isalnum((unsigned char)*end) || *end == '_' || *end == '-')
        end++;
    const char *next = end;
    while (is_space(*next))
        next++;
    return *next == '(' ? (size_t)(end - name) : 0;
}

static int parse_brackets(struct lab_value_text *p, struct lab_value **ret_value) {
    if (p->depth == MAX_DEPTH)
        return lab_value_text_fail(p, p->at, "brackets nest deeper than %d", MAX_DEPTH);
    const char *stops = p->stops;
    p->stops = ",]}";
    p->depth++;
    int result = parse_items(p, ret_value);
    p->depth--;
    p->stops = stops;
    return result;
}

/* One element with the spaces around it. */
static int parse_element(struct lab_value_text *p, struct lab_value **ret_value) {
    lab_value_text_skip_spaces(p);
    /* asked for before the children's, so that columns are counted but once */
    int column = lab_value_text_column(p, p->at);
    char c = p->text[p->at];
    int result;
    if (c == '[' || c == '{')
        result = parse_brackets(p, ret_value);
    else if (p->call && p->depth > 0 && lab_value_text_at_call(p) > 0)
        result = p->call(p, ret_value);
    else
        result = parse_scalar(p, ret_value);
    if (result < 0)
        return -1;
    assert(*ret_value);
    (*ret_value)->line = 1;
    (*ret_value)->column = column;
    lab_value_text_skip_spaces(p);
    return 0;
}

int lab_value_text_read(struct lab_value_text *p, const char *stops, struct lab_value **ret_value) {
    struct lab_value *value = NULL;
    const char *outer_stops = p->stops;
    p->stops = stops;
    int result = parse_element(p, &value);
    p->stops = outer_stops;
    if (result < 0)
        return -1;
    char c = p->text[p->at];
    if (c && !strchr(stops, c))
        return lab_value_text_fail(
            p, p->at, "text after the end of %s; quote all of it if it is a string",
            value->quoted ? "a quoted string" : lab_value_type_name(value->type));
    *ret_value = value;
    return 0;
}

void lab_value_text_init(struct lab_value_text *p, const char *bytes, struct lab_arena *arena,
                         struct lab_err *err) {
    *p = (struct lab_value_text){.text = bytes, .column = 1, .arena = arena, .err = err};
    lab_str_init(&p->scratch);
}

void lab_value_text_release(struct lab_value_text *p) {
    lab_str_release(&p->scratch);
}

static int parse_all(struct lab_value_text *p, struct lab_value **ret_value) {
    lab_value_text_skip_spaces(p);
    if (!p->text[p->at]) {
        *ret_value = lab_value_string(p->arena, "");
        (*ret_value)->line = (*ret_value)->column = 1;
        return 0;
    }
    struct lab_value *value = NULL;
    if (lab_value_text_read(p, ",", &value) < 0)
        return -1;
    if (p->text[p->at])
        return fail_at_character(p, p->at);
    *ret_value = value;
    return 0;
}

int lab_value_parse(const char *text, struct lab_arena *arena, struct lab_value **ret_value,
                    struct lab_err *err) {
    struct lab_value_text p;
    lab_value_text_init(&p, text, arena, err);
    int result = parse_all(&p, ret_value);
    lab_value_text_release(&p);
    return result;
}

/* Whether a string must stand in quotes to come back as the same string. */
static bool needs_quotes(const char *text, bool is_key) {
    size_t length = strlen(text);
    if (length == 0 || is_space(text[0]) || is_space(text[length - 1]))
        return true;
    for (const char *c = text; *c; c++)
        if (!is_plain(*c) || *c == '\\' || *c == '\t' || (*c == '$' && c[1] == '{') ||
            (is_key && *c == ':'))
            return true;
    if (is_key)
        return false;
    return classify(text) != NO_NUMBER || strcasecmp(text, "null") == 0 ||
           strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
}

static void write_string(const char *text, bool is_key, struct lab_str *out) {
    if (!needs_quotes(text, is_key)) {
        lab_str_add(out, text);
        return;
    }
    lab_str_add(out, "'");
    for (const char *c = text; *c;) {
        size_t run = strspn(c, "\\");
        bool meets_quote = c[run] == '\'' || !c[run];
        lab_str_add_repeat(out, "\\", (int)(meets_quote ? 2 * run : run));
        c += run;
        if (*c == '\'')
            lab_str_add(out, "\\'");
        else if (*c)
            lab_str_add_bytes(out, c, 1);
        c += *c != '\0';
    }
    lab_str_add(out, "'");
}

static void write_children(const struct lab_value *value, struct lab_str *out) {
    bool is_map = value->type == LAB_VALUE_MAP;
    lab_str_add(out, is_map ? "{" : "[");
    for (int i = 0; i < value->count; i++) {
        if (i > 0)
            lab_str_add(out, ",");
        if (is_map) {
            write_string(value->keys[i], true, out);
            lab_str_add(out, ":");
        }
        lab_value_write(value->items[i], out);
    }
    lab_str_add(out, is_map ? "}" : "]");
}

bool lab_value_write_plain(const struct lab_value *value, struct lab_str *out) {
    if (value->type == LAB_VALUE_NULL)
        lab_str_add(out, "null");
    else if (value->type == LAB_VALUE_BOOL)
        lab_str_add(out, value->boolean ? "true" : "false");
    else if (value->type == LAB_VALUE_INT)
        lab_str_add_decimal(out, value->integer, 0);
    else if (value->type == LAB_VALUE_FLOAT && isfinite(value->number))
        lab_str_add_double(out, value->number);
    else
        return false;
    return true;
}

void lab_value_write(const struct lab_value *value, struct lab_str *out) {
    if (lab_value_write_plain(value, out))
        return;
    if (value->type == LAB_VALUE_FLOAT)
        lab_str_add_double(out, value->number);
    else if (value->type == LAB_VALUE_STRING)
        write_string(value->string, false, out);
    else
        write_children(value, out);
}
