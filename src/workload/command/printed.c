/*
 * command/printed.c: values as training programs print them, without a pattern:
 *
 *   Iter   100 | loss 3.4512 | ppl 31.5
 *   iter 100: loss 3.4, time 45ms, mfu 38%
 *   step 250: train loss 1.9, val loss 2.0
 *   Epoch 1/10, Iter 100/500, Loss: 3.4
 *   Epoch: [0][ 10/5005]  Loss 6.9 (7.0)
 *   step   12/14 | loss 10.97 (+0.3z)| lr 3e-04 | 45.7 ms | 55.1% bf16 MFU | 358383 tok/s
 *   Epoch 0: 32%|███▏ | 600/1875 [00:05<00:10, 118.2it/s, loss=0.12]
 *   1875/1875 [=====] - 4s 2ms/step - loss: 0.29 - accuracy: 0.91
 *   Train Epoch: 1 [640/60000 (1%)]   Loss: 0.3
 *   [1,  2000] loss: 2.2
 *   Accuracy of the network on the 10000 test images: 55 %
 *   Validation: loss 0.9, 12.5K tok/s
 *
 * A line is cut into words, numbers and marks. A number has the words before it as its name, unless
 * it counts steps or epochs. Since programs print much else, a line is read only where it counts
 * steps, or for names that are known to be of a training (loss, accuracy, …). Where no steps are
 * counted, epochs are the step, and a value of their own: so readers know what the step is.
 */
#include "model/metric_name.h"
#include "workload/command/form.h"
#include "workload/command/item.h"

#include <ctype.h>
#include <string.h>

#define NAME_BYTES 96

/* --- what a line is about --- */

static unsigned meanings_of(const struct command_line *line, const struct command_item *item) {
    unsigned all = 0;
    for (int i = 0; i < item->words && !item->name; i++)
        all |= command_line_meaning(line, item->first + i);
    return all & (COMMAND_EVALUATION | COMMAND_TRAINING);
}

/* "CELoss" */
static bool is_loss(const struct command_line *line, const struct command_item *item) {
    const struct command_token *word = &line->tokens[item->first + item->words - 1];
    return word->end - word->start >= 4 && command_is_same("loss", line->text + word->end - 4, 4);
}

/* "train" of "train loss: 0.4 acc: 0.8", where it goes for both; -1 = it goes for none. `before` is
 * `behind` a '|': "val loss: 0.5 | acc: 0.7" has one more of it, "val acc: 0.7 | loss: 0.4" not. */
static int phase_of(const struct command_line *line, const struct command_item *item, int before,
                    bool behind) {
    bool rate = item->words == 1 && (command_line_is_word(line, item->first, "mfu") ||
                                     command_line_is_word(line, item->first, "MFU") ||
                                     command_line_is_word(line, item->first, "throughput"));
    if (item->name || item->words == 0)
        return -1;
    if (item->words > 1)
        return meanings_of(line, item) & command_line_meaning(line, item->first) &&
                       command_item_meaning(line, item) & COMMAND_KNOWN
                   ? item->first
                   : -1;
    bool other = rate || (behind && is_loss(line, item));
    return !other && command_line_meaning(line, item->first) == COMMAND_KNOWN ? before : -1;
}

/* "LOSS" of "LOSS train 0.5 valid 0.6", and of its second value; -1 = of neither. */
static int subject_of(const struct command_line *line, const struct command_item *item,
                      int before) {
    const unsigned phases = COMMAND_EVALUATION | COMMAND_TRAINING;
    if (item->name || item->words == 0 || !(command_item_meaning(line, item) & phases) ||
        command_item_meaning(line, item) & COMMAND_KNOWN)
        return -1;
    if (item->words == 1)
        return before;
    return item->words == 2 && command_line_meaning(line, item->first) & COMMAND_KNOWN ? item->first
                                                                                       : -1;
}

/* "(val: 2.6)" behind "loss: 2.5": of the same name */
static bool is_remark(const struct command_line *line, const struct command_item *item,
                      const struct command_item *before) {
    return item->words == 1 && !item->name && item->marked &&
           command_line_mark(line, item->first - 1) == '(' && before->next == item->first - 1 &&
           before->words > 0 && !before->name &&
           command_item_meaning(line, before) & COMMAND_KNOWN && meanings_of(line, item) &&
           !(command_item_meaning(line, item) & COMMAND_KNOWN);
}

static bool evaluates(const struct command_line *line, int word) {
    return word >= 0 && command_line_meaning(line, word) & COMMAND_EVALUATION;
}

