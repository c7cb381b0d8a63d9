/* manual_zsh.c: completion for zsh: a function per command, built on zsh's own _arguments. */
#include "command/manual/manual_text.h"

#include <string.h>

/* Text inside of an _arguments spec, where brackets and colons mean something, in quotes. */
static void add_spec_text(struct lab_str *out, const char *text) {
    for (const char *c = text; *c; c++) {
        if (strchr("[]:\\", *c))
            lab_str_add(out, "\\");
        if (*c == '\'')
            lab_str_add(out, "'\\''");
        else if (*c == '\n')
            lab_str_add(out, " ");
        else
            lab_str_add_bytes(out, c, 1);
    }
}

static void add_words(struct lab_str *out, const char *const *words) {
    lab_str_add(out, "(");
    for (int w = 0; words[w]; w++) {
        lab_str_add(out, w ? " " : "");
        add_spec_text(out, words[w]);
    }
    lab_str_add(out, ")");
}

/* The action of a spec that completes the row's value. */
static void add_action(struct lab_str *out, const struct lab_option *row) {
    const char *const *words = NULL;
    enum lab_manual_values values = lab_manual_values(row, &words);
    if (values != LAB_MANUAL_VALUES_WORDS) {
        lab_str_add(out, values == LAB_MANUAL_VALUES_FILE  ? "_files"
                         : values == LAB_MANUAL_VALUES_DIR ? "_files -/"
                                                           : " ");
        return;
    }
    add_words(out, words);
}

/* '(-r --repeat)'{-r,--repeat=}'[help]:N:action' */
static void add_option(struct lab_str *out, const struct lab_option *row) {
    bool is_flag = row->type == LAB_OPTION_FLAG;
    lab_str_add(out, "        ");
    if (row->letter)
        lab_str_printf(out, "'(-%c --%s)'{-%c,--%s%s}'", row->letter, row->name, row->letter,
                       row->name, is_flag ? "" : "=");
    else
        lab_str_printf(out, "'--%s%s", row->name, is_flag ? "" : "=");
    lab_str_add(out, "[");
    add_spec_text(out, row->help ? row->help : row->name);
    lab_str_add(out, "]");
    if (!is_flag) {
        lab_str_add(out, ":");
        add_spec_text(out, lab_option_value_name(row));
        lab_str_add(out, ":");
        add_action(out, row);
    }
    lab_str_add(out, "' \\\n");
    if (is_flag && lab_str_equal(row->fallback, "true"))
        lab_str_printf(out, "        '--no-%s[not so]' \\\n", row->name);
}

/* Values of the keys that have any: completed behind "key=". */
static void add_key_values(struct lab_str *out, const struct lab_option *keys, bool paths) {
    lab_str_add(out, "            case $PREFIX in\n");
    for (const struct lab_option *row = keys; row->name; row++) {
        const char *const *words = NULL;
        enum lab_manual_values values = lab_manual_values(row, &words);
        lab_str_printf(out, "            %s=*) compset -P 1 '*='; ", row->name);
        if (values == LAB_MANUAL_VALUES_WORDS) {
            lab_str_add(out, "compadd --");
            for (int w = 0; words[w]; w++) {
                lab_str_add(out, " ");
                lab_manual_add_quoted(out, words[w]);
            }
        } else if (values == LAB_MANUAL_VALUES_NONE) {
            lab_str_add(out, "_message ");
            lab_manual_add_quoted(out, row->help ? row->help : row->name);
        } else {
            lab_str_add(out, values == LAB_MANUAL_VALUES_FILE ? "_files" : "_files -/");
        }
        lab_str_add(out, " ;;\n");
    }
    lab_str_add(out, "            *)\n                keys=(\n");
    for (const struct lab_option *row = keys; row->name; row++) {
        LAB_AUTO(str, line);
        lab_str_printf(&line, "%s=:%s", row->name, row->help ? row->help : row->name);
        lab_str_add(out, "                    ");
        lab_manual_add_quoted(out, line.text);
        lab_str_add(out, "\n");
    }
    lab_str_printf(out,
                   "                )\n                _describe -t keys key keys -S ''%s ;;\n"
                   "            esac ;;\n",
                   paths ? "; _files" : "");
}

static void add_page(const char *program, const struct lab_manual_page *page, struct lab_str *out) {
    bool first = lab_manual_takes_path(page, true), later = lab_manual_takes_path(page, false);
    lab_str_printf(out,
                   "_%s_%s() {\n    local state line\n    local -a keys\n    typeset -A opt_args\n"
                   "    _arguments -s -S \\\n",
                   program, page->name);
    for (int t = 0; page->tables && page->tables[t]; t++)
        for (const struct lab_option *row = page->tables[t]; row->name; row++)
            add_option(out, row);
    if (page->words && page->words[0]) {
        lab_str_add(out, "        '1:word:");
        add_words(out, page->words);
        lab_str_add(out, "' \\\n");
    }
    lab_str_add(out, "        '*: :->key' && return\n"
                     "    [[ $state == key ]] || return\n"
                     "    case $line[1] in\n");
    for (int w = 0; page->word_keys && page->words && page->words[w]; w++) {
        const struct lab_option *keys = page->word_keys[w];
        if (!keys || !keys->name)
            continue;
        lab_str_printf(out, "        %s)\n", page->words[w]);
        add_key_values(out, keys, later);
    }
    lab_str_printf(out, "        *) %s ;;\n    esac\n}\n\n",
                   later || first ? "_files" : "_message 'nothing to complete'");
}

void lab_manual_zsh(const struct lab_manual *manual, struct lab_str *out) {
    const char *program = manual->program;
    lab_str_printf(out, "#compdef %s\n# zsh completion for %s %s\n\n", program, program,
                   manual->version);
    for (int i = 0; manual->pages[i]; i++)
        add_page(program, manual->pages[i], out);
    lab_str_printf(out, "_%s_commands() {\n    local -a commands\n    commands=(\n", program);
    for (int i = 0; manual->pages[i]; i++) {
        LAB_AUTO(str, line);
        lab_str_printf(&line, "%s:%s", manual->pages[i]->name, manual->pages[i]->summary);
        lab_str_add(out, "        ");
        lab_manual_add_quoted(out, line.text);
        lab_str_add(out, "\n");
    }
    lab_str_printf(out,
                   "    )\n    _describe -t commands command commands\n}\n\n"
                   "_%s() {\n"
                   "    local curcontext=$curcontext state line\n"
                   "    typeset -A opt_args\n"
                   "    _arguments -C '1: :_%s_commands' '*:: :->command' && return\n"
                   "    (( $+functions[_%s_$line[1]] )) && _%s_$line[1]\n"
                   "}\n\n"
                   "if [[ $funcstack[1] == _%s ]]; then\n    _%s \"$@\"\nelse\n"
                   "    compdef _%s %s\nfi\n",
                   program, program, program, program, program, program, program, program);
}
