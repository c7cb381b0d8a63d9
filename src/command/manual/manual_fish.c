/* manual_fish.c: completion for fish: a rule a line, each with the condition it holds under. */
#include "command/manual/manual_text.h"

static void add_takes_value(const struct lab_manual *manual, struct lab_str *out) {
    lab_str_printf(out, "set -g __%s_takes_value", manual->program);
    for (int i = 0; manual->pages[i]; i++)
        for (int t = 0; manual->pages[i]->tables && manual->pages[i]->tables[t]; t++)
            for (const struct lab_option *row = manual->pages[i]->tables[t]; row->name; row++) {
                if (row->type == LAB_OPTION_FLAG)
                    continue;
                lab_str_printf(out, " \\\n    '%s --%s'", manual->pages[i]->name, row->name);
                if (row->letter)
                    lab_str_printf(out, " '%s -%c'", manual->pages[i]->name, row->letter);
            }
    lab_str_add(out, "\n\n");
}

/* Opens a rule that holds where the words are `at`. */
static void open_rule(const char *program, const char *at, struct lab_str *out) {
    lab_str_printf(out, "complete -c %s -n '__%s_at %s'", program, program, at);
}

static void close_rule(const char *help, struct lab_str *out) {
    if (help && *help) {
        lab_str_add(out, " -d ");
        lab_manual_add_quoted(out, help);
    }
    lab_str_add(out, "\n");
}

static void add_list(struct lab_str *out, const char *prefix, const char *const *words) {
    lab_str_add(out, " -a '");
    for (int w = 0; words[w]; w++)
        lab_str_printf(out, "%s%s%s", w ? " " : "", prefix, words[w]);
    lab_str_add(out, "'");
}

static void add_option(const char *program, const char *at, const struct lab_option *row,
                       struct lab_str *out) {
    open_rule(program, at, out);
    lab_str_printf(out, " -l %s", row->name);
    if (row->letter)
        lab_str_printf(out, " -s %c", row->letter);
    const char *const *words = NULL;
    enum lab_manual_values values =
        row->type == LAB_OPTION_FLAG ? LAB_MANUAL_VALUES_NONE : lab_manual_values(row, &words);
    if (values == LAB_MANUAL_VALUES_WORDS) {
        lab_str_add(out, " -x");
        add_list(out, "", words);
    } else if (values == LAB_MANUAL_VALUES_FILE) {
        lab_str_add(out, " -r -F");
    } else if (values == LAB_MANUAL_VALUES_DIR) {
        lab_str_add(out, " -x -a '(__fish_complete_directories)'");
    } else if (row->type != LAB_OPTION_FLAG) {
        lab_str_add(out, " -x");
    }
    close_rule(row->help, out);
    if (row->type == LAB_OPTION_FLAG && lab_str_equal(row->fallback, "true")) {
        open_rule(program, at, out);
        lab_str_printf(out, " -l no-%s", row->name);
        close_rule("not so", out);
    }
}

static void add_key(const char *program, const char *at, const struct lab_option *row,
                    struct lab_str *out) {
    const char *const *words = NULL;
    enum lab_manual_values values = lab_manual_values(row, &words);
    open_rule(program, at, out);
    if (values == LAB_MANUAL_VALUES_WORDS) {
        LAB_AUTO(str, prefix);
        lab_str_printf(&prefix, "%s=", row->name);
        add_list(out, prefix.text, words);
    } else if (values == LAB_MANUAL_VALUES_NONE) {
        lab_str_printf(out, " -a '%s='", row->name);
    } else {
        lab_str_printf(out, " -a '%s= (__%s_paths %s)'", row->name, program, row->name);
    }
    close_rule(row->help, out);
}

static void add_page(const char *program, const struct lab_manual_page *page, struct lab_str *out) {
    LAB_AUTO(str, at);
    lab_str_printf(&at, "%s +", page->name);
    for (int t = 0; page->tables && page->tables[t]; t++)
        for (const struct lab_option *row = page->tables[t]; row->name; row++)
            add_option(program, at.text, row, out);
    if (page->words && page->words[0]) {
        open_rule(program, page->name, out);
        add_list(out, "", page->words);
        close_rule(NULL, out);
    }
    if (lab_manual_takes_path(page, true) || lab_manual_takes_path(page, false)) {
        bool later = lab_manual_takes_path(page, false);
        lab_str_clear(&at);
        lab_str_printf(&at, "%s%s", page->name, later ? " +" : "");
        open_rule(program, at.text, out);
        lab_str_add(out, " -F\n");
    }
    for (int w = 0; page->word_keys && page->words && page->words[w]; w++) {
        const struct lab_option *row = page->word_keys[w];
        lab_str_clear(&at);
        lab_str_printf(&at, "%s %s +", page->name, page->words[w]);
        for (; row && row->name; row++)
            add_key(program, at.text, row, out);
    }
}

void lab_manual_fish(const struct lab_manual *manual, struct lab_str *out) {
    lab_str_printf(out, "# fish completion for %s %s\n\n", manual->program, manual->version);
    add_takes_value(manual, out);
    lab_manual_add_script(out, "completion.fish", manual->program);
    for (int i = 0; manual->pages[i]; i++) {
        lab_str_add(out, "\n");
        open_rule(manual->program, "", out);
        lab_str_printf(out, " -a %s", manual->pages[i]->name);
        close_rule(manual->pages[i]->summary, out);
        add_page(manual->program, manual->pages[i], out);
    }
}
