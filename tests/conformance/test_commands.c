/* Every command says what it is, in full, and takes its shared options. */
#include "command/command.h"

#include <string.h>

#include "test.h"

LAB_TEST(every_command_is_described) {
    assert_non_null(lab_commands[0]);
    for (int i = 0; lab_commands[i]; i++) {
        const struct lab_command *command = lab_commands[i];
        print_message("%s\n", command->name);
        assert_true(command->name && *command->name);
        assert_true(command->summary && *command->summary);
        assert_int_not_equal(command->summary[strlen(command->summary) - 1], '.');
        assert_in_range(lab_str_columns(command->summary), 10, 76);
        assert_non_null(command->usage);
        assert_non_null(command->run);
        assert_true(command->max_words < 0 || command->max_words >= command->min_words);
        assert_true(!command->options || command->config_size > 0);
        for (const struct lab_manual_example *example = command->examples; example && example->line;
             example++) {
            assert_non_null(strstr(example->line, "gpulab ")); /* a launcher may stand before it */
            assert_true(example->text && *example->text);
        }
    }
}

LAB_TEST(first_words_complete) {
    static const struct {
        const char *command, *word;
    } cases[] = {{"analyze", "numa"},
                 {"bench", "vit"},
                 {"cache", "import"},
                 {"campaign", "pack"},
                 {"compare", "numa_study"},
                 {"completion", "zsh"},
                 {"estimate", "quick_test"},
                 {"help", "version"},
                 {"metrics", "reread"},
                 {"run", "train_scaling"},
                 {"show", "quick_test"},
                 {"track-test", "wandb"},
                 {"tune", "gemm"}};
    LAB_AUTO(arena, arena);
    size_t found = 0;
    for (int i = 0; lab_commands[i]; i++) {
        const struct lab_command *command = lab_commands[i];
        for (size_t c = 0; command->complete && c < sizeof cases / sizeof *cases; c++)
            if (strcmp(command->name, cases[c].command) == 0) {
                const char *const *words = command->complete(&arena);
                assert_non_null(words);
                assert_true(lab_str_find(cases[c].word, words) >= 0);
                found++;
            }
    }
    assert_int_equal(found, sizeof cases / sizeof *cases);
}

static void check_rows(const struct lab_option *rows, size_t size) {
    for (; rows && rows->name; rows++) {
        assert_true(rows->help && *rows->help);
        assert_true(rows->offset < size);
        assert_true(rows->min <= rows->max);
        assert_int_equal(rows->type == LAB_OPTION_CHOICE, rows->choices != NULL);
    }
}

LAB_TEST(options_are_whole_and_unique) {
    LAB_AUTO(arena, arena);
    for (int i = 0; lab_commands[i]; i++) {
        const struct lab_command *command = lab_commands[i];
        const struct lab_option *shared = lab_command_shared_options(command, 0, &arena);
        check_rows(command->options, command->config_size);
        check_rows(shared, sizeof(struct lab_shared));
        for (const struct lab_option *own = command->options; own && own->name; own++)
            for (const struct lab_option *other = shared; other->name; other++) {
                assert_string_not_equal(own->name, other->name);
                assert_true(!own->letter || own->letter != other->letter);
            }
    }
}

LAB_TEST(defaults_parse) {
    LAB_AUTO(arena, arena);
    for (int i = 0; lab_commands[i]; i++) {
        const struct lab_command *command = lab_commands[i];
        void *config = lab_arena_alloc(&arena, command->config_size + 1, 1);
        if (command->options)
            lab_options_defaults(command->options, config, &arena); /* aborts where it can't */
    }
}

LAB_TEST(help_of_every_command_fits) {
    LAB_AUTO(arena, arena);
    for (int i = 0; lab_commands[i]; i++) {
        LAB_AUTO(str, text);
        struct lab_style style = {.columns = 80, .unicode = true};
        ASSERT_OK(lab_command_write_help(lab_commands[i], NULL, style, &arena, &text, err));
        assert_contains(text.text, lab_commands[i]->name);
        for (char *line = text.text, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            /* an example is one line to paste, whatever its length */
            if (lab_str_columns(line) > 80 && !strstr(line, "gpulab "))
                fail_msg("help %s: too wide: %s", lab_commands[i]->name, line);
        }
    }
}

LAB_TEST(manual_has_a_page_for_each_that_people_use) {
    LAB_AUTO(arena, arena);
    const struct lab_manual *manual = lab_command_manual(&arena);
    const char *const *names = lab_command_names(&arena);
    int shown = 0;
    for (int i = 0; lab_commands[i]; i++) {
        if (lab_commands[i]->hidden)
            continue;
        assert_non_null(manual->pages[shown]);
        assert_string_equal(manual->pages[shown]->name, lab_commands[i]->name);
        assert_string_equal(names[shown++], lab_commands[i]->name);
    }
    assert_null(manual->pages[shown]);
    assert_null(names[shown]);
}
