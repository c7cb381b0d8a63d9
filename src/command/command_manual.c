/* command_manual.c: the commands' descriptors as manual pages: help, man pages and completion. */
#include "command/command.h"

#include "device/device.h"
#include "version.h"

#include <stddef.h>

#define PROGRAM_SUMMARY "a laboratory for multi-GPU machines"

static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};

static const struct lab_option shared_rows[] = {
    {"device", LAB_OPTION_STRING, offsetof(struct lab_shared, device), .fallback = "auto",
     .value_name = "DEVICE",
     .help = "where to run: cpu, cpu:1 (a NUMA node), cpu:0/2 (half of its cores), auto"},
    {"json", LAB_OPTION_FLAG, offsetof(struct lab_shared, json),
     .help = "print the result as one JSON document"},
    {"quiet", LAB_OPTION_FLAG, offsetof(struct lab_shared, quiet), .letter = 'q',
     .help = "no progress, no hints"},
    {"log-level", LAB_OPTION_CHOICE, offsetof(struct lab_shared, log_level), .fallback = "warning",
     .choices = log_levels, .help = "which messages to show on stderr"},
    {"help", LAB_OPTION_FLAG, offsetof(struct lab_shared, help), .letter = 'h',
     .help = "show this help"},
};

#define SHARED_COUNT (sizeof shared_rows / sizeof *shared_rows)

/* What there is on any machine: auto, and of each backend all and the first. */
static const char *const *device_suggestions(struct lab_arena *arena) {
    int count = 0;
    while (lab_backends[count])
        count++;
    const char **names = lab_arena_alloc(arena, 2 * (size_t)count + 2, sizeof *names);
    names[0] = "auto";
    for (int i = 0; i < count; i++) {
        names[2 * i + 1] = lab_backends[i]->name;
        names[2 * i + 2] = lab_arena_printf(arena, "%s:0", lab_backends[i]->name);
    }
    return names;
}

const struct lab_option *lab_command_shared_options(const struct lab_command *command, size_t base,
                                                    struct lab_arena *arena) {
    struct lab_option *rows = lab_arena_alloc(arena, SHARED_COUNT + 1, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        bool device = lab_str_equal(shared_rows[i].name, "device");
        if (device && !command->uses_device)
            continue;
        rows[count] = shared_rows[i];
        rows[count].offset += base;
        if (device)
            rows[count].suggestions = device_suggestions(arena);
        if (device && command->device_help) {
            rows[count].help = command->device_help;
            rows[count].fallback = NULL;
        }
        count++;
    }
    return rows;
}

static const struct lab_option *const *keys_of_words(const struct lab_command *command,
                                                     const char *const *words,
                                                     struct lab_arena *arena) {
    int count = 0;
    while (words[count])
        count++;
    const struct lab_option **keys = lab_arena_alloc(arena, (size_t)count + 1, sizeof *keys);
    for (int i = 0; i < count; i++)
        keys[i] = command->word_keys(words[i], arena);
    return keys;
}

/* Those that show the word; all where none does. */
static const struct lab_manual_example *examples_of(const struct lab_manual_example *all,
                                                    const char *word, struct lab_arena *arena) {
    int count = 0, found = 0;
    while (all && all[count].line)
        count++;
    const char *part = lab_arena_printf(arena, " %s ", word);
    struct lab_manual_example *some = lab_arena_alloc(arena, (size_t)count + 1, sizeof *some);
    for (int i = 0; i < count; i++)
        if (strstr(lab_arena_printf(arena, "%s ", all[i].line), part))
            some[found++] = all[i];
    return found ? some : all;
}

/* "reread" of metrics: its page is the command's. */
static bool is_listed(const char *const *words, const char *word) {
    for (; words && *words; words++)
        if (lab_str_equal(*words, word))
            return true;
    return false;
}

