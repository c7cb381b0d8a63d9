/* course.c: a campaign's words, plans and state; see course.h. */
#include "command/campaign/course.h"

#include "base/file/walk.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/list.h"
#include "base/yaml/yaml.h"
#include "load/studies.h"
#include "load/study_file.h"
#include "machine/machine.h"
#include "machine/machine_json.h"
#include "run/estimate/plan_estimate.h"
#include "run/folder.h"
#include "run/run_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_PREFIX "campaign." /* of words that change the campaign's own file */

/* --- words --- */

static int compose(struct course *course, const char *name, const char *const *words, int count,
                   struct lab_config *ret_config, struct lab_err *err) {
    struct lab_arena *arena = course->arena;
    struct lab_override *own = lab_arena_alloc(arena, (size_t)count + 1, sizeof *own);
    const char **others = lab_arena_alloc(arena, (size_t)count + 1, sizeof *others);
    int own_count = 0, other_count = 0;
    for (int i = 0; i < count; i++) {
        size_t marks = strspn(words[i], "+~");
        if (!strchr(words[i], '=') && marks == 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "'%.80s' after '%s': one campaign at a time; keys are changed by "
                               "key=value",
                               words[i], name);
        if (!lab_str_starts(words[i] + marks, OWN_PREFIX)) {
            others[other_count++] = words[i];
            continue;
        }
        const char *key = words[i] + marks + strlen(OWN_PREFIX);
        /* as it was written, for what is wrong with it; then keys that the file leaves out are
         * added: the reader knows which there are */
        const char *written = lab_arena_printf(arena, "%.*s%s", (int)marks, words[i], key);
        const char *word = marks ? written : lab_arena_printf(arena, "++%s", key);
        if (lab_override_parse(written, arena, &own[own_count], err) < 0 ||
            lab_override_parse(word, arena, &own[own_count], err) < 0)
            return -1;
        own[own_count++].text = words[i]; /* errors name what was written */
    }
    course->overrides = others;
    return lab_config_compose(&course->path, lab_arena_printf(arena, "campaign/%s", name), own,
                              own_count, arena, ret_config, err);
}

static int check_name(const struct course *course, const char *name, struct lab_err *err) {
    const char *const *all = lab_config_options(&course->path, "campaign", course->arena);
    const char *nearest = lab_str_nearest(name, all);
    LAB_AUTO(str, list);
    if (lab_str_find(name, all) >= 0)
        return 0;
    lab_str_add_list(&list, all, "and");
    return lab_err_set(err, LAB_ERR_USER, "there is no campaign '%.80s'%s%s%s; there are %s", name,
                       nearest ? " (did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?)" : "", list.text);
}

#define SEED_KEY "seed="

/* Simulated chance follows from the seed and the run: a point that ran before would have the same
 * values again, which are no further evidence. */
static const char *another_seed(const struct course *course, const struct course_study *study) {
    int64_t seed = 42;
    for (int i = 0; study->words[i]; i++)
        if (lab_str_starts(study->words[i], SEED_KEY))
            seed = strtoll(study->words[i] + strlen(SEED_KEY), NULL, 10);
    return lab_arena_printf(course->arena, SEED_KEY "%lld",
                            (long long)(seed + 1 + (study - course->studies)));
}

static bool has_seed(const char *const *words) {
    for (int i = 0; words[i]; i++)
        if (lab_str_starts(words[i], SEED_KEY))
            return true;
    return false;
}