/* `half`: of "train/val"; 0 = all of it, 1 = before '/', 2 = behind. */
static size_t add_word(const struct command_line *line, int t, int half, char name[NAME_BYTES],
                       size_t length) {
    const struct command_token *word = &line->tokens[t];
    const char *slash = half > 0 && command_line_is_both(line, t)
                            ? memchr(line->text + word->start, '/', word->end - word->start)
                            : NULL;
    size_t start = word->start, end = word->end;
    if (slash && half == 1)
        end = (size_t)(slash - line->text);
    else if (slash)
        start = (size_t)(slash + 1 - line->text);
    for (size_t c = start; c < end && length + 2 < NAME_BYTES; c++)
        if (line->text[c] != '\'')
            name[length++] = (char)tolower((unsigned char)line->text[c]);
    return length;
}

struct naming {           /* of an item, beside its own words */
    const char *recalled; /* "best_" */
    const char *head;     /* "val_" */
    int phase;            /* the word before it that names a phase; -1 = none does */
};

/* Its words joined by '_', in small letters; of an evaluation where the line says so. */
static const char *join_name(const struct command_line *line, const struct command_item *item,
                             const struct naming *naming, int half, char name[NAME_BYTES]) {
    size_t length = 0;
    int phase = naming->phase;
    bool phased = phase >= 0 && phase != item->first && !*naming->head;
    bool itself = command_item_is_best(line, item) ||
                  (item->words > 0 && command_line_is_saved(line, item->first));
    for (const char *c = itself ? "" : naming->recalled; *c; c++)
        name[length++] = *c;
    for (const char *c = meanings_of(line, item) ? "" : naming->head; *c; c++)
        name[length++] = *c;
    for (const char *c = item->name; c && *c; c++)
        name[length++] = *c;
    if (phased)
        length = add_word(line, phase, half, name, length);
    for (int i = 0; i < item->words && !item->name; i++) {
        if ((i > 0 || phased) && length + 2 < NAME_BYTES)
            name[length++] = '_';
        length = add_word(line, item->first + i, half, name, length);
    }
    name[length] = '\0';
    name[lab_str_utf8_prefix(name, length)] = '\0'; /* it may have been cut */
    return name;
}

/* "train/val loss: 2.3/2.2" */
static bool names_both(const struct command_line *line, const struct command_item *item) {
    for (int i = 0; i < item->words && !item->name; i++)
        if (command_line_is_both(line, item->first + i))
            return true;
    return false;
}

static bool has_field(const struct command_draft *draft, const char *name) {
    for (int i = 0; i < draft->form.count; i++)
        if (draft->fields[i].kind & COMMAND_IS_VALUE && lab_str_equal(draft->fields[i].name, name))
            return true;
    return false;
}

/* "loss[loss=1.2, …], tot_loss[loss=2.1, lr=3]": of names that the line has already: "tot_loss",
 * "tot_loss_lr". */
static void name_by_group(const struct command_line *line, const struct command_item *item,
                          char name[NAME_BYTES]) {
    char inner[NAME_BYTES];
    int group = command_line_group(line, item->first);
    if (group < 0)
        return;
    snprintf(inner, sizeof inner, "%s", name);
    size_t length = add_word(line, group, 0, name, 0), own = strlen(inner);
    if (length < own || memcmp(name + length - own, inner, own) != 0)
        length += (size_t)snprintf(name + length, NAME_BYTES - length, "_%s", inner);
    name[length < NAME_BYTES ? length : NAME_BYTES - 1] = '\0';
}

/* 1 = it is a field now, 0 = it has no name, -1 = there is no room. */
static int add_item(struct command_draft *draft, const struct command_line *line,
                    const struct command_item *item, struct command_field field,
                    const struct naming *naming) {
    char name[NAME_BYTES];
    bool value = field.kind & COMMAND_IS_VALUE;
    bool both = value && item->of >= 0 && names_both(line, item);
    int second = field.of;
    field.name = value ? join_name(line, item, naming, both, name) : "";
    if (value && !*field.name)
        return 0;
    if (value && item->words > 0 && has_field(draft, name))
        name_by_group(line, item, name);
    if (both) {
        field.kind &= ~(unsigned)COMMAND_IS_SHARE;
        field.of = -1;
    }
    if (!command_draft_add(draft, &field))
        return -1;
    if (!both)
        return 1;
    field.name = join_name(line, item, naming, 2, name);
    field.number = second;
    return command_draft_add(draft, &field) ? 1 : -1;
}

/* --- a line --- */

struct scope { /* where a word for all values ends to be for them: "val(loss=2.6), lr=0.1" */
    const char *outer; /* what those behind it are of */
    int end, count;    /* its closing bracket; fields when it began */
};

static bool has_values(const struct command_draft *draft, int from) {
    while (from < draft->form.count && !(draft->fields[from].kind & COMMAND_IS_VALUE))
        from++;
    return from < draft->form.count;
}

static void note_evaluation(struct command_form *form, const char *head) {
    form->evaluation |= *head != '\0';
    form->head = *head ? head : form->head;
}