const struct lab_manual_page *lab_command_page(const struct lab_command *command, const char *word,
                                               struct lab_arena *arena, struct lab_err *err) {
    const struct lab_option **tables = lab_arena_alloc(arena, 3, sizeof *tables);
    int count = 0;
    if (command->options)
        tables[count++] = command->options;
    tables[count] = lab_command_shared_options(command, 0, arena);
    struct lab_manual_page *page = lab_arena_alloc(arena, 1, sizeof *page);
    *page = (struct lab_manual_page){
        .name = command->name,
        .summary = command->summary,
        .usage = command->usage,
        .description = command->description,
        .tables = tables,
        .examples = command->examples,
        .words = command->complete ? command->complete(arena) : NULL,
    };
    if (command->word_keys && page->words)
        page->word_keys = keys_of_words(command, page->words, arena);
    if (word && !command->sections && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS) &&
        !is_listed(page->words, word)) {
        lab_err_set(err, LAB_ERR_USER, "help %s: no further page '%s'", command->name, word);
        return NULL;
    }
    if (command->sections) {
        page->sections = command->sections(arena, word, err);
        if (!page->sections)
            return NULL;
        if (word && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS))
            page->examples = examples_of(page->examples, word, arena);
    }
    return page;
}

static struct lab_manual make_manual(void) {
    return (struct lab_manual){
        .program = "gpulab", .version = LAB_VERSION, .summary = PROGRAM_SUMMARY};
}

/* Name and summary: sections take long, those of devices read tables. */
static const struct lab_manual_page *overview_page(const struct lab_command *command,
                                                   struct lab_arena *arena) {
    struct lab_manual_page *page = lab_arena_alloc(arena, 1, sizeof *page);
    page->name = command->name;
    page->summary = command->summary;
    return page;
}

static const struct lab_manual *manual_with(bool whole, struct lab_arena *arena) {
    int count = 0, shown = 0;
    while (lab_commands[count])
        count++;
    const struct lab_manual_page **pages = lab_arena_alloc(arena, (size_t)count + 1, sizeof *pages);
    for (int i = 0; i < count; i++)
        if (!lab_commands[i]->hidden)
            pages[shown++] =
                whole ? lab_command_page(lab_commands[i], LAB_COMMAND_ALL_WORDS, arena, NULL)
                      : overview_page(lab_commands[i], arena);
    struct lab_manual *manual = lab_arena_alloc(arena, 1, sizeof *manual);
    *manual = make_manual();
    manual->pages = pages;
    return manual;
}

const struct lab_manual *lab_command_manual(struct lab_arena *arena) {
    return manual_with(true, arena);
}

static enum lab_manual_style manual_style(struct lab_style style) {
    return style.colour ? LAB_MANUAL_COLOUR : LAB_MANUAL_PLAIN;
}

int lab_command_write_help(const struct lab_command *command, const char *word,
                           struct lab_style style, struct lab_arena *arena, struct lab_str *out,
                           struct lab_err *err) {
    const struct lab_manual_page *page = lab_command_page(command, word, arena, err);
    if (!page)
        return -1;
    struct lab_manual manual = make_manual();
    lab_manual_help(&manual, page, style.columns, manual_style(style), out);
    return 0;
}

int lab_command_show_help(const struct lab_command_call *call, const struct lab_command *command,
                          const char *word, struct lab_err *err) {
    if (call->console->json) {
        const struct lab_value *value = lab_command_help_value(command, word, call->arena, err);
        if (value)
            lab_console_print_json(call->console, value);
        return value ? 0 : -1;
    }
    LAB_AUTO(str, text);
    int result =
        lab_command_write_help(command, word, call->console->style, call->arena, &text, err);
    if (result == 0)
        lab_console_print(call->console, &text);
    return result;
}

void lab_command_write_overview(struct lab_style style, struct lab_arena *arena,
                                struct lab_str *out) {
    lab_manual_overview(manual_with(false, arena), style.columns, manual_style(style), out);
}