/* Each study's words: its own, then what was given for all; a seed, unless it is the first. */
static void make_studies(struct course *course) {
    const struct lab_campaign *campaign = &course->campaign;
    struct lab_arena *arena = course->arena;
    size_t count = (size_t)campaign->study_count + 1;
    int extra = 0;
    while (course->overrides[extra])
        extra++;
    course->studies = lab_arena_alloc(arena, count, sizeof *course->studies);
    course->found = lab_arena_alloc(arena, count, sizeof *course->found);
    course->claims =
        lab_arena_alloc(arena, (size_t)campaign->phase_count + 1, sizeof *course->claims);
    course->steps = lab_arena_alloc(arena, count, sizeof *course->steps);
    course->is_read =
        lab_arena_alloc(arena, (size_t)campaign->phase_count + count, sizeof *course->is_read);
    for (int p = 0, at = 0; p < campaign->phase_count; p++)
        for (int s = 0; s < campaign->phases[p].study_count; s++, at++) {
            struct course_study *study = &course->studies[at];
            const char *const *own = campaign->phases[p].studies[s].words;
            LAB_AUTO(str, title);
            const char **words = NULL;
            int n = 0;
            for (int i = 0; own[i]; i++) {
                lab_str_printf(&title, "%s%s", i ? " " : "", own[i]);
                study->multirun |= lab_str_equal(own[i], "-m");
                if (!lab_str_equal(own[i], "-m"))
                    LAB_ADD(words, n, arena) = own[i];
            }
            for (int i = 0; i < extra; i++)
                LAB_ADD(words, n, arena) = course->overrides[i];
            study->words = words ? words : lab_arena_alloc(arena, 1, sizeof *words);
            study->title = lab_arena_strdup(arena, title.text);
            study->refined = campaign->phases[p].studies[s].strategy == LAB_CAMPAIGN_AS_WRITTEN;
            if (at > 0 && study->refined && !has_seed(own)) {
                LAB_ADD(words, n, arena) = another_seed(course, study);
                study->words = words;
            }
            course->found[at] = (struct lab_campaign_found){
                .expected_s = NAN, .expected_j = NAN, .taken_s = NAN, .energy_j = NAN};
        }
}

int course_compose(struct course *course, const char *config_dir, const char *name,
                   const char *const *words, int count, struct lab_err *err) {
    struct lab_config config = {0};
    course->config_dir = config_dir;
    course->path = lab_run_path(config_dir, course->arena);
    course->device = lab_command_device(course->call);
    course->lock_fd = -1;
    if (check_name(course, name, err) < 0 || compose(course, name, words, count, &config, err) < 0)
        return -1;
    return course_take(course, name, config.tree, err);
}

int course_take(struct course *course, const char *name, const struct lab_value *tree,
                struct lab_err *err) {
    LAB_AUTO(str, yaml);
    if (lab_campaign_read(tree, name, course->arena, &course->campaign, err) < 0)
        return -1;
    lab_yaml_write(tree, &yaml);
    course->yaml = lab_arena_strdup(course->arena, yaml.text);
    uint64_t hash = lab_hash_text(LAB_HASH_START, course->yaml);
    for (int i = 0; course->overrides[i]; i++) /* where files go changes nothing that runs */
        if (!lab_str_starts(course->overrides[i], "output_dir="))
            hash = lab_hash_text(lab_hash_bytes(hash, "", 1), course->overrides[i]);
    const char *device = lab_command_device(course->call);
    course->identity = lab_hash_text(lab_hash_bytes(hash, "", 1), device ? device : "");
    make_studies(course);
    return 0;
}

/* --- plans --- */

static int plan_words(const struct course *course, const char *const *words, bool multirun,
                      struct lab_arena *arena, struct lab_plan *ret_plan, struct lab_err *err) {
    struct lab_command_call call = *course->call;
    struct lab_sweep sweep;
    call.arena = arena;
    call.words = words;
    call.word_count = 0;
    while (words && words[call.word_count])
        call.word_count++;
    if (lab_command_sweep(&call, &course->path, multirun, &sweep, err) < 0)
        return -1;
    return lab_command_plan(&call, &course->path, &sweep, course->machine, course->devices,
                            ret_plan, err);
}

