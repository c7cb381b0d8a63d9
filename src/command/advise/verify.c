/* verify.c: `gpulab advise --verify`: the points that advice rests on, run again. */
#include "command/advise/verify.h"

#include "base/json.h"
#include "base/list.h"
#include "base/tty/stop.h"
#include "command/command_trial.h"
#include "load/study_file.h"
#include "report/report_build.h"
#include "run/run_study.h"

#include <string.h>

#define REPEATS 5

/* Words of `gpulab run` behind its flags; the flags by themselves. */
struct command_line {
    const char **words, *device, *config_dir;
    int count;
    bool multirun;
};

static int read_command(const struct lab_study_table *table, struct lab_arena *arena,
                        struct command_line *ret_line, struct lab_err *err) {
    struct lab_study_file *file;
    struct lab_value *list = NULL;
    if (lab_study_file_open(table->folder, arena, &file, err) < 0)
        return -1;
    const char *text = file->study.words;
    int result = lab_json_parse(text, strlen(text), "words", arena, &list, err);
    lab_study_file_close(file);
    if (result < 0)
        return -1;
    *ret_line = (struct command_line){
        .words = lab_arena_alloc(arena, (size_t)list->count + 2, sizeof *ret_line->words)};
    for (int i = 0; i < list->count; i++) {
        const char *word = lab_value_as_text(list->items[i], "");
        bool more = i + 1 < list->count;
        if (lab_str_equal(word, "-m"))
            ret_line->multirun = true;
        else if (lab_str_equal(word, "--device") && more)
            ret_line->device = lab_value_as_text(list->items[++i], "");
        else if (lab_str_equal(word, "--config-dir") && more)
            ret_line->config_dir = lab_value_as_text(list->items[++i], "");
        else
            ret_line->words[ret_line->count++] = word;
    }
    return 0;
}

static bool is_in_scope(const char *point, const struct lab_advice *advice) {
    for (int i = 0; i < advice->tested_count; i++)
        if (lab_list_find_text(advice->tested[i].scope, advice->tested[i].scope_count, point) >= 0)
            return true;
    return false;
}

/* The study's own plan, of the points that the advice rests on. */
static int plan_again(struct lab_trial_study *trial, const struct lab_study_table *table,
                      const struct lab_advice *advice, struct lab_plan *ret_plan,
                      struct lab_err *err) {
    struct lab_arena *arena = trial->call->arena;
    struct command_line line;
    if (read_command(table, arena, &line, err) < 0)
        return -1;
    struct lab_config_path path = lab_run_path(line.config_dir, arena);
    line.words[line.count++] = lab_arena_printf(arena, "experiment.repeat=%d", REPEATS);
    if (lab_trial_study_plan(trial, &path, line.device, line.words, line.count, line.multirun,
                             ret_plan, err) < 0)
        return -1;
    int kept = 0;
    for (int i = 0; i < ret_plan->run_count; i++) {
        struct lab_run run = {.id = ret_plan->runs[i].id, .repeat = ret_plan->runs[i].repeat};
        /* phases are nothing without their baseline */
        if (ret_plan->runs[i].phase || is_in_scope(lab_study_file_point(&run, arena), advice))
            ret_plan->runs[kept++] = ret_plan->runs[i];
    }
    ret_plan->run_count = kept;
    ret_plan->seed++; /* or a simulated device would give the same values again */
    return kept > 0 ? 0
                    : lab_err_set(err, LAB_ERR_USER, "%s: its points can't be planned again",
                                  advice->study);
}

/* Whether it was advised, and so has to prove itself; where nothing was, all that was tested. */
static bool is_advised(const struct lab_claim *claim, const struct lab_advice *advice) {
    for (int i = 0; i < advice->line_count; i++)
        if (lab_str_equal(advice->lines[i].gain.kind, claim->kind) &&
            lab_str_equal(advice->lines[i].gain.subject, claim->subject))
            return true;
    for (int i = 0; i < advice->choice_count; i++)
        if (lab_str_equal(advice->choices[i].kind, claim->kind) &&
            lab_str_equal(advice->choices[i].subject, claim->subject))
            return true;
    return advice->line_count + advice->choice_count == 0;
}

static void print_verified(const struct lab_command_call *call, const struct lab_advice *before,
                           const struct lab_advice *now) {
    struct lab_claim **claims =
        lab_arena_alloc(call->arena, (size_t)now->tested_count + 1, sizeof *claims);
    struct lab_doc *doc = lab_doc_open("Advice, measured again", call->arena);
    int count = 0, confirmed = 0;
    for (int i = 0; i < now->tested_count; i++) {
        bool pooled = lab_str_equal(now->tested[i].kind, "advise.bind_all");
        if (!pooled && !is_advised(&now->tested[i], before))
            continue;
        claims[count++] = &now->tested[i];
        confirmed +=
            !pooled && now->tested[i].verdict == LAB_CLAIM_YES && is_advised(&now->tested[i], now);
    }
    int advised = before->line_count + before->choice_count;
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS,
                    lab_arena_printf(call->arena, "%s%s.",
                                     advised
                                         ? lab_arena_printf(call->arena, "Confirmed: %d of %d. ",
                                                            confirmed, advised)
                                         : "",
                                     lab_claim_sentence(claims[0], call->arena)));
    lab_doc_text(doc, LAB_DOC_WHOLE, "Study: %s%s", before->study,
                 before->simulated ? " (simulated)" : "");
    lab_doc_gap(doc);
    lab_doc_data(doc, "study", lab_value_string(call->arena, before->study));
    lab_doc_data(doc, "simulated", lab_value_bool(call->arena, now->simulated));
    lab_doc_data(doc, "advised", lab_value_int(call->arena, advised));
    lab_doc_data(doc, "confirmed", lab_value_int(call->arena, confirmed));
    lab_report_add_claims(doc, claims, count);
    lab_doc_print(doc, call->console);
}

int lab_command_verify(const struct lab_command_call *call, const struct lab_machine *machine,
                       const struct lab_study_table *study, const struct lab_advice *before,
                       int *ret_status, struct lab_err *err) {
    struct lab_trial_study trial = {.call = call, .machine = machine};
    struct lab_study_table table;
    struct lab_plan plan;
    int result = lab_trial_study_open(&trial, err);
    if (result == 0)
        result = plan_again(&trial, study, before, &plan, err);
    if (result == 0 && !call->console->quiet && !call->console->json)
        lab_console_note("%d runs, %d per point, in turn", plan.run_count, REPEATS);
    if (result == 0)
        result =
            lab_trial_study_run(&trial, &plan, LAB_STUDY_WITH_ITERATIONS, call->arena, &table, err);
    lab_trial_study_close(&trial);
    if (result > 0)
        *ret_status = lab_stop_signal() ? 128 + lab_stop_signal() : 1;
    if (result != 0)
        return result < 0 ? -1 : 0;
    struct lab_advice now = lab_advice_make(&table, before, call->arena);
    if (now.tested_count == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s, run again, compares nothing: too few runs are valid",
                           before->study);
    print_verified(call, before, &now);
    return 0;
}
