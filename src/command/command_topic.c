/* command_topic.c: what several commands take: devices, studies and their plans, lists of names. */
#include "command/command.h"

#include "advise/training_known.h"
#include "analysis/analysis.h"
#include "base/tty/stop.h"
#include "doc/doc.h"
#include "run/estimate/plan_estimate.h"
#include "run/run_study.h"
#include "workload/workload.h"

#include <string.h>

const char *lab_command_device(const struct lab_command_call *call) {
    return lab_str_equal(call->shared->device, "auto") ? NULL : call->shared->device;
}

void lab_command_note_devices(const struct lab_command_call *call, int count, const char *used) {
    if (count > 1 && lab_command_device(call) && !call->console->quiet)
        lab_console_note("%s names %d devices: %s uses the first%s%s", call->shared->device, count,
                         call->command->name, used ? ", " : "", used ? used : "");
}

/* --- studies --- */

const char *const *lab_command_studies(struct lab_arena *arena) {
    static const struct lab_config_path built_in;
    return lab_config_options(&built_in, "experiment", arena);
}

const struct lab_option *lab_command_study_keys(const char *word, struct lab_arena *arena) {
    (void)arena;
    (void)word;
    return lab_plan_keys;
}

int lab_command_sweep(const struct lab_command_call *call, const struct lab_config_path *path,
                      bool multirun, struct lab_sweep *ret_sweep, struct lab_err *err) {
    struct lab_override *words;
    int count;
    if (lab_run_words(path, lab_command_device(call), call->words, call->word_count, call->arena,
                      &words, &count, err) < 0)
        return -1;
    return lab_sweep_init(path, words, count, multirun, call->arena, ret_sweep, err);
}

int lab_command_plan(const struct lab_command_call *call, const struct lab_config_path *path,
                     const struct lab_sweep *sweep, const struct lab_machine *machine,
                     struct lab_plan_devices *devices, struct lab_plan *ret_plan,
                     struct lab_err *err) {
    struct lab_plan_strategy strategy = lab_training_strategy(call->arena);
    strategy.devices = devices;
    if (lab_plan_make_by(&strategy, machine, path, sweep, call->arena, ret_plan, err) < 0)
        return -1;
    return lab_analysis_check_answers(
        lab_value_get(lab_value_get(ret_plan->config, "experiment"), "answers"), err);
}

/* --- topics --- */

const struct lab_topic *lab_command_workloads(bool tunable, struct lab_arena *arena) {
    int all = 0, count = 0;
    while (lab_workloads[all])
        all++;
    struct lab_topic *topics = lab_arena_alloc(arena, (size_t)all + 1, sizeof *topics);
    for (int i = 0; i < all; i++)
        if (!tunable || (lab_workloads[i]->launch && lab_workloads[i]->configure))
            topics[count++] = (struct lab_topic){lab_workloads[i]->name, lab_workloads[i]->help};
    return topics;
}

const char *const *lab_command_topic_names(const struct lab_topic *topics,
                                           struct lab_arena *arena) {
    int count = 0;
    while (topics[count].name)
        count++;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = topics[i].name;
    return names;
}

void lab_command_add_topics(struct lab_doc *doc, const char *const keys[3],
                            const struct lab_topic *topics, int columns, struct lab_arena *arena) {
    int width = 0;
    for (const struct lab_topic *topic = topics; topic->name; topic++)
        width = (int)strlen(topic->name) > width ? (int)strlen(topic->name) : width;
    lab_doc_set_labels(doc, columns ? columns : width + 4);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = keys[0]});
    for (const struct lab_topic *topic = topics; topic->name; topic++) {
        lab_doc_begin(doc, (struct lab_doc_section){.key = NULL});
        lab_doc_data(doc, keys[1], lab_value_string(arena, topic->name));
        lab_doc_data(doc, keys[2], lab_value_string(arena, topic->help));
        if (columns)
            lab_doc_line_whole(doc, topic->name, "%s", topic->help);
        else
            lab_doc_line(doc, topic->name, "%s", topic->help);
        if (topic->origin)
            lab_doc_data(doc, "origin", lab_value_string(arena, topic->origin));
        lab_doc_end(doc);
    }
    lab_doc_end(doc);
}

void lab_command_print_topics(const struct lab_command_call *call, const char *const keys[3],
                              const struct lab_topic *topics, int columns, const char *hint) {
    struct lab_doc *doc = lab_doc_open(call->command->name, call->arena);
    lab_command_add_topics(doc, keys, topics, columns, call->arena);
    lab_doc_gap(doc);
    if (!call->console->quiet)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s", hint);
    lab_doc_print(doc, call->console);
}

struct lab_manual_section *lab_command_topic_section(const char *title,
                                                     const struct lab_topic *topics,
                                                     const char *hint, struct lab_arena *arena) {
    struct lab_manual_section *sections = lab_arena_alloc(arena, 3, sizeof *sections);
    LAB_AUTO(str, text);
    for (; topics->name; topics++)
        lab_str_printf(&text, "%s: %s\n\n", topics->name, topics->help);
    lab_str_add(&text, hint);
    sections[0].title = title;
    sections[0].text = lab_arena_strdup(arena, text.text);
    return sections;
}

struct lab_history *lab_command_history(const struct lab_command_call *call,
                                        const struct lab_plan *plan, struct lab_err *err) {
    struct lab_history *history = lab_run_history(plan->machine);
    struct lab_err unable = LAB_ERR_INIT;
    bool elsewhere = plan->machine->recorded && !plan->machine->simulated;
    if (elsewhere || call->console->quiet)
        return history;
    if (lab_console_draws(call->console))
        lab_console_status_line("measuring short runs for the estimate…");
    lab_stop_watch(NULL, NULL);
    int result = lab_run_plan_calibrate(plan, history, &unable);
    if (lab_console_draws(call->console))
        lab_console_status_line(NULL);
    if (lab_stop_signal()) {
        lab_history_close(history);
        lab_err_set(err, LAB_ERR_INTERRUPTED, "interrupted while short runs were measured");
        return NULL;
    }
    if (result < 0)
        lab_console_note("no short run for the estimate: %s", unable.text);
    return history;
}
