/* manual_text.c: paragraphs and lists of a manual page, wrapped. */
#include "command/manual/manual_text.h"

#include "base/option_value.h"

#include <stdio.h>
#include <string.h>

static const char *skip_blanks(const char *c) {
    while (*c == ' ' || *c == '\t')
        c++;
    return c;
}

static bool is_empty_line(const char *c) {
    c = skip_blanks(c);
    return *c == '\n' || !*c;
}

/* One word behind what stands on the line; starts a new one where it doesn't fit. */
static void add_word(struct lab_str *out, const char *word, size_t length, int *at, int indent,
                     int columns) {
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    int width = lab_str_columns(text);
    bool first = *at <= indent;
    if (!first && *at + 1 + width > columns) {
        lab_str_add(out, "\n");
        *at = 0;
        first = true;
    }
    if (first) {
        lab_str_add_repeat(out, " ", indent - *at);
        *at = indent;
    } else {
        lab_str_add(out, " ");
        *at += 1;
    }
    lab_str_add_bytes(out, word, length);
    *at += width;
}

static const char *add_verbatim(struct lab_str *out, const char *line, int indent) {
    size_t length = strcspn(line, "\n");
    lab_str_add_repeat(out, " ", indent);
    lab_str_add_bytes(out, line, length);
    lab_str_add(out, "\n");
    return line + length + (line[length] == '\n');
}

void lab_manual_wrap(struct lab_str *out, const char *text, int at, int indent, int columns) {
    const char *c = text;
    bool line_start = true, open = at > 0;
    while (*c) {
        if (line_start && is_empty_line(c)) {
            while (*c && is_empty_line(c))
                c += strcspn(c, "\n") + (c[strcspn(c, "\n")] == '\n');
            lab_str_add(out, open ? "\n\n" : "\n");
            open = false;
            at = 0;
        } else if (line_start && *c == ' ') {
            if (open)
                lab_str_add(out, "\n");
            open = false;
            at = 0;
            c = add_verbatim(out, c, indent);
        } else {
            c = skip_blanks(c);
            size_t length = strcspn(c, " \t\n");
            if (length > 0) {
                add_word(out, c, length, &at, indent, columns);
                open = true;
            }
            c += length;
            line_start = *c == '\n';
            c += line_start;
        }
    }
    if (open)
        lab_str_add(out, "\n");
}

static void add_part(struct lab_str *out, bool *first, const char *text) {
    lab_str_printf(out, "%s%s", *first ? "" : "; ", text);
    *first = false;
}

void lab_manual_detail(const struct lab_option *row, struct lab_str *out) {
    LAB_AUTO(str, part);
    LAB_AUTO(str, parts);
    bool first = true;
    if (row->type == LAB_OPTION_CHOICE) {
        lab_str_add_list(&part, row->choices, "or");
        add_part(&parts, &first, part.text);
    } else if (row->min != 0 || row->max != 0) {
        lab_option_add_range(row, &part);
        add_part(&parts, &first, part.text);
    } else if (row->unit) {
        lab_str_printf(&part, "in %s", row->unit);
        add_part(&parts, &first, part.text);
    }
    if (row->fallback && row->fallback[0]) {
        lab_str_clear(&part);
        lab_str_printf(&part, "default %s", row->fallback);
        add_part(&parts, &first, part.text);
    }
    lab_str_add(out, row->help ? row->help : "");
    if (!first)
        lab_str_printf(out, "%s(%s)", row->help ? " " : "", parts.text);
}

bool lab_manual_takes_path(const struct lab_manual_page *page, bool first) {
    const char *usage = page->usage ? page->usage : "";
    const char *at = strstr(usage, "PATH") ? strstr(usage, "PATH") : strstr(usage, "FILE");
    return at && (first ? at < usage + strcspn(usage, " ") : lab_str_starts(at + 4, "..."));
}

enum lab_manual_values lab_manual_values(const struct lab_option *row,
                                         const char *const **ret_words) {
    static const char *const truths[] = {"true", "false", NULL};
    const char *name = lab_option_value_name(row);
    if (row->type == LAB_OPTION_FLAG)
        *ret_words = truths;
    else if (row->type == LAB_OPTION_CHOICE)
        *ret_words = row->choices;
    else if (row->suggestions)
        *ret_words = row->suggestions;
    else if (lab_str_equal(name, "FILE"))
        return LAB_MANUAL_VALUES_FILE;
    else
        return lab_str_equal(name, "DIR") ? LAB_MANUAL_VALUES_DIR : LAB_MANUAL_VALUES_NONE;
    return LAB_MANUAL_VALUES_WORDS;
}

void lab_manual_add_quoted(struct lab_str *out, const char *text) {
    lab_str_add(out, "'");
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            lab_str_add(out, "'\\''");
        else
            lab_str_add_bytes(out, c, 1);
    lab_str_add(out, "'");
}

void lab_manual_add_script(struct lab_str *out, const char *name, const char *program) {
    static const char own[] = "gpulab"; /* as the file has it */
    const struct lab_manual_file *file = lab_manual_files;
    while (!lab_str_equal(file->path, name))
        file++;
    for (const char *c = file->text, *next; *c; c = next) {
        next = strstr(c, own);
        lab_str_add_bytes(out, c, next ? (size_t)(next - c) : strlen(c));
        lab_str_add(out, next ? program : "");
        next = next ? next + strlen(own) : c + strlen(c);
    }
}
