/* manual.c: help as a terminal shows it: names on the left, what they do wrapped beside them. */
#include "command/manual/manual.h"

#include "command/manual/manual_text.h"

#define MIN_COLUMNS 40
#define MAX_COLUMNS 100 /* longer lines are hard to read, however wide the window */
#define NAME_INDENT 2
#define MAX_NAME    26 /* columns of names; a longer one gets a line of its own */

struct page {
    struct lab_str *out;
    int columns;
    bool colour;
    int name_columns; /* of the table being written */
};

static struct page start_page(int columns, enum lab_manual_style style, struct lab_str *out) {
    if (columns < MIN_COLUMNS)
        columns = columns <= 0 ? 80 : MIN_COLUMNS;
    return (struct page){.out = out,
                         .columns = columns < MAX_COLUMNS ? columns : MAX_COLUMNS,
                         .colour = style == LAB_MANUAL_COLOUR};
}

static void add_bold(struct page *page, const char *text) {
    lab_str_printf(page->out, "%s%s%s", page->colour ? "\033[1m" : "", text,
                   page->colour ? "\033[0m" : "");
}

static void add_heading(struct page *page, const char *title) {
    lab_str_add(page->out, "\n");
    add_bold(page, title);
    lab_str_add(page->out, ":\n");
}

static void add_row(struct page *page, const char *name, const char *text) {
    int width = lab_str_columns(name);
    lab_str_add_repeat(page->out, " ", NAME_INDENT);
    add_bold(page, name);
    int indent = NAME_INDENT + page->name_columns + 2;
    int at = NAME_INDENT + width;
    if (width > page->name_columns) {
        lab_str_add(page->out, "\n");
        at = 0;
    }
    if (text[0])
        lab_manual_wrap(page->out, text, at, indent, page->columns);
    else if (at > 0)
        lab_str_add(page->out, "\n");
}

/* "-r, --repeat N", or "repeat=N" for a key */
static void make_name(const struct lab_option *row, bool is_key, bool letters,
                      struct lab_str *name) {
    const char *value = lab_option_value_name(row);
    lab_str_clear(name);
    if (is_key) {
        lab_str_printf(name, "%s=%s", row->name, value ? value : "true|false");
        return;
    }
    if (row->letter)
        lab_str_printf(name, "-%c, ", row->letter);
    else if (letters)
        lab_str_add(name, "    ");
    bool on_by_default = row->type == LAB_OPTION_FLAG && lab_str_equal(row->fallback, "true");
    lab_str_printf(name, "--%s%s", on_by_default ? "[no-]" : "", row->name);
    if (value)
        lab_str_printf(name, " %s", value);
}

static void measure(struct page *page, const char *name) {
    int width = lab_str_columns(name);
    if (width <= MAX_NAME && width > page->name_columns)
        page->name_columns = width;
}

static bool has_letters(const struct lab_option *const *tables) {
    for (int t = 0; tables[t]; t++)
        for (const struct lab_option *row = tables[t]; row->name; row++)
            if (row->letter)
                return true;
    return false;
}

/* All rows of the tables in one aligned table. */
static void add_options(struct page *page, const struct lab_option *const *tables, bool are_keys) {
    LAB_AUTO(str, detail);
    LAB_AUTO(str, name);
    bool letters = !are_keys && has_letters(tables);
    page->name_columns = 0;
    for (int t = 0; tables[t]; t++)
        for (const struct lab_option *row = tables[t]; row->name; row++) {
            make_name(row, are_keys, letters, &name);
            measure(page, name.text);
        }
    for (int t = 0; tables[t]; t++)
        for (const struct lab_option *row = tables[t]; row->name; row++) {
            make_name(row, are_keys, letters, &name);
            lab_str_clear(&detail);
            lab_manual_detail(row, &detail);
            add_row(page, name.text, detail.text);
        }
}

static void add_usage(struct page *page, const struct lab_manual *manual,
                      const struct lab_manual_page *command) {
    lab_str_add(page->out, "\n");
    add_bold(page, "Usage:");
    lab_str_printf(page->out, " %s %s", manual->program, command->name);
    if (command->usage && command->usage[0])
        lab_str_printf(page->out, " %s", command->usage);
    bool has_options = command->tables && command->tables[0];
    lab_str_add(page->out, has_options ? " [option...]\n" : "\n");
}

static void add_section(struct page *page, const struct lab_manual_section *section) {
    add_heading(page, section->title);
    if (section->text)
        lab_manual_wrap(page->out, section->text, 0, NAME_INDENT, page->columns);
    if (section->keys) {
        const struct lab_option *const tables[] = {section->keys, NULL};
        add_options(page, tables, true);
    }
}

static void add_examples(struct page *page, const struct lab_manual_example *example) {
    add_heading(page, "Examples");
    for (; example->line; example++) {
        lab_str_add_repeat(page->out, " ", NAME_INDENT);
        add_bold(page, example->line);
        lab_str_add(page->out, "\n");
        if (example->text)
            lab_manual_wrap(page->out, example->text, 0, 3 * NAME_INDENT, page->columns);
    }
}

void lab_manual_help(const struct lab_manual *manual, const struct lab_manual_page *command,
                     int columns, enum lab_manual_style style, struct lab_str *out) {
    struct page page = start_page(columns, style, out);
    LAB_AUTO(str, title);
    lab_str_printf(&title, "%s %s", manual->program, command->name);
    add_bold(&page, title.text);
    lab_str_add(out, ":");
    lab_manual_wrap(out, command->summary, lab_str_columns(title.text) + 1, 0, page.columns);
    add_usage(&page, manual, command);
    if (command->description) {
        lab_str_add(out, "\n");
        lab_manual_wrap(out, command->description, 0, 0, page.columns);
    }
    for (const struct lab_manual_section *section = command->sections; section && section->title;
         section++)
        add_section(&page, section);
    if (command->tables && command->tables[0]) {
        add_heading(&page, "Options");
        add_options(&page, command->tables, false);
    }
    if (command->examples && command->examples->line)
        add_examples(&page, command->examples);
}

void lab_manual_overview(const struct lab_manual *manual, int columns, enum lab_manual_style style,
                         struct lab_str *out) {
    struct page page = start_page(columns, style, out);
    LAB_AUTO(str, title);
    lab_str_printf(&title, "%s %s", manual->program, manual->version);
    add_bold(&page, title.text);
    lab_str_add(out, ":");
    lab_manual_wrap(out, manual->summary, lab_str_columns(title.text) + 1, 0, page.columns);
    lab_str_add(out, "\n");
    add_bold(&page, "Usage:");
    lab_str_printf(out, " %s COMMAND [option...]\n", manual->program);
    add_heading(&page, "Commands");
    for (int i = 0; manual->pages[i]; i++)
        measure(&page, manual->pages[i]->name);
    for (int i = 0; manual->pages[i]; i++)
        add_row(&page, manual->pages[i]->name, manual->pages[i]->summary);
    lab_str_clear(&title);
    lab_str_printf(&title, "`%s help COMMAND` shows all about one.", manual->program);
    lab_str_add(out, "\n");
    lab_manual_wrap(out, title.text, 0, 0, page.columns);
}
