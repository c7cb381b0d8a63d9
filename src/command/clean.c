/*
 * clean.c: `gpulab clean`: removes traces, logs or whole studies. It lists what would go; --yes
 * removes it.
 */
#include "command/command.h"

#include "base/clock.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "run/clean.h"
#include "run/folder.h"

#include <stddef.h>

struct clean_config {
    bool traces, logs, yes;
    double older_s;
    int64_t keep;
};

static const struct lab_option clean_options[] = {
    {"traces", LAB_OPTION_FLAG, offsetof(struct clean_config, traces),
     .help = "remove traces and keep the rest of each study"},
    {"logs", LAB_OPTION_FLAG, offsetof(struct clean_config, logs),
     .help = "remove logs and keep the rest of each study"},
    {"older-than", LAB_OPTION_DURATION, offsetof(struct clean_config, older_s), .min = 3600,
     .max = 1e9, .value_name = "AGE",
     .help = "only studies that were started longer ago, with its unit: 30d, 12h"},
    {"keep", LAB_OPTION_INT, offsetof(struct clean_config, keep), .fallback = "0", .max = 1000000,
     .value_name = "N", .help = "spare the newest N of each study"},
    {"yes", LAB_OPTION_FLAG, offsetof(struct clean_config, yes), .letter = 'y',
     .help = "remove what is listed; without it nothing is removed"},
    {NULL},
};

struct item {
    struct lab_study_view view;
    struct lab_clean clean;
    const char *spared; /* why it stays; NULL = it goes */
};

/* --- which --- */

static int check_choice(const struct lab_command_call *call, struct lab_err *err) {
    const struct clean_config *config = call->config;
    bool parts = config->traces || config->logs, some = config->older_s > 0 || config->keep > 0;
    if (!parts && !some && call->word_count == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "say what to remove: studies by path, --older-than AGE, --keep N, "
                           "--traces or --logs");
    return 0;
}

/* Known studies are listed newest first; named ones are taken as they are given. */
static int find_paths(const struct lab_command_call *call, const char *const **ret_paths,
                      int *ret_count, struct lab_err *err) {
    if (call->word_count == 0) {
        lab_folder_known(call->arena, ret_paths, ret_count);
        return 0;
    }
    const char **paths = lab_arena_alloc(call->arena, (size_t)call->word_count, sizeof *paths);
    int count = 0;
    for (int i = 0; i < call->word_count; i++) {
        bool again = false;
        if (lab_folder_resolve(call->words[i], call->arena, &paths[count], err) < 0)
            return -1;
        for (int k = 0; k < count; k++)
            again |= lab_str_equal(paths[k], paths[count]);
        count += !again;
    }
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

static int count_newer(const struct item *items, int count, const struct item *item) {
    int newer = 0;
    for (int i = 0; i < count; i++)
        newer += lab_str_equal(items[i].view.report.name, item->view.report.name) &&
                 items[i].view.report.created_wall_ns > item->view.report.created_wall_ns;
    return newer;
}

/* Why it isn't chosen; NULL = it is. */
static const char *spare(const struct clean_config *config, const struct item *items, int count,
                         const struct item *item) {
    double age_s = 1e-9 * (double)(lab_clock_wall_ns() - item->view.report.created_wall_ns);
    if (config->older_s > 0 && age_s < config->older_s)
        return "";
    if (config->keep > 0 && count_newer(items, count, item) < config->keep)
        return "";
    return item->view.report.running ? "running" : NULL;
}

static int read_items(const struct lab_command_call *call, const char *const *paths, int count,
                      struct item **ret_items, int *ret_count, struct lab_err *err) {
    const struct clean_config *config = call->config;
    unsigned parts = (config->traces ? LAB_CLEAN_TRACES : 0) | (config->logs ? LAB_CLEAN_LOGS : 0);
    struct item *items = lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *items);
    int read = 0;
    for (int i = 0; i < count; i++) {
        struct lab_err why = LAB_ERR_INIT;
        if (lab_study_view_look(paths[i], false, call->arena, &items[read].view, &why) == 0 &&
            lab_clean_find(paths[i], parts ? parts : LAB_CLEAN_STUDY, call->arena,
                           &items[read].clean, &why) == 0) {
            read++;
        } else if (call->word_count) { /* one that was named must be one */
            *err = why;
            return -1;
        } else {
            lab_console_note("left as it is: %s", why.text);
        }
    }
    for (int i = 0; i < read; i++)
        items[i].spared = spare(config, items, read, &items[i]);
    for (int i = 0; i < read && call->word_count; i++)
        if (items[i].spared && *items[i].spared)
            return lab_err_set(err, LAB_ERR_USER, "%s is running: %s", items[i].view.report.folder,
                               items[i].view.report.holder);
    *ret_items = items;
    *ret_count = read;
    return 0;
}

/* --- what is said --- */