int course_study_plan(const struct course *course, int study, struct lab_arena *arena,
                      struct lab_plan *ret_plan, const char *const **ret_words,
                      const char *const **ret_overrides, struct lab_err *err) {
    const struct course_study *own = &course->studies[study];
    const char *device = lab_command_device(course->call), **words = NULL, **overrides = NULL;
    int count = 0, override_count = 0;
    if (own->multirun)
        LAB_ADD(words, count, arena) = "-m";
    if (device)
        LAB_ADD(words, count, arena) = lab_arena_printf(arena, "--device=%s", device);
    if (course->config_dir)
        LAB_ADD(words, count, arena) =
            lab_arena_printf(arena, "--config-dir=%s", course->config_dir);
    for (int i = 0; own->words[i]; i++) {
        LAB_ADD(words, count, arena) = own->words[i];
        LAB_ADD(overrides, override_count, arena) = own->words[i];
    }
    if (own->slot) {
        const char *place = lab_arena_printf(arena, "output_dir='%s'", own->slot);
        LAB_ADD(words, count, arena) = place;
        LAB_ADD(overrides, override_count, arena) = place;
    }
    *ret_words = words;
    *ret_overrides = overrides;
    return plan_words(course, overrides, own->multirun, arena, ret_plan, err);
}

/* What all studies have in common, from the first one's plan. */
static void take_machine(struct course *course, const struct lab_plan *plan) {
    LAB_AUTO(str, json);
    lab_json_write(lab_machine_json_value(plan->machine, course->arena), 2, &json);
    lab_str_add(&json, "\n");
    course->machine_json = lab_arena_strdup(course->arena, json.text);
    course->machine_identity = lab_machine_identity(plan->machine);
    course->simulated = plan->machine->simulated;
    course->output_dir = lab_arena_strdup(course->arena, plan->output_dir);
    course->resume = plan->resume;
}

/* The device's bit; 0 = there are too many. */
static uint64_t device_bit(struct course *course, const char *name) {
    int at = lab_list_find_text(course->device_names, course->device_count, name);
    if (at < 0) {
        at = course->device_count;
        LAB_ADD(course->device_names, course->device_count, course->arena) =
            lab_arena_strdup(course->arena, name);
    }
    return at >= 0 && at < 64 ? UINT64_C(1) << at : 0;
}

static uint64_t node_bit(int node) {
    return node >= 0 && node < 64 ? UINT64_C(1) << node : UINT64_MAX; /* it may be any */
}

static struct lab_campaign_use use_of(struct course *course, const struct lab_plan *plan) {
    struct lab_campaign_use use = {.simulated = plan->machine->simulated};
    LAB_AUTO_FREE bool *used = lab_mem_alloc((size_t)plan->devices.count + 1, sizeof *used);
    bool known = true;
    for (int r = 0; r < plan->run_count; r++) {
        int count;
        const struct lab_run_rank *ranks = lab_plan_run_places(&plan->runs[r], &count);
        for (int k = 0; k < count; k++) {
            use.nodes |= node_bit(ranks[k].numa_node);
            if (ranks[k].gpu_id >= 0 && ranks[k].gpu_id < plan->devices.count)
                used[ranks[k].gpu_id] = true;
            else
                known = false;
        }
    }
    for (int i = 0; i < plan->devices.count; i++) {
        if (!used[i])
            continue;
        uint64_t bit = device_bit(course, plan->devices.items[i].physical);
        known &= bit != 0;
        use.devices |= bit;
        use.nodes |= node_bit(plan->devices.items[i].node);
    }
    use.devices = known ? use.devices : 0;
    return use;
}

int course_find_use(struct course *course, int study, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_plan plan;
    const char *const *words, *const *overrides;
    if (course_study_plan(course, study, &arena, &plan, &words, &overrides, err) < 0)
        return -1;
    course->found[study].use = use_of(course, &plan);
    return 0;
}