/* "eval epoch: 1, loss: 0.5", "eval metrics after step: 50"; batches of an evaluation are no steps
 * of the training: "[Eval batch=10/10]". */
static void take_head(const struct command_line *line, const struct command_item *item,
                      struct command_form *form, const char **head, unsigned *kind) {
    int first = item->first;
    unsigned all = 0;
    while (command_line_is(line, first - 1, COMMAND_WORD))
        first--;
    for (int t = first; t < item->first + item->words; t++)
        all |= command_line_meaning(line, t) & (COMMAND_EVALUATION | COMMAND_TRAINING);
    if (all)
        *head = command_line_head_of(line, first, all);
    if (all)
        note_evaluation(form, *head);
    if (all & COMMAND_EVALUATION && item->of >= 0 && *kind & COMMAND_IS_STEP)
        *kind = 0;
}

static void take_heading(const struct command_unit *heading, struct command_item *item) {
    item->headed = heading && item->words > 0 && !*item->unit;
    if (!item->headed)
        return;
    item->unit = heading->unit;
    item->scale *= heading->scale;
}

/* Its numbers; `places` says which a token is. A form doesn't last where what a number begins with
 * could make it part of a word: "x/+5". */
static void take_numbers(struct command_draft *draft, const struct command_line *line,
                         int places[COMMAND_TOKENS_MAX]) {
    for (int t = 0; t < line->count; t++) {
        const struct command_token *token = &line->tokens[t];
        if (token->kind != COMMAND_NUMBER)
            continue;
        char before = token->attached ? line->text[token->start - 1] : ' ';
        bool joined = (before == '/' || before == '-') && /* "12/14", "2026-11-18" */
                      command_line_is(line, t - 2, COMMAND_NUMBER);
        draft->lasting &= joined || !(command_is_word(before) || strchr("@/#.-", before));
        places[t] = command_draft_number(draft, token->start, token->end, token->value);
    }
    draft->lasting &= line->count < COMMAND_TOKENS_MAX;
}

/* "epoch 001:   100 / 2000", "Epoch 1 (100/2000)", "Train: 0 [50/1251 (4%)]": what follows tells
 * what it is. */
static void look_at_pair(const struct command_line *line, const struct command_item *before,
                         struct command_field *earlier, const struct command_item *item,
                         unsigned *kind) {
    int next = before->next + (command_line_mark(line, before->next) == ']'); /* "Epoch[1](2/50)" */
    if (next != item->token - 1)
        return;
    char mark = command_line_mark(line, next);
    if (earlier->kind & COMMAND_IS_EPOCH && item->words == 0 && item->of >= 0 &&
        (mark == ':' || (mark == '(' && command_line_mark(line, item->next) == ')')))
        *kind = COMMAND_IS_STEP;
    if (earlier->kind == COMMAND_IS_VALUE && item->percents)
        earlier->kind |= COMMAND_IS_WHOLE;
}

/* "980img/s", "1.2s/img" */
static bool counts_samples(const struct command_line *line, int t) {
    const struct command_unit *unit =
        command_line_is(line, t, COMMAND_WORD) ? command_line_unit(line, t) : NULL;
    return unit && lab_str_equal(unit->name, "samples_per_s");
}

static bool are_evaluated(const struct command_form *form) {
    bool any = false;
    for (int i = 0; i < form->count; i++) {
        const struct command_field *field = &form->fields[i];
        if (field->kind & COMMAND_IS_VALUE && !lab_metric_name_is_evaluation(field->name))
            return false;
        any |= (field->kind & COMMAND_IS_VALUE) != 0;
    }
    return any;
}

/* Nothing is kept of a line that neither counts by a name nor has a known one. */
static void finish(struct command_draft *draft, const struct command_line *line) {
    struct command_form *form = &draft->form;
    unsigned all = 0;
    bool rate = false, bar = false, samples = false;
    int rank = -1;
    for (int t = 0; t < line->count && !bar; t++)
        bar = command_line_is_share(line, t);
    for (int t = 0; t < line->count && bar && !samples; t++)
        samples = counts_samples(line, t); /* also "0/1000 [00:00<?, ?img/s]" */
    for (int i = 0; i < form->count; i++) {
        if (samples && form->fields[i].kind == COMMAND_IS_STEP && form->fields[i].of >= 0)
            form->fields[i].kind = COMMAND_IS_PART; /* "50/1000 [00:01<00:19, 980img/s]" */
        all |= form->fields[i].kind;
        rank = form->fields[i].kind & COMMAND_IS_RANK ? i : rank;
        rate |= lab_str_equal(form->fields[i].name, "iterations_per_s") ||
                lab_str_equal(form->fields[i].name, "iteration_time");
    }
    form->evaluated = are_evaluated(form);
    if (rank >= 0 && !(all & COMMAND_IS_VALUE))
        form->fields[rank].kind = 0; /* lines without it have the values: OLMo's */
    if (all & (COMMAND_IS_KNOWN | COMMAND_IS_NAMED) ||
        (all & COMMAND_IS_EPOCH && command_line_is_epoch_bar(line)))
        return;
    form->bar = rate && all & COMMAND_IS_STEP && command_line_is_lone_bar(line);
    form->count = form->bar ? form->count : 0;
}