static void add_rows(struct lab_doc *doc, const struct item *items, int count) {
    static const struct lab_doc_column columns[] = {
        {"study"},
        {"folder"},
        {"size_bytes", NULL, LAB_UNIT_SIZE},
        {"files", NULL, LAB_UNIT_COUNT},
        {NULL, "Started", LAB_UNIT_DATE, .align = LAB_ALIGN_LEFT},
        {NULL, "Size", LAB_UNIT_SIZE},
        {NULL, "Folder", .align = LAB_ALIGN_WHOLE, .below = true},
    };
    lab_doc_rows(doc, "studies", NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        const struct item *item = &items[i];
        if (item->spared || !item->clean.file_count)
            continue;
        lab_doc_add(doc, lab_cell_text(lab_study_info_title(&item->view.report)));
        lab_doc_add(doc, lab_cell_text(item->view.path));
        lab_doc_figure(doc, (double)item->clean.bytes);
        lab_doc_figure(doc, item->clean.file_count);
        lab_doc_figure(doc, 1e-9 * (double)item->view.report.created_wall_ns);
        lab_doc_figure(doc, (double)item->clean.bytes);
        lab_doc_add(doc, lab_cell_text(item->view.report.folder));
    }
}

static void add_spared(struct lab_doc *doc, const struct item *items, int count) {
    for (int i = 0; i < count; i++) {
        const struct item *item = &items[i];
        if (item->spared && *item->spared)
            lab_doc_said(doc, "Kept:", LAB_DOC_WARNING, "%s, running", item->view.report.folder);
        if (!item->spared && item->clean.kept_count)
            lab_doc_said(doc, "Kept:", LAB_DOC_WARNING, "%s/%s%s: not written by gpulab",
                         item->view.report.folder, item->clean.kept[0],
                         item->clean.kept_count > 1
                             ? lab_arena_printf(lab_doc_arena(doc), " and %d more",
                                                item->clean.kept_count - 1)
                             : "");
    }
}

static const char *what(const struct clean_config *config) {
    return config->traces && config->logs ? "traces and logs of "
           : config->traces               ? "traces of "
           : config->logs                 ? "logs of "
                                          : "";
}

static void print(const struct lab_command_call *call, const struct item *items, int count) {
    const struct clean_config *config = call->config;
    struct lab_doc *doc = lab_doc_open("Clean", call->arena);
    int chosen = 0;
    double bytes = 0;
    LAB_AUTO(str, size);
    for (int i = 0; i < count; i++)
        if (!items[i].spared && items[i].clean.file_count) {
            chosen++;
            bytes += (double)items[i].clean.bytes;
        }
    lab_str_add_bytes_binary(&size, bytes);
    lab_doc_data(doc, "removed", lab_value_bool(call->arena, config->yes));
    lab_doc_data(doc, "total_bytes", lab_value_int(call->arena, (int64_t)bytes));
    add_rows(doc, items, count);
    lab_doc_gap(doc);
    add_spared(doc, items, count);
    if (chosen == 0)
        lab_doc_text(doc, LAB_DOC_WHOLE, "Nothing to remove.");
    else
        lab_doc_text(doc, LAB_DOC_WHOLE, "%s %s%d stud%s, %s.%s",
                     config->yes ? "Removed" : "Would remove", what(config), chosen,
                     chosen == 1 ? "y" : "ies", size.text,
                     config->yes ? "" : " Nothing was removed: add --yes.");
    lab_doc_print(doc, call->console);
}

/* --- the command --- */

static int clean_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct clean_config *config = call->config;
    const char *const *paths;
    struct item *items;
    int count;
    if (check_choice(call, err) < 0 || find_paths(call, &paths, &count, err) < 0 ||
        read_items(call, paths, count, &items, &count, err) < 0)
        return -1;
    for (int i = 0; config->yes && i < count; i++)
        if (!items[i].spared && items[i].clean.file_count &&
            lab_clean_remove(items[i].view.path, &items[i].clean, err) < 0)
            return -1;
    print(call, items, count);
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab clean --traces", "what the traces of all your studies take; --yes removes them"},
    {"gpulab clean --older-than 30d", "studies that were started more than 30 days ago"},
    {"gpulab clean --keep 3 --yes", "all but the newest three of each study"},
    {"gpulab clean outputs/quick_test/2026-11-15/10-42-03 --yes", "one study"},
    {NULL},
};

const struct lab_command lab_command_clean = {
    .name = "clean",
    .summary = "remove traces, logs or old studies; lists them first",
    .usage = "[PATH...]",
    .description =
        "Lists what would be removed, with sizes and the total; --yes removes it. Without --traces "
        "and --logs, whole studies go. PATH is a study's folder; a study's name means the newest "
        "of that name. Without PATH, all of your studies on this machine are candidates; "
        "--older-than, --keep, "
        "--traces or --logs must select. Conditions add up: a study goes if it is older and not "
        "among the newest.\n"
        "\n"
        "A running study is never removed. Nor is any file that gpulab didn't write, or its "
        "folder. "
        "Values remain without traces and logs: reports and analyses still work, but "
        "for 'gpulab analyze latency', which reads traces.",
    .options = clean_options,
    .config_size = sizeof(struct clean_config),
    .max_words = -1,
    .examples = examples,
    .run = clean_run,
};
