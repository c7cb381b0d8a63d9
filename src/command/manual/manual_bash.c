/*
 * manual_bash.c: completion for bash, and the choice of the shell. The script needs no
 * bash-completion package. bash splits words at '=' and ':', so the script takes the word from the
 * line itself and cuts from its answers what bash thinks is written already.
 */
#include "command/manual/manual_text.h"

#include <string.h>

static void open_function(struct lab_str *out, const char *program, const char *name,
                          const char *subject) {
    lab_str_printf(out, "_%s_%s() {\n    case %s in\n", program, name, subject);
}

static void close_function(struct lab_str *out) {
    lab_str_add(out, "    esac\n}\n\n");
}

static void add_commands(const struct lab_manual *manual, struct lab_str *out) {
    lab_str_printf(out, "_%s_commands() {\n    echo '", manual->program);
    for (int i = 0; manual->pages[i]; i++)
        lab_str_printf(out, "%s%s", i ? " " : "", manual->pages[i]->name);
    lab_str_add(out, "'\n}\n\n");
}

static void add_options(const struct lab_manual *manual, struct lab_str *out) {
    open_function(out, manual->program, "options", "$1");
    for (int i = 0; manual->pages[i]; i++) {
        const struct lab_manual_page *page = manual->pages[i];
        lab_str_printf(out, "    %s) echo '", page->name);
        for (int t = 0; page->tables && page->tables[t]; t++)
            for (const struct lab_option *row = page->tables[t]; row->name; row++) {
                lab_str_printf(out, " --%s", row->name);
                if (row->type == LAB_OPTION_FLAG && lab_str_equal(row->fallback, "true"))
                    lab_str_printf(out, " --no-%s", row->name);
            }
        lab_str_add(out, "' ;;\n");
    }
    close_function(out);
}

static void add_takes_value(const struct lab_manual *manual, struct lab_str *out) {
    open_function(out, manual->program, "takes_value", "\"$1 $2\"");
    for (int i = 0; manual->pages[i]; i++) {
        const struct lab_manual_page *page = manual->pages[i];
        for (int t = 0; page->tables && page->tables[t]; t++)
            for (const struct lab_option *row = page->tables[t]; row->name; row++) {
                if (row->type == LAB_OPTION_FLAG)
                    continue;
                lab_str_printf(out, "    '%s --%s'", page->name, row->name);
                if (row->letter)
                    lab_str_printf(out, " | '%s -%c'", page->name, row->letter);
                lab_str_add(out, ") return 0 ;;\n");
            }
    }
    lab_str_add(out, "    *) return 1 ;;\n");
    close_function(out);
}

static void add_takes_path(const struct lab_manual *manual, struct lab_str *out) {
    open_function(out, manual->program, "takes_path", "\"$1 $2\"");
    for (int i = 0; manual->pages[i]; i++)
        for (int first = 0; first < 2; first++)
            if (lab_manual_takes_path(manual->pages[i], first))
                lab_str_printf(out, "    '%s %s') return 0 ;;\n", manual->pages[i]->name,
                               first ? "first" : "later");
    lab_str_add(out, "    *) return 1 ;;\n");
    close_function(out);
}

static void add_words(const struct lab_manual *manual, struct lab_str *out) {
    open_function(out, manual->program, "words", "$1");
    for (int i = 0; manual->pages[i]; i++) {
        const struct lab_manual_page *page = manual->pages[i];
        if (!page->words || !page->words[0])
            continue;
        lab_str_printf(out, "    %s) echo '", page->name);
        for (int w = 0; page->words[w]; w++)
            lab_str_printf(out, "%s%s", w ? " " : "", page->words[w]);
        lab_str_add(out, "' ;;\n");
    }
    close_function(out);
}

static const struct lab_option *keys_of(const struct lab_manual_page *page, int word) {
    return page->word_keys ? page->word_keys[word] : NULL;
}

static void add_keys(const struct lab_manual *manual, struct lab_str *out) {
    open_function(out, manual->program, "keys", "\"$1 $2\"");
    for (int i = 0; manual->pages[i]; i++) {
        const struct lab_manual_page *page = manual->pages[i];
        for (int w = 0; page->words && page->words[w]; w++) {
            const struct lab_option *keys = keys_of(page, w);
            if (!keys || !keys->name)
                continue;
            lab_str_printf(out, "    '%s %s') echo '", page->name, page->words[w]);
            for (const struct lab_option *row = keys; row->name; row++)
                lab_str_printf(out, "%s%s=", row == keys ? "" : " ", row->name);
            lab_str_add(out, "' ;;\n");
        }
    }
    close_function(out);
}

/* What the value of one option or key completes to; nothing if that is unknown. */
static void add_value(const char *program, const char *owner, const struct lab_option *row,
                      bool is_key, struct lab_str *out) {
    const char *const *words = NULL;
    enum lab_manual_values values = lab_manual_values(row, &words);
    if (values == LAB_MANUAL_VALUES_NONE)
        return;
    lab_str_printf(out, "    '%s %s%s'", owner, is_key ? "" : "--", row->name);
    if (row->letter && !is_key)
        lab_str_printf(out, " | '%s -%c'", owner, row->letter);
    if (values == LAB_MANUAL_VALUES_WORDS) {
        lab_str_printf(out, ") _%s_offer '", program);
        for (int w = 0; words[w]; w++)
            lab_str_printf(out, "%s%s", w ? " " : "", words[w]);
        lab_str_add(out, "' ;;\n");
    } else {
        lab_str_printf(out, ") _%s_paths %s ;;\n", program,
                       values == LAB_MANUAL_VALUES_FILE ? "f" : "d");
    }
}

static void add_values(const struct lab_manual *manual, struct lab_str *out) {
    LAB_AUTO(str, owner);
    open_function(out, manual->program, "value", "\"$1 $2\"");
    for (int i = 0; manual->pages[i]; i++) {
        const struct lab_manual_page *page = manual->pages[i];
        for (int t = 0; page->tables && page->tables[t]; t++)
            for (const struct lab_option *row = page->tables[t]; row->name; row++)
                add_value(manual->program, page->name, row, false, out);
        for (int w = 0; page->words && page->words[w]; w++) {
            lab_str_clear(&owner);
            lab_str_printf(&owner, "%s %s", page->name, page->words[w]);
            const struct lab_option *row = keys_of(page, w);
            for (; row && row->name; row++)
                add_value(manual->program, owner.text, row, true, out);
        }
    }
    close_function(out);
}

void lab_manual_bash(const struct lab_manual *manual, struct lab_str *out) {
    lab_str_printf(out, "# bash completion for %s %s\n\n", manual->program, manual->version);
    add_commands(manual, out);
    add_options(manual, out);
    add_takes_value(manual, out);
    add_takes_path(manual, out);
    add_words(manual, out);
    add_keys(manual, out);
    add_values(manual, out);
    lab_manual_add_script(out, "completion.bash", manual->program);
}

int lab_manual_completion(const struct lab_manual *manual, const char *shell, struct lab_str *out) {
    static const struct {
        const char *shell;
        void (*write)(const struct lab_manual *manual, struct lab_str *out);
    } writers[] = {{"bash", lab_manual_bash}, {"zsh", lab_manual_zsh}, {"fish", lab_manual_fish}};
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (strcmp(shell, writers[i].shell) == 0) {
            writers[i].write(manual, out);
            return 0;
        }
    return -1;
}