static int estimate_plan(struct course *course, int study, const struct lab_plan *plan,
                         bool calibrate, struct lab_history **history, struct lab_err *err) {
    struct lab_err failed = LAB_ERR_INIT;
    if (!*history)
        *history = lab_run_history(plan->machine);
    if (calibrate && lab_run_plan_calibrate(plan, *history, &failed) < 0) {
        if (failed.code == LAB_ERR_INTERRUPTED)
            return lab_err_set(err, failed.code, "%s", failed.text);
        lab_console_note("no estimate of %s: %s", course->studies[study].title, failed.text);
    }
    struct lab_plan_estimate estimate = lab_run_plan_estimate(plan, *history);
    course->found[study].expected_s = estimate.expected_s;
    course->found[study].expected_j = estimate.energy_j;
    course->found[study].expected_bytes = estimate.disk_bytes;
    return 0;
}

static const char *phase_of(const struct course *course, int study) {
    const struct lab_campaign *campaign = &course->campaign;
    int phase = 0;
    while (phase + 1 < campaign->phase_count && campaign->phases[phase + 1].first_study <= study)
        phase++;
    return campaign->phases[phase].name;
}

int course_plan(struct course *course, bool estimate, bool calibrate, struct lab_err *err) {
    struct lab_history *history = NULL;
    int result = 0;
    course->devices = lab_arena_alloc(course->arena, 1, sizeof *course->devices);
    course->devices->arena = course->arena;
    for (int i = 0; i < course->campaign.study_count && result == 0; i++) {
        LAB_AUTO(arena, arena);
        struct lab_plan plan;
        const char *const *words, *const *overrides;
        result = course_study_plan(course, i, &arena, &plan, &words, &overrides, err);
        if (result < 0) {
            lab_err_context(err, "%s: phase %s", course->campaign.name, phase_of(course, i));
            break;
        }
        course->studies[i].run_count = plan.run_count;
        course->found[i].planned = plan.run_count;
        if (i == 0)
            take_machine(course, &plan);
        if (!course->studies[i].refined) { /* how much is found out later */
            course->found[i].planned = 0;
            continue;
        }
        course->found[i].use = use_of(course, &plan);
        if (estimate)
            result = estimate_plan(course, i, &plan, calibrate, &history, err);
    }
    lab_history_close(history);
    return result;
}

int course_count_replaced(struct course *course, int64_t *ret_runs, struct lab_err *err) {
    *ret_runs = 0;
    for (int i = 0; i < course->campaign.replaced_count; i++) {
        LAB_AUTO(arena, arena);
        struct lab_plan plan;
        const char *const *own = course->campaign.replaced[i].words;
        bool multirun = lab_str_equal(own[0], "-m");
        const char **words = NULL;
        int count = 0;
        for (int w = multirun; own[w]; w++)
            LAB_ADD(words, count, &arena) = own[w];
        for (int w = 0; course->overrides[w]; w++)
            LAB_ADD(words, count, &arena) = course->overrides[w];
        if (plan_words(course, words, multirun, &arena, &plan, err) < 0)
            return lab_err_context(err, "replaces");
        *ret_runs += plan.run_count;
    }
    return 0;
}

/* --- what is known --- */

struct lab_campaign_known course_known(const struct course *course) {
    return (struct lab_campaign_known){course->found, course->claims, course->steps};
}

static void count_runs(struct lab_campaign_found *found, const struct lab_run *runs, int count,
                       bool simulated, struct lab_arena *arena) {
    double taken_s = 0, energy_j = 0;
    int measured = 0;
    found->begun = true;
    found->planned = count;
    found->done = found->failed = found->invalid = 0;
    found->error = NULL;
    for (int i = 0; i < count; i++) {
        const struct lab_result *result = lab_run_result(&runs[i]);
        bool done = runs[i].state == LAB_RUN_DONE;
        found->done += done;
        found->failed += runs[i].state == LAB_RUN_FAILED;
        if (runs[i].state == LAB_RUN_FAILED && !found->error && *runs[i].error)
            found->error = lab_arena_strdup(arena, runs[i].error);
        found->invalid += done && !runs[i].valid;
        taken_s += done ? (double)(runs[i].end_ns - runs[i].start_ns) / 1e9 : 0;
        if (done && !isnan(result->energy_j)) {
            energy_j += result->energy_j;
            measured++;
        }
    }
    if (!simulated) /* whose times are the simulated machine's */
        found->taken_s = taken_s;
    found->energy_j = measured ? energy_j : NAN;
    found->energy_runs = measured;
}

