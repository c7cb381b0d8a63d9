/*
 * manual_man.c: man pages in roff, with the man macros. Every character that roff could take for
 * its own is escaped, so that descriptors are written as plain text.
 */
#include "command/manual/manual_text.h"

#include <ctype.h>
#include <string.h>

/* The code point at `c`, which is valid UTF-8; `ret_bytes` gets its length. */
static unsigned decode(const unsigned char *c, size_t *ret_bytes) {
    size_t bytes = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    unsigned point = c[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | (c[i] & 0x3fu);
    *ret_bytes = bytes;
    return point;
}

static void add_escaped_bytes(struct lab_str *out, const char *text, size_t length) {
    /* what groff would print as a typographic cousin, or take as a request */
    static const char *const escapes[128] = {
        ['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
        ['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq"};
    length = lab_str_utf8_prefix(text, length);
    if (length > 0 && text[0] == '.')
        lab_str_add(out, "\\&");
    for (size_t at = 0; at < length;) {
        unsigned char c = (unsigned char)text[at];
        size_t bytes = 1;
        if (c >= 0x80)
            lab_str_printf(out, "\\[u%04X]", decode((const unsigned char *)text + at, &bytes));
        else if (escapes[c])
            lab_str_add(out, escapes[c]);
        else
            lab_str_add_bytes(out, text + at, 1);
        at += bytes;
    }
}

static void add_escaped(struct lab_str *out, const char *text) {
    add_escaped_bytes(out, text, strlen(text));
}

static void add_upper(struct lab_str *out, const char *text) {
    LAB_AUTO(str, upper);
    lab_str_add(&upper, text);
    for (size_t i = 0; i < upper.length; i++)
        upper.text[i] = (char)toupper((unsigned char)upper.text[i]);
    add_escaped(out, upper.text);
}

static void add_bold(struct lab_str *out, const char *text) {
    lab_str_add(out, "\\fB");
    add_escaped(out, text);
    lab_str_add(out, "\\fR");
}

static void add_italic(struct lab_str *out, const char *text) {
    lab_str_add(out, "\\fI");
    add_escaped(out, text);
    lab_str_add(out, "\\fR");
}

static void add_heading(struct lab_str *out, const char *title) {
    lab_str_add(out, ".SH \"");
    add_upper(out, title);
    lab_str_add(out, "\"\n");
}

/* Paragraphs; lines that begin with a space are shown as they are. */
static void add_text(struct lab_str *out, const char *text, const char *paragraph) {
    bool verbatim = false, gap = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool empty = strspn(text, " \t") >= length;
        bool as_is = !empty && text[0] == ' ';
        if (verbatim && !as_is) {
            lab_str_add(out, ".EE\n");
            verbatim = false;
            gap = true;
        }
        if (!empty && gap)
            lab_str_printf(out, "%s\n", paragraph);
        gap = empty;
        if (as_is && !verbatim)
            lab_str_add(out, ".EX\n");
        verbatim = as_is;
        if (!empty) {
            const char *start = as_is ? text : text + strspn(text, " \t");
            add_escaped_bytes(out, start, length - (size_t)(start - text));
            lab_str_add(out, "\n");
        }
        text += length + (text[length] == '\n');
    }
    if (verbatim)
        lab_str_add(out, ".EE\n");
}

static void add_row(struct lab_str *out, const struct lab_option *row, bool is_key) {
    const char *value = lab_option_value_name(row);
    lab_str_add(out, ".TP\n");
    if (is_key) {
        add_bold(out, row->name);
        lab_str_add(out, "=");
        add_italic(out, value ? value : "true|false");
    } else {
        if (row->letter) {
            const char letter[] = {'-', row->letter, '\0'};
            add_bold(out, letter);
            lab_str_add(out, ", ");
        }
        add_bold(out, "--");
        add_bold(out, row->name);
        if (value) {
            lab_str_add(out, " ");
            add_italic(out, value);
        } else if (lab_str_equal(row->fallback, "true")) {
            lab_str_add(out, ", ");
            add_bold(out, "--no-");
            add_bold(out, row->name);
        }
    }
    lab_str_add(out, "\n");
    LAB_AUTO(str, detail);
    lab_manual_detail(row, &detail);
    add_text(out, detail.length ? detail.text : row->name, ".IP");
}

static void add_title(const struct lab_manual *manual, const char *name, const char *summary,
                      struct lab_str *out) {
    lab_str_add(out, ".TH \"");
    add_upper(out, name);
    lab_str_add(out, "\" 1 \"\" \"");
    add_escaped(out, manual->program);
    lab_str_add(out, " ");
    add_escaped(out, manual->version);
    lab_str_add(out, "\" \"");
    add_escaped(out, manual->program);
    lab_str_add(out, " manual\"\n");
    add_heading(out, "Name");
    add_escaped(out, name);
    lab_str_add(out, " \\- ");
    add_escaped(out, summary);
    lab_str_add(out, "\n");
}

static void add_reference(const struct lab_manual *manual, const struct lab_manual_page *page,
                          const char *end, struct lab_str *out) {
    lab_str_add(out, ".BR ");
    add_escaped(out, manual->program);
    if (page) {
        lab_str_add(out, "\\-");
        add_escaped(out, page->name);
    }
    lab_str_printf(out, " (1)%s\n", end);
}

static void write_program(const struct lab_manual *manual, struct lab_str *out) {
    add_title(manual, manual->program, manual->summary, out);
    add_heading(out, "Synopsis");
    add_bold(out, manual->program);
    lab_str_add(out, " \\fICOMMAND\\fR [\\fIoption\\fR...]\n");
    add_heading(out, "Commands");
    for (int i = 0; manual->pages[i]; i++) {
        lab_str_add(out, ".TP\n");
        add_bold(out, manual->pages[i]->name);
        lab_str_add(out, "\n");
        add_text(out, manual->pages[i]->summary, ".IP");
    }
    add_heading(out, "See also");
    for (int i = 0; manual->pages[i]; i++)
        add_reference(manual, manual->pages[i], manual->pages[i + 1] ? "," : "", out);
}

static void write_sections(const struct lab_manual_page *page, struct lab_str *out) {
    for (const struct lab_manual_section *section = page->sections; section && section->title;
         section++) {
        add_heading(out, section->title);
        if (section->text)
            add_text(out, section->text, ".PP");
        for (const struct lab_option *row = section->keys; row && row->name; row++)
            add_row(out, row, true);
    }
}

static void write_command(const struct lab_manual *manual, const struct lab_manual_page *page,
                          struct lab_str *out) {
    LAB_AUTO(str, name);
    lab_str_printf(&name, "%s-%s", manual->program, page->name);
    add_title(manual, name.text, page->summary, out);
    add_heading(out, "Synopsis");
    lab_str_clear(&name);
    lab_str_printf(&name, "%s %s", manual->program, page->name);
    add_bold(out, name.text);
    lab_str_add(out, " ");
    add_escaped(out, page->usage ? page->usage : "");
    bool has_options = page->tables && page->tables[0];
    lab_str_add(out, has_options ? " [\\fIoption\\fR...]\n" : "\n");
    if (page->description) {
        add_heading(out, "Description");
        add_text(out, page->description, ".PP");
    }
    write_sections(page, out);
    if (has_options)
        add_heading(out, "Options");
    for (int t = 0; page->tables && page->tables[t]; t++)
        for (const struct lab_option *row = page->tables[t]; row->name; row++)
            add_row(out, row, false);
    if (page->examples && page->examples->line)
        add_heading(out, "Examples");
    for (const struct lab_manual_example *e = page->examples; e && e->line; e++) {
        lab_str_add(out, ".TP\n");
        add_bold(out, e->line);
        lab_str_add(out, "\n");
        add_text(out, e->text ? e->text : "\n", ".IP");
    }
    add_heading(out, "See also");
    add_reference(manual, NULL, "", out);
}

void lab_manual_man(const struct lab_manual *manual, const struct lab_manual_page *page,
                    struct lab_str *out) {
    if (page)
        write_command(manual, page, out);
    else
        write_program(manual, out);
}
