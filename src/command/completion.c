/* completion.c: `gpulab completion SHELL`: a script that makes a shell complete our command
 * lines. */
#include "command/command.h"

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const char *const *completion_complete(struct lab_arena *arena) {
    (void)arena;
    return shells;
}

static int completion_run(const struct lab_command_call *call, int *ret_status,
                          struct lab_err *err) {
    (void)ret_status;
    LAB_AUTO(str, script);
    int result = lab_manual_completion(lab_command_manual(call->arena), call->words[0], &script);
    if (result < 0) {
        lab_str_clear(&script);
        lab_str_add_list(&script, shells, "or");
        lab_err_set(err, LAB_ERR_USER, "completion: no script for '%s': use %s", call->words[0],
                    script.text);
    } else if (call->console->json) {
        struct lab_value *map = lab_value_map(call->arena);
        lab_value_set_string(call->arena, map, "shell", call->words[0]);
        lab_value_set_string(call->arena, map, "script", script.text);
        lab_console_print_json(call->console, map);
    } else {
        /* a script for a program, whatever the terminal shows */
        lab_console_write(call->console, script.text, script.length);
    }
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab completion bash > ~/.local/share/bash-completion/completions/gpulab",
     "for bash, from the next shell on"},
    {"gpulab completion zsh > ~/.zfunc/_gpulab", "for zsh, with ~/.zfunc in fpath"},
    {"gpulab completion fish > ~/.config/fish/completions/gpulab.fish", "for fish"},
    {NULL},
};

const struct lab_command lab_command_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .usage = "bash|zsh|fish",
    .min_words = 1,
    .max_words = 1,
    .examples = examples,
    .complete = completion_complete,
    .run = completion_run,
};