void command_printed_line(struct command_draft *draft, const char *text, size_t length) {
    struct command_line line;
    struct command_item item, before = {.next = -1};
    int places[COMMAND_TOKENS_MAX];
    const char *head = "", *other;
    const struct command_unit *unit;
    struct command_recall recall = {.names = ""};
    int phase = -1, subject = -1, of_item, group = 0; /* group: its first field */
    const struct command_unit *heading = NULL;
    bool batches = false; /* of an evaluation: "Test: [10/79]" */
    bool behind = false;  /* a '|' has come since `phase` */
    bool grouped = true;  /* "(val)" may stand behind its values: no "(train)" began the line */
    struct command_field field;
    command_line_cut(&line, text, length);
    struct scope scope = {"", line.count, 0};
    int end;
    command_draft_begin(draft, line.groups);
    take_numbers(draft, &line, places);
    for (int t = 0; t < line.count; t++) {
        if (command_line_is(&line, t, COMMAND_WORD) && command_line_is_settings(&line, t))
            break;
        if (t >= scope.end) {
            head = draft->form.count > scope.count ? scope.outer : head;
            scope.end = line.count;
        }
        if (command_line_is(&line, t, COMMAND_WORD) &&
            (other = command_line_head(&line, t, &end))) {
            scope = (struct scope){head, end, draft->form.count};
            head = other;
            grouped &= command_line_mark(&line, t - 1) != '(' || has_values(draft, 0);
            note_evaluation(&draft->form, head);
        }
        command_line_recall(&line, t, &recall);
        if (command_line_mark(&line, t) == '|') {
            phase = evaluates(&line, phase) ? phase : -1;
            subject = -1;
            behind = true;
        }
        heading = (unit = command_line_heading(&line, t)) ? unit : heading;
        if (grouped && has_values(draft, group) && (other = command_line_group_end(&line, t))) {
            for (; group < draft->form.count; group++)
                if (draft->fields[group].kind & COMMAND_IS_VALUE)
                    command_draft_rename(draft, &draft->fields[group], other, "");
            t += 2;
            continue;
        }
        if (!command_item_read(&line, t, &item))
            continue;
        t = item.next - 1;
        take_heading(heading, &item);
        unsigned kind = command_item_judge(&line, &item);
        if (kind == COMMAND_IS_VALUE && command_item_is_repeated(&line, &item, &recall))
            kind = 0;
        batches |= draft->means;
        batches |= draft->form.evaluation && item.of >= 0 &&
                   command_line_mark(&line, item.token - 1) == '[';
        int mean = batches && item.of < 0 ? command_line_mean(&line, item.next) : -1;
        if (kind & COMMAND_IS_NAMED)
            take_head(&line, &item, &draft->form, &head, &kind);
        if (command_line_recalls(&line, item.next, kind & COMMAND_IS_NAMED, &recall))
            kind |= COMMAND_IS_RECALLED;
        recall.valued |= (kind & COMMAND_IS_VALUE) != 0;
        if (draft->form.count > 0)
            look_at_pair(&line, &before, &draft->fields[draft->form.count - 1], &item, &kind);
        of_item = kind & COMMAND_IS_VALUE ? phase_of(&line, &item, phase, behind) : -1;
        behind &= of_item < 0 || of_item == phase;
        phase = of_item >= 0 ? of_item : phase;
        subject = kind & COMMAND_IS_VALUE ? subject_of(&line, &item, subject) : subject;
        if (kind & COMMAND_IS_VALUE && is_remark(&line, &item, &before))
            subject = before.first + before.words - 1;
        if (kind & COMMAND_IS_VALUE && of_item < 0 && subject >= 0) {
            of_item = subject;
            kind |= COMMAND_IS_KNOWN;
        }
        field = (struct command_field){"",
                                       item.unit,
                                       item.scale,
                                       places[mean < 0 ? item.token : mean],
                                       item.of < 0 ? -1 : places[item.of],
                                       kind | (item.inverse ? COMMAND_IS_INVERSE : 0)};
        struct naming naming = {recall.names, head, of_item};
        int added = kind ? add_item(draft, &line, &item, field, &naming) : 0;
        if (added < 0)
            break;
        if (added == 0)
            continue;
        before = item;
    }
    finish(draft, &line);
}