/* The newest study below the slot; NULL = none. */
static const char *find_study(const char *slot, struct lab_arena *arena) {
    struct lab_walk wanted = {.holds = "study.db", .depth = 3};
    struct lab_walk_find *finds;
    int count;
    if (!slot || lab_walk(slot, &wanted, arena, &finds, &count, NULL) < 0 || count == 0)
        return NULL;
    return finds[count - 1].path;
}

int course_read_study(struct course *course, int study, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct course_study *own = &course->studies[study];
    struct lab_study_file *file;
    const char *folder = find_study(own->slot, &arena);
    if (!folder)
        return 0;
    own->folder = lab_arena_strdup(course->arena, folder);
    if (lab_study_file_open(own->folder, &arena, &file, err) < 0)
        return -1;
    int result = lab_study_file_runs(file, err);
    if (result == 0)
        count_runs(&course->found[study], file->runs, file->run_count, course->simulated,
                   course->arena);
    lab_study_file_close(file);
    /* a runner works on it, or was killed before its files were complete */
    if (access(lab_arena_printf(&arena, "%s/" LAB_FOLDER_ROOM, own->folder), F_OK) == 0)
        course->found[study].again = true;
    return result;
}

const char *const *course_folders(const struct course *course, const int *phases, int count,
                                  int *ret_count) {
    const char **folders = NULL;
    int made = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[phases[i]];
        for (int s = 0; s < phase->study_count; s++)
            if (course->studies[phase->first_study + s].folder)
                LAB_ADD(folders, made, course->arena) =
                    course->studies[phase->first_study + s].folder;
    }
    *ret_count = made;
    return folders;
}

static int find_claims(struct course *course, const char *const *folders, int folder_count,
                       const struct lab_analysis *const *analyses, int analysis_count,
                       struct lab_campaign_claims *ret_claims, struct lab_err *err) {
    struct lab_campaign_claims found = {0};
    struct lab_claim **claims = NULL;
    int count = 0;
    for (int a = 0; a < analysis_count && folder_count > 0; a++) {
        struct lab_study_table *tables;
        struct lab_analysis_result result;
        struct lab_err ignored = LAB_ERR_INIT;
        struct lab_analysis_input input = {0};
        if (lab_studies_read(folders, folder_count, analyses[a]->needs, course->arena, &tables,
                             &input.study_count, err) < 0)
            return -1;
        input.studies = tables;
        /* an analysis that has nothing to say makes no claim: the condition is undecided */
        if (lab_studies_pool(tables, &input.study_count, course->arena, &ignored) < 0 ||
            lab_analysis_run(analyses[a], NULL, &input, course->arena, &result, &ignored) < 0)
            continue;
        for (int c = 0; c < result.claim_count; c++)
            LAB_ADD(claims, count, course->arena) = &result.claims[c];
        lab_campaign_add_points(tables, input.study_count, course->arena, &found);
    }
    found.items = claims;
    found.count = count;
    *ret_claims = found;
    return 0;
}

/* Claims of phases that have ended, and of steps of a bisection; each once. */
static int read_claims(struct course *course, struct lab_err *err) {
    const struct lab_campaign *campaign = &course->campaign;
    for (int p = 0; p < campaign->phase_count; p++) {
        const struct lab_campaign_phase *own = &campaign->phases[p];
        const struct lab_analysis *const *analyses;
        bool ended = true, *steps_read = course->is_read + campaign->phase_count;
        for (int s = 0; s < own->study_count; s++) {
            int at = own->first_study + s;
            const char *folder = course->studies[at].folder;
            bool own_ended = lab_campaign_has_ended(&course->found[at]);
            ended &= own_ended;
            if (!own_ended || steps_read[at] || !lab_campaign_is_step(campaign, p, s))
                continue;
            if (find_claims(course, &folder, folder != NULL, &own->studies[s].analysis, 1,
                            &course->steps[at], err) < 0)
                return -1;
            steps_read[at] = true;
        }
        if (!ended || course->is_read[p])
            continue;
        int asked = lab_campaign_asked(campaign, p, course->arena, &analyses), count;
        const char *const *folders = course_folders(course, &p, 1, &count);
        if (find_claims(course, folders, count, analyses, asked, &course->claims[p], err) < 0)
            return -1;
        course->is_read[p] = true;
    }
    return 0;
}

void course_forget_claims(struct course *course, int phase) {
    const struct lab_campaign_phase *own = &course->campaign.phases[phase];
    course->is_read[phase] = false;
    for (int s = 0; s < own->study_count; s++)
        course->is_read[course->campaign.phase_count + own->first_study + s] = false;
}

/* Whether all phases before it have ended well, or won't run. */
static bool is_due(const struct course *course, const struct lab_campaign_status *statuses,
                   int phase) {
    const struct lab_campaign_phase *own = &course->campaign.phases[phase];
    for (int i = 0; i < own->after_count; i++)
        if (statuses[own->after[i]].state != LAB_CAMPAIGN_DONE &&
            statuses[own->after[i]].state != LAB_CAMPAIGN_SKIPPED)
            return false;
    return true;
}

static void refine_study(struct course *course, int phase, int number) {
    struct course_study *study =
        &course->studies[course->campaign.phases[phase].first_study + number];
    struct lab_campaign_found *found =
        &course->found[course->campaign.phases[phase].first_study + number];
    struct lab_campaign_known known = course_known(course);
    const char *const *extra =
        lab_campaign_refine(&course->campaign, phase, number, &known, course->arena, &study->why);
    const char **words = NULL;
    int count = 0;
    study->refined = true;
    if (!extra) {
        *found = (struct lab_campaign_found){
            .begun = true, .taken_s = NAN, .energy_j = NAN, .expected_s = NAN, .expected_j = NAN};
        return;
    }
    for (int i = 0; study->words[i]; i++)
        LAB_ADD(words, count, course->arena) = study->words[i];
    for (int i = 0; extra[i]; i++) {
        LAB_ADD(words, count, course->arena) = extra[i];
        study->title = lab_arena_printf(course->arena, "%s %s", study->title, extra[i]);
    }
    LAB_ADD(words, count, course->arena) = another_seed(course, study);
    study->words = words;
}

/* A step goes by the one before it. */
static bool has_step_before(const struct course *course, const struct lab_campaign_phase *phase,
                            int number) {
    return phase->studies[number].step == 0 ||
           lab_campaign_has_ended(&course->found[phase->first_study + number - 1]);
}

/* Those that can be refined now; whether there was one. */
static bool refine_due(struct course *course) {
    struct lab_campaign_known known = course_known(course);
    const struct lab_campaign_status *statuses =
        lab_campaign_decide(&course->campaign, &known, course->arena);
    bool any = false;
    for (int p = 0; p < course->campaign.phase_count; p++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[p];
        for (int s = 0; s < phase->study_count && is_due(course, statuses, p); s++)
            if (!course->studies[phase->first_study + s].refined &&
                has_step_before(course, phase, s)) {
                refine_study(course, p, s);
                any = true;
            }
    }
    return any;
}

int course_refine(struct course *course, struct lab_err *err) {
    do { /* one without points has ended, and others go by that */
        if (read_claims(course, err) < 0)
            return -1;
    } while (refine_due(course));
    return 0;
}

int course_read(struct course *course, struct lab_err *err) {
    for (int i = 0; i < course->campaign.study_count; i++)
        if (course_read_study(course, i, err) < 0)
            return -1;
    return course_refine(course, err);
}
